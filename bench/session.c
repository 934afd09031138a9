// See session.h.
#include "bench/session.h"

#include "base/check.h"
#include "bench/pin.h"

#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

#define DEVICE 0
#define CHECKED_COUNT 1280     // iterations compared block by block: more than `mixed` has live
#define CHECKED_COUNT_LARGE 16 // of a pattern with so many live that each comparison takes long
#define LARGE_LIVE_COUNT 100000
#define SCRIPT_WARM_UP_COUNT 3 // cycles, until nothing is new any more
#define SPIN_COUNT 1000        // looks at a flag before the CPU is offered to others

void bench_session_fail(struct bench_session *session, const char *format, ...) {
    if (session->failed) return;
    session->failed = true;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(session->failure, sizeof session->failure, format, arguments);
    va_end(arguments);
}

static bool succeeded(struct bench_session *session, enum base_status status) {
    if (status != BASE_OK) bench_session_fail(session, "%s", base_status_message());
    return status == BASE_OK;
}

static void flag_wait(atomic_uint *flag, unsigned value) {
    for (unsigned i = 1; atomic_load_explicit(flag, memory_order_acquire) != value; i++)
        if (i % SPIN_COUNT == 0) sched_yield();
}

static void second_thread(void *argument) {
    struct bench_session *session = argument;
    int cpu;
    // The caller has said already whether binding works here; unbound, the thread measures all the
    // same.
    if (bench_pin_thread(1, &cpu) != BASE_OK) cpu = -1;
    for (unsigned turn = 1;; turn++) {
        flag_wait(&session->go, turn); // acquires `count`
        const bool leave = session->count == UINT64_MAX;
        if (!leave && !bench_user_run(&session->users[1], session->count) &&
            !session->second_failed) {
            session->second_failed = true;
            snprintf(session->second_failure, sizeof session->second_failure, "%s",
                     base_status_message());
        }
        atomic_store_explicit(&session->done, turn,
                              memory_order_release); // with flag_wait of the first thread
        if (leave) return;
    }
}

static unsigned second_thread_go(struct bench_session *session, uint64_t count) {
    session->count = count;
    const unsigned turn = atomic_load_explicit(&session->go, memory_order_relaxed) + 1;
    atomic_store_explicit(&session->go, turn,
                          memory_order_release); // with flag_wait of the second thread
    return turn;
}

// Streams of user I. The further ones of a pattern are shared too where the first one is.
static bool streams_create(struct bench_session *session, int i) {
    const uint32_t count = session->setup.pattern->stream_count;
    const bool own = session->setup.streams == BENCH_STREAMS_OWN;
    session->streams[i] = calloc(count, sizeof *session->streams[i]);
    BASE_CHECK(session->streams[i] != NULL);
    for (uint32_t j = 0; j < count; j++) {
        if (!own && i > 0) session->streams[i][j] = session->streams[0][j];
        if (!own && (i > 0 || j == 0)) continue;
        const cudaError_t error = cudaStreamCreate(&session->streams[i][j]);
        if (error != cudaSuccess) {
            bench_session_fail(session, "cudaStreamCreate: %s", cudaGetErrorString(error));
            return false;
        }
    }
    return true;
}

static void streams_destroy(struct bench_session *session, int i) {
    if (session->streams[i] == NULL) return;
    const bool shared = session->setup.streams != BENCH_STREAMS_OWN && i > 0;
    for (uint32_t j = 0; j < session->setup.pattern->stream_count && !shared; j++)
        if (session->streams[i][j] != NULL &&
            cudaStreamDestroy(session->streams[i][j]) != cudaSuccess)
            bench_session_fail(session, "a stream could not be destroyed");
    free(session->streams[i]);
}

static bool users_begin(struct bench_session *session) {
    const struct bench_session_setup *setup = &session->setup;
    for (int i = 0; i < setup->thread_count; i++) {
        if (!streams_create(session, i)) return false;
        session->user_count = i + 1;
        // Half a live set apart, so that the threads do not ask for the same sizes at the same
        // time.
        const uint64_t start = (uint64_t)i * setup->pattern->live_count / 2;
        if (!succeeded(session, bench_user_init(&session->users[i], setup->pattern,
                                                session->allocator, session->streams[i], start)))
            return false;
    }
    return true;
}

static int64_t device_mallocs(struct bench_session *session) {
    struct allocator_stats stats;
    if (!succeeded(session, allocator_stats(session->allocator, DEVICE, &stats))) return 0;
    return stats.num_device_alloc;
}

static uint64_t checked_count(const struct bench_pattern *pattern) {
    if (pattern->kind == BENCH_PATTERN_SCRIPT) return 1;
    return pattern->live_count < LARGE_LIVE_COUNT ? CHECKED_COUNT : CHECKED_COUNT_LARGE;
}

