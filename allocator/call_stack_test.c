// Walks of made-up frames that lie on this thread's stack, and the cache that knows them again.
#include "allocator/call_stack.h"

#include "base/check.h"

#define PLACE 6 // in the cache; the other place of a walk is its neighbour, 7

static struct cca__stack_table table;
static struct cca__walk_cache cache;

// Two frames: the caller's frame, where to return.
struct chain {
    volatile uintptr_t inner[2], outer[2];
};

static void chain_init(struct chain *chain, uintptr_t inner_code, uintptr_t outer_code) {
    chain->inner[0] = (uintptr_t)chain->outer;
    chain->inner[1] = inner_code;
    chain->outer[0] = 0;
    chain->outer[1] = outer_code;
}

static uint32_t search(const struct chain *chain) {
    return cca__stack_search(&table, &cache, PLACE, (uintptr_t)chain->inner);
}

static void check_frames(uint32_t number, uintptr_t inner_code, uintptr_t outer_code) {
    const struct cca__stack *const stack = &table.stacks[number];
    BASE_CHECK_EQ(stack->count, 2);
    BASE_CHECK_EQ((uintptr_t)table.frames[stack->first], inner_code);
    BASE_CHECK_EQ((uintptr_t)table.frames[stack->first + 1], outer_code);
}

// What is walked has to lie on the thread's stack: AddressSanitizer would move locals elsewhere.
#define ON_THE_STACK __attribute__((no_sanitize("address")))

ON_THE_STACK static void two_walks_of_one_place_stay_known(void) {
    struct chain first, second, third;
    chain_init(&first, 0x1000, 0x2000);
    chain_init(&second, 0x3000, 0x2000);
    chain_init(&third, 0x4000, 0x2000);
    const uint32_t of_first = search(&first), of_second = search(&second);
    check_frames(of_first, 0x1000, 0x2000);
    check_frames(of_second, 0x3000, 0x2000);
    BASE_CHECK_EQ(cache.walks[PLACE].stack, of_second);
    BASE_CHECK_EQ(cache.walks[PLACE ^ 1].stack, of_first);
    BASE_CHECK_EQ(search(&first), of_first); // and nobody moves
    BASE_CHECK_EQ(cache.walks[PLACE].stack, of_second);
    const uint32_t of_third = search(&third); // drives the first one out
    BASE_CHECK_EQ(cache.walks[PLACE].stack, of_third);
    BASE_CHECK_EQ(cache.walks[PLACE ^ 1].stack, of_second);
    BASE_CHECK_EQ(search(&first), of_first); // the same stack, walked anew
}

ON_THE_STACK static void a_walk_whose_words_changed_is_made_anew(void) {
    struct chain chain;
    chain_init(&chain, 0x5000, 0x6000);
    const uint32_t before = search(&chain);
    BASE_CHECK(cca__walk_is_of(&cache.walks[PLACE], (uintptr_t)chain.inner));
    chain.outer[1] = 0x7000;
    BASE_CHECK(!cca__walk_is_of(&cache.walks[PLACE], (uintptr_t)chain.inner));
    const uint32_t after = search(&chain);
    check_frames(before, 0x5000, 0x6000);
    check_frames(after, 0x5000, 0x7000);
}

static void frames_outside_of_the_stack_are_no_stack(void) {
    static struct chain outside;
    chain_init(&outside, 0x8000, 0x9000);
    BASE_CHECK_EQ(search(&outside), 0);
    BASE_CHECK(!cca__walk_is_of(&cache.walks[PLACE], (uintptr_t)outside.inner));
}

int main(void) {
    cca__stack_table_init(&table);
    two_walks_of_one_place_stay_known();
    a_walk_whose_words_changed_is_made_anew();
    frames_outside_of_the_stack_are_no_stack();
    cca__stack_table_deinit(&table);
    return 0;
}
