// Questions about the devices, the thread's current device, peers. What the device is comes from
// its profile; total memory is what was configured. The rest is the same for all datacentre devices
// of these years.
#include "simulator/device.h"

#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/driver.h"
#include "simulator/plant.h"
#include "simulator/order.h"
#include "simulator/pool.h"
#include "simulator/profile.h"

#include <stdio.h>
#include <string.h>

static bool is_device(int device) {
    return device >= 0 && device < sim__state.options.device_count;
}

void sim__device_properties(struct cudaDeviceProp *properties, int device) {
    const struct sim__profile *profile = sim__profile();
    *properties = (struct cudaDeviceProp){
        .totalGlobalMem = sim__state.options.capacity_bytes,
        .sharedMemPerBlock = 48 << 10,
        .regsPerBlock = 65536,
        .warpSize = 32,
        .memPitch = 2147483647,
        .maxThreadsPerBlock = 1024,
        .maxThreadsDim = {1024, 1024, 64},
        .maxGridSize = {2147483647, 65535, 65535},
        .totalConstMem = 64 << 10,
        .major = profile->capability_major,
        .minor = profile->capability_minor,
        .textureAlignment = 512,
        .multiProcessorCount = (int)profile->multiprocessors,
        .canMapHostMemory = 1,
        .concurrentKernels = 1,
        .ECCEnabled = 1,
        .pciBusID = device + 1,
        .asyncEngineCount = (int)profile->costs[SIM__TYPICAL].copy_engines,
        .unifiedAddressing = 1,
        .memoryBusWidth = (int)profile->memory_bus_bits,
        .l2CacheSize = (int)profile->l2_cache_bytes,
        .maxThreadsPerMultiProcessor = 2048,
        .streamPrioritiesSupported = 1,
        .sharedMemPerMultiprocessor = profile->shared_memory_multiprocessor_bytes,
        .regsPerMultiprocessor = 65536,
        .sharedMemPerBlockOptin = profile->shared_memory_block_bytes,
        .maxBlocksPerMultiProcessor = (int)profile->blocks_multiprocessor,
        .hostRegisterSupported = 1,
        .memoryPoolsSupported = 1,
    };
    memcpy(properties->name, profile->name, sizeof properties->name);
    char uuid[32];
    snprintf(uuid, sizeof uuid, "tidemark-sim-%03d", device);
    memcpy(properties->uuid.bytes, uuid, sizeof properties->uuid.bytes);
}

// False for an attribute that the device has no answer for.
static bool attribute_of(const struct cudaDeviceProp *p, enum cudaDeviceAttr attribute,
                         int *value) {
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p->maxThreadsPerBlock; return true;
    case cudaDevAttrMaxBlockDimX: *value = p->maxThreadsDim[0]; return true;
    case cudaDevAttrMaxBlockDimY: *value = p->maxThreadsDim[1]; return true;
    case cudaDevAttrMaxBlockDimZ: *value = p->maxThreadsDim[2]; return true;
    case cudaDevAttrMaxGridDimX: *value = p->maxGridSize[0]; return true;
    case cudaDevAttrMaxGridDimY: *value = p->maxGridSize[1]; return true;
    case cudaDevAttrMaxGridDimZ: *value = p->maxGridSize[2]; return true;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)p->sharedMemPerBlock; return true;
    case cudaDevAttrTotalConstantMemory: *value = (int)p->totalConstMem; return true;
    case cudaDevAttrWarpSize: *value = p->warpSize; return true;
    case cudaDevAttrMaxPitch: *value = (int)p->memPitch; return true;
    case cudaDevAttrMaxRegistersPerBlock: *value = p->regsPerBlock; return true;
    case cudaDevAttrMultiProcessorCount: *value = p->multiProcessorCount; return true;
    case cudaDevAttrIntegrated: *value = p->integrated; return true;
    case cudaDevAttrCanMapHostMemory: *value = p->canMapHostMemory; return true;
    case cudaDevAttrConcurrentKernels: *value = p->concurrentKernels; return true;
    case cudaDevAttrEccEnabled: *value = p->ECCEnabled; return true;
    case cudaDevAttrPciBusId: *value = p->pciBusID; return true;
    case cudaDevAttrPciDeviceId: *value = p->pciDeviceID; return true;
    case cudaDevAttrPciDomainId: *value = p->pciDomainID; return true;
    case cudaDevAttrGlobalMemoryBusWidth: *value = p->memoryBusWidth; return true;
    case cudaDevAttrL2CacheSize: *value = p->l2CacheSize; return true;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = p->maxThreadsPerMultiProcessor;
        return true;
    case cudaDevAttrAsyncEngineCount: *value = p->asyncEngineCount; return true;
    case cudaDevAttrUnifiedAddressing: *value = p->unifiedAddressing; return true;
    case cudaDevAttrComputeCapabilityMajor: *value = p->major; return true;
    case cudaDevAttrComputeCapabilityMinor: *value = p->minor; return true;
    case cudaDevAttrStreamPrioritiesSupported: *value = p->streamPrioritiesSupported; return true;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = (int)p->sharedMemPerMultiprocessor;
        return true;
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = p->regsPerMultiprocessor; return true;
    case cudaDevAttrManagedMemory: *value = p->managedMemory; return true;
    case cudaDevAttrHostRegisterSupported: *value = p->hostRegisterSupported; return true;
    case cudaDevAttrMemoryPoolsSupported: *value = p->memoryPoolsSupported; return true;
    }
    return false;
}

