// Plays a case: makes its calls through the CUDA API of the simulated device, and says what they
// returned and left behind.
//
//     struct litmus_player *player = litmus_player_create(false);
//     status = litmus_player_load(player, &file.cases[0], &file.cases[0].expectations[0]);
//     status = litmus_play(player, &(struct litmus_run){.schedule = "random:17"}, &result);
//     litmus_player_destroy(player);
//
// Calls are submitted in file order, each by the host thread that the case names. Kernels and host
// functions are real: their effects change the bytes of simulated memory, when the schedule lets
// them run. Streams and events are new in every run; declared memory is filled anew.
//
// With the race checker, it is told what a program would tell it: labels, what kernels, host
// functions and the host touch, an allocator's blocks, hand-offs between threads, values seen.
//
// The simulator is one in a process, and so is the player. Not thread-safe.
#ifndef TIDEMARK_SIMULATOR_LITMUS_PLAY_H
#define TIDEMARK_SIMULATOR_LITMUS_PLAY_H

#include "simulator/litmus/case.h"

// A loop until success that fails this often will never succeed.
#define LITMUS_POLL_COUNT_MAX 100000

struct litmus_player;

struct litmus_run {
    // For sim_schedule; or "held:SEED": all streams are held, and the player itself lets operations
    // run at random (sim_stream_run).
    const char *schedule;
    // Threads submit in any order that hand-offs allow, drawn from this; 0: in file order.
    uint64_t interleaving_seed;
    bool races; // under the race checker
};

struct litmus_result {
    bool performed[LITMUS_OPERATION_COUNT_MAX]; // not kept back by "if" or "ifnot"
    int codes[LITMUS_OPERATION_COUNT_MAX];
    // What a host read saw; what a query returned, as its only value.
    int16_t observed[LITMUS_OPERATION_COUNT_MAX][LITMUS_BYTE_COUNT_MAX];
    bool live[LITMUS_BUFFER_COUNT_MAX]; // allocated at the end
    uint8_t contents[LITMUS_BUFFER_COUNT_MAX][LITMUS_BYTE_COUNT_MAX];
    bool illegal_address; // error 700: what came after it means nothing
    int never_succeeded;  // the operation whose polling gave up; -1 for none
    // What the race checker reported; more than fit are counted only.
    bool races_judged;
    int race_count;
    struct litmus_race races[LITMUS_RACE_COUNT_MAX];
};

// CHECKED: in the simulator's checked mode, which says on standard error what a case does wrong,
// and puts bytes of its own into memory that nobody wrote.
struct litmus_player *litmus_player_create(bool checked);
void litmus_player_destroy(struct litmus_player *player);

// Starts the devices anew, with the case's declared memory and the reading of EXPECTATION, one of
// its own; the case must stay until it is unloaded.
// BASE_INVALID_VALUE for a reading that the simulator does not have.
enum base_status litmus_player_load(struct litmus_player *player,
                                    const struct litmus_case *current,
                                    const struct litmus_expectation *expectation) BASE_MUST_USE;
// The simulator's reading goes back to what it was. Nothing happens without a case.
void litmus_player_unload(struct litmus_player *player);
// BASE_INVALID_VALUE for a schedule that the simulator does not have.
enum base_status litmus_play(struct litmus_player *player, const struct litmus_run *run,
                             struct litmus_result *result) BASE_MUST_USE;

// Operations whose result is part of the outcome.
bool litmus_verb_observes(enum litmus_verb verb);
bool litmus_verb_queries(enum litmus_verb verb);

#endif
