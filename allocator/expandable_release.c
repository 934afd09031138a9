// Releasing: the whole pages inside free blocks go back to the device. See expandable_blocks.h.
#include "allocator/capture_caller.h"
#include "allocator/driver.h"
#include "allocator/expandable_internal.h"
#include "allocator/pool.h"
#include "allocator/segment.h"

// The whole pages inside a block.
struct pages {
    uint64_t address;
    size_t size;
};
static struct pages pages_in(const struct cca *cca, const struct cca__block *block) {
    const struct cca__expandable *const memory = cca__expandable_of(cca, block);
    const uint64_t base = cca__expandable_address(memory);
    const size_t page = cca__expandable_page_bytes(memory);
    const uint64_t first = (block->address - base + page - 1) / page;
    const uint64_t end = (block->address + block->size - base) / page;
    return (struct pages){.address = base + first * page,
                          .size = end > first ? (size_t)(end - first) * page : 0};
}

// Takes every free block with whole pages out of the index, in its order, chained through link[0].
static uint32_t claim_chain_locked(struct cca *cca, struct cca__pool *pool) {
    uint32_t first = 0, last = 0, next;
    for (uint32_t number = cca__free_index_next(&pool->index, cca->blocks, 0); number != 0;
         number = next) {
        next = cca__free_index_next(&pool->index, cca->blocks, number);
        struct cca__block *const block = cca__block_at(cca, number);
        if (!cca__block_is_expandable(block) || pages_in(cca, block).size == 0) continue;
        cca__free_index_remove(&pool->index, cca->blocks, number);
        block->state = CCA__BLOCK_CLAIMED;
        block->link[0] = 0;
        if (last == 0)
            first = number;
        else
            cca__block_at(cca, last)->link[0] = number;
        last = number;
    }
    return first;
}

// Cuts a claimed block in up to three: pages that are gone now and what is left before and behind
// them. SPARE are two unused blocks for what becomes new; their places become 0 when they are used.
// Returns the unmapped one.
static uint32_t become_unmapped_locked(struct cca__pool *pool, uint32_t number, struct pages pages,
                                       uint32_t spare[2]) {
    struct cca *const cca = pool->device->owner;
    struct cca__block *const block = cca__block_at(cca, number);
    const size_t before = (size_t)(pages.address - block->address);
    const size_t after = block->size - before - pages.size;
    const uint64_t requested = block->requested;
    if (after > 0) {
        cca__expandable_set_up_block(cca, pool, spare[1], block->segment,
                                     pages.address + pages.size, after, CCA__BLOCK_CLAIMED);
        cca__expandable_link_behind(cca, number, spare[1]);
        block->size -= after;
        cca__expandable_unclaim_locked(cca, pool, spare[1]);
        spare[1] = 0;
    }
    uint32_t unmapped = number;
    if (before > 0) {
        unmapped = spare[0];
        cca__expandable_set_up_block(cca, pool, unmapped, block->segment, pages.address, pages.size,
                                     CCA__BLOCK_UNMAPPED);
        cca__expandable_link_behind(cca, number, unmapped);
        cca__block_at(cca, unmapped)->requested = requested;
        block->size = before;
        block->requested = 0;
        cca__expandable_unclaim_locked(cca, pool, number);
        spare[0] = 0;
    }
    struct cca__block *const gone = cca__block_at(cca, unmapped);
    gone->state = CCA__BLOCK_UNMAPPED;
    gone->flags = CCA__BLOCK_EXPANDABLE; // the page table's entry went, or names another one soon
    if (cca__is_unmapped(cca, gone->next)) {
        cca__address_set_remove(&pool->unmapped, cca->blocks, gone->next);
        cca__expandable_absorb_next(cca, pool, unmapped);
    }
    const uint32_t previous = gone->previous;
    if (cca__is_unmapped(cca, previous)) {
        cca__block_at(cca, previous)->requested = requested;
        cca__expandable_absorb_next(cca, pool, previous);
        return previous;
    }
    cca__address_set_insert(&pool->unmapped, cca->blocks, unmapped);
    return unmapped;
}

