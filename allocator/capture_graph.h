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

// Appends the nodes that NODE depends on. One call of the driver where they are few.
enum base_status cca__node_dependencies(cudaGraphNode_t node,
                                        struct cca__node_list *list) BASE_MUST_USE;

#endif
