// What is written of an allocator, read again: the same entries, blocks and call sites, and the
// replay of it decides the same.
#include "workload/snapshot_file.h"

#include "allocator/cca.h"
#include "allocator/create.h"
#include "allocator/settings.h"
#include "base/check.h"
#include "base/random.h"
#include "simulator/sim.h"
#include "workload/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAMS  4
#define LIVE     64
#define STEPS    1500
#define CAPACITY (UINT64_C(1) << 30)

struct program {
    struct allocator *allocator;
    cudaStream_t streams[STREAMS];
    void *live[LIVE];
    struct base_random random;
};

static __attribute__((noinline)) void allocate_something(struct program *program, size_t slot) {
    struct base_random *const random = &program->random;
    const size_t size = base_random_log_between(random, 1, 24 << 20);
    const cudaStream_t stream = program->streams[base_random_below(random, STREAMS)];
    const enum base_status status =
        allocator_malloc(program->allocator, 0, size, stream, &program->live[slot]);
    BASE_CHECK(status == BASE_OK || status == BASE_OUT_OF_MEMORY);
    if (status == BASE_OK && base_random_chance(random, 0.2))
        BASE_CHECK_EQ(
            allocator_record_stream(program->allocator, program->live[slot], program->streams[1]),
            BASE_OK);
}

static __attribute__((noinline)) void free_something(struct program *program, size_t slot) {
    BASE_CHECK_EQ(allocator_free(program->allocator, program->live[slot]), BASE_OK);
    program->live[slot] = NULL;
}

static void configure(void) {
    const struct sim_options options = {.capacity_bytes = CAPACITY, .numerics = SIM_NUMERICS_OFF};
    BASE_CHECK_EQ(sim_configure(&options), BASE_OK);
}

// A program of SEED under CONFIG, and the snapshot after it.
static struct allocator_snapshot record(const char *config, uint64_t seed,
                                        enum cca_history_context context, size_t max_entries) {
    struct program program = {.random = base_random_init(seed, "program")};
    configure();
    BASE_CHECK_EQ(allocator_create(config, 1, &program.allocator), BASE_OK);
    BASE_CHECK_EQ(
        cca_record_history(program.allocator,
                           &(struct cca_history_options){CCA_HISTORY_ALL, context, max_entries}),
        BASE_OK);
    for (int index = 1; index < STREAMS; ++index) {
        BASE_CHECK_EQ(cudaStreamCreateWithFlags(&program.streams[index], cudaStreamNonBlocking),
                      cudaSuccess);
        sim_stream_hold(program.streams[index], true);
    }
    for (int step = 0; step < STEPS; ++step) {
        const size_t slot = base_random_below(&program.random, LIVE);
        if (base_random_chance(&program.random, 0.1)) (void)sim_stream_run(program.streams[1], 4);
        if (program.live[slot] == NULL)
            allocate_something(&program, slot);
        else
            free_something(&program, slot);
    }
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(program.allocator, &snapshot), BASE_OK);
    allocator_destroy(program.allocator);
    return snapshot;
}

//--------------------------------------------------------------------------------------------------
// The same as the snapshot.

static const char *outermost_known(const struct trace *trace, uint32_t stack, const char *name) {
    for (uint32_t frame = 0; frame < trace->stacks[stack].count; ++frame) {
        const struct trace_frame *const at = &trace->frames[trace->stacks[stack].first + frame];
        if (strcmp(trace->strings[at->function], name) == 0) return trace->strings[at->file];
    }
    return NULL;
}

// The innermost frame is the program's, not the allocator's, and this file's.
static void expect_site(const struct trace *trace, uint32_t stack, const char *function) {
    BASE_CHECK_NE(stack, TRACE_NONE);
    const struct trace_frame *const first = &trace->frames[trace->stacks[stack].first];
    base_check_context("%s (%s:%u)", trace->strings[first->function], trace->strings[first->file],
                       first->line);
    BASE_CHECK(strcmp(trace->strings[first->function], function) == 0);
    BASE_CHECK(strstr(trace->strings[first->file], "workload/snapshot_file_test.c") != NULL);
    BASE_CHECK_GT(first->line, 0);
    BASE_CHECK(outermost_known(trace, stack, "main") != NULL);
    base_check_context(NULL);
}

// Frees that waited complete in a later allocation.
static bool is_of_free(const struct allocator_snapshot *snapshot, size_t index) {
    const struct allocator_snapshot_entry *const entry = &snapshot->entries[index];
    if (entry->action == ALLOCATOR_FREE_REQUESTED) return true;
    return entry->action == ALLOCATOR_FREE_COMPLETED && index > 0 &&
           entry[-1].action == ALLOCATOR_FREE_REQUESTED && entry[-1].address == entry->address &&
           entry[-1].stack == entry->stack;
}

