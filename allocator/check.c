// cca_check: a walk over everything that aborts on the first broken invariant. Everything is
// computed anew from the blocks and compared with what the fast path keeps.
#include "allocator/capture_guard.h"
#include "allocator/device.h"
#include "allocator/expandable.h"
#include "allocator/pool.h"
#include "allocator/stream_use.h"

#include <string.h>

// What one pool's blocks add up to.
struct tally {
    int64_t active, active_bytes, pending, pending_bytes, requested, split_free, split_free_bytes;
    size_t free_blocks, unmapped_blocks, segments;
    int64_t mapped_bytes;
    uint32_t blocks;
    struct slabs *slabs;
};

// What is taken of the allocator's arenas by all devices together.
struct slabs {
    uint32_t block_chunks, segments, uses, directories, leaves, streams, runs;
};

// ADDRESS: of a small segment, or of a page of an expandable one.
static void add_directory(const struct cca *cca, uint64_t address, struct slabs *slabs) {
    const uint32_t directory = cca__page_table_directory(&cca->page_table, address);
    if (directory == 0) return;
    ++slabs->directories;
    const _Atomic uint32_t *const leaves =
        cca__arena_slots(&cca->page_table.directories, directory);
    for (uint32_t place = 0; place < CCA__SMALL_SLOTS; ++place)
        slabs->leaves += atomic_load_explicit(&leaves[place], memory_order_relaxed) != 0;
}

// A block of an expandable segment has memory everywhere, or nowhere and then whole pages.
static void check_pages(const struct cca *cca, const struct cca__pool *pool,
                        const struct cca__block *block, struct slabs *slabs) {
    const struct cca__expandable *const memory = cca->segments[block->segment].expandable;
    const uint64_t base = cca__expandable_address(memory), end = block->address + block->size;
    const size_t page = cca__expandable_page_bytes(memory);
    const bool is_mapped = block->state != CCA__BLOCK_UNMAPPED;
    if (!is_mapped) {
        BASE_CHECK_EQ((block->address - base) % page, 0);
        BASE_CHECK_EQ(block->size % page, 0);
    }
    for (uint64_t at = block->address; at < end; at += page - (at - base) % page) {
        BASE_CHECK_EQ(cca__expandable_is_mapped(memory, at), is_mapped);
        // A page that two blocks share counts with the first one.
        if (is_mapped && pool->is_small && (at - base) % page == 0) add_directory(cca, at, slabs);
        if (!is_mapped && at - block->address > 64 * (uint64_t)page) break; // a range may be vast
    }
}

static void check_block(struct cca *cca, const struct cca__pool *pool, uint32_t segment_number,
                        uint32_t number, struct tally *tally) {
    const struct cca__block *const block = cca__block_at(cca, number);
    BASE_CHECK_EQ(cca__block_pool(block), pool->number);
    BASE_CHECK_EQ(block->segment, segment_number);
    BASE_CHECK_EQ(block->size % CCA_MIN_BLOCK, 0);
    BASE_CHECK_GT(block->size, 0);
    BASE_CHECK_EQ(block->uses != 0 && block->state == CCA__BLOCK_FREE, 0);
    const bool is_expandable = cca->segments[segment_number].expandable != NULL;
    BASE_CHECK_EQ(cca__block_is_expandable(block), is_expandable);
    ++tally->blocks;
    if (is_expandable) check_pages(cca, pool, block, tally->slabs);
    for (uint32_t use = block->uses; use != 0; use = cca__use_record_at(cca, use)->next)
        ++tally->slabs->uses;
    if (block->state == CCA__BLOCK_UNMAPPED) {
        BASE_CHECK(is_expandable);
        BASE_CHECK_EQ(block->flags & CCA__BLOCK_IN_TABLE, 0);
        ++tally->unmapped_blocks;
        if (block->next != 0)
            BASE_CHECK_NE(cca__block_at(cca, block->next)->state, CCA__BLOCK_UNMAPPED);
        return;
    }
    tally->mapped_bytes += (int64_t)block->size;
    const bool is_gone = cca->segments[segment_number].gone_bytes != 0;
    BASE_CHECK_EQ((block->flags & CCA__BLOCK_IN_GONE_SEGMENT) != 0, is_gone);
    BASE_CHECK(block->state != (is_gone ? CCA__BLOCK_FREE : CCA__BLOCK_GONE));
    if (block->state == CCA__BLOCK_FREE || block->state == CCA__BLOCK_GONE) {
        tally->free_blocks += !is_gone;
        if (!is_expandable && !cca__block_is_alone(block)) {
            ++tally->split_free;
            tally->split_free_bytes += (int64_t)block->size;
        }
        if (block->next != 0) BASE_CHECK_NE(cca__block_at(cca, block->next)->state, block->state);
        return;
    }
    BASE_CHECK(block->state == CCA__BLOCK_ALLOCATED || block->state == CCA__BLOCK_PENDING);
    BASE_CHECK_EQ(cca__block_lookup(cca, (void *)(uintptr_t)block->address), number);
    BASE_CHECK_LE(block->requested, block->size);
    ++tally->active;
    tally->active_bytes += (int64_t)block->size;
    tally->requested += (int64_t)block->requested;
    if (block->state == CCA__BLOCK_PENDING) {
        ++tally->pending;
        tally->pending_bytes += (int64_t)block->size;
    }
}

