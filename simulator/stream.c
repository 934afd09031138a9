// Streams: creation, lookup, and the calls that ask about or wait for one. The order between
// streams is the engine's.
#include "simulator/stream.h"

#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/checked.h"
#include "simulator/plant.h"
#include "simulator/order.h"
#include "simulator/pool.h"
#include "simulator/reading.h"

#include <stdlib.h>

// Lower is more urgent, as on current datacentre devices.
#define PRIORITY_LEAST 0
#define PRIORITY_GREATEST (-5)

static struct sim__stream *stream_take(int device, unsigned int flags, int priority) {
    struct sim__stream *stream = sim__handle_take(&sim__state.streams);
    if (stream == NULL)
        return NULL;
    // A slot keeps its numbers from stream to stream: positions in an earlier one stay complete.
    stream->device = device;
    stream->flags = flags;
    stream->priority = priority;
    stream->legacy = stream->held = stream->destroyed = false;
    stream->legacy_seen = stream->fence_seen = 0;
    stream->number = ++sim__state.stream_count;
    stream->schedule = (struct sim__stream_schedule){.offered = stream->schedule.offered,
                                                     .next_offered = stream->schedule.next_offered};
    return stream;
}

void sim__stream_start_device(struct sim__device *device) {
    device->legacy = stream_take(device->index, cudaStreamDefault, PRIORITY_LEAST);
    if (device->legacy == NULL)
        sim__host_limit("out of host memory for the streams of device %d", device->index);
    device->legacy->legacy = true;
}

struct sim__stream *sim__stream_hidden(struct sim__device *device) {
    if (device->hidden == NULL)
        device->hidden = stream_take(device->index, cudaStreamNonBlocking, PRIORITY_LEAST);
    if (device->hidden == NULL)
        sim__host_limit("out of host memory for the streams of device %d", device->index);
    return device->hidden;
}

void sim__streams_clear(void) {
    for (uint32_t i = 0; i < sim__state.streams.slot_count; ++i)
        sim__engine_discard(sim__handle_slot_at(&sim__state.streams, i));
    sim__handle_clear(&sim__state.streams);
}

static void stream_end(struct sim__stream *stream) {
    sim__capture_stream_ends(stream);
    stream->destroyed = true;
    if (!sim__stream_pending(stream)) {
        free(stream->ring);
        stream->ring = NULL;
        stream->ring_size = 0;
        sim__engine_forget(stream);
        sim__handle_give(&sim__state.streams, stream);
        return;
    }
    // Nobody can release it any more.
    sim__engine_hold(stream, false);
}

static cudaError_t thread_stream(struct sim__stream **stream) {
    struct sim__thread *thread = sim__thread();
    uint64_t *handle = &thread->streams[thread->device];
    *stream = sim__handle_find(&sim__state.streams, *handle);
    if (*stream == NULL) {
        *stream = stream_take(thread->device, cudaStreamDefault, PRIORITY_LEAST);
        if (*stream == NULL)
            return cudaErrorMemoryAllocation;
        *handle = (*stream)->slot.handle;
    }
    return cudaSuccess;
}

void sim__streams_leave(struct sim__thread *thread) {
    for (int i = 0; i < SIM_DEVICE_COUNT_MAX; ++i) {
        struct sim__stream *stream = sim__handle_find(&sim__state.streams, thread->streams[i]);
        if (stream != NULL)
            stream_end(stream);
    }
}

void sim__streams_reset(const struct sim__device *device) {
    for (uint32_t i = 0; i < sim__state.streams.slot_count; ++i) {
        struct sim__stream *stream = sim__handle_slot_at(&sim__state.streams, i);
        if (stream->slot.handle != 0 && stream->device == device->index && !stream->destroyed &&
            stream != device->legacy && stream != device->hidden)
            stream_end(stream);
    }
}

cudaError_t sim__stream_resolve(cudaStream_t handle, struct sim__stream **stream) {
    if (handle == NULL || handle == cudaStreamLegacy) {
        *stream = sim__device_current()->legacy;
        return cudaSuccess;
    }
    if (handle == cudaStreamPerThread)
        return thread_stream(stream);
    *stream = sim__handle_find(&sim__state.streams, (uint64_t)(uintptr_t)handle);
    if (*stream != NULL && !(*stream)->destroyed)
        return cudaSuccess;
    const uint64_t number = (uint64_t)(uintptr_t)handle;
    const bool was_one = sim__handle_was_taken(&sim__state.streams, number);
    if (sim__checked())
        sim__misuse_handle("stream", number, was_one);
    return was_one ? cudaErrorContextIsDestroyed : cudaErrorInvalidResourceHandle;
}

static cudaError_t create_locked(cudaStream_t *handle, unsigned int flags, int priority) {
    if (handle == NULL || ((flags & ~(unsigned int)cudaStreamNonBlocking) != 0 &&
                           !sim__planted(SIM__PLANT_STREAM_FLAGS)))
        return cudaErrorInvalidValue;
    if (!sim__planted(SIM__PLANT_PRIORITY)) {
        priority = priority < PRIORITY_GREATEST ? PRIORITY_GREATEST : priority;
        priority = priority > PRIORITY_LEAST ? PRIORITY_LEAST : priority;
    }
    if (!sim__reading_other[SIM__READING_STREAM_CREATE]) {
        const cudaError_t error = sim__capture_unsafe();
        if (error != cudaSuccess)
            return error;
    }
    if (sim__planted(SIM__PLANT_NONBLOCKING))
        flags = cudaStreamDefault;
    struct sim__stream *stream = stream_take(sim__device_current()->index, flags, priority);
    if (stream == NULL)
        return cudaErrorMemoryAllocation;
    *handle = (cudaStream_t)(uintptr_t)stream->slot.handle;
    return cudaSuccess;
}

