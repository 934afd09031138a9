// Random calls about capture and graphs, right and wrong ones: every handle may be one that is
// destroyed, another kind's, NULL or none at all. graph_fuzz_test.c makes them.
#ifndef TIDEMARK_SIMULATOR_GRAPH_FUZZ_CALL_H
#define TIDEMARK_SIMULATOR_GRAPH_FUZZ_CALL_H

#include "base/random.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

enum fuzz_kind {
    FUZZ_STREAM,
    FUZZ_EVENT,
    FUZZ_GRAPH,
    FUZZ_NODE,
    FUZZ_EXEC,
    FUZZ_POINTER, // of graphs and pools
    FUZZ_OBJECT,
    FUZZ_KIND_COUNT,
};

// One host thread that makes calls. Handles are shared by all.
struct fuzz_thread {
    struct base_random random;
    uint64_t call_count;
    uint64_t success_count;
    bool faulted; // the device is lost: nothing is to be learned from further calls
};

#define FUZZ_CALL_COUNT_MAX 96
// How often each call was made, and succeeded; guarded by nothing: for one thread.
extern uint64_t fuzz_made[FUZZ_CALL_COUNT_MAX], fuzz_succeeded[FUZZ_CALL_COUNT_MAX];
int fuzz_call_count(void);
const char *fuzz_call_name(int call);

// Starts with what every run has: streams, events, buffers, graphs of a few nodes.
void fuzz_begin(uint64_t seed);
// One call. A code that CUDA's contract does not give for it ends the program.
void fuzz_call(struct fuzz_thread *thread);

#endif
