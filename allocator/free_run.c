// See free_run.h.
#include "allocator/free_run.h"

#include "allocator/treap.h"

#include <string.h>

// A run with no more than SHORT entries joins a neighbour if both are at most JOINED then.
#define SHORT 12
#define JOINED 30
#define HALF ((uint32_t)CCA__RUN_ENTRIES / 2)

// A run's number is that of its head among heads and entries taken for blocks.
#define UNITS ((uint32_t)(sizeof(struct cca__run) / sizeof(struct cca__block)))
// How far ahead of its use a block is fetched.
#define FETCH_AHEAD 8

enum base_status cca__runs_init(struct cca__arena *arena) {
    return cca__arena_init(arena, "runs of free blocks", sizeof(struct cca__run), CCA__RUNS_MAX);
}

static struct cca__block *heads(const struct cca__arena *arena) {
    return (struct cca__block *)(void *)arena->base;
}

static struct cca__run *run_at(const struct cca__arena *arena, uint32_t run) {
    return (struct cca__run *)(void *)(heads(arena) + run);
}

static uint64_t *count_of(struct cca__run *run) { return &run->head.requested; }

static uint64_t rank_of(uint64_t size, uint32_t registration) {
    return (size + 511) >> 9 << 32 | registration;
}

static struct cca__run_entry entry_of(const struct cca__block *blocks, uint32_t number) {
    const struct cca__block *const block = &blocks[number];
    return (struct cca__run_entry){rank_of(block->size, block->registration), block->address,
                                   number};
}

// The order of cca__block_less, as one number: no branch of a comparison could be foretold.
typedef unsigned __int128 order;

static inline order order_of(const struct cca__run_entry *entry) {
    return (order)entry->rank << 64 | entry->address;
}

static inline order order_of_head(const struct cca__block *head) {
    return (order)head->size << 64 | head->address;
}

static void set_head(struct cca__run *run) {
    const struct cca__run_entry *const lowest = &run->entries[*count_of(run) - 1];
    run->head.size = lowest->rank;
    run->head.address = lowest->address;
}

//------------------------------------------------------------------------------------------------
// Places.

struct place {
    uint32_t run, index;
};

// The run that KEY is in, or would be: the last one that does not begin above it, else the first.
static uint32_t find_run(const struct cca__arena *arena, const struct cca__runs *runs,
                         const struct cca__run_entry *key) {
    const struct cca__block *const all = heads(arena);
    uint32_t found = runs->lowest;
    for (uint32_t at = runs->root; at != 0;) {
        const bool below = order_of(key) < order_of_head(&all[at]);
        if (!below)
            found = at;
        at = all[at].link[below ? CCA__LEFT : CCA__RIGHT];
    }
    return found;
}

// How many entries are above KEY. The run is not empty.
static uint32_t count_above(struct cca__run *run, const struct cca__run_entry *key) {
    const struct cca__run_entry *entry = run->entries;
    for (uint64_t count = *count_of(run); count > 1;) {
        const uint64_t half = count / 2;
        entry += order_of(key) < order_of(&entry[half - 1]) ? half : 0;
        count -= half;
    }
    return (uint32_t)(entry - run->entries) + (order_of(key) < order_of(entry));
}

// Where KEY is, or would be. There is a run.
static struct place find(const struct cca__arena *arena, const struct cca__runs *runs,
                         const struct cca__run_entry *key) {
    struct cca__run *const lowest = run_at(arena, runs->lowest);
    if (order_of(key) <= order_of_head(&lowest->head)) {
        const uint32_t count = (uint32_t)*count_of(lowest);
        return (struct place){runs->lowest,
                              count - (order_of(key) == order_of_head(&lowest->head))};
    }
    const uint32_t run = find_run(arena, runs, key);
    return (struct place){run, count_above(run_at(arena, run), key)};
}

static uint32_t first_of(const struct cca__arena *arena, uint32_t run) {
    if (run == 0)
        return 0;
    struct cca__run *const of = run_at(arena, run);
    return of->entries[*count_of(of) - 1].number;
}

static uint32_t last_of(const struct cca__arena *arena, uint32_t run) {
    return run == 0 ? 0 : run_at(arena, run)->entries[0].number;
}

// The lowest entry above that place, or the first one of the next run.
static uint32_t number_above(const struct cca__arena *arena, struct place place) {
    if (place.index > 0)
        return run_at(arena, place.run)->entries[place.index - 1].number;
    return first_of(arena, cca__treap_step(heads(arena), place.run, CCA__RIGHT));
}

uint32_t cca__runs_first(const struct cca__arena *arena, const struct cca__runs *runs) {
    return first_of(arena, runs->lowest);
}

uint32_t cca__runs_last(const struct cca__arena *arena, const struct cca__runs *runs) {
    return last_of(arena, cca__treap_end(heads(arena), runs->root, CCA__RIGHT));
}

