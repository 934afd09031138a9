// Inputs: plain and gzipped alike, whatever a gzip file may look like, and offsets that count
// unpacked bytes.
#include "trace/input.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define DATA_BYTES 1000000

static unsigned char data[DATA_BYTES];
static char folder[] = "/tmp/input_test_XXXXXX";

static void make_data(void) {
    uint32_t state = 1;
    for (size_t i = 0; i < DATA_BYTES; i++) {
        state = state * 1664525 + 1013904223;
        data[i] = (unsigned char)(state >> 28); // half a byte of chance: it packs somewhat
    }
}

// One gzip member of data[first, first + count).
static size_t pack(size_t first, size_t count, unsigned char *packed, size_t capacity) {
    z_stream stream = {0};
    BASE_CHECK_EQ(deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
                  Z_OK);
    stream.next_in = data + first;
    stream.avail_in = (uInt)count;
    stream.next_out = packed;
    stream.avail_out = (uInt)capacity;
    BASE_CHECK_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t size = stream.total_out;
    BASE_CHECK_EQ(deflateEnd(&stream), Z_OK);
    return size;
}

// Reads to the end by needs, reads and skips, and compares with the data.
static void check_holds_data(struct trace_input *input) {
    unsigned char copy[1000];
    uint64_t at = 0;
    for (size_t step = 1; at < DATA_BYTES; step = step * 7 % 64997 + 1) {
        size_t count = step < DATA_BYTES - at ? step : (size_t)(DATA_BYTES - at);
        BASE_CHECK_EQ(trace_input_offset(input), at);
        if (step % 3 == 0 && count <= sizeof copy) {
            BASE_CHECK_EQ(trace_input_read(input, copy, count), BASE_OK);
            BASE_CHECK_EQ(memcmp(copy, data + at, count), 0);
        } else if (step % 3 == 1) {
            BASE_CHECK_EQ(trace_input_skip(input, count), BASE_OK);
        } else {
            BASE_CHECK_EQ(trace_input_need(input, count), BASE_OK);
            BASE_CHECK_EQ(memcmp(input->next, data + at, count), 0);
            input->next += count;
        }
        at += count;
    }
    BASE_CHECK_EQ(trace_input_expect_end(input), BASE_OK);
    BASE_CHECK_EQ(trace_input_need(input, 1), BASE_FORMAT);
    BASE_CHECK(strstr(base_status_message(), "ends at byte 1000000") != NULL);
}

static const char *write_file(const char *name, const void *bytes, size_t size) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    BASE_CHECK(file != NULL);
    BASE_CHECK_EQ(fwrite(bytes, 1, size, file), size);
    BASE_CHECK_EQ(fclose(file), 0);
    return path;
}

static void a_file_and_its_gzipped_copy_read_alike(void) {
    static unsigned char packed[DATA_BYTES];
    struct trace_input input;
    size_t first =
        pack(0, 400000, packed, sizeof packed); // two members, as `cat a.gz b.gz` makes them
    size_t size = first + pack(400000, DATA_BYTES - 400000, packed + first, sizeof packed - first);

    const char *path = write_file("plain", data, DATA_BYTES);
    BASE_CHECK_EQ(trace_input_open(&input, path), BASE_OK);
    BASE_CHECK(!input.gzipped && input.size == DATA_BYTES && strcmp(input.name, path) == 0);
    check_holds_data(&input);
    trace_input_close(&input);
    BASE_CHECK_EQ(unlink(path), 0);

    path = write_file("packed", packed, size);
    BASE_CHECK_EQ(trace_input_open(&input, path), BASE_OK);
    BASE_CHECK(input.gzipped && input.size == TRACE_INPUT_SIZE_UNKNOWN);
    check_holds_data(&input);
    trace_input_close(&input);
    BASE_CHECK_EQ(unlink(path), 0);

    BASE_CHECK_EQ(trace_input_open_memory(&input, "memory", data, DATA_BYTES), BASE_OK);
    check_holds_data(&input);
    trace_input_close(&input);
    BASE_CHECK_EQ(trace_input_open_memory(&input, "memory", packed, size), BASE_OK);
    check_holds_data(&input);
    trace_input_close(&input);
}

