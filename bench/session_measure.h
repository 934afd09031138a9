// A session as a benchmark: the run is timed, and its result judged, in each call.
#ifndef TIDEMARK_BENCH_SESSION_MEASURE_H
#define TIDEMARK_BENCH_SESSION_MEASURE_H

#include "bench/session.h"
#include "bench/shim.h"

// Begins, runs and ends a session of SETUP. The benchmark fails when any check does; else it gets
// the counters `leaked_blocks` (0), `result_check` (1) and `device_mallocs`, and LABEL.
void bench_session_measure(struct bench_state *state, const struct bench_session_setup *setup,
                           const char *label);

// A session of SETUP with every block compared with all live ones, nothing timed.
// BASE_CHECK_FAILED begins with NAME.
enum base_status bench_session_check(const struct bench_session_setup *setup,
                                     const char *name) BASE_MUST_USE;

#endif
