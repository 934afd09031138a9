// What the caching allocator costs on the host, as a table of limits: each row says what was
// measured, what it may be at most, and whether it is.
//
// How it measures. Most rows are quotients to a list that decides nothing (bench/ideal_list.h):
// both are measured in turns, the quotient is taken within each round, where both met the same
// state of the machine, and the row is the median of the rounds. Times are CPU times of one thread,
// of two threads the elapsed time; a second thread is alive throughout, since glibc takes locks
// more cheaply in a process of one. The device only accounts. Every case earns its time: the blocks
// are distinct, the statistics agree, nothing is left behind; else the program ends with status 1.
// A limit that is missed ends nothing: times are no tests.
#include "bench/allocator_speed.h"

#include "base/options.h"
#include "base/progress.h"
#include "bench/companion.h"
#include "bench/context.h"
#include "bench/device.h"
#include "bench/pin.h"
#include "bench/result_folder.h"
#include "bench/session_measure.h"
#include "bench/subject.h"

#include <inttypes.h>
#include <regex.h>

#define SMOKE_ITERATION_COUNT 3 // behind the warm-up; of a script that is as many cycles
#define LIVE_ITERATION_COUNT 200000

// Rounds of each group, and how long (or how often) a case runs within one.
static const struct group {
    int rounds, rounds_quick;
    double min_time_s, min_time_quick_s; // 0: `iterations`
    uint64_t iterations;
    bool manual;
} groups[SPEED_GROUP_COUNT] = {
    [SPEED_GROUP_PATTERN] = {15, 5, 0.03, 0.008, 0, false},
    [SPEED_GROUP_LIVE] = {15, 3, 0, 0, LIVE_ITERATION_COUNT, false},
    [SPEED_GROUP_BULK] = {15, 5, 0, 0, 1, true},
    [SPEED_GROUP_MEMORY] = {1, 1, 0, 0, 1, true},
};

static const char *only, *subject = "caching", *filter;
static uint64_t iterations = 1000000;
static bool two_threads, own_streams;

static const struct base_option options[] = {
    {"smoke", NULL, BASE_OPTION_FLAG, &speed_run.smoke,
     "check every case with a few iterations and print no times"},
    {"filter", "REGEX", BASE_OPTION_TEXT, &filter,
     "measure only the benchmarks whose names match (allocator/mixed, allocator/trace ...)"},
    {"only", "PATTERN", BASE_OPTION_TEXT, &only,
     "play one pattern and measure nothing, for a profiler: window_512, window_64k, window_4m, "
     "pair_512, pair_4m, mixed, transformer, record_stream"},
    {"subject", "NAME", BASE_OPTION_TEXT, &subject,
     "with --only: caching (default), history, history_stacks, mutex_list, ideal_list, no_list"},
    {"iterations", "N", BASE_OPTION_COUNT, &iterations,
     "with --only: allocations with their frees, of transformer whole steps (default 1000000)"},
    {"two-threads", NULL, BASE_OPTION_FLAG, &two_threads, "with --only: two threads on one stream"},
    {"own-streams", NULL, BASE_OPTION_FLAG, &own_streams,
     "with --two-threads: each on a stream of its own"},
    {0}};

static const struct base_program program = {
    .name = "allocator",
    .arguments = "[TRACE...]",
    .summary = "Measures what the caching allocator costs on the host, beside its limits.",
    .details = "TRACE: recorded programs to play as well. With --out, writes DIR/allocator.json "
               "(docs/results.md); --format json writes that to stdout instead of the table.",
    .common = BASE_COMMON_OUT | BASE_COMMON_SEED | BASE_COMMON_QUICK | BASE_COMMON_FORMAT,
    .options = options,
    .argument_count_maximum = -1,
};

//--------------------------------------------------------------------------------------------------
// The run.

static regex_t expression; // of --filter, if there is one

static void filter_compile(void) {
    if (filter == NULL) return;
    const int error = regcomp(&expression, filter, REG_EXTENDED | REG_NOSUB);
    if (error == 0) return;
    char reason[128];
    regerror(error, &expression, reason, sizeof reason);
    base_options_usage_error(&program, "'%s' is no regular expression: %s", filter, reason);
}

static bool is_wanted(const struct speed_case *of) {
    return filter == NULL || regexec(&expression, of->name, 0, NULL, 0) == 0;
}

// Why a case cannot be measured here; NULL: it can.
static const char *hindrance(const struct speed_case *of) {
    if (of->setup.thread_count > bench_core_count() && !speed_run.smoke)
        return "two threads need two cores";
    if (of->bytes_needed > bench_device_capacity()) return "the device has too little memory";
    return NULL;
}

// A session; but no_list answers, and gives nothing to check.
static bool has_checks(const struct speed_case *of) {
    return of->setup.subject != NULL && of->setup.subject != &bench_subject_no_list;
}

// Every session once with every block compared with all live ones, before anything is timed.
static enum base_status sessions_check(void) {
    for (size_t i = 0; i < speed_case_count(); i++) {
        const struct speed_case *checked = speed_case_get(i);
        if (!is_wanted(checked) || !has_checks(checked) || hindrance(checked) != NULL) continue;
        if (base_interrupted()) return base_status_set(BASE_INTERRUPTED, "interrupted");
        const enum base_status status = bench_session_check(&checked->setup, checked->name);
        if (status != BASE_OK) return status;
    }
    return BASE_OK;
}

