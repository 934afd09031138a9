// Writing the history, and switching it: see history.h. Reading is in history_copy.c.
//
// Cost decides the shape of an entry's way in: no lock but the caller's, one atomic addition, a
// walk that is nearly always known, and a reading of the clock, which costs more than the rest
// together.
#include "allocator/history.h"

#include "allocator/core.h"
#include "allocator/device.h"

#include <stdlib.h>
#include <string.h>

#define RING_CAPACITY_FIRST 256
#define MAX_ENTRIES_LIMIT ((size_t)1 << 32)

// Calls that are given the reading of the call before, if the last ones came so close together that
// microseconds do not tell them apart.
#define CALLS_SPARED 3

//------------------------------------------------------------------------------------------------
// Rings.

static void reverse(struct cca__history_entry *entries, size_t count) {
    for (size_t low = 0; low + 1 < count; ++low, --count) {
        const struct cca__history_entry entry = entries[low];
        entries[low] = entries[count - 1];
        entries[count - 1] = entry;
    }
}

// The oldest entry comes to lie first.
static void ring_straighten(struct cca__history_ring *ring) {
    if (!ring->wrapped) return;
    ring->lost = cca__history_lost(ring);
    reverse(ring->entries, ring->next);
    reverse(ring->entries + ring->next, ring->capacity - ring->next);
    reverse(ring->entries, ring->capacity);
    ring->next = ring->capacity;
    ring->wrapped = false;
}

static bool ring_set_capacity(struct cca__history_ring *ring, size_t capacity) {
    struct cca__history_entry *const entries =
        realloc(ring->entries, capacity * sizeof *ring->entries);
    if (entries == NULL) return false;
    ring->entries = entries;
    ring->capacity = capacity;
    return true;
}

// After MAX changed: the newest entries stay.
static void ring_fit(struct cca__history_ring *ring, size_t max) {
    ring_straighten(ring);
    if (ring->capacity <= max) return;
    if (ring->next > max) {
        const size_t surplus = ring->next - max;
        ring->lost = cca__history_end(&ring->entries[surplus - 1]);
        memmove(ring->entries, ring->entries + surplus, max * sizeof *ring->entries);
        ring->next = max;
    }
    // Without memory for the smaller one the larger one serves: readers count.
    (void)ring_set_capacity(ring, max);
}

// NEXT is at the end, so that the entries lie by age. False: no memory for even one.
static __attribute__((noinline)) bool ring_make_room(struct cca__history_ring *ring, size_t max) {
    if (ring->capacity < max) {
        size_t capacity = ring->capacity == 0 ? RING_CAPACITY_FIRST : 2 * ring->capacity;
        if (capacity > max) capacity = max;
        const uint64_t lost = cca__history_lost(ring);
        if (ring_set_capacity(ring, capacity)) {
            ring->lost = lost;
            ring->wrapped = false;
            return true;
        }
        if (ring->capacity == 0) return false;
    }
    ring->wrapped = true;
    ring->next = 0;
    return true;
}

// Room for one more entry, or NULL.
static inline struct cca__history_entry *ring_next(struct cca__history_ring *ring, size_t max) {
    if (__builtin_expect(ring->next == ring->capacity, 0) && !ring_make_room(ring, max))
        return NULL;
    return &ring->entries[ring->next++];
}

//------------------------------------------------------------------------------------------------
// Entries.

