// Graph capture: what is told of it (captures.h), and what that changes. The rules are those of the
// contract; where a value is not obvious, a recorded decision of PyTorch gives it.
#include "allocator/captures.h"
#include "allocator/testing_setting.h"

//------------------------------------------------------------------------------------------------
// Marks.

static enum base_status mark(struct allocator *allocator, unsigned long long id,
                             unsigned long long parent) {
    return cca_capture_begin(allocator, DEVICE, &(struct cca_capture){.id = id, .parent = parent});
}

static void marks_are_balanced(void) {
    struct allocator *const allocator = testing_create("", CAPACITY);
    BASE_CHECK_EQ(cca_capture_end(allocator, DEVICE, 1), BASE_INVALID_VALUE);
    BASE_CHECK(testing_message_has("c10::Error INTERNAL ASSERT"));
    BASE_CHECK_EQ(mark(allocator, 0, 0), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(mark(allocator, 1, 0), BASE_OK);
    BASE_CHECK_EQ(mark(allocator, 1, 0), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(cca_capture_end(allocator, DEVICE, 1), BASE_OK);
    BASE_CHECK_EQ(cca_capture_end(allocator, DEVICE, 1), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(cca_capture_begin(allocator, 7, &(struct cca_capture){.id = 1}),
                  BASE_INVALID_VALUE);
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void a_capture_ends_after_its_parts(void) {
    struct allocator *const allocator = testing_create("", CAPACITY);
    BASE_CHECK_EQ(mark(allocator, 2, 1), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(mark(allocator, 1, 0), BASE_OK);
    BASE_CHECK_EQ(mark(allocator, 2, 1), BASE_OK);
    BASE_CHECK_EQ(mark(allocator, 3, 2), BASE_OK);
    BASE_CHECK_EQ(cca_capture_end(allocator, DEVICE, 1), BASE_INVALID_VALUE);
    BASE_CHECK(testing_message_has("capture 2"));
    for (unsigned long long id = 3; id > 0; --id)
        BASE_CHECK_EQ(cca_capture_end(allocator, DEVICE, id), BASE_OK);
    allocator_destroy(allocator);
}

static void as_many_captures_are_marked_as_said(void) {
    struct allocator *const allocator = testing_create("", CAPACITY);
    for (unsigned long long id = 1; id <= CCA_CAPTURES_MAX; ++id)
        BASE_CHECK_EQ(mark(allocator, id, 0), BASE_OK);
    BASE_CHECK_EQ(mark(allocator, CCA_CAPTURES_MAX + 1, 0), BASE_LIMIT);
    BASE_CHECK_EQ(cca_capture_end(allocator, DEVICE, 5), BASE_OK);
    BASE_CHECK_EQ(mark(allocator, CCA_CAPTURES_MAX + 1, 0), BASE_OK);
    cca_check(allocator);
    allocator_destroy(allocator);
}

// A mark without a capture changes nothing but that the driver is asked.
static void a_mark_alone_is_no_capture(void) {
    struct setting *const setting = setting_make(REUSE);
    BASE_CHECK_EQ(mark(setting->allocator, 9, 0), BASE_OK);
    void *const block = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, block, setting->side), BASE_OK);
    testing_free(setting->allocator, block);
    void *const again = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK(again == block);
    testing_free(setting->allocator, again);
    BASE_CHECK_EQ(cca_capture_end(setting->allocator, DEVICE, 9), BASE_OK);
    setting_end(setting);
}

//------------------------------------------------------------------------------------------------
// Deferral.

static void a_free_in_a_capture_waits_for_its_end(void) {
    struct setting *const setting = setting_capturing("");
    void *const block = take_used(setting);
    testing_free(setting->allocator, block);
    testing_order(setting->side, setting->main);
    void *const next = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK(next != block);
    BASE_CHECK_EQ(allocator_free(setting->allocator, block), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    BASE_CHECK_EQ(active(setting), 2); // nothing was asked for since
    struct cca_pending_frees pending;
    BASE_CHECK_EQ(cca_pending_frees(setting->allocator, DEVICE, &pending), BASE_OK);
    BASE_CHECK_EQ(pending.blocks, 1);
    BASE_CHECK_EQ(pending.deferred_bytes, BLOCK);
    // The first request afterwards; the capture's use needs no event.
    sim_stream_hold(setting->side, true);
    void *const eager = testing_malloc(setting->allocator, BLOCK, setting->other);
    BASE_CHECK_EQ(active(setting), 2);
    sim_stream_hold(setting->side, false);
    testing_free(setting->allocator, next);
    testing_free(setting->allocator, eager);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// It is the program's no more, whatever its memory waits for.
static void a_deferred_free_counts_at_once(void) {
    struct setting *const setting = setting_capturing("max_split_size_mb:20");
    void *const block = take_used(setting);
    struct allocator_stats stats = testing_stats(setting->allocator);
    BASE_CHECK_EQ(stats.oversize_allocations.current, 1);
    BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].current, 1);
    testing_free(setting->allocator, block);
    stats = testing_stats(setting->allocator);
    BASE_CHECK_EQ(stats.oversize_allocations.current, 0);
    BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].current, 0);
    BASE_CHECK_EQ(stats.allocated_bytes[ALLOCATOR_STAT_ALL].current, 0);
    BASE_CHECK_EQ(stats.active[ALLOCATOR_STAT_ALL].current, 1);
    testing_order(setting->side, setting->main);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// It cannot be captured, and the driver refuses to be asked about it while a stream that it waits
// for is.
static void the_default_stream_is_not_asked_about(const char *config, cudaStream_t stream) {
    struct setting *const setting = setting_make(config);
    BASE_CHECK_EQ(cudaStreamCreate(&setting->capture.stream), cudaSuccess);
    const cudaStream_t captured = setting->capture.stream;
    void *const block = testing_malloc(setting->allocator, BLOCK, stream);
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeGlobal);
    testing_launch(captured);
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, block, captured), BASE_OK);
    testing_free(setting->allocator, block);
    BASE_CHECK_EQ(active(setting), 1);
    testing_free(setting->allocator, testing_malloc(setting->allocator, BLOCK, captured));
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// Not even one that waits in the pool that the capture uses.
static void a_request_in_a_capture_asks_no_event(const char *config) {
    struct setting *const setting = setting_make(config);
    BASE_CHECK_EQ(cca_pool_begin(setting->allocator, DEVICE, pool_of_graph, NULL), BASE_OK);
    void *const block = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK_EQ(cca_pool_end(setting->allocator, DEVICE, pool_of_graph), BASE_OK);
    testing_free_after_use(setting->allocator, block, setting->other);
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeGlobal);
    const uint64_t queries = sim_call_count(SIM_CALL_EVENT_QUERY);
    void *const inside = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK(inside != block);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_EVENT_QUERY), queries);
    BASE_CHECK_EQ(active(setting), 2);
    testing_free(setting->allocator, inside);
    testing_launch(setting->main);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    BASE_CHECK_EQ(cca_pool_release(setting->allocator, DEVICE, pool_of_graph), BASE_OK);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// Memory from before the capture goes back to where it came from, and the capture gets none of it.
