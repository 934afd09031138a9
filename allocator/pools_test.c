// Private pools through the program's calls. PyTorch's decisions about them are in golden/
// (pools-*, rule-pool-*, rule-oom-private); here is what no recording has.
#include "allocator/pools.h"

#include "allocator/testing.h"

#include <stdlib.h>

#define MIB BASE_MIB

static struct allocator_pool_id user(uint64_t number) {
    return (struct allocator_pool_id){.user = number};
}

static void ok(enum base_status status) {
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
}

static int64_t count_of(struct allocator *allocator, uint64_t number) {
    int64_t count;
    ok(cca_pool_count(allocator, 0, user(number), &count));
    return count;
}

// One request inside a scope of the pool.
static void *take(struct allocator *allocator, uint64_t number, size_t size, cudaStream_t stream) {
    ok(cca_pool_begin(allocator, 0, user(number), NULL));
    void *const block = testing_malloc(allocator, size, stream);
    ok(cca_pool_end(allocator, 0, user(number)));
    ok(cca_pool_release(allocator, 0, user(number)));
    return block;
}

static int64_t reserved(struct allocator *allocator) {
    return testing_stats(allocator).reserved_bytes[ALLOCATOR_STAT_ALL].current;
}

//------------------------------------------------------------------------------------------------
// Pools come and go.

// More objects than there are numbers for streams, had each pool its own for
// ever.
static void pools_that_are_gone_leave_no_streams_behind(void) {
    struct allocator *const allocator = testing_create("", 4 * BASE_GIB);
    cudaStream_t streams[20];
    for (int index = 0; index < 20; ++index)
        streams[index] = testing_stream();
    for (uint64_t number = 1; number <= 1700; ++number) {
        void *blocks[20];
        ok(cca_pool_begin(allocator, 0, user(number), NULL));
        for (int index = 0; index < 20; ++index)
            blocks[index] = testing_malloc(allocator, 1000, streams[index]);
        ok(cca_pool_end(allocator, 0, user(number)));
        for (int index = 0; index < 20; ++index)
            testing_free(allocator, blocks[index]);
        ok(cca_pool_destroy(allocator, 0, user(number)));
        if (number % 500 == 1) cca_check(allocator);
    }
    BASE_CHECK_EQ(reserved(allocator), 0);
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void a_released_pool_lives_until_its_last_block_is_freed(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    int64_t count;
    ok(cca_pool_create(allocator, 0, user(1), NULL));
    void *const kept = take(allocator, 1, 30 * MIB, NULL);
    testing_free(allocator, take(allocator, 1, 1000, NULL));
    ok(allocator_empty_cache(allocator)); // not freeable
    BASE_CHECK_EQ(reserved(allocator), 32 * MIB);
    ok(cca_pool_destroy(allocator, 0, user(1)));
    BASE_CHECK_EQ(reserved(allocator), 30 * MIB);
    BASE_CHECK_EQ(count_of(allocator, 1), 0);
    BASE_CHECK_EQ(cca_pool_create(allocator, 0, user(1), NULL), BASE_INVALID_VALUE);
    testing_free(allocator, kept);
    BASE_CHECK_EQ(reserved(allocator), 30 * MIB);
    ok(allocator_empty_cache(allocator));
    BASE_CHECK_EQ(reserved(allocator), 0);
    BASE_CHECK_EQ(cca_pool_count(allocator, 0, user(1), &count), BASE_INVALID_VALUE);
    ok(cca_pool_create(allocator, 0, user(1), NULL)); // a new one
    BASE_CHECK_EQ(count_of(allocator, 1), 1);
    cca_check(allocator);
    allocator_destroy(allocator);
}

// PyTorch counts mappings there and would forget a pool whose memory is in use.
static void a_pool_of_expandable_segments_stays_while_it_has_memory(void) {
    struct allocator *const allocator = testing_create("expandable_segments:True", BASE_GIB);
    ok(cca_pool_begin(allocator, 0, user(1), NULL));
    testing_free(allocator, testing_malloc(allocator, 60 * MIB,
                                           NULL)); // one mapping of 3 pages
    void *const front = testing_malloc(allocator, 20 * MIB, NULL);
    void *const middle = testing_malloc(allocator, 20 * MIB, NULL);
    ok(cca_pool_end(allocator, 0, user(1)));
    testing_free(allocator, front);
    ok(cca_pool_destroy(allocator, 0, user(1))); // two ranges are unmapped
    BASE_CHECK_EQ(reserved(allocator), 20 * MIB);
    BASE_CHECK_EQ(count_of(allocator, 1), 0);
    cca_check(allocator);
    testing_free(allocator, middle);
    ok(cca_pool_empty_cache(allocator, 0, user(1)));
    BASE_CHECK_EQ(reserved(allocator), 0);
    cca_check(allocator);
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// Requests without a pool when the device is full.

static bool accepts_none(void *context, cudaStream_t stream) {
    (void)context;
    (void)stream;
    return false;
}

// The error is PyTorch's; that it leaves a use too many is not, but with
// x_torch_faults.
static void a_fallback_on_a_pool_with_a_scope_fails(const char *config, int64_t count_after) {
    struct allocator *const allocator = testing_create(config, 64 * MIB);
    void *pointer = NULL;
    ok(cca_pool_create(allocator, 0, user(1), NULL));
    ok(cca_pool_set_use_on_oom(allocator, 0, user(1), true));
    void *const block = take(allocator, 1, 40 * MIB, NULL);
    testing_free(allocator, block);
    ok(cca_pool_begin(allocator, 0, user(1), &(struct cca_pool_filter){.accepts = accepts_none}));
    BASE_CHECK_EQ(count_of(allocator, 1), 2);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 40 * MIB, NULL, &pointer), BASE_INVALID_VALUE);
    BASE_CHECK(testing_message_has("already recording to mempool_id"));
    BASE_CHECK_EQ(count_of(allocator, 1), count_after);
    BASE_CHECK_EQ(testing_stats(allocator).num_ooms, 0);
    ok(cca_pool_end(allocator, 0, user(1)));
    BASE_CHECK(testing_malloc(allocator, 40 * MIB, NULL) == block);
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void a_block_lent_to_a_request_without_a_pool_comes_back_to_its_pool(void) {
    struct allocator *const allocator = testing_create("", 64 * MIB);
    cudaStream_t other = testing_stream();
    void *pointer = NULL;
    ok(cca_pool_create(allocator, 0, user(1), NULL));
    ok(cca_pool_set_use_on_oom(allocator, 0, user(1), true));
    void *const block = take(allocator, 1, 40 * MIB, NULL);
    testing_free(allocator, block);
    // Another stream's memory is none for this request.
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 40 * MIB, other, &pointer), BASE_OUT_OF_MEMORY);
    void *const lent = testing_malloc(allocator, 40 * MIB, NULL);
    BASE_CHECK(lent == block);
    testing_free(allocator, lent);
    BASE_CHECK(take(allocator, 1, 40 * MIB, NULL) == block);
    testing_free(allocator, block);
    ok(cca_pool_set_use_on_oom(allocator, 0, user(1), false));
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 40 * MIB, NULL, &pointer), BASE_OUT_OF_MEMORY);
    ok(cca_pool_destroy(allocator, 0, user(1)));
    testing_free(allocator, testing_malloc(allocator, 40 * MIB, NULL));
    cca_check(allocator);
    allocator_destroy(allocator);
}

