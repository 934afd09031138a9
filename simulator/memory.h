// Memory of the simulated machine: device memory in three layers, and page-locked host memory.
//
//     physical.c     2 MiB pages of a device: how many are used, and where, and their mapping
//     address.c      which address the next allocation gets
//     memory.c       cudaMalloc and its kin: segments, found by any address inside them
//     host_memory.c  cudaHostAlloc and its kin
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_MEMORY_H
#define TIDEMARK_SIMULATOR_MEMORY_H

#include "simulator/state.h"

// --- physical.c ---

// Physical memory behind one allocation: one extent where there was room in one piece, else
// several.
struct sim__backing {
    uint64_t size; // whole pages
    uint32_t extent_count;
    // Offsets in the device's physical memory.
    struct sim__range extent;   // the only one
    struct sim__range *extents; // or all of several
};

// With numerics on, makes the device's memory and reserves its addresses.
void sim__physical_start(struct sim__device *device);
void sim__physical_stop(struct sim__device *device);
// SIZE in whole pages; false if the device has less left.
bool sim__physical_take(struct sim__device *device, uint64_t size, struct sim__backing *backing);
void sim__physical_give(struct sim__device *device, struct sim__backing *backing);
// Makes the backing accessible from ADDRESS on, and ends that.
void sim__physical_map(struct sim__device *device, uint64_t address,
                       const struct sim__backing *backing);
void sim__physical_unmap(struct sim__device *device, uint64_t address,
                         const struct sim__backing *backing);

// --- address.c ---

void sim__addresses_start(struct sim__device *device);
void sim__addresses_stop(struct sim__device *device);
// An address for SIZE bytes that take PAGE_BYTES of address space; *taken is what sim__address_give
// must be told.
uint64_t sim__address_take(struct sim__device *device, uint64_t size, uint64_t page_bytes,
                           uint64_t *taken);
void sim__address_give(struct sim__device *device, uint64_t address, uint64_t taken);

// --- memory.c, host_memory.c ---

struct sim__segment {
    struct sim__range range; // the addresses it takes; in sim__state.segments
    uint64_t size;           // as requested: what may be accessed
    int device;
    struct sim__backing backing;
};

struct sim__host_range {
    struct sim__range range; // in sim__state.host_ranges; its size is what may be accessed
    int device;              // current at the allocation
};

enum sim__place {
    SIM__PLACE_PAGEABLE, // nothing that the simulator knows: plain host memory
    SIM__PLACE_PINNED,
    SIM__PLACE_DEVICE,
};

// The bytes from the first to the last of ROWS rows of SIZE bytes, PITCH apart; rows >= 1.
static inline uint64_t sim__extent(uint64_t size, uint64_t rows, uint64_t pitch) {
    return (rows - 1) * pitch + size;
}
// Where [POINTER, POINTER + SIZE) lies. False if it begins in known memory and leaves it.
bool sim__memory_locate(const void *pointer, uint64_t size, enum sim__place *place);
// Where work can touch the bytes at device address POINTER; NULL with numerics off.
void *sim__memory_bytes(const void *pointer);

void sim__memory_clear(void);
void sim__host_memory_clear(void);

#endif
