// cca_malloc_at: a request served at a wanted address.
//
// PyTorch's way, which its events and statistics show: the part of the free block before the
// address is handed out, then the request out of the rest, then that part is freed again.
#include "allocator/capture_guard.h"
#include "allocator/deferral.h"
#include "allocator/device.h"
#include "allocator/event_poll.h"
#include "allocator/expandable_blocks.h"
#include "allocator/pool.h"

// The free block that holds SIZE bytes at ADDRESS, 0 for none.
static uint32_t find_locked(const struct cca *cca, struct cca__pool *pool, uint64_t address,
                            size_t size) {
    for (uint32_t number = 0;
         (number = cca__free_index_next(&pool->index, cca->blocks, number)) != 0;) {
        const struct cca__block *const block = cca__block_at(cca, number);
        if (address >= block->address && address - block->address < block->size)
            return block->size - (address - block->address) >= size &&
                           !cca__guards_forbid_locked(pool->stream, address, address + size)
                       ? number
                       : 0;
    }
    return 0;
}

// Whether the first SIZE bytes can be cut off a free block.
static bool can_cut(const struct cca *cca, const struct cca__pool *pool,
                    const struct cca__block *block, size_t size) {
    const bool finely = pool->is_small || cca__pool_expands(cca, pool);
    return !pool->no_split &&
           cca__should_split(finely, block->size, size, cca->config.sizes.max_split_size);
}

// Each of the three steps may be a peak that the next one takes away: the statistics meet at once,
// which the caller's locks of all streams allow.
static enum base_status hand_out(struct cca__pool *pool, uint32_t number, size_t rounded,
                                 size_t requested) {
    bool over_limit = false;
    const enum base_status status = cca__pool_hand_out_locked(pool->device->owner, pool, number,
                                                              rounded, requested, &over_limit);
    if (over_limit) cca__stats_meet_locked(pool->device, pool->stream);
    return status;
}

static enum base_status serve_at_locked(struct cca__pool *pool, uint64_t address, size_t rounded,
                                        size_t requested, bool *served) {
    struct cca *const cca = pool->device->owner;
    const uint32_t front = find_locked(cca, pool, address, rounded);
    if (front == 0) return BASE_OK;
    const size_t before = (size_t)(address - cca__block_at(cca, front)->address);
    enum base_status status;
    if (before == 0) {
        status = hand_out(pool, front, rounded, requested);
    } else {
        if (!can_cut(cca, pool, cca__block_at(cca, front), before)) return BASE_OK;
        status = hand_out(pool, front, before, before);
        if (status != BASE_OK) return status;
        status = hand_out(pool, cca__block_at(cca, front)->next, rounded, requested);
        cca__pool_put_back_locked(pool, front);
    }
    *served = status == BASE_OK;
    return status;
}

static enum base_status serve_at(struct cca__stream *stream, struct cca__known_capture known,
                                 uint64_t address, size_t size, bool *served) {
    const struct cca *const cca = stream->device->owner;
    cca__lock_take(&stream->lock);
    const struct cca__private_pool *const owner =
        cca__pools_route(&stream->device->pools, stream->handle, known, &stream->lock);
    cca__lock_release(&stream->lock);
    cca__streams_lock_all(stream->device);
    const size_t rounded = cca__round_size(&cca->config.sizes, size);
    struct cca__stream *const of_pool =
        owner != NULL ? cca__private_pool_stream(owner, stream->handle) : stream;
    enum base_status status = BASE_OK;
    if (of_pool != NULL)
        status = serve_at_locked(
            &of_pool->pools[rounded <= CCA_SMALL_LIMIT ? CCA__POOL_SMALL : CCA__POOL_LARGE],
            address, rounded, size, served);
    cca__streams_unlock_all(stream->device);
    return status;
}

enum base_status cca_malloc_at(struct allocator *allocator, int ordinal, size_t size,
                               cudaStream_t handle, void *wanted, void **pointer) {
    struct cca *const cca = cca__of(allocator);
    enum base_status status = cca__require_caching(allocator, "requests at an address");
    if (status != BASE_OK) return status;
    if (size == 0) {
        *pointer = NULL;
        return BASE_OK;
    }
    if ((uintptr_t)wanted % CCA_MIN_BLOCK != 0)
        return base_status_set(
            BASE_INVALID_VALUE,
            "mallocWithAddress: addr must be aligned to kMinBlockSize (512 bytes), got %p", wanted);
    struct cca__device *device;
    struct cca__stream *stream;
    bool served = false;
    status = cca__device_get(cca, ordinal, &device);
    if (status == BASE_OK) status = cca__stream_get(device, handle, &stream);
    struct cca__known_capture known = {0};
    bool inside = false;
    if (status == BASE_OK && cca__is_beside_captures(device))
        status = cca__captures_enter(stream, &inside, &known);
    if (status == BASE_OK && !inside &&
        atomic_load_explicit(&device->pending_events, memory_order_relaxed) != 0)
        status = cca__poll_pending(stream);
    if (status == BASE_OK && size < CCA_REQUEST_LIMIT)
        status = serve_at(stream, known, (uintptr_t)wanted, size, &served);
    if (status != BASE_OK) return status;
    if (!served)
        return base_status_set(BASE_INVALID_VALUE,
                               "Could not allocate CUDA storage at exact address %p", wanted);
    *pointer = wanted;
    return BASE_OK;
}
