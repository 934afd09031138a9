// See capture_results.h.
#include "bench/capture_results.h"

#include "base/progress.h"
#include "bench/shim.h"

#include <stdarg.h>
#include <stdio.h>

static struct {
    struct bench_results *results;
    struct base_progress progress;
    size_t done;
    bool json;
} state;

void capture_results_begin(bool json, size_t case_count) {
    state.results = bench_results_create();
    state.json = json;
    state.done = 0;
    base_progress_begin(&state.progress, "capture", case_count);
}

void capture_say(const char *format, ...) {
    va_list arguments;
    if (state.json) return;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
}

size_t capture_result(const char *label, const double *round_ns, int round_count, const char *name,
                      ...) {
    char text[64];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(text, sizeof text, name, arguments);
    va_end(arguments);
    return bench_results_add(state.results, text, label, round_ns, round_count);
}

void capture_counter(size_t result, const char *name, double value) {
    bench_results_counter(state.results, result, name, value);
}

void capture_cases_done(size_t count) {
    state.done += count;
    base_progress_update(&state.progress, state.done);
}

enum base_status capture_results_end(enum base_status status, const char *folder) {
    base_progress_end(&state.progress);
    if (status == BASE_OK && state.json)
        status = bench_results_publish_json(state.results, folder, "capture.json");
    else if (status == BASE_OK && folder != NULL)
        status = bench_results_publish(state.results, folder, "capture.json");
    bench_results_destroy(state.results);
    state.results = NULL;
    return status;
}
