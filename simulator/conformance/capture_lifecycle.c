// Section 7.3: how captures begin, fork, join and end.
#include "simulator/conformance/graph_cases.h"

static void set(void *flag) { *(int *)flag = 1; }

// --- Beginning ---

static void begin_legacy(struct conformance *c) {
    const enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    answer_code(c, "zero", cudaStreamBeginCapture(NULL, mode));
    answer_code(c, "legacy", cudaStreamBeginCapture(cudaStreamLegacy, mode));
}

static void begin_per_thread(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    MUST(c, cudaMemset(memory, 0, BYTES));
    MUST(c, cudaDeviceSynchronize());
    answer_code(c, "begin", capture_begin(cudaStreamPerThread));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, cudaStreamPerThread));
    cudaGraphExec_t exec = conformance_graph_exec(c, capture_end(c, cudaStreamPerThread));
    answer_number(c, "captured", conformance_byte(memory));
    MUST(c, cudaGraphLaunch(exec, cudaStreamPerThread));
    answer_number(c, "launched", conformance_byte(memory));
}

static void begin_twice(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    answer_code(c, "begin", capture_begin(stream));
    answer_status(c, "capture", stream);
    answer_end(c, "end", stream);
}

static void begin_joined(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, stream_follow(c, joined, stream));
    answer_code(c, "begin", capture_begin(joined));
    MUST(c, stream_follow(c, stream, joined));
    answer_end(c, "end", stream);
}

static void begin_bad_mode(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    answer_code(c, "mode", cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)3));
    answer_status(c, "capture", stream);
}

static void begin_again(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    answer_end(c, "first", stream);
    MUST(c, capture_begin(stream));
    answer_end(c, "second", stream);
}

static void begin_to_graph(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaGraph_t graph = conformance_graph(c), ended = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphNode_t first = empty_node(c, graph, NULL, 0);
    MUST(c, cudaStreamBeginCaptureToGraph(stream, graph, &first, NULL, 1,
                                          cudaStreamCaptureModeGlobal));
    answer_status(c, "capture", stream);
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    cudaGraphNode_t second = stream_tip(stream);
    MUST(c, cudaStreamEndCapture(stream, &ended));
    answer_yes(c, "same-graph", ended == graph);
    answer_yes(c, "edge", has_edge(first, second));
    MUST(c, cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0,
                                          cudaStreamCaptureModeGlobal));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    MUST(c, cudaStreamEndCapture(stream, &ended));
    answer_node_count(c, "nodes", graph);
    answer_edge_count(c, "edges", graph);
}

static void begin_to_graph_bad(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c), other = conformance_graph(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphNode_t foreign = empty_node(c, other, NULL, 0);
    const enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    answer_code(c, "graph", cudaStreamBeginCaptureToGraph(stream, NULL, NULL, NULL, 0, mode));
    answer_code(c, "array", cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 1, mode));
    answer_code(c, "foreign",
                cudaStreamBeginCaptureToGraph(stream, graph, &foreign, NULL, 1, mode));
    answer_code(c, "mode", cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0,
                                                         (enum cudaStreamCaptureMode)3));
    answer_status(c, "capture", stream);
}

static void capture_runs_nothing(struct conformance *c) {
    int flag = 0;
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMemset(memory, 1, BYTES));
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 2, BYTES, stream));
    MUST(c, cudaLaunchHostFunc(stream, set, &flag));
    (void)capture_end(c, stream);
    answer_number(c, "byte", conformance_byte(memory));
    answer_number(c, "flag", flag);
}

static void capture_ignores_earlier_work(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    cudaEvent_t earlier = conformance_mark(c, stream);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 2, BYTES, stream));
    cudaGraph_t graph = capture_end(c, stream);
    answer_node_count(c, "nodes", graph);
    answer_edge_count(c, "edges", graph);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    MUST(c, cudaGraphLaunch(exec, other));
    answer_event(c, "launched", conformance_mark(c, other));
    answer_event(c, "earlier", earlier);
}

// --- Fork and join ---

