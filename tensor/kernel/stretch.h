// Stretches of an array: so many numbers at equal distances, brought into the type that is computed
// in, and back. For loops.c; the rules are those of number.h.
#ifndef TIDEMARK_TENSOR_KERNEL_STRETCH_H
#define TIDEMARK_TENSOR_KERNEL_STRETCH_H

#include "tensor/kernel/number.h"

#define STRETCH_MAX 1024 // numbers of a stretch: three buffers of doubles take 24 KiB

// One loop for neighbours, which becomes vector code, and one for the others.
#define STRETCH_LOOP(stride, statement)                                                            \
    if ((stride) == 1)                                                                             \
        for (int64_t i = 0, at = 0; i < count; ++i, ++at)                                          \
            statement;                                                                             \
    else                                                                                           \
        for (int64_t i = 0, at = 0; i < count; ++i, at += (stride))                                \
        statement

#define STRETCH_LOAD(name, native, widened, value)                                                 \
    case TENSOR_KERNEL_##name: {                                                                   \
        const native *const from = (const native *)array->data + start;                            \
        STRETCH_LOOP(stride, to[i] = value(widened(from[at])));                                    \
        break;                                                                                     \
    }
#define STRETCH_STORE(name, native, value)                                                         \
    case TENSOR_KERNEL_##name: {                                                                   \
        native *const to = (native *)array->data + start;                                          \
        STRETCH_LOOP(stride, to[at] = (native)value(from[i]));                                     \
        break;                                                                                     \
    }

#define STRETCH_SAME(x)        (x)
#define STRETCH_TO_FLOAT(x)    ((float)(x))
#define STRETCH_TO_DOUBLE(x)   ((double)(x))
#define STRETCH_TO_INTEGER(x)  tensor_kernel_to_integer((double)(x)) // of floating numbers
#define STRETCH_TO_HALF(x)     base_half_from_float((float)(x))
#define STRETCH_TO_BFLOAT16(x) base_bfloat16_from_float((float)(x))
#define STRETCH_IS_NOT_ZERO(x) ((x) != 0)

// From every type, and to every type.
#define STRETCH_LOADS(of_floating, of_integer)                                                     \
    STRETCH_LOAD(FLOAT32, float, STRETCH_SAME, of_floating)                                        \
    STRETCH_LOAD(FLOAT64, double, STRETCH_SAME, of_floating)                                       \
    STRETCH_LOAD(FLOAT16, uint16_t, base_half_to_float, of_floating)                               \
    STRETCH_LOAD(BFLOAT16, uint16_t, base_bfloat16_to_float, of_floating)                          \
    STRETCH_LOAD(INT64, int64_t, STRETCH_SAME, of_integer)                                         \
    STRETCH_LOAD(INT32, int32_t, STRETCH_SAME, of_integer)                                         \
    STRETCH_LOAD(INT16, int16_t, STRETCH_SAME, of_integer)                                         \
    STRETCH_LOAD(INT8, int8_t, STRETCH_SAME, of_integer)                                           \
    STRETCH_LOAD(UINT8, uint8_t, STRETCH_SAME, of_integer)                                         \
    STRETCH_LOAD(BOOL, uint8_t, STRETCH_IS_NOT_ZERO, of_integer)
#define STRETCH_STORES(to_integer)                                                                 \
    STRETCH_STORE(FLOAT32, float, STRETCH_SAME)                                                    \
    STRETCH_STORE(FLOAT64, double, STRETCH_SAME)                                                   \
    STRETCH_STORE(FLOAT16, uint16_t, STRETCH_TO_HALF)                                              \
    STRETCH_STORE(BFLOAT16, uint16_t, STRETCH_TO_BFLOAT16)                                         \
    STRETCH_STORE(INT64, int64_t, to_integer)                                                      \
    STRETCH_STORE(INT32, int32_t, to_integer)                                                      \
    STRETCH_STORE(INT16, int16_t, to_integer)                                                      \
    STRETCH_STORE(INT8, int8_t, to_integer)                                                        \
    STRETCH_STORE(UINT8, uint8_t, to_integer)                                                      \
    STRETCH_STORE(BOOL, uint8_t, STRETCH_IS_NOT_ZERO)

