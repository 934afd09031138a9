// Graphs as pictures: the file is whole or not there, it is well formed, and it says of each node
// what it does, where, and in which stream. Where Graphviz is installed it reads the files too.
#include "base/check.h"
#include "base/file.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)64 << 20)
#define IDS_MAX 4096
#define ID_BYTES 32

static char directory[512];
static char path[600];
static char *text; // of the file that was written last

static void start(void) {
    sim_reset();
    free(text);
    text = NULL;
}

static void draw(cudaGraph_t graph, unsigned int flags) {
    size_t size;
    BASE_CHECK_EQ(cudaGraphDebugDotPrint(graph, path, flags), cudaSuccess);
    free(text);
    BASE_CHECK_EQ(base_file_read(path, FILE_BYTES_MAX, &text, &size), BASE_OK);
    BASE_CHECK_EQ(strlen(text), size);
}

static bool says(const char *words) { return strstr(text, words) != NULL; }

// --- Well formed ---

static char ids[IDS_MAX][ID_BYTES];
static int id_count;

static bool id_known(const char *id) {
    for (int i = 0; i < id_count; ++i)
        if (strcmp(ids[i], id) == 0)
            return true;
    return false;
}

// Every node is declared once, every edge joins two that are declared; braces and tables match.
static void well_formed(int node_count, int edge_count) {
    char from[ID_BYTES], to[ID_BYTES], arrow[3];
    int braces = 0, nodes = 0, edges = 0, tables = 0;
    id_count = 0;
    for (int pass = 0; pass < 2; ++pass) {
        for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
            char head[3 * ID_BYTES]; // sscanf would look for the end of all
            BASE_CHECK(strchr(line, '\n') != NULL);
            snprintf(head, sizeof head, "%.*s", (int)sizeof head - 1, line);
            if (sscanf(head, "%31[nbe0-9_] %2[->] %31[nbe0-9_]", from, arrow, to) == 3 &&
                strcmp(arrow, "->") == 0) {
                edges += pass;
                BASE_CHECK(pass == 0 || (id_known(from) && id_known(to)));
            } else if (pass == 0 && sscanf(head, "%31[nbe0-9_] %1[[]", from, arrow) == 2) {
                BASE_CHECK(!id_known(from));
                BASE_CHECK_LT(id_count, IDS_MAX);
                strcpy(ids[id_count++], from);
                nodes += from[0] == 'n';
            }
        }
    }
    for (const char *at = text; *at != '\0'; ++at) {
        braces += (*at == '{') - (*at == '}');
        tables += (strncmp(at, "<table", 6) == 0) - (strncmp(at, "</table>", 8) == 0);
        BASE_CHECK_GE(braces, 0);
    }
    BASE_CHECK_EQ(braces, 0);
    BASE_CHECK_EQ(tables, 0);
    BASE_CHECK_EQ(nodes, node_count);
    BASE_CHECK_EQ(edges, edge_count);
    char command[2000];
    snprintf(command, sizeof command,
             "if command -v dot > /dev/null 2>&1; then dot -Tcanon '%s' > '%s/out' 2>&1 && ! grep "
             "-i -e warning -e error '%s/out'; fi",
             path, directory, directory);
    BASE_CHECK_EQ(system(command), 0);
}

static void body(const void *argument) { (void)argument; }
static void host_body(void *argument) { (void)argument; }

static cudaGraphNode_t kernel(cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
                              const char *name) {
    cudaGraphNode_t node;
    BASE_CHECK_EQ(sim_graph_add_kernel(&node, graph, dependencies, count,
                                       &(struct sim_kernel){.name = name, .body = body}),
                  cudaSuccess);
    return node;
}

