// Which address an allocation gets: a queued one (sim_next_address), else by policy. Ascending:
// each above all before it, with a gap of one page, so that a stray access meets nothing. Reused:
// the lowest free range.
//
// With numerics off addresses are plain numbers: [2 TiB, 128 TiB), the part of the address space
// that programs have, divided among the devices. Queued addresses may lie anywhere.
#include "simulator/memory.h"

#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN_START ((uint64_t)1 << 41)
#define PLAIN_END ((uint64_t)1 << 47)
#define ADDRESS_ALIGNMENT 512
#define ADDRESS_LOWEST 4096
#define ADDRESS_LIMIT ((uint64_t)1 << 56)
#define HOST_PAGE_BYTES 4096

static bool numerics(void) { return sim__state.options.numerics == SIM_NUMERICS_ON; }

void sim__addresses_start(struct sim__device *device) {
    if (!numerics()) {
        const uint64_t each = base_round_down(
            (PLAIN_END - PLAIN_START) / (uint64_t)sim__state.options.device_count, SIM_PAGE_BYTES);
        device->addresses_start = PLAIN_START + each * (uint64_t)device->index;
        device->addresses_end = device->addresses_start + each;
    }
    device->address_next = base_round_up(device->addresses_start, SIM_PAGE_BYTES);
    device->addresses_chosen = false;
    if (sim__state.options.addresses == SIM_ADDRESSES_REUSED)
        sim__space_give(&device->address_free, device->address_next,
                        device->addresses_end - device->address_next);
}

void sim__addresses_stop(struct sim__device *device) {
    sim__space_clear(&device->address_free);
    free(device->queued_addresses);
    device->queued_addresses = NULL;
    device->queued_first = device->queued_count = device->queued_size = 0;
}

// The part of [address, address + size) that the reused policy manages; false if there is none.
static bool managed_part(const struct sim__device *device, uint64_t *address, uint64_t *size) {
    const uint64_t start = base_round_up(device->addresses_start, SIM_PAGE_BYTES);
    uint64_t end = *address + *size;
    if (*address < start)
        *address = start;
    if (end > device->addresses_end)
        end = device->addresses_end;
    if (*address >= end)
        return false;
    *size = end - *address;
    return true;
}

// Nothing live, and with numerics on inside the reserved range.
static bool address_is_free(const struct sim__device *device, uint64_t address, uint64_t size) {
    if (size > ADDRESS_LIMIT - address)
        return false;
    if (numerics() && (address < device->addresses_start || address + size > device->addresses_end))
        return false;
    return sim__range_overlapping(&sim__state.segments, address, size) == NULL &&
           sim__range_overlapping(&sim__state.reservations, address, size) == NULL;
}

static bool queued_take(struct sim__device *device, uint64_t taken, uint64_t *address) {
    if (device->queued_count == 0)
        return false;
    *address = device->queued_addresses[device->queued_first++];
    if (--device->queued_count == 0)
        device->queued_first = 0;
    if (!address_is_free(device, *address, taken))
        return false;
    device->addresses_chosen = true;
    uint64_t part = *address, part_size = taken;
    if (sim__state.options.addresses == SIM_ADDRESSES_REUSED &&
        managed_part(device, &part, &part_size))
        sim__space_take(&device->address_free, part, part_size);
    return true;
}

static _Noreturn void addresses_exhausted(const struct sim__device *device) {
    if (sim__state.options.addresses == SIM_ADDRESSES_REUSED)
        sim__host_limit("the addresses of device %d are used up", device->index);
    sim__host_limit("the addresses of device %d are used up: TIDEMARK_SIM_ADDRESSES=reused uses "
                    "freed ones again",
                    device->index);
}

static uint64_t ascending_take(struct sim__device *device, uint64_t page_bytes) {
    uint64_t address = device->address_next;
    if (device->addresses_chosen) {
        struct sim__range *other;
        while ((other = sim__range_overlapping(&sim__state.segments, address, page_bytes)) != NULL)
            address = base_round_up(other->start + other->size, SIM_PAGE_BYTES) + SIM_PAGE_BYTES;
    }
    if (address > device->addresses_end || page_bytes > device->addresses_end - address)
        addresses_exhausted(device);
    device->address_next = address + page_bytes + SIM_PAGE_BYTES;
    return address;
}

