// What a pointer that some caller passes means: the block that holds it, or what is wrong with it.
// Not for hits: they know their block from the page table alone (pool.h).
#ifndef TIDEMARK_ALLOCATOR_POINTER_H
#define TIDEMARK_ALLOCATOR_POINTER_H

#include "allocator/core.h"

// The block, handed out or not, whose memory or addresses POINTER is of; its stream's lock is held
// then. NULL if no segment has that address. No lock held. Cost: one stream after the other is
// locked and its segments walked.
struct cca__block *cca__pointer_lock_block(struct cca *cca, const void *pointer,
                                           struct cca__pool **pool);

// The handed-out block at POINTER; its stream's lock is held then. BASE_INVALID_POINTER says what
// is wrong. No lock held.
enum base_status cca__pointer_lock(struct cca *cca, const void *pointer, struct cca__pool **pool,
                                   struct cca__block **block) BASE_MUST_USE;
// The same for an address inside the block, where the allocator takes one.
enum base_status cca__pointer_lock_around(struct cca *cca, const void *pointer,
                                          struct cca__pool **pool,
                                          struct cca__block **block) BASE_MUST_USE;

// What is wrong with POINTER, as a status: freed before, inside a block, or of no block.
enum base_status cca__pointer_invalid(struct cca *cca, const void *pointer);
// The same from an allocator that knows no more than what is handed out now.
enum base_status cca__pointer_not_live(const void *pointer);

#endif
