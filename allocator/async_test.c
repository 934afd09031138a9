// The async allocator, each rule of PyTorch's cudaMallocAsync back end once. What is true is asked
// of the driver: its pool, its streams, its graphs.
#include "allocator/async.h"

#include "allocator/checkpoint.h"
#include "allocator/testing.h"
#include "allocator/testing_state.h"
#include "simulator/sim_race.h"

#include <stdlib.h>

#define MIB BASE_MIB

static int warnings;
static char last_warning[512];

static void note_warning(void *context, const char *text) {
    (void)context;
    ++warnings;
    strncpy(last_warning, text, sizeof last_warning - 1);
}

static void ok(enum base_status status) {
    if (status != BASE_OK) base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
}
static void cuda_ok(cudaError_t error) { BASE_CHECK_EQ(error, cudaSuccess); }

static struct allocator *create_with(struct async_options options, int device_count) {
    struct allocator *allocator = NULL;
    warnings = 0;
    options.warnings.warning = note_warning;
    ok(sim_configure(&(struct sim_options){
        .capacity_bytes = BASE_GIB, .device_count = device_count, .numerics = SIM_NUMERICS_OFF}));
    ok(async_allocator_create(&options, &allocator));
    return allocator;
}
static struct allocator *create(void) { return create_with((struct async_options){0}, 2); }

static void finish(struct allocator *allocator) {
    allocator_destroy(allocator);
    cuda_ok(cudaDeviceSynchronize());
    cuda_ok(cudaDeviceGraphMemTrim(0));
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
}

static uint64_t attribute(int device, enum cudaMemPoolAttr which) {
    cudaMemPool_t pool;
    uint64_t value = 0;
    cuda_ok(cudaDeviceGetDefaultMemPool(&pool, device));
    cuda_ok(cudaMemPoolGetAttribute(pool, which, &value));
    return value;
}
static int policy(int device, enum cudaMemPoolAttr which) {
    cudaMemPool_t pool;
    int value = -1;
    cuda_ok(cudaDeviceGetDefaultMemPool(&pool, device));
    cuda_ok(cudaMemPoolGetAttribute(pool, which, &value));
    return value;
}
static uint64_t in_use(void) { return attribute(0, cudaMemPoolAttrUsedMemCurrent); }
static uint64_t reserved(void) { return attribute(0, cudaMemPoolAttrReservedMemCurrent); }
static uint64_t threshold(int device) { return attribute(device, cudaMemPoolAttrReleaseThreshold); }

//------------------------------------------------------------------------------------------------
// Devices.

static void a_device_is_set_up_when_it_is_first_named(void) {
    struct allocator *const allocator = create();
    int off = 0;
    cudaMemPool_t pool;
    cuda_ok(cudaDeviceGetDefaultMemPool(&pool, 1));
    cuda_ok(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &off));
    testing_free(allocator, testing_malloc(allocator, 1000, NULL));
    BASE_CHECK_EQ(threshold(0), UINT64_MAX);
    BASE_CHECK_EQ(threshold(1), 0);
    void *pointer;
    ok(allocator_malloc(allocator, 1, 1000, NULL, &pointer));
    BASE_CHECK_EQ(threshold(1), UINT64_MAX);
    BASE_CHECK_EQ(policy(1, cudaMemPoolReuseFollowEventDependencies), 1);
    BASE_CHECK_EQ(policy(1, cudaMemPoolReuseAllowOpportunistic), 1);
    BASE_CHECK_EQ(policy(1, cudaMemPoolReuseAllowInternalDependencies), 1);
    BASE_CHECK_EQ(attribute(1, cudaMemPoolAttrUsedMemCurrent), 1024);
    BASE_CHECK_EQ(allocator_malloc(allocator, 2, 1, NULL, &pointer), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(allocator_malloc(allocator, -1, 1, NULL, &pointer), BASE_INVALID_VALUE);
    int current;
    cuda_ok(cudaGetDevice(&current));
    BASE_CHECK_EQ(current, 0);
    finish(allocator);
    BASE_CHECK_EQ(threshold(1), 0); // the pool is the process's
}

