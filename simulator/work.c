// What operations do when they run: bytes move, functions are called, events are stamped. Only
// device memory that is still live is touched: an operation of another device's stream can outlive
// it, and then the device faults as a GPU would (cudaErrorIllegalAddress, for good), and skips its
// other work from there on.
#include "simulator/engine.h"

#include "simulator/checked.h"
#include "simulator/memory.h"
#include "simulator/replay.h"

#include <stdlib.h>
#include <string.h>

static bool is_numerics_on(void) { return sim__state.options.numerics == SIM_NUMERICS_ON; }

// Memory may have gone since the operation was submitted. With numerics off *bytes is NULL for
// device memory.
static bool operand(struct sim__device *device, int reaching, const void *pointer, size_t size,
                    enum sim__access access, enum sim__place submitted_place, void **bytes) {
    *bytes = (void *)(uintptr_t)pointer;
    if (submitted_place != SIM__PLACE_DEVICE ||
        sim__memory_reach(reaching, pointer, size, access, bytes))
        return true;
    if (sim__checked())
        sim__misuse_range(device->index, pointer, size, access);
    device->sticky_error = cudaErrorIllegalAddress;
    return false;
}

static void copy_run(struct sim__device *device, const struct sim__copy *copy) {
    void *destination, *source;
    const int reaching = copy->named ? SIM__ANY_DEVICE : device->index;
    if (!operand(device, reaching, copy->destination,
                 sim__extent(copy->size, copy->rows, copy->destination_pitch), SIM__ACCESS_WRITE,
                 copy->destination_place, &destination) ||
        !operand(device, reaching, copy->source,
                 sim__extent(copy->size, copy->rows, copy->source_pitch), SIM__ACCESS_READ,
                 copy->source_place, &source))
        return;
    if (destination == NULL || source == NULL)
        return;
    for (size_t row = 0; row < copy->rows; ++row)
        memmove((char *)destination + row * copy->destination_pitch,
                (const char *)source + row * copy->source_pitch, copy->size);
}

static void words_fill(char *bytes, uint32_t word, size_t size) {
    for (size_t at = 0; at < size; at += sizeof word)
        memcpy(bytes + at, &word, size - at < sizeof word ? size - at : sizeof word);
}

static void fill_run(struct sim__device *device, const struct sim__fill *fill) {
    void *bytes;
    if (!operand(device, device->index, fill->pointer,
                 sim__extent(fill->size, fill->rows, fill->pitch), SIM__ACCESS_WRITE, fill->place,
                 &bytes) ||
        bytes == NULL)
        return;
    for (size_t row = 0; row < fill->rows; ++row)
        if (fill->words)
            words_fill((char *)bytes + row * fill->pitch, fill->value, fill->size);
        else
            memset((char *)bytes + row * fill->pitch, (int)fill->value, fill->size);
}

static void value_run(struct sim__device *device, const struct sim__value *value) {
    void *bytes;
    if (operand(device, device->index, value->address, value->size, SIM__ACCESS_WRITE, value->place,
                &bytes) &&
        bytes != NULL)
        memcpy(bytes, &value->value, value->size); // little endian
}

static void record_run(struct sim__position position, uint64_t handle) {
    struct sim__event *event = sim__handle_find(&sim__state.events, handle);
    if (event == NULL || event->position.stream != position.stream ||
        event->position.sequence != position.sequence)
        return; // destroyed, or recorded again
    event->time_ns = position.stream->schedule.end_ns;
}

// Without bytes kernels have nothing to work on; after an error the device does nothing more, but
// callbacks are told.
bool sim__operation_is_call(const struct sim__device *device,
                            const struct sim__operation *operation) {
    if (operation->kind == SIM__OPERATION_HOST_FUNCTION)
        return device->sticky_error == cudaSuccess || operation->host_function.callback != NULL;
    return operation->kind == SIM__OPERATION_KERNEL && is_numerics_on() &&
           device->sticky_error == cudaSuccess;
}

static void host_function_call(const struct sim__host_function *host, cudaError_t status) {
    if (host->callback != NULL)
        host->callback(host->stream, status, host->user_data);
    else
        host->function(host->user_data);
}

// CUDA calls from inside are refused; see sim__call_begin.
void sim__operation_call(const struct sim__operation *operation, int device, cudaError_t status) {
    struct sim__thread *thread = sim__thread();
    ++thread->work_depth;
    thread->work_device = device;
    if (operation->kind == SIM__OPERATION_HOST_FUNCTION)
        host_function_call(&operation->host_function, status);
    else
        operation->kernel.body(operation->kernel.argument);
    --thread->work_depth;
}

void sim__operation_run(struct sim__position position, const struct sim__operation *operation) {
    struct sim__device *device = &sim__state.devices[position.stream->device];
    switch (operation->kind) {
    case SIM__OPERATION_RECORD: record_run(position, operation->event); break;
    case SIM__OPERATION_WAIT:
    case SIM__OPERATION_LAUNCH_BEGIN: break;
    case SIM__OPERATION_LAUNCH_END: sim__launch_end(operation->launch); break;
    case SIM__OPERATION_COPY:
        if (device->sticky_error == cudaSuccess)
            copy_run(device, &operation->copy);
        break;
    case SIM__OPERATION_FILL:
        if (device->sticky_error == cudaSuccess)
            fill_run(device, &operation->fill);
        break;
    case SIM__OPERATION_VALUE:
        if (device->sticky_error == cudaSuccess)
            value_run(device, &operation->value);
        break;
    case SIM__OPERATION_INTERNAL:
        operation->internal.run(operation->internal.argument, false);
        break;
    case SIM__OPERATION_KERNEL:
    case SIM__OPERATION_HOST_FUNCTION: break;
    }
}

static void *bytes_copy(const void *bytes, size_t size, size_t rows, size_t pitch) {
    char *copy = malloc(size * rows);
    if (copy == NULL)
        sim__host_limit("out of host memory for %zu bytes of a pending operation", size * rows);
    for (size_t row = 0; row < rows; ++row)
        memcpy(copy + row * size, (const char *)bytes + row * pitch, size);
    return copy;
}

void sim__operation_keep(struct sim__operation *operation) {
    if (operation->kind == SIM__OPERATION_KERNEL && operation->kernel.argument_size > 0) {
        operation->kernel.argument =
            bytes_copy(operation->kernel.argument, operation->kernel.argument_size, 1, 0);
    } else if (operation->kind == SIM__OPERATION_COPY && operation->copy.stage &&
               is_numerics_on()) {
        struct sim__copy *copy = &operation->copy;
        copy->source = bytes_copy(copy->source, copy->size, copy->rows, copy->source_pitch);
        copy->source_pitch = copy->size;
        copy->staged = true;
    }
}

void sim__operation_release(struct sim__operation *operation) {
    if (operation->kind == SIM__OPERATION_KERNEL && operation->kernel.argument_size > 0)
        free((void *)(uintptr_t)operation->kernel.argument);
    else if (operation->kind == SIM__OPERATION_COPY && operation->copy.staged)
        free((void *)(uintptr_t)operation->copy.source);
}
