// Requests and frees of the async allocator: see async.h.
#include "allocator/async_internal.h"
#include "allocator/out_of_memory.h"
#include "allocator/pointer.h"
#include "allocator/size_class.h"
#include "allocator/warning.h"

#include <stdlib.h>

// The handles of default streams mean a stream of whatever device is current.
static bool is_default(cudaStream_t stream) {
    return stream == NULL || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

//------------------------------------------------------------------------------------------------
// Handing out.

static void link_block(struct async *async, struct async_block *block) {
    block->previous = NULL;
    block->next = async->first_block;
    if (block->next != NULL) block->next->previous = block;
    async->first_block = block;
}

static void unlink_block(struct async *async, struct async_block *block) {
    if (block->next != NULL) block->next->previous = block->previous;
    if (block->previous != NULL)
        block->previous->next = block->next;
    else
        async->first_block = block->next;
}

// One sentence, where PyTorch writes a line for each number.
static enum base_status out_of_memory(const struct async *async, const struct async_device *device,
                                      const struct async_block *block) {
    const int ordinal = block->device;
    char current[CCA__SIZE_TEXT], requested[CCA__SIZE_TEXT], total[CCA__SIZE_TEXT],
        unused[CCA__SIZE_TEXT], limit[CCA__SIZE_TEXT] = "none";
    size_t free_bytes = 0, total_bytes = 0;
    struct cca__device_scope scope;
    if (cca__device_scope_begin(&scope, ordinal) == BASE_OK) {
        if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) (void)cudaGetLastError();
        cca__device_scope_end(&scope);
    }
    if (device->limit_bytes != UINT64_MAX) cca__size_text(device->limit_bytes, limit);
    cca__size_text(device->used_bytes, current);
    cca__size_text(block->size, requested);
    cca__size_text(total_bytes, total);
    cca__size_text(free_bytes, unused);
    async__tell_out_of_memory_locked(async, block, free_bytes);
    return base_status_set(BASE_OUT_OF_MEMORY,
                           "Allocation on device %d would exceed allowed memory. (out of memory) "
                           "Currently allocated: %s; Requested: %s; Device limit: %s; "
                           "Free (according to CUDA): %s; PyTorch limit (set by user-supplied "
                           "memory fraction): %s",
                           ordinal, current, requested, total, unused, limit);
}

static enum base_status take_memory(const struct async *async, const struct async_device *device,
                                    struct async_block *block) {
    const int ordinal = block->device;
    const size_t size = block->size;
    const cudaStream_t stream = block->stream;
    struct cca__device_scope scope;
    cudaError_t error = cudaErrorMemoryAllocation;
    if (size <= device->limit_bytes && device->used_bytes <= device->limit_bytes - size) {
        if (is_default(stream)) {
            const enum base_status status = cca__device_scope_begin(&scope, ordinal);
            if (status != BASE_OK) return status;
        }
        error = cudaMallocAsync(&block->address, size, stream);
        if (is_default(stream)) cca__device_scope_end(&scope);
        if (error == cudaErrorMemoryAllocation) (void)cudaGetLastError();
    }
    if (error == cudaErrorMemoryAllocation) return out_of_memory(async, device, block);
    return error == cudaSuccess ? BASE_OK
                                : cca__cuda_failed(error,
                                                   "cudaMallocAsync of %zu bytes on stream %p of "
                                                   "device %d",
                                                   size, (void *)stream, ordinal);
}

static enum base_status malloc_locked(struct async *async, struct async_block *block) {
    struct async_device *device;
    enum base_status status = async__capture_flush_locked(async);
    if (status == BASE_OK) status = async__device_get_locked(async, block->device, &device);
    if (status == BASE_OK) status = take_memory(async, device, block);
    if (status != BASE_OK) return status;
    status = base_address_map_set(&async->blocks, (uint64_t)(uintptr_t)block->address,
                                  (uint64_t)(uintptr_t)block);
    device->used_bytes += block->size;
    if (status != BASE_OK) {
        // The failure that led here is what counts; if the driver keeps the memory, it is lost.
        const enum base_status unused = async__free_now_locked(async, block);
        (void)unused;
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for a block");
    }
    block->captured = async->captures;
    link_block(async, block);
    async__tell_reserved_locked(async, block->device);
    async__tell_locked(async, ALLOCATOR_ALLOC, block);
    return BASE_OK;
}

static enum base_status async_malloc(struct allocator *allocator, int ordinal, size_t size,
                                     cudaStream_t stream, void **pointer) {
    struct async *const async = async_of(allocator);
    if (size == 0) {
        *pointer = NULL;
        return BASE_OK;
    }
    if (size >= CCA_REQUEST_LIMIT)
        return base_status_set(BASE_OUT_OF_MEMORY,
                               "CUDA out of memory. Tried to allocate more than 1EB memory.");
    struct async_block *const block = calloc(1, sizeof *block);
    if (block == NULL) return base_status_set(BASE_HOST_MEMORY, "out of host memory for a block");
    *block = (struct async_block){.size = size, .device = ordinal, .stream = stream};
    cca__lock_take(&async->lock);
    const enum base_status status = malloc_locked(async, block);
    cca__lock_release(&async->lock);
    if (status == BASE_OK)
        *pointer = block->address;
    else
        free(block);
    return status;
}

