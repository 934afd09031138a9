// The .tmt format: what is written is read back, and whatever is broken is said in one line.
#include "trace/testing.h"
#include "trace/tmt.h"

#include "base/check.h"
#include "base/file.h"
#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

// A file's bytes, to be broken.
struct bytes {
    unsigned char *data;
    size_t size;
};

static enum base_status read_bytes(const void *data, size_t size,
                                   const struct trace_read_options *options, struct trace **trace) {
    // A copy of exactly this size, so that the address sanitizer sees a step too far.
    unsigned char *exact = malloc(size + (size == 0));
    BASE_CHECK(exact != NULL);
    memcpy(exact, data, size);
    struct trace_input input;
    BASE_CHECK_EQ(trace_input_open_memory(&input, "memory", exact, size), BASE_OK);
    const struct trace_read_options none = {0};
    enum base_status status = trace__read_tmt(&input, options == NULL ? &none : options, trace);
    trace_input_close(&input);
    free(exact);
    return status;
}

static struct bytes written(const struct trace *trace, bool compress) {
    char path[512];
    snprintf(path, sizeof path, "%swritten.tmt", trace_test_folder());
    BASE_CHECK_EQ(trace_write(trace, path, compress), BASE_OK);
    char *data = NULL;
    struct bytes bytes;
    BASE_CHECK_EQ(base_file_read(path, BASE_GIB, &data, &bytes.size), BASE_OK);
    bytes.data = (unsigned char *)data;
    return bytes;
}

static void check_refused(const struct bytes *bytes, const char *part) {
    struct trace *trace = NULL;
    enum base_status status = read_bytes(bytes->data, bytes->size, NULL, &trace);
    BASE_CHECK(status == BASE_FORMAT || status == BASE_LIMIT);
    BASE_CHECK(trace == NULL);
    if (strstr(base_status_message(), part) == NULL) fprintf(stderr, "%s\n", base_status_message());
    BASE_CHECK(strstr(base_status_message(), part) != NULL);
    BASE_CHECK(strchr(base_status_message(), '\n') == NULL);
}

//------------------------------------------------------------------------------------------------

static void every_field_of_random_traces_comes_back(void) {
    for (uint64_t seed = 1; seed <= 60; seed++) {
        base_check_context("seed %llu", (unsigned long long)seed);
        struct trace *trace = trace_test_random(seed, seed % 7 == 0 ? 0 : (size_t)seed * 11);
        for (int compress = 0; compress < 2; compress++) {
            struct bytes bytes = written(trace, compress != 0);
            struct trace *read = NULL;
            BASE_CHECK_EQ(read_bytes(bytes.data, bytes.size, NULL, &read), BASE_OK);
            trace_test_check_equal(trace, read);
            BASE_CHECK(strcmp(read->format, ".tmt") == 0);
            trace_destroy(read);
            free(bytes.data);
        }
        trace_destroy(trace);
    }
    base_check_context(NULL);
}

static void tables_longer_than_a_group_come_back(void) {
    struct trace *trace = trace_test_random(5, 3 * (size_t)TRACE_TMT_GROUP_RECORDS + 1);
    for (int compress = 0; compress < 2; compress++) {
        struct bytes bytes = written(trace, compress != 0);
        struct trace *read = NULL;
        BASE_CHECK_EQ(read_bytes(bytes.data, bytes.size, NULL, &read), BASE_OK);
        trace_test_check_equal(trace, read);
        trace_destroy(read);
        free(bytes.data);
    }
    trace_destroy(trace);
}

static void an_empty_trace_comes_back(void) {
    struct trace *trace = trace_create(""), *read = NULL;
    struct bytes bytes = written(trace, true);
    BASE_CHECK_EQ(read_bytes(bytes.data, bytes.size, NULL, &read), BASE_OK);
    trace_test_check_equal(trace, read);
    trace_destroy(read);
    trace_destroy(trace);
    free(bytes.data);
}

