// Pools as the program names them. Each device has a default pool, made when it is first asked for,
// and a current one, from which cudaMallocAsync takes.
#include "simulator/pool.h"

#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/checked.h"
#include "simulator/graph_memory.h"
#include "simulator/plant.h"
#include "simulator/reading.h"
#include "simulator/stream.h"

#include <stdlib.h>
#include <string.h>

#define POOL_TAG 0x6d

static struct sim__handle_table table = {.tag = POOL_TAG, .slot_size = sizeof(struct sim__pool)};
struct sim__pool *sim__pools;
static struct sim__pool *default_pools[SIM_DEVICE_COUNT_MAX]; // NULL before the first use
static struct sim__pool *current_pools[SIM_DEVICE_COUNT_MAX]; // NULL: the default one

static bool is_device(int device) {
    return device >= 0 && device < sim__state.options.device_count;
}

// --- Making, finding and ending pools ---

static struct sim__pool *pool_make(int device) {
    struct sim__pool *pool = sim__handle_take(&table);
    if (pool == NULL)
        sim__host_limit("no more pools");
    const struct sim__handle_slot slot = pool->slot;
    const uint32_t own = (uint32_t)1 << device;
    *pool = (struct sim__pool){
        .slot = slot,
        .device = device,
        .follow_events = true,
        .opportunistic = true,
        .internal_dependencies = true,
        .readers = own,
        .writers = own,
        .next = sim__pools,
    };
    sim__pools = pool;
    return pool;
}

static void pool_end(struct sim__pool *pool) {
    sim__pool_drop(pool);
    struct sim__pool **link = &sim__pools;
    while (*link != pool)
        link = &(*link)->next;
    *link = pool->next;
    sim__handle_give(&table, pool);
}

void sim__pool_check_end(struct sim__pool *pool) {
    if (pool->destroyed && pool->used == 0 && pool->pending_count == 0)
        pool_end(pool);
}

static struct sim__pool *default_pool(int device) {
    if (default_pools[device] == NULL) {
        default_pools[device] = pool_make(device);
        default_pools[device]->is_default = true;
    }
    return default_pools[device];
}

static struct sim__pool *current_pool(int device) {
    return current_pools[device] != NULL ? current_pools[device] : default_pool(device);
}

static cudaMemPool_t handle_of(const struct sim__pool *pool) {
    return (cudaMemPool_t)(uintptr_t)pool->slot.handle;
}

static struct sim__pool *pool_find(cudaMemPool_t handle) {
    const uint64_t number = (uint64_t)(uintptr_t)handle;
    struct sim__pool *pool = sim__handle_find(&table, number);
    if (pool != NULL && !pool->destroyed)
        return pool;
    if (sim__checked())
        sim__misuse("%p is %s", (void *)handle,
                    sim__handle_was_taken(&table, number) ? "a pool that was destroyed"
                                                          : "no pool");
    return NULL;
}

void sim__pools_start(void) {
    memset(default_pools, 0, sizeof default_pools);
    memset(current_pools, 0, sizeof current_pools);
}

void sim__pools_clear(void) {
    struct sim__range *block;
    while ((block = sim__range_last(&sim__state.blocks)) != NULL)
        sim__pool_give((struct sim__block *)block, NULL);
    sim__range_index_deinit(&sim__state.blocks);
    while (sim__pools != NULL)
        pool_end(sim__pools);
    sim__handle_clear(&table);
}

// --- Creation and the device's pools ---

static cudaError_t properties_check(const struct cudaMemPoolProps *properties) {
    const unsigned types = (unsigned)properties->handleTypes;
    static const unsigned char zeros[sizeof properties->reserved];
    if (properties->allocType != cudaMemAllocationTypePinned ||
        properties->location.type != cudaMemLocationTypeDevice ||
        !is_device(properties->location.id) || (types & ~(unsigned)15) != 0 ||
        properties->win32SecurityAttributes != NULL ||
        memcmp(properties->reserved, zeros, sizeof zeros) != 0)
        return cudaErrorInvalidValue;
    return types != cudaMemHandleTypeNone ? cudaErrorNotSupported : cudaSuccess;
}

static cudaError_t create_locked(cudaMemPool_t *handle, const struct cudaMemPoolProps *properties) {
    if (handle == NULL || properties == NULL)
        return cudaErrorInvalidValue;
    cudaError_t error = properties_check(properties);
    if (error == cudaSuccess && !sim__reading_other[SIM__READING_STREAM_CREATE])
        error = sim__capture_unsafe();
    if (error != cudaSuccess)
        return error;
    struct sim__pool *pool = pool_make(properties->location.id);
    pool->size_max = properties->maxSize;
    *handle = handle_of(pool);
    return cudaSuccess;
}

static cudaError_t destroy_locked(cudaMemPool_t handle) {
    struct sim__pool *pool = pool_find(handle);
    if (pool == NULL)
        return cudaErrorInvalidValue;
    if (pool->is_default)
        return sim__planted(SIM__PLANT_POOL_DEFAULT) ? cudaSuccess : cudaErrorInvalidValue;
    if (current_pools[pool->device] == pool)
        current_pools[pool->device] = NULL;
    pool->destroyed = true;
    sim__pool_check_end(pool);
    return cudaSuccess;
}

