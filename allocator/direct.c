// See direct.h. One lock guards the counters and the table of live pointers; no device call is
// made under it.
#include "allocator/direct.h"

#include "allocator/lock.h"
#include "allocator/pointer.h"
#include "allocator/stats.h"
#include "base/address_map.h"

#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 64

struct direct {
    struct allocator interface;
    struct allocator_observer observer;
    struct cca__lock lock;          // guards all below
    struct base_address_map blocks; // address to struct direct_block
    struct allocator_stats stats[DEVICES_MAX];
    struct direct_block *first_block;
    struct direct_block *first_refused; // freed, but the driver did not take the memory back
    size_t block_count;
    uint64_t registration;
};

// A live request, which is its own segment.
struct direct_block {
    struct direct_block *previous, *next;
    void *address;
    size_t size;
    cudaStream_t stream;
    uint64_t registration;
    int device;
};

static struct direct *direct_of(struct allocator *allocator) {
    return (struct direct *)(void *)allocator;
}

static void observe(const struct direct *direct, enum allocator_action action,
                    const struct direct_block *block) {
    if (direct->observer.event == NULL) return;
    const bool is_block = action == ALLOCATOR_ALLOC || action == ALLOCATOR_FREE_REQUESTED ||
                          action == ALLOCATOR_FREE_COMPLETED;
    direct->observer.event(direct->observer.context, &(struct allocator_event){
                                                         .action = action,
                                                         .device = block->device,
                                                         .address = block->address,
                                                         .size = block->size,
                                                         .block_size = is_block ? block->size : 0,
                                                         .stream = block->stream,
                                                     });
}

// There are no pools: what is counted is counted for all only.
static void count_block(struct allocator_stats *stats, int amount, size_t size) {
    const int64_t bytes = amount * (int64_t)size;
    cca__stat_change(&stats->allocation[ALLOCATOR_STAT_ALL], amount);
    cca__stat_change(&stats->segment[ALLOCATOR_STAT_ALL], amount);
    cca__stat_change(&stats->active[ALLOCATOR_STAT_ALL], amount);
    cca__stat_change(&stats->allocated_bytes[ALLOCATOR_STAT_ALL], bytes);
    cca__stat_change(&stats->reserved_bytes[ALLOCATOR_STAT_ALL], bytes);
    cca__stat_change(&stats->active_bytes[ALLOCATOR_STAT_ALL], bytes);
    cca__stat_change(&stats->requested_bytes[ALLOCATOR_STAT_ALL], bytes);
    if (amount > 0)
        ++stats->num_device_alloc;
    else
        ++stats->num_device_free;
}

static enum base_status check_device(int device) {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
        return base_status_set(BASE_CUDA, "cudaGetDeviceCount failed: %s", cudaGetErrorName(error));
    }
    if (device >= 0 && device < count && device < DEVICES_MAX) return BASE_OK;
    return base_status_set(BASE_INVALID_VALUE, "device %d: there are devices 0 to %d", device,
                           count - 1);
}

// Calls cudaMalloc or cudaFree with DEVICE current; and cudaMemGetInfo if memory is out.
struct device_call {
    int device;
    size_t size;
    void *memory;
    size_t free_bytes, total_bytes;
    const char *name; // of the call that was made last
};

static cudaError_t malloc_on_device(struct device_call *call) {
    call->name = "cudaMalloc";
    const cudaError_t error = cudaMalloc(&call->memory, call->size);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        if (cudaMemGetInfo(&call->free_bytes, &call->total_bytes) != cudaSuccess)
            (void)cudaGetLastError();
    }
    return error;
}

static cudaError_t free_on_device(struct device_call *call) {
    call->name = "cudaFree";
    return cudaFree(call->memory);
}

static cudaError_t call_on_device(cudaError_t (*body)(struct device_call *),
                                  struct device_call *call) {
    int previous;
    call->name = "cudaGetDevice";
    cudaError_t error = cudaGetDevice(&previous);
    if (error == cudaSuccess && previous != call->device) {
        call->name = "cudaSetDevice";
        error = cudaSetDevice(call->device);
    }
    if (error != cudaSuccess) return error;
    error = body(call);
    if (previous != call->device && cudaSetDevice(previous) != cudaSuccess)
        (void)cudaGetLastError();
    return error;
}

