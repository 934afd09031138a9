// Negative log-likelihood and cross-entropy. See nn.h.
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/mode.h"
#include "tensor/nn.h"
#include "tensor/operator.h"

static enum base_status loss_check(struct tensor self, struct tensor targets) {
    const struct tensor_geometry *shape = &self.impl->geometry, *rows = &targets.impl->geometry;
    if (shape->rank < 1 || shape->rank > 2)
        return tensor__error("input tensor should be 1D or 2D");
    if (rows->rank != shape->rank - 1)
        return tensor__error("0D or 1D target tensor expected, multi-target not supported");
    if (shape->rank == 2 && shape->sizes[0] != rows->sizes[0])
        return tensor__error("Expected input batch_size (%lld) to match target batch_size (%lld).",
                             (long long)shape->sizes[0], (long long)rows->sizes[0]);
    if (targets.impl->type != TENSOR_INT64)
        return tensor__error("expected scalar type Long but found %s",
                             tensor_type_scalar_name(targets.impl->type));
    const enum base_status status =
        tensor__check_floating("nll_loss_forward_reduce_cuda_kernel_2d", self.impl);
    return status != BASE_OK ? status : tensor__check_same_device(self.impl, targets.impl);
}

// A vector is one row.
static enum base_status loss_write(struct tensor self, struct tensor targets, struct tensor made,
                                   struct tensor total, int64_t ignored, bool is_mean) {
    const struct tensor_geometry *shape = &self.impl->geometry;
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tensor_kernel_nll kernel = {.count = shape->rank == 2 ? shape->sizes[0] : 1,
                                       .columns = shape->sizes[shape->rank - 1],
                                       .ignored = ignored,
                                       .is_mean = is_mean};
    enum base_status status = tensor__rows(self.impl, shape->rank - 1, NULL, &kernel.a);
    if (status == BASE_OK)
        status = tensor__flat(targets.impl, &kernel.targets);
    if (status == BASE_OK)
        status = tensor__flat(made.impl, &kernel.loss);
    if (status == BASE_OK)
        status = tensor__flat(total.impl, &kernel.total);
    if (status == BASE_OK)
        status = tensor__model(made.impl, &model, &stream);
    return status != BASE_OK ? status : model->nll(&kernel, stream);
}

static enum base_status loss_save(struct tape_node *node, struct tensor self, struct tensor targets,
                                  struct tensor total, int64_t ignored, bool is_mean) {
    if (node == NULL)
        return BASE_OK;
    const struct tensor_geometry *shape = &self.impl->geometry;
    struct tape_nll_payload *payload = node->payload;
    *payload =
        (struct tape_nll_payload){.rank = shape->rank, .ignored = ignored, .is_mean = is_mean};
    for (int dim = 0; dim < shape->rank; dim++)
        payload->sizes[dim] = shape->sizes[dim];
    const enum base_status status = tape_save(node, 0, targets.impl);
    return status != BASE_OK ? status : tape_save_result(node, 1, total.impl);
}

enum base_status tensor_nll_loss(struct tensor self, struct tensor targets, int64_t ignored,
                                 enum tensor_reduction reduction, struct tensor *result) {
    struct tape_node *node = NULL;
    struct tensor flat = {0}, made = {0}, total = {0};
    const struct tensor operands[] = {self, targets};
    const bool is_mean = reduction == TENSOR_MEAN;
    enum base_status status =
        tape_begin(&tape_nll_loss, &self, 1, 1, sizeof(struct tape_nll_payload), &node);
    if (status == BASE_OK)
        status = loss_check(self, targets);
    if (status == BASE_OK)
        status = tensor_contiguous(targets, TENSOR_CONTIGUOUS, &flat);
    if (status == BASE_OK)
        status = tensor__make(self.impl, self.impl->type, NULL, 0, &made);
    if (status == BASE_OK)
        status = tensor__make(self.impl, self.impl->type, NULL, 0, &total);
    if (status == BASE_OK)
        status = loss_write(self, flat, made, total, ignored, is_mean);
    if (status == BASE_OK)
        status = loss_save(node, self, flat, total, ignored, is_mean);
    tensor_release(&flat);
    tensor_release(&total);
    return tensor__explain(tape_end(status, node, &made, result), "nll_loss", operands, 2);
}

