// See trace/pickle_testing.h.
#include "trace/pickle_testing.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

void pickle_test_add(struct pickle_test *test, const void *bytes, size_t size) {
    if (test->size + size > test->capacity) {
        test->capacity = 2 * (test->size + size) + 64;
        test->bytes = realloc(test->bytes, test->capacity);
        BASE_CHECK(test->bytes != NULL);
    }
    memcpy(test->bytes + test->size, bytes, size);
    test->size += size;
}

static void add_little_endian(struct pickle_test *test, uint64_t value, size_t count) {
    unsigned char bytes[8];
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    pickle_test_add(test, bytes, count);
}

void pickle_test_text(struct pickle_test *test, const char *text) {
    pickle_test_add(test, "X", 1);
    add_little_endian(test, strlen(text), 4);
    pickle_test_add(test, text, strlen(text));
}

void pickle_test_number(struct pickle_test *test, int64_t number) {
    pickle_test_add(test, "\x8a\x08", 2);
    add_little_endian(test, (uint64_t)number, 8);
}

void pickle_test_repeat(struct pickle_test *test, const char *text, size_t count) {
    size_t length = strlen(text);
    for (size_t i = 0; i < count; i++) pickle_test_add(test, text, length);
}

void pickle_test_free(struct pickle_test *test) {
    free(test->bytes);
    *test = (struct pickle_test){0};
}

void pickle_test_pair(struct pickle_test *test, const char *key, int64_t number) {
    pickle_test_text(test, key);
    pickle_test_number(test, number);
}

void pickle_test_text_pair(struct pickle_test *test, const char *key, const char *text) {
    pickle_test_text(test, key);
    pickle_test_text(test, text);
}

void pickle_test_begin(struct pickle_test *test) {
    PICKLE_TEST_ADD(test, "\x80\x04}(");
    pickle_test_text(test, "segments");
    PICKLE_TEST_ADD(test, "]");
    pickle_test_text(test, "x");
}

void pickle_test_end(struct pickle_test *test) { PICKLE_TEST_ADD(test, "u."); }

static enum base_status read_bytes(const void *bytes, size_t size, uint64_t memory_limit_bytes,
                                   struct trace **trace) {
    struct trace_input input;
    *trace = NULL;
    enum base_status status = trace_input_open_memory(&input, "test.pickle", bytes, size);
    if (status != BASE_OK) return status;
    struct trace_read_options options = {.memory_limit_bytes = memory_limit_bytes};
    status = trace__read_snapshot(&input, &options, trace);
    trace_input_close(&input);
    BASE_CHECK((status == BASE_OK) == (*trace != NULL));
    return status;
}

enum base_status pickle_test_read(const struct pickle_test *test, uint64_t memory_limit_bytes,
                                  struct trace **trace) {
    // A copy of just the size, so that a byte read behind the end is found by the checkers.
    unsigned char *bytes = malloc(test->size > 0 ? test->size : 1);
    BASE_CHECK(bytes != NULL);
    if (test->size > 0) memcpy(bytes, test->bytes, test->size);
    enum base_status status = read_bytes(bytes, test->size, memory_limit_bytes, trace);
    free(bytes);
    return status;
}

enum base_status pickle_test_read_gzip(const struct pickle_test *test, struct trace **trace) {
    z_stream stream = {0};
    BASE_CHECK_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
                  Z_OK);
    size_t bound = deflateBound(&stream, test->size);
    unsigned char *packed = malloc(bound);
    BASE_CHECK(packed != NULL);
    stream.next_in = test->bytes;
    stream.avail_in = (uInt)test->size;
    stream.next_out = packed;
    stream.avail_out = (uInt)bound;
    BASE_CHECK_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    enum base_status status = read_bytes(packed, stream.total_out, 0, trace);
    BASE_CHECK_EQ(deflateEnd(&stream), Z_OK);
    free(packed);
    return status;
}

void pickle_test_check_refused(const struct pickle_test *test, enum base_status status,
                               const char *part, const char *other) {
    struct trace *trace;
    enum base_status got = pickle_test_read(test, 0, &trace);
    trace_destroy(trace);
    const char *message = base_status_message();
    bool as_expected =
        got == status && strstr(message, part) != NULL && strstr(message, other) != NULL;
    if (!as_expected)
        fprintf(stderr, "expected %s with '%s' and '%s', got %s: %s\n", base_status_name(status),
                part, other, base_status_name(got), got == BASE_OK ? "" : message);
    BASE_CHECK(as_expected);
    BASE_CHECK(strchr(message, '\n') == NULL);
}
