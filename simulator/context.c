// The driver's start, its devices, and their primary contexts. A context is a number that names its
// device. A thread's current context and its runtime device are one thing, seen from two sides.
#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/device.h"
#include "simulator/driver.h"
#include "simulator/memory.h"
#include "simulator/order.h"
#include "simulator/pool.h"

#include <string.h>

// As of handles: an address that no pointer can have.
#define CONTEXT_TAG ((uint64_t)0x63 << 56)

struct context {
    uint32_t retain_count;
    bool runtime; // the runtime uses it
};

static struct context contexts[SIM_DEVICE_COUNT_MAX];
static bool initialized;

static bool is_device(int device) {
    return device >= 0 && device < sim__state.options.device_count;
}

static bool is_active(int device) {
    return contexts[device].retain_count > 0 || contexts[device].runtime;
}

static void context_changed(int device) {
    sim__state.devices[device].context_bytes =
        is_active(device) ? sim__state.options.context_bytes : 0;
}

static CUcontext context_of(int device) {
    return (CUcontext)(uintptr_t)(CONTEXT_TAG | (uint64_t)(device + 1));
}

// -1 if CONTEXT is none that is active.
static int device_of(CUcontext context) {
    const uint64_t number = (uint64_t)(uintptr_t)context - CONTEXT_TAG;
    return number >= 1 && number <= (uint64_t)sim__state.options.device_count &&
                   is_active((int)number - 1)
               ? (int)number - 1
               : -1;
}

void sim__contexts_start(void) {
    memset(contexts, 0, sizeof contexts);
    initialized = false;
}

void sim__context_enter(struct sim__thread *thread) {
    initialized = true;
    contexts[thread->device].runtime = true;
    context_changed(thread->device);
    thread->has_context = true;
}

void sim__context_leave(struct sim__thread *thread) {
    contexts[thread->device].runtime = false;
    context_changed(thread->device);
    thread->has_context = false;
}

// --- The frame ---

CUresult sim__driver_begin(enum sim_call call, bool needs_context) {
    struct sim__thread *thread = sim__thread();
    thread->runtime_error = thread->last_error;
    thread->in_driver_call = true;
    const cudaError_t error = sim__call_begin(call);
    if (error != cudaSuccess)
        return (CUresult)error;
    if (needs_context && !initialized)
        return CUDA_ERROR_NOT_INITIALIZED;
    return needs_context && !thread->has_context ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult sim__driver_end(enum sim_call call, CUresult error) {
    struct sim__thread *thread = sim__thread();
    sim__call_end(call, (cudaError_t)error);
    thread->last_error = thread->runtime_error;
    thread->in_driver_call = false;
    return error;
}

// For calls that need the driver, but no context.
static CUresult begin_initialized(void) {
    const CUresult error = sim__driver_begin(SIM__CALL_OTHER, false);
    return error == CUDA_SUCCESS && !initialized ? CUDA_ERROR_NOT_INITIALIZED : error;
}

static CUresult end(CUresult error) { return sim__driver_end(SIM__CALL_OTHER, error); }

// --- The driver and its devices ---

CUresult cuInit(unsigned int flags) {
    CUresult error = sim__driver_begin(SIM__CALL_OTHER, false);
    if (error == CUDA_SUCCESS && flags != 0)
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS)
        initialized = true;
    return end(error);
}

CUresult cuDriverGetVersion(int *version) {
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    CUresult error = begin_initialized();
    if (error == CUDA_SUCCESS && count == NULL)
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS)
        *count = sim__state.options.device_count;
    return end(error);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    CUresult error = begin_initialized();
    if (error == CUDA_SUCCESS && device == NULL)
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS && !is_device(ordinal))
        error = CUDA_ERROR_INVALID_DEVICE;
    if (error == CUDA_SUCCESS)
        *device = ordinal;
    return end(error);
}

// The frame of a question about DEVICE whose answer goes to OUT.
static CUresult begin_about(CUdevice device, const void *out) {
    const CUresult error = begin_initialized();
    if (error != CUDA_SUCCESS)
        return error;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    CUresult error = begin_about(device, name);
    if (error == CUDA_SUCCESS && length <= 0)
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS) {
        struct cudaDeviceProp properties;
        sim__device_properties(&properties, device);
        strncpy(name, properties.name, (size_t)length - 1);
        name[length - 1] = '\0';
    }
    return end(error);
}

// What only the driver is asked for.
static bool driver_attribute(CUdevice_attribute attribute, int *value) {
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: *value = 1; return true;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED: *value = 0; return true;
    default: return false;
    }
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    CUresult error = begin_about(device, value);
    if (error == CUDA_SUCCESS && !driver_attribute(attribute, value) &&
        !sim__device_attribute(device, (enum cudaDeviceAttr)attribute, value))
        error = CUDA_ERROR_INVALID_VALUE;
    return end(error);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    CUresult error = begin_about(device, bytes);
    if (error == CUDA_SUCCESS)
        *bytes = sim__state.options.capacity_bytes;
    return end(error);
}

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    CUresult error = sim__driver_begin(SIM_CALL_MEM_GET_INFO, true);
    if (error == CUDA_SUCCESS && (free_bytes == NULL || total_bytes == NULL))
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS)
        sim__memory_info(sim__device_current(), free_bytes, total_bytes);
    return sim__driver_end(SIM_CALL_MEM_GET_INFO, error);
}

