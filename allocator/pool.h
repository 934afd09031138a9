// The decisions on blocks of one pool: best fit, split, merge. What a cache hit runs.
//
// All functions need the lock of the pool's stream (`_locked`).
#ifndef TIDEMARK_ALLOCATOR_POOL_H
#define TIDEMARK_ALLOCATOR_POOL_H

#include "allocator/core.h"

static inline struct cca__stream *cca__stream_at(const struct cca *cca, uint32_t number) {
    return (struct cca__stream *)(void *)(cca->streams.base + number * CCA__STREAM_STRIDE);
}

// The pool of a number that some block carries or carried. 0 and 1 are none.
static inline struct cca__pool *cca__pool_at(const struct cca *cca, uint16_t number) {
    return number < 2 ? NULL : &cca__stream_at(cca, number / 2)->pools[number % 2];
}

static inline struct cca__pool *cca__pool_of_kind(struct cca__stream *stream, unsigned kind) {
    struct cca__pool *pool = &stream->pools[kind];
    // Keeps the compiler from computing the address anew for each field that is used.
    __asm__("" : "+r"(pool));
    return pool;
}

// {0, 0}: of no private pool.
static inline struct allocator_pool_id cca__pool_id(const struct cca__pool *pool) {
    const struct cca__private_pool *const owner = pool->stream->private_pool;
    return owner != NULL ? owner->id : (struct allocator_pool_id){0};
}

// Whether max_split_size forbids a request of ROUNDED bytes to take a free block of SIZE. The
// stream's lock held.
bool cca__pool_refuses(const struct cca *cca, bool is_expandable, size_t size, size_t rounded);

// Serves a request from the pool's free blocks: the best fit, split if it is much larger. *pointer
// becomes NULL if none fits or max_split_size forbids the best one. *over_limit becomes true if a
// limit of the stream was passed. On failure (no host memory) nothing changed.
enum base_status cca__pool_serve_locked(struct cca *cca, struct cca__pool *pool, size_t rounded,
                                        size_t requested, void **pointer,
                                        bool *over_limit) BASE_MUST_USE;

// Hands out the front of a free block: the rest stays free, if it is large enough to be a block.
enum base_status cca__pool_hand_out_locked(struct cca *cca, struct cca__pool *pool, uint32_t number,
                                           size_t rounded, size_t requested,
                                           bool *over_limit) BASE_MUST_USE;

// The same for one that is not in the free index: a new segment's.
enum base_status cca__pool_hand_out_new_locked(struct cca *cca, struct cca__pool *pool,
                                               uint32_t number, size_t rounded, size_t requested,
                                               bool *over_limit) BASE_MUST_USE;

// The block handed out at ADDRESS, looked up without a lock; 0 if there certainly is none. A hint:
// the caller checks it by cca__block_is_handed_out under the lock of the stream of its pool.
static inline uint32_t cca__block_lookup(struct cca *cca, const void *pointer) {
    const uint64_t address = (uint64_t)(uintptr_t)pointer;
    // A window that strays share may name another block, or one that is long gone: strays first.
    if (__builtin_expect(cca__page_table_has_strays(&cca->page_table), 0)) {
        const uint32_t stray = cca__page_table_find_stray(&cca->page_table, address);
        if (stray != 0) return stray;
    }
    return cca__page_table_find(&cca->page_table, address);
}
// Whether the block NUMBER of cca__page_table_find is the one handed out at POINTER, and there is
// nothing special about it: no other stream uses it, its segment is not expandable, it is no stray.
// The lock of POOL_NUMBER's stream held.
static inline bool cca__block_is_plain(const struct cca__block *block, uint32_t pool_number,
                                       const void *pointer) {
    return cca__block_pool(block) == pool_number &&
           block->address == (uint64_t)(uintptr_t)pointer && block->state == CCA__BLOCK_ALLOCATED &&
           block->flags == CCA__BLOCK_IN_TABLE && block->uses == 0;
}
static inline bool cca__block_is_of(const struct cca__block *block, uint32_t pool_number,
                                    const void *pointer) {
    return cca__block_pool(block) == pool_number &&
           block->address == (uint64_t)(uintptr_t)pointer && block->state == CCA__BLOCK_ALLOCATED;
}
static inline bool cca__block_is_handed_out(const struct cca__block *block,
                                            const struct cca__pool *pool, const void *pointer) {
    return cca__block_is_of(block, pool->number, pointer);
}

// The end of a free: the block merges with its free neighbours and becomes available. Its state
// is ALLOCATED or PENDING. *over_limit as above.
void cca__pool_free_locked(struct cca *cca, struct cca__pool *pool, uint32_t number,
                           bool *over_limit);

// For what puts blocks where they are wanted, with the locks of all streams: each step may be a
// peak that the next one takes away, so the statistics meet at once.
//
// Frees a block that is handed out and that no other stream uses, as a program's free does.
void cca__pool_put_back_locked(struct cca__pool *pool, uint32_t number);
// Hands out the front SIZE bytes of a free block, for a request of as many, whatever the settings
// say about splits. It cannot fail: there must be an unused block in the stream's stock, and room
// for the page table's entry.
void cca__pool_hand_out_exactly_locked(struct cca__pool *pool, uint32_t number, size_t size);
// Makes that room, or adds 1 to *STRAYS (cca__page_table_reserve_strays). BASE_HOST_MEMORY.
enum base_status cca__pool_reserve_entry_locked(struct cca *cca,
                                                const struct cca__segment *segment,
                                                uint64_t address, size_t *strays) BASE_MUST_USE;

// An event about a block.
void cca__observe_block(struct cca *cca, enum allocator_action action, const struct cca__pool *pool,
                        const struct cca__block *block);
// Both events of a free that does not have to wait; the block is still handed out.
void cca__observe_free(struct cca *cca, const struct cca__pool *pool,
                       const struct cca__block *block);

// Counts a block of max_split_size or more that was handed out (+1) or freed (-1).
void cca__count_oversize(struct cca__device *device, int amount);

#endif