static int64_t mapped_bytes_of(const struct cca *cca, uint32_t segment_number) {
    int64_t bytes = 0;
    for (uint32_t number = cca->segments[segment_number].first_block; number != 0;
         number = cca__block_at(cca, number)->next)
        if (cca__block_at(cca, number)->state != CCA__BLOCK_UNMAPPED)
            bytes += (int64_t)cca__block_at(cca, number)->size;
    return bytes - (int64_t)cca->segments[segment_number].gone_bytes;
}

// The blocks of a segment tile it.
static void check_segment(struct cca *cca, const struct cca__pool *pool, uint32_t segment_number,
                          struct tally *tally) {
    const struct cca__segment *const segment = &cca->segments[segment_number];
    uint64_t address = segment->address;
    uint32_t previous = 0;
    for (uint32_t number = segment->first_block; number != 0;
         number = cca__block_at(cca, number)->next) {
        const struct cca__block *const block = cca__block_at(cca, number);
        BASE_CHECK_EQ(block->address, address);
        BASE_CHECK_EQ(block->previous, previous);
        check_block(cca, pool, segment_number, number, tally);
        address += block->size;
        previous = number;
    }
    BASE_CHECK_EQ(address, segment->address + segment->size);
    ++tally->slabs->segments;
    tally->mapped_bytes -= (int64_t)segment->gone_bytes;
    if (segment->expandable != NULL) return;
    tally->segments += segment->gone_bytes == 0;
    if (segment->directory != 0) add_directory(cca, segment->address, tally->slabs);
}

// The free index holds the pool's free blocks, in order, each findable.
static void check_index(struct cca *cca, struct cca__pool *pool, const struct tally *tally) {
    size_t count = 0;
    uint32_t previous = 0;
    for (uint32_t number = 0;
         (number = cca__free_index_next(&pool->index, cca->blocks, number)) != 0;
         previous = number) {
        const struct cca__block *const block = cca__block_at(cca, number);
        ++count;
        BASE_CHECK_EQ(block->state, CCA__BLOCK_FREE);
        BASE_CHECK_EQ(cca__block_pool(block), pool->number);
        if (previous == 0) continue;
        BASE_CHECK(cca__block_less(cca__block_at(cca, previous), block));
        BASE_CHECK_EQ(cca__free_index_previous(&pool->index, cca->blocks, number), previous);
    }
    BASE_CHECK_EQ(count, tally->free_blocks);
    tally->slabs->runs += cca__free_index_check(&pool->index, cca->blocks);
}

// The set of unmapped blocks, by address.
static void check_unmapped(const struct cca *cca, const struct cca__pool *pool,
                           const struct tally *tally) {
    size_t count = 0;
    uint64_t address = 0;
    for (uint32_t number = 0;
         (number = cca__address_set_next(&pool->unmapped, cca->blocks, number)) != 0;) {
        const struct cca__block *const block = cca__block_at(cca, number);
        ++count;
        BASE_CHECK_EQ(block->state, CCA__BLOCK_UNMAPPED);
        BASE_CHECK_EQ(cca__block_pool(block), pool->number);
        BASE_CHECK_GT(block->address, address);
        address = block->address;
    }
    BASE_CHECK_EQ(count, tally->unmapped_blocks);
    BASE_CHECK_EQ(count, pool->unmapped.count);
}

