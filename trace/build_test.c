// Growing traces: what is stored once, what is sorted, what is refused.
#include "trace/build.h"

#include "base/check.h"
#include "base/size.h"

#include <stdio.h>
#include <string.h>

static struct trace_builder started(uint64_t limit) {
    struct trace_builder builder;
    BASE_CHECK_EQ(trace_builder_init(&builder, "test", limit), BASE_OK);
    return builder;
}

static struct trace *finished(struct trace_builder *builder) {
    struct trace *trace = NULL;
    BASE_CHECK_EQ(trace_builder_finish(builder, &trace), BASE_OK);
    BASE_CHECK(builder->trace == NULL);
    return trace;
}

static void equal_strings_streams_pools_and_stacks_are_stored_once(void) {
    struct trace_builder builder = started(0);
    uint32_t string[3], stack[4];
    uint16_t stream[3], pool[3];
    BASE_CHECK_EQ(trace_add_string(&builder, "main", 4, &string[0]), BASE_OK);
    BASE_CHECK_EQ(trace_add_string(&builder, "main.py", 7, &string[1]), BASE_OK);
    BASE_CHECK_EQ(trace_add_string(&builder, "main.py", 4, &string[2]), BASE_OK);
    BASE_CHECK_EQ(string[0], 0);
    BASE_CHECK_EQ(string[1], 1);
    BASE_CHECK_EQ(string[2], 0);
    for (int i = 0; i < 4; i++) {
        // Stacks 0 and 2 are equal; 3 is empty and equals none of them.
        for (uint32_t line = 0; i < 3 && line < 5; line++) {
            const struct trace_frame frame = {string[0], string[1], i == 1 ? line + 1 : line};
            BASE_CHECK_EQ(trace_add_frame(&builder, &frame), BASE_OK);
        }
        BASE_CHECK_EQ(trace_add_stack(&builder, i < 3 ? 5 : 0, &stack[i]), BASE_OK);
    }
    BASE_CHECK_EQ(stack[2], stack[0]);
    BASE_CHECK_NE(stack[1], stack[0]);
    BASE_CHECK_EQ(stack[3], 2);
    BASE_CHECK_EQ(trace_add_stream(&builder, 0, &stream[0]), BASE_OK);
    BASE_CHECK_EQ(trace_add_stream(&builder, 77, &stream[1]), BASE_OK);
    BASE_CHECK_EQ(trace_add_stream(&builder, 77, &stream[2]), BASE_OK);
    BASE_CHECK_EQ(stream[0], 0);
    BASE_CHECK_EQ(stream[1], 1);
    BASE_CHECK_EQ(stream[2], 1);
    BASE_CHECK_EQ(trace_add_pool(&builder, (struct trace_pool_id){0, 0}, &pool[0]), BASE_OK);
    BASE_CHECK_EQ(trace_add_pool(&builder, (struct trace_pool_id){0, 1}, &pool[1]), BASE_OK);
    BASE_CHECK_EQ(trace_add_pool(&builder, (struct trace_pool_id){1, 0}, &pool[2]), BASE_OK);
    BASE_CHECK_EQ(pool[0], 0);
    BASE_CHECK_EQ(pool[1], 1);
    BASE_CHECK_EQ(pool[2], 2);
    struct trace *trace = finished(&builder);
    BASE_CHECK_EQ(trace->string_count, 2);
    BASE_CHECK_EQ(trace->stack_count, 3);
    BASE_CHECK_EQ(trace->frame_count, 10);
    BASE_CHECK_EQ(trace->stream_count, 2);
    BASE_CHECK_EQ(trace->pool_count, 3);
    trace_destroy(trace);
}

static void many_different_strings_keep_their_indices(void) {
    struct trace_builder builder = started(0);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 5000; i++) {
            char text[16];
            uint32_t index;
            const int length = snprintf(text, sizeof text, "s%u", i);
            BASE_CHECK_EQ(trace_add_string(&builder, text, (size_t)length, &index), BASE_OK);
            BASE_CHECK_EQ(index, i);
        }
    }
    trace_builder_abandon(&builder);
}

