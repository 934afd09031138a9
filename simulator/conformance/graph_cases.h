// What cases about capture and graphs have in common: nodes of one kind, and words for what they
// see. calls.py takes these functions as those of each file that includes them.
//
// Whether a node has run is seen by event nodes: a wait node is pending as long as the gate before
// its event's record is closed, a record node says that what it depends on is complete. A GPU
// understands both.
#ifndef TIDEMARK_SIMULATOR_CONFORMANCE_GRAPH_CASES_H
#define TIDEMARK_SIMULATOR_CONFORMANCE_GRAPH_CASES_H

#include "simulator/conformance/cases.h"

#define BYTES 16

static const enum cudaStreamCaptureMode capture_modes[] = {
    cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};
#define MODE_COUNT 3

// --- Capture ---

// "none", "active" or "invalidated"; the code, if it cannot be asked.
static inline void answer_status(struct conformance *c, const char *label, cudaStream_t stream) {
    static const char *const words[] = {"none", "active", "invalidated"};
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t error = cudaStreamIsCapturing(stream, &status);
    if (error != cudaSuccess)
        answer_code(c, label, error);
    else
        answer_word(c, label, words[status]);
}

static inline cudaError_t capture_begin(cudaStream_t stream) {
    return cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
}

// The graph lasts until the case ends. NULL, with the code in the answer, if the capture fails.
static inline cudaGraph_t capture_end(struct conformance *c, cudaStream_t stream) {
    cudaGraph_t graph = NULL;
    const cudaError_t error = cudaStreamEndCapture(stream, &graph);
    if (error != cudaSuccess)
        answer_code(c, "cudaStreamEndCapture", error);
    conformance_keep_graph(c, graph);
    return graph;
}

static inline void answer_end(struct conformance *c, const char *label, cudaStream_t stream) {
    cudaGraph_t graph = NULL;
    answer_code(c, label, cudaStreamEndCapture(stream, &graph));
    conformance_keep_graph(c, graph);
}

