// From the records of a whole pickle to the trace: what hangs on the outermost dict is taken,
// everything else dropped.
//
// Events are made in the trace's own table while the file streams by. Nearly always they are just
// the device traces, in order, and stay where they are; what lies between (host traces, whose
// events look the same) is closed up in place.
#include "trace/snapshot.h"

#include "base/progress.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// What the reader may hold beside half of the file: buffers, tables of small files.
#define MEMORY_FIXED_BYTES (64 * BASE_MIB)
// Memory is looked at after so many copies.
#define COPIES_BETWEEN_CHECKS 65536

//------------------------------------------------------------------------------------------------
// Memory.

static uint64_t table_bytes(size_t capacity, size_t size) { return (uint64_t)capacity * size; }

// The trace's tables count by what is in them: room that was never touched takes no memory.
static uint64_t held_bytes(const struct snapshot *s) {
    const struct trace *trace = s->builder.trace;
    return table_bytes(s->frames.capacity, sizeof *s->frames.entries) +
           table_bytes(s->blocks.capacity, sizeof *s->blocks.entries) +
           table_bytes(s->segments.capacity, sizeof *s->segments.entries) +
           table_bytes(s->histories.capacity, sizeof *s->histories.entries) +
           table_bytes(s->settings.capacity, sizeof *s->settings.entries) +
           table_bytes(s->divisions.capacity, sizeof *s->divisions.entries) +
           table_bytes(s->tops.capacity, sizeof *s->tops.entries) +
           table_bytes(s->device_lists.capacity, sizeof *s->device_lists.entries) +
           table_bytes(s->ranges.capacity, sizeof *s->ranges.entries) +
           table_bytes(s->faults.capacity, sizeof *s->faults.entries) +
           table_bytes(s->string_map.capacity, sizeof *s->string_map.entries) + s->string_bytes +
           trace__snapshot_stack_bytes(s) + table_bytes(trace->event_count, sizeof *trace->events) +
           table_bytes(trace->stack_count, sizeof *trace->stacks) +
           table_bytes(trace->frame_count, sizeof *trace->frames) +
           table_bytes(trace->segment_count, sizeof *trace->segments) +
           table_bytes(trace->block_count, sizeof *trace->blocks) +
           (s->builder.string_index.slot_count + s->builder.stack_index.slot_count) *
               sizeof(uint32_t);
}

enum base_status trace__snapshot_check_memory(void *context, uint64_t machine_bytes) {
    struct snapshot *snapshot = context;
    snapshot->machine_bytes = machine_bytes;
    if (base_interrupted())
        return base_status_set(BASE_INTERRUPTED, "interrupted while it was read");
    const struct trace_input *input = snapshot->input;
    uint64_t limit = snapshot->memory_limit_bytes;
    // Of a gzipped file the size is not known before its end: what came so far counts.
    uint64_t size =
        input->size != TRACE_INPUT_SIZE_UNKNOWN ? input->size : trace_input_offset(input);
    // A recording without stacks is nearly all events, and an event is larger here than in a short
    // file: honest files of any size have to pass.
    const struct trace *trace = snapshot->builder.trace;
    if (limit == 0)
        limit = size / 2 + MEMORY_FIXED_BYTES + trace->event_count * sizeof *trace->events;
    uint64_t held = held_bytes(snapshot) + machine_bytes;
    if (held <= limit) return BASE_OK;
    char limit_text[BASE_SIZE_TEXT];
    return base_status_set(BASE_LIMIT,
                           "it takes more memory than the limit of %s, reached at byte %" PRIu64
                           "; raise the memory limit, or leave the stacks out",
                           base_size_format(limit, limit_text), trace_input_offset(input));
}

//------------------------------------------------------------------------------------------------
// Events.

struct walk {
    const struct snapshot *snapshot;
    uint32_t range;    // TRACE_NONE: at the end
    uint32_t position; // within the range
};

static struct walk walk_begin(const struct snapshot *snapshot,
                              const struct trace__pickle_value *list) {
    return (struct walk){snapshot, trace__snapshot_chain_head(list), 0};
}

static bool walk_next(struct walk *walk, uint32_t *record) {
    if (walk->range == TRACE_NONE) return false;
    const struct snapshot_range *range = &walk->snapshot->ranges.entries[walk->range];
    *record = range->first + walk->position;
    if (++walk->position == range->count) {
        walk->range = range->next;
        walk->position = 0;
    }
    return true;
}

