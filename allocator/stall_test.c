// No hit waits for a driver call of another thread. One thread is held inside a call, each kind in
// turn, by a hook in front of the driver; meanwhile another one is served from the cache and frees,
// on the same stream, on another one, and on another device, with and without frees that wait for
// events. No time is measured: a hit that waits keeps the call from ever ending, and after a while
// the test says in which.
#include "allocator/testing.h"
#include "allocator/testing_calls.h"

#include "base/thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static const size_t mib = 1 << 20;

#define PATIENCE_MS 30000

static struct {
    enum testing_call call; // in which the thread is held, once
    _Atomic bool is_inside, may_go;
    _Atomic bool was_left_alone; // nobody came in time
} gate;

static void sleep_ms(void) {
    base_thread_yield();
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void hold(void *context, enum testing_call call) {
    (void)context;
    if (call != gate.call || atomic_exchange(&gate.is_inside, true)) return;
    for (int waited = 0; !gate.may_go; ++waited) {
        if (waited == PATIENCE_MS) gate.was_left_alone = gate.may_go = true;
        sleep_ms();
    }
}

struct scene {
    struct allocator *allocator;
    cudaStream_t streams[3]; // the slow thread's, another, one that is used too
    void (*slow)(struct scene *scene);
    void *blocks[4];
    bool is_expandable;
    _Atomic bool has_ended;
};

static void run_slow(void *argument) {
    struct scene *const scene = argument;
    testing_calls_watch(true);
    scene->slow(scene);
    testing_calls_watch(false);
    scene->has_ended = true;
}

// What is cached before and served while the driver is busy.
static void hit(struct scene *scene, int device, cudaStream_t stream, size_t size) {
    void *block = NULL;
    BASE_CHECK_EQ(allocator_malloc(scene->allocator, device, size, stream, &block), BASE_OK);
    testing_free(scene->allocator, block);
}

// Keeps the segments that serve it, whatever is released.
static void keep(struct scene *scene, int device, cudaStream_t stream) {
    void *block;
    BASE_CHECK_EQ(allocator_malloc(scene->allocator, device, 1, stream, &block), BASE_OK);
    BASE_CHECK_EQ(allocator_malloc(scene->allocator, device, 2 * mib, stream, &block), BASE_OK);
}
static void keep_everywhere(struct scene *scene) {
    keep(scene, 0, scene->streams[0]);
    keep(scene, 0, scene->streams[1]);
    keep(scene, 1, NULL);
}

// Also in the pool that the slow thread is about, unless its segments are expandable: the free
// memory that a growth or a release works on is not to be had meanwhile.
static void hit_everywhere(struct scene *scene) {
    for (int round = 0; round < 3; ++round) {
        hit(scene, 0, scene->streams[1], 1000);
        hit(scene, 0, scene->streams[1], 2 * mib);
        hit(scene, 0, scene->streams[0], 1000);
        if (!scene->is_expandable) hit(scene, 0, scene->streams[0], 2 * mib);
        hit(scene, 1, NULL, 1000);
        hit(scene, 1, NULL, 2 * mib);
    }
}

// A free that waits, so that hits would poll.
static void leave_a_pending_free(struct scene *scene) {
    void *const block = testing_malloc(scene->allocator, 4096, scene->streams[1]);
    BASE_CHECK_EQ(allocator_record_stream(scene->allocator, block, scene->streams[2]), BASE_OK);
    sim_stream_hold(scene->streams[2], true);
    testing_free(scene->allocator, block);
}

static void check_call(const char *config, enum testing_call call, bool is_pending,
                       void (*prepare)(struct scene *), void (*slow)(struct scene *)) {
    base_check_context("%s in \"%s\", %s", testing_call_name(call), config,
                       is_pending ? "a free waits" : "none waits");
    struct scene scene = {.slow = slow, .is_expandable = strstr(config, "expandable") != NULL};
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){
                      .capacity_bytes = BASE_GIB, .device_count = 2, .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){.config = config}, &scene.allocator),
                  BASE_OK);
    for (int index = 0; index < 3; ++index)
        scene.streams[index] = testing_stream();
    keep_everywhere(&scene);
    if (prepare != NULL) prepare(&scene);
    hit_everywhere(&scene);
    if (is_pending) leave_a_pending_free(&scene);
    gate.call = call;
    gate.is_inside = gate.may_go = gate.was_left_alone = false;
    struct base_thread thread;
    base_thread_start(&thread, run_slow, &scene);
    while (!gate.is_inside && !scene.has_ended)
        sleep_ms();
    BASE_CHECK(gate.is_inside); // the operation makes that call
    hit_everywhere(&scene);
    gate.may_go = true;
    base_thread_join(&thread);
    BASE_CHECK(!gate.was_left_alone);
    sim_stream_hold(scene.streams[2], false);
    cca_check(scene.allocator);
    allocator_destroy(scene.allocator);
}

