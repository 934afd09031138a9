// See pinned_allocator.h.
//
// A block that was used on streams is freed with an event for each (pinned_events.h); a request
// looks at them in order, up to the first that is not complete.
#include "tensor/pinned_allocator.h"

#include "base/address_map.h"
#include "base/thread.h"
#include "tensor/guard.h"
#include "tensor/host_stats.h"
#include "tensor/impl.h"
#include "tensor/pinned_events.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_CLASSES 64
#define NEVER SIZE_MAX // events of a block that a graph has

struct block {
    void *data;
    size_t size, requested;
    struct tensor_pinned_use *uses;
    size_t use_count, use_capacity;
    size_t event_count; // that are queued for it, or NEVER
    bool is_allocated;
    struct block *next;  // free, of its size
    struct block *older; // of all
};

struct pinned {
    struct allocator allocator;
    struct base_mutex mutex; // guards what follows
    struct base_address_map blocks;
    struct block *newest;
    struct block *free[SIZE_CLASSES];
    struct tensor_pinned_events events;
    struct allocator_stats stats;
};

static struct pinned *pinned_of(struct allocator *allocator) {
    return (struct pinned *)(void *)allocator;
}

//------------------------------------------------------------------------------------------------
// Statistics.

static void count_allocated_locked(struct pinned *pinned, const struct block *block, int sign) {
    tensor__host_stat_add(pinned->stats.allocation, sign);
    tensor__host_stat_add(pinned->stats.allocated_bytes, sign * (int64_t)block->size);
    tensor__host_stat_add(pinned->stats.requested_bytes, sign * (int64_t)block->requested);
}

static void count_active_locked(struct pinned *pinned, const struct block *block, int sign) {
    tensor__host_stat_add(pinned->stats.active, sign);
    tensor__host_stat_add(pinned->stats.active_bytes, sign * (int64_t)block->size);
}

static void count_segment_locked(struct pinned *pinned, const struct block *block, int sign) {
    tensor__host_stat_add(pinned->stats.segment, sign);
    tensor__host_stat_add(pinned->stats.reserved_bytes, sign * (int64_t)block->size);
    if (sign > 0)
        ++pinned->stats.num_device_alloc;
    else
        ++pinned->stats.num_device_free;
}

//------------------------------------------------------------------------------------------------
// Driver calls, which a capture of this thread would refuse otherwise: nothing of them is captured.

static cudaError_t host_alloc(void **data, size_t size) {
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaError_t error = cudaThreadExchangeStreamCaptureMode(&mode);
    if (error != cudaSuccess) return error;
    error = cudaHostAlloc(data, size, cudaHostAllocDefault);
    const cudaError_t restored = cudaThreadExchangeStreamCaptureMode(&mode);
    return error == cudaSuccess ? restored : error;
}

//------------------------------------------------------------------------------------------------
// Blocks.

static int class_of(size_t size) { // the power of two
    int power = 0;
    while (((size_t)1 << power) < size)
        ++power;
    return power;
}

static void free_locked(struct pinned *pinned, struct block *block) {
    struct block **const list = &pinned->free[class_of(block->size)];
    count_active_locked(pinned, block, -1);
    block->next = *list;
    *list = block;
}

// Blocks whose events are complete become free.
static enum base_status events_look_locked(struct pinned *pinned) {
    for (;;) {
        void *there;
        const enum base_status status = tensor__pinned_events_take(&pinned->events, &there);
        if (status != BASE_OK || there == NULL) return status;
        struct block *const block = there;
        if (--block->event_count == 0) free_locked(pinned, block);
    }
}

static struct block *free_take_locked(struct pinned *pinned, int class) {
    struct block *const block = pinned->free[class];
    if (block != NULL) pinned->free[class] = block->next;
    return block;
}

// A new one, not in any list yet.
static enum base_status block_create(size_t size, struct block **block) {
    struct block *const made = calloc(1, sizeof *made);
    if (made == NULL) return base_status_set(BASE_HOST_MEMORY, "no host memory for a pinned block");
    const cudaError_t error = host_alloc(&made->data, size);
    if (error == cudaSuccess) {
        made->size = size;
        *block = made;
        return BASE_OK;
    }
    (void)cudaGetLastError();
    free(made);
    if (error == cudaErrorMemoryAllocation)
        return base_status_set(BASE_OUT_OF_MEMORY, "no page-locked host memory for %zu bytes",
                               size);
    return tensor__cuda_status("cudaHostAlloc", error);
}

static enum base_status block_add_locked(struct pinned *pinned, struct block *block) {
    const enum base_status status =
        base_address_map_set(&pinned->blocks, (uintptr_t)block->data, (uintptr_t)block);
    if (status != BASE_OK) return status;
    block->older = pinned->newest;
    pinned->newest = block;
    count_segment_locked(pinned, block, 1);
    return BASE_OK;
}

