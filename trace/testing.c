#include "trace/testing.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t some_index(struct base_random *random, uint32_t count) {
    return count == 0 || base_random_chance(random, 0.2)
               ? TRACE_NONE
               : (uint32_t)base_random_below(random, count);
}

static void add_tables(struct trace_builder *builder, struct base_random *random) {
    uint16_t index16;
    uint32_t index;
    for (uint64_t i = base_random_below(random, 5); i > 0; i--)
        BASE_CHECK_EQ(trace_add_stream(builder, base_random_next(random), &index16), BASE_OK);
    for (uint64_t i = base_random_below(random, 4); i > 0; i--) {
        const struct trace_pool_id id = {base_random_below(random, 9), base_random_next(random)};
        BASE_CHECK_EQ(trace_add_pool(builder, id, &index16), BASE_OK);
    }
    for (uint64_t i = base_random_below(random, 20); i > 0; i--) {
        char text[40];
        const size_t length = (size_t)base_random_below(random, sizeof text);
        for (size_t j = 0; j < length; j++) text[j] = (char)base_random_between(random, 1, 255);
        BASE_CHECK_EQ(trace_add_string(builder, text, length, &index), BASE_OK);
    }
    const uint32_t strings = builder->trace->string_count;
    for (uint64_t i = strings == 0 ? 0 : base_random_below(random, 10); i > 0; i--) {
        const uint32_t frames = (uint32_t)base_random_below(random, 6);
        for (uint32_t j = 0; j < frames; j++) {
            const struct trace_frame frame = {(uint32_t)base_random_below(random, strings),
                                              (uint32_t)base_random_below(random, strings),
                                              (uint32_t)base_random_next(random)};
            BASE_CHECK_EQ(trace_add_frame(builder, &frame), BASE_OK);
        }
        BASE_CHECK_EQ(trace_add_stack(builder, frames, &index), BASE_OK);
    }
}

static void add_final_state(struct trace_builder *builder, struct base_random *random) {
    for (uint64_t i = base_random_below(random, 6); i > 0; i--) {
        const struct trace_segment segment = {
            .address = base_random_next(random),
            .total_size = base_random_next(random),
            .allocated_size = base_random_next(random),
            .active_size = base_random_next(random),
            .requested_size = base_random_next(random),
            .stack = some_index(random, builder->trace->stack_count),
            .stream = (uint16_t)base_random_below(random, builder->trace->stream_count),
            .pool = (uint16_t)base_random_below(random, builder->trace->pool_count),
            .device = (uint8_t)base_random_below(random, 3),
            .is_large = base_random_chance(random, 0.5),
            .is_expandable = base_random_chance(random, 0.5)};
        BASE_CHECK_EQ(trace_add_segment(builder, &segment), BASE_OK);
        for (uint64_t j = base_random_below(random, 5); j > 0; j--) {
            const struct trace_block block = {.address = base_random_next(random),
                                              .size = base_random_next(random),
                                              .requested_size = base_random_next(random),
                                              .stack =
                                                  some_index(random, builder->trace->stack_count),
                                              .state = (uint8_t)base_random_below(random, 3)};
            BASE_CHECK_EQ(trace_add_block(builder, &block), BASE_OK);
        }
    }
}

static void add_events(struct trace_builder *builder, struct base_random *random, size_t count) {
    uint64_t time_us = base_random_below(random, 1000);
    for (size_t i = 0; i < count; i++) {
        time_us += base_random_below(random, 50);
        const struct trace_event event = {
            .address = base_random_next(random),
            .size = base_random_log_between(random, 1, UINT64_MAX),
            .time_us = base_random_chance(random, 0.01) ? base_random_next(random) : time_us,
            .stack = some_index(random, builder->trace->stack_count),
            .metadata = some_index(random, builder->trace->string_count),
            .stream = (uint16_t)base_random_below(random, builder->trace->stream_count),
            .pool = (uint16_t)base_random_below(random, builder->trace->pool_count),
            .action = (uint8_t)base_random_below(random, TRACE_ACTION_COUNT),
            .device = (uint8_t)base_random_below(random, 3)};
        BASE_CHECK_EQ(trace_add_event(builder, &event), BASE_OK);
    }
}

static void set_settings(struct trace *trace, struct base_random *random) {
    struct trace_settings *settings = &trace->settings;
    trace->has_pool_ids = base_random_chance(random, 0.5);
    settings->known = base_random_chance(random, 0.5);
    settings->expandable_segments = base_random_chance(random, 0.5);
    settings->max_split_size = (int64_t)(base_random_next(random) >> 1) - 1;
    settings->garbage_collection_threshold = base_random_unit(random);
    settings->memory_fraction = base_random_unit(random);
    settings->capacity_bytes = base_random_next(random);
    for (int i = 0; i < 16; i++)
        settings->roundup_power2_divisions[i] = (uint32_t)base_random_next(random);
    BASE_CHECK_EQ(trace_set_text(&trace->source, "a test"), BASE_OK);
    BASE_CHECK_EQ(trace_set_text(&settings->config, "max_split_size_mb:32"), BASE_OK);
    if (base_random_chance(random, 0.5))
        BASE_CHECK_EQ(trace_set_text(&settings->torch_version, "2.9.1"), BASE_OK);
}

