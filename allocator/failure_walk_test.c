// The failure walk: each scenario runs with the first, second, third ... call of each kind failing,
// once and for ever, until a run ends without the fault being met. After each step that failed: a
// sentence that names the call, cca_check, statistics that add up, nothing lost; when the fault is
// over a smaller request works, everything can be freed, and the end leaves nothing behind. The race
// checker watches that no block is handed out again before its work is ordered.
//
//     failure_walk_test [SCENARIO]
#include "allocator/failure_walk.h"

#include "allocator/testing_race.h"

#include <cuda.h>
#include <stdio.h>

static const size_t mib = 1 << 20;

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

static void statistics_add_up(const struct failure_walk *walk,
                              const struct allocator_snapshot *snapshot, int device) {
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

// No fault strikes meanwhile: the thread is not watched.
void failure_left_no_trace(const struct failure_walk *walk) {
    struct allocator_snapshot snapshot;
    cca_check(walk->allocator);
    if (walk->has_lost_memory) return;
    BASE_CHECK_EQ(allocator_snapshot(walk->allocator, &snapshot), BASE_OK);
    size_t live = walk->is_uncached ? (size_t)testing_calls_balance().memory : 0, held = 0;
    for (size_t index = 0; index < snapshot.block_count; ++index)
        live += snapshot.blocks[index].state == ALLOCATOR_BLOCK_ALLOCATED;
    for (int index = 0; index < FAILURE_BLOCKS_MAX; ++index)
        held += walk->blocks[index] != NULL;
    BASE_CHECK_EQ(live, held + walk->refused);
    for (int device = 0; device < walk->device_count && !walk->is_uncached; ++device)
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

void failure_is_told(const struct failure_walk *walk, enum base_status status) {
    testing_message_is_a_sentence();
    step_context(base_status_message());
    if (status == BASE_CUDA && walk->call != TESTING_ANY_CUDA)
        BASE_CHECK(testing_message_has(testing_call_name(walk->call)));
    else if (status == BASE_HOST_MEMORY)
        BASE_CHECK(walk->call == TESTING_HOST_MEMORY);
    else if (status == BASE_OUT_OF_MEMORY)
        BASE_CHECK(testing_message_has("CUDA out of memory. Tried to allocate") ||
                   testing_message_has("CUDA out of memory. Allocation was preemptively rejected"));
    else
        BASE_CHECK(status == BASE_CUDA);
    step_context("");
}

// Every call that the simulator counts is one that can be made to fail here: how many it counted
// that were not.
static uint64_t calls_not_wrapped(void) {
    uint64_t calls = 0;
    for (int call = 0; call < SIM_CALL_KIND_COUNT; ++call)
        calls += sim_call_count((enum sim_call)call);
    for (int call = TESTING_cudaMemGetInfo; call < TESTING_cuDeviceGetAttribute; ++call)
        calls -= testing_calls_count((enum testing_call)call);
    return calls;
}

static uint64_t failed_before_step, calls_before_step;
static bool compares_calls;
void failure_step_begin(void) {
    failed_before_step = testing_calls_failed();
    if (compares_calls) calls_before_step = calls_not_wrapped();
    testing_calls_watch(true);
}

enum base_status failure_step_end(struct failure_walk *walk, enum base_status status) {
    testing_calls_watch(false);
    if (compares_calls) BASE_CHECK_EQ(calls_not_wrapped(), calls_before_step);
    if (status != BASE_OK) failure_is_told(walk, status);
    if (walk->allocator == NULL) return status;
    if (testing_calls_failed() == failed_before_step) return status;
    failure_left_no_trace(walk);
    if (walk->for_ever) return status;
    void *const small = testing_malloc(walk->allocator, 512, walk->streams[0]);
    testing_free(walk->allocator, small);
    failure_left_no_trace(walk);
    return status;
}

//------------------------------------------------------------------------------------------------
// Steps.

static void begin_work(struct failure_walk *walk, int slot, int device, size_t size, int stream) {
    walk->uses[slot].size = size;
    walk->uses[slot].device = device;
    walk->uses[slot].stream = stream;
    BASE_CHECK_EQ(cudaSetDevice(device), cudaSuccess);
    walk->uses[slot].number =
        testing_race_take(walk->blocks[slot], size, walk->streams[stream]);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
}

static void use_elsewhere(struct failure_walk *walk, int slot, int stream) {
    BASE_CHECK_EQ(cudaSetDevice(walk->uses[slot].device), cudaSuccess);
    testing_race_use(walk->uses[slot].number, walk->blocks[slot], walk->uses[slot].size,
                     walk->streams[walk->uses[slot].stream], walk->streams[stream]);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
}

// After its free.
static void forget(struct failure_walk *walk, int slot) {
    sim_block_give(walk->uses[slot].number);
    walk->uses[slot].number = 0;
    walk->blocks[slot] = NULL;
}

void failure_take_on(struct failure_walk *walk, int slot, int device, size_t size, int stream) {
    BASE_CHECK(walk->blocks[slot] == NULL);
    void *block = NULL;
    failure_step_begin();
    const enum base_status status =
        allocator_malloc(walk->allocator, device, size, walk->streams[stream], &block);
    testing_calls_watch(false);
    BASE_CHECK_EQ(block != NULL, status == BASE_OK);
    walk->blocks[slot] = block;
    (void)failure_step_end(walk, status);
    if (status == BASE_OK) begin_work(walk, slot, device, size, stream);
}
void failure_take(struct failure_walk *walk, int slot, size_t size, int stream) {
    failure_take_on(walk, slot, 0, size, stream);
}

void failure_give(struct failure_walk *walk, int slot) {
    failure_step_begin();
    const enum base_status status = allocator_free(walk->allocator, walk->blocks[slot]);
    testing_calls_watch(false);
    const bool is_refused = status != BASE_OK && walk->is_uncached;
    if (status == BASE_OK || is_refused) forget(walk, slot);
    walk->refused += is_refused;
    (void)failure_step_end(walk, status);
}

bool failure_give_inside(struct failure_walk *walk, int slot) {
    const bool is_freed = allocator_free(walk->allocator, walk->blocks[slot]) == BASE_OK;
    testing_calls_watch(false);
    if (is_freed) forget(walk, slot);
    testing_calls_watch(true);
    return is_freed;
}

void failure_mark(struct failure_walk *walk, int slot, int stream) {
    const enum base_status status = FAILURE_STEP(
        walk, allocator_record_stream(walk->allocator, walk->blocks[slot], walk->streams[stream]));
    if (status == BASE_OK && walk->blocks[slot] != NULL) use_elsewhere(walk, slot, stream);
}

void failure_empty_cache(struct failure_walk *walk) {
    (void)FAILURE_STEP(walk, allocator_empty_cache(walk->allocator));
}

void failure_set_config(struct failure_walk *walk, const char *config) {
    (void)FAILURE_STEP(walk, cca_set_config(walk->allocator, config));
}

//------------------------------------------------------------------------------------------------
// The walk.

static void ignore_warning(void *context, const char *text) {
    (void)context;
    (void)text;
}

static void begin(struct failure_walk *walk, const struct failure_scenario *scenario) {
    // Sparse addresses: every place may be asked for.
    BASE_CHECK_EQ(
        sim_configure(&(struct sim_options){.capacity_bytes = scenario->capacity_mib * mib,
                                            .device_count = scenario->device_count,
                                            .numerics = SIM_NUMERICS_OFF}),
        BASE_OK);
    testing_race_start();
    walk->device_count = scenario->device_count;
    walk->is_uncached = scenario->no_caching;
    for (int stream = 1; stream < FAILURE_STREAMS_MAX; ++stream) {
        BASE_CHECK_EQ(cudaSetDevice(stream == 3 ? scenario->device_count - 1 : 0), cudaSuccess);
        walk->streams[stream] = testing_stream();
    }
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    testing_calls_balance_reset();
}

static void create(struct failure_walk *walk, const struct failure_scenario *scenario) {
    const struct cca_options options = {.config = scenario->config,
                                        .no_caching = scenario->no_caching,
                                        .fraction = scenario->fraction,
                                        .fraction_set = scenario->fraction != 0,
                                        .warnings = {.warning = ignore_warning}};
    failure_step_begin();
    enum base_status status = cca_allocator_create(&options, &walk->allocator);
    testing_calls_watch(false);
    if (status != BASE_OK) {
        BASE_CHECK(walk->allocator == NULL);
        failure_is_told(walk, status);
        status = cca_allocator_create(&options, &walk->allocator); // not watched
    }
    BASE_CHECK_EQ(status, BASE_OK);
}

static void nothing_is_left(const struct failure_walk *walk) {
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
static void end(struct failure_walk *walk, const struct failure_scenario *scenario) {
    for (int stream = 1; stream < FAILURE_STREAMS_MAX; ++stream)
        sim_stream_hold(walk->streams[stream], false);
    for (int slot = 0; slot < FAILURE_BLOCKS_MAX; ++slot) {
        testing_free(walk->allocator, walk->blocks[slot]);
        forget(walk, slot);
    }
    failure_left_no_trace(walk);
    void *const small = testing_malloc(walk->allocator, 1, walk->streams[1]);
    testing_free(walk->allocator, small);
    const enum base_status status = allocator_empty_cache(walk->allocator);
    if (status != BASE_OK) step_context(base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    walk->has_lost_memory = false;
    failure_left_no_trace(walk);
    for (int device = 0; device < walk->device_count && walk->refused == 0; ++device)
        BASE_CHECK_EQ(sim_used_bytes(device), 0);
    BASE_CHECK_EQ(cca_set_config(walk->allocator, "expandable_segments:False"), BASE_OK);
    // Nothing counts any more against what the device has or the fraction allows.
    const double part = scenario->fraction != 0 ? scenario->fraction : 1.0;
    const size_t all = (size_t)(part * (double)scenario->capacity_mib) / 20 * 20 * mib;
    if (walk->refused == 0)
        testing_free(walk->allocator, testing_malloc(walk->allocator, all, walk->streams[0]));
    allocator_destroy(walk->allocator);
    nothing_is_left(walk);
    testing_race_stop();
}

// Whether the fault was met.
static bool run(const struct failure_scenario *scenario, enum testing_call call, uint64_t n,
                bool for_ever, int error) {
    struct failure_walk walk = {.call = call, .for_ever = for_ever};
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
static bool run_end(const struct failure_scenario *scenario, enum testing_call call, uint64_t n,
                    bool for_ever, int error) {
    struct failure_walk walk = {.call = call, .for_ever = for_ever};
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
    // The end goes on where it cannot wait, or not enter the device.
    const bool may_wait = call != TESTING_cudaDeviceSynchronize && call != TESTING_cudaGetDevice &&
                          call != TESTING_cudaSetDevice;
    if (!may_wait && failed > 0)
        sim_race_stop();
    else
        testing_race_stop();
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    return failed > 0;
}

static uint64_t runs;
static void walk_calls(const struct failure_scenario *scenario, enum testing_call call, int error) {
    // That one call of any kind fails once says nothing new.
    for (int for_ever = call == TESTING_ANY_CUDA; for_ever < 2; ++for_ever)
        for (uint64_t n = 1; run(scenario, call, n, for_ever != 0, error); ++n)
            ++runs;
}

static void walk_end(const struct failure_scenario *scenario, enum testing_call call) {
    for (int for_ever = 0; for_ever < 2; ++for_ever)
        for (uint64_t n = 1; run_end(scenario, call, n, for_ever != 0, cudaErrorUnknown); ++n)
            ++runs;
}

// CUDA_ERROR_UNKNOWN, the driver's, has the same number.
static void walk_scenario(const struct failure_scenario *scenario) {
    uint64_t before[TESTING_CALL_COUNT];
    for (int call = 0; call < TESTING_CALL_COUNT; ++call)
        before[call] = testing_calls_count((enum testing_call)call);
    compares_calls = true;
    (void)run_end(scenario, TESTING_HOST_MEMORY, 0, false, 0); // to see what it calls
    compares_calls = false;
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
                                   "64.00 MiB"));
    BASE_CHECK_EQ(testing_stats(allocator).num_ooms, 1);
    testing_calls_fail(TESTING_cudaMemGetInfo, 0, false, 0);
    testing_free(allocator, block);
    cca_check(allocator);
    allocator_destroy(allocator);
}

int main(int argc, char **argv) {
    for (size_t index = 0; index < failure_scenario_count; ++index)
        if (argc < 2 || strcmp(argv[1], failure_scenarios[index].name) == 0)
            walk_scenario(&failure_scenarios[index]);
    base_check_context(NULL);
    out_of_memory_is_told_though_nothing_else_is("");
    out_of_memory_is_told_though_nothing_else_is("expandable_segments:True");
    printf("%llu runs with a fault\n", (unsigned long long)runs);
    return 0;
}
