// x_reclaim_idle: what it takes from another stream, what it leaves, and that it is off by default.
// Streams are held, so that the test says when work is done.
#include "allocator/testing.h"
#include "allocator/testing_race.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static uint64_t waits(void) { return sim_call_count(SIM_CALL_EVENT_SYNCHRONIZE); }

// Megatron-LM#6885: what a side stream left in its cache serves the main stream.
static void an_idle_segment_changes_streams(const char *config, bool reclaims) {
    struct allocator *const allocator = testing_create(config, 64 * GIB);
    const cudaStream_t side = testing_stream();
    void *const left = testing_malloc(allocator, 20 * GIB, side);
    testing_free(allocator, left);
    const uint64_t records = sim_call_count(SIM_CALL_EVENT_RECORD);
    void *const taken = testing_malloc(allocator, 20 * GIB, NULL);
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(taken == left, reclaims);
    BASE_CHECK_EQ(stats.reserved_bytes[ALLOCATOR_STAT_ALL].peak, (reclaims ? 20 : 40) * GIB);
    BASE_CHECK_EQ(stats.num_device_alloc, reclaims ? 1 : 2);
    BASE_CHECK_EQ(stats.num_device_free, 0);
    BASE_CHECK_EQ(stats.segment[ALLOCATOR_STAT_ALL].current, reclaims ? 1 : 2);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_EVENT_RECORD) - records, reclaims);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_STREAM_WAIT_EVENT), reclaims);
    BASE_CHECK_EQ(waits(), 0); // the host stands still for nothing
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_STREAM_SYNCHRONIZE), 0);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_DEVICE_SYNCHRONIZE), 0);
    cca_check(allocator);
    testing_free(allocator, taken);
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    for (size_t index = 0; index < snapshot.segment_count; ++index)
        if (snapshot.segments[index].address == taken)
            BASE_CHECK(snapshot.segments[index].stream == NULL);
    allocator_snapshot_deinit(&snapshot);
    // The cache of the main stream has it now, so nobody is asked again.
    BASE_CHECK(testing_malloc(allocator, 20 * GIB, NULL) == taken);
    cca_check(allocator);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

// What is safe about it: the work of the stream that takes the memory starts behind all that the
// other one did with it.
static void the_new_owner_waits_for_the_old_one_on_the_device(void) {
    struct allocator *const allocator = testing_create("x_reclaim_idle:True", 8 * GIB);
    testing_race_start();
    const cudaStream_t side = testing_held_stream(), other = testing_stream();
    void *const left = testing_malloc(allocator, GIB, side);
    sim_block_give(testing_race_take(left, GIB, side));
    testing_free(allocator, left);
    void *const taken = testing_malloc(allocator, GIB, other);
    BASE_CHECK(taken == left);
    (void)testing_race_take(taken, GIB, other);
    BASE_CHECK_GT(sim_stream_pending(other), 0);
    sim_stream_hold(side, false);
    BASE_CHECK_EQ(sim_stream_pending(other), 0);
    testing_race_stop();
    allocator_destroy(allocator);
}

// A segment stays where it is if it is much larger than what would be asked of the device, if it is
// not wholly free, or if its bytes wait for an event.
static void what_is_no_idle_segment_stays(void) {
    struct allocator *const allocator = testing_create("x_reclaim_idle:True", 8 * GIB);
    const cudaStream_t side = testing_stream(), user = testing_held_stream();
    void *const wide = testing_malloc(allocator, 100 * MIB, side);
    testing_free(allocator, wide);
    BASE_CHECK(testing_malloc(allocator, 80 * MIB, NULL) != wide);       // 20 MiB too many
    BASE_CHECK(testing_malloc(allocator, 80 * MIB + 512, NULL) == wide); // 18: in whole 2 MiB
    void *const kept = testing_malloc(allocator, 4 * MIB, side);
    BASE_CHECK_EQ(testing_stats(allocator).num_device_alloc, 3);
    BASE_CHECK(testing_malloc(allocator, 4 * MIB, NULL) != (char *)kept + 4 * MIB);
    void *const pending = testing_malloc(allocator, 40 * MIB, side);
    testing_free_after_use(allocator, pending, user);
    BASE_CHECK(testing_malloc(allocator, 40 * MIB, NULL) != pending);
    cca_check(allocator);
    allocator_destroy(allocator);
}

