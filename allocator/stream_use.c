// See stream_use.h.
#include "allocator/stream_use.h"

#include "allocator/capture_caller.h"
#include "allocator/deferral.h"
#include "allocator/device.h"
#include "allocator/hit.h"
#include "allocator/pointer.h"

#include <stdlib.h>

static enum base_status take_record_locked(struct cca *cca, struct cca__stream *stream,
                                           uint32_t *number) {
    *number = stream->unused_uses;
    if (*number == 0) return cca__arena_take(&cca->use_records, number);
    stream->unused_uses = cca__use_record_at(cca, *number)->next;
    return BASE_OK;
}

enum base_status cca__use_add_locked(struct cca *cca, struct cca__stream *stream,
                                     struct cca__block *block, uint16_t use) {
    struct cca__use_record *record = NULL;
    for (uint32_t number = block->uses; number != 0; number = record->next) {
        record = cca__use_record_at(cca, number);
        for (uint16_t index = 0; index < record->count; ++index)
            if (record->pools[index] == use) return BASE_OK;
    }
    if (record == NULL || record->count == CCA__USES_PER_RECORD) {
        uint32_t number;
        const enum base_status status = take_record_locked(cca, stream, &number);
        if (status != BASE_OK) return status;
        *cca__use_record_at(cca, number) = (struct cca__use_record){.next = block->uses};
        block->uses = number;
        record = cca__use_record_at(cca, number);
    }
    record->pools[record->count++] = use;
    return BASE_OK;
}

void cca__uses_trim_locked(struct cca *cca, struct cca__stream *stream) {
    for (uint32_t number = stream->unused_uses, next; number != 0; number = next) {
        next = cca__use_record_at(cca, number)->next;
        cca__arena_give_back(&cca->use_records, number);
    }
    stream->unused_uses = 0;
}

//------------------------------------------------------------------------------------------------
// Events and queues. The device's events lock held.

static __attribute__((noinline)) enum base_status create_event(struct cca__device *device,
                                                               cudaEvent_t *event) {
    struct cca__device_scope scope;
    enum base_status status = cca__device_scope_begin(&scope, device->ordinal);
    if (status != BASE_OK) return status;
    const cudaError_t error = cudaEventCreateWithFlags(event, cudaEventDisableTiming);
    if (error != cudaSuccess)
        status = cca__cuda_failed(error, "cudaEventCreateWithFlags on device %d", device->ordinal);
    cca__device_scope_end(&scope);
    return status;
}

enum base_status cca__event_take_locked(struct cca__device *device, cudaEvent_t *event) {
    if (device->spare_event_count == 0) return create_event(device, event);
    *event = device->spare_events[--device->spare_event_count];
    return BASE_OK;
}

static bool grow_spare_events(struct cca__device *device) {
    const size_t capacity =
        device->spare_event_capacity == 0 ? 64 : 2 * device->spare_event_capacity;
    cudaEvent_t *const events = realloc(device->spare_events, capacity * sizeof *events);
    if (events == NULL) return false;
    device->spare_events = events;
    device->spare_event_capacity = capacity;
    return true;
}

void cca__event_keep_growing_locked(struct cca__device *device, cudaEvent_t event) {
    if (grow_spare_events(device))
        device->spare_events[device->spare_event_count++] = event;
    else
        (void)cudaEventDestroy(event); // a spare one that cannot be kept
}

//------------------------------------------------------------------------------------------------
// Freeing.

#define APART __attribute__((noinline)) // what is rare, so that the rest needs fewer registers

// Records an event on one stream for a pending block and queues it. The events lock held.
__attribute__((always_inline)) static inline enum base_status
record_event_locked(struct cca__stream *user, uint32_t number) {
    struct cca__device *const device = user->device;
    cudaEvent_t event;
    enum base_status status = cca__event_queue_reserve(&user->queue);
    if (status == BASE_OK) status = cca__event_take_locked(device, &event);
    if (status != BASE_OK) return status;
    // Only the handles of default streams mean a stream of whatever device is current.
    struct cca__device_scope scope;
    const bool is_default = user->handle == NULL || user->handle == cudaStreamLegacy ||
                            user->handle == cudaStreamPerThread;
    if (is_default) status = cca__device_scope_begin(&scope, device->ordinal);
    if (status == BASE_OK) {
        const cudaError_t error = cudaEventRecord(event, user->handle);
        if (error != cudaSuccess)
            status = cca__cuda_failed(error, "cudaEventRecord on stream %p of device %d",
                                      (void *)user->handle, device->ordinal);
        if (is_default) cca__device_scope_end(&scope);
    }
    if (status == BASE_OK)
        cca__event_queue_push(&user->queue, event, number);
    else
        cca__event_keep_locked(device, event);
    return status;
}

