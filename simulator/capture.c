// Captures begin and end, and streams come and go. What a capture built so far is a graph as any
// other: a program may ask about it and extend it meanwhile, but nobody destroys it or takes nodes
// out, so that sets of nodes stay good.
//
// A stream that is destroyed leaves its part behind: work that it captured must still be joined. If
// it is the origin, nobody can end the capture any more: it ends there and then, without a graph.
#include "simulator/capture.h"

#include "simulator/call.h"
#include "simulator/checked.h"
#include "simulator/plant.h"
#include "simulator/reading.h"
#include "simulator/stream.h"

#include <inttypes.h>
#include <stdlib.h>

struct sim__capture *sim__captures;
uint32_t sim__capture_count;

static uint64_t last_id;

struct sim__capture *sim__capture_find(uint64_t id) {
    struct sim__capture *capture = sim__captures;
    while (capture != NULL && capture->id != id)
        capture = capture->next;
    return capture;
}

// --- Streams come ---

struct sim__capture_part *sim__capture_join(struct sim__capture *capture,
                                            struct sim__stream *stream) {
    struct sim__capture_part *part = calloc(1, sizeof *part);
    if (part == NULL)
        sim__host_limit("out of host memory for a stream's capture");
    part->capture = capture;
    part->stream = stream;
    part->handle = stream->slot.handle;
    part->device = stream->device;
    part->blocking = sim__stream_is_blocking(stream);
    part->next = capture->parts;
    capture->parts = part;
    stream->capture = part;
    return part;
}

// GRAPH is the program's, or NULL: a new one.
static struct sim__capture *capture_begin(struct sim__stream *stream, struct sim__graph *graph,
                                          enum cudaStreamCaptureMode mode) {
    struct sim__capture *capture = calloc(1, sizeof *capture);
    if (capture == NULL)
        sim__host_limit("out of host memory for a capture");
    capture->is_programs_graph = graph != NULL;
    capture->graph = graph != NULL ? graph : sim__graph_create();
    if (capture->graph == NULL) {
        free(capture);
        return NULL;
    }
    capture->beside = capture->graph->capture;
    capture->graph->capture = capture;
    capture->id = ++last_id;
    capture->mode = mode;
    capture->thread = sim__thread()->number;
    capture->origin = sim__capture_join(capture, stream);
    capture->next = sim__captures;
    sim__captures = capture;
    ++sim__capture_count;
    return capture;
}

static cudaError_t begin_check(cudaStream_t handle, enum cudaStreamCaptureMode mode,
                               struct sim__stream **stream) {
    if ((unsigned)mode > cudaStreamCaptureModeRelaxed)
        return cudaErrorInvalidValue;
    const cudaError_t error = sim__stream_resolve(handle, stream);
    if (error != cudaSuccess)
        return error;
    if ((*stream)->legacy)
        return cudaErrorStreamCaptureUnsupported;
    return (*stream)->capture != NULL ? cudaErrorIllegalState : cudaSuccess;
}

