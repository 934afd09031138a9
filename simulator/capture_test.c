// Stream capture: how it begins, what becomes of work, how streams join and come back, how it ends.
// What is refused meanwhile: capture_refuse_test.c. What programs ask and change:
// capture_info_test.c.
#include "base/check.h"
#include "simulator/sim.h"

#include <cuda.h>
#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define NODES_MAX 64

static cudaStream_t s, t, u; // NonBlocking
static cudaEvent_t e, f;
static char *device_bytes; // of the device; 4096

static void start(void) {
    void *pointer;
    sim_reset();
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&u, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&e), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&f), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 4096), cudaSuccess);
    device_bytes = pointer;
}

static int ran; // kernels and host functions

static void kernel_body(const void *argument) {
    (void)argument;
    ++ran;
}

static void host_body(void *argument) {
    (void)argument;
    ++ran;
}

static cudaError_t launch(cudaStream_t stream) {
    return sim_launch(stream, "count", kernel_body, NULL, 0);
}

static void begin(cudaStream_t stream) {
    BASE_CHECK_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
}

static cudaGraph_t end(cudaStream_t stream) {
    cudaGraph_t graph = NULL;
    BASE_CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    BASE_CHECK(graph != NULL);
    return graph;
}

static void end_fails(cudaStream_t stream, cudaError_t expected) {
    cudaGraph_t graph = (cudaGraph_t)(uintptr_t)1;
    BASE_CHECK_EQ(cudaStreamEndCapture(stream, &graph), expected);
    BASE_CHECK(graph == NULL);
}

static void record(cudaEvent_t event, cudaStream_t stream) {
    BASE_CHECK_EQ(cudaEventRecord(event, stream), cudaSuccess);
}

static void wait_for(cudaStream_t stream, cudaEvent_t event) {
    BASE_CHECK_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
}

static void status_is(cudaStream_t stream, enum cudaStreamCaptureStatus expected) {
    enum cudaStreamCaptureStatus status;
    BASE_CHECK_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
    BASE_CHECK_EQ(status, expected);
}

// The graph in a line: a letter for each node's type, with the numbers of those it depends on.
static void graph_is(cudaGraph_t graph, const char *expected) {
    static const char letters[] = "KCFHGEWR  AX V";
    cudaGraphNode_t nodes[NODES_MAX], before[NODES_MAX];
    size_t count = NODES_MAX;
    char text[1024] = "";
    BASE_CHECK_EQ(cudaGraphGetNodes(graph, nodes, &count), cudaSuccess);
    for (size_t i = 0; i < count; ++i) {
        size_t before_count = NODES_MAX, at = strlen(text);
        enum cudaGraphNodeType type;
        BASE_CHECK_EQ(cudaGraphNodeGetType(nodes[i], &type), cudaSuccess);
        BASE_CHECK_EQ(cudaGraphNodeGetDependencies(nodes[i], before, NULL, &before_count),
                      cudaSuccess);
        text[at++] = (int)type == 12 ? 'V' : letters[type];
        text[at] = '\0';
        for (size_t j = 0; j < count; ++j)
            for (size_t k = 0; k < before_count; ++k)
                if (before[k] == nodes[j])
                    at += (size_t)snprintf(text + at, sizeof text - at, "%zu", j);
        if (i + 1 < count)
            strcat(text, " ");
    }
    base_check_context("graph \"%s\", expected \"%s\"", text, expected);
    BASE_CHECK(strcmp(text, expected) == 0);
    base_check_context(NULL);
}

static void destroy(cudaGraph_t graph) { BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess); }

