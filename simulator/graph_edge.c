// Edges between nodes of one graph. Each stands in two lists, that of the dependent node and that
// of the one it depends on, and knows its place in the other one, so that it can be taken out at
// once.
//
// Whether there is an edge is looked up in the shorter of the two lists. Where both are long, a
// table of all the graph's edges answers; it is made when it is needed first.
#include "simulator/graph.h"

#include <stdlib.h>

#define SCAN_MAX 16u
#define END_COUNT_MIN 2u

static uint64_t edge_key(const struct sim__node *from, const struct sim__node *to) {
    return (uint64_t)from->slot.index << 32 | to->slot.index;
}

static void index_drop(struct sim__graph *graph) {
    base_address_map_deinit(&graph->edge_places);
    graph->edges_indexed = false;
}

static void index_set(struct sim__graph *graph, const struct sim__node *from,
                      const struct sim__node *to, uint32_t place) {
    if (graph->edges_indexed &&
        base_address_map_set(&graph->edge_places, edge_key(from, to), place) != BASE_OK)
        index_drop(graph);
}

static bool index_build(struct sim__graph *graph) {
    graph->edges_indexed = true;
    SIM__EACH_NODE(node, graph) {
        for (uint32_t i = 0; i < node->dependency_count && graph->edges_indexed; ++i)
            index_set(graph, node->dependencies[i].node, node, i);
    }
    return graph->edges_indexed;
}

static bool scan(const struct sim__edge_end *ends, uint32_t count, const struct sim__node *other,
                 uint32_t *at) {
    for (uint32_t i = 0; i < count; ++i) {
        if (ends[i].node == other) {
            *at = i;
            return true;
        }
    }
    return false;
}

bool sim__edge_find(const struct sim__node *from, const struct sim__node *to, uint32_t *place) {
    uint32_t at;
    uint64_t found;
    struct sim__graph *graph = to->graph;
    const bool few_in = to->dependency_count <= from->dependent_count;
    if ((few_in ? to->dependency_count : from->dependent_count) > SCAN_MAX &&
        (graph->edges_indexed || index_build(graph))) {
        if (!base_address_map_get(&graph->edge_places, edge_key(from, to), &found))
            return false;
        *place = (uint32_t)found;
        return true;
    }
    if (few_in)
        return scan(to->dependencies, to->dependency_count, from, place);
    if (!scan(from->dependents, from->dependent_count, to, &at))
        return false;
    *place = from->dependents[at].place;
    return true;
}

static bool room(struct sim__edge_end **ends, uint32_t count, uint32_t *size) {
    if (count < *size)
        return true;
    const uint32_t larger = *size == 0 ? END_COUNT_MIN : *size * 2;
    struct sim__edge_end *moved = realloc(*ends, larger * sizeof **ends);
    if (moved == NULL)
        return false;
    *ends = moved;
    *size = larger;
    return true;
}

bool sim__edge_add(struct sim__node *from, struct sim__node *to, uint32_t data) {
    struct sim__graph *graph = to->graph;
    if (!room(&to->dependencies, to->dependency_count, &to->dependency_size) ||
        !room(&from->dependents, from->dependent_count, &from->dependent_size))
        return false;
    if (from->dependent_count == 0)
        sim__node_unlink(&from->sink);
    if (to->dependency_count == 0) {
        sim__node_unlink(&to->root);
        --graph->root_count;
    }
    to->dependencies[to->dependency_count] =
        (struct sim__edge_end){from, from->dependent_count, data};
    from->dependents[from->dependent_count] =
        (struct sim__edge_end){to, to->dependency_count, data};
    index_set(graph, from, to, to->dependency_count);
    ++to->dependency_count;
    ++from->dependent_count;
    ++graph->edge_count;
    return true;
}

void sim__edge_remove(struct sim__node *to, uint32_t place) {
    struct sim__graph *graph = to->graph;
    const struct sim__edge_end removed = to->dependencies[place];
    struct sim__node *from = removed.node;
    uint64_t unused;
    if (graph->edges_indexed)
        base_address_map_remove(&graph->edge_places, edge_key(from, to), &unused);
    // The last of each list takes the place that is free now.
    const struct sim__edge_end last_in = to->dependencies[--to->dependency_count];
    if (place != to->dependency_count) {
        to->dependencies[place] = last_in;
        last_in.node->dependents[last_in.place].place = place;
        index_set(graph, last_in.node, to, place);
    }
    const struct sim__edge_end last_out = from->dependents[--from->dependent_count];
    if (removed.place != from->dependent_count) {
        from->dependents[removed.place] = last_out;
        last_out.node->dependencies[last_out.place].place = removed.place;
    }
    if (to->dependency_count == 0) {
        sim__node_link_last(&graph->roots, &to->root);
        ++graph->root_count;
    }
    if (from->dependent_count == 0)
        sim__node_link_last(&graph->sinks, &from->sink);
    --graph->edge_count;
}

// Only kernels can be told of more than the end of what they depend on.
bool sim__edge_fits(cudaGraphEdgeData data, enum cudaGraphNodeType from,
                    enum cudaGraphNodeType to) {
    for (size_t i = 0; i < sizeof data.reserved; ++i) {
        if (data.reserved[i] != 0)
            return false;
    }
    if (data.to_port != 0)
        return false;
    if (data.type == cudaGraphDependencyTypeDefault)
        return data.from_port == cudaGraphKernelNodePortDefault ||
               (data.from_port == cudaGraphKernelNodePortLaunchCompletion &&
                from == cudaGraphNodeTypeKernel);
    return data.type == cudaGraphDependencyTypeProgrammatic && from == cudaGraphNodeTypeKernel &&
           to == cudaGraphNodeTypeKernel &&
           (data.from_port == cudaGraphKernelNodePortProgrammatic ||
            data.from_port == cudaGraphKernelNodePortLaunchCompletion);
}
