// Slabs of metadata: items of one size in one reserved range of addresses, named by 32-bit
// numbers. So a link between blocks is four bytes and its target one shift and one addition away,
// and an item never moves.
//
// Nothing of the range is memory until an item there is used; when no item is in use, a trim
// gives all memory back. A reader without a lock may look at any item that was ever taken: it
// sees what is there, or zeros.
#ifndef TIDEMARK_ALLOCATOR_ARENA_H
#define TIDEMARK_ALLOCATOR_ARENA_H

#include "allocator/lock.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct cca__arena {
    unsigned char *base;
    const char *item_name;
    size_t item_bytes, committed_bytes;
    uint32_t capacity;
    struct cca__lock lock; // a leaf: nothing is taken under it. Guards all below
    uint32_t used; // items 1 .. used - 1 were taken at some time since the arena was last empty
    uint32_t live; // taken now
    uint32_t *given_back; // stack of free items below USED; room for USED of them
    uint32_t given_back_count, given_back_capacity;
};

// Room for CAPACITY - 1 items; item 0 means "none" and may be read: nothing but zeros, so that
// fast paths need not ask for it.
enum base_status cca__arena_init(struct cca__arena *arena, const char *item_name, size_t item_bytes,
                                 uint32_t capacity) BASE_MUST_USE;
void cca__arena_deinit(struct cca__arena *arena);

// Sets *item; its bytes are zeros or what its last user left.
enum base_status cca__arena_take(struct cca__arena *arena, uint32_t *item) BASE_MUST_USE;
void cca__arena_give_back(struct cca__arena *arena, uint32_t item);
void cca__arena_give_back_all(struct cca__arena *arena, const uint32_t *items, uint32_t count);
// Gives the memory back if no item is taken.
void cca__arena_trim(struct cca__arena *arena);
// The same, and before an item is taken again, ALSO gives back what there is only beside items.
void cca__arena_trim_with(struct cca__arena *arena, void (*also)(void *), void *argument);

#endif
