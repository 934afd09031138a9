// Row by row: softmax, norms, the greatest column. An item is a row; its columns lie `step`
// elements apart. See number.h.
#ifndef TIDEMARK_TENSOR_KERNEL_ROWS_H
#define TIDEMARK_TENSOR_KERNEL_ROWS_H

#include "tensor/kernel/number.h"

// What a kernel calls when an index is none: the device faults.
#ifdef __CUDA_ARCH__
#define TENSOR_KERNEL_TRAP() __trap()
#elif defined(__CUDACC__)
#define TENSOR_KERNEL_TRAP() (void)0
#else
extern _Thread_local bool tensor_kernel_trapped; // trap.c
#define TENSOR_KERNEL_TRAP() (void)(tensor_kernel_trapped = true)
#endif

// Where rows of an array begin: strides of the rows' dimensions; and its columns.
struct tensor_kernel_rows {
    struct tensor_kernel_array array;
    int64_t step;
};

TENSOR_KERNEL int64_t tensor_kernel_row(const struct tensor_kernel_shape *shape,
                                        const struct tensor_kernel_rows *rows, int64_t i) {
    return tensor_kernel_place(shape, &rows->array, i);
}
TENSOR_KERNEL double tensor_kernel_row_read(const struct tensor_kernel_rows *rows, int64_t start,
                                            int64_t column) {
    return tensor_kernel_read(rows->array.data, rows->array.type, start + column * rows->step);
}
TENSOR_KERNEL void tensor_kernel_row_write(const struct tensor_kernel_rows *rows, int64_t start,
                                           int64_t column, double value) {
    tensor_kernel_write(rows->array.data, rows->array.type, start + column * rows->step, value);
}
TENSOR_KERNEL double tensor_kernel_exp(double x, int type) {
    return type == TENSOR_KERNEL_FLOAT64 ? exp(x) : (double)expf((float)x);
}

// --- Softmax ---

// out = softmax(scale * a) along the columns, or its logarithm. Causal: row R of the last of the
// rows' dimensions sees columns 0 to R + shift; the others count as minus infinity (0 in out).
struct tensor_kernel_softmax {
    struct tensor_kernel_shape shape;
    int64_t columns, shift;
    double scale;
    bool is_log, is_causal;
    struct tensor_kernel_rows out, a;
};

TENSOR_KERNEL int64_t tensor_kernel_softmax_items(const struct tensor_kernel_softmax *kernel) {
    return kernel->columns > 0 ? tensor_kernel_count(&kernel->shape) : 0;
}

TENSOR_KERNEL int64_t tensor_kernel_visible(const struct tensor_kernel_shape *shape, int64_t i,
                                            int64_t columns, int64_t shift) {
    const int64_t seen = (shape->rank > 0 ? i % shape->sizes[shape->rank - 1] : 0) + shift + 1;
    return seen < 0 ? 0 : seen < columns ? seen : columns;
}

TENSOR_KERNEL void tensor_kernel_softmax_at(const struct tensor_kernel_softmax *kernel, int64_t i) {
    const int64_t from = tensor_kernel_row(&kernel->shape, &kernel->a, i);
    const int64_t to = tensor_kernel_row(&kernel->shape, &kernel->out, i);
    const int type = kernel->a.array.type;
    const int64_t seen =
        kernel->is_causal ? tensor_kernel_visible(&kernel->shape, i, kernel->columns, kernel->shift)
                          : kernel->columns;
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < seen; ++j) {
        const double x = kernel->scale * tensor_kernel_row_read(&kernel->a, from, j);
        most = x > most || x != x ? x : most;
    }
    for (int64_t j = 0; j < seen; ++j)
        sum += tensor_kernel_exp(kernel->scale * tensor_kernel_row_read(&kernel->a, from, j) - most,
                                 type);
    for (int64_t j = 0; j < seen; ++j) {
        const double x = kernel->scale * tensor_kernel_row_read(&kernel->a, from, j) - most;
        tensor_kernel_row_write(&kernel->out, to, j,
                                kernel->is_log ? x - log(sum) : tensor_kernel_exp(x, type) / sum);
    }
    for (int64_t j = seen; j < kernel->columns; ++j)
        tensor_kernel_row_write(&kernel->out, to, j, kernel->is_log ? -INFINITY : 0);
}

// out = the gradient of a, from that of the result (`gradient`) and the result.
struct tensor_kernel_softmax_gradient {
    struct tensor_kernel_shape shape;
    int64_t columns;
    double scale;
    bool is_log;
    struct tensor_kernel_rows out, gradient, result;
};

