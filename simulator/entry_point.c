// Driver calls by name: the base name, without suffix, and the version of CUDA that the caller was
// written for. An entry says since which version a name has this type; where CUDA has an older
// variant of the same type, that one is the same function here.
#include "simulator/call.h"
#include "simulator/driver.h"
#include "simulator/transcript.h"

#include <string.h>

struct entry {
    const char *name;
    int version;
    void (*function)(void);
};

// X(NAME, VERSION, SYMBOL): the exported function. Of one name, newer variants come first.
#define ENTRY_LIST(X)                                                                              \
    X("cuGetErrorName", 6000, cuGetErrorName)                                                      \
    X("cuGetErrorString", 6000, cuGetErrorString)                                                  \
    X("cuInit", 2000, cuInit)                                                                      \
    X("cuDriverGetVersion", 2020, cuDriverGetVersion)                                              \
    X("cuDeviceGetCount", 2000, cuDeviceGetCount)                                                  \
    X("cuDeviceGet", 2000, cuDeviceGet)                                                            \
    X("cuDeviceGetName", 2000, cuDeviceGetName)                                                    \
    X("cuDeviceGetAttribute", 2000, cuDeviceGetAttribute)                                          \
    X("cuDeviceTotalMem", 3020, cuDeviceTotalMem_v2)                                               \
    X("cuMemGetInfo", 3020, cuMemGetInfo_v2)                                                       \
    X("cuDevicePrimaryCtxRetain", 7000, cuDevicePrimaryCtxRetain)                                  \
    X("cuDevicePrimaryCtxRelease", 7000, cuDevicePrimaryCtxRelease_v2)                             \
    X("cuDevicePrimaryCtxGetState", 7000, cuDevicePrimaryCtxGetState)                              \
    X("cuCtxGetCurrent", 4000, cuCtxGetCurrent)                                                    \
    X("cuCtxSetCurrent", 4000, cuCtxSetCurrent)                                                    \
    X("cuCtxPushCurrent", 4000, cuCtxPushCurrent_v2)                                               \
    X("cuCtxPopCurrent", 4000, cuCtxPopCurrent_v2)                                                 \
    X("cuCtxGetDevice", 13000, cuCtxGetDevice_v2)                                                  \
    X("cuCtxGetDevice", 2000, cuCtxGetDevice)                                                      \
    X("cuCtxSynchronize", 13000, cuCtxSynchronize_v2)                                              \
    X("cuCtxSynchronize", 2000, cuCtxSynchronize)                                                  \
    X("cuMemGetAllocationGranularity", 10020, cuMemGetAllocationGranularity)                       \
    X("cuMemAddressReserve", 10020, cuMemAddressReserve)                                           \
    X("cuMemAddressFree", 10020, cuMemAddressFree)                                                 \
    X("cuMemCreate", 10020, cuMemCreate)                                                           \
    X("cuMemRelease", 10020, cuMemRelease)                                                         \
    X("cuMemRetainAllocationHandle", 11000, cuMemRetainAllocationHandle)                           \
    X("cuMemGetAllocationPropertiesFromHandle", 10020, cuMemGetAllocationPropertiesFromHandle)     \
    X("cuMemExportToShareableHandle", 10020, cuMemExportToShareableHandle)                         \
    X("cuMemImportFromShareableHandle", 10020, cuMemImportFromShareableHandle)                     \
    X("cuMemMap", 10020, cuMemMap)                                                                 \
    X("cuMemUnmap", 10020, cuMemUnmap)                                                             \
    X("cuMemSetAccess", 10020, cuMemSetAccess)                                                     \
    X("cuMemGetAccess", 10020, cuMemGetAccess)                                                     \
    X("cuMemsetD32Async", 3020, cuMemsetD32Async)                                                  \
    X("cuStreamWriteValue32", 8000, cuStreamWriteValue32_v2)                                       \
    X("cuStreamWriteValue64", 9000, cuStreamWriteValue64_v2)                                       \
    X("cuGetProcAddress", 11030, cuGetProcAddress_v2)

