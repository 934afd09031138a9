// Each device is copied at one moment, under its growth lock and the locks of all its streams;
// devices one after the other.
#include "allocator/snapshot.h"

#include "allocator/device.h"
#include "allocator/pool.h"
#include "allocator/settings.h"

#include <stdlib.h>
#include <sys/mman.h>

#define LARGE_PAGE_BYTES ((size_t)2 << 20)

// Of an expandable segment: the first block from NUMBER on that has memory, and the first one after
// it that has none, which ends a run of mapped pages. 0: no more.
static uint32_t run_start(const struct cca *cca, uint32_t number) {
    while (number != 0 && cca->blocks[number].state == CCA__BLOCK_UNMAPPED)
        number = cca->blocks[number].next;
    return number;
}
static uint32_t run_end(const struct cca *cca, uint32_t number) {
    while (number != 0 && cca->blocks[number].state != CCA__BLOCK_UNMAPPED)
        number = cca->blocks[number].next;
    return number;
}

struct counts {
    size_t segments, blocks;
};

// Whose blocks are copied: {0, 0} for all.
static bool is_wanted(const struct cca__stream *stream, struct allocator_pool_id id) {
    if ((id.capture | id.user) == 0) return true;
    return stream->private_pool != NULL && cca__pool_id_equal(stream->private_pool->id, id);
}

// Room for what the device has. Blocks are not counted, which would cost a walk over them: as many
// as its streams ever had at a time are enough, and their own memory is larger.
static struct counts count_device(const struct cca__device *device, struct allocator_pool_id id) {
    const struct cca *const cca = device->owner;
    struct counts counts = {0};
    for (size_t index = 0; index < device->stream_count; ++index) {
        const struct cca__stream *const stream = device->by_handle[index];
        if (!is_wanted(stream, id)) continue;
        counts.blocks += (size_t)stream->unused_blocks.chunk_count * CCA__BLOCK_CHUNK;
        for (uint32_t number = stream->first_segment; number != 0;
             number = cca->segments[number].next) {
            const struct cca__segment *const segment = &cca->segments[number];
            if (segment->expandable == NULL) {
                ++counts.segments;
                continue;
            }
            for (uint32_t block = segment->first_block; (block = run_start(cca, block)) != 0;
                 block = run_end(cca, block))
                ++counts.segments;
        }
    }
    return counts;
}

// A larger array of blocks, or NULL. Most of the cost of a large snapshot would be faults of the
// pages that it is written to: a new array is in large ones, where the system has them.
static struct allocator_snapshot_block *grow_blocks(struct allocator_snapshot_block *old,
                                                    size_t count) {
    const size_t bytes = count * sizeof *old;
    if (old != NULL || bytes < LARGE_PAGE_BYTES) return realloc(old, bytes);
    const size_t rounded = (bytes + LARGE_PAGE_BYTES - 1) / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
    void *const blocks = aligned_alloc(LARGE_PAGE_BYTES, rounded);
    if (blocks != NULL) (void)madvise(blocks, rounded, MADV_HUGEPAGE); // advice only
    return blocks;
}

static enum base_status reserve(struct allocator_snapshot *snapshot, struct counts more) {
    const size_t segments = snapshot->segment_count + more.segments,
                 blocks = snapshot->block_count + more.blocks;
    struct allocator_snapshot_segment *const segment_array =
        realloc(snapshot->segments, (segments + 1) * sizeof *snapshot->segments);
    if (segment_array != NULL) snapshot->segments = segment_array;
    struct allocator_snapshot_block *const block_array = grow_blocks(snapshot->blocks, blocks + 1);
    if (block_array != NULL) snapshot->blocks = block_array;
    if (segment_array == NULL || block_array == NULL)
        return base_status_set(BASE_HOST_MEMORY,
                               "out of host memory for a snapshot of %zu segments and %zu blocks",
                               segments, blocks);
    return BASE_OK;
}

