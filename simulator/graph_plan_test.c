// The list that an executable makes of a graph: every edge goes forward, each node is there once,
// and lanes are chains of edges, as few as the rule gives. Against the graph itself, as the queries
// tell it, and a naive reading of the rule.
#include "base/check.h"
#include "base/random.h"
#include "simulator/graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 40

static struct base_random random_numbers;
static int below(int bound) { return (int)base_random_below(&random_numbers, (uint64_t)bound); }

static void nothing(const void *argument) { (void)argument; }

static const struct sim__exec *exec_of(cudaGraph_t graph, cudaGraphExec_t *handle) {
    struct sim__exec *exec;
    BASE_CHECK_EQ(cudaGraphInstantiate(handle, graph, 0), cudaSuccess);
    BASE_CHECK_EQ(sim__exec_resolve(*handle, &exec), cudaSuccess);
    return exec;
}

static uint32_t index_of(const struct sim__exec *exec, cudaGraphNode_t node) {
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < exec->node_count; ++i) {
        if (exec->nodes[i].origin == (uint64_t)(uintptr_t)node) {
            BASE_CHECK_EQ(found, UINT32_MAX);
            found = i;
        }
    }
    BASE_CHECK_NE(found, UINT32_MAX);
    return found;
}

// --- Rules that hold for any executable ---

static void edges_go_forward(const struct sim__exec *exec) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < exec->node_count; ++i) {
        const struct sim__exec_node *node = &exec->nodes[i];
        for (uint32_t j = 0; j < node->dependency_count; ++j)
            BASE_CHECK_LT(exec->dependencies[node->dependency_first + j], i);
        count += node->dependency_count;
    }
    BASE_CHECK_EQ(count, exec->dependency_count);
}

// Node by node: the first dependency whose lane nobody went on with, and whose lane's device is the
// node's or still open, gives the lane.
static void lanes_follow_the_rule(const struct sim__exec *exec) {
    int lane_devices[NODES * 4]; // -1: no node of it has work yet
    uint32_t lane_count = 0;
    for (uint32_t i = 0; i < exec->node_count; ++i) {
        const struct sim__exec_node *node = &exec->nodes[i];
        const int device = node->work == NULL ? -1 : node->work->device;
        uint32_t lane = lane_count;
        for (uint32_t j = 0; j < node->dependency_count && lane == lane_count; ++j) {
            const uint32_t before = exec->dependencies[node->dependency_first + j];
            const uint32_t its = exec->nodes[before].lane;
            bool is_last = true;
            for (uint32_t k = before + 1; k < i; ++k)
                is_last &= exec->nodes[k].lane != its;
            if (is_last && (device < 0 || lane_devices[its] < 0 || lane_devices[its] == device))
                lane = its;
        }
        BASE_CHECK_EQ(node->lane, lane);
        if (lane == lane_count)
            lane_devices[lane_count++] = -1;
        if (device >= 0)
            lane_devices[lane] = device;
    }
    BASE_CHECK_EQ(exec->lane_count, lane_count);
    for (uint32_t i = 0; i < exec->node_count; ++i) {
        const int device = lane_devices[exec->nodes[i].lane];
        BASE_CHECK_EQ(exec->nodes[i].device, device < 0 ? exec->device : device);
    }
}

// What makes lanes right: in one, each node depends on the one before.
static void lanes_are_chains(const struct sim__exec *exec) {
    for (uint32_t i = 0; i < exec->node_count; ++i) {
        const struct sim__exec_node *node = &exec->nodes[i];
        uint32_t before = i;
        while (before > 0 && exec->nodes[before - 1].lane != node->lane)
            --before;
        if (before == 0)
            continue; // the first of its lane
        bool depends = false;
        for (uint32_t j = 0; j < node->dependency_count; ++j)
            depends |= exec->dependencies[node->dependency_first + j] == before - 1;
        BASE_CHECK(depends);
    }
}

