// A pipeline of three streams under every schedule of the simulator: docs/simulator.md tells its
// story. Batches are uploaded, computed on and downloaded, with two buffers, so that all three go
// on at once; events keep the order. The program then leaves out one wait, which eager execution
// never shows.
//
//     simulator_order [TIMELINE.json]
//
// With a file name it writes the timeline of the timed schedule as well.
#include "base/check.h"
#include "base/options.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <stdlib.h>

#define BATCHES 4
#define BUFFERS 2
#define SEEDS 200

#define CALL(call) BASE_CHECK_EQ(call, cudaSuccess)

// What the kernel does: to[i] = 2 from[i] + 1.
struct work {
    const int *from;
    int *to;
    size_t count;
};

static void work_body(const void *argument) {
    const struct work *work = argument;
    const int *from = sim_device_bytes(work->from);
    int *to = sim_device_bytes(work->to);
    for (size_t i = 0; i < work->count; ++i)
        to[i] = 2 * from[i] + 1;
}

// A kernel that reads and writes its bytes once and takes longer than the upload.
static cudaError_t work_launch(cudaStream_t stream, const int *from, int *to, size_t count) {
    const struct work work = {from, to, count};
    return sim_launch_kernel(stream, &(struct sim_kernel){
                                         .name = "work",
                                         .body = work_body,
                                         .argument = &work,
                                         .argument_size = sizeof work,
                                         .bytes = 2 * count * sizeof(int),
                                         .flops = count * 6000,
                                     });
}

struct pipeline {
    size_t count; // numbers a batch
    bool compute_waits;
    int *host_in, *host_out, *in[BUFFERS], *out[BUFFERS];
    cudaStream_t upload, compute, download;
    cudaEvent_t uploaded[BUFFERS], computed[BUFFERS], downloaded[BUFFERS];
};

// Nothing is given back: the next start of the machine takes everything.
static void pipeline_init(struct pipeline *p) {
    const size_t bytes = p->count * sizeof(int);
    CALL(cudaMallocHost((void **)&p->host_in, BATCHES * bytes));
    CALL(cudaMallocHost((void **)&p->host_out, BATCHES * bytes));
    CALL(cudaStreamCreateWithFlags(&p->upload, cudaStreamNonBlocking));
    CALL(cudaStreamCreateWithFlags(&p->compute, cudaStreamNonBlocking));
    CALL(cudaStreamCreateWithFlags(&p->download, cudaStreamNonBlocking));
    for (int i = 0; i < BUFFERS; ++i) {
        CALL(cudaMalloc((void **)&p->in[i], bytes));
        CALL(cudaMalloc((void **)&p->out[i], bytes));
        CALL(cudaEventCreateWithFlags(&p->uploaded[i], cudaEventDisableTiming));
        CALL(cudaEventCreateWithFlags(&p->computed[i], cudaEventDisableTiming));
        CALL(cudaEventCreateWithFlags(&p->downloaded[i], cudaEventDisableTiming));
    }
    for (size_t i = 0; i < BATCHES * p->count; ++i)
        p->host_in[i] = (int)i;
}

// An event that was never recorded counts as complete, so the first batches wait for nothing.
static void batch_enqueue(struct pipeline *p, int batch) {
    const int i = batch % BUFFERS;
    const size_t start = (size_t)batch * p->count, bytes = p->count * sizeof(int);

    CALL(cudaStreamWaitEvent(p->upload, p->computed[i], 0));
    CALL(cudaMemcpyAsync(p->in[i], p->host_in + start, bytes, cudaMemcpyHostToDevice, p->upload));
    CALL(cudaEventRecord(p->uploaded[i], p->upload));

    if (p->compute_waits)
        CALL(cudaStreamWaitEvent(p->compute, p->uploaded[i], 0));
    CALL(cudaStreamWaitEvent(p->compute, p->downloaded[i], 0));
    CALL(work_launch(p->compute, p->in[i], p->out[i], p->count));
    CALL(cudaEventRecord(p->computed[i], p->compute));

    CALL(cudaStreamWaitEvent(p->download, p->computed[i], 0));
    CALL(cudaMemcpyAsync(p->host_out + start, p->out[i], bytes, cudaMemcpyDeviceToHost,
                         p->download));
    CALL(cudaEventRecord(p->downloaded[i], p->download));
}

