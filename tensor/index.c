// self[index]: rows picked by numbers or by a mask. See tensor.h.
//
// The index is read on the host, which for a device waits for its stream; rows are then copied one
// by one.
#include "tensor/autograd.h"
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/mode.h"
#include "tensor/operator.h"
#include "tensor/view.h"

#include <stdlib.h>
#include <string.h>

// Where the rows that an index names begin in the tensor, and what the result looks like.
struct rows {
    int64_t *offsets; // elements from the tensor's own offset
    int64_t count;
    struct tensor_geometry shape, row; // of the result; of one row, in the tensor's strides
    int index_rank;                    // leading dimensions of `shape` that count rows
};

static bool is_mask(enum tensor_type type) { return type == TENSOR_BOOL || type == TENSOR_UINT8; }

// The elements of INDEX as numbers.
static enum base_status index_read(struct tensor index, int64_t **values) {
    const int64_t numel = index.impl->geometry.numel;
    const size_t item_size = tensor__item_size(index.impl);
    char *bytes = malloc((size_t)numel * item_size + 1);
    int64_t *numbers = malloc((size_t)(numel + 1) * sizeof *numbers);
    enum base_status status = BASE_OK;
    if (bytes == NULL || numbers == NULL)
        status =
            base_status_set(BASE_HOST_MEMORY, "no host memory for %lld indices", (long long)numel);
    if (status == BASE_OK) status = tensor_read(index, bytes);
    if (status == BASE_OK) {
        const struct tensor_loop loop = {
            .operation = TENSOR_COPY,
            .rank = 1,
            .sizes = {numel},
            .compute = index.impl->type,
            .out = {.data = numbers, .type = TENSOR_INT64, .strides = {1}},
            .a = {.data = bytes, .type = index.impl->type, .strides = {1}}};
        status = tensor__cpu.pointwise(&loop, tensor__no_stream);
    }
    free(bytes);
    if (status == BASE_OK)
        *values = numbers;
    else
        free(numbers);
    return status;
}

// Rows of the places where a mask over the first dimensions is set.
static enum base_status mask_rows(const struct tensor_geometry *self, struct tensor index,
                                  const int64_t *values, struct rows *rows) {
    const struct tensor_geometry *mask = &index.impl->geometry;
    char a[TENSOR_SIZES_TEXT_SIZE], b[TENSOR_SIZES_TEXT_SIZE];
    for (int dim = 0; dim < mask->rank; dim++)
        if (dim >= self->rank || mask->sizes[dim] != self->sizes[dim])
            return tensor__error_index(
                "The shape of the mask %s at index %d does not match the shape "
                "of the indexed tensor %s at index %d",
                tensor_sizes_text(mask->sizes, mask->rank, a), dim,
                tensor_sizes_text(self->sizes, self->rank, b), dim);
    for (int64_t place = 0; place < mask->numel; place++) {
        if (values[place] == 0) continue;
        int64_t rest = place, offset = 0;
        for (int dim = mask->rank - 1; dim >= 0; dim--) {
            offset += rest % mask->sizes[dim] * self->strides[dim];
            rest /= mask->sizes[dim];
        }
        rows->offsets[rows->count++] = offset;
    }
    return BASE_OK;
}

static enum base_status number_rows(const struct tensor_geometry *self, int64_t numel,
                                    const int64_t *values, struct rows *rows) {
    if (self->rank == 0) return tensor__error_index("too many indices for tensor of dimension 0");
    const int64_t size = self->sizes[0];
    for (int64_t place = 0; place < numel; place++) {
        if (values[place] < -size || values[place] >= size)
            return tensor__error_index("index %lld is out of bounds for dimension 0 with size %lld",
                                       (long long)values[place], (long long)size);
        rows->offsets[rows->count++] =
            (values[place] < 0 ? values[place] + size : values[place]) * self->strides[0];
    }
    return BASE_OK;
}

