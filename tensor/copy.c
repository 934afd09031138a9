// Copies, fills, and what reads elements. See tensor.h.
#include "tensor/autograd.h"
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/operator.h"
#include "tensor/transfer.h"
#include "tensor/view.h"

#include <stdlib.h>
#include <string.h>

// Shape of SELF in a format, at offset 0. TENSOR_PRESERVE: the same strides where SELF has no holes
// and no overlap, else strides in the same order without holes.
static enum base_status like(const struct tensor_impl *self, enum tensor_format format,
                             struct tensor_geometry *geometry) {
    tensor_geometry_copy(geometry, &self->geometry);
    geometry->offset = 0;
    if (format != TENSOR_PRESERVE)
        return tensor_geometry_set_format(geometry, format);
    if ((self->flags & TENSOR_IS_DENSE) == 0)
        tensor_geometry_densify(geometry);
    return BASE_OK;
}

enum base_status tensor_empty_like(struct tensor self, enum tensor_format format,
                                   struct tensor *result) {
    struct tensor_geometry geometry;
    const enum base_status status = like(self.impl, format, &geometry);
    if (status != BASE_OK)
        return status;
    return tensor__impl_alloc(&self.impl->storage->place, self.impl->type, &geometry,
                              &result->impl);
}

enum base_status tensor_zeros_like(struct tensor self, enum tensor_format format,
                                   struct tensor *result) {
    struct tensor made;
    enum base_status status = tensor_empty_like(self, format, &made);
    if (status != BASE_OK)
        return status;
    status = tensor__fill_elements(made.impl, tensor_integer(0));
    if (status == BASE_OK)
        *result = made;
    else
        tensor_release(&made);
    return status;
}

// A copy of SELF as TYPE in GEOMETRY, on the graph with FORMULA.
static enum base_status copy_make(struct tensor self, enum tensor_type type,
                                  const struct tensor_geometry *geometry,
                                  const struct tape_formula *formula, struct tensor *result) {
    struct tape_node *node = NULL;
    struct tensor made = {0};
    enum base_status status = BASE_OK;
    if (tensor_type_is_floating(type))
        status = tape_begin(formula, &self, 1, 1, 0, &node);
    if (status == BASE_OK)
        status = tensor__impl_alloc(&self.impl->storage->place, type, geometry, &made.impl);
    if (status == BASE_OK)
        status = tensor__copy_elements(made.impl, self.impl);
    return tensor__explain(tape_end(status, node, &made, result),
                           formula == &tape_clone ? "clone" : "to", &self, 1);
}

enum base_status tensor_clone(struct tensor self, enum tensor_format format,
                              struct tensor *result) {
    struct tensor_geometry geometry;
    const enum base_status status = like(self.impl, format, &geometry);
    if (status != BASE_OK)
        return status;
    return copy_make(self, self.impl->type, &geometry, &tape_clone, result);
}

enum base_status tensor_contiguous(struct tensor self, enum tensor_format format,
                                   struct tensor *result) {
    if (tensor_is_contiguous(self, format)) {
        *result = tensor_retain(self);
        return BASE_OK;
    }
    if (format == TENSOR_PRESERVE)
        return tensor__error("preserve memory format is unsupported by the contiguous operator");
    return tensor_clone(self, format, result);
}

enum base_status tensor_to(struct tensor self, enum tensor_type type, enum tensor_format format,
                           struct tensor *result) {
    if (type == self.impl->type &&
        (format == TENSOR_PRESERVE || tensor_geometry_suggested(&self.impl->geometry) == format)) {
        *result = tensor_retain(self);
        return BASE_OK;
    }
    struct tensor_geometry geometry;
    const enum base_status status = like(self.impl, format, &geometry);
    if (status != BASE_OK)
        return status;
    return copy_make(self, type, &geometry, &tape_to_copy, result);
}

//------------------------------------------------------------------------------------------------
// Into a tensor

static bool is_same_data(const struct tensor_impl *a, const struct tensor_impl *b) {
    return a == b || (a->type == b->type &&
                      tensor_is_set_to((struct tensor){(struct tensor_impl *)(uintptr_t)a},
                                       (struct tensor){(struct tensor_impl *)(uintptr_t)b}));
}

static enum base_status copy_checked(struct tensor_impl *self, const struct tensor_impl *source,
                                     bool non_blocking) {
    char have[TENSOR_SIZES_TEXT_SIZE], want[TENSOR_SIZES_TEXT_SIZE];
    int64_t sizes[TENSOR_RANK_MAX];
    int rank;
    enum base_status status = tensor__check_no_internal_overlap(self);
    if (status == BASE_OK)
        status = tensor__check_no_partial_overlap(self, source);
    if (status == BASE_OK)
        status = tensor__broadcast_shape(&self->geometry, &source->geometry, sizes, &rank);
    if (status != BASE_OK)
        return status;
    if (rank != self->geometry.rank ||
        memcmp(sizes, self->geometry.sizes, (size_t)rank * sizeof sizes[0]) != 0)
        return tensor__error("output with shape %s doesn't match the broadcast shape %s",
                             tensor_sizes_text(self->geometry.sizes, self->geometry.rank, have),
                             tensor_sizes_text(sizes, rank, want));
    status = tensor__impl_check_writable(self);
    if (status != BASE_OK)
        return status;
    if (!tensor__is_same_place(&self->storage->place, &source->storage->place))
        return tensor__transfer(self, source, non_blocking);
    return tensor__copy_elements(self, source);
}

