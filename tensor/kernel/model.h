// Rows chosen by an index, dropout, optimisers. See number.h.
#ifndef TIDEMARK_TENSOR_KERNEL_MODEL_H
#define TIDEMARK_TENSOR_KERNEL_MODEL_H

#include "tensor/kernel/loss.h"

// --- Rows by an index: an embedding ---

// out row I = table row index[I], for COUNT indices; any type, bit by bit. The table has table_rows
// rows; an index that is none of them: the device faults.
struct tensor_kernel_gather {
    int64_t count, columns, table_rows;
    struct tensor_kernel_rows out, table; // strides[0]: from row to row
    struct tensor_kernel_array index;     // without gaps
};

TENSOR_KERNEL int64_t tensor_kernel_gather_items(const struct tensor_kernel_gather *kernel) {
    return kernel->count;
}

TENSOR_KERNEL int64_t tensor_kernel_index(const struct tensor_kernel_array *index, int64_t i,
                                          int64_t rows) {
    const int64_t at = tensor_kernel_read_integer(index->data, index->type, i);
    if (at >= 0 && at < rows)
        return at;
    TENSOR_KERNEL_TRAP();
    return -1;
}

TENSOR_KERNEL void tensor_kernel_move(void *to, int64_t to_at, const void *from, int64_t from_at,
                                      int64_t size) {
    switch (size) {
    case 8:
        ((uint64_t *)to)[to_at] = ((const uint64_t *)from)[from_at];
        break;
    case 4:
        ((uint32_t *)to)[to_at] = ((const uint32_t *)from)[from_at];
        break;
    case 2:
        ((uint16_t *)to)[to_at] = ((const uint16_t *)from)[from_at];
        break;
    default:
        ((uint8_t *)to)[to_at] = ((const uint8_t *)from)[from_at];
        break;
    }
}

TENSOR_KERNEL void tensor_kernel_gather_at(const struct tensor_kernel_gather *kernel, int64_t i) {
    const int64_t row = tensor_kernel_index(&kernel->index, i, kernel->table_rows);
    const int64_t size = tensor_kernel_size_of(kernel->out.array.type);
    for (int64_t j = 0; j < kernel->columns && row >= 0; ++j)
        tensor_kernel_move(kernel->out.array.data,
                           i * kernel->out.array.strides[0] + j * kernel->out.step,
                           kernel->table.array.data,
                           row * kernel->table.array.strides[0] + j * kernel->table.step, size);
}

// table row index[I] += a row I, in the order of I: an item is a column, so that equal indices add
// up in the same order always.
struct tensor_kernel_scatter_add {
    int64_t count, columns, table_rows;
    struct tensor_kernel_rows table, a; // floating
    struct tensor_kernel_array index;
};

TENSOR_KERNEL int64_t
tensor_kernel_scatter_add_items(const struct tensor_kernel_scatter_add *kernel) {
    return kernel->columns;
}

TENSOR_KERNEL void tensor_kernel_scatter_add_at(const struct tensor_kernel_scatter_add *kernel,
                                                int64_t column) {
    for (int64_t i = 0; i < kernel->count; ++i) {
        const int64_t row = tensor_kernel_index(&kernel->index, i, kernel->table_rows);
        if (row < 0)
            return;
        const int64_t start = row * kernel->table.array.strides[0];
        tensor_kernel_row_write(
            &kernel->table, start, column,
            tensor_kernel_row_read(&kernel->table, start, column) +
                tensor_kernel_row_read(&kernel->a, i * kernel->a.array.strides[0], column));
    }
}

// --- Dropout ---

// Philox 4x32 with ten rounds, of Salmon, Moraes, Dror and Shaw (SC 2011): four numbers of a
// counter and a key, so that an element's chance is a function of its place alone.
struct tensor_kernel_philox {
    uint32_t numbers[4];
};

