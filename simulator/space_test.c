// Free space against a naive map of numbers, under random giving and taking.
#include "simulator/space.h"

#include "base/check.h"
#include "base/random.h"

#include <stdio.h>
#include <string.h>

#define SPAN 1024

static struct sim__space space;
static bool is_free[SPAN + 1]; // the last stays false
static uint64_t stamps[SPAN + 1];

static bool naive_find(uint64_t size, struct sim__range *range) {
    for (uint64_t start = 0; start < SPAN; ++start) {
        if (!is_free[start])
            continue;
        uint64_t end = start;
        while (is_free[end])
            ++end;
        if (end - start >= size) {
            *range = (struct sim__range){start, end - start};
            return true;
        }
        start = end;
    }
    return false;
}

static bool naive_find_stamped(uint64_t size, uint64_t stamp, struct sim__range *range) {
    for (uint64_t start = 0; start < SPAN; ++start) {
        if (!is_free[start])
            continue;
        uint64_t end = start;
        while (is_free[end])
            ++end;
        if (end - start >= size && stamps[start] <= stamp) {
            *range = (struct sim__range){start, end - start};
            return true;
        }
        start = end;
    }
    return false;
}

// All of a free range carries the greatest stamp of what it is made of.
static void naive_stamp(uint64_t start, uint64_t end, uint64_t stamp) {
    while (start > 0 && is_free[start - 1])
        --start;
    while (is_free[end])
        ++end;
    for (uint64_t i = start; i < end; ++i)
        if (stamps[i] > stamp)
            stamp = stamps[i];
    for (uint64_t i = start; i < end; ++i)
        stamps[i] = stamp;
}

// Turns a stretch that is wholly free or wholly taken into the other.
static void turn(struct base_random *random) {
    const uint64_t start = base_random_below(random, SPAN);
    const bool was_free = is_free[start];
    const uint64_t wanted = base_random_log_between(random, 1, 200);
    uint64_t end = start;
    while (end < SPAN && end - start < wanted && is_free[end] == was_free)
        is_free[end++] = !was_free;
    if (was_free)
        sim__space_take(&space, start, end - start);
    if (was_free)
        return;
    const uint64_t stamp = base_random_below(random, 4) * base_random_below(random, 100);
    for (uint64_t i = start; i < end; ++i)
        stamps[i] = 0;
    if (stamp == 0)
        sim__space_give(&space, start, end - start);
    else
        sim__space_give_stamped(&space, start, end - start, stamp);
    naive_stamp(start, end, stamp);
}

static void space_answers_as_a_naive_map(uint64_t seed) {
    struct base_random random = base_random_init(seed, "space_test");
    memset(is_free, 0, sizeof is_free);
    for (int step = 0; step < 4000; ++step) {
        base_check_context("seed %llu, step %d", (unsigned long long)seed, step);
        turn(&random);
        const uint64_t size = base_random_log_between(&random, 1, 300);
        struct sim__range found = {0}, expected = {0};
        BASE_CHECK_EQ(sim__space_find(&space, size, &found), naive_find(size, &expected));
        BASE_CHECK_EQ(found.start, expected.start);
        BASE_CHECK_EQ(found.size, expected.size);

        const uint64_t stamp = base_random_below(&random, 300),
                       at = base_random_below(&random, SPAN);
        uint64_t found_stamp = 0, end = at;
        found = expected = (struct sim__range){0};
        const bool any = naive_find_stamped(size, stamp, &expected);
        BASE_CHECK_EQ(sim__space_find_stamped(&space, size, stamp, &found, &found_stamp), any);
        BASE_CHECK_EQ(found.start, expected.start);
        BASE_CHECK_EQ(found.size, expected.size);
        if (any)
            BASE_CHECK_EQ(found_stamp, stamps[expected.start]);
        while (is_free[end])
            ++end;
        BASE_CHECK_EQ(sim__space_holds(&space, at, size), end - at >= size);
    }
    sim__space_clear(&space);
    struct sim__range none;
    BASE_CHECK(!sim__space_find(&space, 1, &none));
}

int main(void) {
    for (uint64_t seed = 1; seed <= 10; ++seed)
        space_answers_as_a_naive_map(seed);
    printf("space: seeds 1 to 10\n");
    return 0;
}
