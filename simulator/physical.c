// Physical memory of a device. Always an account of 2 MiB pages; with numerics on also one sparse
// memfd, of which an allocation gets one extent where there is room, the lowest one, else the
// lowest pieces there are: each mapping counts, as a process has only 65,530 of them
// (vm.max_map_count). Freed pages are punched out of the file, so that host memory follows what is
// live.
//
// The device's address range is reserved without access; allocations are mapped over it and
// unmapped back to that state, so an access outside live memory faults.
#include "simulator/memory.h"

#include "base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Addresses reserved for all devices together with numerics on. Ascending addresses are never used
// twice, so there should be many; the thread sanitizer leaves room for few.
#if defined(__SANITIZE_THREAD__)
#define RESERVED_BYTES ((uint64_t)256 << 30)
#else
#define RESERVED_BYTES ((uint64_t)32 << 40)
#endif

static bool numerics(void) { return sim__state.options.numerics == SIM_NUMERICS_ON; }

static void *reserve(uint64_t size) {
    void *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

void sim__physical_start(struct sim__device *device) {
    device->used_bytes = 0;
    device->foreign_bytes = 0;
    device->physical_file = -1;
    if (!numerics())
        return;
    const uint64_t capacity = sim__state.options.capacity_bytes;
    device->physical_file = memfd_create("tidemark-device", MFD_CLOEXEC);
    if (device->physical_file < 0)
        sim__host_limit("memfd_create for device %d: %s", device->index, strerror(errno));
    if (ftruncate(device->physical_file, (off_t)base_round_up(capacity, SIM_PAGE_BYTES)) != 0)
        sim__host_limit("device %d of %llu bytes: %s", device->index, (unsigned long long)capacity,
                        strerror(errno));
    sim__space_give(&device->physical_free, 0, base_round_up(capacity, SIM_PAGE_BYTES));

    uint64_t size =
        base_round_down(RESERVED_BYTES / (uint64_t)sim__state.options.device_count, SIM_PAGE_BYTES);
    if (size < 2 * capacity)
        size = base_round_up(2 * capacity, SIM_PAGE_BYTES);
    void *base = reserve(size);
    for (; base == NULL && size / 2 > 2 * capacity; base = reserve(size))
        size = base_round_down(size / 2, SIM_PAGE_BYTES);
    if (base == NULL)
        sim__host_limit("cannot reserve %llu bytes of addresses for device %d: %s (ulimit -v?)",
                        (unsigned long long)size, device->index, strerror(errno));
    device->addresses_start = (uint64_t)(uintptr_t)base;
    device->addresses_end = device->addresses_start + size;
}

void sim__physical_stop(struct sim__device *device) {
    if (device->physical_file < 0)
        return;
    BASE_CHECK_EQ(munmap((void *)(uintptr_t)device->addresses_start,
                         device->addresses_end - device->addresses_start),
                  0);
    BASE_CHECK_EQ(close(device->physical_file), 0);
    device->physical_file = -1;
    sim__space_clear(&device->physical_free);
}

static void extent_add(struct sim__backing *backing, struct sim__range extent) {
    backing->extents = realloc(backing->extents, (backing->extent_count + 1) * sizeof extent);
    if (backing->extents == NULL)
        sim__host_limit("out of host memory for the pieces of an allocation");
    backing->extents[backing->extent_count++] = extent;
}

static const struct sim__range *extent_at(const struct sim__backing *backing, uint32_t index) {
    return backing->extents == NULL ? &backing->extent : &backing->extents[index];
}

static void extents_take(struct sim__space *free_space, struct sim__backing *backing) {
    struct sim__range extent;
    if (sim__space_find(free_space, backing->size, &extent)) {
        backing->extent = (struct sim__range){extent.start, backing->size};
        backing->extent_count = 1;
        sim__space_take(free_space, extent.start, backing->size);
        return;
    }
    for (uint64_t left = backing->size; left > 0; left -= extent.size) {
        BASE_CHECK(sim__space_find(free_space, 1, &extent));
        if (extent.size > left)
            extent.size = left;
        extent_add(backing, extent);
        sim__space_take(free_space, extent.start, extent.size);
    }
}

bool sim__physical_take(struct sim__device *device, uint64_t size, struct sim__backing *backing) {
    const uint64_t capacity = sim__state.options.capacity_bytes;
    const uint64_t held = device->used_bytes + device->foreign_bytes;
    if (held > capacity || size > capacity - held)
        return false;
    *backing = (struct sim__backing){.size = size};
    device->used_bytes += size;
    if (numerics())
        extents_take(&device->physical_free, backing);
    return true;
}

void sim__physical_give(struct sim__device *device, struct sim__backing *backing) {
    device->used_bytes -= backing->size;
    for (uint32_t i = 0; i < backing->extent_count; ++i) {
        const struct sim__range *extent = extent_at(backing, i);
        if (fallocate(device->physical_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      (off_t)extent->start, (off_t)extent->size) != 0)
            sim__host_limit("cannot give back memory of device %d: %s", device->index,
                            strerror(errno));
        sim__space_give(&device->physical_free, extent->start, extent->size);
    }
    free(backing->extents);
}

static void map_or_end(uint64_t address, uint64_t size, int protection, int flags, int file,
                       uint64_t offset) {
    if (mmap((void *)(uintptr_t)address, size, protection, flags | MAP_FIXED, file,
             (off_t)offset) != MAP_FAILED)
        return;
    if (errno == ENOMEM)
        sim__host_limit("the host allows no more memory mappings (vm.max_map_count): "
                        "fewer or larger allocations, or TIDEMARK_SIM_NUMERICS=off");
    sim__host_limit("cannot map %llu bytes of device memory: %s", (unsigned long long)size,
                    strerror(errno));
}

void sim__physical_map(struct sim__device *device, uint64_t address,
                       const struct sim__backing *backing) {
    for (uint32_t i = 0; i < backing->extent_count; ++i) {
        const struct sim__range *extent = extent_at(backing, i);
        map_or_end(address, extent->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                   device->physical_file, extent->start);
        address += extent->size;
    }
}

void sim__physical_unmap(struct sim__device *device, uint64_t address,
                         const struct sim__backing *backing) {
    if (device->physical_file >= 0)
        map_or_end(address, backing->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
}
