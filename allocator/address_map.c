// Linear probing; a removal closes the gap, so there are no tombstones and lookups stay short.
#include "allocator/address_map.h"

#include <stdlib.h>

#define CAPACITY_FIRST 64

void cca__address_map_init(struct cca__address_map *map) {
    *map = (struct cca__address_map){0};
    cca__lock_init(&map->lock);
}

void cca__address_map_deinit(struct cca__address_map *map) {
    cca__lock_deinit(&map->lock);
    free(map->entries);
}

// Addresses are multiples of 512, so the product's upper bits decide.
static size_t home_of(size_t capacity, uint64_t address) {
    return (size_t)((address * 0x9e3779b97f4a7c15u) >> 20) & (capacity - 1);
}

// The entry of ADDRESS, or the empty one where it would go.
static struct cca__address_map_entry *slot_of(struct cca__address_map_entry *entries, size_t capacity, uint64_t address) {
    size_t place = home_of(capacity, address);
    while (entries[place].address != 0 && entries[place].address != address) place = (place + 1) & (capacity - 1);
    return &entries[place];
}

static enum base_status reserve_one(struct cca__address_map *map) {
    if (2 * (map->count + 1) <= map->capacity) return BASE_OK;
    const size_t capacity = map->capacity == 0 ? CAPACITY_FIRST : 2 * map->capacity;
    struct cca__address_map_entry *const entries = calloc(capacity, sizeof *entries);
    if (entries == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for a table of %zu addresses", capacity);
    for (size_t place = 0; place < map->capacity; ++place)
        if (map->entries[place].address != 0)
            *slot_of(entries, capacity, map->entries[place].address) = map->entries[place];
    free(map->entries);
    map->entries = entries;
    map->capacity = capacity;
    return BASE_OK;
}

enum base_status cca__address_map_store(struct cca__address_map *map, uint64_t address, uint64_t value) {
    cca__lock_take(&map->lock);
    const enum base_status status = reserve_one(map);
    if (status == BASE_OK) {
        struct cca__address_map_entry *const entry = slot_of(map->entries, map->capacity, address);
        if (entry->address == 0) ++map->count;
        *entry = (struct cca__address_map_entry){address, value};
    }
    cca__lock_release(&map->lock);
    return status;
}

bool cca__address_map_find(struct cca__address_map *map, uint64_t address, uint64_t *value) {
    bool found = false;
    cca__lock_take(&map->lock);
    if (map->capacity > 0 && address != 0) {
        const struct cca__address_map_entry *const entry = slot_of(map->entries, map->capacity, address);
        found = entry->address == address;
        if (found && value != NULL) *value = entry->value;
    }
    cca__lock_release(&map->lock);
    return found;
}

// Empties a place and moves up whatever would otherwise no longer be found across the gap.
static void close_gap(struct cca__address_map *map, size_t gap) {
    const size_t mask = map->capacity - 1;
    for (size_t place = (gap + 1) & mask; map->entries[place].address != 0; place = (place + 1) & mask) {
        const size_t home = home_of(map->capacity, map->entries[place].address);
        if (((place - home) & mask) < ((place - gap) & mask)) continue;
        map->entries[gap] = map->entries[place];
        gap = place;
    }
    map->entries[gap].address = 0;
}

bool cca__address_map_remove(struct cca__address_map *map, uint64_t address, uint64_t *value) {
    bool found = false;
    cca__lock_take(&map->lock);
    if (map->capacity > 0 && address != 0) {
        struct cca__address_map_entry *const entry = slot_of(map->entries, map->capacity, address);
        found = entry->address == address;
        if (found) {
            if (value != NULL) *value = entry->value;
            close_gap(map, (size_t)(entry - map->entries));
            --map->count;
        }
    }
    cca__lock_release(&map->lock);
    return found;
}
