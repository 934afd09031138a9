// The inside of a player: play.c has a run from start to end, perform.c and perform_graph.c one
// operation, work.c what device work does, report.c what the race checker found.
#ifndef TIDEMARK_SIMULATOR_LITMUS_PLAYER_H
#define TIDEMARK_SIMULATOR_LITMUS_PLAYER_H

#include "base/random.h"
#include "base/thread.h"
#include "simulator/litmus/play.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <pthread.h>

#define LITMUS_ACCESS_COUNT_MAX (3 * LITMUS_STEP_COUNT_MAX)

// What device work touches: an effect, and where its buffers were at the call.
struct litmus_work {
    const struct litmus_player *player;
    const struct litmus_effect *effect;
    unsigned char *addresses[LITMUS_STEP_COUNT_MAX][3]; // to, from[0], from[1]
};

// A second host thread, and whose turn it is: the main thread and the second one are never in a
// case's calls at once, so all other state belongs to whoever has the turn. The lock is not one of
// base/thread.h: those tell the race checker that what one thread did comes before what another one
// does, and a case's threads are ordered by nothing but its hand-offs.
struct litmus_turn {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct base_thread thread;
    bool second;           // the second thread's turn; guarded by lock
    bool quit;             // guarded by lock
    bool begins;           // it has made no call in this run
    int first, last;       // its operations in the order of submission
};

struct litmus_player {
    const struct litmus_case *current;
    const struct litmus_expectation *expectation;
    const char *default_reading; // what the reading of EXPECTATION was before
    bool checked;
    bool stale; // the last run ended in an error that stays: the devices must be started anew
    bool held;  // schedule "held:SEED"
    bool races; // the race checker is on
    struct base_random random;
    cudaStream_t streams[LITMUS_DECLARATION_COUNT_MAX];
    bool stream_destroyed[LITMUS_DECLARATION_COUNT_MAX];
    cudaEvent_t events[LITMUS_DECLARATION_COUNT_MAX];
    bool event_destroyed[LITMUS_DECLARATION_COUNT_MAX];
    unsigned char *addresses[LITMUS_BUFFER_COUNT_MAX];
    bool live[LITMUS_BUFFER_COUNT_MAX];
    unsigned char pageable[LITMUS_BUFFER_COUNT_MAX][LITMUS_BYTE_COUNT_MAX];
    uint32_t *timelines; // page-locked
    struct litmus_work work[LITMUS_OPERATION_COUNT_MAX]; // of host functions
    uint64_t blocks[LITMUS_OPERATION_COUNT_MAX];         // as the race checker numbers them
    cudaGraph_t graphs[LITMUS_OPERATION_COUNT_MAX];
    cudaGraphExec_t execs[LITMUS_OPERATION_COUNT_MAX];
    // Captures by their ids, 0 for none: in which one an operation allocated or freed, and which
    // one made a graph and an executable. A launch does to its buffers what was captured.
    unsigned long long operation_captures[LITMUS_OPERATION_COUNT_MAX];
    unsigned long long graph_captures[LITMUS_OPERATION_COUNT_MAX];
    unsigned long long exec_captures[LITMUS_OPERATION_COUNT_MAX];
    cudaGraphNode_t nodes[LITMUS_OPERATION_COUNT_MAX];   // by the operation that added them
    int device[LITMUS_THREAD_COUNT];                     // current, by thread
    int order[LITMUS_OPERATION_COUNT_MAX];               // of submission
    struct litmus_result *result;
    struct litmus_turn turn;
};

// An operation with what its call needs.
struct litmus_call {
    struct litmus_player *player;
    const struct litmus_operation *operation;
    int index;
    cudaStream_t stream;
    cudaEvent_t events[2];
    unsigned char *bytes[2]; // the first of each
};

// A kernel, and what it points to.
struct litmus_launch {
    struct sim_kernel kernel;
    struct litmus_work work;
    struct sim_access accesses[LITMUS_ACCESS_COUNT_MAX];
};

// Makes the call of OPERATION, of which the calling thread is the right one.
void litmus__perform(struct litmus_player *player, int operation);
// In a "held" run: lets some operations run.
void litmus__advance_held(struct litmus_player *player);

// --- work.c ---

void litmus__launch_prepare(const struct litmus_call *call, struct litmus_launch *launch);
void litmus__work_prepare(const struct litmus_call *call, struct litmus_work *work);
void litmus__work_run_on_host(void *argument);
size_t litmus__accesses(const struct litmus_call *call,
                        struct sim_access accesses[LITMUS_ACCESS_COUNT_MAX]);

// --- perform_graph.c ---

cudaError_t litmus__begin(const struct litmus_call *call);
cudaError_t litmus__end(const struct litmus_call *call);
cudaError_t litmus__exchange(const struct litmus_call *call);
cudaError_t litmus__status(const struct litmus_call *call);
cudaError_t litmus__graph_create(const struct litmus_call *call);
cudaError_t litmus__add_kernel(const struct litmus_call *call);
cudaError_t litmus__instantiate(const struct litmus_call *call);
cudaError_t litmus__launch(const struct litmus_call *call);
cudaError_t litmus__exec_destroy(const struct litmus_call *call);
cudaError_t litmus__graph_destroy(const struct litmus_call *call);
// The capture that the stream of CALL takes part in, 0: none.
unsigned long long litmus__capture(const struct litmus_call *call);
// Behind the calls of a run: captures that still run end; false if one cannot be ended.
bool litmus__captures_end(const struct litmus_player *player);
void litmus__graphs_destroy(struct litmus_player *player);

// --- report.c ---

struct litmus_race litmus__race(const struct litmus_player *player,
                                const struct sim_race_report *report);
// All that the checker reported.
void litmus__races_collect(const struct litmus_player *player, struct litmus_result *result);

#endif
