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

// What a norm kept; and its operand and the gradient as rows.
struct norm_kept {
    int dims;
    struct tensor self, weight, rstd, mean, rows, gradient, weight_flat;
};

static void norm_kept_release(struct norm_kept *kept) {
    struct tensor *const all[] = {&kept->self, &kept->weight,   &kept->rstd,       &kept->mean,
                                  &kept->rows, &kept->gradient, &kept->weight_flat};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tensor_release(all[i]);
}

static enum base_status norm_unpack(struct tape_node *node, struct tensor gradient,
                                    struct norm_kept *kept) {
    const struct tape_norm_payload *payload = node->payload;
    *kept = (struct norm_kept){.dims = payload->dims};
    enum base_status status = tape_unpack(node, 0, &kept->self);
    if (status == BASE_OK)
        status = tape_unpack(node, 2, &kept->rstd);
    if (status == BASE_OK && node->formula == &tape_layer_norm)
        status = tape_unpack(node, 3, &kept->mean);
    if (status == BASE_OK && payload->has_weight)
        status = tape_unpack(node, 1, &kept->weight);
    if (status == BASE_OK && payload->has_weight)
        status = tensor_contiguous(kept->weight, TENSOR_CONTIGUOUS, &kept->weight_flat);
    if (status == BASE_OK)
        status = tensor__rows_flatten(kept->self, kept->dims, &kept->rows);
    if (status == BASE_OK)
        status = tensor__rows_flatten(gradient, kept->dims, &kept->gradient);
    return status;
}

static int64_t columns_of(const struct norm_kept *kept) {
    const struct tensor_geometry *shape = &kept->self.impl->geometry;
    int64_t columns = 1;
    for (int dim = shape->rank - kept->dims; dim < shape->rank; dim++)
        columns *= shape->sizes[dim];
    return columns;
}

static enum base_status norm_input_back(const struct norm_kept *kept, struct tensor *result) {
    const struct tensor_impl *self = kept->self.impl;
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tensor_kernel_norm_gradient kernel = {.columns = columns_of(kept)};
    enum base_status status =
        tensor__norm_rows(kept->rows.impl, kept->dims, &kernel.shape, &kernel.a);
    if (status == BASE_OK)
        status = tensor__norm_rows(kept->gradient.impl, kept->dims, NULL, &kernel.gradient);
    if (status == BASE_OK)
        status = tensor__flat(kept->weight_flat.impl, &kernel.weight);
    if (status == BASE_OK)
        status = tensor__flat(kept->mean.impl, &kernel.mean);
    if (status == BASE_OK)
        status = tensor__flat(kept->rstd.impl, &kernel.rstd);
    if (status == BASE_OK)
        status = tensor__make(self, self->type, self->geometry.sizes, self->geometry.rank, result);
    if (status == BASE_OK)
        status = tensor__norm_rows(result->impl, kept->dims, NULL, &kernel.out);
    if (status == BASE_OK)
        status = tensor__model(self, &model, &stream);
    return status != BASE_OK ? status : model->norm_gradient(&kernel, stream);
}

// Into WEIGHT and BIAS, of which one may be none.
static enum base_status norm_parameters_back(const struct norm_kept *kept, struct tensor weight,
                                             struct tensor bias) {
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tensor_kernel_norm_weight kernel = {.columns = columns_of(kept)};
    enum base_status status =
        tensor__norm_rows(kept->rows.impl, kept->dims, &kernel.shape, &kernel.a);
    if (status == BASE_OK)
        status = tensor__norm_rows(kept->gradient.impl, kept->dims, NULL, &kernel.gradient);
    if (status == BASE_OK)
        status = tensor__flat(weight.impl, &kernel.weight);
    if (status == BASE_OK)
        status = tensor__flat(bias.impl, &kernel.bias);
    if (status == BASE_OK)
        status = tensor__flat(kept->mean.impl, &kernel.mean);
    if (status == BASE_OK)
        status = tensor__flat(kept->rstd.impl, &kernel.rstd);
    if (status == BASE_OK)
        status = tensor__model(kept->self.impl, &model, &stream);
    return status != BASE_OK ? status : model->norm_weight(&kernel, stream);
}

// The gradient of parameter EDGE, not written yet.
static enum base_status norm_parameter_make(const struct tape_node *node, int edge,
                                            const struct norm_kept *kept, struct tensor *results) {
    if (edge >= node->edge_count || !tape_wants(node, edge))
        return BASE_OK;
    const struct tape_norm_payload *payload = node->payload;
    const struct tensor_geometry *shape = &kept->self.impl->geometry;
    return tensor__make(kept->self.impl, payload->parameter_type,
                        shape->sizes + shape->rank - kept->dims, kept->dims, &results[edge]);
}