// Reads gzip data to its end and gives the status of the first call that failed.
static enum base_status drain(const unsigned char *packed, size_t size) {
    struct trace_input input;
    enum base_status status = trace_input_open_memory(&input, "memory", packed, size);
    if (status != BASE_OK) return status;
    while (status == BASE_OK && trace_input_need(&input, 1) == BASE_OK)
        input.next = input.end;
    status = trace_input_expect_end(&input);
    trace_input_close(&input);
    return status;
}

static void gzip_data_that_is_not_whole_is_refused(void) {
    static unsigned char packed[20000];
    size_t size = pack(0, 3000, packed, sizeof packed - 600);
    BASE_CHECK_EQ(drain(packed, size), BASE_OK);
    for (size_t cut = 2; cut < size; cut++) {
        base_check_context("cut after %zu bytes", cut);
        BASE_CHECK_EQ(drain(packed, cut), BASE_FORMAT);
        BASE_CHECK(strstr(base_status_message(), "cut off") != NULL);
    }
    base_check_context(NULL);
    packed[size - 5] ^= 1; // of the checksum
    BASE_CHECK_EQ(drain(packed, size), BASE_FORMAT);
    BASE_CHECK(strstr(base_status_message(), "damaged") != NULL);
    packed[size - 5] ^= 1;
    packed[size / 2] ^= 0x55;
    BASE_CHECK_EQ(drain(packed, size), BASE_FORMAT);
    packed[size / 2] ^= 0x55;

    memset(packed + size, 0, 512); // what a tape pads with
    BASE_CHECK_EQ(drain(packed, size + 512), BASE_OK);
    packed[size + 300] = 'x';
    BASE_CHECK_EQ(drain(packed, size + 512), BASE_FORMAT);
    BASE_CHECK(strstr(base_status_message(), "something else follows") != NULL);
    packed[size] = 0x1f; // half of a magic
    BASE_CHECK_EQ(drain(packed, size + 1), BASE_FORMAT);
}

static void lengths_beyond_the_end_fail_at_once(void) {
    struct trace_input input;
    BASE_CHECK_EQ(trace_input_open_memory(&input, "memory", data, 100), BASE_OK);
    BASE_CHECK_EQ(trace_input_skip(&input, 10), BASE_OK);
    BASE_CHECK_EQ(trace_input_skip(&input, UINT64_MAX), BASE_FORMAT);
    BASE_CHECK(strstr(base_status_message(), "18446744073709551615 bytes are claimed at byte 10") !=
               NULL);
    BASE_CHECK_EQ(trace_input_read(&input, data, 91), BASE_FORMAT);
    BASE_CHECK_EQ(trace_input_offset(&input), 10);
    BASE_CHECK_EQ(trace_input_skip(&input, 89), BASE_OK);
    BASE_CHECK_EQ(trace_input_expect_end(&input), BASE_FORMAT);
    BASE_CHECK(strstr(base_status_message(), "follows the end of the data at byte 99") != NULL);
    trace_input_close(&input);
}

static void what_cannot_be_read_is_named(void) {
    struct trace_input input;
    BASE_CHECK_EQ(trace_input_open(&input, "/nowhere/file"), BASE_IO);
    BASE_CHECK(strstr(base_status_message(), "/nowhere/file: cannot be opened: No such file") !=
               NULL);
    BASE_CHECK_EQ(trace_input_open(&input, folder), BASE_IO);
    BASE_CHECK(strstr(base_status_message(), "Is a directory") != NULL);
    BASE_CHECK_EQ(trace_input_open_memory(&input, "memory", NULL, 0), BASE_OK);
    BASE_CHECK_EQ(trace_input_need(&input, 1), BASE_FORMAT);
    trace_input_close(&input);
}

int main(void) {
    BASE_CHECK(mkdtemp(folder) != NULL);
    make_data();
    a_file_and_its_gzipped_copy_read_alike();
    gzip_data_that_is_not_whole_is_refused();
    lengths_beyond_the_end_fail_at_once();
    what_cannot_be_read_is_named();
    BASE_CHECK_EQ(rmdir(folder), 0);
    return 0;
}
