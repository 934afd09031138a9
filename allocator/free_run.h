// Runs: the free blocks of a bin that has too many for a list, in sorted arrays.
//
// An entry carries its block's place in the order (free_index.h), so a search compares neighbours
// in a cache line and touches no other block: with many blocks each of them is a cache miss. The
// runs of a bin hang in a treap by their first entries; a run that is full is halved, and one that
// becomes short joins a neighbour.
//
// A run is memory of its own, which a free cannot fail for want of: without it the bin stays the
// list it was, or becomes one again, as right and slower.
//
// Not thread-safe: guarded by the lock of the pool's stream.
#ifndef TIDEMARK_ALLOCATOR_FREE_RUN_H
#define TIDEMARK_ALLOCATOR_FREE_RUN_H

#include "allocator/block.h"

#define CCA__RUN_ENTRIES 40
#define CCA__RUNS_MAX ((uint32_t)1 << 21)

// Sizes of blocks in runs are below this, so that size and registration fit into one number.
#define CCA__RUN_SIZE_LIMIT ((uint64_t)1 << 41)

struct cca__run_entry {
    uint64_t rank, address; // rank: 512ths of the size, then the registration
    uint32_t number;
};

// Its head is made as a block is, so that runs hang in a treap as blocks do. It has the links and
// of the lowest entry the rank, as its size, and the address. The entries descend, so that the
// lowest, which is taken most, comes and goes without moving others.
struct cca__run {
    struct cca__block head;
    struct cca__run_entry entries[CCA__RUN_ENTRIES];
};
_Static_assert(sizeof(struct cca__run) == 1024, "a run is found by a shift");

// The runs of one bin. Zeros: none.
struct cca__runs {
    uint32_t root;   // of the treap
    uint32_t lowest; // the first one
};

enum base_status cca__runs_init(struct cca__arena *arena) BASE_MUST_USE;

// NUMBER is in none of the runs, or in one. False, and nothing changed: no memory.
bool cca__runs_insert(struct cca__arena *arena, struct cca__runs *runs,
                      const struct cca__block *blocks, uint32_t number);
void cca__runs_remove(struct cca__arena *arena, struct cca__runs *runs,
                      const struct cca__block *blocks, uint32_t number);

// The first and the last block; the one after NUMBER and before it; the smallest one of at least
// SIZE bytes. 0: there is none.
uint32_t cca__runs_first(const struct cca__arena *arena, const struct cca__runs *runs);
uint32_t cca__runs_last(const struct cca__arena *arena, const struct cca__runs *runs);
uint32_t cca__runs_next(const struct cca__arena *arena, const struct cca__runs *runs,
                        const struct cca__block *blocks, uint32_t number);
uint32_t cca__runs_previous(const struct cca__arena *arena, const struct cca__runs *runs,
                            const struct cca__block *blocks, uint32_t number);
uint32_t cca__runs_find(const struct cca__arena *arena, const struct cca__runs *runs,
                        uint64_t size);

// Removes all blocks that TAKES is true for; each is handed to TAKEN, in order. Returns how many.
uint32_t cca__runs_take(struct cca__arena *arena, struct cca__runs *runs,
                        const struct cca__block *blocks,
                        bool (*takes)(const struct cca__block *block),
                        void (*taken)(void *context, uint32_t number), void *context);

// Aborts if the runs are not as they should be, or have not COUNT entries. Returns how many runs
// they are.
uint32_t cca__runs_check(const struct cca__arena *arena, const struct cca__runs *runs,
                         const struct cca__block *blocks, uint32_t count);

#endif
