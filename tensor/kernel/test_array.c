// See test_array.h.
#include "tensor/kernel/test_array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int test_draw(struct base_random *random, int below) {
    return (int)base_random_below(random, (uint64_t)below);
}

static void number_store(void *bytes, int type, int64_t i, double value) {
    switch (type) {
    case TENSOR_KERNEL_UINT8:
        ((uint8_t *)bytes)[i] = (uint8_t)(int64_t)value;
        break;
    case TENSOR_KERNEL_INT8:
        ((int8_t *)bytes)[i] = (int8_t)(int64_t)value;
        break;
    case TENSOR_KERNEL_INT16:
        ((int16_t *)bytes)[i] = (int16_t)(int64_t)value;
        break;
    case TENSOR_KERNEL_INT32:
        ((int32_t *)bytes)[i] = (int32_t)(int64_t)value;
        break;
    case TENSOR_KERNEL_INT64:
        ((int64_t *)bytes)[i] = (int64_t)value;
        break;
    case TENSOR_KERNEL_BOOL:
        ((uint8_t *)bytes)[i] = value != 0;
        break;
    case TENSOR_KERNEL_FLOAT32:
        ((float *)bytes)[i] = (float)value;
        break;
    case TENSOR_KERNEL_FLOAT64:
        ((double *)bytes)[i] = value;
        break;
    case TENSOR_KERNEL_FLOAT16:
        ((uint16_t *)bytes)[i] = base_half_from_float((float)value);
        break;
    default:
        ((uint16_t *)bytes)[i] = base_bfloat16_from_float((float)value);
        break;
    }
}

static double number_load(const void *bytes, int type, int64_t i) {
    switch (type) {
    case TENSOR_KERNEL_UINT8:
    case TENSOR_KERNEL_BOOL:
        return ((const uint8_t *)bytes)[i];
    case TENSOR_KERNEL_INT8:
        return ((const int8_t *)bytes)[i];
    case TENSOR_KERNEL_INT16:
        return ((const int16_t *)bytes)[i];
    case TENSOR_KERNEL_INT32:
        return ((const int32_t *)bytes)[i];
    case TENSOR_KERNEL_INT64:
        return (double)((const int64_t *)bytes)[i];
    case TENSOR_KERNEL_FLOAT32:
        return (double)((const float *)bytes)[i];
    case TENSOR_KERNEL_FLOAT64:
        return ((const double *)bytes)[i];
    case TENSOR_KERNEL_FLOAT16:
        return (double)base_half_to_float(((const uint16_t *)bytes)[i]);
    default:
        return (double)base_bfloat16_to_float(((const uint16_t *)bytes)[i]);
    }
}

double test_round(double value, int type) {
    int64_t bytes;
    number_store(&bytes, type, 0, value);
    return number_load(&bytes, type, 0);
}

double test_epsilon(int type) {
    return type == TENSOR_KERNEL_FLOAT64    ? 0x1p-52
           : type == TENSOR_KERNEL_FLOAT16  ? 0x1p-10
           : type == TENSOR_KERNEL_BFLOAT16 ? 0x1p-7
                                            : 0x1p-23;
}

static size_t byte_count(const struct test_array *array) {
    return (size_t)(array->count * tensor_kernel_size_of(array->array.type));
}

static void upload(const struct test_array *array) {
    void *bytes = malloc(byte_count(array) + 1);
    BASE_CHECK(bytes != NULL);
    for (int64_t i = 0; i < array->count; ++i)
        number_store(bytes, array->array.type, i, array->numbers[i]);
    CUDA(cudaMemcpy(array->array.data, bytes, byte_count(array), cudaMemcpyHostToDevice));
    free(bytes);
}

