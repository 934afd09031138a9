// See capture_markers.h. A node's number of *terminals that come behind it* is counted by one walk
// a terminal; a marker is proven when all count it.
#include "allocator/capture_markers.h"

#include "allocator/capture_graph.h"
#include "allocator/device.h"
#include "base/address_map.h"

#include <stdlib.h>
#include <string.h>

struct cca__marked_free {
    uint64_t token;
    cudaStream_t stream;
    unsigned long long capture;
    struct cca__node_list nodes; // the markers
};

// An empty node behind all of STREAM, before all that it captures from here on.
static enum base_status add_marker(cudaStream_t stream, const struct cca__capture_state *state,
                                   cudaGraphNode_t *marker) {
    cudaError_t error =
        cudaGraphAddEmptyNode(marker, state->graph, state->terminals, state->terminal_count);
    if (error != cudaSuccess) return cca__cuda_failed(error, "cudaGraphAddEmptyNode");
    error = cudaStreamUpdateCaptureDependencies(stream, marker, NULL, 1,
                                                cudaStreamSetCaptureDependencies);
    if (error == cudaSuccess) return BASE_OK;
    return cca__cuda_failed(error, "cudaStreamUpdateCaptureDependencies of stream %p",
                            (void *)stream);
}

static enum base_status mark_streams(const struct cca__capture_state *first,
                                     const cudaStream_t *streams, size_t stream_count,
                                     struct cca__marked_free *freed) {
    struct cca__capture_state state = *first;
    for (size_t index = 0; index < stream_count; ++index) {
        cudaGraphNode_t marker;
        enum base_status status =
            index == 0 ? BASE_OK : cca__capture_state_read(streams[index], &state);
        if (status != BASE_OK) return status;
        if (!state.is_active || (index > 0 && state.capture != freed->capture)) {
            freed->nodes.count = 0;
            return BASE_OK;
        }
        freed->capture = state.capture;
        status = add_marker(streams[index], &state, &marker);
        if (status == BASE_OK) status = cca__node_list_push(&freed->nodes, marker);
        if (status != BASE_OK) return status;
    }
    return BASE_OK;
}

static enum base_status reserve(struct cca__capture_markers *markers) {
    if (markers->count < markers->capacity) return BASE_OK;
    const size_t capacity = markers->capacity == 0 ? 64 : 2 * markers->capacity;
    struct cca__marked_free *const frees =
        realloc(markers->frees, capacity * sizeof *markers->frees);
    if (frees != NULL) markers->frees = frees;
    uint64_t *const proven =
        frees == NULL ? NULL : realloc(markers->proven, capacity * sizeof *proven);
    if (proven == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu deferred frees",
                               capacity);
    markers->proven = proven;
    markers->capacity = markers->proven_capacity = capacity;
    return BASE_OK;
}

enum base_status cca__markers_defer(struct cca__capture_markers *markers,
                                    const struct cca__capture_state *state,
                                    const cudaStream_t *streams, size_t stream_count,
                                    uint64_t token, bool *is_marked) {
    struct cca__marked_free freed = {.token = token, .stream = streams[0]};
    enum base_status status = reserve(markers);
    if (status == BASE_OK) status = mark_streams(state, streams, stream_count, &freed);
    if (status != BASE_OK || freed.nodes.count == 0) {
        cca__node_list_deinit(&freed.nodes);
        if (status == BASE_OK) *is_marked = false;
        return status;
    }
    markers->frees[markers->count++] = freed;
    *is_marked = true;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// The question.

struct reach {
    struct base_address_map behind; // node: how many terminals come behind it, or are it
    struct cca__node_list stack, dependencies;
    uint64_t terminal_count;
};

// Counts a terminal for NODE, once, and goes on to what it depends on.
static enum base_status count_node(struct reach *reach, cudaGraphNode_t node) {
    const uint64_t key = (uint64_t)(uintptr_t)node, walk = reach->terminal_count;
    uint64_t counted;
    // Two numbers in one: the terminals counted, and the last walk that did.
    if (!base_address_map_get(&reach->behind, key, &counted)) counted = 0;
    if ((uint32_t)counted == (uint32_t)walk) return BASE_OK;
    const enum base_status status =
        base_address_map_set(&reach->behind, key, ((counted >> 32) + 1) << 32 | (uint32_t)walk);
    return status == BASE_OK ? cca__node_list_push(&reach->stack, node) : status;
}

static enum base_status reach_from(struct reach *reach, cudaGraphNode_t terminal) {
    ++reach->terminal_count;
    enum base_status status = count_node(reach, terminal);
    while (reach->stack.count > 0 && status == BASE_OK) {
        const cudaGraphNode_t node = reach->stack.nodes[--reach->stack.count];
        reach->dependencies.count = 0;
        status = cca__node_dependencies(node, &reach->dependencies);
        for (size_t index = 0; index < reach->dependencies.count && status == BASE_OK; ++index)
            status = count_node(reach, reach->dependencies.nodes[index]);
    }
    return status;
}

static enum base_status reach_from_stream(struct reach *reach,
                                          const struct cca__capture_state *state,
                                          unsigned long long capture) {
    if (!state->is_active || state->capture != capture) return BASE_OK;
    struct cca__node_list terminals = {0};
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < state->terminal_count && status == BASE_OK; ++index)
        status = cca__node_list_push(&terminals, state->terminals[index]);
    for (size_t index = 0; index < terminals.count && status == BASE_OK; ++index)
        status = reach_from(reach, terminals.nodes[index]);
    cca__node_list_deinit(&terminals);
    return status;
}

