// Asking and awaiting the events that pending frees wait for (stream_use.h), which completes them.
//
// Events wait in one queue a stream and are polled at allocations, in the order of the stream's
// handles (of their creation, on the simulator); a queue is looked at up to its first unfinished
// event.
//
// Two settings of our own change what a request looks at, never what is safe: x_poll:own leaves out
// the queues that no block of the request's stream waits in, x_skip_stuck looks behind an
// unfinished event, CCA__SKIPPED_MAX events a queue and poll.
#ifndef TIDEMARK_ALLOCATOR_EVENT_POLL_H
#define TIDEMARK_ALLOCATOR_EVENT_POLL_H

#include "allocator/core.h"

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

// The pending block becomes free. *over_limit as in cca__pool_free_locked. The stream's lock held.
void cca__free_complete_locked(struct cca *cca, struct cca__stream *stream, uint32_t number,
                               bool *over_limit);

#endif
