// x_torch_faults: what PyTorch does where memory that is in use goes back to the device.
//
// When max_split_size is lowered at run time, blocks that were split before may be as large as the
// new limit. PyTorch 2.15 then releases them as if each were a segment of its own. Inside a segment
// the driver refuses the address: the request ends with that error. At the start of one the whole
// segment goes, blocks in use included, and nobody is told. By default such blocks are left alone.
//
// With x_torch_faults the same happens here, up to there. What follows is ours, since PyTorch reads
// freed memory or crashes from here on:
//
// - A segment that went is *gone*: no part of it is ever handed out again, and snapshots leave it
//   out. Its statistics stay as PyTorch's until its last block in use is freed; then what is left
//   of it is taken off.
// - The program's pointers into it are dangling, but their frees are accepted, waits for events
//   included, each once.
// - If the driver gives the addresses to a new segment first, the blocks in use there count as
//   freed at that moment: from then on their addresses name what is new.
#ifndef TIDEMARK_ALLOCATOR_TORCH_FAULTS_H
#define TIDEMARK_ALLOCATOR_TORCH_FAULTS_H

#include "allocator/core.h"

static inline bool cca__block_is_gone(const struct cca__block *block) {
    return (block->flags & CCA__BLOCK_IN_GONE_SEGMENT) != 0;
}

// Calls cudaFree for a free block, of a large pool and with neighbours, as if it were a segment.
// growth_lock and the stream's lock held, also during the call: a neighbour that is freed meanwhile
// must not merge with it.
enum base_status cca__torch_release_split_locked(struct cca__pool *pool,
                                                 uint32_t number) BASE_MUST_USE;

// The end of a free in a gone segment, as cca__pool_free_locked.
void cca__gone_free_locked(struct cca *cca, struct cca__pool *pool, uint32_t number,
                           bool *over_limit);

// Takes gone segments off that nobody uses any more. growth_lock held.
void cca__gone_settle_locked(struct cca__device *device);

// [ADDRESS, ADDRESS + SIZE) is a new segment: what is in use of gone ones there counts as freed.
// growth_lock held, no stream locked.
void cca__gone_make_way_locked(struct cca__device *device, uint64_t address, size_t size);

#endif