static enum base_status out_of_memory(struct direct *direct, const struct device_call *call,
                                      cudaStream_t stream) {
    cca__lock_take(&direct->lock);
    ++direct->stats[call->device].num_ooms;
    if (direct->observer.event != NULL)
        direct->observer.event(direct->observer.context, &(struct allocator_event){
                                                             .action = ALLOCATOR_OOM,
                                                             .device = call->device,
                                                             .size = call->size,
                                                             .device_free = call->free_bytes,
                                                             .stream = stream,
                                                         });
    cca__lock_release(&direct->lock);
    return base_status_set(BASE_OUT_OF_MEMORY,
                           "out of device memory: cudaMalloc of %zu bytes on device %d, of whose "
                           "%zu bytes %zu are free",
                           call->size, call->device, call->total_bytes, call->free_bytes);
}

static void link_block(struct direct *direct, struct direct_block *block) {
    block->registration = ++direct->registration;
    block->next = direct->first_block;
    if (block->next != NULL) block->next->previous = block;
    direct->first_block = block;
    ++direct->block_count;
}

static void unlink_block(struct direct *direct, struct direct_block *block) {
    if (block->next != NULL) block->next->previous = block->previous;
    if (block->previous != NULL)
        block->previous->next = block->next;
    else
        direct->first_block = block->next;
    --direct->block_count;
}

static enum base_status direct_malloc(struct allocator *allocator, int device, size_t size,
                                      cudaStream_t stream, void **pointer) {
    struct direct *const direct = direct_of(allocator);
    if (size == 0) {
        *pointer = NULL;
        return BASE_OK;
    }
    enum base_status status = check_device(device);
    if (status != BASE_OK) return status;
    struct direct_block *const block = calloc(1, sizeof *block);
    if (block == NULL) return base_status_set(BASE_HOST_MEMORY, "out of host memory for a block");
    struct device_call call = {.device = device, .size = size};
    const cudaError_t error = call_on_device(malloc_on_device, &call);
    if (error == cudaErrorMemoryAllocation) {
        free(block);
        return out_of_memory(direct, &call, stream);
    }
    if (error != cudaSuccess) {
        free(block);
        (void)cudaGetLastError();
        return base_status_set(BASE_CUDA, "%s for a block of %zu bytes on device %d failed: %s (%s)",
                               call.name, size, device, cudaGetErrorName(error),
                               cudaGetErrorString(error));
    }
    *block = (struct direct_block){
        .address = call.memory, .size = size, .stream = stream, .device = device};
    cca__lock_take(&direct->lock);
    status = base_address_map_set(&direct->blocks, (uint64_t)(uintptr_t)block->address,
                                  (uint64_t)(uintptr_t)block);
    if (status == BASE_OK) {
        link_block(direct, block);
        count_block(&direct->stats[device], 1, size);
        observe(direct, ALLOCATOR_SEGMENT_ALLOC, block);
        observe(direct, ALLOCATOR_ALLOC, block);
    }
    cca__lock_release(&direct->lock);
    if (status != BASE_OK) {
        (void)call_on_device(free_on_device, &call); // the failure that led here is what counts
        free(block);
        return status;
    }
    *pointer = block->address;
    return BASE_OK;
}

// The block leaves the books before cudaFree, so that a second free is refused and the address
// may be given out again at once.
static enum base_status direct_free(struct allocator *allocator, void *pointer) {
    struct direct *const direct = direct_of(allocator);
    uint64_t value;
    if (pointer == NULL) return BASE_OK;
    cca__lock_take(&direct->lock);
    if (!base_address_map_remove(&direct->blocks, (uint64_t)(uintptr_t)pointer, &value)) {
        cca__lock_release(&direct->lock);
        return cca__pointer_not_live(pointer);
    }
    struct direct_block *const block = (struct direct_block *)(uintptr_t)value;
    unlink_block(direct, block);
    count_block(&direct->stats[block->device], -1, block->size);
    observe(direct, ALLOCATOR_FREE_REQUESTED, block);
    observe(direct, ALLOCATOR_FREE_COMPLETED, block);
    observe(direct, ALLOCATOR_SEGMENT_FREE, block);
    cca__lock_release(&direct->lock);
    struct device_call call = {.device = block->device, .memory = block->address};
    const cudaError_t error = call_on_device(free_on_device, &call);
    const size_t size = block->size;
    if (error == cudaSuccess) {
        free(block);
        return BASE_OK;
    }
    (void)cudaGetLastError();
    cca__lock_take(&direct->lock);
    block->next = direct->first_refused;
    direct->first_refused = block;
    cca__lock_release(&direct->lock);
    return base_status_set(BASE_CUDA,
                           "%s for the free of %zu bytes at %p on device %d failed: %s (%s); it is "
                           "tried again when the allocator ends",
                           call.name, size, pointer, call.device, cudaGetErrorName(error),
                           cudaGetErrorString(error));
}

