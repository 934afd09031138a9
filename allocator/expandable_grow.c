// Growing: memory for a request that no free block fits, next to free blocks where there are some.
// See expandable_blocks.h.
#include "allocator/capture_guard.h"
#include "allocator/device.h"
#include "allocator/expandable_internal.h"
#include "allocator/pool.h"
#include "allocator/reserve_class.h"
#include "allocator/segment.h"
#include "allocator/warning.h"

// Whether free and unmapped blocks from START on add up to ROUNDED, and no guard (capture_guard.h)
// forbids them.
static bool is_run(const struct cca *cca, const struct cca__pool *pool, uint32_t start,
                   size_t rounded) {
    const uint64_t address = cca__block_at(cca, start)->address;
    size_t sum = 0;
    for (uint32_t at = start; sum < rounded && (cca__is_free(cca, at) || cca__is_unmapped(cca, at));
         at = cca__block_at(cca, at)->next)
        sum += cca__block_at(cca, at)->size;
    return sum >= rounded && !cca__guards_forbid_locked(pool->stream, address, address + rounded);
}

// The first block of a run; 0 if there is none.
static uint32_t find_run_locked(const struct cca *cca, const struct cca__pool *pool,
                                size_t rounded) {
    for (uint32_t number = 0;
         (number = cca__address_set_next(&pool->unmapped, cca->blocks, number)) != 0;) {
        const uint32_t previous = cca__block_at(cca, number)->previous;
        if (cca__is_free(cca, previous) && is_run(cca, pool, previous, rounded)) return previous;
        // What is free before it is no part of a run only where a guard forbids it.
        if (is_run(cca, pool, number, rounded)) return number;
    }
    return 0;
}

// Joins a claimed block with its free neighbours, but not to the front where a guard forbids that:
// the front is what will be handed out.
static uint32_t join_claimed(struct cca *cca, struct cca__pool *pool, uint32_t number) {
    const struct cca__block *const before =
        cca__block_at(cca, cca__block_at(cca, number)->previous);
    if (!cca__guards_forbid_locked(pool->stream, before->address, before->address + before->size))
        number = cca__expandable_join_free(cca, pool, number);
    else
        cca__expandable_join_next(cca, pool, number);
    cca__block_at(cca, number)->state = CCA__BLOCK_CLAIMED;
    return number;
}

// The block behind the mapped part of one, made before the driver is called. 0: none is needed.
static enum base_status take_rest(struct cca__pool *pool, bool needed, uint32_t *rest) {
    struct cca *const cca = pool->device->owner;
    *rest = 0;
    if (!needed) return BASE_OK;
    cca__lock_take(&pool->stream->lock);
    const enum base_status status =
        cca__block_take(&pool->stream->unused_blocks, &cca->block_chunks, rest);
    cca__lock_release(&pool->stream->lock);
    return status;
}

static enum base_status map_memory(struct cca__pool *pool, const struct cca__block *block,
                                   size_t size) {
    struct cca *const cca = pool->device->owner;
    enum base_status status = cca__expandable_add_directories(cca, pool, block->address, size);
    if (status != BASE_OK) return status;
    status =
        cca__expandable_map(pool->device, cca__expandable_of(cca, block), block->address, size);
    if (status != BASE_OK) cca__expandable_remove_directories(cca, pool, block->address, size);
    return status;
}

// The front of an unmapped block is mapped now: it joins its neighbours, a claimed one before it
// included, and becomes claimed. Returns the result.
static uint32_t become_mapped_locked(struct cca__pool *pool, uint32_t number, size_t size,
                                     uint32_t rest) {
    struct cca *const cca = pool->device->owner;
    struct cca__block *const block = cca__block_at(cca, number);
    cca__address_set_remove(&pool->unmapped, cca->blocks, number);
    if (rest != 0) {
        cca__expandable_set_up_block(cca, pool, rest, block->segment, block->address + size,
                                     block->size - size, CCA__BLOCK_UNMAPPED);
        block->size = size;
        cca__expandable_link_behind(cca, number, rest);
        cca__address_set_insert(&pool->unmapped, cca->blocks, rest);
    }
    block->state = CCA__BLOCK_CLAIMED;
    const uint32_t previous = block->previous;
    if (previous != 0 && cca__block_at(cca, previous)->state == CCA__BLOCK_CLAIMED) {
        cca__block_at(cca, previous)->requested = block->requested;
        cca__expandable_absorb_next(cca, pool, previous);
        number = previous;
    }
    return join_claimed(cca, pool, number);
}

