// See capture_graph.h. Edge data is always asked for: a graph with programmatic edges refuses to
// name its edges otherwise. Such an edge counts as a full one, as the work behind it may begin
// early but the graph's next node does not end before.
#include "allocator/capture_graph.h"

#include "allocator/device.h"

#include <stdlib.h>

enum base_status cca__capture_state_read(cudaStream_t stream, struct cca__capture_state *state) {
    enum cudaStreamCaptureStatus status;
    unsigned long long capture;
    cudaGraph_t graph;
    const cudaGraphNode_t *terminals;
    const cudaGraphEdgeData *edges;
    size_t count;
    *state = (struct cca__capture_state){0};
    // The default stream cannot be captured, and asking it fails while a blocking stream is.
    if (stream == NULL || stream == cudaStreamLegacy) return BASE_OK;
    const cudaError_t error =
        cudaStreamGetCaptureInfo(stream, &status, &capture, &graph, &terminals, &edges, &count);
    if (error != cudaSuccess)
        return cca__cuda_failed(error, "cudaStreamGetCaptureInfo of stream %p", (void *)stream);
    state->status = status;
    if (status != cudaStreamCaptureStatusActive) return BASE_OK;
    *state = (struct cca__capture_state){
        .status = status,
        .is_active = true,
        .capture = capture,
        .graph = graph,
        .terminals = terminals,
        .terminal_count = count,
    };
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------

enum base_status cca__node_list_grow(struct cca__node_list *list, size_t more) {
    size_t capacity = list->capacity == 0 ? 32 : 2 * list->capacity;
    while (capacity - list->count < more)
        capacity *= 2;
    cudaGraphNode_t *const nodes = realloc(list->nodes, capacity * sizeof(cudaGraphNode_t));
    if (nodes == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu graph nodes",
                               capacity);
    list->nodes = nodes;
    list->capacity = capacity;
    return BASE_OK;
}

void cca__node_list_deinit(struct cca__node_list *list) {
    free(list->nodes);
    *list = (struct cca__node_list){0};
}

//------------------------------------------------------------------------------------------------

static enum base_status ask(cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges,
                            size_t *count) {
    const cudaError_t error = cudaGraphNodeGetDependencies(node, nodes, edges, count);
    if (error == cudaSuccess) return BASE_OK;
    return cca__cuda_failed(error, "cudaGraphNodeGetDependencies");
}

static enum base_status ask_many(cudaGraphNode_t node, struct cca__node_list *list) {
    size_t count = 0;
    enum base_status status = ask(node, NULL, NULL, &count);
    if (status == BASE_OK) status = cca__node_list_reserve(list, count);
    if (status != BASE_OK) return status;
    cudaGraphEdgeData *const edges = malloc(count * sizeof *edges);
    if (edges == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu graph edges", count);
    status = ask(node, list->nodes + list->count, edges, &count);
    free(edges);
    if (status == BASE_OK) list->count += count;
    return status;
}

enum base_status cca__node_dependencies_many(cudaGraphNode_t node, cudaError_t error,
                                             struct cca__node_list *list) {
    return error != cudaSuccess ? cca__cuda_failed(error, "cudaGraphNodeGetDependencies")
                                : ask_many(node, list);
}
