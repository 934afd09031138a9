// Nodes of each type: what they take, what they tell, what they do at a launch. Child graphs:
// graph_child_test.c.
#include "base/check.h"
#include "simulator/sim.h"

#include <string.h>

#define BYTES ((size_t)4096)

static cudaGraph_t graph;
static cudaStream_t stream;
static char *device_memory, *pinned;
static char pageable[BYTES];

static void start(void) {
    void *pointer;
    sim_reset();
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreate(&stream), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&pointer, BYTES), cudaSuccess);
    device_memory = pointer;
    BASE_CHECK_EQ(cudaMallocHost(&pointer, BYTES), cudaSuccess);
    pinned = pointer;
    BASE_CHECK_EQ(cudaMemset(device_memory, 0, BYTES), cudaSuccess);
    memset(pinned, 0, BYTES);
}

static void run(void) {
    cudaGraphExec_t exec;
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

static const unsigned char *device_bytes(void) { return sim_device_bytes(device_memory); }

static void type_is(cudaGraphNode_t node, enum cudaGraphNodeType expected) {
    enum cudaGraphNodeType type;
    BASE_CHECK_EQ(cudaGraphNodeGetType(node, &type), cudaSuccess);
    BASE_CHECK_EQ(type, expected);
}

static void a_copy_node_keeps_addresses_and_reads_at_the_launch(void) {
    start();
    cudaGraphNode_t node;
    struct cudaMemcpy3DParms told;
    memset(pageable, 1, BYTES);
    BASE_CHECK_EQ(cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, device_memory, pageable, 100,
                                           cudaMemcpyHostToDevice),
                  cudaSuccess);
    type_is(node, cudaGraphNodeTypeMemcpy);
    BASE_CHECK_EQ(cudaGraphMemcpyNodeGetParams(node, &told), cudaSuccess);
    BASE_CHECK(told.srcPtr.ptr == pageable && told.dstPtr.ptr == device_memory);
    BASE_CHECK_EQ(told.extent.width, 100);
    BASE_CHECK_EQ(told.extent.height, 1);
    BASE_CHECK_EQ(told.extent.depth, 1);
    BASE_CHECK_EQ(told.kind, cudaMemcpyHostToDevice);
    memset(pageable, 2, BYTES); // what a launch finds there counts
    run();
    BASE_CHECK_EQ(device_bytes()[0], 2);
    BASE_CHECK_EQ(device_bytes()[99], 2);
    BASE_CHECK_EQ(device_bytes()[100], 0);
    BASE_CHECK_EQ(cudaGraphMemcpyNodeSetParams1D(node, device_memory + 200, pinned, 50,
                                                 cudaMemcpyDefault),
                  cudaSuccess);
    memset(pinned, 3, BYTES);
    run();
    BASE_CHECK_EQ(device_bytes()[199], 0);
    BASE_CHECK_EQ(device_bytes()[249], 3);
    BASE_CHECK_EQ(device_bytes()[250], 0);
}

static void copies_of_nothing_or_of_what_is_not_there_are_refused(void) {
    start();
    cudaGraphNode_t node;
    char *const end = device_memory + BYTES;
#define COPY(to, from, size, kind)                                                                 \
    cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, to, from, size, kind)
    BASE_CHECK_EQ(COPY(device_memory, pinned, 0, cudaMemcpyDefault), cudaErrorInvalidValue);
    BASE_CHECK_EQ(COPY(NULL, pinned, 8, cudaMemcpyDefault), cudaErrorInvalidValue);
    BASE_CHECK_EQ(COPY(device_memory, NULL, 8, cudaMemcpyDefault), cudaErrorInvalidValue);
    BASE_CHECK_EQ(COPY(end - 4, pinned, 8, cudaMemcpyDefault), cudaErrorInvalidValue);
    BASE_CHECK_EQ(COPY(device_memory, pinned, 8, (enum cudaMemcpyKind)9),
                  cudaErrorInvalidMemcpyDirection);
    BASE_CHECK_EQ(COPY(device_memory, pinned, 8, cudaMemcpyHostToHost), cudaErrorInvalidValue);