static void lose(struct cca__device_history *history, uint64_t sequence) {
    uint64_t lost = atomic_load_explicit(&history->lost, memory_order_relaxed);
    while (lost < sequence &&
           !atomic_compare_exchange_weak_explicit(&history->lost, &lost, sequence,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

static inline uint64_t ticks_of_call(struct cca__recorder *recorder,
                                     const struct cca__clock *clock) {
    if (recorder->spared > 0) {
        --recorder->spared;
        return recorder->ticks;
    }
    const uint64_t now = cca__clock_read(clock);
    const bool is_close = now - recorder->ticks < CCA__CLOCK_TICKS_A_MICROSECOND;
    recorder->ticks = now;
    recorder->spared = is_close ? CALLS_SPARED : 0;
    return now;
}

// The number of the first of COUNT entries. The lock of STREAM is held; NULL: the growth lock, and
// there is no stream. While it is the only one its lock guards the sequence as well: a locked
// addition would wait for all stores before it.
static inline uint64_t draw(const struct cca__device *device, const struct cca__stream *stream,
                            uint64_t count) {
    _Atomic uint64_t *const sequence = &device->history->sequence;
    if (stream != NULL && (device->first_created != stream || stream->created_next != NULL))
        return atomic_fetch_add_explicit(sequence, count, memory_order_relaxed) + 1;
    const uint64_t before = atomic_load_explicit(sequence, memory_order_relaxed);
    atomic_store_explicit(sequence, before + count, memory_order_relaxed);
    return before + 1;
}

static inline void append(const struct cca__history *history, struct cca__device_history *device,
                          struct cca__recorder *recorder, struct cca__history_entry entry) {
    struct cca__history_entry *const slot = ring_next(&recorder->ring, history->max_entries);
    if (__builtin_expect(slot == NULL, 0))
        lose(device, cca__history_end(&entry));
    else
        *slot = entry;
}

// A stream's first entry.
static __attribute__((noinline)) struct cca__recorder *make_recorder(struct cca__stream *stream) {
    stream->recorder = calloc(1, sizeof *stream->recorder);
    if (stream->recorder == NULL) lose(stream->device->history, draw(stream->device, stream, 1));
    return stream->recorder;
}

// A chunk's stacks, NULL without memory for them. A chunk of blocks is of one stream, whose lock is
// held.
static inline uint32_t *stacks_of_chunk(const struct cca__history *history, uint32_t number) {
    uint32_t **const chunk = &history->block_stacks[number / CCA__BLOCK_CHUNK];
    if (__builtin_expect(*chunk == NULL, 0)) *chunk = calloc(CCA__BLOCK_CHUNK, sizeof **chunk);
    return *chunk;
}

uint32_t cca__history_block_stack(const struct cca *cca, uint32_t number) {
    if (cca->history.block_stacks == NULL) return 0;
    const uint32_t *const stacks = cca->history.block_stacks[number / CCA__BLOCK_CHUNK];
    return stacks == NULL ? 0 : stacks[number % CCA__BLOCK_CHUNK];
}

// The levels from which a call's stack is looked for. That of a free which completes in a later
// call is the later call's, which is mostly an allocation.
static inline enum cca_history_context context_of(enum allocator_action action) {
    if (action == ALLOCATOR_ALLOC) return CCA_CONTEXT_STATE;
    return action == ALLOCATOR_FREE_REQUESTED ? CCA_CONTEXT_ALL : CCA_CONTEXT_ALLOC;
}

void cca__history_block_locked(struct cca *cca, enum allocator_action action,
                               const struct cca__pool *pool, const struct cca__block *block) {
    struct cca__history *const history = &cca->history;
    struct cca__device_history *const device = pool->device->history;
    struct cca__recorder *recorder = pool->stream->recorder;
    if (__builtin_expect(recorder == NULL, 0) && (recorder = make_recorder(pool->stream)) == NULL)
        return;

    const bool walks = history->context >= context_of(action);
    uint32_t stack =
        walks ? cca__stack_find(&history->stacks, &recorder->walks, __builtin_frame_address(0)) : 0;
    if (action == ALLOCATOR_ALLOC || !walks) {
        const uint32_t number = (uint32_t)(block - cca->blocks);
        uint32_t *const stacks = stacks_of_chunk(history, number);
        if (stacks != NULL && action == ALLOCATOR_ALLOC)
            stacks[number % CCA__BLOCK_CHUNK] = stack;
        else if (stacks != NULL)
            stack = stacks[number % CCA__BLOCK_CHUNK];
    }

    const bool is_double =
        action == ALLOCATOR_FREE_REQUESTED && block->state == CCA__BLOCK_ALLOCATED;
    append(history, device, recorder,
           (struct cca__history_entry){
               .address = block->address,
               .size = block->requested,
               .ticks = ticks_of_call(recorder, &history->clock),
               .sequence = draw(pool->device, pool->stream, 1 + is_double),
               .stack = history->context >= CCA_CONTEXT_ALLOC ? stack : 0,
               .pool = pool->number,
               .action = (uint8_t)action,
               .more = is_double,
           });
}

uint32_t cca__history_device_locked(struct cca__device *device, enum allocator_action action,
                                    const struct cca__pool *pool, uint64_t address, size_t size) {
    struct cca__history *const history = &device->owner->history;
    struct cca__recorder *const recorder = &device->history->recorder;
    uint32_t stack = 0;
    if (history->context >= CCA_CONTEXT_STATE && action != ALLOCATOR_SNAPSHOT)
        stack = cca__stack_find(&history->stacks, &recorder->walks, __builtin_frame_address(0));
    append(history, device->history, recorder,
           (struct cca__history_entry){
               .address = address,
               .size = size,
               .ticks = ticks_of_call(recorder, &history->clock),
               .sequence = draw(device, pool != NULL ? pool->stream : device->first_created, 1),
               .stack = history->context >= CCA_CONTEXT_ALLOC ? stack : 0,
               .pool = pool != NULL ? pool->number : 0,
               .action = (uint8_t)action,
           });
    return stack;
}

//------------------------------------------------------------------------------------------------
// On and off.

void cca__history_init(struct cca__history *history) {
    *history = (struct cca__history){.enabled = CCA_HISTORY_OFF};
    cca__stack_table_init(&history->stacks);
}

static void forget_blocks(struct cca__history *history) {
    if (history->block_stacks == NULL) return;
    for (uint32_t chunk = 0; chunk < CCA__BLOCK_CHUNKS_MAX; ++chunk)
        free(history->block_stacks[chunk]);
    free(history->block_stacks);
    history->block_stacks = NULL;
}

void cca__history_deinit(struct cca *cca) {
    forget_blocks(&cca->history);
    cca__stack_table_deinit(&cca->history.stacks);
}

enum base_status cca__history_add_device(struct cca__device *device) {
    if (device->owner->history.enabled == CCA_HISTORY_OFF || device->history != NULL)
        return BASE_OK;
    const size_t size = sizeof *device->history;
    struct cca__device_history *const history =
        aligned_alloc(_Alignof(struct cca__device_history), size);
    if (history == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for the history of device %d",
                               device->ordinal);
    memset(history, 0, size);
    device->history = history;
    return BASE_OK;
}

void cca__history_remove_device(struct cca__device *device) {
    for (size_t index = 0; index < device->stream_count; ++index) {
        struct cca__recorder **const recorder = &device->by_handle[index]->recorder;
        if (*recorder != NULL) free((*recorder)->ring.entries);
        free(*recorder);
        *recorder = NULL;
    }
    if (device->history != NULL) free(device->history->recorder.ring.entries);
    free(device->history);
    device->history = NULL;
}

static void forget_segments(struct cca__device *device) {
    struct cca *const cca = device->owner;
    for (size_t index = 0; index < device->stream_count; ++index)
        for (uint32_t number = device->by_handle[index]->first_segment; number != 0;
             number = cca->segments[number].next)
            cca->segments[number].stack = 0;
}

// What did not count among the newest so far does not come back when there may be more.
static void forget_older(struct cca__device *device) {
    if (device->history != NULL) lose(device->history, cca__history_shown_after_locked(device));
}

static void fit_rings(struct cca__device *device, size_t max) {
    ring_fit(&device->history->recorder.ring, max);
    for (size_t index = 0; index < device->stream_count; ++index) {
        struct cca__recorder *const recorder = device->by_handle[index]->recorder;
        if (recorder != NULL) ring_fit(&recorder->ring, max);
    }
}

static void switch_off_locked(struct cca *cca) {
    for (int ordinal = 0; ordinal < CCA__DEVICES_MAX; ++ordinal) {
        struct cca__device *const device =
            atomic_load_explicit(&cca->devices[ordinal], memory_order_acquire);
        if (device == NULL) continue;
        cca__history_remove_device(device);
        forget_segments(device);
    }
    forget_blocks(&cca->history);
    cca__stack_table_clear(&cca->history.stacks);
    cca->history.enabled = CCA_HISTORY_OFF;
}

static enum base_status switch_on_locked(struct cca *cca,
                                         const struct cca_history_options *options) {
    struct cca__history *const history = &cca->history;
    const bool was_off = history->enabled == CCA_HISTORY_OFF;
    enum base_status status = BASE_OK;
    if (history->block_stacks == NULL)
        history->block_stacks = calloc(CCA__BLOCK_CHUNKS_MAX, sizeof *history->block_stacks);
    if (history->block_stacks == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for a history");
    for (int ordinal = 0; ordinal < CCA__DEVICES_MAX; ++ordinal) {
        struct cca__device *const device =
            atomic_load_explicit(&cca->devices[ordinal], memory_order_acquire);
        if (device != NULL) forget_older(device);
    }
    history->enabled = options->enabled;
    history->context = options->context;
    history->max_entries = options->max_entries > 1 ? options->max_entries : 1;
    if (options->enabled == CCA_HISTORY_STATE) history->max_entries = 1;
    if (was_off) cca__clock_start(&history->clock);
    for (int ordinal = 0; ordinal < CCA__DEVICES_MAX && status == BASE_OK; ++ordinal) {
        struct cca__device *const device =
            atomic_load_explicit(&cca->devices[ordinal], memory_order_acquire);
        if (device == NULL) continue;
        status = cca__history_add_device(device);
        if (status == BASE_OK) fit_rings(device, history->max_entries);
    }
    if (status != BASE_OK) switch_off_locked(cca); // only a history that was off lacks a device
    return status;
}

enum base_status cca_record_history(struct allocator *allocator,
                                    const struct cca_history_options *options) {
    struct cca *const cca = cca__of(allocator);
    if ((unsigned)options->enabled > CCA_HISTORY_ALL ||
        (unsigned)options->context > CCA_CONTEXT_ALL || options->max_entries > MAX_ENTRIES_LIMIT)
        return base_status_set(BASE_INVALID_VALUE,
                               "history: enabled is one of 0 to %d (%d), context one of 0 to %d "
                               "(%d), and there are at most %zu entries (%zu)",
                               (int)CCA_HISTORY_ALL, (int)options->enabled, (int)CCA_CONTEXT_ALL,
                               (int)options->context, MAX_ENTRIES_LIMIT, options->max_entries);
    enum base_status status = cca__require_caching(allocator, "history");
    if (status == BASE_OK) status = cca__fork_check(cca);
    if (status != BASE_OK) return status;
    cca__lock_take(&cca->settings_lock);
    cca__devices_lock_all(cca);
    if (options->enabled == CCA_HISTORY_OFF)
        switch_off_locked(cca);
    else
        status = switch_on_locked(cca, options);
    cca->watched = cca->observer.event != NULL || cca->history.enabled != CCA_HISTORY_OFF;
    cca__devices_update_settings_locked(cca);
    cca__devices_unlock_all(cca);
    cca__lock_release(&cca->settings_lock);
    return status;
}

//------------------------------------------------------------------------------------------------
// The walk of cca_check.

static void check_ring(const struct cca__history *history, const struct cca__history_ring *ring,
                       uint64_t newest) {
    BASE_CHECK_LE(ring->next, ring->capacity);
    uint64_t before = ring->lost;
    for (size_t index = 0; index < cca__history_count(ring); ++index) {
        const struct cca__history_entry *const entry = cca__history_at(ring, index);
        BASE_CHECK_GT(entry->sequence, before);
        BASE_CHECK_LE(cca__history_end(entry), newest);
        BASE_CHECK_LT(entry->stack, history->stacks.count > 0 ? history->stacks.count : 1);
        before = cca__history_end(entry);
    }
}

void cca__history_check(const struct cca__device *device) {
    const struct cca__history *const history = &device->owner->history;
    BASE_CHECK_EQ(device->history != NULL, history->enabled != CCA_HISTORY_OFF);
    if (device->history == NULL) return;
    const uint64_t newest = atomic_load_explicit(&device->history->sequence, memory_order_relaxed);
    check_ring(history, &device->history->recorder.ring, newest);
    for (size_t index = 0; index < device->stream_count; ++index)
        if (device->by_handle[index]->recorder != NULL)
            check_ring(history, &device->by_handle[index]->recorder->ring, newest);
}
