// Stream-ordered memory: cudaMallocAsync and its kin.
//
//     pool.c        pools as the program names them: creation, attributes, access, trim
//     pool_block.c  chunks of memory that a pool holds, blocks that are handed out and taken back
//
// A pool takes memory from its device in chunks and gives chunks back whole, when a host wait finds
// more reserved than the release threshold allows, or by a trim. Free memory is in one of two
// states: for anybody, or as a stream freed it and the host has not seen that complete: then a
// stream may have it that comes after the free (order.h), and by the pool's reuse attributes
// others.
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_POOL_H
#define TIDEMARK_SIMULATOR_POOL_H

#include "simulator/memory.h"

// Memory that a stream freed, by address; stamps are the frees' numbers in the stream.
struct sim__freed {
    struct sim__stream *stream;
    uint64_t handle; // tells the stream from a later one in its slot
    uint32_t column; // what stands for the stream in order.h
    struct sim__space space;
};

struct sim__pool {
    struct sim__handle_slot slot;
    int device;
    bool is_default;
    bool destroyed; // by the program, while blocks were live
    bool follow_events, opportunistic, internal_dependencies;
    uint64_t release_threshold;
    uint64_t size_max; // 0: no limit but the device's
    uint64_t reserved, reserved_high, used, used_high;
    uint32_t readers, writers;
    uint32_t pending_count; // frees that are enqueued and did not run
    struct sim__chunk *chunks;
    struct sim__chunk *empty; // those without live blocks
    struct sim__space free;   // for anybody
    struct sim__freed *freed; // one for each stream that freed some
    uint32_t freed_count, freed_size;
    struct sim__pool *next; // of the machine's
};

struct sim__chunk {
    struct sim__segment segment;
    struct sim__pool *pool;
    uint64_t live_count;
    uint64_t taken;                      // addresses, for sim__address_give
    struct sim__chunk *next, **previous; // among the pool's
    struct sim__chunk *next_empty, **previous_empty;
};

// What the program holds.
struct sim__block {
    struct sim__range range; // in sim__state.blocks
    uint64_t size;           // as requested
    struct sim__chunk *chunk;
    struct sim__graph_allocation *graph; // graph_memory.h: then CHUNK is NULL; else NULL
};

// --- pool.c ---

extern struct sim__pool *sim__pools; // all of the machine's

void sim__pools_start(void);
void sim__pools_clear(void);
// A pool that the program destroyed goes when nothing is left of it.
void sim__pool_check_end(struct sim__pool *pool);

// --- pool_block.c ---

// SIZE bytes for use by STREAM.
cudaError_t sim__pool_take(struct sim__pool *pool, struct sim__stream *stream, uint64_t size,
                           void **pointer);
// BLOCK becomes free in STREAM's order; without STREAM at once.
void sim__pool_give(struct sim__block *block, struct sim__stream *stream);
// Gives empty chunks back to the device while the pool holds more than KEEP bytes.
void sim__pool_shrink(struct sim__pool *pool, uint64_t keep);
// The block that POINTER lies in; NULL if there is none.
struct sim__block *sim__block_at(const void *pointer);
void sim__chunk_access(struct sim__pool *pool);
void sim__pool_drop(struct sim__pool *pool);

// --- The host saw work complete ---

// What it has seen freed is for anybody (order.c calls this).
void sim__pools_observed(void);
void sim__pools__release(void);
// A host wait ended: pools give back what they hold above their thresholds.
static inline void sim__pools_release(void) {
    if (sim__pools != NULL)
        sim__pools__release();
}

#endif
