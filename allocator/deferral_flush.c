// Flushing: what was deferred becomes free, or waits for events, as outside of captures. See
// deferral.h.
#include "allocator/deferral_internal.h"

#include "allocator/capture_caller.h"
#include "allocator/capture_guard.h"
#include "allocator/deferral_streams.h"
#include "allocator/device.h"
#include "allocator/stream_use.h"

#include <inttypes.h>

// What a block still needs of captures when it is flushed.
struct need {
    bool must_wait; // a use from outside is of a stream that is captured now
    bool is_in_use; // by a capture in flight
};

static enum base_status find_need(struct cca__device *device, const struct cca__block *block,
                                  struct need *need) {
    struct cca *const cca = device->owner;
    struct cca__block_streams streams;
    *need = (struct need){0};
    if (device->captures.marks.marked == 0 || cca->config.own.torch_faults) return BASE_OK;
    need->is_in_use = (block->link[0] & CCA__DEFERRED_IN_PART) != 0;
    enum base_status status = cca__block_streams_init(cca, block, CCA__OTHER_USES, &streams);
    if (status != BASE_OK) return status;
    status = cca__block_streams_find_captured(&streams, 1, &need->must_wait);
    cca__block_streams_deinit(&streams);
    if (status != BASE_OK || need->must_wait || need->is_in_use) return status;
    status = cca__block_streams_init(cca, block, CCA__CAPTURED_USES, &streams);
    if (status != BASE_OK) return status;
    status = cca__block_streams_find_captured(&streams, 0, &need->is_in_use);
    cca__block_streams_deinit(&streams);
    return status;
}

// Takes the uses of captures out of a block's records; with x_torch_faults the others of the same
// streams as well.
static void drop_captured_uses(struct cca *cca, const struct cca__block *block) {
    for (uint32_t number = block->uses; number != 0;
         number = cca__use_record_at(cca, number)->next) {
        struct cca__use_record *const record = cca__use_record_at(cca, number);
        uint16_t kept = 0;
        for (uint16_t index = 0; index < record->count; ++index) {
            const uint16_t use = record->pools[index];
            const bool goes = use % 2 != 0 || (cca->config.own.torch_faults &&
                                               cca__has_use(cca, block, (uint16_t)(use | 1)));
            if (!goes) record->pools[kept++] = use;
        }
        record->count = kept;
    }
}

// Puts a guard behind for a block that is about to be free. What came before on its streams is the
// latest that can still use it: they are asked later, and what comes on them meanwhile counts too.
// Work in a part of the graph is on none of them: nothing proves it.
static enum base_status guard_locked(struct cca__device *device, uint32_t number) {
    struct cca *const cca = device->owner;
    const struct cca__block *const block = cca__block_at(cca, number);
    struct cca__stream *const stream = cca__stream_of_block(cca, block);
    struct cca__block_streams streams;
    struct cca__guard guard = {
        .address = block->address, .size = block->size, .captures = device->captures.marks.marked};
    cca__lock_take(&stream->lock);
    enum base_status status = cca__guards_reserve_locked(stream, &guard.number);
    cca__lock_release(&stream->lock);
    if (status == BASE_OK)
        status = cca__block_streams_init(cca, block, CCA__CAPTURED_USES, &streams);
    if (status != BASE_OK) return status;
    bool some_left = false;
    status = cca__block_streams_keep_captured(&streams, &some_left);
    const bool is_in_part = (block->link[0] & CCA__DEFERRED_IN_PART) != 0 ||
                            (some_left && device->captures.marks.wholes != 0);
    if (status == BASE_OK && !is_in_part)
        status = cca__guard_set_streams(&guard, streams.handles, streams.count);
    cca__block_streams_deinit(&streams);
    if (status != BASE_OK) return status;
    cca__lock_take(&stream->lock);
    cca__guards_add_locked(stream, &guard);
    cca__lock_release(&stream->lock);
    return BASE_OK;
}

