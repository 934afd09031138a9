// Work, records and waits in a capture. Each piece of work depends on its stream's set and becomes
// it; a record copies the set into the event, a wait unites the event's with the stream's.
#include "simulator/capture.h"

#include "simulator/graph_memory.h"
#include "simulator/pool.h"
#include "simulator/plant.h"
#include "simulator/race_log.h"
#include "simulator/reading.h"

#include <stdlib.h>

// --- Nodes ---

static enum cudaGraphNodeType type_of(const struct sim__operation *operation) {
    switch (operation->kind) {
    case SIM__OPERATION_KERNEL: return cudaGraphNodeTypeKernel;
    case SIM__OPERATION_COPY: return cudaGraphNodeTypeMemcpy;
    case SIM__OPERATION_FILL: return cudaGraphNodeTypeMemset;
    case SIM__OPERATION_HOST_FUNCTION: return cudaGraphNodeTypeHost;
    case SIM__OPERATION_VALUE: return SIM__NODE_VALUE;
    default: break;
    }
    BASE_CHECK(false && "an operation that no program submits");
    return cudaGraphNodeTypeCount;
}

static bool data_fits(const struct sim__node_set *set, enum cudaGraphNodeType type) {
    if (set->data == NULL)
        return true;
    for (uint32_t i = 0; i < set->count; ++i)
        if (!sim__edge_fits(sim__edge_unpack(set->data[i]), set->nodes[i]->type, type))
            return false;
    return true;
}

// The part of STREAM, which captures, for new work.
static cudaError_t part_for_work(const struct sim__stream *stream, enum cudaGraphNodeType type,
                                 struct sim__capture_part **part) {
    *part = stream->capture;
    if ((*part)->capture->invalidated)
        return cudaErrorStreamCaptureInvalidated;
    return data_fits(&(*part)->set, type) ? cudaSuccess : cudaErrorInvalidValue;
}

static void note_node(const struct sim__capture_part *part, const struct sim__node *node) {
    const uint32_t origin = node->work != NULL ? sim__race_origin(&node->work->operation)
                                               : sim__race_origin_act(SIM__RACE_CALL, 0);
    sim__race_log_node(part->stream, part->capture->graph->number, node->number, origin);
}

// NODE stands behind the stream's set.
static void part_advance(struct sim__capture_part *part, struct sim__node *node) {
    node->stream = part->stream->number;
    if (sim__race_is_on())
        note_node(part, node);
    sim__capture_given_empty(part);
    sim__node_set_empty(&part->set);
    sim__node_set_add(&part->set, &node, NULL, 1);
}

// Takes WORK, which may be NULL.
static cudaError_t part_add(struct sim__capture_part *part, enum cudaGraphNodeType type,
                            struct sim__graph_work *work, struct sim__node **node) {
    *node = sim__graph_add(part->capture->graph, type, part->set.nodes, part->set.data,
                           part->set.count, work);
    if (*node == NULL) {
        sim__graph_work_release(work);
        return cudaErrorMemoryAllocation;
    }
    if (type == cudaGraphNodeTypeKernel)
        (*node)->attributes.priority = part->stream->priority;
    part_advance(part, *node);
    return cudaSuccess;
}

// Bytes that a copy reads at the call are read at each replay instead.
static struct sim__graph_work *work_of(const struct sim__capture_part *part,
                                       const struct sim__operation *operation) {
    const uint64_t graph = part->capture->graph->number;
    if (operation->kind != SIM__OPERATION_COPY || !operation->copy.stage)
        return sim__graph_work_create(operation, part->device, graph, part->stream);
    struct sim__operation unstaged = *operation;
    unstaged.copy.stage = false;
    return sim__graph_work_create(&unstaged, part->device, graph, part->stream);
}

