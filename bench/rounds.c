// See rounds.h.
#include "bench/rounds.h"

#include "base/check.h"

#include <math.h>
#include <stdlib.h>

static int double_compare(const void *a, const void *b) {
    const double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

double bench_median(double *values, size_t count) {
    if (count == 0) return NAN;
    qsort(values, count, sizeof *values, double_compare);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double bench_exponent(const double *x, const double *y, size_t count) {
    double mean_x = 0, above = 0, below = 0;
    if (count < 2) return NAN;
    for (size_t i = 0; i < count; i++) mean_x += log(x[i]) / (double)count;
    for (size_t i = 0; i < count; i++) {
        above += (log(x[i]) - mean_x) * log(y[i]);
        below += (log(x[i]) - mean_x) * (log(x[i]) - mean_x);
    }
    return above / below;
}

const double *bench_round_times_ns(const struct bench_result *result, enum bench_clock clock) {
    return clock == BENCH_CLOCK_CPU ? result->cpu_ns : result->real_ns;
}

double bench_fastest_ns(const struct bench_result *result, enum bench_clock clock) {
    const double *times = bench_round_times_ns(result, clock);
    double fastest = times[0];
    for (int i = 1; i < result->round_count; i++) fastest = fmin(fastest, times[i]);
    return fastest;
}

double bench_quotient_within_rounds(const struct bench_result *above,
                                    const struct bench_result *below, enum bench_clock clock,
                                    double factor) {
    double quotients[BENCH_ROUND_COUNT_MAX];
    BASE_CHECK_EQ(above->round_count, below->round_count);
    BASE_CHECK_LE(above->round_count, BENCH_ROUND_COUNT_MAX);
    const double *a = bench_round_times_ns(above, clock), *b = bench_round_times_ns(below, clock);
    for (int i = 0; i < above->round_count; i++) quotients[i] = factor * a[i] / b[i];
    return bench_median(quotients, (size_t)above->round_count);
}