static void fork_and_join(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, 2 * BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    cudaGraphNode_t top = stream_tip(stream);
    answer_status(c, "idle", joined);
    MUST(c, stream_follow(c, joined, stream));
    answer_status(c, "forked", joined);
    MUST(c, cudaMemsetAsync(memory, 2, BYTES, stream));
    cudaGraphNode_t left = stream_tip(stream);
    MUST(c, cudaMemsetAsync(memory + BYTES, 3, BYTES, joined));
    cudaGraphNode_t right = stream_tip(joined);
    MUST(c, stream_follow(c, stream, joined));
    MUST(c, cudaMemsetAsync(memory, 4, 2 * BYTES, stream));
    cudaGraphNode_t bottom = stream_tip(stream);
    cudaGraph_t graph = capture_end(c, stream);
    answer_status(c, "ended", joined);
    answer_node_count(c, "nodes", graph);
    answer_edge_count(c, "edges", graph);
    answer_yes(c, "fork", has_edge(top, left) && has_edge(top, right));
    answer_yes(c, "join", has_edge(left, bottom) && has_edge(right, bottom));
    answer_yes(c, "between", has_edge(left, right) || has_edge(right, left));
}

static void join_of_devices(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaSetDevice(1));
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t back = conformance_event(c);
    MUST(c, cudaMemset(memory, 0, BYTES));
    MUST(c, cudaDeviceSynchronize());
    MUST(c, cudaSetDevice(0));
    MUST(c, capture_begin(stream));
    MUST(c, stream_follow(c, joined, stream));
    MUST(c, cudaMemsetAsync(memory, 6, BYTES, joined));
    MUST(c, cudaEventRecord(back, joined));
    MUST(c, cudaStreamWaitEvent(stream, back, 0));
    cudaGraphExec_t exec = conformance_graph_exec(c, capture_end(c, stream));
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "byte", conformance_byte(memory));
}

static void join_through_another(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t one = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t two = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, stream_follow(c, one, stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, one));
    MUST(c, stream_follow(c, two, one));
    MUST(c, cudaMemsetAsync(memory, 2, BYTES, two));
    MUST(c, stream_follow(c, stream, two));
    answer_end(c, "end", stream);
}

// --- Ending ---

static void end_bad(struct conformance *c) {
    cudaGraph_t graph = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    answer_code(c, "idle", cudaStreamEndCapture(stream, &graph));
    answer_code(c, "zero", cudaStreamEndCapture(NULL, &graph));
    answer_code(c, "legacy", cudaStreamEndCapture(cudaStreamLegacy, &graph));
    MUST(c, capture_begin(stream));
    answer_code(c, "null", cudaStreamEndCapture(stream, NULL));
}

static void end_joined(struct conformance *c) {
    cudaGraph_t graph = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, stream_follow(c, joined, stream));
    answer_code(c, "end", cudaStreamEndCapture(joined, &graph));
}

static void end_joined_then_origin(struct conformance *c) {
    cudaGraph_t graph = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, stream_follow(c, joined, stream));
    MUST(c, stream_follow(c, stream, joined));
    answer_code(c, "joined", cudaStreamEndCapture(joined, &graph));
    answer_end(c, "origin", stream);
    answer_status(c, "status", joined);
}

static cudaStream_t thread_stream;
static cudaError_t thread_error;

static void ended_in_thread(struct conformance *c) {
    cudaGraph_t graph = NULL;
    thread_error = cudaStreamEndCapture(thread_stream, &graph);
    conformance_keep_graph(c, thread_error == cudaSuccess ? graph : NULL);
}

static void end_in_other_thread(struct conformance *c) {
    static const char *const labels[] = {"global", "thread-local", "relaxed"};
    thread_stream = conformance_stream(c, cudaStreamNonBlocking);
    for (int i = 0; i < MODE_COUNT; ++i) {
        MUST(c, cudaStreamBeginCapture(thread_stream, capture_modes[i]));
        conformance_in_thread(c, ended_in_thread);
        answer_code(c, labels[i], thread_error);
        if (thread_error != cudaSuccess) {
            cudaGraph_t graph = NULL;
            if (cudaStreamEndCapture(thread_stream, &graph) == cudaSuccess)
                conformance_keep_graph(c, graph);
            (void)cudaGetLastError();
        }
    }
}

