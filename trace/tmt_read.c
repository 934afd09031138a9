// Reading a .tmt. Nothing of a file is believed: the header and each section head carry their own
// sum, a claimed count must fit what is stored (deflate packs at most 1,032 to 1), and tables grow
// with the bytes that really arrive, so that a lie costs neither memory nor time. Messages give the
// offset of the byte at which reading stopped, or of the section.
#include "trace/tmt.h"

#include "trace/build.h"

#include "base/check.h"
#include "base/size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

// The most bytes that one stored byte of deflate data can stand for, and what its framing adds.
enum { DEFLATE_RATIO_MAX = 1032, DEFLATE_SLACK = 1032 };

// Default memory limit: what a generous file of this size unpacks to. A raw table takes its own
// size.
#define LIMIT_BASE_BYTES BASE_GIB
enum { LIMIT_FILE_FACTOR = 4 };

struct section {
    uint64_t offset; // of its head
    uint32_t kind, encoding;
    uint64_t count, stored_size;
    uint32_t stored_crc;
};

struct reader {
    struct trace_input *input;
    struct trace *trace;
    uint64_t memory_bytes, memory_limit_bytes;
    unsigned char *packed; // one group of records, or less if no table has so many
    size_t packed_size;
    uint64_t *values; // of one field of a group
    size_t value_count;
    uint32_t section_count;
    uint32_t kind_last; // of the sections so far
    uint32_t *string_lengths;
    uint64_t string_length_count;
    char *text;
    uint64_t text_size;
};

static enum base_status format_status(uint64_t offset, const char *what) {
    return base_status_set(BASE_FORMAT, "byte %llu: %s", (unsigned long long)offset, what);
}

//------------------------------------------------------------------------------------------------
// Header and section heads.

