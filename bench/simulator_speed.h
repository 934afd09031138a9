// What is measured of the simulator, for the files of this benchmark: simulator_speed.c (the
// program, and what comes of it), simulator_speed_calls.c (calls and operations),
// simulator_speed_graph.c (capture and graphs), simulator_speed_race.c (the race checker).
#ifndef TIDEMARK_BENCH_SIMULATOR_SPEED_H
#define TIDEMARK_BENCH_SIMULATOR_SPEED_H

#include "bench/shim.h"
#include "simulator/sim.h"

#include <stdbool.h>
#include <stdint.h>

#define SPEED_STREAMS_MAX 10000

enum speed_group {
    SPEED_GROUP_CALL,    // one call, beside a mutex
    SPEED_GROUP_SPEED,   // operations a second
    SPEED_GROUP_STREAMS, // growth with streams
    SPEED_GROUP_PENDING, // growth with pending operations
    SPEED_GROUP_CAPTURE, // growth with the nodes of a graph
    SPEED_GROUP_COUNT,
};

struct speed_case {
    char name[64];
    enum speed_group group;
    const char *series;   // of a growth: whose slope; NULL: the chase
    const char *schedule; // NULL: no simulator in it
    void (*measure)(struct bench_state *state, void *argument);
    uint64_t count;     // streams, pending operations or nodes
    double limit;       // of CALL, times the mutex; of SPEED, operations a second
    uint64_t per_batch; // operations of one iteration
};

// Named simulator/GROUP/SERIES, and /COUNT unless that is 0. One operation a batch.
struct speed_case *speed_case_add(enum speed_group group, const char *series, const char *schedule,
                                  uint64_t count,
                                  void (*measure)(struct bench_state *, void *));

extern bool speed_smoke; // few iterations, small counts, no times
extern uint64_t speed_seed;

// --- simulator_speed_calls.c ---

extern cudaStream_t speed_streams[SPEED_STREAMS_MAX];
extern cudaEvent_t speed_events[SPEED_STREAMS_MAX];

// A new machine with the case's schedule, and so many NonBlocking streams and events.
void speed_machine_start(const struct speed_case *measured, int stream_count,
                         enum sim_numerics numerics);
// The benchmark fails if something is pending or a call failed.
void speed_machine_check(struct bench_state *state, int stream_count);
void speed_empty_kernel(const void *argument);
// A walk along pointers over COUNT nodes of 64 bytes: what memory alone makes of a growth.
void speed_chase_add(enum speed_group group, uint64_t count);

void speed_cases_calls(void);
void speed_cases_graph(void);
void speed_cases_race(void);

#endif
