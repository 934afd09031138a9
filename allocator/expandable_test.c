// Expandable segments where golden logs do not reach: driver calls that fail, one after the other,
// peers, and what a program may do wrong.
#include "allocator/testing_capture.h"

#include <cuda.h>
#include <stdio.h>

static const size_t mib = 1 << 20;

#define PAGE ((size_t)20 << 20)

static size_t used(void) { return (size_t)sim_used_bytes(0); }

static uint64_t ranges(void) {
    return sim_call_count(SIM_CALL_ADDRESS_RESERVE) -
           sim_call_failed_count(SIM_CALL_ADDRESS_RESERVE) -
           (sim_call_count(SIM_CALL_ADDRESS_FREE) - sim_call_failed_count(SIM_CALL_ADDRESS_FREE));
}

static int64_t reserved(struct allocator *allocator) {
    return testing_stats(allocator).reserved_bytes[ALLOCATOR_STAT_ALL].current;
}

static size_t warnings;
static void count_warning(void *context, const char *text) {
    (void)context;
    BASE_CHECK(strstr(text, "memory mapping failed with OOM") != NULL);
    ++warnings;
}

static struct allocator *create(void) {
    struct allocator *const allocator = testing_create("expandable_segments:True", 2 * BASE_GIB);
    cca_set_warning_observer(allocator,
                             &(struct cca_warning_observer){.warning = count_warning});
    warnings = 0;
    return allocator;
}

static void destroy(struct allocator *allocator) {
    cca_check(allocator);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(used(), 0);
    BASE_CHECK_EQ(ranges(), 0);
}

// A segment of 3 pages: one handed out, one free, one handed out; then a request that needs 5 more.
// Of each kind of call, each one fails in turn with an error that is none of memory.
static void what_fails_while_mapping_is_undone(enum sim_call call, uint64_t calls_of_a_request) {
    for (uint64_t k = 1; k <= calls_of_a_request; ++k) {
        base_check_context("%s, call %llu", sim_call_name(call), (unsigned long long)k);
        struct allocator *const allocator = create();
        void *const first = testing_malloc(allocator, PAGE, NULL);
        void *const hole = testing_malloc(allocator, PAGE, NULL);
        void *const last = testing_malloc(allocator, PAGE, NULL);
        testing_free(allocator, hole);
        const size_t used_before = used();
        sim_fault_next(call, k, cudaErrorUnknown);
        void *pointer = NULL;
        BASE_CHECK_EQ(allocator_malloc(allocator, 0, 5 * PAGE, NULL, &pointer), BASE_CUDA);
        BASE_CHECK(testing_message_has(sim_call_name(call)));
        BASE_CHECK_EQ(used(), used_before);
        BASE_CHECK_EQ(reserved(allocator), (int64_t)used_before);
        cca_check(allocator);
        pointer = testing_malloc(allocator, 5 * PAGE, NULL);
        BASE_CHECK_EQ((char *)pointer, (char *)last + PAGE);
        BASE_CHECK_EQ(testing_malloc(allocator, PAGE, NULL), hole);
        testing_free(allocator, first);
        destroy(allocator);
    }
    sim_fault_next(call, 0, cudaSuccess);
    base_check_context(NULL);
}

// Want of memory is no error: everything cached goes, the rest is tried again, with a warning.
static void want_of_memory_releases_what_is_cached(void) {
    for (uint64_t k = 1; k <= 5; ++k) {
        struct allocator *const allocator = create();
        void *const cached = testing_malloc(allocator, 3 * PAGE, testing_stream());
        testing_free(allocator, cached);
        sim_fault_next(SIM_CALL_MEM_CREATE, k, cudaErrorMemoryAllocation);
        testing_free(allocator, testing_malloc(allocator, 5 * PAGE, NULL));
        BASE_CHECK_EQ(warnings, 1);
        BASE_CHECK_EQ(used(), 5 * PAGE);
        BASE_CHECK_EQ(testing_stats(allocator).num_alloc_retries, 1);
        destroy(allocator);
    }
    sim_fault_next(SIM_CALL_MEM_CREATE, 0, cudaSuccess);
}