cudaError_t sim__capture_enqueue(struct sim__stream *stream, const struct sim__operation *operation,
                                 bool *captured) {
    struct sim__capture_part *part;
    struct sim__node *node;
    *captured = stream->capture != NULL && !sim__planted(SIM__PLANT_CAPTURE_RUNS);
    if (!*captured)
        return sim__capture_legacy(stream);
    const enum cudaGraphNodeType type = type_of(operation);
    const cudaError_t error = part_for_work(stream, type, &part);
    if (error != cudaSuccess)
        return error;
    struct sim__graph_work *work = work_of(part, operation);
    return work != NULL ? part_add(part, type, work, &node) : cudaErrorMemoryAllocation;
}

// --- Memory ---

cudaError_t sim__capture_alloc(struct sim__stream *stream, int device, uint64_t size,
                               void **pointer) {
    struct sim__capture_part *part;
    struct sim__node *node;
    cudaError_t error = part_for_work(stream, cudaGraphNodeTypeMemAlloc, &part);
    if (error == cudaSuccess)
        error = sim__graph_memory_alloc(part->capture->graph, part->set.nodes, part->set.data,
                                        part->set.count, device, size, stream, &node,
                                        pointer);
    if (error == cudaSuccess)
        part_advance(part, node);
    return error;
}

static bool is_of_graph(const void *pointer) {
    const struct sim__block *block = sim__block_at(pointer);
    return block != NULL && block->graph != NULL;
}

cudaError_t sim__capture_free(struct sim__stream *stream, void *pointer) {
    struct sim__capture_part *part;
    struct sim__node *node;
    cudaError_t error = part_for_work(stream, cudaGraphNodeTypeMemFree, &part);
    if (error != cudaSuccess)
        return is_of_graph(pointer) ? error : cudaErrorInvalidValue;
    error = sim__graph_memory_free(part->capture->graph, part->set.nodes, part->set.data,
                                   part->set.count, (uint64_t)(uintptr_t)pointer, stream, &node);
    if (error == cudaSuccess)
        part_advance(part, node);
    else if (!sim__reading_other[SIM__READING_EAGER_FREE])
        sim__capture_lose(part->capture, error);
    return error;
}

// --- Events ---

void sim__event__uncapture(struct sim__event *event) {
    sim__node_set_free(&event->captured->set);
    free(event->captured);
    event->captured = NULL;
}

// A node that records EVENT, or waits for it, at each replay.
static cudaError_t event_node(struct sim__stream *stream, const struct sim__event *event,
                              enum cudaGraphNodeType type) {
    struct sim__capture_part *part;
    struct sim__node *node;
    cudaError_t error = part_for_work(stream, type, &part);
    if (error == cudaSuccess)
        error = part_add(part, type, NULL, &node);
    if (error == cudaSuccess)
        node->event = (cudaEvent_t)(uintptr_t)event->slot.handle;
    return error;
}

static cudaError_t external_outside(void) {
    return sim__reading_other[SIM__READING_EXTERNAL_OUTSIDE] ? cudaErrorIllegalState
                                                             : cudaErrorInvalidValue;
}

static cudaError_t record_in_capture(struct sim__capture_part *part, struct sim__event *event) {
    if (part->capture->invalidated)
        return cudaErrorStreamCaptureInvalidated;
    if (event->captured == NULL) {
        event->captured = calloc(1, sizeof *event->captured);
        if (event->captured == NULL)
            sim__host_limit("out of host memory for a captured event");
    }
    event->recorded = false;
    event->position = (struct sim__position){0};
    event->captured->id = part->capture->id;
    event->captured->part = part;
    if (sim__race_is_on())
        sim__race_log_record_captured(part->stream, event->slot.handle);
    sim__node_set_copy(&event->captured->set, &part->set);
    if (event->captured->set.count > 1 && sim__planted(SIM__PLANT_RECORD_PART))
        event->captured->set.count = 1;
    return cudaSuccess;
}