static cudaError_t set_pool_locked(int device, cudaMemPool_t handle) {
    if (!is_device(device))
        return cudaErrorInvalidDevice;
    struct sim__pool *pool = pool_find(handle);
    if (pool == NULL || pool->device != device)
        return cudaErrorInvalidValue;
    current_pools[device] = pool;
    return cudaSuccess;
}

static cudaError_t get_pool(cudaMemPool_t *handle, int device,
                            struct sim__pool *(*which)(int device)) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess && handle == NULL)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess && !is_device(device))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess)
        *handle = handle_of(which(device));
    return sim__call_end(SIM__CALL_OTHER, error);
}

// --- Attributes ---

static cudaError_t set_attribute_locked(cudaMemPool_t handle, enum cudaMemPoolAttr attribute,
                                        const void *value) {
    struct sim__pool *pool = pool_find(handle);
    if (pool == NULL || value == NULL)
        return cudaErrorInvalidValue;
    const cudaError_t error = sim__capture_unsafe();
    if (error != cudaSuccess)
        return error;
    switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
        pool->follow_events = *(const int *)value != 0;
        return cudaSuccess;
    case cudaMemPoolReuseAllowOpportunistic:
        pool->opportunistic = *(const int *)value != 0;
        return cudaSuccess;
    case cudaMemPoolReuseAllowInternalDependencies:
        pool->internal_dependencies = *(const int *)value != 0;
        return cudaSuccess;
    case cudaMemPoolAttrReleaseThreshold:
        pool->release_threshold = *(const uint64_t *)value;
        return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh:
        if (*(const uint64_t *)value != 0)
            return cudaErrorInvalidValue;
        if (attribute == cudaMemPoolAttrReservedMemHigh)
            pool->reserved_high = pool->reserved;
        else
            pool->used_high = pool->used;
        return cudaSuccess;
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrUsedMemCurrent: break;
    }
    return cudaErrorInvalidValue;
}

