// Captured graphs and private pools.
#include "allocator/captures.h"
#include "allocator/public_faults/case.h"
#include "allocator/public_faults/themes.h"
#include "allocator/shortage.h"
#include "base/random.h"
#include "base/thread.h"

static const struct allocator_pool_id pool_id = {.user = 1};

#define OK(call) BASE_CHECK_EQ(call, BASE_OK)
#define CUDA(call) BASE_CHECK_EQ(call, cudaSuccess)

// A capture of a stream, as PyTorch's CUDAGraph makes one.
struct capture {
    struct allocator *allocator;
    struct allocator_pool_id id;
    cudaStream_t stream;
    _Atomic(unsigned long long) number;
    struct cca_pool_filter filter;
};

static void capture_begin(struct capture *capture, struct allocator *allocator, uint64_t id) {
    enum cudaStreamCaptureStatus state;
    unsigned long long number;
    *capture =
        (struct capture){.allocator = allocator, .id = {.capture = id}, .stream = testing_stream()};
    capture->filter = cca_capture_filter(&capture->number);
    OK(cca_pool_begin(allocator, 0, capture->id, &capture->filter));
    CUDA(cudaStreamBeginCapture(capture->stream, cudaStreamCaptureModeGlobal));
    CUDA(cudaStreamGetCaptureInfo(capture->stream, &state, &number, NULL, NULL, NULL, NULL));
    capture->number = number;
    OK(cca_capture_begin(allocator, 0,
                         &(struct cca_capture){.id = number, .stream = capture->stream}));
}

// Whether the driver has a graph of it.
static bool capture_end(struct capture *capture) {
    cudaGraph_t graph = NULL;
    const bool is_valid = cudaStreamEndCapture(capture->stream, &graph) == cudaSuccess;
    if (is_valid)
        CUDA(cudaGraphDestroy(graph));
    else
        (void)cudaGetLastError();
    OK(cca_capture_end(capture->allocator, 0, capture->number));
    OK(cca_pool_end(capture->allocator, 0, capture->id));
    return is_valid;
}

// 60 GiB freed, then 70 GiB, on 80 GiB.
static bool fits_after_60(const char *config, bool in_pool, int64_t *reserved) {
    struct allocator *const allocator = case_begin(config, 80 * GIB);
    if (in_pool)
        OK(cca_pool_begin(allocator, 0, pool_id, NULL));
    testing_free(allocator, testing_malloc(allocator, 60 * GIB, NULL));
    const bool fits = case_malloc(allocator, 70 * GIB, NULL) != NULL;
    *reserved = reserved_mib(allocator);
    if (in_pool)
        OK(cca_pool_end(allocator, 0, pool_id));
    case_end(allocator);
    return fits;
}

// A pool in use gives nothing back, also to a request of its own; pages can be added.
static void larger_block_in_a_pool(const struct public_fault_teller *teller) {
    static const char *const configs[] = {"", "expandable_segments:True"};
    for (int index = 0; index < 2; ++index) {
        int64_t reserved;
        tell(teller, configs[index], "out of memory without a pool", 0,
             !fits_after_60(configs[index], false, &reserved));
        tell(teller, configs[index], "out of memory in a pool", index == 0 ? OOM : 0,
             !fits_after_60(configs[index], true, &reserved));
        tell(teller, configs[index], "reserved MiB then", (index == 0 ? 60 : 70) * 1024, reserved);
    }
}

// 600 MiB lie in the graph's pool, 300 outside; 700 do not fit into 1 GiB.
static void full_in_a_capture(const struct public_fault_teller *teller) {
    static const char *const configs[] = {"", "max_split_size_mb:20"};
    for (int index = 0; index < 2; ++index) {
        struct allocator *const allocator = case_begin(configs[index], GIB);
        struct capture capture;
        testing_free(allocator, testing_malloc(allocator, 300 * MIB, NULL));
        capture_begin(&capture, allocator, 1);
        testing_free(allocator, testing_malloc(allocator, 600 * MIB, capture.stream));
        tell(teller, configs[index], "out of memory", OOM,
             case_malloc(allocator, 700 * MIB, capture.stream) == NULL);
        tell(teller, configs[index], "memory given back to the device meanwhile", 0,
             testing_stats(allocator).num_device_free);
        tell(teller, configs[index], "captures that are still valid", 1, capture_end(&capture));
        OK(cca_pool_release(allocator, 0, capture.id));
        case_end(allocator);
    }
}

