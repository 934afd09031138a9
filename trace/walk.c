// The layout that a recording describes, event by event. Blocks and segments live in arrays with
// lists of free slots; a block is found by its address through one hash table; so an event costs a
// few look-ups whatever the trace's size.
//
// A start state of a window may hold blocks whose size is known only from below (state.c): the
// block keeps up to 1 MiB that was not worth splitting off, and nothing says how much. The first
// allocation right behind such a block says it: it lies where the block ends. Then the walk moves
// that border, in its layout and in the start state.
#include "trace/walk.h"

#include "base/check.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_STEP = 512 };
#define SMALL_LIMIT_BYTES BASE_MIB
#define SLACK_LARGE_BYTES BASE_MIB

//------------------------------------------------------------------------------------------------
// PyTorch's rules of size.

static int floor_log2(uint64_t value) { return 63 - __builtin_clzll(value); }

uint64_t trace__round_size(const struct trace_settings *settings, uint64_t requested) {
    if (requested < BLOCK_STEP) return BLOCK_STEP;
    if (requested > UINT64_MAX / 4)
        return requested; // no size: such a request cannot have succeeded
    int entry = floor_log2(requested) - 20;
    entry = entry < 0 ? 0 : entry > 15 ? 15 : entry;
    const uint64_t divisions = settings->roundup_power2_divisions[entry];
    if (divisions > 1 && requested > BLOCK_STEP * divisions) {
        const uint64_t power = (uint64_t)1 << floor_log2(requested);
        if (requested == power) return requested;
        const uint64_t step = power >> floor_log2(divisions);
        return step == 0 ? 2 * power : base_round_up(requested, step);
    }
    return base_round_up(requested, BLOCK_STEP);
}

static bool is_oversize(const struct trace_settings *settings, uint64_t rounded) {
    return settings->max_split_size >= 0 && rounded >= (uint64_t)settings->max_split_size;
}

bool trace__should_split(const struct trace_settings *settings, bool is_large, uint64_t rounded,
                         uint64_t remaining) {
    if (!is_large) return remaining >= BLOCK_STEP;
    return !is_oversize(settings, rounded) && remaining > SLACK_LARGE_BYTES;
}

//------------------------------------------------------------------------------------------------
// Slots.

