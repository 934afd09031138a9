// Puts a private pool back as a checkpoint has it: see checkpoint.h.
//
// First all that can fail: waiting for other streams, comparing the pool with the checkpoint, host
// memory for everything that the rest may need. From then on nothing fails. The growth lock is held
// throughout, so that nothing is mapped or released meanwhile.
#include "allocator/checkpoint_state.h"
#include "allocator/deferral.h"
#include "allocator/device.h"
#include "allocator/event_poll.h"
#include "allocator/pool.h"
#include "allocator/stream_use.h"
#include "allocator/torch_faults.h"

#include <inttypes.h>
#include <stdlib.h>

struct restore {
    struct cca *cca;
    struct cca__device *device;
    const struct cca_checkpoint *checkpoint;
    struct cca__private_pool *pool;
    struct cca__segment_list now;    // what the pool has
    struct cca__segment **segments;  // of it, those of checkpoint->segments
    struct cca_restored restored;    // with room for all
    uint32_t *temporary;             // blocks that are handed out only to be freed again
    struct cca__stream **waited_for; // whose work is done
    size_t waited_count;
};

//------------------------------------------------------------------------------------------------
// Waiting. Unsafe calls are allowed meanwhile: they wait for streams that no capture has.

static bool is_waited_for(const struct restore *restore, const struct cca__stream *stream) {
    for (size_t index = 0; index < restore->waited_count; ++index)
        if (restore->waited_for[index] == stream) return true;
    return false;
}

static enum base_status wait_for_stream(struct cca__stream *stream) {
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaError_t error = cudaStreamIsCapturing(stream->handle, &capture);
    if (error == cudaSuccess && capture != cudaStreamCaptureStatusNone)
        return base_status_set(BASE_INVALID_VALUE,
                               "a pool cannot be restored while a stream that uses memory of it "
                               "(%p) is captured",
                               (void *)stream->handle);
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream->handle);
    return error == cudaSuccess
               ? BASE_OK
               : cca__cuda_failed(error,
                                  "waiting for stream %p of device %d before a pool is restored",
                                  (void *)stream->handle, stream->device->ordinal);
}

// Some stream that uses an allocated block and was not waited for; NULL: none. *is_pending: a free
// waits for events. The locks of all streams held.
static struct cca__stream *find_user(const struct restore *restore, bool *is_pending) {
    const struct cca *const cca = restore->cca;
    *is_pending = false;
    struct cca__stream *found = NULL;
    for (size_t index = 0; index < restore->now.count; ++index)
        for (uint32_t number = restore->now.segments[index]->first_block; number != 0;
             number = cca->blocks[number].next) {
            const struct cca__block *const block = cca__block_at(cca, number);
            if (block->state == CCA__BLOCK_PENDING) *is_pending = true;
            if (block->state != CCA__BLOCK_ALLOCATED) continue;
            for (uint32_t use = block->uses; use != 0; use = cca__use_record_at(cca, use)->next) {
                const struct cca__use_record *const record = cca__use_record_at(cca, use);
                for (uint16_t place = 0; place < record->count && found == NULL; ++place) {
                    struct cca__stream *const user = cca__stream_at(cca, record->pools[place] / 2);
                    if (!is_waited_for(restore, user)) found = user;
                }
            }
        }
    return found;
}

// Waits for one of what the pool's blocks wait for or are used by. *done: there was nothing.
static enum base_status wait_once(struct restore *restore, bool *done) {
    struct cca__device *const device = restore->device;
    const bool waits = !restore->cca->config.own.torch_faults;
    bool is_pending = false;
    cca__lock_take(&device->events_lock); // what is pending has its events
    cca__streams_lock_all(device);
    enum base_status status =
        cca__pools_get(&device->pools, restore->checkpoint->id, &restore->pool);
    if (status == BASE_OK) {
        cca__segment_list_deinit(&restore->now);
        status = cca__segment_list_init(&restore->now, restore->cca, restore->pool);
    }
    struct cca__stream *const user = status == BASE_OK ? find_user(restore, &is_pending) : NULL;
    *done = status == BASE_OK && !is_pending && (user == NULL || !waits);
    if (*done) return BASE_OK; // with all locks
    cca__streams_unlock_all(device);
    cca__lock_release(&device->events_lock);
    if (status == BASE_OK && is_pending) status = cca__deferred_settle(device, restore->pool);
    if (status != BASE_OK) return status;
    if (is_pending && waits) return cca__synchronize_private(device, restore->pool);
    if (is_pending) {
        cca__forget_private(device, restore->pool);
        return BASE_OK;
    }
    restore->waited_for[restore->waited_count++] = user;
    return wait_for_stream(user);
}

// On success the locks of events and of all streams are held.
static enum base_status wait_for_others(struct restore *restore) {
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    struct cca__device_scope scope;
    enum base_status status = cca__device_scope_begin(&scope, restore->device->ordinal);
    if (status != BASE_OK) return status;
    const bool is_relaxed = cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess;
    for (bool done = false; status == BASE_OK && !done;)
        status = wait_once(restore, &done);
    if (is_relaxed) (void)cudaThreadExchangeStreamCaptureMode(&mode);
    cca__device_scope_end(&scope);
    return status;
}

