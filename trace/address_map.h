// A hash table from addresses to indices, for walks over events: open addressing, linear probing, deletion by shifting back.
// Inside trace/ only.
#ifndef TIDEMARK_TRACE_ADDRESS_MAP_H
#define TIDEMARK_TRACE_ADDRESS_MAP_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define TRACE_MAP_NONE UINT32_MAX

struct trace_address_slot {
    uint64_t address;
    uint32_t value; // TRACE_MAP_NONE: empty
};

struct trace_address_map {
    struct trace_address_slot *slots;
    size_t slot_count; // a power of two, or 0
    size_t used_count;
};

// An all-zero map is empty.
void trace__map_deinit(struct trace_address_map *map);
uint32_t trace__map_find(const struct trace_address_map *map, uint64_t address);
// Enters or replaces; VALUE is not TRACE_MAP_NONE.
enum base_status trace__map_set(struct trace_address_map *map, uint64_t address, uint32_t value) BASE_MUST_USE;
// Nothing happens if it is not there.
void trace__map_remove(struct trace_address_map *map, uint64_t address);

#endif
