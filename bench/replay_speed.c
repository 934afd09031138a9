// How fast a long history replays on the caching allocator, accounting only, beside two lists that
// decide nothing (bench/ideal_list.h): the same timed pass, the same requests, neighbours in each
// round.
#include "base/options.h"
#include "base/progress.h"
#include "base/thread.h"
#include "bench/companion.h"
#include "bench/context.h"
#include "bench/ideal_list.h"
#include "bench/replay_run.h"
#include "bench/result_folder.h"
#include "bench/shim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUND_COUNT 9
#define ROUND_COUNT_QUICK 3
#define WANTED_PER_SECOND 8e6

static const struct base_program program = {
    .name = "replay_speed",
    .arguments = "TRACE...",
    .summary = "Measures how many allocations and frees a second the timed replay of a trace does.",
    .details = "With --out, writes DIR/replay_speed.json (docs/results.md).",
    .common = BASE_COMMON_OUT | BASE_COMMON_SEED | BASE_COMMON_QUICK,
    .argument_count_minimum = 1,
    .argument_count_maximum = -1,
};

struct subject {
    const char *name;
    enum base_status (*create)(const struct bench_replay_setup *setup,
                               struct allocator **allocator);
    const char *label;
    const struct bench_replay_setup *setup;
};

static enum base_status create_mutex_list(const struct bench_replay_setup *setup,
                                          struct allocator **allocator) {
    (void)setup;
    *allocator = bench_mutex_list_create();
    return BASE_OK;
}

static enum base_status create_ideal_list(const struct bench_replay_setup *setup,
                                          struct allocator **allocator) {
    (void)setup;
    *allocator = bench_ideal_list_create();
    return BASE_OK;
}

#define SUBJECT_COUNT 3
static struct subject subjects[SUBJECT_COUNT] = {
    {"caching", bench_replay_allocator, "default configuration", NULL},
    {"mutex_list", create_mutex_list, "free list a size class, one pthread mutex", NULL},
    {"ideal_list", create_ideal_list, "free list a size class, no lock", NULL},
};

// One timed pass on a fresh allocator; every request must have been served.
static enum base_status time_once(const struct subject *subject,
                                  struct workload_replay_time *time) {
    struct allocator *allocator;
    enum base_status status = subject->create(subject->setup, &allocator);
    if (status != BASE_OK) return status;
    status = workload_replay_time(subject->setup->plan, allocator, time);
    allocator_destroy(allocator);
    if (status == BASE_OK && time->event_count > workload_replay_event_count(subject->setup->plan))
        status = base_status_set(BASE_CHECK_FAILED, "%" PRIu64 " events done, the trace has fewer",
                                 time->event_count);
    if (status == BASE_OK && time->event_count == 0)
        status = base_status_set(BASE_CHECK_FAILED, "no event was done");
    return status;
}

static void measure(struct bench_state *state, void *argument) {
    const struct subject *subject = argument;
    uint64_t count, event_count = 0;
    double total_s = 0;
    while (bench_batch_begin(state, &count)) {
        for (uint64_t i = 0; i < count; i++) {
            struct workload_replay_time time;
            if (time_once(subject, &time) != BASE_OK) {
                bench_fail(state, "%s", base_status_message());
                return;
            }
            event_count += time.event_count;
            total_s += time.total_s;
        }
        bench_time_add(state, total_s);
    }
    bench_label(state, subject->label);
    bench_counter(state, "events", (double)event_count / (double)count);
    bench_counter(state, "ns_per_event", total_s * 1e9 / (double)event_count);
    bench_counter(state, "events_per_second", (double)event_count / total_s);
}

// Before anything is timed: the caching allocator's observed pass serves the whole history.
static enum base_status check_replay(const struct bench_replay_setup *setup) {
    struct workload_replay_result result;
    enum base_status status = bench_replay_observe(setup, &result, NULL);
    if (status != BASE_OK) return status;
    if (result.out_of_memory || result.event_count != workload_replay_event_count(setup->plan))
        status = base_status_set(BASE_CHECK_FAILED, "the replay ended after %" PRIu64 " events: %s",
                                 result.event_count, result.out_of_memory_message);
    workload_replay_result_deinit(&result);
    return status;
}

//--------------------------------------------------------------------------------------------------
// The program.

