// Section 7.5: graphs as objects: their edges, and what can be asked about them. Nodes are
// graph_node.c.
#include "simulator/conformance/graph_cases.h"

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cudaError_t edge_add(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
    return cudaGraphAddDependencies(graph, &from, &to, NULL, 1);
}

static cudaError_t edge_remove(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
    return cudaGraphRemoveDependencies(graph, &from, &to, NULL, 1);
}

// Whether a graph with a cycle is refused.
static cudaError_t instantiate_try(struct conformance *c, cudaGraph_t graph) {
    cudaGraphExec_t exec = NULL;
    const cudaError_t error = cudaGraphInstantiate(&exec, graph, 0);
    conformance_keep_graph_exec(c, error == cudaSuccess ? exec : NULL);
    return error;
}

// --- Graphs ---

static void graph_create_bad(struct conformance *c) {
    cudaGraph_t graph = NULL;
    answer_code(c, "null", cudaGraphCreate(NULL, 0));
    answer_code(c, "flags", cudaGraphCreate(&graph, 1));
}

static void graph_null(struct conformance *c) {
    size_t count = 0;
    cudaGraph_t clone = NULL;
    answer_code(c, "nodes", cudaGraphGetNodes(NULL, NULL, &count));
    answer_code(c, "roots", cudaGraphGetRootNodes(NULL, NULL, &count));
    answer_code(c, "edges", cudaGraphGetEdges(NULL, NULL, NULL, NULL, &count));
    answer_code(c, "dependencies", cudaGraphNodeGetDependencies(NULL, NULL, NULL, &count));
    answer_code(c, "dependents", cudaGraphNodeGetDependentNodes(NULL, NULL, NULL, &count));
    answer_code(c, "clone", cudaGraphClone(&clone, NULL));
    answer_code(c, "destroy", cudaGraphDestroy(NULL));
    answer_code(c, "destroy-node", cudaGraphDestroyNode(NULL));
}

static void graph_clone(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c), clone = NULL;
    cudaGraphNode_t nodes[2], twin = NULL, twins[2];
    nodes[0] = empty_node(c, graph, NULL, 0);
    nodes[1] = empty_node(c, graph, nodes, 1);
    MUST(c, cudaGraphClone(&clone, graph));
    conformance_keep_graph(c, clone);
    answer_yes(c, "other", clone != graph);
    for (int i = 0; i < 2; ++i) {
        MUST(c, cudaGraphNodeFindInClone(&twins[i], nodes[i], clone));
        answer_yes(c, "other-node", twins[i] != nodes[i]);
    }
    answer_yes(c, "edge", has_edge(twins[0], twins[1]));
    (void)empty_node(c, graph, nodes, 2);
    MUST(c, edge_remove(graph, nodes[0], nodes[1]));
    answer_node_count(c, "nodes", clone);
    answer_edge_count(c, "edges", clone);
    answer_code(c, "not-a-clone", cudaGraphNodeFindInClone(&twin, nodes[0], graph));
    answer_code(c, "null", cudaGraphClone(NULL, graph));
}

static void graph_clone_parameters(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaGraph_t graph = conformance_graph(c), clone = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphNode_t node = fill_node(c, graph, NULL, 0, memory, 1);
    MUST(c, cudaGraphClone(&clone, graph));
    conformance_keep_graph(c, clone);
    struct cudaMemsetParams parameters = fill(memory, 2);
    MUST(c, cudaGraphMemsetNodeSetParams(node, &parameters));
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, clone), stream));
    answer_number(c, "byte", conformance_byte(memory));
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    answer_number(c, "original", conformance_byte(memory));
}

// --- Queries ---

// Room for one, exactly, and two too many of what QUERY gives, of which there are two.
#define ANSWER_QUERY(c, label, query)                                                  \
    do {                                                                               \
        cudaGraphNode_t nodes[4] = {NULL, NULL, (cudaGraphNode_t)&count,               \
                                    (cudaGraphNode_t)&count};                          \
        count = 99;                                                                    \
        MUST((c), query(NULL));                                                        \
        answer_number((c), (label), (int64_t)count);                                   \
        count = 1;                                                                     \
        MUST((c), query(nodes));                                                       \
        answer_number((c), "short", (int64_t)count);                                   \
        answer_yes((c), "prefix", nodes[0] == expected[0] && nodes[1] == NULL);        \
        count = 4;                                                                     \
        MUST((c), query(nodes));                                                       \
        answer_number((c), "long", (int64_t)count);                                    \
        answer_yes((c), "all", nodes[0] == expected[0] && nodes[1] == expected[1]);    \
        answer_yes((c), "padded", nodes[2] == NULL && nodes[3] == NULL);               \
    } while (0)

