// Losses: cross-entropy of logits, and of their logarithms of probabilities. See number.h.
#ifndef TIDEMARK_TENSOR_KERNEL_LOSS_H
#define TIDEMARK_TENSOR_KERNEL_LOSS_H

#include "tensor/kernel/rows.h"

// --- Cross-entropy ---

// For each row of logits `a`: loss = log of the sum of exponentials (kept in `total`) minus the
// logit of the target; 0 where the target is `ignored`. A target that is no column: the device
// faults. targets, loss, total: one a row, without gaps.
struct tensor_kernel_cross_entropy {
    struct tensor_kernel_shape shape;
    int64_t columns, ignored;
    struct tensor_kernel_rows a;
    struct tensor_kernel_array targets, loss, total;
};

TENSOR_KERNEL int64_t
tensor_kernel_cross_entropy_items(const struct tensor_kernel_cross_entropy *kernel) {
    return kernel->columns > 0 ? tensor_kernel_count(&kernel->shape) : 0;
}

TENSOR_KERNEL void tensor_kernel_cross_entropy_at(const struct tensor_kernel_cross_entropy *kernel,
                                                  int64_t i) {
    const int64_t from = tensor_kernel_row(&kernel->shape, &kernel->a, i);
    const int64_t target =
        tensor_kernel_read_integer(kernel->targets.data, kernel->targets.type, i);
    const bool is_ignored = target == kernel->ignored;
    double most = -INFINITY, sum = 0;
    if (!is_ignored && (target < 0 || target >= kernel->columns)) {
        TENSOR_KERNEL_TRAP();
        return;
    }
    for (int64_t j = 0; j < kernel->columns; ++j) {
        const double x = tensor_kernel_row_read(&kernel->a, from, j);
        most = x > most || x != x ? x : most;
    }
    for (int64_t j = 0; j < kernel->columns; ++j)
        sum += tensor_kernel_exp(tensor_kernel_row_read(&kernel->a, from, j) - most,
                                 kernel->a.array.type);
    const double total = most + log(sum);
    tensor_kernel_write(kernel->total.data, kernel->total.type, i, total);
    tensor_kernel_write(kernel->loss.data, kernel->loss.type, i,
                        is_ignored ? 0 : total - tensor_kernel_row_read(&kernel->a, from, target));
}

// out = the gradient of the logits, from that of each row's loss (stride 0: one for all).
struct tensor_kernel_cross_entropy_gradient {
    struct tensor_kernel_shape shape;
    int64_t columns, ignored, gradient_stride;
    double scale; // of all gradients
    struct tensor_kernel_rows out, a;
    struct tensor_kernel_array targets, total, gradient;
};

TENSOR_KERNEL int64_t tensor_kernel_cross_entropy_gradient_items(
    const struct tensor_kernel_cross_entropy_gradient *kernel) {
    return kernel->columns > 0 ? tensor_kernel_count(&kernel->shape) : 0;
}

TENSOR_KERNEL void
tensor_kernel_cross_entropy_gradient_at(const struct tensor_kernel_cross_entropy_gradient *kernel,
                                        int64_t i) {
    const int64_t from = tensor_kernel_row(&kernel->shape, &kernel->a, i);
    const int64_t to = tensor_kernel_row(&kernel->shape, &kernel->out, i);
    const int64_t target =
        tensor_kernel_read_integer(kernel->targets.data, kernel->targets.type, i);
    const double total = tensor_kernel_read(kernel->total.data, kernel->total.type, i);
    const double g =
        kernel->scale * tensor_kernel_read(kernel->gradient.data, kernel->gradient.type,
                                           i * kernel->gradient_stride);
    for (int64_t j = 0; j < kernel->columns; ++j) {
        const double x = tensor_kernel_row_read(&kernel->a, from, j);
        const double p = tensor_kernel_exp(x - total, kernel->a.array.type);
        tensor_kernel_row_write(&kernel->out, to, j,
                                target == kernel->ignored ? 0 : (p - (j == target)) * g);
    }
}

// --- The same in two steps: of what softmax gives with is_log ---

// loss = minus the sum of a[I][targets[I]] over the rows whose target is not `ignored`, or its
// mean; total = how many they are. One item. A target that is no column: the device faults.
struct tensor_kernel_nll {
    int64_t count, columns, ignored;
    bool is_mean;
    struct tensor_kernel_rows a; // strides[0]: from row to row
    struct tensor_kernel_array targets, loss, total;
};

TENSOR_KERNEL int64_t tensor_kernel_nll_items(const struct tensor_kernel_nll *kernel) {
    (void)kernel;
    return 1;
}

TENSOR_KERNEL void tensor_kernel_nll_at(const struct tensor_kernel_nll *kernel, int64_t item) {
    double sum = 0, total = 0;
    (void)item;
    for (int64_t i = 0; i < kernel->count; ++i) {
        const int64_t target =
            tensor_kernel_read_integer(kernel->targets.data, kernel->targets.type, i);
        if (target == kernel->ignored)
            continue;
        if (target < 0 || target >= kernel->columns) {
            TENSOR_KERNEL_TRAP();
            return;
        }
        sum -= tensor_kernel_row_read(&kernel->a, i * kernel->a.array.strides[0], target);
        total += 1;
    }
    tensor_kernel_write(kernel->loss.data, kernel->loss.type, 0,
                        kernel->is_mean ? sum / total : sum);
    tensor_kernel_write(kernel->total.data, kernel->total.type, 0, total);
}

// out = the gradient of a, from that of the loss and its total.
struct tensor_kernel_nll_gradient {
    int64_t count, columns, ignored;
    bool is_mean;
    struct tensor_kernel_rows out; // strides[0]: from row to row
    struct tensor_kernel_array targets, total, gradient;
};

TENSOR_KERNEL int64_t
tensor_kernel_nll_gradient_items(const struct tensor_kernel_nll_gradient *kernel) {
    return kernel->columns > 0 ? kernel->count : 0;
}

TENSOR_KERNEL void tensor_kernel_nll_gradient_at(const struct tensor_kernel_nll_gradient *kernel,
                                                 int64_t i) {
    const int64_t target =
        tensor_kernel_read_integer(kernel->targets.data, kernel->targets.type, i);
    const double g = tensor_kernel_read(kernel->gradient.data, kernel->gradient.type, 0);
    const double total = tensor_kernel_read(kernel->total.data, kernel->total.type, 0);
    const int64_t to = i * kernel->out.array.strides[0];
    for (int64_t j = 0; j < kernel->columns; ++j)
        tensor_kernel_row_write(
            &kernel->out, to, j,
            j != target || target == kernel->ignored ? 0 : -(kernel->is_mean ? g / total : g));
}

#endif
