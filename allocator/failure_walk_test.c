// The failure walk: each scenario runs with the first, second, third ... call of each kind failing,
// once and for ever, until a run ends without the fault being met. After each step that failed: a
// sentence that names the call, cca_check, statistics that add up, nothing lost; when the fault is
// over a smaller request works, everything can be freed, and the end leaves nothing behind.
//
//     failure_walk_test [SCENARIO]
#include "allocator/testing_calls.h"
#include "allocator/testing_state.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static const size_t mib = 1 << 20, kib = 1 << 10;

#define BLOCKS_MAX  64
#define STREAMS_MAX 4
#define DEVICES_MAX 2

// One run of a scenario.
struct walk {
    struct allocator *allocator;
    cudaStream_t streams[STREAMS_MAX]; // 0: the default stream; 3: of device 1
    void *blocks[BLOCKS_MAX];          // handed out and not freed yet
    int device_count;
    enum testing_call call; // that fails
    bool for_ever;
};

//------------------------------------------------------------------------------------------------
// What holds after each call.

static void stat_adds_up(const struct allocator_stat stat[ALLOCATOR_STAT_KIND_COUNT]) {
    const struct allocator_stat *const all = &stat[ALLOCATOR_STAT_ALL],
                                       *const small = &stat[ALLOCATOR_STAT_SMALL_POOL],
                                       *const large = &stat[ALLOCATOR_STAT_LARGE_POOL];
    BASE_CHECK_EQ(all->current, small->current + large->current);
    BASE_CHECK_EQ(all->allocated, small->allocated + large->allocated);
    BASE_CHECK_EQ(all->freed, small->freed + large->freed);
    for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind) {
        BASE_CHECK_GE(stat[kind].current, 0);
        BASE_CHECK_GE(stat[kind].peak, stat[kind].current);
        BASE_CHECK_EQ(stat[kind].current, stat[kind].allocated - stat[kind].freed);
    }
}

static void statistics_add_up(const struct walk *walk, const struct allocator_snapshot *snapshot,
                              int device) {
    struct allocator_stats stats;
    BASE_CHECK_EQ(allocator_stats(walk->allocator, device, &stats), BASE_OK);
#define ADDS_UP(name) stat_adds_up(stats.name);
    ALLOCATOR_STAT_LIST(ADDS_UP)
#undef ADDS_UP
    int64_t total = 0, active = 0, allocated = 0, blocks = 0;
    for (size_t index = 0; index < snapshot->segment_count; ++index) {
        const struct allocator_snapshot_segment *const segment = &snapshot->segments[index];
        if (segment->device != device) continue;
        total += (int64_t)segment->total_size;
        active += (int64_t)segment->active_size;
        allocated += (int64_t)segment->allocated_size;
        for (size_t at = 0; at < segment->block_count; ++at)
            blocks +=
                snapshot->blocks[segment->block_first + at].state == ALLOCATOR_BLOCK_ALLOCATED;
    }
    BASE_CHECK_EQ(stats.reserved_bytes[ALLOCATOR_STAT_ALL].current, total);
    BASE_CHECK_EQ(stats.active_bytes[ALLOCATOR_STAT_ALL].current, active);
    BASE_CHECK_EQ(stats.allocated_bytes[ALLOCATOR_STAT_ALL].current, allocated);
    BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].current, blocks);
    // Segments and pages are whole pages of the simulated device.
    if (walk->call == TESTING_cuMemRelease || walk->call == TESTING_ANY_CUDA)
        BASE_CHECK_GE(sim_used_bytes(device), (uint64_t)total);
    else
        BASE_CHECK_EQ(sim_used_bytes(device), (uint64_t)total);
}

// Asks with the fault away, and puts it back.
static void everything_is_in_order(const struct walk *walk) {
    struct allocator_snapshot snapshot;
    cca_check(walk->allocator);
    BASE_CHECK_EQ(allocator_snapshot(walk->allocator, &snapshot), BASE_OK);
    size_t live = 0, held = 0;
    for (size_t index = 0; index < snapshot.block_count; ++index)
        live += snapshot.blocks[index].state == ALLOCATOR_BLOCK_ALLOCATED;
    for (int index = 0; index < BLOCKS_MAX; ++index)
        held += walk->blocks[index] != NULL;
    BASE_CHECK_EQ(live, held);
    for (int device = 0; device < walk->device_count; ++device)
        statistics_add_up(walk, &snapshot, device);
    allocator_snapshot_deinit(&snapshot);
    // A page that cannot be unmapped lives on without its handle, a handle that cannot be released
    // without a page; until the driver is asked again.
    const struct testing_balance balance = testing_calls_balance();
    if (walk->call != TESTING_cuMemUnmap && walk->call != TESTING_cuMemRelease &&
        walk->call != TESTING_ANY_CUDA)
        BASE_CHECK_EQ(balance.mappings, balance.handles);
    int current;
    BASE_CHECK_EQ(cudaGetDevice(&current), cudaSuccess);
    if (walk->call != TESTING_cudaSetDevice && walk->call != TESTING_ANY_CUDA)
        BASE_CHECK_EQ(current, 0);
    else
        BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
}

