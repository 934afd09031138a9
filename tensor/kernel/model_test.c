// Rows by an index, dropout and optimisers against plain loops.
//
//     model_test [SEED [COUNT]]
#include "tensor/kernel/test_array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_DEFAULT 400

static struct tensor_kernel_rows rows_of(const struct test_array *array) {
    return (struct tensor_kernel_rows){array->array, array->array.strides[1]};
}

static double *at(const struct test_array *array, int64_t row, int64_t column) {
    return &array->numbers[row * array->array.strides[0] + column * array->array.strides[1]];
}

static void gathered_rows_are_those_of_the_index(struct base_random *random) {
    static const int types[] = {TENSOR_KERNEL_UINT8, TENSOR_KERNEL_BFLOAT16, TENSOR_KERNEL_FLOAT32,
                                TENSOR_KERNEL_INT64};
    const int64_t count = test_draw(random, 20), columns = 1 + test_draw(random, 9);
    const int64_t rows = 1 + test_draw(random, 12);
    const int type = types[test_draw(random, 4)];
    const struct tensor_kernel_shape of_table = {2, {rows, columns}},
                                     of_out = {2, {count, columns}};
    struct test_array table = test_array_make(random, type, &of_table, true, 0, 99);
    struct test_array out = test_array_make(random, type, &of_out, false, 0, 99);
    struct test_array index =
        test_array_flat(random, test_draw(random, 2) ? TENSOR_KERNEL_INT64 : TENSOR_KERNEL_INT32,
                        count, 0, (int)rows - 1);
    CUDA(tensor_launch_gather(&(struct tensor_kernel_gather){.count = count,
                                                             .columns = columns,
                                                             .table_rows = rows,
                                                             .out = rows_of(&out),
                                                             .table = rows_of(&table),
                                                             .index = index.array},
                              NULL));
    for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j < columns; ++j)
            *at(&out, i, j) = *at(&table, (int64_t)index.numbers[i], j);
    test_array_check(&out, 0);
    test_array_end(&table);
    test_array_end(&out);
    test_array_end(&index);
}

static void scattered_rows_add_up(struct base_random *random) {
    const int64_t count = test_draw(random, 20), columns = 1 + test_draw(random, 9);
    const int64_t rows = 1 + test_draw(random, 6);
    const int type = test_draw(random, 2) ? TENSOR_KERNEL_FLOAT32 : TENSOR_KERNEL_BFLOAT16;
    const struct tensor_kernel_shape of_table = {2, {rows, columns}}, of_a = {2, {count, columns}};
    struct test_array table = test_array_make(random, type, &of_table, false, -3, 3);
    struct test_array a = test_array_make(random, type, &of_a, true, -3, 3);
    struct test_array index = test_array_flat(random, TENSOR_KERNEL_INT64, count, 0, (int)rows - 1);
    CUDA(tensor_launch_scatter_add(&(struct tensor_kernel_scatter_add){.count = count,
                                                                       .columns = columns,
                                                                       .table_rows = rows,
                                                                       .table = rows_of(&table),
                                                                       .a = rows_of(&a),
                                                                       .index = index.array},
                                   NULL));
    for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j < columns; ++j)
            *at(&table, (int64_t)index.numbers[i], j) += *at(&a, i, j);
    test_array_check(&table, 0);
    test_array_end(&table);
    test_array_end(&a);
    test_array_end(&index);
}

// The known answers of Random123 (its file kat_vectors): counter, key, result.
static void philox_gives_the_published_numbers(void) {
    static const struct {
        uint64_t low, high, key;
        uint32_t numbers[4];
    } known[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x85a308d3243f6a88,
         0x0370734413198a2e,
         0x299f31d0a4093822,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i) {
        const struct tensor_kernel_philox got =
            tensor_kernel_philox(known[i].key, known[i].low, known[i].high);
        for (int j = 0; j < 4; ++j)
            BASE_CHECK_EQ(got.numbers[j], known[i].numbers[j]);
    }
}

static int64_t zeros_of(const struct test_array *array, double kept) {
    double *numbers = test_array_read(array);
    int64_t zeros = 0;
    for (int64_t i = 0; i < array->count; ++i) {
        zeros += numbers[i] == 0;
        BASE_CHECK(numbers[i] == 0 || numbers[i] == kept);
    }
    free(numbers);
    return zeros;
}

static void dropout_drops_as_many_as_it_says(void) {
    struct base_random random = base_random_init(1, "dropout");
    const int64_t count = 100000;
    struct test_array a = test_array_flat(&random, TENSOR_KERNEL_FLOAT32, count, 1, 1);
    struct test_array out = test_array_flat(&random, TENSOR_KERNEL_FLOAT32, count, 5, 5);
    struct tensor_kernel_dropout kernel = {
        .shape = {1, {count}}, .seed = 42, .out = out.array, .a = a.array};
    static const double probabilities[] = {0, 0.25, 0.5, 1};
    for (int i = 0; i < 4; ++i) {
        const double p = kernel.probability = probabilities[i];
        CUDA(tensor_launch_dropout(&kernel, NULL));
        const int64_t zeros = zeros_of(&out, test_round(1 / (1 - p), TENSOR_KERNEL_FLOAT32));
        // Six standard deviations.
        BASE_CHECK(fabs((double)zeros - p * (double)count) <=
                   6 * sqrt((double)count * p * (1 - p)));
    }
    test_array_end(&a);
    test_array_end(&out);
}

