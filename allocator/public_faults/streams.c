// record_stream, and memory that waits for other streams.
#include "allocator/public_faults/case.h"
#include "allocator/public_faults/themes.h"
#include "base/thread.h"
#include "simulator/sim_race.h"

static void poll(struct allocator *allocator) {
    testing_free(allocator, testing_malloc(allocator, 512, NULL));
}

// N collectives in flight: N tensors of 64 MiB wait, and come back when the work is done.
static void collectives_in_flight(const struct public_fault_teller *teller) {
    enum { FLIGHT = 12 };
    struct allocator *const allocator = case_begin("", 8 * GIB);
    const cudaStream_t collective = testing_held_stream();
    for (int index = 0; index < FLIGHT; ++index)
        testing_free_after_use(allocator, testing_malloc(allocator, 64 * MIB, NULL), collective);
    tell(teller, "", "active but not allocated MiB", FLIGHT * 64,
         active_mib(allocator) - allocated_mib(allocator));
    sim_stream_hold(collective, false);
    poll(allocator);
    tell(teller, "", "the same after the work MiB", 0,
         active_mib(allocator) - allocated_mib(allocator));
    case_end(allocator);
}

// One stream stands still; the blocks that another one used come back all the same.
static void one_stream_stalled(const struct public_fault_teller *teller) {
    struct allocator *const allocator = case_begin("", 8 * GIB);
    const cudaStream_t stalled = testing_held_stream(), working = testing_stream();
    testing_free_after_use(allocator, testing_malloc(allocator, 256 * MIB, NULL), stalled);
    for (int index = 0; index < 4; ++index)
        testing_free_after_use(allocator, testing_malloc(allocator, 128 * MIB, NULL), working);
    poll(allocator);
    tell(teller, "", "waiting MiB", 256, active_mib(allocator));
    case_end(allocator);
}

// The same within one queue: a handle that names a stream in each thread. Another thread's stream
// stands still, with a block of 256 MiB; this one's four of 128 are done.
struct stalled_thread {
    struct allocator *allocator;
    struct base_mutex mutex;
    struct base_condition condition;
    bool is_stalled, may_go_on;
};
static void run_stalled_thread(void *argument) {
    struct stalled_thread *const stalled = argument;
    sim_stream_hold(cudaStreamPerThread, true);
    testing_free_after_use(stalled->allocator, testing_malloc(stalled->allocator, 256 * MIB, NULL),
                           cudaStreamPerThread);
    base_mutex_lock(&stalled->mutex);
    stalled->is_stalled = true;
    base_condition_broadcast(&stalled->condition);
    while (!stalled->may_go_on)
        base_condition_wait(&stalled->condition, &stalled->mutex);
    base_mutex_unlock(&stalled->mutex);
    sim_stream_hold(cudaStreamPerThread, false);
}
static void one_thread_stalled(const struct public_fault_teller *teller) {
    static const char *const configs[] = {"", "x_skip_stuck:True"};
    for (int index = 0; index < 2; ++index) {
        struct stalled_thread stalled = {.allocator = case_begin(configs[index], 8 * GIB),
                                         .mutex = BASE_MUTEX_INITIALIZER,
                                         .condition = BASE_CONDITION_INITIALIZER};
        struct base_thread thread;
        base_thread_start(&thread, run_stalled_thread, &stalled);
        base_mutex_lock(&stalled.mutex);
        while (!stalled.is_stalled)
            base_condition_wait(&stalled.condition, &stalled.mutex);
        base_mutex_unlock(&stalled.mutex);
        for (int count = 0; count < 4; ++count)
            testing_free_after_use(stalled.allocator,
                                   testing_malloc(stalled.allocator, 128 * MIB, NULL),
                                   cudaStreamPerThread);
        poll(stalled.allocator);
        tell(teller, configs[index], "waiting MiB", index == 0 ? 256 + 4 * 128 : 256,
             active_mib(stalled.allocator));
        base_mutex_lock(&stalled.mutex);
        stalled.may_go_on = true;
        base_condition_broadcast(&stalled.condition);
        base_mutex_unlock(&stalled.mutex);
        base_thread_join(&thread);
        case_end(stalled.allocator);
    }
}

