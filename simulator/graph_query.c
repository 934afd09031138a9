// The calls that make, copy and destroy graphs, change their edges, and ask about nodes and edges.
//
// A query without an array stores how many there are. With one, at most as many as fit are stored;
// what is left of the array is filled with NULL, and the number stored is returned. A call that
// fails changes nothing.
#include "simulator/call.h"
#include "simulator/graph.h"
#include "simulator/plant.h"

// --- Graphs ---

static cudaError_t create_locked(cudaGraph_t *handle, unsigned int flags) {
    if (handle == NULL || flags != 0)
        return cudaErrorInvalidValue;
    const struct sim__graph *graph = sim__graph_create();
    if (graph == NULL)
        return cudaErrorMemoryAllocation;
    *handle = sim__graph_handle(graph);
    return cudaSuccess;
}

// A capture builds it, or a node owns it.
static bool is_kept(const struct sim__graph *graph) {
    return graph->capture != NULL || graph->parent != NULL;
}

static cudaError_t destroy_locked(cudaGraph_t handle) {
    struct sim__graph *graph;
    const cudaError_t error = sim__graph_resolve(handle, &graph);
    if (error != cudaSuccess || is_kept(graph))
        return cudaErrorInvalidValue;
    sim__graph_destroy(graph);
    return cudaSuccess;
}

static cudaError_t clone_locked(cudaGraph_t *copy_handle, cudaGraph_t handle) {
    struct sim__graph *graph;
    const cudaError_t error = sim__graph_resolve(handle, &graph);
    if (error != cudaSuccess || copy_handle == NULL)
        return cudaErrorInvalidValue;
    if (graph->memory_node_count > 0)
        return cudaErrorNotSupported;
    const struct sim__graph *copy =
        sim__planted(SIM__PLANT_CLONE) ? graph : sim__graph_clone(graph);
    if (copy == NULL)
        return cudaErrorMemoryAllocation;
    *copy_handle = sim__graph_handle(copy);
    return cudaSuccess;
}

static cudaError_t find_locked(cudaGraphNode_t *found, cudaGraphNode_t original,
                               cudaGraph_t copy_handle) {
    struct sim__node *node;
    struct sim__graph *copy;
    uint64_t handle;
    cudaError_t error = sim__node_resolve(original, &node);
    if (error == cudaSuccess)
        error = sim__graph_resolve(copy_handle, &copy);
    if (error != cudaSuccess || found == NULL ||
        !base_address_map_get(&copy->copies, node->slot.handle, &handle) ||
        sim__handle_find(&sim__nodes, handle) == NULL)
        return cudaErrorInvalidValue;
    *found = (cudaGraphNode_t)(uintptr_t)handle;
    return cudaSuccess;
}

static cudaError_t destroy_node_locked(cudaGraphNode_t handle) {
    struct sim__node *node;
    const cudaError_t error = sim__node_resolve(handle, &node);
    if (error != cudaSuccess || node->graph->capture != NULL)
        return cudaErrorInvalidValue;
    if (node->graph->memory_node_count > 0)
        return cudaErrorNotSupported;
    sim__node_remove(node);
    return cudaSuccess;
}

// --- Edges ---

struct edge {
    struct sim__node *from, *to;
    uint32_t place; // in TO's dependencies, if there is one
    bool exists;
};

// The nodes of one edge, which must be two of GRAPH.
static bool edge_of(const struct sim__graph *graph, cudaGraphNode_t from, cudaGraphNode_t to,
                    struct edge *edge) {
    if (sim__node_resolve(from, &edge->from) != cudaSuccess ||
        sim__node_resolve(to, &edge->to) != cudaSuccess || edge->from == edge->to ||
        edge->from->graph != graph || edge->to->graph != graph)
        return false;
    edge->exists = sim__edge_find(edge->from, edge->to, &edge->place);
    return true;
}

static cudaGraphEdgeData data_at(const cudaGraphEdgeData *data, size_t index) {
    return data == NULL ? (cudaGraphEdgeData){0} : data[index];
}

