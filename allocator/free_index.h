// The free blocks of one pool, ordered for best fit: by size, then age of the segment, then
// address.
//
// A block's size names its *bin*, a 64th of an octave; a two-level bitmap says which of the 4,096
// bins hold blocks, so the next occupied one is two bit scans away. Inside a bin the order is
// exact: a sorted list of up to 32 blocks, then a treap until the bin is empty again. Both pools
// have the same bins: one a size would be 64 KiB for the small one, too much for a cache.
//
// The block inserted last stays out of the bins, in *front*, until the next one displaces it: a
// program that frees and allocates one size touches no bin at all. A search compares it with the
// best of the bins, so best fit stays exact.
//
// Not thread-safe: guarded by the lock of the pool's stream.
#ifndef TIDEMARK_ALLOCATOR_FREE_INDEX_H
#define TIDEMARK_ALLOCATOR_FREE_INDEX_H

#include "allocator/block.h"

#define CCA__BIN_COUNT 4096
// With random sizes and 10^2 to 10^5 live blocks, 16 cost up to 10 % more; 64 are alike.
#define CCA__BIN_LIST_MAX 32

struct cca__bin {
    _Alignas(16) uint32_t first; // the smallest block; 0: empty
    uint32_t root;               // of the treap; 0: a list
    uint32_t count;
};

struct cca__free_index {
    uint32_t front;
    uint64_t occupied_words; // bit W: occupied[W] is not 0
    uint64_t occupied[CCA__BIN_COUNT / 64];
    struct cca__bin *bins; // CCA__BIN_COUNT of them
};

enum base_status cca__free_index_init(struct cca__free_index *index) BASE_MUST_USE;
void cca__free_index_deinit(struct cca__free_index *index);

void cca__bin_insert(struct cca__free_index *index, struct cca__block *blocks, uint32_t number);
void cca__bin_remove(struct cca__free_index *index, struct cca__block *blocks, uint32_t number);
// The smallest block of at least SIZE bytes in the bins; 0 if there is none.
uint32_t cca__bins_find(const struct cca__free_index *index, const struct cca__block *blocks,
                        uint64_t size);

// The smallest block greater than NUMBER, and the greatest one below it, over everything in the
// index; 0 at the end. NUMBER 0: the smallest, the greatest. For walks off the hot path: front
// goes into the bins first.
uint32_t cca__free_index_next(struct cca__free_index *index, struct cca__block *blocks,
                              uint32_t number);
uint32_t cca__free_index_previous(struct cca__free_index *index, struct cca__block *blocks,
                                  uint32_t number);

static inline bool cca__block_less(const struct cca__block *a, const struct cca__block *b) {
    if (a->size != b->size) return a->size < b->size;
    if (a->registration != b->registration) return a->registration < b->registration;
    return a->address < b->address;
}

// Below 64 KiB one bin a size, above 64 an octave.
static inline uint32_t cca__bin_of(uint64_t size) {
    const uint64_t units = size >> 9;
    const unsigned octave = 57u - (unsigned)__builtin_clzll(units | 64);
    return octave * 64 + (uint32_t)(units >> octave);
}

static inline void cca__free_index_insert(struct cca__free_index *index, struct cca__block *blocks,
                                          uint32_t number) {
    if (index->front != 0) cca__bin_insert(index, blocks, index->front);
    index->front = number;
}

static inline void cca__free_index_remove(struct cca__free_index *index, struct cca__block *blocks,
                                          uint32_t number) {
    if (index->front == number)
        index->front = 0;
    else
        cca__bin_remove(index, blocks, number);
}

// Removes NUMBER and inserts TAIL, which it leaves behind.
static inline void cca__free_index_replace(struct cca__free_index *index, struct cca__block *blocks,
                                           uint32_t number, uint32_t tail) {
    if (index->front != number) {
        cca__bin_remove(index, blocks, number);
        if (index->front != 0) cca__bin_insert(index, blocks, index->front);
    }
    index->front = tail;
}

// Whether the front, of FRONT_SIZE bytes, is certainly the best fit for SIZE. Nothing in the bins
// is a better fit than an exact one, but an older block of the same size.
static inline bool cca__free_index_front_is_best(const struct cca__free_index *index,
                                                 uint64_t front_size, uint64_t size) {
    if (front_size < size) return false;
    if (index->occupied_words == 0) return true;
    if (front_size != size) return false;
    const uint32_t bin = cca__bin_of(size);
    return (index->occupied[bin / 64] >> bin % 64 & 1) == 0;
}

// The best fit for SIZE, which is not 0; 0 if no block is large enough.
static inline uint32_t cca__free_index_find(const struct cca__free_index *index,
                                            const struct cca__block *blocks, uint64_t size) {
    // Without a front: block 0 has no bytes.
    const uint32_t front = index->front;
    if (cca__free_index_front_is_best(index, blocks[front].size, size)) return front;
    const uint32_t best = cca__bins_find(index, blocks, size);
    if (blocks[front].size < size) return best;
    return best != 0 && cca__block_less(&blocks[best], &blocks[front]) ? best : front;
}

#endif
