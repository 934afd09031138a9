// Section 7.5: executables: instantiating, launching, updating, destroying; and what section 8 says
// of their order.
#include "simulator/conformance/graph_cases.h"

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

#include <stdint.h>
#include <string.h>

static void add_one(void *count) { ++*(int *)count; }

// A graph that fills MEMORY with VALUE.
static cudaGraph_t fill_graph(struct conformance *c, void *memory, int value) {
    cudaGraph_t graph = conformance_graph(c);
    (void)fill_node(c, graph, NULL, 0, memory, value);
    return graph;
}

// An executable that waits for EVENT.
static cudaGraphExec_t waiting_exec(struct conformance *c, cudaEvent_t event) {
    cudaGraph_t graph = conformance_graph(c);
    (void)wait_node(c, graph, NULL, 0, event);
    return conformance_graph_exec(c, graph);
}

// An event behind a closed gate.
static cudaEvent_t gated_event(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    return conformance_mark(c, stream);
}

// --- Instantiate ---

static void instantiate_bad(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphExec_t exec = NULL;
    answer_code(c, "null", cudaGraphInstantiate(NULL, graph, 0));
    answer_code(c, "graph", cudaGraphInstantiate(&exec, NULL, 0));
    answer_code(c, "flags", cudaGraphInstantiate(&exec, graph, 0x80));
    answer_code(c, "autofree-and-device-launch",
                cudaGraphInstantiate(&exec, graph,
                                     cudaGraphInstantiateFlagAutoFreeOnLaunch |
                                         cudaGraphInstantiateFlagDeviceLaunch));
    answer_code(c, "with-flags", cudaGraphInstantiateWithFlags(&exec, NULL, 0));
}

static void instantiate_with_parameters(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphInstantiateParams parameters = {.flags = cudaGraphInstantiateFlagUpload,
                                             .uploadStream = stream};
    cudaGraph_t graph = fill_graph(c, memory, 3);
    cudaGraphExec_t exec = NULL;
    unsigned long long flags = 99;
    answer_code(c, "instantiate", cudaGraphInstantiateWithParams(&exec, graph, &parameters));
    conformance_keep_graph_exec(c, exec);
    answer_number(c, "result", parameters.result_out);
    answer_yes(c, "no-error", parameters.errNode_out == NULL);
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(memory));
    MUST(c, cudaGraphInstantiateWithFlags(&exec, graph, cudaGraphInstantiateFlagUseNodePriority));
    conformance_keep_graph_exec(c, exec);
    MUST(c, cudaGraphExecGetFlags(exec, &flags));
    answer_number(c, "flags", (int64_t)flags);
}

static void instantiate_tells_of_a_cycle(struct conformance *c) {
    cudaGraphInstantiateParams parameters = {0};
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t one = empty_node(c, graph, NULL, 0), two = empty_node(c, graph, &one, 1);
    cudaGraphExec_t exec = NULL;
    MUST(c, cudaGraphAddDependencies(graph, &two, &one, NULL, 1));
    answer_code(c, "instantiate", cudaGraphInstantiateWithParams(&exec, graph, &parameters));
    answer_number(c, "result", parameters.result_out);
    answer_yes(c, "node", parameters.errNode_out == one || parameters.errNode_out == two);
}

static void instantiate_copies(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, 2 * BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = NULL;
    MUST(c, cudaMemset(memory, 0, 2 * BYTES));
    MUST(c, cudaGraphCreate(&graph, 0));
    cudaGraphNode_t node = fill_node(c, graph, NULL, 0, memory, 1);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    (void)fill_node(c, graph, NULL, 0, memory + BYTES, 2);
    MUST(c, cudaGraphDestroyNode(node));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "removed", conformance_byte(memory));
    answer_number(c, "added", conformance_byte(memory + BYTES));
    answer_code(c, "destroy", cudaGraphDestroy(graph));
    MUST(c, cudaMemset(memory, 0, BYTES));
    answer_code(c, "launch", cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(memory));
}