// Maps the pages that the first WANTED bytes of an unmapped block need. *claimed becomes the block
// that they are part of then.
static enum base_status map_front(struct cca__pool *pool, uint32_t number, size_t wanted,
                                  uint32_t *claimed) {
    struct cca *const cca = pool->device->owner;
    const struct cca__block *const block = cca__block_at(cca, number);
    const uint64_t address = block->address;
    const size_t page = cca__expandable_page_bytes(cca__expandable_of(cca, block));
    const size_t size = (wanted + page - 1) / page * page;
    uint32_t rest;
    enum base_status status = take_rest(pool, size < block->size, &rest);
    if (status != BASE_OK) return status;
    status = map_memory(pool, block, size);
    cca__lock_take(&pool->stream->lock);
    if (status == BASE_OK) {
        *claimed = become_mapped_locked(pool, number, size, rest);
        cca__expandable_count_mapping(pool, (int64_t)size);
        const uint32_t stack =
            cca__observe_segment(cca, ALLOCATOR_SEGMENT_MAP, pool, address, size);
        struct cca__segment *const segment = &cca->segments[cca__block_at(cca, *claimed)->segment];
        if (segment->stack == 0) segment->stack = stack;
    } else {
        cca__expandable_give_block_back(pool, rest);
    }
    cca__lock_release(&pool->stream->lock);
    return status;
}

// A segment with nothing mapped. *number is its one block.
static enum base_status add_segment(struct cca__pool *pool, struct cca__expandable *memory,
                                    uint32_t *number) {
    struct cca__stream *const stream = pool->stream;
    struct cca *const cca = pool->device->owner;
    uint32_t segment;
    enum base_status status = cca__arena_take(&cca->segment_records, &segment);
    if (status != BASE_OK) return status;
    cca->segments[segment] = (struct cca__segment){
        .address = cca__expandable_address(memory),
        .size = cca__expandable_bytes(memory),
        .registration = atomic_fetch_add_explicit(&cca->registration, 1, memory_order_relaxed) + 1,
        .pool = pool->number,
        .expandable = memory,
    };
    cca__lock_take(&stream->lock);
    status = cca__block_take(&stream->unused_blocks, &cca->block_chunks, number);
    if (status == BASE_OK) {
        cca__expandable_set_up_block(cca, pool, *number, segment, cca__expandable_address(memory),
                                     cca__expandable_bytes(memory), CCA__BLOCK_UNMAPPED);
        cca->segments[segment].first_block = *number;
        cca__segment_link_locked(cca, stream, segment);
        cca__address_set_insert(&pool->unmapped, cca->blocks, *number);
    }
    cca__lock_release(&stream->lock);
    if (status != BASE_OK) cca__arena_give_back(&cca->segment_records, segment);
    return status;
}

// From here on the device's pools use cudaMalloc.
static void stop_expanding(struct cca__device *device) {
    cca__warn(&device->owner->warnings, "%s", base_status_message());
    cca__streams_lock_all(device);
    device->cannot_expand = true;
    cca__streams_unlock_all(device);
}