static void work_becomes_nodes_and_does_not_run(void) {
    char pageable[16] = {0};
    void *pinned;
    start();
    BASE_CHECK_EQ(cudaHostAlloc(&pinned, 16, 0), cudaSuccess);
    memset(pinned, 0, 16);
    begin(s);
    ran = 0;
    status_is(s, cudaStreamCaptureStatusActive);
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpyAsync(device_bytes, pageable, 16, cudaMemcpyHostToDevice, s),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpyAsync(pageable, device_bytes, 16, cudaMemcpyDeviceToHost, s),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpyAsync(pageable, pinned, 16, cudaMemcpyHostToHost, s), cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpy2DAsync(device_bytes, 64, device_bytes + 1024, 64, 8, 4,
                                    cudaMemcpyDeviceToDevice, s),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpyPeerAsync(device_bytes, 0, device_bytes + 64, 0, 16, s), cudaSuccess);
    BASE_CHECK_EQ(cudaMemsetAsync(device_bytes, 1, 16, s), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset2DAsync(device_bytes, 64, 1, 16, 2, s), cudaSuccess);
    BASE_CHECK_EQ(cudaMemsetAsync(pinned, 7, 16, s), cudaSuccess);
    BASE_CHECK_EQ(cudaLaunchHostFunc(s, host_body, NULL), cudaSuccess);
    BASE_CHECK_EQ(cuMemsetD32Async((CUdeviceptr)(uintptr_t)device_bytes, 1, 4, (CUstream)s), 0);
    BASE_CHECK_EQ(cuStreamWriteValue32((CUstream)s, (CUdeviceptr)(uintptr_t)pinned, 9, 0), 0);
    BASE_CHECK_EQ(cuStreamWriteValue64((CUstream)s, (CUdeviceptr)(uintptr_t)pinned, 9, 0), 0);
    // Nothing to do is no node.
    BASE_CHECK_EQ(cudaMemsetAsync(device_bytes, 1, 0, s), cudaSuccess);
    cudaGraph_t graph = end(s);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(ran, 0);
    BASE_CHECK_EQ(*(char *)pinned, 0);
    status_is(s, cudaStreamCaptureStatusNone);
    graph_is(graph, "K C0 C1 C2 C3 C4 F5 F6 F7 H8 F9 V10 V11");
    destroy(graph);
}

// Not at the call, as outside a capture.
static void a_pageable_source_is_read_at_each_replay(void) {
    unsigned char source = 1, seen;
    cudaGraphExec_t exec;
    start();
    begin(s);
    BASE_CHECK_EQ(cudaMemcpyAsync(device_bytes, &source, 1, cudaMemcpyHostToDevice, s),
                  cudaSuccess);
    cudaGraph_t graph = end(s);
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    for (source = 2; source < 5; ++source) {
        BASE_CHECK_EQ(cudaGraphLaunch(exec, s), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamSynchronize(s), cudaSuccess);
        BASE_CHECK_EQ(cudaMemcpy(&seen, device_bytes, 1, cudaMemcpyDeviceToHost), cudaSuccess);
        BASE_CHECK_EQ(seen, source);
    }
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    destroy(graph);
}

static void captured_work_comes_after_nothing_that_was_submitted_before(void) {
    start();
    ran = 0;
    sim_stream_hold(s, true);
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    begin(s);
    BASE_CHECK_EQ(sim_stream_pending(s), 1);
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    BASE_CHECK_EQ(sim_stream_pending(s), 1);
    cudaGraph_t graph = end(s);
    graph_is(graph, "K K0");
    BASE_CHECK_EQ(ran, 0);
    BASE_CHECK_EQ(cudaStreamSynchronize(s), cudaSuccess);
    BASE_CHECK_EQ(ran, 1);
    destroy(graph);
}

