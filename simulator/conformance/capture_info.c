// Section 7.4: what a program learns about a capture, and how it changes what comes next.
#include "simulator/conformance/graph_cases.h"

struct information {
    enum cudaStreamCaptureStatus status;
    unsigned long long id;
    cudaGraph_t graph;
    const cudaGraphNode_t *dependencies;
    const cudaGraphEdgeData *edges;
    size_t count;
};

static struct information information_of(struct conformance *c, cudaStream_t stream) {
    struct information i = {0};
    const cudaError_t error = cudaStreamGetCaptureInfo(stream, &i.status, &i.id, &i.graph,
                                                       &i.dependencies, &i.edges, &i.count);
    if (error != cudaSuccess)
        answer_code(c, "cudaStreamGetCaptureInfo", error);
    return i;
}

static cudaError_t tips_set(cudaStream_t stream, cudaGraphNode_t *nodes, size_t count) {
    return cudaStreamUpdateCaptureDependencies(stream, nodes, NULL, count,
                                               cudaStreamSetCaptureDependencies);
}

static cudaError_t tips_add(cudaStream_t stream, cudaGraphNode_t *nodes, size_t count) {
    return cudaStreamUpdateCaptureDependencies(stream, nodes, NULL, count,
                                               cudaStreamAddCaptureDependencies);
}

// --- Information ---

static void info_idle(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    answer_number(c, "status", information_of(c, stream).status);
    answer_code(c, "null", cudaStreamGetCaptureInfo(stream, NULL, NULL, NULL, NULL, NULL, NULL));
    answer_code(c, "is-capturing", cudaStreamIsCapturing(stream, NULL));
}

static void info_of_capture(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaGraphNode_t nodes[2];
    size_t count = 2;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    struct information i = information_of(c, stream);
    answer_number(c, "status", i.status);
    answer_yes(c, "id", i.id != 0);
    answer_yes(c, "graph", i.graph != NULL);
    answer_number(c, "at-first", (int64_t)i.count);
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    MUST(c, cudaMemsetAsync(memory, 2, BYTES, stream));
    i = information_of(c, stream);
    answer_number(c, "then", (int64_t)i.count);
    MUST(c, cudaGraphGetNodes(i.graph, nodes, &count));
    answer_number(c, "nodes", (int64_t)count);
    answer_yes(c, "last", i.count == 1 && i.dependencies[0] == nodes[1]);
}

static void info_outputs_are_optional(struct conformance *c) {
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    size_t count = 99;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    answer_code(c, "status",
                cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, NULL, NULL));
    answer_number(c, "is", status);
    answer_code(c, "id", cudaStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL));
    answer_yes(c, "known", id != 0);
    answer_code(c, "count",
                cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, NULL, &count));
    answer_number(c, "is", (int64_t)count);
}

static void info_invalidated(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    (void)cudaStreamQuery(stream);
    (void)cudaGetLastError();
    answer_number(c, "status", information_of(c, stream).status);
}

static void info_ids_differ(struct conformance *c) {
    cudaStream_t one = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t two = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(one));
    const unsigned long long first = information_of(c, one).id;
    (void)capture_end(c, one);
    MUST(c, capture_begin(one));
    MUST(c, capture_begin(two));
    MUST(c, stream_follow(c, joined, one));
    const unsigned long long second = information_of(c, one).id, third = information_of(c, two).id;
    answer_yes(c, "later", first != second);
    answer_yes(c, "beside", second != third && first != third);
    answer_yes(c, "joined", information_of(c, joined).id == second);
    MUST(c, stream_follow(c, one, joined));
}

static void info_graph_is_what_ends(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    cudaGraph_t graph = stream_graph(stream);
    answer_yes(c, "same", graph != NULL && graph == capture_end(c, stream));
}

static void info_nodes_last(struct conformance *c) {
    enum cudaGraphNodeType type = cudaGraphNodeTypeCount;
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    cudaGraphNode_t node = stream_tip(stream);
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    (void)capture_end(c, stream);
    answer_code(c, "type", cudaGraphNodeGetType(node, &type));
    answer_number(c, "is", type);
}

