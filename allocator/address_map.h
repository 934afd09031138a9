// A hash table from addresses to numbers, for the few places where pointers have no regular layout. Thread-safe.
#ifndef TIDEMARK_ALLOCATOR_ADDRESS_MAP_H
#define TIDEMARK_ALLOCATOR_ADDRESS_MAP_H

#include "allocator/lock.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cca__address_map {
    struct cca__lock lock;  // a leaf
    _Atomic size_t count;   // may be read without the lock to skip an empty map
    struct cca__address_map_entry {
        uint64_t address; // 0: empty
        uint64_t value;
    } *entries;
    size_t capacity; // a power of two, or 0
};

void cca__address_map_init(struct cca__address_map *map);
void cca__address_map_deinit(struct cca__address_map *map);

// Adds or replaces. ADDRESS is not 0.
enum base_status cca__address_map_store(struct cca__address_map *map, uint64_t address, uint64_t value) BASE_MUST_USE;
// True and *value if ADDRESS is there. VALUE may be NULL.
bool cca__address_map_find(struct cca__address_map *map, uint64_t address, uint64_t *value);
// The same, and takes it out.
bool cca__address_map_remove(struct cca__address_map *map, uint64_t address, uint64_t *value);

#endif
