// Making of devices, what holds for all streams of one, and calls about the current one: see
// device.h.
#include "allocator/device.h"

#include "allocator/deferral.h"
#include "allocator/driver.h"
#include "allocator/expandable.h"
#include "allocator/pool.h"
#include "allocator/segment.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum base_status cca__cuda_failed(cudaError_t error, const char *format, ...) {
    char call[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(call, sizeof call, format, arguments);
    va_end(arguments);
    (void)cudaGetLastError();
    return base_status_set(BASE_CUDA, "CUDA error: %s (%s) from %s", cudaGetErrorString(error),
                           cudaGetErrorName(error), call);
}

enum base_status cca__device_scope_begin(struct cca__device_scope *scope, int ordinal) {
    cudaError_t error = cudaGetDevice(&scope->previous);
    if (error != cudaSuccess) return cca__cuda_failed(error, "cudaGetDevice");
    scope->ordinal = ordinal;
    if (scope->previous == ordinal) return BASE_OK;
    error = cudaSetDevice(ordinal);
    return error == cudaSuccess ? BASE_OK : cca__cuda_failed(error, "cudaSetDevice(%d)", ordinal);
}

void cca__device_scope_end(const struct cca__device_scope *scope) {
    // It was current before; if it cannot be made so again, the device is lost and the next call
    // says it.
    if (scope->previous != scope->ordinal && cudaSetDevice(scope->previous) != cudaSuccess)
        (void)cudaGetLastError();
}

// The next device that was made, ORDINAL or above; NULL: no more.
static struct cca__device *next_device(struct cca *cca, int *ordinal) {
    struct cca__device *device = NULL;
    while (device == NULL && *ordinal < CCA__DEVICES_MAX)
        device = atomic_load_explicit(&cca->devices[(*ordinal)++], memory_order_acquire);
    return device;
}

void cca__devices_lock_all(struct cca *cca) {
    struct cca__device *device;
    for (int ordinal = 0; (device = next_device(cca, &ordinal)) != NULL;)
        cca__lock_take(&device->growth_lock);
    for (int ordinal = 0; (device = next_device(cca, &ordinal)) != NULL;)
        cca__lock_take(&device->events_lock);
    for (int ordinal = 0; (device = next_device(cca, &ordinal)) != NULL;)
        cca__lock_take(&device->captures_lock);
    for (int ordinal = 0; (device = next_device(cca, &ordinal)) != NULL;)
        cca__streams_lock_all(device);
}

void cca__devices_unlock_all(struct cca *cca) {
    struct cca__device *device;
    for (int ordinal = 0; (device = next_device(cca, &ordinal)) != NULL;) {
        cca__streams_unlock_all(device);
        cca__lock_release(&device->captures_lock);
        cca__lock_release(&device->events_lock);
        cca__lock_release(&device->growth_lock);
    }
}

void cca__device_update_settings_locked(struct cca__device *device) {
    device->counts_requests =
        device->limited && device->owner->config.garbage_collection_threshold > 0.0;
    if (device->counts_requests) device->counted_requests = true;
    if (device->owner->config.expandable_segments) device->has_expandable = true;
    atomic_store_explicit(&device->polls_own, device->owner->config.own.poll_own,
                          memory_order_relaxed);
    cca__captures_update_form_locked(device);
    for (size_t index = 0; index < device->stream_count; ++index)
        cca__stream_set_special_locked(device->by_handle[index]);
}

void cca__devices_update_settings_locked(struct cca *cca) {
    for (int ordinal = 0; ordinal < CCA__DEVICES_MAX; ++ordinal) {
        struct cca__device *const device =
            atomic_load_explicit(&cca->devices[ordinal], memory_order_acquire);
        if (device != NULL) cca__device_update_settings_locked(device);
    }
}

// Up to about 2.8 the product was cut instead of rounded, and a fraction of 1 was a limit, too.
void cca__device_set_fraction_locked(struct cca__device *device, double fraction) {
    const bool old = device->owner->config.torch_minor <= 8;
    const double allowed = fraction * (double)device->total_bytes;
    device->limited = fraction < 1.0 || old;
    device->allowed_bytes = device->limited ? (size_t)(old ? floor(allowed) : round(allowed)) : 0;
    cca__device_update_settings_locked(device);
}

