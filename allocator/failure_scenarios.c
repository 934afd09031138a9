// The scenarios of the failure walk: what programs do, short, and each way at least once.
#include "allocator/failure_walk.h"
#include "allocator/pools.h"
#include "allocator/shortage.h"

#include <stdlib.h>

static const size_t mib = 1 << 20, kib = 1 << 10;

static void grow_and_split(struct failure_walk *walk) {
    static const size_t sizes[] = {512, 1 << 20, (1 << 20) + 1, 5 << 20, 30 << 20, 100000};
    for (int round = 0; round < 2; ++round) {
        for (int slot = 0; slot < 6; ++slot)
            failure_take(walk, slot, sizes[slot], round);
        for (int slot = 0; slot < 6; slot += 2)
            failure_give(walk, slot);
        for (int slot = 0; slot < 6; slot += 2)
            failure_take(walk, slot, sizes[slot] / 2, round);
        for (int slot = 5; slot >= 0; --slot)
            failure_give(walk, slot);
    }
}

// More blocks than the stock, the arenas' first step and the tables of streams hold.
static void grow_metadata(struct failure_walk *walk) {
    void *blocks[400] = {NULL};
    for (int slot = 0; slot < 400; ++slot) {
        failure_step_begin();
        const enum base_status status = allocator_malloc(
            walk->allocator, 0, (size_t)(slot + 1) * 600, walk->streams[0], &blocks[slot]);
        testing_calls_watch(false);
        if (status != BASE_OK) failure_is_told(walk, status);
    }
    cca_check(walk->allocator);
    for (int slot = 0; slot < 400; ++slot)
        BASE_CHECK_EQ(allocator_free(walk->allocator, blocks[slot]), BASE_OK);
    failure_left_no_trace(walk);
}

static void meet_streams(struct failure_walk *walk) {
    cudaStream_t streams[12];
    void *blocks[12] = {NULL};
    for (int index = 0; index < 12; ++index)
        streams[index] = testing_stream();
    for (int index = 0; index < 12; ++index) {
        failure_step_begin();
        const enum base_status status =
            allocator_malloc(walk->allocator, 0, 4096, streams[index], &blocks[index]);
        testing_calls_watch(false);
        if (status != BASE_OK) failure_is_told(walk, status);
    }
    cca_check(walk->allocator);
    for (int index = 0; index < 12; ++index)
        BASE_CHECK_EQ(allocator_free(walk->allocator, blocks[index]), BASE_OK);
    failure_left_no_trace(walk);
}

static void wait_for_streams(struct failure_walk *walk) {
    for (int slot = 0; slot < 4; ++slot) {
        failure_take(walk, slot, (size_t)(slot + 1) * 700 * kib, 0);
        failure_mark(walk, slot, 1);
        if (slot > 1) failure_mark(walk, slot, 2);
    }
    for (int stream = 1; stream < 3; ++stream)
        sim_stream_hold(walk->streams[stream], true);
    for (int slot = 0; slot < 4; ++slot)
        failure_give(walk, slot);
    failure_take(walk, 4, 700 * kib, 0); // polls in vain
    sim_stream_hold(walk->streams[1], false);
    failure_take(walk, 5, 700 * kib, 0); // some are done
    failure_empty_cache(walk);           // waits for the rest
    failure_give(walk, 4);
    failure_give(walk, 5);
}

// So many uses that records, queues and the spare events grow.
static void wait_for_many(struct failure_walk *walk) {
    sim_stream_hold(walk->streams[1], true);
    for (int slot = 0; slot < 20; ++slot)
        failure_take(walk, slot, 4096, 0);
    for (int slot = 0; slot < 20; ++slot)
        failure_mark(walk, slot, 1);
    for (int slot = 0; slot < 20; ++slot)
        failure_give(walk, slot);
    sim_stream_hold(walk->streams[1], false);
    failure_take(walk, 20, 4096, 0);
    failure_give(walk, 20);
}

// 64 MiB of device: everything cached goes, with a pending block among it, and then too little is
// left all the same.
static void run_out_of_memory(struct failure_walk *walk) {
    failure_take(walk, 0, 20 * mib, 0);
    failure_take(walk, 1, 20 * mib, 1);
    failure_take(walk, 2, 3 * mib, 0);
    failure_mark(walk, 1, 2);
    sim_stream_hold(walk->streams[2], true);
    failure_give(walk, 0);
    failure_give(walk, 1);
    failure_take(walk, 3, 40 * mib, 0);
    failure_take(walk, 4, 40 * mib, 0); // out of memory, if all went well
    failure_give(walk, 3);
    failure_take(walk, 5, 100 * mib, 1); // never possible
    failure_give(walk, 2);
}

