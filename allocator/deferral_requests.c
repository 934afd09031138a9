// Requests in a capture, and the ends of marks and scopes: see deferral.h.
#include "allocator/deferral_internal.h"

#include "allocator/capture_caller.h"
#include "allocator/capture_graph.h"
#include "allocator/capture_guard.h"
#include "allocator/device.h"
#include "allocator/pool.h"

#include <stdlib.h>

// What is known of the walks through the graphs: PyTorch ties what it visited of a capture to the
// pool that the first request was routed to.
struct cca__captured_stream {
    unsigned long long capture;
    cudaStream_t stream;
    struct allocator_pool_id pool;
};

static const struct cca__captured_stream *find_walk(const struct cca__captures *captures,
                                                    unsigned long long capture) {
    for (size_t index = 0; index < captures->walk_count; ++index)
        if (captures->walks[index].capture == capture)
            return &captures->walks[index];
    return NULL;
}

static enum base_status walks_push(struct cca__captures *captures,
                                   const struct cca__captured_stream *walk) {
    for (size_t index = 0; index < captures->walk_count; ++index)
        if (captures->walks[index].capture == walk->capture &&
            captures->walks[index].stream == walk->stream)
            return BASE_OK;
    if (captures->walk_count == captures->walk_capacity) {
        const size_t capacity = captures->walk_capacity == 0 ? 8 : 2 * captures->walk_capacity;
        struct cca__captured_stream *const more = realloc(captures->walks, capacity * sizeof *more);
        if (more == NULL)
            return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu captured streams",
                                   capacity);
        captures->walks = more;
        captures->walk_capacity = capacity;
    }
    captures->walks[captures->walk_count++] = *walk;
    return BASE_OK;
}

static void walks_remove(struct cca__captures *captures, unsigned long long capture,
                         struct allocator_pool_id pool) {
    size_t kept = 0;
    for (size_t index = 0; index < captures->walk_count; ++index)
        if (captures->walks[index].capture != capture &&
            !cca__pool_id_equal(captures->walks[index].pool, pool))
            captures->walks[kept++] = captures->walks[index];
    captures->walk_count = kept;
}

// A capture whose requests go to no private pool would have its memory handed out to others while
// the graph lives.
static enum base_status note_walk_locked(struct cca__stream *home, unsigned long long capture) {
    struct cca__device *const device = home->device;
    const struct cca__captured_stream *const known = find_walk(&device->captures, capture);
    struct cca__captured_stream walk = {.capture = capture, .stream = home->handle};
    if (known != NULL) {
        walk.pool = known->pool;
        return walks_push(&device->captures, &walk);
    }
    cca__lock_take(&home->lock);
    const struct cca__private_pool *const pool = cca__pools_route(&device->pools, home->handle);
    if (pool != NULL)
        walk.pool = pool->id;
    cca__lock_release(&home->lock);
    if (pool != NULL)
        return walks_push(&device->captures, &walk);
    return base_status_set(BASE_INVALID_VALUE,
                           "no scope of a private pool accepts stream %p, which capture %llu "
                           "captures: open one before the capture (PyTorch: c10::Error INTERNAL "
                           "ASSERT could not find graph pool)",
                           (void *)home->handle, capture);
}

static enum base_status look_with_markers(struct cca__stream *home, const uint64_t **tokens,
                                          size_t *count) {
    struct cca__device *const device = home->device;
    cudaStream_t *const handles = malloc((device->stream_count + 1) * sizeof(cudaStream_t));
    if (handles == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu streams",
                               device->stream_count);
    size_t handle_count = 0;
    for (size_t index = 0; index < device->stream_count; ++index)
        if (device->by_handle[index]->private_pool == NULL)
            handles[handle_count++] = device->by_handle[index]->handle;
    const enum base_status status = cca__markers_look(cca__markers_of(device), home->handle,
                                                      handles, handle_count, tokens, count);
    free(handles);
    return status;
}

static void take_proven_locked(struct cca__device *device, const uint64_t *tokens, size_t count) {
    struct cca *const cca = device->owner;
    for (size_t index = 0; index < count; ++index) {
        const uint64_t token = tokens[index];
        if ((token & CCA__TOKEN_OF_GUARD) != 0) {
            struct cca__stream *const stream = cca__stream_at(cca, cca__guard_stream_number(token));
            cca__lock_take(&stream->lock);
            cca__guards_remove_locked(stream, (uint32_t)token);
            cca__lock_release(&stream->lock);
        } else {
            cca__deferred_complete(device, (uint32_t)token);
        }
    }
}