// What a broken check prints: the run, and what was said last.
static char run_context[256];
static void step_context(const char *message) { base_check_context("%s %s", run_context, message); }

static void failure_is_told(const struct walk *walk, enum base_status status) {
    testing_message_is_a_sentence();
    step_context(base_status_message());
    if (status == BASE_CUDA && walk->call != TESTING_ANY_CUDA)
        BASE_CHECK(testing_message_has(testing_call_name(walk->call)));
    else if (status == BASE_HOST_MEMORY)
        BASE_CHECK(walk->call == TESTING_HOST_MEMORY);
    else if (status == BASE_OUT_OF_MEMORY)
        BASE_CHECK(testing_message_has("CUDA out of memory. Tried to allocate"));
    else
        BASE_CHECK(status == BASE_CUDA);
    step_context("");
}

static enum base_status done(struct walk *walk, enum base_status status, uint64_t failed_before) {
    testing_calls_watch(false);
    if (status != BASE_OK) failure_is_told(walk, status);
    if (walk->allocator == NULL) return status;
    if (testing_calls_failed() == failed_before) return status;
    everything_is_in_order(walk);
    if (walk->for_ever) return status;
    void *const small = testing_malloc(walk->allocator, 512, walk->streams[0]);
    testing_free(walk->allocator, small);
    everything_is_in_order(walk);
    return status;
}

// A call of the allocator as a step of a scenario: its status.
#define STEP(walk, call) step_end(walk, (step_begin(), (call)))

static uint64_t failed_before_step;
static void step_begin(void) {
    failed_before_step = testing_calls_failed();
    testing_calls_watch(true);
}
static enum base_status step_end(struct walk *walk, enum base_status status) {
    return done(walk, status, failed_before_step);
}

//------------------------------------------------------------------------------------------------
// Steps.

static void take_on(struct walk *walk, int slot, int device, size_t size, int stream) {
    BASE_CHECK(walk->blocks[slot] == NULL);
    void *block = NULL;
    step_begin();
    const enum base_status status =
        allocator_malloc(walk->allocator, device, size, walk->streams[stream], &block);
    testing_calls_watch(false);
    BASE_CHECK_EQ(block != NULL, status == BASE_OK);
    walk->blocks[slot] = block;
    (void)step_end(walk, status);
}
static void take(struct walk *walk, int slot, size_t size, int stream) {
    take_on(walk, slot, 0, size, stream);
}

// A block whose free fails stays with the program.
static void give(struct walk *walk, int slot) {
    step_begin();
    const enum base_status status = allocator_free(walk->allocator, walk->blocks[slot]);
    testing_calls_watch(false);
    if (status == BASE_OK) walk->blocks[slot] = NULL;
    (void)step_end(walk, status);
}

static void mark(struct walk *walk, int slot, int stream) {
    (void)STEP(walk,
               allocator_record_stream(walk->allocator, walk->blocks[slot], walk->streams[stream]));
}

static void empty_cache(struct walk *walk) {
    (void)STEP(walk, allocator_empty_cache(walk->allocator));
}

static void set_config(struct walk *walk, const char *config) {
    (void)STEP(walk, cca_set_config(walk->allocator, config));
}

//------------------------------------------------------------------------------------------------
// Scenarios.

static void grow_and_split(struct walk *walk) {
    static const size_t sizes[] = {512, 1 << 20, (1 << 20) + 1, 5 << 20, 30 << 20, 100000};
    for (int round = 0; round < 2; ++round) {
        for (int slot = 0; slot < 6; ++slot)
            take(walk, slot, sizes[slot], round);
        for (int slot = 0; slot < 6; slot += 2)
            give(walk, slot);
        for (int slot = 0; slot < 6; slot += 2)
            take(walk, slot, sizes[slot] / 2, round);
        for (int slot = 5; slot >= 0; --slot)
            give(walk, slot);
    }
}

