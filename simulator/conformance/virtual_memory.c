// Section 4: the driver's virtual memory calls.
#include "simulator/conformance/cases.h"

#include <cuda.h>
#include <string.h>
#include <unistd.h>

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

#define PAGE ((size_t)2 << 20)

static void answer_result(struct conformance *c, const char *label, CUresult result) {
    answer_number(c, label, (int)result);
}

#define MUST_DRIVER(c, call)                                 \
    do {                                                     \
        const CUresult must_result = (call);                 \
        if (must_result != CUDA_SUCCESS) {                   \
            answer_result((c), #call, must_result);          \
            return;                                          \
        }                                                    \
    } while (0)

static CUmemAllocationProp properties(int device) {
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
}

static CUmemAccessDesc access_for(int device, CUmemAccess_flags flags) {
    return (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
}

// Addresses for COUNT pages, and COUNT pages of memory, mapped one by one.
struct range {
    CUdeviceptr address;
    int count;
};

static CUresult range_make(struct range *range, int count) {
    const CUmemAllocationProp wanted = properties(0);
    range->count = 0;
    CUresult result =
        cuMemAddressReserve(&range->address, (size_t)count * PAGE, 0, 0, 0);
    while (result == CUDA_SUCCESS && range->count < count) {
        CUmemGenericAllocationHandle handle;
        result = cuMemCreate(&handle, PAGE, &wanted, 0);
        if (result != CUDA_SUCCESS)
            break;
        result = cuMemMap(range->address + (size_t)range->count * PAGE, PAGE, 0, handle, 0);
        (void)cuMemRelease(handle); // the mapping keeps it
        ++range->count;
    }
    return result;
}

static CUresult range_open(const struct range *range, CUmemAccess_flags flags) {
    const CUmemAccessDesc access = access_for(0, flags);
    return cuMemSetAccess(range->address, (size_t)range->count * PAGE, &access, 1);
}

static void range_end(const struct range *range) {
    (void)cudaDeviceSynchronize();
    (void)cuMemUnmap(range->address, (size_t)range->count * PAGE);
    (void)cuMemAddressFree(range->address, (size_t)range->count * PAGE);
}

static void *pointer(CUdeviceptr address) { return (void *)(uintptr_t)address; }

// --- Sizes and addresses ---

static void granularity(struct conformance *c) {
    const CUmemAllocationProp wanted = properties(0);
    const CUmemAllocationGranularity_flags minimum = CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    const CUmemAllocationGranularity_flags recommended = CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
    size_t least = 0, best = 0;
    MUST_DRIVER(c, cuMemGetAllocationGranularity(&least, &wanted, minimum));
    MUST_DRIVER(c, cuMemGetAllocationGranularity(&best, &wanted, recommended));
    answer_number(c, "minimum", (int64_t)least);
    answer_yes(c, "same", least == best);
    answer_result(c, "null", cuMemGetAllocationGranularity(NULL, &wanted, minimum));
}

static void reserve_bad(struct conformance *c) {
    CUdeviceptr address;
    answer_result(c, "null", cuMemAddressReserve(NULL, PAGE, 0, 0, 0));
    answer_result(c, "flags", cuMemAddressReserve(&address, PAGE, 0, 0, 1));
}

static void reserve_bad_size(struct conformance *c) {
    CUdeviceptr address;
    answer_result(c, "zero", cuMemAddressReserve(&address, 0, 0, 0, 0));
    answer_result(c, "unaligned", cuMemAddressReserve(&address, PAGE + 4096, 0, 0, 0));
    answer_result(c, "alignment", cuMemAddressReserve(&address, PAGE, 3 * PAGE, 0, 0));
}

static void reserve_takes_no_memory(struct conformance *c) {
    CUdeviceptr address;
    size_t before, after, total;
    MUST(c, cudaMemGetInfo(&before, &total));
    MUST_DRIVER(c, cuMemAddressReserve(&address, 2 * total, 0, 0, 0));
    MUST(c, cudaMemGetInfo(&after, &total));
    answer_yes(c, "same", before == after);
    answer_yes(c, "aligned", address % PAGE == 0);
    answer_result(c, "free", cuMemAddressFree(address, 2 * total));
}

static void reserve_alignment(struct conformance *c) {
    CUdeviceptr address;
    MUST_DRIVER(c, cuMemAddressReserve(&address, PAGE, 64 * PAGE, 0, 0));
    answer_yes(c, "aligned", address % (64 * PAGE) == 0);
    answer_result(c, "free", cuMemAddressFree(address, PAGE));
}

static void address_free_bad(struct conformance *c) {
    CUdeviceptr address;
    MUST_DRIVER(c, cuMemAddressReserve(&address, 2 * PAGE, 0, 0, 0));
    answer_result(c, "part", cuMemAddressFree(address, PAGE));
    answer_result(c, "inside", cuMemAddressFree(address + PAGE, PAGE));
    answer_result(c, "whole", cuMemAddressFree(address, 2 * PAGE));
    answer_result(c, "twice", cuMemAddressFree(address, 2 * PAGE));
}

static void address_free_mapped(struct conformance *c) {
    struct range range;
    MUST_DRIVER(c, range_make(&range, 1));
    answer_result(c, "free", cuMemAddressFree(range.address, PAGE));
    range_end(&range);
}

// --- Memory ---

static void create_bad(struct conformance *c) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp wanted = properties(0);
    answer_result(c, "zero", cuMemCreate(&handle, 0, &wanted, 0));
    answer_result(c, "unaligned", cuMemCreate(&handle, PAGE + 4096, &wanted, 0));
    answer_result(c, "flags", cuMemCreate(&handle, PAGE, &wanted, 1));
    wanted.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    answer_result(c, "type", cuMemCreate(&handle, PAGE, &wanted, 0));
    wanted = properties(0);
    wanted.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    answer_result(c, "location", cuMemCreate(&handle, PAGE, &wanted, 0));
}

static void create_bad_device(struct conformance *c) {
    CUmemGenericAllocationHandle handle;
    const CUmemAllocationProp wanted = properties(99);
    answer_result(c, "device", cuMemCreate(&handle, PAGE, &wanted, 0));
}

static void create_too_large(struct conformance *c) {
    CUmemGenericAllocationHandle handle;
    const CUmemAllocationProp wanted = properties(0);
    size_t free_bytes, total_bytes;
    MUST(c, cudaMemGetInfo(&free_bytes, &total_bytes));
    answer_result(c, "create", cuMemCreate(&handle, (total_bytes >> 21 << 21) + PAGE, &wanted, 0));
}

static void create_takes_memory(struct conformance *c) {
    CUmemGenericAllocationHandle handle;
    const CUmemAllocationProp wanted = properties(0);
    size_t before, between, after, total;
    MUST(c, cudaMemGetInfo(&before, &total));
    MUST_DRIVER(c, cuMemCreate(&handle, 8 * PAGE, &wanted, 0));
    MUST(c, cudaMemGetInfo(&between, &total));
    MUST_DRIVER(c, cuMemRelease(handle));
    MUST(c, cudaMemGetInfo(&after, &total));
    answer_number(c, "taken", (int64_t)(before - between) >> 20);
    answer_yes(c, "given-back", before == after);
}

static void release_bad(struct conformance *c) {
    answer_result(c, "zero", cuMemRelease(0));
    answer_result(c, "unknown", cuMemRelease((CUmemGenericAllocationHandle)0x123456));
}

static void handle_properties(struct conformance *c) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp wanted = properties(0), told = {0};
    wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    MUST_DRIVER(c, cuMemCreate(&handle, PAGE, &wanted, 0));
    MUST_DRIVER(c, cuMemGetAllocationPropertiesFromHandle(&told, handle));
    answer_number(c, "type", told.type);
    answer_number(c, "device", told.location.id);
    answer_number(c, "handles", told.requestedHandleTypes);
    MUST_DRIVER(c, cuMemRelease(handle));
}

