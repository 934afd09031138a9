// Layer norm and RMS norm. See nn.h.
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/mode.h"
#include "tensor/nn.h"
#include "tensor/operator.h"

#include <string.h>

// What both are told.
struct norm {
    const char *name;
    struct tensor self, weight, bias;
    const int64_t *sizes;
    int dims;
    double epsilon;
    bool is_rms;
};

static enum base_status parameter_check(const struct norm *norm, const char *what,
                                        struct tensor parameter) {
    char have[TENSOR_SIZES_TEXT_SIZE], want[TENSOR_SIZES_TEXT_SIZE];
    if (parameter.impl == NULL)
        return BASE_OK;
    const struct tensor_geometry *shape = &parameter.impl->geometry;
    const enum tensor_type type = norm->self.impl->type, own = parameter.impl->type;
    if (shape->rank != norm->dims ||
        memcmp(shape->sizes, norm->sizes, (size_t)norm->dims * sizeof shape->sizes[0]) != 0)
        return tensor__error("Expected %s to be of same shape as normalized_shape, but got %s of "
                             "shape %s and normalized_shape = %s",
                             what, what, tensor_sizes_text(shape->sizes, shape->rank, have),
                             tensor_sizes_text(norm->sizes, norm->dims, want));
    if (own != type && (own != TENSOR_FLOAT32 || type == TENSOR_FLOAT64))
        return tensor__error("expected scalar type %s but found %s", tensor_type_scalar_name(type),
                             tensor_type_scalar_name(own));
    return tensor__check_same_device(norm->self.impl, parameter.impl);
}

static enum base_status norm_check(const struct norm *norm) {
    const struct tensor_geometry *shape = &norm->self.impl->geometry;
    char have[TENSOR_SIZES_TEXT_SIZE], want[TENSOR_SIZES_TEXT_SIZE];
    if (norm->dims < 1)
        return tensor__error("Expected normalized_shape to be at least 1-dimensional, i.e., "
                             "containing at least one element, but got normalized_shape = []");
    if (shape->rank < norm->dims || memcmp(shape->sizes + shape->rank - norm->dims, norm->sizes,
                                           (size_t)norm->dims * sizeof shape->sizes[0]) != 0)
        return tensor__error("Given normalized_shape=%s, expected input with shape [*, %s, but "
                             "got input of size%s",
                             tensor_sizes_text(norm->sizes, norm->dims, want), want + 1,
                             tensor_sizes_text(shape->sizes, shape->rank, have));
    enum base_status status = tensor__check_floating("LayerNormKernelImpl", norm->self.impl);
    if (status == BASE_OK)
        status = parameter_check(norm, "weight", norm->weight);
    return status != BASE_OK ? status : parameter_check(norm, "bias", norm->bias);
}

enum base_status tensor__rows_flatten(struct tensor self, int dims, struct tensor *rows) {
    const struct tensor_geometry *shape = &self.impl->geometry;
    bool is_flat = true;
    for (int dim = shape->rank - dims; dim < shape->rank - 1; dim++)
        is_flat &= shape->sizes[dim] == 1 ||
                   shape->strides[dim] == shape->strides[dim + 1] * shape->sizes[dim + 1];
    if (is_flat) {
        *rows = tensor_retain(self);
        return BASE_OK;
    }
    const bool was_off = tensor__gradients_off();
    const enum base_status status = tensor_contiguous(self, TENSOR_CONTIGUOUS, rows);
    tensor__gradients_restore(was_off);
    return status;
}

enum base_status tensor__norm_rows(const struct tensor_impl *impl, int dims,
                                   struct tensor_kernel_shape *shape,
                                   struct tensor_kernel_rows *rows) {
    struct tensor_kernel_rows all;
    const int rank = impl->geometry.rank;
    const enum base_status status = tensor__rows(impl, rank - 1, shape, &all);
    if (status != BASE_OK)
        return status;
    *rows = (struct tensor_kernel_rows){.array = {.data = all.array.data, .type = all.array.type},
                                        .step = all.step};
    memcpy(rows->array.strides, all.array.strides,
           (size_t)(rank - dims) * sizeof rows->array.strides[0]);
    if (shape != NULL)
        shape->rank = rank - dims;
    return BASE_OK;
}

// The two numbers of each row, in the shape of the input with rows of 1.
static enum base_status statistics_make(const struct norm *norm, struct tensor *mean,
                                        struct tensor *rstd) {
    const struct tensor_geometry *shape = &norm->self.impl->geometry;
    const enum tensor_type type = tensor__wide(norm->self.impl->type);
    int64_t sizes[TENSOR_RANK_MAX];
    for (int dim = 0; dim < shape->rank; dim++)
        sizes[dim] = dim < shape->rank - norm->dims ? shape->sizes[dim] : 1;
    enum base_status status = BASE_OK;
    if (!norm->is_rms)
        status = tensor__make(norm->self.impl, type, sizes, shape->rank, mean);
    if (status == BASE_OK)
        status = tensor__make(norm->self.impl, type, sizes, shape->rank, rstd);
    return status;
}