TENSOR_KERNEL int64_t
tensor_kernel_softmax_gradient_items(const struct tensor_kernel_softmax_gradient *kernel) {
    return kernel->columns > 0 ? tensor_kernel_count(&kernel->shape) : 0;
}

TENSOR_KERNEL void
tensor_kernel_softmax_gradient_at(const struct tensor_kernel_softmax_gradient *kernel, int64_t i) {
    const int64_t to = tensor_kernel_row(&kernel->shape, &kernel->out, i);
    const int64_t of_g = tensor_kernel_row(&kernel->shape, &kernel->gradient, i);
    const int64_t of_y = tensor_kernel_row(&kernel->shape, &kernel->result, i);
    const int type = kernel->result.array.type;
    double sum = 0;
    for (int64_t j = 0; j < kernel->columns; ++j) {
        const double g = tensor_kernel_row_read(&kernel->gradient, of_g, j);
        sum += kernel->is_log ? g : g * tensor_kernel_row_read(&kernel->result, of_y, j);
    }
    for (int64_t j = 0; j < kernel->columns; ++j) {
        const double g = tensor_kernel_row_read(&kernel->gradient, of_g, j);
        const double y = tensor_kernel_row_read(&kernel->result, of_y, j);
        tensor_kernel_row_write(&kernel->out, to, j,
                                kernel->scale * (kernel->is_log
                                                     ? g - tensor_kernel_exp(y, type) * sum
                                                     : y * (g - sum)));
    }
}

// --- Layer norm and RMS norm ---

// out = (a - mean) * rstd * weight + bias, with the mean and 1 / sqrt(variance + epsilon) of each
// row; RMS: the mean counts as 0. The two are kept, one a row, in arrays without gaps; weight and
// bias have a number a column, one behind the other, or no data.
struct tensor_kernel_norm {
    struct tensor_kernel_shape shape;
    int64_t columns;
    double epsilon;
    bool is_rms;
    struct tensor_kernel_rows out, a;
    struct tensor_kernel_array weight, bias, mean, rstd;
};

TENSOR_KERNEL int64_t tensor_kernel_norm_items(const struct tensor_kernel_norm *kernel) {
    return kernel->columns > 0 ? tensor_kernel_count(&kernel->shape) : 0;
}

TENSOR_KERNEL double tensor_kernel_or(const struct tensor_kernel_array *array, int64_t i,
                                      double without) {
    return array->data != 0 ? tensor_kernel_read(array->data, array->type, i) : without;
}

TENSOR_KERNEL void tensor_kernel_norm_at(const struct tensor_kernel_norm *kernel, int64_t i) {
    const int64_t from = tensor_kernel_row(&kernel->shape, &kernel->a, i);
    const int64_t to = tensor_kernel_row(&kernel->shape, &kernel->out, i);
    const double count = (double)kernel->columns;
    double mean = 0, squares = 0;
    for (int64_t j = 0; j < kernel->columns && !kernel->is_rms; ++j)
        mean += tensor_kernel_row_read(&kernel->a, from, j);
    mean /= count;
    for (int64_t j = 0; j < kernel->columns; ++j) {
        const double x = tensor_kernel_row_read(&kernel->a, from, j) - mean;
        squares += x * x;
    }
    const double rstd = 1 / sqrt(squares / count + kernel->epsilon);
    for (int64_t j = 0; j < kernel->columns; ++j)
        tensor_kernel_row_write(&kernel->out, to, j,
                                (tensor_kernel_row_read(&kernel->a, from, j) - mean) * rstd *
                                        tensor_kernel_or(&kernel->weight, j, 1) +
                                    tensor_kernel_or(&kernel->bias, j, 0));
    if (kernel->mean.data != 0)
        tensor_kernel_write(kernel->mean.data, kernel->mean.type, i, mean);
    if (kernel->rstd.data != 0)
        tensor_kernel_write(kernel->rstd.data, kernel->rstd.type, i, rstd);
}

// out = the gradient of a; mean (none for RMS) and rstd as the norm kept them.
struct tensor_kernel_norm_gradient {
    struct tensor_kernel_shape shape;
    int64_t columns;
    struct tensor_kernel_rows out, gradient, a;
    struct tensor_kernel_array weight, mean, rstd;
};

TENSOR_KERNEL int64_t
tensor_kernel_norm_gradient_items(const struct tensor_kernel_norm_gradient *kernel) {
    return kernel->columns > 0 ? tensor_kernel_count(&kernel->shape) : 0;
}

