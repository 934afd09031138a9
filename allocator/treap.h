// A treap of blocks through their links: what runs of free blocks and sets by address share.
// Each user looks for a place by its own order; here a block is hung there, taken out, and its
// neighbours are found.
//
// Links: 0 left, 1 right, 2 parent. A parent's priority is never below its children's; it is a hash
// of the block's number, so the shape depends on nothing but the members. Not thread-safe.
#ifndef TIDEMARK_ALLOCATOR_TREAP_H
#define TIDEMARK_ALLOCATOR_TREAP_H

#include "allocator/block.h"

enum { CCA__LEFT = 0, CCA__RIGHT = 1, CCA__PARENT = 2 };

static inline uint32_t cca__treap_priority(uint32_t number) { return number * 0x9e3779b1u; }

// Puts CHILD (0: nothing) where OLD hung below PARENT (0: at the root).
static inline void cca__treap_replace(uint32_t *root, struct cca__block *blocks, uint32_t parent,
                                      uint32_t old, uint32_t child) {
    if (parent == 0)
        *root = child;
    else
        blocks[parent].link[blocks[parent].link[CCA__LEFT] == old ? CCA__LEFT : CCA__RIGHT] = child;
    if (child != 0) blocks[child].link[CCA__PARENT] = parent;
}

// Exchanges NUMBER with its parent, keeping the order.
static inline void cca__treap_rotate_up(uint32_t *root, struct cca__block *blocks,
                                        uint32_t number) {
    const uint32_t parent = blocks[number].link[CCA__PARENT];
    const int side = blocks[parent].link[CCA__LEFT] == number ? CCA__LEFT : CCA__RIGHT;
    const uint32_t inner = blocks[number].link[1 - side];
    cca__treap_replace(root, blocks, blocks[parent].link[CCA__PARENT], parent, number);
    blocks[parent].link[side] = inner;
    if (inner != 0) blocks[inner].link[CCA__PARENT] = parent;
    blocks[number].link[1 - side] = parent;
    blocks[parent].link[CCA__PARENT] = number;
}

// Hangs NUMBER on SIDE of PARENT, where nothing hangs; PARENT 0: the treap is empty.
static inline void cca__treap_hang(uint32_t *root, struct cca__block *blocks, uint32_t number,
                                   uint32_t parent, int side) {
    struct cca__block *const block = &blocks[number];
    block->link[CCA__LEFT] = block->link[CCA__RIGHT] = 0;
    block->link[CCA__PARENT] = parent;
    if (parent == 0)
        *root = number;
    else
        blocks[parent].link[side] = number;
    while (block->link[CCA__PARENT] != 0 &&
           cca__treap_priority(block->link[CCA__PARENT]) < cca__treap_priority(number))
        cca__treap_rotate_up(root, blocks, number);
}

static inline void cca__treap_remove(uint32_t *root, struct cca__block *blocks, uint32_t number) {
    struct cca__block *const block = &blocks[number];
    while (block->link[CCA__LEFT] != 0 && block->link[CCA__RIGHT] != 0) {
        const uint32_t left = block->link[CCA__LEFT], right = block->link[CCA__RIGHT];
        cca__treap_rotate_up(
            root, blocks,
            cca__treap_priority(left) > cca__treap_priority(right) ? left : right);
    }
    cca__treap_replace(root, blocks, block->link[CCA__PARENT], number,
                       block->link[CCA__LEFT] | block->link[CCA__RIGHT]);
}

// The last block on SIDE below NUMBER, which exists.
static inline uint32_t cca__treap_end(const struct cca__block *blocks, uint32_t number, int side) {
    while (blocks[number].link[side] != 0) number = blocks[number].link[side];
    return number;
}

// The neighbour of NUMBER on SIDE; 0 at the end.
static inline uint32_t cca__treap_step(const struct cca__block *blocks, uint32_t number, int side) {
    if (blocks[number].link[side] != 0)
        return cca__treap_end(blocks, blocks[number].link[side], 1 - side);
    uint32_t parent = blocks[number].link[CCA__PARENT];
    while (parent != 0 && blocks[parent].link[side] == number) {
        number = parent;
        parent = blocks[parent].link[CCA__PARENT];
    }
    return parent;
}

#endif
