// Section 7.5: nodes of each type, and their parameters.
#include "simulator/conformance/graph_cases.h"

#include <stdint.h>
#include <string.h>

static void nothing(void *unused) { (void)unused; }

static void set(void *flag) { *(int *)flag = 1; }

static cudaError_t instantiate_try(struct conformance *c, cudaGraph_t graph) {
    cudaGraphExec_t exec = NULL;
    const cudaError_t error = cudaGraphInstantiate(&exec, graph, 0);
    conformance_keep_graph_exec(c, error == cudaSuccess ? exec : NULL);
    return error;
}

static void node_add_bad(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c), other = conformance_graph(c);
    cudaGraphNode_t node = NULL, foreign = empty_node(c, other, NULL, 0), twice[2];
    twice[0] = twice[1] = empty_node(c, graph, NULL, 0);
    answer_code(c, "result", cudaGraphAddEmptyNode(NULL, graph, NULL, 0));
    answer_code(c, "graph", cudaGraphAddEmptyNode(&node, NULL, NULL, 0));
    answer_code(c, "array", cudaGraphAddEmptyNode(&node, graph, NULL, 1));
    answer_code(c, "foreign", cudaGraphAddEmptyNode(&node, graph, &foreign, 1));
    answer_code(c, "twice", cudaGraphAddEmptyNode(&node, graph, twice, 2));
    answer_node_count(c, "nodes", graph);
}

static void node_destroyed(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t one = empty_node(c, graph, NULL, 0), two = empty_node(c, graph, &one, 1);
    cudaGraphNode_t three = empty_node(c, graph, &two, 1);
    answer_code(c, "destroy", cudaGraphDestroyNode(two));
    answer_node_count(c, "nodes", graph);
    answer_edge_count(c, "edges", graph);
    answer_dependency_count(c, "dependencies", three);
    answer_code(c, "instantiate", instantiate_try(c, graph));
}

static void answer_type(struct conformance *c, const char *label, cudaGraphNode_t node) {
    enum cudaGraphNodeType type = cudaGraphNodeTypeCount;
    MUST(c, cudaGraphNodeGetType(node, &type));
    answer_number(c, label, type);
}

static void node_types(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, 2 * BYTES);
    cudaGraph_t graph = conformance_graph(c), child = conformance_graph(c);
    cudaEvent_t event = conformance_event(c);
    cudaGraphNode_t node = NULL;
    answer_type(c, "copy", copy_node(c, graph, NULL, 0, memory, memory + BYTES));
    answer_type(c, "fill", fill_node(c, graph, NULL, 0, memory, 1));
    answer_type(c, "host", host_node(c, graph, NULL, 0, nothing, NULL));
    MUST(c, cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    answer_type(c, "child", node);
    answer_type(c, "empty", empty_node(c, graph, NULL, 0));
    answer_type(c, "wait", wait_node(c, graph, NULL, 0, event));
    answer_type(c, "record", record_node(c, graph, NULL, 0, event));
    answer_code(c, "null", cudaGraphNodeGetType(node, NULL));
}

static void answer_added(struct conformance *c, const char *label, cudaGraph_t graph,
                         struct cudaGraphNodeParams *parameters) {
    cudaGraphNode_t node = NULL;
    MUST(c, cudaGraphAddNode(&node, graph, NULL, NULL, 0, parameters));
    answer_type(c, label, node);
}

static void node_of_any_type(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, 2 * BYTES);
    cudaGraph_t graph = conformance_graph(c), child = conformance_graph(c);
    cudaEvent_t event = conformance_event(c);
    struct cudaGraphNodeParams copy = {.type = cudaGraphNodeTypeMemcpy};
    copy.memcpy.copyParams.srcPtr = (struct cudaPitchedPtr){memory, BYTES, BYTES, 1};
    copy.memcpy.copyParams.dstPtr = (struct cudaPitchedPtr){memory + BYTES, BYTES, BYTES, 1};
    copy.memcpy.copyParams.extent = (struct cudaExtent){BYTES, 1, 1};
    copy.memcpy.copyParams.kind = cudaMemcpyDefault;
    struct cudaGraphNodeParams host = {.type = cudaGraphNodeTypeHost};
    host.host.fn = nothing;
    struct cudaGraphNodeParams inner = {.type = cudaGraphNodeTypeGraph};
    inner.graph.graph = child;
    struct cudaGraphNodeParams empty = {.type = cudaGraphNodeTypeEmpty};
    struct cudaGraphNodeParams wait = {.type = cudaGraphNodeTypeWaitEvent};
    wait.eventWait.event = event;
    struct cudaGraphNodeParams record = {.type = cudaGraphNodeTypeEventRecord};
    record.eventRecord.event = event;
    answer_added(c, "copy", graph, &copy);
    answer_added(c, "host", graph, &host);
    answer_added(c, "child", graph, &inner);
    answer_added(c, "empty", graph, &empty);
    answer_added(c, "wait", graph, &wait);
    answer_added(c, "record", graph, &record);
}

