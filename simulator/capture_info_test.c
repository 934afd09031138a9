// What programs ask about a capture, and its dependencies changed by hand; sets of any size.
#include "base/check.h"
#include "simulator/sim.h"

#include <stdlib.h>
#include <string.h>

static cudaStream_t s, t;
static cudaEvent_t e;

static void start(void) {
    sim_reset();
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&e), cudaSuccess);
}

static void kernel_body(const void *argument) { (void)argument; }
static void host_body(void *argument) { (void)argument; }

static void launch(cudaStream_t stream) {
    BASE_CHECK_EQ(sim_launch(stream, "nothing", kernel_body, NULL, 0), cudaSuccess);
}

static void begin(cudaStream_t stream) {
    BASE_CHECK_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
}

static void end(cudaStream_t stream) {
    cudaGraph_t graph;
    BASE_CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

struct info {
    enum cudaStreamCaptureStatus status;
    unsigned long long id;
    cudaGraph_t graph;
    const cudaGraphNode_t *nodes;
    const cudaGraphEdgeData *data;
    size_t count;
};

static struct info info_of(cudaStream_t stream) {
    struct info info;
    BASE_CHECK_EQ(cudaStreamGetCaptureInfo(stream, &info.status, &info.id, &info.graph, &info.nodes,
                                           &info.data, &info.count),
                  cudaSuccess);
    BASE_CHECK_EQ(info.status, cudaStreamCaptureStatusActive);
    return info;
}

// The only node of the stream's set.
static cudaGraphNode_t tip_of(cudaStream_t stream) {
    const struct info info = info_of(stream);
    BASE_CHECK_EQ(info.count, 1);
    return info.nodes[0];
}

static cudaError_t update(cudaStream_t stream, cudaGraphNode_t *nodes, size_t count,
                          unsigned int flags) {
    return cudaStreamUpdateCaptureDependencies(stream, nodes, NULL, count, flags);
}

static size_t dependency_count(cudaGraphNode_t node) {
    size_t count = 0;
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(node, NULL, NULL, &count), cudaSuccess);
    return count;
}

static void info_is_stored_only_while_a_capture_is_active(void) {
    const unsigned char pattern = 0x5a;
    struct info info, untouched;
    start();
    memset(&untouched, pattern, sizeof untouched);
    for (int i = 0; i < 2; ++i) {
        if (i == 1) {
            begin(s);
            BASE_CHECK_EQ(cudaStreamQuery(s), cudaErrorStreamCaptureUnsupported);
        }
        memset(&info, pattern, sizeof info);
        BASE_CHECK_EQ(cudaStreamGetCaptureInfo(s, &info.status, &info.id, &info.graph, &info.nodes,
                                               &info.data, &info.count),
                      cudaSuccess);
        BASE_CHECK_EQ(info.status, i == 0 ? cudaStreamCaptureStatusNone
                                          : cudaStreamCaptureStatusInvalidated);
        info.status = untouched.status;
        BASE_CHECK(memcmp(&info, &untouched, sizeof info) == 0);
    }
    BASE_CHECK_EQ(cudaStreamGetCaptureInfo(s, NULL, NULL, NULL, NULL, NULL, NULL),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamIsCapturing(s, NULL), cudaErrorInvalidValue);
    cudaGraph_t graph;
    BASE_CHECK_EQ(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureInvalidated);
}

