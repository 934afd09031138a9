// Captures and graphs as the driver has them: nodes by number, terminals, edges.
#include "allocator/golden/capture_internal.h"

#include "base/check.h"
#include "simulator/sim.h"

#include <stdlib.h>
#include <string.h>

bool golden__capture_print_cuda(struct golden_capture_run *run, cudaError_t error) {
    if (error == cudaSuccess) {
        fputs("ok", run->output);
        return true;
    }
    (void)cudaGetLastError();
    fprintf(run->output, "error cuda %d %s", (int)error, cudaGetErrorName(error));
    return false;
}

enum cudaStreamCaptureMode golden__capture_mode(const char *word) {
    return strcmp(word, "thread") == 0    ? cudaStreamCaptureModeThreadLocal
           : strcmp(word, "relaxed") == 0 ? cudaStreamCaptureModeRelaxed
                                          : cudaStreamCaptureModeGlobal;
}

static enum cudaStreamCaptureStatus read_state(cudaStream_t stream, cudaGraph_t *graph,
                                               const cudaGraphNode_t **nodes, size_t *count) {
    enum cudaStreamCaptureStatus state;
    *graph = NULL;
    *nodes = NULL;
    *count = 0;
    BASE_CHECK_EQ(cudaStreamGetCaptureInfo(stream, &state, NULL, graph, nodes, NULL, count),
                  cudaSuccess);
    return state;
}

//--------------------------------------------------------------------------------------------------
// Nodes.

static const struct golden_capture_node *node_find(const struct golden_capture_run *run,
                                                   cudaGraph_t graph, cudaGraphNode_t node) {
    for (size_t index = run->node_count; index > 0; index--)
        if (run->nodes[index - 1].node == node && run->nodes[index - 1].graph == graph)
            return &run->nodes[index - 1];
    base_check_context("a node that no operation of the script made");
    BASE_CHECK(false);
    return NULL;
}

static size_t node_add(struct golden_capture_run *run, cudaGraph_t graph, cudaGraphNode_t node,
                       const char *label) {
    size_t number = 0;
    for (size_t index = run->node_count; index > 0 && number == 0; index--)
        if (run->nodes[index - 1].graph == graph)
            number = run->nodes[index - 1].number + 1;
    run->nodes =
        golden__capture_grow(run->nodes, run->node_count, &run->node_capacity, sizeof *run->nodes);
    char *const copy = strdup(label);
    BASE_CHECK(copy != NULL);
    run->nodes[run->node_count++] =
        (struct golden_capture_node){graph, node, .number = number, .label = copy};
    return number;
}

void golden__capture_note_node(struct golden_capture_run *run, cudaStream_t stream,
                               const char *label) {
    cudaGraph_t graph;
    const cudaGraphNode_t *nodes;
    size_t count;
    if (read_state(stream, &graph, &nodes, &count) != cudaStreamCaptureStatusActive)
        return;
    BASE_CHECK_EQ(count, 1);
    fprintf(run->output, " n%zu", node_add(run, graph, nodes[0], label));
}

//--------------------------------------------------------------------------------------------------
// What a stream's next node depends on.

static int compare_numbers(const void *a, const void *b) {
    const size_t left = *(const size_t *)a, right = *(const size_t *)b;
    return (left > right) - (left < right);
}

static void print_nodes(const struct golden_capture_run *run, cudaGraph_t graph,
                        const cudaGraphNode_t *nodes, size_t count) {
    size_t *const numbers = calloc(count + 1, sizeof *numbers);
    BASE_CHECK(numbers != NULL);
    for (size_t index = 0; index < count; index++)
        numbers[index] = node_find(run, graph, nodes[index])->number;
    qsort(numbers, count, sizeof *numbers, compare_numbers);
    for (size_t index = 0; index < count; index++)
        fprintf(run->output, " n%zu", numbers[index]);
    free(numbers);
}

// CUDA does not tell what an invalidated capture had.
void golden__capture_print_deps(const struct golden_capture_run *run, cudaStream_t stream) {
    cudaGraph_t graph;
    const cudaGraphNode_t *nodes;
    size_t count;
    const enum cudaStreamCaptureStatus state = read_state(stream, &graph, &nodes, &count);
    fprintf(run->output, "status %d", (int)state);
    if (state == cudaStreamCaptureStatusInvalidated)
        return;
    fputs(" set", run->output);
    print_nodes(run, graph, nodes, count);
}

void golden__capture_set_deps(struct golden_capture_run *run, cudaStream_t stream,
                              const cudaStream_t *others, size_t count) {
    cudaGraphNode_t set[64];
    size_t size = 0;
    for (size_t index = 0; index < count; index++) {
        cudaGraph_t graph;
        const cudaGraphNode_t *nodes;
        size_t node_count;
        (void)read_state(others[index], &graph, &nodes, &node_count);
        for (size_t node = 0; node < node_count; node++) {
            bool is_new = true;
            for (size_t other = 0; other < size; other++)
                is_new &= set[other] != nodes[node];
            BASE_CHECK_LT(size, sizeof set / sizeof set[0]);
            if (is_new)
                set[size++] = nodes[node];
        }
    }
    (void)golden__capture_print_cuda(
        run, cudaStreamUpdateCaptureDependencies(stream, set, NULL, size,
                                                 cudaStreamSetCaptureDependencies));
}

void golden__capture_empty_node(struct golden_capture_run *run, cudaStream_t stream) {
    cudaGraph_t graph;
    const cudaGraphNode_t *nodes;
    size_t count;
    cudaGraphNode_t node;
    if (read_state(stream, &graph, &nodes, &count) != cudaStreamCaptureStatusActive) {
        fputs("error no capture", run->output);
        return;
    }
    cudaError_t error = cudaGraphAddEmptyNode(&node, graph, nodes, count);
    if (error == cudaSuccess)
        error = cudaStreamUpdateCaptureDependencies(stream, &node, NULL, 1,
                                                    cudaStreamSetCaptureDependencies);
    if (golden__capture_print_cuda(run, error))
        golden__capture_note_node(run, stream, "empty");
}

//--------------------------------------------------------------------------------------------------
// A graph that is done.

static void print_edges(const struct golden_capture_run *run, cudaGraph_t graph,
                        cudaGraphNode_t node) {
    size_t count = 0;
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(node, NULL, NULL, &count), cudaSuccess);
    cudaGraphNode_t *const nodes = calloc(count + 1, sizeof *nodes);
    BASE_CHECK(nodes != NULL);
    BASE_CHECK_EQ(cudaGraphNodeGetDependencies(node, nodes, NULL, &count), cudaSuccess);
    print_nodes(run, graph, nodes, count);
    free(nodes);
}

void golden__capture_print_graph(const struct golden_capture_run *run, cudaGraph_t graph) {
    size_t nodes = 0, edges = 0, roots = 0;
    if (graph == NULL) {
        fputs("none", run->output);
        return;
    }
    BASE_CHECK_EQ(cudaGraphGetNodes(graph, NULL, &nodes), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphGetEdges(graph, NULL, NULL, NULL, &edges), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphGetRootNodes(graph, NULL, &roots), cudaSuccess);
    fprintf(run->output, "nodes %zu edges %zu roots %zu", nodes, edges, roots);
    for (size_t index = 0; index < run->node_count; index++) {
        const struct golden_capture_node *const node = &run->nodes[index];
        if (node->graph != graph)
            continue;
        fprintf(run->output, "\n  n%zu %s <-", node->number, node->label);
        print_edges(run, graph, node->node);
    }
}
