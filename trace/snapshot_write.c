// See snapshot_write.h. Keys, their order and the words are those of PyTorch's dump. A stack is
// written once and then referred to, as the frames of equal stacks are one list in our tables.
#include "trace/snapshot_write.h"

#include "trace/tmt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Values of one list that are appended together, as Python's pickler does.
enum { LIST_BATCH = 1000 };

// Memo entries of what a trace refers to again and again.
struct writer {
    const struct trace *trace;
    struct trace_pickler pickle;
    uint32_t *stack_memo, *string_memo, *pool_memo;
    uint32_t no_frames_memo;
};

static void key_integer(struct trace_pickler *pickle, enum trace_pickle_word key, uint64_t value) {
    trace__pickler_word(pickle, key);
    trace__pickler_integer(pickle, value);
}

static void key_word(struct trace_pickler *pickle, enum trace_pickle_word key,
                     enum trace_pickle_word value) {
    trace__pickler_word(pickle, key);
    trace__pickler_word(pickle, value);
}

void trace__pickler_event(struct trace_pickler *pickle, const struct trace_event *event,
                          uint64_t stream) {
    trace__pickler_word(pickle, TRACE_PICKLE_ACTION);
    trace__pickler_text(pickle, trace_action_name((enum trace_action)event->action),
                        &pickle->action_memo[event->action]);
    key_integer(pickle, event->action == TRACE_OOM ? TRACE_PICKLE_DEVICE_FREE : TRACE_PICKLE_ADDR,
                event->address);
    key_integer(pickle, TRACE_PICKLE_SIZE, event->size);
    key_integer(pickle, TRACE_PICKLE_STREAM, stream);
    if (event->time_us != 0) key_integer(pickle, TRACE_PICKLE_TIME_US, event->time_us);
}

static void key_text_bool(struct trace_pickler *pickle, const char *key, bool value) {
    trace__pickler_text(pickle, key, NULL);
    trace__pickler_bool(pickle, value);
}

static void write_other_settings(struct trace_pickler *pickle,
                                 const struct trace_other_settings *other) {
    trace__pickler_text(pickle, "pinned_num_register_threads", NULL);
    trace__pickler_integer(pickle, other->pinned_num_register_threads);
    key_text_bool(pickle, "release_lock_on_cudamalloc", other->release_lock_on_cudamalloc);
    key_text_bool(pickle, "pinned_use_cuda_host_register", other->pinned_use_cuda_host_register);
    key_text_bool(pickle, "graph_capture_record_stream_reuse",
                  other->graph_capture_record_stream_reuse);
    trace__pickler_text(pickle, "max_round_threshold", NULL);
    trace__pickler_signed(pickle, other->max_round_threshold);
    trace__pickler_text(pickle, "max_cached_size", NULL);
    trace__pickler_signed(pickle, other->max_cached_size);
}

void trace__pickler_settings(struct trace_pickler *pickle, const struct trace_settings *settings) {
    trace__pickler_word(pickle, TRACE_PICKLE_ALLOCATOR_SETTINGS);
    trace__pickler_dict_begin(pickle);
    trace__pickler_word(pickle, TRACE_PICKLE_CONFIG);
    trace__pickler_text(pickle, settings->config, NULL);
    trace__pickler_word(pickle, TRACE_PICKLE_MAX_SPLIT_SIZE);
    trace__pickler_signed(pickle, settings->max_split_size);
    trace__pickler_word(pickle, TRACE_PICKLE_GARBAGE_COLLECTION_THRESHOLD);
    trace__pickler_number(pickle, settings->garbage_collection_threshold);
    trace__pickler_word(pickle, TRACE_PICKLE_EXPANDABLE_SEGMENTS);
    trace__pickler_bool(pickle, settings->expandable_segments);
    if (settings->other.known) write_other_settings(pickle, &settings->other);
    trace__pickler_word(pickle, TRACE_PICKLE_ROUNDUP_POWER2_DIVISIONS);
    trace__pickler_dict_begin(pickle);
    for (int i = 0; i < 16; i++) {
        char mebibytes[16];
        snprintf(mebibytes, sizeof mebibytes, "%d", 1 << i);
        trace__pickler_text(pickle, mebibytes, NULL);
        trace__pickler_integer(pickle, settings->roundup_power2_divisions[i]);
    }
    trace__pickler_dict_end(pickle);
    trace__pickler_dict_end(pickle);
}

