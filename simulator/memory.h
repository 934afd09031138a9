// Memory of the simulated machine: device memory in layers, and page-locked host memory.
//
//     physical.c        2 MiB pages of a device: how many are used, and where, and their mapping
//     address.c         which address the next allocation gets
//     memory.c          cudaMalloc and its kin; finding memory by any address inside it
//     pool.h            cudaMallocAsync: pools, their chunks, blocks of these
//     virtual_memory.h  cuMemCreate, cuMemMap and their kin
//     host_memory.c     cudaHostAlloc and its kin
//
// Mapped device memory of all kinds stands in one index, sim__state.segments, by address.
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_MEMORY_H
#define TIDEMARK_SIMULATOR_MEMORY_H

#include "simulator/state.h"

struct sim__copy; // engine.h
struct sim__fill;

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

// With numerics on, makes the devices' memory and reserves all addresses.
void sim__physical_start(void);
void sim__physical_stop(void);
// What of DEVICE's memory is not free.
static inline uint64_t sim__physical_held(const struct sim__device *device) {
    return device->used_bytes + device->foreign_bytes + device->context_bytes;
}
// SIZE in whole pages; false if the device has less left.
bool sim__physical_take(struct sim__device *device, uint64_t size, struct sim__backing *backing);
void sim__physical_give(struct sim__device *device, struct sim__backing *backing);
// Makes the first SIZE bytes of the backing accessible from ADDRESS on, and ends that.
void sim__physical_map(const struct sim__device *device, uint64_t address,
                       const struct sim__backing *backing, uint64_t size, bool writable);
void sim__physical_unmap(uint64_t address, uint64_t size);
// Whether ADDRESS is one that only device memory can have; known with numerics on.
bool sim__physical_is_window(uint64_t address);
// Calls VISIT for each piece of the SIZE bytes from OFFSET on of the backing that was ever written;
// with numerics on.
void sim__physical_written(const struct sim__device *device, const struct sim__backing *backing,
                           uint64_t offset, uint64_t size,
                           void (*visit)(uint64_t offset, uint64_t size, void *argument),
                           void *argument);

// --- address.c ---

void sim__addresses_start(struct sim__device *device);
void sim__addresses_stop(struct sim__device *device);
// An address for SIZE bytes that take PAGE_BYTES of address space; *taken is what sim__address_give
// must be told. The first takes a queued address (sim_next_address) if there is one.
uint64_t sim__address_take(struct sim__device *device, uint64_t size, uint64_t page_bytes,
                           uint64_t *taken);
uint64_t sim__address_choose(struct sim__device *device, uint64_t page_bytes);
void sim__address_give(struct sim__device *device, uint64_t address, uint64_t taken);

// Addresses in use are limited in all (options.address_bytes): false if SIZE more are too many.
static inline bool sim__address_budget_take(uint64_t size) {
    if (size > sim__state.options.address_bytes - sim__state.address_used_bytes)
        return false;
    sim__state.address_used_bytes += size;
    return true;
}
static inline void sim__address_budget_give(uint64_t size) {
    sim__state.address_used_bytes -= size;
}

// --- memory.c, host_memory.c ---

enum sim__segment_kind {
    SIM__SEGMENT_MALLOC,  // cudaMalloc
    SIM__SEGMENT_CHUNK,   // of a pool: struct sim__chunk
    SIM__SEGMENT_MAPPING, // cuMemMap: struct sim__mapping
    SIM__SEGMENT_GRAPH,   // of graphs: struct sim__graph_region; may have no memory
};

struct sim__segment {
    struct sim__range range; // the addresses it takes; in sim__state.segments
    uint64_t size;           // as requested: what may be accessed
    int device;              // whose memory it is
    enum sim__segment_kind kind;
    bool freed; // by the program, while work was pending that may use it
    // Bit D: device D may read, or write. Memory of cudaMalloc is its device's and its peers'.
    uint32_t readers, writers;
    struct sim__backing backing; // of a mapping: none of its own
};
// Whether what the program holds in it are blocks (pool.h).
static inline bool sim__segment_has_blocks(const struct sim__segment *segment) {
    return segment->kind == SIM__SEGMENT_CHUNK || segment->kind == SIM__SEGMENT_GRAPH;
}
// Whether there is memory at its addresses.
static inline bool sim__segment_is_there(const struct sim__segment *segment) {
    return segment->kind != SIM__SEGMENT_GRAPH || segment->backing.size > 0;
}

struct sim__host_range {
    struct sim__range range; // in sim__state.host_ranges; its size is what may be accessed
    int device;              // current at the allocation
    bool registered;         // the program's own memory (cudaHostRegister)
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

// Which rights device work needs.
enum sim__access {
    SIM__ACCESS_READ,
    SIM__ACCESS_WRITE,
};

// For what was checked with the rights of another device at the call.
#define SIM__ANY_DEVICE (-1)

// For a call: where [POINTER, POINTER + SIZE) lies, which DEVICE's work is to access. False if it
// begins in known memory and leaves it, is memory no more, or may not be accessed so.
bool sim__memory_locate(int device, const void *pointer, uint64_t size, enum sim__access access,
                        enum sim__place *place);
// For calls: what work of DEVICE is to copy or fill is checked, and the places are set. SIZE 0 is
// fine. cudaErrorInvalidMemcpyDirection, cudaErrorInvalidValue.
cudaError_t sim__copy_locate(int device, struct sim__copy *copy, enum cudaMemcpyKind kind);
cudaError_t sim__fill_locate(int device, struct sim__fill *fill);
// For work of DEVICE that runs: where it can touch device memory. False if that is gone or not
// accessible; *bytes is NULL with numerics off.
bool sim__memory_reach(int device, const void *pointer, uint64_t size, enum sim__access access,
                       void **bytes);
// Where the mapped device memory at ADDRESS can be touched; NULL with numerics off.
static inline void *sim__memory_bytes(uint64_t address) {
    return sim__state.options.numerics == SIM_NUMERICS_ON
               ? (void *)(uintptr_t)(address + sim__state.mirror_offset)
               : NULL;
}
// Mapped device memory, and page-locked host memory, by an address inside; NULL if there is none.
struct sim__segment *sim__segment_at(const void *pointer);
struct sim__host_range *sim__host_range_at(const void *pointer);

// What cudaMemGetInfo says.
void sim__memory_info(const struct sim__device *device, size_t *free_bytes, size_t *total_bytes);

void sim__memory_clear(void);
void sim__host_memory_clear(void);
// cudaDeviceReset: what the device's context holds goes, but memory of pools and cuMemCreate.
void sim__memory_reset(const struct sim__device *device);
void sim__host_memory_reset(const struct sim__device *device);

#endif