// How many were registered.
static size_t group_register(enum speed_group group) {
    size_t count = 0;
    bench_unregister_all();
    for (size_t i = 0; i < speed_case_count(); i++) {
        struct speed_case *registered = speed_case_get(i);
        if (registered->group != group || !is_wanted(registered)) continue;
        if (hindrance(registered) != NULL) {
            fprintf(stderr, "%s: left out: %s\n", registered->name, hindrance(registered));
            continue;
        }
        registered->setup.checked =
            speed_run.smoke && has_checks(registered); // with one call a case it can be part of it
        if (groups[group].manual)
            bench_register_manual(registered->name, registered->measure, registered);
        else
            bench_register(registered->name, registered->measure, registered);
        count++;
    }
    return count;
}

static enum base_status group_run(enum speed_group group) {
    const struct group *how = &groups[group];
    const struct bench_options run = {
        .min_time_s = speed_run.quick ? how->min_time_quick_s : how->min_time_s,
        .rounds = speed_run.smoke   ? 1
                  : speed_run.quick ? how->rounds_quick
                                    : how->rounds,
        .iterations = speed_run.smoke && !how->manual ? SMOKE_ITERATION_COUNT : how->iterations,
        .progress_label = speed_run.smoke ? NULL : program.name};
    struct bench_results *results = NULL;
    if (group_register(group) == 0) return BASE_OK;
    const enum base_status status = bench_run(&run, &results);
    if (status != BASE_OK) return status;
    if (speed_results == NULL)
        speed_results = results;
    else
        bench_results_append(speed_results, results);
    return BASE_OK;
}

static enum base_status measure_all(const struct base_common *common) {
    enum base_status status = BASE_OK;
    speed_patterns_add();
    status = speed_traces_add(common->arguments, common->argument_count);
    if (status != BASE_OK) return status;
    speed_growth_add();
    speed_bulk_add();
    speed_memory_add();
    if (!speed_run.smoke) status = sessions_check();
    for (int i = 0; i < SPEED_GROUP_COUNT && status == BASE_OK; i++)
        status = group_run((enum speed_group)i);
    if (status == BASE_OK && speed_results == NULL)
        status = base_status_set(BASE_INVALID_VALUE, "no benchmark's name matches '%s'", filter);
    return status;
}

//--------------------------------------------------------------------------------------------------
// What comes of it.

// Iterations of different cases hold different numbers of operations.
static void operations_note(void) {
    for (size_t i = 0; i < speed_case_count(); i++) {
        const struct speed_case *noted = speed_case_get(i);
        const size_t index = bench_results_find(speed_results, noted->name);
        if (index == SIZE_MAX || noted->group == SPEED_GROUP_MEMORY) continue;
        bench_results_counter(speed_results, index, "operations", noted->pair_count);
        bench_results_counter(speed_results, index, "ns_per_operation", speed_fastest_ns(noted));
    }
}

static void rows_add(void) {
    operations_note();
    speed_patterns_rows_add();
    speed_traces_rows_add();
    speed_bulk_rows_add();
    speed_memory_rows_add();
    speed_growth_rows_add();
}

static void print(const struct base_common *common, const struct bench_context *context) {
    rows_add(); // in smoke mode too, where nothing of them is told
    if (speed_run.smoke) {
        printf("allocator: %zu cases, results right, nothing leaked (seed %" PRIu64 ")\n",
               bench_results_count(speed_results), speed_run.seed);
        return;
    }
    if (common->format_json) return;
    bench_context_print(context);
    speed_table_print();
}

//--------------------------------------------------------------------------------------------------
// The program.

static enum base_status measure_and_report(const struct base_common *common, const char *folder) {
    struct bench_context context;
    bench_context_begin(program.name, common->seed, NULL, &context);
    enum base_status status = measure_all(common);
    if (status == BASE_OK) print(common, &context);
    if (status == BASE_OK && common->format_json && !speed_run.smoke)
        status = bench_results_publish_json(speed_results, folder, "allocator.json");
    else if (status == BASE_OK && folder != NULL)
        status = bench_results_publish(speed_results, folder, "allocator.json");
    bench_results_destroy(speed_results);
    return status;
}

static enum base_status run(const struct base_common *common) {
    static const char *const file_names[] = {"allocator.json", NULL};
    struct bench_result_folder folder = {0};
    enum base_status status = bench_device_prepare(&program, common, SPEED_CAPACITY_BYTES);
    if (status == BASE_OK && common->out != NULL)
        status = bench_result_folder_make(program.name, common->out, file_names, &folder);
    if (status != BASE_OK) return status;
    speed_patterns_init();
    bench_companion_begin();
    status = only != NULL ? speed_only(only, subject, iterations, two_threads,
                                       own_streams ? BENCH_STREAMS_OWN : BENCH_STREAMS_ONE)
                          : measure_and_report(common, folder.path);
    bench_companion_end();
    speed_growth_deinit();
    speed_traces_deinit();
    speed_patterns_deinit();
    bench_result_folder_release(&folder);
    return status;
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    // One pattern alone has nothing to keep: a signal ends it at once.
    if (only == NULL) base_interrupt_install();
    filter_compile();
    speed_run.quick = common.quick;
    speed_run.seed = common.seed;
    const enum base_status status = run(&common);
    if (filter != NULL) regfree(&expression);
    return base_program_end(&program, status);
}
