// Attention: softmax(scale * Q K') V for each of a batch, without the matrix of scores in memory:
// what is kept is the logarithm of each row's sum of exponentials, from which the gradients make
// the probabilities again (Dao et al., FlashAttention, NeurIPS 2022). See number.h.
#ifndef TIDEMARK_TENSOR_KERNEL_ATTENTION_H
#define TIDEMARK_TENSOR_KERNEL_ATTENTION_H

#include "tensor/kernel/model.h"

// Of a query, key or value: a thread keeps that many numbers.
#define TENSOR_KERNEL_ATTENTION_COLUMNS_MAX 256

// What all three kernels are told. Causal: query R sees keys 0 to R + shift. Dropout of a
// probability goes by its place in [batch, queries, keys].
struct tensor_kernel_attention_form {
    struct tensor_kernel_shape shape; // of queries: the batch's dimensions, then one of queries
    int64_t keys, columns, value_columns, shift;
    bool is_causal;
    double scale, probability;
    uint64_t seed, offset;
    struct tensor_kernel_array state; // as dropout's
};

// Rows of queries, keys, values: strides of the batch's dimensions, then from row to row.
TENSOR_KERNEL int64_t tensor_kernel_attention_place(const struct tensor_kernel_attention_form *form,
                                                    const struct tensor_kernel_rows *rows,
                                                    int64_t batch, int64_t row) {
    int64_t place = row * rows->array.strides[form->shape.rank - 1];
    for (int dim = form->shape.rank - 2; dim >= 0; --dim) {
        place += batch % form->shape.sizes[dim] * rows->array.strides[dim];
        batch /= form->shape.sizes[dim];
    }
    return place;
}

TENSOR_KERNEL double tensor_kernel_dot(const double *a, const struct tensor_kernel_rows *b,
                                       int64_t at, int64_t columns) {
    double sum = 0;
    for (int64_t c = 0; c < columns; ++c)
        sum += a[c] * tensor_kernel_row_read(b, at, c);
    return sum;
}

TENSOR_KERNEL void tensor_kernel_take(double *to, const struct tensor_kernel_rows *rows, int64_t at,
                                      int64_t columns) {
    for (int64_t c = 0; c < columns; ++c)
        to[c] = tensor_kernel_row_read(rows, at, c);
}

// How many keys a query sees.
TENSOR_KERNEL int64_t tensor_kernel_attention_seen(const struct tensor_kernel_attention_form *form,
                                                   int64_t query) {
    const int64_t seen = form->is_causal ? query + form->shift + 1 : form->keys;
    return seen < 0 ? 0 : seen < form->keys ? seen : form->keys;
}

// What dropout makes of a probability: 0, or so many times itself. ITEM: the query's in the batch.
TENSOR_KERNEL double tensor_kernel_attention_factor(const struct tensor_kernel_attention_form *form,
                                                    int64_t item, int64_t key) {
    const double p = form->probability;
    if (p == 0)
        return 1;
    const uint64_t place =
        (uint64_t)(item * form->keys + key) + tensor_kernel_offset(form->offset, &form->state);
    const struct tensor_kernel_philox random = tensor_kernel_philox(form->seed, place / 4, 0);
    return tensor_kernel_keeps(&random, place, p) ? 1 / (1 - p) : 0;
}

// An item is a query. total: one a query, without gaps.
struct tensor_kernel_attention {
    struct tensor_kernel_attention_form form;
    struct tensor_kernel_rows out, query, key, value;
    struct tensor_kernel_array total;
};

TENSOR_KERNEL int64_t tensor_kernel_attention_items(const struct tensor_kernel_attention *kernel) {
    return tensor_kernel_count(&kernel->form.shape);
}

