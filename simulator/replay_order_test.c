// The order of what launches of graphs run: random programs of launches, host functions, events and
// waits, under every schedule, against a closure that is made here item by item; and, for small
// graphs, that every order in which the edges allow the nodes to run comes about for some seed.
#include "base/check.h"
#include "base/random.h"
#include "simulator/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CALL(call) BASE_CHECK_EQ(call, cudaSuccess)

#define NODES_MAX 16
#define EXECS_MAX 3
#define STREAMS 4
#define ITEMS_MAX 24
#define LOG_MAX (ITEMS_MAX * NODES_MAX)
#define ORDERS_MAX 130
#define SEEDS 2000
// The sanitizers' builds are ten times as slow.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define PROGRAMS 30
#define SHAPES 2
#else
#define PROGRAMS 1000
#define SHAPES (sizeof shapes / sizeof shapes[0])
#endif

// A graph: bit J of before[I]: node I depends on node J < I.
struct shape {
    const char *name;
    int count;
    unsigned before[NODES_MAX];
    int orders; // in which the nodes can run, counted on paper; 0: not counted
};

// --- Making executables ---

// What ran: which executable's which node, or (exec -1) which item's host function.
struct entry {
    int exec, node;
};
static struct entry entries[LOG_MAX];
static int entry_count;

static void entry_add(struct entry entry) {
    BASE_CHECK_LT(entry_count, LOG_MAX);
    entries[entry_count++] = entry;
}

static void kernel_note(const void *argument) { entry_add(*(const struct entry *)argument); }

static struct entry names[EXECS_MAX + 1][ITEMS_MAX]; // the last: of items
static void host_note(void *entry) { entry_add(*(const struct entry *)entry); }

static void work_submit(cudaStream_t stream, struct entry *entry, bool kernel) {
    if (kernel)
        CALL(sim_launch(stream, "note", kernel_note, entry, sizeof *entry));
    else
        CALL(cudaLaunchHostFunc(stream, host_note, entry));
}

// Captured, with the dependencies of each node set by hand. With numerics off kernels do not run.
static cudaGraphExec_t exec_make(int exec, const struct shape *shape, unsigned kernels) {
    cudaGraph_t graph;
    cudaGraphExec_t made;
    cudaGraphNode_t nodes[NODES_MAX];
    cudaStream_t stream;
    CALL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    for (int i = 0; i < shape->count; ++i) {
        cudaGraphNode_t dependencies[NODES_MAX];
        const cudaGraphNode_t *last;
        enum cudaStreamCaptureStatus status;
        size_t count = 0;
        for (int j = 0; j < i; ++j)
            if ((shape->before[i] >> j & 1) != 0)
                dependencies[count++] = nodes[j];
        CALL(cudaStreamUpdateCaptureDependencies(stream, dependencies, NULL, count,
                                                 cudaStreamSetCaptureDependencies));
        names[exec][i] = (struct entry){exec, i};
        work_submit(stream, &names[exec][i], (kernels >> i & 1) != 0);
        CALL(cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, &last, NULL, &count));
        BASE_CHECK_EQ(count, 1);
        nodes[i] = last[0];
    }
    CALL(cudaStreamEndCapture(stream, &graph));
    CALL(cudaGraphInstantiate(&made, graph, 0));
    CALL(cudaGraphDestroy(graph));
    CALL(cudaStreamDestroy(stream));
    return made;
}

static void shape_draw(struct shape *shape, struct base_random *random) {
    shape->count = (int)base_random_between(random, 1, NODES_MAX);
    const double density = base_random_unit(random) * 0.6;
    for (int i = 0; i < shape->count; ++i) {
        shape->before[i] = 0;
        for (int j = 0; j < i; ++j)
            if (base_random_chance(random, density))
                shape->before[i] |= 1u << j;
    }
}

// --- Random programs ---

// A launch, or a host function of the program.
struct item {
    int exec; // -1: a host function
    int occurrence;
    uint32_t before; // items that come before it, closed
};

static struct shape drawn[EXECS_MAX];
static struct item items[ITEMS_MAX];
static int item_count;

