// Stacks, found by the numbers of their frames. Every event of a recording has a list of frames of
// its own, and nearly all of them repeat one that was there before; comparing 4 bytes a frame here
// is several times cheaper than adding the frames to the trace for it to find out.
#include "trace/snapshot.h"

#include <stdlib.h>
#include <string.h>

// As with strings: a list not found so near is not entered, which costs a lookup in the trace each
// time.
#define PROBE_COUNT_MAX 32

// A multiplication a frame, and none waits for the one before.
static uint64_t hash_frames(const uint32_t *frames, size_t count) {
    uint64_t sum = count;
    for (size_t i = 0; i < count; i++) {
        uint64_t product = (frames[i] + 0x9e3779b97f4a7c15u * (i + 1)) * 0xff51afd7ed558ccdu;
        sum += product ^ product >> 32;
    }
    sum *= 0xc4ceb9fe1a85ec53u;
    return sum ^ sum >> 29;
}

static bool is_list_of(const struct snapshot *snapshot, const struct snapshot_frame_list *list,
                       const uint32_t *frames, size_t count) {
    return list->count == count && memcmp(snapshot->frame_numbers.entries + list->first, frames,
                                          count * sizeof *frames) == 0;
}

static enum base_status grow_slots(struct snapshot *snapshot) {
    struct snapshot_frame_index *index = &snapshot->frame_index;
    size_t slot_count = index->slot_count == 0 ? 1024 : index->slot_count * 2;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %zu hash slots", slot_count);
    free(index->slots);
    index->slots = slots;
    index->slot_count = slot_count;
    for (uint32_t i = 0; i < snapshot->frame_lists.count; i++) {
        const struct snapshot_frame_list *list = &snapshot->frame_lists.entries[i];
        size_t at = hash_frames(snapshot->frame_numbers.entries + list->first, list->count) &
                    (slot_count - 1);
        for (int probe = 0; probe < PROBE_COUNT_MAX && slots[at] != 0; probe++)
            at = (at + 1) & (slot_count - 1);
        if (slots[at] == 0) slots[at] = i + 1;
    }
    return BASE_OK;
}

// The trace's stack of these frames.
static enum base_status add_stack(struct snapshot *snapshot, const uint32_t *frames, size_t count,
                                  uint32_t *stack) {
    for (size_t i = 0; i < count; i++) {
        enum base_status status =
            trace_add_frame(&snapshot->builder, &snapshot->frames.entries[frames[i]]);
        if (status != BASE_OK) return status;
    }
    return trace_add_stack(&snapshot->builder, (uint32_t)count, stack);
}

// Enters the list whose numbers stand at the end of frame_numbers.
static enum base_status enter(struct snapshot *snapshot, const uint32_t *frames, size_t count,
                              size_t slot, uint32_t *stack) {
    enum base_status status = add_stack(snapshot, frames, count, stack);
    if (status == BASE_OK) status = SNAPSHOT_RESERVE(snapshot->frame_lists);
    if (status != BASE_OK) return status;
    snapshot->frame_lists.entries[snapshot->frame_lists.count++] = (struct snapshot_frame_list){
        .first = snapshot->frame_numbers.count, .count = (uint32_t)count, .stack = *stack};
    snapshot->frame_numbers.count += count;
    snapshot->frame_index.slots[slot] = (uint32_t)snapshot->frame_lists.count;
    return BASE_OK;
}

static enum base_status find_or_enter(struct snapshot *snapshot, const uint32_t *frames,
                                      size_t count, uint32_t *stack) {
    struct snapshot_frame_index *index = &snapshot->frame_index;
    if (snapshot->frame_lists.count * 2 >= index->slot_count) {
        enum base_status status = grow_slots(snapshot);
        if (status != BASE_OK) return status;
    }
    size_t at = hash_frames(frames, count) & (index->slot_count - 1);
    for (int probe = 0; probe < PROBE_COUNT_MAX; probe++, at = (at + 1) & (index->slot_count - 1)) {
        if (index->slots[at] == 0) return enter(snapshot, frames, count, at, stack);
        const struct snapshot_frame_list *list =
            &snapshot->frame_lists.entries[index->slots[at] - 1];
        if (!is_list_of(snapshot, list, frames, count)) continue;
        *stack = list->stack;
        return BASE_OK;
    }
    return add_stack(snapshot, frames, count, stack);
}

enum base_status trace__snapshot_make_stack(struct snapshot *snapshot,
                                            const struct trace__pickle_value *items, size_t count,
                                            struct trace__pickle_value *list) {
    // The candidate's numbers stand behind those of the known lists: there they stay if it is a new
    // one.
    enum base_status status = trace__snapshot_grow(
        (void **)&snapshot->frame_numbers.entries, &snapshot->frame_numbers.capacity,
        snapshot->frame_numbers.count + count, sizeof(uint32_t));
    if (status != BASE_OK) return status;
    uint32_t *frames = snapshot->frame_numbers.entries + snapshot->frame_numbers.count;
    for (size_t i = 0; i < count; i++) {
        if (items[i].type != SNAPSHOT_FRAME) {
            list->payload = 1;
            return BASE_OK;
        }
        frames[i] = (uint32_t)items[i].payload;
    }
    uint32_t stack = 0;
    if (!snapshot->no_stacks) status = find_or_enter(snapshot, frames, count, &stack);
    if (status != BASE_OK) return status;
    list->type = SNAPSHOT_STACK;
    list->payload = stack;
    return BASE_OK;
}

uint64_t trace__snapshot_stack_bytes(const struct snapshot *snapshot) {
    return snapshot->frame_numbers.capacity * sizeof(uint32_t) +
           snapshot->frame_lists.capacity * sizeof(struct snapshot_frame_list) +
           snapshot->frame_index.slot_count * sizeof(uint32_t);
}
