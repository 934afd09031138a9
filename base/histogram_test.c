// Quantiles against sorted values, which need no histogram; merges against recording everything in
// one.
#include "base/histogram.h"

#include "base/check.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VALUES 20000

static int compare_values(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static struct base_histogram histogram; // large: kept off the stack

static void check_against_sorted(uint64_t *values, size_t count) {
    static const double quantiles[] = {0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1};
    base_histogram_init(&histogram);
    double sum = 0;
    for (size_t index = 0; index < count; index++) {
        base_histogram_record(&histogram, values[index]);
        sum += (double)values[index];
    }
    qsort(values, count, sizeof values[0], compare_values);
    BASE_CHECK_EQ(histogram.count, count);
    BASE_CHECK_EQ(histogram.minimum, values[0]);
    BASE_CHECK_EQ(histogram.maximum, values[count - 1]);
    BASE_CHECK(fabs(base_histogram_mean(&histogram) - sum / (double)count) <=
               sum / (double)count * 1e-9);
    for (size_t row = 0; row < sizeof quantiles / sizeof quantiles[0]; row++) {
        const double rank = ceil(quantiles[row] * (double)count);
        const uint64_t exact = values[rank < 1 ? 0 : (size_t)rank - 1];
        const uint64_t reported = base_histogram_quantile(&histogram, quantiles[row]);
        base_check_context("quantile %g: exact %llu, reported %llu", quantiles[row],
                           (unsigned long long)exact, (unsigned long long)reported);
        BASE_CHECK(fabs((double)reported - (double)exact) <= 0.01 * (double)exact);
    }
    base_check_context(NULL);
}

static void quantiles_of_any_size_are_within_one_percent(void) {
    static const uint64_t limits[] = {1, 100, 127, 128, 129, 1000, 1000000, UINT32_MAX, UINT64_MAX};
    static uint64_t values[VALUES];
    for (size_t row = 0; row < sizeof limits / sizeof limits[0]; row++) {
        struct base_random random = base_random_init(row, "values");
        for (size_t index = 0; index < VALUES; index++)
            values[index] = row % 2 == 0 ? base_random_log_between(&random, 1, limits[row])
                                         : base_random_between(&random, 0, limits[row]);
        check_against_sorted(values, VALUES);
    }
}

// Every power of two and its neighbours: where an octave ends, buckets must neither overlap nor
// leave a gap.
static void a_single_value_of_any_size_is_reported_within_one_percent(void) {
    for (int shift = 0; shift < 64; shift++) {
        for (int offset = -1; offset <= 1; offset++) {
            uint64_t values[] = {0, ((uint64_t)1 << shift) + (uint64_t)(int64_t)offset, UINT64_MAX};
            // Between two others, so that the ends do not clamp it.
            check_against_sorted(values, 3);
        }
    }
}

static void values_below_128_are_exact(void) {
    base_histogram_init(&histogram);
    for (uint64_t value = 0; value < 128; value++)
        base_histogram_record_many(&histogram, value, value + 1);
    // 1 + 2 + ... + (v + 1) recorded values are at most v.
    for (uint64_t value = 0; value < 128; value++) {
        const double share = (double)((value + 1) * (value + 2) / 2) / (double)(128 * 129 / 2);
        BASE_CHECK_EQ(base_histogram_quantile(&histogram, share * (1 - 1e-12)), value);
    }
}

static void merge_equals_recording_everything_in_one(void) {
    static struct base_histogram parts[3], whole, merged;
    base_histogram_init(&whole);
    base_histogram_init(&merged);
    struct base_random random = base_random_init(11, "merge");
    for (int part = 0; part < 3; part++) {
        base_histogram_init(&parts[part]);
        // The last part stays empty: its extremes must not leak into the sum.
        for (int draw = 0; part < 2 && draw < 1000; draw++) {
            const uint64_t value = base_random_below(&random, 1u << 20);
            base_histogram_record(&parts[part], value);
            base_histogram_record(&whole, value);
        }
        base_histogram_merge(&merged, &parts[part]);
    }
    // All values are whole and their sums below 2^53: equal to the last bit in any order.
    BASE_CHECK_EQ(memcmp(&merged, &whole, sizeof whole), 0);
}

static void empty_histogram_says_zero(void) {
    base_histogram_init(&histogram);
    BASE_CHECK_EQ(base_histogram_quantile(&histogram, 0.5), 0);
    BASE_CHECK(base_histogram_mean(&histogram) == 0);
    BASE_CHECK_EQ(histogram.minimum, UINT64_MAX);
    base_histogram_record_many(&histogram, 7, 0);
    BASE_CHECK_EQ(histogram.count, 0);
    BASE_CHECK_EQ(histogram.minimum, UINT64_MAX);
}

int main(void) {
    quantiles_of_any_size_are_within_one_percent();
    a_single_value_of_any_size_is_reported_within_one_percent();
    values_below_128_are_exact();
    merge_equals_recording_everything_in_one();
    empty_histogram_says_zero();
    return 0;
}
