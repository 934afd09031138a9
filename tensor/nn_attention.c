// Attention: query by query, and as a chain of operators. See nn.h.
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/nn.h"
#include "tensor/operator.h"

#include <math.h>
#include <string.h>

static enum base_status attention_check(struct tensor query, struct tensor key, struct tensor value,
                                        const struct tensor_attention *options) {
    const struct tensor_geometry *q = &query.impl->geometry, *k = &key.impl->geometry,
                                 *v = &value.impl->geometry;
    if (q->rank < 2 || k->rank < 2 || v->rank < 2)
        return tensor__error("Expected query, key, and value to all be  at least 2 dimensional, "
                             "but got Query dim: %d, Key dim: %d, Value dim: %d instead.",
                             q->rank, k->rank, v->rank);
    if (query.impl->type != key.impl->type || query.impl->type != value.impl->type)
        return tensor__error(
            "Expected query, key, and value to have the same dtype, but got query.dtype: %s "
            "key.dtype: %s and value.dtype: %s instead.",
            tensor_type_native_name(query.impl->type), tensor_type_native_name(key.impl->type),
            tensor_type_native_name(value.impl->type));
    if (options->mask.impl != NULL && options->is_causal)
        return tensor__error("_scaled_dot_product_attention: Explicit attn_mask should not be set "
                             "when is_causal=True");
    if (!(options->probability >= 0 && options->probability <= 1))
        return tensor__error("dropout probability has to be between 0 and 1, but got %g",
                             options->probability);
    if (options->probability > 0 && options->generator == NULL)
        return tensor__error("scaled_dot_product_attention: dropout needs a generator");
    enum base_status status = tensor__check_floating("scaled_dot_product_attention", query.impl);
    if (status == BASE_OK)
        status = tensor__check_same_device(query.impl, key.impl);
    return status != BASE_OK ? status : tensor__check_same_device(query.impl, value.impl);
}

static double scale_of(struct tensor query, const struct tensor_attention *options) {
    const struct tensor_geometry *shape = &query.impl->geometry;
    const int64_t columns = shape->sizes[shape->rank - 1];
    return options->scale != 0 ? options->scale : 1 / sqrt((double)(columns > 0 ? columns : 1));
}

//------------------------------------------------------------------------------------------------
// Query by query

static bool can_fuse(struct tensor query, struct tensor key, struct tensor value,
                     const struct tensor_attention *options) {
    const struct tensor_geometry *q = &query.impl->geometry, *k = &key.impl->geometry,
                                 *v = &value.impl->geometry;
    const int rank = q->rank;
    if (options->mask.impl != NULL || k->rank != rank || v->rank != rank)
        return false;
    for (int dim = 0; dim < rank - 2; dim++)
        if (q->sizes[dim] != k->sizes[dim] || q->sizes[dim] != v->sizes[dim])
            return false;
    return q->sizes[rank - 1] == k->sizes[rank - 1] && k->sizes[rank - 2] == v->sizes[rank - 2] &&
           q->sizes[rank - 1] <= TENSOR_KERNEL_ATTENTION_COLUMNS_MAX &&
           v->sizes[rank - 1] <= TENSOR_KERNEL_ATTENTION_COLUMNS_MAX;
}

enum base_status tensor__attention_make(const struct tensor_impl *like, const int64_t *sizes,
                                        int rank, struct tensor *made) {
    struct tensor_geometry geometry;
    const enum base_status status = tensor_geometry_init(&geometry, sizes, rank);
    if (status != BASE_OK)
        return status;
    if (rank == 4) { // heads inside of the sequence
        geometry.strides[1] = sizes[3];
        geometry.strides[2] = sizes[1] * sizes[3];
    }
    return tensor__impl_alloc(&like->storage->place, like->type, &geometry, &made->impl);
}

static enum base_status fused_write(struct tensor query, struct tensor key, struct tensor value,
                                    struct tensor_kernel_attention *kernel, struct tensor made,
                                    struct tensor total) {
    const struct tensor_model_backend *model;
    struct tensor_device_stream stream;
    const int last = query.impl->geometry.rank - 1;
    enum base_status status = tensor__rows(query.impl, last, &kernel->form.shape, &kernel->query);
    if (status == BASE_OK)
        status = tensor__rows(key.impl, last, NULL, &kernel->key);
    if (status == BASE_OK)
        status = tensor__rows(value.impl, last, NULL, &kernel->value);
    if (status == BASE_OK)
        status = tensor__rows(made.impl, last, NULL, &kernel->out);
    if (status == BASE_OK)
        status = tensor__flat(total.impl, &kernel->total);
    if (status == BASE_OK)
        status = tensor__model(made.impl, &model, &stream);
    return status != BASE_OK ? status : model->attention(kernel, stream);
}

static enum base_status fused_save(struct tape_node *node, struct tensor query, struct tensor key,
                                   struct tensor value, struct tensor made, struct tensor total,
                                   const struct tensor_kernel_attention_form *form) {
    if (node == NULL)
        return BASE_OK;
    ((struct tape_attention_payload *)node->payload)->form = *form;
    enum base_status status = tape_save(node, 0, query.impl);
    if (status == BASE_OK)
        status = tape_save(node, 1, key.impl);
    if (status == BASE_OK)
        status = tape_save(node, 2, value.impl);
    if (status == BASE_OK)
        status = tape_save_result(node, 3, made.impl);
    if (status == BASE_OK)
        status = tape_save_result(node, 4, total.impl);
    return status;
}

