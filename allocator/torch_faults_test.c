// x_torch_faults after memory in use went back to the device: what the recordings do not show any
// more, since PyTorch reads freed memory from there on. Frees are taken, once each; nothing of the
// segment is handed out again; the statistics end where they should.
#include "allocator/testing.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

// As rule-release-split-head: 300 MiB split into 150 free, 100 in use at *KEPT, 50 free. The
// request of 900 MiB then takes the whole segment away.
static struct allocator *lose_a_segment(const char *config, char **kept) {
    struct allocator *const allocator = testing_create(config, GIB);
    testing_free(allocator, testing_malloc(allocator, 300 * MIB, NULL));
    void *const first = testing_malloc(allocator, 150 * MIB, NULL);
    *kept = testing_malloc(allocator, 100 * MIB, NULL);
    testing_free(allocator, first);
    BASE_CHECK_EQ(cca_set_config(allocator, "max_split_size_mb:64"), BASE_OK);
    BASE_CHECK(testing_malloc(allocator, 900 * MIB, NULL) != NULL);
    cca_check(allocator);
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.reserved_bytes[ALLOCATOR_STAT_ALL].current, 1050 * MIB);
    BASE_CHECK_EQ(stats.allocated_bytes[ALLOCATOR_STAT_ALL].current, 1000 * MIB);
    BASE_CHECK_EQ(sim_used_bytes(0), 900 * MIB);
    return allocator;
}

// Only the block of 900 MiB is left.
static void check_settled(struct allocator *allocator) {
    const struct allocator_stats stats = testing_stats(allocator);
    cca_check(allocator);
    BASE_CHECK_EQ(stats.reserved_bytes[ALLOCATOR_STAT_ALL].current, 900 * MIB);
    BASE_CHECK_EQ(stats.allocated_bytes[ALLOCATOR_STAT_ALL].current, 900 * MIB);
    BASE_CHECK_EQ(stats.active_bytes[ALLOCATOR_STAT_LARGE_POOL].current, 900 * MIB);
    BASE_CHECK_EQ(stats.inactive_split_bytes[ALLOCATOR_STAT_ALL].current, 0);
    BASE_CHECK_EQ(stats.inactive_split[ALLOCATOR_STAT_ALL].current, 0);
    BASE_CHECK_EQ(stats.segment[ALLOCATOR_STAT_ALL].current, 1);
}

static void a_block_of_a_segment_that_went_can_be_freed_once(void) {
    char *kept;
    struct allocator *const allocator = lose_a_segment("x_torch_faults:True", &kept);
    testing_free(allocator, kept);
    BASE_CHECK_EQ(allocator_free(allocator, kept), BASE_INVALID_POINTER);
    check_settled(allocator);
    BASE_CHECK_EQ(allocator_free(allocator, kept), BASE_INVALID_POINTER);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

// 50 MiB behind the block in use would fit; they are not there.
static void nothing_of_a_segment_that_went_is_handed_out(void) {
    char *kept;
    struct allocator *const allocator = lose_a_segment("x_torch_faults:True", &kept);
    char *const other = testing_malloc(allocator, 40 * MIB, NULL);
    BASE_CHECK(other < kept - 150 * MIB || other >= kept + 150 * MIB);
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    for (size_t index = 0; index < snapshot.segment_count; ++index)
        BASE_CHECK((char *)snapshot.segments[index].address != kept - 150 * MIB);
    allocator_snapshot_deinit(&snapshot);
    testing_free(allocator, kept);
    void *const more = testing_malloc(allocator, 20 * MIB, NULL);
    BASE_CHECK((char *)more < kept - 150 * MIB || (char *)more >= kept + 150 * MIB);
    cca_check(allocator);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    cca_check(allocator);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

static void a_free_that_waits_for_events_ends_in_order(void) {
    char *kept;
    struct allocator *allocator = lose_a_segment("x_torch_faults:True", &kept);
    const cudaStream_t user = testing_stream();
    sim_stream_hold(user, true);
    BASE_CHECK_EQ(allocator_record_stream(allocator, kept, user), BASE_OK);
    testing_free(allocator, kept);
    BASE_CHECK_EQ(allocator_free(allocator, kept), BASE_INVALID_POINTER);
    struct cca_pending_frees numbers;
    BASE_CHECK_EQ(cca_pending_frees(allocator, 0, &numbers), BASE_OK);
    BASE_CHECK_EQ(numbers.bytes, 100 * MIB);
    cca_check(allocator);
    sim_stream_hold(user, false);
    void *pointer;
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 512, NULL, &pointer), BASE_OK);
    testing_free(allocator, pointer);
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    check_settled(allocator);
    allocator_destroy(allocator);
}

