// The map against a plain array of pairs, under random sets, gets and removals.
#include "base/address_map.h"
#include "base/check.h"
#include "base/random.h"

#include <stdio.h>

#define KEY_COUNT 300

static void map_agrees_with_a_plain_array(uint64_t seed) {
    base_check_context("seed %lu", (unsigned long)seed);
    struct base_random random = base_random_init(seed, "address_map_test");
    uint64_t keys[KEY_COUNT], values[KEY_COUNT];
    bool present[KEY_COUNT] = {false};
    // Neighbouring pages, addresses far apart, and both ends of the range.
    for (size_t i = 0; i < KEY_COUNT; i++)
        keys[i] = i % 3 == 0   ? i * 512
                  : i % 3 == 1 ? UINT64_C(0x700000000000) + i * 0x200000
                               : UINT64_MAX - i * 1024;
    struct base_address_map map = {0};
    size_t count = 0;
    for (int step = 0; step < 20000; step++) {
        const size_t i = base_random_below(&random, KEY_COUNT);
        uint64_t value = 0, *place;
        switch (base_random_below(&random, 4)) {
        case 0:
            count += !present[i];
            present[i] = true;
            values[i] = base_random_next(&random) >> 1;
            BASE_CHECK_EQ(base_address_map_set(&map, keys[i], values[i]), BASE_OK);
            break;
        case 3:
            BASE_CHECK_EQ(base_address_map_place(&map, keys[i], &place), BASE_OK);
            BASE_CHECK_EQ(*place, present[i] ? values[i] : 0);
            *place = values[i] = base_random_next(&random) >> 1;
            count += !present[i];
            present[i] = true;
            break;
        case 1:
            BASE_CHECK_EQ(base_address_map_remove(&map, keys[i], &value), present[i]);
            if (present[i]) BASE_CHECK_EQ(value, values[i]);
            count -= present[i];
            present[i] = false;
            break;
        default:
            BASE_CHECK_EQ(base_address_map_get(&map, keys[i], &value), present[i]);
            if (present[i]) BASE_CHECK_EQ(value, values[i]);
        }
        BASE_CHECK_EQ(map.count, count);
    }
    for (size_t i = 0; i < KEY_COUNT; i++) {
        uint64_t value;
        BASE_CHECK_EQ(base_address_map_get(&map, keys[i], &value), present[i]);
    }
    base_address_map_deinit(&map);
    BASE_CHECK_EQ(map.count, 0);
}

static void empty_map_finds_and_removes_nothing(void) {
    struct base_address_map map = {0};
    uint64_t value;
    BASE_CHECK(!base_address_map_get(&map, 0, &value));
    BASE_CHECK(!base_address_map_remove(&map, 0, &value));
    base_address_map_deinit(&map);
}

int main(void) {
    empty_map_finds_and_removes_nothing();
    for (uint64_t seed = 1; seed <= 20; seed++)
        map_agrees_with_a_plain_array(seed);
    puts("address_map_test: ok, seeds 1 to 20");
    return 0;
}