// WEIGHT and BIAS lie without gaps. MADE, MEAN, RSTD: what is written.
static enum base_status norm_write(const struct norm *norm, struct tensor rows,
                                   struct tensor weight, struct tensor bias, struct tensor made,
                                   struct tensor mean, struct tensor rstd) {
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    struct tensor_kernel_norm kernel = {
        .columns = 1, .epsilon = norm->epsilon, .is_rms = norm->is_rms};
    for (int dim = 0; dim < norm->dims; dim++)
        kernel.columns *= norm->sizes[dim];
    enum base_status status = tensor__norm_rows(rows.impl, norm->dims, &kernel.shape, &kernel.a);
    if (status == BASE_OK)
        status = tensor__norm_rows(made.impl, norm->dims, NULL, &kernel.out);
    if (status == BASE_OK)
        status = tensor__flat(weight.impl, &kernel.weight);
    if (status == BASE_OK)
        status = tensor__flat(bias.impl, &kernel.bias);
    if (status == BASE_OK)
        status = tensor__flat(mean.impl, &kernel.mean);
    if (status == BASE_OK)
        status = tensor__flat(rstd.impl, &kernel.rstd);
    if (status == BASE_OK)
        status = tensor__model(made.impl, &model, &stream);
    return status != BASE_OK ? status : model->norm(&kernel, stream);
}

static enum base_status norm_save(const struct norm *norm, struct tape_node *node,
                                  struct tensor weight, struct tensor mean, struct tensor rstd) {
    if (node == NULL)
        return BASE_OK;
    const struct tensor parameter = norm->weight.impl != NULL ? norm->weight : norm->bias;
    *(struct tape_norm_payload *)node->payload = (struct tape_norm_payload){
        .dims = norm->dims,
        .has_weight = norm->weight.impl != NULL,
        .parameter_type = parameter.impl != NULL ? parameter.impl->type : norm->self.impl->type};
    enum base_status status = tape_save(node, 0, norm->self.impl);
    if (status == BASE_OK && weight.impl != NULL)
        status = tape_save(node, 1, weight.impl);
    if (status == BASE_OK)
        status = tape_save_result(node, 2, rstd.impl);
    if (status == BASE_OK && mean.impl != NULL)
        status = tape_save_result(node, 3, mean.impl);
    return status;
}

static enum base_status parameter_flatten(struct tensor parameter, struct tensor *flat) {
    flat->impl = NULL;
    if (parameter.impl == NULL)
        return BASE_OK;
    const bool was_off = tensor__gradients_off();
    const enum base_status status = tensor_contiguous(parameter, TENSOR_CONTIGUOUS, flat);
    tensor__gradients_restore(was_off);
    return status;
}

static enum base_status norm_run(const struct norm *norm, struct tensor *result) {
    const struct tensor operands[] = {norm->self, norm->weight, norm->bias};
    struct tape_node *node = NULL;
    struct tensor rows = {0}, weight = {0}, bias = {0}, made = {0}, mean = {0}, rstd = {0};
    enum base_status status =
        tape_begin(norm->is_rms ? &tape_rms_norm : &tape_layer_norm, operands, norm->is_rms ? 2 : 3,
                   1, sizeof(struct tape_norm_payload), &node);
    if (status == BASE_OK)
        status = norm_check(norm);
    if (status == BASE_OK)
        status = tensor__rows_flatten(norm->self, norm->dims, &rows);
    if (status == BASE_OK)
        status = parameter_flatten(norm->weight, &weight);
    if (status == BASE_OK)
        status = parameter_flatten(norm->bias, &bias);
    if (status == BASE_OK)
        status =
            tensor__make(norm->self.impl, norm->self.impl->type, norm->self.impl->geometry.sizes,
                         norm->self.impl->geometry.rank, &made);
    if (status == BASE_OK)
        status = statistics_make(norm, &mean, &rstd);
    if (status == BASE_OK)
        status = norm_write(norm, rows, weight, bias, made, mean, rstd);
    if (status == BASE_OK)
        status = norm_save(norm, node, norm->weight, mean, rstd);
    tensor_release(&rows);
    tensor_release(&weight);
    tensor_release(&bias);
    tensor_release(&mean);
    tensor_release(&rstd);
    return tensor__explain(tape_end(status, node, &made, result), norm->name, operands, 3);
}

enum base_status tensor_layer_norm(struct tensor self, const int64_t *sizes, int count,
                                   struct tensor weight, struct tensor bias, double epsilon,
                                   struct tensor *result) {
    return norm_run(&(struct norm){.name = "layer_norm",
                                   .self = self,
                                   .weight = weight,
                                   .bias = bias,
                                   .sizes = sizes,
                                   .dims = count,
                                   .epsilon = epsilon},
                    result);
}

enum base_status tensor_rms_norm(struct tensor self, const int64_t *sizes, int count,
                                 struct tensor weight, double epsilon, struct tensor *result) {
    return norm_run(&(struct norm){.name = "rms_norm",
                                   .self = self,
                                   .weight = weight,
                                   .sizes = sizes,
                                   .dims = count,
                                   .epsilon = epsilon,
                                   .is_rms = true},
                    result);
}
