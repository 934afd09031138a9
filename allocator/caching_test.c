// The caching allocator's rules, each with values from the contract; golden logs cover their
// combinations.
#include "allocator/testing.h"

#include <stdint.h>
#include <stdio.h>

static const size_t mib = 1 << 20;

static uint64_t address_of(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

static void a_small_request_takes_the_front_of_a_segment_of_2_mib(void) {
    struct allocator *const allocator = testing_create("", 8 * BASE_GIB);
    char *const a = testing_malloc(allocator, 1, NULL), *const b =
                                                            testing_malloc(allocator, 513, NULL);
    BASE_CHECK_EQ(address_of(b), address_of(a) + 512);
    void *base;
    size_t size;
    BASE_CHECK_EQ(allocator_base_allocation(allocator, b, &base, &size), BASE_OK);
    BASE_CHECK_EQ(address_of(base), address_of(a));
    BASE_CHECK_EQ(size, 2 * mib);
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.allocated_bytes[ALLOCATOR_STAT_ALL].current, 1536);
    BASE_CHECK_EQ(stats.requested_bytes[ALLOCATOR_STAT_SMALL_POOL].current, 514);
    BASE_CHECK_EQ(stats.inactive_split_bytes[ALLOCATOR_STAT_ALL].current, 2 * mib - 1536);
    BASE_CHECK_EQ(stats.segment[ALLOCATOR_STAT_ALL].current, 1);
    cca_check(allocator);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

static void the_smallest_block_that_fits_is_taken(void) {
    struct allocator *const allocator = testing_create("", 8 * BASE_GIB);
    void *const large = testing_malloc(allocator, 50 * mib, NULL),
                *const fit = testing_malloc(allocator, 30 * mib, NULL),
                *const small = testing_malloc(allocator, 20 * mib, NULL);
    testing_free(allocator, large);
    testing_free(allocator, fit);
    testing_free(allocator, small);
    BASE_CHECK_EQ(address_of(testing_malloc(allocator, 25 * mib, NULL)), address_of(fit));
    cca_check(allocator);
    allocator_destroy(allocator);
}

// Two equal blocks: 2.15 takes the one of the older segment, up to 2.11 the one of the lower
// address.
static void ties_go_by_age_or_by_address(const char *config, bool expects_lower) {
    struct allocator *const allocator = testing_create(config, 8 * BASE_GIB);
    BASE_CHECK_EQ(sim_next_address(0, 0x700000000000), BASE_OK);
    BASE_CHECK_EQ(sim_next_address(0, 21592276992), BASE_OK);
    void *const older = testing_malloc(allocator, 20 * mib, NULL), *const lower = testing_malloc(
                                                                       allocator, 20 * mib, NULL);
    BASE_CHECK_EQ(address_of(older), 0x700000000000);
    BASE_CHECK_EQ(address_of(lower), 21592276992);
    testing_free(allocator, older);
    testing_free(allocator, lower);
    BASE_CHECK_EQ(address_of(testing_malloc(allocator, 20 * mib, NULL)),
                  address_of(expects_lower ? lower : older));
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void freed_neighbours_merge_in_any_order(void) {
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t order = 0; order < sizeof orders / sizeof orders[0]; ++order) {
        struct allocator *const allocator = testing_create("", 8 * BASE_GIB);
        void *blocks[3];
        for (int index = 0; index < 3; ++index)
            blocks[index] = testing_malloc(allocator, 1000, NULL);
        for (int index = 0; index < 3; ++index) {
            testing_free(allocator, blocks[orders[order][index]]);
            cca_check(allocator);
        }
        struct allocator_snapshot snapshot;
        BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
        BASE_CHECK_EQ(snapshot.segment_count, 1);
        BASE_CHECK_EQ(snapshot.block_count, 1);
        BASE_CHECK_EQ(snapshot.blocks[0].size, 2 * mib);
        BASE_CHECK_EQ(snapshot.blocks[0].requested_size, 1000);
        BASE_CHECK_EQ(snapshot.segments[0].active_size, 0);
        allocator_snapshot_deinit(&snapshot);
        BASE_CHECK_EQ(testing_stats(allocator).inactive_split[ALLOCATOR_STAT_ALL].current, 0);
        allocator_destroy(allocator);
    }
}

static void memory_of_one_stream_never_serves_another(void) {
    struct allocator *const allocator = testing_create("", 8 * BASE_GIB);
    cudaStream_t other = testing_stream();
    void *const first = testing_malloc(allocator, 1000, NULL);
    testing_free(allocator, first);
    BASE_CHECK_NE(address_of(testing_malloc(allocator, 1000, other)), address_of(first));
    BASE_CHECK_EQ(testing_stats(allocator).segment[ALLOCATOR_STAT_ALL].current, 2);
    cca_check(allocator);
    allocator_destroy(allocator);
}

// Public notes on fragmentation: the order of sizes alone decides what is reserved.
static void order_alone_fragments(void) {
    struct allocator *allocator = testing_create("", 8 * BASE_GIB);
    void *blocks[8];
    for (int index = 0; index < 8; ++index)
        blocks[index] = testing_malloc(allocator, 16 * mib, NULL);
    for (int index = 0; index < 8; ++index) testing_free(allocator, blocks[index]);
    for (int index = 0; index < 4; ++index)
        blocks[index] = testing_malloc(allocator, 32 * mib, NULL);
    BASE_CHECK_EQ(testing_stats(allocator).reserved_bytes[ALLOCATOR_STAT_ALL].current, 256 * mib);
    allocator_destroy(allocator);

    allocator = testing_create("", 8 * BASE_GIB);
    for (int index = 0; index < 4; ++index)
        blocks[index] = testing_malloc(allocator, 32 * mib, NULL);
    for (int index = 0; index < 4; ++index) testing_free(allocator, blocks[index]);
    for (int index = 0; index < 8; ++index)
        blocks[index] = testing_malloc(allocator, 16 * mib, NULL);
    BASE_CHECK_EQ(testing_stats(allocator).reserved_bytes[ALLOCATOR_STAT_ALL].current, 128 * mib);
    allocator_destroy(allocator);
}

static void out_of_memory_says_pytorchs_sentence(void) {
    struct allocator *const allocator = testing_create("", 1024 * BASE_MIB);
    void *pointer = testing_malloc(allocator, 300 * mib, NULL);
    testing_malloc(allocator, 1, NULL);
    void *const untouched = pointer;
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 1000 * mib, NULL, &pointer), BASE_OUT_OF_MEMORY);
    BASE_CHECK_EQ(address_of(pointer), address_of(untouched));
    BASE_CHECK(
        strcmp(base_status_message(),
               "CUDA out of memory. Tried to allocate 1000.00 MiB. GPU 0 has a total capacity of "
               "1024.00 MiB of which "
               "722.00 MiB is free. Of the allocated memory 300.00 MiB is allocated by PyTorch, "
               "and 2.00 MiB is reserved by "
               "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
               "documentation for Memory "
               "Management  "
               "(https://docs.pytorch.org/docs/stable/notes/"
               "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)") == 0);
    BASE_CHECK_EQ(cca_set_memory_fraction(allocator, 0, 0.25), BASE_OK);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 2 * mib, NULL, &pointer), BASE_OUT_OF_MEMORY);
    BASE_CHECK(testing_message_has("256.00 MiB allowed; Of the allocated"));
    BASE_CHECK_EQ(testing_stats(allocator).num_ooms, 2);
    BASE_CHECK_EQ(testing_stats(allocator).num_alloc_retries, 2);
    cca_check(allocator);
    testing_malloc(allocator, 1000, NULL); // what is cached still serves
    allocator_destroy(allocator);
}

