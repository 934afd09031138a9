// Checkpoints of private pools: what is saved comes back to the byte. The first test is a recording
// of PyTorch's decisions. checkpoint_random_test.c has programs.
#include "allocator/testing_checkpoint.h"
#include "allocator/testing_state.h"
#include "simulator/sim_race.h"

#include <stdio.h>

//------------------------------------------------------------------------------------------------
// As PyTorch 2.15: the log h22_checkpoint.

struct recorder {
    char *segments[2];
    char text[4096];
};

static void record(void *context, const struct allocator_event *event) {
    struct recorder *const recorder = context;
    const int segment = recorder->segments[1] != NULL &&
                        (char *)event->address >= recorder->segments[1] &&
                        (char *)event->address < recorder->segments[1] + 2 * MIB;
    const size_t length = strlen(recorder->text);
    (void)snprintf(recorder->text + length, sizeof recorder->text - length, "%s %d+%td:%zu; ",
                   allocator_action_name(event->action), segment,
                   (char *)event->address - recorder->segments[segment], event->size);
}

static void check_stat(const struct allocator_stat *stat, int64_t current, int64_t peak,
                       int64_t allocated) {
    BASE_CHECK_EQ(stat->current, current);
    BASE_CHECK_EQ(stat->peak, peak);
    BASE_CHECK_EQ(stat->allocated, allocated);
}

static void events_and_statistics_are_those_of_the_recording(void) {
    struct allocator *const allocator = create("");
    const cudaStream_t stream = testing_stream();
    struct recorder recorder = {0};
    void *const a = take(allocator, 4 * MIB, stream), *const b = take(allocator, 4 * MIB, stream);
    void *const c = take(allocator, 2048, stream);
    testing_free(allocator, b);
    struct cca_checkpoint *const checkpoint = get(allocator);
    BASE_CHECK(is_live(allocator, (void *[]){c, a}, 2));
    BASE_CHECK(!is_live(allocator, (void *[]){a}, 1));
    (void)take(allocator, 4 * MIB, stream);
    (void)take(allocator, 12 * MIB, stream);
    (void)take(allocator, 512, stream);
    testing_free(allocator, a);
    recorder.segments[0] = a;
    recorder.segments[1] = c;
    ok(allocator_set_observer(allocator, &(struct allocator_observer){record, &recorder}));
    struct cca_restored restored = set(allocator, checkpoint);
    ok(allocator_set_observer(allocator, NULL));
    base_check_context("%s", recorder.text);
    BASE_CHECK_EQ(strcmp(recorder.text,
                         "free_requested 0+4194304:4194304; free_completed 0+4194304:4194304; "
                         "free_requested 0+8388608:12582912; free_completed 0+8388608:12582912; "
                         "free_requested 1+0:2048; free_completed 1+0:2048; "
                         "free_requested 1+2048:512; free_completed 1+2048:512; "
                         "alloc 0+0:4194304; alloc 0+4194304:16777216; "
                         "free_requested 0+4194304:16777216; free_completed 0+4194304:16777216; "
                         "alloc 1+0:2048; alloc 1+2048:2095104; "
                         "free_requested 1+2048:2095104; free_completed 1+2048:2095104; "),
                  0);
    base_check_context("%s", "");
    void *const freed[] = {b, (char *)a + 8 * MIB, c, (char *)c + 2048}, *const allocated[] = {a,
                                                                                               c};
    BASE_CHECK_EQ(restored.freed_count, 4);
    BASE_CHECK_EQ(restored.allocated_count, 2);
    // The driver of the recording gave the second segment out above the first.
    BASE_CHECK_EQ(memcmp(restored.freed, freed, sizeof freed), 0);
    BASE_CHECK_EQ(memcmp(restored.allocated, allocated, sizeof allocated), 0);
    BASE_CHECK(is_live(allocator, allocated, 2));
    const struct allocator_stats stats = testing_stats(allocator);
    check_stat(stats.allocation, 2, 5, 10);
    check_stat(stats.active, 2, 5, 10);
    check_stat(stats.allocated_bytes, 4196352, 20974080, 48237056);
    check_stat(stats.active_bytes, 4196352, 20974080, 48237056);
    check_stat(stats.requested_bytes, 4196352, 20974080, 48237056);
    BASE_CHECK_EQ(stats.inactive_split[ALLOCATOR_STAT_ALL].current, 2);
    BASE_CHECK_EQ(stats.inactive_split_bytes[ALLOCATOR_STAT_ALL].current, 18872320);
    testing_free(allocator, restored.allocated[0]);
    testing_free(allocator, restored.allocated[1]);
    ok(cca_pool_destroy(allocator, 0, pool_id));
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    cca_restored_deinit(&restored);
    finish(allocator, checkpoint);
}

