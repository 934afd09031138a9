// Buckets by the seven leading bits of a value: exact below 128, then 64 buckets an octave. A value
// costs one count of leading zeros and one increment. No locks: one histogram a thread, merged at
// the end.
#include "base/histogram.h"

#include "base/check.h"

#include <math.h>
#include <string.h>

#define EXACT_VALUES 128
#define OCTAVE_BUCKETS 64

static unsigned bucket_of(uint64_t value) {
    if (value < EXACT_VALUES)
        return (unsigned)value;
    // The leading bit is at 7 or above; the six bits below it choose the bucket of the octave.
    const unsigned leading = 63 - (unsigned)__builtin_clzll(value);
    return EXACT_VALUES + (leading - 7) * OCTAVE_BUCKETS +
           (unsigned)(value >> (leading - 6) & (OCTAVE_BUCKETS - 1));
}

static uint64_t bucket_midpoint(unsigned bucket) {
    if (bucket < EXACT_VALUES)
        return bucket;
    const unsigned octave = (bucket - EXACT_VALUES) / OCTAVE_BUCKETS;
    const uint64_t step = (bucket - EXACT_VALUES) % OCTAVE_BUCKETS;
    const uint64_t width = (uint64_t)2 << octave;
    return (OCTAVE_BUCKETS + step) * width + width / 2;
}

void base_histogram_init(struct base_histogram *histogram) {
    memset(histogram, 0, sizeof *histogram);
    histogram->minimum = UINT64_MAX;
}

void base_histogram_record(struct base_histogram *histogram, uint64_t value) {
    base_histogram_record_many(histogram, value, 1);
}

void base_histogram_record_many(struct base_histogram *histogram, uint64_t value, uint64_t count) {
    if (count == 0)
        return;
    histogram->buckets[bucket_of(value)] += count;
    histogram->count += count;
    histogram->sum += (double)value * (double)count;
    if (value < histogram->minimum)
        histogram->minimum = value;
    if (value > histogram->maximum)
        histogram->maximum = value;
}

void base_histogram_merge(struct base_histogram *into, const struct base_histogram *from) {
    for (unsigned bucket = 0; bucket < BASE_HISTOGRAM_BUCKETS; bucket++)
        into->buckets[bucket] += from->buckets[bucket];
    into->count += from->count;
    into->sum += from->sum;
    if (from->minimum < into->minimum)
        into->minimum = from->minimum;
    if (from->maximum > into->maximum)
        into->maximum = from->maximum;
}

uint64_t base_histogram_quantile(const struct base_histogram *histogram, double quantile) {
    BASE_CHECK(quantile >= 0 && quantile <= 1);
    if (histogram->count == 0)
        return 0;
    const double rank = ceil(quantile * (double)histogram->count);
    if (rank <= 1)
        return histogram->minimum;
    if (rank >= (double)histogram->count)
        return histogram->maximum;
    const uint64_t wanted = (uint64_t)rank;
    uint64_t seen = 0;
    unsigned bucket = 0;
    while ((seen += histogram->buckets[bucket]) < wanted)
        bucket++;
    const uint64_t value = bucket_midpoint(bucket);
    if (value < histogram->minimum)
        return histogram->minimum;
    return value > histogram->maximum ? histogram->maximum : value;
}

double base_histogram_mean(const struct base_histogram *histogram) {
    return histogram->count == 0 ? 0 : histogram->sum / (double)histogram->count;
}
