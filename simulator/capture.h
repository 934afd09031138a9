// Stream capture: work that a program submits to a capturing stream becomes nodes of a graph
// instead. Such work never runs, waits for nothing that was submitted before, and has no position.
//
//     capture.c           captures begin and end; streams come and go
//     capture_node.c      work, records and waits in a capture
//     capture_refuse.c    what is refused while captures run, and what that does to them
//     capture_info.c      what programs ask about a capture; its dependencies changed by hand
//     capture_set.c       sets of nodes
//
// A capture begins in one stream (its origin), and streams join by waiting for an event that was
// recorded in it. Each stream has a set of nodes that its next one depends on; a record copies that
// set into the event, a wait unites the event's with the stream's. An invalidated capture has no
// graph any more, and its streams take no work, until it is ended.
//
// Calls tell captures by one number, sim__capture_count: while it is 0 the cost of all this is the
// look at it.
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_CAPTURE_H
#define TIDEMARK_SIMULATOR_CAPTURE_H

#include "simulator/graph.h"

// Nodes, each once.
struct sim__node_set {
    struct sim__node **nodes;
    // What the edge from each to the next node carries (sim__edge_pack); NULL: all zero.
    uint32_t *data;
    uint32_t count, size;
    uint32_t *table; // of many nodes: where each is (capture_set.c)
    uint32_t table_size;
};

// A stream that takes part in a capture.
struct sim__capture_part {
    struct sim__capture *capture;
    struct sim__stream *stream; // NULL: destroyed since
    uint64_t handle;            // the stream's
    int device;
    bool blocking;  // ordered with its device's legacy stream
    bool waited_for; // a stream of the capture waited for an event recorded in this one
    struct sim__node_set set;
    // What cudaStreamGetCaptureInfo gave out last; emptied when the set becomes another one.
    cudaGraphNode_t *given;
    cudaGraphEdgeData *given_data;
    uint32_t given_count, given_size;
    struct sim__capture_part *next;
};

struct sim__capture {
    uint64_t id; // unique in the process
    enum cudaStreamCaptureMode mode;
    uint64_t thread;                 // that began it: struct sim__thread, number
    struct sim__capture_part *parts; // the origin's last
    struct sim__capture_part *origin;
    struct sim__graph *graph; // NULL once it is invalidated
    bool is_programs_graph;   // cudaStreamBeginCaptureToGraph: it outlives the capture
    struct sim__capture *beside; // another one that builds the same graph
    bool invalidated;
    struct sim__capture *next; // of those that were begun and not ended
};

// What an event holds that was recorded in a capture.
struct sim__event_capture {
    uint64_t id;                    // of the capture
    struct sim__capture_part *part; // the stream; only while that capture is not ended
    struct sim__node_set set;       // likewise
};

extern uint32_t sim__capture_count; // begun and not ended
static inline bool sim__captures_exist(void) {
    return __builtin_expect(sim__capture_count > 0, 0);
}
// The number of the graph that STREAM captures; 0 if it does not, or the capture is invalidated.
static inline uint64_t sim__capture_graph(const struct sim__stream *stream) {
    return stream->capture != NULL && stream->capture->capture->graph != NULL
               ? stream->capture->capture->graph->number
               : 0;
}

// --- capture_node.c ---

// Slow path of sim__enqueue. *captured: nothing is left to do.
cudaError_t sim__capture_enqueue(struct sim__stream *stream, const struct sim__operation *operation,
                                 bool *captured);

// Work of the program enters STREAM: it becomes a node if the stream captures, else an operation.
// *position, which may not be NULL, is that of no stream for a node: complete.
// cudaErrorStreamCaptureInvalidated; cudaErrorStreamCaptureImplicit, see sim__capture_legacy.
static inline cudaError_t sim__enqueue(struct sim__stream *stream,
                                       const struct sim__operation *operation,
                                       struct sim__position *position) {
    if (sim__captures_exist()) {
        bool captured;
        const cudaError_t error = sim__capture_enqueue(stream, operation, &captured);
        if (error != cudaSuccess || captured) {
            *position = (struct sim__position){0};
            return error;
        }
    }
    *position = sim__engine_submit(stream, operation, (struct sim__position){0});
    return cudaSuccess;
}

// Stream-ordered memory in a stream that captures.
cudaError_t sim__capture_alloc(struct sim__stream *stream, int device, uint64_t size,
                               void **pointer);
cudaError_t sim__capture_free(struct sim__stream *stream, void *pointer);