// The lowest free range of at least SIZE is a candidate: an address at the first whole page in it,
// or 0 if PAGE_BYTES do not fit from there. Queued addresses may leave ranges that begin within a
// page.
static uint64_t pages_in_range_of(const struct sim__device *device, uint64_t size,
                                  uint64_t page_bytes) {
    struct sim__range range;
    if (!sim__space_find(&device->address_free, size, &range))
        return 0;
    const uint64_t address = base_round_up(range.start, SIM_PAGE_BYTES);
    return address + page_bytes <= range.start + range.size ? address : 0;
}

static uint64_t reused_take(struct sim__device *device, uint64_t page_bytes) {
    uint64_t address = pages_in_range_of(device, page_bytes, page_bytes);
    if (address == 0)
        address = pages_in_range_of(device, page_bytes + SIM_PAGE_BYTES, page_bytes);
    if (address == 0)
        addresses_exhausted(device);
    sim__space_take(&device->address_free, address, page_bytes);
    return address;
}

uint64_t sim__address_take(struct sim__device *device, uint64_t size, uint64_t page_bytes,
                           uint64_t *taken) {
    uint64_t address;
    *taken = numerics() ? page_bytes : base_round_up(size, ADDRESS_ALIGNMENT);
    if (queued_take(device, *taken, &address))
        return address;
    *taken = page_bytes;
    return sim__address_choose(device, page_bytes);
}

uint64_t sim__address_choose(struct sim__device *device, uint64_t page_bytes) {
    if (sim__state.options.addresses == SIM_ADDRESSES_REUSED)
        return reused_take(device, page_bytes);
    return ascending_take(device, page_bytes);
}

void sim__address_give(struct sim__device *device, uint64_t address, uint64_t taken) {
    if (sim__state.options.addresses == SIM_ADDRESSES_REUSED &&
        managed_part(device, &address, &taken))
        sim__space_give(&device->address_free, address, taken);
}

static enum base_status address_check(const struct sim__device *device, uint64_t address) {
    if (address % ADDRESS_ALIGNMENT != 0 || address < ADDRESS_LOWEST || address >= ADDRESS_LIMIT)
        return base_status_set(BASE_INVALID_VALUE,
                               "address 0x%llx: want a multiple of %d from %d below 2^56",
                               (unsigned long long)address, ADDRESS_ALIGNMENT, ADDRESS_LOWEST);
    if (numerics() && (address % HOST_PAGE_BYTES != 0 || address < device->addresses_start ||
                       address >= device->addresses_end))
        return base_status_set(
            BASE_INVALID_VALUE,
            "address 0x%llx: with numerics on want a multiple of %d in [0x%llx, 0x%llx)",
            (unsigned long long)address, HOST_PAGE_BYTES,
            (unsigned long long)device->addresses_start, (unsigned long long)device->addresses_end);
    struct sim__range *live = sim__range_at(&sim__state.segments, address);
    if (live != NULL)
        return base_status_set(BASE_INVALID_VALUE,
                               "address 0x%llx lies in live memory, [0x%llx, 0x%llx)",
                               (unsigned long long)address, (unsigned long long)live->start,
                               (unsigned long long)(live->start + live->size));
    return BASE_OK;
}

static void queue_grow(struct sim__device *device) {
    const size_t size = device->queued_size == 0 ? 16 : 2 * device->queued_size;
    uint64_t *queue = realloc(device->queued_addresses, size * sizeof *queue);
    if (queue == NULL)
        sim__host_limit("out of host memory for %zu queued addresses", size);
    device->queued_addresses = queue;
    device->queued_size = size;
}

static void queue_append(struct sim__device *device, uint64_t address) {
    if (device->queued_first + device->queued_count == device->queued_size)
        queue_grow(device);
    device->queued_addresses[device->queued_first + device->queued_count++] = address;
}

enum base_status sim_next_address(int device, uint64_t address) {
    enum base_status status;
    base_mutex_lock(&sim__state.lock);
    sim__start_locked();
    if (device < 0 || device >= sim__state.options.device_count) {
        status = base_status_set(BASE_INVALID_VALUE, "device %d: there are %d", device,
                                 sim__state.options.device_count);
    } else {
        status = address_check(&sim__state.devices[device], address);
        if (status == BASE_OK)
            queue_append(&sim__state.devices[device], address);
    }
    base_mutex_unlock(&sim__state.lock);
    return status;
}

void sim_next_address_clear(int device) {
    base_mutex_lock(&sim__state.lock);
    sim__start_locked();
    BASE_CHECK(device >= 0 && device < sim__state.options.device_count);
    sim__state.devices[device].queued_first = sim__state.devices[device].queued_count = 0;
    base_mutex_unlock(&sim__state.lock);
}