static void check_ledger(const struct cca__pool *pool, const struct tally *tally) {
    BASE_CHECK_EQ(cca__pool_current(pool, CCA__ACTIVE), tally->active);
    BASE_CHECK_EQ(cca__pool_current(pool, CCA__ACTIVE_BYTES), tally->active_bytes);
    BASE_CHECK_EQ(cca__pool_current(pool, CCA__ALLOCATION), tally->active - tally->pending);
    BASE_CHECK_EQ(cca__pool_current(pool, CCA__ALLOCATED_BYTES),
                  tally->active_bytes - tally->pending_bytes);
    BASE_CHECK_EQ(cca__pool_current(pool, CCA__REQUESTED_BYTES), tally->requested);
    BASE_CHECK_EQ(cca__pool_current(pool, CCA__INACTIVE_SPLIT), tally->split_free);
    BASE_CHECK_EQ(cca__pool_current(pool, CCA__INACTIVE_SPLIT_BYTES), tally->split_free_bytes);
}

static void check_pool(struct cca *cca, struct cca__pool *pool, struct tally *tally) {
    for (uint32_t number = pool->stream->first_segment; number != 0;
         number = cca->segments[number].next)
        if (cca->segments[number].pool == pool->number) check_segment(cca, pool, number, tally);
    check_index(cca, pool, tally);
    check_unmapped(cca, pool, tally);
    check_ledger(pool, tally);
}

// What the fast path tests for both pools together agrees with their limits.
static void check_slack(const struct cca__stream *stream) {
    const struct cca__pool *const small = &stream->pools[CCA__POOL_SMALL];
    const struct cca__pool *const large = &stream->pools[CCA__POOL_LARGE];
    const struct cca__limits *const all = &stream->limits[ALLOCATOR_STAT_ALL];
    const struct cca__counts pools =
        cca__counts_add(cca__counts_subtract(small->ledger.room, small->ledger.handed),
                        cca__counts_subtract(large->ledger.room, large->ledger.handed));
    const struct cca__counts slack = cca__counts_add(pools, stream->both_slack);
    BASE_CHECK_EQ(slack.sizes[CCA__BYTES], all->active.sizes[CCA__BYTES] -
                                               cca__pool_current(small, CCA__ACTIVE_BYTES) -
                                               cca__pool_current(large, CCA__ACTIVE_BYTES));
    BASE_CHECK_EQ(slack.blocks, all->active.blocks - cca__pool_current(small, CCA__ACTIVE) -
                                    cca__pool_current(large, CCA__ACTIVE));
    BASE_CHECK_EQ(slack.split_free, all->active.split_free -
                                        cca__pool_current(small, CCA__INACTIVE_SPLIT) -
                                        cca__pool_current(large, CCA__INACTIVE_SPLIT));
    BASE_CHECK_EQ(stream->both_split_bytes_bound - small->ledger.partial_bytes -
                      large->ledger.partial_bytes - pools.sizes[CCA__BYTES],
                  all->split_bytes - cca__pool_current(small, CCA__INACTIVE_SPLIT_BYTES) -
                      cca__pool_current(large, CCA__INACTIVE_SPLIT_BYTES));
}

// Together the limits of the streams stay below the peaks.
static void check_limits(const struct cca__device *device) {
    for (int family = 0; family < CCA__FAMILY_COUNT; ++family)
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind) {
            int64_t limits = 0;
            for (size_t index = 0; index < device->stream_count; ++index)
                limits += device->by_handle[index]->family_limit[family][kind];
            BASE_CHECK_LE(limits, device->peak[family][kind]);
        }
}

