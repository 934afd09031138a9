// Medians, exponents and quotients within rounds, beside values worked out by hand.
#include "bench/rounds.h"

#include "base/check.h"

#include <math.h>

static bool near(double a, double b) {
    return fabs(a - b) < 1e-9;
}

static void a_median_is_in_the_middle(void) {
    double odd[] = {9, 1, 5}, even[] = {4, 1, 2, 100}, one[] = {7};
    BASE_CHECK(near(bench_median(odd, 3), 5));
    BASE_CHECK(near(bench_median(even, 4), 3));
    BASE_CHECK(near(bench_median(one, 1), 7));
    BASE_CHECK(isnan(bench_median(one, 0)));
}

static void an_exponent_is_that_of_the_power_law(void) {
    const double x[] = {10, 100, 1000, 10000};
    const double flat[] = {5, 5, 5, 5}, linear[] = {3, 30, 300, 3000};
    const double root[] = {sqrt(10), 10, sqrt(1000), 100};
    // One step of a factor of ten at the end, over three decades of four points: least squares give
    // (1.5 * 1) / (2 * (1.5^2 + 0.5^2)) = 0.3.
    const double step[] = {1, 1, 1, 10};
    BASE_CHECK(near(bench_exponent(x, flat, 4), 0));
    BASE_CHECK(near(bench_exponent(x, linear, 4), 1));
    BASE_CHECK(near(bench_exponent(x, root, 4), 0.5));
    BASE_CHECK(near(bench_exponent(x, step, 4), 0.3));
    BASE_CHECK(isnan(bench_exponent(x, flat, 1)));
    const double hole[] = {1, NAN, 1, 1};
    BASE_CHECK(isnan(bench_exponent(x, hole, 4)));
}

static void quotients_are_taken_within_rounds(void) {
    // The machine slows by half in the last two rounds; the quotient of medians would be 4 / 1.
    const double above_cpu[] = {2, 4, 4}, below_cpu[] = {1, 2, 1};
    const double above_real[] = {10, 10, 30}, below_real[] = {10, 20, 10};
    const struct bench_result above = {
        .round_count = 3, .cpu_ns = above_cpu, .real_ns = above_real};
    const struct bench_result below = {
        .round_count = 3, .cpu_ns = below_cpu, .real_ns = below_real};
    BASE_CHECK(near(bench_quotient_within_rounds(&above, &below, BENCH_CLOCK_CPU, 1), 2));
    BASE_CHECK(near(bench_quotient_within_rounds(&above, &below, BENCH_CLOCK_REAL, 3), 3));
    BASE_CHECK(near(bench_fastest_ns(&above, BENCH_CLOCK_CPU), 2));
    BASE_CHECK(near(bench_fastest_ns(&below, BENCH_CLOCK_REAL), 10));
}

int main(void) {
    a_median_is_in_the_middle();
    an_exponent_is_that_of_the_power_law();
    quotients_are_taken_within_rounds();
    return 0;
}
