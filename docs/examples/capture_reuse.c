// Prints what docs/capture-reuse.md shows: blocks that are freed in a graph capture, and when the
// graph lets them be used again.
//
//     capture_reuse           the page's lines
//     capture_reuse graphs    the captured graphs, for the pictures
//     capture_reuse costs     what a request asks the driver, for the plot
#include "allocator/captures.h"
#include "base/options.h"
#include "base/random.h"
#include "docs/examples/drawing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)BASE_MIB)
#define STREAMS 3
#define NODES_MAX 64
#define TENSOR_MIB 4
#define CAPACITY (64 * BASE_GIB)

//------------------------------------------------------------------------------------------------
// Questions to the driver are counted on their way (BUILD).

static uint64_t questions;

cudaError_t __real_cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *from,
                                                cudaGraphEdgeData *edges, size_t *count);
cudaError_t __wrap_cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *from,
                                                cudaGraphEdgeData *edges, size_t *count);
cudaError_t __wrap_cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *from,
                                                cudaGraphEdgeData *edges, size_t *count) {
    ++questions;
    return __real_cudaGraphNodeGetDependencies(node, from, edges, count);
}

//------------------------------------------------------------------------------------------------
// A capture, as a framework makes it.

enum form { OFF, MARKERS, GRAPH_WIDE, TERMINALS, FORM_COUNT };
static const char *const configs[FORM_COUNT] = {"", "x_capture_reuse:markers",
                                                "x_capture_reuse:markers_graph",
                                                "graph_capture_record_stream_reuse:True"};
static const char *const form_names[FORM_COUNT] = {"off", "first form", "graph-wide", "current"};

struct node {
    cudaGraphNode_t node;
    int stream;
    char label[16];
    bool uses_a;
};

struct capture {
    struct allocator *allocator;
    cudaStream_t streams[STREAMS];
    struct cca_pool_filter filter;
    _Atomic(unsigned long long) id;
    void *a; // block A
    // What is drawn.
    struct node nodes[NODES_MAX];
    int node_count;
    cudaGraphNode_t markers[NODES_MAX], terminals[NODES_MAX]; // of A's free, of B's request
    size_t marker_count, terminal_count;
};

static const struct allocator_pool_id pool_id = {.capture = 1};

static void capture_begin(struct capture *capture, enum form form) {
    *capture = (struct capture){0};
    DRAWING_OK(sim_configure(
        &(struct sim_options){.capacity_bytes = CAPACITY, .numerics = SIM_NUMERICS_OFF}));
    DRAWING_OK(
        cca_allocator_create(&(struct cca_options){.config = configs[form]}, &capture->allocator));
    for (int index = 0; index < STREAMS; ++index)
        DRAWING_CALL(cudaStreamCreateWithFlags(&capture->streams[index], cudaStreamNonBlocking));
    const cudaStream_t stream = capture->streams[0];
    enum cudaStreamCaptureStatus status;
    unsigned long long id;
    capture->filter = cca_capture_filter(&capture->id);
    DRAWING_OK(cca_pool_begin(capture->allocator, 0, pool_id, &capture->filter));
    DRAWING_CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    DRAWING_CALL(cudaStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL));
    capture->id = id;
    DRAWING_OK(cca_capture_begin(capture->allocator, 0,
                                 &(struct cca_capture){.id = id, .stream = stream}));
}

static size_t terminals_of(cudaStream_t stream, cudaGraphNode_t *nodes, cudaGraph_t *graph) {
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *found;
    size_t count = 0;
    DRAWING_CALL(cudaStreamGetCaptureInfo(stream, &status, NULL, graph, &found, NULL, &count));
    if (status != cudaStreamCaptureStatusActive) return 0;
    for (size_t index = 0; index < count && nodes != NULL; ++index)
        nodes[index] = found[index];
    return count;
}

static void order(struct capture *capture, int from, int to) {
    cudaEvent_t event;
    DRAWING_CALL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    DRAWING_CALL(cudaEventRecord(event, capture->streams[from - 1]));
    DRAWING_CALL(cudaStreamWaitEvent(capture->streams[to - 1], event, 0));
    DRAWING_CALL(cudaEventDestroy(event));
}

