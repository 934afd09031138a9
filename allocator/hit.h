// What a cache hit runs, inlined into its callers: find, split and hand out; take back, merge.
//
// Written for few stores and predictable branches; what is off by default (observer, oversize,
// garbage collection, expandable segments) costs each a test that is never taken. Only caching.c,
// pool.c and expandable_blocks.c include it: a call here would cost a hit about thirty
// instructions.
//
// All functions need the lock of the pool's stream.
#ifndef TIDEMARK_ALLOCATOR_HIT_H
#define TIDEMARK_ALLOCATOR_HIT_H

#include "allocator/expandable_blocks.h"
#include "allocator/pool.h"

//------------------------------------------------------------------------------------------------
// Statistics of a hit. A call tests only what it can raise; a negative slack anywhere means that a
// limit was passed.

// How much the counters of the pool, and those of both pools of the stream, may still grow. The
// latter without stream.all.slack.
struct cca__hit_slack {
    cca__counts own, both;
};

static inline struct cca__hit_slack cca__hit_slack_of(const struct cca__pool *pool) {
    const struct cca__ledger *const other = &pool->other->ledger;
    struct cca__hit_slack slack;
    slack.own = pool->ledger.room - pool->ledger.handed;
    slack.both = slack.own + (other->room - other->handed);
    return slack;
}

// Negative if one of the numbers is.
static inline int64_t cca__hit_lowest(const cca__counts *counts) {
    return ((*counts)[0] | (*counts)[1]) | ((*counts)[2] | (*counts)[3]);
}

