// Chunks and blocks of pools. A chunk is mapped device memory; blocks are handed out of it in
// multiples of 512 bytes, the lowest place that is large enough first. What a free leaves merges
// with its neighbours in the same state.
//
// A request looks for memory that its own stream freed, for memory of a stream that it comes after,
// for memory whose free has run, and for memory that is anybody's; then the pool grows; and only if
// the device has nothing left, it waits in its stream for the free of another one. What was in use
// last is used first, so that a program that uses it still is found out.
#include "simulator/pool.h"

#include "base/size.h"
#include "simulator/checked.h"
#include "simulator/cost.h"
#include "simulator/engine.h"
#include "simulator/order.h"
#include "simulator/plant.h"
#include "simulator/race.h"

#include <stdlib.h>

#define BLOCK_ALIGNMENT 512
#define CHUNK_BYTES (32 * BASE_MIB)

// --- Lists ---

static void empty_link(struct sim__chunk *chunk) {
    struct sim__pool *pool = chunk->pool;
    chunk->next_empty = pool->empty;
    chunk->previous_empty = &pool->empty;
    if (pool->empty != NULL)
        pool->empty->previous_empty = &chunk->next_empty;
    pool->empty = chunk;
}

static void empty_unlink(struct sim__chunk *chunk) {
    *chunk->previous_empty = chunk->next_empty;
    if (chunk->next_empty != NULL)
        chunk->next_empty->previous_empty = chunk->previous_empty;
}

static void chunk_link(struct sim__chunk *chunk) {
    struct sim__pool *pool = chunk->pool;
    chunk->next = pool->chunks;
    chunk->previous = &pool->chunks;
    if (pool->chunks != NULL)
        pool->chunks->previous = &chunk->next;
    pool->chunks = chunk;
    empty_link(chunk);
}

static void chunk_unlink(struct sim__chunk *chunk) {
    empty_unlink(chunk);
    *chunk->previous = chunk->next;
    if (chunk->next != NULL)
        chunk->next->previous = chunk->previous;
}

// --- Memory that a stream freed ---

static struct sim__freed *freed_of(struct sim__pool *pool, const struct sim__stream *stream) {
    for (uint32_t i = 0; i < pool->freed_count; ++i)
        if (pool->freed[i].stream == stream && pool->freed[i].handle == stream->slot.handle)
            return &pool->freed[i];
    return NULL;
}

static struct sim__freed *freed_make(struct sim__pool *pool, struct sim__stream *stream) {
    if (pool->freed_count == pool->freed_size) {
        pool->freed_size = pool->freed_size == 0 ? 4 : 2 * pool->freed_size;
        pool->freed = realloc(pool->freed, pool->freed_size * sizeof *pool->freed);
        if (pool->freed == NULL)
            sim__host_limit("out of host memory for pools");
    }
    struct sim__freed *freed = &pool->freed[pool->freed_count++];
    *freed = (struct sim__freed){
        .stream = stream, .handle = stream->slot.handle, .column = sim__order_begin(stream)};
    return freed;
}

static void freed_end_if_empty(struct sim__pool *pool, struct sim__freed *freed) {
    if (!sim__space_is_empty(&freed->space))
        return;
    sim__order_end(freed->column);
    *freed = pool->freed[--pool->freed_count];
}

// Up to which of its frees STREAM has come.
static uint64_t freed_complete(const struct sim__freed *freed) {
    return freed->handle == freed->stream->slot.handle ? freed->stream->completed : UINT64_MAX;
}

void sim__pools_observed(void) {
    for (struct sim__pool *pool = sim__pools; pool != NULL; pool = pool->next) {
        for (uint32_t i = pool->freed_count; i-- > 0;) {
            struct sim__freed *freed = &pool->freed[i];
            const uint64_t seen = sim__order_observed(freed->column);
            const uint64_t complete = freed_complete(freed);
            const uint64_t observed = seen < complete ? seen : complete;
            struct sim__range range;
            uint64_t stamp;
            while (sim__space_find_stamped(&freed->space, 1, observed, &range, &stamp)) {
                sim__space_take(&freed->space, range.start, range.size);
                sim__space_give(&pool->free, range.start, range.size);
            }
            freed_end_if_empty(pool, freed);
        }
    }
}

