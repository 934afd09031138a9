// Graphs, nodes and edges: what can be made, asked, copied and destroyed. Parameters of nodes:
// graph_node_test.c. Many nodes against a naive model: graph_model_test.c.
#include "base/check.h"
#include "simulator/sim.h"

#include <string.h>

static cudaGraph_t graph;

static void start(void) {
    sim_reset();
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
}

static cudaGraphNode_t empty(const cudaGraphNode_t *dependencies, size_t count) {
    cudaGraphNode_t node = NULL;
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&node, graph, dependencies, count), cudaSuccess);
    BASE_CHECK(node != NULL);
    return node;
}

static void body(const void *argument) { (void)argument; }

static cudaGraphNode_t kernel(cudaGraph_t of) {
    cudaGraphNode_t node;
    BASE_CHECK_EQ(sim_graph_add_kernel(&node, of, NULL, 0, &(struct sim_kernel){.body = body}),
                  cudaSuccess);
    return node;
}

static cudaError_t edge_add(cudaGraphNode_t from, cudaGraphNode_t to) {
    return cudaGraphAddDependencies(graph, &from, &to, NULL, 1);
}

static cudaError_t edge_remove(cudaGraphNode_t from, cudaGraphNode_t to) {
    return cudaGraphRemoveDependencies(graph, &from, &to, NULL, 1);
}

static size_t dependency_count(cudaGraphNode_t node) {
    size_t count = 99;
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(node, NULL, NULL, &count), cudaSuccess);
    return count;
}

static size_t node_count(cudaGraph_t of) {
    size_t count = 99;
    BASE_CHECK_EQ(cudaGraphGetNodes(of, NULL, &count), cudaSuccess);
    return count;
}

static size_t edge_count(cudaGraph_t of) {
    size_t count = 99;
    BASE_CHECK_EQ(cudaGraphGetEdges(of, NULL, NULL, NULL, &count), cudaSuccess);
    return count;
}

static void a_graph_is_created_with_no_flags_and_destroyed_once(void) {
    start();
    cudaGraph_t other = NULL;
    BASE_CHECK_EQ(cudaGraphCreate(NULL, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphCreate(&other, 1), cudaErrorInvalidValue);
    BASE_CHECK(other == NULL);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphDestroy(NULL), cudaErrorInvalidValue);
}

static void handles_that_name_nothing_are_told_apart(void) {
    start();
    cudaGraphNode_t node = empty(NULL, 0), made = NULL;
    enum cudaGraphNodeType type;
    size_t count = 4;
    const cudaGraph_t bad_graphs[] = {NULL, (cudaGraph_t)(uintptr_t)1, (cudaGraph_t)node};
    for (size_t i = 0; i < 3; ++i) {
        BASE_CHECK_EQ(cudaGraphAddEmptyNode(&made, bad_graphs[i], NULL, 0), cudaErrorInvalidValue);
        BASE_CHECK_EQ(cudaGraphGetNodes(bad_graphs[i], NULL, &count), cudaErrorInvalidValue);
        BASE_CHECK_EQ(cudaGraphClone(&graph, bad_graphs[i]), cudaErrorInvalidValue);
    }
    const cudaGraphNode_t bad_nodes[] = {NULL, (cudaGraphNode_t)(uintptr_t)8,
                                         (cudaGraphNode_t)graph};
    for (size_t i = 0; i < 3; ++i) {
        BASE_CHECK_EQ(cudaGraphNodeGetType(bad_nodes[i], &type), cudaErrorInvalidValue);
        BASE_CHECK_EQ(cudaGraphDestroyNode(bad_nodes[i]), cudaErrorInvalidValue);
        BASE_CHECK_EQ(cudaGraphAddEmptyNode(&made, graph, &bad_nodes[i], 1),
                      cudaErrorInvalidValue);
        BASE_CHECK_EQ(edge_add(bad_nodes[i], node), cudaErrorInvalidValue);
        BASE_CHECK_EQ(edge_add(node, bad_nodes[i]), cudaErrorInvalidValue);
    }
    BASE_CHECK(made == NULL);
    BASE_CHECK_EQ(count, 4);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeGetType(node, &type), cudaErrorInvalidValue); // went with the graph
}

