// See event_poll.h.
#include "allocator/event_poll.h"

#include "allocator/capture_caller.h"
#include "allocator/deferral.h"
#include "allocator/device.h"
#include "allocator/hit.h"
#include "allocator/stream_use.h"

#include <stdio.h>
#include <string.h>

#define APART __attribute__((noinline)) // what is rare, so that the rest needs fewer registers

//------------------------------------------------------------------------------------------------
// Completing.

// Frees whose events are all complete, in that order, linked by their blocks' link[0]. They are
// made available when no device call is left to make, so each stream is locked once. The events
// lock is held meanwhile.
struct finished {
    uint32_t first, *end; // where the next one is linked
};

static inline void finished_begin(struct finished *finished) { finished->end = &finished->first; }

// ENTRY, which is complete, was taken out of its queue.
static inline void finish_event_locked(struct cca__device *device, struct cca__queued_event entry,
                                       struct finished *finished) {
    struct cca *const cca = device->owner;
    struct cca__block *const block = cca__block_at(cca, entry.block);
    const uint64_t pending = atomic_load_explicit(&device->pending_events, memory_order_relaxed);
    cca__event_keep_locked(device, entry.event);
    atomic_store_explicit(&device->pending_events, pending - 1, memory_order_relaxed);
    if (--cca__use_record_at(cca, block->uses)->events > 0) return;
    *finished->end = entry.block;
    finished->end = &block->link[0];
}

// True if a limit of the stream was passed.
__attribute__((always_inline)) static inline bool
complete_free_locked(struct cca *cca, struct cca__stream *stream, uint32_t number) {
    struct cca__block *const block = cca__block_at(cca, number);
    struct cca__pool *const pool = cca__pool_of_kind(stream, cca__block_pool(block) % 2);
    BASE_CHECK_EQ(block->state, CCA__BLOCK_PENDING);
    cca__uses_forget_locked(cca, stream, block);
    // First, so that the limits are those of the counters that the free tests.
    cca__hit_count_pending(pool, -1, -(int64_t)block->size);
    int64_t slack;
    if (!stream->special && block->flags == CCA__BLOCK_IN_TABLE &&
        cca__hit_free_to_front(cca, pool, number, &slack))
        return __builtin_expect(slack < 0, 0) && !cca__stats_raise_locked(stream);
    bool over_limit = false;
    cca__pool_free_locked(cca, pool, number, &over_limit);
    return over_limit;
}

void cca__free_complete_locked(struct cca *cca, struct cca__stream *stream, uint32_t number,
                               bool *over_limit) {
    if (complete_free_locked(cca, stream, number)) *over_limit = true;
}

// Returns the stream whose lock is still held; NULL: none. A stream that passed a limit meets the
// others at once, under the events lock: their locks come later in the order.
static struct cca__stream *complete_frees(struct cca *cca, const struct finished *finished) {
    struct cca__stream *locked = NULL;
    *finished->end = 0;
    for (uint32_t number = finished->first, next; number != 0; number = next) {
        struct cca__block *const block = cca__block_at(cca, number);
        struct cca__stream *const stream = cca__stream_at(cca, cca__block_pool(block) / 2);
        next = block->link[0];
        if (stream != locked) {
            if (locked != NULL) cca__lock_release(&locked->lock);
            cca__lock_take(&stream->lock);
            locked = stream;
        }
        if (!complete_free_locked(cca, stream, number)) continue;
        cca__lock_release(&stream->lock);
        cca__stats_meet(stream);
        locked = NULL;
    }
    return locked;
}

// The same off the hot path.
static void complete_all_frees(struct cca *cca, const struct finished *finished) {
    *finished->end = 0;
    for (uint32_t number = finished->first, next; number != 0; number = next) {
        const struct cca__block *const block = cca__block_at(cca, number);
        struct cca__stream *const stream = cca__stream_at(cca, cca__block_pool(block) / 2);
        bool over_limit = false;
        next = block->link[0];
        cca__lock_take(&stream->lock);
        cca__free_complete_locked(cca, stream, number, &over_limit);
        cca__lock_release(&stream->lock);
        if (over_limit) cca__stats_meet(stream);
    }
}

//------------------------------------------------------------------------------------------------
// Polling.

// As cca__event_query for an ANSWER of cudaEventQuery, which the runtime may remember.
static inline enum base_status answered(const struct cca__device *device, cudaError_t answer,
                                        bool *is_complete) {
    *is_complete = answer == cudaSuccess;
    return answer == cudaSuccess || answer == cudaErrorNotReady
               ? BASE_OK
               : cca__cuda_failed(answer, "cudaEventQuery on device %d", device->ordinal);
}

