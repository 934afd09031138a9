// Every program of program.h, small, under every allocator, several settings and schedules, with
// the race checker on: the same checksum everywhere, no race, nothing left. And with a wrong rule
// planted in the allocator something is found.
//
//     programs_test [SEEDS [PROGRAM]]        8 seeds, all programs
#include "workload/program.h"
#include "workload/race_blocks.h"
#include "workload/run.h"
#include "workload/wrapper.h"

#include "allocator/cca.h"
#include "allocator/create.h"
#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY (4 * BASE_GIB)
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

// What a run gave.
struct outcome {
    enum base_status status;
    struct workload_result result;
    uint64_t races;
    int64_t peak_reserved;
};

//------------------------------------------------------------------------------------------------
// An allocator that forgets record_stream.

static enum base_status forget(struct allocator *allocator, void *pointer, cudaStream_t stream) {
    (void)allocator;
    (void)pointer;
    (void)stream;
    return BASE_OK;
}

static struct allocator *forgetful_around(struct allocator *allocator) {
    static struct allocator_operations operations;
    static struct workload_wrapper forgetful;
    operations = workload_wrapper_operations;
    operations.record_stream = forget;
    forgetful = (struct workload_wrapper){{&operations}, allocator};
    return &forgetful.allocator;
}

//------------------------------------------------------------------------------------------------
// A run on a fresh device.

static uint64_t interleaving; // of the threads; 0: as they come

static struct outcome run(const struct workload_program *program, struct workload_options options,
                          const char *config, const char *schedule, bool is_forgetful) {
    struct allocator *inner, *outer;
    struct outcome outcome = {.status = BASE_OK};
    struct allocator_stats stats;
    base_check_context("%s %s, \"%s\", %s, seed %llu", program->name,
                       options.variant != NULL ? options.variant : "", config, schedule,
                       (unsigned long long)options.seed);
    const bool is_async = strncmp(config, "x_allocator:async", 17) == 0;
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = program->device_count_max,
                                                      .capacity_bytes = CAPACITY}),
                  BASE_OK);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    BASE_CHECK_EQ(allocator_create(config, -1, &inner), BASE_OK);
    outer = inner;
    if (!is_async) // whose blocks the checker knows by itself
        BASE_CHECK_EQ(
            workload_race_blocks_create(is_forgetful ? forgetful_around(inner) : inner, &outer),
            BASE_OK);
    options.allocator = outer;
    if (interleaving != 0) sim_serialize(interleaving);
    outcome.status = workload_program_run(program, &options, &outcome.result);
    if (interleaving != 0) sim_serialize_end();
    sim_race_stop();
    outcome.races = sim_race_count(SIM_RACE_RULE_COUNT);
    BASE_CHECK_EQ(allocator_stats(inner, 0, &stats), BASE_OK);
    outcome.peak_reserved = stats.reserved_bytes[ALLOCATOR_STAT_ALL].peak;
    if (outer != inner) allocator_destroy(outer);
    allocator_destroy(inner);
    return outcome;
}

static const char *const configs[] = {
    "",
    "max_split_size_mb:20,garbage_collection_threshold:0.6",
    "expandable_segments:True",
    "roundup_power2_divisions:4",
    "x_skip_stuck:True,x_wait:enough,x_retry_search:True,x_reclaim_idle:True",
    "x_allocator:direct",
    "x_allocator:async",
};
static const char *const schedules[] = {"eager", "lazy", "random"};

// The random schedule is another one for each seed.
static const char *schedule_name(size_t index, uint64_t seed) {
    static char name[64];
    (void)snprintf(name, sizeof name, index == 2 ? "%s:%llu" : "%s", schedules[index],
                   (unsigned long long)seed);
    return name;
}

static uint64_t same_everywhere(const struct workload_program *program, const char *variant,
                                uint64_t seed) {
    const struct workload_options options = {.variant = variant, .seed = seed};
    uint64_t checksum = 0;
    for (size_t config = 0; config < COUNT(configs); ++config)
        for (size_t schedule = 0; schedule < COUNT(schedules); ++schedule) {
            const struct outcome outcome =
                run(program, options, configs[config], schedule_name(schedule, seed), false);
            if (outcome.status != BASE_OK) printf("%s\n", base_status_message());
            BASE_CHECK_EQ(outcome.status, BASE_OK);
            if (outcome.races > 0) printf("%s", sim_race_report_at(0)->text);
            BASE_CHECK_EQ(outcome.races, 0);
            if (checksum == 0) checksum = outcome.result.checksum;
            BASE_CHECK_EQ(outcome.result.checksum, checksum);
        }
    return checksum;
}