static cudaError_t edge_add(const struct sim__graph *graph, cudaGraphNode_t from,
                            cudaGraphNode_t to, cudaGraphEdgeData data) {
    struct edge edge;
    if (!edge_of(graph, from, to, &edge) ||
        (edge.exists && !sim__planted(SIM__PLANT_EDGE_TWICE)) ||
        !sim__edge_fits(data, edge.from->type, edge.to->type))
        return cudaErrorInvalidValue;
    return sim__edge_add(edge.from, edge.to, sim__edge_pack(data)) ? cudaSuccess
                                                                   : cudaErrorMemoryAllocation;
}

static cudaError_t edge_remove(const struct sim__graph *graph, cudaGraphNode_t from,
                               cudaGraphNode_t to, cudaGraphEdgeData data) {
    struct edge edge;
    if (!edge_of(graph, from, to, &edge) || !edge.exists ||
        edge.to->dependencies[edge.place].data != sim__edge_pack(data))
        return cudaErrorInvalidValue;
    sim__edge_remove(edge.to, edge.place);
    return cudaSuccess;
}

typedef cudaError_t edge_change(const struct sim__graph *graph, cudaGraphNode_t from,
                                cudaGraphNode_t to, cudaGraphEdgeData data);

// All edges, or none: what was done is undone when one does not fit.
static cudaError_t edges_locked(cudaGraph_t handle, const cudaGraphNode_t *from,
                                const cudaGraphNode_t *to, const cudaGraphEdgeData *data,
                                size_t count, bool adds) {
    edge_change *const change = adds ? edge_add : edge_remove;
    edge_change *const undo = adds ? edge_remove : edge_add;
    struct sim__graph *graph;
    const cudaError_t error = sim__graph_resolve(handle, &graph);
    if (error != cudaSuccess || (count > 0 && (from == NULL || to == NULL)) ||
        (!adds && graph->capture != NULL))
        return cudaErrorInvalidValue;
    if (!adds && graph->memory_node_count > 0)
        return cudaErrorNotSupported;
    for (size_t i = 0; i < count; ++i) {
        const cudaError_t failure = change(graph, from[i], to[i], data_at(data, i));
        for (; failure != cudaSuccess && i > 0; --i)
            undo(graph, from[i - 1], to[i - 1], data_at(data, i - 1));
        if (failure != cudaSuccess)
            return failure;
    }
    return cudaSuccess;
}

// --- Queries ---

// How many of COUNT are stored in an array of *SIZE.
static uint64_t stored_count(uint64_t count, const size_t *size) {
    return count < *size ? count : *size;
}

static void nodes_pad(cudaGraphNode_t *handles, uint64_t stored, size_t size) {
    if (sim__planted(SIM__PLANT_PADDING))
        return;
    for (uint64_t i = stored; handles != NULL && i < size; ++i)
        handles[i] = NULL;
}

static void data_pad(cudaGraphEdgeData *data, uint64_t stored, size_t size) {
    for (uint64_t i = stored; data != NULL && i < size; ++i)
        data[i] = (cudaGraphEdgeData){0};
}

static cudaError_t nodes_locked(cudaGraph_t handle, cudaGraphNode_t *handles, size_t *size,
                                bool roots) {
    struct sim__graph *graph;
    const cudaError_t error = sim__graph_resolve(handle, &graph);
    if (error != cudaSuccess || size == NULL)
        return cudaErrorInvalidValue;
    const uint64_t count = roots ? graph->root_count : graph->node_count;
    if (handles == NULL) {
        *size = count;
        return cudaSuccess;
    }
    const uint64_t stored = stored_count(count, size);
    const struct sim__node_link *link = roots ? graph->roots.next : graph->nodes.next;
    for (uint64_t i = 0; i < stored; ++i, link = link->next)
        handles[i] =
            sim__node_handle(roots ? SIM__NODE_OF(link, root) : SIM__NODE_OF(link, by_number));
    nodes_pad(handles, stored, *size);
    *size = stored;
    return cudaSuccess;
}