static void parameters_are_frozen(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = fill_node(c, graph, NULL, 0, memory, 1);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    const struct cudaMemsetParams parameters = fill(memory, 2);
    MUST(c, cudaGraphMemsetNodeSetParams(node, &parameters));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(memory));
}

static void data_is_read_at_each_launch(struct conformance *c) {
    unsigned char pageable[BYTES], *pinned = conformance_pinned_memory(c, BYTES);
    unsigned char *memory = conformance_device_memory(c, 2 * BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    (void)copy_node(c, graph, NULL, 0, memory, pageable);
    (void)copy_node(c, graph, NULL, 0, memory + BYTES, pinned);
    memset(pageable, 1, BYTES);
    memset(pinned, 1, BYTES);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    for (int i = 2; i < 4; ++i) {
        memset(pageable, i, BYTES);
        memset(pinned, 10 * i, BYTES);
        MUST(c, cudaGraphLaunch(exec, stream));
        MUST(c, cudaStreamSynchronize(stream));
        answer_number(c, "pageable", conformance_byte(memory));
        answer_number(c, "pinned", conformance_byte(memory + BYTES));
    }
}

static void captured_source_is_read_at_launch(struct conformance *c) {
    static unsigned char pageable[BYTES];
    unsigned char *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    memset(pageable, 1, BYTES);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemcpyAsync(memory, pageable, BYTES, cudaMemcpyHostToDevice, stream));
    cudaGraphExec_t exec = conformance_graph_exec(c, capture_end(c, stream));
    memset(pageable, 2, BYTES);
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "byte", conformance_byte(memory));
}

// --- Launch ---

static void launch_bad(struct conformance *c) {
    cudaGraphExec_t exec = conformance_graph_exec(c, conformance_graph(c));
    cudaStream_t stream = NULL;
    answer_code(c, "null", cudaGraphLaunch(NULL, NULL));
    answer_code(c, "upload-null", cudaGraphUpload(NULL, NULL));
    answer_code(c, "destroy-null", cudaGraphExecDestroy(NULL));
    MUST(c, cudaStreamCreate(&stream));
    MUST(c, cudaStreamDestroy(stream));
    const cudaError_t error = cudaGraphLaunch(exec, stream);
    answer_yes(c, "stream", error == cudaErrorInvalidResourceHandle ||
                                error == cudaErrorContextIsDestroyed);
    (void)cudaGetLastError();
}

static void launch_of_nothing(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphExec_t exec = conformance_graph_exec(c, conformance_graph(c));
    answer_code(c, "launch", cudaGraphLaunch(exec, stream));
    answer_event(c, "behind", conformance_mark(c, stream));
}

static void launch_again(struct conformance *c) {
    int count = 0;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    (void)host_node(c, graph, NULL, 0, add_one, &count);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    for (int i = 0; i < 3; ++i)
        MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "count", count);
}

static void launch_waits_for_its_stream(struct conformance *c) {
    cudaEvent_t event = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t gated = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    (void)record_node(c, graph, NULL, 0, event);
    (void)empty_node(c, graph, NULL, 0);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    conformance_gate(c, gated);
    MUST(c, cudaStreamWaitEvent(stream, conformance_mark(c, gated), 0));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_event(c, "node", event);
    conformance_open(c);
    MUST(c, cudaStreamSynchronize(stream));
    answer_event(c, "opened", event);
}

// Two nodes without edges: the first is behind the gate, then the second.
static void launch_is_one_item(struct conformance *c) {
    for (int i = 0; i < 2; ++i) {
        cudaEvent_t gated = gated_event(c), event = conformance_event(c);
        cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
        cudaGraph_t graph = conformance_graph(c);
        if (i == 0)
            (void)wait_node(c, graph, NULL, 0, gated);
        (void)record_node(c, graph, NULL, 0, event);
        if (i == 1)
            (void)wait_node(c, graph, NULL, 0, gated);
        MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
        answer_code(c, "query", cudaStreamQuery(stream));
        answer_event(c, "behind", conformance_mark(c, stream));
        answer_event(c, "other", event);
    }
}