//------------------------------------------------------------------------------------------------
// Other streams.

// h22c.
static void a_pool_with_a_free_that_waits_cannot_be_saved(void) {
    struct allocator *const allocator = create("");
    const cudaStream_t user = testing_stream();
    struct cca_checkpoint *checkpoint = NULL;
    void *const a = take(allocator, 4 * MIB, NULL);
    sim_stream_hold(user, true);
    ok(allocator_record_stream(allocator, a, user));
    testing_free(allocator, a);
    BASE_CHECK_EQ(cca_checkpoint_get(allocator, 0, pool_id, &checkpoint), BASE_INVALID_VALUE);
    BASE_CHECK(testing_message_has("Events should have synchronized"));
    testing_message_is_a_sentence();
    ok(allocator_empty_cache(allocator));
    checkpoint = get(allocator);
    // One outside of the pool is none of its business.
    void *const outside = testing_malloc(allocator, 4 * MIB, NULL);
    ok(allocator_record_stream(allocator, outside, user));
    testing_free(allocator, outside);
    cca_checkpoint_destroy(get(allocator));
    finish(allocator, checkpoint);
}

static void no_body(const void *argument) { (void)argument; }

static void write_block(void *pointer, size_t size, uint64_t block, cudaStream_t stream) {
    const struct sim_access access = {SIM_ACCESS_WRITE, pointer, .size = size, .block = block};
    const struct sim_kernel kernel = {
        .name = "write", .body = no_body, .accesses = &access, .access_count = 1};
    BASE_CHECK_EQ(sim_launch_kernel(stream, &kernel), cudaSuccess);
}

// h22b: PyTorch hands a block that waits for its event out again at once, and its next wait fails.
// FREED: it waits; else it is still in use when the pool is restored.
static void restoring_waits_for_work_of_other_streams(const char *config, bool freed,
                                                      uint64_t races) {
    struct allocator *const allocator = create(config);
    const cudaStream_t stream = testing_stream(), user = testing_stream();
    ok(sim_race_start(&(struct sim_race_options){.quiet = true}));
    void *const a = take(allocator, 4 * MIB, stream);
    struct cca_checkpoint *const checkpoint = get(allocator);
    sim_stream_hold(user, true);
    write_block(a, 4 * MIB, 0, user);
    ok(allocator_record_stream(allocator, a, user));
    if (freed) testing_free(allocator, a);
    const struct cca_restored nothing = {0};
    struct cca_restored restored = nothing;
    ok(cca_checkpoint_set(allocator, checkpoint, &restored));
    cca_check(allocator);
    BASE_CHECK_EQ(restored.freed_count, freed ? 0 : 1);
    BASE_CHECK_EQ(restored.allocated_count, 1);
    BASE_CHECK(restored.allocated[0] == a);
    write_block(a, 4 * MIB, 0, stream);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), races);
    sim_race_stop();
    sim_stream_hold(user, false);
    ok(allocator_empty_cache(allocator)); // nothing is left to wait for
    BASE_CHECK(is_live(allocator, (void *[]){a}, 1));
    testing_free(allocator, a); // the old use is forgotten
    struct cca_pending_frees pending;
    ok(cca_pending_frees(allocator, 0, &pending));
    BASE_CHECK_EQ(pending.blocks, 0);
    cca_restored_deinit(&restored);
    finish(allocator, checkpoint);
}

