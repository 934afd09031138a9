// The index of range_index.h. A full leaf is split in the middle, except that ranges which arrive
// in ascending order, the common case, leave full leaves behind; a leaf that has become small joins
// a neighbour. Leaves come and go once in some thirty changes, so that moving the array of leaves
// does not show up to a million ranges.
#include "simulator/range_index.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

#define LEAF_RANGES_MAX 64
// Two neighbours that hold no more together are joined; well below the most, so that the next
// insertion does not split again.
#define LEAF_RANGES_JOIN 40

struct sim__range_leaf {
    size_t count;
    uint64_t starts[LEAF_RANGES_MAX];
    struct sim__range *ranges[LEAF_RANGES_MAX];
};

// How many of the sorted numbers are at most VALUE.
static size_t count_to(const uint64_t *numbers, size_t count, uint64_t value) {
    size_t first = 0;
    while (count > 0) {
        const size_t half = count / 2;
        if (numbers[first + half] <= value) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return first;
}

// The leaf that START belongs to; the index must not be empty.
static size_t leaf_for(const struct sim__range_index *index, uint64_t start) {
    const size_t count = count_to(index->starts, index->leaf_count, start);
    return count == 0 ? 0 : count - 1;
}

static void leaf_open(struct sim__range_index *index, size_t at, uint64_t start) {
    if (index->leaf_count == index->leaf_count_max) {
        index->leaf_count_max = index->leaf_count_max == 0 ? 16 : 2 * index->leaf_count_max;
        index->starts = realloc(index->starts, index->leaf_count_max * sizeof *index->starts);
        index->leaves = realloc(index->leaves, index->leaf_count_max * sizeof *index->leaves);
        BASE_CHECK(index->starts != NULL && index->leaves != NULL);
    }
    struct sim__range_leaf *leaf = malloc(sizeof *leaf);
    BASE_CHECK(leaf != NULL);
    leaf->count = 0;
    const size_t behind = index->leaf_count - at;
    if (behind > 0) {
        memmove(&index->starts[at + 1], &index->starts[at], behind * sizeof *index->starts);
        memmove(&index->leaves[at + 1], &index->leaves[at], behind * sizeof *index->leaves);
    }
    index->starts[at] = start;
    index->leaves[at] = leaf;
    ++index->leaf_count;
}

static void leaf_close(struct sim__range_index *index, size_t at) {
    free(index->leaves[at]);
    const size_t behind = index->leaf_count - at - 1;
    memmove(&index->starts[at], &index->starts[at + 1], behind * sizeof *index->starts);
    memmove(&index->leaves[at], &index->leaves[at + 1], behind * sizeof *index->leaves);
    --index->leaf_count;
}

// Moves the ranges of FROM from the first on to the end of TO.
static void leaf_move(struct sim__range_leaf *to, struct sim__range_leaf *from, size_t first) {
    const size_t count = from->count - first;
    memcpy(&to->starts[to->count], &from->starts[first], count * sizeof *to->starts);
    memcpy(&to->ranges[to->count], &from->ranges[first], count * sizeof *to->ranges);
    to->count += count;
    from->count = first;
}

// Makes room in the full leaf AT for START; returns the leaf that START belongs to then.
static size_t leaf_split(struct sim__range_index *index, size_t at, uint64_t start) {
    struct sim__range_leaf *leaf = index->leaves[at];
    if (start > leaf->starts[LEAF_RANGES_MAX - 1]) {
        leaf_open(index, at + 1, start);
        return at + 1;
    }
    const size_t middle = LEAF_RANGES_MAX / 2;
    leaf_open(index, at + 1, leaf->starts[middle]);
    leaf_move(index->leaves[at + 1], leaf, middle);
    return start < index->starts[at + 1] ? at : at + 1;
}

void sim__range_insert(struct sim__range_index *index, struct sim__range *range) {
    if (index->leaf_count == 0)
        leaf_open(index, 0, range->start);
    size_t at = leaf_for(index, range->start);
    if (index->leaves[at]->count == LEAF_RANGES_MAX)
        at = leaf_split(index, at, range->start);
    if (range->start < index->starts[at])
        index->starts[at] = range->start;
    struct sim__range_leaf *leaf = index->leaves[at];
    const size_t place = count_to(leaf->starts, leaf->count, range->start);
    const size_t behind = leaf->count - place;
    memmove(&leaf->starts[place + 1], &leaf->starts[place], behind * sizeof *leaf->starts);
    memmove(&leaf->ranges[place + 1], &leaf->ranges[place], behind * sizeof *leaf->ranges);
    leaf->starts[place] = range->start;
    leaf->ranges[place] = range;
    ++leaf->count;
}

// Joins the leaf AT and its successor if there is one and they are small.
static void leaf_join(struct sim__range_index *index, size_t at) {
    if (at + 1 >= index->leaf_count)
        return;
    struct sim__range_leaf *leaf = index->leaves[at], *next = index->leaves[at + 1];
    if (leaf->count + next->count > LEAF_RANGES_JOIN)
        return;
    leaf_move(leaf, next, 0);
    leaf_close(index, at + 1);
}

void sim__range_remove(struct sim__range_index *index, const struct sim__range *range) {
    BASE_CHECK_GT(index->leaf_count, 0);
    const size_t at = leaf_for(index, range->start);
    struct sim__range_leaf *leaf = index->leaves[at];
    const size_t place = count_to(leaf->starts, leaf->count, range->start);
    BASE_CHECK(place > 0 && leaf->ranges[place - 1] == range);
    const size_t behind = leaf->count - place;
    memmove(&leaf->starts[place - 1], &leaf->starts[place], behind * sizeof *leaf->starts);
    memmove(&leaf->ranges[place - 1], &leaf->ranges[place], behind * sizeof *leaf->ranges);
    if (--leaf->count == 0) {
        leaf_close(index, at);
        return;
    }
    leaf_join(index, at);
    if (at > 0)
        leaf_join(index, at - 1);
}

// The last range that begins at or below POINT.
static struct sim__range *range_to(const struct sim__range_index *index, uint64_t point) {
    if (index->leaf_count == 0)
        return NULL;
    size_t at = leaf_for(index, point);
    const struct sim__range_leaf *leaf = index->leaves[at];
    const size_t place = count_to(leaf->starts, leaf->count, point);
    if (place > 0)
        return leaf->ranges[place - 1];
    // The leaf's bound is below its first range by now: the leaf before it, never empty, has the
    // answer.
    if (at == 0)
        return NULL;
    leaf = index->leaves[at - 1];
    return leaf->ranges[leaf->count - 1];
}

struct sim__range *sim__range_at(const struct sim__range_index *index, uint64_t point) {
    struct sim__range *range = range_to(index, point);
    return range != NULL && point - range->start < range->size ? range : NULL;
}

struct sim__range *sim__range_overlapping(const struct sim__range_index *index, uint64_t start,
                                          uint64_t size) {
    struct sim__range *range = range_to(index, start + size - 1);
    return range != NULL && range->start + range->size > start ? range : NULL;
}

struct sim__range *sim__range_last(const struct sim__range_index *index) {
    if (index->leaf_count == 0)
        return NULL;
    const struct sim__range_leaf *leaf = index->leaves[index->leaf_count - 1];
    return leaf->ranges[leaf->count - 1];
}

void sim__range_index_deinit(struct sim__range_index *index) {
    BASE_CHECK_EQ(index->leaf_count, 0);
    free(index->starts);
    free(index->leaves);
    *index = (struct sim__range_index){0};
}