static void hand_out_locked(struct pinned *pinned, struct block *block, size_t requested) {
    block->is_allocated = true;
    block->requested = requested;
    count_allocated_locked(pinned, block, 1);
    count_active_locked(pinned, block, 1);
}

static enum base_status block_find_locked(struct pinned *pinned, const void *pointer,
                                          struct block **block) {
    uint64_t there;
    if (base_address_map_get(&pinned->blocks, (uintptr_t)pointer, &there)) {
        *block = (struct block *)(uintptr_t)there;
        if ((*block)->is_allocated) return BASE_OK;
    }
    return base_status_set(BASE_INVALID_POINTER, "pinned allocator: %p is no block in use of it",
                           pointer);
}

//------------------------------------------------------------------------------------------------
// Requests and frees.

static enum base_status pinned_malloc(struct allocator *allocator, int device, size_t size,
                                      cudaStream_t stream, void **pointer) {
    (void)device;
    (void)stream;
    struct pinned *const pinned = pinned_of(allocator);
    struct block *block = NULL;
    if (size == 0) {
        *pointer = NULL;
        return BASE_OK;
    }
    if (size > SIZE_MAX / 4)
        return base_status_set(BASE_OUT_OF_MEMORY, "no page-locked host memory for %zu bytes",
                               size);
    const int class = class_of(size);
    base_mutex_lock(&pinned->mutex);
    enum base_status status = events_look_locked(pinned);
    if (status == BASE_OK) block = free_take_locked(pinned, class);
    if (block != NULL) hand_out_locked(pinned, block, size);
    base_mutex_unlock(&pinned->mutex);
    if (block == NULL && status == BASE_OK) {
        status = block_create((size_t)1 << class, &block);
        base_mutex_lock(&pinned->mutex);
        if (status == BASE_OK) status = block_add_locked(pinned, block);
        if (status == BASE_OK)
            hand_out_locked(pinned, block, size);
        else if (status == BASE_OUT_OF_MEMORY)
            ++pinned->stats.num_ooms;
        base_mutex_unlock(&pinned->mutex);
        if (status != BASE_OK && block != NULL) { // it is in no table
            (void)cudaFreeHost(block->data);
            free(block);
        }
    }
    if (status == BASE_OK) *pointer = block->data;
    return status;
}

static enum base_status pinned_record_stream(struct allocator *allocator, void *pointer,
                                             cudaStream_t stream) {
    struct pinned *const pinned = pinned_of(allocator);
    struct block *block = NULL;
    struct tensor_pinned_use use = {.stream = stream};
    if (pointer == NULL) return BASE_OK;
    enum base_status status = tensor__cuda_status("cudaGetDevice", cudaGetDevice(&use.device));
    if (status != BASE_OK) return status;
    base_mutex_lock(&pinned->mutex);
    status = block_find_locked(pinned, pointer, &block);
    for (size_t index = 0; status == BASE_OK && index < block->use_count; ++index)
        if (block->uses[index].stream == stream && block->uses[index].device == use.device) {
            base_mutex_unlock(&pinned->mutex);
            return BASE_OK;
        }
    if (status == BASE_OK && block->use_count == block->use_capacity) {
        const size_t capacity = 2 * block->use_capacity + 2;
        struct tensor_pinned_use *const uses = realloc(block->uses, capacity * sizeof *uses);
        if (uses != NULL) {
            block->uses = uses;
            block->use_capacity = capacity;
        } else {
            status = base_status_set(BASE_HOST_MEMORY, "no host memory for a pinned block's use");
        }
    }
    if (status == BASE_OK) block->uses[block->use_count++] = use;
    base_mutex_unlock(&pinned->mutex);
    return status;
}

static enum base_status pinned_free(struct allocator *allocator, void *pointer) {
    struct pinned *const pinned = pinned_of(allocator);
    struct block *block = NULL;
    if (pointer == NULL) return BASE_OK;
    base_mutex_lock(&pinned->mutex);
    enum base_status status = block_find_locked(pinned, pointer, &block);
    const bool is_captured =
        status == BASE_OK && tensor__pinned_is_captured(block->uses, block->use_count);
    if (status == BASE_OK && !is_captured)
        status =
            tensor__pinned_events_record(&pinned->events, block->uses, block->use_count, block);
    if (status == BASE_OK) {
        block->is_allocated = false;
        count_allocated_locked(pinned, block, -1);
        block->event_count = is_captured ? NEVER : block->use_count;
        block->use_count = 0;
        if (block->event_count == 0) free_locked(pinned, block);
    }
    base_mutex_unlock(&pinned->mutex);
    return status;
}

//------------------------------------------------------------------------------------------------
// The rest of the interface.

static void block_destroy(struct block *block) {
    free(block->uses);
    free(block);
}

static void forget_locked(struct pinned *pinned, struct block *block) {
    struct block **link = &pinned->newest;
    uint64_t removed;
    while (*link != block)
        link = &(*link)->older;
    *link = block->older;
    (void)base_address_map_remove(&pinned->blocks, (uintptr_t)block->data, &removed);
    count_segment_locked(pinned, block, -1);
}