uint32_t cca__runs_next(const struct cca__arena *arena, const struct cca__runs *runs,
                        const struct cca__block *blocks, uint32_t number) {
    const struct cca__run_entry key = entry_of(blocks, number);
    return number_above(arena, find(arena, runs, &key));
}

uint32_t cca__runs_previous(const struct cca__arena *arena, const struct cca__runs *runs,
                            const struct cca__block *blocks, uint32_t number) {
    const struct cca__run_entry key = entry_of(blocks, number);
    const struct place place = find(arena, runs, &key);
    struct cca__run *const run = run_at(arena, place.run);
    if (place.index + 1 < *count_of(run))
        return run->entries[place.index + 1].number;
    return last_of(arena, cca__treap_step(heads(arena), place.run, CCA__LEFT));
}

uint32_t cca__runs_find(const struct cca__arena *arena, const struct cca__runs *runs,
                        uint64_t size) {
    return number_above(arena,
                        find(arena, runs, &(struct cca__run_entry){.rank = rank_of(size, 0)}));
}

//------------------------------------------------------------------------------------------------
// Changes.

// An empty run before RUN, or alone where that is 0; 0: no memory. Its place in the treap needs no
// entries.
static uint32_t add_run(struct cca__arena *arena, struct cca__runs *runs, uint32_t run) {
    struct cca__block *const all = heads(arena);
    uint32_t item;
    if (cca__arena_take(arena, &item) != BASE_OK)
        return 0;
    const uint32_t added = item * UNITS;
    *count_of(run_at(arena, added)) = 0;
    uint32_t parent = run;
    int side = CCA__LEFT;
    if (run != 0 && all[run].link[CCA__LEFT] != 0) {
        parent = cca__treap_end(all, all[run].link[CCA__LEFT], CCA__RIGHT);
        side = CCA__RIGHT;
    }
    cca__treap_hang(&runs->root, all, added, parent, side);
    if (runs->lowest == run)
        runs->lowest = added;
    return added;
}

static void remove_run(struct cca__arena *arena, struct cca__runs *runs, uint32_t run) {
    if (runs->lowest == run)
        runs->lowest = cca__treap_step(heads(arena), run, CCA__RIGHT);
    cca__treap_remove(&runs->root, heads(arena), run);
    cca__arena_give_back(arena, run / UNITS);
}

// Moves the entries of FROM from FIRST on behind those of TO.
static void move_entries(struct cca__run *to, struct cca__run *from, uint64_t first) {
    const uint64_t count = *count_of(from) - first;
    memcpy(&to->entries[*count_of(to)], &from->entries[first], count * sizeof *to->entries);
    *count_of(to) += count;
    *count_of(from) = first;
    set_head(to);
}

// Halves a full run; the place moves along. False: no memory.
static bool halve(struct cca__arena *arena, struct cca__runs *runs, struct place *place) {
    struct cca__run *const run = run_at(arena, place->run);
    const uint32_t added = add_run(arena, runs, place->run);
    if (added == 0)
        return false;
    move_entries(run_at(arena, added), run, HALF);
    set_head(run);
    if (place->index > HALF)
        *place = (struct place){added, place->index - HALF};
    return true;
}

bool cca__runs_insert(struct cca__arena *arena, struct cca__runs *runs,
                      const struct cca__block *blocks, uint32_t number) {
    const struct cca__run_entry key = entry_of(blocks, number);
    struct place place = {0, 0};
    if (runs->root == 0) {
        place.run = add_run(arena, runs, 0);
        if (place.run == 0)
            return false;
    } else {
        place = find(arena, runs, &key);
        if (*count_of(run_at(arena, place.run)) == CCA__RUN_ENTRIES && !halve(arena, runs, &place))
            return false;
    }
    struct cca__run *const run = run_at(arena, place.run);
    struct cca__run_entry *const entry = &run->entries[place.index];
    const uint64_t behind = (*count_of(run))++ - place.index;
    if (behind != 0)
        memmove(entry + 1, entry, behind * sizeof *entry);
    *entry = key;
    if (behind == 0)
        set_head(run);
    return true;
}

// A short run goes behind the next one, or the one before comes behind it, if they fit.
static void join(struct cca__arena *arena, struct cca__runs *runs, uint32_t run) {
    const uint32_t next = cca__treap_step(heads(arena), run, CCA__RIGHT),
                   previous = cca__treap_step(heads(arena), run, CCA__LEFT);
    const uint64_t count = *count_of(run_at(arena, run));
    if (next != 0 && count + *count_of(run_at(arena, next)) <= JOINED) {
        move_entries(run_at(arena, next), run_at(arena, run), 0);
        remove_run(arena, runs, run);
    } else if (previous != 0 && count + *count_of(run_at(arena, previous)) <= JOINED) {
        move_entries(run_at(arena, run), run_at(arena, previous), 0);
        remove_run(arena, runs, previous);
    }
}

