// Where a call came from: return addresses found by frame pointers, kept once for each distinct
// stack and named by a number.
//
// A walk follows saved frame pointers within the bounds of the thread's stack. In code that was
// built without frame pointers it ends early or meets words that are no code, which the reader of
// the stack finds out; it never reads outside the thread's stack.
//
// Most calls come from where an earlier one came from. A cache keeps walks with the words that they
// read; if all of these words are still there, it is the same stack, and the reads need not wait
// for each other.
#ifndef TIDEMARK_ALLOCATOR_CALL_STACK_H
#define TIDEMARK_ALLOCATOR_CALL_STACK_H

#include "allocator/lock.h"

#include <stddef.h>
#include <stdint.h>

#define CCA__STACK_FRAMES_MAX 32        // of one stack, the innermost ones
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

// Guarded by its owner. Zeros are an empty cache.
struct cca__walk_cache {
    struct cca__walk {
        uintptr_t frame, last; // where it began and ended; 0: no walk
        uint32_t count, stack;
        struct {
            uintptr_t next, code; // the two words of a frame: the caller's frame, where to return
        } links[CCA__STACK_FRAMES_MAX];
    } walks[CCA__WALKS];
};

// The stack that FRAME, a frame of the calling thread whose function has a frame pointer, returns
// into: innermost first. 0: no room in the table.
uint32_t cca__stack_find(struct cca__stack_table *table, struct cca__walk_cache *cache,
                         const void *frame);

#endif