static void info_of_join(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    MUST(c, stream_follow(c, joined, stream));
    answer_yes(c, "forked", stream_tip(joined) == stream_tip(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, joined));
    answer_yes(c, "apart", stream_tip(joined) != stream_tip(stream));
    MUST(c, stream_follow(c, stream, joined));
    answer_number(c, "joined", (int64_t)information_of(c, stream).count);
    answer_number(c, "fork", (int64_t)information_of(c, joined).count);
}

static void info_edges_are_plain(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    const struct information i = information_of(c, stream);
    answer_yes(c, "plain", i.count == 1 && i.edges != NULL && i.edges[0].type == 0 &&
                               i.edges[0].from_port == 0 && i.edges[0].to_port == 0);
}

// --- The graph while it is captured ---

static void tip_moved_to_empty_node(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaGraphNode_t node = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    cudaGraphNode_t before = stream_tip(stream);
    const struct information i = information_of(c, stream);
    answer_code(c, "add", cudaGraphAddEmptyNode(&node, i.graph, i.dependencies, i.count));
    answer_yes(c, "stays", stream_tip(stream) == before);
    answer_code(c, "update", tips_set(stream, &node, 1));
    answer_yes(c, "moved", stream_tip(stream) == node);
    MUST(c, cudaMemsetAsync(memory, 2, BYTES, stream));
    answer_yes(c, "next", has_edge(node, stream_tip(stream)));
    answer_dependency_count(c, "dependencies", stream_tip(stream));
    answer_node_count(c, "nodes", capture_end(c, stream));
}

static void tips_added(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaGraphNode_t node = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    cudaGraphNode_t before = stream_tip(stream);
    node = empty_node(c, stream_graph(stream), NULL, 0);
    answer_code(c, "update", tips_add(stream, &node, 1));
    answer_number(c, "count", (int64_t)information_of(c, stream).count);
    answer_code(c, "again", tips_add(stream, &node, 1));
    MUST(c, cudaMemsetAsync(memory, 2, BYTES, stream));
    cudaGraphNode_t next = stream_tip(stream);
    answer_yes(c, "both", has_edge(before, next) && has_edge(node, next));
    answer_dependency_count(c, "dependencies", next);
}

static void tips_cleared(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    answer_code(c, "update", tips_set(stream, NULL, 0));
    MUST(c, cudaMemsetAsync(memory, 2, BYTES, stream));
    answer_dependency_count(c, "dependencies", stream_tip(stream));
    answer_end(c, "end", stream);
}

// A fork whose nodes are dropped need not come back.
static void tips_dropped_need_no_join(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    cudaGraphNode_t top = stream_tip(stream);
    MUST(c, stream_follow(c, joined, stream));
    MUST(c, cudaMemsetAsync(memory, 2, BYTES, joined));
    MUST(c, tips_set(joined, &top, 1));
    MUST(c, stream_follow(c, stream, joined));
    answer_end(c, "end", stream);
}

static void update_bad(struct conformance *c) {
    cudaGraph_t other = conformance_graph(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphNode_t foreign = empty_node(c, other, NULL, 0), null = NULL;
    answer_code(c, "idle", tips_set(stream, NULL, 0));
    MUST(c, capture_begin(stream));
    answer_code(c, "flag", cudaStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, 2));
    answer_code(c, "array", tips_set(stream, NULL, 1));
    answer_code(c, "foreign", tips_set(stream, &foreign, 1));
    answer_code(c, "null", tips_set(stream, &null, 1));
    answer_status(c, "capture", stream);
    answer_number(c, "count", (int64_t)information_of(c, stream).count);
}

static void update_invalidated(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    (void)cudaStreamQuery(stream);
    (void)cudaGetLastError();
    answer_yes(c, "refused", tips_set(stream, NULL, 0) != cudaSuccess);
    (void)cudaGetLastError();
}

static void added_node_runs(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, 2 * BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMemsetAsync(memory, 0, 2 * BYTES, stream));
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    (void)fill_node(c, stream_graph(stream), NULL, 0, memory + BYTES, 2);
    cudaGraphExec_t exec = conformance_graph_exec(c, capture_end(c, stream));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "captured", conformance_byte(memory));
    answer_number(c, "added", conformance_byte(memory + BYTES));
}

