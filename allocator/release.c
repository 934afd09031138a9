// See release.h. Blocks to be released are taken out of the free index under their stream's lock
// and chained through link[0]; nobody else can reach them then, since they are free and have no
// neighbours.
//
// Only blocks that are their whole segment are ever given back, also after max_split_size was
// lowered while blocks were split. PyTorch 2.15 frees memory in use there, and so does
// x_torch_faults.
#include "allocator/release.h"

#include "allocator/capture_caller.h"
#include "allocator/device.h"
#include "allocator/event_poll.h"
#include "allocator/expandable_blocks.h"
#include "allocator/segment.h"
#include "allocator/stream_use.h"
#include "allocator/torch_faults.h"

// Releases a chain in order. What cannot be released, and all after it, becomes available again.
static enum base_status release_chain(struct cca__pool *pool, uint32_t first,
                                      size_t *released_bytes) {
    struct cca *const cca = pool->stream->device->owner;
    struct cca__device_scope scope;
    enum base_status status = BASE_OK;
    if (first == 0) return BASE_OK;
    status = cca__device_scope_begin(&scope, pool->stream->device->ordinal);
    const bool is_current = status == BASE_OK;
    while (first != 0 && status == BASE_OK) {
        uint32_t next;
        status = cca__segments_release(pool, first, &next, released_bytes);
        first = next;
    }
    if (is_current) cca__device_scope_end(&scope);
    cca__lock_take(&pool->stream->lock);
    while (first != 0) {
        const uint32_t next = cca__block_at(cca, first)->link[0];
        cca__free_index_insert(&pool->index, cca->blocks, first);
        first = next;
    }
    cca__segment_trim_stock_locked(cca, pool->stream);
    cca__lock_release(&pool->stream->lock);
    return status;
}

// Takes a block out of the free index and appends it to a chain.
struct chain {
    uint32_t first, last;
};
static void chain_append_locked(struct cca__pool *pool, struct chain *chain, uint32_t number) {
    struct cca *const cca = pool->stream->device->owner;
    cca__free_index_remove(&pool->index, cca->blocks, number);
    cca__block_at(cca, number)->link[0] = 0;
    if (chain->last == 0)
        chain->first = number;
    else
        cca__block_at(cca, chain->last)->link[0] = number;
    chain->last = number;
}

static enum base_status release_pool(struct cca__pool *pool) {
    cca__lock_take(&pool->stream->lock);
    const uint32_t first = cca__free_index_take(&pool->index, pool->device->owner->blocks,
                                                cca__block_is_whole_segment);
    cca__lock_release(&pool->stream->lock);
    return release_chain(pool, first, NULL);
}

static void trim_metadata(struct cca *cca) {
    cca__arena_trim(&cca->block_chunks);
    cca__arena_trim_with(&cca->segment_records, cca__page_table_trim, &cca->page_table);
    cca__arena_trim(&cca->use_records);
    cca__arena_trim(&cca->free_runs);
    cca__arena_trim(&cca->page_table.directories);
    cca__arena_trim(&cca->page_table.leaves);
}

// The pools of one kind of those of the streams that belong to OWNER: segments of cudaMalloc, then
// pages of expandable ones.
static enum base_status release_kind(struct cca__stream **streams, size_t count, int kind,
                                     const struct cca__private_pool *owner) {
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < count && status == BASE_OK; ++index)
        if (streams[index]->private_pool == owner)
            status = release_pool(&streams[index]->pools[kind]);
    for (size_t index = 0; index < count && status == BASE_OK; ++index)
        if (streams[index]->private_pool == owner)
            status = cca__expandable_release_pool(&streams[index]->pools[kind]);
    return status;
}

static bool has_memory(const struct cca__private_pool *pool) {
    bool has = pool->takers > 0;
    for (size_t index = 0; index < pool->stream_count; ++index) {
        cca__lock_take(&pool->streams[index]->lock);
        has |= pool->streams[index]->first_segment != 0;
        cca__lock_release(&pool->streams[index]->lock);
    }
    return has;
}

