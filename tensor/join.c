// Concatenation. See tensor.h.
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/operator.h"
#include "tensor/view.h"

#include <stdlib.h>
#include <string.h>

struct join {
    int dim;
    int64_t sizes[TENSOR_RANK_MAX];
    int rank;
    enum tensor_type type;
    enum tensor_format format;
};

// One-dimensional empties are left out whatever the others look like, as ever.
static bool is_skipped(struct tensor tensor) {
    return tensor.impl->geometry.rank == 1 && tensor.impl->geometry.numel == 0;
}

static enum base_status join_plan(const struct tensor *tensors, int count, int64_t dim,
                                  struct join *join) {
    if (count <= 0)
        return tensor__error("expected a non-empty list of Tensors");
    const struct tensor_geometry *first = NULL;
    struct tensor_promotion promotion = tensor_promotion_init();
    for (int index = 0; index < count; index++) {
        const struct tensor_geometry *geometry = &tensors[index].impl->geometry;
        if (geometry->rank == 0)
            return tensor__error("zero-dimensional tensor (at position %d) cannot be concatenated",
                                 index);
        tensor_promotion_add(&promotion, tensors[index].impl->type, geometry->rank);
        if (first == NULL && !is_skipped(tensors[index])) {
            first = geometry;
            join->format = tensor_geometry_suggested(geometry);
        }
    }
    join->type = tensor_promotion_result(&promotion);
    if (first == NULL) { // nothing but empties
        first = &tensors[0].impl->geometry;
        join->format = TENSOR_CONTIGUOUS;
    }
    const enum base_status status = tensor_wrap_dim(dim, first->rank, true, &join->dim);
    if (status != BASE_OK)
        return status;
    join->rank = first->rank;
    memcpy(join->sizes, first->sizes, (size_t)first->rank * sizeof first->sizes[0]);
    join->sizes[join->dim] = 0;
    for (int index = 0; index < count; index++) {
        const struct tensor_geometry *geometry = &tensors[index].impl->geometry;
        if (is_skipped(tensors[index]))
            continue;
        if (geometry->rank != join->rank)
            return tensor__error("Tensors must have same number of dimensions: got %d and %d",
                                 join->rank, geometry->rank);
        for (int place = 0; place < join->rank; place++)
            if (place != join->dim && geometry->sizes[place] != join->sizes[place])
                return tensor__error("Sizes of tensors must match except in dimension %d. Expected "
                                     "size %lld but got "
                                     "size %lld for tensor number %d in the list.",
                                     join->dim, (long long)join->sizes[place],
                                     (long long)geometry->sizes[place], index);
        if (__builtin_add_overflow(join->sizes[join->dim], geometry->sizes[join->dim],
                                   &join->sizes[join->dim]))
            return tensor__error("numel: integer multiplication overflow");
        if (tensor_geometry_suggested(geometry) != join->format)
            join->format = TENSOR_CONTIGUOUS;
    }
    return BASE_OK;
}

// Every tensor into its part of OUT.
static enum base_status parts_copy(struct tensor_impl *out, const struct join *join,
                                   const struct tensor *tensors, int count) {
    int64_t start = 0;
    enum base_status status = BASE_OK;
    for (int index = 0; index < count && status == BASE_OK; index++) {
        if (is_skipped(tensors[index]))
            continue;
        const int64_t length = tensors[index].impl->geometry.sizes[join->dim];
        const struct tensor_view_call call = {.kind = TENSOR_VIEW_SLICE,
                                              .dim = join->dim,
                                              .start = start,
                                              .end = start + length,
                                              .step = 1};
        struct tensor_impl part = *out; // borrowed
        status = tensor_view_apply(&call, &out->geometry, &part.geometry);
        if (status == BASE_OK)
            status = tensor__check_same_device(out, tensors[index].impl);
        if (status == BASE_OK)
            status = tensor__copy_elements(&part, tensors[index].impl);
        start += length;
    }
    return status;
}

// Node of COUNT inputs; lengths along the dimension in the payload.
static enum base_status join_begin(const struct tape_formula *formula, const struct tensor *tensors,
                                   int count, struct tape_node **node) {
    return tape_begin(formula, tensors, count, 1,
                      sizeof(struct tape_join_payload) + (size_t)count * sizeof(int64_t), node);
}

static enum base_status join_make(const struct join *join, const struct tensor *tensors, int count,
                                  struct tensor *result) {
    struct tensor made;
    enum base_status status = tensor_empty(&tensors[0].impl->storage->place, join->type,
                                           join->sizes, join->rank, join->format, &made);
    if (status != BASE_OK)
        return status;
    status = parts_copy(made.impl, join, tensors, count);
    if (status == BASE_OK)
        *result = made;
    else
        tensor_release(&made);
    return status;
}

enum base_status tensor_cat(const struct tensor *tensors, int count, int64_t dim,
                            struct tensor *result) {
    struct tape_node *node = NULL;
    struct join join;
    struct tensor made = {0};
    enum base_status status = join_begin(&tape_cat, tensors, count, &node);
    if (status == BASE_OK)
        status = join_plan(tensors, count, dim, &join);
    if (status == BASE_OK)
        status = join_make(&join, tensors, count, &made);
    if (status == BASE_OK && node != NULL) {
        struct tape_join_payload *payload = node->payload;
        payload->dim = join.dim;
        for (int index = 0; index < count; index++)
            payload->lengths[index] =
                is_skipped(tensors[index]) ? -1 : tensor_size(tensors[index], join.dim);
    }
    return tensor__explain(tape_end(status, node, &made, result), "cat", tensors, count);
}

