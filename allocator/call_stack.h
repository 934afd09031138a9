// Where a call came from: return addresses found by frame pointers, kept once for each distinct
// stack and named by a number.
//
// A walk follows saved frame pointers within the bounds of the thread's stack. In code that was
// built without frame pointers it ends early or meets words that are no code, which the reader of
// the stack finds out; it never reads outside the thread's stack.
//
// Most calls come from where an earlier one came from. A cache keeps walks with the words that they
// read; if all of these words are still there, it is the same stack, and the reads need not wait
// for each other. A walk has two places in it, so that two call sites that alternate and want the
// same one do not drive each other out.
#ifndef TIDEMARK_ALLOCATOR_CALL_STACK_H
#define TIDEMARK_ALLOCATOR_CALL_STACK_H

#include "allocator/lock.h"

#include <stddef.h>
#include <stdint.h>

#define CCA__STACK_FRAMES_MAX 30        // of one stack, the innermost ones
#define CCA__STACKS_MAX       (1 << 20) // distinct ones; calls beyond have none
#define CCA__WALKS            64        // of a cache, a power of two

struct cca__stack {
    uint32_t first, count; // in frames
    uint32_t hash;
};

// All distinct stacks. Zeros are an empty table but for the lock. Number 0 is "none".
struct cca__stack_table {
    struct cca__lock lock; // a leaf; guards the rest
    uint32_t *slots;       // by hash: a stack's number; 0: empty
    uint32_t slot_count;   // a power of two, or 0
    struct cca__stack *stacks;
    uint32_t count, capacity; // of stacks, with number 0 once there is one
    void **frames;
    uint32_t frame_count, frame_capacity;
};
void cca__stack_table_init(struct cca__stack_table *table);
void cca__stack_table_deinit(struct cca__stack_table *table);
// Forgets all stacks. No cache may be used with the table afterwards.
void cca__stack_table_clear(struct cca__stack_table *table);
// The number of the stack, 0 if it is new and there is no room for it.
uint32_t cca__stack_table_add(struct cca__stack_table *table, void *const *frames, uint32_t count);

// The two words of a frame: the caller's frame, where to return. Read together.
typedef uint64_t cca__frame_words __attribute__((vector_size(16), may_alias));
typedef uint64_t cca__stacked_words __attribute__((vector_size(16), aligned(8), may_alias));

// Guarded by its owner. Zeros are an empty cache.
struct cca__walk_cache {
    struct cca__walk {
        uintptr_t frame, last; // where it began and ended; 0: no walk
        uint32_t count, stack;
        cca__frame_words links[CCA__STACK_FRAMES_MAX];
    } walks[CCA__WALKS];
};
_Static_assert(sizeof(struct cca__walk) == 512, "a walk is found without a multiplication");

// The stack of this thread; nothing is within it before it is asked for.
struct cca__stack_bounds {
    uintptr_t low, high; // of where a frame may begin
};
extern _Thread_local struct cca__stack_bounds cca__stack_bounds
    __attribute__((tls_model("initial-exec")));

// Sanitizers know frames of functions, not the words between them, and would see a race with the
// thread that had this part of the memory as its stack before.
#define CCA__READS_FRAMES __attribute__((no_sanitize("address", "thread", "undefined")))

CCA__READS_FRAMES static inline uintptr_t cca__stack_word(uintptr_t address) {
    return *(const volatile uintptr_t *)address;
}

// Whether there are two words of the thread's stack at FRAME.
static inline bool cca__stack_has(const struct cca__stack_bounds *bounds, uintptr_t frame) {
    return frame - bounds->low <= bounds->high - bounds->low && frame % sizeof(uintptr_t) == 0;
}

// Whether FRAME is where a known walk began, and nothing has changed since.
CCA__READS_FRAMES static inline bool cca__walk_is_of(const struct cca__walk *known,
                                                     uintptr_t frame) {
    const struct cca__stack_bounds *const bounds = &cca__stack_bounds;
    if (__builtin_expect(
            known->frame != frame || frame < bounds->low || known->last > bounds->high, 0))
        return false;
    // All frames of the walk lie between its first and last one, so in this thread's stack.
    cca__frame_words difference = {0, 0};
    const cca__frame_words *link = known->links, *const end = link + known->count;
    do {
        difference |= *(const cca__stacked_words *)frame ^ *link;
        frame = (*link)[0];
    } while (++link < end);
    return __builtin_expect((difference[0] | difference[1]) == 0, 1);
}

// What cca__stack_find finds out where the first PLACE of the cache has another walk.
uint32_t cca__stack_search(struct cca__stack_table *table, struct cca__walk_cache *cache,
                           uint32_t place, uintptr_t frame);

// The stack that FRAME, a frame of the calling thread whose function has a frame pointer, returns
// into: innermost first. 0: no room in the table, or not on the thread's stack.
CCA__READS_FRAMES static inline uint32_t cca__stack_find(struct cca__stack_table *table,
                                                         struct cca__walk_cache *cache,
                                                         const void *frame_pointer) {
    const uintptr_t frame = (uintptr_t)frame_pointer;
    // By the caller's caller, too: the allocator's own frames are the same for all.
    const uintptr_t next = cca__stack_word(frame);
    uintptr_t mix = frame + 5 * cca__stack_word(frame + sizeof(uintptr_t));
    if (__builtin_expect(cca__stack_has(&cca__stack_bounds, next), 1))
        mix += cca__stack_word(next + sizeof(uintptr_t));
    mix ^= mix >> 12;
    const uint32_t place = (uint32_t)(mix ^ mix >> 6) & (CCA__WALKS - 1);
    const struct cca__walk *const known = &cache->walks[place];
    return cca__walk_is_of(known, frame) ? known->stack
                                         : cca__stack_search(table, cache, place, frame);
}

#endif
