// Checked mode: sentences for what a program does wrong, device memory out of the host's reach,
// poison and guards, rights of kernels, page-locked memory in flight.
#include "base/check.h"
#include "base/child.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <cuda.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define G SIM_PAGE_BYTES
#define POISON_ALLOCATED 0xca
#define POISON_FREED 0xfe

static void start_devices(int device_count, bool checked) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = device_count,
                                                      .capacity_bytes = 64 * BASE_MIB,
                                                      .checked = checked}),
                  BASE_OK);
}

static void start(void) { start_devices(1, true); }

static char *malloc_ok(size_t size) {
    void *pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, size), cudaSuccess);
    return pointer;
}

static int byte_at(const void *pointer) {
    unsigned char byte;
    BASE_CHECK_EQ(cudaMemcpy(&byte, pointer, 1, cudaMemcpyDefault), cudaSuccess);
    return byte;
}

// Runs BODY in a child: it must have said EXPECTED, as often as COUNT; once if that is left out.
static void says(void (*body)(void *unused), const char *expected) {
    struct base_child child = base_child_run(body, NULL);
    base_check_context("\"%s\" in \"%s\"", expected, child.error_text);
    BASE_CHECK_EQ(child.exit_code, 0);
    const char *found = strstr(child.error_text, expected);
    BASE_CHECK(found != NULL);
    BASE_CHECK(strstr(found + 1, "tidemark simulator:") == NULL);
    base_check_context(NULL);
    base_child_deinit(&child);
}

// --- Sentences ---

static void free_twice(void *unused) {
    (void)unused;
    start();
    char *pointer = malloc_ok(1000);
    BASE_CHECK_EQ(cudaFree(pointer), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(pointer), cudaErrorInvalidValue);
    BASE_CHECK_EQ(sim_misuse_count(), 1);
}

static void free_inside(void *unused) {
    (void)unused;
    start();
    BASE_CHECK_EQ(cudaFree(malloc_ok(1000) + 24), cudaErrorInvalidValue);
}

static void free_foreign(void *unused) {
    (void)unused;
    start();
    BASE_CHECK_EQ(cudaFree(&unused), cudaErrorInvalidValue);
}

static void free_host_memory(void *unused) {
    (void)unused;
    start();
    void *pointer;
    BASE_CHECK_EQ(cudaMallocHost(&pointer, 100), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(pointer), cudaErrorInvalidValue);
}

static void free_device_memory_as_host_memory(void *unused) {
    (void)unused;
    start();
    BASE_CHECK_EQ(cudaFreeHost(malloc_ok(100)), cudaErrorInvalidValue);
}

