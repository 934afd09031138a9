// Graphs in the transcript: calls with their handles, what a launch runs as nodes of a graph in the
// launch's stream, and lanes as rows of the timeline. No stream gets another number for it.
#include "base/check.h"
#include "base/file.h"
#include "simulator/sim.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL(call) BASE_CHECK_EQ(call, cudaSuccess)

static char path[600];

static void transcript_begin(const char *name, const char *schedule) {
    snprintf(path, sizeof path, "%s/%s", getenv("TEST_TMPDIR"), name);
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    sim_reset();
    BASE_CHECK_EQ(sim_transcript(path), BASE_OK);
}

static char *transcript_end(void) {
    char *text;
    size_t size;
    BASE_CHECK_EQ(sim_transcript(NULL), BASE_OK);
    BASE_CHECK_EQ(base_file_read(path, 1 << 24, &text, &size), BASE_OK);
    return text;
}

static void transcript_ends_with(const char *want) {
    char *text = transcript_end();
    const size_t length = strlen(text), want_length = strlen(want);
    if (length < want_length || strcmp(text + length - want_length, want) != 0)
        fprintf(stderr, "got:\n%s\nwant at its end:\n%s\n", text, want);
    BASE_CHECK(length >= want_length && strcmp(text + length - want_length, want) == 0);
    free(text);
}

static void body(const void *argument) { (void)argument; }

