// Section 7.5: executables: instantiated, launched, destroyed; and what section 8 says of their
// order. Their changes are graph_update.c.
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
    MUST(c, cudaMemsetAsync(memory, 0, 2 * BYTES, stream));
    MUST(c, cudaGraphCreate(&graph, 0));
    cudaGraphNode_t node = fill_node(c, graph, NULL, 0, memory, 1);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    (void)fill_node(c, graph, NULL, 0, memory + BYTES, 2);
    MUST(c, cudaGraphDestroyNode(node));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "removed", conformance_byte(memory));
    answer_number(c, "added", conformance_byte(memory + BYTES));
    answer_code(c, "destroy", cudaGraphDestroy(graph));
    MUST(c, cudaMemsetAsync(memory, 0, BYTES, stream));
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
    MUST(c, cudaMemsetAsync(memory, 0, BYTES, stream));
    MUST(c, cudaGraphCreate(&graph, 0));
    (void)fill_node(c, graph, NULL, 0, memory, 6);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    conformance_gate(c, stream);
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_code(c, "destroy", cudaGraphDestroy(graph));
    conformance_open(c);
    answer_number(c, "byte", conformance_byte(memory));
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
