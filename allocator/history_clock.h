// The clock of the history: the processor's counter where it runs at one speed on all processors,
// else the system's monotonic clock. Readings are turned into times only when they are copied out:
// two moments at which both were read tell the counter's speed.
#ifndef TIDEMARK_ALLOCATOR_HISTORY_CLOCK_H
#define TIDEMARK_ALLOCATOR_HISTORY_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

// At least this many ticks are a microsecond on every processor whose counter is used: slower ones
// are rounded up to it.
#define CCA__CLOCK_TICKS_A_MICROSECOND 1000

struct cca__clock {
    bool is_counter;
    uint64_t ticks;        // when it was started
    uint64_t monotonic_ns; // at the same moment
    uint64_t epoch_us;     // at the same moment
};
void cca__clock_start(struct cca__clock *clock);

// What a reading is in the system's monotonic time at most now.
struct cca__clock_scale {
    const struct cca__clock *clock;
    uint64_t ticks;     // now
    double ns_per_tick; // since the start
};
struct cca__clock_scale cca__clock_scale(const struct cca__clock *clock);
// Microseconds since the epoch; from the start to now.
uint64_t cca__clock_us(const struct cca__clock_scale *scale, uint64_t ticks);

static inline uint64_t cca__clock_read(const struct cca__clock *clock) {
#if defined(__x86_64__)
    if (__builtin_expect(clock->is_counter, 1)) return __rdtsc();
#else
    (void)clock;
#endif
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