static void write_string(struct writer *writer, uint32_t string) {
    trace__pickler_text(&writer->pickle, writer->trace->strings[string],
                        &writer->string_memo[string]);
}

static void write_stack(struct writer *writer, uint32_t index) {
    struct trace_pickler *pickle = &writer->pickle;
    uint32_t *memo = index == TRACE_NONE ? &writer->no_frames_memo : &writer->stack_memo[index];
    if (*memo != TRACE_PICKLE_UNKNOWN) {
        trace__pickler_refer(pickle, *memo);
        return;
    }
    trace__pickler_list_begin(pickle);
    *memo = trace__pickler_last_memo(pickle);
    const struct trace_stack none = {0, 0},
                             *stack = index == TRACE_NONE ? &none : &writer->trace->stacks[index];
    for (uint32_t i = 0; i < stack->count; i++) {
        const struct trace_frame *frame = &writer->trace->frames[stack->first + i];
        trace__pickler_dict_begin(pickle);
        trace__pickler_word(pickle, TRACE_PICKLE_NAME);
        write_string(writer, frame->function);
        trace__pickler_word(pickle, TRACE_PICKLE_FILENAME);
        write_string(writer, frame->file);
        key_integer(pickle, TRACE_PICKLE_LINE, frame->line);
        trace__pickler_dict_end(pickle);
    }
    trace__pickler_list_end(pickle);
}

static void write_frames(struct writer *writer, uint32_t stack) {
    trace__pickler_word(&writer->pickle, TRACE_PICKLE_FRAMES);
    write_stack(writer, stack);
}

static void write_pool(struct writer *writer, uint16_t pool) {
    trace__pickler_pair(&writer->pickle, writer->trace->pools[pool].capture,
                        writer->trace->pools[pool].user, &writer->pool_memo[pool]);
}

static void write_event(struct writer *writer, const struct trace_event *event) {
    struct trace_pickler *pickle = &writer->pickle;
    trace__pickler_dict_begin(pickle);
    trace__pickler_event(pickle, event, writer->trace->streams[event->stream]);
    if (event->metadata != TRACE_NONE) {
        trace__pickler_word(pickle, TRACE_PICKLE_USER_METADATA);
        write_string(writer, event->metadata);
    }
    if (writer->trace->has_pool_ids) {
        trace__pickler_word(pickle, TRACE_PICKLE_POOL_ID);
        write_pool(writer, event->pool);
    }
    if (event->stack != TRACE_NONE) write_frames(writer, event->stack);
    trace__pickler_dict_end(pickle);
}

static void write_block(struct writer *writer, const struct trace_block *block) {
    static const enum trace_pickle_word states[] = {
        [TRACE_BLOCK_INACTIVE] = TRACE_PICKLE_INACTIVE,
        [TRACE_BLOCK_ALLOCATED] = TRACE_PICKLE_ACTIVE_ALLOCATED,
        [TRACE_BLOCK_PENDING_FREE] = TRACE_PICKLE_ACTIVE_PENDING_FREE};
    struct trace_pickler *pickle = &writer->pickle;
    trace__pickler_dict_begin(pickle);
    key_integer(pickle, TRACE_PICKLE_ADDRESS, block->address);
    key_integer(pickle, TRACE_PICKLE_SIZE, block->size);
    key_integer(pickle, TRACE_PICKLE_REQUESTED_SIZE, block->requested_size);
    key_word(pickle, TRACE_PICKLE_STATE, states[block->state]);
    write_frames(writer, block->stack);
    trace__pickler_dict_end(pickle);
}