// After an event of the queue could not be asked. One that was recorded into a capture, which the
// allocator was not told of, never completes: once its stream is captured no more it is recorded
// anew. The caller hears of the error all the same.
static APART void record_again_locked(struct cca__event_queue *queue, size_t index) {
    struct cca__stream *const user =
        (struct cca__stream *)(void *)((char *)queue - offsetof(struct cca__stream, queue));
    char sentence[BASE_STATUS_MESSAGE_SIZE];
    enum cca__caller caller;
    if (strstr(base_status_message(), "cudaErrorCapturedEvent") == NULL) return;
    snprintf(sentence, sizeof sentence, "%s", base_status_message());
    if (cca__stream_caller(user->handle, &caller) == BASE_OK && caller == CCA__OUTSIDE)
        (void)cudaEventRecord(cca__event_queue_at(queue, index)->event, user->handle);
    (void)cudaGetLastError();
    (void)base_status_set(BASE_CUDA, "%s", sentence);
}

enum base_status cca__event_query(const struct cca__device *device, cudaEvent_t event,
                                  bool *is_complete) {
    const enum base_status status = answered(device, cudaEventQuery(event), is_complete);
    if (status == BASE_OK && !*is_complete) (void)cudaGetLastError();
    return status;
}

// Looks behind an unfinished front, where the last poll left off; at the end it begins anew.
static APART enum base_status poll_behind_locked(struct cca__device *device,
                                                 struct cca__event_queue *queue,
                                                 struct finished *finished) {
    if (queue->next_behind == 0 || queue->next_behind >= queue->count) queue->next_behind = 1;
    for (int asked = 0; asked < CCA__SKIPPED_MAX && queue->next_behind < queue->count; ++asked) {
        const size_t index = queue->next_behind;
        bool is_complete;
        const enum base_status status =
            cca__event_query(device, cca__event_queue_at(queue, index)->event, &is_complete);
        if (status != BASE_OK) return status;
        if (is_complete)
            finish_event_locked(device, cca__event_queue_remove(queue, index), finished);
        else
            ++queue->next_behind;
    }
    return BASE_OK;
}

// What a poll finds. Events that are not complete the runtime remembers as an error, to be cleared
// once for all queues.
struct poll {
    struct finished finished;
    bool unfinished;
};

// The end of a queue's poll at a first event that could not be asked or, with x_skip_stuck, is
// unfinished.
static APART enum base_status poll_stopped_locked(struct cca__device *device,
                                                  struct cca__event_queue *queue,
                                                  cudaError_t answer, struct poll *poll) {
    bool is_complete;
    const enum base_status status = answered(device, answer, &is_complete);
    if (status != BASE_OK) {
        record_again_locked(queue, 0);
        return status;
    }
    poll->unfinished = true;
    return poll_behind_locked(device, queue, &poll->finished);
}

static inline enum base_status poll_queue_locked(struct cca__device *device,
                                                 struct cca__event_queue *queue, bool skips,
                                                 struct poll *poll) {
    while (queue->count != 0) {
        const cudaError_t answer = cudaEventQuery(queue->entries[queue->first].event);
        if (answer == cudaSuccess) {
            finish_event_locked(device, cca__event_queue_pop(queue), &poll->finished);
        } else if (answer == cudaErrorNotReady && !skips) {
            poll->unfinished = true;
            break;
        } else {
            return poll_stopped_locked(device, queue, answer, poll);
        }
    }
    return BASE_OK;
}

// Polls the queues that blocks of STREAM may wait in, and forgets those that became empty.
static APART enum base_status poll_own_locked(struct cca__stream *stream, struct poll *poll) {
    struct cca__device *const device = stream->device;
    const uint64_t waits_for = atomic_load_explicit(&stream->waits_for, memory_order_relaxed);
    const bool skips = device->owner->config.own.skip_stuck;
    uint64_t left = 0;
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < device->stream_count; ++index) {
        struct cca__stream *const user = device->by_handle[index];
        if ((waits_for & cca__stream_bit(user)) == 0) continue;
        if (status == BASE_OK) status = poll_queue_locked(device, &user->queue, skips, poll);
        if (user->queue.count > 0) left |= cca__stream_bit(user);
    }
    atomic_store_explicit(&stream->waits_for, left, memory_order_relaxed);
    return status;
}

static inline enum base_status poll_all_locked(struct cca__device *device, struct poll *poll) {
    const bool skips = device->owner->config.own.skip_stuck;
    struct cca__stream *const *const end = device->by_handle + device->stream_count;
    for (struct cca__stream *const *each = device->by_handle; each < end; ++each) {
        const enum base_status status = poll_queue_locked(device, &(*each)->queue, skips, poll);
        if (__builtin_expect(status != BASE_OK, 0)) return status;
    }
    return BASE_OK;
}