// The same for those with a per-thread variant.
#define PER_THREAD_LIST(X)                                                                         \
    X("cuMemsetD32Async", 3020, cuMemsetD32Async_ptsz)                                             \
    X("cuStreamWriteValue32", 8000, cuStreamWriteValue32_v2_ptsz)                                  \
    X("cuStreamWriteValue64", 9000, cuStreamWriteValue64_v2_ptsz)                                  \
    X("cuGetProcAddress", 11030, cuGetProcAddress_v2_ptsz)

// By the names that programs link to: here they may mean the functions behind those.
#define DECLARE(name, version, symbol) extern void entry_##symbol(void) __asm__(#symbol);
ENTRY_LIST(DECLARE)
PER_THREAD_LIST(DECLARE)

#define FILL(name, version, symbol) {name, version, entry_##symbol},
static const struct entry entries[] = {ENTRY_LIST(FILL)};
static const struct entry per_thread_entries[] = {PER_THREAD_LIST(FILL)};

// *ADDRESS stays if there is none.
static CUdriverProcAddressQueryResult find_in(const struct entry *list, size_t count,
                                              const char *name, int version, void **address) {
    CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for (size_t i = 0; i < count; ++i) {
        if (strcmp(list[i].name, name) != 0)
            continue;
        result = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        if (list[i].version > version)
            continue;
        *address = (void *)(uintptr_t)sim__transcript_wrapper_of(list[i].function);
        return CU_GET_PROC_ADDRESS_SUCCESS;
    }
    return result;
}

static CUdriverProcAddressQueryResult find(const char *name, int version, bool per_thread,
                                           void **address) {
    const size_t per_thread_count = sizeof per_thread_entries / sizeof per_thread_entries[0];
    *address = NULL;
    if (per_thread && find_in(per_thread_entries, per_thread_count, name, version, address) ==
                          CU_GET_PROC_ADDRESS_SUCCESS)
        return CU_GET_PROC_ADDRESS_SUCCESS;
    return find_in(entries, sizeof entries / sizeof entries[0], name, version, address);
}

// Both enumerations of results, and both of flags, have the same numbers.
static CUresult look_up(const char *symbol, void **address, unsigned int version, uint64_t flags,
                        bool per_thread, CUdriverProcAddressQueryResult *status) {
    if (symbol == NULL || address == NULL || version > CUDA_VERSION ||
        (flags != CU_GET_PROC_ADDRESS_DEFAULT && flags != CU_GET_PROC_ADDRESS_LEGACY_STREAM &&
         flags != CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
        return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_GET_PROC_ADDRESS_DEFAULT)
        per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const CUdriverProcAddressQueryResult result = find(symbol, (int)version, per_thread, address);
    if (status != NULL)
        *status = result;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **address, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status) {
    return look_up(symbol, address, (unsigned)version, flags, false, status);
}

CUresult cuGetProcAddress_v2_ptsz(const char *symbol, void **address, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *status) {
    return look_up(symbol, address, (unsigned)version, flags, true, status);
}

static cudaError_t by_version(const char *symbol, void **address, unsigned int version,
                              unsigned long long flags, bool per_thread,
                              enum cudaDriverEntryPointQueryResult *status) {
    CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = (cudaError_t)look_up(symbol, address, version, flags, per_thread, &result);
    if (error == cudaSuccess && status != NULL)
        *status = (enum cudaDriverEntryPointQueryResult)result;
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **address,
                                             unsigned int version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status) {
    return by_version(symbol, address, version, flags, false, status);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **address,
                                                  unsigned int version, unsigned long long flags,
                                                  enum cudaDriverEntryPointQueryResult *status) {
    return by_version(symbol, address, version, flags, true, status);
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **address, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status) {
    return by_version(symbol, address, CUDA_VERSION, flags, false, status);
}