// What nodes of every type do when they run.
static void node_parameters_are_used(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, 2 * BYTES);
    int flag = 0;
    cudaGraph_t graph = conformance_graph(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    struct cudaGraphNodeParams parameters = {.type = cudaGraphNodeTypeMemset};
    cudaGraphNode_t node = NULL;
    parameters.memset.dst = memory;
    parameters.memset.value = 0x0201;
    parameters.memset.elementSize = 2;
    parameters.memset.width = BYTES / 2;
    parameters.memset.height = 1;
    MUST(c, cudaMemsetAsync(memory, 9, 2 * BYTES, stream));
    MUST(c, cudaGraphAddNode(&node, graph, NULL, NULL, 0, &parameters));
    node = copy_node(c, graph, &node, 1, memory + BYTES, memory);
    (void)host_node(c, graph, &node, 1, set, &flag);
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    answer_number(c, "filled", conformance_byte(memory + 1));
    answer_number(c, "copied", conformance_byte(memory + BYTES));
    answer_number(c, "flag", flag);
}

static void node_parameters_bad(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, BYTES);
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = NULL;
    struct cudaMemsetParams parameters = fill(memory, 1);
    const struct cudaHostNodeParams host = {NULL, NULL};
    parameters.elementSize = 3;
    answer_code(c, "element", cudaGraphAddMemsetNode(&node, graph, NULL, 0, &parameters));
    answer_code(c, "fill", cudaGraphAddMemsetNode(&node, graph, NULL, 0, NULL));
    answer_code(c, "host", cudaGraphAddHostNode(&node, graph, NULL, 0, NULL));
    answer_code(c, "function", cudaGraphAddHostNode(&node, graph, NULL, 0, &host));
    answer_code(c, "copy", cudaGraphAddMemcpyNode(&node, graph, NULL, 0, NULL));
    answer_code(c, "child", cudaGraphAddChildGraphNode(&node, graph, NULL, 0, NULL));
    answer_code(c, "any", cudaGraphAddNode(&node, graph, NULL, NULL, 0, NULL));
    answer_node_count(c, "nodes", graph);
}

static void node_parameters_of_fill(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = fill_node(c, graph, NULL, 0, memory, 7);
    struct cudaMemsetParams parameters = {0};
    MUST(c, cudaGraphMemsetNodeGetParams(node, &parameters));
    answer_yes(c, "to", parameters.dst == memory);
    answer_number(c, "value", parameters.value);
    answer_number(c, "width", (int64_t)parameters.width);
    parameters.value = 8;
    MUST(c, cudaGraphMemsetNodeSetParams(node, &parameters));
    memset(&parameters, 0, sizeof parameters);
    MUST(c, cudaGraphMemsetNodeGetParams(node, &parameters));
    answer_number(c, "set", parameters.value);
    answer_code(c, "other",
                cudaGraphMemsetNodeGetParams(empty_node(c, graph, NULL, 0), &parameters));
    answer_code(c, "null", cudaGraphMemsetNodeGetParams(node, NULL));
}

static void node_parameters_of_copy(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, 3 * BYTES);
    cudaGraph_t graph = conformance_graph(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphNode_t node = copy_node(c, graph, NULL, 0, memory + BYTES, memory);
    struct cudaMemcpy3DParms parameters;
    memset(&parameters, 0, sizeof parameters);
    MUST(c, cudaGraphMemcpyNodeGetParams(node, &parameters));
    answer_yes(c, "from", parameters.srcPtr.ptr == memory);
    answer_yes(c, "to", parameters.dstPtr.ptr == memory + BYTES);
    answer_number(c, "width", (int64_t)parameters.extent.width);
    parameters.srcPtr.ptr = memory + 2 * BYTES;
    answer_code(c, "set", cudaGraphMemcpyNodeSetParams(node, &parameters));
    MUST(c, cudaMemsetAsync(memory, 1, 2 * BYTES, stream));
    MUST(c, cudaMemsetAsync(memory + 2 * BYTES, 2, BYTES, stream));
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    answer_number(c, "byte", conformance_byte(memory + BYTES));
    answer_code(c, "set-1d", cudaGraphMemcpyNodeSetParams1D(node, memory, memory + 2 * BYTES, BYTES,
                                                            cudaMemcpyDefault));
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    answer_number(c, "byte", conformance_byte(memory));
}

