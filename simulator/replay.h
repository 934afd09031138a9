// Launches of executables. A launch is one item of its stream: an operation that begins it and one
// that ends it, and between them the nodes, each an operation of a *lane*.
//
// A lane is a stream that no program knows: it runs a chain of nodes of which each depends on the
// one before, so that its order, first in first out, forbids nothing that the edges allow. Other
// edges are positions that a node waits for. To the engine and the schedules lanes are streams like
// others, and nodes are ready when what they depend on is complete. Lanes are taken for a launch
// and go back when it ends.
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_REPLAY_H
#define TIDEMARK_SIMULATOR_REPLAY_H

#include "simulator/engine.h"

struct sim__exec; // graph.h

struct sim__launch {
    struct sim__exec *exec;
    uint64_t graph;  // number of the graph that it was made from
    uint64_t stream; // number of the stream that it was launched in
    uint64_t stream_handle;
    bool legacy;     // that is its device's legacy stream
    uint32_t lane_count, lane_size;
    struct sim__stream **lanes; // NULL where a number is not used
    struct sim__launch *next_idle, *next; // of all
};

// All nodes are complete: called by the operation that ends LAUNCH.
void sim__launch_end(struct sim__launch *launch);

// Lanes by index, in use or idle.
extern uint32_t sim__lane_count;
struct sim__stream *sim__lane_at(uint32_t index);
// Drops all lanes and launches with what is pending in them: the machine stops. Executables and
// streams stay untouched.
void sim__launches_clear(void);

#endif
