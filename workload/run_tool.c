// workload:run: runs programs that use memory (program.h) under settings, and prints what each took
// and whether all computed the same.
#include "allocator/create.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/size.h"
#include "workload/program.h"
#include "workload/recorder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#include "simulator/sim_race.h"
#include "workload/race_blocks.h"
#endif

static const char *size_name = "small", *variant, *schedule, *record_path;
static uint64_t steps, devices;
static bool races, numerics_off, list;

static const struct base_option options[] = {
    {"size", "SIZE", BASE_OPTION_TEXT, &size_name, "small (default), medium or true"},
    {"variant", "NAME", BASE_OPTION_TEXT, &variant, "of the program's (--list names them)"},
    {"steps", "N", BASE_OPTION_COUNT, &steps, "instead of as many as the size has"},
    {"devices", "N", BASE_OPTION_COUNT, &devices, "instead of as few as the program needs"},
    {"record", "FILE", BASE_OPTION_TEXT, &record_path,
     "write the requests and what became of them: a .tmt, or a PyTorch snapshot (.pickle)"},
    {"schedule", "NAME", BASE_OPTION_TEXT, &schedule,
     "of the simulated device: eager (default), lazy, random:SEED or timed"},
    {"races", NULL, BASE_OPTION_FLAG, &races, "look for what the streams leave unordered"},
    {"numerics-off", NULL, BASE_OPTION_FLAG, &numerics_off,
     "compute no values on the simulated device: memory and calls only, for true sizes"},
    {"list", NULL, BASE_OPTION_FLAG, &list, "print the programs and their variants, and end"},
    {0}};

static const struct base_program program = {
    .name = "run",
    .arguments = "PROGRAM...",
    .summary = "Runs programs that use memory under allocator settings and compares what they "
               "compute.",
    .details = "Without --config: PyTorch's defaults. x_allocator:direct and x_allocator:async are "
               "settings, too. Exit status 1 if two settings computed different values, if a value "
               "is wrong, or if a race was found.",
    .common = BASE_COMMON_CONFIG | BASE_COMMON_SEED | BASE_COMMON_CAPACITY,
    .options = options,
    .argument_count_minimum = 0,
    .argument_count_maximum = -1,
};

static void print_programs(void) {
    const struct workload_program *at;
    for (size_t index = 0; (at = workload_program_at(index)) != NULL; ++index) {
        printf("%-12s %s\n", at->name, at->summary);
        printf("%-12s devices %d to %d; variants:", "", at->device_count_min, at->device_count_max);
        for (int i = 0; at->variants != NULL && at->variants[i] != NULL; ++i)
            printf(" %s", at->variants[i]);
        printf("%s\n", at->variants == NULL ? " none" : "");
    }
}

//------------------------------------------------------------------------------------------------
// The device, each run on a fresh one.

#ifdef TIDEMARK_SIMULATOR

static enum base_status device_prepare(const struct base_common *common, int count) {
    enum base_status status = sim_schedule(schedule != NULL ? schedule : "eager");
    if (status != BASE_OK) return base_status_prefix(status, "--schedule");
    status = sim_configure(
        &(struct sim_options){.device_count = count,
                              .capacity_bytes = common->capacity,
                              .numerics = numerics_off ? SIM_NUMERICS_OFF : SIM_NUMERICS_ON});
    return status == BASE_OK && races ? sim_race_start(&(struct sim_race_options){0}) : status;
}

// OUTER tells the race checker of INNER's blocks, if the program is to be checked.
static enum base_status ears_create(struct allocator *inner, struct allocator **outer) {
    *outer = inner;
    if (!races) return BASE_OK;
    const enum base_status status = workload_race_blocks_create(inner, outer);
    return status == BASE_UNSUPPORTED ? BASE_OK : status; // the driver's own blocks it knows
}

static uint64_t races_end(void) {
    if (!races) return 0;
    sim_race_stop();
    return sim_race_count(SIM_RACE_RULE_COUNT);
}

#else

static enum base_status device_prepare(const struct base_common *common, int count) {
    (void)count;
    if (common->capacity == 0 && schedule == NULL && !races && !numerics_off) return BASE_OK;
    base_options_usage_error(
        &program, "--capacity, --schedule, --races and --numerics-off need the simulator");
}

static enum base_status ears_create(struct allocator *inner, struct allocator **outer) {
    *outer = inner;
    return BASE_OK;
}

static uint64_t races_end(void) { return 0; }

#endif

//------------------------------------------------------------------------------------------------
// Runs.

struct outcome {
    struct workload_result result;
    int64_t allocations, peak_allocated, peak_reserved, device_calls;
    uint64_t race_count;
};

static enum base_status statistics_add(struct allocator *allocator, int count,
                                       struct outcome *outcome) {
    enum base_status status = BASE_OK;
    for (int device = 0; device < count && status == BASE_OK; ++device) {
        struct allocator_stats stats;
        status = allocator_stats(allocator, device, &stats);
        if (status != BASE_OK) return status;
        outcome->allocations += stats.allocation[ALLOCATOR_STAT_ALL].allocated;
        outcome->peak_allocated += stats.allocated_bytes[ALLOCATOR_STAT_ALL].peak;
        outcome->peak_reserved += stats.reserved_bytes[ALLOCATOR_STAT_ALL].peak;
        outcome->device_calls += stats.num_device_alloc + stats.num_device_free;
    }
    return status;
}

