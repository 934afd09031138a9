// The direct allocator: a cudaMalloc a request, the same statistics and events, bad pointers
// refused.
#include "allocator/direct.h"

#include "allocator/testing.h"

static struct allocator *create(void) {
    struct allocator *allocator = NULL;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = 64 * BASE_MIB,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(direct_allocator_create(&allocator), BASE_OK);
    return allocator;
}

static void every_request_is_a_device_call(void) {
    struct allocator *const allocator = create();
    void *const a = testing_malloc(allocator, 1000, NULL), *const b = testing_malloc(allocator,
                                                                                     5000, NULL);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_MALLOC), 2);
    testing_free(allocator, a);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_FREE), 1);
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.allocation[ALLOCATOR_STAT_ALL].current, 1);
    BASE_CHECK_EQ(stats.allocated_bytes[ALLOCATOR_STAT_ALL].peak, 6000);
    BASE_CHECK_EQ(stats.reserved_bytes[ALLOCATOR_STAT_ALL].current, 5000);
    BASE_CHECK_EQ(stats.num_device_alloc, 2);
    BASE_CHECK_EQ(stats.num_device_free, 1);
    void *base;
    size_t size;
    BASE_CHECK_EQ(allocator_base_allocation(allocator, b, &base, &size), BASE_OK);
    BASE_CHECK_EQ(size, 5000);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

static void bad_pointers_are_refused(void) {
    struct allocator *const allocator = create();
    char *const a = testing_malloc(allocator, 1000, NULL);
    BASE_CHECK_EQ(allocator_free(allocator, NULL), BASE_OK);
    BASE_CHECK_EQ(allocator_free(allocator, a + 1), BASE_INVALID_POINTER);
    testing_free(allocator, a);
    BASE_CHECK_EQ(allocator_free(allocator, a), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(allocator_record_stream(allocator, a, NULL), BASE_INVALID_POINTER);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_FREE), 1);
    allocator_destroy(allocator);
}

static void running_out_is_a_status_with_the_numbers(void) {
    struct allocator *const allocator = create();
    void *pointer = NULL;
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 0, NULL, &pointer), BASE_OK);
    testing_malloc(allocator, 40 * BASE_MIB, NULL);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 40 * BASE_MIB, NULL, &pointer),
                  BASE_OUT_OF_MEMORY);
    BASE_CHECK(testing_message_has(
        "41943040 bytes on device 0, of whose 67108864 bytes 25165824 are free"));
    BASE_CHECK_EQ(testing_stats(allocator).num_ooms, 1);
    BASE_CHECK_EQ(allocator_malloc(allocator, 7, 1, NULL, &pointer), BASE_INVALID_VALUE);
    sim_fault_next(SIM_CALL_MALLOC, 1, cudaErrorUnknown);
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 1, NULL, &pointer), BASE_CUDA);
    BASE_CHECK(testing_message_has("cudaErrorUnknown"));
    size_t largest;
    BASE_CHECK_EQ(allocator_largest_block(allocator, 0, &largest), BASE_OK);
    BASE_CHECK_EQ(largest, 24 * BASE_MIB);
    allocator_destroy(allocator);
}

// The fault: what cudaFree refused once was lost for good.
static void what_the_driver_refuses_goes_at_the_end(void) {
    struct allocator *const allocator = create();
    void *const a = testing_malloc(allocator, 4 * BASE_MIB, NULL);
    (void)testing_malloc(allocator, 4 * BASE_MIB, NULL);
    sim_fault_next(SIM_CALL_FREE, 1, cudaErrorUnknown);
    BASE_CHECK_EQ(allocator_free(allocator, a), BASE_CUDA);
    BASE_CHECK(testing_message_has("cudaErrorUnknown"));
    BASE_CHECK_EQ(allocator_free(allocator, a), BASE_INVALID_POINTER); // freed as far as one can
    BASE_CHECK_EQ(sim_used_bytes(0), 8 * BASE_MIB);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

static void record(void *context, const struct allocator_event *event) {
    strcat(context, allocator_action_name(event->action));
    strcat(context, " ");
}

static void events_and_snapshot_show_a_segment_a_request(void) {
    struct allocator *const allocator = create();
    char actions[256] = "";
    BASE_CHECK_EQ(allocator_set_observer(allocator, &(struct allocator_observer){record, actions}),
                  BASE_OK);
    void *const a = testing_malloc(allocator, 1000, NULL), *const b = testing_malloc(allocator,
                                                                                     2000, NULL);
    testing_free(allocator, a);
    BASE_CHECK(strcmp(actions, "segment_alloc alloc segment_alloc alloc free_requested "
                               "free_completed segment_free ") == 0);
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    BASE_CHECK_EQ(snapshot.segment_count, 1);
    BASE_CHECK(snapshot.blocks[0].address == b);
    BASE_CHECK_EQ(snapshot.blocks[0].state, ALLOCATOR_BLOCK_ALLOCATED);
    allocator_snapshot_deinit(&snapshot);
    BASE_CHECK_EQ(allocator_reset_peak_stats(allocator, 0), BASE_OK);
    BASE_CHECK_EQ(allocator_reset_accumulated_stats(allocator, 0), BASE_OK);
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.active_bytes[ALLOCATOR_STAT_ALL].peak, 2000);
    BASE_CHECK_EQ(stats.active_bytes[ALLOCATOR_STAT_ALL].allocated, 0);
    allocator_destroy(allocator);
}

int main(void) {
    every_request_is_a_device_call();
    bad_pointers_are_refused();
    running_out_is_a_status_with_the_numbers();
    what_the_driver_refuses_goes_at_the_end();
    events_and_snapshot_show_a_segment_a_request();
    return 0;
}