static void wrong_arguments_capture_nothing(void) {
    start();
    begin(s);
    BASE_CHECK_EQ(sim_launch(s, "none", NULL, NULL, 0), cudaErrorInvalidDeviceFunction);
    BASE_CHECK_EQ(cudaMemsetAsync(device_bytes, 1, 1 << 30, s), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemcpyAsync(device_bytes, device_bytes, 8, (enum cudaMemcpyKind)9, s),
                  cudaErrorInvalidMemcpyDirection);
    BASE_CHECK_EQ(cudaLaunchHostFunc(s, NULL, NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamWaitEvent(s, e, 2), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaEventRecordWithFlags(e, s, 2), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFreeAsync(NULL, s), cudaErrorInvalidValue);
    status_is(s, cudaStreamCaptureStatusActive);
    cudaGraph_t graph = end(s);
    graph_is(graph, "");
    destroy(graph);
}

static void begin_refuses_the_legacy_stream_twice_and_unknown_modes(void) {
    start();
    BASE_CHECK_EQ(cudaStreamBeginCapture(s, (enum cudaStreamCaptureMode)3), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal),
                  cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal),
                  cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(cudaStreamBeginCapture((cudaStream_t)(uintptr_t)77, cudaStreamCaptureModeGlobal),
                  cudaErrorInvalidResourceHandle);
    begin(s);
    BASE_CHECK_EQ(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
    record(e, s);
    wait_for(t, e);
    BASE_CHECK_EQ(cudaStreamBeginCapture(t, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    destroy(end(s));
    begin(s); // again
    destroy(end(s));
}

static void end_wants_the_origin_and_a_place_for_the_graph(void) {
    cudaGraph_t graph;
    start();
    BASE_CHECK_EQ(cudaStreamEndCapture(s, &graph), cudaErrorIllegalState);
    BASE_CHECK_EQ(cudaStreamEndCapture(NULL, &graph), cudaErrorIllegalState);
    begin(s);
    BASE_CHECK_EQ(cudaStreamEndCapture(s, NULL), cudaErrorInvalidValue);
    status_is(s, cudaStreamCaptureStatusActive);
    record(e, s);
    wait_for(t, e);
    BASE_CHECK_EQ(cudaStreamEndCapture(t, &graph), cudaErrorStreamCaptureUnmatched);
    status_is(s, cudaStreamCaptureStatusInvalidated);
    status_is(t, cudaStreamCaptureStatusInvalidated);
    end_fails(s, cudaErrorStreamCaptureInvalidated);
    status_is(s, cudaStreamCaptureStatusNone);
    status_is(t, cudaStreamCaptureStatusNone);
}

static void waits_join_streams_and_come_back(void) {
    start();
    begin(s);
    BASE_CHECK_EQ(launch(s), cudaSuccess); // 0
    record(e, s);
    BASE_CHECK_EQ(launch(s), cudaSuccess); // 1
    wait_for(t, e);
    status_is(t, cudaStreamCaptureStatusActive);
    BASE_CHECK_EQ(cudaLaunchHostFunc(t, host_body, NULL), cudaSuccess); // 2, behind 0 alone
    record(f, t);
    wait_for(s, f);
    BASE_CHECK_EQ(launch(s), cudaSuccess); // 3, behind 1 and 2
    cudaGraph_t graph = end(s);
    graph_is(graph, "K K0 H0 K12");
    status_is(t, cudaStreamCaptureStatusNone);
    destroy(graph);
}

static void a_wait_sees_the_set_that_was_recorded_before_it(void) {
    start();
    begin(s);
    record(e, s); // nothing
    wait_for(t, e);
    BASE_CHECK_EQ(launch(s), cudaSuccess); // 0
    record(e, s);
    BASE_CHECK_EQ(launch(t), cudaSuccess); // 1, behind nothing
    BASE_CHECK_EQ(launch(s), cudaSuccess); // 2
    wait_for(t, e);                        // 0, not 2
    BASE_CHECK_EQ(launch(t), cudaSuccess); // 3
    record(e, t);
    wait_for(s, e);
    cudaGraph_t graph = end(s);
    graph_is(graph, "K K K0 K01");
    destroy(graph);
}

static void streams_that_return_nothing_are_unjoined(void) {
    start();
    begin(s);
    record(e, s);
    wait_for(t, e);
    BASE_CHECK_EQ(launch(t), cudaSuccess);
    end_fails(s, cudaErrorStreamCaptureUnjoined);
    status_is(s, cudaStreamCaptureStatusNone);
    status_is(t, cudaStreamCaptureStatusNone);
    ran = 0;
    BASE_CHECK_EQ(launch(t), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(t), cudaSuccess);
    BASE_CHECK_EQ(ran, 1);

    begin(s); // work behind the join
    record(e, s);
    wait_for(t, e);
    BASE_CHECK_EQ(launch(t), cudaSuccess);
    record(f, t);
    wait_for(s, f);
    BASE_CHECK_EQ(launch(t), cudaSuccess);
    end_fails(s, cudaErrorStreamCaptureUnjoined);

    begin(s); // through a third stream
    record(e, s);
    wait_for(t, e);
    BASE_CHECK_EQ(launch(t), cudaSuccess);
    record(f, t);
    wait_for(u, f);
    BASE_CHECK_EQ(launch(u), cudaSuccess);
    record(f, u);
    wait_for(s, f);
    cudaGraph_t graph = end(s);
    graph_is(graph, "K K0");
    destroy(graph);
}

// The origin's set is behind the branch by a node and not by the set itself.
static void a_branch_is_joined_by_any_path(void) {
    start();
    begin(s);
    record(e, s);
    wait_for(t, e);
    BASE_CHECK_EQ(launch(t), cudaSuccess); // 0
    record(f, t);
    wait_for(s, f);
    for (int i = 0; i < 3; ++i)
        BASE_CHECK_EQ(launch(s), cudaSuccess);
    cudaGraph_t graph = end(s);
    graph_is(graph, "K K0 K1 K2");
    destroy(graph);
}

static void an_empty_fork_is_fine_or_unjoined(void) {
    cudaGraph_t graph;
    for (int other = 0; other < 2; ++other) {
        start();
        BASE_CHECK_EQ(sim_reading("empty-fork", other ? "unjoined" : "joined"), BASE_OK);
        begin(s);
        BASE_CHECK_EQ(launch(s), cudaSuccess);
        record(e, s);
        wait_for(t, e);
        BASE_CHECK_EQ(cudaStreamEndCapture(s, &graph),
                      other ? cudaErrorStreamCaptureUnjoined : cudaSuccess);
        if (!other)
            destroy(graph);
        status_is(t, cudaStreamCaptureStatusNone);
        begin(s); // empty, and it returns
        record(e, s);
        wait_for(t, e);
        record(f, t);
        wait_for(s, f);
        destroy(end(s));
    }
    BASE_CHECK_EQ(sim_reading("empty-fork", "joined"), BASE_OK);
}

static void streams_of_several_devices_take_part(void) {
    cudaStream_t other;
    cudaEvent_t other_event;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = 2}), BASE_OK);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&e), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&other_event), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    begin(s);
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    BASE_CHECK_EQ(cudaEventRecord(other_event, s), cudaErrorInvalidResourceHandle);
    record(e, s);
    wait_for(other, e);
    BASE_CHECK_EQ(launch(other), cudaErrorInvalidResourceHandle); // its device is not current
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(launch(other), cudaSuccess);
    record(other_event, other);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    wait_for(s, other_event);
    cudaGraph_t graph = end(s);
    graph_is(graph, "K K0");
    destroy(graph);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = 1}), BASE_OK);
}