static inline struct cca__stream *user_of(const struct cca *cca,
                                          const struct cca__use_record *record, uint16_t index) {
    return cca__stream_at(cca, record->pools[index] / 2);
}

// Takes back the last events, one queued for each of the first COUNT streams that use a block. The
// events lock was held throughout, so what was pushed is still last in its queue.
static void unrecord_events_locked(struct cca *cca, uint32_t uses, uint16_t count) {
    for (uint32_t number = uses; number != 0; number = cca__use_record_at(cca, number)->next) {
        const struct cca__use_record *const record = cca__use_record_at(cca, number);
        for (uint16_t index = 0; index < record->count && count > 0; ++index, --count) {
            struct cca__stream *const user = user_of(cca, record, index);
            cca__event_keep_locked(user->device, cca__event_queue_unpush(&user->queue));
        }
    }
}

// Notes that a block of OWNER waits for COUNT more events, in the queues of WAITS_FOR. Atomic for
// those who read without the events lock, which orders writers.
static inline void add_waits_locked(struct cca__stream *owner, uint16_t count, uint64_t waits_for) {
    struct cca__device *const device = owner->device;
    const uint64_t pending = atomic_load_explicit(&device->pending_events, memory_order_relaxed);
    const uint64_t before = atomic_load_explicit(&owner->waits_for, memory_order_relaxed);
    atomic_store_explicit(&device->pending_events, pending + count, memory_order_relaxed);
    atomic_store_explicit(&owner->waits_for, before | waits_for, memory_order_relaxed);
}

enum base_status cca__events_record_locked(struct cca__stream *stream, uint32_t number) {
    struct cca *const cca = stream->device->owner;
    const uint32_t uses = cca__block_at(cca, number)->uses;
    uint16_t count = 0;
    uint64_t waits_for = 0;
    for (uint32_t each = uses; each != 0; each = cca__use_record_at(cca, each)->next) {
        const struct cca__use_record *const record = cca__use_record_at(cca, each);
        for (uint16_t index = 0; index < record->count; ++index) {
            struct cca__stream *const user = user_of(cca, record, index);
            const enum base_status status = record_event_locked(user, number);
            if (status != BASE_OK) {
                unrecord_events_locked(cca, uses, count);
                return status;
            }
            waits_for |= cca__stream_bit(user);
            ++count;
        }
    }
    cca__use_record_at(cca, uses)->events = count;
    add_waits_locked(stream, count, waits_for);
    return BASE_OK;
}

// Whether a stream of the uses is captured. An event that was recorded there before does not tell
// of work, and asking it would cost the program its capture.
static enum base_status find_captured(const struct cca *cca, uint32_t uses, bool *found) {
    enum base_status status = BASE_OK;
    for (uint32_t number = uses; number != 0; number = cca__use_record_at(cca, number)->next) {
        const struct cca__use_record *const record = cca__use_record_at(cca, number);
        for (uint16_t index = 0; index < record->count && status == BASE_OK && !*found; ++index) {
            enum cca__caller caller = CCA__OUTSIDE;
            status = cca__stream_caller(user_of(cca, record, index)->handle, &caller);
            *found = caller != CCA__OUTSIDE;
        }
    }
    return status;
}

APART enum base_status cca__events_record_beside_locked(struct cca__stream *stream, uint32_t number,
                                                        bool *is_captured) {
    struct cca__device *const device = stream->device;
    struct cca *const cca = device->owner;
    const uint32_t uses = cca__block_at(cca, number)->uses;
    *is_captured = false;
    enum base_status status = cca__events_record_locked(stream, number);
    if (status != BASE_OK || !cca__is_marked(device) || cca->config.own.torch_faults) return status;
    status = find_captured(cca, uses, is_captured);
    if (status == BASE_OK && !*is_captured) return BASE_OK;
    const uint16_t count = cca__use_record_at(cca, uses)->events;
    const uint64_t pending = atomic_load_explicit(&device->pending_events, memory_order_relaxed);
    unrecord_events_locked(cca, uses, count);
    cca__use_record_at(cca, uses)->events = 0;
    atomic_store_explicit(&device->pending_events, pending - count, memory_order_relaxed);
    return status;
}

