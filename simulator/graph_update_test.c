// An executable takes another graph's parameters: which graphs fit, what is said of those that do
// not, and when the change counts.
#include "base/check.h"
#include "simulator/sim.h"

#include <string.h>

#define BYTES ((size_t)4096)

static cudaStream_t stream;
static char *device_memory, *other_memory, *pinned;
static int total;

static void start(int device_count) {
    void *pointer;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = device_count}), BASE_OK);
    BASE_CHECK_EQ(cudaStreamCreate(&stream), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&pointer, BYTES), cudaSuccess);
    device_memory = pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, BYTES), cudaSuccess);
    other_memory = pointer;
    BASE_CHECK_EQ(cudaMallocHost(&pointer, BYTES), cudaSuccess);
    pinned = pointer;
    total = 0;
}

static cudaGraph_t new_graph(void) {
    cudaGraph_t graph;
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    return graph;
}

static void add_body(const void *argument) { total += *(const int *)argument; }
static void take_body(const void *argument) { total -= *(const int *)argument; }

static cudaGraphNode_t kernel(cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
                              int value) {
    cudaGraphNode_t node;
    const struct sim_kernel add = {
        .body = add_body, .argument = &value, .argument_size = sizeof value};
    BASE_CHECK_EQ(sim_graph_add_kernel(&node, graph, dependencies, count, &add), cudaSuccess);
    return node;
}

static cudaGraphNode_t empty(cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                             size_t count) {
    cudaGraphNode_t node;
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&node, graph, dependencies, count), cudaSuccess);
    return node;
}

static cudaGraphExec_t instantiate(cudaGraph_t graph) {
    cudaGraphExec_t exec;
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    return exec;
}

