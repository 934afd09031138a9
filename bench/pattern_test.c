// The patterns and their checks: right allocators pass, each planted fault is found, and a pattern
// asks for what it says.
#include "bench/pattern.h"

#include "base/check.h"
#include "base/size.h"
#include "base/status.h"
#include "bench/ideal_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const enum bench_pattern_kind kinds[] = {BENCH_PATTERN_PAIR, BENCH_PATTERN_WINDOW,
                                                BENCH_PATTERN_MIXED};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

static const cudaStream_t streams[1]; // the default stream

// An allocator around another one that looks at what is asked for, and can be told to do wrong.
enum fault { FAULT_NONE, FAULT_SAME_BLOCK_TWICE, FAULT_LOST_FREE, FAULT_REFUSAL };
struct watcher {
    struct allocator allocator;
    struct allocator *inner;
    enum fault fault;
    uint64_t fault_at; // the n-th call, 1 = the first
    uint64_t malloc_count, free_count, live_count, live_count_max;
    double log_bytes_sum;
    size_t bytes_min, bytes_max;
    void *last;
};

static enum base_status watch_malloc(struct allocator *allocator, int device, size_t size,
                                     cudaStream_t stream, void **pointer) {
    struct watcher *watcher = (struct watcher *)allocator;
    const bool now = ++watcher->malloc_count == watcher->fault_at;
    if (now && watcher->fault == FAULT_REFUSAL)
        return base_status_set(BASE_OUT_OF_MEMORY, "refused");
    watcher->log_bytes_sum += log2((double)size);
    if (size < watcher->bytes_min) watcher->bytes_min = size;
    if (size > watcher->bytes_max) watcher->bytes_max = size;
    if (++watcher->live_count > watcher->live_count_max)
        watcher->live_count_max = watcher->live_count;
    const enum base_status status = allocator_malloc(watcher->inner, device, size, stream, pointer);
    if (now && watcher->fault == FAULT_SAME_BLOCK_TWICE) *pointer = watcher->last;
    watcher->last = *pointer;
    return status;
}

static enum base_status watch_free(struct allocator *allocator, void *pointer) {
    struct watcher *watcher = (struct watcher *)allocator;
    if (pointer == NULL) return BASE_OK;
    watcher->live_count--;
    if (++watcher->free_count == watcher->fault_at && watcher->fault == FAULT_LOST_FREE)
        return BASE_OK;
    return allocator_free(watcher->inner, pointer);
}

static enum base_status watch_stats(struct allocator *allocator, int device,
                                    struct allocator_stats *stats) {
    return allocator_stats(((struct watcher *)allocator)->inner, device, stats);
}

static const struct allocator_operations watch_operations = {
    .name = "watcher", .malloc = watch_malloc, .free = watch_free, .stats = watch_stats};

static struct watcher watcher_make(enum fault fault, uint64_t fault_at) {
    return (struct watcher){.allocator = {&watch_operations},
                            .inner = bench_mutex_list_create(),
                            .fault = fault,
                            .fault_at = fault_at,
                            .bytes_min = SIZE_MAX};
}

static void every_pattern_passes_on_the_lists_and_leaks_nothing(void) {
    for (size_t i = 0; i < KIND_COUNT; i++) {
        for (int locked = 0; locked < 2; locked++) {
            struct allocator *allocator =
                locked ? bench_mutex_list_create() : bench_ideal_list_create();
            struct bench_pattern pattern;
            struct bench_user user;
            bench_pattern_init(&pattern, kinds[i], 64 * BASE_KIB, 7);
            BASE_CHECK_EQ(bench_user_init(&user, &pattern, allocator, streams, 0), BASE_OK);
            BASE_CHECK(bench_user_run(&user, 5000));
            BASE_CHECK_EQ(bench_user_run_checked(&user, 3000), BASE_OK);
            BASE_CHECK_EQ(user.checked_count, kinds[i] == BENCH_PATTERN_PAIR ? 0 : 3000);
            struct base_histogram histogram;
            base_histogram_init(&histogram);
            BASE_CHECK(bench_user_run_timed(&user, 1000, &histogram));
            BASE_CHECK_EQ(histogram.count, 1000);
            BASE_CHECK_EQ(bench_users_check(&user, 1), BASE_OK);
            BASE_CHECK_EQ(bench_user_deinit(&user), BASE_OK);
            int64_t leaked = -1;
            BASE_CHECK_EQ(bench_leaked_blocks(allocator, &leaked), BASE_OK);
            BASE_CHECK_EQ(leaked, 0);
            bench_pattern_deinit(&pattern);
            allocator_destroy(allocator);
        }
    }
}