static void launch_returns(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t gated = gated_event(c);
    answer_code(c, "launch", cudaGraphLaunch(waiting_exec(c, gated), stream));
    answer_event(c, "gate", gated);
    conformance_open(c);
    answer_code(c, "synchronize", cudaStreamSynchronize(stream));
    answer_code(c, "query", cudaStreamQuery(stream));
}

static void launch_order_of_edges(struct conformance *c) {
    cudaEvent_t gated = gated_event(c);
    cudaEvent_t behind = conformance_event(c), beside = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = wait_node(c, graph, NULL, 0, gated);
    node = empty_node(c, graph, &node, 1);
    (void)record_node(c, graph, &node, 1, behind);
    (void)record_node(c, graph, NULL, 0, beside);
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    answer_event(c, "behind", behind);
    answer_event(c, "beside", beside);
    conformance_open(c);
    MUST(c, cudaStreamSynchronize(stream));
    answer_event(c, "opened", behind);
}

static void launch_order_of_join(struct conformance *c) {
    cudaEvent_t gated = gated_event(c), behind = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t nodes[3];
    nodes[0] = empty_node(c, graph, NULL, 0);
    nodes[1] = wait_node(c, graph, NULL, 0, gated);
    nodes[2] = empty_node(c, graph, NULL, 0);
    (void)record_node(c, graph, nodes, 3, behind);
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    answer_event(c, "behind", behind);
}

static void launch_order_of_child(struct conformance *c) {
    cudaEvent_t gated = gated_event(c);
    cudaEvent_t before = conformance_event(c), behind = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c), child = conformance_graph(c);
    cudaGraphNode_t node = NULL;
    (void)wait_node(c, child, NULL, 0, gated);
    (void)record_node(c, child, NULL, 0, before);
    MUST(c, cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    (void)record_node(c, graph, &node, 1, behind);
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    answer_event(c, "inside", before);
    answer_event(c, "behind", behind);
}

static void child_waits(struct conformance *c) {
    cudaEvent_t gated = gated_event(c), inside = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c), child = conformance_graph(c);
    cudaGraphNode_t node = wait_node(c, graph, NULL, 0, gated);
    (void)record_node(c, child, NULL, 0, inside);
    (void)empty_node(c, child, NULL, 0);
    MUST(c, cudaGraphAddChildGraphNode(&node, graph, &node, 1, child));
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    answer_event(c, "inside", inside);
}

// Empty children pass on what they wait for.
static void child_of_nothing(struct conformance *c) {
    cudaEvent_t gated = gated_event(c), behind = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c), child = conformance_graph(c);
    cudaGraphNode_t node = wait_node(c, graph, NULL, 0, gated);
    MUST(c, cudaGraphAddChildGraphNode(&node, graph, &node, 1, child));
    (void)record_node(c, graph, &node, 1, behind);
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    answer_event(c, "behind", behind);
}

// The first launch waits for the gate. By the second one the event is complete, so that only the
// first launch is left to wait for.
static void answer_second_launch(struct conformance *c, cudaGraphExec_t first,
                                 cudaGraphExec_t second, cudaEvent_t event) {
    cudaStream_t gated = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t one = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t two = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t idle = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, gated);
    MUST(c, cudaEventRecord(event, gated));
    MUST(c, cudaGraphLaunch(first, one));
    cudaEvent_t mark = conformance_mark(c, one);
    MUST(c, cudaEventRecord(event, idle));
    MUST(c, cudaGraphLaunch(second, two));
    answer_event(c, "first", mark);
    answer_event(c, "second", conformance_mark(c, two));
}

static void launch_follows_itself(struct conformance *c) {
    cudaEvent_t event = conformance_event(c);
    cudaGraphExec_t exec = waiting_exec(c, event);
    answer_second_launch(c, exec, exec, event);
}

static void launch_overlaps_others(struct conformance *c) {
    cudaEvent_t event = conformance_event(c);
    cudaGraph_t graph = conformance_graph(c);
    (void)wait_node(c, graph, NULL, 0, event);
    cudaGraphExec_t first = conformance_graph_exec(c, graph);
    answer_second_launch(c, first, conformance_graph_exec(c, graph), event);
}