// What a capture does, up to the step at which something goes wrong.
static void fail_at(struct allocator *allocator, int failing) {
    struct capture capture;
    void *blocks[3] = {NULL};
    const cudaStream_t other = testing_stream();
    cudaEvent_t event;
    CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    capture_begin(&capture, allocator, 1);
    for (int step = 0; step < failing; ++step)
        switch (step) {
        case 0:
            blocks[0] = testing_malloc(allocator, 30 * MIB, capture.stream);
            break;
        case 1:
            blocks[1] = testing_malloc(allocator, 1000, capture.stream);
            break;
        case 2:
            CUDA(cudaEventRecord(event, capture.stream));
            CUDA(cudaStreamWaitEvent(other, event, 0));
            break;
        case 3:
            OK(allocator_record_stream(allocator, blocks[0], other));
            break;
        case 4:
            testing_free(allocator, blocks[0]);
            blocks[0] = NULL;
            break;
        case 5:
            blocks[2] = testing_malloc(allocator, 20 * MIB, other);
            break;
        default:
            break;
        }
    BASE_CHECK(cudaStreamSynchronize(capture.stream) != cudaSuccess); // not in a capture
    (void)cudaGetLastError();
    BASE_CHECK(!capture_end(&capture));
    for (int index = 0; index < 3; ++index)
        testing_free(allocator, blocks[index]);
    OK(cca_pool_release(allocator, 0, capture.id));
    OK(allocator_empty_cache(allocator));
    CUDA(cudaEventDestroy(event));
}

static void failed_captures(const struct public_fault_teller *teller) {
    static const char *const configs[] = {"", "graph_capture_record_stream_reuse:True",
                                          "expandable_segments:True"};
    for (int index = 0; index < 3; ++index) {
        struct allocator *const allocator = case_begin(configs[index], GIB);
        int64_t left = 0;
        for (int failing = 0; failing <= 6; ++failing) {
            fail_at(allocator, failing);
            left += reserved_mib(allocator);
        }
        tell(teller, configs[index], "reserved MiB after captures that failed", 0, left);
        case_end(allocator);
    }
}

// Pools made, used, ended and made again under the same few ids.
static void pools_come_and_go(const struct public_fault_teller *teller) {
    struct allocator *const allocator = case_begin("", 4 * GIB);
    struct base_random random = base_random_init(189126, "pools");
    void *blocks[4] = {NULL};
    bool exists[4] = {false};
    int64_t refused = 0;
    for (int step = 0; step < 20000; ++step) {
        const int index = (int)base_random_below(&random, 4);
        const struct allocator_pool_id id = {.user = (uint64_t)index + 1};
        const size_t size = base_random_log_between(&random, 1, 30 * MIB);
        if (!exists[index]) {
            refused += cca_pool_create(allocator, 0, id, NULL) != BASE_OK;
            refused += cca_pool_set_use_on_oom(allocator, 0, id, true) != BASE_OK;
            exists[index] = true;
        } else if (base_random_chance(&random, 0.2)) {
            testing_free(allocator, blocks[index]);
            blocks[index] = NULL;
            refused += cca_pool_destroy(allocator, 0, id) != BASE_OK;
            exists[index] = false;
        } else {
            refused += cca_pool_begin(allocator, 0, id, NULL) != BASE_OK;
            testing_free(allocator, blocks[index]);
            blocks[index] = testing_malloc(allocator, size, NULL);
            refused += cca_pool_end(allocator, 0, id) != BASE_OK;
            refused += cca_pool_release(allocator, 0, id) != BASE_OK;
        }
    }
    for (int index = 0; index < 4; ++index) {
        testing_free(allocator, blocks[index]);
        if (exists[index])
            refused += cca_pool_destroy(allocator, 0,
                                        (struct allocator_pool_id){.user = (uint64_t)index + 1}) !=
                       BASE_OK;
    }
    tell(teller, "", "calls that failed", 0, refused);
    tell(teller, "", "reserved MiB when all have ended", 0, reserved_mib(allocator));
    case_end(allocator);
}

