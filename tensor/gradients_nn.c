// Gradients of the operators of nn.h. See formulas.h.
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/nn.h"
#include "tensor/operator.h"

#include <string.h>

// No gradient has come, or nobody wants one.
static bool is_idle(const struct tape_node *node, const struct tensor *gradients) {
    return gradients[0].impl == NULL || !tape_wants(node, 0);
}

// operation(gradient, what was kept).
static enum base_status pointwise_back(struct tape_node *node, const struct tensor *gradients,
                                       enum tensor_pointwise operation, struct tensor_scalar alpha,
                                       struct tensor *results) {
    struct tensor kept;
    if (is_idle(node, gradients))
        return BASE_OK;
    enum base_status status = tape_unpack(node, 0, &kept);
    if (status != BASE_OK)
        return status;
    const struct tensor_iteration iteration = {.operation = operation,
                                               .result_type = TENSOR_RESULT_COMMON,
                                               .a = gradients[0].impl,
                                               .b = kept.impl,
                                               .has_alpha = true,
                                               .alpha = alpha};
    status = tensor__iterate(&iteration, &results[0].impl);
    tensor_release(&kept);
    return status;
}

#define POINTWISE_BACK(name, operation)                                                            \
    static enum base_status name(struct tape_node *node, struct tensor *gradients,                 \
                                 struct tensor *results) {                                         \
        return pointwise_back(node, gradients, operation, tensor_integer(1), results);             \
    }
POINTWISE_BACK(gelu_back, TENSOR_GELU_ERF_GRADIENT)
POINTWISE_BACK(gelu_tanh_back, TENSOR_GELU_GRADIENT)
POINTWISE_BACK(silu_back, TENSOR_SILU_GRADIENT)
POINTWISE_BACK(sigmoid_back, TENSOR_SIGMOID_GRADIENT)
POINTWISE_BACK(tanh_back, TENSOR_TANH_GRADIENT)
POINTWISE_BACK(exp_back, TENSOR_MUL)
POINTWISE_BACK(log_back, TENSOR_DIV)

static enum base_status dropout_back(struct tape_node *node, struct tensor *gradients,
                                     struct tensor *results) {
    const struct tape_dropout_payload *payload = node->payload;
    return pointwise_back(node, gradients, TENSOR_MASKED_SCALE, tensor_floating(payload->scale),
                          results);
}

// What was filled gets nothing.
static enum base_status masked_fill_back(struct tape_node *node, struct tensor *gradients,
                                         struct tensor *results) {
    return pointwise_back(node, gradients, TENSOR_MASKED_FILL, tensor_integer(0), results);
}

static enum base_status mean_back(struct tape_node *node, struct tensor *gradients,
                                  struct tensor *results) {
    const struct tape_sum_payload *payload = node->payload;
    if (is_idle(node, gradients))
        return BASE_OK;
    int64_t sizes[TENSOR_RANK_MAX], count = 1;
    for (int dim = 0; dim < payload->rank; dim++) {
        sizes[dim] = payload->is_reduced[dim] ? 1 : payload->sizes[dim];
        count *= payload->is_reduced[dim] ? payload->sizes[dim] : 1;
    }
    struct tensor kept, expanded = {0};
    enum base_status status = tensor_reshape(gradients[0], sizes, payload->rank, &kept);
    if (status != BASE_OK)
        return status;
    status = tensor_expand(kept, payload->sizes, payload->rank, &expanded);
    if (status == BASE_OK)
        status = tensor_div(expanded, tensor_operand_integer(count), &results[0]);
    tensor_release(&expanded);
    tensor_release(&kept);
    return status;
}

//------------------------------------------------------------------------------------------------
// Row by row

