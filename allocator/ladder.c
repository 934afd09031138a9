// See ladder.h, and shortage.h for the rungs. Each is a few lines of climb(); the memory that the
// last one gave becomes a block that is handed out.
#include "allocator/ladder.h"

#include "allocator/expandable_blocks.h"
#include "allocator/free_memory.h"
#include "allocator/out_of_memory.h"
#include "allocator/pool.h"
#include "allocator/rejection.h"
#include "allocator/release.h"
#include "allocator/segment.h"

// What a request got: memory for a new segment, or a claimed block of an expandable one.
struct gain {
    void *memory; // NULL: the block
    uint32_t block;
    // Where no expandable segment can be as large as the request: the reserve that was configured
    size_t exceeded_reserve;
    bool is_rejected; // nothing more is tried
    struct cca_rejection rejection;
};

// Whether the device may be asked for a segment of SIZE bytes at all. BASE_OUT_OF_MEMORY, without a
// sentence, if the fraction refuses or the segment is rejected.
static enum base_status admit(struct cca__device *device, size_t size, bool is_retry,
                              struct gain *gain) {
    if (is_retry) ++device->num_alloc_retries;
    if (device->limited && (device->reserved_bytes > device->allowed_bytes ||
                            size > device->allowed_bytes - device->reserved_bytes))
        return BASE_OUT_OF_MEMORY;
    gain->is_rejected = cca__rejects_locked(device, size, &gain->rejection);
    return gain->is_rejected ? BASE_OUT_OF_MEMORY : BASE_OK;
}

// BASE_OUT_OF_MEMORY, without a sentence, if the device or the fraction refuses. SIZE, the segment
// that cudaMalloc would give, is what the fraction is asked about, also where less is mapped.
static enum base_status take_memory(struct cca__pool *pool, size_t rounded, size_t size,
                                    bool is_retry, struct gain *gain) {
    struct cca__device *const device = pool->device;
    *gain = (struct gain){0};
    enum base_status status = admit(device, size, is_retry, gain);
    if (status != BASE_OK) return status;
    if (cca__pool_expands(device->owner, pool)) {
        status = cca__expandable_grow(pool, rounded, &gain->block, &gain->exceeded_reserve);
        // The driver may turn out to have no virtual memory.
        if (status != BASE_UNSUPPORTED) return status;
    }
    return cca__segment_take(device, size, &gain->memory);
}

// Whether another rung may help.
static bool goes_on(enum base_status status, const struct gain *gain) {
    return status == BASE_OUT_OF_MEMORY && !gain->is_rejected;
}

static enum base_status climb(struct cca__pool *pool, size_t rounded, size_t size,
                              struct gain *gain) {
    struct cca__device *const device = pool->device;
    enum base_status status = cca__collect_garbage_locked(device);
    if (status != BASE_OK) return status;
    status = take_memory(pool, rounded, size, false, gain);
    if (!goes_on(status, gain)) return status;
    bool enough;
    status = cca__release_available_locked(pool, rounded, &enough);
    if (status != BASE_OK) return status;
    if (enough) {
        status = take_memory(pool, rounded, size, false, gain);
        if (!goes_on(status, gain)) return status;
    }
    status = cca__release_all_locked(device);
    return status != BASE_OK ? status : take_memory(pool, rounded, size, true, gain);
}

// Hands the front of a claimed block out.
static enum base_status hand_out_claimed(struct cca__pool *pool, uint32_t number, size_t rounded,
                                         size_t requested, void **pointer, bool *over_limit) {
    struct cca *const cca = pool->device->owner;
    cca__lock_take(&pool->stream->lock);
    const uint64_t address = cca__block_at(cca, number)->address;
    const enum base_status status =
        cca__expandable_hand_out_locked(cca, pool, number, rounded, requested, false, over_limit);
    if (status == BASE_OK)
        *pointer = (void *)(uintptr_t)address;
    else
        cca__expandable_unclaim_locked(cca, pool, number);
    cca__lock_release(&pool->stream->lock);
    return status;
}

// After callbacks freed something, or since another thread of this stream may have made room
// between the miss and the growth lock. Only the former is a search of PyTorch's.
static enum base_status search_again(struct cca__pool *pool, size_t rounded, size_t requested,
                                     bool is_counted, void **pointer, bool *over_limit) {
    struct cca__device *const device = pool->device;
    cca__lock_take(&pool->stream->lock);
    if (is_counted && device->counts_requests && !pool->is_small)
        atomic_fetch_add_explicit(&device->large_searches, 1, memory_order_relaxed);
    const enum base_status status =
        cca__pool_serve_locked(device->owner, pool, rounded, requested, pointer, over_limit);
    cca__lock_release(&pool->stream->lock);
    return status;
}

// Takes memory and hands it out.
static enum base_status grow_locked(struct cca__pool *pool, size_t rounded, size_t requested,
                                    struct gain *gain, void **pointer, bool *over_limit) {
    const size_t size = cca__segment_size(&pool->device->owner->config.sizes, rounded);
    const enum base_status status = climb(pool, rounded, size, gain);
    if (status != BASE_OK) return status;
    if (gain->memory != NULL)
        return cca__segment_add(pool, gain->memory, size, rounded, requested, pointer, over_limit);
    return hand_out_claimed(pool, gain->block, rounded, requested, pointer, over_limit);
}

enum base_status cca__grow(struct cca__stream *stream, size_t rounded, size_t requested,
                           void **pointer) {
    struct cca__device *const device = stream->device;
    struct cca *const cca = device->owner;
    struct cca__pool *const pool =
        &stream->pools[rounded <= CCA_SMALL_LIMIT ? CCA__POOL_SMALL : CCA__POOL_LARGE];
    struct cca_out_of_memory out_of_memory;
    struct gain gain = {0};
    void *handed_out = NULL;
    bool over_limit = false;
    const bool freed = cca__free_memory(cca, device->ordinal);
    cca__lock_take(&device->growth_lock);
    enum base_status status =
        search_again(pool, rounded, requested, freed, &handed_out, &over_limit);
    if (status == BASE_OK && handed_out == NULL) {
        status = grow_locked(pool, rounded, requested, &gain, &handed_out, &over_limit);
        if (goes_on(status, &gain))
            cca__out_of_memory_locked(stream, rounded, gain.exceeded_reserve, &out_of_memory);
    }
    cca__lock_release(&device->growth_lock);
    if (over_limit) cca__stats_meet(stream);
    if (status == BASE_OK) *pointer = handed_out;
    if (status != BASE_OUT_OF_MEMORY) return status;
    return gain.is_rejected ? cca__rejection_tell(cca, &gain.rejection, requested)
                            : cca__out_of_memory_tell(cca, &out_of_memory);
}