static void launch_in_legacy_stream(struct conformance *c) {
    cudaStream_t before = conformance_stream(c, cudaStreamDefault);
    cudaStream_t after = conformance_stream(c, cudaStreamDefault);
    cudaStream_t free_stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_event(c);
    cudaGraph_t graph = conformance_graph(c);
    (void)record_node(c, graph, NULL, 0, event);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    conformance_gate(c, before);
    (void)conformance_mark(c, before);
    MUST(c, cudaGraphLaunch(exec, NULL));
    answer_event(c, "node", event);
    answer_event(c, "blocking", conformance_mark(c, after));
    answer_event(c, "nonblocking", conformance_mark(c, free_stream));
}

static void launch_in_other_device(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaGraphExec_t exec = conformance_graph_exec(c, fill_graph(c, memory, 5));
    MUST(c, cudaSetDevice(1));
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaStreamSynchronize(stream));
    MUST(c, cudaSetDevice(0));
    answer_number(c, "byte", conformance_byte(memory));
}

static void upload_runs_nothing(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMemset(memory, 0, BYTES));
    cudaGraphExec_t exec = conformance_graph_exec(c, fill_graph(c, memory, 5));
    answer_code(c, "upload", cudaGraphUpload(exec, stream));
    answer_number(c, "byte", conformance_byte(memory));
    answer_code(c, "launch", cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(memory));
}

static void exec_destroyed_while_pending(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphExec_t exec = NULL;
    MUST(c, cudaMemset(memory, 0, BYTES));
    MUST(c, cudaDeviceSynchronize());
    cudaGraphNode_t node = wait_node(c, graph, NULL, 0, gated_event(c));
    (void)fill_node(c, graph, &node, 1, memory, 6);
    MUST(c, cudaGraphInstantiate(&exec, graph, 0));
    MUST(c, cudaGraphLaunch(exec, stream));
    cudaEvent_t behind = conformance_mark(c, stream);
    answer_code(c, "destroy", cudaGraphExecDestroy(exec));
    answer_event(c, "behind", behind);
    conformance_open(c);
    answer_number(c, "byte", conformance_byte(memory));
}

static void graph_destroyed_while_pending(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = NULL;
    MUST(c, cudaMemset(memory, 0, BYTES));
    MUST(c, cudaGraphCreate(&graph, 0));
    (void)fill_node(c, graph, NULL, 0, memory, 6);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    conformance_gate(c, stream);
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_code(c, "destroy", cudaGraphDestroy(graph));
    conformance_open(c);
    answer_number(c, "byte", conformance_byte(memory));
}

// --- Update ---

static void answer_update(struct conformance *c, cudaGraphExec_t exec, cudaGraph_t graph) {
    cudaGraphExecUpdateResultInfo info;
    memset(&info, 0, sizeof info);
    answer_code(c, "update", cudaGraphExecUpdate(exec, graph, &info));
    answer_number(c, "result", info.result);
}

static void update_takes_parameters(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, 2 * BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMemset(memory, 0, 2 * BYTES));
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
    MUST(c, cudaMemset(memory, 1, BYTES));
    MUST(c, cudaMemset(memory + BYTES, 2, BYTES));
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
    MUST(c, cudaMemset(memory, 0, BYTES));
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
    MUST(c, cudaMemset(memory, 0, 2 * BYTES));
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

// --- One node of an executable ---

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
    MUST(c, cudaMemset(memory, 1, BYTES));
    MUST(c, cudaMemset(memory + BYTES, 2, BYTES));
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

// --- Threads ---

static cudaGraphExec_t thread_exec;
static cudaStream_t thread_stream;

static void launched_in_thread(struct conformance *c) {
    answer_code(c, "launch", cudaGraphLaunch(thread_exec, thread_stream));
}

static void launch_in_thread(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    thread_stream = conformance_stream(c, cudaStreamNonBlocking);
    thread_exec = conformance_graph_exec(c, fill_graph(c, memory, 5));
    conformance_in_thread(c, launched_in_thread);
    answer_number(c, "byte", conformance_byte(memory));
}

