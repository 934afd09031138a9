// One sentence for each reason why a history cannot be replayed.
#include "trace/build.h"

#include "base/check.h"
#include "base/size.h"

#include <stdio.h>
#include <string.h>

static struct trace_builder started(void) {
    struct trace_builder builder;
    BASE_CHECK_EQ(trace_builder_init(&builder, "test", 0), BASE_OK);
    BASE_CHECK_EQ(trace_add_devices(&builder, 1), BASE_OK);
    return builder;
}

static void add(struct trace_builder *builder, enum trace_action action, uint64_t address,
                uint64_t size) {
    const struct trace_event event = {.address = address,
                                      .size = size,
                                      .stack = TRACE_NONE,
                                      .metadata = TRACE_NONE,
                                      .action = (uint8_t)action};
    BASE_CHECK_EQ(trace_add_event(builder, &event), BASE_OK);
}

static void check_answer(struct trace_builder *builder, enum base_status wanted, const char *part) {
    struct trace *trace = NULL;
    BASE_CHECK_EQ(trace_builder_finish(builder, &trace), BASE_OK);
    enum base_status status = trace_check_replayable(trace, 0);
    if (status != wanted || (wanted != BASE_OK && strstr(base_status_message(), part) == NULL))
        fprintf(stderr, "wanted '%s', got '%s'\n", part, base_status_message());
    BASE_CHECK_EQ(status, wanted);
    BASE_CHECK(wanted == BASE_OK || strstr(base_status_message(), part) != NULL);
    trace_destroy(trace);
}

// An allocation in a new segment: a whole little history.
static void add_history(struct trace_builder *builder) {
    add(builder, TRACE_SEGMENT_ALLOC, 0x10000000, 2 * BASE_MIB);
    add(builder, TRACE_ALLOC, 0x10000000, 1000);
    add(builder, TRACE_FREE_REQUESTED, 0x10000000, 1000);
    add(builder, TRACE_FREE_COMPLETED, 0x10000000, 1000);
}

static void a_complete_history_can_be_replayed(void) {
    struct trace_builder builder = started();
    add_history(&builder);
    check_answer(&builder, BASE_OK, "");
}

