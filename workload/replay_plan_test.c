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
                                   [WORKLOAD__FREE_COMPLETE] = 'c', [WORKLOAD__EMPTY_CACHE] = 'e'};
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
    return 0;
}
