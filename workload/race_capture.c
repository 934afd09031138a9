// See race_capture.h. The program knows of each block the stream that touched it last; who touches
// it next comes behind that. Of a graph's blocks it knows this inside the capture; behind it, the
// last to touch them is the stream of the graph's last launch.
#include "workload/race_capture.h"

#include "allocator/captures.h"
#include "allocator/cca.h"
#include "base/check.h"
#include "base/random.h"
#include "base/size.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"
#include "workload/race_blocks.h"
#include "workload/race_work.h"

#include <string.h>

#define STREAMS 6
#define CAPTURE_STREAMS 4 // the first ones; the others never capture
#define BLOCKS 16
#define GRAPHS 3
#define ROUNDS 10
#define CAPTURE_STEPS 70
#define EAGER_STEPS 30
#define MISSED_STREAM 2 // WORKLOAD_RACE_MISSES_STREAM
#define CAPACITY (768 * BASE_MIB)

#define CHECK_CUDA(call) BASE_CHECK_EQ(call, cudaSuccess)

struct block {
    struct workload_race_bytes bytes; // without a pointer: free
    int owner, last;                  // streams: the one it was taken for, the last that touched it
    bool is_shared;                   // other streams used it
    bool is_kept;                     // not touched until the capture has ended
    unsigned char captured_value;     // of a graph's: what a launch leaves in it
};

struct pool {
    struct allocator_pool_id id;
    int last;          // the stream of the last launch of one of its graphs; -1: none yet
    uint64_t captures; // so far
    int graph_count;   // that live
};

struct graph {
    bool is_live;
    struct pool *pool;
    uint64_t order; // in its pool: later ones may have what it freed
    _Atomic(unsigned long long) captured;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    struct block blocks[BLOCKS]; // those that outlived the capture
};

struct program {
    const struct workload_race_capture *options;
    struct workload_race_found *found;
    struct allocator *caching, *allocator; // the second tells the checker
    struct base_random random;
    cudaStream_t streams[STREAMS];
    cudaEvent_t event;
    struct block eager[BLOCKS];
    struct graph graphs[GRAPHS];
    struct pool pools[GRAPHS];
    uint64_t pool_number;
    // Of the capture that is under way.
    bool is_capturing;
    bool takes;                         // a block is being taken in the capture
    bool beside;                        // others may allocate
    int deferred[CAPTURE_STREAMS];      // blocks with uses that were freed, by their own stream
    cudaEvent_t later[CAPTURE_STREAMS]; // what was unjoined, to be joined at the end
    bool is_later[CAPTURE_STREAMS];
};

static bool chance(struct program *program, double probability) {
    return base_random_chance(&program->random, probability);
}

static int below(struct program *program, int limit) {
    return (int)base_random_below(&program->random, (uint64_t)limit);
}

//--------------------------------------------------------------------------------------------------
// Blocks.

static void behind(struct program *program, int stream, int other) {
    if (stream == other)
        return;
    CHECK_CUDA(cudaEventRecord(program->event, program->streams[other]));
    CHECK_CUDA(cudaStreamWaitEvent(program->streams[stream], program->event, 0));
}

static void write_block(struct program *program, struct block *block, int stream) {
    workload_race_write(&block->bytes, (unsigned char)below(program, 256),
                        program->streams[stream]);
}

// False: there is no memory.
static bool take_sized(struct program *program, struct block *block, int owner, size_t size) {
    void *pointer = NULL;
    program->takes = program->is_capturing && owner < CAPTURE_STREAMS;
    const enum base_status status =
        allocator_malloc(program->allocator, 0, size, program->streams[owner], &pointer);
    program->takes = false;
    if (status == BASE_OUT_OF_MEMORY)
        return false;
    if (status != BASE_OK)
        base_check_context("%s", base_status_message());
    BASE_CHECK_EQ(status, BASE_OK);
    *block = (struct block){.bytes = {pointer, size, 0}, .owner = owner, .last = owner};
    write_block(program, block, owner);
    return true;
}

static void take(struct program *program, struct block *block, int owner) {
    (void)take_sized(program, block, owner,
                     base_random_log_between(&program->random, 1, 24 * BASE_MIB));
}

static void give(struct program *program, struct block *block) {
    if (program->is_capturing && block->is_shared && block->owner < CAPTURE_STREAMS)
        program->deferred[block->owner]++;
    BASE_CHECK_EQ(allocator_free(program->allocator, block->bytes.pointer), BASE_OK);
    block->bytes.pointer = NULL;
}