// Two blocks of 5 MiB: of a segment of 20 each, or of the same.
static int64_t reserved_for_two(struct allocator *allocator) {
    void *blocks[2];
    OK(cca_pool_begin(allocator, 0, pool_id, NULL));
    for (int index = 0; index < 2; ++index)
        blocks[index] = testing_malloc(allocator, 5 * MIB, NULL);
    OK(cca_pool_end(allocator, 0, pool_id));
    OK(cca_pool_release(allocator, 0, pool_id));
    for (int index = 0; index < 2; ++index)
        testing_free(allocator, blocks[index]);
    return reserved_mib(allocator);
}

// What was said of a pool ends with it, and so does the count of its users.
static void nothing_of_a_pool_stays(const struct public_fault_teller *teller) {
    struct allocator *const allocator = case_begin("", GIB);
    int64_t count = 0, reserved = 0;
    OK(cca_pool_create(allocator, 0, pool_id, NULL));
    OK(cca_pool_set_no_split(allocator, 0, pool_id));
    for (int round = 0; round < 100; ++round)
        reserved = reserved_for_two(allocator);
    tell(teller, "", "reserved MiB, not split", 40, reserved);
    OK(cca_pool_count(allocator, 0, pool_id, &count));
    tell(teller, "", "users after 100 scopes", 1, count);
    OK(cca_pool_destroy(allocator, 0, pool_id));
    tell(teller, "", "reserved MiB after its end", 0, reserved_mib(allocator));
    OK(cca_pool_create(allocator, 0, pool_id, NULL));
    tell(teller, "", "reserved MiB in one of the same id", 20, reserved_for_two(allocator));
    OK(cca_pool_destroy(allocator, 0, pool_id));
    case_end(allocator);
}

static struct cca_out_of_memory seen;
static void see(void *context, const struct cca_out_of_memory *numbers) {
    (void)context;
    seen = *numbers;
}

// A graph's pool has 100 MiB cached and 30 in use, the default one 50 cached.
static void numbers_of_a_graph(const struct public_fault_teller *teller) {
    struct allocator *const allocator = case_begin("", 256 * MIB);
    struct capture capture;
    const struct cca_out_of_memory_observer observer = {see, NULL};
    OK(cca_set_out_of_memory_observer(allocator, &observer));
    capture_begin(&capture, allocator, 1);
    void *const kept = testing_malloc(allocator, 30 * MIB, capture.stream);
    testing_free(allocator, testing_malloc(allocator, 100 * MIB, capture.stream));
    BASE_CHECK(capture_end(&capture));
    BASE_CHECK(case_malloc(allocator, 200 * MIB, NULL) == NULL);
    tell(teller, "", "free MiB in private pools, as the message says", 100,
         (int64_t)(seen.private_free / MIB));
    tell(teller, "", "reserved MiB but unallocated", 0, (int64_t)(seen.unallocated / MIB));
    tell(teller, "", "the message names them", 1,
         testing_message_has("with 100.00 MiB allocated in private pools (e.g., CUDA Graphs)"));
    testing_free(allocator, kept);
    OK(cca_pool_release(allocator, 0, capture.id));
    case_end(allocator);
}

// Requests of 1000 bytes, 5 and 136 MiB reserve 2, 20 and 136: 158, though 141 are asked for.
static bool captures_beside(size_t mib, int64_t *reserved) {
    static const size_t sizes[] = {1000, 5 << 20, 136 << 20};
    struct allocator *const allocator = case_begin("", GIB);
    struct capture capture;
    bool fits = true;
    BASE_CHECK(mib == 0 || testing_malloc(allocator, mib * MIB, NULL) != NULL);
    const int64_t before = reserved_mib(allocator);
    capture_begin(&capture, allocator, 1);
    for (int index = 0; index < 3; ++index)
        fits = case_malloc(allocator, sizes[index], capture.stream) != NULL && fits;
    *reserved = reserved_mib(allocator) - before;
    BASE_CHECK(capture_end(&capture));
    case_end(allocator);
    return fits;
}