static void device_free(struct cca__device *device) {
    cca__pools_deinit(&device->pools);
    cca__history_remove_device(device);
    cca__streams_deinit(device);
    free(device->spare_events);
    cca__driver_destroy(device->driver);
    cca__lock_deinit(&device->growth_lock);
    cca__lock_deinit(&device->tally_lock);
    cca__lock_deinit(&device->events_lock);
    cca__lock_deinit(&device->captures_lock);
    cca__captures_deinit(&device->captures);
    free(device);
}

static enum base_status device_init(struct cca *cca, int ordinal, struct cca__device **made) {
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) return cca__cuda_failed(error, "cudaGetDeviceCount");
    if (ordinal < 0 || ordinal >= count || ordinal >= CCA__DEVICES_MAX)
        return base_status_set(BASE_INVALID_VALUE, "device %d: there are devices 0 to %d", ordinal,
                               (count < CCA__DEVICES_MAX ? count : CCA__DEVICES_MAX) - 1);
    struct cca__device_scope scope;
    enum base_status status = cca__device_scope_begin(&scope, ordinal);
    if (status != BASE_OK) return status;
    size_t free_bytes, total_bytes;
    error = cudaMemGetInfo(&free_bytes, &total_bytes);
    cca__device_scope_end(&scope);
    if (error != cudaSuccess)
        return cca__cuda_failed(error, "cudaMemGetInfo on device %d", ordinal);

    struct cca__device *const device = calloc(1, sizeof *device);
    if (device == NULL || !cca__streams_init(device)) {
        free(device);
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for device %d", ordinal);
    }
    device->owner = cca;
    device->ordinal = ordinal;
    device->total_bytes = total_bytes;
    cca__lock_init(&device->growth_lock);
    cca__lock_init(&device->tally_lock);
    cca__lock_init(&device->events_lock);
    cca__lock_init(&device->captures_lock);
    if (cca->fraction_set) cca__device_set_fraction_locked(device, cca->fraction);
    cca__device_update_settings_locked(device);
    status = cca__history_add_device(device);
    if (status != BASE_OK) {
        device_free(device);
        return status;
    }
    *made = device;
    return BASE_OK;
}

enum base_status cca__device_make(struct cca *cca, int ordinal, struct cca__device **device) {
    enum base_status status = BASE_OK;
    struct cca__device *made = NULL;
    cca__lock_take(&cca->settings_lock);
    if (ordinal >= 0 && ordinal < CCA__DEVICES_MAX) made = atomic_load(&cca->devices[ordinal]);
    if (made == NULL) {
        status = device_init(cca, ordinal, &made);
        if (status == BASE_OK)
            atomic_store_explicit(&cca->devices[ordinal], made,
                                  memory_order_release); // pairs with cca__device_get
    }
    cca__lock_release(&cca->settings_lock);
    if (status == BASE_OK) *device = made;
    return status;
}

enum base_status cca__device_of(struct allocator *allocator, int ordinal, const char *what,
                                struct cca__device **device) {
    const enum base_status status = cca__require_caching(allocator, what);
    return status == BASE_OK ? cca__device_get(cca__of(allocator), ordinal, device) : status;
}

void cca__device_destroy(struct cca__device *device) {
    struct cca__device_scope scope;
    // Errors have nowhere to go here: what cannot be freed any more was lost with the device.
    const bool is_current = cca__device_scope_begin(&scope, device->ordinal) == BASE_OK;
    for (size_t index = 0; index < device->stream_count; ++index) {
        struct cca__stream *const stream = device->by_handle[index];
        for (size_t entry = 0; entry < stream->queue.count; ++entry)
            (void)cudaEventDestroy(cca__event_queue_at(&stream->queue, entry)->event);
        for (uint32_t number = stream->first_segment; number != 0;
             number = device->owner->segments[number].next) {
            const struct cca__segment *const segment = &device->owner->segments[number];
            if (segment->expandable != NULL)
                cca__expandable_destroy(device, segment->expandable);
            else if (segment->gone_bytes == 0)
                (void)cca__segment_give_back(cca__pool_at(device->owner, segment->pool),
                                             (void *)(uintptr_t)segment->address, segment->size);
        }
    }
    for (size_t index = 0; index < device->spare_event_count; ++index)
        (void)cudaEventDestroy(device->spare_events[index]);
    cca__driver_drop_kept(device);
    if (is_current) cca__device_scope_end(&scope);
    (void)cudaGetLastError();
    device_free(device);
}
