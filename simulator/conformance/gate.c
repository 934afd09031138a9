// Gates. On the simulator a gate is a held stream: its work stays pending until it is released or a
// call waits for it. On a GPU it is a host function that waits for a flag, for a limited time.
#include "simulator/conformance/conformance.h"

#include "base/check.h"

#ifdef TIDEMARK_SIMULATOR

#include "simulator/sim.h"

void conformance_gate(struct conformance *c, cudaStream_t stream) {
    BASE_CHECK(c->gate_count < CONFORMANCE_OBJECT_COUNT_MAX);
    c->gates[c->gate_count++] = stream;
    sim_stream_hold(stream, true);
}

void conformance_open(struct conformance *c) {
    for (; c->gate_count > 0; --c->gate_count)
        if (cudaStreamQuery(c->gates[c->gate_count - 1]) != cudaErrorContextIsDestroyed)
            sim_stream_hold(c->gates[c->gate_count - 1], false);
    (void)cudaGetLastError();
}

#else

#include <stdatomic.h>
#include <time.h>

#define GATE_NS 200000000
#define STEP_NS 50000

static atomic_bool is_open;

static void wait_until_open(void *unused) {
    (void)unused;
    for (int64_t waited_ns = 0; !atomic_load(&is_open) && waited_ns < GATE_NS;
         waited_ns += STEP_NS)
        nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
}

void conformance_gate(struct conformance *c, cudaStream_t stream) {
    BASE_CHECK(c->gate_count < CONFORMANCE_OBJECT_COUNT_MAX);
    c->gates[c->gate_count++] = stream;
    atomic_store(&is_open, false);
    const cudaError_t error = cudaLaunchHostFunc(stream, wait_until_open, NULL);
    if (error != cudaSuccess)
        answer_code(c, "cudaLaunchHostFunc", error);
}

void conformance_open(struct conformance *c) {
    atomic_store(&is_open, true);
    c->gate_count = 0;
}

#endif