// A segment of which nothing is mapped goes.
static enum base_status remove_if_empty(struct cca__pool *pool, uint32_t number) {
    struct cca *const cca = pool->device->owner;
    struct cca__stream *const stream = pool->stream;
    const struct cca__block *const block = cca__block_at(cca, number);
    const uint32_t segment = block->segment;
    // Nobody else makes blocks of unmapped ones, so what is alone stays alone.
    cca__lock_take(&stream->lock);
    const bool is_empty = cca__is_unmapped(cca, number) && cca__block_is_alone(block);
    cca__lock_release(&stream->lock);
    if (!is_empty) return BASE_OK;
    const enum base_status status =
        cca__expandable_give_addresses_back(pool, cca->segments[segment].expandable);
    if (status != BASE_OK) return status;
    cca__lock_take(&stream->lock);
    cca__address_set_remove(&pool->unmapped, cca->blocks, number);
    cca__segment_unlink_locked(cca, stream, segment);
    cca__block_give_back(&stream->unused_blocks, &cca->block_chunks, number);
    cca__segment_trim_stock_locked(cca, stream);
    cca__lock_release(&stream->lock);
    cca__arena_give_back(&cca->segment_records, segment);
    return BASE_OK;
}

static enum base_status take_spares_locked(struct cca__pool *pool, uint32_t spare[2]) {
    struct cca *const cca = pool->device->owner;
    struct cca__block_cache *const unused = &pool->stream->unused_blocks;
    enum base_status status = cca__block_take(unused, &cca->block_chunks, &spare[0]);
    if (status == BASE_OK) status = cca__block_take(unused, &cca->block_chunks, &spare[1]);
    return status;
}

// Unmaps the pages inside one claimed block, which is free or gone afterwards.
static enum base_status release_block(struct cca__pool *pool, uint32_t number) {
    struct cca *const cca = pool->device->owner;
    struct cca__stream *const stream = pool->stream;
    const struct cca__block *const block = cca__block_at(cca, number);
    struct pages pages = pages_in(cca, block);
    uint32_t spare[2] = {0}, unmapped = number;
    cca__lock_take(&stream->lock);
    enum base_status status = take_spares_locked(pool, spare);
    cca__lock_release(&stream->lock);
    size_t gone = 0;
    if (status == BASE_OK)
        status = cca__expandable_unmap(pool->device, stream->handle, cca__expandable_of(cca, block),
                                       pages.address, pages.size, &gone);
    pages.size = gone;
    cca__lock_take(&stream->lock);
    if (gone > 0) {
        cca__expandable_remove_directories(cca, pool, pages.address, pages.size);
        unmapped = become_unmapped_locked(pool, number, pages, spare);
        cca__expandable_count_mapping(pool, -(int64_t)gone);
        (void)cca__observe_segment(cca, ALLOCATOR_SEGMENT_UNMAP, pool, pages.address, pages.size);
    } else {
        cca__expandable_unclaim_locked(cca, pool, number);
    }
    cca__expandable_give_block_back(pool, spare[0]);
    cca__expandable_give_block_back(pool, spare[1]);
    cca__lock_release(&stream->lock);
    if (gone == 0) return status;
    const enum base_status removed = remove_if_empty(pool, unmapped);
    return status != BASE_OK ? status : removed;
}

// Pages go behind the work of their stream, and a stream that captures cannot be waited for: the
// attempt would cost the program its capture (PyTorch makes it: x_torch_faults).
static bool must_stay(const struct cca__pool *pool) {
    const struct cca__device *const device = pool->device;
    enum cca__caller caller;
    return cca__is_marked(device) && !device->owner->config.own.torch_faults &&
           cca__stream_caller(pool->stream->handle, &caller) == BASE_OK && caller != CCA__OUTSIDE;
}

enum base_status cca__expandable_release_pool(struct cca__pool *pool) {
    struct cca *const cca = pool->device->owner;
    cca__driver_drop_kept(pool->device);
    cca__lock_take(&pool->stream->lock);
    uint32_t number = claim_chain_locked(cca, pool);
    cca__lock_release(&pool->stream->lock);
    const bool stays = number != 0 && must_stay(pool);
    enum base_status status = BASE_OK;
    for (uint32_t next; number != 0; number = next) {
        next = cca__block_at(cca, number)->link[0];
        if (status == BASE_OK && !stays)
            status = release_block(pool, number);
        else
            cca__expandable_unclaim(pool, number);
    }
    return status;
}