// --- Mapping ---

static void map_bad(struct conformance *c) {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    const CUmemAllocationProp wanted = properties(0);
    MUST_DRIVER(c, cuMemCreate(&handle, PAGE, &wanted, 0));
    MUST_DRIVER(c, cuMemAddressReserve(&address, 4 * PAGE, 0, 0, 0));
    answer_result(c, "offset", cuMemMap(address, PAGE, PAGE, handle, 0));
    answer_result(c, "flags", cuMemMap(address, PAGE, 0, handle, 1));
    answer_result(c, "unaligned", cuMemMap(address + 4096, PAGE, 0, handle, 0));
    answer_result(c, "outside", cuMemMap(address + 4 * PAGE, PAGE, 0, handle, 0));
    answer_result(c, "size", cuMemMap(address, 2 * PAGE, 0, handle, 0));
    answer_result(c, "handle", cuMemMap(address, PAGE, 0, 0, 0));
    MUST_DRIVER(c, cuMemMap(address, PAGE, 0, handle, 0));
    answer_result(c, "overlap", cuMemMap(address, PAGE, 0, handle, 0));
    MUST_DRIVER(c, cuMemUnmap(address, PAGE));
    MUST_DRIVER(c, cuMemRelease(handle));
    MUST_DRIVER(c, cuMemAddressFree(address, 4 * PAGE));
}

