// Section 7.5: executables are changed, for later launches: by a graph, or a node at a time.
#include "simulator/conformance/graph_cases.h"

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

#include <string.h>

static void add_one(void *count) { ++*(int *)count; }

// A graph that fills MEMORY with VALUE.
static cudaGraph_t fill_graph(struct conformance *c, void *memory, int value) {
    cudaGraph_t graph = conformance_graph(c);
    (void)fill_node(c, graph, NULL, 0, memory, value);
    return graph;
}

// An event behind a closed gate.
static cudaEvent_t gated_event(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    return conformance_mark(c, stream);
}

// --- By a graph ---

static void answer_update(struct conformance *c, cudaGraphExec_t exec, cudaGraph_t graph) {
    cudaGraphExecUpdateResultInfo info;
    memset(&info, 0, sizeof info);
    answer_code(c, "update", cudaGraphExecUpdate(exec, graph, &info));
    answer_number(c, "result", info.result);
}

static void update_takes_parameters(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, 2 * BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMemsetAsync(memory, 0, 2 * BYTES, stream));
    cudaGraphExec_t exec = conformance_graph_exec(c, fill_graph(c, memory, 1));
    answer_update(c, exec, fill_graph(c, memory + BYTES, 2));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "old", conformance_byte(memory));
    answer_number(c, "new", conformance_byte(memory + BYTES));
}

static void update_spares_pending(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, 2 * BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMemset(memory, 0, 2 * BYTES));
    MUST(c, cudaDeviceSynchronize());
    cudaGraphExec_t exec = conformance_graph_exec(c, fill_graph(c, memory, 1));
    conformance_gate(c, stream);
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_update(c, exec, fill_graph(c, memory + BYTES, 2));
    conformance_open(c);
    answer_number(c, "old", conformance_byte(memory));
    answer_number(c, "new", conformance_byte(memory + BYTES));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "later", conformance_byte(memory + BYTES));
}

static void update_of_copies_and_functions(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, 3 * BYTES);
    int one = 0, two = 0;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graphs[2];
    for (int i = 0; i < 2; ++i) {
        graphs[i] = conformance_graph(c);
        cudaGraphNode_t node = copy_node(c, graphs[i], NULL, 0, memory + 2 * BYTES,
                                         memory + i * BYTES);
        (void)host_node(c, graphs[i], &node, 1, add_one, i == 0 ? &one : &two);
    }
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    MUST(c, cudaMemsetAsync(memory + BYTES, 2, BYTES, stream));
    cudaGraphExec_t exec = conformance_graph_exec(c, graphs[0]);
    answer_update(c, exec, graphs[1]);
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "copied", conformance_byte(memory + 2 * BYTES));
    answer_number(c, "one", one);
    answer_number(c, "two", two);
}

static void update_topology(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t two = conformance_graph(c), chain = conformance_graph(c);
    cudaGraph_t apart = conformance_graph(c), more = fill_graph(c, memory, 2);
    cudaGraphNode_t node = empty_node(c, chain, NULL, 0);
    (void)empty_node(c, chain, &node, 1);
    (void)empty_node(c, apart, NULL, 0);
    (void)empty_node(c, apart, NULL, 0);
    (void)empty_node(c, two, NULL, 0);
    MUST(c, cudaMemsetAsync(memory, 0, BYTES, stream));
    (void)empty_node(c, more, NULL, 0);
    cudaGraphExec_t exec = conformance_graph_exec(c, fill_graph(c, memory, 1));
    answer_update(c, exec, more);
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(memory));
    answer_update(c, conformance_graph_exec(c, chain), apart);
    answer_update(c, conformance_graph_exec(c, apart), chain);
    answer_update(c, conformance_graph_exec(c, chain), two);
}

static void update_type(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, 2 * BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t other = conformance_graph(c);
    cudaGraphExecUpdateResultInfo info;
    MUST(c, cudaMemsetAsync(memory, 0, 2 * BYTES, stream));
    cudaGraphNode_t node = copy_node(c, other, NULL, 0, memory, memory + BYTES);
    cudaGraphExec_t exec = conformance_graph_exec(c, fill_graph(c, memory, 1));
    memset(&info, 0, sizeof info);
    answer_code(c, "update", cudaGraphExecUpdate(exec, other, &info));
    answer_number(c, "result", info.result);
    answer_yes(c, "node", info.errorNode == node);
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(memory));
}

