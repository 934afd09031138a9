// The growing trace. One growth function for every table keeps the memory count honest: a table is
// charged by its capacity, growth falls back to what the budget still allows, and only then is the
// limit reported.
#include "trace/build.h"

#include "base/check.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

enum { CAPACITY_FIRST = 16, STRING_OVERHEAD_BYTES = 24 };
#define INDEX_16_COUNT_MAX ((size_t)UINT16_MAX + 1)
#define INDEX_32_COUNT_MAX ((size_t)TRACE_NONE)

//------------------------------------------------------------------------------------------------
// Memory.

static enum base_status limit_status(const struct trace_builder *builder, uint64_t bytes,
                                     const char *what) {
    char limit[BASE_SIZE_TEXT];
    return base_status_set(
        BASE_LIMIT,
        "%s need %llu bytes more than the memory limit of %s leaves; raise the limit or leave the "
        "stacks out",
        what, (unsigned long long)(builder->memory_bytes + bytes - builder->memory_limit_bytes),
        base_size_format(builder->memory_limit_bytes, limit));
}

static uint64_t memory_left(const struct trace_builder *builder) {
    if (builder->memory_limit_bytes == 0) return UINT64_MAX;
    if (builder->memory_bytes >= builder->memory_limit_bytes) return 0;
    return builder->memory_limit_bytes - builder->memory_bytes;
}

enum base_status trace_builder_charge(struct trace_builder *builder, int64_t bytes) {
    if (bytes > 0 && (uint64_t)bytes > memory_left(builder))
        return limit_status(builder, (uint64_t)bytes, "the reader's own tables");
    builder->memory_bytes += (uint64_t)bytes;
    return BASE_OK;
}

