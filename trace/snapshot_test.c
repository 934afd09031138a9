// The snapshot reader: layouts of every release, records in their place only, and faults named with
// their place.
#include "trace/pickle_testing.h"

#include "base/check.h"
#include "base/progress.h"
#include "base/size.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

// {action, addr, size, stream, time_us} of ACTION; what follows may add pairs before end_dict.
static void begin_event(struct pickle_test *test, const char *action, int64_t address,
                        int64_t size) {
    PICKLE_TEST_ADD(test, "}(");
    pickle_test_text_pair(test, "action", action);
    pickle_test_pair(test, "addr", address);
    pickle_test_pair(test, "size", size);
    pickle_test_pair(test, "stream", 0);
    pickle_test_pair(test, "time_us", 7);
}
static void end_dict(struct pickle_test *test) { PICKLE_TEST_ADD(test, "u"); }

static void event(struct pickle_test *test, int64_t address) {
    begin_event(test, "alloc", address, 512);
    end_dict(test);
}

static void begin_segment(struct pickle_test *test, int64_t device, int64_t address) {
    PICKLE_TEST_ADD(test, "}(");
    pickle_test_pair(test, "device", device);
    pickle_test_pair(test, "address", address);
    pickle_test_pair(test, "total_size", 2097152);
    pickle_test_pair(test, "allocated_size", 0);
    pickle_test_pair(test, "active_size", 0);
    pickle_test_pair(test, "requested_size", 0);
    pickle_test_pair(test, "stream", 0);
    pickle_test_text_pair(test, "segment_type", "small");
}

static void block(struct pickle_test *test, int64_t size, const char *state) {
    PICKLE_TEST_ADD(test, "}(");
    pickle_test_pair(test, "size", size);
    pickle_test_pair(test, "requested_size", size - 1);
    pickle_test_text_pair(test, "state", state);
    end_dict(test);
}

static void frame(struct pickle_test *test, const char *name) {
    PICKLE_TEST_ADD(test, "}(");
    pickle_test_text_pair(test, "name", name);
    pickle_test_text_pair(test, "filename", "a.py");
    pickle_test_pair(test, "line", 3);
    end_dict(test);
}

