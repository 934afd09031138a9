// One segment's life: taken from the device by cudaMalloc, entered in the books with its one block,
// given back when that block is free and whole. Those of expandable segments are in
// expandable_blocks.h.
//
// All of it runs under the device's growth lock and makes device calls with no stream locked, so
// that hits of every stream go on meanwhile.
#ifndef TIDEMARK_ALLOCATOR_SEGMENT_H
#define TIDEMARK_ALLOCATOR_SEGMENT_H

#include "allocator/core.h"

// cudaMalloc, or the allocator of a private pool. BASE_OUT_OF_MEMORY, without a sentence, if it
// refuses. With release_lock_on_cudamalloc growth_lock is free during the call.
enum base_status cca__segment_take(const struct cca__pool *pool, size_t size,
                                   void **memory) BASE_MUST_USE;

// Makes a segment of MEMORY and hands its front out. MEMORY goes back to the device if that fails
// for want of host memory.
enum base_status cca__segment_add(struct cca__pool *pool, void *memory, size_t size, size_t rounded,
                                  size_t requested, void **pointer, bool *over_limit) BASE_MUST_USE;

// Gives memory of that pool back to where it came from. The current device is POOL's.
cudaError_t cca__segment_give_back(const struct cca__pool *pool, void *memory, size_t size);

// cudaFree of segments that a block is all of, and its statistics; the blocks are in no index. From
// FIRST on, linked by link[0], a few dozen at most, in this order; *next becomes the first one that
// is left, which is the one that failed if one does. The current device is POOL's. *released_bytes,
// if not NULL, grows.
enum base_status cca__segments_release(struct cca__pool *pool, uint32_t first, uint32_t *next,
                                       size_t *released_bytes) BASE_MUST_USE;

// Makes a segment that is on no stream the pool's, with the unused block NUMBER for all of it:
// free, not in the index yet. The stream's lock held.
void cca__segment_enter_locked(struct cca *cca, struct cca__pool *pool, uint32_t segment_number,
                               uint32_t number);

// Counts a segment of SIZE bytes as taken from the device (1) or given back (-1).
void cca__segment_count(struct cca__device *device, const struct cca__pool *pool, size_t size,
                        int amount);

// The stream's list of segments. The stream's lock held.
void cca__segment_link_locked(struct cca *cca, struct cca__stream *stream, uint32_t number);
void cca__segment_unlink_locked(struct cca *cca, struct cca__stream *stream, uint32_t number);
// What a stream without a segment keeps for its next blocks goes back. The stream's lock held.
void cca__segment_trim_stock_locked(struct cca *cca, struct cca__stream *stream);
// Tells the observer and the history of a segment, or part of one. The growth lock and the stream's
// held. Returns the stack of the call, 0 if it is not recorded.
uint32_t cca__observe_segment(struct cca *cca, enum allocator_action action,
                              const struct cca__pool *pool, uint64_t address, size_t size);

#endif
