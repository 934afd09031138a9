// Events. An event covers a position in a stream, so asking whether it is complete compares two
// numbers; recording it again, or destroying it, changes nothing for those who already wait for the
// old position. What one recorded in a capture holds is in capture.h.
#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/checked.h"
#include "simulator/order.h"
#include "simulator/plant.h"
#include "simulator/pool.h"
#include "simulator/schedule.h"
#include "simulator/stream.h"

#define EVENT_FLAGS (cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess)

static inline cudaError_t event_resolve(cudaEvent_t handle, struct sim__event **event) {
    *event = sim__handle_find(&sim__state.events, (uint64_t)(uintptr_t)handle);
    if (*event != NULL)
        return cudaSuccess;
    const uint64_t number = (uint64_t)(uintptr_t)handle;
    const bool was_one = sim__handle_was_taken(&sim__state.events, number);
    if (sim__checked())
        sim__misuse_handle("event", number, was_one);
    return was_one ? cudaErrorContextIsDestroyed : cudaErrorInvalidResourceHandle;
}

cudaError_t sim__event_resolve(cudaEvent_t handle, struct sim__event **event) {
    return event_resolve(handle, event);
}

static cudaError_t create_locked(cudaEvent_t *handle, unsigned int flags) {
    if (handle == NULL || (flags & ~(unsigned int)EVENT_FLAGS) != 0)
        return cudaErrorInvalidValue;
    if ((flags & cudaEventInterprocess) != 0 && (flags & cudaEventDisableTiming) == 0)
        return cudaErrorInvalidValue;
    struct sim__event *event = sim__handle_take(&sim__state.events);
    if (event == NULL)
        return cudaErrorMemoryAllocation;
    event->device = sim__device_current()->index;
    event->flags = flags;
    event->recorded = false;
    event->position = (struct sim__position){0};
    *handle = (cudaEvent_t)(uintptr_t)event->slot.handle;
    return cudaSuccess;
}

// Nothing to wait for, nothing to do and nobody to tell: what submission would come to.
static bool record_is_over(const struct sim__stream *stream) {
    const struct sim__device *device = &sim__state.devices[stream->device];
    return sim__schedule->runs_at_once && device->pending == NULL && device->fence.stream == NULL &&
           !stream->held && sim__observer == NULL;
}

// Whether a record of EVENT, or a wait for it, may have to do with a capture.
static bool meets_capture(const struct sim__event *event, unsigned int flags) {
    return sim__captures_exist() || __builtin_expect(event->captured != NULL || flags != 0, 0);
}

// The position is set first: the operation may run within the submission, and then stamps the
// event.
static cudaError_t record_locked(cudaEvent_t event_handle, cudaStream_t stream_handle,
                                 unsigned int flags) {
    struct sim__event *event;
    struct sim__stream *stream;
    if ((flags & ~(unsigned int)cudaEventRecordExternal) != 0)
        return cudaErrorInvalidValue;
    cudaError_t error = event_resolve(event_handle, &event);
    if (error == cudaSuccess)
        error = sim__stream_resolve(stream_handle, &stream);
    if (error != cudaSuccess)
        return error;
    if (event->device != stream->device && !sim__planted(SIM__PLANT_RECORD_DEVICE))
        return cudaErrorInvalidResourceHandle;
    if (meets_capture(event, flags)) {
        bool is_over;
        error = sim__capture_record(stream, event, flags == cudaEventRecordExternal, &is_over);
        if (error != cudaSuccess || is_over)
            return error;
    }
    if (event->recorded && sim__planted(SIM__PLANT_RECORD_KEPT))
        return cudaSuccess;
    event->recorded = true;
    event->position = (struct sim__position){stream, stream->submitted + 1};
    sim__order_record(event);
    if (record_is_over(stream)) {
        stream->completed = ++stream->submitted;
        event->time_ns = sim__state.now_ns;
        return cudaSuccess;
    }
    // Three fields are all it has; zeroing the others would cost as much as the rest of the call.
    struct sim__operation operation;
    operation.kind = SIM__OPERATION_RECORD;
    operation.wait_count = 0;
    operation.event = event->slot.handle;
    sim__engine_submit(stream, &operation, (struct sim__position){0});
    return cudaSuccess;
}

// Waiting for what is complete, or for the stream itself, orders nothing by itself; but as any
// operation it comes after the legacy stream's work, or is a barrier as the legacy stream's; and
// where the host cannot know of the completion it learns of it when it learns of the wait.
static bool wait_matters(const struct sim__stream *stream, struct sim__position position) {
    if (position.stream == NULL)
        return false;
    if (stream->legacy || sim__engine_orders(stream))
        return true;
    return position.stream != stream &&
           (!sim__position_complete(position) ||
            (sim__schedule->doubts && !sim__is_observed(position)));
}

// What a wait for EVENT covers.
static struct sim__position event_covers(const struct sim__event *event) {
    if (sim__planted(SIM__PLANT_EVENT_EDGE))
        return (struct sim__position){0};
    if (sim__planted(SIM__PLANT_WAIT_LATE) && event->recorded)
        return (struct sim__position){event->position.stream, event->position.stream->submitted};
    return event->position;
}

