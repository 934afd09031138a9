// Element by element; and sums. See number.h.
#ifndef TIDEMARK_TENSOR_KERNEL_POINTWISE_H
#define TIDEMARK_TENSOR_KERNEL_POINTWISE_H

#include "tensor/kernel/number.h"

// X(NAME, value of float or double `a`, `b`, `alpha`; R rounds a step): those that only floating
// numbers have come last.
#define TENSOR_KERNEL_OPERATION_LIST(X)                                                            \
    X(COPY, a)                                                                                     \
    X(FILL, b)                                                                                     \
    X(ADD, a + R(alpha * b))                                                                       \
    X(SUB, a - R(alpha * b))                                                                       \
    X(MUL, a *b)                                                                                   \
    X(DIV, a / b)                                                                                  \
    X(EQ, a == b)                                                                                  \
    X(NEG, -a)                                                                                     \
    X(RELU, a < 0 ? 0 : a) /* -0 and NaN stay */                                                   \
    X(SQRT, M(sqrt)(a))                                                                            \
    X(RELU_GRADIENT, b <= 0 ? 0 : a) /* of the gradient a and the result b */                      \
    X(ACCUMULATE, a + b)             /* b: what is there */                                        \
    X(MAXIMUM, a != a || a > b ? a : b)                                                            \
    X(EXP, M(exp)(a))                                                                              \
    X(TANH, M(tanh)(a))                                                                            \
    X(RSQRT, 1 / M(sqrt)(a))                                                                       \
    X(SILU, a / (1 + M(exp)(-a)))                                                                  \
    X(SILU_GRADIENT, a *S(b) * (1 + b * (1 - S(b)))) /* of the gradient a and the input b */       \
    X(GELU, a / 2 * (1 + M(tanh)(C * (a + K * a * a * a))))                                        \
    X(GELU_GRADIENT, a / 2 * (1 + T(b) + b * (1 - T(b) * T(b)) * C * (1 + 3 * K * b * b)))         \
    X(LOG, M(log)(a))                                                                              \
    X(SIGMOID, S(a))                                                                               \
    X(SIGMOID_GRADIENT, a *b *(1 - b)) /* of the gradient a and the result b, as the next */       \
    X(TANH_GRADIENT, a *(1 - b * b))                                                               \
    X(GELU_ERF, a / 2 * (1 + M(erf)(a * Q)))                                                       \
    X(GELU_ERF_GRADIENT, a *((1 + M(erf)(b * Q)) / 2 + b * G * M(exp)(-b * b / 2)))                \
    X(MASKED_SCALE, b != 0 ? a * alpha : 0) /* of a mask b, as the next */                         \
    X(MASKED_FILL, b != 0 ? alpha : a)

enum tensor_kernel_operation {
#define TENSOR_KERNEL_ENUMERATOR(name, value) TENSOR_KERNEL_##name,
    TENSOR_KERNEL_OPERATION_LIST(TENSOR_KERNEL_ENUMERATOR)
#undef TENSOR_KERNEL_ENUMERATOR
        TENSOR_KERNEL_OPERATION_COUNT,
};

// out = operation(a, b) for each item of the shape, computed in `compute`; an input without data is
// the number. Item I is one element; of ACCUMULATE, whose output may overlap itself, there is one
// item, which does all in their order.
struct tensor_kernel_pointwise {
    int operation, compute;
    struct tensor_kernel_shape shape;
    struct tensor_kernel_array out, a, b;
    struct tensor_kernel_number scalar, alpha; // in `compute`
};

TENSOR_KERNEL int64_t tensor_kernel_pointwise_items(const struct tensor_kernel_pointwise *kernel) {
    const int64_t count = tensor_kernel_count(&kernel->shape);
    return kernel->operation == TENSOR_KERNEL_ACCUMULATE && count > 0 ? 1 : count;
}