// On a device that gives addresses out again.
static struct allocator *create_where_addresses_come_again(void) {
    struct allocator *allocator = NULL;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = GIB,
                                                      .addresses = SIM_ADDRESSES_REUSED,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(
        cca_allocator_create(&(struct cca_options){.config = "x_torch_faults:True"}, &allocator),
        BASE_OK);
    return allocator;
}

// The driver may give the addresses to the next segment: what is in use there counts as freed.
static void addresses_that_come_again_name_what_is_new(void) {
    struct allocator *const allocator = create_where_addresses_come_again();
    char *const whole = testing_malloc(allocator, 300 * MIB, NULL);
    testing_free(allocator, whole);
    char *const first = testing_malloc(allocator, 150 * MIB, NULL);
    char *const kept = testing_malloc(allocator, 100 * MIB, NULL);
    testing_free(allocator, first);
    BASE_CHECK_EQ(cca_set_config(allocator, "max_split_size_mb:64"), BASE_OK);
    char *const large = testing_malloc(allocator, 900 * MIB, NULL);
    BASE_CHECK(large == whole);
    BASE_CHECK(kept > large && kept < large + 900 * MIB);
    check_settled(allocator);
    BASE_CHECK_EQ(allocator_free(allocator, kept), BASE_INVALID_POINTER);
    testing_free(allocator, large);
    cca_check(allocator);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

// The program got the addresses by itself: they are not the allocator's to give back any more.
static void the_end_of_the_allocator_leaves_what_went_alone(void) {
    struct allocator *const allocator = create_where_addresses_come_again();
    void *const whole = testing_malloc(allocator, 300 * MIB, NULL);
    void *behind, *own;
    BASE_CHECK_EQ(cudaMalloc(&behind, 2 * MIB), cudaSuccess); // keeps larger segments away
    testing_free(allocator, whole);
    void *const first = testing_malloc(allocator, 150 * MIB, NULL);
    (void)testing_malloc(allocator, 100 * MIB, NULL);
    testing_free(allocator, first);
    BASE_CHECK_EQ(cca_set_config(allocator, "max_split_size_mb:64"), BASE_OK);
    testing_free(allocator, testing_malloc(allocator, 900 * MIB, NULL));
    BASE_CHECK_EQ(allocator_empty_cache(allocator), BASE_OK);
    BASE_CHECK_EQ(cudaMalloc(&own, 300 * MIB), cudaSuccess);
    BASE_CHECK(own == whole);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 302 * MIB);
}

// As rule-release-split-block: the driver refuses an address inside a segment. The block stays, so
// a smaller request still gets it.
static void a_refused_release_is_an_error_and_loses_nothing(void) {
    struct allocator *const allocator = testing_create("x_torch_faults:True", GIB);
    testing_free(allocator, testing_malloc(allocator, 300 * MIB, NULL));
    char *const first = testing_malloc(allocator, 10 * MIB, NULL);
    BASE_CHECK_EQ(cca_set_config(allocator, "max_split_size_mb:64"), BASE_OK);
    void *pointer;
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 900 * MIB, NULL, &pointer), BASE_CUDA);
    BASE_CHECK(testing_message_has("cudaFree of 304087040 bytes"));
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
    cca_check(allocator);
    BASE_CHECK_EQ(testing_stats(allocator).num_device_free, 1); // as PyTorch counts
    BASE_CHECK(testing_malloc(allocator, 285 * MIB, NULL) == first + 10 * MIB);
    cca_check(allocator);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

int main(void) {
    a_block_of_a_segment_that_went_can_be_freed_once();
    nothing_of_a_segment_that_went_is_handed_out();
    a_free_that_waits_for_events_ends_in_order();
    addresses_that_come_again_name_what_is_new();
    the_end_of_the_allocator_leaves_what_went_alone();
    a_refused_release_is_an_error_and_loses_nothing();
}
