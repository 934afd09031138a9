// See captures.h.
#include "allocator/captures.h"

#include "allocator/device.h"

//------------------------------------------------------------------------------------------------
// Marks.

enum base_status cca_capture_begin(struct allocator *allocator, int ordinal,
                                   const struct cca_capture *capture) {
    struct cca__device *device;
    enum base_status status = cca__device_get(cca__of(allocator), ordinal, &device);
    if (status != BASE_OK)
        return status;
    cca__lock_take(&device->events_lock);
    status = cca__marks_begin(&device->marks, capture);
    cca__lock_release(&device->events_lock);
    return status;
}

enum base_status cca_capture_end(struct allocator *allocator, int ordinal, unsigned long long id) {
    struct cca__device *device;
    enum base_status status = cca__device_get(cca__of(allocator), ordinal, &device);
    if (status != BASE_OK)
        return status;
    cca__lock_take(&device->events_lock);
    status = cca__marks_end(&device->marks, id);
    cca__lock_release(&device->events_lock);
    return status;
}

//------------------------------------------------------------------------------------------------

void cca_set_current_stream_source(struct allocator *allocator,
                                   const struct cca_current_stream_source *source) {
    cca__of(allocator)->current_stream =
        source != NULL ? *source : (struct cca_current_stream_source){0};
}

static bool accepts_captured(void *context, cudaStream_t stream) {
    const unsigned long long id =
        atomic_load_explicit((const _Atomic(unsigned long long) *)context, memory_order_relaxed);
    enum cudaStreamCaptureStatus status;
    unsigned long long capture;
    if (id == 0)
        return false;
    // Every out-parameter but the status is optional.
    if (cudaStreamGetCaptureInfo(stream, &status, &capture, NULL, NULL, NULL, NULL) !=
        cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    return status == cudaStreamCaptureStatusActive && capture == id;
}

struct cca_pool_filter cca_capture_filter(const _Atomic(unsigned long long) *id) {
    return (struct cca_pool_filter){.accepts = accepts_captured, .context = (void *)(uintptr_t)id};
}