#undef COPY
    struct cudaMemcpy3DParms three = {.srcPtr = {pinned, 16, 16, 4},
                                      .dstPtr = {device_memory, 16, 16, 4},
                                      .extent = {8, 2, 2},
                                      .kind = cudaMemcpyDefault};
    BASE_CHECK_EQ(cudaGraphAddMemcpyNode(&node, graph, NULL, 0, NULL), cudaErrorInvalidValue);
    // Two of four rows of each slice: their starts are not equally far apart.
    BASE_CHECK_EQ(cudaGraphAddMemcpyNode(&node, graph, NULL, 0, &three), cudaErrorNotSupported);
    three.extent.depth = 0;
    BASE_CHECK_EQ(cudaGraphAddMemcpyNode(&node, graph, NULL, 0, &three), cudaErrorInvalidValue);
    three.extent = (struct cudaExtent){17, 2, 1};
    BASE_CHECK_EQ(cudaGraphAddMemcpyNode(&node, graph, NULL, 0, &three), cudaErrorInvalidValue);
    three.extent = (struct cudaExtent){8, 2, 1};
    three.srcArray = (cudaArray_t)(uintptr_t)64;
    BASE_CHECK_EQ(cudaGraphAddMemcpyNode(&node, graph, NULL, 0, &three), cudaErrorInvalidValue);
    size_t count;
    BASE_CHECK_EQ(cudaGraphGetNodes(graph, NULL, &count), cudaSuccess);
    BASE_CHECK_EQ(count, 0);
}

// Byte by byte, as cudaMemcpy3D is defined: row y of slice z starts (z * ysize + y) * pitch behind
// the pointer.
static void copies_in_three_dimensions_move_rows(void) {
    static const struct {
        struct cudaExtent extent;
        struct cudaPos from, to;
    } cases[] = {
        {{5, 1, 1}, {3, 2, 1}, {1, 0, 2}},  // one row
        {{5, 3, 1}, {2, 1, 1}, {0, 1, 0}},  // one slice
        {{16, 4, 3}, {0, 0, 0}, {0, 0, 1}}, // whole rows of whole slices
        {{7, 4, 2}, {4, 0, 1}, {9, 0, 0}},  // a column of whole slices
        {{6, 1, 3}, {1, 3, 0}, {2, 1, 1}},  // a row of each slice
    };
    enum { PITCH = 16, HEIGHT = 4 };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        start();
        base_check_context("case %zu", i);
        unsigned char expected[BYTES] = {0};
        for (size_t at = 0; at < BYTES; ++at)
            pinned[at] = (char)(at % 251 + 1);
        for (size_t z = 0; z < cases[i].extent.depth; ++z)
            for (size_t y = 0; y < cases[i].extent.height; ++y)
                for (size_t x = 0; x < cases[i].extent.width; ++x)
                    expected[((z + cases[i].to.z) * HEIGHT + y + cases[i].to.y) * PITCH + x +
                             cases[i].to.x] =
                        (unsigned char)pinned[((z + cases[i].from.z) * HEIGHT + y +
                                               cases[i].from.y) *
                                                  PITCH +
                                              x + cases[i].from.x];
        const struct cudaMemcpy3DParms copy = {.srcPtr = {pinned, PITCH, PITCH, HEIGHT},
                                               .srcPos = cases[i].from,
                                               .dstPtr = {device_memory, PITCH, PITCH, HEIGHT},
                                               .dstPos = cases[i].to,
                                               .extent = cases[i].extent,
                                               .kind = cudaMemcpyHostToDevice};
        cudaGraphNode_t node, again;
        struct cudaMemcpy3DParms told;
        BASE_CHECK_EQ(cudaGraphAddMemcpyNode(&node, graph, NULL, 0, &copy), cudaSuccess);
        run();
        BASE_CHECK_EQ(memcmp(device_bytes(), expected, BYTES), 0);
        // What a node tells makes a node that does the same.
        BASE_CHECK_EQ(cudaGraphMemcpyNodeGetParams(node, &told), cudaSuccess);
        BASE_CHECK_EQ(cudaGraphDestroyNode(node), cudaSuccess);
        BASE_CHECK_EQ(cudaMemset(device_memory, 0, BYTES), cudaSuccess);
        BASE_CHECK_EQ(cudaGraphAddMemcpyNode(&again, graph, NULL, 0, &told), cudaSuccess);
        run();
        BASE_CHECK_EQ(memcmp(device_bytes(), expected, BYTES), 0);
    }
    base_check_context(NULL);
}

