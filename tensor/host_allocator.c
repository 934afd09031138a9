// See host_allocator.h. A block is malloc'ed with a header in front that holds its size and a mark,
// so that a foreign pointer is refused rather than freed.
#include "tensor/host_allocator.h"

#include "base/address_map.h"
#include "base/thread.h"
#include "tensor/host_stats.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64 // as PyTorch's own for CPU tensors

struct host_allocator {
    struct allocator allocator;
    bool zeroes;
    struct base_mutex mutex; // guards what follows
    struct base_address_map sizes;
    struct allocator_stats stats;
    uint64_t fail_at;
};

static struct host_allocator *host_of(struct allocator *allocator) {
    return (struct host_allocator *)allocator;
}

static void count_locked(struct host_allocator *host, int64_t blocks, int64_t bytes) {
    tensor__host_stat_add(host->stats.allocation, blocks);
    tensor__host_stat_add(host->stats.active, blocks);
    tensor__host_stat_add(host->stats.allocated_bytes, bytes);
    tensor__host_stat_add(host->stats.requested_bytes, bytes);
    tensor__host_stat_add(host->stats.active_bytes, bytes);
    tensor__host_stat_add(host->stats.reserved_bytes, bytes);
}

static bool refused_locked(struct host_allocator *host) {
    if (host->fail_at == 0)
        return false;
    return --host->fail_at == 0;
}

static enum base_status host_malloc(struct allocator *allocator, int device, size_t size,
                                    cudaStream_t stream, void **pointer) {
    (void)device;
    (void)stream;
    struct host_allocator *host = host_of(allocator);
    if (size == 0) {
        *pointer = NULL;
        return BASE_OK;
    }
    base_mutex_lock(&host->mutex);
    void *data = NULL;
    if (size <= SIZE_MAX / 2 && !refused_locked(host))
        data = aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    enum base_status status = BASE_OK;
    if (data == NULL)
        status =
            base_status_set(BASE_OUT_OF_MEMORY, "host allocator: no memory for %zu bytes", size);
    else
        status = base_address_map_set(&host->sizes, (uint64_t)(uintptr_t)data, size);
    if (status == BASE_OK) {
        count_locked(host, 1, (int64_t)size);
        if (host->zeroes)
            memset(data, 0, size);
        *pointer = data;
    } else {
        free(data);
        host->stats.num_ooms++;
    }
    base_mutex_unlock(&host->mutex);
    return status;
}

static enum base_status host_free(struct allocator *allocator, void *pointer) {
    struct host_allocator *host = host_of(allocator);
    if (pointer == NULL)
        return BASE_OK;
    uint64_t size;
    base_mutex_lock(&host->mutex);
    const bool is_ours = base_address_map_remove(&host->sizes, (uint64_t)(uintptr_t)pointer, &size);
    if (is_ours)
        count_locked(host, -1, -(int64_t)size);
    base_mutex_unlock(&host->mutex);
    if (!is_ours)
        return base_status_set(BASE_INVALID_POINTER, "host allocator: %p is no block of it",
                               pointer);
    free(pointer);
    return BASE_OK;
}

static enum base_status host_record_stream(struct allocator *allocator, void *pointer,
                                           cudaStream_t stream) {
    (void)allocator;
    (void)pointer;
    (void)stream;
    return BASE_OK;
}

static enum base_status host_empty_cache(struct allocator *allocator) {
    (void)allocator;
    return BASE_OK;
}

static enum base_status host_base_allocation(struct allocator *allocator, const void *pointer,
                                             void **base, size_t *size) {
    struct host_allocator *host = host_of(allocator);
    uint64_t bytes;
    base_mutex_lock(&host->mutex);
    const bool is_ours = base_address_map_get(&host->sizes, (uint64_t)(uintptr_t)pointer, &bytes);
    base_mutex_unlock(&host->mutex);
    if (!is_ours)
        return base_status_set(BASE_INVALID_POINTER, "host allocator: %p is no block of it",
                               pointer);
    *base = (void *)(uintptr_t)pointer;
    *size = bytes;
    return BASE_OK;
}

static enum base_status host_largest_block(struct allocator *allocator, int device, size_t *size) {
    (void)allocator;
    (void)device;
    *size = SIZE_MAX / 2;
    return BASE_OK;
}

static enum base_status host_stats(struct allocator *allocator, int device,
                                   struct allocator_stats *stats) {
    (void)device;
    struct host_allocator *host = host_of(allocator);
    base_mutex_lock(&host->mutex);
    *stats = host->stats;
    base_mutex_unlock(&host->mutex);
    return BASE_OK;
}

static enum base_status host_reset_peak_stats(struct allocator *allocator, int device) {
    (void)device;
    struct host_allocator *host = host_of(allocator);
    base_mutex_lock(&host->mutex);
    tensor__host_stats_reset_peaks(&host->stats);
    base_mutex_unlock(&host->mutex);
    return BASE_OK;
}

static enum base_status host_reset_accumulated_stats(struct allocator *allocator, int device) {
    (void)device;
    struct host_allocator *host = host_of(allocator);
    base_mutex_lock(&host->mutex);
    tensor__host_stats_reset_accumulated(&host->stats);
    base_mutex_unlock(&host->mutex);
    return BASE_OK;
}

static enum base_status host_snapshot(struct allocator *allocator,
                                      struct allocator_snapshot *snapshot) {
    (void)allocator;
    (void)snapshot;
    return base_status_set(BASE_UNSUPPORTED, "the host allocator has no segments to show");
}

static enum base_status host_set_observer(struct allocator *allocator,
                                          const struct allocator_observer *observer) {
    (void)allocator;
    if (observer == NULL)
        return BASE_OK;
    return base_status_set(BASE_UNSUPPORTED, "the host allocator has no observer");
}

static void host_destroy(struct allocator *allocator) {
    struct host_allocator *host = host_of(allocator);
    for (size_t index = 0; index < host->sizes.capacity; index++)
        if (host->sizes.entries[index].value != BASE_ADDRESS_UNUSED)
            free((void *)(uintptr_t)host->sizes.entries[index].address);
    base_address_map_deinit(&host->sizes);
    base_mutex_deinit(&host->mutex);
    free(host);
}

static const struct allocator_operations operations = {
    .malloc = host_malloc,
    .free = host_free,
    .record_stream = host_record_stream,
    .empty_cache = host_empty_cache,
    .base_allocation = host_base_allocation,
    .largest_block = host_largest_block,
    .stats = host_stats,
    .reset_peak_stats = host_reset_peak_stats,
    .reset_accumulated_stats = host_reset_accumulated_stats,
    .snapshot = host_snapshot,
    .set_observer = host_set_observer,
    .destroy = host_destroy,
};

enum base_status tensor_host_allocator_create(bool zeroes, struct allocator **allocator) {
    struct host_allocator *host = calloc(1, sizeof *host);
    if (host == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a host allocator");
    host->allocator.operations = &operations;
    host->zeroes = zeroes;
    base_mutex_init(&host->mutex);
    *allocator = &host->allocator;
    return BASE_OK;
}

void tensor_host_allocator_fail_at(struct allocator *allocator, uint64_t fail_at) {
    struct host_allocator *host = host_of(allocator);
    base_mutex_lock(&host->mutex);
    host->fail_at = fail_at;
    base_mutex_unlock(&host->mutex);
}
