// Softmax, norms and cross-entropy against plain loops, and their gradients against differences of
// what the plain loops give.
//
//     rows_test [SEED [COUNT]]
#include "tensor/kernel/test_array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_DEFAULT 600
#define COLUMNS_MAX 12
#define STEP 1e-5
#define IGNORED (-100)

static const int types[] = {TENSOR_KERNEL_FLOAT32, TENSOR_KERNEL_FLOAT64, TENSOR_KERNEL_FLOAT16,
                            TENSOR_KERNEL_BFLOAT16};

// Rows of an array: the shape's dimensions and then one of columns.
struct rows {
    struct test_array array;
    struct tensor_kernel_rows rows;
};

struct drawn {
    struct tensor_kernel_shape shape, whole; // of rows; with the columns
    int64_t columns;
    int type;
};

static struct drawn draw(struct base_random *random) {
    struct drawn drawn = {.shape = test_shape(random, 3, 4),
                          .columns = 1 + test_draw(random, COLUMNS_MAX),
                          .type = types[test_draw(random, 4)]};
    drawn.whole = drawn.shape;
    drawn.whole.sizes[drawn.whole.rank++] = drawn.columns;
    return drawn;
}

// Numbers in eighths, from -2 to 2.
static struct rows rows_make(struct base_random *random, const struct drawn *drawn,
                             bool broadcasts) {
    struct rows rows;
    rows.array = test_array_make(random, drawn->type, &drawn->whole, broadcasts, -16, 16);
    test_array_scale(&rows.array, 0.125);
    rows.rows.array = rows.array.array;
    rows.rows.step = rows.array.array.strides[drawn->shape.rank];
    return rows;
}

static struct test_array flat_make(struct base_random *random, int type, int64_t count) {
    struct test_array array = test_array_flat(random, type, count, 1, 16);
    test_array_scale(&array, 0.125);
    return array;
}

static double *at(const struct rows *rows, const struct drawn *drawn, const int64_t *index,
                  int64_t column) {
    return &rows->array.numbers[test_place(rows->array.array.strides, drawn->shape.rank, index) +
                                column * rows->rows.step];
}

// The rows' numbers, gathered; and what a function makes of them.
static void row_get(const struct rows *rows, const struct drawn *drawn, const int64_t *index,
                    double *numbers) {
    for (int64_t j = 0; j < drawn->columns; ++j)
        numbers[j] = *at(rows, drawn, index, j);
}

static void row_put(const struct rows *rows, const struct drawn *drawn, const int64_t *index,
                    const double *numbers) {
    for (int64_t j = 0; j < drawn->columns; ++j)
        *at(rows, drawn, index, j) = test_round(numbers[j], drawn->type);
}

// --- The functions, plainly ---

struct function {
    enum { SOFTMAX, LOG_SOFTMAX, LAYER_NORM, RMS_NORM } kind;
    double scale, epsilon;
    int64_t count, seen;
    const double *weight, *bias;
};

static void apply(const struct function *function, const double *in, double *out) {
    const double count = (double)function->count;
    double sum = 0, mean = 0, squares = 0;
    if (function->kind <= LOG_SOFTMAX) {
        for (int64_t j = 0; j < function->seen; ++j)
            sum += exp(function->scale * in[j]);
        for (int64_t j = 0; j < function->count; ++j) {
            const double p = j < function->seen ? exp(function->scale * in[j]) / sum : 0;
            out[j] = function->kind == LOG_SOFTMAX ? log(p) : p;
        }
        return;
    }
    for (int64_t j = 0; j < function->count; ++j)
        mean += function->kind == LAYER_NORM ? in[j] / count : 0;
    for (int64_t j = 0; j < function->count; ++j)
        squares += (in[j] - mean) * (in[j] - mean) / count;
    for (int64_t j = 0; j < function->count; ++j)
        out[j] = (in[j] - mean) / sqrt(squares + function->epsilon) * function->weight[j] +
                 function->bias[j];
}

