// What the patterns of patterns.c share, and those that run threads (patterns_threads.c).
#ifndef TIDEMARK_WORKLOAD_PATTERNS_H
#define TIDEMARK_WORKLOAD_PATTERNS_H

#include "workload/object.h"

#define WORKLOAD_PATTERN_THREADS 4 // and streams

struct workload__pattern_scale {
    size_t bytes_max; // of an object; sizes are spread evenly over their logarithm
    int count;        // of objects in a pattern
};
struct workload__pattern {
    struct workload_run *run;
    uint64_t round; // of the program: the step
    struct workload__pattern_scale scale;
    const cudaStream_t *streams; // WORKLOAD_PATTERN_THREADS
};

// Numbers of a use of chance in this round, of a thread if it has several.
struct base_random workload__pattern_random(const struct workload__pattern *pattern,
                                            const char *name, int thread);
// Of a tally. WHICH: the pattern. No two of a program have one.
uint64_t workload__pattern_key(const struct workload__pattern *pattern, int which, int thread);
// Of any size, on the current stream.
enum base_status workload__pattern_object(const struct workload__pattern *pattern,
                                          struct base_random *random,
                                          struct workload_object *object) BASE_MUST_USE;

enum base_status workload__pattern_bleed(const struct workload__pattern *pattern) BASE_MUST_USE;
enum base_status workload__pattern_death(const struct workload__pattern *pattern) BASE_MUST_USE;

#endif
