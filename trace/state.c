// The state before the first event of a window.
//
// A segment or block was there at the start if the first event of its address takes it away
// (segment_free, free_requested, free_completed), or if it is in the final state and no event made
// it. The free blocks are the rest. What a live block's size was:
//   - one that is still there at the end and has no event: as in the final state;
//   - else the rounded request, and in the large pool up to 1 MiB more that was not worth splitting
//   off. Pieces of the large pool are
//     longer than 1 MiB, so a shorter gap behind such a block belongs to it. With a longer gap the
//     border is open by up to 1 MiB: the first allocation behind the block shows it (walk.c). Where
//     none comes before the block itself is freed, the least size is assumed; the free block behind
//     it was then at least as long as any request it could have served.
//   - a block of max_split_size or more is never split: it fills its gap.
// A block whose first event is free_completed was pending free at the start.
#include "trace/walk.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct builder {
    const struct trace *trace;
    int device;
    size_t event_first, event_end;
    struct base_address_map block_seen, segment_seen; // addresses that some event names
    struct trace_segment *segments;
    size_t segment_count, segment_capacity;
    struct trace_block *live; // exact size, or 0: to be inferred
    size_t live_count, live_capacity;
};

static enum base_status reserve(void **table, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return BASE_OK;
    const size_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    void *grown = realloc(*table, wanted * size);
    if (grown == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a start state of %zu entries",
                               wanted);
    *table = grown;
    *capacity = wanted;
    return BASE_OK;
}

static enum base_status add_segment(struct builder *builder, const struct trace_segment *segment) {
    enum base_status status = reserve((void **)&builder->segments, builder->segment_count,
                                      &builder->segment_capacity, sizeof *builder->segments);
    if (status == BASE_OK) builder->segments[builder->segment_count++] = *segment;
    return status;
}

static enum base_status add_live(struct builder *builder, const struct trace_block *block) {
    enum base_status status = reserve((void **)&builder->live, builder->live_count,
                                      &builder->live_capacity, sizeof *builder->live);
    if (status == BASE_OK) builder->live[builder->live_count++] = *block;
    return status;
}

//------------------------------------------------------------------------------------------------
// What was there.

static enum base_status take_block_event(struct builder *builder, const struct trace_event *event) {
    if (trace__find(&builder->block_seen, event->address) != TRACE_NONE) return BASE_OK;
    enum base_status status = base_address_map_set(&builder->block_seen, event->address, 0);
    if (status != BASE_OK || event->action == TRACE_ALLOC) return status;
    const struct trace_block block = {.address = event->address,
                                      .requested_size = event->size,
                                      .stack = TRACE_NONE,
                                      .state = event->action == TRACE_FREE_REQUESTED
                                                   ? TRACE_BLOCK_ALLOCATED
                                                   : TRACE_BLOCK_PENDING_FREE};
    return add_live(builder, &block);
}

static enum base_status take_segment_event(struct builder *builder,
                                           const struct trace_event *event) {
    if (trace__find(&builder->segment_seen, event->address) != TRACE_NONE) return BASE_OK;
    enum base_status status = base_address_map_set(&builder->segment_seen, event->address, 0);
    if (status != BASE_OK || event->action == TRACE_SEGMENT_ALLOC) return status;
    const struct trace_segment segment = {.address = event->address,
                                          .total_size = event->size,
                                          .stack = TRACE_NONE,
                                          .stream = event->stream,
                                          .pool = event->pool,
                                          .device = event->device,
                                          .is_large = event->size != TRACE_SMALL_SEGMENT_BYTES};
    return add_segment(builder, &segment);
}

static enum base_status take_events(struct builder *builder) {
    enum base_status status = BASE_OK;
    for (size_t i = builder->event_first; status == BASE_OK && i < builder->event_end; i++) {
        const struct trace_event *event = &builder->trace->events[i];
        switch ((enum trace_action)event->action) {
        case TRACE_ALLOC:
        case TRACE_FREE_REQUESTED:
        case TRACE_FREE_COMPLETED: status = take_block_event(builder, event); break;
        case TRACE_SEGMENT_ALLOC:
        case TRACE_SEGMENT_FREE: status = take_segment_event(builder, event); break;
        default: break;
        }
    }
    return status;
}