// Thirty-two streams have work that waits, none of it for the stream that asks.
static void queries_of_others(const struct public_fault_teller *teller) {
    static const char *const configs[] = {"", "x_poll:own"};
    for (int index = 0; index < 2; ++index) {
        struct allocator *const allocator = case_begin(configs[index], 8 * GIB);
        const cudaStream_t own = testing_stream();
        for (int count = 0; count < 32; ++count)
            testing_free_after_use(allocator, testing_malloc(allocator, MIB, NULL),
                                   testing_held_stream());
        const uint64_t before = sim_call_count(SIM_CALL_EVENT_QUERY);
        (void)testing_malloc(allocator, MIB, own);
        tell(teller, configs[index], "event queries of one request", index == 0 ? 32 : 0,
             (int64_t)(sim_call_count(SIM_CALL_EVENT_QUERY) - before));
        case_end(allocator);
    }
}

// 4 GiB. 3.5 reserved and free; 3 and 0.25 GiB of it taken, the first one used elsewhere and freed.
static void fits_after_the_wait(const struct public_fault_teller *teller) {
    static const char *const configs[] = {"", "x_retry_search:True", "x_wait:enough"};
    for (int index = 0; index < 3; ++index) {
        struct allocator *const allocator = case_begin(configs[index], 4 * GIB);
        const cudaStream_t user = testing_held_stream();
        testing_free(allocator, testing_malloc(allocator, 3584 * MIB, NULL));
        void *const a = testing_malloc(allocator, 3 * GIB, NULL);
        (void)testing_malloc(allocator, 256 * MIB, NULL);
        testing_free_after_use(allocator, a, user);
        void *const again = case_malloc(allocator, 3 * GIB, NULL);
        tell(teller, configs[index], "out of memory", index == 0, again == NULL);
        tell(teller, configs[index], "event waits", 1,
             (int64_t)sim_call_count(SIM_CALL_EVENT_SYNCHRONIZE));
        tell(teller, configs[index], "at the address of the block", index != 0, again == a);
        if (again == NULL)
            tell(teller, "", "the same call fails again", 0,
                 case_malloc(allocator, 3 * GIB, NULL) == NULL);
        case_end(allocator);
    }
}

// Sixteen blocks wait for streams of their own; one would do.
static void waits_for_all(const struct public_fault_teller *teller) {
    static const char *const configs[] = {"", "x_wait:enough"};
    for (int index = 0; index < 2; ++index) {
        struct allocator *const allocator = case_begin(configs[index], 16 * GIB);
        void *blocks[16];
        for (int count = 0; count < 16; ++count)
            blocks[count] = testing_malloc(allocator, GIB, NULL);
        for (int count = 0; count < 16; ++count)
            testing_free_after_use(allocator, blocks[count], testing_held_stream());
        (void)testing_malloc(allocator, GIB, NULL);
        tell(teller, configs[index], "event waits", index == 0 ? 16 : 1,
             (int64_t)sim_call_count(SIM_CALL_EVENT_SYNCHRONIZE));
        tell(teller, configs[index], "segments given back", index == 0 ? 16 : 0,
             testing_stats(allocator).num_device_free);
        case_end(allocator);
    }
}