bool sim__device_attribute(int device, enum cudaDeviceAttr attribute, int *value) {
    struct cudaDeviceProp properties;
    sim__device_properties(&properties, device);
    return attribute_of(&properties, attribute, value);
}

cudaError_t cudaGetDeviceCount(int *count) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess && count == NULL)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        *count = sim__state.options.device_count;
    return sim__call_end(SIM__CALL_OTHER, error);
}

// The answer is the thread's own: no lock.
cudaError_t cudaGetDevice(int *device) {
    struct sim__thread *thread = sim__thread();
    if (device == NULL)
        return thread->last_error = cudaErrorInvalidValue;
    *device = thread->device;
    return cudaSuccess;
}

// A device with a sticky error can be left for another one.
cudaError_t cudaSetDevice(int device) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaErrorNotPermitted)
        return sim__call_end(SIM__CALL_OTHER, error);
    if (!is_device(device))
        return sim__call_end(SIM__CALL_OTHER, cudaErrorInvalidDevice);
    sim__thread()->device = device;
    sim__context_enter(sim__thread());
    return sim__call_end(SIM__CALL_OTHER, sim__device_current()->sticky_error);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess && properties == NULL)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess && !is_device(device))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess)
        sim__device_properties(properties, device);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error != cudaSuccess)
        return error;
    error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess && (value == NULL || !attribute_of(&properties, attribute, value)))
        error = cudaErrorInvalidValue;
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaDeviceSynchronize(void) {
    cudaError_t error = sim__call_begin(SIM_CALL_DEVICE_SYNCHRONIZE);
    if (error == cudaSuccess)
        error = sim__capture_device_waited(sim__device_current());
    if (error == cudaSuccess) {
        struct sim__device *device = sim__device_current();
        struct sim__order_point point = sim__order_of_device(device);
        sim__engine_force_device(device);
        sim__order_observe(&point);
        sim__pools_release();
        error = device->sticky_error;
    }
    if (sim__planted(SIM__PLANT_ERROR_CLEARED))
        sim__thread()->last_error = cudaSuccess;
    return sim__call_end(SIM_CALL_DEVICE_SYNCHRONIZE, error);
}

cudaError_t cudaDeviceCanAccessPeer(int *can_access, int device, int peer_device) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess && can_access == NULL)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess && (!is_device(device) || !is_device(peer_device)))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess)
        *can_access = device != peer_device;
    return sim__call_end(SIM__CALL_OTHER, error);
}

static cudaError_t peer_change(int peer_device, bool enable) {
    struct sim__device *device = sim__device_current();
    if (!is_device(peer_device) || peer_device == device->index)
        return cudaErrorInvalidDevice;
    const uint32_t bit = (uint32_t)1 << peer_device;
    if (((device->peers_enabled & bit) != 0) == enable && sim__planted(SIM__PLANT_PEER_TWICE))
        return cudaSuccess;
    if (((device->peers_enabled & bit) != 0) == enable)
        return enable ? cudaErrorPeerAccessAlreadyEnabled : cudaErrorPeerAccessNotEnabled;
    device->peers_enabled ^= bit;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer_device, unsigned int flags) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = flags != 0 ? cudaErrorInvalidValue : peer_change(peer_device, true);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer_device) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = peer_change(peer_device, false);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    if (version == NULL)
        return sim__thread()->last_error = cudaErrorInvalidValue;
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) { return cudaRuntimeGetVersion(version); }