static enum base_status take_final_state(struct builder *builder) {
    const struct trace *trace = builder->trace;
    enum base_status status = BASE_OK;
    for (size_t i = 0; status == BASE_OK && i < trace->segment_count; i++) {
        const struct trace_segment *segment = &trace->segments[i];
        if (segment->device != builder->device) continue;
        if (trace__find(&builder->segment_seen, segment->address) == TRACE_NONE)
            status = add_segment(builder, segment);
        for (uint64_t j = segment->block_first;
             status == BASE_OK && j < segment->block_first + segment->block_count; j++) {
            const struct trace_block *block = &trace->blocks[j];
            if (block->state != TRACE_BLOCK_INACTIVE &&
                trace__find(&builder->block_seen, block->address) == TRACE_NONE)
                status = add_live(builder, block);
        }
    }
    return status;
}

//------------------------------------------------------------------------------------------------
// Where it was.

static int segment_compare(const void *a, const void *b) {
    const struct trace_segment *first = a, *second = b;
    return first->address < second->address ? -1 : first->address > second->address;
}

static int block_compare(const void *a, const void *b) {
    const struct trace_block *first = a, *second = b;
    return first->address < second->address ? -1 : first->address > second->address;
}

static void state_add_block(struct trace_state *state, struct trace_segment *segment,
                            const struct trace_block *block) {
    state->blocks[state->block_count++] = *block;
    segment->block_count++;
    if (block->state == TRACE_BLOCK_INACTIVE) return;
    segment->active_size += block->size;
    segment->requested_size += block->requested_size;
    if (block->state == TRACE_BLOCK_ALLOCATED) segment->allocated_size += block->size;
}

// The size of a block with ROOM bytes to the next live block or the segment's end. *guessed: it may
// be up to 1 MiB more.
static uint64_t infer_size(const struct trace_settings *settings, bool is_large, uint64_t requested,
                           uint64_t room, bool *guessed) {
    const uint64_t rounded = trace__round_size(settings, requested);
    *guessed = false;
    if (!is_large || rounded >= room) return rounded;
    if (!trace__should_split(settings, true, rounded, room - rounded)) return room;
    *guessed = true;
    return rounded;
}

static enum base_status contradiction(const struct trace_segment *segment,
                                      const struct trace_block *block, const char *what) {
    return base_status_set(BASE_FORMAT,
                           "the start of the window cannot be rebuilt: block 0x%" PRIx64
                           " of %" PRIu64 " bytes in segment 0x%" PRIx64 " of %" PRIu64 " bytes %s",
                           block->address, block->requested_size, segment->address,
                           segment->total_size, what);
}

// Lays one segment out: its live blocks, which begin at *next of builder->live, and the free gaps
// between them.
static enum base_status place_segment(struct builder *builder, struct trace_state *state,
                                      unsigned char *guessed, struct trace_segment *segment,
                                      size_t *next) {
    const struct trace_settings *settings = &builder->trace->settings;
    const uint64_t end = segment->address + segment->total_size;
    uint64_t address = segment->address;
    segment->block_first = state->block_count;
    segment->block_count = 0;
    segment->allocated_size = segment->active_size = segment->requested_size = 0;
    while (address < end) {
        const bool have_live = *next < builder->live_count && builder->live[*next].address < end;
        const uint64_t limit = have_live ? builder->live[*next].address : end;
        if (limit > address) { // a free gap
            const struct trace_block gap = {
                .address = address, .size = limit - address, .stack = TRACE_NONE};
            state_add_block(state, segment, &gap);
            address = limit;
            continue;
        }
        struct trace_block block = builder->live[(*next)++];
        const bool more = *next < builder->live_count && builder->live[*next].address < end;
        const uint64_t room = (more ? builder->live[*next].address : end) - address;
        bool is_guessed = false;
        if (block.size == 0)
            block.size =
                infer_size(settings, segment->is_large, block.requested_size, room, &is_guessed);
        if (block.size > room)
            return contradiction(segment, &block,
                                 "does not fit before the next live block or the segment's end");
        guessed[state->block_count] = is_guessed;
        state_add_block(state, segment, &block);
        address += block.size;
    }
    return BASE_OK;
}

