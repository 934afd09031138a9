// What is refused before the device is asked.
#include "allocator/testing.h"

#include <stdio.h>

#define MIB BASE_MIB

struct told {
    struct cca_rejection last;
    int rejections, warnings, out_of_memory;
    char warning[512];
    uint64_t now_ns;
    struct allocator *allocator;
};

static void on_rejection(void *context, const struct cca_rejection *rejection) {
    struct told *const told = context;
    told->last = *rejection;
    ++told->rejections;
    // No lock is held.
    BASE_CHECK_EQ(allocator_empty_cache(told->allocator), BASE_OK);
}
static void on_warning(void *context, const char *text) {
    struct told *const told = context;
    snprintf(told->warning, sizeof told->warning, "%s", text);
    ++told->warnings;
}
static void on_out_of_memory(void *context, const struct cca_out_of_memory *numbers) {
    (void)numbers;
    ++((struct told *)context)->out_of_memory;
}
static uint64_t now_of(void *context) { return ((struct told *)context)->now_ns; }

static struct allocator *create_telling(const char *config, uint64_t capacity, struct told *told) {
    struct allocator *allocator = NULL;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = capacity,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(cca_allocator_create(
                      &(struct cca_options){.config = config,
                                            .warnings = {.warning = on_warning, .context = told},
                                            .clock = {.now_ns = now_of, .context = told}},
                      &allocator),
                  BASE_OK);
    told->allocator = allocator;
    BASE_CHECK_EQ(
        cca_set_rejection_observer(
            allocator, &(struct cca_rejection_observer){.rejected = on_rejection, .context = told}),
        BASE_OK);
    BASE_CHECK_EQ(cca_set_out_of_memory_observer(
                      allocator, &(struct cca_out_of_memory_observer){.event = on_out_of_memory,
                                                                      .context = told}),
                  BASE_OK);
    return allocator;
}

static void reject(struct allocator *allocator, size_t size) {
    void *pointer = NULL;
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, size, NULL, &pointer), BASE_OUT_OF_MEMORY);
    BASE_CHECK(testing_message_has("preemptively rejected"));
}

static void a_rejection_asks_no_device_and_is_told_to_its_own_observer(void) {
    struct told told = {.now_ns = 1};
    struct allocator *const allocator = create_telling(
        "throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.6", 1000 * MIB, &told);
    BASE_CHECK_EQ(cca_set_memory_fraction(allocator, 0, 1.0), BASE_OK);
    void *const held = testing_malloc(allocator, 400 * MIB, NULL);
    const uint64_t asked = sim_call_count(SIM_CALL_MALLOC), freed = sim_call_count(SIM_CALL_FREE);
    reject(allocator, 200 * MIB + 1); // a segment of 202 MiB
    BASE_CHECK(testing_message_has("Requested size: 200.00 MiB"));
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_MALLOC), asked);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_FREE), freed);
    BASE_CHECK_EQ(told.rejections, 1);
    BASE_CHECK_EQ(told.out_of_memory, 0);
    BASE_CHECK_EQ(told.last.segment_size, 202 * MIB);
    BASE_CHECK_EQ(told.last.reserved, 400 * MIB);
    BASE_CHECK_EQ(told.last.limit, 600 * MIB);
    BASE_CHECK_EQ(told.last.total, 1000 * MIB);
    BASE_CHECK(strcmp(told.warning,
                      "Preemptively rejecting allocation: requested 202.00 MiB but "
                      "total_allocated_memory (400.00 MiB) + requested size would exceed memory "
                      "limit (600.00 MiB = 60% of 1000.00 MiB). Set "
                      "throw_on_cudamalloc_oom:false to disable.") == 0);
    struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.num_oom_rejections, 1);
    BASE_CHECK_EQ(stats.num_ooms, 0);
    BASE_CHECK_EQ(stats.num_alloc_retries, 0);
    (void)testing_malloc(allocator, 200 * MIB, NULL); // exactly the limit
    testing_free(allocator, held);
    BASE_CHECK_EQ(allocator_reset_accumulated_stats(allocator, 0), BASE_OK);
    BASE_CHECK_EQ(testing_stats(allocator).num_oom_rejections, 0);
    allocator_destroy(allocator);
}

static void rejections_are_warned_of_once_a_minute(void) {
    const uint64_t second = 1000000000;
    struct told told = {.now_ns = 5};
    struct allocator *const allocator =
        create_telling("throw_on_cudamalloc_oom:True", BASE_GIB, &told);
    static const struct {
        uint64_t second;
        int warnings;
    } steps[] = {{0, 1}, {1, 1}, {59, 1}, {60, 2}, {61, 2}, {119, 2}, {120, 3}, {100000, 4}};
    for (size_t step = 0; step < sizeof steps / sizeof steps[0]; ++step) {
        told.now_ns = 5 + steps[step].second * second;
        reject(allocator, 2 * BASE_GIB);
        base_check_context("second %d", (int)steps[step].second);
        BASE_CHECK_EQ(told.warnings, steps[step].warnings);
    }
    base_check_context(NULL);
    BASE_CHECK_EQ(told.rejections, 8);
    allocator_destroy(allocator);
}

// The fraction is asked before: what it refuses goes down the whole ladder, and the last rung may
// reject.
static void the_fraction_comes_first_and_the_last_rung_may_reject(void) {
    struct told told = {.now_ns = 1};
    struct allocator *const allocator = create_telling(
        "throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.5", 1000 * MIB, &told);
    BASE_CHECK_EQ(cca_set_memory_fraction(allocator, 0, 0.8), BASE_OK);
    testing_free(allocator, testing_malloc(allocator, 400 * MIB, NULL));
    // 400 + 600 exceed 800, so all is released; 600 exceed 500, so that is a rejection.
    reject(allocator, 600 * MIB);
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.num_alloc_retries, 1);
    BASE_CHECK_EQ(stats.num_device_free, 1);
    BASE_CHECK_EQ(stats.num_oom_rejections, 1);
    BASE_CHECK_EQ(stats.num_ooms, 0);
    allocator_destroy(allocator);
}

// Whoever was told is told no more, and what happens is the same.
static void observers_can_be_taken_away(void) {
    struct told told = {.now_ns = 1};
    struct allocator *const allocator =
        create_telling("throw_on_cudamalloc_oom:True", BASE_GIB, &told);
    BASE_CHECK_EQ(cca_set_rejection_observer(allocator, NULL), BASE_OK);
    BASE_CHECK_EQ(cca_set_out_of_memory_observer(allocator, NULL), BASE_OK);
    reject(allocator, 2 * BASE_GIB);
    BASE_CHECK_EQ(cca_set_config(allocator, "throw_on_cudamalloc_oom:False"), BASE_OK);
    void *pointer = NULL;
    BASE_CHECK_EQ(allocator_malloc(allocator, 0, 2 * BASE_GIB, NULL, &pointer), BASE_OUT_OF_MEMORY);
    BASE_CHECK_EQ(told.rejections + told.out_of_memory, 0);
    BASE_CHECK_EQ(testing_stats(allocator).num_oom_rejections, 1);
    BASE_CHECK_EQ(testing_stats(allocator).num_ooms, 1);
    allocator_destroy(allocator);
}

int main(void) {
    a_rejection_asks_no_device_and_is_told_to_its_own_observer();
    rejections_are_warned_of_once_a_minute();
    the_fraction_comes_first_and_the_last_rung_may_reject();
    observers_can_be_taken_away();
}
