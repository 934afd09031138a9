// The requests of a trace as a sequence of sizes, and how far two such sequences are apart. For a
// program beside a recording of the same program elsewhere: not where blocks lay, which is the
// allocator's affair, but what was asked for, when, and for how long.
//
//     status = workload_requests_of(trace, 0, &run);
//     status = workload_requests_compare(&run, &recording, &difference);
//     difference.size_distance ...
//
// Frees count from their request. Blocks from before a window's first event are not seen: their
// frees are left out, and the peak is that of the window's own blocks.
#ifndef TIDEMARK_WORKLOAD_REQUESTS_H
#define TIDEMARK_WORKLOAD_REQUESTS_H

#include "trace/trace.h"

struct workload_requests {
    // An entry each for allocations and frees, in their order: the size; of a free, minus it.
    int64_t *steps;
    size_t step_count;
    uint64_t *sizes; // of the allocations, in their order
    size_t count;
    uint64_t peak_bytes; // requested bytes that were live at once
    // Allocations after which the sequence of sizes repeats, through the second half of it at
    // least; 0: it does not.
    size_t period;
};

// BASE_INVALID_VALUE: there is no such device; BASE_FORMAT: it allocates nothing; BASE_HOST_MEMORY.
// The caller calls deinit after success.
enum base_status workload_requests_of(const struct trace *trace, int device,
                                      struct workload_requests *requests) BASE_MUST_USE;
void workload_requests_deinit(struct workload_requests *requests);

// A size that either of the two asks for, and how often each does.
struct workload_size_use {
    uint64_t size, count_a, count_b;
};

struct workload_requests_difference {
    double peak;  // of a over that of b, less 1
    double count; // of allocations, likewise
    // Kolmogorov and Smirnov's: the largest distance between the two shares of requests up to a
    // size.
    double size_distance;
    size_t first;  // the first allocation that differs in size; the shorter count if none does
    size_t common; // steps, frees too, of a longest common subsequence; SIZE_MAX: too far apart
    struct workload_size_use *uses; // by size
    size_t use_count;
};

// Time and memory grow with the square of how many steps differ; past WORKLOAD_REQUESTS_EDITS_MAX
// `common` is not told. BASE_HOST_MEMORY.
#define WORKLOAD_REQUESTS_EDITS_MAX 20000
enum base_status
workload_requests_compare(const struct workload_requests *a, const struct workload_requests *b,
                          struct workload_requests_difference *difference) BASE_MUST_USE;
void workload_requests_difference_deinit(struct workload_requests_difference *difference);

// What was live when most was, first, in each of the two: blocks of each size, by size. The caller
// frees *uses. BASE_HOST_MEMORY.
enum base_status workload_requests_at_peaks(const struct workload_requests *a,
                                            const struct workload_requests *b,
                                            struct workload_size_use **uses,
                                            size_t *count) BASE_MUST_USE;

#endif
