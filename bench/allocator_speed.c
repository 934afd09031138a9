// What the caching allocator costs on the host, beside the limits that it is held to.
#include "bench/allocator_speed.h"
#include "base/options.h"
#include "base/progress.h"
#include "bench/companion.h"
#include "bench/device.h"
#include "bench/pin.h"

#include <stdio.h>

static const char *only, *subject = "caching";
static uint64_t iterations = 1000000;
static bool two_threads;

static const struct base_option options[] = {
    {"only", "PATTERN", BASE_OPTION_TEXT, &only,
     "play one pattern and measure nothing, for a profiler: window_512, window_64k, window_4m, "
     "pair_512, pair_4m, mixed, transformer, record_stream"},
    {"subject", "NAME", BASE_OPTION_TEXT, &subject,
     "with --only: caching (default), mutex_list, ideal_list, no_list"},
    {"iterations", "N", BASE_OPTION_COUNT, &iterations,
     "with --only: allocations with their frees, of transformer whole steps (default 1000000)"},
    {"two-threads", NULL, BASE_OPTION_FLAG, &two_threads, "with --only: two threads on one stream"},
    {0}};

static const struct base_program program = {
    .name = "allocator",
    .summary = "Plays an access pattern on the caching allocator.",
    .common = BASE_COMMON_SEED | BASE_COMMON_CAPACITY,
    .options = options,
};

static enum base_status run(const struct base_common *common) {
    const enum base_status status = bench_device_prepare(&program, common, 0);
    int cpu;
    if (status != BASE_OK) return status;
    if (bench_pin_thread(0, &cpu) != BASE_OK)
        fprintf(stderr, "allocator: %s\n", base_status_message());
    return speed_only(only, subject, iterations, two_threads);
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    base_interrupt_install();
    if (only == NULL) base_options_usage_error(&program, "--only PATTERN is needed");
    speed_patterns_init(common.seed);
    bench_companion_begin();
    const enum base_status status = run(&common);
    bench_companion_end();
    speed_patterns_deinit();
    if (status == BASE_OK) return 0;
    fprintf(stderr, "allocator: %s\n", base_status_message());
    return base_status_exit_code(status);
}