// An element's chance is that of its place: the same in any layout, and of a part with its offset.
static void dropout_goes_by_the_place(struct base_random *random) {
    const struct tensor_kernel_shape shape = test_shape(random, 3, 8);
    struct test_array a = test_array_make(random, TENSOR_KERNEL_FLOAT32, &shape, true, 1, 9);
    struct test_array out = test_array_make(random, TENSOR_KERNEL_FLOAT32, &shape, false, 5, 5);
    struct tensor_kernel_dropout kernel = {.shape = shape,
                                           .probability = 0.5,
                                           .seed = base_random_next(random),
                                           .offset = 1000,
                                           .out = out.array,
                                           .a = a.array};
    // The mask lies as the result.
    struct test_array mask = test_array_flat(random, TENSOR_KERNEL_BOOL, out.count, 0, 0);
    const bool has_mask = test_draw(random, 2);
    if (has_mask)
        kernel.mask = mask.array;
    // A part of the offset may be the device's.
    struct test_array state = test_array_flat(random, TENSOR_KERNEL_INT64, 1, 1, 900);
    if (test_draw(random, 2)) {
        kernel.state = state.array;
        kernel.offset -= (uint64_t)state.numbers[0];
    }
    int64_t index[TENSOR_KERNEL_RANK_MAX] = {0};
    uint64_t place = 1000;
    CUDA(tensor_launch_dropout(&kernel, NULL));
    if (tensor_kernel_dropout_items(&kernel) > 0)
        do {
            const struct tensor_kernel_philox numbers =
                tensor_kernel_philox(kernel.seed, place / 4, 0);
            const bool keeps = numbers.numbers[place % 4] >= 0x80000000u;
            out.numbers[test_place(out.array.strides, shape.rank, index)] =
                keeps ? 2 * a.numbers[test_place(a.array.strides, shape.rank, index)] : 0;
            mask.numbers[test_place(out.array.strides, shape.rank, index)] = has_mask && keeps;
            ++place;
        } while (test_next(&shape, index));
    test_array_check(&out, 0);
    test_array_check(&mask, 0);
    test_array_end(&a);
    test_array_end(&out);
    test_array_end(&mask);
    test_array_end(&state);
}

static void products_are_added(struct base_random *random) {
    const struct tensor_kernel_shape shape = test_shape(random, 3, 6);
    const int type = test_draw(random, 2) ? TENSOR_KERNEL_FLOAT32 : TENSOR_KERNEL_BFLOAT16;
    struct test_array a = test_array_make(random, type, &shape, true, -8, 8);
    struct test_array b = test_array_make(random, type, &shape, true, 1, 2); // exact quotients
    struct test_array out = test_array_make(random, type, &shape, false, -8, 8);
    const struct tensor_kernel_addc kernel = {.shape = shape,
                                              .divides = test_draw(random, 2),
                                              .factor = -0.5,
                                              .out = out.array,
                                              .a = a.array,
                                              .b = b.array};
    int64_t index[TENSOR_KERNEL_RANK_MAX] = {0};
    CUDA(tensor_launch_addc(&kernel, NULL));
    if (tensor_kernel_addc_items(&kernel) > 0)
        do {
            const double x = a.numbers[test_place(a.array.strides, shape.rank, index)];
            const double y = b.numbers[test_place(b.array.strides, shape.rank, index)];
            out.numbers[test_place(out.array.strides, shape.rank, index)] -=
                0.5 * (kernel.divides ? x / y : x * y);
        } while (test_next(&shape, index));
    test_array_check(&out, 0);
    test_array_end(&a);
    test_array_end(&b);
    test_array_end(&out);
}

static void squares_add_up_in_parts(struct base_random *random) {
    const int64_t count = test_draw(random, 60), parts = 1 + test_draw(random, 20);
    struct test_array a = test_array_flat(random, TENSOR_KERNEL_FLOAT16, count, -20, 20);
    struct test_array out = test_array_flat(random, TENSOR_KERNEL_FLOAT64, parts, 3, 3);
    CUDA(tensor_launch_squares(
        &(struct tensor_kernel_squares){
            .count = count, .parts = parts, .out = out.array, .a = a.array},
        NULL));
    double *got = test_array_read(&out), sum = 0, wanted = 0;
    for (int64_t part = 0; part < parts; ++part) {
        sum += got[part];
        BASE_CHECK(got[part] <= 400 * (double)((count + parts - 1) / parts)); // none does all
    }
    for (int64_t i = 0; i < count; ++i)
        wanted += a.numbers[i] * a.numbers[i];
    BASE_CHECK(sum == wanted);
    free(got);
    test_array_end(&a);
    test_array_end(&out);
}