static enum base_status norm_back(struct tape_node *node, struct tensor *gradients,
                                  struct tensor *results) {
    struct norm_kept kept;
    if (gradients[0].impl == NULL)
        return BASE_OK;
    enum base_status status = norm_unpack(node, gradients[0], &kept);
    if (status == BASE_OK && tape_wants(node, 0))
        status = norm_input_back(&kept, &results[0]);
    if (status == BASE_OK)
        status = norm_parameter_make(node, 1, &kept, results);
    if (status == BASE_OK)
        status = norm_parameter_make(node, 2, &kept, results);
    const struct tensor bias = node->edge_count > 2 ? results[2] : (struct tensor){0};
    if (status == BASE_OK && (results[1].impl != NULL || bias.impl != NULL))
        status = norm_parameters_back(&kept, results[1], bias);
    norm_kept_release(&kept);
    return status;
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

//------------------------------------------------------------------------------------------------
// Attention

enum { QUERY, KEY, VALUE, OUT, TOTAL, KEPT_COUNT };

// All rows but the results'.
static enum base_status attention_rows(const struct tensor *kept, struct tensor gradient,
                                       struct tensor shares,
                                       struct tensor_kernel_attention_query *query,
                                       struct tensor_kernel_attention_key *key) {
    const int last = gradient.impl->geometry.rank - 1;
    enum base_status status = tensor__rows(kept[QUERY].impl, last, NULL, &query->query);
    if (status == BASE_OK)
        status = tensor__rows(kept[KEY].impl, last, NULL, &query->key);
    if (status == BASE_OK)
        status = tensor__rows(kept[VALUE].impl, last, NULL, &query->value);
    if (status == BASE_OK)
        status = tensor__rows(kept[OUT].impl, last, NULL, &query->out);
    if (status == BASE_OK)
        status = tensor__rows(gradient.impl, last, NULL, &query->gradient);
    if (status == BASE_OK)
        status = tensor__flat(kept[TOTAL].impl, &query->total);
    if (status == BASE_OK)
        status = tensor__flat(shares.impl, &query->shares);
    key->form = query->form;
    key->query = query->query;
    key->key = query->key;
    key->value = query->value;
    key->gradient = query->gradient;
    key->total = query->total;
    key->shares = query->shares;
    return status;
}

static enum base_status attention_run(const struct tape_node *node, const struct tensor *kept,
                                      struct tensor gradient, struct tensor shares,
                                      const struct tensor made[3]) {
    const struct tape_attention_payload *payload = node->payload;
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    const int last = gradient.impl->geometry.rank - 1;
    struct tensor_kernel_attention_query query = {.form = payload->form};
    struct tensor_kernel_attention_key key;
    memset(&key, 0, sizeof key);
    enum base_status status = attention_rows(kept, gradient, shares, &query, &key);
    if (status == BASE_OK)
        status = tensor__rows(made[QUERY].impl, last, NULL, &query.of_query);
    if (status == BASE_OK)
        status = tensor__rows(made[KEY].impl, last, NULL, &key.of_key);
    if (status == BASE_OK)
        status = tensor__rows(made[VALUE].impl, last, NULL, &key.of_value);
    if (status == BASE_OK)
        status = tensor__model(gradient.impl, &model, &stream);
    if (status == BASE_OK)
        status = model->attention_query(&query, stream);
    return status != BASE_OK ? status : model->attention_key(&key, stream);
}

// All three gradients are made, as PyTorch does, whichever is wanted.
static enum base_status attention_back(struct tape_node *node, struct tensor *gradients,
                                       struct tensor *results) {
    struct tensor kept[KEPT_COUNT] = {{0}}, made[3] = {{0}}, shares = {0};
    enum base_status status = BASE_OK;
    if (gradients[0].impl == NULL)
        return BASE_OK;
    for (int slot = 0; slot < KEPT_COUNT && status == BASE_OK; slot++)
        status = tape_unpack(node, slot, &kept[slot]);
    for (int edge = 0; edge < 3 && status == BASE_OK; edge++)
        status = tensor__attention_make(kept[edge].impl, kept[edge].impl->geometry.sizes,
                                        kept[edge].impl->geometry.rank, &made[edge]);
    if (status == BASE_OK)
        status =
            tensor__make(kept[TOTAL].impl, kept[TOTAL].impl->type, kept[TOTAL].impl->geometry.sizes,
                         kept[TOTAL].impl->geometry.rank, &shares);
    if (status == BASE_OK)
        status = attention_run(node, kept, gradients[0], shares, made);
    for (int edge = 0; edge < 3; edge++)
        if (status == BASE_OK && tape_wants(node, edge))
            results[edge] = tensor_retain(made[edge]);
    tensor_release(&shares);
    for (int edge = 0; edge < 3; edge++)
        tensor_release(&made[edge]);
    for (int slot = 0; slot < KEPT_COUNT; slot++)
        tensor_release(&kept[slot]);
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
FORMULA(tape_layer_norm, "NativeLayerNormBackward0", norm_back);
FORMULA(tape_rms_norm, "FusedRmsNormBackward0", norm_back);
FORMULA(tape_embedding, "EmbeddingBackward0", embedding_back);
FORMULA(tape_nll_loss, "NllLossBackward0", nll_back);
FORMULA(tape_attention, "ScaledDotProductFlashAttentionBackward0", attention_back);
