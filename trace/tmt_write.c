// Writing a .tmt. Sections go out one after another in groups of records, so that memory stays at a
// group's size however long the trace is; a section's head is written again once its size and sum
// are known. Text tables (text, strings) are gathered first: they are small.
#include "trace/tmt.h"

#include "base/check.h"
#include "base/file.h"
#include "base/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

// Level 9 takes three times as long for two percent.
enum { OUT_SIZE = 1 << 16, DEFLATE_LEVEL = 6 };

struct writer {
    struct base_file file;
    bool compress;
    unsigned char *packed; // one group of records
    unsigned char *out;    // OUT_SIZE bytes of deflated output
    uint64_t stored_size;  // of the section so far
    uLong crc;
};

static enum base_status put(struct writer *writer, const void *bytes, size_t size) {
    if (size > 0 && fwrite(bytes, 1, size, writer->file.stream) != size)
        return base_status_set(BASE_IO, "cannot write %s: %s", writer->file.path, strerror(errno));
    return BASE_OK;
}

static enum base_status put_stored(struct writer *writer, const void *bytes, size_t size) {
    if (base_interrupted())
        return base_status_set(BASE_INTERRUPTED, "interrupted; %s was not written",
                               writer->file.path);
    writer->crc = crc32_z(writer->crc, bytes, size);
    writer->stored_size += size;
    return put(writer, bytes, size);
}

static enum base_status deflate_group(struct writer *writer, z_stream *zlib,
                                      const unsigned char *bytes, size_t size, bool last) {
    zlib->next_in = (unsigned char *)(uintptr_t)bytes;
    zlib->avail_in = (uInt)size;
    do {
        zlib->next_out = writer->out;
        zlib->avail_out = OUT_SIZE;
        const int result = deflate(zlib, last ? Z_FINISH : Z_NO_FLUSH);
        BASE_CHECK(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR);
        enum base_status status = put_stored(writer, writer->out, OUT_SIZE - zlib->avail_out);
        if (status != BASE_OK) return status;
    } while (zlib->avail_out == 0);
    return BASE_OK;
}

static enum base_status write_deflated(struct writer *writer, const struct trace_tmt_table *table,
                                       const unsigned char *structs, size_t count) {
    z_stream zlib = {0};
    if (deflateInit(&zlib, DEFLATE_LEVEL) != Z_OK)
        return base_status_set(BASE_HOST_MEMORY, "no memory to compress %s", table->name);
    enum base_status status = BASE_OK;
    do {
        const size_t group = count < TRACE_TMT_GROUP_RECORDS ? count : TRACE_TMT_GROUP_RECORDS;
        trace__tmt_pack_columns(table, structs, group, writer->packed);
        count -= group;
        structs += group * table->struct_size;
        status =
            deflate_group(writer, &zlib, writer->packed, group * table->record_size, count == 0);
    } while (status == BASE_OK && count > 0);
    deflateEnd(&zlib);
    return status;
}

static enum base_status write_records(struct writer *writer, const struct trace_tmt_table *table,
                                      const unsigned char *structs, size_t count) {
    enum base_status status = BASE_OK;
    while (status == BASE_OK && count > 0) {
        const size_t group = count < TRACE_TMT_GROUP_RECORDS ? count : TRACE_TMT_GROUP_RECORDS;
        trace__tmt_pack_records(table, structs, group, writer->packed);
        count -= group;
        structs += group * table->struct_size;
        status = put_stored(writer, writer->packed, group * table->record_size);
    }
    return status;
}

static enum base_status write_section(struct writer *writer, enum trace_tmt_kind kind,
                                      const void *structs, size_t count) {
    const struct trace_tmt_table *table = trace__tmt_table(kind);
    const enum trace_tmt_encoding encoding =
        writer->compress && count > 0 ? TRACE_TMT_COLUMNS_DEFLATED : TRACE_TMT_RECORDS;
    unsigned char head[TRACE_TMT_SECTION_HEAD_SIZE] = {0};
    const off_t head_offset = ftello(writer->file.stream);
    writer->stored_size = 0;
    writer->crc = crc32(0, NULL, 0);
    enum base_status status = put(writer, head, sizeof head);
    if (status == BASE_OK) {
        status = encoding == TRACE_TMT_RECORDS ? write_records(writer, table, structs, count)
                                               : write_deflated(writer, table, structs, count);
    }
    if (status != BASE_OK) return status;
    trace__tmt_put(head, 4, kind);
    trace__tmt_put(head + 4, 4, encoding);
    trace__tmt_put(head + 8, 8, count);
    trace__tmt_put(head + 16, 8, writer->stored_size);
    trace__tmt_put(head + 24, 4, writer->crc);
    trace__tmt_put(head + 28, 4, crc32_z(0, head, 28));
    if (head_offset < 0 || fseeko(writer->file.stream, head_offset, SEEK_SET) != 0)
        return base_status_set(BASE_IO, "cannot write %s: %s", writer->file.path, strerror(errno));
    status = put(writer, head, sizeof head);
    if (status == BASE_OK && fseeko(writer->file.stream, 0, SEEK_END) != 0)
        status =
            base_status_set(BASE_IO, "cannot write %s: %s", writer->file.path, strerror(errno));
    return status;
}

static void put_double(unsigned char *bytes, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    trace__tmt_put(bytes, 8, bits);
}