// The gradient of the sum of g times the result.
static void differentiate(const struct function *function, const double *in, const double *g,
                          double *out) {
    double moved[COLUMNS_MAX], above[COLUMNS_MAX], below[COLUMNS_MAX];
    for (int64_t j = 0; j < function->count; ++j) {
        memcpy(moved, in, sizeof moved);
        moved[j] = in[j] + STEP;
        apply(function, moved, above);
        moved[j] = in[j] - STEP;
        apply(function, moved, below);
        out[j] = 0;
        for (int64_t k = 0; k < function->count; ++k)
            out[j] += above[k] == below[k] ? 0 : g[k] * (above[k] - below[k]) / (2 * STEP);
    }
}

static double tolerance(int type) { return type == TENSOR_KERNEL_FLOAT64 ? 1e8 : 24; }

// --- Tests ---

static void softmax_is_that_of_a_loop(struct base_random *random) {
    const struct drawn drawn = draw(random);
    struct rows a = rows_make(random, &drawn, true), out = rows_make(random, &drawn, false);
    struct tensor_kernel_softmax kernel = {.shape = drawn.shape,
                                           .columns = drawn.columns,
                                           .scale = test_draw(random, 2) ? 1 : 0.5,
                                           .is_log = test_draw(random, 2),
                                           .is_causal = test_draw(random, 2),
                                           .shift = test_draw(random, 3),
                                           .out = out.rows,
                                           .a = a.rows};
    struct function function = {.kind = kernel.is_log ? LOG_SOFTMAX : SOFTMAX,
                                .scale = kernel.scale,
                                .count = drawn.columns};
    int64_t index[TENSOR_KERNEL_RANK_MAX] = {0};
    double in[COLUMNS_MAX] = {0}, result[COLUMNS_MAX];
    CUDA(tensor_launch_softmax(&kernel, NULL));
    if (tensor_kernel_softmax_items(&kernel) > 0)
        do {
            const int64_t row = drawn.shape.rank > 0 ? index[drawn.shape.rank - 1] : 0;
            const int64_t seen = row + kernel.shift + 1;
            function.seen = kernel.is_causal && seen < drawn.columns ? seen : drawn.columns;
            row_get(&a, &drawn, index, in);
            apply(&function, in, result);
            row_put(&out, &drawn, index, result);
        } while (test_next(&drawn.shape, index));
    test_array_check(&out.array, tolerance(drawn.type));
    test_array_end(&a.array);
    test_array_end(&out.array);
}

static void softmax_gradient_is_that_of_differences(struct base_random *random) {
    const struct drawn drawn = draw(random);
    struct rows a = rows_make(random, &drawn, false), y = rows_make(random, &drawn, false);
    struct rows g = rows_make(random, &drawn, true), out = rows_make(random, &drawn, false);
    struct tensor_kernel_softmax forward = {.shape = drawn.shape,
                                            .columns = drawn.columns,
                                            .scale = 0.5,
                                            .is_log = test_draw(random, 2),
                                            .out = y.rows,
                                            .a = a.rows};
    struct tensor_kernel_softmax_gradient kernel = {.shape = drawn.shape,
                                                    .columns = drawn.columns,
                                                    .scale = 0.5,
                                                    .is_log = forward.is_log,
                                                    .out = out.rows,
                                                    .gradient = g.rows,
                                                    .result = y.rows};
    const struct function function = {.kind = kernel.is_log ? LOG_SOFTMAX : SOFTMAX,
                                      .scale = 0.5,
                                      .count = drawn.columns,
                                      .seen = drawn.columns};
    int64_t index[TENSOR_KERNEL_RANK_MAX] = {0};
    double in[COLUMNS_MAX] = {0}, gradient[COLUMNS_MAX], result[COLUMNS_MAX];
    CUDA(tensor_launch_softmax(&forward, NULL));
    CUDA(tensor_launch_softmax_gradient(&kernel, NULL));
    if (tensor_kernel_softmax_items(&forward) > 0)
        do {
            row_get(&a, &drawn, index, in);
            row_get(&g, &drawn, index, gradient);
            differentiate(&function, in, gradient, result);
            row_put(&out, &drawn, index, result);
        } while (test_next(&drawn.shape, index));
    test_array_check(&out.array, tolerance(drawn.type));
    test_array_end(&a.array);
    test_array_end(&y.array);
    test_array_end(&g.array);
    test_array_end(&out.array);
}