// What is cached is kept, and the device not asked, while requests beyond it are rejected.
static void be_rejected(struct failure_walk *walk) {
    failure_take(walk, 0, 40 * mib, 0);
    failure_take(walk, 1, 1000, 1);
    failure_give(walk, 0);
    failure_take(walk, 2, 50 * mib, 0);
    failure_take(walk, 3, 50 * mib, 1);
    failure_take(walk, 4, 10 * mib, 0);
    failure_set_config(walk, "throw_on_cudamalloc_oom:False");
    failure_take(walk, 5, 50 * mib, 1);
}

static void release_oversize_blocks(struct failure_walk *walk) {
    for (int slot = 0; slot < 3; ++slot)
        failure_take(walk, slot, (size_t)(20 + 2 * slot) * mib, 0);
    for (int slot = 0; slot < 3; ++slot)
        failure_give(walk, slot);
    failure_take(walk, 3, 25 * mib, 0);
    failure_take(walk, 4, 30 * mib, 0);
    failure_give(walk, 3);
    failure_give(walk, 4);
    failure_take(walk, 5, 60 * mib, 0);
}

static void collect_garbage(struct failure_walk *walk) {
    for (int slot = 0; slot < 3; ++slot)
        failure_take(walk, slot, (size_t)(12 + 2 * slot) * mib, slot);
    for (int slot = 0; slot < 3; ++slot)
        failure_give(walk, slot);
    for (int slot = 3; slot < 6; ++slot)
        failure_take(walk, slot, (size_t)(10 + 2 * slot) * mib, 0);
    (void)FAILURE_STEP(walk, cca_set_memory_fraction(walk->allocator, 0, 0.9));
    for (int slot = 3; slot < 6; ++slot)
        failure_give(walk, slot);
}

// Growth over several pages, beside a hole, into a second segment; release with fragments.
static void expand(struct failure_walk *walk) {
    for (int slot = 0; slot < 3; ++slot)
        failure_take(walk, slot, 20 * mib, 0);
    failure_give(walk, 1);
    failure_take(walk, 3, 90 * mib, 0); // behind the last
    failure_take(walk, 4, 15 * mib, 0);
    failure_give(walk, 0);
    failure_take(walk, 5, 7 * mib, 0);
    failure_give(walk, 3);
    failure_take(walk, 6, 1000, 0);
    failure_take(walk, 7, 1 * mib, 0);
    failure_take(walk, 8, 1 * mib, 0);
    failure_take(walk, 9, 30 * mib, 1);
    failure_give(walk, 7);
    failure_give(walk, 4);
    failure_empty_cache(walk); // pages inside free blocks
    failure_take(walk, 7, 50 * mib, 0);
    for (int slot = 0; slot < 10; ++slot)
        failure_give(walk, slot);
    failure_empty_cache(walk); // whole segments
    failure_take(walk, 0, 20 * mib, 1);
}

static void expand_until_full(struct failure_walk *walk) {
    failure_take(walk, 0, 30 * mib, 0);
    failure_take(walk, 1, 30 * mib, 1);
    failure_mark(walk, 1, 2);
    sim_stream_hold(walk->streams[2], true);
    failure_give(walk, 0);
    failure_give(walk, 1);
    failure_take(walk, 2, 110 * mib, 0);
    failure_take(walk, 3, 110 * mib, 1); // out of memory, if all went well
    failure_give(walk, 2);
    failure_take(walk, 4, 25 * mib, 0);
}

static void share_with_a_peer(struct failure_walk *walk) {
    failure_take(walk, 0, 45 * mib, 0);
    failure_take(walk, 1, 20 * mib, 1);
    failure_give(walk, 0);
    failure_empty_cache(walk);
    failure_take(walk, 0, 25 * mib, 0);
    (void)FAILURE_STEP(walk, cca_enable_peer_access(walk->allocator, 0, 1));
    failure_take(walk, 2, 45 * mib, 0);
    failure_take_on(walk, 3, 1, 25 * mib, 3);
    (void)FAILURE_STEP(walk, cca_enable_peer_access(walk->allocator, 1, 0));
    failure_take_on(walk, 4, 1, 25 * mib, 3);
}