static void launch(cudaGraphExec_t exec) {
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

static void updates(cudaGraphExec_t exec, cudaGraph_t graph) {
    cudaGraphExecUpdateResultInfo info = {cudaGraphExecUpdateErrorNotSupported,
                                          (cudaGraphNode_t)(uintptr_t)1,
                                          (cudaGraphNode_t)(uintptr_t)1};
    BASE_CHECK_EQ(cudaGraphExecUpdate(exec, graph, &info), cudaSuccess);
    BASE_CHECK_EQ(info.result, cudaGraphExecUpdateSuccess);
    BASE_CHECK(info.errorNode == NULL && info.errorFromNode == NULL);
}

static void refuses(cudaGraphExec_t exec, cudaGraph_t graph,
                    enum cudaGraphExecUpdateResult expected, cudaGraphNode_t node,
                    cudaGraphNode_t from) {
    cudaGraphExecUpdateResultInfo info = {0};
    BASE_CHECK_EQ(cudaGraphExecUpdate(exec, graph, &info), cudaErrorGraphExecUpdateFailure);
    BASE_CHECK_EQ(info.result, expected);
    BASE_CHECK(info.errorNode == node);
    BASE_CHECK(info.errorFromNode == from);
}

static void launches_that_are_pending_keep_what_they_began_with(void) {
    start(1);
    const cudaGraph_t first = new_graph(), second = new_graph();
    kernel(first, NULL, 0, 1);
    kernel(second, NULL, 0, 20);
    const cudaGraphExec_t exec = instantiate(first);
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    updates(exec, second);
    BASE_CHECK_EQ(cudaGraphDestroy(second), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    BASE_CHECK_EQ(total, 0);
    sim_stream_run(stream, 1);
    BASE_CHECK_EQ(total, 1);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK_EQ(total, 21);
    sim_stream_hold(stream, false);
    updates(exec, first); // and back
    launch(exec);
    BASE_CHECK_EQ(total, 22);
}

static void a_graph_that_does_not_fit_changes_nothing(void) {
    start(1);
    const cudaGraph_t first = new_graph(), second = new_graph();
    kernel(first, NULL, 0, 1);
    kernel(first, NULL, 0, 2);
    kernel(second, NULL, 0, 100);
    const cudaGraphNode_t other = empty(second, NULL, 0);
    const cudaGraphExec_t exec = instantiate(first);
    refuses(exec, second, cudaGraphExecUpdateErrorNodeTypeChanged, other, NULL);
    launch(exec);
    BASE_CHECK_EQ(total, 3);
    BASE_CHECK_EQ(cudaGetLastError(), cudaErrorGraphExecUpdateFailure);
}

static void another_number_of_nodes_is_another_topology(void) {
    start(1);
    const cudaGraph_t one = new_graph(), two = new_graph();
    kernel(one, NULL, 0, 1);
    kernel(two, NULL, 0, 1);
    kernel(two, NULL, 0, 1);
    refuses(instantiate(one), two, cudaGraphExecUpdateErrorTopologyChanged, NULL, NULL);
    refuses(instantiate(two), one, cudaGraphExecUpdateErrorTopologyChanged, NULL, NULL);
    refuses(instantiate(one), new_graph(), cudaGraphExecUpdateErrorTopologyChanged, NULL, NULL);
    updates(instantiate(new_graph()), new_graph());
}

// a -> b, c against a, b, c: one of the ends that are too many is named.
static void more_or_fewer_ends_are_another_topology(void) {
    start(1);
    const cudaGraph_t chain = new_graph(), loose = new_graph();
    cudaGraphNode_t nodes[3];
    const cudaGraphNode_t a = kernel(chain, NULL, 0, 1);
    kernel(chain, &a, 1, 1);
    const cudaGraphNode_t end = kernel(chain, &a, 1, 1);
    for (int i = 0; i < 3; ++i)
        nodes[i] = kernel(loose, NULL, 0, 1);
    refuses(instantiate(chain), loose, cudaGraphExecUpdateErrorTopologyChanged, nodes[2], NULL);
    refuses(instantiate(loose), chain, cudaGraphExecUpdateErrorTopologyChanged, end, NULL);
}

// Chains a -> b -> d and c -> d against a -> b, c -> b -> d.
static void another_number_of_dependencies_names_the_node(void) {
    start(1);
    const cudaGraph_t first = new_graph(), second = new_graph();
    const cudaGraphNode_t a = empty(first, NULL, 0), c = empty(first, NULL, 0);
    const cudaGraphNode_t b_and_c[] = {empty(first, &a, 1), c};
    empty(first, b_and_c, 2);
    const cudaGraphNode_t two[] = {empty(second, NULL, 0), empty(second, NULL, 0)};
    const cudaGraphNode_t b = empty(second, two, 2);
    const cudaGraphNode_t d = empty(second, &b, 1);
    refuses(instantiate(first), second, cudaGraphExecUpdateErrorTopologyChanged, d, NULL);
}

// a and b, with ends behind a and b, and behind a: against behind p and q, and behind q. Whichever
// end is looked at second depends on what stands for another node already.
static void a_dependency_that_stands_for_another_names_both(void) {
    start(1);
    const cudaGraph_t first = new_graph(), second = new_graph();
    const cudaGraphNode_t a_b[] = {empty(first, NULL, 0), empty(first, NULL, 0)};
    empty(first, a_b, 2);
    empty(first, &a_b[0], 1);
    const cudaGraphNode_t p = empty(second, NULL, 0), q = empty(second, NULL, 0);
    const cudaGraphNode_t p_q[] = {p, q};
    const cudaGraphNode_t end = empty(second, p_q, 2), other_end = empty(second, &q, 1);
    cudaGraphExecUpdateResultInfo info = {0};
    BASE_CHECK_EQ(cudaGraphExecUpdate(instantiate(first), second, &info),
                  cudaErrorGraphExecUpdateFailure);
    BASE_CHECK_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
    BASE_CHECK((info.errorNode == other_end && info.errorFromNode == q) ||
               (info.errorNode == end && info.errorFromNode == p));
}

// The order in which nodes without dependents and edges were made tells which is which: nodes may
// have been added in another one.
static void nodes_are_paired_from_the_ends_backwards(void) {
    start(1);
    const cudaGraph_t first = new_graph(), second = new_graph();
    cudaGraphNode_t a = kernel(first, NULL, 0, 1), b = kernel(first, NULL, 0, 2);
    const cudaGraphNode_t a_b[] = {a, b};
    kernel(first, a_b, 2, 4);
    b = kernel(second, NULL, 0, 1000);
    a = empty(second, NULL, 0);
    const cudaGraphNode_t b_a[] = {b, a};
    const cudaGraphNode_t end = kernel(second, b_a, 2, 4000);
    // (b, a) is (kernel, empty): the second of the end's dependencies does not fit.
    refuses(instantiate(first), second, cudaGraphExecUpdateErrorNodeTypeChanged, a, NULL);
    BASE_CHECK_EQ(cudaGraphDestroyNode(a), cudaSuccess);
    a = kernel(second, NULL, 0, 2000);
    BASE_CHECK_EQ(cudaGraphAddDependencies(second, &a, &end, NULL, 1), cudaSuccess);
    const cudaGraphExec_t exec = instantiate(first);
    updates(exec, second);
    launch(exec);
    BASE_CHECK_EQ(total, 7000);
}

static void a_kernel_takes_another_function_of_its_device(void) {
    start(2);
    const cudaGraph_t first = new_graph(), second = new_graph(), third = new_graph();
    const int value = 5;
    cudaGraphNode_t node;
    const struct sim_kernel take = {
        .body = take_body, .argument = &value, .argument_size = sizeof value};
    kernel(first, NULL, 0, 1);
    BASE_CHECK_EQ(sim_graph_add_kernel(&node, second, NULL, 0, &take), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    const cudaGraphNode_t elsewhere = kernel(third, NULL, 0, 1);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    const cudaGraphExec_t exec = instantiate(first);
    updates(exec, second);
    launch(exec);
    BASE_CHECK_EQ(total, -5);
    refuses(exec, third, cudaGraphExecUpdateErrorUnsupportedFunctionChange, elsewhere, NULL);
}

static cudaGraphNode_t copy(cudaGraph_t graph, void *to, const void *from, size_t size) {
    cudaGraphNode_t node;
    BASE_CHECK_EQ(cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, to, from, size,
                                           cudaMemcpyDefault),
                  cudaSuccess);
    return node;
}

static cudaGraphNode_t fill(cudaGraph_t graph, void *to, unsigned int value, size_t width,
                            size_t height) {
    cudaGraphNode_t node;
    const struct cudaMemsetParams parameters = {to, 64, value, 1, width, height};
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &parameters), cudaSuccess);
    return node;
}

