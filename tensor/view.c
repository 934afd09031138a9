// Views of one output. See view.h, and tensor.h for each of them.
#include "tensor/view.h"

#include "tensor/autograd.h"
#include "tensor/error.h"

#include <stdlib.h>
#include <string.h>

enum base_status tensor__check_rank(int rank) {
    if (rank <= TENSOR_RANK_MAX)
        return BASE_OK;
    return base_status_set(BASE_LIMIT, "a tensor has at most %d dimensions, not %d",
                           TENSOR_RANK_MAX, rank);
}

enum base_status tensor__view_geometry(const struct tensor_impl *self,
                                       const struct tensor_view_call *call,
                                       struct tensor_geometry *geometry) {
    const enum base_status status = tensor_view_apply(call, &self->geometry, geometry);
    if (status != BASE_OK || !tensor_view_is_bounded(call, self->geometry.rank))
        return status;
    return tensor_view_check_bounds(geometry, tensor__item_size(self), self->storage->bytes);
}

enum base_status tensor__view_make(struct tensor_impl *source, const struct tensor_view_call *call,
                                   bool multiple, struct tensor_impl **result) {
    struct tensor_impl *view = tensor__impl_new();
    if (view == NULL)
        return BASE_HOST_MEMORY;
    const enum base_status status = tensor__view_geometry(source, call, &view->geometry);
    if (status != BASE_OK) {
        free(view);
        return status;
    }
    tensor__impl_become_view(view, source, multiple);
    *result = view;
    return BASE_OK;
}

enum base_status tensor__view(struct tensor self, const struct tensor_view_call *call,
                              const struct tape_formula *formula, struct tensor *result) {
    struct tape_node *node;
    struct tensor_impl *view;
    enum base_status status = tensor__view_make(self.impl, call, false, &view);
    if (status != BASE_OK)
        return status;
    status = tape_begin(formula, &self, 1, 1, tape_view_payload_size(1), &node);
    if (status != BASE_OK) {
        tensor__impl_drop(view);
        return status;
    }
    if (node != NULL) {
        tape__view_payload_set(node, self.impl, call, 1);
        tape_finish(view, node, 0);
        tape_node_drop(node);
    }
    result->impl = view;
    return BASE_OK;
}

struct tensor_view_call tensor__call_view(const int64_t *sizes, int rank) {
    return (struct tensor_view_call){.kind = TENSOR_VIEW_VIEW, .count = rank, .list = sizes};
}

enum base_status tensor_view(struct tensor self, const int64_t *sizes, int rank,
                             struct tensor *result) {
    const enum base_status status = tensor__check_rank(rank);
    if (status != BASE_OK)
        return status;
    const struct tensor_view_call call = tensor__call_view(sizes, rank);
    return tensor__view(self, &call, &tape_view, result);
}

enum base_status tensor_reshape(struct tensor self, const int64_t *sizes, int rank,
                                struct tensor *result) {
    int64_t inferred[TENSOR_RANK_MAX], strides[TENSOR_RANK_MAX];
    enum base_status status = tensor__check_rank(rank);
    if (status == BASE_OK)
        status = tensor_infer_sizes(sizes, rank, self.impl->geometry.numel, inferred);
    if (status != BASE_OK)
        return status;
    const struct tensor_view_call call = tensor__call_view(inferred, rank);
    if (tensor_view_strides(&self.impl->geometry, inferred, rank, strides))
        return tensor__view(self, &call, &tape_view, result);
    // A copy of its own, then seen in the new shape: nobody else has it, so it is no view.
    struct tensor copy = {0};
    struct tape_node *node = NULL;
    struct tensor_geometry geometry;
    status = tensor_clone(self, TENSOR_CONTIGUOUS, &copy);
    if (status == BASE_OK)
        status = tape_begin(&tape_unsafe_view, &copy, 1, 1, tape_view_payload_size(1), &node);
    if (status == BASE_OK)
        status = tensor_view_apply(&call, &copy.impl->geometry, &geometry);
    struct tensor view = {0};
    if (status == BASE_OK)
        status = tensor__impl_alias(copy.impl, copy.impl->type, &geometry, &view.impl);
    if (status == BASE_OK) {
        if (node != NULL)
            tape__view_payload_set(node, copy.impl, &call, 1);
        tape_finish(view.impl, node, 0);
        *result = view;
    } else {
        tensor_release(&view);
    }
    tape_node_drop(node);
    tensor_release(&copy);
    return status;
}

struct tensor_view_call tensor__call_transpose(int64_t dim0, int64_t dim1) {
    return (struct tensor_view_call){.kind = TENSOR_VIEW_TRANSPOSE, .dim = dim0, .dim1 = dim1};
}

enum base_status tensor_transpose(struct tensor self, int64_t dim0, int64_t dim1,
                                  struct tensor *result) {
    const struct tensor_view_call call = tensor__call_transpose(dim0, dim1);
    return tensor__view(self, &call, &tape_transpose, result);
}

