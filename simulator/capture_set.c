// Sets of nodes: what the next node of a capturing stream depends on, and what an event holds that
// was recorded in a capture. Most hold one node or two; a program that forks thousands of streams
// makes large ones, which are united by marking the nodes.
#include "simulator/capture.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_FIRST 4
// Two sets that both hold more are united by marks, which touch each node; else the larger one's
// array is looked through for each node of the smaller one.
#define SCAN_MAX 8

static void grow(struct sim__node_set *set, uint32_t size) {
    const uint32_t least = set->size == 0 ? SIZE_FIRST : 2 * set->size;
    if (size <= set->size)
        return;
    const bool has_data = set->data != NULL;
    set->size = size > least ? size : least;
    set->nodes = realloc(set->nodes, set->size * sizeof *set->nodes);
    if (has_data)
        set->data = realloc(set->data, set->size * sizeof *set->data);
    if (set->nodes == NULL || (has_data && set->data == NULL))
        sim__host_limit("out of host memory for a capture's %u dependencies", set->size);
}

// All zero so far.
static void data_begin(struct sim__node_set *set) {
    if (set->data != NULL || set->size == 0)
        return;
    set->data = calloc(set->size, sizeof *set->data);
    if (set->data == NULL)
        sim__host_limit("out of host memory for a capture's %u dependencies", set->size);
}

static void append(struct sim__node_set *set, struct sim__node *node, uint32_t data) {
    grow(set, set->count + 1);
    if (data != 0)
        data_begin(set);
    set->nodes[set->count] = node;
    if (set->data != NULL)
        set->data[set->count] = data;
    ++set->count;
}

static uint32_t find(const struct sim__node_set *set, uint32_t count,
                     const struct sim__node *node) {
    uint32_t at = 0;
    while (at < count && set->nodes[at] != node)
        ++at;
    return at;
}

// A node that is named twice with different data: its end is what the next node waits for then,
// which is behind all that the data can mean.
static void meet(struct sim__node_set *set, uint32_t at, uint32_t data) {
    if (set->data != NULL && set->data[at] != data)
        set->data[at] = 0;
}

void sim__node_set_empty(struct sim__node_set *set) {
    set->count = 0;
    free(set->data);
    set->data = NULL;
}

static void unite_by_marks(struct sim__node_set *set, struct sim__node *const *nodes,
                           const uint32_t *data, uint32_t count) {
    const uint64_t mark = sim__graph_mark();
    const uint32_t before = set->count;
    for (uint32_t i = 0; i < before; ++i)
        set->nodes[i]->mark = mark;
    for (uint32_t i = 0; i < count; ++i) {
        if (nodes[i]->mark != mark)
            append(set, nodes[i], data == NULL ? 0 : data[i]);
        else if (data != NULL || set->data != NULL)
            meet(set, find(set, before, nodes[i]), data == NULL ? 0 : data[i]);
    }
}

void sim__node_set_add(struct sim__node_set *set, struct sim__node *const *nodes,
                       const uint32_t *data, uint32_t count) {
    const uint32_t before = set->count;
    if (before > SCAN_MAX && count > SCAN_MAX) {
        unite_by_marks(set, nodes, data, count);
        return;
    }
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t at = find(set, before, nodes[i]);
        if (at == before)
            append(set, nodes[i], data == NULL ? 0 : data[i]);
        else
            meet(set, at, data == NULL ? 0 : data[i]);
    }
}

void sim__node_set_copy(struct sim__node_set *to, const struct sim__node_set *from) {
    sim__node_set_empty(to);
    sim__node_set_add(to, from->nodes, from->data, from->count);
}

void sim__node_set_free(struct sim__node_set *set) {
    free(set->nodes);
    free(set->data);
    *set = (struct sim__node_set){0};
}