cudaError_t sim__capture_record(struct sim__stream *stream, struct sim__event *event, bool external,
                                bool *is_over) {
    *is_over = stream->capture != NULL;
    if (*is_over)
        return external && !sim__planted(SIM__PLANT_EXTERNAL)
                   ? event_node(stream, event, cudaGraphNodeTypeEventRecord)
                   : record_in_capture(stream->capture, event);
    if (external)
        return external_outside();
    const cudaError_t error = sim__capture_legacy(stream);
    if (error == cudaSuccess && !sim__planted(SIM__PLANT_CAPTURED_KEPT))
        sim__event_uncapture(event);
    return error;
}

// EVENT was not recorded in the stream's own capture.
static cudaError_t wait_for_foreign(struct sim__capture *capture, const struct sim__event *event,
                                    struct sim__capture *other) {
    if (other != NULL) {
        sim__capture_lose(capture, cudaErrorStreamCaptureMerge);
        if (!sim__planted(SIM__PLANT_MERGE))
            sim__capture_lose(other, cudaErrorStreamCaptureMerge);
        return cudaErrorStreamCaptureMerge;
    }
    if (!event->recorded && event->captured == NULL && !sim__reading_other[SIM__READING_NEVER_WAIT])
        return cudaSuccess;
    if (sim__planted(SIM__PLANT_ISOLATION))
        return cudaSuccess;
    sim__capture_lose(capture, cudaErrorStreamCaptureIsolation);
    return cudaErrorStreamCaptureIsolation;
}

static void note_wait(const struct sim__stream *stream, const struct sim__event *event) {
    const struct sim__stream *other = event->captured->part->stream;
    if (sim__race_is_on() && other != NULL)
        sim__race_log_wait_captured(stream, event->slot.handle, other->number);
}

static cudaError_t wait_of_capturing(struct sim__stream *stream, const struct sim__event *event,
                                     struct sim__capture *other) {
    struct sim__capture_part *part = stream->capture;
    if (part->capture->invalidated)
        return cudaErrorStreamCaptureInvalidated;
    if (other != part->capture)
        return wait_for_foreign(part->capture, event, other);
    const struct sim__event_capture *captured = event->captured;
    sim__capture_given_empty(part);
    if (sim__planted(SIM__PLANT_WAIT_REPLACES))
        sim__node_set_empty(&part->set);
    sim__node_set_add(&part->set, captured->set.nodes, captured->set.data, captured->set.count);
    if (captured->part != part)
        captured->part->waited_for = true;
    note_wait(stream, event);
    return cudaSuccess;
}

// OTHER runs: STREAM joins it.
static cudaError_t wait_to_join(struct sim__stream *stream, const struct sim__event *event,
                                struct sim__capture *other) {
    if (other->invalidated)
        return cudaErrorInvalidValue;
    if (stream->legacy) {
        sim__capture_lose(other, cudaErrorStreamCaptureImplicit);
        return cudaErrorStreamCaptureImplicit;
    }
    struct sim__capture_part *part = sim__capture_join(other, stream);
    sim__node_set_copy(&part->set, sim__planted(SIM__PLANT_JOIN_LATE)
                                       ? &event->captured->part->set
                                       : &event->captured->set);
    event->captured->part->waited_for = true;
    note_wait(stream, event);
    return cudaSuccess;
}

cudaError_t sim__capture_wait(struct sim__stream *stream, struct sim__event *event, bool external,
                              bool *is_over) {
    struct sim__capture *other =
        event->captured != NULL ? sim__capture_find(event->captured->id) : NULL;
    *is_over = true;
    if (stream->capture != NULL)
        return external ? event_node(stream, event, cudaGraphNodeTypeWaitEvent)
                        : wait_of_capturing(stream, event, other);
    if (external)
        return external_outside();
    if (other != NULL)
        return wait_to_join(stream, event, other);
    if (event->captured != NULL)
        return sim__reading_other[SIM__READING_ENDED_WAIT] ? cudaErrorCapturedEvent : cudaSuccess;
    *is_over = !event->recorded;
    return *is_over ? cudaSuccess : sim__capture_legacy(stream);
}