static void change_settings(struct failure_walk *walk) {
    failure_take(walk, 0, 30 * mib, 0);
    failure_take(walk, 1, 1000, 0);
    failure_set_config(walk, "max_split_size_mb:25,garbage_collection_threshold:0.5");
    failure_give(walk, 0);
    failure_take(walk, 0, 5 * mib, 0);
    failure_set_config(walk, "expandable_segments:True,expandable_segments_reserve:0.5");
    failure_take(walk, 2, 30 * mib, 0);
    failure_set_config(
        walk, "expandable_segments:True,expandable_segments_reserve_by_class:[a:64M,b:1G]");
    (void)FAILURE_STEP(walk,
                       cca_set_stream_reserve_class(walk->allocator, 0, walk->streams[1], "a"));
    (void)FAILURE_STEP(walk, cca_set_reserve_class_default(walk->allocator, "c", 0.25));
    (void)FAILURE_STEP(walk,
                       cca_set_stream_reserve_class(walk->allocator, 0, walk->streams[2], "c"));
    failure_take(walk, 3, 30 * mib, 1);
    failure_take(walk, 4, 30 * mib, 2);
    failure_set_config(walk, "expandable_segments:False");
    failure_give(walk, 2);
    failure_give(walk, 3);
    failure_take(walk, 2, 30 * mib, 0);
    failure_empty_cache(walk);
}

static void use_two_devices(struct failure_walk *walk) {
    failure_take_on(walk, 0, 0, 20 * mib, 0);
    failure_take_on(walk, 1, 1, 20 * mib, 3);
    failure_take_on(walk, 2, 1, 1000, 0); // its default stream
    failure_mark(walk, 2, 3);
    failure_give(walk, 1);
    failure_give(walk, 2);
    failure_take_on(walk, 3, 1, 60 * mib, 3);
    failure_empty_cache(walk);
    failure_give(walk, 0);
    failure_empty_cache(walk);
}

static void record_and_stop(struct failure_walk *walk) {
    struct allocator_snapshot snapshot = {0};
    const struct cca_history_options options = {
        .enabled = CCA_HISTORY_ALL, .context = CCA_CONTEXT_ALL, .max_entries = 100};
    failure_take(walk, 0, 20 * mib, 0);
    (void)FAILURE_STEP(walk, cca_record_history(walk->allocator, &options));
    for (int slot = 1; slot < 10; ++slot)
        failure_take(walk, slot, (size_t)slot * 300 * kib, slot % 2);
    for (int slot = 0; slot < 10; ++slot)
        failure_give(walk, slot);
    if (FAILURE_STEP(walk, allocator_snapshot(walk->allocator, &snapshot)) == BASE_OK)
        allocator_snapshot_deinit(&snapshot);
    failure_empty_cache(walk);
    failure_take(walk, 0, 1000 * mib, 0); // out of memory
    (void)FAILURE_STEP(walk, cca_record_history(walk->allocator, &(struct cca_history_options){0}));
}

static void ask(struct failure_walk *walk) {
    struct allocator_stats stats;
    struct allocator_snapshot snapshot = {0};
    struct cca_expandable_segment *segments = NULL;
    void *base;
    size_t size, count;
    double fraction;
    struct cca_pending_frees pending;
    failure_take(walk, 0, 20 * mib, 0);
    failure_take(walk, 1, 1000, 1);
    failure_take(walk, 3, 1000, 1);
    failure_mark(walk, 3, 2);
    sim_stream_hold(walk->streams[2], true);
    failure_give(walk, 3);
    (void)FAILURE_STEP(walk, allocator_stats(walk->allocator, 1, &stats));
    (void)FAILURE_STEP(walk, allocator_reset_peak_stats(walk->allocator, 0));
    (void)FAILURE_STEP(walk, allocator_largest_block(walk->allocator, 0, &size));
    (void)FAILURE_STEP(walk, cca_memory_fraction(walk->allocator, 0, &fraction));
    (void)FAILURE_STEP(walk, cca_pending_frees(walk->allocator, 0, &pending));
    if (FAILURE_STEP(walk, allocator_snapshot(walk->allocator, &snapshot)) == BASE_OK)
        allocator_snapshot_deinit(&snapshot);
    (void)allocator_base_allocation(walk->allocator, walk->blocks[0], &base, &size);
    failure_set_config(walk, "expandable_segments:True");
    failure_take(walk, 2, 20 * mib, 1);
    if (FAILURE_STEP(walk, cca_expandable_segments(walk->allocator, 0, &segments, &count)) ==
        BASE_OK)
        free(segments);
    // A view, and a mistake.
    if (walk->blocks[2] != NULL)
        (void)FAILURE_STEP(walk,
                           allocator_record_stream(walk->allocator, (char *)walk->blocks[2] + 1,
                                                   walk->streams[2]));
    failure_give(walk, 2);
}

