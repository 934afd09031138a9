// Hits on blocks of expandable segments, and what growing and releasing share: see
// expandable_blocks.h.
#include "allocator/expandable_blocks.h"

#include "allocator/expandable_internal.h"
#include "allocator/hit.h"
#include "allocator/segment.h"

//------------------------------------------------------------------------------------------------
// Hits.

// A block's size and how much it could grow.
static size_t room_of(const struct cca *cca, const struct cca__block *block) {
    return block->size +
           (cca__is_unmapped(cca, block->next) ? cca__block_at(cca, block->next)->size : 0);
}

uint32_t cca__expandable_find_locked(struct cca *cca, struct cca__pool *pool, size_t rounded) {
    uint32_t number = cca__free_index_find(&pool->index, cca->blocks, rounded);
    if (!cca__pool_expands(cca, pool)) {
        while (number != 0 && cca__block_is_expandable(cca__block_at(cca, number)))
            number = cca__free_index_next(&pool->index, cca->blocks, number);
        return number;
    }
    // A block that cannot grow has no less room than itself behind it.
    while (number != 0 && cca__block_is_expandable(cca__block_at(cca, number)) &&
           cca__is_unmapped(cca, cca__block_at(cca, number)->next)) {
        // The walk below puts the front into the bins: not for the only free block.
        if (pool->index.front == number && pool->index.occupied_words == 0) break;
        const uint32_t next = cca__free_index_next(&pool->index, cca->blocks, number);
        if (next == 0 ||
            room_of(cca, cca__block_at(cca, next)) >= room_of(cca, cca__block_at(cca, number)))
            break;
        number = next;
    }
    return number;
}

// LOWER takes the block behind it in.
void cca__expandable_absorb_next(struct cca *cca, struct cca__pool *pool, uint32_t lower_number) {
    struct cca__block *const lower = cca__block_at(cca, lower_number);
    const uint32_t upper_number = lower->next;
    const struct cca__block *const upper = cca__block_at(cca, upper_number);
    lower->size += upper->size;
    lower->next = upper->next;
    if (lower->next != 0) cca__block_at(cca, lower->next)->previous = lower_number;
    cca__block_give_back(&pool->stream->unused_blocks, &cca->block_chunks, upper_number);
}

void cca__expandable_join_next(struct cca *cca, struct cca__pool *pool, uint32_t number) {
    const uint32_t next = cca__block_at(cca, number)->next;
    if (!cca__is_free(cca, next)) return;
    cca__free_index_remove(&pool->index, cca->blocks, next);
    cca__expandable_absorb_next(cca, pool, number);
}

uint32_t cca__expandable_join_free(struct cca *cca, struct cca__pool *pool, uint32_t number) {
    const struct cca__block *const block = cca__block_at(cca, number);
    cca__expandable_join_next(cca, pool, number);
    const uint32_t previous = block->previous;
    if (cca__is_free(cca, previous)) {
        cca__free_index_remove(&pool->index, cca->blocks, previous);
        cca__block_at(cca, previous)->requested = block->requested;
        cca__expandable_absorb_next(cca, pool, previous);
        number = previous;
    }
    return number;
}

void cca__expandable_unclaim_locked(struct cca *cca, struct cca__pool *pool, uint32_t number) {
    number = cca__expandable_join_free(cca, pool, number);
    cca__block_at(cca, number)->state = CCA__BLOCK_FREE;
    cca__free_index_insert(&pool->index, cca->blocks, number);
}

void cca__expandable_free_locked(struct cca *cca, struct cca__pool *pool, uint32_t number) {
    const struct cca__block *const block = cca__block_at(cca, number);
    const int64_t size = (int64_t)block->size, requested = (int64_t)block->requested;
    if ((block->flags & CCA__BLOCK_IN_TABLE) == 0)
        cca__page_table_remove_stray(&cca->page_table, block->address);
    // Free and handed-out bytes change alike, so nothing becomes inactive split, now or summed up.
    struct cca__ledger *const ledger = &pool->ledger;
    ledger->room.sizes += (cca__sizes){size, requested};
    ++ledger->room.blocks;
    ledger->partial_bytes -= size;
    ledger->split_bytes_rises -= size;
    cca__expandable_unclaim_locked(cca, pool, number);
}

