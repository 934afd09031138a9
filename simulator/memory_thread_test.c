// Several host threads with memory of all kinds at once, under schedules: each with its own pool
// blocks, mappings and page-locked memory, blocks handed from one to the next. Meant to be run
// under the thread sanitizer too.
#include "base/check.h"
#include "base/random.h"
#include "base/size.h"
#include "base/thread.h"
#include "simulator/sim.h"

#include <cuda.h>
#include <stdlib.h>

#define THREADS 3
#define STEPS 400
#define SLOTS 8
#define G SIM_PAGE_BYTES

// A block that some thread allocated, and the event behind its last use; guarded by its lock.
static struct base_mutex handed_lock = BASE_MUTEX_INITIALIZER;
static void *handed;
static cudaEvent_t handed_event;

static void fill(void *pointer, size_t size, int value, cudaStream_t stream) {
    BASE_CHECK_EQ(cudaMemsetAsync(pointer, value, size, stream), cudaSuccess);
}

static void step_pool(struct base_random *random, void *slots[SLOTS], cudaStream_t stream) {
    void **slot = &slots[base_random_below(random, SLOTS)];
    if (*slot != NULL) {
        BASE_CHECK_EQ(cudaFreeAsync(*slot, stream), cudaSuccess);
        *slot = NULL;
        return;
    }
    const size_t size = base_random_log_between(random, 1, BASE_MIB);
    BASE_CHECK_EQ(cudaMallocAsync(slot, size, stream), cudaSuccess);
    fill(*slot, size, 1, stream);
}

// Takes over what another thread left there, and leaves a block of its own.
static void step_hand_over(cudaStream_t stream) {
    void *block;
    BASE_CHECK_EQ(cudaMallocAsync(&block, 1000, stream), cudaSuccess);
    base_mutex_lock(&handed_lock);
    if (handed != NULL) {
        BASE_CHECK_EQ(cudaStreamWaitEvent(stream, handed_event, 0), cudaSuccess);
        fill(handed, 1000, 2, stream);
        BASE_CHECK_EQ(cudaFreeAsync(handed, stream), cudaSuccess);
    }
    handed = block;
    fill(block, 1000, 3, stream);
    BASE_CHECK_EQ(cudaEventRecord(handed_event, stream), cudaSuccess);
    base_mutex_unlock(&handed_lock);
}

static void step_map(CUdeviceptr pointer, cudaStream_t stream) {
    const CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
    };
    const CUmemAccessDesc descriptor = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    BASE_CHECK_EQ(cuMemCreate(&handle, G, &properties, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemMap(pointer, G, 0, handle, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemSetAccess(pointer, G, &descriptor, 1), CUDA_SUCCESS);
    fill((void *)(uintptr_t)pointer, 100, 4, stream);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK_EQ(cuMemUnmap(pointer, G), CUDA_SUCCESS);
}

static void step_register(cudaStream_t stream) {
    char *own = malloc(1000);
    BASE_CHECK_EQ(cudaHostRegister(own, 1000, 0), cudaSuccess);
    fill(own, 1000, 5, stream);
    BASE_CHECK_EQ(cudaHostUnregister(own), cudaSuccess);
    BASE_CHECK_EQ(own[999], 5);
    free(own);
}

static void work(void *argument) {
    struct base_random random = base_random_init(*(uint64_t *)argument, "memory_thread_test");
    void *slots[SLOTS] = {0};
    cudaStream_t stream;
    CUdeviceptr reserved;
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cuMemAddressReserve(&reserved, G, 0, 0, 0), CUDA_SUCCESS);
    for (int step = 0; step < STEPS; ++step) {
        switch (base_random_below(&random, 8)) {
        case 0: step_hand_over(stream); break;
        case 1: step_map(reserved, stream); break;
        case 2: step_register(stream); break;
        case 3: BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess); break;
        default: step_pool(&random, slots, stream);
        }
    }
    for (int i = 0; i < SLOTS; ++i)
        if (slots[i] != NULL)
            BASE_CHECK_EQ(cudaFreeAsync(slots[i], stream), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK_EQ(cuMemAddressFree(reserved, G), CUDA_SUCCESS);
    BASE_CHECK_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

static void run(const char *schedule, bool checked) {
    struct base_thread threads[THREADS];
    uint64_t seeds[THREADS];
    base_check_context("schedule %s, checked %d", schedule, checked);
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    BASE_CHECK_EQ(
        sim_configure(&(struct sim_options){.capacity_bytes = 256 * BASE_MIB, .checked = checked}),
        BASE_OK);
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&handed_event, cudaEventDisableTiming), cudaSuccess);
    handed = NULL;
    for (int i = 0; i < THREADS; ++i) {
        seeds[i] = (uint64_t)i + 1;
        base_thread_start(&threads[i], work, &seeds[i]);
    }
    for (int i = 0; i < THREADS; ++i)
        base_thread_join(&threads[i]);
    BASE_CHECK_EQ(cudaFree(handed), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    BASE_CHECK_EQ(sim_misuse_count(), 0);
    base_check_context(NULL);
}

int main(void) {
    run("eager", false);
    run("lazy", false);
    run("random:1", false);
    run("random:2", true);
    run("timed", false);
    return 0;
}
