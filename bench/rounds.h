// What is made of a benchmark's rounds: medians, quotients within rounds, the exponent of a growth.
#ifndef TIDEMARK_BENCH_ROUNDS_H
#define TIDEMARK_BENCH_ROUNDS_H

#include "bench/shim.h"

#define BENCH_ROUND_COUNT_MAX 256

// Sorts VALUES. An even count: the mean of the two in the middle. NAN of none.
double bench_median(double *values, size_t count);

// The slope of a straight line, by least squares, through the logarithms of Y over those of X: the
// exponent e of y ~ x^e. NAN of fewer than two points, or where a value is NAN.
double bench_exponent(const double *x, const double *y, size_t count);

// Which time of a round. One thread is judged by its CPU time, which is the elapsed time as long as
// nobody else wants the CPU, and stays so when somebody does; several threads, and benchmarks that
// say themselves how long they took, by the other one.
enum bench_clock { BENCH_CLOCK_CPU, BENCH_CLOCK_REAL };
const double *bench_round_times_ns(const struct bench_result *result, enum bench_clock clock);
double bench_fastest_ns(const struct bench_result *result, enum bench_clock clock);

// The median over rounds of FACTOR * above / below, each taken within a round, where both met the
// same state of the machine. Both have as many rounds, at most BENCH_ROUND_COUNT_MAX.
double bench_quotient_within_rounds(const struct bench_result *above,
                                    const struct bench_result *below, enum bench_clock clock,
                                    double factor);

#endif
