// Copies and fills: which arguments are legal, and when the host waits. What cannot be known (plain
// host memory) is taken on trust. The bytes are moved by work.c.
//
// The plain calls are work of the legacy default stream, or of the thread's own (_ptds). What the
// host waits for is the table of CUDA's "API synchronization behavior": a plain copy within a
// device, and a plain fill of device memory, do not block it; a plain copy from pageable memory
// waits for its stream, reads the source, and may leave the last transfer pending.
#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/memory.h"
#include "simulator/order.h"
#include "simulator/plant.h"
#include "simulator/reading.h"
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

// ROWS rows of SIZE bytes, PITCH apart; false if they do not lie in one piece of memory.
static bool locate(int device, const void *pointer, size_t size, size_t rows, size_t pitch,
                   enum sim__access access, enum sim__place *place) {
    size_t extent;
    return pointer != NULL && !__builtin_mul_overflow(rows - 1, pitch, &extent) &&
           !__builtin_add_overflow(extent, size, &extent) &&
           sim__memory_locate(device, pointer, extent, access, place);
}

static cudaError_t kind_check(enum cudaMemcpyKind kind) {
    if ((unsigned)kind <= cudaMemcpyDefault)
        return cudaSuccess;
    return sim__planted(SIM__PLANT_COPY_KIND) ? cudaErrorInvalidValue
                                              : cudaErrorInvalidMemcpyDirection;
}

cudaError_t sim__copy_locate(int device, struct sim__copy *copy, enum cudaMemcpyKind kind) {
    enum sim__place to, from;
    const cudaError_t error = kind_check(kind);
    if (error != cudaSuccess || copy->size == 0 || copy->rows == 0)
        return error;
    if (!locate(device, copy->destination, copy->size, copy->rows, copy->destination_pitch,
                SIM__ACCESS_WRITE, &to) ||
        !locate(device, copy->source, copy->size, copy->rows, copy->source_pitch, SIM__ACCESS_READ,
                &from) ||
        !kind_allows(kind, to, from))
        return cudaErrorInvalidValue;
    copy->destination_place = to;
    copy->source_place = from;
    return cudaSuccess;
}

cudaError_t sim__fill_locate(int device, struct sim__fill *fill) {
    enum sim__place place;
    if (fill->size == 0 || fill->rows == 0)
        return cudaSuccess;
    if (!locate(device, fill->pointer, fill->size, fill->rows, fill->pitch, SIM__ACCESS_WRITE,
                &place) ||
        place == SIM__PLACE_PAGEABLE)
        return cudaErrorInvalidValue;
    fill->place = place;
    return cudaSuccess;
}

// A plain copy while captures run. In a stream that captures, the host cannot wait; in another one
// the copy is legacy work, if that is its stream, and unsafe besides.
static cudaError_t capture_allows(const struct sim__stream *stream, bool waits) {
    if (stream->capture != NULL)
        return waits ? sim__capture_refuse(stream) : cudaSuccess;
    const cudaError_t error = sim__capture_legacy(stream);
    return error != cudaSuccess || sim__reading_other[SIM__READING_SYNC_COPY]
               ? error
               : sim__capture_unsafe();
}

// What STREAM gets next, for the checker; none if the host does not wait for it.
static struct sim__order_point next_if_checked(struct sim__stream *stream, bool waits) {
    return waits && sim__race_is_on() && stream->capture == NULL ? sim__order_of_next(stream)
                                                                 : (struct sim__order_point){0};
}

// The host learns that the copy is complete, or not yet.
static cudaError_t copy_submit(struct sim__stream *stream, const struct sim__copy *copy,
                               bool waits) {
    const struct sim__operation operation = {.kind = SIM__OPERATION_COPY, .copy = *copy};
    const int device = stream->device;
    struct sim__order_point point = next_if_checked(stream, waits);
    struct sim__position position;
    const cudaError_t error = sim__enqueue(stream, &operation, &position);
    if (error == cudaSuccess && waits) {
        sim__engine_force(position);
        sim__order_know(&point);
    }
    sim__order_release(&point);
    return error != cudaSuccess ? error : sim__state.devices[device].sticky_error;
}

static bool copy_waits(enum sim__place to, enum sim__place from, bool synchronous) {
    const bool both_host = to != SIM__PLACE_DEVICE && from != SIM__PLACE_DEVICE;
    const bool both_device = to == SIM__PLACE_DEVICE && from == SIM__PLACE_DEVICE;
    if (to == SIM__PLACE_PAGEABLE && sim__reading_other[SIM__READING_PAGEABLE_DEST])
        return true;
    return both_host ||
           (synchronous && !both_device && !sim__planted(SIM__PLANT_COPY_EARLY));
}

