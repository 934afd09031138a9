// The driver's virtual memory calls: codes for misuse, lifetime of memory behind handles and
// mappings, aliased bytes, rights, exhaustion of memory and of addresses. Expected values are those
// of the contract's tables and plain arithmetic.
#include "base/check.h"
#include "base/random.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <cuda.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define G SIM_PAGE_BYTES

static const CUmemAllocationProp on_device_0 = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};

static void start(struct sim_options options) {
    if (options.capacity_bytes == 0)
        options.capacity_bytes = 64 * G;
    BASE_CHECK_EQ(sim_configure(&options), BASE_OK);
    BASE_CHECK_EQ(cudaFree(NULL), cudaSuccess); // makes a context
}

static CUdeviceptr reserve_ok(uint64_t size) {
    CUdeviceptr pointer;
    BASE_CHECK_EQ(cuMemAddressReserve(&pointer, size, 0, 0, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(pointer % G, 0);
    return pointer;
}

static CUmemGenericAllocationHandle create_ok(uint64_t size) {
    CUmemGenericAllocationHandle handle;
    BASE_CHECK_EQ(cuMemCreate(&handle, size, &on_device_0, 0), CUDA_SUCCESS);
    return handle;
}

static CUresult set_access(CUdeviceptr pointer, uint64_t size, int device,
                           CUmemAccess_flags flags) {
    const CUmemAccessDesc descriptor = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
    return cuMemSetAccess(pointer, size, &descriptor, 1);
}

// Maps a handle of its own for each granule, without keeping the handles.
static void map_granules(CUdeviceptr pointer, int count) {
    for (int i = 0; i < count; ++i) {
        const CUmemGenericAllocationHandle handle = create_ok(G);
        BASE_CHECK_EQ(cuMemMap(pointer + (uint64_t)i * G, G, 0, handle, 0), CUDA_SUCCESS);
        BASE_CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    }
}

static cudaError_t write_bytes(CUdeviceptr pointer, int value, size_t size) {
    return cudaMemset((void *)(uintptr_t)pointer, value, size);
}

static int read_byte(CUdeviceptr pointer) {
    unsigned char byte = 0x77;
    const cudaError_t error =
        cudaMemcpy(&byte, (const void *)(uintptr_t)pointer, 1, cudaMemcpyDeviceToHost);
    return error == cudaSuccess ? byte : -(int)error;
}

static void calls_need_a_driver_and_a_context(void) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){0}), BASE_OK);
    CUdeviceptr pointer = 1;
    CUcontext context;
    CUmemGenericAllocationHandle handle;
    BASE_CHECK_EQ(cuMemAddressReserve(&pointer, G, 0, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
    BASE_CHECK_EQ(cuMemCreate(&handle, G, &on_device_0, 0), CUDA_ERROR_NOT_INITIALIZED);
    BASE_CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemAddressReserve(&pointer, G, 0, 0, 0), CUDA_ERROR_INVALID_CONTEXT);
    BASE_CHECK_EQ(cuMemUnmap(0, G), CUDA_ERROR_INVALID_CONTEXT);
    BASE_CHECK_EQ(pointer, 1);
    BASE_CHECK_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemAddressReserve(&pointer, G, 0, 0, 0), CUDA_ERROR_INVALID_CONTEXT);
    BASE_CHECK_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemAddressReserve(&pointer, G, 0, 0, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess); // no driver call touches it
}

