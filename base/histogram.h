// A histogram of non-negative 64-bit values with logarithmic buckets: relative error of any
// quantile at most 1 %, constant memory, mergeable. For latencies in ns and sizes in bytes.
//
// Values below 128 are kept exactly; above, each octave has 64 buckets (width at most 1/64 of the
// value; the reported midpoint is off by at most 1/128).
#ifndef TIDEMARK_BASE_HISTOGRAM_H
#define TIDEMARK_BASE_HISTOGRAM_H

#include <stdint.h>

#define BASE_HISTOGRAM_BUCKETS (128 + (64 - 7) * 64)

struct base_histogram {
    uint64_t count;            // values recorded
    uint64_t minimum, maximum; // exact; minimum is UINT64_MAX while count is 0
    double sum;                // of all values, for the mean
    uint64_t buckets[BASE_HISTOGRAM_BUCKETS];
};

void base_histogram_init(struct base_histogram *histogram);
void base_histogram_record(struct base_histogram *histogram, uint64_t value);
void base_histogram_record_many(struct base_histogram *histogram, uint64_t value, uint64_t count);
// Adds all of FROM to INTO.
void base_histogram_merge(struct base_histogram *into, const struct base_histogram *from);
// The smallest value that at least QUANTILE (0..1) of the recorded ones do not exceed, within 1 %;
// clamped to [minimum, maximum], 0 when empty.
uint64_t base_histogram_quantile(const struct base_histogram *histogram, double quantile);
double base_histogram_mean(const struct base_histogram *histogram);

#endif
