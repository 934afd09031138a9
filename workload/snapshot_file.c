// See snapshot_file.h. Frames are looked up once an address and handed to the trace's builder,
// which keeps equal stacks once.
#include "workload/snapshot_file.h"

#include "allocator/settings.h"
#include "base/address_map.h"
#include "base/symbol.h"
#include "trace/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INLINED_MAX 16 // functions at one address

//------------------------------------------------------------------------------------------------
// Frames.

// What stands at one address: frames FIRST to FIRST + COUNT - 1 of the table, innermost first.
struct place {
    uint32_t first, count;
    bool has_allocator; // or stood: one of the allocator's functions, which is left out
};

struct symbols {
    struct base_address_map known; // address to place
    struct place *places;
    size_t place_count, place_capacity;
    struct trace_frame *frames;
    size_t frame_count, frame_capacity;
};

static void symbols_deinit(struct symbols *symbols) {
    base_address_map_deinit(&symbols->known);
    free(symbols->places);
    free(symbols->frames);
}

static enum base_status reserve(void **entries, size_t *capacity, size_t count, size_t size) {
    if (count <= *capacity) return BASE_OK;
    const size_t larger = count + *capacity + 64;
    void *const moved = realloc(*entries, larger * size);
    if (moved == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for the names of %zu frames", count);
    *entries = moved;
    *capacity = larger;
    return BASE_OK;
}

static bool begins_with(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends_with(const char *text, const char *with) {
    const size_t length = strlen(text), with_length = strlen(with);
    return length >= with_length && strcmp(text + length - with_length, with) == 0;
}

// By the names of our functions, and the interface's, which are inlined into the program's.
static bool is_allocator(const struct base_symbol *symbol) {
    return begins_with(symbol->function, "cca_") || begins_with(symbol->function, "caching_") ||
           ends_with(symbol->file, "allocator/allocator.h");
}

static enum base_status add_text(struct trace_builder *builder, const char *text,
                                 uint32_t *string) {
    return trace_add_string(builder, text, strlen(text), string);
}

// Without debug information the module is the file; without a name the function is a place in it.
static enum base_status add_frame(struct symbols *symbols, struct trace_builder *builder,
                                  const struct base_symbol *symbol) {
    char function[BASE_SYMBOL_TEXT];
    if (symbol->function[0] != '\0')
        snprintf(function, sizeof function, "%s", symbol->function);
    else
        snprintf(function, sizeof function, "0x%llx", (unsigned long long)symbol->offset);
    enum base_status status = reserve((void **)&symbols->frames, &symbols->frame_capacity,
                                      symbols->frame_count + 1, sizeof *symbols->frames);
    struct trace_frame frame = {.line = symbol->line > 0 ? (uint32_t)symbol->line : 0};
    if (status == BASE_OK) status = add_text(builder, function, &frame.function);
    if (status == BASE_OK)
        status =
            add_text(builder, symbol->file[0] != '\0' ? symbol->file : symbol->module, &frame.file);
    if (status == BASE_OK) symbols->frames[symbols->frame_count++] = frame;
    return status;
}

// Sets *place to what stands at ADDRESS: nothing, if it is no code's.
static enum base_status find_place(struct symbols *symbols, struct trace_builder *builder,
                                   const void *address, struct place *place) {
    uint64_t index;
    if (base_address_map_get(&symbols->known, (uintptr_t)address, &index)) {
        *place = symbols->places[index];
        return BASE_OK;
    }
    enum base_status status = reserve((void **)&symbols->places, &symbols->place_capacity,
                                      symbols->place_count + 1, sizeof *symbols->places);
    struct base_symbol found[INLINED_MAX];
    const size_t count = base_symbol_frames(address, found, INLINED_MAX);
    size_t begin = 0; // behind the outermost function of the allocator
    for (size_t inlined = 0; inlined < count; ++inlined)
        if (is_allocator(&found[inlined])) begin = inlined + 1;
    *place = (struct place){.first = (uint32_t)symbols->frame_count, .has_allocator = begin > 0};
    for (; begin < count && status == BASE_OK; ++begin, ++place->count)
        status = add_frame(symbols, builder, &found[begin]);
    if (status == BASE_OK)
        status = base_address_map_set(&symbols->known, (uintptr_t)address, symbols->place_count);
    if (status == BASE_OK) symbols->places[symbols->place_count++] = *place;
    return status;
}

// The trace's stack for one of the snapshot's, TRACE_NONE if nothing of it is known.
static enum base_status add_stack(struct symbols *symbols, struct trace_builder *builder,
                                  const struct allocator_snapshot *snapshot,
                                  const struct allocator_snapshot_stack *stack, uint32_t *index) {
    void *const *const addresses = &snapshot->frames[stack->frame_first];
    struct place place;
    size_t begin = 0; // where the program calls the allocator
    enum base_status status = BASE_OK;
    for (size_t frame = 0; frame < stack->frame_count && status == BASE_OK; ++frame) {
        status = find_place(symbols, builder, addresses[frame], &place);
        if (status == BASE_OK && place.has_allocator) begin = frame;
    }
    uint32_t count = 0;
    for (size_t frame = begin; frame < stack->frame_count && status == BASE_OK; ++frame) {
        status = find_place(symbols, builder, addresses[frame], &place);
        for (uint32_t part = 0; part < place.count && status == BASE_OK; ++part, ++count)
            status = trace_add_frame(builder, &symbols->frames[place.first + part]);
    }
    *index = TRACE_NONE;
    return status == BASE_OK && count > 0 ? trace_add_stack(builder, count, index) : status;
}

// The trace's number for each stack of the snapshot, to be freed.
static enum base_status add_stacks(struct trace_builder *builder,
                                   const struct allocator_snapshot *snapshot, uint32_t **indices) {
    struct symbols symbols = {0};
    enum base_status status = BASE_OK;
    *indices = malloc((snapshot->stack_count + 1) * sizeof **indices);
    if (*indices == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for the numbers of %zu stacks",
                               snapshot->stack_count);
    (*indices)[0] = TRACE_NONE; // also where there are none at all
    for (size_t stack = 1; stack < snapshot->stack_count && status == BASE_OK; ++stack)
        status =
            add_stack(&symbols, builder, snapshot, &snapshot->stacks[stack], &(*indices)[stack]);
    symbols_deinit(&symbols);
    return status;
}

//------------------------------------------------------------------------------------------------
// Entries, segments, settings.

static const uint8_t actions[ALLOCATOR_ACTION_COUNT] = {
    [ALLOCATOR_ALLOC] = TRACE_ALLOC,
    [ALLOCATOR_FREE_REQUESTED] = TRACE_FREE_REQUESTED,
    [ALLOCATOR_FREE_COMPLETED] = TRACE_FREE_COMPLETED,
    [ALLOCATOR_SEGMENT_ALLOC] = TRACE_SEGMENT_ALLOC,
    [ALLOCATOR_SEGMENT_FREE] = TRACE_SEGMENT_FREE,
    [ALLOCATOR_SEGMENT_MAP] = TRACE_SEGMENT_MAP,
    [ALLOCATOR_SEGMENT_UNMAP] = TRACE_SEGMENT_UNMAP,
    [ALLOCATOR_SNAPSHOT] = TRACE_SNAPSHOT,
    [ALLOCATOR_OOM] = TRACE_OOM,
};

static enum base_status check_device(int device) {
    if (device < TRACE_DEVICE_COUNT_MAX) return BASE_OK;
    return base_status_set(BASE_LIMIT, "device %d: a trace holds devices 0 to %d", device,
                           TRACE_DEVICE_COUNT_MAX - 1);
}

static enum base_status add_stream_and_pool(struct trace_builder *builder, cudaStream_t stream,
                                            struct allocator_pool_id pool, uint16_t *stream_index,
                                            uint16_t *pool_index) {
    const enum base_status status = trace_add_stream(builder, (uintptr_t)stream, stream_index);
    if (status != BASE_OK) return status;
    return trace_add_pool(builder, (struct trace_pool_id){pool.capture, pool.user}, pool_index);
}

static enum base_status add_entry(struct trace_builder *builder, int device,
                                  const struct allocator_snapshot_entry *entry,
                                  const uint32_t *stacks) {
    struct trace_event event = {
        .address = entry->action == ALLOCATOR_OOM ? entry->device_free : (uintptr_t)entry->address,
        .size = entry->size,
        .time_us = entry->time_us,
        .stack = stacks[entry->stack],
        .metadata = TRACE_NONE,
        .action = actions[entry->action],
        .device = (uint8_t)device,
    };
    const enum base_status status =
        add_stream_and_pool(builder, entry->stream, entry->pool, &event.stream, &event.pool);
    return status == BASE_OK ? trace_add_event(builder, &event) : status;
}

static enum base_status add_history(struct trace_builder *builder,
                                    const struct allocator_snapshot *snapshot,
                                    const uint32_t *stacks) {
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < snapshot->trace_count && status == BASE_OK; ++index) {
        const struct allocator_snapshot_trace *const trace = &snapshot->traces[index];
        status = check_device(trace->device);
        if (status == BASE_OK) status = trace_add_devices(builder, (uint32_t)trace->device + 1);
        for (size_t entry = 0; entry < trace->entry_count && status == BASE_OK; ++entry)
            status = add_entry(builder, trace->device,
                               &snapshot->entries[trace->entry_first + entry], stacks);
    }
    return status;
}

static enum base_status add_blocks(struct trace_builder *builder,
                                   const struct allocator_snapshot *snapshot,
                                   const struct allocator_snapshot_segment *segment,
                                   const uint32_t *stacks) {
    static const uint8_t states[] = {
        [ALLOCATOR_BLOCK_INACTIVE] = TRACE_BLOCK_INACTIVE,
        [ALLOCATOR_BLOCK_ALLOCATED] = TRACE_BLOCK_ALLOCATED,
        [ALLOCATOR_BLOCK_PENDING_FREE] = TRACE_BLOCK_PENDING_FREE,
    };
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < segment->block_count && status == BASE_OK; ++index) {
        const struct allocator_snapshot_block *const block =
            &snapshot->blocks[segment->block_first + index];
        status = trace_add_block(builder, &(struct trace_block){
                                              .address = (uintptr_t)block->address,
                                              .size = block->size,
                                              .requested_size = block->requested_size,
                                              .stack = stacks[block->stack],
                                              .state = states[block->state],
                                          });
    }
    return status;
}

