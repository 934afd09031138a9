// Patterns on one stream by one thread, and by two threads on one stream or on their own.
//
// The event calls of record_stream are light (bench/light_events.h): they count, but cost what the
// loop around them costs.
#include "bench/allocator_speed.h"

#include "base/check.h"
#include "base/size.h"
#include "bench/light_events.h"
#include "bench/subject.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_HISTORY_ADDED 1.5 // times mutex_list

static struct bench_pattern patterns[SPEED_PATTERN_COUNT];
static struct bench_script transformer;

// What is measured of each pattern; NULL: not measured.
struct measured {
    struct speed_case *ideal_list, *mutex_list, *caching;
    struct speed_case *mutex_list_two, *caching_one_stream, *caching_own_streams;
    struct speed_case *caching_second_alone;
};
static struct measured measured[SPEED_PATTERN_COUNT];
static struct speed_case *loop, *history, *history_stacks; // under pair_4m

static const struct {
    const char *text;
    double limit;            // times mutex_list
    double limit_one_stream; // two threads; 0: not measured
    double limit_own_streams;
} wanted[SPEED_PATTERN_COUNT] = {
    [SPEED_PATTERN_WINDOW_512] = {"window of 512 B, 64 live", 1.5, 1.8, 1.6},
    [SPEED_PATTERN_WINDOW_64K] = {"window of 64 KiB, 64 live", 1.5, 0, 0},
    [SPEED_PATTERN_WINDOW_4M] = {"window of 4 MiB, 64 live", 1.5, 0, 0},
    [SPEED_PATTERN_PAIR_512] = {"pair of 512 B", 1.8, 1.8, 1.8},
    [SPEED_PATTERN_PAIR_4M] = {"pair of 4 MiB", 1.8, 0, 0},
    [SPEED_PATTERN_MIXED] = {"mixed, 512 B to 64 MiB, 1,024 live", 5.5, 3.5, 1.8},
    [SPEED_PATTERN_TRANSFORMER] = {"transformer step", 3.3, 3.5, 1.8},
    [SPEED_PATTERN_RECORD_STREAM] = {"pair with record_stream, event calls in it", 3, 0, 0},
};

void speed_patterns_init(void) {
    static const struct {
        enum speed_pattern pattern;
        enum bench_pattern_kind kind;
        size_t bytes;
    } plain[] = {
        {SPEED_PATTERN_WINDOW_512, BENCH_PATTERN_WINDOW, 512},
        {SPEED_PATTERN_WINDOW_64K, BENCH_PATTERN_WINDOW, 64 * BASE_KIB},
        {SPEED_PATTERN_WINDOW_4M, BENCH_PATTERN_WINDOW, 4 * BASE_MIB},
        {SPEED_PATTERN_PAIR_512, BENCH_PATTERN_PAIR, 512},
        {SPEED_PATTERN_PAIR_4M, BENCH_PATTERN_PAIR, 4 * BASE_MIB},
        {SPEED_PATTERN_MIXED, BENCH_PATTERN_MIXED, 0},
        {SPEED_PATTERN_RECORD_STREAM, BENCH_PATTERN_RECORD, 4 * BASE_MIB},
    };
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        bench_pattern_init(&patterns[plain[i].pattern], plain[i].kind, plain[i].bytes,
                           speed_run.seed);
    bench_script_transformer(&transformer);
    bench_pattern_init_script(&patterns[SPEED_PATTERN_TRANSFORMER], &transformer);
}

void speed_patterns_deinit(void) {
    for (size_t i = 0; i < SPEED_PATTERN_COUNT; i++) bench_pattern_deinit(&patterns[i]);
    bench_script_deinit(&transformer);
}

const struct bench_pattern *speed_pattern_get(enum speed_pattern pattern) {
    BASE_CHECK_LT(pattern, SPEED_PATTERN_COUNT);
    return &patterns[pattern];
}

