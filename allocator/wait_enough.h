// x_wait:enough: a request that finds no memory waits for the pending frees that it needs, not for
// all of them.
//
// PyTorch waits for every event of the device before it fails (pt#171771), though one block may do.
// Here only those are waited for that make room: blocks of the request's own pool that lie
// together, with what is free between them, in at least as many bytes as it needs.
#ifndef TIDEMARK_ALLOCATOR_WAIT_ENOUGH_H
#define TIDEMARK_ALLOCATOR_WAIT_ENOUGH_H

#include "allocator/core.h"

// Waits for one event: of the run of free and pending blocks that serves a request of ROUNDED bytes
// with the fewest blocks to wait for. *waited: there was such a run; the caller searches again, and
// calls again if that did not do. Each call ends one wait, so calls come to an end.
//
// Cost beside the wait: a walk over the device's events, and over the run of each that is a block
// of the pool. growth_lock held.
enum base_status cca__wait_enough_locked(struct cca__pool *pool, size_t rounded,
                                         bool *waited) BASE_MUST_USE;

#endif