static enum base_status softmax_run(const struct tape_softmax_payload *payload, bool is_log,
                                    struct tensor gradient, struct tensor output,
                                    struct tensor *result) {
    const struct tensor_geometry *shape = &output.impl->geometry;
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tensor_kernel_softmax_gradient kernel = {
        .columns = shape->rank > 0 ? shape->sizes[payload->dim] : 1,
        .scale = payload->scale,
        .is_log = is_log};
    enum base_status status =
        tensor__rows(output.impl, payload->dim, &kernel.shape, &kernel.result);
    if (status == BASE_OK)
        status = tensor__rows(gradient.impl, payload->dim, NULL, &kernel.gradient);
    if (status == BASE_OK)
        status = tensor__make(output.impl, output.impl->type, shape->sizes, shape->rank, result);
    if (status == BASE_OK)
        status = tensor__rows(result->impl, payload->dim, NULL, &kernel.out);
    if (status == BASE_OK)
        status = tensor__model(output.impl, &model, &stream);
    return status != BASE_OK ? status : model->softmax_gradient(&kernel, stream);
}

static enum base_status softmax_any_back(struct tape_node *node, const struct tensor *gradients,
                                         bool is_log, struct tensor *results) {
    struct tensor output;
    if (is_idle(node, gradients))
        return BASE_OK;
    enum base_status status = tape_unpack(node, 0, &output);
    if (status != BASE_OK)
        return status;
    status = softmax_run(node->payload, is_log, gradients[0], output, &results[0]);
    tensor_release(&output);
    return status;
}

static enum base_status softmax_back(struct tape_node *node, struct tensor *gradients,
                                     struct tensor *results) {
    return softmax_any_back(node, gradients, false, results);
}

static enum base_status log_softmax_back(struct tape_node *node, struct tensor *gradients,
                                         struct tensor *results) {
    return softmax_any_back(node, gradients, true, results);
}

//------------------------------------------------------------------------------------------------
// Rows by an index, losses

static enum base_status embedding_run(struct tensor gradient, struct tensor indices,
                                      struct tensor table) {
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tensor flat;
    const int64_t count = indices.impl->geometry.numel, columns = table.impl->geometry.sizes[1];
    struct tensor_kernel_scatter_add kernel = {
        .count = count, .columns = columns, .table_rows = table.impl->geometry.sizes[0]};
    enum base_status status = tensor_reshape(gradient, (int64_t[]){count, columns}, 2, &flat);
    if (status != BASE_OK)
        return status;
    status = tensor__rows(flat.impl, 1, NULL, &kernel.a);
    if (status == BASE_OK)
        status = tensor__rows(table.impl, 1, NULL, &kernel.table);
    if (status == BASE_OK)
        status = tensor__flat(indices.impl, &kernel.index);
    if (status == BASE_OK)
        status = tensor__model(table.impl, &model, &stream);
    if (status == BASE_OK && count > 0)
        status = model->scatter_add(&kernel, stream);
    tensor_release(&flat);
    return status;
}

static enum base_status embedding_back(struct tape_node *node, struct tensor *gradients,
                                       struct tensor *results) {
    const struct tape_embedding_payload *payload = node->payload;
    struct tensor indices;
    if (is_idle(node, gradients))
        return BASE_OK;
    enum base_status status = tape_unpack(node, 0, &indices);
    if (status != BASE_OK)
        return status;
    const struct tensor_impl *gradient = gradients[0].impl;
    const int64_t columns = gradient->geometry.sizes[gradient->geometry.rank - 1];
    status = tensor_zeros(&gradient->storage->place, gradient->type,
                          (int64_t[]){payload->rows, columns}, 2, &results[0]);
    if (status == BASE_OK)
        status = embedding_run(gradients[0], indices, results[0]);
    tensor_release(&indices);
    return status;
}

static enum base_status nll_run(const struct tape_nll_payload *payload, struct tensor gradient,
                                struct tensor targets, struct tensor total, struct tensor *result) {
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    const int last = payload->rank - 1;
    struct tensor_kernel_nll_gradient kernel = {.count = last > 0 ? payload->sizes[0] : 1,
                                                .columns = payload->sizes[last],
                                                .ignored = payload->ignored,
                                                .is_mean = payload->is_mean};
    enum base_status status = tensor__flat(targets.impl, &kernel.targets);
    if (status == BASE_OK)
        status = tensor__flat(total.impl, &kernel.total);
    if (status == BASE_OK)
        status = tensor__flat(gradient.impl, &kernel.gradient);
    if (status == BASE_OK)
        status = tensor__make(total.impl, total.impl->type, payload->sizes, payload->rank, result);
    if (status == BASE_OK)
        status = tensor__rows(result->impl, last, NULL, &kernel.out);
    if (status == BASE_OK)
        status = tensor__model(total.impl, &model, &stream);
    return status != BASE_OK ? status : model->nll_gradient(&kernel, stream);
}

