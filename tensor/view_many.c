// Views of many outputs, and aliases off the graph. See tensor.h.
#include "tensor/autograd.h"
#include "tensor/error.h"
#include "tensor/view.h"

#include <stdlib.h>
#include <string.h>

void tensor_list_free(struct tensor_list *list) {
    for (int index = 0; index < list->count; index++)
        tensor_release(&list->tensors[index]);
    free(list->tensors);
    *list = (struct tensor_list){0};
}

// An alias with a counter of its own. That of an inference tensor stays one: otherwise it would be
// a writable way around it.
static enum base_status alias_own(const struct tensor_impl *self,
                                  const struct tensor_geometry *geometry,
                                  struct tensor_impl **alias) {
    return tensor__impl_create(self->storage, self->type, geometry, self->version != NULL, alias);
}

static enum base_status piece_make(const struct tensor_impl *self,
                                   const struct tensor_view_call *call,
                                   struct tensor_impl **piece) {
    struct tensor_geometry geometry;
    const enum base_status status = tensor__view_geometry(self, call, &geometry);
    return status != BASE_OK ? status : alias_own(self, &geometry, piece);
}

// All of CALLS with one node. UNSAFE: counters of their own and no base.
static enum base_status views_make(struct tensor self, const struct tensor_view_call *calls,
                                   int count, const struct tape_formula *formula, bool unsafe,
                                   struct tensor_list *result) {
    struct tape_node *node = NULL;
    struct tensor_list list = {.tensors = calloc((size_t)count + 1, sizeof *list.tensors)};
    if (list.tensors == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %d views", count);
    enum base_status status =
        tape_begin(formula, &self, 1, count, tape_view_payload_size(count), &node);
    for (int index = 0; index < count && status == BASE_OK; index++) {
        struct tensor *view = &list.tensors[index];
        status = unsafe ? piece_make(self.impl, &calls[index], &view->impl)
                        : tensor__view_make(self.impl, &calls[index], true, &view->impl);
        if (status != BASE_OK)
            break;
        list.count++;
    }
    if (status == BASE_OK) {
        if (node != NULL)
            tape__view_payload_set(node, self.impl, calls, count);
        for (int index = 0; index < count; index++)
            tape_finish(list.tensors[index].impl, node, index);
        *result = list;
    } else {
        tensor_list_free(&list);
    }
    tape_node_drop(node);
    return status;
}

// Pieces of LENGTHS along DIM.
static enum base_status pieces_make(struct tensor self, const int64_t *lengths, int count, int dim,
                                    const struct tape_formula *formula, bool unsafe,
                                    struct tensor_list *result) {
    struct tensor_view_call *calls = calloc((size_t)count + 1, sizeof *calls);
    if (calls == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %d views", count);
    int64_t start = 0;
    for (int index = 0; index < count; index++) {
        calls[index] = (struct tensor_view_call){.kind = TENSOR_VIEW_SLICE,
                                                 .dim = dim,
                                                 .start = start,
                                                 .end = start + lengths[index],
                                                 .step = 1};
        start += lengths[index];
    }
    const enum base_status status = views_make(self, calls, count, formula, unsafe, result);
    free(calls);
    return status;
}

static enum base_status split(struct tensor self, int64_t size, int64_t dim,
                              const struct tape_formula *formula, bool unsafe,
                              struct tensor_list *result) {
    const struct tensor_geometry *geometry = &self.impl->geometry;
    if (geometry->rank == 0)
        return tensor__error("split expects at least a 1-dimensional tensor");
    if (size < 0)
        return tensor__error("split expects split_size be non-negative, but got split_size=%lld",
                             (long long)size);
    int wrapped;
    enum base_status status = tensor_wrap_dim(dim, geometry->rank, true, &wrapped);
    if (status != BASE_OK)
        return status;
    const int64_t have = geometry->sizes[wrapped];
    if (size == 0 && have != 0)
        return tensor__error(
            "split_size can only be 0 if dimension size is 0, but got dimension size of %lld",
            (long long)have);
    const int64_t pieces = size == 0 || have == 0 ? 1 : (have - 1) / size + 1;
    if (pieces > INT32_MAX)
        return base_status_set(BASE_LIMIT, "split into %lld pieces", (long long)pieces);
    int64_t *lengths = calloc((size_t)pieces, sizeof *lengths);
    if (lengths == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %lld views",
                               (long long)pieces);
    for (int64_t index = 0; index < pieces; index++)
        lengths[index] = index + 1 < pieces ? size : have - size * (pieces - 1);
    status = pieces_make(self, lengths, (int)pieces, wrapped, formula, unsafe, result);
    free(lengths);
    return status;
}

enum base_status tensor_split(struct tensor self, int64_t size, int64_t dim,
                              struct tensor_list *result) {
    return split(self, size, dim, &tape_split, false, result);
}

enum base_status tensor_unsafe_split(struct tensor self, int64_t size, int64_t dim,
                                     struct tensor_list *result) {
    return split(self, size, dim, &tape_unsafe_split, true, result);
}

enum base_status tensor_split_sizes(struct tensor self, const int64_t *sizes, int count,
                                    int64_t dim, struct tensor_list *result) {
    const struct tensor_geometry *geometry = &self.impl->geometry;
    if (geometry->rank == 0)
        return tensor__error("split_with_sizes expects at least a 1-dimensional tensor");
    int wrapped;
    const enum base_status status = tensor_wrap_dim(dim, geometry->rank, true, &wrapped);
    if (status != BASE_OK)
        return status;
    char text[TENSOR_SIZES_TEXT_SIZE];
    int64_t sum = 0;
    for (int index = 0; index < count; index++) {
        if (sizes[index] < 0)
            return tensor__error("split_with_sizes expects split_sizes have only non-negative "
                                 "entries, but got split_sizes=%s",
                                 tensor_sizes_text(sizes, count, text));
        if (__builtin_add_overflow(sum, sizes[index], &sum))
            sum = -1;
    }
    if (sum != geometry->sizes[wrapped])
        return tensor__error("split_with_sizes expects split_sizes to sum exactly to %lld (input "
                             "tensor's size at dimension %d), but got split_sizes=%s",
                             (long long)geometry->sizes[wrapped], wrapped,
                             tensor_sizes_text(sizes, count, text));
    return pieces_make(self, sizes, count, wrapped, &tape_split_with_sizes, false, result);
}

enum base_status tensor_chunk(struct tensor self, int64_t chunks, int64_t dim,
                              struct tensor_list *result) {
    const struct tensor_geometry *geometry = &self.impl->geometry;
    if (geometry->rank == 0)
        return tensor__error("chunk expects at least a 1-dimensional tensor");
    if (chunks <= 0)
        return tensor__error("chunk expects `chunks` to be greater than 0, got: %lld",
                             (long long)chunks);
    int wrapped;
    const enum base_status status = tensor_wrap_dim(dim, geometry->rank, true, &wrapped);
    if (status != BASE_OK)
        return status;
    const int64_t have = geometry->sizes[wrapped], size = have / chunks + (have % chunks != 0);
    if (size > 0)
        return split(self, size, wrapped, &tape_split, false, result);
    // Nothing to cut up: as many empty pieces as were asked for.
    if (chunks > INT32_MAX)
        return base_status_set(BASE_LIMIT, "chunk into %lld pieces", (long long)chunks);
    int64_t *lengths = calloc((size_t)chunks, sizeof *lengths);
    if (lengths == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %lld views",
                               (long long)chunks);
    const enum base_status made =
        pieces_make(self, lengths, (int)chunks, wrapped, &tape_split_with_sizes, false, result);
    free(lengths);
    return made;
}

enum base_status tensor_unbind(struct tensor self, int64_t dim, struct tensor_list *result) {
    const struct tensor_geometry *geometry = &self.impl->geometry;
    int wrapped;
    enum base_status status = tensor_wrap_dim(dim, geometry->rank, true, &wrapped);
    if (status == BASE_OK && geometry->rank == 0)
        status = tensor_wrap_dim(wrapped, geometry->rank, false, &wrapped);
    if (status != BASE_OK)
        return status;
    const int64_t count = geometry->sizes[wrapped];
    if (count > INT32_MAX)
        return base_status_set(BASE_LIMIT, "unbind into %lld tensors", (long long)count);
    struct tensor_view_call *calls = calloc((size_t)count + 1, sizeof *calls);
    if (calls == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %lld views", (long long)count);
    for (int64_t index = 0; index < count; index++)
        calls[index] =
            (struct tensor_view_call){.kind = TENSOR_VIEW_SELECT, .dim = wrapped, .start = index};
    status = views_make(self, calls, (int)count, &tape_unbind, false, result);
    free(calls);
    return status;
}

enum base_status tensor__broadcast_shape(const struct tensor_geometry *a,
                                         const struct tensor_geometry *b, int64_t *sizes,
                                         int *rank);

enum base_status tensor_broadcast(struct tensor a, struct tensor b, struct tensor *result_a,
                                  struct tensor *result_b) {
    int64_t sizes[TENSOR_RANK_MAX];
    int rank;
    enum base_status status =
        tensor__broadcast_shape(&a.impl->geometry, &b.impl->geometry, sizes, &rank);
    if (status != BASE_OK)
        return status;
    const struct tensor sources[] = {a, b};
    struct tensor results[2] = {{0}};
    for (int index = 0; index < 2 && status == BASE_OK; index++) {
        const struct tensor_geometry *geometry = &sources[index].impl->geometry;
        if (geometry->rank == rank &&
            memcmp(geometry->sizes, sizes, (size_t)rank * sizeof sizes[0]) == 0)
            results[index] = tensor_retain(sources[index]);
        else
            status = tensor_expand(sources[index], sizes, rank, &results[index]);
    }
    if (status != BASE_OK) {
        for (int index = 0; index < 2; index++)
            tensor_release(&results[index]);
        return status;
    }
    *result_a = results[0];
    *result_b = results[1];
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Aliases off the graph

enum base_status tensor_detach(struct tensor self, struct tensor *result) {
    return tensor__impl_alias(self.impl, self.impl->type, &self.impl->geometry, &result->impl);
}

enum base_status tensor_data_of(struct tensor self, struct tensor *result) {
    return alias_own(self.impl, &self.impl->geometry, &result->impl);
}

enum base_status tensor_view_type(struct tensor self, enum tensor_type type,
                                  struct tensor *result) {
    struct tensor_geometry geometry;
    tensor_geometry_copy(&geometry, &self.impl->geometry);
    const int64_t own = (int64_t)tensor__item_size(self.impl),
                  other = (int64_t)tensor_type_size(type);
    const char *from = tensor_type_scalar_name(self.impl->type),
               *to = tensor_type_scalar_name(type);
    const int last = geometry.rank - 1;
    if (own != other && last < 0)
        return tensor__error("self.dim() cannot be 0 to view %s as %s (different element sizes)",
                             from, to);
    if (own != other && geometry.strides[last] != 1)
        return tensor__error(
            "self.stride(-1) must be 1 to view %s as %s (different element sizes), but got %lld",
            from, to, (long long)geometry.strides[last]);
    if (own > other) {
        const int64_t ratio = own / other;
        geometry.sizes[last] *= ratio;
        geometry.numel *= ratio;
        geometry.offset *= ratio;
        for (int dim = 0; dim < last; dim++)
            geometry.strides[dim] *= ratio;
    } else if (own < other) {
        const int64_t ratio = other / own;
        if (geometry.sizes[last] % ratio != 0)
            return tensor__error(
                "self.size(-1) must be divisible by %lld to view %s as %s (different "
                "element sizes), but got %lld",
                (long long)ratio, from, to, (long long)geometry.sizes[last]);
        if (geometry.offset % ratio != 0)
            return tensor__error("self.storage_offset() must be divisible by %lld to view %s as %s "
                                 "(different element sizes), but got %lld",
                                 (long long)ratio, from, to, (long long)geometry.offset);
        for (int dim = 0; dim < last; dim++) {
            if (geometry.strides[dim] % ratio != 0)
                return tensor__error("self.stride(%d) must be divisible by %lld to view %s as %s "
                                     "(different element sizes), but got %lld",
                                     dim, (long long)ratio, from, to,
                                     (long long)geometry.strides[dim]);
            geometry.strides[dim] /= ratio;
        }
        geometry.sizes[last] /= ratio;
        geometry.numel /= ratio;
        geometry.offset /= ratio;
    }
    return tensor__impl_alias(self.impl, type, &geometry, &result->impl);
}
