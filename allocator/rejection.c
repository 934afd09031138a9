// See rejection.h. The warning and the sentence are PyTorch's.
#include "allocator/rejection.h"

#include "allocator/out_of_memory.h"
#include "allocator/warning.h"

#include <time.h>

#define WARNING_INTERVAL_NS ((uint64_t)60 * 1000 * 1000 * 1000) // PyTorch's

enum base_status cca_set_rejection_observer(struct allocator *allocator,
                                            const struct cca_rejection_observer *observer) {
    const enum base_status status = cca__require_caching(allocator, "rejections");
    if (status != BASE_OK) return status;
    cca__of(allocator)->rejection_observer =
        observer != NULL ? *observer : (struct cca_rejection_observer){0};
    return BASE_OK;
}

bool cca__rejects_locked(struct cca__device *device, size_t size, struct cca_rejection *rejection) {
    const struct cca__config *const config = &device->owner->config;
    if (!config->throw_on_cudamalloc_oom) return false;
    const double fraction = config->per_process_memory_fraction;
    const size_t limit = (size_t)(fraction * (double)device->total_bytes);
    if (device->reserved_bytes <= limit && size <= limit - device->reserved_bytes) return false;
    ++device->num_oom_rejections;
    *rejection = (struct cca_rejection){
        .device = device->ordinal,
        .segment_size = size,
        .reserved = device->reserved_bytes,
        .total = device->total_bytes,
        .fraction = fraction,
        .limit = limit,
    };
    return true;
}

static uint64_t now_ns(const struct cca *cca) {
    if (cca->clock.now_ns != NULL) return cca->clock.now_ns(cca->clock.context);
    struct timespec now;
    BASE_CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// Whether a warning is due; of several threads that ask at once, one gets it.
static bool is_warning_due(struct cca *cca) {
    const uint64_t now = now_ns(cca);
    uint64_t last = atomic_load_explicit(&cca->rejection_warned_ns, memory_order_relaxed);
    if (last != 0 && now - last < WARNING_INTERVAL_NS) return false;
    return atomic_compare_exchange_strong_explicit(&cca->rejection_warned_ns, &last,
                                                   now != 0 ? now : 1, memory_order_relaxed,
                                                   memory_order_relaxed);
}

enum base_status cca__rejection_tell(struct cca *cca, const struct cca_rejection *rejection,
                                     size_t requested) {
    if (cca->rejection_observer.rejected != NULL)
        cca->rejection_observer.rejected(cca->rejection_observer.context, rejection);
    char segment[CCA__SIZE_TEXT], reserved[CCA__SIZE_TEXT], limit[CCA__SIZE_TEXT];
    char total[CCA__SIZE_TEXT], request[CCA__SIZE_TEXT];
    if (is_warning_due(cca))
        cca__warn(&cca->warnings,
                  "Preemptively rejecting allocation: requested %s but total_allocated_memory "
                  "(%s) + requested size would exceed memory limit (%s = %g%% of %s). Set "
                  "throw_on_cudamalloc_oom:false to disable.",
                  cca__size_text(rejection->segment_size, segment),
                  cca__size_text(rejection->reserved, reserved),
                  cca__size_text(rejection->limit, limit), 100.0 * rejection->fraction,
                  cca__size_text(rejection->total, total));
    return base_status_set(BASE_OUT_OF_MEMORY,
                           "CUDA out of memory. Allocation was preemptively rejected because it "
                           "would exceed per_process_memory_fraction limit. Requested size: %s",
                           cca__size_text(requested, request));
}