static cudaError_t get_attribute_locked(cudaMemPool_t handle, enum cudaMemPoolAttr attribute,
                                        void *value) {
    const struct sim__pool *pool = pool_find(handle);
    if (pool == NULL || value == NULL)
        return cudaErrorInvalidValue;
    const cudaError_t error = sim__capture_unsafe();
    if (error != cudaSuccess)
        return error;
    switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies: *(int *)value = pool->follow_events; break;
    case cudaMemPoolReuseAllowOpportunistic: *(int *)value = pool->opportunistic; break;
    case cudaMemPoolReuseAllowInternalDependencies:
        *(int *)value = pool->internal_dependencies;
        break;
    case cudaMemPoolAttrReleaseThreshold: *(uint64_t *)value = pool->release_threshold; break;
    case cudaMemPoolAttrReservedMemCurrent: *(uint64_t *)value = pool->reserved; break;
    case cudaMemPoolAttrReservedMemHigh: *(uint64_t *)value = pool->reserved_high; break;
    case cudaMemPoolAttrUsedMemCurrent: *(uint64_t *)value = pool->used; break;
    case cudaMemPoolAttrUsedMemHigh: *(uint64_t *)value = pool->used_high; break;
    default: return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

// --- Access ---

static cudaError_t descriptor_check(const struct sim__pool *pool,
                                    const struct cudaMemAccessDesc *descriptor) {
    if (descriptor->location.type != cudaMemLocationTypeDevice ||
        (descriptor->flags != cudaMemAccessFlagsProtNone &&
         descriptor->flags != cudaMemAccessFlagsProtRead &&
         descriptor->flags != cudaMemAccessFlagsProtReadWrite))
        return cudaErrorInvalidValue;
    if (!is_device(descriptor->location.id))
        return cudaErrorInvalidDevice;
    // A device's access to its own pool cannot be taken away.
    return descriptor->location.id == pool->device &&
                   descriptor->flags != cudaMemAccessFlagsProtReadWrite
               ? cudaErrorInvalidValue
               : cudaSuccess;
}

static cudaError_t set_access_locked(cudaMemPool_t handle,
                                     const struct cudaMemAccessDesc *descriptors, size_t count) {
    struct sim__pool *pool = pool_find(handle);
    if (pool == NULL || (descriptors == NULL && count > 0))
        return cudaErrorInvalidValue;
    for (size_t i = 0; i < count; ++i) {
        const cudaError_t error = descriptor_check(pool, &descriptors[i]);
        if (error != cudaSuccess)
            return error;
    }
    for (size_t i = 0; i < count; ++i) {
        const uint32_t bit = (uint32_t)1 << descriptors[i].location.id;
        pool->readers &= ~bit;
        pool->writers &= ~bit;
        if (descriptors[i].flags != cudaMemAccessFlagsProtNone)
            pool->readers |= bit;
        if (descriptors[i].flags == cudaMemAccessFlagsProtReadWrite)
            pool->writers |= bit;
    }
    sim__chunk_access(pool);
    return cudaSuccess;
}

static cudaError_t get_access_locked(enum cudaMemAccessFlags *flags, cudaMemPool_t handle,
                                     const struct cudaMemLocation *location) {
    const struct sim__pool *pool = pool_find(handle);
    if (flags == NULL || pool == NULL || location == NULL ||
        location->type != cudaMemLocationTypeDevice)
        return cudaErrorInvalidValue;
    if (!is_device(location->id))
        return cudaErrorInvalidDevice;
    const uint32_t bit = (uint32_t)1 << location->id;
    *flags = (pool->writers & bit) != 0   ? cudaMemAccessFlagsProtReadWrite
             : (pool->readers & bit) != 0 ? cudaMemAccessFlagsProtRead
                                          : cudaMemAccessFlagsProtNone;
    return cudaSuccess;
}

// --- Memory ---

// Of POOL, or of the current pool of the stream's device.
static cudaError_t malloc_locked(void **pointer, uint64_t size, const cudaMemPool_t *handle,
                                 cudaStream_t stream_handle) {
    struct sim__stream *stream;
    if (pointer == NULL)
        return cudaErrorInvalidValue;
    const cudaError_t error = sim__stream_resolve(stream_handle, &stream);
    if (error != cudaSuccess)
        return error;
    struct sim__pool *pool = handle != NULL ? pool_find(*handle) : current_pool(stream->device);
    if (pool == NULL)
        return cudaErrorInvalidValue;
    if (size == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    if (stream->capture != NULL)
        return sim__capture_alloc(stream, pool->device, size, pointer);
    const cudaError_t refusal = sim__capture_legacy(stream);
    return refusal != cudaSuccess ? refusal : sim__pool_take(pool, stream, size, pointer);
}

static cudaError_t free_locked(void *pointer, cudaStream_t handle) {
    struct sim__stream *stream;
    struct sim__block *block = sim__block_at(pointer);
    cudaError_t error = sim__stream_resolve(handle, &stream);
    if (error != cudaSuccess)
        return error;
    if (stream->capture != NULL)
        return sim__capture_free(stream, pointer);
    if (block == NULL || block->range.start != (uint64_t)(uintptr_t)pointer) {
        if (sim__checked())
            sim__misuse_pointer(pointer);
        return cudaErrorInvalidValue;
    }
    if ((error = sim__capture_legacy(stream)) != cudaSuccess)
        return error;
    if (block->graph != NULL)
        return sim__graph_allocation_free(block->graph, stream);
    if (sim__checked())
        sim__checked_gone(block->range.start, block->range.size, "freed by cudaFreeAsync");
    sim__pool_give(block, stream);
    return cudaSuccess;
}

static cudaError_t trim_locked(cudaMemPool_t handle, uint64_t keep) {
    struct sim__pool *pool = pool_find(handle);
    if (pool == NULL)
        return cudaErrorInvalidValue;
    const cudaError_t error = sim__capture_unsafe();
    if (error == cudaSuccess)
        sim__pool_shrink(pool, keep);
    return error;
}

// --- The calls ---

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
    return get_pool(pool, device, default_pool);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
    return get_pool(pool, device, current_pool);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = set_pool_locked(device, pool);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties) {
    cudaError_t error = sim__call_begin(SIM_CALL_POOL_CREATE);
    if (error == cudaSuccess)
        error = create_locked(pool, properties);
    return sim__call_end(SIM_CALL_POOL_CREATE, error);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    cudaError_t error = sim__call_begin(SIM_CALL_POOL_DESTROY);
    if (error == cudaSuccess)
        error = destroy_locked(pool);
    return sim__call_end(SIM_CALL_POOL_DESTROY, error);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = set_attribute_locked(pool, attribute, value);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = get_attribute_locked(pool, attribute, value);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *descriptors,
                                 size_t count) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = set_access_locked(pool, descriptors, count);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                 struct cudaMemLocation *location) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = get_access_locked(flags, pool, location);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes) {
    cudaError_t error = sim__call_begin(SIM_CALL_POOL_TRIM);
    if (error == cudaSuccess)
        error = trim_locked(pool, keep_bytes);
    return sim__call_end(SIM_CALL_POOL_TRIM, error);
}

cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream) {
    cudaError_t error = sim__call_begin(SIM_CALL_MALLOC_ASYNC);
    if (error == cudaSuccess)
        error = malloc_locked(pointer, size, NULL, stream);
    return sim__call_end(SIM_CALL_MALLOC_ASYNC, error);
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t pool,
                                    cudaStream_t stream) {
    cudaError_t error = sim__call_begin(SIM_CALL_MALLOC_ASYNC);
    if (error == cudaSuccess)
        error = malloc_locked(pointer, size, &pool, stream);
    return sim__call_end(SIM_CALL_MALLOC_ASYNC, error);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    cudaError_t error = sim__call_begin(SIM_CALL_FREE_ASYNC);
    if (error == cudaSuccess)
        error = pointer == NULL ? cudaErrorInvalidValue : free_locked(pointer, stream);
    return sim__call_end(SIM_CALL_FREE_ASYNC, error);
}