//------------------------------------------------------------------------------------------------
// Taking back.

static cudaError_t order_on(cudaStream_t stream, cudaStream_t follower) {
    cudaEvent_t event;
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error != cudaSuccess) return error;
    error = cudaEventRecord(event, stream);
    if (error == cudaSuccess) error = cudaStreamWaitEvent(follower, event, 0);
    const cudaError_t destroyed = cudaEventDestroy(event);
    return error != cudaSuccess ? error : destroyed;
}

enum base_status async__order(int ordinal, cudaStream_t stream, cudaStream_t follower) {
    struct cca__device_scope scope;
    int of_stream = ordinal; // memory may be used on another device's streams
    if (!is_default(stream) && cudaStreamGetDevice(stream, &of_stream) != cudaSuccess)
        (void)cudaGetLastError();
    const enum base_status status = cca__device_scope_begin(&scope, of_stream);
    if (status != BASE_OK) return status;
    const cudaError_t error = order_on(stream, follower);
    cca__device_scope_end(&scope);
    return error == cudaSuccess
               ? BASE_OK
               : cca__cuda_failed(error, "ordering stream %p of device %d before %p",
                                  (void *)stream, of_stream, (void *)follower);
}

enum base_status async__free_now_locked(struct async *async, struct async_block *block) {
    struct async_device *const device = &async->devices[block->device];
    const cudaStream_t stream = block->stream_count == 0 ? block->stream : device->unifying;
    enum base_status status = async__capture_reserve_locked(async);
    if (status == BASE_OK && block->stream_count > 0)
        status = async__order(block->device, block->stream, stream);
    for (size_t index = 0; index < block->stream_count && status == BASE_OK; ++index)
        status = async__order(block->device, block->streams[index], stream);
    struct cca__device_scope scope;
    if (status == BASE_OK && is_default(stream))
        status = cca__device_scope_begin(&scope, block->device);
    if (status != BASE_OK) return status;
    const cudaError_t error = cudaFreeAsync(block->address, stream);
    if (is_default(stream)) cca__device_scope_end(&scope);
    if (error != cudaSuccess)
        return cca__cuda_failed(error, "cudaFreeAsync of %zu bytes at %p on stream %p of device %d",
                                block->size, block->address, (void *)stream, block->device);
    async__capture_note_locked(async, stream);
    device->used_bytes -= block->size;
    return BASE_OK;
}

// The block is no longer handed out, but the memory stays until the capture has ended.
static void defer_locked(struct async *async, struct async_block *block) {
    if (!async->warned_free_in_capture)
        cca__warn(&async->options.warnings,
                  "free() was called on an uncaptured allocation during graph capture (address = "
                  "%p): it waits for the end of the capture. If the captured work uses the memory, "
                  "replays of the graph will use what is no longer its own",
                  block->address);
    async->warned_free_in_capture = true;
    block->next = NULL;
    *async->last_deferred = block;
    async->last_deferred = &block->next;
}

static enum base_status free_locked(struct async *async, void *pointer, uint64_t value) {
    struct async_block *const block = (struct async_block *)(uintptr_t)value;
    const bool is_deferred = async->captures && !block->captured;
    if (!is_deferred) {
        const enum base_status status = async__free_now_locked(async, block);
        if (status != BASE_OK) return status;
        if (!async->captures && block->captured)
            cca__warn(&async->options.warnings,
                      "Attempting uncaptured free of a captured allocation with address %p: its "
                      "graph writes there, and nobody can look at it any more",
                      pointer);
    }
    BASE_CHECK(base_address_map_remove(&async->blocks, (uint64_t)(uintptr_t)pointer, &value));
    unlink_block(async, block);
    async__tell_locked(async, ALLOCATOR_FREE_REQUESTED, block);
    if (is_deferred) {
        defer_locked(async, block);
    } else {
        async__tell_locked(async, ALLOCATOR_FREE_COMPLETED, block);
        async__tell_reserved_locked(async, block->device);
        free(block->streams);
        free(block);
    }
    return BASE_OK;
}

static enum base_status async_free(struct allocator *allocator, void *pointer) {
    struct async *const async = async_of(allocator);
    uint64_t value;
    if (pointer == NULL) return BASE_OK;
    cca__lock_take(&async->lock);
    const enum base_status status =
        base_address_map_get(&async->blocks, (uint64_t)(uintptr_t)pointer, &value)
            ? free_locked(async, pointer, value)
            : cca__pointer_not_live(pointer);
    cca__lock_release(&async->lock);
    return status;
}

