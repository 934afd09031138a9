// Replays recorded traces under allocator configurations: which setting should I run?
//
// For each trace: one observed pass a configuration (memory), then the timed passes as benchmarks
// in alternating rounds (host time), then the ranking. The time is that of the fastest pass: a pass
// is short, and whatever else the machine does only adds to it. A file that cannot be replayed says
// why in one line, and the others still run. Ctrl-C ends the work at the next safe point; what is
// complete is written all the same.
#include "base/options.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/text.h"
#include "bench/context.h"
#include "bench/device.h"
#include "bench/replay_configs.h"
#include "bench/replay_outcome.h"
#include "bench/result_folder.h"
#include "bench/shim.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// How often each configuration is timed. A short trace is passed several times a round, for about
// ROUND_EVENT_COUNT events; a long one gets fewer rounds, so that all configurations of a trace
// together take about TIMED_EVENT_COUNT events (100 to 300 ns each, preparation included).
#define ROUND_COUNT_LIMIT 1000000
#define ROUND_COUNT 21
#define ROUND_COUNT_MIN 3
#define ROUND_COUNT_QUICK 7
#define ROUND_COUNT_QUICK_MIN 2
#define ROUND_EVENT_COUNT 10000
#define ROUND_PASS_COUNT_MAX 16
#define TIMED_EVENT_COUNT 20000000
#define TIMED_EVENT_COUNT_QUICK 4000000
#define NAME_SIZE 512

static double fraction = -1;
static uint64_t round_count; // 0: not given

static const struct base_option options[] = {
    {"fraction", "F", BASE_OPTION_NUMBER, &fraction,
     "share of the device that the process may use, above 0 up to 1"},
    {"rounds", "N", BASE_OPTION_COUNT, &round_count,
     "time every configuration N times (default: as often as the length of the trace allows)"},
    {0}};

static const struct base_program program = {
    .name = "replay",
    .arguments = "TRACE...",
    .summary = "Replays PyTorch memory snapshots and .tmt traces under allocator configurations "
               "and ranks these.",
    .details = "Without --config: default, split128, round4, large64, gc08, direct. The "
               "recording's own configuration is always among "
               "them, marked '*', and checks itself against the recording. Capacity and fraction "
               "are the recording's unless given; "
               "a configuration that collects garbage, where nothing limits the process, gets 1.1 "
               "times the default's peak. With "
               "--out, writes DIR/replay.json and DIR/replay_memory.json (docs/results.md).",
    .common = BASE_COMMON_CONFIG | BASE_COMMON_OUT | BASE_COMMON_SEED | BASE_COMMON_QUICK |
              BASE_COMMON_CAPACITY | BASE_COMMON_FORMAT | BASE_COMMON_DEVICE |
              BASE_COMMON_FAULTS,
    .options = options,
    .argument_count_minimum = 1,
    .argument_count_maximum = -1,
};

struct job {
    struct base_common common;
    const struct base_config *configs;
    int config_count;
    struct bench_result_folder folder;
    uint64_t device_bytes; // of --device, for recordings that do not say; 0: unlimited
    struct bench_context context;
    struct bench_replay_outcomes outcomes;
    struct bench_results *results; // of all traces; NULL before the first
    bool unreadable;               // a file was left out
    int output_error;              // errno of a ranking that could not be printed, or 0
};

// One trace at work.
struct work {
    struct job *job;
    const struct trace *trace;
    char name[NAME_SIZE];
    struct workload_replay_plan *plan;
    const char *rules;
    bool rules_assumed;
    size_t outcome_first;  // of this trace
    uint64_t default_peak; // reserved bytes under the default configuration; 0: not known yet
};

// What a benchmark's function gets.
struct timed_case {
    struct work *work;
    size_t outcome; // index into job->outcomes
};

//--------------------------------------------------------------------------------------------------
// The observed pass.

static struct bench_replay_setup setup_of(const struct work *work,
                                          const struct bench_replay_outcome *outcome) {
    return (struct bench_replay_setup){.plan = work->plan,
                                       .rules = outcome->rules,
                                       .config = outcome->config,
                                       .limits = outcome->limits,
                                       .recorded = outcome->recorded};
}