// --- Primary contexts ---

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    CUresult error = begin_about(device, context);
    if (error == CUDA_SUCCESS) {
        ++contexts[device].retain_count;
        context_changed(device);
        *context = context_of(device);
    }
    return end(error);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    CUresult error = begin_about(device, &device);
    if (error == CUDA_SUCCESS && contexts[device].retain_count == 0)
        error = CUDA_ERROR_INVALID_CONTEXT;
    if (error == CUDA_SUCCESS) {
        --contexts[device].retain_count;
        context_changed(device);
    }
    return end(error);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
    CUresult error = begin_about(device, active);
    if (error == CUDA_SUCCESS && flags == NULL)
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS) {
        *flags = 0;
        *active = is_active(device);
    }
    return end(error);
}

// --- The thread's current context ---

// None, if DEVICE is negative.
static void current_set(struct sim__thread *thread, int device) {
    thread->has_context = device >= 0;
    if (device >= 0)
        thread->device = device;
}

static int current_get(const struct sim__thread *thread) {
    return thread->has_context ? thread->device : -1;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    CUresult error = begin_initialized();
    if (error == CUDA_SUCCESS && context == NULL)
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS)
        *context = sim__thread()->has_context ? context_of(sim__thread()->device) : NULL;
    return end(error);
}

CUresult cuCtxSetCurrent(CUcontext context) {
    CUresult error = begin_initialized();
    if (error == CUDA_SUCCESS && context != NULL && device_of(context) < 0)
        error = CUDA_ERROR_INVALID_CONTEXT;
    if (error == CUDA_SUCCESS)
        current_set(sim__thread(), context == NULL ? -1 : device_of(context));
    return end(error);
}

CUresult cuCtxPushCurrent(CUcontext context) {
    struct sim__thread *thread = sim__thread();
    CUresult error = begin_initialized();
    if (error == CUDA_SUCCESS && device_of(context) < 0)
        error = CUDA_ERROR_INVALID_CONTEXT;
    if (error == CUDA_SUCCESS && thread->context_count == SIM__CONTEXT_STACK)
        error = CUDA_ERROR_OUT_OF_MEMORY;
    if (error == CUDA_SUCCESS) {
        thread->contexts[thread->context_count++] = (int8_t)current_get(thread);
        current_set(thread, device_of(context));
    }
    return end(error);
}

// CONTEXT may be NULL. The lowest context was set, not pushed: below it there is none.
CUresult cuCtxPopCurrent(CUcontext *context) {
    struct sim__thread *thread = sim__thread();
    CUresult error = begin_initialized();
    if (error == CUDA_SUCCESS && !thread->has_context)
        error = CUDA_ERROR_INVALID_CONTEXT;
    if (error == CUDA_SUCCESS) {
        if (context != NULL)
            *context = context_of(thread->device);
        current_set(thread,
                    thread->context_count == 0 ? -1 : thread->contexts[--thread->context_count]);
    }
    return end(error);
}

CUresult cuCtxGetDevice(CUdevice *device) {
    CUresult error = sim__driver_begin(SIM__CALL_OTHER, true);
    if (error == CUDA_SUCCESS && device == NULL)
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS)
        *device = sim__thread()->device;
    return end(error);
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context) {
    if (context == NULL)
        return cuCtxGetDevice(device);
    CUresult error = begin_initialized();
    if (error == CUDA_SUCCESS && device == NULL)
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS && device_of(context) < 0)
        error = CUDA_ERROR_INVALID_CONTEXT;
    if (error == CUDA_SUCCESS)
        *device = device_of(context);
    return end(error);
}

static CUresult synchronize(int device) {
    const cudaError_t error = sim__capture_device_waited(&sim__state.devices[device]);
    if (error != cudaSuccess)
        return (CUresult)error;
    struct sim__order_point point = sim__order_of_device(&sim__state.devices[device]);
    sim__engine_force_device(&sim__state.devices[device]);
    sim__order_observe(&point);
    sim__pools_release();
    return (CUresult)sim__state.devices[device].sticky_error;
}

CUresult cuCtxSynchronize(void) {
    CUresult error = sim__driver_begin(SIM_CALL_DEVICE_SYNCHRONIZE, true);
    if (error == CUDA_SUCCESS)
        error = synchronize(sim__thread()->device);
    return sim__driver_end(SIM_CALL_DEVICE_SYNCHRONIZE, error);
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
    if (context == NULL)
        return cuCtxSynchronize();
    CUresult error = begin_initialized();
    if (error == CUDA_SUCCESS && device_of(context) < 0)
        error = CUDA_ERROR_INVALID_CONTEXT;
    if (error == CUDA_SUCCESS)
        error = synchronize(device_of(context));
    return end(error);
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess && !is_device(device))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess && ((flags & ~(unsigned)cudaInitDeviceFlagsAreValid) != 0 ||
                                 (device_flags & ~(unsigned)cudaDeviceMask) != 0))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess) {
        initialized = true;
        contexts[device].runtime = true;
        context_changed(device);
    }
    return sim__call_end(SIM__CALL_OTHER, error);
}
