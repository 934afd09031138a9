// Blocks used by several streams: which streams use a block (record_stream), and the events that
// tell when their work is done.
//
// A free of such a block records an event on every stream that uses it and puts the block aside;
// it becomes available when all of them are complete. Events wait in one queue a stream and are
// polled at allocations, in the order of the stream's handles (of their creation, on the
// simulator); a queue is looked at up to its first unfinished event.
//
// Two settings of our own change what a request looks at, never what is safe: x_poll:own leaves out
// the queues that no block of the request's stream waits in, x_skip_stuck looks behind an
// unfinished event, CCA__SKIPPED_MAX events a queue and poll.
#ifndef TIDEMARK_ALLOCATOR_STREAM_USE_H
#define TIDEMARK_ALLOCATOR_STREAM_USE_H

#include "allocator/core.h"

// The streams that use a block, by the number of their small pool, plus 1 for a use in a capture:
// each once of both kinds. In the arena use_records,
// named by cca__block.uses.
#define CCA__USES_PER_RECORD 26
struct cca__use_record {
    uint32_t next;   // more streams, or unused records; 0
    uint16_t count;  // of pools below
    uint16_t events; // of the first record: not complete yet. Written under the events lock
    uint16_t pools[CCA__USES_PER_RECORD];
    // Of the first record, while pending frees are counted (pending_frees.c), else 0, in unused
    // records too: its events that are complete, whether one lies behind an unfinished one, whether
    // the block was added. Guarded by the events lock.
    uint16_t complete;
    bool is_behind, is_counted;
};
_Static_assert(sizeof(struct cca__use_record) == 64, "a record of uses fills one cache line");
#define CCA__USE_RECORDS_MAX ((uint32_t)1 << 26)

static inline struct cca__use_record *cca__use_record_at(const struct cca *cca, uint32_t number) {
    return (struct cca__use_record *)(void *)cca->use_records.base + number;
}

// Adds a use to a block of STREAM, whose lock is held: the small pool's number of the stream that
// uses it, plus 1 for a use in a capture (deferral.h).
enum base_status cca__use_add_locked(struct cca *cca, struct cca__stream *stream,
                                     struct cca__block *block, uint16_t use) BASE_MUST_USE;

// The same where it is the block's first use and the stream has an unused record; else false.
static inline bool cca__use_add_first_locked(struct cca *cca, struct cca__stream *stream,
                                             struct cca__block *block, uint16_t use) {
    const uint32_t number = stream->unused_uses;
    if (block->uses != 0 || number == 0) return false;
    struct cca__use_record *const record = cca__use_record_at(cca, number);
    stream->unused_uses = record->next;
    record->next = 0;
    record->count = 1;
    record->pools[0] = use;
    block->uses = number;
    return true;
}

// Forgets a block's streams; they are none afterwards. The same lock held. The records stay with
// the stream for its next blocks.
void cca__uses_forget_locked(struct cca *cca, struct cca__stream *stream, struct cca__block *block);
// Gives the stream's unused records back. Its lock held.
void cca__uses_trim_locked(struct cca *cca, struct cca__stream *stream);

// Frees a block with uses, handed out at POINTER: records the events and lets it wait. The lock of
// its stream is held, and released here. If an event cannot be recorded the block stays with the
// caller.
enum base_status cca__free_used_locked(struct cca__stream *stream, void *pointer,
                                       uint32_t number) BASE_MUST_USE;

// Its steps, for frees that were put off (deferral.h). Records the events of a pending block's uses
// and queues them; on failure none is. The events lock held.
enum base_status cca__events_record_locked(struct cca__stream *stream,
                                           uint32_t number) BASE_MUST_USE;
// The same while captures may be under way. *is_captured: none is queued, since a stream of the
// uses is captured; it may have joined after it was last asked.
enum base_status cca__events_record_beside_locked(struct cca__stream *stream, uint32_t number,
                                                  bool *is_captured) BASE_MUST_USE;
// Tells of the free of a pending block. The events lock held: nobody completes it meanwhile.
void cca__free_observe(struct cca__stream *stream, uint32_t number);
// The pending block becomes free. *over_limit as in cca__pool_free_locked. The stream's lock held.
void cca__free_complete_locked(struct cca *cca, struct cca__stream *stream, uint32_t number,
                               bool *over_limit);

// How many events behind an unfinished one x_skip_stuck asks about at a time.
#define CCA__SKIPPED_MAX 16

// Completes the frees whose events are done, for a request of STREAM. No lock held. An event that
// cannot be asked stays in its queue.
enum base_status cca__poll_pending(struct cca__stream *stream) BASE_MUST_USE;
// The same, but unless WAITS not while another thread polls, records or asks.
enum cca__poll_outcome {
    CCA__POLL_REFUSED, // by such a thread
    CCA__POLLED,
    CCA__POLLED_AND_LOCKED, // and the stream's lock is held as by cca__lock_take_at_once
};
struct cca__polled {
    enum base_status status;
    enum cca__poll_outcome outcome;
};
struct cca__polled cca__poll_for(struct cca__stream *stream, bool waits) BASE_MUST_USE;

// Events of the device's own, for one use each. The events lock held.
enum base_status cca__event_take_locked(struct cca__device *device,
                                        cudaEvent_t *event) BASE_MUST_USE;
void cca__event_keep_locked(struct cca__device *device, cudaEvent_t event);

// Whether an event is complete; the events lock held.
enum base_status cca__event_query(const struct cca__device *device, cudaEvent_t event,
                                  bool *is_complete) BASE_MUST_USE;

// Waits for the INDEX-th event of QUEUE and completes it. The events lock held, but not during the
// wait, so that polling goes on.
enum base_status cca__event_wait_locked(struct cca__device *device, struct cca__event_queue *queue,
                                        size_t index) BASE_MUST_USE;

// Waits for all events and completes all frees. growth_lock held.
enum base_status cca__synchronize_pending(struct cca__device *device) BASE_MUST_USE;
// The same for the blocks of one private pool.
enum base_status cca__synchronize_private(struct cca__device *device,
                                          const struct cca__private_pool *pool) BASE_MUST_USE;
// Completes its frees without a wait for their events (x_torch_faults).
void cca__forget_private(struct cca__device *device, const struct cca__private_pool *pool);

#endif
