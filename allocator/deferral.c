// See deferral.h.
#include "allocator/deferral_internal.h"

#include "allocator/capture_caller.h"
#include "allocator/capture_guard.h"
#include "allocator/device.h"
#include "allocator/pool.h"
#include "allocator/stream_use.h"
#include "allocator/torch_captures.h"

#include <inttypes.h>
#include <stdlib.h>

//------------------------------------------------------------------------------------------------
// The list. Its order is that of the frees.

static void append(struct cca *cca, struct cca__captures *captures, uint32_t number) {
    struct cca__block *const block = cca__block_at(cca, number);
    block->link[1] = captures->last_deferred;
    block->link[2] = 0;
    if (captures->last_deferred != 0)
        cca__block_at(cca, captures->last_deferred)->link[2] = number;
    else
        captures->first_deferred = number;
    captures->last_deferred = number;
    ++captures->deferred_count;
}

static void unlink_block(struct cca *cca, struct cca__captures *captures, uint32_t number) {
    const struct cca__block *const block = cca__block_at(cca, number);
    if (captures->last_kept == number)
        captures->last_kept = block->link[1];
    if (block->link[1] != 0)
        cca__block_at(cca, block->link[1])->link[2] = block->link[2];
    else
        captures->first_deferred = block->link[2];
    if (block->link[2] != 0)
        cca__block_at(cca, block->link[2])->link[1] = block->link[1];
    else
        captures->last_deferred = block->link[1];
    --captures->deferred_count;
}

static struct cca__stream *stream_of(struct cca *cca, const struct cca__block *block) {
    return cca__pool_at(cca, cca__block_pool(block))->stream;
}

void cca__deferred_complete(struct cca__device *device, uint32_t number) {
    struct cca *const cca = device->owner;
    struct cca__stream *const stream = stream_of(cca, cca__block_at(cca, number));
    bool over_limit = false;
    unlink_block(cca, &device->captures, number);
    cca__lock_take(&stream->lock);
    cca__free_complete_locked(cca, stream, number, &over_limit);
    cca__lock_release(&stream->lock);
    if (over_limit)
        cca__stats_meet(stream);
}

//------------------------------------------------------------------------------------------------
// The streams of a block.

struct block_streams {
    cudaStream_t *handles; // its own, then those of the uses that were asked for, each once
    size_t count, capacity;
    cudaStream_t few[32];
};

static void streams_deinit(struct block_streams *streams) {
    if (streams->handles != streams->few)
        free(streams->handles);
}

static enum base_status streams_push(struct block_streams *streams, cudaStream_t handle) {
    for (size_t index = 0; index < streams->count; ++index)
        if (streams->handles[index] == handle)
            return BASE_OK;
    if (streams->count == streams->capacity) {
        cudaStream_t *const more = malloc(2 * streams->capacity * sizeof *more);
        if (more == NULL)
            return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu streams",
                                   2 * streams->capacity);
        for (size_t index = 0; index < streams->count; ++index)
            more[index] = streams->handles[index];
        streams_deinit(streams);
        streams->handles = more;
        streams->capacity *= 2;
    }
    streams->handles[streams->count++] = handle;
    return BASE_OK;
}

enum which_uses { ALL_USES, CAPTURED_USES, OTHER_USES };

static bool is_asked_for(uint16_t use, enum which_uses which) {
    return which == ALL_USES || (use % 2 != 0) == (which == CAPTURED_USES);
}

static bool has_uses(const struct cca *cca, const struct cca__block *block, enum which_uses which) {
    for (uint32_t number = block->uses; number != 0;
         number = cca__use_record_at(cca, number)->next) {
        const struct cca__use_record *const record = cca__use_record_at(cca, number);
        for (uint16_t index = 0; index < record->count; ++index)
            if (is_asked_for(record->pools[index], which))
                return true;
    }
    return false;
}

