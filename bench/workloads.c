// What allocator settings do to programs that use memory as models do: the time of a step, memory,
// the allocator's share of host time, and how long it keeps the program waiting.
//
// Programs are those of workload/program.h, each under each setting (workload_measure.h). On the
// simulated device step times and stalls are modelled: figures of the device profile on a virtual
// clock, the same on every machine; host time is measured. On a GPU all are measured. Before
// anything is printed or written of a program, all settings have computed the same values.
#include "base/options.h"
#include "base/progress.h"
#include "base/size.h"
#include "bench/context.h"
#include "bench/device.h"
#include "bench/replay_configs.h"
#include "bench/result_folder.h"
#include "bench/shim.h"
#include "bench/workload_measure.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 3
#define CONFIGS_MAX 64

static const char *size_name;
static uint64_t steps;

static const struct base_option options[] = {
    {"size", "SIZE", BASE_OPTION_TEXT, &size_name,
     "small, medium, or true, those of real models (default: true where that takes seconds, else "
     "medium; a size less with --quick)"},
    {"steps", "N", BASE_OPTION_COUNT, &steps,
     "of each program, at least 2 (default: 32 or more where they are short, else as many as the "
     "size has)"},
    {0}};

static const struct base_program program = {
    .name = "workloads",
    .arguments = "[PROGRAM...]",
    .summary = "Runs programs that use memory as models do under allocator settings: step times, "
               "memory, host time, stalls.",
    .details =
        "Without --config: those of //bench:replay, and async. Without a program: all of "
        "them (//workload:run --list names them). On the simulated device times of steps and "
        "stalls are modelled by its profile (--device), and host times are measured. With "
        "--out, writes DIR/workloads.json (docs/results.md); --format json writes that to "
        "stdout instead of the tables.",
    .common = BASE_COMMON_CONFIG | BASE_COMMON_OUT | BASE_COMMON_SEED | BASE_COMMON_QUICK |
              BASE_COMMON_CAPACITY | BASE_COMMON_DEVICE | BASE_COMMON_FORMAT,
    .options = options,
    .argument_count_minimum = 0,
    .argument_count_maximum = -1,
};

#ifdef TIDEMARK_SIMULATOR
#define KIND "modelled"
#else
#define KIND "measured"
#endif

struct job {
    struct base_common common;
    struct base_config configs[CONFIGS_MAX];
    int config_count;
    bool size_given;
    enum workload_size size; // if given
    uint64_t device_bytes;
    struct bench_results *results;
    struct base_progress progress;
    uint64_t done;
};

//--------------------------------------------------------------------------------------------------
// The table.

static void say_head(const struct job *job, const struct workload_program *chosen,
                     const struct workload_measure_options *measure) {
    if (job->common.format_json) return;
    printf("\n%s: %s\n%d device%s, %" PRIu64 " steps, size %s; times of steps and stalls are " KIND
           "\n",
           chosen->name, chosen->summary, chosen->device_count_min,
           chosen->device_count_min == 1 ? "" : "s", measure->steps,
           workload_size_name(measure->size));
    printf("  %-12s %9s %9s %9s %11s %7s %8s %7s %9s %9s %9s %9s %6s\n", "setting", "step, ms",
           "p99", "steps/s", "reserved", "over", "calls", "retries", "stall, ms", "waiting", "dry",
           "first", "host");
}

static void say_row(const struct job *job, const struct base_config *config,
                    const struct workload_measured *measured) {
    char reserved[BASE_SIZE_TEXT];
    if (job->common.format_json) return;
    if (measured->out_of_memory) {
        printf("  %-12s out of memory\n", config->name);
        return;
    }
    const double later = (double)measured->steps - 1;
    const struct workload_watch_totals *first = &measured->first, *all = &measured->all;
    printf("  %-12s %9.3f %9.3f %9.1f %11s %6.2fx %8lld %7lld %9.3f %9.3f %9.3f %9.3f %5.1f%%\n",
           config->name, measured->p50_ns / 1e6, measured->p99_ns / 1e6, measured->steps_per_second,
           base_size_format((uint64_t)measured->peak_reserved_bytes, reserved),
           (double)measured->peak_reserved_bytes / (double)measured->peak_allocated_bytes,
           (long long)(measured->device_mallocs + measured->device_frees),
           (long long)measured->retries, (double)(all->stall_ns - first->stall_ns) / later / 1e6,
           (double)(all->wait_ns - first->wait_ns) / later / 1e6,
           (double)(all->dry_ns - first->dry_ns) / later / 1e6, (double)first->stall_ns / 1e6,
           100 * measured->allocator_share);
    (void)fflush(stdout);
}

