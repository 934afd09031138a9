// See recorder.h. The events become a snapshot's history, so that a recording is written as
// snapshot_file.c writes any.
//
// Lock order: the recorder's, then the allocator's. Events come within calls, so under it.
#include "workload/recorder.h"

#include "base/thread.h"
#include "trace/trace.h"
#include "workload/snapshot_file.h"
#include "workload/wrapper.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct device_events {
    struct allocator_snapshot_entry *entries;
    size_t count, capacity;
};

struct workload_recorder {
    struct workload_wrapper wrapper;
    struct allocator_operations operations;
    struct allocator_observer observer; // the program's
    struct base_mutex mutex;            // held in each call that decides something; guards the rest
    struct device_events devices[TRACE_DEVICE_COUNT_MAX];
    uint64_t time_us; // of the last event
    bool is_incomplete;
};

// Since the epoch, and never back.
static uint64_t now_us(struct workload_recorder *recorder) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t time_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    if (time_us > recorder->time_us) recorder->time_us = time_us;
    return recorder->time_us;
}

static bool make_room(struct device_events *device) {
    if (device->count < device->capacity) return true;
    const size_t capacity = device->capacity == 0 ? 1024 : 2 * device->capacity;
    struct allocator_snapshot_entry *const entries =
        realloc(device->entries, capacity * sizeof *entries);
    if (entries == NULL) return false;
    device->entries = entries;
    device->capacity = capacity;
    return true;
}

// The rest is not in PyTorch's trace.
static bool is_recorded(enum allocator_action action) {
    return action != ALLOCATOR_EMPTY_CACHE && action != ALLOCATOR_SEGMENT_RESERVE &&
           action != ALLOCATOR_SEGMENT_UNRESERVE;
}

static void observe(void *context, const struct allocator_event *event) {
    struct workload_recorder *const recorder = context;
    struct device_events *const device =
        event->device < TRACE_DEVICE_COUNT_MAX ? &recorder->devices[event->device] : NULL;
    if (!is_recorded(event->action) || recorder->is_incomplete) {
        // nothing to keep
    } else if (device == NULL || !make_room(device)) {
        recorder->is_incomplete = true;
    } else {
        device->entries[device->count++] = (struct allocator_snapshot_entry){
            .address = event->address,
            .size = event->size,
            .device_free = event->device_free,
            .stream = event->stream,
            .time_us = now_us(recorder),
            .pool = event->pool,
            .action = event->action,
        };
    }
    if (recorder->observer.event != NULL)
        recorder->observer.event(recorder->observer.context, event);
}

//------------------------------------------------------------------------------------------------
// Calls, one at a time.

static struct workload_recorder *lock(struct allocator *allocator) {
    struct workload_recorder *const recorder = (struct workload_recorder *)(void *)allocator;
    base_mutex_lock(&recorder->mutex);
    return recorder;
}

static enum base_status unlock(struct workload_recorder *recorder, enum base_status status) {
    base_mutex_unlock(&recorder->mutex);
    return status;
}

static enum base_status recorder_malloc(struct allocator *allocator, int device, size_t size,
                                        cudaStream_t stream, void **pointer) {
    struct workload_recorder *const recorder = lock(allocator);
    return unlock(recorder,
                  allocator_malloc(recorder->wrapper.inner, device, size, stream, pointer));
}

static enum base_status recorder_free(struct allocator *allocator, void *pointer) {
    struct workload_recorder *const recorder = lock(allocator);
    return unlock(recorder, allocator_free(recorder->wrapper.inner, pointer));
}

static enum base_status recorder_record_stream(struct allocator *allocator, void *pointer,
                                               cudaStream_t stream) {
    struct workload_recorder *const recorder = lock(allocator);
    return unlock(recorder, allocator_record_stream(recorder->wrapper.inner, pointer, stream));
}

static enum base_status recorder_empty_cache(struct allocator *allocator) {
    struct workload_recorder *const recorder = lock(allocator);
    return unlock(recorder, allocator_empty_cache(recorder->wrapper.inner));
}

static enum base_status recorder_snapshot(struct allocator *allocator,
                                          struct allocator_snapshot *snapshot) {
    struct workload_recorder *const recorder = lock(allocator);
    return unlock(recorder, allocator_snapshot(recorder->wrapper.inner, snapshot));
}

static enum base_status recorder_set_observer(struct allocator *allocator,
                                              const struct allocator_observer *observer) {
    struct workload_recorder *const recorder = lock(allocator);
    recorder->observer = observer != NULL ? *observer : (struct allocator_observer){NULL, NULL};
    return unlock(recorder, BASE_OK);
}