// --- Chunks ---

static struct sim__chunk *chunk_make(struct sim__pool *pool, uint64_t size) {
    struct sim__device *device = &sim__state.devices[pool->device];
    struct sim__backing backing;
    if (pool->size_max != 0 && (size > pool->size_max || pool->reserved > pool->size_max - size))
        return NULL;
    if (!sim__address_budget_take(size))
        return NULL;
    if (!sim__physical_take(device, size, &backing)) {
        sim__address_budget_give(size);
        return NULL;
    }
    struct sim__chunk *chunk = calloc(1, sizeof *chunk);
    if (chunk == NULL)
        sim__host_limit("out of host memory for pools");
    chunk->taken = size + SIM_PAGE_BYTES; // chunks never touch: free space stays within one
    chunk->segment = (struct sim__segment){
        .range = {sim__address_choose(device, chunk->taken), size},
        .size = size,
        .device = pool->device,
        .kind = SIM__SEGMENT_CHUNK,
        .readers = pool->readers,
        .writers = pool->writers,
        .backing = backing,
    };
    chunk->pool = pool;
    sim__physical_map(device, chunk->segment.range.start, &chunk->segment.backing, size, true);
    sim__range_insert(&sim__state.segments, &chunk->segment.range);
    sim__space_give(&pool->free, chunk->segment.range.start, size);
    chunk_link(chunk);
    sim__cost_pages(SIM_CALL_MALLOC_ASYNC, size / SIM_PAGE_BYTES);
    pool->reserved += size;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    return chunk;
}

// The chunk must not be in the pool's free space any more.
static void chunk_free(struct sim__chunk *chunk) {
    struct sim__device *device = &sim__state.devices[chunk->pool->device];
    const struct sim__range range = chunk->segment.range;
    if (sim__checked())
        sim__checked_gone(range.start, range.size, "given back to the device by its pool");
    if (sim__race_is_on())
        sim__race_unmap(range.start, range.size);
    sim__cost_pages(SIM_CALL_POOL_TRIM, range.size / SIM_PAGE_BYTES);
    chunk->pool->reserved -= range.size;
    chunk_unlink(chunk);
    sim__range_remove(&sim__state.segments, &chunk->segment.range);
    sim__physical_unmap(range.start, range.size);
    sim__physical_give(device, &chunk->segment.backing);
    sim__address_give(device, range.start, chunk->taken);
    sim__address_budget_give(range.size);
    free(chunk);
}

void sim__pool_shrink(struct sim__pool *pool, uint64_t keep) {
    struct sim__chunk *next;
    for (struct sim__chunk *chunk = pool->empty; chunk != NULL && pool->reserved > keep;
         chunk = next) {
        const struct sim__range *range = &chunk->segment.range;
        next = chunk->next_empty;
        if (!sim__space_holds(&pool->free, range->start, range->size))
            continue;
        sim__space_take(&pool->free, range->start, range->size);
        chunk_free(chunk);
    }
}

void sim__pools__release(void) {
    for (struct sim__pool *pool = sim__pools; pool != NULL; pool = pool->next)
        if (pool->reserved > pool->release_threshold && !sim__planted(SIM__PLANT_POOL_KEEPS))
            sim__pool_shrink(pool, pool->release_threshold);
}

void sim__chunk_access(struct sim__pool *pool) {
    for (struct sim__chunk *chunk = pool->chunks; chunk != NULL; chunk = chunk->next) {
        chunk->segment.readers = pool->readers;
        chunk->segment.writers = pool->writers;
    }
}

void sim__pool_drop(struct sim__pool *pool) {
    while (pool->freed_count > 0) {
        sim__space_clear(&pool->freed[0].space);
        freed_end_if_empty(pool, &pool->freed[0]);
    }
    free(pool->freed);
    pool->freed = NULL;
    pool->freed_size = 0;
    sim__space_clear(&pool->free);
    while (pool->chunks != NULL)
        chunk_free(pool->chunks);
}

// --- Finding a place ---