static enum base_status rows_find(struct tensor self, struct tensor index, struct rows *rows) {
    const struct tensor_geometry *from = &self.impl->geometry, *places = &index.impl->geometry;
    const enum tensor_type type = index.impl->type;
    *rows = (struct rows){0};
    if (!is_mask(type) && type != TENSOR_INT64 && type != TENSOR_INT32)
        return tensor__error_index(
            "tensors used as indices must be long, int, byte or bool tensors");
    int64_t *values;
    enum base_status status = index_read(index, &values);
    if (status != BASE_OK) return status;
    rows->offsets = malloc((size_t)(places->numel + 1) * sizeof *rows->offsets);
    if (rows->offsets == NULL)
        status = base_status_set(BASE_HOST_MEMORY, "no host memory for %lld rows",
                                 (long long)places->numel);
    else if (is_mask(type))
        status = mask_rows(from, index, values, rows);
    else
        status = number_rows(from, places->numel, values, rows);
    free(values);
    if (status != BASE_OK) return status;
    const int used = is_mask(type) ? places->rank : 1;
    int64_t sizes[2 * TENSOR_RANK_MAX];
    rows->index_rank = is_mask(type) ? 1 : places->rank;
    if (is_mask(type))
        sizes[0] = rows->count;
    else
        memcpy(sizes, places->sizes, (size_t)places->rank * sizeof sizes[0]);
    rows->row = (struct tensor_geometry){.rank = from->rank - used, .numel = 1};
    for (int dim = 0; dim < rows->row.rank; dim++) {
        rows->row.sizes[dim] = sizes[rows->index_rank + dim] = from->sizes[used + dim];
        rows->row.strides[dim] = from->strides[used + dim];
        rows->row.numel *= rows->row.sizes[dim];
    }
    return tensor_geometry_init(&rows->shape, sizes, rows->index_rank + rows->row.rank);
}

// A row of SELF; and of a tensor of the result's shape, whose leading dimensions are NUMBERed in
// logical order. Both borrow.
static struct tensor_impl row_of_self(const struct tensor_impl *self, const struct rows *rows,
                                      int64_t number) {
    struct tensor_impl row = *self;
    tensor_geometry_copy(&row.geometry, &rows->row);
    row.geometry.offset = self->geometry.offset + rows->offsets[number];
    return row;
}

static struct tensor_impl row_of_result(const struct tensor_impl *result, const struct rows *rows,
                                        int64_t number) {
    struct tensor_impl row = *result;
    const struct tensor_geometry *shape = &result->geometry;
    row.geometry.rank = rows->row.rank;
    row.geometry.numel = rows->row.numel;
    for (int dim = rows->index_rank - 1; dim >= 0; dim--) {
        row.geometry.offset += number % shape->sizes[dim] * shape->strides[dim];
        number /= shape->sizes[dim];
    }
    for (int dim = 0; dim < rows->row.rank; dim++) {
        row.geometry.sizes[dim] = shape->sizes[rows->index_rank + dim];
        row.geometry.strides[dim] = shape->strides[rows->index_rank + dim];
    }
    return row;
}

enum base_status tensor_index(struct tensor self, struct tensor index, struct tensor *result) {
    struct rows rows = {0};
    struct tape_node *node = NULL;
    struct tensor made = {0};
    if (index.impl->geometry.rank == 0 && tensor_type_is_integer(index.impl->type) &&
        index.impl->type != TENSOR_UINT8) {
        // As Python has it, a single number picks a view.
        struct tensor_scalar number;
        enum base_status status = tensor_item(index, &number);
        const struct tensor_geometry *from = &self.impl->geometry;
        if (status == BASE_OK && from->rank > 0 &&
            (number.integer < -from->sizes[0] || number.integer >= from->sizes[0]))
            status =
                tensor__error_index("index %lld is out of bounds for dimension 0 with size %lld",
                                    (long long)number.integer, (long long)from->sizes[0]);
        return status != BASE_OK ? status : tensor_select(self, 0, number.integer, result);
    }
    enum base_status status =
        tape_begin(&tape_index, &self, 1, 1, sizeof(struct tape_sum_payload), &node);
    if (status == BASE_OK) status = rows_find(self, index, &rows);
    if (status == BASE_OK && node != NULL) status = tape_save(node, 1, index.impl);
    if (status == BASE_OK)
        status = tensor__impl_alloc(&self.impl->storage->place, self.impl->type, &rows.shape,
                                    &made.impl);
    for (int64_t number = 0; number < rows.count && status == BASE_OK; number++) {
        struct tensor_impl to = row_of_result(made.impl, &rows, number);
        const struct tensor_impl from = row_of_self(self.impl, &rows, number);
        status = tensor__copy_elements(&to, &from);
    }
    if (status == BASE_OK && node != NULL) {
        struct tape_sum_payload *payload = node->payload;
        payload->rank = self.impl->geometry.rank;
        memcpy(payload->sizes, self.impl->geometry.sizes,
               (size_t)payload->rank * sizeof payload->sizes[0]);
    }
    free(rows.offsets);
    return tensor__explain(tape_end(status, node, &made, result), "index",
                           (struct tensor[]){self, index}, 2);
}