static struct program {
    struct base_random random;
    cudaStream_t streams[STREAMS]; // legacy, blocking, two that are not
    cudaGraphExec_t execs[EXECS_MAX];
    int exec_count, launch_count[EXECS_MAX];
    uint32_t stream_before[STREAMS]; // what the stream's next item comes after
    uint32_t exec_before[EXECS_MAX];
    uint32_t host_before; // what the host has waited for
    bool held[STREAMS];
} program;

static bool is_blocking(int stream) { return stream == 1; }

static uint32_t closed(int item) { return items[item].before | 1u << item; }

// Work of STREAM: behind what the stream and the host came after, the legacy stream's own rules
// included. Returns those.
static uint32_t stream_knows(int stream) {
    uint32_t before = program.stream_before[stream] | program.host_before;
    if (stream == 0)
        before |= program.stream_before[1];
    else if (is_blocking(stream))
        before |= program.stream_before[0];
    return before;
}

static void item_add(int stream, int exec) {
    struct item *item = &items[item_count];
    *item = (struct item){.exec = exec, .before = stream_knows(stream)};
    if (exec >= 0) {
        item->occurrence = program.launch_count[exec]++;
        item->before |= program.exec_before[exec];
        CALL(cudaGraphLaunch(program.execs[exec], program.streams[stream]));
        program.exec_before[exec] = closed(item_count);
    } else {
        names[EXECS_MAX][item_count] = (struct entry){-1, item_count};
        CALL(cudaLaunchHostFunc(program.streams[stream], host_note,
                                &names[EXECS_MAX][item_count]));
    }
    program.stream_before[stream] = closed(item_count++);
}

static void edge_add(int from, int to) {
    cudaEvent_t event;
    CALL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CALL(cudaEventRecord(event, program.streams[from]));
    CALL(cudaStreamWaitEvent(program.streams[to], event, 0));
    CALL(cudaEventDestroy(event));
    program.stream_before[to] |= program.stream_before[from];
}

static void synchronize(int stream) {
    CALL(cudaStreamSynchronize(program.streams[stream]));
    program.host_before |= program.stream_before[stream];
    if (stream == 0)
        program.host_before |= program.stream_before[1];
}

static void hold(int stream) {
    program.held[stream] = !program.held[stream];
    sim_stream_hold(program.streams[stream], program.held[stream]);
}

