// The free index against a plain scan: random insertions, removals, takings and searches over sizes
// that crowd few bins, with memory for runs and without.
#include "allocator/free_index.h"

#include "base/check.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS         800
#define STEPS          20000
#define PHASE_STEPS    1600 // in turn the index fills and empties
#define RUNS_OF_A_LIST 3 // that has become too long; entries that come in order leave runs half full

struct fixture {
    struct cca__free_index index;
    struct cca__block *blocks; // 1 to BLOCKS; in the index where state says FREE
    struct base_random random;
};

static uint32_t scan_best(const struct fixture *fixture, uint64_t size) {
    uint32_t best = 0;
    for (uint32_t number = 1; number <= BLOCKS; ++number) {
        const struct cca__block *const block = &fixture->blocks[number];
        if (block->state != CCA__BLOCK_FREE || block->size < size) continue;
        if (best == 0 || cca__block_less(block, &fixture->blocks[best])) best = number;
    }
    return best;
}

static uint64_t random_size(struct fixture *fixture, bool is_small) {
    // Half of the sizes are from a handful, so that bins have runs and ties are common; the large
    // ones share a bin.
    const uint64_t few = base_random_between(&fixture->random, 1, 4);
    if (base_random_chance(&fixture->random, 0.5))
        return 512 * (is_small ? few : ((uint64_t)1 << 17) + few);
    const uint64_t most = is_small ? 4096 : (uint64_t)1 << 22;
    return 512 * base_random_log_between(&fixture->random, 1, most);
}

static void walk_matches_scan(struct fixture *fixture) {
    uint32_t count = 0, previous = 0;
    for (uint32_t number = 0;
         (number = cca__free_index_next(&fixture->index, fixture->blocks, number)) != 0;) {
        if (previous != 0) {
            BASE_CHECK(cca__block_less(&fixture->blocks[previous], &fixture->blocks[number]));
            BASE_CHECK_EQ(cca__free_index_previous(&fixture->index, fixture->blocks, number),
                          previous);
        }
        previous = number;
        ++count;
    }
    BASE_CHECK_EQ(cca__free_index_previous(&fixture->index, fixture->blocks, 0), previous);
    for (uint32_t number = 1; number <= BLOCKS; ++number)
        if (fixture->blocks[number].state == CCA__BLOCK_FREE) --count;
    BASE_CHECK_EQ(count, 0);
}

static bool is_odd(const struct cca__block *block) { return block->address / 512 % 2 == 1; }

// All odd blocks at once: what comes out is in order, and all of them.
static void take_the_odd_ones(struct fixture *fixture) {
    uint32_t previous = 0;
    for (uint32_t number = cca__free_index_take(&fixture->index, fixture->blocks, is_odd);
         number != 0; number = fixture->blocks[number].link[0]) {
        struct cca__block *const block = &fixture->blocks[number];
        BASE_CHECK_EQ(block->state, CCA__BLOCK_FREE);
        BASE_CHECK(is_odd(block));
        if (previous != 0) BASE_CHECK(cca__block_less(&fixture->blocks[previous], block));
        block->state = CCA__BLOCK_ALLOCATED;
        previous = number;
    }
    for (uint32_t number = 1; number <= BLOCKS; number += 2)
        BASE_CHECK_NE(fixture->blocks[number].state, CCA__BLOCK_FREE);
}

static void change_one(struct fixture *fixture, bool is_small, bool fills, uint32_t number) {
    struct cca__block *const block = &fixture->blocks[number];
    if ((block->state == CCA__BLOCK_FREE) == fills && base_random_chance(&fixture->random, 0.8))
        return;
    if (block->state == CCA__BLOCK_FREE) {
        cca__free_index_remove(&fixture->index, fixture->blocks, number);
        block->state = CCA__BLOCK_ALLOCATED;
        return;
    }
    block->size = random_size(fixture, is_small);
    block->registration = (uint32_t)base_random_below(&fixture->random, 5);
    block->state = CCA__BLOCK_FREE;
    cca__free_index_insert(&fixture->index, fixture->blocks, number);
}

// RUN_COUNT: for how many there is memory.
static void searches_find_what_a_scan_finds(bool is_small, uint32_t run_count, uint64_t seed) {
    struct fixture fixture = {.random = base_random_init(seed, "free index")};
    fixture.blocks = calloc(BLOCKS + 1, sizeof *fixture.blocks);
    BASE_CHECK(fixture.blocks != NULL);
    struct cca__arena runs;
    BASE_CHECK_EQ(
        cca__arena_init(&runs, "runs of free blocks", sizeof(struct cca__run), run_count + 1),
        BASE_OK);
    BASE_CHECK_EQ(cca__free_index_init(&fixture.index, &runs), BASE_OK);
    for (uint32_t number = 1; number <= BLOCKS; ++number)
        fixture.blocks[number].address = 512 * (uint64_t)number;
    int picked_count = 0;
    uint32_t run_count_seen = 0;
    for (int step = 0; step < STEPS; ++step) {
        base_check_context("seed %llu, %s pool, memory for %u runs, step %d",
                           (unsigned long long)seed, is_small ? "small" : "large", run_count, step);
        change_one(&fixture, is_small, step / PHASE_STEPS % 2 == 0,
                   1 + (uint32_t)base_random_below(&fixture.random, BLOCKS));
        if (step % 997 == 0) take_the_odd_ones(&fixture);
        const uint64_t most =
            is_small ? 1 << 20 : (uint64_t)1 << 60; // as large as a request of the pool can be
        uint64_t size = random_size(&fixture, is_small);
        if (size > most) size = most;
        const uint32_t best = scan_best(&fixture, size);
        BASE_CHECK_EQ(cca__free_index_find(&fixture.index, fixture.blocks, size), best);
        uint32_t picked, place;
        if (cca__free_index_pick(&fixture.index, fixture.blocks, size, &picked, &place)) {
            BASE_CHECK_EQ(picked, best);
            BASE_CHECK_EQ(place == CCA__BIN_COUNT, picked == fixture.index.front);
            ++picked_count;
        }
        if (cca__free_index_front_is_best(&fixture.index, fixture.blocks, size))
            BASE_CHECK_EQ(fixture.index.front, best);
        if (step % 5 != 0) continue;
        const uint32_t count = cca__free_index_check(&fixture.index, fixture.blocks);
        BASE_CHECK_EQ(runs.live, count);
        if (count > run_count_seen) run_count_seen = count;
        if (step % 500 == 0) walk_matches_scan(&fixture);
    }
    BASE_CHECK_EQ(run_count_seen >= RUNS_OF_A_LIST, run_count >= RUNS_OF_A_LIST);
    BASE_CHECK(run_count_seen > 5 || run_count < BLOCKS);
    BASE_CHECK_GT(picked_count, 1000);
    base_check_context(NULL);
    cca__free_index_deinit(&fixture.index);
    cca__arena_deinit(&runs);
    free(fixture.blocks);
}

int main(void) {
    const uint64_t seed = 20260601;
    printf("seed %llu\n", (unsigned long long)seed);
    for (int is_small = 0; is_small < 2; ++is_small) {
        searches_find_what_a_scan_finds(is_small, CCA__RUNS_MAX - 1, seed);
        // A list that ought to become runs and stays, at once and after some; runs that cannot be
        // halved.
        searches_find_what_a_scan_finds(is_small, 0, seed);
        searches_find_what_a_scan_finds(is_small, RUNS_OF_A_LIST - 1, seed);
        searches_find_what_a_scan_finds(is_small, RUNS_OF_A_LIST + 1, seed);
    }
    return 0;
}