struct trace *trace_test_random(uint64_t seed, size_t event_count) {
    struct base_random random = base_random_init(seed, "random trace");
    struct trace_builder builder;
    struct trace *trace = NULL;
    BASE_CHECK_EQ(trace_builder_init(&builder, "random", 0), BASE_OK);
    add_tables(&builder, &random);
    add_final_state(&builder, &random);
    add_events(&builder, &random, event_count);
    set_settings(builder.trace, &random);
    BASE_CHECK_EQ(trace_builder_finish(&builder, &trace), BASE_OK);
    return trace;
}

//------------------------------------------------------------------------------------------------

#define CHECK_TEXT(member)                                   \
    BASE_CHECK((a->member == NULL) == (b->member == NULL) && \
               (a->member == NULL || strcmp(a->member, b->member) == 0))
#define CHECK_TABLE(table, count)                                                                  \
    do {                                                                                           \
        BASE_CHECK_EQ(a->count, b->count);                                                         \
        BASE_CHECK(a->count == 0 || memcmp(a->table, b->table, a->count * sizeof *a->table) == 0); \
    } while (0)

static void check_settings(const struct trace_settings *a, const struct trace_settings *b) {
    BASE_CHECK_EQ(a->known, b->known);
    CHECK_TEXT(config);
    CHECK_TEXT(torch_version);
    BASE_CHECK_EQ(a->max_split_size, b->max_split_size);
    BASE_CHECK(a->garbage_collection_threshold == b->garbage_collection_threshold);
    BASE_CHECK(a->memory_fraction == b->memory_fraction);
    BASE_CHECK_EQ(a->capacity_bytes, b->capacity_bytes);
    BASE_CHECK_EQ(a->expandable_segments, b->expandable_segments);
    BASE_CHECK(memcmp(a->roundup_power2_divisions, b->roundup_power2_divisions,
                      sizeof a->roundup_power2_divisions) == 0);
}

// Field by field: these structs have padding.
static void check_final_state(const struct trace *a, const struct trace *b) {
    BASE_CHECK_EQ(a->segment_count, b->segment_count);
    for (size_t i = 0; i < a->segment_count; i++) {
        const struct trace_segment *x = &a->segments[i], *y = &b->segments[i];
        BASE_CHECK_EQ(x->address, y->address);
        BASE_CHECK_EQ(x->total_size, y->total_size);
        BASE_CHECK_EQ(x->allocated_size, y->allocated_size);
        BASE_CHECK_EQ(x->active_size, y->active_size);
        BASE_CHECK_EQ(x->requested_size, y->requested_size);
        BASE_CHECK_EQ(x->block_first, y->block_first);
        BASE_CHECK_EQ(x->block_count, y->block_count);
        BASE_CHECK_EQ(x->stack, y->stack);
        BASE_CHECK_EQ(x->stream, y->stream);
        BASE_CHECK_EQ(x->pool, y->pool);
        BASE_CHECK_EQ(x->device, y->device);
        BASE_CHECK_EQ(x->is_large, y->is_large);
        BASE_CHECK_EQ(x->is_expandable, y->is_expandable);
    }
    BASE_CHECK_EQ(a->block_count, b->block_count);
    for (size_t i = 0; i < a->block_count; i++) {
        const struct trace_block *x = &a->blocks[i], *y = &b->blocks[i];
        BASE_CHECK_EQ(x->address, y->address);
        BASE_CHECK_EQ(x->size, y->size);
        BASE_CHECK_EQ(x->requested_size, y->requested_size);
        BASE_CHECK_EQ(x->stack, y->stack);
        BASE_CHECK_EQ(x->state, y->state);
    }
}

void trace_test_check_equal(const struct trace *a, const struct trace *b) {
    CHECK_TEXT(name);
    CHECK_TEXT(source);
    check_settings(&a->settings, &b->settings);
    BASE_CHECK_EQ(a->has_pool_ids, b->has_pool_ids);
    BASE_CHECK_EQ(a->device_count, b->device_count);
    BASE_CHECK(memcmp(a->device_event_first, b->device_event_first, sizeof a->device_event_first) ==
               0);
    CHECK_TABLE(events, event_count);
    CHECK_TABLE(streams, stream_count);
    CHECK_TABLE(pools, pool_count);
    CHECK_TABLE(stacks, stack_count);
    CHECK_TABLE(frames, frame_count);
    BASE_CHECK_EQ(a->string_count, b->string_count);
    for (uint32_t i = 0; i < a->string_count; i++)
        BASE_CHECK(strcmp(a->strings[i], b->strings[i]) == 0);
    check_final_state(a, b);
}

//------------------------------------------------------------------------------------------------

const char *trace_test_folder(void) {
    static char folder[256];
    if (folder[0] != 0) return folder;
    const char *parent = getenv("TEST_TMPDIR");
    snprintf(folder, sizeof folder, "%s/trace_test.XXXXXX", parent == NULL ? "/tmp" : parent);
    BASE_CHECK(mkdtemp(folder) != NULL);
    strcat(folder, "/");
    return folder;
}

const char *trace_test_file(const char *name, const void *bytes, size_t size) {
    static char path[512];
    snprintf(path, sizeof path, "%s%s", trace_test_folder(), name);
    FILE *file = fopen(path, "wb");
    BASE_CHECK(file != NULL);
    BASE_CHECK(size == 0 || fwrite(bytes, 1, size, file) == size);
    BASE_CHECK_EQ(fclose(file), 0);
    return path;
}
