// The sections' record layouts and the two encodings of a run of records.
//
// Columns: field by field, in each field byte plane by byte plane (all lowest bytes first), a delta
// field as the difference to the record before, modulo its width. Neighbouring events differ in few
// bytes, so planes are long runs that deflate folds away: a fifth to a fourteenth of the records'
// size on recorded traces.
#include "trace/tmt.h"

#include "base/check.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "records are copied as they stand in memory");
_Static_assert(sizeof(struct trace_event) == 40, "an event is 40 bytes in the file and in memory");

#define FIELD(type, member) \
    { offsetof(type, member), sizeof(((type *)0)->member), false }
#define DELTA(type, member) \
    { offsetof(type, member), sizeof(((type *)0)->member), true }

static const struct trace_tmt_field byte_fields[] = {{0, 1, false}};
static const struct trace_tmt_field word_fields[] = {{0, 4, false}};
static const struct trace_tmt_field stream_fields[] = {{0, 8, false}};
static const struct trace_tmt_field pool_fields[] = {
    FIELD(struct trace_pool_id, capture),
    FIELD(struct trace_pool_id, user),
};
static const struct trace_tmt_field frame_fields[] = {
    FIELD(struct trace_frame, function),
    FIELD(struct trace_frame, file),
    FIELD(struct trace_frame, line),
};
static const struct trace_tmt_field stack_fields[] = {
    DELTA(struct trace_stack, first),
    FIELD(struct trace_stack, count),
};
// block_first is the sum of the counts before.
static const struct trace_tmt_field segment_fields[] = {
    DELTA(struct trace_segment, address),        FIELD(struct trace_segment, total_size),
    FIELD(struct trace_segment, allocated_size), FIELD(struct trace_segment, active_size),
    FIELD(struct trace_segment, requested_size), FIELD(struct trace_segment, block_count),
    FIELD(struct trace_segment, stack),          FIELD(struct trace_segment, stream),
    FIELD(struct trace_segment, pool),           FIELD(struct trace_segment, device),
    FIELD(struct trace_segment, is_large),       FIELD(struct trace_segment, is_expandable),
};
static const struct trace_tmt_field block_fields[] = {
    DELTA(struct trace_block, address),        FIELD(struct trace_block, size),
    FIELD(struct trace_block, requested_size), FIELD(struct trace_block, stack),
    FIELD(struct trace_block, state),
};
static const struct trace_tmt_field event_fields[] = {
    FIELD(struct trace_event, address),  FIELD(struct trace_event, size),
    DELTA(struct trace_event, time_us),  FIELD(struct trace_event, stack),
    FIELD(struct trace_event, metadata), FIELD(struct trace_event, stream),
    FIELD(struct trace_event, pool),     FIELD(struct trace_event, action),
    FIELD(struct trace_event, device),   FIELD(struct trace_event, reserved),
};

#define COUNT(fields) (sizeof(fields) / sizeof((fields)[0]))
#define TABLE(name, record_size, type, fields, same) \
    { name, record_size, sizeof(type), COUNT(fields), fields, same }

static const struct trace_tmt_table tables[] = {
    [TRACE_TMT_TEXT] = TABLE("text", 1, char, byte_fields, true),
    [TRACE_TMT_STREAMS] = TABLE("streams", 8, uint64_t, stream_fields, true),
    [TRACE_TMT_POOLS] = TABLE("pools", 16, struct trace_pool_id, pool_fields, true),
    [TRACE_TMT_STRING_LENGTHS] = TABLE("string lengths", 4, uint32_t, word_fields, true),
    [TRACE_TMT_STRING_BYTES] = TABLE("string bytes", 1, char, byte_fields, true),
    [TRACE_TMT_FRAMES] = TABLE("frames", 12, struct trace_frame, frame_fields, true),
    [TRACE_TMT_STACKS] = TABLE("stacks", 8, struct trace_stack, stack_fields, true),
    [TRACE_TMT_SEGMENTS] = TABLE("segments", 55, struct trace_segment, segment_fields, false),
    [TRACE_TMT_BLOCKS] = TABLE("blocks", 29, struct trace_block, block_fields, false),
    [TRACE_TMT_EVENTS] = TABLE("events", 40, struct trace_event, event_fields, true),
};

const struct trace_tmt_table *trace__tmt_table(enum trace_tmt_kind kind) {
    BASE_CHECK(kind >= TRACE_TMT_TEXT && kind < TRACE_TMT_KIND_END);
    return &tables[kind];
}