static enum base_status new_segment(struct cca__pool *pool, size_t rounded, uint32_t *number,
                                    size_t *exceeded) {
    struct cca__device *const device = pool->device;
    struct cca *const cca = device->owner;
    const size_t page = pool->is_small ? CCA_SMALL_SEGMENT : cca->config.sizes.large_segment;
    bool configured;
    const size_t reserve = cca__reserve_of(pool->stream, &configured);
    if (page > SIZE_MAX - reserve) return BASE_OUT_OF_MEMORY; // a page that no device has
    struct cca__expandable *memory;
    enum base_status status =
        cca__expandable_reserve(device, (reserve + page - 1) / page * page, page, &memory);
    if (status == BASE_UNSUPPORTED) stop_expanding(device);
    if (status != BASE_OK) return status;
    (void)cca__observe_segment(cca, ALLOCATOR_SEGMENT_RESERVE, pool,
                               cca__expandable_address(memory), cca__expandable_bytes(memory));
    const bool is_too_small = rounded > cca__expandable_bytes(memory);
    status = is_too_small ? BASE_OUT_OF_MEMORY : add_segment(pool, memory, number);
    if (status == BASE_OK) return BASE_OK;
    if (is_too_small && configured) *exceeded = reserve;
    const uint64_t address = cca__expandable_address(memory);
    const size_t bytes = cca__expandable_bytes(memory);
    cca__expandable_abandon(device, memory);
    (void)cca__observe_segment(cca, ALLOCATOR_SEGMENT_UNRESERVE, pool, address, bytes);
    return status;
}

// Claims the start of a run; an unmapped one stays as it is, nobody else touches it.
static enum base_status start_run(struct cca__pool *pool, size_t rounded, uint32_t *start,
                                  size_t *exceeded) {
    struct cca *const cca = pool->device->owner;
    cca__lock_take(&pool->stream->lock);
    *start = find_run_locked(cca, pool, rounded);
    if (cca__is_free(cca, *start)) {
        cca__free_index_remove(&pool->index, cca->blocks, *start);
        cca__block_at(cca, *start)->state = CCA__BLOCK_CLAIMED;
    }
    cca__lock_release(&pool->stream->lock);
    return *start != 0 ? BASE_OK : new_segment(pool, rounded, start, exceeded);
}

// What to map next so that the run from *RUN on grows; 0 if a hit took what was free behind it.
static uint32_t next_unmapped(struct cca__pool *pool, uint32_t *run) {
    struct cca *const cca = pool->device->owner;
    cca__lock_take(&pool->stream->lock);
    uint32_t target = *run;
    if (!cca__is_unmapped(cca, *run)) {
        // Blocks beside a claimed one that became free meanwhile did not join it.
        *run = join_claimed(cca, pool, *run);
        target = cca__block_at(cca, *run)->next;
        if (!cca__is_unmapped(cca, target)) target = 0;
    }
    cca__lock_release(&pool->stream->lock);
    return target;
}

// Whether the front of a claimed block may be handed out: what became free behind it joined it.
static bool may_hand_out(const struct cca__pool *pool, const struct cca__block *block,
                         size_t rounded) {
    cca__lock_take(&pool->stream->lock);
    const bool may =
        !cca__guards_forbid_locked(pool->stream, block->address, block->address + rounded);
    cca__lock_release(&pool->stream->lock);
    return may;
}

enum base_status cca__expandable_grow(struct cca__pool *pool, size_t rounded, uint32_t *number,
                                      size_t *exceeded) {
    struct cca *const cca = pool->device->owner;
    uint32_t run = 0;
    *exceeded = 0;
    for (;;) {
        if (run == 0) {
            const enum base_status status = start_run(pool, rounded, &run, exceeded);
            if (status != BASE_OK) return status;
        }
        const struct cca__block *const block = cca__block_at(cca, run);
        if (block->state == CCA__BLOCK_CLAIMED && block->size >= rounded) {
            *number = run;
            if (may_hand_out(pool, block, rounded)) return BASE_OK;
            cca__expandable_unclaim(pool, run);
            run = 0;
            continue;
        }
        const uint32_t target = next_unmapped(pool, &run);
        if (target == 0) {
            cca__expandable_unclaim(pool, run);
            run = 0;
            continue;
        }
        const size_t had = target == run ? 0 : cca__block_at(cca, run)->size;
        const size_t missing = rounded > had ? rounded - had : 0;
        if (missing == 0) continue;
        const size_t room = cca__block_at(cca, target)->size;
        const enum base_status status =
            map_front(pool, target, missing < room ? missing : room, &run);
        if (status != BASE_OK) {
            cca__expandable_unclaim(pool, run);
            return status;
        }
    }
}
