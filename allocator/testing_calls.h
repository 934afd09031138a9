// Between the allocator and whoever answers its CUDA calls: counts them, lets the n-th of a kind
// fail, tells a test that one begins, and keeps account of what was taken and not given back. The
// same for host memory. Calls are wrapped by the linker (BUILD), so the allocator under test is the
// one that everybody uses; a test that is linked with this is linked statically.
//
// A call that is made to fail does nothing else, leaves the thread's last error as CUDA would, and
// returns the error that was asked for. Host memory fails by NULL. Only calls that a thread makes
// while it is *watched* are counted and fail; what the simulator itself allocates does not count.
#ifndef TIDEMARK_ALLOCATOR_TESTING_CALLS_H
#define TIDEMARK_ALLOCATOR_TESTING_CALLS_H

#include <stdbool.h>
#include <stdint.h>

// X(NAME): every call that the allocator makes and that can fail; HOST_MEMORY stands for malloc,
// calloc, realloc, strdup, mmap and mprotect.
#define TESTING_RUNTIME_CALL_LIST(X)                                                               \
    /* the simulator does not count these */                                                       \
    X(cudaGetDeviceCount)                                                                          \
    X(cudaGetDevice)                                                                               \
    X(cudaSetDevice)                                                                               \
    X(cudaGetDeviceProperties)                                                                     \
    X(cudaStreamIsCapturing)                                                                       \
    X(cudaStreamGetCaptureInfo)                                                                    \
    X(cudaStreamUpdateCaptureDependencies)                                                         \
    X(cudaThreadExchangeStreamCaptureMode)                                                         \
    X(cudaGraphNodeGetDependencies)                                                                \
    X(cudaGraphAddEmptyNode)                                                                       \
    X(cudaGetDriverEntryPointByVersion)                                                            \
    /* from here on it does */                                                                     \
    X(cudaMemGetInfo)                                                                              \
    X(cudaMalloc)                                                                                  \
    X(cudaFree)                                                                                    \
    X(cudaStreamWaitEvent)                                                                         \
    X(cudaStreamSynchronize)                                                                       \
    X(cudaDeviceSynchronize)                                                                       \
    X(cudaEventCreateWithFlags)                                                                    \
    X(cudaEventDestroy)                                                                            \
    X(cudaEventRecord)                                                                             \
    X(cudaEventQuery)                                                                              \
    X(cudaEventSynchronize)
#define TESTING_DRIVER_CALL_LIST(X)                                                                \
    X(cuMemAddressReserve)                                                                         \
    X(cuMemAddressFree)                                                                            \
    X(cuMemCreate)                                                                                 \
    X(cuMemRelease)                                                                                \
    X(cuMemMap)                                                                                    \
    X(cuMemUnmap)                                                                                  \
    X(cuMemSetAccess)                                                                              \
    X(cuDeviceGetAttribute)

enum testing_call {
#define TESTING_CALL_ENUMERATOR(name) TESTING_##name,
    TESTING_RUNTIME_CALL_LIST(TESTING_CALL_ENUMERATOR)
        TESTING_DRIVER_CALL_LIST(TESTING_CALL_ENUMERATOR)
#undef TESTING_CALL_ENUMERATOR
            TESTING_HOST_MEMORY,
    TESTING_CALL_COUNT,
    TESTING_ANY_CUDA = TESTING_CALL_COUNT, // any but host memory: the device is lost
};
const char *testing_call_name(enum testing_call call);

// The N-th next watched call fails with ERROR (a code of the runtime or the driver); FOR_EVER: and
// all behind it. N = 0: none does.
void testing_calls_fail(enum testing_call call, uint64_t n, bool for_ever, int error);
uint64_t testing_calls_failed(void); // since testing_calls_fail
void testing_calls_watch(bool watched);
uint64_t testing_calls_count(enum testing_call call); // watched ones since the program began

// Called at the start of each watched call, NULL: nobody. Set while one thread runs.
void testing_calls_hook(void (*hook)(void *context, enum testing_call call), void *context);

// What was taken and not given back, watched or not.
struct testing_balance {
    int64_t memory, events, ranges, handles, mappings;
};
struct testing_balance testing_calls_balance(void);
void testing_calls_balance_reset(void);

#endif