static enum base_status add_segments(struct trace_builder *builder,
                                     const struct allocator_snapshot *snapshot,
                                     const uint32_t *stacks) {
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < snapshot->segment_count && status == BASE_OK; ++index) {
        const struct allocator_snapshot_segment *const segment = &snapshot->segments[index];
        struct trace_segment entry = {
            .address = (uintptr_t)segment->address,
            .total_size = segment->total_size,
            .allocated_size = segment->allocated_size,
            .active_size = segment->active_size,
            .requested_size = segment->requested_size,
            .stack = stacks[segment->stack],
            .device = (uint8_t)segment->device,
            .is_large = segment->is_large,
            .is_expandable = segment->is_expandable,
        };
        status = check_device(segment->device);
        if (status == BASE_OK)
            status = add_stream_and_pool(builder, segment->stream, segment->pool, &entry.stream,
                                         &entry.pool);
        if (status == BASE_OK) status = trace_add_segment(builder, &entry);
        if (status == BASE_OK) status = add_blocks(builder, snapshot, segment, stacks);
    }
    return status;
}

static int64_t or_unlimited(size_t size) {
    return size == CCA_SETTINGS_UNLIMITED ? -1 : (int64_t)size;
}

// Of an allocator without settings nothing is said.
static enum base_status add_settings(struct trace *trace,
                                     const struct allocator_snapshot *snapshot) {
    const struct cca_settings *const from = snapshot->settings;
    struct trace_settings *const to = &trace->settings;
    if (snapshot->trace_count > 0) {
        to->capacity_bytes = snapshot->traces[0].total_bytes;
        to->memory_fraction = snapshot->traces[0].fraction;
    }
    if (from == NULL) return BASE_OK;
    to->known = true;
    to->max_split_size = or_unlimited(from->max_split_size);
    to->garbage_collection_threshold = from->garbage_collection_threshold;
    to->expandable_segments = from->expandable_segments;
    for (int index = 0; index < CCA_SETTINGS_DIVISION_COUNT; ++index)
        to->roundup_power2_divisions[index] = (uint32_t)from->roundup_power2_divisions[index];
    to->other = (struct trace_other_settings){
        .known = true,
        .release_lock_on_cudamalloc = from->release_lock_on_cudamalloc,
        .graph_capture_record_stream_reuse = from->graph_capture_record_stream_reuse,
        .pinned_use_cuda_host_register = from->pinned_use_cuda_host_register,
        .pinned_num_register_threads = from->pinned_num_register_threads,
        .max_round_threshold = or_unlimited(from->pinned_max_round_threshold),
        .max_cached_size = or_unlimited(from->pinned_max_cached_size),
    };
    return trace_set_text(&to->config, from->text);
}