static enum base_status streams_init(struct cca *cca, const struct cca__block *block,
                                     enum which_uses which, struct block_streams *streams) {
    streams->handles = streams->few;
    streams->capacity = sizeof streams->few / sizeof streams->few[0];
    streams->count = 0;
    enum base_status status = streams_push(streams, stream_of(cca, block)->handle);
    for (uint32_t number = block->uses; number != 0 && status == BASE_OK;
         number = cca__use_record_at(cca, number)->next) {
        const struct cca__use_record *const record = cca__use_record_at(cca, number);
        for (uint16_t index = 0; index < record->count && status == BASE_OK; ++index)
            if (is_asked_for(record->pools[index], which))
                status =
                    streams_push(streams, cca__stream_at(cca, record->pools[index] / 2)->handle);
    }
    if (status != BASE_OK)
        streams_deinit(streams);
    return status;
}

// Whether one of the streams, from FIRST on, is captured.
static enum base_status find_captured(const struct block_streams *streams, size_t first,
                                      bool *found) {
    enum base_status status = BASE_OK;
    *found = false;
    for (size_t index = first; index < streams->count && status == BASE_OK && !*found; ++index) {
        enum cca__caller caller = CCA__OUTSIDE;
        status = cca__stream_caller(streams->handles[index], &caller);
        *found = caller != CCA__OUTSIDE;
    }
    return status;
}

//------------------------------------------------------------------------------------------------
// The policy.

// In 2.9 the key meant the first form.
enum cca__reuse_form cca__reuse_form(const struct cca *cca) {
    const struct cca__config *const config = &cca->config;
    switch (config->own.capture_reuse) {
    case CCA__CAPTURE_REUSE_MARKERS:
    case CCA__CAPTURE_REUSE_MARKERS_GRAPH:
        return CCA__FORM_MARKERS;
    case CCA__CAPTURE_REUSE_TERMINALS:
        return CCA__FORM_TERMINALS;
    case CCA__CAPTURE_REUSE_TORCH:
        break;
    }
    if (!config->graph_capture_record_stream_reuse)
        return CCA__FORM_NONE;
    return config->torch_minor <= 9 ? CCA__FORM_MARKERS : CCA__FORM_TERMINALS;
}

struct cca__capture_markers *cca__markers_of(struct cca__device *device) {
    struct cca__capture_markers *const markers = &device->captures.markers;
    markers->rule = device->owner->config.own.capture_reuse == CCA__CAPTURE_REUSE_MARKERS_GRAPH
                        ? CCA__MARKERS_GRAPH_WIDE
                        : CCA__MARKERS_PER_STREAM;
    return markers;
}

struct cca__capture_reuse *cca__reuse_of(struct cca__device *device) {
    device->captures.reuse.keeps_stale = device->owner->config.own.torch_faults;
    return &device->captures.reuse;
}

// Asks the policy to watch a block that is being freed. A use from outside of captures is not in
// the graph, so the graph proves nothing about it; PyTorch does not look.
static enum base_status watch_locked(struct cca__device *device, uint32_t number) {
    struct cca *const cca = device->owner;
    struct cca__block *const block = cca__block_at(cca, number);
    const enum cca__reuse_form form = cca__reuse_form(cca);
    block->link[0] = 0;
    if (form == CCA__FORM_NONE)
        return BASE_OK;
    if (!cca->config.own.torch_faults && has_uses(cca, block, OTHER_USES))
        return BASE_OK;
    struct block_streams streams;
    enum base_status status = streams_init(cca, block, ALL_USES, &streams);
    if (status != BASE_OK)
        return status;
    bool is_marked;
    status = form == CCA__FORM_MARKERS
                 ? cca__markers_defer(cca__markers_of(device), streams.handles, streams.count,
                                      number, &is_marked)
                 : cca__reuse_defer(cca__reuse_of(device), streams.handles, streams.count, number,
                                    &block->link[0]);
    streams_deinit(&streams);
    return status;
}

static void unwatch_locked(struct cca__device *device, uint32_t number) {
    struct cca__block *const block = cca__block_at(device->owner, number);
    cca__reuse_drop(&device->captures.reuse, block->link[0] & ~CCA__DEFERRED_IN_PART);
    block->link[0] &= CCA__DEFERRED_IN_PART;
    cca__markers_drop(&device->captures.markers, number);
}

//------------------------------------------------------------------------------------------------
// Freeing.

