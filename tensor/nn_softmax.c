// Softmax and its logarithm. See nn.h.
#include "tensor/formulas.h"
#include "tensor/nn.h"
#include "tensor/operator.h"
#include "tensor/view_call.h"

enum base_status tensor__softmax(struct tensor self, int dim, double scale, bool is_log,
                                 bool is_causal, int64_t shift, struct tensor *result) {
    const struct tensor_geometry *shape = &self.impl->geometry;
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tape_node *node = NULL;
    struct tensor made = {0};
    struct tensor_kernel_softmax kernel = {.columns = shape->rank > 0 ? shape->sizes[dim] : 1,
                                           .scale = scale,
                                           .is_log = is_log,
                                           .is_causal = is_causal,
                                           .shift = shift};
    enum base_status status = tape_begin(is_log ? &tape_log_softmax : &tape_softmax, &self, 1, 1,
                                         sizeof(struct tape_softmax_payload), &node);
    if (status == BASE_OK)
        status = tensor__check_floating("host_softmax", self.impl);
    if (status == BASE_OK)
        status = tensor__rows(self.impl, dim, &kernel.shape, &kernel.a);
    if (status == BASE_OK)
        status = tensor__make(self.impl, self.impl->type, shape->sizes, shape->rank, &made);
    if (status == BASE_OK)
        status = tensor__rows(made.impl, dim, NULL, &kernel.out);
    if (status == BASE_OK)
        status = tensor__model(made.impl, &model, &stream);
    if (status == BASE_OK)
        status = model->softmax(&kernel, stream);
    if (status == BASE_OK && node != NULL) {
        *(struct tape_softmax_payload *)node->payload = (struct tape_softmax_payload){dim, scale};
        status = tape_save_result(node, 0, made.impl);
    }
    return tape_end(status, node, &made, result);
}

static enum base_status softmax(struct tensor self, int64_t dim, bool is_log,
                                struct tensor *result) {
    int wrapped;
    enum base_status status = tensor_wrap_dim(dim, self.impl->geometry.rank, true, &wrapped);
    if (status == BASE_OK)
        status = tensor__softmax(self, wrapped, 1, is_log, false, 0, result);
    return tensor__explain(status, is_log ? "log_softmax" : "softmax", &self, 1);
}

enum base_status tensor_softmax(struct tensor self, int64_t dim, struct tensor *result) {
    return softmax(self, dim, false, result);
}

enum base_status tensor_log_softmax(struct tensor self, int64_t dim, struct tensor *result) {
    return softmax(self, dim, true, result);
}