// A record of EVENT in STREAM, or a wait, that may have to do with a capture. *is_over: nothing is
// left to do. EXTERNAL: it is to be a node.
cudaError_t sim__capture_record(struct sim__stream *stream, struct sim__event *event, bool external,
                                bool *is_over);
cudaError_t sim__capture_wait(struct sim__stream *stream, struct sim__event *event, bool external,
                              bool *is_over);
// EVENT is recorded outside captures, or destroyed.
void sim__event__uncapture(struct sim__event *event);
static inline void sim__event_uncapture(struct sim__event *event) {
    if (event->captured != NULL)
        sim__event__uncapture(event);
}

// --- capture_refuse.c: anything but cudaSuccess is what the call must end with ---

cudaError_t sim__capture__unsafe(void);
cudaError_t sim__capture__stream_waited(const struct sim__stream *stream);
cudaError_t sim__capture__device_waited(const struct sim__device *device);
cudaError_t sim__capture__legacy(const struct sim__stream *stream);
cudaError_t sim__capture__refuse(const struct sim__stream *stream);

// The call is unsafe in CUDA's sense: cudaErrorStreamCaptureUnsupported, and what it conflicts with
// is invalidated, if the thread's mode and the running captures' modes say so.
static inline cudaError_t sim__capture_unsafe(void) {
    return sim__captures_exist() ? sim__capture__unsafe() : cudaSuccess;
}
// The host waits for or asks about STREAM, or waits for DEVICE. cudaErrorStreamCaptureUnsupported
// if it captures, which invalidates; else as unsafe calls.
static inline cudaError_t sim__capture_stream_waited(const struct sim__stream *stream) {
    return sim__captures_exist() ? sim__capture__stream_waited(stream) : cudaSuccess;
}
static inline cudaError_t sim__capture_device_waited(const struct sim__device *device) {
    return sim__captures_exist() ? sim__capture__device_waited(device) : cudaSuccess;
}
// cudaErrorStreamCaptureImplicit if STREAM is the legacy stream of a device of which a blocking
// stream captures; those captures are invalidated.
static inline cudaError_t sim__capture_legacy(const struct sim__stream *stream) {
    return sim__captures_exist() ? sim__capture__legacy(stream) : cudaSuccess;
}
// Work that no capture can take enters STREAM: cudaErrorStreamCaptureUnsupported if it captures,
// which is invalidated; else as sim__capture_legacy.
static inline cudaError_t sim__capture_refuse(const struct sim__stream *stream) {
    return sim__captures_exist() ? sim__capture__refuse(stream) : cudaSuccess;
}
// The host asks about or waits for EVENT, which was recorded in a capture.
cudaError_t sim__capture_event_asked(const struct sim__event *event);
// CAPTURE is invalidated, unless it is already, by a call that ends with ERROR: the graph is gone,
// and the streams take no work.
void sim__capture_lose(struct sim__capture *capture, cudaError_t error);
// GRAPH, which is captured, is destroyed all the same: with the node that owns it.
void sim__capture_graph_ends(struct sim__graph *graph);
// CAPTURE builds its graph no more.
void sim__capture_graph_leave(struct sim__capture *capture);
// Whether a running capture has a blocking stream of the device whose legacy stream STREAM is.
bool sim__capture_meets_legacy(const struct sim__stream *stream);

// --- capture.c ---

extern struct sim__capture *sim__captures; // begun and not ended, the last one first
// NULL if it was ended.
struct sim__capture *sim__capture_find(uint64_t id);
// STREAM, which is in no capture, takes part in CAPTURE; NULL: out of memory.
struct sim__capture_part *sim__capture_join(struct sim__capture *capture,
                                            struct sim__stream *stream);
// STREAM is destroyed.
void sim__capture_stream_ends(struct sim__stream *stream);
// The machine stops.
void sim__captures_clear(void);

// --- capture_info.c ---

// The set becomes another one: so does what the program was told about it.
void sim__capture__given_empty(struct sim__capture_part *part);
static inline void sim__capture_given_empty(struct sim__capture_part *part) {
    if (part->given_count > 0)
        sim__capture__given_empty(part);
}

// --- capture_set.c ---

void sim__node_set_empty(struct sim__node_set *set);
// Unites SET with COUNT other nodes, each once; DATA: NULL for zeros. Cost O(nodes of both).
void sim__node_set_add(struct sim__node_set *set, struct sim__node *const *nodes,
                       const uint32_t *data, uint32_t count);
void sim__node_set_copy(struct sim__node_set *to, const struct sim__node_set *from);
void sim__node_set_free(struct sim__node_set *set);

#endif