TENSOR_KERNEL struct tensor_kernel_philox tensor_kernel_philox(uint64_t key, uint64_t low,
                                                               uint64_t high) {
    struct tensor_kernel_philox state = {
        {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)}};
    uint32_t key_0 = (uint32_t)key, key_1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64_t first = (uint64_t)0xD2511F53u * state.numbers[0];
        const uint64_t second = (uint64_t)0xCD9E8D57u * state.numbers[2];
        state.numbers[0] = (uint32_t)(second >> 32) ^ state.numbers[1] ^ key_0;
        state.numbers[1] = (uint32_t)second;
        state.numbers[2] = (uint32_t)(first >> 32) ^ state.numbers[3] ^ key_1;
        state.numbers[3] = (uint32_t)first;
        key_0 += 0x9E3779B9u;
        key_1 += 0xBB67AE85u;
    }
    return state;
}

// out = a / (1 - probability), or 0 with that probability, by the element's place in the shape. The
// same seed and offset on a gradient: its gradient. Calls of one seed take offsets that are the
// number of elements apart, or more. `mask` (bool, laid out as `out`; no data: not wanted) keeps
// which stayed. An item is four elements, which share what is drawn where the offset is a multiple
// of four.
struct tensor_kernel_dropout {
    struct tensor_kernel_shape shape;
    double probability;
    uint64_t seed, offset;
    struct tensor_kernel_array out, a; // floating
    struct tensor_kernel_array mask;
    struct tensor_kernel_array state; // one int64, added to the offset when it runs; or no data
};

TENSOR_KERNEL int64_t tensor_kernel_dropout_items(const struct tensor_kernel_dropout *kernel) {
    return (tensor_kernel_count(&kernel->shape) + 3) / 4;
}

TENSOR_KERNEL uint64_t tensor_kernel_offset(uint64_t offset,
                                            const struct tensor_kernel_array *state) {
    return state->data != 0
               ? offset + (uint64_t)tensor_kernel_read_integer(state->data, state->type, 0)
               : offset;
}

TENSOR_KERNEL bool tensor_kernel_keeps(const struct tensor_kernel_philox *random, uint64_t place,
                                       double probability) {
    return (double)random->numbers[place % 4] >= probability * 4294967296.0;
}

TENSOR_KERNEL void tensor_kernel_dropout_one(const struct tensor_kernel_dropout *kernel, int64_t i,
                                             bool keeps) {
    const int64_t to = tensor_kernel_place(&kernel->shape, &kernel->out, i);
    const double scale = kernel->probability < 1 ? 1 / (1 - kernel->probability) : 0;
    const double a = tensor_kernel_read(kernel->a.data, kernel->a.type,
                                        tensor_kernel_place(&kernel->shape, &kernel->a, i));
    tensor_kernel_write(kernel->out.data, kernel->out.type, to, keeps ? a * scale : 0);
    if (kernel->mask.data != 0)
        tensor_kernel_write_integer(kernel->mask.data, kernel->mask.type, to, keeps);
}

TENSOR_KERNEL void tensor_kernel_dropout_at(const struct tensor_kernel_dropout *kernel,
                                            int64_t item) {
    const int64_t count = tensor_kernel_count(&kernel->shape);
    const int64_t end = 4 * item + 4 < count ? 4 * item + 4 : count;
    uint64_t place = (uint64_t)(4 * item) + tensor_kernel_offset(kernel->offset, &kernel->state);
    struct tensor_kernel_philox random = tensor_kernel_philox(kernel->seed, place / 4, 0);
    for (int64_t i = 4 * item; i < end; ++i, ++place) {
        if (i > 4 * item && place % 4 == 0)
            random = tensor_kernel_philox(kernel->seed, place / 4, 0);
        tensor_kernel_dropout_one(kernel, i,
                                  tensor_kernel_keeps(&random, place, kernel->probability));
    }
}

// --- Optimisers: arrays of COUNT numbers without gaps, one item each ---

// Adam; decoupled: AdamW. The corrections are those of the step, which counts from 1.
struct tensor_kernel_adam {
    int64_t count;
    double rate, beta1, beta2, epsilon, decay;
    double correction1, correction2; // 1 - beta to the power of the step
    bool is_decoupled;
    struct tensor_kernel_array parameter, gradient, mean, square;
};

TENSOR_KERNEL int64_t tensor_kernel_adam_items(const struct tensor_kernel_adam *kernel) {
    return kernel->count;
}

