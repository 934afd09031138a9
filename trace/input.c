// One buffer of 256 KiB that slides over the file: it stays in the second-level cache while the
// reader walks over it, and a gigabyte costs no more memory than a kilobyte. gzip is undone here
// with zlib's inflate rather than by gzread, because gzread takes a cut file and a plain one for
// whole.
#include "trace/input.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BUFFER_BYTES ((size_t)256 * 1024)
#define PACKED_BYTES ((size_t)64 * 1024)

struct trace__input_gzip {
    z_stream stream;
    uint64_t packed_offset; // of the end of `packed`
    bool packed_ended;      // the file has no more packed bytes
    bool between_members;   // a member ended; another one may follow
    uint8_t packed[PACKED_BYTES];
};

// Up to COUNT raw bytes of the file, fewer only at its end.
static enum base_status read_raw(struct trace_input *input, uint8_t *into, size_t count,
                                 size_t *got) {
    *got = 0;
    if (input->file < 0) {
        size_t left = (size_t)(input->memory_end - input->memory);
        *got = left < count ? left : count;
        if (*got > 0) // memcpy of an empty memory may get NULL, which is undefined even for 0 bytes
            memcpy(into, input->memory, *got);
        input->memory += *got;
        return BASE_OK;
    }
    while (*got < count) {
        ssize_t bytes = read(input->file, into + *got, count - *got);
        if (bytes == 0) break;
        if (bytes > 0)
            *got += (size_t)bytes;
        else if (errno != EINTR)
            return base_status_set(BASE_IO, "cannot be read: %s", strerror(errno));
    }
    return BASE_OK;
}

