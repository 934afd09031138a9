// Child graphs: whose they are, where they stand, how deep they go.
#include "base/check.h"
#include "simulator/sim.h"

#include <string.h>

static cudaGraph_t graph;

static void start(void) {
    sim_reset();
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
}

static void run(void) {
    cudaGraphExec_t exec;
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, cudaStreamPerThread), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

static void count_up(void *number) { ++*(int *)number; }
static void count_ten(void *number) { *(int *)number += 10; }

static void a_child_graph_is_a_copy_that_the_node_owns(void) {
    start();
    int number = 0;
    cudaGraph_t child, own;
    cudaGraphNode_t inner, node, in_own;
    BASE_CHECK_EQ(cudaGraphCreate(&child, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddHostNode(&inner, child, NULL, 0,
                                       &(struct cudaHostNodeParams){count_up, &number}),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child), cudaSuccess);
    enum cudaGraphNodeType type;
    BASE_CHECK_EQ(cudaGraphNodeGetType(node, &type), cudaSuccess);
    BASE_CHECK_EQ(type, cudaGraphNodeTypeGraph);
    BASE_CHECK_EQ(cudaGraphChildGraphNodeGetGraph(node, &own), cudaSuccess);
    BASE_CHECK(own != child);
    BASE_CHECK_EQ(cudaGraphDestroy(child), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(own), cudaErrorInvalidValue); // the node's
    run();
    BASE_CHECK_EQ(number, 1);
    BASE_CHECK_EQ(cudaGraphAddHostNode(&in_own, own, NULL, 0,
                                       &(struct cudaHostNodeParams){count_ten, &number}),
                  cudaSuccess);
    run();
    BASE_CHECK_EQ(number, 12);
    BASE_CHECK_EQ(cudaGraphDestroyNode(node), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroyNode(in_own), cudaErrorInvalidValue); // gone with the node
    size_t count;
    BASE_CHECK_EQ(cudaGraphGetNodes(own, NULL, &count), cudaErrorInvalidValue);
}

static char order[16];
static void order_note(void *letter) { strncat(order, letter, 1); }

static cudaGraphNode_t letter(cudaGraph_t of, const cudaGraphNode_t *dependencies, size_t count,
                              const char *text) {
    cudaGraphNode_t node;
    BASE_CHECK_EQ(cudaGraphAddHostNode(&node, of, dependencies, count,
                                       &(struct cudaHostNodeParams){order_note,
                                                                    (void *)(uintptr_t)text}),
                  cudaSuccess);
    return node;
}

// a, then the child (b c), then d; however the child came to be behind a and before d.
static void a_child_graph_stands_whole_between_its_neighbours(void) {
    static const char *const schedules[] = {"eager", "lazy", "random:1", "random:2", "random:3"};
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; ++i) {
        BASE_CHECK_EQ(sim_schedule(schedules[i]), BASE_OK);
        start();
        cudaGraph_t child, nothing;
        cudaGraphNode_t node, between;
        BASE_CHECK_EQ(cudaGraphCreate(&child, 0), cudaSuccess);
        BASE_CHECK_EQ(cudaGraphCreate(&nothing, 0), cudaSuccess);
        const cudaGraphNode_t b = letter(child, NULL, 0, "b");
        letter(child, &b, 1, "c");
        BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child), cudaSuccess);
        // An empty child graph carries the order on.
        BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&between, graph, &node, 1, nothing), cudaSuccess);
        letter(graph, &between, 1, "d");
        const cudaGraphNode_t a = letter(graph, NULL, 0, "a"); // an edge that goes backwards
        BASE_CHECK_EQ(cudaGraphAddDependencies(graph, &a, &node, NULL, 1), cudaSuccess);
        memset(order, 0, sizeof order);
        run();
        BASE_CHECK_EQ(strcmp(order, "abcd"), 0);
    }
    BASE_CHECK_EQ(sim_schedule("eager"), BASE_OK);
}

static void a_moved_graph_belongs_to_its_node(void) {
    start();
    int number = 0;
    cudaGraph_t child, own, other, inside;
    cudaGraphNode_t node, inner;
    cudaGraphExec_t exec;
    BASE_CHECK_EQ(cudaGraphCreate(&child, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphCreate(&other, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddHostNode(&inner, child, NULL, 0,
                                       &(struct cudaHostNodeParams){count_up, &number}),
                  cudaSuccess);
    struct cudaGraphNodeParams move = {.type = cudaGraphNodeTypeGraph,
                                       .graph = {child, cudaGraphChildGraphOwnershipMove}};
    BASE_CHECK_EQ(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &move), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphChildGraphNodeGetGraph(node, &own), cudaSuccess);
    BASE_CHECK(own == child);
    run();
    BASE_CHECK_EQ(number, 1);
    BASE_CHECK_EQ(cudaGraphDestroy(child), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, child, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, other, NULL, 0, child), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddNode(&node, other, NULL, NULL, 0, &move), cudaErrorInvalidValue);
    // A graph cannot be moved into itself, or into what it holds; a copy of it can be put there.
    move.graph.graph = graph;
    BASE_CHECK_EQ(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &move), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddNode(&node, child, NULL, NULL, 0, &move), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphChildGraphNodeGetGraph(node, &inside), cudaSuccess);
    move.graph = (struct cudaChildGraphNodeParams){other, (enum cudaGraphChildGraphNodeOwnership)2};
    BASE_CHECK_EQ(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &move), cudaErrorInvalidValue);
    run();
    BASE_CHECK_EQ(number, 3);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroyNode(inner), cudaErrorInvalidValue);
}

static void child_graphs_nest_to_a_limit(void) {
    start();
    int levels = 0;
    cudaGraphNode_t node;
    cudaError_t error = cudaSuccess;
    while (error == cudaSuccess && levels < 1000) {
        cudaGraph_t outer;
        BASE_CHECK_EQ(cudaGraphCreate(&outer, 0), cudaSuccess);
        struct cudaGraphNodeParams move = {.type = cudaGraphNodeTypeGraph,
                                           .graph = {graph, cudaGraphChildGraphOwnershipMove}};
        error = cudaGraphAddNode(&node, outer, NULL, NULL, 0, &move);
        if (error == cudaSuccess) {
            graph = outer;
            ++levels;
        }
    }
    BASE_CHECK_EQ(error, cudaErrorInvalidValue);
    BASE_CHECK_EQ(levels, 128);
    // Nor from inside.
    cudaGraph_t inner = graph, more;
    for (int i = 0; i < levels; ++i) {
        size_t count = 1;
        BASE_CHECK_EQ(cudaGraphGetNodes(inner, &node, &count), cudaSuccess);
        BASE_CHECK_EQ(cudaGraphChildGraphNodeGetGraph(node, &inner), cudaSuccess);
    }
    BASE_CHECK_EQ(cudaGraphCreate(&more, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, inner, NULL, 0, more), cudaErrorInvalidValue);
    run();
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

int main(void) {
    a_child_graph_is_a_copy_that_the_node_owns();
    a_child_graph_stands_whole_between_its_neighbours();
    a_moved_graph_belongs_to_its_node();
    child_graphs_nest_to_a_limit();
    return 0;
}
