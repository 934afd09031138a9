// The block: a piece of a segment that is handed out or free as a whole. 64 bytes, a cache line,
// apart from device memory.
//
// A block object never changes its address: a split leaves the front to the object and makes a
// new one for the tail, a merge keeps the object of the lower address. So the first block of a
// segment lives as long as the segment, and a page-table entry once written stays right as long
// as its block lives.
//
// What the reference keeps in a block and this one does not: its context (history keeps those
// beside, by block number), and whether it is mapped (a state here).
#ifndef TIDEMARK_ALLOCATOR_BLOCK_H
#define TIDEMARK_ALLOCATOR_BLOCK_H

#include "allocator/arena.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum cca__block_state {
    CCA__BLOCK_UNUSED,    // no block
    CCA__BLOCK_FREE,      // in its pool's free index
    CCA__BLOCK_ALLOCATED, // the program has it
    CCA__BLOCK_PENDING,   // freed, waits for events; does not merge
    CCA__BLOCK_UNMAPPED,  // addresses of an expandable segment, no memory; in its pool's unmapped
    CCA__BLOCK_CLAIMED,   // of an expandable segment that is being changed; in no index
    CCA__BLOCK_GONE,      // free, but its memory went back to the device (torch_faults.h)
};

enum cca__block_flag {
    CCA__BLOCK_IN_TABLE = 1,   // the page table names this object
    CCA__BLOCK_EXPANDABLE = 2, // it is part of an expandable segment
    CCA__BLOCK_IN_GONE_SEGMENT = 4,
};

// All fields are guarded by the lock of the block's stream; pool is also read without it.
struct cca__block {
    uint64_t address;
    uint64_t size;
    // bytes asked for at the last hand-out; kept when freed, split off or merged
    uint64_t requested;
    union {
        struct {
            uint32_t registration; // rises with each new segment; 0: ties go by address alone
            uint32_t gc_base;      // the pool's request counter when the block was last freed
        };
        uint64_t age; // both, to be copied at once
    };
    uint32_t previous, next; // neighbours in the segment by address; 0: none
    uint32_t link[3];        // in the free index; or, unused, link[0] is the next unused one
    uint32_t segment;        // number of the segment record
    union {
        struct {
            _Atomic uint16_t pool; // number of the pool
            uint8_t state;
            uint8_t flags;
        };
        _Atomic uint32_t kind; // these three, to be set at once
    };
    uint32_t uses; // record of the streams that use it (record_stream); 0: none
};
_Static_assert(sizeof(struct cca__block) == 64, "a block fills one cache line");

#define CCA__BLOCK_CHUNK      256 // blocks are taken from the arena in chunks of 16 KiB
#define CCA__BLOCK_CHUNKS_MAX ((uint32_t)1 << 18) // 2^26 blocks

static inline uint16_t cca__block_pool(const struct cca__block *block) {
    return atomic_load_explicit(&block->pool, memory_order_relaxed);
}

// What kind is for a block of that pool in that state, without flags.
static inline uint32_t cca__block_kind(uint16_t pool, enum cca__block_state state) {
    struct cca__block block = {.flags = 0};
    atomic_init(&block.pool, pool);
    block.state = (uint8_t)state;
    return atomic_load_explicit(&block.kind, memory_order_relaxed);
}

static inline bool cca__block_is_expandable(const struct cca__block *block) {
    return (block->flags & CCA__BLOCK_EXPANDABLE) != 0;
}

// A block is alone if it is its whole segment.
static inline bool cca__block_is_alone(const struct cca__block *block) {
    return (block->previous | block->next) == 0;
}

// Whether a free block can go with its segment as cudaMalloc gave it.
static inline bool cca__block_is_whole_segment(const struct cca__block *block) {
    return cca__block_is_alone(block) && !cca__block_is_expandable(block);
}

// Unused blocks of one stream. Guarded by the stream's lock.
struct cca__block_cache {
    uint32_t first_unused;     // list through link[0]
    uint32_t fresh, fresh_end; // never used ones of the last chunk
    uint32_t *chunks;          // all chunks of the stream
    uint32_t chunk_count, chunk_capacity;
};
void cca__block_cache_deinit(struct cca__block_cache *cache);
enum base_status cca__block_cache_refill(struct cca__block_cache *cache,
                                         struct cca__arena *arena) BASE_MUST_USE;

// Sets *number to an unused block: uses is 0, the other fields are undefined.
static inline enum base_status cca__block_take(struct cca__block_cache *cache,
                                               struct cca__arena *arena, uint32_t *number) {
    struct cca__block *const blocks = (struct cca__block *)(void *)arena->base;
    if (cache->first_unused != 0) {
        *number = cache->first_unused;
        cache->first_unused = blocks[*number].link[0];
    } else {
        if (__builtin_expect(cache->fresh == cache->fresh_end, 0)) {
            const enum base_status status = cca__block_cache_refill(cache, arena);
            if (status != BASE_OK) return status;
        }
        *number = cache->fresh++;
    }
    return BASE_OK;
}

static inline void cca__block_keep(struct cca__block_cache *cache, struct cca__block *block,
                                   uint32_t number) {
    block->state = CCA__BLOCK_UNUSED;
    block->flags = 0;
    block->link[0] = cache->first_unused;
    cache->first_unused = number;
}

static inline void cca__block_give_back(struct cca__block_cache *cache, struct cca__arena *arena,
                                        uint32_t number) {
    cca__block_keep(cache, (struct cca__block *)(void *)arena->base + number, number);
}

// Returns the memory of a stream that has no segment, and so no block, left.
void cca__block_cache_trim(struct cca__block_cache *cache, struct cca__arena *arena);

#endif