// Set: what the driver does without PyTorch. A wait gives the pool's idle memory back.
static void the_release_threshold_says_what_an_idle_pool_keeps(bool set, uint64_t bytes,
                                                               uint64_t kept) {
    struct allocator *const allocator = create_with(
        (struct async_options){.release_threshold_set = set, .release_threshold = bytes}, 1);
    void *const a = testing_malloc(allocator, 96 * MIB, NULL), *const b = testing_malloc(
                                                                   allocator, 32 * MIB, NULL);
    BASE_CHECK_EQ(threshold(0), set ? bytes : UINT64_MAX);
    testing_free(allocator, a);
    testing_free(allocator, b);
    BASE_CHECK_EQ(reserved(), 128 * MIB);
    cuda_ok(cudaDeviceSynchronize());
    BASE_CHECK_EQ(reserved(), kept);
    ok(allocator_empty_cache(allocator));
    BASE_CHECK_EQ(reserved(), 0);
    finish(allocator);
}

static void a_fraction_limits_what_is_in_use(void) {
    struct allocator *const allocator =
        create_with((struct async_options){.fraction = 0.25, .fraction_set = true}, 1);
    void *pointer = NULL, *const a = testing_malloc(allocator, 200 * MIB, NULL);
    size_t largest;
    ok(allocator_largest_block(allocator, 0, &largest));
    BASE_CHECK_EQ(largest, 56 * MIB);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 56 * MIB + 1, NULL, &pointer), BASE_OUT_OF_MEMORY);
    testing_message_is_a_sentence();
    BASE_CHECK(testing_message_has("Currently allocated: 200.00 MiB; Requested: 56.00 MiB; "
                                   "Device limit: 1024.00 MiB; Free (according to CUDA): "));
    BASE_CHECK(testing_message_has("PyTorch limit (set by user-supplied memory fraction): 256.00 "
                                   "MiB"));
    testing_free(allocator, testing_malloc(allocator, 56 * MIB, NULL));
    ok(async_set_memory_fraction(allocator, 0, 1.0));
    testing_free(allocator, testing_malloc(allocator, 700 * MIB, NULL));
    ok(async_set_memory_fraction(allocator, 0, 0.1)); // what is in use stays
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 1, NULL, &pointer), BASE_OUT_OF_MEMORY);
    ok(allocator_largest_block(allocator, 0, &largest));
    BASE_CHECK_EQ(largest, 0);
    testing_free(allocator, a);
    testing_free(allocator, testing_malloc(allocator, 100 * MIB, NULL));
    BASE_CHECK_EQ(async_set_memory_fraction(allocator, 0, 1.5), BASE_INVALID_VALUE);
    BASE_CHECK(pointer == NULL);
    finish(allocator);
}

static void the_driver_running_out_is_the_same_error(void) {
    struct allocator *const allocator = create();
    void *pointer = NULL;
    (void)testing_malloc(allocator, 600 * MIB, NULL);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 600 * MIB, NULL, &pointer), BASE_OUT_OF_MEMORY);
    BASE_CHECK(
        testing_message_has("Currently allocated: 600.00 MiB; Requested: 600.00 MiB; Device "
                            "limit: 1024.00 MiB; Free (according to CUDA): 424.00 MiB; PyTorch "
                            "limit (set by user-supplied memory fraction): none"));
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, (size_t)1 << 60, NULL, &pointer),
                  BASE_OUT_OF_MEMORY);
    BASE_CHECK(testing_message_has("more than 1EB"));
    sim_fault_next(SIM_CALL_MALLOC_ASYNC, 1, cudaErrorUnknown);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 1, NULL, &pointer), BASE_CUDA);
    BASE_CHECK(testing_message_has("cudaErrorUnknown"));
    BASE_CHECK(pointer == NULL);
    finish(allocator);
}

static void a_peer_gets_access_to_the_pool(void) {
    struct allocator *const allocator = create();
    struct cudaMemLocation peer = {.type = cudaMemLocationTypeDevice, .id = 1};
    enum cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
    cudaMemPool_t pool;
    ok(async_enable_peer_access(allocator, 0, 1));
    cuda_ok(cudaDeviceGetDefaultMemPool(&pool, 0));
    cuda_ok(cudaMemPoolGetAccess(&flags, pool, &peer));
    BASE_CHECK_EQ(flags, cudaMemAccessFlagsProtReadWrite);
    BASE_CHECK_EQ(async_enable_peer_access(allocator, 0, 7), BASE_INVALID_VALUE);
    finish(allocator);
}