static void record(struct program *program, struct block *block, int stream) {
    const enum workload_race_plant plant = program->options->plant;
    if (stream == block->owner)
        return;
    block->is_shared = true;
    if (plant == WORKLOAD_RACE_FORGETS_USES ||
        (plant == WORKLOAD_RACE_MISSES_STREAM && stream == MISSED_STREAM))
        return;
    BASE_CHECK_EQ(
        allocator_record_stream(program->allocator, block->bytes.pointer, program->streams[stream]),
        BASE_OK);
}

static void use(struct program *program, struct block *block, int stream) {
    behind(program, stream, block->last);
    block->last = stream;
    if (chance(program, 0.5))
        workload_race_read(&block->bytes, program->streams[stream]);
    else
        write_block(program, block, stream);
    record(program, block, stream);
}

//--------------------------------------------------------------------------------------------------
// Work that no graph captures.

// A stream that is not of the capture.
static int eager_stream(struct program *program) {
    return program->is_capturing ? CAPTURE_STREAMS + below(program, STREAMS - CAPTURE_STREAMS)
                                 : below(program, STREAMS);
}

// While streams capture, what they touched before can be freed and nothing else.
static void eager_step(struct program *program) {
    struct block *const block = &program->eager[below(program, BLOCKS)];
    if (block->bytes.pointer == NULL)
        take(program, block, eager_stream(program));
    else if (chance(program, 0.4))
        give(program, block);
    else if (!program->is_capturing || block->last >= CAPTURE_STREAMS)
        use(program, block, eager_stream(program));
    if (!program->is_capturing && chance(program, 0.03))
        BASE_CHECK_EQ(allocator_empty_cache(program->allocator), BASE_OK);
}

//--------------------------------------------------------------------------------------------------
// Graphs that are done.

static bool is_launchable(const struct program *program, const struct graph *graph) {
    if (!graph->is_live)
        return false;
    // Blocks of a later capture may lie where this one had some that it freed.
    for (int index = 0; index < GRAPHS; index++) {
        const struct graph *const other = &program->graphs[index];
        if (!other->is_live || other->pool != graph->pool || other->order <= graph->order)
            continue;
        for (int block = 0; block < BLOCKS; block++)
            if (other->blocks[block].bytes.pointer != NULL)
                return false;
    }
    return true;
}

static void launch(struct program *program, struct graph *graph) {
    const int stream = below(program, STREAMS);
    if (!is_launchable(program, graph))
        return;
    for (int index = 0; index < BLOCKS; index++) {
        struct block *const block = &graph->blocks[index];
        if (block->bytes.pointer == NULL)
            continue;
        if (block->last >= 0)
            behind(program, stream, block->last);
        block->last = stream;
        block->bytes.value = block->captured_value;
        record(program, block, stream);
    }
    if (graph->pool->last >= 0)
        behind(program, stream, graph->pool->last);
    graph->pool->last = stream;
    CHECK_CUDA(cudaGraphLaunch(graph->exec, program->streams[stream]));
    program->found->launches++;
}

// What a launch left is used, and at last freed, like any other block.
static void output_step(struct program *program, struct graph *graph) {
    struct block *const block = &graph->blocks[below(program, BLOCKS)];
    if (!graph->is_live || block->bytes.pointer == NULL || block->last < 0)
        return;
    if (chance(program, 0.2)) {
        // The graph goes on writing there, and who has the memory next is a capture of its pool.
        behind(program, graph->pool->last, block->last);
        give(program, block);
    } else {
        use(program, block, eager_stream(program));
    }
}

static void destroy(struct program *program, struct graph *graph) {
    if (!graph->is_live)
        return;
    CHECK_CUDA(cudaDeviceSynchronize());
    for (int index = 0; index < BLOCKS; index++)
        if (graph->blocks[index].bytes.pointer != NULL)
            give(program, &graph->blocks[index]);
    CHECK_CUDA(cudaGraphExecDestroy(graph->exec));
    CHECK_CUDA(cudaGraphDestroy(graph->graph));
    BASE_CHECK_EQ(cca_pool_release(program->caching, 0, graph->pool->id), BASE_OK);
    graph->pool->graph_count--;
    graph->is_live = false;
}

//--------------------------------------------------------------------------------------------------
// A capture.

static struct cudaStreamCapture {
    bool is_active;
    cudaGraphNode_t nodes[64];
    size_t count;
} capture_of(cudaStream_t stream) {
    struct cudaStreamCapture capture = {0};
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *nodes;
    CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, &nodes, NULL, &capture.count));
    capture.is_active = status == cudaStreamCaptureStatusActive;
    if (!capture.is_active)
        return capture;
    BASE_CHECK_LE(capture.count, sizeof capture.nodes / sizeof capture.nodes[0]);
    if (capture.count > 0) memcpy(capture.nodes, nodes, capture.count * sizeof *nodes);
    return capture;
}

