// The state that a window begins with, made in a fresh allocator. Private to the replay.
#ifndef TIDEMARK_WORKLOAD_REPLAY_START_H
#define TIDEMARK_WORKLOAD_REPLAY_START_H

#include "workload/replay_device.h"
#include "workload/replay_pools.h"

// Makes the plan's start state. EXACT rebuilds every segment and block at its place, which only the
// recorded configuration can; otherwise the blocks in use are allocated, in order of address.
// POINTERS[slot] gets each block in use. *exact_out tells whether every block lies where the
// recording says. BASE_OUT_OF_MEMORY and the allocator's other statuses.
enum base_status workload__start_make(const struct workload_replay_plan *plan,
                                      struct allocator *allocator,
                                      const struct workload__device *device,
                                      struct workload__pools *pools, bool exact, void **pointers,
                                      bool *exact_out) BASE_MUST_USE;

#endif