static void outputs_are_optional(void) {
    enum cudaStreamCaptureStatus status;
    unsigned long long id;
    size_t count = 9;
    start();
    begin(s);
    BASE_CHECK_EQ(cudaStreamGetCaptureInfo(s, &status, NULL, NULL, NULL, NULL, NULL), cudaSuccess);
    BASE_CHECK_EQ(status, cudaStreamCaptureStatusActive);
    BASE_CHECK_EQ(cudaStreamGetCaptureInfo(s, &status, &id, NULL, NULL, NULL, NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamGetCaptureInfo(s, &status, NULL, NULL, NULL, NULL, &count),
                  cudaSuccess);
    BASE_CHECK_EQ(count, 0);
    launch(s);
    BASE_CHECK_EQ(cudaStreamGetCaptureInfo_ptsz(s, &status, NULL, NULL, NULL, NULL, &count),
                  cudaSuccess);
    BASE_CHECK_EQ(count, 1);
    BASE_CHECK_EQ(info_of(s).id, id);
    end(s);
}

static void ids_are_never_given_again(void) {
    unsigned long long last = 0;
    for (int i = 0; i < 3; ++i) {
        start(); // the machine as new, the process the same
        begin(s);
        begin(t);
        BASE_CHECK_GT(info_of(s).id, last);
        BASE_CHECK_GT(info_of(t).id, info_of(s).id);
        last = info_of(t).id;
        end(s);
        end(t);
    }
}

static void joined_streams_tell_of_the_same_capture(void) {
    start();
    begin(s);
    launch(s);
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    launch(s);
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaSuccess);
    const struct info origin = info_of(s), joined = info_of(t);
    BASE_CHECK_EQ(origin.id, joined.id);
    BASE_CHECK(origin.graph == joined.graph);
    BASE_CHECK(tip_of(s) != tip_of(t));
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaSuccess); // nothing new
    BASE_CHECK_EQ(info_of(t).count, 1);
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaSuccess);
    BASE_CHECK_EQ(info_of(t).count, 2);
    BASE_CHECK_EQ(info_of(s).count, 1);
    BASE_CHECK_EQ(cudaEventRecord(e, t), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(s, e, 0), cudaSuccess);
    end(s);
}

static void the_set_is_emptied_when_it_becomes_another_one(void) {
    start();
    begin(s);
    launch(s);
    const struct info before = info_of(s);
    BASE_CHECK(before.nodes[0] != NULL);
    launch(s);
    BASE_CHECK(before.nodes[0] == NULL); // whoever keeps the array finds out
    end(s);
}

// As allocators that free inside captures do.
static void an_empty_node_moves_the_tip(void) {
    cudaGraphNode_t empty, kernel;
    start();
    begin(s);
    launch(s);
    kernel = tip_of(s);
    const struct info info = info_of(s);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&empty, info.graph, info.nodes, info.count), cudaSuccess);
    BASE_CHECK(tip_of(s) == kernel);
    BASE_CHECK_EQ(update(s, &empty, 1, cudaStreamSetCaptureDependencies), cudaSuccess);
    BASE_CHECK(tip_of(s) == empty);
    launch(s);
    BASE_CHECK_EQ(dependency_count(tip_of(s)), 1);
    BASE_CHECK_EQ(dependency_count(empty), 1);
    end(s);
}

static void nodes_are_added_to_the_set(void) {
    cudaGraphNode_t nodes[3];
    start();
    begin(s);
    launch(s);
    const cudaGraphNode_t first = tip_of(s);
    const cudaGraph_t graph = info_of(s).graph;
    for (int i = 0; i < 3; ++i)
        BASE_CHECK_EQ(cudaGraphAddEmptyNode(&nodes[i], graph, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(update(s, nodes, 2, cudaStreamAddCaptureDependencies), cudaSuccess);
    BASE_CHECK_EQ(info_of(s).count, 3);
    BASE_CHECK_EQ(update(s, nodes, 3, cudaStreamAddCaptureDependencies), cudaSuccess);
    BASE_CHECK_EQ(info_of(s).count, 4); // each once
    BASE_CHECK(info_of(s).nodes[0] == first);
    BASE_CHECK_EQ(update(s, NULL, 0, cudaStreamAddCaptureDependencies), cudaSuccess);
    BASE_CHECK_EQ(info_of(s).count, 4);
    launch(s);
    BASE_CHECK_EQ(dependency_count(tip_of(s)), 4);
    BASE_CHECK_EQ(update(s, NULL, 0, cudaStreamSetCaptureDependencies), cudaSuccess);
    BASE_CHECK_EQ(info_of(s).count, 0);
    launch(s); // a second root
    BASE_CHECK_EQ(dependency_count(tip_of(s)), 0);
    end(s); // what was dropped is no fault
}

static void dropped_work_of_a_joined_stream_is_no_fault(void) {
    start();
    begin(s);
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaSuccess);
    launch(t);
    BASE_CHECK_EQ(update(t, NULL, 0, cudaStreamSetCaptureDependencies), cudaSuccess);
    end(s);
}

// A node of the program's brings the branch back, without an event.
static void work_is_joined_by_nodes_alone(void) {
    cudaGraphNode_t empty, tips[2];
    start();
    begin(s);
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaSuccess);
    launch(s);
    launch(t);
    tips[0] = tip_of(s);
    tips[1] = tip_of(t);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&empty, info_of(s).graph, tips, 2), cudaSuccess);
    BASE_CHECK_EQ(update(s, &empty, 1, cudaStreamSetCaptureDependencies), cudaSuccess);
    end(s);
}

