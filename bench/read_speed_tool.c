// Reads one snapshot or trace and says what that cost: one reading a process, so that its peak
// memory is the reader's own. bench/read_speed.py runs it beside Python's pickle.load.
#include "base/options.h"
#include "trace/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

// Of this process, which has one thread.
static double cpu_time_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    struct base_common common = BASE_COMMON_DEFAULTS;
    const struct base_program program = {
        .name = "read_speed_tool",
        .arguments = "FILE",
        .summary = "Reads a snapshot or trace and prints CPU seconds and counts as JSON.",
        .argument_count_minimum = 1,
        .argument_count_maximum = 1};
    base_options_parse(&program, argc, argv, &common);
    struct trace *trace;
    const double start_s = cpu_time_s();
    const enum base_status status = trace_read(common.arguments[0], NULL, &trace);
    const double read_s = cpu_time_s() - start_s;
    if (status != BASE_OK) {
        fprintf(stderr, "read_speed_tool: %s\n", base_status_message());
        return base_status_exit_code(status);
    }
    printf("{\"seconds\": %.6f, \"events\": %zu, \"segments\": %zu, \"blocks\": %zu, \"stacks\": "
           "%" PRIu32 "}\n",
           read_s, trace->event_count, trace->segment_count, trace->block_count,
           trace->stack_count);
    trace_destroy(trace);
    return 0;
}