enum base_status tensor__call_t(struct tensor self, struct tensor_view_call *call) {
    const int rank = self.impl->geometry.rank;
    if (rank > 2)
        return tensor__error("t() expects a tensor with <= 2 dimensions, but self is %dD", rank);
    *call = tensor__call_transpose(0, rank < 2 ? 0 : 1);
    return BASE_OK;
}

enum base_status tensor_transpose_2d(struct tensor self, struct tensor *result) {
    struct tensor_view_call call;
    const enum base_status status = tensor__call_t(self, &call);
    return status != BASE_OK ? status : tensor__view(self, &call, &tape_t, result);
}

enum base_status tensor_permute(struct tensor self, const int64_t *dims, int count,
                                struct tensor *result) {
    const enum base_status status = tensor__check_rank(count);
    if (status != BASE_OK)
        return status;
    const struct tensor_view_call call = {
        .kind = TENSOR_VIEW_PERMUTE, .count = count, .list = dims};
    return tensor__view(self, &call, &tape_permute, result);
}

enum base_status tensor_movedim(struct tensor self, int64_t source, int64_t destination,
                                struct tensor *result) {
    const int rank = self.impl->geometry.rank;
    int from, to;
    enum base_status status = tensor_wrap_dim(source, rank, true, &from);
    if (status == BASE_OK)
        status = tensor_wrap_dim(destination, rank, true, &to);
    if (status != BASE_OK)
        return status;
    if (rank == 0)
        return tensor_alias(self, result);
    int64_t order[TENSOR_RANK_MAX];
    for (int place = 0, next = 0; place < rank; place++) {
        if (place == to) {
            order[place] = from;
            continue;
        }
        if (next == from)
            next++;
        order[place] = next++;
    }
    return tensor_permute(self, order, rank, result);
}

enum base_status tensor_select(struct tensor self, int64_t dim, int64_t index,
                               struct tensor *result) {
    const struct tensor_view_call call = {.kind = TENSOR_VIEW_SELECT, .dim = dim, .start = index};
    return tensor__view(self, &call, &tape_select, result);
}

enum base_status tensor_slice(struct tensor self, int64_t dim, int64_t start, int64_t end,
                              int64_t step, struct tensor *result) {
    const struct tensor_view_call call = {
        .kind = TENSOR_VIEW_SLICE, .dim = dim, .start = start, .end = end, .step = step};
    return tensor__view(self, &call, &tape_slice, result);
}

enum base_status tensor_narrow(struct tensor self, int64_t dim, int64_t start, int64_t length,
                               struct tensor *result) {
    const struct tensor_geometry *geometry = &self.impl->geometry;
    if (geometry->rank == 0)
        return tensor__error("narrow() cannot be applied to a 0-dim tensor.");
    if (length < 0)
        return tensor__error("narrow(): length must be non-negative.");
    int wrapped;
    const enum base_status status = tensor_wrap_dim(dim, geometry->rank, true, &wrapped);
    if (status != BASE_OK)
        return status;
    const int64_t size = geometry->sizes[wrapped];
    if (start < -size || start > size)
        return tensor__error_index(
            "start out of range (expected to be in range of [%lld, %lld], but "
            "got %lld)",
            (long long)-size, (long long)size, (long long)start);
    if (start < 0)
        start += size;
    if (start > size - length)
        return tensor__error("start (%lld) + length (%lld) exceeds dimension size (%lld).",
                             (long long)start, (long long)length, (long long)size);
    return tensor_slice(self, dim, start, start + length, 1, result);
}

enum base_status tensor_unsqueeze(struct tensor self, int64_t dim, struct tensor *result) {
    const struct tensor_view_call call = {.kind = TENSOR_VIEW_UNSQUEEZE, .dim = dim};
    return tensor__view(self, &call, &tape_unsqueeze, result);
}

enum base_status tensor_squeeze(struct tensor self, struct tensor *result) {
    const struct tensor_view_call call = {.kind = TENSOR_VIEW_SQUEEZE};
    return tensor__view(self, &call, &tape_squeeze, result);
}

struct tensor_view_call tensor__call_squeeze_dims(const int64_t *dims, int count) {
    return (struct tensor_view_call){
        .kind = TENSOR_VIEW_SQUEEZE_DIMS, .count = count, .list = dims};
}

enum base_status tensor_squeeze_dim(struct tensor self, int64_t dim, struct tensor *result) {
    const struct tensor_view_call call = tensor__call_squeeze_dims(&dim, 1);
    return tensor__view(self, &call, &tape_squeeze_dim, result);
}

enum base_status tensor_squeeze_dims(struct tensor self, const int64_t *dims, int count,
                                     struct tensor *result) {
    const enum base_status status = tensor__check_rank(count);
    if (status != BASE_OK)
        return status;
    const struct tensor_view_call call = tensor__call_squeeze_dims(dims, count);
    return tensor__view(self, &call, &tape_squeeze_dims, result);
}

