// A recorded run, written and read again, replays with the same decisions, whatever programs,
// settings, schedules and threads; what the recorder heard is what the allocator's own history
// says; and of an allocator that decides nothing itself the requests are kept.
#include "workload/recorder.h"

#include "allocator/cca.h"
#include "allocator/create.h"
#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"
#include "workload/program.h"
#include "workload/replay.h"
#include "workload/snapshot_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY (4 * BASE_GIB)
#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != BASE_OK) printf("%s\n", base_status_message()), fflush(stdout), abort();     \
    } while (0)

static const char *path_of(const char *name) {
    static char path[4096];
    const char *const folder = getenv("TEST_TMPDIR");
    (void)snprintf(path, sizeof path, "%s/%s", folder != NULL ? folder : "/tmp", name);
    return path;
}

// The program's run on ALLOCATOR, recorded to a file and read back.
static struct trace *record(const struct workload_program *program, const char *variant,
                            struct allocator *inner, uint64_t seed, const char *path) {
    struct workload_recorder *recorder;
    struct workload_result result;
    struct trace *trace;
    OK(workload_recorder_create(inner, &recorder));
    const struct workload_options options = {
        .allocator = workload_recorder_allocator(recorder), .variant = variant, .seed = seed};
    OK(workload_program_run(program, &options, &result));
    OK(workload_recorder_write(recorder, path));
    workload_recorder_destroy(recorder);
    OK(trace_read(path, NULL, &trace));
    return trace;
}

static void configure(const struct workload_program *program, const char *schedule) {
    OK(sim_schedule(schedule));
    OK(sim_configure(&(struct sim_options){.device_count = program->device_count_max,
                                           .capacity_bytes = CAPACITY}));
}

//------------------------------------------------------------------------------------------------
// Replays.

static void device_replays(const struct trace *trace, int device, const char *config) {
    struct workload_replay_plan *plan;
    struct workload_replay_result result;
    struct allocator *allocator;
    OK(sim_schedule("eager"));
    OK(sim_configure(&(struct sim_options){.capacity_bytes = CAPACITY,
                                           .numerics = SIM_NUMERICS_OFF,
                                           .addresses = SIM_ADDRESSES_REUSED}));
    OK(workload_replay_plan_create(trace, device, &plan));
    OK(allocator_create(config, -1, &allocator));
    const struct workload_replay_options options = {.recorded_configuration = true,
                                                    .recorded_addresses = true};
    OK(workload_replay_run(plan, allocator, &options, &result));
    if (!result.self_check.exact) printf("%s\n", result.self_check.first_difference);
    BASE_CHECK(result.self_check.checked);
    BASE_CHECK(result.self_check.exact);
    BASE_CHECK_GT(result.self_check.block_count, 10);
    workload_replay_result_deinit(&result);
    allocator_destroy(allocator);
    workload_replay_plan_destroy(plan);
}

// Returns how many pools there were, the default one included.
static uint32_t replay_decides_the_same(const struct workload_program *program, const char *variant,
                                        const char *config, const char *schedule, uint64_t seed,
                                        const char *file) {
    struct allocator *inner;
    base_check_context("%s %s, \"%s\", %s, seed %llu, %s", program->name,
                       variant != NULL ? variant : "", config, schedule, (unsigned long long)seed,
                       file);
    configure(program, schedule);
    OK(allocator_create(config, -1, &inner));
    struct trace *const trace = record(program, variant, inner, seed, path_of(file));
    allocator_destroy(inner);
    BASE_CHECK_GE((int)trace->device_count, program->device_count_min);
    BASE_CHECK(strcmp(trace->name, "recorder_test") == 0);
    for (int device = 0; device < (int)trace->device_count; ++device)
        device_replays(trace, device, config);
    const uint32_t pool_count = trace->pool_count;
    trace_destroy(trace);
    return pool_count;
}

static const char *const schedules[] = {"eager", "lazy", "random:5"};
static const char *const files[] = {"recorder_test.tmt", "recorder_test.pickle"};

static void replays_decide_the_same(const struct workload_program *program, uint64_t seed) {
    static const char *const configs[] = {"", "max_split_size_mb:20,roundup_power2_divisions:4",
                                          "expandable_segments:True"};
    for (size_t config = 0; config < COUNT(configs); ++config)
        for (size_t schedule = 0; schedule < COUNT(schedules); ++schedule)
            for (size_t file = 0; file < COUNT(files); ++file)
                (void)replay_decides_the_same(program, NULL, configs[config], schedules[schedule],
                                              seed, files[file]);
}