// A request that fills a hole and then goes on behind the end maps in two steps; what the first
// one mapped is cached memory if the second one fails.
static void what_a_step_mapped_before_another_failed_is_cached(void) {
    struct allocator *const allocator = create();
    void *const before = testing_malloc(allocator, 2 * PAGE, NULL);
    void *const middle = testing_malloc(allocator, PAGE, NULL);
    testing_free(allocator, before);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    BASE_CHECK_EQ(reserved(allocator), (int64_t)PAGE);
    testing_free(allocator, middle);
    // Two pages before, one that is there, two behind: the fourth page fails.
    sim_fault_next(SIM_CALL_MEM_CREATE, 4, cudaErrorUnknown);
    void *pointer = NULL;
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 5 * PAGE, NULL, &pointer), BASE_CUDA);
    BASE_CHECK_EQ(reserved(allocator), (int64_t)(3 * PAGE));
    cca_check(allocator);
    BASE_CHECK_EQ(testing_malloc(allocator, 3 * PAGE, NULL), before);
    destroy(allocator);
}

// Each call of an unmapping fails in turn: nothing is lost, and the next try finishes.
static void what_fails_while_unmapping_is_done_later(enum sim_call call, uint64_t calls) {
    for (uint64_t k = 1; k <= calls; ++k) {
        base_check_context("%s, call %llu", sim_call_name(call), (unsigned long long)k);
        struct allocator *const allocator = create();
        void *const large = testing_malloc(allocator, 3 * PAGE, NULL);
        void *const small = testing_malloc(allocator, 1000, NULL);
        testing_free(allocator, large);
        testing_free(allocator, small);
        sim_fault_next(call, k, cudaErrorUnknown);
        BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_CUDA);
        BASE_CHECK_EQ(reserved(allocator), (int64_t)used());
        cca_check(allocator);
        testing_free(allocator, testing_malloc(allocator, 3 * PAGE, NULL));
        cca_check(allocator);
        BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
        BASE_CHECK_EQ(used(), 0);
        // A segment whose addresses could not be given back stays for later use.
        BASE_CHECK_LE(ranges(), 1);
        destroy(allocator);
    }
    sim_fault_next(call, 0, cudaSuccess);
    base_check_context(NULL);
}

static void whole_pages_go_and_the_ends_stay(void) {
    struct allocator *const allocator = create();
    void *const front = testing_malloc(allocator, 15 * mib, NULL);
    char *const middle = testing_malloc(allocator, 90 * mib, NULL);
    void *const back = testing_malloc(allocator, 15 * mib, NULL);
    testing_free(allocator, middle);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    // 15 to 105 MiB were free: 20 to 100 went.
    BASE_CHECK_EQ(reserved(allocator), (int64_t)(40 * mib));
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    BASE_CHECK_EQ(snapshot.segment_count, 2);
    BASE_CHECK_EQ(snapshot.segments[0].total_size, 20 * mib);
    BASE_CHECK_EQ(snapshot.segments[1].total_size, 20 * mib);
    BASE_CHECK_EQ(snapshot.segments[1].address, (char *)front + 100 * mib);
    allocator_snapshot_deinit(&snapshot);
    cca_check(allocator);
    // Of two ends of 5 MiB the one that cannot grow.
    BASE_CHECK_EQ(testing_malloc(allocator, 5 * mib, NULL), (char *)front + 100 * mib);
    BASE_CHECK_EQ(testing_malloc(allocator, 5 * mib, NULL), middle);
    testing_free(allocator, back);
    destroy(allocator);
}

static unsigned long long access_of(int device, const void *pointer) {
    const CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    unsigned long long flags = 0;
    BASE_CHECK_EQ(cuMemGetAccess(&flags, &location, (CUdeviceptr)(uintptr_t)pointer), CUDA_SUCCESS);
    return flags;
}

