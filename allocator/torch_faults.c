// See torch_faults.h.
#include "allocator/torch_faults.h"

#include "allocator/device.h"
#include "allocator/hit.h"
#include "allocator/segment.h"
#include "allocator/stream_use.h"

static enum base_status free_on_device(const struct cca__device *device, uint64_t address,
                                       size_t size) {
    struct cca__device_scope scope;
    const enum base_status status = cca__device_scope_begin(&scope, device->ordinal);
    if (status != BASE_OK) return status;
    const cudaError_t error = cudaFree((void *)(uintptr_t)address);
    cca__device_scope_end(&scope);
    if (error == cudaSuccess) return BASE_OK;
    return cca__cuda_failed(error, "cudaFree of %zu bytes at %#llx inside a segment on device %d",
                            size, (unsigned long long)address, device->ordinal);
}

// Of a segment whose memory went back: its free blocks leave the index for good.
static void become_gone_locked(struct cca__pool *pool, uint32_t segment, size_t released) {
    struct cca *const cca = pool->device->owner;
    cca->segments[segment].gone_bytes = released;
    for (uint32_t number = cca->segments[segment].first_block; number != 0;
         number = cca__block_at(cca, number)->next) {
        struct cca__block *const block = cca__block_at(cca, number);
        block->flags |= CCA__BLOCK_IN_GONE_SEGMENT;
        if (block->state != CCA__BLOCK_FREE) continue;
        cca__free_index_remove(&pool->index, cca->blocks, number);
        block->state = CCA__BLOCK_GONE;
    }
    ++pool->device->gone_segments;
}

// In PyTorch's order: traced and counted before the driver is asked.
enum base_status cca__torch_release_split_locked(struct cca__pool *pool, uint32_t number) {
    struct cca__device *const device = pool->device;
    struct cca *const cca = device->owner;
    const struct cca__block *const block = cca__block_at(cca, number);
    const uint64_t address = block->address;
    const size_t size = block->size;
    const uint32_t segment = block->segment;
    (void)cca__observe_segment(cca, ALLOCATOR_SEGMENT_FREE, pool, address, size);
    const enum base_status status = free_on_device(device, address, size);
    if (status != BASE_OK) {
        ++device->num_device_free;
        return status;
    }
    BASE_CHECK_EQ(address, cca->segments[segment].address);
    device->reserved_bytes -= size;
    cca__segment_count(device, pool, size, -1);
    become_gone_locked(pool, segment, size);
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Frees in a gone segment: as in any other, but for the index.

static bool is_gone_and_free(const struct cca *cca, uint32_t number) {
    return number != 0 && cca__block_at(cca, number)->state == CCA__BLOCK_GONE;
}

void cca__gone_free_locked(struct cca *cca, struct cca__pool *pool, uint32_t number,
                           bool *over_limit) {
    struct cca__block *block = cca__block_at(cca, number);
    const cca__sizes sizes = {(int64_t)block->size, (int64_t)block->requested};
    int merged = 0;
    if (is_gone_and_free(cca, block->next)) {
        cca__hit_absorb_next(cca, pool, number);
        ++merged;
    }
    if (is_gone_and_free(cca, block->previous)) {
        number = block->previous;
        cca__hit_absorb_next(cca, pool, number);
        ++merged;
    }
    block = cca__block_at(cca, number);
    block->state = CCA__BLOCK_GONE;
    cca__hit_test_limits(pool,
                         cca__hit_count_free(pool, sizes, (int64_t)block->size,
                                             cca__block_is_alone(block), merged),
                         over_limit);
}

static void take_off_locked(struct cca__pool *pool, uint32_t segment_number) {
    struct cca__device *const device = pool->device;
    struct cca *const cca = device->owner;
    struct cca__stream *const stream = pool->stream;
    const struct cca__segment *const segment = &cca->segments[segment_number];
    const size_t left = segment->size - segment->gone_bytes;
    device->reserved_bytes -= left;
    cca__stat_change(&device->reserved[ALLOCATOR_STAT_ALL], -(int64_t)left);
    cca__stat_change(&device->reserved[cca__pool_kind(pool)], -(int64_t)left);
    cca__segment_unlink_locked(cca, stream, segment_number);
    cca__block_give_back(&stream->unused_blocks, &cca->block_chunks, segment->first_block);
    cca__arena_give_back(&cca->segment_records, segment_number);
    --device->gone_segments;
}

void cca__gone_settle_locked(struct cca__device *device) {
    struct cca *const cca = device->owner;
    if (device->gone_segments == 0) return;
    for (size_t index = 0; index < device->stream_count; ++index) {
        struct cca__stream *const stream = device->by_handle[index];
        cca__lock_take(&stream->lock);
        for (uint32_t number = stream->first_segment, next; number != 0; number = next) {
            const struct cca__segment *const segment = &cca->segments[number];
            const struct cca__block *const block = cca__block_at(cca, segment->first_block);
            next = segment->next;
            if (block->state == CCA__BLOCK_GONE && cca__block_is_alone(block))
                take_off_locked(&stream->pools[CCA__POOL_LARGE], number);
        }
        cca__lock_release(&stream->lock);
    }
}

//------------------------------------------------------------------------------------------------
// The driver gave the addresses out again.

static void free_for_the_program_locked(struct cca__pool *pool, uint32_t number, bool *over_limit) {
    struct cca *const cca = pool->device->owner;
    struct cca__block *const block = cca__block_at(cca, number);
    cca__uses_forget_locked(cca, pool->stream, block);
    if (block->size >= cca->config.sizes.max_split_size) cca__count_oversize(pool->device, -1);
    if (cca->watched) cca__observe_block(cca, ALLOCATOR_FREE_REQUESTED, pool, block);
    cca__pool_free_locked(cca, pool, number, over_limit);
}

// The first block in use of a gone segment; those that wait for events go by themselves.
static uint32_t find_in_use(const struct cca *cca, uint32_t segment) {
    for (uint32_t number = cca->segments[segment].first_block; number != 0;
         number = cca__block_at(cca, number)->next)
        if (cca__block_at(cca, number)->state == CCA__BLOCK_ALLOCATED) return number;
    return 0;
}

void cca__gone_make_way_locked(struct cca__device *device, uint64_t address, size_t size) {
    struct cca *const cca = device->owner;
    if (device->gone_segments == 0) return;
    for (size_t index = 0; index < device->stream_count; ++index) {
        struct cca__stream *const stream = device->by_handle[index];
        bool over_limit = false;
        cca__lock_take(&stream->lock);
        for (uint32_t number = stream->first_segment; number != 0;
             number = cca->segments[number].next) {
            const struct cca__segment *const segment = &cca->segments[number];
            if (segment->gone_bytes == 0 || segment->address >= address + size ||
                address >= segment->address + segment->size)
                continue;
            for (uint32_t block; (block = find_in_use(cca, number)) != 0;)
                free_for_the_program_locked(&stream->pools[CCA__POOL_LARGE], block, &over_limit);
        }
        cca__lock_release(&stream->lock);
        if (over_limit) cca__stats_meet(stream);
    }
}