static void each_type_says_what_it_does(void) {
    start();
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaEvent_t event;
    void *memory;
    char words[64];
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&memory, 1 << 20), cudaSuccess);
    node = kernel(graph, NULL, 0, "scale<float> \"x\" & \x01\xff");
    BASE_CHECK_EQ(cudaGraphAddMemcpyNode1D(&node, graph, &node, 1, words, memory, 48,
                                           cudaMemcpyDefault),
                  cudaSuccess);
    BASE_CHECK_EQ(
        cudaGraphAddMemsetNode(&node, graph, &node, 1,
                               &(struct cudaMemsetParams){memory, 1024, 0xab, 1, 512, 16}),
        cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddHostNode(&node, graph, &node, 1,
                                       &(struct cudaHostNodeParams){host_body, words}),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEventRecordNode(&node, graph, &node, 1, event), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEventWaitNode(&node, graph, &node, 1, event), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&node, graph, &node, 1), cudaSuccess);
    struct cudaMemAllocNodeParams allocation = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {cudaMemLocationTypeDevice, 0}},
        .bytesize = 3 << 20};
    BASE_CHECK_EQ(cudaGraphAddMemAllocNode(&node, graph, &node, 1, &allocation), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddMemFreeNode(&node, graph, &node, 1, allocation.dptr), cudaSuccess);
    draw(graph, 0);
    well_formed(9, 8);
    BASE_CHECK(says("<b>scale&lt;float&gt; &quot;x&quot; &amp; ?" "?</b>"));
    BASE_CHECK(says("<b>48 B to the host</b>"));
    BASE_CHECK(says("<b>8 KiB of 0xab</b>"));
    BASE_CHECK(says("16 x 512 B, 1 KiB apart"));
    BASE_CHECK(says("<b>host function"));
    BASE_CHECK(says("<b>record event 2</b>"));
    BASE_CHECK(says("<b>wait for event 2</b>"));
    BASE_CHECK(says("<b>empty</b>"));
    BASE_CHECK(says("<b>allocate 3 MiB</b>"));
    BASE_CHECK(says("<b>free 3 MiB</b>"));
    BASE_CHECK(says("9 nodes, 8 edges"));
    snprintf(words, sizeof words, "0x%" PRIxPTR ", 48 B", (uintptr_t)memory);
    BASE_CHECK(says(words));
    snprintf(words, sizeof words, "0x%" PRIxPTR, (uintptr_t)node);
    BASE_CHECK(!says(words));
    draw(graph, cudaGraphDebugDotFlagsVerbose);
    well_formed(9, 8);
    BASE_CHECK(says(words)); // the handle
}

static void streams_are_colours(void) {
    start();
    cudaStream_t streams[3];
    cudaEvent_t event;
    cudaGraph_t graph;
    for (int i = 0; i < 3; ++i)
        BASE_CHECK_EQ(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal), cudaSuccess);
    BASE_CHECK_EQ(sim_launch(streams[0], "first", body, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaEventRecord(event, streams[0]), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(streams[1], event, 0), cudaSuccess);
    BASE_CHECK_EQ(sim_launch(streams[1], "second", body, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaEventRecord(event, streams[1]), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(streams[0], event, 0), cudaSuccess);
    BASE_CHECK_EQ(sim_launch(streams[0], "third", body, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamEndCapture(streams[0], &graph), cudaSuccess);
    draw(graph, 0);
    well_formed(3, 3);
    // The legend, and of the boxes the first and the third alike.
    char colours[3][8], other[8];
    for (int i = 0; i < 3; ++i) {
        char id[24];
        snprintf(id, sizeof id, "\nn1_%d [", i + 1);
        const char *line = strstr(text, id);
        BASE_CHECK(line != NULL);
        BASE_CHECK_EQ(sscanf(line, "\nn1_%*d [fillcolor=\"%7s\", color=\"%7s", colours[i], other),
                      2);
    }
    BASE_CHECK_EQ(strcmp(colours[0], colours[2]), 0);
    BASE_CHECK(strcmp(colours[0], colours[1]) != 0);
    const char *legend = strstr(text, colours[0]);
    BASE_CHECK(legend != NULL && strstr(legend, " stream ") != NULL &&
               strstr(legend, " stream ") < strstr(text, "\nn1_1"));
}

static void blocks_and_call_sites_are_named_while_the_checker_is_on(void) {
    start();
    cudaGraph_t graph;
    cudaGraphNode_t node;
    void *memory;
    BASE_CHECK_EQ(cudaMalloc(&memory, 1 << 20), cudaSuccess);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    const uint64_t block = sim_block_take(memory, 4096, NULL, "weights");
    const struct sim_access access = {SIM_ACCESS_WRITE, memory, 256, 2, 1024, block};
    sim_race_label("forward");
    BASE_CHECK_EQ(sim_graph_add_kernel(&node, graph, NULL, 0,
                                       &(struct sim_kernel){.name = "init",
                                                            .body = body,
                                                            .accesses = &access,
                                                            .access_count = 1}),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddMemsetNode(&node, graph, &node, 1,
                                         &(struct cudaMemsetParams){(char *)memory + 512, 0, 1, 1,
                                                                    64, 1}),
                  cudaSuccess);
    draw(graph, 0);
    well_formed(2, 1);
    char words[96];
    snprintf(words, sizeof words, "0x%" PRIxPTR ", 2 x 256 B, 1 KiB apart, block %" PRIu64
                                  " weights<", (uintptr_t)memory, block);
    BASE_CHECK(says(words));
    snprintf(words, sizeof words, "0x%" PRIxPTR ", 64 B, block %" PRIu64 " weights<",
             (uintptr_t)memory + 512, block);
    BASE_CHECK(says(words));
    BASE_CHECK(says("forward"));
    BASE_CHECK(says("graph_dot_test"));
    sim_race_label(NULL);
    sim_race_stop();
    draw(graph, 0); // what was noted stays
    well_formed(2, 1);
}

static void child_graphs_are_frames(void) {
    start();
    cudaGraph_t graph, child, nothing, inner;
    cudaGraphNode_t node, between;
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphCreate(&child, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphCreate(&inner, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphCreate(&nothing, 0), cudaSuccess);
    kernel(inner, NULL, 0, "innermost");
    const cudaGraphNode_t a = kernel(child, NULL, 0, "a");
    kernel(child, &a, 1, "b");
    BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, child, &a, 1, inner), cudaSuccess);
    const cudaGraphNode_t before = kernel(graph, NULL, 0, "before");
    BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&node, graph, &before, 1, child), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&between, graph, &node, 1, nothing), cudaSuccess);
    kernel(graph, &between, 1, "behind");
    draw(graph, 0);
    // Edges: three of the graph; of the child two, one to its root, two from its sinks; of the
    // inner one two; of the empty one, from end to end.
    well_formed(5, 3 + 2 + 3 + 2 + 1);
    BASE_CHECK(says("child graph, 3 nodes"));
    BASE_CHECK(says("child graph, 1 node<"));
    BASE_CHECK(says("child graph, 0 nodes"));
    BASE_CHECK(says("innermost"));
}

