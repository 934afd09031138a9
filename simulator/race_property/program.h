// Small CUDA programs as data, for the race checker's property tests: what draw.h draws, closure.h
// judges, perform.h plays and shrink.h makes smaller.
//
// The verbs, and what they do to order and memory, are those of the litmus cases (../litmus), and a
// program prints itself as one, so that it can be fed to `bazel run //simulator:litmus` and to
// other judges. Memory is counted in cells: a player decides how many bytes a cell has.
#ifndef TIDEMARK_SIMULATOR_RACE_PROPERTY_PROGRAM_H
#define TIDEMARK_SIMULATOR_RACE_PROPERTY_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CELLS      16 // of each buffer at most
#define STEPS_MAX  3
#define DEPENDENCIES_MAX 6
#define BUFFERS_MAX 24
#define BLOCKS_MAX  16
#define STREAMS_MAX 12
#define EVENTS_MAX  6
#define GRAPHS_MAX  5
#define EXECS_MAX   8
#define TOKENS_MAX  24
#define OPERATIONS_MAX 190
#define DEVICES    2
#define THREADS    2
#define NONE       (-1)

enum stream_kind { LEGACY, BLOCKING, NON_BLOCKING, PER_THREAD };
struct stream {
    enum stream_kind kind;
    int device;
    int thread; // PER_THREAD: whose it is
};

enum place { ON_DEVICE, PINNED, PAGEABLE };
struct buffer {
    enum place place;
    int device, size;
    bool defined;   // each byte is written before the program starts
    bool allocated; // by an operation, not from the start
};

// An allocator's block: SIZE cells of BUFFER from START on.
struct block {
    int buffer, start, size;
};

// COUNT pieces of LENGTH cells, their starts STRIDE apart, from START of BUFFER on. BLOCK: the
// block through which they are meant, or NONE.
struct span {
    int buffer, block, start, length, stride, count;
};

enum step_verb {
    STEP_SET,    // to = VALUE
    STEP_MOVE,   // to = from[0]: a kernel's copy
    STEP_SUM,    // to = from[0] + from[1]
    STEP_ATOMIC, // to += VALUE, as atomics
    STEP_READ,   // from[0]
    STEP_CARRY,  // to = from[0], bytes that nobody wrote included: a copy
};
struct step {
    enum step_verb verb;
    struct span to, from[2];
};

// X(NAME, WORD): as in the litmus format; a span of several pieces makes a copy or fill a 2D one.
#define VERB_LIST(X)                       \
    X(KERNEL, "kernel")                    \
    X(HOST_FUNCTION, "hostfunc")           \
    X(COPY, "memcpy")                      \
    X(COPY_ASYNC, "memcpyasync")           \
    X(COPY_PEER, "memcpypeer")             \
    X(COPY_PEER_ASYNC, "memcpypeerasync")  \
    X(FILL, "memset")                      \
    X(FILL_ASYNC, "memsetasync")           \
    X(HOST_WRITE, "hostwrite")             \
    X(HOST_READ, "hostread")               \
    X(RECORD, "record")                    \
    X(WAIT, "wait")                        \
    X(EVENT_SYNC, "eventsync")             \
    X(EVENT_QUERY, "eventquery")           \
    X(EVENT_POLL, "eventpoll")             \
    X(EVENT_CREATE, "eventcreate")         \
    X(EVENT_DESTROY, "eventdestroy")       \
    X(STREAM_SYNC, "streamsync")           \
    X(STREAM_QUERY, "streamquery")         \
    X(STREAM_POLL, "streampoll")           \
    X(STREAM_DESTROY, "streamdestroy")     \
    X(DEVICE_SYNC, "devicesync")           \
    X(SIGNAL, "signal")                    \
    X(AWAIT, "await")                      \
    X(ALLOC, "malloc")                     \
    X(FREE, "free")                        \
    X(HOST_ALLOC, "hostalloc")             \
    X(HOST_FREE, "hostfree")               \
    X(ALLOC_ASYNC, "mallocasync")          \
    X(FREE_ASYNC, "freeasync")             \
    X(TAKE, "take")                        \
    X(USE, "use")                          \
    X(GIVE, "give")                        \
    X(WRITE_VALUE, "writevalue")           \
    X(VALUE_POLL, "valuepoll")             \
    X(GRAPH_CREATE, "graphcreate")         \
    X(ADD_KERNEL, "addkernel")             \
    X(BEGIN, "begin")                      \
    X(END, "end")                          \
    X(INSTANTIATE, "instantiate")          \
    X(LAUNCH, "launch")                    \
    X(EXEC_DESTROY, "execdestroy")         \
    X(GRAPH_DESTROY, "graphdestroy")

enum verb {
#define VERB_ENUMERATOR(name, word) name,
    VERB_LIST(VERB_ENUMERATOR)
#undef VERB_ENUMERATOR
        VERB_COUNT,
};

enum capture_mode { MODE_GLOBAL, MODE_THREAD, MODE_RELAXED };

struct operation {
    enum verb verb;
    int thread;
    // What the verb takes of these; NONE otherwise.
    int stream, event, device, buffer, block, graph, exec, token;
    int value; // of a counter; capture_mode
    int guard; // the query on whose result it depends, or NONE
    bool guard_success;
    int step_count;
    struct step steps[STEPS_MAX];
    int dependency_count; // of a node: the operations that added what it comes after
    int dependencies[DEPENDENCIES_MAX];
    // Left out: while shrinking, or as the edge that is removed. Others keep their index, and the
    // label that comes from it.
    bool dropped;
};

struct program {
    int device_count, stream_count, event_count, buffer_count, block_count;
    struct stream streams[STREAMS_MAX];
    int event_devices[EVENTS_MAX]; // at the start
    struct buffer buffers[BUFFERS_MAX];
    struct block blocks[BLOCKS_MAX];
    bool threads_strict; // the reading threads=strict
    int count;
    struct operation operations[OPERATIONS_MAX];
};

const char *verb_word(enum verb verb);
// Queries whose result is open: not loops of them.
bool verb_queries(enum verb verb);
// The device is to be current for the call.
int operation_device(const struct program *program, const struct operation *operation);

// An operation with all numbers NONE.
struct operation operation_make(enum verb verb, int thread);

// The cells of a span, a bit each, by number in the buffer.
uint32_t span_mask(const struct span *span);
// The first INDEX-th cell.
int span_cell(const struct span *span, int index);
int span_size(const struct span *span);

// What a step touches, in this order.
enum access_mode { READS, WRITES, UPDATES };
struct access {
    enum access_mode mode;
    bool quiet; // takes bytes that nobody wrote as they are
    struct span span;
};
int step_accesses(const struct step *step, struct access accesses[3]);
// Two modes on common bytes conflict.
bool modes_conflict(enum access_mode a, enum access_mode b);

// "O17", static for each index.
const char *operation_label(int index);

// As a litmus case without expectations.
void program_print(FILE *out, const struct program *program, const char *name, const char *why);

#endif