// Around the allocator, from within: the recorder, the race checker's ears.
struct layers {
    struct allocator *inner, *outer;
    struct workload_recorder *recorder;
};

static enum base_status layers_create(const char *config, struct layers *layers) {
    *layers = (struct layers){NULL, NULL, NULL};
    enum base_status status = allocator_create(config, -1, &layers->inner);
    if (status == BASE_OK && record_path != NULL)
        status = workload_recorder_create(layers->inner, &layers->recorder);
    if (status != BASE_OK) return status;
    return ears_create(layers->recorder != NULL ? workload_recorder_allocator(layers->recorder)
                                                : layers->inner,
                       &layers->outer);
}

static void layers_destroy(struct layers *layers) {
    if (layers->outer != layers->inner) allocator_destroy(layers->outer);
    workload_recorder_destroy(layers->recorder);
    allocator_destroy(layers->inner);
}

static enum base_status run_under(const struct base_config *config,
                                  const struct workload_program *chosen,
                                  struct workload_options run, const struct base_common *common,
                                  struct outcome *outcome) {
    struct layers layers = {NULL, NULL, NULL};
    *outcome = (struct outcome){.allocations = 0};
    if (run.device_count == 0) run.device_count = chosen->device_count_min;
    enum base_status status = device_prepare(common, run.device_count);
    if (status == BASE_OK) status = layers_create(config->text, &layers);
    if (status == BASE_OK) {
        run.allocator = layers.outer;
        status = workload_program_run(chosen, &run, &outcome->result);
    }
    if (status == BASE_OK) status = statistics_add(layers.inner, run.device_count, outcome);
    outcome->race_count = races_end();
    if (status == BASE_OK && layers.recorder != NULL)
        status = workload_recorder_write(layers.recorder, record_path);
    layers_destroy(&layers);
    return status;
}

static void print_outcome(const struct workload_program *chosen, const struct base_config *config,
                          const struct outcome *outcome) {
    char allocated[BASE_SIZE_TEXT], reserved[BASE_SIZE_TEXT];
    printf("%-12s %-16s %016" PRIx64 " %10lld %12s %12s %8lld", chosen->name, config->name,
           outcome->result.checksum, (long long)outcome->allocations,
           base_size_format((uint64_t)outcome->peak_allocated, allocated),
           base_size_format((uint64_t)outcome->peak_reserved, reserved),
           (long long)outcome->device_calls);
    if (races) printf(" %6" PRIu64, outcome->race_count);
    printf("\n");
    (void)fflush(stdout);
}

// True if every setting computed the same, and no race was found.
static bool run_program(const struct workload_program *chosen, const struct workload_options *run,
                        const struct base_config *configs, int config_count,
                        const struct base_common *common) {
    bool passed = true;
    uint64_t checksum = 0;
    for (int index = 0; index < config_count; ++index) {
        struct outcome outcome;
        const enum base_status status = run_under(&configs[index], chosen, *run, common, &outcome);
        if (status != BASE_OK) {
            fprintf(stderr, "run: %s under %s: %s\n", chosen->name, configs[index].name,
                    base_status_message());
            exit(status == BASE_INTERRUPTED ? base_interrupt_exit_code()
                                            : base_status_exit_code(status));
        }
        print_outcome(chosen, &configs[index], &outcome);
        if (index == 0) checksum = outcome.result.checksum;
        if (outcome.result.checksum != checksum)
            printf("%s computed other values under %s than under %s\n", chosen->name,
                   configs[index].name, configs[0].name);
        passed = passed && outcome.result.checksum == checksum && outcome.race_count == 0;
    }
    return passed;
}

static struct workload_options options_read(const struct base_common *common) {
    struct workload_options run = {
        .variant = variant, .seed = common->seed, .steps = steps, .without_values = numerics_off};
    if (workload_size_parse(size_name, &run.size) != BASE_OK)
        base_options_usage_error(&program, "--size: %s", base_status_message());
    if (devices > WORKLOAD_DEVICES_MAX)
        base_options_usage_error(&program, "--devices: at most %d", WORKLOAD_DEVICES_MAX);
    run.device_count = (int)devices;
    return run;
}

int main(int argc, char **argv) {
    static const struct base_config defaults = {"default", ""};
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    base_interrupt_install();
    if (list) {
        print_programs();
        return 0;
    }
    if (common.argument_count == 0)
        base_options_usage_error(&program, "which program? --list names those there are");
    const struct base_config *configs = common.config_count > 0 ? common.configs : &defaults;
    const int config_count = common.config_count > 0 ? common.config_count : 1;
    if (record_path != NULL && common.argument_count * config_count > 1)
        base_options_usage_error(&program, "--record takes one program under one setting");
    const struct workload_options run = options_read(&common);
    bool passed = true;
    printf("seed %" PRIu64 "\n%-12s %-16s %-16s %10s %12s %12s %8s%s\n", common.seed, "program",
           "setting", "checksum", "requests", "allocated", "reserved", "calls",
           races ? "  races" : "");
    for (int index = 0; index < common.argument_count; ++index) {
        const struct workload_program *chosen;
        if (workload_program_find(common.arguments[index], &chosen) != BASE_OK)
            base_options_usage_error(&program, "%s", base_status_message());
        passed &= run_program(chosen, &run, configs, config_count, &common);
    }
    free(common.configs);
    return passed ? 0 : 1;
}
