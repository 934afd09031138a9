// Google Benchmark from C: registration, the timed loop, counters, and its own JSON, written when
// complete.
//
//     static void pair(struct bench_state *state, void *argument) {
//         ... set up ...
//         uint64_t count;
//         while (bench_batch_begin(state, &count))
//             for (uint64_t i = 0; i < count; i++) ... one iteration ...
//         ... tear down and check; bench_fail(state, "3 blocks leaked") if something is wrong ...
//     }
//     bench_register("host_cost/caching/pair/512", pair, subject);
//     status = bench_run(&(struct bench_options){.rounds = 9}, &results);
//     status = bench_results_write(results, "out/host_cost.json");
//     bench_results_destroy(results);
//
// The timer runs from the first bench_batch_begin to the one that returns false, and is never
// paused: pausing costs about 200 ns, ten times what is measured here. A benchmark is called
// several times (the library looks for the iteration count that fills the time, then come the
// rounds), so it sets up and tears down in full each time.
//
// Rounds: every benchmark runs once, in order of registration, then all again. Neighbours in this
// order meet the same state of the machine, so quotients between them within a round are steadier
// than quotients of minima.
//
// Not thread-safe: one thread registers, runs and writes; a benchmark may start threads of its own.
#ifndef TIDEMARK_BENCH_SHIM_H
#define TIDEMARK_BENCH_SHIM_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_state;   // one call of a benchmark
struct bench_results; // what a run measured

//--------------------------------------------------------------------------------------------------
// Before: what to run.

// NAME is copied; ARGUMENT must live until the run is over.
void bench_register(const char *name, void (*function)(struct bench_state *state, void *argument),
                    void *argument);

// The same for a benchmark that says itself how long it took, through bench_time_add.
void bench_register_manual(const char *name,
                           void (*function)(struct bench_state *state, void *argument),
                           void *argument);

// Forgets what was registered.
void bench_unregister_all(void);

//--------------------------------------------------------------------------------------------------
// Inside a benchmark.

// True as long as there is work: the caller then runs *iteration_count iterations. Costs two clock
// reads in all.
bool bench_batch_begin(struct bench_state *state, uint64_t *iteration_count);

// Time of iterations of this batch, as measured by the benchmark (bench_register_manual only);
// calls add up.
void bench_time_add(struct bench_state *state, double seconds);

// A number beside the times. Of several rounds, those of the fastest are reported.
void bench_counter(struct bench_state *state, const char *name, double value);
// Characters that JSON cannot hold become '?'.
void bench_label(struct bench_state *state, const char *label);
// Items processed by the whole call: the library reports `items_per_second`.
void bench_items(struct bench_state *state, uint64_t item_count);

// The result is wrong: the run ends with BASE_CHECK_FAILED and this sentence, and nothing is
// reported. The next bench_batch_begin returns false. Only the first failure counts.
void bench_fail(struct bench_state *state, const char *format, ...) BASE_PRINTF(2, 3);

//--------------------------------------------------------------------------------------------------
// The run and its results.

struct bench_options {
    const char *filter;         // extended regular expression over names; NULL: all
    double min_time_s;          // of the first round, for each benchmark; 0: 0.1 s
    int rounds;                 // 0: 1. Later rounds repeat the first one's iteration count
    uint64_t iterations;        // not 0: exactly so many, instead of a time (smoke mode)
    const char *progress_label; // of a progress line (base/progress.h); NULL: silent
};

// Runs what was registered. BASE_CHECK_FAILED (a benchmark failed: its name and sentence),
// BASE_INTERRUPTED (Ctrl-C, at the next benchmark), BASE_INVALID_VALUE (the filter is no
// expression, or nothing matches it).
enum base_status bench_run(const struct bench_options *options,
                           struct bench_results **results) BASE_MUST_USE;
void bench_results_destroy(struct bench_results *results);
// For what a program times by itself: no results, and one benchmark more of them, with the time of
// an iteration in each of ROUND_COUNT rounds (at least one). Returns its index. The times are said
// to be both, elapsed and of the CPU.
struct bench_results *bench_results_create(void);
size_t bench_results_add(struct bench_results *results, const char *name, const char *label,
                         const double *round_ns, int round_count);
// Moves all of ADDED to the end of RESULTS and destroys ADDED: of runs that were made one after the
// other, so that an interrupt costs only the last.
void bench_results_append(struct bench_results *results, struct bench_results *added);

// One benchmark's times, of one iteration, in ns. Valid until its results are destroyed.
struct bench_result {
    const char *name;
    uint64_t iterations;
    int round_count;
    const double *real_ns; // one a round
    const double
        *cpu_ns; // of the calling thread, one a round: what it costs when others want the CPU
    double real_ns_minimum, real_ns_median;
};
size_t bench_results_count(const struct bench_results *results);
struct bench_result bench_results_get(const struct bench_results *results, size_t index);
// The index of a name, or SIZE_MAX.
size_t bench_results_find(const struct bench_results *results, const char *name);

// A counter that needs all rounds, or a pass of its own.
void bench_results_counter(struct bench_results *results, size_t index, const char *name,
                           double value);
// The value of a counter; false if there is none of this name.
bool bench_results_counter_get(const struct bench_results *results, size_t index, const char *name,
                               double *value);

// A key of the JSON's `context`; a later value replaces an earlier one. Values are text, as the
// library writes them.
void bench_context_set(const char *key, const char *value);

// Writes Google Benchmark's JSON through the library's own reporter: one entry a benchmark, with
// the times of its fastest round; of several rounds also the counters `rounds` and `median_ns`. The
// file is complete or absent.
enum base_status bench_results_write(const struct bench_results *results,
                                     const char *path) BASE_MUST_USE;
// The same to stdout.
void bench_results_print(const struct bench_results *results);
// The same to FOLDER/FILE_NAME, and a line on stdout that names it.
enum base_status bench_results_publish(const struct bench_results *results, const char *folder,
                                       const char *file_name) BASE_MUST_USE;
// With --format json: to stdout, and nothing else there; and to the file, unless FOLDER is NULL.
enum base_status bench_results_publish_json(const struct bench_results *results, const char *folder,
                                            const char *file_name) BASE_MUST_USE;
// The same as bench_results_write, only those whose name begins with PREFIX; no file if there are
// none.
enum base_status bench_results_write_some(const struct bench_results *results, const char *prefix,
                                          const char *path) BASE_MUST_USE;

#endif
