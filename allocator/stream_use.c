// See stream_use.h.
#include "allocator/stream_use.h"

#include "allocator/device.h"
#include "allocator/pointer.h"
#include "allocator/pool.h"

#include <stdlib.h>

enum base_status cca__use_add_locked(struct cca *cca, struct cca__block *block,
                                     const struct cca__stream *user) {
    const uint16_t pool = user->pools[CCA__POOL_SMALL].number;
    struct cca__use_record *record = NULL;
    for (uint32_t number = block->uses; number != 0; number = record->next) {
        record = cca__use_record_at(cca, number);
        for (uint16_t index = 0; index < record->count; ++index)
            if (record->pools[index] == pool) return BASE_OK;
    }
    if (record == NULL || record->count == CCA__USES_PER_RECORD) {
        uint32_t number;
        const enum base_status status = cca__arena_take(&cca->use_records, &number);
        if (status != BASE_OK) return status;
        *cca__use_record_at(cca, number) = (struct cca__use_record){.next = block->uses};
        block->uses = number;
        record = cca__use_record_at(cca, number);
    }
    record->pools[record->count++] = pool;
    return BASE_OK;
}

void cca__uses_forget_locked(struct cca *cca, struct cca__block *block) {
    for (uint32_t number = block->uses, next; number != 0; number = next) {
        next = cca__use_record_at(cca, number)->next;
        cca__arena_give_back(&cca->use_records, number);
    }
    block->uses = 0;
}

//------------------------------------------------------------------------------------------------
// Events and queues. The device's events lock held.

enum base_status cca__event_take_locked(struct cca__device *device, cudaEvent_t *event) {
    if (device->spare_event_count > 0) {
        *event = device->spare_events[--device->spare_event_count];
        return BASE_OK;
    }
    struct cca__device_scope scope;
    enum base_status status = cca__device_scope_begin(&scope, device->ordinal);
    if (status != BASE_OK) return status;
    const cudaError_t error = cudaEventCreateWithFlags(event, cudaEventDisableTiming);
    if (error != cudaSuccess)
        status = cca__cuda_failed(error, "cudaEventCreateWithFlags on device %d", device->ordinal);
    cca__device_scope_end(&scope);
    return status;
}

void cca__event_keep_locked(struct cca__device *device, cudaEvent_t event) {
    if (device->spare_event_count == device->spare_event_capacity) {
        const size_t capacity =
            device->spare_event_capacity == 0 ? 64 : 2 * device->spare_event_capacity;
        cudaEvent_t *const events = realloc(device->spare_events, capacity * sizeof *events);
        if (events == NULL) {
            (void)cudaEventDestroy(event); // a spare one that cannot be kept
            return;
        }
        device->spare_events = events;
        device->spare_event_capacity = capacity;
    }
    device->spare_events[device->spare_event_count++] = event;
}

//------------------------------------------------------------------------------------------------
// Freeing.

// Ends the wait of one event; the last one of a block completes its free. *over_limit as in
// cca__pool_free_locked.
static struct cca__stream *complete_event(struct cca *cca, uint32_t number, bool *over_limit) {
    struct cca__block *const block = cca__block_at(cca, number);
    struct cca__pool *const pool = cca__pool_at(cca, cca__block_pool(block));
    struct cca__stream *const stream = pool->stream;
    cca__lock_take(&stream->lock);
    BASE_CHECK_EQ(block->state, CCA__BLOCK_PENDING);
    struct cca__use_record *const record = cca__use_record_at(cca, block->uses);
    if (--record->events == 0) {
        cca__uses_forget_locked(cca, block);
        // First, so that the limits are those of the counters that the free tests.
        cca__stats_count_pending_locked(pool, -1, -(int64_t)block->size);
        cca__pool_free_locked(cca, pool, number, over_limit);
    }
    cca__lock_release(&stream->lock);
    return stream;
}