static void end_in_other_thread_then_own(struct conformance *c) {
    thread_stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(thread_stream));
    conformance_in_thread(c, ended_in_thread);
    answer_code(c, "thread", thread_error);
    answer_end(c, "own", thread_stream);
}

static void end_unjoined(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaGraph_t graph = (cudaGraph_t)memory; // anything but NULL
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMemset(memory, 0, BYTES));
    MUST(c, cudaDeviceSynchronize());
    MUST(c, capture_begin(stream));
    MUST(c, stream_follow(c, joined, stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, joined));
    answer_code(c, "end", cudaStreamEndCapture(stream, &graph));
    answer_yes(c, "no-graph", graph == NULL);
    answer_status(c, "origin", stream);
    answer_status(c, "joined", joined);
    answer_code(c, "work", cudaMemsetAsync(memory, 2, BYTES, joined));
    answer_number(c, "byte", conformance_byte(memory));
}

static void end_late_work(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, stream_follow(c, joined, stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, joined));
    MUST(c, stream_follow(c, stream, joined));
    MUST(c, cudaMemsetAsync(memory, 2, BYTES, joined));
    answer_end(c, "end", stream);
}

static void end_invalidated(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaGraph_t graph = (cudaGraph_t)memory; // anything but NULL
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    MUST(c, stream_follow(c, joined, stream));
    answer_code(c, "query", cudaStreamQuery(joined));
    answer_status(c, "joined", joined);
    answer_code(c, "end", cudaStreamEndCapture(stream, &graph));
    answer_yes(c, "no-graph", graph == NULL);
    answer_status(c, "origin", stream);
    answer_status(c, "joined", joined);
    answer_code(c, "again", capture_begin(joined));
}

static void end_is_the_only_exit(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    (void)cudaStreamQuery(stream);
    (void)cudaGetLastError();
    for (int i = 0; i < 3; ++i)
        answer_code(c, "work", cudaMemsetAsync(memory, 1, BYTES, stream));
    answer_end(c, "end", stream);
    answer_code(c, "work", cudaMemsetAsync(memory, 1, BYTES, stream));
}

