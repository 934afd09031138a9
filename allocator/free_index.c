// The bins: see free_index.h. Links of a treap: see treap.h.
#include "allocator/free_index.h"

#include "allocator/treap.h"

#include <stdlib.h>

enum base_status cca__free_index_init(struct cca__free_index *index) {
    *index = (struct cca__free_index){0};
    index->bins = calloc(CCA__BIN_COUNT, sizeof *index->bins);
    if (index->bins == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for the bins of a pool");
    return BASE_OK;
}

void cca__free_index_deinit(struct cca__free_index *index) { free(index->bins); }

// The last occupied bin below BIN; CCA__BIN_COUNT if there is none.
static uint32_t previous_occupied(const struct cca__free_index *index, uint32_t bin) {
    while (bin-- > 0)
        if (index->occupied[bin / 64] >> bin % 64 & 1) return bin;
    return CCA__BIN_COUNT;
}

//------------------------------------------------------------------------------------------------
// Treap.

static void treap_insert(struct cca__bin *bin, struct cca__block *blocks, uint32_t number) {
    uint32_t parent = 0;
    int side = CCA__LEFT;
    for (uint32_t at = bin->root; at != 0; at = blocks[at].link[side]) {
        parent = at;
        side = cca__block_less(&blocks[number], &blocks[at]) ? CCA__LEFT : CCA__RIGHT;
    }
    cca__treap_hang(&bin->root, blocks, number, parent, side);
}

static uint32_t treap_find(const struct cca__bin *bin, const struct cca__block *blocks,
                           uint64_t size) {
    uint32_t best = 0;
    for (uint32_t at = bin->root; at != 0;) {
        const bool fits = blocks[at].size >= size;
        if (fits) best = at;
        at = blocks[at].link[fits ? CCA__LEFT : CCA__RIGHT];
    }
    return best;
}

//------------------------------------------------------------------------------------------------
// Bins.

static void list_to_treap(struct cca__bin *bin, struct cca__block *blocks) {
    bin->root = 0;
    for (uint32_t number = bin->first; number != 0;) {
        const uint32_t after = blocks[number].link[CCA__LIST_NEXT];
        treap_insert(bin, blocks, number);
        number = after;
    }
}

// What a list does not do, out of line: so the paths below need no saved registers.
static __attribute__((noinline)) void large_bin_insert(struct cca__bin *bin,
                                                       struct cca__block *blocks, uint32_t number) {
    if (bin->root == 0) list_to_treap(bin, blocks);
    treap_insert(bin, blocks, number);
    if (cca__block_less(&blocks[number], &blocks[bin->first])) bin->first = number;
}

static __attribute__((noinline)) void large_bin_remove(struct cca__bin *bin,
                                                       struct cca__block *blocks, uint32_t number) {
    if (bin->first == number) bin->first = cca__treap_step(blocks, number, CCA__RIGHT);
    cca__treap_remove(&bin->root, blocks, number);
}

void cca__bin_insert(struct cca__free_index *index, struct cca__block *blocks, uint32_t number) {
    const uint32_t place = cca__bin_of(blocks[number].size);
    struct cca__bin *const bin = &index->bins[place];
    if (cca__bin_is_short(bin)) {
        cca__bin_insert_short(index, blocks, number, place);
    } else {
        ++bin->count;
        large_bin_insert(bin, blocks, number);
    }
}

void cca__bin_remove(struct cca__free_index *index, struct cca__block *blocks, uint32_t number) {
    const uint32_t place = cca__bin_of(blocks[number].size);
    struct cca__bin *const bin = &index->bins[place];
    if (__builtin_expect(bin->root == 0, 1)) {
        cca__bin_remove_listed(index, blocks, number, place);
    } else if (--bin->count == 0) {
        bin->first = bin->root = 0;
        cca__bin_clear_occupied(index, place);
    } else {
        large_bin_remove(bin, blocks, number);
    }
}

uint32_t cca__bins_find(const struct cca__free_index *index, const struct cca__block *blocks,
                        uint64_t size) {
    const uint32_t wanted = cca__bin_of(size);
    uint32_t place = cca__bins_next(index, wanted);
    if (place == CCA__BIN_COUNT) return 0;
    const struct cca__bin *bin = &index->bins[place];
    uint32_t number = bin->first;
    if (blocks[number].size >= size) return number;
    // This is the request's own bin, and it holds smaller blocks too.
    if (bin->root != 0) {
        number = treap_find(bin, blocks, size);
    } else {
        do
            number = blocks[number].link[CCA__LIST_NEXT];
        while (number != 0 && blocks[number].size < size);
    }
    if (number != 0) return number;
    place = cca__bins_next(index, wanted + 1);
    return place == CCA__BIN_COUNT ? 0 : index->bins[place].first;
}

//------------------------------------------------------------------------------------------------
// Walks.

static void flush_front(struct cca__free_index *index, struct cca__block *blocks) {
    if (index->front != 0) cca__bin_insert(index, blocks, index->front);
    index->front = 0;
}

static uint32_t bin_last(const struct cca__bin *bin, const struct cca__block *blocks) {
    if (bin->root != 0) return cca__treap_end(blocks, bin->root, CCA__RIGHT);
    uint32_t number = bin->first;
    while (blocks[number].link[CCA__LIST_NEXT] != 0)
        number = blocks[number].link[CCA__LIST_NEXT];
    return number;
}

uint32_t cca__free_index_next(struct cca__free_index *index, struct cca__block *blocks,
                              uint32_t number) {
    flush_front(index, blocks);
    uint32_t place = 0;
    if (number != 0) {
        place = cca__bin_of(blocks[number].size);
        const uint32_t after = index->bins[place].root != 0
                                   ? cca__treap_step(blocks, number, CCA__RIGHT)
                                   : blocks[number].link[CCA__LIST_NEXT];
        if (after != 0) return after;
        ++place;
    }
    const uint32_t bin = cca__bins_next(index, place);
    return bin == CCA__BIN_COUNT ? 0 : index->bins[bin].first;
}

uint32_t cca__free_index_previous(struct cca__free_index *index, struct cca__block *blocks,
                                  uint32_t number) {
    flush_front(index, blocks);
    uint32_t place = CCA__BIN_COUNT;
    if (number != 0) {
        place = cca__bin_of(blocks[number].size);
        const uint32_t before = index->bins[place].root != 0
                                    ? cca__treap_step(blocks, number, CCA__LEFT)
                                    : blocks[number].link[CCA__LIST_PREVIOUS];
        if (before != 0) return before;
    }
    const uint32_t bin = previous_occupied(index, place);
    return bin == CCA__BIN_COUNT ? 0 : bin_last(&index->bins[bin], blocks);
}