static void a_zero_inside_a_string_becomes_a_question_mark(void) {
    struct trace_builder builder = started(0);
    uint32_t index;
    BASE_CHECK_EQ(trace_add_string(&builder, "a\0b", 3, &index), BASE_OK);
    BASE_CHECK(strcmp(builder.trace->strings[index], "a?b") == 0);
    trace_builder_abandon(&builder);
}

static void events_of_alternating_devices_are_sorted_apart_in_order(void) {
    struct trace_builder builder = started(0);
    for (uint64_t i = 0; i < 90; i++) {
        const struct trace_event event = {.address = i,
                                          .stack = TRACE_NONE,
                                          .metadata = TRACE_NONE,
                                          .device = (uint8_t)(2 - i % 3)};
        BASE_CHECK_EQ(trace_add_event(&builder, &event), BASE_OK);
    }
    struct trace *trace = finished(&builder);
    BASE_CHECK_EQ(trace->device_count, 3);
    for (int device = 0; device < 3; device++) {
        BASE_CHECK_EQ(trace->device_event_first[device], 30 * device);
        for (size_t i = 0; i < 30; i++) {
            const struct trace_event *event = &trace->events[trace->device_event_first[device] + i];
            BASE_CHECK_EQ(event->device, device);
            BASE_CHECK_EQ(event->address, 3 * i + 2 - (size_t)device);
        }
    }
    BASE_CHECK_EQ(trace->device_event_first[TRACE_DEVICE_COUNT_MAX], 90);
    trace_destroy(trace);
}

static void segments_come_out_by_device_and_address_with_their_blocks(void) {
    static const struct {
        uint8_t device;
        uint64_t address;
        uint32_t blocks;
    } added[] = {{1, 500, 2}, {0, 900, 0}, {0, 100, 3}, {1, 200, 1}};
    struct trace_builder builder = started(0);
    for (int i = 0; i < 4; i++) {
        const struct trace_segment segment = {
            .address = added[i].address, .device = added[i].device, .stack = TRACE_NONE};
        BASE_CHECK_EQ(trace_add_segment(&builder, &segment), BASE_OK);
        for (uint32_t j = added[i].blocks; j > 0; j--) { // by descending address
            const struct trace_block block = {.address = added[i].address + j, .stack = TRACE_NONE};
            BASE_CHECK_EQ(trace_add_block(&builder, &block), BASE_OK);
        }
    }
    struct trace *trace = finished(&builder);
    static const uint64_t addresses[] = {100, 900, 200, 500};
    static const uint32_t counts[] = {3, 0, 1, 2};
    size_t block = 0;
    BASE_CHECK_EQ(trace->device_count, 2);
    for (int i = 0; i < 4; i++) {
        BASE_CHECK_EQ(trace->segments[i].address, addresses[i]);
        BASE_CHECK_EQ(trace->segments[i].block_count, counts[i]);
        BASE_CHECK_EQ(trace->segments[i].block_first, block);
        for (uint32_t j = 1; j <= counts[i]; j++)
            BASE_CHECK_EQ(trace->blocks[block++].address, addresses[i] + j);
    }
    trace_destroy(trace);
}

static void more_than_65536_streams_are_a_limit_with_a_sentence(void) {
    struct trace_builder builder = started(0);
    uint16_t index = 0;
    enum base_status status = BASE_OK;
    uint64_t handle = 0; // stream 0 is there from the start
    while (status == BASE_OK) status = trace_add_stream(&builder, ++handle, &index);
    BASE_CHECK_EQ(status, BASE_LIMIT);
    BASE_CHECK_EQ(handle, 65536);
    BASE_CHECK(strstr(base_status_message(), "streams") != NULL);
    BASE_CHECK_EQ(trace_add_stream(&builder, 65535, &index), BASE_OK); // a known one is still found
    BASE_CHECK_EQ(index, 65535);
    trace_builder_abandon(&builder);
}