#define C ((number)0.7978845608028654) // the square root of 2 / pi
#define K ((number)0.044715)
#define Q ((number)0.7071067811865476) // the square root of 1 / 2
#define G ((number)0.3989422804014327) // that of 1 / (2 pi)
#define S(x) (1 / (1 + M(exp)(-(x))))
#define T(x) M(tanh)(C * ((x) + K * (x) * (x) * (x)))
#define TENSOR_KERNEL_CASE(name, value)                                                            \
    case TENSOR_KERNEL_##name:                                                                     \
        return (number)(value);

TENSOR_KERNEL_INLINE float tensor_kernel_compute_float(int operation, float a, float b,
                                                       float alpha) {
    typedef float number;
#define M(function) function##f
#define R(step) (step)
    switch (operation) { TENSOR_KERNEL_OPERATION_LIST(TENSOR_KERNEL_CASE) }
#undef M
#undef R
    return 0;
}

TENSOR_KERNEL_INLINE double tensor_kernel_compute_double(int operation, double a, double b,
                                                         double alpha) {
    typedef double number;
#define M(function) function
#define R(step) (step)
    switch (operation) { TENSOR_KERNEL_OPERATION_LIST(TENSOR_KERNEL_CASE) }
#undef M
#undef R
    return 0;
}
#undef C
#undef K
#undef Q
#undef G
#undef S
#undef T
#undef TENSOR_KERNEL_CASE

// Two's complement.
TENSOR_KERNEL_INLINE int64_t tensor_kernel_compute_integer(int operation, int64_t a, int64_t b,
                                                           int64_t alpha) {
    const uint64_t ua = (uint64_t)a, ub = (uint64_t)b, scaled = (uint64_t)alpha * ub;
    switch (operation) {
    case TENSOR_KERNEL_COPY:
        return a;
    case TENSOR_KERNEL_FILL:
        return b;
    case TENSOR_KERNEL_ADD:
        return (int64_t)(ua + scaled);
    case TENSOR_KERNEL_SUB:
        return (int64_t)(ua - scaled);
    case TENSOR_KERNEL_MUL:
        return (int64_t)(ua * ub);
    case TENSOR_KERNEL_EQ:
        return a == b;
    case TENSOR_KERNEL_NEG:
        return (int64_t)(0 - ua);
    case TENSOR_KERNEL_RELU:
        return a > 0 ? a : 0;
    case TENSOR_KERNEL_RELU_GRADIENT:
        return b <= 0 ? 0 : a;
    case TENSOR_KERNEL_ACCUMULATE:
        return (int64_t)(ua + ub);
    case TENSOR_KERNEL_MAXIMUM:
        return a > b ? a : b;
    case TENSOR_KERNEL_MASKED_SCALE:
        return b != 0 ? (int64_t)((uint64_t)a * (uint64_t)alpha) : 0;
    case TENSOR_KERNEL_MASKED_FILL:
        return b != 0 ? alpha : a;
    default:
        return 0; // of floating results only
    }
}

TENSOR_KERNEL void tensor_kernel_pointwise_one(const struct tensor_kernel_pointwise *kernel,
                                               int64_t i) {
    const int compute = kernel->compute;
    const int64_t out = tensor_kernel_place(&kernel->shape, &kernel->out, i);
    struct tensor_kernel_number a = kernel->scalar, b = kernel->scalar, value = {0, 0};
    if (kernel->a.data != 0)
        a = tensor_kernel_load(&kernel->a, tensor_kernel_place(&kernel->shape, &kernel->a, i),
                               compute);
    if (kernel->operation == TENSOR_KERNEL_ACCUMULATE)
        b = tensor_kernel_load(&kernel->out, out, compute);
    else if (kernel->b.data != 0)
        b = tensor_kernel_load(&kernel->b, tensor_kernel_place(&kernel->shape, &kernel->b, i),
                               compute);
    if (compute == TENSOR_KERNEL_FLOAT64)
        value.floating = tensor_kernel_compute_double(kernel->operation, a.floating, b.floating,
                                                      kernel->alpha.floating);
    else if (tensor_kernel_is_floating(compute))
        value.floating = (double)tensor_kernel_compute_float(
            kernel->operation, (float)a.floating, (float)b.floating, (float)kernel->alpha.floating);
    else
        value.integer = tensor_kernel_wrap(
            tensor_kernel_compute_integer(kernel->operation, a.integer, b.integer,
                                          kernel->alpha.integer),
            kernel->operation == TENSOR_KERNEL_EQ ? TENSOR_KERNEL_BOOL : compute);
    if (kernel->operation == TENSOR_KERNEL_EQ && tensor_kernel_is_floating(compute))
        value.integer = value.floating != 0;
    tensor_kernel_store(&kernel->out, out, value,
                        kernel->operation == TENSOR_KERNEL_EQ ? (int)TENSOR_KERNEL_BOOL : compute);
}