const char *speed_pattern_name(enum speed_pattern pattern) {
    static const char *const names[] = {
#define SPEED_PATTERN_NAME(identifier, name) name,
        SPEED_PATTERN_LIST(SPEED_PATTERN_NAME)
#undef SPEED_PATTERN_NAME
    };
    BASE_CHECK_LT(pattern, SPEED_PATTERN_COUNT);
    return names[pattern];
}

enum speed_pattern speed_pattern_find(const char *name) {
    for (int i = 0; i < SPEED_PATTERN_COUNT; i++)
        if (strcmp(speed_pattern_name((enum speed_pattern)i), name) == 0)
            return (enum speed_pattern)i;
    return SPEED_PATTERN_COUNT;
}

//--------------------------------------------------------------------------------------------------
// Cases.

static enum base_status light_events_begin(struct bench_session *session) {
    (void)session;
    bench_light_events_begin(true);
    return BASE_OK;
}
static void light_events_end(struct bench_session *session) {
    (void)session;
    bench_light_events_end();
}

void speed_pattern_equip(enum speed_pattern pattern, struct bench_session_setup *setup) {
    if (pattern != SPEED_PATTERN_RECORD_STREAM) return;
    setup->prepare = light_events_begin;
    setup->finish = light_events_end;
}

static struct speed_case *add(enum speed_pattern pattern, const struct bench_subject *subject,
                              int thread_count, enum bench_streams streams) {
    struct speed_case *added =
        speed_case_add_session(SPEED_GROUP_PATTERN, speed_pattern_name(pattern), subject,
                               &patterns[pattern], thread_count, streams);
    speed_pattern_equip(pattern, &added->setup);
    return added;
}

// Both threads, but only the second one works: two threads are as fast as the slower CPU, which may
// share its core with somebody else's work.
static struct speed_case *add_second_alone(enum speed_pattern pattern) {
    struct speed_case *added = add(pattern, &bench_subject_caching, 2, BENCH_STREAMS_OWN);
    added->setup.second_alone = true;
    snprintf(added->name, sizeof added->name, "allocator/%s/%s/second_alone",
             speed_pattern_name(pattern), bench_subject_caching.name);
    return added;
}

// Cases whose quotient is wanted are neighbours.
void speed_patterns_add(void) {
    loop = add(SPEED_PATTERN_PAIR_4M, &bench_subject_no_list, 1, BENCH_STREAMS_ONE);
    for (int i = 0; i < SPEED_PATTERN_COUNT; i++) {
        const enum speed_pattern pattern = (enum speed_pattern)i;
        struct measured *of = &measured[i];
        if (pattern == SPEED_PATTERN_RECORD_STREAM) { // the lists know no streams: a pair
            of->mutex_list = speed_case_add_session(
                SPEED_GROUP_PATTERN, speed_pattern_name(pattern), &bench_subject_mutex_list,
                &patterns[SPEED_PATTERN_PAIR_4M], 1, BENCH_STREAMS_ONE);
        } else {
            of->ideal_list = add(pattern, &bench_subject_ideal_list, 1, BENCH_STREAMS_ONE);
            of->mutex_list = add(pattern, &bench_subject_mutex_list, 1, BENCH_STREAMS_ONE);
        }
        of->caching = add(pattern, &bench_subject_caching, 1, BENCH_STREAMS_ONE);
        if (pattern == SPEED_PATTERN_PAIR_4M) {
            history = add(pattern, &bench_subject_history, 1, BENCH_STREAMS_ONE);
            history_stacks = add(pattern, &bench_subject_history_stacks, 1, BENCH_STREAMS_ONE);
        }
        if (wanted[i].limit_one_stream <= 0) continue;
        of->caching_own_streams = add(pattern, &bench_subject_caching, 2, BENCH_STREAMS_OWN);
        of->caching_second_alone = add_second_alone(pattern);
        of->caching_one_stream = add(pattern, &bench_subject_caching, 2, BENCH_STREAMS_ONE);
        of->mutex_list_two = add(pattern, &bench_subject_mutex_list, 2, BENCH_STREAMS_ONE);
    }
}