// Rows of a fill in two dimensions cannot change.
static void update_parameters(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, 4 * BYTES);
    cudaGraph_t graphs[2];
    cudaGraphNode_t node = NULL;
    cudaGraphExecUpdateResultInfo info;
    for (int i = 0; i < 2; ++i) {
        struct cudaMemsetParams parameters = fill(memory, 1);
        graphs[i] = conformance_graph(c);
        parameters.width = BYTES / 2;
        parameters.height = 2 + (size_t)i;
        MUST(c, cudaGraphAddMemsetNode(&node, graphs[i], NULL, 0, &parameters));
    }
    memset(&info, 0, sizeof info);
    cudaGraphExec_t exec = conformance_graph_exec(c, graphs[0]);
    answer_code(c, "update", cudaGraphExecUpdate(exec, graphs[1], &info));
    answer_number(c, "result", info.result);
    answer_yes(c, "node", info.errorNode == node);
}

static void update_device(struct conformance *c) {
    void *here = conformance_device_memory(c, BYTES);
    MUST(c, cudaSetDevice(1));
    void *there = conformance_device_memory(c, BYTES);
    cudaGraph_t other = fill_graph(c, there, 1);
    MUST(c, cudaSetDevice(0));
    cudaGraphExec_t exec = conformance_graph_exec(c, fill_graph(c, here, 1));
    answer_update(c, exec, other);
}

static void update_null(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    cudaGraphExecUpdateResultInfo info;
    answer_code(c, "exec", cudaGraphExecUpdate(NULL, graph, &info));
    answer_code(c, "graph", cudaGraphExecUpdate(exec, NULL, &info));
}

// --- A node at a time ---

static void exec_fill_set(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = fill_node(c, graph, NULL, 0, memory, 1);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    struct cudaMemsetParams parameters = fill(memory, 2);
    answer_code(c, "set", cudaGraphExecMemsetNodeSetParams(exec, node, &parameters));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(memory));
    MUST(c, cudaGraphMemsetNodeGetParams(node, &parameters));
    answer_number(c, "graph", parameters.value);
    answer_code(c, "foreign", cudaGraphExecMemsetNodeSetParams(
                                  exec, fill_node(c, conformance_graph(c), NULL, 0, memory, 1),
                                  &parameters));
}

static void exec_copy_set(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, 4 * BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    struct cudaMemcpy3DParms parameters;
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    MUST(c, cudaMemsetAsync(memory + BYTES, 2, BYTES, stream));
    cudaGraphNode_t node = copy_node(c, graph, NULL, 0, memory + 2 * BYTES, memory);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    answer_code(c, "set-1d",
                cudaGraphExecMemcpyNodeSetParams1D(exec, node, memory + 2 * BYTES, memory + BYTES,
                                                   BYTES, cudaMemcpyDefault));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(memory + 2 * BYTES));
    MUST(c, cudaGraphMemcpyNodeGetParams(node, &parameters));
    answer_yes(c, "graph", parameters.srcPtr.ptr == memory);
    parameters.dstPtr.ptr = memory + 3 * BYTES;
    answer_code(c, "set", cudaGraphExecMemcpyNodeSetParams(exec, node, &parameters));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(memory + 3 * BYTES));
}

static void exec_function_set(struct conformance *c) {
    int one = 0, two = 0;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = host_node(c, graph, NULL, 0, add_one, &one);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    const struct cudaHostNodeParams parameters = {add_one, &two};
    answer_code(c, "set", cudaGraphExecHostNodeSetParams(exec, node, &parameters));
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "one", one);
    answer_number(c, "two", two);
}

static void exec_events_set(struct conformance *c) {
    cudaEvent_t gated = gated_event(c), one = conformance_event(c), two = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t wait = wait_node(c, graph, NULL, 0, gated);
    cudaGraphNode_t record = record_node(c, graph, &wait, 1, one);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    MUST(c, cudaEventRecord(one, stream));
    answer_code(c, "wait", cudaGraphExecEventWaitNodeSetEvent(exec, wait, one));
    answer_code(c, "record", cudaGraphExecEventRecordNodeSetEvent(exec, record, two));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_event(c, "recorded", two);
    answer_event(c, "gate", gated);
}

