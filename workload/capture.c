// See capture.h. The order of what the driver and the allocator are told is that of
// allocator/captures.h and allocator/async.h.
#include "workload/capture.h"

#include "allocator/async.h"
#include "allocator/captures.h"
#include "workload/run.h"
#include "workload/wrapper.h"

#include <stdio.h>
#include <string.h>

static enum workload_capture_memory memory_of(const char *allocator_name) {
    if (strcmp(allocator_name, "caching") == 0) return WORKLOAD_CAPTURE_POOL;
    return strcmp(allocator_name, "async") == 0 ? WORKLOAD_CAPTURE_NODES : WORKLOAD_CAPTURE_NONE;
}

struct workload_captures workload_captures(struct allocator *allocator, int device,
                                           cudaStream_t stream) {
    struct allocator *const innermost = workload_wrapper_innermost(allocator);
    return (struct workload_captures){innermost, memory_of(innermost->operations->name), device,
                                      stream};
}

//------------------------------------------------------------------------------------------------
// A capture under way, and how far it got.

struct capture {
    const struct workload_captures *captures;
    struct allocator_pool_id pool;
    _Atomic(unsigned long long) id; // 0: the driver captures nothing yet
    bool has_scope, has_stream, has_mark;
};

static enum base_status stream_begin(struct capture *capture) {
    const cudaStream_t stream = capture->captures->stream;
    enum cudaStreamCaptureStatus state;
    unsigned long long id = 0;
    enum base_status status = workload_cuda(
        "cudaStreamBeginCapture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    if (status != BASE_OK) return status;
    capture->has_stream = true;
    status = workload_cuda("cudaStreamGetCaptureInfo",
                           cudaStreamGetCaptureInfo(stream, &state, &id, NULL, NULL, NULL, NULL));
    capture->id = id;
    return status;
}

static enum base_status pool_capture_begin(struct capture *capture) {
    const struct workload_captures *const captures = capture->captures;
    const struct cca_pool_filter filter = cca_capture_filter(&capture->id);
    enum base_status status =
        cca_pool_begin(captures->allocator, captures->device, capture->pool, &filter);
    capture->has_scope = status == BASE_OK;
    if (status == BASE_OK) status = stream_begin(capture);
    if (status == BASE_OK)
        status =
            cca_capture_begin(captures->allocator, captures->device,
                              &(struct cca_capture){.id = capture->id, .stream = captures->stream});
    capture->has_mark = status == BASE_OK;
    return status;
}

static enum base_status nodes_capture_begin(struct capture *capture) {
    const struct workload_captures *const captures = capture->captures;
    enum base_status status = stream_begin(capture);
    if (status == BASE_OK)
        status = async_capture_begin(captures->allocator, captures->device, captures->stream);
    capture->has_mark = status == BASE_OK;
    return status;
}

static enum base_status stream_end(const struct capture *capture, cudaGraph_t *graph) {
    const cudaError_t error = cudaStreamEndCapture(capture->captures->stream, graph);
    if (error != cudaSuccess) (void)cudaGetLastError();
    if (error == cudaErrorStreamCaptureUnjoined)
        return base_status_set(BASE_CUDA,
                               "cudaStreamEndCapture: %s: a side stream did not come back, or has "
                               "a node behind its last join (x_capture_reuse:markers puts one "
                               "there at the free of a block that it used)",
                               cudaGetErrorName(error));
    return workload_cuda("cudaStreamEndCapture", error);
}

// All that began ends; the first failure is returned.
static enum base_status capture_end(const struct capture *capture, cudaGraph_t *graph) {
    const struct workload_captures *const captures = capture->captures;
    const bool has_pool = captures->memory == WORKLOAD_CAPTURE_POOL;
    enum base_status status = BASE_OK, ended = BASE_OK;
    if (!has_pool && capture->has_mark) status = async_capture_end(captures->allocator);
    if (capture->has_stream) ended = stream_end(capture, graph);
    if (status == BASE_OK) status = ended;
    if (has_pool && capture->has_mark)
        ended = cca_capture_end(captures->allocator, captures->device, capture->id);
    if (status == BASE_OK) status = ended;
    if (capture->has_scope)
        ended = cca_pool_end(captures->allocator, captures->device, capture->pool);
    return status == BASE_OK ? ended : status;
}

//------------------------------------------------------------------------------------------------
// Graphs

static enum base_status settle(const struct workload_captures *captures) {
    const enum base_status status = workload_cuda("cudaDeviceSynchronize", cudaDeviceSynchronize());
    return status == BASE_OK ? allocator_empty_cache(captures->allocator) : status;
}

// What WORK says counts before what comes of it.
static enum base_status work_and_end(const struct capture *capture, enum base_status begun,
                                     enum base_status (*work)(void *context), void *context,
                                     cudaGraph_t *graph) {
    char message[BASE_STATUS_MESSAGE_SIZE];
    const enum base_status status = begun == BASE_OK ? work(context) : begun;
    (void)snprintf(message, sizeof message, "%s", base_status_message());
    const enum base_status ended = capture_end(capture, graph);
    return status == BASE_OK ? ended : base_status_set(status, "%s", message);
}

enum base_status workload_capture(const struct workload_captures *captures,
                                  struct allocator_pool_id pool,
                                  enum base_status (*work)(void *context), void *context,
                                  struct workload_graph *graph) {
    struct capture capture = {.captures = captures, .pool = pool};
    struct workload_graph made = {.captures = captures, .pool = pool};
    if (captures->memory == WORKLOAD_CAPTURE_NONE)
        return base_status_set(BASE_UNSUPPORTED,
                               "with the allocator '%s' nothing can be captured: cudaMalloc is "
                               "forbidden while a stream is",
                               captures->allocator->operations->name);
    enum base_status status = settle(captures);
    if (status != BASE_OK) return status;
    status = captures->memory == WORKLOAD_CAPTURE_POOL ? pool_capture_begin(&capture)
                                                       : nodes_capture_begin(&capture);
    status = work_and_end(&capture, status, work, context, &made.graph);
    if (status == BASE_OK)
        status =
            workload_cuda("cudaGraphInstantiate", cudaGraphInstantiate(&made.exec, made.graph, 0));
    if (status == BASE_OK) {
        *graph = made;
        return BASE_OK;
    }
    if (made.graph != NULL) (void)cudaGraphDestroy(made.graph);
    if (capture.has_scope)
        (void)!cca_pool_release(captures->allocator, captures->device, capture.pool);
    return status;
}

enum base_status workload_graph_launch(const struct workload_graph *graph, cudaStream_t stream) {
    return workload_cuda("cudaGraphLaunch", cudaGraphLaunch(graph->exec, stream));
}

void workload_graph_destroy(struct workload_graph *graph) {
    const struct workload_captures *const captures = graph->captures;
    if (captures == NULL) return;
    (void)cudaDeviceSynchronize();
    (void)cudaGraphExecDestroy(graph->exec);
    (void)cudaGraphDestroy(graph->graph);
    if (captures->memory == WORKLOAD_CAPTURE_POOL)
        (void)!cca_pool_release(captures->allocator, captures->device, graph->pool);
    *graph = (struct workload_graph){NULL};
}