//------------------------------------------------------------------------------------------------
// Comparing. From here on the locks of all streams are held.

static enum base_status refuse_memory(const struct restore *restore, uint64_t address,
                                      uint64_t size) {
    return base_status_set(BASE_INVALID_VALUE,
                           "private pool %" PRIu64 ".%" PRIu64
                           " cannot be restored: it no longer has the %" PRIu64
                           " bytes at %p of the checkpoint "
                           "(PyTorch: c10::Error could not find block)",
                           restore->checkpoint->id.capture, restore->checkpoint->id.user, size,
                           (void *)(uintptr_t)address);
}

static const struct cca__saved_block *saved_blocks(const struct restore *restore,
                                                   const struct cca__saved_segment *saved) {
    return &restore->checkpoint->blocks[saved->first_block];
}

// When everything is free, blocks will be as long as runs of mapped memory. What a segment lacked
// when it was saved it still lacks, but for its end: pages in the middle go only when the pool was
// released, and then nothing is mapped any more.
static enum base_status compare_blocks(const struct restore *restore,
                                       const struct cca__saved_segment *saved,
                                       const struct cca__segment *segment) {
    const struct cca *const cca = restore->cca;
    const struct cca__saved_block *const blocks = saved_blocks(restore, saved);
    uint32_t number = segment->first_block;
    for (size_t index = 0; index < saved->block_count; ++index) {
        const uint64_t end = blocks[index].address + blocks[index].size;
        for (uint64_t reached = blocks[index].address; reached < end;) {
            const struct cca__block *const block = cca__block_at(cca, number);
            if (block->address + block->size <= reached) {
                number = block->next;
            } else if (block->state == CCA__BLOCK_UNMAPPED) {
                return refuse_memory(restore, blocks[index].address, blocks[index].size);
            } else {
                reached = block->address + block->size;
            }
        }
    }
    return BASE_OK;
}

static bool is_same_segment(const struct restore *restore, const struct cca__segment *segment,
                            const struct cca__saved_segment *saved) {
    const struct cca__pool *const pool = cca__pool_at(restore->cca, segment->pool);
    return segment->address == saved->address && segment->size == saved->size &&
           pool->stream->handle == saved->stream && pool->is_small == saved->is_small &&
           (segment->expandable != NULL) == saved->is_expandable;
}

static enum base_status compare_locked(struct restore *restore) {
    enum base_status status = BASE_OK;
    size_t place = 0;
    for (size_t index = 0; index < restore->checkpoint->segment_count && status == BASE_OK;
         ++index) {
        const struct cca__saved_segment *const saved = &restore->checkpoint->segments[index];
        while (place < restore->now.count && restore->now.segments[place]->address < saved->address)
            ++place;
        if (place == restore->now.count ||
            !is_same_segment(restore, restore->now.segments[place], saved))
            return refuse_memory(restore, saved->address, saved->size);
        restore->segments[index] = restore->now.segments[place];
        status = compare_blocks(restore, saved, restore->now.segments[place]);
    }
    return status;
}

//------------------------------------------------------------------------------------------------
// Host memory for all that follows. Each saved block may leave another one behind it.

static size_t count_allocated(const struct restore *restore) {
    size_t count = 0;
    for (size_t index = 0; index < restore->now.count; ++index)
        for (uint32_t number = restore->now.segments[index]->first_block;
             (number = cca__next_allocated(restore->cca, number)) != 0;
             number = restore->cca->blocks[number].next)
            ++count;
    return count;
}

// Stocks a stream with COUNT unused blocks.
static enum base_status stock_blocks(struct cca *cca, struct cca__stream *stream, size_t count) {
    uint32_t first = 0, number;
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < count && status == BASE_OK; ++index) {
        status = cca__block_take(&stream->unused_blocks, &cca->block_chunks, &number);
        if (status != BASE_OK) break;
        cca__block_at(cca, number)->link[0] = first;
        first = number;
    }
    while (first != 0) {
        number = first;
        first = cca__block_at(cca, number)->link[0];
        cca__block_give_back(&stream->unused_blocks, &cca->block_chunks, number);
    }
    return status;
}

static enum base_status reserve_locked(struct restore *restore) {
    struct cca *const cca = restore->cca;
    const struct cca_checkpoint *const checkpoint = restore->checkpoint;
    const size_t allocated = count_allocated(restore);
    size_t strays = 0;
    restore->temporary = malloc((checkpoint->block_count + 1) * sizeof *restore->temporary);
    restore->restored.freed = malloc((allocated + 1) * sizeof(void *));
    restore->restored.allocated = malloc((checkpoint->block_count + 1) * sizeof(void *));
    if (restore->temporary == NULL || restore->restored.freed == NULL ||
        restore->restored.allocated == NULL)
        return base_status_set(BASE_HOST_MEMORY,
                               "out of host memory for restoring %zu blocks over %zu",
                               checkpoint->block_count, allocated);
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < restore->pool->stream_count && status == BASE_OK; ++index) {
        struct cca__stream *const stream = restore->pool->streams[index];
        size_t count = 0;
        for (size_t segment = 0; segment < checkpoint->segment_count; ++segment)
            if (checkpoint->segments[segment].stream == stream->handle)
                count += checkpoint->segments[segment].block_count;
        status = stock_blocks(cca, stream, count);
    }
    for (size_t index = 0; index < checkpoint->segment_count && status == BASE_OK; ++index) {
        const struct cca__saved_segment *const saved = &checkpoint->segments[index];
        for (size_t block = 0; block < saved->block_count && status == BASE_OK; ++block)
            status = cca__pool_reserve_entry_locked(cca, restore->segments[index],
                                                    saved_blocks(restore, saved)[block].address,
                                                    &strays);
    }
    return status != BASE_OK ? status : cca__page_table_reserve_strays(&cca->page_table, strays);
}

