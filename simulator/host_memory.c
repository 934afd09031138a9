// Page-locked host memory: cudaHostAlloc and its kin. It is ordinary host memory, aligned to pages,
// that the simulator knows by address; so copies can tell it from pageable memory.
#include "simulator/memory.h"

#include "base/size.h"
#include "simulator/call.h"
#include "simulator/cost.h"
#include "simulator/engine.h"
#include "simulator/reading.h"

#include <stdlib.h>

#define HOST_PAGE_BYTES 4096
#define HOST_ALLOC_FLAGS (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined)

static cudaError_t host_alloc_locked(void **pointer, size_t size, unsigned int flags) {
    if (pointer == NULL || (flags & ~(unsigned int)HOST_ALLOC_FLAGS) != 0)
        return cudaErrorInvalidValue;
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
    sim__range_insert(&sim__state.host_ranges, &host->range);
    *pointer = bytes;
    sim__cost_pages(SIM_CALL_HOST_ALLOC, base_round_up(size, SIM_PAGE_BYTES) / SIM_PAGE_BYTES);
    return cudaSuccess;
}

static void host_range_release(void *argument, bool discarded) {
    struct sim__host_range *host = argument;
    (void)discarded;
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

static struct sim__host_range *host_range_at_base(const void *pointer) {
    struct sim__range *range = sim__range_at(&sim__state.host_ranges, (uint64_t)(uintptr_t)pointer);
    return range != NULL && range->start == (uint64_t)(uintptr_t)pointer
               ? (struct sim__host_range *)range
               : NULL;
}

// Any device may be using the memory. The wait can give the lock back: the range is looked up
// again.
static cudaError_t host_free_locked(void *pointer) {
    if (pointer == NULL)
        return cudaSuccess;
    if (host_range_at_base(pointer) == NULL)
        return cudaErrorInvalidValue;
    if (sim__reading_other[SIM__READING_FREE]) {
        host_range_free_later(host_range_at_base(pointer));
        return cudaSuccess;
    }
    sim__engine_force_all();
    struct sim__host_range *host = host_range_at_base(pointer);
    if (host == NULL)
        return cudaErrorInvalidValue;
    host_range_free(host);
    return cudaSuccess;
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