// A segment that max_split_size would not let the request have in its own cache.
static void an_oversize_segment_stays(void) {
    struct allocator *const allocator =
        testing_create("x_reclaim_idle:True,max_split_size_mb:64", 8 * GIB);
    const cudaStream_t side = testing_stream();
    void *const oversize = testing_malloc(allocator, 66 * MIB, side);
    testing_free(allocator, oversize);
    BASE_CHECK(testing_malloc(allocator, 60 * MIB, NULL) != oversize);
    BASE_CHECK_EQ(cca_set_config(allocator, "x_reclaim_idle:False,max_split_size_mb:64"), BASE_OK);
    BASE_CHECK(testing_malloc(allocator, 66 * MIB, side) == oversize);
    BASE_CHECK_EQ(cca_set_config(allocator, "x_reclaim_idle:True,max_split_size_mb:64"), BASE_OK);
    testing_free(allocator, oversize);
    BASE_CHECK(testing_malloc(allocator, 64 * MIB, NULL) == oversize);
    cca_check(allocator);
    allocator_destroy(allocator);
}

// Of two equal ones that of the stream with the lower handle, whichever is older.
static void of_equal_segments_that_of_the_first_stream_is_taken(void) {
    for (int first = 0; first < 2; ++first) {
        struct allocator *const allocator = testing_create("x_reclaim_idle:True", 8 * GIB);
        const cudaStream_t sides[2] = {testing_stream(), testing_stream()};
        void *left[2];
        BASE_CHECK(sides[0] < sides[1]);
        left[first] = testing_malloc(allocator, GIB, sides[first]);
        left[1 - first] = testing_malloc(allocator, GIB, sides[1 - first]);
        testing_free(allocator, left[0]);
        testing_free(allocator, left[1]);
        BASE_CHECK(testing_malloc(allocator, GIB, NULL) == left[0]);
        BASE_CHECK(testing_malloc(allocator, GIB, NULL) == left[1]);
        cca_check(allocator);
        allocator_destroy(allocator);
    }
}

static void small_segments_change_streams_too(void) {
    struct allocator *const allocator = testing_create("x_reclaim_idle:True", 8 * GIB);
    const cudaStream_t side = testing_stream();
    char *const left = testing_malloc(allocator, 1000, side);
    char *const beside = testing_malloc(allocator, 1000, side);
    testing_free(allocator, left);
    testing_free(allocator, beside);
    BASE_CHECK(testing_malloc(allocator, 1, NULL) == left);
    BASE_CHECK(testing_malloc(allocator, 1, NULL) == left + 512);
    // What the side stream knew of the addresses is gone.
    BASE_CHECK_EQ(allocator_free(allocator, beside), BASE_INVALID_POINTER);
    testing_free(allocator, left);
    testing_free(allocator, left + 512);
    BASE_CHECK(testing_malloc(allocator, 5, side) == left);
    cca_check(allocator);
    allocator_destroy(allocator);
}

// Without an order nothing changes hands: the device is asked.
static void a_segment_that_cannot_be_ordered_stays(void) {
    static const enum sim_call calls[] = {SIM_CALL_EVENT_CREATE, SIM_CALL_EVENT_RECORD,
                                          SIM_CALL_STREAM_WAIT_EVENT};
    for (size_t index = 0; index < sizeof calls / sizeof calls[0]; ++index) {
        struct allocator *const allocator = testing_create("x_reclaim_idle:True", 8 * GIB);
        const cudaStream_t side = testing_stream();
        void *const left = testing_malloc(allocator, GIB, side);
        testing_free(allocator, left);
        sim_fault_next(calls[index], 1, cudaErrorInvalidResourceHandle);
        BASE_CHECK(testing_malloc(allocator, GIB, NULL) != left);
        BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
        cca_check(allocator);
        BASE_CHECK(testing_malloc(allocator, GIB, NULL) == left); // the next one has it
        cca_check(allocator);
        allocator_destroy(allocator);
    }
}

