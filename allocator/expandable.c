// See expandable.h.
#include "allocator/expandable.h"

#include "allocator/device.h"
#include "allocator/driver.h"
#include "allocator/warning.h"

#include <stdlib.h>

struct page {
    CUmemGenericAllocationHandle handle;
    bool mapped;
    bool has_handle; // not given back yet; what is mapped lives on without
};

struct cca__expandable {
    uint64_t address;
    size_t reserved_bytes, page_bytes;
    struct page *pages; // by place; none is mapped from page_count on
    size_t page_count, page_capacity;
};

// Driver calls need the thread to have a context, which cudaSetDevice gives it.
static enum base_status enter(struct cca__device *device, struct cca__device_scope *scope) {
    const enum base_status status = cca__device_scope_begin(scope, device->ordinal);
    if (status != BASE_OK) return status;
    const cudaError_t error = cudaSetDevice(device->ordinal);
    if (error == cudaSuccess) return BASE_OK;
    cca__device_scope_end(scope);
    return cca__cuda_failed(error, "cudaSetDevice(%d)", device->ordinal);
}

//------------------------------------------------------------------------------------------------
// Addresses.

uint64_t cca__expandable_address(const struct cca__expandable *segment) { return segment->address; }

size_t cca__expandable_bytes(const struct cca__expandable *segment) {
    return segment->reserved_bytes;
}

size_t cca__expandable_page_bytes(const struct cca__expandable *segment) {
    return segment->page_bytes;
}

static size_t page_of(const struct cca__expandable *segment, uint64_t address) {
    return (size_t)(address - segment->address) / segment->page_bytes;
}

static uint64_t address_of(const struct cca__expandable *segment, size_t page) {
    return segment->address + (uint64_t)page * segment->page_bytes;
}

bool cca__expandable_is_mapped(const struct cca__expandable *segment, uint64_t address) {
    const size_t page = page_of(segment, address);
    return page < segment->page_count && segment->pages[page].mapped;
}

static enum base_status reserve_addresses(struct cca__device *device,
                                          struct cca__expandable *segment) {
    const struct cca__driver_calls *const calls = &device->driver->calls;
    CUdeviceptr address = 0;
    const CUresult error = calls->address_reserve(&address, segment->reserved_bytes, 0, 0, 0);
    if (error == CUDA_ERROR_OUT_OF_MEMORY)
        return base_status_set(BASE_CUDA,
                               "CUDA driver error: no %zu bytes of addresses for an expandable "
                               "segment on device %d are left (cuMemAddressReserve); lower "
                               "expandable_segments_reserve or "
                               "expandable_segments_reserve_by_class",
                               segment->reserved_bytes, device->ordinal);
    if (error != CUDA_SUCCESS)
        return cca__driver_failed(calls, error, "cuMemAddressReserve", device, 0,
                                  segment->reserved_bytes);
    segment->address = address;
    return BASE_OK;
}