static void exec_child_set(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c), bigger = fill_graph(c, memory, 3);
    cudaGraphNode_t node = NULL;
    MUST(c, cudaGraphAddChildGraphNode(&node, graph, NULL, 0, fill_graph(c, memory, 1)));
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    answer_code(c, "set",
                cudaGraphExecChildGraphNodeSetParams(exec, node, fill_graph(c, memory, 2)));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(memory));
    (void)empty_node(c, bigger, NULL, 0);
    answer_yes(c, "bigger",
               cudaGraphExecChildGraphNodeSetParams(exec, node, bigger) != cudaSuccess);
    (void)cudaGetLastError();
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(memory));
}

static void exec_any_set(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = fill_node(c, graph, NULL, 0, memory, 1);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    struct cudaGraphNodeParams parameters = {.type = cudaGraphNodeTypeMemset};
    parameters.memset.dst = memory;
    parameters.memset.value = 4;
    parameters.memset.elementSize = 1;
    parameters.memset.width = BYTES;
    parameters.memset.height = 1;
    answer_code(c, "set", cudaGraphExecNodeSetParams(exec, node, &parameters));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(memory));
}

static void exec_node_disabled(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    unsigned int enabled = 99;
    cudaGraphNode_t node = fill_node(c, graph, NULL, 0, memory, 1);
    cudaGraphNode_t empty = empty_node(c, graph, NULL, 0);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    MUST(c, cudaMemset(memory, 0, BYTES));
    MUST(c, cudaGraphNodeGetEnabled(exec, node, &enabled));
    answer_number(c, "at-first", enabled);
    answer_code(c, "disable", cudaGraphNodeSetEnabled(exec, node, 0));
    MUST(c, cudaGraphNodeGetEnabled(exec, node, &enabled));
    answer_number(c, "then", enabled);
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(memory));
    MUST(c, cudaGraphNodeSetEnabled(exec, node, 1));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(memory));
    answer_code(c, "empty", cudaGraphNodeSetEnabled(exec, empty, 0));
}

// A node that is disabled still keeps the order of its edges.
static void exec_node_disabled_keeps_order(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t behind = conformance_event(c);
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t wait = wait_node(c, graph, NULL, 0, gated_event(c));
    cudaGraphNode_t node = fill_node(c, graph, &wait, 1, memory, 1);
    (void)record_node(c, graph, &node, 1, behind);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    MUST(c, cudaGraphNodeSetEnabled(exec, node, 0));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_event(c, "behind", behind);
}

#ifdef TIDEMARK_SIMULATOR
static int kernel_sum;

static void kernel_add(const void *number) { kernel_sum += *(const int *)number; }
static void kernel_subtract(const void *number) { kernel_sum -= *(const int *)number; }

// A graph of a kernel of the current device that has the argument NUMBER.
static cudaGraph_t kernel_graph(struct conformance *c, void (*body)(const void *argument),
                                int number) {
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = NULL;
    const struct sim_kernel kernel = {
        .name = "kernel", .body = body, .argument = &number, .argument_size = sizeof number};
    const cudaError_t error = sim_graph_add_kernel(&node, graph, NULL, 0, &kernel);
    if (error != cudaSuccess)
        answer_code(c, "sim_graph_add_kernel", error);
    return graph;
}

static void kernel_arguments_are_frozen(struct conformance *c) {
    int number = 3;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    kernel_sum = 0;
    MUST(c, capture_begin(stream));
    MUST(c, sim_launch(stream, "kernel", kernel_add, &number, sizeof number));
    number = 4;
    cudaGraphExec_t exec = conformance_graph_exec(c, capture_end(c, stream));
    number = 5;
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "sum", kernel_sum);
}

static void update_of_kernels(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    kernel_sum = 0;
    cudaGraphExec_t exec = conformance_graph_exec(c, kernel_graph(c, kernel_add, 3));
    answer_update(c, exec, kernel_graph(c, kernel_subtract, 4));
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "sum", kernel_sum);
    MUST(c, cudaSetDevice(1));
    cudaGraph_t other = kernel_graph(c, kernel_add, 3);
    MUST(c, cudaSetDevice(0));
    answer_update(c, exec, other);
}