static bool captures(const struct program *program, int stream) {
    return capture_of(program->streams[stream]).is_active;
}

// A stream joins another one and takes that back: what it captures next does not come behind the
// other's work. A block that the other one used must not come back to it.
static void unjoin(struct program *program, struct graph *graph, int stream, int other) {
    struct block *const block = &graph->blocks[below(program, BLOCKS)];
    struct block *const kept = &graph->blocks[below(program, BLOCKS)];
    if (stream == other || block == kept || block->bytes.pointer != NULL ||
        kept->bytes.pointer != NULL || program->deferred[stream] > 0 || program->is_later[stream])
        return;
    const size_t size = 512 * (size_t)(1 + below(program, 4096));
    if (!take_sized(program, block, stream, size))
        return;
    const struct cudaStreamCapture before = capture_of(program->streams[stream]);
    use(program, block, other);
    behind(program, stream, other);
    // The allocator sees the join, and the work behind it stays away from all else until the end.
    kept->is_kept = take_sized(program, kept, stream, 4096);
    CHECK_CUDA(cudaEventRecord(program->later[stream], program->streams[stream]));
    program->is_later[stream] = true;
    cudaGraphNode_t nodes[64];
    memcpy(nodes, before.nodes, sizeof nodes);
    CHECK_CUDA(cudaStreamUpdateCaptureDependencies(program->streams[stream], nodes, NULL,
                                                   before.count, cudaStreamSetCaptureDependencies));
    give(program, block);
    (void)take_sized(program, block, stream, size);
}

static void capture_step(struct program *program, struct graph *graph) {
    struct block *const block = &graph->blocks[below(program, BLOCKS)];
    const int stream = below(program, CAPTURE_STREAMS);
    const int other = below(program, CAPTURE_STREAMS);
    if (program->beside && chance(program, 0.15)) {
        eager_step(program);
    } else if (chance(program, 0.08)) {
        if (captures(program, other))
            behind(program, stream, other);
    } else if (program->options->unjoins && chance(program, 0.2)) {
        if (captures(program, stream) && captures(program, other))
            unjoin(program, graph, stream, other);
    } else if (block->is_kept) {
        return;
    } else if (block->bytes.pointer == NULL) {
        if (captures(program, stream))
            take(program, block, stream);
    } else if (chance(program, 0.4)) {
        give(program, block);
    } else {
        use(program, block, stream);
    }
}

static void join_all(struct program *program) {
    for (int stream = 0; stream < CAPTURE_STREAMS; stream++) {
        if (stream > 0 && captures(program, stream))
            behind(program, 0, stream);
        if (program->is_later[stream])
            CHECK_CUDA(cudaStreamWaitEvent(program->streams[0], program->later[stream], 0));
        program->is_later[stream] = false;
        program->deferred[stream] = 0;
    }
}

static struct pool *pool_pick(struct program *program) {
    struct pool *const shared = &program->pools[below(program, GRAPHS)];
    if (shared->graph_count > 0 && chance(program, 0.5))
        return shared;
    for (int index = 0; index < GRAPHS; index++) {
        struct pool *const pool = &program->pools[index];
        if (pool->graph_count > 0)
            continue;
        *pool = (struct pool){.id = {.capture = ++program->pool_number}, .last = -1};
        return pool;
    }
    return shared;
}

static void begin(struct program *program, struct graph *graph) {
    const struct cca_pool_filter filter = cca_capture_filter(&graph->captured);
    unsigned long long id;
    enum cudaStreamCaptureStatus status;
    graph->captured = 0;
    BASE_CHECK_EQ(cca_pool_begin(program->caching, 0, graph->pool->id, &filter), BASE_OK);
    CHECK_CUDA(cudaStreamBeginCapture(program->streams[0], program->beside
                                                               ? cudaStreamCaptureModeRelaxed
                                                               : cudaStreamCaptureModeGlobal));
    CHECK_CUDA(cudaStreamGetCaptureInfo(program->streams[0], &status, &id, NULL, NULL, NULL, NULL));
    graph->captured = id;
    BASE_CHECK_EQ(cca_capture_begin(program->caching, 0,
                                    &(struct cca_capture){.id = id, .stream = program->streams[0]}),
                  BASE_OK);
}

static void end(struct program *program, struct graph *graph) {
    CHECK_CUDA(cudaStreamEndCapture(program->streams[0], &graph->graph));
    BASE_CHECK_EQ(cca_capture_end(program->caching, 0, graph->captured), BASE_OK);
    BASE_CHECK_EQ(cca_pool_end(program->caching, 0, graph->pool->id), BASE_OK);
    CHECK_CUDA(cudaGraphInstantiate(&graph->exec, graph->graph, 0));
}

