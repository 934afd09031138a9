// The recording's private pools on an allocator: which one requests go to, and who uses them. An
// allocator without private pools serves everything from one. Private to the replay.
#ifndef TIDEMARK_WORKLOAD_REPLAY_POOLS_H
#define TIDEMARK_WORKLOAD_REPLAY_POOLS_H

#include "workload/replay_plan.h"

struct workload__pools {
    struct allocator *allocator;
    const struct trace *trace;
    bool caching;
    uint16_t route; // where requests go; 0: to no private pool
    bool *is_used;  // by the trace's index: the replay is a user of it
};

// BASE_HOST_MEMORY. The allocator must be fresh.
enum base_status workload__pools_init(struct workload__pools *pools,
                                      const struct workload_replay_plan *plan,
                                      struct allocator *allocator) BASE_MUST_USE;
// Requests from here on go to that pool, which the replay uses until workload__pools_release.
enum base_status workload__pools_route(struct workload__pools *pools, uint16_t pool) BASE_MUST_USE;
enum base_status workload__pools_release(struct workload__pools *pools,
                                         uint16_t pool) BASE_MUST_USE;
// Of that pool; 0: everything.
enum base_status workload__pools_empty_cache(struct workload__pools *pools,
                                             uint16_t pool) BASE_MUST_USE;
// Routes to none and uses none. The allocator lives.
void workload__pools_deinit(struct workload__pools *pools);

#endif