static enum base_status reach_from_all(struct reach *reach, const cudaStream_t *streams,
                                       size_t stream_count, unsigned long long capture) {
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < stream_count && status == BASE_OK; ++index) {
        struct cca__capture_state state;
        status = cca__capture_state_read(streams[index], &state);
        if (status == BASE_OK) status = reach_from_stream(reach, &state, capture);
    }
    return status;
}

static bool is_proven(const struct reach *reach, const struct cca__marked_free *freed) {
    for (size_t index = 0; index < freed->nodes.count; ++index) {
        uint64_t counted;
        if (!base_address_map_get(&reach->behind, (uint64_t)(uintptr_t)freed->nodes.nodes[index],
                                  &counted) ||
            counted >> 32 != reach->terminal_count)
            return false;
    }
    return true;
}

static void take_proven(struct cca__capture_markers *markers, const struct reach *reach,
                        cudaStream_t stream, unsigned long long capture, size_t *count) {
    size_t kept = 0;
    for (size_t index = 0; index < markers->count; ++index) {
        struct cca__marked_free *const freed = &markers->frees[index];
        if (freed->capture == capture &&
            (markers->rule == CCA__MARKERS_GRAPH_WIDE || freed->stream == stream) &&
            is_proven(reach, freed)) {
            markers->proven[(*count)++] = freed->token;
            cca__node_list_deinit(&freed->nodes);
        } else {
            markers->frees[kept++] = *freed;
        }
    }
    markers->count = kept;
}

enum base_status cca__markers_look(struct cca__capture_markers *markers, cudaStream_t stream,
                                   const struct cca__capture_state *state,
                                   const cudaStream_t *streams, size_t stream_count,
                                   const uint64_t **tokens, size_t *count) {
    const unsigned long long capture = state->capture; // STATE goes with the next question
    struct reach reach = {0};
    *tokens = NULL;
    *count = 0;
    if (!state->is_active || state->terminal_count == 0) return BASE_OK;
    const enum base_status status = markers->rule == CCA__MARKERS_PER_STREAM
                                        ? reach_from_stream(&reach, state, capture)
                                        : reach_from_all(&reach, streams, stream_count, capture);
    if (status == BASE_OK) {
        take_proven(markers, &reach, stream, capture, count);
        *tokens = markers->proven;
    }
    base_address_map_deinit(&reach.behind);
    cca__node_list_deinit(&reach.stack);
    cca__node_list_deinit(&reach.dependencies);
    return status;
}

void cca__markers_drop(struct cca__capture_markers *markers, uint64_t token) {
    for (size_t index = 0; index < markers->count; ++index) {
        if (markers->frees[index].token != token) continue;
        cca__node_list_deinit(&markers->frees[index].nodes);
        memmove(&markers->frees[index], &markers->frees[index + 1],
                (markers->count - index - 1) * sizeof *markers->frees);
        --markers->count;
        return;
    }
}

void cca__markers_deinit(struct cca__capture_markers *markers) {
    for (size_t index = 0; index < markers->count; ++index)
        cca__node_list_deinit(&markers->frees[index].nodes);
    free(markers->frees);
    free(markers->proven);
    *markers = (struct cca__capture_markers){.rule = markers->rule};
}