TENSOR_KERNEL void tensor_kernel_adam_at(const struct tensor_kernel_adam *kernel, int64_t i) {
    double p = tensor_kernel_read(kernel->parameter.data, kernel->parameter.type, i);
    double g = tensor_kernel_read(kernel->gradient.data, kernel->gradient.type, i);
    if (kernel->is_decoupled)
        p -= kernel->rate * kernel->decay * p;
    else
        g += kernel->decay * p;
    const double m = kernel->beta1 * tensor_kernel_read(kernel->mean.data, kernel->mean.type, i) +
                     (1 - kernel->beta1) * g;
    const double v =
        kernel->beta2 * tensor_kernel_read(kernel->square.data, kernel->square.type, i) +
        (1 - kernel->beta2) * g * g;
    const double unbiased_m = m / kernel->correction1;
    const double unbiased_v = v / kernel->correction2;
    tensor_kernel_write(kernel->mean.data, kernel->mean.type, i, m);
    tensor_kernel_write(kernel->square.data, kernel->square.type, i, v);
    tensor_kernel_write(kernel->parameter.data, kernel->parameter.type, i,
                        p - kernel->rate * unbiased_m / (sqrt(unbiased_v) + kernel->epsilon));
}

// The sum of squares of COUNT numbers, in PARTS sums of runs of them; an item is a part.
struct tensor_kernel_squares {
    int64_t count, parts;
    struct tensor_kernel_array out, a; // without gaps
};

TENSOR_KERNEL int64_t tensor_kernel_squares_items(const struct tensor_kernel_squares *kernel) {
    return kernel->parts;
}

TENSOR_KERNEL void tensor_kernel_squares_at(const struct tensor_kernel_squares *kernel,
                                            int64_t part) {
    const int64_t length = (kernel->count + kernel->parts - 1) / kernel->parts;
    const int64_t first = part * length;
    const int64_t end = first + length < kernel->count ? first + length : kernel->count;
    double sum = 0;
    for (int64_t i = first; i < end; ++i) {
        const double x = tensor_kernel_read(kernel->a.data, kernel->a.type, i);
        sum += x * x;
    }
    tensor_kernel_write(kernel->out.data, kernel->out.type, part, sum);
}

// out += factor * a * b, or a / b.
struct tensor_kernel_addc {
    struct tensor_kernel_shape shape;
    bool divides;
    double factor;
    struct tensor_kernel_array out, a, b; // floating
};

TENSOR_KERNEL int64_t tensor_kernel_addc_items(const struct tensor_kernel_addc *kernel) {
    return tensor_kernel_count(&kernel->shape);
}

TENSOR_KERNEL void tensor_kernel_addc_at(const struct tensor_kernel_addc *kernel, int64_t i) {
    const int64_t to = tensor_kernel_place(&kernel->shape, &kernel->out, i);
    const double a = tensor_kernel_read(kernel->a.data, kernel->a.type,
                                        tensor_kernel_place(&kernel->shape, &kernel->a, i));
    const double b = tensor_kernel_read(kernel->b.data, kernel->b.type,
                                        tensor_kernel_place(&kernel->shape, &kernel->b, i));
    const double out = tensor_kernel_read(kernel->out.data, kernel->out.type, to);
    tensor_kernel_write(kernel->out.data, kernel->out.type, to,
                        out + kernel->factor * (kernel->divides ? a / b : a * b));
}

// Stochastic gradient descent; velocity has data where there is momentum.
struct tensor_kernel_sgd {
    int64_t count;
    double rate, momentum, decay;
    struct tensor_kernel_array parameter, gradient, velocity;
};

TENSOR_KERNEL int64_t tensor_kernel_sgd_items(const struct tensor_kernel_sgd *kernel) {
    return kernel->count;
}

TENSOR_KERNEL void tensor_kernel_sgd_at(const struct tensor_kernel_sgd *kernel, int64_t i) {
    const double p = tensor_kernel_read(kernel->parameter.data, kernel->parameter.type, i);
    double g =
        tensor_kernel_read(kernel->gradient.data, kernel->gradient.type, i) + kernel->decay * p;
    if (kernel->velocity.data != 0) {
        g += kernel->momentum * tensor_kernel_read(kernel->velocity.data, kernel->velocity.type, i);
        tensor_kernel_write(kernel->velocity.data, kernel->velocity.type, i, g);
    }
    tensor_kernel_write(kernel->parameter.data, kernel->parameter.type, i, p - kernel->rate * g);
}

#endif