// --- Against the graph ---

static void nodes_and_edges_are_the_graphs(const struct sim__exec *exec, cudaGraph_t graph) {
    cudaGraphNode_t from[NODES * NODES], to[NODES * NODES];
    size_t node_count, edge_count = sizeof from / sizeof from[0];
    BASE_CHECK_EQ(cudaGraphGetNodes(graph, NULL, &node_count), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphGetEdges(graph, from, to, NULL, &edge_count), cudaSuccess);
    BASE_CHECK_EQ(exec->node_count, node_count);
    BASE_CHECK_EQ(exec->dependency_count, edge_count);
    for (size_t i = 0; i < edge_count; ++i) {
        const struct sim__exec_node *node = &exec->nodes[index_of(exec, to[i])];
        const uint32_t before = index_of(exec, from[i]);
        int found = 0;
        for (uint32_t j = 0; j < node->dependency_count; ++j)
            found += exec->dependencies[node->dependency_first + j] == before;
        BASE_CHECK_EQ(found, 1);
    }
}

static cudaGraphNode_t node_add(cudaGraph_t graph) {
    cudaGraphNode_t node;
    BASE_CHECK_EQ(cudaSetDevice(below(5) == 0), cudaSuccess);
    if (below(3) == 0)
        BASE_CHECK_EQ(cudaGraphAddEmptyNode(&node, graph, NULL, 0), cudaSuccess);
    else
        BASE_CHECK_EQ(sim_graph_add_kernel(&node, graph, NULL, 0,
                                           &(struct sim_kernel){.body = nothing}),
                      cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    return node;
}

// Edges go from lower to higher ranks, which are numbers as the nodes were added or shuffled.
static void graph_draw(cudaGraph_t graph, bool shuffled) {
    cudaGraphNode_t nodes[NODES];
    const int count = 1 + below(NODES), edge_count = below(3 * count);
    for (int i = 0; i < count; ++i)
        nodes[i] = node_add(graph);
    for (int i = count - 1; i > 0 && shuffled; --i) {
        const int other = below(i + 1);
        const cudaGraphNode_t node = nodes[i];
        nodes[i] = nodes[other];
        nodes[other] = node;
    }
    for (int i = 0; i < edge_count && count > 1; ++i) {
        const int from = below(count - 1), to = from + 1 + below(count - from - 1);
        // The second time it is refused.
        (void)cudaGraphAddDependencies(graph, &nodes[from], &nodes[to], NULL, 1);
    }
}

static uint64_t lane_count_total, node_count_total;

static void random_graphs_become_lists(void) {
    for (uint64_t seed = 1; seed <= 400; ++seed) {
        cudaGraph_t graph;
        cudaGraphExec_t handle;
        random_numbers = base_random_init(seed, "plan");
        base_check_context("seed %" PRIu64, seed);
        BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
        graph_draw(graph, seed % 2 == 0);
        const struct sim__exec *exec = exec_of(graph, &handle);
        nodes_and_edges_are_the_graphs(exec, graph);
        edges_go_forward(exec);
        lanes_are_chains(exec);
        lanes_follow_the_rule(exec);
        if (seed % 2 == 1) // nodes stay in the order in which they were added
            for (uint32_t i = 0; i < exec->node_count; ++i)
                BASE_CHECK_EQ(exec->nodes[i].number, i + 1);
        lane_count_total += exec->lane_count;
        node_count_total += exec->node_count;
        BASE_CHECK_EQ(cudaGraphExecDestroy(handle), cudaSuccess);
        BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
    base_check_context(NULL);
    printf("simulator/graph_plan_test: %" PRIu64 " nodes in %" PRIu64 " lanes\n", node_count_total,
           lane_count_total);
    BASE_CHECK_LT(lane_count_total, node_count_total); // they do save something
}

static void random_child_graphs_are_unfolded(void) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
        cudaGraph_t graph, child, own;
        cudaGraphNode_t node, edge_from, edge_to, nodes[NODES];
        cudaGraphExec_t handle;
        size_t count = NODES;
        random_numbers = base_random_init(seed, "child");
        base_check_context("seed %" PRIu64, seed);
        BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
        BASE_CHECK_EQ(cudaGraphCreate(&child, 0), cudaSuccess);
        graph_draw(graph, true);
        if (seed % 10 != 0)
            graph_draw(child, seed % 2 == 0);
        BASE_CHECK_EQ(cudaGraphGetNodes(graph, nodes, &count), cudaSuccess);
        edge_from = nodes[below((int)count)];
        BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, graph, &edge_from, 1, child), cudaSuccess);
        BASE_CHECK_EQ(cudaGraphAddEmptyNode(&edge_to, graph, &node, 1), cudaSuccess);
        BASE_CHECK_EQ(cudaGraphChildGraphNodeGetGraph(node, &own), cudaSuccess);
        const struct sim__exec *exec = exec_of(graph, &handle);
        edges_go_forward(exec);
        lanes_are_chains(exec);
        lanes_follow_the_rule(exec);
        // All of the child comes behind its first and before its last node.
        size_t own_count = NODES;
        BASE_CHECK_EQ(cudaGraphGetNodes(own, nodes, &own_count), cudaSuccess);
        const uint32_t first = index_of(exec, node), last = exec->nodes[first].child_end;
        BASE_CHECK_EQ(exec->node_count, count + own_count + 3);
        BASE_CHECK_EQ(exec->nodes[first].child_count, own_count);
        BASE_CHECK_EQ(exec->nodes[last].child_end, first);
        BASE_CHECK_EQ(exec->dependencies[exec->nodes[first].dependency_first],
                      index_of(exec, edge_from));
        BASE_CHECK_EQ(
            exec->dependencies[exec->nodes[index_of(exec, edge_to)].dependency_first], last);
        for (size_t i = 0; i < own_count; ++i) {
            size_t before = 0, behind = 0;
            const struct sim__exec_node *inner = &exec->nodes[index_of(exec, nodes[i])];
            BASE_CHECK_EQ(cudaGraphNodeGetDependencies(nodes[i], NULL, NULL, &before), cudaSuccess);
            BASE_CHECK_EQ(cudaGraphNodeGetDependentNodes(nodes[i], NULL, NULL, &behind),
                          cudaSuccess);
            BASE_CHECK_EQ(inner->dependency_count, before == 0 ? 1 : before);
            if (before == 0)
                BASE_CHECK_EQ(exec->dependencies[inner->dependency_first], first);
            int found = 0;
            for (uint32_t j = 0; j < exec->nodes[last].dependency_count; ++j)
                found += &exec->nodes[exec->dependencies[exec->nodes[last].dependency_first + j]] ==
                         inner;
            BASE_CHECK_EQ(found, behind == 0);
        }
        BASE_CHECK_EQ(cudaGraphExecDestroy(handle), cudaSuccess);
    }
    base_check_context(NULL);
}

static void a_copy_keeps_numbers(void) {
    cudaGraph_t graph, copy;
    cudaGraphNode_t nodes[4];
    cudaGraphExec_t handle;
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    for (int i = 0; i < 4; ++i)
        BASE_CHECK_EQ(cudaGraphAddEmptyNode(&nodes[i], graph, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroyNode(nodes[1]), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphClone(&copy, graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&nodes[1], copy, NULL, 0), cudaSuccess);
    static const uint64_t expected[] = {1, 3, 4, 5};
    const struct sim__exec *exec = exec_of(copy, &handle);
    for (int i = 0; i < 4; ++i)
        BASE_CHECK_EQ(exec->nodes[i].number, expected[i]);
}

int main(void) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = 2,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    random_graphs_become_lists();
    random_child_graphs_are_unfolded();
    a_copy_keeps_numbers();
    return 0;
}