static void a_destroyed_stream_keeps_its_cache_until_everything_is_released(void) {
    struct allocator *const allocator = testing_create("x_reclaim_idle:True", 4 * GIB);
    const cudaStream_t side = testing_stream();
    void *const left = testing_malloc(allocator, 3 * GIB, side);
    testing_free(allocator, left);
    BASE_CHECK_EQ(cudaStreamDestroy(side), cudaSuccess);
    BASE_CHECK(testing_malloc(allocator, 3 * GIB, NULL) != left);
    BASE_CHECK_EQ(testing_stats(allocator).num_alloc_retries, 1);
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void a_capture_takes_nothing_and_gives_nothing(void) {
    struct allocator *const allocator = testing_create("x_reclaim_idle:True", 8 * GIB);
    const cudaStream_t side = testing_stream(), other = testing_stream();
    void *const left = testing_malloc(allocator, GIB, side);
    testing_free(allocator, left);
    BASE_CHECK_EQ(cudaStreamBeginCapture(side, cudaStreamCaptureModeRelaxed), cudaSuccess);
    void *const taken = testing_malloc(allocator, GIB, other);
    BASE_CHECK(taken != left);
    cudaGraph_t graph;
    BASE_CHECK_EQ(cudaStreamEndCapture(side, &graph), cudaSuccess); // it was left alone
    size_t nodes = 9;
    BASE_CHECK_EQ(cudaGraphGetNodes(graph, NULL, &nodes), cudaSuccess);
    BASE_CHECK_EQ(nodes, 0);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    allocator_destroy(allocator);
}

// One handle, a stream in each thread: an event on it orders the calling thread's work only.
static void the_stream_of_each_thread_takes_nothing_and_gives_nothing(void) {
    struct allocator *const allocator = testing_create("x_reclaim_idle:True", 8 * GIB);
    const cudaStream_t side = testing_stream();
    void *const own = testing_malloc(allocator, GIB, cudaStreamPerThread);
    testing_free(allocator, own);
    void *const left = testing_malloc(allocator, GIB, side);
    BASE_CHECK(left != own);
    testing_free(allocator, left);
    BASE_CHECK(testing_malloc(allocator, GIB, cudaStreamPerThread) == own);
    BASE_CHECK(testing_malloc(allocator, GIB, cudaStreamPerThread) != left);
    cca_check(allocator);
    allocator_destroy(allocator);
}

struct seen {
    int freed, taken;
    void *freed_at, *taken_at;
    cudaStream_t freed_stream, taken_stream;
};
static void on_event(void *context, const struct allocator_event *event) {
    struct seen *const seen = context;
    if (event->action == ALLOCATOR_SEGMENT_FREE) {
        ++seen->freed;
        seen->freed_at = event->address;
        seen->freed_stream = event->stream;
    } else if (event->action == ALLOCATOR_SEGMENT_ALLOC) {
        ++seen->taken;
        seen->taken_at = event->address;
        seen->taken_stream = event->stream;
    }
}

static void the_observer_sees_the_segment_leave_and_come(void) {
    struct allocator *const allocator = testing_create("x_reclaim_idle:True", 8 * GIB);
    const cudaStream_t side = testing_stream();
    void *const left = testing_malloc(allocator, GIB, side);
    testing_free(allocator, left);
    struct seen seen = {0};
    BASE_CHECK_EQ(allocator_set_observer(allocator, &(struct allocator_observer){on_event, &seen}),
                  BASE_OK);
    BASE_CHECK(testing_malloc(allocator, GIB, NULL) == left);
    BASE_CHECK_EQ(seen.freed, 1);
    BASE_CHECK_EQ(seen.taken, 1);
    BASE_CHECK(seen.freed_at == left && seen.taken_at == left);
    BASE_CHECK(seen.freed_stream == side && seen.taken_stream == NULL);
    allocator_destroy(allocator);
}

int main(void) {
    an_idle_segment_changes_streams("", false);
    an_idle_segment_changes_streams("x_reclaim_idle:True", true);
    the_new_owner_waits_for_the_old_one_on_the_device();
    what_is_no_idle_segment_stays();
    an_oversize_segment_stays();
    of_equal_segments_that_of_the_first_stream_is_taken();
    small_segments_change_streams_too();
    a_segment_that_cannot_be_ordered_stays();
    a_destroyed_stream_keeps_its_cache_until_everything_is_released();
    a_capture_takes_nothing_and_gives_nothing();
    the_stream_of_each_thread_takes_nothing_and_gives_nothing();
    the_observer_sees_the_segment_leave_and_come();
}