static enum base_status nll_back(struct tape_node *node, struct tensor *gradients,
                                 struct tensor *results) {
    struct tensor targets = {0}, total = {0};
    if (is_idle(node, gradients))
        return BASE_OK;
    enum base_status status = tape_unpack(node, 0, &targets);
    if (status == BASE_OK)
        status = tape_unpack(node, 1, &total);
    if (status == BASE_OK)
        status = nll_run(node->payload, gradients[0], targets, total, &results[0]);
    tensor_release(&targets);
    tensor_release(&total);
    return status;
}

static enum base_status cross_entropy_run(int64_t ignored, struct tensor gradient,
                                          struct tensor self, struct tensor targets,
                                          struct tensor total, struct tensor *result) {
    const struct tensor_geometry *shape = &self.impl->geometry;
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tensor_kernel_cross_entropy_gradient kernel = {.columns = shape->sizes[1],
                                                          .ignored = ignored,
                                                          .gradient_stride =
                                                              gradient.impl->geometry.strides[0],
                                                          .scale = 1};
    enum base_status status = tensor__rows(self.impl, 1, &kernel.shape, &kernel.a);
    if (status == BASE_OK)
        status = tensor__flat(targets.impl, &kernel.targets);
    if (status == BASE_OK)
        status = tensor__flat(total.impl, &kernel.total);
    if (status == BASE_OK)
        status = tensor__array(gradient.impl, NULL, &kernel.gradient);
    if (status == BASE_OK)
        status = tensor__make(self.impl, self.impl->type, shape->sizes, shape->rank, result);
    if (status == BASE_OK)
        status = tensor__rows(result->impl, 1, NULL, &kernel.out);
    if (status == BASE_OK)
        status = tensor__model(self.impl, &model, &stream);
    return status != BASE_OK ? status : model->cross_entropy_gradient(&kernel, stream);
}

static enum base_status cross_entropy_back(struct tape_node *node, struct tensor *gradients,
                                           struct tensor *results) {
    const struct tape_cross_entropy_payload *payload = node->payload;
    struct tensor self = {0}, targets = {0}, total = {0};
    if (is_idle(node, gradients))
        return BASE_OK;
    enum base_status status = tape_unpack(node, 0, &self);
    if (status == BASE_OK)
        status = tape_unpack(node, 1, &targets);
    if (status == BASE_OK)
        status = tape_unpack(node, 2, &total);
    if (status == BASE_OK)
        status =
            cross_entropy_run(payload->ignored, gradients[0], self, targets, total, &results[0]);
    tensor_release(&self);
    tensor_release(&targets);
    tensor_release(&total);
    return status;
}

#define FORMULA(variable, text, function)                                                          \
    const struct tape_formula variable = {.name = text, .apply = function}

FORMULA(tape_gelu, "GeluBackward0", gelu_back);
FORMULA(tape_gelu_tanh, "GeluBackward0", gelu_tanh_back);
FORMULA(tape_silu, "SiluBackward0", silu_back);
FORMULA(tape_sigmoid, "SigmoidBackward0", sigmoid_back);
FORMULA(tape_tanh, "TanhBackward0", tanh_back);
FORMULA(tape_exp, "ExpBackward0", exp_back);
FORMULA(tape_log, "LogBackward0", log_back);
FORMULA(tape_dropout, "NativeDropoutBackward0", dropout_back);
FORMULA(tape_masked_fill, "MaskedFillBackward0", masked_fill_back);
FORMULA(tape_mean, "MeanBackward0", mean_back);
FORMULA(tape_mean_dims, "MeanBackward1", mean_back);
FORMULA(tape_softmax, "SoftmaxBackward0", softmax_back);
FORMULA(tape_log_softmax, "LogSoftmaxBackward0", log_softmax_back);
FORMULA(tape_embedding, "EmbeddingBackward0", embedding_back);
FORMULA(tape_nll_loss, "NllLossBackward0", nll_back);
FORMULA(tape_cross_entropy, "CrossEntropyBackward0", cross_entropy_back);
