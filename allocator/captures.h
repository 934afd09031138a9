// CUDA graph capture: what a program tells the allocator of it, as PyTorch's CUDAGraph does.
//
// While a stream is captured nothing runs, and no event tells when the work on a block is done. So
// the allocator has to know of captures: a block that other streams use (allocator_record_stream)
// and that is freed in one is *deferred*. It becomes free when the graph proves that it may
// (graph_capture_record_stream_reuse), else after the capture. And memory that a graph uses must
// stay its own for as long as the graph lives: it comes from a private pool (allocator/pools.h).
//
//     _Atomic(unsigned long long) captured = 0;
//     const struct cca_pool_filter mine = cca_capture_filter(&captured);
//     cca_pool_begin(allocator, 0, id, &mine);               // 1. the scope: accepts nothing yet
//     cudaStreamBeginCapture(stream, mode);                  // 2. the driver
//     cudaStreamGetCaptureInfo(stream, ..., &number, ...);
//     captured = number;
//     cca_capture_begin(allocator, 0, &(struct cca_capture){.id = number, .stream = stream});
//     ... requests on STREAM, and on the streams that it forks to, go to the pool ...
//     cudaStreamEndCapture(stream, &graph);                  // back: 1. the driver
//     cca_capture_end(allocator, 0, number);                 // 2. the mark
//     cca_pool_end(allocator, 0, id);                        // 3. the scope
//     ...
//     cudaGraphDestroy(graph);
//     cca_pool_release(allocator, 0, id);                    // that of cca_pool_begin
//     allocator_empty_cache(allocator);
//
// Where the driver fails, end capture, mark and scope all the same: what was deferred becomes free,
// and after the release nothing of it stays reserved.
//
// Marks are apart from scopes: with a user pool's scope alone events are asked and memory is
// released as ever. Of a capture without a mark the allocator knows nothing.
//
// In a marked capture
//   malloc         asks no event and waits for none. A new segment is taken with the thread's
//                  capture mode relaxed. Nothing is given back to the device for it: out of memory
//                  is BASE_OUT_OF_MEMORY at once, and the capture goes on
//   free           defers a block with uses; without uses it is free at once
//   record_stream  notes that the use is one of the capture, which needs no event later
//   empty_cache    waits for nothing and keeps what is cached; only private pools that were
//                  released go, and a capture that is not relaxed refuses their cudaFree
// An invalidated capture refuses malloc and record_stream, BASE_INVALID_VALUE; frees are deferred.
//
// A malloc or an empty_cache outside of captures *flushes* what is deferred: events are recorded
// for uses that were made outside of captures; without any the block is free. What a capture under
// way may still use is then free for the books, but is handed out on its stream only when the graph
// proves it, or the capture is over. With
// graph_capture_record_stream_reuse the end of a pool's scope does it for that pool. PyTorch does
// not look whether the capture is over, and hands the block out again in the same graph before its
// streams are joined; x_torch_faults does the same.
//
// Cost: devices without a mark and without deferred frees pay nothing. With them each call asks the
// driver for the state of a stream or two; with reuse a malloc visits each node of the graph once a
// stream.
#ifndef TIDEMARK_ALLOCATOR_CAPTURES_H
#define TIDEMARK_ALLOCATOR_CAPTURES_H

#include "allocator/pools.h"

#include <stdatomic.h>

#define CCA_CAPTURES_MAX 64 // marked at a time on one device

struct cca_capture {
    unsigned long long id; // the driver's (cudaStreamGetCaptureInfo); not 0
    cudaStream_t stream;   // where it began: the one that cudaStreamEndCapture is called for
    // The marked capture whose graph takes this one's in, as the body of a conditional node: what
    // is deferred here waits for the end of that one. 0: none
    unsigned long long parent;
};

// Marks that a capture is under way on the device; one that spans several devices is marked on
// each. BASE_INVALID_VALUE: it is marked already, its parent is not, or its id is 0; BASE_LIMIT.
// Never asks the driver. Takes the device's lock of events.
enum base_status cca_capture_begin(struct allocator *allocator, int device,
                                   const struct cca_capture *capture) BASE_MUST_USE;

// Takes the mark off; its children have none any more, else BASE_INVALID_VALUE, as without a mark.
enum base_status cca_capture_end(struct allocator *allocator, int device,
                                 unsigned long long id) BASE_MUST_USE;

// A filter that accepts the streams that capture *ID captures; *ID is read at each request, 0 is
// none. It must live as long as the scope. Asks the driver; a stream that it cannot ask about is
// accepted, since memory of the pool is safe for whatever the stream does.
struct cca_pool_filter cca_capture_filter(const _Atomic(unsigned long long) *id);

// The calling thread's current stream on a device. PyTorch asks it whether a call is made in a
// capture, whatever streams the call is about. Called without a stream's lock; it must not call the
// allocator and must return soon.
struct cca_current_stream_source {
    cudaStream_t (*current)(void *context, int device);
    void *context;
};

// NULL, as at the start: what counts are the streams that a call is about: of a malloc its stream,
// of a free the block's and those that use it, of record_stream the one that is recorded, of
// empty_cache all that captures began on. Before other threads use the allocator.
enum base_status cca_set_current_stream_source(struct allocator *allocator,
                                               const struct cca_current_stream_source *source);

#endif
