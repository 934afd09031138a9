// Fences on one side stream pass in the order in which they were set, and no more streams are used
// than that needs.
#include "workload/replay_plan.h"

#include "base/check.h"
#include "base/random.h"

#define COUNT 500

static void in_order_needs_one_stream(void) {
    const uint64_t keys[] = {4, 4, 6, 9, UINT64_MAX, UINT64_MAX};
    uint16_t streams[6];
    uint64_t numbers[6];
    BASE_CHECK_EQ(workload__fences_assign(keys, 6, streams, numbers), 1);
    for (uint64_t i = 0; i < 6; i++) {
        BASE_CHECK_EQ(streams[i], 0);
        BASE_CHECK_EQ(numbers[i], i + 1);
    }
}

static void reversed_needs_one_stream_each_up_to_the_limit(void) {
    uint64_t keys[WORKLOAD__SIDE_STREAM_COUNT_MAX + 1],
        numbers[WORKLOAD__SIDE_STREAM_COUNT_MAX + 1];
    uint16_t streams[WORKLOAD__SIDE_STREAM_COUNT_MAX + 1];
    for (uint64_t i = 0; i <= WORKLOAD__SIDE_STREAM_COUNT_MAX; i++) keys[i] = 1000 - i;
    BASE_CHECK_EQ(
        workload__fences_assign(keys, WORKLOAD__SIDE_STREAM_COUNT_MAX + 1, streams, numbers),
        WORKLOAD__SIDE_STREAM_COUNT_MAX);
    BASE_CHECK_EQ(streams[WORKLOAD__SIDE_STREAM_COUNT_MAX], WORKLOAD__SIDE_STREAM_NONE);
}

// The fewest streams = the longest strictly falling sequence of keys (Dilworth), found here by
// trying all predecessors.
static void random_keys_use_the_fewest_streams(uint64_t seed) {
    base_check_context("seed %llu", (unsigned long long)seed);
    struct base_random random = base_random_init(seed, "keys");
    uint64_t keys[COUNT], numbers[COUNT];
    uint16_t streams[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) keys[i] = i + base_random_below(&random, 12);
    const uint16_t used = workload__fences_assign(keys, COUNT, streams, numbers);
    uint64_t longest = 0, falling[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        falling[i] = 1;
        for (size_t j = 0; j < i; j++)
            if (keys[j] > keys[i] && falling[j] + 1 > falling[i]) falling[i] = falling[j] + 1;
        if (falling[i] > longest) longest = falling[i];
    }
    BASE_CHECK_EQ(used, longest);
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < i; j++)
            if (streams[i] == streams[j]) {
                BASE_CHECK_LE(keys[j], keys[i]);
                BASE_CHECK_LT(numbers[j], numbers[i]);
            }
}

int main(void) {
    in_order_needs_one_stream();
    reversed_needs_one_stream_each_up_to_the_limit();
    for (uint64_t seed = 1; seed <= 20; seed++) random_keys_use_the_fewest_streams(seed);
    return 0;
}