//------------------------------------------------------------------------------------------------
// Requests and frees.

static void nothing_is_rounded(void) {
    struct allocator *const allocator = create();
    void *pointer = &pointer;
    ok(allocator_malloc(allocator, 0, 0, NULL, &pointer));
    BASE_CHECK(pointer == NULL);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_MALLOC_ASYNC), 0);
    (void)testing_malloc(allocator, 33 * MIB + 1, NULL);
    BASE_CHECK_EQ(in_use(), 33 * MIB + 512); // the driver's own alignment
    finish(allocator);
}

static void bad_pointers_are_refused(void) {
    struct allocator *const allocator = create();
    char *const a = testing_malloc(allocator, 1000, NULL);
    ok(allocator_free(allocator, NULL));
    ok(allocator_record_stream(allocator, NULL, NULL));
    BASE_CHECK_EQ(allocator_free(allocator, a + 1), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_record_stream(allocator, a + 1, NULL), BASE_INVALID_POINTER);
    testing_free(allocator, a);
    BASE_CHECK_EQ(allocator_free(allocator, a), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_FREE_ASYNC), 1);
    finish(allocator);
}

// The free is in the order of the stream: the next request there has the memory although nothing
// ran yet.
static void a_block_of_one_stream_is_freed_there(void) {
    struct allocator *const allocator = create();
    const cudaStream_t stream = testing_stream();
    sim_stream_hold(stream, true);
    void *const a = testing_malloc(allocator, 20 * MIB, stream);
    testing_free(allocator, a);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_EVENT_RECORD), 0);
    BASE_CHECK(testing_malloc(allocator, 20 * MIB, stream) == a);
    finish(allocator);
}

static void no_body(const void *argument) { (void)argument; }

static void write_block(void *pointer, size_t size, cudaStream_t stream) {
    const struct sim_access access = {SIM_ACCESS_WRITE, pointer, .size = size};
    const struct sim_kernel kernel = {
        .name = "write", .body = no_body, .accesses = &access, .access_count = 1};
    cuda_ok(sim_launch_kernel(stream, &kernel));
}

// TOLD: by record_stream; else the program has a race, which shows that one would be seen.
static void a_block_that_others_use_is_freed_behind_all_of_them(bool told) {
    struct allocator *const allocator = create();
    const cudaStream_t stream = testing_stream(), users[2] = {testing_stream(), testing_stream()};
    ok(sim_race_start(&(struct sim_race_options){.quiet = true}));
    char *const a = testing_malloc(allocator, 20 * MIB, stream);
    cudaEvent_t taken;
    cuda_ok(cudaEventCreate(&taken));
    cuda_ok(cudaEventRecord(taken, stream));
    for (int index = 0; index < 2; ++index) {
        sim_stream_hold(users[index], true);
        cuda_ok(cudaStreamWaitEvent(users[index], taken, 0));
        write_block(a + 10 * MIB * (size_t)index, 10 * MIB, users[index]);
        if (told) ok(allocator_record_stream(allocator, a, users[index]));
        if (told) ok(allocator_record_stream(allocator, a, users[index]));
    }
    testing_free(allocator, a);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_EVENT_RECORD), told ? 4 : 1);
    void *const b = testing_malloc(allocator, 20 * MIB, stream);
    write_block(b, 20 * MIB, stream);
    BASE_CHECK_EQ(b == a, !told);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT) > 0, !told);
    sim_race_stop();
    cuda_ok(cudaEventDestroy(taken));
    // When the driver sees that all is done, the memory is for anybody.
    cuda_ok(cudaDeviceSynchronize());
    if (told) BASE_CHECK(testing_malloc(allocator, 20 * MIB, stream) == a);
    finish(allocator);
}