static void copies_and_fills_keep_their_kind_of_memory_and_device(void) {
    start(2);
    void *far;
    cudaGraph_t graph = new_graph();
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&far, BYTES), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    copy(graph, device_memory, pinned, 64);
    cudaGraphExec_t exec = instantiate(graph);
    copy(graph = new_graph(), other_memory, pinned + 8, 100);
    updates(exec, graph);
    cudaGraphNode_t node = copy(graph = new_graph(), pinned, device_memory, 64);
    refuses(exec, graph, cudaGraphExecUpdateErrorParametersChanged, node, NULL);
    node = copy(graph = new_graph(), device_memory, other_memory, 64);
    refuses(exec, graph, cudaGraphExecUpdateErrorParametersChanged, node, NULL);
    node = copy(graph = new_graph(), far, pinned, 64);
    refuses(exec, graph, cudaGraphExecUpdateErrorParametersChanged, node, NULL);
    copy(graph = new_graph(), pinned, device_memory, 64);
    exec = instantiate(graph);
    node = copy(graph = new_graph(), pinned, far, 64);
    refuses(exec, graph, cudaGraphExecUpdateErrorParametersChanged, node, NULL);
    char pageable[64];
    node = copy(graph = new_graph(), pageable, device_memory, 64);
    refuses(exec, graph, cudaGraphExecUpdateErrorParametersChanged, node, NULL);

    fill(graph = new_graph(), device_memory, 1, 64, 1);
    exec = instantiate(graph);
    fill(graph = new_graph(), other_memory, 2, 32, 1);
    updates(exec, graph);
    node = fill(graph = new_graph(), other_memory, 2, 32, 2);
    refuses(exec, graph, cudaGraphExecUpdateErrorParametersChanged, node, NULL);
    fill(graph = new_graph(), device_memory, 1, 16, 3);
    exec = instantiate(graph);
    fill(graph = new_graph(), other_memory, 4, 16, 3); // address and value
    updates(exec, graph);
    node = fill(graph = new_graph(), device_memory, 1, 15, 3);
    refuses(exec, graph, cudaGraphExecUpdateErrorParametersChanged, node, NULL);
    BASE_CHECK_EQ(cudaMemset(other_memory, 0, BYTES), cudaSuccess);
    launch(exec);
    const char *bytes = sim_device_bytes(other_memory);
    BASE_CHECK(bytes[15] == 4 && bytes[16] == 0 && bytes[128] == 4);
}

static cudaGraph_t attributed(cudaLaunchAttributeID attribute, int value, cudaGraphNode_t *node) {
    const cudaGraph_t graph = new_graph();
    cudaLaunchAttributeValue set = {.pad = {0}};
    memcpy(&set, &value, sizeof value); // both are the first
    *node = kernel(graph, NULL, 0, 1);
    BASE_CHECK_EQ(cudaGraphKernelNodeSetAttribute(*node, attribute, &set), cudaSuccess);
    return graph;
}

