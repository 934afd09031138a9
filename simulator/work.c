// What operations do when they run: bytes move, functions are called, events are stamped. Only
// device memory that is still live is touched: an operation of another device's stream can outlive
// it, and then the device faults as a GPU would (cudaErrorIllegalAddress, for good), and skips its
// other work from there on.
#include "simulator/engine.h"
#include "simulator/memory.h"

#include <stdlib.h>
#include <string.h>

static bool is_numerics_on(void) { return sim__state.options.numerics == SIM_NUMERICS_ON; }

// Memory may have gone since the operation was submitted. With numerics off *bytes is NULL for
// device memory.
static bool operand(struct sim__device *device, const void *pointer, size_t size,
                    enum sim__place submitted_place, void **bytes) {
    *bytes = (void *)(uintptr_t)pointer;
    if (submitted_place != SIM__PLACE_DEVICE)
        return true;
    enum sim__place place;
    if (!sim__memory_locate(pointer, size, &place) || place != SIM__PLACE_DEVICE) {
        device->sticky_error = cudaErrorIllegalAddress;
        return false;
    }
    *bytes = sim__memory_bytes(pointer);
    return true;
}

static void copy_run(struct sim__device *device, const struct sim__copy *copy) {
    void *destination, *source;
    if (!operand(device, copy->destination, copy->size, copy->destination_place, &destination) ||
        !operand(device, copy->source, copy->size, copy->source_place, &source))
        return;
    if (destination != NULL && source != NULL)
        memmove(destination, source, copy->size);
}

static void fill_run(struct sim__device *device, const struct sim__fill *fill) {
    void *bytes;
    if (operand(device, fill->pointer, fill->size, fill->place, &bytes) && bytes != NULL)
        memset(bytes, fill->value, fill->size);
}

static void record_run(struct sim__position position, uint64_t handle) {
    struct sim__event *event = sim__handle_find(&sim__state.events, handle);
    if (event == NULL || event->position.stream != position.stream ||
        event->position.sequence != position.sequence)
        return; // destroyed, or recorded again
    event->time_us = sim__state.devices[position.stream->device].clock_us;
}

// Without bytes kernels have nothing to work on; after an error the device does nothing more.
bool sim__operation_is_call(const struct sim__device *device,
                            const struct sim__operation *operation) {
    if (device->sticky_error != cudaSuccess)
        return false;
    return operation->kind == SIM__OPERATION_HOST_FUNCTION ||
           (operation->kind == SIM__OPERATION_KERNEL && is_numerics_on());
}

// CUDA calls from inside are refused; see sim__call_begin.
void sim__operation_call(const struct sim__operation *operation) {
    struct sim__thread *thread = sim__thread();
    ++thread->work_depth;
    if (operation->kind == SIM__OPERATION_HOST_FUNCTION)
        operation->host_function.function(operation->host_function.user_data);
    else
        operation->kernel.body(operation->kernel.argument);
    --thread->work_depth;
}

void sim__operation_run(struct sim__position position, const struct sim__operation *operation) {
    struct sim__device *device = &sim__state.devices[position.stream->device];
    switch (operation->kind) {
    case SIM__OPERATION_RECORD: record_run(position, operation->event); break;
    case SIM__OPERATION_WAIT: break;
    case SIM__OPERATION_COPY:
        if (device->sticky_error == cudaSuccess)
            copy_run(device, &operation->copy);
        break;
    case SIM__OPERATION_FILL:
        if (device->sticky_error == cudaSuccess)
            fill_run(device, &operation->fill);
        break;
    case SIM__OPERATION_KERNEL:
    case SIM__OPERATION_HOST_FUNCTION: break;
    }
}

static void *bytes_copy(const void *bytes, size_t size) {
    void *copy = malloc(size);
    if (copy == NULL)
        sim__host_limit("out of host memory for %zu bytes of a pending operation", size);
    return memcpy(copy, bytes, size);
}

void sim__operation_keep(struct sim__operation *operation) {
    if (operation->kind == SIM__OPERATION_KERNEL && operation->kernel.argument_size > 0) {
        operation->kernel.argument =
            bytes_copy(operation->kernel.argument, operation->kernel.argument_size);
    } else if (operation->kind == SIM__OPERATION_COPY &&
               operation->copy.source_place == SIM__PLACE_PAGEABLE && is_numerics_on()) {
        operation->copy.source = bytes_copy(operation->copy.source, operation->copy.size);
        operation->copy.staged = true;
    }
}

void sim__operation_release(struct sim__operation *operation) {
    if (operation->kind == SIM__OPERATION_KERNEL && operation->kernel.argument_size > 0)
        free((void *)(uintptr_t)operation->kernel.argument);
    else if (operation->kind == SIM__OPERATION_COPY && operation->copy.staged)
        free((void *)(uintptr_t)operation->copy.source);
}