// A side stream takes 20 GiB once; the main stream takes 20 GiB.
static void orphan(const struct public_fault_teller *teller, uint64_t capacity) {
    static const char *const configs[] = {"", "x_reclaim_idle:True"};
    const bool is_tight = capacity < 40 * GIB;
    for (int index = 0; index < 2; ++index) {
        struct allocator *const allocator = case_begin(configs[index], capacity);
        const cudaStream_t side = testing_stream();
        void *const left = testing_malloc(allocator, 20 * GIB, side);
        testing_free(allocator, left);
        void *const taken = case_malloc(allocator, 20 * GIB, NULL);
        const struct allocator_stats stats = testing_stats(allocator);
        tell(teller, configs[index], "out of memory", 0, taken == NULL);
        tell(teller, configs[index], "retries", is_tight && index == 0, stats.num_alloc_retries);
        tell(teller, configs[index], "peak reserved MiB", (is_tight || index == 1 ? 20 : 40) * 1024,
             stats.reserved_bytes[ALLOCATOR_STAT_ALL].peak >> 20);
        tell(teller, configs[index], "reserved MiB", (is_tight || index == 1 ? 20 : 40) * 1024,
             reserved_mib(allocator));
        tell(teller, configs[index], "memory of the other stream, without an order", 0,
             taken == left && sim_call_count(SIM_CALL_STREAM_WAIT_EVENT) == 0);
        case_end(allocator);
    }
}
static void orphan_with_room(const struct public_fault_teller *teller) { orphan(teller, 64 * GIB); }
static void orphan_without_room(const struct public_fault_teller *teller) {
    orphan(teller, 32 * GIB);
}

// base[5:] is told to record_stream; base is freed and asked for again while the work goes on.
static void a_view_is_recorded(const struct public_fault_teller *teller) {
    struct allocator *const allocator = case_begin("", 8 * GIB);
    const cudaStream_t user = testing_held_stream();
    char *const base = testing_malloc(allocator, 4 * MIB, NULL);
    testing_free_after_use(allocator, testing_malloc(allocator, 512, NULL), user);
    BASE_CHECK_EQ(allocator_record_stream(allocator, base + 5 * sizeof(float), user), BASE_OK);
    testing_free(allocator, base);
    tell(teller, "", "reused while in use", 0, case_malloc(allocator, 4 * MIB, NULL) == base);
    sim_stream_hold(user, false);
    tell(teller, "", "reused afterwards", 1, case_malloc(allocator, 4 * MIB, NULL) == base);
    case_end(allocator);
}

