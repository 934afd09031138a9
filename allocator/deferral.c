// See deferral.h.
#include "allocator/deferral_internal.h"

#include "allocator/capture_caller.h"
#include "allocator/deferral_streams.h"
#include "allocator/device.h"
#include "allocator/event_poll.h"
#include "allocator/pool.h"
#include "allocator/stream_use.h"
#include "allocator/torch_captures.h"

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

void cca__deferred_unlink(struct cca *cca, struct cca__captures *captures, uint32_t number) {
    const struct cca__block *const block = cca__block_at(cca, number);
    if (captures->last_kept == number) captures->last_kept = block->link[1];
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

void cca__deferred_complete(struct cca__device *device, uint32_t number) {
    struct cca *const cca = device->owner;
    struct cca__stream *const stream = cca__stream_of_block(cca, cca__block_at(cca, number));
    bool over_limit = false;
    cca__deferred_unlink(cca, &device->captures, number);
    cca__lock_take(&stream->lock);
    cca__free_complete_locked(cca, stream, number, &over_limit);
    cca__lock_release(&stream->lock);
    if (over_limit) cca__stats_meet(stream);
}

//------------------------------------------------------------------------------------------------
// The policy.

// In 2.9 the key meant the first form.
static enum cca__reuse_form form_of(const struct cca__config *config) {
    switch (config->own.capture_reuse) {
    case CCA__CAPTURE_REUSE_MARKERS:
    case CCA__CAPTURE_REUSE_MARKERS_GRAPH:
        return CCA__FORM_MARKERS;
    case CCA__CAPTURE_REUSE_TERMINALS:
        return CCA__FORM_TERMINALS;
    case CCA__CAPTURE_REUSE_TORCH:
        break;
    }
    if (!config->graph_capture_record_stream_reuse) return CCA__FORM_NONE;
    return config->torch_minor <= 9 ? CCA__FORM_MARKERS : CCA__FORM_TERMINALS;
}

void cca__captures_update_form_locked(struct cca__device *device) {
    atomic_store_explicit(&device->captures.reuse_form, (int)form_of(&device->owner->config),
                          memory_order_relaxed);
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
// the graph, so the graph proves nothing about it; PyTorch does not look. STATE: of the block's own
// stream.
static enum base_status watch_locked(struct cca__device *device, uint32_t number,
                                     const struct cca__capture_state *state) {
    struct cca *const cca = device->owner;
    struct cca__block *const block = cca__block_at(cca, number);
    const enum cca__reuse_form form = cca__reuse_form(device);
    block->link[0] = 0;
    if (form == CCA__FORM_NONE) return BASE_OK;
    if (!cca->config.own.torch_faults && cca__has_uses(cca, block, CCA__OTHER_USES)) return BASE_OK;
    struct cca__block_streams streams;
    enum base_status status = cca__block_streams_init(cca, block, CCA__ALL_USES, &streams);
    if (status != BASE_OK) return status;
    bool is_marked;
    status = form == CCA__FORM_MARKERS
                 ? cca__markers_defer(cca__markers_of(device), state, streams.handles,
                                      streams.count, number, &is_marked)
                 : cca__reuse_defer(cca__reuse_of(device), state, streams.handles, streams.count,
                                    number, &block->link[0]);
    cca__block_streams_deinit(&streams);
    return status;
}

void cca__deferred_unwatch(struct cca__device *device, uint32_t number) {
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
    if (status != BASE_OK || *caller != CCA__OUTSIDE) return status;
    if (cca->config.own.torch_faults && cca->current_stream.current != NULL) return BASE_OK;
    struct cca__block_streams streams;
    bool is_captured;
    status = cca__block_streams_init(cca, block, CCA__ALL_USES, &streams);
    if (status != BASE_OK) return status;
    status = cca__block_streams_find_captured(&streams, 1, &is_captured);
    cca__block_streams_deinit(&streams);
    if (status == BASE_OK && is_captured) *caller = CCA__INSIDE;
    return status;
}

// captures_lock held.
static enum base_status put_off_locked(struct cca__stream *stream, uint32_t number,
                                       const struct cca__capture_state *state) {
    struct cca__device *const device = stream->device;
    struct cca *const cca = device->owner;
    const enum base_status status = watch_locked(device, number, state);
    if (status != BASE_OK) return status;
    append(cca, &device->captures, number);
    if (cca__block_at(cca, number)->size >= cca->config.sizes.max_split_size)
        cca__count_oversize(device, -1);
    if (cca->watched) cca__free_observe(stream, number);
    atomic_fetch_or_explicit(&device->pending_events, CCA__DEFERRED, memory_order_relaxed);
    return BASE_OK;
}

// Defers the block of a stream that is captured; else nothing happens. *is_captured.
static enum base_status defer_of_captured(struct cca__stream *stream, uint32_t number,
                                          bool *is_captured) {
    struct cca__device *const device = stream->device;
    struct cca__capture_state state;
    cca__lock_take(&device->captures_lock);
    enum base_status status = cca__capture_state_read(stream->handle, &state);
    *is_captured = status == BASE_OK && state.is_active;
    if (*is_captured) status = put_off_locked(stream, number, &state);
    cca__lock_release(&device->captures_lock);
    return status;
}

enum base_status cca__defer_locked(struct cca__stream *stream, uint32_t number, bool *is_deferred) {
    struct cca__device *const device = stream->device;
    struct cca *const cca = device->owner;
    const enum cca__reuse_form form = cca__reuse_form(device);
    enum base_status status = BASE_OK;
    bool is_captured = false;
    *is_deferred = false;
    if (form != CCA__FORM_NONE && cca__expects_capture(stream) && !cca->config.own.torch_faults)
        status = defer_of_captured(stream, number, &is_captured);
    *is_deferred = status == BASE_OK && is_captured;
    if (status != BASE_OK || is_captured) return status;
    enum cca__caller caller;
    status = is_in_capture(stream, cca__block_at(cca, number), &caller);
    if (status != BASE_OK || caller == CCA__OUTSIDE) return status;
    if (cca->config.own.torch_faults) {
        status = cca__torch_free_in_capture(stream, number, caller == CCA__INVALIDATED,
                                            form == CCA__FORM_TERMINALS);
        *is_deferred = status == BASE_INVALID_VALUE; // or lost
        if (status != BASE_OK) return status;
    }
    struct cca__capture_state state = {0};
    cca__lock_take(&device->captures_lock);
    if (form != CCA__FORM_NONE) status = cca__capture_state_read(stream->handle, &state);
    if (status == BASE_OK) status = put_off_locked(stream, number, &state);
    cca__lock_release(&device->captures_lock);
    *is_deferred = status == BASE_OK;
    return status;
}