static void several_captures_run_side_by_side(void) {
    start();
    begin(s);
    BASE_CHECK_EQ(cudaStreamBeginCapture(t, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    BASE_CHECK_EQ(launch(t), cudaSuccess);
    BASE_CHECK_EQ(launch(t), cudaSuccess);
    record(e, t);
    wait_for(u, e);
    BASE_CHECK_EQ(launch(u), cudaSuccess);
    record(f, u);
    wait_for(t, f);
    cudaGraph_t first = end(s);
    status_is(t, cudaStreamCaptureStatusActive);
    cudaGraph_t second = end(t);
    graph_is(first, "K");
    graph_is(second, "K K0 K1");
    destroy(first);
    destroy(second);
}

static void a_capture_can_go_on_in_a_graph_of_the_programs(void) {
    cudaGraph_t graph, given, none = NULL;
    cudaGraphNode_t empty[2], foreign;
    start();
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphCreate(&given, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&empty[0], graph, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&empty[1], graph, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&foreign, given, NULL, 0), cudaSuccess);
    const enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    BASE_CHECK_EQ(cudaStreamBeginCaptureToGraph(s, none, NULL, NULL, 0, mode),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamBeginCaptureToGraph(s, graph, NULL, NULL, 1, mode),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamBeginCaptureToGraph(s, graph, &foreign, NULL, 1, mode),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamBeginCaptureToGraph(NULL, graph, empty, NULL, 2, mode),
                  cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(cudaStreamBeginCaptureToGraph(s, graph, empty, NULL, 2, mode), cudaSuccess);
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    BASE_CHECK(end(s) == graph);
    graph_is(graph, "E E K01");
    // It outlives a capture that is lost, with what was captured.
    BASE_CHECK_EQ(cudaStreamBeginCaptureToGraph(s, graph, &empty[0], NULL, 1, mode), cudaSuccess);
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamQuery(s), cudaErrorStreamCaptureUnsupported);
    end_fails(s, cudaErrorStreamCaptureInvalidated);
    graph_is(graph, "E E K01 K0");
    // And one that is unjoined.
    BASE_CHECK_EQ(cudaStreamBeginCaptureToGraph(s, graph, NULL, NULL, 0, mode), cudaSuccess);
    record(e, s);
    wait_for(t, e);
    BASE_CHECK_EQ(launch(t), cudaSuccess);
    end_fails(s, cudaErrorStreamCaptureUnjoined);
    graph_is(graph, "E E K01 K0 K");
    destroy(graph);
    destroy(given);
}

// The second one begins behind what the first one has captured so far.
static void two_captures_build_one_graph(void) {
    const enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *nodes;
    cudaGraph_t graph;
    size_t count;
    start();
    for (int lost = 0; lost < 3; ++lost) {
        BASE_CHECK_EQ(cudaStreamBeginCapture(s, mode), cudaSuccess);
        BASE_CHECK_EQ(launch(s), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamGetCaptureInfo(s, &status, NULL, &graph, &nodes, NULL, &count),
                      cudaSuccess);
        BASE_CHECK_EQ(cudaStreamBeginCaptureToGraph(t, graph, nodes, NULL, count, mode),
                      cudaSuccess);
        BASE_CHECK_EQ(launch(t), cudaSuccess);
        BASE_CHECK_EQ(launch(s), cudaSuccess);
        if (lost == 1) { // the guest alone
            BASE_CHECK_EQ(cudaStreamQuery(t), cudaErrorStreamCaptureUnsupported);
            status_is(s, cudaStreamCaptureStatusActive);
            end_fails(t, cudaErrorStreamCaptureInvalidated);
        } else if (lost == 2) { // the host, and with its graph the guest
            BASE_CHECK_EQ(cudaStreamQuery(s), cudaErrorStreamCaptureUnsupported);
            status_is(t, cudaStreamCaptureStatusInvalidated);
            end_fails(t, cudaErrorStreamCaptureInvalidated);
            end_fails(s, cudaErrorStreamCaptureInvalidated);
            continue;
        } else {
            BASE_CHECK(end(t) == graph);
        }
        BASE_CHECK_EQ(launch(s), cudaSuccess);
        BASE_CHECK(end(s) == graph);
        graph_is(graph, "K K0 K0 K2");
        destroy(graph);
    }
}

// A capture goes on in a child node's graph, and the node goes.
static void a_capture_is_lost_with_the_node_that_owns_its_graph(void) {
    cudaGraph_t graph, given, child;
    cudaGraphNode_t node;
    start();
    for (int whole = 0; whole < 2; ++whole) {
        BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
        BASE_CHECK_EQ(cudaGraphCreate(&given, 0), cudaSuccess);
        BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, given), cudaSuccess);
        BASE_CHECK_EQ(cudaGraphChildGraphNodeGetGraph(node, &child), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamBeginCaptureToGraph(s, child, NULL, NULL, 0,
                                                    cudaStreamCaptureModeGlobal),
                      cudaSuccess);
        BASE_CHECK_EQ(launch(s), cudaSuccess);
        record(e, s);
        BASE_CHECK_EQ(whole ? cudaGraphDestroy(graph) : cudaGraphDestroyNode(node), cudaSuccess);
        status_is(s, cudaStreamCaptureStatusInvalidated);
        BASE_CHECK_EQ(launch(s), cudaErrorStreamCaptureInvalidated);
        end_fails(s, cudaErrorStreamCaptureInvalidated);
        if (!whole)
            destroy(graph);
        destroy(given);
    }
}

