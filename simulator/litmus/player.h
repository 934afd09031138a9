// The inside of a player, for play.c (a run from start to end) and perform.c (one operation).
#ifndef TIDEMARK_SIMULATOR_LITMUS_PLAYER_H
#define TIDEMARK_SIMULATOR_LITMUS_PLAYER_H

#include "base/random.h"
#include "base/thread.h"
#include "simulator/litmus/play.h"
#include "simulator/sim.h"

// What device work touches: an effect, and where its buffers were at the call.
struct litmus_work {
    const struct litmus_player *player;
    const struct litmus_effect *effect;
    unsigned char *addresses[LITMUS_STEP_COUNT_MAX][3]; // to, from[0], from[1]
};

// A second host thread, and whose turn it is: the main thread and the second one are never in a
// case's calls at once, so all other state belongs to whoever has the turn.
struct litmus_turn {
    struct base_mutex lock;
    struct base_condition changed;
    struct base_thread thread;
    bool second;           // the second thread's turn; guarded by lock
    bool quit;             // guarded by lock
    int first, last;       // its operations in the order of submission
};

struct litmus_player {
    const struct litmus_case *current;
    const struct litmus_expectation *expectation;
    const char *default_reading; // what the reading of EXPECTATION was before
    bool checked;
    bool stale; // the last run ended in an error that stays: the devices must be started anew
    bool held;  // schedule "held:SEED"
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
    int device[LITMUS_THREAD_COUNT];                     // current, by thread
    int order[LITMUS_OPERATION_COUNT_MAX];               // of submission
    struct litmus_result *result;
    struct litmus_turn turn;
};

// Makes the call of OPERATION, of which the calling thread is the right one.
void litmus__perform(struct litmus_player *player, int operation);
// In a "held" run: lets some operations run.
void litmus__advance_held(struct litmus_player *player);

#endif
