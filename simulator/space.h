// Free space, as ranges of numbers in order (addresses, offsets in physical memory): what is given
// back merges with its neighbours, and the lowest range of at least some size is found in O(log n).
// Not thread-safe.
#ifndef TIDEMARK_SIMULATOR_SPACE_H
#define TIDEMARK_SIMULATOR_SPACE_H

#include "simulator/range_index.h"

#include <stdbool.h>

// A free range may carry a stamp, a number that says from when on it is free for others than who
// gave it; 0 if no more is said. Ranges that merge take the greater stamp.
struct sim__space_node;

struct sim__space {
    struct sim__space_node *root;
    uint64_t priority_state;
};

// [start, start + size) becomes free; no part of it may be free already.
void sim__space_give(struct sim__space *space, uint64_t start, uint64_t size);
void sim__space_give_stamped(struct sim__space *space, uint64_t start, uint64_t size,
                             uint64_t stamp);
// Takes [start, start + size), all of which must be free.
void sim__space_take(struct sim__space *space, uint64_t start, uint64_t size);
// The lowest free range of at least SIZE, in its full length; false if there is none.
bool sim__space_find(const struct sim__space *space, uint64_t size, struct sim__range *range);
// The same among ranges with a stamp of at most STAMP; *found is the stamp of the one.
bool sim__space_find_stamped(const struct sim__space *space, uint64_t size, uint64_t stamp,
                             struct sim__range *range, uint64_t *found);
// Whether all of [start, start + size) is free.
bool sim__space_holds(const struct sim__space *space, uint64_t start, uint64_t size);
static inline bool sim__space_is_empty(const struct sim__space *space) {
    return space->root == NULL;
}
void sim__space_clear(struct sim__space *space);

#endif
