// Property: over random programs the caching allocator gives the naive model's answer to every
// operation: placement, statistics, trace entries, device calls, error texts, layout.
//
//     bazel run //allocator/golden:random_test -- --seed 7 --count 100 --operations 100000
#include "allocator/golden/random_check.h"
#include "base/check.h"
#include "base/options.h"

#include <inttypes.h>
#include <stdlib.h>

// Sanitized programs run several times as long.
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static uint64_t program_count = 50, operation_count = 5000;
#else
static uint64_t program_count = 50, operation_count = 100000;
#endif

static const struct base_option options[] = {
    {"count", "N", BASE_OPTION_COUNT, &program_count, "programs, with seeds from --seed on"},
    {"operations", "N", BASE_OPTION_COUNT, &operation_count, "operations of each program"},
    {0}};

static const struct base_program program = {
    .name = "random_test",
    .summary = "Compares the caching allocator with a naive model over random programs.",
    .common = BASE_COMMON_SEED,
    .options = options};

// Bazel runs the test as several processes, each with every so manieth program.
struct shard {
    uint64_t index, count;
};

static struct shard shard_of_bazel(void) {
    const char *const index = getenv("TEST_SHARD_INDEX"),
                      *const count = getenv("TEST_TOTAL_SHARDS"),
                      *const told = getenv("TEST_SHARD_STATUS_FILE");
    if (told != NULL) {
        FILE *file = fopen(told, "w");
        BASE_CHECK(file != NULL);
        BASE_CHECK_EQ(fclose(file), 0);
    }
    if (index == NULL || count == NULL) return (struct shard){0, 1};
    return (struct shard){strtoull(index, NULL, 10), strtoull(count, NULL, 10)};
}

static void caching_allocator_answers_as_the_model(uint64_t seed) {
    const struct shard shard = shard_of_bazel();
    BASE_CHECK_LT(shard.index, shard.count);
    for (uint64_t number = shard.index; number < program_count; number += shard.count)
        BASE_CHECK(golden_random_check(&golden_subject_model, &golden_subject_caching,
                                       seed + number, 1, operation_count, stdout));
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    printf("seeds %" PRIu64 " to %" PRIu64 ", %" PRIu64 " operations each\n", common.seed,
           common.seed + program_count - 1, operation_count);
    fflush(stdout);
    caching_allocator_answers_as_the_model(common.seed);
}