static enum base_status write_header(struct writer *writer, const struct trace *trace) {
    const struct trace_settings *settings = &trace->settings;
    unsigned char header[TRACE_TMT_HEADER_SIZE] = {0};
    uint32_t flags = 0;
    if (trace->has_pool_ids) flags |= TRACE_TMT_POOL_IDS;
    if (settings->known) flags |= TRACE_TMT_SETTINGS_KNOWN;
    if (settings->expandable_segments) flags |= TRACE_TMT_EXPANDABLE;
    if (settings->torch_version != NULL) flags |= TRACE_TMT_TORCH_VERSION;
    memcpy(header, TRACE_TMT_MAGIC, TRACE_TMT_MAGIC_SIZE);
    trace__tmt_put(header + 8, 4, TRACE_TMT_VERSION);
    trace__tmt_put(header + 12, 4, TRACE_TMT_KIND_END - TRACE_TMT_TEXT);
    trace__tmt_put(header + 16, 4, flags);
    trace__tmt_put(header + 20, 4, trace->device_count);
    trace__tmt_put(header + 24, 8, (uint64_t)settings->max_split_size);
    put_double(header + 32, settings->garbage_collection_threshold);
    trace__tmt_put(header + 40, 8, settings->capacity_bytes);
    put_double(header + 48, settings->memory_fraction);
    for (int i = 0; i < 16; i++)
        trace__tmt_put(header + 56 + 4 * i, 4, settings->roundup_power2_divisions[i]);
    trace__tmt_put(header + 124, 4, crc32_z(0, header, 124));
    return put(writer, header, sizeof header);
}

// Name, source, configuration, version: each with its 0.
static enum base_status write_text(struct writer *writer, const struct trace *trace) {
    const char *texts[] = {trace->name, trace->source, trace->settings.config,
                           trace->settings.torch_version == NULL ? ""
                                                                 : trace->settings.torch_version};
    size_t size = 0;
    for (int i = 0; i < 4; i++) size += strlen(texts[i]) + 1;
    char *joined = malloc(size), *next = joined;
    if (joined == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %zu bytes of text", size);
    for (int i = 0; i < 4; i++) next = stpcpy(next, texts[i]) + 1;
    enum base_status status = write_section(writer, TRACE_TMT_TEXT, joined, size);
    free(joined);
    return status;
}

static enum base_status write_strings(struct writer *writer, const struct trace *trace) {
    size_t size = 0;
    for (uint32_t i = 0; i < trace->string_count; i++) size += strlen(trace->strings[i]);
    uint32_t *lengths = malloc(trace->string_count * sizeof *lengths + 1);
    char *joined = malloc(size + 1), *next = joined;
    if (lengths == NULL || joined == NULL) {
        free(lengths);
        free(joined);
        return base_status_set(BASE_HOST_MEMORY, "no memory for %zu bytes of strings", size);
    }
    for (uint32_t i = 0; i < trace->string_count; i++) {
        const size_t length = strlen(trace->strings[i]);
        lengths[i] = (uint32_t)length;
        memcpy(next, trace->strings[i], length);
        next += length;
    }
    enum base_status status =
        write_section(writer, TRACE_TMT_STRING_LENGTHS, lengths, trace->string_count);
    if (status == BASE_OK) status = write_section(writer, TRACE_TMT_STRING_BYTES, joined, size);
    free(lengths);
    free(joined);
    return status;
}

static enum base_status write_all(struct writer *writer, const struct trace *trace) {
    enum base_status status = write_header(writer, trace);
    if (status == BASE_OK) status = write_text(writer, trace);
    if (status == BASE_OK)
        status = write_section(writer, TRACE_TMT_STREAMS, trace->streams, trace->stream_count);
    if (status == BASE_OK)
        status = write_section(writer, TRACE_TMT_POOLS, trace->pools, trace->pool_count);
    if (status == BASE_OK) status = write_strings(writer, trace);
    if (status == BASE_OK)
        status = write_section(writer, TRACE_TMT_FRAMES, trace->frames, trace->frame_count);
    if (status == BASE_OK)
        status = write_section(writer, TRACE_TMT_STACKS, trace->stacks, trace->stack_count);
    if (status == BASE_OK)
        status = write_section(writer, TRACE_TMT_SEGMENTS, trace->segments, trace->segment_count);
    if (status == BASE_OK)
        status = write_section(writer, TRACE_TMT_BLOCKS, trace->blocks, trace->block_count);
    if (status == BASE_OK)
        status = write_section(writer, TRACE_TMT_EVENTS, trace->events, trace->event_count);
    return status;
}

enum base_status trace_write(const struct trace *trace, const char *path, bool compress) {
    enum base_status status = trace__validate(trace);
    if (status != BASE_OK) return base_status_prefix(status, "%s", path);
    struct writer writer = {.compress = compress};
    writer.packed = malloc((size_t)TRACE_TMT_GROUP_RECORDS * TRACE_TMT_RECORD_SIZE_MAX);
    writer.out = malloc(OUT_SIZE);
    if (writer.packed == NULL || writer.out == NULL)
        status = base_status_set(BASE_HOST_MEMORY, "no memory to write %s", path);
    else
        status = base_file_create(&writer.file, path);
    if (status == BASE_OK) {
        status = write_all(&writer, trace);
        if (status == BASE_OK)
            status = base_file_commit(&writer.file);
        else
            base_file_abandon(&writer.file);
    }
    free(writer.packed);
    free(writer.out);
    return status;
}