// The norm, its gradient, and that of weight and bias.
static void norms_are_those_of_loops(struct base_random *random) {
    const struct drawn drawn = draw(random);
    const int64_t count = tensor_kernel_count(&drawn.shape);
    const bool is_rms = test_draw(random, 2);
    struct rows a = rows_make(random, &drawn, false), g = rows_make(random, &drawn, true);
    struct rows out = rows_make(random, &drawn, false), of_a = rows_make(random, &drawn, false);
    struct test_array weight = flat_make(random, drawn.type, drawn.columns);
    struct test_array bias = flat_make(random, drawn.type, drawn.columns);
    struct test_array mean = flat_make(random, TENSOR_KERNEL_FLOAT32, count);
    struct test_array rstd = flat_make(random, TENSOR_KERNEL_FLOAT32, count);
    struct test_array of_weight = flat_make(random, TENSOR_KERNEL_FLOAT64, drawn.columns);
    struct test_array of_bias = flat_make(random, TENSOR_KERNEL_FLOAT64, drawn.columns);
    struct tensor_kernel_norm norm = {.shape = drawn.shape,
                                      .columns = drawn.columns,
                                      .epsilon = 0.1,
                                      .is_rms = is_rms,
                                      .out = out.rows,
                                      .a = a.rows,
                                      .weight = weight.array,
                                      .bias = bias.array,
                                      .rstd = rstd.array};
    if (!is_rms)
        norm.mean = mean.array;
    CUDA(tensor_launch_norm(&norm, NULL));
    CUDA(tensor_launch_norm_gradient(&(struct tensor_kernel_norm_gradient){.shape = drawn.shape,
                                                                           .columns = drawn.columns,
                                                                           .out = of_a.rows,
                                                                           .gradient = g.rows,
                                                                           .a = a.rows,
                                                                           .weight = weight.array,
                                                                           .mean = norm.mean,
                                                                           .rstd = rstd.array},
                                     NULL));
    CUDA(tensor_launch_norm_weight(&(struct tensor_kernel_norm_weight){.shape = drawn.shape,
                                                                       .columns = drawn.columns,
                                                                       .gradient = g.rows,
                                                                       .a = a.rows,
                                                                       .weight = of_weight.array,
                                                                       .bias = of_bias.array,
                                                                       .mean = norm.mean,
                                                                       .rstd = rstd.array},
                                   NULL));
    const struct function function = {.kind = is_rms ? RMS_NORM : LAYER_NORM,
                                      .epsilon = 0.1,
                                      .count = drawn.columns,
                                      .weight = weight.numbers,
                                      .bias = bias.numbers};
    const struct function plain = {.kind = function.kind,
                                   .epsilon = 0.1,
                                   .count = drawn.columns,
                                   .weight =
                                       (double[COLUMNS_MAX]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                   .bias = (double[COLUMNS_MAX]){0}};
    double in[COLUMNS_MAX] = {0}, gradient[COLUMNS_MAX], result[COLUMNS_MAX];
    int64_t index[TENSOR_KERNEL_RANK_MAX] = {0};
    for (int64_t j = 0; j < drawn.columns; ++j)
        of_weight.numbers[j] = of_bias.numbers[j] = 0;
    if (count > 0)
        do {
            row_get(&a, &drawn, index, in);
            row_get(&g, &drawn, index, gradient);
            apply(&plain, in, result);
            for (int64_t j = 0; j < drawn.columns; ++j) {
                of_weight.numbers[j] += gradient[j] * result[j];
                of_bias.numbers[j] += gradient[j];
            }
            apply(&function, in, result);
            row_put(&out, &drawn, index, result);
            differentiate(&function, in, gradient, result);
            row_put(&of_a, &drawn, index, result);
        } while (test_next(&drawn.shape, index));
    test_array_check(&out.array, tolerance(drawn.type) * 4); // rstd is a float
    test_array_check(&of_a.array, drawn.type == TENSOR_KERNEL_FLOAT64 ? 1e11 : 64);
    test_array_check(&of_weight, 1e11);
    test_array_check(&of_bias, 1e3);
    test_array_end(&a.array);
    test_array_end(&g.array);
    test_array_end(&out.array);
    test_array_end(&of_a.array);
    test_array_end(&weight);
    test_array_end(&bias);
    test_array_end(&mean);
    test_array_end(&rstd);
    test_array_end(&of_weight);
    test_array_end(&of_bias);
}

static void cross_entropy_is_that_of_a_loop(struct base_random *random) {
    const struct drawn drawn = draw(random);
    const int64_t count = tensor_kernel_count(&drawn.shape);
    struct rows a = rows_make(random, &drawn, false), out = rows_make(random, &drawn, false);
    struct test_array targets =
        test_array_flat(random, TENSOR_KERNEL_INT64, count, 0, (int)drawn.columns - 1);
    struct test_array loss = flat_make(random, TENSOR_KERNEL_FLOAT64, count);
    struct test_array total = flat_make(random, TENSOR_KERNEL_FLOAT64, count);
    struct test_array g = flat_make(random, TENSOR_KERNEL_FLOAT32, count);
    const bool is_one = test_draw(random, 2);
    const struct function function = {
        .kind = LOG_SOFTMAX, .scale = 1, .count = drawn.columns, .seen = drawn.columns};
    double in[COLUMNS_MAX] = {0}, picked[COLUMNS_MAX], result[COLUMNS_MAX];
    int64_t index[TENSOR_KERNEL_RANK_MAX] = {0}, row = 0;
    if (count > 0) {
        targets.numbers[test_draw(random, (int)count)] = IGNORED;
        test_array_scale(&targets, 1);
    }
    CUDA(tensor_launch_cross_entropy(&(struct tensor_kernel_cross_entropy){.shape = drawn.shape,
                                                                           .columns = drawn.columns,
                                                                           .ignored = IGNORED,
                                                                           .a = a.rows,
                                                                           .targets = targets.array,
                                                                           .loss = loss.array,
                                                                           .total = total.array},
                                     NULL));
    CUDA(tensor_launch_cross_entropy_gradient(
        &(struct tensor_kernel_cross_entropy_gradient){.shape = drawn.shape,
                                                       .columns = drawn.columns,
                                                       .ignored = IGNORED,
                                                       .gradient_stride = !is_one,
                                                       .scale = 2,
                                                       .out = out.rows,
                                                       .a = a.rows,
                                                       .targets = targets.array,
                                                       .total = total.array,
                                                       .gradient = g.array},
        NULL));
    if (count > 0)
        do {
            const int64_t target = (int64_t)targets.numbers[row];
            row_get(&a, &drawn, index, in);
            apply(&function, in, result);
            total.numbers[row] = in[0] - result[0];
            loss.numbers[row] = target == IGNORED ? 0 : -result[target];
            memset(picked, 0, sizeof picked);
            if (target != IGNORED)
                picked[target] = -2 * g.numbers[is_one ? 0 : row];
            differentiate(&function, in, picked, result);
            row_put(&out, &drawn, index, result);
            ++row;
        } while (test_next(&drawn.shape, index));
    test_array_check(&loss, 1e10); // exponentials of floats
    test_array_check(&total, 1e10);
    test_array_check(&out.array, drawn.type == TENSOR_KERNEL_FLOAT64 ? 1e9 : 64);
    test_array_end(&a.array);
    test_array_end(&out.array);
    test_array_end(&targets);
    test_array_end(&loss);
    test_array_end(&total);
    test_array_end(&g);
}

// In two steps: of logarithms, then the loss of all rows and their number; and its gradient.
static void nll_is_that_of_a_loop(struct base_random *random) {
    struct drawn drawn = draw(random);
    const int64_t count = drawn.shape.rank > 0 ? drawn.shape.sizes[0] : 1;
    drawn.shape = (struct tensor_kernel_shape){1, {count}};
    drawn.whole = (struct tensor_kernel_shape){2, {count, drawn.columns}};
    struct rows a = rows_make(random, &drawn, true), out = rows_make(random, &drawn, false);
    struct test_array targets =
        test_array_flat(random, TENSOR_KERNEL_INT64, count, 0, (int)drawn.columns - 1);
    struct test_array loss = flat_make(random, TENSOR_KERNEL_FLOAT64, 1);
    struct test_array total = flat_make(random, TENSOR_KERNEL_FLOAT64, 1);
    struct test_array g = flat_make(random, TENSOR_KERNEL_FLOAT32, 1);
    const bool is_mean = test_draw(random, 2);
    if (count > 1) {
        targets.numbers[test_draw(random, (int)count)] = IGNORED;
        test_array_scale(&targets, 1);
    }
    CUDA(tensor_launch_nll(&(struct tensor_kernel_nll){.count = count,
                                                       .columns = drawn.columns,
                                                       .ignored = IGNORED,
                                                       .is_mean = is_mean,
                                                       .a = a.rows,
                                                       .targets = targets.array,
                                                       .loss = loss.array,
                                                       .total = total.array},
                           NULL));
    CUDA(tensor_launch_nll_gradient(&(struct tensor_kernel_nll_gradient){.count = count,
                                                                         .columns = drawn.columns,
                                                                         .ignored = IGNORED,
                                                                         .is_mean = is_mean,
                                                                         .out = out.rows,
                                                                         .targets = targets.array,
                                                                         .total = total.array,
                                                                         .gradient = g.array},
                                    NULL));
    double sum = 0, rows = 0;
    for (int64_t i = 0; i < count; ++i)
        if (targets.numbers[i] != IGNORED) {
            sum -= *at(&a, &drawn, &i, (int64_t)targets.numbers[i]);
            rows += 1;
        }
    loss.numbers[0] = is_mean ? sum / rows : sum;
    total.numbers[0] = rows;
    for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j < drawn.columns; ++j)
            *at(&out, &drawn, &i, j) =
                (double)j == targets.numbers[i]
                    ? test_round(-g.numbers[0] / (is_mean ? rows : 1), drawn.type)
                    : 0;
    if (count > 0) {
        test_array_check(&loss, 4);
        test_array_check(&out.array, 4);
    }
    test_array_check(&total, 0);
    test_array_end(&a.array);
    test_array_end(&out.array);
    test_array_end(&targets);
    test_array_end(&loss);
    test_array_end(&total);
    test_array_end(&g);
}

