// Host cost of an allocation and its free: the caching allocator and the driver's own, beside two
// limits measured in the same run (bench/ideal_list.h), for three patterns, by one thread and by
// two.
//
// How it measures. Subjects of one pattern are neighbours in each round, so that their quotients
// are taken in the same state of the machine; a second thread is alive throughout, since glibc
// takes locks more cheaply in a process of one thread; percentiles come from a pass of their own,
// because two clock reads cost as much as a cache hit. Each call of a case first earns its time:
// the blocks are distinct, the statistics agree, nothing is left behind (bench/session.h).
//
// Simulated build: the device only accounts (numerics off), so that `direct` and `async` show the
// simulator's cost and not a driver's.
#include "base/check.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/thread.h"
#include "bench/companion.h"
#include "bench/context.h"
#include "bench/device.h"
#include "bench/host_cost_report.h"
#include "bench/pin.h"
#include "bench/result_folder.h"
#include "bench/session_measure.h"
#include "bench/shim.h"
#include "bench/subject.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUND_COUNT 15
#define ROUND_COUNT_QUICK 5
#define MIN_TIME_S 0.03
#define MIN_TIME_QUICK_S 0.008
#define TIMED_COUNT 200000 // iterations of the percentile pass
#define TIMED_COUNT_QUICK 50000
#define SMOKE_ITERATION_COUNT 300

//--------------------------------------------------------------------------------------------------
// Cases.

#define BLOCK_SIZE_COUNT 3
static const size_t block_sizes[BLOCK_SIZE_COUNT] = {512, 64 * BASE_KIB, 4 * BASE_MIB};
#define PATTERN_COUNT (2 * BLOCK_SIZE_COUNT + 1)

// A case: what one benchmark measures.
struct cost_case {
    char name[BENCH_HOST_COST_NAME_SIZE];
    struct bench_session_setup setup;
    const char *label;
};
#define CASE_COUNT_MAX (PATTERN_COUNT * 8)

static struct bench_pattern patterns[PATTERN_COUNT];
static struct cost_case cases[CASE_COUNT_MAX];
static int case_count;

static void case_add(const struct bench_subject *subject, const struct bench_pattern *pattern,
                     int thread_count, enum bench_streams streams, const char *label) {
    BASE_CHECK_LT(case_count, CASE_COUNT_MAX);
    struct cost_case *added = &cases[case_count++];
    added->setup = (struct bench_session_setup){
        .subject = subject, .pattern = pattern, .thread_count = thread_count, .streams = streams};
    added->label = label;
    bench_host_cost_name(added->name, thread_count, streams == BENCH_STREAMS_OWN, subject->name,
                         pattern);
}

static void cases_make(uint64_t seed) {
    static const enum bench_pattern_kind by_size[] = {BENCH_PATTERN_PAIR, BENCH_PATTERN_WINDOW};
    int made = 0;
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < BLOCK_SIZE_COUNT; j++)
            bench_pattern_init(&patterns[made++], by_size[i], block_sizes[j], seed);
    bench_pattern_init(&patterns[made++], BENCH_PATTERN_MIXED, 0, seed);
    BASE_CHECK_EQ(made, PATTERN_COUNT);
    for (int i = 0; i < PATTERN_COUNT; i++) {
        const struct bench_pattern *pattern = &patterns[i];
        case_add(&bench_subject_ideal_list, pattern, 1, BENCH_STREAMS_ONE,
                 "free list a size class, no lock");
        case_add(&bench_subject_mutex_list, pattern, 1, BENCH_STREAMS_ONE,
                 "free list a size class, one pthread mutex");
        case_add(&bench_subject_caching, pattern, 1, BENCH_STREAMS_ONE, "default configuration");
        case_add(&bench_subject_direct, pattern, 1, BENCH_STREAMS_ONE, "cudaMalloc and cudaFree");
        case_add(&bench_subject_async, pattern, 1, BENCH_STREAMS_ONE,
                 "cudaMallocAsync and cudaFreeAsync");
        case_add(&bench_subject_mutex_list, pattern, 2, BENCH_STREAMS_ONE,
                 "one list, one pthread mutex, two threads");
        case_add(&bench_subject_caching, pattern, 2, BENCH_STREAMS_ONE,
                 "default configuration, two threads on one stream");
        case_add(&bench_subject_caching, pattern, 2, BENCH_STREAMS_OWN,
                 "default configuration, two threads on their own streams");
    }
}

static void patterns_forget(void) {
    for (int i = 0; i < PATTERN_COUNT; i++) bench_pattern_deinit(&patterns[i]);
}

//--------------------------------------------------------------------------------------------------
// Measuring.

static void measure(struct bench_state *state, void *argument) {
    const struct cost_case *measured = argument;
    bench_session_measure(state, &measured->setup, measured->label);
}

// Every case once with every block compared with all live ones, before anything is timed.
static enum base_status cases_check(void) {
    for (int i = 0; i < case_count; i++) {
        if (base_interrupted()) return base_status_set(BASE_INTERRUPTED, "interrupted");
        const enum base_status status = bench_session_check(&cases[i].setup, cases[i].name);
        if (status != BASE_OK) return status;
    }
    return BASE_OK;
}

// What a clock read adds to each value of the percentile pass.
static double clock_cost_ns(void) {
    static struct base_histogram histogram;
    base_histogram_init(&histogram);
    for (int i = 0; i < 10000; i++) {
        const uint64_t start_ns = base_time_ns();
        base_histogram_record(&histogram, base_time_ns() - start_ns);
    }
    return (double)base_histogram_quantile(&histogram, 0.5);
}

