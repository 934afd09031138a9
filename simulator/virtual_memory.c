// Reserved addresses and what is mapped there. A mapping stands in the index of all device memory;
// it is for nobody's access until cuMemSetAccess, and which device may do what is kept by bits.
// With numerics on the memory is mapped in the host while some device may access it, for writing if
// some device may write: the engine asks for rights before it touches anything.
//
// No call here waits for work or is ordered with it. Work that finds its memory unmapped faults, as
// it does on a GPU; checked mode says at the unmapping which work that is.
#include "simulator/virtual_memory.h"

#include "base/size.h"
#include "simulator/call.h"
#include "simulator/checked.h"
#include "simulator/driver.h"
#include "simulator/plant.h"
#include "simulator/race.h"

#include <stdlib.h>
#include <string.h>

// Addresses that no reservation has; and where ascending ones go on.
static struct sim__space free_addresses;
static uint64_t next_address;

// sim_next_reservation, first in first out.
#define QUEUE_MAX 64
static uint64_t queue[QUEUE_MAX];
static size_t queue_count;

void sim__virtual_memory_start(void) {
    next_address = sim__state.virtual_start;
    queue_count = 0;
    sim__space_give(&free_addresses, sim__state.virtual_start,
                    sim__state.virtual_end - sim__state.virtual_start);
}

// --- Reservations ---

// Something else that lies there: a reservation, or memory at an address that was queued.
static const struct sim__range *occupant(uint64_t address, uint64_t size) {
    const struct sim__range *other =
        sim__range_overlapping(&sim__state.reservations, address, size);
    return other != NULL ? other : sim__range_overlapping(&sim__state.segments, address, size);
}

static bool in_window(uint64_t address, uint64_t size) {
    return address >= sim__state.virtual_start && address <= sim__state.virtual_end &&
           size <= sim__state.virtual_end - address;
}

static bool is_free(uint64_t address, uint64_t size) {
    return in_window(address, size) && occupant(address, size) == NULL;
}

// The part of a reservation that is in the window; queued ones may lie outside of it.
static bool part_in_window(struct sim__range *range) {
    const uint64_t end = range->start + range->size;
    const uint64_t start =
        range->start > sim__state.virtual_start ? range->start : sim__state.virtual_start;
    const uint64_t limit = end < sim__state.virtual_end ? end : sim__state.virtual_end;
    if (start >= limit)
        return false;
    *range = (struct sim__range){start, limit - start};
    return true;
}

// The first queued address that is free now, those before it are used up; 0 if there is none.
static uint64_t address_queued(uint64_t size, uint64_t alignment) {
    uint64_t address = 0;
    size_t used = 0;
    while (used < queue_count && address == 0) {
        const uint64_t wanted = queue[used++];
        const bool is_allowed =
            sim__state.options.numerics == SIM_NUMERICS_OFF || in_window(wanted, size);
        if (is_allowed && wanted % alignment == 0 && occupant(wanted, size) == NULL)
            address = wanted;
    }
    queue_count -= used;
    memmove(queue, queue + used, queue_count * sizeof *queue);
    return address;
}

// Above all before it, with a gap; 0 if that ends beyond the last address.
static uint64_t address_above(uint64_t size, uint64_t alignment) {
    uint64_t address = base_round_up(next_address, alignment);
    const struct sim__range *other;
    while (address < sim__state.virtual_end && size <= sim__state.virtual_end - address &&
           (other = occupant(address, size)) != NULL)
        address = base_round_up(other->start + other->size + SIM__GRANULARITY, alignment);
    if (address >= sim__state.virtual_end || size > sim__state.virtual_end - address)
        return 0;
    next_address = address + size + SIM__GRANULARITY;
    return address;
}

// Low; 0 if there is no place.
static uint64_t address_low(uint64_t size, uint64_t alignment) {
    struct sim__range range;
    if (!sim__space_find(&free_addresses, size + alignment - SIM__GRANULARITY, &range))
        return 0;
    return base_round_up(range.start, alignment);
}

// 0 if there is no place.
static uint64_t address_for(uint64_t size, uint64_t alignment, uint64_t hint) {
    if (hint != 0 && hint % alignment == 0 && is_free(hint, size))
        return hint;
    uint64_t address = hint == 0 ? address_queued(size, alignment) : 0;
    if (address == 0 && sim__state.options.addresses == SIM_ADDRESSES_ASCENDING)
        address = address_above(size, alignment);
    if (address == 0)
        address = address_low(size, alignment);
    return address;
}