// More blocks than the stock, the arenas' first step and the tables of streams hold.
static void grow_metadata(struct walk *walk) {
    void *blocks[400] = {NULL};
    for (int slot = 0; slot < 400; ++slot) {
        step_begin();
        const enum base_status status = allocator_malloc(
            walk->allocator, 0, (size_t)(slot + 1) * 600, walk->streams[0], &blocks[slot]);
        testing_calls_watch(false);
        if (status != BASE_OK) failure_is_told(walk, status);
    }
    cca_check(walk->allocator);
    for (int slot = 0; slot < 400; ++slot)
        BASE_CHECK_EQ(allocator_free(walk->allocator, blocks[slot]), BASE_OK);
    everything_is_in_order(walk);
}

static void meet_streams(struct walk *walk) {
    cudaStream_t streams[20];
    void *blocks[20] = {NULL};
    for (int index = 0; index < 20; ++index)
        streams[index] = testing_stream();
    for (int index = 0; index < 20; ++index) {
        step_begin();
        const enum base_status status =
            allocator_malloc(walk->allocator, 0, 4096, streams[index], &blocks[index]);
        testing_calls_watch(false);
        if (status != BASE_OK) failure_is_told(walk, status);
    }
    cca_check(walk->allocator);
    for (int index = 0; index < 20; ++index)
        BASE_CHECK_EQ(allocator_free(walk->allocator, blocks[index]), BASE_OK);
    everything_is_in_order(walk);
}

static void wait_for_streams(struct walk *walk) {
    for (int slot = 0; slot < 4; ++slot) {
        take(walk, slot, (size_t)(slot + 1) * 700 * kib, 0);
        mark(walk, slot, 1);
        if (slot > 1) mark(walk, slot, 2);
    }
    for (int stream = 1; stream < 3; ++stream)
        sim_stream_hold(walk->streams[stream], true);
    for (int slot = 0; slot < 4; ++slot)
        give(walk, slot);
    take(walk, 4, 700 * kib, 0); // polls in vain
    sim_stream_hold(walk->streams[1], false);
    take(walk, 5, 700 * kib, 0); // some are done
    empty_cache(walk);           // waits for the rest
    give(walk, 4);
    give(walk, 5);
}

// So many uses that records, queues and the spare events grow.
static void wait_for_many(struct walk *walk) {
    sim_stream_hold(walk->streams[1], true);
    for (int slot = 0; slot < 40; ++slot)
        take(walk, slot, 4096, 0);
    for (int slot = 0; slot < 40; ++slot)
        mark(walk, slot, 1);
    for (int slot = 0; slot < 40; ++slot)
        give(walk, slot);
    sim_stream_hold(walk->streams[1], false);
    take(walk, 40, 4096, 0);
    give(walk, 40);
}

// 64 MiB of device: everything cached goes, with a pending block among it, and then too little is
// left all the same.
static void run_out_of_memory(struct walk *walk) {
    take(walk, 0, 20 * mib, 0);
    take(walk, 1, 20 * mib, 1);
    take(walk, 2, 3 * mib, 0);
    mark(walk, 1, 2);
    sim_stream_hold(walk->streams[2], true);
    give(walk, 0);
    give(walk, 1);
    take(walk, 3, 40 * mib, 0);
    take(walk, 4, 40 * mib, 0); // out of memory, if all went well
    give(walk, 3);
    take(walk, 5, 100 * mib, 1); // never possible
    give(walk, 2);
}

static void release_oversize_blocks(struct walk *walk) {
    for (int slot = 0; slot < 3; ++slot)
        take(walk, slot, (size_t)(20 + 2 * slot) * mib, 0);
    for (int slot = 0; slot < 3; ++slot)
        give(walk, slot);
    take(walk, 3, 25 * mib, 0);
    take(walk, 4, 30 * mib, 0);
    give(walk, 3);
    give(walk, 4);
    take(walk, 5, 60 * mib, 0);
}

static void collect_garbage(struct walk *walk) {
    for (int slot = 0; slot < 3; ++slot)
        take(walk, slot, (size_t)(12 + 2 * slot) * mib, slot);
    for (int slot = 0; slot < 3; ++slot)
        give(walk, slot);
    for (int slot = 3; slot < 6; ++slot)
        take(walk, slot, (size_t)(10 + 2 * slot) * mib, 0);
    (void)STEP(walk, cca_set_memory_fraction(walk->allocator, 0, 0.9));
    for (int slot = 3; slot < 6; ++slot)
        give(walk, slot);
}