static void cooperative_kernels_and_priorities_in_force_stay(void) {
    start(1);
    cudaGraphNode_t node;
    cudaGraphExec_t by_priority;
    cudaGraph_t graph = attributed(cudaLaunchAttributePriority, -2, &node);
    const cudaGraphExec_t exec = instantiate(graph);
    BASE_CHECK_EQ(cudaGraphInstantiateWithFlags(&by_priority, graph,
                                                cudaGraphInstantiateFlagUseNodePriority),
                  cudaSuccess);
    updates(by_priority, graph);
    graph = attributed(cudaLaunchAttributePriority, -1, &node);
    updates(exec, graph);
    refuses(by_priority, graph, cudaGraphExecUpdateErrorAttributesChanged, node, NULL);
    graph = attributed(cudaLaunchAttributeCooperative, 1, &node);
    refuses(exec, graph, cudaGraphExecUpdateErrorAttributesChanged, node, NULL);
    updates(instantiate(graph), graph);
}

static void events_change_freely(void) {
    start(1);
    cudaEvent_t first_event, second_event;
    float milliseconds;
    cudaGraphNode_t node;
    const cudaGraph_t first = new_graph(), second = new_graph();
    BASE_CHECK_EQ(cudaEventCreate(&first_event), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&second_event), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEventRecordNode(&node, first, NULL, 0, first_event), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEventRecordNode(&node, second, NULL, 0, second_event), cudaSuccess);
    const cudaGraphExec_t exec = instantiate(first);
    updates(exec, second);
    launch(exec);
    BASE_CHECK_EQ(cudaEventElapsedTime(&milliseconds, second_event, second_event), cudaSuccess);
    BASE_CHECK_EQ(cudaEventElapsedTime(&milliseconds, first_event, first_event),
                  cudaErrorInvalidResourceHandle); // never recorded
}

static void memory_nodes_are_not_supported(void) {
    start(1);
    struct cudaMemAllocNodeParams parameters = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {cudaMemLocationTypeDevice, 0}},
        .bytesize = 4096};
    const cudaGraph_t graph = new_graph();
    cudaGraphNode_t node;
    BASE_CHECK_EQ(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters), cudaSuccess);
    const cudaGraphExec_t exec = instantiate(graph);
    refuses(exec, graph, cudaGraphExecUpdateErrorNotSupported, node, NULL);
}

static void a_cycle_is_another_topology(void) {
    start(1);
    const cudaGraph_t first = new_graph(), second = new_graph();
    const cudaGraphNode_t a = empty(first, NULL, 0);
    empty(first, &a, 1);
    const cudaGraphNode_t p = empty(second, NULL, 0), q = empty(second, &p, 1);
    BASE_CHECK_EQ(cudaGraphAddDependencies(second, &q, &p, NULL, 1), cudaSuccess);
    cudaGraphExecUpdateResultInfo info;
    BASE_CHECK_EQ(cudaGraphExecUpdate(instantiate(first), second, &info),
                  cudaErrorGraphExecUpdateFailure);
    BASE_CHECK_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
}

static void what_names_nothing_is_an_error_of_the_call(void) {
    start(1);
    const cudaGraph_t graph = new_graph();
    const cudaGraphExec_t exec = instantiate(graph);
    cudaGraphExecUpdateResultInfo info = {0};
    BASE_CHECK_EQ(cudaGraphExecUpdate(NULL, graph, &info), cudaErrorInvalidValue);
    BASE_CHECK_EQ(info.result, cudaGraphExecUpdateError);
    BASE_CHECK_EQ(cudaGraphExecUpdate(exec, NULL, &info), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphExecUpdate(exec, graph, NULL), cudaErrorInvalidValue);
}

// --- Child graphs ---

// A graph with one child graph: a kernel, and behind it EXTRA more beside each other.
static cudaGraph_t nested(int value, int extra, cudaGraphNode_t *node, cudaGraphNode_t *inner) {
    const cudaGraph_t child = new_graph(), graph = new_graph();
    cudaGraph_t own;
    size_t count = 1;
    const cudaGraphNode_t a = kernel(child, NULL, 0, value);
    for (int i = 0; i < extra; ++i)
        kernel(child, &a, 1, value);
    const cudaGraphNode_t before = kernel(graph, NULL, 0, value);
    BASE_CHECK_EQ(cudaGraphAddChildGraphNode(node, graph, &before, 1, child), cudaSuccess);
    kernel(graph, node, 1, value);
    BASE_CHECK_EQ(cudaGraphDestroy(child), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphChildGraphNodeGetGraph(*node, &own), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphGetNodes(own, inner, &count), cudaSuccess);
    return graph;
}

