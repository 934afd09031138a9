// The series keeps every extreme, few points, and the end; checked against a plain scan of all
// moments.
#include "workload/replay_series.h"

#include "base/check.h"
#include "base/random.h"

#include <stdlib.h>

#define SEED 7

static struct workload_point *random_walk(uint64_t event_count, uint64_t seed) {
    struct base_random random = base_random_init(seed, "walk");
    struct workload_point *points = malloc((event_count + 1) * sizeof *points);
    BASE_CHECK(points != NULL);
    uint64_t active = 1000000, reserved = 2000000;
    for (uint64_t i = 0; i <= event_count; i++) {
        active = active + base_random_below(&random, 2001) - 1000;
        if (base_random_chance(&random, 0.01))
            reserved = 2000000 + base_random_below(&random, 1000000);
        points[i] =
            (struct workload_point){.event = i,
                                    .reserved_bytes = reserved,
                                    .allocated_bytes = active - base_random_below(&random, 100),
                                    .active_bytes = active};
    }
    return points;
}

static uint64_t largest(const struct workload_point *points, size_t count, int column) {
    uint64_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t values[] = {points[i].reserved_bytes, points[i].allocated_bytes,
                                   points[i].active_bytes};
        if (values[column] > found) found = values[column];
    }
    return found;
}

static void series_keeps_extremes_and_the_end(uint64_t event_count) {
    base_check_context("seed %d, %llu events", SEED, (unsigned long long)event_count);
    struct workload_point *all = random_walk(event_count, SEED);
    struct workload__series series;
    BASE_CHECK_EQ(workload__series_init(&series, event_count), BASE_OK);
    for (uint64_t i = 0; i <= event_count; i++) workload__series_add(&series, &all[i]);
    size_t count;
    struct workload_point *points = workload__series_take(&series, &count);
    BASE_CHECK_LE(count, WORKLOAD_SERIES_POINT_COUNT_MAX);
    for (int column = 0; column < 3; column++)
        BASE_CHECK_EQ(largest(points, count, column), largest(all, event_count + 1, column));
    uint64_t lowest = UINT64_MAX, lowest_kept = UINT64_MAX;
    for (uint64_t i = 0; i <= event_count; i++)
        if (all[i].active_bytes < lowest) lowest = all[i].active_bytes;
    for (size_t i = 0; i < count; i++) {
        if (points[i].active_bytes < lowest_kept) lowest_kept = points[i].active_bytes;
        if (i > 0) BASE_CHECK_GT(points[i].event, points[i - 1].event);
        // Each point is a moment as it was, no mixture of several.
        const struct workload_point *moment = &all[points[i].event];
        BASE_CHECK_EQ(points[i].reserved_bytes, moment->reserved_bytes);
        BASE_CHECK_EQ(points[i].active_bytes, moment->active_bytes);
    }
    BASE_CHECK_EQ(lowest_kept, lowest);
    BASE_CHECK_EQ(points[count - 1].event, event_count);
    free(points);
    workload__series_deinit(&series);
    free(all);
}

static void short_history_is_kept_whole(void) {
    struct workload_point *all = random_walk(1000, SEED);
    struct workload__series series;
    BASE_CHECK_EQ(workload__series_init(&series, 1000), BASE_OK);
    for (uint64_t i = 0; i <= 1000; i++) workload__series_add(&series, &all[i]);
    size_t count;
    struct workload_point *points = workload__series_take(&series, &count);
    BASE_CHECK_EQ(count, 1001);
    free(points);
    free(all);
}

int main(void) {
    short_history_is_kept_whole();
    series_keeps_extremes_and_the_end(0);
    series_keeps_extremes_and_the_end(1);
    series_keeps_extremes_and_the_end(1022);
    series_keeps_extremes_and_the_end(1023);
    series_keeps_extremes_and_the_end(4096);
    series_keeps_extremes_and_the_end(100001);
    return 0;
}
