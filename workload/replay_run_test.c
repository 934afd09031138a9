// Replays of hand-made recordings: the decisions, what is counted, where it ends. Expected values
// are worked out by hand from PyTorch's rules: 20 MiB segments for requests of 1 to 10 MiB, exact
// ones above, best fit, splits that leave more than 1 MiB.
#include "workload/replay.h"
#include "workload/replay_test_trace.h"

#include "allocator/create.h"
#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <string.h>

#define MIB BASE_MIB
#define SEGMENT UINT64_C(0x10000000)
#define CAPACITY (1024 * MIB)

struct replayed {
    struct trace *trace;
    struct workload_replay_plan *plan;
    struct workload_replay_result result;
};

static struct allocator *fresh_allocator(const char *config, uint64_t capacity) {
    struct allocator *allocator;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = capacity,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(allocator_create(config, 1, &allocator), BASE_OK);
    return allocator;
}

static struct replayed replay(struct test_trace *made, const char *config, uint64_t capacity,
                              bool recorded) {
    struct replayed replayed = {.trace = test_trace_end(made)};
    enum base_status status = workload_replay_plan_create(replayed.trace, 0, &replayed.plan);
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    struct allocator *allocator = fresh_allocator(config, capacity);
    const struct workload_replay_options options = {
        .recorded_configuration = recorded, .recorded_addresses = recorded, .snapshot = true};
    status = workload_replay_run(replayed.plan, allocator, &options, &replayed.result);
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    allocator_destroy(allocator);
    return replayed;
}

static void replayed_deinit(struct replayed *replayed) {
    workload_replay_result_deinit(&replayed->result);
    workload_replay_plan_destroy(replayed->plan);
    trace_destroy(replayed->trace);
}

static void expect_exact(const struct replayed *replayed) {
    base_check_context("%s", replayed->result.self_check.first_difference);
    BASE_CHECK(replayed->result.self_check.checked);
    BASE_CHECK(replayed->result.self_check.exact);
    base_check_context(NULL);
}

// Five blocks in two segments; the hole that fits best is the second, smaller one.
static void add_best_fit(struct test_trace *made, uint64_t last_address) {
    test_event(made, TRACE_SEGMENT_ALLOC, SEGMENT, 20 * MIB, 0);
    test_alloc(made, SEGMENT, 6 * MIB, 0);
    test_alloc(made, SEGMENT + 6 * MIB, 2 * MIB, 0);
    test_alloc(made, SEGMENT + 8 * MIB, 4 * MIB, 0);
    test_alloc(made, SEGMENT + 12 * MIB, 8 * MIB, 0);
    test_free(made, SEGMENT, 6 * MIB, 0);
    test_free(made, SEGMENT + 8 * MIB, 4 * MIB, 0);
    test_alloc(made, last_address, 3 * MIB + 512, 0);
    test_segment(made, SEGMENT, 20 * MIB, 0, true);
    test_block(made, SEGMENT, 6 * MIB, 6 * MIB, TRACE_BLOCK_INACTIVE);
    test_block(made, SEGMENT + 6 * MIB, 2 * MIB, 2 * MIB, TRACE_BLOCK_ALLOCATED);
    test_block(made, SEGMENT + 8 * MIB, 4 * MIB, 3 * MIB + 512, TRACE_BLOCK_ALLOCATED);
    test_block(made, SEGMENT + 12 * MIB, 8 * MIB, 8 * MIB, TRACE_BLOCK_ALLOCATED);
}

static void best_fit_comes_out_as_recorded(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    add_best_fit(&made,
                 SEGMENT + 8 * MIB); // 4 MiB for 3 MiB + 512: less than 1 MiB is left, not split
    struct replayed replayed = replay(&made, "", CAPACITY, true);
    const struct workload_replay_result *result = &replayed.result;
    expect_exact(&replayed);
    BASE_CHECK_EQ(result->self_check.block_count, 5);
    BASE_CHECK_EQ(result->self_check.layout_count, 4);
    BASE_CHECK_EQ(result->event_count, 7);
    BASE_CHECK_EQ(result->peak_reserved_bytes, 20 * MIB);
    BASE_CHECK_EQ(result->peak_allocated_bytes, 20 * MIB);
    BASE_CHECK_EQ(result->device_malloc_count, 1);
    BASE_CHECK_EQ(result->stats.allocated_bytes[ALLOCATOR_STAT_ALL].current, 14 * MIB);
    BASE_CHECK_EQ(result->stream_count, 1);
    BASE_CHECK_EQ(result->streams[0].reserved_bytes, 20 * MIB);
    BASE_CHECK_EQ(result->streams[0].allocated_bytes, 14 * MIB);
    BASE_CHECK_EQ(result->streams[0].idle_bytes, 6 * MIB);
    BASE_CHECK_EQ(result->streams[0].peak_idle_bytes, 14 * MIB); // after the first allocation
    BASE_CHECK_EQ(result->series_count, 8);                      // a start, then each event
    BASE_CHECK_EQ(result->series[7].allocated_bytes, 14 * MIB);
    BASE_CHECK_EQ(result->final_snapshot.block_count, 4);
    BASE_CHECK(!result->start_assumed);
    replayed_deinit(&replayed);
}

