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
#define LITMUS_UNDEFINED        (-1) // "?": a byte that nobody wrote, or any value

// X(NAME, WORD, OPERANDS, NEEDS): the operands behind the verb, a letter each (parse.c reads them),
// and what the verb needs that this program does not play, NULL if it plays it. Operands of verbs
// that are not played are not read.
//
//     s stream          e event           b bytes             n number        f effect, to the end
//     t timeline        p live buffer     a buffer that is allocated here     k block that begins
//     l block           w any word
#define LITMUS_VERB_LIST(X)                        \
    X(KERNEL, "kernel", "sf", NULL)                \
    X(HOST_FUNCTION, "hostfunc", "sf", NULL)       \
    X(COPY, "memcpy", "sbb", NULL)                 \
    X(COPY_2D, "memcpy2d", "sbb", NULL)            \
    X(COPY_ASYNC, "memcpyasync", "sbb", NULL)      \
    X(COPY_2D_ASYNC, "memcpy2dasync", "sbb", NULL) \
    X(COPY_PEER, "memcpypeer", "bb", NULL)         \
    X(COPY_PEER_ASYNC, "memcpypeerasync", "sbb", NULL) \
    X(FILL, "memset", "sbn", NULL)                 \
    X(FILL_2D, "memset2d", "sbn", NULL)            \
    X(FILL_ASYNC, "memsetasync", "sbn", NULL)      \
    X(FILL_2D_ASYNC, "memset2dasync", "sbn", NULL) \
    X(RECORD, "record", "es", NULL)                \
    X(WAIT, "wait", "se", NULL)                    \
    X(EVENT_SYNCHRONIZE, "eventsync", "e", NULL)   \
    X(EVENT_QUERY, "eventquery", "e", NULL)        \
    X(EVENT_POLL, "eventpoll", "e", NULL)          \
    X(EVENT_CREATE, "eventcreate", "en", NULL)     \
    X(EVENT_DESTROY, "eventdestroy", "e", NULL)    \
    X(ELAPSED, "elapsed", "ee", NULL)              \
    X(STREAM_SYNCHRONIZE, "streamsync", "s", NULL) \
    X(STREAM_QUERY, "streamquery", "s", NULL)      \
    X(STREAM_POLL, "streampoll", "s", NULL)        \
    X(STREAM_DESTROY, "streamdestroy", "s", NULL)  \
    X(DEVICE_SYNCHRONIZE, "devicesync", "n", NULL) \
    X(SET_DEVICE, "setdevice", "n", NULL)          \
    X(HOST_WRITE, "hostwrite", "bn", NULL)         \
    X(HOST_READ, "hostread", "b", NULL)            \
    X(SIGNAL, "signal", "w", NULL)                 \
    X(AWAIT, "await", "w", NULL)                   \
    X(ALLOC, "malloc", "ann", NULL)                \
    X(FREE, "free", "p", NULL)                     \
    X(HOST_ALLOC, "hostalloc", "an", NULL)         \
    X(HOST_FREE, "hostfree", "p", NULL)            \
    X(ALLOC_ASYNC, "mallocasync", "ans", NULL)     \
    X(FREE_ASYNC, "freeasync", "ps", NULL)         \
    X(TAKE, "take", "kbs", NULL)                   \
    X(USE, "use", "ls", NULL)                      \
    X(GIVE, "give", "l", NULL)                     \
    X(WRITE_VALUE, "writevalue", "stn", NULL)      \
    X(VALUE_POLL, "valuepoll", "tn", NULL)         \
    X(BEGIN, "begin", "", "capture")               \
    X(END, "end", "", "capture")                   \
    X(EXCHANGE, "exchange", "", "capture")         \
    X(STATUS, "status", "", "capture")             \
    X(GRAPH_CREATE, "graphcreate", "", "graphs")   \
    X(ADD_KERNEL, "addkernel", "", "graphs")       \
    X(INSTANTIATE, "instantiate", "", "graphs")    \
    X(LAUNCH, "launch", "", "graphs")              \
    X(EXEC_DESTROY, "execdestroy", "", "graphs")   \
    X(GRAPH_DESTROY, "graphdestroy", "", "graphs")

enum litmus_verb {
#define LITMUS_VERB_ENUMERATOR(name, word, operands, needs) LITMUS_VERB_##name,
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

// ROWS pieces of LENGTH bytes, STRIDE apart, from OFFSET of a buffer on.
struct litmus_bytes {
    int buffer;
    int offset, length, stride, rows;
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
    int stream, events[2], timeline, buffer, numbers[2];
    struct litmus_bytes bytes[2];
    const char *word;
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

// What holds, always or under one reading of what CUDA's documents leave open.
struct litmus_expectation {
    const char *reading, *reading_value; // NULL: always
    bool race;         // the verdict: "race" or "ok"
    bool outside_life; // memory is used outside its life: a run may end in error 700
    int return_count, outcome_count;
    struct litmus_return *returns;
    struct litmus_outcome *outcomes;
};

struct litmus_case {
    const char *name, *kind;
    const char *needs; // what it needs that is not played; NULL if it is played
    int line;          // of "case", in the file
    int stream_count, event_count, timeline_count, buffer_count;
    struct litmus_stream streams[LITMUS_DECLARATION_COUNT_MAX];
    struct litmus_event events[LITMUS_DECLARATION_COUNT_MAX];
    const char *timelines[LITMUS_DECLARATION_COUNT_MAX];
    struct litmus_buffer buffers[LITMUS_BUFFER_COUNT_MAX];
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

#endif