// Its memory is released and taken anew, not lent any more.
static void a_pool_that_was_destroyed_lends_nothing(void) {
    struct allocator *const allocator = testing_create("", 64 * MIB);
    ok(cca_pool_create(allocator, 0, user(1), NULL));
    ok(cca_pool_set_use_on_oom(allocator, 0, user(1), true));
    void *const block = take(allocator, 1, 40 * MIB, NULL);
    ok(cca_pool_destroy(allocator, 0, user(1)));
    testing_free(allocator, block);
    BASE_CHECK_EQ(testing_stats(allocator).num_device_free, 0);
    (void)testing_malloc(allocator, 40 * MIB, NULL);
    BASE_CHECK_EQ(testing_stats(allocator).num_device_free, 1);
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void no_pool_means_the_cache_of_the_device(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    testing_free(allocator, testing_malloc(allocator, 30 * MIB, NULL));
    ok(cca_pool_empty_cache(allocator, 0, user(5))); // is none
    BASE_CHECK_EQ(reserved(allocator), 30 * MIB);
    ok(cca_pool_empty_cache(allocator, 0, (struct allocator_pool_id){0}));
    BASE_CHECK_EQ(reserved(allocator), 0);
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// Allocators of their own.

struct own_memory {
    size_t bytes, calls;
    uintptr_t next;
};

static void *own_allocate(void *context, size_t size, int device, cudaStream_t stream) {
    struct own_memory *const own = context;
    (void)stream;
    BASE_CHECK_EQ(device, 0);
    if (own->bytes + size > 100 * MIB) return NULL;
    own->bytes += size;
    ++own->calls;
    own->next += size + 2 * MIB;
    return (void *)(own->next - size);
}

static void own_free(void *context, void *memory, size_t size, int device, cudaStream_t stream) {
    struct own_memory *const own = context;
    (void)memory;
    (void)stream;
    BASE_CHECK_EQ(device, 0);
    own->bytes -= size;
}

static void segments_of_a_raw_allocator_go_back_to_it(const char *config) {
    struct allocator *const allocator = testing_create(config, BASE_GIB);
    struct own_memory own = {.next = (uintptr_t)0x600000000000};
    void *pointer = NULL;
    const struct cca_raw_allocator raw = {own_allocate, own_free, &own};
    ok(cca_pool_create(allocator, 0, user(1), &raw));
    void *const first = take(allocator, 1, 30 * MIB, NULL);
    void *const second = take(allocator, 1, 1000, NULL);
    BASE_CHECK_EQ(own.bytes, 32 * MIB);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_MALLOC), 0);
    ok(cca_pool_begin(allocator, 0, user(1), NULL));
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 80 * MIB, NULL, &pointer), BASE_OUT_OF_MEMORY);
    BASE_CHECK(testing_message_has("The custom allocator backing this MemPool returned nullptr."));
    ok(cca_pool_end(allocator, 0, user(1)));
    ok(cca_pool_release(allocator, 0, user(1)));
    testing_free(allocator, first);
    ok(cca_pool_destroy(allocator, 0, user(1)));
    BASE_CHECK_EQ(own.bytes, 2 * MIB);
    cca_check(allocator);
    (void)second;
    allocator_destroy(allocator); // what is in use as well
    BASE_CHECK_EQ(own.bytes, 0);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_FREE), 0);
}