// Growth over several pages, beside a hole, into a second segment; release with fragments.
static void expand(struct walk *walk) {
    for (int slot = 0; slot < 3; ++slot)
        take(walk, slot, 20 * mib, 0);
    give(walk, 1);
    take(walk, 3, 90 * mib, 0); // behind the last
    take(walk, 4, 15 * mib, 0);
    give(walk, 0);
    take(walk, 5, 7 * mib, 0);
    give(walk, 3);
    take(walk, 6, 1000, 0);
    take(walk, 7, 1 * mib, 0);
    take(walk, 8, 1 * mib, 0);
    take(walk, 9, 30 * mib, 1);
    give(walk, 7);
    give(walk, 4);
    empty_cache(walk); // pages inside free blocks
    take(walk, 7, 50 * mib, 0);
    for (int slot = 0; slot < 10; ++slot)
        give(walk, slot);
    empty_cache(walk); // whole segments
    take(walk, 0, 20 * mib, 1);
}

static void expand_until_full(struct walk *walk) {
    take(walk, 0, 30 * mib, 0);
    take(walk, 1, 30 * mib, 1);
    mark(walk, 1, 2);
    sim_stream_hold(walk->streams[2], true);
    give(walk, 0);
    give(walk, 1);
    take(walk, 2, 110 * mib, 0);
    take(walk, 3, 110 * mib, 1); // out of memory, if all went well
    give(walk, 2);
    take(walk, 4, 25 * mib, 0);
}

static void share_with_a_peer(struct walk *walk) {
    take(walk, 0, 45 * mib, 0);
    take(walk, 1, 20 * mib, 1);
    give(walk, 0);
    empty_cache(walk);
    take(walk, 0, 25 * mib, 0);
    (void)STEP(walk, cca_enable_peer_access(walk->allocator, 0, 1));
    take(walk, 2, 45 * mib, 0);
    take_on(walk, 3, 1, 25 * mib, 3);
    (void)STEP(walk, cca_enable_peer_access(walk->allocator, 1, 0));
    take_on(walk, 4, 1, 25 * mib, 3);
}

static void change_settings(struct walk *walk) {
    take(walk, 0, 30 * mib, 0);
    take(walk, 1, 1000, 0);
    set_config(walk, "max_split_size_mb:25,garbage_collection_threshold:0.5");
    give(walk, 0);
    take(walk, 0, 5 * mib, 0);
    set_config(walk, "expandable_segments:True,expandable_segments_reserve:0.5");
    take(walk, 2, 30 * mib, 0);
    set_config(walk, "expandable_segments:True,expandable_segments_reserve_by_class:[a:64M,b:1G]");
    (void)STEP(walk, cca_set_stream_reserve_class(walk->allocator, 0, walk->streams[1], "a"));
    (void)STEP(walk, cca_set_reserve_class_default(walk->allocator, "c", 0.25));
    (void)STEP(walk, cca_set_stream_reserve_class(walk->allocator, 0, walk->streams[2], "c"));
    take(walk, 3, 30 * mib, 1);
    take(walk, 4, 30 * mib, 2);
    set_config(walk, "expandable_segments:False");
    give(walk, 2);
    give(walk, 3);
    take(walk, 2, 30 * mib, 0);
    empty_cache(walk);
}

static void use_two_devices(struct walk *walk) {
    take_on(walk, 0, 0, 20 * mib, 0);
    take_on(walk, 1, 1, 20 * mib, 3);
    take_on(walk, 2, 1, 1000, 0); // its default stream
    mark(walk, 2, 3);
    give(walk, 1);
    give(walk, 2);
    take_on(walk, 3, 1, 60 * mib, 3);
    empty_cache(walk);
    give(walk, 0);
    empty_cache(walk);
}

