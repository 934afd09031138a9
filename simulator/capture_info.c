// What programs ask about a capture, and its dependencies changed by hand. Asking the legacy stream
// while a blocking stream of its device captures is refused, and harmless.
#include "simulator/capture.h"

#include "simulator/call.h"
#include "simulator/plant.h"
#include "simulator/stream.h"

#include <stdlib.h>
#include <string.h>

// The stream for a question whose answer goes to OUT.
static cudaError_t resolve_for(const void *out, cudaStream_t handle, struct sim__stream **stream) {
    if (out == NULL)
        return cudaErrorInvalidValue;
    const cudaError_t error = sim__stream_resolve(handle, stream);
    if (error != cudaSuccess)
        return error;
    return sim__capture_meets_legacy(*stream) ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}

static enum cudaStreamCaptureStatus status_of(const struct sim__stream *stream) {
    if (stream->capture == NULL)
        return cudaStreamCaptureStatusNone;
    return stream->capture->capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                                 : cudaStreamCaptureStatusActive;
}

// --- The set, as the program is told it ---

void sim__capture__given_empty(struct sim__capture_part *part) {
    memset(part->given, 0, part->given_count * sizeof *part->given);
    part->given_count = 0;
}

static void given_grow(struct sim__capture_part *part, uint32_t count) {
    if (count <= part->given_size)
        return;
    free(part->given);
    free(part->given_data);
    part->given = malloc(count * sizeof *part->given);
    part->given_data = malloc(count * sizeof *part->given_data);
    if (part->given == NULL || part->given_data == NULL)
        sim__host_limit("out of host memory for a capture's %u dependencies", count);
    part->given_size = count;
}

static void given_fill(struct sim__capture_part *part) {
    const struct sim__node_set *set = &part->set;
    sim__capture_given_empty(part);
    given_grow(part, set->count);
    for (uint32_t i = 0; i < set->count; ++i) {
        part->given[i] = sim__node_handle(set->nodes[i]);
        part->given_data[i] = sim__edge_unpack(set->data == NULL ? 0 : set->data[i]);
    }
    part->given_count = set->count;
}

static bool set_has_data(const struct sim__node_set *set) {
    for (uint32_t i = 0; set->data != NULL && i < set->count; ++i)
        if (set->data[i] != 0)
            return true;
    return false;
}

static cudaError_t info_locked(struct sim__stream *stream, unsigned long long *id,
                               cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                               const cudaGraphEdgeData **data, size_t *count) {
    struct sim__capture_part *part = stream->capture;
    if (dependencies != NULL && data == NULL && set_has_data(&part->set))
        return cudaErrorLossyQuery;
    if (id != NULL)
        *id = part->capture->id;
    if (graph != NULL)
        *graph = sim__graph_handle(part->capture->graph);
    if (dependencies != NULL || data != NULL)
        given_fill(part);
    if (dependencies != NULL)
        *dependencies = part->given;
    if (data != NULL)
        *data = part->given_data;
    if (count != NULL)
        *count = part->set.count;
    return cudaSuccess;
}

// --- Dependencies changed by hand ---

static cudaError_t update_locked(cudaStream_t handle, const cudaGraphNode_t *dependencies,
                                 const cudaGraphEdgeData *data, size_t count, unsigned int flags) {
    struct sim__stream *stream;
    struct sim__node *const *nodes;
    const uint32_t *packed;
    cudaError_t error = sim__stream_resolve(handle, &stream);
    if (error != cudaSuccess)
        return error;
    struct sim__capture_part *part = stream->capture;
    if (part == NULL)
        return cudaErrorIllegalState;
    if (flags > cudaStreamSetCaptureDependencies)
        return cudaErrorInvalidValue;
    if (part->capture->invalidated)
        return cudaErrorStreamCaptureInvalidated;
    error = sim__graph_dependencies(part->capture->graph, cudaGraphNodeTypeKernel, dependencies,
                                    data, count, &nodes, &packed);
    if (error != cudaSuccess)
        return error;
    sim__capture_given_empty(part);
    if (flags == cudaStreamSetCaptureDependencies && !sim__planted(SIM__PLANT_TIPS_SET))
        sim__node_set_empty(&part->set);
    sim__node_set_add(&part->set, nodes, packed, (uint32_t)count);
    return cudaSuccess;
}

// --- The calls ---

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status) {
    struct sim__stream *stream;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess && (error = resolve_for(status, handle, &stream)) == cudaSuccess)
        *status = status_of(stream);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edge_data, size_t *count) {
    struct sim__stream *stream;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess && (error = resolve_for(status, handle, &stream)) == cudaSuccess) {
        *status = status_of(stream);
        if (*status == cudaStreamCaptureStatusActive)
            error = info_locked(stream, id, graph, dependencies, edge_data, count);
    }
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                const cudaGraphEdgeData *dependency_data,
                                                size_t count, unsigned int flags) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = update_locked(stream, dependencies, dependency_data, count, flags);
    return sim__call_end(SIM__CALL_OTHER, error);
}
