// Devices as the allocator knows them: made when first named, found without a lock afterwards.
#ifndef TIDEMARK_ALLOCATOR_DEVICE_H
#define TIDEMARK_ALLOCATOR_DEVICE_H

#include "allocator/core.h"
#include "allocator/fork.h"
#include "allocator/stream.h"

// The device of that number. BASE_INVALID_VALUE if there is none, BASE_CUDA if it cannot be
// asked.
enum base_status cca__device_make(struct cca *cca, int ordinal,
                                  struct cca__device **device) BASE_MUST_USE;
// The same for a call that is not in the table of operations. BASE_UNSUPPORTED, as
// cca__require_caching.
enum base_status cca__device_of(struct allocator *allocator, int ordinal, const char *what,
                                struct cca__device **device) BASE_MUST_USE;
static inline enum base_status cca__device_get(struct cca *cca, int ordinal,
                                               struct cca__device **device) {
    if (__builtin_expect(cca->is_of_parent, 0)) return cca__fork_check(cca);
    if (__builtin_expect(ordinal >= 0 && ordinal < CCA__DEVICES_MAX, 1)) {
        // Acquire pairs with the release of cca__device_make.
        *device = atomic_load_explicit(&cca->devices[ordinal], memory_order_acquire);
        if (__builtin_expect(*device != NULL, 1)) return BASE_OK;
    }
    return cca__device_make(cca, ordinal, device);
}
// Returns all memory of the device; no other thread is in the allocator.
void cca__device_destroy(struct cca__device *device);

// The device of that number if it was named before, without a lock; else NULL.
static inline struct cca__device *cca__device_known(const struct cca *cca, int ordinal) {
    if (__builtin_expect((unsigned)ordinal >= CCA__DEVICES_MAX, 0)) return NULL;
    // Acquire pairs with the release of cca__device_make.
    return atomic_load_explicit(&cca->devices[(unsigned)ordinal], memory_order_acquire);
}

// The fraction of the device's memory that the allocator may take; 1 and above: no limit.
// growth_lock and the locks of all streams held.
void cca__device_set_fraction_locked(struct cca__device *device, double fraction);
// After settings changed, or whether somebody watches: which streams are special. The locks of all
// streams held.
void cca__device_update_settings_locked(struct cca__device *device);
void cca__devices_update_settings_locked(struct cca *cca);

// All locks of all devices but for the leaves; first those that are held over driver calls, so that
// no hit waits for one. The settings lock is held: no device is made meanwhile.
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