static enum base_status store_in_table(struct cca *cca, const struct cca__pool *pool,
                                       struct cca__block *block, uint32_t number) {
    struct cca__page_table *const table = &cca->page_table;
    if (block->address >> CCA__ADDRESS_BITS != 0)
        return cca__page_table_store_stray(table, block->address, number);
    if (pool->is_small) {
        const enum base_status status = cca__page_table_store_small(
            table, cca__page_table_directory(table, block->address), block->address, number);
        if (status != BASE_OK) return status;
    } else {
        cca__page_table_store_large(table, block->address, number);
    }
    block->flags |= CCA__BLOCK_IN_TABLE;
    return BASE_OK;
}

static enum base_status hand_out(struct cca *cca, struct cca__pool *pool, uint32_t number,
                                 size_t rounded, size_t requested, bool splits, bool in_index,
                                 bool *over_limit) {
    struct cca__block *const block = cca__block_at(cca, number);
    struct cca__stream *const stream = pool->stream;
    uint32_t tail = 0;
    if (splits) {
        const enum base_status status =
            cca__block_take(&stream->unused_blocks, &cca->block_chunks, &tail);
        if (status != BASE_OK) return status;
    }
    if ((block->flags & CCA__BLOCK_IN_TABLE) == 0) {
        const enum base_status status = store_in_table(cca, pool, block, number);
        if (status != BASE_OK) {
            if (splits) cca__block_give_back(&stream->unused_blocks, &cca->block_chunks, tail);
            return status;
        }
    }
    if (splits) {
        if (in_index)
            cca__free_index_replace(&pool->index, cca->blocks, number, tail);
        else
            cca__free_index_insert(&pool->index, cca->blocks, tail);
        cca__hit_split_off(cca, pool, block, number, tail, rounded);
        cca__block_at(cca, tail)->flags = CCA__BLOCK_EXPANDABLE;
    } else if (in_index) {
        cca__free_index_remove(&pool->index, cca->blocks, number);
    }
    block->requested = requested;
    block->state = CCA__BLOCK_ALLOCATED;

    pool->ledger.partial_bytes += (int64_t)block->size;
    struct cca__hit_slack slack;
    cca__hit_test_limits(
        pool,
        cca__hit_count_handed(pool, (cca__sizes){(int64_t)block->size, (int64_t)requested}, &slack),
        over_limit);
    if (block->size >= cca->config.sizes.max_split_size) cca__count_oversize(stream->device, 1);
    if (cca->watched) cca__observe_block(cca, ALLOCATOR_ALLOC, pool, block);
    return BASE_OK;
}

enum base_status cca__expandable_hand_out_locked(struct cca *cca, struct cca__pool *pool,
                                                 uint32_t number, size_t rounded, size_t requested,
                                                 bool in_index, bool *over_limit) {
    // While the setting is off, only a request at an address comes here, and PyTorch splits by the
    // setting, not by the block.
    const bool splits =
        !pool->no_split && cca__should_split(pool->is_small || cca__pool_expands(cca, pool),
                                             cca__block_at(cca, number)->size, rounded,
                                             cca->config.sizes.max_split_size);
    return hand_out(cca, pool, number, rounded, requested, splits, in_index, over_limit);
}

enum base_status cca__expandable_hand_out_front_locked(struct cca *cca, struct cca__pool *pool,
                                                       uint32_t number, size_t size,
                                                       bool *over_limit) {
    return hand_out(cca, pool, number, size, size, cca__block_at(cca, number)->size > size, true,
                    over_limit);
}

//------------------------------------------------------------------------------------------------
// What growing and releasing share.

