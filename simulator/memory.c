// Device memory as the program sees it: cudaMalloc, cudaFree, and the questions about pointers. A
// live allocation is a segment in one ordered tree for all devices, so that any address inside it
// finds it.
#include "simulator/memory.h"

#include "base/size.h"
#include "simulator/call.h"
#include "simulator/cost.h"
#include "simulator/engine.h"
#include "simulator/reading.h"

#include <stdlib.h>

static struct sim__segment *segment_at(const void *pointer) {
    return (struct sim__segment *)sim__range_at(&sim__state.segments, (uint64_t)(uintptr_t)pointer);
}

static struct sim__host_range *host_range_at(const void *pointer) {
    return (struct sim__host_range *)sim__range_at(&sim__state.host_ranges,
                                                   (uint64_t)(uintptr_t)pointer);
}

static cudaError_t malloc_locked(void **pointer, uint64_t size) {
    if (pointer == NULL)
        return cudaErrorInvalidValue;
    if (size == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    struct sim__device *device = sim__device_current();
    struct sim__backing backing;
    if (size > sim__state.options.capacity_bytes ||
        !sim__physical_take(device, base_round_up(size, SIM_PAGE_BYTES), &backing))
        return cudaErrorMemoryAllocation;
    struct sim__segment *segment = malloc(sizeof *segment);
    if (segment == NULL)
        sim__host_limit("out of host memory for the segments of device %d", device->index);
    segment->range.start = sim__address_take(device, size, backing.size, &segment->range.size);
    segment->size = size;
    segment->device = device->index;
    segment->backing = backing;
    sim__physical_map(device, segment->range.start, &segment->backing);
    sim__range_insert(&sim__state.segments, &segment->range);
    *pointer = (void *)(uintptr_t)segment->range.start;
    sim__cost_pages(SIM_CALL_MALLOC, backing.size / SIM_PAGE_BYTES);
    return cudaSuccess;
}

static void segment_release(struct sim__segment *segment) {
    struct sim__device *device = &sim__state.devices[segment->device];
    sim__physical_unmap(device, segment->range.start, &segment->backing);
    sim__physical_give(device, &segment->backing);
    sim__address_give(device, segment->range.start, segment->range.size);
    free(segment);
}

static void segment_free(struct sim__segment *segment) {
    sim__range_remove(&sim__state.segments, &segment->range);
    segment_release(segment);
}

static void segment_release_run(void *segment, bool discarded) {
    (void)discarded;
    segment_release(segment);
}

// The program cannot reach it any more; work that is pending can.
static void segment_free_later(struct sim__segment *segment) {
    sim__range_remove(&sim__state.segments, &segment->range);
    const struct sim__operation operation = {
        .kind = SIM__OPERATION_INTERNAL,
        .internal = {"cudaFree", segment_release_run, segment},
    };
    sim__engine_submit_behind((uint32_t)1 << segment->device, &operation);
}

// The wait can give the lock back; a second cudaFree of the same pointer by another thread may then
// come first.
static cudaError_t free_locked(void *pointer) {
    if (pointer == NULL)
        return cudaSuccess;
    struct sim__segment *segment = segment_at(pointer);
    if (segment == NULL || segment->range.start != (uint64_t)(uintptr_t)pointer)
        return cudaErrorInvalidValue;
    struct sim__device *device = &sim__state.devices[segment->device];
    sim__cost_pages(SIM_CALL_FREE, segment->backing.size / SIM_PAGE_BYTES);
    if (sim__reading_other[SIM__READING_FREE]) {
        segment_free_later(segment);
        return cudaSuccess;
    }
    sim__engine_force_device(device);
    if (segment_at(pointer) != segment)
        return cudaErrorInvalidValue;
    segment_free(segment);
    return cudaSuccess;
}

void sim__memory_clear(void) {
    struct sim__range *range;
    while ((range = sim__range_last(&sim__state.segments)) != NULL)
        segment_free((struct sim__segment *)range);
    sim__range_index_deinit(&sim__state.segments);
}

bool sim__memory_locate(const void *pointer, uint64_t size, enum sim__place *place) {
    const uint64_t address = (uint64_t)(uintptr_t)pointer;
    const struct sim__segment *segment = segment_at(pointer);
    if (segment != NULL) {
        *place = SIM__PLACE_DEVICE;
        const uint64_t offset = address - segment->range.start;
        return offset <= segment->size && size <= segment->size - offset;
    }
    const struct sim__host_range *host = host_range_at(pointer);
    if (host != NULL) {
        *place = SIM__PLACE_PINNED;
        return size <= host->range.size - (address - host->range.start);
    }
    *place = SIM__PLACE_PAGEABLE;
    return true;
}

void *sim__memory_bytes(const void *pointer) {
    if (sim__state.options.numerics != SIM_NUMERICS_ON || segment_at(pointer) == NULL)
        return NULL;
    return (void *)(uintptr_t)pointer;
}

static cudaError_t pointer_attributes_locked(struct cudaPointerAttributes *attributes,
                                             const void *pointer) {
    if (attributes == NULL || pointer == NULL)
        return cudaErrorInvalidValue;
    void *const address = (void *)(uintptr_t)pointer;
    const struct sim__segment *segment = segment_at(pointer);
    const struct sim__host_range *host = segment == NULL ? host_range_at(pointer) : NULL;
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
    if (error == cudaSuccess) {
        const struct sim__device *device = sim__device_current();
        const uint64_t capacity = sim__state.options.capacity_bytes;
        const uint64_t held = device->used_bytes + device->foreign_bytes;
        *free_bytes = held < capacity ? capacity - held : 0;
        *total_bytes = capacity;
    }
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
    void *bytes = sim__memory_bytes(pointer);
    base_mutex_unlock(&sim__state.lock);
    return bytes;
}
