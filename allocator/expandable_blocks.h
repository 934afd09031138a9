// Blocks of expandable segments: best fit, growing into unmapped addresses, giving pages back.
//
// A segment of this kind is one range of addresses for a stream and a pool, as large as the device
// and more. Its blocks tile the whole range: handed out, free, pending or *unmapped* (addresses
// without memory, in the pool's set `unmapped`). A request that no free block fits maps pages next
// to a free block, so memory that was cut up once is whole again when its neighbours are freed.
//
// How it differs from a segment of cudaMalloc: whatever is left of a block becomes a block of its
// own, from 512 B on; nothing counts as inactive split; what goes back to the device are the whole
// pages inside a free block, and the ends stay behind as free blocks.
//
// Blocks that a growth or a release works on are *claimed*: neither free nor in an index, so that
// hits go on while the driver is called with no stream locked.
#ifndef TIDEMARK_ALLOCATOR_EXPANDABLE_BLOCKS_H
#define TIDEMARK_ALLOCATOR_EXPANDABLE_BLOCKS_H

#include "allocator/core.h"

// Whether a pool takes its memory as expandable segments now. The stream's lock or growth_lock
// held. This is the one place that decides it: a pool with an allocator of its own never does.
static inline bool cca__pool_expands(const struct cca *cca, const struct cca__pool *pool) {
    return cca->config.expandable_segments && !pool->device->cannot_expand && !pool->has_raw;
}

// Best fit while blocks of expandable segments may be about, 0 if there is none: among those that
// fit, the one with less room to grow; while the setting is off, none of them. The stream's lock
// held.
uint32_t cca__expandable_find_locked(struct cca *cca, struct cca__pool *pool, size_t rounded);

// Hands out the front of a free block of an expandable segment. The stream's lock held.
enum base_status cca__expandable_hand_out_locked(struct cca *cca, struct cca__pool *pool,
                                                 uint32_t number, size_t rounded, size_t requested,
                                                 bool in_index, bool *over_limit) BASE_MUST_USE;

// The same for the front SIZE bytes of a block in the index, whatever the settings say about splits.
enum base_status cca__expandable_hand_out_front_locked(struct cca *cca, struct cca__pool *pool,
                                                       uint32_t number, size_t size,
                                                       bool *over_limit) BASE_MUST_USE;

// The end of a free, as cca__pool_free_locked. The stream's lock held.
void cca__expandable_free_locked(struct cca *cca, struct cca__pool *pool, uint32_t number);

// Makes a claimed block of at least ROUNDED bytes: maps what a run of free and unmapped blocks
// lacks, or reserves another segment. BASE_OUT_OF_MEMORY, without a sentence, if the device has not
// enough (what could be mapped is free now) or no segment can be so large; *exceeded is the
// reserve in bytes then if one was configured, else 0. growth_lock held.
enum base_status cca__expandable_grow(struct cca__pool *pool, size_t rounded, uint32_t *number,
                                      size_t *exceeded) BASE_MUST_USE;
// Makes a claimed block free.
void cca__expandable_unclaim_locked(struct cca *cca, struct cca__pool *pool, uint32_t number);

// Unmaps the whole pages inside every free block of the pool; segments of which nothing is mapped
// any more go. growth_lock held.
enum base_status cca__expandable_release_pool(struct cca__pool *pool) BASE_MUST_USE;

#endif
