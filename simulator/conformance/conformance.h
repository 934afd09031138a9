// Conformance cases: each rule of the CUDA contract as a small program and the answer that it must
// give. The same source runs on the simulator and, with --config=cuda, on a GPU, so that what we
// believe of CUDA can be held against the hardware.
//
//     static void free_null(struct conformance *c) {
//         answer_code(c, "free", cudaFree(NULL));
//     }
//     CASE("free-null", "2", VERIFIED, free_null, "cudaFree(NULL) succeeds", "free=0", NULL)
//
// A case writes what it sees as words "LABEL=VALUE"; all together are its answer. What it makes by
// the conformance_ functions is gone when it ends.
#ifndef TIDEMARK_SIMULATOR_CONFORMANCE_CONFORMANCE_H
#define TIDEMARK_SIMULATOR_CONFORMANCE_CONFORMANCE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFORMANCE_ANSWER_SIZE 1024
#define CONFORMANCE_OBJECT_COUNT_MAX 32

enum conformance_status {
    CONFORMANCE_VERIFIED,   // by headers, documents, or reports of hardware
    CONFORMANCE_UNVERIFIED, // inferred: the hardware is asked first of all about these
};

enum conformance_object_kind {
    CONFORMANCE_STREAM,
    CONFORMANCE_EVENT,
    CONFORMANCE_DEVICE_MEMORY,
    CONFORMANCE_PINNED_MEMORY,
    CONFORMANCE_GRAPH,
    CONFORMANCE_GRAPH_EXEC,
};

struct conformance_object {
    enum conformance_object_kind kind;
    void *handle;
};

// A case that runs.
struct conformance {
    char answer[CONFORMANCE_ANSWER_SIZE];
    size_t length;
    int object_count;
    struct conformance_object objects[CONFORMANCE_OBJECT_COUNT_MAX];
    int gate_count;
    cudaStream_t gates[CONFORMANCE_OBJECT_COUNT_MAX];
};

struct conformance_case {
    const char *name;
    const char *section; // of the contract
    enum conformance_status status;
    const char *rule;
    const char *expected; // the simulator's answer
    const char *also;     // another answer that the contract allows; NULL if there is none
    const char *function; // the name of RUN
    void (*run)(struct conformance *c);
    int device_count;    // that it needs
    bool simulator_only; // it uses the simulator's control
};

struct conformance_group {
    const char *title;
    const struct conformance_case *cases; // ends with one without a name
};

// All cases, in the order of the contract.
extern const struct conformance_group conformance_groups[]; // ends with one without a title
size_t conformance_case_count(void);
// NULL if there is none of that name.
const struct conformance_case *conformance_case_find(const char *name);

// What the simulated machine has when a case starts.
#define CONFORMANCE_DEVICE_COUNT 2

// Runs a case. On the simulator the machine starts anew before it; on a GPU what it made is given
// back after it. The answer is in *c.
void conformance_run(const struct conformance_case *one, struct conformance *c);
bool conformance_answer_is_expected(const struct conformance_case *one,
                                    const struct conformance *c);

// --- Answers ---

// The number of an error code. The thread's last error is cleared, for what follows.
void answer_code(struct conformance *c, const char *label, cudaError_t error);
void answer_number(struct conformance *c, const char *label, int64_t number);
void answer_yes(struct conformance *c, const char *label, bool yes); // "yes" or "no"
void answer_word(struct conformance *c, const char *label, const char *word);
// Whether what EVENT covers is complete: "done" or "pending". On a GPU it gets some time to be.
void answer_event(struct conformance *c, const char *label, cudaEvent_t event);

// For calls that only prepare: one that fails ends the case with "CALL=CODE".
#define MUST(c, call)                                       \
    do {                                                    \
        const cudaError_t must_error = (call);              \
        if (must_error != cudaSuccess) {                    \
            answer_code((c), #call, must_error);            \
            return;                                         \
        }                                                   \
    } while (0)

// --- What a case makes; NULL, with a word in the answer, if it cannot be made ---

cudaStream_t conformance_stream(struct conformance *c, unsigned int flags);
cudaEvent_t conformance_event(struct conformance *c);
void *conformance_device_memory(struct conformance *c, size_t size);
void *conformance_pinned_memory(struct conformance *c, size_t size);
cudaGraph_t conformance_graph(struct conformance *c);
cudaGraphExec_t conformance_graph_exec(struct conformance *c, cudaGraph_t graph);
// A graph or an executable that the case made itself goes when it ends. NULL: nothing.
void conformance_keep_graph(struct conformance *c, cudaGraph_t graph);
void conformance_keep_graph_exec(struct conformance *c, cudaGraphExec_t exec);
// An event recorded in the stream now.
cudaEvent_t conformance_mark(struct conformance *c, cudaStream_t stream);

// --- Gates: work that stays pending until the case says so ---

// What is enqueued in STREAM from now on stays pending until conformance_open, or until a call
// waits for it: a GPU's gate opens by itself after a while, so that such a call returns.
void conformance_gate(struct conformance *c, cudaStream_t stream);
void conformance_open(struct conformance *c);

// --- Threads ---

// Runs BODY in a new host thread and waits for it.
void conformance_in_thread(struct conformance *c, void (*body)(struct conformance *c));

// --- Bytes ---

// The first byte of device memory, once all work is done; -1 if it cannot be read.
int conformance_byte(const void *device_memory);

#endif