// Gives back what was reserved and not needed. Memory that is not moved stays as large as it was.
static void shrink(struct allocator_snapshot *snapshot) {
    struct allocator_snapshot_block *const blocks =
        realloc(snapshot->blocks, (snapshot->block_count + 1) * sizeof *snapshot->blocks);
    if (blocks != NULL) snapshot->blocks = blocks;
}

static enum allocator_block_state state_of(const struct cca__block *block) {
    switch (block->state) {
    case CCA__BLOCK_ALLOCATED: return ALLOCATOR_BLOCK_ALLOCATED;
    case CCA__BLOCK_PENDING: return ALLOCATOR_BLOCK_PENDING_FREE;
    default: return ALLOCATOR_BLOCK_INACTIVE;
    }
}

// Appends the blocks of one segment, or mapped run, and sums them up.
static void copy_blocks(const struct cca *cca, uint32_t first, struct allocator_snapshot *snapshot,
                        struct allocator_snapshot_segment *segment) {
    const bool has_stacks = cca->history.block_stacks != NULL;
    struct allocator_snapshot_block *const begin = snapshot->blocks + snapshot->block_count;
    struct allocator_snapshot_block *copy = begin;
    // By kind of bytes; inactive ones are asked for by nobody.
    size_t bytes[ALLOCATOR_BLOCK_PENDING_FREE + 1] = {0}, requested = 0;
    for (uint32_t number = first; number != 0; ++copy) {
        const struct cca__block *const block = &cca->blocks[number];
        if (block->state == CCA__BLOCK_UNMAPPED) break;
        const enum allocator_block_state state = state_of(block);
        *copy = (struct allocator_snapshot_block){
            .address = (void *)(uintptr_t)block->address,
            .size = block->size,
            .requested_size = block->requested,
            .state = state,
        };
        if (state != ALLOCATOR_BLOCK_INACTIVE) {
            requested += block->requested;
            copy->stack = has_stacks ? cca__history_block_stack(cca, number) : 0;
        }
        bytes[state] += block->size;
        number = block->next;
    }
    const size_t active = bytes[ALLOCATOR_BLOCK_ALLOCATED] + bytes[ALLOCATOR_BLOCK_PENDING_FREE];
    segment->block_first = snapshot->block_count;
    segment->block_count = (size_t)(copy - begin);
    segment->total_size = active + bytes[ALLOCATOR_BLOCK_INACTIVE];
    segment->allocated_size = bytes[ALLOCATOR_BLOCK_ALLOCATED];
    segment->active_size = active;
    segment->requested_size = requested;
    snapshot->block_count += segment->block_count;
}

static int compare_addresses(const void *a, const void *b) {
    const uint64_t x = (uint64_t)(uintptr_t)((const struct allocator_snapshot_segment *)a)->address;
    const uint64_t y = (uint64_t)(uintptr_t)((const struct allocator_snapshot_segment *)b)->address;
    return (x > y) - (x < y);
}

