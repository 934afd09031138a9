// A program without races that keeps the race checker busy: 16 streams that write and read blocks
// of their own, and read those of a neighbour behind an event and a wait; strided fills side by
// side, atomics that all share, blocks that are given back and taken again. No host wait at all:
// the checker must forget by itself.
#ifndef TIDEMARK_BENCH_RACE_LOAD_H
#define TIDEMARK_BENCH_RACE_LOAD_H

#include "simulator/sim.h"

#include <stdint.h>

#define RACE_LOAD_STREAMS 16

struct race_load {
    cudaStream_t streams[RACE_LOAD_STREAMS];
    cudaEvent_t written[RACE_LOAD_STREAMS], read[RACE_LOAD_STREAMS];
    char *arena;    // a piece for each stream, and one for all
    uint64_t owned[RACE_LOAD_STREAMS]; // block in the middle of each stream's piece
    uint64_t at;    // operations so far
};

// On a new machine, with the checker on or off.
void race_load_begin(struct race_load *load);
// COUNT operations; each is one CUDA call.
void race_load_run(struct race_load *load, uint64_t count);
void race_load_end(struct race_load *load);

#endif
