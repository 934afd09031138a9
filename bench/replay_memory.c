// replay_memory.json: memory over time and the final layout of every replay (docs/results.md).
#include "bench/replay_outcome.h"

#include "base/file.h"

#include <jansson.h>

// jansson's calls take NULL for a value that could not be made and say so by their result; one flag
// collects that.
struct writer {
    bool failed;
};

static void put(struct writer *writer, json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value) != 0) writer->failed = true;
}

static void push(struct writer *writer, json_t *array, json_t *value) {
    if (json_array_append_new(array, value) != 0) writer->failed = true;
}

// Names come from files and may hold any bytes; JSON holds UTF-8.
static json_t *text(const char *bytes) {
    json_t *value = json_string(bytes);
    if (value != NULL) return value;
    char ascii[256];
    size_t length = 0;
    for (; bytes[length] != 0 && length + 1 < sizeof ascii; length++)
        ascii[length] = (unsigned char)bytes[length] < 0x80 ? bytes[length] : '?';
    ascii[length] = 0;
    return json_string(ascii);
}

static json_t *integer(uint64_t value) {
    return json_integer((json_int_t)value);
}

static json_t *series_json(struct writer *writer, const struct workload_replay_result *result) {
    json_t *event = json_array(), *reserved = json_array(), *allocated = json_array(),
           *active = json_array();
    for (size_t i = 0; i < result->series_count; i++) {
        const struct workload_point *point = &result->series[i];
        push(writer, event, integer(point->event));
        push(writer, reserved, integer(point->reserved_bytes));
        push(writer, allocated, integer(point->allocated_bytes));
        push(writer, active, integer(point->active_bytes));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "event", event, "reserved_bytes", reserved,
                     "allocated_bytes", allocated, "active_bytes", active);
}

static json_t *streams_json(struct writer *writer, const struct workload_replay_result *result) {
    json_t *streams = json_array();
    for (size_t i = 0; i < result->stream_count; i++) {
        const struct workload_stream_use *use = &result->streams[i];
        push(writer, streams,
             json_pack("{s:I, s:I, s:I, s:I, s:I}", "stream", (json_int_t)use->stream,
                       "reserved_bytes", (json_int_t)use->reserved_bytes, "allocated_bytes",
                       (json_int_t)use->allocated_bytes, "idle_bytes", (json_int_t)use->idle_bytes,
                       "peak_idle_bytes", (json_int_t)use->peak_idle_bytes));
    }
    return streams;
}

static json_t *segment_json(struct writer *writer, const struct allocator_snapshot *snapshot,
                            const struct allocator_snapshot_segment *segment) {
    static const char *const states[] = {[ALLOCATOR_BLOCK_INACTIVE] = "inactive",
                                         [ALLOCATOR_BLOCK_ALLOCATED] = "allocated",
                                         [ALLOCATOR_BLOCK_PENDING_FREE] = "pending"};
    json_t *blocks = json_array();
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct allocator_snapshot_block *block = &snapshot->blocks[segment->block_first + i];
        const json_int_t offset =
            (json_int_t)((uintptr_t)block->address - (uintptr_t)segment->address);
        push(writer, blocks,
             json_pack("[I, I, s]", offset, (json_int_t)block->size, states[block->state]));
    }
    return json_pack(
        "{s:I, s:I, s:I, s:s, s:o}", "address", (json_int_t)(uintptr_t)segment->address, "size",
        (json_int_t)segment->total_size, "stream", (json_int_t)(uintptr_t)segment->stream, "pool",
        segment->is_large ? "large" : "small", "blocks", blocks);
}

static json_t *segments_json(struct writer *writer, const struct workload_replay_result *result) {
    json_t *segments = json_array();
    for (size_t i = 0; i < result->final_snapshot.segment_count; i++)
        push(writer, segments,
             segment_json(writer, &result->final_snapshot, &result->final_snapshot.segments[i]));
    return segments;
}

static json_t *out_of_memory_json(const struct workload_replay_result *result) {
    if (!result->out_of_memory) return json_null();
    return json_pack("{s:I, s:I, s:o}", "event", (json_int_t)result->out_of_memory_event,
                     "size_bytes", (json_int_t)result->out_of_memory_size_bytes, "message",
                     text(result->out_of_memory_message));
}

static json_t *self_check_json(const struct workload_self_check *check) {
    if (!check->checked) return json_null();
    return json_pack(
        "{s:[I, I], s:[I, I], s:[I, I], s:[I, I], s:b, s:s}", "blocks",
        (json_int_t)check->block_equal_count, (json_int_t)check->block_count, "segments",
        (json_int_t)check->segment_equal_count, (json_int_t)check->segment_count, "releases",
        (json_int_t)check->release_equal_count, (json_int_t)check->release_count, "layout",
        (json_int_t)check->layout_equal_count, (json_int_t)check->layout_count, "exact",
        check->exact, "first_difference", check->first_difference);
}

static json_t *outcome_json(struct writer *writer, const struct bench_replay_outcome *outcome) {
    const struct workload_replay_result *result = &outcome->result;
    json_t *run = json_object();
    put(writer, run, "trace", text(outcome->trace));
    put(writer, run, "source", text(outcome->source));
    put(writer, run, "rules", text(outcome->rules));
    put(writer, run, "rules_assumed", json_boolean(outcome->rules_assumed));
    put(writer, run, "config_name", text(outcome->config_name));
    put(writer, run, "config", text(outcome->config));
    put(writer, run, "recorded", json_boolean(outcome->recorded));
    put(writer, run, "capacity_bytes",
        integer(outcome->limits.capacity_known ? outcome->limits.capacity_bytes : 0));
    put(writer, run, "memory_fraction", json_real(outcome->limits.fraction));
    put(writer, run, "series", series_json(writer, result));
    put(writer, run, "streams", streams_json(writer, result));
    put(writer, run, "segments", segments_json(writer, result));
    put(writer, run, "out_of_memory", out_of_memory_json(result));
    put(writer, run, "self_check", self_check_json(&result->self_check));
    return run;
}

enum base_status bench_replay_memory_write(const struct bench_replay_outcomes *outcomes,
                                           const struct bench_context *context, const char *path) {
    struct writer writer = {false};
    json_t *root = json_object(), *context_json = json_object(), *runs = json_array();
    for (int i = 0; i < context->count; i++)
        put(&writer, context_json, context->entries[i].key, json_string(context->entries[i].value));
    for (size_t i = 0; i < outcomes->count; i++)
        push(&writer, runs, outcome_json(&writer, &outcomes->items[i]));
    put(&writer, root, "schema", json_string("tidemark-memory-1"));
    put(&writer, root, "context", context_json);
    put(&writer, root, "runs", runs);
    struct base_file file;
    enum base_status status = base_file_create(&file, path);
    if (status == BASE_OK) {
        if (writer.failed ||
            json_dumpf(root, file.stream, JSON_COMPACT | JSON_REAL_PRECISION(12)) != 0) {
            base_file_abandon(&file);
            status = base_status_set(BASE_HOST_MEMORY, "%s: no memory for its JSON", path);
        } else {
            status = base_file_commit(&file);
        }
    }
    json_decref(root);
    return status;
}