// --- What each captured call does to the set ---

static void nothing(void *unused) { (void)unused; }

static void captured_types(struct conformance *c) {
    unsigned char *device = conformance_device_memory(c, 2 * BYTES);
    cudaGraphNode_t nodes[BYTES];
    size_t count = BYTES;
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(device, 1, BYTES, stream));
    MUST(c, cudaMemset2DAsync(device, 4, 1, 2, 2, stream));
    MUST(c, cudaMemcpyAsync(device + BYTES, device, BYTES, cudaMemcpyDeviceToDevice, stream));
    MUST(c, cudaMemcpy2DAsync(device + BYTES, 4, device, 4, 2, 2, cudaMemcpyDefault, stream));
    MUST(c, cudaLaunchHostFunc(stream, nothing, NULL));
    MUST(c, cudaMallocAsync(&pointer, BYTES, stream));
    MUST(c, cudaFreeAsync(pointer, stream));
    cudaGraph_t graph = capture_end(c, stream);
    MUST(c, cudaGraphGetNodes(graph, nodes, &count));
    for (size_t i = 0; i < count; ++i) {
        enum cudaGraphNodeType type = cudaGraphNodeTypeCount;
        MUST(c, cudaGraphNodeGetType(nodes[i], &type));
        answer_number(c, "type", type);
    }
    answer_edge_count(c, "edges", graph);
}

// What a caching allocator does that asks which captured uses of a block come before a point: the
// set of the stream, then back along the edges.
static void habit_walk_back(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaGraphNode_t open_nodes[BYTES], met[BYTES];
    size_t open_count = 0, met_count = 0;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    MUST(c, stream_follow(c, joined, stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, joined));
    MUST(c, stream_follow(c, stream, joined));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, joined)); // not before the point
    const struct information i = information_of(c, stream);
    for (size_t k = 0; k < i.count; ++k)
        open_nodes[open_count++] = i.dependencies[k];
    while (open_count > 0) {
        cudaGraphNode_t at = open_nodes[--open_count];
        bool known = false;
        for (size_t k = 0; k < met_count; ++k)
            known = known || met[k] == at;
        if (known)
            continue;
        met[met_count++] = at;
        size_t count = 0;
        MUST(c, cudaGraphNodeGetDependencies(at, NULL, NULL, &count));
        MUST(c, cudaGraphNodeGetDependencies(at, open_nodes + open_count, NULL, &count));
        open_count += count;
    }
    answer_number(c, "before", (int64_t)met_count);
    answer_node_count(c, "nodes", i.graph);
    MUST(c, stream_follow(c, stream, joined));
}

#ifdef TIDEMARK_SIMULATOR
// On a device these handles dangle, and so must not be used.
static void info_graph_goes(struct conformance *c) {
    size_t count = 0;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    cudaGraph_t graph = stream_graph(stream);
    cudaGraphNode_t node = empty_node(c, graph, NULL, 0);
    (void)cudaStreamQuery(stream);
    (void)cudaGetLastError();
    answer_code(c, "graph", cudaGraphGetNodes(graph, NULL, &count));
    answer_code(c, "node", cudaGraphNodeGetDependencies(node, NULL, NULL, &count));
}

static void captured_graph_is_kept(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaGraphNode_t node = NULL;
    struct cudaGraphNodeParams parameters = {.type = cudaGraphNodeTypeGraph};
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    parameters.graph.graph = stream_graph(stream);
    parameters.graph.ownership = cudaGraphChildGraphOwnershipMove;
    answer_yes(c, "move", cudaGraphAddNode(&node, conformance_graph(c), NULL, NULL, 0,
                                           &parameters) != cudaSuccess);
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    answer_yes(c, "destroy", cudaGraphDestroy(stream_graph(stream)) != cudaSuccess);
    answer_yes(c, "remove", cudaGraphDestroyNode(stream_tip(stream)) != cudaSuccess);
    answer_status(c, "capture", stream);
    answer_node_count(c, "nodes", capture_end(c, stream));
}
#endif