static enum base_status percentiles_add(struct bench_results *results, uint64_t count) {
    static const struct {
        const char *name;
        double quantile;
    } percentiles[] = {
        {"p50_ns", 0.5}, {"p90_ns", 0.9}, {"p99_ns", 0.99}, {"p999_ns", 0.999}, {"max_ns", 1}};
    const double clock_ns = clock_cost_ns();
    static struct base_histogram histogram;
    for (int i = 0; i < case_count; i++) {
        const size_t index = bench_results_find(results, cases[i].name);
        if (cases[i].setup.thread_count > 1 || index == SIZE_MAX) continue;
        if (base_interrupted()) return base_status_set(BASE_INTERRUPTED, "interrupted");
        struct bench_session_setup setup = cases[i].setup;
        struct bench_session session;
        int64_t device_malloc_count;
        setup.checked = false;
        base_histogram_init(&histogram);
        if (bench_session_begin(&session, &setup))
            bench_session_run_timed(&session, count, &histogram);
        if (!bench_session_end(&session, &device_malloc_count))
            return base_status_set(BASE_CHECK_FAILED, "%s, percentiles: %s", cases[i].name,
                                   session.failure);
        for (size_t j = 0; j < sizeof percentiles / sizeof percentiles[0]; j++)
            bench_results_counter(
                results, index, percentiles[j].name,
                (double)base_histogram_quantile(&histogram, percentiles[j].quantile));
        bench_results_counter(results, index, "clock_ns", clock_ns);
    }
    return BASE_OK;
}

//--------------------------------------------------------------------------------------------------
// The program.

static bool smoke;
static const char *filter;

static const struct base_option options[] = {
    {"smoke", NULL, BASE_OPTION_FLAG, &smoke,
     "check every case with a few iterations and print no times"},
    {"filter", "REGEX", BASE_OPTION_TEXT, &filter, "measure only the benchmarks whose names match"},
    {0}};

static const struct base_program program = {
    .name = "host_cost",
    .summary =
        "Measures the host cost of an allocation and its free, beside the limits of any allocator.",
    .details = "With --out, writes DIR/host_cost.json and DIR/host_cost_two_threads.json "
               "(docs/results.md). \"mixed\" of two threads holds up to 16 GiB.",
    .common = BASE_COMMON_OUT | BASE_COMMON_SEED | BASE_COMMON_QUICK | BASE_COMMON_CAPACITY,
    .options = options,
};

// Two files, since one and two threads are different questions with names of different shape.
static const char *const file_names[] = {"host_cost.json", "host_cost_two_threads.json", NULL};

static enum base_status results_save(const struct bench_results *results, const char *folder) {
    static const char *const prefixes[] = {BENCH_HOST_COST_ONE_THREAD, BENCH_HOST_COST_TWO_THREADS};
    for (size_t i = 0; file_names[i] != NULL; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, file_names[i]);
        const enum base_status status = bench_results_write_some(results, prefixes[i], path);
        if (status != BASE_OK) return status;
        if (access(path, F_OK) == 0) printf("Results: %s\n", path);
    }
    return BASE_OK;
}

static enum base_status measure_all(const struct base_common *common,
                                    struct bench_results **results) {
    enum base_status status = BASE_OK;
    if (!smoke) status = cases_check();
    if (status != BASE_OK) return status;
    for (int i = 0; i < case_count; i++) {
        if (cases[i].setup.thread_count > bench_core_count() && !smoke) {
            fprintf(stderr, "%s: skipped: two threads need two cores, there is one\n",
                    cases[i].name);
            continue;
        }
        cases[i].setup.checked = smoke; // with one call a case, the check can be part of it
        bench_register(cases[i].name, measure, &cases[i]);
    }
    const struct bench_options run = {.filter = filter,
                                      .min_time_s = common->quick ? MIN_TIME_QUICK_S : MIN_TIME_S,
                                      .rounds = smoke           ? 1
                                                : common->quick ? ROUND_COUNT_QUICK
                                                                : ROUND_COUNT,
                                      .iterations = smoke ? SMOKE_ITERATION_COUNT : 0,
                                      .progress_label = "host_cost"};
    status = bench_run(&run, results);
    if (status != BASE_OK) return status;
    const uint64_t timed = smoke           ? SMOKE_ITERATION_COUNT
                           : common->quick ? TIMED_COUNT_QUICK
                                           : TIMED_COUNT;
    status = percentiles_add(*results, timed);
    if (status == BASE_OK) bench_host_cost_derive(*results);
    return status;
}

static enum base_status measure_and_report(const struct base_common *common, const char *folder) {
    struct bench_context context;
    bench_context_begin(program.name, common->seed, NULL, &context);
    bench_companion_begin();
    cases_make(common->seed);
    struct bench_results *results = NULL;
    enum base_status status = measure_all(common, &results);
    if (status == BASE_OK && smoke)
        printf("host_cost: %zu cases, results right, nothing leaked (seed %" PRIu64 ")\n",
               bench_results_count(results), common->seed);
    else if (status == BASE_OK)
        bench_host_cost_print(results, &context);
    if (status == BASE_OK && folder != NULL) status = results_save(results, folder);
    bench_results_destroy(results);
    patterns_forget();
    bench_companion_end();
    return status;
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    base_interrupt_install();
    struct bench_result_folder folder = {0};
    enum base_status status = bench_device_prepare(&program, &common, 0);
    if (status == BASE_OK && common.out != NULL)
        status = bench_result_folder_make(program.name, common.out, file_names, &folder);
    if (status == BASE_OK) status = measure_and_report(&common, folder.path);
    bench_result_folder_release(&folder);
    return base_program_end(&program, status);
}