static void node_parameters_of_host(struct conformance *c) {
    int one = 0, two = 0;
    cudaGraph_t graph = conformance_graph(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphNode_t node = host_node(c, graph, NULL, 0, set, &one);
    struct cudaHostNodeParams parameters = {NULL, NULL};
    MUST(c, cudaGraphHostNodeGetParams(node, &parameters));
    answer_yes(c, "function", parameters.fn == set);
    answer_yes(c, "data", parameters.userData == &one);
    parameters.userData = &two;
    answer_code(c, "set", cudaGraphHostNodeSetParams(node, &parameters));
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "one", one);
    answer_number(c, "two", two);
}

static void node_parameters_of_any(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaGraph_t graph = conformance_graph(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphNode_t node = fill_node(c, graph, NULL, 0, memory, 7);
    struct cudaGraphNodeParams parameters = {.type = cudaGraphNodeTypeMemset};
    parameters.memset.dst = memory;
    parameters.memset.value = 5;
    parameters.memset.elementSize = 1;
    parameters.memset.width = BYTES;
    parameters.memset.height = 1;
    answer_code(c, "set", cudaGraphNodeSetParams(node, &parameters));
    parameters.type = cudaGraphNodeTypeHost;
    answer_yes(c, "other-type", cudaGraphNodeSetParams(node, &parameters) != cudaSuccess);
    (void)cudaGetLastError();
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    answer_number(c, "byte", conformance_byte(memory));
}

// NODE is no kernel, and NOTHING is no function of a kernel.
static void node_of_no_kernel(struct conformance *c) {
    struct cudaKernelNodeParams parameters = {
        .func = (void *)(uintptr_t)nothing, .gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}};
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = empty_node(c, graph, NULL, 0), kernel = NULL;
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    answer_code(c, "function", cudaGraphAddKernelNode(&kernel, graph, NULL, 0, &parameters));
    answer_code(c, "null", cudaGraphAddKernelNode(&kernel, graph, NULL, 0, NULL));
    answer_code(c, "get", cudaGraphKernelNodeGetParams(node, &parameters));
    answer_code(c, "set", cudaGraphKernelNodeSetParams(node, NULL));
    answer_code(c, "exec-set", cudaGraphExecKernelNodeSetParams(exec, node, NULL));
    answer_node_count(c, "nodes", graph);
}

static void node_attributes_of_no_kernel(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = empty_node(c, graph, NULL, 0);
    cudaKernelNodeAttrValue value = {.priority = 0};
    answer_code(c, "get",
                cudaGraphKernelNodeGetAttribute(node, cudaKernelNodeAttributePriority, &value));
    answer_code(c, "set",
                cudaGraphKernelNodeSetAttribute(node, cudaKernelNodeAttributePriority, &value));
    answer_code(c, "copy", cudaGraphKernelNodeCopyAttributes(node, node));
}

static void node_events(struct conformance *c) {
    cudaEvent_t one = conformance_event(c), two = conformance_event(c), event = NULL;
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t record = record_node(c, graph, NULL, 0, one);
    cudaGraphNode_t wait = wait_node(c, graph, NULL, 0, one);
    MUST(c, cudaGraphEventRecordNodeGetEvent(record, &event));
    answer_yes(c, "record", event == one);
    MUST(c, cudaGraphEventWaitNodeGetEvent(wait, &event));
    answer_yes(c, "wait", event == one);
    MUST(c, cudaGraphEventRecordNodeSetEvent(record, two));
    MUST(c, cudaGraphEventRecordNodeGetEvent(record, &event));
    answer_yes(c, "record-set", event == two);
    MUST(c, cudaGraphEventWaitNodeSetEvent(wait, two));
    MUST(c, cudaGraphEventWaitNodeGetEvent(wait, &event));
    answer_yes(c, "wait-set", event == two);
    answer_code(c, "other", cudaGraphEventWaitNodeGetEvent(record, &event));
}

// --- Child graphs ---