static void a_block_from_before_is_freed_to_its_own_pool(const char *config) {
    struct setting *const setting = setting_make(config);
    void *const plain = testing_malloc(setting->allocator, BLOCK, setting->main);
    void *const used = testing_malloc(setting->allocator, BLOCK, setting->main);
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeGlobal);
    testing_launch(setting->main);
    testing_order(setting->main, setting->side);
    testing_launch(setting->side);
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, used, setting->side), BASE_OK);
    testing_free(setting->allocator, plain);
    testing_free(setting->allocator, used);
    testing_order(setting->side, setting->main);
    testing_launch(setting->main);
    void *const inside = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK(inside != plain && inside != used);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    void *const first = testing_malloc(setting->allocator, BLOCK, setting->main);
    void *const second = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK((first == plain && second == used) || (first == used && second == plain));
    testing_free(setting->allocator, inside);
    testing_free(setting->allocator, first);
    testing_free(setting->allocator, second);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

static void a_block_without_uses_is_free_at_once(void) {
    struct setting *const setting = setting_capturing("");
    void *const block = testing_malloc(setting->allocator, BLOCK, setting->main);
    testing_launch(setting->main);
    testing_free(setting->allocator, block);
    BASE_CHECK(testing_malloc(setting->allocator, BLOCK, setting->main) == block);
    testing_free(setting->allocator, block);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// A use that was recorded before the capture still needs its event, also where the same stream uses
// the block in the capture again. PyTorch forgets it then.
static void uses_from_before_a_capture_are_waited_for(const char *config, bool is_forgotten) {
    struct setting *const setting = setting_make(config);
    void *const block = testing_malloc(setting->allocator, BLOCK, setting->main);
    sim_stream_hold(setting->side, true);
    testing_launch(setting->side);
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, block, setting->side), BASE_OK);
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeGlobal);
    testing_order(setting->main, setting->side);
    testing_launch(setting->side);
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, block, setting->side), BASE_OK);
    testing_free(setting->allocator, block);
    testing_order(setting->side, setting->main);
    void *const inside = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    void *const first = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK_EQ(first == block, is_forgotten);
    sim_stream_hold(setting->side, false);
    BASE_CHECK_EQ(cudaStreamSynchronize(setting->side), cudaSuccess);
    void *const second = testing_malloc(setting->allocator, BLOCK, setting->main);
    if (!is_forgotten) BASE_CHECK(second == block);
    testing_free(setting->allocator, inside);
    testing_free(setting->allocator, first);
    testing_free(setting->allocator, second);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