static enum base_status add_use_locked(struct async *async, struct async_block *block,
                                       cudaStream_t stream) {
    if (stream == block->stream) {
        if (!async->warned_own_stream)
            cca__warn(
                &async->options.warnings,
                "record_stream was called with the stream that the memory was taken for (%p), "
                "which is unnecessary and has no effect",
                (void *)stream);
        async->warned_own_stream = true;
        return BASE_OK;
    }
    for (size_t index = 0; index < block->stream_count; ++index)
        if (block->streams[index] == stream) return BASE_OK;
    cudaStream_t *const streams =
        realloc(block->streams, (block->stream_count + 1) * sizeof(cudaStream_t));
    if (streams == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu streams of a block",
                               block->stream_count + 1);
    block->streams = streams;
    block->streams[block->stream_count++] = stream;
    return BASE_OK;
}

static enum base_status async_record_stream(struct allocator *allocator, void *pointer,
                                            cudaStream_t stream) {
    struct async *const async = async_of(allocator);
    uint64_t value;
    if (pointer == NULL) return BASE_OK;
    cca__lock_take(&async->lock);
    const enum base_status status =
        base_address_map_get(&async->blocks, (uint64_t)(uintptr_t)pointer, &value)
            ? add_use_locked(async, (struct async_block *)(uintptr_t)value, stream)
            : cca__pointer_not_live(pointer);
    cca__lock_release(&async->lock);
    return status;
}

//------------------------------------------------------------------------------------------------
// What it cannot do.

static enum base_status refuse(const char *what, const char *why) {
    return base_status_set(BASE_UNSUPPORTED, "backend:cudaMallocAsync has no %s: %s", what, why);
}

static enum base_status async_base_allocation(struct allocator *allocator, const void *pointer,
                                              void **base, size_t *size) {
    (void)allocator;
    (void)pointer;
    (void)base;
    (void)size;
    return refuse("base allocations", "another process could not open the memory of its pool");
}

static enum base_status async_snapshot(struct allocator *allocator,
                                       struct allocator_snapshot *snapshot) {
    (void)allocator;
    (void)snapshot;
    return refuse("snapshot", "the driver does not tell what is where");
}

//------------------------------------------------------------------------------------------------
// Life.

static void free_blocks(struct async_block *block) {
    for (struct async_block *next; block != NULL; block = next) {
        struct cca__device_scope scope;
        next = block->next;
        // Its work is done. Memory of a graph that was never launched cannot be freed, nor need it.
        if (cca__device_scope_begin(&scope, block->device) == BASE_OK) {
            if (cudaFree(block->address) != cudaSuccess) (void)cudaGetLastError();
            cca__device_scope_end(&scope);
        }
        free(block->streams);
        free(block);
    }
}

static void async_destroy(struct allocator *allocator) {
    struct async *const async = async_of(allocator);
    for (int ordinal = 0; ordinal < ASYNC_DEVICES_MAX; ++ordinal) {
        struct cca__device_scope scope;
        if (!async->devices[ordinal].is_set_up ||
            cca__device_scope_begin(&scope, ordinal) != BASE_OK)
            continue;
        if (cudaDeviceSynchronize() != cudaSuccess) (void)cudaGetLastError();
        cca__device_scope_end(&scope);
    }
    free_blocks(async->first_block);
    free_blocks(async->first_deferred);
    for (int ordinal = 0; ordinal < ASYNC_DEVICES_MAX; ++ordinal)
        async__device_deinit(&async->devices[ordinal], ordinal);
    base_address_map_deinit(&async->blocks);
    cca__lock_deinit(&async->lock);
    free(async->free_streams);
    free(async);
}

static const struct allocator_operations async_operations = {
    .name = "async",
    .malloc = async_malloc,
    .free = async_free,
    .record_stream = async_record_stream,
    .empty_cache = async__empty_cache,
    .base_allocation = async_base_allocation,
    .largest_block = async__largest_block,
    .stats = async__stats,
    .reset_peak_stats = async__reset_peak_stats,
    .reset_accumulated_stats = async__reset_accumulated_stats,
    .snapshot = async_snapshot,
    .set_observer = async__set_observer,
    .destroy = async_destroy,
};

enum base_status async_allocator_create(const struct async_options *options,
                                        struct allocator **allocator) {
    if (options->fraction_set && !(options->fraction >= 0.0 && options->fraction <= 1.0))
        return base_status_set(BASE_INVALID_VALUE, "invalid fraction:%g. Please set within [0, 1].",
                               options->fraction);
    struct async *const async = calloc(1, sizeof *async);
    if (async == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for an allocator");
    async->interface.operations = &async_operations;
    async->options = *options;
    if (options->warnings.warning == NULL) async->options.warnings = cca__warn_on_stderr;
    async->last_deferred = &async->first_deferred;
    cca__lock_init(&async->lock);
    *allocator = &async->interface;
    return BASE_OK;
}