// First the segments, then, when they are in order, their blocks. block_first carries a segment's
// first block between.
static enum base_status copy_device(struct cca__device *device, struct allocator_pool_id id,
                                    struct allocator_snapshot *snapshot, size_t *active) {
    const struct cca *const cca = device->owner;
    const struct counts counts = count_device(device, id);
    const enum base_status status = reserve(snapshot, counts);
    if (status != BASE_OK) return status;
    const size_t first = snapshot->segment_count, first_block = snapshot->block_count;
    for (size_t index = 0; index < device->stream_count; ++index) {
        const struct cca__stream *const stream = device->by_handle[index];
        if (!is_wanted(stream, id)) continue;
        for (uint32_t number = stream->first_segment; number != 0;
             number = cca->segments[number].next) {
            const struct cca__segment *const segment = &cca->segments[number];
            if (segment->gone_bytes != 0) continue;
            for (uint32_t block = segment->first_block; (block = run_start(cca, block)) != 0;
                 block = segment->expandable == NULL ? 0 : run_end(cca, block))
                snapshot->segments[snapshot->segment_count++] = (struct allocator_snapshot_segment){
                    .device = device->ordinal,
                    .address = (void *)(uintptr_t)cca->blocks[block].address,
                    .stream = stream->handle,
                    .pool = cca__pool_id(&stream->pools[CCA__POOL_SMALL]),
                    .is_large = segment->pool == stream->pools[CCA__POOL_LARGE].number,
                    .is_expandable = segment->expandable != NULL,
                    .stack = segment->stack,
                    .registration = segment->registration,
                    .block_first = block,
                };
        }
    }
    qsort(&snapshot->segments[first], snapshot->segment_count - first, sizeof *snapshot->segments,
          compare_addresses);
    for (size_t index = first; index < snapshot->segment_count; ++index) {
        struct allocator_snapshot_segment *const segment = &snapshot->segments[index];
        copy_blocks(cca, (uint32_t)segment->block_first, snapshot, segment);
        *active += segment->active_size;
    }
    BASE_CHECK_LE(snapshot->block_count - first_block, counts.blocks);
    shrink(snapshot);
    return BASE_OK;
}

// Some pool of that id, to tell the history by; NULL: there is none.
static const struct cca__pool *pool_of(const struct cca__device *device,
                                       struct allocator_pool_id id) {
    const struct cca__private_pool *const pool = cca__pools_find(&device->pools, id);
    return pool == NULL || pool->stream_count == 0 ? NULL
                                                   : &pool->streams[0]->pools[CCA__POOL_SMALL];
}

// The entry comes after the copy: it is not in its own snapshot.
static enum base_status copy_at_one_moment(struct cca__device *device, struct allocator_pool_id id,
                                           struct allocator_snapshot *snapshot) {
    const struct cca *const cca = device->owner;
    size_t active = 0;
    cca__lock_take(&device->growth_lock);
    cca__streams_lock_all(device);
    enum base_status status = copy_device(device, id, snapshot, &active);
    if (status == BASE_OK) status = cca__history_copy_locked(device, snapshot);
    if (status == BASE_OK) {
        cca__observe(cca, &(struct allocator_event){.action = ALLOCATOR_SNAPSHOT,
                                                    .device = device->ordinal,
                                                    .size = active,
                                                    .pool = id});
        if (device->history != NULL)
            (void)cca__history_device_locked(device, ALLOCATOR_SNAPSHOT, pool_of(device, id), 0,
                                             active);
    }
    cca__streams_unlock_all(device);
    cca__lock_release(&device->growth_lock);
    return status;
}

static enum base_status copy_settings(struct cca *cca, struct allocator_snapshot *snapshot) {
    struct cca_settings *const settings = malloc(sizeof *settings);
    if (settings == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for a snapshot's settings");
    const enum base_status status = cca_settings(&cca->interface, settings);
    if (status == BASE_OK)
        snapshot->settings = settings;
    else
        free(settings);
    return status;
}

// The settings lock keeps the history from being forgotten between two devices.
enum base_status cca__snapshot(struct cca *cca, struct allocator_pool_id id,
                               struct allocator_snapshot *snapshot) {
    struct allocator_snapshot copy = {0};
    enum base_status status = copy_settings(cca, &copy);
    cca__lock_take(&cca->settings_lock);
    for (int ordinal = 0; ordinal < CCA__DEVICES_MAX && status == BASE_OK; ++ordinal) {
        struct cca__device *const device =
            atomic_load_explicit(&cca->devices[ordinal], memory_order_acquire);
        if (device != NULL) status = copy_at_one_moment(device, id, &copy);
    }
    if (status == BASE_OK) status = cca__history_copy_stacks(cca, &copy);
    cca__lock_release(&cca->settings_lock);
    if (status == BASE_OK)
        *snapshot = copy;
    else
        allocator_snapshot_deinit(&copy);
    return status;
}