TENSOR_KERNEL void tensor_kernel_norm_gradient_at(const struct tensor_kernel_norm_gradient *kernel,
                                                  int64_t i) {
    const int64_t from = tensor_kernel_row(&kernel->shape, &kernel->a, i);
    const int64_t of_g = tensor_kernel_row(&kernel->shape, &kernel->gradient, i);
    const int64_t to = tensor_kernel_row(&kernel->shape, &kernel->out, i);
    const double mean = tensor_kernel_or(&kernel->mean, i, 0);
    const double rstd = tensor_kernel_read(kernel->rstd.data, kernel->rstd.type, i);
    const double count = (double)kernel->columns;
    double sum = 0, projected = 0;
    for (int64_t j = 0; j < kernel->columns; ++j) {
        const double g = tensor_kernel_row_read(&kernel->gradient, of_g, j) *
                         tensor_kernel_or(&kernel->weight, j, 1);
        const double x = (tensor_kernel_row_read(&kernel->a, from, j) - mean) * rstd;
        sum += g;
        projected += g * x;
    }
    sum = kernel->mean.data != 0 ? sum / count : 0;
    for (int64_t j = 0; j < kernel->columns; ++j) {
        const double g = tensor_kernel_row_read(&kernel->gradient, of_g, j) *
                         tensor_kernel_or(&kernel->weight, j, 1);
        const double x = (tensor_kernel_row_read(&kernel->a, from, j) - mean) * rstd;
        tensor_kernel_row_write(&kernel->out, to, j, rstd * (g - sum - x * (projected / count)));
    }
}

// The gradients of weight and bias (no data: not wanted); an item is a column.
struct tensor_kernel_norm_weight {
    struct tensor_kernel_shape shape;
    int64_t columns;
    struct tensor_kernel_rows gradient, a;
    struct tensor_kernel_array weight, bias, mean, rstd;
};

TENSOR_KERNEL int64_t
tensor_kernel_norm_weight_items(const struct tensor_kernel_norm_weight *kernel) {
    return kernel->columns;
}

TENSOR_KERNEL void tensor_kernel_norm_weight_at(const struct tensor_kernel_norm_weight *kernel,
                                                int64_t column) {
    const int64_t rows = tensor_kernel_count(&kernel->shape);
    double weight = 0, bias = 0;
    for (int64_t i = 0; i < rows; ++i) {
        const double g = tensor_kernel_row_read(
            &kernel->gradient, tensor_kernel_row(&kernel->shape, &kernel->gradient, i), column);
        const double x = tensor_kernel_row_read(
            &kernel->a, tensor_kernel_row(&kernel->shape, &kernel->a, i), column);
        weight += g * (x - tensor_kernel_or(&kernel->mean, i, 0)) *
                  tensor_kernel_read(kernel->rstd.data, kernel->rstd.type, i);
        bias += g;
    }
    if (kernel->weight.data != 0)
        tensor_kernel_write(kernel->weight.data, kernel->weight.type, column, weight);
    if (kernel->bias.data != 0)
        tensor_kernel_write(kernel->bias.data, kernel->bias.type, column, bias);
}

// --- The greatest ---

// out = the first column that has the row's greatest number; what is no number is greater still.
struct tensor_kernel_argmax {
    struct tensor_kernel_shape shape;
    int64_t columns;
    struct tensor_kernel_rows a;
    struct tensor_kernel_array out; // int64
};

TENSOR_KERNEL int64_t tensor_kernel_argmax_items(const struct tensor_kernel_argmax *kernel) {
    return kernel->columns > 0 ? tensor_kernel_count(&kernel->shape) : 0;
}

TENSOR_KERNEL void tensor_kernel_argmax_at(const struct tensor_kernel_argmax *kernel, int64_t i) {
    const int64_t from = tensor_kernel_row(&kernel->shape, &kernel->a, i);
    const int type = kernel->a.array.type;
    const bool is_floating = tensor_kernel_is_floating(type);
    const int compute = is_floating ? (int)TENSOR_KERNEL_FLOAT64 : (int)TENSOR_KERNEL_INT64;
    struct tensor_kernel_number most = tensor_kernel_load(&kernel->a.array, from, compute);
    int64_t column = 0;
    for (int64_t j = 1; j < kernel->columns; ++j) {
        const struct tensor_kernel_number x =
            tensor_kernel_load(&kernel->a.array, from + j * kernel->a.step, compute);
        const bool is_more = is_floating
                                 ? !(x.floating <= most.floating) && most.floating == most.floating
                                 : x.integer > most.integer;
        if (!is_more)
            continue;
        most = x;
        column = j;
    }
    tensor_kernel_write_integer(kernel->out.data, kernel->out.type,
                                tensor_kernel_place(&kernel->shape, &kernel->out, i), column);
}

#endif