// Records an event on one stream and reserves its place in the queue. The events lock held.
static enum base_status record_event_locked(struct cca__stream *user, cudaEvent_t *event) {
    struct cca__device *const device = user->device;
    enum base_status status = cca__event_queue_reserve(&user->queue);
    if (status == BASE_OK) status = cca__event_take_locked(device, event);
    if (status != BASE_OK) return status;
    // A stream handle may mean the default stream of the current device.
    struct cca__device_scope scope;
    status = cca__device_scope_begin(&scope, device->ordinal);
    if (status == BASE_OK) {
        const cudaError_t error = cudaEventRecord(*event, user->handle);
        if (error != cudaSuccess)
            status = cca__cuda_failed(error, "cudaEventRecord on stream %p of device %d",
                                      (void *)user->handle, device->ordinal);
        cca__device_scope_end(&scope);
    }
    if (status != BASE_OK) cca__event_keep_locked(device, *event);
    return status;
}

// Walks the streams that use a block.
struct use_walk {
    const struct cca *cca;
    uint32_t record;
    uint16_t index;
};
static inline struct cca__stream *next_user(struct use_walk *walk) {
    while (walk->record != 0) {
        const struct cca__use_record *const record = cca__use_record_at(walk->cca, walk->record);
        if (walk->index < record->count)
            return cca__stream_at(walk->cca, record->pools[walk->index++] / 2);
        walk->record = record->next;
        walk->index = 0;
    }
    return NULL;
}

static uint16_t count_users(const struct cca *cca, uint32_t record) {
    uint16_t count = 0;
    for (; record != 0; record = cca__use_record_at(cca, record)->next)
        count = (uint16_t)(count + cca__use_record_at(cca, record)->count);
    return count;
}

// Records an event on every stream that uses a block of OWNER, and notes which queues blocks of it
// wait in (atomic for those who look at it; the events lock orders writers). On failure none is
// queued.
static enum base_status record_events_locked(struct cca__stream *owner, uint32_t number,
                                             uint32_t uses) {
    struct cca *const cca = owner->device->owner;
    struct use_walk walk = {.cca = cca, .record = uses};
    struct cca__stream *user;
    enum base_status status = BASE_OK;
    uint16_t recorded = 0;
    uint64_t waits_for = atomic_load_explicit(&owner->waits_for, memory_order_relaxed);
    while (status == BASE_OK && (user = next_user(&walk)) != NULL) {
        cudaEvent_t event;
        status = record_event_locked(user, &event);
        if (status != BASE_OK) break;
        cca__event_queue_push(&user->queue, event, number);
        waits_for |= cca__stream_bit(user);
        ++recorded;
    }
    if (status == BASE_OK) {
        atomic_store_explicit(&owner->waits_for, waits_for, memory_order_relaxed);
        atomic_fetch_add_explicit(&owner->device->pending_events, recorded, memory_order_relaxed);
        return BASE_OK;
    }
    // The events lock was held throughout, so what was pushed is still last in its queue.
    walk = (struct use_walk){.cca = cca, .record = uses};
    while (recorded-- > 0) {
        user = next_user(&walk);
        cca__event_keep_locked(user->device, cca__event_queue_unpush(&user->queue));
    }
    return status;
}

// Makes a block with uses wait for its events, before they are recorded: nobody can look at them
// while the events lock is held.
static void begin_waiting_locked(struct cca__pool *pool, struct cca__block *block) {
    struct cca *const cca = pool->device->owner;
    block->state = CCA__BLOCK_PENDING; // from here on a second free is refused
    cca__use_record_at(cca, block->uses)->events = count_users(cca, block->uses);
    cca__stats_count_pending_locked(pool, 1, (int64_t)block->size);
}

// After the events: tells that the block was freed, or gives it back to the program.
static void begin_waiting_ends(struct cca__pool *pool, struct cca__block *block, bool is_freed) {
    struct cca *const cca = pool->device->owner;
    cca__lock_take(&pool->stream->lock);
    if (is_freed) {
        if (block->size >= cca->config.sizes.max_split_size) cca__count_oversize(pool->device, -1);
        if (cca->watched) cca__observe_block(cca, ALLOCATOR_FREE_REQUESTED, pool, block);
    } else {
        block->state = CCA__BLOCK_ALLOCATED;
        cca__stats_count_pending_locked(pool, -1, -(int64_t)block->size);
    }
    cca__lock_release(&pool->stream->lock);
    // It counts as allocated again, beside what others were given meanwhile.
    if (!is_freed) cca__stats_meet(pool->stream);
}

