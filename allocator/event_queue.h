// The events of one stream that pending frees wait for, oldest first: a ring that grows. Guarded by
// the device's events lock.
#ifndef TIDEMARK_ALLOCATOR_EVENT_QUEUE_H
#define TIDEMARK_ALLOCATOR_EVENT_QUEUE_H

#include "base/check.h"
#include "base/status.h"

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

struct cca__queued_event {
    cudaEvent_t event;
    uint32_t block;
    uint32_t sequence; // rises by one with each event of the queue, and wraps
};

struct cca__event_queue {
    struct cca__queued_event *entries;
    size_t first, count, capacity; // capacity: a power of two, or 0
    size_t next_behind;            // x_skip_stuck: where to look on behind an unfinished front
    uint32_t pushed;               // sequence of the next event
};

enum base_status cca__event_queue_grow(struct cca__event_queue *queue) BASE_MUST_USE;

// Room for one more event. BASE_HOST_MEMORY.
BASE_MUST_USE static inline enum base_status
cca__event_queue_reserve(struct cca__event_queue *queue) {
    return __builtin_expect(queue->count == queue->capacity, 0) ? cca__event_queue_grow(queue)
                                                                : BASE_OK;
}

// The INDEX-th event from the front.
static inline struct cca__queued_event *cca__event_queue_at(const struct cca__event_queue *queue,
                                                            size_t index) {
    return &queue->entries[(queue->first + index) & (queue->capacity - 1)];
}

static inline void cca__event_queue_push(struct cca__event_queue *queue, cudaEvent_t event,
                                         uint32_t block) {
    *cca__event_queue_at(queue, queue->count++) =
        (struct cca__queued_event){.event = event, .block = block, .sequence = queue->pushed++};
}

// Takes the event pushed last back.
static inline cudaEvent_t cca__event_queue_unpush(struct cca__event_queue *queue) {
    --queue->pushed;
    return cca__event_queue_at(queue, --queue->count)->event;
}

static inline struct cca__queued_event cca__event_queue_pop(struct cca__event_queue *queue) {
    const struct cca__queued_event front = queue->entries[queue->first];
    queue->first = (queue->first + 1) & (queue->capacity - 1);
    --queue->count;
    if (queue->next_behind > 0) --queue->next_behind;
    return front;
}

// Takes one out of the middle; what is before it moves up. Costs as many moves.
static inline struct cca__queued_event cca__event_queue_remove(struct cca__event_queue *queue,
                                                               size_t index) {
    const struct cca__queued_event removed = *cca__event_queue_at(queue, index);
    for (size_t place = index; place > 0; --place)
        *cca__event_queue_at(queue, place) = *cca__event_queue_at(queue, place - 1);
    queue->first = (queue->first + 1) & (queue->capacity - 1);
    --queue->count;
    if (queue->next_behind > index) --queue->next_behind;
    return removed;
}

#endif
