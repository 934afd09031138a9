// Graph capture (captures.h): calls beside captures that are under way, from other threads and
// streams, and captures that are parts of others.
#include "allocator/captures.h"
#include "allocator/checkpoint.h"
#include "allocator/testing_setting.h"

// A request beside the capture finishes what the capture deferred, for the books; but the capture
// gets it only behind the side stream. PyTorch hands it out before (h37).
static void a_request_beside_a_capture_gives_it_nothing_too_early(const char *config,
                                                                  bool is_early) {
    struct setting *const setting = setting_make(config);
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeThreadLocal);
    void *const block = take_used(setting);
    testing_free(setting->allocator, block);
    BASE_CHECK_EQ(active(setting), 1);
    struct base_thread thread;
    base_thread_start(&thread, malloc_on_another_thread, setting);
    base_thread_join(&thread);
    BASE_CHECK_EQ(active(setting), 1); // the block went, the other came
    void *const early = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK_EQ(early == block, is_early);
    testing_launch(setting->main);
    testing_order(setting->side, setting->main);
    void *const late = testing_malloc(setting->allocator, BLOCK, setting->main);
    if (!is_early) BASE_CHECK(late == block);
    testing_launch(setting->main);
    // What the first form knew of the free is forgotten, although its markers are proven now.
    testing_free(setting->allocator, take_used(setting));
    testing_order(setting->side, setting->main);
    testing_launch(setting->main);
    testing_free(setting->allocator, testing_malloc(setting->allocator, BLOCK, setting->main));
    testing_free(setting->allocator, early);
    testing_free(setting->allocator, late);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    testing_free(setting->allocator, setting->of_other_thread);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

static bool overlaps(const void *block, const void *other, size_t size) {
    const uintptr_t start = (uintptr_t)block, from = (uintptr_t)other;
    return from < start + BLOCK && start < from + size;
}

// Nor is it a part of a larger block that grows out of it (expandable segments), or of one that is
// wanted at its address.
static void a_request_beside_a_capture_gives_no_part_too_early(const char *config) {
    struct setting *const setting = setting_make(config);
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeRelaxed);
    void *const block = take_used(setting);
    testing_free(setting->allocator, block);
    malloc_on_another_thread(setting);
    BASE_CHECK_EQ(active(setting), 1); // the block went, the other came
    void *const larger = testing_malloc(setting->allocator, 2 * BLOCK, setting->main);
    BASE_CHECK(!overlaps(block, larger, 2 * BLOCK));
    void *const smaller = testing_malloc(setting->allocator, BLOCK / 2, setting->main);
    BASE_CHECK(!overlaps(block, smaller, BLOCK / 2));
    void *at = NULL;
    BASE_CHECK_EQ(cca_malloc_at(setting->allocator, DEVICE, BLOCK, setting->main, block, &at),
                  BASE_INVALID_VALUE);
    testing_launch(setting->main);
    testing_order(setting->side, setting->main);
    BASE_CHECK_EQ(cca_malloc_at(setting->allocator, DEVICE, BLOCK, setting->main, block, &at),
                  BASE_OK);
    testing_free(setting->allocator, at);
    BASE_CHECK(testing_malloc(setting->allocator, BLOCK, setting->main) == block);
    testing_launch(setting->main);
    testing_free(setting->allocator, block);
    testing_free(setting->allocator, larger);
    testing_free(setting->allocator, smaller);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    testing_free(setting->allocator, setting->of_other_thread);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// Memory that one capture still uses does not come free with the end of another one, which was
