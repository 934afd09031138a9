// The start of windows, rebuilt: by hand where every number can be seen, and on recorded runs cut
// at random points, where the state that a walk from the true beginning has there is the answer.
// The walk itself is held against the final states that PyTorch recorded.
#include "trace/testing.h"
#include "trace/walk.h"

#include "base/check.h"
#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0x7f0000000000)

//------------------------------------------------------------------------------------------------
// Windows by hand.

struct hand {
    struct trace_builder builder;
};

static struct hand hand_begin(void) {
    struct hand hand;
    BASE_CHECK_EQ(trace_builder_init(&hand.builder, "hand", 0), BASE_OK);
    return hand;
}

static void event(struct hand *hand, enum trace_action action, uint64_t offset, uint64_t size) {
    const struct trace_event entry = {.address = BASE + offset,
                                      .size = size,
                                      .stack = TRACE_NONE,
                                      .metadata = TRACE_NONE,
                                      .action = (uint8_t)action};
    BASE_CHECK_EQ(trace_add_event(&hand->builder, &entry), BASE_OK);
}

static void freed(struct hand *hand, uint64_t offset, uint64_t size) {
    event(hand, TRACE_FREE_REQUESTED, offset, size);
    event(hand, TRACE_FREE_COMPLETED, offset, size);
}

static void segment(struct hand *hand, uint64_t offset, uint64_t size) {
    const struct trace_segment added = {.address = BASE + offset,
                                        .total_size = size,
                                        .stack = TRACE_NONE,
                                        .is_large = size != TRACE_SMALL_SEGMENT_BYTES};
    BASE_CHECK_EQ(trace_add_segment(&hand->builder, &added), BASE_OK);
}

static void block(struct hand *hand, uint64_t offset, uint64_t size, uint64_t requested,
                  enum trace_block_state state) {
    const struct trace_block added = {.address = BASE + offset,
                                      .size = size,
                                      .requested_size = requested,
                                      .stack = TRACE_NONE,
                                      .state = (uint8_t)state};
    BASE_CHECK_EQ(trace_add_block(&hand->builder, &added), BASE_OK);
}

static struct trace *hand_end(struct hand *hand) {
    struct trace *trace = NULL;
    BASE_CHECK_EQ(trace_builder_finish(&hand->builder, &trace), BASE_OK);
    return trace;
}

