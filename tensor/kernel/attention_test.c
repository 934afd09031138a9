// Attention and its gradients against whole matrices of scores, by plain loops.
//
//     attention_test [SEED [COUNT]]
#include "tensor/kernel/test_array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_DEFAULT 300
#define ROWS_MAX 6
#define COLUMNS_MAX 5

static const int types[] = {TENSOR_KERNEL_FLOAT32, TENSOR_KERNEL_FLOAT64, TENSOR_KERNEL_FLOAT16,
                            TENSOR_KERNEL_BFLOAT16};

// Rows of each matrix of a batch; and their numbers by index.
struct rows {
    struct test_array array;
    struct tensor_kernel_rows rows;
    int rank; // of the array
};

// What a test is about: [batch, rows] of queries and keys.
struct drawn {
    struct tensor_kernel_attention_form form;
    int type, batch_rank;
    int64_t queries;
};

static struct rows rows_make(struct base_random *random, const struct drawn *drawn, int64_t rows,
                             int64_t columns, bool broadcasts) {
    struct tensor_kernel_shape whole = drawn->form.shape;
    struct rows made;
    whole.sizes[drawn->batch_rank] = rows;
    whole.sizes[drawn->batch_rank + 1] = columns;
    whole.rank = made.rank = drawn->batch_rank + 2;
    made.array = test_array_make(random, drawn->type, &whole, broadcasts, -16, 16);
    test_array_scale(&made.array, 0.125);
    made.rows.array = made.array.array;
    made.rows.step = made.array.array.strides[drawn->batch_rank + 1];
    return made;
}

static struct drawn draw(struct base_random *random) {
    struct drawn drawn = {.type = types[test_draw(random, 4)],
                          .batch_rank = test_draw(random, 3),
                          .queries = 1 + test_draw(random, ROWS_MAX)};
    struct tensor_kernel_attention_form *form = &drawn.form;
    for (int dim = 0; dim < drawn.batch_rank; ++dim)
        form->shape.sizes[dim] = test_draw(random, 12) == 0 ? 0 : 1 + test_draw(random, 3);
    form->shape.rank = drawn.batch_rank + 1;
    form->shape.sizes[drawn.batch_rank] = drawn.queries;
    form->keys = test_draw(random, 12) == 0 ? 0 : 1 + test_draw(random, ROWS_MAX);
    form->columns = 1 + test_draw(random, COLUMNS_MAX);
    form->value_columns = 1 + test_draw(random, COLUMNS_MAX);
    form->is_causal = test_draw(random, 2);
    form->shift = test_draw(random, 4) - 1;
    form->scale = test_draw(random, 2) ? 1 : 0.5;
    form->probability = test_draw(random, 2) ? 0 : 0.5;
    form->seed = base_random_next(random);
    form->offset = (uint64_t)test_draw(random, 1000);
    return drawn;
}

static double *at(const struct rows *rows, const int64_t *batch, int64_t row, int64_t column) {
    const int64_t *strides = rows->array.array.strides;
    return &rows->array.numbers[test_place(strides, rows->rank - 2, batch) +
                                row * strides[rows->rank - 2] + column * strides[rows->rank - 1]];
}

// One matrix of a batch: probabilities, and what dropout multiplies them by.
struct matrix {
    double p[ROWS_MAX][ROWS_MAX], factor[ROWS_MAX][ROWS_MAX], total[ROWS_MAX];
};

