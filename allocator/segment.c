// See segment.h. The ladder, in PyTorch's order: garbage collection, a new segment, release of a
// few oversize blocks and a new segment, release of everything and a last try.
//
// Only blocks that are their whole segment are ever given back, also after max_split_size was
// lowered while blocks were split (where PyTorch 2.15 frees memory in use).
#include "allocator/segment.h"

#include "allocator/device.h"
#include "allocator/expandable_blocks.h"
#include "allocator/out_of_memory.h"
#include "allocator/pool.h"
#include "allocator/stream_use.h"

//------------------------------------------------------------------------------------------------
// Returning memory. Blocks to be released are taken out of the free index under their stream's
// lock and chained through link[0]; nobody else can reach them then, since they are free and have
// no neighbours.

static void count_segment(struct cca__device *device, const struct cca__pool *pool, size_t size,
                          int amount) {
    const int kind = cca__pool_kind(pool);
    const int64_t bytes = amount * (int64_t)size;
    cca__stat_change(&device->segment[ALLOCATOR_STAT_ALL], amount);
    cca__stat_change(&device->segment[kind], amount);
    cca__stat_change(&device->reserved[ALLOCATOR_STAT_ALL], bytes);
    cca__stat_change(&device->reserved[kind], bytes);
    if (size >= device->owner->config.sizes.max_split_size)
        cca__stat_change(&device->oversize_segments, amount);
    if (amount > 0)
        ++device->num_device_alloc;
    else
        ++device->num_device_free;
}

void cca__observe_segment(const struct cca *cca, enum allocator_action action,
                          const struct cca__pool *pool, uint64_t address, size_t size) {
    cca__observe(cca, &(struct allocator_event){
                          .action = action,
                          .device = pool->stream->device->ordinal,
                          .address = (void *)(uintptr_t)address,
                          .size = size,
                          .stream = pool->stream->handle,
                      });
}

void cca__segment_link_locked(struct cca *cca, struct cca__stream *stream, uint32_t number) {
    struct cca__segment *const segment = &cca->segments[number];
    segment->previous = 0;
    segment->next = stream->first_segment;
    if (stream->first_segment != 0) cca->segments[stream->first_segment].previous = number;
    stream->first_segment = number;
}

void cca__segment_unlink_locked(struct cca *cca, struct cca__stream *stream, uint32_t number) {
    const struct cca__segment *const segment = &cca->segments[number];
    if (segment->next != 0) cca->segments[segment->next].previous = segment->previous;
    if (segment->previous != 0)
        cca->segments[segment->previous].next = segment->next;
    else
        stream->first_segment = segment->next;
}

// Frees one chained block's segment. The current device is POOL's.
static enum base_status release_segment(struct cca__pool *pool, uint32_t block_number) {
    struct cca__stream *const stream = pool->stream;
    struct cca__device *const device = stream->device;
    struct cca *const cca = device->owner;
    const struct cca__block *const block = cca__block_at(cca, block_number);
    const uint64_t address = block->address;
    const size_t size = block->size;
    const cudaError_t error = cudaFree((void *)(uintptr_t)address);
    if (error != cudaSuccess)
        return cca__cuda_failed(error, "cudaFree of %zu bytes at %#llx on device %d", size,
                                (unsigned long long)address, device->ordinal);
    device->reserved_bytes -= size;
    count_segment(device, pool, size, -1);
    cca__observe_segment(cca, ALLOCATOR_SEGMENT_FREE, pool, address, size);
    cca__lock_take(&stream->lock);
    const uint32_t number = block->segment;
    cca__page_table_remove_segment(&cca->page_table, address, cca->segments[number].directory);
    cca__segment_unlink_locked(cca, stream, number);
    cca__block_give_back(&stream->unused_blocks, &cca->block_chunks, block_number);
    cca__lock_release(&stream->lock);
    cca__arena_give_back(&cca->segment_records, number);
    return BASE_OK;
}

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
        const uint32_t next = cca__block_at(cca, first)->link[0];
        const size_t size = cca__block_at(cca, first)->size;
        status = release_segment(pool, first);
        if (status != BASE_OK) break;
        if (released_bytes != NULL) *released_bytes += size;
        first = next;
    }
    if (is_current) cca__device_scope_end(&scope);
    cca__lock_take(&pool->stream->lock);
    while (first != 0) {
        const uint32_t next = cca__block_at(cca, first)->link[0];
        cca__free_index_insert(&pool->index, cca->blocks, first);
        first = next;
    }
    if (pool->stream->first_segment == 0)
        cca__block_cache_trim(&pool->stream->unused_blocks, &cca->block_chunks);
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