enum base_status cca__expandable_reserve(struct cca__device *device, size_t bytes,
                                         size_t page_bytes, struct cca__expandable **segment) {
    BASE_CHECK_EQ(bytes % page_bytes, 0);
    struct cca__expandable *const made = calloc(1, sizeof *made);
    if (made == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for an expandable segment");
    made->reserved_bytes = bytes;
    made->page_bytes = page_bytes;
    struct cca__device_scope scope;
    enum base_status status = enter(device, &scope);
    if (status == BASE_OK) {
        status = cca__driver_find(device);
        if (status == BASE_OK) status = reserve_addresses(device, made);
        cca__device_scope_end(&scope);
    }
    if (status == BASE_OK)
        *segment = made;
    else
        free(made);
    return status;
}

static void segment_deinit(struct cca__expandable *segment) {
    free(segment->pages);
    free(segment);
}

enum base_status cca__expandable_free(struct cca__device *device, struct cca__expandable *segment) {
    BASE_CHECK_EQ(segment->page_count, 0);
    struct cca__device_scope scope;
    enum base_status status = enter(device, &scope);
    if (status != BASE_OK) return status;
    const struct cca__driver_calls *const calls = &device->driver->calls;
    const CUresult error = calls->address_free(segment->address, segment->reserved_bytes);
    if (error != CUDA_SUCCESS)
        status = cca__driver_failed(calls, error, "cuMemAddressFree", device, segment->address,
                                    segment->reserved_bytes);
    cca__device_scope_end(&scope);
    if (status == BASE_OK) segment_deinit(segment);
    return status;
}

void cca__expandable_abandon(struct cca__device *device, struct cca__expandable *segment) {
    cca__driver_give_back(device, (struct cca__driver_kept){.is_range = true,
                                                            .address = segment->address,
                                                            .size = segment->reserved_bytes});
    segment_deinit(segment);
}

static void give_back(struct cca__device *device, const struct cca__expandable *segment,
                      size_t page, bool is_mapped, bool has_handle) {
    cca__driver_give_back(device, (struct cca__driver_kept){
                                      .handle = segment->pages[page].handle,
                                      .has_handle = has_handle,
                                      .address = is_mapped ? address_of(segment, page) : 0,
                                      .size = segment->page_bytes,
                                  });
}

void cca__expandable_destroy(struct cca__device *device, struct cca__expandable *segment) {
    const struct cca__driver_calls *const calls = &device->driver->calls;
    struct cca__device_scope scope;
    // What a call refuses is lost in the end, so none is spared for the failure of one before it.
    const bool has_entered = enter(device, &scope) == BASE_OK;
    // Blocks that nobody freed go too, and unlike cudaFree an unmapping does not wait for their work.
    (void)cudaDeviceSynchronize();
    for (size_t page = 0; page < segment->page_count; ++page) {
        if (!segment->pages[page].mapped) continue;
        give_back(device, segment, page, true, segment->pages[page].has_handle);
    }
    cca__driver_drop_kept(device);
    (void)calls->address_free(segment->address, segment->reserved_bytes);
    if (has_entered) cca__device_scope_end(&scope);
    segment_deinit(segment);
}

//------------------------------------------------------------------------------------------------
// Pages. What follows has the device's context.

static enum base_status reserve_places(struct cca__expandable *segment, size_t count) {
    if (count <= segment->page_capacity) return BASE_OK;
    size_t capacity = segment->page_capacity == 0 ? 64 : 2 * segment->page_capacity;
    if (capacity < count) capacity = count;
    struct page *const pages = realloc(segment->pages, capacity * sizeof *pages);
    if (pages == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu mapped pages",
                               capacity);
    segment->pages = pages;
    segment->page_capacity = capacity;
    return BASE_OK;
}

// Tells what was free when a page could not be had, what this call took before included.
static void warn_of_no_memory(struct cca__device *device, size_t page_bytes) {
    size_t free_bytes = 0, total_bytes = device->total_bytes;
    // A device that cannot even be asked must not hide the failure itself.
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) (void)cudaGetLastError();
    cca__warn(&device->owner->warnings,
              "expandable_segments: memory mapping failed with OOM on device %d while trying to "
              "map %zu bytes (free: %zu, total: %zu).",
              device->ordinal, page_bytes, free_bytes, total_bytes);
}

static enum base_status create_pages(struct cca__device *device,
                                     const struct cca__driver_calls *calls,
                                     struct cca__expandable *segment, size_t first, size_t count,
                                     size_t *created) {
    const CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->ordinal},
        .allocFlags = {.gpuDirectRDMACapable = device->driver->maps_for_rdma},
    };
    for (*created = 0; *created < count; ++*created) {
        const CUresult error = calls->create(&segment->pages[first + *created].handle,
                                             segment->page_bytes, &properties, 0);
        if (error == CUDA_SUCCESS) continue;
        if (error != CUDA_ERROR_OUT_OF_MEMORY)
            return cca__driver_failed(calls, error, "cuMemCreate", device,
                                      address_of(segment, first + *created), segment->page_bytes);
        warn_of_no_memory(device, segment->page_bytes);
        return BASE_OUT_OF_MEMORY;
    }
    return BASE_OK;
}

static enum base_status map_pages(struct cca__device *device, const struct cca__driver_calls *calls,
                                  struct cca__expandable *segment, size_t first, size_t count,
                                  size_t *mapped) {
    for (*mapped = 0; *mapped < count; ++*mapped) {
        const uint64_t address = address_of(segment, first + *mapped);
        const CUresult error =
            calls->map(address, segment->page_bytes, 0, segment->pages[first + *mapped].handle, 0);
        if (error != CUDA_SUCCESS)
            return cca__driver_failed(calls, error, "cuMemMap", device, address,
                                      segment->page_bytes);
    }
    return BASE_OK;
}

static enum base_status let(struct cca__device *device, const struct cca__driver_calls *calls,
                            uint64_t address, size_t size, int who) {
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = who},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUresult error = calls->set_access(address, size, &access, 1);
    if (error == CUDA_SUCCESS) return BASE_OK;
    return cca__driver_failed(calls, error, "cuMemSetAccess", device, address, size);
}

static enum base_status let_all(struct cca__device *device, const struct cca__driver_calls *calls,
                                uint64_t address, size_t size) {
    enum base_status status = let(device, calls, address, size, device->ordinal);
    for (int peer = 0; peer < CCA__DEVICES_MAX && status == BASE_OK; ++peer)
        if (device->peers >> peer & 1) status = let(device, calls, address, size, peer);
    return status;
}