// What docs/trace-format.md says, byte by byte: the numbers here come from there, not from the
// code.
static void the_bytes_are_those_of_the_documentation(void) {
    struct trace_builder builder;
    struct trace *trace = NULL;
    BASE_CHECK_EQ(trace_builder_init(&builder, "ab", 0), BASE_OK);
    const struct trace_event event = {.address = 0x1122334455667788,
                                      .size = 512,
                                      .time_us = 7,
                                      .stack = TRACE_NONE,
                                      .metadata = TRACE_NONE,
                                      .action = TRACE_FREE_REQUESTED};
    BASE_CHECK_EQ(trace_add_event(&builder, &event), BASE_OK);
    BASE_CHECK_EQ(trace_builder_finish(&builder, &trace), BASE_OK);
    trace->has_pool_ids = true;
    struct bytes bytes = written(trace, false);
    static const unsigned char head[] = {0x89, 'T',  'M',  'T',  '\r', '\n', 0x1a, '\n', 1, 0, 0, 0,
                                         10,   0,    0,    0,    1,    0,    0,    0,    1, 0, 0, 0,
                                         0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    BASE_CHECK(memcmp(bytes.data, head, sizeof head) == 0);
    static const unsigned char text_section[] = {1, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0,
                                                 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0};
    BASE_CHECK(memcmp(bytes.data + 128, text_section, sizeof text_section) == 0);
    BASE_CHECK(memcmp(bytes.data + 160, "ab\0\0\0", 6) == 0);
    static const unsigned char event_record[] = {
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0, 2, 0,    0,    0,    0,
        0,    0,    7,    0,    0,    0,    0,    0,    0, 0, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0,    0,    0,    0,    1, 0, 0,    0};
    // Header, ten section heads, text, stream 0, pool (0, 0), one event.
    BASE_CHECK_EQ(bytes.size, 128 + 10 * 32 + 6 + 8 + 16 + 40);
    BASE_CHECK(memcmp(bytes.data + bytes.size - 40, event_record, 40) == 0);
    trace_destroy(trace);
    free(bytes.data);
}

//------------------------------------------------------------------------------------------------

static void a_file_cut_at_any_byte_is_refused(void) {
    for (int compress = 0; compress < 2; compress++) {
        struct trace *trace = trace_test_random(3, 20), *read = NULL;
        struct bytes bytes = written(trace, compress != 0);
        for (size_t size = 0; size < bytes.size; size++) {
            base_check_context("cut to %zu bytes", size);
            BASE_CHECK_EQ(read_bytes(bytes.data, size, NULL, &read), BASE_FORMAT);
            BASE_CHECK(strstr(base_status_message(), "byte") != NULL);
            BASE_CHECK(read == NULL);
        }
        base_check_context(NULL);
        trace_destroy(trace);
        free(bytes.data);
    }
}

static void any_changed_byte_is_noticed(void) {
    for (int compress = 0; compress < 2; compress++) {
        struct trace *trace = trace_test_random(4, 12), *read = NULL;
        struct bytes bytes = written(trace, compress != 0);
        for (size_t i = 0; i < bytes.size; i++) {
            static const unsigned char masks[] = {0x01, 0x80, 0xff};
            for (int m = 0; m < 3; m++) {
                base_check_context("byte %zu, mask %d", i, masks[m]);
                bytes.data[i] ^= masks[m];
                enum base_status status = read_bytes(bytes.data, bytes.size, NULL, &read);
                BASE_CHECK(status == BASE_FORMAT || status == BASE_LIMIT);
                BASE_CHECK(read == NULL);
                bytes.data[i] ^= masks[m];
            }
        }
        base_check_context(NULL);
        trace_destroy(trace);
        free(bytes.data);
    }
}

static void bytes_behind_the_end_are_refused(void) {
    struct trace *trace = trace_test_random(6, 3);
    struct bytes bytes = written(trace, true);
    bytes.data = realloc(bytes.data, bytes.size + 1);
    bytes.data[bytes.size++] = 0;
    check_refused(&bytes, "end of the data");
    trace_destroy(trace);
    free(bytes.data);
}

// Sums made right again after a change, as a program would that means harm.
static void sign_header(struct bytes *bytes) {
    trace__tmt_put(bytes->data + 124, 4, crc32_z(0, bytes->data, 124));
}
static void sign_section(struct bytes *bytes, size_t head) {
    const uint64_t stored = trace__tmt_get(bytes->data + head + 16, 8);
    if (stored <= bytes->size - head - 32)
        trace__tmt_put(bytes->data + head + 24, 4,
                       crc32_z(0, bytes->data + head + 32, (size_t)stored));
    trace__tmt_put(bytes->data + head + 28, 4, crc32_z(0, bytes->data + head, 28));
}

static size_t section_head(const struct bytes *bytes, uint64_t kind) {
    size_t head = TRACE_TMT_HEADER_SIZE;
    while (trace__tmt_get(bytes->data + head, 4) != kind)
        head += 32 + (size_t)trace__tmt_get(bytes->data + head + 16, 8);
    return head;
}

static void another_version_is_named(void) {
    struct trace *trace = trace_test_random(7, 3);
    struct bytes bytes = written(trace, true);
    bytes.data[8] = 2;
    check_refused(&bytes, "version 2; this program reads version 1");
    sign_header(&bytes);
    check_refused(&bytes, "version 2; this program reads version 1");
    trace_destroy(trace);
    free(bytes.data);
}

static void claims_of_gigabytes_cost_nothing(void) {
    struct trace *trace = trace_test_random(8, 30);
    for (int compress = 0; compress < 2; compress++) {
        for (uint64_t kind = TRACE_TMT_TEXT; kind < TRACE_TMT_KIND_END; kind++) {
            for (int claim = 0; claim < 3; claim++) {
                struct bytes bytes = written(trace, compress != 0);
                const size_t head = section_head(&bytes, kind);
                // Many records, a long section, or both: 10 GB each.
                if (claim != 1) trace__tmt_put(bytes.data + head + 8, 8, 10000000000u);
                if (claim != 0) trace__tmt_put(bytes.data + head + 16, 8, 10000000000u);
                sign_section(&bytes, head);
                check_refused(&bytes, "byte");
                free(bytes.data);
            }
        }
    }
    trace_destroy(trace);
}

// 40 MB of zeros in 40 kB is legal; a limit stops it before the memory is taken.
static void the_memory_limit_stops_what_unpacks_large(void) {
    struct trace_builder builder;
    struct trace *trace = NULL, *read = NULL;
    BASE_CHECK_EQ(trace_builder_init(&builder, "large", 0), BASE_OK);
    const struct trace_event event = {.stack = TRACE_NONE, .metadata = TRACE_NONE};
    for (int i = 0; i < 1000000; i++) BASE_CHECK_EQ(trace_add_event(&builder, &event), BASE_OK);
    BASE_CHECK_EQ(trace_builder_finish(&builder, &trace), BASE_OK);
    struct bytes bytes = written(trace, true);
    BASE_CHECK_LT(bytes.size, 400000);
    const struct trace_read_options options = {.memory_limit_bytes = 8 * BASE_MIB};
    BASE_CHECK_EQ(read_bytes(bytes.data, bytes.size, &options, &read), BASE_LIMIT);
    BASE_CHECK(strstr(base_status_message(), "memory limit of 8 MiB") != NULL);
    BASE_CHECK_EQ(read_bytes(bytes.data, bytes.size, NULL, &read), BASE_OK);
    BASE_CHECK_EQ(read->event_count, 1000000);
    trace_destroy(read);
    trace_destroy(trace);
    free(bytes.data);
}

// A random trace with no table empty.
static struct trace *full_trace(void) {
    for (uint64_t seed = 1;; seed++) {
        struct trace *trace = trace_test_random(seed, 30);
        if (trace->frame_count > 0 && trace->segment_count > 1 &&
            trace->segments[0].block_count > 0 && trace->stack_count > 0 &&
            trace->string_count > 0 && trace->events[0].device == 0 && trace->events[1].device == 0)
            return trace;
        trace_destroy(trace);
    }
}

// Puts VALUE into the first record of KIND, at OFFSET in it, with right sums.
static void check_planted(uint64_t kind, size_t offset, int width, uint64_t value,
                          const char *part) {
    struct trace *trace = full_trace();
    struct bytes bytes = written(trace, false);
    const size_t head = section_head(&bytes, kind);
    trace__tmt_put(bytes.data + head + 32 + offset, width, value);
    sign_section(&bytes, head);
    check_refused(&bytes, part);
    trace_destroy(trace);
    free(bytes.data);
}

static void an_index_outside_its_table_is_named(void) {
    check_planted(TRACE_TMT_EVENTS, 24, 4, 100000, "event 0: stack 100000 is not below");
    check_planted(TRACE_TMT_EVENTS, 28, 4, 100000, "event 0: metadata 100000 is not below");
    check_planted(TRACE_TMT_EVENTS, 32, 2, 60000, "event 0: stream 60000 is not below");
    check_planted(TRACE_TMT_EVENTS, 34, 2, 60000, "event 0: pool 60000 is not below");
    check_planted(TRACE_TMT_EVENTS, 36, 1, 12, "event 0: action 12 is not below 12");
    check_planted(TRACE_TMT_EVENTS, 37, 1, 200, "event 0 is of device 200");
    check_planted(TRACE_TMT_EVENTS, 37, 1, 2, "devices stand one after another");
    check_planted(TRACE_TMT_EVENTS, 38, 2, 1, "event 0: the reserved field 1");
    check_planted(TRACE_TMT_FRAMES, 0, 4, 100000, "frame 0: function 100000");
    check_planted(TRACE_TMT_FRAMES, 4, 4, 100000, "frame 0: file 100000");
    check_planted(TRACE_TMT_STACKS, 0, 4, UINT32_MAX, "stack 0: last frame");
    check_planted(TRACE_TMT_STREAMS, 0, 8, 5, "stream 0 must be the default stream");
    check_planted(TRACE_TMT_POOLS, 8, 8, 5, "pool 0 must be the default pool");
    check_planted(TRACE_TMT_SEGMENTS, 0, 8, UINT64_MAX, "order is by device, then address");
    check_planted(TRACE_TMT_SEGMENTS, 40, 4, 100000, "the segments claim");
    check_planted(TRACE_TMT_SEGMENTS, 44, 4, 100000, "segment 0: stack 100000");
    check_planted(TRACE_TMT_SEGMENTS, 48, 2, 60000, "segment 0: stream 60000");
    check_planted(TRACE_TMT_SEGMENTS, 50, 2, 60000, "segment 0: pool 60000");
    check_planted(TRACE_TMT_SEGMENTS, 52, 1, 17, "segment 0: device 17");
    check_planted(TRACE_TMT_SEGMENTS, 53, 1, 2, "segment 0: is_large 2");
    check_planted(TRACE_TMT_SEGMENTS, 54, 1, 2, "segment 0: is_expandable 2");
    check_planted(TRACE_TMT_BLOCKS, 24, 4, 100000, "block 0: stack 100000");
    check_planted(TRACE_TMT_BLOCKS, 28, 1, 3, "block 0: state 3");
    check_planted(TRACE_TMT_STRING_LENGTHS, 0, 4, UINT32_MAX, "longer than what is left");
}

static void a_header_that_says_nonsense_is_refused(void) {
    static const struct {
        size_t offset;
        int width;
        uint64_t value;
        const char *part;
    } planted[] = {
        {12, 4, 9, "leaves sections out"},       {12, 4, 11, "the file ends"},
        {16, 4, 16, "flags 0x10 are unknown"},   {20, 4, 17, "17 devices"},
        {20, 4, 0, "the header says 0 devices"}, {24, 8, UINT64_MAX - 1, "max_split_size -2"},
        {32, 8, UINT64_C(0x7ff0000000000000), "finite"},      // infinite
        {32, 8, UINT64_C(0x4000000000000000), "threshold 2"}, // 2.0
        {48, 8, UINT64_C(0xbff0000000000000), "fraction -1"}, // -1.0
        {120, 4, 1, "byte 120: a reserved field"}};
    struct trace *trace = trace_test_random(12, 30);
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        struct bytes bytes = written(trace, false);
        trace__tmt_put(bytes.data + planted[i].offset, planted[i].width, planted[i].value);
        sign_header(&bytes);
        check_refused(&bytes, planted[i].part);
        free(bytes.data);
    }
    trace_destroy(trace);
}