#ifdef TIDEMARK_SIMULATOR
static void note(void *place) {
    static int count;
    *(int *)place = ++count;
}

// Two nodes without edges, under many seeds; then with one.
static void nodes_run_in_any_order(struct conformance *c) {
    bool forward = false, backward = false, against = false;
    for (int edge = 0; edge < 2; ++edge) {
        for (int seed = 1; seed <= 64; ++seed) {
            char schedule[32] = "random:";
            int places[2] = {0, 0};
            schedule[7] = (char)('0' + seed / 10);
            schedule[8] = (char)('0' + seed % 10);
            if (sim_schedule(schedule) != BASE_OK)
                return;
            cudaStream_t stream = NULL;
            cudaGraph_t graph = NULL;
            cudaGraphExec_t exec = NULL;
            cudaGraphNode_t node;
            MUST(c, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            MUST(c, cudaGraphCreate(&graph, 0));
            node = host_node(c, graph, NULL, 0, note, &places[0]);
            (void)host_node(c, graph, &node, edge == 1 ? 1 : 0, note, &places[1]);
            MUST(c, cudaGraphInstantiate(&exec, graph, 0));
            MUST(c, cudaGraphLaunch(exec, stream));
            MUST(c, cudaStreamSynchronize(stream));
            MUST(c, cudaGraphExecDestroy(exec));
            MUST(c, cudaGraphDestroy(graph));
            MUST(c, cudaStreamDestroy(stream));
            if (edge == 1)
                against = against || places[0] > places[1];
            else if (places[0] < places[1])
                forward = true;
            else
                backward = true;
        }
    }
    answer_yes(c, "forward", forward);
    answer_yes(c, "backward", backward);
    answer_yes(c, "against-an-edge", against);
}

static void exec_destroyed_is_refused(struct conformance *c) {
    cudaGraphExec_t exec = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaGraphInstantiate(&exec, conformance_graph(c), 0));
    MUST(c, cudaGraphExecDestroy(exec));
    answer_code(c, "launch", cudaGraphLaunch(exec, stream));
    answer_code(c, "upload", cudaGraphUpload(exec, stream));
    answer_code(c, "destroy", cudaGraphExecDestroy(exec));
}
#endif