static cudaError_t edges_query_locked(cudaGraph_t handle, cudaGraphNode_t *from,
                                      cudaGraphNode_t *to, cudaGraphEdgeData *data, size_t *size) {
    struct sim__graph *graph;
    const cudaError_t error = sim__graph_resolve(handle, &graph);
    if (error != cudaSuccess || size == NULL || (from == NULL) != (to == NULL) ||
        (from == NULL && data != NULL))
        return cudaErrorInvalidValue;
    if (from == NULL) {
        *size = graph->edge_count;
        return cudaSuccess;
    }
    const uint64_t stored = stored_count(graph->edge_count, size);
    uint64_t at = 0;
    bool is_lossy = false;
    SIM__EACH_NODE(node, graph) {
        for (uint32_t i = 0; i < node->dependency_count && at < stored; ++i, ++at) {
            from[at] = sim__node_handle(node->dependencies[i].node);
            to[at] = sim__node_handle(node);
            is_lossy |= node->dependencies[i].data != 0;
            if (data != NULL)
                data[at] = sim__edge_unpack(node->dependencies[i].data);
        }
        if (at == stored)
            break;
    }
    if (is_lossy && data == NULL)
        return cudaErrorLossyQuery;
    nodes_pad(from, stored, *size);
    nodes_pad(to, stored, *size);
    data_pad(data, stored, *size);
    *size = stored;
    return cudaSuccess;
}

// Of the ends of a node. They are few, so that one loop costs less than memset for each array.
static void ends_pad(cudaGraphNode_t *handles, cudaGraphEdgeData *data, uint64_t stored,
                     size_t size) {
    if (sim__planted(SIM__PLANT_PADDING))
        return;
    for (uint64_t i = stored; i < size; ++i) {
        handles[i] = NULL;
        if (data != NULL)
            data[i] = (cudaGraphEdgeData){0};
    }
}

static cudaError_t ends_locked(cudaGraphNode_t handle, cudaGraphNode_t *handles,
                               cudaGraphEdgeData *data, size_t *size, bool dependents) {
    struct sim__node *node;
    const cudaError_t error = sim__node_resolve(handle, &node);
    if (error != cudaSuccess || size == NULL || (handles == NULL && data != NULL))
        return cudaErrorInvalidValue;
    const struct sim__edge_end *ends = dependents ? node->dependents : node->dependencies;
    const uint64_t count = dependents ? node->dependent_count : node->dependency_count;
    if (handles == NULL) {
        *size = count;
        return cudaSuccess;
    }
    const uint64_t stored = stored_count(count, size);
    for (uint64_t i = 0; i < stored && data == NULL; ++i) {
        if (ends[i].data != 0)
            return cudaErrorLossyQuery;
    }
    for (uint64_t i = 0; i < stored; ++i) {
        handles[i] = sim__node_handle(ends[i].node);
        if (data != NULL)
            data[i] = sim__edge_unpack(ends[i].data);
    }
    ends_pad(handles, data, stored, *size);
    *size = stored;
    return cudaSuccess;
}

static cudaError_t type_locked(cudaGraphNode_t handle, enum cudaGraphNodeType *type) {
    struct sim__node *node;
    const cudaError_t error = sim__node_resolve(handle, &node);
    if (error != cudaSuccess || type == NULL)
        return cudaErrorInvalidValue;
    *type = node->type;
    return cudaSuccess;
}

// --- The calls ---

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = create_locked(graph, flags);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = destroy_locked(graph);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphClone(cudaGraph_t *copy, cudaGraph_t graph) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = clone_locked(copy, graph);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *node, cudaGraphNode_t original,
                                     cudaGraph_t copy) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = find_locked(node, original, copy);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = destroy_node_locked(node);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *edge_data,
                                     size_t count) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = edges_locked(graph, from, to, edge_data, count, true);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to,
                                        const cudaGraphEdgeData *edge_data, size_t count) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = edges_locked(graph, from, to, edge_data, count, false);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = nodes_locked(graph, nodes, count, false);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = nodes_locked(graph, nodes, count, true);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *edge_data, size_t *count) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = edges_query_locked(graph, from, to, edge_data, count);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
                                         cudaGraphEdgeData *edge_data, size_t *count) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = ends_locked(node, dependencies, edge_data, count, false);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *dependents,
                                           cudaGraphEdgeData *edge_data, size_t *count) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = ends_locked(node, dependents, edge_data, count, true);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = type_locked(node, type);
    return sim__call_end(SIM__CALL_OTHER, error);
}