static void a_use_by_the_own_stream_is_a_warning(void) {
    struct allocator *const allocator = create();
    const cudaStream_t stream = testing_stream();
    void *const a = testing_malloc(allocator, MIB, stream);
    ok(allocator_record_stream(allocator, a, stream));
    ok(allocator_record_stream(allocator, a, stream));
    BASE_CHECK_EQ(warnings, 1);
    BASE_CHECK(strstr(last_warning, "no effect") != NULL);
    testing_free(allocator, a);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_EVENT_RECORD), 0);
    finish(allocator);
}

static void users_of_another_device_are_waited_for(void) {
    struct allocator *const allocator = create();
    void *const a = testing_malloc(allocator, MIB, NULL);
    cuda_ok(cudaSetDevice(1));
    const cudaStream_t user = testing_stream();
    cuda_ok(cudaSetDevice(0));
    sim_stream_hold(user, true);
    ok(allocator_record_stream(allocator, a, user));
    testing_free(allocator, a);
    BASE_CHECK_EQ(sim_stream_pending(user), 1); // the event
    finish(allocator);
}

// A free that fails leaves the block with the caller.
static void a_free_that_fails_can_be_made_again(void) {
    struct allocator *const allocator = create();
    const cudaStream_t user = testing_stream();
    void *const a = testing_malloc(allocator, MIB, NULL);
    ok(allocator_record_stream(allocator, a, user));
    static const enum sim_call calls[] = {SIM_CALL_EVENT_CREATE, SIM_CALL_EVENT_RECORD,
                                          SIM_CALL_STREAM_WAIT_EVENT, SIM_CALL_FREE_ASYNC};
    for (int index = 0; index < 4; ++index) {
        sim_fault_next(calls[index], 1, cudaErrorUnknown);
        BASE_CHECK_EQ(allocator_free(allocator, a), BASE_CUDA);
        testing_message_is_a_sentence();
    }
    BASE_CHECK_EQ(in_use(), MIB);
    testing_free(allocator, a);
    BASE_CHECK_EQ(in_use(), 0);
    finish(allocator);
}

//------------------------------------------------------------------------------------------------
// Captures.

struct capture {
    struct allocator *allocator;
    cudaStream_t stream, side;
};

static struct capture begin(void) {
    const struct capture capture = {create(), testing_stream(), testing_stream()};
    cuda_ok(cudaStreamBeginCapture(capture.stream, cudaStreamCaptureModeGlobal));
    ok(async_capture_begin(capture.allocator, 0, capture.stream));
    return capture;
}

static cudaGraph_t end(const struct capture *capture) {
    cudaGraph_t graph;
    ok(async_capture_end(capture->allocator));
    cuda_ok(cudaStreamEndCapture(capture->stream, &graph));
    return graph;
}

static size_t node_count(cudaGraph_t graph, enum cudaGraphNodeType type) {
    cudaGraphNode_t nodes[32];
    size_t count = 32, found = 0;
    cuda_ok(cudaGraphGetNodes(graph, nodes, &count));
    for (size_t index = 0; index < count; ++index) {
        enum cudaGraphNodeType its;
        cuda_ok(cudaGraphNodeGetType(nodes[index], &its));
        found += its == type;
    }
    return found;
}

static void requests_of_a_capture_are_nodes_of_its_graph(void) {
    const struct capture capture = begin();
    void *const a = testing_malloc(capture.allocator, MIB, capture.stream);
    testing_free(capture.allocator, a);
    const cudaGraph_t graph = end(&capture);
    BASE_CHECK_EQ(node_count(graph, cudaGraphNodeTypeMemAlloc), 1);
    BASE_CHECK_EQ(node_count(graph, cudaGraphNodeTypeMemFree), 1);
    BASE_CHECK_EQ(warnings, 0);
    ok(async_pool_release(capture.allocator, 0, (struct allocator_pool_id){.capture = 1}));
    cuda_ok(cudaGraphDestroy(graph));
    finish(capture.allocator);
}

static void one_capture_at_a_time(void) {
    const struct capture capture = begin();
    BASE_CHECK_EQ(async_capture_begin(capture.allocator, 0, capture.side), BASE_INVALID_VALUE);
    BASE_CHECK(testing_message_has("Only one capture at a time"));
    cuda_ok(cudaGraphDestroy(end(&capture)));
    BASE_CHECK_EQ(async_capture_end(capture.allocator), BASE_INVALID_VALUE);
    ok(async_capture_begin(capture.allocator, 0, capture.side));
    ok(async_capture_end(capture.allocator));
    BASE_CHECK_EQ(async_capture_begin(capture.allocator, 9, capture.side), BASE_INVALID_VALUE);
    finish(capture.allocator);
}