// Whether the free of a block is made in a capture. Not only where the current stream says so: no
// event can be recorded on a stream that is captured. PyTorch does it (x_torch_faults).
static enum base_status is_in_capture(struct cca__stream *stream, const struct cca__block *block,
                                      enum cca__caller *caller) {
    struct cca__device *const device = stream->device;
    struct cca *const cca = device->owner;
    enum base_status status = cca__caller_of(device, stream->handle, caller);
    if (status != BASE_OK || *caller != CCA__OUTSIDE)
        return status;
    if (cca->config.own.torch_faults && cca->current_stream.current != NULL)
        return BASE_OK;
    struct block_streams streams;
    bool is_captured;
    status = streams_init(cca, block, ALL_USES, &streams);
    if (status != BASE_OK)
        return status;
    status = find_captured(&streams, 1, &is_captured);
    streams_deinit(&streams);
    if (status == BASE_OK && is_captured)
        *caller = CCA__INSIDE;
    return status;
}

enum base_status cca__defer_locked(struct cca__stream *stream, uint32_t number, bool *is_deferred) {
    struct cca__device *const device = stream->device;
    struct cca *const cca = device->owner;
    struct cca__block *const block = cca__block_at(cca, number);
    enum cca__caller caller;
    *is_deferred = false;
    enum base_status status = is_in_capture(stream, block, &caller);
    if (status != BASE_OK || caller == CCA__OUTSIDE)
        return status;
    if (cca->config.own.torch_faults) {
        status = cca__torch_free_in_capture(stream, number, caller == CCA__INVALIDATED,
                                            cca__reuse_form(cca) == CCA__FORM_TERMINALS);
        *is_deferred = status == BASE_INVALID_VALUE; // or lost
        if (status != BASE_OK)
            return status;
    }
    cca__lock_take(&device->captures_lock);
    status = watch_locked(device, number);
    if (status == BASE_OK) {
        append(cca, &device->captures, number);
        if (block->size >= cca->config.sizes.max_split_size)
            cca__count_oversize(device, -1);
        if (cca->watched)
            cca__free_observe(stream, number);
        atomic_fetch_or_explicit(&device->pending_events, CCA__DEFERRED, memory_order_relaxed);
        *is_deferred = true;
    }
    cca__lock_release(&device->captures_lock);
    return status;
}

//------------------------------------------------------------------------------------------------
// Flushing.

// What a block still needs of captures when it is flushed.
struct need {
    bool must_wait; // a use from outside is of a stream that is captured now
    bool is_in_use; // by a capture in flight
};

static enum base_status find_need(struct cca__device *device, const struct cca__block *block,
                                  struct need *need) {
    struct cca *const cca = device->owner;
    struct block_streams streams;
    *need = (struct need){0};
    if (device->captures.marks.marked == 0 || cca->config.own.torch_faults)
        return BASE_OK;
    need->is_in_use = (block->link[0] & CCA__DEFERRED_IN_PART) != 0;
    enum base_status status = streams_init(cca, block, OTHER_USES, &streams);
    if (status != BASE_OK)
        return status;
    status = find_captured(&streams, 1, &need->must_wait);
    streams_deinit(&streams);
    if (status != BASE_OK || need->must_wait || need->is_in_use)
        return status;
    status = streams_init(cca, block, CAPTURED_USES, &streams);
    if (status != BASE_OK)
        return status;
    status = find_captured(&streams, 0, &need->is_in_use);
    streams_deinit(&streams);
    return status;
}

static bool use_has(const struct cca *cca, const struct cca__block *block, uint16_t use) {
    for (uint32_t number = block->uses; number != 0;
         number = cca__use_record_at(cca, number)->next) {
        const struct cca__use_record *const record = cca__use_record_at(cca, number);
        for (uint16_t index = 0; index < record->count; ++index)
            if (record->pools[index] == use)
                return true;
    }
    return false;
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
                                               use_has(cca, block, (uint16_t)(use | 1)));
            if (!goes)
                record->pools[kept++] = use;
        }
        record->count = kept;
    }
}

// Leaves a block's own stream, and of the others those that are captured: a stream leaves a capture
// only with its end, so the rest has no work in one that is under way.
static enum base_status keep_captured(struct block_streams *streams) {
    enum base_status status = BASE_OK;
    size_t kept = 1;
    for (size_t index = 1; index < streams->count && status == BASE_OK; ++index) {
        enum cca__caller caller = CCA__OUTSIDE;
        status = cca__stream_caller(streams->handles[index], &caller);
        if (caller != CCA__OUTSIDE)
            streams->handles[kept++] = streams->handles[index];
    }
    streams->count = kept;
    return status;
}