static void self_check_tells_a_difference(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    add_best_fit(&made, SEGMENT); // the recording claims the larger hole
    made.builder.trace->events[made.builder.trace->event_count - 1].size = 4 * MIB;
    struct replayed replayed = replay(&made, "", CAPACITY, true);
    BASE_CHECK(!replayed.result.self_check.exact);
    BASE_CHECK_EQ(replayed.result.self_check.block_equal_count, 4);
    BASE_CHECK(strstr(replayed.result.self_check.first_difference, "allocation 4") != NULL);
    replayed_deinit(&replayed);
}

// A window: the blocks of the end, less what the two events did.
static void add_window(struct test_trace *made) {
    test_free(made, SEGMENT, 5 * MIB, 0);
    test_alloc(made, SEGMENT, 4 * MIB, 0); // a rest of exactly 1 MiB is not split off
    test_segment(made, SEGMENT, 20 * MIB, 0, true);
    test_block(made, SEGMENT, 5 * MIB, 4 * MIB, TRACE_BLOCK_ALLOCATED);
    test_block(made, SEGMENT + 5 * MIB, 12 * MIB, 11 * MIB + 512,
               TRACE_BLOCK_ALLOCATED); // rest of 1 MiB - 512 unsplit
    test_block(made, SEGMENT + 17 * MIB, 3 * MIB, 0, TRACE_BLOCK_INACTIVE);
    test_segment(made, SEGMENT + 64 * MIB, 2 * MIB, 0, false);
    test_block(made, SEGMENT + 64 * MIB, 512, 100, TRACE_BLOCK_ALLOCATED);
    test_block(made, SEGMENT + 64 * MIB + 512, 2 * MIB - 1024, 0,
               TRACE_BLOCK_INACTIVE); // more than the pool hands out
    test_block(made, SEGMENT + 66 * MIB - 512, 512, 512, TRACE_BLOCK_ALLOCATED);
}

static void window_is_rebuilt_exactly_under_its_own_configuration(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    add_window(&made);
    struct replayed replayed = replay(&made, "", CAPACITY, true);
    expect_exact(&replayed);
    BASE_CHECK(!replayed.result.start_assumed);
    BASE_CHECK_EQ(replayed.result.peak_reserved_bytes, 22 * MIB);
    // At the start: 5 + 12 MiB and two of 512 B; what building took is not in the peak.
    BASE_CHECK_EQ(replayed.result.peak_allocated_bytes, 17 * MIB + 1024);
    BASE_CHECK_EQ(replayed.result.peak_active_bytes, 17 * MIB + 1024);
    BASE_CHECK_EQ(replayed.result.device_malloc_count, 0);
    BASE_CHECK_EQ(replayed.result.event_count, 2);
    BASE_CHECK_EQ(replayed.result.stats.requested_bytes[ALLOCATOR_STAT_ALL].current,
                  4 * MIB + 11 * MIB + 512 + 100 + 512);
    replayed_deinit(&replayed);
}

static void window_starts_with_its_live_blocks_under_another_configuration(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    add_window(&made);
    struct replayed replayed = replay(&made, "x_allocator:direct", CAPACITY, false);
    BASE_CHECK(replayed.result.start_assumed);
    BASE_CHECK(!replayed.result.self_check.checked);
    BASE_CHECK_EQ(replayed.result.stats.allocation[ALLOCATOR_STAT_ALL].current, 4);
    BASE_CHECK_EQ(replayed.result.device_malloc_count, 1); // the start state's are not counted
    replayed_deinit(&replayed);
}