static enum base_status slot_reserve(void **table, size_t count, size_t *capacity, size_t size,
                                     const char *what) {
    if (count < *capacity) return BASE_OK;
    const size_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    if (wanted >= TRACE_NONE)
        return base_status_set(BASE_LIMIT, "more than %zu %s at one time", *capacity, what);
    void *grown = realloc(*table, wanted * size);
    if (grown == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %zu %s", wanted, what);
    *table = grown;
    *capacity = wanted;
    return BASE_OK;
}

static enum base_status block_take(struct trace_walk *walk, const struct trace_walk_block *value,
                                   uint32_t *index) {
    if (walk->block_unused != TRACE_NONE) {
        *index = walk->block_unused;
        walk->block_unused = walk->blocks[*index].after;
    } else {
        enum base_status status =
            slot_reserve((void **)&walk->blocks, walk->block_count, &walk->block_capacity,
                         sizeof *walk->blocks, "blocks");
        if (status != BASE_OK) return status;
        *index = (uint32_t)walk->block_count++;
    }
    walk->blocks[*index] = *value;
    walk->blocks[*index].used = true;
    return base_address_map_set(&walk->by_address, value->address, *index);
}

static void block_drop(struct trace_walk *walk, uint32_t index) {
    walk->blocks[index] = (struct trace_walk_block){.after = walk->block_unused};
    walk->block_unused = index;
}

static enum base_status segment_take(struct trace_walk *walk,
                                     const struct trace_walk_segment *value, uint32_t *index) {
    if (walk->segment_unused != TRACE_NONE) {
        *index = walk->segment_unused;
        walk->segment_unused = walk->segments[*index].stack;
    } else {
        enum base_status status =
            slot_reserve((void **)&walk->segments, walk->segment_count, &walk->segment_capacity,
                         sizeof *walk->segments, "segments");
        if (status != BASE_OK) return status;
        *index = (uint32_t)walk->segment_count++;
    }
    walk->segments[*index] = *value;
    walk->segments[*index].used = true;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// The start.

static enum base_status add_start_segment(struct trace_walk *walk, size_t i,
                                          const unsigned char *guessed) {
    const struct trace_segment *from = &walk->start->segments[i];
    const struct trace_walk_segment added = {.address = from->address,
                                             .total_size = from->total_size,
                                             .stack = from->stack,
                                             .stream = from->stream,
                                             .pool = from->pool,
                                             .is_large = from->is_large};
    uint32_t segment = 0, before = TRACE_NONE;
    enum base_status status = segment_take(walk, &added, &segment);
    for (uint64_t j = from->block_first;
         status == BASE_OK && j < from->block_first + from->block_count; j++) {
        const struct trace_block *block = &walk->start->blocks[j];
        const struct trace_walk_block copy = {.address = block->address,
                                              .size = block->size,
                                              .requested_size = block->requested_size,
                                              .before = before,
                                              .after = TRACE_NONE,
                                              .segment = segment,
                                              .start = (uint32_t)j,
                                              .stack = block->stack,
                                              .state = block->state,
                                              .guessed = guessed != NULL && guessed[j] != 0};
        uint32_t index = 0;
        status = block_take(walk, &copy, &index);
        if (status == BASE_OK && before != TRACE_NONE) walk->blocks[before].after = index;
        before = index;
    }
    return status;
}

enum base_status trace__walk_init(struct trace_walk *walk, const struct trace *trace, int device,
                                  struct trace_state *start, const unsigned char *guessed) {
    *walk = (struct trace_walk){.trace = trace,
                                .device = device,
                                .start = start,
                                .block_unused = TRACE_NONE,
                                .segment_unused = TRACE_NONE};
    enum base_status status = BASE_OK;
    for (size_t i = 0; start != NULL && status == BASE_OK && i < start->segment_count; i++)
        status = add_start_segment(walk, i, guessed);
    if (status != BASE_OK) trace__walk_deinit(walk);
    return status;
}

void trace__walk_deinit(struct trace_walk *walk) {
    free(walk->blocks);
    free(walk->segments);
    base_address_map_deinit(&walk->by_address);
    *walk = (struct trace_walk){0};
}

//------------------------------------------------------------------------------------------------
// Events.

static enum base_status contradiction(const struct trace_walk *walk, size_t event,
                                      const char *what) {
    const struct trace_event *entry = &walk->trace->events[event];
    return base_status_set(
        BASE_FORMAT, "event %zu (%s, address 0x%" PRIx64 ", %" PRIu64 " bytes): %s",
        event - walk->trace->device_event_first[walk->device],
        trace_action_name((enum trace_action)entry->action), entry->address, entry->size, what);
}

// An allocation at an address where no block begins: if that address lies a little behind the
// border between a block of guessed size and the free block after it, the border was there. *found
// is the free block then.
static enum base_status border_move(struct trace_walk *walk, uint64_t address, uint32_t *found) {
    uint32_t free_block = TRACE_NONE;
    for (uint64_t back = BLOCK_STEP;
         back <= SLACK_LARGE_BYTES && back <= address && free_block == TRACE_NONE;
         back += BLOCK_STEP)
        free_block = trace__find(&walk->by_address, address - back);
    if (free_block == TRACE_NONE) return BASE_OK;
    struct trace_walk_block *block = &walk->blocks[free_block];
    const uint64_t moved = address - block->address;
    if (block->state != TRACE_BLOCK_INACTIVE || block->before == TRACE_NONE || moved >= block->size)
        return BASE_OK;
    struct trace_walk_block *before = &walk->blocks[block->before];
    if (!before->guessed) return BASE_OK;
    trace__forget(&walk->by_address, block->address);
    enum base_status status = base_address_map_set(&walk->by_address, address, free_block);
    if (status != BASE_OK) return status;
    before->size += moved;
    before->guessed = false;
    block->address += moved;
    block->size -= moved;
    walk->start->blocks[before->start].size += moved;
    walk->start->blocks[before->start + 1].address += moved;
    walk->start->blocks[before->start + 1].size -= moved;
    *found = free_block;
    return BASE_OK;
}

// Cuts the front SIZE bytes off a free block; the rest is a new block behind it.
static enum base_status block_split(struct trace_walk *walk, uint32_t index, uint64_t size) {
    const struct trace_walk_block front = walk->blocks[index];
    const struct trace_walk_block rest = {.address = front.address + size,
                                          .size = front.size - size,
                                          .before = index,
                                          .after = front.after,
                                          .segment = front.segment,
                                          .start = TRACE_NONE,
                                          .stack = TRACE_NONE,
                                          .state = TRACE_BLOCK_INACTIVE};
    uint32_t added = 0;
    enum base_status status = block_take(walk, &rest, &added);
    if (status != BASE_OK) return status;
    if (front.after != TRACE_NONE) walk->blocks[front.after].before = added;
    walk->blocks[index].after = added;
    walk->blocks[index].size = size;
    return BASE_OK;
}

static enum base_status apply_alloc(struct trace_walk *walk, size_t event) {
    const struct trace_event *entry = &walk->trace->events[event];
    uint32_t index = trace__find(&walk->by_address, entry->address);
    if (index == TRACE_NONE) {
        enum base_status status = border_move(walk, entry->address, &index);
        if (status != BASE_OK) return status;
    }
    if (index == TRACE_NONE) return contradiction(walk, event, "no free block begins there");
    if (walk->blocks[index].state != TRACE_BLOCK_INACTIVE)
        return contradiction(walk, event, "the block there is in use: live blocks overlap");
    const struct trace_walk_segment *segment = &walk->segments[walk->blocks[index].segment];
    const uint64_t rounded = trace__round_size(&walk->trace->settings, entry->size),
                   size = walk->blocks[index].size;
    if (size < rounded)
        return contradiction(walk, event, "the free block there is smaller: live blocks overlap");
    if (trace__should_split(&walk->trace->settings, segment->is_large, rounded, size - rounded)) {
        enum base_status status = block_split(walk, index, rounded);
        if (status != BASE_OK) return status;
    }
    struct trace_walk_block *block = &walk->blocks[index];
    // The border to the block before is where this allocation lies: its size is certain now.
    if (block->before != TRACE_NONE) walk->blocks[block->before].guessed = false;
    block->state = TRACE_BLOCK_ALLOCATED;
    block->requested_size = entry->size;
    block->stack = entry->stack;
    block->start = TRACE_NONE;
    block->guessed = false;
    return BASE_OK;
}

// The block after joins the one before it; both are free.
static void block_merge(struct trace_walk *walk, uint32_t before, uint32_t after) {
    struct trace_walk_block *kept = &walk->blocks[before];
    const struct trace_walk_block gone = walk->blocks[after];
    trace__forget(&walk->by_address, gone.address);
    kept->size += gone.size;
    kept->after = gone.after;
    if (gone.after != TRACE_NONE) walk->blocks[gone.after].before = before;
    block_drop(walk, after);
}

static bool is_free(const struct trace_walk *walk, uint32_t index) {
    return index != TRACE_NONE && walk->blocks[index].state == TRACE_BLOCK_INACTIVE;
}

static enum base_status apply_free(struct trace_walk *walk, size_t event) {
    const struct trace_event *entry = &walk->trace->events[event];
    const bool completed = entry->action == TRACE_FREE_COMPLETED;
    uint32_t index = trace__find(&walk->by_address, entry->address);
    if (index == TRACE_NONE || walk->blocks[index].state == TRACE_BLOCK_INACTIVE)
        return contradiction(walk, event, "no live block has this address");
    struct trace_walk_block *block = &walk->blocks[index];
    if (!completed) {
        if (block->state == TRACE_BLOCK_PENDING_FREE)
            return contradiction(walk, event, "the block was freed already");
        block->state = TRACE_BLOCK_PENDING_FREE;
        return BASE_OK;
    }
    if (block->state == TRACE_BLOCK_ALLOCATED)
        return contradiction(walk, event, "no free_requested came before: the file lacks events");
    block->state = TRACE_BLOCK_INACTIVE;
    block->requested_size = 0;
    block->stack = TRACE_NONE;
    block->start = TRACE_NONE;
    block->guessed = false;
    if (is_free(walk, block->before)) {
        const uint32_t before = block->before;
        block_merge(walk, before, index);
        index = before;
    }
    if (is_free(walk, walk->blocks[index].after))
        block_merge(walk, index, walk->blocks[index].after);
    return BASE_OK;
}

static enum base_status apply_segment_alloc(struct trace_walk *walk, size_t event) {
    const struct trace_event *entry = &walk->trace->events[event];
    if (trace__find(&walk->by_address, entry->address) != TRACE_NONE)
        return contradiction(walk, event, "a block begins there already: segments overlap");
    const struct trace_walk_segment segment = {.address = entry->address,
                                               .total_size = entry->size,
                                               .stack = entry->stack,
                                               .stream = entry->stream,
                                               .pool = entry->pool,
                                               .is_large =
                                                   entry->size != TRACE_SMALL_SEGMENT_BYTES};
    struct trace_walk_block block = {.address = entry->address,
                                     .size = entry->size,
                                     .before = TRACE_NONE,
                                     .after = TRACE_NONE,
                                     .start = TRACE_NONE,
                                     .stack = TRACE_NONE,
                                     .state = TRACE_BLOCK_INACTIVE};
    enum base_status status = segment_take(walk, &segment, &block.segment);
    uint32_t index;
    return status == BASE_OK ? block_take(walk, &block, &index) : status;
}

static enum base_status apply_segment_free(struct trace_walk *walk, size_t event) {
    const struct trace_event *entry = &walk->trace->events[event];
    const uint32_t index = trace__find(&walk->by_address, entry->address);
    if (index == TRACE_NONE) return contradiction(walk, event, "no segment begins there");
    const struct trace_walk_block *block = &walk->blocks[index];
    if (block->state != TRACE_BLOCK_INACTIVE || block->before != TRACE_NONE ||
        block->after != TRACE_NONE)
        return contradiction(walk, event, "the segment still holds live blocks");
    if (block->size != entry->size)
        return contradiction(walk, event, "the segment there has another size");
    struct trace_walk_segment *segment = &walk->segments[block->segment];
    const uint32_t segment_index = block->segment;
    *segment = (struct trace_walk_segment){.stack = walk->segment_unused};
    walk->segment_unused = segment_index;
    trace__forget(&walk->by_address, entry->address);
    block_drop(walk, index);
    return BASE_OK;
}

enum base_status trace__walk_event(struct trace_walk *walk, size_t event) {
    switch ((enum trace_action)walk->trace->events[event].action) {
    case TRACE_ALLOC: return apply_alloc(walk, event);
    case TRACE_FREE_REQUESTED:
    case TRACE_FREE_COMPLETED: return apply_free(walk, event);
    case TRACE_SEGMENT_ALLOC: return apply_segment_alloc(walk, event);
    case TRACE_SEGMENT_FREE: return apply_segment_free(walk, event);
    case TRACE_SEGMENT_MAP:
    case TRACE_SEGMENT_UNMAP:
        return contradiction(walk, event, "expandable segments are not followed");
    default: return BASE_OK; // marks without effect on the layout
    }
}

//------------------------------------------------------------------------------------------------
// The layout as a state.

static int segment_compare(const void *a, const void *b, void *segments) {
    const struct trace_walk_segment *table = segments;
    const uint64_t first = table[*(const uint32_t *)a].address,
                   second = table[*(const uint32_t *)b].address;
    return first < second ? -1 : first > second;
}

static void state_add_segment(const struct trace_walk *walk, uint32_t index,
                              struct trace_state *state) {
    const struct trace_walk_segment *from = &walk->segments[index];
    struct trace_segment *segment = &state->segments[state->segment_count++];
    *segment = (struct trace_segment){.address = from->address,
                                      .total_size = from->total_size,
                                      .block_first = state->block_count,
                                      .stack = from->stack,
                                      .stream = from->stream,
                                      .pool = from->pool,
                                      .device = (uint8_t)walk->device,
                                      .is_large = from->is_large};
    for (uint32_t i = trace__find(&walk->by_address, from->address); i != TRACE_NONE;
         i = walk->blocks[i].after) {
        const struct trace_walk_block *block = &walk->blocks[i];
        state->blocks[state->block_count++] =
            (struct trace_block){.address = block->address,
                                 .size = block->size,
                                 .requested_size = block->requested_size,
                                 .stack = block->stack,
                                 .state = block->state};
        segment->block_count++;
        if (block->state == TRACE_BLOCK_ALLOCATED) segment->allocated_size += block->size;
        if (block->state == TRACE_BLOCK_INACTIVE) continue;
        segment->active_size += block->size;
        segment->requested_size += block->requested_size;
    }
}

enum base_status trace__walk_state(const struct trace_walk *walk, struct trace_state *state) {
    *state = (struct trace_state){0};
    uint32_t *order = malloc((walk->segment_count + 1) * sizeof *order);
    state->segments = malloc((walk->segment_count + 1) * sizeof *state->segments);
    state->blocks = malloc((walk->block_count + 1) * sizeof *state->blocks);
    if (order == NULL || state->segments == NULL || state->blocks == NULL) {
        free(order);
        trace_state_deinit(state);
        return base_status_set(BASE_HOST_MEMORY, "no memory for a state of %zu blocks",
                               walk->block_count);
    }
    size_t count = 0;
    for (size_t i = 0; i < walk->segment_count; i++)
        if (walk->segments[i].used) order[count++] = (uint32_t)i;
    qsort_r(order, count, sizeof *order, segment_compare, walk->segments);
    for (size_t i = 0; i < count; i++) state_add_segment(walk, order[i], state);
    free(order);
    return BASE_OK;
}
