// Page-locked host memory: cudaHostAlloc and its kin. It is ordinary host memory, aligned to pages,
// that the simulator knows by address; so copies can tell it from pageable memory. cudaHostRegister
// makes the program's own memory known as such.
#include "simulator/memory.h"

#include "base/size.h"
#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/checked.h"
#include "simulator/cost.h"
#include "simulator/order.h"
#include "simulator/plant.h"
#include "simulator/race.h"
#include "simulator/reading.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HOST_PAGE_BYTES 4096
#define HOST_ALLOC_FLAGS (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined)
// I/O memory is for devices that others drive.
#define HOST_REGISTER_FLAGS                                                                        \
    (cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly)

static cudaError_t host_alloc_locked(void **pointer, size_t size, unsigned int flags) {
    if (pointer == NULL || (flags & ~(unsigned int)HOST_ALLOC_FLAGS) != 0)
        return cudaErrorInvalidValue;
    const cudaError_t error = sim__capture_unsafe();
    if (error != cudaSuccess)
        return error;
    if (size == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    if (size > SIZE_MAX / 2)
        return cudaErrorMemoryAllocation;
    void *bytes = aligned_alloc(HOST_PAGE_BYTES, base_round_up(size, HOST_PAGE_BYTES));
    struct sim__host_range *host = malloc(sizeof *host);
    if (bytes == NULL || host == NULL) {
        free(bytes);
        free(host);
        return cudaErrorMemoryAllocation;
    }
    host->range.start = (uint64_t)(uintptr_t)bytes;
    host->range.size = size;
    host->device = sim__device_current()->index;
    host->registered = false;
    sim__range_insert(&sim__state.host_ranges, &host->range);
    if (sim__race_is_on())
        sim__race_alloc(host->range.start, size, false, NULL);
    *pointer = bytes;
    sim__cost_pages(SIM_CALL_HOST_ALLOC, base_round_up(size, SIM_PAGE_BYTES) / SIM_PAGE_BYTES);
    return cudaSuccess;
}

static void host_range_release(void *argument, bool discarded) {
    struct sim__host_range *host = argument;
    (void)discarded;
    if (!host->registered)
        free((void *)(uintptr_t)host->range.start);
    free(host);
}

static void host_range_free(struct sim__host_range *host) {
    sim__range_remove(&sim__state.host_ranges, &host->range);
    host_range_release(host, false);
}

// The program cannot reach it any more; work that is pending in any device can.
static void host_range_free_later(struct sim__host_range *host) {
    sim__range_remove(&sim__state.host_ranges, &host->range);
    const struct sim__operation operation = {
        .kind = SIM__OPERATION_INTERNAL,
        .internal = {"cudaFreeHost", host_range_release, host},
    };
    sim__engine_submit_behind(UINT32_MAX, &operation);
}

// The range that begins at POINTER and is REGISTERED or not; NULL if there is none.
static struct sim__host_range *host_range_at_base(const void *pointer, bool registered) {
    struct sim__host_range *host = sim__host_range_at(pointer);
    return host != NULL && host->range.start == (uint64_t)(uintptr_t)pointer &&
                   host->registered == registered
               ? host
               : NULL;
}

static cudaError_t no_range(const void *pointer, cudaError_t error) {
    if (sim__checked())
        sim__misuse_pointer(pointer);
    return error;
}

static void wait_for_all(void) {
    struct sim__order_point point =
        sim__race_is_on() ? sim__order_of_devices() : (struct sim__order_point){0};
    sim__engine_force_all();
    sim__order_know(&point);
}

// Any device may be using the memory. The wait can give the lock back: the range is looked up
// again.
static cudaError_t host_free_locked(void *pointer) {
    if (pointer == NULL)
        return cudaSuccess;
    if (host_range_at_base(pointer, false) == NULL)
        return no_range(pointer, cudaErrorInvalidValue);
    const cudaError_t error = sim__capture_unsafe();
    if (error != cudaSuccess)
        return error;
    if (!sim__reading_other[SIM__READING_FREE] && !sim__planted(SIM__PLANT_FREE_HOST_EARLY))
        wait_for_all();
    struct sim__host_range *host = host_range_at_base(pointer, false);
    if (host == NULL)
        return cudaErrorInvalidValue;
    if (sim__race_is_on())
        sim__race_free(host->range.start, host->range.size, NULL);
    if (sim__checked())
        sim__checked_gone(host->range.start, host->range.size, "freed by cudaFreeHost");
    if (sim__reading_other[SIM__READING_FREE])
        host_range_free_later(host);
    else
        host_range_free(host);
    return cudaSuccess;
}

// --- Registration ---

// True if the process has memory in the whole range: the kernel refuses the call where it has none,
// and with MS_ASYNC does nothing else.
static bool is_mapped(uint64_t address, uint64_t size) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t start = base_round_down(address, page);
    return msync((void *)(uintptr_t)start, address + size - start, MS_ASYNC) == 0;
}