static void patterns_ask_for_what_they_say(void) {
    static const uint64_t live[] = {1, 64, 1024};
    for (size_t i = 0; i < KIND_COUNT; i++) {
        struct watcher watcher = watcher_make(FAULT_NONE, 0);
        struct bench_pattern pattern;
        struct bench_user user;
        bench_pattern_init(&pattern, kinds[i], 4 * BASE_MIB, 7);
        BASE_CHECK_EQ(bench_user_init(&user, &pattern, &watcher.allocator, streams, 0), BASE_OK);
        const uint64_t before = watcher.malloc_count;
        BASE_CHECK(bench_user_run(&user, 40000)); // more than once through the table
        BASE_CHECK_EQ(watcher.malloc_count - before, 40000);
        BASE_CHECK_EQ(watcher.free_count, 40000);
        BASE_CHECK_EQ(watcher.live_count_max, live[i]);
        if (kinds[i] == BENCH_PATTERN_MIXED) {
            BASE_CHECK(watcher.bytes_min >= 512 && watcher.bytes_min < 1024);
            BASE_CHECK(watcher.bytes_max <= 64 * BASE_MIB && watcher.bytes_max > 32 * BASE_MIB);
            // Log-uniform from 2^9 to 2^26: the mean of the logarithm is 17.5, within 5 standard
            // errors.
            BASE_CHECK(fabs(watcher.log_bytes_sum / (double)watcher.malloc_count - 17.5) < 0.2);
        } else {
            BASE_CHECK_EQ(watcher.bytes_min, 4 * BASE_MIB);
            BASE_CHECK_EQ(watcher.bytes_max, 4 * BASE_MIB);
        }
        BASE_CHECK_EQ(bench_user_deinit(&user), BASE_OK);
        bench_pattern_deinit(&pattern);
        allocator_destroy(watcher.inner);
    }
}

static void a_script_asks_for_its_steps_in_order_and_leaves_what_it_found(void) {
    struct watcher watcher = watcher_make(FAULT_NONE, 0);
    struct bench_script script = {0};
    struct bench_pattern pattern;
    struct bench_user user;
    bench_script_malloc(&script, 0, 4096, 0); // stays
    bench_script_malloc(&script, 1, 100, 0);
    bench_script_free(&script, 1);
    bench_script_cycle_begin(&script);
    bench_script_malloc(&script, 2, 512, 0);
    bench_script_malloc(&script, 1, 8192, 0);
    bench_script_free(&script, 2);
    bench_script_malloc(&script, 2, 1024, 0);
    bench_script_free(&script, 1);
    bench_script_free(&script, 2);
    bench_pattern_init_script(&pattern, &script);
    BASE_CHECK_EQ(pattern.pair_count, 3);
    BASE_CHECK_EQ(pattern.live_count, 3);
    BASE_CHECK_EQ(bench_user_init(&user, &pattern, &watcher.allocator, streams, 5), BASE_OK);
    BASE_CHECK_EQ(watcher.malloc_count, 2);
    BASE_CHECK_EQ(watcher.free_count, 1);
    BASE_CHECK_EQ(watcher.bytes_min, 100);
    BASE_CHECK(bench_user_run(&user, 7));
    BASE_CHECK_EQ(watcher.malloc_count, 2 + 7 * 3);
    BASE_CHECK_EQ(watcher.free_count, 1 + 7 * 3);
    BASE_CHECK_EQ(watcher.live_count_max, 3);
    BASE_CHECK_EQ(watcher.bytes_max, 8192);
    BASE_CHECK_EQ(bench_user_run_checked(&user, 2), BASE_OK);
    BASE_CHECK_EQ(user.checked_count, 2 * 3);
    BASE_CHECK_EQ(bench_users_check(&user, 1), BASE_OK); // one block is live
    BASE_CHECK_EQ(bench_user_deinit(&user), BASE_OK);
    BASE_CHECK_EQ(watcher.live_count, 0);
    bench_script_deinit(&script);
    allocator_destroy(watcher.inner);
}

