// A hash table from addresses to numbers: what turns a pointer or a recorded address into an index.
//
//     struct base_address_map map = {0};
//     status = base_address_map_set(&map, address, slot);
//     if (base_address_map_get(&map, address, &slot)) ...
//     base_address_map_deinit(&map);
//
// Open addressing with linear probing; removal closes the gap, so that a history of any length
// costs no more than what is live. Any 64-bit address is a key, 0 included. Not thread-safe: the
// owner's lock guards it.
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
enum base_status base_address_map_set(struct base_address_map *map, uint64_t address,
                                      uint64_t value) BASE_MUST_USE;
// True, and *value, if ADDRESS is there.
bool base_address_map_get(const struct base_address_map *map, uint64_t address, uint64_t *value);
// The same, and takes it out.
bool base_address_map_remove(struct base_address_map *map, uint64_t address, uint64_t *value);
void base_address_map_deinit(struct base_address_map *map);

// Where the search for ADDRESS begins. Fibonacci hashing: addresses differ in their middle bits,
// the product spreads them to the top.
static inline size_t base__address_map_home(const struct base_address_map *map, uint64_t address) {
    const uint64_t hash = address * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash >> 32) & (map->capacity - 1);
}

// The entry of ADDRESS, or the empty one where it would stand.
static inline struct base_address_entry *base__address_map_entry(const struct base_address_map *map,
                                                                 uint64_t address) {
    size_t index = base__address_map_home(map, address);
    while (map->entries[index].value != BASE_ADDRESS_UNUSED &&
           map->entries[index].address != address)
        index = (index + 1) & (map->capacity - 1);
    return &map->entries[index];
}

enum base_status base__address_map_grow(struct base_address_map *map) BASE_MUST_USE;

// *value becomes the place of the value of ADDRESS, which is 0 if it was not there, to be read and
// written until the next change of the map. BASE_HOST_MEMORY leaves the map as it was.
BASE_MUST_USE static inline enum base_status
base_address_map_place(struct base_address_map *map, uint64_t address, uint64_t **value) {
    // At most three quarters full: probes stay short.
    if (map->count + 1 > map->capacity / 4 * 3) {
        const enum base_status status = base__address_map_grow(map);
        if (status != BASE_OK) return status;
    }
    struct base_address_entry *const entry = base__address_map_entry(map, address);
    if (entry->value == BASE_ADDRESS_UNUSED) {
        map->count++;
        *entry = (struct base_address_entry){.address = address};
    }
    *value = &entry->value;
    return BASE_OK;
}

#endif