// A recording puts small segments at odd addresses: their blocks are in a hash table.
static void replay_addresses(struct failure_walk *walk) {
    BASE_CHECK_EQ(sim_next_address(0, 0x700000000200), BASE_OK);
    BASE_CHECK_EQ(sim_next_address(0, 0x1000000000000), BASE_OK);
    for (int slot = 0; slot < 12; ++slot)
        failure_take(walk, slot, 300 * kib, 0);
    for (int slot = 0; slot < 12; slot += 2)
        failure_give(walk, slot);
    for (int slot = 0; slot < 12; slot += 2)
        failure_take(walk, slot, 100 * kib, 0);
    for (int slot = 0; slot < 12; ++slot)
        failure_give(walk, slot);
    failure_empty_cache(walk);
}

// Back where they were, in front, in the middle and at the end of what is free.
static void serve_at_addresses(struct failure_walk *walk) {
    static const size_t offsets[] = {0, 7 << 20, 15 << 20};
    failure_take(walk, 0, 20 * mib, 0);
    char *const base = walk->blocks[0];
    failure_give(walk, 0);
    for (int slot = 0; base != NULL && slot < 3; ++slot) {
        void *block = NULL;
        failure_step_begin();
        const enum base_status status = cca_malloc_at(walk->allocator, 0, 4 * mib, walk->streams[0],
                                                      base + offsets[slot], &block);
        testing_calls_watch(false);
        // The free block may have gone after the first free.
        if (status == BASE_INVALID_VALUE) continue;
        walk->blocks[slot] = block;
        (void)failure_step_end(walk, status);
    }
    for (int slot = 0; slot < 3; ++slot)
        failure_give(walk, slot);
}

// Each in another leaf of the page table than what is free before it, as many as a small segment
// has: the front is handed out, and then there is no memory for the entry of the request itself.
static void serve_many_at_addresses(struct failure_walk *walk) {
    failure_take(walk, 0, 512, 0);
    char *const base = walk->blocks[0];
    for (int slot = 1; base != NULL && slot < 64; ++slot) {
        void *block = NULL;
        failure_step_begin();
        const enum base_status status = cca_malloc_at(walk->allocator, 0, 512, walk->streams[0],
                                                      base + (size_t)slot * 32 * kib, &block);
        testing_calls_watch(false);
        walk->blocks[slot] = block;
        (void)failure_step_end(walk, status);
    }
    for (int slot = 0; slot < 64; ++slot)
        failure_give(walk, slot);
}

static void record(struct failure_walk *walk) {
    (void)FAILURE_STEP(
        walk, cca_record_history(walk->allocator,
                                 &(struct cca_history_options){CCA_HISTORY_ALL, CCA_CONTEXT_ALL,
                                                               .max_entries = 1000}));
    grow_and_split(walk);
    run_out_of_memory(walk);
    struct allocator_snapshot snapshot = {0};
    if (FAILURE_STEP(walk, allocator_snapshot(walk->allocator, &snapshot)) == BASE_OK)
        allocator_snapshot_deinit(&snapshot);
}

