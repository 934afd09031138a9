// The free space of space.h: a treap of ranges that also knows the largest range below each node.
// Recursion goes as deep as the tree, about twice log2(n). Priorities come from a counter through a
// mixing function, so that the same calls build the same tree.
#include "simulator/space.h"

#include "base/check.h"

#include <stdlib.h>

struct sim__space_node {
    struct sim__range range;
    struct sim__space_node *left;
    struct sim__space_node *right;
    uint64_t largest_size;
    uint64_t lowest_stamp;
    uint64_t stamp;
    uint64_t priority;
};

static uint64_t largest_of(const struct sim__space_node *node) {
    return node == NULL ? 0 : node->largest_size;
}

static uint64_t lowest_of(const struct sim__space_node *node) {
    return node == NULL ? UINT64_MAX : node->lowest_stamp;
}

static void node_update(struct sim__space_node *node) {
    uint64_t largest = node->range.size, lowest = node->stamp;
    if (largest_of(node->left) > largest)
        largest = largest_of(node->left);
    if (largest_of(node->right) > largest)
        largest = largest_of(node->right);
    if (lowest_of(node->left) < lowest)
        lowest = lowest_of(node->left);
    if (lowest_of(node->right) < lowest)
        lowest = lowest_of(node->right);
    node->largest_size = largest;
    node->lowest_stamp = lowest;
}

// splitmix64: consecutive counters give priorities without pattern.
static uint64_t priority_next(struct sim__space *space) {
    uint64_t z = space->priority_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Divides NODE's tree into what begins below START and the rest.
static void split(struct sim__space_node *node, uint64_t start, struct sim__space_node **below,
                  struct sim__space_node **above) {
    if (node == NULL) {
        *below = *above = NULL;
        return;
    }
    if (node->range.start < start) {
        split(node->right, start, &node->right, above);
        *below = node;
    } else {
        split(node->left, start, below, &node->left);
        *above = node;
    }
    node_update(node);
}

// All of BELOW lies before all of ABOVE.
static struct sim__space_node *merge(struct sim__space_node *below, struct sim__space_node *above) {
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

// On the way down, largest sizes can only grow, and lowest stamps fall; so no way back up is
// needed.
static void node_insert(struct sim__space *space, struct sim__space_node *added) {
    added->priority = priority_next(space);
    struct sim__space_node **link = &space->root;
    while (*link != NULL && (*link)->priority >= added->priority) {
        struct sim__space_node *node = *link;
        if (added->range.size > node->largest_size)
            node->largest_size = added->range.size;
        if (added->stamp < node->lowest_stamp)
            node->lowest_stamp = added->stamp;
        link = added->range.start < node->range.start ? &node->left : &node->right;
    }
    split(*link, added->range.start, &added->left, &added->right);
    node_update(added);
    *link = added;
}

static struct sim__space_node *remove_below(struct sim__space_node *node,
                                            const struct sim__space_node *removed) {
    BASE_CHECK(node != NULL);
    if (node == removed)
        return merge(node->left, node->right);
    if (removed->range.start < node->range.start)
        node->left = remove_below(node->left, removed);
    else
        node->right = remove_below(node->right, removed);
    node_update(node);
    return node;
}

static void space_add(struct sim__space *space, struct sim__range range, uint64_t stamp) {
    struct sim__space_node *node = malloc(sizeof *node);
    BASE_CHECK(node != NULL);
    node->range = range;
    node->stamp = stamp;
    node_insert(space, node);
}

static void space_drop(struct sim__space *space, struct sim__space_node *node) {
    space->root = remove_below(space->root, node);
    free(node);
}

// The last free range that begins at or below POINT; NULL if there is none.
static struct sim__space_node *node_to(const struct sim__space *space, uint64_t point) {
    struct sim__space_node *best = NULL, *node = space->root;
    while (node != NULL) {
        if (node->range.start <= point) {
            best = node;
            node = node->right;
        } else {
            node = node->left;
        }
    }
    return best;
}

void sim__space_give_stamped(struct sim__space *space, uint64_t start, uint64_t size,
                             uint64_t stamp) {
    struct sim__space_node *above = node_to(space, start + size);
    if (above != NULL && above->range.start == start + size) {
        size += above->range.size;
        stamp = above->stamp > stamp ? above->stamp : stamp;
        space_drop(space, above);
    }
    struct sim__space_node *below = node_to(space, start + size - 1);
    if (below != NULL) {
        BASE_CHECK_LE(below->range.start + below->range.size, start);
        if (below->range.start + below->range.size == start) {
            start = below->range.start;
            size += below->range.size;
            stamp = below->stamp > stamp ? below->stamp : stamp;
            space_drop(space, below);
        }
    }
    space_add(space, (struct sim__range){start, size}, stamp);
}

void sim__space_give(struct sim__space *space, uint64_t start, uint64_t size) {
    sim__space_give_stamped(space, start, size, 0);
}

void sim__space_take(struct sim__space *space, uint64_t start, uint64_t size) {
    struct sim__space_node *node = node_to(space, start);
    BASE_CHECK(node != NULL);
    const uint64_t end = start + size, free_end = node->range.start + node->range.size;
    BASE_CHECK_GE(free_end, end);
    const struct sim__range below = {node->range.start, start - node->range.start};
    const uint64_t stamp = node->stamp;
    space_drop(space, node);
    if (below.size > 0)
        space_add(space, below, stamp);
    if (free_end > end)
        space_add(space, (struct sim__range){end, free_end - end}, stamp);
}

bool sim__space_find(const struct sim__space *space, uint64_t size, struct sim__range *range) {
    const struct sim__space_node *node = space->root;
    if (largest_of(node) < size)
        return false;
    for (;;) {
        if (largest_of(node->left) >= size)
            node = node->left;
        else if (node->range.size >= size)
            break;
        else
            node = node->right;
    }
    *range = node->range;
    return true;
}

// Trees are pruned by size and by stamp, each alone: a subtree that passes can still hold no range
// that has both.
static const struct sim__space_node *find_below(const struct sim__space_node *node, uint64_t size,
                                                uint64_t stamp) {
    if (largest_of(node) < size || lowest_of(node) > stamp)
        return NULL;
    const struct sim__space_node *found = find_below(node->left, size, stamp);
    if (found != NULL)
        return found;
    return node->range.size >= size && node->stamp <= stamp ? node
                                                            : find_below(node->right, size, stamp);
}

bool sim__space_find_stamped(const struct sim__space *space, uint64_t size, uint64_t stamp,
                             struct sim__range *range, uint64_t *found) {
    const struct sim__space_node *node = find_below(space->root, size, stamp);
    if (node == NULL)
        return false;
    *range = node->range;
    *found = node->stamp;
    return true;
}

bool sim__space_holds(const struct sim__space *space, uint64_t start, uint64_t size) {
    const struct sim__space_node *node = node_to(space, start);
    return node != NULL && size <= node->range.size &&
           start - node->range.start <= node->range.size - size;
}

void sim__space_clear(struct sim__space *space) {
    while (space->root != NULL)
        space_drop(space, space->root);
}