static enum base_status place_all(struct builder *builder, struct trace_state *state,
                                  unsigned char *guessed) {
    size_t next = 0;
    uint64_t address = 0; // end of the segment before
    for (size_t i = 0; i < builder->segment_count; i++) {
        struct trace_segment *segment = &builder->segments[i];
        if (segment->address < address || segment->total_size == 0 ||
            segment->address + segment->total_size < segment->address)
            return base_status_set(BASE_FORMAT,
                                   "the start of the window cannot be rebuilt: segment 0x%" PRIx64
                                   " of %" PRIu64 " bytes is empty or overlaps the one before",
                                   segment->address, segment->total_size);
        address = segment->address + segment->total_size;
        if (next < builder->live_count && builder->live[next].address < segment->address) break;
        enum base_status status = place_segment(builder, state, guessed, segment, &next);
        if (status != BASE_OK) return status;
    }
    if (next < builder->live_count)
        return base_status_set(
            BASE_FORMAT,
            "the free of an unknown address: block 0x%" PRIx64 " of %" PRIu64
            " bytes is freed, but was neither allocated nor lies in a segment of the start",
            builder->live[next].address, builder->live[next].requested_size);
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// The borders, and the whole.

// Follows the window once: contradictions come out, open borders are settled.
static enum base_status settle(struct builder *builder, struct trace_state *state,
                               const unsigned char *guessed) {
    struct trace_walk walk;
    enum base_status status =
        trace__walk_init(&walk, builder->trace, builder->device, state, guessed);
    for (size_t i = builder->event_first; status == BASE_OK && i < builder->event_end; i++) {
        status = trace__walk_event(&walk, i);
        if (status != BASE_OK) break;
    }
    trace__walk_deinit(&walk);
    return status;
}

// A moved border made a block longer after its segment was summed up.
static void sum_up(struct trace_state *state) {
    for (size_t i = 0; i < state->segment_count; i++) {
        struct trace_segment *segment = &state->segments[i];
        segment->active_size = segment->allocated_size = 0;
        for (uint64_t j = segment->block_first; j < segment->block_first + segment->block_count;
             j++) {
            if (state->blocks[j].state != TRACE_BLOCK_INACTIVE)
                segment->active_size += state->blocks[j].size;
            if (state->blocks[j].state == TRACE_BLOCK_ALLOCATED)
                segment->allocated_size += state->blocks[j].size;
        }
    }
}

static enum base_status build(struct builder *builder, struct trace_state *state) {
    enum base_status status = take_events(builder);
    if (status == BASE_OK) status = take_final_state(builder);
    if (status != BASE_OK) return status;
    if (builder->segment_count > 0)
        qsort(builder->segments, builder->segment_count, sizeof *builder->segments,
              segment_compare);
    if (builder->live_count > 0)
        qsort(builder->live, builder->live_count, sizeof *builder->live, block_compare);
    // Each live block has at most one gap behind it, each segment one before.
    const size_t block_count_max = 2 * builder->live_count + builder->segment_count + 1;
    unsigned char *guessed = calloc(block_count_max, 1);
    state->blocks = malloc(block_count_max * sizeof *state->blocks);
    if (guessed == NULL || state->blocks == NULL)
        status = base_status_set(BASE_HOST_MEMORY, "no memory for a start state");
    if (status == BASE_OK) status = place_all(builder, state, guessed);
    if (status == BASE_OK) {
        state->segments = builder->segments;
        state->segment_count = builder->segment_count;
        builder->segments = NULL;
        status = settle(builder, state, guessed);
        sum_up(state);
    }
    free(guessed);
    return status;
}

enum base_status trace_start_state(const struct trace *trace, int device,
                                   struct trace_state *state) {
    *state = (struct trace_state){0};
    if (device < 0 || (uint32_t)device >= trace->device_count)
        return base_status_set(BASE_INVALID_VALUE, "%s has no device %d: it has %u", trace->name,
                               device, trace->device_count);
    if (!trace_has_placement(trace, device)) return BASE_OK;
    if (trace__is_mapped(trace, device)) return trace__check_mapped(trace, device);
    struct builder builder = {.trace = trace,
                              .device = device,
                              .event_first = trace->device_event_first[device],
                              .event_end = trace->device_event_first[device + 1]};
    enum base_status status = build(&builder, state);
    base_address_map_deinit(&builder.block_seen);
    base_address_map_deinit(&builder.segment_seen);
    free(builder.segments);
    free(builder.live);
    if (status != BASE_OK) trace_state_deinit(state);
    return status;
}

void trace_state_deinit(struct trace_state *state) {
    free(state->segments);
    free(state->blocks);
    *state = (struct trace_state){0};
}
