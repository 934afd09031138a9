// See pinned_events.h.
#include "tensor/pinned_events.h"

#include "tensor/guard.h"

#include <stdlib.h>

struct tensor_pinned_event {
    cudaEvent_t event;
    int device;
    void *block;
    struct tensor_pinned_event *next;
};

// In a capture of this thread as well: nothing of it is captured.
static cudaError_t query(cudaEvent_t event) {
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaError_t error = cudaThreadExchangeStreamCaptureMode(&mode);
    if (error != cudaSuccess) return error;
    error = cudaEventQuery(event);
    const cudaError_t restored = cudaThreadExchangeStreamCaptureMode(&mode);
    return error == cudaSuccess ? restored : error;
}

// What cannot be asked is not captured: its event is recorded, or the free is refused.
bool tensor__pinned_is_captured(const struct tensor_pinned_use *uses, size_t count) {
    for (size_t index = 0; index < count; ++index) {
        enum cudaStreamCaptureStatus status;
        const cudaError_t error = cudaStreamIsCapturing(uses[index].stream, &status);
        if (error != cudaSuccess)
            (void)cudaGetLastError();
        else if (status != cudaStreamCaptureStatusNone)
            return true;
    }
    return false;
}

static void keep(struct tensor_pinned_events *events, struct tensor_pinned_event *event) {
    event->next = events->spare[event->device];
    events->spare[event->device] = event;
}

enum base_status tensor__pinned_events_take(struct tensor_pinned_events *events, void **block) {
    struct tensor_pinned_event *const event = events->first;
    *block = NULL;
    if (event == NULL) return BASE_OK;
    const cudaError_t error = query(event->event);
    if (error == cudaErrorNotReady) {
        (void)cudaGetLastError(); // it was no failure
        return BASE_OK;
    }
    if (error != cudaSuccess) return tensor__cuda_status("cudaEventQuery", error);
    events->first = event->next;
    if (events->first == NULL) events->last = NULL;
    *block = event->block;
    keep(events, event);
    return BASE_OK;
}

// Of the current device.
static enum base_status event_create(int device, struct tensor_pinned_event **event) {
    struct tensor_pinned_event *const made = calloc(1, sizeof *made);
    if (made == NULL) return base_status_set(BASE_HOST_MEMORY, "no host memory for an event");
    const enum base_status status = tensor__cuda_status(
        "cudaEventCreateWithFlags", cudaEventCreateWithFlags(&made->event, cudaEventDisableTiming));
    if (status != BASE_OK) {
        free(made);
        return status;
    }
    made->device = device;
    *event = made;
    return BASE_OK;
}

static enum base_status record_here(struct tensor_pinned_events *events,
                                    const struct tensor_pinned_use *use,
                                    struct tensor_pinned_event **event) {
    struct tensor_pinned_event *made = events->spare[use->device];
    enum base_status status = BASE_OK;
    if (made != NULL)
        events->spare[use->device] = made->next;
    else
        status = event_create(use->device, &made);
    if (status != BASE_OK) return status;
    status = tensor__cuda_status("cudaEventRecord", cudaEventRecord(made->event, use->stream));
    if (status == BASE_OK)
        *event = made;
    else
        keep(events, made);
    return status;
}

static enum base_status record(struct tensor_pinned_events *events,
                               const struct tensor_pinned_use *use,
                               struct tensor_pinned_event **event) {
    struct tensor_guard guard;
    const enum base_status status = tensor__guard_begin(use->device, &guard);
    return status == BASE_OK ? tensor__guard_end(&guard, record_here(events, use, event)) : status;
}

enum base_status tensor__pinned_events_record(struct tensor_pinned_events *events,
                                              const struct tensor_pinned_use *uses, size_t count,
                                              void *block) {
    struct tensor_pinned_event *first = NULL, *last = NULL, *event = NULL;
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < count && status == BASE_OK; ++index) {
        status = record(events, &uses[index], &event);
        if (status != BASE_OK) break;
        event->block = block;
        event->next = NULL;
        if (first == NULL)
            first = event;
        else
            last->next = event;
        last = event;
    }
    while (status != BASE_OK && first != NULL) {
        event = first;
        first = first->next;
        keep(events, event);
    }
    if (first == NULL) return status;
    if (events->last != NULL)
        events->last->next = first;
    else
        events->first = first;
    events->last = last;
    return BASE_OK;
}

static void list_destroy(struct tensor_pinned_event *event) {
    while (event != NULL) {
        struct tensor_pinned_event *const next = event->next;
        (void)cudaEventDestroy(event->event);
        free(event);
        event = next;
    }
}

void tensor__pinned_events_deinit(struct tensor_pinned_events *events) {
    list_destroy(events->first);
    for (int device = 0; device < TENSOR_DEVICE_MAX; ++device)
        list_destroy(events->spare[device]);
}