static void ask(struct walk *walk) {
    struct allocator_stats stats;
    struct allocator_snapshot snapshot = {0};
    struct cca_expandable_segment *segments = NULL;
    void *base;
    size_t size, count;
    double fraction;
    take(walk, 0, 20 * mib, 0);
    take(walk, 1, 1000, 1);
    (void)STEP(walk, allocator_stats(walk->allocator, 1, &stats));
    (void)STEP(walk, allocator_reset_peak_stats(walk->allocator, 0));
    (void)STEP(walk, allocator_largest_block(walk->allocator, 0, &size));
    (void)STEP(walk, cca_memory_fraction(walk->allocator, 0, &fraction));
    if (STEP(walk, allocator_snapshot(walk->allocator, &snapshot)) == BASE_OK)
        allocator_snapshot_deinit(&snapshot);
    (void)allocator_base_allocation(walk->allocator, walk->blocks[0], &base, &size);
    set_config(walk, "expandable_segments:True");
    take(walk, 2, 20 * mib, 1);
    if (STEP(walk, cca_expandable_segments(walk->allocator, 0, &segments, &count)) == BASE_OK)
        free(segments);
    // A view, and a mistake.
    if (walk->blocks[2] != NULL)
        (void)STEP(walk, allocator_record_stream(walk->allocator, (char *)walk->blocks[2] + 1,
                                                 walk->streams[2]));
    give(walk, 2);
}

// A recording puts small segments at odd addresses: their blocks are in a hash table.
static void replay_addresses(struct walk *walk) {
    BASE_CHECK_EQ(sim_next_address(0, 0x700000000200), BASE_OK);
    BASE_CHECK_EQ(sim_next_address(0, 0x1000000000000), BASE_OK);
    for (int slot = 0; slot < 12; ++slot)
        take(walk, slot, 300 * kib, 0);
    for (int slot = 0; slot < 12; slot += 2)
        give(walk, slot);
    for (int slot = 0; slot < 12; slot += 2)
        take(walk, slot, 100 * kib, 0);
    for (int slot = 0; slot < 12; ++slot)
        give(walk, slot);
    empty_cache(walk);
}

static const struct scenario {
    const char *name, *config;
    void (*body)(struct walk *walk);
    size_t capacity_mib;
    double fraction; // 0: none
    int device_count;
} scenarios[] = {
    {"grow", "", grow_and_split, 1024, 0, 1},
    {"grow-rounded", "roundup_power2_divisions:4", grow_and_split, 1024, 0, 1},
    {"metadata", "", grow_metadata, 1024, 0, 1},
    {"streams", "", meet_streams, 1024, 0, 1},
    {"wait", "", wait_for_streams, 1024, 0, 1},
    {"wait-expandable", "expandable_segments:True", wait_for_streams, 1024, 0, 1},
    {"wait-many", "", wait_for_many, 1024, 0, 1},
    {"full", "", run_out_of_memory, 64, 0, 1},
    {"full-unlocked", "release_lock_on_cudamalloc:True", run_out_of_memory, 64, 0, 1},
    {"full-limited", "", run_out_of_memory, 128, 0.5, 1},
    {"oversize", "max_split_size_mb:20", release_oversize_blocks, 64, 0, 1},
    {"garbage", "garbage_collection_threshold:0.5", collect_garbage, 128, 0.5, 1},
    {"expand", "expandable_segments:True", expand, 1024, 0, 1},
    {"expand-full", "expandable_segments:True", expand_until_full, 128, 0, 1},
    {"expand-oversize", "expandable_segments:True,max_split_size_mb:20", expand_until_full, 128, 0,
     1},
    {"peer", "expandable_segments:True", share_with_a_peer, 256, 0, 2},
    {"settings", "", change_settings, 256, 0.75, 1},
    {"devices", "", use_two_devices, 256, 0, 2},
    {"devices-expandable", "expandable_segments:True", use_two_devices, 256, 0, 2},
    {"ask", "", ask, 256, 0, 2},
    {"addresses", "", replay_addresses, 256, 0, 1},
};

//------------------------------------------------------------------------------------------------
// The walk.

static void ignore_warning(void *context, const char *text) {
    (void)context;
    (void)text;
}

static void begin(struct walk *walk, const struct scenario *scenario) {
    // Sparse addresses: every place may be asked for.
    BASE_CHECK_EQ(
        sim_configure(&(struct sim_options){.capacity_bytes = scenario->capacity_mib * mib,
                                            .device_count = scenario->device_count,
                                            .numerics = SIM_NUMERICS_OFF}),
        BASE_OK);
    walk->device_count = scenario->device_count;
    for (int stream = 1; stream < STREAMS_MAX; ++stream) {
        BASE_CHECK_EQ(cudaSetDevice(stream == 3 ? scenario->device_count - 1 : 0), cudaSuccess);
        walk->streams[stream] = testing_stream();
    }
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    testing_calls_balance_reset();
}

