// Memory over time in few points that keep the extremes. Private to the replay.
#ifndef TIDEMARK_WORKLOAD_REPLAY_SERIES_H
#define TIDEMARK_WORKLOAD_REPLAY_SERIES_H

#include "workload/replay.h"

// Points that one run of events can give: those of its lowest and highest active, highest allocated
// and highest reserved bytes.
#define WORKLOAD__SERIES_EXTREME_COUNT 4

struct workload__series {
    uint64_t run_event_count; // events that share a run
    uint64_t run;             // of the points in `extremes`
    bool run_open;
    struct workload_point extremes[WORKLOAD__SERIES_EXTREME_COUNT];
    struct workload_point last;
    struct workload_point *points;
    size_t point_count;
};

// For a history of EVENT_COUNT events. BASE_HOST_MEMORY.
enum base_status workload__series_init(struct workload__series *series,
                                       uint64_t event_count) BASE_MUST_USE;
// Points come in order of events; several of one event are fine.
void workload__series_add(struct workload__series *series, const struct workload_point *point);
// Ends the last run and hands the points over; the caller frees them.
struct workload_point *workload__series_take(struct workload__series *series, size_t *count);
void workload__series_deinit(struct workload__series *series);

#endif