static void a_block_handed_out_twice_within_a_script_is_found(void) {
    struct watcher watcher = watcher_make(FAULT_SAME_BLOCK_TWICE, 3);
    struct bench_script script = {0};
    struct bench_pattern pattern;
    struct bench_user user;
    bench_script_cycle_begin(&script);
    for (uint32_t i = 0; i < 4; i++) bench_script_malloc(&script, i, 512, 0);
    for (uint32_t i = 0; i < 4; i++) bench_script_free(&script, i);
    bench_pattern_init_script(&pattern, &script);
    BASE_CHECK_EQ(bench_user_init(&user, &pattern, &watcher.allocator, streams, 0), BASE_OK);
    BASE_CHECK_EQ(bench_user_run_checked(&user, 1), BASE_CHECK_FAILED);
    BASE_CHECK(strstr(base_status_message(), "overlap") != NULL);
    free(user.slots);
    bench_script_deinit(&script);
    allocator_destroy(watcher.inner);
}

// The step of script_transformer.c, counted anew from what its opening comment says. Per layer: 14
// kept tensors, 4 bf16 copies of weights, 2 projections' results, 8 gradients of activations and 12
// of weights. Besides: 12 * 12 + 4 weights and temporaries, gradients of the 4 single weights, the
// loss's copy, logits, logarithms and scalar, 3 gradients of the head, the tokens.
static void a_transformer_step_has_the_operations_that_it_says(void) {
    struct bench_script script;
    bench_script_transformer(&script);
    BASE_CHECK_EQ(script.cycle_first, 3 * 148);
    BASE_CHECK_EQ(script.pair_count, 12 * (14 + 4 + 2 + 8 + 12) + 148 + 4 + 4 + 3 + 1);
    uint64_t resident = 0, bytes_max = 0;
    for (size_t i = 0; i < script.cycle_first; i++) resident += script.steps[i].bytes;
    for (size_t i = 0; i < script.step_count; i++)
        if (script.steps[i].bytes > bytes_max) bytes_max = script.steps[i].bytes;
    // GPT-2's 124.4 million parameters, with the vocabulary rounded up to 50,304: 124,475,904.
    BASE_CHECK_EQ(resident, 3 * 4 * UINT64_C(124475904));
    BASE_CHECK_EQ(bytes_max, UINT64_C(8192) * 50304 * 4);
    bench_script_deinit(&script);
}

static void a_block_handed_out_twice_is_found_by_both_checks(void) {
    for (int checked = 0; checked < 2; checked++) {
        struct watcher watcher = watcher_make(FAULT_SAME_BLOCK_TWICE, 164);
        struct bench_pattern pattern;
        struct bench_user user;
        bench_pattern_init(&pattern, BENCH_PATTERN_WINDOW, 512, 7);
        BASE_CHECK_EQ(bench_user_init(&user, &pattern, &watcher.allocator, streams, 0), BASE_OK);
        const enum base_status status =
            checked ? bench_user_run_checked(&user, 100)
                    : (bench_user_run(&user, 100) ? bench_users_check(&user, 1) : BASE_OK);
        BASE_CHECK_EQ(status, BASE_CHECK_FAILED);
        BASE_CHECK(strstr(base_status_message(), "overlap") != NULL);
        free(user.slots); // the same block twice cannot be given back twice
        bench_pattern_deinit(&pattern);
        allocator_destroy(watcher.inner);
    }
}

