// The free blocks of one pool, ordered for best fit: by size, then age of the segment, then
// address.
//
// A block's size names its *bin*, a 64th of an octave; a two-level bitmap says which of the 4,096
// bins hold blocks, so the next occupied one is two bit scans away. Inside a bin the order is
// exact: a sorted list of up to 64 blocks, then runs (free_run.h) until few are left. Both pools
// have the same bins: one a size would be 64 KiB for the small one, too much for a cache.
//
// The block inserted last stays out of the bins, in *front*, until the next one displaces it: a
// program that frees and allocates one size touches no bin at all. A search compares it with the
// best of the bins, so best fit stays exact.
//
// Not thread-safe: guarded by the lock of the pool's stream.
#ifndef TIDEMARK_ALLOCATOR_FREE_INDEX_H
#define TIDEMARK_ALLOCATOR_FREE_INDEX_H

#include "allocator/free_run.h"

#include <string.h>

#define CCA__BIN_COUNT 4096
// 16 cost random sizes with 10^2 to 10^5 live blocks up to 10 % more; of 32, the pattern `mixed` has
// one bin with a few more, and 4 % more instructions.
#define CCA__BIN_LIST_MAX   64
#define CCA__BIN_LIST_AGAIN 32 // so few blocks are no longer worth runs

struct cca__bin {
    _Alignas(16) uint32_t first; // the smallest block; 0: empty
    uint32_t count;
    struct cca__runs runs; // root 0: a list
};

struct cca__free_index {
    uint32_t front;
    uint64_t occupied_words; // bit W: occupied[W] is not 0
    struct cca__bin *bins;   // CCA__BIN_COUNT of them
    uint64_t occupied[CCA__BIN_COUNT / 64];
    struct cca__arena *arena; // of runs, shared by all pools
};

enum base_status cca__free_index_init(struct cca__free_index *index,
                                      struct cca__arena *arena) BASE_MUST_USE;
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

// Takes out, in order, all blocks that TAKES is true for. The first of them; they are chained by
// link[0], up to 0.
uint32_t cca__free_index_take(struct cca__free_index *index, struct cca__block *blocks,
                              bool (*takes)(const struct cca__block *block));

// Aborts if a bin is not as it should be. Returns how many runs there are.
uint32_t cca__free_index_check(const struct cca__free_index *index,
                               const struct cca__block *blocks);

static inline bool cca__block_less(const struct cca__block *a, const struct cca__block *b) {
    if (a->size != b->size) return a->size < b->size;
    if (a->registration != b->registration) return a->registration < b->registration;
    return a->address < b->address;
}

//------------------------------------------------------------------------------------------------
// Bins.

enum { CCA__LIST_PREVIOUS = 0, CCA__LIST_NEXT = 1 }; // links of a list

// The exponent of the size and the next six of its bits: below 64 KiB one bin a size, above 64 an
// octave. By way of a floating-point number, since Zen processors are slow to find the first bit;
// exact, since sizes are multiples of 512.
static inline uint32_t cca__bin_of(uint64_t size) {
    const double number = (double)(int64_t)size;
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (uint32_t)(bits >> (52 - 6)) - ((1023 + 9) << 6);
}

// The first occupied bin beyond a word of the bitmap; CCA__BIN_COUNT if there is none.
static inline uint32_t cca__bins_next_word(const struct cca__free_index *index, uint32_t word) {
    const uint64_t words = index->occupied_words >> word >> 1;
    if (words == 0) return CCA__BIN_COUNT;
    word += 1 + (uint32_t)__builtin_ctzll(words);
    return word * 64 + (uint32_t)__builtin_ctzll(index->occupied[word]);
}

// The first occupied bin from BIN on; CCA__BIN_COUNT if there is none.
static inline uint32_t cca__bins_next(const struct cca__free_index *index, uint32_t bin) {
    const uint64_t bits = index->occupied[bin / 64] >> bin % 64;
    return bits != 0 ? bin + (uint32_t)__builtin_ctzll(bits) : cca__bins_next_word(index, bin / 64);
}

static inline void cca__bin_set_occupied(struct cca__free_index *index, uint32_t bin) {
    index->occupied[bin / 64] |= (uint64_t)1 << bin % 64;
    index->occupied_words |= (uint64_t)1 << bin / 64;
}

static inline void cca__bin_clear_occupied(struct cca__free_index *index, uint32_t bin) {
    index->occupied[bin / 64] &= ~((uint64_t)1 << bin % 64);
    if (index->occupied[bin / 64] == 0) index->occupied_words &= ~((uint64_t)1 << bin / 64);
}

// Whether a bin is a list, and stays one with one block more.
static inline bool cca__bin_is_short(const struct cca__bin *bin) {
    return __builtin_expect(bin->runs.root == 0 && bin->count < CCA__BIN_LIST_MAX, 1);
}

