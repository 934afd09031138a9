// Copies and fills: which arguments are legal, and when the host waits. What cannot be known (plain
// host memory) is taken on trust. The bytes are moved by work.c.
#include "simulator/call.h"
#include "simulator/engine.h"
#include "simulator/memory.h"
#include "simulator/stream.h"

// Device sides may be page-locked memory, which devices reach; host sides may not be device memory.
static bool kind_allows(enum cudaMemcpyKind kind, enum sim__place destination,
                        enum sim__place source) {
    const bool to_host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
    const bool from_host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
    if (kind == cudaMemcpyDefault)
        return true;
    return destination != (to_host ? SIM__PLACE_DEVICE : SIM__PLACE_PAGEABLE) &&
           source != (from_host ? SIM__PLACE_DEVICE : SIM__PLACE_PAGEABLE);
}

static cudaError_t copy_locked(void *destination, const void *source, size_t size,
                               enum cudaMemcpyKind kind, cudaStream_t handle, bool synchronous) {
    struct sim__stream *stream;
    enum sim__place to, from;
    if ((unsigned)kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    cudaError_t error = sim__stream_resolve(handle, &stream);
    if (error != cudaSuccess || size == 0)
        return error;
    if (destination == NULL || source == NULL || !sim__memory_locate(destination, size, &to) ||
        !sim__memory_locate(source, size, &from) || !kind_allows(kind, to, from))
        return cudaErrorInvalidValue;

    const struct sim__operation operation = {
        .kind = SIM__OPERATION_COPY,
        .copy = {destination, source, size, to, from, .staged = false},
    };
    const int device = stream->device;
    const struct sim__position position =
        sim__engine_submit(stream, &operation, (struct sim__position){0});
    const bool both_host = to != SIM__PLACE_DEVICE && from != SIM__PLACE_DEVICE;
    const bool both_device = to == SIM__PLACE_DEVICE && from == SIM__PLACE_DEVICE;
    if ((synchronous && !both_device) || both_host)
        sim__engine_force(position);
    return sim__state.devices[device].sticky_error;
}

static cudaError_t fill_locked(void *pointer, int value, size_t size, cudaStream_t handle,
                               bool synchronous) {
    struct sim__stream *stream;
    enum sim__place place;
    cudaError_t error = sim__stream_resolve(handle, &stream);
    if (error != cudaSuccess || size == 0)
        return error;
    if (!sim__memory_locate(pointer, size, &place) || place == SIM__PLACE_PAGEABLE)
        return cudaErrorInvalidValue;
    const struct sim__operation operation = {
        .kind = SIM__OPERATION_FILL,
        .fill = {pointer, size, place, (unsigned char)value},
    };
    const int device = stream->device;
    const struct sim__position position =
        sim__engine_submit(stream, &operation, (struct sim__position){0});
    if (synchronous && place == SIM__PLACE_PINNED)
        sim__engine_force(position);
    return sim__state.devices[device].sticky_error;
}

cudaError_t cudaMemcpy(void *destination, const void *source, size_t size,
                       enum cudaMemcpyKind kind) {
    cudaError_t error = sim__call_begin(SIM_CALL_MEMCPY);
    if (error == cudaSuccess)
        error = copy_locked(destination, source, size, kind, cudaStreamLegacy, true);
    return sim__call_end(SIM_CALL_MEMCPY, error);
}

cudaError_t cudaMemcpyAsync(void *destination, const void *source, size_t size,
                            enum cudaMemcpyKind kind, cudaStream_t stream) {
    cudaError_t error = sim__call_begin(SIM_CALL_MEMCPY);
    if (error == cudaSuccess)
        error = copy_locked(destination, source, size, kind, stream, false);
    return sim__call_end(SIM_CALL_MEMCPY, error);
}

cudaError_t cudaMemset(void *pointer, int value, size_t size) {
    cudaError_t error = sim__call_begin(SIM_CALL_MEMSET);
    if (error == cudaSuccess)
        error = fill_locked(pointer, value, size, cudaStreamLegacy, true);
    return sim__call_end(SIM_CALL_MEMSET, error);
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t size, cudaStream_t stream) {
    cudaError_t error = sim__call_begin(SIM_CALL_MEMSET);
    if (error == cudaSuccess)
        error = fill_locked(pointer, value, size, stream, false);
    return sim__call_end(SIM_CALL_MEMSET, error);
}