static cudaError_t destroy_locked(cudaStream_t handle) {
    if (handle == NULL || handle == cudaStreamLegacy || handle == cudaStreamPerThread)
        return cudaErrorInvalidResourceHandle;
    struct sim__stream *stream;
    cudaError_t error = sim__stream_resolve(handle, &stream);
    if (error == cudaSuccess && sim__planted(SIM__PLANT_STREAM_DESTROY))
        sim__engine_force_stream(stream);
    if (error == cudaSuccess)
        stream_end(stream);
    return error;
}

static cudaError_t synchronize_locked(cudaStream_t handle) {
    struct sim__stream *stream;
    cudaError_t error = sim__stream_resolve(handle, &stream);
    if (error == cudaSuccess)
        error = sim__capture_stream_waited(stream);
    if (error != cudaSuccess)
        return error;
    const struct sim__device *device = &sim__state.devices[stream->device];
    struct sim__order_point point = sim__order_of_stream(stream);
    sim__engine_force_stream(stream);
    sim__order_observe(&point);
    sim__pools_release();
    return device->sticky_error;
}

static cudaError_t query_locked(cudaStream_t handle) {
    struct sim__stream *stream;
    cudaError_t error = sim__stream_resolve(handle, &stream);
    if (error == cudaSuccess)
        error = sim__capture_stream_waited(stream);
    if (error != cudaSuccess)
        return error;
    if (!sim__engine_query_stream(stream))
        return cudaErrorNotReady;
    if (sim__order_count > 0) {
        struct sim__order_point point = sim__order_of_stream(stream);
        sim__order_observe(&point);
    }
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority) {
    cudaError_t error = sim__call_begin(SIM_CALL_STREAM_CREATE);
    if (error == cudaSuccess)
        error = create_locked(stream, flags, priority);
    return sim__call_end(SIM_CALL_STREAM_CREATE, error);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
    return cudaStreamCreateWithPriority(stream, flags, PRIORITY_LEAST);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    cudaError_t error = sim__call_begin(SIM_CALL_STREAM_DESTROY);
    if (error == cudaSuccess)
        error = destroy_locked(stream);
    return sim__call_end(SIM_CALL_STREAM_DESTROY, error);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    cudaError_t error = sim__call_begin(SIM_CALL_STREAM_SYNCHRONIZE);
    if (error == cudaSuccess)
        error = synchronize_locked(stream);
    return sim__call_end(SIM_CALL_STREAM_SYNCHRONIZE, error);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    cudaError_t error = sim__call_begin(SIM_CALL_STREAM_QUERY);
    if (error == cudaSuccess)
        error = query_locked(stream);
    return sim__call_end(SIM_CALL_STREAM_QUERY, error);
}

// The stream for a question whose answer goes to OUT.
static cudaError_t resolve_for(const void *out, cudaStream_t handle, struct sim__stream **stream) {
    return out == NULL ? cudaErrorInvalidValue : sim__stream_resolve(handle, stream);
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned int *flags) {
    struct sim__stream *stream;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess && (error = resolve_for(flags, handle, &stream)) == cudaSuccess)
        *flags = stream->flags;
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority) {
    struct sim__stream *stream;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess && (error = resolve_for(priority, handle, &stream)) == cudaSuccess)
        *priority = stream->priority;
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int *device) {
    struct sim__stream *stream;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess && (error = resolve_for(device, handle, &stream)) == cudaSuccess)
        *device = stream->device;
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least_priority, int *greatest_priority) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess) {
        if (least_priority != NULL)
            *least_priority = PRIORITY_LEAST;
        if (greatest_priority != NULL)
            *greatest_priority = PRIORITY_GREATEST;
    }
    return sim__call_end(SIM__CALL_OTHER, error);
}

static struct sim__stream *stream_checked(cudaStream_t handle) {
    struct sim__stream *stream;
    sim__start_locked();
    BASE_CHECK_EQ(sim__stream_resolve(handle, &stream), cudaSuccess);
    return stream;
}

void sim_stream_hold(cudaStream_t handle, bool held) {
    base_mutex_lock(&sim__state.lock);
    sim__engine_hold(stream_checked(handle), held);
    base_mutex_unlock(&sim__state.lock);
}

uint64_t sim_stream_run(cudaStream_t handle, uint64_t count) {
    base_mutex_lock(&sim__state.lock);
    struct sim__stream *stream = stream_checked(handle);
    uint64_t ran = 0;
    while (ran < count && sim__engine_step(stream))
        ++ran;
    base_mutex_unlock(&sim__state.lock);
    return ran;
}

uint64_t sim_stream_pending(cudaStream_t handle) {
    base_mutex_lock(&sim__state.lock);
    const struct sim__stream *stream = stream_checked(handle);
    const uint64_t pending = sim__engine_pending(stream);
    base_mutex_unlock(&sim__state.lock);
    return pending;
}