const struct conformance_case conformance__cases_capture_info[] = {
    CASE("info-idle", "7.4", VERIFIED, info_idle,
        "a stream that does not capture has status 0; no place for the status: 1",
        "status=0 null=1 is-capturing=1", NULL),
    CASE("info-of-capture", "7.4", VERIFIED, info_of_capture,
        "of a capture: its id, its graph, and the nodes that the next one will depend on",
        "status=1 id=yes graph=yes at-first=0 then=1 nodes=2 last=yes", NULL),
    CASE("info-outputs-are-optional", "7.4", VERIFIED, info_outputs_are_optional,
        "all but the status is optional",
        "status=0 is=1 id=0 known=yes count=0 is=0", NULL),
    CASE("info-invalidated", "7.4", VERIFIED, info_invalidated,
        "an invalidated capture has status 2",
        "status=2", NULL),
    CASE("info-ids-differ", "7.4", VERIFIED, info_ids_differ,
        "each capture has an id of its own, which joined streams share",
        "later=yes beside=yes joined=yes", NULL),
    CASE("info-graph-is-what-ends", "7.4", UNVERIFIED, info_graph_is_what_ends,
        "its graph is the one that cudaStreamEndCapture gives",
        "same=yes", NULL),
    CASE("info-nodes-last", "7.4", VERIFIED, info_nodes_last,
        "nodes stay as long as the graph",
        "type=0 is=2", NULL),
    CASE("info-of-join", "7.4", VERIFIED, info_of_join,
        "a stream that joins has the event's nodes; one that is joined has both",
        "forked=yes apart=yes joined=2 fork=1", NULL),
    CASE("info-edges-are-plain", "7.4", VERIFIED, info_edges_are_plain,
        "edges of fills carry nothing",
        "plain=yes", NULL),
    CASE("tip-moved-to-empty-node", "7.4", VERIFIED, tip_moved_to_empty_node,
        "a node may be added to the graph, and the next one be made to depend on it",
        "add=0 stays=yes update=0 moved=yes next=yes dependencies=1 nodes=3", NULL),
    CASE("tips-added", "7.4", VERIFIED, tips_added,
        "or on it as well; one that is in the set is not added again",
        "update=0 count=2 again=0 both=yes dependencies=2", NULL),
    CASE("tips-cleared", "7.4", VERIFIED, tips_cleared,
        "or on none; what is dropped causes no 904",
        "update=0 dependencies=0 end=0", NULL),
    CASE("tips-dropped-need-no-join", "7.4", VERIFIED, tips_dropped_need_no_join,
        "nodes that a fork dropped need not come back",
        "end=0", NULL),
    CASE("update-bad", "7.4", VERIFIED, update_bad,
        "a stream that does not capture: 401; an unknown flag, no array, nodes of another graph: 1",
        "idle=401 flag=1 array=1 foreign=1 null=1 capture=active count=0", NULL),
    CASE("update-invalidated", "7.4", UNVERIFIED, update_invalidated,
        "an invalidated capture has no dependencies to change",
        "refused=yes", NULL),
    CASE("added-node-runs", "7.4", VERIFIED, added_node_runs,
        "nodes added to the graph are part of it",
        "captured=1 added=2", NULL),
    CASE("captured-types", "7.4", VERIFIED, captured_types,
        "each captured call is a node behind the one before",
        "type=2 type=2 type=1 type=1 type=3 type=10 type=11 edges=6", NULL),
    CASE("habit-walk-back", "7.4", VERIFIED, habit_walk_back,
        "what comes before a point of a capture is found by asking for dependencies, first for how "
        "many",
        "before=3 nodes=4", NULL),
#ifdef TIDEMARK_SIMULATOR
    CASE_SIMULATED("info-graph-goes", "7.4", VERIFIED, info_graph_goes,
        "an invalidated capture's graph is gone, and its nodes",
        "graph=1 node=1", NULL),
    CASE_SIMULATED("captured-graph-is-kept", "7.4", VERIFIED, captured_graph_is_kept,
        "while it is captured a graph is not destroyed or moved into another one, nor are its "
        "nodes destroyed",
        "move=yes destroy=yes remove=yes capture=active nodes=1", NULL),
#endif
    {0},
};
