// Element work, sums and products of any strides against plain loops over indices.
//
//     pointwise_test [SEED [COUNT]]
#include "tensor/kernel/test_array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_DEFAULT 3000

static const int types[] = {TENSOR_KERNEL_UINT8,   TENSOR_KERNEL_INT8,    TENSOR_KERNEL_INT16,
                            TENSOR_KERNEL_INT32,   TENSOR_KERNEL_INT64,   TENSOR_KERNEL_FLOAT16,
                            TENSOR_KERNEL_FLOAT32, TENSOR_KERNEL_FLOAT64, TENSOR_KERNEL_BFLOAT16,
                            TENSOR_KERNEL_BOOL};
static const int floating_types[] = {TENSOR_KERNEL_FLOAT32, TENSOR_KERNEL_FLOAT64,
                                     TENSOR_KERNEL_FLOAT16, TENSOR_KERNEL_BFLOAT16};

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * pow(x, 3))));
}
static double gelu_erf(double x) { return 0.5 * x * (1 + erf(x / sqrt(2))); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x / (1 + exp(-x)); }
static double slope(double (*function)(double), double x) {
    return (function(x + 1e-6) - function(x - 1e-6)) / 2e-6;
}

// In double. EXACT: so are the results for small integers.
static double wanted(int operation, double a, double b, double alpha, bool *exact) {
    *exact = true;
    switch (operation) {
    case TENSOR_KERNEL_COPY:
        return a;
    case TENSOR_KERNEL_FILL:
        return b;
    case TENSOR_KERNEL_ADD:
        return a + alpha * b;
    case TENSOR_KERNEL_SUB:
        return a - alpha * b;
    case TENSOR_KERNEL_MUL:
        return a * b;
    case TENSOR_KERNEL_DIV:
        return a / b;
    case TENSOR_KERNEL_EQ:
        return a == b;
    case TENSOR_KERNEL_NEG:
        return -a;
    case TENSOR_KERNEL_RELU:
        return a < 0 ? 0 : a;
    case TENSOR_KERNEL_SQRT:
        return sqrt(a);
    case TENSOR_KERNEL_RELU_GRADIENT:
        return b > 0 ? a : 0;
    case TENSOR_KERNEL_MAXIMUM:
        return fmax(a, b);
    case TENSOR_KERNEL_MASKED_SCALE:
        return b != 0 ? a * alpha : 0;
    case TENSOR_KERNEL_MASKED_FILL:
        return b != 0 ? alpha : a;
    }
    *exact = false;
    switch (operation) {
    case TENSOR_KERNEL_EXP:
        return exp(a);
    case TENSOR_KERNEL_TANH:
        return tanh(a);
    case TENSOR_KERNEL_RSQRT:
        return 1 / sqrt(a);
    case TENSOR_KERNEL_SILU:
        return silu(a);
    case TENSOR_KERNEL_SILU_GRADIENT:
        return a * slope(silu, b);
    case TENSOR_KERNEL_GELU:
        return gelu(a);
    case TENSOR_KERNEL_GELU_GRADIENT:
        return a * slope(gelu, b);
    case TENSOR_KERNEL_LOG:
        return log(a);
    case TENSOR_KERNEL_SIGMOID:
        return sigmoid(a);
    case TENSOR_KERNEL_SIGMOID_GRADIENT: // b is the result
        return a * (b - b * b);
    case TENSOR_KERNEL_TANH_GRADIENT:
        return a - a * b * b;
    case TENSOR_KERNEL_GELU_ERF:
        return gelu_erf(a);
    case TENSOR_KERNEL_GELU_ERF_GRADIENT:
        return a * slope(gelu_erf, b);
    }
    BASE_CHECK(false);
    return 0;
}

static bool is_floating_only(int operation) {
    return operation == TENSOR_KERNEL_DIV || operation == TENSOR_KERNEL_SQRT ||
           (operation > TENSOR_KERNEL_MAXIMUM && operation < TENSOR_KERNEL_MASKED_SCALE);
}

static int type_draw(struct base_random *random, bool is_floating) {
    return is_floating ? floating_types[test_draw(random, 4)] : types[test_draw(random, 10)];
}

static struct tensor_kernel_number number_of(double value) {
    return (struct tensor_kernel_number){value, (int64_t)value};
}