//------------------------------------------------------------------------------------------------
// Putting back.

static void free_all_locked(struct restore *restore) {
    struct cca *const cca = restore->cca;
    struct cca_restored *const restored = &restore->restored;
    for (size_t index = 0; index < restore->now.count; ++index) {
        struct cca__pool *const pool = cca__pool_at(cca, restore->now.segments[index]->pool);
        for (uint32_t number = cca__next_allocated(cca, restore->now.segments[index]->first_block),
                      next;
             number != 0; number = next) {
            struct cca__block *const block = cca__block_at(cca, number);
            next = cca__next_allocated(cca, block->next);
            restored->freed[restored->freed_count++] = (void *)(uintptr_t)block->address;
            cca__uses_forget_locked(cca, pool->stream, block);
            cca__pool_put_back_locked(pool, number);
        }
    }
}

static void put_segment_back_locked(struct restore *restore, const struct cca__saved_segment *saved,
                                    const struct cca__segment *segment) {
    const struct cca *const cca = restore->cca;
    struct cca__pool *const pool = cca__pool_at(cca, segment->pool);
    struct cca_restored *const restored = &restore->restored;
    size_t temporary_count = 0;
    uint32_t number = segment->first_block;
    for (size_t index = 0; index < saved->block_count; ++index) {
        const struct cca__saved_block *const block = &saved_blocks(restore, saved)[index];
        while (cca__block_at(cca, number)->address < block->address)
            number = cca__block_at(cca, number)->next;
        BASE_CHECK_EQ(cca__block_at(cca, number)->address, block->address);
        cca__pool_hand_out_exactly_locked(pool, number, block->size);
        if (block->is_allocated)
            restored->allocated[restored->allocated_count++] = (void *)(uintptr_t)block->address;
        else
            restore->temporary[temporary_count++] = number;
    }
    for (size_t index = 0; index < temporary_count; ++index)
        cca__pool_put_back_locked(pool, restore->temporary[index]);
}

static enum base_status restore_locked(struct restore *restore) {
    const struct cca_checkpoint *const checkpoint = restore->checkpoint;
    enum base_status status = compare_locked(restore);
    if (status == BASE_OK) status = reserve_locked(restore);
    if (status != BASE_OK) return status;
    free_all_locked(restore);
    for (size_t index = 0; index < checkpoint->segment_count; ++index)
        put_segment_back_locked(restore, &checkpoint->segments[index], restore->segments[index]);
    return BASE_OK;
}

static enum base_status restore_device(struct restore *restore) {
    struct cca__device *const device = restore->device;
    restore->segments =
        malloc((restore->checkpoint->segment_count + 1) * sizeof *restore->segments);
    restore->waited_for = malloc((device->stream_count + 1) * sizeof *restore->waited_for);
    if (restore->segments == NULL || restore->waited_for == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for restoring %zu segments",
                               restore->checkpoint->segment_count);
    enum base_status status = wait_for_others(restore);
    if (status != BASE_OK) return status;
    status = restore_locked(restore);
    cca__streams_unlock_all(device);
    cca__lock_release(&device->events_lock);
    return status;
}

enum base_status cca_checkpoint_set(struct allocator *allocator,
                                    const struct cca_checkpoint *checkpoint,
                                    struct cca_restored *restored) {
    struct restore restore = {.cca = cca__of(allocator), .checkpoint = checkpoint};
    enum base_status status = cca__require_caching(allocator, "checkpoints");
    if (status == BASE_OK)
        status = cca__device_get(restore.cca, checkpoint->device, &restore.device);
    if (status != BASE_OK) return status;
    if (checkpoint->owner != restore.cca)
        return base_status_set(BASE_INVALID_VALUE, "the checkpoint is of another allocator");
    cca__lock_take(&restore.device->growth_lock);
    cca__gone_settle_locked(restore.device);
    status = restore_device(&restore);
    cca__lock_release(&restore.device->growth_lock);
    cca__segment_list_deinit(&restore.now);
    free(restore.segments);
    free(restore.waited_for);
    free(restore.temporary);
    if (status == BASE_OK)
        *restored = restore.restored;
    else
        cca_restored_deinit(&restore.restored);
    return status;
}

void cca_restored_deinit(struct cca_restored *restored) {
    free(restored->freed);
    free(restored->allocated);
    *restored = (struct cca_restored){0};
}