static void external_records_and_waits_are_nodes(void) {
    start();
    BASE_CHECK_EQ(cudaEventRecordWithFlags(e, s, cudaEventRecordExternal), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamWaitEvent(s, e, cudaEventWaitExternal), cudaErrorInvalidValue);
    BASE_CHECK_EQ(sim_reading("external-outside", "401"), BASE_OK);
    BASE_CHECK_EQ(cudaEventRecordWithFlags(e, s, cudaEventRecordExternal), cudaErrorIllegalState);
    BASE_CHECK_EQ(cudaStreamWaitEvent(s, e, cudaEventWaitExternal), cudaErrorIllegalState);
    BASE_CHECK_EQ(sim_reading("external-outside", "1"), BASE_OK);
    record(f, t);
    begin(s);
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    BASE_CHECK_EQ(cudaEventRecordWithFlags(e, s, cudaEventRecordExternal), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(s, f, cudaEventWaitExternal), cudaSuccess); // no isolation
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    cudaGraph_t graph = end(s);
    graph_is(graph, "K R0 W1 K2");
    BASE_CHECK_EQ(cudaEventQuery(e), cudaSuccess); // as never recorded: not captured
    destroy(graph);
}

static void a_captured_event_is_captured_until_it_is_recorded_outside(void) {
    float milliseconds;
    start();
    record(e, t); // and the capture's record takes its place
    record(f, t);
    begin(s);
    record(e, s);
    cudaGraph_t graph = end(s);
    BASE_CHECK_EQ(cudaEventQuery(e), cudaErrorCapturedEvent);
    BASE_CHECK_EQ(cudaEventSynchronize(e), cudaErrorCapturedEvent);
    BASE_CHECK_EQ(cudaEventElapsedTime(&milliseconds, f, e), cudaErrorCapturedEvent);
    BASE_CHECK_EQ(cudaEventElapsedTime(&milliseconds, e, f), cudaErrorCapturedEvent);
    wait_for(t, e); // of a capture that has ended: nothing
    status_is(t, cudaStreamCaptureStatusNone);
    BASE_CHECK_EQ(sim_reading("ended-wait", "refused"), BASE_OK);
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaErrorCapturedEvent);
    BASE_CHECK_EQ(sim_reading("ended-wait", "noop"), BASE_OK);
    record(e, t);
    BASE_CHECK_EQ(cudaEventSynchronize(e), cudaSuccess);
    BASE_CHECK_EQ(cudaEventQuery(e), cudaSuccess);
    BASE_CHECK_EQ(cudaEventElapsedTime(&milliseconds, f, e), cudaSuccess);
    destroy(graph);
}

