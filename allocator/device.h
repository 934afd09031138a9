// Devices and streams as the allocator knows them: made when first named, found without a lock
// afterwards.
#ifndef TIDEMARK_ALLOCATOR_DEVICE_H
#define TIDEMARK_ALLOCATOR_DEVICE_H

#include "allocator/core.h"

// The device of that number. BASE_INVALID_VALUE if there is none, BASE_CUDA if it cannot be
// asked.
enum base_status cca__device_make(struct cca *cca, int ordinal,
                                  struct cca__device **device) BASE_MUST_USE;
static inline enum base_status cca__device_get(struct cca *cca, int ordinal,
                                               struct cca__device **device) {
    if (__builtin_expect(ordinal >= 0 && ordinal < CCA__DEVICES_MAX, 1)) {
        // Acquire pairs with the release of cca__device_make.
        *device = atomic_load_explicit(&cca->devices[ordinal], memory_order_acquire);
        if (__builtin_expect(*device != NULL, 1)) return BASE_OK;
    }
    return cca__device_make(cca, ordinal, device);
}
// Returns all memory of the device; no other thread is in the allocator.
void cca__device_destroy(struct cca__device *device);

static inline size_t cca__stream_place(cudaStream_t handle, size_t capacity) {
    return (size_t)(((uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u) >> 32) & (capacity - 1);
}

// The stream of that handle; takes no lock if it is known.
enum base_status cca__stream_make(struct cca__device *device, cudaStream_t handle,
                                  struct cca__stream **stream) BASE_MUST_USE;
static inline enum base_status cca__stream_get(struct cca__device *device, cudaStream_t handle,
                                               struct cca__stream **stream) {
    // Acquire pairs with the releases of cca__stream_make.
    const struct cca__stream_table *const table =
        atomic_load_explicit(&device->stream_table, memory_order_acquire);
    for (size_t place = cca__stream_place(handle, table->capacity);;
         place = (place + 1) & (table->capacity - 1)) {
        struct cca__stream *const found =
            atomic_load_explicit(&table->slots[place], memory_order_acquire);
        if (found == NULL) return cca__stream_make(device, handle, stream);
        if (__builtin_expect(found->handle == handle, 1)) {
            *stream = found;
            return BASE_OK;
        }
    }
}

// The locks of all streams of the device, in order of creation.
void cca__streams_lock_all(struct cca__device *device);
void cca__streams_unlock_all(struct cca__device *device);

// The fraction of the device's memory that the allocator may take; 1 and above: no limit.
// growth_lock and the locks of all streams held.
void cca__device_set_fraction_locked(struct cca__device *device, double fraction);
// After settings changed, the locks of all streams held.
void cca__device_update_settings_locked(struct cca__device *device);
void cca__devices_update_settings_locked(struct cca *cca);

// All locks of all devices but for the leaves. The settings lock is held: no device is made meanwhile.
void cca__devices_lock_all(struct cca *cca);
void cca__devices_unlock_all(struct cca *cca);

// Makes the device current for calls that act on the current device, and the one before current
// again.
struct cca__device_scope {
    int previous, ordinal;
};
enum base_status cca__device_scope_begin(struct cca__device_scope *scope,
                                         int ordinal) BASE_MUST_USE;
void cca__device_scope_end(const struct cca__device_scope *scope);

// The status for a failed CUDA call: PyTorch's "CUDA error: ...", then the call and what it was
// for. Clears the thread's last error.
enum base_status cca__cuda_failed(cudaError_t error, const char *format, ...) BASE_PRINTF(2, 3);

#endif