// Private pools, of which some end before the run does, with blocks that wait in captures.
static void captures_replay_without_a_capture(uint64_t seed) {
    static const char *const configs[] = {
        "", "graph_capture_record_stream_reuse:True",
        "graph_capture_record_stream_reuse:True,x_capture_reuse:markers",
        "graph_capture_record_stream_reuse:True,expandable_segments:True"};
    const struct workload_program *program;
    OK(workload_program_find("graphs", &program));
    for (int variant = 0; program->variants[variant] != NULL; ++variant)
        for (size_t config = 0; config < COUNT(configs); ++config)
            for (size_t schedule = 0; schedule < COUNT(schedules); ++schedule)
                BASE_CHECK_GT(replay_decides_the_same(program, program->variants[variant],
                                                      configs[config], schedules[schedule], seed,
                                                      files[schedule % COUNT(files)]),
                              1);
}

//------------------------------------------------------------------------------------------------
// What is kept.

static const struct workload_program *patterns(void) {
    const struct workload_program *program;
    OK(workload_program_find("patterns", &program));
    return program;
}

static void the_events_are_those_of_the_history(void) {
    struct allocator *inner;
    struct allocator_snapshot snapshot;
    struct trace *own;
    base_check_context("history");
    configure(patterns(), "lazy");
    OK(allocator_create("", -1, &inner));
    OK(cca_record_history(
        inner, &(struct cca_history_options){CCA_HISTORY_ALL, CCA_CONTEXT_NEVER, 1000000}));
    struct trace *const trace = record(patterns(), NULL, inner, 2, path_of("history.tmt"));
    OK(allocator_snapshot(inner, &snapshot));
    OK(workload_snapshot_trace(&snapshot, "history", &own));
    // The history's last entry is that of the recorder's snapshot, or of ours.
    BASE_CHECK_GT(trace->event_count, 1000);
    BASE_CHECK_GE(own->event_count, trace->event_count);
    for (size_t index = 0; index < trace->event_count; ++index) {
        const struct trace_event *const heard = &trace->events[index], *const kept =
                                                                           &own->events[index];
        BASE_CHECK_EQ(heard->action, kept->action);
        BASE_CHECK_EQ(heard->address, kept->address);
        BASE_CHECK_EQ(heard->size, kept->size);
        BASE_CHECK_EQ(trace->streams[heard->stream], own->streams[kept->stream]);
    }
    for (size_t index = trace->event_count; index < own->event_count; ++index)
        BASE_CHECK_EQ(own->events[index].action, TRACE_SNAPSHOT);
    allocator_snapshot_deinit(&snapshot);
    trace_destroy(own);
    trace_destroy(trace);
    allocator_destroy(inner);
}

// Of `direct` and `async` the requests stay, and any setting can replay them.
static void requests_alone_replay_under_any_setting(const char *setting) {
    struct allocator *inner, *other;
    struct workload_replay_plan *plan;
    struct workload_replay_result result;
    base_check_context("%s", setting);
    configure(patterns(), "eager");
    OK(allocator_create(setting, -1, &inner));
    struct trace *const trace = record(patterns(), NULL, inner, 2, path_of("requests.tmt"));
    allocator_destroy(inner);
    BASE_CHECK_EQ(trace->segment_count, 0);
    BASE_CHECK(!trace_has_placement(trace, 0));
    OK(workload_replay_plan_create(trace, 0, &plan));
    OK(allocator_create("expandable_segments:True", -1, &other));
    OK(workload_replay_run(plan, other, &(struct workload_replay_options){.snapshot = false},
                           &result));
    BASE_CHECK(!result.out_of_memory);
    BASE_CHECK_GT(result.peak_requested_bytes, 0);
    BASE_CHECK_EQ(result.stats.allocation[ALLOCATOR_STAT_ALL].current, 0);
    workload_replay_result_deinit(&result);
    allocator_destroy(other);
    workload_replay_plan_destroy(plan);
    trace_destroy(trace);
}

static void what_cannot_be_recorded_says_so(void) {
    struct allocator *inner;
    struct workload_recorder *recorder;
    base_check_context("refusals");
    configure(patterns(), "eager");
    OK(allocator_create("", -1, &inner));
    OK(workload_recorder_create(inner, &recorder));
    BASE_CHECK_EQ(workload_recorder_write(recorder, "/nowhere/at/all.tmt"), BASE_IO);
    workload_recorder_destroy(recorder);
    allocator_destroy(inner);
}

int main(int argc, char **argv) {
    const uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 2;
    const struct workload_program *program;
    for (size_t index = 0; (program = workload_program_at(index)) != NULL; ++index)
        for (uint64_t seed = 1; seed <= seeds; ++seed)
            replays_decide_the_same(program, seed);
    for (uint64_t seed = 1; seed <= seeds; ++seed)
        captures_replay_without_a_capture(seed);
    the_events_are_those_of_the_history();
    requests_alone_replay_under_any_setting("x_allocator:direct");
    requests_alone_replay_under_any_setting("x_allocator:async");
    what_cannot_be_recorded_says_so();
    base_check_context(NULL);
    return 0;
}