// The new one may have the old one's place.
static void a_new_event_is_not_captured(void) {
    for (int reset = 0; reset < 2; ++reset) {
        start();
        begin(s);
        record(e, s);
        destroy(end(s));
        BASE_CHECK_EQ(reset ? cudaDeviceReset() : cudaEventDestroy(e), cudaSuccess);
        for (int i = 0; i < 3; ++i) {
            BASE_CHECK_EQ(cudaEventCreate(&e), cudaSuccess);
            BASE_CHECK_EQ(cudaEventQuery(e), cudaSuccess);
        }
    }
}

static void memory_becomes_nodes(void) {
    void *first, *second, *eager, *other;
    cudaGraph_t graph;
    start();
    BASE_CHECK_EQ(cudaMallocAsync(&eager, 64, t), cudaSuccess);
    begin(s);
    BASE_CHECK_EQ(cudaMallocAsync(&first, 64, s), cudaSuccess);
    BASE_CHECK_EQ(cudaMallocAsync(&second, 0, s), cudaSuccess);
    BASE_CHECK(first != NULL && second == NULL);
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    BASE_CHECK_EQ(cudaFreeAsync(first, s), cudaSuccess);
    BASE_CHECK_EQ(cudaMallocAsync(NULL, 64, s), cudaErrorInvalidValue);
    graph = end(s);
    graph_is(graph, "A K0 X1");

    begin(s);
    BASE_CHECK_EQ(cudaFreeAsync(eager, s), cudaErrorInvalidValue); // no graph's
    status_is(s, cudaStreamCaptureStatusInvalidated);
    BASE_CHECK_EQ(cudaMallocAsync(&other, 64, s), cudaErrorStreamCaptureInvalidated);
    BASE_CHECK_EQ(cudaFreeAsync(eager, s), cudaErrorInvalidValue); // as ever
    BASE_CHECK_EQ(cudaFreeAsync(first, s), cudaErrorStreamCaptureInvalidated);
    destroy(graph);
    end_fails(s, cudaErrorStreamCaptureInvalidated);
    BASE_CHECK_EQ(sim_reading("eager-free", "harmless"), BASE_OK);
    begin(s);
    BASE_CHECK_EQ(cudaFreeAsync(eager, s), cudaErrorInvalidValue);
    graph = end(s);
    graph_is(graph, "");
    destroy(graph);
    BASE_CHECK_EQ(sim_reading("eager-free", "invalidates"), BASE_OK);
    BASE_CHECK_EQ(cudaFreeAsync(eager, t), cudaSuccess);
}