// Both forms may be at work: guards are always of the present one.
static enum base_status look_locked(struct cca__stream *home) {
    struct cca__device *const device = home->device;
    struct cca__captures *const captures = &device->captures;
    const enum cca__reuse_form form = cca__reuse_form(device->owner);
    const uint64_t *tokens;
    size_t count;
    if (form == CCA__FORM_NONE && captures->guard_count == 0)
        return BASE_OK;
    struct cca__capture_state state;
    enum base_status status = cca__capture_state_read(home->handle, &state);
    if (status != BASE_OK || !state.is_active || state.terminal_count == 0)
        return status;
    if (form == CCA__FORM_TERMINALS)
        status = note_walk_locked(home, state.capture);
    if (status == BASE_OK && form == CCA__FORM_MARKERS && captures->deferred_count > 0) {
        status = look_with_markers(home, &tokens, &count);
        if (status == BASE_OK)
            take_proven_locked(device, tokens, count);
    }
    // Without anything that waits nothing need be known; but PyTorch's knowledge can be stale.
    const bool waits = captures->deferred_count + captures->guard_count > 0;
    if (status != BASE_OK || !(waits || cca__reuse_of(device)->keeps_stale))
        return status;
    if (form == CCA__FORM_MARKERS && captures->guard_count == 0)
        return BASE_OK;
    status = cca__reuse_look(cca__reuse_of(device), home->handle, &tokens, &count);
    if (status == BASE_OK)
        take_proven_locked(device, tokens, count);
    return status;
}

static enum base_status enter_inside(struct cca__stream *home) {
    struct cca__device *const device = home->device;
    const bool needs_streams = cca__reuse_form(device->owner) == CCA__FORM_MARKERS;
    if (needs_streams)
        cca__lock_take(&device->events_lock);
    cca__lock_take(&device->captures_lock);
    const enum base_status status = look_locked(home);
    cca__lock_release(&device->captures_lock);
    if (needs_streams)
        cca__lock_release(&device->events_lock);
    return status;
}

enum base_status cca__captures_enter(struct cca__stream *home, bool *inside) {
    struct cca__device *const device = home->device;
    enum cca__caller caller;
    enum base_status status = cca__caller_of(device, home->handle, &caller);
    if (status != BASE_OK)
        return status;
    *inside = caller == CCA__INSIDE;
    if (caller == CCA__INVALIDATED)
        return cca__caller_is_invalidated();
    if (caller == CCA__INSIDE)
        return enter_inside(home);
    return cca__is_deferring(device) ? cca__deferred_flush(device, NULL, true) : BASE_OK;
}

//------------------------------------------------------------------------------------------------
// The ends of marks and scopes.

void cca__captures_forget_locked(struct cca__device *device, const struct cca_capture *capture,
                                 uint64_t bit) {
    struct cca *const cca = device->owner;
    struct cca__captures *const captures = &device->captures;
    if (capture->parent != 0)
        for (uint32_t number = captures->first_deferred; number != 0;
             number = cca__block_at(cca, number)->link[2])
            cca__block_at(cca, number)->link[0] |= CCA__DEFERRED_IN_PART;
    captures->last_kept = 0;
    cca__reuse_end(&captures->reuse, capture->id);
    walks_remove(captures, capture->id, (struct allocator_pool_id){0});
    for (size_t index = 0; index < device->stream_count; ++index) {
        struct cca__stream *const stream = device->by_handle[index];
        cca__lock_take(&stream->lock);
        cca__guards_end_capture_locked(stream, bit);
        cca__lock_release(&stream->lock);
    }
}

enum base_status cca__captures_check_scope(struct cca__device *device,
                                           struct allocator_pool_id id) {
    const struct cca__captures *const captures = &device->captures;
    enum base_status status = BASE_OK;
    if (!device->owner->config.own.torch_faults)
        return BASE_OK;
    cca__lock_take(&device->captures_lock);
    for (size_t index = 0; index < captures->walk_count && status == BASE_OK; ++index) {
        enum cca__caller caller = CCA__OUTSIDE;
        if (!cca__pool_id_equal(captures->walks[index].pool, id))
            continue;
        status = cca__stream_caller(captures->walks[index].stream, &caller);
        if (status == BASE_OK && caller == CCA__INSIDE)
            status = base_status_set(BASE_INVALID_VALUE,
                                     "stream %p is still captured (PyTorch: c10::Error INTERNAL "
                                     "ASSERT stream is still capturing)",
                                     (void *)captures->walks[index].stream);
    }
    cca__lock_release(&device->captures_lock);
    return status;
}

enum base_status cca__captures_end_scope(struct cca__device *device, struct allocator_pool_id id) {
    const struct cca *const cca = device->owner;
    cca__lock_take(&device->growth_lock);
    cca__lock_take(&device->events_lock);
    cca__captures_update_locked(device);
    cca__lock_take(&device->captures_lock);
    walks_remove(&device->captures, 0, id);
    cca__lock_release(&device->captures_lock);
    cca__lock_release(&device->events_lock);
    const struct cca__private_pool *const pool = cca__pools_find(&device->pools, id);
    enum base_status status = BASE_OK;
    if (pool != NULL && cca__reuse_form(cca) != CCA__FORM_NONE && cca->config.torch_minor >= 12 &&
        cca__is_deferring(device))
        status = cca__deferred_flush(device, pool, false);
    cca__lock_release(&device->growth_lock);
    return status;
}

void cca__captures_deinit(struct cca__captures *captures) {
    cca__reuse_deinit(&captures->reuse);
    cca__markers_deinit(&captures->markers);
    free(captures->walks);
}