// Integers are computed in int64 where the operands differ, which holds all of them.
static void pointwise_is_that_of_a_loop(struct base_random *random) {
    struct tensor_kernel_pointwise kernel = {.shape = test_shape(random, 4, 7)};
    const bool fast = test_draw(random, 4) == 0;
    do
        kernel.operation = test_draw(random, TENSOR_KERNEL_OPERATION_COUNT);
    while (kernel.operation == TENSOR_KERNEL_ACCUMULATE);
    const bool is_floating = fast || is_floating_only(kernel.operation) || test_draw(random, 2);
    kernel.compute = fast          ? (int)TENSOR_KERNEL_FLOAT32
                     : is_floating ? type_draw(random, true)
                                   : (int)TENSOR_KERNEL_INT64;
    if (fast)
        kernel.shape = (struct tensor_kernel_shape){1, {test_draw(random, 100)}};
    const int a_type = fast ? (int)TENSOR_KERNEL_FLOAT32 : type_draw(random, is_floating);
    const int b_type = fast ? (int)TENSOR_KERNEL_FLOAT32 : type_draw(random, is_floating);
    int out_type = fast ? (int)TENSOR_KERNEL_FLOAT32 : type_draw(random, is_floating);
    const bool is_positive = kernel.operation == TENSOR_KERNEL_SQRT ||
                             kernel.operation == TENSOR_KERNEL_RSQRT ||
                             kernel.operation == TENSOR_KERNEL_LOG;
    const int low = is_positive ? 1 : -4;
    struct test_array a, b, out;
    if (fast) {
        const int64_t count = kernel.shape.sizes[0];
        a = test_array_flat(random, a_type, count, low, 5);
        b = test_array_flat(random, b_type, count, low, 5);
        out = test_array_flat(random, out_type, count, -9, 9);
    } else {
        a = test_array_make(random, a_type, &kernel.shape, true, low, 5);
        b = test_array_make(random, b_type, &kernel.shape, true, low, 5);
        out = test_array_make(random, out_type, &kernel.shape, false, -9, 9);
    }
    const bool has_a = test_draw(random, 8) > 0, has_b = test_draw(random, 4) > 0;
    const double scalar = 3, alpha = test_draw(random, 2) ? 1 : -2;
    kernel.out = out.array;
    if (has_a)
        kernel.a = a.array;
    if (has_b)
        kernel.b = b.array;
    kernel.scalar = number_of(scalar);
    kernel.alpha = number_of(alpha);
    base_check_context("operation %d, compute %d, types %d %d %d", kernel.operation, kernel.compute,
                       a_type, b_type, out_type);
    CUDA(tensor_launch_pointwise(&kernel, NULL));
    CUDA(cudaDeviceSynchronize());
    bool exact = true;
    int64_t index[TENSOR_KERNEL_RANK_MAX] = {0};
    if (tensor_kernel_pointwise_items(&kernel) > 0)
        do {
            const int rank = kernel.shape.rank;
            const double x = has_a ? a.numbers[test_place(a.array.strides, rank, index)] : scalar;
            const double y = has_b ? b.numbers[test_place(b.array.strides, rank, index)] : scalar;
            double value = wanted(kernel.operation, x, y, alpha, &exact);
            if (is_floating && kernel.compute != TENSOR_KERNEL_FLOAT64)
                value = (double)(float)value;
            out.numbers[test_place(out.array.strides, rank, index)] = test_round(value, out_type);
        } while (test_next(&kernel.shape, index));
    test_array_check(&out, exact ? 0 : out_type == TENSOR_KERNEL_FLOAT64 ? 1e10 : 16);
    test_array_end(&a);
    test_array_end(&b);
    test_array_end(&out);
}

// out += a where out overlaps itself.
static void accumulation_adds_what_meets(struct base_random *random) {
    struct tensor_kernel_pointwise kernel = {.operation = TENSOR_KERNEL_ACCUMULATE,
                                             .shape = test_shape(random, 3, 6)};
    const int type = type_draw(random, true);
    struct test_array a = test_array_make(random, type, &kernel.shape, true, -2, 2);
    struct test_array out = test_array_make(random, type, &kernel.shape, true, -2, 2);
    kernel.compute = type;
    kernel.a = a.array;
    kernel.out = out.array;
    CUDA(tensor_launch_pointwise(&kernel, NULL));
    int64_t index[TENSOR_KERNEL_RANK_MAX] = {0};
    if (tensor_kernel_pointwise_items(&kernel) > 0)
        do {
            const int rank = kernel.shape.rank;
            double *at = &out.numbers[test_place(out.array.strides, rank, index)];
            *at = test_round(*at + a.numbers[test_place(a.array.strides, rank, index)], type);
        } while (test_next(&kernel.shape, index));
    test_array_check(&out, 0);
    test_array_end(&a);
    test_array_end(&out);
}

