// Physical memory of a device. Always an account of 2 MiB pages; with numerics on also one sparse
// memfd, of which an allocation gets one extent where there is room, the lowest one, else the
// lowest pieces there are: each mapping counts, as a process has only 65,530 of them
// (vm.max_map_count). Freed pages are punched out of the file, so that host memory follows what is
// live.
//
// All addresses are reserved at once, without access: a window for each device and one for
// cuMemAddressReserve. Memory is mapped over it and unmapped back to that state, so an access
// outside live memory faults. In checked mode it is mapped in the window's mirror instead, a second
// reservation at a fixed distance, where only the simulator looks: what the program holds stays
// without access.
#include "simulator/memory.h"
#include "simulator/plant.h"

#include "base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Addresses reserved for all devices together, and for cuMemAddressReserve, with numerics on.
// Ascending addresses are never used twice, so there should be many; the thread sanitizer leaves
// room for few.
#if defined(__SANITIZE_THREAD__)
#define DEVICES_BYTES ((uint64_t)256 << 30)
#define VIRTUAL_BYTES ((uint64_t)128 << 30)
#else
#define DEVICES_BYTES ((uint64_t)32 << 40)
#define VIRTUAL_BYTES ((uint64_t)16 << 40)
#endif
// With numerics off reservations are plain numbers above those of the devices (address.c).
#define PLAIN_VIRTUAL_START ((uint64_t)1 << 47)
#define PLAIN_VIRTUAL_END ((uint64_t)1 << 48)

// The reservation; its first half and its mirror in checked mode.
static uint64_t window_start, window_bytes;

static bool numerics(void) { return sim__state.options.numerics == SIM_NUMERICS_ON; }

static void *reserve(uint64_t size) {
    void *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

// Twice the capacity each, at least; as much as the process can have, at most what is defined
// above.
static void windows_reserve(void) {
    const uint64_t devices = (uint64_t)sim__state.options.device_count;
    const uint64_t least = base_round_up(2 * sim__state.options.capacity_bytes, SIM_PAGE_BYTES);
    const uint64_t sides = sim__state.options.checked ? 2 : 1;
    uint64_t each = base_round_down(DEVICES_BYTES / devices, SIM_PAGE_BYTES);
    uint64_t virtual_bytes = VIRTUAL_BYTES;
    for (;;) {
        each = each < least ? least : each;
        virtual_bytes = virtual_bytes < least ? least : virtual_bytes;
        window_bytes = each * devices + virtual_bytes;
        void *base = reserve(sides * window_bytes);
        window_start = (uint64_t)(uintptr_t)base;
        if (base != NULL)
            break;
        if (each == least && virtual_bytes == least)
            sim__host_limit("cannot reserve %llu bytes of addresses for %llu devices: %s "
                            "(ulimit -v?)",
                            (unsigned long long)(sides * window_bytes), (unsigned long long)devices,
                            strerror(errno));
        each = base_round_down(each / 2, SIM_PAGE_BYTES);
        virtual_bytes = base_round_down(virtual_bytes / 2, SIM_PAGE_BYTES);
    }
    for (uint64_t i = 0; i < devices; ++i) {
        sim__state.devices[i].addresses_start = window_start + i * each;
        sim__state.devices[i].addresses_end = window_start + (i + 1) * each;
    }
    sim__state.virtual_start = base_round_up(window_start + devices * each, SIM_PAGE_BYTES);
    sim__state.virtual_end = window_start + window_bytes;
    sim__state.mirror_offset = sim__state.options.checked ? window_bytes : 0;
}

static void file_make(struct sim__device *device) {
    const uint64_t capacity = base_round_up(sim__state.options.capacity_bytes, SIM_PAGE_BYTES);
    device->physical_file = memfd_create("tidemark-device", MFD_CLOEXEC);
    if (device->physical_file < 0)
        sim__host_limit("memfd_create for device %d: %s", device->index, strerror(errno));
    if (ftruncate(device->physical_file, (off_t)capacity) != 0)
        sim__host_limit("device %d of %llu bytes: %s", device->index, (unsigned long long)capacity,
                        strerror(errno));
    sim__space_give(&device->physical_free, 0, capacity);
}

void sim__physical_start(void) {
    sim__state.virtual_start = PLAIN_VIRTUAL_START;
    sim__state.virtual_end = PLAIN_VIRTUAL_END;
    sim__state.mirror_offset = 0;
    if (numerics())
        windows_reserve();
    for (int i = 0; i < sim__state.options.device_count; ++i) {
        sim__state.devices[i].physical_file = -1;
        if (numerics())
            file_make(&sim__state.devices[i]);
    }
}

void sim__physical_stop(void) {
    if (!numerics())
        return;
    const uint64_t sides = sim__state.options.checked ? 2 : 1;
    BASE_CHECK_EQ(munmap((void *)(uintptr_t)window_start, sides * window_bytes), 0);
    window_start = window_bytes = 0;
    for (int i = 0; i < sim__state.options.device_count; ++i) {
        BASE_CHECK_EQ(close(sim__state.devices[i].physical_file), 0);
        sim__state.devices[i].physical_file = -1;
        sim__space_clear(&sim__state.devices[i].physical_free);
    }
}

bool sim__physical_is_window(uint64_t address) { return address - window_start < window_bytes; }

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
    const uint64_t held = sim__physical_held(device);
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

void sim__physical_map(const struct sim__device *device, uint64_t address,
                       const struct sim__backing *backing, uint64_t size, bool writable) {
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    address += sim__state.mirror_offset;
    for (uint32_t i = 0; i < backing->extent_count && size > 0; ++i) {
        const struct sim__range *extent = extent_at(backing, i);
        const uint64_t part = extent->size < size ? extent->size : size;
        const uint64_t offset = sim__planted(SIM__PLANT_PAGE_SHARED) ? 0 : extent->start;
        map_or_end(address, part, protection, MAP_SHARED | MAP_NORESERVE, device->physical_file,
                   offset);
        address += part;
        size -= part;
    }
}

void sim__physical_unmap(uint64_t address, uint64_t size) {
    if (numerics())
        map_or_end(address + sim__state.mirror_offset, size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void sim__physical_written(const struct sim__device *device, const struct sim__backing *backing,
                           uint64_t offset, uint64_t size,
                           void (*visit)(uint64_t offset, uint64_t size, void *argument),
                           void *argument) {
    uint64_t before = 0; // bytes of the backing in earlier extents
    for (uint32_t i = 0; i < backing->extent_count; before += extent_at(backing, i++)->size) {
        const struct sim__range *extent = extent_at(backing, i);
        const uint64_t from = offset > before ? offset - before : 0;
        const uint64_t end =
            offset + size - before < extent->size ? offset + size - before : extent->size;
        if (from >= extent->size || offset + size <= before)
            continue;
        for (uint64_t at = extent->start + from; at < extent->start + end;) {
            const off_t data = lseek(device->physical_file, (off_t)at, SEEK_DATA);
            if (data < 0 || (uint64_t)data >= extent->start + end)
                break;
            const off_t hole = lseek(device->physical_file, data, SEEK_HOLE);
            const uint64_t stop =
                (uint64_t)hole < extent->start + end ? (uint64_t)hole : extent->start + end;
            visit(before + ((uint64_t)data - extent->start), stop - (uint64_t)data, argument);
            at = stop;
        }
    }
}