static void a_stream_that_is_destroyed_leaves_its_work(void) {
    cudaGraph_t graph;
    start();
    begin(s);
    record(e, s);
    wait_for(t, e);
    BASE_CHECK_EQ(launch(t), cudaSuccess);
    record(f, t);
    BASE_CHECK_EQ(cudaStreamDestroy(t), cudaSuccess);
    status_is(s, cudaStreamCaptureStatusActive);
    wait_for(s, f);
    graph = end(s);
    graph_is(graph, "K");
    destroy(graph);

    begin(s);
    record(e, s);
    wait_for(u, e);
    BASE_CHECK_EQ(launch(u), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamDestroy(u), cudaSuccess);
    end_fails(s, cudaErrorStreamCaptureUnjoined);
}

static void a_capture_ends_with_its_origin(void) {
    cudaGraph_t graph = NULL;
    void *pointer;
    start();
    begin(s);
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    record(e, s);
    wait_for(t, e);
    BASE_CHECK_EQ(launch(t), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamDestroy(s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamEndCapture(s, &graph), cudaErrorContextIsDestroyed);
    status_is(t, cudaStreamCaptureStatusNone);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 64), cudaSuccess); // nothing is refused any more
    ran = 0;
    BASE_CHECK_EQ(launch(t), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(t), cudaSuccess);
    BASE_CHECK_EQ(ran, 1);
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaSuccess); // its capture has ended
}