// Inserts into a bin that is a list.
static inline void cca__bin_insert_listed(struct cca__free_index *index, struct cca__block *blocks,
                                         uint32_t number, uint32_t place) {
    struct cca__bin *const bin = &index->bins[place];
    struct cca__block *const block = &blocks[number];
    uint32_t before = 0, after = bin->first;
    ++bin->count;
    if (after == 0) cca__bin_set_occupied(index, place);
    while (after != 0 && cca__block_less(&blocks[after], block)) {
        before = after;
        after = blocks[after].link[CCA__LIST_NEXT];
    }
    block->link[CCA__LIST_PREVIOUS] = before;
    block->link[CCA__LIST_NEXT] = after;
    *(before != 0 ? &blocks[before].link[CCA__LIST_NEXT] : &bin->first) = number;
    if (after != 0) blocks[after].link[CCA__LIST_PREVIOUS] = number;
}

// Removes from a bin that is a list.
static inline void cca__bin_remove_listed(struct cca__free_index *index, struct cca__block *blocks,
                                          uint32_t number, uint32_t place) {
    struct cca__bin *const bin = &index->bins[place];
    const uint32_t before = blocks[number].link[CCA__LIST_PREVIOUS],
                   after = blocks[number].link[CCA__LIST_NEXT];
    uint32_t *const link = before != 0 ? &blocks[before].link[CCA__LIST_NEXT] : &bin->first;
    *link = after;
    if (after != 0) blocks[after].link[CCA__LIST_PREVIOUS] = before;
    if (--bin->count == 0) cca__bin_clear_occupied(index, place);
}

// Removes the first of a bin that is a list.
static inline void cca__bin_remove_first(struct cca__free_index *index, struct cca__block *blocks,
                                         uint32_t place) {
    struct cca__bin *const bin = &index->bins[place];
    const uint32_t after = blocks[bin->first].link[CCA__LIST_NEXT];
    --bin->count;
    bin->first = after;
    if (after != 0)
        blocks[after].link[CCA__LIST_PREVIOUS] = 0;
    else
        cca__bin_clear_occupied(index, place);
}

//------------------------------------------------------------------------------------------------
// The index.

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

// The best fit for SIZE, which is not 0; 0 if no block is large enough.
static inline uint32_t cca__free_index_find(const struct cca__free_index *index,
                                            const struct cca__block *blocks, uint64_t size) {
    // Without a front: block 0 has no bytes.
    const uint32_t front = index->front, best = cca__bins_find(index, blocks, size);
    if (blocks[front].size < size) return best;
    return best != 0 && cca__block_less(&blocks[best], &blocks[front]) ? best : front;
}

// Whether the front is certainly the best fit: nothing in the bins is a better one than an exact
// fit, but an older block of the same size. Without a front: block 0 has no bytes. Whether the front
// is large enough, which nobody can predict where sizes are mixed, is asked without the bins only.
static inline bool cca__free_index_front_is_best(const struct cca__free_index *index,
                                                 const struct cca__block *blocks, uint64_t size) {
    const uint64_t front_size = blocks[index->front].size;
    if (index->occupied_words == 0) return front_size >= size;
    if (front_size != size) return false;
    const uint32_t bin = cca__bin_of(size);
    return (index->occupied[bin / 64] >> bin % 64 & 1) == 0;
}

// The best fit where that takes no walk through a bin, no runs and no call: *NUMBER. *PLACE is its
// bin, of which it is the first, or CCA__BIN_COUNT if it is the front. False: ask in full.
static inline bool cca__free_index_pick(const struct cca__free_index *index,
                                        const struct cca__block *blocks, uint64_t size,
                                        uint32_t *number, uint32_t *place) {
    const uint32_t front = index->front, wanted = cca__bin_of(size);
    const bool front_fits = blocks[front].size >= size;
    const uint64_t bits = index->occupied[wanted / 64] >> wanted % 64;
    uint32_t found;
    if (bits != 0) {
        found = wanted + (uint32_t)__builtin_ctzll(bits);
    } else {
        found = cca__bins_next_word(index, wanted / 64);
        if (found == CCA__BIN_COUNT) {
            *number = front;
            *place = CCA__BIN_COUNT;
            return front_fits;
        }
    }
    const struct cca__bin *const bin = &index->bins[found];
    const uint32_t best = bin->first;
    if (__builtin_expect(blocks[best].size < size, 0)) return false;
    if (front_fits && cca__block_less(&blocks[front], &blocks[best])) {
        *number = front;
        *place = CCA__BIN_COUNT;
        return true;
    }
    *number = best;
    *place = found;
    return __builtin_expect(bin->runs.root == 0, 1);
}

#endif
