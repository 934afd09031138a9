// See history_clock.h.
#include "allocator/history_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define READINGS 5 // of which the quickest counts: in the others something came between

static uint64_t now_ns(clockid_t id) {
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool counter_is_steady(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0; // invariant TSC
#else
    return false;
#endif
}

// The counter and the monotonic clock at one moment.
static void read_both(const struct cca__clock *clock, uint64_t *ticks, uint64_t *monotonic_ns) {
    uint64_t best = UINT64_MAX;
    for (int reading = 0; reading < READINGS; ++reading) {
        const uint64_t before = cca__clock_read(clock), ns = now_ns(CLOCK_MONOTONIC),
                       after = cca__clock_read(clock);
        if (after - before >= best) continue;
        best = after - before;
        *ticks = before + best / 2;
        *monotonic_ns = ns;
    }
}

void cca__clock_start(struct cca__clock *clock) {
    *clock = (struct cca__clock){.is_counter = counter_is_steady()};
    read_both(clock, &clock->ticks, &clock->monotonic_ns);
    clock->epoch_us = now_ns(CLOCK_REALTIME) / 1000;
}

struct cca__clock_scale cca__clock_scale(const struct cca__clock *clock) {
    struct cca__clock_scale scale = {.clock = clock};
    uint64_t ns = 0;
    read_both(clock, &scale.ticks, &ns);
    if (scale.ticks > clock->ticks && ns > clock->monotonic_ns)
        scale.ns_per_tick =
            (double)(ns - clock->monotonic_ns) / (double)(scale.ticks - clock->ticks);
    return scale;
}

uint64_t cca__clock_us(const struct cca__clock_scale *scale, uint64_t ticks) {
    const uint64_t first = scale->clock->ticks;
    if (ticks <= first) return scale->clock->epoch_us;
    if (ticks > scale->ticks) ticks = scale->ticks;
    return scale->clock->epoch_us + (uint64_t)((double)(ticks - first) * scale->ns_per_tick / 1000);
}