// Records them at once for a block that one other stream uses, as most are.
static inline enum base_status record_events_locked(struct cca__stream *stream, uint32_t number) {
    struct cca *const cca = stream->device->owner;
    struct cca__use_record *const record =
        cca__use_record_at(cca, cca__block_at(cca, number)->uses);
    if (record->next != 0 || record->count != 1) return cca__events_record_locked(stream, number);
    struct cca__stream *const user = user_of(cca, record, 0);
    const enum base_status status = record_event_locked(user, number);
    if (status != BASE_OK) return status;
    record->events = 1;
    add_waits_locked(stream, 1, cca__stream_bit(user));
    return BASE_OK;
}

// Takes the events lock too, which comes before the stream's: under that one nobody may wait for
// it. False, with neither: the block was freed meanwhile.
static APART bool lock_in_order(struct cca__stream *stream, const void *pointer, uint32_t number) {
    const struct cca__block *const block = cca__block_at(stream->device->owner, number);
    const uint16_t pool = cca__block_pool(block);
    cca__lock_release(&stream->lock);
    cca__lock_take(&stream->device->events_lock);
    cca__lock_take(&stream->lock);
    if (cca__block_is_handed_out(block, cca__pool_at(stream->device->owner, pool), pointer) &&
        block->uses != 0)
        return true;
    cca__lock_release(&stream->lock);
    cca__lock_release(&stream->device->events_lock);
    return false;
}

void cca__free_observe(struct cca__stream *stream, uint32_t number) {
    struct cca *const cca = stream->device->owner;
    const struct cca__block *const block = cca__block_at(cca, number);
    cca__lock_take(&stream->lock);
    cca__observe_block(cca, ALLOCATOR_FREE_REQUESTED, cca__pool_at(cca, cca__block_pool(block)),
                       block);
    cca__lock_release(&stream->lock);
}

// What is counted and told of such a free comes when it is certain.
static APART void tell_of_free(struct cca__stream *stream, uint32_t number) {
    const struct cca *const cca = stream->device->owner;
    if (cca__block_at(cca, number)->size >= cca->config.sizes.max_split_size)
        cca__count_oversize(stream->device, -1);
    if (cca->watched) cca__free_observe(stream, number);
}

// The block's events could not be recorded: it is handed out as before. If others took memory
// meanwhile, a limit may be passed.
static APART void take_free_back(struct cca__stream *stream, uint32_t number) {
    struct cca *const cca = stream->device->owner;
    struct cca__block *const block = cca__block_at(cca, number);
    cca__lock_take(&stream->lock);
    cca__hit_count_pending(cca__pool_at(cca, cca__block_pool(block)), -1, -(int64_t)block->size);
    block->state = CCA__BLOCK_ALLOCATED;
    cca__lock_release(&stream->lock);
    cca__stats_meet(stream);
}

// A pending block of a SPECIAL stream, or not, waits for the streams that use it.
static inline enum base_status wait_for_events_locked(struct cca__stream *stream, uint32_t number,
                                                      bool special) {
    const enum base_status status = record_events_locked(stream, number);
    if (status != BASE_OK)
        take_free_back(stream, number);
    else if (__builtin_expect(special, 0))
        tell_of_free(stream, number);
    return status;
}

// The same of a free that may be made in a capture, and is deferred then.
static APART enum base_status wait_or_defer_locked(struct cca__stream *stream, uint32_t number,
                                                   bool special) {
    bool is_deferred = false, is_captured;
    enum base_status status;
    do { // again if a stream joined a capture between the two
        is_captured = false;
        status = cca__defer_locked(stream, number, &is_deferred);
        if (status == BASE_OK && !is_deferred)
            status = cca__events_record_beside_locked(stream, number, &is_captured);
    } while (is_captured && status == BASE_OK);
    if (is_deferred) return status;
    if (status != BASE_OK)
        take_free_back(stream, number);
    else if (special)
        tell_of_free(stream, number);
    return status;
}

enum base_status cca__free_used_locked(struct cca__stream *stream, void *pointer, uint32_t number) {
    struct cca__device *const device = stream->device;
    struct cca__block *const block = cca__block_at(device->owner, number);
    if (!cca__lock_try(&device->events_lock) && !lock_in_order(stream, pointer, number))
        return cca__pointer_invalid(device->owner, pointer);
    const bool special = stream->special;
    block->state = CCA__BLOCK_PENDING; // from here on a second free is refused
    cca__hit_count_pending(cca__pool_of_kind(stream, cca__block_pool(block) % 2), 1,
                           (int64_t)block->size);
    cca__lock_release(&stream->lock);
    const enum base_status status = __builtin_expect(cca__may_be_in_capture(device), 0)
                                        ? wait_or_defer_locked(stream, number, special)
                                        : wait_for_events_locked(stream, number, special);
    cca__lock_release(&device->events_lock);
    return status;
}
