// A hash table from addresses to numbers. A cluster of entries is kept free of gaps, so that a
// search may stop at the first empty entry and no tombstones are needed.
#include "base/address_map.h"

#include "base/check.h"

#include <stdlib.h>

#define CAPACITY_MINIMUM ((size_t)64)
#define CAPACITY_FOURFOLD ((size_t)16384) // below it

// Small ones grow faster: each growth enters all there is anew.
static size_t capacity_after(size_t capacity) {
    if (capacity == 0) return CAPACITY_MINIMUM;
    return capacity < CAPACITY_FOURFOLD ? 4 * capacity : 2 * capacity;
}

enum base_status base__address_map_grow(struct base_address_map *map) {
    struct base_address_map larger = {.capacity = capacity_after(map->capacity),
                                      .count = map->count};
    larger.entries = malloc(larger.capacity * sizeof *larger.entries);
    if (larger.entries == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a table of %zu addresses",
                               larger.capacity);
    for (size_t i = 0; i < larger.capacity; i++)
        larger.entries[i].value = BASE_ADDRESS_UNUSED;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->entries[i].value != BASE_ADDRESS_UNUSED)
            *base__address_map_entry(&larger, map->entries[i].address) = map->entries[i];
    free(map->entries);
    *map = larger;
    return BASE_OK;
}

enum base_status base_address_map_set(struct base_address_map *map, uint64_t address,
                                      uint64_t value) {
    BASE_CHECK(value != BASE_ADDRESS_UNUSED);
    uint64_t *place;
    const enum base_status status = base_address_map_place(map, address, &place);
    if (status == BASE_OK) *place = value;
    return status;
}

bool base_address_map_get(const struct base_address_map *map, uint64_t address, uint64_t *value) {
    if (map->count == 0) return false;
    const struct base_address_entry *entry = base__address_map_entry(map, address);
    if (entry->value == BASE_ADDRESS_UNUSED) return false;
    *value = entry->value;
    return true;
}

// Moves later entries of the cluster into the gap at HOLE wherever that brings them no further than
// their home.
static void close_gap(struct base_address_map *map, size_t hole) {
    const size_t mask = map->capacity - 1;
    for (size_t index = (hole + 1) & mask; map->entries[index].value != BASE_ADDRESS_UNUSED;
         index = (index + 1) & mask) {
        const size_t home = base__address_map_home(map, map->entries[index].address);
        if (((index - home) & mask) < ((index - hole) & mask)) continue;
        map->entries[hole] = map->entries[index];
        hole = index;
    }
    map->entries[hole].value = BASE_ADDRESS_UNUSED;
}

bool base_address_map_remove(struct base_address_map *map, uint64_t address, uint64_t *value) {
    if (map->count == 0) return false;
    struct base_address_entry *entry = base__address_map_entry(map, address);
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
