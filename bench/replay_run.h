// One trace under one allocator configuration: memory observed, host time measured, as everything
// that replays here does it.
//
// Simulated build: the device is configured anew for every pass: the asked capacity, accounting
// only, addresses used again (the baseline without a cache would use up any address space). Real
// GPU: capacity is the GPU's, and recorded addresses are out of reach.
//
// Not thread-safe.
#ifndef TIDEMARK_BENCH_REPLAY_RUN_H
#define TIDEMARK_BENCH_REPLAY_RUN_H

#include "workload/replay.h"

// Memory of a device that nobody limited. More than any device has, and little enough that 56
// expandable segments, each of 9/8 of it, fit the addresses that a program has.
#define BENCH_REPLAY_CAPACITY_UNLIMITED ((uint64_t)2 << 40)

// What limits a replay.
struct bench_replay_limits {
    uint64_t capacity_bytes; // of the device; never 0
    bool capacity_known;     // asked for or recorded, not BENCH_REPLAY_CAPACITY_UNLIMITED
    double fraction;         // of it, for the process; 0: no limit
};

// The recording's own limits, each replaced where the user gave one (CAPACITY 0, FRACTION negative:
// not given).
struct bench_replay_limits bench_replay_limits_of(const struct trace *trace, uint64_t capacity,
                                                  double fraction);

// What the process may reserve: the capacity, or its fraction of it. 0: no limit.
uint64_t bench_replay_limit_bytes(const struct bench_replay_limits *limits);

// Whether a configuration is one of the caching allocator.
bool bench_replay_config_caches(const char *config);

struct bench_replay_setup {
    const struct workload_replay_plan *plan;
    const char *rules;  // version of PyTorch whose rules the caching allocator follows
    const char *config; // as the user wrote it: PyTorch's text, or x_allocator:NAME first
    struct bench_replay_limits limits;
    bool recorded; // the recording's own configuration and limits
};

// A fresh device and allocator. Free *ALLOCATOR with allocator_destroy.
enum base_status bench_replay_allocator(const struct bench_replay_setup *setup,
                                        struct allocator **allocator) BASE_MUST_USE;

// Modelled host time of the device calls of a pass (docs/cost-model.md): nothing waits for it.
struct bench_replay_device_time {
    bool known; // only the simulator has a model
    double low_s, typical_s, high_s;
};

// The observed pass, final layout included. DEVICE_TIME may be NULL.
enum base_status bench_replay_observe(const struct bench_replay_setup *setup,
                                      struct workload_replay_result *result,
                                      struct bench_replay_device_time *device_time) BASE_MUST_USE;
// The timed pass.
enum base_status bench_replay_time(const struct bench_replay_setup *setup,
                                   struct workload_replay_time *time) BASE_MUST_USE;

// Share of what the self-check compared that came out equal, 0 to 1; 1 if it compared nothing.
double bench_replay_share_equal(const struct workload_self_check *check);

#endif