void cca__runs_remove(struct cca__arena *arena, struct cca__runs *runs,
                      const struct cca__block *blocks, uint32_t number) {
    const struct cca__run_entry key = entry_of(blocks, number);
    const struct place place = find(arena, runs, &key);
    struct cca__run *const run = run_at(arena, place.run);
    struct cca__run_entry *const entry = &run->entries[place.index];
    BASE_CHECK_EQ(entry->number, number);
    const uint64_t count = --*count_of(run), behind = count - place.index;
    if (behind != 0) {
        memmove(entry, entry + 1, behind * sizeof *entry);
    } else if (count != 0) {
        set_head(run);
    } else {
        remove_run(arena, runs, place.run);
        return;
    }
    if (count <= SHORT)
        join(arena, runs, place.run);
}

// Before it is a run's turn: first its entries are fetched, then the first blocks they name.
static void fetch_entries(const struct cca__run *run) {
    for (uint32_t index = 0; index < CCA__RUN_ENTRIES; index += 2)
        __builtin_prefetch(&run->entries[index]);
}
static void fetch_blocks(struct cca__run *run, const struct cca__block *blocks) {
    uint64_t index = *count_of(run);
    for (const uint64_t end = index > FETCH_AHEAD ? index - FETCH_AHEAD : 0; index > end;)
        __builtin_prefetch(&blocks[run->entries[--index].number], 1);
}

// The run after RUN; 0 at the end, and after that.
static uint32_t step_right(const struct cca__arena *arena, uint32_t run) {
    return run == 0 ? 0 : cca__treap_step(heads(arena), run, CCA__RIGHT);
}

// Takes from one run, and leaves the others at its beginning. Returns how many it took.
static uint64_t take_from(struct cca__run *run, const struct cca__block *blocks,
                          bool (*takes)(const struct cca__block *block),
                          void (*taken)(void *context, uint32_t number), void *context) {
    uint64_t left = *count_of(run);
    for (uint64_t index = left; index-- > 0;) {
        if (index >= FETCH_AHEAD)
            __builtin_prefetch(&blocks[run->entries[index - FETCH_AHEAD].number], 1);
        const struct cca__run_entry entry = run->entries[index];
        if (takes(&blocks[entry.number]))
            taken(context, entry.number);
        else
            run->entries[--left] = entry;
    }
    *count_of(run) -= left;
    memmove(run->entries, &run->entries[left], *count_of(run) * sizeof *run->entries);
    return left;
}

uint32_t cca__runs_take(struct cca__arena *arena, struct cca__runs *runs,
                        const struct cca__block *blocks,
                        bool (*takes)(const struct cca__block *block),
                        void (*taken)(void *context, uint32_t number), void *context) {
    uint64_t count = 0;
    uint32_t next = step_right(arena, runs->lowest);
    for (uint32_t run = runs->lowest, after; run != 0; run = next, next = after) {
        after = step_right(arena, next);
        fetch_entries(run_at(arena, after));
        if (next != 0)
            fetch_blocks(run_at(arena, next), blocks);
        count += take_from(run_at(arena, run), blocks, takes, taken, context);
        if (*count_of(run_at(arena, run)) == 0)
            remove_run(arena, runs, run);
        else
            set_head(run_at(arena, run));
    }
    return (uint32_t)count;
}

//------------------------------------------------------------------------------------------------
// Checks.

uint32_t cca__runs_check(const struct cca__arena *arena, const struct cca__runs *runs,
                         const struct cca__block *blocks, uint32_t count) {
    const struct cca__block *const all = heads(arena);
    const struct cca__run_entry *last = NULL;
    uint32_t run_count = 0;
    BASE_CHECK_EQ(runs->lowest, cca__treap_end(all, runs->root, CCA__LEFT));
    for (uint32_t at = runs->lowest; at != 0; at = cca__treap_step(all, at, CCA__RIGHT)) {
        struct cca__run *const run = run_at(arena, at);
        ++run_count;
        BASE_CHECK_GT(*count_of(run), 0);
        BASE_CHECK_LE(*count_of(run), CCA__RUN_ENTRIES);
        for (uint64_t index = *count_of(run); index-- > 0; --count) {
            const struct cca__run_entry *const entry = &run->entries[index];
            const struct cca__run_entry block = entry_of(blocks, entry->number);
            BASE_CHECK(order_of(entry) == order_of(&block));
            if (index + 1 == *count_of(run))
                BASE_CHECK(order_of(entry) == order_of_head(&run->head));
            if (last != NULL)
                BASE_CHECK(order_of(last) < order_of(entry));
            last = entry;
        }
    }
    BASE_CHECK_EQ(count, 0);
    return run_count;
}
