// See ternary.h.
#include "workload/ternary.h"

struct ternary_shape ternary_shape(enum workload_size size) {
    static const struct ternary_shape shapes[] = {{4, 64, 32}, {8, 512, 256}, {24, 4096, 2048}};
    return shapes[size];
}

//------------------------------------------------------------------------------------------------
// Start values. Each row has a generator of its own, so that it is the same in any part of a batch.

static void row_fill(uint64_t seed, const char *name, uint64_t row, int64_t count, int least,
                     int most, float *values) {
    struct base_random random = base_random_init(seed + row * UINT64_C(0x9e3779b97f4a7c15), name);
    for (int64_t index = 0; index < count; ++index)
        values[index] =
            (float)(least + (int)base_random_below(&random, (uint64_t)(most - least + 1)));
}

static enum base_status rows_fill(struct workload_run *run, const char *name, uint64_t first_row,
                                  int least, int most, struct tensor tensor) {
    const int64_t rows = tensor_size(tensor, 0), width = tensor_size(tensor, 1);
    if (run->options.without_values) return BASE_OK;
    for (int64_t row = 0; row < rows; ++row)
        row_fill(run->options.seed, name, first_row + (uint64_t)row, width, least, most,
                 (float *)tensor_data(tensor) + row * width);
    tensor_bump_version(tensor);
    return BASE_OK;
}

enum base_status ternary_weights_fill(struct workload_run *run, int layer, struct tensor weights) {
    const uint64_t first_row = (uint64_t)layer * (uint64_t)tensor_size(weights, 0);
    return rows_fill(run, "ternary weights", first_row, -1, 1, weights);
}

enum base_status ternary_input_fill(struct workload_run *run, uint64_t step, int64_t first_row,
                                    struct tensor input) {
    const struct ternary_shape shape = ternary_shape(run->options.size);
    return rows_fill(run, "ternary input", step * (uint64_t)shape.batch + (uint64_t)first_row, 0, 1,
                     input);
}

//------------------------------------------------------------------------------------------------
// The model.

// [SELF > 0]; SELF is used up.
static enum base_status positive(struct tensor *self, struct tensor *result) {
    struct tensor is_zero = {NULL}, is_positive = {NULL};
    enum base_status status = tensor_relu_(*self);
    if (status == BASE_OK) status = tensor_eq(*self, tensor_operand_integer(0), &is_zero);
    tensor_release(self);
    if (status == BASE_OK) status = tensor_eq(is_zero, tensor_operand_integer(0), &is_positive);
    tensor_release(&is_zero);
    if (status == BASE_OK)
        status = tensor_to(is_positive, TENSOR_FLOAT32, TENSOR_CONTIGUOUS, result);
    tensor_release(&is_positive);
    return status;
}

enum base_status ternary_forward(struct tensor inputs, struct tensor weights,
                                 struct tensor *outputs) {
    struct tensor product;
    const enum base_status status = tensor_mm(inputs, weights, &product);
    return status == BASE_OK ? positive(&product, outputs) : status;
}

enum base_status ternary_backward(struct tensor gradient, struct tensor weights,
                                  struct tensor *before) {
    struct tensor turned, product;
    enum base_status status = tensor_transpose_2d(weights, &turned);
    if (status != BASE_OK) return status;
    status = tensor_mm(gradient, turned, &product);
    tensor_release(&turned);
    return status == BASE_OK ? positive(&product, before) : status;
}

enum base_status ternary_gradient(struct tensor inputs, struct tensor gradient,
                                  struct tensor *weights_gradient) {
    struct tensor turned;
    enum base_status status = tensor_transpose_2d(inputs, &turned);
    if (status != BASE_OK) return status;
    status = tensor_mm(turned, gradient, weights_gradient);
    tensor_release(&turned);
    return status;
}

// [SELF = VALUE]
static enum base_status is_value(struct tensor self, int64_t value, struct tensor *result) {
    struct tensor is_equal;
    enum base_status status = tensor_eq(self, tensor_operand_integer(value), &is_equal);
    if (status != BASE_OK) return status;
    status = tensor_to(is_equal, TENSOR_FLOAT32, TENSOR_CONTIGUOUS, result);
    tensor_release(&is_equal);
    return status;
}

enum base_status ternary_update(struct tensor weights, struct tensor weights_gradient,
                                int64_t batch, uint64_t step) {
    const int64_t value = batch / 4 + (int64_t)(step % 3) - 1;
    struct tensor plus = {NULL}, minus = {NULL};
    enum base_status status = is_value(weights_gradient, value, &plus);
    if (status == BASE_OK) status = is_value(weights_gradient, value + 1, &minus);
    if (status == BASE_OK)
        status = tensor_sub_(plus, tensor_operand_tensor(minus), tensor_integer(1));
    if (status == BASE_OK) status = tensor_copy_(weights, plus);
    tensor_release(&plus);
    tensor_release(&minus);
    return status;
}

void ternary_checksum(struct workload_run *run, uint64_t step, int layer, const float *weights,
                      const struct ternary_shape *shape) {
    const size_t bytes = (size_t)(shape->width * shape->width) * sizeof *weights;
    if (run->options.without_values) return;
    workload_run_add_bytes(run, step * (uint64_t)shape->layers + (uint64_t)layer, weights, bytes);
}
