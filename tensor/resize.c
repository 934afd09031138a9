// Changes of a tensor's own metadata and storage: in-place views, set_, resize_. See tensor.h.
//
// PyTorch leaves new sizes behind when it refuses some of these; here everything is checked before
// anything changes.
#include "tensor/autograd.h"
#include "tensor/error.h"
#include "tensor/view.h"

#include <string.h>

static enum base_status view_in_place(struct tensor self, const struct tensor_view_call *call,
                                      const struct tape_formula *formula) {
    struct tensor_write write;
    struct tensor_geometry geometry;
    enum base_status status =
        tensor__write_begin(formula, &self, 1, tape_view_payload_size(1), true, &write);
    if (status != BASE_OK)
        return status;
    status = tensor__view_geometry(self.impl, call, &geometry);
    if (status == BASE_OK)
        status = tensor__impl_check_writable(self.impl);
    if (status != BASE_OK) {
        tensor__write_abandon(&write);
        return status;
    }
    if (write.node != NULL)
        tape__view_payload_set(write.node, self.impl, call, 1);
    tensor__impl_set_geometry(self.impl, &geometry);
    tensor__write_end(self, &write);
    return BASE_OK;
}

enum base_status tensor_transpose_(struct tensor self, int64_t dim0, int64_t dim1) {
    const struct tensor_view_call call = tensor__call_transpose(dim0, dim1);
    return view_in_place(self, &call, &tape_transpose_in_place);
}

enum base_status tensor_transpose_2d_(struct tensor self) {
    struct tensor_view_call call;
    const enum base_status status = tensor__call_t(self, &call);
    return status != BASE_OK ? status : view_in_place(self, &call, &tape_t_in_place);
}

enum base_status tensor_squeeze_(struct tensor self) {
    const struct tensor_view_call call = {.kind = TENSOR_VIEW_SQUEEZE};
    return view_in_place(self, &call, &tape_squeeze_in_place);
}

enum base_status tensor_squeeze_dim_(struct tensor self, int64_t dim) {
    const struct tensor_view_call call = tensor__call_squeeze_dims(&dim, 1);
    return view_in_place(self, &call, &tape_squeeze_dim_in_place);
}

enum base_status tensor_unsqueeze_(struct tensor self, int64_t dim) {
    const struct tensor_view_call call = {.kind = TENSOR_VIEW_UNSQUEEZE, .dim = dim};
    return view_in_place(self, &call, &tape_unsqueeze_in_place);
}

enum base_status tensor_as_strided_(struct tensor self, const int64_t *sizes, int rank,
                                    const int64_t *strides, int stride_count,
                                    const int64_t *offset) {
    if (rank != stride_count)
        return tensor__error("mismatch in length of strides and shape");
    const enum base_status status = tensor__check_rank(rank);
    if (status != BASE_OK)
        return status;
    const struct tensor_view_call call =
        tensor__call_as_strided(self, sizes, rank, strides, offset);
    return view_in_place(self, &call, &tape_as_strided_in_place);
}

//------------------------------------------------------------------------------------------------
// Other storages

// Bytes of storage for the geometry when it is laid out row by row: what a resize needs.
static enum base_status needed_bytes(const struct tensor_geometry *geometry, size_t item_size,
                                     int64_t *bytes) {
    int64_t numel;
    if (!tensor_geometry_count(geometry, &numel) ||
        __builtin_add_overflow(numel, geometry->offset, &numel) ||
        __builtin_mul_overflow(numel, (int64_t)item_size, bytes))
        return tensor__error("numel: integer multiplication overflow");
    return BASE_OK;
}

static enum base_status storage_grow(struct tensor_storage *storage, int64_t bytes) {
    if ((uint64_t)bytes <= storage->bytes)
        return BASE_OK;
    return tensor__storage_resize(storage, (size_t)bytes);
}

// SELF is given STORAGE and GEOMETRY; the storage grows where it is too small.
static enum base_status storage_set(struct tensor self, struct tensor_storage *storage,
                                    const struct tensor_geometry *geometry,
                                    const struct tensor *inputs, int input_count) {
    struct tensor_write write;
    enum base_status status =
        tensor__write_begin(&tape_not_implemented, inputs, input_count, 0, true, &write);
    if (status != BASE_OK)
        return status;
    char sizes[TENSOR_SIZES_TEXT_SIZE], strides[TENSOR_SIZES_TEXT_SIZE];
    const struct tensor_geometry *own = &self.impl->geometry;
    const struct tensor_place *place = &self.impl->storage->place, *other = &storage->place;
    const size_t item_size = tensor__item_size(self.impl);
    int64_t bytes = 0;
    if (place->kind != other->kind || place->device != other->device)
        status = tensor__error("set_: the storage is on another device than the tensor");
    else if (geometry->offset < 0)
        status = tensor__error("Tensor: invalid storage offset %lld", (long long)geometry->offset);
    else if (!tensor_geometry_bytes(geometry, item_size, &bytes))
        status = tensor__error("Storage size calculation overflowed with sizes=%s and strides=%s",
                               tensor_sizes_text(geometry->sizes, geometry->rank, sizes),
                               tensor_sizes_text(geometry->strides, geometry->rank, strides));
    else if (tensor_geometry_same_shape(own, geometry) &&
             memcmp(own->strides, geometry->strides, (size_t)own->rank * sizeof(int64_t)) == 0)
        status = tensor_view_check_bounds(geometry, item_size, storage->bytes);
    if (status == BASE_OK)
        status = tensor__impl_check_writable(self.impl);
    if (status == BASE_OK)
        status = storage_grow(storage, bytes);
    if (status != BASE_OK) {
        tensor__write_abandon(&write);
        return status;
    }
    tensor__impl_set_storage(self.impl, storage);
    tensor__impl_set_geometry(self.impl, geometry);
    tensor__write_end(self, &write);
    return BASE_OK;
}