static void say_legend(const struct job *job) {
    if (job->common.format_json) return;
    printf(
        "\nstep: the median of those behind the first; over: reserved over allocated, peaks; "
        "calls: of the whole\nrun that reached the device; stall: inside allocator calls, a step; "
        "of it waiting for the device, and\nwith no device at work; first: stall of the first "
        "step; host: the allocator's share of CPU time, measured\n");
}

//--------------------------------------------------------------------------------------------------
// The result.

static void count_stalls(struct bench_results *results, size_t index,
                         const struct workload_measured *measured) {
    const struct workload_watch_totals *first = &measured->first, *all = &measured->all;
    const double later = (double)measured->steps - 1;
    bench_results_counter(results, index, "first_stall_ns", (double)first->stall_ns);
    bench_results_counter(results, index, "stall_ns",
                          (double)(all->stall_ns - first->stall_ns) / later);
    bench_results_counter(results, index, "stall_longest_ns", (double)all->longest_ns);
#ifdef TIDEMARK_SIMULATOR
    bench_results_counter(results, index, "first_wait_ns", (double)first->wait_ns);
    bench_results_counter(results, index, "wait_ns",
                          (double)(all->wait_ns - first->wait_ns) / later);
    bench_results_counter(results, index, "first_dry_ns", (double)first->dry_ns);
    bench_results_counter(results, index, "dry_ns", (double)(all->dry_ns - first->dry_ns) / later);
    bench_results_counter(results, index, "waits", (double)all->waits);
#endif
}

static void count_memory(struct bench_results *results, size_t index,
                         const struct workload_measured *measured) {
    bench_results_counter(results, index, "requests", (double)measured->requests);
    bench_results_counter(results, index, "peak_allocated_bytes",
                          (double)measured->peak_allocated_bytes);
    bench_results_counter(results, index, "peak_active_bytes", (double)measured->peak_active_bytes);
    bench_results_counter(results, index, "peak_reserved_bytes",
                          (double)measured->peak_reserved_bytes);
    bench_results_counter(results, index, "peak_requested_bytes",
                          (double)measured->peak_requested_bytes);
    bench_results_counter(results, index, "device_mallocs", (double)measured->device_mallocs);
    bench_results_counter(results, index, "device_frees", (double)measured->device_frees);
    bench_results_counter(results, index, "retries", (double)measured->retries);
    bench_results_counter(results, index, "waits_for_all", (double)measured->waits_for_all);
}

static void count_time(struct bench_results *results, size_t index,
                       const struct workload_measured *measured) {
    bench_results_counter(results, index, "first_ns", measured->first_ns);
    bench_results_counter(results, index, "p50_ns", measured->p50_ns);
    bench_results_counter(results, index, "p90_ns", measured->p90_ns);
    bench_results_counter(results, index, "p99_ns", measured->p99_ns);
    bench_results_counter(results, index, "max_ns", measured->max_ns);
    bench_results_counter(results, index, "steps_per_second", measured->steps_per_second);
#ifdef TIDEMARK_SIMULATOR
    bench_results_counter(results, index, "steps_per_second_low", measured->steps_per_second_low);
    bench_results_counter(results, index, "steps_per_second_high", measured->steps_per_second_high);
#endif
    bench_results_counter(results, index, "host_ns", measured->cpu_ns);
    bench_results_counter(results, index, "allocator_host_ns", measured->allocator_cpu_ns);
    bench_results_counter(results, index, "allocator_share", measured->allocator_share);
    bench_results_counter(results, index, "watch_ns", measured->watch_ns);
}

static void note(struct job *job, const struct workload_program *chosen,
                 const struct base_config *config, const struct workload_measured *measured) {
    char name[512];
    (void)snprintf(name, sizeof name, "workloads/%s/%s", chosen->name, config->name);
    const size_t index = bench_results_add(job->results, name, config->text, &measured->mean_ns, 1);
    bench_results_counter(job->results, index, "out_of_memory", measured->out_of_memory);
    if (measured->out_of_memory) return;
    bench_results_counter(job->results, index, "steps", (double)measured->steps);
    bench_results_counter(job->results, index, "devices", chosen->device_count_min);
#ifdef TIDEMARK_SIMULATOR
    bench_results_counter(job->results, index, "modelled", 1);
#else
    bench_results_counter(job->results, index, "modelled", 0);
#endif
    count_time(job->results, index, measured);
    count_memory(job->results, index, measured);
    count_stalls(job->results, index, measured);
    bench_results_counter(job->results, index, "result_check", 1);
}

//--------------------------------------------------------------------------------------------------
// The work.