// Puts a guard behind for a block that is about to be free. What came before on its streams is the
// latest that can still use it. Work in a part of the graph is on none of them: nothing proves it.
static enum base_status guard_locked(struct cca__device *device, uint32_t number) {
    struct cca *const cca = device->owner;
    const struct cca__block *const block = cca__block_at(cca, number);
    struct cca__stream *const stream = stream_of(cca, block);
    struct block_streams streams;
    struct cca__guard guard = {
        .address = block->address, .size = block->size, .captures = device->captures.marks.marked};
    cca__lock_take(&stream->lock);
    enum base_status status = cca__guards_reserve_locked(stream, &guard.number);
    cca__lock_release(&stream->lock);
    if (status == BASE_OK)
        status = streams_init(cca, block, CAPTURED_USES, &streams);
    if (status != BASE_OK)
        return status;
    status = keep_captured(&streams);
    if (status == BASE_OK && (block->link[0] & CCA__DEFERRED_IN_PART) == 0)
        status = cca__reuse_defer(cca__reuse_of(device), streams.handles, streams.count,
                                  cca__guard_token(stream, guard.number), &guard.ticket);
    streams_deinit(&streams);
    if (status != BASE_OK)
        return status;
    cca__lock_take(&stream->lock);
    cca__guards_add_locked(stream, &guard);
    cca__lock_release(&stream->lock);
    return BASE_OK;
}

// events_lock and captures_lock held. A block that must wait stays.
static enum base_status flush_one(struct cca__device *device, uint32_t number) {
    struct cca *const cca = device->owner;
    struct cca__block *const block = cca__block_at(cca, number);
    struct cca__stream *const stream = stream_of(cca, block);
    struct need need;
    enum base_status status = find_need(device, block, &need);
    // An expandable segment's free blocks grow and go in pages; a guard would not do there.
    if (status != BASE_OK || need.must_wait || (need.is_in_use && cca__block_is_expandable(block)))
        return status;
    if (need.is_in_use)
        status = guard_locked(device, number);
    if (status != BASE_OK)
        return status;
    unwatch_locked(device, number);
    drop_captured_uses(cca, block);
    if (has_uses(cca, block, ALL_USES)) {
        status = cca__events_record_locked(stream, number);
        if (status != BASE_OK)
            return status;
        unlink_block(cca, &device->captures, number);
    } else {
        cca__deferred_complete(device, number);
    }
    return BASE_OK;
}

void cca__captures_tell_locked(struct cca__device *device) {
    uint64_t bits = 0;
    const struct cca__captures *const captures = &device->captures;
    if (captures->marks.marked != 0)
        bits |= CCA__MARKED;
    if (captures->deferred_count + captures->guard_count != 0)
        bits |= CCA__DEFERRED;
    if (cca__scopes_are_captures(device->owner) && captures->scope_is_open)
        bits |= CCA__SCOPED;
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
        if (is_all || stream_of(cca, block)->private_pool == pool)
            status = flush_one(device, number);
    }
    // What is left has to wait for an end of a capture.
    if (is_all && status == BASE_OK)
        captures->last_kept = captures->last_deferred;
    cca__captures_tell_locked(device);
    cca__lock_release(&device->captures_lock);
    cca__lock_release(&device->events_lock);
    return status;
}

enum base_status cca__deferred_settle(struct cca__device *device,
                                      const struct cca__private_pool *pool) {
    struct cca *const cca = device->owner;
    enum base_status status = BASE_OK;
    if (cca__is_deferring(device))
        status = cca__deferred_flush(device, NULL, true);
    cca__lock_take(&device->captures_lock);
    bool is_left = atomic_load_explicit(&device->captures.stuck_count, memory_order_relaxed) > 0;
    for (uint32_t number = device->captures.first_deferred; number != 0 && !is_left;
         number = cca__block_at(cca, number)->link[2])
        is_left = stream_of(cca, cca__block_at(cca, number))->private_pool == pool;
    cca__lock_release(&device->captures_lock);
    if (status != BASE_OK || !is_left)
        return status;
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