// Kept and reduced dimensions of one array, mixed.
static void sums_are_those_of_a_loop(struct base_random *random) {
    const struct tensor_kernel_shape shape = test_shape(random, 4, 6);
    const bool is_floating = test_draw(random, 2);
    const int type = type_draw(random, is_floating);
    struct test_array a = test_array_make(random, type, &shape, true, -3, 3);
    struct tensor_kernel_sum kernel = {.compute = is_floating ? type : (int)TENSOR_KERNEL_INT64,
                                       .a = a.array};
    bool is_reduced[TENSOR_KERNEL_RANK_MAX];
    for (int dim = 0; dim < shape.rank; ++dim) {
        is_reduced[dim] = test_draw(random, 2);
        struct tensor_kernel_shape *part = is_reduced[dim] ? &kernel.reduced : &kernel.kept;
        (is_reduced[dim] ? &kernel.b : &kernel.a)->strides[part->rank] = a.array.strides[dim];
        part->sizes[part->rank++] = shape.sizes[dim];
    }
    struct test_array out = test_array_make(random, kernel.compute, &kernel.kept, false, 7, 9);
    kernel.out = out.array;
    CUDA(tensor_launch_sum(&kernel, NULL));
    int64_t index[TENSOR_KERNEL_RANK_MAX] = {0}, kept[TENSOR_KERNEL_RANK_MAX] = {0};
    if (tensor_kernel_sum_items(&kernel) > 0)
        do
            out.numbers[test_place(out.array.strides, kernel.kept.rank, kept)] = 0;
        while (test_next(&kernel.kept, kept));
    if (tensor_kernel_count(&shape) > 0)
        do {
            int rank = 0;
            for (int dim = 0; dim < shape.rank; ++dim)
                if (!is_reduced[dim])
                    kept[rank++] = index[dim];
            out.numbers[test_place(out.array.strides, rank, kept)] +=
                a.numbers[test_place(a.array.strides, shape.rank, index)];
        } while (test_next(&shape, index));
    for (int64_t i = 0; i < out.count; ++i)
        out.numbers[i] = test_round(out.numbers[i], kernel.compute);
    test_array_check(&out, 0);
    test_array_end(&a);
    test_array_end(&out);
}

static void products_are_those_of_a_loop(struct base_random *random) {
    struct tensor_kernel_product kernel = {.batch = 1 + test_draw(random, 3),
                                           .m = test_draw(random, 6),
                                           .n = 1 + test_draw(random, 6),
                                           .k = test_draw(random, 6)};
    const struct tensor_kernel_shape of_a = {3, {kernel.batch, kernel.m, kernel.k}},
                                     of_b = {3, {kernel.batch, kernel.k, kernel.n}},
                                     of_out = {3, {kernel.batch, kernel.m, kernel.n}};
    const int type = types[test_draw(random, 9)];
    struct test_array a = test_array_make(random, type, &of_a, true, 0, 2);
    struct test_array b = test_array_make(random, type, &of_b, true, 0, 2);
    struct test_array out = test_array_make(random, type, &of_out, false, 5, 5);
    kernel.a = a.array;
    kernel.b = b.array;
    kernel.out = out.array;
    CUDA(tensor_launch_product(&kernel, NULL));
    for (int64_t i = 0; i < kernel.batch; ++i)
        for (int64_t row = 0; row < kernel.m; ++row)
            for (int64_t column = 0; column < kernel.n; ++column) {
                double sum = 0;
                for (int64_t k = 0; k < kernel.k; ++k)
                    sum += a.numbers[test_place(a.array.strides, 3, (int64_t[]){i, row, k})] *
                           b.numbers[test_place(b.array.strides, 3, (int64_t[]){i, k, column})];
                out.numbers[test_place(out.array.strides, 3, (int64_t[]){i, row, column})] =
                    test_round(sum, type);
            }
    test_array_check(&out, 0);
    test_array_end(&a);
    test_array_end(&b);
    test_array_end(&out);
}

int main(int argc, char **argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int count = argc > 2 ? atoi(argv[2]) : COUNT_DEFAULT;
    printf("seed %llu, %d kernels\n", (unsigned long long)seed, count);
    for (int i = 0; i < count; ++i) {
        struct base_random random = base_random_init(seed + (uint64_t)i, "kernel");
        base_check_context("seed %llu", (unsigned long long)(seed + (uint64_t)i));
        switch (i % 6) {
        case 0:
            accumulation_adds_what_meets(&random);
            break;
        case 1:
            sums_are_those_of_a_loop(&random);
            break;
        case 2:
            products_are_those_of_a_loop(&random);
            break;
        default:
            pointwise_is_that_of_a_loop(&random);
            break;
        }
    }
    return 0;
}
