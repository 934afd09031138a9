// Launches of graphs one property at a time: what the host sees of them, what they do with events,
// copies, changes and errors, and what becomes of pending ones.
#include "base/check.h"
#include "base/file.h"
#include "base/thread.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL(call) BASE_CHECK_EQ(call, cudaSuccess)

static char trail[256];

static void note(void *letter) { strncat(trail, letter, sizeof trail - strlen(trail) - 1); }

static void trail_is(const char *want) {
    base_check_context("trail is %s", trail);
    BASE_CHECK(strcmp(trail, want) == 0);
    base_check_context(NULL);
    trail[0] = '\0';
}

static void machine_start(const char *schedule) {
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = 2,
                                                      .capacity_bytes = (uint64_t)1 << 30}),
                  BASE_OK);
    trail[0] = '\0';
}

static cudaStream_t stream_new(void) {
    cudaStream_t stream;
    CALL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static cudaGraphNode_t note_add(cudaGraph_t graph, const char *letter, cudaGraphNode_t after) {
    cudaGraphNode_t node;
    const struct cudaHostNodeParams parameters = {note, (void *)(uintptr_t)letter};
    CALL(cudaGraphAddHostNode(&node, graph, &after, after != NULL ? 1 : 0, &parameters));
    return node;
}

static cudaGraph_t graph_new(void) {
    cudaGraph_t graph;
    CALL(cudaGraphCreate(&graph, 0));
    return graph;
}

// Of GRAPH, which goes.
static cudaGraphExec_t exec_of(cudaGraph_t graph) {
    cudaGraphExec_t exec;
    CALL(cudaGraphInstantiate(&exec, graph, 0));
    CALL(cudaGraphDestroy(graph));
    return exec;
}

// LETTERS one after the other.
static cudaGraphExec_t chain_of(const char *const *letters) {
    cudaGraph_t graph = graph_new();
    cudaGraphNode_t last = NULL;
    for (; *letters != NULL; ++letters)
        last = note_add(graph, *letters, last);
    return exec_of(graph);
}

static const char *const ab[] = {"a", "b", NULL};
static const char *const cd[] = {"c", "d", NULL};

static void note_in(cudaStream_t stream, const char *letter) {
    CALL(cudaLaunchHostFunc(stream, note, (void *)(uintptr_t)letter));
}

// --- What the host sees ---

static void nothing_runs_before_it_is_needed_under_lazy(void) {
    machine_start("lazy");
    cudaStream_t s = stream_new();
    cudaGraphExec_t exec = chain_of(ab);
    note_in(s, "x");
    CALL(cudaGraphLaunch(exec, s));
    note_in(s, "y");
    trail_is("");
    BASE_CHECK_EQ(sim_stream_pending(s), 3);
    CALL(cudaStreamSynchronize(s));
    trail_is("xaby");
}

static void a_launch_is_one_item_of_a_held_stream(void) {
    static const char *const schedules[] = {"eager", "lazy", "random:1", "timed"};
    for (int i = 0; i < 4; ++i) {
        machine_start(schedules[i]);
        cudaStream_t s = stream_new();
        cudaGraphExec_t exec = chain_of(ab);
        sim_stream_hold(s, true);
        note_in(s, "x");
        CALL(cudaGraphLaunch(exec, s));
        CALL(cudaGraphLaunch(exec, s));
        note_in(s, "y");
        trail_is("");
        BASE_CHECK_EQ(sim_stream_pending(s), 4);
        BASE_CHECK_EQ(sim_stream_run(s, 2), 2);
        trail_is("xab");
        BASE_CHECK_EQ(sim_stream_pending(s), 2);
        BASE_CHECK_EQ(cudaStreamQuery(s), cudaErrorNotReady);
        BASE_CHECK_EQ(sim_stream_run(s, 9), 2);
        trail_is("aby");
        BASE_CHECK_EQ(sim_stream_pending(s), 0);
        CALL(cudaGraphLaunch(exec, s));
        trail_is("");
        CALL(cudaStreamSynchronize(s)); // forces it, held or not
        trail_is("ab");
    }
}

// The second launch is behind the first one in a held stream.
static void a_launch_waits_for_the_executables_launch_in_a_held_stream(void) {
    machine_start("eager");
    cudaStream_t s = stream_new(), t = stream_new();
    cudaGraphExec_t exec = chain_of(ab), other = chain_of(cd);
    sim_stream_hold(s, true);
    CALL(cudaGraphLaunch(exec, s));
    CALL(cudaGraphLaunch(exec, t));
    CALL(cudaGraphLaunch(other, t));
    BASE_CHECK_EQ(cudaStreamQuery(t), cudaErrorNotReady);
    BASE_CHECK_EQ(sim_stream_run(t, 1), 0);
    trail_is("");
    sim_stream_hold(s, false);
    trail_is("ababcd");
}

static void polling_ends_under_lazy(void) {
    machine_start("lazy");
    cudaStream_t s = stream_new();
    CALL(cudaGraphLaunch(chain_of(ab), s));
    int polls = 0;
    while (cudaStreamQuery(s) != cudaSuccess)
        BASE_CHECK_LT(++polls, 10);
    trail_is("ab");
}

static void refused_launches_leave_nothing(void) {
    machine_start("eager");
    cudaStream_t s = stream_new();
    cudaGraphExec_t exec = chain_of(ab);
    cudaGraph_t graph;
    BASE_CHECK_EQ(cudaGraphLaunch(NULL, s), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphUpload(NULL, s), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, (cudaStream_t)(uintptr_t)77),
                  cudaErrorInvalidResourceHandle);
    CALL(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    BASE_CHECK_EQ(cudaGraphLaunch(exec, s), cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureInvalidated);
    CALL(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    BASE_CHECK_EQ(cudaGraphUpload(exec, s), cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureInvalidated);
    CALL(cudaGraphExecDestroy(exec));
    BASE_CHECK_EQ(cudaGraphLaunch(exec, s), cudaErrorInvalidValue);
    trail_is("");
    cudaGetLastError();
}

// --- Pending launches and what goes meanwhile ---

static void a_destroyed_executable_runs_to_its_end(void) {
    machine_start("lazy");
    cudaStream_t s = stream_new();
    cudaGraphExec_t exec = chain_of(ab);
    CALL(cudaGraphLaunch(exec, s));
    CALL(cudaGraphLaunch(exec, s));
    CALL(cudaGraphExecDestroy(exec));
    CALL(cudaStreamDestroy(s));
    CALL(cudaDeviceSynchronize());
    trail_is("abab");
}

static void the_machine_restarts_over_pending_launches(void) {
    machine_start("lazy");
    cudaGraphExec_t exec = chain_of(ab);
    CALL(cudaGraphLaunch(exec, stream_new()));
    CALL(cudaGraphLaunch(exec, NULL));
    CALL(cudaGraphExecDestroy(exec));
    CALL(cudaGraphLaunch(chain_of(cd), NULL));
    machine_start("lazy");
    CALL(cudaDeviceSynchronize());
    trail_is("");
    CALL(cudaGraphLaunch(chain_of(cd), NULL));
    CALL(cudaDeviceReset());
    trail_is("cd");
}

static void pending_launches_keep_what_their_nodes_were(void) {
    cudaGraphNode_t node;
    cudaGraphExec_t exec;
    static const char *const letters[] = {"a", "b", "c"};
    machine_start("lazy");
    cudaStream_t s = stream_new();
    cudaGraph_t graph = graph_new();
    node = note_add(graph, letters[0], NULL);
    CALL(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; ++i) {
        const struct cudaHostNodeParams parameters = {note, (void *)(uintptr_t)letters[i]};
        CALL(cudaGraphExecHostNodeSetParams(exec, node, &parameters));
        CALL(cudaGraphLaunch(exec, s)); // pending, with what it is now
    }
    trail_is("");
    CALL(cudaStreamSynchronize(s));
    trail_is("abc");
}

struct sum {
    int *to;
    int amount;
};
static void sum_run(const void *argument) {
    const struct sum *sum = argument;
    *sum->to += sum->amount;
}

static void a_changed_kernel_is_another_one_for_later_launches(void) {
    int total = 0;
    cudaGraphNode_t node;
    cudaGraphExec_t exec;
    machine_start("lazy");
    cudaStream_t s = stream_new();
    cudaGraph_t graph = graph_new();
    struct sum sum = {&total, 1};
    struct sim_kernel kernel = {
        .name = "sum", .body = sum_run, .argument = &sum, .argument_size = sizeof sum};
    CALL(sim_graph_add_kernel(&node, graph, NULL, 0, &kernel));
    CALL(cudaGraphInstantiate(&exec, graph, 0));
    CALL(cudaGraphLaunch(exec, s));
    sum.amount = 10;
    CALL(sim_graph_exec_kernel_set(exec, node, &kernel));
    CALL(cudaGraphLaunch(exec, s));
    sum.amount = 100;
    CALL(sim_graph_exec_kernel_set(exec, node, &kernel)); // never launched
    CALL(cudaGraphExecDestroy(exec));
    CALL(cudaGraphDestroy(graph));
    CALL(cudaStreamSynchronize(s));
    BASE_CHECK_EQ(total, 11);
}

static void a_node_that_is_not_enabled_keeps_its_edges(void) {
    int total = 0;
    cudaGraphNode_t kernel_node;
    cudaGraphExec_t exec;
    machine_start("random:5");
    cudaGraph_t graph = graph_new();
    cudaGraphNode_t first = note_add(graph, "a", NULL);
    struct sum sum = {&total, 1};
    const struct sim_kernel kernel = {
        .name = "sum", .body = sum_run, .argument = &sum, .argument_size = sizeof sum};
    CALL(sim_graph_add_kernel(&kernel_node, graph, &first, 1, &kernel));
    note_add(graph, "b", kernel_node);
    CALL(cudaGraphInstantiate(&exec, graph, 0));
    CALL(cudaGraphNodeSetEnabled(exec, kernel_node, 0));
    for (int i = 0; i < 20; ++i)
        CALL(cudaGraphLaunch(exec, NULL));
    CALL(cudaDeviceSynchronize());
    BASE_CHECK_EQ(total, 0);
    trail_is("abababababababababababababababababababab");
    CALL(cudaGraphNodeSetEnabled(exec, kernel_node, 1));
    CALL(cudaGraphLaunch(exec, NULL));
    CALL(cudaDeviceSynchronize());
    BASE_CHECK_EQ(total, 1);
}

// --- What nodes do ---

static void copies_and_fills_read_their_source_at_each_replay(void) {
    int source = 1, seen = 0, *device_memory;
    cudaGraphNode_t nodes[3];
    cudaStream_t stream;
    machine_start("lazy");
    cudaGraph_t graph = graph_new();
    CALL(cudaStreamCreate(&stream));
    CALL(cudaMalloc((void **)&device_memory, 8));
    CALL(cudaGraphAddMemcpyNode1D(&nodes[0], graph, NULL, 0, device_memory, &source, 4,
                                  cudaMemcpyHostToDevice));
    const struct cudaMemsetParams fill = {
        .dst = (char *)device_memory + 2, .value = 0x55, .elementSize = 1, .width = 1, .height = 1};
    CALL(cudaGraphAddMemsetNode(&nodes[1], graph, &nodes[0], 1, &fill));
    CALL(cudaGraphAddMemcpyNode1D(&nodes[2], graph, &nodes[1], 1, &seen, device_memory, 4,
                                  cudaMemcpyDeviceToHost));
    cudaGraphExec_t exec = exec_of(graph);
    for (int i = 0; i < 3; ++i) {
        source = 100 + i; // pageable, and read when the node runs
        CALL(cudaGraphLaunch(exec, stream));
        source = 200 + i;
        CALL(cudaStreamSynchronize(stream));
        BASE_CHECK_EQ(seen, (200 + i) | 0x550000);
    }
}

static void child_graphs_run_in_their_place(void) {
    cudaGraphNode_t child_node;
    machine_start("random:9");
    cudaGraph_t child = graph_new(), graph = graph_new();
    note_add(child, "c", note_add(child, "b", NULL));
    cudaGraphNode_t first = note_add(graph, "a", NULL);
    CALL(cudaGraphAddChildGraphNode(&child_node, graph, &first, 1, child));
    note_add(graph, "d", child_node);
    cudaGraphExec_t exec = exec_of(graph);
    for (int i = 0; i < 10; ++i)
        CALL(cudaGraphLaunch(exec, NULL));
    CALL(cudaDeviceSynchronize());
    trail_is("abcdabcdabcdabcdabcdabcdabcdabcdabcdabcd");
}

static void an_event_node_records_at_each_replay(void) {
    cudaEvent_t start, end;
    cudaGraphNode_t record;
    float milliseconds;
    machine_start("lazy");
    cudaStream_t s = stream_new(), t = stream_new();
    CALL(cudaEventCreate(&start));
    CALL(cudaEventCreate(&end));
    cudaGraph_t graph = graph_new();
    CALL(cudaGraphAddEventRecordNode(&record, graph, NULL, 0, start));
    cudaGraphNode_t a = note_add(graph, "a", record);
    CALL(cudaGraphAddEventRecordNode(&record, graph, &a, 1, end));
    note_add(graph, "b", record);
    cudaGraphExec_t exec = exec_of(graph);
    BASE_CHECK_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
    for (int i = 0; i < 2; ++i) {
        CALL(cudaGraphLaunch(exec, s));
        BASE_CHECK_EQ(cudaEventQuery(end), cudaErrorNotReady);
        CALL(cudaStreamWaitEvent(t, end, 0));
        note_in(t, "x");
        CALL(cudaEventSynchronize(end)); // what comes before the record, and no more
        trail_is("a");
        CALL(cudaEventQuery(end));
        CALL(cudaStreamSynchronize(t));
        trail_is("x");
        CALL(cudaEventElapsedTime(&milliseconds, start, end));
        BASE_CHECK(milliseconds > 0.0005f && milliseconds < 0.0015f); // one operation
        CALL(cudaStreamSynchronize(s));
        trail_is("b");
    }
    cudaGetLastError();
}

// What the event covers at the launch; later records are nothing to it.
static void an_event_node_waits_at_each_replay(void) {
    cudaEvent_t event;
    cudaGraphNode_t wait;
    machine_start("lazy");
    cudaStream_t s = stream_new(), t = stream_new();
    CALL(cudaEventCreate(&event));
    cudaGraph_t graph = graph_new();
    note_add(graph, "a", NULL);
    CALL(cudaGraphAddEventWaitNode(&wait, graph, NULL, 0, event));
    note_add(graph, "b", wait);
    cudaGraphExec_t exec = exec_of(graph);
    CALL(cudaGraphLaunch(exec, s)); // the event was never recorded
    CALL(cudaStreamSynchronize(s));
    trail_is("ab");
    note_in(t, "x");
    CALL(cudaEventRecord(event, t));
    note_in(t, "y");
    CALL(cudaGraphLaunch(exec, s));
    CALL(cudaEventRecord(event, t));
    CALL(cudaStreamSynchronize(s));
    trail_is("axb");
    CALL(cudaEventDestroy(event));
    CALL(cudaGraphLaunch(exec, s));
    CALL(cudaStreamSynchronize(s));
    trail_is("ab");
}

static void nodes_run_on_their_devices(void) {
    cudaStream_t streams[2];
    cudaEvent_t events[3];
    cudaGraph_t graph;
    machine_start("random:3");
    for (int i = 0; i < 2; ++i) {
        CALL(cudaSetDevice(i));
        streams[i] = stream_new();
        CALL(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
    }
    CALL(cudaSetDevice(0));
    CALL(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeRelaxed));
    note_in(streams[0], "a");
    CALL(cudaEventRecord(events[0], streams[0]));
    CALL(cudaStreamWaitEvent(streams[1], events[0], 0));
    note_in(streams[1], "b");
    note_in(streams[1], "c");
    CALL(cudaEventRecord(events[1], streams[1]));
    CALL(cudaStreamWaitEvent(streams[0], events[1], 0));
    note_in(streams[0], "d");
    CALL(cudaStreamEndCapture(streams[0], &graph));
    cudaGraphExec_t exec = exec_of(graph);
    for (int i = 0; i < 3; ++i)
        CALL(cudaGraphLaunch(exec, streams[i % 2]));
    CALL(cudaStreamSynchronize(streams[0]));
    trail_is("abcdabcdabcd");
}

// The device is done for: its nodes do nothing, and a launch after it says so.
static void bad_touch(const void *argument) {
    BASE_CHECK(sim_kernel_bytes(*(void *const *)argument, 4, true) == NULL);
}
static void an_error_ends_the_work_of_a_launch(void) {
    void *nowhere = (void *)(uintptr_t)4096;
    cudaGraphNode_t bad;
    machine_start("lazy");
    cudaStream_t s = stream_new();
    cudaGraph_t graph = graph_new();
    const struct sim_kernel kernel = {
        .name = "bad", .body = bad_touch, .argument = &nowhere, .argument_size = sizeof nowhere};
    cudaGraphNode_t first = note_add(graph, "a", NULL);
    CALL(sim_graph_add_kernel(&bad, graph, &first, 1, &kernel));
    note_add(graph, "b", bad);
    cudaGraphExec_t exec = exec_of(graph);
    CALL(cudaGraphLaunch(exec, s));
    BASE_CHECK_EQ(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
    trail_is("a");
    BASE_CHECK_EQ(cudaGraphLaunch(exec, s), cudaErrorIllegalAddress);
    machine_start("eager");
}

// --- Size ---

// The thread sanitizer is fifty times as slow.
#if defined(__SANITIZE_THREAD__)
#define LONG_CHAIN 2000
#else
#define LONG_CHAIN 20000
#endif

static _Atomic int count;
static void count_one(void *unused) {
    (void)unused;
    ++count;
}

// A kernel reaches the memory of its own device only.
static void count_on_device(const void *argument) {
    BASE_CHECK(sim_kernel_bytes(*(void *const *)argument, 1, true) != NULL);
    ++count;
}

// More nodes side by side than there are lanes, on two devices; and a long chain.
static void wide_and_long_graphs_run(void) {
    enum { WIDE = 3000, LONG = LONG_CHAIN };
    cudaGraphNode_t node;
    const struct cudaHostNodeParams parameters = {count_one, NULL};
    static cudaGraphNode_t nodes[2 * WIDE];
    static const char *const schedules[] = {"eager", "lazy", "random:4", "timed"};
    for (int i = 0; i < 4; ++i) {
        machine_start(schedules[i]);
        count = 0;
        cudaGraph_t wide = graph_new(), chain = graph_new();
        for (int device = 0; device < 2; ++device) {
            void *memory;
            CALL(cudaSetDevice(device));
            CALL(cudaMalloc(&memory, 1));
            const struct sim_kernel kernel = {.name = "count",
                                              .body = count_on_device,
                                              .argument = &memory,
                                              .argument_size = sizeof memory};
            for (int j = 0; j < WIDE; ++j)
                CALL(sim_graph_add_kernel(&nodes[device * WIDE + j], wide, NULL, 0, &kernel));
        }
        CALL(cudaSetDevice(0));
        CALL(cudaGraphAddEmptyNode(&node, wide, nodes, 2 * WIDE));
        CALL(cudaGraphLaunch(exec_of(wide), NULL));
        CALL(cudaDeviceSynchronize());
        BASE_CHECK_EQ(count, 2 * WIDE);
        node = NULL;
        for (int j = 0; j < LONG; ++j)
            CALL(cudaGraphAddHostNode(&node, chain, &node, j > 0 ? 1 : 0, &parameters));
        cudaGraphExec_t exec = exec_of(chain);
        for (int j = 0; j < 3; ++j)
            CALL(cudaGraphLaunch(exec, NULL));
        CALL(cudaDeviceSynchronize());
        BASE_CHECK_EQ(count, 2 * WIDE + 3 * LONG);
    }
}

// --- Threads ---

static int inside;
static cudaGraphExec_t shared_exec;

// Launches of one executable never overlap, whoever makes them: INSIDE needs no lock.
static void enter(void *unused) {
    (void)unused;
    BASE_CHECK_EQ(inside++, 0);
    usleep(20); // other threads come
}
static void leave(void *unused) {
    (void)unused;
    BASE_CHECK_EQ(--inside, 0);
}

static void launches_make(void *unused) {
    (void)unused;
    cudaStream_t stream = stream_new();
    for (int i = 0; i < 100; ++i) {
        CALL(cudaGraphLaunch(shared_exec, i % 3 == 0 ? stream : cudaStreamPerThread));
        if (i % 10 == 0)
            CALL(cudaStreamSynchronize(stream));
    }
}

static void threads_launch_one_executable(void) {
    static const char *const schedules[] = {"eager", "lazy", "random:7"};
    const struct cudaHostNodeParams parameters[] = {
        {enter, NULL}, {count_one, NULL}, {count_one, NULL}, {leave, NULL}};
    for (int i = 0; i < 3; ++i) {
        cudaGraphNode_t nodes[4];
        struct base_thread threads[4];
        machine_start(schedules[i]);
        cudaGraph_t graph = graph_new();
        CALL(cudaGraphAddHostNode(&nodes[0], graph, NULL, 0, &parameters[0]));
        for (int j = 1; j < 3; ++j)
            CALL(cudaGraphAddHostNode(&nodes[j], graph, &nodes[0], 1, &parameters[j]));
        CALL(cudaGraphAddHostNode(&nodes[3], graph, &nodes[1], 2, &parameters[3]));
        shared_exec = exec_of(graph);
        count = 0;
        for (int j = 0; j < 4; ++j)
            base_thread_start(&threads[j], launches_make, NULL);
        for (int j = 0; j < 4; ++j)
            base_thread_join(&threads[j]);
        CALL(cudaDeviceSynchronize());
        BASE_CHECK_EQ(count, 4 * 100 * 2);
    }
}

int main(void) {
    nothing_runs_before_it_is_needed_under_lazy();
    a_launch_is_one_item_of_a_held_stream();
    a_launch_waits_for_the_executables_launch_in_a_held_stream();
    polling_ends_under_lazy();
    refused_launches_leave_nothing();
    a_destroyed_executable_runs_to_its_end();
    the_machine_restarts_over_pending_launches();
    pending_launches_keep_what_their_nodes_were();
    a_changed_kernel_is_another_one_for_later_launches();
    a_node_that_is_not_enabled_keeps_its_edges();
    copies_and_fills_read_their_source_at_each_replay();
    child_graphs_run_in_their_place();
    an_event_node_records_at_each_replay();
    an_event_node_waits_at_each_replay();
    nodes_run_on_their_devices();
    an_error_ends_the_work_of_a_launch();
    wide_and_long_graphs_run();
    threads_launch_one_executable();
}