static enum base_status copy_into(struct tensor self, struct tensor source, bool non_blocking) {
    struct tensor_write write;
    const bool is_floating = tensor_type_is_floating(self.impl->type);
    // Off the graph where there are no gradients: one input that requires none.
    enum base_status status = tensor__write_begin(&tape_copy, (struct tensor[]){self, source},
                                                  is_floating ? 2 : 1, 0, false, &write);
    if (status != BASE_OK)
        return status;
    if (is_same_data(self.impl, source.impl))
        status = tensor__impl_check_writable(self.impl);
    else
        status = copy_checked(self.impl, source.impl, non_blocking);
    if (status == BASE_OK)
        tensor__write_end(self, &write);
    else
        tensor__write_abandon(&write);
    return tensor__explain(status, "copy_", (struct tensor[]){self, source}, 2);
}

// Between places a gradient has to travel, too: it does so with the move, which is on the graph.
static enum base_status copy_from(struct tensor self, struct tensor source, bool non_blocking) {
    if (tensor__is_same_place(&self.impl->storage->place, &source.impl->storage->place) ||
        !tensor_grad_mode() || !tensor_requires_grad(source))
        return copy_into(self, source, non_blocking);
    struct tensor moved;
    enum base_status status =
        tensor_to_place(source, &self.impl->storage->place, non_blocking, &moved);
    if (status != BASE_OK)
        return status;
    status = copy_into(self, moved, false);
    tensor_release(&moved);
    return status;
}

enum base_status tensor_copy_(struct tensor self, struct tensor source) {
    return copy_from(self, source, false);
}

enum base_status tensor_copy_non_blocking_(struct tensor self, struct tensor source) {
    return copy_from(self, source, true);
}

static enum base_status fill(struct tensor self, struct tensor_operand_value value,
                             const struct tape_formula *formula) {
    struct tensor_write write;
    struct tensor_scalar number = value.number;
    enum base_status status =
        tensor__write_begin(formula, (struct tensor[]){self, value.tensor}, 2, 0, false, &write);
    if (status != BASE_OK)
        return status;
    if (value.tensor.impl != NULL && value.tensor.impl->geometry.rank > 0)
        status = tensor__error(
            "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.",
            value.tensor.impl->geometry.rank);
    else if (value.tensor.impl != NULL)
        status = tensor_item(value.tensor, &number);
    if (status == BASE_OK)
        status = tensor__impl_check_writable(self.impl);
    if (status == BASE_OK)
        status = tensor__fill_elements(self.impl, number);
    if (status == BASE_OK)
        tensor__write_end(self, &write);
    else
        tensor__write_abandon(&write);
    return status;
}

enum base_status tensor_fill_(struct tensor self, struct tensor_operand_value value) {
    return fill(self, value, value.tensor.impl == NULL ? &tape_fill : &tape_fill_tensor);
}

enum base_status tensor_zero_(struct tensor self) {
    return fill(self, tensor_operand_integer(0), &tape_zero);
}

//------------------------------------------------------------------------------------------------
// self[...] = value

// VALUE into VIEW: as a number it is filled in; a tensor is copied, with its leading 1s off.
static enum base_status assign(struct tensor view, struct tensor_operand_value value) {
    if (value.tensor.impl == NULL || value.tensor.impl->geometry.rank == 0)
        return tensor_fill_(view, value);
    const struct tensor_geometry *from = &value.tensor.impl->geometry, *to = &view.impl->geometry;
    if (tensor_geometry_same_shape(from, to))
        return tensor_copy_(view, value.tensor);
    int skipped = 0;
    while (skipped < from->rank && from->sizes[skipped] == 1)
        skipped++;
    struct tensor trimmed, expanded;
    enum base_status status =
        tensor_view(value.tensor, from->sizes + skipped, from->rank - skipped, &trimmed);
    if (status != BASE_OK)
        return status;
    status = tensor_expand(trimmed, to->sizes, to->rank, &expanded);
    if (status == BASE_OK) {
        status = tensor_copy_(view, expanded);
        tensor_release(&expanded);
    }
    tensor_release(&trimmed);
    return status;
}