static void write_segment(struct writer *writer, const struct trace_segment *segment) {
    struct trace_pickler *pickle = &writer->pickle;
    trace__pickler_dict_begin(pickle);
    key_integer(pickle, TRACE_PICKLE_DEVICE, segment->device);
    key_integer(pickle, TRACE_PICKLE_ADDRESS, segment->address);
    key_integer(pickle, TRACE_PICKLE_TOTAL_SIZE, segment->total_size);
    key_integer(pickle, TRACE_PICKLE_ALLOCATED_SIZE, segment->allocated_size);
    key_integer(pickle, TRACE_PICKLE_ACTIVE_SIZE, segment->active_size);
    key_integer(pickle, TRACE_PICKLE_REQUESTED_SIZE, segment->requested_size);
    key_integer(pickle, TRACE_PICKLE_STREAM, writer->trace->streams[segment->stream]);
    key_word(pickle, TRACE_PICKLE_SEGMENT_TYPE,
             segment->is_large ? TRACE_PICKLE_LARGE : TRACE_PICKLE_SMALL);
    trace__pickler_word(pickle, TRACE_PICKLE_SEGMENT_POOL_ID);
    write_pool(writer, segment->pool);
    trace__pickler_word(pickle, TRACE_PICKLE_IS_EXPANDABLE);
    trace__pickler_bool(pickle, segment->is_expandable);
    write_frames(writer, segment->stack);
    trace__pickler_word(pickle, TRACE_PICKLE_BLOCKS);
    trace__pickler_list_begin(pickle);
    for (uint32_t i = 0; i < segment->block_count; i++) {
        write_block(writer, &writer->trace->blocks[segment->block_first + i]);
        if (i % LIST_BATCH == LIST_BATCH - 1) trace__pickler_list_break(pickle);
    }
    trace__pickler_list_end(pickle);
    trace__pickler_dict_end(pickle);
}

static void write_all(struct writer *writer) {
    const struct trace *trace = writer->trace;
    struct trace_pickler *pickle = &writer->pickle;
    trace__pickler_dict_begin(pickle);
    trace__pickler_word(pickle, TRACE_PICKLE_SEGMENTS);
    trace__pickler_list_begin(pickle);
    for (size_t i = 0; i < trace->segment_count; i++) {
        write_segment(writer, &trace->segments[i]);
        if (i % LIST_BATCH == LIST_BATCH - 1) trace__pickler_list_break(pickle);
    }
    trace__pickler_list_end(pickle);
    trace__pickler_word(pickle, TRACE_PICKLE_DEVICE_TRACES);
    trace__pickler_list_begin(pickle);
    for (uint32_t device = 0; device < trace->device_count; device++) {
        trace__pickler_list_begin(pickle);
        for (size_t i = trace->device_event_first[device];
             i < trace->device_event_first[device + 1]; i++) {
            write_event(writer, &trace->events[i]);
            if (i % LIST_BATCH == LIST_BATCH - 1) trace__pickler_list_break(pickle);
        }
        trace__pickler_list_end(pickle);
    }
    trace__pickler_list_end(pickle);
    if (trace->settings.known) trace__pickler_settings(pickle, &trace->settings);
    trace__pickler_word(pickle, TRACE_PICKLE_EXTERNAL_ANNOTATIONS);
    trace__pickler_list_begin(pickle);
    trace__pickler_list_end(pickle);
    trace__pickler_dict_end(pickle);
}

static uint32_t *memo_create(size_t count) {
    uint32_t *memo = malloc((count + 1) * sizeof *memo);
    if (memo != NULL) memset(memo, 0xff, (count + 1) * sizeof *memo); // TRACE_PICKLE_UNKNOWN
    return memo;
}

enum base_status trace_write_snapshot(const struct trace *trace, const char *path) {
    enum base_status status = trace__validate(trace);
    if (status != BASE_OK) return base_status_prefix(status, "%s", path);
    struct writer writer = {.trace = trace, .no_frames_memo = TRACE_PICKLE_UNKNOWN};
    writer.stack_memo = memo_create(trace->stack_count);
    writer.string_memo = memo_create(trace->string_count);
    writer.pool_memo = memo_create(trace->pool_count);
    if (writer.stack_memo == NULL || writer.string_memo == NULL || writer.pool_memo == NULL)
        status = base_status_set(BASE_HOST_MEMORY, "no memory to write %s", path);
    if (status == BASE_OK) status = trace__pickler_create(&writer.pickle, path);
    if (status == BASE_OK) {
        write_all(&writer);
        status = trace__pickler_finish(&writer.pickle);
    }
    free(writer.stack_memo);
    free(writer.string_memo);
    free(writer.pool_memo);
    return status;
}
