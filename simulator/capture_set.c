// Sets of nodes: what the next node of a capturing stream depends on, and what an event holds that
// was recorded in a capture. Most hold one node or two; a program that forks thousands of streams
// makes large ones, which find a node through a table: each join costs what it brings.
#include "simulator/capture.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_FIRST 4
// So many nodes are looked through one by one; a set of more has a table.
#define SCAN_MAX 8
#define TABLE_SIZE_FIRST 64 // a power of two, at least four times SCAN_MAX

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

// --- The table: places in the array plus one, 0 where there is none, by the address of the node.
// It is never more than half full. ---

static uint32_t table_at(const struct sim__node_set *set, const struct sim__node *node) {
    const uint64_t hash = ((uint64_t)(uintptr_t)node >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 32) & (set->table_size - 1);
}

static void table_insert(struct sim__node_set *set, uint32_t place) {
    uint32_t at = table_at(set, set->nodes[place]);
    while (set->table[at] != 0)
        at = (at + 1) & (set->table_size - 1);
    set->table[at] = place + 1;
}

static void table_make(struct sim__node_set *set) {
    free(set->table);
    set->table_size = set->table_size == 0 ? TABLE_SIZE_FIRST : 2 * set->table_size;
    set->table = calloc(set->table_size, sizeof *set->table);
    if (set->table == NULL)
        sim__host_limit("out of host memory for a capture's %u dependencies", set->count);
    for (uint32_t i = 0; i < set->count; ++i)
        table_insert(set, i);
}

static void table_drop(struct sim__node_set *set) {
    free(set->table);
    set->table = NULL;
    set->table_size = 0;
}

static void append(struct sim__node_set *set, struct sim__node *node, uint32_t data) {
    grow(set, set->count + 1);
    if (data != 0)
        data_begin(set);
    set->nodes[set->count] = node;
    if (set->data != NULL)
        set->data[set->count] = data;
    ++set->count;
    if (set->count <= SCAN_MAX)
        return;
    if (2 * (uint64_t)set->count > set->table_size)
        table_make(set);
    else
        table_insert(set, set->count - 1);
}

// The count if it is not there.
static uint32_t find(const struct sim__node_set *set, const struct sim__node *node) {
    if (set->table == NULL) {
        uint32_t place = 0;
        while (place < set->count && set->nodes[place] != node)
            ++place;
        return place;
    }
    for (uint32_t at = table_at(set, node); set->table[at] != 0;
         at = (at + 1) & (set->table_size - 1))
        if (set->table[at] <= set->count && set->nodes[set->table[at] - 1] == node)
            return set->table[at] - 1;
    return set->count;
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
    table_drop(set);
}

void sim__node_set_add(struct sim__node_set *set, struct sim__node *const *nodes,
                       const uint32_t *data, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t at = find(set, nodes[i]);
        if (at == set->count)
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
    sim__node_set_empty(set);
    *set = (struct sim__node_set){0};
}