//------------------------------------------------------------------------------------------------
// Reuse.

static void a_block_is_used_again_behind_its_uses(const char *config) {
    struct setting *const setting = setting_capturing(config);
    void *const block = take_used(setting);
    testing_free(setting->allocator, block);
    void *const early = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK(early != block); // the side stream may still be at work
    testing_launch(setting->main);
    testing_order(setting->side, setting->main);
    testing_launch(setting->main); // the first form needs one node behind all of them,
    testing_order(setting->main, setting->side);
    testing_launch(setting->side); // and its graph-wide rule one on each stream
    testing_order(setting->side, setting->main);
    testing_launch(setting->main);
    void *const late = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK(late == block);
    testing_free(setting->allocator, early);
    testing_free(setting->allocator, late);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    BASE_CHECK_EQ(active(setting), 0);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// The first form, which was that of 2.9, marks each stream with a node of the user's graph.
static void a_free_adds_nodes(const char *config, size_t node_count) {
    struct setting *const setting = setting_capturing(config);
    size_t count = 0;
    testing_free(setting->allocator, take_used(setting));
    testing_order(setting->side, setting->main);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphGetNodes(setting->capture.graph, NULL, &count), cudaSuccess);
    BASE_CHECK_EQ(count, 2 + node_count); // two kernels
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// All streams join in one node, which depends on more nodes than the driver is asked for at once.
static void a_block_of_many_streams_is_used_again_behind_all(int stream_count) {
    struct setting *const setting = setting_make(REUSE);
    cudaStream_t streams[12];
    BASE_CHECK_LE(stream_count, 12);
    for (int index = 0; index < stream_count; ++index)
        streams[index] = testing_stream();
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeGlobal);
    void *const block = testing_malloc(setting->allocator, BLOCK, setting->main);
    testing_launch(setting->main);
    for (int index = 0; index < stream_count; ++index) {
        testing_order(setting->main, streams[index]);
        testing_launch(streams[index]);
        BASE_CHECK_EQ(allocator_record_stream(setting->allocator, block, streams[index]), BASE_OK);
    }
    testing_free(setting->allocator, block);
    for (int index = 0; index + 1 < stream_count; ++index)
        testing_order(streams[index], setting->main);
    testing_launch(setting->main); // all but one
    void *const early = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK(early != block);
    for (int index = 0; index < stream_count; ++index) {
        testing_launch(streams[index]);
        testing_order(streams[index], setting->main);
    }
    testing_launch(setting->main);
    BASE_CHECK(testing_malloc(setting->allocator, BLOCK, setting->main) == block);
    testing_free(setting->allocator, early);
    testing_free(setting->allocator, block);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// What was deferred to the end is free when the scope of its pool ends, not only at the next
// request; in releases up to 2.11 and without the key at the next request.
static void the_end_of_the_scope_flushes(const char *config, bool at_once) {
    struct setting *const setting = setting_capturing(config);
    void *const block = take_used(setting);
    testing_free(setting->allocator, block);
    testing_order(setting->side, setting->main);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    BASE_CHECK_EQ(active(setting), at_once ? 0 : 1);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

//------------------------------------------------------------------------------------------------
// Failures.

static void an_invalidated_capture_refuses_and_unwinds(const char *config) {
    struct setting *const setting = setting_capturing(config);
    void *pointer;
    void *const deferred = take_used(setting);
    void *const plain = testing_malloc(setting->allocator, BLOCK, setting->main);
    void *const used = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, used, setting->side), BASE_OK);
    testing_free(setting->allocator, deferred);
    void *memory;
    BASE_CHECK_EQ(cudaMalloc(&memory, 1024), cudaErrorStreamCaptureUnsupported);
    (void)cudaGetLastError();
    BASE_CHECK_EQ(allocator_malloc(setting->allocator, 0, BLOCK, setting->main, &pointer),
                  BASE_INVALID_VALUE);
    BASE_CHECK(testing_message_has("invalidated"));
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, plain, setting->side),
                  BASE_INVALID_VALUE);
    testing_free(setting->allocator, plain);
    testing_free(setting->allocator, used);
    BASE_CHECK_EQ(active(setting), 3);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaErrorStreamCaptureInvalidated);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

