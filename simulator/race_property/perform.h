// Plays a program through the CUDA API of the simulated device with the race checker on, and says
// which pairs were reported.
#ifndef TIDEMARK_SIMULATOR_RACE_PROPERTY_PERFORM_H
#define TIDEMARK_SIMULATOR_RACE_PROPERTY_PERFORM_H

#include "simulator/race_property/closure.h"

struct performance {
    const char *schedule; // for sim_schedule
    int cell_bytes;       // what a cell stands for
    // Of accesses through a block, how many launches name it, in parts of two.
    int name_blocks;
    // The checker has seen much before the program begins, and keeps less of what others stand for.
    bool late;
    // Device memory is addresses only; programs that watch counters get real memory all the same.
    bool without_bytes;
};

struct performed {
    int results[OPERATIONS_MAX]; // of queries
    int pair_count;
    struct pair pairs[PAIRS_MAX];
    char problem[512]; // a call that failed, a report of none of the program's operations; else ""
    char text[2048];   // of the first report
};

// Starts the machine anew each time. A host thread other than the caller makes the calls of thread
// 1. Not thread-safe.
void program_perform(const struct program *program, const struct performance *performance,
                     struct performed *performed);

#endif
