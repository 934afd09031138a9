// What a capture looks like from outside: the state of a stream, and the edges of its graph. All of
// it is asked of the driver; nothing is kept.
#ifndef TIDEMARK_ALLOCATOR_CAPTURE_GRAPH_H
#define TIDEMARK_ALLOCATOR_CAPTURE_GRAPH_H

#include "base/status.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

struct cca__capture_state {
    enum cudaStreamCaptureStatus status;
    bool is_active; // the stream is being captured; the rest is set only then
    unsigned long long capture;
    cudaGraph_t graph;
    // What the next captured operation would depend on: the stream's *terminals*. The driver's own
    // array, valid until the next call for this stream.
    const cudaGraphNode_t *terminals;
    size_t terminal_count;
};

// An invalidated capture is not active.
enum base_status cca__capture_state_read(cudaStream_t stream,
                                         struct cca__capture_state *state) BASE_MUST_USE;

struct cca__node_list {
    cudaGraphNode_t *nodes;
    size_t count, capacity;
};
enum base_status cca__node_list_grow(struct cca__node_list *list, size_t more) BASE_MUST_USE;
BASE_MUST_USE static inline enum base_status cca__node_list_reserve(struct cca__node_list *list,
                                                                    size_t more) {
    return list->capacity - list->count >= more ? BASE_OK : cca__node_list_grow(list, more);
}
BASE_MUST_USE static inline enum base_status cca__node_list_push(struct cca__node_list *list,
                                                                 cudaGraphNode_t node) {
    const enum base_status status = cca__node_list_reserve(list, 1);
    if (status == BASE_OK) list->nodes[list->count++] = node;
    return status;
}
void cca__node_list_deinit(struct cca__node_list *list);

// A node rarely depends on more than two; those with so many are asked again. The driver clears
// what it does not fill, so room costs.
#define CCA__DEPENDENCIES_AT_ONCE 4

// After the question failed with ERROR, or found that many.
enum base_status cca__node_dependencies_many(cudaGraphNode_t node, cudaError_t error,
                                             struct cca__node_list *list) BASE_MUST_USE;

// Appends the nodes that NODE depends on. One call of the driver where they are few.
BASE_MUST_USE static inline enum base_status cca__node_dependencies(cudaGraphNode_t node,
                                                                    struct cca__node_list *list) {
    cudaGraphEdgeData edges[CCA__DEPENDENCIES_AT_ONCE];
    const enum base_status status = cca__node_list_reserve(list, CCA__DEPENDENCIES_AT_ONCE);
    if (__builtin_expect(status != BASE_OK, 0)) return status;
    size_t count = CCA__DEPENDENCIES_AT_ONCE;
    const cudaError_t error =
        cudaGraphNodeGetDependencies(node, list->nodes + list->count, edges, &count);
    if (__builtin_expect(error != cudaSuccess || count == CCA__DEPENDENCIES_AT_ONCE, 0))
        return cca__node_dependencies_many(node, error, list);
    list->count += count;
    return BASE_OK;
}

#endif
