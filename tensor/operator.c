// See operator.h.
#include "tensor/operator.h"

#include "tensor/error.h"
#include "tensor/iterate.h"

#include <stdio.h>
#include <string.h>

enum base_status tensor__array(const struct tensor_impl *impl, struct tensor_kernel_shape *shape,
                               struct tensor_kernel_array *array) {
    const struct tensor_geometry *geometry = &impl->geometry;
    struct tensor_operand operand;
    const enum base_status status =
        tensor__operand(impl, geometry->rank, geometry->sizes, &operand);
    if (status != BASE_OK)
        return status;
    array->data = operand.data;
    array->type = (int)operand.type;
    memcpy(array->strides, operand.strides, (size_t)geometry->rank * sizeof array->strides[0]);
    if (shape != NULL) {
        shape->rank = geometry->rank;
        memcpy(shape->sizes, geometry->sizes, (size_t)geometry->rank * sizeof shape->sizes[0]);
    }
    return BASE_OK;
}

enum base_status tensor__rows(const struct tensor_impl *impl, int dim,
                              struct tensor_kernel_shape *shape, struct tensor_kernel_rows *rows) {
    const struct tensor_geometry *geometry = &impl->geometry;
    struct tensor_kernel_array all;
    const enum base_status status = tensor__array(impl, NULL, &all);
    if (status != BASE_OK)
        return status;
    *rows = (struct tensor_kernel_rows){.array = {.data = all.data, .type = all.type}};
    int count = 0;
    for (int at = 0; at < geometry->rank; at++) {
        if (at == dim) {
            rows->step = all.strides[at];
            continue;
        }
        rows->array.strides[count] = all.strides[at];
        if (shape != NULL)
            shape->sizes[count] = geometry->sizes[at];
        count++;
    }
    if (shape != NULL)
        shape->rank = count;
    return BASE_OK;
}

enum base_status tensor__flat(const struct tensor_impl *impl, struct tensor_kernel_array *array) {
    struct tensor_operand operand = {.data = NULL};
    enum base_status status = BASE_OK;
    if (impl != NULL)
        status = tensor__operand(impl, impl->geometry.rank, impl->geometry.sizes, &operand);
    *array = (struct tensor_kernel_array){
        .data = operand.data, .type = (int)operand.type, .strides = {1}};
    return status;
}

enum base_status tensor__model(const struct tensor_impl *impl,
                               const struct tensor_model_backend **model,
                               struct tensor_device_stream *stream) {
    const struct tensor_backend *backend;
    const enum base_status status = tensor__backend(&impl->storage->place, &backend);
    if (status != BASE_OK)
        return status;
    *model = backend->model;
    *stream = tensor__device_stream(&impl->storage->place);
    return BASE_OK;
}

enum base_status tensor__make(const struct tensor_impl *like, enum tensor_type type,
                              const int64_t *sizes, int rank, struct tensor *made) {
    struct tensor_geometry geometry;
    const enum base_status status = tensor_geometry_init(&geometry, sizes, rank);
    if (status != BASE_OK)
        return status;
    return tensor__impl_alloc(&like->storage->place, type, &geometry, &made->impl);
}

enum base_status tensor__check_floating(const char *name, const struct tensor_impl *impl) {
    if (tensor_type_is_floating(impl->type))
        return BASE_OK;
    return tensor__error_not_implemented("\"%s\" not implemented for '%s'", name,
                                         tensor_type_scalar_name(impl->type));
}

enum base_status tensor__explain(enum base_status status, const char *name,
                                 const struct tensor *operands, int count) {
    if (status != BASE_OUT_OF_MEMORY)
        return status;
    char text[BASE_STATUS_MESSAGE_SIZE];
    size_t used = 0;
    text[0] = 0;
    for (int index = 0; index < count; index++) {
        char sizes[TENSOR_SIZES_TEXT_SIZE];
        if (operands[index].impl == NULL || used >= sizeof text)
            continue;
        const struct tensor_impl *impl = operands[index].impl;
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s %s", used == 0 ? "" : ", ",
                             tensor_type_name(impl->type),
                             tensor_sizes_text(impl->geometry.sizes, impl->geometry.rank, sizes));
    }
    return base_status_prefix(status, "%s(%s)", name, text);
}