// Makes COUNT pages from FIRST on appear, or none.
static enum base_status add_pages(struct cca__device *device, const struct cca__driver_calls *calls,
                                  struct cca__expandable *segment, size_t first, size_t count) {
    size_t created = 0, mapped = 0;
    enum base_status status = create_pages(device, calls, segment, first, count, &created);
    if (status == BASE_OK) status = map_pages(device, calls, segment, first, count, &mapped);
    if (status == BASE_OK)
        status = let_all(device, calls, address_of(segment, first), count * segment->page_bytes);
    if (status == BASE_OK) {
        for (size_t page = first; page < first + count; ++page)
            segment->pages[page].mapped = segment->pages[page].has_handle = true;
        return BASE_OK;
    }
    // What led here is reported, not what fails on the way back.
    for (size_t page = first; page < first + created; ++page)
        give_back(device, segment, page, page < first + mapped, true);
    return status;
}

enum base_status cca__expandable_map(struct cca__device *device, struct cca__expandable *segment,
                                     uint64_t address, size_t size) {
    const size_t first = page_of(segment, address), count = size / segment->page_bytes;
    BASE_CHECK_EQ(address_of(segment, first), address);
    BASE_CHECK_EQ(count * segment->page_bytes, size);
    enum base_status status = reserve_places(segment, first + count);
    if (status != BASE_OK) return status;
    struct cca__device_scope scope;
    status = enter(device, &scope);
    if (status != BASE_OK) return status;
    cca__driver_drop_kept(device);
    status = add_pages(device, &device->driver->calls, segment, first, count);
    cca__device_scope_end(&scope);
    if (status != BASE_OK) return status;
    // Holes between the end of before and this: places that hold nothing.
    for (; segment->page_count < first; ++segment->page_count)
        segment->pages[segment->page_count].mapped = false;
    if (segment->page_count < first + count) segment->page_count = first + count;
    return BASE_OK;
}

// Forgets pages at the end that hold nothing.
static void trim(struct cca__expandable *segment) {
    while (segment->page_count > 0 && !segment->pages[segment->page_count - 1].mapped)
        --segment->page_count;
}

static enum base_status remove_page(struct cca__device *device,
                                    const struct cca__driver_calls *calls,
                                    struct cca__expandable *segment, size_t page) {
    const uint64_t address = address_of(segment, page);
    struct page *const place = &segment->pages[page];
    // The handle first: while the mapping is there nothing is lost if a call fails, and the page
    // can be removed later.
    if (place->has_handle) {
        const CUresult error = calls->release(place->handle);
        if (error != CUDA_SUCCESS)
            return cca__driver_failed(calls, error, "cuMemRelease", device, address,
                                      segment->page_bytes);
        place->has_handle = false;
    }
    const CUresult error = calls->unmap(address, segment->page_bytes);
    if (error != CUDA_SUCCESS)
        return cca__driver_failed(calls, error, "cuMemUnmap", device, address, segment->page_bytes);
    place->mapped = false;
    return BASE_OK;
}

// Work that uses the pages may still be under way: a free says only what comes after it. Of a
// stream that was destroyed meanwhile the work goes on to its end, and only the whole device can be
// waited for.
static enum base_status wait_for_users(struct cca__device *device, cudaStream_t stream,
                                       size_t size) {
    const char *call = "cudaStreamSynchronize";
    cudaError_t error = cudaStreamSynchronize(stream);
    if (error == cudaErrorInvalidResourceHandle || error == cudaErrorContextIsDestroyed) {
        (void)cudaGetLastError();
        call = "cudaDeviceSynchronize";
        error = cudaDeviceSynchronize();
    }
    if (error == cudaSuccess) return BASE_OK;
    return cca__cuda_failed(error, "%s before %zu bytes are unmapped on device %d", call, size,
                            device->ordinal);
}

enum base_status cca__expandable_unmap(struct cca__device *device, cudaStream_t stream,
                                       struct cca__expandable *segment, uint64_t address,
                                       size_t size, size_t *unmapped) {
    const size_t first = page_of(segment, address), count = size / segment->page_bytes;
    BASE_CHECK_EQ(address_of(segment, first), address);
    BASE_CHECK_EQ(count * segment->page_bytes, size);
    *unmapped = 0;
    struct cca__device_scope scope;
    enum base_status status = enter(device, &scope);
    if (status != BASE_OK) return status;
    status = wait_for_users(device, stream, size);
    for (size_t page = first; page < first + count && status == BASE_OK; ++page) {
        status = remove_page(device, &device->driver->calls, segment, page);
        if (!segment->pages[page].mapped) *unmapped += segment->page_bytes;
    }
    cca__device_scope_end(&scope);
    trim(segment);
    return status;
}

enum base_status cca__expandable_add_peer(struct cca__device *device,
                                          struct cca__expandable *segment, int peer) {
    struct cca__device_scope scope;
    enum base_status status = enter(device, &scope);
    if (status != BASE_OK) return status;
    // Each run of mapped pages at once.
    for (size_t page = 0, end; page < segment->page_count && status == BASE_OK; page = end + 1) {
        end = page;
        while (end < segment->page_count && segment->pages[end].mapped)
            ++end;
        if (end > page)
            status = let(device, &device->driver->calls, address_of(segment, page),
                         (end - page) * segment->page_bytes, peer);
    }
    cca__device_scope_end(&scope);
    return status;
}