// The events recorded on one stream: of blocks that wait, whose streams know that they do.
static uint64_t check_queue(struct cca *cca, const struct cca__stream *user) {
    const struct cca__event_queue *const queue = &user->queue;
    for (size_t index = 0; index < queue->count; ++index) {
        const struct cca__queued_event *const entry = cca__event_queue_at(queue, index);
        const struct cca__block *const block = cca__block_at(cca, entry->block);
        BASE_CHECK_EQ(block->state, CCA__BLOCK_PENDING);
        BASE_CHECK_NE(block->uses, 0);
        const struct cca__use_record *const record = cca__use_record_at(cca, block->uses);
        BASE_CHECK_GT(record->events, 0);
        BASE_CHECK_EQ(record->complete, 0);
        BASE_CHECK(!record->is_behind && !record->is_counted);
        const struct cca__stream *const owner = cca__pool_at(cca, cca__block_pool(block))->stream;
        BASE_CHECK_NE(atomic_load_explicit(&owner->waits_for, memory_order_relaxed) &
                          cca__stream_bit(user),
                      0);
        if (index > 0)
            BASE_CHECK_LT(
                (int32_t)(cca__event_queue_at(queue, index - 1)->sequence - entry->sequence), 0);
    }
    return queue->count;
}

// Every block of the stream's chunks is in a segment, unused or fresh.
static void check_stock(const struct cca *cca, const struct cca__block_cache *cache,
                        uint32_t blocks) {
    uint32_t unused = cache->fresh_end - cache->fresh;
    for (uint32_t number = cache->first_unused; number != 0;
         number = cca__block_at(cca, number)->link[0]) {
        BASE_CHECK_EQ(cca__block_at(cca, number)->state, CCA__BLOCK_UNUSED);
        BASE_CHECK_EQ(cca__block_at(cca, number)->uses, 0);
        ++unused;
    }
    BASE_CHECK_EQ(blocks + unused, cache->chunk_count * CCA__BLOCK_CHUNK);
}

// Of one handle the default object is first.
static void check_order(const struct cca__stream *before, const struct cca__stream *stream) {
    if (before->handle == stream->handle)
        BASE_CHECK(stream->private_pool != NULL);
    else
        BASE_CHECK_LT((uintptr_t)before->handle, (uintptr_t)stream->handle);
}

// Every object of a private pool is of a handle of its own, and what there is of the pool adds up.
static void check_private_pools(const struct cca__device *device) {
    const struct cca *const cca = device->owner;
    size_t streams = 0, of_pools = 0;
    for (const struct cca__private_pool *pool = device->pools.first; pool != NULL;
         pool = pool->next) {
        int64_t mapped = 0;
        for (size_t index = 0; index < pool->stream_count; ++index) {
            const struct cca__stream *const stream = pool->streams[index];
            BASE_CHECK(stream->private_pool == pool && stream->home->private_pool == NULL);
            BASE_CHECK(stream->home->handle == stream->handle);
            BASE_CHECK(cca__private_pool_stream(pool, stream->handle) == stream);
            BASE_CHECK_EQ(stream->queue.count, 0);
            for (uint32_t number = stream->first_segment; number != 0;
                 number = cca->segments[number].next)
                mapped += mapped_bytes_of(cca, number);
        }
        BASE_CHECK_EQ(pool->reserved[ALLOCATOR_STAT_ALL].current, mapped);
        BASE_CHECK(pool->exists || mapped == 0);
        streams += pool->stream_count;
    }
    for (size_t index = 0; index < device->stream_count; ++index)
        of_pools += device->by_handle[index]->private_pool != NULL;
    BASE_CHECK_EQ(streams, of_pools);
}

// What is deferred is pending without events, once in the list; requests are told of it.
static void check_captures(struct cca *cca, const struct cca__device *device, uint64_t word) {
    const struct cca__captures *const captures = &device->captures;
    size_t count = 0, guards = 0;
    uint32_t previous = 0;
    for (uint32_t number = captures->first_deferred; number != 0;
         previous = number, number = cca__block_at(cca, number)->link[2], ++count) {
        const struct cca__block *const block = cca__block_at(cca, number);
        BASE_CHECK_EQ(block->state, CCA__BLOCK_PENDING);
        BASE_CHECK_EQ(block->link[1], previous);
        BASE_CHECK_NE(block->uses, 0);
        BASE_CHECK_EQ(cca__use_record_at(cca, block->uses)->events, 0);
    }
    BASE_CHECK_EQ(captures->last_deferred, previous);
    BASE_CHECK_EQ(captures->deferred_count, count);
    for (size_t index = 0; index < device->stream_count; ++index)
        if (device->by_handle[index]->guards != NULL)
            guards += device->by_handle[index]->guards->count;
    BASE_CHECK_EQ(captures->guard_count, guards);
    BASE_CHECK_EQ((word & CCA__MARKED) != 0, captures->marks.marked != 0);
    if (count + guards > 0) BASE_CHECK((word & CCA__DEFERRED) != 0);
    if (captures->marks.marked == 0) BASE_CHECK_EQ(guards, 0);
}