static void wrong_updates_change_nothing(void) {
    cudaGraph_t other;
    cudaGraphNode_t foreign, own[2], none = NULL;
    start();
    BASE_CHECK_EQ(cudaGraphCreate(&other, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&foreign, other, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(update(s, &foreign, 1, cudaStreamAddCaptureDependencies), cudaErrorIllegalState);
    BASE_CHECK_EQ(update(NULL, &foreign, 1, cudaStreamAddCaptureDependencies),
                  cudaErrorIllegalState);
    begin(s);
    launch(s);
    own[0] = own[1] = tip_of(s);
    BASE_CHECK_EQ(update(s, own, 1, 2), cudaErrorInvalidValue);
    BASE_CHECK_EQ(update(s, NULL, 1, cudaStreamSetCaptureDependencies), cudaErrorInvalidValue);
    BASE_CHECK_EQ(update(s, &foreign, 1, cudaStreamSetCaptureDependencies), cudaErrorInvalidValue);
    BASE_CHECK_EQ(update(s, &none, 1, cudaStreamSetCaptureDependencies), cudaErrorInvalidValue);
    BASE_CHECK(tip_of(s) == own[0]);
    end(s);
    BASE_CHECK_EQ(cudaGraphDestroy(other), cudaSuccess);
}

static void the_graph_keeps_its_nodes_while_it_is_captured(void) {
    cudaGraphNode_t empty;
    start();
    begin(s);
    launch(s);
    const cudaGraph_t graph = info_of(s).graph;
    cudaGraphNode_t tip = tip_of(s);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&empty, graph, &tip, 1), cudaSuccess);
    BASE_CHECK_NE(cudaGraphDestroy(graph), cudaSuccess);
    BASE_CHECK_NE(cudaGraphDestroyNode(empty), cudaSuccess);
    BASE_CHECK_NE(cudaGraphRemoveDependencies(graph, &tip, &empty, NULL, 1), cudaSuccess);
    size_t count = 0;
    BASE_CHECK_EQ(cudaGraphGetNodes(graph, NULL, &count), cudaSuccess);
    BASE_CHECK_EQ(count, 2);
    // A capture that is lost has no graph, and its handles name nothing.
    BASE_CHECK_EQ(cudaStreamQuery(s), cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(cudaGraphGetNodes(graph, NULL, &count), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(tip, NULL, NULL, &count), cudaErrorInvalidValue);
    cudaGraph_t none;
    BASE_CHECK_EQ(cudaStreamEndCapture(s, &none), cudaErrorStreamCaptureInvalidated);
    // Nor has one that is unjoined, once it is ended.
    begin(s);
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaSuccess);
    launch(t);
    const cudaGraph_t unjoined = info_of(s).graph;
    BASE_CHECK_EQ(cudaGraphGetNodes(unjoined, NULL, &count), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamEndCapture(s, &none), cudaErrorStreamCaptureUnjoined);
    BASE_CHECK_EQ(cudaGraphGetNodes(unjoined, NULL, &count), cudaErrorInvalidValue);
}

static const cudaGraphEdgeData programmatic = {
    .from_port = cudaGraphKernelNodePortProgrammatic,
    .type = cudaGraphDependencyTypeProgrammatic,
};

