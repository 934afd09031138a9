// Frees made in a capture, of blocks that other streams use: they are *deferred* until the graph
// proves that the block may be used again, or the capture is over. The rules are in captures.h.
//
// A deferred block is pending, in the device's list, and keeps its uses, each marked as one of a
// capture or not. Whether it is proven says the policy (capture_reuse.h, capture_markers.h), which
// knows blocks by their numbers only.
//
// Outside of captures everything deferred is flushed, as in PyTorch, also what a capture in flight
// deferred. Such a block is free for the books, but a *guard* stays behind: a range of addresses
// that is not handed out until the graph proves it or the capture ends.
//
// What is kept of captures is guarded by captures_lock. It is held while the policy asks the driver
// for nodes and edges: only requests in a capture need it, whose answer depends on them.
#ifndef TIDEMARK_ALLOCATOR_DEFERRAL_H
#define TIDEMARK_ALLOCATOR_DEFERRAL_H

#include "allocator/core.h"

// A deferred block's link[0] is its ticket of capture_reuse.h, with this bit where it was freed in
// a capture that became a part of one which is still under way.
#define CCA__DEFERRED_IN_PART ((uint32_t)1 << 31)

enum cca__reuse_form { CCA__FORM_NONE, CCA__FORM_TERMINALS, CCA__FORM_MARKERS };
static inline enum cca__reuse_form cca__reuse_form(const struct cca__device *device) {
    return (enum cca__reuse_form)atomic_load_explicit(&device->captures.reuse_form,
                                                      memory_order_relaxed);
}
// After the settings changed; the locks of all streams held.
void cca__captures_update_form_locked(struct cca__device *device);

// Before a request of HOME, a default object: in a capture, what the graph proves completes, and
// *inside is true; outside everything is flushed. *known is what the driver said of its stream.
// BASE_INVALID_VALUE: the capture was invalidated, or nothing routes its requests. No lock held.
enum base_status cca__captures_enter(struct cca__stream *home, bool *inside,
                                     struct cca__known_capture *known) BASE_MUST_USE;

// Of a free of a pending block of STREAM: defers it if the call is made in a capture. Tells and
// counts it then; with x_torch_faults also where it fails (torch_captures.h). events_lock held.
enum base_status cca__defer_locked(struct cca__stream *stream, uint32_t number,
                                   bool *is_deferred) BASE_MUST_USE;

// Flushes what is deferred; of one private pool only, unless IS_ALL. What cannot be flushed stays
// deferred. growth_lock may be held, no later one.
enum base_status cca__deferred_flush(struct cca__device *device,
                                     const struct cca__private_pool *pool,
                                     bool is_all) BASE_MUST_USE;

// Flushes everything for a call that wants nothing of the pool deferred: BASE_INVALID_VALUE if a
// capture under way still needs something.
enum base_status cca__deferred_settle(struct cca__device *device,
                                      const struct cca__private_pool *pool) BASE_MUST_USE;

// After the scope of a pool ended, or in its place: BASE_INVALID_VALUE if x_torch_faults and
// streams whose requests it routed are still captured. No lock held.
enum base_status cca__captures_check_scope(struct cca__device *device,
                                           struct allocator_pool_id id) BASE_MUST_USE;
enum base_status cca__captures_end_scope(struct cca__device *device,
                                         struct allocator_pool_id id) BASE_MUST_USE;

// After marks or scopes changed. growth_lock and events_lock held.
void cca__captures_update_locked(struct cca__device *device);

// The mark of a capture went: forgets its graph. events_lock and captures_lock held.
void cca__captures_forget_locked(struct cca__device *device, const struct cca_capture *capture,
                                 uint64_t bit);

void cca__captures_deinit(struct cca__captures *captures);

// The record of STREAM as a use of a block, one of a capture or not.
static inline uint16_t cca__use_of(const struct cca__stream *user, bool is_captured) {
    return (uint16_t)(user->pools[CCA__POOL_SMALL].number | (is_captured ? 1 : 0));
}

#endif