static void step(void) {
    struct base_random *random = &program.random;
    const int stream = (int)base_random_below(random, STREAMS);
    switch (base_random_below(random, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4: item_add(stream, (int)base_random_below(random, (uint64_t)program.exec_count)); break;
    case 5:
    case 6: item_add(stream, -1); break;
    case 7:
    case 8: edge_add(2 + stream % 2, 3 - stream % 2); break;
    case 9: hold(stream); break;
    case 10: sim_stream_run(program.streams[stream], base_random_between(random, 1, 3)); break;
    case 11: synchronize(stream); break;
    }
}

static int occurrence_item(int exec, int occurrence) {
    for (int i = 0; i < item_count; ++i)
        if (items[i].exec == exec && items[i].occurrence == occurrence)
            return i;
    return -1;
}

// Every entry belongs to an item: a node's K-th entry to the K-th launch of its executable, which
// is right if launches of one executable come one after the other, and that is checked with the
// rest.
static void log_check(void) {
    int seen[EXECS_MAX][NODES_MAX] = {{0}};
    int first[ITEMS_MAX], last[ITEMS_MAX], ran[ITEMS_MAX] = {0};
    int place[ITEMS_MAX][NODES_MAX];
    for (int i = 0; i < item_count; ++i)
        first[i] = LOG_MAX, last[i] = -1;
    for (int at = 0; at < entry_count; ++at) {
        const struct entry entry = entries[at];
        const int item = entry.exec < 0
                             ? entry.node
                             : occurrence_item(entry.exec, seen[entry.exec][entry.node]++);
        BASE_CHECK_GE(item, 0);
        if (entry.exec >= 0)
            place[item][entry.node] = at;
        first[item] = at < first[item] ? at : first[item];
        last[item] = at;
        ++ran[item];
    }
    for (int i = 0; i < item_count; ++i) {
        BASE_CHECK_EQ(ran[i], items[i].exec < 0 ? 1 : drawn[items[i].exec].count);
        for (int j = 0; j < item_count; ++j)
            if ((items[i].before >> j & 1) != 0)
                BASE_CHECK_LT(last[j], first[i]);
        for (int node = 0; items[i].exec >= 0 && node < drawn[items[i].exec].count; ++node)
            for (int former = 0; former < node; ++former)
                if ((drawn[items[i].exec].before[node] >> former & 1) != 0)
                    BASE_CHECK_LT(place[i][former], place[i][node]);
    }
}

static void program_run(uint64_t seed, const char *schedule, bool kernels) {
    char text[40];
    snprintf(text, sizeof text, "%s%.0" PRIu64, schedule,
             strcmp(schedule, "random:") == 0 ? seed + 1 : 0);
    base_check_context("seed %" PRIu64 ", schedule %s", seed, text);
    BASE_CHECK_EQ(sim_schedule(text), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = kernels ? SIM_NUMERICS_ON
                                                                          : SIM_NUMERICS_OFF,
                                                      .capacity_bytes = (uint64_t)1 << 30}),
                  BASE_OK);
    memset(&program, 0, sizeof program);
    program.random = base_random_init(seed, "program");
    program.exec_count = (int)base_random_between(&program.random, 1, EXECS_MAX);
    entry_count = item_count = 0;
    for (int i = 0; i < program.exec_count; ++i) {
        shape_draw(&drawn[i], &program.random);
        program.execs[i] =
            exec_make(i, &drawn[i], kernels ? (unsigned)base_random_next(&program.random) : 0);
    }
    program.streams[0] = NULL;
    CALL(cudaStreamCreate(&program.streams[1]));
    for (int i = 2; i < STREAMS; ++i)
        CALL(cudaStreamCreateWithFlags(&program.streams[i], cudaStreamNonBlocking));
    while (item_count < ITEMS_MAX)
        step();
    // Executables and streams may go while launches are pending.
    for (int i = 0; i < program.exec_count; ++i)
        CALL(cudaGraphExecDestroy(program.execs[i]));
    for (int i = 1; i < STREAMS; ++i)
        CALL(cudaStreamDestroy(program.streams[i]));
    CALL(cudaDeviceSynchronize());
    log_check();
}

static void every_schedule_keeps_edges_streams_and_executables_in_order(void) {
    static const char *const schedules[] = {"eager", "lazy", "timed", "random:"};
    for (uint64_t seed = 0; seed < PROGRAMS; ++seed)
        for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; ++i)
            program_run(seed, schedules[i], seed % 4 == 0);
    base_check_context(NULL);
}

// --- All orders ---

static const struct shape shapes[] = {
    {"diamond", 4, {0, 1, 1, 6}, 2},
    {"three apart", 3, {0, 0, 0}, 6},
    {"two chains of two", 4, {0, 0, 1, 2}, 6},
    {"four apart", 4, {0, 0, 0, 0}, 24},
    {"an N", 4, {0, 0, 3, 2}, 5},
    {"a fork into three", 4, {0, 1, 1, 1}, 6},
    {"two chains of three", 6, {0, 0, 1, 2, 4, 8}, 20},
    {"a join of three", 4, {0, 0, 0, 7}, 6},
};

static char orders[ORDERS_MAX][NODES_MAX + 1];
static int order_count;

static void order_note(void) {
    char order[NODES_MAX + 1];
    for (int i = 0; i < entry_count; ++i)
        order[i] = (char)((entries[i].exec == 0 ? 'a' : 'A') + entries[i].node);
    order[entry_count] = '\0';
    for (int i = 0; i < order_count; ++i)
        if (strcmp(orders[i], order) == 0)
            return;
    BASE_CHECK_LT(order_count, ORDERS_MAX);
    strcpy(orders[order_count++], order);
}