// How programs run where nothing is asked for, so that all of them take about a minute: some do so
// much on the host, or have threads that take turns at each call of the device, that the sizes of
// real models would take longer by themselves. With --quick: a size less, and its own steps.
struct plan {
    const char *name;
    enum workload_size size;
    uint64_t steps; // 0: as many as the size has
};

static const struct plan plans[] = {
    {"graphs", WORKLOAD_MEDIUM, 32},    {"offload", WORKLOAD_TRUE, 32},
    {"serving", WORKLOAD_TRUE, 64},     {"sharded", WORKLOAD_TRUE, 32},
    {"transformer", WORKLOAD_TRUE, 32}, {NULL, WORKLOAD_MEDIUM, 0}, // any other
};

static struct plan plan_of(const struct job *job, const struct workload_program *chosen) {
    const struct plan *listed = plans;
    while (listed->name != NULL && strcmp(listed->name, chosen->name) != 0)
        ++listed;
    struct plan plan = *listed;
    if (job->common.quick) plan = (struct plan){chosen->name, plan.size - 1, 0};
    if (job->size_given) plan = (struct plan){chosen->name, job->size, 0};
    if (steps != 0) plan.steps = steps;
    if (plan.steps == 0) plan.steps = chosen->steps[plan.size];
    return plan;
}

static struct workload_measure_options measure_options(const struct job *job,
                                                       const struct workload_program *chosen) {
    const struct plan plan = plan_of(job, chosen);
    return (struct workload_measure_options){.size = plan.size,
                                             .steps = plan.steps < 2 ? 2 : plan.steps,
                                             .seed = job->common.seed,
                                             .capacity_bytes = job->common.capacity,
                                             .fraction = -1,
                                             .rounds = job->common.quick ? 1 : ROUNDS};
}

// A setting that collects garbage does so beside a limit only: 1.1 times what the default reserves.
static enum base_status limit_collection(const struct job *job,
                                         const struct workload_program *chosen, const char *config,
                                         struct workload_measure_options *measure) {
    struct bench_replay_limits limits = {.capacity_bytes = job->device_bytes};
    struct workload_measured plain;
    if (!bench_replay_config_needs_limit(config, &limits)) return BASE_OK;
    const enum base_status status = workload_measure(chosen, "", measure, &plain);
    if (status != BASE_OK || plain.out_of_memory) return status;
    bench_replay_limit_collection(&limits, (uint64_t)plain.largest_peak_reserved_bytes);
    if (limits.fraction > 0) measure->fraction = limits.fraction;
    return BASE_OK;
}

// *FIRST: of the first setting that had enough memory, NULL before.
static enum base_status values_compare(const struct workload_program *chosen,
                                       const struct base_config *config,
                                       const struct workload_measured *measured,
                                       const struct base_config **first, uint64_t *checksum) {
    if (measured->out_of_memory) return BASE_OK;
    if (*first == NULL) {
        *first = config;
        *checksum = measured->checksum;
    }
    if (measured->checksum == *checksum) return BASE_OK;
    return base_status_set(BASE_CHECK_FAILED, "%s computed other values under %s than under %s",
                           chosen->name, config->name, (*first)->name);
}

static bool is_left_out(enum base_status status) {
    return status == BASE_UNSUPPORTED || status == BASE_INVALID_CONFIG;
}

static enum base_status run_program(struct job *job, const struct workload_program *chosen) {
    const struct workload_measure_options common = measure_options(job, chosen);
    const struct base_config *first = NULL;
    uint64_t checksum = 0;
    say_head(job, chosen, &common);
    for (int i = 0; i < job->config_count; ++i) {
        const struct base_config *config = &job->configs[i];
        struct workload_measure_options measure = common;
        struct workload_measured measured;
        if (base_interrupted()) return base_status_set(BASE_INTERRUPTED, "interrupted");
        enum base_status status = limit_collection(job, chosen, config->text, &measure);
        if (status == BASE_OK) status = workload_measure(chosen, config->text, &measure, &measured);
        base_progress_update(&job->progress, ++job->done);
        if (is_left_out(status)) {
            fprintf(stderr, "workloads: %s under %s is left out: %s\n", chosen->name, config->name,
                    base_status_message());
            continue;
        }
        if (status == BASE_OK)
            status = values_compare(chosen, config, &measured, &first, &checksum);
        if (status == BASE_INTERRUPTED) return base_status_set(status, "interrupted");
        if (status != BASE_OK)
            return base_status_prefix(status, "%s under %s", chosen->name, config->name);
        say_row(job, config, &measured);
        note(job, chosen, config, &measured);
    }
    return BASE_OK;
}

static size_t program_count(const struct job *job) {
    size_t count = 0;
    while (workload_program_at(count) != NULL)
        ++count;
    return job->common.argument_count > 0 ? (size_t)job->common.argument_count : count;
}

