// Device memory as the program sees it: cudaMalloc, cudaFree, and the questions about pointers. A
// live allocation is a segment in one ordered tree for all devices, so that any address inside it
// finds it; memory of pools and of the driver's virtual memory calls stands there too.
#include "simulator/memory.h"

#include "base/size.h"
#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/checked.h"
#include "simulator/cost.h"
#include "simulator/graph_memory.h"
#include "simulator/order.h"
#include "simulator/plant.h"
#include "simulator/pool.h"
#include "simulator/reading.h"
#include "simulator/virtual_memory.h"

#include <stdlib.h>

struct sim__segment *sim__segment_at(const void *pointer) {
    return (struct sim__segment *)sim__range_at(&sim__state.segments, (uint64_t)(uintptr_t)pointer);
}

struct sim__host_range *sim__host_range_at(const void *pointer) {
    return (struct sim__host_range *)sim__range_at(&sim__state.host_ranges,
                                                   (uint64_t)(uintptr_t)pointer);
}

// --- Allocation ---

static bool physical_take(struct sim__device *device, uint64_t size, struct sim__backing *backing) {
    if (!sim__address_budget_take(size))
        return false;
    if (sim__physical_take(device, size, backing))
        return true;
    sim__exports_check(); // closed file descriptors may have been the last to hold some
    if (sim__physical_take(device, size, backing))
        return true;
    sim__address_budget_give(size);
    return false;
}

