// Executables: what a graph must be, what of it they keep, changes to single nodes of theirs, and
// their end. Changes to all: graph_update_test.c. Order: replay_order_test.c.
#include "base/check.h"
#include "simulator/sim.h"

#include <string.h>

#define BYTES ((size_t)4096)

static cudaGraph_t graph;
static cudaStream_t stream;
static char *device_memory, *other_memory, *pinned;

static void start(int device_count) {
    void *pointer;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = device_count}), BASE_OK);
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreate(&stream), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&pointer, BYTES), cudaSuccess);
    device_memory = pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, BYTES), cudaSuccess);
    other_memory = pointer;
    BASE_CHECK_EQ(cudaMallocHost(&pointer, BYTES), cudaSuccess);
    pinned = pointer;
    memset(pinned, 0, BYTES);
}

static cudaGraphExec_t instantiate(void) {
    cudaGraphExec_t exec = NULL;
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    BASE_CHECK(exec != NULL);
    return exec;
}

static void launch(cudaGraphExec_t exec) {
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

static void add_body(const void *argument) {
    const struct {
        int *number, by;
    } *what = argument;
    *what->number += what->by;
}

struct addition {
    int *number, by;
};

static struct sim_kernel addition(const struct addition *what) {
    return (struct sim_kernel){
        .name = "add", .body = add_body, .argument = what, .argument_size = sizeof *what};
}

static cudaGraphNode_t add_kernel(const struct addition *what) {
    cudaGraphNode_t node;
    const struct sim_kernel kernel = addition(what);
    BASE_CHECK_EQ(sim_graph_add_kernel(&node, graph, NULL, 0, &kernel), cudaSuccess);
    return node;
}

static void count_up(void *number) { ++*(int *)number; }
static void count_ten(void *number) { *(int *)number += 10; }

static cudaGraphNode_t add_host(int *number) {
    cudaGraphNode_t node;
    BASE_CHECK_EQ(cudaGraphAddHostNode(&node, graph, NULL, 0,
                                       &(struct cudaHostNodeParams){count_up, number}),
                  cudaSuccess);
    return node;
}

// --- Making one ---

static void an_executable_is_made_of_a_graph_with_known_flags(void) {
    start(1);
    cudaGraphExec_t exec = (cudaGraphExec_t)(uintptr_t)3;
    unsigned long long flags = 9;
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, NULL, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphInstantiate(NULL, graph, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphInstantiateWithFlags(&exec, graph, 16), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphInstantiateWithFlags(&exec, graph, 1ull << 40), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphInstantiateWithFlags(&exec, graph, cudaGraphInstantiateFlagUpload),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphInstantiateWithFlags(&exec, graph,
                                                cudaGraphInstantiateFlagDeviceLaunch |
                                                    cudaGraphInstantiateFlagAutoFreeOnLaunch),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphInstantiateWithFlags(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch),
                  cudaErrorNotSupported);
    BASE_CHECK(exec == (cudaGraphExec_t)(uintptr_t)3);
    BASE_CHECK_EQ(cudaGraphInstantiateWithFlags(&exec, graph,
                                                cudaGraphInstantiateFlagAutoFreeOnLaunch |
                                                    cudaGraphInstantiateFlagUseNodePriority),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecGetFlags(exec, &flags), cudaSuccess);
    BASE_CHECK_EQ(flags, 9);
    BASE_CHECK_EQ(cudaGraphExecGetFlags(exec, NULL), cudaErrorInvalidValue);
    launch(exec); // of a graph without nodes
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphExecDestroy(NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphExecGetFlags(exec, &flags), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaErrorInvalidValue);
}

static void a_cycle_is_found_here_and_named(void) {
    start(1);
    cudaGraphExec_t exec;
    cudaGraphNode_t nodes[5];
    cudaGraphInstantiateParams parameters = {0};
    for (int i = 0; i < 5; ++i)
        BASE_CHECK_EQ(cudaGraphAddEmptyNode(&nodes[i], graph, i == 0 ? NULL : &nodes[i - 1],
                                            i == 0 ? 0 : 1),
                      cudaSuccess);
    // 1, 2 and 3 make the cycle; 0 is before it, 4 behind it.
    BASE_CHECK_EQ(cudaGraphAddDependencies(graph, &nodes[3], &nodes[1], NULL, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphInstantiateWithParams(&exec, graph, &parameters),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(parameters.result_out, cudaGraphInstantiateInvalidStructure);
    BASE_CHECK(parameters.errNode_out == nodes[1] || parameters.errNode_out == nodes[2] ||
               parameters.errNode_out == nodes[3]);
    BASE_CHECK_EQ(cudaGraphRemoveDependencies(graph, &nodes[3], &nodes[1], NULL, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphInstantiateWithParams(&exec, graph, &parameters), cudaSuccess);
    BASE_CHECK_EQ(parameters.result_out, cudaGraphInstantiateSuccess);
    BASE_CHECK(parameters.errNode_out == NULL);
}

static void a_cycle_in_a_child_graph_is_found_too(void) {
    start(1);
    cudaGraph_t child, own;
    cudaGraphExec_t exec;
    cudaGraphNode_t a, b, node, own_a, own_b;
    cudaGraphInstantiateParams parameters = {0};
    BASE_CHECK_EQ(cudaGraphCreate(&child, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&a, child, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&b, child, &a, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddDependencies(child, &b, &a, NULL, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphInstantiateWithParams(&exec, graph, &parameters),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphChildGraphNodeGetGraph(node, &own), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&own_a, a, own), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&own_b, b, own), cudaSuccess);
    BASE_CHECK(parameters.errNode_out == own_a || parameters.errNode_out == own_b);
}

static void an_upload_needs_a_stream(void) {
    start(1);
    cudaGraphExec_t exec;
    cudaGraphInstantiateParams parameters = {.flags = cudaGraphInstantiateFlagUpload,
                                             .uploadStream = stream};
    unsigned long long flags;
    BASE_CHECK_EQ(cudaGraphInstantiateWithParams(&exec, graph, &parameters), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecGetFlags(exec, &flags), cudaSuccess);
    BASE_CHECK_EQ(flags & cudaGraphInstantiateFlagAutoFreeOnLaunch, 0);
    parameters.uploadStream = NULL; // the legacy stream
    BASE_CHECK_EQ(cudaGraphInstantiateWithParams(&exec, graph, &parameters), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamDestroy(stream), cudaSuccess);
    parameters.uploadStream = stream;
    BASE_CHECK_EQ(cudaGraphInstantiateWithParams(&exec, graph, &parameters),
                  cudaErrorContextIsDestroyed);
    BASE_CHECK_EQ(parameters.result_out, cudaGraphInstantiateError);
    BASE_CHECK(parameters.errNode_out == NULL);
    BASE_CHECK_EQ(cudaGraphInstantiateWithParams(&exec, graph, NULL), cudaErrorInvalidValue);
}

// Nodes and edges stay, there is no copy, and one executable at a time.
static void a_graph_with_memory_nodes_is_one_of_a_kind(void) {
    start(1);
    struct cudaMemAllocNodeParams parameters = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {cudaMemLocationTypeDevice, 0}},
        .bytesize = BYTES};
    cudaGraphNode_t alloc, free_node, other, node;
    cudaGraph_t copy, outer;
    cudaGraphExec_t exec, second;
    BASE_CHECK_EQ(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &parameters), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&other, graph, &alloc, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddMemFreeNode(&free_node, graph, &other, 1, parameters.dptr),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroyNode(other), cudaErrorNotSupported);
    BASE_CHECK_EQ(cudaGraphRemoveDependencies(graph, &alloc, &other, NULL, 1),
                  cudaErrorNotSupported);
    BASE_CHECK_EQ(cudaGraphAddDependencies(graph, &alloc, &free_node, NULL, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphClone(&copy, graph), cudaErrorNotSupported);
    BASE_CHECK_EQ(cudaGraphCreate(&outer, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, outer, NULL, 0, graph), cudaErrorNotSupported);
    exec = instantiate();
    BASE_CHECK_EQ(cudaGraphInstantiate(&second, graph, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    exec = instantiate();
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    struct cudaGraphNodeParams move = {.type = cudaGraphNodeTypeGraph,
                                       .graph = {graph, cudaGraphChildGraphOwnershipMove}};
    BASE_CHECK_EQ(cudaGraphAddNode(&node, outer, NULL, NULL, 0, &move), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroyNode(node), cudaErrorNotSupported); // they are the outer's now
    graph = outer;
    exec = instantiate();
    BASE_CHECK_EQ(cudaGraphInstantiate(&second, outer, 0), cudaErrorInvalidValue);
    launch(exec);
}

// --- What it keeps ---

static void an_executable_keeps_what_it_was_made_with(void) {
    start(1);
    int number = 0;
    struct addition what = {&number, 1};
    cudaGraphNode_t node = add_kernel(&what), later;
    const cudaGraphExec_t first = instantiate();
    what.by = 100;
    const struct sim_kernel kernel = addition(&what);
    BASE_CHECK_EQ(sim_graph_kernel_set(node, &kernel), cudaSuccess);
    const cudaGraphExec_t second = instantiate();
    later = add_host(&number);
    BASE_CHECK_EQ(cudaGraphDestroyNode(later), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroyNode(node), cudaSuccess);
    launch(first);
    BASE_CHECK_EQ(number, 1);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    launch(second);
    BASE_CHECK_EQ(number, 101);
    launch(first);
    BASE_CHECK_EQ(number, 102);
    BASE_CHECK_EQ(cudaGraphExecDestroy(first), cudaSuccess);
    launch(second);
    BASE_CHECK_EQ(number, 202);
}

static void a_destroyed_executable_completes_what_is_pending(void) {
    start(1);
    int number = 0;
    const struct addition what = {&number, 1};
    add_kernel(&what);
    const cudaGraphExec_t exec = instantiate();
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    BASE_CHECK_EQ(number, 0);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK_EQ(number, 2);
}

static void a_graph_that_is_captured_can_be_instantiated_as_it_is(void) {
    start(1);
    int number = 0;
    const struct addition what = {&number, 1};
    cudaGraph_t captured, ended;
    enum cudaStreamCaptureStatus status;
    cudaStream_t other;
    cudaGraphExec_t exec;
    BASE_CHECK_EQ(cudaStreamCreate(&other), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamBeginCapture(other, cudaStreamCaptureModeRelaxed), cudaSuccess);
    BASE_CHECK_EQ(sim_launch(other, "add", add_body, &what, sizeof what), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamGetCaptureInfo(other, &status, NULL, &captured, NULL, NULL, NULL),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, captured, 0), cudaSuccess);
    BASE_CHECK_EQ(sim_launch(other, "add", add_body, &what, sizeof what), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(captured), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamEndCapture(other, &ended), cudaSuccess);
    launch(exec);
    BASE_CHECK_EQ(number, 1);
    BASE_CHECK_EQ(cudaGraphDestroy(ended), cudaSuccess);
}

// --- Changes ---

static void a_kernel_of_an_executable_takes_other_arguments_and_functions(void) {
    start(2);
    int number = 0, other = 0;
    struct addition what = {&number, 1};
    cudaGraphNode_t node = add_kernel(&what), foreign;
    const cudaGraphExec_t exec = instantiate();
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess); // pending: keeps what it has
    what = (struct addition){&other, 20};
    struct sim_kernel kernel = addition(&what);
    BASE_CHECK_EQ(sim_graph_exec_kernel_set(exec, node, &kernel), cudaSuccess);
    what.by = 1000;
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    BASE_CHECK_EQ(number + other, 0);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK_EQ(number, 1);
    BASE_CHECK_EQ(other, 20);

    cudaGraph_t copy;
    BASE_CHECK_EQ(cudaGraphClone(&copy, graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&foreign, node, copy), cudaSuccess);
    BASE_CHECK_EQ(sim_graph_exec_kernel_set(exec, foreign, &kernel), cudaErrorInvalidValue);
    BASE_CHECK_EQ(sim_graph_exec_kernel_set(NULL, node, &kernel), cudaErrorInvalidValue);
    BASE_CHECK_EQ(sim_graph_exec_kernel_set(exec, node, NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(sim_graph_exec_kernel_set(exec, node, &kernel), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    struct cudaKernelNodeParams cuda = {.func = (void *)(uintptr_t)add_body};
    BASE_CHECK_EQ(cudaGraphExecKernelNodeSetParams(exec, node, &cuda),
                  cudaErrorInvalidDeviceFunction);
    BASE_CHECK_EQ(cudaGraphDestroyNode(node), cudaSuccess);
    BASE_CHECK_EQ(sim_graph_exec_kernel_set(exec, node, &kernel), cudaErrorInvalidValue);
}

static void copies_of_an_executable_move_but_stay_of_one_kind(void) {
    start(2);
    void *far;
    cudaGraphNode_t node, rows;
    BASE_CHECK_EQ(cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, device_memory, pinned, 16,
                                           cudaMemcpyDefault),
                  cudaSuccess);
    const struct cudaMemcpy3DParms two = {.srcPtr = {pinned, 64, 64, 2},
                                          .dstPtr = {device_memory, 64, 64, 2},
                                          .extent = {8, 2, 1},
                                          .kind = cudaMemcpyDefault};
    BASE_CHECK_EQ(cudaGraphAddMemcpyNode(&rows, graph, NULL, 0, &two), cudaSuccess);
    const cudaGraphExec_t exec = instantiate();
    memset(pinned, 5, BYTES);
#define SET(to, from, size)                                                                        \
    cudaGraphExecMemcpyNodeSetParams1D(exec, node, to, from, size, cudaMemcpyDefault)
    BASE_CHECK_EQ(SET(other_memory + 8, pinned, 32), cudaSuccess);
    launch(exec);
    const char *bytes = sim_device_bytes(other_memory);
    BASE_CHECK_EQ(bytes[8], 5);
    BASE_CHECK_EQ(bytes[39], 5);
    BASE_CHECK_EQ(SET(other_memory, device_memory, 16), cudaErrorInvalidValue); // not from the host
    BASE_CHECK_EQ(SET(pinned, pinned + 64, 16), cudaErrorInvalidValue);
    BASE_CHECK_EQ(SET(other_memory, pinned, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&far, BYTES), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    BASE_CHECK_EQ(SET(far, pinned, 16), cudaErrorInvalidValue); // another device's memory
    char pageable[16];
    BASE_CHECK_EQ(SET(other_memory, pageable, 16), cudaErrorInvalidValue); // it was page-locked
#undef SET
    BASE_CHECK_EQ(cudaGraphExecMemcpyNodeSetParams(exec, node, &two), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphExecMemcpyNodeSetParams(exec, rows, &two), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphExecMemcpyNodeSetParams1D(exec, rows, device_memory, pinned, 16,
                                                     cudaMemcpyDefault),
                  cudaErrorInvalidValue);
    struct cudaMemcpy3DParms one = two;
    one.extent.height = 1;
    BASE_CHECK_EQ(cudaGraphExecMemcpyNodeSetParams(exec, node, &one), cudaSuccess);
}

static void fills_of_an_executable_keep_their_shape(void) {
    start(1);
    struct cudaMemsetParams one = {device_memory, 0, 1, 1, 16, 1};
    struct cudaMemsetParams rows = {other_memory, 32, 2, 1, 8, 2};
    cudaGraphNode_t one_node, rows_node;
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&one_node, graph, NULL, 0, &one), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&rows_node, graph, NULL, 0, &rows), cudaSuccess);
    const cudaGraphExec_t exec = instantiate();
    one.dst = device_memory + 100;
    one.value = 7;
    one.width = 3;
    BASE_CHECK_EQ(cudaGraphExecMemsetNodeSetParams(exec, one_node, &one), cudaSuccess);
    rows.dst = other_memory + 64;
    rows.value = 9;
    BASE_CHECK_EQ(cudaGraphExecMemsetNodeSetParams(exec, rows_node, &rows), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset(device_memory, 0, BYTES), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset(other_memory, 0, BYTES), cudaSuccess);
    launch(exec);
    const char *bytes = sim_device_bytes(device_memory), *others = sim_device_bytes(other_memory);
    BASE_CHECK(bytes[0] == 0 && bytes[100] == 7 && bytes[102] == 7 && bytes[103] == 0);
    BASE_CHECK(others[0] == 0 && others[64] == 9 && others[96] == 9 && others[104] == 0);
    struct cudaMemsetParams bad = rows;
    bad.width = 9;
    BASE_CHECK_EQ(cudaGraphExecMemsetNodeSetParams(exec, rows_node, &bad), cudaErrorInvalidValue);
    bad = rows;
    bad.pitch = 64;
    BASE_CHECK_EQ(cudaGraphExecMemsetNodeSetParams(exec, rows_node, &bad), cudaErrorInvalidValue);
    bad = one;
    bad.height = 2;
    bad.pitch = 8;
    BASE_CHECK_EQ(cudaGraphExecMemsetNodeSetParams(exec, one_node, &bad), cudaErrorInvalidValue);
    bad = one;
    bad.dst = pinned; // another kind of memory
    BASE_CHECK_EQ(cudaGraphExecMemsetNodeSetParams(exec, one_node, &bad), cudaErrorInvalidValue);
}

static void host_and_event_nodes_of_an_executable_change_freely(void) {
    start(1);
    int number = 0, other = 0;
    cudaEvent_t before, after;
    cudaGraphNode_t host = add_host(&number), record, wait;
    BASE_CHECK_EQ(cudaEventCreate(&before), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&after), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEventRecordNode(&record, graph, &host, 1, before), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEventWaitNode(&wait, graph, NULL, 0, before), cudaSuccess);
    const cudaGraphExec_t exec = instantiate();
    const struct cudaHostNodeParams ten = {count_ten, &other};
    BASE_CHECK_EQ(cudaGraphExecHostNodeSetParams(exec, host, &ten), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecEventRecordNodeSetEvent(exec, record, after), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecEventWaitNodeSetEvent(exec, wait, after), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecEventWaitNodeSetEvent(exec, record, after), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphExecHostNodeSetParams(exec, record, &ten), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphExecEventRecordNodeSetEvent(exec, record, NULL),
                  cudaErrorInvalidResourceHandle);
    float milliseconds;
    launch(exec);
    BASE_CHECK_EQ(number, 0);
    BASE_CHECK_EQ(other, 10);
    BASE_CHECK_EQ(cudaEventElapsedTime(&milliseconds, after, after), cudaSuccess); // recorded
    BASE_CHECK_EQ(cudaEventElapsedTime(&milliseconds, before, before),
                  cudaErrorInvalidResourceHandle); // never
    struct cudaGraphNodeParams any = {.type = cudaGraphNodeTypeHost, .host = {count_up, &number}};
    BASE_CHECK_EQ(cudaGraphExecNodeSetParams(exec, host, &any), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecNodeSetParams(exec, record, &any), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphExecNodeSetParams(exec, host, NULL), cudaErrorInvalidValue);
    any = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeKernel};
    BASE_CHECK_EQ(cudaGraphExecNodeSetParams(exec, host, &any), cudaErrorInvalidDeviceFunction);
    launch(exec);
    BASE_CHECK_EQ(number, 1);
    BASE_CHECK_EQ(other, 10);
}