static void unmap_bad(struct conformance *c) {
    struct range range;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    const CUmemAllocationProp wanted = properties(0);
    MUST_DRIVER(c, range_make(&range, 2));
    MUST_DRIVER(c, cuMemUnmap(range.address, PAGE));
    answer_result(c, "hole", cuMemUnmap(range.address, 2 * PAGE));
    MUST_DRIVER(c, cuMemUnmap(range.address + PAGE, PAGE));
    MUST_DRIVER(c, cuMemAddressFree(range.address, 2 * PAGE));
    MUST_DRIVER(c, cuMemCreate(&handle, 2 * PAGE, &wanted, 0));
    MUST_DRIVER(c, cuMemAddressReserve(&address, 2 * PAGE, 0, 0, 0));
    MUST_DRIVER(c, cuMemMap(address, 2 * PAGE, 0, handle, 0));
    answer_result(c, "part", cuMemUnmap(address, PAGE));
    answer_result(c, "whole", cuMemUnmap(address, 2 * PAGE));
    MUST_DRIVER(c, cuMemRelease(handle));
    (void)cuMemAddressFree(address, 2 * PAGE);
}

static void unmap_several(struct conformance *c) {
    struct range range;
    MUST_DRIVER(c, range_make(&range, 3));
    answer_result(c, "unmap", cuMemUnmap(range.address, 3 * PAGE));
    answer_result(c, "free", cuMemAddressFree(range.address, 3 * PAGE));
}