// PyTorch counts segments of a private pool by events, which for expandable ones can go wrong: the
// pool then stays for ever, or goes while memory of it is in use. Here it goes when it has none.
enum base_status cca__release_private_locked(struct cca__device *device,
                                             struct cca__private_pool *pool) {
    enum base_status status =
        release_kind(pool->streams, pool->stream_count, CCA__POOL_SMALL, pool);
    if (status == BASE_OK)
        status = release_kind(pool->streams, pool->stream_count, CCA__POOL_LARGE, pool);
    trim_metadata(device->owner);
    if (status == BASE_OK && !has_memory(pool)) pool->exists = false;
    return status;
}

static enum base_status release_freeable(struct cca__device *device) {
    enum base_status status = BASE_OK;
    for (struct cca__private_pool *pool = device->pools.first; pool != NULL && status == BASE_OK;
         pool = pool->next)
        if (cca__private_pool_is_freeable(pool)) status = cca__release_private_locked(device, pool);
    return status;
}

enum base_status cca__release_cached_locked(struct cca__device *device) {
    enum base_status status =
        release_kind(device->by_handle, device->stream_count, CCA__POOL_LARGE, NULL);
    if (status == BASE_OK)
        status = release_kind(device->by_handle, device->stream_count, CCA__POOL_SMALL, NULL);
    if (status == BASE_OK) status = release_freeable(device);
    trim_metadata(device->owner);
    return status;
}

enum base_status cca__empty_device_locked(struct cca__device *device) {
    enum cca__caller caller;
    enum base_status status = cca__caller_of_device(device, &caller);
    if (status != BASE_OK) return status;
    if (caller == CCA__INVALIDATED) return cca__caller_is_invalidated();
    if (caller == CCA__INSIDE) return release_freeable(device);
    status = cca__synchronize_pending(device);
    return status != BASE_OK ? status : cca__release_cached_locked(device);
}

//------------------------------------------------------------------------------------------------
// Oversize blocks: under max_split_size a request cannot use them, so they make room first.

// Chains what release_available gives back; false if that is less than wanted (what was chained
// goes all the same).
static bool chain_available_locked(struct cca__pool *pool, size_t wanted, struct chain *chain) {
    struct cca *const cca = pool->stream->device->owner;
    const size_t max_split_size = cca->config.sizes.max_split_size;
    uint32_t number = cca__free_index_find(&pool->index, cca->blocks, wanted);
    while (number != 0 && !cca__block_is_whole_segment(cca__block_at(cca, number)))
        number = cca__free_index_next(&pool->index, cca->blocks, number);
    if (number != 0) {
        chain_append_locked(pool, chain, number);
        return true;
    }
    size_t found = 0;
    number = cca__free_index_previous(&pool->index, cca->blocks, 0);
    while (number != 0 && found < wanted && cca__block_at(cca, number)->size >= max_split_size) {
        const uint32_t smaller = cca__free_index_previous(&pool->index, cca->blocks, number);
        if (cca__block_is_whole_segment(cca__block_at(cca, number))) {
            found += cca__block_at(cca, number)->size;
            chain_append_locked(pool, chain, number);
        }
        number = smaller;
    }
    return found >= wanted;
}

// x_torch_faults: the same choice, but nobody looks whether a block is whole. Takes one block of at
// least LEAST bytes, the smallest or the largest one; *size is 0 if there is none.
static enum base_status release_as_torch(struct cca__pool *pool, size_t least, bool smallest,
                                         size_t *size) {
    struct cca *const cca = pool->device->owner;
    struct chain chain = {0};
    *size = 0;
    cca__lock_take(&pool->stream->lock);
    uint32_t number = smallest ? cca__free_index_find(&pool->index, cca->blocks, least)
                               : cca__free_index_previous(&pool->index, cca->blocks, 0);
    while (number != 0 && cca__block_is_expandable(cca__block_at(cca, number)))
        number = smallest ? cca__free_index_next(&pool->index, cca->blocks, number)
                          : cca__free_index_previous(&pool->index, cca->blocks, number);
    enum base_status status = BASE_OK;
    if (number != 0 && cca__block_at(cca, number)->size >= least) {
        *size = cca__block_at(cca, number)->size;
        if (cca__block_is_alone(cca__block_at(cca, number)))
            chain_append_locked(pool, &chain, number);
        else
            status = cca__torch_release_split_locked(pool, number);
    }
    cca__lock_release(&pool->stream->lock);
    return chain.first == 0 ? status : release_chain(pool, chain.first, NULL);
}