static bool is_captured(const struct capture *capture, int stream) {
    enum cudaStreamCaptureStatus status;
    DRAWING_CALL(cudaStreamIsCapturing(capture->streams[stream - 1], &status));
    return status == cudaStreamCaptureStatusActive;
}

// The driver ends a capture only when every stream is back.
static uint64_t capture_end(struct capture *capture) {
    cudaGraph_t graph;
    size_t node_count = 0;
    for (int stream = 2; stream <= STREAMS; ++stream)
        if (is_captured(capture, stream)) order(capture, stream, 1);
    DRAWING_CALL(cudaStreamEndCapture(capture->streams[0], &graph));
    DRAWING_OK(cca_capture_end(capture->allocator, 0, capture->id));
    DRAWING_OK(cca_pool_end(capture->allocator, 0, pool_id));
    DRAWING_CALL(cudaGraphGetNodes(graph, NULL, &node_count));
    DRAWING_CALL(cudaGraphDestroy(graph));
    DRAWING_OK(cca_pool_release(capture->allocator, 0, pool_id));
    allocator_destroy(capture->allocator);
    return node_count;
}

static void no_body(const void *argument) { (void)argument; }

static void launch(struct capture *capture, int stream, const char *name) {
    DRAWING_CALL(sim_launch_kernel(capture->streams[stream - 1],
                                   &(struct sim_kernel){.name = name, .body = no_body}));
}

//------------------------------------------------------------------------------------------------
// The small examples: A is taken on stream 1, used, freed; then B of the same size is asked for.

static void note(struct capture *capture, int stream, const char *label) {
    cudaGraphNode_t last[NODES_MAX];
    if (terminals_of(capture->streams[stream - 1], last, NULL) != 1) return;
    for (int index = 0; index < capture->node_count; ++index)
        if (capture->nodes[index].node == last[0]) return;
    struct node *const added = &capture->nodes[capture->node_count++];
    *added = (struct node){.node = last[0], .stream = stream, .uses_a = strchr(label, 'A') != NULL};
    snprintf(added->label, sizeof added->label, "%s", label);
}

static void work(struct capture *capture, int stream, const char *label) {
    launch(capture, stream, label);
    note(capture, stream, label);
}

static void take_a(struct capture *capture) {
    DRAWING_OK(allocator_malloc(capture->allocator, 0, TENSOR_MIB * MIB, capture->streams[0],
                                &capture->a));
    work(capture, 1, "A");
}

static void use_a(struct capture *capture, int stream) {
    order(capture, 1, stream);
    work(capture, stream, "uses A");
    DRAWING_OK(
        allocator_record_stream(capture->allocator, capture->a, capture->streams[stream - 1]));
}

// What the streams are at now marks the end of all uses; the first form adds nodes that say so.
static void free_a(struct capture *capture, int stream_count) {
    for (int stream = 1; stream <= stream_count; ++stream)
        capture->marker_count += terminals_of(capture->streams[stream - 1],
                                              &capture->markers[capture->marker_count], NULL);
    DRAWING_OK(allocator_free(capture->allocator, capture->a));
    for (int stream = 1; stream <= stream_count; ++stream)
        note(capture, stream, "mark");
}

// Whether B got what A had.
static bool take_b(struct capture *capture) {
    void *b;
    capture->terminal_count = terminals_of(capture->streams[0], capture->terminals, NULL);
    DRAWING_OK(allocator_malloc(capture->allocator, 0, TENSOR_MIB * MIB, capture->streams[0], &b));
    work(capture, 1, "B");
    return b == capture->a;
}