enum base_status tensor_assign_select(struct tensor self, int64_t dim, int64_t index,
                                      struct tensor_operand_value value) {
    struct tensor view;
    int wrapped;
    enum base_status status = tensor_wrap_dim(dim, self.impl->geometry.rank, false, &wrapped);
    if (status != BASE_OK)
        return status;
    const int64_t size = self.impl->geometry.sizes[wrapped];
    if (index < -size || index >= size)
        return tensor__error_index("index %lld is out of bounds for dimension %d with size %lld",
                                   (long long)index, wrapped, (long long)size);
    status = tensor_select(self, dim, index, &view);
    if (status != BASE_OK)
        return status;
    status = assign(view, value);
    tensor_release(&view);
    return status;
}

enum base_status tensor_assign_slice(struct tensor self, int64_t dim, int64_t start, int64_t end,
                                     int64_t step, struct tensor_operand_value value) {
    struct tensor view;
    enum base_status status = tensor_slice(self, dim, start, end, step, &view);
    if (status != BASE_OK)
        return status;
    status = assign(view, value);
    tensor_release(&view);
    return status;
}

//------------------------------------------------------------------------------------------------
// Reading

static enum base_status host_read(const struct tensor_impl *self, void *bytes) {
    struct tensor_geometry rows;
    tensor_geometry_copy(&rows, &self->geometry);
    tensor_geometry_set_contiguous(&rows);
    struct tensor_loop loop = {.operation = TENSOR_COPY,
                               .rank = rows.rank,
                               .compute = self->type,
                               .out = {.data = bytes, .type = self->type}};
    memcpy(loop.sizes, rows.sizes, (size_t)rows.rank * sizeof loop.sizes[0]);
    memcpy(loop.out.strides, rows.strides, (size_t)rows.rank * sizeof rows.strides[0]);
    const enum base_status status = tensor__operand(self, rows.rank, rows.sizes, &loop.a);
    return status != BASE_OK ? status : tensor__cpu.pointwise(&loop, tensor__no_stream);
}

enum base_status tensor_read(struct tensor self, void *bytes) {
    if (self.impl->geometry.numel == 0)
        return BASE_OK;
    if (self.impl->storage->place.kind == TENSOR_CPU)
        return host_read(self.impl, bytes);
    struct tensor_geometry rows;
    struct tensor_impl *sent;
    tensor_geometry_copy(&rows, &self.impl->geometry);
    rows.offset = 0;
    tensor_geometry_set_contiguous(&rows);
    enum base_status status =
        tensor__impl_alloc(&self.impl->storage->place, self.impl->type, &rows, &sent);
    if (status != BASE_OK)
        return status;
    status = tensor__copy_elements(sent, self.impl);
    if (status == BASE_OK)
        status = tensor__transfer_out(sent, bytes);
    tensor__impl_drop(sent);
    return status;
}

enum base_status tensor_item(struct tensor self, struct tensor_scalar *value) {
    if (self.impl->geometry.numel != 1)
        return tensor__error("a Tensor with %lld elements cannot be converted to Scalar",
                             (long long)self.impl->geometry.numel);
    // As the widest of its kind, which the loop converts to.
    const bool is_floating = tensor_type_is_floating(self.impl->type);
    double floating = 0;
    int64_t integer = 0;
    char bytes[8];
    enum base_status status = tensor_read(self, bytes);
    if (status != BASE_OK)
        return status;
    struct tensor_loop loop = {.operation = TENSOR_COPY,
                               .compute = self.impl->type,
                               .out = {.data = is_floating ? (void *)&floating : (void *)&integer,
                                       .type = is_floating ? TENSOR_FLOAT64 : TENSOR_INT64},
                               .a = {.data = bytes, .type = self.impl->type}};
    status = tensor__cpu.pointwise(&loop, tensor__no_stream);
    if (status == BASE_OK)
        *value = is_floating ? tensor_floating(floating) : tensor_integer(integer);
    if (status == BASE_OK && self.impl->type == TENSOR_BOOL)
        value->kind = TENSOR_SCALAR_BOOL;
    return status;
}

enum base_status tensor_equal(struct tensor self, struct tensor other, bool *equal) {
    const struct tensor_geometry *geometry = &self.impl->geometry;
    *equal = false;
    if (self.impl->type != other.impl->type ||
        !tensor_geometry_same_shape(geometry, &other.impl->geometry))
        return BASE_OK;
    struct tensor same;
    enum base_status status = tensor_eq(self, tensor_operand_tensor(other), &same);
    if (status != BASE_OK)
        return status;
    uint8_t *bytes = malloc((size_t)geometry->numel + 1);
    if (bytes == NULL) {
        tensor_release(&same);
        return base_status_set(BASE_HOST_MEMORY, "no host memory to compare %lld elements",
                               (long long)geometry->numel);
    }
    status = tensor_read(same, bytes);
    bool is_equal = status == BASE_OK;
    for (int64_t index = 0; index < geometry->numel && is_equal; index++)
        is_equal = bytes[index] != 0;
    *equal = is_equal;
    free(bytes);
    tensor_release(&same);
    return status;
}
