// What is measured of the caching allocator, for the files of this benchmark: allocator_speed.c
// (the program), allocator_speed_only.c (one pattern, for profilers), allocator_speed_patterns.c
// (the patterns by name).
#ifndef TIDEMARK_BENCH_ALLOCATOR_SPEED_H
#define TIDEMARK_BENCH_ALLOCATOR_SPEED_H

#include "bench/pattern.h"
#include "bench/session.h"

// --- allocator_speed_patterns.c ---

// X(identifier, name)
#define SPEED_PATTERN_LIST(X)                                                                      \
    X(WINDOW_512, "window_512")                                                                    \
    X(WINDOW_64K, "window_64k")                                                                    \
    X(WINDOW_4M, "window_4m")                                                                      \
    X(PAIR_512, "pair_512")                                                                        \
    X(PAIR_4M, "pair_4m")                                                                          \
    X(MIXED, "mixed")                                                                              \
    X(TRANSFORMER, "transformer")                                                                  \
    X(RECORD_STREAM, "record_stream")

enum speed_pattern {
#define SPEED_PATTERN_ENUMERATOR(identifier, name) SPEED_PATTERN_##identifier,
    SPEED_PATTERN_LIST(SPEED_PATTERN_ENUMERATOR)
#undef SPEED_PATTERN_ENUMERATOR
        SPEED_PATTERN_COUNT
};

void speed_patterns_init(uint64_t seed);
void speed_patterns_deinit(void);
const struct bench_pattern *speed_pattern_get(enum speed_pattern pattern);
const char *speed_pattern_name(enum speed_pattern pattern);
// SPEED_PATTERN_COUNT: no such name.
enum speed_pattern speed_pattern_find(const char *name);

// --- allocator_speed_only.c ---

// Plays one pattern on one subject, ITERATION_COUNT iterations behind the warm-up, and prints how
// many pairs that were: for a profiler. Two runs with different counts differ by the pattern alone.
enum base_status speed_only(const char *pattern_name, const char *subject_name,
                            uint64_t iteration_count, bool two_threads) BASE_MUST_USE;

#endif
