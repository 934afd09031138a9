// Stream capture: work that a program submits to a capturing stream becomes nodes of a graph
// instead.
//
// A capture begins in one stream (its origin), and streams join by waiting for an event that was
// recorded in it. Each stream has a set of nodes that its next one depends on; a record copies that
// set into the event, a wait unites the event's with the stream's.
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_CAPTURE_H
#define TIDEMARK_SIMULATOR_CAPTURE_H

#include "simulator/graph.h"

// Nodes, each once.
struct sim__node_set {
    struct sim__node **nodes;
    uint32_t count, size;
};

struct sim__capture {
    uint64_t id; // unique in the process
    enum cudaStreamCaptureMode mode;
    uint64_t thread; // that began it
    struct sim__stream *origin;
    struct sim__stream *streams; // that take part, the origin among them
    struct sim__graph *graph;    // NULL once it is invalidated
    bool invalidated;
    struct sim__capture *next; // of the captures that run
};

// Work of the program enters STREAM: it becomes a node if the stream captures, else an operation
// (*position, if not NULL). Refusals: cudaErrorStreamCaptureInvalidated;
// cudaErrorStreamCaptureImplicit for the legacy stream while a blocking stream of its device
// captures. *position is that of no stream for a node.
cudaError_t sim__enqueue(struct sim__stream *stream, const struct sim__operation *operation,
                         struct sim__position *position);

// The call is unsafe in CUDA's sense: cudaErrorStreamCaptureUnsupported, and what it conflicts with
// is invalidated, if the thread's mode and the running captures' modes say so.
cudaError_t sim__capture_unsafe(void);
// The host waits for or asks about STREAM, or DEVICE.
cudaError_t sim__capture_stream_waited(struct sim__stream *stream);
cudaError_t sim__capture_device_waited(const struct sim__device *device);
// cudaErrorStreamCaptureImplicit, see sim__enqueue, and the captures are invalidated.
cudaError_t sim__capture_legacy(const struct sim__stream *stream);

void sim__captures_clear(void);

#endif
