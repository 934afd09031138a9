// What a cache hit runs, inlined into its callers: find, split and hand out; take back, merge.
//
// Written for few stores and predictable branches. What is off by default (observer, history,
// oversize, garbage collection, expandable segments) makes a stream special (core.h), and costs
// others one test a call. Only caching.c, pool.c and expandable_blocks.c include it.
//
// All functions need the lock of the pool's stream.
#ifndef TIDEMARK_ALLOCATOR_HIT_H
#define TIDEMARK_ALLOCATOR_HIT_H

#include "allocator/expandable_blocks.h"
#include "allocator/pool.h"

//------------------------------------------------------------------------------------------------
// Statistics of a hit. A call tests only what it can raise; the result is negative if a limit was
// passed.

// How many bytes the pool, and both pools of its stream, may still hand out; the latter without
// what the stream adds.
struct cca__hit_slack {
    cca__sizes own, both;
};

static inline struct cca__hit_slack cca__hit_slack_of(const struct cca__pool *pool) {
    const struct cca__ledger *const own = &pool->ledger, *const other = &pool->other->ledger;
    struct cca__hit_slack slack;
    slack.own = own->room.sizes - own->handed.sizes;
    slack.both = slack.own + (other->room.sizes - other->handed.sizes);
    return slack;
}

// How far inactive_split_bytes is below its limits.
static inline int64_t cca__hit_split_bytes_slack(const struct cca__pool *pool, int64_t own_slack,
                                                 int64_t both_slack) {
    const struct cca__ledger *const own = &pool->ledger, *const other = &pool->other->ledger;
    return (own->split_bytes_bound - own->partial_bytes - own_slack) |
           (pool->stream->both_split_bytes_bound - own->partial_bytes - other->partial_bytes -
            both_slack);
}

// How far inactive_split is below its limits.
static inline int64_t cca__hit_split_free_slack(const struct cca__pool *pool) {
    const struct cca__ledger *const own = &pool->ledger, *const other = &pool->other->ledger;
    const int64_t slack = own->room.split_free - own->handed.split_free;
    return slack | (slack + (other->room.split_free - other->handed.split_free) +
                    pool->stream->both_slack.split_free);
}

// Counts a block as handed out, and tests all that always rises.
static inline int64_t cca__hit_count_handed(struct cca__pool *pool, cca__sizes sizes,
                                            struct cca__hit_slack *slack) {
    struct cca__ledger *const own = &pool->ledger, *const other = &pool->other->ledger;
    const struct cca__counts *const all = &pool->stream->both_slack;
    own->handed.sizes += sizes;
    const int64_t handed_blocks = ++own->handed.blocks;
    *slack = cca__hit_slack_of(pool);
    const cca__sizes lowest = slack->own | (slack->both + all->sizes);
    const int64_t blocks = own->room.blocks - handed_blocks;
    return (lowest[0] | lowest[1]) |
           (blocks | (blocks + (other->room.blocks - other->handed.blocks) + all->blocks));
}

// The front of a block of WHOLE bytes was handed out. ALONE: it was its segment; SPLITS: a free
// block stays behind.
static inline int64_t cca__hit_count_hand_out(struct cca__pool *pool, cca__sizes sizes,
                                              int64_t whole, bool alone, bool splits) {
    struct cca__ledger *const own = &pool->ledger;
    struct cca__hit_slack slack;
    int64_t lowest = cca__hit_count_handed(pool, sizes, &slack);
    if (alone) {
        own->partial_bytes += whole;
        if (splits) {
            ++own->handed.split_free;
            ++own->split_free_rises;
            own->split_bytes_rises += whole - sizes[CCA__BYTES];
            lowest |=
                cca__hit_split_bytes_slack(pool, slack.own[CCA__BYTES], slack.both[CCA__BYTES]) |
                cca__hit_split_free_slack(pool);
        }
    } else if (!splits) {
        --own->handed.split_free;
    }
    return lowest;
}

// A block was freed and merged with MERGED neighbours into one of WHOLE bytes.
static inline int64_t cca__hit_count_free(struct cca__pool *pool, cca__sizes sizes, int64_t whole,
                                          bool alone, int merged) {
    struct cca__ledger *const own = &pool->ledger, *const other = &pool->other->ledger;
    own->room.sizes += sizes;
    ++own->room.blocks;
    if (alone) { // nothing rises
        own->room.split_free += merged;
        own->partial_bytes -= whole;
        own->split_bytes_rises -= sizes[CCA__BYTES];
        return 0;
    }
    const int64_t slack = own->room.sizes[CCA__BYTES] - own->handed.sizes[CCA__BYTES];
    const int64_t lowest = cca__hit_split_bytes_slack(
        pool, slack, slack + (other->room.sizes[CCA__BYTES] - other->handed.sizes[CCA__BYTES]));
    own->room.split_free += merged - 1;
    if (merged != 0) return lowest;
    ++own->split_free_rises;
    return lowest | cca__hit_split_free_slack(pool);
}