static CUresult reserve_locked(CUdeviceptr *pointer, uint64_t size, uint64_t alignment,
                               CUdeviceptr hint, unsigned long long flags) {
    if (pointer == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (size == 0 || size % SIM__GRANULARITY != 0 || (alignment & (alignment - 1)) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY; // as hardware answers, and not the documents
    if (alignment < SIM__GRANULARITY)
        alignment = SIM__GRANULARITY;
    if (alignment > sim__state.options.address_bytes || !sim__address_budget_take(size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    const uint64_t address = address_for(size, alignment, hint);
    if (address == 0) {
        sim__address_budget_give(size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct sim__reservation *reservation = malloc(sizeof *reservation);
    if (reservation == NULL)
        sim__host_limit("out of host memory for reservations of addresses");
    reservation->range = (struct sim__range){address, size};
    struct sim__range part = reservation->range;
    if (part_in_window(&part))
        sim__space_take(&free_addresses, part.start, part.size);
    sim__range_insert(&sim__state.reservations, &reservation->range);
    *pointer = address;
    return CUDA_SUCCESS;
}

static void reservation_free(struct sim__reservation *reservation) {
    sim__range_remove(&sim__state.reservations, &reservation->range);
    struct sim__range part = reservation->range;
    if (part_in_window(&part))
        sim__space_give(&free_addresses, part.start, part.size);
    sim__address_budget_give(reservation->range.size);
    free(reservation);
}

static CUresult address_free_locked(CUdeviceptr pointer, uint64_t size) {
    struct sim__range *range = sim__range_at(&sim__state.reservations, pointer);
    if (range == NULL || range->start != pointer || range->size != size) {
        if (sim__checked())
            sim__misuse("[0x%llx, 0x%llx) is no reservation", pointer, pointer + size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    const struct sim__range *mapped = sim__range_overlapping(&sim__state.segments, pointer, size);
    if (mapped != NULL) {
        if (sim__checked())
            sim__misuse("memory is still mapped at 0x%llx", (unsigned long long)mapped->start);
        return CUDA_ERROR_INVALID_VALUE;
    }
    reservation_free((struct sim__reservation *)range);
    return CUDA_SUCCESS;
}

enum base_status sim_next_reservation(uint64_t address) {
    enum base_status status = BASE_OK;
    base_mutex_lock(&sim__state.lock);
    sim__start_locked();
    if (address % SIM__GRANULARITY != 0 || address == 0 || address >= (uint64_t)1 << 56)
        status = base_status_set(BASE_INVALID_VALUE,
                                 "address 0x%llx: want a multiple of 2 MiB below 2^56",
                                 (unsigned long long)address);
    else if (sim__state.options.numerics == SIM_NUMERICS_ON && !in_window(address, 0))
        status = base_status_set(BASE_INVALID_VALUE,
                                 "address 0x%llx: with numerics on want one in [0x%llx, 0x%llx)",
                                 (unsigned long long)address,
                                 (unsigned long long)sim__state.virtual_start,
                                 (unsigned long long)sim__state.virtual_end);
    else if (queue_count == QUEUE_MAX)
        status = base_status_set(BASE_LIMIT, "more than %d reservations are queued", QUEUE_MAX);
    else
        queue[queue_count++] = address;
    base_mutex_unlock(&sim__state.lock);
    return status;
}

void sim_next_reservation_clear(void) {
    base_mutex_lock(&sim__state.lock);
    queue_count = 0;
    base_mutex_unlock(&sim__state.lock);
}

// --- Mappings ---

// False, and a sentence in checked mode, unless [POINTER, POINTER + SIZE) is granules of one
// reservation.
static bool in_reservation(CUdeviceptr pointer, uint64_t size) {
    const struct sim__range *range = sim__range_at(&sim__state.reservations, pointer);
    if (size != 0 && pointer % SIM__GRANULARITY == 0 && size % SIM__GRANULARITY == 0 &&
        range != NULL && size <= range->size - (pointer - range->start))
        return true;
    if (sim__checked())
        sim__misuse("[0x%llx, 0x%llx) is not granules of 2 MiB in one reservation", pointer,
                    pointer + size);
    return false;
}

static CUresult map_locked(CUdeviceptr pointer, uint64_t size, uint64_t offset,
                           CUmemGenericAllocationHandle handle, unsigned long long flags) {
    if (offset != 0 || flags != 0 || !in_reservation(pointer, size))
        return CUDA_ERROR_INVALID_VALUE;
    struct sim__allocation *allocation = sim__allocation_find(handle);
    if (allocation == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sim__range *other = sim__range_overlapping(&sim__state.segments, pointer, size);
    if (other != NULL || size > allocation->backing.size) {
        if (sim__checked() && other != NULL)
            sim__misuse("memory is mapped at 0x%llx already", (unsigned long long)other->start);
        else if (sim__checked())
            sim__misuse("%llu bytes of memory of %llu", (unsigned long long)size,
                        (unsigned long long)allocation->backing.size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim__mapping *mapping = malloc(sizeof *mapping);
    if (mapping == NULL)
        sim__host_limit("out of host memory for mappings");
    *mapping = (struct sim__mapping){
        .segment = {.range = {pointer, size},
                    .size = size,
                    .device = allocation->device,
                    .kind = SIM__SEGMENT_MAPPING},
        .allocation = allocation,
    };
    ++allocation->mapping_count;
    sim__range_insert(&sim__state.segments, &mapping->segment.range);
    if (sim__race_is_on())
        sim__race_alloc(pointer, size, allocation->was_mapped, NULL);
    allocation->was_mapped = true;
    if (sim__planted(SIM__PLANT_MAP_ACCESS)) {
        mapping->segment.readers = mapping->segment.writers = (uint32_t)1 << allocation->device;
        sim__physical_map(&sim__state.devices[allocation->device], pointer, &allocation->backing,
                          size, true);
    }
    return CUDA_SUCCESS;
}

static void mapping_end(struct sim__mapping *mapping) {
    const struct sim__range range = mapping->segment.range;
    struct sim__allocation *allocation = mapping->allocation;
    sim__range_remove(&sim__state.segments, &mapping->segment.range);
    if (mapping->segment.readers != 0)
        sim__physical_unmap(range.start, range.size);
    free(mapping);
    --allocation->mapping_count;
    sim__allocation_dropped(allocation);
}

static struct sim__mapping *mapping_at(uint64_t address) {
    struct sim__segment *segment = sim__segment_at((const void *)(uintptr_t)address);
    return segment != NULL && segment->kind == SIM__SEGMENT_MAPPING ? (struct sim__mapping *)segment
                                                                    : NULL;
}

static uint64_t mapping_end_address(const struct sim__mapping *mapping) {
    return mapping->segment.range.start + mapping->segment.range.size;
}

// Whether the range is whole mappings without holes.
static bool is_mapped_whole(CUdeviceptr pointer, uint64_t size) {
    if (!in_reservation(pointer, size))
        return false;
    for (uint64_t at = pointer; at < pointer + size;) {
        const struct sim__mapping *mapping = mapping_at(at);
        if (mapping == NULL) {
            if (sim__checked())
                sim__misuse("nothing is mapped at 0x%llx", (unsigned long long)at);
            return false;
        }
        const struct sim__range *range = &mapping->segment.range;
        at = mapping_end_address(mapping);
        if ((range->start < pointer || at > pointer + size) &&
            !sim__planted(SIM__PLANT_MAP_PART)) {
            if (sim__checked())
                sim__misuse("[0x%llx, 0x%llx) is part of the mapping [0x%llx, 0x%llx)", pointer,
                            pointer + size, (unsigned long long)range->start,
                            (unsigned long long)at);
            return false;
        }
    }
    return true;
}

static CUresult unmap_locked(CUdeviceptr pointer, uint64_t size) {
    if (!is_mapped_whole(pointer, size))
        return CUDA_ERROR_INVALID_VALUE;
    if (sim__checked()) {
        sim__checked_unused(pointer, size);
        sim__checked_gone(pointer, size, "unmapped");
    }
    if (sim__race_is_on())
        sim__race_unmap(pointer, size);
    for (uint64_t at = pointer; at < pointer + size;) {
        struct sim__mapping *mapping = mapping_at(at);
        at = mapping_end_address(mapping);
        mapping_end(mapping);
    }
    return CUDA_SUCCESS;
}

// --- Access ---

static bool is_device(const CUmemLocation *location) {
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id >= 0 &&
           location->id < sim__state.options.device_count;
}

static bool descriptors_are_valid(const CUmemAccessDesc *descriptors, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (!is_device(&descriptors[i].location) ||
            (descriptors[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
             descriptors[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
             descriptors[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
            return false;
    return true;
}

static void rights_set(struct sim__segment *segment, const CUmemAccessDesc *descriptor) {
    const uint32_t bit = (uint32_t)1 << descriptor->location.id;
    segment->readers &= ~bit;
    segment->writers &= ~bit;
    if (descriptor->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
        segment->readers |= bit;
    if (descriptor->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        segment->writers |= bit;
}

static void access_set(struct sim__mapping *mapping, const CUmemAccessDesc *descriptors,
                       size_t count) {
    struct sim__segment *segment = &mapping->segment;
    const bool was_readable = segment->readers != 0, was_writable = segment->writers != 0;
    for (size_t i = 0; i < count; ++i)
        rights_set(segment, &descriptors[i]);
    const bool readable = segment->readers != 0, writable = segment->writers != 0;
    if (readable && (!was_readable || writable != was_writable))
        sim__physical_map(&sim__state.devices[segment->device], segment->range.start,
                          &mapping->allocation->backing, segment->range.size, writable);
    else if (!readable && was_readable)
        sim__physical_unmap(segment->range.start, segment->range.size);
}

static CUresult set_access_locked(CUdeviceptr pointer, uint64_t size,
                                  const CUmemAccessDesc *descriptors, size_t count) {
    if (descriptors == NULL || count == 0 || !descriptors_are_valid(descriptors, count) ||
        !is_mapped_whole(pointer, size))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = pointer; at < pointer + size;) {
        struct sim__mapping *mapping = mapping_at(at);
        access_set(mapping, descriptors, count);
        at = mapping_end_address(mapping);
    }
    return CUDA_SUCCESS;
}

static CUresult get_access_locked(unsigned long long *flags, const CUmemLocation *location,
                                  CUdeviceptr pointer) {
    const struct sim__mapping *mapping = mapping_at(pointer);
    if (flags == NULL || location == NULL || !is_device(location) || mapping == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const uint32_t bit = (uint32_t)1 << location->id;
    *flags = (mapping->segment.writers & bit) != 0   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : (mapping->segment.readers & bit) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                                     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

void sim__virtual_memory_clear(void) {
    struct sim__range *reservation, *mapped;
    while ((reservation = sim__range_last(&sim__state.reservations)) != NULL) {
        while ((mapped = sim__range_overlapping(&sim__state.segments, reservation->start,
                                                reservation->size)) != NULL)
            mapping_end((struct sim__mapping *)mapped);
        reservation_free((struct sim__reservation *)reservation);
    }
    sim__range_index_deinit(&sim__state.reservations);
    sim__allocations_clear();
    sim__space_clear(&free_addresses);
}

// --- The calls ---

CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t size, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags) {
    CUresult error = sim__driver_begin(SIM_CALL_ADDRESS_RESERVE, true);
    if (error == CUDA_SUCCESS)
        error = reserve_locked(pointer, size, alignment, hint, flags);
    return sim__driver_end(SIM_CALL_ADDRESS_RESERVE, error);
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t size) {
    CUresult error = sim__driver_begin(SIM_CALL_ADDRESS_FREE, true);
    if (error == CUDA_SUCCESS)
        error = address_free_locked(pointer, size);
    return sim__driver_end(SIM_CALL_ADDRESS_FREE, error);
}

CUresult cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
    CUresult error = sim__driver_begin(SIM_CALL_MEM_MAP, true);
    if (error == CUDA_SUCCESS)
        error = map_locked(pointer, size, offset, handle, flags);
    return sim__driver_end(SIM_CALL_MEM_MAP, error);
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t size) {
    CUresult error = sim__driver_begin(SIM_CALL_MEM_UNMAP, true);
    if (error == CUDA_SUCCESS)
        error = unmap_locked(pointer, size);
    return sim__driver_end(SIM_CALL_MEM_UNMAP, error);
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *descriptors,
                        size_t count) {
    CUresult error = sim__driver_begin(SIM_CALL_MEM_SET_ACCESS, true);
    if (error == CUDA_SUCCESS)
        error = set_access_locked(pointer, size, descriptors, count);
    return sim__driver_end(SIM_CALL_MEM_SET_ACCESS, error);
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                        CUdeviceptr pointer) {
    CUresult error = sim__driver_begin(SIM__CALL_OTHER, true);
    if (error == CUDA_SUCCESS)
        error = get_access_locked(flags, location, pointer);
    return sim__driver_end(SIM__CALL_OTHER, error);
}