// Another seed, another program: the checksum says that something depends on it.
static void seeds_matter(const struct workload_program *program, uint64_t seeds) {
    uint64_t before = 0;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
        const uint64_t checksum = same_everywhere(program, NULL, seed);
        BASE_CHECK_NE(checksum, 0);
        BASE_CHECK_NE(checksum, before);
        before = checksum;
    }
}

// By itself, too: the seeds above ran the first variant.
static void every_variant_runs(const struct workload_program *program) {
    for (int index = 0; program->variants != NULL && program->variants[index] != NULL; ++index)
        (void)same_everywhere(program, program->variants[index], 1);
}

// Which thread goes next at each lock and each CUDA call is drawn from a number.
static void interleavings_do_not_matter(uint64_t count) {
    const struct workload_program *program;
    uint64_t checksum = 0;
    BASE_CHECK_EQ(workload_program_find("patterns", &program), BASE_OK);
    for (interleaving = 1; interleaving <= count; ++interleaving) {
        const struct workload_options options = {.variant = "bleed", .seed = 2};
        const struct outcome outcome = run(program, options, "", "lazy", false);
        BASE_CHECK_EQ(outcome.status, BASE_OK);
        BASE_CHECK_EQ(outcome.races, 0);
        if (interleaving == 1) checksum = outcome.result.checksum;
        BASE_CHECK_EQ(outcome.result.checksum, checksum);
    }
    interleaving = 0;
}

static const struct workload_program *named(const char *name) {
    const struct workload_program *program;
    BASE_CHECK_EQ(workload_program_find(name, &program), BASE_OK);
    return program;
}

// A program that orders its streams by record_stream alone is lost without it; one whose streams
// wait for each other does not notice.
static void a_forgetful_allocator_is_found(void) {
    static const struct {
        const char *program, *variant;
        bool is_lost;
    } cases[] = {
        {"patterns", "bleed", true},        {"patterns", "pipeline", true},
        {"patterns", "mixed", false},       {"offload", "record_stream", true},
        {"offload", "buffers", false},      {"offload", "plain", false},
        {"graphs", "streams", true},        {"graphs", "step", false},
        {"sharded", "record_stream", true}, {"sharded", "kept", false},
    };
    for (size_t index = 0; index < COUNT(cases); ++index) {
        const struct workload_options options = {.variant = cases[index].variant, .seed = 3};
        const struct outcome outcome = run(named(cases[index].program), options, "", "lazy", true);
        BASE_CHECK_EQ(outcome.races > 0 || outcome.status == BASE_CHECK_FAILED,
                      cases[index].is_lost);
    }
}

// Uses a tensor's memory on another stream when the tensor is gone: order is missing, not by much.
static enum base_status use_what_is_gone(struct workload_run *run) {
    struct tensor tensor;
    cudaStream_t side;
    enum base_status status = workload_run_stream(run, 0, &side);
    if (status == BASE_OK)
        status = tensor_zeros(&run->devices[0], TENSOR_FLOAT32, (int64_t[]){1024}, 1, &tensor);
    if (status != BASE_OK) return status;
    void *const bytes = tensor_data(tensor);
    tensor_release(&tensor);
    status = workload_cuda("cudaMemsetAsync", cudaMemsetAsync(bytes, 0, 4096, side));
    if (status == BASE_OK)
        status = workload_cuda("cudaStreamSynchronize", cudaStreamSynchronize(side));
    return status == BASE_OK ? workload_run_step(run) : status;
}

// A cache hides it: the bytes are still mapped, and nobody else has them yet. Only the checker
// says so. With `direct` they are not there.
static void missing_order_is_exposed(void) {
    static const struct workload_program hasty = {.name = "hasty",
                                                  .summary = "uses what is gone",
                                                  .steps = {1, 1, 1},
                                                  .device_count_min = 1,
                                                  .device_count_max = 1,
                                                  .run = use_what_is_gone};
    const struct workload_options options = {.seed = 1};
    const struct outcome cached = run(&hasty, options, "", "eager", false);
    BASE_CHECK_EQ(cached.status, BASE_OK);
    BASE_CHECK_GT(cached.races, 0);
    const struct outcome direct = run(&hasty, options, "x_allocator:direct", "eager", false);
    BASE_CHECK_EQ(direct.status, BASE_CUDA);
}