// By trying all.
static int orders_count(const struct shape *shape, unsigned done) {
    if (done == (1u << shape->count) - 1)
        return 1;
    int count = 0;
    for (int i = 0; i < shape->count; ++i)
        if ((done >> i & 1) == 0 && (shape->before[i] & ~done) == 0)
            count += orders_count(shape, done | 1u << i);
    return count;
}

static void wait_by_synchronize(cudaStream_t stream) { CALL(cudaStreamSynchronize(stream)); }
static void wait_by_queries(cudaStream_t stream) {
    while (cudaStreamQuery(stream) != cudaSuccess)
        continue;
    cudaGetLastError();
}
// The launch runs as one item of a held stream.
static void wait_by_run(cudaStream_t stream) {
    sim_stream_hold(stream, true);
    sim_stream_run(stream, 1);
    BASE_CHECK_EQ(sim_stream_pending(stream), 0);
    sim_stream_hold(stream, false);
}

static void machine_start(const char *schedule, uint64_t seed) {
    char text[40];
    snprintf(text, sizeof text, schedule, seed);
    BASE_CHECK_EQ(sim_schedule(text), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}), BASE_OK);
    entry_count = 0;
}

static void shape_reaches_all(const struct shape *shape, void (*wait)(cudaStream_t stream),
                              bool held) {
    const int want = orders_count(shape, 0);
    BASE_CHECK_EQ(want, shape->orders);
    order_count = 0;
    for (uint64_t seed = 0; seed < SEEDS && order_count < want; ++seed) {
        cudaStream_t stream;
        machine_start("random:%" PRIu64, seed);
        CALL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        cudaGraphExec_t exec = exec_make(0, shape, 0);
        sim_stream_hold(stream, held);
        CALL(cudaGraphLaunch(exec, stream));
        wait(stream);
        BASE_CHECK_EQ(entry_count, shape->count);
        order_note();
    }
    base_check_context("%s", shape->name);
    BASE_CHECK_EQ(order_count, want);
    base_check_context(NULL);
}

static void every_order_of_a_small_graph_is_reached(void) {
    for (size_t i = 0; i < SHAPES; ++i) {
        shape_reaches_all(&shapes[i], wait_by_synchronize, false);
        shape_reaches_all(&shapes[i], wait_by_queries, false);
        shape_reaches_all(&shapes[i], wait_by_run, true);
    }
}

// Two executables in two streams: two and two nodes in chains, six ways to mix them.
static void every_mix_of_two_launches_is_reached(void) {
    static const struct shape chain = {"a chain of two", 2, {0, 1}, 1};
    order_count = 0;
    for (uint64_t seed = 0; seed < SEEDS && order_count < 6; ++seed) {
        cudaStream_t streams[2];
        machine_start("random:%" PRIu64, seed);
        for (int i = 0; i < 2; ++i) {
            CALL(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
            CALL(cudaGraphLaunch(exec_make(i, &chain, 0), streams[i]));
        }
        CALL(cudaDeviceSynchronize());
        order_note();
    }
    BASE_CHECK_EQ(order_count, 6);
}

static void the_same_seed_runs_the_same_order(void) {
    struct entry before[LOG_MAX];
    for (uint64_t seed = 0; seed < 20; ++seed) {
        int count = 0;
        for (int time = 0; time < 2; ++time) {
            cudaStream_t stream;
            machine_start("random:%" PRIu64, seed);
            CALL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            cudaGraphExec_t exec = exec_make(0, &shapes[3], 0);
            for (int i = 0; i < 5; ++i)
                CALL(cudaGraphLaunch(exec, stream));
            CALL(cudaStreamSynchronize(stream));
            if (time == 1)
                BASE_CHECK(count == entry_count &&
                           memcmp(before, entries, (size_t)count * sizeof *entries) == 0);
            count = entry_count;
            memcpy(before, entries, (size_t)count * sizeof *entries);
        }
    }
}

int main(void) {
    every_schedule_keeps_edges_streams_and_executables_in_order();
    every_order_of_a_small_graph_is_reached();
    every_mix_of_two_launches_is_reached();
    the_same_seed_runs_the_same_order();
}