static void an_unjoined_capture_unwinds(const char *config) {
    struct setting *const setting = setting_capturing(config);
    testing_free(setting->allocator, take_used(setting));
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaErrorStreamCaptureUnjoined);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// The driver's end failed and the program forgot the rest: the next call outside of the capture
// frees what was deferred all the same.
static void a_forgotten_mark_keeps_nothing(void) {
    struct setting *const setting = setting_capturing(REUSE);
    testing_free(setting->allocator, take_used(setting));
    BASE_CHECK_EQ(cudaStreamEndCapture(setting->main, &setting->capture.graph),
                  cudaErrorStreamCaptureUnjoined);
    (void)cudaGetLastError();
    testing_capture_destroy(&setting->capture);
    BASE_CHECK_EQ(allocator_empty_cache(setting->allocator), BASE_OK);
    BASE_CHECK_EQ(testing_stats(setting->allocator).reserved_bytes[0].current, 0);
    BASE_CHECK_EQ(cca_capture_end(setting->allocator, DEVICE, atomic_load(&setting->capture.id)),
                  BASE_OK);
    BASE_CHECK_EQ(cca_pool_end(setting->allocator, DEVICE, pool_of_graph), BASE_OK);
    setting_end(setting);
}

static void out_of_memory_in_a_capture_gives_nothing_back(const char *config) {
    struct setting *const setting = setting_make(config);
    void *pointer = NULL;
    void *const cached = testing_malloc(setting->allocator, 100 * BASE_MIB, setting->main);
    testing_free(setting->allocator, cached);
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeGlobal);
    testing_free(setting->allocator,
                 testing_malloc(setting->allocator, 60 * BASE_MIB, setting->main));
    testing_launch(setting->main);
    BASE_CHECK_EQ(allocator_malloc(setting->allocator, 0, 200 * BASE_MIB, setting->main, &pointer),
                  BASE_OUT_OF_MEMORY);
    const struct allocator_stats stats = testing_stats(setting->allocator);
    BASE_CHECK_EQ(stats.num_ooms, 1);
    BASE_CHECK_EQ(stats.num_device_free, 0);
    BASE_CHECK_EQ(stats.num_alloc_retries, 0);
    BASE_CHECK_EQ(stats.num_sync_all_streams, 0);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_FREE), 0);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_MEM_UNMAP), 0);
    testing_launch(setting->main); // the capture goes on
    void *const fits = testing_malloc(setting->allocator, 20 * BASE_MIB, setting->main);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    testing_free(setting->allocator, fits);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// Idle blocks that a request outside would give back to the device stay while it captures.
