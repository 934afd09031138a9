// x_retry_search and x_wait, where memory runs short: what each gains, what it costs, and that it
// is off by default. Streams are held, so that the test says when work is done.
#include "allocator/testing.h"
#include "simulator/sim_race.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static uint64_t waits(void) { return sim_call_count(SIM_CALL_EVENT_SYNCHRONIZE); }

// Device work that writes a block. Nothing runs: there is accounting only.
static void no_body(const void *argument) { (void)argument; }
static void write_block(cudaStream_t stream, void *pointer, size_t size, uint64_t bytes) {
    const struct sim_access access = {SIM_ACCESS_WRITE, pointer, .size = size};
    const struct sim_kernel kernel = {
        .name = "write", .body = no_body, .bytes = bytes, .accesses = &access, .access_count = 1};
    BASE_CHECK_EQ(sim_launch_kernel(stream, &kernel), cudaSuccess);
}

static enum base_status try_malloc(struct allocator *allocator, size_t size, cudaStream_t stream,
                                   void **pointer) {
    return allocator_malloc(allocator, 0, size, stream, pointer);
}

// pt#189504: the block that fits waits for an event, its segment cannot be released.
static void the_block_that_was_waited_for_serves(const char *config, bool serves) {
    struct allocator *const allocator = testing_create(config, 4 * GIB);
    const cudaStream_t user = testing_held_stream();
    testing_free(allocator, testing_malloc(allocator, 3584 * MIB, NULL));
    void *const a = testing_malloc(allocator, 3 * GIB, NULL);
    void *const b = testing_malloc(allocator, 256 * MIB, NULL);
    testing_free_after_use(allocator, a, user);
    void *again = NULL;
    const enum base_status status = try_malloc(allocator, 3 * GIB, NULL, &again);
    BASE_CHECK_EQ(status, serves ? BASE_OK : BASE_OUT_OF_MEMORY);
    BASE_CHECK_EQ(waits(), 1);
    // The fault: the same call succeeds when it is made again.
    if (!serves) again = testing_malloc(allocator, 3 * GIB, NULL);
    BASE_CHECK(again == a);
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.num_ooms, !serves);
    BASE_CHECK_EQ(stats.num_alloc_retries, !serves);
    BASE_CHECK_EQ(stats.segment[ALLOCATOR_STAT_ALL].current, 1);
    testing_free(allocator, b);
    cca_check(allocator);
    allocator_destroy(allocator);
}

// Eight blocks of 1 GiB fill the device; each was used on a stream of its own. 1 GiB is asked for.
static void a_request_waits_for_one_block_of_eight(const char *config, uint64_t expected_waits) {
    struct allocator *const allocator = testing_create(config, 8 * GIB);
    void *blocks[8];
    cudaStream_t users[8];
    for (int index = 0; index < 8; ++index) {
        blocks[index] = testing_malloc(allocator, GIB, NULL);
        users[index] = testing_held_stream();
    }
    for (int index = 0; index < 8; ++index)
        testing_free_after_use(allocator, blocks[index], users[index]);
    void *const again = testing_malloc(allocator, GIB, NULL);
    BASE_CHECK_EQ(waits(), expected_waits);
    uint64_t working = 0;
    for (int index = 0; index < 8; ++index)
        working += sim_stream_pending(users[index]) > 0;
    BASE_CHECK_EQ(working, 8 - expected_waits);
    struct cca_pending_frees numbers;
    BASE_CHECK_EQ(cca_pending_frees(allocator, 0, &numbers), BASE_OK);
    BASE_CHECK_EQ(numbers.blocks, 8 - expected_waits);
    const struct allocator_stats stats = testing_stats(allocator);
    // Nothing cached went back if the wait alone did.
    BASE_CHECK_EQ(stats.num_device_free, expected_waits == 1 ? 0 : 8);
    BASE_CHECK_EQ(stats.num_sync_all_streams, expected_waits == 1 ? 0 : 1);
    testing_free(allocator, again);
    cca_check(allocator);
    allocator_destroy(allocator);
}

// Three neighbours of one segment, 1 + 2 + 3 GiB: for 5 GiB two have to come back, the third is
// not waited for, nor is a small block alone in its segment. Alone in its segment lies a block of 5
// GiB used by two streams: one block to wait for, so it goes first.
static void neighbours_that_fit_together_are_waited_for(bool has_large_block) {
    struct allocator *const allocator = testing_create("x_wait:enough", 12 * GIB);
    const cudaStream_t users[3] = {testing_held_stream(), testing_held_stream(),
                                   testing_held_stream()};
    testing_free_after_use(allocator, testing_malloc(allocator, GIB, NULL), testing_held_stream());
    testing_free(allocator, testing_malloc(allocator, 6 * GIB, NULL));
    void *const one = testing_malloc(allocator, GIB, NULL);
    void *const two = testing_malloc(allocator, 2 * GIB, NULL);
    void *const three = testing_malloc(allocator, 3 * GIB, NULL);
    void *const large = testing_malloc(allocator, 5 * GIB, NULL);
    testing_free_after_use(allocator, two, users[0]);
    testing_free_after_use(allocator, three, users[1]);
    if (has_large_block) {
        BASE_CHECK_EQ(allocator_record_stream(allocator, large, users[1]), BASE_OK);
        testing_free_after_use(allocator, large, users[2]);
    }
    void *const again = testing_malloc(allocator, 5 * GIB, NULL);
    BASE_CHECK(again == (has_large_block ? large : two));
    BASE_CHECK_EQ(waits(), 2);
    BASE_CHECK_EQ(sim_stream_pending(users[0]), has_large_block);
    testing_free(allocator, one);
    cca_check(allocator);
    allocator_destroy(allocator);
}