// SIZE, ROWS and the pitches are set.
static cudaError_t copy_locked(struct sim__copy *copy, enum cudaMemcpyKind kind,
                               cudaStream_t handle, bool synchronous) {
    struct sim__stream *stream;
    cudaError_t error = kind_check(kind);
    if (error == cudaSuccess)
        error = sim__stream_resolve(handle, &stream);
    if (error == cudaSuccess)
        error = sim__copy_locate(stream->device, copy, kind);
    if (error != cudaSuccess || copy->size == 0 || copy->rows == 0)
        return error;
    const enum sim__place to = copy->destination_place, from = copy->source_place;
    if (synchronous && sim__captures_exist()) {
        error = capture_allows(stream, to != SIM__PLACE_DEVICE || from != SIM__PLACE_DEVICE);
        if (error != cudaSuccess)
            return error;
    }
    if (to != SIM__PLACE_DEVICE || from != SIM__PLACE_PAGEABLE)
        return copy_submit(stream, copy, copy_waits(to, from, synchronous));

    copy->stage = (synchronous || !sim__reading_other[SIM__READING_PAGEABLE_SOURCE]) &&
                  !sim__planted(SIM__PLANT_COPY_SOURCE);
    if (synchronous) {
        struct sim__order_point point = sim__order_of_stream(stream);
        sim__engine_force_stream(stream); // can give the lock back
        sim__order_know(&point);
        error = sim__stream_resolve(handle, &stream);
    }
    return error == cudaSuccess ? copy_submit(stream, copy, false) : error;
}

static cudaError_t fill_locked(struct sim__fill *fill, cudaStream_t handle, bool synchronous) {
    struct sim__stream *stream;
    struct sim__position position;
    cudaError_t error = sim__stream_resolve(handle, &stream);
    if (error == cudaSuccess)
        error = sim__fill_locate(stream->device, fill);
    if (error != cudaSuccess || fill->size == 0 || fill->rows == 0)
        return error;
    if (synchronous && fill->place == SIM__PLACE_PINNED && stream->capture != NULL)
        return sim__capture_refuse(stream);
    const struct sim__operation operation = {.kind = SIM__OPERATION_FILL, .fill = *fill};
    const int device = stream->device;
    const bool waits = synchronous && fill->place == SIM__PLACE_PINNED;
    struct sim__order_point point = next_if_checked(stream, waits);
    error = sim__enqueue(stream, &operation, &position);
    if (error == cudaSuccess &&
        (waits ? !sim__planted(SIM__PLANT_FILL_EARLY) : sim__planted(SIM__PLANT_FILL_WAITS)))
        sim__engine_force(position);
    if (error == cudaSuccess)
        sim__order_know(&point);
    sim__order_release(&point);
    return error != cudaSuccess ? error : sim__state.devices[device].sticky_error;
}

static bool is_device(int device) {
    return device >= 0 && device < sim__state.options.device_count;
}

// Work of the legacy streams of all devices in the bit mask.
static cudaError_t capture_allows_fence(uint32_t devices) {
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < sim__state.options.device_count && error == cudaSuccess; ++i)
        if ((devices >> i & 1) != 0)
            error = capture_allows(sim__state.devices[i].legacy, false);
    return error;
}

// Without STREAM: between all earlier and all later work of the devices concerned; the host does
// not wait.
static cudaError_t peer_locked(struct sim__copy *copy, int to_device, int from_device,
                               const cudaStream_t *handle) {
    struct sim__stream *stream = NULL;
    enum sim__place to, from;
    if (!is_device(to_device) || !is_device(from_device))
        return cudaErrorInvalidDevice;
    const cudaError_t error = handle == NULL ? cudaSuccess : sim__stream_resolve(*handle, &stream);
    if (error != cudaSuccess || copy->size == 0)
        return error;
    if (!locate(to_device, copy->destination, copy->size, 1, 0, SIM__ACCESS_WRITE, &to) ||
        !locate(from_device, copy->source, copy->size, 1, 0, SIM__ACCESS_READ, &from) ||
        to != SIM__PLACE_DEVICE || from != SIM__PLACE_DEVICE)
        return cudaErrorInvalidValue;
    copy->destination_place = to;
    copy->source_place = from;
    copy->peer = to_device != from_device;
    copy->named = true;
    if (stream != NULL)
        return copy_submit(stream, copy, false);
    const struct sim__device *device = sim__device_current();
    const uint32_t devices = (uint32_t)1 << to_device | (uint32_t)1 << from_device |
                             (uint32_t)1 << device->index;
    const struct sim__operation operation = {.kind = SIM__OPERATION_COPY, .copy = *copy};
    if (sim__captures_exist()) {
        const cudaError_t refusal = capture_allows_fence(devices);
        if (refusal != cudaSuccess)
            return refusal;
    }
    sim__engine_submit_fence(devices, &operation);
    return device->sticky_error;
}

// --- The calls ---

static cudaError_t copy_call(struct sim__copy copy, enum cudaMemcpyKind kind, cudaStream_t stream,
                             bool synchronous) {
    cudaError_t error = sim__call_begin(SIM_CALL_MEMCPY);
    if (error == cudaSuccess)
        error = copy_locked(&copy, kind, stream, synchronous);
    return sim__call_end(SIM_CALL_MEMCPY, error);
}