static void a_fill_node_repeats_elements_of_one_two_or_four_bytes(void) {
    start();
    const struct cudaMemsetParams ones = {device_memory, 0, 0x1ab, 1, 5, 1};
    const struct cudaMemsetParams twos = {device_memory + 16, 8, 0xfff1234, 2, 3, 2};
    const struct cudaMemsetParams fours = {device_memory + 64, 0, 0x89abcdef, 4, 2, 1};
    static const unsigned char expected[72] = {
        [0] = 0xab,  [1] = 0xab,  [2] = 0xab,  [3] = 0xab,  [4] = 0xab,  [16] = 0x34, [17] = 0x12,
        [18] = 0x34, [19] = 0x12, [20] = 0x34, [21] = 0x12, [24] = 0x34, [25] = 0x12, [26] = 0x34,
        [27] = 0x12, [28] = 0x34, [29] = 0x12, [64] = 0xef, [65] = 0xcd, [66] = 0xab, [67] = 0x89,
        [68] = 0xef, [69] = 0xcd, [70] = 0xab, [71] = 0x89};
    cudaGraphNode_t node;
    struct cudaMemsetParams told;
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &ones), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &fours), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &twos), cudaSuccess);
    type_is(node, cudaGraphNodeTypeMemset);
    BASE_CHECK_EQ(cudaGraphMemsetNodeGetParams(node, &told), cudaSuccess);
    BASE_CHECK(told.dst == twos.dst);
    BASE_CHECK_EQ(told.pitch, 8);
    BASE_CHECK_EQ(told.value, 0x1234);
    BASE_CHECK_EQ(told.elementSize, 2);
    BASE_CHECK_EQ(told.width, 3);
    BASE_CHECK_EQ(told.height, 2);
    run();
    BASE_CHECK_EQ(memcmp(device_bytes(), expected, sizeof expected), 0);

    struct cudaMemsetParams bad = twos;
    bad.elementSize = 3;
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &bad), cudaErrorInvalidValue);
    bad = twos;
    bad.dst = device_memory + 17; // not aligned
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &bad), cudaErrorInvalidValue);
    bad = twos;
    bad.pitch = 4; // rows overlap
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &bad), cudaErrorInvalidValue);
    bad = twos;
    bad.width = 0;
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &bad), cudaErrorInvalidValue);
    bad = ones;
    bad.dst = pageable;
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &bad), cudaErrorInvalidValue);
    bad = ones;
    bad.width = BYTES + 1;
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &bad), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&node, graph, NULL, 0, NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphMemsetNodeSetParams(node, &ones), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphMemsetNodeSetParams(node, &bad), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphMemsetNodeGetParams(node, &told), cudaSuccess);
    BASE_CHECK_EQ(told.width, 5); // as it was
}

static void count_up(void *number) { ++*(int *)number; }
static void count_ten(void *number) { *(int *)number += 10; }

static void a_host_node_calls_its_function_with_its_argument(void) {
    start();
    int number = 0, other = 0;
    cudaGraphNode_t node;
    struct cudaHostNodeParams parameters = {count_up, &number}, told;
    BASE_CHECK_EQ(cudaGraphAddHostNode(&node, graph, NULL, 0, &parameters), cudaSuccess);
    type_is(node, cudaGraphNodeTypeHost);
    run();
    BASE_CHECK_EQ(number, 1);
    parameters = (struct cudaHostNodeParams){count_ten, &other};
    BASE_CHECK_EQ(cudaGraphHostNodeSetParams(node, &parameters), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphHostNodeGetParams(node, &told), cudaSuccess);
    BASE_CHECK(told.fn == count_ten && told.userData == &other);
    run();
    BASE_CHECK_EQ(number, 1);
    BASE_CHECK_EQ(other, 10);
    parameters.fn = NULL;
    BASE_CHECK_EQ(cudaGraphHostNodeSetParams(node, &parameters), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddHostNode(&node, graph, NULL, 0, &parameters), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddHostNode(&node, graph, NULL, 0, NULL), cudaErrorInvalidValue);
}

static void add_body(const void *argument) {
    const struct {
        int *number, by;
    } *what = argument;
    *what->number += what->by;
}

