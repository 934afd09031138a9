// See driver.h.
#include "allocator/driver.h"

#include "allocator/device.h"

#include <stdlib.h>
#include <string.h>

// The version of the driver's interface that the calls are those of.
#define DRIVER_VERSION 12000

static enum base_status find_calls(struct cca__driver_calls *calls) {
    const struct {
        const char *name;
        void *place;
    } wanted[] = {
        {"cuGetErrorName", &calls->get_error_name},
        {"cuDeviceGetAttribute", &calls->get_attribute},
        {"cuMemAddressReserve", &calls->address_reserve},
        {"cuMemAddressFree", &calls->address_free},
        {"cuMemCreate", &calls->create},
        {"cuMemRelease", &calls->release},
        {"cuMemMap", &calls->map},
        {"cuMemUnmap", &calls->unmap},
        {"cuMemSetAccess", &calls->set_access},
    };
    for (size_t index = 0; index < sizeof wanted / sizeof wanted[0]; ++index) {
        void *function = NULL;
        enum cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
        const cudaError_t error = cudaGetDriverEntryPointByVersion(
            wanted[index].name, &function, DRIVER_VERSION, cudaEnableDefault, &result);
        if (error != cudaSuccess)
            return cca__cuda_failed(error, "cudaGetDriverEntryPointByVersion of %s",
                                    wanted[index].name);
        if (result != cudaDriverEntryPointSuccess || function == NULL)
            return base_status_set(BASE_UNSUPPORTED,
                                   "expandable_segments: the driver has no %s; set "
                                   "expandable_segments:False",
                                   wanted[index].name);
        // A pointer to data becomes one to a function, as dlsym's do.
        memcpy(wanted[index].place, &function, sizeof function);
    }
    return BASE_OK;
}

enum base_status cca__driver_find(struct cca__device *device) {
    if (device->driver != NULL) return BASE_OK;
    struct cca__driver *const driver = calloc(1, sizeof *driver);
    if (driver == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for the driver's calls");
    const enum base_status status = find_calls(&driver->calls);
    if (status != BASE_OK) {
        free(driver);
        return status;
    }
    int supported = 0;
    driver->maps_for_rdma =
        driver->calls.get_attribute(&supported,
                                    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                                    device->ordinal) == CUDA_SUCCESS &&
        supported != 0;
    device->driver = driver;
    return BASE_OK;
}

enum base_status cca__driver_failed(const struct cca__driver_calls *calls, CUresult error,
                                    const char *call, const struct cca__device *device,
                                    uint64_t address, size_t size) {
    const char *name = NULL;
    if (calls->get_error_name(error, &name) != CUDA_SUCCESS || name == NULL) name = "unknown error";
    return base_status_set(BASE_CUDA,
                           "CUDA driver error: %s from %s of %zu bytes at %#llx on device %d", name,
                           call, size, (unsigned long long)address, device->ordinal);
}

void cca__driver_destroy(struct cca__driver *driver) {
    if (driver != NULL) free(driver->kept);
    free(driver);
}

// Whether all of it is gone.
static bool give_back(const struct cca__driver_calls *calls, struct cca__driver_kept *memory) {
    if (memory->is_range) return calls->address_free(memory->address, memory->size) == CUDA_SUCCESS;
    if (memory->address != 0 && calls->unmap(memory->address, memory->size) == CUDA_SUCCESS)
        memory->address = 0;
    if (memory->has_handle && calls->release(memory->handle) == CUDA_SUCCESS)
        memory->has_handle = false;
    return memory->address == 0 && !memory->has_handle;
}

void cca__driver_give_back(struct cca__device *device, struct cca__driver_kept memory) {
    struct cca__driver *const driver = device->driver;
    if (give_back(&driver->calls, &memory)) return;
    if (driver->kept_count == driver->kept_capacity) {
        const size_t capacity = driver->kept_capacity == 0 ? 16 : 2 * driver->kept_capacity;
        struct cca__driver_kept *const kept = realloc(driver->kept, capacity * sizeof *kept);
        if (kept == NULL) return; // refused by the driver and then by the host: it is lost
        driver->kept = kept;
        driver->kept_capacity = capacity;
    }
    driver->kept[driver->kept_count++] = memory;
}

void cca__driver_drop_kept(struct cca__device *device) {
    struct cca__driver *const driver = device->driver;
    while (driver != NULL && driver->kept_count > 0 &&
           give_back(&driver->calls, &driver->kept[driver->kept_count - 1]))
        --driver->kept_count;
}