// under way when it was flushed.
static void the_end_of_another_capture_gives_nothing_too_early(const char *config) {
    struct setting *const setting = setting_make(config);
    struct testing_capture another = {
        .allocator = setting->allocator, .pool = second_pool, .stream = setting->other};
    const cudaStream_t outside = testing_stream();
    testing_capture_begin(&another, cudaStreamCaptureModeRelaxed);
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeRelaxed);
    testing_launch(setting->other);
    void *const block = take_used(setting);
    testing_free(setting->allocator, block);
    void *const flushing = testing_malloc(setting->allocator, 4096, outside);
    BASE_CHECK_EQ(active(setting), 1);
    BASE_CHECK_EQ(testing_capture_end(&another), cudaSuccess);
    void *const early = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK(early != block);
    testing_launch(setting->main);
    testing_order(setting->side, setting->main);
    testing_launch(setting->main);
    BASE_CHECK(testing_malloc(setting->allocator, BLOCK, setting->main) == block);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    testing_free(setting->allocator, flushing);
    testing_free(setting->allocator, early);
    testing_free(setting->allocator, block);
    testing_capture_destroy(&another);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// The first of two marked captures is over for the driver, its mark is not taken off yet: emptying
// the cache would break the second.
static void empty_cache_asks_for_each_capture(void) {
    struct setting *const setting = setting_make("");
    struct testing_capture another = {
        .allocator = setting->allocator, .pool = second_pool, .stream = setting->other};
    testing_free(setting->allocator, testing_malloc(setting->allocator, BLOCK, setting->side));
    testing_capture_begin(&another, cudaStreamCaptureModeGlobal);
    testing_launch(setting->other);
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeGlobal);
    testing_launch(setting->main);
    BASE_CHECK_EQ(cudaStreamEndCapture(setting->other, &another.graph), cudaSuccess);
    BASE_CHECK_EQ(allocator_empty_cache(setting->allocator), BASE_OK);
    BASE_CHECK_EQ(testing_stats(setting->allocator).num_device_free, 0);
    BASE_CHECK_EQ(cca_capture_end(setting->allocator, DEVICE, atomic_load(&another.id)), BASE_OK);
    BASE_CHECK_EQ(cca_pool_end(setting->allocator, DEVICE, second_pool), BASE_OK);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    testing_capture_destroy(&another);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// A block that is deferred until the end, since no event can be recorded for the side stream's use
// from before it was captured.
static void defer_until_the_end(struct setting *setting) {
    void *const block = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, block, setting->side), BASE_OK);
    testing_launch(setting->main);
    testing_order(setting->main, setting->side);
    testing_launch(setting->side);
    testing_free(setting->allocator, block);
}

// Flushes pass over what one of them left waiting; it may go by the end of its scope, before the
// mark is taken off.
static void what_a_flush_left_may_go_with_its_scope(void) {
    struct setting *const setting = setting_make(REUSE);
    const cudaStream_t outside = testing_stream(), fork = testing_stream();
    struct testing_capture another = {
        .allocator = setting->allocator, .pool = second_pool, .stream = setting->other};
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeRelaxed);
    defer_until_the_end(setting);
    void *const first = testing_malloc(setting->allocator, 4096, outside);
    BASE_CHECK_EQ(active(setting), 2); // no event can be recorded
    testing_order(setting->side, setting->main);
    BASE_CHECK_EQ(cudaStreamEndCapture(setting->main, &setting->capture.graph), cudaSuccess);
    BASE_CHECK_EQ(cca_pool_end(setting->allocator, DEVICE, pool_of_graph), BASE_OK);
    // The next one that waits is found.
    testing_capture_begin(&another, cudaStreamCaptureModeRelaxed);
    void *const next = testing_malloc(setting->allocator, BLOCK, setting->other);
    testing_launch(setting->other);
    testing_order(setting->other, fork);
    testing_launch(fork);
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, next, fork), BASE_OK);
    testing_free(setting->allocator, next);
    BASE_CHECK_EQ(active(setting), 3);
    void *const second = testing_malloc(setting->allocator, 4096, outside);
    BASE_CHECK_EQ(active(setting), 2);
    testing_order(fork, setting->other);
    BASE_CHECK_EQ(testing_capture_end(&another), cudaSuccess);
    BASE_CHECK_EQ(cca_capture_end(setting->allocator, DEVICE, atomic_load(&setting->capture.id)),
                  BASE_OK);
    testing_free(setting->allocator, first);
    testing_free(setting->allocator, second);
    testing_capture_destroy(&another);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

