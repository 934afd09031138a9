// What recordings become: operations, slots, the meaning of released segments, the place of
// deferred completions.
#include "workload/replay_plan.h"
#include "workload/replay_test_trace.h"

#include "base/check.h"
#include "base/size.h"

#include <string.h>

#define SEGMENT 0x10000000u

static struct workload_replay_plan *plan_of(const struct trace *trace) {
    struct workload_replay_plan *plan = NULL;
    const enum base_status status = workload_replay_plan_create(trace, 0, &plan);
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    return plan;
}

static void expect_kinds(const struct workload_replay_plan *plan, const char *expected) {
    static const char letters[] = {[WORKLOAD__ALLOC] = 'a',         [WORKLOAD__ALLOC_FAILED] = 'x',
                                   [WORKLOAD__FREE] = 'f',          [WORKLOAD__FREE_REQUEST] = 'r',
                                   [WORKLOAD__FREE_COMPLETE] = 'c', [WORKLOAD__EMPTY_CACHE] = 'e',
                                   [WORKLOAD__POOL_ROUTE] = '>',    [WORKLOAD__POOL_RELEASE] = '-'};
    char kinds[64] = "";
    for (size_t i = 0; i < plan->operation_count && i < 63; i++) {
        kinds[i] = letters[plan->operations[i].kind];
        if (plan->operations[i].inside_request) kinds[i] = 'C';
    }
    base_check_context("operations %s, expected %s", kinds, expected);
    BASE_CHECK(strcmp(kinds, expected) == 0);
}

// Ends a history with a 20 MiB segment at SEGMENT that is wholly free, or with nothing.
static struct trace *end_with_free_segment(struct test_trace *made) {
    test_segment(made, SEGMENT, 20 * BASE_MIB, 0, true);
    test_block(made, SEGMENT, 20 * BASE_MIB, 5 * BASE_MIB, TRACE_BLOCK_INACTIVE);
    return test_trace_end(made);
}

static void frees_at_once_are_one_operation_and_slots_are_used_again(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 20 * BASE_MIB, 0);
    for (int i = 0; i < 3; i++) {
        test_alloc(&made, SEGMENT, 5 * BASE_MIB, 0);
        test_free(&made, SEGMENT, 5 * BASE_MIB, 0);
    }
    struct trace *trace = end_with_free_segment(&made);
    struct workload_replay_plan *plan = plan_of(trace);
    expect_kinds(plan, "afafaf");
    BASE_CHECK_EQ(plan->slot_count, 1);
    BASE_CHECK_EQ(workload_replay_event_count(plan), 6);
    BASE_CHECK_EQ(plan->segment_count, 1);
    BASE_CHECK_EQ(plan->segments[0].operation, 0);
    BASE_CHECK_EQ(plan->operations[0].size, 5 * BASE_MIB);
    workload_replay_plan_destroy(plan);
    trace_destroy(trace);
}

// A release between a free and an allocation that takes a segment: capacity says whether the
// allocation had to.
static void release_before_growth(uint64_t capacity, const char *expected,
                                  size_t release_operation) {
    struct test_trace made;
    test_trace_begin(&made, "");
    made.builder.trace->settings.capacity_bytes = capacity;
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 20 * BASE_MIB, 0);
    test_alloc(&made, SEGMENT, 5 * BASE_MIB, 0);
    test_free(&made, SEGMENT, 5 * BASE_MIB, 0);
    test_event(&made, TRACE_SEGMENT_FREE, SEGMENT, 20 * BASE_MIB, 0);
    test_event(&made, TRACE_SEGMENT_ALLOC, 2 * SEGMENT, 40 * BASE_MIB, 0);
    test_alloc(&made, 2 * SEGMENT, 40 * BASE_MIB, 0);
    test_segment(&made, 2 * SEGMENT, 40 * BASE_MIB, 0, true);
    test_block(&made, 2 * SEGMENT, 40 * BASE_MIB, 40 * BASE_MIB, TRACE_BLOCK_ALLOCATED);
    struct trace *trace = test_trace_end(&made);
    struct workload_replay_plan *plan = plan_of(trace);
    expect_kinds(plan, expected);
    BASE_CHECK_EQ(plan->release_count, 1);
    BASE_CHECK_EQ(plan->releases[0].operation, release_operation);
    workload_replay_plan_destroy(plan);
    trace_destroy(trace);
}

static void release_that_no_request_needed_is_an_empty_cache(void) {
    release_before_growth(0, "afea", 2);              // no limit known
    release_before_growth(100 * BASE_MIB, "afea", 2); // room for both segments
    release_before_growth(50 * BASE_MIB, "afa", 2); // not for both: the allocation itself released
}

