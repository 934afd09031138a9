// Requests in a capture, and the ends of marks and scopes: see deferral.h.
#include "allocator/deferral_internal.h"

#include "allocator/array.h"
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
        if (captures->walks[index].capture == capture) return &captures->walks[index];
    return NULL;
}

// Of the stream HANDLE; POOL counts where it is the first of the capture.
static enum base_status note_walk(struct cca__captures *captures, unsigned long long capture,
                                  cudaStream_t handle, struct allocator_pool_id pool) {
    const struct cca__captured_stream *const first = find_walk(captures, capture);
    for (size_t index = 0; index < captures->walk_count; ++index)
        if (captures->walks[index].capture == capture && captures->walks[index].stream == handle)
            return BASE_OK;
    const struct cca__captured_stream walk = {
        .capture = capture, .stream = handle, .pool = first != NULL ? first->pool : pool};
    if (captures->walk_count == captures->walk_capacity) {
        struct cca__captured_stream *const more = cca__array_grow(
            captures->walks, &captures->walk_capacity, sizeof *more, 8, "captured streams");
        if (more == NULL) return BASE_HOST_MEMORY;
        captures->walks = more;
    }
    captures->walks[captures->walk_count++] = walk;
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
static enum base_status route(struct cca__stream *home, unsigned long long capture,
                              struct allocator_pool_id *id) {
    const struct cca__known_capture known = {.is_known = true, .id = capture};
    cca__lock_take(&home->lock);
    const struct cca__private_pool *const pool =
        cca__pools_route(&home->device->pools, home->handle, known, &home->lock);
    cca__lock_release(&home->lock);
    if (pool == NULL)
        return base_status_set(BASE_INVALID_VALUE,
                               "no scope of a private pool accepts stream %p, which capture %llu "
                               "captures: open one before the capture (PyTorch: c10::Error "
                               "INTERNAL ASSERT could not find graph pool)",
                               (void *)home->handle, capture);
    *id = pool->id;
    return BASE_OK;
}

static enum base_status look_with_markers(struct cca__stream *home,
                                          const struct cca__capture_state *state,
                                          const uint64_t **tokens, size_t *count) {
    struct cca__device *const device = home->device;
    cudaStream_t *const handles = malloc((device->stream_count + 1) * sizeof(cudaStream_t));
    if (handles == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu streams",
                               device->stream_count);
    size_t handle_count = 0;
    for (size_t index = 0; index < device->stream_count; ++index)
        if (device->by_handle[index]->private_pool == NULL)
            handles[handle_count++] = device->by_handle[index]->handle;
    const enum base_status status = cca__markers_look(cca__markers_of(device), home->handle, state,
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

static size_t guard_count(const struct cca__captures *captures) {
    return atomic_load_explicit(&captures->guard_count, memory_order_relaxed);
}

static enum base_status look_as(struct cca__stream *home, enum cca__reuse_form form,
                                const struct cca__capture_state *state) {
    struct cca__device *const device = home->device;
    const uint64_t *tokens;
    size_t count;
    const enum base_status status =
        form == CCA__FORM_MARKERS
            ? look_with_markers(home, state, &tokens, &count)
            : cca__reuse_look(cca__reuse_of(device), home->handle, state, &tokens, &count);
    if (status == BASE_OK) take_proven_locked(device, tokens, count);
    return status;
}

// Both forms may be at work: guards are always of the present one. STATE is that of the stream, and
// goes with the first form's questions.
static enum base_status look_locked(struct cca__stream *home, enum cca__reuse_form form,
                                    struct cca__capture_state *state) {
    struct cca__device *const device = home->device;
    const struct cca__captures *const captures = &device->captures;
    enum base_status status = BASE_OK;
    if (form == CCA__FORM_MARKERS && captures->deferred_count > 0) {
        status = look_as(home, CCA__FORM_MARKERS, state);
        if (status == BASE_OK && guard_count(captures) > 0)
            status = cca__capture_state_read(home->handle, state);
    }
    // Without anything that waits nothing need be known; but PyTorch's knowledge can be stale.
    const bool waits = captures->deferred_count + guard_count(captures) > 0;
    if (status != BASE_OK || !(waits || cca__reuse_of(device)->keeps_stale)) return status;
    if (form != CCA__FORM_TERMINALS && guard_count(captures) == 0) return BASE_OK;
    if (guard_count(captures) > 0)
        status = cca__guards_watch_locked(home, cca__reuse_of(device), state);
    return status == BASE_OK ? look_as(home, CCA__FORM_TERMINALS, state) : status;
}

static void lock_captures(struct cca__device *device, enum cca__reuse_form form) {
    if (form == CCA__FORM_MARKERS) cca__lock_take(&device->events_lock); // it looks at all streams
    cca__lock_take(&device->captures_lock);
}
static void unlock_captures(struct cca__device *device, enum cca__reuse_form form) {
    cca__lock_release(&device->captures_lock);
    if (form == CCA__FORM_MARKERS) cca__lock_release(&device->events_lock);
}

// Reads the stream's state, with the locks that keep it valid. With the present form also the pool
// of the capture must be known, and where requests go is asked without a lock.
static enum base_status lock_with_state(struct cca__stream *home, enum cca__reuse_form form,
                                        struct cca__capture_state *state) {
    struct cca__device *const device = home->device;
    struct allocator_pool_id pool = {0};
    unsigned long long routed = 0;
    enum base_status status = BASE_OK;
    for (;;) {
        lock_captures(device, form);
        if (status == BASE_OK) status = cca__capture_state_read(home->handle, state);
        if (status != BASE_OK || form != CCA__FORM_TERMINALS || state->terminal_count == 0)
            return status;
        if (state->capture == routed || find_walk(&device->captures, state->capture) != NULL)
            return note_walk(&device->captures, state->capture, home->handle, pool);
        unlock_captures(device, form);
        routed = state->capture;
        status = route(home, routed, &pool);
    }
}

static enum base_status look(struct cca__stream *home, enum cca__reuse_form form,
                             enum cudaStreamCaptureStatus *said, struct cca__known_capture *known) {
    struct cca__device *const device = home->device;
    struct cca__capture_state state = {0};
    enum base_status status = lock_with_state(home, form, &state);
    if (status == BASE_OK) {
        *said = state.status;
        known->id = state.capture;
        atomic_store_explicit(&home->was_captured, state.is_active, memory_order_relaxed);
        if (state.terminal_count > 0) status = look_locked(home, form, &state);
    }
    unlock_captures(device, form);
    return status;
}

enum base_status cca__captures_enter(struct cca__stream *home, bool *inside,
                                     struct cca__known_capture *known) {
    struct cca__device *const device = home->device;
    const enum cca__reuse_form form = cca__reuse_form(device);
    // Without a look at the graph the state tells nothing more than what any question does.
    const bool is_expected = form != CCA__FORM_NONE && cca__expects_capture(home);
    enum cca__caller caller = CCA__INSIDE;
    enum base_status status = BASE_OK;
    if (is_expected)
        *known = (struct cca__known_capture){.is_known = true};
    else
        status = cca__caller_of_request(device, home->handle, &caller, known);
    if (status == BASE_OK && caller == CCA__INSIDE &&
        (form != CCA__FORM_NONE || guard_count(&device->captures) > 0)) {
        enum cudaStreamCaptureStatus said = cudaStreamCaptureStatusNone;
        status = look(home, form, &said, known);
        if (is_expected) caller = cca__caller_of_status(said);
    }
    if (status != BASE_OK) return status;
    *inside = caller == CCA__INSIDE;
    if (caller == CCA__INVALIDATED) return cca__caller_is_invalidated();
    if (caller == CCA__INSIDE || !cca__is_deferring(device)) return BASE_OK;
    return cca__deferred_flush(device, NULL, true);
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
    if (!device->owner->config.own.torch_faults) return BASE_OK;
    cca__lock_take(&device->captures_lock);
    for (size_t index = 0; index < captures->walk_count && status == BASE_OK; ++index) {
        enum cca__caller caller = CCA__OUTSIDE;
        if (!cca__pool_id_equal(captures->walks[index].pool, id)) continue;
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
    if (pool != NULL && cca__reuse_form(device) != CCA__FORM_NONE &&
        cca->config.torch_minor >= 12 && cca__is_deferring(device))
        status = cca__deferred_flush(device, pool, false);
    cca__lock_release(&device->growth_lock);
    return status;
}

void cca__captures_deinit(struct cca__captures *captures) {
    cca__reuse_deinit(&captures->reuse);
    cca__markers_deinit(&captures->markers);
    free(captures->walks);
}