static void memory_from_before_that_a_capture_frees_waits_for_the_next_request(void) {
    struct capture capture = {create(), testing_stream(), testing_stream()};
    struct allocator *const allocator = capture.allocator;
    void *const a = testing_malloc(allocator, MIB, capture.stream);
    void *const b = testing_malloc(allocator, MIB, capture.side); // which is not captured
    ok(allocator_record_stream(allocator, b, capture.stream));
    cuda_ok(cudaStreamBeginCapture(capture.stream, cudaStreamCaptureModeRelaxed));
    ok(async_capture_begin(allocator, 0, capture.stream));
    testing_free(allocator, a);
    testing_free(allocator, b);
    BASE_CHECK_EQ(warnings, 1); // one of both
    BASE_CHECK(strstr(last_warning, "uncaptured allocation during graph capture") != NULL);
    BASE_CHECK_EQ(allocator_free(allocator, a), BASE_INVALID_POINTER);
    (void)testing_malloc(allocator, MIB, capture.stream); // inside: not yet
    BASE_CHECK_EQ(in_use(), 2 * MIB);
    const cudaGraph_t graph = end(&capture);
    BASE_CHECK_EQ(node_count(graph, cudaGraphNodeTypeMemFree), 0);
    BASE_CHECK_EQ(in_use(), 2 * MIB);
    // A free that fails does so for the request, and is made again.
    void *pointer = NULL;
    sim_fault_next(SIM_CALL_FREE_ASYNC, 2, cudaErrorUnknown);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 1, capture.stream, &pointer), BASE_CUDA);
    BASE_CHECK_EQ(in_use(), MIB);
    (void)testing_malloc(allocator, 1, capture.stream);
    BASE_CHECK_EQ(in_use(), 512);
    cuda_ok(cudaGraphDestroy(graph));
    // And with the next capture, too.
    void *const c = testing_malloc(allocator, MIB, capture.stream);
    cuda_ok(cudaStreamBeginCapture(capture.stream, cudaStreamCaptureModeRelaxed));
    ok(async_capture_begin(allocator, 0, capture.stream));
    testing_free(allocator, c);
    cuda_ok(cudaGraphDestroy(end(&capture)));
    BASE_CHECK_EQ(in_use(), 512 + MIB);
    (void)testing_malloc(allocator, 1, capture.stream);
    BASE_CHECK_EQ(in_use(), 512 + 512);
    finish(allocator);
}

static void captured_memory_that_is_freed_after_the_capture_is_a_warning(void) {
    const struct capture capture = begin();
    cudaGraphExec_t exec;
    void *const a = testing_malloc(capture.allocator, MIB, capture.stream);
    const cudaGraph_t graph = end(&capture);
    cuda_ok(cudaGraphInstantiate(&exec, graph, 0));
    // Nothing is there before the first launch.
    BASE_CHECK_EQ(allocator_free(capture.allocator, a), BASE_CUDA);
    BASE_CHECK_EQ(warnings, 0);
    cuda_ok(cudaGraphLaunch(exec, capture.stream));
    testing_free(capture.allocator, a);
    BASE_CHECK_EQ(warnings, 1);
    BASE_CHECK(strstr(last_warning, "uncaptured free of a captured allocation") != NULL);
    cuda_ok(cudaGraphLaunch(exec, capture.stream)); // the memory was given back
    cuda_ok(cudaFreeAsync(a, capture.stream));
    cuda_ok(cudaGraphExecDestroy(exec));
    cuda_ok(cudaGraphDestroy(graph));
    finish(capture.allocator);
}

