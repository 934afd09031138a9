// What a checkpoint holds, and how a pool's segments are walked by address.
#ifndef TIDEMARK_ALLOCATOR_CHECKPOINT_STATE_H
#define TIDEMARK_ALLOCATOR_CHECKPOINT_STATE_H

#include "allocator/checkpoint.h"
#include "allocator/core.h"

struct cca__saved_block {
    uint64_t address, size;
    bool is_allocated;
};

// A segment of cudaMalloc, or an expandable one, of which the mapped blocks are saved.
struct cca__saved_segment {
    uint64_t address, size;
    cudaStream_t stream;
    bool is_small, is_expandable;
    size_t first_block, block_count; // in cca_checkpoint.blocks, by address
};

struct cca_checkpoint {
    const struct cca *owner;
    int device;
    struct allocator_pool_id id;
    struct cca__saved_segment *segments; // by address
    size_t segment_count;
    struct cca__saved_block *blocks;
    size_t block_count;
};

// The segments of a pool by address. Those that are gone (torch_faults.h) are left out.
struct cca__segment_list {
    struct cca__segment **segments;
    size_t count;
};
// The locks of all streams of the device held. BASE_HOST_MEMORY.
enum base_status cca__segment_list_init(struct cca__segment_list *list, struct cca *cca,
                                        const struct cca__private_pool *pool) BASE_MUST_USE;
void cca__segment_list_deinit(struct cca__segment_list *list);

// For walks over all blocks of a list: the first block from NUMBER on that is allocated; 0: none.
static inline uint32_t cca__next_allocated(const struct cca *cca, uint32_t number) {
    while (number != 0 && cca->blocks[number].state != CCA__BLOCK_ALLOCATED)
        number = cca->blocks[number].next;
    return number;
}

#endif
