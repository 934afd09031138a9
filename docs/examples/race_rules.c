// Each rule of the race checker with a program of a few lines that breaks it; docs/races.md shows
// them.
//
//     race_rules           runs all, and prints which rules each one broke
#define SIM_CALL_SITES
#include "simulator/sim.h"

#include "base/check.h"
#include "base/options.h"
#include "simulator/sim_race.h"

#include <stdio.h>

#define SIZE 4096

static cudaStream_t a, b; // non-blocking
static cudaEvent_t event;
static cudaGraph_t graph;
static cudaGraphExec_t exec;
static char *x;    // device memory, written
static char *host; // page-locked
static void *p;

static void body(const void *argument) { (void)argument; }

#define LAUNCH(stream, kernel, memory, access)                                                     \
    sim_launch_kernel(                                                                             \
        stream,                                                                                    \
        &(struct sim_kernel){                                                                      \
            .name = kernel,                                                                        \
            .body = body,                                                                          \
            .accesses = &(struct sim_access){.mode = access, .pointer = memory, .size = SIZE},     \
            .access_count = 1})
#define writes(stream, memory) LAUNCH(stream, "writes", memory, SIM_ACCESS_WRITE)
#define reads(stream, memory) LAUNCH(stream, "reads", memory, SIM_ACCESS_READ)

// Later work of BEHIND comes after what FIRST has now.
static void order(cudaStream_t first, cudaStream_t behind) {
    BASE_CHECK_EQ(cudaEventRecord(event, first), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(behind, event, 0), cudaSuccess);
}

static void write_write(void) {
    writes(a, x);
    writes(b, x);
}

static void read_write(void) {
    cudaEventRecord(event, a); // too early
    writes(a, x);
    cudaStreamWaitEvent(b, event, 0);
    reads(b, x);
}

static void host_access(void) {
    cudaMemcpyAsync(x, host, SIZE, cudaMemcpyHostToDevice, a);
    sim_host_access(host, SIZE, true); // host[0] = ... follows
}

static void reuse(void) {
    uint64_t first = sim_block_take(x, SIZE, a, "first");
    writes(a, x);
    order(a, b);
    reads(b, x);
    sim_block_give(first); // without sim_block_use(first, b)
    sim_block_take(x, SIZE, a, "second");
    writes(a, x);
}

static void use_after_free(void) {
    cudaMallocAsync(&p, SIZE, a);
    order(a, b);
    writes(b, p);
    cudaFreeAsync(p, a); // a does not wait for b
}

static void use_before_alloc(void) {
    cudaMallocAsync(&p, SIZE, a);
    writes(b, p);
}

static void unmapped(void) {
    writes(a, x + SIZE / 2); // SIZE bytes from there
}

static void uninitialised(void) {
    cudaMalloc(&p, SIZE);
    reads(a, p);
}

static void graph_memory(void) {
    cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal);
    uint64_t temporary = sim_block_take(x, SIZE, a, "of the graph");
    writes(a, x);
    sim_block_give(temporary);
    cudaStreamEndCapture(a, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    sim_block_take(x, SIZE, a, "of others");
    cudaGraphLaunch(exec, a);
}

static void start(void) {
    sim_reset();
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc((void **)&x, SIZE), cudaSuccess);
    BASE_CHECK_EQ(cudaMallocHost((void **)&host, SIZE), cudaSuccess);
    BASE_CHECK(sim_host_access(host, SIZE, true));
    BASE_CHECK_EQ(cudaMemset(x, 0, SIZE), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

static void run(const char *name, void (*program)(void)) {
    start();
    program();
    sim_race_stop();
    printf("%s:", name);
    for (int rule = 0; rule < SIM_RACE_RULE_COUNT; ++rule)
        if (sim_race_count((enum sim_race_rule)rule) > 0)
            printf(" %s", sim_race_rule_name((enum sim_race_rule)rule));
    printf("\n");
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "race_rules",
        .summary = "Each rule of the race checker with a program that breaks it.",
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    run("write_write", write_write);
    run("read_write", read_write);
    run("host_access", host_access);
    run("reuse", reuse);
    run("use_after_free", use_after_free);
    run("use_before_alloc", use_before_alloc);
    run("unmapped", unmapped);
    run("uninitialised", uninitialised);
    run("graph_memory", graph_memory);
    return 0;
}