// What inactive_split_bytes may still grow; negative if it passed a limit.
static inline int64_t cca__hit_split_bytes_slack(const struct cca__pool *pool,
                                                 const struct cca__hit_slack *slack) {
    const struct cca__ledger *const own = &pool->ledger;
    return (own->split_bytes_bound - own->partial_bytes - slack->own[CCA__COUNT_BYTES]) |
           (pool->stream->all.split_bytes_bound - own->partial_bytes -
            pool->other->ledger.partial_bytes - slack->both[CCA__COUNT_BYTES]);
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
    tail->gc_base = atomic_load_explicit(&pool->device->large_searches, memory_order_relaxed);
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
// one; so it is, whatever the block, while a pool's segments are expandable.
__attribute__((always_inline)) static inline enum base_status
cca__hit_hand_out(struct cca *cca, struct cca__pool *pool, uint32_t number, size_t rounded,
                  size_t requested, bool in_index, bool splits_finely, bool *over_limit) {
    struct cca__block *const block = cca__block_at(cca, number);
    struct cca__stream *const stream = pool->stream;
    const bool splits = cca__should_split(&cca->config.sizes, splits_finely | pool->is_small,
                                          block->size, rounded);
    uint32_t tail = 0;
    if (splits) {
        const enum base_status status =
            cca__block_take(&stream->unused_blocks, &cca->block_chunks, &tail);
        if (status != BASE_OK) return status;
    }
    if ((block->flags & CCA__BLOCK_IN_TABLE) == 0) {
        const enum base_status status = cca__hit_store_in_table(cca, pool, block, number);
        if (__builtin_expect(status != BASE_OK, 0)) {
            if (splits) cca__block_give_back(&stream->unused_blocks, &cca->block_chunks, tail);
            return status;
        }
    }
    const bool was_alone = cca__block_is_alone(block);
    const int64_t whole = (int64_t)block->size;
    if (splits) {
        if (in_index)
            cca__free_index_replace(&pool->index, cca->blocks, number, tail);
        else
            cca__free_index_insert(&pool->index, cca->blocks, tail);
        cca__hit_split_off(cca, pool, block, number, tail, rounded);
    } else if (in_index) {
        cca__free_index_remove(&pool->index, cca->blocks, number);
    }
    block->requested = requested;
    block->state = CCA__BLOCK_ALLOCATED;

    struct cca__ledger *const ledger = &pool->ledger;
    ledger->handed += (cca__counts){(int64_t)block->size, (int64_t)requested, 1,
                                    (int64_t)was_alone + splits - 1};
    const struct cca__hit_slack slack = cca__hit_slack_of(pool);
    const cca__counts tested = slack.own | (slack.both + stream->all.slack);
    int64_t lowest = cca__hit_lowest(&tested);
    if (was_alone) {
        ledger->partial_bytes += whole;
        if (splits) {
            ++ledger->split_free_rises;
            ledger->split_bytes_rises += whole - (int64_t)rounded;
            lowest |= cca__hit_split_bytes_slack(pool, &slack);
        }
    }
    cca__hit_test_limits(pool, lowest, over_limit);
    if (__builtin_expect(block->size >= cca->config.sizes.max_split_size, 0))
        cca__count_oversize(stream->device, 1);
    if (__builtin_expect(cca->watched, 0))
        cca__observe_block(cca, ALLOCATOR_ALLOC, pool, block);
    return BASE_OK;
}

// Only the best candidate is tested against max_split_size; nothing larger is tried after a
// refusal.
static inline enum base_status cca__hit_serve_locked(struct cca *cca, struct cca__pool *pool,
                                                     size_t rounded, size_t requested,
                                                     void **pointer, bool *over_limit) {
    const uint32_t number = cca__free_index_find(&pool->index, cca->blocks, rounded);
    struct cca__block *const block = cca__block_at(cca, number);
    if (number == 0 || (__builtin_expect(cca->config.sizes.max_split_size != CCA_UNLIMITED, 0) &&
                        cca__oversize_refused(&cca->config.sizes, block->size, rounded))) {
        *pointer = NULL;
        return BASE_OK;
    }
    *pointer = (void *)(uintptr_t)block->address;
    return cca__hit_hand_out(cca, pool, number, rounded, requested, true, false, over_limit);
}

//------------------------------------------------------------------------------------------------
// Freeing.

// Joins the block to its free neighbours. Returns the number of the result and sets *merged to
// how many joined.
static inline uint32_t cca__hit_merge(struct cca *cca, struct cca__pool *pool, uint32_t number,
                                      int *merged) {
    struct cca__block *block = cca__block_at(cca, number);
    struct cca__block_cache *const unused = &pool->stream->unused_blocks;
    *merged = 0;
    const uint32_t next_number = block->next;
    if (next_number != 0 && cca__block_at(cca, next_number)->state == CCA__BLOCK_FREE) {
        const struct cca__block *const next = cca__block_at(cca, next_number);
        cca__free_index_remove(&pool->index, cca->blocks, next_number);
        block->size += next->size;
        block->next = next->next;
        if (block->next != 0) cca__block_at(cca, block->next)->previous = number;
        cca__block_give_back(unused, &cca->block_chunks, next_number);
        ++*merged;
    }
    const uint32_t previous_number = block->previous;
    if (previous_number != 0 && cca__block_at(cca, previous_number)->state == CCA__BLOCK_FREE) {
        struct cca__block *const previous = cca__block_at(cca, previous_number);
        cca__free_index_remove(&pool->index, cca->blocks, previous_number);
        previous->size += block->size;
        previous->requested = block->requested;
        previous->next = block->next;
        if (previous->next != 0) cca__block_at(cca, previous->next)->previous = previous_number;
        cca__block_give_back(unused, &cca->block_chunks, number);
        number = previous_number;
        ++*merged;
    }
    return number;
}

static inline void cca__hit_free_locked(struct cca *cca, struct cca__pool *pool, uint32_t number,
                                        bool *over_limit) {
    struct cca__ledger *const ledger = &pool->ledger;
    struct cca__block *block = cca__block_at(cca, number);
    const int64_t size = (int64_t)block->size;
    if (__builtin_expect(cca->watched, 0))
        cca__observe_block(cca, ALLOCATOR_FREE_COMPLETED, pool, block);
    const int64_t requested = (int64_t)block->requested;
    if (__builtin_expect(block->flags != CCA__BLOCK_IN_TABLE, 0)) {
        if (cca__block_is_expandable(block)) {
            cca__expandable_free_locked(cca, pool, number);
            return;
        }
        cca__page_table_remove_stray(&cca->page_table, block->address);
    }

    int merged;
    number = cca__hit_merge(cca, pool, number, &merged);
    block = cca__block_at(cca, number);
    block->state = CCA__BLOCK_FREE;
    block->gc_base = atomic_load_explicit(&pool->device->large_searches, memory_order_relaxed);
    cca__free_index_insert(&pool->index, cca->blocks, number);

    const bool is_alone = cca__block_is_alone(block);
    ledger->room += (cca__counts){size, requested, 1, merged - !is_alone};
    if (is_alone) {
        // No counter rises.
        ledger->partial_bytes -= (int64_t)block->size;
        ledger->split_bytes_rises -= size;
        return;
    }
    ledger->split_free_rises += merged == 0;
    const struct cca__hit_slack slack = cca__hit_slack_of(pool);
    const cca__counts all = slack.both + pool->stream->all.slack;
    cca__hit_test_limits(pool,
                         cca__hit_split_bytes_slack(pool, &slack) |
                             slack.own[CCA__COUNT_SPLIT_FREE] | all[CCA__COUNT_SPLIT_FREE],
                         over_limit);
}

#endif