static void kernels_are_the_simulators_and_their_arguments_are_copied(void) {
    start();
    int number = 0;
    struct {
        int *number, by;
    } what = {&number, 5};
    struct sim_kernel kernel = {
        .name = "add", .body = add_body, .argument = &what, .argument_size = sizeof what};
    kernel.bytes = 8;
    struct sim_kernel told;
    cudaGraphNode_t node, other;
    BASE_CHECK_EQ(sim_graph_add_kernel(&node, graph, NULL, 0, &kernel), cudaSuccess);
    what.by = 1000;
    run();
    BASE_CHECK_EQ(number, 5);
    BASE_CHECK_EQ(sim_graph_kernel_get(node, &told), cudaSuccess);
    BASE_CHECK(told.body == add_body && strcmp(told.name, "add") == 0);
    BASE_CHECK_EQ(told.argument_size, sizeof what);
    BASE_CHECK_EQ(told.bytes, 8);
    what.by = 70;
    BASE_CHECK_EQ(sim_graph_kernel_set(node, &kernel), cudaSuccess);
    what.by = 1000;
    run();
    BASE_CHECK_EQ(number, 75);

    // CUDA's own are registered by nvcc's objects: none are.
    struct cudaKernelNodeParams parameters = {.func = (void *)(uintptr_t)add_body,
                                              .gridDim = {1, 1, 1},
                                              .blockDim = {1, 1, 1}};
    BASE_CHECK_EQ(cudaGraphAddKernelNode(&other, graph, NULL, 0, &parameters),
                  cudaErrorInvalidDeviceFunction);
    BASE_CHECK_EQ(cudaGraphAddKernelNode(&other, graph, NULL, 0, NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphKernelNodeSetParams(node, &parameters), cudaErrorInvalidDeviceFunction);
    BASE_CHECK_EQ(cudaGraphKernelNodeGetParams(node, &parameters), cudaSuccess);
    BASE_CHECK(parameters.func == (void *)(uintptr_t)add_body);
    BASE_CHECK_EQ(sim_graph_add_kernel(&other, graph, NULL, 0, &(struct sim_kernel){.name = "no"}),
                  cudaErrorInvalidDeviceFunction);
    BASE_CHECK_EQ(sim_graph_add_kernel(&other, graph, NULL, 0, NULL), cudaErrorInvalidValue);
}

static void kernels_keep_priority_and_cooperation(void) {
    start();
    cudaGraphNode_t node, other, none, captured;
    cudaGraph_t copy;
    cudaStream_t urgent;
    cudaLaunchAttributeValue value;
    size_t count = 1;
    const struct sim_kernel kernel = {.body = add_body};
    BASE_CHECK_EQ(sim_graph_add_kernel(&node, graph, NULL, 0, &kernel), cudaSuccess);
    BASE_CHECK_EQ(sim_graph_add_kernel(&other, graph, NULL, 0, &kernel), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&none, graph, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributePriority, &value),
                  cudaSuccess);
    BASE_CHECK_EQ(value.priority, 0);
    value.priority = -3;
    BASE_CHECK_EQ(cudaGraphKernelNodeSetAttribute(node, cudaKernelNodeAttributePriority, &value),
                  cudaSuccess);
    value.cooperative = 1;
    BASE_CHECK_EQ(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeCooperative, &value),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaGraphKernelNodeCopyAttributes(other, node), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphClone(&copy, graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&other, other, copy), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphKernelNodeGetAttribute(other, cudaLaunchAttributePriority, &value),
                  cudaSuccess);
    BASE_CHECK_EQ(value.priority, -3);
    BASE_CHECK_EQ(cudaGraphKernelNodeGetAttribute(other, cudaLaunchAttributeCooperative, &value),
                  cudaSuccess);
    BASE_CHECK_EQ(value.cooperative, 1);
    BASE_CHECK_EQ(cudaGraphKernelNodeGetAttribute(none, cudaLaunchAttributePriority, &value),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphKernelNodeSetAttribute(none, cudaLaunchAttributePriority, &value),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphKernelNodeCopyAttributes(none, node), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphKernelNodeCopyAttributes(node, none), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributePriority, NULL),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphKernelNodeSetAttribute(node, (cudaLaunchAttributeID)1, &value),
                  cudaErrorNotSupported); // the window of the cache
    BASE_CHECK_EQ(cudaGraphKernelNodeSetAttribute(node, (cudaLaunchAttributeID)99, &value),
                  cudaErrorInvalidValue);

    BASE_CHECK_EQ(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, -1), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamBeginCapture(urgent, cudaStreamCaptureModeRelaxed), cudaSuccess);
    BASE_CHECK_EQ(sim_launch_kernel(urgent, &kernel), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamEndCapture(urgent, &copy), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphGetNodes(copy, &captured, &count), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphKernelNodeGetAttribute(captured, cudaLaunchAttributePriority, &value),
                  cudaSuccess);
    BASE_CHECK_EQ(value.priority, -1);
}