static void what_a_flush_left_is_looked_at_after_the_capture(void) {
    struct setting *const setting = setting_make("");
    const cudaStream_t outside = testing_stream();
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeRelaxed);
    defer_until_the_end(setting);
    void *const first = testing_malloc(setting->allocator, 4096, outside);
    testing_order(setting->side, setting->main);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    BASE_CHECK_EQ(active(setting), 2);
    void *const second = testing_malloc(setting->allocator, 4096, outside); // records the event,
    void *const third = testing_malloc(setting->allocator, 4096, outside);  // and asks it
    BASE_CHECK_EQ(active(setting), 3);
    testing_free(setting->allocator, first);
    testing_free(setting->allocator, second);
    testing_free(setting->allocator, third);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

static void a_free_of_a_capture_under_way_keeps_its_pool_from_being_restored(void) {
    struct setting *const setting = setting_make("");
    struct cca_checkpoint *checkpoint;
    struct cca_restored restored;
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeRelaxed);
    testing_free(setting->allocator, testing_malloc(setting->allocator, BLOCK, setting->main));
    BASE_CHECK_EQ(cca_checkpoint_get(setting->allocator, DEVICE, pool_of_graph, &checkpoint),
                  BASE_OK);
    defer_until_the_end(setting);
    BASE_CHECK_EQ(cca_checkpoint_set(setting->allocator, checkpoint, &restored),
                  BASE_INVALID_VALUE);
    BASE_CHECK(testing_message_has("freed in a capture that is still under way"));
    BASE_CHECK_EQ(active(setting), 1);
    testing_order(setting->side, setting->main);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    BASE_CHECK_EQ(cca_checkpoint_set(setting->allocator, checkpoint, &restored), BASE_OK);
    BASE_CHECK_EQ(active(setting), 0);
    cca_restored_deinit(&restored);
    cca_checkpoint_destroy(checkpoint);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

static void free_on_another_thread(void *argument) {
    struct setting *const setting = argument;
    testing_free(setting->allocator, setting->of_other_thread);
}

static void frees_come_from_other_threads(const char *config, bool reuses) {
    struct setting *const setting = setting_capturing(config);
    void *const block = take_used(setting);
    setting->of_other_thread = block;
    struct base_thread thread;
    base_thread_start(&thread, free_on_another_thread, setting);
    base_thread_join(&thread);
    BASE_CHECK_EQ(active(setting), 1);
    testing_order(setting->side, setting->main);
    testing_launch(setting->main);
    void *const next = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK_EQ(next == block, reuses);
    testing_free(setting->allocator, next);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

//------------------------------------------------------------------------------------------------
// Parts, and pools that go first.

// A capture of the side stream, with a pool of its own, that becomes a part of the setting's.
static void part_begin(struct setting *setting, struct testing_capture *part) {
    *part = (struct testing_capture){.allocator = setting->allocator,
                                     .pool = second_pool,
                                     .stream = setting->side,
                                     .parent = atomic_load(&setting->capture.id)};
    testing_capture_begin(part, cudaStreamCaptureModeRelaxed);
}

// Two captures of two pools; the second, a part of the first, ends before it. What it deferred is
// not for the first one.
static void what_a_part_deferred_waits_for_the_whole(void) {
    struct setting *const setting = setting_make(REUSE);
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeRelaxed);
    void *const block = testing_malloc(setting->allocator, BLOCK, setting->main);
    testing_launch(setting->main);
    struct testing_capture part;
    part_begin(setting, &part);
    testing_launch(setting->side);
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, block, setting->side), BASE_OK);
    testing_free(setting->allocator, block);
    BASE_CHECK_EQ(testing_capture_end(&part), cudaSuccess);
    malloc_on_another_thread(setting); // flushes
    void *const other = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK(other != block);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    testing_free(setting->allocator, other);
    testing_free(setting->allocator, setting->of_other_thread);
    testing_capture_destroy(&part);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// A part ends, and none of its streams is captured any more; the whole that it belongs to goes on.
