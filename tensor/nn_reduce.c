// Means and the greatest. See nn.h.
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/mode.h"
#include "tensor/nn.h"
#include "tensor/operator.h"
#include "tensor/reduce.h"
#include "tensor/view_call.h"

#include <string.h>

static enum base_status mean(struct tensor self, const int64_t *dims, int count, bool keep,
                             const struct tape_formula *formula, struct tensor *result) {
    struct tape_node *node = NULL;
    struct tensor made = {0};
    enum base_status status =
        tape_begin(formula, &self, 1, 1, sizeof(struct tape_sum_payload), &node);
    if (status == BASE_OK && !tensor_type_is_floating(self.impl->type))
        status = tensor__error("mean(): could not infer output dtype. Input dtype must be either a "
                               "floating point or complex dtype. Got: %s",
                               tensor_type_scalar_name(self.impl->type));
    const bool was_off = tensor__gradients_off();
    if (status == BASE_OK)
        status = tensor_sum_dims(self, dims, count, keep, &made);
    if (status == BASE_OK) {
        const int64_t all = self.impl->geometry.numel, left = made.impl->geometry.numel;
        status = tensor_div_(
            made, tensor_operand_floating(left > 0 ? (double)all / (double)left : (double)all));
    }
    tensor__gradients_restore(was_off);
    if (status == BASE_OK && node != NULL)
        status = tensor__sum_payload(self, dims, count, keep, node->payload);
    return tensor__explain(tape_end(status, node, &made, result), "mean", &self, 1);
}

enum base_status tensor_mean(struct tensor self, struct tensor *result) {
    return mean(self, NULL, 0, false, &tape_mean, result);
}

enum base_status tensor_mean_dims(struct tensor self, const int64_t *dims, int count, bool keep,
                                  struct tensor *result) {
    return mean(self, dims, count, keep, &tape_mean_dims, result);
}

enum base_status tensor_argmax(struct tensor self, int64_t dim, bool keep, struct tensor *result) {
    const struct tensor_geometry *shape = &self.impl->geometry;
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tensor_kernel_argmax kernel = {.columns = 1};
    struct tensor made = {0};
    int64_t sizes[TENSOR_RANK_MAX];
    int wrapped, rank = 0;
    enum base_status status = tensor_wrap_dim(dim, shape->rank, true, &wrapped);
    if (status != BASE_OK)
        return status;
    if (shape->rank > 0)
        kernel.columns = shape->sizes[wrapped];
    if (kernel.columns == 0)
        return tensor__error_index("argmax(): Expected reduction dim %d to have non-zero size.",
                                   wrapped);
    for (int at = 0; at < shape->rank; at++)
        if (at != wrapped)
            sizes[rank++] = shape->sizes[at];
    status = tensor__rows(self.impl, wrapped, &kernel.shape, &kernel.a);
    if (status == BASE_OK)
        status = tensor__make(self.impl, TENSOR_INT64, sizes, rank, &made);
    if (status == BASE_OK)
        status = tensor__array(made.impl, NULL, &kernel.out);
    if (status == BASE_OK)
        status = tensor__model(made.impl, &model, &stream);
    if (status == BASE_OK)
        status = model->argmax(&kernel, stream);
    if (status == BASE_OK && keep && shape->rank > 0)
        status = tensor_unsqueeze(made, wrapped, result);
    else if (status == BASE_OK)
        *result = tensor_retain(made);
    tensor_release(&made);
    return tensor__explain(status, "argmax", &self, 1);
}