static uint64_t warm_up_count(const struct bench_session_setup *setup) {
    const uint64_t most = setup->subject->warm_up_count_max;
    const uint64_t replacements = 2 * (uint64_t)setup->pattern->live_count;
    switch (setup->pattern->kind) {
    case BENCH_PATTERN_SCRIPT: return SCRIPT_WARM_UP_COUNT;
    case BENCH_PATTERN_MIXED:
        return setup->subject->has_cache && replacements > most ? replacements : most;
    default:
        return most < BENCH_PATTERN_WINDOW_LIVE_COUNT * 4 ? most
                                                          : BENCH_PATTERN_WINDOW_LIVE_COUNT * 4;
    }
}

bool bench_session_begin(struct bench_session *session, const struct bench_session_setup *setup) {
    memset(session, 0, sizeof *session);
    session->setup = *setup;
    BASE_CHECK(setup->thread_count >= 1 && setup->thread_count <= BENCH_SESSION_THREAD_COUNT_MAX);
#ifdef TIDEMARK_SIMULATOR
    sim_reset(); // every session meets the same device, addresses included
#endif
    if (!succeeded(session, setup->subject->create(&session->allocator))) return false;
    if (!users_begin(session)) return false;
    session->prepared = true;
    if (setup->prepare != NULL && !succeeded(session, setup->prepare(session))) return false;
    if (setup->checked)
        for (int i = 0; i < setup->thread_count; i++)
            if (!succeeded(session, bench_user_run_checked(&session->users[i],
                                                           checked_count(setup->pattern))))
                return false;
    if (setup->thread_count > 1) {
        base_thread_start(&session->thread, second_thread, session);
        session->thread_started = true;
    }
    if (!bench_session_run(session, warm_up_count(setup))) return false;
    session->device_malloc_count = device_mallocs(session);
    session->ran = false;
    return !session->failed;
}

bool bench_session_run(struct bench_session *session, uint64_t count) {
    if (session->failed) return false;
    session->ran = true;
    const unsigned turn = session->thread_started ? second_thread_go(session, count) : 0;
    const bool right =
        session->setup.second_alone || bench_user_run(&session->users[0], count);
    if (session->thread_started)
        flag_wait(&session->done, turn); // acquires what the second thread wrote
    if (!right) bench_session_fail(session, "a call failed: %s", base_status_message());
    if (session->second_failed)
        bench_session_fail(session, "a call of the second thread failed: %s",
                           session->second_failure);
    return !session->failed;
}

bool bench_session_run_timed(struct bench_session *session, uint64_t count,
                             struct base_histogram *histogram) {
    if (session->failed) return false;
    session->ran = true;
    if (!bench_user_run_timed(&session->users[0], count, histogram))
        bench_session_fail(session, "a call failed: %s", base_status_message());
    return !session->failed;
}

static void check_result(struct bench_session *session, int64_t *device_malloc_count) {
    *device_malloc_count = device_mallocs(session) - session->device_malloc_count;
    const enum bench_pattern_kind kind = session->setup.pattern->kind;
    if (session->setup.subject->has_cache && kind != BENCH_PATTERN_MIXED &&
        kind != BENCH_PATTERN_SCRIPT && *device_malloc_count != 0)
        bench_session_fail(
            session,
            "%" PRId64
            " requests reached the device, though every one of them should hit the cache",
            *device_malloc_count);
    succeeded(session, bench_users_check(session->users, (size_t)session->user_count));
}

static void check_leaks(struct bench_session *session) {
    int64_t leaked = 0;
    if (!succeeded(session, bench_leaked_blocks(session->allocator, &leaked))) return;
    if (leaked != 0) bench_session_fail(session, "%" PRId64 " blocks leaked", leaked);
}

bool bench_session_end(struct bench_session *session, int64_t *device_malloc_count) {
    if (session->thread_started) {
        second_thread_go(session, UINT64_MAX);
        base_thread_join(&session->thread);
    }
    *device_malloc_count = 0;
    if (session->prepared && session->setup.finish != NULL) session->setup.finish(session);
    if (!session->failed && session->ran) check_result(session, device_malloc_count);
    for (int i = 0; i < session->user_count; i++)
        succeeded(session, bench_user_deinit(&session->users[i]));
    if (!session->failed) check_leaks(session);
    allocator_destroy(session->allocator);
    for (int i = 0; i < session->setup.thread_count; i++) streams_destroy(session, i);
#ifdef TIDEMARK_SIMULATOR
    if (sim_used_bytes(DEVICE) != 0)
        bench_session_fail(session,
                           "%" PRIu64 " bytes of the device are held after the allocator is gone",
                           sim_used_bytes(DEVICE));
#endif
    return !session->failed;
}