static void resets_end_captures(void) {
    void *pointer;
    start();
    begin(s);
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    record(e, s);
    wait_for(t, e);
    BASE_CHECK_EQ(cudaDeviceReset(), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 64), cudaSuccess);
    start();
    begin(s);
    BASE_CHECK_EQ(launch(s), cudaSuccess);
    record(e, s);
    wait_for(t, e);
    BASE_CHECK_EQ(cudaStreamQuery(t), cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(cudaStreamBeginCapture(u, cudaStreamCaptureModeRelaxed), cudaSuccess);
    start(); // sim_reset: one that is lost, one that runs
    BASE_CHECK_EQ(cudaMalloc(&pointer, 64), cudaSuccess);
    status_is(s, cudaStreamCaptureStatusNone);
}

static void per_thread_streams_capture(void) {
    char pageable[8];
    void *pinned;
    start();
    BASE_CHECK_EQ(cudaHostAlloc(&pinned, 8, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamBeginCapture_ptsz(NULL, cudaStreamCaptureModeRelaxed), cudaSuccess);
    status_is(cudaStreamPerThread, cudaStreamCaptureStatusActive);
    BASE_CHECK_EQ(cudaMemsetAsync_ptsz(device_bytes, 1, 8, NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset_ptds(device_bytes, 1, 8), cudaSuccess); // the host need not wait
    BASE_CHECK_EQ(cudaEventRecordWithFlags_ptsz(e, NULL, cudaEventRecordExternal), cudaSuccess);
    cudaGraph_t graph = NULL;
    BASE_CHECK_EQ(cudaStreamEndCapture_ptsz(NULL, &graph), cudaSuccess);
    graph_is(graph, "F F0 R1");
    BASE_CHECK_EQ(cudaStreamBeginCaptureToGraph_ptsz(NULL, graph, NULL, NULL, 0,
                                                     cudaStreamCaptureModeRelaxed),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpy_ptds(pageable, device_bytes, 8, cudaMemcpyDeviceToHost),
                  cudaErrorStreamCaptureUnsupported);
    end_fails(cudaStreamPerThread, cudaErrorStreamCaptureInvalidated);
    BASE_CHECK_EQ(cudaStreamBeginCapture_ptsz(NULL, cudaStreamCaptureModeRelaxed), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset_ptds(pinned, 1, 8), cudaErrorStreamCaptureUnsupported);
    end_fails(cudaStreamPerThread, cudaErrorStreamCaptureInvalidated);
    destroy(graph);
}

int main(void) {
    static const char *const schedules[] = {"eager", "lazy", "random:1", "timed"};
    for (int i = 0; i < 4; ++i) {
        BASE_CHECK_EQ(sim_schedule(schedules[i]), BASE_OK);
        work_becomes_nodes_and_does_not_run();
        a_pageable_source_is_read_at_each_replay();
        captured_work_comes_after_nothing_that_was_submitted_before();
        wrong_arguments_capture_nothing();
        begin_refuses_the_legacy_stream_twice_and_unknown_modes();
        end_wants_the_origin_and_a_place_for_the_graph();
        waits_join_streams_and_come_back();
        a_wait_sees_the_set_that_was_recorded_before_it();
        streams_that_return_nothing_are_unjoined();
        a_branch_is_joined_by_any_path();
        an_empty_fork_is_fine_or_unjoined();
        streams_of_several_devices_take_part();
        several_captures_run_side_by_side();
        a_capture_can_go_on_in_a_graph_of_the_programs();
        two_captures_build_one_graph();
        a_capture_is_lost_with_the_node_that_owns_its_graph();
        external_records_and_waits_are_nodes();
        a_captured_event_is_captured_until_it_is_recorded_outside();
        a_new_event_is_not_captured();
        memory_becomes_nodes();
        a_stream_that_is_destroyed_leaves_its_work();
        a_capture_ends_with_its_origin();
        resets_end_captures();
        per_thread_streams_capture();
    }
    return 0;
}