// What was freed in it is not for another part, which nothing orders behind the first one.
// LATE: it is flushed only while the other part has all its streams.
static void what_a_part_deferred_is_not_for_another_part(const char *config, bool late) {
    struct setting *const setting = setting_make(config);
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeRelaxed);
    testing_launch(setting->main);
    struct testing_capture part;
    part_begin(setting, &part);
    void *const block = testing_malloc(setting->allocator, BLOCK, setting->side);
    testing_launch(setting->side);
    testing_order(setting->side, setting->other);
    testing_launch(setting->other);
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, block, setting->other), BASE_OK);
    testing_free(setting->allocator, block);
    testing_order(setting->other, setting->side);
    BASE_CHECK_EQ(testing_capture_end(&part), cudaSuccess);
    const cudaStream_t outside = testing_stream();
    void *flushing = NULL;
    if (!late) flushing = testing_malloc(setting->allocator, 4096, outside);
    struct testing_capture next;
    part_begin(setting, &next);
    testing_launch(setting->side);
    testing_order(setting->side, setting->other);
    testing_launch(setting->other);
    if (late) flushing = testing_malloc(setting->allocator, 4096, outside);
    BASE_CHECK_EQ(active(setting), 1);
    testing_order(setting->other, setting->side);
    void *const inside = testing_malloc(setting->allocator, BLOCK, setting->side);
    BASE_CHECK(inside != block);
    testing_launch(setting->side);
    BASE_CHECK_EQ(testing_capture_end(&next), cudaSuccess);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    // The whole is over: the pool's memory is the pool's.
    BASE_CHECK_EQ(cca_pool_begin(setting->allocator, DEVICE, second_pool, NULL), BASE_OK);
    BASE_CHECK(testing_malloc(setting->allocator, BLOCK, setting->side) == block);
    BASE_CHECK_EQ(cca_pool_end(setting->allocator, DEVICE, second_pool), BASE_OK);
    BASE_CHECK_EQ(cca_pool_release(setting->allocator, DEVICE, second_pool), BASE_OK);
    testing_free(setting->allocator, block);
    testing_free(setting->allocator, inside);
    testing_free(setting->allocator, flushing);
    testing_capture_destroy(&next);
    testing_capture_destroy(&part);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

// Its memory goes with the last block, not before: the graph can be replayed until then.
static void a_pool_destroyed_while_its_graph_lives_keeps_the_blocks_in_use(void) {
    struct setting *const setting = setting_capturing(REUSE);
    cudaGraphExec_t exec;
    void *const kept = take_used(setting), *const freed = take_used(setting);
    testing_free(setting->allocator, freed);
    testing_order(setting->side, setting->main);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    BASE_CHECK_EQ(cca_pool_destroy(setting->allocator, DEVICE, pool_of_graph), BASE_OK);
    BASE_CHECK_EQ(active(setting), 1);
    BASE_CHECK_EQ(testing_stats(setting->allocator).reserved_bytes[ALLOCATOR_STAT_ALL].current,
                  BLOCK);
    BASE_CHECK_EQ(cca_pool_destroy(setting->allocator, DEVICE, pool_of_graph), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, setting->capture.graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, setting->main), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(setting->main), cudaSuccess);
    testing_free(setting->allocator, kept);
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(setting->capture.graph), cudaSuccess);
    setting_end(setting);
}