// events_lock and captures_lock held. A block that must wait stays.
static enum base_status flush_one(struct cca__device *device, uint32_t number) {
    struct cca *const cca = device->owner;
    struct cca__block *const block = cca__block_at(cca, number);
    struct cca__stream *const stream = cca__stream_of_block(cca, block);
    struct need need;
    enum base_status status = find_need(device, block, &need);
    if (status != BASE_OK || need.must_wait) return status;
    if (need.is_in_use) status = guard_locked(device, number);
    if (status != BASE_OK) return status;
    cca__deferred_unwatch(device, number);
    drop_captured_uses(cca, block);
    if (cca__has_uses(cca, block, CCA__ALL_USES)) {
        bool must_wait;
        status = cca__events_record_beside_locked(stream, number, &must_wait);
        if (status != BASE_OK || must_wait) return status;
        cca__deferred_unlink(cca, &device->captures, number);
    } else {
        cca__deferred_complete(device, number);
    }
    return BASE_OK;
}

void cca__captures_tell_locked(struct cca__device *device) {
    uint64_t bits = 0;
    const struct cca__captures *const captures = &device->captures;
    if (captures->marks.marked != 0) bits |= CCA__MARKED;
    if (captures->deferred_count + captures->guard_count != 0) bits |= CCA__DEFERRED;
    if (cca__scopes_are_captures(device->owner) && captures->scope_is_open) bits |= CCA__SCOPED;
    // Requests read it without a lock. events_lock orders writers.
    const uint64_t word = atomic_load_explicit(&device->pending_events, memory_order_relaxed);
    atomic_store_explicit(&device->pending_events, (word & CCA__EVENTS_MASK) | bits,
                          memory_order_relaxed);
}

enum base_status cca__deferred_flush(struct cca__device *device,
                                     const struct cca__private_pool *pool, bool is_all) {
    struct cca *const cca = device->owner;
    enum base_status status = BASE_OK;
    cca__lock_take(&device->events_lock);
    cca__lock_take(&device->captures_lock);
    struct cca__captures *const captures = &device->captures;
    uint32_t number = captures->first_deferred;
    if (is_all && captures->last_kept != 0)
        number = cca__block_at(cca, captures->last_kept)->link[2];
    for (uint32_t next; number != 0 && status == BASE_OK; number = next) {
        const struct cca__block *const block = cca__block_at(cca, number);
        next = block->link[2];
        if (is_all || cca__stream_of_block(cca, block)->private_pool == pool)
            status = flush_one(device, number);
    }
    // What is left has to wait for an end of a capture.
    if (is_all && status == BASE_OK) captures->last_kept = captures->last_deferred;
    cca__captures_tell_locked(device);
    cca__lock_release(&device->captures_lock);
    cca__lock_release(&device->events_lock);
    return status;
}

enum base_status cca__deferred_settle(struct cca__device *device,
                                      const struct cca__private_pool *pool) {
    struct cca *const cca = device->owner;
    enum base_status status = BASE_OK;
    if (cca__is_deferring(device)) status = cca__deferred_flush(device, NULL, true);
    cca__lock_take(&device->captures_lock);
    bool is_left = atomic_load_explicit(&device->captures.stuck_count, memory_order_relaxed) > 0;
    for (uint32_t number = device->captures.first_deferred; number != 0 && !is_left;
         number = cca__block_at(cca, number)->link[2])
        is_left = cca__stream_of_block(cca, cca__block_at(cca, number))->private_pool == pool;
    cca__lock_release(&device->captures_lock);
    if (status != BASE_OK || !is_left) return status;
    return base_status_set(BASE_INVALID_VALUE,
                           "a block of private pool %" PRIu64 ".%" PRIu64
                           " was freed in a capture that is still under way",
                           pool->id.capture, pool->id.user);
}

void cca__captures_update_locked(struct cca__device *device) {
    cca__lock_take(&device->captures_lock);
    device->captures.scope_is_open = device->pools.newest != NULL;
    cca__captures_tell_locked(device);
    cca__lock_release(&device->captures_lock);
}