// Reserved bytes at the peak of the default configuration, to limit collections by.
static enum base_status default_peak(struct work *work, const struct bench_replay_limits *limits) {
    if (work->default_peak != 0) return BASE_OK;
    struct workload_replay_result result;
    const struct bench_replay_setup setup = {
        .plan = work->plan, .rules = work->rules, .config = "", .limits = *limits};
    enum base_status status = bench_replay_observe(&setup, &result, NULL);
    if (status != BASE_OK) return status;
    work->default_peak = result.peak_reserved_bytes;
    workload_replay_result_deinit(&result);
    return BASE_OK;
}

static enum base_status observe(struct work *work, const struct base_config *config) {
    struct job *job = work->job;
    struct bench_replay_limits limits =
        bench_replay_limits_of(work->trace, job->common.capacity, fraction);
    const bool recorded = bench_replay_config_is_recorded(work->trace, config->text, &limits);
    if (!limits.capacity_known && job->device_bytes != 0) {
        limits.capacity_bytes = job->device_bytes;
        limits.capacity_known = true;
    }
    enum base_status status = BASE_OK;
    if (!recorded && bench_replay_config_needs_limit(config->text, &limits)) {
        status = default_peak(work, &limits);
        if (status != BASE_OK) return status;
        bench_replay_limit_collection(&limits, work->default_peak);
    }
    const struct bench_replay_outcome texts = {.trace = work->name,
                                               .source = work->trace->source,
                                               .rules = (char *)(uintptr_t)work->rules,
                                               .rules_assumed = work->rules_assumed,
                                               .config_name = (char *)(uintptr_t)config->name,
                                               .config = (char *)(uintptr_t)config->text,
                                               .recorded = recorded,
                                               .limits = limits};
    struct bench_replay_outcome *outcome;
    status = bench_replay_outcome_add(&job->outcomes, &texts, &outcome);
    if (status != BASE_OK) return status;
    const struct bench_replay_setup setup = setup_of(work, outcome);
    status = bench_replay_observe(&setup, &outcome->result, &outcome->device_time);
    if (status != BASE_OK) bench_replay_outcome_drop(&job->outcomes);
    return status;
}

// A configuration that this trace cannot have is left out with a line; anything else ends the work.
static enum base_status observe_or_skip(struct work *work, const struct base_config *config) {
    enum base_status status = observe(work, config);
    if (status != BASE_INVALID_CONFIG && status != BASE_UNSUPPORTED) return status;
    fprintf(stderr, "replay: %s: %s is left out: %s\n", work->name, config->name,
            base_status_message());
    return BASE_OK;
}

static enum base_status observe_all(struct work *work) {
    const struct job *job = work->job;
    const struct base_config recorded = {
        .name = BENCH_REPLAY_RECORDED_NAME,
        .text = work->trace->settings.config != NULL ? work->trace->settings.config : ""};
    bool has_recorded = false;
    for (int i = 0; i < job->config_count; i++)
        has_recorded |= strcmp(job->configs[i].text, recorded.text) == 0 ||
                        strcmp(job->configs[i].name, recorded.name) == 0;
    enum base_status status = has_recorded ? BASE_OK : observe_or_skip(work, &recorded);
    for (int i = 0; i < job->config_count && status == BASE_OK; i++)
        status = observe_or_skip(work, &job->configs[i]);
    return status;
}

//--------------------------------------------------------------------------------------------------
// The timed passes.

static void count_memory(struct bench_state *state, const struct bench_replay_outcome *outcome) {
    const struct workload_replay_result *result = &outcome->result;
    const struct allocator_stats *stats = &result->stats;
    bench_counter(state, "peak_reserved_bytes", (double)result->peak_reserved_bytes);
    bench_counter(state, "peak_allocated_bytes", (double)result->peak_allocated_bytes);
    bench_counter(state, "peak_active_bytes", (double)result->peak_active_bytes);
    bench_counter(state, "peak_requested_bytes", (double)result->peak_requested_bytes);
    bench_counter(state, "final_reserved_bytes",
                  (double)stats->reserved_bytes[ALLOCATOR_STAT_ALL].current);
    bench_counter(state, "final_allocated_bytes",
                  (double)stats->allocated_bytes[ALLOCATOR_STAT_ALL].current);
    bench_counter(state, "fragmentation", result->fragmentation);
    bench_counter(state, "segments_peak", (double)stats->segment[ALLOCATOR_STAT_ALL].peak);
    bench_counter(state, "segments_final", (double)stats->segment[ALLOCATOR_STAT_ALL].current);
    bench_counter(state, "device_mallocs", (double)result->device_malloc_count);
    bench_counter(state, "device_frees", (double)result->device_free_count);
    bench_counter(state, "retries", (double)stats->num_alloc_retries);
    bench_counter(state, "ooms", (double)stats->num_ooms);
    bench_counter(state, "out_of_memory", result->out_of_memory);
    if (result->out_of_memory)
        bench_counter(state, "out_of_memory_event", (double)result->out_of_memory_event);
    bench_counter(state, "start_assumed", result->start_assumed);
    bench_counter(state, "capacity_bytes",
                  outcome->limits.capacity_known ? (double)outcome->limits.capacity_bytes : 0);
    bench_counter(state, "memory_fraction", outcome->limits.fraction);
    const uint64_t limit_bytes = bench_replay_limit_bytes(&outcome->limits);
    if (limit_bytes != 0) bench_counter(state, "limit_bytes", (double)limit_bytes);
    if (outcome->device_time.known) {
        bench_counter(state, "modelled_device_s", outcome->device_time.typical_s);
        bench_counter(state, "modelled_device_low_s", outcome->device_time.low_s);
        bench_counter(state, "modelled_device_high_s", outcome->device_time.high_s);
    }
    if (result->self_check.checked)
        bench_counter(state, "self_check", bench_replay_share_equal(&result->self_check));
}

