// A litmus case: a small program on streams, events, copies and memory, and what it may leave
// behind. README.md says where the cases come from and describes the format.
//
//     struct litmus_file file;
//     status = litmus_file_read("event.litmus", &file);
//     file.cases[0].operations[2].verb           LITMUS_VERB_KERNEL
//     litmus_file_deinit(&file);
//
// Reading resolves every name: operations speak of streams, events, buffers and bytes by index, so
// that playing a case thousands of times looks nothing up.
#ifndef TIDEMARK_SIMULATOR_LITMUS_CASE_H
#define TIDEMARK_SIMULATOR_LITMUS_CASE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What the format allows.
#define LITMUS_NAME_LENGTH_MAX     40
#define LITMUS_OPERATION_COUNT_MAX 32
#define LITMUS_DECLARATION_COUNT_MAX 24
#define LITMUS_WORD_COUNT_MAX 16 // behind the verb
#define LITMUS_BYTE_COUNT_MAX 16 // of a buffer
#define LITMUS_DEVICE_COUNT   2
#define LITMUS_THREAD_COUNT   2
// Declared buffers and those that operations allocate.
#define LITMUS_BUFFER_COUNT_MAX (LITMUS_DECLARATION_COUNT_MAX + LITMUS_OPERATION_COUNT_MAX)
#define LITMUS_STEP_COUNT_MAX   (LITMUS_WORD_COUNT_MAX / 2)
#define LITMUS_RACE_COUNT_MAX   64 // of an expectation
#define LITMUS_UNDEFINED        (-1) // "?": a byte that nobody wrote, or any value

// X(NAME, WORD, OPERANDS): the operands behind the verb, a letter each (operation.c reads them).
//
//     s stream          e event           b bytes             n number        f effect, to the end
//     t timeline        p live buffer     a buffer that is allocated here     k block that begins
//     l block           m capture mode    g graph             G graph that is made here
//     x executable      X executable that is made here        d labels of nodes, or "-"
//     w any word
#define LITMUS_VERB_LIST(X) \
    X(KERNEL, "kernel", "sf")                    \
    X(HOST_FUNCTION, "hostfunc", "sf")           \
    X(COPY, "memcpy", "sbb")                     \
    X(COPY_2D, "memcpy2d", "sbb")                \
    X(COPY_ASYNC, "memcpyasync", "sbb")          \
    X(COPY_2D_ASYNC, "memcpy2dasync", "sbb")     \
    X(COPY_PEER, "memcpypeer", "bb")             \
    X(COPY_PEER_ASYNC, "memcpypeerasync", "sbb") \
    X(FILL, "memset", "sbn")                     \
    X(FILL_2D, "memset2d", "sbn")                \
    X(FILL_ASYNC, "memsetasync", "sbn")          \
    X(FILL_2D_ASYNC, "memset2dasync", "sbn")     \
    X(RECORD, "record", "es")                    \
    X(WAIT, "wait", "se")                        \
    X(EVENT_SYNCHRONIZE, "eventsync", "e")       \
    X(EVENT_QUERY, "eventquery", "e")            \
    X(EVENT_POLL, "eventpoll", "e")              \
    X(EVENT_CREATE, "eventcreate", "en")         \
    X(EVENT_DESTROY, "eventdestroy", "e")        \
    X(ELAPSED, "elapsed", "ee")                  \
    X(STREAM_SYNCHRONIZE, "streamsync", "s")     \
    X(STREAM_QUERY, "streamquery", "s")          \
    X(STREAM_POLL, "streampoll", "s")            \
    X(STREAM_DESTROY, "streamdestroy", "s")      \
    X(DEVICE_SYNCHRONIZE, "devicesync", "n")     \
    X(SET_DEVICE, "setdevice", "n")              \
    X(HOST_WRITE, "hostwrite", "bn")             \
    X(HOST_READ, "hostread", "b")                \
    X(SIGNAL, "signal", "w")                     \
    X(AWAIT, "await", "w")                       \
    X(ALLOC, "malloc", "ann")                    \
    X(FREE, "free", "p")                         \
    X(HOST_ALLOC, "hostalloc", "an")             \
    X(HOST_FREE, "hostfree", "p")                \
    X(ALLOC_ASYNC, "mallocasync", "ans")         \
    X(FREE_ASYNC, "freeasync", "ps")             \
    X(TAKE, "take", "kbs")                       \
    X(USE, "use", "ls")                          \
    X(GIVE, "give", "l")                         \
    X(WRITE_VALUE, "writevalue", "stn")          \
    X(VALUE_POLL, "valuepoll", "tn")             \
    X(BEGIN, "begin", "sm")                      \
    X(END, "end", "sG")                          \
    X(EXCHANGE, "exchange", "m")                 \
    X(STATUS, "status", "s")                     \
    X(GRAPH_CREATE, "graphcreate", "G")          \
    X(ADD_KERNEL, "addkernel", "gdf")            \
    X(INSTANTIATE, "instantiate", "Xg")          \
    X(LAUNCH, "launch", "sx")                    \
    X(EXEC_DESTROY, "execdestroy", "x")          \
    X(GRAPH_DESTROY, "graphdestroy", "g")