static void a_node_names_each_dependency_once_and_of_its_own_graph(void) {
    start();
    cudaGraph_t other;
    cudaGraphNode_t a = empty(NULL, 0), b = empty(&a, 1), foreign, made;
    BASE_CHECK_EQ(cudaGraphCreate(&other, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&foreign, other, NULL, 0), cudaSuccess);
    const cudaGraphNode_t twice[] = {a, b, a}, with_foreign[] = {a, foreign};
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&made, graph, twice, 3), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&made, graph, with_foreign, 2), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&made, graph, NULL, 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(NULL, graph, NULL, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(node_count(graph), 2);
    BASE_CHECK_EQ(edge_count(graph), 1);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&made, graph, twice, 2), cudaSuccess);
    BASE_CHECK_EQ(dependency_count(made), 2);
}

static void short_arrays_get_a_prefix_and_long_ones_are_padded(void) {
    start();
    cudaGraphNode_t a = empty(NULL, 0), b = empty(NULL, 0), nodes[4] = {0};
    const cudaGraphNode_t both[] = {b, a};
    const cudaGraphNode_t c = empty(both, 2);
    size_t count = 2;
    BASE_CHECK_EQ(cudaGraphGetNodes(graph, nodes, &count), cudaSuccess);
    BASE_CHECK_EQ(count, 2);
    BASE_CHECK(nodes[0] == a && nodes[1] == b && nodes[2] == NULL);
    memset(nodes, 1, sizeof nodes);
    count = 4;
    BASE_CHECK_EQ(cudaGraphGetNodes(graph, nodes, &count), cudaSuccess);
    BASE_CHECK_EQ(count, 3);
    BASE_CHECK(nodes[2] == c && nodes[3] == NULL);
    count = 4;
    BASE_CHECK_EQ(cudaGraphGetRootNodes(graph, nodes, &count), cudaSuccess);
    BASE_CHECK_EQ(count, 2);
    BASE_CHECK(nodes[0] == a && nodes[1] == b && nodes[2] == NULL && nodes[3] == NULL);
    count = 0;
    BASE_CHECK_EQ(cudaGraphGetRootNodes(graph, NULL, &count), cudaSuccess);
    BASE_CHECK_EQ(count, 2);
    count = 1;
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(c, nodes, NULL, &count), cudaSuccess);
    BASE_CHECK(count == 1 && nodes[0] == b); // as they were named
    count = 3;
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(c, nodes, NULL, &count), cudaSuccess);
    BASE_CHECK(count == 2 && nodes[0] == b && nodes[1] == a && nodes[2] == NULL);
    count = 3;
    BASE_CHECK_EQ(cudaGraphNodeGetDependentNodes(a, nodes, NULL, &count), cudaSuccess);
    BASE_CHECK(count == 1 && nodes[0] == c && nodes[1] == NULL);
    BASE_CHECK_EQ(cudaGraphGetNodes(graph, nodes, NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(c, nodes, NULL, NULL), cudaErrorInvalidValue);
}

