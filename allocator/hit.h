// What a cache hit runs, inlined into its callers: find, split and hand out; take back, merge.
//
// Written for few stores and predictable branches. What is off by default (observer, history,
// oversize, garbage collection, expandable segments) makes a stream special (core.h), and costs
// others one test a call. Only request.c, pool.c, stream_use.c, event_poll.c, expandable_blocks.c
// and torch_faults.c include it.
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

// The rest of it: the front of a block of WHOLE bytes was handed out. ALONE: it was its segment;
// LEFT: bytes that stay behind as a free block, or 0.
static inline int64_t cca__hit_count_split(struct cca__pool *pool,
                                           const struct cca__hit_slack *slack, int64_t whole,
                                           bool alone, int64_t left) {
    struct cca__ledger *const own = &pool->ledger;
    if (!alone) {
        if (left == 0) --own->handed.split_free;
        return 0;
    }
    own->partial_bytes += whole;
    if (left == 0) return 0;
    ++own->handed.split_free;
    ++own->split_free_rises;
    own->split_bytes_rises += left;
    return cca__hit_split_bytes_slack(pool, slack->own[CCA__BYTES], slack->both[CCA__BYTES]) |
           cca__hit_split_free_slack(pool);
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

// A block begins to wait for events, or waits no longer: BLOCKS is 1 or -1, BYTES its size with
// that sign. Limits move only where the pending ones, before or after, are fewer than is free.
static inline void cca__hit_count_pending(struct cca__pool *pool, int64_t blocks, int64_t bytes) {
    const struct cca__limits *const limits = pool->stream->limits;
    const cca__pending before = pool->pending, after = before + (cca__pending){blocks, bytes};
    const cca__pending lower = blocks > 0 ? before : after;
    const cca__pending beyond = (lower - limits[cca__pool_kind(pool)].free) |
                                (lower + pool->other->pending - limits[ALLOCATOR_STAT_ALL].free);
    pool->pending = after;
    if ((beyond[CCA__PENDING_BLOCKS] | beyond[CCA__PENDING_BYTES]) < 0)
        cca__stats_move_limits_locked(pool);
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
    tail->age = block->age;
    tail->previous = number;
    tail->next = block->next;
    tail->segment = block->segment;
    atomic_store_explicit(&tail->kind, pool->kind_of_free_blocks, memory_order_relaxed);
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
    const bool splits = (plain || !pool->no_split) &&
                        cca__should_split(splits_finely | pool->is_small, block->size, rounded,
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
    struct cca__hit_slack bytes_slack;
    *slack = cca__hit_count_handed(pool, (cca__sizes){(int64_t)block->size, (int64_t)requested},
                                   &bytes_slack);
    *slack |= cca__hit_count_split(pool, &bytes_slack, whole, alone, whole - (int64_t)block->size);
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
    cca__block_keep(&pool->stream->unused_blocks, cca__block_at(cca, next_number), next_number);
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
// The short path of plain streams: lists are short, what has to be named is named in the page table
// by one store. Nothing here calls anything, and callers end with the call of whatever takes more;
// so they save registers once. False, and nothing changed: it takes more.
//
// A block that leaves the front is not put into its bin here: the caller does that last.

// cca__hit_store_in_table where a store is all.
static inline bool cca__hit_store_at_once(struct cca *cca, bool is_small, struct cca__block *block,
                                          uint32_t number) {
    struct cca__page_table *const table = &cca->page_table;
    if (!is_small) {
        if (__builtin_expect(block->address >> CCA__ADDRESS_BITS != 0, 0)) return false;
        cca__page_table_store_large(table, block->address, number);
    } else if (!cca__page_table_store_small_at_once(table, block->address, number)) {
        return false;
    }
    block->flags = CCA__BLOCK_IN_TABLE;
    return true;
}

// Serves a request from NUMBER, which is out of the index; it leaves TAIL behind, or 0.
__attribute__((always_inline)) static inline int64_t
cca__hit_serve_from(struct cca *cca, struct cca__pool *pool, uint32_t number, uint32_t tail,
                    size_t rounded, size_t requested, void **pointer) {
    struct cca__block *const block = cca__block_at(cca, number);
    const int64_t whole = (int64_t)block->size, handed = tail != 0 ? (int64_t)rounded : whole;
    const bool alone = cca__block_is_alone(block);
    struct cca__hit_slack slack;
    int64_t lowest = cca__hit_count_handed(pool, (cca__sizes){handed, (int64_t)requested}, &slack);
    lowest |= cca__hit_count_split(pool, &slack, whole, alone, whole - handed);
    *pointer = (void *)(uintptr_t)block->address;
    block->state = CCA__BLOCK_ALLOCATED;
    if (tail != 0) {
        struct cca__block_cache *const unused = &pool->stream->unused_blocks;
        // At its end, fresh may be the number of a block of another chunk.
        if (__builtin_expect(tail == unused->fresh, 0) && unused->fresh != unused->fresh_end)
            ++unused->fresh;
        else
            unused->first_unused = cca__block_at(cca, tail)->link[0];
        cca__hit_split_off(cca, pool, block, number, tail, rounded);
    }
    block->requested = requested;
    return lowest;
}

// Sets *tail to what a block of WHOLE bytes will leave behind, or 0. False: there is no unused
// block.
static inline bool cca__hit_tail(struct cca__pool *pool, size_t whole, size_t rounded,
                                 uint32_t *tail) {
    *tail = 0;
    if (!cca__should_split(rounded <= CCA_SMALL_LIMIT, whole, rounded, CCA_UNLIMITED)) return true;
    const struct cca__block_cache *const unused = &pool->stream->unused_blocks;
    *tail = unused->first_unused;
    if (__builtin_expect(*tail != 0, 1)) return true;
    *tail = unused->fresh;
    return unused->fresh != unused->fresh_end;
}

// Where the front is the best fit.
static inline bool cca__hit_serve_front(struct cca *cca, struct cca__pool *pool, size_t rounded,
                                        size_t requested, void **pointer, int64_t *slack) {
    const uint32_t number = pool->index.front;
    const struct cca__block *const block = cca__block_at(cca, number);
    uint32_t tail;
    if ((block->flags & CCA__BLOCK_IN_TABLE) == 0 ||
        !cca__hit_tail(pool, block->size, rounded, &tail))
        return false;
    pool->index.front = tail;
    *slack = cca__hit_serve_from(cca, pool, number, tail, rounded, requested, pointer);
    return true;
}

// Sets *served to the block.
__attribute__((always_inline)) static inline bool
cca__hit_serve(struct cca *cca, struct cca__pool *pool, size_t rounded, size_t requested,
               void **pointer, uint32_t *served, uint32_t *displaced, int64_t *slack) {
    uint32_t number, place, tail;
    if (!cca__free_index_pick(&pool->index, cca->blocks, rounded, &number, &place)) return false;
    struct cca__block *const block = cca__block_at(cca, number);
    *served = number;
    if (!cca__hit_tail(pool, block->size, rounded, &tail)) return false;
    if ((block->flags & CCA__BLOCK_IN_TABLE) == 0 &&
        !cca__hit_store_at_once(cca, rounded <= CCA_SMALL_LIMIT, block, number))
        return false;
    *displaced = 0;
    if (place == CCA__BIN_COUNT) {
        pool->index.front = tail;
    } else {
        cca__bin_remove_first(&pool->index, cca->blocks, place);
        if (tail != 0) {
            *displaced = pool->index.front;
            pool->index.front = tail;
        }
    }
    *slack = cca__hit_serve_from(cca, pool, number, tail, rounded, requested, pointer);
    return true;
}

// The end of a free: the block, which is in no index, joins its free neighbours, which are in none
// either, and becomes the front.
__attribute__((always_inline)) static inline int64_t
cca__hit_free_joining(struct cca *cca, struct cca__pool *pool, uint32_t number, bool joins_next,
                      bool joins_previous) {
    struct cca__block *block = cca__block_at(cca, number);
    const cca__sizes sizes = {(int64_t)block->size, (int64_t)block->requested};
    if (joins_next) cca__hit_absorb_next(cca, pool, number);
    if (joins_previous) {
        const uint32_t previous = block->previous;
        cca__block_at(cca, previous)->requested = block->requested;
        cca__hit_absorb_next(cca, pool, previous);
        number = previous;
        block = cca__block_at(cca, number);
    }
    block->state = CCA__BLOCK_FREE;
    pool->index.front = number;
    return cca__hit_count_free(pool, sizes, (int64_t)block->size, cca__block_is_alone(block),
                               joins_next + joins_previous);
}

// Where no neighbour is free, or only the front is, and nothing is displaced.
__attribute__((always_inline)) static inline bool
cca__hit_free_to_front(struct cca *cca, struct cca__pool *pool, uint32_t number, int64_t *slack) {
    const struct cca__block *const block = cca__block_at(cca, number);
    const uint32_t front = pool->index.front;
    const bool joins_previous = cca__hit_joins(cca, block->previous);
    if (cca__hit_joins(cca, block->next)) {
        if ((block->next != front) | joins_previous) return false;
        *slack = cca__hit_free_joining(cca, pool, number, true, false);
    } else if (joins_previous) {
        if (block->previous != front) return false;
        *slack = cca__hit_free_joining(cca, pool, number, false, true);
    } else {
        if (front != 0) return false;
        *slack = cca__hit_free_joining(cca, pool, number, false, false);
    }
    return true;
}

__attribute__((always_inline)) static inline bool
cca__hit_free_at_once(struct cca *cca, struct cca__pool *pool, uint32_t number, uint32_t *displaced,
                      int64_t *slack) {
    const struct cca__block *const block = cca__block_at(cca, number);
    const uint32_t front = pool->index.front, next = block->next, previous = block->previous;
    const bool joins_next = cca__hit_joins(cca, next),
               joins_previous = cca__hit_joins(cca, previous);
    uint32_t in_bins = 0;
    *displaced = front;
    if (joins_next) {
        if (next == front)
            *displaced = 0;
        else
            in_bins = next;
    }
    if (joins_previous) {
        if (previous == front) {
            *displaced = 0;
        } else {
            if (in_bins != 0) return false;
            in_bins = previous;
        }
    }
    if (in_bins != 0) {
        const uint32_t place = cca__bin_of(cca__block_at(cca, in_bins)->size);
        if (__builtin_expect(pool->index.bins[place].runs.root != 0, 0)) return false;
        cca__bin_remove_listed(&pool->index, cca->blocks, in_bins, place);
    }
    *slack = cca__hit_free_joining(cca, pool, number, joins_next, joins_previous);
    return true;
}

#endif