// The lists of device_traces, checked; *count of them.
static enum base_status
device_lists(const struct snapshot *snapshot, const struct trace__pickle_value *traces,
             const struct trace__pickle_value *lists[TRACE_DEVICE_COUNT_MAX], uint32_t *count) {
    *count = 0;
    if (traces->type == PICKLE_UNSET) return BASE_OK;
    bool empty =
        (traces->type == PICKLE_LIST || traces->type == PICKLE_TUPLE) && traces->payload == 0;
    if (!empty && traces->type != SNAPSHOT_TRACE_LIST) {
        struct snapshot_fault fault = {
            .problem = PROBLEM_TYPE, .key = KEY_DEVICE_TRACES, .type = traces->type};
        return trace__snapshot_fault_status(snapshot, &fault);
    }
    struct walk walk = walk_begin(snapshot, traces);
    for (uint32_t record; walk_next(&walk, &record); (*count)++) {
        if (*count == TRACE_DEVICE_COUNT_MAX)
            return base_status_set(
                BASE_LIMIT, "device_traces holds more than %d devices, which is what a trace holds",
                TRACE_DEVICE_COUNT_MAX);
        const struct trace__pickle_value *list = &snapshot->device_lists.entries[record].list;
        bool is_list = list->type == PICKLE_LIST || list->type == PICKLE_TUPLE;
        if (list->type != SNAPSHOT_EVENT_LIST && !(is_list && list->payload == 0))
            return base_status_set(
                BASE_FORMAT, "device_traces, device %u: it is %s; due is a list of events%s",
                *count, trace__pickle_type_name(list->type),
                is_list ? ", dicts with an 'action'; its first item is none" : "");
        lists[*count] = list;
    }
    return BASE_OK;
}

// Whether the ranges of all lists follow each other in the table, so that they can be closed up in
// place.
static bool in_order(const struct snapshot *snapshot, const struct trace__pickle_value **lists,
                     uint32_t count) {
    uint64_t end = 0;
    for (uint32_t device = 0; device < count; device++) {
        for (uint32_t r = trace__snapshot_chain_head(lists[device]); r != TRACE_NONE;
             r = snapshot->ranges.entries[r].next) {
            const struct snapshot_range *range = &snapshot->ranges.entries[r];
            if (range->first < end) return false;
            end = (uint64_t)range->first + range->count;
        }
    }
    return true;
}

// Copies the events of all lists behind the table's end, so that what is wanted stands in order;
// *first is where.
static enum base_status copy_events(struct snapshot *snapshot,
                                    const struct trace__pickle_value **lists, uint32_t count,
                                    size_t *first) {
    struct trace *trace = snapshot->builder.trace;
    *first = trace->event_count;
    enum base_status status = BASE_OK;
    for (uint32_t device = 0; device < count; device++) {
        struct walk walk = walk_begin(snapshot, lists[device]);
        for (uint32_t record; status == BASE_OK && walk_next(&walk, &record);) {
            struct trace_event event = {.stack = TRACE_NONE, .metadata = TRACE_NONE};
            status = trace_add_event(&snapshot->builder,
                                     &event); // room; the candidate may hold what no event may
            if (status == BASE_OK) trace->events[trace->event_count - 1] = trace->events[record];
            if (status == BASE_OK && trace->event_count % COPIES_BETWEEN_CHECKS == 0)
                status = trace__snapshot_check_memory(snapshot, snapshot->machine_bytes);
        }
    }
    return status;
}

static enum base_status take_event(struct snapshot *snapshot, struct trace_event *event,
                                   uint32_t device, size_t number) {
    if (event->action == SNAPSHOT_ACTION_FAULTY) {
        enum base_status status =
            trace__snapshot_fault_status(snapshot, &snapshot->faults.entries[event->size]);
        return base_status_prefix(status, "device %u, event %zu", device, number);
    }
    event->device = (uint8_t)device;
    if (event->reserved != 0) snapshot->builder.trace->has_pool_ids = true;
    event->reserved = 0;
    return BASE_OK;
}

// The wanted events to the front of the table.
static enum base_status attach_events(struct snapshot *snapshot,
                                      const struct trace__pickle_value *traces) {
    struct trace *trace = snapshot->builder.trace;
    const struct trace__pickle_value *lists[TRACE_DEVICE_COUNT_MAX];
    uint32_t device_count;
    enum base_status status = device_lists(snapshot, traces, lists, &device_count);
    if (status == BASE_OK) status = trace_add_devices(&snapshot->builder, device_count);
    bool copied = status == BASE_OK && !in_order(snapshot, lists, device_count);
    size_t copy_next = 0, kept = 0;
    if (copied) status = copy_events(snapshot, lists, device_count, &copy_next);
    for (uint32_t device = 0; device < device_count && status == BASE_OK; device++) {
        struct walk walk = walk_begin(snapshot, lists[device]);
        size_t number = 0;
        for (uint32_t record; status == BASE_OK && walk_next(&walk, &record); number++) {
            size_t from = copied ? copy_next++ : record;
            if (from != kept) trace->events[kept] = trace->events[from];
            status = take_event(snapshot, &trace->events[kept], device, number);
            kept++;
        }
    }
    trace->event_count = kept;
    return status;
}

//------------------------------------------------------------------------------------------------
// The final state.

