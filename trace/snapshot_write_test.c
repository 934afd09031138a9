// Snapshots that we write are read back by our reader as the traces they were.
#include "trace/snapshot_write.h"
#include "trace/testing.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *stack_text(const struct trace *trace, uint32_t index, char *text, size_t size) {
    size_t length = 0;
    text[0] = 0;
    if (index == TRACE_NONE) return text;
    const struct trace_stack *stack = &trace->stacks[index];
    for (uint32_t i = 0; i < stack->count && length < size; i++) {
        const struct trace_frame *frame = &trace->frames[stack->first + i];
        length += (size_t)snprintf(text + length, size - length, "%s|%s|%u;",
                                   trace->strings[frame->function], trace->strings[frame->file],
                                   frame->line);
    }
    return text;
}

static void check_same_stack(const struct trace *a, uint32_t x, const struct trace *b, uint32_t y) {
    char first[4096], second[4096];
    BASE_CHECK(strcmp(stack_text(a, x, first, sizeof first),
                      stack_text(b, y, second, sizeof second)) == 0);
}

// Tables may be numbered anew; what an entry says must be the same.
static void check_same_events(const struct trace *a, const struct trace *b) {
    BASE_CHECK_EQ(a->event_count, b->event_count);
    BASE_CHECK_EQ(a->device_count, b->device_count);
    for (size_t i = 0; i < a->event_count; i++) {
        const struct trace_event *x = &a->events[i], *y = &b->events[i];
        base_check_context("event %zu", i);
        BASE_CHECK_EQ(x->action, y->action);
        BASE_CHECK_EQ(x->address, y->address);
        BASE_CHECK_EQ(x->size, y->size);
        BASE_CHECK_EQ(x->time_us, y->time_us);
        BASE_CHECK_EQ(x->device, y->device);
        BASE_CHECK_EQ(a->streams[x->stream], b->streams[y->stream]);
        BASE_CHECK_EQ(a->pools[x->pool].capture, b->pools[y->pool].capture);
        BASE_CHECK_EQ(a->pools[x->pool].user, b->pools[y->pool].user);
        check_same_stack(a, x->stack, b, y->stack);
    }
    base_check_context(NULL);
}

static void check_same_final_state(const struct trace *a, const struct trace *b) {
    BASE_CHECK_EQ(a->segment_count, b->segment_count);
    BASE_CHECK_EQ(a->block_count, b->block_count);
    for (size_t i = 0; i < a->segment_count; i++) {
        const struct trace_segment *x = &a->segments[i], *y = &b->segments[i];
        BASE_CHECK_EQ(x->address, y->address);
        BASE_CHECK_EQ(x->total_size, y->total_size);
        BASE_CHECK_EQ(x->allocated_size, y->allocated_size);
        BASE_CHECK_EQ(x->active_size, y->active_size);
        BASE_CHECK_EQ(x->requested_size, y->requested_size);
        BASE_CHECK_EQ(x->block_count, y->block_count);
        BASE_CHECK_EQ(a->streams[x->stream], b->streams[y->stream]);
        BASE_CHECK_EQ(x->is_large, y->is_large);
        BASE_CHECK_EQ(x->is_expandable, y->is_expandable);
        check_same_stack(a, x->stack, b, y->stack);
    }
    for (size_t i = 0; i < a->block_count; i++) {
        const struct trace_block *x = &a->blocks[i], *y = &b->blocks[i];
        BASE_CHECK_EQ(x->address, y->address);
        BASE_CHECK_EQ(x->size, y->size);
        BASE_CHECK_EQ(x->requested_size, y->requested_size);
        BASE_CHECK_EQ(x->state, y->state);
        check_same_stack(a, x->stack, b, y->stack);
    }
}