static void cached_memory_is_released_before_a_request_fails(void) {
    struct allocator *const allocator = testing_create("", 1024 * BASE_MIB);
    testing_free(allocator, testing_malloc(allocator, 600 * mib, NULL));
    testing_malloc(allocator, 700 * mib, NULL);
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.num_alloc_retries, 1);
    BASE_CHECK_EQ(stats.num_sync_all_streams, 1);
    BASE_CHECK_EQ(stats.num_device_free, 1);
    BASE_CHECK_EQ(stats.reserved_bytes[ALLOCATOR_STAT_ALL].peak, 700 * mib);
    cca_check(allocator);
    allocator_destroy(allocator);
}

// Public fault pt#182446 and its family: no size of 0, no address twice, nothing changed by a
// refusal.
static void impossible_sizes_are_refused(void) {
    struct allocator *const allocator = testing_create("", 1024 * BASE_MIB);
    static const size_t impossible[] = {(size_t)1 << 60, (size_t)1 << 63, 18446744073708433663u};
    void *pointer = &pointer;
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 0, NULL, &pointer), BASE_OK);
    BASE_CHECK(pointer == NULL);
    for (size_t row = 0; row < sizeof impossible / sizeof impossible[0]; ++row) {
        BASE_CHECK_EQ(allocator_malloc(allocator, 0, impossible[row], NULL, &pointer),
                      BASE_OUT_OF_MEMORY);
        BASE_CHECK(testing_message_has("more than 1EB"));
    }
    for (size_t below = 0; below <= 513; ++below)
        BASE_CHECK_EQ(allocator_malloc(allocator, 0, SIZE_MAX - below, NULL, &pointer),
                      BASE_OUT_OF_MEMORY);
    BASE_CHECK_EQ(testing_stats(allocator).num_ooms, 0);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, ((size_t)1 << 60) - 1, NULL, &pointer),
                  BASE_OUT_OF_MEMORY);
    BASE_CHECK(testing_message_has("Tried to allocate 1073741824.00 GiB"));
    BASE_CHECK(pointer == NULL);
    static const size_t possible[] = {1, 511, 512, 513};
    for (size_t row = 0; row < sizeof possible / sizeof possible[0]; ++row)
        testing_malloc(allocator, possible[row], NULL);
    BASE_CHECK_EQ(testing_stats(allocator).allocated_bytes[ALLOCATOR_STAT_ALL].current, 2560);
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void pointers_that_are_none_are_refused_by_name(void) {
    struct allocator *const allocator = testing_create("", 8 * BASE_GIB);
    struct allocator *other = NULL;
    BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){0}, &other), BASE_OK);
    char *const small = testing_malloc(allocator, 1000, NULL), *const large = testing_malloc(
                                                                   allocator, 5 * mib, NULL);
    int local;
    void *base;
    size_t size;
    BASE_CHECK_EQ(allocator_free(allocator, NULL), BASE_OK);
    BASE_CHECK_EQ(allocator_free(allocator, &local), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_free(allocator, (void *)UINTPTR_MAX), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_free(allocator, small + 512), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_free(allocator, large + 512), BASE_INVALID_POINTER);
    BASE_CHECK(testing_message_has("points into a block"));
    BASE_CHECK_EQ(allocator_free(other, small), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_base_allocation(allocator, small + 1, &base, &size),
                  BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_record_stream(allocator, &local, NULL), BASE_INVALID_POINTER);
    testing_free(allocator, small);
    testing_free(allocator, large);
    BASE_CHECK_EQ(allocator_free(allocator, small), BASE_INVALID_POINTER);
    BASE_CHECK(testing_message_has("freed already"));
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    BASE_CHECK_EQ(allocator_free(allocator, small), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_free(allocator, large), BASE_INVALID_POINTER);
    cca_check(allocator);
    allocator_destroy(other);
    allocator_destroy(allocator);
}

