// One call of a host-cost benchmark: a fresh allocator, one or two threads that use it by a
// pattern, and the judgement of the result.
//
//     struct bench_session session;
//     if (bench_session_begin(&session, &setup))      // it works
//         bench_session_run(&session, count);         // and only then is timed
//     if (!bench_session_end(&session, &device_malloc_count))
//         ... session.failure says what was wrong ...
//
// Nothing is timed here; a failure of any step is kept, the first one, and the later steps become
// no-ops, except that bench_session_end always gives everything back.
#ifndef TIDEMARK_BENCH_SESSION_H
#define TIDEMARK_BENCH_SESSION_H

#include "allocator/allocator.h"
#include "base/thread.h"
#include "bench/pattern.h"

#include <stdatomic.h>
#include <stdbool.h>

#define BENCH_SESSION_THREAD_COUNT_MAX 2

// A subject of measurement.
struct bench_subject {
    const char *name;
    enum base_status (*create)(struct allocator **allocator);
    bool has_cache; // a warmed pair or window must not reach the device
    uint64_t
        warm_up_count_max; // iterations before the clock starts: one that caches nothing needs few
};

enum bench_streams { BENCH_STREAMS_ONE, BENCH_STREAMS_OWN }; // for all threads, or for each

struct bench_session;

struct bench_session_setup {
    const struct bench_subject *subject;
    const struct bench_pattern *pattern;
    int thread_count; // 1 or 2
    bool second_alone; // of two threads, the first one rests: what the second one's CPU takes
    enum bench_streams streams;
    // Called when the live sets are there, and before the result is judged (that too if the former
    // failed): for what a case needs besides. NULL: nothing.
    enum base_status (*prepare)(struct bench_session *session);
    void (*finish)(struct bench_session *session);
    bool checked; // compare every block of some thousand iterations with all live ones first: slow
};

struct bench_session {
    struct bench_session_setup setup;
    struct allocator *allocator;
    // Of each user, as many as its pattern needs; NULL: the default stream, the first one where the
    // threads share it.
    cudaStream_t *streams[BENCH_SESSION_THREAD_COUNT_MAX];
    struct bench_user users[BENCH_SESSION_THREAD_COUNT_MAX];
    int user_count;              // begun ones
    int64_t device_malloc_count; // before the run
    bool ran;
    bool prepared;
    bool failed;
    char failure[512];

    // The second thread: it runs users[1] whenever `go` rises. The counters are handed over with
    // release and acquire.
    struct base_thread thread;
    bool thread_started;
    uint64_t count; // iterations of the next run; UINT64_MAX: leave
    bool second_failed;
    char second_failure[512];
    atomic_uint go, done;
};

// Makes allocator, streams, users and the second thread, and warms up. False: see failure;
// bench_session_end is due all the same.
bool bench_session_begin(struct bench_session *session, const struct bench_session_setup *setup);

// COUNT iterations in each thread, from a common start to the end of the slower one.
bool bench_session_run(struct bench_session *session, uint64_t count);

// COUNT iterations of the first thread, each timed alone.
bool bench_session_run_timed(struct bench_session *session, uint64_t count,
                             struct base_histogram *histogram);

// For prepare and finish: the session fails with this sentence, unless it has already.
void bench_session_fail(struct bench_session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Checks the live blocks, gives everything back, looks for leaks, destroys. True: every step since
// begin went right. Sets *device_malloc_count to the device's allocations during the runs.
bool bench_session_end(struct bench_session *session, int64_t *device_malloc_count);

#endif
