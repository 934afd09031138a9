// Random graphs against a model that is a list of nodes and a list of edges: what calls change,
// what queries tell, which graphs have a cycle, and in which order a launch runs nodes.
//
//     graph_model_test [SEEDS [FIRST]]      default: 200 from 1
#include "base/check.h"
#include "base/random.h"
#include "simulator/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 64
#define EDGES_MAX 2048
#define STEPS 300

static struct base_random random_numbers;

// Nodes by number; a number stays when its node is destroyed, or stands for the copy's node when
// the copy takes the graph's place.
static struct {
    cudaGraph_t graph;
    cudaGraphNode_t nodes[NODES_MAX];
    bool alive[NODES_MAX];
    int node_count;
    struct edge {
        int from, to;
    } edges[EDGES_MAX];
    int edge_count;
} model;

static int below(int bound) { return (int)base_random_below(&random_numbers, (uint64_t)bound); }

static int edge_at(int from, int to) {
    for (int i = 0; i < model.edge_count; ++i)
        if (model.edges[i].from == from && model.edges[i].to == to)
            return i;
    return -1;
}

static void edge_drop(int index) { model.edges[index] = model.edges[--model.edge_count]; }

static int pick(void) {
    int number;
    do
        number = below(model.node_count);
    while (!model.alive[number]);
    return number;
}

static int alive_count(void) {
    int count = 0;
    for (int i = 0; i < model.node_count; ++i)
        count += model.alive[i];
    return count;
}

// --- Changes ---

static int order[NODES_MAX], order_count;
static void note(const void *argument) { order[order_count++] = *(const int *)argument; }

static void node_add(void) {
    cudaGraphNode_t dependencies[8];
    int numbers[8], count = 0;
    bool is_double = false;
    if (model.node_count == NODES_MAX)
        return;
    const int wanted = alive_count() == 0 ? 0 : below(4);
    for (; count < wanted; ++count) {
        numbers[count] = pick();
        dependencies[count] = model.nodes[numbers[count]];
        for (int i = 0; i < count; ++i)
            is_double |= numbers[i] == numbers[count];
    }
    const int number = model.node_count;
    const cudaError_t error = sim_graph_add_kernel(
        &model.nodes[number], model.graph, dependencies, (size_t)count,
        &(struct sim_kernel){.body = note, .argument = &number, .argument_size = sizeof number});
    BASE_CHECK_EQ(error, is_double ? cudaErrorInvalidValue : cudaSuccess);
    if (is_double)
        return;
    model.alive[model.node_count++] = true;
    for (int i = 0; i < count; ++i)
        model.edges[model.edge_count++] = (struct edge){numbers[i], number};
}

// Several edges in one call: all, or none if one does not fit.
static void edges_change(bool adds) {
    cudaGraphNode_t from[4], to[4];
    struct edge edges[4];
    bool fits = true;
    const int count = 1 + below(4);
    for (int i = 0; i < count; ++i) {
        edges[i] = (struct edge){pick(), pick()};
        if (!adds && model.edge_count > 0 && below(4) > 0)
            edges[i] = model.edges[below(model.edge_count)];
        from[i] = model.nodes[edges[i].from];
        to[i] = model.nodes[edges[i].to];
        fits &= edges[i].from != edges[i].to && (edge_at(edges[i].from, edges[i].to) < 0) == adds;
        for (int j = 0; j < i; ++j)
            fits &= edges[j].from != edges[i].from || edges[j].to != edges[i].to;
    }
    if (model.edge_count + count > EDGES_MAX)
        return;
    const cudaError_t error =
        adds ? cudaGraphAddDependencies(model.graph, from, to, NULL, (size_t)count)
             : cudaGraphRemoveDependencies(model.graph, from, to, NULL, (size_t)count);
    BASE_CHECK_EQ(error, fits ? cudaSuccess : cudaErrorInvalidValue);
    for (int i = 0; i < count && fits; ++i) {
        if (adds)
            model.edges[model.edge_count++] = edges[i];
        else
            edge_drop(edge_at(edges[i].from, edges[i].to));
    }
}

static void node_destroy(void) {
    const int number = pick();
    BASE_CHECK_EQ(cudaGraphDestroyNode(model.nodes[number]), cudaSuccess);
    model.alive[number] = false;
    for (int i = model.edge_count; i-- > 0;)
        if (model.edges[i].from == number || model.edges[i].to == number)
            edge_drop(i);
}

// A copy takes the graph's place.
static void graph_clone(void) {
    cudaGraph_t copy;
    BASE_CHECK_EQ(cudaGraphClone(&copy, model.graph), cudaSuccess);
    for (int i = 0; i < model.node_count; ++i) {
        cudaGraphNode_t found;
        const cudaError_t error = cudaGraphNodeFindInClone(&found, model.nodes[i], copy);
        BASE_CHECK_EQ(error, model.alive[i] ? cudaSuccess : cudaErrorInvalidValue);
        if (model.alive[i])
            model.nodes[i] = found;
    }
    BASE_CHECK_EQ(cudaGraphDestroy(model.graph), cudaSuccess);
    model.graph = copy;
}

// --- Queries ---

static int number_of(cudaGraphNode_t node) {
    for (int i = 0; i < model.node_count; ++i)
        if (model.alive[i] && model.nodes[i] == node)
            return i;
    return -1;
}

static int degree(int number, bool in) {
    int count = 0;
    for (int i = 0; i < model.edge_count; ++i)
        count += (in ? model.edges[i].to : model.edges[i].from) == number;
    return count;
}