// A recording may put segments anywhere on 512 bytes: two small ones then share a window of the
// page table. Nor need addresses end at 48 bits.
static void segments_may_begin_anywhere(uint64_t first) {
    struct allocator *const allocator = testing_create("", 8 * BASE_GIB);
    base_check_context("first segment at %#llx", (unsigned long long)first);
    for (uint64_t index = 0; index < 3; ++index)
        BASE_CHECK_EQ(sim_next_address(0, first + 2 * mib * index), BASE_OK);
    void *blocks[4];
    for (int index = 0; index < 4; ++index) blocks[index] = testing_malloc(allocator, mib, NULL);
    void *const large = testing_malloc(allocator, 2 * mib, NULL);
    void *const tail = testing_malloc(allocator, 3 * mib, NULL);
    BASE_CHECK_EQ(address_of(large), first + 4 * mib);
    BASE_CHECK_EQ(address_of(tail), first + 6 * mib);
    cca_check(allocator);
    BASE_CHECK_EQ(allocator_free(allocator, (char *)blocks[1] + 512), BASE_INVALID_POINTER);
    for (int index = 0; index < 4; ++index) testing_free(allocator, blocks[index]);
    BASE_CHECK_EQ(allocator_free(allocator, blocks[2]), BASE_INVALID_POINTER);
    testing_free(allocator, large);
    testing_free(allocator, tail);
    BASE_CHECK_EQ(allocator_free(allocator, large), BASE_INVALID_POINTER);
    cca_check(allocator);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    cca_check(allocator);
    allocator_destroy(allocator);
    base_check_context(NULL);
}