static void expect_entries(const struct trace *trace, const struct allocator_snapshot *snapshot,
                           bool with_sites) {
    BASE_CHECK_EQ(trace->event_count, snapshot->entry_count);
    for (size_t index = 0; index < trace->event_count; ++index) {
        const struct trace_event *const event = &trace->events[index];
        const struct allocator_snapshot_entry *const entry = &snapshot->entries[index];
        BASE_CHECK(strcmp(trace_action_name((enum trace_action)event->action),
                          allocator_action_name(entry->action)) == 0);
        BASE_CHECK_EQ(event->size, entry->size);
        BASE_CHECK_EQ(event->time_us, entry->time_us);
        BASE_CHECK_EQ(trace->streams[event->stream], (uintptr_t)entry->stream);
        BASE_CHECK_EQ(event->address, entry->action == ALLOCATOR_OOM ? entry->device_free
                                                                     : (uintptr_t)entry->address);
        if (with_sites)
            expect_site(trace, event->stack,
                        is_of_free(snapshot, index) ? "free_something" : "allocate_something");
        else
            BASE_CHECK_EQ(event->stack, TRACE_NONE);
    }
}

static void expect_state(const struct trace *trace, const struct allocator_snapshot *snapshot,
                         bool with_sites) {
    BASE_CHECK_EQ(trace->segment_count, snapshot->segment_count);
    BASE_CHECK_EQ(trace->block_count, snapshot->block_count);
    for (size_t index = 0; index < trace->segment_count; ++index) {
        const struct trace_segment *const read = &trace->segments[index];
        const struct allocator_snapshot_segment *const segment = &snapshot->segments[index];
        BASE_CHECK_EQ(read->address, (uintptr_t)segment->address);
        BASE_CHECK_EQ(read->total_size, segment->total_size);
        BASE_CHECK_EQ(read->allocated_size, segment->allocated_size);
        BASE_CHECK_EQ(read->active_size, segment->active_size);
        BASE_CHECK_EQ(read->requested_size, segment->requested_size);
        BASE_CHECK_EQ(read->is_large, segment->is_large);
        BASE_CHECK_EQ(read->is_expandable, segment->is_expandable);
        BASE_CHECK_EQ(trace->streams[read->stream], (uintptr_t)segment->stream);
        if (with_sites) expect_site(trace, read->stack, "allocate_something");
    }
    for (size_t index = 0; index < trace->block_count; ++index) {
        const struct trace_block *const read = &trace->blocks[index];
        const struct allocator_snapshot_block *const block = &snapshot->blocks[index];
        BASE_CHECK_EQ(read->address, (uintptr_t)block->address);
        BASE_CHECK_EQ(read->size, block->size);
        BASE_CHECK_EQ(read->requested_size, block->requested_size);
        BASE_CHECK_EQ(read->state == TRACE_BLOCK_INACTIVE,
                      block->state == ALLOCATOR_BLOCK_INACTIVE);
        BASE_CHECK_EQ(read->state == TRACE_BLOCK_PENDING_FREE,
                      block->state == ALLOCATOR_BLOCK_PENDING_FREE);
        if (with_sites && block->state != ALLOCATOR_BLOCK_INACTIVE)
            expect_site(trace, read->stack, "allocate_something");
        else
            BASE_CHECK_EQ(read->stack, TRACE_NONE);
    }
}

//--------------------------------------------------------------------------------------------------
// The replay.

static void expect_same_decisions(const struct trace *trace, const char *config) {
    struct workload_replay_plan *plan;
    const enum base_status status = workload_replay_plan_create(trace, 0, &plan);
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    struct allocator *allocator;
    configure();
    BASE_CHECK_EQ(allocator_create(config, 1, &allocator), BASE_OK);
    struct workload_replay_result result;
    BASE_CHECK_EQ(workload_replay_run(plan, allocator,
                                      &(struct workload_replay_options){
                                          .recorded_configuration = true,
                                          .recorded_addresses = true,
                                      },
                                      &result),
                  BASE_OK);
    base_check_context("%s", result.self_check.first_difference);
    BASE_CHECK(result.self_check.checked);
    BASE_CHECK(result.self_check.exact);
    BASE_CHECK_GT(result.self_check.block_count, 200);
    base_check_context(NULL);
    workload_replay_result_deinit(&result);
    allocator_destroy(allocator);
    workload_replay_plan_destroy(plan);
}

static const char *path_of(const char *name) {
    static char path[4096];
    const char *const folder = getenv("TEST_TMPDIR");
    snprintf(path, sizeof path, "%s/%s", folder != NULL ? folder : "/tmp", name);
    return path;
}

static struct trace *read_back(const char *path) {
    struct trace *trace;
    const enum base_status status = trace_read(path, NULL, &trace);
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    return trace;
}