// After the counters of a call: if a limit was passed, it is raised now or the caller has to meet
// the other streams.
static inline void cca__hit_test_limits(struct cca__pool *pool, int64_t slack, bool *over_limit) {
    if (__builtin_expect(slack < 0, 0) && !cca__stats_raise_locked(pool->stream))
        *over_limit = true;
}

//------------------------------------------------------------------------------------------------
// Handing out.

// Makes the page table name the block. Strays are stored at each hand-out, since their entry is
// removed at the free.
static inline enum base_status cca__hit_store_in_table(struct cca *cca,
                                                       const struct cca__pool *pool,
                                                       struct cca__block *block, uint32_t number) {
    struct cca__page_table *const table = &cca->page_table;
    if (pool->is_small) {
        const uint32_t directory = cca->segments[block->segment].directory;
        if (__builtin_expect(directory == 0, 0))
            return cca__page_table_store_stray(table, block->address, number);
        const enum base_status status =
            cca__page_table_store_small(table, directory, block->address, number);
        if (status != BASE_OK) return status;
    } else {
        if (__builtin_expect(block->address >> CCA__ADDRESS_BITS != 0, 0))
            return cca__page_table_store_stray(table, block->address, number);
        cca__page_table_store_large(table, block->address, number);
    }
    block->flags |= CCA__BLOCK_IN_TABLE;
    return BASE_OK;
}

// What a block that becomes free carries of the clock of garbage collection. On a plain stream it
// stands at 0, as in every block.
static inline uint32_t cca__hit_gc_base(const struct cca__pool *pool) {
    return atomic_load_explicit(&pool->device->large_searches, memory_order_relaxed);
}

// Makes TAIL the part of the block beyond ROUNDED. It keeps what the block carried from its last
// use.
static inline void cca__hit_split_off(struct cca *cca, struct cca__pool *pool,
                                      struct cca__block *block, uint32_t number,
                                      uint32_t tail_number, size_t rounded) {
    struct cca__block *const tail = cca__block_at(cca, tail_number);
    tail->address = block->address + rounded;
    tail->size = block->size - rounded;
    tail->requested = block->requested;
    tail->registration = block->registration;
    tail->gc_base = block->gc_base;
    tail->previous = number;
    tail->next = block->next;
    tail->segment = block->segment;
    atomic_store_explicit(&tail->pool, pool->number, memory_order_relaxed);
    tail->state = CCA__BLOCK_FREE;
    tail->flags = 0;
    if (block->next != 0) cca__block_at(cca, block->next)->previous = tail_number;
    block->next = tail_number;
    block->size = rounded;
}

