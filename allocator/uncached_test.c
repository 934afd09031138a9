// The mode without a cache, and what the environment says of it.
#include "allocator/create.h"
#include "allocator/testing.h"

#include <stdio.h>
#include <stdlib.h>

#define SWITCH   "PYTORCH_NO_CUDA_MEMORY_CACHING"
#define SETTINGS "PYTORCH_CUDA_ALLOC_CONF"

static struct allocator *create_uncached(void) {
    struct allocator *allocator = NULL;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = BASE_GIB,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(cca_allocator_create(&(struct cca_options){.no_caching = true}, &allocator),
                  BASE_OK);
    return allocator;
}

static void every_request_is_a_device_call_that_no_statistic_knows_of(void) {
    struct allocator *const allocator = create_uncached();
    const uint64_t taken = sim_call_count(SIM_CALL_MALLOC), freed = sim_call_count(SIM_CALL_FREE);
    void *const block = testing_malloc(allocator, 1000, NULL);
    void *const other = testing_malloc(allocator, 3 * BASE_MIB, NULL);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_MALLOC) - taken, 2);
    BASE_CHECK_EQ(allocator_record_stream(allocator, block, testing_stream()), BASE_OK);
    BASE_CHECK_EQ(allocator_record_stream(allocator, (char *)block + 8, testing_stream()), BASE_OK);
    testing_free(allocator, block);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_FREE) - freed, 1);
    const struct allocator_stats stats = testing_stats(allocator), none = {.max_split_size = -1};
    BASE_CHECK(memcmp(&stats, &none, sizeof stats) == 0);
    struct allocator_snapshot snapshot;
    BASE_CHECK_EQ(allocator_snapshot(allocator, &snapshot), BASE_OK);
    BASE_CHECK_EQ(snapshot.segment_count, 0);
    allocator_snapshot_deinit(&snapshot);
    BASE_CHECK(testing_malloc(allocator, 0, NULL) == NULL);
    BASE_CHECK_EQ(allocator_free(allocator, block), BASE_INVALID_POINTER);
    void *base;
    size_t size;
    BASE_CHECK_EQ(allocator_base_allocation(allocator, other, &base, &size), BASE_OK);
    BASE_CHECK(base == other);
    cca_check(allocator);
    // What is still handed out goes back with the allocator.
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

static void running_out_of_memory_is_a_plain_cuda_error(void) {
    struct allocator *const allocator = create_uncached();
    void *pointer = NULL;
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 2 * BASE_GIB, NULL, &pointer), BASE_CUDA);
    BASE_CHECK(testing_message_has("CUDA error: out of memory (cudaErrorMemoryAllocation)"));
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
    BASE_CHECK_EQ(testing_stats(allocator).num_ooms, 0);
    BASE_CHECK_EQ(cca_malloc_at(allocator, 0, 512, NULL, (void *)(uintptr_t)512, &pointer),
                  BASE_INVALID_VALUE);
    allocator_destroy(allocator);
}

//------------------------------------------------------------------------------------------------
// The environment.

static char warned[256];
static void on_warning(void *context, const char *text) {
    (void)context;
    snprintf(warned, sizeof warned, "%s", text);
}

static void check_switch(const char *value, bool expected, bool is_warned) {
    warned[0] = '\0';
    BASE_CHECK_EQ(value != NULL ? setenv(SWITCH, value, 1) : unsetenv(SWITCH), 0);
    struct cca_options options = {.fraction = 0.5, .warnings = {.warning = on_warning}};
    cca_options_from_environment(&options);
    base_check_context("%s=%s", SWITCH, value != NULL ? value : "(unset)");
    BASE_CHECK_EQ(options.no_caching, expected);
    BASE_CHECK_EQ(warned[0] != '\0', is_warned);
    BASE_CHECK(options.fraction > 0.4); // nothing else is touched
    base_check_context(NULL);
}

// PyTorch takes exactly 0 and 1 for truth values of the environment.
static void the_switch_is_on_with_1_and_off_with_0(void) {
    check_switch(NULL, false, false);
    check_switch("0", false, false);
    check_switch("1", true, false);
    check_switch("", false, true);
    check_switch("true", false, true);
    BASE_CHECK(strstr(warned, SWITCH ": true") != NULL);
    unsetenv(SWITCH);
}

static void the_environment_makes_an_allocator(void) {
    struct allocator *allocator = NULL;
    BASE_CHECK_EQ(setenv(SETTINGS, "max_split_size_mb:64", 1), 0);
    BASE_CHECK_EQ(allocator_create("x_allocator:environment", 1.0, &allocator), BASE_OK);
    BASE_CHECK(strcmp(allocator->operations->name, "caching") == 0);
    BASE_CHECK_EQ(testing_stats(allocator).max_split_size, 64 * (int64_t)BASE_MIB);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(setenv(SWITCH, "1", 1), 0);
    BASE_CHECK_EQ(allocator_create("x_allocator:environment", 1.0, &allocator), BASE_OK);
    BASE_CHECK(strcmp(allocator->operations->name, "uncached") == 0);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(unsetenv(SWITCH), 0);
    BASE_CHECK_EQ(setenv(SETTINGS, "bogus:1", 1), 0);
    BASE_CHECK_EQ(allocator_create("x_allocator:environment", 1.0, &allocator),
                  BASE_INVALID_CONFIG);
    BASE_CHECK_EQ(unsetenv(SETTINGS), 0);
    BASE_CHECK_EQ(allocator_create("x_allocator:environment,max_split_size_mb:64", 1.0, &allocator),
                  BASE_INVALID_CONFIG);
}

int main(void) {
    every_request_is_a_device_call_that_no_statistic_knows_of();
    running_out_of_memory_is_a_plain_cuda_error();
    the_switch_is_on_with_1_and_off_with_0();
    the_environment_makes_an_allocator();
    return 0;
}