TENSOR_KERNEL void tensor_kernel_pointwise_at(const struct tensor_kernel_pointwise *kernel,
                                              int64_t i) {
    if (kernel->operation != TENSOR_KERNEL_ACCUMULATE) {
        tensor_kernel_pointwise_one(kernel, i);
        return;
    }
    const int64_t count = tensor_kernel_count(&kernel->shape);
    for (int64_t j = 0; j < count; ++j)
        tensor_kernel_pointwise_one(kernel, j);
}

// Each item of `kept` is the sum of a over `reduced`: the strides of out are of the kept
// dimensions, `a` holds the kept elements' places and `b` (same data) those of the reduced.
struct tensor_kernel_sum {
    int compute;
    struct tensor_kernel_shape kept, reduced;
    struct tensor_kernel_array out, a, b;
};

TENSOR_KERNEL int64_t tensor_kernel_sum_items(const struct tensor_kernel_sum *kernel) {
    return tensor_kernel_count(&kernel->kept);
}

TENSOR_KERNEL void tensor_kernel_sum_add(struct tensor_kernel_number *sum,
                                         struct tensor_kernel_number number) {
    sum->floating += number.floating;
    sum->integer = (int64_t)((uint64_t)sum->integer + (uint64_t)number.integer);
}

// Of the elements FIRST to END of item I.
TENSOR_KERNEL struct tensor_kernel_number
tensor_kernel_sum_range(const struct tensor_kernel_sum *kernel, int64_t i, int64_t first,
                        int64_t end) {
    const int64_t start = tensor_kernel_place(&kernel->kept, &kernel->a, i);
    struct tensor_kernel_number sum = {0, 0};
    for (int64_t j = first; j < end; ++j)
        tensor_kernel_sum_add(
            &sum, tensor_kernel_load(&kernel->a,
                                     start + tensor_kernel_place(&kernel->reduced, &kernel->b, j),
                                     kernel->compute));
    return sum;
}

TENSOR_KERNEL void tensor_kernel_sum_write(const struct tensor_kernel_sum *kernel, int64_t i,
                                           struct tensor_kernel_number sum) {
    if (tensor_kernel_is_floating(kernel->compute))
        sum.floating = tensor_kernel_round(sum.floating, kernel->compute);
    tensor_kernel_store(&kernel->out, tensor_kernel_place(&kernel->kept, &kernel->out, i), sum,
                        kernel->compute);
}

TENSOR_KERNEL void tensor_kernel_sum_at(const struct tensor_kernel_sum *kernel, int64_t i) {
    tensor_kernel_sum_write(
        kernel, i,
        tensor_kernel_sum_range(kernel, i, 0, tensor_kernel_count(&kernel->reduced)));
}

// The same with the elements of a result divided among PARTS items. Each leaves its sum in
// `staging` (float64 or int64: a part's of all results, then the next part's) and counts itself off
// in the counter (int32, zero before the launch) of its GROUP of results. Who is the last of a
// group adds up the parts of its results, in their order: so it does not matter who that is.
struct tensor_kernel_sum_parts {
    struct tensor_kernel_sum sum;
    int64_t parts, group;
    struct tensor_kernel_array staging, counters;
};

