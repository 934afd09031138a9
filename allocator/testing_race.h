// Work on blocks that the simulator's race checker sees, for tests that run with it: each block is
// written on the stream that it was taken for, and read on each that uses it. If the allocator
// hands it out again before that is ordered, or gives it back to the device, the checker says so.
#ifndef TIDEMARK_ALLOCATOR_TESTING_RACE_H
#define TIDEMARK_ALLOCATOR_TESTING_RACE_H

#include "base/check.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <stdio.h>

static inline void testing_race_start(void) {
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true, .blocks_only = true}),
                  BASE_OK);
}

// Nothing was found.
static inline void testing_race_stop(void) {
    sim_race_stop();
    if (sim_race_count(SIM_RACE_RULE_COUNT) > 0)
        printf("%s", sim_race_report_at(0)->text);
    (void)fflush(stdout);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0);
}

static inline void testing_race_body(const void *argument) { (void)argument; }

static inline void testing_race_touch(uint64_t block, enum sim_access_mode mode, void *pointer,
                                      size_t size, cudaStream_t stream) {
    const struct sim_access access = {
        .mode = mode, .pointer = pointer, .size = size, .block = block};
    BASE_CHECK_EQ(sim_launch_kernel(stream, &(struct sim_kernel){.name = "touch",
                                                                 .body = testing_race_body,
                                                                 .accesses = &access,
                                                                 .access_count = 1}),
                  cudaSuccess);
}

// A block that was handed out; the device is the current one. Its end is sim_block_give.
static inline uint64_t testing_race_take(void *pointer, size_t size, cudaStream_t stream) {
    const uint64_t block = sim_block_take(pointer, size, stream, NULL);
    testing_race_touch(block, SIM_ACCESS_WRITE, pointer, size, stream);
    return block;
}

// Its use on USER, behind what was done on STREAM; record_stream was called.
static inline void testing_race_use(uint64_t block, void *pointer, size_t size, cudaStream_t stream,
                                    cudaStream_t user) {
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    BASE_CHECK_EQ(cudaEventRecord(event, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(user, event, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaEventDestroy(event), cudaSuccess);
    testing_race_touch(block, SIM_ACCESS_READ, pointer, size, user);
    sim_block_use(block, user);
}

#endif
