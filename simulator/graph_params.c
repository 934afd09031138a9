// Parameters of nodes. Copies and fills are rows of bytes here, as everywhere in the simulator: a
// three-dimensional copy is one if the starts of all its rows are equally far apart. Other ones are
// not simulated.
#include "simulator/graph_params.h"

#include "simulator/call.h"
#include "simulator/checked.h"
#include "simulator/memory.h"
#include "simulator/stream.h"

#include <string.h>

static cudaError_t form_take(struct sim__node_form *form, enum cudaGraphNodeType type,
                             const struct sim__operation *operation) {
    *form = (struct sim__node_form){.type = type};
    form->work = sim__graph_work_create(operation, sim__device_current()->index, 0, NULL);
    return form->work != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

// --- Copies ---

struct side {
    const char *start;
    size_t pitch; // between starts of rows
};

// The start of the copy in POINTER, and its rows; false if the numbers cannot be right.
static bool side_of(struct side *side, const struct cudaPitchedPtr *pointer,
                    const struct cudaPos *position, const struct cudaExtent *extent) {
    size_t slice, offset, end;
    const bool one_row = extent->height == 1 && extent->depth == 1;
    if (pointer->ptr == NULL || __builtin_mul_overflow(pointer->pitch, pointer->ysize, &slice) ||
        __builtin_mul_overflow(slice, position->z, &offset) ||
        __builtin_add_overflow(offset, position->y * pointer->pitch, &offset) ||
        __builtin_add_overflow(offset, position->x, &offset) ||
        __builtin_add_overflow(position->x, extent->width, &end) ||
        (!one_row && end > pointer->pitch))
        return false;
    side->start = (const char *)pointer->ptr + offset;
    side->pitch = extent->height == 1 ? slice : pointer->pitch;
    return true;
}

// Whether the starts of all rows are equally far apart.
static bool is_even(const struct cudaPitchedPtr *pointer, const struct cudaExtent *extent) {
    return extent->depth == 1 || extent->height == 1 || pointer->ysize == extent->height;
}

static cudaError_t memcpy_take(struct sim__node_form *form, struct sim__copy *copy,
                               enum cudaMemcpyKind kind) {
    cudaError_t error = sim__copy_locate(sim__device_current()->index, copy, kind);
    if (error != cudaSuccess || copy->size == 0 || copy->rows == 0)
        return error != cudaSuccess ? error : cudaErrorInvalidValue;
    const struct sim__operation operation = {.kind = SIM__OPERATION_COPY, .copy = *copy};
    error = form_take(form, cudaGraphNodeTypeMemcpy, &operation);
    form->kind = kind;
    return error;
}

cudaError_t sim__form_memcpy_1d(struct sim__node_form *form, void *destination, const void *source,
                                size_t size, enum cudaMemcpyKind kind) {
    struct sim__copy copy = {
        .destination = destination, .source = source, .size = size, .rows = 1};
    return memcpy_take(form, &copy, kind);
}

cudaError_t sim__form_memcpy(struct sim__node_form *form,
                             const struct cudaMemcpy3DParms *parameters) {
    struct side to, from;
    size_t rows;
    if (parameters == NULL || parameters->srcArray != NULL || parameters->dstArray != NULL)
        return cudaErrorInvalidValue;
    const struct cudaExtent *extent = &parameters->extent;
    if (extent->width == 0 || __builtin_mul_overflow(extent->height, extent->depth, &rows) ||
        rows == 0 || !side_of(&to, &parameters->dstPtr, &parameters->dstPos, extent) ||
        !side_of(&from, &parameters->srcPtr, &parameters->srcPos, extent))
        return cudaErrorInvalidValue;
    if (!is_even(&parameters->dstPtr, extent) || !is_even(&parameters->srcPtr, extent))
        return cudaErrorNotSupported;
    struct sim__copy copy = {
        .destination = (void *)(uintptr_t)to.start,
        .source = from.start,
        .size = extent->width,
        .rows = rows,
        .destination_pitch = to.pitch,
        .source_pitch = from.pitch,
    };
    return memcpy_take(form, &copy, parameters->kind);
}

// A captured copy has none of its own.
static enum cudaMemcpyKind kind_of(const struct sim__copy *copy) {
    const bool to_device = copy->destination_place == SIM__PLACE_DEVICE;
    if (copy->source_place == SIM__PLACE_DEVICE)
        return to_device ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
    return to_device ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost;
}

void sim__params_memcpy(const struct sim__node *node, struct cudaMemcpy3DParms *parameters) {
    const struct sim__copy *copy = &node->work->operation.copy;
    const size_t to_pitch = copy->rows > 1 ? copy->destination_pitch : copy->size;
    const size_t from_pitch = copy->rows > 1 ? copy->source_pitch : copy->size;
    *parameters = (struct cudaMemcpy3DParms){
        .dstPtr = {copy->destination, to_pitch, copy->size, copy->rows},
        .srcPtr = {(void *)(uintptr_t)copy->source, from_pitch, copy->size, copy->rows},
        .extent = {copy->size, copy->rows, 1},
        .kind = node->stream != 0 ? kind_of(copy) : node->kind,
    };
}

// --- Fills ---

cudaError_t sim__form_memset(struct sim__node_form *form,
                             const struct cudaMemsetParams *parameters) {
    if (parameters == NULL)
        return cudaErrorInvalidValue;
    const unsigned int element = parameters->elementSize;
    struct sim__fill fill = {.pointer = parameters->dst,
                             .rows = parameters->height,
                             .pitch = parameters->height > 1 ? parameters->pitch : 0,
                             .value = parameters->value,
                             .words = element > 1};
    if ((element != 1 && element != 2 && element != 4) ||
        (uintptr_t)parameters->dst % element != 0 || fill.pitch % element != 0 ||
        __builtin_mul_overflow(parameters->width, element, &fill.size) || fill.size == 0 ||
        fill.rows == 0 || (fill.rows > 1 && fill.pitch < fill.size))
        return cudaErrorInvalidValue;
    if (element == 1)
        fill.value &= 0xff;
    else if (element == 2)
        fill.value = (fill.value & 0xffff) * 0x10001;
    cudaError_t error = sim__fill_locate(sim__device_current()->index, &fill);
    if (error != cudaSuccess)
        return error;
    const struct sim__operation operation = {.kind = SIM__OPERATION_FILL, .fill = fill};
    error = form_take(form, cudaGraphNodeTypeMemset, &operation);
    form->element_size = element;
    return error;
}

void sim__params_memset(const struct sim__node *node, struct cudaMemsetParams *parameters) {
    const struct sim__fill *fill = &node->work->operation.fill;
    const uint32_t element = node->element_size != 0 ? node->element_size : fill->words ? 4 : 1;
    *parameters = (struct cudaMemsetParams){
        .dst = fill->pointer,
        .pitch = fill->pitch,
        .value = element == 2 ? fill->value & 0xffff : fill->value,
        .elementSize = element,
        .width = fill->size / element,
        .height = fill->rows,
    };
}

// --- Functions and events ---

cudaError_t sim__form_host(struct sim__node_form *form,
                           const struct cudaHostNodeParams *parameters) {
    if (parameters == NULL || parameters->fn == NULL)
        return cudaErrorInvalidValue;
    struct sim__operation operation = {
        .kind = SIM__OPERATION_HOST_FUNCTION,
        .host_function = {.function = parameters->fn, .user_data = parameters->userData},
    };
    sim__race_take_accesses(&operation.host_function);
    return form_take(form, cudaGraphNodeTypeHost, &operation);
}

cudaError_t sim__form_kernel(struct sim__node_form *form, const struct sim_kernel *kernel) {
    struct sim__operation operation = {.kind = SIM__OPERATION_KERNEL};
    const cudaError_t error =
        kernel == NULL ? cudaErrorInvalidValue : sim__kernel_operation(kernel, &operation);
    return error != cudaSuccess ? error : form_take(form, cudaGraphNodeTypeKernel, &operation);
}

// The simulator's kernels have no launch configuration.
void sim__params_kernel(const struct sim__node *node, struct cudaKernelNodeParams *parameters) {
    *parameters = (struct cudaKernelNodeParams){
        .func = (void *)(uintptr_t)node->work->operation.kernel.body,
        .gridDim = {1, 1, 1},
        .blockDim = {1, 1, 1},
    };
}

cudaError_t sim__form_event(struct sim__node_form *form, enum cudaGraphNodeType type,
                            cudaEvent_t event) {
    struct sim__event *found;
    const cudaError_t error = sim__event_resolve(event, &found);
    *form = (struct sim__node_form){.type = type, .event = event};
    return error;
}

// --- Any type ---

// Not a kind of node that is not simulated, nor bytes that must be zero.
static cudaError_t any_check(const struct cudaGraphNodeParams *parameters) {
    static const int zero[3];
    if (parameters == NULL || parameters->reserved2 != 0 ||
        memcmp(parameters->reserved0, zero, sizeof zero) != 0)
        return cudaErrorInvalidValue;
    switch (parameters->type) {
    case cudaGraphNodeTypeConditional:
        if (sim__checked())
            sim__misuse("conditional nodes are not simulated");
        return cudaErrorNotSupported;
    case cudaGraphNodeTypeExtSemaphoreSignal:
    case cudaGraphNodeTypeExtSemaphoreWait:
        if (sim__checked())
            sim__misuse("nodes of external semaphores are not simulated");
        return cudaErrorNotSupported;
    default: return cudaSuccess;
    }
}

cudaError_t sim__form_any(struct sim__node_form *form,
                          const struct cudaGraphNodeParams *parameters) {
    const cudaError_t error = any_check(parameters);
    if (error != cudaSuccess)
        return error;
    switch (parameters->type) {
    case cudaGraphNodeTypeKernel: return cudaErrorInvalidDeviceFunction;
    case cudaGraphNodeTypeMemcpy:
        return parameters->memcpy.flags != 0
                   ? cudaErrorInvalidValue
                   : sim__form_memcpy(form, &parameters->memcpy.copyParams);
    case cudaGraphNodeTypeMemset: {
        const struct cudaMemsetParamsV2 *set = &parameters->memset;
        return sim__form_memset(form, &(struct cudaMemsetParams){
                                          .dst = set->dst,
                                          .pitch = set->pitch,
                                          .value = set->value,
                                          .elementSize = set->elementSize,
                                          .width = set->width,
                                          .height = set->height,
                                      });
    }
    case cudaGraphNodeTypeHost:
        return sim__form_host(form, &(struct cudaHostNodeParams){parameters->host.fn,
                                                                 parameters->host.userData});
    case cudaGraphNodeTypeEmpty:
        *form = (struct sim__node_form){.type = cudaGraphNodeTypeEmpty};
        return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent:
        return sim__form_event(form, parameters->type, parameters->eventWait.event);
    case cudaGraphNodeTypeEventRecord:
        return sim__form_event(form, parameters->type, parameters->eventRecord.event);
    default: return cudaErrorInvalidValue;
    }
}

// --- Changes to executables ---

static bool is_same_memory(const struct sim__graph_work *old, const struct sim__graph_work *new) {
    return old->operand_devices[0] == new->operand_devices[0] &&
           old->operand_devices[1] == new->operand_devices[1];
}

// What has several rows keeps its shape; what has one row keeps to one.
static bool is_replaceable_copy(const struct sim__copy *old, const struct sim__copy *new) {
    if (old->rows != new->rows || old->peer != new->peer ||
        old->destination_place != new->destination_place || old->source_place != new->source_place)
        return false;
    return old->rows == 1 || (old->size == new->size &&
                              old->destination_pitch == new->destination_pitch &&
                              old->source_pitch == new->source_pitch);
}

static bool is_replaceable_fill(const struct sim__fill *old, const struct sim__fill *new) {
    if (old->place != new->place || old->rows != new->rows)
        return false;
    return old->rows == 1 || (old->size == new->size && old->pitch == new->pitch);
}

enum cudaGraphExecUpdateResult sim__work_replaceable(const struct sim__graph_work *old,
                                                     const struct sim__graph_work *new) {
    if (old == NULL)
        return cudaGraphExecUpdateSuccess;
    const enum sim__operation_kind kind = old->operation.kind;
    if (kind == SIM__OPERATION_HOST_FUNCTION)
        return cudaGraphExecUpdateSuccess;
    if (kind == SIM__OPERATION_KERNEL)
        return old->device == new->device ? cudaGraphExecUpdateSuccess
                                          : cudaGraphExecUpdateErrorUnsupportedFunctionChange;
    if (kind == SIM__OPERATION_INTERNAL) // of memory nodes
        return cudaGraphExecUpdateErrorNotSupported;
    bool fits = old->device == new->device && is_same_memory(old, new);
    if (kind == SIM__OPERATION_COPY)
        fits = fits && is_replaceable_copy(&old->operation.copy, &new->operation.copy);
    else if (kind == SIM__OPERATION_FILL)
        fits = fits && is_replaceable_fill(&old->operation.fill, &new->operation.fill);
    return fits ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorParametersChanged;
}
