// What captures and graphs cost, as they grow: a node captured (the stream and graph work of a step
// with forks and joins), a question about the capture, and a node replayed.
#include "bench/simulator_speed.h"

#include "base/check.h"

#include <stddef.h>

#define NODE_COUNT_MIN 1000
#define NODE_COUNT_MAX 1000000
#define REPLAY_COUNT_MAX 100000
#define SMOKE_COUNT_MAX 1000
#define QUESTIONS_PER_BATCH 100

static void must(cudaError_t error) { BASE_CHECK_EQ(error, cudaSuccess); }

// One of two streams goes on from the other's work, so that each node but the first has one or two
// dependencies, and the first stream has seen all at the end of each four.
static void four_nodes(void) {
    cudaStream_t main = speed_streams[0], side = speed_streams[1];
    must(sim_launch(main, "first", speed_empty_kernel, NULL, 0));
    must(cudaEventRecord(speed_events[0], main));
    must(cudaStreamWaitEvent(side, speed_events[0], 0));
    must(sim_launch(side, "side", speed_empty_kernel, NULL, 0));
    must(sim_launch(main, "beside", speed_empty_kernel, NULL, 0));
    must(cudaEventRecord(speed_events[1], side));
    must(cudaStreamWaitEvent(main, speed_events[1], 0));
    must(sim_launch(main, "joined", speed_empty_kernel, NULL, 0));
}

static void capture_begin(uint64_t node_count) {
    must(cudaStreamBeginCapture(speed_streams[0], cudaStreamCaptureModeRelaxed));
    for (uint64_t i = 0; i < node_count / 4; i++) four_nodes();
}

static cudaGraph_t capture_end(void) {
    cudaGraph_t graph;
    must(cudaStreamEndCapture(speed_streams[0], &graph));
    return graph;
}

static void measure_capture(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    uint64_t count, done = 0;
    speed_machine_start(measured, 2, SIM_NUMERICS_OFF);
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            size_t nodes;
            capture_begin(measured->count);
            cudaGraph_t graph = capture_end();
            must(cudaGraphGetNodes(graph, NULL, &nodes));
            if (nodes != measured->count)
                bench_fail(state, "%zu nodes of %llu", nodes, (unsigned long long)measured->count);
            must(cudaGraphDestroy(graph));
            done += measured->count;
        }
    bench_items(state, done);
    speed_machine_check(state, 2);
}

// Nodes that nothing orders, joined by the stream one after the other.
static void measure_join(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    uint64_t count, done = 0;
    speed_machine_start(measured, 1, SIM_NUMERICS_OFF);
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            enum cudaStreamCaptureStatus status;
            cudaGraph_t graph;
            size_t tip_count;
            must(cudaStreamBeginCapture(speed_streams[0], cudaStreamCaptureModeRelaxed));
            must(cudaStreamGetCaptureInfo(speed_streams[0], &status, NULL, &graph, NULL, NULL,
                                          NULL));
            for (uint64_t at = 0; at < measured->count; at++) {
                cudaGraphNode_t node;
                must(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
                must(cudaStreamUpdateCaptureDependencies(speed_streams[0], &node, NULL, 1,
                                                         cudaStreamAddCaptureDependencies));
            }
            must(cudaStreamGetCaptureInfo(speed_streams[0], &status, NULL, NULL, NULL, NULL,
                                          &tip_count));
            if (tip_count != measured->count) bench_fail(state, "%zu dependencies", tip_count);
            must(cudaGraphDestroy(capture_end()));
            done += measured->count;
        }
    bench_items(state, done);
    speed_machine_check(state, 1);
}

// Where the stream stands, and what comes before that: what an allocator asks at a free.
static void question(struct bench_state *state) {
    enum cudaStreamCaptureStatus status;
    unsigned long long id;
    cudaGraph_t graph;
    const cudaGraphNode_t *tips;
    cudaGraphNode_t before[4];
    size_t tip_count, before_count = 4;
    must(cudaStreamGetCaptureInfo(speed_streams[0], &status, &id, &graph, &tips, NULL, &tip_count));
    if (tip_count != 1) {
        bench_fail(state, "the stream has %zu dependencies", tip_count);
        return;
    }
    must(cudaGraphNodeGetDependencies(tips[0], before, NULL, &before_count));
    if (before_count != 2) bench_fail(state, "a node has %zu dependencies", before_count);
}

// What a free marker is: an empty node behind the stream's set, which then is the set; and a node
// that the stream goes on with, so that the next question finds what this one found.
static void marker(void) {
    enum cudaStreamCaptureStatus status;
    unsigned long long id;
    cudaGraph_t graph;
    const cudaGraphNode_t *tips;
    cudaGraphNode_t node;
    size_t tip_count;
    must(cudaStreamGetCaptureInfo(speed_streams[0], &status, &id, &graph, &tips, NULL, &tip_count));
    must(cudaGraphAddEmptyNode(&node, graph, tips, tip_count));
    must(cudaStreamUpdateCaptureDependencies(speed_streams[0], &node, NULL, 1,
                                             cudaStreamSetCaptureDependencies));
}

static void measure_in_capture(struct bench_state *state, const struct speed_case *measured,
                               bool marks) {
    uint64_t count;
    speed_machine_start(measured, 2, SIM_NUMERICS_OFF);
    capture_begin(measured->count);
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count * QUESTIONS_PER_BATCH; i++)
            if (marks)
                marker();
            else
                question(state);
    must(cudaGraphDestroy(capture_end()));
    speed_machine_check(state, 2);
}

static void measure_question(struct bench_state *state, void *argument) {
    measure_in_capture(state, argument, false);
}

static void measure_marker(struct bench_state *state, void *argument) {
    measure_in_capture(state, argument, true);
}

static void measure_replay(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    cudaGraphExec_t exec;
    uint64_t count;
    speed_machine_start(measured, 2, SIM_NUMERICS_OFF);
    capture_begin(measured->count);
    cudaGraph_t graph = capture_end();
    must(cudaGraphInstantiate(&exec, graph, 0));
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) must(cudaGraphLaunch(exec, speed_streams[0]));
    must(cudaDeviceSynchronize());
    must(cudaGraphExecDestroy(exec));
    must(cudaGraphDestroy(graph));
    speed_machine_check(state, 2);
}

void speed_cases_graph(void) {
    for (uint64_t count = NODE_COUNT_MIN; count <= NODE_COUNT_MAX; count *= 10) {
        if (speed_smoke && count > SMOKE_COUNT_MAX) break;
        speed_chase_add(SPEED_GROUP_CAPTURE, count);
        speed_case_add(SPEED_GROUP_CAPTURE, "capture", "eager", count, measure_capture)->per_batch =
            count;
        speed_case_add(SPEED_GROUP_CAPTURE, "join", "eager", count, measure_join)->per_batch =
            count;
        speed_case_add(SPEED_GROUP_CAPTURE, "question", "eager", count, measure_question)
            ->per_batch = QUESTIONS_PER_BATCH;
        speed_case_add(SPEED_GROUP_CAPTURE, "marker", "eager", count, measure_marker)->per_batch =
            QUESTIONS_PER_BATCH;
        if (count <= REPLAY_COUNT_MAX)
            speed_case_add(SPEED_GROUP_CAPTURE, "replay", "eager", count, measure_replay)
                ->per_batch = count;
    }
}
