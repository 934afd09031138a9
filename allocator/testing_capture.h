// For tests of graph capture: a capture as a program makes it, with its pool, mark and scope.
#ifndef TIDEMARK_ALLOCATOR_TESTING_CAPTURE_H
#define TIDEMARK_ALLOCATOR_TESTING_CAPTURE_H

#include "allocator/captures.h"
#include "allocator/testing.h"

struct testing_capture {
    struct allocator *allocator;
    struct allocator_pool_id pool;
    cudaStream_t stream;
    _Atomic(unsigned long long) id;
    unsigned long long parent;
    struct cca_pool_filter filter;
    cudaGraph_t graph;
};

static inline unsigned long long testing_capture_id(cudaStream_t stream) {
    enum cudaStreamCaptureStatus status;
    unsigned long long id = 0;
    BASE_CHECK_EQ(cudaStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL),
                  cudaSuccess);
    return status == cudaStreamCaptureStatusNone ? 0 : id;
}

static inline void testing_capture_mark(struct testing_capture *capture) {
    atomic_store(&capture->id, testing_capture_id(capture->stream));
    BASE_CHECK_EQ(cca_capture_begin(capture->allocator, 0,
                                    &(struct cca_capture){.id = atomic_load(&capture->id),
                                                          .stream = capture->stream,
                                                          .parent = capture->parent}),
                  BASE_OK);
}

// The fields up to stream are set. MODE: as of cudaStreamBeginCapture.
static inline void testing_capture_begin(struct testing_capture *capture,
                                         enum cudaStreamCaptureMode mode) {
    capture->filter = cca_capture_filter(&capture->id);
    BASE_CHECK_EQ(cca_pool_begin(capture->allocator, 0, capture->pool, &capture->filter), BASE_OK);
    BASE_CHECK_EQ(cudaStreamBeginCapture(capture->stream, mode), cudaSuccess);
    testing_capture_mark(capture);
}

// What the driver said of the end.
static inline cudaError_t testing_capture_end(struct testing_capture *capture) {
    const cudaError_t error = cudaStreamEndCapture(capture->stream, &capture->graph);
    (void)cudaGetLastError();
    BASE_CHECK_EQ(cca_capture_end(capture->allocator, 0, atomic_load(&capture->id)), BASE_OK);
    BASE_CHECK_EQ(cca_pool_end(capture->allocator, 0, capture->pool), BASE_OK);
    return error;
}

// Destroys the graph and the pool.
static inline void testing_capture_destroy(struct testing_capture *capture) {
    if (capture->graph != NULL)
        BASE_CHECK_EQ(cudaGraphDestroy(capture->graph), cudaSuccess);
    capture->graph = NULL;
    BASE_CHECK_EQ(cca_pool_release(capture->allocator, 0, capture->pool), BASE_OK);
}

// TO waits for all that was submitted to FROM.
static inline void testing_order(cudaStream_t from, cudaStream_t to) {
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    BASE_CHECK_EQ(cudaEventRecord(event, from), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(to, event, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaEventDestroy(event), cudaSuccess);
}

static inline void testing__no_work(const void *argument) { (void)argument; }

static inline void testing_launch(cudaStream_t stream) {
    BASE_CHECK_EQ(
        sim_launch_kernel(stream, &(struct sim_kernel){.name = "work", .body = testing__no_work}),
        cudaSuccess);
}

#endif
