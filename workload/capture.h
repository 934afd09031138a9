// A stretch of a program's work as a CUDA graph: captured once, launched often, with memory of its
// own, as torch.cuda.graph has it.
//
//     struct workload_captures captures = workload_captures(allocator, 0, stream);
//     struct workload_graph graph = {0};
//     status = workload_capture(&captures, pool, work, context, &graph);
//     ... status = workload_graph_launch(&graph, stream); ...
//     workload_graph_destroy(&graph);
//
// What the allocator is decides where the memory of a graph comes from:
//
//     caching   a private pool, which may serve several graphs (allocator/captures.h). What is
//               allocated in a capture and kept, as the outputs are, is the graph's to write again
//     async     the driver makes nodes of requests and frees (allocator/async.h). Everything that
//               is allocated in a capture has to be freed in it
//     others    none can be had: cudaMalloc is forbidden while a stream is captured. Programs do
//     the
//               same work without a graph
//
// Wrappers are looked through: what is told of captures and pools goes to the innermost allocator,
// past a recorder's lock. So threads that allocate beside a capture would break the recording's
// order; a program with one thread is recorded as ever.
#ifndef TIDEMARK_WORKLOAD_CAPTURE_H
#define TIDEMARK_WORKLOAD_CAPTURE_H

#include "allocator/allocator.h"

enum workload_capture_memory {
    WORKLOAD_CAPTURE_NONE, // nothing can be captured
    WORKLOAD_CAPTURE_POOL,
    WORKLOAD_CAPTURE_NODES,
};

struct workload_captures {
    struct allocator *allocator; // the innermost
    enum workload_capture_memory memory;
    int device;
    cudaStream_t stream; // where captures begin; not a default stream
};
struct workload_captures workload_captures(struct allocator *allocator, int device,
                                           cudaStream_t stream);

struct workload_graph {
    const struct workload_captures *captures; // NULL: none
    struct allocator_pool_id pool;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
};

// Waits for the device and empties the cache, as torch.cuda.graph does; captures what WORK puts on
// the stream, whose side streams come back to it within WORK. POOL {n, 0} has one user more then,
// until workload_graph_destroy. WORK's failure is returned, then the driver's; there is no graph
// then, and the pool has no user more. BASE_UNSUPPORTED: nothing can be captured.
enum base_status workload_capture(const struct workload_captures *captures,
                                  struct allocator_pool_id pool,
                                  enum base_status (*work)(void *context), void *context,
                                  struct workload_graph *graph) BASE_MUST_USE;

enum base_status workload_graph_launch(const struct workload_graph *graph,
                                       cudaStream_t stream) BASE_MUST_USE;
// Waits for the device. None is nothing.
void workload_graph_destroy(struct workload_graph *graph);

#endif
