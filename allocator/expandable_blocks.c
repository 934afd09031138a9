// See expandable_blocks.h.
#include "allocator/expandable_blocks.h"

#include "allocator/device.h"
#include "allocator/expandable.h"
#include "allocator/hit.h"
#include "allocator/reserve_class.h"
#include "allocator/segment.h"
#include "allocator/warning.h"

static struct cca__expandable *memory_of(const struct cca *cca, const struct cca__block *block) {
    return cca->segments[block->segment].expandable;
}

static bool is_unmapped(const struct cca *cca, uint32_t number) {
    return number != 0 && cca__block_at(cca, number)->state == CCA__BLOCK_UNMAPPED;
}

static bool is_free(const struct cca *cca, uint32_t number) {
    return number != 0 && cca__block_at(cca, number)->state == CCA__BLOCK_FREE;
}

//------------------------------------------------------------------------------------------------
// Hits.

// A block's size and how much it could grow.
static size_t room_of(const struct cca *cca, const struct cca__block *block) {
    return block->size +
           (is_unmapped(cca, block->next) ? cca__block_at(cca, block->next)->size : 0);
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
           is_unmapped(cca, cca__block_at(cca, number)->next)) {
        const uint32_t next = cca__free_index_next(&pool->index, cca->blocks, number);
        if (next == 0 || room_of(cca, cca__block_at(cca, next)) >=
                             room_of(cca, cca__block_at(cca, number)))
            break;
        number = next;
    }
    return number;
}

// LOWER takes the block behind it in.
static void absorb_next(struct cca *cca, struct cca__pool *pool, uint32_t lower_number) {
    struct cca__block *const lower = cca__block_at(cca, lower_number);
    const uint32_t upper_number = lower->next;
    const struct cca__block *const upper = cca__block_at(cca, upper_number);
    lower->size += upper->size;
    lower->next = upper->next;
    if (lower->next != 0) cca__block_at(cca, lower->next)->previous = lower_number;
    cca__block_give_back(&pool->stream->unused_blocks, &cca->block_chunks, upper_number);
}

// Joins a block, which is in no index, with its free neighbours; the result carries what NUMBER
// carried from its last use.
static uint32_t join_free(struct cca *cca, struct cca__pool *pool, uint32_t number) {
    const struct cca__block *const block = cca__block_at(cca, number);
    if (is_free(cca, block->next)) {
        cca__free_index_remove(&pool->index, cca->blocks, block->next);
        absorb_next(cca, pool, number);
    }
    const uint32_t previous = block->previous;
    if (is_free(cca, previous)) {
        cca__free_index_remove(&pool->index, cca->blocks, previous);
        cca__block_at(cca, previous)->requested = block->requested;
        absorb_next(cca, pool, previous);
        number = previous;
    }
    return number;
}