static void sections_out_of_order_or_unknown_are_refused_and_optional_ones_skipped(void) {
    struct trace *trace = trace_test_random(13, 30), *read = NULL;
    struct bytes bytes = written(trace, false);
    const size_t head = section_head(&bytes, TRACE_TMT_STREAMS);
    trace__tmt_put(bytes.data + head, 4, TRACE_TMT_EVENTS);
    sign_section(&bytes, head);
    check_refused(&bytes, "a section of kind 10 where kind 2 belongs");
    trace__tmt_put(bytes.data + head, 4, TRACE_TMT_STREAMS);
    trace__tmt_put(bytes.data + head + 4, 4, 2);
    sign_section(&bytes, head);
    check_refused(&bytes, "encoding 2 is unknown");
    free(bytes.data);

    // An optional section between two others, of three bytes.
    bytes = written(trace, true);
    const size_t at = section_head(&bytes, TRACE_TMT_POOLS), added = 32 + 3;
    bytes.data = realloc(bytes.data, bytes.size + added);
    memmove(bytes.data + at + added, bytes.data + at, bytes.size - at);
    bytes.size += added;
    memset(bytes.data + at, 0, added);
    trace__tmt_put(bytes.data + at, 4, 0x8001);
    trace__tmt_put(bytes.data + at + 4, 4, 77);
    trace__tmt_put(bytes.data + at + 16, 8, 3);
    sign_section(&bytes, at);
    trace__tmt_put(bytes.data + 12, 4, 11);
    sign_header(&bytes);
    BASE_CHECK_EQ(read_bytes(bytes.data, bytes.size, NULL, &read), BASE_OK);
    trace_test_check_equal(trace, read);
    bytes.data[at + 32] ^= 1; // skipped, but summed
    check_refused(&bytes, "checksum");
    trace_destroy(read);
    trace_destroy(trace);
    free(bytes.data);
}

