// Property: over random programs the caching allocator gives the naive model's answer to every
// operation: placement, statistics, trace entries, device calls, error texts, layout.
//
//     bazel run //allocator/golden:random_test -- --seed 7 --count 100 --operations 100000
#include "allocator/golden/random_check.h"
#include "base/check.h"
#include "base/options.h"

#include <inttypes.h>

static uint64_t program_count = 20, operation_count = 800;

static const struct base_option options[] = {
    {"count", "N", BASE_OPTION_COUNT, &program_count, "programs, with seeds from --seed on"},
    {"operations", "N", BASE_OPTION_COUNT, &operation_count, "operations of each program"},
    {0}};

static const struct base_program program = {
    .name = "random_test",
    .summary = "Compares the caching allocator with a naive model over random programs.",
    .common = BASE_COMMON_SEED,
    .options = options};

static void caching_allocator_answers_as_the_model(uint64_t seed) {
    BASE_CHECK(golden_random_check(&golden_subject_model, &golden_subject_caching, seed,
                                   program_count, operation_count, stdout));
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    printf("seeds %" PRIu64 " to %" PRIu64 ", %" PRIu64 " operations each\n", common.seed,
           common.seed + program_count - 1, operation_count);
    fflush(stdout);
    caching_allocator_answers_as_the_model(common.seed);
}