static struct trace_state start_of(const struct trace *trace) {
    struct trace_state state;
    enum base_status status = trace_start_state(trace, 0, &state);
    if (status != BASE_OK) fprintf(stderr, "%s\n", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    return state;
}

static void check_block(const struct trace_state *state, size_t i, uint64_t offset, uint64_t size,
                        uint64_t requested, enum trace_block_state block_state) {
    BASE_CHECK_LT(i, state->block_count);
    BASE_CHECK_EQ(state->blocks[i].address, BASE + offset);
    BASE_CHECK_EQ(state->blocks[i].size, size);
    BASE_CHECK_EQ(state->blocks[i].requested_size, requested);
    BASE_CHECK_EQ(state->blocks[i].state, block_state);
}

static void a_complete_history_starts_empty(void) {
    struct hand hand = hand_begin();
    event(&hand, TRACE_SEGMENT_ALLOC, 0, 2 * BASE_MIB);
    event(&hand, TRACE_ALLOC, 0, 1000);
    segment(&hand, 0, 2 * BASE_MIB);
    block(&hand, 0, 1024, 1000, TRACE_BLOCK_ALLOCATED);
    block(&hand, 1024, 2 * BASE_MIB - 1024, 0, TRACE_BLOCK_INACTIVE);
    struct trace *trace = hand_end(&hand);
    struct trace_state state = start_of(trace);
    BASE_CHECK_EQ(state.segment_count, 0);
    BASE_CHECK_EQ(state.block_count, 0);
    trace_state_deinit(&state);
    trace_destroy(trace);
}

static void small_blocks_that_the_window_frees_were_there_at_their_rounded_size(void) {
    struct hand hand = hand_begin();
    freed(&hand, 1024, 700);            // 1,024 bytes, was allocated
    event(&hand, TRACE_ALLOC, 1024, 5); // its place is used again
    segment(&hand, 0, 2 * BASE_MIB);
    block(&hand, 0, 1024, 1000, TRACE_BLOCK_ALLOCATED); // no event: there all the time
    block(&hand, 1024, 512, 5, TRACE_BLOCK_ALLOCATED);
    block(&hand, 1536, 2 * BASE_MIB - 1536, 0, TRACE_BLOCK_INACTIVE);
    struct trace *trace = hand_end(&hand);
    struct trace_state state = start_of(trace);
    BASE_CHECK_EQ(state.segment_count, 1);
    BASE_CHECK_EQ(state.block_count, 3);
    check_block(&state, 0, 0, 1024, 1000, TRACE_BLOCK_ALLOCATED);
    check_block(&state, 1, 1024, 1024, 700, TRACE_BLOCK_ALLOCATED);
    check_block(&state, 2, 2048, 2 * BASE_MIB - 2048, 0, TRACE_BLOCK_INACTIVE);
    BASE_CHECK_EQ(state.segments[0].allocated_size, 2048);
    BASE_CHECK_EQ(state.segments[0].requested_size, 1700);
    trace_state_deinit(&state);
    trace_destroy(trace);
}

static void a_first_event_free_completed_was_pending_at_the_start(void) {
    struct hand hand = hand_begin();
    event(&hand, TRACE_ALLOC, 512, 512);
    event(&hand, TRACE_FREE_COMPLETED, 0, 512);
    segment(&hand, 0, 2 * BASE_MIB);
    block(&hand, 0, 512, 0, TRACE_BLOCK_INACTIVE);
    block(&hand, 512, 512, 512, TRACE_BLOCK_ALLOCATED);
    block(&hand, 1024, 2 * BASE_MIB - 1024, 0, TRACE_BLOCK_INACTIVE);
    struct trace *trace = hand_end(&hand);
    struct trace_state state = start_of(trace);
    check_block(&state, 0, 0, 512, 512, TRACE_BLOCK_PENDING_FREE);
    check_block(&state, 1, 512, 2 * BASE_MIB - 512, 0, TRACE_BLOCK_INACTIVE);
    BASE_CHECK_EQ(state.segments[0].allocated_size, 0);
    BASE_CHECK_EQ(state.segments[0].active_size, 512);
    trace_state_deinit(&state);
    trace_destroy(trace);
}

// 20 MiB: 6 MiB asked for, 7 MiB asked for right behind 6.5 MiB: the half mebibyte belongs to the
// first block.
static void a_large_gap_of_up_to_a_mebibyte_belongs_to_the_block_before_it(void) {
    struct hand hand = hand_begin();
    freed(&hand, 0, 6 * BASE_MIB);
    segment(&hand, 0, 20 * BASE_MIB);
    block(&hand, 0, 6 * BASE_MIB + 512 * BASE_KIB, 0, TRACE_BLOCK_INACTIVE);
    block(&hand, 6 * BASE_MIB + 512 * BASE_KIB, 7 * BASE_MIB, 7 * BASE_MIB, TRACE_BLOCK_ALLOCATED);
    block(&hand, 13 * BASE_MIB + 512 * BASE_KIB, 6 * BASE_MIB + 512 * BASE_KIB, 0,
          TRACE_BLOCK_INACTIVE);
    struct trace *trace = hand_end(&hand);
    struct trace_state state = start_of(trace);
    BASE_CHECK_EQ(state.block_count, 3);
    check_block(&state, 0, 0, 6 * BASE_MIB + 512 * BASE_KIB, 6 * BASE_MIB, TRACE_BLOCK_ALLOCATED);
    trace_state_deinit(&state);
    trace_destroy(trace);
}

// The block of 6 MiB is freed after something was put 0.75 MiB behind its rounded end: it was that
// much longer.
static void the_first_allocation_behind_a_block_shows_where_it_ended(void) {
    const uint64_t border = 6 * BASE_MIB + 768 * BASE_KIB;
    struct hand hand = hand_begin();
    event(&hand, TRACE_ALLOC, border, 2 * BASE_MIB);
    freed(&hand, 0, 6 * BASE_MIB);
    segment(&hand, 0, 20 * BASE_MIB);
    block(&hand, 0, border, 0, TRACE_BLOCK_INACTIVE);
    block(&hand, border, 2 * BASE_MIB, 2 * BASE_MIB, TRACE_BLOCK_ALLOCATED);
    block(&hand, border + 2 * BASE_MIB, 18 * BASE_MIB - border, 0, TRACE_BLOCK_INACTIVE);
    struct trace *trace = hand_end(&hand);
    struct trace_state state = start_of(trace);
    BASE_CHECK_EQ(state.block_count, 2);
    check_block(&state, 0, 0, border, 6 * BASE_MIB, TRACE_BLOCK_ALLOCATED);
    check_block(&state, 1, border, 20 * BASE_MIB - border, 0, TRACE_BLOCK_INACTIVE);
    BASE_CHECK_EQ(state.segments[0].allocated_size, border);
    trace_state_deinit(&state);
    trace_destroy(trace);
}

static void an_allocation_further_behind_than_a_mebibyte_is_a_contradiction(void) {
    const uint64_t border = 7 * BASE_MIB + 512;
    struct hand hand = hand_begin();
    event(&hand, TRACE_ALLOC, border, 2 * BASE_MIB);
    freed(&hand, 0, 6 * BASE_MIB);
    segment(&hand, 0, 20 * BASE_MIB);
    struct trace *trace = hand_end(&hand);
    struct trace_state state;
    BASE_CHECK_EQ(trace_start_state(trace, 0, &state), BASE_FORMAT);
    BASE_CHECK(strstr(base_status_message(), "event 0 (alloc, address 0x7f0000700200") != NULL);
    trace_destroy(trace);
}

// With max_split_size 8 MiB a block of 12 MiB is never split: it has its whole segment.
static void a_block_beyond_max_split_size_fills_its_gap(void) {
    struct hand hand = hand_begin();
    freed(&hand, 0, 12 * BASE_MIB);
    segment(&hand, 0, 20 * BASE_MIB);
    block(&hand, 0, 20 * BASE_MIB, 0, TRACE_BLOCK_INACTIVE);
    hand.builder.trace->settings.known = true;
    hand.builder.trace->settings.max_split_size = 8 * BASE_MIB;
    struct trace *trace = hand_end(&hand);
    struct trace_state state = start_of(trace);
    BASE_CHECK_EQ(state.block_count, 1);
    check_block(&state, 0, 0, 20 * BASE_MIB, 12 * BASE_MIB, TRACE_BLOCK_ALLOCATED);
    trace_state_deinit(&state);
    trace_destroy(trace);
}

static void segments_that_the_window_releases_were_there_and_new_ones_were_not(void) {
    struct hand hand = hand_begin();
    freed(&hand, 0, 3 * BASE_MIB);
    event(&hand, TRACE_SEGMENT_FREE, 0, 20 * BASE_MIB);
    event(&hand, TRACE_SEGMENT_ALLOC, 64 * BASE_MIB, 2 * BASE_MIB);
    event(&hand, TRACE_SEGMENT_ALLOC, 0, 30 * BASE_MIB); // the address comes back, another size
    segment(&hand, 0, 30 * BASE_MIB);
    block(&hand, 0, 30 * BASE_MIB, 0, TRACE_BLOCK_INACTIVE);
    segment(&hand, 64 * BASE_MIB, 2 * BASE_MIB);
    block(&hand, 64 * BASE_MIB, 2 * BASE_MIB, 0, TRACE_BLOCK_INACTIVE);
    struct trace *trace = hand_end(&hand);
    struct trace_state state = start_of(trace);
    BASE_CHECK_EQ(state.segment_count, 1);
    BASE_CHECK_EQ(state.segments[0].total_size, 20 * BASE_MIB);
    BASE_CHECK(state.segments[0].is_large);
    check_block(&state, 0, 0, 3 * BASE_MIB, 3 * BASE_MIB, TRACE_BLOCK_ALLOCATED);
    check_block(&state, 1, 3 * BASE_MIB, 17 * BASE_MIB, 0, TRACE_BLOCK_INACTIVE);
    trace_state_deinit(&state);
    trace_destroy(trace);
}

static void contradictory_starts_are_refused_in_one_sentence(void) {
    static const struct {
        uint64_t offset, size;
        const char *part;
    } cases[] = {{100 * BASE_MIB, 512, "free of an unknown address"}, // in no segment
                 {512, 2048, "does not fit"},                         // over the next live block
                 {2 * BASE_MIB - 512, 1024, "does not fit"},          // over the segment's end
                 {512, UINT64_MAX, "does not fit"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hand hand = hand_begin();
        event(&hand, TRACE_ALLOC, 0, 1); // an allocation, so that there is a history
        freed(&hand, cases[i].offset, cases[i].size);
        segment(&hand, 0, 2 * BASE_MIB);
        block(&hand, 1024, 512, 512, TRACE_BLOCK_ALLOCATED);
        struct trace *trace = hand_end(&hand);
        struct trace_state state;
        BASE_CHECK_EQ(trace_start_state(trace, 0, &state), BASE_FORMAT);
        if (strstr(base_status_message(), cases[i].part) == NULL)
            fprintf(stderr, "%s\n", base_status_message());
        BASE_CHECK(strstr(base_status_message(), cases[i].part) != NULL);
        BASE_CHECK(state.segments == NULL && state.blocks == NULL);
        trace_destroy(trace);
    }
}

static void a_device_that_is_not_there_is_an_invalid_value(void) {
    struct hand hand = hand_begin();
    segment(&hand, 0, 2 * BASE_MIB);
    struct trace *trace = hand_end(&hand);
    struct trace_state state;
    BASE_CHECK_EQ(trace_start_state(trace, 1, &state), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(trace_start_state(trace, -1, &state), BASE_INVALID_VALUE);
    trace_destroy(trace);
}

//------------------------------------------------------------------------------------------------
// Rounding.

// Values worked out by hand from PyTorch's rule.
static void sizes_are_rounded_as_pytorch_does(void) {
    struct trace_settings settings = {.max_split_size = -1};
    BASE_CHECK_EQ(trace__round_size(&settings, 1), 512);
    BASE_CHECK_EQ(trace__round_size(&settings, 512), 512);
    BASE_CHECK_EQ(trace__round_size(&settings, 513), 1024);
    BASE_CHECK_EQ(trace__round_size(&settings, 5000), 5120);
    for (int i = 0; i < 16; i++) settings.roundup_power2_divisions[i] = 4;
    BASE_CHECK_EQ(trace__round_size(&settings, 1200), 1536); // at most 512 x 4: as without
    BASE_CHECK_EQ(trace__round_size(&settings, 5000), 5120); // 4,096 + one step of 1,024
    BASE_CHECK_EQ(trace__round_size(&settings, 4096), 4096); // a power of two stays
    BASE_CHECK_EQ(trace__round_size(&settings, 9 * BASE_MIB), 10 * BASE_MIB);
    for (int i = 0; i < 16; i++) settings.roundup_power2_divisions[i] = i == 8 ? 1 : 0; // [256:1]
    BASE_CHECK_EQ(trace__round_size(&settings, 300 * BASE_MIB), 300 * BASE_MIB);
}

//------------------------------------------------------------------------------------------------
// Recorded runs.

static void check_same_layout(const struct trace_state *a, const struct trace_state *b,
                              uint64_t *inexact_count) {
    BASE_CHECK_EQ(a->segment_count, b->segment_count);
    BASE_CHECK_EQ(a->block_count, b->block_count);
    for (size_t i = 0; i < a->segment_count; i++) {
        BASE_CHECK_EQ(a->segments[i].address, b->segments[i].address);
        BASE_CHECK_EQ(a->segments[i].total_size, b->segments[i].total_size);
        BASE_CHECK_EQ(a->segments[i].stream, b->segments[i].stream);
        BASE_CHECK_EQ(a->segments[i].is_large, b->segments[i].is_large);
        BASE_CHECK_EQ(a->segments[i].block_count, b->segments[i].block_count);
    }
    for (size_t i = 0; i < a->block_count; i++) {
        const struct trace_block *x = &a->blocks[i], *y = &b->blocks[i];
        BASE_CHECK_EQ(x->state, y->state);
        if (x->state != TRACE_BLOCK_INACTIVE) {
            BASE_CHECK_EQ(x->address, y->address);
            BASE_CHECK_EQ(x->requested_size, y->requested_size);
        }
        // The open border: the true block is longer by up to 1 MiB, the free one behind it shorter.
        if (x->size == y->size) continue;
        ++*inexact_count;
        if (x->state == TRACE_BLOCK_INACTIVE) continue;
        BASE_CHECK_GT(y->size, x->size);
        BASE_CHECK_LE(y->size - x->size, BASE_MIB);
        BASE_CHECK_GT(x->size, BASE_MIB);
        BASE_CHECK_EQ(x[1].state, TRACE_BLOCK_INACTIVE);
    }
}

static void walk_to(struct trace_walk *walk, const struct trace *trace, struct trace_state *start,
                    size_t first, size_t end) {
    BASE_CHECK_EQ(trace__walk_init(walk, trace, 0, start, NULL), BASE_OK);
    for (size_t i = first; i < end; i++) BASE_CHECK_EQ(trace__walk_event(walk, i), BASE_OK);
}

static void the_walk_ends_in_the_recorded_final_state(const struct trace *trace) {
    struct trace_walk walk;
    struct trace_state end;
    walk_to(&walk, trace, NULL, 0, trace->event_count);
    BASE_CHECK_EQ(trace__walk_state(&walk, &end), BASE_OK);
    const struct trace_state recorded = {trace->segments, trace->segment_count, trace->blocks,
                                         trace->block_count};
    uint64_t inexact = 0;
    check_same_layout(&end, &recorded, &inexact);
    BASE_CHECK_EQ(inexact, 0);
    for (size_t i = 0; i < trace->segment_count; i++) {
        BASE_CHECK_EQ(end.segments[i].allocated_size, trace->segments[i].allocated_size);
        BASE_CHECK_EQ(end.segments[i].active_size, trace->segments[i].active_size);
    }
    trace_state_deinit(&end);
    trace__walk_deinit(&walk);
}

// The events from FIRST to END as a window of its own: the tables are TRACE's, the final state is
// the walk's.
static void check_window(const struct trace *trace, size_t first, size_t end, uint64_t *block_count,
                         uint64_t *inexact_count) {
    base_check_context("%s, events %zu to %zu", trace->name, first, end);
    struct trace_walk walk;
    struct trace_state expected, final_state, rebuilt;
    walk_to(&walk, trace, NULL, 0, first);
    BASE_CHECK_EQ(trace__walk_state(&walk, &expected), BASE_OK);
    for (size_t i = first; i < end; i++) BASE_CHECK_EQ(trace__walk_event(&walk, i), BASE_OK);
    BASE_CHECK_EQ(trace__walk_state(&walk, &final_state), BASE_OK);
    trace__walk_deinit(&walk);
    struct trace window = *trace;
    window.events = trace->events + first;
    window.event_count = end - first;
    for (int device = 1; device <= TRACE_DEVICE_COUNT_MAX; device++)
        window.device_event_first[device] = end - first;
    window.segments = final_state.segments;
    window.segment_count = final_state.segment_count;
    window.blocks = final_state.blocks;
    window.block_count = final_state.block_count;
    BASE_CHECK_EQ(trace_start_state(&window, 0, &rebuilt), BASE_OK);
    check_same_layout(&rebuilt, &expected, inexact_count);
    *block_count += rebuilt.block_count;
    // From the rebuilt start the window leads to the same end, inexact borders or not.
    struct trace_state again;
    uint64_t inexact = 0;
    walk_to(&walk, &window, &rebuilt, 0, window.event_count);
    BASE_CHECK_EQ(trace__walk_state(&walk, &again), BASE_OK);
    check_same_layout(&again, &final_state, &inexact);
    BASE_CHECK_EQ(inexact, 0);
    trace__walk_deinit(&walk);
    trace_state_deinit(&again);
    trace_state_deinit(&rebuilt);
    trace_state_deinit(&expected);
    trace_state_deinit(&final_state);
    base_check_context(NULL);
}

static void recorded_runs_cut_anywhere_are_rebuilt(const struct trace *trace, uint64_t *block_count,
                                                   uint64_t *inexact_count) {
    struct base_random random = base_random_init(1, trace->name);
    for (int i = 0; i < 25; i++) {
        const size_t first = (size_t)base_random_below(&random, trace->event_count);
        // Half of the windows end before the recording does.
        const size_t end = i % 2 == 0
                               ? trace->event_count
                               : (size_t)base_random_between(&random, first, trace->event_count);
        check_window(trace, first, end, block_count, inexact_count);
    }
}

//------------------------------------------------------------------------------------------------
// Nonsense.

// Events and final states that fit each other only by chance: an answer, never a crash.
static void nonsense_gets_an_answer(uint64_t seed) {
    base_check_context("seed %llu", (unsigned long long)seed);
    struct base_random random = base_random_init(seed, "nonsense");
    struct hand hand = hand_begin();
    const uint64_t step = base_random_chance(&random, 0.5) ? 512 : 256 * BASE_KIB;
    for (uint64_t i = base_random_below(&random, 4); i > 0; i--) {
        segment(&hand, i * 20 * BASE_MIB,
                base_random_chance(&random, 0.5) ? 2 * BASE_MIB : 20 * BASE_MIB);
        uint64_t offset = i * 20 * BASE_MIB;
        for (uint64_t j = base_random_below(&random, 5); j > 0; j--) {
            const uint64_t size = step * base_random_below(&random, 12);
            block(&hand, offset, size, size, (enum trace_block_state)base_random_below(&random, 3));
            offset += base_random_chance(&random, 0.9) ? size : size / 2;
        }
    }
    for (uint64_t i = base_random_below(&random, 12); i > 0; i--) {
        static const enum trace_action actions[] = {TRACE_ALLOC,          TRACE_ALLOC,
                                                    TRACE_FREE_REQUESTED, TRACE_FREE_COMPLETED,
                                                    TRACE_SEGMENT_ALLOC,  TRACE_SEGMENT_FREE};
        const uint64_t offset = base_random_between(&random, 1, 3) * 20 * BASE_MIB +
                                step * base_random_below(&random, 12);
        const uint64_t size = base_random_chance(&random, 0.02)
                                  ? base_random_next(&random)
                                  : step * base_random_below(&random, 40);
        event(&hand, actions[base_random_below(&random, 6)], offset, size);
    }
    BASE_CHECK_EQ(trace_add_devices(&hand.builder, 1), BASE_OK);
    struct trace *trace = hand_end(&hand);
    struct trace_state state;
    if (trace_start_state(trace, 0, &state) == BASE_OK) trace_state_deinit(&state);
    if (trace_check_replayable(trace, 0) != BASE_OK) BASE_CHECK(base_status_message()[0] != 0);
    trace_destroy(trace);
    base_check_context(NULL);
}

int main(int argc, char **argv) {
    for (uint64_t seed = 1; seed <= 20000; seed++) nonsense_gets_an_answer(seed);
    a_complete_history_starts_empty();
    small_blocks_that_the_window_frees_were_there_at_their_rounded_size();
    a_first_event_free_completed_was_pending_at_the_start();
    a_large_gap_of_up_to_a_mebibyte_belongs_to_the_block_before_it();
    the_first_allocation_behind_a_block_shows_where_it_ended();
    an_allocation_further_behind_than_a_mebibyte_is_a_contradiction();
    a_block_beyond_max_split_size_fills_its_gap();
    segments_that_the_window_releases_were_there_and_new_ones_were_not();
    contradictory_starts_are_refused_in_one_sentence();
    a_device_that_is_not_there_is_an_invalid_value();
    sizes_are_rounded_as_pytorch_does();
    BASE_CHECK_GT(argc, 1); // the recorded runs
    uint64_t block_count = 0, inexact_count = 0;
    for (int i = 1; i < argc; i++) {
        struct trace *trace = NULL;
        BASE_CHECK_EQ(trace_read(argv[i], NULL, &trace), BASE_OK);
        the_walk_ends_in_the_recorded_final_state(trace);
        recorded_runs_cut_anywhere_are_rebuilt(trace, &block_count, &inexact_count);
        trace_destroy(trace);
    }
    printf("%llu blocks rebuilt, %llu with an open border\n", (unsigned long long)block_count,
           (unsigned long long)inexact_count);
    BASE_CHECK_LT(inexact_count * 100, block_count); // open borders are rare
    return 0;
}
