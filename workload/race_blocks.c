// The observer runs within the allocator's calls, in the thread of the caller and under a lock of
// the allocator; what it tells the checker carries the place that the program called from. Lock
// order: the allocator's, then blocks_lock; the simulator's lock is taken under neither but the
// allocator's.
#include "workload/race_blocks.h"

#include "base/address_map.h"
#include "base/thread.h"
#include "simulator/sim_race.h"
#include "workload/wrapper.h"

#include <stdlib.h>

struct race_blocks {
    struct workload_wrapper wrapper;
    struct allocator_operations operations;
    struct allocator_observer observer; // the program's
    struct base_mutex blocks_lock;
    struct base_address_map blocks; // from address to the checker's number; guarded by blocks_lock
};

static struct race_blocks *blocks_of(struct allocator *allocator) {
    return (struct race_blocks *)allocator;
}

// --- What the checker is told ---

static uint64_t number_at(struct race_blocks *blocks, const void *address) {
    uint64_t number = 0;
    base_mutex_lock(&blocks->blocks_lock);
    (void)base_address_map_get(&blocks->blocks, (uintptr_t)address, &number);
    base_mutex_unlock(&blocks->blocks_lock);
    return number;
}

uint64_t workload_race_blocks_number(struct allocator *allocator, const void *pointer) {
    return number_at(blocks_of(allocator), pointer);
}

// The same for an address inside the block, of a view: the allocator knows where that begins.
static uint64_t number_around(struct race_blocks *blocks, const void *pointer) {
    const uint64_t number = number_at(blocks, pointer);
    struct allocator_snapshot snapshot;
    if (number != 0 || pointer == NULL ||
        allocator_snapshot(blocks->wrapper.inner, &snapshot) != BASE_OK)
        return number;
    const void *base = NULL;
    for (size_t i = 0; i < snapshot.block_count && base == NULL; ++i) {
        const struct allocator_snapshot_block *block = &snapshot.blocks[i];
        if ((uintptr_t)pointer - (uintptr_t)block->address < block->size) base = block->address;
    }
    allocator_snapshot_deinit(&snapshot);
    return base != NULL ? number_at(blocks, base) : 0;
}

// Without memory for it the checker does not learn of the block's uses and end.
static void block_take(struct race_blocks *blocks, const struct allocator_event *event) {
    const uint64_t number = sim_block_take(event->address, event->block_size, event->stream, NULL);
    if (number == 0) // it does not check
        return;
    base_mutex_lock(&blocks->blocks_lock);
    (void)!base_address_map_set(&blocks->blocks, (uintptr_t)event->address, number);
    base_mutex_unlock(&blocks->blocks_lock);
}

static void block_give(struct race_blocks *blocks, const struct allocator_event *event) {
    uint64_t number = 0;
    base_mutex_lock(&blocks->blocks_lock);
    (void)base_address_map_remove(&blocks->blocks, (uintptr_t)event->address, &number);
    base_mutex_unlock(&blocks->blocks_lock);
    sim_block_give(number);
}

static void observe(void *context, const struct allocator_event *event) {
    struct race_blocks *blocks = context;
    if (event->action == ALLOCATOR_ALLOC)
        block_take(blocks, event);
    else if (event->action == ALLOCATOR_FREE_REQUESTED)
        block_give(blocks, event);
    if (blocks->observer.event != NULL) blocks->observer.event(blocks->observer.context, event);
}

// --- The interface ---

// Whoever called these is where their calls come from.
static enum base_status race_blocks_malloc(struct allocator *allocator, int device, size_t size,
                                           cudaStream_t stream, void **pointer) {
    sim_call_address(__builtin_return_address(0));
    const enum base_status status =
        allocator_malloc(workload_wrapper_inner(allocator), device, size, stream, pointer);
    sim_call_address(NULL);
    return status;
}

static enum base_status race_blocks_free(struct allocator *allocator, void *pointer) {
    sim_call_address(__builtin_return_address(0));
    const enum base_status status = allocator_free(workload_wrapper_inner(allocator), pointer);
    sim_call_address(NULL);
    return status;
}

static enum base_status race_blocks_record_stream(struct allocator *allocator, void *pointer,
                                                  cudaStream_t stream) {
    struct race_blocks *blocks = blocks_of(allocator);
    sim_call_address(__builtin_return_address(0));
    const enum base_status status = allocator_record_stream(blocks->wrapper.inner, pointer, stream);
    if (status == BASE_OK) sim_block_use(number_around(blocks, pointer), stream);
    sim_call_address(NULL);
    return status;
}

static enum base_status race_blocks_empty_cache(struct allocator *allocator) {
    sim_call_address(__builtin_return_address(0));
    const enum base_status status = allocator_empty_cache(workload_wrapper_inner(allocator));
    sim_call_address(NULL);
    return status;
}

static enum base_status race_blocks_set_observer(struct allocator *allocator,
                                                 const struct allocator_observer *observer) {
    blocks_of(allocator)->observer =
        observer != NULL ? *observer : (struct allocator_observer){NULL, NULL};
    return BASE_OK;
}

static void race_blocks_destroy(struct allocator *allocator) {
    struct race_blocks *blocks = blocks_of(allocator);
    (void)!allocator_set_observer(blocks->wrapper.inner, NULL);
    base_address_map_deinit(&blocks->blocks);
    base_mutex_deinit(&blocks->blocks_lock);
    free(blocks);
}

enum base_status workload_race_blocks_create(struct allocator *inner,
                                             struct allocator **allocator) {
    struct race_blocks *blocks = calloc(1, sizeof *blocks);
    if (blocks == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for the race checker's blocks");
    blocks->operations = workload_wrapper_operations;
    blocks->operations.name = "race_blocks";
    blocks->operations.malloc = race_blocks_malloc;
    blocks->operations.free = race_blocks_free;
    blocks->operations.record_stream = race_blocks_record_stream;
    blocks->operations.empty_cache = race_blocks_empty_cache;
    blocks->operations.set_observer = race_blocks_set_observer;
    blocks->operations.destroy = race_blocks_destroy;
    blocks->wrapper = (struct workload_wrapper){{&blocks->operations}, inner};
    base_mutex_init(&blocks->blocks_lock);
    const struct allocator_observer observer = {observe, blocks};
    const enum base_status status = allocator_set_observer(inner, &observer);
    if (status != BASE_OK) {
        base_mutex_deinit(&blocks->blocks_lock);
        free(blocks);
        return status;
    }
    *allocator = &blocks->wrapper.allocator;
    return BASE_OK;
}