// VALUE, as a tensor of SELF's type (a number becomes one) broadcast to the result's shape.
static enum base_status values_expand(struct tensor self, const struct rows *rows,
                                      struct tensor_operand_value value, struct tensor *expanded) {
    struct tensor whole;
    enum base_status status = BASE_OK;
    if (value.tensor.impl != NULL)
        whole = tensor_retain(value.tensor);
    else
        status =
            tensor_full(&self.impl->storage->place, self.impl->type, NULL, 0, value.number, &whole);
    if (status != BASE_OK) return status;
    char a[TENSOR_SIZES_TEXT_SIZE], b[TENSOR_SIZES_TEXT_SIZE];
    const struct tensor_geometry *from = &whole.impl->geometry;
    if (whole.impl->type != self.impl->type)
        status = tensor__error(
            "Index put requires the source and destination dtypes match, got %s for "
            "the destination and %s for the source.",
            tensor_type_scalar_name(self.impl->type), tensor_type_scalar_name(whole.impl->type));
    else if (tensor_expand(whole, rows->shape.sizes, rows->shape.rank, expanded) != BASE_OK)
        status = tensor__error("shape mismatch: value tensor of shape %s cannot be broadcast to "
                               "indexing result of shape %s",
                               tensor_sizes_text(from->sizes, from->rank, a),
                               tensor_sizes_text(rows->shape.sizes, rows->shape.rank, b));
    tensor_release(&whole);
    return status;
}

// Neither what is written nor where may lie in SELF, not even as SELF itself. One number to where a
// mask says is filled in: read before the write.
static enum base_status overlap_check(struct tensor self, struct tensor index,
                                      struct tensor_operand_value value, bool accumulate) {
    const struct tensor_impl *from = value.tensor.impl;
    const bool is_filled =
        !accumulate && is_mask(index.impl->type) && from != NULL && from->geometry.numel == 1;
    enum base_status status = BASE_OK;
    if (from != NULL && !is_filled)
        status = tensor__check_no_overlap(self.impl, &self.impl->geometry, from);
    return status != BASE_OK
               ? status
               : tensor__check_no_overlap(self.impl, &self.impl->geometry, index.impl);
}

enum base_status tensor_index_put_(struct tensor self, struct tensor index,
                                   struct tensor_operand_value value, bool accumulate) {
    struct tensor_write write;
    struct rows rows = {0};
    struct tensor values = {0};
    enum base_status status =
        tensor__write_begin(&tape_index_put, (struct tensor[]){self, value.tensor}, 2,
                            sizeof(struct tape_sum_payload), false, &write);
    if (status != BASE_OK) return status;
    const bool was_off = tensor__gradients_off();
    if (tensor_geometry_is_expanded(&self.impl->geometry))
        tensor__warn(
            "Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor "
            "before performing this operation. This also applies to advanced indexing e.g. "
            "tensor[indices] = tensor");
    status = overlap_check(self, index, value, accumulate);
    if (status == BASE_OK) status = rows_find(self, index, &rows);
    if (status == BASE_OK) status = values_expand(self, &rows, value, &values);
    if (status == BASE_OK && write.node != NULL) {
        ((struct tape_sum_payload *)write.node->payload)->is_kept = accumulate;
        status = tape_save(write.node, 2, index.impl);
    }
    if (status == BASE_OK) status = tensor__check_same_device(self.impl, values.impl);
    if (status == BASE_OK) status = tensor__impl_check_writable(self.impl);
    for (int64_t number = 0; number < rows.count && status == BASE_OK; number++) {
        struct tensor_impl to = row_of_self(self.impl, &rows, number);
        const struct tensor_impl from = row_of_result(values.impl, &rows, number);
        status = accumulate ? tensor__accumulate_elements(&to, &to.geometry, &from)
                            : tensor__copy_elements(&to, &from);
    }
    tensor__gradients_restore(was_off);
    free(rows.offsets);
    tensor_release(&values);
    if (status == BASE_OK)
        tensor__write_end(self, &write);
    else
        tensor__write_abandon(&write);
    return status;
}