TENSOR_KERNEL int64_t tensor_kernel_sum_parts_items(const struct tensor_kernel_sum_parts *kernel) {
    return kernel->parts * tensor_kernel_count(&kernel->sum.kept);
}

TENSOR_KERNEL void tensor_kernel_sum_parts_join(const struct tensor_kernel_sum_parts *kernel,
                                                int64_t results, int64_t i) {
    struct tensor_kernel_number sum = {0, 0};
    for (int64_t part = 0; part < kernel->parts; ++part)
        tensor_kernel_sum_add(
            &sum, tensor_kernel_load(&kernel->staging, part * results + i, kernel->staging.type));
    tensor_kernel_sum_write(&kernel->sum, i, sum);
}

TENSOR_KERNEL void tensor_kernel_sum_parts_at(const struct tensor_kernel_sum_parts *kernel,
                                              int64_t item) {
    const int64_t results = tensor_kernel_count(&kernel->sum.kept);
    const int64_t count = tensor_kernel_count(&kernel->sum.reduced);
    const int64_t length = (count + kernel->parts - 1) / kernel->parts;
    const int64_t i = item % results, first = item / results * length;
    const int64_t end = first + length < count ? first + length : count;
    tensor_kernel_store(&kernel->staging, item,
                        tensor_kernel_sum_range(&kernel->sum, i, first, end), kernel->staging.type);
    const int64_t group = i / kernel->group, group_first = group * kernel->group;
    const int64_t group_end =
        group_first + kernel->group < results ? group_first + kernel->group : results;
    const int64_t before = tensor_kernel_count_off((int32_t *)kernel->counters.data + group);
    if (before + 1 < (group_end - group_first) * kernel->parts)
        return;
    for (int64_t j = group_first; j < group_end; ++j)
        tensor_kernel_sum_parts_join(kernel, results, j);
}

// out[i][j] = the sum over k of a[i][k] b[k][j], of a batch: what cuBLAS does not do (integers,
// strides that are no leading dimension). Shapes: batch, rows, columns; a and b: batch, row, column
// of their own.
struct tensor_kernel_product {
    int64_t batch, m, n, k;
    struct tensor_kernel_array out, a, b; // of one type
};

TENSOR_KERNEL int64_t tensor_kernel_product_items(const struct tensor_kernel_product *kernel) {
    return kernel->batch * kernel->m * kernel->n;
}

TENSOR_KERNEL void tensor_kernel_product_at(const struct tensor_kernel_product *kernel, int64_t i) {
    const int64_t column = i % kernel->n, row = i / kernel->n % kernel->m;
    const int64_t batch = i / kernel->n / kernel->m;
    const int type = kernel->out.type;
    const int compute = tensor_kernel_is_floating(type) && type != TENSOR_KERNEL_FLOAT64
                            ? (int)TENSOR_KERNEL_FLOAT32
                            : type;
    struct tensor_kernel_number sum = {0, 0};
    for (int64_t k = 0; k < kernel->k; ++k) {
        const struct tensor_kernel_number a = tensor_kernel_load(
            &kernel->a,
            batch * kernel->a.strides[0] + row * kernel->a.strides[1] + k * kernel->a.strides[2],
            compute);
        const struct tensor_kernel_number b = tensor_kernel_load(
            &kernel->b,
            batch * kernel->b.strides[0] + k * kernel->b.strides[1] + column * kernel->b.strides[2],
            compute);
        sum.floating += a.floating * b.floating;
        sum.integer = (int64_t)((uint64_t)sum.integer + (uint64_t)a.integer * (uint64_t)b.integer);
    }
    tensor_kernel_store(&kernel->out,
                        batch * kernel->out.strides[0] + row * kernel->out.strides[1] +
                            column * kernel->out.strides[2],
                        sum, compute);
}

#endif