static cudaError_t copy_1d(void *destination, const void *source, size_t size,
                           enum cudaMemcpyKind kind, cudaStream_t stream, bool synchronous) {
    return copy_call((struct sim__copy){destination, source, size, .rows = 1}, kind, stream,
                     synchronous);
}

static cudaError_t copy_2d(void *destination, size_t destination_pitch, const void *source,
                           size_t source_pitch, size_t width, size_t height,
                           enum cudaMemcpyKind kind, cudaStream_t stream, bool synchronous) {
    if (width <= destination_pitch && width <= source_pitch)
        return copy_call((struct sim__copy){.destination = destination,
                                            .source = source,
                                            .size = width,
                                            .rows = height,
                                            .destination_pitch = destination_pitch,
                                            .source_pitch = source_pitch},
                         kind, stream, synchronous);
    const cudaError_t error = sim__call_begin(SIM_CALL_MEMCPY);
    return sim__call_end(SIM_CALL_MEMCPY,
                         error == cudaSuccess ? cudaErrorInvalidPitchValue : error);
}

static cudaError_t fill_call(void *pointer, size_t pitch, int value, size_t width, size_t height,
                             cudaStream_t stream, bool synchronous) {
    struct sim__fill fill = {
        .pointer = pointer,
        .size = width,
        .rows = height,
        .pitch = pitch,
        .value = (unsigned char)value,
    };
    cudaError_t error = sim__call_begin(SIM_CALL_MEMSET);
    if (error == cudaSuccess && height > 1 && width > pitch)
        error = cudaErrorInvalidPitchValue;
    if (error == cudaSuccess)
        error = fill_locked(&fill, stream, synchronous);
    return sim__call_end(SIM_CALL_MEMSET, error);
}

cudaError_t cudaMemcpy(void *destination, const void *source, size_t size,
                       enum cudaMemcpyKind kind) {
    return copy_1d(destination, source, size, kind, cudaStreamLegacy, true);
}

cudaError_t cudaMemcpy_ptds(void *destination, const void *source, size_t size,
                            enum cudaMemcpyKind kind) {
    return copy_1d(destination, source, size, kind, cudaStreamPerThread, true);
}

cudaError_t cudaMemcpyAsync(void *destination, const void *source, size_t size,
                            enum cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_1d(destination, source, size, kind, stream, false);
}

cudaError_t cudaMemcpy2D(void *destination, size_t destination_pitch, const void *source,
                         size_t source_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind) {
    return copy_2d(destination, destination_pitch, source, source_pitch, width, height, kind,
                   cudaStreamLegacy, true);
}

cudaError_t cudaMemcpy2D_ptds(void *destination, size_t destination_pitch, const void *source,
                              size_t source_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind) {
    return copy_2d(destination, destination_pitch, source, source_pitch, width, height, kind,
                   cudaStreamPerThread, true);
}

cudaError_t cudaMemcpy2DAsync(void *destination, size_t destination_pitch, const void *source,
                              size_t source_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_2d(destination, destination_pitch, source, source_pitch, width, height, kind,
                   stream, false);
}

cudaError_t cudaMemset(void *pointer, int value, size_t size) {
    return fill_call(pointer, 0, value, size, 1, cudaStreamLegacy, true);
}

cudaError_t cudaMemset_ptds(void *pointer, int value, size_t size) {
    return fill_call(pointer, 0, value, size, 1, cudaStreamPerThread, true);
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t size, cudaStream_t stream) {
    return fill_call(pointer, 0, value, size, 1, stream, false);
}

cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height) {
    return fill_call(pointer, pitch, value, width, height, cudaStreamLegacy, true);
}

cudaError_t cudaMemset2D_ptds(void *pointer, size_t pitch, int value, size_t width, size_t height) {
    return fill_call(pointer, pitch, value, width, height, cudaStreamPerThread, true);
}

cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
    return fill_call(pointer, pitch, value, width, height, stream, false);
}

static cudaError_t peer_call(void *destination, int destination_device, const void *source,
                             int source_device, size_t size, const cudaStream_t *stream) {
    struct sim__copy copy = {destination, source, size, .rows = 1};
    cudaError_t error = sim__call_begin(SIM_CALL_MEMCPY);
    if (error == cudaSuccess)
        error = peer_locked(&copy, destination_device, source_device, stream);
    return sim__call_end(SIM_CALL_MEMCPY, error);
}

cudaError_t cudaMemcpyPeer(void *destination, int destination_device, const void *source,
                           int source_device, size_t size) {
    return peer_call(destination, destination_device, source, source_device, size, NULL);
}

cudaError_t cudaMemcpyPeerAsync(void *destination, int destination_device, const void *source,
                                int source_device, size_t size, cudaStream_t stream) {
    return peer_call(destination, destination_device, source, source_device, size, &stream);
}
