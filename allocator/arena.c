// See arena.h. A range is reserved without access and opened step by step, so that a limit on
// memory that counts what a process could touch sees only what is in use.
#include "allocator/arena.h"

#include <stdlib.h>
#include <sys/mman.h>

#define COMMIT_STEP_BYTES ((size_t)1 << 20)
#define PAGE_BYTES        ((size_t)4096)
// Beyond the first step memory comes in large pages, where the system has them: with 10^6 live
// blocks a look-up per page costs more than the decision, and so do the faults of first growth.
#define LARGE_PAGE_BYTES ((size_t)2 << 20)

// Bytes before item 0, other ones for each arena of an allocator: their capacities are different
// powers of two. Ranges of this size begin at a multiple of MiB from each other, and Zen processors
// tell the lines of a cache set apart by a hash of few address bits first: without this, lines of
// three arenas displaced each other at each free of a small block, 9 ns.
static size_t skew_bytes(uint32_t capacity) { return (size_t)__builtin_ctz(capacity) * PAGE_BYTES; }

static size_t range_bytes(size_t item_bytes, uint32_t capacity) {
    return skew_bytes(capacity) + item_bytes * capacity;
}

static size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

// How much is open once NEEDED bytes are: whole steps of the one kind of pages or of the other.
static size_t committed_for(const struct cca__arena *arena, size_t needed) {
    const size_t all = arena->item_bytes * arena->capacity;
    size_t committed = round_up(needed, COMMIT_STEP_BYTES);
    if (committed > COMMIT_STEP_BYTES) {
        const uintptr_t base = (uintptr_t)arena->base;
        committed = round_up(base + needed, LARGE_PAGE_BYTES) - base;
    }
    return committed < all ? committed : all;
}

// Opens the range up to NEEDED bytes.
static enum base_status commit(struct cca__arena *arena, size_t needed) {
    if (needed <= arena->committed_bytes) return BASE_OK;
    const size_t committed = committed_for(arena, needed);
    if (mprotect(arena->base, committed, PROT_READ | PROT_WRITE) != 0)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %u %s", arena->used,
                               arena->item_name);
    // Advice only: without large pages there are small ones.
    if (committed > COMMIT_STEP_BYTES)
        (void)madvise(arena->base + COMMIT_STEP_BYTES, committed - COMMIT_STEP_BYTES,
                      MADV_HUGEPAGE);
    arena->committed_bytes = committed;
    return BASE_OK;
}

enum base_status cca__arena_init(struct cca__arena *arena, const char *item_name, size_t item_bytes,
                                 uint32_t capacity) {
    const size_t bytes = range_bytes(item_bytes, capacity);
    unsigned char *const range =
        mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
        return base_status_set(BASE_HOST_MEMORY, "cannot reserve %zu bytes of addresses for %u %s",
                               bytes, capacity, item_name);
    *arena = (struct cca__arena){.base = range + skew_bytes(capacity),
                                 .item_name = item_name,
                                 .item_bytes = item_bytes,
                                 .capacity = capacity,
                                 .used = 1};
    cca__lock_init(&arena->lock);
    const enum base_status status = commit(arena, item_bytes);
    if (status != BASE_OK) cca__arena_deinit(arena);
    return status;
}

void cca__arena_deinit(struct cca__arena *arena) {
    if (arena->base == NULL) return;
    BASE_CHECK_EQ(munmap(arena->base - skew_bytes(arena->capacity),
                         range_bytes(arena->item_bytes, arena->capacity)),
                  0);
    cca__lock_deinit(&arena->lock);
    free(arena->given_back);
    *arena = (struct cca__arena){0};
}

// The stack must never grow when an item is given back, so it has room for every item in use.
static enum base_status grow(struct cca__arena *arena) {
    if (arena->used == arena->capacity)
        return base_status_set(BASE_LIMIT, "more than %u %s", arena->capacity - 1,
                               arena->item_name);
    if (arena->used >= arena->given_back_capacity) {
        const uint32_t capacity =
            arena->given_back_capacity < 64 ? 64 : 2 * arena->given_back_capacity;
        uint32_t *const given_back = realloc(arena->given_back, capacity * sizeof *given_back);
        if (given_back == NULL)
            return base_status_set(BASE_HOST_MEMORY, "out of host memory for %u %s", arena->used,
                                   arena->item_name);
        arena->given_back = given_back;
        arena->given_back_capacity = capacity;
    }
    return commit(arena, ((size_t)arena->used + 1) * arena->item_bytes);
}

enum base_status cca__arena_take(struct cca__arena *arena, uint32_t *item) {
    enum base_status status = BASE_OK;
    cca__lock_take(&arena->lock);
    if (arena->given_back_count > 0) {
        *item = arena->given_back[--arena->given_back_count];
    } else {
        status = grow(arena);
        if (status == BASE_OK) *item = arena->used++;
    }
    if (status == BASE_OK) ++arena->live;
    cca__lock_release(&arena->lock);
    return status;
}

void cca__arena_give_back(struct cca__arena *arena, uint32_t item) {
    cca__arena_give_back_all(arena, &item, 1);
}

void cca__arena_give_back_all(struct cca__arena *arena, const uint32_t *items, uint32_t count) {
    cca__lock_take(&arena->lock);
    BASE_CHECK_GE(arena->live, count);
    for (uint32_t index = 0; index < count; ++index)
        arena->given_back[arena->given_back_count++] = items[index];
    arena->live -= count;
    cca__lock_release(&arena->lock);
}

void cca__arena_trim(struct cca__arena *arena) { cca__arena_trim_with(arena, NULL, NULL); }

void cca__arena_trim_with(struct cca__arena *arena, void (*also)(void *), void *argument) {
    cca__lock_take(&arena->lock);
    if (arena->live == 0 && arena->used > 1) {
        // Advice only: if the kernel refuses, the memory stays and is used again.
        (void)madvise(arena->base, arena->committed_bytes, MADV_DONTNEED);
        free(arena->given_back);
        arena->given_back = NULL;
        arena->given_back_count = arena->given_back_capacity = 0;
        arena->used = 1;
        if (also != NULL) also(argument);
    }
    cca__lock_release(&arena->lock);
}
