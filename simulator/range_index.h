// Live ranges of addresses in order: which one holds this address? Sorted leaves of up to 64 ranges
// under one sorted array of leaves, so that a look-up reads three or four cache lines among 100,000
// ranges.
//
// Ranges are the caller's: embed a sim__range as the first member. Not thread-safe.
#ifndef TIDEMARK_SIMULATOR_RANGE_INDEX_H
#define TIDEMARK_SIMULATOR_RANGE_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct sim__range {
    uint64_t start;
    uint64_t size; // at least 1
};

struct sim__range_leaf;

struct sim__range_index {
    // starts[i] is at most the first start in leaves[i], and above all starts of leaves[i - 1].
    uint64_t *starts;
    struct sim__range_leaf **leaves;
    size_t leaf_count, leaf_count_max;
};

// RANGE must overlap no range of the index; it must stay where it is until it is removed.
void sim__range_insert(struct sim__range_index *index, struct sim__range *range);
// RANGE must be in the index.
void sim__range_remove(struct sim__range_index *index, const struct sim__range *range);

// The range with start <= POINT < start + size; NULL if there is none.
struct sim__range *sim__range_at(const struct sim__range_index *index, uint64_t point);
// The last range that shares a number with [start, start + size); NULL if there is none.
struct sim__range *sim__range_overlapping(const struct sim__range_index *index, uint64_t start,
                                          uint64_t size);
// The last range; NULL if there is none. (What empties an index starts here: it costs least.)
struct sim__range *sim__range_last(const struct sim__range_index *index);
// Frees the memory of an empty index.
void sim__range_index_deinit(struct sim__range_index *index);

#endif