static void no_body(const void *argument) { (void)argument; }
static void use(cudaStream_t stream, enum sim_access_mode mode, void *pointer, size_t size) {
    const struct sim_access access = {mode, pointer, .size = size};
    const struct sim_kernel kernel = {
        .name = "use", .body = no_body, .accesses = &access, .access_count = 1};
    BASE_CHECK_EQ(sim_launch_kernel(stream, &kernel), cudaSuccess);
}
static void order(cudaStream_t first, cudaStream_t second, cudaEvent_t event) {
    BASE_CHECK_EQ(cudaEventRecord(event, first), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
}

// A block of the first stream goes through the others, in order, and is freed; then it is asked for
// again. RECORDS: the program says so. Returns what the race checker reports.
static int64_t races(size_t size, int stream_count, bool records) {
    struct allocator *const allocator = case_begin("", 8 * GIB);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    cudaStream_t streams[3];
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    for (int index = 0; index < stream_count; ++index)
        streams[index] = testing_held_stream();
    void *const pointer = testing_malloc(allocator, size, streams[0]);
    uint64_t block = sim_block_take(pointer, size, streams[0], "block");
    use(streams[0], SIM_ACCESS_WRITE, pointer, size);
    for (int index = 1; index < stream_count; ++index) {
        order(streams[index - 1], streams[index], event);
        use(streams[index], SIM_ACCESS_READ, pointer, size);
        if (!records) continue;
        BASE_CHECK_EQ(allocator_record_stream(allocator, pointer, streams[index]), BASE_OK);
        sim_block_use(block, streams[index]);
    }
    sim_block_give(block);
    testing_free(allocator, pointer);
    void *const again = testing_malloc(allocator, size, streams[0]);
    (void)sim_block_take(again, size, streams[0], "again");
    use(streams[0], SIM_ACCESS_WRITE, again, size);
    const int64_t count = (int64_t)sim_race_count(SIM_RACE_REUSE);
    sim_race_stop();
    allocator_destroy(allocator);
    return count;
}

// A copy to the host on a side stream; the storage goes without record_stream.
static void copy_on_a_side_stream(const struct public_fault_teller *teller) {
    tell(teller, "", "early reuse found, record_stream forgotten", 1,
         races(64 * MIB, 2, false) > 0);
    tell(teller, "", "early reuse with record_stream", 0, races(64 * MIB, 2, true));
}

// default, a stream of one's own, NCCL's: four buffers of 4096 x 4096 floats.
static void three_streams(const struct public_fault_teller *teller) {
    const size_t size = (size_t)4 * 4096 * 4096 * sizeof(float);
    tell(teller, "", "early reuse found, record_stream forgotten", 1, races(size, 3, false) > 0);
    tell(teller, "", "early reuse with record_stream", 0, races(size, 3, true));
}

// Ten buffers of 100 MiB, sent one after the other while the host runs ahead: they wait together;
// held by reference until the host waited, one is enough.
static void late_free(const struct public_fault_teller *teller) {
    for (int waits = 0; waits < 2; ++waits) {
        struct allocator *const allocator = case_begin("", 8 * GIB);
        const cudaStream_t sender = testing_held_stream();
        for (int index = 0; index < 10; ++index) {
            void *const buffer = testing_malloc(allocator, 100 * MIB, NULL);
            if (waits == 0) {
                testing_free_after_use(allocator, buffer, sender);
            } else {
                BASE_CHECK_EQ(cudaStreamSynchronize(sender), cudaSuccess);
                testing_free(allocator, buffer);
            }
        }
        tell(teller, "",
             waits == 0 ? "peak reserved with record_stream MiB"
                        : "peak reserved with references MiB",
             waits == 0 ? 1000 : 100,
             testing_stats(allocator).reserved_bytes[ALLOCATOR_STAT_ALL].peak >> 20);
        case_end(allocator);
    }
}

const struct public_fault_case public_faults_streams[PUBLIC_FAULTS_STREAMS_COUNT] = {
    {.names = "pt#147168 torchtitan#735",
     .pattern = "every collective marks its tensor; the host runs ahead",
     .run = collectives_in_flight},
    {.names = "pt#71616",
     .pattern = "an unfinished event at the head hides finished ones",
     .run = one_stream_stalled},
    {.names = "pt#71745",
     .pattern = "the same where one handle names a stream in each thread",
     .better = "x_skip_stuck:True",
     .run = one_thread_stalled},
    {.names = "polling-of-many-streams",
     .pattern = "every request asks every stream of the device",
     .better = "x_poll:own",
     .run = queries_of_others},
    {.names = "pt#183501",
     .pattern = "the same in the pool of host memory",
     .elsewhere = "there is no pool of host memory here"},
    {.names = "pt#189504",
     .pattern = "what was waited for fits, but only the device is asked again",
     .better = "x_retry_search:True",
     .run = fits_after_the_wait},
    {.names = "pt#171771",
     .pattern = "all recorded blocks are waited for though one would do",
     .better = "x_wait:enough",
     .run = waits_for_all},
    {.names = "Megatron-LM#6885",
     .pattern = "the cache of a side stream never serves the main stream",
     .better = "x_reclaim_idle:True",
     .run = orphan_with_room},
    {.names = "pt#27366",
     .pattern = "record_stream on a view with an offset does nothing",
     .run = a_view_is_recorded},
    {.names = "torchrec#4231",
     .pattern = "an asynchronous copy on a side stream, without record_stream",
     .run = copy_on_a_side_stream},
    {.names = "pt#188655", .pattern = "three streams, record_stream dropped", .run = three_streams},
    {.names = "pt#91096 pt#86836",
     .pattern = "blocks are attributed to a stream that does not need them",
     .elsewhere = "a report: the snapshot carries the stream of each segment"},
    {.names = "DeepEP#455",
     .pattern = "late frees raise the peak, references do not",
     .run = late_free},
    {.names = "pt#182222",
     .pattern = "only another stream has a free block of the size",
     .better = "x_reclaim_idle:True",
     .run = orphan_without_room},
    {.names = "pt#181191",
     .pattern = "reuse ordered by the program's own events",
     .elsewhere = "a proposal for another interface"},
};