static void create(struct walk *walk, const struct scenario *scenario) {
    const struct cca_options options = {.config = scenario->config,
                                        .fraction = scenario->fraction,
                                        .fraction_set = scenario->fraction != 0,
                                        .warnings = {.warning = ignore_warning}};
    step_begin();
    enum base_status status = cca_allocator_create(&options, &walk->allocator);
    testing_calls_watch(false);
    if (status != BASE_OK) {
        BASE_CHECK(walk->allocator == NULL);
        failure_is_told(walk, status);
        status = cca_allocator_create(&options, &walk->allocator); // not watched
    }
    BASE_CHECK_EQ(status, BASE_OK);
}

static void nothing_is_left(const struct walk *walk) {
    const struct testing_balance balance = testing_calls_balance();
    BASE_CHECK_EQ(balance.memory, 0);
    BASE_CHECK_EQ(balance.events, 0);
    BASE_CHECK_EQ(balance.mappings, 0);
    BASE_CHECK_EQ(balance.handles, 0);
    BASE_CHECK_EQ(balance.ranges, 0);
    for (int device = 0; device < walk->device_count; ++device)
        BASE_CHECK_EQ(sim_used_bytes(device), 0);
}

// The fault is over: everything can be given back.
static void end(struct walk *walk, const struct scenario *scenario) {
    for (int stream = 1; stream < STREAMS_MAX; ++stream)
        sim_stream_hold(walk->streams[stream], false);
    for (int slot = 0; slot < BLOCKS_MAX; ++slot) {
        testing_free(walk->allocator, walk->blocks[slot]);
        walk->blocks[slot] = NULL;
    }
    everything_is_in_order(walk);
    void *const small = testing_malloc(walk->allocator, 1, walk->streams[1]);
    testing_free(walk->allocator, small);
    const enum base_status status = allocator_empty_cache(walk->allocator);
    if (status != BASE_OK) step_context(base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    everything_is_in_order(walk);
    for (int device = 0; device < walk->device_count; ++device)
        BASE_CHECK_EQ(sim_used_bytes(device), 0);
    BASE_CHECK_EQ(cca_set_config(walk->allocator, "expandable_segments:False"), BASE_OK);
    // Nothing counts any more against what the device has or the fraction allows.
    const double part = scenario->fraction != 0 ? scenario->fraction : 1.0;
    const size_t all = (size_t)(part * (double)scenario->capacity_mib) / 20 * 20 * mib;
    testing_free(walk->allocator, testing_malloc(walk->allocator, all, walk->streams[0]));
    allocator_destroy(walk->allocator);
    nothing_is_left(walk);
}

// Whether the fault was met.
static bool run(const struct scenario *scenario, enum testing_call call, uint64_t n, bool for_ever,
                int error) {
    struct walk walk = {.call = call, .for_ever = for_ever};
    snprintf(run_context, sizeof run_context, "%s: %s, call %llu fails %s with %d", scenario->name,
             testing_call_name(call), (unsigned long long)n, for_ever ? "for ever" : "once", error);
    step_context("");
    begin(&walk, scenario);
    testing_calls_fail(call, n, for_ever, error);
    create(&walk, scenario);
    scenario->body(&walk);
    const bool was_met = testing_calls_failed() > 0;
    testing_calls_fail(call, 0, false, 0);
    end(&walk, scenario);
    return was_met;
}

// The allocator's end with blocks in every state: what is refused is lost, everything else goes.
static bool run_end(const struct scenario *scenario, enum testing_call call, uint64_t n,
                    bool for_ever, int error) {
    struct walk walk = {.call = call, .for_ever = for_ever};
    snprintf(run_context, sizeof run_context, "end of %s: %s, call %llu fails %s with %d",
             scenario->name, testing_call_name(call), (unsigned long long)n,
             for_ever ? "for ever" : "once", error);
    step_context("");
    begin(&walk, scenario);
    testing_calls_fail(call, 0, false, 0);
    create(&walk, scenario);
    scenario->body(&walk);
    const struct testing_balance before = testing_calls_balance();
    testing_calls_fail(call, n, for_ever, error);
    testing_calls_watch(true);
    allocator_destroy(walk.allocator);
    testing_calls_watch(false);
    const int64_t failed = (int64_t)testing_calls_failed();
    const struct testing_balance left = testing_calls_balance();
    BASE_CHECK_LE(left.memory, call == TESTING_cudaFree ? failed : 0);
    BASE_CHECK_LE(left.events, call == TESTING_cudaEventDestroy ? failed : 0);
    BASE_CHECK_LE(left.mappings, call == TESTING_cuMemUnmap ? failed : 0);
    BASE_CHECK_LE(left.handles, call == TESTING_cuMemRelease && for_ever ? before.handles : 0);
    // Addresses with a page on them are not taken back.
    BASE_CHECK_LE(left.ranges,
                  call == TESTING_cuMemAddressFree || call == TESTING_cuMemUnmap ? failed : 0);
    testing_calls_fail(call, 0, false, 0);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    return failed > 0;
}

static uint64_t runs;
static void walk_calls(const struct scenario *scenario, enum testing_call call, int error) {
    // That one call of any kind fails once says nothing new.
    for (int for_ever = call == TESTING_ANY_CUDA; for_ever < 2; ++for_ever)
        for (uint64_t n = 1; run(scenario, call, n, for_ever != 0, error); ++n)
            ++runs;
}

static void walk_end(const struct scenario *scenario, enum testing_call call) {
    for (int for_ever = 0; for_ever < 2; ++for_ever)
        for (uint64_t n = 1; run_end(scenario, call, n, for_ever != 0, cudaErrorUnknown); ++n)
            ++runs;
}

// CUDA_ERROR_UNKNOWN, the driver's, has the same number.
static void walk_scenario(const struct scenario *scenario) {
    uint64_t before[TESTING_CALL_COUNT];
    for (int call = 0; call < TESTING_CALL_COUNT; ++call)
        before[call] = testing_calls_count((enum testing_call)call);
    (void)run_end(scenario, TESTING_HOST_MEMORY, 0, false, 0); // to see what it calls
    for (int call = 0; call < TESTING_CALL_COUNT; ++call) {
        if (testing_calls_count((enum testing_call)call) == before[call]) continue;
        walk_calls(scenario, (enum testing_call)call, cudaErrorUnknown);
        walk_end(scenario, (enum testing_call)call);
    }
    walk_calls(scenario, TESTING_ANY_CUDA, cudaErrorUnknown);
    walk_calls(scenario, TESTING_cudaMalloc, cudaErrorMemoryAllocation);
    walk_calls(scenario, TESTING_cuMemCreate, CUDA_ERROR_OUT_OF_MEMORY);
    walk_calls(scenario, TESTING_cuMemMap, CUDA_ERROR_OUT_OF_MEMORY);
    walk_calls(scenario, TESTING_cuMemAddressReserve, CUDA_ERROR_OUT_OF_MEMORY);
}

// A device that cannot even say how much is free must not hide that it is full.
static void out_of_memory_is_told_though_nothing_else_is(const char *config) {
    struct allocator *const allocator = testing_create(config, 64 * mib);
    void *const block = testing_malloc(allocator, 20 * mib, NULL), *none = NULL;
    cca_set_warning_observer(allocator, &(struct cca_warning_observer){.warning = ignore_warning});
    testing_calls_fail(TESTING_cudaMemGetInfo, 1, true, cudaErrorUnknown);
    testing_calls_watch(true);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 60 * mib, NULL, &none), BASE_OUT_OF_MEMORY);
    testing_calls_watch(false);
    BASE_CHECK_GT(testing_calls_failed(), 0);
    BASE_CHECK(testing_message_has("Tried to allocate 60.00 MiB. GPU 0 has a total capacity of "
                                   "64.00 MiB of which 0 bytes is free"));
    BASE_CHECK_EQ(testing_stats(allocator).num_ooms, 1);
    testing_calls_fail(TESTING_cudaMemGetInfo, 0, false, 0);
    testing_free(allocator, block);
    cca_check(allocator);
    allocator_destroy(allocator);
}

int main(int argc, char **argv) {
    for (size_t index = 0; index < sizeof scenarios / sizeof scenarios[0]; ++index)
        if (argc < 2 || strcmp(argv[1], scenarios[index].name) == 0)
            walk_scenario(&scenarios[index]);
    base_check_context(NULL);
    out_of_memory_is_told_though_nothing_else_is("");
    out_of_memory_is_told_though_nothing_else_is("expandable_segments:True");
    printf("%llu runs with a fault\n", (unsigned long long)runs);
    return 0;
}