enum base_status tensor_set_(struct tensor self, struct tensor source) {
    if (self.impl->type != source.impl->type)
        return tensor__error("Could not set tensor of type %s to a tensor of type %s",
                             tensor_type_native_name(source.impl->type),
                             tensor_type_native_name(self.impl->type));
    struct tensor_geometry geometry;
    tensor_geometry_copy(&geometry, &source.impl->geometry);
    return storage_set(self, source.impl->storage, &geometry, (struct tensor[]){self, source}, 2);
}

enum base_status tensor_set_storage_(struct tensor self, struct tensor_storage *storage,
                                     int64_t offset, const int64_t *sizes, int rank,
                                     const int64_t *strides, int stride_count) {
    if (rank != stride_count)
        return tensor__error("unequal size length (%d) and stride length (%d)", rank, stride_count);
    struct tensor_geometry geometry;
    const enum base_status status = tensor_geometry_init(&geometry, sizes, rank);
    if (status != BASE_OK)
        return status;
    geometry.offset = offset;
    memcpy(geometry.strides, strides, (size_t)rank * sizeof *strides);
    return storage_set(self, storage, &geometry, &self, 1);
}

enum base_status tensor_set_whole_(struct tensor self, struct tensor_storage *storage) {
    const int64_t size = (int64_t)(storage->bytes / tensor__item_size(self.impl));
    return tensor_set_storage_(self, storage, 0, &size, 1, (int64_t[]){1}, 1);
}

enum base_status tensor_set_empty_(struct tensor self) {
    struct tensor_storage *storage;
    enum base_status status = tensor__storage_create(&self.impl->storage->place, 0, &storage);
    if (status != BASE_OK)
        return status;
    status = tensor_set_whole_(self, storage);
    tensor__storage_drop(storage);
    return status;
}

enum base_status tensor_set_data(struct tensor self, struct tensor source) {
    struct tensor_autograd *autograd = self.impl->autograd;
    if (tensor__requires_grad(self.impl) && !tensor_type_is_floating(source.impl->type))
        return tensor__error(
            "data set to a tensor that requires gradients must be floating point or complex dtype");
    if (self.impl == source.impl)
        return BASE_OK;
    if (autograd != NULL && autograd->accumulator != NULL && self.impl->type != source.impl->type) {
        tape_node_drop_weak(autograd->accumulator); // what it expects is out of date
        autograd->accumulator = NULL;
    }
    tensor__impl_set_storage(self.impl, source.impl->storage);
    self.impl->type = source.impl->type;
    tensor__impl_set_geometry(self.impl, &source.impl->geometry);
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Other sizes

enum base_status tensor_resize_(struct tensor self, const int64_t *sizes, int rank,
                                const enum tensor_format *format) {
    if (tensor__requires_grad(self.impl))
        return tensor__error("cannot resize variables that require grad");
    struct tensor_geometry geometry;
    enum base_status status = tensor_geometry_init(&geometry, sizes, rank);
    if (status != BASE_OK)
        return status;
    geometry.offset = self.impl->geometry.offset;
    const bool is_same = tensor_geometry_same_shape(&geometry, &self.impl->geometry);
    if (is_same && format == NULL)
        return BASE_OK;
    int64_t bytes = 0;
    status = needed_bytes(&geometry, tensor__item_size(self.impl), &bytes);
    if (status == BASE_OK && format != NULL)
        status = tensor_geometry_set_format(&geometry, *format);
    if (status == BASE_OK)
        status = tensor__impl_check_writable(self.impl);
    if (status == BASE_OK && !is_same && geometry.numel > 0)
        status = storage_grow(self.impl->storage, bytes);
    if (status != BASE_OK)
        return status;
    tensor__impl_set_geometry(self.impl, &geometry);
    if (!is_same)
        tensor__impl_bump(self.impl);
    return BASE_OK;
}

enum base_status tensor_resize_as_(struct tensor self, struct tensor other) {
    struct tensor_geometry geometry;
    tensor_geometry_copy(&geometry, &other.impl->geometry);
    return tensor_resize_(self, geometry.sizes, geometry.rank, NULL);
}