static void garbage_is_not_collected_in_a_capture(void) {
    struct setting *const setting = setting_make("garbage_collection_threshold:0.2");
    BASE_CHECK_EQ(cca_set_memory_fraction(setting->allocator, DEVICE, 0.5), BASE_OK);
    void *idle[2];
    for (int index = 0; index < 2; ++index)
        idle[index] = testing_malloc(setting->allocator, BLOCK, setting->main);
    for (int index = 0; index < 2; ++index)
        testing_free(setting->allocator, idle[index]);
    for (int times = 0; times < 10; ++times) // they grow older
        testing_free(setting->allocator, testing_malloc(setting->allocator, BLOCK, setting->main));
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeGlobal);
    void *const inside = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK_EQ(testing_stats(setting->allocator).num_device_free, 0);
    testing_launch(setting->main);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    // The same request outside does it.
    void *const outside = testing_malloc(setting->allocator, 2 * BLOCK, setting->side);
    BASE_CHECK_LT(0, testing_stats(setting->allocator).num_device_free);
    testing_free(setting->allocator, inside);
    testing_free(setting->allocator, outside);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

static bool accepts_no_stream(void *context, cudaStream_t stream) {
    (void)context;
    (void)stream;
    return false;
}

// Where an open scope counts as a capture nothing is captured by the driver: of the ladder only the
// rung that waits is left out.
static void a_scope_that_counts_as_a_capture_gives_cached_blocks_back(void) {
    static const struct cca_pool_filter filter = {.accepts = accepts_no_stream};
    struct setting *const setting = setting_make("x_torch:2.8,max_split_size_mb:21");
    void *cached[2];
    for (int index = 0; index < 2; ++index)
        cached[index] = testing_malloc(setting->allocator, 100 * BASE_MIB, setting->main);
    for (int index = 0; index < 2; ++index)
        testing_free(setting->allocator, cached[index]);
    BASE_CHECK_EQ(cca_pool_begin(setting->allocator, DEVICE, second_pool, &filter), BASE_OK);
    void *const larger = testing_malloc(setting->allocator, 150 * BASE_MIB, setting->main);
    const struct allocator_stats stats = testing_stats(setting->allocator);
    BASE_CHECK_LT(0, stats.num_device_free);
    BASE_CHECK_EQ(stats.num_sync_all_streams, 0);
    BASE_CHECK_EQ(cca_pool_end(setting->allocator, DEVICE, second_pool), BASE_OK);
    BASE_CHECK_EQ(cca_pool_release(setting->allocator, DEVICE, second_pool), BASE_OK);
    testing_free(setting->allocator, larger);
    setting_end(setting);
}

static void requests_that_no_scope_takes_are_refused(void) {
    struct setting *const setting = setting_make(REUSE);
    void *pointer = NULL;
    BASE_CHECK_EQ(cudaStreamBeginCapture(setting->main, cudaStreamCaptureModeGlobal), cudaSuccess);
    testing_capture_mark(&setting->capture);
    testing_launch(setting->main);
    BASE_CHECK_EQ(allocator_malloc(setting->allocator, 0, BLOCK, setting->main, &pointer),
                  BASE_INVALID_VALUE);
    BASE_CHECK(testing_message_has("scope"));
    BASE_CHECK_EQ(cudaStreamEndCapture(setting->main, &setting->capture.graph), cudaSuccess);
    BASE_CHECK_EQ(cca_capture_end(setting->allocator, DEVICE, atomic_load(&setting->capture.id)),
                  BASE_OK);
    BASE_CHECK_EQ(cudaGraphDestroy(setting->capture.graph), cudaSuccess);
    setting_end(setting);
}

//------------------------------------------------------------------------------------------------
// empty_cache.

static void empty_cache_in_a_capture_keeps_what_is_cached(void) {
    struct setting *const setting = setting_make("");
    testing_free(setting->allocator, testing_malloc(setting->allocator, BLOCK, setting->main));
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeGlobal);
    testing_free(setting->allocator, take_used(setting));
    BASE_CHECK_EQ(allocator_empty_cache(setting->allocator), BASE_OK);
    BASE_CHECK_EQ(active(setting), 1);
    BASE_CHECK_EQ(testing_stats(setting->allocator).segment[0].current, 2);
    testing_launch(setting->main); // the capture is well
    testing_order(setting->side, setting->main);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// To give memory back would break the capture: the pool goes with the next empty_cache.