static enum base_status direct_record_stream(struct allocator *allocator, void *pointer,
                                             cudaStream_t stream) {
    struct direct *const direct = direct_of(allocator);
    uint64_t value;
    (void)stream; // cudaFree waits for all streams
    if (pointer == NULL) return BASE_OK;
    cca__lock_take(&direct->lock);
    const bool is_live =
        base_address_map_get(&direct->blocks, (uint64_t)(uintptr_t)pointer, &value);
    cca__lock_release(&direct->lock);
    return is_live ? BASE_OK : cca__pointer_not_live(pointer);
}

static enum base_status direct_empty_cache(struct allocator *allocator) {
    (void)allocator; // nothing is cached
    return BASE_OK;
}

static enum base_status direct_base_allocation(struct allocator *allocator, const void *pointer,
                                               void **base, size_t *size) {
    struct direct *const direct = direct_of(allocator);
    uint64_t value;
    enum base_status status = BASE_OK;
    // Under the lock a block that is found cannot go away.
    cca__lock_take(&direct->lock);
    if (base_address_map_get(&direct->blocks, (uint64_t)(uintptr_t)pointer, &value)) {
        const struct direct_block *const block = (const struct direct_block *)(uintptr_t)value;
        *base = block->address;
        *size = block->size;
    } else {
        status = cca__pointer_not_live(pointer);
    }
    cca__lock_release(&direct->lock);
    return status;
}

static cudaError_t info_on_device(struct device_call *call) {
    call->name = "cudaMemGetInfo";
    return cudaMemGetInfo(&call->free_bytes, &call->total_bytes);
}

static enum base_status direct_largest_block(struct allocator *allocator, int device,
                                             size_t *size) {
    (void)allocator;
    enum base_status status = check_device(device);
    if (status != BASE_OK) return status;
    struct device_call call = {.device = device};
    const cudaError_t error = call_on_device(info_on_device, &call);
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
        return base_status_set(BASE_CUDA, "%s on device %d failed: %s", call.name, device,
                               cudaGetErrorName(error));
    }
    *size = call.free_bytes;
    return BASE_OK;
}

static enum base_status direct_stats(struct allocator *allocator, int device,
                                     struct allocator_stats *stats) {
    struct direct *const direct = direct_of(allocator);
    const enum base_status status = check_device(device);
    if (status != BASE_OK) return status;
    cca__lock_take(&direct->lock);
    *stats = direct->stats[device];
    cca__lock_release(&direct->lock);
    stats->max_split_size = -1;
    return BASE_OK;
}

// The families that count_block changes.
static void each_stat(struct allocator_stats *stats, void (*body)(struct allocator_stat *stat)) {
#define DIRECT_EACH_STAT(name) body(&stats->name[ALLOCATOR_STAT_ALL]);
    ALLOCATOR_STAT_LIST(DIRECT_EACH_STAT)
#undef DIRECT_EACH_STAT
}

static void forget_peak(struct allocator_stat *stat) { stat->peak = stat->current; }
static void forget_accumulated(struct allocator_stat *stat) { stat->allocated = stat->freed = 0; }

static enum base_status direct_reset_peak_stats(struct allocator *allocator, int device) {
    struct direct *const direct = direct_of(allocator);
    const enum base_status status = check_device(device);
    if (status != BASE_OK) return status;
    cca__lock_take(&direct->lock);
    each_stat(&direct->stats[device], forget_peak);
    cca__lock_release(&direct->lock);
    return BASE_OK;
}

