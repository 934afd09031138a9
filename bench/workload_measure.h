// One program of workload/program.h under one allocator setting: how long its steps take, what
// memory it needs, and what the allocator adds to either.
//
// On the simulated device each pass begins on a fresh one:
//
//     check      the smallest size, with values: nothing is measured of what computes wrongly
//     steps      the schedule `timed`, memory and calls only, host threads in an order from the
//                seed: times are modelled and the same everywhere; so are memory and stalls
//     host       rounds with the allocator watched and without: its share of the CPU time
//
// On a GPU the steps are timed by its events, and values are computed throughout.
#ifndef TIDEMARK_BENCH_WORKLOAD_MEASURE_H
#define TIDEMARK_BENCH_WORKLOAD_MEASURE_H

#include "base/options.h"
#include "bench/workload_watch.h"
#include "workload/program.h"

struct workload_measure_options {
    enum workload_size size;
    uint64_t steps; // at least 2
    uint64_t seed;
    uint64_t capacity_bytes; // of each simulated device; 0: as its profile has it
    double fraction;         // of it that the process may take; negative: no limit
    int rounds;              // of the host pass
};

struct workload_measured {
    bool out_of_memory; // what follows is not known then
    uint64_t checksum;  // of the check
    uint64_t steps;
    // Of the steps behind the first one, which begins with the program and has most of an
    // allocator's growth; from the end of the step before to its own.
    double first_ns, mean_ns, p50_ns, p90_ns, p99_ns, max_ns;
    double steps_per_second;
    // Modelled only, else 0: the same with all published costs high, and low.
    double steps_per_second_low, steps_per_second_high;
    // Over all devices; the fraction of the largest device for limits.
    int64_t requests, peak_allocated_bytes, peak_active_bytes, peak_reserved_bytes;
    int64_t peak_requested_bytes, largest_peak_reserved_bytes;
    int64_t device_mallocs, device_frees, retries, waits_for_all;
    // Up to the end of the first step, and altogether; of which `calls` are those of the program's
    // steps behind the first.
    struct workload_watch_totals first, all;
    // CPU time of a step behind the first: the allocator's, the whole program's, the quotient's
    // median over rounds, and what a watched call costs beside it.
    double allocator_cpu_ns, cpu_ns, allocator_share, watch_ns;
};

// BASE_CHECK_FAILED: a value is wrong, or memory is left. BASE_UNSUPPORTED, BASE_INVALID_CONFIG:
// the program cannot run under this setting. BASE_INTERRUPTED. Running out of memory is a result.
enum base_status workload_measure(const struct workload_program *program, const char *config,
                                  const struct workload_measure_options *options,
                                  struct workload_measured *measured) BASE_MUST_USE;

// Whether there are as many devices as the program needs: always, on the simulator.
bool workload_measure_has_devices(const struct workload_program *program);

#endif