static void time_case(struct bench_state *state, void *argument) {
    const struct timed_case *timed = argument;
    const struct bench_replay_outcome *outcome = &timed->work->job->outcomes.items[timed->outcome];
    const struct bench_replay_setup setup = setup_of(timed->work, outcome);
    struct workload_replay_time fastest = {.total_s = INFINITY};
    uint64_t count;
    while (bench_batch_begin(state, &count)) {
        for (uint64_t i = 0; i < count; i++) {
            struct workload_replay_time time;
            if (bench_replay_time(&setup, &time) != BASE_OK) {
                bench_fail(state, "%s", base_status_message());
                return;
            }
            if (time.total_s < fastest.total_s) fastest = time;
        }
        bench_time_add(state, fastest.total_s * (double)count);
    }
    bench_label(state, outcome->config);
    bench_counter(state, "events", (double)outcome->result.event_count);
    bench_counter(state, "ns_per_event",
                  fastest.event_count == 0
                      ? 0
                      : fastest.total_s * 1e9 / (double)fastest.event_count);
    count_memory(state, outcome);
}

// Rounds and passes of a trace: all of its configurations are timed equally often.
static void set_rounds(const struct work *work, size_t config_count, struct bench_options *run) {
    const bool quick = work->job->common.quick;
    const uint64_t event_count = workload_replay_event_count(work->plan) + 1;
    const uint64_t timed = quick ? TIMED_EVENT_COUNT_QUICK : TIMED_EVENT_COUNT;
    const uint64_t least = quick ? ROUND_COUNT_QUICK_MIN : ROUND_COUNT_MIN;
    const uint64_t most = quick ? ROUND_COUNT_QUICK : ROUND_COUNT;
    uint64_t passes = ROUND_EVENT_COUNT / event_count + 1;
    if (passes > ROUND_PASS_COUNT_MAX) passes = ROUND_PASS_COUNT_MAX;
    uint64_t rounds = timed / (event_count * passes * config_count);
    if (rounds < least) rounds = least;
    if (rounds > most) rounds = most;
    if (round_count != 0) {
        passes = 1;
        rounds = round_count;
    }
    run->iterations = passes;
    run->rounds = (int)rounds;
}

static void benchmark_name(const struct bench_replay_outcome *outcome, char name[2 * NAME_SIZE]) {
    (void)snprintf(name, 2 * NAME_SIZE, "replay/%s/%s", outcome->trace, outcome->config_name);
}

