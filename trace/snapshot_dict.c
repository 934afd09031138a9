// Dicts: told apart by their keys, read into records.
#include "trace/snapshot.h"

#include <string.h>

// A dict's items, found by key. `of` is set where the mask says so; of a key written twice the last
// counts, as in Python.
struct items {
    uint64_t keys;
    const struct trace__pickle_value *of[KEY_COUNT];
    bool has_others;
};

static bool has(const struct items *items, enum snapshot_key key) { return items->keys >> key & 1; }

static const struct trace__pickle_value *get(const struct items *items, enum snapshot_key key) {
    return has(items, key) ? items->of[key] : NULL;
}

static void collect(struct items *items, const struct trace__pickle_value *pairs, size_t count) {
    items->keys = 0;
    items->has_others = false;
    for (size_t i = 0; i < count; i++) {
        if (pairs[2 * i].type != PICKLE_STRING || pairs[2 * i].payload >= KEY_COUNT) {
            items->has_others = true;
            continue;
        }
        items->keys |= (uint64_t)1 << pairs[2 * i].payload;
        items->of[pairs[2 * i].payload] = &pairs[2 * i + 1];
    }
}

//------------------------------------------------------------------------------------------------
// Reading values. The first fault of a record is kept; values after it do not matter.

static void note(struct snapshot_fault *fault, enum snapshot_problem problem, enum snapshot_key key,
                 unsigned type, uint64_t value) {
    if (fault->problem != PROBLEM_NONE) return;
    fault->problem = (uint8_t)problem;
    fault->key = (uint8_t)key;
    fault->type = (uint8_t)type;
    fault->value = value;
}

// For a key that may be left out: its value, or NULL.
static const struct trace__pickle_value *optional(const struct items *items,
                                                  enum snapshot_key key) {
    const struct trace__pickle_value *value = get(items, key);
    return value != NULL && value->type != PICKLE_NONE ? value : NULL;
}

static const struct trace__pickle_value *needed(const struct items *items, enum snapshot_key key,
                                                struct snapshot_fault *fault) {
    const struct trace__pickle_value *value = get(items, key);
    if (value == NULL) note(fault, PROBLEM_MISSING, key, 0, 0);
    return value;
}

// A size or time: 0 to 2^63 - 1. VALUE NULL leaves 0.
static uint64_t natural(const struct trace__pickle_value *value, enum snapshot_key key,
                        struct snapshot_fault *fault) {
    if (value == NULL) return 0;
    if (value->type == PICKLE_INT && (int64_t)value->payload >= 0) return value->payload;
    if (value->type == PICKLE_INT)
        note(fault, PROBLEM_NEGATIVE, key, value->type, value->payload);
    else
        note(fault, value->type == PICKLE_BIG ? PROBLEM_LARGE : PROBLEM_TYPE, key, value->type,
             value->payload);
    return 0;
}

// An address: 64 bits.
static uint64_t address(const struct trace__pickle_value *value, enum snapshot_key key,
                        struct snapshot_fault *fault) {
    return value != NULL && value->type == PICKLE_BIG ? value->payload : natural(value, key, fault);
}

// A handle: 64 bits, which some releases write with a sign.
static uint64_t handle(const struct trace__pickle_value *value, enum snapshot_key key,
                       struct snapshot_fault *fault) {
    return value != NULL && value->type == PICKLE_INT ? value->payload : address(value, key, fault);
}

static bool boolean(const struct trace__pickle_value *value, enum snapshot_key key,
                    struct snapshot_fault *fault) {
    if (value == NULL) return false;
    if (value->type != PICKLE_BOOL) note(fault, PROBLEM_TYPE, key, value->type, value->payload);
    return value->type == PICKLE_BOOL && value->payload == 1;
}

// A string that is one of the known texts FIRST to LAST.
static unsigned text(const struct trace__pickle_value *value, enum snapshot_key key, unsigned first,
                     unsigned last, struct snapshot_fault *fault) {
    if (value == NULL) return first;
    if (value->type == PICKLE_STRING && value->payload >= first && value->payload <= last)
        return (unsigned)value->payload;
    note(fault, value->type == PICKLE_STRING ? PROBLEM_TEXT : PROBLEM_TYPE, key, value->type,
         value->payload);
    return first;
}

