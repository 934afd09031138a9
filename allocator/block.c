// The stream's stock of block objects: chunks from the allocator's arena. A chunk goes back only
// with all others of its stream, when the stream has no segment any more: keeping count per chunk
// would cost each split and merge.
#include "allocator/block.h"

#include <stdlib.h>

void cca__block_cache_deinit(struct cca__block_cache *cache) {
    free(cache->chunks);
    *cache = (struct cca__block_cache){0};
}

enum base_status cca__block_cache_refill(struct cca__block_cache *cache, struct cca__arena *arena) {
    if (cache->chunk_count == cache->chunk_capacity) {
        const uint32_t capacity = cache->chunk_capacity == 0 ? 8 : 2 * cache->chunk_capacity;
        uint32_t *const chunks = realloc(cache->chunks, capacity * sizeof *chunks);
        if (chunks == NULL)
            return base_status_set(BASE_HOST_MEMORY, "out of host memory for %u chunks of blocks",
                                   capacity);
        cache->chunks = chunks;
        cache->chunk_capacity = capacity;
    }
    uint32_t chunk;
    const enum base_status status = cca__arena_take(arena, &chunk);
    if (status != BASE_OK) return status;
    cache->chunks[cache->chunk_count++] = chunk;
    cache->fresh = chunk * CCA__BLOCK_CHUNK;
    cache->fresh_end = cache->fresh + CCA__BLOCK_CHUNK;
    return BASE_OK;
}

void cca__block_cache_trim(struct cca__block_cache *cache, struct cca__arena *arena) {
    for (uint32_t index = 0; index < cache->chunk_count; ++index)
        cca__arena_give_back(arena, cache->chunks[index]);
    cca__block_cache_deinit(cache);
}