static void query_nodes(struct conformance *c) {
    size_t count;
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t expected[2];
    expected[0] = empty_node(c, graph, NULL, 0);
    expected[1] = empty_node(c, graph, NULL, 0);
#define QUERY(nodes) cudaGraphGetNodes(graph, (nodes), &count)
    ANSWER_QUERY(c, "count", QUERY);
#undef QUERY
    answer_code(c, "null", cudaGraphGetNodes(graph, NULL, NULL));
}

static void query_roots(struct conformance *c) {
    size_t count;
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t expected[2];
    expected[0] = empty_node(c, graph, NULL, 0);
    (void)empty_node(c, graph, expected, 1);
    expected[1] = empty_node(c, graph, NULL, 0);
#define QUERY(nodes) cudaGraphGetRootNodes(graph, (nodes), &count)
    ANSWER_QUERY(c, "count", QUERY);
#undef QUERY
    answer_code(c, "null", cudaGraphGetRootNodes(graph, NULL, NULL));
}

static void query_dependencies(struct conformance *c) {
    size_t count;
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t expected[2];
    expected[0] = empty_node(c, graph, NULL, 0);
    expected[1] = empty_node(c, graph, NULL, 0);
    cudaGraphNode_t node = empty_node(c, graph, expected, 2);
#define QUERY(nodes) cudaGraphNodeGetDependencies(node, (nodes), NULL, &count)
    ANSWER_QUERY(c, "count", QUERY);
#undef QUERY
    answer_code(c, "null", cudaGraphNodeGetDependencies(node, NULL, NULL, NULL));
}

static void query_dependents(struct conformance *c) {
    size_t count;
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t expected[2], node = empty_node(c, graph, NULL, 0);
    expected[0] = empty_node(c, graph, &node, 1);
    expected[1] = empty_node(c, graph, &node, 1);
#define QUERY(nodes) cudaGraphNodeGetDependentNodes(node, (nodes), NULL, &count)
    ANSWER_QUERY(c, "count", QUERY);
#undef QUERY
    answer_code(c, "null", cudaGraphNodeGetDependentNodes(node, NULL, NULL, NULL));
}

