// Device code of the operators, once: a kernel is a struct of arguments and a function that does
// the work of one item of its index range. kernels.cu runs the items in grid-stride loops,
// kernels_sim.c in plain loops on the simulated device; both through tensor/kernel/launch.h.
//
// Plain types only: the header is C for one of them and CUDA C++ for the other.
//
// Arrays have strides in elements; 0: the same element again. What is computed: 16-bit numbers as
// float, float as float, double as double, integers as 64-bit ones that wrap round; sums of
// floating numbers in double; each result is rounded once, to the nearest even. So the CPU, the
// simulated device and a GPU agree where sums are exact; elsewhere in all but the last bits of exp,
// tanh and their like.
#ifndef TIDEMARK_TENSOR_KERNEL_NUMBER_H
#define TIDEMARK_TENSOR_KERNEL_NUMBER_H

#include "base/half.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define TENSOR_KERNEL static __host__ __device__ inline
#define TENSOR_KERNEL_INLINE static __host__ __device__ __forceinline__
#else
#define TENSOR_KERNEL static inline
#define TENSOR_KERNEL_INLINE static inline __attribute__((always_inline)) // whatever its size
#endif

#define TENSOR_KERNEL_RANK_MAX 16

// Adds 1 to a counter that items share; what it was. What this item wrote before is there for who
// reads the counter later, and what those wrote who counted earlier is there for this item.
TENSOR_KERNEL int32_t tensor_kernel_count_off(int32_t *counter) {
#ifdef __CUDA_ARCH__
    __threadfence();
    const int32_t before = atomicAdd(counter, 1);
    __threadfence();
    return before;
#else
    return (*counter)++; // the items come one after the other
#endif
}

// In the order of enum tensor_type.
enum tensor_kernel_type {
    TENSOR_KERNEL_UINT8,
    TENSOR_KERNEL_INT8,
    TENSOR_KERNEL_INT16,
    TENSOR_KERNEL_INT32,
    TENSOR_KERNEL_INT64,
    TENSOR_KERNEL_FLOAT16,
    TENSOR_KERNEL_FLOAT32,
    TENSOR_KERNEL_FLOAT64,
    TENSOR_KERNEL_BOOL,
    TENSOR_KERNEL_BFLOAT16,
};

struct tensor_kernel_array {
    void *data; // of the first element; NULL: there is none
    int type;
    int64_t strides[TENSOR_KERNEL_RANK_MAX];
};

struct tensor_kernel_shape {
    int rank;
    int64_t sizes[TENSOR_KERNEL_RANK_MAX];
};

// --- Numbers ---

TENSOR_KERNEL bool tensor_kernel_is_floating(int type) {
    return type == TENSOR_KERNEL_FLOAT16 || type == TENSOR_KERNEL_FLOAT32 ||
           type == TENSOR_KERNEL_FLOAT64 || type == TENSOR_KERNEL_BFLOAT16;
}

TENSOR_KERNEL int64_t tensor_kernel_size_of(int type) {
    switch (type) {
    case TENSOR_KERNEL_INT64:
    case TENSOR_KERNEL_FLOAT64:
        return 8;
    case TENSOR_KERNEL_INT32:
    case TENSOR_KERNEL_FLOAT32:
        return 4;
    case TENSOR_KERNEL_INT16:
    case TENSOR_KERNEL_FLOAT16:
    case TENSOR_KERNEL_BFLOAT16:
        return 2;
    default:
        return 1;
    }
}

// As it is, and cut to a smaller integer type; outside 64 bits the smallest one, as x86 has it.
TENSOR_KERNEL int64_t tensor_kernel_to_integer(double value) {
    return value >= -9223372036854775808.0 && value < 9223372036854775808.0 ? (int64_t)value
                                                                            : INT64_MIN;
}

TENSOR_KERNEL int64_t tensor_kernel_wrap(int64_t value, int type) {
    switch (type) {
    case TENSOR_KERNEL_UINT8:
        return (uint8_t)value;
    case TENSOR_KERNEL_INT8:
        return (int8_t)value;
    case TENSOR_KERNEL_INT16:
        return (int16_t)value;
    case TENSOR_KERNEL_INT32:
        return (int32_t)value;
    case TENSOR_KERNEL_BOOL:
        return value != 0;
    default:
        return value;
    }
}

// Element I of DATA, an array of a floating type.
TENSOR_KERNEL double tensor_kernel_read(const void *data, int type, int64_t i) {
    switch (type) {
    case TENSOR_KERNEL_FLOAT32:
        return (double)((const float *)data)[i];
    case TENSOR_KERNEL_FLOAT64:
        return ((const double *)data)[i];
    case TENSOR_KERNEL_FLOAT16:
        return (double)base_half_to_float(((const uint16_t *)data)[i]);
    default:
        return (double)base_bfloat16_to_float(((const uint16_t *)data)[i]);
    }
}