static void stacks_can_be_left_out(void) {
    struct trace *trace = full_trace(), *read = NULL;
    struct bytes bytes = written(trace, true);
    const struct trace_read_options options = {.no_stacks = true};
    BASE_CHECK_EQ(read_bytes(bytes.data, bytes.size, &options, &read), BASE_OK);
    BASE_CHECK_EQ(read->stack_count + read->frame_count, 0);
    for (size_t i = 0; i < read->event_count; i++) BASE_CHECK_EQ(read->events[i].stack, TRACE_NONE);
    for (size_t i = 0; i < read->block_count; i++) BASE_CHECK_EQ(read->blocks[i].stack, TRACE_NONE);
    for (size_t i = 0; i < read->segment_count; i++)
        BASE_CHECK_EQ(read->segments[i].stack, TRACE_NONE);
    trace_destroy(read);
    trace_destroy(trace);
    free(bytes.data);
}

static void a_trace_that_breaks_its_promises_is_not_written(void) {
    struct trace *trace = trace_test_random(11, 30);
    char path[512];
    snprintf(path, sizeof path, "%sbroken.tmt", trace_test_folder());
    trace->events[5].stream = 60000;
    BASE_CHECK_EQ(trace_write(trace, path, true), BASE_FORMAT);
    BASE_CHECK(strstr(base_status_message(), "event 5: stream 60000") != NULL);
    FILE *file = fopen(path, "rb");
    BASE_CHECK(file == NULL);
    trace_destroy(trace);
}

int main(void) {
    every_field_of_random_traces_comes_back();
    tables_longer_than_a_group_come_back();
    an_empty_trace_comes_back();
    the_bytes_are_those_of_the_documentation();
    a_file_cut_at_any_byte_is_refused();
    any_changed_byte_is_noticed();
    bytes_behind_the_end_are_refused();
    another_version_is_named();
    claims_of_gigabytes_cost_nothing();
    the_memory_limit_stops_what_unpacks_large();
    an_index_outside_its_table_is_named();
    a_header_that_says_nonsense_is_refused();
    sections_out_of_order_or_unknown_are_refused_and_optional_ones_skipped();
    stacks_can_be_left_out();
    a_trace_that_breaks_its_promises_is_not_written();
    return 0;
}