static void a_device_that_does_not_exist_is_an_invalid_value(void) {
    struct trace_builder builder = started();
    struct trace *trace = NULL;
    add_history(&builder);
    BASE_CHECK_EQ(trace_builder_finish(&builder, &trace), BASE_OK);
    BASE_CHECK_EQ(trace_check_replayable(trace, 1), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(trace_check_replayable(trace, -1), BASE_INVALID_VALUE);
    trace_destroy(trace);
}

static void a_state_without_history_says_so(void) {
    struct trace_builder builder = started();
    const struct trace_segment segment = {
        .address = 4096, .total_size = 2 * BASE_MIB, .stack = TRACE_NONE};
    BASE_CHECK_EQ(trace_add_segment(&builder, &segment), BASE_OK);
    check_answer(&builder, BASE_FORMAT, "a state without history (1 segments, no events)");
    builder = started();
    check_answer(&builder, BASE_FORMAT, "nothing was recorded on this device");
}

static void a_lone_event_is_no_history(void) {
    struct trace_builder builder = started();
    add(&builder, TRACE_FREE_COMPLETED, 4096, 512);
    check_answer(&builder, BASE_FORMAT, "no allocation in its history of 1 event (");
}

// A history with expandable segments is replayed from its begin or not at all.
static void expandable_segments_are_replayed_from_their_first_page(void) {
    struct trace_builder builder = started();
    builder.trace->settings.known = builder.trace->settings.expandable_segments = true;
    add(&builder, TRACE_SEGMENT_MAP, 0x20000000, 2 * BASE_MIB);
    add(&builder, TRACE_ALLOC, 0x20000000, 512);
    add(&builder, TRACE_FREE_REQUESTED, 0x20000000, 512);
    add(&builder, TRACE_FREE_COMPLETED, 0x20000000, 512);
    add(&builder, TRACE_SEGMENT_UNMAP, 0x20000000, 2 * BASE_MIB);
    check_answer(&builder, BASE_OK, "");

    builder = started();
    add(&builder, TRACE_SEGMENT_MAP, 0x20000000, 2 * BASE_MIB);
    add(&builder, TRACE_ALLOC, 0x20000000, 512);
    add(&builder, TRACE_FREE_REQUESTED, 0x20000200, 512);
    check_answer(&builder, BASE_UNSUPPORTED, "a free of 0x20000200");

    builder = started();
    add(&builder, TRACE_ALLOC, 0x20000000, 512);
    add(&builder, TRACE_SEGMENT_UNMAP, 0x20200000, 2 * BASE_MIB);
    check_answer(&builder, BASE_UNSUPPORTED, "a release of 0x20200000");

    // What is there at the end must have been mapped.
    builder = started();
    add(&builder, TRACE_SEGMENT_MAP, 0x20000000, 2 * BASE_MIB);
    add(&builder, TRACE_ALLOC, 0x20000000, 512);
    const struct trace_segment segment = {.address = 0x10000000,
                                          .total_size = 4 * BASE_MIB,
                                          .stack = TRACE_NONE,
                                          .is_expandable = true};
    BASE_CHECK_EQ(trace_add_segment(&builder, &segment), BASE_OK);
    check_answer(&builder, BASE_UNSUPPORTED, "only whole histories");
}

static void private_pools_can_be_replayed(void) {
    struct trace_builder builder = started();
    struct trace_event event = {.address = 0x20000000,
                                .size = 2 * BASE_MIB,
                                .stack = TRACE_NONE,
                                .metadata = TRACE_NONE,
                                .action = TRACE_SEGMENT_ALLOC};
    BASE_CHECK_EQ(trace_add_pool(&builder, (struct trace_pool_id){3, 0}, &event.pool), BASE_OK);
    add_history(&builder);
    BASE_CHECK_EQ(trace_add_event(&builder, &event), BASE_OK);
    event.action = TRACE_ALLOC;
    event.size = 512;
    BASE_CHECK_EQ(trace_add_event(&builder, &event), BASE_OK);
    const struct trace_segment segment = {.address = 0x20000000,
                                          .total_size = 2 * BASE_MIB,
                                          .stack = TRACE_NONE,
                                          .pool = event.pool};
    const struct trace_block blocks[] = {
        {0x20000000, 512, 512, TRACE_NONE, TRACE_BLOCK_ALLOCATED},
        {0x20000200, 2 * BASE_MIB - 512, 0, TRACE_NONE, TRACE_BLOCK_INACTIVE}};
    BASE_CHECK_EQ(trace_add_segment(&builder, &segment), BASE_OK);
    for (int i = 0; i < 2; i++) BASE_CHECK_EQ(trace_add_block(&builder, &blocks[i]), BASE_OK);
    check_answer(&builder, BASE_OK, "");
}

static void missing_free_requests_are_noticed(void) {
    struct trace_builder builder = started();
    add(&builder, TRACE_ALLOC, 4096, 512);
    add(&builder, TRACE_FREE_COMPLETED, 4096, 512);
    check_answer(&builder, BASE_FORMAT, "1 free_completed events and not one free_requested");

    builder = started(); // one is there, the other is not
    add_history(&builder);
    add(&builder, TRACE_ALLOC, 0x10000000, 512);
    add(&builder, TRACE_FREE_COMPLETED, 0x10000000, 512);
    check_answer(&builder, BASE_FORMAT,
                 "event 5 (free_completed, address 0x10000000, 512 bytes): no free_requested");
}

static void impossible_sizes_are_noticed(void) {
    static const uint64_t sizes[] = {0, (uint64_t)1 << 60, UINT64_MAX};
    for (int i = 0; i < 3; i++) {
        struct trace_builder builder = started();
        add_history(&builder);
        add(&builder, TRACE_ALLOC, 0x10000000, sizes[i]);
        check_answer(&builder, BASE_FORMAT, "event 4 (alloc, address 0x10000000");
    }
}

static void blocks_that_overlap_or_are_unknown_are_noticed(void) {
    struct trace_builder builder = started();
    add_history(&builder);
    add(&builder, TRACE_ALLOC, 0x10000000, 512);
    add(&builder, TRACE_ALLOC, 0x10000000, 512);
    check_answer(&builder, BASE_FORMAT,
                 "event 5 (alloc, address 0x10000000, 512 bytes): the block there is in use");

    builder = started();
    add_history(&builder);
    add(&builder, TRACE_ALLOC, 0x10000000, 3 * BASE_MIB);
    check_answer(&builder, BASE_FORMAT, "the free block there is smaller");

    builder = started();
    add_history(&builder);
    add(&builder, TRACE_ALLOC, 0x30000000, 512);
    check_answer(&builder, BASE_FORMAT,
                 "event 4 (alloc, address 0x30000000, 512 bytes): no free block begins there");

    builder = started();
    add_history(&builder);
    add(&builder, TRACE_FREE_REQUESTED, 0x30000000, 512);
    check_answer(&builder, BASE_FORMAT, "free of an unknown address: block 0x30000000");

    builder = started();
    add_history(&builder);
    add(&builder, TRACE_ALLOC, 0x10000000, 512);
    add(&builder, TRACE_SEGMENT_FREE, 0x10000000, 2 * BASE_MIB);
    check_answer(&builder, BASE_FORMAT, "the segment still holds live blocks");

    builder = started();
    add_history(&builder);
    add(&builder, TRACE_SEGMENT_FREE, 0x10000000, 4 * BASE_MIB);
    check_answer(&builder, BASE_FORMAT, "the segment there has another size");
}

// Without segments the addresses are only names.
static void requests_alone_can_be_replayed_if_every_free_names_a_live_block(void) {
    struct trace_builder builder = started();
    add(&builder, TRACE_ALLOC, 1, 512);
    add(&builder, TRACE_ALLOC, 2, 512);
    add(&builder, TRACE_FREE_REQUESTED, 1, 512);
    add(&builder, TRACE_FREE_COMPLETED, 1, 512);
    add(&builder, TRACE_ALLOC, 1, 512);
    check_answer(&builder, BASE_OK, "");

    builder = started();
    add(&builder, TRACE_ALLOC, 1, 512);
    add(&builder, TRACE_ALLOC, 1, 512);
    check_answer(&builder, BASE_FORMAT,
                 "event 1 (alloc, address 0x1, 512 bytes): the block there is in use");

    builder = started();
    add(&builder, TRACE_ALLOC, 1, 512);
    add(&builder, TRACE_FREE_REQUESTED, 2, 512);
    check_answer(&builder, BASE_FORMAT,
                 "event 1 (free_requested, address 0x2, 512 bytes): no live block");

    builder = started();
    add(&builder, TRACE_ALLOC, 1, 512);
    add(&builder, TRACE_FREE_REQUESTED, 1, 512);
    add(&builder, TRACE_FREE_REQUESTED, 1, 512);
    check_answer(&builder, BASE_FORMAT,
                 "event 2 (free_requested, address 0x1, 512 bytes): the block was freed already");
}

int main(void) {
    a_complete_history_can_be_replayed();
    a_device_that_does_not_exist_is_an_invalid_value();
    a_state_without_history_says_so();
    a_lone_event_is_no_history();
    expandable_segments_are_replayed_from_their_first_page();
    private_pools_can_be_replayed();
    missing_free_requests_are_noticed();
    impossible_sizes_are_noticed();
    blocks_that_overlap_or_are_unknown_are_noticed();
    requests_alone_can_be_replayed_if_every_free_names_a_live_block();
    return 0;
}
