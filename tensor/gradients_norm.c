// The gradients of layer norm and RMS norm. See formulas.h.
#include "tensor/formulas.h"
#include "tensor/operator.h"

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

const struct tape_formula tape_layer_norm = {.name = "NativeLayerNormBackward0",
                                             .apply = norm_back};
const struct tape_formula tape_rms_norm = {.name = "FusedRmsNormBackward0", .apply = norm_back};