enum litmus_verb {
#define LITMUS_VERB_ENUMERATOR(name, word, operands) LITMUS_VERB_##name,
    LITMUS_VERB_LIST(LITMUS_VERB_ENUMERATOR)
#undef LITMUS_VERB_ENUMERATOR
        LITMUS_VERB_COUNT,
};

enum litmus_memory {
    LITMUS_MEMORY_DEVICE,
    LITMUS_MEMORY_MANAGED, // played as page-locked memory: the order of its accesses is the same
    LITMUS_MEMORY_PINNED,
    LITMUS_MEMORY_PAGEABLE,
};

struct litmus_buffer {
    const char *name;
    enum litmus_memory memory;
    int device;
    int size;
    int initial;    // byte value or LITMUS_UNDEFINED
    bool allocated; // by an operation; else it exists from the start
};

enum litmus_stream_kind {
    LITMUS_STREAM_BLOCKING,
    LITMUS_STREAM_NONBLOCKING,
    LITMUS_STREAM_LEGACY,
    LITMUS_STREAM_PER_THREAD,
};

struct litmus_stream {
    const char *name;
    enum litmus_stream_kind kind;
    int device;
};

struct litmus_event {
    const char *name;
    int device;
};

enum litmus_mode {
    LITMUS_MODE_GLOBAL,
    LITMUS_MODE_THREAD,
    LITMUS_MODE_RELAXED,
    LITMUS_MODE_BAD, // none of CUDA's
};

// ROWS pieces of LENGTH bytes, STRIDE apart, from OFFSET of a buffer on.
struct litmus_bytes {
    int buffer;
    int offset, length, stride, rows;
    int block; // 1 + index of the allocator's block through which the bytes are named; 0: none
};
static inline int litmus_bytes_count(const struct litmus_bytes *bytes) {
    return bytes->length * bytes->rows;
}
// Where in the buffer the INDEX-th of the bytes is.
static inline int litmus_bytes_at(const struct litmus_bytes *bytes, int index) {
    return bytes->offset + index / bytes->length * bytes->stride + index % bytes->length;
}

enum litmus_step_kind {
    LITMUS_STEP_SET,    // to = value
    LITMUS_STEP_ADD,    // to = from[0] + value; "copy" adds 0
    LITMUS_STEP_SUM,    // to = from[0] + from[1]
    LITMUS_STEP_ATOMIC, // to = to + value
    LITMUS_STEP_READ,   // from[0]
};

// How many of a step's FROM there are.
static inline int litmus_step_source_count(enum litmus_step_kind kind) {
    return kind == LITMUS_STEP_SUM ? 2 : kind == LITMUS_STEP_ADD || kind == LITMUS_STEP_READ;
}

struct litmus_step {
    enum litmus_step_kind kind;
    struct litmus_bytes to, from[2];
    int value;
};

// What a kernel or host function does, in this order.
struct litmus_effect {
    int step_count;
    struct litmus_step steps[LITMUS_STEP_COUNT_MAX];
};