// A block between two others, or at an end of its segment.
void cca__expandable_set_up_block(struct cca *cca, const struct cca__pool *pool, uint32_t number,
                                  uint32_t segment, uint64_t address, size_t size,
                                  enum cca__block_state state) {
    struct cca__block *const block = cca__block_at(cca, number);
    block->address = address;
    block->size = size;
    block->requested = 0;
    block->registration =
        cca->config.tie_by_address ? 0 : (uint32_t)cca->segments[segment].registration;
    block->gc_base = 0; // garbage collection looks at no such block
    block->previous = block->next = 0;
    block->segment = segment;
    atomic_store_explicit(&block->pool, pool->number, memory_order_relaxed);
    block->state = (uint8_t)state;
    block->flags = CCA__BLOCK_EXPANDABLE;
}

// Puts a block behind another one.
void cca__expandable_link_behind(struct cca *cca, uint32_t number, uint32_t new_number) {
    struct cca__block *const block = cca__block_at(cca, number);
    struct cca__block *const added = cca__block_at(cca, new_number);
    added->previous = number;
    added->next = block->next;
    if (block->next != 0) cca__block_at(cca, block->next)->previous = new_number;
    block->next = new_number;
}

void cca__expandable_count_mapping(struct cca__pool *pool, int64_t bytes) {
    struct cca__device *const device = pool->device;
    device->reserved_bytes = (size_t)((int64_t)device->reserved_bytes + bytes);
    cca__stat_change(&device->reserved[ALLOCATOR_STAT_ALL], bytes);
    cca__stat_change(&device->reserved[cca__pool_kind(pool)], bytes);
    if (bytes > 0)
        ++device->num_device_alloc;
    else
        ++device->num_device_free;
    if (pool->stream->private_pool != NULL)
        cca__private_pool_count(pool->stream->private_pool, cca__pool_kind(pool), bytes);
}

// The entries of the page table for the 2 MiB pages of a small pool's segment. Addresses beyond
// the table have none.
enum base_status cca__expandable_add_directories(struct cca *cca, const struct cca__pool *pool,
                                                 uint64_t address, size_t size) {
    if (!pool->is_small) return BASE_OK;
    for (size_t done = 0; done < size; done += CCA_SMALL_SEGMENT) {
        uint32_t directory;
        const enum base_status status = cca__page_table_add_segment(
            &cca->page_table, address + done, CCA_SMALL_SEGMENT, true, &directory);
        if (status == BASE_OK) continue;
        for (size_t taken = 0; taken < done; taken += CCA_SMALL_SEGMENT)
            cca__page_table_remove_segment(
                &cca->page_table, address + taken,
                cca__page_table_directory(&cca->page_table, address + taken));
        return status;
    }
    return BASE_OK;
}

void cca__expandable_remove_directories(struct cca *cca, const struct cca__pool *pool,
                                        uint64_t address, size_t size) {
    if (!pool->is_small) return;
    for (size_t done = 0; done < size; done += CCA_SMALL_SEGMENT)
        cca__page_table_remove_segment(&cca->page_table, address + done,
                                       cca__page_table_directory(&cca->page_table, address + done));
}

enum base_status cca__expandable_give_addresses_back(struct cca__pool *pool,
                                                     struct cca__expandable *memory) {
    const uint64_t address = cca__expandable_address(memory);
    const size_t bytes = cca__expandable_bytes(memory);
    const enum base_status status = cca__expandable_free(pool->device, memory);
    if (status == BASE_OK)
        (void)cca__observe_segment(pool->device->owner, ALLOCATOR_SEGMENT_UNRESERVE, pool, address,
                                   bytes);
    return status;
}

void cca__expandable_give_block_back(struct cca__pool *pool, uint32_t number) {
    struct cca *const cca = pool->device->owner;
    if (number != 0) cca__block_give_back(&pool->stream->unused_blocks, &cca->block_chunks, number);
}

void cca__expandable_unclaim(struct cca__pool *pool, uint32_t number) {
    struct cca *const cca = pool->device->owner;
    cca__lock_take(&pool->stream->lock);
    if (!cca__is_unmapped(cca, number)) cca__expandable_unclaim_locked(cca, pool, number);
    cca__lock_release(&pool->stream->lock);
}
