// Recorded programs: the requests of a trace from its beginning to its end as a cycle, everything
// given back at the end, on an allocator that has played it before. Frees come where the recording
// completed them. What a program released by empty_cache stays cached: the host's cost of hits is
// asked for, not that of the device's calls.
#include "bench/allocator_speed.h"

#include "base/address_map.h"
#include "base/check.h"
#include "bench/subject.h"
#include "trace/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRACE_COUNT_MAX 32
#define LIMIT_EACH 3.2
#define LIMIT_MEDIAN 2.5

static struct played {
    char text[64];
    struct bench_script script;
    struct bench_pattern pattern;
    struct speed_case *mutex_list, *caching;
} played[TRACE_COUNT_MAX];
static int played_count;

// Slots of freed blocks are used again, so that what is live stays together.
struct slots {
    struct base_address_map by_address;
    uint32_t *spare;
    size_t spare_count;
    uint32_t count;
};

static enum base_status event_add(struct bench_script *script, struct slots *slots,
                                  const struct trace_event *event) {
    uint64_t slot;
    if (event->action == TRACE_ALLOC && event->size > 0) {
        slot = slots->spare_count > 0 ? slots->spare[--slots->spare_count] : slots->count++;
        bench_script_malloc(script, (uint32_t)slot, event->size, event->stream);
        return base_address_map_set(&slots->by_address, event->address, slot);
    }
    // A free of what was there before the recording began is none of ours.
    if (event->action == TRACE_FREE_COMPLETED &&
        base_address_map_remove(&slots->by_address, event->address, &slot)) {
        bench_script_free(script, (uint32_t)slot);
        slots->spare[slots->spare_count++] = (uint32_t)slot;
    }
    return BASE_OK;
}

static enum base_status script_make(struct bench_script *script, const struct trace *trace) {
    struct slots slots = {.spare = calloc(trace->event_count + 1, sizeof *slots.spare)};
    BASE_CHECK(slots.spare != NULL);
    enum base_status status = BASE_OK;
    for (size_t i = 0; i < trace->device_event_first[1] && status == BASE_OK; i++)
        status = event_add(script, &slots, &trace->events[i]);
    for (uint32_t i = 0; i < slots.count; i++)
        if (bench_script_filled(script, i)) bench_script_free(script, i);
    base_address_map_deinit(&slots.by_address);
    free(slots.spare);
    return status;
}

static enum base_status trace_add(const char *path) {
    struct trace *trace;
    BASE_CHECK_LT(played_count, TRACE_COUNT_MAX);
    struct played *added = &played[played_count];
    enum base_status status =
        trace_read(path, &(struct trace_read_options){.no_stacks = true}, &trace);
    if (status != BASE_OK) return status;
    status = trace_check_replayable(trace, 0);
    if (status == BASE_OK && trace->pool_count > 1)
        status = base_status_set(BASE_UNSUPPORTED, "has private pools, which are not played");
    if (status == BASE_OK) status = script_make(&added->script, trace);
    if (status != BASE_OK) status = base_status_prefix(status, "%s", path);
    if (status == BASE_OK) {
        snprintf(added->text, sizeof added->text, "%.40s", trace->name);
        played_count++;
    } else {
        bench_script_deinit(&added->script);
    }
    trace_destroy(trace);
    return status;
}

enum base_status speed_traces_add(char *const *paths, int count) {
    for (int i = 0; i < count && i < TRACE_COUNT_MAX; i++) {
        const enum base_status status = trace_add(paths[i]);
        if (status == BASE_UNSUPPORTED)
            fprintf(stderr, "allocator: left out: %s\n", base_status_message());
        else if (status != BASE_OK)
            return status;
    }
    for (int i = 0; i < played_count; i++) {
        struct played *of = &played[i];
        char name[80];
        bench_pattern_init_script(&of->pattern, &of->script);
        snprintf(name, sizeof name, "trace/%s", of->text);
        of->mutex_list =
            speed_case_add_session(SPEED_GROUP_PATTERN, name, &bench_subject_mutex_list,
                                   &of->pattern, 1, BENCH_STREAMS_ONE);
        of->caching = speed_case_add_session(SPEED_GROUP_PATTERN, name, &bench_subject_caching,
                                             &of->pattern, 1, BENCH_STREAMS_ONE);
    }
    return BASE_OK;
}

void speed_traces_rows_add(void) {
    double quotients[TRACE_COUNT_MAX];
    size_t count = 0;
    if (played_count == 0) return;
    speed_section_add("Recorded programs: a pair, times mutex_list");
    for (int i = 0; i < played_count; i++) {
        const struct played *of = &played[i];
        const double quotient = speed_quotient(of->caching, of->mutex_list, 1);
        const struct speed_row row = {
            .text = of->text, .measured = quotient, .limit = LIMIT_EACH, .unit = SPEED_UNIT_TIMES};
        speed_row_add(&row, of->caching,
                      "%6.1f ns; mutex_list %.1f; %" PRIu64 " pairs, streams %" PRIu32,
                      speed_fastest_ns(of->caching), speed_fastest_ns(of->mutex_list),
                      of->script.pair_count, of->script.stream_count);
        if (!isnan(quotient)) quotients[count++] = quotient;
    }
    char text[64];
    snprintf(text, sizeof text, "median of the %zu", count);
    const struct speed_row row = {.text = text,
                                  .measured = bench_median(quotients, count),
                                  .limit = LIMIT_MEDIAN,
                                  .unit = SPEED_UNIT_TIMES};
    speed_row_add(&row, NULL, "%s", "");
}

void speed_traces_deinit(void) {
    for (int i = 0; i < played_count; i++) {
        bench_pattern_deinit(&played[i].pattern);
        bench_script_deinit(&played[i].script);
    }
}
