// The range tree against a naive list, under random insertions and removals.
#include "simulator/range_tree.h"

#include "base/check.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>

#define SPAN 4096 // numbers 0 to SPAN - 1 are either free or belong to one range

struct world {
    struct sim__range_tree tree;
    struct sim__range *owner[SPAN]; // the naive answer
};

static struct sim__range *naive_fitting(const struct world *world, uint64_t size) {
    for (uint64_t i = 0; i < SPAN; ++i)
        if (world->owner[i] != NULL && world->owner[i]->size >= size)
            return world->owner[i];
    return NULL;
}

static struct sim__range *naive_below(const struct world *world, uint64_t limit) {
    for (uint64_t i = limit < SPAN ? limit : SPAN; i-- > 0;)
        if (world->owner[i] != NULL && world->owner[i]->start < limit)
            return world->owner[i];
    return NULL;
}

static struct sim__range *naive_overlapping(const struct world *world, uint64_t start,
                                            uint64_t size) {
    for (uint64_t i = start; i < start + size && i < SPAN; ++i)
        if (world->owner[i] != NULL)
            return world->owner[i];
    return NULL;
}

static void world_change(struct world *world, struct base_random *random) {
    const uint64_t start = base_random_below(random, SPAN - 64);
    const uint64_t size = base_random_between(random, 1, 64);
    struct sim__range *found = naive_overlapping(world, start, size);
    struct sim__range *range = found;
    if (found == NULL) {
        range = calloc(1, sizeof *range);
        BASE_CHECK(range != NULL);
        range->start = start;
        range->size = size;
        sim__range_insert(&world->tree, range);
    } else {
        sim__range_remove(&world->tree, found);
    }
    for (uint64_t i = range->start; i < range->start + range->size; ++i)
        world->owner[i] = found == NULL ? range : NULL;
    if (found != NULL)
        free(found);
}

static void tree_answers_as_a_naive_list(uint64_t seed) {
    struct world *world = calloc(1, sizeof *world);
    BASE_CHECK(world != NULL);
    struct base_random random = base_random_init(seed, "range_tree");
    for (int step = 0; step < 4000; ++step) {
        base_check_context("seed %llu, step %d", (unsigned long long)seed, step);
        world_change(world, &random);
        const uint64_t point = base_random_below(&random, SPAN);
        const uint64_t size = base_random_between(&random, 1, 70);
        BASE_CHECK(sim__range_at(&world->tree, point) == world->owner[point]);
        BASE_CHECK(sim__range_below(&world->tree, point) == naive_below(world, point));
        BASE_CHECK(sim__range_fitting(&world->tree, size) == naive_fitting(world, size));
        BASE_CHECK(sim__range_first(&world->tree) == naive_fitting(world, 1));
        BASE_CHECK((sim__range_overlapping(&world->tree, point, size) != NULL) ==
                   (naive_overlapping(world, point, size) != NULL));
    }
    while (world->tree.root != NULL) {
        struct sim__range *range = world->tree.root;
        sim__range_remove(&world->tree, range);
        free(range);
    }
    free(world);
}

static void space_merges_what_is_given_back(void) {
    struct sim__range_tree space = {0};
    sim__space_give(&space, 100, 900);
    sim__space_take(&space, 200, 100);
    sim__space_take(&space, 400, 100);
    BASE_CHECK_EQ(sim__range_fitting(&space, 1)->start, 100);
    BASE_CHECK_EQ(sim__range_fitting(&space, 101)->start, 500);
    sim__space_give(&space, 200, 100);
    BASE_CHECK_EQ(sim__range_first(&space)->size, 300);
    sim__space_give(&space, 400, 100);
    BASE_CHECK_EQ(sim__range_first(&space)->start, 100);
    BASE_CHECK_EQ(sim__range_first(&space)->size, 900);
    sim__space_clear(&space);
    BASE_CHECK(sim__range_first(&space) == NULL);
}

int main(void) {
    for (uint64_t seed = 1; seed <= 10; ++seed)
        tree_answers_as_a_naive_list(seed);
    space_merges_what_is_given_back();
    printf("range_tree: seeds 1 to 10\n");
    return 0;
}