TENSOR_KERNEL void tensor_kernel_attention_at(const struct tensor_kernel_attention *kernel,
                                              int64_t i) {
    const struct tensor_kernel_attention_form *form = &kernel->form;
    const int64_t queries = form->shape.sizes[form->shape.rank - 1];
    const int64_t batch = i / queries, row = i % queries;
    const int64_t seen = tensor_kernel_attention_seen(form, row);
    const int64_t to = tensor_kernel_attention_place(form, &kernel->out, batch, row);
    const int type = kernel->query.array.type;
    double query[TENSOR_KERNEL_ATTENTION_COLUMNS_MAX], out[TENSOR_KERNEL_ATTENTION_COLUMNS_MAX];
    double most = -INFINITY, sum = 0;
    tensor_kernel_take(query, &kernel->query,
                       tensor_kernel_attention_place(form, &kernel->query, batch, row),
                       form->columns);
    for (int64_t c = 0; c < form->value_columns; ++c)
        out[c] = 0;
    for (int64_t j = 0; j < seen; ++j) {
        const int64_t of_key = tensor_kernel_attention_place(form, &kernel->key, batch, j);
        const int64_t of_value = tensor_kernel_attention_place(form, &kernel->value, batch, j);
        const double score =
            form->scale * tensor_kernel_dot(query, &kernel->key, of_key, form->columns);
        if (score > most) { // what was added up so far was relative to a smaller one
            const double factor = tensor_kernel_exp(most - score, type);
            sum *= factor;
            for (int64_t c = 0; c < form->value_columns; ++c)
                out[c] *= factor;
            most = score;
        }
        const double weight = tensor_kernel_exp(score - most, type);
        const double kept = weight * tensor_kernel_attention_factor(form, i, j);
        sum += weight;
        for (int64_t c = 0; c < form->value_columns; ++c)
            out[c] += kept * tensor_kernel_row_read(&kernel->value, of_value, c);
    }
    for (int64_t c = 0; c < form->value_columns; ++c)
        tensor_kernel_row_write(&kernel->out, to, c, seen > 0 ? out[c] / sum : 0);
    tensor_kernel_write(kernel->total.data, kernel->total.type, i, most + log(sum));
}

// The gradient of the queries, from that of the result, the result and the totals; and `shares`,
// one a query: the sum of the result times its gradient, which the gradients of the keys need.
struct tensor_kernel_attention_query {
    struct tensor_kernel_attention_form form;
    struct tensor_kernel_rows of_query, gradient, out, query, key, value;
    struct tensor_kernel_array total, shares;
};

TENSOR_KERNEL int64_t
tensor_kernel_attention_query_items(const struct tensor_kernel_attention_query *kernel) {
    return tensor_kernel_count(&kernel->form.shape);
}

TENSOR_KERNEL void
tensor_kernel_attention_query_at(const struct tensor_kernel_attention_query *kernel, int64_t i) {
    const struct tensor_kernel_attention_form *form = &kernel->form;
    const int64_t queries = form->shape.sizes[form->shape.rank - 1];
    const int64_t batch = i / queries, row = i % queries;
    const int64_t seen = tensor_kernel_attention_seen(form, row);
    const int64_t to = tensor_kernel_attention_place(form, &kernel->of_query, batch, row);
    const double total = tensor_kernel_read(kernel->total.data, kernel->total.type, i);
    double query[TENSOR_KERNEL_ATTENTION_COLUMNS_MAX], of_out[TENSOR_KERNEL_ATTENTION_COLUMNS_MAX];
    double of_query[TENSOR_KERNEL_ATTENTION_COLUMNS_MAX];
    tensor_kernel_take(query, &kernel->query,
                       tensor_kernel_attention_place(form, &kernel->query, batch, row),
                       form->columns);
    tensor_kernel_take(of_out, &kernel->gradient,
                       tensor_kernel_attention_place(form, &kernel->gradient, batch, row),
                       form->value_columns);
    const double share = tensor_kernel_dot(
        of_out, &kernel->out, tensor_kernel_attention_place(form, &kernel->out, batch, row),
        form->value_columns);
    for (int64_t c = 0; c < form->columns; ++c)
        of_query[c] = 0;
    for (int64_t j = 0; j < seen; ++j) {
        const int64_t of_key = tensor_kernel_attention_place(form, &kernel->key, batch, j);
        const int64_t of_value = tensor_kernel_attention_place(form, &kernel->value, batch, j);
        const double score =
            form->scale * tensor_kernel_dot(query, &kernel->key, of_key, form->columns);
        const double p = tensor_kernel_exp(score - total, kernel->query.array.type);
        const double of_p =
            tensor_kernel_dot(of_out, &kernel->value, of_value, form->value_columns) *
            tensor_kernel_attention_factor(form, i, j);
        for (int64_t c = 0; c < form->columns; ++c)
            of_query[c] +=
                form->scale * p * (of_p - share) * tensor_kernel_row_read(&kernel->key, of_key, c);
    }
    for (int64_t c = 0; c < form->columns; ++c)
        tensor_kernel_row_write(&kernel->of_query, to, c, of_query[c]);
    tensor_kernel_write(kernel->shares.data, kernel->shares.type, i, share);
}