// Whether a free block can be given back with its segment as cudaMalloc gave it.
static bool is_releasable(const struct cca__block *block) {
    return cca__block_is_alone(block) && !cca__block_is_expandable(block);
}

static enum base_status release_pool(struct cca__pool *pool) {
    struct cca *const cca = pool->stream->device->owner;
    struct chain chain = {0};
    cca__lock_take(&pool->stream->lock);
    for (uint32_t number = cca__free_index_next(&pool->index, cca->blocks, 0), next; number != 0;
         number = next) {
        next = cca__free_index_next(&pool->index, cca->blocks, number);
        if (is_releasable(cca__block_at(cca, number))) chain_append_locked(pool, &chain, number);
    }
    cca__lock_release(&pool->stream->lock);
    return release_chain(pool, chain.first, NULL);
}

static void trim_metadata(struct cca *cca) {
    cca__arena_trim(&cca->block_chunks);
    cca__arena_trim(&cca->segment_records);
    cca__arena_trim(&cca->use_records);
    cca__arena_trim(&cca->page_table.directories);
    cca__arena_trim(&cca->page_table.leaves);
}

enum base_status cca__release_all_locked(struct cca__device *device) {
    enum base_status status = cca__synchronize_pending(device);
    for (int kind = CCA__POOL_LARGE; kind >= CCA__POOL_SMALL; --kind) {
        for (size_t index = 0; index < device->stream_count && status == BASE_OK; ++index)
            status = release_pool(&device->by_handle[index]->pools[kind]);
        for (size_t index = 0; index < device->stream_count && status == BASE_OK; ++index)
            status = cca__expandable_release_pool(&device->by_handle[index]->pools[kind]);
    }
    trim_metadata(device->owner);
    return status;
}

//------------------------------------------------------------------------------------------------
// Oversize blocks: under max_split_size a request cannot use them, so they make room first.

// Chains what release_available gives back; false if that is less than wanted (what was chained
// goes all the same).
static bool chain_available_locked(struct cca__pool *pool, size_t wanted, struct chain *chain) {
    struct cca *const cca = pool->stream->device->owner;
    const size_t max_split_size = cca->config.sizes.max_split_size;
    uint32_t number = cca__free_index_find(&pool->index, cca->blocks, wanted);
    while (number != 0 && !is_releasable(cca__block_at(cca, number)))
        number = cca__free_index_next(&pool->index, cca->blocks, number);
    if (number != 0) {
        chain_append_locked(pool, chain, number);
        return true;
    }
    size_t found = 0;
    number = cca__free_index_previous(&pool->index, cca->blocks, 0);
    while (number != 0 && found < wanted && cca__block_at(cca, number)->size >= max_split_size) {
        const uint32_t smaller = cca__free_index_previous(&pool->index, cca->blocks, number);
        if (is_releasable(cca__block_at(cca, number))) {
            found += cca__block_at(cca, number)->size;
            chain_append_locked(pool, chain, number);
        }
        number = smaller;
    }
    return found >= wanted;
}

static enum base_status release_available(struct cca__pool *pool, size_t rounded, bool *enough) {
    const size_t max_split_size = pool->stream->device->owner->config.sizes.max_split_size;
    struct chain chain = {0};
    *enough = false;
    if (max_split_size == CCA_UNLIMITED) return BASE_OK;
    cca__lock_take(&pool->stream->lock);
    *enough =
        chain_available_locked(pool, rounded > max_split_size ? rounded : max_split_size, &chain);
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
        struct cca__pool *const pool = &device->by_handle[index]->pools[CCA__POOL_LARGE];
        cca__lock_take(&pool->stream->lock);
        for (uint32_t number = 0;
             (number = cca__free_index_next(&pool->index, cca->blocks, number)) != 0;) {
            const struct cca__block *const block = cca__block_at(cca, number);
            if (!is_releasable(block)) continue;
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
        if (!is_releasable(block) || age_of(device, block) < threshold) continue;
        *age -= age_of(device, block);
        --*count;
        chain_append_locked(pool, &chain, number);
    }
    cca__lock_release(&pool->stream->lock);
    return release_chain(pool, chain.first, released);
}

static enum base_status collect_garbage(struct cca__device *device) {
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
            const enum base_status status =
                release_older(&device->by_handle[index]->pools[CCA__POOL_LARGE], oldest_half,
                              &released, &age, &count);
            if (status != BASE_OK) return status;
        }
    }
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Taking memory.

