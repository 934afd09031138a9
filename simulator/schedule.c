// Which schedule is in force, and the words that choose one.
#include "simulator/schedule.h"

#include "simulator/call.h"
#include "simulator/engine.h"
#include "simulator/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sim__schedule *sim__schedule = &sim__schedule_eager;

static bool is_chosen; // by the program: the environment no longer counts
static char chosen_text[32] = "eager";

static enum base_status parse(const char *text, const struct sim__schedule **schedule,
                              uint64_t *seed) {
    static const struct sim__schedule *const plain[] = {&sim__schedule_eager, &sim__schedule_lazy,
                                                        &sim__schedule_timed};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; ++i) {
        *schedule = plain[i];
        if (strcmp(text, plain[i]->name) == 0)
            return BASE_OK;
    }
    *schedule = &sim__schedule_random;
    char *end;
    if (strncmp(text, "random:", 7) == 0 && text[7] >= '0' && text[7] <= '9') {
        errno = 0;
        *seed = strtoull(text + 7, &end, 10);
        if (errno == 0 && *end == '\0')
            return BASE_OK;
    }
    return base_status_set(BASE_INVALID_VALUE,
                           "schedule \"%s\": want eager, lazy, timed or random:SEED with a number "
                           "below 2^64",
                           text);
}

// The streams' state is the former schedule's.
static void stream_reset(struct sim__stream *stream) {
    stream->schedule = (struct sim__stream_schedule){.end_ns = sim__state.now_ns};
    sim__observe_reset(stream);
}

static void streams_reset(void) {
    for (uint32_t i = 0; i < sim__state.streams.slot_count; ++i)
        stream_reset(sim__handle_slot_at(&sim__state.streams, i));
    for (uint32_t i = 0; i < sim__lane_count; ++i)
        stream_reset(sim__lane_at(i));
}

enum base_status sim__schedule_choose(const char *text) {
    const struct sim__schedule *schedule;
    uint64_t seed = 0;
    const enum base_status status = parse(text, &schedule, &seed);
    if (status != BASE_OK)
        return status;
    is_chosen = true;
    snprintf(chosen_text, sizeof chosen_text, "%s", text);
    sim__schedule = schedule;
    sim__schedule_random_seed(seed);
    streams_reset();
    sim__schedule->reset();
    sim__engine_offer_all();
    sim__engine_point();
    return BASE_OK;
}

const char *sim__schedule_text(void) { return chosen_text; }

enum base_status sim__schedule_from_environment(void) {
    const char *text = getenv("TIDEMARK_SIM_SCHEDULE");
    if (text == NULL || is_chosen)
        return BASE_OK;
    const enum base_status status = sim__schedule_choose(text);
    is_chosen = false;
    return status == BASE_OK ? status : base_status_prefix(status, "TIDEMARK_SIM_SCHEDULE");
}

enum base_status sim_schedule(const char *text) {
    base_mutex_lock(&sim__state.lock);
    const enum base_status status = sim__schedule_choose(text);
    base_mutex_unlock(&sim__state.lock);
    return status;
}

uint64_t sim_time_ns(void) {
    base_mutex_lock(&sim__state.lock);
    const uint64_t now_ns = sim__state.now_ns;
    base_mutex_unlock(&sim__state.lock);
    return now_ns;
}

void sim_progress(void) {
    if (sim__thread()->work_depth > 0)
        return; // device work waits for no other work
    (void)sim__call_begin(SIM__CALL_OTHER);
    sim__engine_poll();
    base_mutex_unlock(&sim__state.lock);
}
