// The transcript: every CUDA call with its arguments and its result, and every operation with the
// time at which it ran.
//
//     transcript.c            when it is written, where to, and the form of lines of text
//     timeline.c              the other form, a trace of events that Perfetto shows
//     transcript_value.c      arguments as text
//     transcript_wrappers.py  makes a wrapper of each call that include/ and sim.h declare
//
// A wrapper has the call's name and calls the simulator's own function, which is compiled under
// another one (sim__call_ before it). While no transcript is written that costs one branch.
//
// Of threads: a transcript may not change what it writes down, and under sim_serialize each lock of
// base/thread.h is a point where the turn can pass. So the simulator's lock is taken below that
// layer here; it guards all of the transcript's state.
#ifndef TIDEMARK_SIMULATOR_TRANSCRIPT_H
#define TIDEMARK_SIMULATOR_TRANSCRIPT_H

#include "simulator/engine.h"

#include <stdatomic.h>
#include <stdio.h>

enum sim__transcript_state {
    SIM__TRANSCRIPT_OFF,
    SIM__TRANSCRIPT_UNKNOWN, // the environment has not been asked
    SIM__TRANSCRIPT_ON,
};
extern _Atomic int sim__transcript_state;

static inline bool sim__transcript_is_off(void) {
    return __builtin_expect(
        atomic_load_explicit(&sim__transcript_state, memory_order_relaxed) == SIM__TRANSCRIPT_OFF,
        1);
}

// Text that grows; what does not fit into the host's memory is left out.
struct sim__text {
    char *bytes; // NULL before the first
    size_t length, size;
};
void sim__text_add(struct sim__text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sim__text_deinit(struct sim__text *text);

// A call under way, kept by its wrapper.
struct sim__transcript_call {
    const char *name;
    struct sim__transcript_call *outer; // the call within which it is made, by a host function
    uint64_t number;
    uint64_t begin_ns, end_ns;
    int result;
    struct sim__text arguments; // "pointer, size=4096"
    struct sim__text outputs;   // ", *pointer=d0+0x200000"
    struct sim__text ran;       // lines of operations that ran within the call
};

// What a wrapper does: begin, its arguments, go, the call, returned, what the call stored, end.
void sim__transcript_begin(struct sim__transcript_call *call, const char *name);
void sim__transcript_go(struct sim__transcript_call *call);
void sim__transcript_returned(struct sim__transcript_call *call, int result);
void sim__transcript_end(struct sim__transcript_call *call);

// "cudaErrorInvalidValue", of cuBLAS calls "CUBLAS_STATUS_INVALID_VALUE".
const char *sim__transcript_result_name(const struct sim__transcript_call *call);

// Who hands out the address of a call hands out its wrapper. The wrappers tell before main.
struct sim__wrapper {
    void (*call)(void), (*wrapper)(void);
};
void sim__transcript_wrappers_are(const struct sim__wrapper *wrappers, size_t count);
// CALL itself if it has none.
void (*sim__transcript_wrapper_of(void (*call)(void)))(void);

// --- transcript_value.c: to ARGUMENTS or OUTPUTS ---

void sim__value_name(struct sim__text *text, const char *name);
void sim__value_number(struct sim__text *text, const char *name, long long value);
void sim__value_real(struct sim__text *text, const char *name, double value);
void sim__value_text(struct sim__text *text, const char *name, const char *value);
void sim__value_stream(struct sim__text *text, const char *name, const void *stream);
void sim__value_event(struct sim__text *text, const char *name, const void *event);
void sim__value_graph(struct sim__text *text, const char *name, const void *graph);
void sim__value_exec(struct sim__text *text, const char *name, const void *exec);
// As "2.5": the fifth node of graph 2.
void sim__value_node(struct sim__text *text, const char *name, const void *node);
void sim__value_object(struct sim__text *text, const char *name, const void *object);
void sim__value_blas(struct sim__text *text, const char *name, const void *handle);
void sim__value_address(struct sim__text *text, const char *name, uint64_t address);
void sim__value_kind(struct sim__text *text, const char *name, enum cudaMemcpyKind kind);
void sim__value_kernel(struct sim__text *text, const char *name, const struct sim_kernel *kernel);

// The machine starts: streams, events and graphs count from 1, host addresses are named anew.
void sim__values_reset(void);
// "kernel scale", "copy of 4096 bytes to the device": what OPERATION is.
void sim__value_operation(struct sim__text *text, const struct sim__operation *operation);

// --- timeline.c. Times are virtual, in ns. ---

// Where an operation stands in the timeline: a row, and the place in it. A graph's node is in a
// lane of a launch: the graph's number, that of the lane from 1, and the node's in its graph; else
// 0.
struct sim__mark {
    int device;
    uint64_t stream; // its number; of a node: where it was launched
    bool legacy;
    uint64_t sequence;
    uint64_t start_ns;
    uint64_t graph, node;
    uint32_t lane;
    uint64_t row;
};

// Rows of lanes have numbers from here on.
#define SIM__TIMELINE_LANE_FIRST 1000000

void sim__timeline_begin(FILE *file);
void sim__timeline_end(FILE *file);
void sim__timeline_thread(FILE *file, int thread);
// SORTED: rows stand in the order of streams, lanes behind their stream.
void sim__timeline_stream(FILE *file, const struct sim__mark *mark, bool sorted);
void sim__timeline_call(FILE *file, const struct sim__transcript_call *call, int thread);
void sim__timeline_operation(FILE *file, const struct sim__mark *mark, uint64_t end_ns,
                             const char *what);
void sim__timeline_arrow(FILE *file, uint64_t number, const struct sim__mark *from,
                         const struct sim__mark *to);
void sim__timeline_memory(FILE *file, int device, uint64_t used_bytes, uint64_t ns);

// --- For control.c ---

// With the simulator's lock held. Start comes before the first stream is made.
void sim__transcript_machine_starts(void);
void sim__transcript_machine_stops(void);

#endif
