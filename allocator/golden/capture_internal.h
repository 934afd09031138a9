// What the files of a capture script's run share.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_CAPTURE_INTERNAL_H
#define TIDEMARK_ALLOCATOR_GOLDEN_CAPTURE_INTERNAL_H

#include "allocator/captures.h"
#include "allocator/cca.h"
#include "allocator/checkpoint.h"
#include "allocator/golden/capture_session.h"
#include "base/thread.h"

// A thread of the script. It performs what it is handed, then waits again.
struct golden_capture_thread {
    struct golden_capture_run *run;
    cudaStream_t current; // its current stream
    bool is_started, is_over;
    struct base_thread thread;
    struct base_mutex mutex;
    struct base_condition handed;                     // and done
    const struct golden_capture_operation *operation; // guarded by mutex; NULL: it has none
};

// A tensor, or a name that once was one.
struct golden_capture_tensor {
    char *name;
    void *pointer; // NULL: none is allocated
    void *last;    // where it is, or was
};

struct golden_capture_segment {
    uint64_t address, size;
};

// Bytes that were last handed out to one tensor.
struct golden_capture_span {
    uint64_t begin, end;
    size_t owner; // of the tensors
};

struct golden_capture {
    const char *name;
    cudaStream_t stream;
    struct allocator_pool_id pool;
    _Atomic(unsigned long long) accepted; // what the filter of its scope takes
    unsigned long long mark;              // what it was marked as
    cudaGraph_t graph;                    // once it has ended well
};

// A node, by the order of its making in its graph.
struct golden_capture_node {
    cudaGraph_t graph;
    cudaGraphNode_t node;
    size_t number;
    char *label;
};

struct golden_capture_named {
    const char *name;
    void *handle; // a stream or an event
};

struct golden_capture_run {
    struct allocator *allocator;
    const char *config;
    enum golden_capture_plant plant;
    bool is_child; // that performs the script for a probe
    FILE *log, *silence;
    FILE *output; // one of them: where the operation's answer goes
    bool is_quiet;
    bool holds;          // events stay pending
    const char *counter; // what % stands for; NULL outside of loops
    struct golden_capture_thread threads[GOLDEN_CAPTURE_THREAD_COUNT];

    struct golden_capture_named *streams, *events;
    size_t stream_count, stream_capacity, event_count, event_capacity;
    struct golden_capture **captures; // their filters read them: they stay where they are
    size_t capture_count, capture_capacity;
    size_t capture_number;   // of the driver's captures, from 1
    uint64_t pool_number;    // of the pools that `new` made
    unsigned long long mark; // of captures that the driver does not know
    struct golden_capture_node *nodes;
    size_t node_count, node_capacity;

    struct golden_capture_checkpoint {
        const char *name;
        struct cca_checkpoint *checkpoint;
    } * checkpoints;
    size_t checkpoint_count, checkpoint_capacity;

    struct golden_capture_tensor *tensors;
    size_t tensor_count, tensor_capacity;
    struct golden_capture_span *spans; // by address, apart from each other
    size_t span_count, span_capacity;

    struct golden_capture_segment *segments; // by number
    size_t segment_count, segment_capacity;
    struct allocator_event *trace; // of the operation
    size_t trace_count, trace_capacity;
};

// capture_session.c: the thread that asks.
struct golden_capture_thread *golden__capture_self(void);

// capture_names.c. Streams, events and captures are there: the script was checked.
cudaStream_t golden__capture_stream(const struct golden_capture_run *run, const char *name);
cudaEvent_t golden__capture_event(const struct golden_capture_run *run, const char *name);
const char *golden__capture_stream_name(const struct golden_capture_run *run, cudaStream_t stream);
struct golden_capture *golden__capture_find(const struct golden_capture_run *run, const char *name);
// The tensor of this name, made if there is none. Its index is its for the whole run.
size_t golden__capture_tensor(struct golden_capture_run *run, const char *name);
// Gives the bytes to a tensor and prints " fresh" or " over=...", whose they were.
void golden__capture_own(struct golden_capture_run *run, uint64_t begin, uint64_t end,
                         size_t owner);
// Items with room for one more; aborts without host memory.
void *golden__capture_grow(void *items, size_t count, size_t *capacity, size_t item_size);

// capture_graph.c: captures as the driver has them.
// Any other word than `thread` and `relaxed` is the global mode, which is the default.
enum cudaStreamCaptureMode golden__capture_mode(const char *word);
// A node that STREAM captured, if it captures; prints " nN".
void golden__capture_note_node(struct golden_capture_run *run, cudaStream_t stream,
                               const char *label);
void golden__capture_print_deps(const struct golden_capture_run *run, cudaStream_t stream);
void golden__capture_set_deps(struct golden_capture_run *run, cudaStream_t stream,
                              const cudaStream_t *others, size_t count);
void golden__capture_empty_node(struct golden_capture_run *run, cudaStream_t stream);
void golden__capture_print_graph(const struct golden_capture_run *run, cudaGraph_t graph);
// Prints "ok", or the error, which is then cleared; true if there is none.
bool golden__capture_print_cuda(struct golden_capture_run *run, cudaError_t error);

// capture_scope.c: begin, end and what belongs to captures and pools.
void golden__capture_scope_perform(struct golden_capture_run *run,
                                   const struct golden_capture_operation *operation);

struct allocator_pool_id golden__capture_pool(const char *word);
// capture_checkpoint.c
void golden__capture_checkpoint_perform(struct golden_capture_run *run,
                                        const struct golden_capture_operation *operation);

// capture_memory.c: requests, queries, and what a client does besides.
void golden__capture_memory_perform(struct golden_capture_run *run,
                                    const struct golden_capture_operation *operation);

// capture_print.c
void golden__capture_print_address(const struct golden_capture_run *run, const void *address);
// Prints "error CLASS"; nothing for BASE_OK.
void golden__capture_print_error(struct golden_capture_run *run, enum base_status status);
// Prints " ev=[...]", what the allocator did since the operation began; nothing if it did nothing.
void golden__capture_print_events(struct golden_capture_run *run);
void golden__capture_print_layout(struct golden_capture_run *run);
void golden__capture_print_stat(struct golden_capture_run *run);
void golden__capture_trace(void *run, const struct allocator_event *event);

#endif
