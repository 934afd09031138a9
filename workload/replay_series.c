// A history is cut into runs of equally many events. From each run stay the points of its extremes,
// as they were: every point is a true moment, and the largest of each column is the true peak.
#include "workload/replay_series.h"

#include "base/check.h"

#include <stdlib.h>

// One point is kept for the very end.
#define RUN_COUNT_MAX ((WORKLOAD_SERIES_POINT_COUNT_MAX - 1) / WORKLOAD__SERIES_EXTREME_COUNT)

enum { LOWEST_ACTIVE, HIGHEST_ACTIVE, HIGHEST_ALLOCATED, HIGHEST_RESERVED };

enum base_status workload__series_init(struct workload__series *series, uint64_t event_count) {
    *series = (struct workload__series){0};
    // A short history is kept whole: then a run is one event. Event 0 is a point too: the start
    // state.
    series->run_event_count = (event_count + 1 + RUN_COUNT_MAX - 1) / RUN_COUNT_MAX;
    series->points = malloc(WORKLOAD_SERIES_POINT_COUNT_MAX * sizeof *series->points);
    if (series->points == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a time series");
    return BASE_OK;
}

static bool same_point(const struct workload_point *a, const struct workload_point *b) {
    return a->event == b->event && a->reserved_bytes == b->reserved_bytes &&
           a->allocated_bytes == b->allocated_bytes && a->active_bytes == b->active_bytes;
}

static void append(struct workload__series *series, const struct workload_point *point) {
    if (series->point_count > 0 && same_point(&series->points[series->point_count - 1], point))
        return;
    BASE_CHECK_LT(series->point_count, WORKLOAD_SERIES_POINT_COUNT_MAX);
    series->points[series->point_count++] = *point;
}

// The extremes in order of time, each moment once.
static void end_run(struct workload__series *series) {
    struct workload_point *extremes = series->extremes;
    for (int i = 1; i < WORKLOAD__SERIES_EXTREME_COUNT; i++)
        for (int j = i; j > 0 && extremes[j].event < extremes[j - 1].event; j--) {
            const struct workload_point swapped = extremes[j];
            extremes[j] = extremes[j - 1];
            extremes[j - 1] = swapped;
        }
    for (int i = 0; i < WORKLOAD__SERIES_EXTREME_COUNT; i++) append(series, &extremes[i]);
    series->run_open = false;
}

void workload__series_add(struct workload__series *series, const struct workload_point *point) {
    struct workload_point *extremes = series->extremes;
    const uint64_t run = point->event / series->run_event_count;
    if (series->run_open && run != series->run) end_run(series);
    series->last = *point;
    if (!series->run_open) {
        series->run = run;
        series->run_open = true;
        for (int i = 0; i < WORKLOAD__SERIES_EXTREME_COUNT; i++) extremes[i] = *point;
        return;
    }
    if (point->active_bytes < extremes[LOWEST_ACTIVE].active_bytes)
        extremes[LOWEST_ACTIVE] = *point;
    if (point->active_bytes > extremes[HIGHEST_ACTIVE].active_bytes)
        extremes[HIGHEST_ACTIVE] = *point;
    if (point->allocated_bytes > extremes[HIGHEST_ALLOCATED].allocated_bytes)
        extremes[HIGHEST_ALLOCATED] = *point;
    if (point->reserved_bytes > extremes[HIGHEST_RESERVED].reserved_bytes)
        extremes[HIGHEST_RESERVED] = *point;
}

struct workload_point *workload__series_take(struct workload__series *series, size_t *count) {
    if (series->run_open) end_run(series);
    if (series->point_count > 0) append(series, &series->last);
    struct workload_point *points = series->points;
    *count = series->point_count;
    series->points = NULL;
    series->point_count = 0;
    return points;
}

void workload__series_deinit(struct workload__series *series) {
    free(series->points);
    series->points = NULL;
}
