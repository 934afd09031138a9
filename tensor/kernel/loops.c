// See loops.h. Compiled with -O3.
#include "tensor/kernel/loops.h"

#include "tensor/kernel/stretch.h"

#include <string.h>

//------------------------------------------------------------------------------------------------
// Rows: all but the last dimension, in order

#define OPERANDS 3 // output, a, b

struct rows {
    const struct tensor_kernel_shape *shape;
    const int64_t *strides[OPERANDS];
    int64_t index[TENSOR_KERNEL_RANK_MAX], places[OPERANDS];
    int64_t count; // of a row
};

static const int64_t *strides_of(const struct tensor_kernel_array *array) {
    static const int64_t zeros[TENSOR_KERNEL_RANK_MAX];
    return array->data != NULL ? array->strides : zeros;
}

// False: there is nothing in the shape.
static bool rows_begin(struct rows *rows, const struct tensor_kernel_shape *shape,
                       const struct tensor_kernel_array *out, const struct tensor_kernel_array *a,
                       const struct tensor_kernel_array *b) {
    *rows = (struct rows){.shape = shape,
                          .strides = {strides_of(out), strides_of(a), strides_of(b)},
                          .count = shape->rank > 0 ? shape->sizes[shape->rank - 1] : 1};
    return tensor_kernel_count(shape) > 0;
}

// Back to the first row of dimension DIM, and on in the one outside of it.
static bool rows_carry(struct rows *rows, int dim) {
    for (; dim >= 0; --dim) {
        const bool is_last = ++rows->index[dim] >= rows->shape->sizes[dim];
        const int64_t steps = is_last ? 1 - rows->shape->sizes[dim] : 1;
        for (int operand = 0; operand < OPERANDS; ++operand)
            rows->places[operand] += steps * rows->strides[operand][dim];
        if (!is_last)
            return true;
        rows->index[dim] = 0;
    }
    return false;
}

// The next row; false behind the last one.
static inline bool rows_next(struct rows *rows) {
    const int dim = rows->shape->rank - 2;
    if (dim < 0 || rows->index[dim] + 1 == rows->shape->sizes[dim])
        return rows_carry(rows, dim);
    ++rows->index[dim];
    for (int operand = 0; operand < OPERANDS; ++operand)
        rows->places[operand] += rows->strides[operand][dim];
    return true;
}

// From number to number in a row.
static int64_t rows_stride(const struct rows *rows, int operand) {
    const int rank = rows->shape->rank;
    return rank > 0 ? rows->strides[operand][rank - 1] : 0;
}

//------------------------------------------------------------------------------------------------
// Element by element