// Makes room for one more entry of SIZE bytes in a table of COUNT entries.
static enum base_status reserve(struct trace_builder *builder, void **table, size_t *capacity,
                                size_t count, size_t size, size_t count_max, const char *what) {
    if (count < *capacity) return BASE_OK;
    if (count >= count_max)
        return base_status_set(BASE_LIMIT, "more than %zu %s: a trace holds no more", count_max,
                               what);
    size_t wanted = *capacity == 0 ? CAPACITY_FIRST : *capacity * 2;
    if (wanted > count_max) wanted = count_max;
    const uint64_t left = memory_left(builder) / size;
    if (wanted - *capacity > left) {
        if (left == 0) return limit_status(builder, size, what);
        wanted = *capacity + (size_t)left;
    }
    void *grown = realloc(*table, wanted * size);
    if (grown == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %zu %s of %zu bytes", wanted, what,
                               size);
    builder->memory_bytes += (wanted - *capacity) * size;
    *table = grown;
    *capacity = wanted;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Hash tables over side tables.

static uint64_t hash_bytes(const void *bytes, size_t size, uint64_t seed) {
    const unsigned char *byte = bytes;
    uint64_t hash = seed ^ 0x9e3779b97f4a7c15u;
    for (; size >= 8; size -= 8, byte += 8) {
        uint64_t word;
        memcpy(&word, byte, 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    for (; size > 0; size--, byte++) hash = (hash ^ *byte) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

static uint64_t hash_string(const struct trace *trace, uint32_t i) {
    return hash_bytes(trace->strings[i], strlen(trace->strings[i]), 0);
}
static uint64_t hash_stack(const struct trace *trace, uint32_t i) {
    const struct trace_stack *stack = &trace->stacks[i];
    if (stack->count == 0) return hash_bytes(NULL, 0, 0); // the frame table may be NULL still
    return hash_bytes(trace->frames + stack->first, stack->count * sizeof(struct trace_frame),
                      stack->count);
}
static uint64_t hash_stream(const struct trace *trace, uint32_t i) {
    return hash_bytes(&trace->streams[i], sizeof trace->streams[i], 0);
}
static uint64_t hash_pool(const struct trace *trace, uint32_t i) {
    return hash_bytes(&trace->pools[i], sizeof trace->pools[i], 0);
}

static bool equal_string(const struct trace *trace, uint32_t a, uint32_t b) {
    return strcmp(trace->strings[a], trace->strings[b]) == 0;
}
static bool equal_stack(const struct trace *trace, uint32_t a, uint32_t b) {
    const struct trace_stack *first = &trace->stacks[a], *second = &trace->stacks[b];
    return first->count == second->count &&
           (first->count == 0 || memcmp(trace->frames + first->first, trace->frames + second->first,
                                        first->count * sizeof(struct trace_frame)) == 0);
}
static bool equal_stream(const struct trace *trace, uint32_t a, uint32_t b) {
    return trace->streams[a] == trace->streams[b];
}
static bool equal_pool(const struct trace *trace, uint32_t a, uint32_t b) {
    return trace->pools[a].capture == trace->pools[b].capture &&
           trace->pools[a].user == trace->pools[b].user;
}

struct index_kind {
    uint64_t (*hash)(const struct trace *trace, uint32_t i);
    bool (*equal)(const struct trace *trace, uint32_t a, uint32_t b);
};
static const struct index_kind string_kind = {hash_string, equal_string},
                               stack_kind = {hash_stack, equal_stack},
                               stream_kind = {hash_stream, equal_stream},
                               pool_kind = {hash_pool, equal_pool};

static void index_insert(uint32_t *slots, uint64_t slot_count, uint64_t hash, uint32_t i) {
    uint64_t slot = hash & (slot_count - 1);
    while (slots[slot] != 0) slot = (slot + 1) & (slot_count - 1);
    slots[slot] = i + 1;
}

static enum base_status index_grow(struct trace_builder *builder, struct trace_index *index,
                                   const struct index_kind *kind) {
    const uint64_t slot_count = index->slot_count == 0 ? 64 : index->slot_count * 2;
    const uint64_t bytes = slot_count * sizeof(uint32_t),
                   old_bytes = index->slot_count * sizeof(uint32_t);
    if (bytes > memory_left(builder)) return limit_status(builder, bytes, "the hash tables");
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a hash table of %llu slots",
                               (unsigned long long)slot_count);
    for (uint64_t i = 0; i < index->slot_count; i++) {
        if (index->slots[i] != 0)
            index_insert(slots, slot_count, kind->hash(builder->trace, index->slots[i] - 1),
                         index->slots[i] - 1);
    }
    free(index->slots);
    index->slots = slots;
    index->slot_count = slot_count;
    builder->memory_bytes += bytes - old_bytes;
    return BASE_OK;
}

// Looks for an entry equal to CANDIDATE, which stands in its table already; else enters it. *found
// is the index that holds this value from now on.
static enum base_status index_find_or_insert(struct trace_builder *builder,
                                             struct trace_index *index,
                                             const struct index_kind *kind, uint32_t candidate,
                                             uint32_t *found) {
    if (index->used_count * 2 >= index->slot_count) {
        enum base_status status = index_grow(builder, index, kind);
        if (status != BASE_OK) return status;
    }
    const uint64_t hash = kind->hash(builder->trace, candidate);
    uint64_t slot = hash & (index->slot_count - 1);
    for (; index->slots[slot] != 0; slot = (slot + 1) & (index->slot_count - 1)) {
        if (kind->equal(builder->trace, index->slots[slot] - 1, candidate)) {
            *found = index->slots[slot] - 1;
            return BASE_OK;
        }
    }
    index->slots[slot] = candidate + 1;
    index->used_count++;
    *found = candidate;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// The builder.

enum base_status trace_builder_init(struct trace_builder *builder, const char *name,
                                    uint64_t memory_limit_bytes) {
    *builder = (struct trace_builder){.memory_limit_bytes = memory_limit_bytes};
    struct trace *trace = builder->trace = calloc(1, sizeof *builder->trace);
    if (trace == NULL) return base_status_set(BASE_HOST_MEMORY, "no memory for a trace");
    trace->format = "";
    trace->settings.max_split_size = -1;
    enum base_status status = trace_set_text(&trace->name, name);
    if (status == BASE_OK) status = trace_set_text(&trace->source, "");
    if (status == BASE_OK) status = trace_set_text(&trace->settings.config, "");
    uint16_t index;
    if (status == BASE_OK) status = trace_add_stream(builder, 0, &index);
    if (status == BASE_OK) status = trace_add_pool(builder, (struct trace_pool_id){0, 0}, &index);
    if (status != BASE_OK) trace_builder_abandon(builder);
    return status;
}

static enum base_status device_check(struct trace_builder *builder, uint32_t device) {
    if (device >= TRACE_DEVICE_COUNT_MAX)
        return base_status_set(BASE_LIMIT, "device %u: a trace holds at most %d devices", device,
                               TRACE_DEVICE_COUNT_MAX);
    if (device >= builder->device_count) builder->device_count = device + 1;
    return BASE_OK;
}

enum base_status trace_add_devices(struct trace_builder *builder, uint32_t count) {
    return count == 0 ? BASE_OK : device_check(builder, count - 1);
}

enum base_status trace_add_event(struct trace_builder *builder, const struct trace_event *event) {
    struct trace *trace = builder->trace;
    BASE_CHECK_LT(event->action, TRACE_ACTION_COUNT);
    BASE_CHECK_LT(event->stream, trace->stream_count);
    BASE_CHECK_LT(event->pool, trace->pool_count);
    BASE_CHECK(event->stack == TRACE_NONE || event->stack < trace->stack_count);
    BASE_CHECK(event->metadata == TRACE_NONE || event->metadata < trace->string_count);
    BASE_CHECK_EQ(event->reserved, 0);
    enum base_status status = device_check(builder, event->device);
    if (status == BASE_OK)
        status = reserve(builder, (void **)&trace->events, &builder->event_capacity,
                         trace->event_count, sizeof *event, SIZE_MAX / sizeof *event, "events");
    if (status != BASE_OK) return status;
    if (trace->event_count > 0 && trace->events[trace->event_count - 1].device > event->device)
        builder->events_out_of_order = true;
    trace->events[trace->event_count++] = *event;
    return BASE_OK;
}

enum base_status trace_add_stream(struct trace_builder *builder, uint64_t handle, uint16_t *index) {
    struct trace *trace = builder->trace;
    // One entry more than the limit has room, for the candidate that may prove to be there already.
    enum base_status status =
        reserve(builder, (void **)&trace->streams, &builder->stream_capacity, trace->stream_count,
                sizeof *trace->streams, INDEX_16_COUNT_MAX + 1, "streams");
    if (status != BASE_OK) return status;
    trace->streams[trace->stream_count] = handle;
    uint32_t found = 0;
    status = index_find_or_insert(builder, &builder->stream_index, &stream_kind,
                                  trace->stream_count, &found);
    if (status != BASE_OK) return status;
    if (found >= INDEX_16_COUNT_MAX)
        return base_status_set(BASE_LIMIT, "more than %zu streams: a trace holds no more",
                               INDEX_16_COUNT_MAX);
    if (found == trace->stream_count) trace->stream_count++;
    *index = (uint16_t)found;
    return BASE_OK;
}

enum base_status trace_add_pool(struct trace_builder *builder, struct trace_pool_id id,
                                uint16_t *index) {
    struct trace *trace = builder->trace;
    enum base_status status =
        reserve(builder, (void **)&trace->pools, &builder->pool_capacity, trace->pool_count,
                sizeof *trace->pools, INDEX_16_COUNT_MAX + 1, "pools");
    if (status != BASE_OK) return status;
    trace->pools[trace->pool_count] = id;
    uint32_t found = 0;
    status =
        index_find_or_insert(builder, &builder->pool_index, &pool_kind, trace->pool_count, &found);
    if (status != BASE_OK) return status;
    if (found >= INDEX_16_COUNT_MAX)
        return base_status_set(BASE_LIMIT, "more than %zu pools: a trace holds no more",
                               INDEX_16_COUNT_MAX);
    if (found == trace->pool_count) trace->pool_count++;
    *index = (uint16_t)found;
    return BASE_OK;
}

enum base_status trace_add_string(struct trace_builder *builder, const char *bytes, size_t length,
                                  uint32_t *index) {
    struct trace *trace = builder->trace;
    enum base_status status =
        reserve(builder, (void **)&trace->strings, &builder->string_capacity, trace->string_count,
                sizeof *trace->strings, INDEX_32_COUNT_MAX, "strings");
    if (status != BASE_OK) return status;
    const uint64_t cost = length + STRING_OVERHEAD_BYTES;
    if (cost > memory_left(builder)) return limit_status(builder, cost, "strings");
    char *copy = malloc(length + 1);
    if (copy == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a string of %zu bytes", length);
    for (size_t i = 0; i < length; i++) copy[i] = bytes[i] == 0 ? '?' : bytes[i];
    copy[length] = 0;
    trace->strings[trace->string_count] = copy;
    uint32_t found = 0;
    status = index_find_or_insert(builder, &builder->string_index, &string_kind,
                                  trace->string_count, &found);
    if (status != BASE_OK || found != trace->string_count) {
        free(copy);
    } else {
        trace->string_count++;
        builder->memory_bytes += cost;
    }
    if (status == BASE_OK) *index = found;
    return status;
}

enum base_status trace_add_frame(struct trace_builder *builder, const struct trace_frame *frame) {
    struct trace *trace = builder->trace;
    BASE_CHECK_LT(frame->function, trace->string_count);
    BASE_CHECK_LT(frame->file, trace->string_count);
    enum base_status status =
        reserve(builder, (void **)&trace->frames, &builder->frame_capacity, trace->frame_count,
                sizeof *frame, INDEX_32_COUNT_MAX, "frames");
    if (status != BASE_OK) return status;
    trace->frames[trace->frame_count++] = *frame;
    builder->frame_pending++;
    return BASE_OK;
}

enum base_status trace_add_stack(struct trace_builder *builder, uint32_t frame_count,
                                 uint32_t *index) {
    struct trace *trace = builder->trace;
    BASE_CHECK_EQ(frame_count, builder->frame_pending);
    enum base_status status =
        reserve(builder, (void **)&trace->stacks, &builder->stack_capacity, trace->stack_count,
                sizeof *trace->stacks, INDEX_32_COUNT_MAX, "stacks");
    if (status != BASE_OK) return status;
    trace->stacks[trace->stack_count] =
        (struct trace_stack){trace->frame_count - frame_count, frame_count};
    uint32_t found = 0;
    status = index_find_or_insert(builder, &builder->stack_index, &stack_kind, trace->stack_count,
                                  &found);
    if (status != BASE_OK) return status;
    if (found == trace->stack_count)
        trace->stack_count++;
    else
        trace->frame_count -= frame_count;
    builder->frame_pending = 0;
    *index = found;
    return BASE_OK;
}

// Whether A stands at or before B in the order of the final state.
static bool segment_in_order(const struct trace_segment *a, const struct trace_segment *b) {
    return a->device != b->device ? a->device < b->device : a->address <= b->address;
}

enum base_status trace_add_segment(struct trace_builder *builder,
                                   const struct trace_segment *segment) {
    struct trace *trace = builder->trace;
    BASE_CHECK_LT(segment->stream, trace->stream_count);
    BASE_CHECK_LT(segment->pool, trace->pool_count);
    BASE_CHECK(segment->stack == TRACE_NONE || segment->stack < trace->stack_count);
    enum base_status status = device_check(builder, segment->device);
    if (status == BASE_OK)
        status = reserve(builder, (void **)&trace->segments, &builder->segment_capacity,
                         trace->segment_count, sizeof *segment, INDEX_32_COUNT_MAX, "segments");
    if (status != BASE_OK) return status;
    if (trace->segment_count > 0 &&
        !segment_in_order(&trace->segments[trace->segment_count - 1], segment))
        builder->segments_out_of_order = true;
    struct trace_segment *added = &trace->segments[trace->segment_count++];
    *added = *segment;
    added->block_first = trace->block_count;
    added->block_count = 0;
    return BASE_OK;
}

enum base_status trace_add_block(struct trace_builder *builder, const struct trace_block *block) {
    struct trace *trace = builder->trace;
    BASE_CHECK_GT(trace->segment_count, 0);
    BASE_CHECK_LE(block->state, TRACE_BLOCK_PENDING_FREE);
    BASE_CHECK(block->stack == TRACE_NONE || block->stack < trace->stack_count);
    struct trace_segment *segment = &trace->segments[trace->segment_count - 1];
    enum base_status status =
        reserve(builder, (void **)&trace->blocks, &builder->block_capacity, trace->block_count,
                sizeof *block, INDEX_32_COUNT_MAX, "blocks");
    if (status != BASE_OK) return status;
    trace->blocks[trace->block_count++] = *block;
    segment->block_count++;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Finishing.

static enum base_status events_sort_by_device(struct trace_builder *builder) {
    struct trace *trace = builder->trace;
    const uint64_t bytes = trace->event_count * sizeof *trace->events;
    if (bytes > memory_left(builder))
        return limit_status(builder, bytes, "events of alternating devices");
    struct trace_event *sorted = malloc(bytes);
    if (sorted == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %zu events", trace->event_count);
    size_t next[TRACE_DEVICE_COUNT_MAX];
    memcpy(next, trace->device_event_first, sizeof next);
    for (size_t i = 0; i < trace->event_count; i++)
        sorted[next[trace->events[i].device]++] = trace->events[i];
    free(trace->events);
    trace->events = sorted;
    return BASE_OK;
}

static enum base_status finish_events(struct trace_builder *builder) {
    struct trace *trace = builder->trace;
    size_t count[TRACE_DEVICE_COUNT_MAX] = {0};
    for (size_t i = 0; i < trace->event_count; i++) count[trace->events[i].device]++;
    trace->device_event_first[0] = 0;
    for (int device = 0; device < TRACE_DEVICE_COUNT_MAX; device++)
        trace->device_event_first[device + 1] = trace->device_event_first[device] + count[device];
    trace->device_count = builder->device_count;
    return builder->events_out_of_order ? events_sort_by_device(builder) : BASE_OK;
}

static int segment_compare(const void *a, const void *b) {
    const struct trace_segment *first = a, *second = b;
    if (first->device != second->device) return first->device < second->device ? -1 : 1;
    if (first->address != second->address) return first->address < second->address ? -1 : 1;
    // Equal addresses keep their order, so that a broken file reads the same everywhere.
    return first->block_first < second->block_first ? -1 : first->block_first > second->block_first;
}

static int block_compare(const void *a, const void *b) {
    const struct trace_block *first = a, *second = b;
    return first->address < second->address ? -1 : first->address > second->address;
}

static void finish_blocks(struct trace *trace) {
    for (size_t i = 0; i < trace->segment_count; i++) {
        const struct trace_segment *segment = &trace->segments[i];
        struct trace_block *blocks = trace->blocks + segment->block_first;
        bool in_order = true;
        for (uint32_t j = 1; j < segment->block_count; j++)
            in_order &= blocks[j - 1].address <= blocks[j].address;
        if (!in_order) qsort(blocks, segment->block_count, sizeof *blocks, block_compare);
    }
}

static enum base_status segments_sort(struct trace_builder *builder) {
    struct trace *trace = builder->trace;
    qsort(trace->segments, trace->segment_count, sizeof *trace->segments, segment_compare);
    if (trace->block_count == 0) {
        for (size_t i = 0; i < trace->segment_count; i++) trace->segments[i].block_first = 0;
        return BASE_OK;
    }
    const uint64_t bytes = trace->block_count * sizeof *trace->blocks;
    if (bytes > memory_left(builder))
        return limit_status(builder, bytes, "blocks of unsorted segments");
    struct trace_block *blocks = malloc(bytes);
    if (blocks == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %zu blocks", trace->block_count);
    size_t next = 0;
    for (size_t i = 0; i < trace->segment_count; i++) {
        struct trace_segment *segment = &trace->segments[i];
        if (segment->block_count > 0)
            memcpy(blocks + next, trace->blocks + segment->block_first,
                   segment->block_count * sizeof *blocks);
        segment->block_first = next;
        next += segment->block_count;
    }
    free(trace->blocks);
    trace->blocks = blocks;
    return BASE_OK;
}

// Gives back the unused tail of a table. A shrinking realloc that fails leaves the table as it was.
static void trim(void **table, size_t count, size_t size) {
    if (count == 0) {
        free(*table);
        *table = NULL;
        return;
    }
    void *trimmed = realloc(*table, count * size);
    if (trimmed != NULL) *table = trimmed;
}

static void indices_free(struct trace_builder *builder) {
    free(builder->string_index.slots);
    free(builder->stack_index.slots);
    free(builder->stream_index.slots);
    free(builder->pool_index.slots);
}

enum base_status trace_builder_finish(struct trace_builder *builder, struct trace **trace) {
    struct trace *built = builder->trace;
    BASE_CHECK_EQ(builder->frame_pending, 0);
    enum base_status status = finish_events(builder);
    if (status == BASE_OK) {
        finish_blocks(built);
        if (builder->segments_out_of_order) status = segments_sort(builder);
    }
    if (status != BASE_OK) {
        trace_builder_abandon(builder);
        return status;
    }
    trim((void **)&built->events, built->event_count, sizeof *built->events);
    trim((void **)&built->streams, built->stream_count, sizeof *built->streams);
    trim((void **)&built->pools, built->pool_count, sizeof *built->pools);
    trim((void **)&built->strings, built->string_count, sizeof *built->strings);
    trim((void **)&built->stacks, built->stack_count, sizeof *built->stacks);
    trim((void **)&built->frames, built->frame_count, sizeof *built->frames);
    trim((void **)&built->segments, built->segment_count, sizeof *built->segments);
    trim((void **)&built->blocks, built->block_count, sizeof *built->blocks);
    indices_free(builder);
    *builder = (struct trace_builder){0};
    *trace = built;
    return BASE_OK;
}

void trace_builder_abandon(struct trace_builder *builder) {
    indices_free(builder);
    trace_destroy(builder->trace);
    *builder = (struct trace_builder){0};
}

enum base_status trace_set_text(char **field, const char *text) {
    char *copy = NULL;
    if (text != NULL && (copy = strdup(text)) == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a text");
    free(*field);
    *field = copy;
    return BASE_OK;
}