static uint32_t stack(const struct snapshot *snapshot, const struct trace__pickle_value *value,
                      enum snapshot_key key, struct snapshot_fault *fault) {
    if (value == NULL) return TRACE_NONE;
    if (value->type == SNAPSHOT_STACK)
        return snapshot->no_stacks ? TRACE_NONE : (uint32_t)value->payload;
    bool empty = (value->type == PICKLE_LIST || value->type == PICKLE_TUPLE) && value->payload == 0;
    if (!empty) note(fault, PROBLEM_TYPE, key, value->type, value->payload);
    return TRACE_NONE;
}

static enum base_status stream(struct snapshot *snapshot, uint64_t number, uint16_t *index) {
    if (!snapshot->stream_known || snapshot->stream_handle != number) {
        enum base_status status = trace_add_stream(&snapshot->builder, number, &snapshot->stream);
        if (status != BASE_OK) return status;
        snapshot->stream_handle = number;
        snapshot->stream_known = true;
    }
    *index = snapshot->stream;
    return BASE_OK;
}

// VALUE NULL is the default pool.
static enum base_status pool(struct snapshot *snapshot, const struct trace__pickle_value *value,
                             enum snapshot_key key, uint16_t *index, struct snapshot_fault *fault) {
    *index = 0;
    if (value == NULL) return BASE_OK;
    if (value->type != SNAPSHOT_PAIR) {
        note(fault, PROBLEM_TYPE, key, value->type, value->payload);
        return BASE_OK;
    }
    if (!snapshot->pool_known || snapshot->pool_pair != value->payload) {
        struct trace_pool_id id = {value->payload >> 32, value->payload & UINT32_MAX};
        enum base_status status = trace_add_pool(&snapshot->builder, id, &snapshot->pool);
        if (status != BASE_OK) return status;
        snapshot->pool_pair = value->payload;
        snapshot->pool_known = true;
    }
    *index = snapshot->pool;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Faulty records.

enum base_status trace__snapshot_add_fault(struct snapshot *snapshot,
                                           const struct snapshot_fault *fault, uint32_t *index) {
    *index = TRACE_NONE;
    if (fault->problem == PROBLEM_NONE) return BASE_OK;
    enum base_status status = SNAPSHOT_RESERVE(snapshot->faults);
    if (status != BASE_OK) return status;
    *index = (uint32_t)snapshot->faults.count++;
    snapshot->faults.entries[*index] = *fault;
    return BASE_OK;
}

static enum base_status add_faulty_event(struct snapshot *snapshot, uint32_t fault) {
    struct trace_event event = {.stack = TRACE_NONE, .metadata = TRACE_NONE};
    enum base_status status = trace_add_event(&snapshot->builder, &event);
    if (status != BASE_OK) return status;
    struct trace *trace = snapshot->builder.trace;
    trace->events[trace->event_count - 1].action = SNAPSHOT_ACTION_FAULTY;
    trace->events[trace->event_count - 1].size = fault;
    return BASE_OK;
}

enum base_status trace__snapshot_add_faulty(struct snapshot *snapshot, enum snapshot_type type,
                                            const struct snapshot_fault *fault, uint32_t *index) {
    uint32_t number;
    enum base_status status = trace__snapshot_add_fault(snapshot, fault, &number);
    if (status != BASE_OK) return status;
    switch (type) {
    case SNAPSHOT_EVENT:
        *index = (uint32_t)snapshot->builder.trace->event_count;
        return add_faulty_event(snapshot, number);
    case SNAPSHOT_BLOCK:
        status = SNAPSHOT_RESERVE(snapshot->blocks);
        if (status != BASE_OK) return status;
        *index = (uint32_t)snapshot->blocks.count++;
        snapshot->blocks.entries[*index] = (struct snapshot_block){.fault = number};
        return BASE_OK;
    default:
        status = SNAPSHOT_RESERVE(snapshot->segments);
        if (status != BASE_OK) return status;
        *index = (uint32_t)snapshot->segments.count++;
        snapshot->segments.entries[*index] = (struct snapshot_segment){.fault = number};
        return BASE_OK;
    }
}

//------------------------------------------------------------------------------------------------
// Kinds of dicts. Each sets the type and payload of DICT.

static enum base_status make_event(struct snapshot *snapshot, const struct items *items,
                                   struct trace__pickle_value *dict, struct snapshot_fault *fault) {
    struct trace *trace = snapshot->builder.trace;
    if (trace->event_count >= TRACE_NONE - 1)
        return base_status_set(BASE_LIMIT, "the snapshot holds more than %u events",
                               TRACE_NONE - 1);
    dict->type = SNAPSHOT_EVENT;
    dict->payload = trace->event_count;

    unsigned action =
        text(get(items, KEY_ACTION), KEY_ACTION, TEXT_ACTION_FIRST, TEXT_ACTION_LAST, fault) -
        TEXT_ACTION_FIRST;
    struct trace_event event = {.action = (uint8_t)action, .metadata = TRACE_NONE};
    enum snapshot_key place =
        action == TRACE_OOM && has(items, KEY_DEVICE_FREE) ? KEY_DEVICE_FREE : KEY_ADDR;
    if (action <= TRACE_SEGMENT_UNMAP) { // other entries need not concern any memory
        needed(items, place, fault);
        needed(items, KEY_SIZE, fault);
        needed(items, KEY_STREAM, fault);
    }
    event.address = address(optional(items, place), place, fault);
    event.size = natural(optional(items, KEY_SIZE), KEY_SIZE, fault);
    event.time_us = natural(optional(items, KEY_TIME_US), KEY_TIME_US, fault);
    event.stack = stack(snapshot, optional(items, KEY_FRAMES), KEY_FRAMES, fault);
    enum base_status status =
        stream(snapshot, handle(optional(items, KEY_STREAM), KEY_STREAM, fault), &event.stream);
    if (status == BASE_OK)
        status = pool(snapshot, optional(items, KEY_POOL_ID), KEY_POOL_ID, &event.pool, fault);
    const struct trace__pickle_value *metadata = get(items, KEY_USER_METADATA);
    if (status == BASE_OK && metadata != NULL && metadata->type == PICKLE_STRING) {
        size_t length;
        (void)trace__pickle_string(snapshot->machine, (uint32_t)metadata->payload, &length);
        if (length > 0)
            status =
                trace__snapshot_map_string(snapshot, (uint32_t)metadata->payload, &event.metadata);
    }
    if (status == BASE_OK && fault->problem != PROBLEM_NONE) {
        uint32_t number;
        status = trace__snapshot_add_fault(snapshot, fault, &number);
        return status == BASE_OK ? add_faulty_event(snapshot, number) : status;
    }
    if (status == BASE_OK) status = trace_add_event(&snapshot->builder, &event);
    if (status == BASE_OK) trace->events[trace->event_count - 1].reserved = has(items, KEY_POOL_ID);
    return status;
}

static enum base_status make_frame(struct snapshot *snapshot, const struct items *items,
                                   struct trace__pickle_value *dict) {
    const struct trace__pickle_value *name = get(items, KEY_NAME), *file = get(items, KEY_FILENAME),
                                     *line = get(items, KEY_LINE);
    // Frames only decorate; one that is not what it should be stays an unknown dict, and its list
    // an unknown list.
    if (name->type != PICKLE_STRING || file->type != PICKLE_STRING ||
        (line->type != PICKLE_INT && line->type != PICKLE_NONE)) {
        dict->payload = 1;
        return BASE_OK;
    }
    dict->type = SNAPSHOT_FRAME;
    dict->payload = 0;
    if (snapshot->no_stacks) return BASE_OK;
    struct trace_frame frame = {0};
    enum base_status status =
        trace__snapshot_map_string(snapshot, (uint32_t)name->payload, &frame.function);
    if (status == BASE_OK)
        status = trace__snapshot_map_string(snapshot, (uint32_t)file->payload, &frame.file);
    if (status == BASE_OK) status = SNAPSHOT_RESERVE(snapshot->frames);
    if (status != BASE_OK) return status;
    if (line->type == PICKLE_INT && (int64_t)line->payload > 0)
        frame.line = line->payload < UINT32_MAX ? (uint32_t)line->payload : UINT32_MAX;
    dict->payload = snapshot->frames.count;
    snapshot->frames.entries[snapshot->frames.count++] = frame;
    return BASE_OK;
}

// Up to 2.0 a block has a history, newest first, in place of frames.
static void take_history(const struct snapshot *snapshot, const struct items *items,
                         struct trace_block *block, struct snapshot_fault *fault) {
    const struct trace__pickle_value *value = optional(items, KEY_HISTORY);
    if (value == NULL ||
        ((value->type == PICKLE_LIST || value->type == PICKLE_TUPLE) && value->payload == 0))
        return;
    if (value->type != SNAPSHOT_HISTORY_LIST) {
        note(fault, PROBLEM_TYPE, KEY_HISTORY, value->type, value->payload);
        return;
    }
    const struct snapshot_history *history = &snapshot->histories.entries[value->payload];
    if (block->stack == TRACE_NONE) block->stack = history->stack;
    if (!has(items, KEY_REQUESTED_SIZE)) block->requested_size = history->real_size;
}

static enum base_status make_block(struct snapshot *snapshot, const struct items *items,
                                   struct trace__pickle_value *dict, struct snapshot_fault *fault) {
    static const uint8_t states[] = {
        [TEXT_INACTIVE - TEXT_INACTIVE] = TRACE_BLOCK_INACTIVE,
        [TEXT_ACTIVE_ALLOCATED - TEXT_INACTIVE] = TRACE_BLOCK_ALLOCATED,
        [TEXT_ACTIVE_PENDING_FREE - TEXT_INACTIVE] = TRACE_BLOCK_PENDING_FREE,
        [TEXT_ACTIVE_AWAITING_FREE - TEXT_INACTIVE] = TRACE_BLOCK_PENDING_FREE,
    };
    struct snapshot_block record = {.has_address = has(items, KEY_ADDRESS)};
    struct trace_block *block = &record.block;
    block->address = address(get(items, KEY_ADDRESS), KEY_ADDRESS, fault);
    block->size = natural(get(items, KEY_SIZE), KEY_SIZE, fault);
    block->requested_size = natural(get(items, KEY_REQUESTED_SIZE), KEY_REQUESTED_SIZE, fault);
    block->state = states[text(get(items, KEY_STATE), KEY_STATE, TEXT_INACTIVE,
                               TEXT_ACTIVE_AWAITING_FREE, fault) -
                          TEXT_INACTIVE];
    block->stack = stack(snapshot, optional(items, KEY_FRAMES), KEY_FRAMES, fault);
    take_history(snapshot, items, block, fault);
    enum base_status status = trace__snapshot_add_fault(snapshot, fault, &record.fault);
    if (status == BASE_OK) status = SNAPSHOT_RESERVE(snapshot->blocks);
    if (status != BASE_OK) return status;
    dict->type = SNAPSHOT_BLOCK;
    dict->payload = snapshot->blocks.count;
    snapshot->blocks.entries[snapshot->blocks.count++] = record;
    return BASE_OK;
}

static enum base_status make_segment(struct snapshot *snapshot, const struct items *items,
                                     struct trace__pickle_value *dict,
                                     struct snapshot_fault *fault) {
    struct snapshot_segment record = {.has_requested_size = has(items, KEY_REQUESTED_SIZE)};
    struct trace_segment *segment = &record.segment;
    segment->address = address(needed(items, KEY_ADDRESS, fault), KEY_ADDRESS, fault);
    segment->total_size = natural(needed(items, KEY_TOTAL_SIZE, fault), KEY_TOTAL_SIZE, fault);
    segment->allocated_size = natural(get(items, KEY_ALLOCATED_SIZE), KEY_ALLOCATED_SIZE, fault);
    segment->active_size = natural(get(items, KEY_ACTIVE_SIZE), KEY_ACTIVE_SIZE, fault);
    segment->requested_size = natural(get(items, KEY_REQUESTED_SIZE), KEY_REQUESTED_SIZE, fault);
    segment->stack = stack(snapshot, optional(items, KEY_FRAMES), KEY_FRAMES, fault);
    segment->is_expandable = boolean(get(items, KEY_IS_EXPANDABLE), KEY_IS_EXPANDABLE, fault);
    segment->is_large = text(get(items, KEY_SEGMENT_TYPE), KEY_SEGMENT_TYPE, TEXT_SMALL, TEXT_LARGE,
                             fault) == TEXT_LARGE;
    uint64_t device = natural(needed(items, KEY_DEVICE, fault), KEY_DEVICE, fault);
    if (device >= TRACE_DEVICE_COUNT_MAX)
        note(fault, PROBLEM_RANGE, KEY_DEVICE, PICKLE_INT, device);
    segment->device = (uint8_t)(device % TRACE_DEVICE_COUNT_MAX);
    record.blocks = *get(items, KEY_BLOCKS);
    bool empty = (record.blocks.type == PICKLE_LIST || record.blocks.type == PICKLE_TUPLE) &&
                 record.blocks.payload == 0;
    if (!empty && record.blocks.type != SNAPSHOT_BLOCK_LIST)
        note(fault, PROBLEM_TYPE, KEY_BLOCKS, record.blocks.type, 0);
    enum base_status status = stream(
        snapshot, handle(needed(items, KEY_STREAM, fault), KEY_STREAM, fault), &segment->stream);
    if (status == BASE_OK)
        status = pool(snapshot, optional(items, KEY_SEGMENT_POOL_ID), KEY_SEGMENT_POOL_ID,
                      &segment->pool, fault);
    if (status == BASE_OK) status = trace__snapshot_add_fault(snapshot, fault, &record.fault);
    if (status == BASE_OK) status = SNAPSHOT_RESERVE(snapshot->segments);
    if (status != BASE_OK) return status;
    dict->type = SNAPSHOT_SEGMENT;
    dict->payload = snapshot->segments.count;
    snapshot->segments.entries[snapshot->segments.count++] = record;
    return BASE_OK;
}

static enum base_status make_history(struct snapshot *snapshot, const struct items *items,
                                     struct trace__pickle_value *dict) {
    struct snapshot_fault ignored = {0}; // it only decorates
    struct snapshot_history history = {
        .real_size = natural(get(items, KEY_REAL_SIZE), KEY_REAL_SIZE, &ignored),
        .stack = stack(snapshot, get(items, KEY_FRAMES), KEY_FRAMES, &ignored),
    };
    enum base_status status = SNAPSHOT_RESERVE(snapshot->histories);
    if (status != BASE_OK) return status;
    dict->type = SNAPSHOT_HISTORY;
    dict->payload = snapshot->histories.count;
    snapshot->histories.entries[snapshot->histories.count++] = history;
    return BASE_OK;
}

static enum base_status make_divisions(struct snapshot *snapshot, const struct items *items,
                                       struct trace__pickle_value *dict) {
    struct snapshot_divisions record = {0};
    for (unsigned i = 0; i < 16; i++) {
        const struct trace__pickle_value *value = get(items, KEY_DIVISIONS_1 + i);
        if (value == NULL) continue;
        if (value->type != PICKLE_INT || value->payload > UINT32_MAX) {
            dict->payload = 1;
            return BASE_OK;
        }
        record.divisions[i] = (uint32_t)value->payload;
    }
    enum base_status status = SNAPSHOT_RESERVE(snapshot->divisions);
    if (status != BASE_OK) return status;
    dict->type = SNAPSHOT_DIVISIONS;
    dict->payload = snapshot->divisions.count;
    snapshot->divisions.entries[snapshot->divisions.count++] = record;
    return BASE_OK;
}

static double number(const struct trace__pickle_value *value, enum snapshot_key key,
                     struct snapshot_fault *fault) {
    if (value == NULL) return 0;
    if (value->type != PICKLE_FLOAT) return (double)natural(value, key, fault);
    double result;
    memcpy(&result, &value->payload, sizeof result);
    if (result >= 0 && result <= 1) return result;
    note(fault, PROBLEM_RANGE, key, PICKLE_FLOAT, value->payload);
    return 0;
}

static enum base_status make_settings(struct snapshot *snapshot, const struct items *items,
                                      struct trace__pickle_value *dict,
                                      struct snapshot_fault *fault) {
    struct snapshot_settings record = {.config = TRACE_NONE,
                                       .settings = {.known = true, .max_split_size = -1}};
    struct trace_settings *settings = &record.settings;
    const struct trace__pickle_value *config = optional(items, KEY_CONFIG), *divisions,
                                     *max_split_size = optional(items, KEY_MAX_SPLIT_SIZE);
    if (config != NULL && config->type == PICKLE_STRING)
        record.config = (uint32_t)config->payload;
    else if (config != NULL)
        note(fault, PROBLEM_TYPE, KEY_CONFIG, config->type, 0);
    // "Unlimited" is -1, or in some releases the largest 64-bit number.
    bool unlimited = max_split_size == NULL || max_split_size->type == PICKLE_BIG ||
                     (max_split_size->type == PICKLE_INT && (int64_t)max_split_size->payload < 0);
    if (!unlimited)
        settings->max_split_size = (int64_t)natural(max_split_size, KEY_MAX_SPLIT_SIZE, fault);
    settings->garbage_collection_threshold = number(
        optional(items, KEY_GARBAGE_COLLECTION_THRESHOLD), KEY_GARBAGE_COLLECTION_THRESHOLD, fault);
    settings->expandable_segments =
        boolean(optional(items, KEY_EXPANDABLE_SEGMENTS), KEY_EXPANDABLE_SEGMENTS, fault);
    divisions = optional(items, KEY_ROUNDUP_POWER2_DIVISIONS);
    if (divisions != NULL && divisions->type == SNAPSHOT_DIVISIONS)
        memcpy(settings->roundup_power2_divisions, &snapshot->divisions.entries[divisions->payload],
               sizeof settings->roundup_power2_divisions);
    else if (divisions != NULL && !(divisions->type == PICKLE_DICT && divisions->payload == 0))
        note(fault, PROBLEM_TYPE, KEY_ROUNDUP_POWER2_DIVISIONS, divisions->type, 0);
    enum base_status status = trace__snapshot_add_fault(snapshot, fault, &record.fault);
    if (status == BASE_OK) status = SNAPSHOT_RESERVE(snapshot->settings);
    if (status != BASE_OK) return status;
    dict->type = SNAPSHOT_SETTINGS;
    dict->payload = snapshot->settings.count;
    snapshot->settings.entries[snapshot->settings.count++] = record;
    return BASE_OK;
}

static enum base_status make_top(struct snapshot *snapshot, const struct items *items,
                                 struct trace__pickle_value *dict) {
    struct snapshot_top top = {0};
    if (has(items, KEY_SEGMENTS)) top.segments = *get(items, KEY_SEGMENTS);
    if (optional(items, KEY_DEVICE_TRACES) != NULL) top.traces = *get(items, KEY_DEVICE_TRACES);
    if (optional(items, KEY_ALLOCATOR_SETTINGS) != NULL)
        top.settings = *get(items, KEY_ALLOCATOR_SETTINGS);
    enum base_status status = SNAPSHOT_RESERVE(snapshot->tops);
    if (status != BASE_OK) return status;
    dict->type = SNAPSHOT_TOP;
    dict->payload = snapshot->tops.count;
    snapshot->tops.entries[snapshot->tops.count++] = top;
    return BASE_OK;
}

#define KEY_BIT(name) ((uint64_t)1 << KEY_##name)
#define FRAME_KEYS (KEY_BIT(NAME) | KEY_BIT(FILENAME) | KEY_BIT(LINE))
#define BLOCK_KEYS (KEY_BIT(SIZE) | KEY_BIT(STATE))
#define SETTINGS_KEYS                                                                    \
    (KEY_BIT(CONFIG) | KEY_BIT(MAX_SPLIT_SIZE) | KEY_BIT(GARBAGE_COLLECTION_THRESHOLD) | \
     KEY_BIT(EXPANDABLE_SEGMENTS) | KEY_BIT(ROUNDUP_POWER2_DIVISIONS))
#define DIVISIONS_KEYS ((uint64_t)0xffff << KEY_DIVISIONS_1)

enum base_status trace__snapshot_set_items(void *context, const struct trace__pickle_value *pairs,
                                           size_t count, struct trace__pickle_value *dict) {
    struct snapshot *snapshot = context;
    struct items items;
    collect(&items, pairs, count);
    struct snapshot_fault fault = {.offset = trace__pickle_offset(snapshot->machine)};
    if (has(&items, KEY_ACTION)) return make_event(snapshot, &items, dict, &fault);
    if ((items.keys & FRAME_KEYS) == FRAME_KEYS) return make_frame(snapshot, &items, dict);
    if (has(&items, KEY_BLOCKS)) return make_segment(snapshot, &items, dict, &fault);
    if ((items.keys & BLOCK_KEYS) == BLOCK_KEYS) return make_block(snapshot, &items, dict, &fault);
    if (has(&items, KEY_REAL_SIZE)) return make_history(snapshot, &items, dict);
    if (has(&items, KEY_SEGMENTS) || has(&items, KEY_DEVICE_TRACES))
        return make_top(snapshot, &items, dict);
    if (items.keys & SETTINGS_KEYS) return make_settings(snapshot, &items, dict, &fault);
    if (items.keys & DIVISIONS_KEYS && !(items.keys & ~DIVISIONS_KEYS) && !items.has_others)
        return make_divisions(snapshot, &items, dict);
    dict->payload = count > 0;
    return BASE_OK;
}
