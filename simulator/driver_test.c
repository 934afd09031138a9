// The driver's side: initialization and primary contexts, attributes, names of errors, calls by
// name, and what it shares with the runtime.
#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <cuda.h>
#include <stdio.h>
#include <string.h>

static void start(int device_count) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = device_count,
                                                      .capacity_bytes = 64 * BASE_MIB}),
                  BASE_OK);
}

static int is_active(int device) {
    unsigned int flags;
    int active = -1;
    BASE_CHECK_EQ(cuDevicePrimaryCtxGetState(device, &flags, &active), CUDA_SUCCESS);
    return active;
}

static void nothing_works_before_cuInit(void) {
    start(2);
    int number, active;
    unsigned int flags;
    size_t size;
    CUdevice device;
    CUcontext context;
    BASE_CHECK_EQ(cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
    BASE_CHECK_EQ(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
    BASE_CHECK_EQ(cuDeviceTotalMem(&size, 0), CUDA_ERROR_NOT_INITIALIZED);
    BASE_CHECK_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_ERROR_NOT_INITIALIZED);
    BASE_CHECK_EQ(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
    BASE_CHECK_EQ(cuMemGetInfo(&size, &size), CUDA_ERROR_NOT_INITIALIZED);
    BASE_CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
    BASE_CHECK_EQ(cuDriverGetVersion(&number), CUDA_SUCCESS);
    BASE_CHECK_EQ(number, 13000);
    BASE_CHECK_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
    // Neither do these initialize anything.
    BASE_CHECK_EQ(cudaGetDevice(&number), cudaSuccess);
    BASE_CHECK_EQ(cudaGetDeviceCount(&number), cudaSuccess);
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
    BASE_CHECK_EQ(cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
    BASE_CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuDeviceGetCount(&number), CUDA_SUCCESS);
    BASE_CHECK_EQ(number, 2);
    BASE_CHECK_EQ(cuDeviceGetCount(NULL), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
    BASE_CHECK_EQ(cuDeviceGet(&device, 1), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    BASE_CHECK_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    BASE_CHECK(context == NULL);
    BASE_CHECK_EQ(is_active(0), 0);
}

static void the_runtime_makes_the_primary_context_current(void) {
    start(3);
    int device;
    CUcontext first, second, context;
    BASE_CHECK_EQ(cudaFree(NULL), cudaSuccess);
    BASE_CHECK_EQ(is_active(0), 1);
    BASE_CHECK_EQ(is_active(1), 0);
    BASE_CHECK_EQ(cuCtxGetCurrent(&first), CUDA_SUCCESS);
    BASE_CHECK(first != NULL);
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess); // at once, since CUDA 12
    BASE_CHECK_EQ(is_active(1), 1);
    BASE_CHECK_EQ(cuCtxGetCurrent(&second), CUDA_SUCCESS);
    BASE_CHECK(second != first);
    BASE_CHECK_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
    BASE_CHECK_EQ(device, 1);
    BASE_CHECK_EQ(cuCtxSetCurrent(first), CUDA_SUCCESS); // is the runtime's device as well
    BASE_CHECK_EQ(cudaGetDevice(&device), cudaSuccess);
    BASE_CHECK_EQ(device, 0);
    BASE_CHECK_EQ(cuCtxSetCurrent((CUcontext)(uintptr_t)12345), CUDA_ERROR_INVALID_CONTEXT);

    BASE_CHECK_EQ(cuCtxPushCurrent(second), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuCtxPushCurrent(first), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuCtxPushCurrent(NULL), CUDA_ERROR_INVALID_CONTEXT);
    BASE_CHECK_EQ(cuCtxPopCurrent(&context), CUDA_SUCCESS);
    BASE_CHECK(context == first);
    BASE_CHECK_EQ(cuCtxPopCurrent(NULL), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    BASE_CHECK(context == first);
    BASE_CHECK_EQ(cuCtxPopCurrent(&context), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuCtxPopCurrent(&context), CUDA_ERROR_INVALID_CONTEXT);
    BASE_CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    BASE_CHECK_EQ(cudaFree(NULL), cudaSuccess); // the runtime makes one current again
    BASE_CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    for (int i = 0; i < 32; ++i)
        BASE_CHECK_EQ(cuCtxPushCurrent(first), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuCtxPushCurrent(first), CUDA_ERROR_OUT_OF_MEMORY);
}

static void contexts_are_active_while_somebody_needs_them(void) {
    start(2);
    CUcontext context;
    BASE_CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuDevicePrimaryCtxRetain(&context, 2), CUDA_ERROR_INVALID_DEVICE);
    BASE_CHECK_EQ(cuDevicePrimaryCtxRetain(NULL, 1), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
    BASE_CHECK_EQ(cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
    BASE_CHECK_EQ(is_active(1), 1);
    BASE_CHECK_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
    BASE_CHECK_EQ(is_active(1), 0);
    BASE_CHECK_EQ(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
    BASE_CHECK_EQ(cudaInitDevice(1, 0, 0), cudaSuccess);
    BASE_CHECK_EQ(is_active(1), 1);
    int device;
    BASE_CHECK_EQ(cudaGetDevice(&device), cudaSuccess);
    BASE_CHECK_EQ(device, 0);
    BASE_CHECK_EQ(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT); // not current
    BASE_CHECK_EQ(cudaInitDevice(2, 0, 0), cudaErrorInvalidDevice);
    BASE_CHECK_EQ(cudaInitDevice(0, 0, 2), cudaErrorInvalidValue);
}

static void a_context_takes_memory_of_its_device(void) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = 2,
                                                      .capacity_bytes = 64 * BASE_MIB,
                                                      .context_bytes = 10 * BASE_MIB}),
                  BASE_OK);
    size_t free_bytes, total_bytes;
    void *pointer;
    BASE_CHECK_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    BASE_CHECK_EQ(free_bytes, 54 * BASE_MIB);
    BASE_CHECK_EQ(total_bytes, 64 * BASE_MIB);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 56 * BASE_MIB), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 54 * BASE_MIB), cudaSuccess);
    BASE_CHECK_EQ(sim_used_bytes(0), 54 * BASE_MIB);
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    sim_set_foreign_bytes(1, 4 * BASE_MIB);
    BASE_CHECK_EQ(cuMemGetInfo(&free_bytes, &total_bytes), CUDA_SUCCESS);
    BASE_CHECK_EQ(free_bytes, 50 * BASE_MIB);
}

