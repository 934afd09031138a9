// Requests at a wanted address. The recorded decisions are in golden/ (rule-alloc-at); here is what
// no recording has.
#include "allocator/testing.h"
#include "base/random.h"

#define MIB BASE_MIB

static void *malloc_at(struct allocator *allocator, size_t size, cudaStream_t stream,
                       const char *base, size_t offset) {
    void *pointer = NULL;
    const enum base_status status =
        cca_malloc_at(allocator, 0, size, stream, (char *)(uintptr_t)base + offset, &pointer);
    BASE_CHECK(status == BASE_OK || status == BASE_INVALID_VALUE);
    cca_check(allocator);
    if (status != BASE_OK) return NULL;
    BASE_CHECK(pointer == base + offset);
    return pointer;
}

// A page-table window of 1 MiB names one large block. Here the request and the part before it share
// one: both must be found later, each when it is handed out.
static void a_large_block_may_begin_close_behind_the_one_before_it(const char *config) {
    struct allocator *const allocator = testing_create(config, BASE_GIB);
    char *const base = testing_malloc(allocator, 20 * MIB, NULL);
    testing_free(allocator, base);
    for (int round = 0; round < 3; ++round) {
        void *const block = malloc_at(allocator, 2 * MIB, NULL, base, 512);
        BASE_CHECK(block != NULL);
        testing_free(allocator, block);
        // The whole, whose window the block above had.
        void *const whole = testing_malloc(allocator, 20 * MIB, NULL);
        BASE_CHECK(whole == base);
        BASE_CHECK_EQ(allocator_free(allocator, base + 512), BASE_INVALID_POINTER);
        testing_free(allocator, whole);
    }
    BASE_CHECK_EQ(testing_stats(allocator).allocated_bytes[ALLOCATOR_STAT_ALL].current, 0);
    allocator_destroy(allocator);
}

static void what_is_not_free_or_not_there_is_refused(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    cudaStream_t other = testing_stream();
    char *const base = testing_malloc(allocator, 20 * MIB, NULL);
    BASE_CHECK(malloc_at(allocator, 2 * MIB, NULL, base, 0) == NULL); // in use
    testing_free(allocator, base);
    const struct allocator_stats before = testing_stats(allocator);
    const uint64_t calls = sim_call_count(SIM_CALL_MALLOC);
    BASE_CHECK(malloc_at(allocator, 2 * MIB, other, base, 0) == NULL);  // another stream's
    BASE_CHECK(malloc_at(allocator, 1000, NULL, base, 0) == NULL);      // a small request
    BASE_CHECK(malloc_at(allocator, 2 * MIB, NULL, base, 100) == NULL); // not aligned
    BASE_CHECK(testing_message_has("must be aligned to kMinBlockSize (512 bytes)"));
    BASE_CHECK(malloc_at(allocator, 2 * MIB, NULL, base, 19 * MIB) == NULL); // beyond the end
    BASE_CHECK(testing_message_has("Could not allocate CUDA storage at exact address"));
    BASE_CHECK(malloc_at(allocator, SIZE_MAX, NULL, base, 0) == NULL);
    BASE_CHECK(malloc_at(allocator, 2 * MIB, NULL, NULL, 0) == NULL);
    const struct allocator_stats after = testing_stats(allocator);
    BASE_CHECK(memcmp(&before, &after, sizeof before) == 0);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_MALLOC), calls);
    BASE_CHECK(malloc_at(allocator, 18 * MIB, NULL, base, 2 * MIB) != NULL);
    allocator_destroy(allocator);
}

// The part before the address cannot be cut off a block that max_split_size keeps whole.
static void an_oversize_part_is_not_cut_off(void) {
    struct allocator *const allocator = testing_create("max_split_size_mb:30", BASE_GIB);
    char *const base = testing_malloc(allocator, 100 * MIB, NULL);
    testing_free(allocator, base);
    BASE_CHECK(malloc_at(allocator, 2 * MIB, NULL, base, 30 * MIB) == NULL);
    BASE_CHECK(malloc_at(allocator, 2 * MIB, NULL, base, 28 * MIB) != NULL);
    allocator_destroy(allocator);
}

// Blocks of expandable segments are cut whatever their size.
static void an_oversize_part_of_an_expandable_segment_is_cut_off(void) {
    struct allocator *const allocator =
        testing_create("max_split_size_mb:30,expandable_segments:True", BASE_GIB);
    char *const base = testing_malloc(allocator, 100 * MIB, NULL);
    testing_free(allocator, base);
    BASE_CHECK(malloc_at(allocator, 2 * MIB, NULL, base, 60 * MIB) != NULL);
    BASE_CHECK_EQ(testing_stats(allocator).oversize_allocations.allocated, 2);
    BASE_CHECK_EQ(testing_stats(allocator).oversize_allocations.current, 0);
    allocator_destroy(allocator);
}

