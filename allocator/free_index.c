// The bins: see free_index.h.
#include "allocator/free_index.h"

#include <stdlib.h>

enum base_status cca__free_index_init(struct cca__free_index *index, struct cca__arena *arena) {
    *index = (struct cca__free_index){.arena = arena};
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
// Bins.

static bool takes_all(const struct cca__block *block) {
    (void)block;
    return true;
}

static void leave(void *context, uint32_t number) {
    (void)context;
    (void)number;
}

// False, and nothing changed: no memory, or blocks too large. Runs leave the links of the list as
// they are.
static bool list_to_runs(const struct cca__free_index *index, struct cca__bin *bin,
                         const struct cca__block *blocks) {
    if (bin - index->bins >= cca__bin_of(CCA__RUN_SIZE_LIMIT)) return false;
    for (uint32_t number = bin->first; number != 0; number = blocks[number].link[CCA__LIST_NEXT]) {
        if (cca__runs_insert(index->arena, &bin->runs, blocks, number)) continue;
        (void)cca__runs_take(index->arena, &bin->runs, blocks, takes_all, leave, NULL);
        return false;
    }
    return true;
}

struct list {
    struct cca__block *blocks;
    uint32_t first, last;
};

static void append(void *context, uint32_t number) {
    struct list *const list = context;
    list->blocks[number].link[CCA__LIST_PREVIOUS] = list->last;
    list->blocks[number].link[CCA__LIST_NEXT] = 0;
    if (list->last == 0)
        list->first = number;
    else
        list->blocks[list->last].link[CCA__LIST_NEXT] = number;
    list->last = number;
}

static void runs_to_list(const struct cca__free_index *index, struct cca__bin *bin,
                         struct cca__block *blocks) {
    struct list list = {blocks, 0, 0};
    (void)cca__runs_take(index->arena, &bin->runs, blocks, takes_all, append, &list);
    bin->first = list.first;
}

// What a list does not do, out of line: so the paths below need no saved registers.
static __attribute__((noinline)) void large_bin_insert(struct cca__free_index *index,
                                                       struct cca__block *blocks, uint32_t number,
                                                       uint32_t place) {
    struct cca__bin *const bin = &index->bins[place];
    const bool has_runs = bin->runs.root != 0 || list_to_runs(index, bin, blocks);
    if (has_runs && cca__runs_insert(index->arena, &bin->runs, blocks, number)) {
        ++bin->count;
        if (cca__block_less(&blocks[number], &blocks[bin->first])) bin->first = number;
        return;
    }
    if (bin->runs.root != 0) runs_to_list(index, bin, blocks);
    cca__bin_insert_listed(index, blocks, number, place);
}

static __attribute__((noinline)) void large_bin_remove(struct cca__free_index *index,
                                                       struct cca__block *blocks, uint32_t number,
                                                       uint32_t place) {
    struct cca__bin *const bin = &index->bins[place];
    cca__runs_remove(index->arena, &bin->runs, blocks, number);
    --bin->count;
    if (bin->first == number) bin->first = cca__runs_first(index->arena, &bin->runs);
    if (bin->count <= CCA__BIN_LIST_AGAIN) runs_to_list(index, bin, blocks);
}

void cca__bin_insert(struct cca__free_index *index, struct cca__block *blocks, uint32_t number) {
    const uint32_t place = cca__bin_of(blocks[number].size);
    if (cca__bin_is_short(&index->bins[place]))
        cca__bin_insert_listed(index, blocks, number, place);
    else
        large_bin_insert(index, blocks, number, place);
}

void cca__bin_remove(struct cca__free_index *index, struct cca__block *blocks, uint32_t number) {
    const uint32_t place = cca__bin_of(blocks[number].size);
    if (__builtin_expect(index->bins[place].runs.root == 0, 1))
        cca__bin_remove_listed(index, blocks, number, place);
    else
        large_bin_remove(index, blocks, number, place);
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
    if (bin->runs.root != 0) {
        number = cca__runs_find(index->arena, &bin->runs, size);
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

static uint32_t bin_last(const struct cca__free_index *index, const struct cca__bin *bin,
                         const struct cca__block *blocks) {
    if (bin->runs.root != 0) return cca__runs_last(index->arena, &bin->runs);
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
        const uint32_t after = index->bins[place].runs.root != 0
                                   ? cca__runs_next(index->arena, &index->bins[place].runs, blocks,
                                                    number)
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
        const uint32_t before = index->bins[place].runs.root != 0
                                    ? cca__runs_previous(index->arena, &index->bins[place].runs,
                                                         blocks, number)
                                    : blocks[number].link[CCA__LIST_PREVIOUS];
        if (before != 0) return before;
    }
    const uint32_t bin = previous_occupied(index, place);
    return bin == CCA__BIN_COUNT ? 0 : bin_last(index, &index->bins[bin], blocks);
}

struct chain {
    struct cca__block *blocks;
    uint32_t first, last;
};

static void chain_append(void *context, uint32_t number) {
    struct chain *const chain = context;
    chain->blocks[number].link[0] = 0;
    if (chain->last == 0)
        chain->first = number;
    else
        chain->blocks[chain->last].link[0] = number;
    chain->last = number;
}

static void take_listed(struct cca__free_index *index, struct cca__block *blocks, uint32_t place,
                        bool (*takes)(const struct cca__block *block), struct chain *chain) {
    for (uint32_t number = index->bins[place].first, next; number != 0; number = next) {
        next = blocks[number].link[CCA__LIST_NEXT];
        if (!takes(&blocks[number])) continue;
        cca__bin_remove_listed(index, blocks, number, place);
        chain_append(chain, number);
    }
}

static void take_from_runs(struct cca__free_index *index, struct cca__block *blocks, uint32_t place,
                           bool (*takes)(const struct cca__block *block), struct chain *chain) {
    struct cca__bin *const bin = &index->bins[place];
    bin->count -= cca__runs_take(index->arena, &bin->runs, blocks, takes, chain_append, chain);
    bin->first = cca__runs_first(index->arena, &bin->runs);
    if (bin->count <= CCA__BIN_LIST_AGAIN) runs_to_list(index, bin, blocks);
    if (bin->count == 0) cca__bin_clear_occupied(index, place);
}

uint32_t cca__free_index_take(struct cca__free_index *index, struct cca__block *blocks,
                              bool (*takes)(const struct cca__block *block)) {
    struct chain chain = {blocks, 0, 0};
    flush_front(index, blocks);
    for (uint32_t place = 0; (place = cca__bins_next(index, place)) != CCA__BIN_COUNT;) {
        if (index->bins[place].runs.root == 0)
            take_listed(index, blocks, place, takes, &chain);
        else
            take_from_runs(index, blocks, place, takes, &chain);
        if (++place == CCA__BIN_COUNT) break;
    }
    return chain.first;
}

//------------------------------------------------------------------------------------------------
// Checks.

static void check_list(const struct cca__bin *bin, const struct cca__block *blocks) {
    uint32_t count = 0, before = 0;
    for (uint32_t number = bin->first; number != 0; number = blocks[number].link[CCA__LIST_NEXT]) {
        BASE_CHECK_EQ(blocks[number].link[CCA__LIST_PREVIOUS], before);
        if (before != 0) BASE_CHECK(cca__block_less(&blocks[before], &blocks[number]));
        before = number;
        ++count;
    }
    BASE_CHECK_EQ(count, bin->count);
}

uint32_t cca__free_index_check(const struct cca__free_index *index,
                               const struct cca__block *blocks) {
    uint32_t run_count = 0;
    for (uint32_t place = 0; place < CCA__BIN_COUNT; ++place) {
        const struct cca__bin *const bin = &index->bins[place];
        BASE_CHECK_EQ(index->occupied[place / 64] >> place % 64 & 1, bin->count != 0);
        BASE_CHECK_EQ(index->occupied_words >> place / 64 & 1, index->occupied[place / 64] != 0);
        if (bin->runs.root == 0) {
            check_list(bin, blocks);
            continue;
        }
        BASE_CHECK_EQ(bin->first, cca__runs_first(index->arena, &bin->runs));
        run_count += cca__runs_check(index->arena, &bin->runs, blocks, bin->count);
    }
    return run_count;
}
