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

// The stack of this thread: addresses from LOW to HIGH; HIGH 0: not asked yet.
struct bounds {
    uintptr_t low, high;
};
static _Thread_local struct bounds thread_bounds;

// What cannot be found out leaves bounds that nothing is within.
static __attribute__((noinline)) void find_bounds(struct bounds *bounds) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    *bounds = (struct bounds){UINTPTR_MAX, UINTPTR_MAX};
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0)
        *bounds = (struct bounds){(uintptr_t)low, (uintptr_t)low + size};
    (void)pthread_attr_destroy(&attributes);
}

// Whether the two words at FRAME are of the thread's stack.
static inline bool is_frame(const struct bounds *bounds, uintptr_t frame) {
    return frame >= bounds->low && frame <= bounds->high - 2 * sizeof(uintptr_t) &&
           frame % sizeof(uintptr_t) == 0;
}

// Sanitizers know frames of functions, not the words between them, and would see a race with the
// thread that had this part of the memory as its stack before.
#define READS_FRAMES __attribute__((no_sanitize("address", "thread", "undefined")))

READS_FRAMES static inline uintptr_t word_at(uintptr_t address) {
    return *(const volatile uintptr_t *)address;
}

// The frames of a walk lie one above the other, and each word is compared before the frame that it
// leads to is read: so all are in this thread's stack, as the first and the last one are.
READS_FRAMES static inline bool is_same(const struct cca__walk *walk, uintptr_t frame,
                                        const struct bounds *bounds) {
    if (walk->frame != frame || walk->last > bounds->high - 2 * sizeof(uintptr_t)) return false;
    for (uint32_t index = 0; index < walk->count; ++index) {
        const uintptr_t next = walk->links[index].next;
        if (word_at(frame) != next || word_at(frame + sizeof(uintptr_t)) != walk->links[index].code)
            return false;
        frame = next;
    }
    return true;
}

READS_FRAMES static __attribute__((noinline)) uint32_t walk(struct cca__stack_table *table,
                                                            const struct bounds *bounds,
                                                            struct cca__walk *made,
                                                            uintptr_t frame) {
    void *frames[CCA__STACK_FRAMES_MAX];
    made->frame = 0;
    made->count = 0;
    const uintptr_t begin = frame;
    for (uintptr_t below = 0;
         made->count < CCA__STACK_FRAMES_MAX && frame > below && is_frame(bounds, frame);) {
        const uintptr_t next = word_at(frame), code = word_at(frame + sizeof(uintptr_t));
        if (code == 0) break;
        made->links[made->count].next = next;
        made->links[made->count].code = code;
        frames[made->count++] = (void *)code;
        made->last = below = frame;
        frame = next;
    }
    made->stack = made->count == 0 ? 0 : cca__stack_table_add(table, frames, made->count);
    if (made->stack != 0) made->frame = begin;
    return made->stack;
}

READS_FRAMES uint32_t cca__stack_find(struct cca__stack_table *table, struct cca__walk_cache *cache,
                                      const void *frame_pointer) {
    struct bounds *const bounds = &thread_bounds;
    const uintptr_t frame = (uintptr_t)frame_pointer;
    if (__builtin_expect(bounds->high == 0, 0)) find_bounds(bounds);
    if (__builtin_expect(!is_frame(bounds, frame), 0)) return 0;
    // By the caller of the caller, too: the allocator's own frames are the same for all.
    const uintptr_t next = word_at(frame);
    uintptr_t mix = frame + 5 * word_at(frame + sizeof(uintptr_t));
    if (__builtin_expect(is_frame(bounds, next), 1)) mix += word_at(next + sizeof(uintptr_t));
    mix ^= mix >> 12;
    struct cca__walk *const known = &cache->walks[(mix ^ mix >> 6) & (CCA__WALKS - 1)];
    if (__builtin_expect(is_same(known, frame, bounds), 1)) return known->stack;
    return walk(table, bounds, known, frame);
}