static bool freed_then_joined(struct capture *capture) {
    take_a(capture);
    use_a(capture, 2);
    free_a(capture, 2);
    order(capture, 2, 1);
    work(capture, 1, "work");
    return take_b(capture);
}
static bool just_joined(struct capture *capture) {
    take_a(capture);
    use_a(capture, 2);
    free_a(capture, 2);
    order(capture, 2, 1);
    return take_b(capture);
}
static bool joined_then_freed(struct capture *capture) {
    take_a(capture);
    use_a(capture, 2);
    order(capture, 2, 1);
    work(capture, 1, "work");
    free_a(capture, 2);
    return take_b(capture);
}
static bool freed_before_join(struct capture *capture) {
    take_a(capture);
    use_a(capture, 2);
    free_a(capture, 2);
    work(capture, 1, "work");
    return take_b(capture);
}
static bool not_joined(struct capture *capture) {
    take_a(capture);
    use_a(capture, 2);
    work(capture, 1, "work");
    free_a(capture, 2);
    return take_b(capture);
}
static bool diamond(struct capture *capture, bool whole) {
    take_a(capture);
    use_a(capture, 2);
    use_a(capture, 3);
    free_a(capture, 3);
    order(capture, 2, 1);
    if (whole) order(capture, 3, 1);
    work(capture, 1, "work");
    return take_b(capture);
}
static bool diamond_one_side(struct capture *capture) { return diamond(capture, false); }
static bool diamond_whole(struct capture *capture) { return diamond(capture, true); }
static bool stream_outside(struct capture *capture) {
    take_a(capture);
    DRAWING_OK(allocator_record_stream(capture->allocator, capture->a, capture->streams[1]));
    DRAWING_OK(allocator_free(capture->allocator, capture->a));
    work(capture, 1, "work");
    return take_b(capture);
}

static const struct example {
    const char *name, *words;
    bool (*run)(struct capture *capture);
} examples[] = {
    {"joined", "freed, then joined, work behind it", freed_then_joined},
    {"just_joined", "freed, then joined, nothing behind it yet", just_joined},
    {"joined_then_freed", "joined, work behind it, then freed", joined_then_freed},
    {"before_join", "freed, B before the join", freed_before_join},
    {"unjoined", "the side stream never comes back before B", not_joined},
    {"diamond_one", "a diamond: used on two streams, one joined", diamond_one_side},
    {"diamond", "a diamond: used on two streams, both joined", diamond_whole},
    {"outside", "used on a stream that is not captured", stream_outside},
};
#define EXAMPLE_COUNT (sizeof examples / sizeof *examples)

static void print_examples(void) {
    printf(
        "B after A                                       off  first form  graph-wide  current\n");
    for (size_t index = 0; index < EXAMPLE_COUNT; ++index) {
        printf("%-44s", examples[index].words);
        static const int widths[FORM_COUNT] = {7, 12, 12, 9};
        for (int form = 0; form < FORM_COUNT; ++form) {
            struct capture capture;
            capture_begin(&capture, (enum form)form);
            printf("%*s", widths[form], examples[index].run(&capture) ? "A's" : "new");
            (void)capture_end(&capture);
        }
        putchar('\n');
    }
}

static void print_events(void) {
    struct capture capture;
    cudaEvent_t event;
    capture_begin(&capture, OFF);
    launch(&capture, 1, "work");
    DRAWING_CALL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    DRAWING_CALL(cudaEventRecord(event, capture.streams[0]));
    cudaGraph_t graph;
    const cudaError_t error = cudaEventQuery(event);
    printf("cudaEventQuery of an event of a capture: %s\n", cudaGetErrorName(error));
    (void)cudaGetLastError();
    const cudaError_t end = cudaStreamEndCapture(capture.streams[0], &graph);
    printf("cudaStreamEndCapture after it:           %s\n", cudaGetErrorName(end));
    (void)cudaGetLastError();
    DRAWING_CALL(cudaEventDestroy(event));
    DRAWING_OK(cca_capture_end(capture.allocator, 0, capture.id));
    DRAWING_OK(cca_pool_end(capture.allocator, 0, pool_id));
    allocator_destroy(capture.allocator);
}

// A program that joins its streams and frees A last, and captures nothing more.
static void print_ends(void) {
    printf("joined, then A is freed, then the end of the capture\n");
    for (int form = 0; form < FORM_COUNT; ++form) {
        struct capture capture;
        cudaGraph_t graph;
        capture_begin(&capture, (enum form)form);
        take_a(&capture);
        use_a(&capture, 2);
        order(&capture, 2, 1);
        DRAWING_OK(allocator_free(capture.allocator, capture.a));
        const cudaError_t error = cudaStreamEndCapture(capture.streams[0], &graph);
        (void)cudaGetLastError();
        printf("    %-10s  %3d %s\n", form_names[form], (int)error, cudaGetErrorName(error));
        DRAWING_OK(cca_capture_end(capture.allocator, 0, capture.id));
        DRAWING_OK(cca_pool_end(capture.allocator, 0, pool_id));
        DRAWING_OK(cca_pool_release(capture.allocator, 0, pool_id));
        if (error == cudaSuccess) DRAWING_CALL(cudaGraphDestroy(graph));
        allocator_destroy(capture.allocator);
    }
}