//------------------------------------------------------------------------------------------------
// What the slow thread does.

static void grow(struct scene *scene) {
    scene->blocks[0] = testing_malloc(scene->allocator, 70 * mib, scene->streams[0]);
}
static void cache_more(struct scene *scene) {
    testing_free(scene->allocator, testing_malloc(scene->allocator, 70 * mib, scene->streams[0]));
}
static void leave_an_idle_segment(struct scene *scene) {
    testing_free(scene->allocator, testing_malloc(scene->allocator, 70 * mib, scene->streams[2]));
}
static void empty(struct scene *scene) {
    BASE_CHECK_EQ(allocator_empty_cache(scene->allocator), BASE_OK);
}
static void use_elsewhere(struct scene *scene) {
    scene->blocks[0] = testing_malloc(scene->allocator, 4096, scene->streams[0]);
    BASE_CHECK_EQ(allocator_record_stream(scene->allocator, scene->blocks[0], scene->streams[2]),
                  BASE_OK);
}
static void free_used(struct scene *scene) { testing_free(scene->allocator, scene->blocks[0]); }
static void free_used_before(struct scene *scene) {
    use_elsewhere(scene);
    sim_stream_hold(scene->streams[2], true);
    free_used(scene);
}
static void poll(struct scene *scene) { hit(scene, 0, scene->streams[0], 1000); }
static void run_out(struct scene *scene) {
    void *none = NULL;
    BASE_CHECK_EQ(allocator_malloc(scene->allocator, 0, 2 * BASE_GIB, scene->streams[0], &none),
                  BASE_OUT_OF_MEMORY);
}
static void share(struct scene *scene) {
    BASE_CHECK_EQ(cca_enable_peer_access(scene->allocator, 0, 1), BASE_OK);
}

static void each_call_leaves_hits_alone(bool is_pending) {
    static const char *const expandable = "expandable_segments:True";
    check_call("", TESTING_cudaMalloc, is_pending, NULL, grow);
    check_call("release_lock_on_cudamalloc:True", TESTING_cudaMalloc, is_pending, NULL, grow);
    check_call("", TESTING_cudaFree, is_pending, cache_more, empty);
    check_call("", TESTING_cudaMemGetInfo, is_pending, NULL, run_out);
    check_call("", TESTING_cudaEventCreateWithFlags, is_pending, use_elsewhere, free_used);
    check_call("", TESTING_cudaEventRecord, is_pending, use_elsewhere, free_used);
    check_call("", TESTING_cudaEventQuery, is_pending, free_used_before, poll);
    check_call("", TESTING_cudaEventSynchronize, is_pending, free_used_before, empty);
    check_call("x_poll:own", TESTING_cudaEventQuery, is_pending, free_used_before, poll);
    check_call("x_reclaim_idle:True", TESTING_cudaStreamWaitEvent, is_pending,
               leave_an_idle_segment, grow);
    check_call(expandable, TESTING_cuMemAddressReserve, is_pending, NULL, run_out);
    check_call(expandable, TESTING_cuMemCreate, is_pending, NULL, grow);
    check_call(expandable, TESTING_cuMemMap, is_pending, NULL, grow);
    check_call(expandable, TESTING_cuMemSetAccess, is_pending, NULL, grow);
    check_call(expandable, TESTING_cuMemSetAccess, is_pending, grow, share);
    check_call(expandable, TESTING_cudaStreamSynchronize, is_pending, cache_more, empty);
    check_call(expandable, TESTING_cuMemRelease, is_pending, cache_more, empty);
    check_call(expandable, TESTING_cuMemUnmap, is_pending, cache_more, empty);
    check_call(expandable, TESTING_cuMemAddressFree, is_pending, leave_an_idle_segment, empty);
}

//------------------------------------------------------------------------------------------------
// A third thread that needs every lock must not pass its wait on.

static void change_settings(void *argument) {
    BASE_CHECK_EQ(cca_set_config(argument, "garbage_collection_threshold:0.5"), BASE_OK);
}
static void walk_everything(void *argument) { cca_check(argument); }
static void copy_everything(void *argument) {
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(argument, &snapshot), BASE_OK);
    allocator_snapshot_deinit(&snapshot);
}
static void read_statistics(void *argument) {
    struct allocator_stats stats;
    BASE_CHECK_EQ(allocator_stats(argument, 0, &stats), BASE_OK);
}