enum base_status cca__free_used(struct cca__stream *stream, void *pointer, uint32_t number) {
    struct cca__device *const device = stream->device;
    struct cca *const cca = device->owner;
    struct cca__block *const block = cca__block_at(cca, number);
    cca__lock_take(&device->events_lock);
    cca__lock_take(&stream->lock);
    struct cca__pool *const pool = cca__pool_at(cca, cca__block_pool(block));
    const bool is_special = stream->special;
    const bool is_ours = pool != NULL && pool->stream == stream &&
                         cca__block_is_handed_out(block, pool, pointer) && block->uses != 0;
    if (is_ours) begin_waiting_locked(pool, block);
    cca__lock_release(&stream->lock);
    if (!is_ours) {
        cca__lock_release(&device->events_lock);
        return cca__pointer_invalid(cca, pointer);
    }
    const enum base_status status = record_events_locked(stream, number, block->uses);
    if (is_special || status != BASE_OK) begin_waiting_ends(pool, block, status == BASE_OK);
    cca__lock_release(&device->events_lock);
    return status;
}

//------------------------------------------------------------------------------------------------
// Polling and waiting.

// Takes an event that is complete out of its queue. Streams that passed a limit while the events
// lock was held meet under it: their locks come later in the order.
static void finish_event_locked(struct cca__device *device, struct cca__event_queue *queue,
                                size_t index) {
    const struct cca__queued_event entry = cca__event_queue_remove(queue, index);
    bool over_limit = false;
    cca__event_keep_locked(device, entry.event);
    atomic_fetch_sub_explicit(&device->pending_events, 1, memory_order_relaxed);
    struct cca__stream *const stream = complete_event(device->owner, entry.block, &over_limit);
    if (over_limit) cca__stats_meet(stream);
}

enum base_status cca__event_query(const struct cca__device *device, cudaEvent_t event,
                                  bool *is_complete) {
    const cudaError_t error = cudaEventQuery(event);
    *is_complete = error == cudaSuccess;
    if (error == cudaErrorNotReady)
        (void)cudaGetLastError();
    else if (error != cudaSuccess)
        return cca__cuda_failed(error, "cudaEventQuery on device %d", device->ordinal);
    return BASE_OK;
}

// Looks behind an unfinished front, where the last poll left off; at the end it begins anew.
static enum base_status poll_behind_locked(struct cca__device *device,
                                           struct cca__event_queue *queue) {
    if (queue->next_behind == 0 || queue->next_behind >= queue->count) queue->next_behind = 1;
    for (int asked = 0; asked < CCA__SKIPPED_MAX && queue->next_behind < queue->count; ++asked) {
        const size_t index = queue->next_behind;
        bool is_complete;
        const enum base_status status =
            cca__event_query(device, cca__event_queue_at(queue, index)->event, &is_complete);
        if (status != BASE_OK) return status;
        if (is_complete)
            finish_event_locked(device, queue, index);
        else
            ++queue->next_behind;
    }
    return BASE_OK;
}

static enum base_status poll_queue_locked(struct cca__device *device,
                                          struct cca__event_queue *queue) {
    while (queue->count > 0) {
        bool is_complete;
        const enum base_status status =
            cca__event_query(device, cca__event_queue_at(queue, 0)->event, &is_complete);
        if (status != BASE_OK) return status;
        if (!is_complete)
            return device->owner->config.own.skip_stuck ? poll_behind_locked(device, queue)
                                                        : BASE_OK;
        finish_event_locked(device, queue, 0);
    }
    return BASE_OK;
}

// Polls the queues that blocks of STREAM may wait in, and forgets those that became empty.
static enum base_status poll_own_locked(struct cca__stream *stream) {
    struct cca__device *const device = stream->device;
    const uint64_t waits_for = atomic_load_explicit(&stream->waits_for, memory_order_relaxed);
    uint64_t left = 0;
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < device->stream_count; ++index) {
        struct cca__stream *const user = device->by_handle[index];
        if ((waits_for & cca__stream_bit(user)) == 0) continue;
        if (status == BASE_OK) status = poll_queue_locked(device, &user->queue);
        if (user->queue.count > 0) left |= cca__stream_bit(user);
    }
    atomic_store_explicit(&stream->waits_for, left, memory_order_relaxed);
    return status;
}

// Whether a request of STREAM looks at no queue.
static bool polls_nothing(const struct cca__stream *stream) {
    return atomic_load_explicit(&stream->device->polls_own, memory_order_relaxed) &&
           atomic_load_explicit(&stream->waits_for, memory_order_relaxed) == 0;
}

