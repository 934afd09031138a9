// Which cached segments go back to the device, and when: all of them, a few oversize ones, those
// that were not asked for lately.
//
// growth_lock held; no stream is locked during a device call.
#ifndef TIDEMARK_ALLOCATOR_RELEASE_H
#define TIDEMARK_ALLOCATOR_RELEASE_H

#include "allocator/core.h"

// Returns every segment that is wholly free.
enum base_status cca__release_cached_locked(struct cca__device *device) BASE_MUST_USE;
// The same for one private pool that is freeable; it is gone with its last segment.
enum base_status cca__release_private_locked(struct cca__device *device,
                                             struct cca__private_pool *pool) BASE_MUST_USE;
// allocator_empty_cache of one device: waits for all pending frees first. In a capture it waits for
// nothing, and only private pools that are freeable go.
enum base_status cca__empty_device_locked(struct cca__device *device) BASE_MUST_USE;

// Under max_split_size: releases a block that the request could not use for its size, or several of
// at least max_split_size. *ENOUGH: they add up to what the request needs.
enum base_status cca__release_available_locked(struct cca__pool *pool, size_t rounded,
                                               bool *enough) BASE_MUST_USE;

// Above garbage_collection_threshold: releases whole segments of the large pools, oldest first.
enum base_status cca__collect_garbage_locked(struct cca__device *device) BASE_MUST_USE;

#endif
