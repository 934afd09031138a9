// The index of live ranges against a naive list: random, ascending and descending insertions, and
// removals.
#include "simulator/range_index.h"

#include "base/check.h"
#include "base/random.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define RANGES 1000 // number I takes [10 I + 1, 10 I + 9] at most

struct world {
    struct sim__range_index index;
    struct sim__range ranges[RANGES];
    bool live[RANGES];
};

static struct world world;

static void range_set(int i, bool live, uint64_t size) {
    struct sim__range *range = &world.ranges[i];
    if (live == world.live[i])
        return;
    world.live[i] = live;
    if (live) {
        *range = (struct sim__range){(uint64_t)(10 * i + 1), size};
        sim__range_insert(&world.index, range);
    } else {
        sim__range_remove(&world.index, range);
    }
}

static struct sim__range *naive_at(uint64_t point) {
    const uint64_t i = point / 10;
    struct sim__range *range = i < RANGES && world.live[i] ? &world.ranges[i] : NULL;
    return range != NULL && point >= range->start && point < range->start + range->size ? range
                                                                                        : NULL;
}

static struct sim__range *naive_overlapping(uint64_t start, uint64_t size) {
    for (uint64_t point = start + size; point-- > start;)
        if (naive_at(point) != NULL)
            return naive_at(point);
    return NULL;
}

static struct sim__range *naive_last(void) {
    for (int i = RANGES; i-- > 0;)
        if (world.live[i])
            return &world.ranges[i];
    return NULL;
}

static void compare(struct base_random *random) {
    const uint64_t point = base_random_below(random, 10 * RANGES + 20);
    const uint64_t size = base_random_log_between(random, 1, 2000);
    BASE_CHECK(sim__range_at(&world.index, point) == naive_at(point));
    BASE_CHECK(sim__range_overlapping(&world.index, point, size) == naive_overlapping(point, size));
    BASE_CHECK(sim__range_last(&world.index) == naive_last());
    for (size_t i = 1; i < world.index.leaf_count; ++i)
        BASE_CHECK_LT(world.index.starts[i - 1], world.index.starts[i]);
}

// Phases of filling and of emptying take turns.
static void index_answers_as_a_naive_list(uint64_t seed) {
    struct base_random random = base_random_init(seed, "range_index_test");
    for (int step = 0; step < 6000; ++step) {
        base_check_context("seed %llu, step %d", (unsigned long long)seed, step);
        const bool filling = step / 1500 % 2 == 0;
        range_set((int)base_random_below(&random, RANGES),
                  base_random_chance(&random, filling ? 0.9 : 0.1),
                  base_random_between(&random, 1, 9));
        compare(&random);
    }
    for (int i = 0; i < RANGES; ++i)
        range_set(i, false, 1);
    base_check_context("after the random steps");
    BASE_CHECK(sim__range_last(&world.index) == NULL);
    sim__range_index_deinit(&world.index);
}

static void order_of_insertion_does_not_matter(void) {
    struct base_random random = base_random_init(1, "order");
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < RANGES; ++i) {
            range_set(round == 0 ? i : RANGES - 1 - i, true, 5);
            compare(&random);
        }
        for (int i = 0; i < RANGES; ++i) { // every other one first
            range_set(i * 2 % RANGES + (i * 2 >= RANGES), false, 5);
            compare(&random);
        }
    }
    BASE_CHECK_EQ(world.index.leaf_count, 0);
    sim__range_index_deinit(&world.index);
}

static void leaves_stay_filled(void) {
    for (int i = 0; i < RANGES; ++i)
        range_set(i, true, 1);
    BASE_CHECK_LE(world.index.leaf_count,
                  RANGES / 64 + 1); // ascending insertion leaves full leaves
    for (int i = 0; i < RANGES; ++i)
        range_set(i, i % 50 == 0, 1);
    BASE_CHECK_LE(world.index.leaf_count, 2 * RANGES / 50 / 40 + 2); // and small ones are joined
    for (int i = 0; i < RANGES; ++i)
        range_set(i, false, 1);
    sim__range_index_deinit(&world.index);
}

int main(void) {
    for (uint64_t seed = 1; seed <= 5; ++seed)
        index_answers_as_a_naive_list(seed);
    order_of_insertion_does_not_matter();
    leaves_stay_filled();
    printf("range_index: seeds 1 to 5\n");
    return 0;
}
