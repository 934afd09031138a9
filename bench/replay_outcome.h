// What came of replays: one outcome a trace and configuration, ranked, printed, and written as
// docs/results.md says.
#ifndef TIDEMARK_BENCH_REPLAY_OUTCOME_H
#define TIDEMARK_BENCH_REPLAY_OUTCOME_H

#include "base/options.h"
#include "bench/context.h"
#include "bench/replay_run.h"

#include <stdio.h>

// Owns its texts and its result.
struct bench_replay_outcome {
    char *trace, *source, *rules; // of the recording
    bool rules_assumed;
    char *config_name, *config;
    bool recorded;
    bool is_limit; // without a cache: shows what is possible, no setting to choose
    struct bench_replay_limits limits;
    struct workload_replay_result result;
    struct bench_replay_device_time device_time; // of the observed pass
    double ns_per_event; // of the timed pass; negative: not measured
};

struct bench_replay_outcomes {
    struct bench_replay_outcome *items;
    size_t count, capacity;
};

// An empty outcome at the end of the list; the texts are copied. BASE_HOST_MEMORY.
enum base_status bench_replay_outcome_add(struct bench_replay_outcomes *outcomes,
                                          const struct bench_replay_outcome *texts,
                                          struct bench_replay_outcome **added) BASE_MUST_USE;
// Takes the last one off.
void bench_replay_outcome_drop(struct bench_replay_outcomes *outcomes);
void bench_replay_outcomes_deinit(struct bench_replay_outcomes *outcomes);

// Whether a request was not served, be it one that failed in the recording as well: its peak lacks
// what was not served.
bool bench_replay_failed(const struct workload_replay_result *result);

// Best first: reports/ranking.py states the rule, and bench/replay_tool_test.py compares the two.
void bench_replay_rank(struct bench_replay_outcome *outcomes, size_t count);

// Peak reserved over peak allocated; 0 if nothing was allocated.
double bench_replay_overhead(const struct workload_replay_result *result);

// What the names of settings stand for, before the first table.
void bench_replay_print_settings(FILE *stream, const struct base_config *configs, int count);
// The ranking of one trace: COUNT outcomes, ranked.
void bench_replay_print_table(FILE *stream, const struct bench_replay_outcome *outcomes,
                              size_t count);
// The rankings of all as one JSON object.
enum base_status bench_replay_print_json(FILE *stream, const struct bench_replay_outcomes *outcomes)
    BASE_MUST_USE;

// replay_memory.json.
enum base_status bench_replay_memory_write(const struct bench_replay_outcomes *outcomes,
                                           const struct bench_context *context,
                                           const char *path) BASE_MUST_USE;

#endif