static void check_same_settings(const struct trace_settings *a, const struct trace_settings *b) {
    BASE_CHECK_EQ(a->known, b->known);
    BASE_CHECK(strcmp(a->config, b->config) == 0);
    BASE_CHECK_EQ(a->max_split_size, b->max_split_size);
    BASE_CHECK(a->garbage_collection_threshold == b->garbage_collection_threshold);
    BASE_CHECK_EQ(a->expandable_segments, b->expandable_segments);
    BASE_CHECK(memcmp(a->roundup_power2_divisions, b->roundup_power2_divisions,
                      sizeof a->roundup_power2_divisions) == 0);
}

// A small history with stacks, two streams, a private pool, an out-of-memory entry, and numbers at
// the borders of the pickle's integer opcodes.
static struct trace *sample(void) {
    static const uint64_t borders[] = {1,
                                       255,
                                       256,
                                       65535,
                                       65536,
                                       INT32_MAX,
                                       (uint64_t)INT32_MAX + 1,
                                       (uint64_t)1 << 40,
                                       (uint64_t)1 << 47,
                                       ((uint64_t)1 << 62) + 5};
    struct trace_builder builder;
    struct trace *trace = NULL;
    uint32_t string[3], stack[2];
    uint16_t stream, pool;
    BASE_CHECK_EQ(trace_builder_init(&builder, "sample", 0), BASE_OK);
    BASE_CHECK_EQ(trace_add_stream(&builder, 94000000000, &stream), BASE_OK);
    BASE_CHECK_EQ(trace_add_pool(&builder, (struct trace_pool_id){0, 3}, &pool), BASE_OK);
    BASE_CHECK_EQ(trace_add_string(&builder, "forward", 7, &string[0]), BASE_OK);
    BASE_CHECK_EQ(trace_add_string(&builder, "model.py", 8, &string[1]), BASE_OK);
    char longer[300];
    memset(longer, 'x', sizeof longer);
    BASE_CHECK_EQ(trace_add_string(&builder, longer, sizeof longer, &string[2]), BASE_OK);
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t line = 0; line < 3 + i; line++) {
            const struct trace_frame frame = {string[i * 2], string[1], line * 100};
            BASE_CHECK_EQ(trace_add_frame(&builder, &frame), BASE_OK);
        }
        BASE_CHECK_EQ(trace_add_stack(&builder, 3 + i, &stack[i]), BASE_OK);
    }
    for (size_t i = 0; i < sizeof borders / sizeof *borders; i++) {
        const struct trace_event event = {.address = borders[i],
                                          .size = borders[i],
                                          .time_us = 1000 + i,
                                          .stack = stack[i % 2],
                                          .metadata = TRACE_NONE,
                                          .stream = i % 3 == 0 ? stream : 0,
                                          .pool = i % 4 == 0 ? pool : 0,
                                          .action = i == 4 ? TRACE_OOM : TRACE_ALLOC};
        BASE_CHECK_EQ(trace_add_event(&builder, &event), BASE_OK);
    }
    for (uint64_t i = 0; i < 3; i++) {
        const struct trace_segment segment = {.address = (i + 1) << 30,
                                              .total_size = 2 << 20,
                                              .allocated_size = 512 * i,
                                              .active_size = 1024,
                                              .requested_size = 700,
                                              .stack = i == 0 ? TRACE_NONE : stack[0],
                                              .stream = stream,
                                              .is_large = i == 1};
        BASE_CHECK_EQ(trace_add_segment(&builder, &segment), BASE_OK);
        for (uint64_t j = 0; j < i; j++) {
            const struct trace_block block = {.address = segment.address + j * 512,
                                              .size = 512,
                                              .requested_size = 300 + j,
                                              .stack = TRACE_NONE,
                                              .state = (uint8_t)(i + j - 1)};
            BASE_CHECK_EQ(trace_add_block(&builder, &block), BASE_OK);
        }
    }
    struct trace_settings *settings = &builder.trace->settings;
    settings->known = true;
    settings->max_split_size = 128 << 20;
    settings->garbage_collection_threshold = 0.8;
    settings->roundup_power2_divisions[8] = 4;
    BASE_CHECK_EQ(trace_set_text(&settings->config, "max_split_size_mb:128"), BASE_OK);
    builder.trace->has_pool_ids = true;
    BASE_CHECK_EQ(trace_builder_finish(&builder, &trace), BASE_OK);
    return trace;
}