// SPLITS_FINELY: what is left of a block of the large pool is a block from 512 B on, as in a small
// one; so it is, whatever the block, while a pool's segments are expandable. PLAIN: the stream is
// not special. *slack becomes negative if a limit was passed. On failure nothing changed.
__attribute__((always_inline)) static inline enum base_status
cca__hit_hand_out(struct cca *cca, struct cca__pool *pool, uint32_t number, size_t rounded,
                  size_t requested, bool in_index, bool splits_finely, bool plain, int64_t *slack) {
    struct cca__block *const block = cca__block_at(cca, number);
    struct cca__stream *const stream = pool->stream;
    const bool splits = cca__should_split(splits_finely | pool->is_small, block->size, rounded,
                                          plain ? CCA_UNLIMITED : cca->config.sizes.max_split_size);
    uint32_t tail = 0;
    if (splits) {
        const enum base_status status =
            cca__block_take(&stream->unused_blocks, &cca->block_chunks, &tail);
        if (__builtin_expect(status != BASE_OK, 0)) return status;
    }
    if ((block->flags & CCA__BLOCK_IN_TABLE) == 0) {
        const enum base_status status = cca__hit_store_in_table(cca, pool, block, number);
        if (__builtin_expect(status != BASE_OK, 0)) {
            if (splits) cca__block_give_back(&stream->unused_blocks, &cca->block_chunks, tail);
            return status;
        }
    }
    const bool alone = cca__block_is_alone(block);
    const int64_t whole = (int64_t)block->size;
    if (splits) {
        if (in_index)
            cca__free_index_replace(&pool->index, cca->blocks, number, tail);
        else
            cca__free_index_insert(&pool->index, cca->blocks, tail);
        cca__hit_split_off(cca, pool, block, number, tail, rounded);
        if (!plain) cca__block_at(cca, tail)->gc_base = cca__hit_gc_base(pool);
    } else if (in_index) {
        cca__free_index_remove(&pool->index, cca->blocks, number);
    }
    block->requested = requested;
    block->state = CCA__BLOCK_ALLOCATED;
    *slack = cca__hit_count_hand_out(pool, (cca__sizes){(int64_t)block->size, (int64_t)requested},
                                     whole, alone, splits);
    if (plain) return BASE_OK;
    if (__builtin_expect(block->size >= cca->config.sizes.max_split_size, 0))
        cca__count_oversize(stream->device, 1);
    if (cca->watched) cca__observe_block(cca, ALLOCATOR_ALLOC, pool, block);
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Freeing.

// The block takes in the one behind it, which is free and in no index.
static inline void cca__hit_absorb_next(struct cca *cca, struct cca__pool *pool, uint32_t number) {
    struct cca__block *const block = cca__block_at(cca, number);
    const uint32_t next_number = block->next;
    const struct cca__block *const next = cca__block_at(cca, next_number);
    block->size += next->size;
    block->next = next->next;
    if (block->next != 0) cca__block_at(cca, block->next)->previous = number;
    cca__block_give_back(&pool->stream->unused_blocks, &cca->block_chunks, next_number);
}

// Whether that neighbour, 0 for none, can be joined. Block 0 is not free, so it needs no question.
static inline bool cca__hit_joins(const struct cca *cca, uint32_t neighbour) {
    return cca__block_at(cca, neighbour)->state == CCA__BLOCK_FREE;
}

// Frees a block of a segment that is not expandable. The result is negative if a limit was passed.
__attribute__((always_inline)) static inline int64_t
cca__hit_free(struct cca *cca, struct cca__pool *pool, uint32_t number, bool plain) {
    struct cca__block *block = cca__block_at(cca, number);
    const cca__sizes sizes = {(int64_t)block->size, (int64_t)block->requested};
    const uint32_t next = block->next, previous = block->previous;
    int merged = 0;
    if (cca__hit_joins(cca, next)) {
        cca__free_index_remove(&pool->index, cca->blocks, next);
        cca__hit_absorb_next(cca, pool, number);
        ++merged;
    }
    if (cca__hit_joins(cca, previous)) {
        cca__free_index_remove(&pool->index, cca->blocks, previous);
        cca__block_at(cca, previous)->requested = block->requested;
        cca__hit_absorb_next(cca, pool, previous);
        number = previous;
        block = cca__block_at(cca, number);
        ++merged;
    }
    block->state = CCA__BLOCK_FREE;
    if (!plain) block->gc_base = cca__hit_gc_base(pool);
    cca__free_index_insert(&pool->index, cca->blocks, number);
    return cca__hit_count_free(pool, sizes, (int64_t)block->size, cca__block_is_alone(block),
                               merged);
}

//------------------------------------------------------------------------------------------------
// The short path, of plain streams: all that is asked of the free index is the block freed or split
// off last. Nothing here calls anything, so the callers, who end with the call of whatever takes
// more, save no registers. False, and nothing changed: it takes more.

static inline bool cca__hit_serve_front(struct cca *cca, struct cca__stream *stream,
                                        struct cca__pool *pool, bool is_small, size_t rounded,
                                        size_t requested, void **pointer, int64_t *slack) {
    const uint32_t number = pool->index.front;
    struct cca__block *const block = cca__block_at(cca, number);
    const size_t whole = block->size;
    if (!cca__free_index_front_is_best(&pool->index, whole, rounded)) return false;
    if (__builtin_expect((block->flags & CCA__BLOCK_IN_TABLE) == 0, 0)) return false;
    const bool alone = cca__block_is_alone(block);
    uint32_t tail = 0;
    const bool splits = cca__should_split(is_small, whole, rounded, CCA_UNLIMITED);
    if (splits) {
        tail = stream->unused_blocks.first_unused;
        if (__builtin_expect(tail == 0, 0)) return false;
        stream->unused_blocks.first_unused = cca__block_at(cca, tail)->link[0];
        cca__hit_split_off(cca, pool, block, number, tail, rounded);
    }
    pool->index.front = tail;
    block->requested = requested;
    block->state = CCA__BLOCK_ALLOCATED;
    *pointer = (void *)(uintptr_t)block->address;
    *slack = cca__hit_count_hand_out(
        pool, (cca__sizes){(int64_t)(splits ? rounded : whole), (int64_t)requested}, (int64_t)whole,
        alone, splits);
    return true;
}

static inline bool cca__hit_free_to_front(struct cca *cca, struct cca__pool *pool, uint32_t number,
                                          int64_t *slack) {
    struct cca__block *block = cca__block_at(cca, number);
    const cca__sizes sizes = {(int64_t)block->size, (int64_t)block->requested};
    const uint32_t front = pool->index.front, next = block->next, previous = block->previous;
    const bool joins_previous = cca__hit_joins(cca, previous);
    int merged = 1;
    if (cca__hit_joins(cca, next)) {
        if ((next != front) | joins_previous) return false;
        cca__hit_absorb_next(cca, pool, number);
    } else if (joins_previous) {
        if (previous != front) return false;
        cca__block_at(cca, previous)->requested = block->requested;
        cca__hit_absorb_next(cca, pool, previous);
        number = previous;
        block = cca__block_at(cca, number);
    } else {
        if (front != 0) return false;
        merged = 0;
    }
    block->state = CCA__BLOCK_FREE;
    pool->index.front = number;
    *slack =
        cca__hit_count_free(pool, sizes, (int64_t)block->size, cca__block_is_alone(block), merged);
    return true;
}

#endif
