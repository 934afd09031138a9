// See wait_enough.h.
#include "allocator/wait_enough.h"

#include "allocator/event_poll.h"
#include "allocator/expandable_blocks.h"
#include "allocator/pool.h"
#include "allocator/torch_faults.h"

// Neighbours that will be one free block when their events are complete.
struct run {
    size_t bytes;
    uint32_t pending_blocks;
};

static bool is_free_soon(const struct cca *cca, uint32_t number) {
    if (number == 0) return false;
    const uint8_t state = cca__block_at(cca, number)->state;
    return state == CCA__BLOCK_FREE ||
           (state == CCA__BLOCK_PENDING && !cca__block_is_gone(cca__block_at(cca, number)));
}

static struct run run_around(const struct cca *cca, uint32_t number) {
    struct run run = {0};
    while (is_free_soon(cca, cca__block_at(cca, number)->previous))
        number = cca__block_at(cca, number)->previous;
    for (; is_free_soon(cca, number); number = cca__block_at(cca, number)->next) {
        run.bytes += cca__block_at(cca, number)->size;
        run.pending_blocks += cca__block_at(cca, number)->state == CCA__BLOCK_PENDING;
    }
    return run;
}

// Whether the run would serve the request. The pool's stream locked.
static bool serves_locked(const struct cca__pool *pool, uint32_t number, struct run run,
                          size_t rounded) {
    const struct cca *const cca = pool->device->owner;
    const bool is_expandable = cca__block_is_expandable(cca__block_at(cca, number));
    return run.bytes >= rounded && (!is_expandable || cca__pool_expands(cca, pool)) &&
           !cca__pool_refuses(cca, is_expandable, run.bytes, rounded);
}

// Which event to wait for.
struct choice {
    struct cca__event_queue *queue; // NULL: none
    size_t index;
    uint32_t pending_blocks;
};

static void choose_locked(struct cca__pool *pool, struct cca__event_queue *queue, size_t rounded,
                          struct choice *choice) {
    struct cca *const cca = pool->device->owner;
    for (size_t index = 0; index < queue->count; ++index) {
        const uint32_t number = cca__event_queue_at(queue, index)->block;
        if (cca__block_pool(cca__block_at(cca, number)) != pool->number) continue;
        const struct run run = run_around(cca, number);
        if (!serves_locked(pool, number, run, rounded)) continue;
        if (choice->queue != NULL && run.pending_blocks >= choice->pending_blocks) continue;
        *choice = (struct choice){queue, index, run.pending_blocks};
    }
}

enum base_status cca__wait_enough_locked(struct cca__pool *pool, size_t rounded, bool *waited) {
    struct cca__device *const device = pool->device;
    struct choice choice = {0};
    enum base_status status = BASE_OK;
    cca__lock_take(&device->events_lock);
    cca__lock_take(&pool->stream->lock);
    for (size_t index = 0; index < device->stream_count; ++index)
        choose_locked(pool, &device->by_handle[index]->queue, rounded, &choice);
    cca__lock_release(&pool->stream->lock);
    *waited = choice.queue != NULL;
    if (*waited) status = cca__event_wait_locked(device, choice.queue, choice.index);
    cca__lock_release(&device->events_lock);
    return status;
}