//------------------------------------------------------------------------------------------------
// Events.

#define EVENTS_MAX 64

struct recorder {
    struct allocator_event events[EVENTS_MAX];
    size_t count;
};

static void record(void *context, const struct allocator_event *event) {
    struct recorder *const recorder = context;
    BASE_CHECK_LT(recorder->count, EVENTS_MAX);
    recorder->events[recorder->count++] = *event;
}

static void check_actions(const struct recorder *recorder, const char *expected) {
    char actions[1024] = "";
    for (size_t index = 0; index < recorder->count; ++index) {
        if (index > 0) strcat(actions, " ");
        strcat(actions, allocator_action_name(recorder->events[index].action));
    }
    base_check_context("events '%s'", actions);
    BASE_CHECK(strcmp(actions, expected) == 0);
    base_check_context(NULL);
}

static void the_observer_sees_decisions_in_order(void) {
    struct allocator *const allocator = testing_create("", 1024 * BASE_MIB);
    struct recorder recorder = {.count = 0};
    BASE_CHECK_EQ(
        allocator_set_observer(allocator, &(struct allocator_observer){record, &recorder}),
        BASE_OK);
    void *pointer = testing_malloc(allocator, 600 * mib, NULL);
    testing_free(allocator, pointer);
    testing_malloc(allocator, 700 * mib, NULL);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 700 * mib, NULL, &pointer), BASE_OUT_OF_MEMORY);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    allocator_snapshot_deinit(&snapshot);
    check_actions(
        &recorder,
        "segment_alloc alloc free_requested free_completed segment_free segment_alloc alloc oom "
        "empty_cache snapshot");
    BASE_CHECK_EQ(recorder.events[0].size, 600 * mib);
    BASE_CHECK_EQ(recorder.events[1].block_size, 600 * mib);
    BASE_CHECK_EQ(recorder.events[7].size, 700 * mib);
    BASE_CHECK_EQ(recorder.events[7].device_free, 324 * mib);
    BASE_CHECK_EQ(recorder.events[9].size, 700 * mib);
    allocator_destroy(allocator);
}

