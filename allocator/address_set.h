// A set of blocks by address: the unmapped ranges of a pool, which a growing segment is searched
// in from the lowest address on.
//
// A treap through the blocks' links, which nothing else uses while a block is neither free nor
// handed out. Not thread-safe.
#ifndef TIDEMARK_ALLOCATOR_ADDRESS_SET_H
#define TIDEMARK_ALLOCATOR_ADDRESS_SET_H

#include "allocator/block.h"

struct cca__address_set {
    uint32_t root; // 0: empty
    uint32_t count;
};

void cca__address_set_insert(struct cca__address_set *set, struct cca__block *blocks,
                             uint32_t number);
void cca__address_set_remove(struct cca__address_set *set, struct cca__block *blocks,
                             uint32_t number);
// The block of the lowest address above NUMBER's; NUMBER 0: the first. 0 at the end.
uint32_t cca__address_set_next(const struct cca__address_set *set, const struct cca__block *blocks,
                               uint32_t number);

#endif
