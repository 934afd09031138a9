// A captured step of two streams as a picture: docs/simulator.md shows it.
//
//     graph_picture STEP.dot
//     dot -Tsvg STEP.dot > step.svg
//
// A batch is uploaded, two layers of work follow, and the first layer's result is reduced on the
// side while the second runs. The race checker is on: so each box says which memory it touches, in
// which block, and who submitted it; and a race would end the program with status 1.
#define SIM_CALL_SITES
#include "base/check.h"
#include "base/options.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <inttypes.h>
#include <stdio.h>

#define COUNT 1024
#define BYTES (COUNT * sizeof(float))
#define LAUNCHES 3

#define CALL(call) BASE_CHECK_EQ(call, cudaSuccess)

// to[i] = from[i] + by
struct work {
    const float *from;
    float *to;
    float by;
};

static void work_body(const void *argument) {
    const struct work *work = argument;
    const float *from = sim_device_bytes(work->from);
    float *to = sim_device_bytes(work->to);
    for (size_t i = 0; i < COUNT; ++i)
        to[i] = from[i] + work->by;
}

static void launch(cudaStream_t stream, const char *name, const struct work *work) {
    const struct sim_access accesses[] = {{.mode = SIM_ACCESS_READ, work->from, BYTES},
                                          {.mode = SIM_ACCESS_WRITE, work->to, BYTES}};
    CALL(sim_launch_kernel(stream, &(struct sim_kernel){.name = name,
                                                        .body = work_body,
                                                        .argument = work,
                                                        .argument_size = sizeof *work,
                                                        .accesses = accesses,
                                                        .access_count = 2}));
}

static float *batch, *total; // page-locked

static void batch_fill(void *number) {
    ++*(float *)number;
    for (size_t i = 0; i < COUNT; ++i)
        batch[i] = *(float *)number;
}

static cudaGraph_t step_capture(cudaStream_t compute, cudaStream_t side, float *memory,
                                float *number) {
    float *input = memory, *layer = memory + COUNT, *output = memory + 2 * COUNT;
    const struct sim_access fills = {.mode = SIM_ACCESS_WRITE, batch, BYTES};
    cudaEvent_t half, reduced;
    cudaGraph_t graph;
    void *temporary;
    CALL(cudaEventCreateWithFlags(&half, cudaEventDisableTiming));
    CALL(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    CALL(cudaStreamBeginCapture(compute, cudaStreamCaptureModeGlobal));
    sim_next_accesses(&fills, 1);
    CALL(cudaLaunchHostFunc(compute, batch_fill, number));
    CALL(cudaMemcpyAsync(input, batch, BYTES, cudaMemcpyHostToDevice, compute));
    launch(compute, "layer 1", &(struct work){input, layer, 1});
    CALL(cudaEventRecord(half, compute));

    CALL(cudaStreamWaitEvent(side, half, 0));
    CALL(cudaMallocAsync(&temporary, BYTES, side));
    launch(side, "reduce", &(struct work){layer, temporary, 0});
    CALL(cudaMemcpyAsync(total, temporary, BYTES, cudaMemcpyDeviceToHost, side));
    CALL(cudaFreeAsync(temporary, side));
    CALL(cudaEventRecord(reduced, side));

    launch(compute, "layer 2", &(struct work){layer, output, 1});
    CALL(cudaStreamWaitEvent(compute, reduced, 0));
    CALL(cudaMemsetAsync(layer, 0, BYTES, compute)); // behind both that read it
    CALL(cudaStreamEndCapture(compute, &graph));
    return graph;
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "graph_picture",
        .arguments = "STEP.dot",
        .summary = "Captures a step of two streams, draws it, and launches it.",
        .argument_count_minimum = 1,
        .argument_count_maximum = 1,
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    cudaStream_t compute, side;
    cudaGraphExec_t step;
    float *memory, number = 0;
    base_options_parse(&program, argc, argv, &common);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.fail = true}), BASE_OK);
    CALL(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CALL(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    CALL(cudaMalloc((void **)&memory, 3 * BYTES));
    CALL(cudaMallocHost((void **)&batch, BYTES));
    CALL(cudaMallocHost((void **)&total, BYTES));
    sim_block_take(memory, BYTES, compute, "input");
    sim_block_take(memory + COUNT, BYTES, compute, "layer");
    sim_block_take(memory + 2 * COUNT, BYTES, compute, "output");

    const cudaGraph_t graph = step_capture(compute, side, memory, &number);
    CALL(cudaGraphDebugDotPrint(graph, common.arguments[0], 0));
    CALL(cudaGraphInstantiate(&step, graph, 0));
    CALL(cudaGraphDestroy(graph));
    for (int i = 1; i <= LAUNCHES; ++i) {
        CALL(cudaGraphLaunch(step, compute));
        CALL(cudaStreamSynchronize(compute));
        printf("launch %d: the total is %g\n", i, (double)total[0]);
    }
    sim_race_stop();
    printf("%" PRIu64 " races\n", sim_race_count(SIM_RACE_RULE_COUNT));
    return 0;
}