static void a_block_used_elsewhere_waits_for_that_stream(void) {
    struct allocator *const allocator = testing_create("", 1024 * BASE_MIB);
    cudaStream_t other = testing_stream();
    sim_stream_hold(other, true);
    void *const used = testing_malloc(allocator, 1000, NULL);
    BASE_CHECK_EQ(allocator_record_stream(allocator, used, NULL),
                  BASE_OK); // its own stream: nothing
    BASE_CHECK_EQ(allocator_record_stream(allocator, used, other), BASE_OK);
    BASE_CHECK_EQ(allocator_record_stream(allocator, used, other), BASE_OK);
    testing_free(allocator, used);
    BASE_CHECK_EQ(allocator_free(allocator, used), BASE_INVALID_POINTER);
    BASE_CHECK(testing_message_has("waits for its streams"));
    struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].current, 0);
    BASE_CHECK_EQ(stats.active[ALLOCATOR_STAT_ALL].current, 1);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_EVENT_RECORD), 1);
    void *const meanwhile = testing_malloc(allocator, 1000, NULL);
    BASE_CHECK_NE(address_of(meanwhile), address_of(used));
    cca_check(allocator);
    BASE_CHECK_EQ(sim_stream_run(other, 100), 1);
    BASE_CHECK_EQ(address_of(testing_malloc(allocator, 1000, NULL)), address_of(used));
    stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.active[ALLOCATOR_STAT_ALL].peak, 2);
    BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].peak, 2);
    cca_check(allocator);
    allocator_destroy(allocator);
}

static void memory_that_waits_is_waited_for_before_a_request_fails(void) {
    struct allocator *const allocator = testing_create("", 1024 * BASE_MIB);
    cudaStream_t other = testing_stream();
    sim_stream_hold(other, true);
    void *const used = testing_malloc(allocator, 600 * mib, NULL);
    BASE_CHECK_EQ(allocator_record_stream(allocator, used, other), BASE_OK);
    testing_free(allocator, used);
    testing_malloc(allocator, 700 * mib, NULL);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_EVENT_SYNCHRONIZE), 1);
    BASE_CHECK_EQ(testing_stats(allocator).num_sync_all_streams, 1);
    cca_check(allocator);
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// Failing calls.

// The first, second, third ... call of a kind fails: a status, everything in order, and the next
// request works.
static void a_scenario(struct allocator *allocator, cudaStream_t other, int *failures) {
    void *blocks[4] = {NULL};
    static const size_t sizes[4] = {1000, 5 << 20, 600 << 20, 700 << 20};
    for (int index = 0; index < 4; ++index) {
        if (allocator_malloc(allocator, 0, sizes[index], NULL, &blocks[index]) != BASE_OK)
            ++*failures;
        cca_check(allocator);
        if (index < 2 && blocks[index] != NULL &&
            allocator_record_stream(allocator, blocks[index], other) != BASE_OK)
            ++*failures;
        if (index != 2) continue;
        if (allocator_free(allocator, blocks[index]) == BASE_OK)
            blocks[index] = NULL;
        else
            ++*failures;
        cca_check(allocator);
    }
    for (int index = 0; index < 4; ++index) {
        // A free that failed left the block with its holder.
        if (allocator_free(allocator, blocks[index]) == BASE_OK) continue;
        ++*failures;
        cca_check(allocator);
        testing_free(allocator, blocks[index]);
    }
    cca_check(allocator);
}

static void every_failing_call_leaves_order(enum sim_call call, cudaError_t error) {
    for (uint64_t nth = 1; nth <= 8; ++nth) {
        struct allocator *const allocator = testing_create("", 1024 * BASE_MIB);
        cudaStream_t other = testing_stream();
        int failures = 0;
        base_check_context("call %d of %s fails", (int)nth, sim_call_name(call));
        sim_fault_next(call, nth, error);
        a_scenario(allocator, other, &failures);
        BASE_CHECK_LE(failures, 1);
        sim_fault_next(call, 0, cudaSuccess);
        BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
        BASE_CHECK_EQ(sim_used_bytes(0), 0);
        failures = 0;
        a_scenario(allocator, other, &failures);
        BASE_CHECK_EQ(failures, 0);
        BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
        BASE_CHECK_EQ(sim_used_bytes(0), 0);
        BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
        allocator_destroy(allocator);
    }
    base_check_context(NULL);
}