//------------------------------------------------------------------------------------------------
// The graphs, one fact a line: what a node is, what it comes behind, what marks the end of A's
// uses, what B's request comes behind.

static int number_of(const struct capture *capture, cudaGraphNode_t node) {
    for (int index = 0; index < capture->node_count; ++index)
        if (capture->nodes[index].node == node) return index;
    return -1;
}

static void print_graph(const struct example *example, enum form form) {
    struct capture capture;
    capture_begin(&capture, form);
    const bool reused = example->run(&capture);
    const char *const form_name = form == MARKERS ? "first" : "current";
    const char *const name = example->name;
    printf("example,%s,%s,%d,%s\n", name, form_name, reused, example->words);
    for (int index = 0; index < capture.node_count; ++index) {
        const struct node *const node = &capture.nodes[index];
        cudaGraphNode_t before[NODES_MAX];
        size_t count = NODES_MAX;
        printf("node,%s,%s,%d,%d,%s\n", name, form_name, index, node->stream, node->label);
        DRAWING_CALL(cudaGraphNodeGetDependencies(node->node, before, NULL, &count));
        for (size_t edge = 0; edge < count; ++edge)
            printf("edge,%s,%s,%d,%d\n", name, form_name, number_of(&capture, before[edge]), index);
    }
    for (size_t index = 0; index < capture.marker_count && form != MARKERS; ++index)
        printf("marker,%s,%s,%d\n", name, form_name, number_of(&capture, capture.markers[index]));
    for (size_t index = 0; index < capture.terminal_count; ++index)
        printf("terminal,%s,%s,%d\n", name, form_name,
               number_of(&capture, capture.terminals[index]));
    (void)capture_end(&capture);
}

static void print_graphs(void) {
    for (size_t index = 0; index + 1 < EXAMPLE_COUNT; ++index) {
        print_graph(&examples[index], MARKERS);
        print_graph(&examples[index], TERMINALS);
    }
}

//------------------------------------------------------------------------------------------------
// The sweep: a random program in one capture. Each operation is a kernel on one of two streams that
// uses a live tensor; one time in ten a tensor is taken, one is freed, a stream waits for the
// other.

#define LIVE_MAX 4096

struct tensor {
    void *pointer;
    int stream;     // where it was taken, from 0
    uint64_t taken; // when
};

struct sweep {
    int64_t peak_allocated, peak_reserved;
    uint64_t node_count, taken_count;
};

static struct sweep run_sweep(int operations, enum form form) {
    struct capture capture;
    struct sweep sweep = {0};
    struct tensor *const live = malloc(LIVE_MAX * sizeof *live);
    int live_count = 0;
    uint64_t waited[2] = {0}; // until when a stream has waited for the other
    struct base_random random = base_random_init(1, "sweep");
    BASE_CHECK(live != NULL);
    capture_begin(&capture, form);
    launch(&capture, 1, "start");
    order(&capture, 1, 2);
    for (uint64_t now = 1; now <= (uint64_t)operations; ++now) {
        const int stream = (int)base_random_below(&random, 2);
        if (base_random_chance(&random, 0.1)) {
            order(&capture, 2 - stream, 1 + stream);
            waited[stream] = now;
        }
        if (base_random_chance(&random, 0.1) && live_count < LIVE_MAX) {
            struct tensor *const tensor = &live[live_count++];
            *tensor = (struct tensor){.stream = stream, .taken = now};
            DRAWING_OK(allocator_malloc(capture.allocator, 0, TENSOR_MIB * MIB,
                                        capture.streams[stream], &tensor->pointer));
            ++sweep.taken_count;
        }
        launch(&capture, 1 + stream, "operation");
        if (live_count > 0) { // used here if the stream comes behind its allocation
            const struct tensor *const tensor =
                &live[base_random_below(&random, (uint64_t)live_count)];
            if (tensor->stream != stream && tensor->taken < waited[stream])
                DRAWING_OK(allocator_record_stream(capture.allocator, tensor->pointer,
                                                   capture.streams[stream]));
        }
        if (base_random_chance(&random, 0.1) && live_count > 0) {
            struct tensor *const tensor = &live[base_random_below(&random, (uint64_t)live_count)];
            DRAWING_OK(allocator_free(capture.allocator, tensor->pointer));
            *tensor = live[--live_count];
        }
    }
    struct allocator_stats stats;
    DRAWING_OK(allocator_stats(capture.allocator, 0, &stats));
    sweep.peak_allocated = stats.allocated_bytes[ALLOCATOR_STAT_ALL].peak;
    sweep.peak_reserved = stats.reserved_bytes[ALLOCATOR_STAT_ALL].peak;
    sweep.node_count = capture_end(&capture);
    free(live);
    return sweep;
}

