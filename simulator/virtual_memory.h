// The driver's virtual memory: addresses that are reserved without memory, memory that is created
// without an address, and mappings of one at the other.
//
//     memory_handle.c   cuMemCreate, cuMemRelease, export and import: struct sim__allocation
//     virtual_memory.c  reservations and mappings
//
// Memory lives while it has references or mappings, or an exported file descriptor is open. All
// functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_VIRTUAL_MEMORY_H
#define TIDEMARK_SIMULATOR_VIRTUAL_MEMORY_H

#include "simulator/memory.h"

#include <cuda.h>

#define SIM__GRANULARITY SIM_PAGE_BYTES

struct sim__allocation {
    struct sim__handle_slot slot;
    int device;
    uint32_t reference_count; // handles: the program knows it while there are any
    uint32_t mapping_count;
    uint32_t export_count; // file descriptors
    bool was_mapped;       // so it may have been written
    CUmemAllocationProp properties;
    struct sim__backing backing;
};

struct sim__reservation {
    struct sim__range range; // in sim__state.reservations
};

struct sim__mapping {
    struct sim__segment segment;
    struct sim__allocation *allocation;
};

// --- memory_handle.c ---

// The memory that HANDLE refers to; NULL if it is none, or all references were given back.
struct sim__allocation *sim__allocation_find(CUmemGenericAllocationHandle handle);
// A reference, mapping or file descriptor less: frees the memory with the last.
void sim__allocation_dropped(struct sim__allocation *allocation);
// Looks which exported file descriptors are still open.
void sim__exports_check(void);
void sim__allocations_clear(void);

// --- virtual_memory.c ---

void sim__virtual_memory_start(void);
void sim__virtual_memory_clear(void);

#endif