//------------------------------------------------------------------------------------------------
// The whole.

enum base_status workload_snapshot_trace(const struct allocator_snapshot *snapshot,
                                         const char *name, struct trace **trace) {
    struct trace_builder builder;
    enum base_status status = trace_builder_init(&builder, name, 0);
    if (status != BASE_OK) return status;
    builder.trace->has_pool_ids = true; // as PyTorch's 2.15, whose decisions these are
    uint32_t *stacks = NULL;
    status = add_settings(builder.trace, snapshot);
    if (status == BASE_OK) status = add_stacks(&builder, snapshot, &stacks);
    if (status == BASE_OK) status = add_history(&builder, snapshot, stacks);
    if (status == BASE_OK) status = add_segments(&builder, snapshot, stacks);
    free(stacks);
    if (status == BASE_OK) return trace_builder_finish(&builder, trace);
    trace_builder_abandon(&builder);
    return status;
}

// The file's name without folder and last suffix.
static void base_name(const char *path, char *name, size_t size) {
    const char *const slash = strrchr(path, '/');
    snprintf(name, size, "%s", slash == NULL ? path : slash + 1);
    char *const point = strrchr(name, '.');
    if (point != NULL && point != name) *point = '\0';
}

static enum base_status trace_for(const struct allocator_snapshot *snapshot, const char *path,
                                  struct trace **trace) {
    char name[256];
    base_name(path, name, sizeof name);
    const enum base_status status = workload_snapshot_trace(snapshot, name, trace);
    return status == BASE_OK ? BASE_OK : base_status_prefix(status, "%s", path);
}

enum base_status workload_snapshot_write_pickle(const struct allocator_snapshot *snapshot,
                                                const char *path) {
    struct trace *trace;
    enum base_status status = trace_for(snapshot, path, &trace);
    if (status != BASE_OK) return status;
    status = trace_write_snapshot(trace, path);
    trace_destroy(trace);
    return status;
}

enum base_status workload_snapshot_write_tmt(const struct allocator_snapshot *snapshot,
                                             const char *path) {
    struct trace *trace;
    enum base_status status = trace_for(snapshot, path, &trace);
    if (status != BASE_OK) return status;
    status = trace_write(trace, path, true);
    trace_destroy(trace);
    return status;
}