static void a_pool_destroyed_in_a_capture_goes_later(void) {
    struct setting *const setting = setting_make("");
    BASE_CHECK_EQ(cca_pool_begin(setting->allocator, DEVICE, second_pool, NULL), BASE_OK);
    void *const block = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK_EQ(cca_pool_end(setting->allocator, DEVICE, second_pool), BASE_OK);
    testing_free_after_use(setting->allocator, block, setting->other);
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeGlobal);
    testing_launch(setting->main);
    BASE_CHECK_EQ(cca_pool_destroy(setting->allocator, DEVICE, second_pool), BASE_OK);
    BASE_CHECK_EQ(testing_stats(setting->allocator).num_device_free, 0);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// The current stream, where the program tells it, decides as in PyTorch.
static cudaStream_t current_stream;
static cudaStream_t tell_current(void *context, int device) {
    BASE_CHECK(context == NULL && device == DEVICE);
    return current_stream;
}

static void the_current_stream_decides_where_it_is_told(void) {
    struct setting *const setting = setting_make("");
    void *pointer = NULL;
    cca_set_current_stream_source(setting->allocator,
                                  &(struct cca_current_stream_source){.current = tell_current});
    current_stream = setting->main;
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeGlobal);
    void *const block = take_used(setting);
    testing_free(setting->allocator, block);
    BASE_CHECK_EQ(active(setting), 1);
    testing_order(setting->side, setting->main);
    // h14b: a segment is taken in the thread's own mode, which the capture forbids.
    current_stream = setting->other;
    BASE_CHECK_EQ(allocator_malloc(setting->allocator, 0, 40 * BASE_MIB, setting->main, &pointer),
                  BASE_CUDA);
    BASE_CHECK(testing_message_has("cudaErrorStreamCaptureUnsupported"));
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaErrorStreamCaptureInvalidated);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// Up to about 2.10 every scope counted as a capture, whoever asked; since then only marks do.
static void an_open_scope_was_a_capture(const char *config, bool is_capture) {
    static const struct cca_pool_filter filter = {.accepts = accepts_no_stream};
    struct setting *const setting = setting_make(config);
    BASE_CHECK_EQ(cca_pool_begin(setting->allocator, DEVICE, second_pool, &filter), BASE_OK);
    void *const block = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, block, setting->side), BASE_OK);
    testing_free(setting->allocator, block);
    void *const first = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK_EQ(first == block, !is_capture);
    BASE_CHECK_EQ(cca_pool_end(setting->allocator, DEVICE, second_pool), BASE_OK);
    void *const second = testing_malloc(setting->allocator, BLOCK, setting->main);
    if (is_capture) BASE_CHECK(second == block);
    testing_free(setting->allocator, first);
    testing_free(setting->allocator, second);
    BASE_CHECK_EQ(cca_pool_release(setting->allocator, DEVICE, second_pool), BASE_OK);
    setting_end(setting);
}

// PyTorch loses a block that is freed in an invalidated capture. Here its second free succeeds.
static void a_free_that_an_assertion_breaks_off_can_be_made_again(void) {
    struct setting *const setting = setting_capturing("x_torch_faults:True");
    void *const block = take_used(setting);
    void *memory;
    BASE_CHECK_EQ(cudaMalloc(&memory, 1024), cudaErrorStreamCaptureUnsupported);
    (void)cudaGetLastError();
    BASE_CHECK_EQ(allocator_free(setting->allocator, block), BASE_INVALID_VALUE);
    BASE_CHECK(testing_message_has("INTERNAL ASSERT"));
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaErrorStreamCaptureInvalidated);
    BASE_CHECK_EQ(allocator_empty_cache(setting->allocator), BASE_OK);
    BASE_CHECK_EQ(active(setting), 1);
    testing_free(setting->allocator, block);
    BASE_CHECK_EQ(allocator_free(setting->allocator, block), BASE_INVALID_POINTER);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// An event goes into a capture that nobody marked (h35): one request hears of it, nothing is lost.
static void an_event_in_an_unknown_capture_is_recorded_again(void) {
    struct setting *const setting = setting_make("");
    void *pointer = NULL;
    void *const block = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK_EQ(cudaStreamBeginCapture(setting->side, cudaStreamCaptureModeRelaxed), cudaSuccess);
    testing_launch(setting->side);
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, block, setting->side), BASE_OK);
    testing_free(setting->allocator, block);
    BASE_CHECK_EQ(cudaStreamEndCapture(setting->side, &setting->capture.graph), cudaSuccess);
    BASE_CHECK_EQ(allocator_malloc(setting->allocator, 0, BLOCK, setting->main, &pointer),
                  BASE_CUDA);
    BASE_CHECK(testing_message_has("cudaErrorCapturedEvent"));
    BASE_CHECK(testing_malloc(setting->allocator, BLOCK, setting->main) == block);
    testing_free(setting->allocator, block);
    BASE_CHECK_EQ(cudaGraphDestroy(setting->capture.graph), cudaSuccess);
    setting_end(setting);
}