// The gradients of the keys and values; an item is a key.
struct tensor_kernel_attention_key {
    struct tensor_kernel_attention_form form;
    struct tensor_kernel_rows of_key, of_value, gradient, query, key, value;
    struct tensor_kernel_array total, shares;
};

TENSOR_KERNEL int64_t
tensor_kernel_attention_key_items(const struct tensor_kernel_attention_key *kernel) {
    int64_t count = kernel->form.keys;
    for (int dim = 0; dim < kernel->form.shape.rank - 1; ++dim)
        count *= kernel->form.shape.sizes[dim];
    return count;
}

TENSOR_KERNEL void tensor_kernel_attention_key_at(const struct tensor_kernel_attention_key *kernel,
                                                  int64_t i) {
    const struct tensor_kernel_attention_form *form = &kernel->form;
    const int64_t queries = form->shape.sizes[form->shape.rank - 1];
    const int64_t batch = i / form->keys, row = i % form->keys;
    double key[TENSOR_KERNEL_ATTENTION_COLUMNS_MAX], value[TENSOR_KERNEL_ATTENTION_COLUMNS_MAX];
    double of_key[TENSOR_KERNEL_ATTENTION_COLUMNS_MAX],
        of_value[TENSOR_KERNEL_ATTENTION_COLUMNS_MAX];
    tensor_kernel_take(key, &kernel->key,
                       tensor_kernel_attention_place(form, &kernel->key, batch, row),
                       form->columns);
    tensor_kernel_take(value, &kernel->value,
                       tensor_kernel_attention_place(form, &kernel->value, batch, row),
                       form->value_columns);
    for (int64_t c = 0; c < form->columns; ++c)
        of_key[c] = 0;
    for (int64_t c = 0; c < form->value_columns; ++c)
        of_value[c] = 0;
    for (int64_t r = 0; r < queries; ++r) {
        const int64_t item = batch * queries + r;
        if (row >= tensor_kernel_attention_seen(form, r))
            continue;
        const int64_t of_query = tensor_kernel_attention_place(form, &kernel->query, batch, r);
        const int64_t of_out = tensor_kernel_attention_place(form, &kernel->gradient, batch, r);
        const double score =
            form->scale * tensor_kernel_dot(key, &kernel->query, of_query, form->columns);
        const double total = tensor_kernel_read(kernel->total.data, kernel->total.type, item);
        const double share = tensor_kernel_read(kernel->shares.data, kernel->shares.type, item);
        const double p = tensor_kernel_exp(score - total, kernel->query.array.type);
        const double factor = tensor_kernel_attention_factor(form, item, row);
        const double of_p =
            tensor_kernel_dot(value, &kernel->gradient, of_out, form->value_columns) * factor;
        for (int64_t c = 0; c < form->value_columns; ++c)
            of_value[c] += p * factor * tensor_kernel_row_read(&kernel->gradient, of_out, c);
        for (int64_t c = 0; c < form->columns; ++c)
            of_key[c] += form->scale * p * (of_p - share) *
                         tensor_kernel_row_read(&kernel->query, of_query, c);
    }
    const int64_t to_key = tensor_kernel_attention_place(form, &kernel->of_key, batch, row);
    const int64_t to_value = tensor_kernel_attention_place(form, &kernel->of_value, batch, row);
    for (int64_t c = 0; c < form->columns; ++c)
        tensor_kernel_row_write(&kernel->of_key, to_key, c, of_key[c]);
    for (int64_t c = 0; c < form->value_columns; ++c)
        tensor_kernel_row_write(&kernel->of_value, to_value, c, of_value[c]);
}

#endif