// Numbers of the type that is computed in, in a stretch; the output may be an input, number by
// number. ONE: the only number of b.
#define OPERATION_LOOP(compute, name)                                                              \
    case TENSOR_KERNEL_##name:                                                                     \
        if (b == one) {                                                                            \
            const __typeof__(alpha) number = *one;                                                 \
            _Pragma("GCC ivdep") for (int64_t i = 0; i < count; ++i) out[i] =                      \
                compute(TENSOR_KERNEL_##name, a[i], number, alpha);                                \
        } else {                                                                                   \
            _Pragma("GCC ivdep") for (int64_t i = 0; i < count; ++i) out[i] =                      \
                compute(TENSOR_KERNEL_##name, a[i], b[i], alpha);                                  \
        }                                                                                          \
        break;
#define FLOAT_LOOP(name, value) OPERATION_LOOP(tensor_kernel_compute_float, name)
#define DOUBLE_LOOP(name, value) OPERATION_LOOP(tensor_kernel_compute_double, name)
#define INTEGER_LOOP(name, value) OPERATION_LOOP(tensor_kernel_compute_integer, name)

static void compute_float(int operation, const float *a, const float *b, const float *one,
                          float alpha, float *out, int64_t count) {
    switch (operation) { TENSOR_KERNEL_OPERATION_LIST(FLOAT_LOOP) }
}

static void compute_double(int operation, const double *a, const double *b, const double *one,
                           double alpha, double *out, int64_t count) {
    switch (operation) { TENSOR_KERNEL_OPERATION_LIST(DOUBLE_LOOP) }
}

static void compute_integer(int operation, const int64_t *a, const int64_t *b, const int64_t *one,
                            int64_t alpha, int64_t *out, int64_t count) {
    switch (operation) { TENSOR_KERNEL_OPERATION_LIST(INTEGER_LOOP) }
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Of numbers of one type: `native`, as the functions of stretch.h name them by `number`. An output
// that takes neighbours of the type is written at once.
#define POINTWISE(number, native, NATIVE, scalar_of)                                               \
    static void pointwise_##number(const struct tensor_kernel_pointwise *kernel,                   \
                                   struct rows *rows, int64_t length) {                            \
        native buffers[OPERANDS][STRETCH_MAX], one = (native)kernel->scalar.scalar_of;             \
        const native alpha = (native)kernel->alpha.scalar_of;                                      \
        const struct tensor_kernel_array *const out = &kernel->out, *const a = &kernel->a;         \
        const struct tensor_kernel_array *const b = second_of(kernel);                             \
        const int64_t steps[] = {rows_stride(rows, 0), rows_stride(rows, 1),                       \
                                 rows_stride(rows, 2)};                                            \
        const bool is_own = kernel->compute == TENSOR_KERNEL_##NATIVE ||                           \
                            TENSOR_KERNEL_##NATIVE != TENSOR_KERNEL_INT64;                         \
        const bool is_direct = is_own && out->type == TENSOR_KERNEL_##NATIVE && steps[0] == 1;     \
        const bool left_is_direct =                                                                \
            is_own && a->data != NULL && a->type == TENSOR_KERNEL_##NATIVE && steps[1] == 1;       \
        const bool right_is_direct =                                                               \
            is_own && b->data != NULL && b->type == TENSOR_KERNEL_##NATIVE && steps[2] == 1;       \
        for (int64_t i = 0; a->data == NULL && i < length && i < STRETCH_MAX; ++i)                 \
            buffers[1][i] = one;                                                                   \
        do                                                                                         \
            for (int64_t at = 0; at < rows->count; at += length) {                                 \
                const int64_t count = least(length, rows->count - at);                             \
                const int64_t place = rows->places[0] + at * steps[0];                             \
                const native *left = buffers[1], *right = &one;                                    \
                if (left_is_direct)                                                                \
                    left = (const native *)a->data + rows->places[1] + at;                         \
                else if (a->data != NULL)                                                          \
                    stretch_load_##number(a, rows->places[1] + at * steps[1], steps[1], count,     \
                                          kernel->compute, buffers[1]);                            \
                if (right_is_direct)                                                               \
                    right = (const native *)b->data + rows->places[2] + at;                        \
                else if (b->data != NULL && steps[2] == 0)                                         \
                    stretch_load_##number(b, rows->places[2], 1, 1, kernel->compute, &one);        \
                else if (b->data != NULL) {                                                        \
                    stretch_load_##number(b, rows->places[2] + at * steps[2], steps[2], count,     \
                                          kernel->compute, buffers[2]);                            \
                    right = buffers[2];                                                            \
                }                                                                                  \
                native *const result = is_direct ? (native *)out->data + place : buffers[0];       \
                compute_##number(kernel->operation, left, right, &one, alpha, result, count);      \
                if (!is_direct)                                                                    \
                    stretch_store_##number(out, place, steps[0], count, kernel->compute, result);  \
            }                                                                                      \
        while (rows_next(rows));                                                                   \
    }

static const struct tensor_kernel_array *second_of(const struct tensor_kernel_pointwise *kernel) {
    return kernel->operation == TENSOR_KERNEL_ACCUMULATE ? &kernel->out : &kernel->b;
}

POINTWISE(float, float, FLOAT32, floating)
POINTWISE(double, double, FLOAT64, floating)
POINTWISE(integer, int64_t, INT64, integer)

// A copy without conversion moves bits.
static bool moves_only(const struct tensor_kernel_pointwise *kernel) {
    return kernel->operation == TENSOR_KERNEL_COPY && kernel->a.data != NULL &&
           kernel->a.type == kernel->out.type && kernel->a.type == kernel->compute &&
           kernel->a.type != TENSOR_KERNEL_BOOL;
}

#define MOVE(native)                                                                               \
    for (int64_t i = 0; i < rows->count; ++i)                                                      \
    ((native *)to)[i * to_step] = ((const native *)from)[i * from_step]

static void row_move(const struct rows *rows, int64_t size, char *to, const char *from) {
    const int64_t to_step = rows_stride(rows, 0), from_step = rows_stride(rows, 1);
    if (to_step == 1 && from_step == 1)
        memmove(to, from, (size_t)(rows->count * size));
    else if (size == 8)
        MOVE(uint64_t);
    else if (size == 4)
        MOVE(uint32_t);
    else if (size == 2)
        MOVE(uint16_t);
    else
        MOVE(uint8_t);
}

