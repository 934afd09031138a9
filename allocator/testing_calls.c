// See testing_calls.h. __wrap_ and __real_ are the linker's names.
#include "allocator/testing_calls.h"

#include "base/check.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct {
    enum testing_call call;
    bool for_ever;
    int error;
    _Atomic uint64_t left, failed; // left: calls up to the one that fails; 0: none does
} plan;
static _Atomic uint64_t counts[TESTING_CALL_COUNT];
static _Atomic int64_t memory, events, ranges, handles, mappings;
static void (*hook)(void *context, enum testing_call call);
static void *hook_context;
static _Thread_local bool is_watched;
static _Thread_local int cuda_depth; // in a call of CUDA: what the simulator allocates is its own

const char *testing_call_name(enum testing_call call) {
    static const char *const names[] = {
#define NAME(name) #name,
        TESTING_RUNTIME_CALL_LIST(NAME) TESTING_DRIVER_CALL_LIST(NAME)
#undef NAME
            "host memory",
        "any CUDA call",
    };
    return names[call];
}

void testing_calls_fail(enum testing_call call, uint64_t n, bool for_ever, int error) {
    plan.call = call;
    plan.for_ever = for_ever;
    plan.error = error;
    plan.left = n;
    plan.failed = 0;
}
uint64_t testing_calls_failed(void) { return plan.failed; }
void testing_calls_watch(bool watched) { is_watched = watched; }
uint64_t testing_calls_count(enum testing_call call) { return counts[call]; }
void testing_calls_hook(void (*called)(void *, enum testing_call), void *context) {
    hook = called;
    hook_context = context;
}
struct testing_balance testing_calls_balance(void) {
    return (struct testing_balance){memory, events, ranges, handles, mappings};
}
void testing_calls_balance_reset(void) { memory = events = ranges = handles = mappings = 0; }

static bool strikes(enum testing_call call) {
    if (!is_watched || cuda_depth > 0) return false;
    ++counts[call];
    if (hook != NULL) hook(hook_context, call);
    const bool is_meant =
        plan.call == call || (plan.call == TESTING_ANY_CUDA && call != TESTING_HOST_MEMORY);
    if (!is_meant || plan.left == 0 || (plan.left > 1 && --plan.left > 0)) return false;
    if (!plan.for_ever) plan.left = 0;
    ++plan.failed;
    return true;
}

//------------------------------------------------------------------------------------------------
// The runtime's calls.

#define RUNTIME(name, parameters, arguments, account)                                              \
    cudaError_t __real_##name parameters;                                                          \
    cudaError_t __wrap_##name parameters;                                                          \
    cudaError_t __wrap_##name parameters {                                                         \
        if (strikes(TESTING_##name)) return fail_runtime();                                        \
        ++cuda_depth;                                                                              \
        const cudaError_t error = __real_##name arguments;                                         \
        --cuda_depth;                                                                              \
        if (error == cudaSuccess) account;                                                         \
        return error;                                                                              \
    }

// A call without a place for its answer leaves an error pending, as the failing call would.
cudaError_t __real_cudaGetDevice(int *device);
static cudaError_t fail_runtime(void) {
    BASE_CHECK_EQ(__real_cudaGetDevice(NULL), cudaErrorInvalidValue);
    return (cudaError_t)plan.error;
}

RUNTIME(cudaGetDeviceCount, (int *count), (count), (void)0)
RUNTIME(cudaGetDevice, (int *device), (device), (void)0)
RUNTIME(cudaSetDevice, (int device), (device), (void)0)
RUNTIME(cudaMemGetInfo, (size_t * unused, size_t *total), (unused, total), (void)0)
RUNTIME(cudaMalloc, (void **pointer, size_t size), (pointer, size), ++memory)
RUNTIME(cudaFree, (void *pointer), (pointer), --memory)
RUNTIME(cudaStreamSynchronize, (cudaStream_t stream), (stream), (void)0)
RUNTIME(cudaGetDeviceProperties, (struct cudaDeviceProp * properties, int device),
        (properties, device), (void)0)
RUNTIME(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
        (stream, status), (void)0)
RUNTIME(cudaStreamGetCaptureInfo,
        (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
         cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
         size_t *count),
        (stream, status, id, graph, nodes, edges, count), (void)0)
RUNTIME(cudaStreamUpdateCaptureDependencies,
        (cudaStream_t stream, cudaGraphNode_t *nodes, const cudaGraphEdgeData *edges, size_t count,
         unsigned int flags),
        (stream, nodes, edges, count, flags), (void)0)
RUNTIME(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode), (mode), (void)0)
RUNTIME(cudaGraphNodeGetDependencies,
        (cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges, size_t *count),
        (node, nodes, edges, count), (void)0)