static void free_block_twice(void *unused) {
    (void)unused;
    start();
    void *pointer;
    BASE_CHECK_EQ(cudaMallocAsync(&pointer, 100, NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaFreeAsync(pointer, NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaFreeAsync(pointer, NULL), cudaErrorInvalidValue);
}

static void use_destroyed_stream(void *unused) {
    (void)unused;
    start();
    cudaStream_t stream;
    BASE_CHECK_EQ(cudaStreamCreate(&stream), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamDestroy(stream), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaErrorContextIsDestroyed);
}

static cudaStream_t capture_begin(enum cudaStreamCaptureMode mode) {
    cudaStream_t stream;
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
    return stream;
}

static void lose_capture(void *unused) {
    (void)unused;
    void *pointer;
    start();
    capture_begin(cudaStreamCaptureModeGlobal);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 100), cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(sim_misuse_count(), 1);
}

static void leave_stream_in_capture(void *unused) {
    (void)unused;
    cudaStream_t joined;
    cudaEvent_t event;
    cudaGraph_t graph;
    start();
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&joined, cudaStreamNonBlocking), cudaSuccess);
    char *pointer = malloc_ok(100);
    cudaStream_t stream = capture_begin(cudaStreamCaptureModeRelaxed);
    BASE_CHECK_EQ(cudaEventRecord(event, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(joined, event, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaMemsetAsync(pointer, 0, 100, joined), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
}

static void use_destroyed_event(void *unused) {
    (void)unused;
    start();
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    BASE_CHECK_EQ(cudaEventDestroy(event), cudaSuccess);
    BASE_CHECK_EQ(cudaEventRecord(event, NULL), cudaErrorContextIsDestroyed);
}

static void use_destroyed_pool(void *unused) {
    (void)unused;
    start();
    cudaMemPool_t pool;
    const struct cudaMemPoolProps properties = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {cudaMemLocationTypeDevice, 0},
    };
    BASE_CHECK_EQ(cudaMemPoolCreate(&pool, &properties), cudaSuccess);
    BASE_CHECK_EQ(cudaMemPoolDestroy(pool), cudaSuccess);
    BASE_CHECK_EQ(cudaMemPoolTrimTo(pool, 0), cudaErrorInvalidValue);
}

static void copy_too_much(void *unused) {
    (void)unused;
    start();
    BASE_CHECK_EQ(cudaMemset(malloc_ok(1000), 0, 1001), cudaErrorInvalidValue);
}

static void copy_from_freed_memory(void *unused) {
    (void)unused;
    start();
    char byte, *pointer = malloc_ok(1000);
    BASE_CHECK_EQ(cudaFree(pointer), cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpy(&byte, pointer + 10, 1, cudaMemcpyDefault), cudaErrorInvalidValue);
}

static void use_freed_block(void *unused) {
    (void)unused;
    start();
    void *pointer;
    BASE_CHECK_EQ(cudaMallocAsync(&pointer, 100, NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaFreeAsync(pointer, NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaMemsetAsync(pointer, 0, 100, NULL), cudaSuccess); // as CUDA
}

static void write_behind(void *pointer) {
    ((char *)sim_device_bytes(*(char *const *)pointer))[1000] = 1;
}

static void write_behind_the_end(void *unused) {
    (void)unused;
    start();
    char *pointer = malloc_ok(1000);
    write_behind(&pointer);
    BASE_CHECK_EQ(cudaFree(pointer), cudaSuccess);
}

static CUdeviceptr map_granule(void) {
    const CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
    };
    CUmemGenericAllocationHandle handle;
    CUdeviceptr pointer;
    BASE_CHECK_EQ(cudaFree(NULL), cudaSuccess);
    BASE_CHECK_EQ(cuMemAddressReserve(&pointer, 4 * G, 0, 0, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemCreate(&handle, G, &properties, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemMap(pointer, G, 0, handle, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    return pointer;
}

static void access_set(CUdeviceptr pointer, int device, CUmemAccess_flags flags) {
    const CUmemAccessDesc descriptor = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
    BASE_CHECK_EQ(cuMemSetAccess(pointer, G, &descriptor, 1), CUDA_SUCCESS);
}

static void unmap_memory_in_use(void *unused) {
    (void)unused;
    start();
    cudaStream_t stream;
    const CUdeviceptr pointer = map_granule();
    access_set(pointer, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    BASE_CHECK_EQ(cudaStreamCreate(&stream), cudaSuccess);
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaMemsetAsync((void *)(uintptr_t)pointer, 0, 8, stream), cudaSuccess);
    BASE_CHECK_EQ(cuMemUnmap(pointer, G), CUDA_SUCCESS);
}

static void write_read_only_memory(void *unused) {
    (void)unused;
    start();
    const CUdeviceptr pointer = map_granule();
    access_set(pointer, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
    BASE_CHECK_EQ(byte_at((void *)(uintptr_t)pointer), 0);
    BASE_CHECK_EQ(cudaMemset((void *)(uintptr_t)pointer, 0, 8), cudaErrorInvalidValue);
}

static void map_twice(void *unused) {
    (void)unused;
    start();
    const CUdeviceptr pointer = map_granule();
    CUmemGenericAllocationHandle handle;
    BASE_CHECK_EQ(cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)pointer), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemMap(pointer, G, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
}

static void release_too_often(void *unused) {
    (void)unused;
    start();
    const CUdeviceptr pointer = map_granule();
    CUmemGenericAllocationHandle handle;
    BASE_CHECK_EQ(cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)pointer), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
}

static void null_out_pointer(void *unused) {
    (void)unused;
    start();
    BASE_CHECK_EQ(cudaMalloc(NULL, 100), cudaErrorInvalidValue);
}

static void unknown_flags(void *unused) {
    (void)unused;
    start();
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&event, 0x1000), cudaErrorInvalidValue);
}

static void wrong_direction(void *unused) {
    (void)unused;
    start();
    char byte = 0;
    BASE_CHECK_EQ(cudaMemcpy(malloc_ok(1), &byte, 1, (enum cudaMemcpyKind)77),
                  cudaErrorInvalidMemcpyDirection);
}

// Nor is running out of memory, or what a test lets fail.
static void no_mistake(void *unused) {
    (void)unused;
    start();
    void *pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, (size_t)1 << 40), cudaErrorMemoryAllocation);
    sim_fault_next(SIM_CALL_MALLOC, 1, cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 100), cudaErrorInvalidValue);
    BASE_CHECK_EQ(sim_misuse_count(), 0);
}

static void wrong_arguments_get_a_sentence_too(void) {
    says(null_out_pointer, "tidemark simulator: cudaMalloc: cudaErrorInvalidValue: an argument is");
    says(unknown_flags, "tidemark simulator: cudaEventCreate: cudaErrorInvalidValue: an argument");
    says(wrong_direction, "tidemark simulator: cudaMemcpy: cudaErrorInvalidMemcpyDirection: an");
    struct base_child child = base_child_run(no_mistake, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK_EQ(strlen(child.error_text), 0);
    base_child_deinit(&child);
}

static void sentences_say_what_was_done_wrong(void) {
    says(free_twice, "): freed by cudaFree already\n");
    says(free_inside, "): 24 bytes inside memory of cudaMalloc, 1000 bytes at 0x");
    says(free_foreign, "tidemark simulator: cudaFree(0x");
    says(free_foreign, "): no memory that a CUDA call gave\n"
                       "    from free_foreign (simulator/checked_test.c:");
    says(free_host_memory, "): page-locked host memory, 100 bytes\n");
    says(free_device_memory_as_host_memory, "): memory of cudaMalloc, 100 bytes\n");
    says(free_block_twice, "): freed by cudaFreeAsync already\n");
    says(use_destroyed_stream, "is a stream that was destroyed\n");
    says(lose_capture, "tidemark simulator: cudaMalloc: cudaErrorStreamCaptureUnsupported: the "
                       "global capture that this thread began in stream 0x");
    says(leave_stream_in_capture, "tidemark simulator: cudaStreamEndCapture: stream 0x");
    says(leave_stream_in_capture, " took part in the capture, and no wait brings its work back");
    says(use_destroyed_event, "cudaEventRecord: 0x");
    says(use_destroyed_event, "is an event that was destroyed\n");
    says(use_destroyed_pool, "is a pool that was destroyed\n");
    says(copy_too_much, "memory of cudaMalloc, 1000 bytes, which is too short\n");
    says(copy_from_freed_memory, "10 bytes inside memory that was freed by cudaFree (1000 bytes");
    says(use_freed_block, "freed by cudaFreeAsync already\n");
    says(write_behind_the_end, "were written beyond their end, at offset 1000\n");
    says(unmap_memory_in_use, "a fill that is pending in stream 0x");
    says(write_read_only_memory, "which it may not write\n");
    says(map_twice, "memory is mapped at 0x");
    says(release_too_often, "memory of which all references were released\n");
}

static void misuse_unchecked(void *unused) {
    (void)unused;
    start_devices(1, false);
    char *pointer = malloc_ok(1000);
    BASE_CHECK_EQ(cudaFree(pointer), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(pointer), cudaErrorInvalidValue);
    BASE_CHECK_EQ(sim_misuse_count(), 0);
}

static void misuse_checked_by_environment(void *unused) {
    setenv("TIDEMARK_SIM_CHECKED", "1", 1);
    misuse_unchecked(unused);
}

static void nothing_is_said_outside_checked_mode(void) {
    struct base_child child = base_child_run(misuse_unchecked, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK_EQ(strlen(child.error_text), 0);
    base_child_deinit(&child);
    child = base_child_run(misuse_checked_by_environment, NULL);
    BASE_CHECK(strstr(child.error_text, "freed by cudaFree already") != NULL);
    base_child_deinit(&child);
}

// --- The host's reach ---

static volatile char sink;

static void host_reads(void *unused) {
    (void)unused;
    start();
    sink = malloc_ok(5000)[4321];
}

static void host_writes(void *unused) {
    (void)unused;
    start();
    *(volatile char *)malloc_ok(5000) = 1;
}

static void host_reads_pool(void *unused) {
    (void)unused;
    start();
    void *pointer;
    BASE_CHECK_EQ(cudaMallocAsync(&pointer, 100, NULL), cudaSuccess);
    sink = *(char *)pointer;
}

static void host_reads_mapping(void *unused) {
    (void)unused;
    start();
    const CUdeviceptr pointer = map_granule();
    access_set(pointer, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    sink = *(char *)(uintptr_t)(pointer + 100);
}

static void host_reads_freed(void *unused) {
    (void)unused;
    start();
    char *pointer = malloc_ok(100);
    BASE_CHECK_EQ(cudaFree(pointer), cudaSuccess);
    sink = *pointer;
}

static void host_reads_elsewhere(void *unused) {
    (void)unused;
    start();
    const char *page =
        mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    BASE_CHECK(page != MAP_FAILED);
    sink = *page;
}

static void ends_with(void (*body)(void *unused), const char *expected) {
    struct base_child child = base_child_run(body, NULL);
    base_check_context("\"%s\" in \"%s\"", expected == NULL ? "" : expected, child.error_text);
    // A sanitizer makes an exit of the signal.
    BASE_CHECK(child.signal_number == SIGSEGV || (child.exit_code > 0 && child.signal_number == 0));
    BASE_CHECK_EQ(expected == NULL,
                  strstr(child.error_text, "tidemark simulator: the host ") == NULL);
    BASE_CHECK(expected == NULL || strstr(child.error_text, expected) != NULL);
    base_check_context(NULL);
    base_child_deinit(&child);
}

static void host_code_that_touches_device_memory_faults(void) {
    ends_with(host_reads, ": memory of cudaMalloc of device 0, 2097152 bytes at 0x");
    ends_with(host_reads, ", at offset 4321; device memory is for copies and kernels\n");
    ends_with(host_writes, "tidemark simulator: the host writes 0x");
    ends_with(host_reads_pool, ": memory of cudaMallocAsync of device 0, 512 bytes at 0x");
    ends_with(host_reads_mapping, ": memory mapped by cuMemMap of device 0, 2097152 bytes at 0x");
    ends_with(host_reads_freed, ": a device's addresses, where no memory is;");
    ends_with(host_reads_elsewhere, NULL);
}

// --- Poison ---

static void new_and_freed_memory_is_poisoned(void) {
    start();
    char *pointer = malloc_ok(3 * BASE_MIB);
    BASE_CHECK_EQ(byte_at(pointer), POISON_ALLOCATED);
    BASE_CHECK_EQ(byte_at(pointer + 4095), POISON_ALLOCATED);
    BASE_CHECK_EQ(byte_at(pointer + BASE_MIB), 0); // never written: costs no memory
    BASE_CHECK_EQ(byte_at(pointer + 3 * BASE_MIB - 1), POISON_ALLOCATED);
    BASE_CHECK_EQ(cudaFree(pointer), cudaSuccess);

    // A pool hands the same memory out again: what was written is gone, in stream order.
    void *block, *again;
    cudaStream_t stream;
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaMallocAsync(&block, 3 * BASE_MIB, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaMemsetAsync((char *)block + BASE_MIB, 5, 10000, stream), cudaSuccess);
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaFreeAsync(block, stream), cudaSuccess);
    BASE_CHECK_EQ(*((unsigned char *)sim_device_bytes(block) + BASE_MIB), 5);
    BASE_CHECK_EQ(sim_stream_run(stream, 1), 1);
    BASE_CHECK_EQ(*((unsigned char *)sim_device_bytes(block) + BASE_MIB), POISON_FREED);
    BASE_CHECK_EQ(*((unsigned char *)sim_device_bytes(block) + 2 * BASE_MIB), 0);
    BASE_CHECK_EQ(cudaMallocAsync(&again, 3 * BASE_MIB, stream), cudaSuccess);
    BASE_CHECK(again == block);
    BASE_CHECK_EQ(*((unsigned char *)sim_device_bytes(block) + BASE_MIB), POISON_FREED);
    BASE_CHECK_EQ(sim_stream_run(stream, 1), 1);
    BASE_CHECK_EQ(*((unsigned char *)sim_device_bytes(block) + BASE_MIB), POISON_ALLOCATED);
    BASE_CHECK_EQ(*((unsigned char *)sim_device_bytes(block) + 3 * BASE_MIB - 1), POISON_ALLOCATED);
    BASE_CHECK_EQ(sim_misuse_count(), 0);
}

static void much_memory_costs_little(void) {
    BASE_CHECK_EQ(
        sim_configure(&(struct sim_options){.capacity_bytes = 100 * BASE_GIB, .checked = true}),
        BASE_OK);
    for (int i = 0; i < 20; ++i) {
        char *pointer = malloc_ok(4 * BASE_GIB);
        void *block;
        BASE_CHECK_EQ(cudaMallocAsync(&block, BASE_GIB, NULL), cudaSuccess);
        BASE_CHECK_EQ(cudaFreeAsync(block, NULL), cudaSuccess);
        if (i % 2 == 0)
            BASE_CHECK_EQ(cudaFree(pointer), cudaSuccess);
    }
}

// --- Copies and kernels go through the mirror ---

struct sum {
    const int *values;
    int *result;
    int count;
};

static void sum_body(const void *argument) {
    const struct sum *sum = argument;
    const int *values = sim_kernel_bytes(sum->values, (size_t)sum->count * sizeof *values, false);
    int *result = sim_kernel_bytes(sum->result, sizeof *result, true);
    if (values == NULL || result == NULL)
        return;
    *result = 0;
    for (int i = 0; i < sum->count; ++i)
        *result += values[i];
}

static void copies_and_kernels_reach_device_memory(bool checked) {
    start_devices(1, checked);
    int *device = (int *)(void *)malloc_ok(101 * sizeof(int)), host[101], *pinned;
    for (int i = 0; i < 100; ++i)
        host[i] = i;
    BASE_CHECK_EQ(cudaMallocHost((void **)&pinned, sizeof host), cudaSuccess);
    memset(pinned, 0, sizeof host);
    BASE_CHECK_EQ(cudaMemcpy(device, host, 100 * sizeof(int), cudaMemcpyHostToDevice), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset(device + 100, 0, sizeof(int)), cudaSuccess);
    struct sum sum = {device, device + 100, 100};
    BASE_CHECK_EQ(sim_launch(NULL, "sum", sum_body, &sum, sizeof sum), cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpy(pinned, device, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
    BASE_CHECK_EQ(pinned[100], 4950);
    sum = (struct sum){pinned, pinned + 1, 101}; // kernels reach page-locked memory
    BASE_CHECK_EQ(sim_launch(NULL, "sum", sum_body, &sum, sizeof sum), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(sim_device_bytes(device) == device, !checked);
    BASE_CHECK_EQ(sim_misuse_count(), 0);
}

// What a kernel of device 0 gets that reads, and writes, an int at POINTER.
static cudaError_t kernel_error(const void *from, void *to) {
    const struct sum sum = {from, to, 1};
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    BASE_CHECK_EQ(sim_launch(NULL, "sum", sum_body, &sum, sizeof sum), cudaSuccess);
    return cudaDeviceSynchronize();
}

static void kernels_fault_where_their_device_has_no_access(void) {
    enum { OWN, PEER, POOL, MAPPED, FREED, HOST, SHORT, COUNT };
    for (int what = 0; what < COUNT; ++what) {
        for (int allowed = 0; allowed <= (what <= MAPPED); ++allowed) {
            base_check_context("memory %d, allowed %d", what, allowed);
            start_devices(2, false);
            char *own = malloc_ok(100), *other, stack[8];
            BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
            other = malloc_ok(100);
            const void *from = other;
            void *block;
            cudaMemPool_t pool;
            BASE_CHECK_EQ(cudaMallocAsync(&block, 100, NULL), cudaSuccess);
            BASE_CHECK_EQ(cudaDeviceGetDefaultMemPool(&pool, 1), cudaSuccess);
            BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
            const CUdeviceptr mapped = map_granule();
            const struct cudaMemAccessDesc descriptor = {{cudaMemLocationTypeDevice, 0},
                                                         cudaMemAccessFlagsProtRead};
            switch (what) {
            case OWN: from = allowed ? (void *)own : (void *)(own + 98); break;
            case PEER:
                if (allowed)
                    BASE_CHECK_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
                break;
            case POOL:
                from = block;
                if (allowed)
                    BASE_CHECK_EQ(cudaMemPoolSetAccess(pool, &descriptor, 1), cudaSuccess);
                break;
            case MAPPED:
                from = (void *)(uintptr_t)mapped;
                access_set(mapped, 1, CU_MEM_ACCESS_FLAGS_PROT_READ);
                if (allowed)
                    access_set(mapped, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
                break;
            case FREED:
                from = malloc_ok(100);
                BASE_CHECK_EQ(cudaFree((void *)(uintptr_t)from), cudaSuccess);
                break;
            case HOST: from = stack; break;
            default: from = own + 200;
            }
            const cudaError_t expected = allowed ? cudaSuccess : cudaErrorIllegalAddress;
            BASE_CHECK_EQ(kernel_error(from, own), expected);
            BASE_CHECK_EQ(cudaDeviceSynchronize(), expected); // for good
            BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);     // of this device alone
            BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
        }
    }
    start_devices(1, false);
    const CUdeviceptr mapped = map_granule();
    access_set(mapped, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
    BASE_CHECK_EQ(kernel_error((void *)(uintptr_t)mapped, malloc_ok(4)), cudaSuccess);
    BASE_CHECK_EQ(kernel_error((void *)(uintptr_t)mapped, (void *)(uintptr_t)mapped),
                  cudaErrorIllegalAddress);
    base_check_context(NULL);
}

// --- Page-locked memory in flight ---

static void host_accesses_in_flight_are_found(void) {
    start();
    char *pinned, *device = malloc_ok(1000);
    cudaStream_t stream;
    BASE_CHECK_EQ(cudaMallocHost((void **)&pinned, 1000), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaMemcpyAsync(device, pinned, 100, cudaMemcpyHostToDevice, stream),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpyAsync(pinned + 500, device, 100, cudaMemcpyDeviceToHost, stream),
                  cudaSuccess);
    BASE_CHECK(sim_host_access(pinned, 100, false)); // both read
    BASE_CHECK(!sim_host_access(pinned, 1, true));
    BASE_CHECK(!sim_host_access(pinned + 99, 10, true));
    BASE_CHECK(sim_host_access(pinned + 100, 400, true));
    BASE_CHECK(!sim_host_access(pinned, 501, false));
    BASE_CHECK(!sim_host_access(pinned + 599, 1, false));
    BASE_CHECK(sim_host_access(pinned + 600, 400, true));
    BASE_CHECK(sim_host_access(pinned, 0, true));
    BASE_CHECK_EQ(sim_misuse_count(), 4);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK(sim_host_access(pinned, 1000, true));
    BASE_CHECK_EQ(sim_misuse_count(), 4);
}

int main(void) {
    wrong_arguments_get_a_sentence_too();
    sentences_say_what_was_done_wrong();
    nothing_is_said_outside_checked_mode();
    host_code_that_touches_device_memory_faults();
    new_and_freed_memory_is_poisoned();
    much_memory_costs_little();
    copies_and_kernels_reach_device_memory(false);
    copies_and_kernels_reach_device_memory(true);
    kernels_fault_where_their_device_has_no_access();
    host_accesses_in_flight_are_found();
    printf("checked: all as it should be\n");
    return 0;
}
