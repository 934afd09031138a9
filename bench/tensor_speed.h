// What is measured of the tensor, for the files of this benchmark: tensor_speed.c (the program and
// its table), tensor_speed_host.c (views, empty tensors, operators whose work is only accounted),
// tensor_speed_work.c (products and element work).
#ifndef TIDEMARK_BENCH_TENSOR_SPEED_H
#define TIDEMARK_BENCH_TENSOR_SPEED_H

#include "bench/shim.h"
#include "simulator/sim.h"
#include "tensor/tensor.h"

#include <stdint.h>

#define SPEED_BESIDE_MAX 2

struct speed_case {
    char name[48];
    void (*measure)(struct bench_state *state, void *argument); // the case is its argument
    int what;                                                   // of the measure's own
    int64_t size;                                               // rows and columns of a product
    enum tensor_device_kind kind;                               // where the tensors are
    uint64_t operations;                                        // of one iteration
    // The limit: at_most times what the others take together, BESIDE_TIMES times each; or so many
    // operations a second. 0: told without one.
    double at_most, per_second_min;
    int beside_count;
    const struct speed_case *beside[SPEED_BESIDE_MAX];
    double beside_times[SPEED_BESIDE_MAX];
};

// One operation an iteration, on the simulated device, without a limit.
struct speed_case *speed_case_add(const char *name, void (*measure)(struct bench_state *, void *));
void speed_case_limit(struct speed_case *limited, double at_most, const struct speed_case *beside);

// A new machine, and an allocator of its own for the place.
struct tensor_place speed_place_begin(enum tensor_device_kind kind, enum sim_numerics numerics);
// Fails the benchmark if a block is left or a call of the device failed.
void speed_place_end(struct bench_state *state, struct tensor_place *place);

// What CALL returns has to be BASE_OK; never told as a time otherwise.
#define SPEED_OK(call) BASE_CHECK_EQ(call, BASE_OK)

void speed_cases_host(void);
void speed_cases_work(void);

#endif
