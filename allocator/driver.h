// The driver's calls for virtual memory, found by name through the runtime, so that nothing needs
// to be linked with the driver. All functions need the device's growth_lock.
#ifndef TIDEMARK_ALLOCATOR_DRIVER_H
#define TIDEMARK_ALLOCATOR_DRIVER_H

#include "allocator/core.h"

#include <cuda.h>

struct cca__driver_calls {
    CUresult (*get_error_name)(CUresult error, const char **text);
    CUresult (*get_attribute)(int *value, CUdevice_attribute attribute, CUdevice device);
    CUresult (*address_reserve)(CUdeviceptr *pointer, size_t size, size_t alignment,
                                CUdeviceptr hint, unsigned long long flags);
    CUresult (*address_free)(CUdeviceptr pointer, size_t size);
    CUresult (*create)(CUmemGenericAllocationHandle *handle, size_t size,
                       const CUmemAllocationProp *properties, unsigned long long flags);
    CUresult (*release)(CUmemGenericAllocationHandle handle);
    CUresult (*map)(CUdeviceptr pointer, size_t size, size_t offset,
                    CUmemGenericAllocationHandle handle, unsigned long long flags);
    CUresult (*unmap)(CUdeviceptr pointer, size_t size);
    CUresult (*set_access)(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *descriptors,
                           size_t count);
};

// Memory, or addresses, of which no segment knows, since the driver did not take it back when it
// was asked to.
struct cca__driver_kept {
    CUmemGenericAllocationHandle handle;
    bool has_handle;
    bool is_range;    // no memory, but addresses that were reserved
    uint64_t address; // where it is mapped; 0: nowhere
    size_t size;
};

// Of one device.
struct cca__driver {
    struct cca__driver_calls calls;
    bool maps_for_rdma;
    struct cca__driver_kept *kept;
    size_t kept_count, kept_capacity;
};

// Finds the calls, at the first time. BASE_UNSUPPORTED if the driver lacks one.
enum base_status cca__driver_find(struct cca__device *device) BASE_MUST_USE;
void cca__driver_destroy(struct cca__driver *driver); // NULL: nothing

// The status for a driver call that failed.
enum base_status cca__driver_failed(const struct cca__driver_calls *calls, CUresult error,
                                    const char *call, const struct cca__device *device,
                                    uint64_t address, size_t size);

// Unmaps memory, if it is mapped (address 0: nowhere), and gives it back, or addresses, for a
// caller who has another failure to tell than that the driver refuses: what it refuses is kept for
// later.
void cca__driver_give_back(struct cca__device *device, struct cca__driver_kept memory);
// Asks again for what was kept.
void cca__driver_drop_kept(struct cca__device *device);

#endif