static cudaError_t malloc_locked(void **pointer, uint64_t size) {
    if (pointer == NULL)
        return cudaErrorInvalidValue;
    const cudaError_t error = sim__capture_unsafe();
    if (error != cudaSuccess)
        return error;
    if (size == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    struct sim__device *device = sim__device_current();
    struct sim__backing backing;
    if (size > sim__state.options.capacity_bytes ||
        !physical_take(device, base_round_up(size, SIM_PAGE_BYTES), &backing))
        return sim__planted(SIM__PLANT_MEMORY_CODE) ? cudaErrorInvalidValue
                                                    : cudaErrorMemoryAllocation;
    struct sim__segment *segment = malloc(sizeof *segment);
    if (segment == NULL)
        sim__host_limit("out of host memory for the segments of device %d", device->index);
    segment->range.start = sim__address_take(device, size, backing.size, &segment->range.size);
    segment->size = size;
    segment->device = device->index;
    segment->kind = SIM__SEGMENT_MALLOC;
    segment->freed = false;
    segment->backing = backing;
    sim__physical_map(device, segment->range.start, &segment->backing, backing.size, true);
    sim__range_insert(&sim__state.segments, &segment->range);
    if (sim__checked()) {
        const uint64_t start = segment->range.start;
        sim__checked_poison(start, size, SIM__POISON_ALLOCATED);
        sim__checked_guard(start, size, start + backing.size);
    }
    if (sim__race_is_on())
        sim__race_alloc(segment->range.start, size, false, NULL);
    *pointer = (void *)(uintptr_t)segment->range.start;
    sim__cost_pages(SIM_CALL_MALLOC, backing.size / SIM_PAGE_BYTES);
    return cudaSuccess;
}

static void segment_free(struct sim__segment *segment) {
    struct sim__device *device = &sim__state.devices[segment->device];
    sim__range_remove(&sim__state.segments, &segment->range);
    sim__physical_unmap(segment->range.start, segment->backing.size);
    sim__address_budget_give(segment->backing.size);
    sim__physical_give(device, &segment->backing);
    sim__address_give(device, segment->range.start, segment->range.size);
    free(segment);
}

static void segment_free_run(void *segment, bool discarded) {
    if (!discarded)
        segment_free(segment);
}

// The program cannot reach it any more; work that is pending can.
static void segment_free_later(struct sim__segment *segment) {
    segment->freed = true;
    const struct sim__operation operation = {
        .kind = SIM__OPERATION_INTERNAL,
        .internal = {"cudaFree", segment_free_run, segment},
    };
    sim__engine_submit_behind((uint32_t)1 << segment->device, &operation);
}

// The segment that cudaFree takes; NULL if POINTER is none, or a block of a pool.
static struct sim__segment *segment_to_free(const void *pointer) {
    struct sim__segment *segment = sim__segment_at(pointer);
    return segment != NULL && segment->range.start == (uint64_t)(uintptr_t)pointer &&
                   segment->kind == SIM__SEGMENT_MALLOC && !segment->freed
               ? segment
               : NULL;
}

// cudaFree of a pool's block waits for nothing: it must be out of use.
static cudaError_t free_other(void *pointer) {
    struct sim__block *block = sim__block_at(pointer);
    if (block == NULL || block->range.start != (uint64_t)(uintptr_t)pointer) {
        if (sim__checked())
            sim__misuse_pointer(pointer);
        return sim__planted(SIM__PLANT_FREE_TWICE) ? cudaSuccess : cudaErrorInvalidValue;
    }
    const cudaError_t error = sim__capture_unsafe();
    if (error != cudaSuccess)
        return error;
    if (block->graph != NULL)
        return sim__graph_allocation_free(block->graph, NULL);
    if (sim__checked()) {
        sim__checked_unused(block->range.start, block->range.size);
        sim__checked_gone(block->range.start, block->range.size, "freed by cudaFree");
    }
    sim__pool_give(block, NULL);
    return cudaSuccess;
}

// The wait can give the lock back; a second cudaFree of the same pointer by another thread may then
// come first.
static cudaError_t free_locked(void *pointer) {
    if (pointer == NULL)
        return cudaSuccess;
    struct sim__segment *segment = segment_to_free(pointer);
    if (segment == NULL)
        return free_other(pointer);
    const cudaError_t error = sim__capture_unsafe();
    if (error != cudaSuccess)
        return error;
    sim__cost_pages(SIM_CALL_FREE, segment->backing.size / SIM_PAGE_BYTES);
    struct sim__device *device = &sim__state.devices[segment->device];
    if (!sim__reading_other[SIM__READING_FREE] && !sim__planted(SIM__PLANT_FREE_EARLY)) {
        struct sim__order_point point = sim__race_is_on() ? sim__order_of_device(device)
                                                          : (struct sim__order_point){0};
        sim__engine_force_device(device);
        sim__order_know(&point);
        if (segment_to_free(pointer) != segment)
            return cudaErrorInvalidValue;
    }
    if (sim__race_is_on())
        sim__race_free(segment->range.start, segment->size, NULL);
    if (sim__checked()) {
        const uint64_t start = segment->range.start;
        sim__checked_guard_verify(start, segment->size, start + segment->backing.size);
        sim__checked_gone(start, segment->size, "freed by cudaFree");
    }
    if (sim__reading_other[SIM__READING_FREE])
        segment_free_later(segment);
    else
        segment_free(segment);
    return cudaSuccess;
}

void sim__memory_clear(void) {
    struct sim__range *range;
    while ((range = sim__range_last(&sim__state.segments)) != NULL)
        segment_free((struct sim__segment *)range);
    sim__range_index_deinit(&sim__state.segments);
}

void sim__memory_reset(const struct sim__device *device) {
    struct sim__range *range = sim__range_last(&sim__state.segments), *before;
    for (; range != NULL; range = before) {
        struct sim__segment *segment = (struct sim__segment *)range;
        before = sim__range_overlapping(&sim__state.segments, 0, range->start);
        if (segment->device != device->index || segment->kind != SIM__SEGMENT_MALLOC ||
            segment->freed)
            continue;
        if (sim__checked())
            sim__checked_gone(segment->range.start, segment->size, "freed by cudaDeviceReset");
        if (sim__race_is_on())
            sim__race_unmap(segment->range.start, segment->size);
        segment_free(segment);
    }
}

// --- Finding and reaching ---

static bool has_rights(const struct sim__segment *segment, int device, enum sim__access access) {
    const uint32_t rights = access == SIM__ACCESS_WRITE ? segment->writers : segment->readers;
    return device == SIM__ANY_DEVICE || (rights >> device & 1) != 0;
}

// Whether [address, address + size), which begins in SEGMENT, is memory throughout. A range may go
// on from mapping to mapping. Copies reach memory of cudaMalloc on every device.
static bool is_whole(const struct sim__segment *segment, int device, uint64_t address,
                     uint64_t size, enum sim__access access) {
    if (segment->kind == SIM__SEGMENT_MALLOC) {
        const uint64_t offset = address - segment->range.start;
        return offset <= segment->size && size <= segment->size - offset;
    }
    for (;;) {
        const uint64_t end = segment->range.start + segment->range.size;
        if (!has_rights(segment, device, access))
            return false;
        if (size <= end - address)
            return true;
        size -= end - address;
        address = end;
        const enum sim__segment_kind kind = segment->kind;
        segment = sim__segment_at((const void *)(uintptr_t)address);
        if (kind != SIM__SEGMENT_MAPPING || segment == NULL || segment->kind != kind)
            return false;
    }
}

// A live block bounds what a call may name; of other memory of the pool CUDA does not say that
// nobody was given it.
static bool is_within_block(const void *pointer, uint64_t size) {
    const struct sim__block *block = sim__block_at(pointer);
    if (block != NULL)
        return size <= block->size &&
               (uint64_t)(uintptr_t)pointer - block->range.start <= block->size - size;
    if (sim__checked())
        sim__misuse_pointer(pointer);
    return true;
}

static bool locate(int device, const void *pointer, uint64_t size, enum sim__access access,
                   enum sim__place *place) {
    const uint64_t address = (uint64_t)(uintptr_t)pointer;
    const struct sim__segment *segment = sim__segment_at(pointer);
    if (segment != NULL) {
        *place = SIM__PLACE_DEVICE;
        return !segment->freed && is_whole(segment, device, address, size, access) &&
               (!sim__segment_has_blocks(segment) || is_within_block(pointer, size));
    }
    const struct sim__host_range *host = sim__host_range_at(pointer);
    if (host != NULL) {
        *place = SIM__PLACE_PINNED;
        return size <= host->range.size - (address - host->range.start);
    }
    *place = SIM__PLACE_PAGEABLE;
    return !sim__physical_is_window(address);
}

bool sim__memory_locate(int device, const void *pointer, uint64_t size, enum sim__access access,
                        enum sim__place *place) {
    if (locate(device, pointer, size, access, place))
        return true;
    if (sim__checked())
        sim__misuse_range(device, pointer, size, access);
    return false;
}

bool sim__memory_reach(int device, const void *pointer, uint64_t size, enum sim__access access,
                       void **bytes) {
    const uint64_t address = (uint64_t)(uintptr_t)pointer;
    const struct sim__segment *segment = sim__segment_at(pointer);
    if (segment == NULL || !sim__segment_is_there(segment) ||
        !is_whole(segment, device, address, size, access))
        return false;
    *bytes = sim__memory_bytes(address);
    return true;
}

// --- Questions ---

void sim__memory_info(const struct sim__device *device, size_t *free_bytes, size_t *total_bytes) {
    const uint64_t capacity = sim__state.options.capacity_bytes;
    sim__exports_check();
    uint64_t held = sim__physical_held(device);
    if (device->used_bytes > 0 && sim__planted(SIM__PLANT_MEMORY_INFO))
        held += SIM_PAGE_BYTES;
    *free_bytes = held < capacity ? capacity - held : 0;
    *total_bytes = capacity;
}

static cudaError_t pointer_attributes_locked(struct cudaPointerAttributes *attributes,
                                             const void *pointer) {
    if (attributes == NULL || pointer == NULL)
        return cudaErrorInvalidValue;
    void *const address = (void *)(uintptr_t)pointer;
    const struct sim__segment *segment = sim__segment_at(pointer);
    const struct sim__host_range *host = segment == NULL ? sim__host_range_at(pointer) : NULL;
    if (segment != NULL &&
        (segment->freed || (sim__segment_has_blocks(segment) && sim__block_at(pointer) == NULL)))
        segment = NULL; // mapped, but not the program's
    if (segment != NULL && segment->range.start != (uint64_t)(uintptr_t)pointer &&
        sim__planted(SIM__PLANT_ATTRIBUTES))
        segment = NULL;
    *attributes = (struct cudaPointerAttributes){
        .type = segment != NULL ? cudaMemoryTypeDevice
                : host != NULL  ? cudaMemoryTypeHost
                                : cudaMemoryTypeUnregistered,
        .device = segment != NULL ? segment->device
                  : host != NULL  ? host->device
                                  : -2, // what CUDA says of memory that no device has
        .devicePointer = segment != NULL || host != NULL ? address : NULL,
        .hostPointer = segment == NULL ? address : NULL,
    };
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **pointer, size_t size) {
    cudaError_t error = sim__call_begin(SIM_CALL_MALLOC);
    if (error == cudaSuccess)
        error = malloc_locked(pointer, size);
    return sim__call_end(SIM_CALL_MALLOC, error);
}

cudaError_t cudaFree(void *pointer) {
    cudaError_t error = sim__call_begin(SIM_CALL_FREE);
    if (error == cudaSuccess)
        error = free_locked(pointer);
    return sim__call_end(SIM_CALL_FREE, error);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    cudaError_t error = sim__call_begin(SIM_CALL_MEM_GET_INFO);
    if (error == cudaSuccess && (free_bytes == NULL || total_bytes == NULL))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        sim__memory_info(sim__device_current(), free_bytes, total_bytes);
    return sim__call_end(SIM_CALL_MEM_GET_INFO, error);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *pointer) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = pointer_attributes_locked(attributes, pointer);
    return sim__call_end(SIM__CALL_OTHER, error);
}

