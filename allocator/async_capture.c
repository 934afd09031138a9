// Captures of the async allocator: see async.h.
#include "allocator/async_internal.h"
#include "allocator/warning.h"

#include <stdlib.h>

enum base_status async__capture_reserve_locked(struct async *async) {
    if (!async->captures || async->free_stream_count < async->free_stream_capacity) return BASE_OK;
    const size_t capacity = async->free_stream_capacity == 0 ? 8 : 2 * async->free_stream_capacity;
    cudaStream_t *const streams = realloc(async->free_streams, capacity * sizeof(cudaStream_t));
    if (streams == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu streams of a capture",
                               capacity);
    async->free_streams = streams;
    async->free_stream_capacity = capacity;
    return BASE_OK;
}

void async__capture_note_locked(struct async *async, cudaStream_t stream) {
    if (!async->captures || stream == async->captured_stream) return;
    for (size_t index = 0; index < async->free_stream_count; ++index)
        if (async->free_streams[index] == stream) return;
    async->free_streams[async->free_stream_count++] = stream;
}

enum base_status async__capture_flush_locked(struct async *async) {
    while (!async->captures && async->first_deferred != NULL) {
        struct async_block *const block = async->first_deferred, *const next = block->next;
        const enum base_status status = async__free_now_locked(async, block);
        if (status != BASE_OK) return status;
        async__tell_locked(async, ALLOCATOR_FREE_COMPLETED, block);
        async__tell_reserved_locked(async, block->device);
        free(block->streams);
        free(block);
        async->first_deferred = next;
    }
    if (async->first_deferred == NULL) async->last_deferred = &async->first_deferred;
    return BASE_OK;
}

enum base_status async_capture_begin(struct allocator *allocator, int ordinal,
                                     cudaStream_t stream) {
    struct async *const async = async_of(allocator);
    struct async_device *device;
    cca__lock_take(&async->lock);
    enum base_status status = async__device_get_locked(async, ordinal, &device);
    if (status == BASE_OK && async->captures)
        status = base_status_set(BASE_INVALID_VALUE,
                                 "Only one capture at a time is allowed in a process: that of "
                                 "stream %p has not ended",
                                 (void *)async->captured_stream);
    if (status == BASE_OK) {
        async->captures = true;
        async->captured_device = ordinal;
        async->captured_stream = stream;
    }
    cca__lock_release(&async->lock);
    return status;
}

enum base_status async_capture_end(struct allocator *allocator) {
    struct async *const async = async_of(allocator);
    enum base_status status = BASE_OK;
    cca__lock_take(&async->lock);
    if (!async->captures)
        status = base_status_set(BASE_INVALID_VALUE, "there is no capture that could end");
    for (size_t index = 0; index < async->free_stream_count && status == BASE_OK; ++index)
        status = async__order(async->captured_device, async->free_streams[index],
                              async->captured_stream);
    async->free_stream_count = 0;
    async->captures = false;
    cca__lock_release(&async->lock);
    return status;
}

enum base_status async_pool_release(struct allocator *allocator, int ordinal,
                                    struct allocator_pool_id id) {
    (void)allocator;
    (void)ordinal;
    (void)id;
    return BASE_OK;
}