static const char *const configs[] = {
    "", "max_split_size_mb:40,roundup_power2_divisions:[64:8,256:4,1024:2,>:1]",
    "expandable_segments:True"};

static void what_is_written_is_the_snapshot_and_replays(void) {
    for (size_t config = 0; config < sizeof configs / sizeof configs[0]; ++config)
        for (int as_tmt = 0; as_tmt < 2; ++as_tmt) {
            struct allocator_snapshot snapshot =
                record(configs[config], 10 + config, CCA_CONTEXT_ALL, 100000);
            const char *const path = path_of(as_tmt ? "written.tmt" : "written.pickle");
            BASE_CHECK_EQ(as_tmt ? workload_snapshot_write_tmt(&snapshot, path)
                                 : workload_snapshot_write_pickle(&snapshot, path),
                          BASE_OK);
            struct trace *const trace = read_back(path);
            BASE_CHECK(strcmp(trace->name, "written") == 0);
            BASE_CHECK_EQ(trace->device_count, 1);
            BASE_CHECK(trace->settings.known);
            BASE_CHECK(strcmp(trace->settings.config, configs[config]) == 0);
            BASE_CHECK_EQ(trace->settings.max_split_size, config == 1 ? 40 << 20 : -1);
            BASE_CHECK_EQ(trace->settings.expandable_segments, config == 2);
            BASE_CHECK_EQ(trace->settings.roundup_power2_divisions[6], config == 1 ? 8 : 0);
            BASE_CHECK_EQ(trace->settings.capacity_bytes, as_tmt ? CAPACITY : 0);
            expect_entries(trace, &snapshot, true);
            expect_state(trace, &snapshot, true);
            expect_same_decisions(trace, configs[config]);
            trace_destroy(trace);
            allocator_snapshot_deinit(&snapshot);
        }
}

// A window that begins in the middle: blocks without a site are those from before.
static void a_window_has_what_was_there_before(void) {
    struct allocator_snapshot snapshot = record("", 4, CCA_CONTEXT_ALL, 900);
    const char *const path = path_of("window.pickle");
    BASE_CHECK_EQ(workload_snapshot_write_pickle(&snapshot, path), BASE_OK);
    struct trace *const trace = read_back(path);
    BASE_CHECK_EQ(trace->event_count, 900);
    expect_state(trace, &snapshot, true);
    expect_same_decisions(trace, "");
    trace_destroy(trace);
    allocator_snapshot_deinit(&snapshot);
}

static void without_stacks_there_are_no_frames(void) {
    struct allocator_snapshot snapshot = record("", 2, CCA_CONTEXT_NEVER, 100000);
    struct trace *trace;
    BASE_CHECK_EQ(workload_snapshot_trace(&snapshot, "bare", &trace), BASE_OK);
    BASE_CHECK_EQ(trace->stack_count, 0);
    expect_entries(trace, &snapshot, false);
    expect_state(trace, &snapshot, false);
    trace_destroy(trace);
    allocator_snapshot_deinit(&snapshot);
}

static void an_allocator_without_history_has_a_state_all_the_same(void) {
    struct allocator *allocator;
    void *pointer;
    struct allocator_snapshot snapshot;
    struct trace *trace;
    configure();
    BASE_CHECK_EQ(allocator_create("x_allocator:direct", 1, &allocator), BASE_OK);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 3 << 20, NULL, &pointer), BASE_OK);
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    BASE_CHECK_EQ(workload_snapshot_trace(&snapshot, "direct", &trace), BASE_OK);
    BASE_CHECK_EQ(trace->event_count, 0);
    BASE_CHECK_EQ(trace->segment_count, 1);
    BASE_CHECK_EQ(trace->blocks[0].size, 3 << 20);
    BASE_CHECK(!trace->settings.known);
    trace_destroy(trace);
    allocator_snapshot_deinit(&snapshot);
    allocator_destroy(allocator);
}

static void a_folder_that_is_not_there_is_named(void) {
    struct allocator_snapshot snapshot = {0};
    BASE_CHECK_EQ(workload_snapshot_write_pickle(&snapshot, "/nowhere/at/all.pickle"), BASE_IO);
    BASE_CHECK(strstr(base_status_message(), "/nowhere/at/all.pickle") != NULL);
    BASE_CHECK_EQ(workload_snapshot_write_tmt(&snapshot, "/nowhere/at/all.tmt"), BASE_IO);
}

int main(void) {
    what_is_written_is_the_snapshot_and_replays();
    a_window_has_what_was_there_before();
    without_stacks_there_are_no_frames();
    an_allocator_without_history_has_a_state_all_the_same();
    a_folder_that_is_not_there_is_named();
    return 0;
}