static enum base_status call_cuda_malloc(struct cca__device *device, size_t size, void **memory) {
    struct cca__device_scope scope;
    // An error that some earlier call left pending must not be taken for one of cudaMalloc.
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess)
        return cca__cuda_failed(error, "a call before cudaMalloc on device %d", device->ordinal);
    enum base_status status = cca__device_scope_begin(&scope, device->ordinal);
    if (status != BASE_OK) return status;
    error = cudaMalloc(memory, size);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        status = BASE_OUT_OF_MEMORY;
    } else if (error != cudaSuccess) {
        status =
            cca__cuda_failed(error, "cudaMalloc of %zu bytes on device %d", size, device->ordinal);
    }
    cca__device_scope_end(&scope);
    return status;
}

// What a request got: memory for a new segment, or a claimed block of an expandable one.
struct gain {
    void *memory;   // NULL: the block
    uint32_t block;
    // Where no expandable segment can be as large as the request: the reserve that was configured
    size_t exceeded_reserve;
};

// Whether the device may be asked for a segment of SIZE bytes at all. BASE_OUT_OF_MEMORY, without a
// sentence, if the fraction refuses.
static enum base_status admit(struct cca__device *device, size_t size, bool is_retry) {
    if (is_retry) ++device->num_alloc_retries;
    if (device->limited && (device->reserved_bytes > device->allowed_bytes ||
                            size > device->allowed_bytes - device->reserved_bytes))
        return BASE_OUT_OF_MEMORY;
    return BASE_OK;
}

static enum base_status take_new_segment(struct cca__device *device, size_t size, void **memory) {
    const bool unlocked = device->owner->config.release_lock_on_cudamalloc;
    device->reserved_bytes += size;
    if (unlocked) cca__lock_release(&device->growth_lock);
    const enum base_status status = call_cuda_malloc(device, size, memory);
    if (unlocked) cca__lock_take(&device->growth_lock);
    if (status != BASE_OK) device->reserved_bytes -= size;
    return status;
}

// BASE_OUT_OF_MEMORY, without a sentence, if the device or the fraction refuses. SIZE, the segment
// that cudaMalloc would give, is what the fraction is asked about, also where less is mapped.
static enum base_status take_memory(struct cca__pool *pool, size_t rounded, size_t size,
                                    bool is_retry, struct gain *gain) {
    struct cca__device *const device = pool->device;
    *gain = (struct gain){0};
    enum base_status status = admit(device, size, is_retry);
    if (status != BASE_OK) return status;
    if (cca__pool_expands(device->owner, pool)) {
        status = cca__expandable_grow(pool, rounded, &gain->block, &gain->exceeded_reserve);
        // The driver may turn out to have no virtual memory.
        if (status != BASE_UNSUPPORTED) return status;
    }
    return take_new_segment(device, size, &gain->memory);
}

static enum base_status take_memory_by_ladder(struct cca__pool *pool, size_t rounded, size_t size,
                                              struct gain *gain) {
    struct cca__device *const device = pool->device;
    enum base_status status = collect_garbage(device);
    if (status != BASE_OK) return status;
    status = take_memory(pool, rounded, size, false, gain);
    if (status != BASE_OUT_OF_MEMORY) return status;
    bool enough;
    status = release_available(pool, rounded, &enough);
    if (status != BASE_OK) return status;
    if (enough) {
        status = take_memory(pool, rounded, size, false, gain);
        if (status != BASE_OUT_OF_MEMORY) return status;
    }
    status = cca__release_all_locked(device);
    return status != BASE_OK ? status : take_memory(pool, rounded, size, true, gain);
}

// What describes a segment besides its block; taken before the stream is locked.
static enum base_status add_record(struct cca *cca, const struct cca__pool *pool, uint64_t address,
                                   size_t size, uint32_t *number) {
    enum base_status status = cca__arena_take(&cca->segment_records, number);
    if (status != BASE_OK) return status;
    struct cca__segment *const segment = &cca->segments[*number];
    uint32_t directory;
    status =
        cca__page_table_add_segment(&cca->page_table, address, size, pool->is_small, &directory);
    if (status != BASE_OK) {
        cca__arena_give_back(&cca->segment_records, *number);
        return status;
    }
    *segment = (struct cca__segment){
        .address = address,
        .size = size,
        .registration = atomic_fetch_add_explicit(&cca->registration, 1, memory_order_relaxed) + 1,
        .directory = directory,
        .pool = pool->number,
    };
    return BASE_OK;
}

// The one block of a new segment, free and not in the index yet.
static enum base_status add_block_locked(struct cca *cca, struct cca__pool *pool,
                                         uint32_t segment_number, uint32_t *number) {
    struct cca__stream *const stream = pool->stream;
    const enum base_status status =
        cca__block_take(&stream->unused_blocks, &cca->block_chunks, number);
    if (status != BASE_OK) return status;
    struct cca__segment *const segment = &cca->segments[segment_number];
    struct cca__block *const block = cca__block_at(cca, *number);
    block->address = segment->address;
    block->size = segment->size;
    block->requested = 0;
    block->registration = cca->config.tie_by_address ? 0 : (uint32_t)segment->registration;
    block->gc_base = atomic_load_explicit(&stream->device->large_searches, memory_order_relaxed);
    block->previous = block->next = 0;
    block->segment = segment_number;
    atomic_store_explicit(&block->pool, pool->number, memory_order_relaxed);
    block->state = CCA__BLOCK_FREE;
    block->flags = 0;
    segment->first_block = *number;
    cca__segment_link_locked(cca, stream, segment_number);
    return BASE_OK;
}