static enum base_status release_available_as_torch(struct cca__pool *pool, size_t wanted,
                                                   bool *enough) {
    const size_t max_split_size = pool->device->owner->config.sizes.max_split_size;
    size_t size, found = 0;
    enum base_status status = release_as_torch(pool, wanted, true, &size);
    *enough = size > 0;
    if (status != BASE_OK || *enough) return status;
    do {
        status = release_as_torch(pool, max_split_size, false, &size);
        found += size;
    } while (status == BASE_OK && size > 0 && found < wanted);
    *enough = found >= wanted;
    return status;
}

enum base_status cca__release_available_locked(struct cca__pool *pool, size_t rounded,
                                               bool *enough) {
    const size_t max_split_size = pool->stream->device->owner->config.sizes.max_split_size;
    struct chain chain = {0};
    *enough = false;
    if (max_split_size == CCA_UNLIMITED) return BASE_OK;
    const size_t wanted = rounded > max_split_size ? rounded : max_split_size;
    if (pool->device->owner->config.own.torch_faults)
        return release_available_as_torch(pool, wanted, enough);
    cca__lock_take(&pool->stream->lock);
    *enough = chain_available_locked(pool, wanted, &chain);
    cca__lock_release(&pool->stream->lock);
    return release_chain(pool, chain.first, NULL);
}

//------------------------------------------------------------------------------------------------
// Garbage collection: whole segments of the large pool that were not asked for lately, oldest
// half first.

static uint32_t age_of(const struct cca__device *device, const struct cca__block *block) {
    return atomic_load_explicit(&device->large_searches, memory_order_relaxed) - block->gc_base;
}

static void sum_ages(const struct cca__device *device, double *age, size_t *count) {
    struct cca *const cca = device->owner;
    for (size_t index = 0; index < device->stream_count; ++index) {
        if (device->by_handle[index]->private_pool != NULL) continue;
        struct cca__pool *const pool = &device->by_handle[index]->pools[CCA__POOL_LARGE];
        cca__lock_take(&pool->stream->lock);
        for (uint32_t number = 0;
             (number = cca__free_index_next(&pool->index, cca->blocks, number)) != 0;) {
            const struct cca__block *const block = cca__block_at(cca, number);
            if (!cca__block_is_whole_segment(block)) continue;
            *age += age_of(device, block);
            ++*count;
        }
        cca__lock_release(&pool->stream->lock);
    }
}

// Releases all candidates of one stream that are at least as old as THRESHOLD.
static enum base_status release_older(struct cca__pool *pool, double threshold, size_t *released,
                                      double *age, size_t *count) {
    struct cca__device *const device = pool->stream->device;
    struct cca *const cca = device->owner;
    struct chain chain = {0};
    cca__lock_take(&pool->stream->lock);
    for (uint32_t number = cca__free_index_next(&pool->index, cca->blocks, 0), next; number != 0;
         number = next) {
        next = cca__free_index_next(&pool->index, cca->blocks, number);
        const struct cca__block *const block = cca__block_at(cca, number);
        if (!cca__block_is_whole_segment(block) || age_of(device, block) < threshold) continue;
        *age -= age_of(device, block);
        --*count;
        chain_append_locked(pool, &chain, number);
    }
    cca__lock_release(&pool->stream->lock);
    return release_chain(pool, chain.first, released);
}

enum base_status cca__collect_garbage_locked(struct cca__device *device) {
    const double threshold = device->owner->config.garbage_collection_threshold;
    if (!device->limited || threshold <= 0.0) return BASE_OK;
    const size_t kept = (size_t)(threshold * (double)device->allowed_bytes);
    if (device->reserved_bytes <= kept) return BASE_OK;
    const size_t target = device->reserved_bytes - kept;
    double age = 0.0;
    size_t count = 0, released = 0, before = SIZE_MAX;
    sum_ages(device, &age, &count);
    // As long as the last pass freed something; a pass does not stop when the target is met.
    while (released < target && released != before && count > 0) {
        const double oldest_half = age / (double)count;
        before = released;
        for (size_t index = 0; index < device->stream_count; ++index) {
            if (device->by_handle[index]->private_pool != NULL) continue;
            const enum base_status status =
                release_older(&device->by_handle[index]->pools[CCA__POOL_LARGE], oldest_half,
                              &released, &age, &count);
            if (status != BASE_OK) return status;
        }
    }
    return BASE_OK;
}