static void a_device_beyond_the_sixteenth_is_a_limit(void) {
    struct trace_builder builder = started(0);
    const struct trace_event event = {.stack = TRACE_NONE, .metadata = TRACE_NONE, .device = 16};
    BASE_CHECK_EQ(trace_add_event(&builder, &event), BASE_LIMIT);
    BASE_CHECK_EQ(trace_add_devices(&builder, 17), BASE_LIMIT);
    BASE_CHECK_EQ(trace_add_devices(&builder, 16), BASE_OK);
    trace_builder_abandon(&builder);
}

static void the_memory_limit_is_used_up_and_not_passed(void) {
    const uint64_t limit = 100000;
    struct trace_builder builder = started(limit);
    const struct trace_event event = {.stack = TRACE_NONE, .metadata = TRACE_NONE};
    enum base_status status = BASE_OK;
    while (status == BASE_OK) {
        status = trace_add_event(&builder, &event);
        BASE_CHECK_LE(builder.memory_bytes, limit);
    }
    BASE_CHECK_EQ(status, BASE_LIMIT);
    BASE_CHECK(strstr(base_status_message(), "memory limit") != NULL);
    // All but the small tables and one event went into events.
    BASE_CHECK_GT(builder.trace->event_count * sizeof event, limit - 4096);
    trace_builder_abandon(&builder);
}

static void a_charge_counts_until_it_is_given_back(void) {
    struct trace_builder builder = started(BASE_MIB);
    BASE_CHECK_EQ(trace_builder_charge(&builder, 900000), BASE_OK);
    BASE_CHECK_EQ(trace_builder_charge(&builder, 900000), BASE_LIMIT);
    BASE_CHECK_EQ(trace_builder_charge(&builder, -900000), BASE_OK);
    BASE_CHECK_EQ(trace_builder_charge(&builder, 900000), BASE_OK);
    trace_builder_abandon(&builder);
}

static void a_new_trace_has_the_default_stream_and_pool(void) {
    struct trace *trace = trace_create("new");
    BASE_CHECK(trace != NULL);
    BASE_CHECK(strcmp(trace->name, "new") == 0);
    BASE_CHECK_EQ(trace->stream_count, 1);
    BASE_CHECK_EQ(trace->streams[0], 0);
    BASE_CHECK_EQ(trace->pool_count, 1);
    BASE_CHECK_EQ(trace->pools[0].capture + trace->pools[0].user, 0);
    BASE_CHECK_EQ(trace->settings.max_split_size, -1);
    trace_destroy(trace);
    trace_destroy(NULL);
}

static void the_version_decides_the_rules_and_pool_ids_where_it_is_missing(void) {
    struct trace *trace = trace_create("rules");
    bool assumed;
    BASE_CHECK(strcmp(trace_rules_version(trace, &assumed), "2.11") == 0 && assumed);
    trace->has_pool_ids = true;
    BASE_CHECK(strcmp(trace_rules_version(trace, &assumed), "2.15") == 0 && assumed);
    BASE_CHECK_EQ(trace_set_text(&trace->settings.torch_version, "2.9.1"), BASE_OK);
    BASE_CHECK(strcmp(trace_rules_version(trace, &assumed), "2.9.1") == 0 && !assumed);
    trace_destroy(trace);
}

static void actions_have_pytorchs_names(void) {
    BASE_CHECK(strcmp(trace_action_name(TRACE_FREE_COMPLETED), "free_completed") == 0);
    BASE_CHECK(strcmp(trace_action_name(TRACE_OOM), "oom") == 0);
    BASE_CHECK(strcmp(trace_action_name(TRACE_ACTION_COUNT), "unknown") == 0);
}

int main(void) {
    equal_strings_streams_pools_and_stacks_are_stored_once();
    many_different_strings_keep_their_indices();
    a_zero_inside_a_string_becomes_a_question_mark();
    events_of_alternating_devices_are_sorted_apart_in_order();
    segments_come_out_by_device_and_address_with_their_blocks();
    more_than_65536_streams_are_a_limit_with_a_sentence();
    a_device_beyond_the_sixteenth_is_a_limit();
    the_memory_limit_is_used_up_and_not_passed();
    a_charge_counts_until_it_is_given_back();
    a_new_trace_has_the_default_stream_and_pool();
    the_version_decides_the_rules_and_pool_ids_where_it_is_missing();
    actions_have_pytorchs_names();
    return 0;
}