static void query_edges(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t nodes[3], from[4], to[4];
    size_t count = 99;
    nodes[0] = empty_node(c, graph, NULL, 0);
    nodes[1] = empty_node(c, graph, nodes, 1);
    nodes[2] = empty_node(c, graph, nodes + 1, 1);
    MUST(c, cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
    answer_number(c, "count", (int64_t)count);
    from[1] = to[1] = NULL;
    count = 1;
    MUST(c, cudaGraphGetEdges(graph, from, to, NULL, &count));
    answer_number(c, "short", (int64_t)count);
    answer_yes(c, "one", has_edge(from[0], to[0]) && from[1] == NULL && to[1] == NULL);
    for (int i = 0; i < 4; ++i)
        from[i] = to[i] = nodes[0];
    count = 4;
    MUST(c, cudaGraphGetEdges(graph, from, to, NULL, &count));
    answer_number(c, "long", (int64_t)count);
    answer_yes(c, "both", has_edge(from[0], to[0]) && has_edge(from[1], to[1]) && to[0] != to[1]);
    answer_yes(c, "padded", from[2] == NULL && to[2] == NULL && from[3] == NULL && to[3] == NULL);
    answer_code(c, "null", cudaGraphGetEdges(graph, NULL, NULL, NULL, NULL));
}

static void query_edges_half(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t first = empty_node(c, graph, NULL, 0), node;
    size_t count = 1;
    (void)empty_node(c, graph, &first, 1);
    answer_code(c, "from", cudaGraphGetEdges(graph, &node, NULL, NULL, &count));
    count = 1;
    answer_code(c, "to", cudaGraphGetEdges(graph, NULL, &node, NULL, &count));
}

static void query_edge_data(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t first = empty_node(c, graph, NULL, 0), from, to;
    cudaGraphNode_t second = empty_node(c, graph, &first, 1);
    cudaGraphEdgeData data, zero;
    size_t count = 1;
    memset(&zero, 0, sizeof zero);
    memset(&data, 0xff, sizeof data);
    MUST(c, cudaGraphGetEdges(graph, &from, &to, &data, &count));
    answer_yes(c, "edges", memcmp(&data, &zero, sizeof data) == 0);
    memset(&data, 0xff, sizeof data);
    MUST(c, cudaGraphNodeGetDependencies(second, &from, &data, &count));
    answer_yes(c, "dependencies", memcmp(&data, &zero, sizeof data) == 0);
    memset(&data, 0xff, sizeof data);
    MUST(c, cudaGraphNodeGetDependentNodes(first, &to, &data, &count));
    answer_yes(c, "dependents", memcmp(&data, &zero, sizeof data) == 0);
}

// No query gives the nodes that nothing depends on: what a program does instead.
static void habit_terminal_nodes(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t nodes[4], from[BYTES], to[BYTES];
    size_t count = BYTES;
    nodes[0] = empty_node(c, graph, NULL, 0);
    nodes[1] = empty_node(c, graph, nodes, 1);
    nodes[2] = empty_node(c, graph, nodes, 1);
    nodes[3] = empty_node(c, graph, nodes + 1, 1);
    MUST(c, cudaGraphGetEdges(graph, from, to, NULL, &count));
    for (int i = 0; i < 4; ++i) {
        bool terminal = true;
        for (size_t k = 0; k < count; ++k)
            terminal = terminal && from[k] != nodes[i];
        answer_yes(c, "terminal", terminal);
    }
}

// --- Edges ---

static void edges_added(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t from[2], to[2];
    from[0] = from[1] = empty_node(c, graph, NULL, 0);
    to[0] = empty_node(c, graph, NULL, 0);
    to[1] = empty_node(c, graph, NULL, 0);
    answer_code(c, "add", cudaGraphAddDependencies(graph, from, to, NULL, 2));
    answer_yes(c, "edges", has_edge(from[0], to[0]) && has_edge(from[1], to[1]));
    answer_code(c, "none", cudaGraphAddDependencies(graph, NULL, NULL, NULL, 0));
    answer_edge_count(c, "count", graph);
}

static void edges_added_bad(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c), other = conformance_graph(c);
    cudaGraphNode_t one = empty_node(c, graph, NULL, 0), two = empty_node(c, graph, NULL, 0);
    cudaGraphNode_t foreign = empty_node(c, other, NULL, 0);
    cudaGraphNode_t from[2] = {one, one}, to[2] = {two, two};
    answer_code(c, "twice", cudaGraphAddDependencies(graph, from, to, NULL, 2));
    answer_edge_count(c, "edges", graph);
    MUST(c, edge_add(graph, one, two));
    answer_code(c, "existing", edge_add(graph, one, two));
    answer_code(c, "self", edge_add(graph, one, one));
    answer_code(c, "foreign-from", edge_add(graph, foreign, two));
    answer_code(c, "foreign-to", edge_add(graph, one, foreign));
    answer_code(c, "null", cudaGraphAddDependencies(graph, NULL, NULL, NULL, 1));
    answer_edge_count(c, "edges", graph);
}

static void edges_removed(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t one = empty_node(c, graph, NULL, 0), two = empty_node(c, graph, &one, 1);
    answer_code(c, "missing", edge_remove(graph, two, one));
    answer_edge_count(c, "edges", graph);
    answer_code(c, "present", edge_remove(graph, one, two));
    answer_edge_count(c, "edges", graph);
    answer_code(c, "again", edge_remove(graph, one, two));
    answer_code(c, "add", edge_add(graph, one, two));
    answer_edge_count(c, "edges", graph);
}

static void cycle_is_found_late(struct conformance *c) {
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t one = empty_node(c, graph, NULL, 0), two = empty_node(c, graph, &one, 1);
    answer_code(c, "add", edge_add(graph, two, one));
    answer_code(c, "instantiate", instantiate_try(c, graph));
    MUST(c, edge_remove(graph, two, one));
    answer_code(c, "mended", instantiate_try(c, graph));
}

static void edge_against_the_order_of_nodes(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, BYTES);
    cudaGraph_t graph = conformance_graph(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphNode_t late = fill_node(c, graph, NULL, 0, memory, 2);
    cudaGraphNode_t early = fill_node(c, graph, NULL, 0, memory, 1);
    MUST(c, edge_add(graph, early, late));
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    answer_number(c, "byte", conformance_byte(memory));
}

// --- Pictures ---

