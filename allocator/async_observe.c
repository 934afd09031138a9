// What the async allocator tells an observer: see async.h. Blocks are its own doing. Of the pool
// the driver says only how much it holds, which is asked at every call while somebody listens; but
// for captures, which the question would break, and whose memory is not the pool's.
#include "allocator/async_internal.h"

static bool has_observer(const struct async *async) { return async->observer.event != NULL; }

// Bytes that the pool holds; what cannot be asked has not changed.
static uint64_t reserved_now(const struct async_device *device) {
    uint64_t reserved = 0;
    if (cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrReservedMemCurrent, &reserved) ==
        cudaSuccess)
        return reserved;
    (void)cudaGetLastError();
    return device->told_reserved;
}

void async__tell_locked(const struct async *async, enum allocator_action action,
                        const struct async_block *block) {
    if (!has_observer(async)) return;
    async->observer.event(async->observer.context, &(struct allocator_event){
                                                       .action = action,
                                                       .device = block->device,
                                                       .address = block->address,
                                                       .size = block->size,
                                                       .block_size = block->size,
                                                       .stream = block->stream,
                                                   });
}

void async__tell_out_of_memory_locked(const struct async *async, const struct async_block *block,
                                      size_t free_bytes) {
    if (!has_observer(async)) return;
    async->observer.event(async->observer.context, &(struct allocator_event){
                                                       .action = ALLOCATOR_OOM,
                                                       .device = block->device,
                                                       .size = block->size,
                                                       .device_free = free_bytes,
                                                       .stream = block->stream,
                                                   });
}

void async__tell_reserved_locked(struct async *async, int ordinal) {
    struct async_device *const device = &async->devices[ordinal];
    if (!has_observer(async) || !device->is_set_up || async->captures) return;
    const uint64_t before = device->told_reserved, now = reserved_now(device);
    device->told_reserved = now;
    if (now != before)
        async->observer.event(
            async->observer.context,
            &(struct allocator_event){
                .action = now > before ? ALLOCATOR_SEGMENT_ALLOC : ALLOCATOR_SEGMENT_FREE,
                .device = ordinal,
                .size = (size_t)(now > before ? now - before : before - now),
            });
}

void async__tell_empty_cache_locked(const struct async *async, int ordinal) {
    if (!has_observer(async)) return;
    async->observer.event(
        async->observer.context,
        &(struct allocator_event){.action = ALLOCATOR_EMPTY_CACHE, .device = ordinal});
}

enum base_status async__set_observer(struct allocator *allocator,
                                     const struct allocator_observer *observer) {
    struct async *const async = async_of(allocator);
    cca__lock_take(&async->lock);
    async->observer = observer != NULL ? *observer : (struct allocator_observer){0};
    for (int ordinal = 0; ordinal < ASYNC_DEVICES_MAX && has_observer(async); ++ordinal)
        if (async->devices[ordinal].is_set_up && !async->captures)
            async->devices[ordinal].told_reserved = reserved_now(&async->devices[ordinal]);
    cca__lock_release(&async->lock);
    return BASE_OK;
}