// The block of the first capture is used in the part, and freed when that is over. The part's
// stream captures nothing then, and what it did there is a node that none of the block's streams is
// behind.
static void what_a_part_used_waits_for_the_whole(const char *config, bool flushes) {
    struct setting *const setting = setting_make(config);
    testing_capture_begin(&setting->capture, cudaStreamCaptureModeRelaxed);
    void *const block = testing_malloc(setting->allocator, BLOCK, setting->main);
    testing_launch(setting->main);
    struct testing_capture part;
    part_begin(setting, &part);
    testing_launch(setting->side);
    BASE_CHECK_EQ(allocator_record_stream(setting->allocator, block, setting->side), BASE_OK);
    BASE_CHECK_EQ(testing_capture_end(&part), cudaSuccess);
    testing_free(setting->allocator, block);
    if (flushes) malloc_on_another_thread(setting);
    testing_launch(setting->main);
    void *const other = testing_malloc(setting->allocator, BLOCK, setting->main);
    BASE_CHECK(other != block);
    BASE_CHECK_EQ(testing_capture_end(&setting->capture), cudaSuccess);
    testing_free(setting->allocator, other);
    if (flushes) testing_free(setting->allocator, setting->of_other_thread);
    testing_capture_destroy(&part);
    testing_capture_destroy(&setting->capture);
    setting_end(setting);
}

int main(void) {
    a_request_beside_a_capture_gives_it_nothing_too_early("", false);
    a_request_beside_a_capture_gives_it_nothing_too_early(REUSE, false);
    a_request_beside_a_capture_gives_it_nothing_too_early("x_torch_faults:True", true);
    a_request_beside_a_capture_gives_it_nothing_too_early("expandable_segments:True", false);
    a_request_beside_a_capture_gives_it_nothing_too_early(REUSE ",expandable_segments:True", false);
    a_request_beside_a_capture_gives_it_nothing_too_early(
        "expandable_segments:True,x_torch_faults:True", true);
    a_request_beside_a_capture_gives_it_nothing_too_early("x_capture_reuse:markers", false);
    a_request_beside_a_capture_gives_it_nothing_too_early("x_capture_reuse:markers_graph", false);
    a_request_beside_a_capture_gives_no_part_too_early("");
    a_request_beside_a_capture_gives_no_part_too_early(REUSE);
    a_request_beside_a_capture_gives_no_part_too_early("expandable_segments:True");
    a_request_beside_a_capture_gives_no_part_too_early(REUSE ",expandable_segments:True");
    the_end_of_another_capture_gives_nothing_too_early("");
    the_end_of_another_capture_gives_nothing_too_early(REUSE);
    the_end_of_another_capture_gives_nothing_too_early("x_capture_reuse:markers");
    empty_cache_asks_for_each_capture();
    what_a_flush_left_may_go_with_its_scope();
    what_a_flush_left_is_looked_at_after_the_capture();
    a_free_of_a_capture_under_way_keeps_its_pool_from_being_restored();
    frees_come_from_other_threads("", false);
    frees_come_from_other_threads(REUSE, true);
    frees_come_from_other_threads("x_capture_reuse:markers", true);
    what_a_part_deferred_waits_for_the_whole();
    what_a_part_deferred_is_not_for_another_part("", false);
    what_a_part_deferred_is_not_for_another_part("", true);
    what_a_part_deferred_is_not_for_another_part(REUSE, false);
    what_a_part_deferred_is_not_for_another_part(REUSE, true);
    what_a_part_deferred_is_not_for_another_part("x_capture_reuse:markers", false);
    what_a_part_deferred_is_not_for_another_part("x_capture_reuse:markers", true);
    a_pool_destroyed_while_its_graph_lives_keeps_the_blocks_in_use();
    static const char *const forms[] = {"", REUSE, "x_capture_reuse:markers",
                                        "x_capture_reuse:markers_graph"};
    for (int form = 0; form < 4; ++form)
        for (int flushes = 0; flushes < 2; ++flushes)
            what_a_part_used_waits_for_the_whole(forms[form], flushes != 0);
    return 0;
}