static enum base_status fused(struct tensor query, struct tensor key, struct tensor value,
                              const struct tensor_attention *options, struct tensor *result) {
    const struct tensor operands[] = {query, key, value};
    const struct tensor_geometry *q = &query.impl->geometry;
    const int rank = q->rank;
    struct tape_node *node = NULL;
    struct tensor made = {0}, total = {0};
    struct tensor_kernel_attention kernel = {
        .form = {.keys = key.impl->geometry.sizes[rank - 2],
                 .columns = q->sizes[rank - 1],
                 .value_columns = value.impl->geometry.sizes[rank - 1],
                 .shift = options->shift,
                 .is_causal = options->is_causal,
                 .scale = scale_of(query, options),
                 .probability = options->probability}};
    struct tensor_impl *state = NULL;
    int64_t sizes[TENSOR_RANK_MAX];
    memcpy(sizes, q->sizes, (size_t)rank * sizeof sizes[0]);
    sizes[rank - 1] = kernel.form.value_columns;
    enum base_status status =
        tape_begin(&tape_attention, operands, 3, 1, sizeof(struct tape_attention_payload), &node);
    if (status == BASE_OK && options->probability > 0) {
        kernel.form.seed = options->generator->seed;
        kernel.form.offset = options->generator->offset;
        status = tensor__generator_state(query.impl, &state, &kernel.form.state);
    }
    if (status == BASE_OK)
        status = tensor__attention_make(query.impl, sizes, rank, &made);
    if (status == BASE_OK)
        status =
            tensor__make(query.impl, tensor__wide(query.impl->type), q->sizes, rank - 1, &total);
    if (status == BASE_OK)
        status = fused_write(query, key, value, &kernel, made, total);
    if (status == BASE_OK)
        status = fused_save(node, query, key, value, made, total, &kernel.form);
    if (status == BASE_OK && node != NULL && state != NULL)
        status = tape_save(node, 5, state);
    const int64_t queries = total.impl == NULL ? 0 : total.impl->geometry.numel;
    tensor_release(&total);
    status = tape_end(status, node, &made, result);
    if (status == BASE_OK && options->probability > 0)
        options->generator->offset += ((uint64_t)(queries * kernel.form.keys) + 3) / 4 * 4;
    return tensor__explain(status, "scaled_dot_product_attention", operands, 3);
}

//------------------------------------------------------------------------------------------------
// A chain of operators

// Lets go of *self and puts the next of the chain in its place, if that came about.
static enum base_status step(enum base_status status, struct tensor *self, struct tensor next) {
    if (status != BASE_OK)
        return status;
    tensor_release(self);
    *self = next;
    return BASE_OK;
}

static enum base_status scores_mask(struct tensor *scores, struct tensor mask) {
    struct tensor next = {0}, unseen = {0};
    if (mask.impl == NULL)
        return BASE_OK;
    if (mask.impl->type != TENSOR_BOOL)
        return step(tensor_add(*scores, tensor_operand_tensor(mask), tensor_integer(1), &next),
                    scores, next);
    enum base_status status = tensor_eq(mask, tensor_operand_integer(0), &unseen);
    if (status == BASE_OK)
        status = tensor_masked_fill(*scores, unseen, tensor_floating(-INFINITY), &next);
    tensor_release(&unseen);
    return step(status, scores, next);
}

static enum base_status math(struct tensor query, struct tensor key, struct tensor value,
                             const struct tensor_attention *options, struct tensor *result) {
    struct tensor turned = {0}, scores = {0}, next = {0};
    const uint64_t offset = options->probability > 0 ? options->generator->offset : 0;
    enum base_status status = tensor_transpose(key, -2, -1, &turned);
    if (status == BASE_OK)
        status = tensor_matmul(query, turned, &scores);
    tensor_release(&turned);
    // The scale goes into softmax, unless numbers are added in between.
    double scale = scale_of(query, options);
    if (status == BASE_OK && options->mask.impl != NULL) {
        status = step(tensor_mul(scores, tensor_operand_floating(scale), &next), &scores, next);
        scale = 1;
    }
    if (status == BASE_OK)
        status = scores_mask(&scores, options->mask);
    if (status == BASE_OK)
        status = step(tensor__softmax(scores, scores.impl->geometry.rank - 1, scale, false,
                                      options->is_causal, options->shift, &next),
                      &scores, next);
    if (status == BASE_OK && options->probability > 0)
        status = step(tensor_dropout(scores, options->probability, options->generator, &next),
                      &scores, next);
    if (status == BASE_OK)
        status = tensor_matmul(scores, value, result);
    tensor_release(&scores);
    if (status != BASE_OK && options->probability > 0)
        options->generator->offset = offset; // what was dropped is gone
    return tensor__explain(status, "scaled_dot_product_attention",
                           (struct tensor[]){query, key, value}, 3);
}

enum base_status tensor_scaled_dot_product_attention(struct tensor query, struct tensor key,
                                                     struct tensor value,
                                                     const struct tensor_attention *options,
                                                     struct tensor *result) {
    static const struct tensor_attention plain = {0};
    options = options != NULL ? options : &plain;
    const enum base_status status = attention_check(query, key, value, options);
    if (status != BASE_OK)
        return status;
    const bool fits = can_fuse(query, key, value, options);
    if (options->form == TENSOR_ATTENTION_FUSED && !fits)
        return tensor__error("No available kernel. Aborting execution.");
    return fits && options->form != TENSOR_ATTENTION_MATH
               ? fused(query, key, value, options, result)
               : math(query, key, value, options, result);
}