static void print_results(const struct bench_results *results, const char *trace) {
    double mutex_ns = 0, caching_per_second = 0;
    const size_t mutex_index = 1; // of subjects, in order of registration
    (void)bench_results_counter_get(results, mutex_index, "ns_per_event", &mutex_ns);
    printf("Replay of %s, the device only accounts; fastest of the rounds:\n", trace);
    printf("  %-10s  %9s  %16s  %12s\n", "", "per event", "million events/s", "x mutex_list");
    for (size_t i = 0; i < SUBJECT_COUNT; i++) {
        double ns = 0, per_second = 0;
        (void)bench_results_counter_get(results, i, "ns_per_event", &ns);
        (void)bench_results_counter_get(results, i, "events_per_second", &per_second);
        if (i == 0) caching_per_second = per_second;
        printf("  %-10s  %6.1f ns  %16.2f  %11.2fx  %s\n", subjects[i].name, ns, per_second / 1e6,
               mutex_ns > 0 ? ns / mutex_ns : 0, subjects[i].label);
    }
    printf("  wanted of caching on an idle core: at least %.0f million events/s: %s\n",
           WANTED_PER_SECOND / 1e6, caching_per_second >= WANTED_PER_SECOND ? "reached" : "missed");
}

// Measures one trace; its results join those of the traces before.
static enum base_status run_trace(const struct trace *trace, const struct base_common *common,
                                  struct bench_results **all) {
    struct workload_replay_plan *plan;
    enum base_status status = workload_replay_plan_create(trace, 0, &plan);
    if (status != BASE_OK) return status;
    bool assumed;
    const struct bench_replay_setup setup = {.plan = plan,
                                             .rules = trace_rules_version(trace, &assumed),
                                             .config = "",
                                             .limits = bench_replay_limits_of(trace, 0, -1)};
    status = check_replay(&setup);
    bench_unregister_all();
    for (size_t i = 0; i < SUBJECT_COUNT; i++) {
        char name[512];
        subjects[i].setup = &setup;
        (void)snprintf(name, sizeof name, "replay_speed/%s/%s", subjects[i].name, trace->name);
        bench_register_manual(name, measure, &subjects[i]);
    }
    const struct bench_options run = {.rounds = common->quick ? ROUND_COUNT_QUICK : ROUND_COUNT,
                                      .iterations = 1,
                                      .progress_label = "replay_speed"};
    struct bench_results *results = NULL;
    if (status == BASE_OK) status = bench_run(&run, &results);
    if (status == BASE_OK) {
        print_results(results, trace->name);
        if (*all == NULL)
            *all = results;
        else
            bench_results_append(*all, results);
    }
    workload_replay_plan_destroy(plan);
    return status;
}

static enum base_status run_file(const char *path, const struct base_common *common,
                                 struct bench_results **all) {
    struct trace *trace;
    enum base_status status =
        trace_read(path, &(struct trace_read_options){.no_stacks = true}, &trace);
    if (status != BASE_OK) return status;
    status = run_trace(trace, common, all);
    trace_destroy(trace);
    return status == BASE_OK ? status : base_status_prefix(status, "%s", path);
}

static enum base_status run(const struct base_common *common) {
    static const char *const file_names[] = {"replay_speed.json", NULL};
    struct bench_result_folder folder = {0};
    enum base_status status = BASE_OK;
    if (common->out != NULL)
        status = bench_result_folder_make(program.name, common->out, file_names, &folder);
    if (status != BASE_OK) return status;
    const char *capacity = NULL;
#ifdef TIDEMARK_SIMULATOR
    capacity = "as recorded, else unlimited";
#endif
    struct bench_context context;
    bench_context_begin(program.name, common->seed, capacity, &context);
    struct bench_results *results = NULL;
    bench_companion_begin();
    for (int i = 0; i < common->argument_count && status == BASE_OK; i++)
        status = run_file(common->arguments[i], common, &results);
    bench_companion_end();
    if (status == BASE_OK && folder.path != NULL)
        status = bench_results_publish(results, folder.path, "replay_speed.json");
    bench_results_destroy(results);
    bench_result_folder_release(&folder);
    return status;
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    base_interrupt_install();
    const enum base_status status = run(&common);
    return base_program_end(&program, status);
}