static void matrix_fill(const struct drawn *drawn, int64_t number, const int64_t *batch,
                        const struct rows *query, const struct rows *key, struct matrix *matrix) {
    const struct tensor_kernel_attention_form *form = &drawn->form;
    memset(matrix, 0, sizeof *matrix);
    for (int64_t r = 0; r < drawn->queries; ++r) {
        double sum = 0;
        for (int64_t j = 0; j < form->keys; ++j) {
            const uint64_t place =
                (uint64_t)((number * drawn->queries + r) * form->keys + j) + form->offset;
            double score = 0;
            for (int64_t c = 0; c < form->columns; ++c)
                score += *at(query, batch, r, c) * *at(key, batch, j, c);
            matrix->p[r][j] = form->is_causal && j > r + form->shift ? 0 : exp(form->scale * score);
            sum += matrix->p[r][j];
            matrix->factor[r][j] = 1;
            if (form->probability > 0)
                matrix->factor[r][j] =
                    tensor_kernel_philox(form->seed, place / 4, 0).numbers[place % 4] >= 0x80000000u
                        ? 2
                        : 0;
        }
        matrix->total[r] = log(sum);
        for (int64_t j = 0; j < form->keys; ++j)
            matrix->p[r][j] = sum > 0 ? matrix->p[r][j] / sum : 0;
    }
}

static void result_fill(const struct drawn *drawn, const int64_t *batch,
                        const struct matrix *matrix, const struct rows *value,
                        const struct rows *out) {
    for (int64_t r = 0; r < drawn->queries; ++r)
        for (int64_t c = 0; c < drawn->form.value_columns; ++c) {
            double sum = 0;
            for (int64_t j = 0; j < drawn->form.keys; ++j)
                sum += matrix->p[r][j] * matrix->factor[r][j] * *at(value, batch, j, c);
            *at(out, batch, r, c) = test_round(sum, drawn->type);
        }
}

// The gradients of a matrix of scores, and of what it is made of.
static void gradients_fill(const struct drawn *drawn, const int64_t *batch,
                           const struct matrix *matrix, const struct rows in[3],
                           const struct rows *gradient, const struct rows of[3]) {
    const struct tensor_kernel_attention_form *form = &drawn->form;
    double of_score[ROWS_MAX][ROWS_MAX] = {{0}};
    for (int64_t r = 0; r < drawn->queries; ++r) {
        double of_p[ROWS_MAX] = {0}, sum = 0;
        for (int64_t j = 0; j < form->keys; ++j) {
            for (int64_t c = 0; c < form->value_columns; ++c)
                of_p[j] += *at(gradient, batch, r, c) * *at(&in[2], batch, j, c);
            of_p[j] *= matrix->factor[r][j];
            sum += of_p[j] * matrix->p[r][j];
        }
        for (int64_t j = 0; j < form->keys; ++j)
            of_score[r][j] = matrix->p[r][j] * (of_p[j] - sum) * form->scale;
    }
    for (int64_t r = 0; r < drawn->queries; ++r)
        for (int64_t c = 0; c < form->columns; ++c) {
            double sum = 0;
            for (int64_t j = 0; j < form->keys; ++j)
                sum += of_score[r][j] * *at(&in[1], batch, j, c);
            *at(&of[0], batch, r, c) = test_round(sum, drawn->type);
        }
    for (int64_t j = 0; j < form->keys; ++j) {
        for (int64_t c = 0; c < form->columns; ++c) {
            double sum = 0;
            for (int64_t r = 0; r < drawn->queries; ++r)
                sum += of_score[r][j] * *at(&in[0], batch, r, c);
            *at(&of[1], batch, j, c) = test_round(sum, drawn->type);
        }
        for (int64_t c = 0; c < form->value_columns; ++c) {
            double sum = 0;
            for (int64_t r = 0; r < drawn->queries; ++r)
                sum += matrix->p[r][j] * matrix->factor[r][j] * *at(gradient, batch, r, c);
            *at(&of[2], batch, j, c) = test_round(sum, drawn->type);
        }
    }
}