static void edges_are_told_as_pairs(void) {
    start();
    cudaGraphNode_t a = empty(NULL, 0), b = empty(&a, 1), c = empty(&b, 1), from[4], to[4];
    BASE_CHECK_EQ(edge_add(a, c), cudaSuccess);
    cudaGraphEdgeData data[4];
    memset(data, 7, sizeof data);
    size_t count = 4;
    BASE_CHECK_EQ(cudaGraphGetEdges(graph, from, to, data, &count), cudaSuccess);
    BASE_CHECK_EQ(count, 3);
    int seen = 0;
    for (size_t i = 0; i < count; ++i)
        seen |= from[i] == a && to[i] == b ? 1 : from[i] == b && to[i] == c ? 2
                                             : from[i] == a && to[i] == c   ? 4
                                                                            : 64;
    BASE_CHECK_EQ(seen, 7);
    BASE_CHECK(from[3] == NULL && to[3] == NULL && data[3].type == 0 && data[0].from_port == 0);
    count = 2;
    BASE_CHECK_EQ(cudaGraphGetEdges(graph, from, to, NULL, &count), cudaSuccess);
    BASE_CHECK_EQ(count, 2);
    BASE_CHECK_EQ(cudaGraphGetEdges(graph, NULL, to, NULL, &count), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphGetEdges(graph, from, NULL, NULL, &count), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphGetEdges(graph, NULL, NULL, data, &count), cudaErrorInvalidValue);
}

static void an_edge_is_added_once_and_removed_once(void) {
    start();
    cudaGraphNode_t a = empty(NULL, 0), b = empty(NULL, 0), c = empty(&a, 1);
    BASE_CHECK_EQ(edge_add(a, c), cudaErrorInvalidValue); // there is one
    BASE_CHECK_EQ(edge_add(a, a), cudaErrorInvalidValue);
    BASE_CHECK_EQ(edge_remove(a, b), cudaErrorInvalidValue);
    BASE_CHECK_EQ(edge_remove(c, a), cudaErrorInvalidValue); // the other way round
    BASE_CHECK_EQ(edge_add(b, c), cudaSuccess);
    BASE_CHECK_EQ(dependency_count(c), 2);
    BASE_CHECK_EQ(edge_remove(a, c), cudaSuccess);
    BASE_CHECK_EQ(edge_remove(a, c), cudaErrorInvalidValue);
    BASE_CHECK_EQ(dependency_count(c), 1);
    BASE_CHECK_EQ(edge_count(graph), 1);
    BASE_CHECK_EQ(edge_add(c, b), cudaSuccess); // a cycle is the instantiation's matter
    BASE_CHECK_EQ(edge_count(graph), 2);
}