//--------------------------------------------------------------------------------------------------
// Rows.

static void history_add(const struct speed_case *of, const char *text) {
    const struct measured *pair = &measured[SPEED_PATTERN_PAIR_4M];
    const struct speed_row row = {.text = text,
                                  .measured = speed_added(of, pair->caching, pair->mutex_list),
                                  .limit = LIMIT_HISTORY_ADDED,
                                  .unit = SPEED_UNIT_TIMES};
    speed_row_add(&row, of, "%6.1f ns; caching without %.1f, mutex_list %.1f", speed_fastest_ns(of),
                  speed_fastest_ns(pair->caching), speed_fastest_ns(pair->mutex_list));
}

static void one_thread_add(void) {
    speed_section_add("One thread, one stream: a pair, times mutex_list (a free list a size "
                      "class, under one pthread mutex)");
    for (int i = 0; i < SPEED_PATTERN_COUNT; i++) {
        const struct measured *of = &measured[i];
        const struct speed_row row = {.text = wanted[i].text,
                                      .measured = speed_quotient(of->caching, of->mutex_list, 1),
                                      .limit = wanted[i].limit,
                                      .unit = SPEED_UNIT_TIMES};
        char ideal[32] = "";
        if (of->ideal_list != NULL)
            snprintf(ideal, sizeof ideal, ", ideal_list %.1f", speed_fastest_ns(of->ideal_list));
        speed_row_add(&row, of->caching, "%6.1f ns; mutex_list %.1f%s",
                      speed_fastest_ns(of->caching), speed_fastest_ns(of->mutex_list), ideal);
    }
    history_add(history, "history on, added to a pair of 4 MiB");
    history_add(history_stacks, "the same with the stacks of all calls");
    const struct speed_row row = {.text = "the loop and its calls alone",
                                  .measured = speed_fastest_ns(loop),
                                  .limit = NAN,
                                  .unit = SPEED_UNIT_NS};
    speed_row_add(&row, loop, "%s", "in all of the above");
}

static void own_streams_add(void) {
    speed_section_add("Two threads on their own streams: throughput of both, times one thread's");
    for (int i = 0; i < SPEED_PATTERN_COUNT; i++) {
        const struct measured *of = &measured[i];
        if (of->caching_own_streams == NULL) continue;
        const struct speed_row row = {.text = wanted[i].text,
                                      .measured =
                                          speed_quotient(of->caching, of->caching_own_streams, 2),
                                      .limit = wanted[i].limit_own_streams,
                                      .unit = SPEED_UNIT_TIMES,
                                      .at_least = true};
        speed_row_add(&row, of->caching_own_streams,
                      "%6.1f ns in each; alone %.1f, on the second one's CPU %.1f",
                      speed_fastest_ns(of->caching_own_streams), speed_fastest_ns(of->caching),
                      speed_fastest_ns(of->caching_second_alone));
    }
}

static void one_stream_add(void) {
    speed_section_add(
        "Two threads on one stream: a pair, times mutex_list under the same contention");
    for (int i = 0; i < SPEED_PATTERN_COUNT; i++) {
        const struct measured *of = &measured[i];
        if (of->caching_one_stream == NULL) continue;
        const struct speed_row row = {
            .text = wanted[i].text,
            .measured = speed_quotient(of->caching_one_stream, of->mutex_list_two, 1),
            .limit = wanted[i].limit_one_stream,
            .unit = SPEED_UNIT_TIMES};
        speed_row_add(&row, of->caching_one_stream, "%6.1f ns in each; mutex_list %.1f",
                      speed_fastest_ns(of->caching_one_stream),
                      speed_fastest_ns(of->mutex_list_two));
    }
}

void speed_patterns_rows_add(void) {
    one_thread_add();
    own_streams_add();
    one_stream_add();
}