static void release_between_phases_is_replayed_as_empty_cache(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 20 * MIB, 0);
    test_alloc(&made, SEGMENT, 6 * MIB, 0);
    test_free(&made, SEGMENT, 6 * MIB, 0);
    test_event(&made, TRACE_SEGMENT_FREE, SEGMENT, 20 * MIB, 0);
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 30 * MIB, 0); // the address comes back
    test_alloc(&made, SEGMENT, 30 * MIB, 0);
    test_segment(&made, SEGMENT, 30 * MIB, 0, true);
    test_block(&made, SEGMENT, 30 * MIB, 30 * MIB, TRACE_BLOCK_ALLOCATED);
    struct replayed replayed = replay(&made, "", CAPACITY, true);
    expect_exact(&replayed);
    BASE_CHECK_EQ(replayed.result.self_check.release_count, 1);
    BASE_CHECK_EQ(replayed.result.peak_reserved_bytes, 30 * MIB);
    replayed_deinit(&replayed);
}

// 40 MiB fit into a device of 64 MiB, another 40 do not; the program frees the first and goes on.
static void out_of_memory_of_the_recording_is_lived_through(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    made.builder.trace->settings.capacity_bytes = 64 * MIB;
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 40 * MIB, 0);
    test_alloc(&made, SEGMENT, 40 * MIB, 0);
    test_event(&made, TRACE_OOM, 24 * MIB, 40 * MIB, 0);
    test_free(&made, SEGMENT, 40 * MIB, 0);
    test_alloc(&made, SEGMENT, 40 * MIB, 0);
    test_segment(&made, SEGMENT, 40 * MIB, 0, true);
    test_block(&made, SEGMENT, 40 * MIB, 40 * MIB, TRACE_BLOCK_ALLOCATED);
    struct replayed replayed = replay(&made, "", 64 * MIB, true);
    expect_exact(&replayed);
    BASE_CHECK(!replayed.result.out_of_memory);
    BASE_CHECK_EQ(replayed.result.stats.num_ooms, 1);
    BASE_CHECK_EQ(replayed.result.stats.num_alloc_retries, 1);
    BASE_CHECK_EQ(replayed.result.event_count, 4);
    replayed_deinit(&replayed);
}

static void out_of_memory_of_the_replay_ends_it(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 40 * MIB, 0);
    test_alloc(&made, SEGMENT, 40 * MIB, 0);
    test_event(&made, TRACE_SEGMENT_ALLOC, 2 * SEGMENT, 40 * MIB, 0);
    test_alloc(&made, 2 * SEGMENT, 40 * MIB, 0);
    test_free(&made, SEGMENT, 40 * MIB, 0);
    test_segment(&made, SEGMENT, 40 * MIB, 0, true);
    test_block(&made, SEGMENT, 40 * MIB, 40 * MIB, TRACE_BLOCK_INACTIVE);
    test_segment(&made, 2 * SEGMENT, 40 * MIB, 0, true);
    test_block(&made, 2 * SEGMENT, 40 * MIB, 40 * MIB, TRACE_BLOCK_ALLOCATED);
    struct replayed replayed = replay(&made, "", 64 * MIB, true);
    BASE_CHECK(replayed.result.out_of_memory);
    BASE_CHECK_EQ(replayed.result.out_of_memory_event, 1);
    BASE_CHECK_EQ(replayed.result.out_of_memory_size_bytes, 40 * MIB);
    BASE_CHECK(strstr(replayed.result.out_of_memory_message, "CUDA out of memory") != NULL);
    BASE_CHECK(!replayed.result.self_check.exact);
    BASE_CHECK_EQ(replayed.result.event_count, 1);
    replayed_deinit(&replayed);
}

