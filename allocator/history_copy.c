// Reading the history: the rings of a device as one sequence, with times and stacks.
#include "allocator/core.h"
#include "allocator/pool.h"

#include <stdlib.h>
#include <string.h>

// The ring of the device, 0, or of one of its streams; NULL: it has none.
static const struct cca__history_ring *ring_of(const struct cca__device *device, size_t number) {
    if (number == 0) return &device->history->recorder.ring;
    const struct cca__recorder *const recorder = device->by_handle[number - 1]->recorder;
    return recorder == NULL ? NULL : &recorder->ring;
}

uint64_t cca__history_shown_after_locked(const struct cca__device *device) {
    const struct cca__device_history *const history = device->history;
    const uint64_t newest = atomic_load_explicit(&history->sequence, memory_order_relaxed);
    const uint64_t max = device->owner->history.max_entries;
    uint64_t after = newest > max ? newest - max : 0;
    const uint64_t lost = atomic_load_explicit(&history->lost, memory_order_relaxed);
    if (lost > after) after = lost;
    for (size_t number = 0; number <= device->stream_count; ++number) {
        const struct cca__history_ring *const ring = ring_of(device, number);
        if (ring != NULL && cca__history_lost(ring) > after) after = cca__history_lost(ring);
    }
    return after;
}

static struct allocator_snapshot_entry copy_of(const struct cca *cca,
                                               const struct cca__history_entry *entry,
                                               const struct cca__clock_scale *scale) {
    const bool is_oom = entry->action == ALLOCATOR_OOM;
    const struct cca__pool *const pool = cca__pool_at(cca, entry->pool);
    const bool has_stream = pool != NULL && entry->action != ALLOCATOR_SNAPSHOT;
    return (struct allocator_snapshot_entry){
        .address = is_oom ? NULL : (void *)(uintptr_t)entry->address,
        .size = entry->size,
        .device_free = is_oom ? entry->address : 0,
        .stream = has_stream ? pool->stream->handle : NULL,
        .pool = pool != NULL ? cca__pool_id(pool) : (struct allocator_pool_id){0},
        .time_us = cca__clock_us(scale, entry->ticks),
        .action = (enum allocator_action)entry->action,
        .stack = entry->stack,
    };
}

// Sequences are without a gap, so each entry's place is known.
static void copy_ring(const struct cca__device *device, const struct cca__history_ring *ring,
                      uint64_t after, const struct cca__clock_scale *scale,
                      struct allocator_snapshot_entry *entries) {
    for (size_t index = cca__history_count(ring); index-- > 0;) {
        const struct cca__history_entry *const entry = cca__history_at(ring, index);
        if (cca__history_end(entry) <= after) break;
        struct allocator_snapshot_entry copy = copy_of(device->owner, entry, scale);
        if (entry->sequence > after) entries[entry->sequence - after - 1] = copy;
        if (entry->more == 0) continue;
        copy.action = ALLOCATOR_FREE_COMPLETED;
        entries[entry->sequence - after] = copy;
    }
}

static enum base_status reserve(struct allocator_snapshot *snapshot, size_t more) {
    const size_t count = snapshot->entry_count + more;
    struct allocator_snapshot_entry *const entries =
        realloc(snapshot->entries, (count + 1) * sizeof *entries);
    if (entries != NULL) snapshot->entries = entries;
    struct allocator_snapshot_trace *const traces =
        realloc(snapshot->traces, (snapshot->trace_count + 1) * sizeof *traces);
    if (traces != NULL) snapshot->traces = traces;
    if (entries == NULL || traces == NULL)
        return base_status_set(BASE_HOST_MEMORY,
                               "out of host memory for a snapshot of a history of %zu entries",
                               count);
    return BASE_OK;
}

enum base_status cca__history_copy_locked(struct cca__device *device,
                                          struct allocator_snapshot *snapshot) {
    if (device->history == NULL) return BASE_OK;
    const uint64_t after = cca__history_shown_after_locked(device);
    const uint64_t newest = atomic_load_explicit(&device->history->sequence, memory_order_relaxed);
    const size_t count = (size_t)(newest - after);
    const enum base_status status = reserve(snapshot, count);
    if (status != BASE_OK) return status;
    struct allocator_snapshot_entry *const entries = snapshot->entries + snapshot->entry_count;
    const struct cca__clock_scale scale = cca__clock_scale(&device->owner->history.clock);
    for (size_t number = 0; number <= device->stream_count; ++number) {
        const struct cca__history_ring *const ring = ring_of(device, number);
        if (ring != NULL) copy_ring(device, ring, after, &scale, entries);
    }
    // Streams read the clock on different processors, and not at each call.
    for (size_t index = 1; index < count; ++index)
        if (entries[index].time_us < entries[index - 1].time_us)
            entries[index].time_us = entries[index - 1].time_us;
    snapshot->traces[snapshot->trace_count++] = (struct allocator_snapshot_trace){
        .device = device->ordinal,
        .entry_first = snapshot->entry_count,
        .entry_count = count,
        .total_bytes = device->total_bytes,
        .fraction = device->limited ? (double)device->allowed_bytes / (double)device->total_bytes
                                    : 0.0,
    };
    snapshot->entry_count += count;
    return BASE_OK;
}

enum base_status cca__history_copy_stacks(struct cca *cca, struct allocator_snapshot *snapshot) {
    struct cca__stack_table *const table = &cca->history.stacks;
    enum base_status status = BASE_OK;
    cca__lock_take(&table->lock);
    const size_t count = table->count > 0 ? table->count : 1;
    snapshot->stacks = calloc(count, sizeof *snapshot->stacks);
    snapshot->frames = malloc((table->frame_count + 1) * sizeof *snapshot->frames);
    if (snapshot->stacks != NULL && snapshot->frames != NULL) {
        for (uint32_t number = 1; number < table->count; ++number)
            snapshot->stacks[number] = (struct allocator_snapshot_stack){
                table->stacks[number].first, table->stacks[number].count};
        if (table->frame_count > 0)
            memcpy(snapshot->frames, table->frames, table->frame_count * sizeof *table->frames);
        snapshot->stack_count = count;
        snapshot->frame_count = table->frame_count;
    } else {
        status = base_status_set(BASE_HOST_MEMORY,
                                 "out of host memory for a snapshot with %zu stacks", count);
    }
    cca__lock_release(&table->lock);
    return status;
}
