// See address_map.h. Multiplicative hashing: recorded addresses are multiples of 512, whose low bits say nothing.
#include "trace/address_map.h"

#include <stdlib.h>

static size_t home(const struct trace_address_map *map, uint64_t address) {
    uint64_t hash = (address ^ address >> 32) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash ^ hash >> 29) & (map->slot_count - 1);
}

void trace__map_deinit(struct trace_address_map *map) {
    free(map->slots);
    *map = (struct trace_address_map){0};
}

// The slot of ADDRESS, or the empty one where it would go. The map has slots.
static size_t locate(const struct trace_address_map *map, uint64_t address) {
    size_t slot = home(map, address);
    while (map->slots[slot].value != TRACE_MAP_NONE && map->slots[slot].address != address)
        slot = (slot + 1) & (map->slot_count - 1);
    return slot;
}

uint32_t trace__map_find(const struct trace_address_map *map, uint64_t address) {
    return map->slot_count == 0 ? TRACE_MAP_NONE : map->slots[locate(map, address)].value;
}

static enum base_status grow(struct trace_address_map *map) {
    struct trace_address_map grown = {.slot_count = map->slot_count == 0 ? 64 : map->slot_count * 2};
    grown.slots = malloc(grown.slot_count * sizeof *grown.slots);
    if (grown.slots == NULL) return base_status_set(BASE_HOST_MEMORY, "no memory for %zu addresses", grown.slot_count);
    for (size_t i = 0; i < grown.slot_count; i++) grown.slots[i].value = TRACE_MAP_NONE;
    for (size_t i = 0; i < map->slot_count; i++) {
        if (map->slots[i].value != TRACE_MAP_NONE) grown.slots[locate(&grown, map->slots[i].address)] = map->slots[i];
    }
    grown.used_count = map->used_count;
    free(map->slots);
    *map = grown;
    return BASE_OK;
}

enum base_status trace__map_set(struct trace_address_map *map, uint64_t address, uint32_t value) {
    if (map->used_count * 2 >= map->slot_count) {
        enum base_status status = grow(map);
        if (status != BASE_OK) return status;
    }
    const size_t slot = locate(map, address);
    if (map->slots[slot].value == TRACE_MAP_NONE) map->used_count++;
    map->slots[slot] = (struct trace_address_slot){address, value};
    return BASE_OK;
}

void trace__map_remove(struct trace_address_map *map, uint64_t address) {
    if (map->slot_count == 0) return;
    size_t gap = locate(map, address);
    if (map->slots[gap].value == TRACE_MAP_NONE) return;
    map->used_count--;
    // Entries behind the gap move up while that brings them no further from home than they may be.
    for (size_t slot = gap;;) {
        slot = (slot + 1) & (map->slot_count - 1);
        if (map->slots[slot].value == TRACE_MAP_NONE) break;
        const size_t distance = (slot - home(map, map->slots[slot].address)) & (map->slot_count - 1);
        if (distance >= ((slot - gap) & (map->slot_count - 1))) {
            map->slots[gap] = map->slots[slot];
            gap = slot;
        }
    }
    map->slots[gap].value = TRACE_MAP_NONE;
}