// The side stream's last node is a free that nobody waits for: the driver would not end the
// capture.
static void streams_that_freed_in_a_capture_are_joined_at_its_end(bool by_unifying) {
    const struct capture capture = begin();
    cudaEvent_t event;
    cuda_ok(cudaEventCreate(&event));
    void *const a = testing_malloc(capture.allocator, MIB, capture.stream);
    cuda_ok(cudaEventRecord(event, capture.stream));
    cuda_ok(cudaStreamWaitEvent(capture.side, event, 0));
    void *const b = testing_malloc(capture.allocator, MIB, capture.side);
    if (by_unifying) {
        ok(allocator_record_stream(capture.allocator, a, capture.side));
        testing_free(capture.allocator, a);
    }
    testing_free(capture.allocator, b);
    const cudaGraph_t graph = end(&capture);
    BASE_CHECK_EQ(node_count(graph, cudaGraphNodeTypeMemFree), by_unifying ? 2 : 1);
    cuda_ok(cudaGraphDestroy(graph));
    cuda_ok(cudaEventDestroy(event));
    // The next capture has nothing to do with those streams,
    cuda_ok(cudaStreamBeginCapture(capture.stream, cudaStreamCaptureModeGlobal));
    ok(async_capture_begin(capture.allocator, 0, capture.stream));
    cuda_ok(cudaGraphDestroy(end(&capture)));
    // nor with what is freed outside.
    void *const c = testing_malloc(capture.allocator, MIB, NULL);
    ok(allocator_record_stream(capture.allocator, c, capture.side));
    testing_free(capture.allocator, c);
    finish(capture.allocator);
}

static void a_capture_that_was_lost_ends_too(void) {
    const struct capture capture = begin();
    cudaGraph_t graph;
    cudaEvent_t event;
    cuda_ok(cudaEventCreate(&event));
    cuda_ok(cudaEventRecord(event, capture.stream));
    cuda_ok(cudaStreamWaitEvent(capture.side, event, 0));
    testing_free(capture.allocator, testing_malloc(capture.allocator, MIB, capture.side));
    BASE_CHECK_EQ(cudaStreamSynchronize(capture.stream), cudaErrorStreamCaptureUnsupported);
    (void)cudaGetLastError();
    BASE_CHECK_EQ(async_capture_end(capture.allocator), BASE_CUDA);
    BASE_CHECK_EQ(cudaStreamEndCapture(capture.stream, &graph), cudaErrorStreamCaptureInvalidated);
    (void)cudaGetLastError();
    ok(async_capture_begin(capture.allocator, 0, capture.stream));
    ok(async_capture_end(capture.allocator));
    cuda_ok(cudaEventDestroy(event));
    finish(capture.allocator);
}

// The first request of a device may come in a capture, and numbers may be asked for.
static void a_capture_survives_what_is_asked_meanwhile(void) {
    const struct capture capture = begin();
    void *pointer;
    size_t largest;
    (void)testing_stats(capture.allocator);
    ok(allocator_largest_block(capture.allocator, 0, &largest));
    ok(allocator_malloc(capture.allocator, 1, 1000, NULL, &pointer));
    BASE_CHECK_EQ(allocator_empty_cache(capture.allocator), BASE_INVALID_VALUE);
    testing_message_is_a_sentence();
    cuda_ok(cudaGraphDestroy(end(&capture)));
    finish(capture.allocator);
}

//------------------------------------------------------------------------------------------------
// Numbers and refusals.

static void statistics_are_what_the_driver_knows(void) {
    struct allocator *const allocator = create();
    void *const a = testing_malloc(allocator, 40 * MIB, NULL);
    testing_free(allocator, testing_malloc(allocator, 10 * MIB, NULL));
    const struct allocator_stats stats = testing_stats(allocator);
    struct allocator_stats expected = {.max_split_size = -1};
    struct allocator_stat *const used = expected.allocated_bytes;
    used->current = 40 * MIB;
    used->peak = 50 * MIB;
    expected.active_bytes[ALLOCATOR_STAT_ALL] = *used;
    expected.reserved_bytes[ALLOCATOR_STAT_ALL].current = (int64_t)reserved();
    expected.reserved_bytes[ALLOCATOR_STAT_ALL].peak =
        (int64_t)attribute(0, cudaMemPoolAttrReservedMemHigh);
    BASE_CHECK_EQ(memcmp(&stats, &expected, sizeof stats), 0);
    ok(allocator_reset_peak_stats(allocator, 0));
    BASE_CHECK_EQ(testing_stats(allocator).active_bytes[ALLOCATOR_STAT_ALL].peak, 40 * MIB);
    ok(allocator_reset_accumulated_stats(allocator, 0));
    BASE_CHECK_EQ(warnings, 1);
    BASE_CHECK(strstr(last_warning, "no effect") != NULL);
    testing_free(allocator, a);
    ok(allocator_empty_cache(allocator)); // waits, trims
    BASE_CHECK_EQ(testing_stats(allocator).reserved_bytes[ALLOCATOR_STAT_ALL].current, 0);
    finish(allocator);
}