enum base_status tensor_expand(struct tensor self, const int64_t *sizes, int rank,
                               struct tensor *result) {
    const enum base_status status = tensor__check_rank(rank);
    if (status != BASE_OK)
        return status;
    const struct tensor_geometry *geometry = &self.impl->geometry;
    if (rank < geometry->rank) {
        char have[TENSOR_SIZES_TEXT_SIZE], target[TENSOR_SIZES_TEXT_SIZE];
        return tensor__error(
            "expand(torch.%sTensor{%s}, size=%s): the number of sizes provided (%d) "
            "must be greater or equal to the number of dimensions in the tensor "
            "(%d)",
            tensor_type_scalar_name(self.impl->type),
            tensor_sizes_text(geometry->sizes, geometry->rank, have),
            tensor_sizes_text(sizes, rank, target), rank, geometry->rank);
    }
    const struct tensor_view_call call = {.kind = TENSOR_VIEW_EXPAND, .count = rank, .list = sizes};
    return tensor__view(self, &call, &tape_expand, result);
}

struct tensor_view_call tensor__call_as_strided(struct tensor self, const int64_t *sizes, int rank,
                                                const int64_t *strides, const int64_t *offset) {
    return (struct tensor_view_call){.kind = TENSOR_VIEW_AS_STRIDED,
                                     .count = rank,
                                     .list = sizes,
                                     .strides = strides,
                                     .start =
                                         offset == NULL ? self.impl->geometry.offset : *offset};
}

enum base_status tensor_as_strided(struct tensor self, const int64_t *sizes, int rank,
                                   const int64_t *strides, int stride_count, const int64_t *offset,
                                   struct tensor *result) {
    if (rank != stride_count)
        return tensor__error("mismatch in length of strides and shape");
    const enum base_status status = tensor__check_rank(rank);
    if (status != BASE_OK)
        return status;
    const struct tensor_view_call call =
        tensor__call_as_strided(self, sizes, rank, strides, offset);
    return tensor__view(self, &call, &tape_as_strided, result);
}

enum base_status tensor_unfold(struct tensor self, int64_t dim, int64_t size, int64_t step,
                               struct tensor *result) {
    const struct tensor_view_call call = {
        .kind = TENSOR_VIEW_UNFOLD, .dim = dim, .end = size, .step = step};
    return tensor__view(self, &call, &tape_unfold, result);
}

enum base_status tensor_diagonal(struct tensor self, int64_t offset, int64_t dim0, int64_t dim1,
                                 struct tensor *result) {
    const struct tensor_view_call call = {
        .kind = TENSOR_VIEW_DIAGONAL, .dim = dim0, .dim1 = dim1, .start = offset};
    return tensor__view(self, &call, &tape_diagonal, result);
}

enum base_status tensor_alias(struct tensor self, struct tensor *result) {
    const struct tensor_view_call call = {.kind = TENSOR_VIEW_ALIAS};
    return tensor__view(self, &call, &tape_alias, result);
}

enum base_status tensor_flatten(struct tensor self, int64_t first, int64_t last,
                                struct tensor *result) {
    const struct tensor_geometry *geometry = &self.impl->geometry;
    int start, end;
    enum base_status status = tensor_wrap_dim(first, geometry->rank, true, &start);
    if (status == BASE_OK)
        status = tensor_wrap_dim(last, geometry->rank, true, &end);
    if (status != BASE_OK)
        return status;
    if (start > end)
        return tensor__error("flatten() has invalid args: start_dim cannot come after end_dim");
    if (geometry->rank == 0)
        return tensor_reshape(self, (int64_t[]){1}, 1, result);
    if (start == end) {
        *result = tensor_retain(self);
        return BASE_OK;
    }
    int64_t sizes[TENSOR_RANK_MAX];
    int rank = 0;
    for (int dim = 0; dim < geometry->rank; dim++) {
        if (dim > start && dim <= end)
            sizes[rank - 1] *= geometry->sizes[dim];
        else
            sizes[rank++] = geometry->sizes[dim];
    }
    return tensor_reshape(self, sizes, rank, result);
}

enum base_status tensor_unflatten(struct tensor self, int64_t dim, const int64_t *sizes, int count,
                                  struct tensor *result) {
    const struct tensor_geometry *geometry = &self.impl->geometry;
    char text[TENSOR_SIZES_TEXT_SIZE];
    if (count == 0)
        return tensor__error("unflatten: sizes must be non-empty");
    int wrapped;
    enum base_status status = tensor_wrap_dim(dim, geometry->rank, false, &wrapped);
    if (status == BASE_OK)
        status = tensor__check_rank(geometry->rank + count - 1);
    if (status != BASE_OK)
        return status;
    int64_t inferred[TENSOR_RANK_MAX], all[TENSOR_RANK_MAX];
    if (tensor_infer_sizes(sizes, count, geometry->sizes[wrapped], inferred) != BASE_OK)
        return tensor__error("unflatten: Provided sizes %s don't multiply up to the size of dim %d "
                             "(%lld) in the input tensor",
                             tensor_sizes_text(sizes, count, text), wrapped,
                             (long long)geometry->sizes[wrapped]);
    int rank = 0;
    for (int index = 0; index < geometry->rank; index++) {
        if (index != wrapped)
            all[rank++] = geometry->sizes[index];
        for (int part = 0; index == wrapped && part < count; part++)
            all[rank++] = inferred[part];
    }
    return tensor_view(self, all, rank, result);
}