static enum base_status direct_reset_accumulated_stats(struct allocator *allocator, int device) {
    struct direct *const direct = direct_of(allocator);
    const enum base_status status = check_device(device);
    if (status != BASE_OK) return status;
    cca__lock_take(&direct->lock);
    struct allocator_stats *const stats = &direct->stats[device];
    each_stat(stats, forget_accumulated);
    stats->num_ooms = stats->num_device_alloc = stats->num_device_free = 0;
    cca__lock_release(&direct->lock);
    return BASE_OK;
}

static int compare_segments(const void *a, const void *b) {
    const struct allocator_snapshot_segment *const x = a, *const y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    return ((uintptr_t)x->address > (uintptr_t)y->address) -
           ((uintptr_t)x->address < (uintptr_t)y->address);
}

static enum base_status direct_snapshot(struct allocator *allocator,
                                        struct allocator_snapshot *snapshot) {
    struct direct *const direct = direct_of(allocator);
    struct allocator_snapshot copy = {0};
    cca__lock_take(&direct->lock);
    const size_t count = direct->block_count;
    copy.segments = calloc(count + 1, sizeof *copy.segments);
    copy.blocks = calloc(count + 1, sizeof *copy.blocks);
    if (copy.segments != NULL && copy.blocks != NULL)
        for (const struct direct_block *block = direct->first_block; block != NULL;
             block = block->next)
            copy.segments[copy.segment_count++] = (struct allocator_snapshot_segment){
                .device = block->device,
                .address = block->address,
                .total_size = block->size,
                .allocated_size = block->size,
                .active_size = block->size,
                .requested_size = block->size,
                .stream = block->stream,
                .is_large = true,
                .registration = block->registration,
                .block_count = 1,
            };
    cca__lock_release(&direct->lock);
    if (copy.segments == NULL || copy.blocks == NULL) {
        allocator_snapshot_deinit(&copy);
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for a snapshot of %zu blocks",
                               count);
    }
    qsort(copy.segments, copy.segment_count, sizeof *copy.segments, compare_segments);
    for (; copy.block_count < copy.segment_count; ++copy.block_count) {
        struct allocator_snapshot_segment *const segment = &copy.segments[copy.block_count];
        segment->block_first = copy.block_count;
        copy.blocks[copy.block_count] = (struct allocator_snapshot_block){
            .address = segment->address,
            .size = segment->total_size,
            .requested_size = segment->total_size,
            .state = ALLOCATOR_BLOCK_ALLOCATED,
        };
    }
    *snapshot = copy;
    return BASE_OK;
}

static enum base_status direct_set_observer(struct allocator *allocator,
                                            const struct allocator_observer *observer) {
    direct_of(allocator)->observer = observer != NULL ? *observer : (struct allocator_observer){0};
    return BASE_OK;
}

static void free_all(struct direct_block *block) {
    for (struct direct_block *next; block != NULL; block = next) {
        next = block->next;
        // What cannot be freed any more was lost with its device.
        if (call_on_device(free_on_device, &(struct device_call){.device = block->device,
                                                                 .memory = block->address}) !=
            cudaSuccess)
            (void)cudaGetLastError();
        free(block);
    }
}

static void direct_destroy(struct allocator *allocator) {
    struct direct *const direct = direct_of(allocator);
    free_all(direct->first_block);
    free_all(direct->first_refused);
    base_address_map_deinit(&direct->blocks);
    cca__lock_deinit(&direct->lock);
    free(direct);
}

static const struct allocator_operations direct_operations = {
    .name = "direct",
    .malloc = direct_malloc,
    .free = direct_free,
    .record_stream = direct_record_stream,
    .empty_cache = direct_empty_cache,
    .base_allocation = direct_base_allocation,
    .largest_block = direct_largest_block,
    .stats = direct_stats,
    .reset_peak_stats = direct_reset_peak_stats,
    .reset_accumulated_stats = direct_reset_accumulated_stats,
    .snapshot = direct_snapshot,
    .set_observer = direct_set_observer,
    .destroy = direct_destroy,
};

enum base_status direct_allocator_create(struct allocator **allocator) {
    struct direct *const direct = calloc(1, sizeof *direct);
    if (direct == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for an allocator");
    direct->interface.operations = &direct_operations;
    cca__lock_init(&direct->lock);
    *allocator = &direct->interface;
    return BASE_OK;
}
