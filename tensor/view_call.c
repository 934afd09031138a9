// See view_call.h.
#include "tensor/view_call.h"

#include "tensor/error.h"

#include <string.h>

enum base_status tensor_wrap_dim(int64_t dim, int rank, bool scalar_as_one, int *wrapped) {
    if (rank == 0 && !scalar_as_one)
        return tensor__error_index("Dimension specified as %lld but tensor has no dimensions",
                                   (long long)dim);
    const int64_t range = rank == 0 ? 1 : rank;
    if (dim < -range || dim >= range)
        return tensor__error_index(
            "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
            (long long)-range, (long long)range - 1, (long long)dim);
    *wrapped = (int)(dim < 0 ? dim + range : dim);
    return BASE_OK;
}

static enum base_status view_view(const struct tensor_view_call *call,
                                  const struct tensor_geometry *in, struct tensor_geometry *out) {
    const enum base_status status =
        tensor_infer_sizes(call->list, call->count, in->numel, out->sizes);
    if (status != BASE_OK)
        return status;
    if (!tensor_view_strides(in, out->sizes, call->count, out->strides))
        return tensor__error("view size is not compatible with input tensor's size and stride (at "
                             "least one dimension spans across two contiguous subspaces). Use "
                             ".reshape(...) instead.");
    out->rank = call->count;
    return BASE_OK;
}

static void swap(int64_t *values, int a, int b) {
    const int64_t value = values[a];
    values[a] = values[b];
    values[b] = value;
}

static enum base_status view_transpose(const struct tensor_view_call *call,
                                       const struct tensor_geometry *in,
                                       struct tensor_geometry *out) {
    int dim0, dim1;
    enum base_status status = tensor_wrap_dim(call->dim, in->rank, true, &dim0);
    if (status == BASE_OK)
        status = tensor_wrap_dim(call->dim1, in->rank, true, &dim1);
    if (status != BASE_OK || in->rank == 0)
        return status;
    swap(out->sizes, dim0, dim1);
    swap(out->strides, dim0, dim1);
    return BASE_OK;
}

static enum base_status view_permute(const struct tensor_view_call *call,
                                     const struct tensor_geometry *in,
                                     struct tensor_geometry *out) {
    if (call->count != in->rank)
        return tensor__error("permute(sparse_coo): number of dimensions in the tensor input does "
                             "not match the length "
                             "of the desired ordering of dimensions i.e. input.dim() = %d is not "
                             "equal to len(dims) = "
                             "%d",
                             in->rank, call->count);
    bool is_seen[TENSOR_RANK_MAX] = {false};
    for (int dim = 0; dim < in->rank; dim++) {
        int source;
        const enum base_status status = tensor_wrap_dim(call->list[dim], in->rank, true, &source);
        if (status != BASE_OK)
            return status;
        if (is_seen[source])
            return tensor__error("permute(): duplicate dims are not allowed.");
        is_seen[source] = true;
        out->sizes[dim] = in->sizes[source];
        out->strides[dim] = in->strides[source];
    }
    return BASE_OK;
}

static void remove_dim(struct tensor_geometry *geometry, int dim) {
    geometry->rank--;
    for (int index = dim; index < geometry->rank; index++) {
        geometry->sizes[index] = geometry->sizes[index + 1];
        geometry->strides[index] = geometry->strides[index + 1];
    }
}

static TENSOR_RARE enum base_status refuse_index(int64_t index, const struct tensor_geometry *in,
                                                 int dim) {
    char text[TENSOR_SIZES_TEXT_SIZE];
    return tensor__error_index(
        "select(): index %lld out of range for tensor of size %s at dimension %d", (long long)index,
        tensor_sizes_text(in->sizes, in->rank, text), dim);
}

