// The calls that add nodes to graphs.
#include "simulator/call.h"
#include "simulator/checked.h"
#include "simulator/graph_memory.h"
#include "simulator/graph_params.h"
#include "simulator/plant.h"

#include <string.h>

#define NESTED_MAX 128 // child graphs in child graphs

// Where a program adds a node.
struct place {
    struct sim__graph *graph;
    struct sim__node *const *dependencies;
    const uint32_t *data;
    size_t count;
};

static cudaError_t place_of(struct place *place, const cudaGraphNode_t *node, cudaGraph_t graph,
                            enum cudaGraphNodeType type, const cudaGraphNode_t *dependencies,
                            const cudaGraphEdgeData *data, size_t count) {
    const cudaError_t error = sim__graph_resolve(graph, &place->graph);
    place->count = count;
    if (error != cudaSuccess || node == NULL)
        return cudaErrorInvalidValue;
    return sim__graph_dependencies(place->graph, type, dependencies, data, count,
                                   &place->dependencies, &place->data);
}

// The new node takes over what FORM holds; so does a failure.
static cudaError_t add(cudaGraphNode_t *handle, cudaGraph_t graph,
                       const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *data,
                       size_t count, const struct sim__node_form *form) {
    struct place place;
    struct sim__node *node = NULL;
    cudaError_t error = place_of(&place, handle, graph, form->type, dependencies, data, count);
    if (error == cudaSuccess) {
        node = sim__graph_add(place.graph, form->type, place.dependencies, place.data, count,
                              form->work);
        error = node == NULL ? cudaErrorMemoryAllocation : cudaSuccess;
    }
    if (error != cudaSuccess) {
        sim__graph_work_release(form->work);
        return error;
    }
    node->kind = form->kind;
    node->element_size = form->element_size;
    node->event = form->event;
    *handle = sim__node_handle(node);
    return cudaSuccess;
}

// --- Child graphs ---

static uint32_t depth_of(const struct sim__graph *graph) {
    uint32_t depth = 0;
    for (; graph->parent != NULL; graph = graph->parent->graph)
        ++depth;
    return depth;
}

// GRAPH, and those it is in, have COUNT memory nodes more, and child graphs at least so deep.
static void parents_tell(struct sim__graph *graph, uint64_t count, uint32_t height) {
    for (;;) {
        graph->memory_node_count += count;
        if (graph->height < height)
            graph->height = height;
        if (graph->parent == NULL)
            return;
        graph = graph->parent->graph;
        ++height;
    }
}

static bool is_inside(const struct sim__graph *graph, const struct sim__graph *other) {
    while (graph != other && graph->parent != NULL)
        graph = graph->parent->graph;
    return graph == other;
}

static cudaError_t child_check(const struct sim__graph *graph, const struct sim__graph *child,
                               bool moves) {
    if (child->moved || depth_of(graph) + 1 + child->height > NESTED_MAX)
        return cudaErrorInvalidValue;
    if (moves)
        return child->parent != NULL || child->capture != NULL || child->exec_count > 0 ||
                       is_inside(graph, child) ||
                       (child->memory_node_count > 0 && graph->exec_count > 0)
                   ? cudaErrorInvalidValue
                   : cudaSuccess;
    return child->memory_node_count > 0 ? cudaErrorNotSupported : cudaSuccess;
}

static cudaError_t child_add(cudaGraphNode_t *handle, cudaGraph_t graph,
                             const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *data,
                             size_t count, const struct cudaChildGraphNodeParams *parameters) {
    struct place place;
    struct sim__graph *child;
    const bool moves = parameters->ownership == cudaGraphChildGraphOwnershipMove ||
                       sim__planted(SIM__PLANT_CHILD_COPY);
    cudaError_t error =
        place_of(&place, handle, graph, cudaGraphNodeTypeGraph, dependencies, data, count);
    if (error == cudaSuccess)
        error = sim__graph_resolve(parameters->graph, &child);
    if (error == cudaSuccess)
        error = !moves && parameters->ownership != cudaGraphChildGraphOwnershipClone
                    ? cudaErrorInvalidValue
                    : child_check(place.graph, child, moves);
    if (error != cudaSuccess)
        return error;
    struct sim__graph *own = moves ? child : sim__graph_clone(child);
    struct sim__node *node =
        own == NULL ? NULL
                    : sim__graph_add(place.graph, cudaGraphNodeTypeGraph, place.dependencies,
                                     place.data, count, NULL);
    if (node == NULL) {
        if (own != NULL && !moves)
            sim__graph_destroy(own);
        return cudaErrorMemoryAllocation;
    }
    own->parent = node;
    own->moved = moves;
    node->child = own;
    parents_tell(place.graph, own->memory_node_count, own->height + 1);
    *handle = sim__node_handle(node);
    return cudaSuccess;
}

static cudaError_t child_get(cudaGraphNode_t handle, cudaGraph_t *graph) {
    struct sim__node *node;
    const cudaError_t error = sim__node_resolve(handle, &node);
    if (error != cudaSuccess || graph == NULL || node->child == NULL)
        return cudaErrorInvalidValue;
    *graph = sim__graph_handle(node->child);
    return cudaSuccess;
}

// --- Any type ---