static void room_for_a_graph(const struct public_fault_teller *teller) {
    int64_t estimate, reserved;
    (void)captures_beside(0, &estimate);
    tell(teller, "", "MiB that the capture reserves", 158, estimate);
    tell(teller, "", "out of memory, with 142 MiB left for it", OOM,
         !captures_beside(1024 - 142, &reserved));
    tell(teller, "", "out of memory, with 158 MiB left for it", 0,
         !captures_beside(1024 - 158, &reserved));
}

struct routed {
    struct allocator *allocator;
    struct allocator_pool_id id;
    cudaStream_t stream;
    void *blocks[200];
};
static bool is_mine(void *context, cudaStream_t stream) {
    return stream == ((const struct routed *)context)->stream;
}
static void take_in_a_pool(void *context) {
    struct routed *const routed = context;
    const struct cca_pool_filter filter = {is_mine, routed};
    struct base_random random = base_random_init(routed->id.user, "routed");
    for (int step = 0; step < 4000; ++step) {
        OK(cca_pool_begin(routed->allocator, 0, routed->id, &filter));
        void **const block = &routed->blocks[base_random_below(&random, 200)];
        testing_free(routed->allocator, *block);
        *block = testing_malloc(routed->allocator, base_random_log_between(&random, 1, 4 * MIB),
                                routed->stream);
        OK(cca_pool_end(routed->allocator, 0, routed->id));
    }
}

// How many of its blocks lie in segments of another pool.
static int64_t misplaced(const struct routed *routed, const struct allocator_snapshot *snapshot) {
    int64_t count = 0;
    for (int index = 0; index < 200; ++index)
        for (size_t at = 0; at < snapshot->segment_count && routed->blocks[index] != NULL; ++at) {
            const struct allocator_snapshot_segment *const segment = &snapshot->segments[at];
            const size_t offset =
                (size_t)((uintptr_t)routed->blocks[index] - (uintptr_t)segment->address);
            count += offset < segment->total_size && segment->pool.user != routed->id.user;
        }
    return count;
}

static void two_threads_two_pools(const struct public_fault_teller *teller) {
    struct allocator *const allocator = case_begin("", 64 * GIB);
    struct routed routed[2];
    struct base_thread threads[2];
    struct allocator_snapshot snapshot;
    for (int index = 0; index < 2; ++index) {
        routed[index] = (struct routed){.allocator = allocator,
                                        .id = {.user = (uint64_t)index + 1},
                                        .stream = testing_stream()};
        base_thread_start(&threads[index], take_in_a_pool, &routed[index]);
    }
    for (int index = 0; index < 2; ++index)
        base_thread_join(&threads[index]);
    OK(allocator_snapshot(allocator, &snapshot));
    tell(teller, "", "blocks in the other thread's pool, or in none", 0,
         misplaced(&routed[0], &snapshot) + misplaced(&routed[1], &snapshot));
    allocator_snapshot_deinit(&snapshot);
    case_end(allocator);
}

const struct public_fault_case public_faults_graphs[PUBLIC_FAULTS_GRAPHS_COUNT] = {
    {.names = "pt#159674",
     .pattern = "60 GiB freed in a user pool, then 70 fail on 80",
     .run = larger_block_in_a_pool},
    {.names = "pt#159594 pt#187795",
     .pattern = "out of memory in a capture calls cudaFree and invalidates it",
     .run = full_in_a_capture},
    {.names = "pt#190308 pt#190348 pt#180395",
     .pattern = "a capture that failed keeps its pool",
     .run = failed_captures},
    {.names = "pt#189126 pt#169699",
     .pattern = "pools end, and their ids are used again",
     .run = pools_come_and_go},
    {.names = "pt#192188 pt#133600",
     .pattern = "settings and users of a pool outlive it",
     .run = nothing_of_a_pool_stays},
    {.names = "pt#121932 pt#124673",
     .pattern = "the message counts memory of graphs as unallocated",
     .run = numbers_of_a_graph},
    {.names = "vllm#57475 vllm#57595 vllm#30515 vllm#27951 vllm#19480",
     .pattern = "too little is left for the graphs",
     .run = room_for_a_graph},
    {.names = "pt#154042 pt#153990",
     .pattern = "two threads, two pools, and blocks of the wrong one",
     .run = two_threads_two_pools},
};
