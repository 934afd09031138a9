// Names, derived counters and the printed tables of the host-cost benchmark. The names are part of
// docs/results.md.
#ifndef TIDEMARK_BENCH_HOST_COST_REPORT_H
#define TIDEMARK_BENCH_HOST_COST_REPORT_H

#include "bench/context.h"
#include "bench/pattern.h"
#include "bench/shim.h"

#include <stdbool.h>

#define BENCH_HOST_COST_NAME_SIZE 96
#define BENCH_HOST_COST_ONE_THREAD "host_cost/"
#define BENCH_HOST_COST_TWO_THREADS "host_cost_two_threads/"

// host_cost/SUBJECT/PATTERN/BYTES, for two threads
// host_cost_two_threads/SUBJECT/PATTERN/BYTES/STREAMS.
void bench_host_cost_name(char name[BENCH_HOST_COST_NAME_SIZE], int thread_count, bool own_streams,
                          const char *subject, const struct bench_pattern *pattern);

// Adds what needs all rounds: `x_mutex_list`, the median over rounds of the quotient to mutex_list
// of the same pattern and number of threads; for two threads also `x_one_thread`, the throughput of
// both against one thread of the same subject.
void bench_host_cost_derive(struct bench_results *results);

// The tables, to stdout.
void bench_host_cost_print(const struct bench_results *results,
                           const struct bench_context *context);

#endif