// Whether no buffer is needed, so that stretches can be of any length.
static bool has_long_stretches(const struct tensor_kernel_pointwise *kernel,
                               const struct rows *rows) {
    const int compute = kernel->compute;
    const struct tensor_kernel_array *const out = &kernel->out, *const a = &kernel->a;
    const struct tensor_kernel_array *const b = second_of(kernel);
    if (compute != TENSOR_KERNEL_FLOAT32 && compute != TENSOR_KERNEL_FLOAT64 &&
        compute != TENSOR_KERNEL_INT64)
        return false;
    if (out->type != compute || rows_stride(rows, 0) != 1)
        return false;
    if (kernel->operation != TENSOR_KERNEL_FILL &&
        (a->data == NULL || a->type != compute || rows_stride(rows, 1) != 1))
        return false;
    return b->data == NULL || rows_stride(rows, 2) == 0 ||
           (b->type == compute && rows_stride(rows, 2) == 1);
}

void tensor_loop_pointwise(const struct tensor_kernel_pointwise *kernel) {
    struct rows rows;
    if (!rows_begin(&rows, &kernel->shape, &kernel->out, &kernel->a, second_of(kernel)))
        return;
    if (moves_only(kernel)) {
        const int64_t size = tensor_kernel_size_of(kernel->out.type);
        do
            row_move(&rows, size, (char *)kernel->out.data + rows.places[0] * size,
                     (const char *)kernel->a.data + rows.places[1] * size);
        while (rows_next(&rows));
        return;
    }
    int64_t length = has_long_stretches(kernel, &rows) ? rows.count : STRETCH_MAX;
    // What is added to one element over and over is added one by one.
    if (kernel->operation == TENSOR_KERNEL_ACCUMULATE && rows_stride(&rows, 0) == 0)
        length = 1;
    if (kernel->compute == TENSOR_KERNEL_FLOAT64)
        pointwise_double(kernel, &rows, length);
    else if (tensor_kernel_is_floating(kernel->compute))
        pointwise_float(kernel, &rows, length);
    else
        pointwise_integer(kernel, &rows, length);
}

//------------------------------------------------------------------------------------------------
// Sums: in double or 64-bit integers, in the order of the elements

// Either a stretch of kept elements at once, for whose sums another row is added with each step, or
// one kept element and the stretches that add up to it.
static bool sums_by_stretches(const struct tensor_kernel_sum *kernel, const struct rows *kept,
                              const struct rows *reduced) {
    return kept->count > 1 && (reduced->count == 1 || kernel->reduced.rank == 0 ||
                               rows_stride(kept, 1) <= rows_stride(reduced, 1));
}

#define SUM(number, native, wide)                                                                  \
    static void add_##number(const struct tensor_kernel_sum *kernel, int64_t start, int64_t step,  \
                             struct rows *reduced, bool by_stretches, wide *sums, int64_t count) { \
        native buffer[STRETCH_MAX];                                                                \
        const int64_t other = rows_stride(reduced, 1);                                             \
        do                                                                                         \
            if (by_stretches) {                                                                    \
                for (int64_t row = 0; row < reduced->count; ++row) {                               \
                    const native *const numbers =                                                  \
                        stretch_##number(&kernel->a, start + reduced->places[1] + row * other,     \
                                         step, count, kernel->compute, buffer);                    \
                    for (int64_t i = 0; i < count; ++i)                                            \
                        sums[i] = add_one_##number(sums[i], (wide)numbers[i]);                     \
                }                                                                                  \
            } else {                                                                               \
                for (int64_t at = 0; at < reduced->count; at += STRETCH_MAX) {                     \
                    const int64_t length = least(STRETCH_MAX, reduced->count - at);                \
                    const native *const numbers =                                                  \
                        stretch_##number(&kernel->a, start + reduced->places[1] + at * other,      \
                                         other, length, kernel->compute, buffer);                  \
                    for (int64_t i = 0; i < length; ++i)                                           \
                        sums[0] = add_one_##number(sums[0], (wide)numbers[i]);                     \
                }                                                                                  \
            }                                                                                      \
        while (rows_next(reduced));                                                                \
    }                                                                                              \
                                                                                                   \
    static void sum_##number(const struct tensor_kernel_sum *kernel, struct rows *kept) {          \
        struct tensor_kernel_array reduced_array = kernel->b;                                      \
        struct rows reduced;                                                                       \
        wide sums[STRETCH_MAX];                                                                    \
        reduced_array.data = kernel->a.data;                                                       \
        do {                                                                                       \
            bool has_any =                                                                         \
                rows_begin(&reduced, &kernel->reduced, &nothing, &reduced_array, &nothing);        \
            const bool by_stretches = sums_by_stretches(kernel, kept, &reduced);                   \
            const int64_t length = by_stretches ? STRETCH_MAX : 1, step = rows_stride(kept, 1);    \
            for (int64_t at = 0; at < kept->count; at += length) {                                 \
                const int64_t count = least(length, kept->count - at);                             \
                memset(sums, 0, (size_t)count * sizeof sums[0]);                                   \
                has_any = has_any && rows_begin(&reduced, &kernel->reduced, &nothing,              \
                                                &reduced_array, &nothing);                         \
                if (has_any)                                                                       \
                    add_##number(kernel, kept->places[1] + at * step, step, &reduced,              \
                                 by_stretches, sums, count);                                       \
                sums_store_##number(&kernel->out, kept->places[0] + at * rows_stride(kept, 0),     \
                                    rows_stride(kept, 0), count, kernel->compute, sums);           \
            }                                                                                      \
        } while (rows_next(kept));                                                                 \
    }