static void a_written_snapshot_is_read_back_as_it_was(void) {
    struct trace *trace = sample(), *read = NULL;
    char path[512];
    snprintf(path, sizeof path, "%ssample.pickle", trace_test_folder());
    BASE_CHECK_EQ(trace_write_snapshot(trace, path), BASE_OK);
    enum base_status status = trace_read(path, NULL, &read);
    if (status != BASE_OK) fprintf(stderr, "%s\n", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    BASE_CHECK(strcmp(read->name, "sample") == 0);
    BASE_CHECK(strcmp(read->format, "PyTorch snapshot") == 0);
    BASE_CHECK_EQ(read->has_pool_ids, true);
    check_same_events(trace, read);
    check_same_final_state(trace, read);
    check_same_settings(&trace->settings, &read->settings);
    trace_destroy(read);
    trace_destroy(trace);
}

static void recorded_runs_survive_the_way_through_a_snapshot(const char *path) {
    struct trace *trace = NULL, *read = NULL;
    char copy[512];
    BASE_CHECK_EQ(trace_read(path, NULL, &trace), BASE_OK);
    snprintf(copy, sizeof copy, "%scopy.pickle", trace_test_folder());
    BASE_CHECK_EQ(trace_write_snapshot(trace, copy), BASE_OK);
    BASE_CHECK_EQ(trace_read(copy, NULL, &read), BASE_OK);
    check_same_events(trace, read);
    check_same_final_state(trace, read);
    check_same_settings(&trace->settings, &read->settings);
    trace_destroy(read);
    trace_destroy(trace);
}

static void a_json_beside_the_snapshot_gives_capacity_fraction_and_version(void) {
    struct trace *trace = sample(), *read = NULL;
    char path[512];
    snprintf(path, sizeof path, "%sbeside.pickle", trace_test_folder());
    BASE_CHECK_EQ(trace_write_snapshot(trace, path), BASE_OK);
    static const char good[] = "{\"device_capacity\": 85899345920, \"memory_fraction\": 0.25, "
                               "\"torch\": \"2.9.1\", \"other\": []}";
    trace_test_file("beside.json", good, strlen(good));
    BASE_CHECK_EQ(trace_read(path, NULL, &read), BASE_OK);
    BASE_CHECK_EQ(read->settings.capacity_bytes, 85899345920);
    BASE_CHECK(read->settings.memory_fraction == 0.25);
    BASE_CHECK(strcmp(read->settings.torch_version, "2.9.1") == 0);
    trace_destroy(read);
    static const char *const bad[] = {"{\"device_capacity\": -1}",
                                      "{\"device_capacity\": \"80G\"}",
                                      "{\"memory_fraction\": 1.5}",
                                      "{\"torch\": 2}",
                                      "[]",
                                      "{",
                                      ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        trace_test_file("beside.json", bad[i], strlen(bad[i]));
        BASE_CHECK_EQ(trace_read(path, NULL, &read), BASE_FORMAT);
        BASE_CHECK(strstr(base_status_message(),
                          "beside.json (read because it stands beside the snapshot)") != NULL);
    }
    trace_destroy(trace);
}

int main(int argc, char **argv) {
    a_written_snapshot_is_read_back_as_it_was();
    a_json_beside_the_snapshot_gives_capacity_fraction_and_version();
    BASE_CHECK_GT(argc, 1); // the recorded runs
    for (int i = 1; i < argc; i++) recorded_runs_survive_the_way_through_a_snapshot(argv[i]);
    return 0;
}
