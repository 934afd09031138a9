// What happens when no cached block fits: one attempt after the other, until one gives memory or
// all have failed.
#ifndef TIDEMARK_ALLOCATOR_LADDER_H
#define TIDEMARK_ALLOCATOR_LADDER_H

#include "allocator/core.h"

// Serves a request that no cached block fits. No lock held; takes the device's growth lock.
enum base_status cca__grow(struct cca__stream *stream, size_t rounded, size_t requested,
                           void **pointer) BASE_MUST_USE;

// The same for the blocks of a private pool. *pointer becomes NULL if STREAM is OWNER's no more.
enum base_status cca__grow_private(struct cca__stream *stream, struct cca__private_pool *owner,
                                   size_t rounded, size_t requested, void **pointer) BASE_MUST_USE;

#endif
