// The loops of the host against the items of the kernels, which devices run: any bits but NaN, any
// types, strides, rows longer than a stretch. Results agree to the bit.
//
//     loops_test [SEED [COUNT]]
#include "tensor/kernel/loops.h"

#include "base/check.h"
#include "base/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_DEFAULT 4000
#define ROW_MAX 3000 // of a row: some stretches

static int draw(struct base_random *random, int below) {
    return (int)base_random_below(random, (uint64_t)below);
}

// Random bits; numbers that are none become 1.
static void bits_fill(struct base_random *random, void *data, int type, int64_t count) {
    const int64_t size = tensor_kernel_size_of(type);
    for (int64_t byte = 0; byte < count * size; ++byte)
        ((uint8_t *)data)[byte] = (uint8_t)draw(random, 256);
    for (int64_t i = 0; i < count; ++i) {
        const bool is_small = draw(random, 2); // so that sums and comparisons say something
        const int value = draw(random, 9) - 4;
        if (tensor_kernel_is_floating(type)) {
            if (is_small || isnan(tensor_kernel_read(data, type, i)))
                tensor_kernel_write(data, type, i, value);
        } else if (is_small || type == TENSOR_KERNEL_BOOL) {
            tensor_kernel_write_integer(data, type, i, value);
        }
    }
}

// Strides in any order of the dimensions, with holes at times; 0 in some where it BROADCASTS.
static struct tensor_kernel_array array_make(struct base_random *random, int type,
                                             const struct tensor_kernel_shape *shape,
                                             bool broadcasts, int64_t *count) {
    struct tensor_kernel_array array = {.type = type};
    int order[TENSOR_KERNEL_RANK_MAX];
    *count = 1;
    for (int dim = 0; dim < shape->rank; ++dim) {
        const int other = draw(random, dim + 1);
        order[dim] = order[other];
        order[other] = dim;
    }
    const bool is_plain = draw(random, 2);
    for (int i = shape->rank - 1; i >= 0; --i) {
        const int dim = is_plain ? i : order[i];
        if (broadcasts && draw(random, 4) == 0)
            continue;
        array.strides[dim] = *count * (!is_plain && draw(random, 4) == 0 ? 2 : 1);
        *count = array.strides[dim] * (shape->sizes[dim] > 1 ? shape->sizes[dim] : 1);
    }
    array.data = malloc((size_t)(*count * tensor_kernel_size_of(type)));
    BASE_CHECK(array.data != NULL);
    bits_fill(random, array.data, type, *count);
    return array;
}

static struct tensor_kernel_array array_copy(const struct tensor_kernel_array *array,
                                             int64_t count) {
    struct tensor_kernel_array copy = *array;
    const size_t bytes = (size_t)(count * tensor_kernel_size_of(array->type));
    copy.data = malloc(bytes);
    BASE_CHECK(copy.data != NULL);
    memcpy(copy.data, array->data, bytes);
    return copy;
}

// Results may be no number, whose bits say nothing.
static void compare(const struct tensor_kernel_array *a, const struct tensor_kernel_array *b,
                    int64_t count) {
    const int64_t size = tensor_kernel_size_of(a->type);
    for (int64_t i = 0; i < count; ++i) {
        if (memcmp((char *)a->data + i * size, (char *)b->data + i * size, (size_t)size) == 0)
            continue;
        base_check_context("element %lld", (long long)i);
        BASE_CHECK(tensor_kernel_is_floating(a->type));
        BASE_CHECK(isnan(tensor_kernel_read(a->data, a->type, i)) &&
                   isnan(tensor_kernel_read(b->data, b->type, i)));
    }
}

// One dimension may be long; one may be empty.
static struct tensor_kernel_shape shape_draw(struct base_random *random) {
    struct tensor_kernel_shape shape = {.rank = draw(random, 4)};
    for (int dim = 0; dim < shape.rank; ++dim)
        shape.sizes[dim] = draw(random, 40) == 0 ? 0 : 1 + draw(random, 5);
    if (shape.rank > 0 && draw(random, 4) == 0)
        shape.sizes[draw(random, shape.rank)] = 1 + draw(random, ROW_MAX);
    return shape;
}

static int type_draw(struct base_random *random) {
    return draw(random, TENSOR_KERNEL_BFLOAT16 + 1);
}

static struct tensor_kernel_number number_draw(struct base_random *random, int type) {
    const int value = draw(random, 7) - 3;
    return tensor_kernel_convert((struct tensor_kernel_number){value, value}, TENSOR_KERNEL_INT64,
                                 type);
}

