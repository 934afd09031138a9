// What PyTorch 2.15's sums took on an H100 (132 multiprocessors of 2,048 threads), from recorded
// runs: gradients of biases, sums over the rows of a matrix.
#include "tensor/sum_plan.h"

#include "base/check.h"

#define MULTIPROCESSORS 132
#define THREADS 2048

static struct tensor_sum_plan rows_of(int64_t rows, int64_t columns, int alignment) {
    const struct tensor_sum_shape shape = {.results = columns,
                                           .inputs = rows,
                                           .added_stride = columns,
                                           .kept_stride = 1,
                                           .row = columns,
                                           .alignment = alignment,
                                           .accumulator_bytes = 4};
    return tensor_sum_plan(&shape, MULTIPROCESSORS, THREADS);
}

static void recorded_sums_take_what_they_took(void) {
    static const struct {
        int64_t rows, columns;
        size_t staging, counters;
    } recorded[] = {
        {8192, 768, 50331648, 24},   {8192, 3072, 138412032, 96}, {8192, 2304, 139198464, 72},
        {4096, 2048, 67108864, 64},  {4096, 1024, 33554432, 32},  {1536, 2048, 25165824, 64},
        {1536, 1024, 12582912, 32},  {3008, 2048, 49283072, 64},  {15360, 1024, 125829120, 32},
        {15360, 4096, 138412032, 128},
    };
    for (size_t i = 0; i < sizeof recorded / sizeof recorded[0]; i++) {
        base_check_context("%lld by %lld", (long long)recorded[i].rows,
                           (long long)recorded[i].columns);
        const struct tensor_sum_plan plan = rows_of(recorded[i].rows, recorded[i].columns, 4);
        BASE_CHECK_EQ(plan.staging_bytes, recorded[i].staging);
        BASE_CHECK_EQ(plan.counter_bytes, recorded[i].counters);
    }
    base_check_context(NULL);
}

// As the batch of 8 in front of a position embedding's gradient, which took none.
static void short_sums_take_no_memory(void) {
    BASE_CHECK_EQ(rows_of(8, 1024 * 768, 4).parts, 1);
    BASE_CHECK_EQ(rows_of(64, 768, 4).parts, 1);
    const struct tensor_sum_shape few = {.results = 1,
                                         .inputs = 148,
                                         .added_stride = 1,
                                         .is_total = true,
                                         .is_flat = true,
                                         .row = 1,
                                         .alignment = 4,
                                         .accumulator_bytes = 4};
    BASE_CHECK_EQ(tensor_sum_plan(&few, MULTIPROCESSORS, THREADS).parts, 1);
    BASE_CHECK_EQ(rows_of(0, 768, 4).parts, 1);
}

// Every result is in one group, and every number in one part.
static void groups_and_parts_cover_all(void) {
    for (int64_t rows = 1; rows < 40000; rows = rows * 3 / 2 + 1)
        for (int64_t columns = 1; columns < 9000; columns = columns * 2 + 1)
            for (int alignment = 1; alignment <= 4; alignment *= 2) {
                const struct tensor_sum_plan plan = rows_of(rows, columns, alignment);
                BASE_CHECK_GE(plan.parts, 1);
                if (plan.parts == 1) continue;
                BASE_CHECK_LE(plan.parts, rows);
                BASE_CHECK_GE((int64_t)(plan.counter_bytes / 4) * plan.group_results, columns);
                BASE_CHECK_GE(plan.staging_bytes, (size_t)(4 * columns * plan.parts));
            }
}

// All of a long vector: its numbers go to the threads of a warp side by side.
static void a_total_is_spread_as_well(void) {
    const struct tensor_sum_shape shape = {.results = 1,
                                           .inputs = 1 << 24,
                                           .added_stride = 1,
                                           .is_total = true,
                                         .is_flat = true,
                                           .row = 1,
                                           .alignment = 4,
                                           .accumulator_bytes = 4};
    const struct tensor_sum_plan plan = tensor_sum_plan(&shape, MULTIPROCESSORS, THREADS);
    BASE_CHECK_EQ(plan.parts, MULTIPROCESSORS * 4); // as many blocks of 512 threads as there are
    BASE_CHECK_EQ(plan.counter_bytes, 4);
    BASE_CHECK_EQ(plan.staging_bytes, (size_t)(4 * plan.parts));
}

int main(void) {
    recorded_sums_take_what_they_took();
    short_sums_take_no_memory();
    groups_and_parts_cover_all();
    a_total_is_spread_as_well();
    return 0;
}