static void update_of_attributes(struct conformance *c) {
    const cudaKernelNodeAttrValue cooperative = {.cooperative = 1};
    cudaGraph_t graph = kernel_graph(c, kernel_add, 3);
    cudaGraphNode_t node = NULL;
    size_t count = 1;
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    MUST(c, cudaGraphGetNodes(graph, &node, &count));
    MUST(c, cudaGraphKernelNodeSetAttribute(node, cudaKernelNodeAttributeCooperative,
                                            &cooperative));
    answer_update(c, exec, graph);
}
#endif

const struct conformance_case conformance__cases_graph_update[] = {
    CASE("update-takes-parameters", "7.5", VERIFIED, update_takes_parameters,
        "cudaGraphExecUpdate takes the parameters of a graph of the same shape",
        "update=0 result=0 old=0 new=2", NULL),
    CASE("update-spares-pending", "7.5", VERIFIED, update_spares_pending,
        "for later launches only",
        "update=0 result=0 old=1 new=0 later=2", NULL),
    CASE("update-of-copies-and-functions", "7.5", VERIFIED, update_of_copies_and_functions,
        "copies and host functions are updated too",
        "update=0 result=0 copied=2 one=0 two=1", NULL),
    CASE("update-topology", "7.5", VERIFIED, update_topology,
        "another number of nodes or edges: 910, result 2, and nothing changes",
        "update=910 result=2 byte=1 update=910 result=2 update=910 result=2 update=910 result=2",
        NULL),
    CASE("update-type", "7.5", VERIFIED, update_type,
        "another type of a node: 910, result 3, and the node is told",
        "update=910 result=3 node=yes byte=1", NULL),
    CASE("update-parameters", "7.5", UNVERIFIED, update_parameters,
        "parameters that cannot change: 910, result 5, and the node is told",
        "update=910 result=5 node=yes", "update=910 result=6 node=yes"),
    CASE_2("update-device", "7.5", UNVERIFIED, update_device,
        "memory of another device: the same",
        "update=910 result=5", "update=910 result=6"),
    CASE("update-null", "7.5", UNVERIFIED, update_null,
        "no executable or no graph: 1",
        "exec=1 graph=1", NULL),
    CASE("exec-fill-set", "7.5", VERIFIED, exec_fill_set,
        "one node of an executable gets other parameters, its graph does not",
        "set=0 byte=2 graph=1 foreign=1", NULL),
    CASE("exec-copy-set", "7.5", VERIFIED, exec_copy_set,
        "likewise a copy",
        "set-1d=0 byte=2 graph=yes set=0 byte=1", NULL),
    CASE("exec-function-set", "7.5", VERIFIED, exec_function_set,
        "likewise a host function",
        "set=0 one=0 two=1", NULL),
    CASE("exec-events-set", "7.5", VERIFIED, exec_events_set,
        "likewise event nodes",
        "wait=0 record=0 recorded=done gate=pending", NULL),
    CASE("exec-child-set", "7.5", VERIFIED, exec_child_set,
        "likewise a child graph, if it has the same shape",
        "set=0 byte=2 bigger=yes byte=2", NULL),
    CASE("exec-any-set", "7.5", VERIFIED, exec_any_set,
        "cudaGraphExecNodeSetParams sets them all",
        "set=0 byte=4", NULL),
    CASE("exec-node-disabled", "7.5", VERIFIED, exec_node_disabled,
        "a fill, copy or kernel of an executable can be disabled; other nodes: 1",
        "at-first=1 disable=0 then=0 byte=0 byte=1 empty=1", NULL),
    CASE("exec-node-disabled-keeps-order", "8", VERIFIED, exec_node_disabled_keeps_order,
        "its edges still order",
        "behind=pending", NULL),
#ifdef TIDEMARK_SIMULATOR
    CASE_SIMULATED("kernel-arguments-are-frozen", "7.5", VERIFIED, kernel_arguments_are_frozen,
        "a kernel's arguments are those of the captured call",
        "sum=6", NULL),
    CASE_2_SIMULATED("update-of-kernels", "7.5", VERIFIED, update_of_kernels,
        "a kernel's function and arguments are updated, its device is not: 910, result 7",
        "update=0 result=0 sum=-4 update=910 result=7", NULL),
    CASE_SIMULATED("update-of-attributes", "7.5", VERIFIED, update_of_attributes,
        "nor whether it is cooperative: result 8",
        "update=910 result=8", NULL),
#endif
    {0},
};
