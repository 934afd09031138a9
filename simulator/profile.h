// Device profiles: what a simulated device is and what it costs, as text with the source of each
// figure. Those of profiles/ are part of the program and chosen by name; others are files. One
// figure a line:
//
//     FIGURE  VALUE [UNIT]              | SOURCE
//     FIGURE  LOW TYPICAL HIGH [UNIT]   | SOURCE
//
//     name                Some device   | all words up to the bar
//     capability          9.0           | two numbers
//     capacity            80GiB         | a size
//     copy_engines        3             | a plain number
//     call.cudaMalloc     5 50 132 us   | host time of a call; ns, us, ms, s
//     page.cudaMalloc     1 30 111 us   | besides, for each 2 MiB page of it
//     node.cudaGraphLaunch  1 ns        | besides, for each node of the graph
//     device_bandwidth    4300 GB/s     | GB/s or TB/s; GFLOP/s or TFLOP/s
//
// "#" at the start of a line is a comment. Every figure is needed, once; but a kind of call without
// a line costs what call.other says, and no pages or nodes.
#ifndef TIDEMARK_SIMULATOR_PROFILE_H
#define TIDEMARK_SIMULATOR_PROFILE_H

#include "simulator/cost.h"

#define SIM__PROFILE_NAME_SIZE 256 // as in struct cudaDeviceProp

struct sim__profile {
    char name[SIM__PROFILE_NAME_SIZE];
    int capability_major, capability_minor;
    uint64_t capacity_bytes;
    // What only cudaGetDeviceProperties tells.
    uint64_t multiprocessors, memory_bus_bits, l2_cache_bytes;
    uint64_t shared_memory_multiprocessor_bytes, shared_memory_block_bytes, blocks_multiprocessor;
    struct sim__costs costs[SIM__LEVEL_COUNT];
};

// The one in force; at first that of a device of no maker, with the costs of a100-80gb. Guarded by
// the simulator's lock.
const struct sim__profile *sim__profile(void);

// Takes TIDEMARK_SIM_PROFILE, if it is set and the program chose none.
enum base_status sim__profile_from_environment(void);

// --- profile_read.c ---

// Reads TEXT, which came from PATH, into *profile. BASE_FORMAT names path, line and what would be
// right; *profile is then undefined.
enum base_status sim__profile_parse(const char *path, const char *text,
                                    struct sim__profile *profile) BASE_MUST_USE;

// --- profile_data.c: the profiles of profiles/ ---

struct sim__profile_text {
    const char *name, *text;
};
extern const struct sim__profile_text sim__profile_texts[];
extern const size_t sim__profile_text_count;

#endif