// COUNT numbers of ARRAY from the element START on, STRIDE apart.
static inline void stretch_load_float(const struct tensor_kernel_array *array, int64_t start,
                                      int64_t stride, int64_t count, int compute,
                                      float *restrict to) {
    (void)compute;
    switch (array->type) { STRETCH_LOADS(STRETCH_TO_FLOAT, STRETCH_TO_FLOAT) }
}

static inline void stretch_load_double(const struct tensor_kernel_array *array, int64_t start,
                                       int64_t stride, int64_t count, int compute,
                                       double *restrict to) {
    (void)compute;
    switch (array->type) { STRETCH_LOADS(STRETCH_TO_DOUBLE, STRETCH_TO_DOUBLE) }
}

// Cuts 64-bit numbers to an integer type, and widens them again.
static inline void stretch_wrap(int64_t *numbers, int64_t count, int type) {
#define STRETCH_WRAP(name, native)                                                                 \
    case TENSOR_KERNEL_##name:                                                                     \
        for (int64_t i = 0; i < count; ++i)                                                        \
            numbers[i] = (native)numbers[i];                                                       \
        break;
    switch (type) {
        STRETCH_WRAP(INT32, int32_t)
        STRETCH_WRAP(INT16, int16_t)
        STRETCH_WRAP(INT8, int8_t)
        STRETCH_WRAP(UINT8, uint8_t)
        STRETCH_WRAP(BOOL, bool)
    }
#undef STRETCH_WRAP
}

static inline void stretch_load_integer(const struct tensor_kernel_array *array, int64_t start,
                                        int64_t stride, int64_t count, int compute,
                                        int64_t *restrict to) {
    if (compute == TENSOR_KERNEL_BOOL && tensor_kernel_is_floating(array->type)) {
        for (int64_t i = 0; i < count; ++i)
            to[i] = tensor_kernel_read(array->data, array->type, start + i * stride) != 0;
        return;
    }
    switch (array->type) { STRETCH_LOADS(STRETCH_TO_INTEGER, STRETCH_SAME) }
    if (compute != array->type)
        stretch_wrap(to, count, compute);
}

static inline void stretch_store_float(const struct tensor_kernel_array *array, int64_t start,
                                       int64_t stride, int64_t count, int compute,
                                       const float *restrict from) {
    (void)compute;
    switch (array->type) { STRETCH_STORES(STRETCH_TO_INTEGER) }
}

static inline void stretch_store_double(const struct tensor_kernel_array *array, int64_t start,
                                        int64_t stride, int64_t count, int compute,
                                        const double *restrict from) {
    (void)compute;
    switch (array->type) { STRETCH_STORES(STRETCH_TO_INTEGER) }
}

// Cuts them to the type that is computed in first.
static inline void stretch_store_integer(const struct tensor_kernel_array *array, int64_t start,
                                         int64_t stride, int64_t count, int compute,
                                         int64_t *restrict from) {
    if (compute != array->type)
        stretch_wrap(from, count, compute);
    switch (array->type) { STRETCH_STORES(STRETCH_SAME) }
}

// The stretch itself where its numbers lie as they are computed, one behind the other; else BUFFER,
// with them.
static inline const float *stretch_float(const struct tensor_kernel_array *array, int64_t start,
                                         int64_t stride, int64_t count, int compute,
                                         float *buffer) {
    if (array->type == TENSOR_KERNEL_FLOAT32 && stride == 1)
        return (const float *)array->data + start;
    stretch_load_float(array, start, stride, count, compute, buffer);
    return buffer;
}

static inline const double *stretch_double(const struct tensor_kernel_array *array, int64_t start,
                                           int64_t stride, int64_t count, int compute,
                                           double *buffer) {
    if (array->type == TENSOR_KERNEL_FLOAT64 && stride == 1)
        return (const double *)array->data + start;
    stretch_load_double(array, start, stride, count, compute, buffer);
    return buffer;
}

static inline const int64_t *stretch_integer(const struct tensor_kernel_array *array, int64_t start,
                                             int64_t stride, int64_t count, int compute,
                                             int64_t *buffer) {
    if (array->type == TENSOR_KERNEL_INT64 && compute == TENSOR_KERNEL_INT64 && stride == 1)
        return (const int64_t *)array->data + start;
    stretch_load_integer(array, start, stride, count, compute, buffer);
    return buffer;
}

#endif