static void pointwise_is_that_of_the_items(struct base_random *random) {
    struct tensor_kernel_pointwise kernel = {.operation =
                                                 draw(random, TENSOR_KERNEL_OPERATION_COUNT),
                                             .compute = type_draw(random),
                                             .shape = shape_draw(random)};
    const bool accumulates = kernel.operation == TENSOR_KERNEL_ACCUMULATE;
    const bool is_same = draw(random, 2);
    int64_t counts[3];
    kernel.scalar = number_draw(random, kernel.compute);
    kernel.alpha = number_draw(random, kernel.compute);
    kernel.out = array_make(random, is_same ? kernel.compute : type_draw(random), &kernel.shape,
                            accumulates, &counts[0]);
    if (accumulates || draw(random, 6) > 0)
        kernel.a = array_make(random, is_same ? kernel.compute : type_draw(random), &kernel.shape,
                              true, &counts[1]);
    if (!accumulates && draw(random, 4) > 0)
        kernel.b = array_make(random, is_same ? kernel.compute : type_draw(random), &kernel.shape,
                              true, &counts[2]);
    base_check_context("operation %d, compute %d, types %d %d %d", kernel.operation, kernel.compute,
                       kernel.out.type, kernel.a.type, kernel.b.type);
    struct tensor_kernel_pointwise items = kernel;
    items.out = array_copy(&kernel.out, counts[0]);
    const bool is_in_place = kernel.a.data != NULL && kernel.a.type == kernel.out.type &&
                             !accumulates && draw(random, 3) == 0;
    if (is_in_place) {
        free(kernel.a.data);
        kernel.a = kernel.out;
        items.a = items.out;
    }
    tensor_loop_pointwise(&kernel);
    const int64_t count = tensor_kernel_pointwise_items(&items);
    for (int64_t i = 0; i < count; ++i)
        tensor_kernel_pointwise_at(&items, i);
    compare(&kernel.out, &items.out, counts[0]);
    free(items.out.data);
    free(kernel.out.data);
    if (!is_in_place)
        free(kernel.a.data);
    free(kernel.b.data);
}

static void sum_is_that_of_the_items(struct base_random *random) {
    static const int computes[] = {TENSOR_KERNEL_INT64, TENSOR_KERNEL_FLOAT32,
                                   TENSOR_KERNEL_FLOAT64, TENSOR_KERNEL_BFLOAT16};
    const struct tensor_kernel_shape shape = shape_draw(random);
    struct tensor_kernel_sum kernel = {.compute = computes[draw(random, 4)]};
    int64_t count_a, count_out;
    struct tensor_kernel_array a = array_make(random, type_draw(random), &shape, true, &count_a);
    kernel.a = a;
    for (int dim = 0; dim < shape.rank; ++dim) {
        const bool is_reduced = draw(random, 2);
        struct tensor_kernel_shape *part = is_reduced ? &kernel.reduced : &kernel.kept;
        (is_reduced ? &kernel.b : &kernel.a)->strides[part->rank] = a.strides[dim];
        part->sizes[part->rank++] = shape.sizes[dim];
    }
    kernel.out = array_make(random, type_draw(random), &kernel.kept, false, &count_out);
    base_check_context("sum, compute %d, types %d %d", kernel.compute, a.type, kernel.out.type);
    struct tensor_kernel_sum items = kernel;
    items.out = array_copy(&kernel.out, count_out);
    tensor_loop_sum(&kernel);
    const int64_t count = tensor_kernel_sum_items(&items);
    for (int64_t i = 0; i < count; ++i)
        tensor_kernel_sum_at(&items, i);
    compare(&kernel.out, &items.out, count_out);
    free(a.data);
    free(kernel.out.data);
    free(items.out.data);
}

static void product_is_that_of_the_items(struct base_random *random) {
    struct tensor_kernel_product kernel = {.batch = draw(random, 4),
                                           .m = 1 + draw(random, 4),
                                           .n = 1 + draw(random, draw(random, 8) ? 20 : 2000),
                                           .k = draw(random, 20)};
    const struct tensor_kernel_shape of_a = {3, {kernel.batch, kernel.m, kernel.k}},
                                     of_b = {3, {kernel.batch, kernel.k, kernel.n}},
                                     of_out = {3, {kernel.batch, kernel.m, kernel.n}};
    int type;
    do
        type = type_draw(random);
    while (type == TENSOR_KERNEL_BOOL);
    int64_t count_a, count_b, count_out;
    kernel.a = array_make(random, type, &of_a, true, &count_a);
    kernel.b = array_make(random, type, &of_b, true, &count_b);
    kernel.out = array_make(random, type, &of_out, false, &count_out);
    base_check_context("product, type %d", type);
    struct tensor_kernel_product items = kernel;
    items.out = array_copy(&kernel.out, count_out);
    tensor_loop_product(&kernel);
    const int64_t count = tensor_kernel_product_items(&items);
    for (int64_t i = 0; i < count; ++i)
        tensor_kernel_product_at(&items, i);
    compare(&kernel.out, &items.out, count_out);
    free(kernel.a.data);
    free(kernel.b.data);
    free(kernel.out.data);
    free(items.out.data);
}

int main(int argc, char **argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int count = argc > 2 ? atoi(argv[2]) : COUNT_DEFAULT;
    printf("seed %llu, %d kernels\n", (unsigned long long)seed, count);
    for (int i = 0; i < count; ++i) {
        struct base_random random = base_random_init(seed + (uint64_t)i, "loop");
        base_check_context("seed %llu", (unsigned long long)(seed + (uint64_t)i));
        switch (i % 6) {
        case 0:
            sum_is_that_of_the_items(&random);
            break;
        case 1:
            product_is_that_of_the_items(&random);
            break;
        default:
            pointwise_is_that_of_the_items(&random);
            break;
        }
    }
    return 0;
}