struct place {
    struct sim__freed *freed; // whose space it is in; NULL: anybody's
    uint64_t address;
    uint64_t stamp;
};

static bool find_anybodys(struct sim__pool *pool, uint64_t size, struct place *place) {
    struct sim__range range;
    if (!sim__space_find(&pool->free, size, &range))
        return false;
    *place = (struct place){NULL, range.start, 0};
    return true;
}

static bool find_freed(struct sim__freed *freed, uint64_t size, uint64_t reached,
                       struct place *place) {
    struct sim__range range;
    uint64_t stamp;
    if (!sim__space_find_stamped(&freed->space, size, reached, &range, &stamp))
        return false;
    *place = (struct place){freed, range.start, stamp};
    return true;
}

// Of another stream than STREAM: what REACHED says is behind it.
static bool find_others(struct sim__pool *pool, struct sim__stream *stream, uint64_t size,
                        uint64_t (*reached)(const struct sim__freed *freed,
                                            struct sim__stream *stream),
                        struct place *place) {
    for (uint32_t i = 0; i < pool->freed_count; ++i)
        if (find_freed(&pool->freed[i], size, reached(&pool->freed[i], stream), place))
            return true;
    return false;
}

static uint64_t reached_by_order(const struct sim__freed *freed, struct sim__stream *stream) {
    return sim__order_reached(stream, freed->column);
}

static uint64_t reached_by_now(const struct sim__freed *freed, struct sim__stream *stream) {
    (void)stream;
    return freed_complete(freed);
}

static uint64_t reached_by_waiting(const struct sim__freed *freed, struct sim__stream *stream) {
    (void)freed;
    (void)stream;
    return UINT64_MAX;
}

static bool grow(struct sim__pool *pool, uint64_t size) {
    const uint64_t least = base_round_up(size, SIM_PAGE_BYTES);
    return (least < CHUNK_BYTES && chunk_make(pool, CHUNK_BYTES) != NULL) ||
           chunk_make(pool, least) != NULL;
}

// As grow, at the cost of what pools of the device hold and do not use.
static bool grow_at_cost(struct sim__pool *pool, uint64_t size) {
    for (struct sim__pool *other = sim__pools; other != NULL; other = other->next)
        if (other->device == pool->device)
            sim__pool_shrink(other, 0);
    return grow(pool, size);
}

static bool find_place(struct sim__pool *pool, struct sim__stream *stream, uint64_t size,
                       struct place *place) {
    struct sim__freed *own = freed_of(pool, stream);
    if (own != NULL && find_freed(own, size, UINT64_MAX, place))
        return true;
    if (sim__planted(SIM__PLANT_POOL_REUSE) &&
        find_others(pool, stream, size, reached_by_waiting, place))
        return true;
    if (pool->follow_events && find_others(pool, stream, size, reached_by_order, place))
        return true;
    if (pool->opportunistic && find_others(pool, stream, size, reached_by_now, place))
        return true;
    if (find_anybodys(pool, size, place))
        return true;
    if (grow(pool, size) || grow_at_cost(pool, size))
        return find_anybodys(pool, size, place);
    return pool->internal_dependencies &&
           find_others(pool, stream, size, reached_by_waiting, place);
}

// --- Blocks ---

struct sim__block *sim__block_at(const void *pointer) {
    return (struct sim__block *)sim__range_at(&sim__state.blocks, (uint64_t)(uintptr_t)pointer);
}

// What the operations of a block do when their turn comes.
struct block_work {
    struct sim__pool *pool; // of a free
    struct sim__range range;
};

static void alloc_run(void *argument, bool discarded) {
    struct block_work *work = argument;
    if (!discarded)
        sim__checked_poison(work->range.start, work->range.size, SIM__POISON_ALLOCATED);
    free(work);
}

static void free_run(void *argument, bool discarded) {
    struct block_work *work = argument;
    if (!discarded) {
        if (sim__checked())
            sim__checked_poison(work->range.start, work->range.size, SIM__POISON_FREED);
        --work->pool->pending_count;
        sim__pool_check_end(work->pool);
    }
    free(work);
}