TENSOR_KERNEL void tensor_kernel_write(void *data, int type, int64_t i, double value) {
    switch (type) {
    case TENSOR_KERNEL_FLOAT32:
        ((float *)data)[i] = (float)value;
        break;
    case TENSOR_KERNEL_FLOAT64:
        ((double *)data)[i] = value;
        break;
    case TENSOR_KERNEL_FLOAT16:
        ((uint16_t *)data)[i] = base_half_from_float((float)value);
        break;
    default:
        ((uint16_t *)data)[i] = base_bfloat16_from_float((float)value);
        break;
    }
}

// Of an integer type, or bool.
TENSOR_KERNEL int64_t tensor_kernel_read_integer(const void *data, int type, int64_t i) {
    switch (type) {
    case TENSOR_KERNEL_INT64:
        return ((const int64_t *)data)[i];
    case TENSOR_KERNEL_INT32:
        return ((const int32_t *)data)[i];
    case TENSOR_KERNEL_INT16:
        return ((const int16_t *)data)[i];
    case TENSOR_KERNEL_INT8:
        return ((const int8_t *)data)[i];
    case TENSOR_KERNEL_UINT8:
        return ((const uint8_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i] != 0;
    }
}

TENSOR_KERNEL void tensor_kernel_write_integer(void *data, int type, int64_t i, int64_t value) {
    switch (type) {
    case TENSOR_KERNEL_INT64:
        ((int64_t *)data)[i] = value;
        break;
    case TENSOR_KERNEL_INT32:
        ((int32_t *)data)[i] = (int32_t)value;
        break;
    case TENSOR_KERNEL_INT16:
        ((int16_t *)data)[i] = (int16_t)value;
        break;
    case TENSOR_KERNEL_INT8:
        ((int8_t *)data)[i] = (int8_t)value;
        break;
    case TENSOR_KERNEL_UINT8:
        ((uint8_t *)data)[i] = (uint8_t)value;
        break;
    default:
        ((uint8_t *)data)[i] = value != 0;
        break;
    }
}

// What a value is in the type that it is computed in: 16-bit numbers stay floats until they are
// stored.
TENSOR_KERNEL double tensor_kernel_round(double value, int compute) {
    return compute == TENSOR_KERNEL_FLOAT64 ? value : (double)(float)value;
}

// A number of either kind.
struct tensor_kernel_number {
    double floating;
    int64_t integer;
};

TENSOR_KERNEL struct tensor_kernel_number tensor_kernel_convert(struct tensor_kernel_number number,
                                                                int from, int to) {
    const bool is_floating = tensor_kernel_is_floating(from);
    if (!is_floating && to == TENSOR_KERNEL_FLOAT64)
        number.floating = (double)number.integer;
    else if (!is_floating && tensor_kernel_is_floating(to))
        number.floating = (double)(float)number.integer; // rounded once
    else if (tensor_kernel_is_floating(to))
        number.floating = tensor_kernel_round(number.floating, to);
    else if (is_floating)
        number.integer = to == TENSOR_KERNEL_BOOL
                             ? number.floating != 0
                             : tensor_kernel_wrap(tensor_kernel_to_integer(number.floating), to);
    else
        number.integer = tensor_kernel_wrap(number.integer, to);
    return number;
}

// Element I of an array as a number of the type COMPUTE.
TENSOR_KERNEL struct tensor_kernel_number
tensor_kernel_load(const struct tensor_kernel_array *array, int64_t i, int compute) {
    struct tensor_kernel_number number = {0, 0};
    if (tensor_kernel_is_floating(array->type))
        number.floating = tensor_kernel_read(array->data, array->type, i);
    else
        number.integer = tensor_kernel_read_integer(array->data, array->type, i);
    return tensor_kernel_convert(number, array->type, compute);
}

TENSOR_KERNEL void tensor_kernel_store(const struct tensor_kernel_array *array, int64_t i,
                                       struct tensor_kernel_number number, int from) {
    number = tensor_kernel_convert(number, from, array->type);
    if (tensor_kernel_is_floating(array->type))
        tensor_kernel_write(array->data, array->type, i, number.floating);
    else
        tensor_kernel_write_integer(array->data, array->type, i, number.integer);
}

// --- Places ---

TENSOR_KERNEL int64_t tensor_kernel_count(const struct tensor_kernel_shape *shape) {
    int64_t count = 1;
    for (int dim = 0; dim < shape->rank; ++dim)
        count *= shape->sizes[dim];
    return count;
}

// Where item I of a shape lies in an array: the last dimension runs fastest.
TENSOR_KERNEL int64_t tensor_kernel_place(const struct tensor_kernel_shape *shape,
                                          const struct tensor_kernel_array *array, int64_t i) {
    int64_t place = 0;
    for (int dim = shape->rank - 1; dim > 0; --dim) {
        place += i % shape->sizes[dim] * array->strides[dim];
        i /= shape->sizes[dim];
    }
    return shape->rank > 0 ? place + i * array->strides[0] : 0;
}

#endif