static void capture(struct program *program, struct graph *graph) {
    destroy(program, graph);
    memset(graph->blocks, 0, sizeof graph->blocks);
    graph->pool = pool_pick(program);
    graph->order = graph->pool->captures++;
    graph->pool->graph_count++;
    program->beside = !program->options->alone && chance(program, 0.5);
    begin(program, graph);
    program->is_capturing = true;
    for (int step = 0; step < CAPTURE_STEPS; step++)
        capture_step(program, graph);
    join_all(program);
    program->is_capturing = false;
    end(program, graph);
    graph->is_live = true;
    program->found->captures++;
    for (int index = 0; index < BLOCKS; index++) {
        struct block *const block = &graph->blocks[index];
        block->last = -1; // nothing ran yet
        block->is_kept = false;
        block->captured_value = block->bytes.value;
    }
    cca_check(program->caching);
}

//--------------------------------------------------------------------------------------------------
// The whole.

static void round_of(struct program *program) {
    capture(program, &program->graphs[below(program, GRAPHS)]);
    for (int step = 0; step < EAGER_STEPS; step++) {
        struct graph *const graph = &program->graphs[below(program, GRAPHS)];
        if (chance(program, 0.2))
            launch(program, graph);
        else if (chance(program, 0.3))
            output_step(program, graph);
        else
            eager_step(program);
    }
}

static void observe(void *context, const struct allocator_event *event) {
    struct program *const program = context;
    program->found->proven += program->takes && event->action == ALLOCATOR_FREE_COMPLETED;
}

static void setup(struct program *program) {
    const struct workload_race_capture *const options = program->options;
    BASE_CHECK_EQ(sim_schedule(options->schedule), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = CAPACITY}), BASE_OK);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true, .blocks_only = true}),
                  BASE_OK);
    for (int stream = 0; stream < STREAMS; stream++)
        CHECK_CUDA(cudaStreamCreateWithFlags(&program->streams[stream], cudaStreamNonBlocking));
    CHECK_CUDA(cudaEventCreateWithFlags(&program->event, cudaEventDisableTiming));
    for (int stream = 0; stream < CAPTURE_STREAMS; stream++)
        CHECK_CUDA(cudaEventCreateWithFlags(&program->later[stream], cudaEventDisableTiming));
    BASE_CHECK_EQ(
        cca_allocator_create(&(struct cca_options){.config = options->config}, &program->caching),
        BASE_OK);
    BASE_CHECK_EQ(workload_race_blocks_create(program->caching, &program->allocator), BASE_OK);
    BASE_CHECK_EQ(
        allocator_set_observer(program->allocator, &(struct allocator_observer){observe, program}),
        BASE_OK);
}

static void read_numbers(struct program *program) {
    struct allocator_stats stats;
    BASE_CHECK_EQ(allocator_stats(program->caching, 0, &stats), BASE_OK);
    program->found->reserved_peak = (uint64_t)stats.reserved_bytes[ALLOCATOR_STAT_ALL].peak;
    program->found->reserved_at_end = (uint64_t)stats.reserved_bytes[ALLOCATOR_STAT_ALL].current;
}

void workload_race_capture(const struct workload_race_capture *options,
                           struct workload_race_found *found) {
    static struct program program;
    *found = (struct workload_race_found){0};
    memset(&program, 0, sizeof program);
    program.options = options;
    program.found = found;
    program.random = base_random_init(options->seed, "race capture");
    base_check_context("\"%s\", %s, seed %llu", options->config, options->schedule,
                       (unsigned long long)options->seed);
    setup(&program);
    (void)workload_race_wrong_bytes();
    for (int round = 0; round < ROUNDS; round++)
        round_of(&program);
    for (int graph = 0; graph < GRAPHS; graph++)
        destroy(&program, &program.graphs[graph]);
    for (int index = 0; index < BLOCKS; index++)
        if (program.eager[index].bytes.pointer != NULL)
            give(&program, &program.eager[index]);
    CHECK_CUDA(cudaDeviceSynchronize());
    sim_race_stop();
    BASE_CHECK_EQ(allocator_empty_cache(program.allocator), BASE_OK);
    cca_check(program.caching);
    read_numbers(&program);
    allocator_destroy(program.allocator);
    allocator_destroy(program.caching);
    found->races = sim_race_count(SIM_RACE_RULE_COUNT);
    found->wrong_bytes = workload_race_wrong_bytes();
}
