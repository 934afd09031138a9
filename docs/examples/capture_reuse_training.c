// Prints what docs/capture-reuse.md shows of a captured training step: the program `graphs`
// (workload/graphs.c) with a side stream, at its true size, under each form of reuse.
#include "allocator/create.h"
#include "base/check.h"
#include "base/options.h"
#include "base/size.h"
#include "simulator/sim.h"
#include "workload/program.h"

#include <stdio.h>

#define OK(call) BASE_CHECK_EQ(call, BASE_OK)

static void print_run(const struct workload_program *chosen, const char *variant, const char *name,
                      const char *config) {
    struct allocator *allocator;
    struct workload_result result;
    struct allocator_stats stats;
    OK(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}));
    OK(allocator_create(config, -1, &allocator));
    OK(workload_program_run(chosen,
                            &(struct workload_options){.allocator = allocator,
                                                       .variant = variant,
                                                       .size = WORKLOAD_TRUE,
                                                       .seed = 1,
                                                       .without_values = true},
                            &result));
    OK(allocator_stats(allocator, 0, &stats));
    printf("%-12s  %-10s  %13lld  %12lld\n", variant, name,
           (long long)(stats.allocated_bytes[ALLOCATOR_STAT_ALL].peak / (int64_t)BASE_MIB),
           (long long)(stats.reserved_bytes[ALLOCATOR_STAT_ALL].peak / (int64_t)BASE_MIB));
    allocator_destroy(allocator);
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "capture_reuse_training",
        .summary = "What a captured training step with a side stream takes under each form of "
                   "reuse.",
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    const struct workload_program *chosen;
    base_options_parse(&program, argc, argv, &common);
    OK(workload_program_find("graphs", &chosen));
    printf("step          reuse       allocated MiB  reserved MiB\n");
    print_run(chosen, "step", "off", "");
    print_run(chosen, "streams", "off", "");
    print_run(chosen, "streams", "first form", "x_capture_reuse:markers");
    print_run(chosen, "streams", "current", "graph_capture_record_stream_reuse:True");
    return 0;
}