static void child_graphs_are_updated_with_the_whole(void) {
    start(1);
    cudaGraphNode_t node, inner, other, other_inner;
    const cudaGraph_t first = nested(1, 2, &node, &inner);
    const cudaGraph_t second = nested(100, 2, &other, &other_inner);
    const cudaGraphExec_t exec = instantiate(first);
    updates(exec, second);
    launch(exec);
    BASE_CHECK_EQ(total, 500);
    const cudaGraph_t third = nested(1, 3, &other, &other_inner);
    refuses(exec, third, cudaGraphExecUpdateErrorTopologyChanged, other, NULL);
    // Chains of two and of three: one node at the child's end either way.
    const cudaGraph_t chain = nested(1, 1, &other, &other_inner);
    const cudaGraph_t longer = nested(1, 1, &other, &other_inner);
    cudaGraph_t own;
    cudaGraphNode_t end;
    size_t count = 1;
    BASE_CHECK_EQ(cudaGraphChildGraphNodeGetGraph(other, &own), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeGetDependentNodes(other_inner, &end, NULL, &count), cudaSuccess);
    kernel(own, &end, 1, 1);
    refuses(instantiate(chain), longer, cudaGraphExecUpdateErrorTopologyChanged, other, NULL);
    const cudaGraph_t flat = new_graph();
    const cudaGraphNode_t a = kernel(flat, NULL, 0, 1), b = kernel(flat, &a, 1, 1);
    kernel(flat, &b, 1, 1);
    refuses(exec, flat, cudaGraphExecUpdateErrorNodeTypeChanged, b, NULL);
    refuses(instantiate(flat), first, cudaGraphExecUpdateErrorNodeTypeChanged, node, NULL);
}

static void a_child_graph_is_updated_by_itself(void) {
    start(1);
    cudaGraphNode_t node, inner, a;
    const cudaGraph_t graph = nested(1, 2, &node, &inner);
    const cudaGraphExec_t exec = instantiate(graph);
    cudaGraph_t child = new_graph();
    a = kernel(child, NULL, 0, 10);
    kernel(child, &a, 1, 10);
    kernel(child, &a, 1, 10);
    BASE_CHECK_EQ(cudaGraphExecChildGraphNodeSetParams(exec, node, child), cudaSuccess);
    launch(exec);
    BASE_CHECK_EQ(total, 32); // the child's three, and one before and one behind it
    kernel(child, &a, 1, 10);
    BASE_CHECK_EQ(cudaGraphExecChildGraphNodeSetParams(exec, node, child), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphExecChildGraphNodeSetParams(exec, inner, child), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphExecChildGraphNodeSetParams(exec, node, NULL), cudaErrorInvalidValue);
    child = new_graph(); // as many nodes, but two roots
    a = kernel(child, NULL, 0, 10);
    const cudaGraphNode_t b = kernel(child, NULL, 0, 10);
    kernel(child, &a, 1, 10);
    BASE_CHECK_EQ(cudaGraphExecChildGraphNodeSetParams(exec, node, child), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddDependencies(child, &a, &b, NULL, 1), cudaSuccess);
    struct cudaGraphNodeParams any = {.type = cudaGraphNodeTypeGraph, .graph = {child, 0}};
    BASE_CHECK_EQ(cudaGraphExecNodeSetParams(exec, node, &any), cudaSuccess);
    launch(exec);
    BASE_CHECK_EQ(total, 64);
}

int main(void) {
    launches_that_are_pending_keep_what_they_began_with();
    a_graph_that_does_not_fit_changes_nothing();
    another_number_of_nodes_is_another_topology();
    more_or_fewer_ends_are_another_topology();
    another_number_of_dependencies_names_the_node();
    a_dependency_that_stands_for_another_names_both();
    nodes_are_paired_from_the_ends_backwards();
    a_kernel_takes_another_function_of_its_device();
    copies_and_fills_keep_their_kind_of_memory_and_device();
    cooperative_kernels_and_priorities_in_force_stay();
    events_change_freely();
    memory_nodes_are_not_supported();
    a_cycle_is_another_topology();
    what_names_nothing_is_an_error_of_the_call();
    child_graphs_are_updated_with_the_whole();
    a_child_graph_is_updated_by_itself();
    return 0;
}