static void end_destroyed(struct conformance *c) {
    cudaGraph_t graph = NULL;
    cudaStream_t stream = NULL;
    MUST(c, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(c, capture_begin(stream));
    answer_code(c, "destroy", cudaStreamDestroy(stream));
    answer_code(c, "end", cudaStreamEndCapture(stream, &graph));
    MUST(c, cudaDeviceSynchronize()); // no capture is left that this would disturb
    answer_word(c, "device", "free");
}

static void end_empty(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    cudaGraph_t graph = capture_end(c, stream);
    answer_node_count(c, "nodes", graph);
    answer_status(c, "status", stream);
}

static void empty_fork(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    MUST(c, stream_follow(c, joined, stream));
    answer_end(c, "end", stream);
}

const struct conformance_case conformance__cases_capture_lifecycle[] = {
    CASE("begin-legacy", "7.3", VERIFIED, begin_legacy,
        "the legacy stream cannot capture: 900",
        "zero=900 legacy=900", NULL),
    CASE("begin-per-thread", "7.3", VERIFIED, begin_per_thread,
        "the per-thread stream can",
        "begin=0 captured=0 launched=1", NULL),
    CASE("begin-twice", "7.3", VERIFIED, begin_twice,
        "a stream that captures cannot begin: 401, and the capture goes on",
        "begin=401 capture=active end=0", NULL),
    CASE("begin-joined", "7.3", VERIFIED, begin_joined,
        "nor can one that has joined",
        "begin=401 end=0", NULL),
    CASE("begin-bad-mode", "7.3", VERIFIED, begin_bad_mode,
        "an unknown mode: 1",
        "mode=1 capture=none", NULL),
    CASE("begin-again", "7.3", VERIFIED, begin_again,
        "a stream captures as often as it likes",
        "first=0 second=0", NULL),
    CASE("begin-to-graph", "7.3", VERIFIED, begin_to_graph,
        "a capture appends to a graph that is there, behind the nodes that it names",
        "capture=active same-graph=yes edge=yes nodes=3 edges=1", NULL),
    CASE("begin-to-graph-bad", "7.3", UNVERIFIED, begin_to_graph_bad,
        "no graph, nodes of another one, an unknown mode: 1",
        "graph=1 array=1 foreign=1 mode=1 capture=none", NULL),
    CASE("capture-runs-nothing", "7.3", VERIFIED, capture_runs_nothing,
        "captured work does not run",
        "byte=1 flag=0", NULL),
    CASE("capture-ignores-earlier-work", "7.3", VERIFIED, capture_ignores_earlier_work,
        "captured nodes do not depend on the stream's earlier work",
        "nodes=1 edges=0 launched=done earlier=pending", NULL),
    CASE("fork-and-join", "7.3", VERIFIED, fork_and_join,
        "an idle stream that waits for a captured event joins the capture",
        "idle=none forked=active ended=none nodes=4 edges=4 fork=yes join=yes between=no", NULL),
    CASE_2("join-of-devices", "7.3", VERIFIED, join_of_devices,
        "streams of several devices take part in one capture",
        "byte=6", NULL),
    CASE("join-through-another", "7.3", VERIFIED, join_through_another,
        "a fork may come back through another one",
        "end=0", NULL),
    CASE("end-bad", "7.3", VERIFIED, end_bad,
        "to end in a stream that does not capture, or the legacy stream: 401; no result pointer: 1",
        "idle=401 zero=401 legacy=401 null=1", NULL),
    CASE("end-joined", "7.3", VERIFIED, end_joined,
        "to end in a stream that joined: 903",
        "end=903", NULL),
    CASE("end-joined-then-origin", "7.3", UNVERIFIED, end_joined_then_origin,
        "that invalidates the capture",
        "joined=903 origin=901 status=none", "joined=903 origin=0 status=none"),
    CASE("end-in-other-thread", "7.3", VERIFIED, end_in_other_thread,
        "to end in another thread: 908, unless the capture is relaxed",
        "global=908 thread-local=908 relaxed=0", NULL),
    CASE("end-in-other-thread-then-own", "7.3", UNVERIFIED, end_in_other_thread_then_own,
        "that invalidates the capture",
        "thread=908 own=901", "thread=908 own=0"),
    CASE("end-unjoined", "7.3", VERIFIED, end_unjoined,
        "work of a fork that did not come back: 904, no graph, and all streams leave the capture",
        "end=904 no-graph=yes origin=none joined=none work=0 byte=2", NULL),
    CASE("end-late-work", "7.3", VERIFIED, end_late_work,
        "work of a fork behind its join: 904",
        "end=904", NULL),
    CASE("end-invalidated", "7.3", VERIFIED, end_invalidated,
        "an invalidated capture ends with 901, no graph, and all streams leave it",
        "query=900 joined=invalidated end=901 no-graph=yes origin=none joined=none again=0", NULL),
    CASE("end-is-the-only-exit", "7.3", VERIFIED, end_is_the_only_exit,
        "until it is ended a stream of an invalidated capture refuses work",
        "work=901 work=901 work=901 end=901 work=0", NULL),
    CASE("end-destroyed", "7.3", VERIFIED, end_destroyed,
        "a stream that captures is destroyed: its end gives 709",
        "destroy=0 end=709 device=free", NULL),
    CASE("end-empty", "7.3", VERIFIED, end_empty,
        "a capture of nothing is a graph without nodes",
        "nodes=0 status=none", NULL),
    CASE("empty-fork", "7.3", UNVERIFIED, empty_fork,
        "a fork that captured nothing need not come back",
        "end=0", "end=904"),
    {0},
};