//------------------------------------------------------------------------------------------------
// Other streams.

static void frees_of_a_pool_wait_for_the_streams_that_use_them(const char *config) {
    struct allocator *const allocator = testing_create(config, BASE_GIB);
    cudaStream_t user_stream = testing_stream();
    ok(cca_pool_create(allocator, 0, user(1), NULL));
    sim_stream_hold(user_stream, true);
    char *const block = take(allocator, 1, 4 * MIB, NULL);
    ok(allocator_record_stream(allocator, block + 100,
                               user_stream)); // a view of it
    testing_free(allocator, block);
    void *const while_used = take(allocator, 1, 4 * MIB, NULL);
    BASE_CHECK(while_used != block);
    BASE_CHECK_EQ(allocator_free(allocator, block), BASE_INVALID_POINTER);
    sim_stream_run(user_stream, UINT64_MAX);
    BASE_CHECK(take(allocator, 1, 4 * MIB, NULL) == block);
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void emptying_a_pool_waits_for_its_own_frees_alone(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    cudaStream_t user_stream = testing_stream();
    void *const outside = testing_malloc(allocator, 30 * MIB, NULL);
    void *const inside = take(allocator, 1, 30 * MIB, NULL); // makes the pool, and lets it go
    ok(allocator_record_stream(allocator, outside, user_stream));
    ok(allocator_record_stream(allocator, inside, user_stream));
    sim_stream_hold(user_stream, true);
    testing_free(allocator, outside);
    testing_free(allocator, inside);
    BASE_CHECK_EQ(count_of(allocator, 1), 0);
    ok(cca_pool_empty_cache(allocator, 0, user(1)));
    BASE_CHECK_EQ(reserved(allocator), 30 * MIB);
    BASE_CHECK_EQ(testing_stats(allocator).active[ALLOCATOR_STAT_ALL].current, 1);
    cca_check(allocator);
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// What is told.

// As PyTorch counts, whoever may have it.
static void the_largest_block_may_be_one_of_a_pool(void) {
    struct allocator *const allocator = testing_create("", 64 * MIB);
    size_t largest;
    void *const block = take(allocator, 1, 40 * MIB, NULL);
    ok(allocator_largest_block(allocator, 0, &largest));
    BASE_CHECK_EQ(largest, 24 * MIB);
    testing_free(allocator, block);
    ok(allocator_largest_block(allocator, 0, &largest));
    BASE_CHECK_EQ(largest, 40 * MIB);
    allocator_destroy(allocator);
}

static void a_snapshot_may_be_of_one_pool(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    struct allocator_snapshot snapshot;
    void *blocks[4] = {testing_malloc(allocator, 20 * MIB, NULL)};
    for (uint64_t number = 1; number <= 3; ++number)
        blocks[number] = take(allocator, number, 20 * MIB, NULL);
    for (uint64_t number = 0; number <= 4; ++number) {
        static const size_t segment_counts[] = {4, 1, 1, 1, 0};
        ok(cca_pool_snapshot(allocator, user(number), &snapshot));
        BASE_CHECK_EQ(snapshot.segment_count, segment_counts[number]);
        if (snapshot.segment_count == 1) {
            BASE_CHECK_EQ(snapshot.segments[0].pool.user, number);
            BASE_CHECK(snapshot.segments[0].address == blocks[number]);
        }
        allocator_snapshot_deinit(&snapshot);
    }
    allocator_destroy(allocator);
}

static void history_goes_on_to_name_a_pool_that_is_gone(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    struct allocator_snapshot snapshot;
    ok(cca_record_history(
        allocator, &(struct cca_history_options){.enabled = CCA_HISTORY_ALL, .max_entries = 100}));
    for (uint64_t number = 1; number <= 2; ++number) {
        testing_free(allocator, take(allocator, number, 1000, NULL));
        ok(cca_pool_empty_cache(allocator, 0, user(number)));
    }
    testing_malloc(allocator, 1000, NULL);
    ok(allocator_snapshot(allocator, &snapshot));
    static const uint64_t expected[] = {1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 0, 0};
    BASE_CHECK_EQ(snapshot.entry_count, 12);
    for (size_t index = 0; index < 12; ++index)
        BASE_CHECK_EQ(snapshot.entries[index].pool.user, expected[index]);
    allocator_snapshot_deinit(&snapshot);
    allocator_destroy(allocator);
}

static void statistics_of_a_pool_outlive_it_and_can_be_reset(void) {
    struct allocator *const allocator = testing_create("", BASE_GIB);
    struct cca_pool_stats *pools = NULL;
    size_t count = 0;
    ok(cca_pool_stats(allocator, 0, &pools, &count));
    BASE_CHECK_EQ(count, 0);
    free(pools);
    testing_free(allocator, take(allocator, 7, 30 * MIB, NULL));
    ok(cca_pool_empty_cache(allocator, 0, user(7)));
    ok(cca_pool_stats(allocator, 0, &pools, &count));
    BASE_CHECK_EQ(count, 1);
    BASE_CHECK_EQ(pools[0].id.user, 7);
    const struct allocator_stat *const large = &pools[0].reserved_bytes[ALLOCATOR_STAT_LARGE_POOL];
    BASE_CHECK_EQ(large->current, 0);
    BASE_CHECK_EQ(large->peak, 30 * MIB);
    BASE_CHECK_EQ(large->allocated, 30 * MIB);
    BASE_CHECK_EQ(large->freed, 30 * MIB);
    free(pools);
    ok(allocator_reset_peak_stats(allocator, 0));
    ok(allocator_reset_accumulated_stats(allocator, 0));
    ok(cca_pool_stats(allocator, 0, &pools, &count));
    BASE_CHECK_EQ(pools[0].reserved_bytes[ALLOCATOR_STAT_ALL].peak, 0);
    BASE_CHECK_EQ(pools[0].reserved_bytes[ALLOCATOR_STAT_ALL].allocated, 0);
    free(pools);
    allocator_destroy(allocator);
}

int main(void) {
    pools_that_are_gone_leave_no_streams_behind();
    a_released_pool_lives_until_its_last_block_is_freed();
    a_pool_of_expandable_segments_stays_while_it_has_memory();
    a_fallback_on_a_pool_with_a_scope_fails("", 2);
    a_fallback_on_a_pool_with_a_scope_fails("x_torch_faults:True", 3);
    a_block_lent_to_a_request_without_a_pool_comes_back_to_its_pool();
    a_pool_that_was_destroyed_lends_nothing();
    no_pool_means_the_cache_of_the_device();
    segments_of_a_raw_allocator_go_back_to_it("");
    segments_of_a_raw_allocator_go_back_to_it("release_lock_on_cudamalloc:True");
    segments_of_a_raw_allocator_go_back_to_it("expandable_segments:True");
    frees_of_a_pool_wait_for_the_streams_that_use_them("");
    frees_of_a_pool_wait_for_the_streams_that_use_them("x_poll:own");
    emptying_a_pool_waits_for_its_own_frees_alone();
    the_largest_block_may_be_one_of_a_pool();
    a_snapshot_may_be_of_one_pool();
    history_goes_on_to_name_a_pool_that_is_gone();
    statistics_of_a_pool_outlive_it_and_can_be_reset();
    return 0;
}