// Measures all outcomes of this trace; on success their results are part of the job's.
static enum base_status time_all(struct work *work) {
    struct job *job = work->job;
    const size_t count = job->outcomes.count - work->outcome_first;
    char name[2 * NAME_SIZE];
    if (count == 0) return BASE_OK;
    struct timed_case *cases = calloc(count, sizeof *cases);
    if (cases == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %zu benchmarks", count);
    bench_unregister_all();
    for (size_t i = 0; i < count; i++) {
        cases[i] = (struct timed_case){.work = work, .outcome = work->outcome_first + i};
        benchmark_name(&job->outcomes.items[cases[i].outcome], name);
        bench_register_manual(name, time_case, &cases[i]);
    }
    struct bench_options run = {.progress_label = work->name};
    set_rounds(work, count, &run);
    struct bench_results *results = NULL;
    enum base_status status = bench_run(&run, &results);
    for (size_t i = 0; i < count && status == BASE_OK; i++) {
        struct bench_replay_outcome *outcome = &job->outcomes.items[cases[i].outcome];
        benchmark_name(outcome, name);
        const size_t index = bench_results_find(results, name);
        if (index != SIZE_MAX)
            (void)bench_results_counter_get(results, index, "ns_per_event", &outcome->ns_per_event);
    }
    if (status == BASE_OK && job->results == NULL)
        job->results = results;
    else if (status == BASE_OK)
        bench_results_append(job->results, results);
    free(cases);
    return status;
}

//--------------------------------------------------------------------------------------------------
// Traces and files.

static bool name_is_taken(const struct job *job, const char *name) {
    for (size_t i = 0; i < job->outcomes.count; i++)
        if (strcmp(job->outcomes.items[i].trace, name) == 0) return true;
    return false;
}

// The trace's name, with the device if several have a history, and a number if it is taken. The
// names of results are parts with '/' between them, so it has none of its own.
static void choose_name(struct work *work, int device, bool several) {
    char base[NAME_SIZE - 64];
    (void)snprintf(base, sizeof base, "%.*s", (int)sizeof base - 1, work->trace->name);
    base_text_clean(base); // a character that was cut
    for (char *slash = base; (slash = strchr(slash, '/')) != NULL;) *slash = '-';
    if (several)
        (void)snprintf(work->name, NAME_SIZE, "%s-device%d", base, device);
    else
        (void)snprintf(work->name, NAME_SIZE, "%s", base);
    const size_t length = strlen(work->name);
    for (int number = 2; name_is_taken(work->job, work->name); number++)
        (void)snprintf(work->name + length, NAME_SIZE - length, "-%d", number);
}

static void leave_out(struct job *job, const char *path) {
    // A reader's sentence begins with the path already.
    const char *message = base_status_message();
    const bool named = strncmp(message, path, strlen(path)) == 0;
    fprintf(stderr, "replay: %s%s%s\n", named ? "" : path, named ? "" : ": ", message);
    job->unreadable = true;
}

// The ranking of the outcomes from FIRST on, those of one trace.
static void print_ranking(struct job *job, size_t first) {
    const size_t count = job->outcomes.count - first;
    if (first == 0 && count > 0)
        bench_replay_print_settings(stdout, job->configs, job->config_count);
    bench_replay_print_table(stdout, job->outcomes.items + first, count);
    if (fflush(stdout) != 0) job->output_error = errno;
}

static enum base_status replay_device(struct job *job, const struct trace *trace, int device,
                                      bool several, const char *path) {
    struct work work = {.job = job, .trace = trace, .outcome_first = job->outcomes.count};
    if (workload_replay_plan_create(trace, device, &work.plan) != BASE_OK) {
        leave_out(job, path);
        return BASE_OK;
    }
    choose_name(&work, device, several);
    work.rules = trace_rules_version(trace, &work.rules_assumed);
    enum base_status status = observe_all(&work);
    if (status == BASE_OK) status = time_all(&work);
    const size_t count = job->outcomes.count - work.outcome_first;
    bench_replay_rank(job->outcomes.items + work.outcome_first, count);
    if (!job->common.format_json) print_ranking(job, work.outcome_first);
    workload_replay_plan_destroy(work.plan);
    return status;
}

static enum base_status replay_file(struct job *job, const char *path) {
    struct trace *trace;
    if (trace_read(path, &(struct trace_read_options){.no_stacks = true}, &trace) != BASE_OK) {
        leave_out(job, path);
        return BASE_OK;
    }
    unsigned histories = 0;
    for (uint32_t i = 0; i < trace->device_count; i++)
        histories += trace->device_event_first[i + 1] > trace->device_event_first[i];
    enum base_status status = BASE_OK;
    for (int device = 0; device < (int)trace->device_count && status == BASE_OK; device++) {
        const bool has_history =
            trace->device_event_first[device + 1] > trace->device_event_first[device];
        // A file without any history is asked for its first device, to say so.
        if (has_history || (histories == 0 && device == 0))
            status = replay_device(job, trace, device, histories > 1, path);
    }
    if (trace->device_count == 0 && status == BASE_OK) {
        (void)base_status_set(BASE_FORMAT, "holds no device");
        leave_out(job, path);
    }
    trace_destroy(trace);
    return status;
}

//--------------------------------------------------------------------------------------------------
// The program.

static const char *const file_names[] = {"replay.json", "replay_memory.json", NULL};

static enum base_status save(const struct job *job) {
    char path[4400];
    if (job->folder.path == NULL || job->outcomes.count == 0) return BASE_OK;
    (void)snprintf(path, sizeof path, "%s/replay_memory.json", job->folder.path);
    enum base_status status = bench_replay_memory_write(&job->outcomes, &job->context, path);
    if (status != BASE_OK || job->results == NULL) return status;
    (void)snprintf(path, sizeof path, "%s/replay.json", job->folder.path);
    return bench_results_write(job->results, path);
}

static enum base_status check_options(struct job *job) {
    if (fraction != -1 && !(fraction > 0 && fraction <= 1))
        base_options_usage_error(&program, "--fraction %g: want a number above 0 up to 1",
                                 fraction);
    if (round_count > ROUND_COUNT_LIMIT)
        base_options_usage_error(&program, "--rounds %" PRIu64 ": want at most %d", round_count,
                                 ROUND_COUNT_LIMIT);
    const bool has_device = job->common.device != NULL;
    const enum base_status status = bench_device_prepare(
        &program, &job->common, has_device ? 0 : BENCH_REPLAY_CAPACITY_UNLIMITED);
    if (status == BASE_OK && has_device) job->device_bytes = bench_device_capacity();
    return status;
}

static enum base_status prepare(struct job *job) {
    enum base_status status = check_options(job);
    if (status == BASE_OK)
        status = bench_replay_configs_check(job->common.configs, job->common.config_count);
    if (status != BASE_OK) return status;
    job->configs = job->common.configs;
    job->config_count = job->common.config_count;
    if (job->config_count == 0) job->configs = bench_replay_configs_default(&job->config_count);
    if (job->common.out != NULL) {
        status = bench_result_folder_make(program.name, job->common.out, file_names, &job->folder);
        if (status != BASE_OK) return status;
    }
    const char *capacity = NULL;
#ifdef TIDEMARK_SIMULATOR
    if (job->common.capacity == 0)
        capacity = job->device_bytes != 0 ? "as recorded, else the device's"
                                          : "as recorded, else unlimited";
#endif
    bench_context_begin("replay", job->common.seed, capacity, &job->context);
    return BASE_OK;
}

static enum base_status print_json(struct job *job) {
    const enum base_status status = bench_replay_print_json(stdout, &job->outcomes);
    if (fflush(stdout) != 0) job->output_error = errno;
    return status;
}

static enum base_status run(struct job *job) {
    enum base_status status = prepare(job);
    const int count = job->common.argument_count;
    for (int i = 0; i < count && status == BASE_OK && job->output_error == 0; i++) {
        if (base_interrupted()) status = base_status_set(BASE_INTERRUPTED, "interrupted");
        if (status == BASE_OK) status = replay_file(job, job->common.arguments[i]);
    }
    if (status != BASE_OK && status != BASE_INTERRUPTED) return status;
    const enum base_status saved = save(job);
    if (saved != BASE_OK) return saved;
    if (status == BASE_OK && job->common.format_json)
        status = print_json(job);
    return status;
}

int main(int argc, char **argv) {
    struct job job = {.common = BASE_COMMON_DEFAULTS};
    base_options_parse(&program, argc, argv, &job.common);
    base_interrupt_install();
    // Whoever reads the rankings may have seen enough: what is complete is kept all the same.
    (void)signal(SIGPIPE, SIG_IGN);
    const enum base_status status = run(&job);
    int code = job.unreadable ? base_status_exit_code(BASE_FORMAT) : 0;
    if (status == BASE_INTERRUPTED) {
        fprintf(stderr, "replay: interrupted; %zu replays are complete\n", job.outcomes.count);
        code = base_interrupt_exit_code();
    } else if (status != BASE_OK) {
        fprintf(stderr, "replay: %s\n", base_status_message());
        code = base_status_exit_code(status);
    }
    bench_replay_outcomes_deinit(&job.outcomes);
    bench_results_destroy(job.results);
    free(job.common.configs);
    bench_result_folder_release(&job.folder);
    if (job.output_error == EPIPE) _exit(code != 0 ? code : 128 + SIGPIPE); // quietly
    if (job.output_error != 0) {
        fprintf(stderr, "replay: cannot write standard output: %s\n", strerror(job.output_error));
        _exit(code != 0 ? code : base_status_exit_code(BASE_IO));
    }
    return code;
}