static enum base_status view_select(const struct tensor_view_call *call,
                                    const struct tensor_geometry *in, struct tensor_geometry *out) {
    if (in->rank == 0)
        return tensor__error_index("select() cannot be applied to a 0-dim tensor.");
    int dim;
    const enum base_status status = tensor_wrap_dim(call->dim, in->rank, true, &dim);
    if (status != BASE_OK)
        return status;
    const int64_t size = in->sizes[dim];
    if (call->start < -size || call->start >= size)
        return refuse_index(call->start, in, dim);
    out->offset += (call->start < 0 ? call->start + size : call->start) * in->strides[dim];
    remove_dim(out, dim);
    return BASE_OK;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

static enum base_status view_slice(const struct tensor_view_call *call,
                                   const struct tensor_geometry *in, struct tensor_geometry *out) {
    if (in->rank == 0)
        return tensor__error_index("slice() cannot be applied to a 0-dim tensor.");
    int dim;
    const enum base_status status = tensor_wrap_dim(call->dim, in->rank, true, &dim);
    if (status != BASE_OK)
        return status;
    if (call->step <= 0)
        return tensor__error("slice step must be positive");
    const int64_t size = in->sizes[dim];
    int64_t start = call->start, end = call->end;
    if (start < 0)
        start += size;
    if (end < 0)
        end += size;
    start = clamp(start, 0, size);
    end = clamp(end, start, size);
    const int64_t length = end - start;
    out->offset += start * in->strides[dim];
    out->sizes[dim] = length / call->step + (length % call->step != 0);
    if (__builtin_mul_overflow(in->strides[dim], call->step, &out->strides[dim]))
        return tensor__error("slice: a step of %lld overflows the stride", (long long)call->step);
    return BASE_OK;
}

static enum base_status view_unsqueeze(const struct tensor_view_call *call,
                                       const struct tensor_geometry *in,
                                       struct tensor_geometry *out) {
    int dim;
    const enum base_status status = tensor_wrap_dim(call->dim, in->rank + 1, true, &dim);
    if (status != BASE_OK)
        return status;
    if (in->rank == TENSOR_RANK_MAX)
        return base_status_set(BASE_LIMIT, "a tensor has at most %d dimensions", TENSOR_RANK_MAX);
    for (int index = in->rank; index > dim; index--) {
        out->sizes[index] = in->sizes[index - 1];
        out->strides[index] = in->strides[index - 1];
    }
    out->rank = in->rank + 1;
    out->sizes[dim] = 1;
    out->strides[dim] = dim < in->rank ? in->sizes[dim] * in->strides[dim] : 1;
    return BASE_OK;
}

static enum base_status view_squeeze(const struct tensor_view_call *call,
                                     const struct tensor_geometry *in,
                                     struct tensor_geometry *out) {
    const bool is_all = call->kind == TENSOR_VIEW_SQUEEZE;
    bool is_named[TENSOR_RANK_MAX + 1] = {false};
    for (int index = 0; index < call->count && !is_all; index++) {
        int dim;
        const enum base_status status = tensor_wrap_dim(call->list[index], in->rank, true, &dim);
        if (status != BASE_OK)
            return status;
        if (is_named[dim])
            return tensor__error("dim %d appears multiple times in the list of dims", dim);
        is_named[dim] = true;
    }
    out->rank = 0;
    for (int dim = 0; dim < in->rank; dim++) {
        if (in->sizes[dim] == 1 && (is_all || is_named[dim]))
            continue;
        out->sizes[out->rank] = in->sizes[dim];
        out->strides[out->rank++] = in->strides[dim];
    }
    return BASE_OK;
}

static TENSOR_RARE enum base_status refuse_expansion(const struct tensor_view_call *call,
                                                     const struct tensor_geometry *in, int dim) {
    char target[TENSOR_SIZES_TEXT_SIZE], have[TENSOR_SIZES_TEXT_SIZE];
    return tensor__error(
        "The expanded size of the tensor (%lld) must match the existing size (%lld) at "
        "non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s",
        (long long)call->list[dim], (long long)in->sizes[dim - (call->count - in->rank)], dim,
        tensor_sizes_text(call->list, call->count, target),
        tensor_sizes_text(in->sizes, in->rank, have));
}

static enum base_status view_expand(const struct tensor_view_call *call,
                                    const struct tensor_geometry *in, struct tensor_geometry *out) {
    out->rank = call->count;
    const int added = call->count - in->rank; // the caller has seen that it is not negative
    for (int dim = call->count - 1; dim >= 0; dim--) {
        const int source = dim - added;
        int64_t wanted = call->list[dim];
        if (in->rank == 0) {
            out->sizes[dim] = wanted;
            out->strides[dim] = 0;
            continue;
        }
        const int64_t size = source >= 0 ? in->sizes[source] : 1;
        int64_t stride =
            source >= 0 ? in->strides[source] : out->sizes[dim + 1] * out->strides[dim + 1];
        if (wanted == -1) {
            if (source < 0)
                return tensor__error("The expanded size of the tensor (-1) isn't allowed in a "
                                     "leading, non-existing dimension %d",
                                     dim);
            wanted = size;
        }
        if (size != wanted) {
            if (size != 1)
                return refuse_expansion(call, in, dim);
            stride = 0;
        }
        out->sizes[dim] = wanted;
        out->strides[dim] = stride;
    }
    int64_t numel;
    if (!tensor_geometry_count(out, &numel))
        return tensor__error("numel: integer multiplication overflow");
    return BASE_OK;
}

static TENSOR_RARE enum base_status refuse_strides(const struct tensor_view_call *call) {
    char text[TENSOR_SIZES_TEXT_SIZE];
    return tensor__error(
        "as_strided: Negative strides are not supported at the moment, got strides: %s",
        tensor_sizes_text(call->strides, call->count, text));
}

static enum base_status view_as_strided(const struct tensor_view_call *call,
                                        struct tensor_geometry *out) {
    out->rank = call->count;
    out->offset = call->start;
    for (int dim = 0; dim < call->count; dim++) {
        out->sizes[dim] = call->list[dim];
        out->strides[dim] = call->strides[dim];
        if (call->strides[dim] < 0)
            return refuse_strides(call);
    }
    return BASE_OK;
}

static enum base_status view_unfold(const struct tensor_view_call *call,
                                    const struct tensor_geometry *in, struct tensor_geometry *out) {
    int dim;
    const enum base_status status = tensor_wrap_dim(call->dim, in->rank, true, &dim);
    if (status != BASE_OK)
        return status;
    const int64_t have = in->rank == 0 ? 1 : in->sizes[dim], size = call->end, step = call->step;
    if (size > have)
        return tensor__error("maximum size for tensor at dimension %d is %lld but size is %lld",
                             dim, (long long)have, (long long)size);
    if (size < 0)
        return tensor__error("size is %lld but must be >= 0", (long long)size);
    if (step <= 0)
        return tensor__error("step is %lld but must be > 0", (long long)step);
    if (in->rank == TENSOR_RANK_MAX)
        return base_status_set(BASE_LIMIT, "a tensor has at most %d dimensions", TENSOR_RANK_MAX);
    const int64_t stride = in->rank == 0 ? 1 : in->strides[dim];
    out->rank = in->rank + 1;
    out->sizes[in->rank] = size;
    out->strides[in->rank] = stride;
    if (in->rank > 0) {
        out->sizes[dim] = (have - size) / step + 1;
        out->strides[dim] = (int64_t)((uint64_t)stride * (uint64_t)step);
    }
    return BASE_OK;
}

static enum base_status view_diagonal(const struct tensor_view_call *call,
                                      const struct tensor_geometry *in,
                                      struct tensor_geometry *out) {
    int dim0, dim1;
    enum base_status status = tensor_wrap_dim(call->dim, in->rank, true, &dim0);
    if (status == BASE_OK)
        status = tensor_wrap_dim(call->dim1, in->rank, true, &dim1);
    if (status != BASE_OK)
        return status;
    if (dim0 == dim1)
        return tensor__error("diagonal dimensions cannot be identical %lld, %lld",
                             (long long)call->dim, (long long)call->dim1);
    const int64_t offset = call->start;
    const int64_t rows = in->sizes[dim0] + (offset < 0 ? offset : 0),
                  columns = in->sizes[dim1] - (offset > 0 ? offset : 0);
    int64_t length = rows < columns ? rows : columns;
    if (length < 0)
        length = 0;
    if (length > 0)
        out->offset += offset >= 0 ? offset * in->strides[dim1] : -offset * in->strides[dim0];
    const int64_t stride = in->strides[dim0] + in->strides[dim1];
    remove_dim(out, dim0 > dim1 ? dim0 : dim1);
    remove_dim(out, dim0 > dim1 ? dim1 : dim0);
    out->sizes[out->rank] = length;
    out->strides[out->rank++] = stride;
    return BASE_OK;
}

bool tensor_view_is_bounded(const struct tensor_view_call *call, int rank) {
    if (call->kind != TENSOR_VIEW_TRANSPOSE)
        return call->kind != TENSOR_VIEW_VIEW && call->kind != TENSOR_VIEW_ALIAS;
    const int64_t dim = call->dim < 0 ? call->dim + rank : call->dim,
                  dim1 = call->dim1 < 0 ? call->dim1 + rank : call->dim1;
    return dim != dim1;
}

static TENSOR_RARE enum base_status refuse_bounds(const struct tensor_geometry *geometry,
                                                  size_t item_size, size_t storage_bytes,
                                                  bool is_good, int64_t bytes) {
    char sizes[TENSOR_SIZES_TEXT_SIZE], strides[TENSOR_SIZES_TEXT_SIZE];
    tensor_sizes_text(geometry->sizes, geometry->rank, sizes);
    tensor_sizes_text(geometry->strides, geometry->rank, strides);
    if (!is_good)
        return tensor__error("Storage size calculation overflowed with sizes=%s and strides=%s",
                             sizes, strides);
    if (bytes > 0 && (uint64_t)bytes > storage_bytes)
        return tensor__error(
            "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize "
            "%zu requiring a storage size of %lld are out of bounds for storage of "
            "size %zu",
            sizes, strides, (long long)geometry->offset, item_size, (long long)bytes,
            storage_bytes);
    return tensor__error("Tensor: invalid storage offset %lld", (long long)geometry->offset);
}

enum base_status tensor_view_check_bounds(const struct tensor_geometry *geometry, size_t item_size,
                                          size_t storage_bytes) {
    int64_t bytes;
    const bool is_good = tensor_geometry_bytes(geometry, item_size, &bytes);
    if (is_good && geometry->offset >= 0 && (uint64_t)bytes <= storage_bytes)
        return BASE_OK;
    return refuse_bounds(geometry, item_size, storage_bytes, is_good, bytes);
}

static enum base_status view_dispatch(const struct tensor_view_call *call,
                                      const struct tensor_geometry *in,
                                      struct tensor_geometry *out) {
    switch (call->kind) {
    case TENSOR_VIEW_VIEW:
        return view_view(call, in, out);
    case TENSOR_VIEW_TRANSPOSE:
        return view_transpose(call, in, out);
    case TENSOR_VIEW_PERMUTE:
        return view_permute(call, in, out);
    case TENSOR_VIEW_SELECT:
        return view_select(call, in, out);
    case TENSOR_VIEW_SLICE:
        return view_slice(call, in, out);
    case TENSOR_VIEW_UNSQUEEZE:
        return view_unsqueeze(call, in, out);
    case TENSOR_VIEW_SQUEEZE:
    case TENSOR_VIEW_SQUEEZE_DIMS:
        return view_squeeze(call, in, out);
    case TENSOR_VIEW_EXPAND:
        return view_expand(call, in, out);
    case TENSOR_VIEW_AS_STRIDED:
        return view_as_strided(call, out);
    case TENSOR_VIEW_UNFOLD:
        return view_unfold(call, in, out);
    case TENSOR_VIEW_DIAGONAL:
        return view_diagonal(call, in, out);
    case TENSOR_VIEW_ALIAS:
        break;
    }
    return BASE_OK;
}

enum base_status tensor_view_apply(const struct tensor_view_call *call,
                                   const struct tensor_geometry *in, struct tensor_geometry *out) {
    tensor_geometry_copy(out, in);
    const enum base_status status = view_dispatch(call, in, out);
    if (status != BASE_OK)
        return status;
    uint64_t numel = 1;
    for (int dim = 0; dim < out->rank; dim++)
        numel *= (uint64_t)out->sizes[dim];
    out->numel = (int64_t)numel;
    return BASE_OK;
}
