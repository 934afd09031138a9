// See captures.h.
#include "allocator/captures.h"

#include "allocator/deferral.h"
#include "allocator/device.h"

//------------------------------------------------------------------------------------------------
// Marks.

static void lock(struct cca__device *device) {
    cca__lock_take(&device->growth_lock);
    cca__lock_take(&device->events_lock);
    cca__lock_take(&device->captures_lock);
}

static enum base_status unlock(struct cca__device *device, enum base_status status) {
    cca__lock_release(&device->captures_lock);
    cca__captures_update_locked(device);
    cca__lock_release(&device->events_lock);
    cca__lock_release(&device->growth_lock);
    return status;
}

enum base_status cca_capture_begin(struct allocator *allocator, int ordinal,
                                   const struct cca_capture *capture) {
    struct cca__device *device;
    enum base_status status = cca__device_of(allocator, ordinal, "graph captures", &device);
    if (status != BASE_OK) return status;
    lock(device);
    status = cca__marks_begin(&device->captures.marks, capture);
    return unlock(device, status);
}

enum base_status cca_capture_end(struct allocator *allocator, int ordinal, unsigned long long id) {
    struct cca__device *device;
    enum base_status status = cca__device_of(allocator, ordinal, "graph captures", &device);
    if (status != BASE_OK) return status;
    lock(device);
    const uint64_t bit = cca__marks_bit(&device->captures.marks, id);
    const struct cca_capture capture =
        bit != 0 ? device->captures.marks.captures[__builtin_ctzll(bit)] : (struct cca_capture){0};
    status = cca__marks_end(&device->captures.marks, id);
    if (status == BASE_OK) cca__captures_forget_locked(device, &capture, bit);
    return unlock(device, status);
}

//------------------------------------------------------------------------------------------------

enum base_status cca_set_current_stream_source(struct allocator *allocator,
                                               const struct cca_current_stream_source *source) {
    const enum base_status status = cca__require_caching(allocator, "graph captures");
    if (status != BASE_OK) return status;
    cca__of(allocator)->current_stream =
        source != NULL ? *source : (struct cca_current_stream_source){0};
    return BASE_OK;
}

static bool accepts_captured(void *context, cudaStream_t stream) {
    const unsigned long long id =
        atomic_load_explicit((const _Atomic(unsigned long long) *)context, memory_order_relaxed);
    enum cudaStreamCaptureStatus status;
    unsigned long long capture;
    if (id == 0) return false;
    // Every out-parameter but the status is optional.
    if (cudaStreamGetCaptureInfo(stream, &status, &capture, NULL, NULL, NULL, NULL) !=
        cudaSuccess) {
        (void)cudaGetLastError();
        return true;
    }
    return status == cudaStreamCaptureStatusActive && capture == id;
}

bool cca__capture_filter_knows(const struct cca_pool_filter *filter, unsigned long long id,
                               bool *accepts) {
    if (filter->accepts != accepts_captured) return false;
    *accepts =
        id != 0 && id == atomic_load_explicit((const _Atomic(unsigned long long) *)filter->context,
                                              memory_order_relaxed);
    return true;
}

struct cca_pool_filter cca_capture_filter(const _Atomic(unsigned long long) *id) {
    return (struct cca_pool_filter){.accepts = accepts_captured, .context = (void *)(uintptr_t)id};
}