enum base_status tensor_cross_entropy(struct tensor self, struct tensor targets, int64_t ignored,
                                      enum tensor_reduction reduction, struct tensor *result) {
    struct tensor logarithms;
    const struct tensor operands[] = {self, targets};
    enum base_status status = loss_check(self, targets);
    if (status != BASE_OK)
        return status;
    status = tensor_log_softmax(self, -1, &logarithms);
    if (status == BASE_OK) {
        status = tensor_nll_loss(logarithms, targets, ignored, reduction, result);
        tensor_release(&logarithms);
    }
    return tensor__explain(status, "cross_entropy", operands, 2);
}

//------------------------------------------------------------------------------------------------
// In one step, a loss for each row

static enum base_status rows_write(struct tensor self, struct tensor targets, struct tensor made,
                                   struct tensor total, int64_t ignored) {
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tensor_kernel_cross_entropy kernel = {.columns = self.impl->geometry.sizes[1],
                                                 .ignored = ignored};
    enum base_status status = tensor__rows(self.impl, 1, &kernel.shape, &kernel.a);
    if (status == BASE_OK)
        status = tensor__flat(targets.impl, &kernel.targets);
    if (status == BASE_OK)
        status = tensor__flat(made.impl, &kernel.loss);
    if (status == BASE_OK)
        status = tensor__flat(total.impl, &kernel.total);
    if (status == BASE_OK)
        status = tensor__model(made.impl, &model, &stream);
    return status != BASE_OK ? status : model->cross_entropy(&kernel, stream);
}

static enum base_status rows_save(struct tape_node *node, struct tensor self, struct tensor targets,
                                  struct tensor total, int64_t ignored) {
    if (node == NULL)
        return BASE_OK;
    ((struct tape_cross_entropy_payload *)node->payload)->ignored = ignored;
    enum base_status status = tape_save(node, 0, self.impl);
    if (status == BASE_OK)
        status = tape_save(node, 1, targets.impl);
    return status != BASE_OK ? status : tape_save_result(node, 2, total.impl);
}

enum base_status tensor_cross_entropy_rows(struct tensor self, struct tensor targets,
                                           int64_t ignored, struct tensor *result) {
    struct tape_node *node = NULL;
    struct tensor flat = {0}, made = {0}, total = {0};
    const struct tensor operands[] = {self, targets};
    enum base_status status = tape_begin(&tape_cross_entropy, &self, 1, 1,
                                         sizeof(struct tape_cross_entropy_payload), &node);
    if (status == BASE_OK)
        status = loss_check(self, targets);
    if (status == BASE_OK && self.impl->geometry.rank != 2)
        status = tensor__error("cross_entropy_rows: logits of 2 dimensions, not %d",
                               self.impl->geometry.rank);
    if (status == BASE_OK)
        status = tensor_contiguous(targets, TENSOR_CONTIGUOUS, &flat);
    if (status == BASE_OK)
        status = tensor__make(self.impl, self.impl->type, self.impl->geometry.sizes, 1, &made);
    if (status == BASE_OK)
        status = tensor__make(self.impl, tensor__wide(self.impl->type), self.impl->geometry.sizes,
                              1, &total);
    if (status == BASE_OK)
        status = rows_write(self, flat, made, total, ignored);
    if (status == BASE_OK)
        status = rows_save(node, self, flat, total, ignored);
    tensor_release(&flat);
    tensor_release(&total);
    return tensor__explain(tape_end(status, node, &made, result), "cross_entropy_rows", operands,
                           2);
}