static void fill(struct test_array *array, struct base_random *random, int low, int high) {
    array->numbers = malloc((size_t)(array->count + 1) * sizeof *array->numbers);
    BASE_CHECK(array->numbers != NULL);
    for (int64_t i = 0; i < array->count; ++i)
        array->numbers[i] =
            test_round((double)(low + test_draw(random, high - low + 1)), array->array.type);
    CUDA(cudaMalloc(&array->array.data, byte_count(array) + 1));
    upload(array);
}

struct test_array test_array_make(struct base_random *random, int type,
                                  const struct tensor_kernel_shape *shape, bool broadcasts, int low,
                                  int high) {
    struct test_array array = {.array = {.type = type}, .count = 1};
    int order[TENSOR_KERNEL_RANK_MAX];
    for (int dim = 0; dim < shape->rank; ++dim)
        order[dim] = dim;
    for (int dim = shape->rank - 1; dim > 0 && test_draw(random, 2) == 0; --dim) {
        const int other = test_draw(random, dim + 1), kept = order[dim];
        order[dim] = order[other];
        order[other] = kept;
    }
    for (int i = shape->rank - 1; i >= 0; --i) {
        const int64_t size = shape->sizes[order[i]];
        array.array.strides[order[i]] = array.count;
        if (broadcasts && test_draw(random, 4) == 0)
            array.array.strides[order[i]] = 0;
        else
            array.count *= (size > 0 ? size : 1) + (test_draw(random, 3) == 0);
    }
    fill(&array, random, low, high);
    return array;
}

struct test_array test_array_flat(struct base_random *random, int type, int64_t count, int low,
                                  int high) {
    struct test_array array = {.array = {.type = type, .strides = {1}}, .count = count};
    fill(&array, random, low, high);
    return array;
}

void test_array_scale(struct test_array *array, double factor) {
    for (int64_t i = 0; i < array->count; ++i)
        array->numbers[i] = test_round(array->numbers[i] * factor, array->array.type);
    upload(array);
}

double *test_array_read(const struct test_array *array) {
    void *bytes = malloc(byte_count(array) + 1);
    double *numbers = malloc((size_t)(array->count + 1) * sizeof *numbers);
    BASE_CHECK(bytes != NULL && numbers != NULL);
    CUDA(cudaMemcpy(bytes, array->array.data, byte_count(array), cudaMemcpyDeviceToHost));
    for (int64_t i = 0; i < array->count; ++i)
        numbers[i] = number_load(bytes, array->array.type, i);
    free(bytes);
    return numbers;
}

void test_array_end(struct test_array *array) {
    free(array->numbers);
    CUDA(cudaFree(array->array.data));
}

void test_array_check(const struct test_array *array, double tolerance) {
    double *numbers = test_array_read(array);
    for (int64_t i = 0; i < array->count; ++i) {
        const double got = numbers[i], want = array->numbers[i];
        const double most =
            tolerance * test_epsilon(array->array.type) * (fabs(want) > 1 ? fabs(want) : 1);
        if (got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= most)
            continue;
        fprintf(stderr, "number %lld: %.17g, want %.17g\n", (long long)i, got, want);
        BASE_CHECK(got == want);
    }
    free(numbers);
}

struct tensor_kernel_shape test_shape(struct base_random *random, int rank_max, int size_max) {
    struct tensor_kernel_shape shape = {.rank = test_draw(random, rank_max + 1)};
    for (int dim = 0; dim < shape.rank; ++dim)
        shape.sizes[dim] = test_draw(random, 20) == 0 ? 0 : 1 + test_draw(random, size_max);
    return shape;
}

int64_t test_place(const int64_t *strides, int rank, const int64_t *index) {
    int64_t place = 0;
    for (int dim = 0; dim < rank; ++dim)
        place += index[dim] * strides[dim];
    return place;
}

bool test_next(const struct tensor_kernel_shape *shape, int64_t *index) {
    for (int dim = shape->rank - 1; dim >= 0; --dim) {
        if (++index[dim] < shape->sizes[dim])
            return true;
        index[dim] = 0;
    }
    return false;
}
