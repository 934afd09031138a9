// Free space, as ranges of numbers in order (addresses, offsets in physical memory): what is given
// back merges with its neighbours, and the lowest range of at least some size is found in O(log n).
// Not thread-safe.
#ifndef TIDEMARK_SIMULATOR_SPACE_H
#define TIDEMARK_SIMULATOR_SPACE_H

#include "simulator/range_index.h"

#include <stdbool.h>

struct sim__space_node;

struct sim__space {
    struct sim__space_node *root;
    uint64_t priority_state;
};

// [start, start + size) becomes free; no part of it may be free already.
void sim__space_give(struct sim__space *space, uint64_t start, uint64_t size);
// Takes [start, start + size), all of which must be free.
void sim__space_take(struct sim__space *space, uint64_t start, uint64_t size);
// The lowest free range of at least SIZE, in its full length; false if there is none.
bool sim__space_find(const struct sim__space *space, uint64_t size, struct sim__range *range);
void sim__space_clear(struct sim__space *space);

#endif