void cca__expandable_unclaim_locked(struct cca *cca, struct cca__pool *pool, uint32_t number) {
    number = join_free(cca, pool, number);
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
    ledger->room += (cca__counts){size, requested, 1, 0};
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

enum base_status cca__expandable_hand_out_locked(struct cca *cca, struct cca__pool *pool,
                                                 uint32_t number, size_t rounded, size_t requested,
                                                 bool in_index, bool *over_limit) {
    struct cca__block *const block = cca__block_at(cca, number);
    struct cca__stream *const stream = pool->stream;
    const bool splits = block->size - rounded >= CCA_MIN_BLOCK;
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
    if (in_index) cca__free_index_remove(&pool->index, cca->blocks, number);
    if (splits) {
        cca__hit_split_off(cca, pool, block, number, tail, rounded);
        cca__block_at(cca, tail)->flags = CCA__BLOCK_EXPANDABLE;
        cca__free_index_insert(&pool->index, cca->blocks, tail);
    }
    block->requested = requested;
    block->state = CCA__BLOCK_ALLOCATED;

    struct cca__ledger *const ledger = &pool->ledger;
    ledger->handed += (cca__counts){(int64_t)block->size, (int64_t)requested, 1, 0};
    ledger->partial_bytes += (int64_t)block->size;
    const struct cca__hit_slack slack = cca__hit_slack_of(pool);
    const cca__counts tested = slack.own | (slack.both + stream->all.slack);
    cca__hit_test_limits(pool, cca__hit_lowest(&tested), over_limit);
    if (block->size >= cca->config.sizes.max_split_size) cca__count_oversize(stream->device, 1);
    if (cca->observer.event != NULL) cca__observe_block(cca, ALLOCATOR_ALLOC, pool, block);
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// What growing and releasing share.

// A block between two others, or at an end of its segment.
static void set_up_block(struct cca *cca, const struct cca__pool *pool, uint32_t number,
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
    block->state = state;
    block->flags = CCA__BLOCK_EXPANDABLE;
}

// Puts a block behind another one.
static void link_behind(struct cca *cca, uint32_t number, uint32_t new_number) {
    struct cca__block *const block = cca__block_at(cca, number);
    struct cca__block *const added = cca__block_at(cca, new_number);
    added->previous = number;
    added->next = block->next;
    if (block->next != 0) cca__block_at(cca, block->next)->previous = new_number;
    block->next = new_number;
}

static void count_mapping(struct cca__pool *pool, int64_t bytes) {
    struct cca__device *const device = pool->device;
    device->reserved_bytes = (size_t)((int64_t)device->reserved_bytes + bytes);
    cca__stat_change(&device->reserved[ALLOCATOR_STAT_ALL], bytes);
    cca__stat_change(&device->reserved[cca__pool_kind(pool)], bytes);
    if (bytes > 0)
        ++device->num_device_alloc;
    else
        ++device->num_device_free;
}

// The entries of the page table for the 2 MiB pages of a small pool's segment. Addresses beyond
// the table have none.
static enum base_status add_directories(struct cca *cca, const struct cca__pool *pool,
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

static void remove_directories(struct cca *cca, const struct cca__pool *pool, uint64_t address,
                               size_t size) {
    if (!pool->is_small) return;
    for (size_t done = 0; done < size; done += CCA_SMALL_SEGMENT)
        cca__page_table_remove_segment(&cca->page_table, address + done,
                                       cca__page_table_directory(&cca->page_table, address + done));
}

//------------------------------------------------------------------------------------------------
// Growing.

// The first of a run of free and unmapped blocks that add up to ROUNDED; 0 if there is none.
static uint32_t find_run_locked(const struct cca *cca, const struct cca__pool *pool,
                                size_t rounded) {
    for (uint32_t number = 0;
         (number = cca__address_set_next(&pool->unmapped, cca->blocks, number)) != 0;) {
        const uint32_t previous = cca__block_at(cca, number)->previous;
        const uint32_t start = is_free(cca, previous) ? previous : number;
        size_t sum = 0;
        for (uint32_t at = start; is_free(cca, at) || is_unmapped(cca, at);
             at = cca__block_at(cca, at)->next) {
            sum += cca__block_at(cca, at)->size;
            if (sum >= rounded) return start;
        }
    }
    return 0;
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

static void give_rest_back_locked(struct cca__pool *pool, uint32_t rest) {
    struct cca *const cca = pool->device->owner;
    if (rest != 0) cca__block_give_back(&pool->stream->unused_blocks, &cca->block_chunks, rest);
}

static enum base_status map_memory(struct cca__pool *pool, const struct cca__block *block,
                                   size_t size) {
    struct cca *const cca = pool->device->owner;
    enum base_status status = add_directories(cca, pool, block->address, size);
    if (status != BASE_OK) return status;
    status = cca__expandable_map(pool->device, memory_of(cca, block), block->address, size);
    if (status != BASE_OK) remove_directories(cca, pool, block->address, size);
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
        set_up_block(cca, pool, rest, block->segment, block->address + size, block->size - size,
                     CCA__BLOCK_UNMAPPED);
        block->size = size;
        link_behind(cca, number, rest);
        cca__address_set_insert(&pool->unmapped, cca->blocks, rest);
    }
    block->state = CCA__BLOCK_CLAIMED;
    const uint32_t previous = block->previous;
    if (previous != 0 && cca__block_at(cca, previous)->state == CCA__BLOCK_CLAIMED) {
        cca__block_at(cca, previous)->requested = block->requested;
        absorb_next(cca, pool, previous);
        number = previous;
    }
    number = join_free(cca, pool, number);
    cca__block_at(cca, number)->state = CCA__BLOCK_CLAIMED;
    return number;
}

// Maps the pages that the first WANTED bytes of an unmapped block need. *claimed becomes the block
// that they are part of then.
static enum base_status map_front(struct cca__pool *pool, uint32_t number, size_t wanted,
                                  uint32_t *claimed) {
    struct cca *const cca = pool->device->owner;
    const struct cca__block *const block = cca__block_at(cca, number);
    const uint64_t address = block->address;
    const size_t page = cca__expandable_page_bytes(memory_of(cca, block));
    const size_t size = (wanted + page - 1) / page * page;
    uint32_t rest;
    enum base_status status = take_rest(pool, size < block->size, &rest);
    if (status != BASE_OK) return status;
    status = map_memory(pool, block, size);
    cca__lock_take(&pool->stream->lock);
    if (status == BASE_OK) {
        *claimed = become_mapped_locked(pool, number, size, rest);
        count_mapping(pool, (int64_t)size);
        cca__observe_segment(cca, ALLOCATOR_SEGMENT_MAP, pool, address, size);
    } else {
        give_rest_back_locked(pool, rest);
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
        set_up_block(cca, pool, *number, segment, cca__expandable_address(memory),
                     cca__expandable_bytes(memory), CCA__BLOCK_UNMAPPED);
        cca->segments[segment].first_block = *number;
        cca__segment_link_locked(cca, stream, segment);
        cca__address_set_insert(&pool->unmapped, cca->blocks, *number);
    }
    cca__lock_release(&stream->lock);
    if (status != BASE_OK) cca__arena_give_back(&cca->segment_records, segment);
    return status;
}

static enum base_status give_addresses_back(struct cca__pool *pool,
                                            struct cca__expandable *memory) {
    const uint64_t address = cca__expandable_address(memory);
    const size_t bytes = cca__expandable_bytes(memory);
    const enum base_status status = cca__expandable_free(pool->device, memory);
    if (status == BASE_OK)
        cca__observe_segment(pool->device->owner, ALLOCATOR_SEGMENT_UNRESERVE, pool, address,
                             bytes);
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
    const size_t page =
        pool->is_small ? CCA_SMALL_SEGMENT : cca->config.sizes.large_segment;
    bool configured;
    const size_t reserve = cca__reserve_of(pool->stream, &configured);
    if (page > SIZE_MAX - reserve) return BASE_OUT_OF_MEMORY; // a page that no device has
    struct cca__expandable *memory;
    enum base_status status =
        cca__expandable_reserve(device, (reserve + page - 1) / page * page, page, &memory);
    if (status == BASE_UNSUPPORTED) stop_expanding(device);
    if (status != BASE_OK) return status;
    cca__observe_segment(cca, ALLOCATOR_SEGMENT_RESERVE, pool, cca__expandable_address(memory),
                         cca__expandable_bytes(memory));
    const bool is_too_small = rounded > cca__expandable_bytes(memory);
    status = is_too_small ? BASE_OUT_OF_MEMORY : add_segment(pool, memory, number);
    if (status == BASE_OK) return BASE_OK;
    if (is_too_small && configured) *exceeded = reserve;
    const enum base_status given_back = give_addresses_back(pool, memory);
    return given_back == BASE_OK ? status : given_back;
}

// Claims the start of a run; an unmapped one stays as it is, nobody else touches it.
static enum base_status start_run(struct cca__pool *pool, size_t rounded, uint32_t *start,
                                  size_t *exceeded) {
    struct cca *const cca = pool->device->owner;
    cca__lock_take(&pool->stream->lock);
    *start = find_run_locked(cca, pool, rounded);
    if (is_free(cca, *start)) {
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
    if (!is_unmapped(cca, *run)) {
        // Blocks beside a claimed one that became free meanwhile did not join it.
        *run = join_free(cca, pool, *run);
        cca__block_at(cca, *run)->state = CCA__BLOCK_CLAIMED;
        target = cca__block_at(cca, *run)->next;
        if (!is_unmapped(cca, target)) target = 0;
    }
    cca__lock_release(&pool->stream->lock);
    return target;
}

static void unclaim(struct cca__pool *pool, uint32_t number) {
    struct cca *const cca = pool->device->owner;
    cca__lock_take(&pool->stream->lock);
    if (!is_unmapped(cca, number)) cca__expandable_unclaim_locked(cca, pool, number);
    cca__lock_release(&pool->stream->lock);
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
            return BASE_OK;
        }
        const uint32_t target = next_unmapped(pool, &run);
        if (target == 0) {
            unclaim(pool, run);
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
            unclaim(pool, run);
            return status;
        }
    }
}

//------------------------------------------------------------------------------------------------
// Releasing.

// The whole pages inside a block.
struct pages {
    uint64_t address;
    size_t size;
};
static struct pages pages_in(const struct cca *cca, const struct cca__block *block) {
    const struct cca__expandable *const memory = memory_of(cca, block);
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
        set_up_block(cca, pool, spare[1], block->segment, pages.address + pages.size, after,
                     CCA__BLOCK_CLAIMED);
        link_behind(cca, number, spare[1]);
        block->size -= after;
        cca__expandable_unclaim_locked(cca, pool, spare[1]);
        spare[1] = 0;
    }
    uint32_t unmapped = number;
    if (before > 0) {
        unmapped = spare[0];
        set_up_block(cca, pool, unmapped, block->segment, pages.address, pages.size,
                     CCA__BLOCK_UNMAPPED);
        link_behind(cca, number, unmapped);
        cca__block_at(cca, unmapped)->requested = requested;
        block->size = before;
        block->requested = 0;
        cca__expandable_unclaim_locked(cca, pool, number);
        spare[0] = 0;
    }
    struct cca__block *const gone = cca__block_at(cca, unmapped);
    gone->state = CCA__BLOCK_UNMAPPED;
    gone->flags = CCA__BLOCK_EXPANDABLE; // the page table's entry went, or names another one soon
    if (is_unmapped(cca, gone->next)) {
        cca__address_set_remove(&pool->unmapped, cca->blocks, gone->next);
        absorb_next(cca, pool, unmapped);
    }
    const uint32_t previous = gone->previous;
    if (is_unmapped(cca, previous)) {
        cca__block_at(cca, previous)->requested = requested;
        absorb_next(cca, pool, previous);
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
    const bool is_empty = is_unmapped(cca, number) && cca__block_is_alone(block);
    cca__lock_release(&stream->lock);
    if (!is_empty) return BASE_OK;
    const enum base_status status = give_addresses_back(pool, cca->segments[segment].expandable);
    if (status != BASE_OK) return status;
    cca__lock_take(&stream->lock);
    cca__address_set_remove(&pool->unmapped, cca->blocks, number);
    cca__segment_unlink_locked(cca, stream, segment);
    cca__block_give_back(&stream->unused_blocks, &cca->block_chunks, number);
    if (stream->first_segment == 0)
        cca__block_cache_trim(&stream->unused_blocks, &cca->block_chunks);
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
        status = cca__expandable_unmap(pool->device, stream->handle, memory_of(cca, block),
                                       pages.address, pages.size, &gone);
    pages.size = gone;
    cca__lock_take(&stream->lock);
    if (gone > 0) {
        remove_directories(cca, pool, pages.address, pages.size);
        unmapped = become_unmapped_locked(pool, number, pages, spare);
        count_mapping(pool, -(int64_t)gone);
        cca__observe_segment(cca, ALLOCATOR_SEGMENT_UNMAP, pool, pages.address, pages.size);
    } else {
        cca__expandable_unclaim_locked(cca, pool, number);
    }
    give_rest_back_locked(pool, spare[0]);
    give_rest_back_locked(pool, spare[1]);
    cca__lock_release(&stream->lock);
    if (gone == 0) return status;
    const enum base_status removed = remove_if_empty(pool, unmapped);
    return status != BASE_OK ? status : removed;
}

enum base_status cca__expandable_release_pool(struct cca__pool *pool) {
    struct cca *const cca = pool->device->owner;
    cca__lock_take(&pool->stream->lock);
    uint32_t number = claim_chain_locked(cca, pool);
    cca__lock_release(&pool->stream->lock);
    enum base_status status = BASE_OK;
    for (uint32_t next; number != 0; number = next) {
        next = cca__block_at(cca, number)->link[0];
        if (status == BASE_OK)
            status = release_block(pool, number);
        else
            unclaim(pool, number);
    }
    return status;
}