static struct sim__device *device_checked(int device) {
    sim__start_locked();
    BASE_CHECK(device >= 0 && device < sim__state.options.device_count);
    return &sim__state.devices[device];
}

void sim_set_foreign_bytes(int device, uint64_t bytes) {
    base_mutex_lock(&sim__state.lock);
    device_checked(device)->foreign_bytes = bytes;
    base_mutex_unlock(&sim__state.lock);
}

uint64_t sim_used_bytes(int device) {
    base_mutex_lock(&sim__state.lock);
    const uint64_t bytes = device_checked(device)->used_bytes;
    base_mutex_unlock(&sim__state.lock);
    return bytes;
}

void *sim_device_bytes(const void *pointer) {
    base_mutex_lock(&sim__state.lock);
    sim__start_locked();
    const struct sim__segment *segment = sim__segment_at(pointer);
    void *bytes = segment != NULL && sim__segment_is_there(segment)
                      ? sim__memory_bytes((uint64_t)(uintptr_t)pointer)
                      : NULL;
    base_mutex_unlock(&sim__state.lock);
    return bytes;
}

// Unlike a copy, a kernel reaches memory of cudaMalloc only on its device and that device's peers.
static bool kernel_reaches(const struct sim__device *device, const void *pointer, uint64_t size,
                           enum sim__access access, void **bytes) {
    const struct sim__segment *segment = sim__segment_at(pointer);
    const struct sim__host_range *host = sim__host_range_at(pointer);
    if (segment == NULL) {
        *bytes = (void *)(uintptr_t)pointer;
        return host != NULL &&
               size <= host->range.size - ((uint64_t)(uintptr_t)pointer - host->range.start);
    }
    return (segment->kind != SIM__SEGMENT_MALLOC || segment->device == device->index ||
            (device->peers_enabled >> segment->device & 1) != 0) &&
           sim__memory_reach(device->index, pointer, size, access, bytes);
}

void *sim_kernel_bytes(const void *pointer, size_t size, bool write) {
    const enum sim__access access = write ? SIM__ACCESS_WRITE : SIM__ACCESS_READ;
    const struct sim__thread *thread = sim__thread();
    BASE_CHECK_GT(thread->work_depth, 0);
    base_mutex_lock(&sim__state.lock);
    struct sim__device *device = &sim__state.devices[thread->work_device];
    void *bytes = NULL;
    if (!kernel_reaches(device, pointer, size, access, &bytes)) {
        if (device->sticky_error == cudaSuccess)
            device->sticky_error = cudaErrorIllegalAddress;
        if (sim__checked())
            sim__misuse_range(device->index, pointer, size, access);
        bytes = NULL;
    }
    base_mutex_unlock(&sim__state.lock);
    return bytes;
}
