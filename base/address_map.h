// A hash table from addresses to numbers: what turns a pointer or a recorded address into an index.
//
//     struct base_address_map map = {0};
//     status = base_address_map_set(&map, address, slot);
//     if (base_address_map_get(&map, address, &slot)) ...
//     base_address_map_deinit(&map);
//
// Open addressing with linear probing; removal closes the gap, so that a history of any length costs no more than what is
// live. Any 64-bit address is a key, 0 included. Not thread-safe: the owner's lock guards it.
#ifndef TIDEMARK_BASE_ADDRESS_MAP_H
#define TIDEMARK_BASE_ADDRESS_MAP_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct base_address_entry {
    uint64_t address;
    uint64_t value; // BASE_ADDRESS_UNUSED: an empty entry
};

// An all-zero map is empty and holds no memory.
struct base_address_map {
    struct base_address_entry *entries;
    size_t capacity; // a power of two, or 0
    size_t count;
};

#define BASE_ADDRESS_UNUSED UINT64_MAX

// Enters or replaces; VALUE is not BASE_ADDRESS_UNUSED. BASE_HOST_MEMORY leaves the map as it was.
enum base_status base_address_map_set(struct base_address_map *map, uint64_t address, uint64_t value) BASE_MUST_USE;
// True, and *value, if ADDRESS is there.
bool base_address_map_get(const struct base_address_map *map, uint64_t address, uint64_t *value);
// The same, and takes it out.
bool base_address_map_remove(struct base_address_map *map, uint64_t address, uint64_t *value);
void base_address_map_deinit(struct base_address_map *map);

#endif