static void edges_show_what_they_carry(void) {
    start();
    cudaGraph_t graph;
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    const cudaGraphNode_t a = kernel(graph, NULL, 0, "a"), b = kernel(graph, NULL, 0, "b");
    const cudaGraphEdgeData data = {.from_port = cudaGraphKernelNodePortLaunchCompletion,
                                    .type = cudaGraphDependencyTypeProgrammatic};
    BASE_CHECK_EQ(cudaGraphAddDependencies(graph, &a, &b, &data, 1), cudaSuccess);
    draw(graph, 0);
    well_formed(2, 1);
    BASE_CHECK(says("programmatic, port 2"));
}

static void many_nodes_are_drawn(void) {
    start();
    cudaGraph_t graph;
    cudaGraphNode_t nodes[300];
    int edges = 0;
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    draw(graph, 0);
    well_formed(0, 0);
    for (int i = 0; i < 300; ++i) {
        const size_t count = i == 0 ? 0 : i % 3 == 0 ? 2 : 1;
        const cudaGraphNode_t dependencies[] = {nodes[i == 0 ? 0 : i - 1],
                                                nodes[i < 2 ? 0 : i - 2]};
        nodes[i] = kernel(graph, dependencies, count, "k");
        edges += (int)count;
    }
    draw(graph, 0);
    well_formed(300, edges);
}

static void a_file_that_cannot_be_written_is_told(void) {
    start();
    cudaGraph_t graph;
    char bad[700];
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    snprintf(bad, sizeof bad, "%s/none/graph.dot", directory);
    BASE_CHECK_EQ(cudaGraphDebugDotPrint(graph, bad, 0), cudaErrorOperatingSystem);
    BASE_CHECK_EQ(cudaGetLastError(), cudaErrorOperatingSystem);
    BASE_CHECK_EQ(cudaGraphDebugDotPrint(graph, NULL, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGraphDebugDotPrint(graph, path, 2), cudaErrorInvalidValue);
    BASE_CHECK_EQ(unlink(path), 0);
    BASE_CHECK_EQ(cudaGraphDebugDotPrint(NULL, path, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(access(path, F_OK), -1);
}

int main(void) {
    const char *temporary = getenv("TEST_TMPDIR");
    snprintf(directory, sizeof directory, "%s", temporary == NULL ? "/tmp" : temporary);
    snprintf(path, sizeof path, "%s/graph_dot_test.dot", directory);
    each_type_says_what_it_does();
    streams_are_colours();
    blocks_and_call_sites_are_named_while_the_checker_is_on();
    child_graphs_are_frames();
    edges_show_what_they_carry();
    many_nodes_are_drawn();
    a_file_that_cannot_be_written_is_told();
    free(text);
    return 0;
}
