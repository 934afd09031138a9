// The treap of range_tree.h. Recursion goes as deep as the tree: about twice log2(n), 60 levels for
// a million ranges. Priorities come from a counter through a mixing function, so that the same
// calls build the same tree.
#include "simulator/range_tree.h"

#include "base/check.h"

#include <stdlib.h>

static uint64_t largest_of(const struct sim__range *node) {
    return node == NULL ? 0 : node->largest_size;
}

static void node_update(struct sim__range *node) {
    uint64_t largest = node->size;
    if (largest_of(node->left) > largest)
        largest = largest_of(node->left);
    if (largest_of(node->right) > largest)
        largest = largest_of(node->right);
    node->largest_size = largest;
}

// splitmix64: consecutive counters give priorities without pattern.
static uint64_t priority_next(struct sim__range_tree *tree) {
    uint64_t z = tree->priority_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Divides NODE's tree into what begins below START and the rest.
static void split(struct sim__range *node, uint64_t start, struct sim__range **below,
                  struct sim__range **above) {
    if (node == NULL) {
        *below = *above = NULL;
        return;
    }
    if (node->start < start) {
        split(node->right, start, &node->right, above);
        *below = node;
    } else {
        split(node->left, start, below, &node->left);
        *above = node;
    }
    node_update(node);
}

// All of BELOW lies before all of ABOVE.
static struct sim__range *merge(struct sim__range *below, struct sim__range *above) {
    if (below == NULL)
        return above;
    if (above == NULL)
        return below;
    if (below->priority > above->priority) {
        below->right = merge(below->right, above);
        node_update(below);
        return below;
    }
    above->left = merge(below, above->left);
    node_update(above);
    return above;
}

// On the way down, largest sizes can only grow; so no way back up is needed.
void sim__range_insert(struct sim__range_tree *tree, struct sim__range *range) {
    range->priority = priority_next(tree);
    struct sim__range **link = &tree->root;
    while (*link != NULL && (*link)->priority >= range->priority) {
        struct sim__range *node = *link;
        if (range->size > node->largest_size)
            node->largest_size = range->size;
        link = range->start < node->start ? &node->left : &node->right;
    }
    split(*link, range->start, &range->left, &range->right);
    node_update(range);
    *link = range;
}

static struct sim__range *remove_below(struct sim__range *node, const struct sim__range *range) {
    BASE_CHECK(node != NULL);
    if (node == range)
        return merge(node->left, node->right);
    if (range->start < node->start)
        node->left = remove_below(node->left, range);
    else
        node->right = remove_below(node->right, range);
    node_update(node);
    return node;
}

void sim__range_remove(struct sim__range_tree *tree, struct sim__range *range) {
    tree->root = remove_below(tree->root, range);
}

struct sim__range *sim__range_below(const struct sim__range_tree *tree, uint64_t limit) {
    struct sim__range *best = NULL, *node = tree->root;
    while (node != NULL) {
        if (node->start < limit) {
            best = node;
            node = node->right;
        } else {
            node = node->left;
        }
    }
    return best;
}

struct sim__range *sim__range_at(const struct sim__range_tree *tree, uint64_t point) {
    return sim__range_overlapping(tree, point, 1);
}

struct sim__range *sim__range_overlapping(const struct sim__range_tree *tree, uint64_t start,
                                          uint64_t size) {
    struct sim__range *range = sim__range_below(tree, start + size);
    return range != NULL && range->start + range->size > start ? range : NULL;
}

struct sim__range *sim__range_fitting(const struct sim__range_tree *tree, uint64_t size) {
    struct sim__range *node = tree->root;
    if (largest_of(node) < size)
        return NULL;
    for (;;) {
        if (largest_of(node->left) >= size)
            node = node->left;
        else if (node->size >= size)
            return node;
        else
            node = node->right;
    }
}

struct sim__range *sim__range_first(const struct sim__range_tree *tree) {
    struct sim__range *node = tree->root;
    while (node != NULL && node->left != NULL)
        node = node->left;
    return node;
}

static void space_add(struct sim__range_tree *space, uint64_t start, uint64_t size) {
    struct sim__range *range = malloc(sizeof *range);
    BASE_CHECK(range != NULL);
    range->start = start;
    range->size = size;
    sim__range_insert(space, range);
}

static void space_drop(struct sim__range_tree *space, struct sim__range *range) {
    sim__range_remove(space, range);
    free(range);
}

void sim__space_give(struct sim__range_tree *space, uint64_t start, uint64_t size) {
    BASE_CHECK(sim__range_overlapping(space, start, size) == NULL);
    struct sim__range *below = sim__range_below(space, start);
    struct sim__range *above = sim__range_at(space, start + size);
    if (below != NULL && below->start + below->size == start) {
        start = below->start;
        size += below->size;
        space_drop(space, below);
    }
    if (above != NULL) {
        size += above->size;
        space_drop(space, above);
    }
    space_add(space, start, size);
}

void sim__space_take(struct sim__range_tree *space, uint64_t start, uint64_t size) {
    struct sim__range *range = sim__range_at(space, start);
    BASE_CHECK(range != NULL && range->start + range->size >= start + size);
    const uint64_t below = start - range->start;
    const uint64_t above = range->start + range->size - (start + size);
    space_drop(space, range);
    if (below > 0)
        space_add(space, start - below, below);
    if (above > 0)
        space_add(space, start + size, above);
}

void sim__space_clear(struct sim__range_tree *space) {
    while (space->root != NULL)
        space_drop(space, space->root);
}