static void nodes_agree(void) {
    cudaGraphNode_t told[NODES_MAX + 1];
    size_t count = NODES_MAX + 1;
    BASE_CHECK_EQ(cudaGraphGetNodes(model.graph, told, &count), cudaSuccess);
    BASE_CHECK_EQ(count, alive_count());
    int last = -1;
    for (size_t i = 0; i < count; ++i) { // in the order in which they were added
        BASE_CHECK_GT(number_of(told[i]), last);
        last = number_of(told[i]);
    }
    count = NODES_MAX + 1;
    BASE_CHECK_EQ(cudaGraphGetRootNodes(model.graph, told, &count), cudaSuccess);
    int roots = 0;
    for (int i = 0; i < model.node_count; ++i)
        roots += model.alive[i] && degree(i, true) == 0;
    BASE_CHECK_EQ(count, roots);
    for (size_t i = 0; i < count; ++i) {
        BASE_CHECK_EQ(degree(number_of(told[i]), true), 0);
        for (size_t j = 0; j < i; ++j)
            BASE_CHECK(told[i] != told[j]);
    }
}

static void edges_agree(void) {
    static cudaGraphNode_t from[EDGES_MAX], to[EDGES_MAX];
    size_t count = EDGES_MAX;
    BASE_CHECK_EQ(cudaGraphGetEdges(model.graph, from, to, NULL, &count), cudaSuccess);
    BASE_CHECK_EQ(count, model.edge_count);
    bool seen[EDGES_MAX] = {false};
    for (size_t i = 0; i < count; ++i) {
        const int at = edge_at(number_of(from[i]), number_of(to[i]));
        BASE_CHECK(at >= 0 && !seen[at]);
        seen[at] = true;
    }
}

static void neighbours_agree(int number) {
    cudaGraphNode_t told[NODES_MAX];
    size_t count = NODES_MAX;
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(model.nodes[number], told, NULL, &count),
                  cudaSuccess);
    BASE_CHECK_EQ(count, degree(number, true));
    for (size_t i = 0; i < count; ++i) {
        BASE_CHECK_GE(edge_at(number_of(told[i]), number), 0);
        for (size_t j = 0; j < i; ++j)
            BASE_CHECK(told[i] != told[j]);
    }
    count = NODES_MAX;
    BASE_CHECK_EQ(cudaGraphNodeGetDependentNodes(model.nodes[number], told, NULL, &count),
                  cudaSuccess);
    BASE_CHECK_EQ(count, degree(number, false));
    for (size_t i = 0; i < count; ++i)
        BASE_CHECK_GE(edge_at(number, number_of(told[i])), 0);
}

// --- Launches ---

// Takes away nodes that nothing is before, as long as there are any.
static bool has_cycle(void) {
    int left[NODES_MAX], taken = 0;
    for (int i = 0; i < model.node_count; ++i)
        left[i] = model.alive[i] ? degree(i, true) : -1;
    for (bool found = true; found;) {
        found = false;
        for (int i = 0; i < model.node_count; ++i) {
            if (left[i] != 0)
                continue;
            left[i] = -1;
            ++taken;
            found = true;
            for (int j = 0; j < model.edge_count; ++j)
                left[model.edges[j].to] -= model.edges[j].from == i;
        }
    }
    return taken < alive_count();
}

static uint64_t launch_count, cycle_count;

static void launch(void) {
    cudaGraphExec_t exec;
    int place[NODES_MAX];
    const bool cycle = has_cycle();
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, model.graph, 0),
                  cycle ? cudaErrorInvalidValue : cudaSuccess);
    cycle_count += cycle;
    if (cycle)
        return;
    ++launch_count;
    order_count = 0;
    BASE_CHECK_EQ(cudaGraphLaunch(exec, cudaStreamPerThread), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    BASE_CHECK_EQ(order_count, alive_count());
    for (int i = 0; i < NODES_MAX; ++i)
        place[i] = -1;
    for (int i = 0; i < order_count; ++i) {
        BASE_CHECK(model.alive[order[i]] && place[order[i]] < 0);
        place[order[i]] = i;
    }
    for (int i = 0; i < model.edge_count; ++i)
        BASE_CHECK_LT(place[model.edges[i].from], place[model.edges[i].to]);
}

static void run(uint64_t seed) {
    static const char *const schedules[] = {"eager", "lazy", "random:7"};
    random_numbers = base_random_init(seed, "graph");
    base_check_context("seed %" PRIu64, seed);
    BASE_CHECK_EQ(sim_schedule(schedules[seed % 3]), BASE_OK);
    sim_reset();
    memset(&model, 0, sizeof model);
    BASE_CHECK_EQ(cudaGraphCreate(&model.graph, 0), cudaSuccess);
    for (int step = 0; step < STEPS; ++step) {
        base_check_context("seed %" PRIu64 ", step %d", seed, step);
        const int what = alive_count() < 2 ? 0 : below(100);
        if (what < 25)
            node_add();
        else if (what < 65)
            edges_change(what < 45);
        else if (what < 72)
            node_destroy();
        else if (what < 76)
            graph_clone();
        else if (what < 84)
            launch();
        else if (what < 88)
            nodes_agree();
        else if (what < 92)
            edges_agree();
        else
            neighbours_agree(pick());
    }
    nodes_agree();
    edges_agree();
    for (int i = 0; i < model.node_count; ++i)
        if (model.alive[i])
            neighbours_agree(i);
}

int main(int count, char **arguments) {
    const uint64_t seeds = count > 1 ? strtoull(arguments[1], NULL, 10) : 200;
    const uint64_t first = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + seeds; ++seed)
        run(seed);
    printf("simulator/graph_model_test: %" PRIu64 " graphs, %" PRIu64 " launches, %" PRIu64
           " cycles found\n",
           seeds, launch_count, cycle_count);
    if (seeds >= 20) {
        BASE_CHECK_GT(launch_count, seeds);
        BASE_CHECK_GT(cycle_count, seeds);
    }
    return 0;
}
