// See session_measure.h.
#include "bench/session_measure.h"

void bench_session_measure(struct bench_state *state, const struct bench_session_setup *setup,
                           const char *label) {
    struct bench_session session;
    int64_t device_malloc_count = 0;
    uint64_t count;
    if (bench_session_begin(&session, setup))
        while (bench_batch_begin(state, &count)) bench_session_run(&session, count);
    if (!bench_session_end(&session, &device_malloc_count)) {
        bench_fail(state, "%s", session.failure);
        return;
    }
    bench_counter(state, "leaked_blocks", 0); // bench_session_end looked
    bench_counter(state, "result_check", 1);
    bench_counter(state, "device_mallocs", (double)device_malloc_count);
    bench_label(state, label);
}

enum base_status bench_session_check(const struct bench_session_setup *setup, const char *name) {
    struct bench_session_setup checked = *setup;
    struct bench_session session;
    int64_t device_malloc_count;
    checked.checked = true;
    bench_session_begin(&session, &checked);
    if (bench_session_end(&session, &device_malloc_count)) return BASE_OK;
    return base_status_set(BASE_CHECK_FAILED, "%s: %s", name, session.failure);
}