// A fork into two, joined again, in stream 2 with stream 3.
static cudaGraph_t fork_capture(cudaStream_t s, cudaStream_t t) {
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    CALL(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CALL(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CALL(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CALL(sim_launch(s, "first", body, NULL, 0));
    CALL(cudaEventRecord(fork, s));
    CALL(cudaStreamWaitEvent(t, fork, 0));
    CALL(sim_launch(s, "left", body, NULL, 0));
    CALL(sim_launch(t, "right", body, NULL, 0));
    CALL(cudaEventRecord(join, t));
    CALL(cudaStreamWaitEvent(s, join, 0));
    CALL(sim_launch(s, "last", body, NULL, 0));
    CALL(cudaStreamEndCapture(s, &graph));
    return graph;
}

static void calls_name_graphs_nodes_and_executables(void) {
    cudaGraph_t graph, child, got;
    cudaGraphNode_t nodes[2], found;
    cudaGraphExec_t exec;
    enum cudaGraphNodeType type;
    size_t count = 2;
    transcript_begin("calls.txt", "eager");
    CALL(cudaGraphCreate(&graph, 0));
    CALL(cudaGraphCreate(&child, 0));
    CALL(cudaGraphAddEmptyNode(&nodes[0], child, NULL, 0));
    CALL(cudaGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
    CALL(cudaGraphAddChildGraphNode(&nodes[1], graph, nodes, 1, child));
    CALL(cudaGraphNodeGetType(nodes[1], &type));
    CALL(cudaGraphChildGraphNodeGetGraph(nodes[1], &got));
    CALL(cudaGraphGetNodes(graph, nodes, &count));
    BASE_CHECK_EQ(cudaGraphNodeFindInClone(&found, nodes[0], graph), cudaErrorInvalidValue);
    CALL(cudaGraphInstantiate(&exec, graph, 0));
    CALL(cudaGraphUpload(exec, NULL));
    CALL(cudaGraphDestroyNode(nodes[1]));
    BASE_CHECK_EQ(cudaGraphDestroyNode(NULL), cudaErrorInvalidValue);
    CALL(cudaGraphExecDestroy(exec));
    CALL(cudaGraphDestroy(graph));
    transcript_ends_with(
        "       1        0.000   1  cudaGraphCreate(graph, flags=0) = cudaSuccess, *graph=1\n"
        "       2        0.000   1  cudaGraphCreate(graph, flags=0) = cudaSuccess, *graph=2\n"
        "       3        0.000   1  cudaGraphAddEmptyNode(node, graph=2, dependencies, count=0) = "
        "cudaSuccess, *node=2.1\n"
        "       4        0.000   1  cudaGraphAddEmptyNode(node, graph=1, dependencies, count=0) = "
        "cudaSuccess, *node=1.1\n"
        "       5        0.000   1  cudaGraphAddChildGraphNode(node, graph=1, dependencies, "
        "count=1, child=2) = cudaSuccess, *node=1.2\n"
        "       6        0.000   1  cudaGraphNodeGetType(node=1.2, type) = cudaSuccess, *type=4\n"
        "       7        0.000   1  cudaGraphChildGraphNodeGetGraph(node=1.2, graph) = "
        "cudaSuccess, *graph=3\n"
        "       8        0.000   1  cudaGraphGetNodes(graph=1, nodes, count) = cudaSuccess, "
        "*count=2\n"
        "       9        0.000   1  cudaGraphNodeFindInClone(node, original=1.1, copy=1) = "
        "cudaErrorInvalidValue\n"
        "      10        0.000   1  cudaGraphInstantiate(exec, graph=1, flags=0) = cudaSuccess, "
        "*exec=1\n"
        "      11        0.000   1  cudaGraphUpload(exec=1, stream=legacy) = cudaSuccess\n"
        "      12            legacy stream 1 #1: cudaGraphUpload, 0.000 to 1.000\n"
        "      13        1.000   1  cudaGraphDestroyNode(node=1.2) = cudaSuccess\n"
        "      14        1.000   1  cudaGraphDestroyNode(node=NULL) = cudaErrorInvalidValue\n"
        "      15        1.000   1  cudaGraphExecDestroy(exec=1) = cudaSuccess\n"
        "      16        1.000   1  cudaGraphDestroy(graph=1) = cudaSuccess\n");
}

static void nodes_run_in_the_launchs_stream(void) {
    cudaStream_t s, t, later;
    cudaGraphExec_t exec;
    transcript_begin("nodes.txt", "lazy");
    CALL(cudaStreamCreate(&s));
    CALL(cudaStreamCreate(&t));
    CALL(cudaGraphInstantiate(&exec, fork_capture(s, t), 0));
    CALL(cudaGraphLaunch(exec, s));
    CALL(cudaGraphLaunch(exec, NULL));
    CALL(cudaStreamCreate(&later));
    CALL(cudaStreamSynchronize(s));
    CALL(cudaStreamSynchronize(NULL));
    transcript_ends_with(
        "      16        0.000   1  cudaGraphLaunch(exec=1, stream=2) = cudaSuccess\n"
        "      17        0.000   1  cudaGraphLaunch(exec=1, stream=legacy) = cudaSuccess\n"
        "      18        0.000   1  cudaStreamCreate(stream) = cudaSuccess, *stream=4\n"
        "      19        0.000   1  cudaStreamSynchronize(stream=2) = cudaSuccess\n"
        "      20            stream 2 #1: launch of graph 1 begins, 0.000 to 0.000\n"
        "      21            stream 2 graph 1 node 1: kernel first, 0.000 to 1.000, after stream 2 "
        "#1\n"
        "      22            stream 2 graph 1 node 2: kernel left, 1.000 to 2.000\n"
        "      23            stream 2 graph 1 node 3: kernel right, 2.000 to 3.000, after stream 2 "
        "graph 1 node 1\n"
        "      24            stream 2 graph 1 node 4: kernel last, 3.000 to 4.000, after stream 2 "
        "graph 1 node 3\n"
        "      25            stream 2 #2: launch of graph 1, 4.000 to 4.000, after stream 2 graph 1 "
        "node 4, stream 2 graph 1 node 3\n"
        "      26        4.000   1  cudaStreamSynchronize(stream=legacy) = cudaSuccess\n"
        "      27            legacy stream 1 #1: launch of graph 1 begins, 4.000 to 4.000, after "
        "stream 2 #2\n"
        "      28            legacy stream 1 graph 1 node 1: kernel first, 4.000 to 5.000, after "
        "legacy stream 1 #1\n"
        "      29            legacy stream 1 graph 1 node 2: kernel left, 5.000 to 6.000\n"
        "      30            legacy stream 1 graph 1 node 3: kernel right, 6.000 to 7.000, after "
        "legacy stream 1 graph 1 node 1\n"
        "      31            legacy stream 1 graph 1 node 4: kernel last, 7.000 to 8.000, after "
        "legacy stream 1 graph 1 node 3\n"
        "      32            legacy stream 1 #2: launch of graph 1, 8.000 to 8.000, after legacy "
        "stream 1 graph 1 node 4, legacy stream 1 graph 1 node 3\n");
}

// Without the host's addresses, and the same with any schedule's own order.
static void a_seed_gives_the_same_bytes(void) {
    char *texts[3];
    for (int i = 0; i < 3; ++i) {
        cudaStream_t s, t;
        cudaGraphExec_t exec;
        transcript_begin("seed.txt", i < 2 ? "random:5" : "random:6");
        CALL(cudaStreamCreate(&s));
        CALL(cudaStreamCreate(&t));
        CALL(cudaGraphInstantiate(&exec, fork_capture(s, t), 0));
        for (int j = 0; j < 5; ++j)
            CALL(cudaGraphLaunch(exec, j % 2 == 0 ? s : t));
        CALL(cudaDeviceSynchronize());
        texts[i] = transcript_end();
    }
    BASE_CHECK(strcmp(texts[0], texts[1]) == 0);
    BASE_CHECK(strcmp(texts[0], texts[2]) != 0);
    for (int i = 0; i < 3; ++i)
        free(texts[i]);
}

// --- The timeline ---

static json_t *event_find(json_t *events, const char *phase, const char *name, int count) {
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event) {
        const json_t *of_event = json_object_get(event, "name");
        if (strcmp(json_string_value(json_object_get(event, "ph")), phase) == 0 &&
            of_event != NULL && strcmp(json_string_value(of_event), name) == 0 && count-- == 0)
            return event;
    }
    return NULL;
}

static long long number_of(const json_t *event, const char *key) {
    BASE_CHECK(json_is_number(json_object_get(event, key)));
    return (long long)json_number_value(json_object_get(event, key));
}

static const char *row_name(json_t *events, long long row, long long *sort) {
    const char *name = NULL;
    size_t i;
    json_t *event;
    *sort = -1;
    json_array_foreach(events, i, event) {
        const json_t *of_event = json_object_get(event, "name");
        if (json_object_get(event, "tid") == NULL || number_of(event, "tid") != row ||
            number_of(event, "pid") != 2 || of_event == NULL)
            continue;
        if (strcmp(json_string_value(of_event), "thread_name") == 0)
            name = json_string_value(json_object_get(json_object_get(event, "args"), "name"));
        if (strcmp(json_string_value(of_event), "thread_sort_index") == 0)
            *sort = number_of(json_object_get(event, "args"), "sort_index");
    }
    BASE_CHECK(name != NULL);
    return name;
}

static void lanes_are_rows_behind_their_stream(void) {
    cudaStream_t s, t;
    cudaGraphExec_t exec;
    long long sorts[4];
    transcript_begin("lanes.json", "eager");
    CALL(cudaStreamCreate(&s));
    CALL(cudaStreamCreate(&t));
    CALL(cudaGraphInstantiate(&exec, fork_capture(s, t), 0));
    CALL(cudaGraphLaunch(exec, s));
    CALL(cudaGraphLaunch(exec, s));
    CALL(sim_launch(t, "other", body, NULL, 0));
    BASE_CHECK_EQ(sim_transcript(NULL), BASE_OK);
    json_t *timeline = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    BASE_CHECK(timeline != NULL);
    json_t *events = json_object_get(timeline, "traceEvents");
    const json_t *left = event_find(events, "X", "kernel left", 0),
                 *right = event_find(events, "X", "kernel right", 0),
                 *again = event_find(events, "X", "kernel right", 1),
                 *other = event_find(events, "X", "kernel other", 0),
                 *launch = event_find(events, "X", "launch of graph 1", 0);
    BASE_CHECK(left != NULL && right != NULL && again != NULL && other != NULL && launch != NULL);
    BASE_CHECK_EQ(number_of(right, "tid"), number_of(again, "tid")); // the same lane, one row
    BASE_CHECK_EQ(number_of(json_object_get(right, "args"), "node"), 3);
    BASE_CHECK(strcmp(row_name(events, number_of(left, "tid"), &sorts[1]),
                      "stream 2, graph 1, lane 1") == 0);
    BASE_CHECK(strcmp(row_name(events, number_of(right, "tid"), &sorts[2]),
                      "stream 2, graph 1, lane 2") == 0);
    BASE_CHECK(strcmp(row_name(events, number_of(launch, "tid"), &sorts[0]), "stream 2") == 0);
    BASE_CHECK(strcmp(row_name(events, number_of(other, "tid"), &sorts[3]), "stream 3") == 0);
    for (int i = 0; i < 3; ++i)
        BASE_CHECK_LT(sorts[i], sorts[i + 1]);
    // Arrows lead from lane to lane.
    bool found = false;
    const json_t *arrow;
    for (int i = 0; (arrow = event_find(events, "s", "waits", i)) != NULL; ++i) {
        const json_t *end = event_find(events, "f", "waits", i);
        BASE_CHECK_EQ(number_of(arrow, "id"), number_of(end, "id"));
        found |= number_of(arrow, "tid") == number_of(left, "tid") &&
                 number_of(end, "tid") == number_of(right, "tid");
    }
    BASE_CHECK(found);
    json_decref(timeline);
}

int main(void) {
    calls_name_graphs_nodes_and_executables();
    nodes_run_in_the_launchs_stream();
    a_seed_gives_the_same_bytes();
    lanes_are_rows_behind_their_stream();
}