// A pool that is released by all who created it, in a device that gets full.
static void use_pools(struct failure_walk *walk) {
    static const struct allocator_pool_id id = {.user = 1};
    struct allocator *const allocator = walk->allocator;
    struct allocator_snapshot snapshot = {0};
    struct cca_pool_stats *pools = NULL;
    size_t count;
    int users = FAILURE_STEP(walk, cca_pool_create(allocator, 0, id, NULL)) == BASE_OK;
    const bool is_open = FAILURE_STEP(walk, cca_pool_begin(allocator, 0, id, NULL)) == BASE_OK;
    users += is_open;
    failure_take(walk, 0, 1000, 0);
    failure_take(walk, 1, 20 * mib, 1);
    failure_take(walk, 2, 20 * mib, 0);
    failure_mark(walk, 0, 2);
    sim_stream_hold(walk->streams[2], true);
    failure_give(walk, 0);
    if (is_open) BASE_CHECK_EQ(cca_pool_end(allocator, 0, id), BASE_OK);
    (void)FAILURE_STEP(walk, cca_pool_set_use_on_oom(allocator, 0, id, true));
    failure_give(walk, 2);
    failure_take(walk, 3, 30 * mib, 0);
    failure_take(walk, 4, 20 * mib, 0); // the pool's, if the device is full
    if (FAILURE_STEP(walk, cca_pool_stats(allocator, 0, &pools, &count)) == BASE_OK) free(pools);
    if (FAILURE_STEP(walk, cca_pool_snapshot(allocator, id, &snapshot)) == BASE_OK)
        allocator_snapshot_deinit(&snapshot);
    failure_give(walk, 4);
    failure_give(walk, 1);
    while (users-- > 0)
        BASE_CHECK_EQ(cca_pool_release(allocator, 0, id), BASE_OK);
    (void)FAILURE_STEP(walk, cca_pool_empty_cache(allocator, 0, id)); // waits for one
    failure_take(walk, 5, 20 * mib, 0);
    failure_empty_cache(walk);
    failure_give(walk, 5);
    failure_give(walk, 3);
}

// A program that frees something whenever memory runs short, until it has nothing left.
static bool free_another(void *context, int device) {
    struct failure_walk *const walk = context;
    (void)device;
    for (int slot = 0; slot < 4; ++slot)
        if (walk->blocks[slot] != NULL) return failure_give_inside(walk, slot);
    return false;
}

static void call_back(struct failure_walk *walk) {
    const struct cca_free_memory_callback callback = {free_another, walk};
    for (int slot = 0; slot < 4; ++slot)
        failure_take(walk, slot, 5 * mib, slot % 2);
    failure_mark(walk, 0, 2); // its free records an event
    failure_mark(walk, 2, 1);
    const bool is_added =
        FAILURE_STEP(walk, cca_add_free_memory_callback(walk->allocator, &callback)) == BASE_OK;
    for (int slot = 4; slot < 12; ++slot)
        failure_take(walk, slot, 18 * mib, slot % 2);
    for (int slot = 4; slot < 12; ++slot)
        failure_give(walk, slot);
    if (is_added)
        BASE_CHECK_EQ(cca_remove_free_memory_callback(walk->allocator, &callback), BASE_OK);
    failure_take(walk, 4, 30 * mib, 0);
}

static void go_without_a_cache(struct failure_walk *walk) {
    struct allocator_snapshot snapshot = {0};
    for (int slot = 0; slot < 6; ++slot)
        failure_take_on(walk, slot, slot % 2, (size_t)(slot + 1) * 700 * kib,
                        slot % 2 == 1 ? 3 : slot / 2);
    failure_mark(walk, 2, 2);
    for (int slot = 0; slot < 6; slot += 2)
        failure_give(walk, slot);
    failure_empty_cache(walk);
    if (FAILURE_STEP(walk, allocator_snapshot(walk->allocator, &snapshot)) == BASE_OK)
        allocator_snapshot_deinit(&snapshot);
    failure_take(walk, 0, 20 * mib, 1);
    for (int slot = 0; slot < 6; ++slot)
        failure_give(walk, slot);
}

// A segment with a block in use goes when the limit of splitting is lowered.
static void lose_memory_in_use(struct failure_walk *walk) {
    failure_take(walk, 0, 300 * mib, 0);
    failure_give(walk, 0);
    failure_take(walk, 1, 150 * mib, 0);
    failure_take(walk, 2, 100 * mib, 0);
    failure_mark(walk, 2, 1);
    failure_give(walk, 1);
    failure_set_config(walk, "max_split_size_mb:64");
    walk->has_lost_memory = true;
    failure_take(walk, 3, 900 * mib, 0);
    failure_take(walk, 4, 40 * mib, 0);
    failure_give(walk, 2);
    failure_take(walk, 5, 100 * mib, 1);
    failure_empty_cache(walk);
    failure_give(walk, 3);
    failure_take(walk, 6, 70 * mib, 0);
}