static double get_double(const unsigned char *bytes) {
    const uint64_t bits = trace__tmt_get(bytes, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static enum base_status header_check(const unsigned char *header) {
    const uint64_t version = trace__tmt_get(header + 8, 4), flags = trace__tmt_get(header + 16, 4);
    const uint64_t devices = trace__tmt_get(header + 20, 4);
    // The version comes before the sum: a later one may lay out the rest differently.
    if (version != TRACE_TMT_VERSION)
        return base_status_set(BASE_FORMAT,
                               "byte 8: .tmt version %llu; this program reads version %d",
                               (unsigned long long)version, TRACE_TMT_VERSION);
    if (crc32_z(0, header, 124) != trace__tmt_get(header + 124, 4))
        return format_status(124, "the header's checksum does not match: the file is damaged");
    if ((flags & ~(uint64_t)TRACE_TMT_FLAGS_ALL) != 0)
        return base_status_set(BASE_FORMAT, "byte 16: flags 0x%llx are unknown in version %d",
                               (unsigned long long)flags, TRACE_TMT_VERSION);
    if (devices > TRACE_DEVICE_COUNT_MAX)
        return base_status_set(BASE_FORMAT, "byte 20: %llu devices; at most %d are possible",
                               (unsigned long long)devices, TRACE_DEVICE_COUNT_MAX);
    if (trace__tmt_get(header + 120, 4) != 0)
        return format_status(120, "a reserved field is not 0");
    const double threshold = get_double(header + 32), fraction = get_double(header + 48);
    if (!isfinite(threshold) || !isfinite(fraction))
        return format_status(
            32, "the garbage collection threshold and the memory fraction must be finite numbers");
    return BASE_OK;
}

static enum base_status read_header(struct reader *reader) {
    enum base_status status = trace_input_need(reader->input, TRACE_TMT_HEADER_SIZE);
    if (status != BASE_OK) return status;
    const unsigned char *header = reader->input->next;
    status = header_check(header);
    if (status != BASE_OK) return status;
    struct trace *trace = reader->trace;
    const uint64_t flags = trace__tmt_get(header + 16, 4);
    trace->has_pool_ids = (flags & TRACE_TMT_POOL_IDS) != 0;
    trace->settings.known = (flags & TRACE_TMT_SETTINGS_KNOWN) != 0;
    trace->settings.expandable_segments = (flags & TRACE_TMT_EXPANDABLE) != 0;
    if ((flags & TRACE_TMT_TORCH_VERSION) != 0) {
        // The text section has it; until then the presence is what counts.
        status = trace_set_text(&trace->settings.torch_version, "");
        if (status != BASE_OK) return status;
    }
    reader->section_count = (uint32_t)trace__tmt_get(header + 12, 4);
    trace->device_count = (uint32_t)trace__tmt_get(header + 20, 4);
    trace->settings.max_split_size = (int64_t)trace__tmt_get(header + 24, 8);
    trace->settings.garbage_collection_threshold = get_double(header + 32);
    trace->settings.capacity_bytes = trace__tmt_get(header + 40, 8);
    trace->settings.memory_fraction = get_double(header + 48);
    for (int i = 0; i < 16; i++)
        trace->settings.roundup_power2_divisions[i] =
            (uint32_t)trace__tmt_get(header + 56 + 4 * i, 4);
    reader->input->next += TRACE_TMT_HEADER_SIZE;
    return BASE_OK;
}

// Whether the claimed sizes can be true at all.
static enum base_status section_check(const struct reader *reader, const struct section *section,
                                      const struct trace_tmt_table *table) {
    const struct trace_input *input = reader->input;
    const uint64_t record_size = table->record_size;
    if (input->size != TRACE_INPUT_SIZE_UNKNOWN &&
        section->stored_size > input->size - trace_input_offset(input))
        return base_status_set(
            BASE_FORMAT, "byte %llu: the section of %s claims %llu bytes, the file has %llu more",
            (unsigned long long)section->offset, table->name,
            (unsigned long long)section->stored_size,
            (unsigned long long)(input->size - trace_input_offset(input)));
    const uint64_t stored = section->stored_size;
    const bool fits =
        section->encoding == TRACE_TMT_RECORDS
            ? stored % record_size == 0 && section->count == stored / record_size
            : section->count / DEFLATE_RATIO_MAX <= (stored + DEFLATE_SLACK) / record_size;
    if (!fits)
        return base_status_set(BASE_FORMAT, "byte %llu: %llu %s cannot be in %llu stored bytes",
                               (unsigned long long)section->offset,
                               (unsigned long long)section->count, table->name,
                               (unsigned long long)stored);
    return BASE_OK;
}

static enum base_status read_section_head(struct reader *reader, struct section *section) {
    section->offset = trace_input_offset(reader->input);
    enum base_status status = trace_input_need(reader->input, TRACE_TMT_SECTION_HEAD_SIZE);
    if (status != BASE_OK) return status;
    const unsigned char *head = reader->input->next;
    if (crc32_z(0, head, 28) != trace__tmt_get(head + 28, 4))
        return format_status(section->offset,
                             "a section head's checksum does not match: the file is damaged");
    section->kind = (uint32_t)trace__tmt_get(head, 4);
    section->encoding = (uint32_t)trace__tmt_get(head + 4, 4);
    section->count = trace__tmt_get(head + 8, 8);
    section->stored_size = trace__tmt_get(head + 16, 8);
    section->stored_crc = (uint32_t)trace__tmt_get(head + 24, 4);
    reader->input->next += TRACE_TMT_SECTION_HEAD_SIZE;
    if (section->kind >= TRACE_TMT_OPTIONAL_KIND) return BASE_OK;
    if (section->kind != reader->kind_last + 1 || section->kind >= TRACE_TMT_KIND_END)
        return base_status_set(BASE_FORMAT, "byte %llu: a section of kind %u where kind %u belongs",
                               (unsigned long long)section->offset, section->kind,
                               reader->kind_last + 1);
    if (section->encoding > TRACE_TMT_COLUMNS_DEFLATED)
        return base_status_set(BASE_FORMAT,
                               "byte %llu: encoding %u is unknown; 0 and 1 are possible",
                               (unsigned long long)section->offset, section->encoding);
    reader->kind_last = section->kind;
    return section_check(reader, section, trace__tmt_table((enum trace_tmt_kind)section->kind));
}

//------------------------------------------------------------------------------------------------
// The bytes of a section.

// Compressed or plain bytes of a section, summed as they pass.
struct stored {
    struct trace_input *input;
    uint64_t left;
    uLong crc;
    z_stream zlib;
    bool inflating, ended;
    uint64_t offset; // of the section
};

static enum base_status stored_inflate(struct stored *stored, unsigned char *out, size_t size) {
    stored->zlib.next_out = out;
    stored->zlib.avail_out = (uInt)size;
    while (stored->zlib.avail_out > 0) {
        if (stored->ended || stored->left == 0)
            return format_status(stored->offset,
                                 "a section's compressed data end before its last record");
        enum base_status status = trace_input_need(stored->input, 1);
        if (status != BASE_OK) return status;
        size_t chunk = (size_t)(stored->input->end - stored->input->next);
        if (chunk > stored->left) chunk = (size_t)stored->left;
        stored->zlib.next_in = (unsigned char *)(uintptr_t)stored->input->next;
        stored->zlib.avail_in = (uInt)chunk;
        const uInt room = stored->zlib.avail_out;
        const int result = inflate(&stored->zlib, Z_NO_FLUSH);
        const size_t used = chunk - stored->zlib.avail_in;
        if (result == Z_MEM_ERROR)
            return base_status_set(BASE_HOST_MEMORY, "no memory to decompress a section");
        if (result != Z_OK && result != Z_STREAM_END)
            return format_status(trace_input_offset(stored->input), "damaged compressed data");
        stored->crc = crc32_z(stored->crc, stored->input->next, used);
        stored->input->next += used;
        stored->left -= used;
        stored->ended = result == Z_STREAM_END;
        if (used == 0 && !stored->ended && stored->zlib.avail_out == room)
            return format_status(trace_input_offset(stored->input), "damaged compressed data");
    }
    return BASE_OK;
}

static enum base_status stored_read(struct stored *stored, unsigned char *out, size_t size) {
    if (stored->inflating) return stored_inflate(stored, out, size);
    enum base_status status = trace_input_read(stored->input, out, size);
    if (status != BASE_OK) return status;
    stored->crc = crc32_z(stored->crc, out, size);
    stored->left -= size;
    return BASE_OK;
}

// After the last record: the deflate stream must end here, with nothing behind it, and the sum must
// match.
static enum base_status stored_finish(struct stored *stored, const struct section *section) {
    unsigned char none;
    while (stored->inflating && !stored->ended) {
        if (stored->left == 0)
            return format_status(stored->offset, "a section's compressed data have no end mark");
        enum base_status status = trace_input_need(stored->input, 1);
        if (status != BASE_OK) return status;
        size_t chunk = (size_t)(stored->input->end - stored->input->next);
        if (chunk > stored->left) chunk = (size_t)stored->left;
        stored->zlib.next_in = (unsigned char *)(uintptr_t)stored->input->next;
        stored->zlib.avail_in = (uInt)chunk;
        stored->zlib.next_out = &none;
        stored->zlib.avail_out = 1;
        const int result = inflate(&stored->zlib, Z_NO_FLUSH);
        const size_t used = chunk - stored->zlib.avail_in;
        if (stored->zlib.avail_out == 0)
            return format_status(stored->offset, "a section unpacks to more than its records");
        if ((result != Z_OK && result != Z_STREAM_END) || (result == Z_OK && used == 0))
            return format_status(trace_input_offset(stored->input), "damaged compressed data");
        stored->crc = crc32_z(stored->crc, stored->input->next, used);
        stored->input->next += used;
        stored->left -= used;
        stored->ended = result == Z_STREAM_END;
    }
    if (stored->left != 0)
        return format_status(stored->offset, "a section has bytes after its last record");
    if (stored->crc != section->stored_crc)
        return format_status(stored->offset,
                             "a section's checksum does not match: the file is damaged");
    return BASE_OK;
}

static enum base_status limit_status(const struct reader *reader,
                                     const struct trace_tmt_table *table, uint64_t count) {
    char limit[BASE_SIZE_TEXT];
    return base_status_set(BASE_LIMIT,
                           "%llu %s of %u bytes do not fit the memory limit of %s; raise the limit",
                           (unsigned long long)count, table->name, table->struct_size,
                           base_size_format(reader->memory_limit_bytes, limit));
}

// Makes room for WANTED structs in total; *capacity grows at least by half, so that a table is
// moved few times.
static enum base_status table_grow(struct reader *reader, const struct trace_tmt_table *table,
                                   void **structs, uint64_t *capacity, uint64_t wanted,
                                   uint64_t count) {
    if (wanted <= *capacity) return BASE_OK;
    uint64_t grown = *capacity + *capacity / 2 > wanted ? *capacity + *capacity / 2 : wanted;
    if (grown > count) grown = count;
    const uint64_t left = (reader->memory_limit_bytes - reader->memory_bytes) / table->struct_size;
    if (grown - *capacity > left) {
        if (wanted - *capacity > left) return limit_status(reader, table, count);
        grown = *capacity + left;
    }
    void *moved = realloc(*structs, grown * table->struct_size);
    if (moved == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %llu %s", (unsigned long long)grown,
                               table->name);
    reader->memory_bytes += (grown - *capacity) * table->struct_size;
    *structs = moved;
    *capacity = grown;
    return BASE_OK;
}

// Room for a group of COUNT records, packed and as numbers.
static enum base_status packed_reserve(struct reader *reader, size_t count, size_t record_size) {
    if (count * record_size > reader->packed_size) {
        free(reader->packed);
        reader->packed = malloc(count * record_size);
        reader->packed_size = reader->packed == NULL ? 0 : count * record_size;
    }
    if (count > reader->value_count) {
        free(reader->values);
        reader->values = malloc(count * sizeof *reader->values);
        reader->value_count = reader->values == NULL ? 0 : count;
    }
    if (reader->packed_size == 0 || reader->value_count == 0)
        return base_status_set(BASE_HOST_MEMORY, "no memory to read records");
    return BASE_OK;
}

// One group of records to INTO. What a file holds as it is in memory is read into its place.
static enum base_status read_group(struct reader *reader, const struct section *section,
                                   const struct trace_tmt_table *table, struct stored *stored,
                                   size_t count, unsigned char *into) {
    const bool columns = section->encoding == TRACE_TMT_COLUMNS_DEFLATED;
    if (!columns && table->same_layout)
        return stored_read(stored, into, count * table->record_size);
    enum base_status status = stored_read(stored, reader->packed, count * table->record_size);
    if (status != BASE_OK) return status;
    if (columns)
        trace__tmt_unpack_columns(table, reader->packed, count, reader->values, into);
    else
        trace__tmt_unpack_records(table, reader->packed, count, into);
    return BASE_OK;
}

static enum base_status read_groups(struct reader *reader, const struct section *section,
                                    const struct trace_tmt_table *table, struct stored *stored,
                                    void **structs) {
    uint64_t done = 0, capacity = 0;
    while (done < section->count) {
        const uint64_t left = section->count - done;
        const size_t group =
            left < TRACE_TMT_GROUP_RECORDS ? (size_t)left : TRACE_TMT_GROUP_RECORDS;
        enum base_status status =
            table_grow(reader, table, structs, &capacity, done + group, section->count);
        if (status == BASE_OK) status = packed_reserve(reader, group, table->record_size);
        if (status == BASE_OK)
            status = read_group(reader, section, table, stored, group,
                                (unsigned char *)*structs + done * table->struct_size);
        if (status != BASE_OK) return status;
        done += group;
    }
    return stored_finish(stored, section);
}

// Reads a section's structs; *structs is the caller's to free, on failure too.
static enum base_status read_table(struct reader *reader, const struct section *section,
                                   void **structs) {
    const struct trace_tmt_table *table = trace__tmt_table((enum trace_tmt_kind)section->kind);
    struct stored stored = {.input = reader->input,
                            .left = section->stored_size,
                            .crc = crc32(0, NULL, 0),
                            .inflating = section->encoding == TRACE_TMT_COLUMNS_DEFLATED,
                            .offset = section->offset};
    if (stored.inflating && inflateInit(&stored.zlib) != Z_OK)
        return base_status_set(BASE_HOST_MEMORY, "no memory to decompress %s", table->name);
    enum base_status status = read_groups(reader, section, table, &stored, structs);
    if (stored.inflating) inflateEnd(&stored.zlib);
    return status;
}

static enum base_status skip_section(struct reader *reader, const struct section *section) {
    uint64_t left = section->stored_size;
    uLong crc = crc32(0, NULL, 0);
    while (left > 0) {
        enum base_status status = trace_input_need(reader->input, 1);
        if (status != BASE_OK) return status;
        size_t chunk = (size_t)(reader->input->end - reader->input->next);
        if (chunk > left) chunk = (size_t)left;
        crc = crc32_z(crc, reader->input->next, chunk);
        reader->input->next += chunk;
        left -= chunk;
    }
    if (crc != section->stored_crc)
        return format_status(section->offset,
                             "a section's checksum does not match: the file is damaged");
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Sections into the trace.

static enum base_status count_check(const struct section *section, uint64_t maximum) {
    if (section->count <= maximum) return BASE_OK;
    return base_status_set(BASE_FORMAT, "byte %llu: %llu %s; at most %llu are possible",
                           (unsigned long long)section->offset, (unsigned long long)section->count,
                           trace__tmt_table((enum trace_tmt_kind)section->kind)->name,
                           (unsigned long long)maximum);
}

// A table whose count is 32 bits wide in memory.
static enum base_status read_counted(struct reader *reader, const struct section *section,
                                     uint64_t maximum, void **structs, uint32_t *count) {
    enum base_status status = count_check(section, maximum);
    if (status == BASE_OK) status = read_table(reader, section, structs);
    if (status == BASE_OK) *count = (uint32_t)section->count;
    return status;
}

static enum base_status take_text(struct reader *reader, const struct section *section) {
    struct trace *trace = reader->trace;
    char **fields[] = {&trace->name, &trace->source, &trace->settings.config,
                       &trace->settings.torch_version};
    const char *next = reader->text;
    uint64_t left = section->count;
    for (int i = 0; i < 4; i++) {
        const size_t length = left == 0 ? 0 : strnlen(next, left);
        if (length == left)
            return format_status(section->offset,
                                 "the text section must hold four texts, each with a 0 behind");
        const bool absent = i == 3 && trace->settings.torch_version == NULL;
        if (absent && length > 0)
            return format_status(section->offset,
                                 "a torch version is given, but the header says there is none");
        enum base_status status = absent ? BASE_OK : trace_set_text(fields[i], next);
        if (status != BASE_OK) return status;
        next += length + 1;
        left -= length + 1;
    }
    return left == 0
               ? BASE_OK
               : format_status(section->offset, "the text section has bytes behind its four texts");
}

static enum base_status take_strings(struct reader *reader, const struct section *section,
                                     const char *bytes) {
    struct trace *trace = reader->trace;
    uint64_t left = section->count;
    const uint64_t table_bytes = reader->string_length_count * (sizeof(char *) + 24);
    if (table_bytes > reader->memory_limit_bytes - reader->memory_bytes)
        return limit_status(reader, trace__tmt_table(TRACE_TMT_STRING_LENGTHS),
                            reader->string_length_count);
    reader->memory_bytes += table_bytes;
    if (reader->string_length_count > 0) {
        trace->strings = calloc(reader->string_length_count, sizeof *trace->strings);
        if (trace->strings == NULL)
            return base_status_set(BASE_HOST_MEMORY, "no memory for the strings");
    }
    for (uint64_t i = 0; i < reader->string_length_count; i++) {
        const uint32_t length = reader->string_lengths[i];
        if (length > left || memchr(bytes, 0, length) != NULL)
            return base_status_set(
                BASE_FORMAT,
                "byte %llu: string %llu of %u bytes is longer than what is left or has a 0 inside",
                (unsigned long long)section->offset, (unsigned long long)i, length);
        trace->strings[i] = strndup(bytes, length);
        if (trace->strings[i] == NULL)
            return base_status_set(BASE_HOST_MEMORY, "no memory for the strings");
        trace->string_count++;
        bytes += length;
        left -= length;
    }
    return left == 0 ? BASE_OK
                     : format_status(section->offset,
                                     "there are more string bytes than the strings' lengths say");
}

static enum base_status read_strings(struct reader *reader, const struct section *section) {
    void *bytes = NULL;
    enum base_status status = read_table(reader, section, &bytes);
    if (status == BASE_OK) status = take_strings(reader, section, bytes == NULL ? "" : bytes);
    if (bytes != NULL)
        reader->memory_bytes -= section->count < reader->memory_bytes ? section->count : 0;
    free(bytes);
    return status;
}

static enum base_status read_section(struct reader *reader, const struct section *section) {
    struct trace *trace = reader->trace;
    enum base_status status;
    switch ((enum trace_tmt_kind)section->kind) {
    case TRACE_TMT_TEXT:
        status = read_table(reader, section, (void **)&reader->text);
        return status == BASE_OK ? take_text(reader, section) : status;
    case TRACE_TMT_STREAMS:
        return read_counted(reader, section, UINT16_MAX + 1, (void **)&trace->streams,
                            &trace->stream_count);
    case TRACE_TMT_POOLS:
        return read_counted(reader, section, UINT16_MAX + 1, (void **)&trace->pools,
                            &trace->pool_count);
    case TRACE_TMT_STRING_LENGTHS:
        status = count_check(section, TRACE_NONE);
        if (status == BASE_OK)
            status = read_table(reader, section, (void **)&reader->string_lengths);
        if (status == BASE_OK) reader->string_length_count = section->count;
        return status;
    case TRACE_TMT_STRING_BYTES: return read_strings(reader, section);
    case TRACE_TMT_FRAMES:
        return read_counted(reader, section, TRACE_NONE, (void **)&trace->frames,
                            &trace->frame_count);
    case TRACE_TMT_STACKS:
        return read_counted(reader, section, TRACE_NONE, (void **)&trace->stacks,
                            &trace->stack_count);
    case TRACE_TMT_SEGMENTS:
        status = count_check(section, TRACE_NONE);
        if (status == BASE_OK) status = read_table(reader, section, (void **)&trace->segments);
        if (status == BASE_OK) trace->segment_count = section->count;
        return status;
    case TRACE_TMT_BLOCKS:
        status = count_check(section, TRACE_NONE);
        if (status == BASE_OK) status = read_table(reader, section, (void **)&trace->blocks);
        if (status == BASE_OK) trace->block_count = section->count;
        return status;
    case TRACE_TMT_EVENTS:
        status = read_table(reader, section, (void **)&trace->events);
        if (status == BASE_OK) trace->event_count = section->count;
        return status;
    case TRACE_TMT_KIND_END: break;
    }
    BASE_CHECK(false);
    return BASE_FORMAT;
}

// What the file leaves to be summed up: where each segment's blocks begin and each device's events.
static enum base_status derive(struct trace *trace) {
    uint64_t block_first = 0;
    for (size_t i = 0; i < trace->segment_count; i++) {
        trace->segments[i].block_first = block_first;
        block_first += trace->segments[i].block_count;
    }
    if (block_first != trace->block_count)
        return base_status_set(BASE_FORMAT, "the segments claim %llu blocks, the file has %zu",
                               (unsigned long long)block_first, trace->block_count);
    size_t count[TRACE_DEVICE_COUNT_MAX] = {0};
    for (size_t i = 0; i < trace->event_count; i++) {
        if (trace->events[i].device >= trace->device_count)
            return base_status_set(BASE_FORMAT,
                                   "event %zu is of device %u; the header says %u devices", i,
                                   trace->events[i].device, trace->device_count);
        count[trace->events[i].device]++;
    }
    for (int device = 0; device < TRACE_DEVICE_COUNT_MAX; device++)
        trace->device_event_first[device + 1] = trace->device_event_first[device] + count[device];
    return BASE_OK;
}

static void stacks_drop(struct trace *trace) {
    free(trace->stacks);
    free(trace->frames);
    trace->stacks = NULL;
    trace->frames = NULL;
    trace->stack_count = trace->frame_count = 0;
    for (size_t i = 0; i < trace->event_count; i++) trace->events[i].stack = TRACE_NONE;
    for (size_t i = 0; i < trace->segment_count; i++) trace->segments[i].stack = TRACE_NONE;
    for (size_t i = 0; i < trace->block_count; i++) trace->blocks[i].stack = TRACE_NONE;
}

static enum base_status read_all(struct reader *reader) {
    enum base_status status = read_header(reader);
    for (uint32_t i = 0; status == BASE_OK && i < reader->section_count; i++) {
        struct section section = {0};
        status = read_section_head(reader, &section);
        if (status != BASE_OK) break;
        status = section.kind >= TRACE_TMT_OPTIONAL_KIND ? skip_section(reader, &section)
                                                         : read_section(reader, &section);
    }
    if (status == BASE_OK && reader->kind_last != TRACE_TMT_KIND_END - 1)
        status = format_status(trace_input_offset(reader->input),
                               "the header's section count leaves sections out");
    if (status == BASE_OK) status = trace_input_expect_end(reader->input);
    if (status == BASE_OK) status = derive(reader->trace);
    if (status == BASE_OK) status = trace__validate(reader->trace);
    return status;
}

static uint64_t default_limit(const struct trace_input *input) {
    if (input->size == TRACE_INPUT_SIZE_UNKNOWN) return 8 * BASE_GIB;
    return LIMIT_BASE_BYTES +
           (input->size < UINT64_MAX / 8 ? input->size * LIMIT_FILE_FACTOR : UINT64_MAX / 2);
}

enum base_status trace__read_tmt(struct trace_input *input,
                                 const struct trace_read_options *options, struct trace **trace) {
    struct reader reader = {.input = input, .memory_limit_bytes = options->memory_limit_bytes};
    if (reader.memory_limit_bytes == 0) reader.memory_limit_bytes = default_limit(input);
    reader.trace = calloc(1, sizeof *reader.trace);
    enum base_status status = reader.trace == NULL
                                  ? base_status_set(BASE_HOST_MEMORY, "no memory for a trace")
                                  : read_all(&reader);
    if (status == BASE_OK && options->no_stacks) stacks_drop(reader.trace);
    if (status == BASE_OK) reader.trace->format = ".tmt";
    free(reader.packed);
    free(reader.values);
    free(reader.string_lengths);
    free(reader.text);
    if (status == BASE_OK)
        *trace = reader.trace;
    else
        trace_destroy(reader.trace);
    return status;
}