// Returns how many numbers of the result are wrong.
static size_t pipeline_run(struct pipeline *p) {
    for (int batch = 0; batch < BATCHES; ++batch)
        batch_enqueue(p, batch);
    CALL(cudaStreamSynchronize(p->download));
    size_t wrong = 0;
    for (size_t i = 0; i < BATCHES * p->count; ++i)
        wrong += p->host_out[i] != 2 * (int)i + 1;
    return wrong;
}

// The machine as new, the schedule as TEXT says.
static size_t run_under(const char *text, bool compute_waits) {
    struct pipeline pipeline = {.count = 256, .compute_waits = compute_waits};
    BASE_CHECK_EQ(sim_schedule(text), BASE_OK);
    sim_reset();
    pipeline_init(&pipeline);
    return pipeline_run(&pipeline);
}

static void run_under_seeds(bool compute_waits) {
    int wrong_seeds = 0, first_seed = 0;
    char text[32];
    for (int seed = 1; seed <= SEEDS; ++seed) {
        snprintf(text, sizeof text, "random:%d", seed);
        if (run_under(text, compute_waits) == 0)
            continue;
        if (wrong_seeds++ == 0)
            first_seed = seed;
    }
    printf("  random  %s\n", wrong_seeds == 0            ? "right under every seed"
                             : wrong_seeds < SEEDS / 10 ? "wrong under a few seeds"
                                                        : "wrong under many seeds");
    if (wrong_seeds == 0)
        return;
    snprintf(text, sizeof text, "random:%d", first_seed);
    const size_t wrong = run_under(text, compute_waits);
    printf("  the first of them again: %s\n", run_under(text, compute_waits) == wrong
                                                  ? "the same numbers are wrong"
                                                  : "other numbers are wrong");
}

static void run_under_all(bool compute_waits) {
    printf("%s\n", compute_waits ? "all waits" : "compute does not wait for upload");
    printf("  eager   %s\n", run_under("eager", compute_waits) == 0 ? "right" : "wrong");
    printf("  lazy    %s\n", run_under("lazy", compute_waits) == 0 ? "right" : "wrong");
    run_under_seeds(compute_waits);
}

// 4 Mi numbers a batch.
static void run_on_the_clock(const char *timeline) {
    struct pipeline pipeline = {.count = (size_t)4 << 20, .compute_waits = true};
    BASE_CHECK_EQ(sim_profile("h200"), BASE_OK);
    BASE_CHECK_EQ(sim_schedule("timed"), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){0}), BASE_OK);
    BASE_CHECK_EQ(sim_transcript(timeline), BASE_OK);
    pipeline_init(&pipeline);
    const struct sim_interval before = sim_time_interval();
    const size_t wrong = pipeline_run(&pipeline);
    const struct sim_interval after = sim_time_interval();
    printf("on the clock of an H200\n");
    printf("  timed   %s, modelled %.2f ms (%.2f to %.2f)\n", wrong == 0 ? "right" : "wrong",
           (double)(after.typical_ns - before.typical_ns) / 1e6,
           (double)(after.low_ns - before.low_ns) / 1e6,
           (double)(after.high_ns - before.high_ns) / 1e6);
    BASE_CHECK_EQ(sim_transcript(NULL), BASE_OK);
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "simulator_order",
        .arguments = "[TIMELINE.json]",
        .summary = "Three streams under every schedule, with all waits and with one too few.",
        .argument_count_maximum = 1,
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    run_under_all(true);
    run_under_all(false);
    run_on_the_clock(common.argument_count > 0 ? common.arguments[0] : NULL);
    return 0;
}