static cudaError_t register_locked(void *pointer, size_t size, unsigned int flags) {
    const uint64_t address = (uint64_t)(uintptr_t)pointer;
    if (pointer == NULL || size == 0 || (flags & ~(unsigned int)HOST_REGISTER_FLAGS) != 0 ||
        size > UINT64_MAX - address ||
        sim__range_overlapping(&sim__state.segments, address, size) != NULL ||
        sim__physical_is_window(address) || !is_mapped(address, size))
        return cudaErrorInvalidValue;
    if (sim__range_overlapping(&sim__state.host_ranges, address, size) != NULL)
        return cudaErrorHostMemoryAlreadyRegistered;
    const cudaError_t error = sim__capture_unsafe();
    if (error != cudaSuccess)
        return error;
    struct sim__host_range *host = malloc(sizeof *host);
    if (host == NULL)
        return cudaErrorMemoryAllocation;
    *host = (struct sim__host_range){
        .range = {address, size},
        .device = sim__device_current()->index,
        .registered = true,
    };
    sim__range_insert(&sim__state.host_ranges, &host->range);
    if (sim__race_is_on())
        sim__race_alloc(address, size, true, NULL);
    return cudaSuccess;
}

// The memory stays the program's, which may free it next: so work that uses it must be done.
static cudaError_t unregister_locked(void *pointer) {
    if (pointer == NULL)
        return cudaErrorInvalidValue;
    if (host_range_at_base(pointer, true) == NULL)
        return no_range(pointer, cudaErrorHostMemoryNotRegistered);
    const cudaError_t error = sim__capture_unsafe();
    if (error != cudaSuccess)
        return error;
    wait_for_all();
    struct sim__host_range *host = host_range_at_base(pointer, true);
    if (host == NULL)
        return cudaErrorHostMemoryNotRegistered;
    if (sim__race_is_on())
        sim__race_unregister(host->range.start, host->range.size);
    if (sim__checked())
        sim__checked_gone(host->range.start, host->range.size, "given up by cudaHostUnregister");
    host_range_free(host);
    return cudaSuccess;
}

static cudaError_t device_pointer_locked(void **device_pointer, void *pointer, unsigned int flags) {
    if (device_pointer == NULL || pointer == NULL || flags != 0)
        return cudaErrorInvalidValue;
    if (sim__host_range_at(pointer) == NULL)
        return no_range(pointer, cudaErrorInvalidValue);
    *device_pointer = pointer; // one address space
    return cudaSuccess;
}

void sim__host_memory_reset(const struct sim__device *device) {
    struct sim__range *range = sim__range_last(&sim__state.host_ranges), *before;
    for (; range != NULL; range = before) {
        struct sim__host_range *host = (struct sim__host_range *)range;
        before = sim__range_overlapping(&sim__state.host_ranges, 0, range->start);
        if (host->device != device->index)
            continue;
        if (sim__race_is_on())
            sim__race_unregister(host->range.start, host->range.size);
        host_range_free(host);
    }
}

void sim__host_memory_clear(void) {
    struct sim__range *range;
    while ((range = sim__range_last(&sim__state.host_ranges)) != NULL)
        host_range_free((struct sim__host_range *)range);
    sim__range_index_deinit(&sim__state.host_ranges);
}

cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int flags) {
    cudaError_t error = sim__call_begin(SIM_CALL_HOST_ALLOC);
    if (error == cudaSuccess)
        error = host_alloc_locked(pointer, size, flags);
    return sim__call_end(SIM_CALL_HOST_ALLOC, error);
}

cudaError_t cudaMallocHost(void **pointer, size_t size) {
    return cudaHostAlloc(pointer, size, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *pointer) {
    cudaError_t error = sim__call_begin(SIM_CALL_HOST_FREE);
    if (error == cudaSuccess)
        error = host_free_locked(pointer);
    return sim__call_end(SIM_CALL_HOST_FREE, error);
}

cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned int flags) {
    cudaError_t error = sim__call_begin(SIM_CALL_HOST_REGISTER);
    if (error == cudaSuccess)
        error = register_locked(pointer, size, flags);
    return sim__call_end(SIM_CALL_HOST_REGISTER, error);
}

cudaError_t cudaHostUnregister(void *pointer) {
    cudaError_t error = sim__call_begin(SIM_CALL_HOST_UNREGISTER);
    if (error == cudaSuccess)
        error = unregister_locked(pointer);
    return sim__call_end(SIM_CALL_HOST_UNREGISTER, error);
}

cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *pointer, unsigned int flags) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = device_pointer_locked(device_pointer, pointer, flags);
    return sim__call_end(SIM__CALL_OTHER, error);
}