// Gives memory back that never became a segment.
static void give_memory_back(struct cca__device *device, void *memory, size_t size) {
    struct cca__device_scope scope;
    if (cca__device_scope_begin(&scope, device->ordinal) == BASE_OK) {
        // The caller reports the error that led here.
        (void)cudaFree(memory);
        cca__device_scope_end(&scope);
    }
    device->reserved_bytes -= size;
}

// Makes a segment of MEMORY and hands its front out.
static enum base_status add_segment(struct cca__pool *pool, void *memory, size_t size,
                                    size_t rounded, size_t requested, void **pointer,
                                    bool *over_limit) {
    struct cca__stream *const stream = pool->stream;
    struct cca *const cca = stream->device->owner;
    const uint64_t address = (uint64_t)(uintptr_t)memory;
    uint32_t segment, block;
    enum base_status status = add_record(cca, pool, address, size, &segment);
    if (status != BASE_OK) {
        give_memory_back(stream->device, memory, size);
        return status;
    }
    cca__lock_take(&stream->lock);
    status = add_block_locked(cca, pool, segment, &block);
    if (status != BASE_OK) {
        cca__lock_release(&stream->lock);
        cca__page_table_remove_segment(&cca->page_table, address, cca->segments[segment].directory);
        cca__arena_give_back(&cca->segment_records, segment);
        give_memory_back(stream->device, memory, size);
        return status;
    }
    count_segment(stream->device, pool, size, 1);
    cca__observe_segment(cca, ALLOCATOR_SEGMENT_ALLOC, pool, address, size);
    status = cca__pool_hand_out_new_locked(cca, pool, block, rounded, requested, over_limit);
    if (status == BASE_OK)
        *pointer = memory;
    else
        cca__free_index_insert(&pool->index, cca->blocks, block);
    cca__lock_release(&stream->lock);
    return status;
}

// Hands the front of a claimed block out.
static enum base_status hand_out_claimed(struct cca__pool *pool, uint32_t number, size_t rounded,
                                         size_t requested, void **pointer, bool *over_limit) {
    struct cca *const cca = pool->device->owner;
    cca__lock_take(&pool->stream->lock);
    const uint64_t address = cca__block_at(cca, number)->address;
    const enum base_status status = cca__expandable_hand_out_locked(
        cca, pool, number, rounded, requested, false, over_limit);
    if (status == BASE_OK)
        *pointer = (void *)(uintptr_t)address;
    else
        cca__expandable_unclaim_locked(cca, pool, number);
    cca__lock_release(&pool->stream->lock);
    return status;
}

// Another thread of this stream may have made room between the miss and the growth lock.
static enum base_status search_again(struct cca__pool *pool, size_t rounded, size_t requested,
                                     void **pointer, bool *over_limit) {
    struct cca *const cca = pool->device->owner;
    cca__lock_take(&pool->stream->lock);
    const enum base_status status =
        cca__pool_serve_locked(cca, pool, rounded, requested, pointer, over_limit);
    cca__lock_release(&pool->stream->lock);
    return status;
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
    cca__lock_take(&device->growth_lock);
    const size_t size = cca__segment_size(&cca->config.sizes, rounded);
    enum base_status status = search_again(pool, rounded, requested, &handed_out, &over_limit);
    if (status == BASE_OK && handed_out == NULL) {
        status = take_memory_by_ladder(pool, rounded, size, &gain);
        if (status == BASE_OK && gain.memory != NULL)
            status =
                add_segment(pool, gain.memory, size, rounded, requested, &handed_out, &over_limit);
        else if (status == BASE_OK)
            status = hand_out_claimed(pool, gain.block, rounded, requested, &handed_out,
                                      &over_limit);
        else if (status == BASE_OUT_OF_MEMORY)
            cca__out_of_memory_locked(stream, rounded, size, gain.exceeded_reserve,
                                      &out_of_memory);
    }
    cca__lock_release(&device->growth_lock);
    if (over_limit) cca__stats_meet(stream);
    if (status == BASE_OUT_OF_MEMORY) cca__out_of_memory_tell(cca, &out_of_memory);
    if (status == BASE_OK) *pointer = handed_out;
    return status;
}
