// See call_stack.h.
#include "allocator/call_stack.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

//------------------------------------------------------------------------------------------------
// Distinct stacks.

#define SLOTS_FIRST 256

void cca__stack_table_init(struct cca__stack_table *table) {
    *table = (struct cca__stack_table){0};
    cca__lock_init(&table->lock);
}

void cca__stack_table_clear(struct cca__stack_table *table) {
    free(table->slots);
    free(table->stacks);
    free(table->frames);
    table->slots = NULL;
    table->stacks = NULL;
    table->frames = NULL;
    table->slot_count = table->count = table->capacity = 0;
    table->frame_count = table->frame_capacity = 0;
}

void cca__stack_table_deinit(struct cca__stack_table *table) {
    cca__stack_table_clear(table);
    cca__lock_deinit(&table->lock);
}

static uint32_t hash_of(void *const *frames, uint32_t count) {
    uint64_t hash = count;
    for (uint32_t index = 0; index < count; ++index) {
        hash = (hash ^ (uint64_t)(uintptr_t)frames[index]) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash >> 32);
}

// Where the stack is in the slots, or the empty slot where it would be.
static uint32_t find_slot(const struct cca__stack_table *table, void *const *frames, uint32_t count,
                          uint32_t hash) {
    uint32_t place = hash & (table->slot_count - 1);
    for (; table->slots[place] != 0; place = (place + 1) & (table->slot_count - 1)) {
        const struct cca__stack *const stack = &table->stacks[table->slots[place]];
        if (stack->hash == hash && stack->count == count &&
            memcmp(&table->frames[stack->first], frames, count * sizeof *frames) == 0)
            break;
    }
    return place;
}

// Room for one more stack of COUNT frames, with half of the slots empty. False: no memory.
static bool reserve_slots(struct cca__stack_table *table) {
    if (2 * (table->count + 2) <= table->slot_count) return true;
    const uint32_t slot_count = table->slot_count == 0 ? SLOTS_FIRST : 2 * table->slot_count;
    uint32_t *const slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL) return false;
    for (uint32_t number = 1; number < table->count; ++number) {
        uint32_t place = table->stacks[number].hash & (slot_count - 1);
        while (slots[place] != 0)
            place = (place + 1) & (slot_count - 1);
        slots[place] = number;
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = slot_count;
    return true;
}

static bool reserve(struct cca__stack_table *table, uint32_t count) {
    if (table->count >= CCA__STACKS_MAX || !reserve_slots(table)) return false;
    if (table->count + 1 >= table->capacity) {
        const uint32_t capacity = table->capacity == 0 ? 64 : 2 * table->capacity;
        struct cca__stack *const stacks = realloc(table->stacks, capacity * sizeof *table->stacks);
        if (stacks == NULL) return false;
        table->stacks = stacks;
        table->capacity = capacity;
    }
    if (table->frame_count + count > table->frame_capacity) {
        const uint32_t capacity = 2 * table->frame_capacity + CCA__STACK_FRAMES_MAX;
        void **const frames = realloc(table->frames, capacity * sizeof *table->frames);
        if (frames == NULL) return false;
        table->frames = frames;
        table->frame_capacity = capacity;
    }
    return true;
}

uint32_t cca__stack_table_add(struct cca__stack_table *table, void *const *frames, uint32_t count) {
    const uint32_t hash = hash_of(frames, count);
    uint32_t number = 0;
    cca__lock_take(&table->lock);
    if (table->slot_count != 0) number = table->slots[find_slot(table, frames, count, hash)];
    if (number == 0 && reserve(table, count)) {
        if (table->count == 0) table->stacks[table->count++] = (struct cca__stack){0};
        number = table->count++;
        table->stacks[number] = (struct cca__stack){table->frame_count, count, hash};
        memcpy(&table->frames[table->frame_count], frames, count * sizeof *frames);
        table->frame_count += count;
        table->slots[find_slot(table, frames, count, hash)] = number;
    }
    cca__lock_release(&table->lock);
    return number;
}

//------------------------------------------------------------------------------------------------
// Walks.

_Thread_local struct cca__stack_bounds cca__stack_bounds = {UINTPTR_MAX, UINTPTR_MAX};

// What cannot be found out leaves bounds that nothing is within.
static void find_bounds(struct cca__stack_bounds *bounds) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0)
        *bounds = (struct cca__stack_bounds){(uintptr_t)low,
                                             (uintptr_t)low + size - 2 * sizeof(uintptr_t)};
    (void)pthread_attr_destroy(&attributes);
}

CCA__READS_FRAMES static uint32_t walk_from(struct cca__stack_table *table, struct cca__walk *walk,
                                            uintptr_t frame) {
    const struct cca__stack_bounds *const bounds = &cca__stack_bounds;
    void *frames[CCA__STACK_FRAMES_MAX];
    *walk = (struct cca__walk){0};
    const uintptr_t begin = frame;
    uint32_t count = 0;
    while (count < CCA__STACK_FRAMES_MAX && frame > walk->last && cca__stack_has(bounds, frame)) {
        const uintptr_t next = cca__stack_word(frame),
                        code = cca__stack_word(frame + sizeof(uintptr_t));
        if (code == 0) break;
        walk->links[count][0] = next;
        walk->links[count][1] = code;
        frames[count++] = (void *)code;
        walk->last = frame;
        frame = next;
    }
    if (count == 0) return 0;
    walk->count = count;
    walk->stack = cca__stack_table_add(table, frames, count);
    if (walk->stack != 0) walk->frame = begin;
    return walk->stack;
}

uint32_t cca__stack_search(struct cca__stack_table *table, struct cca__walk_cache *cache,
                           uint32_t place, uintptr_t frame) {
    if (cca__stack_bounds.low == UINTPTR_MAX) find_bounds(&cca__stack_bounds);
    struct cca__walk *const first = &cache->walks[place], *const second = &cache->walks[place ^ 1];
    if (cca__walk_is_of(second, frame)) return second->stack;
    *second = *first;
    return walk_from(table, first, frame);
}