int main(void) {
    marks_are_balanced();
    a_capture_ends_after_its_parts();
    as_many_captures_are_marked_as_said();
    a_mark_alone_is_no_capture();
    a_free_in_a_capture_waits_for_its_end();
    a_deferred_free_counts_at_once();
    a_block_without_uses_is_free_at_once();
    static const char *const forms[] = {"", REUSE, "x_capture_reuse:markers"};
    for (int form = 0; form < 3; ++form) {
        the_default_stream_is_not_asked_about(forms[form], NULL);
        the_default_stream_is_not_asked_about(forms[form], cudaStreamLegacy);
    }
    a_request_in_a_capture_asks_no_event("");
    a_request_in_a_capture_asks_no_event(REUSE);
    a_request_in_a_capture_asks_no_event("x_poll:own");
    a_block_from_before_is_freed_to_its_own_pool("");
    a_block_from_before_is_freed_to_its_own_pool(REUSE);
    a_block_from_before_is_freed_to_its_own_pool("x_capture_reuse:markers");
    uses_from_before_a_capture_are_waited_for("", false);
    uses_from_before_a_capture_are_waited_for(REUSE, false);
    uses_from_before_a_capture_are_waited_for("x_torch_faults:True", true);
    uses_from_before_a_capture_are_waited_for(REUSE ",x_torch_faults:True", true);
    a_block_is_used_again_behind_its_uses(REUSE);
    a_block_is_used_again_behind_its_uses("x_capture_reuse:terminals");
    a_block_is_used_again_behind_its_uses("x_capture_reuse:markers");
    a_block_is_used_again_behind_its_uses("x_capture_reuse:markers_graph");
    a_block_is_used_again_behind_its_uses("x_torch:2.9," REUSE);
    a_free_adds_nodes("", 0);
    a_free_adds_nodes(REUSE, 0);
    a_free_adds_nodes("x_torch:2.10," REUSE, 0);
    a_free_adds_nodes("x_torch:2.9," REUSE, 2);
    a_free_adds_nodes("x_torch:2.9", 0);
    a_free_adds_nodes("x_capture_reuse:markers", 2);
    a_free_adds_nodes("x_capture_reuse:markers_graph", 2);
    for (int stream_count = 2; stream_count <= 12; ++stream_count)
        a_block_of_many_streams_is_used_again_behind_all(stream_count);
    the_end_of_the_scope_flushes(REUSE, true);
    the_end_of_the_scope_flushes("", false);
    the_end_of_the_scope_flushes("x_torch:2.11," REUSE, false);
    an_invalidated_capture_refuses_and_unwinds("");
    an_invalidated_capture_refuses_and_unwinds(REUSE);
    an_unjoined_capture_unwinds("");
    an_unjoined_capture_unwinds(REUSE);
    a_forgotten_mark_keeps_nothing();
    out_of_memory_in_a_capture_gives_nothing_back("");
    out_of_memory_in_a_capture_gives_nothing_back("expandable_segments:True");
    out_of_memory_in_a_capture_gives_nothing_back("max_split_size_mb:20");
    out_of_memory_in_a_capture_gives_nothing_back(REUSE);
    out_of_memory_in_a_capture_gives_nothing_back("x_capture_reuse:markers");
    requests_that_no_scope_takes_are_refused();
    empty_cache_in_a_capture_keeps_what_is_cached();
    a_pool_destroyed_in_a_capture_goes_later();
    the_current_stream_decides_where_it_is_told();
    garbage_is_not_collected_in_a_capture();
    a_scope_that_counts_as_a_capture_gives_cached_blocks_back();
    an_open_scope_was_a_capture("x_torch:2.8", true);
    an_open_scope_was_a_capture("", false);
    a_free_that_an_assertion_breaks_off_can_be_made_again();
    an_event_in_an_unknown_capture_is_recorded_again();
    return 0;
}