// Where the own blocks do not do, everything is waited for: blocks of another stream go back to the
// device.
static void what_own_blocks_cannot_do_waits_for_all(void) {
    struct allocator *const allocator = testing_create("x_wait:enough", 8 * GIB);
    const cudaStream_t other = testing_stream(), user = testing_held_stream();
    void *const own = testing_malloc(allocator, 2 * GIB, NULL);
    void *const others = testing_malloc(allocator, 6 * GIB, other);
    testing_free_after_use(allocator, own, user);
    testing_free_after_use(allocator, others, user);
    testing_free(allocator, testing_malloc(allocator, 7 * GIB, NULL));
    BASE_CHECK_EQ(waits(), 2);
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.num_sync_all_streams, 1);
    BASE_CHECK_EQ(stats.num_device_free, 2);
    cca_check(allocator);
    allocator_destroy(allocator);
}

// While expandable_segments is off, expandable blocks serve nobody: the one that waits, first in
// the order of the streams, is not waited for.
static void blocks_that_serve_nobody_are_not_waited_for(void) {
    struct allocator *const allocator =
        testing_create("expandable_segments:True,x_wait:enough", 4000 * MIB);
    const cudaStream_t users[2] = {testing_held_stream(), testing_held_stream()};
    BASE_CHECK(users[0] < users[1]);
    void *const expandable = testing_malloc(allocator, 1000 * MIB, NULL);
    BASE_CHECK_EQ(cca_set_config(allocator, "expandable_segments:False,x_wait:enough"), BASE_OK);
    void *const block = testing_malloc(allocator, 1000 * MIB, NULL);
    void *const kept = testing_malloc(allocator, 2000 * MIB, NULL);
    testing_free_after_use(allocator, expandable, users[0]);
    testing_free_after_use(allocator, block, users[1]);
    BASE_CHECK(testing_malloc(allocator, 1000 * MIB, NULL) == block);
    BASE_CHECK_EQ(waits(), 1);
    BASE_CHECK_GT(sim_stream_pending(users[0]), 0);
    testing_free(allocator, kept);
    cca_check(allocator);
    allocator_destroy(allocator);
}

// A wait that fails ends the request, and nothing is lost: the next one waits again.
static void a_wait_that_fails_is_told(void) {
    struct allocator *const allocator = testing_create("x_wait:enough", 2 * GIB);
    const cudaStream_t users[2] = {testing_held_stream(), testing_held_stream()};
    void *const blocks[2] = {testing_malloc(allocator, GIB, NULL),
                             testing_malloc(allocator, GIB, NULL)};
    for (int index = 0; index < 2; ++index)
        testing_free_after_use(allocator, blocks[index], users[index]);
    void *again = NULL;
    sim_fault_next(SIM_CALL_EVENT_SYNCHRONIZE, 1, cudaErrorUnknown);
    BASE_CHECK_EQ(try_malloc(allocator, GIB, NULL, &again), BASE_CUDA);
    BASE_CHECK(testing_message_has("cudaEventSynchronize"));
    BASE_CHECK_EQ(waits(), 1);
    cca_check(allocator);
    BASE_CHECK(testing_malloc(allocator, GIB, NULL) == blocks[0]);
    BASE_CHECK_EQ(waits(), 2);
    cca_check(allocator);
    allocator_destroy(allocator);
}

// pt#171771: how long the host stands still. One block's kernel moves 1 TB, the other's 100 TB.
static uint64_t stall_ns(const char *config) {
    BASE_CHECK_EQ(sim_schedule("timed"), BASE_OK);
    struct allocator *const allocator = testing_create(config, 2 * GIB);
    const cudaStream_t users[2] = {testing_stream(), testing_stream()};
    void *blocks[2];
    for (int index = 0; index < 2; ++index)
        blocks[index] = testing_malloc(allocator, GIB, NULL);
    for (int index = 0; index < 2; ++index) {
        write_block(users[index], blocks[index], GIB,
                    index == 0 ? UINT64_C(1000000000000) : UINT64_C(100000000000000));
        testing_free_after_use(allocator, blocks[index], users[index]);
    }
    const uint64_t before = sim_time_ns();
    void *const again = testing_malloc(allocator, GIB, NULL);
    const uint64_t stall = sim_time_ns() - before;
    BASE_CHECK(again != NULL);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_schedule("eager"), BASE_OK);
    return stall;
}

int main(void) {
    the_block_that_was_waited_for_serves("", false);
    the_block_that_was_waited_for_serves("x_retry_search:True", true);
    the_block_that_was_waited_for_serves("x_wait:enough", true);
    the_block_that_was_waited_for_serves("x_retry_search:True,x_wait:enough", true);
    a_request_waits_for_one_block_of_eight("", 8);
    a_request_waits_for_one_block_of_eight("x_wait:enough", 1);
    a_request_waits_for_one_block_of_eight("x_wait:enough,x_retry_search:True", 1);
    neighbours_that_fit_together_are_waited_for(false);
    neighbours_that_fit_together_are_waited_for(true);
    what_own_blocks_cannot_do_waits_for_all();
    blocks_that_serve_nobody_are_not_waited_for();
    a_wait_that_fails_is_told();
    BASE_CHECK_GT(stall_ns(""), 50 * stall_ns("x_wait:enough"));
}