static void a_copy_of_a_graph_has_its_parameters(void) {
    start();
    cudaEvent_t event, told_event;
    cudaGraph_t copy;
    cudaGraphNode_t fill, record, move;
    struct cudaMemsetParams told_fill;
    struct cudaMemcpy3DParms told_copy;
    const struct cudaMemsetParams twos = {device_memory, 0, 0x1234, 2, 3, 1};
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&fill, graph, NULL, 0, &twos), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEventRecordNode(&record, graph, NULL, 0, event), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddMemcpyNode1D(&move, graph, NULL, 0, pinned, device_memory, 6,
                                           cudaMemcpyDeviceToHost),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaGraphClone(&copy, graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&fill, fill, copy), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&record, record, copy), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&move, move, copy), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphMemsetNodeGetParams(fill, &told_fill), cudaSuccess);
    BASE_CHECK_EQ(told_fill.elementSize, 2);
    BASE_CHECK_EQ(told_fill.value, 0x1234);
    BASE_CHECK_EQ(cudaGraphEventRecordNodeGetEvent(record, &told_event), cudaSuccess);
    BASE_CHECK(told_event == event);
    BASE_CHECK_EQ(cudaGraphMemcpyNodeGetParams(move, &told_copy), cudaSuccess);
    BASE_CHECK_EQ(told_copy.kind, cudaMemcpyDeviceToHost);
}

static void event_nodes_record_and_wait_at_the_launch(void) {
    start();
    cudaEvent_t event, other, told;
    cudaGraphNode_t record, wait;
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&other), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEventRecordNode(&record, graph, NULL, 0, NULL),
                  cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaGraphAddEventRecordNode(&record, graph, NULL, 0, event), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEventWaitNode(&wait, graph, &record, 1, event), cudaSuccess);
    type_is(record, cudaGraphNodeTypeEventRecord);
    type_is(wait, cudaGraphNodeTypeWaitEvent);
    BASE_CHECK_EQ(cudaGraphEventRecordNodeGetEvent(record, &told), cudaSuccess);
    BASE_CHECK(told == event);
    BASE_CHECK_EQ(cudaGraphEventRecordNodeGetEvent(wait, &told), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphEventWaitNodeSetEvent(wait, other), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphEventWaitNodeGetEvent(wait, &told), cudaSuccess);
    BASE_CHECK(told == other);
    BASE_CHECK_EQ(cudaGraphEventRecordNodeSetEvent(record, other), cudaSuccess);
    BASE_CHECK_EQ(cudaEventDestroy(event), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphEventRecordNodeSetEvent(record, event), cudaErrorContextIsDestroyed);
    run();
    BASE_CHECK_EQ(cudaEventQuery(other), cudaSuccess);
    BASE_CHECK_EQ(cudaEventDestroy(other), cudaSuccess);
    run(); // a node whose event is gone does nothing
}

static void a_node_of_another_type_tells_nothing(void) {
    start();
    cudaGraphNode_t node;
    union {
        struct cudaMemcpy3DParms copy;
        struct cudaMemsetParams fill;
        struct cudaHostNodeParams host;
        struct cudaKernelNodeParams kernel;
        struct sim_kernel sim;
        cudaGraph_t child;
    } told;
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&node, graph, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphMemcpyNodeGetParams(node, &told.copy), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphMemsetNodeGetParams(node, &told.fill), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphHostNodeGetParams(node, &told.host), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphKernelNodeGetParams(node, &told.kernel), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphChildGraphNodeGetGraph(node, &told.child), cudaErrorInvalidValue);
    BASE_CHECK_EQ(sim_graph_kernel_get(node, &told.sim), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphHostNodeSetParams(node, &(struct cudaHostNodeParams){count_up, NULL}),
                  cudaErrorInvalidValue);
}