// What comes before the edge that does not fit is taken back.
static void many_edges_are_added_or_removed_all_or_none(void) {
    start();
    cudaGraphNode_t a = empty(NULL, 0), b = empty(NULL, 0), c = empty(NULL, 0);
    const cudaGraphNode_t from[] = {a, b, a}, to[] = {b, c, b};
    BASE_CHECK_EQ(cudaGraphAddDependencies(graph, from, to, NULL, 3), cudaErrorInvalidValue);
    BASE_CHECK_EQ(edge_count(graph), 0);
    BASE_CHECK_EQ(cudaGraphAddDependencies(graph, from, to, NULL, 2), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphRemoveDependencies(graph, from, to, NULL, 3), cudaErrorInvalidValue);
    BASE_CHECK_EQ(edge_count(graph), 2);
    BASE_CHECK_EQ(cudaGraphRemoveDependencies(graph, from, to, NULL, 2), cudaSuccess);
    BASE_CHECK_EQ(edge_count(graph), 0);
    BASE_CHECK_EQ(cudaGraphAddDependencies(graph, NULL, NULL, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddDependencies(graph, NULL, to, NULL, 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddDependencies(graph, from, NULL, NULL, 1), cudaErrorInvalidValue);
    size_t count = 3;
    cudaGraphNode_t roots[3];
    BASE_CHECK_EQ(cudaGraphGetRootNodes(graph, roots, &count), cudaSuccess);
    BASE_CHECK_EQ(count, 3);
}

static void edges_of_another_graph_are_refused(void) {
    start();
    cudaGraph_t other;
    cudaGraphNode_t a = empty(NULL, 0), b = empty(NULL, 0), foreign;
    BASE_CHECK_EQ(cudaGraphCreate(&other, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&foreign, other, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(edge_add(a, foreign), cudaErrorInvalidValue);
    BASE_CHECK_EQ(edge_add(foreign, a), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddDependencies(other, &a, &b, NULL, 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(edge_add(a, b), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphRemoveDependencies(other, &a, &b, NULL, 1), cudaErrorInvalidValue);
}

static void edge_data_is_for_kernels_and_asked_for_or_lost(void) {
    start();
    cudaGraphNode_t a = kernel(graph), b = kernel(graph), c = empty(NULL, 0), nodes[2], others[2];
    const cudaGraphEdgeData programmatic = {.from_port = cudaGraphKernelNodePortProgrammatic,
                                            .type = cudaGraphDependencyTypeProgrammatic};
    const cudaGraphEdgeData no_port = {.type = cudaGraphDependencyTypeProgrammatic};
    const cudaGraphEdgeData bad_port = {.from_port = 3};
    const cudaGraphEdgeData bad_end = {.to_port = 1};
    const cudaGraphEdgeData bad_type = {.type = 2};
    const cudaGraphEdgeData bad_rest = {.reserved = {0, 0, 0, 0, 1}};
    cudaGraphEdgeData data[2];
    const cudaGraphEdgeData *const bad[] = {&no_port, &bad_port, &bad_end, &bad_type, &bad_rest};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i)
        BASE_CHECK_EQ(cudaGraphAddDependencies(graph, &a, &b, bad[i], 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddDependencies(graph, &a, &c, &programmatic, 1),
                  cudaErrorInvalidValue); // not a kernel
    BASE_CHECK_EQ(cudaGraphAddDependencies(graph, &c, &a, &programmatic, 1),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddDependencies(graph, &a, &b, &programmatic, 1), cudaSuccess);

    size_t count = 2;
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(b, nodes, NULL, &count), cudaErrorLossyQuery);
    BASE_CHECK_EQ(cudaGraphNodeGetDependentNodes(a, nodes, NULL, &count), cudaErrorLossyQuery);
    BASE_CHECK_EQ(cudaGraphGetEdges(graph, nodes, others, NULL, &count), cudaErrorLossyQuery);
    BASE_CHECK_EQ(dependency_count(b), 1); // numbers lose nothing
    BASE_CHECK_EQ(edge_count(graph), 1);
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(b, nodes, data, &count), cudaSuccess);
    BASE_CHECK_EQ(count, 1);
    BASE_CHECK_EQ(memcmp(&data[0], &programmatic, sizeof data[0]), 0);
    count = 2;
    BASE_CHECK_EQ(cudaGraphGetEdges(graph, nodes, others, data, &count), cudaSuccess);
    BASE_CHECK_EQ(memcmp(&data[0], &programmatic, sizeof data[0]), 0);
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(b, NULL, data, &count), cudaErrorInvalidValue);

    // Without data another edge is meant.
    BASE_CHECK_EQ(edge_remove(a, b), cudaErrorInvalidValue);
    BASE_CHECK_EQ(edge_add(a, b), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphRemoveDependencies(graph, &a, &b, &programmatic, 1), cudaSuccess);
}

static void a_destroyed_node_takes_its_edges_along(void) {
    start();
    cudaGraphNode_t a = empty(NULL, 0), b = empty(&a, 1), c = empty(&b, 1), nodes[3];
    BASE_CHECK_EQ(edge_add(a, c), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroyNode(b), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroyNode(b), cudaErrorInvalidValue);
    BASE_CHECK_EQ(node_count(graph), 2);
    BASE_CHECK_EQ(edge_count(graph), 1);
    size_t count = 3;
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(c, nodes, NULL, &count), cudaSuccess);
    BASE_CHECK(count == 1 && nodes[0] == a);
    BASE_CHECK_EQ(cudaGraphDestroyNode(a), cudaSuccess);
    count = 3;
    BASE_CHECK_EQ(cudaGraphGetRootNodes(graph, nodes, &count), cudaSuccess);
    BASE_CHECK(count == 1 && nodes[0] == c);
    const cudaGraphNode_t d = empty(NULL, 0);
    BASE_CHECK(d != b); // a handle does not come back
}

static void a_clone_is_found_by_its_originals(void) {
    start();
    cudaGraphNode_t a = empty(NULL, 0), b = kernel(graph), found, found_b, nodes[2];
    cudaGraph_t copy, copy_of_copy;
    BASE_CHECK_EQ(edge_add(a, b), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphClone(NULL, graph), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphClone(&copy, graph), cudaSuccess);
    const cudaGraphNode_t later = empty(NULL, 0);
    BASE_CHECK_EQ(node_count(copy), 2);
    BASE_CHECK_EQ(edge_count(copy), 1);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&found, a, copy), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&found_b, b, copy), cudaSuccess);
    BASE_CHECK(found != a && found_b != b && found != found_b);
    size_t count = 2;
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(found_b, nodes, NULL, &count), cudaSuccess);
    BASE_CHECK(count == 1 && nodes[0] == found);
    enum cudaGraphNodeType type;
    BASE_CHECK_EQ(cudaGraphNodeGetType(found_b, &type), cudaSuccess);
    BASE_CHECK_EQ(type, cudaGraphNodeTypeKernel);

    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&found, later, copy), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&found, a, graph), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(NULL, a, copy), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphClone(&copy_of_copy, copy), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&found, a, copy_of_copy), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&found, found_b, copy_of_copy), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroyNode(found_b), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&found, b, copy), cudaErrorInvalidValue);
    BASE_CHECK_EQ(node_count(graph), 3); // untouched
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    BASE_CHECK_EQ(node_count(copy), 1);
}