void trace__tmt_pack_records(const struct trace_tmt_table *table, const void *structs, size_t count,
                             unsigned char *out) {
    if (table->same_layout) {
        memcpy(out, structs, count * table->record_size);
        return;
    }
    const unsigned char *record = structs;
    for (size_t i = 0; i < count; i++, record += table->struct_size) {
        for (uint32_t f = 0; f < table->field_count; f++) {
            memcpy(out, record + table->fields[f].offset, table->fields[f].width);
            out += table->fields[f].width;
        }
    }
}

void trace__tmt_unpack_records(const struct trace_tmt_table *table, const unsigned char *in,
                               size_t count, void *structs) {
    if (table->same_layout) {
        memcpy(structs, in, count * table->record_size);
        return;
    }
    unsigned char *record = structs;
    memset(structs, 0, count * table->struct_size);
    for (size_t i = 0; i < count; i++, record += table->struct_size) {
        for (uint32_t f = 0; f < table->field_count; f++) {
            memcpy(record + table->fields[f].offset, in, table->fields[f].width);
            in += table->fields[f].width;
        }
    }
}

// One field of COUNT records to its planes. WIDTH is a constant at each call, so that the inner
// loop unrolls.
static inline void pack_field(const unsigned char *field, size_t stride, size_t count, int width,
                              bool delta, unsigned char *out) {
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++, field += stride) {
        uint64_t value = 0;
        memcpy(&value, field, (size_t)width);
        const uint64_t stored = delta ? value - before : value;
        before = value;
        for (int plane = 0; plane < width; plane++)
            out[(size_t)plane * count + i] = (unsigned char)(stored >> 8 * plane);
    }
}

// The planes of one field back to its records. Most planes are zero throughout (high bytes): they
// are told by one fast comparison and passed over.
static void unpack_field(const unsigned char *in, size_t stride, size_t count,
                         const struct trace_tmt_field *field, uint64_t *values, unsigned char *to) {
    memset(values, 0, count * sizeof *values);
    for (int plane = 0; plane < field->width; plane++, in += count) {
        if (in[0] == 0 && memcmp(in, in + 1, count - 1) == 0) continue;
        for (size_t i = 0; i < count; i++) values[i] |= (uint64_t)in[i] << 8 * plane;
    }
    if (field->delta)
        for (size_t i = 1; i < count; i++) values[i] += values[i - 1];
    switch (field->width) {
    case 1:
        for (size_t i = 0; i < count; i++) memcpy(to + i * stride, &values[i], 1);
        break;
    case 2:
        for (size_t i = 0; i < count; i++) memcpy(to + i * stride, &values[i], 2);
        break;
    case 4:
        for (size_t i = 0; i < count; i++) memcpy(to + i * stride, &values[i], 4);
        break;
    default:
        for (size_t i = 0; i < count; i++) memcpy(to + i * stride, &values[i], 8);
        break;
    }
}

void trace__tmt_pack_columns(const struct trace_tmt_table *table, const void *structs, size_t count,
                             unsigned char *out) {
    BASE_CHECK_LE(count, TRACE_TMT_GROUP_RECORDS);
    for (uint32_t f = 0; f < table->field_count; f++) {
        const struct trace_tmt_field *field = &table->fields[f];
        const unsigned char *from = (const unsigned char *)structs + field->offset;
        switch (field->width) {
        case 1: pack_field(from, table->struct_size, count, 1, field->delta, out); break;
        case 2: pack_field(from, table->struct_size, count, 2, field->delta, out); break;
        case 4: pack_field(from, table->struct_size, count, 4, field->delta, out); break;
        default: pack_field(from, table->struct_size, count, 8, field->delta, out); break;
        }
        out += count * field->width;
    }
}

void trace__tmt_unpack_columns(const struct trace_tmt_table *table, const unsigned char *in,
                               size_t count, uint64_t *values, void *structs) {
    BASE_CHECK(count > 0 && count <= TRACE_TMT_GROUP_RECORDS);
    memset(structs, 0, count * table->struct_size);
    for (uint32_t f = 0; f < table->field_count; f++) {
        const struct trace_tmt_field *field = &table->fields[f];
        unpack_field(in, table->struct_size, count, field, values,
                     (unsigned char *)structs + field->offset);
        in += count * field->width;
    }
}
