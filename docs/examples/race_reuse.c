// A mistake that no run shows: a block of a caching allocator is read by a side stream when it goes
// back to its own stream's cache, where it is handed out again at once. docs/races.md tells its
// story.
//
//     race_reuse [REPORTS.jsonl]
//
// Runs the program as it is, then mended; reports go to standard error, and to the file.
#define SIM_CALL_SITES
#include "simulator/sim.h"

#include "allocator/cca.h"
#include "base/check.h"
#include "base/options.h"
#include "simulator/sim_race.h"
#include "workload/race_blocks.h"

#include <stdio.h>

#define SIZE ((size_t)1 << 20)

#define CALL(call) BASE_CHECK_EQ(call, cudaSuccess)
#define OK(call) BASE_CHECK_EQ(call, BASE_OK)

// The kernels do nothing: the checker goes by what their launches say. A macro, so that the line is
// that of the launch.
static void body(const void *argument) { (void)argument; }

#define LAUNCH(stream, kernel, memory, access)                                                     \
    CALL(sim_launch_kernel(                                                                        \
        stream,                                                                                    \
        &(struct sim_kernel){                                                                      \
            .name = kernel,                                                                        \
            .body = body,                                                                          \
            .accesses = &(struct sim_access){.mode = access, .pointer = memory, .size = SIZE},     \
            .access_count = 1}))

// Gradients are reduced in a stream of their own while the next layer computes.
static void step(struct allocator *allocator, cudaStream_t compute, cudaStream_t reduce,
                 cudaEvent_t ready, bool mended) {
    void *gradients, *activations;

    OK(allocator_malloc(allocator, 0, SIZE, compute, &gradients));
    LAUNCH(compute, "backward", gradients, SIM_ACCESS_WRITE);
    CALL(cudaEventRecord(ready, compute));
    CALL(cudaStreamWaitEvent(reduce, ready, 0));
    LAUNCH(reduce, "all_reduce", gradients, SIM_ACCESS_READ);
    if (mended)
        OK(allocator_record_stream(allocator, gradients, reduce));
    OK(allocator_free(allocator, gradients));

    OK(allocator_malloc(allocator, 0, SIZE, compute, &activations));
    LAUNCH(compute, "forward", activations, SIM_ACCESS_WRITE);
    OK(allocator_free(allocator, activations));
}

static void run(bool mended, const char *path) {
    struct allocator *caching, *allocator;
    cudaStream_t compute, reduce;
    cudaEvent_t ready;

    sim_reset();
    OK(sim_race_start(&(struct sim_race_options){.report_path = path}));
    OK(cca_allocator_create(&(struct cca_options){.config = ""}, &caching));
    OK(workload_race_blocks_create(caching, &allocator));
    CALL(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CALL(cudaStreamCreateWithFlags(&reduce, cudaStreamNonBlocking));
    CALL(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));

    step(allocator, compute, reduce, ready, mended);
    CALL(cudaDeviceSynchronize());
    sim_race_stop();
    printf("%s: %llu found\n", mended ? "with record_stream" : "as it is",
           (unsigned long long)sim_race_count(SIM_RACE_RULE_COUNT));

    allocator_destroy(allocator);
    allocator_destroy(caching);
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "race_reuse",
        .arguments = "[REPORTS.jsonl]",
        .summary = "A block handed out too early, and what the race checker says.",
        .argument_count_maximum = 1,
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    run(false, common.argument_count > 0 ? common.arguments[0] : NULL);
    run(true, NULL);
    return 0;
}