enum base_status tensor_cat_out(struct tensor out, const struct tensor *tensors, int count,
                                int64_t dim) {
    struct join join;
    struct tensor_geometry geometry;
    enum base_status status = tensor__check_out("cat", out, tensors, count);
    if (status == BASE_OK)
        status = join_plan(tensors, count, dim, &join);
    if (status == BASE_OK)
        status = tensor_geometry_init(&geometry, join.sizes, join.rank);
    if (status == BASE_OK && !tensor_type_can_cast(join.type, out.impl->type))
        status =
            tensor__error("torch.cat(): input types can't be cast to the desired output type %s",
                          tensor_type_scalar_name(out.impl->type));
    if (status == BASE_OK)
        status = tensor__check_no_internal_overlap(out.impl);
    for (int index = 0; index < count && status == BASE_OK; index++) {
        status = tensor__check_same_device(out.impl, tensors[index].impl);
        // Checked before the output is resized, which PyTorch does first.
        if (status == BASE_OK)
            status = tensor__check_no_overlap(out.impl, &geometry, tensors[index].impl);
    }
    if (status == BASE_OK)
        status = tensor__impl_check_writable(out.impl);
    if (status == BASE_OK)
        status = tensor__resize_output(out.impl, &geometry);
    if (status == BASE_OK)
        status = parts_copy(out.impl, &join, tensors, count);
    if (status == BASE_OK)
        tensor__impl_bump(out.impl);
    return status;
}

// A concatenation along DIM, then that dimension cut in two; a last dimension of its own comes of
// inputs that have a 1 there.
static enum base_status stack_elements(const struct tensor *tensors, int count, int dim,
                                       struct tensor *result) {
    const struct tensor_geometry *first = &tensors[0].impl->geometry;
    struct tensor_impl *seen = calloc((size_t)count, sizeof *seen);
    struct tensor *handles = calloc((size_t)count, sizeof *handles);
    struct tensor joined = {0};
    struct join join;
    enum base_status status = BASE_OK;
    if (seen == NULL || handles == NULL)
        status = base_status_set(BASE_HOST_MEMORY, "no host memory to stack %d tensors", count);
    const struct tensor_view_call call = {.kind = TENSOR_VIEW_UNSQUEEZE, .dim = dim};
    for (int index = 0; index < count && status == BASE_OK; index++) {
        seen[index] = *tensors[index].impl; // borrowed
        handles[index].impl = &seen[index];
        if (dim == first->rank)
            status =
                tensor_view_apply(&call, &tensors[index].impl->geometry, &seen[index].geometry);
    }
    if (status == BASE_OK)
        status = join_plan(handles, count, dim, &join);
    if (status == BASE_OK)
        status = join_make(&join, handles, count, &joined);
    free(seen);
    free(handles);
    if (status != BASE_OK || dim == first->rank) {
        if (status == BASE_OK)
            *result = joined;
        return status;
    }
    int64_t sizes[TENSOR_RANK_MAX];
    const struct tensor_view_call view = {
        .kind = TENSOR_VIEW_VIEW, .count = first->rank + 1, .list = sizes};
    for (int place = 0; place <= first->rank; place++)
        sizes[place] = place == dim  ? count
                       : place < dim ? first->sizes[place]
                                     : first->sizes[place - 1];
    struct tensor_geometry geometry;
    status = tensor_view_apply(&view, &joined.impl->geometry, &geometry);
    if (status == BASE_OK)
        status = tensor__impl_alias(joined.impl, joined.impl->type, &geometry, &result->impl);
    tensor_release(&joined);
    return status;
}

enum base_status tensor_stack(const struct tensor *tensors, int count, int64_t dim,
                              struct tensor *result) {
    if (count <= 0)
        return tensor__error("stack expects a non-empty TensorList");
    const struct tensor_geometry *first = &tensors[0].impl->geometry;
    struct tape_node *node = NULL;
    struct tensor made = {0};
    int wrapped = 0;
    enum base_status status = join_begin(&tape_stack, tensors, count, &node);
    if (status == BASE_OK)
        status = tensor_wrap_dim(dim, first->rank + 1, true, &wrapped);
    if (status == BASE_OK)
        status = tensor__check_rank(first->rank + 1);
    for (int index = 1; index < count && status == BASE_OK; index++) {
        const struct tensor_geometry *other = &tensors[index].impl->geometry;
        char a[TENSOR_SIZES_TEXT_SIZE], b[TENSOR_SIZES_TEXT_SIZE];
        if (!tensor_geometry_same_shape(first, other))
            status = tensor__error("stack expects each tensor to be equal size, but got %s at "
                                   "entry 0 and %s at entry %d",
                                   tensor_sizes_text(first->sizes, first->rank, a),
                                   tensor_sizes_text(other->sizes, other->rank, b), index);
    }
    if (status == BASE_OK)
        status = stack_elements(tensors, count, wrapped, &made);
    if (status == BASE_OK && node != NULL)
        ((struct tape_join_payload *)node->payload)->dim = wrapped;
    return tensor__explain(tape_end(status, node, &made, result), "stack", tensors, count);
}