enum base_status workload_recorder_create(struct allocator *inner,
                                          struct workload_recorder **recorder) {
    struct workload_recorder *made = calloc(1, sizeof *made);
    if (made == NULL) return base_status_set(BASE_HOST_MEMORY, "no host memory for a recording");
    made->operations = workload_wrapper_operations;
    made->operations.name = "recorder";
    made->operations.malloc = recorder_malloc;
    made->operations.free = recorder_free;
    made->operations.record_stream = recorder_record_stream;
    made->operations.empty_cache = recorder_empty_cache;
    made->operations.snapshot = recorder_snapshot;
    made->operations.set_observer = recorder_set_observer;
    made->wrapper = (struct workload_wrapper){{&made->operations}, inner};
    base_mutex_init(&made->mutex);
    const enum base_status status =
        allocator_set_observer(inner, &(struct allocator_observer){observe, made});
    if (status == BASE_OK) {
        *recorder = made;
        return BASE_OK;
    }
    base_mutex_deinit(&made->mutex);
    free(made);
    return base_status_prefix(status, "recording");
}

struct allocator *workload_recorder_allocator(struct workload_recorder *recorder) {
    return &recorder->wrapper.allocator;
}

//------------------------------------------------------------------------------------------------
// The file.

static size_t device_bytes(int device) {
    size_t free_bytes, total_bytes = 0;
    int current;
    if (cudaGetDevice(&current) != cudaSuccess || cudaSetDevice(device) != cudaSuccess) return 0;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) total_bytes = 0;
    return cudaSetDevice(current) == cudaSuccess ? total_bytes : 0;
}

static bool is_request(enum allocator_action action) {
    return action == ALLOCATOR_ALLOC || action == ALLOCATOR_FREE_REQUESTED ||
           action == ALLOCATOR_FREE_COMPLETED || action == ALLOCATOR_OOM;
}

// The recorded events in the place of the snapshot's own history.
static enum base_status history_attach(const struct workload_recorder *recorder,
                                       struct allocator_snapshot *snapshot) {
    size_t count = 0;
    for (int device = 0; device < TRACE_DEVICE_COUNT_MAX; ++device)
        count += recorder->devices[device].count;
    struct allocator_snapshot_entry *const entries = calloc(count + 1, sizeof *entries);
    struct allocator_snapshot_trace *const traces = calloc(TRACE_DEVICE_COUNT_MAX, sizeof *traces);
    if (entries == NULL || traces == NULL) {
        free(entries);
        free(traces);
        return base_status_set(BASE_HOST_MEMORY, "no host memory for %zu recorded events", count);
    }
    free(snapshot->entries);
    free(snapshot->traces);
    *snapshot = (struct allocator_snapshot){
        .segments = snapshot->segments,
        .segment_count = snapshot->segment_count,
        .blocks = snapshot->blocks,
        .block_count = snapshot->block_count,
        .traces = traces,
        .entries = entries,
        .stacks = snapshot->stacks,
        .stack_count = snapshot->stack_count,
        .frames = snapshot->frames,
        .frame_count = snapshot->frame_count,
        .settings = snapshot->settings,
    };
    const bool has_placement = snapshot->settings != NULL;
    if (!has_placement) snapshot->segment_count = snapshot->block_count = 0;
    for (int device = 0; device < TRACE_DEVICE_COUNT_MAX; ++device) {
        const struct device_events *const events = &recorder->devices[device];
        if (events->count == 0) continue;
        struct allocator_snapshot_trace *const trace = &traces[snapshot->trace_count++];
        *trace = (struct allocator_snapshot_trace){.device = device,
                                                   .entry_first = snapshot->entry_count,
                                                   .total_bytes = device_bytes(device)};
        for (size_t index = 0; index < events->count; ++index)
            if (has_placement || is_request(events->entries[index].action))
                entries[snapshot->entry_count++] = events->entries[index];
        trace->entry_count = snapshot->entry_count - trace->entry_first;
    }
    return BASE_OK;
}

static bool is_pickle(const char *path) {
    static const char suffix[] = ".pickle";
    const size_t length = strlen(path), suffix_length = sizeof suffix - 1;
    return length > suffix_length && strcmp(path + length - suffix_length, suffix) == 0;
}

enum base_status workload_recorder_write(struct workload_recorder *recorder, const char *path) {
    struct allocator_snapshot snapshot = {0};
    enum base_status status = allocator_set_observer(recorder->wrapper.inner, NULL);
    if (status == BASE_OK && recorder->is_incomplete)
        status = base_status_set(BASE_HOST_MEMORY,
                                 "no host memory for all events, or more than %d devices: '%s' is "
                                 "not written",
                                 TRACE_DEVICE_COUNT_MAX, path);
    if (status == BASE_OK) {
        status = allocator_snapshot(recorder->wrapper.inner, &snapshot);
        if (status == BASE_UNSUPPORTED) status = BASE_OK; // no layout to write: requests alone
    }
    if (status != BASE_OK) return status;
    status = history_attach(recorder, &snapshot);
    if (status == BASE_OK)
        status = is_pickle(path) ? workload_snapshot_write_pickle(&snapshot, path)
                                 : workload_snapshot_write_tmt(&snapshot, path);
    allocator_snapshot_deinit(&snapshot);
    return status;
}

void workload_recorder_destroy(struct workload_recorder *recorder) {
    if (recorder == NULL) return;
    (void)!allocator_set_observer(recorder->wrapper.inner, NULL);
    for (int device = 0; device < TRACE_DEVICE_COUNT_MAX; ++device)
        free(recorder->devices[device].entries);
    base_mutex_deinit(&recorder->mutex);
    free(recorder);
}
