// See event_queue.h.
#include "allocator/event_queue.h"

#include <stdlib.h>

#define CAPACITY_FIRST 16

enum base_status cca__event_queue_grow(struct cca__event_queue *queue) {
    const size_t capacity = queue->capacity == 0 ? CAPACITY_FIRST : 2 * queue->capacity;
    struct cca__queued_event *const entries = malloc(capacity * sizeof *entries);
    if (entries == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu events", capacity);
    for (size_t index = 0; index < queue->count; ++index)
        entries[index] = *cca__event_queue_at(queue, index);
    free(queue->entries);
    queue->entries = entries;
    queue->first = 0;
    queue->capacity = capacity;
    return BASE_OK;
}
