// What the files on blocks of expandable segments share (expandable_blocks.h is for all others):
//
//     expandable_blocks   hits: best fit, handing out, freeing; and the functions below
//     expandable_grow     mapping memory for a request
//     expandable_release  unmapping free memory
//
// Functions on blocks need the lock of the pool's stream unless it says otherwise.
#ifndef TIDEMARK_ALLOCATOR_EXPANDABLE_INTERNAL_H
#define TIDEMARK_ALLOCATOR_EXPANDABLE_INTERNAL_H

#include "allocator/expandable.h"
#include "allocator/expandable_blocks.h"

static inline struct cca__expandable *cca__expandable_of(const struct cca *cca,
                                                         const struct cca__block *block) {
    return cca->segments[block->segment].expandable;
}
static inline bool cca__is_unmapped(const struct cca *cca, uint32_t number) {
    return number != 0 && cca__block_at(cca, number)->state == CCA__BLOCK_UNMAPPED;
}
static inline bool cca__is_free(const struct cca *cca, uint32_t number) {
    return number != 0 && cca__block_at(cca, number)->state == CCA__BLOCK_FREE;
}

// The block at LOWER takes the one behind it in.
void cca__expandable_absorb_next(struct cca *cca, struct cca__pool *pool, uint32_t lower_number);
// Joins a block, which is in no index, with its free neighbours; the result carries what NUMBER
// carried from its last use. _next: only with the one behind it, and NUMBER is the result.
void cca__expandable_join_next(struct cca *cca, struct cca__pool *pool, uint32_t number);
uint32_t cca__expandable_join_free(struct cca *cca, struct cca__pool *pool, uint32_t number);
// Fills in a block that is between no others yet.
void cca__expandable_set_up_block(struct cca *cca, const struct cca__pool *pool, uint32_t number,
                                  uint32_t segment, uint64_t address, size_t size,
                                  enum cca__block_state state);
void cca__expandable_link_behind(struct cca *cca, uint32_t number, uint32_t new_number);
// An unused block goes back to the stream's stock. NUMBER 0: nothing.
void cca__expandable_give_block_back(struct cca__pool *pool, uint32_t number);
// cca__expandable_unclaim_locked with the lock taken; an unmapped block stays as it is.
void cca__expandable_unclaim(struct cca__pool *pool, uint32_t number);

// growth_lock held: statistics of memory that was mapped, or, negative, unmapped.
void cca__expandable_count_mapping(struct cca__pool *pool, int64_t bytes);
// The page table's entries for the pages of a small pool's segment, before blocks are handed out
// there; and after pages are gone. Nothing for the large pool.
enum base_status cca__expandable_add_directories(struct cca *cca, const struct cca__pool *pool,
                                                 uint64_t address, size_t size) BASE_MUST_USE;
void cca__expandable_remove_directories(struct cca *cca, const struct cca__pool *pool,
                                        uint64_t address, size_t size);
// growth_lock held, no stream locked: a segment's addresses go, and the observer is told.
enum base_status cca__expandable_give_addresses_back(struct cca__pool *pool,
                                                     struct cca__expandable *memory) BASE_MUST_USE;

#endif
