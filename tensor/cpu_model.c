// What tensor/kernel does, on the CPU: the items of each kernel in a plain loop. See backend.h.
#include "tensor/backend.h"
#include "tensor/error.h"

#include <string.h>

// Of an index that is none, as a device faults.
static enum base_status trap_look(void) {
    if (!tensor_kernel_trapped)
        return BASE_OK;
    tensor_kernel_trapped = false;
    return tensor__error_index("index out of range in self");
}

#define CPU_MODEL(name)                                                                            \
    static enum base_status cpu_##name(const struct tensor_kernel_##name *kernel,                  \
                                       cudaStream_t stream) {                                      \
        const int64_t items = tensor_kernel_##name##_items(kernel);                                \
        (void)stream;                                                                              \
        for (int64_t item = 0; item < items; ++item)                                               \
            tensor_kernel_##name##_at(kernel, item);                                               \
        return trap_look();                                                                        \
    }
TENSOR_KERNEL_MODEL_LIST(CPU_MODEL)

#define ENTRY(name) .name = cpu_##name,
const struct tensor_model_backend tensor__cpu_model = {TENSOR_KERNEL_MODEL_LIST(ENTRY)};

static struct tensor_kernel_array array_of(const struct tensor_operand *operand, int rank) {
    struct tensor_kernel_array array = {.data = operand->data, .type = (int)operand->type};
    memcpy(array.strides, operand->strides, (size_t)rank * sizeof array.strides[0]);
    return array;
}

static struct tensor_kernel_number number_of(struct tensor_scalar scalar, int type) {
    const bool is_floating = scalar.kind == TENSOR_SCALAR_FLOATING;
    const struct tensor_kernel_number number = {scalar.floating, scalar.integer};
    return tensor_kernel_convert(number, is_floating ? TENSOR_KERNEL_FLOAT64 : TENSOR_KERNEL_INT64,
                                 type);
}

enum base_status tensor__cpu_pointwise(const struct tensor_loop *loop) {
    struct tensor_kernel_pointwise kernel = {
        .operation = (int)loop->operation,
        .compute = (int)loop->compute,
        .shape.rank = loop->rank,
        .out = array_of(&loop->out, loop->rank),
        .a = array_of(&loop->a, loop->rank),
        .b = array_of(&loop->b, loop->rank),
        .scalar = number_of(loop->scalar, (int)loop->compute),
        .alpha = number_of(loop->alpha, (int)loop->compute),
    };
    memcpy(kernel.shape.sizes, loop->sizes, (size_t)loop->rank * sizeof loop->sizes[0]);
    const int64_t items = tensor_kernel_pointwise_items(&kernel);
    for (int64_t item = 0; item < items; ++item)
        tensor_kernel_pointwise_at(&kernel, item);
    return BASE_OK;
}
