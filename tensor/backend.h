// Element work: what a device has to be able to do. One table for the CPU (cpu.c: plain loops), one
// for CUDA devices (launch.c: kernels and cuBLAS on a stream). Everything above works in terms of
// these, so that CPU and CUDA tensors share all of it.
#ifndef TIDEMARK_TENSOR_BACKEND_H
#define TIDEMARK_TENSOR_BACKEND_H

#include "tensor/kernel/launch.h"
#include "tensor/sum_plan.h"
#include "tensor/tensor.h"

// Where work goes: a stream and its device, which the handle of a default stream does not tell.
// Work on the CPU needs none.
struct tensor_device_stream {
    int device;
    cudaStream_t handle;
};
static const struct tensor_device_stream tensor__no_stream = {0, NULL};

// The current stream of a place.
static inline struct tensor_device_stream tensor__device_stream(const struct tensor_place *place) {
    return (struct tensor_device_stream){place->device, tensor_stream(place->device)};
}

// In the order of tensor/kernel/pointwise.h.
enum tensor_pointwise {
    TENSOR_COPY, // out = a
    TENSOR_FILL, // out = scalar
    TENSOR_ADD,  // out = a + alpha * b
    TENSOR_SUB,
    TENSOR_MUL,
    TENSOR_DIV,
    TENSOR_EQ, // out is bool
    TENSOR_NEG,
    TENSOR_RELU,
    TENSOR_SQRT,
    TENSOR_RELU_GRADIENT, // out = b > 0 ? a : 0
    TENSOR_ACCUMULATE,    // out += a, in logical order: out may overlap itself
    TENSOR_MAXIMUM,
    TENSOR_EXP,
    TENSOR_TANH,
    TENSOR_RSQRT,
    TENSOR_SILU,
    TENSOR_SILU_GRADIENT, // of the gradient a and the input b, as those of gelu
    TENSOR_GELU,          // by tanh
    TENSOR_GELU_GRADIENT,
    TENSOR_LOG,
    TENSOR_SIGMOID,
    TENSOR_SIGMOID_GRADIENT, // of the gradient a and the result b, as the next
    TENSOR_TANH_GRADIENT,
    TENSOR_GELU_ERF,
    TENSOR_GELU_ERF_GRADIENT,
    TENSOR_MASKED_SCALE, // out = b ? a * alpha : 0
    TENSOR_MASKED_FILL,  // out = b ? alpha : a
    TENSOR_OPERATION_COUNT,
};

// An array of the loop's shape. Strides in elements; 0 where it does not move.
struct tensor_operand {
    void *data; // of the first element
    enum tensor_type type;
    int64_t strides[TENSOR_RANK_MAX];
};

// out = operation(a, b) for every element of the shape, rounded to `compute` after each step and
// then to the type of the output. Number of inputs by operation; one that is a number has no data
// and is `scalar`.
struct tensor_loop {
    enum tensor_pointwise operation;
    int rank;
    int64_t sizes[TENSOR_RANK_MAX];
    struct tensor_operand out, a, b;
    enum tensor_type compute;
    struct tensor_scalar scalar, alpha;
};

// out[batch][m][n] = sum over k of a[batch][m][k] * b[batch][k][n]; all of one floating or integer
// type, strides in elements.
struct tensor_product {
    enum tensor_type type;
    int64_t batch, m, n, k;
    void *out;
    const void *a, *b;
    int64_t out_strides[3], a_strides[3], b_strides[3];
    const void *bias; // N numbers without gaps, added to each row; NULL: none. Only if `adds_bias`
    void *workspace;  // for this call, on the device; NULL: the device's own
    size_t workspace_bytes;
};

// Work on rows and on models: tensor/kernel has their arguments (rows.h, loss.h, model.h,
// attention.h).
struct tensor_model_backend {
#define TENSOR_MODEL_ENTRY(name)                                                                   \
    enum base_status (*name)(const struct tensor_kernel_##name *kernel,                            \
                             struct tensor_device_stream stream);
    TENSOR_KERNEL_MODEL_LIST(TENSOR_MODEL_ENTRY)
#undef TENSOR_MODEL_ENTRY
};
extern const struct tensor_model_backend tensor__cpu_model;

// Memory of the stream's, free again behind the call. All 0: the plan wants none.
struct tensor_sum_memory {
    struct tensor_sum_plan plan;
    void *staging, *counters;
};

struct tensor_backend {
    enum base_status (*pointwise)(const struct tensor_loop *loop,
                                  struct tensor_device_stream stream);
    // out = sum of a over the dimensions in which out has stride 0; those that stay have others, or
    // size 1. Added up wider than stored. MEMORY: what `sum_plan` wants for the time, if it does.
    enum base_status (*sum)(const struct tensor_loop *loop, const bool *is_reduced,
                            const struct tensor_sum_memory *memory,
                            struct tensor_device_stream stream);
    struct tensor_sum_plan (*sum_plan)(const struct tensor_loop *loop, const bool *is_reduced,
                                       int device); // NULL: none ever wants memory
    enum base_status (*product)(const struct tensor_product *product,
                                struct tensor_device_stream stream);
    // Whether `product` can add a bias on the way; NULL: never.
    bool (*adds_bias)(const struct tensor_product *product);
    const struct tensor_model_backend *model;
};

extern const struct tensor_backend tensor__cpu;
// Of the storage's device.
enum base_status tensor__backend(const struct tensor_place *place,
                                 const struct tensor_backend **backend) BASE_MUST_USE;

#endif