static void edge_data_goes_with_the_set(void) {
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *nodes;
    cudaGraphNode_t first, before;
    cudaGraphEdgeData data, wrong = programmatic;
    size_t count = 1;
    start();
    begin(s);
    launch(s);
    first = tip_of(s);
    wrong.reserved[3] = 1;
    BASE_CHECK_EQ(cudaStreamUpdateCaptureDependencies(s, &first, &wrong, 1,
                                                      cudaStreamSetCaptureDependencies),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamUpdateCaptureDependencies(s, &first, &programmatic, 1,
                                                      cudaStreamSetCaptureDependencies),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaStreamGetCaptureInfo(s, &status, NULL, NULL, &nodes, NULL, &count),
                  cudaErrorLossyQuery);
    BASE_CHECK_EQ(cudaStreamGetCaptureInfo(s, &status, NULL, NULL, NULL, NULL, &count),
                  cudaSuccess);
    const struct info info = info_of(s);
    BASE_CHECK_EQ(info.count, 1);
    BASE_CHECK(memcmp(&info.data[0], &programmatic, sizeof programmatic) == 0);
    // It is about kernels.
    BASE_CHECK_EQ(cudaLaunchHostFunc(s, host_body, NULL), cudaErrorInvalidValue);
    // Through an event to another stream, into the node's edge.
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaSuccess);
    launch(t);
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(tip_of(t), &before, &data, &count), cudaSuccess);
    BASE_CHECK(before == first);
    BASE_CHECK(memcmp(&data, &programmatic, sizeof data) == 0);
    BASE_CHECK_EQ(cudaEventRecord(e, t), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(s, e, 0), cudaSuccess);
    launch(s); // behind both: one edge with data, one without
    count = 2;
    cudaGraphNode_t both[2];
    cudaGraphEdgeData both_data[2];
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(tip_of(s), both, both_data, &count), cudaSuccess);
    BASE_CHECK_EQ(count, 2);
    BASE_CHECK_EQ(both_data[0].type + both_data[1].type, 1);
    // The end of a node is behind whatever its data mean.
    first = tip_of(s);
    BASE_CHECK_EQ(cudaStreamUpdateCaptureDependencies(s, &first, &programmatic, 1,
                                                      cudaStreamAddCaptureDependencies),
                  cudaSuccess);
    BASE_CHECK_EQ(info_of(s).count, 1);
    BASE_CHECK_EQ(info_of(s).data[0].type, cudaGraphDependencyTypeDefault);
    BASE_CHECK_EQ(cudaStreamUpdateCaptureDependencies(s, &first, &programmatic, 1,
                                                      cudaStreamSetCaptureDependencies),
                  cudaSuccess);
    BASE_CHECK_EQ(info_of(s).data[0].type, cudaGraphDependencyTypeProgrammatic);
    BASE_CHECK_EQ(update(s, &first, 1, cudaStreamAddCaptureDependencies), cudaSuccess);
    BASE_CHECK_EQ(info_of(s).count, 1);
    BASE_CHECK_EQ(info_of(s).data[0].type, cudaGraphDependencyTypeDefault);
    end(s);
}

// Sets of thousands, united in both ways: each node once.
static void large_sets_are_united(void) {
    enum { COUNT = 3000 };
    static cudaGraphNode_t nodes[COUNT];
    start();
    begin(s);
    const cudaGraph_t graph = info_of(s).graph;
    for (int i = 0; i < COUNT; ++i)
        BASE_CHECK_EQ(cudaGraphAddEmptyNode(&nodes[i], graph, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(update(s, nodes, 2000, cudaStreamSetCaptureDependencies), cudaSuccess);
    BASE_CHECK_EQ(update(s, nodes + 1000, 2000, cudaStreamAddCaptureDependencies), cudaSuccess);
    const struct info info = info_of(s);
    BASE_CHECK_EQ(info.count, COUNT);
    for (int i = 0; i < COUNT; ++i)
        BASE_CHECK(info.nodes[i] == nodes[i]);
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaSuccess);
    launch(t);
    BASE_CHECK_EQ(dependency_count(tip_of(t)), COUNT);
    BASE_CHECK_EQ(update(t, nodes, COUNT, cudaStreamAddCaptureDependencies), cudaSuccess);
    BASE_CHECK_EQ(info_of(t).count, COUNT + 1);
    BASE_CHECK_EQ(cudaEventRecord(e, t), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(s, e, 0), cudaSuccess);
    BASE_CHECK_EQ(info_of(s).count, COUNT + 1);
    launch(s);
    end(s);
}

int main(void) {
    info_is_stored_only_while_a_capture_is_active();
    outputs_are_optional();
    ids_are_never_given_again();
    joined_streams_tell_of_the_same_capture();
    the_set_is_emptied_when_it_becomes_another_one();
    an_empty_node_moves_the_tip();
    nodes_are_added_to_the_set();
    dropped_work_of_a_joined_stream_is_no_fault();
    work_is_joined_by_nodes_alone();
    wrong_updates_change_nothing();
    the_graph_keeps_its_nodes_while_it_is_captured();
    edge_data_goes_with_the_set();
    large_sets_are_united();
    return 0;
}