static void a_peer_may_use_what_is_mapped_and_what_will_be(void) {
    struct allocator *allocator;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = 3,
                                                      .capacity_bytes = 2 * BASE_GIB,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(cca_allocator_create(
                      &(struct cca_options){.config = "expandable_segments:True"}, &allocator),
                  BASE_OK);
    char *const before = testing_malloc(allocator, 2 * PAGE, NULL);
    char *const hole = testing_malloc(allocator, PAGE, NULL);
    char *const behind = testing_malloc(allocator, PAGE, NULL);
    testing_free(allocator, hole);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    BASE_CHECK_EQ(access_of(1, before), CU_MEM_ACCESS_FLAGS_PROT_NONE);
    BASE_CHECK_EQ(cca_enable_peer_access(allocator, 0, 1), BASE_OK);
    BASE_CHECK_EQ(access_of(1, before), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    BASE_CHECK_EQ(access_of(1, behind), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    BASE_CHECK_EQ(access_of(2, before), CU_MEM_ACCESS_FLAGS_PROT_NONE);
    char *const later = testing_malloc(allocator, 4 * PAGE, NULL);
    BASE_CHECK_EQ(access_of(1, later), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    BASE_CHECK_EQ(access_of(0, later), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    // Once more changes nothing, and one way is not the other.
    const uint64_t calls = sim_call_count(SIM_CALL_MEM_SET_ACCESS);
    BASE_CHECK_EQ(cca_enable_peer_access(allocator, 0, 1), BASE_OK);
    BASE_CHECK_EQ(cca_enable_peer_access(allocator, 0, 0), BASE_OK);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_MEM_SET_ACCESS), calls);
    BASE_CHECK_EQ(cca_enable_peer_access(allocator, 0, 3), BASE_INVALID_VALUE);
    void *other;
    BASE_CHECK_EQ(allocator_malloc(allocator, 1, 1000, NULL, &other), BASE_OK);
    BASE_CHECK_EQ(access_of(0, other), CU_MEM_ACCESS_FLAGS_PROT_NONE);
    // A peer that cannot be let in: the request fails and leaves nothing.
    const size_t used_before = used();
    sim_fault_next(SIM_CALL_MEM_SET_ACCESS, 2, cudaErrorUnknown);
    void *pointer;
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 10 * PAGE, NULL, &pointer), BASE_CUDA);
    BASE_CHECK_EQ(used(), used_before);
    destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(1), 0);
}

static void bad_pointers_are_refused(void) {
    struct allocator *const allocator = create();
    char *const large = testing_malloc(allocator, 3 * PAGE, NULL);
    char *const small = testing_malloc(allocator, 1000, NULL);
    BASE_CHECK_EQ(allocator_free(allocator, large + 512), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_free(allocator, small + 512), BASE_INVALID_POINTER);
    void *base;
    size_t size;
    BASE_CHECK_EQ(allocator_base_allocation(allocator, large, &base, &size), BASE_INVALID_VALUE);
    BASE_CHECK(testing_message_has("expandable segment"));
    testing_free(allocator, large);
    testing_free(allocator, small);
    BASE_CHECK_EQ(allocator_free(allocator, large), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    BASE_CHECK_EQ(allocator_free(allocator, large), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_free(allocator, small), BASE_INVALID_POINTER);
    destroy(allocator);
}

// The process runs out of addresses: an error that says which settings help, no out of memory.
static void no_addresses_left_is_said(void) {
    struct allocator *allocator;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = 2 * BASE_GIB,
                                                      .numerics = SIM_NUMERICS_OFF,
                                                      .address_bytes = 3 * BASE_GIB}),
                  BASE_OK);
    BASE_CHECK_EQ(cca_allocator_create(
                      &(struct cca_options){.config = "expandable_segments:True"}, &allocator),
                  BASE_OK);
    (void)testing_malloc(allocator, 1000, NULL);
    void *pointer;
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, PAGE, NULL, &pointer), BASE_CUDA);
    BASE_CHECK(testing_message_has("expandable_segments_reserve"));
    cca_check(allocator);
    BASE_CHECK_EQ(cca_set_config(allocator, "expandable_segments_reserve:0.25"), BASE_OK);
    (void)testing_malloc(allocator, PAGE, NULL);
    destroy(allocator);
}

