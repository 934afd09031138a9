// A file read front to back through one buffer: plain, or gzipped (told apart by the magic), or
// bytes in memory.
//
//     struct trace_input input;
//     status = trace_input_open(&input, path);
//     while (trace_input_need(&input, 8) == BASE_OK) { ... input.next[0 .. 7] ...; input.next += 8;
//     } trace_input_close(&input);
//
// The reader consumes by moving `next`; what lies in [next, end) is valid until the next call.
// Offsets count unpacked bytes, so that a message means the same for a file and its gzipped copy.
// Nothing is allocated by what a file claims: the buffers have fixed sizes. Not thread-safe; one
// reader an input.
//
// Messages: trace_input_open names the file; the other calls say only where, and the caller of a
// reader puts the name before (base_status_prefix), once.
#ifndef TIDEMARK_TRACE_INPUT_H
#define TIDEMARK_TRACE_INPUT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The most bytes that can be asked for at once.
#define TRACE_INPUT_WINDOW_BYTES ((size_t)64 * 1024)
#define TRACE_INPUT_SIZE_UNKNOWN UINT64_MAX

struct trace_input {
    const uint8_t *next, *end; // the bytes at hand
    char *name;                // as given, for messages
    uint64_t size; // unpacked bytes, TRACE_INPUT_SIZE_UNKNOWN if gzipped or no regular file
    bool gzipped;

    // Private from here on.
    uint64_t end_offset; // of `end` in the unpacked bytes
    bool ended;          // nothing comes after `end`
    uint8_t *buffer;
    size_t buffer_bytes;
    int file;            // -1: memory
    const uint8_t *memory, *memory_end;
    struct trace__input_gzip *gzip;
};

// BASE_IO: it cannot be opened or read (a folder, no permission), with the file's name.
enum base_status trace_input_open(struct trace_input *input, const char *path) BASE_MUST_USE;
// BYTES stay the caller's and outlive the input.
enum base_status trace_input_open_memory(struct trace_input *input, const char *name,
                                         const void *bytes, size_t size) BASE_MUST_USE;
void trace_input_close(struct trace_input *input);

// The offset of the byte at `next`.
static inline uint64_t trace_input_offset(const struct trace_input *input) {
    return input->end_offset - (uint64_t)(input->end - input->next);
}

// Brings up to COUNT bytes (at most TRACE_INPUT_WINDOW_BYTES) to `next`; fewer only where the file
// ends. BASE_IO, BASE_FORMAT (damaged or cut gzip data).
enum base_status trace_input_fill(struct trace_input *input, size_t count) BASE_MUST_USE;

// The slow half of trace_input_need: also BASE_FORMAT if the file ends before COUNT bytes.
enum base_status trace__input_need_more(struct trace_input *input, size_t count) BASE_MUST_USE;
static inline BASE_MUST_USE enum base_status trace_input_need(struct trace_input *input,
                                                              size_t count) {
    return (size_t)(input->end - input->next) >= count ? BASE_OK
                                                       : trace__input_need_more(input, count);
}

// Copies out, or passes over, any number of bytes. BASE_FORMAT if the file ends before; a COUNT
// beyond a known size fails at once.
enum base_status trace_input_read(struct trace_input *input, void *into,
                                  uint64_t count) BASE_MUST_USE;
enum base_status trace_input_skip(struct trace_input *input, uint64_t count) BASE_MUST_USE;

// Reads to the end, so that the checksum of a gzipped file has been compared: BASE_FORMAT if any
// byte is left.
enum base_status trace_input_expect_end(struct trace_input *input) BASE_MUST_USE;

#endif