RUNTIME(cudaGraphAddEmptyNode,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *nodes, size_t count),
        (node, graph, nodes, count), (void)0)
RUNTIME(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
        (stream, event, flags), (void)0)
RUNTIME(cudaDeviceSynchronize, (void), (), (void)0)
RUNTIME(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags), (event, flags),
        ++events)
RUNTIME(cudaEventDestroy, (cudaEvent_t event), (event), --events)
RUNTIME(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream), (void)0)
RUNTIME(cudaEventQuery, (cudaEvent_t event), (event), (void)0)
RUNTIME(cudaEventSynchronize, (cudaEvent_t event), (event), (void)0)

//------------------------------------------------------------------------------------------------
// The driver's calls, which the allocator asks for by name.

#define DRIVER(name, parameters, arguments, account)                                               \
    typedef CUresult(*name##_function) parameters;                                                 \
    static _Atomic(name##_function) real_##name;                                                   \
    static CUresult driver_##name parameters {                                                     \
        if (strikes(TESTING_##name)) return (CUresult)plan.error;                                  \
        const name##_function real = atomic_load(&real_##name);                                    \
        ++cuda_depth;                                                                              \
        const CUresult error = real arguments;                                                     \
        --cuda_depth;                                                                              \
        if (error == CUDA_SUCCESS) account;                                                        \
        return error;                                                                              \
    }

DRIVER(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device),
       (value, attribute, device), (void)0)
DRIVER(cuMemAddressReserve,
       (CUdeviceptr * pointer, size_t size, size_t alignment, CUdeviceptr hint,
        unsigned long long flags),
       (pointer, size, alignment, hint, flags), ++ranges)
DRIVER(cuMemAddressFree, (CUdeviceptr pointer, size_t size), (pointer, size), --ranges)
DRIVER(cuMemCreate,
       (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *properties,
        unsigned long long flags),
       (handle, size, properties, flags), ++handles)
DRIVER(cuMemRelease, (CUmemGenericAllocationHandle handle), (handle), --handles)
DRIVER(cuMemMap,
       (CUdeviceptr pointer, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
        unsigned long long flags),
       (pointer, size, offset, handle, flags), ++mappings)
DRIVER(cuMemUnmap, (CUdeviceptr pointer, size_t size), (pointer, size), --mappings)
DRIVER(cuMemSetAccess,
       (CUdeviceptr pointer, size_t size, const CUmemAccessDesc *descriptors, size_t count),
       (pointer, size, descriptors, count), (void)0)

// Puts ours in the place of the driver's. A pointer to data becomes one to a function.
static void replace(const char *symbol, void **address) {
#define REPLACE(name)                                                                              \
    if (strcmp(symbol, #name) == 0) {                                                              \
        name##_function function;                                                                  \
        memcpy(&function, address, sizeof function);                                               \
        atomic_store(&real_##name, function);                                                      \
        function = driver_##name;                                                                  \
        memcpy(address, &function, sizeof function);                                               \
    }
    TESTING_DRIVER_CALL_LIST(REPLACE)
#undef REPLACE
}

RUNTIME(cudaGetDriverEntryPointByVersion,
        (const char *symbol, void **address, unsigned int version, unsigned long long flags,
         enum cudaDriverEntryPointQueryResult *result),
        (symbol, address, version, flags, result), replace(symbol, address))

//------------------------------------------------------------------------------------------------
// Host memory.

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
    return strikes(TESTING_HOST_MEMORY) ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) {
    return strikes(TESTING_HOST_MEMORY) ? NULL : __real_calloc(count, size);
}

void *__real_realloc(void *memory_, size_t size);
void *__wrap_realloc(void *memory_, size_t size);
void *__wrap_realloc(void *memory_, size_t size) {
    return strikes(TESTING_HOST_MEMORY) ? NULL : __real_realloc(memory_, size);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text) {
    return strikes(TESTING_HOST_MEMORY) ? NULL : __real_strdup(text);
}

void *__real_mmap(void *address, size_t size, int access, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int access, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int access, int flags, int file, off_t offset) {
    if (!strikes(TESTING_HOST_MEMORY))
        return __real_mmap(address, size, access, flags, file, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

int __real_mprotect(void *address, size_t size, int access);
int __wrap_mprotect(void *address, size_t size, int access);
int __wrap_mprotect(void *address, size_t size, int access) {
    if (!strikes(TESTING_HOST_MEMORY)) return __real_mprotect(address, size, access);
    errno = ENOMEM;
    return -1;
}