static void nodes_of_any_type_come_from_one_call(void) {
    start();
    cudaGraphNode_t nodes[8], told[2];
    int number = 0;
    cudaEvent_t event;
    cudaGraph_t child;
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphCreate(&child, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddHostNode(&nodes[0], child, NULL, 0,
                                       &(struct cudaHostNodeParams){count_ten, &number}),
                  cudaSuccess);
    struct cudaGraphNodeParams any[] = {
        {.type = cudaGraphNodeTypeEmpty},
        {.type = cudaGraphNodeTypeHost, .host = {count_up, &number}},
        {.type = cudaGraphNodeTypeMemset, .memset = {device_memory, 0, 9, 1, 10, 1}},
        {.type = cudaGraphNodeTypeMemcpy,
         .memcpy = {.copyParams = {.srcPtr = {device_memory, 10, 10, 1},
                                   .dstPtr = {pinned, 10, 10, 1},
                                   .extent = {10, 1, 1},
                                   .kind = cudaMemcpyDefault}}},
        {.type = cudaGraphNodeTypeEventRecord, .eventRecord = {event}},
        {.type = cudaGraphNodeTypeWaitEvent, .eventWait = {event}},
        {.type = cudaGraphNodeTypeGraph, .graph = {child, cudaGraphChildGraphOwnershipClone}},
    };
    for (size_t i = 0; i < sizeof any / sizeof any[0]; ++i) {
        BASE_CHECK_EQ(cudaGraphAddNode(&nodes[i], graph, i == 0 ? NULL : &nodes[i - 1], NULL,
                                       i == 0 ? 0 : 1, &any[i]),
                      cudaSuccess);
        type_is(nodes[i], any[i].type);
    }
    size_t count = 2;
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(nodes[6], told, NULL, &count), cudaSuccess);
    BASE_CHECK(count == 1 && told[0] == nodes[5]);
    run();
    BASE_CHECK_EQ(number, 11);
    BASE_CHECK_EQ(pinned[9], 9);
    BASE_CHECK_EQ(pinned[10], 0);

    any[2].memset.value = 4;
    BASE_CHECK_EQ(cudaGraphNodeSetParams(nodes[2], &any[2]), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeSetParams(nodes[3], &any[2]), cudaErrorInvalidValue); // its type
    BASE_CHECK_EQ(cudaGraphNodeSetParams(nodes[6], &any[6]), cudaErrorInvalidValue);
    run();
    BASE_CHECK_EQ(pinned[9], 4);

    struct cudaGraphNodeParams bad = {.type = cudaGraphNodeTypeEmpty, .reserved2 = 1};
    BASE_CHECK_EQ(cudaGraphAddNode(&nodes[7], graph, NULL, NULL, 0, &bad), cudaErrorInvalidValue);
    bad = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeEmpty, .reserved0 = {0, 0, 1}};
    BASE_CHECK_EQ(cudaGraphAddNode(&nodes[7], graph, NULL, NULL, 0, &bad), cudaErrorInvalidValue);
    bad = (struct cudaGraphNodeParams){.type = (enum cudaGraphNodeType)77};
    BASE_CHECK_EQ(cudaGraphAddNode(&nodes[7], graph, NULL, NULL, 0, &bad), cudaErrorInvalidValue);
    bad = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeKernel};
    BASE_CHECK_EQ(cudaGraphAddNode(&nodes[7], graph, NULL, NULL, 0, &bad),
                  cudaErrorInvalidDeviceFunction);
    BASE_CHECK_EQ(cudaGraphAddNode(&nodes[7], graph, NULL, NULL, 0, NULL), cudaErrorInvalidValue);
}

static void what_is_not_simulated_is_refused_by_name(void) {
    start();
    cudaGraphNode_t node;
    cudaGraphConditionalHandle handle;
    struct cudaGraphNodeParams parameters = {.type = cudaGraphNodeTypeConditional};
    BASE_CHECK_EQ(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &parameters),
                  cudaErrorNotSupported);
    parameters.type = cudaGraphNodeTypeExtSemaphoreWait;
    BASE_CHECK_EQ(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &parameters),
                  cudaErrorNotSupported);
    BASE_CHECK_EQ(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0), cudaErrorNotSupported);
    BASE_CHECK_EQ(cudaGraphConditionalHandleCreate(&handle, NULL, 0, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphConditionalHandleCreate(&handle, graph, 0, 2), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphConditionalHandleCreate(NULL, graph, 0, 0), cudaErrorInvalidValue);
}

int main(void) {
    a_copy_node_keeps_addresses_and_reads_at_the_launch();
    copies_of_nothing_or_of_what_is_not_there_are_refused();
    copies_in_three_dimensions_move_rows();
    a_fill_node_repeats_elements_of_one_two_or_four_bytes();
    a_host_node_calls_its_function_with_its_argument();
    kernels_are_the_simulators_and_their_arguments_are_copied();
    kernels_keep_priority_and_cooperation();
    a_copy_of_a_graph_has_its_parameters();
    event_nodes_record_and_wait_at_the_launch();
    a_node_of_another_type_tells_nothing();
    nodes_of_any_type_come_from_one_call();
    what_is_not_simulated_is_refused_by_name();
    return 0;
}