const struct conformance_case conformance__cases_graph_exec[] = {
    CASE("instantiate-bad", "7.5", VERIFIED, instantiate_bad,
        "cudaGraphInstantiate without a result pointer or a graph, with unknown flags, or to free "
        "automatically and be launched from the device: 1",
        "null=1 graph=1 flags=1 autofree-and-device-launch=1 with-flags=1", NULL),
    CASE("instantiate-with-parameters", "7.5", VERIFIED, instantiate_with_parameters,
        "the result is told; an executable knows its flags",
        "instantiate=0 result=0 no-error=yes byte=3 flags=8", NULL),
    CASE("instantiate-tells-of-a-cycle", "7.5", VERIFIED, instantiate_tells_of_a_cycle,
        "of a cycle one node is told",
        "instantiate=1 result=2 node=yes", NULL),
    CASE("instantiate-copies", "7.5", VERIFIED, instantiate_copies,
        "an executable is a copy: the graph may be edited and destroyed",
        "removed=1 added=0 destroy=0 launch=0 byte=1", NULL),
    CASE("parameters-are-frozen", "7.5", VERIFIED, parameters_are_frozen,
        "parameters are those of the time of cudaGraphInstantiate",
        "byte=1", NULL),
    CASE("data-is-read-at-each-launch", "7.5", VERIFIED, data_is_read_at_each_launch,
        "what is behind pointers is read at each launch, pageable memory too",
        "pageable=2 pinned=20 pageable=3 pinned=30", NULL),
    CASE("captured-source-is-read-at-launch", "8", VERIFIED, captured_source_is_read_at_launch,
        "also of a captured copy",
        "byte=2", NULL),
    CASE("launch-bad", "7.5", UNVERIFIED, launch_bad,
        "no executable: 1; a destroyed stream: 400 or 709",
        "null=1 upload-null=1 destroy-null=1 stream=yes", NULL),
    CASE("launch-of-nothing", "7.5", VERIFIED, launch_of_nothing,
        "a graph without nodes can be launched",
        "launch=0 behind=done", NULL),
    CASE("launch-again", "7.5", VERIFIED, launch_again,
        "an executable is launched as often as one likes",
        "count=3", NULL),
    CASE("launch-waits-for-its-stream", "8", VERIFIED, launch_waits_for_its_stream,
        "a launch comes after earlier work of its stream",
        "node=pending opened=done", NULL),
    CASE("launch-is-one-item", "8", VERIFIED, launch_is_one_item,
        "later work waits for every node, whichever it is that takes long",
        "query=600 behind=pending other=done query=600 behind=pending other=done", NULL),
    CASE("launch-returns", "7.5", VERIFIED, launch_returns,
        "cudaGraphLaunch does not wait",
        "launch=0 gate=pending synchronize=0 query=0", NULL),
    CASE("launch-order-of-edges", "8", VERIFIED, launch_order_of_edges,
        "a node waits for those it depends on, not for others",
        "behind=pending beside=done opened=done", NULL),
    CASE("launch-order-of-join", "8", VERIFIED, launch_order_of_join,
        "for all of them",
        "behind=pending", NULL),
    CASE("launch-order-of-child", "8", VERIFIED, launch_order_of_child,
        "what depends on a child graph waits for all of its nodes",
        "inside=done behind=pending", NULL),
    CASE("child-waits", "8", VERIFIED, child_waits,
        "all nodes of a child graph wait for what that depends on",
        "inside=pending", NULL),
    CASE("child-of-nothing", "8", VERIFIED, child_of_nothing,
        "a child graph without nodes keeps the order of its edges",
        "behind=pending", NULL),
    CASE("launch-follows-itself", "8", VERIFIED, launch_follows_itself,
        "launches of one executable run one after another, in whatever streams",
        "first=pending second=pending", NULL),
    CASE("launch-overlaps-others", "8", VERIFIED, launch_overlaps_others,
        "different executables may overlap, also those of one graph",
        "first=pending second=done", "first=pending second=pending"),
    CASE("launch-in-legacy-stream", "5", UNVERIFIED, launch_in_legacy_stream,
        "a launch in the legacy stream is a barrier for blocking streams",
        "node=pending blocking=pending nonblocking=done", NULL),
    CASE_2("launch-in-other-device", "7.5", UNVERIFIED, launch_in_other_device,
        "a graph may be launched in another device's stream; its work stays where it was",
        "byte=5", NULL),
    CASE("upload-runs-nothing", "7.5", VERIFIED, upload_runs_nothing,
        "cudaGraphUpload runs no node",
        "upload=0 byte=0 launch=0 byte=5", NULL),
    CASE("exec-destroyed-while-pending", "8", UNVERIFIED, exec_destroyed_while_pending,
        "a launch completes though its executable is destroyed",
        "destroy=0 behind=pending byte=6", NULL),
    CASE("graph-destroyed-while-pending", "7.5", VERIFIED, graph_destroyed_while_pending,
        "or its graph",
        "destroy=0 byte=6", NULL),
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
    CASE("launch-in-thread", "7.5", VERIFIED, launch_in_thread,
        "any thread may launch",
        "launch=0 byte=5", NULL),
#ifdef TIDEMARK_SIMULATOR
    CASE_SIMULATED("nodes-run-in-any-order", "8", VERIFIED, nodes_run_in_any_order,
        "nodes run in any order that the edges allow",
        "forward=yes backward=yes against-an-edge=no", NULL),
    CASE_SIMULATED("exec-destroyed-is-refused", "7.5", UNVERIFIED, exec_destroyed_is_refused,
        "a destroyed executable is refused: 1",
        "launch=1 upload=1 destroy=1", NULL),
#endif
    {0},
};