static void a_class_rules_the_reserve_of_its_streams(void) {
    struct allocator *const allocator = testing_create(
        "expandable_segments:True,expandable_segments_reserve_by_class:[big:0.5]", 2 * BASE_GIB);
    BASE_CHECK_EQ(cca_set_reserve_class_default(allocator, "small", 0.125), BASE_OK);
    BASE_CHECK_EQ(cca_set_reserve_class_default(allocator, "big", 0.125), BASE_OK);
    BASE_CHECK_EQ(cca_set_reserve_class_default(allocator, "none", 0.0), BASE_INVALID_VALUE);
    const char *const classes[3] = {"big", "small", "other"};
    // What fits a segment of a half and an eighth of the device, in whole pages.
    const size_t most[3] = {1040 * mib, 260 * mib, 2320 * mib};
    for (int index = 0; index < 3; ++index) {
        const cudaStream_t stream = testing_stream();
        BASE_CHECK_EQ(cca_set_stream_reserve_class(allocator, 0, stream, classes[index]), BASE_OK);
        void *pointer;
        BASE_CHECK_EQ(allocator_malloc(allocator, 0, most[index] + 1, stream, &pointer),
                      BASE_OUT_OF_MEMORY);
        BASE_CHECK_EQ(testing_message_has("exceeds the expandable-segment reserve"), index != 2);
        if (index == 2) continue;
        testing_free(allocator, testing_malloc(allocator, most[index], stream));
        BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    }
    destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// Public reports, with the figures that they give.

// pt#123548, pt#193400: the oversize rule refuses what two freed buffers merged to, so each cycle
// maps 138.5 MiB more, unless x_bound_growth is set: the report wants less than 500.
static void two_buffers_grow_a_segment(const char *more, int64_t least_mib, int64_t most_mib) {
    char config[128];
    snprintf(config, sizeof config, "max_split_size_mb:128,expandable_segments:True%s", more);
    struct allocator *const allocator = testing_create(config, 40 * BASE_GIB);
    for (int cycle = 0; cycle < 100; ++cycle) {
        void *const a = testing_malloc(allocator, 91 * mib, NULL);
        void *const b = testing_malloc(allocator, 45 * mib + mib / 2, NULL);
        (void)testing_malloc(allocator, 2 * mib, NULL);
        testing_free(allocator, a);
        testing_free(allocator, b);
    }
    BASE_CHECK_GE(reserved(allocator) / (int64_t)mib, least_mib);
    BASE_CHECK_LE(reserved(allocator) / (int64_t)mib, most_mib);
    destroy(allocator);
}

// A request beside a capture finds the device full: pages of the stream that captures stay, since
// waiting for it would invalidate the capture; others go.
static void pages_of_a_capturing_stream_stay(void) {
    struct allocator *const allocator = testing_create("expandable_segments:True", 12 * PAGE);
    struct testing_capture capture = {
        .allocator = allocator, .pool = {.capture = 1}, .stream = testing_stream()};
    const cudaStream_t idle = testing_stream(), asking = testing_stream();
    void *pointer = NULL;
    cca_set_warning_observer(allocator, &(struct cca_warning_observer){.warning = count_warning});
    testing_free(allocator, testing_malloc(allocator, 4 * PAGE, capture.stream));
    testing_free(allocator, testing_malloc(allocator, 4 * PAGE, idle));
    testing_capture_begin(&capture, cudaStreamCaptureModeRelaxed);
    testing_launch(capture.stream);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 11 * PAGE, asking, &pointer), BASE_OUT_OF_MEMORY);
    testing_launch(capture.stream);
    pointer = testing_malloc(allocator, 7 * PAGE, asking);
    BASE_CHECK_EQ(testing_capture_end(&capture), cudaSuccess);
    testing_free(allocator, pointer);
    pointer = testing_malloc(allocator, 11 * PAGE, asking);
    testing_free(allocator, pointer);
    testing_capture_destroy(&capture);
    cca_check(allocator);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    BASE_CHECK_EQ(reserved(allocator), 0);
    destroy(allocator);
}