static void a_lost_block_and_a_refused_request_are_found(void) {
    struct bench_pattern pattern;
    struct bench_user user;
    bench_pattern_init(&pattern, BENCH_PATTERN_WINDOW, 512, 7);

    struct watcher loser = watcher_make(FAULT_LOST_FREE, 50);
    BASE_CHECK_EQ(bench_user_init(&user, &pattern, &loser.allocator, streams, 0), BASE_OK);
    BASE_CHECK(bench_user_run(&user, 100));
    BASE_CHECK_EQ(bench_users_check(&user, 1), BASE_CHECK_FAILED);
    BASE_CHECK(strstr(base_status_message(), "64 blocks are live, the allocator counts 65") !=
               NULL);
    BASE_CHECK_EQ(bench_user_deinit(&user), BASE_OK);
    int64_t leaked = 0;
    BASE_CHECK_EQ(bench_leaked_blocks(&loser.allocator, &leaked), BASE_OK);
    BASE_CHECK_EQ(leaked, 1);
    allocator_destroy(loser.inner);

    struct watcher refuser = watcher_make(FAULT_REFUSAL, 100);
    BASE_CHECK_EQ(bench_user_init(&user, &pattern, &refuser.allocator, streams, 0), BASE_OK);
    BASE_CHECK(!bench_user_run(&user, 100));
    BASE_CHECK(strcmp(base_status_message(), "refused") == 0);
    BASE_CHECK_EQ(bench_user_deinit(&user), BASE_OK);
    allocator_destroy(refuser.inner);
    bench_pattern_deinit(&pattern);
}

static void lists_round_to_powers_of_two_and_reuse_the_last_block(void) {
    struct allocator *list = bench_ideal_list_create();
    void *small, *next, *large, *again;
    BASE_CHECK_EQ(allocator_malloc(list, 0, 1, NULL, &small), BASE_OK);
    BASE_CHECK_EQ(allocator_malloc(list, 0, 512, NULL, &next), BASE_OK);
    BASE_CHECK_EQ((char *)next - (char *)small, 512);
    BASE_CHECK_EQ(allocator_malloc(list, 0, 513, NULL, &large), BASE_OK);
    BASE_CHECK_EQ(allocator_free(list, next), BASE_OK);
    BASE_CHECK_EQ(allocator_malloc(list, 0, 300, NULL, &again), BASE_OK);
    BASE_CHECK(again == next);
    struct allocator_stats stats;
    BASE_CHECK_EQ(allocator_stats(list, 0, &stats), BASE_OK);
    BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].current, 3);
    BASE_CHECK_EQ(stats.allocated_bytes[ALLOCATOR_STAT_ALL].current, 512 + 512 + 1024);
    BASE_CHECK_EQ(allocator_malloc(list, 0, (size_t)1 << 40, NULL, &again), BASE_LIMIT);
    BASE_CHECK_EQ(allocator_empty_cache(list), BASE_UNSUPPORTED);
    allocator_destroy(list);
}

int main(void) {
    every_pattern_passes_on_the_lists_and_leaks_nothing();
    patterns_ask_for_what_they_say();
    a_script_asks_for_its_steps_in_order_and_leaves_what_it_found();
    a_block_handed_out_twice_within_a_script_is_found();
    a_transformer_step_has_the_operations_that_it_says();
    a_block_handed_out_twice_is_found_by_both_checks();
    a_lost_block_and_a_refused_request_are_found();
    lists_round_to_powers_of_two_and_reuse_the_last_block();
    return 0;
}