static cudaError_t begin_locked(cudaStream_t handle, enum cudaStreamCaptureMode mode) {
    struct sim__stream *stream;
    const cudaError_t error = begin_check(handle, mode, &stream);
    if (error != cudaSuccess)
        return error;
    return capture_begin(stream, NULL, mode) != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t begin_to_graph_locked(cudaStream_t handle, cudaGraph_t graph_handle,
                                         const cudaGraphNode_t *handles,
                                         const cudaGraphEdgeData *data, size_t count,
                                         enum cudaStreamCaptureMode mode) {
    struct sim__stream *stream;
    struct sim__graph *graph;
    struct sim__node *const *nodes;
    const uint32_t *packed;
    cudaError_t error = sim__graph_resolve(graph_handle, &graph);
    if (error == cudaSuccess)
        error = sim__graph_dependencies(graph, cudaGraphNodeTypeKernel, handles, data, count,
                                        &nodes, &packed);
    if (error == cudaSuccess)
        error = begin_check(handle, mode, &stream);
    if (error != cudaSuccess)
        return error;
    const struct sim__capture *capture = capture_begin(stream, graph, mode);
    sim__node_set_add(&capture->origin->set, nodes, packed, (uint32_t)count);
    return cudaSuccess;
}

// --- Streams go ---

static void part_free(struct sim__capture_part *part) {
    if (part->stream != NULL)
        part->stream->capture = NULL;
    sim__node_set_free(&part->set);
    free(part->given);
    free(part->given_data);
    free(part);
}

// All streams leave; the graph, if there still is one, becomes the caller's.
static struct sim__graph *capture_end(struct sim__capture *capture) {
    struct sim__graph *graph = capture->graph;
    struct sim__capture **link = &sim__captures;
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    --sim__capture_count;
    while (capture->parts != NULL) {
        struct sim__capture_part *part = capture->parts;
        capture->parts = part->next;
        part_free(part);
    }
    if (graph != NULL)
        sim__capture_graph_leave(capture);
    free(capture);
    return graph;
}

// Nobody gets the graph.
static void capture_drop(struct sim__capture *capture) {
    const bool is_programs_graph = capture->is_programs_graph;
    struct sim__graph *graph = capture_end(capture);
    if (graph != NULL && !is_programs_graph)
        sim__graph_destroy(graph);
}

void sim__capture_stream_ends(struct sim__stream *stream) {
    struct sim__capture_part *part = stream->capture;
    if (part == NULL)
        return;
    if (part == part->capture->origin) {
        capture_drop(part->capture);
    } else {
        part->stream = NULL;
        stream->capture = NULL;
    }
}

void sim__captures_clear(void) {
    for (uint32_t i = 0; i < sim__state.events.slot_count; ++i)
        sim__event_uncapture(sim__handle_slot_at(&sim__state.events, i));
    while (sim__captures != NULL)
        capture_drop(sim__captures);
}

// --- The end ---

// Nodes whose dependencies are still to be looked at.
struct stack {
    struct sim__node **nodes;
    size_t count, size;
};

static void stack_push(struct stack *stack, struct sim__node *node, uint64_t mark) {
    if (node->mark == mark)
        return;
    node->mark = mark;
    if (stack->count == stack->size) {
        stack->size = stack->size == 0 ? 64 : 2 * stack->size;
        stack->nodes = realloc(stack->nodes, stack->size * sizeof(struct sim__node *));
        if (stack->nodes == NULL)
            sim__host_limit("out of host memory for a walk over %zu nodes", stack->size);
    }
    stack->nodes[stack->count++] = node;
}

// Marks all that the nodes of SET are, or come after.
static void mark_before(const struct sim__node_set *set, uint64_t mark) {
    struct stack stack = {0};
    for (uint32_t i = 0; i < set->count; ++i)
        stack_push(&stack, set->nodes[i], mark);
    while (stack.count > 0) {
        const struct sim__node *node = stack.nodes[--stack.count];
        for (uint32_t i = 0; i < node->dependency_count; ++i)
            stack_push(&stack, node->dependencies[i].node, mark);
    }
    free(stack.nodes);
}

static bool is_marked(const struct sim__node_set *set, uint64_t mark) {
    for (uint32_t i = 0; i < set->count; ++i)
        if (set->nodes[i]->mark != mark)
            return false;
    return true;
}

// A stream of which the origin does not come after all that it captured; NULL if there is none.
static const struct sim__capture_part *unjoined(const struct sim__capture *capture) {
    const struct sim__capture_part *part = capture->parts;
    bool all_empty = true;
    for (; part != NULL; part = part->next) {
        if (part == capture->origin)
            continue;
        if (!part->waited_for && sim__reading_other[SIM__READING_EMPTY_FORK])
            return part;
        all_empty &= part->set.count == 0;
    }
    if (all_empty)
        return NULL;
    const uint64_t mark = sim__graph_mark();
    mark_before(&capture->origin->set, mark);
    part = capture->parts;
    while (part != NULL && is_marked(&part->set, mark))
        part = part->next;
    return part;
}

static cudaError_t join_check(const struct sim__capture *capture) {
    const struct sim__capture_part *part = unjoined(capture);
    if (part == NULL || sim__planted(SIM__PLANT_UNJOINED))
        return cudaSuccess;
    if (sim__checked())
        sim__misuse("stream 0x%" PRIx64 " took part in the capture, and no wait brings its work "
                    "back to stream 0x%" PRIx64,
                    part->handle, capture->origin->handle);
    return cudaErrorStreamCaptureUnjoined;
}

static cudaError_t end_check(struct sim__capture_part *part) {
    struct sim__capture *capture = part->capture;
    cudaError_t error = cudaSuccess;
    if (part != capture->origin && !sim__planted(SIM__PLANT_END_JOINED))
        error = cudaErrorStreamCaptureUnmatched;
    else if (sim__thread()->number != capture->thread &&
             capture->mode != cudaStreamCaptureModeRelaxed &&
             !sim__planted(SIM__PLANT_END_THREAD))
        error = cudaErrorStreamCaptureWrongThread;
    if (error != cudaSuccess && !sim__reading_other[SIM__READING_WRONG_END])
        sim__capture_lose(capture, error);
    return error;
}

static cudaError_t end_locked(cudaStream_t handle, cudaGraph_t *graph_handle) {
    struct sim__stream *stream;
    if (graph_handle == NULL)
        return cudaErrorInvalidValue;
    cudaError_t error = sim__stream_resolve(handle, &stream);
    if (error == cudaSuccess && stream->capture == NULL)
        error = cudaErrorIllegalState;
    if (error == cudaSuccess)
        error = end_check(stream->capture);
    if (error != cudaSuccess)
        return error;
    struct sim__capture *capture = stream->capture->capture;
    error = capture->invalidated ? cudaErrorStreamCaptureInvalidated : join_check(capture);
    if (error == cudaSuccess) {
        *graph_handle = sim__graph_handle(capture_end(capture));
        return cudaSuccess;
    }
    if (!sim__planted(SIM__PLANT_END_KEEPS))
        capture_drop(capture);
    *graph_handle = NULL;
    return error;
}

// --- The calls ---

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    cudaError_t error = sim__call_begin(SIM_CALL_STREAM_BEGIN_CAPTURE);
    if (error == cudaSuccess)
        error = begin_locked(stream, mode);
    return sim__call_end(SIM_CALL_STREAM_BEGIN_CAPTURE, error);
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t *dependencies,
                                          const cudaGraphEdgeData *dependency_data, size_t count,
                                          enum cudaStreamCaptureMode mode) {
    cudaError_t error = sim__call_begin(SIM_CALL_STREAM_BEGIN_CAPTURE);
    if (error == cudaSuccess)
        error = begin_to_graph_locked(stream, graph, dependencies, dependency_data, count, mode);
    return sim__call_end(SIM_CALL_STREAM_BEGIN_CAPTURE, error);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    cudaError_t error = sim__call_begin(SIM_CALL_STREAM_END_CAPTURE);
    if (error == cudaSuccess)
        error = end_locked(stream, graph);
    return sim__call_end(SIM_CALL_STREAM_END_CAPTURE, error);
}