static enum base_status program_choose(const struct job *job, size_t index,
                                       const struct workload_program **chosen) {
    if (job->common.argument_count > 0)
        return workload_program_find(job->common.arguments[index], chosen);
    *chosen = workload_program_at(index);
    return BASE_OK;
}

static enum base_status run_programs(struct job *job) {
    const size_t count = program_count(job);
    enum base_status status = BASE_OK;
    base_progress_begin(&job->progress, program.name, count * (size_t)job->config_count);
    for (size_t i = 0; i < count && status == BASE_OK; ++i) {
        const struct workload_program *chosen;
        status = program_choose(job, i, &chosen);
        if (status != BASE_OK) break;
        if (workload_measure_has_devices(chosen))
            status = run_program(job, chosen);
        else
            fprintf(stderr, "workloads: %s is left out: it needs %d devices\n", chosen->name,
                    chosen->device_count_min);
    }
    base_progress_end(&job->progress);
    if (status == BASE_OK) say_legend(job);
    return status;
}

static enum base_status results_end(const struct job *job, const char *folder) {
    if (!job->common.format_json)
        return folder == NULL ? BASE_OK
                              : bench_results_publish(job->results, folder, "workloads.json");
    bench_results_print(job->results);
    if (folder == NULL) return BASE_OK;
    char path[4400];
    (void)snprintf(path, sizeof path, "%s/workloads.json", folder);
    return bench_results_write(job->results, path);
}

//--------------------------------------------------------------------------------------------------
// The program.

static enum base_status configs_choose(struct job *job) {
    const struct base_config *chosen = job->common.configs;
    int count = job->common.config_count;
    if (count == 0) chosen = bench_replay_configs_default(&count);
    if (count + 1 > CONFIGS_MAX)
        return base_status_set(BASE_INVALID_VALUE, "%d settings: want at most %d", count,
                               CONFIGS_MAX - 1);
    memcpy(job->configs, chosen, (size_t)count * sizeof *chosen);
    job->config_count = count;
    if (job->common.config_count == 0)
        job->configs[job->config_count++] = (struct base_config){"async", "x_allocator:async"};
    for (int i = 0; i < count; ++i)
        if (strchr(job->configs[i].name, '/') != NULL)
            return base_status_set(BASE_INVALID_VALUE, "--config %s: want a name without '/'",
                                   job->configs[i].name);
    return bench_replay_configs_check(job->configs, job->config_count);
}

static enum base_status options_check(struct job *job) {
    const struct workload_program *chosen;
    job->size_given = size_name != NULL;
    if (size_name != NULL && workload_size_parse(size_name, &job->size) != BASE_OK)
        base_options_usage_error(&program, "--size: %s", base_status_message());
    if (steps == 1) base_options_usage_error(&program, "--steps 1: want at least 2");
    for (int i = 0; i < job->common.argument_count; ++i) {
        if (workload_program_find(job->common.arguments[i], &chosen) != BASE_OK)
            base_options_usage_error(&program, "%s", base_status_message());
        for (int j = 0; j < i; ++j)
            if (strcmp(job->common.arguments[i], job->common.arguments[j]) == 0)
                base_options_usage_error(&program, "%s is given twice", job->common.arguments[i]);
    }
    const enum base_status status = configs_choose(job);
    return status == BASE_OK ? bench_device_prepare(&program, &job->common, 0) : status;
}

static enum base_status measure(struct job *job, const char *folder) {
    struct bench_context context;
    job->device_bytes = bench_device_capacity();
    bench_context_begin(program.name, job->common.seed, NULL, &context);
    job->results = bench_results_create();
    if (!job->common.format_json) bench_context_print(&context);
    const enum base_status status = run_programs(job);
    return status == BASE_OK ? results_end(job, folder) : status;
}

static enum base_status run(struct job *job) {
    static const char *const file_names[] = {"workloads.json", NULL};
    struct bench_result_folder folder = {0};
    enum base_status status = options_check(job);
    if (status == BASE_OK && job->common.out != NULL)
        status = bench_result_folder_make(program.name, job->common.out, file_names, &folder);
    if (status != BASE_OK) return status;
    status = measure(job, folder.path);
    bench_result_folder_release(&folder);
    return status;
}

int main(int argc, char **argv) {
    struct job job = {.common = BASE_COMMON_DEFAULTS};
    base_options_parse(&program, argc, argv, &job.common);
    base_interrupt_install();
    const enum base_status status = run(&job);
    bench_results_destroy(job.results);
    free(job.common.configs);
    return base_program_end(&program, status);
}
