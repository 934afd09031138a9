// What the async allocator asks of the driver about a device: its pool, its limit, its numbers. See
// async.h.
#include "allocator/async_internal.h"
#include "allocator/warning.h"

#include <string.h>

enum base_status async__scope_begin(struct async_scope *scope, int ordinal) {
    const enum base_status status = cca__device_scope_begin(&scope->device, ordinal);
    if (status != BASE_OK) return status;
    scope->mode = cudaStreamCaptureModeRelaxed;
    scope->is_relaxed = cudaThreadExchangeStreamCaptureMode(&scope->mode) == cudaSuccess;
    return BASE_OK;
}

void async__scope_end(struct async_scope *scope) {
    if (scope->is_relaxed) (void)cudaThreadExchangeStreamCaptureMode(&scope->mode);
    cca__device_scope_end(&scope->device);
}

//------------------------------------------------------------------------------------------------
// Setting up.

static enum base_status check_device(int ordinal) {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) return cca__cuda_failed(error, "cudaGetDeviceCount");
    if (ordinal >= 0 && ordinal < count && ordinal < ASYNC_DEVICES_MAX) return BASE_OK;
    return base_status_set(BASE_INVALID_VALUE, "device %d: there are devices 0 to %d", ordinal,
                           count - 1);
}

static cudaError_t set_policies(cudaMemPool_t pool, uint64_t threshold) {
    static const enum cudaMemPoolAttr policies[] = {cudaMemPoolReuseFollowEventDependencies,
                                                    cudaMemPoolReuseAllowOpportunistic,
                                                    cudaMemPoolReuseAllowInternalDependencies};
    int on = 1;
    cudaError_t error = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
    for (int index = 0; index < 3 && error == cudaSuccess; ++index)
        error = cudaMemPoolSetAttribute(pool, policies[index], &on);
    return error;
}

static uint64_t limit_of(double fraction, size_t total_bytes) {
    return (uint64_t)(fraction * (double)total_bytes);
}

// The device is current.
static enum base_status set_up(const struct async *async, int ordinal,
                               struct async_device *device) {
    struct async_device made = {.is_set_up = true, .limit_bytes = UINT64_MAX};
    const struct async_options *const options = &async->options;
    size_t free_bytes, total_bytes;
    cudaError_t error = cudaMemGetInfo(&free_bytes, &total_bytes);
    if (error == cudaSuccess) error = cudaDeviceGetDefaultMemPool(&made.pool, ordinal);
    if (error == cudaSuccess)
        error = set_policies(made.pool, options->release_threshold_set ? options->release_threshold
                                                                       : UINT64_MAX);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&made.unifying, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return cca__cuda_failed(error, "setting up the pool of device %d", ordinal);
    if (options->fraction_set) made.limit_bytes = limit_of(options->fraction, total_bytes);
    *device = made;
    return BASE_OK;
}

enum base_status async__device_get_locked(struct async *async, int ordinal,
                                          struct async_device **device) {
    if (ordinal >= 0 && ordinal < ASYNC_DEVICES_MAX && async->devices[ordinal].is_set_up) {
        *device = &async->devices[ordinal];
        return BASE_OK;
    }
    struct async_scope scope;
    enum base_status status = check_device(ordinal);
    if (status == BASE_OK) status = async__scope_begin(&scope, ordinal);
    if (status != BASE_OK) return status;
    status = set_up(async, ordinal, &async->devices[ordinal]);
    async__scope_end(&scope);
    if (status == BASE_OK) *device = &async->devices[ordinal];
    return status;
}

void async__device_deinit(struct async_device *device, int ordinal) {
    struct async_scope scope;
    if (!device->is_set_up || async__scope_begin(&scope, ordinal) != BASE_OK) return;
    // What fails here was lost with the device. The driver's own threshold is 0, its policies are
    // on.
    (void)cudaStreamSynchronize(device->unifying);
    (void)cudaStreamDestroy(device->unifying);
    (void)set_policies(device->pool, 0);
    (void)cudaMemPoolTrimTo(device->pool, 0);
    (void)cudaGetLastError();
    async__scope_end(&scope);
}

//------------------------------------------------------------------------------------------------
// Calls about a device.

// Runs BODY with the device set up and current, and the lock.
static enum base_status with_device(struct allocator *allocator, int ordinal,
                                    cudaError_t (*body)(struct async_device *device,
                                                        void *argument),
                                    void *argument, const char *what) {
    struct async *const async = async_of(allocator);
    struct async_device *device;
    struct async_scope scope;
    cca__lock_take(&async->lock);
    enum base_status status = async__device_get_locked(async, ordinal, &device);
    if (status == BASE_OK) status = async__scope_begin(&scope, ordinal);
    if (status == BASE_OK) {
        const cudaError_t error = body(device, argument);
        if (error != cudaSuccess)
            status = cca__cuda_failed(error, "%s of device %d", what, ordinal);
        async__scope_end(&scope);
    }
    cca__lock_release(&async->lock);
    return status;
}

static cudaError_t set_limit(struct async_device *device, void *fraction) {
    size_t free_bytes, total_bytes;
    const cudaError_t error = cudaMemGetInfo(&free_bytes, &total_bytes);
    if (error == cudaSuccess)
        device->limit_bytes = limit_of(*(const double *)fraction, total_bytes);
    return error;
}