static void release_before_a_free_or_at_the_end_is_an_empty_cache(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    made.builder.trace->settings.capacity_bytes = 20 * BASE_MIB;
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 20 * BASE_MIB, 0);
    test_alloc(&made, SEGMENT, 5 * BASE_MIB, 0);
    test_free(&made, SEGMENT, 5 * BASE_MIB, 0);
    test_event(&made, TRACE_SEGMENT_FREE, SEGMENT, 20 * BASE_MIB, 0);
    struct trace *trace = test_trace_end(&made);
    struct workload_replay_plan *plan = plan_of(trace);
    expect_kinds(plan, "afe");
    workload_replay_plan_destroy(plan);
    trace_destroy(trace);
}

static void recorded_empty_cache_is_kept_even_if_it_released_nothing(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    test_event(&made, TRACE_EMPTY_CACHE, 0, 0, 0);
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 20 * BASE_MIB, 0);
    test_alloc(&made, SEGMENT, 5 * BASE_MIB, 0);
    test_free(&made, SEGMENT, 5 * BASE_MIB, 0);
    test_event(&made, TRACE_EMPTY_CACHE, 0, 0, 0);
    test_event(&made, TRACE_SEGMENT_FREE, SEGMENT, 20 * BASE_MIB, 0);
    struct trace *trace = test_trace_end(&made);
    struct workload_replay_plan *plan = plan_of(trace);
    expect_kinds(plan, "eafe");
    BASE_CHECK_EQ(plan->releases[0].operation, 3);
    workload_replay_plan_destroy(plan);
    trace_destroy(trace);
}

static void collection_explains_releases_above_its_threshold_only(double threshold,
                                                                  const char *expected) {
    struct test_trace made;
    test_trace_begin(&made, "garbage_collection_threshold:0.5");
    struct trace_settings *settings = &made.builder.trace->settings;
    settings->capacity_bytes = 200 * BASE_MIB;
    settings->memory_fraction = 0.5;
    settings->garbage_collection_threshold = threshold;
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 60 * BASE_MIB, 0);
    test_alloc(&made, SEGMENT, 60 * BASE_MIB, 0);
    test_free(&made, SEGMENT, 60 * BASE_MIB, 0);
    test_event(&made, TRACE_SEGMENT_FREE, SEGMENT, 60 * BASE_MIB, 0);
    test_event(&made, TRACE_SEGMENT_ALLOC, 2 * SEGMENT, 2 * BASE_MIB, 0);
    test_alloc(&made, 2 * SEGMENT, BASE_MIB, 0);
    test_segment(&made, 2 * SEGMENT, 2 * BASE_MIB, 0, false);
    test_block(&made, 2 * SEGMENT, BASE_MIB, BASE_MIB, TRACE_BLOCK_ALLOCATED);
    test_block(&made, 2 * SEGMENT + BASE_MIB, BASE_MIB, 0, TRACE_BLOCK_INACTIVE);
    struct trace *trace = test_trace_end(&made);
    struct workload_replay_plan *plan = plan_of(trace);
    expect_kinds(plan, expected);
    workload_replay_plan_destroy(plan);
    trace_destroy(trace);
}

// Two deferred frees; the second request completes them. With room they were complete before it;
// without, it waited for them.
static void deferred_frees(uint64_t capacity, const char *expected) {
    struct test_trace made;
    test_trace_begin(&made, "");
    made.builder.trace->settings.capacity_bytes = capacity;
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 20 * BASE_MIB, 0);
    test_alloc(&made, SEGMENT, 20 * BASE_MIB, 0);
    test_event(&made, TRACE_SEGMENT_ALLOC, 2 * SEGMENT, 30 * BASE_MIB, 77);
    test_alloc(&made, 2 * SEGMENT, 30 * BASE_MIB, 77);
    test_event(&made, TRACE_FREE_REQUESTED, SEGMENT, 20 * BASE_MIB, 0);
    test_event(&made, TRACE_FREE_REQUESTED, 2 * SEGMENT, 30 * BASE_MIB, 77);
    test_event(&made, TRACE_FREE_COMPLETED, SEGMENT, 20 * BASE_MIB, 0);
    test_event(&made, TRACE_FREE_COMPLETED, 2 * SEGMENT, 30 * BASE_MIB, 77);
    test_event(&made, TRACE_SEGMENT_FREE, SEGMENT, 20 * BASE_MIB, 0);
    test_event(&made, TRACE_SEGMENT_FREE, 2 * SEGMENT, 30 * BASE_MIB, 77);
    test_event(&made, TRACE_SEGMENT_ALLOC, 3 * SEGMENT, 40 * BASE_MIB, 0);
    test_alloc(&made, 3 * SEGMENT, 40 * BASE_MIB, 0);
    test_segment(&made, 3 * SEGMENT, 40 * BASE_MIB, 0, true);
    test_block(&made, 3 * SEGMENT, 40 * BASE_MIB, 40 * BASE_MIB, TRACE_BLOCK_ALLOCATED);
    struct trace *trace = test_trace_end(&made);
    struct workload_replay_plan *plan = plan_of(trace);
    expect_kinds(plan, expected);
    BASE_CHECK_EQ(plan->side_stream_count, 1);
    BASE_CHECK_EQ(workload_replay_event_count(plan), 5);
    workload_replay_plan_destroy(plan);
    trace_destroy(trace);
}