struct heard {
    uint64_t counts[ALLOCATOR_ACTION_COUNT];
    int64_t reserved_bytes, active_bytes;
    size_t last_size;
    cudaStream_t last_stream;
};

static void observe(void *context, const struct allocator_event *event) {
    struct heard *const heard = context;
    ++heard->counts[event->action];
    BASE_CHECK_EQ(event->device, 0);
    if (event->action == ALLOCATOR_SEGMENT_ALLOC) heard->reserved_bytes += (int64_t)event->size;
    if (event->action == ALLOCATOR_SEGMENT_FREE) heard->reserved_bytes -= (int64_t)event->size;
    if (event->action == ALLOCATOR_ALLOC) heard->active_bytes += (int64_t)event->block_size;
    if (event->action == ALLOCATOR_FREE_COMPLETED)
        heard->active_bytes -= (int64_t)event->block_size;
    heard->last_size = event->size;
    heard->last_stream = event->stream;
}

// What was heard adds up to what the driver's statistics say.
static void heard_is(struct allocator *allocator, const struct heard *heard) {
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(heard->reserved_bytes, stats.reserved_bytes[ALLOCATOR_STAT_ALL].current);
    BASE_CHECK_EQ(heard->active_bytes, stats.active_bytes[ALLOCATOR_STAT_ALL].current);
}

static void an_observer_hears_of_blocks_and_of_the_pools_bytes(void) {
    struct allocator *const allocator = create();
    const cudaStream_t stream = testing_stream(), other = testing_stream();
    struct heard heard = {0};
    ok(allocator_set_observer(allocator, &(struct allocator_observer){observe, &heard}));
    void *const a = testing_malloc(allocator, 40 << 20, stream);
    BASE_CHECK_EQ(heard.last_size, 40 << 20);
    BASE_CHECK(heard.last_stream == stream);
    heard_is(allocator, &heard);
    BASE_CHECK_GT(heard.reserved_bytes, 0);
    void *const b = testing_malloc(allocator, 1000, stream), *pointer;
    ok(allocator_record_stream(allocator, b, other));
    testing_free(allocator, a);
    BASE_CHECK_EQ(heard.counts[ALLOCATOR_FREE_REQUESTED], 1);
    testing_free(allocator, b);
    BASE_CHECK_EQ(heard.counts[ALLOCATOR_FREE_COMPLETED], 2);
    BASE_CHECK_EQ(heard.active_bytes, 0);
    ok(allocator_empty_cache(allocator));
    BASE_CHECK_EQ(heard.counts[ALLOCATOR_EMPTY_CACHE], 1);
    heard_is(allocator, &heard);
    BASE_CHECK_EQ(heard.reserved_bytes, 0);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, (size_t)1 << 50, stream, &pointer),
                  BASE_OUT_OF_MEMORY);
    BASE_CHECK_EQ(heard.counts[ALLOCATOR_OOM], 1);
    BASE_CHECK_EQ(heard.last_size, (size_t)1 << 50);
    ok(allocator_set_observer(allocator, NULL));
    testing_free(allocator, testing_malloc(allocator, 1000, stream));
    BASE_CHECK_EQ(heard.counts[ALLOCATOR_ALLOC], 2);
    finish(allocator);
}