enum base_status async_set_memory_fraction(struct allocator *allocator, int ordinal,
                                           double fraction) {
    if (!(fraction >= 0.0 && fraction <= 1.0))
        return base_status_set(BASE_INVALID_VALUE, "invalid fraction:%g. Please set within [0, 1].",
                               fraction);
    return with_device(allocator, ordinal, set_limit, &fraction, "reading the memory");
}

static cudaError_t allow_peer(struct async_device *device, void *peer) {
    const struct cudaMemAccessDesc access = {
        .location = {.type = cudaMemLocationTypeDevice, .id = *(const int *)peer},
        .flags = cudaMemAccessFlagsProtReadWrite,
    };
    return cudaMemPoolSetAccess(device->pool, &access, 1);
}

enum base_status async_enable_peer_access(struct allocator *allocator, int ordinal, int peer) {
    const enum base_status status = check_device(peer);
    return status != BASE_OK ? status
                             : with_device(allocator, ordinal, allow_peer, &peer,
                                           "giving a peer access to the pool");
}

static cudaError_t read_free(struct async_device *device, void *size) {
    size_t free_bytes, total_bytes;
    const cudaError_t error = cudaMemGetInfo(&free_bytes, &total_bytes);
    if (error != cudaSuccess) return error;
    const uint64_t left =
        device->used_bytes < device->limit_bytes ? device->limit_bytes - device->used_bytes : 0;
    *(size_t *)size = free_bytes < left ? free_bytes : (size_t)left;
    return cudaSuccess;
}

enum base_status async__largest_block(struct allocator *allocator, int ordinal, size_t *size) {
    return with_device(allocator, ordinal, read_free, size, "reading the memory");
}

static cudaError_t read_stat(cudaMemPool_t pool, enum cudaMemPoolAttr current,
                             enum cudaMemPoolAttr high, struct allocator_stat *stat) {
    uint64_t now = 0, peak = 0;
    cudaError_t error = cudaMemPoolGetAttribute(pool, current, &now);
    if (error == cudaSuccess) error = cudaMemPoolGetAttribute(pool, high, &peak);
    stat->current = (int64_t)now;
    stat->peak = (int64_t)peak;
    return error;
}

static cudaError_t read_stats(struct async_device *device, void *argument) {
    struct allocator_stats *const stats = argument, read = {.max_split_size = -1};
    cudaError_t error =
        read_stat(device->pool, cudaMemPoolAttrUsedMemCurrent, cudaMemPoolAttrUsedMemHigh,
                  &read.allocated_bytes[ALLOCATOR_STAT_ALL]);
    if (error == cudaSuccess)
        error = read_stat(device->pool, cudaMemPoolAttrReservedMemCurrent,
                          cudaMemPoolAttrReservedMemHigh, &read.reserved_bytes[ALLOCATOR_STAT_ALL]);
    read.active_bytes[ALLOCATOR_STAT_ALL] = read.allocated_bytes[ALLOCATOR_STAT_ALL];
    if (error == cudaSuccess) *stats = read;
    return error;
}

enum base_status async__stats(struct allocator *allocator, int ordinal,
                              struct allocator_stats *stats) {
    return with_device(allocator, ordinal, read_stats, stats, "reading the pool");
}

static cudaError_t reset_peaks(struct async_device *device, void *unused) {
    uint64_t zero = 0;
    (void)unused;
    const cudaError_t error =
        cudaMemPoolSetAttribute(device->pool, cudaMemPoolAttrUsedMemHigh, &zero);
    return error != cudaSuccess
               ? error
               : cudaMemPoolSetAttribute(device->pool, cudaMemPoolAttrReservedMemHigh, &zero);
}

enum base_status async__reset_peak_stats(struct allocator *allocator, int ordinal) {
    return with_device(allocator, ordinal, reset_peaks, NULL, "resetting the peaks of the pool");
}

enum base_status async__reset_accumulated_stats(struct allocator *allocator, int ordinal) {
    const enum base_status status = check_device(ordinal);
    if (status == BASE_OK)
        cca__warn(&async_of(allocator)->options.warnings,
                  "For backend:cudaMallocAsync, resetting accumulated statistics has no effect: "
                  "there are none");
    return status;
}

static cudaError_t trim(struct async_device *device, void *unused) {
    (void)unused;
    const cudaError_t error = cudaDeviceSynchronize();
    return error != cudaSuccess ? error : cudaMemPoolTrimTo(device->pool, 0);
}

enum base_status async__empty_cache(struct allocator *allocator) {
    struct async *const async = async_of(allocator);
    enum base_status status = BASE_OK;
    cca__lock_take(&async->lock);
    if (async->captures)
        status = base_status_set(BASE_INVALID_VALUE,
                                 "the cache cannot be emptied during a capture: it waits for the "
                                 "device, which would break the capture");
    bool is_set_up[ASYNC_DEVICES_MAX];
    for (int ordinal = 0; ordinal < ASYNC_DEVICES_MAX; ++ordinal) {
        is_set_up[ordinal] = async->devices[ordinal].is_set_up;
        if (is_set_up[ordinal] && status == BASE_OK) async__tell_empty_cache_locked(async, ordinal);
    }
    cca__lock_release(&async->lock);
    for (int ordinal = 0; ordinal < ASYNC_DEVICES_MAX && status == BASE_OK; ++ordinal)
        if (is_set_up[ordinal]) {
            status = with_device(allocator, ordinal, trim, NULL, "emptying the pool");
            cca__lock_take(&async->lock);
            async__tell_reserved_locked(async, ordinal);
            cca__lock_release(&async->lock);
        }
    return status;
}
