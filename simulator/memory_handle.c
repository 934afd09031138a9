// Memory without an address: cuMemCreate and its kin. A handle is a number from a table; it counts
// references, and the memory goes with the last reference, mapping or exported file descriptor.
//
// An exported file descriptor is the write end of a pipe. Both ends have the same inode, so a
// descriptor that comes back, or a duplicate of it, is known by that; and when the last duplicate
// is closed, the read end hangs up: so the memory lives exactly as long as CUDA's does. Nobody says
// when that happens; it is looked for when memory is asked for.
#include "simulator/call.h"
#include "simulator/checked.h"
#include "simulator/driver.h"
#include "simulator/virtual_memory.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALLOCATION_TAG 0x70

#define WINDOWS_HANDLES                                                                            \
    ((unsigned)CU_MEM_HANDLE_TYPE_WIN32 | (unsigned)CU_MEM_HANDLE_TYPE_WIN32_KMT)
#define ALL_HANDLES                                                                                \
    (WINDOWS_HANDLES | (unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR |                        \
     (unsigned)CU_MEM_HANDLE_TYPE_FABRIC)

struct export {
    struct sim__allocation *allocation;
    int read_end;
    dev_t file_system;
    ino_t inode;
};

static struct sim__handle_table table = {.tag = ALLOCATION_TAG,
                                         .slot_size = sizeof(struct sim__allocation)};
static struct export *exports;
static size_t export_count, export_size;

// --- Lifetime ---

struct sim__allocation *sim__allocation_find(CUmemGenericAllocationHandle handle) {
    struct sim__allocation *allocation = sim__handle_find(&table, handle);
    if (allocation != NULL && allocation->reference_count > 0)
        return allocation;
    if (sim__checked())
        sim__misuse("0x%llx is %s", handle,
                    allocation != NULL || sim__handle_was_taken(&table, handle)
                        ? "memory of which all references were released"
                        : "no handle of memory");
    return NULL;
}

void sim__allocation_dropped(struct sim__allocation *allocation) {
    if (allocation->reference_count + allocation->mapping_count + allocation->export_count > 0)
        return;
    sim__physical_give(&sim__state.devices[allocation->device], &allocation->backing);
    sim__handle_give(&table, allocation);
}

static void export_end(size_t index) {
    struct sim__allocation *allocation = exports[index].allocation;
    BASE_CHECK_EQ(close(exports[index].read_end), 0);
    exports[index] = exports[--export_count];
    --allocation->export_count;
    sim__allocation_dropped(allocation);
}

void sim__exports_check(void) {
    for (size_t i = export_count; i-- > 0;) {
        struct pollfd end = {.fd = exports[i].read_end};
        if (poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0)
            export_end(i);
    }
}

void sim__allocations_clear(void) {
    while (export_count > 0)
        export_end(export_count - 1);
    free(exports);
    exports = NULL;
    export_size = 0;
    for (uint32_t i = 0; i < table.slot_count; ++i) {
        struct sim__allocation *allocation = sim__handle_slot_at(&table, i);
        if (allocation->slot.handle == 0)
            continue;
        BASE_CHECK_EQ(allocation->mapping_count, 0);
        allocation->reference_count = 0;
        sim__allocation_dropped(allocation);
    }
    sim__handle_clear(&table);
}

// --- Creation ---

static bool is_device_location(const CUmemLocation *location) {
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE;
}

static bool is_device(int device) {
    return device >= 0 && device < sim__state.options.device_count;
}

static CUresult properties_check(const CUmemAllocationProp *properties) {
    const unsigned types = (unsigned)properties->requestedHandleTypes;
    if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        !is_device_location(&properties->location) || (types & ~ALL_HANDLES) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(properties->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    if ((types & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    return properties->win32HandleMetaData != NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult create_locked(CUmemGenericAllocationHandle *handle, uint64_t size,
                              const CUmemAllocationProp *properties, unsigned long long flags) {
    if (handle == NULL || properties == NULL || flags != 0 || size == 0 ||
        size % SIM__GRANULARITY != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult error = properties_check(properties);
    if (error != CUDA_SUCCESS)
        return error;
    struct sim__device *device = &sim__state.devices[properties->location.id];
    struct sim__backing backing;
    sim__exports_check();
    if (!sim__physical_take(device, size, &backing))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sim__allocation *allocation = sim__handle_take(&table);
    if (allocation == NULL)
        sim__host_limit("no more handles of device memory");
    allocation->device = device->index;
    allocation->reference_count = 1;
    allocation->mapping_count = allocation->export_count = 0;
    allocation->was_mapped = false;
    allocation->properties = *properties;
    allocation->backing = backing;
    *handle = allocation->slot.handle;
    return CUDA_SUCCESS;
}

static CUresult release_locked(CUmemGenericAllocationHandle handle) {
    struct sim__allocation *allocation = sim__allocation_find(handle);
    if (allocation == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    --allocation->reference_count;
    sim__allocation_dropped(allocation);
    return CUDA_SUCCESS;
}

static CUresult retain_locked(CUmemGenericAllocationHandle *handle, const void *address) {
    if (handle == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim__segment *segment = sim__segment_at(address);
    if (segment == NULL || segment->kind != SIM__SEGMENT_MAPPING) {
        if (sim__checked())
            sim__misuse("no memory is mapped at %p by cuMemMap", address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim__allocation *allocation = ((struct sim__mapping *)segment)->allocation;
    ++allocation->reference_count;
    *handle = allocation->slot.handle;
    return CUDA_SUCCESS;
}

// --- Export and import ---

static CUresult export_locked(int *descriptor, CUmemGenericAllocationHandle handle,
                              CUmemAllocationHandleType type, unsigned long long flags) {
    struct sim__allocation *allocation = sim__allocation_find(handle);
    if (descriptor == NULL || allocation == NULL || flags != 0 ||
        type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        ((unsigned)allocation->properties.requestedHandleTypes & (unsigned)type) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim__exports_check();
    if (export_count == export_size) {
        export_size = export_size == 0 ? 16 : 2 * export_size;
        exports = realloc(exports, export_size * sizeof *exports);
        if (exports == NULL)
            sim__host_limit("out of host memory for %zu exported handles", export_size);
    }
    int ends[2];
    struct stat file;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    BASE_CHECK_EQ(fstat(ends[0], &file), 0);
    exports[export_count++] = (struct export){allocation, ends[0], file.st_dev, file.st_ino};
    ++allocation->export_count;
    *descriptor = ends[1];
    return CUDA_SUCCESS;
}

static CUresult import_locked(CUmemGenericAllocationHandle *handle, int descriptor,
                              CUmemAllocationHandleType type) {
    struct stat file;
    if (handle == NULL || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (fstat(descriptor, &file) == 0) {
        for (size_t i = 0; i < export_count; ++i) {
            if (exports[i].inode != file.st_ino || exports[i].file_system != file.st_dev)
                continue;
            ++exports[i].allocation->reference_count;
            *handle = exports[i].allocation->slot.handle;
            return CUDA_SUCCESS;
        }
    }
    if (sim__checked())
        sim__misuse("file descriptor %d is none that cuMemExportToShareableHandle gave",
                    descriptor);
    return CUDA_ERROR_UNKNOWN;
}

// --- The calls ---

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option) {
    CUresult error = sim__driver_begin(SIM__CALL_OTHER, true);
    if (error == CUDA_SUCCESS && (granularity == NULL || properties == NULL ||
                                  (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
                                   option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)))
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS)
        error = properties_check(properties);
    if (error == CUDA_SUCCESS)
        *granularity = SIM__GRANULARITY;
    return sim__driver_end(SIM__CALL_OTHER, error);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *properties, unsigned long long flags) {
    CUresult error = sim__driver_begin(SIM_CALL_MEM_CREATE, true);
    if (error == CUDA_SUCCESS)
        error = create_locked(handle, size, properties, flags);
    return sim__driver_end(SIM_CALL_MEM_CREATE, error);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    CUresult error = sim__driver_begin(SIM_CALL_MEM_RELEASE, true);
    if (error == CUDA_SUCCESS)
        error = release_locked(handle);
    return sim__driver_end(SIM_CALL_MEM_RELEASE, error);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
    CUresult error = sim__driver_begin(SIM__CALL_OTHER, true);
    if (error == CUDA_SUCCESS)
        error = retain_locked(handle, address);
    return sim__driver_end(SIM__CALL_OTHER, error);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                CUmemGenericAllocationHandle handle) {
    CUresult error = sim__driver_begin(SIM__CALL_OTHER, true);
    const struct sim__allocation *allocation =
        error == CUDA_SUCCESS ? sim__allocation_find(handle) : NULL;
    if (error == CUDA_SUCCESS && (properties == NULL || allocation == NULL))
        error = CUDA_ERROR_INVALID_VALUE;
    if (error == CUDA_SUCCESS)
        *properties = allocation->properties;
    return sim__driver_end(SIM__CALL_OTHER, error);
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
    CUresult error = sim__driver_begin(SIM_CALL_MEM_EXPORT, true);
    if (error == CUDA_SUCCESS)
        error = export_locked(shareable, handle, type, flags);
    return sim__driver_end(SIM_CALL_MEM_EXPORT, error);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type) {
    CUresult error = sim__driver_begin(SIM_CALL_MEM_IMPORT, true);
    if (error == CUDA_SUCCESS)
        error = import_locked(handle, (int)(intptr_t)shareable, type);
    return sim__driver_end(SIM_CALL_MEM_IMPORT, error);
}