static void reserve_and_free_take_what_they_may(void) {
    start((struct sim_options){.numerics = SIM_NUMERICS_OFF});
    CUdeviceptr a, b;
    size_t free_bytes, total_bytes;
    BASE_CHECK_EQ(cuMemAddressReserve(NULL, G, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemAddressReserve(&a, G, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemAddressReserve(&a, 0, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    BASE_CHECK_EQ(cuMemAddressReserve(&a, G + 1, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    BASE_CHECK_EQ(cuMemAddressReserve(&a, G, 3 * G, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    BASE_CHECK_EQ(cuMemAddressReserve(&a, SIZE_MAX - G + 1, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    BASE_CHECK_EQ(cuMemAddressReserve(&a, G, (size_t)1 << 63, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);

    // More than the device has, and no memory taken.
    BASE_CHECK_EQ(cuMemAddressReserve(&a, 1024 * G, 0, 0, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemGetInfo(&free_bytes, &total_bytes), CUDA_SUCCESS);
    BASE_CHECK_EQ(free_bytes, total_bytes);
    BASE_CHECK_EQ(cuMemAddressReserve(&b, 4 * G, 64 * G, 0, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(b % (64 * G), 0);
    BASE_CHECK(b >= a + 1024 * G || b + 4 * G <= a);

    BASE_CHECK_EQ(cuMemAddressFree(b, G), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemAddressFree(b + G, 3 * G), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemAddressFree(0, 4 * G), CUDA_ERROR_INVALID_VALUE);
    map_granules(b + G, 1);
    BASE_CHECK_EQ(cuMemAddressFree(b, 4 * G), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemUnmap(b + G, G), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemAddressFree(b, 4 * G), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemAddressFree(b, 4 * G), CUDA_ERROR_INVALID_VALUE);
}

static void hints_are_followed_where_there_is_room(enum sim_numerics numerics) {
    start((struct sim_options){.numerics = numerics});
    const CUdeviceptr a = reserve_ok(8 * G);
    CUdeviceptr b, c;
    BASE_CHECK_EQ(cuMemAddressReserve(&b, 2 * G, 0, a + 100 * G, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(b, a + 100 * G);
    BASE_CHECK_EQ(cuMemAddressReserve(&c, 2 * G, 0, a + 101 * G, 0), CUDA_SUCCESS); // taken
    BASE_CHECK(c != a + 101 * G);
    BASE_CHECK_EQ(cuMemAddressReserve(&c, 2 * G, 0, 12345, 0), CUDA_SUCCESS);
    for (int i = 0; i < 200; ++i) { // what comes next keeps clear of them
        const CUdeviceptr d = reserve_ok(G);
        BASE_CHECK(d + G <= b || d >= b + 2 * G);
        BASE_CHECK(d + G <= a || d >= a + 8 * G);
    }
}

static void addresses_run_out_at_the_budget(void) {
    start((struct sim_options){.numerics = SIM_NUMERICS_OFF, .address_bytes = 100 * G});
    CUdeviceptr pointer;
    void *memory;
    const CUdeviceptr a = reserve_ok(60 * G);
    BASE_CHECK_EQ(cuMemAddressReserve(&pointer, 41 * G, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    reserve_ok(30 * G);
    BASE_CHECK_EQ(cudaMalloc(&memory, 11 * G), cudaErrorMemoryAllocation); // memory there would be
    BASE_CHECK_EQ(cudaMalloc(&memory, 10 * G), cudaSuccess);
    BASE_CHECK_EQ(cuMemAddressReserve(&pointer, G, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    BASE_CHECK_EQ(cudaFree(memory), cudaSuccess);
    reserve_ok(10 * G);
    BASE_CHECK_EQ(cuMemAddressFree(a, 60 * G), CUDA_SUCCESS);
    reserve_ok(60 * G);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

static void reserving_for_ever_uses_addresses_again(void) {
    start((struct sim_options){.numerics = SIM_NUMERICS_ON});
    const CUdeviceptr kept = reserve_ok(G);
    for (int i = 0; i < 3000; ++i) { // 48 TiB with numerics on, or 16 GiB
        const CUdeviceptr pointer = reserve_ok(8192 * G);
        BASE_CHECK(pointer > kept || pointer + 8192 * G <= kept);
        BASE_CHECK_EQ(cuMemAddressFree(pointer, 8192 * G), CUDA_SUCCESS);
    }
}

static void create_refuses_what_it_must(void) {
    start((struct sim_options){.device_count = 2, .numerics = SIM_NUMERICS_OFF});
    CUmemGenericAllocationHandle handle = 7;
    CUmemAllocationProp properties = on_device_0;
    size_t granularity;
    BASE_CHECK_EQ(cuMemCreate(NULL, G, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemCreate(&handle, G, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemCreate(&handle, G, &properties, 1), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemCreate(&handle, 0, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemCreate(&handle, G / 2, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemCreate(&handle, 65 * G, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
    BASE_CHECK_EQ(cuMemCreate(&handle, SIZE_MAX - G + 1, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
    properties.location.id = 2;
    BASE_CHECK_EQ(cuMemCreate(&handle, G, &properties, 0), CUDA_ERROR_INVALID_DEVICE);
    properties.location.id = -1;
    BASE_CHECK_EQ(cuMemCreate(&handle, G, &properties, 0), CUDA_ERROR_INVALID_DEVICE);
    properties.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0};
    BASE_CHECK_EQ(cuMemCreate(&handle, G, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    properties = on_device_0;
    properties.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    BASE_CHECK_EQ(cuMemCreate(&handle, G, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    properties = on_device_0;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    BASE_CHECK_EQ(cuMemCreate(&handle, G, &properties, 0), CUDA_ERROR_NOT_SUPPORTED);
    properties.requestedHandleTypes = (CUmemAllocationHandleType)0x100;
    BASE_CHECK_EQ(cuMemCreate(&handle, G, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(handle, 7);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);

    BASE_CHECK_EQ(
        cuMemGetAllocationGranularity(&granularity, &on_device_0, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        CUDA_SUCCESS);
    BASE_CHECK_EQ(granularity, G);
    BASE_CHECK_EQ(cuMemGetAllocationGranularity(&granularity, &on_device_0,
                                                CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                  CUDA_SUCCESS);
    BASE_CHECK_EQ(granularity, G);
    BASE_CHECK_EQ(
        cuMemGetAllocationGranularity(NULL, &on_device_0, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemGetAllocationGranularity(&granularity, &on_device_0,
                                                (CUmemAllocationGranularity_flags)2),
                  CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
}

static void map_refuses_what_it_must(void) {
    start((struct sim_options){.numerics = SIM_NUMERICS_OFF});
    const CUdeviceptr p = reserve_ok(8 * G);
    const CUmemGenericAllocationHandle handle = create_ok(2 * G);
    BASE_CHECK_EQ(cuMemMap(p, 2 * G, G, handle, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemMap(p, 2 * G, 0, handle, 1), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemMap(p + 512, 2 * G, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemMap(p, G + 512, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemMap(p, 0, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemMap(p, 3 * G, 0, handle, 0), CUDA_ERROR_INVALID_VALUE); // above the handle
    BASE_CHECK_EQ(cuMemMap(p + 7 * G, 2 * G, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemMap(p - G, 2 * G, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemMap(0, 2 * G, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemMap(p, SIZE_MAX - G + 1, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemMap(p, G, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemMap(p, G, 0, handle + 1, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemMap(p, 2 * G, 0, handle, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemMap(p + G, 2 * G, 0, handle, 0), CUDA_ERROR_INVALID_VALUE); // overlaps
    BASE_CHECK_EQ(cuMemMap(p + 2 * G, G, 0, handle, 0), CUDA_SUCCESS);             // a part
    BASE_CHECK_EQ(sim_used_bytes(0), 2 * G);
}

static void unmap_takes_whole_mappings_without_holes(void) {
    start((struct sim_options){.numerics = SIM_NUMERICS_ON});
    const CUdeviceptr p = reserve_ok(8 * G);
    const CUmemGenericAllocationHandle two = create_ok(2 * G);
    BASE_CHECK_EQ(cuMemMap(p, 2 * G, 0, two, 0), CUDA_SUCCESS);
    map_granules(p + 2 * G, 2);
    map_granules(p + 5 * G, 1);
    BASE_CHECK_EQ(cuMemUnmap(p, G), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemUnmap(p + G, G), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemUnmap(p + G, 2 * G), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemUnmap(p + 2 * G, 4 * G), CUDA_ERROR_INVALID_VALUE); // a hole
    BASE_CHECK_EQ(cuMemUnmap(p + 4 * G, G), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemUnmap(p, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemUnmap(p, 3 * G - 1), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemUnmap(p + 7 * G, 2 * G), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(sim_used_bytes(0), 5 * G);
    BASE_CHECK_EQ(cuMemUnmap(p, 4 * G), CUDA_SUCCESS); // three of them
    BASE_CHECK_EQ(sim_used_bytes(0), 3 * G);           // the handle TWO remains
    BASE_CHECK_EQ(cuMemUnmap(p, 2 * G), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemRelease(two), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemUnmap(p + 5 * G, G), CUDA_SUCCESS);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

static void memory_lives_while_a_handle_or_a_mapping_does(void) {
    start((struct sim_options){.numerics = SIM_NUMERICS_ON});
    const CUdeviceptr p = reserve_ok(4 * G);
    CUmemGenericAllocationHandle handle = create_ok(G), same;
    BASE_CHECK_EQ(cuMemMap(p, G, 0, handle, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE); // no reference left
    BASE_CHECK_EQ(cuMemMap(p + G, G, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(sim_used_bytes(0), G);
    BASE_CHECK_EQ(set_access(p, G, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_SUCCESS);
    BASE_CHECK_EQ(write_bytes(p, 42, G), cudaSuccess);

    BASE_CHECK_EQ(cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)(p + G)),
                  CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemRetainAllocationHandle(NULL, (void *)(uintptr_t)p),
                  CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)(p + 12345)), CUDA_SUCCESS);
    BASE_CHECK_EQ(same, handle);
    BASE_CHECK_EQ(cuMemUnmap(p, G), CUDA_SUCCESS);
    BASE_CHECK_EQ(sim_used_bytes(0), G);
    BASE_CHECK_EQ(read_byte(p), -(int)cudaErrorInvalidValue);

    BASE_CHECK_EQ(cuMemMap(p + 2 * G, G, 0, same, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(read_byte(p + 2 * G), -(int)cudaErrorInvalidValue); // nobody's access at first
    BASE_CHECK_EQ(set_access(p + 2 * G, G, 0, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_SUCCESS);
    BASE_CHECK_EQ(read_byte(p + 2 * G), 42); // what was written through the first mapping
    BASE_CHECK_EQ(cuMemUnmap(p + 2 * G, G), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    BASE_CHECK_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemRelease(0), CUDA_ERROR_INVALID_VALUE);
}

static void aliased_mappings_show_the_same_bytes(bool checked) {
    start((struct sim_options){.numerics = SIM_NUMERICS_ON, .checked = checked});
    const CUdeviceptr p = reserve_ok(8 * G);
    const CUmemGenericAllocationHandle handle = create_ok(2 * G);
    BASE_CHECK_EQ(cuMemMap(p, 2 * G, 0, handle, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemMap(p + 4 * G, 2 * G, 0, handle, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(sim_used_bytes(0), 2 * G);
    BASE_CHECK_EQ(set_access(p, 2 * G, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_SUCCESS);
    BASE_CHECK_EQ(set_access(p + 4 * G, 2 * G, 0, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_SUCCESS);
    BASE_CHECK_EQ(write_bytes(p, 7, 2 * G), cudaSuccess);
    BASE_CHECK_EQ(read_byte(p + 4 * G), 7);
    BASE_CHECK_EQ(read_byte(p + 6 * G - 1), 7);
    BASE_CHECK_EQ(write_bytes(p + G + 1, 9, 1), cudaSuccess);
    BASE_CHECK_EQ(read_byte(p + 5 * G + 1), 9);
    BASE_CHECK_EQ(read_byte(p + 5 * G), 7);
    BASE_CHECK_EQ(write_bytes(p + 4 * G, 1, 1), cudaErrorInvalidValue); // read only there
    BASE_CHECK_EQ(read_byte(p), 7);
}

static void access_is_by_device_and_by_range(void) {
    start((struct sim_options){.device_count = 3, .numerics = SIM_NUMERICS_ON});
    const CUdeviceptr p = reserve_ok(8 * G);
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    unsigned long long flags;
    map_granules(p, 3);
    map_granules(p + 4 * G, 1);
    BASE_CHECK_EQ(set_access(p, 4 * G, 0, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(set_access(p, G / 2, 0, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(set_access(p, 0, 0, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(set_access(p, G, 3, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(set_access(p, G, 0, (CUmemAccess_flags)2), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemSetAccess(p, G, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    CUmemAccessDesc both[2] = {
        {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ},
        {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    BASE_CHECK_EQ(cuMemSetAccess(p, G, both, 0), CUDA_ERROR_INVALID_VALUE);
    both[1].location.id = 3; // nothing changes then
    BASE_CHECK_EQ(cuMemSetAccess(p, G, both, 2), CUDA_ERROR_INVALID_VALUE);
    location.id = 0;
    BASE_CHECK_EQ(cuMemGetAccess(&flags, &location, p), CUDA_SUCCESS);
    BASE_CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    both[1].location.id = 1;
    BASE_CHECK_EQ(cuMemSetAccess(p, 3 * G, both, 2), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemGetAccess(&flags, &location, p + G + 77), CUDA_SUCCESS);
    BASE_CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
    location.id = 1;
    BASE_CHECK_EQ(cuMemGetAccess(&flags, &location, p), CUDA_SUCCESS);
    BASE_CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    location.id = 2;
    BASE_CHECK_EQ(cuMemGetAccess(&flags, &location, p), CUDA_SUCCESS);
    BASE_CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    BASE_CHECK_EQ(cuMemGetAccess(&flags, &location, p + 3 * G), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemGetAccess(NULL, &location, p), CUDA_ERROR_INVALID_VALUE);
    location.id = 3;
    BASE_CHECK_EQ(cuMemGetAccess(&flags, &location, p), CUDA_ERROR_INVALID_VALUE);

    // The rights are those of the stream's device. A range may go over mappings, not over holes.
    char bytes[8] = {0};
    cudaStream_t stream_1;
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream_1, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaMemsetAsync((void *)(uintptr_t)(p + G - 2), 5, G + 4, stream_1), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    BASE_CHECK_EQ(write_bytes(p, 1, 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemcpy(bytes, (void *)(uintptr_t)(p + 2 * G - 4), 8, cudaMemcpyDeviceToHost),
                  cudaSuccess);
    BASE_CHECK(memcmp(bytes, "\5\5\5\5\5\5\0\0", 8) == 0);
    BASE_CHECK_EQ(cudaMemcpy(bytes, (void *)(uintptr_t)(p + 3 * G - 4), 8, cudaMemcpyDeviceToHost),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaSetDevice(2), cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpy(bytes, (void *)(uintptr_t)p, 8, cudaMemcpyDeviceToHost),
                  cudaErrorInvalidValue);
    // A remapping begins without rights again.
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cuMemUnmap(p, G), CUDA_SUCCESS);
    map_granules(p, 1);
    BASE_CHECK_EQ(write_bytes(p, 1, 1), cudaErrorInvalidValue);
    // Rights can be taken away.
    BASE_CHECK_EQ(write_bytes(p + G, 1, 1), cudaSuccess);
    BASE_CHECK_EQ(set_access(p + G, G, 1, CU_MEM_ACCESS_FLAGS_PROT_NONE), CUDA_SUCCESS);
    BASE_CHECK_EQ(write_bytes(p + G, 1, 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    BASE_CHECK_EQ(read_byte(p + G), 1);
}

static void the_kth_create_finds_the_device_full(void) {
    for (int k = 1; k <= 9; ++k) {
        base_check_context("k = %d", k);
        start((struct sim_options){.capacity_bytes = (uint64_t)(k - 1) * G + 3 * G,
                                   .numerics = k % 2 == 0 ? SIM_NUMERICS_ON : SIM_NUMERICS_OFF});
        void *memory;
        CUmemGenericAllocationHandle handle;
        const CUdeviceptr p = reserve_ok(16 * G);
        BASE_CHECK_EQ(cudaMalloc(&memory, 2 * G + 1), cudaSuccess); // shares the memory: 3 pages
        for (int i = 1; i < k; ++i)
            map_granules(p + (uint64_t)i * G, 1);
        BASE_CHECK_EQ(cuMemCreate(&handle, G, &on_device_0, 0), CUDA_ERROR_OUT_OF_MEMORY);
        BASE_CHECK_EQ(cudaFree(memory), cudaSuccess);
        BASE_CHECK_EQ(cuMemCreate(&handle, 3 * G, &on_device_0, 0), CUDA_SUCCESS);
        BASE_CHECK_EQ(cudaMalloc(&memory, 1), cudaErrorMemoryAllocation);
        BASE_CHECK_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    }
    base_check_context(NULL);
}

static void memory_travels_through_a_file_descriptor(void) {
    start((struct sim_options){.capacity_bytes = 4 * G, .numerics = SIM_NUMERICS_ON});
    const CUdeviceptr p = reserve_ok(8 * G);
    CUmemAllocationProp properties = on_device_0, read_back;
    CUmemGenericAllocationHandle handle, plain, imported;
    int fd = -1;
    size_t free_bytes, total_bytes;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    BASE_CHECK_EQ(cuMemCreate(&handle, 2 * G, &properties, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemGetAllocationPropertiesFromHandle(&read_back, handle), CUDA_SUCCESS);
    BASE_CHECK_EQ(read_back.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    BASE_CHECK_EQ(cuMemGetAllocationPropertiesFromHandle(NULL, handle), CUDA_ERROR_INVALID_VALUE);
    plain = create_ok(G);
    BASE_CHECK_EQ(
        cuMemExportToShareableHandle(&fd, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_ERROR_INVALID_VALUE); // was not asked for at the creation
    BASE_CHECK_EQ(
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1),
        CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0),
                  CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_SUCCESS);
    BASE_CHECK_GE(fd, 0);

    // The descriptor alone keeps the memory, and so does a duplicate of it.
    BASE_CHECK_EQ(cuMemMap(p, 2 * G, 0, handle, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(set_access(p, 2 * G, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_SUCCESS);
    BASE_CHECK_EQ(write_bytes(p, 33, 2 * G), cudaSuccess);
    BASE_CHECK_EQ(cuMemUnmap(p, 2 * G), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    const int duplicate = dup(fd);
    BASE_CHECK_EQ(close(fd), 0);
    BASE_CHECK_EQ(cuMemGetInfo(&free_bytes, &total_bytes), CUDA_SUCCESS);
    BASE_CHECK_EQ(free_bytes, G);

    BASE_CHECK_EQ(cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)duplicate,
                                                 CU_MEM_HANDLE_TYPE_FABRIC),
                  CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)duplicate,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                  CUDA_SUCCESS);
    BASE_CHECK_EQ(close(duplicate), 0);
    BASE_CHECK_EQ(cuMemMap(p + 4 * G, 2 * G, 0, imported, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(set_access(p + 4 * G, 2 * G, 0, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_SUCCESS);
    BASE_CHECK_EQ(read_byte(p + 5 * G), 33);
    BASE_CHECK_EQ(cuMemRelease(imported), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemUnmap(p + 4 * G, 2 * G), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemGetInfo(&free_bytes, &total_bytes), CUDA_SUCCESS);
    BASE_CHECK_EQ(free_bytes, 3 * G);

    // Descriptors that are none, or somebody else's.
    const int other = open("/dev/null", O_RDONLY);
    BASE_CHECK_EQ(cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)other,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                  CUDA_ERROR_UNKNOWN);
    BASE_CHECK_EQ(cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)12345,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                  CUDA_ERROR_UNKNOWN);
    BASE_CHECK_EQ(cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)-1,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                  CUDA_ERROR_UNKNOWN);
    close(other);
}

static void a_closed_descriptor_gives_way_to_an_allocation(void) {
    start((struct sim_options){.capacity_bytes = 4 * G, .numerics = SIM_NUMERICS_OFF});
    CUmemAllocationProp properties = on_device_0;
    CUmemGenericAllocationHandle handle;
    void *memory;
    int fd;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    BASE_CHECK_EQ(cuMemCreate(&handle, 4 * G, &properties, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    BASE_CHECK_EQ(cudaMalloc(&memory, 1), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(close(fd), 0);
    BASE_CHECK_EQ(cudaMalloc(&memory, 4 * G), cudaSuccess);
}

static void mapped_memory_is_no_memory_of_cudaMalloc(void) {
    start((struct sim_options){.numerics = SIM_NUMERICS_ON});
    struct cudaPointerAttributes attributes;
    const CUdeviceptr p = reserve_ok(4 * G);
    map_granules(p, 1);
    BASE_CHECK_EQ(cudaFree((void *)(uintptr_t)p), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFree((void *)(uintptr_t)(p + G)), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaPointerGetAttributes(&attributes, (void *)(uintptr_t)(p + 5)), cudaSuccess);
    BASE_CHECK_EQ(attributes.type, cudaMemoryTypeDevice);
    BASE_CHECK_EQ(attributes.device, 0);
    BASE_CHECK_EQ(sim_used_bytes(0), G);
}

static void work_that_finds_its_memory_unmapped_faults(void) {
    start((struct sim_options){.numerics = SIM_NUMERICS_ON});
    const CUdeviceptr p = reserve_ok(2 * G);
    cudaStream_t stream;
    map_granules(p, 2);
    BASE_CHECK_EQ(set_access(p, 2 * G, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_SUCCESS);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaMemsetAsync((void *)(uintptr_t)(p + G), 1, 8, stream), cudaSuccess);
    BASE_CHECK_EQ(cuMemUnmap(p + G, G), CUDA_SUCCESS); // waits for nothing
    BASE_CHECK_EQ(sim_stream_pending(stream), 1);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    BASE_CHECK_EQ(cudaFree(NULL), cudaErrorIllegalAddress); // for good
    BASE_CHECK_EQ(cuMemUnmap(p, G), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// Against a naive model: which granule shows which handle's byte, and how much memory is used.
#define GRANULES 12
#define HANDLES 6

struct model {
    int mapped[GRANULES];     // handle mapped there, or -1
    bool first[GRANULES];     // a mapping begins there
    int size[HANDLES];        // in granules; 0: no such handle
    bool referenced[HANDLES]; // the program holds it
    int bytes[HANDLES][3];    // in each granule
    CUmemGenericAllocationHandle handles[HANDLES];
};

static bool is_mapped(const struct model *model, int handle) {
    for (int i = 0; i < GRANULES; ++i)
        if (model->mapped[i] == handle)
            return true;
    return false;
}

static void model_drop_dead(struct model *model) {
    for (int h = 0; h < HANDLES; ++h)
        if (!model->referenced[h] && !is_mapped(model, h))
            model->size[h] = 0;
}

static uint64_t model_used(const struct model *model) {
    uint64_t used = 0;
    for (int h = 0; h < HANDLES; ++h)
        used += (uint64_t)model->size[h] * G;
    return used;
}

static void model_create(struct model *model, struct base_random *random) {
    for (int h = 0; h < HANDLES; ++h) {
        if (model->size[h] > 0)
            continue;
        model->size[h] = 1 + (int)base_random_below(random, 3);
        model->handles[h] = create_ok((uint64_t)model->size[h] * G);
        model->referenced[h] = true;
        memset(model->bytes[h], 0, sizeof model->bytes[h]);
        return;
    }
}

static void model_release(struct model *model, struct base_random *random) {
    const int h = (int)base_random_below(random, HANDLES);
    const bool ok = model->size[h] > 0 && model->referenced[h];
    BASE_CHECK_EQ(cuMemRelease(model->handles[h]), ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    model->referenced[h] = false;
    model_drop_dead(model);
}

static void model_map(struct model *model, struct base_random *random, CUdeviceptr p) {
    const int h = (int)base_random_below(random, HANDLES);
    const int at = (int)base_random_below(random, GRANULES);
    const int size = 1 + (int)base_random_below(random, 3);
    bool ok = model->size[h] > 0 && model->referenced[h] && size <= model->size[h] &&
              at + size <= GRANULES;
    for (int i = at; ok && i < at + size; ++i)
        ok = model->mapped[i] < 0;
    const CUdeviceptr address = p + (uint64_t)at * G;
    BASE_CHECK_EQ(cuMemMap(address, (uint64_t)size * G, 0, model->handles[h], 0),
                  ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    if (!ok)
        return;
    for (int i = at; i < at + size; ++i) {
        model->mapped[i] = h;
        model->first[i] = i == at;
    }
    BASE_CHECK_EQ(set_access(address, (uint64_t)size * G, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
                  CUDA_SUCCESS);
}

static void model_unmap(struct model *model, struct base_random *random, CUdeviceptr p) {
    const int at = (int)base_random_below(random, GRANULES);
    const int size = 1 + (int)base_random_below(random, 5);
    bool ok = at + size <= GRANULES && model->mapped[at] >= 0 && model->first[at] &&
              (at + size == GRANULES || model->mapped[at + size] < 0 || model->first[at + size]);
    for (int i = at; ok && i < at + size; ++i)
        ok = model->mapped[i] >= 0;
    BASE_CHECK_EQ(cuMemUnmap(p + (uint64_t)at * G, (uint64_t)size * G),
                  ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    for (int i = at; ok && i < at + size; ++i)
        model->mapped[i] = -1;
    model_drop_dead(model);
}

// Which granule of its handle a granule of addresses shows.
static int granule_of(const struct model *model, int at) {
    int granule = 0;
    while (!model->first[at--])
        ++granule;
    return granule;
}

static void model_touch(struct model *model, struct base_random *random, CUdeviceptr p) {
    const int at = (int)base_random_below(random, GRANULES);
    const CUdeviceptr address = p + (uint64_t)at * G + base_random_below(random, G / 4096) * 4096;
    if (model->mapped[at] < 0) {
        BASE_CHECK_EQ(read_byte(address), -(int)cudaErrorInvalidValue);
        return;
    }
    int *byte = &model->bytes[model->mapped[at]][granule_of(model, at)];
    const CUdeviceptr base = p + (uint64_t)at * G;
    BASE_CHECK_EQ(read_byte(base), *byte);
    *byte = (int)base_random_below(random, 256);
    BASE_CHECK_EQ(write_bytes(base, *byte, 1), cudaSuccess);
}

static void mappings_agree_with_a_naive_model(uint64_t seed) {
    struct base_random random = base_random_init(seed, "virtual_memory_test");
    struct model model = {0};
    start((struct sim_options){
        .capacity_bytes = 3 * HANDLES * G, .numerics = SIM_NUMERICS_ON, .checked = false});
    const CUdeviceptr p = reserve_ok(GRANULES * G);
    for (int i = 0; i < GRANULES; ++i)
        model.mapped[i] = -1;
    for (int step = 0; step < 600; ++step) {
        base_check_context("seed %llu, step %d", (unsigned long long)seed, step);
        switch (base_random_below(&random, 6)) {
        case 0: model_create(&model, &random); break;
        case 1: model_release(&model, &random); break;
        case 2:
        case 3: model_map(&model, &random, p); break;
        case 4: model_unmap(&model, &random, p); break;
        default: model_touch(&model, &random, p);
        }
        BASE_CHECK_EQ(sim_used_bytes(0), model_used(&model));
    }
    base_check_context(NULL);
}

int main(void) {
    calls_need_a_driver_and_a_context();
    reserve_and_free_take_what_they_may();
    hints_are_followed_where_there_is_room(SIM_NUMERICS_ON);
    hints_are_followed_where_there_is_room(SIM_NUMERICS_OFF);
    addresses_run_out_at_the_budget();
    reserving_for_ever_uses_addresses_again();
    create_refuses_what_it_must();
    map_refuses_what_it_must();
    unmap_takes_whole_mappings_without_holes();
    memory_lives_while_a_handle_or_a_mapping_does();
    aliased_mappings_show_the_same_bytes(false);
    aliased_mappings_show_the_same_bytes(true);
    access_is_by_device_and_by_range();
    the_kth_create_finds_the_device_full();
    memory_travels_through_a_file_descriptor();
    a_closed_descriptor_gives_way_to_an_allocation();
    mapped_memory_is_no_memory_of_cudaMalloc();
    work_that_finds_its_memory_unmapped_faults();
    for (uint64_t seed = 1; seed <= 6; ++seed)
        mappings_agree_with_a_naive_model(seed);
    printf("virtual_memory: seeds 1 to 6\n");
    return 0;
}