static void child_is_a_copy(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaGraph_t graph = conformance_graph(c), child = NULL, own = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphNode_t node = NULL;
    MUST(c, cudaMemsetAsync(memory, 0, BYTES, stream));
    MUST(c, cudaGraphCreate(&child, 0));
    (void)fill_node(c, child, NULL, 0, memory, 1);
    MUST(c, cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    (void)empty_node(c, child, NULL, 0);
    MUST(c, cudaGraphChildGraphNodeGetGraph(node, &own));
    answer_yes(c, "other", own != child && own != NULL);
    answer_node_count(c, "nodes", own);
    answer_code(c, "destroy", cudaGraphDestroy(child));
    answer_node_count(c, "nodes", own);
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    answer_number(c, "byte", conformance_byte(memory));
}

static void child_is_edited(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaGraph_t graph = conformance_graph(c), child = conformance_graph(c), own = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphNode_t node = NULL;
    MUST(c, cudaMemsetAsync(memory, 0, BYTES, stream));
    MUST(c, cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    MUST(c, cudaGraphChildGraphNodeGetGraph(node, &own));
    (void)fill_node(c, own, NULL, 0, memory, 4);
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    answer_number(c, "byte", conformance_byte(memory));
}

#ifdef TIDEMARK_SIMULATOR
static void conditional_is_refused(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c), body = NULL;
    cudaGraphNode_t node = NULL;
    cudaGraphConditionalHandle handle;
    struct cudaGraphNodeParams parameters = {.type = cudaGraphNodeTypeConditional};
    answer_code(c, "handle", cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
    parameters.conditional.type = cudaGraphCondTypeIf;
    parameters.conditional.size = 1;
    parameters.conditional.phGraph_out = &body;
    answer_code(c, "add", cudaGraphAddNode(&node, graph, NULL, NULL, 0, &parameters));
    answer_node_count(c, "nodes", graph);
}
#endif

const struct conformance_case conformance__cases_graph_node[] = {
    CASE("node-add-bad", "7.5", VERIFIED, node_add_bad,
        "a node without a result pointer or a graph, or behind nodes of another graph or one "
        "twice: 1",
        "result=1 graph=1 array=1 foreign=1 twice=1 nodes=1", NULL),
    CASE("node-destroyed", "7.5", VERIFIED, node_destroyed,
        "a node that is destroyed takes its edges along",
        "destroy=0 nodes=2 edges=0 dependencies=0 instantiate=0", NULL),
    CASE("node-types", "7.5", VERIFIED, node_types,
        "each node has a type",
        "copy=1 fill=2 host=3 child=4 empty=5 wait=6 record=7 null=1", NULL),
    CASE("node-of-any-type", "7.5", VERIFIED, node_of_any_type,
        "cudaGraphAddNode adds them all",
        "copy=1 host=3 child=4 empty=5 wait=6 record=7", NULL),
    CASE("node-parameters-are-used", "7.5", VERIFIED, node_parameters_are_used,
        "nodes do what their parameters say",
        "filled=2 copied=1 flag=1", NULL),
    CASE("node-parameters-bad", "7.5", UNVERIFIED, node_parameters_bad,
        "no parameters, elements of 3 bytes, no function: 1",
        "element=1 fill=1 host=1 function=1 copy=1 child=1 any=1 nodes=0", NULL),
    CASE("node-parameters-of-fill", "7.5", VERIFIED, node_parameters_of_fill,
        "a fill's parameters can be asked for and set; those of a node of another type: 1",
        "to=yes value=7 width=16 set=8 other=1 null=1", NULL),
    CASE("node-parameters-of-copy", "7.5", VERIFIED, node_parameters_of_copy,
        "a copy's likewise",
        "from=yes to=yes width=16 set=0 byte=2 set-1d=0 byte=2", NULL),
    CASE("node-parameters-of-host", "7.5", VERIFIED, node_parameters_of_host,
        "a host function's likewise",
        "function=yes data=yes set=0 one=0 two=1", NULL),
    CASE("node-parameters-of-any", "7.5", VERIFIED, node_parameters_of_any,
        "cudaGraphNodeSetParams sets them all, of the node's type",
        "set=0 other-type=yes byte=5", NULL),
    CASE("node-of-no-kernel", "7.5", UNVERIFIED, node_of_no_kernel,
        "a kernel node of a function that is no kernel: 98; without parameters: 1",
        "function=98 null=1 get=1 set=1 exec-set=1 nodes=1", NULL),
    CASE("node-attributes-of-no-kernel", "7.5", UNVERIFIED, node_attributes_of_no_kernel,
        "only kernel nodes have attributes: else 1",
        "get=1 set=1 copy=1", NULL),
    CASE("node-events", "7.5", VERIFIED, node_events,
        "event nodes have an event, which can be set",
        "record=yes wait=yes record-set=yes wait-set=yes other=1", NULL),
    CASE("child-is-a-copy", "7.5", VERIFIED, child_is_a_copy,
        "a child node has a copy of the graph",
        "other=yes nodes=1 destroy=0 nodes=1 byte=1", NULL),
    CASE("child-is-edited", "7.5", VERIFIED, child_is_edited,
        "which can be edited",
        "byte=4", NULL),
#ifdef TIDEMARK_SIMULATOR
    CASE_SIMULATED("conditional-is-refused", "7", VERIFIED, conditional_is_refused,
        "conditional nodes are not simulated: 801",
        "handle=801 add=801 nodes=0", NULL),
#endif
    {0},
};