static void argmax_is_the_first_of_the_greatest(struct base_random *random) {
    const struct drawn drawn = draw(random);
    struct rows a = rows_make(random, &drawn, true);
    struct test_array out =
        test_array_make(random, TENSOR_KERNEL_INT64, &drawn.shape, false, 99, 99);
    int64_t index[TENSOR_KERNEL_RANK_MAX] = {0};
    const struct tensor_kernel_argmax kernel = {
        .shape = drawn.shape, .columns = drawn.columns, .a = a.rows, .out = out.array};
    CUDA(tensor_launch_argmax(&kernel, NULL));
    if (tensor_kernel_argmax_items(&kernel) > 0)
        do {
            int64_t best = 0;
            for (int64_t j = 1; j < drawn.columns; ++j)
                if (*at(&a, &drawn, index, j) > *at(&a, &drawn, index, best))
                    best = j;
            out.numbers[test_place(out.array.strides, drawn.shape.rank, index)] = (double)best;
        } while (test_next(&drawn.shape, index));
    test_array_check(&out, 0);
    test_array_end(&a.array);
    test_array_end(&out);
}

int main(int argc, char **argv) {
    static void (*const tests[])(struct base_random *) = {
        softmax_is_that_of_a_loop, softmax_gradient_is_that_of_differences,
        norms_are_those_of_loops,  cross_entropy_is_that_of_a_loop,
        nll_is_that_of_a_loop,     argmax_is_the_first_of_the_greatest};
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int count = argc > 2 ? atoi(argv[2]) : COUNT_DEFAULT;
    printf("seed %llu, %d kernels\n", (unsigned long long)seed, count);
    for (int i = 0; i < count; ++i) {
        struct base_random random = base_random_init(seed + (uint64_t)i, "rows");
        base_check_context("seed %llu, test %d", (unsigned long long)(seed + (uint64_t)i), i % 6);
        tests[i % 6](&random);
    }
    return 0;
}