static enum base_status pinned_empty_cache(struct allocator *allocator) {
    struct pinned *const pinned = pinned_of(allocator);
    base_mutex_lock(&pinned->mutex);
    enum base_status status = events_look_locked(pinned);
    for (int class = 0; class < SIZE_CLASSES && status == BASE_OK; ++class)
        while (pinned->free[class] != NULL && status == BASE_OK) {
            struct block *const block = pinned->free[class];
            status = tensor__cuda_status("cudaFreeHost", cudaFreeHost(block->data));
            if (status != BASE_OK) break;
            pinned->free[class] = block->next;
            forget_locked(pinned, block);
            block_destroy(block);
        }
    base_mutex_unlock(&pinned->mutex);
    return status;
}

static enum base_status pinned_base_allocation(struct allocator *allocator, const void *pointer,
                                               void **base, size_t *size) {
    struct pinned *const pinned = pinned_of(allocator);
    struct block *block = NULL;
    base_mutex_lock(&pinned->mutex);
    const enum base_status status = block_find_locked(pinned, pointer, &block);
    if (status == BASE_OK) {
        *base = block->data;
        *size = block->size;
    }
    base_mutex_unlock(&pinned->mutex);
    return status;
}

static enum base_status pinned_largest_block(struct allocator *allocator, int device,
                                             size_t *size) {
    (void)allocator;
    (void)device;
    *size = SIZE_MAX / 4;
    return BASE_OK;
}

static enum base_status pinned_stats(struct allocator *allocator, int device,
                                     struct allocator_stats *stats) {
    (void)device;
    struct pinned *const pinned = pinned_of(allocator);
    base_mutex_lock(&pinned->mutex);
    *stats = pinned->stats;
    base_mutex_unlock(&pinned->mutex);
    return BASE_OK;
}

static enum base_status pinned_reset_peak_stats(struct allocator *allocator, int device) {
    (void)device;
    struct pinned *const pinned = pinned_of(allocator);
    base_mutex_lock(&pinned->mutex);
    tensor__host_stats_reset_peaks(&pinned->stats);
    base_mutex_unlock(&pinned->mutex);
    return BASE_OK;
}

static enum base_status pinned_reset_accumulated_stats(struct allocator *allocator, int device) {
    (void)device;
    struct pinned *const pinned = pinned_of(allocator);
    base_mutex_lock(&pinned->mutex);
    tensor__host_stats_reset_accumulated(&pinned->stats);
    base_mutex_unlock(&pinned->mutex);
    return BASE_OK;
}

static enum base_status pinned_snapshot(struct allocator *allocator,
                                        struct allocator_snapshot *snapshot) {
    (void)allocator;
    (void)snapshot;
    return base_status_set(BASE_UNSUPPORTED, "the pinned allocator has no segments to show");
}

static enum base_status pinned_set_observer(struct allocator *allocator,
                                            const struct allocator_observer *observer) {
    (void)allocator;
    if (observer == NULL) return BASE_OK;
    return base_status_set(BASE_UNSUPPORTED, "the pinned allocator has no observer");
}

// cudaFreeHost waits for what uses the memory.
static void pinned_destroy(struct allocator *allocator) {
    struct pinned *const pinned = pinned_of(allocator);
    tensor__pinned_events_deinit(&pinned->events);
    while (pinned->newest != NULL) {
        struct block *const block = pinned->newest;
        pinned->newest = block->older;
        (void)cudaFreeHost(block->data);
        block_destroy(block);
    }
    base_address_map_deinit(&pinned->blocks);
    base_mutex_deinit(&pinned->mutex);
    free(pinned);
}

static const struct allocator_operations operations = {
    .name = "pinned",
    .malloc = pinned_malloc,
    .free = pinned_free,
    .record_stream = pinned_record_stream,
    .empty_cache = pinned_empty_cache,
    .base_allocation = pinned_base_allocation,
    .largest_block = pinned_largest_block,
    .stats = pinned_stats,
    .reset_peak_stats = pinned_reset_peak_stats,
    .reset_accumulated_stats = pinned_reset_accumulated_stats,
    .snapshot = pinned_snapshot,
    .set_observer = pinned_set_observer,
    .destroy = pinned_destroy,
};

enum base_status tensor_pinned_allocator_create(struct allocator **allocator) {
    struct pinned *const pinned = calloc(1, sizeof *pinned);
    if (pinned == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a pinned allocator");
    pinned->allocator.operations = &operations;
    base_mutex_init(&pinned->mutex);
    *allocator = &pinned->allocator;
    return BASE_OK;
}

bool tensor_is_pinned(struct tensor self) {
    const struct allocator *const allocator = self.impl->storage->place.allocator;
    return allocator != NULL && allocator->operations == &operations;
}