// It is the setting that says how blocks are cut, not where they come from.
static void a_block_of_an_expandable_segment_is_cut_as_the_setting_now_says(void) {
    struct allocator *const allocator = testing_create("expandable_segments:True", BASE_GIB);
    char *const base = testing_malloc(allocator, 60 * MIB, NULL);
    testing_free(allocator, base);
    BASE_CHECK_EQ(cca_set_config(allocator, "expandable_segments:False,max_split_size_mb:30"),
                  BASE_OK);
    BASE_CHECK(malloc_at(allocator, 2 * MIB, NULL, base, 40 * MIB) == NULL); // 40 cannot be cut off
    BASE_CHECK(malloc_at(allocator, 50 * MIB, NULL, base, 0) != NULL);
    BASE_CHECK_EQ(testing_stats(allocator).allocated_bytes[ALLOCATOR_STAT_ALL].current,
                  60 * (int64_t)MIB);
    allocator_destroy(allocator);
}

// Between the hand-out of the part before and that of the request, all that follows the part is
// inactive split: a peak, also where another stream's counters make the sum.
static void the_way_there_is_a_peak(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    (void)testing_malloc(allocator, 64 * MIB, testing_stream());
    char *const base = testing_malloc(allocator, 46 * MIB, NULL);
    testing_free(allocator, base);
    BASE_CHECK(malloc_at(allocator, 26 * MIB, NULL, base, 2 * MIB) != NULL);
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.inactive_split_bytes[ALLOCATOR_STAT_ALL].peak, 44 * (int64_t)MIB);
    BASE_CHECK_EQ(stats.inactive_split_bytes[ALLOCATOR_STAT_ALL].current, 20 * (int64_t)MIB);
    BASE_CHECK_EQ(stats.active[ALLOCATOR_STAT_ALL].peak, 3);
    allocator_destroy(allocator);
}

// Random requests, some at addresses that the snapshot shows, free or not.
#define BLOCKS_MAX 64

static char *pick_address(struct base_random *random, struct allocator *allocator) {
    struct allocator_snapshot snapshot;
    char *address = NULL;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    if (snapshot.block_count > 0) {
        const struct allocator_snapshot_block *const block =
            &snapshot.blocks[base_random_below(random, snapshot.block_count)];
        address = (char *)block->address + 512 * base_random_below(random, block->size / 512);
    }
    allocator_snapshot_deinit(&snapshot);
    return address;
}

static bool is_free(struct allocator *allocator, const char *address, size_t size) {
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    bool found = false;
    for (size_t index = 0; index < snapshot.block_count; ++index) {
        const struct allocator_snapshot_block *const block = &snapshot.blocks[index];
        const char *const start = block->address;
        found |= block->state == ALLOCATOR_BLOCK_INACTIVE && address >= start &&
                 address + size <= start + block->size;
    }
    allocator_snapshot_deinit(&snapshot);
    return found;
}

static void any_order_of_requests_at_addresses_is_served(const char *config, uint64_t seed) {
    struct base_random random = base_random_init(seed, "malloc at");
    struct allocator *const allocator = testing_create(config, 4 * BASE_GIB);
    void *blocks[BLOCKS_MAX];
    size_t count = 0, served = 0;
    base_check_context("--seed %llu, \"%s\"", (unsigned long long)seed, config);
    for (int step = 0; step < 2000; ++step) {
        if (count == BLOCKS_MAX || (count > 0 && base_random_chance(&random, 0.45))) {
            const size_t index = base_random_below(&random, count);
            testing_free(allocator, blocks[index]);
            blocks[index] = blocks[--count];
            continue;
        }
        const bool is_small = base_random_chance(&random, 0.3);
        const size_t size = 512 * (is_small ? 1 + base_random_below(&random, 2048)
                                            : 2049 + base_random_below(&random, 20000));
        char *const address = pick_address(&random, allocator);
        if (address == NULL || base_random_chance(&random, 0.3)) {
            blocks[count++] = testing_malloc(allocator, size, NULL);
            continue;
        }
        void *pointer = NULL;
        const bool fits = is_free(allocator, address, size);
        const enum base_status status = cca_malloc_at(allocator, 0, size, NULL, address, &pointer);
        // A free block of the other pool is the one that does not count.
        BASE_CHECK(status == BASE_OK ? fits : status == BASE_INVALID_VALUE);
        if (status == BASE_OK) blocks[count++] = pointer;
        served += status == BASE_OK;
        cca_check(allocator);
    }
    while (count > 0)
        testing_free(allocator, blocks[--count]);
    BASE_CHECK(served > 100);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    BASE_CHECK_EQ(testing_stats(allocator).reserved_bytes[ALLOCATOR_STAT_ALL].current, 0);
    base_check_context(NULL);
    allocator_destroy(allocator);
}

int main(void) {
    a_large_block_may_begin_close_behind_the_one_before_it("");
    a_large_block_may_begin_close_behind_the_one_before_it("expandable_segments:True");
    what_is_not_free_or_not_there_is_refused();
    an_oversize_part_is_not_cut_off();
    an_oversize_part_of_an_expandable_segment_is_cut_off();
    a_block_of_an_expandable_segment_is_cut_as_the_setting_now_says();
    the_way_there_is_a_peak();
    for (uint64_t seed = 1; seed <= 5; ++seed) {
        any_order_of_requests_at_addresses_is_served("", seed);
        any_order_of_requests_at_addresses_is_served("expandable_segments:True", seed);
    }
    return 0;
}