static void set_access_bad(struct conformance *c) {
    struct range range;
    const CUmemAccessDesc access = access_for(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    const CUmemAccessDesc nowhere = access_for(99, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    MUST_DRIVER(c, range_make(&range, 2));
    answer_result(c, "count", cuMemSetAccess(range.address, PAGE, &access, 0));
    answer_result(c, "unaligned", cuMemSetAccess(range.address, PAGE / 2, &access, 1));
    MUST_DRIVER(c, cuMemUnmap(range.address + PAGE, PAGE));
    answer_result(c, "unmapped", cuMemSetAccess(range.address, 2 * PAGE, &access, 1));
    const CUresult device = cuMemSetAccess(range.address, PAGE, &nowhere, 1);
    answer_yes(c, "device", device == CUDA_ERROR_INVALID_VALUE ||
                                device == CUDA_ERROR_INVALID_DEVICE);
    MUST_DRIVER(c, cuMemUnmap(range.address, PAGE));
    MUST_DRIVER(c, cuMemAddressFree(range.address, 2 * PAGE));
}

static void get_access(struct conformance *c) {
    struct range range;
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    unsigned long long flags = 99;
    MUST_DRIVER(c, range_make(&range, 1));
    MUST_DRIVER(c, cuMemGetAccess(&flags, &location, range.address));
    answer_number(c, "at-first", (int64_t)flags);
    MUST_DRIVER(c, range_open(&range, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    MUST_DRIVER(c, cuMemGetAccess(&flags, &location, range.address + 4096));
    answer_number(c, "interior", (int64_t)flags);
    MUST_DRIVER(c, cuMemUnmap(range.address, PAGE));
    answer_result(c, "unmapped", cuMemGetAccess(&flags, &location, range.address));
    MUST_DRIVER(c, cuMemAddressFree(range.address, PAGE));
}

static void mapping_starts_inaccessible(struct conformance *c) {
    struct range range;
    unsigned char byte = 1;
    MUST_DRIVER(c, range_make(&range, 1));
    answer_code(c, "closed", cudaMemcpy(pointer(range.address), &byte, 1, cudaMemcpyDefault));
    MUST_DRIVER(c, range_open(&range, CU_MEM_ACCESS_FLAGS_PROT_READ));
    answer_code(c, "write", cudaMemcpy(pointer(range.address), &byte, 1, cudaMemcpyDefault));
    MUST_DRIVER(c, range_open(&range, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    answer_code(c, "open", cudaMemcpy(pointer(range.address), &byte, 1, cudaMemcpyDefault));
    answer_number(c, "byte", conformance_byte(pointer(range.address)));
    range_end(&range);
}

static void mapping_goes_on(struct conformance *c) {
    struct range range;
    MUST_DRIVER(c, range_make(&range, 2));
    MUST_DRIVER(c, range_open(&range, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    answer_code(c, "fill", cudaMemset(pointer(range.address), 3, 2 * PAGE));
    answer_number(c, "second", conformance_byte(pointer(range.address + PAGE)));
    range_end(&range);
}

static void mapping_aliases(struct conformance *c) {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    const CUmemAllocationProp wanted = properties(0);
    const CUmemAccessDesc access = access_for(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    MUST_DRIVER(c, cuMemCreate(&handle, PAGE, &wanted, 0));
    MUST_DRIVER(c, cuMemAddressReserve(&address, 2 * PAGE, 0, 0, 0));
    MUST_DRIVER(c, cuMemMap(address, PAGE, 0, handle, 0));
    MUST_DRIVER(c, cuMemMap(address + PAGE, PAGE, 0, handle, 0));
    MUST_DRIVER(c, cuMemSetAccess(address, 2 * PAGE, &access, 1));
    MUST(c, cudaMemset(pointer(address), 9, PAGE));
    answer_number(c, "other", conformance_byte(pointer(address + PAGE)));
    MUST_DRIVER(c, cuMemUnmap(address, 2 * PAGE));
    MUST_DRIVER(c, cuMemRelease(handle));
    MUST_DRIVER(c, cuMemAddressFree(address, 2 * PAGE));
}

// A copy runs in a stream of a device, and that device needs the right.
static void mapping_access_per_device(struct conformance *c) {
    struct range range;
    const CUmemAccessDesc access = access_for(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    MUST_DRIVER(c, range_make(&range, 1));
    MUST_DRIVER(c, range_open(&range, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    MUST(c, cudaSetDevice(1));
    void *other = conformance_device_memory(c, 16);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    answer_code(c, "closed", cudaMemcpyAsync(other, pointer(range.address), 16, cudaMemcpyDefault,
                                             stream));
    MUST_DRIVER(c, cuMemSetAccess(range.address, PAGE, &access, 1));
    answer_code(c, "open", cudaMemcpyAsync(other, pointer(range.address), 16, cudaMemcpyDefault,
                                           stream));
    MUST(c, cudaStreamSynchronize(stream));
    MUST(c, cudaSetDevice(0));
    MUST(c, cudaMemset(pointer(range.address), 1, 16)); // the other device's right is kept
    range_end(&range);
}

#ifdef TIDEMARK_SIMULATOR
struct touch {
    void *pointer;
};

static void touch_run(const void *argument) {
    const struct touch *touch = argument;
    unsigned char *byte = sim_kernel_bytes(touch->pointer, 1, true);
    if (byte != NULL)
        *byte = 1;
}

static cudaError_t kernel_touch(void *touched) {
    const struct touch touch = {touched};
    const cudaError_t error = sim_launch(NULL, "touch", touch_run, &touch, sizeof touch);
    return error == cudaSuccess ? cudaDeviceSynchronize() : error;
}

static void kernel_without_access(struct conformance *c) {
    struct range range;
    MUST_DRIVER(c, range_make(&range, 1));
    MUST_DRIVER(c, range_open(&range, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    answer_code(c, "open", kernel_touch(pointer(range.address)));
    MUST_DRIVER(c, range_open(&range, CU_MEM_ACCESS_FLAGS_PROT_READ));
    answer_code(c, "read-only", kernel_touch(pointer(range.address)));
}

static void kernel_peer_access(struct conformance *c) {
    MUST(c, cudaSetDevice(1));
    void *other = conformance_device_memory(c, 16);
    MUST(c, cudaSetDevice(0));
    MUST(c, cudaDeviceEnablePeerAccess(1, 0));
    answer_code(c, "enabled", kernel_touch(other));
    MUST(c, cudaDeviceDisablePeerAccess(1));
    answer_code(c, "disabled", kernel_touch(other));
}
#endif

static void remapping_is_inaccessible(struct conformance *c) {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    const CUmemAllocationProp wanted = properties(0);
    const CUmemAccessDesc access = access_for(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    MUST_DRIVER(c, cuMemCreate(&handle, PAGE, &wanted, 0));
    MUST_DRIVER(c, cuMemAddressReserve(&address, PAGE, 0, 0, 0));
    MUST_DRIVER(c, cuMemMap(address, PAGE, 0, handle, 0));
    MUST_DRIVER(c, cuMemSetAccess(address, PAGE, &access, 1));
    MUST(c, cudaMemset(pointer(address), 5, PAGE));
    MUST(c, cudaDeviceSynchronize());
    MUST_DRIVER(c, cuMemUnmap(address, PAGE));
    MUST_DRIVER(c, cuMemMap(address, PAGE, 0, handle, 0));
    answer_code(c, "closed", cudaMemset(pointer(address), 6, PAGE));
    MUST_DRIVER(c, cuMemSetAccess(address, PAGE, &access, 1));
    answer_number(c, "byte", conformance_byte(pointer(address)));
    MUST_DRIVER(c, cuMemUnmap(address, PAGE));
    MUST_DRIVER(c, cuMemRelease(handle));
    MUST_DRIVER(c, cuMemAddressFree(address, PAGE));
}

static void plain_free_of_mapping(struct conformance *c) {
    struct range range;
    MUST_DRIVER(c, range_make(&range, 1));
    MUST_DRIVER(c, range_open(&range, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    answer_code(c, "free", cudaFree(pointer(range.address)));
    range_end(&range);
}

// --- How long memory lives ---

static void release_behind_map(struct conformance *c) {
    struct range range;
    size_t before, mapped, after, total;
    MUST(c, cudaMemGetInfo(&before, &total));
    MUST_DRIVER(c, range_make(&range, 4)); // releases each handle right after its mapping
    MUST_DRIVER(c, range_open(&range, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    MUST(c, cudaMemset(pointer(range.address), 1, 4 * PAGE));
    MUST(c, cudaDeviceSynchronize());
    MUST(c, cudaMemGetInfo(&mapped, &total));
    range_end(&range);
    MUST(c, cudaMemGetInfo(&after, &total));
    answer_number(c, "mapped", (int64_t)(before - mapped) >> 20);
    answer_yes(c, "unmapped", before == after);
}

static void retain_adds_reference(struct conformance *c) {
    CUmemGenericAllocationHandle handle, retained = 0;
    CUdeviceptr address;
    size_t before, after, total;
    const CUmemAllocationProp wanted = properties(0);
    MUST_DRIVER(c, cuMemCreate(&handle, PAGE, &wanted, 0));
    MUST_DRIVER(c, cuMemAddressReserve(&address, PAGE, 0, 0, 0));
    MUST_DRIVER(c, cuMemMap(address, PAGE, 0, handle, 0));
    MUST_DRIVER(c, cuMemRetainAllocationHandle(&retained, pointer(address + 4096)));
    answer_yes(c, "same", retained == handle);
    MUST_DRIVER(c, cuMemUnmap(address, PAGE));
    answer_result(c, "unmapped", cuMemRetainAllocationHandle(&retained, pointer(address)));
    MUST_DRIVER(c, cuMemRelease(handle));
    MUST(c, cudaMemGetInfo(&before, &total));
    answer_result(c, "second", cuMemRelease(handle));
    MUST(c, cudaMemGetInfo(&after, &total));
    answer_number(c, "given-back", (int64_t)(after - before) >> 20);
    MUST_DRIVER(c, cuMemAddressFree(address, PAGE));
}

// --- Sharing ---

static void export_bad(struct conformance *c) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp wanted = properties(0);
    int file = -1;
    MUST_DRIVER(c, cuMemCreate(&handle, PAGE, &wanted, 0));
    answer_result(c, "not-requested",
                  cuMemExportToShareableHandle(&file, handle,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    MUST_DRIVER(c, cuMemRelease(handle));
    wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    MUST_DRIVER(c, cuMemCreate(&handle, PAGE, &wanted, 0));
    answer_result(c, "flags",
                  cuMemExportToShareableHandle(&file, handle,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1));
    MUST_DRIVER(c, cuMemRelease(handle));
}

static void import_bad(struct conformance *c) {
    CUmemGenericAllocationHandle handle;
    const CUresult result = cuMemImportFromShareableHandle(
        &handle, (void *)(uintptr_t)987654, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    answer_yes(c, "file", result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_UNKNOWN);
}

static void export_and_import(struct conformance *c) {
    CUmemGenericAllocationHandle handle, imported;
    CUmemAllocationProp wanted = properties(0);
    int file = -1;
    wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    MUST_DRIVER(c, cuMemCreate(&handle, PAGE, &wanted, 0));
    MUST_DRIVER(c, cuMemExportToShareableHandle(&file, handle,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    answer_yes(c, "file", file >= 0);
    answer_result(c, "import",
                  cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)file,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    (void)close(file);
    answer_result(c, "first", cuMemRelease(handle));
    answer_result(c, "second", cuMemRelease(imported));
}

static void create_fabric(struct conformance *c) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp wanted = properties(0);
    wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    const CUresult result = cuMemCreate(&handle, PAGE, &wanted, 0);
    answer_yes(c, "refused",
               result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED);
    if (result == CUDA_SUCCESS)
        (void)cuMemRelease(handle);
}

static void virtual_memory_attributes(struct conformance *c) {
    int value = 0;
    MUST_DRIVER(c, cuDeviceGetAttribute(
                       &value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    answer_number(c, "mapping", value);
    MUST_DRIVER(c, cuDeviceGetAttribute(
                       &value, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
    answer_number(c, "files", value);
}

const struct conformance_case conformance__cases_virtual_memory[] = {
    CASE("granularity", "4", VERIFIED, granularity,
        "the granularity is 2 MiB, minimum and recommended",
        "minimum=2097152 same=yes null=1", NULL),
    CASE("reserve-bad", "4", VERIFIED, reserve_bad,
        "cuMemAddressReserve without a result pointer or with flags: 1",
        "null=1 flags=1", NULL),
    CASE("reserve-bad-size", "4", VERIFIED, reserve_bad_size,
        "cuMemAddressReserve of a bad size or alignment: 2 was seen, 1 is documented",
        "zero=2 unaligned=2 alignment=2", "zero=1 unaligned=1 alignment=1"),
    CASE("reserve-takes-no-memory", "4", VERIFIED, reserve_takes_no_memory,
        "addresses take no memory, and may exceed the device's",
        "same=yes aligned=yes free=0", NULL),
    CASE("reserve-alignment", "4", VERIFIED, reserve_alignment,
        "an alignment is kept",
        "aligned=yes free=0", NULL),
    CASE("address-free-bad", "4", VERIFIED, address_free_bad,
        "cuMemAddressFree of anything but one whole reservation: 1",
        "part=1 inside=1 whole=0 twice=1", NULL),
    CASE("address-free-mapped", "4", UNVERIFIED, address_free_mapped,
        "addresses with something mapped cannot be given back: 1",
        "free=1", NULL),
    CASE("create-bad", "4", VERIFIED, create_bad,
        "cuMemCreate of no size or a bad one, with flags, a bad type or location: 1",
        "zero=1 unaligned=1 flags=1 type=1 location=1", NULL),
    CASE("create-bad-device", "4", VERIFIED, create_bad_device,
        "cuMemCreate on a bad device: 1 or 101",
        "device=101", "device=1"),
    CASE("create-too-large", "4", VERIFIED, create_too_large,
        "cuMemCreate of more than there is: 2",
        "create=2", NULL),
    CASE("create-takes-memory", "4", VERIFIED, create_takes_memory,
        "cuMemCreate takes memory, and the last release gives it back",
        "taken=16 given-back=yes", NULL),
    CASE("create-fabric", "4", VERIFIED, create_fabric,
        "a kind of handle that is not supported: 801 or 800, never 2",
        "refused=yes", "refused=no"),
    CASE("release-bad", "4", VERIFIED, release_bad,
        "cuMemRelease of no handle: 1",
        "zero=1 unknown=1", NULL),
    CASE("handle-properties", "4", VERIFIED, handle_properties,
        "a handle's properties are those it was made with",
        "type=1 device=0 handles=1", NULL),
    CASE("map-bad", "4", VERIFIED, map_bad,
        "cuMemMap with an offset, flags, a bad range, a bad handle, or over a mapping: 1",
        "offset=1 flags=1 unaligned=1 outside=1 size=1 handle=1 overlap=1", NULL),
    CASE("unmap-bad", "4", VERIFIED, unmap_bad,
        "cuMemUnmap of a part of a mapping, or over a hole: 1",
        "hole=1 part=1 whole=0", NULL),
    CASE("unmap-several", "4", VERIFIED, unmap_several,
        "one cuMemUnmap may cover several whole mappings",
        "unmap=0 free=0", NULL),
    CASE("set-access-bad", "4", VERIFIED, set_access_bad,
        "cuMemSetAccess of nothing, of a bad range, over a hole, or for a bad device: 1",
        "count=1 unaligned=1 unmapped=1 device=yes", NULL),
    CASE("get-access", "4", VERIFIED, get_access,
        "cuMemGetAccess takes interior addresses; where nothing is mapped: 1",
        "at-first=0 interior=3 unmapped=1", NULL),
    CASE("mapping-starts-inaccessible", "4", VERIFIED, mapping_starts_inaccessible,
        "a mapping is for nobody's access at first; a copy to it, or to one for reading: 1",
        "closed=1 write=1 open=0 byte=1", NULL),
    CASE("mapping-goes-on", "4", VERIFIED, mapping_goes_on,
        "mappings that follow each other are one piece of memory",
        "fill=0 second=3", NULL),
    CASE("mapping-aliases", "4", VERIFIED, mapping_aliases,
        "two mappings of one handle show the same bytes",
        "other=9", NULL),
    CASE_2("mapping-access-per-device", "2", UNVERIFIED, mapping_access_per_device,
        "a mapping is accessible to the devices that were named; peer access counts for cudaMalloc "
        "memory only",
        "closed=1 open=0", NULL),
#ifdef TIDEMARK_SIMULATOR
    CASE_SIMULATED("kernel-without-access", "4", VERIFIED, kernel_without_access,
        "a kernel that writes where it may not: 700",
        "open=0 read-only=700", NULL),
    CASE_2_SIMULATED("kernel-peer-access", "2", VERIFIED, kernel_peer_access,
        "a kernel reaches another device's memory if peer access is enabled, else 700",
        "enabled=0 disabled=700", NULL),
#endif
    CASE("remapping-is-inaccessible", "4", VERIFIED, remapping_is_inaccessible,
        "a new mapping needs access anew; the bytes are the handle's",
        "closed=1 byte=5", NULL),
    CASE("plain-free-of-mapping", "2", UNVERIFIED, plain_free_of_mapping,
        "cudaFree of mapped memory: 1",
        "free=1", NULL),
    CASE("release-behind-map", "4", VERIFIED, release_behind_map,
        "memory lives while it is mapped, and goes with the last mapping",
        "mapped=8 unmapped=yes", NULL),
    CASE("retain-adds-reference", "4", VERIFIED, retain_adds_reference,
        "cuMemRetainAllocationHandle gives the same handle and one more reference",
        "same=yes unmapped=1 second=0 given-back=2", NULL),
    CASE("export-bad", "4", VERIFIED, export_bad,
        "an export that was not requested at creation, or with flags: 1",
        "not-requested=1 flags=1", NULL),
    CASE("import-bad", "4", VERIFIED, import_bad,
        "an import of a bad file descriptor: 1 or 999",
        "file=yes", NULL),
    CASE("export-and-import", "4", VERIFIED, export_and_import,
        "memory exported as a file descriptor is imported with a reference of its own",
        "file=yes import=0 first=0 second=0", NULL),
    CASE("virtual-memory-attributes", "4", VERIFIED, virtual_memory_attributes,
        "the device says that it has virtual memory and file descriptors for it",
        "mapping=1 files=1", NULL),
    {0},
};