static void graph_dot(struct conformance *c) {
    char path[] = "/tmp/conformance-XXXXXX", text[4096];
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = empty_node(c, graph, NULL, 0);
    (void)empty_node(c, graph, &node, 1);
    const int made = mkstemp(path);
    if (made < 0)
        return;
    close(made);
    answer_code(c, "print", cudaGraphDebugDotPrint(graph, path, 0));
    FILE *file = fopen(path, "r"); // which may be another one now
    text[file == NULL ? 0 : fread(text, 1, sizeof text - 1, file)] = '\0';
    answer_yes(c, "digraph", strstr(text, "digraph") != NULL);
    answer_yes(c, "edge", strstr(text, "->") != NULL);
    if (file != NULL)
        fclose(file);
    unlink(path);
    answer_code(c, "null", cudaGraphDebugDotPrint(graph, NULL, 0));
}

// --- User objects ---

static int destroyed_count;

static void count_destroyed(void *unused) {
    (void)unused;
    ++destroyed_count;
}

static void user_object_goes_with_its_graph(struct conformance *c) {
    cudaUserObject_t object = NULL;
    cudaGraph_t graph = NULL;
    destroyed_count = 0;
    MUST(c, cudaUserObjectCreate(&object, NULL, count_destroyed, 1,
                                 cudaUserObjectNoDestructorSync));
    MUST(c, cudaGraphCreate(&graph, 0));
    answer_code(c, "retain", cudaGraphRetainUserObject(graph, object, 1, 0));
    answer_code(c, "release", cudaUserObjectRelease(object, 1));
    answer_number(c, "kept", destroyed_count);
    MUST(c, cudaGraphDestroy(graph));
#ifndef TIDEMARK_SIMULATOR
    usleep(100000); // it runs in a thread of the driver's
#endif
    answer_number(c, "gone", destroyed_count);
}

static void user_object_moved(struct conformance *c) {
    cudaUserObject_t object = NULL;
    cudaGraph_t graph = conformance_graph(c);
    destroyed_count = 0;
    MUST(c, cudaUserObjectCreate(&object, NULL, count_destroyed, 1,
                                 cudaUserObjectNoDestructorSync));
    answer_code(c, "retain", cudaUserObjectRetain(object, 1));
    answer_code(c, "release", cudaUserObjectRelease(object, 1));
    answer_code(c, "move", cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    answer_number(c, "kept", destroyed_count);
    answer_code(c, "give", cudaGraphReleaseUserObject(graph, object, 1));
#ifndef TIDEMARK_SIMULATOR
    usleep(100000);
#endif
    answer_number(c, "gone", destroyed_count);
}

static void user_object_bad(struct conformance *c) {
    cudaUserObject_t object = NULL;
    const unsigned int flags = cudaUserObjectNoDestructorSync;
    answer_code(c, "null", cudaUserObjectCreate(NULL, NULL, count_destroyed, 1, flags));
    answer_code(c, "function", cudaUserObjectCreate(&object, NULL, NULL, 1, flags));
    answer_code(c, "count", cudaUserObjectCreate(&object, NULL, count_destroyed, 0, flags));
    answer_code(c, "flags", cudaUserObjectCreate(&object, NULL, count_destroyed, 1, 0));
    answer_code(c, "release", cudaUserObjectRelease(NULL, 1));
    answer_code(c, "retain", cudaUserObjectRetain(NULL, 1));
}

#ifdef TIDEMARK_SIMULATOR
// On a device a destroyed handle must not be used at all.
static void graph_destroyed_is_refused(struct conformance *c) {
    cudaGraph_t graph = NULL;
    cudaGraphNode_t node = NULL, next = NULL;
    cudaGraphExec_t exec = NULL;
    size_t count = 0;
    MUST(c, cudaGraphCreate(&graph, 0));
    MUST(c, cudaGraphAddEmptyNode(&node, graph, NULL, 0));
    MUST(c, cudaGraphDestroy(graph));
    answer_code(c, "nodes", cudaGraphGetNodes(graph, NULL, &count));
    answer_code(c, "add", cudaGraphAddEmptyNode(&next, graph, NULL, 0));
    answer_code(c, "instantiate", cudaGraphInstantiate(&exec, graph, 0));
    answer_code(c, "destroy", cudaGraphDestroy(graph));
    answer_code(c, "node", cudaGraphDestroyNode(node));
}

static int kernel_count;

static void count_kernels(const void *unused) {
    (void)unused;
    ++kernel_count;
}

// Two kernels, captured in streams of which the second one never waited for the first.
static cudaGraph_t kernel_graph(struct conformance *c, cudaGraphNode_t nodes[2]) {
    cudaGraph_t graph = conformance_graph(c), ended = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    for (int i = 0; i < 2; ++i) {
        if (cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0,
                                          cudaStreamCaptureModeGlobal) != cudaSuccess ||
            sim_launch(stream, "count", count_kernels, NULL, 0) != cudaSuccess)
            return NULL;
        nodes[i] = stream_tip(stream);
        if (cudaStreamEndCapture(stream, &ended) != cudaSuccess)
            return NULL;
    }
    return graph;
}