static void adam_steps_as_the_paper_has_it(struct base_random *random) {
    const int64_t count = 1 + test_draw(random, 30);
    const double rate = 0.125, beta1 = 0.875, beta2 = 0.96875, epsilon = 0.0625, decay = 0.25;
    const bool is_decoupled = test_draw(random, 2);
    struct test_array p = test_array_flat(random, TENSOR_KERNEL_FLOAT32, count, -9, 9);
    struct test_array g = test_array_flat(random, TENSOR_KERNEL_FLOAT32, count, -9, 9);
    struct test_array m = test_array_flat(random, TENSOR_KERNEL_FLOAT32, count, 0, 0);
    struct test_array v = test_array_flat(random, TENSOR_KERNEL_FLOAT32, count, 0, 0);
    double power1 = 1, power2 = 1;
    for (int64_t step = 1; step <= 4; ++step) {
        power1 *= beta1;
        power2 *= beta2;
        CUDA(tensor_launch_adam(&(struct tensor_kernel_adam){.count = count,
                                                             .rate = rate,
                                                             .beta1 = beta1,
                                                             .beta2 = beta2,
                                                             .epsilon = epsilon,
                                                             .decay = decay,
                                                             .correction1 = 1 - power1,
                                                             .correction2 = 1 - power2,
                                                             .is_decoupled = is_decoupled,
                                                             .parameter = p.array,
                                                             .gradient = g.array,
                                                             .mean = m.array,
                                                             .square = v.array},
                                NULL));
        for (int64_t i = 0; i < count; ++i) {
            const double old = p.numbers[i];
            const double gradient = is_decoupled ? g.numbers[i] : g.numbers[i] + decay * old;
            const double mean = beta1 * m.numbers[i] + (1 - beta1) * gradient;
            const double square = beta2 * v.numbers[i] + (1 - beta2) * gradient * gradient;
            const double start = is_decoupled ? old * (1 - rate * decay) : old;
            m.numbers[i] = test_round(mean, TENSOR_KERNEL_FLOAT32);
            v.numbers[i] = test_round(square, TENSOR_KERNEL_FLOAT32);
            p.numbers[i] = test_round(start - rate * (mean / (1 - power1)) /
                                                  (sqrt(square / (1 - power2)) + epsilon),
                                      TENSOR_KERNEL_FLOAT32);
        }
    }
    test_array_check(&p, 8);
    test_array_check(&m, 8);
    test_array_check(&v, 8);
    test_array_end(&p);
    test_array_end(&g);
    test_array_end(&m);
    test_array_end(&v);
}

static void sgd_steps_with_and_without_momentum(struct base_random *random) {
    const int64_t count = 1 + test_draw(random, 30);
    const bool has_momentum = test_draw(random, 2);
    struct test_array p = test_array_flat(random, TENSOR_KERNEL_FLOAT32, count, -9, 9);
    struct test_array g = test_array_flat(random, TENSOR_KERNEL_FLOAT32, count, -9, 9);
    struct test_array v = test_array_flat(random, TENSOR_KERNEL_FLOAT32, count, 0, 0);
    struct tensor_kernel_sgd kernel = {.count = count,
                                       .rate = 0.5,
                                       .momentum = 0.5,
                                       .decay = 0.25,
                                       .parameter = p.array,
                                       .gradient = g.array};
    if (has_momentum)
        kernel.velocity = v.array;
    for (int step = 0; step < 3; ++step) {
        CUDA(tensor_launch_sgd(&kernel, NULL));
        for (int64_t i = 0; i < count; ++i) {
            double change = g.numbers[i] + 0.25 * p.numbers[i];
            if (has_momentum)
                change = v.numbers[i] = 0.5 * v.numbers[i] + change;
            p.numbers[i] -= 0.5 * change;
        }
    }
    test_array_check(&p, 0); // powers of two
    test_array_check(&v, 0);
    test_array_end(&p);
    test_array_end(&g);
    test_array_end(&v);
}

int main(int argc, char **argv) {
    static void (*const tests[])(struct base_random *) = {gathered_rows_are_those_of_the_index,
                                                          scattered_rows_add_up,
                                                          dropout_goes_by_the_place,
                                                          adam_steps_as_the_paper_has_it,
                                                          sgd_steps_with_and_without_momentum,
                                                          products_are_added,
                                                          squares_add_up_in_parts};
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int count = argc > 2 ? atoi(argv[2]) : COUNT_DEFAULT;
    printf("seed %llu, %d kernels\n", (unsigned long long)seed, count);
    philox_gives_the_published_numbers();
    dropout_drops_as_many_as_it_says();
    for (int i = 0; i < count; ++i) {
        struct base_random random = base_random_init(seed + (uint64_t)i, "model");
        base_check_context("seed %llu, test %d", (unsigned long long)(seed + (uint64_t)i), i % 7);
        tests[i % 7](&random);
    }
    return 0;
}