// A completion in front of a free: only an emptied cache looks at pending frees there.
static void completion_without_allocation_is_an_empty_cache(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 20 * BASE_MIB, 0);
    test_alloc(&made, SEGMENT, 5 * BASE_MIB, 0);
    test_alloc(&made, SEGMENT + 5 * BASE_MIB, 5 * BASE_MIB, 0);
    test_alloc(&made, SEGMENT + 10 * BASE_MIB, 10 * BASE_MIB, 0);
    test_event(&made, TRACE_FREE_REQUESTED, SEGMENT, 5 * BASE_MIB, 0);
    test_free(&made, SEGMENT + 10 * BASE_MIB, 10 * BASE_MIB, 0);
    test_event(&made, TRACE_FREE_COMPLETED, SEGMENT, 5 * BASE_MIB, 0);
    test_free(&made, SEGMENT + 5 * BASE_MIB, 5 * BASE_MIB, 0);
    struct trace *trace = end_with_free_segment(&made);
    struct workload_replay_plan *plan = plan_of(trace);
    expect_kinds(plan, "aaarfcef");
    workload_replay_plan_destroy(plan);
    trace_destroy(trace);
}

static void failed_request_is_kept_with_its_size(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 20 * BASE_MIB, 0);
    test_alloc(&made, SEGMENT, 5 * BASE_MIB, 0);
    test_event(&made, TRACE_OOM, 1234, 400 * BASE_MIB, 0);
    test_free(&made, SEGMENT, 5 * BASE_MIB, 0);
    struct trace *trace = end_with_free_segment(&made);
    struct workload_replay_plan *plan = plan_of(trace);
    expect_kinds(plan, "axf");
    BASE_CHECK_EQ(plan->operations[1].size, 400 * BASE_MIB);
    workload_replay_plan_destroy(plan);
    trace_destroy(trace);
}

static void unreplayable_recording_is_refused_with_a_sentence(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    struct trace *trace = end_with_free_segment(&made);
    struct workload_replay_plan *plan = NULL;
    BASE_CHECK_NE(workload_replay_plan_create(trace, 0, &plan), BASE_OK);
    BASE_CHECK(plan == NULL);
    BASE_CHECK_GT(strlen(base_status_message()), 10);
    trace_destroy(trace);
}

// A segment of a private pool goes back before a request of none takes its own.
static void pool_that_ended(uint64_t capture, uint64_t user, bool is_alone) {
    struct test_trace made;
    test_trace_begin(&made, "");
    test_pool(&made, capture, user);
    const uint16_t pool = made.pool;
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 20 * BASE_MIB, 0);
    test_alloc(&made, SEGMENT, 5 * BASE_MIB, 0);
    test_free(&made, SEGMENT, 5 * BASE_MIB, 0);
    test_event(&made, TRACE_SEGMENT_FREE, SEGMENT, 20 * BASE_MIB, 0);
    test_pool(&made, 0, 0);
    test_event(&made, TRACE_SEGMENT_ALLOC, 2 * SEGMENT, 40 * BASE_MIB, 0);
    test_alloc(&made, 2 * SEGMENT, 40 * BASE_MIB, 0);
    test_segment(&made, 2 * SEGMENT, 40 * BASE_MIB, 0, true);
    test_block(&made, 2 * SEGMENT, 40 * BASE_MIB, 40 * BASE_MIB, TRACE_BLOCK_ALLOCATED);
    struct trace *trace = test_trace_end(&made);
    struct workload_replay_plan *plan = plan_of(trace);
    expect_kinds(plan, ">af-ea");
    BASE_CHECK_EQ(plan->operations[0].slot, pool);
    BASE_CHECK_EQ(plan->operations[3].slot, pool);
    BASE_CHECK_EQ(plan->operations[4].slot, is_alone ? pool : 0);
    BASE_CHECK_EQ(plan->releases[0].operation, 4);
    workload_replay_plan_destroy(plan);
    trace_destroy(trace);
}

static void private_pools_end_by_themselves_or_with_the_cache(void) {
    pool_that_ended(0, 7, true);
    pool_that_ended(7, 0, false); // a graph's: only an emptied cache takes it away
}