const struct failure_scenario failure_scenarios[] = {
    {.name = "callbacks", .config = "", .body = call_back, .capacity_mib = 80, .device_count = 1},
    {.name = "callbacks-expandable",
     .config = "expandable_segments:True",
     .body = call_back,
     .capacity_mib = 256,
     .device_count = 1},
    {.name = "uncached",
     .config = "",
     .body = go_without_a_cache,
     .capacity_mib = 256,
     .device_count = 2,
     .no_caching = true},
    {.name = "faults",
     .config = "x_torch_faults:True",
     .body = lose_memory_in_use,
     .capacity_mib = 1024,
     .device_count = 1},
    {.name = "faults-oversize",
     .config = "x_torch_faults:True,max_split_size_mb:20",
     .body = release_oversize_blocks,
     .capacity_mib = 64,
     .device_count = 1},
    {"grow", "", grow_and_split, 1024, 0, 1, false},
    {"grow-rounded", "roundup_power2_divisions:4", grow_and_split, 1024, 0, 1, false},
    {"metadata", "", grow_metadata, 1024, 0, 1, false},
    {"streams", "", meet_streams, 1024, 0, 1, false},
    {"wait", "", wait_for_streams, 1024, 0, 1, false},
    {"wait-expandable", "expandable_segments:True", wait_for_streams, 1024, 0, 1, false},
    {"wait-own", "x_poll:own", wait_for_streams, 1024, 0, 1, false},
    {"wait-behind", "x_skip_stuck:True", wait_for_streams, 1024, 0, 1, false},
    {"wait-many", "", wait_for_many, 1024, 0, 1, false},
    {"full", "", run_out_of_memory, 64, 0, 1, false},
    {"full-unlocked", "release_lock_on_cudamalloc:True", run_out_of_memory, 64, 0, 1, false},
    {"full-limited", "", run_out_of_memory, 128, 0.5, 1, false},
    {"full-enough", "x_wait:enough,x_retry_search:True", run_out_of_memory, 64, 0, 1, false},
    {"full-reclaim", "x_reclaim_idle:True", run_out_of_memory, 64, 0, 1, false},
    {"rejected", "throw_on_cudamalloc_oom:True", be_rejected, 64, 0, 1, false},
    {"rejected-expandable", "throw_on_cudamalloc_oom:True,expandable_segments:True", be_rejected,
     128, 0, 1, false},
    {"oversize", "max_split_size_mb:20", release_oversize_blocks, 64, 0, 1, false},
    {"garbage", "garbage_collection_threshold:0.5", collect_garbage, 128, 0.5, 1, false},
    {"expand", "expandable_segments:True", expand, 1024, 0, 1, false},
    {"expand-full", "expandable_segments:True", expand_until_full, 128, 0, 1, false},
    {"expand-oversize", "expandable_segments:True,max_split_size_mb:20", expand_until_full, 128, 0,
     1, false},
    {"peer", "expandable_segments:True", share_with_a_peer, 256, 0, 2, false},
    {"pools", "", use_pools, 80, 0, 1, false},
    {"pools-expandable", "expandable_segments:True", use_pools, 80, 0, 1, false},
    {"capture", "", failure_capture, 160, 0, 1, false},
    {"capture-reuse", "graph_capture_record_stream_reuse:True", failure_capture, 160, 0, 1, false},
    {"capture-markers", "x_capture_reuse:markers", failure_capture, 160, 0, 1, false},
    {"capture-expandable", "expandable_segments:True,graph_capture_record_stream_reuse:True",
     failure_capture, 160, 0, 1, false},
    {"settings", "", change_settings, 256, 0.75, 1, false},
    {"devices", "", use_two_devices, 256, 0, 2, false},
    {"devices-expandable", "expandable_segments:True", use_two_devices, 256, 0, 2, false},
    {"ask", "", ask, 256, 0, 2, false},
    {"history-stop", "", record_and_stop, 256, 0, 1, false},
    {"history-stop-expandable", "expandable_segments:True", record_and_stop, 256, 0, 1, false},
    {"addresses", "", replay_addresses, 256, 0, 1, false},
    {"at", "", serve_at_addresses, 256, 0, 1, false},
    {"at-expandable", "expandable_segments:True", serve_at_addresses, 256, 0, 1, false},
    {"at-many", "", serve_many_at_addresses, 256, 0, 1, false},
    {"history", "", record, 64, 0, 1, false},
    {"expand-own", "expandable_segments:True,max_split_size_mb:20,x_bound_growth:True",
     expand_until_full, 128, 0, 1, false},
};
const size_t failure_scenario_count = sizeof failure_scenarios / sizeof failure_scenarios[0];
