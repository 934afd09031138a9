// Expandable segments on a driver that has no virtual memory. The linker puts the function below
// in the place of CUDA's (--wrap, in BUILD).
#include "allocator/testing.h"

cudaError_t __wrap_cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                                    unsigned int version, unsigned long long flags,
                                                    enum cudaDriverEntryPointQueryResult *result);

cudaError_t __wrap_cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                                    unsigned int version, unsigned long long flags,
                                                    enum cudaDriverEntryPointQueryResult *result) {
    (void)symbol, (void)version, (void)flags;
    *function = NULL;
    *result = cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

static int warnings;

static void count_warning(void *context, const char *text) {
    (void)context;
    BASE_CHECK(strstr(text, "expandable_segments") != NULL);
    ++warnings;
}

static void a_driver_without_virtual_memory_is_warned_of_once(void) {
    struct allocator *allocator;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = BASE_GIB,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    BASE_CHECK_EQ(
        cca_allocator_create(&(struct cca_options){.config = "expandable_segments:True",
                                                   .warnings = {.warning = count_warning}},
                             &allocator),
        BASE_OK);
    (void)testing_malloc(allocator, 1000, NULL);
    (void)testing_malloc(allocator, 3 * BASE_MIB, NULL);
    (void)testing_malloc(allocator, 3 * BASE_MIB, testing_stream());
    BASE_CHECK_EQ(warnings, 1);
    // Segments of cudaMalloc, as without the setting: 2 + 20 + 20 MiB.
    const struct allocator_stats stats = testing_stats(allocator);
    BASE_CHECK_EQ(stats.segment[ALLOCATOR_STAT_ALL].current, 3);
    BASE_CHECK_EQ(stats.reserved_bytes[ALLOCATOR_STAT_ALL].current, (int64_t)(42 * BASE_MIB));
    cca_check(allocator);
    allocator_destroy(allocator);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

int main(void) { a_driver_without_virtual_memory_is_warned_of_once(); }
