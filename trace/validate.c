// What trace.h promises of every trace, checked in one walk: by the reader of .tmt files, which
// fills the tables as they come, and by the writer, which must not make a file that no reader
// takes.
#include "trace/tmt.h"

#include <string.h>

static enum base_status index_status(const char *table, size_t entry, const char *field,
                                     uint64_t value, uint64_t count) {
    return base_status_set(BASE_FORMAT, "%s %zu: %s %llu is not below %llu", table, entry, field,
                           (unsigned long long)value, (unsigned long long)count);
}

static bool in_table(uint32_t index, uint64_t count) {
    return index == TRACE_NONE || index < count;
}

static bool is_share(double value) { return value >= 0 && value <= 1; } // false for NaN

static enum base_status validate_settings(const struct trace_settings *settings) {
    if (settings->max_split_size < -1)
        return base_status_set(BASE_FORMAT,
                               "max_split_size %lld: want a number of bytes, or -1 for none",
                               (long long)settings->max_split_size);
    if (!is_share(settings->garbage_collection_threshold))
        return base_status_set(BASE_FORMAT,
                               "garbage collection threshold %g: want 0 (off) to 1",
                               settings->garbage_collection_threshold);
    if (!is_share(settings->memory_fraction))
        return base_status_set(BASE_FORMAT, "memory fraction %g: want 0 (none set) to 1",
                               settings->memory_fraction);
    return BASE_OK;
}

static enum base_status validate_sides(const struct trace *trace) {
    if (trace->stream_count == 0 || trace->streams[0] != 0)
        return base_status_set(BASE_FORMAT, "stream 0 must be the default stream, handle 0");
    if (trace->pool_count == 0 || trace->pools[0].capture != 0 || trace->pools[0].user != 0)
        return base_status_set(BASE_FORMAT, "pool 0 must be the default pool (0, 0)");
    for (uint32_t i = 0; i < trace->frame_count; i++) {
        const struct trace_frame *frame = &trace->frames[i];
        if (frame->function >= trace->string_count)
            return index_status("frame", i, "function", frame->function, trace->string_count);
        if (frame->file >= trace->string_count)
            return index_status("frame", i, "file", frame->file, trace->string_count);
    }
    for (uint32_t i = 0; i < trace->stack_count; i++) {
        const struct trace_stack *stack = &trace->stacks[i];
        if ((uint64_t)stack->first + stack->count > trace->frame_count)
            return index_status("stack", i, "last frame", (uint64_t)stack->first + stack->count,
                                trace->frame_count);
    }
    return BASE_OK;
}

static enum base_status validate_events(const struct trace *trace) {
    uint8_t device = 0;
    for (size_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];
        if (event->action >= TRACE_ACTION_COUNT)
            return index_status("event", i, "action", event->action, TRACE_ACTION_COUNT);
        if (event->device >= trace->device_count)
            return index_status("event", i, "device", event->device, trace->device_count);
        if (event->device < device)
            return base_status_set(
                BASE_FORMAT,
                "event %zu is of device %u after one of device %u; devices stand one after another",
                i, event->device, device);
        if (event->stream >= trace->stream_count)
            return index_status("event", i, "stream", event->stream, trace->stream_count);
        if (event->pool >= trace->pool_count)
            return index_status("event", i, "pool", event->pool, trace->pool_count);
        if (!in_table(event->stack, trace->stack_count))
            return index_status("event", i, "stack", event->stack, trace->stack_count);
        if (!in_table(event->metadata, trace->string_count))
            return index_status("event", i, "metadata", event->metadata, trace->string_count);
        if (event->reserved != 0)
            return index_status("event", i, "the reserved field", event->reserved, 1);
        device = event->device;
    }
    return BASE_OK;
}

// Reads the byte behind a bool, which a file may have set to anything.
static unsigned flag_byte(const bool *flag) {
    unsigned char byte;
    memcpy(&byte, flag, 1);
    return byte;
}

static enum base_status validate_segment(const struct trace *trace, size_t i) {
    const struct trace_segment *segment = &trace->segments[i];
    if (segment->device >= trace->device_count)
        return index_status("segment", i, "device", segment->device, trace->device_count);
    if (segment->stream >= trace->stream_count)
        return index_status("segment", i, "stream", segment->stream, trace->stream_count);
    if (segment->pool >= trace->pool_count)
        return index_status("segment", i, "pool", segment->pool, trace->pool_count);
    if (!in_table(segment->stack, trace->stack_count))
        return index_status("segment", i, "stack", segment->stack, trace->stack_count);
    if (flag_byte(&segment->is_large) > 1)
        return index_status("segment", i, "is_large", flag_byte(&segment->is_large), 2);
    if (flag_byte(&segment->is_expandable) > 1)
        return index_status("segment", i, "is_expandable", flag_byte(&segment->is_expandable), 2);
    if (i > 0) {
        const struct trace_segment *before = segment - 1;
        if (before->device > segment->device ||
            (before->device == segment->device && before->address > segment->address))
            return base_status_set(
                BASE_FORMAT,
                "segment %zu stands before segment %zu: order is by device, then address", i,
                i - 1);
    }
    return BASE_OK;
}

static enum base_status validate_blocks(const struct trace *trace) {
    uint64_t block_first = 0;
    for (size_t i = 0; i < trace->segment_count; i++) {
        const struct trace_segment *segment = &trace->segments[i];
        enum base_status status = validate_segment(trace, i);
        if (status != BASE_OK) return status;
        if (segment->block_first != block_first ||
            segment->block_count > trace->block_count - block_first)
            return index_status("segment", i, "last block", block_first + segment->block_count,
                                trace->block_count);
        for (uint64_t j = block_first; j < block_first + segment->block_count; j++) {
            const struct trace_block *block = &trace->blocks[j];
            if (block->state > TRACE_BLOCK_PENDING_FREE)
                return index_status("block", j, "state", block->state, 3);
            if (!in_table(block->stack, trace->stack_count))
                return index_status("block", j, "stack", block->stack, trace->stack_count);
            if (j > block_first && trace->blocks[j - 1].address > block->address)
                return base_status_set(BASE_FORMAT,
                                       "block %zu stands before block %zu: order is by address",
                                       (size_t)j, (size_t)j - 1);
        }
        block_first += segment->block_count;
    }
    if (block_first != trace->block_count)
        return base_status_set(BASE_FORMAT, "%zu blocks belong to no segment",
                               (size_t)(trace->block_count - block_first));
    return BASE_OK;
}

enum base_status trace__validate(const struct trace *trace) {
    if (trace->device_count > TRACE_DEVICE_COUNT_MAX)
        return index_status("trace", 0, "device count", trace->device_count,
                            TRACE_DEVICE_COUNT_MAX + 1);
    enum base_status status = validate_settings(&trace->settings);
    if (status == BASE_OK) status = validate_sides(trace);
    if (status == BASE_OK) status = validate_events(trace);
    if (status == BASE_OK) status = validate_blocks(trace);
    return status;
}