static const struct tensor_kernel_array nothing; // an operand that is not there

static double add_one_float(double sum, double number) { return sum + number; }
static double add_one_double(double sum, double number) { return sum + number; }
static int64_t add_one_integer(int64_t sum, int64_t number) {
    return (int64_t)((uint64_t)sum + (uint64_t)number);
}

static void sums_store_double(const struct tensor_kernel_array *out, int64_t start, int64_t stride,
                              int64_t count, int compute, double *sums) {
    stretch_store_double(out, start, stride, count, compute, sums);
}
static void sums_store_float(const struct tensor_kernel_array *out, int64_t start, int64_t stride,
                             int64_t count, int compute, double *sums) {
    for (int64_t i = 0; i < count; ++i)
        sums[i] = tensor_kernel_round(sums[i], compute);
    stretch_store_double(out, start, stride, count, compute, sums);
}
static void sums_store_integer(const struct tensor_kernel_array *out, int64_t start, int64_t stride,
                               int64_t count, int compute, int64_t *sums) {
    stretch_store_integer(out, start, stride, count, compute, sums);
}

SUM(float, float, double)
SUM(double, double, double)
SUM(integer, int64_t, int64_t)

void tensor_loop_sum(const struct tensor_kernel_sum *kernel) {
    struct rows kept;
    if (!rows_begin(&kept, &kernel->kept, &kernel->out, &kernel->a, &nothing))
        return;
    if (kernel->compute == TENSOR_KERNEL_FLOAT64)
        sum_double(kernel, &kept);
    else if (tensor_kernel_is_floating(kernel->compute))
        sum_float(kernel, &kept);
    else
        sum_integer(kernel, &kept);
}

//------------------------------------------------------------------------------------------------
// Products: a row of the result at once, to which each step adds a row of the right matrix

#define PRODUCT(number, native, wide)                                                              \
    static void product_row_##number(const struct tensor_kernel_product *kernel, int64_t a,        \
                                     int64_t b, int64_t count, int compute, wide *sums) {          \
        native left = 0, buffer[STRETCH_MAX];                                                      \
        memset(sums, 0, (size_t)count * sizeof sums[0]);                                           \
        for (int64_t k = 0; k < kernel->k; ++k) {                                                  \
            const native *const right =                                                            \
                stretch_##number(&kernel->b, b + k * kernel->b.strides[1], kernel->b.strides[2],   \
                                 count, compute, buffer);                                          \
            stretch_load_##number(&kernel->a, a + k * kernel->a.strides[2], 1, 1, compute, &left); \
            for (int64_t i = 0; i < count; ++i)                                                    \
                sums[i] =                                                                          \
                    add_one_##number(sums[i], multiply_##number((wide)left, (wide)right[i]));      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void product_##number(const struct tensor_kernel_product *kernel, int compute) {        \
        const int64_t *const out = kernel->out.strides, *const a = kernel->a.strides;              \
        wide sums[STRETCH_MAX];                                                                    \
        for (int64_t row = 0; row < kernel->batch * kernel->m; ++row)                              \
            for (int64_t at = 0; at < kernel->n; at += STRETCH_MAX) {                              \
                const int64_t count = least(STRETCH_MAX, kernel->n - at);                          \
                const int64_t batch = row / kernel->m, i = row % kernel->m;                        \
                product_row_##number(kernel, batch *a[0] + i * a[1],                               \
                                     batch * kernel->b.strides[0] + at * kernel->b.strides[2],     \
                                     count, compute, sums);                                        \
                sums_store_##number(&kernel->out, batch *out[0] + i * out[1] + at * out[2],        \
                                    out[2], count, compute, sums);                                 \
            }                                                                                      \
    }

static double multiply_float(double a, double b) { return a * b; }
static double multiply_double(double a, double b) { return a * b; }
static int64_t multiply_integer(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

PRODUCT(float, float, double)
PRODUCT(double, double, double)
PRODUCT(integer, int64_t, int64_t)

void tensor_loop_product(const struct tensor_kernel_product *kernel) {
    const int type = kernel->out.type;
    if (type == TENSOR_KERNEL_FLOAT64)
        product_double(kernel, type);
    else if (tensor_kernel_is_floating(type))
        product_float(kernel, TENSOR_KERNEL_FLOAT32);
    else
        product_integer(kernel, type);
}