static void node_of_a_kernel(struct conformance *c) {
    enum cudaGraphNodeType type = cudaGraphNodeTypeCount;
    cudaGraphNode_t nodes[2];
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = kernel_graph(c, nodes);
    kernel_count = 0;
    MUST(c, cudaGraphNodeGetType(nodes[0], &type));
    answer_number(c, "type", type);
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "count", kernel_count);
}

static void edge_data_is_not_lost(struct conformance *c) {
    const cudaGraphEdgeData early = {.from_port = cudaGraphKernelNodePortProgrammatic,
                                     .type = cudaGraphDependencyTypeProgrammatic};
    cudaGraphNode_t nodes[2], from, to;
    cudaGraphEdgeData data = {0};
    size_t count = 1;
    cudaGraph_t graph = kernel_graph(c, nodes);
    MUST(c, cudaGraphAddDependencies(graph, &nodes[0], &nodes[1], &early, 1));
    answer_code(c, "edges", cudaGraphGetEdges(graph, &from, &to, NULL, &count));
    count = 1;
    answer_code(c, "dependencies", cudaGraphNodeGetDependencies(nodes[1], &from, NULL, &count));
    count = 1;
    answer_code(c, "dependents", cudaGraphNodeGetDependentNodes(nodes[0], &to, NULL, &count));
    count = 1;
    answer_code(c, "with", cudaGraphGetEdges(graph, &from, &to, &data, &count));
    answer_number(c, "type", data.type);
    answer_number(c, "port", data.from_port);
    answer_code(c, "plain", edge_remove(graph, nodes[0], nodes[1]));
    answer_code(c, "remove", cudaGraphRemoveDependencies(graph, nodes, nodes + 1, &early, 1));
}

static void edge_data_is_for_kernels(struct conformance *c) {
    const cudaGraphEdgeData early = {.from_port = cudaGraphKernelNodePortProgrammatic,
                                     .type = cudaGraphDependencyTypeProgrammatic};
    cudaGraphNode_t nodes[2];
    cudaGraph_t graph = kernel_graph(c, nodes);
    cudaGraphNode_t empty = empty_node(c, graph, NULL, 0);
    answer_code(c, "from", cudaGraphAddDependencies(graph, &empty, &nodes[1], &early, 1));
    answer_code(c, "to", cudaGraphAddDependencies(graph, &nodes[0], &empty, &early, 1));
    answer_edge_count(c, "edges", graph);
}
#endif