struct litmus_operation {
    const char *label;
    enum litmus_verb verb;
    int thread;
    int guard; // the query, by operation index, on whose result this depends; -1 for none
    bool guard_success;
    // Operands, in the verb's order within each kind; what the verb lacks is 0.
    int stream, events[2], timeline, buffer, block, graph, exec, numbers[2];
    enum litmus_mode mode;
    struct litmus_bytes bytes[2];
    const char *word;
    int dependency_count;
    int dependencies[LITMUS_OPERATION_COUNT_MAX]; // operations that added nodes
    struct litmus_effect effect;
};

// One item of an outcome: the bytes of a buffer, or what an operation read or got.
struct litmus_content {
    int buffer, operation; // one of them, the other is -1
    int count;             // 1: each byte, or the result of a query
    int16_t values[LITMUS_BYTE_COUNT_MAX]; // LITMUS_UNDEFINED matches any
};

struct litmus_outcome {
    const char *text; // as the file says it
    int content_count;
    struct litmus_content *contents;
};

struct litmus_return {
    int operation;
    int code;
};

enum litmus_race_kind {
    LITMUS_RACE_WRITE_WRITE,
    LITMUS_RACE_READ_WRITE,
    LITMUS_RACE_REUSE,
    LITMUS_RACE_USE_AFTER_FREE,
    LITMUS_RACE_USE_BEFORE_ALLOC,
    LITMUS_RACE_UNINITIALISED,
    LITMUS_RACE_KIND_COUNT,
};

// One of the two sides of a race: an operation, or a node by the operation that was captured and
// the one that launched it.
struct litmus_side {
    int operation; // -1: "-"
    int launch;    // -1: no node
};

struct litmus_race {
    enum litmus_race_kind kind;
    struct litmus_side sides[2];
    int buffer, block; // where: one of them, the other is -1
};

// What holds, always or under one reading of what CUDA's documents leave open.
struct litmus_expectation {
    const char *reading, *reading_value; // NULL: always
    bool race;         // the verdict: "race" or "ok"
    bool outside_life; // memory is used outside its life: a run may end in error 700
    int return_count, outcome_count, race_count;
    struct litmus_return *returns;
    struct litmus_outcome *outcomes;
    struct litmus_race *races;
};

struct litmus_case {
    const char *name, *kind;
    int line; // of "case", in the file
    int stream_count, event_count, timeline_count, buffer_count;
    int block_count, graph_count, exec_count;
    struct litmus_stream streams[LITMUS_DECLARATION_COUNT_MAX];
    struct litmus_event events[LITMUS_DECLARATION_COUNT_MAX];
    const char *timelines[LITMUS_DECLARATION_COUNT_MAX];
    struct litmus_buffer buffers[LITMUS_BUFFER_COUNT_MAX];
    const char *blocks[LITMUS_OPERATION_COUNT_MAX];
    const char *graphs[LITMUS_OPERATION_COUNT_MAX];
    const char *execs[LITMUS_OPERATION_COUNT_MAX];
    int operation_count;
    struct litmus_operation operations[LITMUS_OPERATION_COUNT_MAX];
    int expectation_count;
    struct litmus_expectation *expectations;
};

struct litmus_file {
    const char *path; // as given
    char *text;       // all strings point into it
    size_t case_count;
    struct litmus_case *cases;
};

// BASE_IO, or BASE_FORMAT with file, line, what is wrong and what would be right. On failure
// nothing is left to free.
enum base_status litmus_file_read(const char *path, struct litmus_file *file) BASE_MUST_USE;
// The same for text in memory, which it copies; PATH is for messages.
enum base_status litmus_text_read(const char *path, const char *text,
                                  struct litmus_file *file) BASE_MUST_USE;
void litmus_file_deinit(struct litmus_file *file);

const char *litmus_verb_word(enum litmus_verb verb);
bool litmus_verb_takes_stream(enum litmus_verb verb);
bool litmus_verb_takes_buffer(enum litmus_verb verb); // as a whole, to allocate or free it
const char *litmus_race_kind_word(enum litmus_race_kind kind);

#endif