static void nothing_run(void *argument, bool discarded) {
    (void)argument;
    (void)discarded;
}

static struct block_work *work_make(struct sim__pool *pool, struct sim__range range) {
    struct block_work *work = malloc(sizeof *work);
    if (work == NULL)
        sim__host_limit("out of host memory for operations of pools");
    *work = (struct block_work){pool, range};
    return work;
}

static struct sim__block *block_make(struct sim__pool *pool, uint64_t address, uint64_t taken,
                                     uint64_t size) {
    struct sim__block *block = malloc(sizeof *block);
    if (block == NULL)
        sim__host_limit("out of host memory for blocks of pools");
    block->range = (struct sim__range){address, taken};
    block->size = size;
    block->graph = NULL;
    block->chunk = (struct sim__chunk *)sim__segment_at((const void *)(uintptr_t)address);
    sim__range_insert(&sim__state.blocks, &block->range);
    if (block->chunk->live_count++ == 0)
        empty_unlink(block->chunk);
    pool->used += taken;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    return block;
}

cudaError_t sim__pool_take(struct sim__pool *pool, struct sim__stream *stream, uint64_t size,
                           void **pointer) {
    if (size > sim__state.options.capacity_bytes)
        return cudaErrorMemoryAllocation;
    const uint64_t taken = base_round_up(size, BLOCK_ALIGNMENT);
    struct place place;
    sim__order_submit(stream);
    if (!find_place(pool, stream, taken, &place))
        return cudaErrorMemoryAllocation;
    struct sim__position after = {0};
    if (place.freed == NULL) {
        sim__space_take(&pool->free, place.address, taken);
    } else {
        if (freed_complete(place.freed) < place.stamp && !sim__planted(SIM__PLANT_POOL_REUSE)) {
            after = (struct sim__position){place.freed->stream, place.stamp};
            sim__order_behind(stream, after);
        }
        sim__space_take(&place.freed->space, place.address, taken);
        freed_end_if_empty(pool, place.freed);
    }
    block_make(pool, place.address, taken, size);
    *pointer = (void *)(uintptr_t)place.address;
    // The allocation itself carries the wait, if its stream is not behind the free anyway.
    struct sim__operation operation = {
        .kind = SIM__OPERATION_INTERNAL,
        .internal = {"cudaMallocAsync", nothing_run, NULL},
    };
    if (sim__checked()) {
        operation.internal.run = alloc_run;
        operation.internal.argument = work_make(pool, (struct sim__range){place.address, taken});
    }
    sim__engine_submit(stream, &operation, after);
    if (sim__race_is_on())
        sim__race_alloc(place.address, size, false, stream);
    return cudaSuccess;
}

void sim__pool_give(struct sim__block *block, struct sim__stream *stream) {
    struct sim__chunk *chunk = block->chunk;
    struct sim__pool *pool = chunk->pool;
    const struct sim__range range = block->range;
    const uint64_t size = block->size;
    sim__range_remove(&sim__state.blocks, &block->range);
    free(block);
    pool->used -= range.size;
    if (--chunk->live_count == 0)
        empty_link(chunk);
    if (stream == NULL) {
        if (sim__race_is_on())
            sim__race_free(range.start, size, NULL);
        sim__space_give(&pool->free, range.start, range.size);
        if (sim__checked())
            sim__checked_poison(range.start, range.size, SIM__POISON_FREED);
        sim__pool_check_end(pool);
        return;
    }
    struct sim__freed *freed = freed_of(pool, stream);
    if (freed == NULL)
        freed = freed_make(pool, stream);
    sim__space_give_stamped(&freed->space, range.start, range.size, stream->submitted + 1);
    pool->pending_count += 2; // one for this call: the pool may end with it, but not before
    const struct sim__operation operation = {
        .kind = SIM__OPERATION_INTERNAL,
        .internal = {"cudaFreeAsync", free_run, work_make(pool, range)},
    };
    sim__engine_submit(stream, &operation, (struct sim__position){0});
    if (sim__race_is_on())
        sim__race_free(range.start, size, stream);
    --pool->pending_count;
    sim__pool_check_end(pool);
}
