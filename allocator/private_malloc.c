// See private_malloc.h.
#include "allocator/private_malloc.h"

#include "allocator/device.h"
#include "allocator/event_poll.h"
#include "allocator/ladder.h"
#include "allocator/pool.h"

static enum base_status make_stream(struct cca__stream *home, struct cca__private_pool *pool,
                                    struct cca__stream **stream) {
    struct cca__device *const device = home->device;
    cca__lock_take(&device->owner->settings_lock);
    cca__lock_take(&device->growth_lock);
    cca__lock_take(&device->events_lock);
    const enum base_status status = cca__private_stream_get(home, pool, stream);
    cca__lock_release(&device->events_lock);
    cca__lock_release(&device->growth_lock);
    cca__lock_release(&device->owner->settings_lock);
    return status;
}

enum base_status cca__private_malloc(struct cca__stream *home, struct cca__private_pool *pool,
                                     struct cca__stream *stream, size_t size, void **pointer) {
    struct cca__device *const device = home->device;
    struct cca *const cca = device->owner;
    enum base_status status = BASE_OK;
    bool over_limit = false;
    *pointer = NULL;
    if (stream == NULL) status = make_stream(home, pool, &stream);
    // All queues were looked at for HOME, or, with x_poll:own, those of its own blocks.
    // Beside captures that was done or must not be.
    if (status == BASE_OK && atomic_load_explicit(&device->polls_own, memory_order_relaxed) &&
        !cca__is_beside_captures(device) &&
        atomic_load_explicit(&device->pending_events, memory_order_relaxed) != 0)
        status = cca__poll_pending(stream);
    if (status != BASE_OK) return status;
    cca__lock_take(&stream->lock);
    const bool is_there = stream->private_pool == pool;
    const size_t rounded = cca__round_size(&cca->config.sizes, size);
    if (is_there)
        status = cca__pool_serve_locked(
            cca, &stream->pools[rounded <= CCA_SMALL_LIMIT ? CCA__POOL_SMALL : CCA__POOL_LARGE],
            rounded, size, pointer, &over_limit);
    cca__lock_release(&stream->lock);
    if (over_limit) cca__stats_meet(stream);
    if (!is_there || status != BASE_OK || *pointer != NULL) return status;
    return cca__grow_private(stream, pool, rounded, size, pointer);
}