static cudaError_t wait_locked(cudaStream_t stream_handle, cudaEvent_t event_handle,
                               unsigned int flags) {
    struct sim__event *event;
    struct sim__stream *stream;
    if ((flags & ~(unsigned int)cudaEventWaitExternal) != 0)
        return cudaErrorInvalidValue;
    cudaError_t error = event_resolve(event_handle, &event);
    if (error == cudaSuccess)
        error = sim__stream_resolve(stream_handle, &stream);
    if (error != cudaSuccess)
        return error;
    if (meets_capture(event, flags)) {
        bool is_over;
        error = sim__capture_wait(stream, event, flags == cudaEventWaitExternal, &is_over);
        if (error != cudaSuccess || is_over)
            return error;
    }
    sim__order_wait(stream, event);
    const struct sim__position position = event_covers(event);
    if (wait_matters(stream, position)) {
        struct sim__operation operation;
        operation.kind = SIM__OPERATION_WAIT;
        operation.wait_count = 0;
        sim__engine_submit(stream, &operation, position);
    }
    return cudaSuccess;
}

// Whether the host may ask about EVENT, or wait for it.
static cudaError_t ask(const struct sim__event *event) {
    return event->captured != NULL ? sim__capture_event_asked(event) : sim__capture_unsafe();
}

static cudaError_t synchronize_locked(cudaEvent_t handle) {
    struct sim__event *event;
    cudaError_t error = event_resolve(handle, &event);
    if (error == cudaSuccess)
        error = ask(event);
    if (error != cudaSuccess)
        return error;
    const int device = event->device; // the wait can give the lock back
    struct sim__order_point point = sim__order_of_event(event);
    if (!sim__planted(SIM__PLANT_EVENT_SYNCHRONIZE))
        sim__engine_force(event->position);
    sim__order_observe(&point);
    sim__pools_release();
    return sim__state.devices[device].sticky_error;
}

static bool is_recorded(const struct sim__event *event) {
    return event->recorded || event->captured != NULL;
}

static cudaError_t elapsed_locked(float *milliseconds, cudaEvent_t start_handle,
                                  cudaEvent_t end_handle) {
    struct sim__event *start, *end;
    if (milliseconds == NULL)
        return cudaErrorInvalidValue;
    cudaError_t error = event_resolve(start_handle, &start);
    if (error == cudaSuccess)
        error = event_resolve(end_handle, &end);
    if (error != cudaSuccess)
        return error;
    if (((start->flags | end->flags) & cudaEventDisableTiming) != 0 || !is_recorded(start) ||
        !is_recorded(end) || start->device != end->device)
        return cudaErrorInvalidResourceHandle;
    error = ask(start->captured != NULL ? start : end);
    if (error != cudaSuccess)
        return error;
    if ((!sim__engine_query(start->position) || !sim__engine_query(end->position)) &&
        !sim__planted(SIM__PLANT_ELAPSED))
        return cudaErrorNotReady;
    struct sim__order_point point = sim__order_of_event(start);
    sim__order_know(&point);
    point = sim__order_of_event(end);
    sim__order_know(&point);
    *milliseconds = (float)((double)(int64_t)(end->time_ns - start->time_ns) / 1e6);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
    cudaError_t error = sim__call_begin(SIM_CALL_EVENT_CREATE);
    if (error == cudaSuccess)
        error = create_locked(event, flags);
    return sim__call_end(SIM_CALL_EVENT_CREATE, error);
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    struct sim__event *event;
    cudaError_t error = sim__call_begin(SIM_CALL_EVENT_DESTROY);
    if (error == cudaSuccess && (error = event_resolve(handle, &event)) == cudaSuccess) {
        if (sim__planted(SIM__PLANT_EVENT_DESTROY))
            sim__engine_force(event->position);
        sim__event_uncapture(event);
        sim__handle_give(&sim__state.events, event);
    }
    return sim__call_end(SIM_CALL_EVENT_DESTROY, error);
}

static inline cudaError_t record_call(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
    cudaError_t error = sim__call_begin(SIM_CALL_EVENT_RECORD);
    if (error == cudaSuccess)
        error = record_locked(event, stream, flags);
    return sim__call_end(SIM_CALL_EVENT_RECORD, error);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return record_call(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
    return record_call(event, stream, flags);
}

static cudaError_t query_locked(cudaEvent_t handle) {
    struct sim__event *event;
    cudaError_t error = event_resolve(handle, &event);
    if (error == cudaSuccess)
        error = ask(event);
    if (error != cudaSuccess)
        return error;
    if (!sim__engine_query(event->position))
        return cudaErrorNotReady;
    if (sim__order_count > 0) {
        struct sim__order_point point = sim__order_of_event(event);
        sim__order_observe(&point);
    }
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    cudaError_t error = sim__call_begin(SIM_CALL_EVENT_QUERY);
    if (error == cudaSuccess)
        error = query_locked(event);
    return sim__call_end(SIM_CALL_EVENT_QUERY, error);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    cudaError_t error = sim__call_begin(SIM_CALL_EVENT_SYNCHRONIZE);
    if (error == cudaSuccess)
        error = synchronize_locked(event);
    return sim__call_end(SIM_CALL_EVENT_SYNCHRONIZE, error);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = elapsed_locked(milliseconds, start, end);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
    cudaError_t error = sim__call_begin(SIM_CALL_STREAM_WAIT_EVENT);
    if (error == cudaSuccess)
        error = wait_locked(stream, event, flags);
    return sim__call_end(SIM_CALL_STREAM_WAIT_EVENT, error);
}