// A block that another stream used: its bytes leave `allocated` at the request, `active` at the
// completion, and until then nobody gets it.
static void deferred_free_counts_at_its_request_and_serves_after_its_completion(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 20 * MIB, 7777);
    test_alloc(&made, SEGMENT, 20 * MIB, 7777);
    test_event(&made, TRACE_FREE_REQUESTED, SEGMENT, 20 * MIB, 7777);
    test_event(&made, TRACE_SEGMENT_ALLOC, 2 * SEGMENT, 20 * MIB, 7777);
    test_alloc(&made, 2 * SEGMENT, 20 * MIB, 7777);
    test_event(&made, TRACE_FREE_COMPLETED, SEGMENT, 20 * MIB, 7777);
    test_alloc(&made, SEGMENT, 20 * MIB, 7777);
    test_event(&made, TRACE_FREE_REQUESTED, SEGMENT, 20 * MIB, 7777);
    test_segment(&made, SEGMENT, 20 * MIB, 7777, true);
    test_block(&made, SEGMENT, 20 * MIB, 20 * MIB, TRACE_BLOCK_PENDING_FREE);
    test_segment(&made, 2 * SEGMENT, 20 * MIB, 7777, true);
    test_block(&made, 2 * SEGMENT, 20 * MIB, 20 * MIB, TRACE_BLOCK_ALLOCATED);
    struct replayed replayed = replay(&made, "", CAPACITY, true);
    const struct workload_replay_result *result = &replayed.result;
    expect_exact(&replayed);
    BASE_CHECK_EQ(result->event_count, 5);
    BASE_CHECK_EQ(result->peak_allocated_bytes, 40 * MIB);
    BASE_CHECK_EQ(result->series[result->series_count - 1].allocated_bytes, 20 * MIB);
    BASE_CHECK_EQ(result->series[result->series_count - 1].active_bytes, 40 * MIB);
    BASE_CHECK_EQ(result->series[2].allocated_bytes, 0); // after the first request of a free
    BASE_CHECK_EQ(result->series[2].active_bytes, 20 * MIB);
    BASE_CHECK_EQ(result->stream_count, 2);
    BASE_CHECK_EQ(result->streams[1].stream, 7777);
    BASE_CHECK_EQ(result->streams[1].reserved_bytes, 40 * MIB);
    BASE_CHECK_EQ((uintptr_t)result->final_snapshot.segments[0].stream, 7777);
    replayed_deinit(&replayed);
}

// The third block finds no memory: the allocator waits for the pending free, releases, and asks
// again.
static void retry_waits_for_pending_frees_itself(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    made.builder.trace->settings.capacity_bytes = 64 * MIB;
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 30 * MIB, 0);
    test_alloc(&made, SEGMENT, 30 * MIB, 0);
    test_event(&made, TRACE_FREE_REQUESTED, SEGMENT, 30 * MIB, 0);
    test_event(&made, TRACE_SEGMENT_ALLOC, 2 * SEGMENT, 30 * MIB, 0);
    test_alloc(&made, 2 * SEGMENT, 30 * MIB, 0);
    test_event(&made, TRACE_FREE_COMPLETED, SEGMENT, 30 * MIB, 0);
    test_event(&made, TRACE_SEGMENT_FREE, SEGMENT, 30 * MIB, 0);
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 28 * MIB, 0);
    test_alloc(&made, SEGMENT, 28 * MIB, 0);
    test_segment(&made, SEGMENT, 28 * MIB, 0, true);
    test_block(&made, SEGMENT, 28 * MIB, 28 * MIB, TRACE_BLOCK_ALLOCATED);
    test_segment(&made, 2 * SEGMENT, 30 * MIB, 0, true);
    test_block(&made, 2 * SEGMENT, 30 * MIB, 30 * MIB, TRACE_BLOCK_ALLOCATED);
    struct replayed replayed = replay(&made, "", 64 * MIB, true);
    expect_exact(&replayed);
    BASE_CHECK_EQ(replayed.result.stats.num_alloc_retries, 1);
    replayed_deinit(&replayed);
}

static void timed_pass_does_the_same_requests(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    add_best_fit(&made, SEGMENT + 8 * MIB);
    struct trace *trace = test_trace_end(&made);
    struct workload_replay_plan *plan;
    BASE_CHECK_EQ(workload_replay_plan_create(trace, 0, &plan), BASE_OK);
    struct allocator *allocator = fresh_allocator("", CAPACITY);
    struct workload_replay_time time;
    BASE_CHECK_EQ(workload_replay_time(plan, allocator, &time), BASE_OK);
    BASE_CHECK_EQ(time.event_count, 7);
    BASE_CHECK(time.total_s >= 0);
    struct allocator_stats stats;
    BASE_CHECK_EQ(allocator_stats(allocator, 0, &stats), BASE_OK);
    BASE_CHECK_EQ(stats.allocated_bytes[ALLOCATOR_STAT_ALL].current, 14 * MIB);
    allocator_destroy(allocator);
    workload_replay_plan_destroy(plan);
    trace_destroy(trace);
}

int main(void) {
    best_fit_comes_out_as_recorded();
    self_check_tells_a_difference();
    window_is_rebuilt_exactly_under_its_own_configuration();
    window_starts_with_its_live_blocks_under_another_configuration();
    release_between_phases_is_replayed_as_empty_cache();
    out_of_memory_of_the_recording_is_lived_through();
    out_of_memory_of_the_replay_ends_it();
    deferred_free_counts_at_its_request_and_serves_after_its_completion();
    retry_waits_for_pending_frees_itself();
    timed_pass_does_the_same_requests();
    return 0;
}