static enum base_status poll_locked(struct cca__stream *stream) {
    struct cca__device *const device = stream->device;
    if (atomic_load_explicit(&device->polls_own, memory_order_relaxed))
        return poll_own_locked(stream);
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < device->stream_count && status == BASE_OK; ++index)
        status = poll_queue_locked(device, &device->by_handle[index]->queue);
    return status;
}

enum base_status cca__poll_pending(struct cca__stream *stream) {
    if (polls_nothing(stream)) return BASE_OK;
    cca__lock_take(&stream->device->events_lock);
    const enum base_status status = poll_locked(stream);
    cca__lock_release(&stream->device->events_lock);
    return status;
}

enum base_status cca__poll_pending_if_idle(struct cca__stream *stream, bool *polled) {
    *polled = true;
    if (polls_nothing(stream)) return BASE_OK;
    *polled = cca__lock_try(&stream->device->events_lock);
    if (!*polled) return BASE_OK;
    const enum base_status status = poll_locked(stream);
    cca__lock_release(&stream->device->events_lock);
    return status;
}

// Whether the front of the queue is an event that was pushed before sequence END.
static bool front_is_before(const struct cca__event_queue *queue, uint32_t end) {
    return queue->count > 0 && (int32_t)(cca__event_queue_at(queue, 0)->sequence - end) < 0;
}

enum base_status cca__event_wait_locked(struct cca__device *device, struct cca__event_queue *queue,
                                        size_t index) {
    const struct cca__queued_event entry = *cca__event_queue_at(queue, index);
    cca__lock_release(&device->events_lock);
    const cudaError_t error = cudaEventSynchronize(entry.event);
    cca__lock_take(&device->events_lock);
    if (error != cudaSuccess)
        return cca__cuda_failed(error, "cudaEventSynchronize on device %d", device->ordinal);
    // A poll of another thread may have seen it first.
    for (index = 0; index < queue->count; ++index) {
        if (cca__event_queue_at(queue, index)->sequence != entry.sequence) continue;
        finish_event_locked(device, queue, index);
        break;
    }
    return BASE_OK;
}

// Waits for the events of one stream that are queued now.
static enum base_status synchronize_queue(struct cca__device *device,
                                          struct cca__event_queue *queue) {
    enum base_status status = BASE_OK;
    cca__lock_take(&device->events_lock);
    const uint32_t end = queue->pushed;
    while (status == BASE_OK && front_is_before(queue, end))
        status = cca__event_wait_locked(device, queue, 0);
    cca__lock_release(&device->events_lock);
    return status;
}

enum base_status cca__synchronize_pending(struct cca__device *device) {
    enum base_status status = BASE_OK;
    ++device->num_sync_all_streams;
    for (size_t index = 0; index < device->stream_count && status == BASE_OK; ++index)
        status = synchronize_queue(device, &device->by_handle[index]->queue);
    return status;
}

// The first event of a block of POOL in the queue that was pushed before sequence END; the queue's
// count if there is none. The events lock held.
static size_t find_event_of(struct cca *cca, const struct cca__event_queue *queue, uint32_t end,
                            const struct cca__private_pool *pool) {
    for (size_t index = 0; index < queue->count; ++index) {
        const struct cca__queued_event *const entry = cca__event_queue_at(queue, index);
        const struct cca__block *const block = cca__block_at(cca, entry->block);
        if ((int32_t)(entry->sequence - end) < 0 &&
            cca__pool_at(cca, cca__block_pool(block))->stream->private_pool == pool)
            return index;
    }
    return queue->count;
}

enum base_status cca__synchronize_private(struct cca__device *device,
                                          const struct cca__private_pool *pool) {
    enum base_status status = BASE_OK;
    ++device->num_sync_all_streams;
    cca__lock_take(&device->events_lock);
    for (size_t stream = 0; stream < device->stream_count && status == BASE_OK; ++stream) {
        struct cca__event_queue *const queue = &device->by_handle[stream]->queue;
        const uint32_t end = queue->pushed;
        for (size_t index; status == BASE_OK &&
                           (index = find_event_of(device->owner, queue, end, pool)) < queue->count;)
            status = cca__event_wait_locked(device, queue, index);
    }
    cca__lock_release(&device->events_lock);
    return status;
}
