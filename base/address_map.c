// A hash table from addresses to numbers. A cluster of entries is kept free of gaps, so that a search may stop at the first
// empty entry and no tombstones are needed.
#include "base/address_map.h"

#include "base/check.h"

#include <stdlib.h>

#define CAPACITY_MINIMUM ((size_t)64)

// Fibonacci hashing: addresses differ in their middle bits, the product spreads them to the top.
static size_t home_of(const struct base_address_map *map, uint64_t address) {
    const uint64_t hash = address * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash >> 32) & (map->capacity - 1);
}

// The entry of ADDRESS, or the empty one where it would stand.
static struct base_address_entry *entry_of(const struct base_address_map *map, uint64_t address) {
    size_t index = home_of(map, address);
    while (map->entries[index].value != BASE_ADDRESS_UNUSED && map->entries[index].address != address)
        index = (index + 1) & (map->capacity - 1);
    return &map->entries[index];
}

static enum base_status grow(struct base_address_map *map) {
    struct base_address_map larger = {.capacity = map->capacity == 0 ? CAPACITY_MINIMUM : map->capacity * 2,
                                      .count = map->count};
    larger.entries = malloc(larger.capacity * sizeof *larger.entries);
    if (larger.entries == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a table of %zu addresses", larger.capacity);
    for (size_t i = 0; i < larger.capacity; i++) larger.entries[i].value = BASE_ADDRESS_UNUSED;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->entries[i].value != BASE_ADDRESS_UNUSED)
            *entry_of(&larger, map->entries[i].address) = map->entries[i];
    free(map->entries);
    *map = larger;
    return BASE_OK;
}

enum base_status base_address_map_set(struct base_address_map *map, uint64_t address, uint64_t value) {
    BASE_CHECK(value != BASE_ADDRESS_UNUSED);
    // At most three quarters full: probes stay short.
    if (map->count + 1 > map->capacity / 4 * 3) {
        const enum base_status status = grow(map);
        if (status != BASE_OK) return status;
    }
    struct base_address_entry *entry = entry_of(map, address);
    if (entry->value == BASE_ADDRESS_UNUSED) map->count++;
    *entry = (struct base_address_entry){.address = address, .value = value};
    return BASE_OK;
}

bool base_address_map_get(const struct base_address_map *map, uint64_t address, uint64_t *value) {
    if (map->count == 0) return false;
    const struct base_address_entry *entry = entry_of(map, address);
    if (entry->value == BASE_ADDRESS_UNUSED) return false;
    *value = entry->value;
    return true;
}

// Moves later entries of the cluster into the gap at HOLE wherever that brings them no further than their home.
static void close_gap(struct base_address_map *map, size_t hole) {
    const size_t mask = map->capacity - 1;
    for (size_t index = (hole + 1) & mask; map->entries[index].value != BASE_ADDRESS_UNUSED;
         index = (index + 1) & mask) {
        const size_t home = home_of(map, map->entries[index].address);
        if (((index - home) & mask) < ((index - hole) & mask)) continue;
        map->entries[hole] = map->entries[index];
        hole = index;
    }
    map->entries[hole].value = BASE_ADDRESS_UNUSED;
}

bool base_address_map_remove(struct base_address_map *map, uint64_t address, uint64_t *value) {
    if (map->count == 0) return false;
    struct base_address_entry *entry = entry_of(map, address);
    if (entry->value == BASE_ADDRESS_UNUSED) return false;
    *value = entry->value;
    map->count--;
    close_gap(map, (size_t)(entry - map->entries));
    return true;
}

void base_address_map_deinit(struct base_address_map *map) {
    free(map->entries);
    *map = (struct base_address_map){0};
}