// *LOCKED: the stream whose lock is still held; NULL: none.
static inline enum base_status poll_locked(struct cca__stream *stream, bool polls_own,
                                           struct cca__stream **locked) {
    struct cca__device *const device = stream->device;
    struct poll poll;
    struct cca__relaxed relaxed;
    enum base_status status = cca__relaxed_begin_beside(device, &relaxed);
    *locked = NULL;
    if (status != BASE_OK) return status;
    poll.unfinished = false;
    finished_begin(&poll.finished);
    status = __builtin_expect(polls_own, 0) ? poll_own_locked(stream, &poll)
                                            : poll_all_locked(device, &poll);
    cca__relaxed_end(&relaxed);
    if (poll.unfinished) (void)cudaGetLastError();
    *locked = complete_frees(device->owner, &poll.finished);
    return status;
}

struct cca__polled cca__poll_for(struct cca__stream *stream, bool waits) {
    struct cca__device *const device = stream->device;
    struct cca__stream *locked;
    const bool polls_own = atomic_load_explicit(&device->polls_own, memory_order_relaxed);
    if (polls_own && atomic_load_explicit(&stream->waits_for, memory_order_relaxed) == 0)
        return (struct cca__polled){BASE_OK, CCA__POLLED};
    if (waits)
        cca__lock_take(&device->events_lock);
    else if (!cca__lock_try(&device->events_lock))
        return (struct cca__polled){BASE_OK, CCA__POLL_REFUSED};
    struct cca__polled polled = {poll_locked(stream, polls_own, &locked), CCA__POLLED};
    if (polled.status == BASE_OK && locked == stream && !cca__lock_is_mutex())
        polled.outcome = CCA__POLLED_AND_LOCKED;
    else if (locked != NULL)
        cca__lock_release(&locked->lock);
    cca__lock_release(&device->events_lock);
    return polled;
}

enum base_status cca__poll_pending(struct cca__stream *stream) {
    const struct cca__polled polled = cca__poll_for(stream, true);
    if (polled.outcome == CCA__POLLED_AND_LOCKED) cca__lock_release(&stream->lock);
    return polled.status;
}

//------------------------------------------------------------------------------------------------
// Waiting.

// Whether the front of the queue is an event that was pushed before sequence END.
static bool front_is_before(const struct cca__event_queue *queue, uint32_t end) {
    return queue->count > 0 && (int32_t)(cca__event_queue_at(queue, 0)->sequence - end) < 0;
}

enum base_status cca__event_wait_locked(struct cca__device *device, struct cca__event_queue *queue,
                                        size_t index) {
    const struct cca__queued_event entry = *cca__event_queue_at(queue, index);
    struct cca__relaxed relaxed;
    enum base_status status = cca__relaxed_begin_beside(device, &relaxed);
    if (status != BASE_OK) return status;
    cca__lock_release(&device->events_lock);
    const cudaError_t error = cudaEventSynchronize(entry.event);
    cca__lock_take(&device->events_lock);
    cca__relaxed_end(&relaxed);
    if (error != cudaSuccess)
        status = cca__cuda_failed(error, "cudaEventSynchronize on device %d", device->ordinal);
    // A poll of another thread may have seen it first.
    for (index = 0; index < queue->count; ++index) {
        if (cca__event_queue_at(queue, index)->sequence != entry.sequence) continue;
        if (status != BASE_OK) {
            record_again_locked(queue, index);
            break;
        }
        struct finished finished;
        finished_begin(&finished);
        finish_event_locked(device, cca__event_queue_remove(queue, index), &finished);
        complete_all_frees(device->owner, &finished);
        break;
    }
    return status;
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
    if (cca__is_deferring(device)) status = cca__deferred_flush(device, NULL, true);
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
    if (cca__is_deferring(device)) status = cca__deferred_flush(device, NULL, true);
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

void cca__forget_private(struct cca__device *device, const struct cca__private_pool *pool) {
    struct finished finished;
    finished_begin(&finished);
    cca__lock_take(&device->events_lock);
    for (size_t stream = 0; stream < device->stream_count; ++stream) {
        struct cca__event_queue *const queue = &device->by_handle[stream]->queue;
        for (size_t index;
             (index = find_event_of(device->owner, queue, queue->pushed, pool)) < queue->count;)
            finish_event_locked(device, cca__event_queue_remove(queue, index), &finished);
    }
    complete_all_frees(device->owner, &finished);
    cca__lock_release(&device->events_lock);
}
