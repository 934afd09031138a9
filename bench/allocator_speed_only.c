// One pattern on one subject, for a profiler.
#include "bench/allocator_speed.h"
#include "bench/pin.h"
#include "bench/subject.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct bench_subject *subject_find(const char *name) {
    static const struct bench_subject *const subjects[] = {
        &bench_subject_caching,    &bench_subject_history,    &bench_subject_history_stacks,
        &bench_subject_mutex_list, &bench_subject_ideal_list, &bench_subject_no_list};
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        if (strcmp(subjects[i]->name, name) == 0) return subjects[i];
    return NULL;
}

enum base_status speed_only(const char *pattern_name, const char *subject_name,
                            uint64_t iteration_count, bool two_threads,
                            enum bench_streams streams) {
    const enum speed_pattern pattern = speed_pattern_find(pattern_name);
    const struct bench_subject *subject = subject_find(subject_name);
    if (pattern == SPEED_PATTERN_COUNT)
        return base_status_set(BASE_INVALID_VALUE, "no pattern is called '%s'", pattern_name);
    if (subject == NULL)
        return base_status_set(BASE_INVALID_VALUE,
                               "no subject is called '%s'; there are caching, history, "
                               "history_stacks, mutex_list, ideal_list, no_list",
                               subject_name);
    struct bench_session_setup setup = {.subject = subject,
                                        .pattern = speed_pattern_get(pattern),
                                        .thread_count = two_threads ? 2 : 1,
                                        .streams = streams};
    int cpu;
    if (bench_pin_thread(0, &cpu) != BASE_OK)
        fprintf(stderr, "allocator: %s\n", base_status_message());
    speed_pattern_equip(pattern, &setup);
    struct bench_session session;
    int64_t device_malloc_count = 0;
    if (bench_session_begin(&session, &setup)) bench_session_run(&session, iteration_count);
    if (!bench_session_end(&session, &device_malloc_count))
        return base_status_set(BASE_CHECK_FAILED, "%s: %s", pattern_name, session.failure);
    printf("%s on %s: %" PRIu64 " pairs%s, of which %" PRId64 " reached the device\n", pattern_name,
           subject_name, iteration_count * setup.pattern->pair_count,
           two_threads ? " in each of two threads" : "", device_malloc_count);
    return BASE_OK;
}