static void kernels_copies_and_fills_can_be_switched_off(void) {
    start(1);
    int number = 0;
    const struct addition what = {&number, 1};
    cudaGraphNode_t nodes[3], host;
    unsigned int is_enabled = 7;
    nodes[0] = add_kernel(&what);
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&nodes[1], graph, NULL, 0,
                                         &(struct cudaMemsetParams){device_memory, 0, 6, 1, 4, 1}),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddMemcpyNode1D(&nodes[2], graph, &nodes[1], 1, pinned, device_memory,
                                           4, cudaMemcpyDefault),
                  cudaSuccess);
    host = add_host(&number);
    const cudaGraphExec_t exec = instantiate();
    BASE_CHECK_EQ(cudaMemset(device_memory, 1, BYTES), cudaSuccess);
    for (int i = 0; i < 3; ++i) {
        BASE_CHECK_EQ(cudaGraphNodeGetEnabled(exec, nodes[i], &is_enabled), cudaSuccess);
        BASE_CHECK_EQ(is_enabled, 1);
    }
    BASE_CHECK_EQ(cudaGraphNodeSetEnabled(exec, nodes[0], 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeSetEnabled(exec, nodes[1], 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeGetEnabled(exec, nodes[1], &is_enabled), cudaSuccess);
    BASE_CHECK_EQ(is_enabled, 0);
    launch(exec);
    BASE_CHECK_EQ(number, 1); // the host function's
    BASE_CHECK_EQ(pinned[0], 1);
    BASE_CHECK_EQ(cudaGraphNodeSetEnabled(exec, nodes[1], 55), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeSetEnabled(exec, nodes[2], 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeGetEnabled(exec, nodes[1], &is_enabled), cudaSuccess);
    BASE_CHECK_EQ(is_enabled, 1);
    launch(exec);
    BASE_CHECK_EQ(pinned[0], 1);
    BASE_CHECK_EQ(cudaGraphNodeSetEnabled(exec, nodes[2], 1), cudaSuccess);
    launch(exec);
    BASE_CHECK_EQ(pinned[0], 6);
    BASE_CHECK_EQ(cudaGraphNodeSetEnabled(exec, host, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphNodeGetEnabled(exec, host, &is_enabled), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphNodeGetEnabled(exec, nodes[0], NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphNodeSetEnabled(NULL, nodes[0], 0), cudaErrorInvalidValue);
}

static void the_nodes_of_a_child_graph_are_found_in_the_executable(void) {
    start(1);
    int number = 0;
    cudaGraph_t child = graph, own;
    cudaGraphNode_t inner = add_host(&number), node, own_inner;
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphChildGraphNodeGetGraph(node, &own), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&own_inner, inner, own), cudaSuccess);
    const cudaGraphExec_t exec = instantiate();
    const struct cudaHostNodeParams ten = {count_ten, &number};
    BASE_CHECK_EQ(cudaGraphExecHostNodeSetParams(exec, inner, &ten), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphExecHostNodeSetParams(exec, own_inner, &ten), cudaSuccess);
    launch(exec);
    BASE_CHECK_EQ(number, 10);
}

static void a_program_ends_with_pending_launches(void) {
    start(1);
    int number = 0;
    const struct addition what = {&number, 1};
    add_kernel(&what);
    const cudaGraphExec_t exec = instantiate();
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    sim_reset(); // dropped, not run
    BASE_CHECK_EQ(number, 0);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, NULL), cudaErrorInvalidValue);
}

int main(void) {
    an_executable_is_made_of_a_graph_with_known_flags();
    a_cycle_is_found_here_and_named();
    a_cycle_in_a_child_graph_is_found_too();
    an_upload_needs_a_stream();
    a_graph_with_memory_nodes_is_one_of_a_kind();
    an_executable_keeps_what_it_was_made_with();
    a_destroyed_executable_completes_what_is_pending();
    a_graph_that_is_captured_can_be_instantiated_as_it_is();
    a_kernel_of_an_executable_takes_other_arguments_and_functions();
    copies_of_an_executable_move_but_stay_of_one_kind();
    fills_of_an_executable_keep_their_shape();
    host_and_event_nodes_of_an_executable_change_freely();
    kernels_copies_and_fills_can_be_switched_off();
    the_nodes_of_a_child_graph_are_found_in_the_executable();
    a_program_ends_with_pending_launches();
    return 0;
}