static void print_sweep(void) {
    printf("operations  reuse       nodes  tensors  allocated MiB  reserved MiB\n");
    static const int sizes[] = {1000, 10000};
    for (int size = 0; size < 2; ++size)
        for (int form = 0; form < FORM_COUNT; ++form) {
            if (form == GRAPH_WIDE) continue;
            const struct sweep sweep = run_sweep(sizes[size], (enum form)form);
            printf("%10d  %-10s  %5llu  %7llu  %13lld  %12lld\n", sizes[size], form_names[form],
                   (unsigned long long)sweep.node_count, (unsigned long long)sweep.taken_count,
                   (long long)(sweep.peak_allocated / (int64_t)BASE_MIB),
                   (long long)(sweep.peak_reserved / (int64_t)BASE_MIB));
        }
}

//------------------------------------------------------------------------------------------------
// What a request costs: forks and joins until the graph has so many nodes, then the questions of
// one more round. A round's tensor is used on both streams and freed.

static void do_round(struct capture *capture) {
    void *tensor;
    DRAWING_OK(
        allocator_malloc(capture->allocator, 0, TENSOR_MIB * MIB, capture->streams[0], &tensor));
    launch(capture, 1, "make");
    order(capture, 1, 2);
    launch(capture, 2, "use");
    DRAWING_OK(allocator_record_stream(capture->allocator, tensor, capture->streams[1]));
    DRAWING_OK(allocator_free(capture->allocator, tensor));
    order(capture, 2, 1);
}

static uint64_t questions_at(enum form form, int nodes) {
    struct capture capture;
    capture_begin(&capture, form);
    for (int round = 0; round < nodes / 2; ++round)
        do_round(&capture);
    questions = 0;
    do_round(&capture);
    const uint64_t asked = questions;
    (void)capture_end(&capture);
    return asked;
}

static void print_costs(void) {
    printf("nodes captured before  off  first form  current\n");
    for (int nodes = 10; nodes <= 1000; nodes *= 10)
        printf("%21d  %3llu  %10llu  %7llu\n", nodes, (unsigned long long)questions_at(OFF, nodes),
               (unsigned long long)questions_at(MARKERS, nodes),
               (unsigned long long)questions_at(TERMINALS, nodes));
}

static void print_cost_points(void) {
    static const int sizes[] = {10, 30, 100, 300, 1000};
    printf("form,nodes,questions\n");
    for (int form = MARKERS; form <= TERMINALS; form += TERMINALS - MARKERS)
        for (size_t index = 0; index < sizeof sizes / sizeof *sizes; ++index)
            printf("%s,%d,%llu\n", form_names[form], sizes[index],
                   (unsigned long long)questions_at((enum form)form, sizes[index]));
}

int main(int argc, char **argv) {
    static const struct base_program program = {
        .name = "capture_reuse",
        .arguments = "[graphs|costs]",
        .summary =
            "When a block that was freed in a graph capture may be used again in it: tables, "
            "or what a picture is drawn of.",
        .argument_count_maximum = 1,
    };
    struct base_common common = BASE_COMMON_DEFAULTS;
    base_options_parse(&program, argc, argv, &common);
    const char *const what = common.argument_count > 0 ? common.arguments[0] : "";
    if (strcmp(what, "graphs") == 0) {
        print_graphs();
    } else if (strcmp(what, "costs") == 0) {
        print_cost_points();
    } else if (common.argument_count > 0) {
        base_options_usage_error(&program, "'%s' is unknown: write graphs, costs or nothing", what);
    } else {
        print_events();
        print_examples();
        print_ends();
        print_sweep();
        print_costs();
    }
    return 0;
}
