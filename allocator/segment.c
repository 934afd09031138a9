// See segment.h.
#include "allocator/segment.h"

#include "allocator/device.h"
#include "allocator/pool.h"
#include "allocator/stream_use.h"
#include "allocator/torch_faults.h"

// So many segments, of BYTES together; negative: given back.
static void count_segments(struct cca__device *device, const struct cca__pool *pool, int64_t count,
                           int64_t oversize_count, int64_t bytes) {
    const int kind = cca__pool_kind(pool);
    cca__stat_change(&device->segment[ALLOCATOR_STAT_ALL], count);
    cca__stat_change(&device->segment[kind], count);
    cca__stat_change(&device->reserved[ALLOCATOR_STAT_ALL], bytes);
    cca__stat_change(&device->reserved[kind], bytes);
    if (oversize_count != 0) cca__stat_change(&device->oversize_segments, oversize_count);
    if (count > 0)
        device->num_device_alloc += count;
    else
        device->num_device_free -= count;
    if (pool->stream->private_pool != NULL)
        cca__private_pool_count(pool->stream->private_pool, kind, bytes);
}

void cca__segment_count(struct cca__device *device, const struct cca__pool *pool, size_t size,
                        int amount) {
    const bool is_oversize = size >= device->owner->config.sizes.max_split_size;
    count_segments(device, pool, amount, is_oversize ? amount : 0, amount * (int64_t)size);
}