// Which calls the thread may make; the former mode.
static inline enum cudaStreamCaptureMode mode_exchange(enum cudaStreamCaptureMode mode) {
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

// STREAM joins the capture of CAPTURING, or the other way round comes back to it.
static inline cudaError_t stream_follow(struct conformance *c, cudaStream_t stream,
                                        cudaStream_t capturing) {
    return cudaStreamWaitEvent(stream, conformance_mark(c, capturing), 0);
}

// --- Nodes: NULL, with the code in the answer, if one cannot be made ---

static inline cudaGraphNode_t node_made(struct conformance *c, cudaError_t error,
                                        cudaGraphNode_t node) {
    if (error != cudaSuccess)
        answer_code(c, "node", error);
    return error == cudaSuccess ? node : NULL;
}

static inline cudaGraphNode_t empty_node(struct conformance *c, cudaGraph_t graph,
                                         const cudaGraphNode_t *dependencies, size_t count) {
    cudaGraphNode_t node = NULL;
    const cudaError_t error = cudaGraphAddEmptyNode(&node, graph, dependencies, count);
    return node_made(c, error, node);
}

static inline struct cudaMemsetParams fill(void *memory, int value) {
    return (struct cudaMemsetParams){.dst = memory,
                                     .pitch = BYTES,
                                     .value = (unsigned)value,
                                     .elementSize = 1,
                                     .width = BYTES,
                                     .height = 1};
}

static inline cudaGraphNode_t fill_node(struct conformance *c, cudaGraph_t graph,
                                        const cudaGraphNode_t *dependencies, size_t count,
                                        void *memory, int value) {
    cudaGraphNode_t node = NULL;
    const struct cudaMemsetParams parameters = fill(memory, value);
    const cudaError_t error =
        cudaGraphAddMemsetNode(&node, graph, dependencies, count, &parameters);
    return node_made(c, error, node);
}

static inline cudaGraphNode_t copy_node(struct conformance *c, cudaGraph_t graph,
                                        const cudaGraphNode_t *dependencies, size_t count,
                                        void *to, const void *from) {
    cudaGraphNode_t node = NULL;
    const cudaError_t error = cudaGraphAddMemcpyNode1D(&node, graph, dependencies, count, to, from,
                                                       BYTES, cudaMemcpyDefault);
    return node_made(c, error, node);
}

static inline cudaGraphNode_t host_node(struct conformance *c, cudaGraph_t graph,
                                        const cudaGraphNode_t *dependencies, size_t count,
                                        cudaHostFn_t function, void *argument) {
    cudaGraphNode_t node = NULL;
    const struct cudaHostNodeParams parameters = {function, argument};
    const cudaError_t error = cudaGraphAddHostNode(&node, graph, dependencies, count, &parameters);
    return node_made(c, error, node);
}

static inline cudaGraphNode_t wait_node(struct conformance *c, cudaGraph_t graph,
                                        const cudaGraphNode_t *dependencies, size_t count,
                                        cudaEvent_t event) {
    cudaGraphNode_t node = NULL;
    const cudaError_t error =
        cudaGraphAddEventWaitNode(&node, graph, dependencies, count, event);
    return node_made(c, error, node);
}

static inline cudaGraphNode_t record_node(struct conformance *c, cudaGraph_t graph,
                                          const cudaGraphNode_t *dependencies, size_t count,
                                          cudaEvent_t event) {
    cudaGraphNode_t node = NULL;
    const cudaError_t error =
        cudaGraphAddEventRecordNode(&node, graph, dependencies, count, event);
    return node_made(c, error, node);
}

// --- What a graph holds ---

static inline void answer_node_count(struct conformance *c, const char *label, cudaGraph_t graph) {
    size_t count = 0;
    const cudaError_t error = cudaGraphGetNodes(graph, NULL, &count);
    if (error != cudaSuccess)
        answer_code(c, label, error);
    else
        answer_number(c, label, (int64_t)count);
}

static inline void answer_edge_count(struct conformance *c, const char *label, cudaGraph_t graph) {
    size_t count = 0;
    const cudaError_t error = cudaGraphGetEdges(graph, NULL, NULL, NULL, &count);
    if (error != cudaSuccess)
        answer_code(c, label, error);
    else
        answer_number(c, label, (int64_t)count);
}

// The number of edges that lead to NODE.
static inline void answer_dependency_count(struct conformance *c, const char *label,
                                           cudaGraphNode_t node) {
    size_t count = 0;
    const cudaError_t error = cudaGraphNodeGetDependencies(node, NULL, NULL, &count);
    if (error != cudaSuccess)
        answer_code(c, label, error);
    else
        answer_number(c, label, (int64_t)count);
}

static inline bool has_edge(cudaGraphNode_t from, cudaGraphNode_t to) {
    cudaGraphNode_t nodes[BYTES];
    size_t count = BYTES;
    if (cudaGraphNodeGetDependencies(to, nodes, NULL, &count) != cudaSuccess)
        return false;
    for (size_t i = 0; i < count; ++i)
        if (nodes[i] == from)
            return true;
    return false;
}

// The node that STREAM's next one would depend on, if that is one; else NULL.
static inline cudaGraphNode_t stream_tip(cudaStream_t stream) {
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *nodes = NULL;
    size_t count = 0;
    const cudaError_t error =
        cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, &nodes, NULL, &count);
    return error == cudaSuccess && status == cudaStreamCaptureStatusActive && count == 1 ? nodes[0]
                                                                                         : NULL;
}

// The graph that STREAM's capture builds; NULL if there is none.
static inline cudaGraph_t stream_graph(cudaStream_t stream) {
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph = NULL;
    const cudaError_t error =
        cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, NULL, NULL, NULL);
    return error == cudaSuccess && status == cudaStreamCaptureStatusActive ? graph : NULL;
}

#endif