static void (*waiter)(void *);
static struct base_thread waiting_thread;
static void grow_with_a_waiter(struct scene *scene) {
    void *block = NULL;
    // Device 1 is the last whose locks are taken.
    BASE_CHECK_EQ(allocator_malloc(scene->allocator, 1, 70 * mib, NULL, &block), BASE_OK);
}
static void start_waiter(void *context, enum testing_call call) {
    if (call != gate.call || gate.is_inside) return;
    base_thread_start(&waiting_thread, waiter, context);
    // It will wait for this thread, sooner or later: it is given time to, which no result needs.
    for (int waited = 0; waited < 20; ++waited)
        sleep_ms();
    hold(NULL, call);
}

static void who_waits_for_all_locks_holds_none_that_hits_need(void (*body)(void *)) {
    struct scene scene = {.slow = grow_with_a_waiter};
    base_check_context("a waiter");
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){
                      .capacity_bytes = BASE_GIB, .device_count = 2, .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){0}, &scene.allocator), BASE_OK);
    for (int index = 0; index < 3; ++index)
        scene.streams[index] = testing_stream();
    keep_everywhere(&scene);
    hit_everywhere(&scene);
    gate.call = TESTING_cudaMalloc;
    gate.is_inside = gate.may_go = gate.was_left_alone = false;
    waiter = body;
    testing_calls_hook(start_waiter, scene.allocator);
    struct base_thread thread;
    base_thread_start(&thread, run_slow, &scene);
    while (!gate.is_inside)
        sleep_ms();
    hit_everywhere(&scene);
    gate.may_go = true;
    base_thread_join(&thread);
    base_thread_join(&waiting_thread);
    testing_calls_hook(hold, NULL);
    BASE_CHECK(!gate.was_left_alone);
    cca_check(scene.allocator);
    allocator_destroy(scene.allocator);
}

//------------------------------------------------------------------------------------------------
// release_lock_on_cudamalloc: what was let go is taken again.

static struct {
    _Atomic bool allocates, may_have_allocated, frees, may_have_freed;
} steps;
static void hold_both(void *context, enum testing_call call) {
    (void)context;
    if (call == TESTING_cudaMalloc) {
        steps.allocates = true;
        while (!steps.may_have_allocated)
            sleep_ms();
    } else if (call == TESTING_cudaFree) {
        steps.frees = true;
        while (!steps.may_have_freed)
            sleep_ms();
    }
}
static void await(const _Atomic bool *step) {
    while (!*step)
        sleep_ms();
}

// One thread comes back from cudaMalloc while another one releases the cache, which is one's own
// affair: it goes on only afterwards.
static void memory_that_came_is_entered_under_the_lock(void) {
    struct scene taker = {.slow = grow}, giver = {.slow = empty};
    taker.allocator = giver.allocator =
        testing_create("release_lock_on_cudamalloc:True", BASE_GIB);
    taker.streams[0] = testing_stream();
    testing_free(taker.allocator, testing_malloc(taker.allocator, 50 * mib, NULL));
    testing_calls_hook(hold_both, NULL);
    struct base_thread threads[2];
    base_thread_start(&threads[0], run_slow, &taker);
    await(&steps.allocates);
    base_thread_start(&threads[1], run_slow, &giver);
    await(&steps.frees);
    steps.may_have_allocated = true;
    // It has time to go on, which no result needs.
    for (int waited = 0; waited < 20; ++waited)
        sleep_ms();
    BASE_CHECK(!taker.has_ended);
    steps.may_have_freed = true;
    for (int index = 0; index < 2; ++index)
        base_thread_join(&threads[index]);
    testing_calls_hook(hold, NULL);
    BASE_CHECK(taker.has_ended && giver.has_ended);
    cca_check(taker.allocator);
    allocator_destroy(taker.allocator);
}

int main(void) {
    testing_calls_hook(hold, NULL);
    each_call_leaves_hits_alone(false);
    each_call_leaves_hits_alone(true);
    who_waits_for_all_locks_holds_none_that_hits_need(change_settings);
    who_waits_for_all_locks_holds_none_that_hits_need(walk_everything);
    who_waits_for_all_locks_holds_none_that_hits_need(copy_everything);
    who_waits_for_all_locks_holds_none_that_hits_need(read_statistics);
    base_check_context(NULL);
    memory_that_came_is_entered_under_the_lock();
    return 0;
}
