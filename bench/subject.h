// What is measured: the caching allocator, the ones of the driver, and the limits beside them.
#ifndef TIDEMARK_BENCH_SUBJECT_H
#define TIDEMARK_BENCH_SUBJECT_H

#include "bench/session.h"

extern const struct bench_subject bench_subject_no_list;    // the loop and its calls alone
extern const struct bench_subject bench_subject_ideal_list; // L1
extern const struct bench_subject bench_subject_mutex_list; // L2
extern const struct bench_subject bench_subject_caching;    // default configuration
// The same with its history on, the newest 100,000 entries of it: without stacks, and with those of
// all calls.
extern const struct bench_subject bench_subject_history;
extern const struct bench_subject bench_subject_history_stacks;
extern const struct bench_subject bench_subject_direct; // cudaMalloc and cudaFree
extern const struct bench_subject bench_subject_async;  // cudaMallocAsync and cudaFreeAsync

#endif