uint32_t cca__observe_segment(struct cca *cca, enum allocator_action action,
                              const struct cca__pool *pool, uint64_t address, size_t size) {
    cca__observe(cca, &(struct allocator_event){
                          .action = action,
                          .device = pool->stream->device->ordinal,
                          .address = (void *)(uintptr_t)address,
                          .size = size,
                          .stream = pool->stream->handle,
                          .pool = cca__pool_id(pool),
                      });
    if (cca->history.enabled == CCA_HISTORY_OFF || action == ALLOCATOR_SEGMENT_RESERVE ||
        action == ALLOCATOR_SEGMENT_UNRESERVE) // not among PyTorch's entries
        return 0;
    return cca__history_device_locked(pool->device, action, pool, address, size);
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

void cca__segment_trim_stock_locked(struct cca *cca, struct cca__stream *stream) {
    if (stream->first_segment != 0) return;
    cca__block_cache_trim(&stream->unused_blocks, &cca->block_chunks);
    cca__uses_trim_locked(cca, stream);
}

//------------------------------------------------------------------------------------------------
// Taking memory.

// What a private pool's allocator left as the thread's last error is its own affair.
static cudaError_t call_raw(const struct cca__pool *pool, size_t size, void **memory) {
    const struct cca_raw_allocator *const raw = &pool->stream->private_pool->raw;
    *memory = raw->allocate(raw->context, size, pool->device->ordinal, pool->stream->handle);
    (void)cudaGetLastError();
    return *memory != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

static enum base_status call_cuda_malloc(const struct cca__pool *pool, size_t size, void **memory) {
    struct cca__device *const device = pool->device;
    struct cca__device_scope scope;
    // An error that some earlier call left pending must not be taken for one of cudaMalloc.
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess)
        return cca__cuda_failed(error, "a call before cudaMalloc on device %d", device->ordinal);
    enum base_status status = cca__device_scope_begin(&scope, device->ordinal);
    if (status != BASE_OK) return status;
    error = pool->has_raw ? call_raw(pool, size, memory) : cudaMalloc(memory, size);
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

enum base_status cca__segment_take(const struct cca__pool *pool, size_t size, void **memory) {
    struct cca__device *const device = pool->device;
    struct cca__private_pool *const owner = pool->stream->private_pool;
    const bool unlocked = device->owner->config.release_lock_on_cudamalloc;
    device->reserved_bytes += size;
    if (owner != NULL) ++owner->takers;
    if (unlocked) cca__lock_release(&device->growth_lock);
    const enum base_status status = call_cuda_malloc(pool, size, memory);
    if (unlocked) cca__lock_take(&device->growth_lock);
    if (owner != NULL) --owner->takers;
    if (status != BASE_OK) device->reserved_bytes -= size;
    return status;
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
        .directory = directory,
    };
    return BASE_OK;
}

void cca__segment_enter_locked(struct cca *cca, struct cca__pool *pool, uint32_t segment_number,
                               uint32_t number) {
    struct cca__stream *const stream = pool->stream;
    struct cca__segment *const segment = &cca->segments[segment_number];
    struct cca__block *const block = cca__block_at(cca, number);
    segment->registration =
        atomic_fetch_add_explicit(&cca->registration, 1, memory_order_relaxed) + 1;
    segment->pool = pool->number;
    segment->first_block = number;
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
    cca__segment_link_locked(cca, stream, segment_number);
}

cudaError_t cca__segment_give_back(const struct cca__pool *pool, void *memory, size_t size) {
    if (!pool->has_raw) return cudaFree(memory);
    const struct cca_raw_allocator *const raw = &pool->stream->private_pool->raw;
    raw->free(raw->context, memory, size, pool->device->ordinal, pool->stream->handle);
    return cudaSuccess;
}

// Gives memory back that never became a segment.
static void give_memory_back(const struct cca__pool *pool, void *memory, size_t size) {
    struct cca__device *const device = pool->device;
    struct cca__device_scope scope;
    if (cca__device_scope_begin(&scope, device->ordinal) == BASE_OK) {
        // The caller reports the error that led here.
        (void)cca__segment_give_back(pool, memory, size);
        cca__device_scope_end(&scope);
    }
    device->reserved_bytes -= size;
}

enum base_status cca__segment_add(struct cca__pool *pool, void *memory, size_t size, size_t rounded,
                                  size_t requested, void **pointer, bool *over_limit) {
    struct cca__stream *const stream = pool->stream;
    struct cca *const cca = stream->device->owner;
    const uint64_t address = (uint64_t)(uintptr_t)memory;
    uint32_t segment, block;
    cca__gone_make_way_locked(stream->device, address, size);
    enum base_status status = add_record(cca, pool, address, size, &segment);
    if (status != BASE_OK) {
        give_memory_back(pool, memory, size);
        return status;
    }
    cca__lock_take(&stream->lock);
    status = cca__block_take(&stream->unused_blocks, &cca->block_chunks, &block);
    if (status != BASE_OK) {
        cca__lock_release(&stream->lock);
        cca__page_table_remove_segment(&cca->page_table, address, cca->segments[segment].directory);
        cca__arena_give_back(&cca->segment_records, segment);
        give_memory_back(pool, memory, size);
        return status;
    }
    cca__segment_enter_locked(cca, pool, segment, block);
    cca__segment_count(stream->device, pool, size, 1);
    cca->segments[segment].stack =
        cca__observe_segment(cca, ALLOCATOR_SEGMENT_ALLOC, pool, address, size);
    status = cca__pool_hand_out_new_locked(cca, pool, block, rounded, requested, over_limit);
    if (status == BASE_OK)
        *pointer = memory;
    else
        cca__free_index_insert(&pool->index, cca->blocks, block);
    cca__lock_release(&stream->lock);
    return status;
}

//------------------------------------------------------------------------------------------------
// Returning it.

// Under one lock of the stream go so many segments, whose memory nobody has any more; but one by
// one if somebody watches, who sees each event when it happens.
#define RELEASED_TOGETHER_MAX 64

// What went back so far.
struct returned {
    int count, oversize_count;
    size_t bytes;
};

static enum base_status give_back(struct cca__pool *pool, const struct cca__block *block,
                                  struct returned *returned) {
    const size_t size = block->size;
    const cudaError_t error =
        cca__segment_give_back(pool, (void *)(uintptr_t)block->address, size);
    if (error != cudaSuccess)
        return cca__cuda_failed(error, "cudaFree of %zu bytes at %#llx on device %d", size,
                                (unsigned long long)block->address, pool->device->ordinal);
    ++returned->count;
    returned->oversize_count += size >= pool->device->owner->config.sizes.max_split_size;
    returned->bytes += size;
    return BASE_OK;
}

static void count_returned(struct cca__pool *pool, const struct returned *returned) {
    if (returned->count == 0) return;
    pool->device->reserved_bytes -= returned->bytes;
    count_segments(pool->device, pool, -returned->count, -returned->oversize_count,
                   -(int64_t)returned->bytes);
}

// Takes the segments of the blocks from FIRST to before END out of the books.
static void forget(struct cca__pool *pool, uint32_t first, uint32_t end) {
    struct cca__stream *const stream = pool->stream;
    struct cca *const cca = pool->device->owner;
    uint32_t segments[RELEASED_TOGETHER_MAX], count = 0;
    if (first == end) return;
    cca__lock_take(&stream->lock);
    for (uint32_t number = first, next; number != end; number = next) {
        const struct cca__block *const block = cca__block_at(cca, number);
        const uint32_t segment = block->segment;
        next = block->link[0];
        if (cca->watched)
            (void)cca__observe_segment(cca, ALLOCATOR_SEGMENT_FREE, pool, block->address,
                                       block->size);
        cca__page_table_remove_segment(&cca->page_table, block->address,
                                       cca->segments[segment].directory);
        cca__segment_unlink_locked(cca, stream, segment);
        cca__block_give_back(&stream->unused_blocks, &cca->block_chunks, number);
        segments[count++] = segment;
    }
    cca__lock_release(&stream->lock);
    cca__arena_give_back_all(&cca->segment_records, segments, count);
}

// PyTorch tells of a segment before it asks the driver. Beside captures, which refuse the call, ours
// does too.
static void tell_refusal(const struct cca__pool *pool, const struct cca__block *block) {
    struct cca *const cca = pool->device->owner;
    if (!cca->watched || !cca__is_marked(pool->device)) return;
    cca__lock_take(&pool->stream->lock);
    (void)cca__observe_segment(cca, ALLOCATOR_SEGMENT_FREE, pool, block->address, block->size);
    cca__lock_release(&pool->stream->lock);
}

enum base_status cca__segments_release(struct cca__pool *pool, uint32_t first, uint32_t *next,
                                       size_t *released_bytes) {
    const struct cca *const cca = pool->device->owner;
    const uint32_t most = cca->watched ? 1 : RELEASED_TOGETHER_MAX;
    enum base_status status = BASE_OK;
    *next = first;
    struct returned returned = {0};
    for (uint32_t count = 0; count < most && *next != 0; ++count) {
        const struct cca__block *const block = cca__block_at(cca, *next);
        // For the next call, and for forget.
        __builtin_prefetch(cca__block_at(cca, block->link[0]), 1);
        __builtin_prefetch(&cca->segments[block->segment], 1);
        status = give_back(pool, block, &returned);
        if (status != BASE_OK) {
            tell_refusal(pool, block);
            break;
        }
        *next = block->link[0];
    }
    if (released_bytes != NULL) *released_bytes += returned.bytes;
    count_returned(pool, &returned);
    forget(pool, first, *next);
    return status;
}