static void check_device(struct cca *cca, struct cca__device *device, struct slabs *slabs) {
    struct tally pools[2] = {{0}};
    uint64_t pending_events = 0;
    for (size_t index = 0; index < device->stream_count; ++index) {
        struct cca__stream *const stream = device->by_handle[index];
        uint32_t blocks = 0;
        if (index > 0) check_order(device->by_handle[index - 1], stream);
        for (int kind = 0; kind < 2; ++kind) {
            struct tally tally = {.slabs = slabs};
            check_pool(cca, &stream->pools[kind], &tally);
            blocks += tally.blocks;
            pools[kind].segments += tally.segments;
            pools[kind].mapped_bytes += tally.mapped_bytes;
        }
        check_stock(cca, &stream->unused_blocks, blocks);
        slabs->block_chunks += stream->unused_blocks.chunk_count;
        for (uint32_t use = stream->unused_uses; use != 0; use = cca__use_record_at(cca, use)->next)
            ++slabs->uses;
        ++slabs->streams;
        check_slack(stream);
        pending_events += check_queue(cca, stream);
    }
    const uint64_t word = atomic_load_explicit(&device->pending_events, memory_order_relaxed);
    BASE_CHECK_EQ(pending_events, word & CCA__EVENTS_MASK);
    check_captures(cca, device, word);
    check_limits(device);
    check_private_pools(device);
    cca__history_check(device);
    const int kinds[2] = {[CCA__POOL_SMALL] = ALLOCATOR_STAT_SMALL_POOL,
                          [CCA__POOL_LARGE] = ALLOCATOR_STAT_LARGE_POOL};
    for (int kind = 0; kind < 2; ++kind) {
        BASE_CHECK_EQ(device->segment[kinds[kind]].current, pools[kind].segments);
        BASE_CHECK_EQ(device->reserved[kinds[kind]].current, pools[kind].mapped_bytes);
    }
    BASE_CHECK_EQ(device->reserved[ALLOCATOR_STAT_ALL].current,
                  pools[0].mapped_bytes + pools[1].mapped_bytes);
    // More while another thread is in cudaMalloc with release_lock_on_cudamalloc.
    BASE_CHECK_GE(device->reserved_bytes, (size_t)device->reserved[ALLOCATOR_STAT_ALL].current);
}

static void check_arena(struct cca__arena *arena, uint32_t live) {
    cca__lock_take(&arena->lock);
    BASE_CHECK_EQ(arena->live, live);
    cca__lock_release(&arena->lock);
}

// All locks of all devices held: nothing of an arena is taken or given back without one of them.
static void check_slabs(struct cca *cca, const struct slabs *slabs) {
    check_arena(&cca->block_chunks, slabs->block_chunks);
    check_arena(&cca->segment_records, slabs->segments);
    check_arena(&cca->use_records, slabs->uses);
    check_arena(&cca->streams, slabs->streams);
    check_arena(&cca->free_runs, slabs->runs);
    check_arena(&cca->page_table.directories, slabs->directories);
    check_arena(&cca->page_table.leaves, slabs->leaves);
}

void cca_check(struct allocator *allocator) {
    struct cca *const cca = cca__of(allocator);
    struct slabs slabs = {0};
    const enum base_status status = cca__require_caching(allocator, "cca_check");
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    if (cca->is_of_parent) return;
    cca__lock_take(&cca->settings_lock);
    cca__devices_lock_all(cca);
    for (int ordinal = 0; ordinal < CCA__DEVICES_MAX; ++ordinal) {
        struct cca__device *const device =
            atomic_load_explicit(&cca->devices[ordinal], memory_order_acquire);
        if (device != NULL) check_device(cca, device, &slabs);
    }
    check_slabs(cca, &slabs);
    cca__devices_unlock_all(cca);
    cca__lock_release(&cca->settings_lock);
}
