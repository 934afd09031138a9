// What calls wait for, and what queries answer. A wait runs what the schedule will until what it
// waits for is complete; then the host knows of it.
#include "simulator/engine.h"
#include "simulator/plant.h"
#include "simulator/schedule.h"

#include <stdlib.h>

// --- Running what one position needs ---

// Positions still to reach, the last one first: each is needed by the one before it.
struct goals {
    struct sim__position *positions;
    size_t count, size;
};

static void goals_push(struct goals *goals, struct sim__position position) {
    if (goals->count == goals->size) {
        goals->size = goals->size == 0 ? 16 : 2 * goals->size;
        goals->positions = realloc(goals->positions, goals->size * sizeof *goals->positions);
        if (goals->positions == NULL)
            sim__host_limit("out of host memory for a chain of %zu waits", goals->size);
    }
    goals->positions[goals->count++] = position;
}

void sim__engine_run_goal(struct sim__position position) {
    struct goals goals = {0};
    goals_push(&goals, position);
    while (goals.count > 0) {
        const struct sim__position goal = goals.positions[goals.count - 1];
        if (sim__position_complete(goal))
            --goals.count;
        else if (goal.stream->running)
            sim__engine_wait_running();
        else if (goal.stream->blocked)
            goals_push(&goals, sim__engine_blocked_by(goal.stream));
        else
            sim__engine_run_first(goal.stream);
    }
    free(goals.positions);
}

bool sim__engine_step_goal(struct sim__position position) {
    while (!sim__position_complete(position) && position.stream->blocked)
        position = sim__engine_blocked_by(position.stream);
    if (sim__position_complete(position) || position.stream->running || position.stream->held)
        return false;
    sim__engine_run_first(position.stream);
    return true;
}

// --- Waits ---

static void force(struct sim__position position) {
    if (!sim__position_complete(position))
        sim__schedule->force(position);
    if (sim__schedule->doubts)
        sim__observe(position);
    if (sim__schedule->learned != NULL)
        sim__schedule->learned(position);
}

void sim__engine_force(struct sim__position position) { force(position); }

// Forcing changes the lists of streams, so they are read first. What other threads submit meanwhile
// is not waited for.
static void force_device(struct sim__device *device, bool only_ordered_with_legacy) {
    struct goals goals = {0};
    only_ordered_with_legacy |= sim__planted(SIM__PLANT_DEVICE_SYNCHRONIZE);
    struct sim__stream *stream = device->pending;
    for (; stream != NULL; stream = stream->pending.next)
        if (!only_ordered_with_legacy || sim__stream_is_ordered(stream))
            goals_push(&goals, (struct sim__position){stream, stream->submitted});
    for (stream = device->unobserved; stream != NULL; stream = stream->observation.link.next)
        if (!sim__stream_pending(stream) &&
            (!only_ordered_with_legacy || sim__stream_is_ordered(stream)))
            goals_push(&goals, (struct sim__position){stream, stream->submitted});
    goals_push(&goals, device->fence);
    for (size_t i = 0; i < goals.count; ++i)
        force(goals.positions[i]);
    free(goals.positions);
}

// The legacy stream stands for the blocking streams as well, even if nothing was enqueued in it.
void sim__engine_force_stream(struct sim__stream *stream) {
    if (stream->legacy && !sim__planted(SIM__PLANT_LEGACY_SYNCHRONIZE))
        force_device(&sim__state.devices[stream->device], true);
    else
        force((struct sim__position){stream, stream->submitted});
}

void sim__engine_force_device(struct sim__device *device) { force_device(device, false); }

void sim__engine_force_all(void) {
    for (int i = 0; i < sim__state.options.device_count; ++i)
        force_device(&sim__state.devices[i], false);
}

// --- Queries ---

bool sim__engine_query(struct sim__position position) {
    if (!sim__position_complete(position)) {
        sim__schedule->poll(position);
        return sim__planted(SIM__PLANT_QUERY);
    }
    if (sim__schedule->learned != NULL)
        sim__schedule->learned(position);
    if (!sim__schedule->doubts || sim__is_observed(position))
        return true;
    if (sim__schedule->doubt())
        return false;
    sim__observe(position);
    return true;
}

// The legacy stream's query: about the blocking streams as well.
static bool query_legacy(struct sim__device *device) {
    if (!sim__position_complete(device->fence))
        return sim__engine_query(device->fence);
    struct sim__stream *stream = device->pending;
    for (; stream != NULL; stream = stream->pending.next)
        if (sim__stream_is_ordered(stream))
            return sim__engine_query((struct sim__position){stream, stream->submitted});
    if (!sim__schedule->doubts)
        return true;
    bool asked = false;
    for (stream = device->unobserved; stream != NULL && !asked;
         stream = stream->observation.link.next)
        asked = sim__stream_is_ordered(stream);
    if (asked && sim__schedule->doubt())
        return false;
    force_device(device, true);
    return true;
}

bool sim__engine_query_stream(struct sim__stream *stream) {
    return stream->legacy
               ? query_legacy(&sim__state.devices[stream->device])
               : sim__engine_query((struct sim__position){stream, stream->submitted});
}

void sim__engine_poll(void) {
    for (int i = 0; i < sim__state.options.device_count; ++i)
        for (struct sim__stream *stream = sim__state.devices[i].pending; stream != NULL;
             stream = stream->pending.next)
            if (!stream->held && sim__engine_is_ready(stream)) {
                sim__schedule->poll((struct sim__position){stream, stream->submitted});
                return;
            }
}