static cudaError_t alloc_add(cudaGraphNode_t *handle, cudaGraph_t graph,
                             const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *data,
                             size_t count, struct cudaMemAllocNodeParamsV2 *parameters) {
    struct place place;
    struct sim__node *node;
    struct cudaMemAllocNodeParams passed;
    cudaError_t error =
        place_of(&place, handle, graph, cudaGraphNodeTypeMemAlloc, dependencies, data, count);
    memcpy(&passed, parameters, sizeof passed);
    if (error == cudaSuccess)
        error = sim__graph_add_alloc(place.graph, place.dependencies, place.data, count, &passed,
                                     &node);
    if (error != cudaSuccess)
        return error;
    parameters->dptr = passed.dptr;
    *handle = sim__node_handle(node);
    return cudaSuccess;
}

static cudaError_t free_add(cudaGraphNode_t *handle, cudaGraph_t graph,
                            const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *data,
                            size_t count, void *pointer) {
    struct place place;
    struct sim__node *node;
    cudaError_t error =
        place_of(&place, handle, graph, cudaGraphNodeTypeMemFree, dependencies, data, count);
    if (error == cudaSuccess)
        error = sim__graph_add_free(place.graph, place.dependencies, place.data, count, pointer,
                                    &node);
    if (error == cudaSuccess)
        *handle = sim__node_handle(node);
    return error;
}

static cudaError_t any_add(cudaGraphNode_t *handle, cudaGraph_t graph,
                           const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *data,
                           size_t count, struct cudaGraphNodeParams *parameters) {
    struct sim__node_form form;
    if (parameters == NULL)
        return cudaErrorInvalidValue;
    switch (parameters->type) {
    case cudaGraphNodeTypeGraph:
        return child_add(handle, graph, dependencies, data, count, &parameters->graph);
    case cudaGraphNodeTypeMemAlloc:
        return alloc_add(handle, graph, dependencies, data, count, &parameters->alloc);
    case cudaGraphNodeTypeMemFree:
        return free_add(handle, graph, dependencies, data, count, parameters->free.dptr);
    default: break;
    }
    const cudaError_t error = sim__form_any(&form, parameters);
    return error != cudaSuccess ? error : add(handle, graph, dependencies, data, count, &form);
}

// --- The calls ---

// No functions are registered.
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaKernelNodeParams *parameters) {
    (void)node, (void)graph, (void)dependencies, (void)count;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = parameters == NULL ? cudaErrorInvalidValue : cudaErrorInvalidDeviceFunction;
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaMemcpy3DParms *parameters) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_memcpy(&form, parameters);
    if (error == cudaSuccess)
        error = add(node, graph, dependencies, NULL, count, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *dependencies, size_t count,
                                     void *destination, const void *source, size_t size,
                                     enum cudaMemcpyKind kind) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_memcpy_1d(&form, destination, source, size, kind);
    if (error == cudaSuccess)
        error = add(node, graph, dependencies, NULL, count, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaMemsetParams *parameters) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_memset(&form, parameters);
    if (error == cudaSuccess)
        error = add(node, graph, dependencies, NULL, count, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *dependencies, size_t count,
                                 const struct cudaHostNodeParams *parameters) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_host(&form, parameters);
    if (error == cudaSuccess)
        error = add(node, graph, dependencies, NULL, count, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                       const cudaGraphNode_t *dependencies, size_t count,
                                       cudaGraph_t child) {
    const struct cudaChildGraphNodeParams parameters = {child, cudaGraphChildGraphOwnershipClone};
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = child_add(node, graph, dependencies, NULL, count, &parameters);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = child_get(node, graph);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies, size_t count) {
    const struct sim__node_form form = {.type = cudaGraphNodeTypeEmpty};
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = add(node, graph, dependencies, NULL, count, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

static cudaError_t event_node_add(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies, size_t count,
                                  enum cudaGraphNodeType type, cudaEvent_t event) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_event(&form, type, event);
    if (error == cudaSuccess)
        error = add(node, graph, dependencies, NULL, count, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                        const cudaGraphNode_t *dependencies, size_t count,
                                        cudaEvent_t event) {
    return event_node_add(node, graph, dependencies, count, cudaGraphNodeTypeEventRecord, event);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                      const cudaGraphNode_t *dependencies, size_t count,
                                      cudaEvent_t event) {
    return event_node_add(node, graph, dependencies, count, cudaGraphNodeTypeWaitEvent, event);
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                             const cudaGraphNode_t *dependencies,
                             const cudaGraphEdgeData *edge_data, size_t count,
                             struct cudaGraphNodeParams *parameters) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = any_add(node, graph, dependencies, edge_data, count, parameters);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                             unsigned int default_value, unsigned int flags) {
    (void)default_value;
    struct sim__graph *found;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__graph_resolve(graph, &found);
    if (error == cudaSuccess && (handle == NULL || flags > cudaGraphCondAssignDefault))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess) {
        if (sim__checked())
            sim__misuse("conditional nodes are not simulated");
        error = cudaErrorNotSupported;
    }
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t sim_graph_add_kernel(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *dependencies, size_t dependency_count,
                                 const struct sim_kernel *kernel) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_kernel(&form, kernel);
    if (error == cudaSuccess)
        error = add(node, graph, dependencies, NULL, dependency_count, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}