static enum base_status attach_block(struct snapshot *snapshot, const struct snapshot_block *record,
                                     uint64_t *next_address, uint64_t *requested_size) {
    if (record->fault != TRACE_NONE)
        return trace__snapshot_fault_status(snapshot, &snapshot->faults.entries[record->fault]);
    struct trace_block block = record->block;
    if (!record->has_address)
        block.address = *next_address; // up to 2.0: blocks tile their segment in order
    *next_address = block.address + block.size;
    if (block.state != TRACE_BLOCK_INACTIVE) *requested_size += block.requested_size;
    return trace_add_block(&snapshot->builder, &block);
}

static enum base_status attach_segment(struct snapshot *snapshot,
                                       const struct snapshot_segment *record) {
    if (record->fault != TRACE_NONE)
        return trace__snapshot_fault_status(snapshot, &snapshot->faults.entries[record->fault]);
    enum base_status status = trace_add_segment(&snapshot->builder, &record->segment);
    uint64_t next_address = record->segment.address, requested_size = 0;
    uint32_t number = 0;
    struct walk walk = walk_begin(snapshot, &record->blocks);
    for (uint32_t block; status == BASE_OK && walk_next(&walk, &block); number++) {
        status = attach_block(snapshot, &snapshot->blocks.entries[block], &next_address,
                              &requested_size);
        if (status != BASE_OK) return base_status_prefix(status, "block %u", number);
        if (number % COPIES_BETWEEN_CHECKS == 0)
            status = trace__snapshot_check_memory(snapshot, snapshot->machine_bytes);
    }
    struct trace *trace = snapshot->builder.trace;
    if (status == BASE_OK && !record->has_requested_size)
        trace->segments[trace->segment_count - 1].requested_size = requested_size;
    return status;
}

static enum base_status attach_segments(struct snapshot *snapshot,
                                        const struct trace__pickle_value *segments) {
    bool empty =
        (segments->type == PICKLE_LIST || segments->type == PICKLE_TUPLE) && segments->payload == 0;
    if (!empty && segments->type != SNAPSHOT_SEGMENT_LIST) {
        struct snapshot_fault fault = {
            .problem = PROBLEM_TYPE, .key = KEY_SEGMENTS, .type = segments->type};
        return trace__snapshot_fault_status(snapshot, &fault);
    }
    struct walk walk = walk_begin(snapshot, segments);
    uint32_t number = 0;
    for (uint32_t record; walk_next(&walk, &record); number++) {
        enum base_status status = attach_segment(snapshot, &snapshot->segments.entries[record]);
        if (status != BASE_OK) return base_status_prefix(status, "segment %u", number);
    }
    return BASE_OK;
}

static enum base_status attach_settings(struct snapshot *snapshot,
                                        const struct trace__pickle_value *value) {
    if (value->type == PICKLE_UNSET || (value->type == PICKLE_DICT && value->payload == 0))
        return BASE_OK;
    if (value->type == PICKLE_DICT) return BASE_OK; // of keys that are all unknown
    if (value->type != SNAPSHOT_SETTINGS) {
        struct snapshot_fault fault = {
            .problem = PROBLEM_TYPE, .key = KEY_ALLOCATOR_SETTINGS, .type = value->type};
        return trace__snapshot_fault_status(snapshot, &fault);
    }
    const struct snapshot_settings *record = &snapshot->settings.entries[value->payload];
    if (record->fault != TRACE_NONE)
        return base_status_prefix(
            trace__snapshot_fault_status(snapshot, &snapshot->faults.entries[record->fault]),
            "allocator_settings");
    struct trace_settings *settings = &snapshot->builder.trace->settings;
    char *config = settings->config, *version = settings->torch_version;
    *settings = record->settings;
    settings->config = config;
    settings->torch_version = version;
    if (record->config == TRACE_NONE) return BASE_OK;
    uint32_t index;
    enum base_status status = trace__snapshot_map_string(snapshot, record->config, &index);
    return status == BASE_OK
               ? trace_set_text(&settings->config, snapshot->builder.trace->strings[index])
               : status;
}

enum base_status trace__snapshot_attach(struct snapshot *snapshot,
                                        const struct trace__pickle_value *root) {
    // torch.cuda.memory_snapshot() gives the bare list of segments, and PyTorch's own viewer takes
    // that as well.
    if (root->type == SNAPSHOT_SEGMENT_LIST) return attach_segments(snapshot, root);
    if (root->type != SNAPSHOT_TOP)
        return base_status_set(
            BASE_FORMAT,
            "the pickle holds %s; a memory snapshot is a dict with 'segments' and 'device_traces'",
            root->type == PICKLE_DICT ? "a dict without 'segments'"
                                      : trace__pickle_type_name(root->type));
    const struct snapshot_top *top = &snapshot->tops.entries[root->payload];
    if (top->segments.type == PICKLE_UNSET)
        return base_status_set(BASE_FORMAT,
                               "the dict has no 'segments'; a memory snapshot has 'segments' and "
                               "'device_traces'");
    enum base_status status = attach_events(snapshot, &top->traces);
    if (status == BASE_OK) status = attach_segments(snapshot, &top->segments);
    return status == BASE_OK ? attach_settings(snapshot, &top->settings) : status;
}