static struct trace *read_well(struct pickle_test *test) {
    struct trace *trace;
    enum base_status status = pickle_test_read(test, 0, &trace);
    if (status != BASE_OK) fprintf(stderr, "%s\n", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    pickle_test_free(test);
    return trace;
}

static void check_refused(struct pickle_test *test, const char *part, const char *other) {
    pickle_test_check_refused(test, BASE_FORMAT, part, other);
    pickle_test_free(test);
}

// Up to Torch 2.0: no block has an address.
static void blocks_without_address_tile_their_segment(void) {
    struct pickle_test test = {0};
    PICKLE_TEST_ADD(&test, "\x80\x02}(");
    pickle_test_text(&test, "segments");
    PICKLE_TEST_ADD(&test, "](");
    begin_segment(&test, 0, 1 << 30);
    pickle_test_text(&test, "blocks");
    PICKLE_TEST_ADD(&test, "](");
    block(&test, 512, "active_allocated");
    block(&test, 1024, "active_pending_free");
    block(&test, 2048, "inactive");
    PICKLE_TEST_ADD(&test, "e");
    end_dict(&test);
    PICKLE_TEST_ADD(&test, "eu.");
    struct trace *trace = read_well(&test);
    BASE_CHECK_EQ(trace->segment_count, 1);
    BASE_CHECK_EQ(trace->block_count, 3);
    BASE_CHECK_EQ(trace->blocks[0].address, 1 << 30);
    BASE_CHECK_EQ(trace->blocks[1].address, (1 << 30) + 512);
    BASE_CHECK_EQ(trace->blocks[2].address, (1 << 30) + 1536);
    BASE_CHECK_EQ(trace->blocks[1].state, TRACE_BLOCK_PENDING_FREE);
    BASE_CHECK_EQ(trace->blocks[1].requested_size, 1023);
    BASE_CHECK_EQ(trace->event_count, 0);
    BASE_CHECK(!trace->has_pool_ids && !trace->settings.known);
    trace_destroy(trace);
}

static void begin_top(struct pickle_test *test) {
    PICKLE_TEST_ADD(test, "\x80\x04}(");
    pickle_test_text(test, "segments");
    PICKLE_TEST_ADD(test, "]");
}
static void end_top(struct pickle_test *test) { PICKLE_TEST_ADD(test, "u."); }

static void events_of_other_keys_are_not_the_devices(void) {
    struct pickle_test test = {0};
    begin_top(&test);
    pickle_test_text(&test, "host_traces");
    PICKLE_TEST_ADD(&test, "](](");
    event(&test, 512);
    event(&test, 1024);
    PICKLE_TEST_ADD(&test, "e]e");
    pickle_test_text(&test, "device_traces");
    PICKLE_TEST_ADD(&test, "](](");
    event(&test, 2048);
    PICKLE_TEST_ADD(&test, "e](");
    event(&test, 4096);
    event(&test, 8192);
    PICKLE_TEST_ADD(&test, "ee");
    pickle_test_text(&test, "later");
    PICKLE_TEST_ADD(&test, "](");
    event(&test, 512);
    PICKLE_TEST_ADD(&test, "e");
    end_top(&test);
    struct trace *trace = read_well(&test);
    BASE_CHECK_EQ(trace->event_count, 3);
    BASE_CHECK_EQ(trace->device_count, 2);
    BASE_CHECK_EQ(trace->device_event_first[1], 1);
    BASE_CHECK_EQ(trace->events[0].address, 2048);
    BASE_CHECK_EQ(trace->events[1].address, 4096);
    BASE_CHECK_EQ(trace->events[1].device, 1);
    BASE_CHECK_EQ(trace->events[2].address, 8192);
    trace_destroy(trace);
}

// A file may refer to its events in any order, and to one twice.
static void events_are_taken_in_the_order_of_the_list(void) {
    struct pickle_test test = {0};
    begin_top(&test);
    pickle_test_text(&test, "kept");
    PICKLE_TEST_ADD(&test, "(");
    for (int64_t i = 0; i < 3; i++) {
        PICKLE_TEST_ADD(&test, "}\x94(");
        pickle_test_text_pair(&test, "action", "alloc");
        pickle_test_pair(&test, "addr", i + 1);
        pickle_test_pair(&test, "size", 1);
        pickle_test_pair(&test, "stream", 0);
        end_dict(&test);
    }
    PICKLE_TEST_ADD(&test, "t");
    pickle_test_text(&test, "device_traces");
    PICKLE_TEST_ADD(&test, "](](h\2h\0");
    event(&test, 9);
    PICKLE_TEST_ADD(&test, "h\0h\1ee");
    end_top(&test);
    struct trace *trace = read_well(&test);
    static const uint64_t expected[] = {3, 1, 9, 1, 2};
    BASE_CHECK_EQ(trace->event_count, 5);
    for (size_t i = 0; i < 5; i++)
        BASE_CHECK_EQ(trace->events[i].address, expected[i]);
    trace_destroy(trace);
}

// As C++ writes it: all events behind one MARK. They are held as one value.
static void a_batch_of_very_many_events_takes_no_stack(void) {
    enum { COUNT = 200000 };
    struct pickle_test test = {0}, one = {0};
    begin_top(&test);
    pickle_test_text(&test, "device_traces");
    // The keys once, then by number.
    PICKLE_TEST_ADD(&test, "](](");
    static const char *const texts[] = {"action", "alloc", "addr", "size", "stream"};
    for (size_t i = 0; i < 5; i++) {
        pickle_test_text(&test, texts[i]);
        PICKLE_TEST_ADD(&test, "\x94"
                               "0");
    }
    PICKLE_TEST_ADD(&one, "}(h\0h\1h\2K\5h\3K\6h\4K\0u");
    for (int i = 0; i < COUNT; i++)
        pickle_test_add(&test, one.bytes, one.size);
    PICKLE_TEST_ADD(&test, "ee");
    end_top(&test);
    struct trace *trace;
    BASE_CHECK_EQ(pickle_test_read(&test, COUNT * sizeof(struct trace_event) + BASE_MIB, &trace),
                  BASE_OK);
    BASE_CHECK_EQ(trace->event_count, COUNT);
    BASE_CHECK_EQ(trace->events[COUNT - 1].size, 6);
    trace_destroy(trace);
    pickle_test_free(&test);
    pickle_test_free(&one);
}

static void everything_of_an_event_is_kept(void) {
    struct pickle_test test = {0};
    begin_top(&test);
    pickle_test_text(&test, "device_traces");
    PICKLE_TEST_ADD(&test, "](](");
    begin_event(&test, "free_completed", 0x7f0000000200, 77);
    pickle_test_text(&test, "frames");
    PICKLE_TEST_ADD(&test, "](");
    frame(&test, "inner");
    frame(&test, "outer");
    PICKLE_TEST_ADD(&test, "e");
    pickle_test_text_pair(&test, "user_metadata",
                          "step \xff"
                          "1");
    pickle_test_text_pair(&test, "compile_context", "N/A");
    pickle_test_text(&test, "pool_id");
    PICKLE_TEST_ADD(&test, "K\0K\3\x86");
    end_dict(&test);
    PICKLE_TEST_ADD(&test, "}(");
    pickle_test_text_pair(&test, "action", "oom");
    pickle_test_pair(&test, "device_free", 1000);
    pickle_test_pair(&test, "size", 2000);
    pickle_test_pair(&test, "stream", 5);
    end_dict(&test);
    PICKLE_TEST_ADD(&test, "ee");
    end_top(&test);
    struct trace *trace = read_well(&test);
    BASE_CHECK_EQ(trace->event_count, 2);
    const struct trace_event *first = &trace->events[0], *second = &trace->events[1];
    BASE_CHECK_EQ(first->action, TRACE_FREE_COMPLETED);
    BASE_CHECK_EQ(first->address, 0x7f0000000200);
    BASE_CHECK_EQ(first->size, 77);
    BASE_CHECK_EQ(first->time_us, 7);
    BASE_CHECK_EQ(trace->pools[first->pool].user, 3);
    BASE_CHECK(strcmp(trace->strings[first->metadata], "step ?1") == 0);
    const struct trace_stack *stack = &trace->stacks[first->stack];
    BASE_CHECK_EQ(stack->count, 2);
    BASE_CHECK(strcmp(trace->strings[trace->frames[stack->first].function], "inner") == 0);
    BASE_CHECK_EQ(trace->frames[stack->first + 1].line, 3);
    BASE_CHECK(trace->has_pool_ids);
    BASE_CHECK_EQ(second->action, TRACE_OOM);
    BASE_CHECK_EQ(second->address, 1000);
    BASE_CHECK_EQ(trace->streams[second->stream], 5);
    BASE_CHECK_EQ(second->stack, TRACE_NONE);
    BASE_CHECK_EQ(second->pool, 0);
    trace_destroy(trace);
}

// Device 1, event 2 is what ADD writes.
static void check_event_refused(void (*add)(struct pickle_test *test), const char *part) {
    struct pickle_test test = {0};
    begin_top(&test);
    pickle_test_text(&test, "device_traces");
    PICKLE_TEST_ADD(&test, "](](");
    event(&test, 512);
    PICKLE_TEST_ADD(&test, "e](");
    event(&test, 512);
    event(&test, 1024);
    add(&test);
    event(&test, 2048);
    PICKLE_TEST_ADD(&test, "ee");
    end_top(&test);
    check_refused(&test, "device 1, event 2: ending at byte ", part);
}

static void add_negative_size(struct pickle_test *test) {
    begin_event(test, "alloc", 512, -512);
    end_dict(test);
}
static void add_huge_size(struct pickle_test *test) {
    begin_event(test, "alloc", 512, 1);
    pickle_test_text(test, "size");
    PICKLE_TEST_ADD(test, "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00");
    end_dict(test);
}
static void add_endless_size(struct pickle_test *test) {
    begin_event(test, "alloc", 512, 1);
    pickle_test_text(test, "size");
    PICKLE_TEST_ADD(test, "\x8a\x0a"
                          "0123456789");
    end_dict(test);
}
static void add_text_size(struct pickle_test *test) {
    begin_event(test, "alloc", 512, 1);
    pickle_test_text_pair(test, "size", "512");
    end_dict(test);
}
static void add_list_address(struct pickle_test *test) {
    begin_event(test, "alloc", 512, 1);
    pickle_test_text(test, "addr");
    PICKLE_TEST_ADD(test, "]");
    end_dict(test);
}
static void add_unknown_action(struct pickle_test *test) {
    begin_event(test, "al\nloc", 512, 1);
    end_dict(test);
}
static void add_without_size(struct pickle_test *test) {
    PICKLE_TEST_ADD(test, "}(");
    pickle_test_text_pair(test, "action", "alloc");
    pickle_test_pair(test, "addr", 1);
    pickle_test_pair(test, "stream", 0);
    end_dict(test);
}
static void add_without_action(struct pickle_test *test) {
    PICKLE_TEST_ADD(test, "}(");
    pickle_test_pair(test, "addr", 1);
    pickle_test_pair(test, "size", 1);
    end_dict(test);
}
static void add_number(struct pickle_test *test) { PICKLE_TEST_ADD(test, "K\5"); }
static void add_bad_frames(struct pickle_test *test) {
    begin_event(test, "alloc", 512, 1);
    pickle_test_text(test, "frames");
    PICKLE_TEST_ADD(test, "](");
    frame(test, "good");
    PICKLE_TEST_ADD(test, "}K\1K\2se");
    end_dict(test);
}
static void add_bad_pool(struct pickle_test *test) {
    begin_event(test, "alloc", 512, 1);
    pickle_test_text(test, "pool_id");
    PICKLE_TEST_ADD(test, "K\0J\xff\xff\xff\xff\x86");
    end_dict(test);
}

static void faults_of_events_are_named_with_device_and_event(void) {
    check_event_refused(add_negative_size, "'size' is -512; due is an integer from 0");
    check_event_refused(add_huge_size, "'size' is 9223372036854775808; due is");
    check_event_refused(add_endless_size, "'size' is bytes, an integer beyond 64 bits");
    check_event_refused(add_text_size, "'size' is a string; due is an integer");
    check_event_refused(add_list_address, "'addr' is a list; due is");
    check_event_refused(add_unknown_action,
                        "'action' is 'al?loc'; due is one of alloc, free_requested");
    check_event_refused(add_without_size, "'size' is missing");
    check_event_refused(add_without_action, "it is a dict without the keys that are due there");
    check_event_refused(add_number, "it is an integer without the keys");
    check_event_refused(add_bad_frames, "'frames' is a list; due is a list of frames");
    check_event_refused(add_bad_pool, "'pool_id' is a tuple; due is a pair");
}

// The same faults where nobody looks at them.
static void faults_of_events_that_are_not_used_do_not_matter(void) {
    struct pickle_test test = {0};
    begin_top(&test);
    pickle_test_text(&test, "host_traces");
    PICKLE_TEST_ADD(&test, "](](");
    event(&test, 1);
    add_negative_size(&test);
    add_unknown_action(&test);
    add_number(&test);
    PICKLE_TEST_ADD(&test, "ee");
    end_top(&test);
    struct trace *trace = read_well(&test);
    BASE_CHECK_EQ(trace->event_count, 0);
    trace_destroy(trace);
}

static void check_segment_refused(const char *key, int64_t number, const char *part) {
    struct pickle_test test = {0};
    PICKLE_TEST_ADD(&test, "\x80\x04}(");
    pickle_test_text(&test, "segments");
    PICKLE_TEST_ADD(&test, "](");
    begin_segment(&test, 0, 1 << 21);
    pickle_test_text(&test, "blocks");
    PICKLE_TEST_ADD(&test, "]");
    end_dict(&test);
    begin_segment(&test, 0, 1 << 22);
    pickle_test_text(&test, "blocks");
    PICKLE_TEST_ADD(&test, "]");
    pickle_test_pair(&test, key, number);
    end_dict(&test);
    PICKLE_TEST_ADD(&test, "e");
    end_top(&test);
    check_refused(&test, "segment 1: ending at byte ", part);
}

static void faults_of_segments_are_named_with_their_number(void) {
    check_segment_refused("total_size", -1, "'total_size' is -1");
    check_segment_refused("device", 16, "'device' is 16; due is an integer from 0 to 15");
    check_segment_refused("blocks", 3, "'blocks' is an integer; due is a list of blocks");
    check_segment_refused("segment_type", 3, "'segment_type' is an integer; due is small or large");
    check_segment_refused("is_expandable", 3,
                          "'is_expandable' is an integer; due is True or False");
    check_segment_refused("segment_pool_id", 3, "'segment_pool_id' is an integer; due is a pair");

    struct pickle_test test = {0};
    PICKLE_TEST_ADD(&test, "\x80\x04}(");
    pickle_test_text(&test, "segments");
    PICKLE_TEST_ADD(&test, "](");
    begin_segment(&test, 0, 1 << 21);
    pickle_test_text(&test, "blocks");
    PICKLE_TEST_ADD(&test, "](");
    block(&test, 512, "inactive");
    block(&test, 512, "asleep");
    PICKLE_TEST_ADD(&test, "eue");
    end_top(&test);
    check_refused(&test, "segment 0: block 1: ending at byte ",
                  "'state' is 'asleep'; due is one of inactive");
}

static void what_is_no_snapshot_is_told_what_it_is(void) {
    static const struct {
        const char *bytes, *part;
    } cases[] = {
        {"].", "the pickle holds a list; a memory snapshot is a dict"},
        {"}.", "the pickle holds a dict without 'segments'"},
        {"K\1.", "the pickle holds an integer"},
        {"}X\1", "cut off"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pickle_test test = {0};
        pickle_test_repeat(&test, cases[i].bytes, 1);
        check_refused(&test, cases[i].part, "");
    }
    struct pickle_test test = {0};
    PICKLE_TEST_ADD(&test, "}(");
    pickle_test_text(&test, "device_traces");
    PICKLE_TEST_ADD(&test, "]u.");
    check_refused(&test, "has no 'segments'", "");
    PICKLE_TEST_ADD(&test, "}(");
    pickle_test_text(&test, "segments");
    PICKLE_TEST_ADD(&test, "K\1u.");
    check_refused(&test, "'segments' is an integer; due is a list of segments", "");
    BASE_CHECK(strstr(base_status_message(), "at byte 0") == NULL); // it has no place to tell
    begin_top(&test);
    pickle_test_text(&test, "device_traces");
    PICKLE_TEST_ADD(&test, "](");
    event(&test, 1);
    PICKLE_TEST_ADD(&test, "e");
    end_top(&test);
    check_refused(&test, "'device_traces' is a list of events; due is a list of lists", "");
}

static void more_devices_than_a_trace_holds_are_refused(void) {
    struct pickle_test test = {0};
    begin_top(&test);
    pickle_test_text(&test, "device_traces");
    PICKLE_TEST_ADD(&test, "](");
    pickle_test_repeat(&test, "]", 17);
    PICKLE_TEST_ADD(&test, "e");
    end_top(&test);
    pickle_test_check_refused(&test, BASE_LIMIT, "more than 16 devices", "");
    pickle_test_free(&test);
}

// A list of 2 bytes an entry may name one large segment again and again.
static void repeated_segments_stay_within_the_limit(void) {
    struct pickle_test test = {0};
    PICKLE_TEST_ADD(&test, "\x80\x04}(");
    pickle_test_text(&test, "segments");
    PICKLE_TEST_ADD(&test, "](");
    begin_segment(&test, 0, 1 << 21);
    pickle_test_text(&test, "blocks");
    PICKLE_TEST_ADD(&test, "](");
    for (int i = 0; i < 5000; i++)
        block(&test, 512, "inactive");
    PICKLE_TEST_ADD(&test, "eu\x94");
    for (int i = 0; i < 20000; i++)
        PICKLE_TEST_ADD(&test, "h\0");
    PICKLE_TEST_ADD(&test, "e");
    end_top(&test);
    struct trace *trace;
    BASE_CHECK_EQ(pickle_test_read(&test, 16 * BASE_MIB, &trace), BASE_LIMIT);
    pickle_test_free(&test);
}

static void stacks_can_be_left_out(void) {
    struct pickle_test test = {0};
    begin_top(&test);
    pickle_test_text(&test, "device_traces");
    PICKLE_TEST_ADD(&test, "](](");
    begin_event(&test, "alloc", 1, 1);
    pickle_test_text(&test, "frames");
    PICKLE_TEST_ADD(&test, "](");
    frame(&test, "one");
    PICKLE_TEST_ADD(&test, "e");
    end_dict(&test);
    PICKLE_TEST_ADD(&test, "ee");
    end_top(&test);
    struct trace_input input;
    BASE_CHECK_EQ(trace_input_open_memory(&input, "folder/run.pickle.gz", test.bytes, test.size),
                  BASE_OK);
    struct trace *trace;
    BASE_CHECK_EQ(
        trace__read_snapshot(&input, &(struct trace_read_options){.no_stacks = true}, &trace),
        BASE_OK);
    BASE_CHECK_EQ(trace->events[0].stack, TRACE_NONE);
    BASE_CHECK_EQ(trace->stack_count, 0);
    BASE_CHECK_EQ(trace->frame_count, 0);
    BASE_CHECK(strcmp(trace->name, "run") == 0);
    trace_destroy(trace);
    trace_input_close(&input);
    pickle_test_free(&test);
}

// The last test: an interrupt is for good.
static void an_interrupt_ends_the_reading(void) {
    struct pickle_test test = {0};
    begin_top(&test);
    end_top(&test);
    base_interrupt_install();
    BASE_CHECK_EQ(raise(SIGINT), 0);
    pickle_test_check_refused(&test, BASE_INTERRUPTED, "interrupted", "");
    pickle_test_free(&test);
}

int main(void) {
    blocks_without_address_tile_their_segment();
    events_of_other_keys_are_not_the_devices();
    events_are_taken_in_the_order_of_the_list();
    a_batch_of_very_many_events_takes_no_stack();
    everything_of_an_event_is_kept();
    faults_of_events_are_named_with_device_and_event();
    faults_of_events_that_are_not_used_do_not_matter();
    faults_of_segments_are_named_with_their_number();
    what_is_no_snapshot_is_told_what_it_is();
    more_devices_than_a_trace_holds_are_refused();
    repeated_segments_stay_within_the_limit();
    stacks_can_be_left_out();
    an_interrupt_ends_the_reading();
    return 0;
}