static void requests_are_routed_where_the_pool_changes(void) {
    struct test_trace made;
    test_trace_begin(&made, "");
    for (uint64_t i = 0; i < 4; i++) {
        test_pool(&made, i / 2, 0);
        if (i % 2 == 0)
            test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT * (i + 1), 20 * BASE_MIB, 0);
        test_alloc(&made, SEGMENT * (i / 2 * 2 + 1) + i % 2 * 5 * BASE_MIB, 5 * BASE_MIB, 0);
    }
    test_pool(&made, 0, 0);
    test_free(&made, SEGMENT, 5 * BASE_MIB, 0); // knows its pool
    test_alloc(&made, SEGMENT, 5 * BASE_MIB, 0);
    for (uint64_t i = 0; i < 2; i++) {
        const uint64_t segment = SEGMENT * (2 * i + 1);
        test_pool(&made, i, 0);
        test_segment(&made, segment, 20 * BASE_MIB, 0, true);
        for (uint64_t j = 0; j < 2; j++)
            test_block(&made, segment + j * 5 * BASE_MIB, 5 * BASE_MIB, 5 * BASE_MIB,
                       TRACE_BLOCK_ALLOCATED);
        test_block(&made, segment + 10 * BASE_MIB, 10 * BASE_MIB, 0, TRACE_BLOCK_INACTIVE);
    }
    struct trace *trace = test_trace_end(&made);
    struct workload_replay_plan *plan = plan_of(trace);
    expect_kinds(plan, "aa>aaf>a");
    BASE_CHECK_EQ(plan->operations[6].slot, 0);
    BASE_CHECK_EQ(workload_replay_event_count(plan), 6);
    workload_replay_plan_destroy(plan);
    trace_destroy(trace);
}

// Under max_split_size a request gives back a too small segment of its own pool, which stays in use.
static void a_pool_that_releases_for_itself_does_not_end(void) {
    struct test_trace made;
    test_trace_begin(&made, "max_split_size_mb:32");
    made.builder.trace->settings.max_split_size = 32 * BASE_MIB;
    made.builder.trace->settings.capacity_bytes = 80 * BASE_MIB;
    test_pool(&made, 0, 7);
    test_event(&made, TRACE_SEGMENT_ALLOC, SEGMENT, 40 * BASE_MIB, 0);
    test_alloc(&made, SEGMENT, 40 * BASE_MIB, 0);
    test_free(&made, SEGMENT, 40 * BASE_MIB, 0);
    test_event(&made, TRACE_SEGMENT_ALLOC, 2 * SEGMENT, 20 * BASE_MIB, 0);
    test_alloc(&made, 2 * SEGMENT, 5 * BASE_MIB, 0);
    test_event(&made, TRACE_SEGMENT_FREE, SEGMENT, 40 * BASE_MIB, 0);
    test_event(&made, TRACE_SEGMENT_ALLOC, 3 * SEGMENT, 50 * BASE_MIB, 0);
    test_alloc(&made, 3 * SEGMENT, 50 * BASE_MIB, 0);
    test_segment(&made, 2 * SEGMENT, 20 * BASE_MIB, 0, true);
    test_block(&made, 2 * SEGMENT, 5 * BASE_MIB, 5 * BASE_MIB, TRACE_BLOCK_ALLOCATED);
    test_block(&made, 2 * SEGMENT + 5 * BASE_MIB, 15 * BASE_MIB, 0, TRACE_BLOCK_INACTIVE);
    test_segment(&made, 3 * SEGMENT, 50 * BASE_MIB, 0, true);
    test_block(&made, 3 * SEGMENT, 50 * BASE_MIB, 50 * BASE_MIB, TRACE_BLOCK_ALLOCATED);
    struct trace *trace = test_trace_end(&made);
    struct workload_replay_plan *plan = plan_of(trace);
    expect_kinds(plan, ">afaa");
    BASE_CHECK_EQ(plan->releases[0].operation, 4);
    workload_replay_plan_destroy(plan);
    trace_destroy(trace);
}

int main(void) {
    frees_at_once_are_one_operation_and_slots_are_used_again();
    release_that_no_request_needed_is_an_empty_cache();
    release_before_a_free_or_at_the_end_is_an_empty_cache();
    recorded_empty_cache_is_kept_even_if_it_released_nothing();
    collection_explains_releases_above_its_threshold_only(0.5,
                                                          "afa"); // 60 of 100 MiB: above the half
    collection_explains_releases_above_its_threshold_only(0.7, "afea"); // below: the program did it
    deferred_frees(0, "aarrccea");
    deferred_frees(80 * BASE_MIB, "aarrCCa");
    completion_without_allocation_is_an_empty_cache();
    failed_request_is_kept_with_its_size();
    unreplayable_recording_is_refused_with_a_sentence();
    private_pools_end_by_themselves_or_with_the_cache();
    requests_are_routed_where_the_pool_changes();
    a_pool_that_releases_for_itself_does_not_end();
    return 0;
}