// flashlight#180: 10 GiB, freed; 5 and 6 GiB then fit a device of 12 GiB.
static void freed_memory_is_whole_again(void) {
    struct allocator *const allocator =
        testing_create("expandable_segments:True", 12 * BASE_GIB);
    testing_free(allocator, testing_malloc(allocator, 10 * BASE_GIB, NULL));
    (void)testing_malloc(allocator, 5 * BASE_GIB, NULL);
    (void)testing_malloc(allocator, 6 * BASE_GIB, NULL);
    BASE_CHECK_EQ(reserved(allocator), (int64_t)(11280 * mib));
    destroy(allocator);
}

// pt#123548, pt#159567: what makes room for oversize blocks leaves expandable ones alone.
static void blocks_until_the_device_is_full(const char *config, size_t first, size_t then) {
    struct allocator *const allocator = testing_create(config, 4 * BASE_GIB);
    cca_set_warning_observer(allocator,
                             &(struct cca_warning_observer){.warning = count_warning});
    testing_free(allocator, testing_malloc(allocator, first, NULL));
    void *pointer;
    size_t count = 0;
    while (allocator_malloc(allocator, 0, then, NULL, &pointer) == BASE_OK) ++count;
    BASE_CHECK(testing_message_has("CUDA out of memory"));
    BASE_CHECK_EQ(count, 4 * BASE_GIB / PAGE * PAGE / then);
    destroy(allocator);
}

static uint64_t registration_at(const struct allocator_snapshot *snapshot, const void *address) {
    for (size_t index = 0; index < snapshot->segment_count; ++index)
        if (snapshot->segments[index].address == address)
            return snapshot->segments[index].registration;
    return 0;
}

// Of both kinds: equal blocks are handed out by the age of their segments.
static void every_new_segment_has_a_higher_number(void) {
    struct allocator *const allocator = create();
    void *first[6]; // block of each
    for (int index = 0; index < 6; ++index) {
        const char *const config =
            index % 2 == 0 ? "expandable_segments:True" : "expandable_segments:False";
        BASE_CHECK_EQ(cca_set_config(allocator, config), BASE_OK);
        first[index] = testing_malloc(allocator, PAGE, testing_stream());
    }
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    uint64_t last = 0;
    for (int index = 0; index < 6; ++index) {
        const uint64_t registration = registration_at(&snapshot, first[index]);
        BASE_CHECK_GT(registration, last);
        last = registration;
    }
    allocator_snapshot_deinit(&snapshot);
    destroy(allocator);
}

int main(void) {
    what_fails_while_mapping_is_undone(SIM_CALL_MEM_CREATE, 5);
    what_fails_while_mapping_is_undone(SIM_CALL_MEM_MAP, 5);
    what_fails_while_mapping_is_undone(SIM_CALL_MEM_SET_ACCESS, 1);
    want_of_memory_releases_what_is_cached();
    what_a_step_mapped_before_another_failed_is_cached();
    what_fails_while_unmapping_is_done_later(SIM_CALL_MEM_UNMAP, 4);
    what_fails_while_unmapping_is_done_later(SIM_CALL_MEM_RELEASE, 4);
    what_fails_while_unmapping_is_done_later(SIM_CALL_STREAM_SYNCHRONIZE, 2);
    what_fails_while_unmapping_is_done_later(SIM_CALL_ADDRESS_FREE, 2);
    whole_pages_go_and_the_ends_stay();
    a_peer_may_use_what_is_mapped_and_what_will_be();
    bad_pointers_are_refused();
    no_addresses_left_is_said();
    a_class_rules_the_reserve_of_its_streams();
    two_buffers_grow_a_segment("", 13860, 13860);
    two_buffers_grow_a_segment(",x_bound_growth:True", 340, 499);
    freed_memory_is_whole_again();
    every_new_segment_has_a_higher_number();
    pages_of_a_capturing_stream_stay();
    blocks_until_the_device_is_full("expandable_segments:True,max_split_size_mb:500", 550 * mib,
                                    110 * mib);
    blocks_until_the_device_is_full("expandable_segments:True,max_split_size_mb:2048",
                                    2048 * mib, 110 * mib);
}