static bool is_gzip(const uint8_t *bytes, size_t count) {
    return count >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

static uint64_t packed_position(const struct trace__input_gzip *gzip) {
    return gzip->packed_offset - gzip->stream.avail_in;
}

static enum base_status refill_packed(struct trace_input *input) {
    struct trace__input_gzip *gzip = input->gzip;
    if (gzip->packed_ended || gzip->stream.avail_in >= 2) return BASE_OK;
    size_t kept = gzip->stream.avail_in, got;
    memmove(gzip->packed, gzip->stream.next_in, kept);
    enum base_status status = read_raw(input, gzip->packed + kept, PACKED_BYTES - kept, &got);
    if (status != BASE_OK) return status;
    gzip->packed_ended = got < PACKED_BYTES - kept;
    gzip->packed_offset += got;
    gzip->stream.next_in = gzip->packed;
    gzip->stream.avail_in = (uInt)(kept + got);
    return BASE_OK;
}

// After a member: another one, zero bytes up to the end (tapes pad so), or the end. Sets `ended`.
static enum base_status begin_member(struct trace_input *input) {
    struct trace__input_gzip *gzip = input->gzip;
    if (is_gzip(gzip->stream.next_in, gzip->stream.avail_in)) {
        BASE_CHECK_EQ(inflateReset(&gzip->stream), Z_OK);
        gzip->between_members = false;
        return BASE_OK;
    }
    while (gzip->stream.avail_in > 0) {
        if (*gzip->stream.next_in != 0)
            return base_status_set(
                BASE_FORMAT, "the gzip data ends at packed byte %llu and something else follows",
                (unsigned long long)packed_position(gzip));
        gzip->stream.next_in++;
        gzip->stream.avail_in--;
        enum base_status status = refill_packed(input);
        if (status != BASE_OK) return status;
    }
    input->ended = true;
    return BASE_OK;
}

static enum base_status inflate_some(struct trace_input *input, uint8_t *into, size_t count,
                                     size_t *got) {
    struct trace__input_gzip *gzip = input->gzip;
    gzip->stream.next_out = into;
    gzip->stream.avail_out = (uInt)count;
    while (gzip->stream.avail_out > 0 && !input->ended) {
        enum base_status status = refill_packed(input);
        if (status == BASE_OK && gzip->between_members) status = begin_member(input);
        if (status != BASE_OK) return status;
        if (input->ended) break;
        int result = inflate(&gzip->stream, Z_NO_FLUSH);
        if (result == Z_STREAM_END)
            gzip->between_members = true;
        else if (result == Z_MEM_ERROR)
            return base_status_set(BASE_HOST_MEMORY, "no memory to unpack gzip data");
        else if (result != Z_OK && result != Z_BUF_ERROR)
            return base_status_set(BASE_FORMAT,
                                   "the gzip data is damaged near packed byte %llu (%s)",
                                   (unsigned long long)packed_position(gzip),
                                   gzip->stream.msg != NULL ? gzip->stream.msg : "bad checksum");
        else if (gzip->packed_ended && gzip->stream.avail_in == 0 && gzip->stream.avail_out > 0)
            return base_status_set(
                BASE_FORMAT,
                "the gzip data is cut off: it ends at packed byte %llu, unpacked byte %llu",
                (unsigned long long)gzip->packed_offset,
                (unsigned long long)(input->end_offset + count - gzip->stream.avail_out));
    }
    *got = count - gzip->stream.avail_out;
    return BASE_OK;
}

static enum base_status buffer_create(struct trace_input *input) {
    input->buffer = malloc(input->buffer_bytes);
    return input->buffer != NULL
               ? BASE_OK
               : base_status_set(BASE_HOST_MEMORY, "no memory for a buffer of %zu bytes",
                                 input->buffer_bytes);
}

// Decides by the first bytes whether the file is gzipped, and makes the buffer.
static enum base_status begin_reading(struct trace_input *input) {
    // A small file takes a small buffer; the two bytes of the magic fit in any.
    input->buffer_bytes = input->size < BUFFER_BYTES ? (size_t)input->size + 2 : BUFFER_BYTES;
    enum base_status status = buffer_create(input);
    if (status != BASE_OK) return status;
    size_t got;
    status = read_raw(input, input->buffer, 2, &got);
    if (status != BASE_OK) return status;
    input->next = input->buffer;
    input->end = input->buffer + got;
    input->end_offset = got;
    if (!is_gzip(input->buffer, got)) return BASE_OK;

    input->gzipped = true;
    input->size = TRACE_INPUT_SIZE_UNKNOWN;
    input->end_offset = 0;
    input->gzip = calloc(1, sizeof *input->gzip);
    if (input->gzip == NULL || inflateInit2(&input->gzip->stream, 16 + MAX_WBITS) != Z_OK) {
        free(input->gzip);
        input->gzip = NULL;
        return base_status_set(BASE_HOST_MEMORY, "no memory to unpack gzip data");
    }
    memcpy(input->gzip->packed, input->buffer, got);
    free(input->buffer);
    input->buffer_bytes = BUFFER_BYTES;
    status = buffer_create(input);
    if (status != BASE_OK) return status;
    input->next = input->end = input->buffer;
    input->gzip->packed_offset = got;
    input->gzip->stream.next_in = input->gzip->packed;
    input->gzip->stream.avail_in = (uInt)got;
    return BASE_OK;
}

static enum base_status begin_or_close(struct trace_input *input, const char *name) {
    input->name = strdup(name);
    enum base_status status = input->name == NULL
                                  ? base_status_set(BASE_HOST_MEMORY, "no memory to open it")
                                  : begin_reading(input);
    if (status != BASE_OK) trace_input_close(input);
    return status;
}

enum base_status trace_input_open(struct trace_input *input, const char *path) {
    *input = (struct trace_input){.size = TRACE_INPUT_SIZE_UNKNOWN,
                                  .file = open(path, O_RDONLY | O_CLOEXEC)};
    if (input->file < 0)
        return base_status_set(BASE_IO, "%s: cannot be opened: %s", path, strerror(errno));
    struct stat stat;
    if (fstat(input->file, &stat) == 0 && S_ISREG(stat.st_mode))
        input->size = (uint64_t)stat.st_size;
    enum base_status status = begin_or_close(input, path);
    return status == BASE_OK ? BASE_OK : base_status_prefix(status, "%s", path);
}

enum base_status trace_input_open_memory(struct trace_input *input, const char *name,
                                         const void *bytes, size_t size) {
    *input = (struct trace_input){.size = size, .file = -1, .memory = bytes};
    input->memory_end = size > 0 ? input->memory + size : input->memory;
    enum base_status status = begin_or_close(input, name);
    return status == BASE_OK ? BASE_OK : base_status_prefix(status, "%s", name);
}

void trace_input_close(struct trace_input *input) {
    if (input->gzip != NULL) (void)inflateEnd(&input->gzip->stream);
    free(input->gzip);
    free(input->buffer);
    free(input->name);
    if (input->file >= 0) close(input->file);
    *input = (struct trace_input){.file = -1, .ended = true};
}

enum base_status trace_input_fill(struct trace_input *input, size_t count) {
    BASE_CHECK(count <= TRACE_INPUT_WINDOW_BYTES);
    size_t kept = (size_t)(input->end - input->next);
    if (kept >= count || input->ended) return BASE_OK;
    memmove(input->buffer, input->next, kept);
    input->next = input->buffer;
    input->end = input->buffer + kept;
    size_t wanted = input->buffer_bytes - kept, got = 0;
    enum base_status status;
    if (input->gzip != NULL) {
        status = inflate_some(input, input->buffer + kept, wanted, &got);
    } else {
        status = read_raw(input, input->buffer + kept, wanted, &got);
        input->ended = status == BASE_OK && got < wanted;
    }
    if (status != BASE_OK) return status;
    input->end += got;
    input->end_offset += got;
    return BASE_OK;
}

static enum base_status cut_off(const struct trace_input *input) {
    return base_status_set(BASE_FORMAT, "the file ends at byte %llu, in the middle: it is cut off",
                           (unsigned long long)input->end_offset);
}

// Whether COUNT more bytes are more than a file of known size has.
static bool is_beyond_end(const struct trace_input *input, uint64_t count) {
    if (input->size == TRACE_INPUT_SIZE_UNKNOWN) return false;
    uint64_t offset = trace_input_offset(input); // beyond the size where the file grows meanwhile
    return count > (offset < input->size ? input->size - offset : 0);
}

enum base_status trace__input_need_more(struct trace_input *input, size_t count) {
    enum base_status status = trace_input_fill(input, count);
    if (status != BASE_OK) return status;
    return (size_t)(input->end - input->next) >= count ? BASE_OK : cut_off(input);
}

// Copies to INTO unless it is NULL.
static enum base_status pass_over(struct trace_input *input, uint8_t *into, uint64_t count) {
    while (count > 0) {
        enum base_status status = trace_input_need(input, 1);
        if (status != BASE_OK) return status;
        uint64_t step = (uint64_t)(input->end - input->next);
        if (step > count) step = count;
        if (into != NULL) {
            memcpy(into, input->next, step);
            into += step;
        }
        input->next += step;
        count -= step;
    }
    return BASE_OK;
}

static enum base_status check_claim(const struct trace_input *input, uint64_t count) {
    if (is_beyond_end(input, count))
        return base_status_set(
            BASE_FORMAT, "%llu bytes are claimed at byte %llu, but the file ends at byte %llu",
            (unsigned long long)count, (unsigned long long)trace_input_offset(input),
            (unsigned long long)input->size);
    return BASE_OK;
}

enum base_status trace_input_read(struct trace_input *input, void *into, uint64_t count) {
    enum base_status status = check_claim(input, count);
    return status == BASE_OK ? pass_over(input, into, count) : status;
}

enum base_status trace_input_skip(struct trace_input *input, uint64_t count) {
    enum base_status status = check_claim(input, count);
    return status == BASE_OK ? pass_over(input, NULL, count) : status;
}

enum base_status trace_input_expect_end(struct trace_input *input) {
    enum base_status status = trace_input_fill(input, 1);
    if (status != BASE_OK) return status;
    if (input->next == input->end) return BASE_OK;
    return base_status_set(BASE_FORMAT, "something follows the end of the data at byte %llu",
                           (unsigned long long)trace_input_offset(input));
}