// To ask for the pool's bytes would break the capture.
static void an_observer_costs_no_capture(void) {
    const struct capture capture = begin();
    struct heard heard = {0};
    ok(allocator_set_observer(capture.allocator, &(struct allocator_observer){observe, &heard}));
    void *const a = testing_malloc(capture.allocator, MIB, capture.stream);
    testing_free(capture.allocator, a);
    BASE_CHECK_EQ(heard.counts[ALLOCATOR_ALLOC], 1);
    BASE_CHECK_EQ(heard.counts[ALLOCATOR_FREE_COMPLETED], 1);
    cuda_ok(cudaGraphDestroy(end(&capture)));
    ok(allocator_set_observer(capture.allocator, NULL));
    finish(capture.allocator);
}

static void what_it_cannot_do_is_refused(void) {
    struct allocator *const allocator = create();
    struct allocator_snapshot snapshot;
    struct cca_checkpoint *checkpoint;
    void *base, *const a = testing_malloc(allocator, 1000, NULL);
    size_t size;
    bool equal;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_UNSUPPORTED);
    testing_message_is_a_sentence();
    BASE_CHECK_EQ(allocator_base_allocation(allocator, a, &base, &size), BASE_UNSUPPORTED);
    BASE_CHECK_EQ(
        cca_record_history(allocator, &(struct cca_history_options){.enabled = CCA_HISTORY_ALL}),
        BASE_UNSUPPORTED);
    BASE_CHECK(testing_message_has("the async allocator has no history"));
    const struct allocator_pool_id id = {.user = 1};
    BASE_CHECK_EQ(cca_checkpoint_get(allocator, 0, id, &checkpoint), BASE_UNSUPPORTED);
    BASE_CHECK_EQ(cca_checkpoint_compare_live(allocator, 0, id, NULL, 0, &equal), BASE_UNSUPPORTED);
    finish(allocator);
    BASE_CHECK_EQ(
        async_allocator_create(&(struct async_options){.fraction = 2, .fraction_set = true}, NULL),
        BASE_INVALID_VALUE);
}

// All that is handed out or waits goes with the allocator.
static void the_end_gives_everything_back(void) {
    struct allocator *const allocator = create();
    const cudaStream_t stream = testing_stream(), gone = testing_stream();
    void *const a = testing_malloc(allocator, MIB, stream);
    (void)testing_malloc(allocator, MIB, gone);
    (void)testing_malloc(allocator, 64 * MIB, NULL);
    cuda_ok(cudaStreamDestroy(gone));
    cuda_ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ok(async_capture_begin(allocator, 0, stream));
    testing_free(allocator, a);
    cudaGraph_t graph;
    ok(async_capture_end(allocator));
    cuda_ok(cudaStreamEndCapture(stream, &graph));
    cuda_ok(cudaGraphDestroy(graph));
    finish(allocator);
}

int main(void) {
    a_device_is_set_up_when_it_is_first_named();
    the_release_threshold_says_what_an_idle_pool_keeps(false, 0, 128 * MIB);
    the_release_threshold_says_what_an_idle_pool_keeps(true, 0, 0);
    the_release_threshold_says_what_an_idle_pool_keeps(true, 100 * MIB, 96 * MIB);
    a_fraction_limits_what_is_in_use();
    the_driver_running_out_is_the_same_error();
    a_peer_gets_access_to_the_pool();
    nothing_is_rounded();
    bad_pointers_are_refused();
    a_block_of_one_stream_is_freed_there();
    a_block_that_others_use_is_freed_behind_all_of_them(true);
    a_block_that_others_use_is_freed_behind_all_of_them(false);
    a_use_by_the_own_stream_is_a_warning();
    users_of_another_device_are_waited_for();
    a_free_that_fails_can_be_made_again();
    requests_of_a_capture_are_nodes_of_its_graph();
    one_capture_at_a_time();
    memory_from_before_that_a_capture_frees_waits_for_the_next_request();
    captured_memory_that_is_freed_after_the_capture_is_a_warning();
    streams_that_freed_in_a_capture_are_joined_at_its_end(false);
    streams_that_freed_in_a_capture_are_joined_at_its_end(true);
    a_capture_that_was_lost_ends_too();
    a_capture_survives_what_is_asked_meanwhile();
    statistics_are_what_the_driver_knows();
    an_observer_hears_of_blocks_and_of_the_pools_bytes();
    an_observer_costs_no_capture();
    what_it_cannot_do_is_refused();
    the_end_gives_everything_back();
    return 0;
}