static void launch(const struct drawn *drawn, const struct rows in[3], const struct rows *out,
                   const struct rows *gradient, const struct rows of[3],
                   const struct test_array *total, const struct test_array *shares) {
    CUDA(tensor_launch_attention(&(struct tensor_kernel_attention){.form = drawn->form,
                                                                   .out = out->rows,
                                                                   .query = in[0].rows,
                                                                   .key = in[1].rows,
                                                                   .value = in[2].rows,
                                                                   .total = total->array},
                                 NULL));
    CUDA(tensor_launch_attention_query(
        &(struct tensor_kernel_attention_query){.form = drawn->form,
                                                .of_query = of[0].rows,
                                                .gradient = gradient->rows,
                                                .out = out->rows,
                                                .query = in[0].rows,
                                                .key = in[1].rows,
                                                .value = in[2].rows,
                                                .total = total->array,
                                                .shares = shares->array},
        NULL));
    CUDA(tensor_launch_attention_key(
        &(struct tensor_kernel_attention_key){.form = drawn->form,
                                              .of_key = of[1].rows,
                                              .of_value = of[2].rows,
                                              .gradient = gradient->rows,
                                              .query = in[0].rows,
                                              .key = in[1].rows,
                                              .value = in[2].rows,
                                              .total = total->array,
                                              .shares = shares->array},
        NULL));
}

static void attention_is_that_of_whole_matrices(struct base_random *random) {
    const struct drawn drawn = draw(random);
    const struct tensor_kernel_attention_form *form = &drawn.form;
    struct tensor_kernel_shape batches = form->shape;
    batches.rank = drawn.batch_rank;
    const int64_t count = tensor_kernel_count(&batches);
    const int64_t columns[] = {form->columns, form->columns, form->value_columns};
    struct rows in[3], of[3];
    for (int i = 0; i < 3; ++i) {
        in[i] = rows_make(random, &drawn, i == 0 ? drawn.queries : form->keys, columns[i], true);
        of[i] = rows_make(random, &drawn, i == 0 ? drawn.queries : form->keys, columns[i], false);
    }
    struct rows out = rows_make(random, &drawn, drawn.queries, form->value_columns, false);
    struct rows gradient = rows_make(random, &drawn, drawn.queries, form->value_columns, true);
    struct test_array total =
        test_array_flat(random, TENSOR_KERNEL_FLOAT64, count * drawn.queries, 5, 5);
    struct test_array shares =
        test_array_flat(random, TENSOR_KERNEL_FLOAT64, count * drawn.queries, 5, 5);
    launch(&drawn, in, &out, &gradient, of, &total, &shares);
    int64_t batch[TENSOR_KERNEL_RANK_MAX] = {0}, number = 0;
    if (count > 0)
        do {
            struct matrix matrix;
            matrix_fill(&drawn, number, batch, &in[0], &in[1], &matrix);
            for (int64_t r = 0; r < drawn.queries; ++r)
                total.numbers[number * drawn.queries + r] = matrix.total[r];
            result_fill(&drawn, batch, &matrix, &in[2], &out);
            gradients_fill(&drawn, batch, &matrix, in, &gradient, of);
            ++number;
        } while (test_next(&batches, batch));
    test_array_check(&out.array, drawn.type == TENSOR_KERNEL_FLOAT64 ? 1e3 : 24);
    test_array_check(&total, drawn.type == TENSOR_KERNEL_FLOAT64 ? 1e3 : 1e10);
    // The share of a query is that of a rounded result.
    for (int i = 0; i < 3; ++i)
        test_array_check(&of[i].array, drawn.type == TENSOR_KERNEL_FLOAT64 ? 1e4 : 64);
    for (int i = 0; i < 3; ++i) {
        test_array_end(&in[i].array);
        test_array_end(&of[i].array);
    }
    test_array_end(&out.array);
    test_array_end(&gradient.array);
    test_array_end(&total);
    test_array_end(&shares);
}

int main(int argc, char **argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int count = argc > 2 ? atoi(argv[2]) : COUNT_DEFAULT;
    printf("seed %llu, %d kernels\n", (unsigned long long)seed, count);
    for (int i = 0; i < count; ++i) {
        struct base_random random = base_random_init(seed + (uint64_t)i, "attention");
        base_check_context("seed %llu", (unsigned long long)(seed + (uint64_t)i));
        attention_is_that_of_whole_matrices(&random);
    }
    return 0;
}