const struct conformance_case conformance__cases_graph[] = {
    CASE("graph-create-bad", "7.5", VERIFIED, graph_create_bad,
        "cudaGraphCreate without a result pointer, or with flags: 1",
        "null=1 flags=1", NULL),
    CASE("graph-null", "7.5", UNVERIFIED, graph_null,
        "no graph or no node: 1",
        "nodes=1 roots=1 edges=1 dependencies=1 dependents=1 clone=1 destroy=1 destroy-node=1",
        NULL),
    CASE("graph-clone", "7.5", VERIFIED, graph_clone,
        "a clone has nodes and edges of its own",
        "other=yes other-node=yes other-node=yes edge=yes nodes=2 edges=1 not-a-clone=1 null=1",
        NULL),
    CASE("graph-clone-parameters", "7.5", VERIFIED, graph_clone_parameters,
        "and parameters of its own",
        "byte=1 original=2", NULL),
    CASE("query-nodes", "7.5", VERIFIED, query_nodes,
        "cudaGraphGetNodes: without an array the number; a short array gets a prefix, a long one "
        "is padded with NULL",
        "count=2 short=1 prefix=yes long=2 all=yes padded=yes null=1", NULL),
    CASE("query-roots", "7.5", VERIFIED, query_roots,
        "cudaGraphGetRootNodes: the nodes that depend on none; likewise",
        "count=2 short=1 prefix=yes long=2 all=yes padded=yes null=1", NULL),
    CASE("query-dependencies", "7.5", VERIFIED, query_dependencies,
        "cudaGraphNodeGetDependencies: likewise",
        "count=2 short=1 prefix=yes long=2 all=yes padded=yes null=1", NULL),
    CASE("query-dependents", "7.5", VERIFIED, query_dependents,
        "cudaGraphNodeGetDependentNodes: likewise",
        "count=2 short=1 prefix=yes long=2 all=yes padded=yes null=1", NULL),
    CASE("query-edges", "7.5", VERIFIED, query_edges,
        "cudaGraphGetEdges: likewise",
        "count=2 short=1 one=yes long=2 both=yes padded=yes null=1", NULL),
    CASE("query-edges-half", "7.5", UNVERIFIED, query_edges_half,
        "only one array: 1",
        "from=1 to=1", NULL),
    CASE("query-edge-data", "7.5", VERIFIED, query_edge_data,
        "what edges of empty nodes carry: nothing",
        "edges=yes dependencies=yes dependents=yes", NULL),
    CASE("habit-terminal-nodes", "7.5", VERIFIED, habit_terminal_nodes,
        "the nodes that nothing depends on are known from the edges",
        "terminal=no terminal=no terminal=yes terminal=yes", NULL),
    CASE("edges-added", "7.5", VERIFIED, edges_added,
        "cudaGraphAddDependencies adds edges",
        "add=0 edges=yes none=0 count=2", NULL),
    CASE("edges-added-bad", "7.5", VERIFIED, edges_added_bad,
        "an edge twice, one that is there, one from a node to itself, a node of another graph: 1",
        "twice=1 edges=0 existing=1 self=1 foreign-from=1 foreign-to=1 null=1 edges=1", NULL),
    CASE("edges-removed", "7.5", VERIFIED, edges_removed,
        "cudaGraphRemoveDependencies of an edge that is not there: 1",
        "missing=1 edges=1 present=0 edges=0 again=1 add=0 edges=1", NULL),
    CASE("cycle-is-found-late", "7.5", VERIFIED, cycle_is_found_late,
        "a cycle is found when the graph is instantiated: 1",
        "add=0 instantiate=1 mended=0", NULL),
    CASE("edge-against-the-order-of-nodes", "8", VERIFIED, edge_against_the_order_of_nodes,
        "edges order nodes, not the order in which they were added",
        "byte=2", NULL),
    CASE("graph-dot", "7.5", VERIFIED, graph_dot,
        "cudaGraphDebugDotPrint draws a graph; no path: 1",
        "print=0 digraph=yes edge=yes null=1", NULL),
    CASE("user-object-goes-with-its-graph", "7.5", VERIFIED, user_object_goes_with_its_graph,
        "a user object is destroyed with the last graph that refers to it",
        "retain=0 release=0 kept=0 gone=1", NULL),
    CASE("user-object-moved", "7.5", VERIFIED, user_object_moved,
        "references are moved to a graph and released by it",
        "retain=0 release=0 move=0 kept=0 give=0 gone=1", NULL),
    CASE("user-object-bad", "7.5", UNVERIFIED, user_object_bad,
        "a user object without a result pointer, a function or references, with other flags, or "
        "none: 1",
        "null=1 function=1 count=1 flags=1 release=1 retain=1", NULL),
#ifdef TIDEMARK_SIMULATOR
    CASE_SIMULATED("graph-destroyed-is-refused", "7.5", UNVERIFIED, graph_destroyed_is_refused,
        "a destroyed graph or node is refused",
        "nodes=1 add=1 instantiate=1 destroy=1 node=1", NULL),
    CASE_SIMULATED("node-of-a-kernel", "7.5", VERIFIED, node_of_a_kernel,
        "a captured kernel is a node of type 0",
        "type=0 count=2", NULL),
    CASE_SIMULATED("edge-data-is-not-lost", "0", VERIFIED, edge_data_is_not_lost,
        "edges that carry something, asked for without it: 402; removed without it: 1",
        "edges=402 dependencies=402 dependents=402 with=0 type=1 port=1 plain=1 remove=0", NULL),
    CASE_SIMULATED("edge-data-is-for-kernels", "7.5", UNVERIFIED, edge_data_is_for_kernels,
        "edges of other nodes carry nothing: 1",
        "from=1 to=1 edges=0", NULL),
#endif
    {0},
};