// Edges between two nodes that both have many are looked up in the table of the graph.
static void edges_between_nodes_with_many_are_told_apart(void) {
    enum { COUNT = 60 };
    cudaGraphNode_t left[COUNT], right[COUNT];
    start();
    for (int i = 0; i < COUNT; ++i) {
        left[i] = empty(NULL, 0);
        right[i] = empty(NULL, 0);
    }
    for (int i = 0; i < COUNT; ++i)
        for (int j = 0; j < COUNT; ++j)
            if ((i + j) % 3 != 0)
                BASE_CHECK_EQ(edge_add(left[i], right[j]), cudaSuccess);
    for (int i = 0; i < COUNT; i += 2)
        for (int j = 0; j < COUNT; ++j)
            BASE_CHECK_EQ(edge_remove(left[i], right[j]),
                          (i + j) % 3 != 0 ? cudaSuccess : cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphDestroyNode(right[7]), cudaSuccess);
    for (int i = 0; i < COUNT; ++i)
        for (int j = 0; j < COUNT; ++j)
            if (j != 7)
                BASE_CHECK_EQ(edge_add(left[i], right[j]), (i + j) % 3 == 0 || i % 2 == 0
                                                               ? cudaSuccess
                                                               : cudaErrorInvalidValue);
    BASE_CHECK_EQ(edge_count(graph), COUNT * (COUNT - 1));
}

static void graphs_end_with_the_machine(void) {
    start();
    cudaGraphNode_t node = empty(NULL, 0);
    size_t count = 5;
    sim_reset();
    BASE_CHECK_EQ(cudaGraphGetNodes(graph, NULL, &count), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphDestroyNode(node), cudaErrorInvalidValue);
}

int main(void) {
    a_graph_is_created_with_no_flags_and_destroyed_once();
    handles_that_name_nothing_are_told_apart();
    a_node_names_each_dependency_once_and_of_its_own_graph();
    short_arrays_get_a_prefix_and_long_ones_are_padded();
    edges_are_told_as_pairs();
    an_edge_is_added_once_and_removed_once();
    many_edges_are_added_or_removed_all_or_none();
    edges_of_another_graph_are_refused();
    edge_data_is_for_kernels_and_asked_for_or_lost();
    a_destroyed_node_takes_its_edges_along();
    a_clone_is_found_by_its_originals();
    edges_between_nodes_with_many_are_told_apart();
    graphs_end_with_the_machine();
    return 0;
}