static void settings_change_at_run_time(void) {
    struct allocator *const allocator = testing_create("max_split_size_mb:64", 8 * BASE_GIB);
    size_t rounded, segment;
    BASE_CHECK_EQ(cca_set_config(allocator, "roundup_power2_divisions:4,large_segment_size_mb:32"),
                  BASE_OK);
    BASE_CHECK_EQ(cca_round_size(allocator, 1048577, &rounded, &segment), BASE_OK);
    BASE_CHECK_EQ(rounded, 1310720);
    BASE_CHECK_EQ(segment, 32 * mib);
    BASE_CHECK_EQ(cca_set_config(allocator, "max_split_size_mb:31"), BASE_INVALID_CONFIG);
    BASE_CHECK_EQ(cca_round_size(allocator, 1048577, &rounded, &segment), BASE_OK);
    BASE_CHECK_EQ(rounded, 1049088); // the failed call reset what every call resets
    BASE_CHECK_EQ(cca_round_size(allocator, 0, &rounded, &segment), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(testing_stats(allocator).max_split_size,
                  64 * mib); // as it was when the allocator was made
    double fraction;
    BASE_CHECK_EQ(cca_set_memory_fraction(allocator, 0, 1.5), BASE_INVALID_VALUE);
    BASE_CHECK(testing_message_has("invalid fraction:1.5. Please set within [0, 1]."));
    BASE_CHECK_EQ(cca_set_memory_fraction(allocator, 0, 0.5), BASE_OK);
    BASE_CHECK_EQ(cca_memory_fraction(allocator, 0, &fraction), BASE_OK);
    BASE_CHECK(fraction == 0.5);
    BASE_CHECK_EQ(cca_set_memory_fraction(allocator, 0, 1.0), BASE_OK);
    BASE_CHECK_EQ(cca_memory_fraction(allocator, 0, &fraction), BASE_OK);
    BASE_CHECK(fraction == 1.0);
    void *pointer;
    BASE_CHECK_EQ(allocator_malloc(allocator, 1, 1, NULL, &pointer), BASE_INVALID_VALUE);
    BASE_CHECK_EQ(allocator_malloc(allocator, -1, 1, NULL, &pointer), BASE_INVALID_VALUE);
    allocator_destroy(allocator);
}

int main(void) {
    a_small_request_takes_the_front_of_a_segment_of_2_mib();
    the_smallest_block_that_fits_is_taken();
    ties_go_by_age_or_by_address("", false);
    ties_go_by_age_or_by_address("x_torch:2.11", true);
    freed_neighbours_merge_in_any_order();
    memory_of_one_stream_never_serves_another();
    order_alone_fragments();
    out_of_memory_says_pytorchs_sentence();
    cached_memory_is_released_before_a_request_fails();
    impossible_sizes_are_refused();
    pointers_that_are_none_are_refused_by_name();
    segments_may_begin_anywhere(0x7f0000000200);
    segments_may_begin_anywhere(0x7f0000100000);
    segments_may_begin_anywhere(((uint64_t)1 << 48) - 5 * mib);
    segments_may_begin_anywhere((uint64_t)1 << 55);
    the_observer_sees_decisions_in_order();
    a_block_used_elsewhere_waits_for_that_stream();
    memory_that_waits_is_waited_for_before_a_request_fails();
    every_failing_call_leaves_order(SIM_CALL_MALLOC, cudaErrorMemoryAllocation);
    every_failing_call_leaves_order(SIM_CALL_MALLOC, cudaErrorUnknown);
    every_failing_call_leaves_order(SIM_CALL_FREE, cudaErrorUnknown);
    every_failing_call_leaves_order(SIM_CALL_MEM_GET_INFO, cudaErrorUnknown);
    every_failing_call_leaves_order(SIM_CALL_EVENT_CREATE, cudaErrorMemoryAllocation);
    every_failing_call_leaves_order(SIM_CALL_EVENT_RECORD, cudaErrorUnknown);
    every_failing_call_leaves_order(SIM_CALL_EVENT_QUERY, cudaErrorUnknown);
    every_failing_call_leaves_order(SIM_CALL_EVENT_SYNCHRONIZE, cudaErrorUnknown);
    settings_change_at_run_time();
    return 0;
}