// One model is trained by one device with its layers in host memory, with a side stream and without
// one, and by 2 to 8 devices, which have shares of any size: the weights are the same.
static void one_model_has_one_checksum(uint64_t seed) {
    static const struct {
        const char *program, *variant;
        int device_count;
    } ways[] = {
        {"offload", "plain", 1},         {"offload", "record_stream", 1}, {"offload", "buffers", 1},
        {"sharded", "record_stream", 2}, {"sharded", "kept", 3},          {"sharded", "kept", 4},
        {"sharded", "record_stream", 5}, {"sharded", "record_stream", 6}, {"sharded", "kept", 7},
        {"sharded", "record_stream", 8},
    };
    uint64_t checksum = 0;
    for (size_t way = 0; way < COUNT(ways); ++way) {
        const struct workload_options options = {.variant = ways[way].variant,
                                                 .seed = seed,
                                                 .steps = 3,
                                                 .device_count = ways[way].device_count};
        const struct outcome outcome =
            run(named(ways[way].program), options, "", schedule_name(way % 3, seed), false);
        BASE_CHECK_EQ(outcome.status, BASE_OK);
        BASE_CHECK_EQ(outcome.result.steps, 3);
        if (way == 0) checksum = outcome.result.checksum;
        BASE_CHECK_EQ(outcome.result.checksum, checksum);
    }
}

// The device is too small: the first request that does not fit ends the program, and what it held
// is free again.
static void out_of_memory_leaves_nothing(const struct workload_program *program) {
    struct allocator *allocator;
    struct workload_result result;
    struct allocator_stats stats;
    uint64_t capacity = 2 * BASE_MIB;
    base_check_context("%s without memory", program->name);
    BASE_CHECK_EQ(sim_schedule("eager"), BASE_OK);
    for (enum base_status status = BASE_OUT_OF_MEMORY; status != BASE_OK; capacity *= 2) {
        BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = program->device_count_max,
                                                          .capacity_bytes = capacity}),
                      BASE_OK);
        BASE_CHECK_EQ(allocator_create("", -1, &allocator), BASE_OK);
        status = workload_program_run(
            program, &(struct workload_options){.allocator = allocator, .seed = 1}, &result);
        if (status != BASE_OK) BASE_CHECK_EQ(status, BASE_OUT_OF_MEMORY);
        BASE_CHECK_EQ(allocator_stats(allocator, 0, &stats), BASE_OK);
        BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].current, 0);
        if (capacity == 2 * BASE_MIB) BASE_CHECK_EQ(status, BASE_OUT_OF_MEMORY);
        allocator_destroy(allocator);
    }
}

static void wrong_options_are_refused(void) {
    const struct workload_program *program = named("patterns");
    struct workload_result result;
    enum workload_size size;
    BASE_CHECK_EQ(workload_program_find("nothing", &program), BASE_INVALID_VALUE);
    BASE_CHECK(strstr(base_status_message(), "patterns") != NULL);
    BASE_CHECK_EQ(
        workload_program_run(program, &(struct workload_options){.variant = "none"}, &result),
        BASE_INVALID_VALUE);
    BASE_CHECK(strstr(base_status_message(), "sawtooth") != NULL);
    BASE_CHECK_EQ(
        workload_program_run(program, &(struct workload_options){.device_count = 17}, &result),
        BASE_INVALID_VALUE);
    BASE_CHECK_EQ(workload_size_parse("huge", &size), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(workload_size_parse("medium", &size), BASE_OK);
    BASE_CHECK_EQ(size, WORKLOAD_MEDIUM);
    struct workload_options options = {.device_count = 1};
    BASE_CHECK_EQ(workload_program_run(named("sharded"), &options, &result), BASE_INVALID_VALUE);
    BASE_CHECK(strstr(base_status_message(), "2 to 8 devices, not on 1") != NULL);
    options.device_count = 2;
    BASE_CHECK_EQ(workload_program_run(named("sharded"), &options, &result), BASE_INVALID_VALUE);
    BASE_CHECK(strstr(base_status_message(), "allocator") != NULL);
}

int main(int argc, char **argv) {
    const uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 8;
    const struct workload_program *program;
    for (size_t index = 0; (program = workload_program_at(index)) != NULL; ++index) {
        if (argc > 2 && strcmp(program->name, argv[2]) != 0) continue;
        seeds_matter(program, seeds);
        every_variant_runs(program);
        out_of_memory_leaves_nothing(program);
    }
    for (uint64_t seed = 1; seed <= seeds; ++seed)
        one_model_has_one_checksum(seed);
    interleavings_do_not_matter(seeds);
    missing_order_is_exposed();
    a_forgetful_allocator_is_found();
    wrong_options_are_refused();
    base_check_context(NULL);
    return 0;
}