static void a_captured_stream_is_not_waited_for(void) {
    struct allocator *const allocator = create("");
    const cudaStream_t user = testing_stream();
    cudaGraph_t graph;
    struct testing_state before;
    struct cca_restored restored;
    void *const a = take(allocator, 4 * MIB, NULL);
    struct cca_checkpoint *const checkpoint = get(allocator);
    ok(allocator_record_stream(allocator, a, user));
    testing_state_init(&before, allocator, 1);
    BASE_CHECK_EQ(cudaStreamBeginCapture(user, cudaStreamCaptureModeGlobal), cudaSuccess);
    BASE_CHECK_EQ(cca_checkpoint_set(allocator, checkpoint, &restored), BASE_INVALID_VALUE);
    testing_message_is_a_sentence();
    testing_state_is(&before, allocator);
    testing_state_deinit(&before);
    BASE_CHECK_EQ(cudaStreamEndCapture(user, &graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    set_and_forget(allocator, checkpoint);
    finish(allocator, checkpoint);
}

static void a_capture_elsewhere_goes_on(void) {
    struct allocator *const allocator = create("");
    const cudaStream_t user = testing_stream(), captured = testing_stream();
    cudaGraph_t graph;
    void *const a = take(allocator, 4 * MIB, NULL);
    struct cca_checkpoint *const checkpoint = get(allocator);
    sim_stream_hold(user, true);
    ok(allocator_record_stream(allocator, a, user));
    BASE_CHECK_EQ(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal), cudaSuccess);
    set_and_forget(allocator, checkpoint);
    BASE_CHECK_EQ(cudaStreamEndCapture(captured, &graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    finish(allocator, checkpoint);
}

//------------------------------------------------------------------------------------------------
// What the pool became since.

static void segments_taken_since_are_free(void) {
    struct allocator *const allocator = create("");
    void *const a = take(allocator, 30 * MIB, NULL);
    struct cca_checkpoint *const checkpoint = get(allocator);
    void *const later = take(allocator, 40 * MIB, NULL);
    struct cca_restored restored = set(allocator, checkpoint);
    BASE_CHECK_EQ(restored.freed_count, 2);
    BASE_CHECK(is_live(allocator, &a, 1));
    BASE_CHECK_EQ(testing_stats(allocator).reserved_bytes[ALLOCATOR_STAT_ALL].current, 70 * MIB);
    BASE_CHECK(take(allocator, 40 * MIB, NULL) == later);
    cca_restored_deinit(&restored);
    finish(allocator, checkpoint);
}

static void expandable_segments_may_have_grown(void) {
    struct allocator *const allocator = create("expandable_segments:True");
    char *const a = take(allocator, 20 * MIB, NULL), *const b = take(allocator, 20 * MIB, NULL);
    testing_free(allocator, b);
    struct cca_checkpoint *const checkpoint = get(allocator);
    BASE_CHECK(take(allocator, 60 * MIB, NULL) == b);
    struct cca_restored restored = set(allocator, checkpoint);
    BASE_CHECK_EQ(restored.allocated_count, 1);
    BASE_CHECK(is_live(allocator, (void *[]){a}, 1));
    BASE_CHECK_EQ(testing_stats(allocator).reserved_bytes[ALLOCATOR_STAT_ALL].current, 80 * MIB);
    BASE_CHECK(take(allocator, 60 * MIB, NULL) == b); // one free block
    cca_restored_deinit(&restored);
    finish(allocator, checkpoint);
}

// A pool that was released gives pages back, in the middle of a segment as well.
static void expandable_segments_with_holes_come_back_unless_they_shrank(void) {
    struct allocator *const allocator = create("expandable_segments:True");
    void *const a = take(allocator, 20 * MIB, NULL), *const b = take(allocator, 20 * MIB, NULL);
    void *const c = take(allocator, 20 * MIB, NULL);
    struct cca_restored restored;
    testing_free(allocator, b);
    struct cca_checkpoint *const whole = get(allocator);
    ok(cca_pool_release(allocator, 0, pool_id));
    ok(cca_pool_empty_cache(allocator, 0, pool_id));
    BASE_CHECK_EQ(testing_stats(allocator).reserved_bytes[ALLOCATOR_STAT_ALL].current, 40 * MIB);
    struct cca_checkpoint *const checkpoint = get(allocator);
    BASE_CHECK_EQ(cca_checkpoint_set(allocator, whole, &restored), BASE_INVALID_VALUE);
    testing_free(allocator, a);
    set_and_forget(allocator, checkpoint);
    BASE_CHECK(is_live(allocator, (void *[]){a, c}, 2));
    testing_free(allocator, a);
    ok(cca_pool_empty_cache(allocator, 0, pool_id));
    BASE_CHECK_EQ(cca_checkpoint_set(allocator, checkpoint, &restored), BASE_INVALID_VALUE);
    BASE_CHECK(is_live(allocator, &c, 1));
    cca_checkpoint_destroy(whole);
    finish(allocator, checkpoint);
}

static void splits_do_not_ask_the_settings(void) {
    struct allocator *const allocator = create("");
    char *const a = take(allocator, 2 * MIB, NULL), *const b = take(allocator, 2 * MIB, NULL);
    char *const c = take(allocator, 2 * MIB, NULL);
    testing_free(allocator, b);
    struct cca_checkpoint *const checkpoint = get(allocator);
    ok(cca_pool_set_no_split(allocator, 0, pool_id));
    ok(cca_set_config(allocator, "max_split_size_mb:21"));
    struct cca_restored restored = set(allocator, checkpoint);
    BASE_CHECK(is_live(allocator, (void *[]){a, c}, 2));
    testing_free(allocator, a);
    testing_free(allocator, c);
    BASE_CHECK(take(allocator, 2 * MIB, NULL) == a); // all 20 MiB of it, from here on
    BASE_CHECK_EQ(testing_stats(allocator).allocated_bytes[ALLOCATOR_STAT_ALL].current, 20 * MIB);
    cca_restored_deinit(&restored);
    finish(allocator, checkpoint);
}

// The fault: a free block less than 1 MiB before a live one shares its entry of the page table.
static void blocks_in_one_window_are_found(void) {
    struct allocator *const allocator = create("expandable_segments:True");
    char *const a = take(allocator, MIB + MIB / 4, NULL), *const b = take(allocator, 2 * MIB, NULL);
    testing_free(allocator, a);
    BASE_CHECK(take(allocator, MIB + 512, NULL) == a);
    struct cca_checkpoint *const checkpoint = get(allocator);
    set_and_forget(allocator, checkpoint);
    testing_free(allocator, b);
    char *const between = take(allocator, MIB + MIB / 8, NULL);
    BASE_CHECK(between == a + MIB + 512);
    testing_free(allocator, between);
    finish(allocator, checkpoint);
}

static void what_cannot_be_restored_is_refused_and_nothing_changes(void) {
    struct allocator *const allocator = create(""), *other = NULL;
    struct cca_checkpoint *checkpoint = NULL;
    struct cca_restored restored;
    struct testing_state before;
    bool equal;
    const struct allocator_pool_id unknown = {.user = 7}, none = {0};
    BASE_CHECK_EQ(cca_checkpoint_get(allocator, 0, unknown, &checkpoint), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(cca_checkpoint_get(allocator, 0, none, &checkpoint), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(cca_checkpoint_get(allocator, 99, pool_id, &checkpoint), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(cca_checkpoint_compare_live(allocator, 0, unknown, NULL, 0, &equal),
                  BASE_INVALID_VALUE);
    BASE_CHECK(checkpoint == NULL);
    void *const a = take(allocator, 30 * MIB, NULL), *const b = take(allocator, 1000, NULL);
    checkpoint = get(allocator);
    ok(cca_allocator_create(&(struct cca_options){.config = ""}, &other));
    ok(cca_pool_create(other, 0, pool_id, NULL));
    BASE_CHECK_EQ(cca_checkpoint_set(other, checkpoint, &restored), BASE_INVALID_VALUE);
    testing_message_is_a_sentence();
    allocator_destroy(other);
    // A segment of the pool is gone, and the pool has others.
    testing_free(allocator, a);
    ok(cca_pool_release(allocator, 0, pool_id));
    ok(cca_pool_empty_cache(allocator, 0, pool_id));
    testing_state_init(&before, allocator, 1);
    BASE_CHECK_EQ(cca_checkpoint_set(allocator, checkpoint, &restored), BASE_INVALID_VALUE);
    BASE_CHECK(testing_message_has("31457280 bytes"));
    testing_message_is_a_sentence();
    testing_state_is(&before, allocator);
    testing_state_deinit(&before);
    // The pool is gone; and a new one of its name has nothing of it.
    testing_free(allocator, b);
    ok(cca_pool_empty_cache(allocator, 0, pool_id));
    BASE_CHECK_EQ(cca_checkpoint_set(allocator, checkpoint, &restored), BASE_INVALID_VALUE);
    ok(cca_pool_create(allocator, 0, pool_id, NULL));
    BASE_CHECK_EQ(cca_checkpoint_set(allocator, checkpoint, &restored), BASE_INVALID_VALUE);
    finish(allocator, checkpoint);
    cca_checkpoint_destroy(NULL);
}

static void an_empty_pool_is_a_state_too(void) {
    struct allocator *const allocator = create("");
    struct cca_checkpoint *const checkpoint = get(allocator);
    BASE_CHECK(is_live(allocator, NULL, 0));
    void *const a = take(allocator, 1000, NULL);
    BASE_CHECK(!is_live(allocator, NULL, 0));
    struct cca_restored restored = set(allocator, checkpoint);
    BASE_CHECK_EQ(restored.freed_count, 1);
    BASE_CHECK(restored.freed[0] == a);
    BASE_CHECK_EQ(restored.allocated_count, 0);
    BASE_CHECK(is_live(allocator, NULL, 0));
    cca_restored_deinit(&restored);
    finish(allocator, checkpoint);
}

static void live_addresses_are_a_set(void) {
    struct allocator *const allocator = create("");
    void *const a = take(allocator, 1000, NULL), *const b = take(allocator, 1000, NULL);
    void *const outside = testing_malloc(allocator, 1000, NULL);
    BASE_CHECK(is_live(allocator, (void *[]){b, a, b, a}, 4));
    BASE_CHECK(!is_live(allocator, (void *[]){a, a}, 2));
    BASE_CHECK(!is_live(allocator, (void *[]){a, b, NULL}, 3));
    BASE_CHECK(!is_live(allocator, (void *[]){a, b, outside}, 3));
    BASE_CHECK(!is_live(allocator, (void *[]){a, (char *)b + 512}, 2));
    finish(allocator, NULL);
}

// Small segments that do not begin at a whole MiB, as an exact replay makes them: their blocks are
// found by a table of their own.
static void strays_come_back(void) {
    struct allocator *const allocator = create("");
    void *blocks[100];
    ok(sim_next_address(0, UINT64_C(0x700000080000)));
    for (int index = 0; index < 100; ++index)
        blocks[index] = take(allocator, 10000, NULL);
    BASE_CHECK_EQ((uintptr_t)blocks[0] % MIB, MIB / 2);
    struct cca_checkpoint *const checkpoint = get(allocator);
    for (int index = 0; index < 100; ++index)
        testing_free(allocator, blocks[index]);
    set_and_forget(allocator, checkpoint);
    for (int index = 99; index >= 0; --index)
        testing_free(allocator, blocks[index]);
    finish(allocator, checkpoint);
}

int main(void) {
    events_and_statistics_are_those_of_the_recording();
    a_pool_with_a_free_that_waits_cannot_be_saved();
    restoring_waits_for_work_of_other_streams("", true, 0);
    restoring_waits_for_work_of_other_streams("", false, 0);
    restoring_waits_for_work_of_other_streams("x_torch_faults:True", true, 1);
    restoring_waits_for_work_of_other_streams("x_torch_faults:True", false, 1);
    a_captured_stream_is_not_waited_for();
    a_capture_elsewhere_goes_on();
    segments_taken_since_are_free();
    expandable_segments_may_have_grown();
    expandable_segments_with_holes_come_back_unless_they_shrank();
    splits_do_not_ask_the_settings();
    blocks_in_one_window_are_found();
    what_cannot_be_restored_is_refused_and_nothing_changes();
    an_empty_pool_is_a_state_too();
    live_addresses_are_a_set();
    strays_come_back();
    return 0;
}
