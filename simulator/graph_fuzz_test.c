// Random calls about capture and graphs, most of them wrong, in one host thread and in two: none
// crashes, none gives a code that CUDA would not give, and when the machine starts anew nothing is
// left of before.
//
//     graph_fuzz_test [SEEDS [FIRST]]      default: 150 from 1
//
// Runs with the sanitizers too. Every third run is checked for races, every fourth is in checked
// mode: those count for their own crashes.
#include "base/check.h"
#include "base/size.h"
#include "base/thread.h"
#include "simulator/graph_fuzz_call.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 400
#define RUNS_COMPARED 25
#define HELD_SLACK_BYTES 512 // some words that are kept are as long as numbers that grow

static struct fuzz_thread threads[2];
static uint64_t fault_count;

static void run_thread(void *argument) {
    struct fuzz_thread *thread = argument;
    for (int i = 0; i < CALLS && !thread->faulted; ++i)
        fuzz_call(thread);
}

static void machine_start(uint64_t seed) {
    char schedule[32] = "eager";
    if (seed % 3 == 1)
        snprintf(schedule, sizeof schedule, "lazy");
    else if (seed % 3 == 2)
        snprintf(schedule, sizeof schedule, "random:%" PRIu64, seed);
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    BASE_CHECK_EQ(
        sim_configure(&(struct sim_options){
            .device_count = 2,
            .capacity_bytes = 64 * BASE_MIB,
            .numerics = seed % 5 == 0 ? SIM_NUMERICS_OFF : SIM_NUMERICS_ON,
            .addresses = seed % 2 == 0 ? SIM_ADDRESSES_REUSED : SIM_ADDRESSES_ASCENDING,
            .checked = seed % 4 == 0,
        }),
        BASE_OK);
}

// As a new process would find it.
static void machine_is_new(void) {
    cudaGraph_t graph = NULL;
    size_t count = 0;
    uint64_t reserved = 99;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    sim_reset();
    BASE_CHECK_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    BASE_CHECK_EQ(sim_used_bytes(1), 0);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &reserved),
                  cudaSuccess);
    BASE_CHECK_EQ(reserved, 0);
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphGetNodes(graph, NULL, &count), cudaSuccess);
    BASE_CHECK_EQ(count, 0);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

static void run(uint64_t seed, int thread_count) {
    const bool races = seed % 3 == 0;
    base_check_context("seed %" PRIu64 ", threads %d", seed, thread_count);
    machine_start(seed);
    if (races)
        BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    fuzz_begin(seed);
    for (int i = 0; i < thread_count; ++i)
        threads[i].random = base_random_init(seed, i == 0 ? "graph_fuzz, 0" : "graph_fuzz, 1");
    struct base_thread second;
    if (thread_count == 2)
        base_thread_start(&second, run_thread, &threads[1]);
    run_thread(&threads[0]);
    if (thread_count == 2)
        base_thread_join(&second);
    for (int i = 0; i < thread_count; ++i) {
        fault_count += threads[i].faulted;
        threads[i].faulted = false;
    }
    if (races) {
        sim_race_stop();
        sim_race_clear();
    }
    machine_is_new();
}

// What the process holds once the machine is new again. Blocks that malloc keeps at hand for each
// thread count as held, so the test runs without these (BUILD). 0: not known.
static uint64_t held(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0;
#else
    const char *tunables = getenv("GLIBC_TUNABLES");
    return tunables != NULL && strstr(tunables, "tcache_count=0") != NULL ? mallinfo2().uordblks
                                                                          : 0;
#endif
}

// The same runs again, from the same place, for call sites are kept: all that may grow has grown.
// One block lost in each run would be seen.
static void runs_leave_nothing(uint64_t first, uint64_t seeds) {
    uint64_t after[2];
    for (int pass = 0; pass < 2; ++pass) {
        for (uint64_t seed = first; seed < first + seeds; ++seed)
            run(seed, 1);
        after[pass] = held();
    }
    printf("held after runs: %" PRIu64 " bytes, after the same again: %" PRIu64 "\n", after[0],
           after[1]);
    BASE_CHECK_LE(after[1], after[0] + HELD_SLACK_BYTES);
}

// A call that never succeeds is one that is not tested.
static void every_call_succeeds_and_fails(void) {
    for (int i = 0; i < fuzz_call_count(); ++i) {
        if (fuzz_succeeded[i] == 0)
            fprintf(stderr, "%s: made %" PRIu64 " times, never succeeded\n", fuzz_call_name(i),
                    fuzz_made[i]);
        BASE_CHECK_GE(fuzz_succeeded[i], 1);
    }
}

int main(int argc, char **argv) {
    const uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 150;
    const uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    printf("seeds %" PRIu64 " to %" PRIu64 "\n", first, first + seeds - 1);
    fflush(stdout);
    for (uint64_t seed = first; seed < first + seeds; ++seed)
        run(seed, seed % 2 == 0 ? 2 : 1);
    const uint64_t calls = threads[0].call_count + threads[1].call_count;
    printf("%" PRIu64 " calls, %" PRIu64 " of them succeeded; %" PRIu64 " faults\n", calls,
           threads[0].success_count + threads[1].success_count, fault_count);
    if (argc == 1)
        every_call_succeeds_and_fails();
    runs_leave_nothing(first, seeds < RUNS_COMPARED ? seeds : RUNS_COMPARED);
    return 0;
}
