// See reclaim_idle.h.
#include "allocator/reclaim_idle.h"

#include "allocator/device.h"
#include "allocator/pool.h"
#include "allocator/segment.h"
#include "allocator/stream_use.h"

// The best idle segment of one pool: its block; 0 if there is none. The pool's stream locked.
static uint32_t find_locked(struct cca__pool *pool, size_t rounded, size_t size) {
    struct cca *const cca = pool->device->owner;
    const struct cca__size_rules *const sizes = &cca->config.sizes;
    uint32_t number = cca__free_index_find(&pool->index, cca->blocks, rounded);
    for (int looks = 0; number != 0 && looks < CCA__IDLE_LOOKS_MAX; ++looks) {
        const struct cca__block *const block = cca__block_at(cca, number);
        if (block->size >= size && block->size - size >= sizes->max_non_split_rounding) break;
        if (cca__block_is_whole_segment(block) &&
            !cca__oversize_refused(sizes, block->size, rounded))
            return number;
        number = cca__free_index_next(&pool->index, cca->blocks, number);
    }
    return 0;
}

// The pool of another stream with the smallest such segment; NULL.
static struct cca__pool *find_pool(const struct cca__pool *pool, size_t rounded, size_t size) {
    const struct cca__device *const device = pool->device;
    struct cca *const cca = device->owner;
    struct cca__pool *best = NULL;
    size_t best_size = SIZE_MAX;
    for (size_t index = 0; index < device->stream_count; ++index) {
        struct cca__stream *const stream = device->by_handle[index];
        if (stream == pool->stream || stream->handle == cudaStreamPerThread ||
            stream->private_pool != pool->stream->private_pool)
            continue;
        struct cca__pool *const other =
            &stream->pools[pool->is_small ? CCA__POOL_SMALL : CCA__POOL_LARGE];
        cca__lock_take(&stream->lock);
        const uint32_t number = find_locked(other, rounded, size);
        if (number != 0 && cca__block_at(cca, number)->size < best_size) {
            best = other;
            best_size = cca__block_at(cca, number)->size;
        }
        cca__lock_release(&stream->lock);
    }
    return best;
}

static bool is_idle_of_captures(cudaStream_t stream) {
    enum cudaStreamCaptureStatus capture;
    return cudaStreamIsCapturing(stream, &capture) == cudaSuccess &&
           capture == cudaStreamCaptureStatusNone;
}

// Has SECOND wait for all that was submitted to FIRST. The current device is theirs.
static bool order_by_event(struct cca__device *device, cudaStream_t first, cudaStream_t second) {
    cudaEvent_t event;
    cca__lock_take(&device->events_lock);
    bool is_ordered = cca__event_take_locked(device, &event) == BASE_OK;
    if (is_ordered) {
        is_ordered = cudaEventRecord(event, first) == cudaSuccess &&
                     cudaStreamWaitEvent(second, event, 0) == cudaSuccess;
        // A wait is for what was recorded when it was asked for: the event may be used again.
        cca__event_keep_locked(device, event);
    }
    cca__lock_release(&device->events_lock);
    return is_ordered;
}

// False where the streams cannot be ordered. The request goes on to the device then, so the error
// ends here; one that outlasts this comes back from there.
static bool order(struct cca__device *device, cudaStream_t first, cudaStream_t second) {
    struct cca__device_scope scope;
    if (cca__device_scope_begin(&scope, device->ordinal) != BASE_OK) return false;
    const bool is_ordered = is_idle_of_captures(first) && is_idle_of_captures(second) &&
                            order_by_event(device, first, second);
    if (!is_ordered) (void)cudaGetLastError();
    cca__device_scope_end(&scope);
    return is_ordered;
}

static uint32_t claim(struct cca__pool *pool, size_t rounded, size_t size) {
    struct cca *const cca = pool->device->owner;
    cca__lock_take(&pool->stream->lock);
    const uint32_t number = find_locked(pool, rounded, size);
    if (number != 0) cca__free_index_remove(&pool->index, cca->blocks, number);
    cca__lock_release(&pool->stream->lock);
    return number;
}

static void unclaim(struct cca__pool *pool, uint32_t number) {
    cca__lock_take(&pool->stream->lock);
    cca__free_index_insert(&pool->index, pool->device->owner->blocks, number);
    cca__lock_release(&pool->stream->lock);
}

// Takes a claimed block's segment off its stream. Returns the segment.
static uint32_t take_off(struct cca__pool *pool, uint32_t number) {
    struct cca *const cca = pool->device->owner;
    struct cca__stream *const stream = pool->stream;
    cca__lock_take(&stream->lock);
    const struct cca__block *const block = cca__block_at(cca, number);
    const uint32_t segment = block->segment;
    (void)cca__observe_segment(cca, ALLOCATOR_SEGMENT_FREE, pool, block->address, block->size);
    cca__segment_unlink_locked(cca, stream, segment);
    cca__block_give_back(&stream->unused_blocks, &cca->block_chunks, number);
    cca__segment_trim_stock_locked(cca, stream);
    cca__lock_release(&stream->lock);
    return segment;
}

// Gives a segment that is on no stream to POOL, as one free block.
static void put_on_locked(struct cca__pool *pool, uint32_t segment, uint32_t number) {
    struct cca *const cca = pool->device->owner;
    cca__segment_enter_locked(cca, pool, segment, number);
    cca->segments[segment].stack =
        cca__observe_segment(cca, ALLOCATOR_SEGMENT_ALLOC, pool, cca->segments[segment].address,
                             cca->segments[segment].size);
    cca__free_index_insert(&pool->index, cca->blocks, number);
}

enum base_status cca__reclaim_idle_locked(struct cca__pool *pool, size_t rounded, size_t size,
                                          bool *moved) {
    struct cca *const cca = pool->device->owner;
    struct cca__stream *const stream = pool->stream;
    *moved = false;
    if (stream->handle == cudaStreamPerThread) return BASE_OK;
    struct cca__pool *const other = find_pool(pool, rounded, size);
    const uint32_t claimed = other != NULL ? claim(other, rounded, size) : 0;
    if (claimed == 0) return BASE_OK;
    uint32_t number = 0;
    cca__lock_take(&stream->lock);
    enum base_status status = cca__block_take(&stream->unused_blocks, &cca->block_chunks, &number);
    cca__lock_release(&stream->lock);
    if (status == BASE_OK) *moved = order(pool->device, other->stream->handle, stream->handle);
    if (!*moved) unclaim(other, claimed);
    const uint32_t segment = *moved ? take_off(other, claimed) : 0;
    cca__lock_take(&stream->lock);
    if (*moved)
        put_on_locked(pool, segment, number);
    else if (status == BASE_OK)
        cca__block_give_back(&stream->unused_blocks, &cca->block_chunks, number);
    cca__lock_release(&stream->lock);
    return status;
}
