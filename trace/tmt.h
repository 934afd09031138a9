// The .tmt file, as docs/trace-format.md describes it: constants, section tables and the codec of
// records that reader and writer share. Inside trace/ only.
//
// A section is a table of records. A kind lists the fields of its record once, with their place in
// memory; both encodings follow from that list, so a field cannot be written one way and read
// another.
#ifndef TIDEMARK_TRACE_TMT_H
#define TIDEMARK_TRACE_TMT_H

#include "trace/input.h"
#include "trace/trace.h"

// Like PNG's: a byte that is no ASCII, a DOS line end, a DOS end of file, a UNIX line end:
// transfers as text show.
#define TRACE_TMT_MAGIC "\x89TMT\r\n\x1a\n"

enum {
    TRACE_TMT_MAGIC_SIZE = 8,
    TRACE_TMT_VERSION = 1,
    TRACE_TMT_HEADER_SIZE = 128,
    TRACE_TMT_SECTION_HEAD_SIZE = 32,
    TRACE_TMT_GROUP_RECORDS = 16384, // records that are turned into columns together
    TRACE_TMT_RECORD_SIZE_MAX = 64,
    TRACE_TMT_OPTIONAL_KIND = 1 << 15, // a reader skips a kind from here on if it does not know it
};

enum trace_tmt_flag {
    TRACE_TMT_POOL_IDS = 1 << 0,
    TRACE_TMT_SETTINGS_KNOWN = 1 << 1,
    TRACE_TMT_EXPANDABLE = 1 << 2,
    TRACE_TMT_TORCH_VERSION = 1 << 3,
    TRACE_TMT_FLAGS_ALL = (1 << 4) - 1,
};

enum trace_tmt_encoding { TRACE_TMT_RECORDS, TRACE_TMT_COLUMNS_DEFLATED };

// In the order in which they stand in a file; each once.
enum trace_tmt_kind {
    TRACE_TMT_TEXT = 1,
    TRACE_TMT_STREAMS,
    TRACE_TMT_POOLS,
    TRACE_TMT_STRING_LENGTHS,
    TRACE_TMT_STRING_BYTES,
    TRACE_TMT_FRAMES,
    TRACE_TMT_STACKS,
    TRACE_TMT_SEGMENTS,
    TRACE_TMT_BLOCKS,
    TRACE_TMT_EVENTS,
    TRACE_TMT_KIND_END,
};

struct trace_tmt_field {
    uint16_t offset; // in the struct
    uint8_t width;   // bytes: 1, 2, 4 or 8
    bool delta;      // columns hold the difference to the record before
};

struct trace_tmt_table {
    const char *name;     // in messages
    uint32_t record_size; // in the file
    uint32_t struct_size; // in memory
    uint32_t field_count;
    const struct trace_tmt_field *fields;
    bool same_layout; // a record in the file is the struct in memory, byte for byte
};

const struct trace_tmt_table *trace__tmt_table(enum trace_tmt_kind kind);

// COUNT structs to COUNT * record_size bytes and back. VALUES is room for COUNT numbers. The
// columns take at most TRACE_TMT_GROUP_RECORDS at a time.
void trace__tmt_pack_records(const struct trace_tmt_table *table, const void *structs, size_t count,
                             unsigned char *out);
void trace__tmt_unpack_records(const struct trace_tmt_table *table, const unsigned char *in,
                               size_t count, void *structs);
void trace__tmt_pack_columns(const struct trace_tmt_table *table, const void *structs, size_t count,
                             unsigned char *out);
void trace__tmt_unpack_columns(const struct trace_tmt_table *table, const unsigned char *in,
                               size_t count, uint64_t *values, void *structs);

// The promises of trace.h: every index in its table, every action in the list, devices and segments
// in order. BASE_FORMAT names the table, the entry and what would be right.
enum base_status trace__validate(const struct trace *trace) BASE_MUST_USE;

// Reads a .tmt from its first byte; the input's offset is 0.
enum base_status trace__read_tmt(struct trace_input *input,
                                 const struct trace_read_options *options,
                                 struct trace **trace) BASE_MUST_USE;

// Little-endian numbers at BYTES.
static inline uint64_t trace__tmt_get(const unsigned char *bytes, int width) {
    uint64_t value = 0;
    for (int i = width - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}
static inline void trace__tmt_put(unsigned char *bytes, int width, uint64_t value) {
    for (int i = 0; i < width; i++, value >>= 8) bytes[i] = (unsigned char)value;
}

#endif
