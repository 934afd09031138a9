// What is refused while captures run, and what that does to them. Which captures an unsafe call
// conflicts with is a matter of the thread's mode and of each capture's own; some calls conflict in
// any mode: the host waits for what never runs, or work of the legacy stream would have to be
// ordered with work that is none yet.
#include "simulator/capture.h"

#include "simulator/call.h"
#include "simulator/checked.h"
#include "simulator/plant.h"
#include "simulator/reading.h"

#include <inttypes.h>

void sim__capture_graph_leave(struct sim__capture *capture) {
    struct sim__capture **link = &capture->graph->capture;
    while (*link != capture)
        link = &(*link)->beside;
    *link = capture->beside;
    capture->graph = NULL;
}

static void invalidate(struct sim__capture *capture) {
    capture->invalidated = true;
    sim__capture_graph_leave(capture);
    for (struct sim__capture_part *part = capture->parts; part != NULL; part = part->next) {
        sim__node_set_empty(&part->set);
        sim__capture_given_empty(part);
    }
}

void sim__capture_graph_ends(struct sim__graph *graph) {
    while (graph->capture != NULL)
        invalidate(graph->capture);
}

void sim__capture_lose(struct sim__capture *capture, cudaError_t error) {
    if (capture->invalidated || sim__planted(SIM__PLANT_CAPTURE_SPARED))
        return;
    if (sim__checked())
        sim__misuse("%s: the %s capture that %s thread began in stream 0x%" PRIx64 " is lost",
                    cudaGetErrorName(error),
                    capture->mode == cudaStreamCaptureModeGlobal        ? "global"
                    : capture->mode == cudaStreamCaptureModeThreadLocal ? "thread-local"
                                                                        : "relaxed",
                    capture->thread == sim__thread()->number ? "this" : "another",
                    capture->origin->handle);
    struct sim__graph *graph = capture->graph;
    invalidate(capture);
    if (!capture->is_programs_graph)
        sim__graph_destroy(graph);
}

// Invalidates each running capture that CONFLICTS says; ERROR if there is one.
static cudaError_t invalidate_those(bool (*conflicts)(const struct sim__capture *capture,
                                                      const void *with),
                                    const void *with, cudaError_t error) {
    bool any = false;
    for (struct sim__capture *capture = sim__captures; capture != NULL; capture = capture->next) {
        if (capture->invalidated || !conflicts(capture, with))
            continue;
        sim__capture_lose(capture, error);
        any = true;
    }
    return any ? error : cudaSuccess;
}

// --- Unsafe calls ---

static bool conflicts_with_thread(const struct sim__capture *capture, const void *with) {
    const struct sim__thread *thread = with;
    if (thread->capture_mode == cudaStreamCaptureModeRelaxed || sim__planted(SIM__PLANT_UNSAFE))
        return false;
    if (capture->thread == thread->number)
        return capture->mode != cudaStreamCaptureModeRelaxed ||
               sim__planted(SIM__PLANT_UNSAFE_RELAXED);
    return thread->capture_mode == cudaStreamCaptureModeGlobal &&
           capture->mode == cudaStreamCaptureModeGlobal &&
           !sim__planted(SIM__PLANT_UNSAFE_OTHERS);
}

cudaError_t sim__capture__unsafe(void) {
    const struct sim__thread *const thread = sim__thread();
    const cudaError_t error =
        invalidate_those(conflicts_with_thread, thread, cudaErrorStreamCaptureUnsupported);
    if (error != cudaSuccess || !sim__reading_other[SIM__READING_LOST_UNSAFE])
        return error;
    for (const struct sim__capture *capture = sim__captures; capture != NULL;
         capture = capture->next)
        if (conflicts_with_thread(capture, thread))
            return cudaErrorStreamCaptureUnsupported;
    return cudaSuccess;
}

// --- The legacy stream ---

static bool conflicts_with_legacy(const struct sim__capture *capture, const void *with) {
    const struct sim__stream *legacy = with;
    const struct sim__capture_part *part = capture->parts;
    while (part != NULL && !((part->blocking || sim__planted(SIM__PLANT_LEGACY_NONBLOCKING)) &&
                             part->device == legacy->device))
        part = part->next;
    return part != NULL;
}

bool sim__capture_meets_legacy(const struct sim__stream *stream) {
    if (!stream->legacy)
        return false;
    for (const struct sim__capture *capture = sim__captures; capture != NULL;
         capture = capture->next)
        if (!capture->invalidated && conflicts_with_legacy(capture, stream))
            return true;
    return false;
}

cudaError_t sim__capture__legacy(const struct sim__stream *stream) {
    return stream->legacy && !sim__planted(SIM__PLANT_LEGACY_CAPTURE)
               ? invalidate_those(conflicts_with_legacy, stream, cudaErrorStreamCaptureImplicit)
               : cudaSuccess;
}

// --- Waits and questions ---

static cudaError_t refuse_capturing(const struct sim__stream *stream) {
    sim__capture_lose(stream->capture->capture, cudaErrorStreamCaptureUnsupported);
    return cudaErrorStreamCaptureUnsupported;
}

cudaError_t sim__capture__stream_waited(const struct sim__stream *stream) {
    if (stream->capture != NULL && !sim__planted(SIM__PLANT_CAPTURE_WAITED))
        return refuse_capturing(stream);
    const cudaError_t error = sim__reading_other[SIM__READING_LEGACY_WAIT]
                                  ? cudaSuccess
                                  : sim__capture__legacy(stream);
    return error != cudaSuccess ? error : sim__capture__unsafe();
}

static bool conflicts_with_device(const struct sim__capture *capture, const void *with) {
    const struct sim__device *device = with;
    const struct sim__capture_part *part = capture->parts;
    while (part != NULL && part->device != device->index &&
           !sim__planted(SIM__PLANT_CAPTURE_DEVICE))
        part = part->next;
    return part != NULL;
}

cudaError_t sim__capture__device_waited(const struct sim__device *device) {
    return invalidate_those(conflicts_with_device, device, cudaErrorStreamCaptureUnsupported);
}

cudaError_t sim__capture_event_asked(const struct sim__event *event) {
    struct sim__capture *capture = sim__capture_find(event->captured->id);
    if (sim__planted(SIM__PLANT_CAPTURED_EVENT))
        return cudaSuccess;
    if (sim__reading_other[SIM__READING_CAPTURED_UNSAFE]) {
        const cudaError_t error = sim__capture_unsafe();
        if (error != cudaSuccess)
            return error;
    }
    if (capture != NULL && !sim__reading_other[SIM__READING_QUERY_CAPTURED])
        sim__capture_lose(capture, cudaErrorCapturedEvent);
    return cudaErrorCapturedEvent;
}

// --- Work that cannot be captured ---

cudaError_t sim__capture__refuse(const struct sim__stream *stream) {
    return stream->capture != NULL ? refuse_capturing(stream) : sim__capture__legacy(stream);
}

// --- The thread's mode ---

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess && (mode == NULL || (unsigned)*mode > cudaStreamCaptureModeRelaxed))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess) {
        struct sim__thread *thread = sim__thread();
        const enum cudaStreamCaptureMode former = thread->capture_mode;
        thread->capture_mode = *mode;
        *mode = former;
    }
    return sim__call_end(SIM__CALL_OTHER, error);
}
