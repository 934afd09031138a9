// A set of disjoint ranges of numbers (addresses, offsets) in order: live memory, free addresses
// and free physical memory are each one. A treap that also knows the largest range below each node,
// so that "which range holds this address" and "the lowest range of at least this size" both take
// O(log n).
//
// Nodes are the caller's: embed a sim__range as the first member and set start and size. Not
// thread-safe.
#ifndef TIDEMARK_SIMULATOR_RANGE_TREE_H
#define TIDEMARK_SIMULATOR_RANGE_TREE_H

#include <stdint.h>

struct sim__range {
    uint64_t start;
    uint64_t size; // at least 1
    // The tree's own.
    struct sim__range *left;
    struct sim__range *right;
    uint64_t largest_size;
    uint64_t priority;
};

struct sim__range_tree {
    struct sim__range *root;
    uint64_t priority_state;
};

// RANGE must overlap no range of the tree.
void sim__range_insert(struct sim__range_tree *tree, struct sim__range *range);
// RANGE must be in the tree. Its memory stays the caller's.
void sim__range_remove(struct sim__range_tree *tree, struct sim__range *range);

// The range with start <= POINT < start + size; NULL if there is none.
struct sim__range *sim__range_at(const struct sim__range_tree *tree, uint64_t point);
// The last range that begins below LIMIT; NULL if there is none.
struct sim__range *sim__range_below(const struct sim__range_tree *tree, uint64_t limit);
// A range that shares a number with [start, start + size); NULL if there is none.
struct sim__range *sim__range_overlapping(const struct sim__range_tree *tree, uint64_t start,
                                          uint64_t size);
// The lowest range of at least SIZE; NULL if there is none.
struct sim__range *sim__range_fitting(const struct sim__range_tree *tree, uint64_t size);
// The lowest range; NULL if the tree is empty.
struct sim__range *sim__range_first(const struct sim__range_tree *tree);

// A tree of free space, whose nodes it owns: what is given back merges with its neighbours.
void sim__space_give(struct sim__range_tree *space, uint64_t start, uint64_t size);
// Takes [start, start + size), all of which must be free.
void sim__space_take(struct sim__range_tree *space, uint64_t start, uint64_t size);
void sim__space_clear(struct sim__range_tree *space);

#endif