static void devices_say_what_they_are(void) {
    start(1);
    static const struct {
        CUdevice_attribute attribute;
        int value;
    } expected[] = {
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0},
        {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    };
    struct cudaDeviceProp properties;
    int value;
    size_t bytes;
    char name[100];
    BASE_CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; ++i) {
        BASE_CHECK_EQ(cuDeviceGetAttribute(&value, expected[i].attribute, 0), CUDA_SUCCESS);
        BASE_CHECK_EQ(value, expected[i].value);
    }
    BASE_CHECK_EQ(cuDeviceGetAttribute(&value, (CUdevice_attribute)9999, 0),
                  CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1),
                  CUDA_ERROR_INVALID_DEVICE);
    BASE_CHECK_EQ(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0),
                  CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuDeviceTotalMem(&bytes, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(bytes, 64 * BASE_MIB);
    BASE_CHECK_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    BASE_CHECK_EQ(properties.memoryPoolsSupported, 1);
    BASE_CHECK_EQ(cuDeviceGetName(name, sizeof name, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(strcmp(name, properties.name), 0);
    BASE_CHECK_EQ(cuDeviceGetName(name, 5, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(strlen(name), 4);
    BASE_CHECK_EQ(cuDeviceGetName(name, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

static void errors_have_names(void) {
    const char *text;
    BASE_CHECK_EQ(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
    BASE_CHECK_EQ(strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY"), 0);
    BASE_CHECK_EQ(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
    BASE_CHECK_EQ(strcmp(text, "out of memory"), 0);
    BASE_CHECK_EQ(cuGetErrorString((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK(text == NULL);
    text = "";
    BASE_CHECK_EQ(cuGetErrorName((CUresult)-1, &text), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK(text == NULL);
    BASE_CHECK_EQ(cuGetErrorName(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void *by_name(const char *name, unsigned int version, unsigned long long flags,
                     int expected) {
    enum cudaDriverEntryPointQueryResult status = (enum cudaDriverEntryPointQueryResult)77;
    void *function = &function;
    BASE_CHECK_EQ(cudaGetDriverEntryPointByVersion(name, &function, version, flags, &status),
                  cudaSuccess);
    BASE_CHECK_EQ((int)status, expected);
    BASE_CHECK_EQ(function == NULL, expected != 0);
    return function;
}

static void calls_are_found_by_name_and_version(void) {
    start(1);
    // What PyTorch must find, at its version.
    static const char *const wanted[] = {
        "cuDeviceGetAttribute",
        "cuMemAddressReserve",
        "cuMemAddressFree",
        "cuMemCreate",
        "cuMemRelease",
        "cuMemMap",
        "cuMemUnmap",
        "cuMemSetAccess",
        "cuMemGetAllocationGranularity",
        "cuMemExportToShareableHandle",
        "cuMemImportFromShareableHandle",
        "cuMemsetD32Async",
        "cuStreamWriteValue32",
        "cuGetErrorString",
        "cuDevicePrimaryCtxGetState",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; ++i) {
        base_check_context("%s", wanted[i]);
        by_name(wanted[i], 12000, cudaEnableDefault, cudaDriverEntryPointSuccess);
    }
    base_check_context(NULL);
    BASE_CHECK(by_name("cuMemMap", 12000, 0, 0) == (void *)(uintptr_t)cuMemMap);
    BASE_CHECK(by_name("cuMemGetInfo", 12000, 0, 0) == (void *)(uintptr_t)cuMemGetInfo);
    by_name("cuMemMap", 10000, 0, cudaDriverEntryPointVersionNotSufficent);
    by_name("cuMemMap_v2", 13000, 0, cudaDriverEntryPointSymbolNotFound);
    by_name("cuMemGetInfo_v2", 13000, 0, cudaDriverEntryPointSymbolNotFound); // base names only
    by_name("", 13000, 0, cudaDriverEntryPointSymbolNotFound);
    BASE_CHECK(by_name("cuCtxGetDevice", 12090, 0, 0) != by_name("cuCtxGetDevice", 13000, 0, 0));
    BASE_CHECK(by_name("cuStreamWriteValue32", 12000, cudaEnableLegacyStream, 0) !=
               by_name("cuStreamWriteValue32", 12000, cudaEnablePerThreadDefaultStream, 0));

    void *function;
    CUdriverProcAddressQueryResult result;
    BASE_CHECK_EQ(cudaGetDriverEntryPointByVersion("cuMemMap", &function, 13010, 0, NULL),
                  cudaErrorInvalidValue); // newer than the driver
    BASE_CHECK_EQ(cudaGetDriverEntryPointByVersion("cuMemMap", &function, 13000, 4, NULL),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGetDriverEntryPointByVersion(NULL, &function, 13000, 0, NULL),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGetDriverEntryPointByVersion("cuMemMap", NULL, 13000, 0, NULL),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGetDriverEntryPointByVersion("cuMemMap", &function, 13000, 0, NULL),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaGetLastError(), cudaErrorInvalidValue);

    // Through the driver as well; what is found is the call itself.
    CUresult (*get_count)(int *count);
    int count = 0;
    BASE_CHECK_EQ(cuGetProcAddress("cuDeviceGetCount", &function, 12000, 0, &result), CUDA_SUCCESS);
    BASE_CHECK_EQ(result, CU_GET_PROC_ADDRESS_SUCCESS);
    memcpy(&get_count, &function, sizeof get_count);
    BASE_CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    BASE_CHECK_EQ(get_count(&count), CUDA_SUCCESS);
    BASE_CHECK_EQ(count, 1);
}

static void a_reset_ends_what_the_context_holds(void) {
    start(2);
    void *memory, *other, *block, *pinned;
    cudaStream_t stream, other_stream;
    cudaEvent_t event;
    int device;
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&other, 100), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreate(&other_stream), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&memory, 100), cudaSuccess);
    BASE_CHECK_EQ(cudaMallocHost(&pinned, 100), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreate(&stream), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    BASE_CHECK_EQ(cudaMallocAsync(&block, 100, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaMemsetAsync(memory, 1, 100, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceReset(), cudaSuccess);
    BASE_CHECK_EQ(is_active(0), 0);
    BASE_CHECK_EQ(cudaFree(memory), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFreeHost(pinned), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaErrorContextIsDestroyed);
    BASE_CHECK_EQ(cudaEventQuery(event), cudaErrorContextIsDestroyed);
    BASE_CHECK_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
    BASE_CHECK_EQ(sim_used_bytes(0), 32 * BASE_MIB); // the pool's
    BASE_CHECK_EQ(cudaFreeAsync(block, NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaGetDevice(&device), cudaSuccess);
    BASE_CHECK_EQ(device, 0);
    BASE_CHECK_EQ(is_active(0), 1);
    BASE_CHECK_EQ(cudaStreamSynchronize(other_stream), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(other), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&memory, 100), cudaSuccess);
}

static void driver_calls_leave_the_last_error_alone(void) {
    start(1);
    void *pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, SIZE_MAX), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cuMemRelease(0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cuMemRelease(0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
}

static void driver_calls_are_counted_and_made_to_fail(void) {
    start(1);
    CUdeviceptr pointer;
    BASE_CHECK_EQ(cudaFree(NULL), cudaSuccess);
    sim_fault_next(SIM_CALL_ADDRESS_RESERVE, 2, cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cuMemAddressReserve(&pointer, SIM_PAGE_BYTES, 0, 0, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemAddressReserve(&pointer, SIM_PAGE_BYTES, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    BASE_CHECK_EQ(cuMemAddressReserve(&pointer, SIM_PAGE_BYTES, 0, 0, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_ADDRESS_RESERVE), 3);
    BASE_CHECK_EQ(sim_call_failed_count(SIM_CALL_ADDRESS_RESERVE), 1);
}

static void values_are_written_in_stream_order(void) {
    start(1);
    cudaStream_t stream;
    uint32_t *words, *device;
    uint32_t read_back[4];
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaMallocHost((void **)&words, 4096), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc((void **)&device, 16), cudaSuccess);
    memset(words, 0, 4096);
    const CUdeviceptr address = (CUdeviceptr)(uintptr_t)words;
    const CUdeviceptr on_device = (CUdeviceptr)(uintptr_t)device;
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cuStreamWriteValue32(stream, address, 7, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuStreamWriteValue64(stream, address + 8, 0x123456789abcdef0, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(words[0], 0);
    BASE_CHECK_EQ(sim_stream_run(stream, 1), 1);
    BASE_CHECK_EQ(words[0], 7);
    BASE_CHECK_EQ(words[2], 0);
    sim_stream_hold(stream, false);
    BASE_CHECK_EQ(words[2], 0x9abcdef0);
    BASE_CHECK_EQ(words[3], 0x12345678);

    BASE_CHECK_EQ(cuMemsetD32Async(on_device, 0x01020304, 4, stream), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuStreamWriteValue32(stream, on_device + 4, 9, 1), CUDA_SUCCESS);
    BASE_CHECK_EQ(cudaMemcpy(read_back, device, 16, cudaMemcpyDeviceToHost), cudaSuccess);
    BASE_CHECK(read_back[0] == 0x01020304 && read_back[1] == 9 && read_back[3] == 0x01020304);
    BASE_CHECK_EQ(cuMemsetD32Async(on_device, 1, 0, stream), CUDA_SUCCESS);

    BASE_CHECK_EQ(cuStreamWriteValue32(stream, address + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuStreamWriteValue64(stream, address + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuStreamWriteValue32(stream, address, 1, 2), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuStreamWriteValue32(stream, 0, 1, 0), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuStreamWriteValue32(stream, (CUdeviceptr)(uintptr_t)read_back, 1, 0),
                  CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuStreamWriteValue32((CUstream)(uintptr_t)12345, address, 1, 0),
                  CUDA_ERROR_INVALID_HANDLE);
    BASE_CHECK_EQ(cuMemsetD32Async(on_device, 1, 5, stream), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemsetD32Async(on_device + 2, 1, 1, stream), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(cuMemsetD32Async(on_device, 1, SIZE_MAX, stream), CUDA_ERROR_INVALID_VALUE);
    BASE_CHECK_EQ(words[0], 7);
}

int main(void) {
    nothing_works_before_cuInit();
    the_runtime_makes_the_primary_context_current();
    contexts_are_active_while_somebody_needs_them();
    a_context_takes_memory_of_its_device();
    devices_say_what_they_are();
    errors_have_names();
    calls_are_found_by_name_and_version();
    a_reset_ends_what_the_context_holds();
    driver_calls_leave_the_last_error_alone();
    driver_calls_are_counted_and_made_to_fail();
    values_are_written_in_stream_order();
    return 0;
}
