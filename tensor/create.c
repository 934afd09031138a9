// Making tensors. See tensor.h.
#include "tensor/backend.h"
#include "tensor/error.h"
#include "tensor/impl.h"
#include "tensor/iterate.h"
#include "tensor/kernel/number.h"
#include "tensor/transfer.h"

#include <math.h>
#include <string.h>

static TENSOR_RARE enum base_status refuse_sizes(const int64_t *sizes, int rank) {
    char text[TENSOR_SIZES_TEXT_SIZE];
    tensor_sizes_text(sizes, rank, text);
    for (int dim = 0; dim < rank; dim++)
        if (sizes[dim] < 0)
            return tensor__error("Trying to create tensor with negative dimension %lld: %s",
                                 (long long)sizes[dim], text);
    return tensor__error("Storage size calculation overflowed with sizes=%s", text);
}

static enum base_status geometry_checked(const int64_t *sizes, int rank, enum tensor_type type,
                                         struct tensor_geometry *geometry) {
    const enum base_status status = tensor_geometry_init(geometry, sizes, rank);
    if (status != BASE_OK)
        return status;
    int64_t bytes;
    if (tensor_geometry_contiguous_bytes(geometry, tensor_type_size(type), &bytes))
        return BASE_OK;
    return refuse_sizes(sizes, rank);
}

enum base_status tensor_empty(const struct tensor_place *place, enum tensor_type type,
                              const int64_t *sizes, int rank, enum tensor_format format,
                              struct tensor *result) {
    struct tensor_geometry geometry;
    enum base_status status = geometry_checked(sizes, rank, type, &geometry);
    if (status == BASE_OK && format != TENSOR_CONTIGUOUS)
        status = tensor_geometry_set_format(&geometry, format);
    if (status == BASE_OK)
        status = tensor__impl_alloc(place, type, &geometry, &result->impl);
    return status;
}

enum base_status tensor_empty_strided(const struct tensor_place *place, enum tensor_type type,
                                      const int64_t *sizes, int rank, const int64_t *strides,
                                      int stride_count, struct tensor *result) {
    if (rank != stride_count)
        return tensor__error(
            "dimensionality of sizes (%d) must match dimensionality of strides (%d)", rank,
            stride_count);
    struct tensor_geometry geometry;
    const enum base_status status = geometry_checked(sizes, rank, type, &geometry);
    if (status != BASE_OK)
        return status;
    memcpy(geometry.strides, strides, (size_t)rank * sizeof *strides);
    return tensor__impl_alloc(place, type, &geometry, &result->impl);
}

enum base_status tensor_full(const struct tensor_place *place, enum tensor_type type,
                             const int64_t *sizes, int rank, struct tensor_scalar value,
                             struct tensor *result) {
    struct tensor made;
    enum base_status status = tensor_empty(place, type, sizes, rank, TENSOR_CONTIGUOUS, &made);
    if (status != BASE_OK)
        return status;
    status = tensor__fill_elements(made.impl, value);
    if (status == BASE_OK)
        *result = made;
    else
        tensor_release(&made);
    return status;
}

enum base_status tensor_zeros(const struct tensor_place *place, enum tensor_type type,
                              const int64_t *sizes, int rank, struct tensor *result) {
    for (int dim = 0; dim < rank; dim++)
        if (sizes[dim] < 0)
            return tensor__error("zeros: Dimension size must be non-negative.");
    return tensor_full(place, type, sizes, rank, tensor_integer(0), result);
}

enum base_status tensor_ones(const struct tensor_place *place, enum tensor_type type,
                             const int64_t *sizes, int rank, struct tensor *result) {
    return tensor_full(place, type, sizes, rank, tensor_integer(1), result);
}

enum base_status tensor_arange(const struct tensor_place *place, enum tensor_type type,
                               double start, double end, double step, struct tensor *result) {
    if (step == 0)
        return tensor__error("step must be nonzero");
    if (!isfinite(start) || !isfinite(end))
        return tensor__error("unsupported range: %g -> %g", start, end);
    if ((step > 0 && end < start) || (step < 0 && end > start))
        return tensor__error("upper bound and lower bound inconsistent with step sign");
    if (place->kind != TENSOR_CPU)
        return base_status_set(BASE_UNSUPPORTED,
                               "arange makes CPU tensors: make it there and copy it");
    const double count = ceil((end - start) / step);
    if (!(count < 0x1p62))
        return tensor__error("invalid size, possible overflow?");
    const int64_t size = (int64_t)count;
    struct tensor made;
    const enum base_status status = tensor_empty(place, type, &size, 1, TENSOR_CONTIGUOUS, &made);
    if (status != BASE_OK)
        return status;
    const struct tensor_kernel_array array = {.data = made.impl->storage->data, .type = (int)type};
    const bool is_floating = tensor_type_is_floating(type);
    for (int64_t index = 0; index < size; index++) {
        const double value = start + (double)index * step;
        const struct tensor_kernel_number number = {value, tensor_kernel_to_integer(value)};
        tensor_kernel_store(&array, index, number,
                            is_floating ? TENSOR_KERNEL_FLOAT64 : TENSOR_KERNEL_INT64);
    }
    *result = made;
    return BASE_OK;
}

enum base_status tensor_from_bytes(const struct tensor_place *place, enum tensor_type type,
                                   const int64_t *sizes, int rank, const void *bytes,
                                   struct tensor *result) {
    struct tensor made;
    enum base_status status = tensor_empty(place, type, sizes, rank, TENSOR_CONTIGUOUS, &made);
    if (status != BASE_OK)
        return status;
    const size_t size = (size_t)made.impl->geometry.numel * tensor_type_size(type);
    void *data = made.impl->storage->data;
    if (place->kind == TENSOR_CPU) {
        if (size > 0)
            memcpy(data, bytes, size);
    } else if (size > 0) {
        status = tensor__transfer_in(made.impl, bytes);
    }
    if (status == BASE_OK)
        *result = made;
    else
        tensor_release(&made);
    return status;
}

enum base_status tensor_from_memory(const struct tensor_place *place, enum tensor_type type,
                                    const int64_t *sizes, int rank, void *memory,
                                    void (*deleter)(void *context, void *memory), void *context,
                                    struct tensor *result) {
    struct tensor_geometry geometry;
    enum base_status status = geometry_checked(sizes, rank, type, &geometry);
    if (status != BASE_OK)
        return status;
    // Made without a deleter first: a refusal must not run it.
    struct tensor_storage *storage;
    status = tensor__storage_adopt(place, memory, (size_t)geometry.numel * tensor_type_size(type),
                                   NULL, NULL, &storage);
    if (status != BASE_OK)
        return status;
    status = tensor__impl_create(storage, type, &geometry, !tensor_inference_mode(), &result->impl);
    if (status == BASE_OK) {
        storage->deleter = deleter;
        storage->context = context;
    }
    tensor__storage_drop(storage);
    return status;
}
