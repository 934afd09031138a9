// Reuse inside a capture, each rule beside a transitive closure that is computed from the graph's
// edges by brute force, over random programs: streams fork and join, use blocks, free and allocate,
// and now and then replace their dependencies.
//
// A block may be used again on stream S when every node that used it comes before what S captures
// next. No rule may say so when the closure does not (sound); how often it says so when the closure
// does is printed (as good as can be: 100 %).
//
//     bazel run //allocator:capture_reuse_test -- 10000
#include "allocator/capture_markers.h"
#include "allocator/capture_reuse.h"
#include "base/check.h"
#include "base/random.h"
#include "simulator/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS_MAX 6
#define EVENTS_MAX 8
#define BLOCKS_MAX 8
#define NODES_MAX 512
#define WORDS (NODES_MAX / 64)

enum rule { RULE_PRESENT, RULE_MARKERS, RULE_MARKERS_GRAPH_WIDE, RULE_COUNT };
static const char *const rule_names[RULE_COUNT] = {"present form", "markers, per stream",
                                                   "markers, graph-wide"};

// Wrong on purpose: the closure must notice.
enum plant { PLANT_NONE, PLANT_STALE, PLANT_MISSING_STREAM, PLANT_ONE_STREAM, PLANT_COUNT };

struct block {
    bool is_live, is_waiting;
    bool was_safe;         // at an allocation on its stream
    int stream;            // its own
    uint32_t used_by;      // bits of other streams
    uint64_t users[WORDS]; // nodes
    uint64_t freed_as;     // the how manieth
    uint32_t ticket;
};

struct program {
    enum rule rule;
    enum plant plant;
    struct base_random random;
    cudaStream_t streams[STREAMS_MAX];
    int stream_count;
    cudaEvent_t events[EVENTS_MAX];
    bool is_recorded[EVENTS_MAX];
    struct block blocks[BLOCKS_MAX];
    struct cca__capture_reuse reuse;
    struct cca__capture_markers markers;
    // The referee's picture of the graph.
    cudaGraphNode_t nodes[NODES_MAX];
    size_t node_count;
    uint64_t before[NODES_MAX][WORDS]; // nodes that come before each, itself included
    uint64_t frees, proven, unsound, safe;
};

static void noop(const void *argument) { (void)argument; }

#define CHECK_CUDA(call) BASE_CHECK_EQ(call, cudaSuccess)

//------------------------------------------------------------------------------------------------
// The referee.

static size_t node_number(struct program *program, cudaGraphNode_t node) {
    for (size_t index = 0; index < program->node_count; ++index)
        if (program->nodes[index] == node) return index;
    BASE_CHECK(!"a node of the graph");
    return 0;
}

static bool merge_into(uint64_t *row, const uint64_t *other) {
    bool changed = false;
    for (size_t word = 0; word < WORDS; ++word) {
        changed |= (other[word] & ~row[word]) != 0;
        row[word] |= other[word];
    }
    return changed;
}

static void read_nodes(struct program *program, cudaGraph_t graph) {
    program->node_count = NODES_MAX;
    CHECK_CUDA(cudaGraphGetNodes(graph, program->nodes, &program->node_count));
}

// Reads all nodes and edges, and relaxes until nothing changes.
static void close_graph(struct program *program, cudaGraph_t graph) {
    static cudaGraphNode_t from[NODES_MAX * 8], to[NODES_MAX * 8];
    static cudaGraphEdgeData data[NODES_MAX * 8];
    size_t edge_count = NODES_MAX * 8;
    read_nodes(program, graph);
    CHECK_CUDA(cudaGraphGetEdges(graph, from, to, data, &edge_count));
    memset(program->before, 0, sizeof program->before);
    for (size_t node = 0; node < program->node_count; ++node)
        program->before[node][node / 64] |= (uint64_t)1 << node % 64;
    static size_t from_number[NODES_MAX * 8], to_number[NODES_MAX * 8];
    for (size_t edge = 0; edge < edge_count; ++edge) {
        from_number[edge] = node_number(program, from[edge]);
        to_number[edge] = node_number(program, to[edge]);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t edge = 0; edge < edge_count; ++edge)
            changed |=
                merge_into(program->before[to_number[edge]], program->before[from_number[edge]]);
    }
}

struct capture {
    bool is_active;
    cudaGraph_t graph;
    const cudaGraphNode_t *terminals;
    size_t terminal_count;
};

static struct capture capture_of(cudaStream_t stream) {
    struct capture capture = {0};
    enum cudaStreamCaptureStatus status;
    unsigned long long id;
    const cudaGraphEdgeData *edges;
    CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, &id, &capture.graph, &capture.terminals,
                                        &edges, &capture.terminal_count));
    capture.is_active = status == cudaStreamCaptureStatusActive;
    return capture;
}

// Blocks whose users all come before the next operation of STREAM. The nodes of a graph keep their
// order, so numbers noted earlier still hold.
static bool is_safe(const struct block *block, const uint64_t *before_next) {
    for (size_t word = 0; word < WORDS; ++word)
        if ((block->users[word] & ~before_next[word]) != 0) return false;
    return true;
}

static void judge_answer(struct program *program, int stream, const uint64_t *tokens,
                         size_t count) {
    const struct capture capture = capture_of(program->streams[stream]);
    if (!capture.is_active) {
        BASE_CHECK_EQ(count, (size_t)0);
        return;
    }
    uint64_t before_next[WORDS] = {0};
    close_graph(program, capture.graph);
    for (size_t index = 0; index < capture.terminal_count; ++index)
        merge_into(before_next, program->before[node_number(program, capture.terminals[index])]);
    for (int index = 0; index < BLOCKS_MAX; ++index) {
        struct block *const block = &program->blocks[index];
        if (!block->is_waiting || block->stream != stream || block->was_safe) continue;
        block->was_safe = capture.terminal_count > 0 && is_safe(block, before_next);
        program->safe += block->was_safe;
    }
    uint64_t freed_as = 0;
    for (size_t index = 0; index < count; ++index) {
        struct block *const block = &program->blocks[tokens[index]];
        BASE_CHECK(block->is_waiting);
        block->is_waiting = false;
        BASE_CHECK_LT(freed_as, block->freed_as); // they come in the order of the frees
        freed_as = block->freed_as;
        ++program->proven;
        // Under the graph-wide rule a block of any stream is given back; it serves its own stream.
        if (block->stream != stream) {
            BASE_CHECK_EQ((int)program->rule, (int)RULE_MARKERS_GRAPH_WIDE);
            const struct capture own = capture_of(program->streams[block->stream]);
            uint64_t own_next[WORDS] = {0};
            for (size_t node = 0; node < own.terminal_count; ++node)
                merge_into(own_next, program->before[node_number(program, own.terminals[node])]);
            program->unsound += !is_safe(block, own_next);
        } else {
            program->unsound += !is_safe(block, before_next);
        }
    }
}

//------------------------------------------------------------------------------------------------
// Steps of a program.

static int pick(struct program *program, int count) {
    return (int)base_random_below(&program->random, (uint64_t)count);
}

static void step_launch(struct program *program) {
    const int stream = pick(program, program->stream_count);
    if (!capture_of(program->streams[stream]).is_active) return;
    CHECK_CUDA(sim_launch(program->streams[stream], "kernel", noop, NULL, 0));
    const struct capture capture = capture_of(program->streams[stream]);
    read_nodes(program, capture.graph);
    const size_t node = node_number(program, capture.terminals[0]);
    for (int tries = pick(program, 6); tries > 0; --tries) {
        struct block *const block = &program->blocks[pick(program, BLOCKS_MAX)];
        if (!block->is_live) continue;
        block->users[node / 64] |= (uint64_t)1 << node % 64;
        if (block->stream != stream) block->used_by |= 1u << stream;
    }
}

static void step_record(struct program *program) {
    const int stream = pick(program, program->stream_count), event = pick(program, EVENTS_MAX);
    if (!capture_of(program->streams[stream]).is_active) return;
    CHECK_CUDA(cudaEventRecord(program->events[event], program->streams[stream]));
    program->is_recorded[event] = true;
}

static void step_wait(struct program *program) {
    const int stream = pick(program, program->stream_count), event = pick(program, EVENTS_MAX);
    if (program->is_recorded[event])
        CHECK_CUDA(cudaStreamWaitEvent(program->streams[stream], program->events[event], 0));
}

// Waits for what another stream did last, as a join does.
static void step_join(struct program *program) {
    const int stream = pick(program, program->stream_count),
              other = pick(program, program->stream_count);
    if (!capture_of(program->streams[other]).is_active) return;
    CHECK_CUDA(cudaEventRecord(program->events[0], program->streams[other]));
    program->is_recorded[0] = true;
    CHECK_CUDA(cudaStreamWaitEvent(program->streams[stream], program->events[0], 0));
}

static void step_replace_dependencies(struct program *program) {
    const int stream = pick(program, program->stream_count),
              other = pick(program, program->stream_count);
    if (!capture_of(program->streams[stream]).is_active) return;
    const struct capture from = capture_of(program->streams[other]);
    cudaGraphNode_t nodes[64];
    size_t count = 0;
    while (from.is_active && count < from.terminal_count && count < 64) {
        nodes[count] = from.terminals[count];
        ++count;
    }
    if (count == 0) return;
    // What the stream did so far may not come before its next operation any more, so that its
    // terminals do not tell of it: a program must not free such blocks in the capture.
    for (int number = 0; number < BLOCKS_MAX; ++number) {
        struct block *const block = &program->blocks[number];
        if (block->stream == stream || (block->used_by >> stream & 1) != 0) block->is_live = false;
    }
    CHECK_CUDA(cudaStreamUpdateCaptureDependencies(program->streams[stream], nodes, NULL, count,
                                                   cudaStreamSetCaptureDependencies));
}

static void step_free(struct program *program) {
    const int number = pick(program, BLOCKS_MAX);
    struct block *const block = &program->blocks[number];
    if (!block->is_live) return;
    cudaStream_t streams[STREAMS_MAX] = {program->streams[block->stream]};
    size_t count = 1;
    for (int stream = 0; stream < program->stream_count; ++stream)
        if ((block->used_by >> stream & 1) != 0) streams[count++] = program->streams[stream];
    block->is_live = false;
    if (count == 1) return; // free at once
    if (program->plant == PLANT_MISSING_STREAM) --count;
    bool is_marked;
    struct cca__capture_state state;
    BASE_CHECK_EQ(cca__capture_state_read(streams[0], &state), BASE_OK);
    if (program->rule == RULE_PRESENT)
        BASE_CHECK_EQ(cca__reuse_defer(&program->reuse, &state, streams, count, (uint64_t)number,
                                       &block->ticket),
                      BASE_OK);
    else
        BASE_CHECK_EQ(cca__markers_defer(&program->markers, &state, streams, count,
                                         (uint64_t)number, &is_marked),
                      BASE_OK);
    block->is_waiting = true;
    block->freed_as = ++program->frees;
}

static void step_allocate(struct program *program) {
    const int stream = pick(program, program->stream_count);
    const cudaStream_t handle = program->streams[stream];
    struct cca__capture_state state;
    const uint64_t *tokens;
    size_t count;
    BASE_CHECK_EQ(cca__capture_state_read(handle, &state), BASE_OK);
    if (program->rule == RULE_PRESENT)
        BASE_CHECK_EQ(cca__reuse_look(&program->reuse, handle, &state, &tokens, &count), BASE_OK);
    else if (program->plant == PLANT_ONE_STREAM)
        BASE_CHECK_EQ(
            cca__markers_look(&program->markers, handle, &state, &handle, 1, &tokens, &count),
            BASE_OK);
    else
        BASE_CHECK_EQ(cca__markers_look(&program->markers, handle, &state, program->streams,
                                        (size_t)program->stream_count, &tokens, &count),
                      BASE_OK);
    judge_answer(program, stream, tokens, count);
    struct block *const block = &program->blocks[pick(program, BLOCKS_MAX)];
    if (block->is_live || block->is_waiting) return;
    *block = (struct block){.is_live = true, .stream = stream};
}

// Blocks that still wait when the capture ends never come back by themselves; the allocator drops
// them.
static void drop_waiting(struct program *program) {
    for (int number = 0; number < BLOCKS_MAX; ++number) {
        struct block *const block = &program->blocks[number];
        if (!block->is_waiting) continue;
        if (program->rule == RULE_PRESENT)
            cca__reuse_drop(&program->reuse, block->ticket);
        else
            cca__markers_drop(&program->markers, (uint64_t)number);
    }
}

static void end_capture(struct program *program) {
    // All streams are joined into the first, which began.
    for (int stream = 1; stream < program->stream_count; ++stream) {
        if (!capture_of(program->streams[stream]).is_active) continue;
        CHECK_CUDA(cudaEventRecord(program->events[0], program->streams[stream]));
        CHECK_CUDA(cudaStreamWaitEvent(program->streams[0], program->events[0], 0));
    }
    cudaGraph_t graph;
    enum cudaStreamCaptureStatus status;
    unsigned long long capture;
    CHECK_CUDA(
        cudaStreamGetCaptureInfo(program->streams[0], &status, &capture, NULL, NULL, NULL, NULL));
    const cudaError_t error = cudaStreamEndCapture(program->streams[0], &graph);
    // A replaced dependency may have left work that nothing joins.
    BASE_CHECK(error == cudaSuccess || error == cudaErrorStreamCaptureUnjoined);
    if (error == cudaSuccess)
        CHECK_CUDA(cudaGraphDestroy(graph));
    else
        (void)cudaGetLastError();
    cca__reuse_end(&program->reuse, capture);
}

static void run_capture(struct program *program, bool replaces) {
    CHECK_CUDA(cudaStreamBeginCapture(program->streams[0], cudaStreamCaptureModeThreadLocal));
    const int steps = 40 + pick(program, 220);
    const int launch = 20 + pick(program, 30), join = 10 + pick(program, 30);
    for (int step = 0; step < steps; ++step) {
        const int chance = pick(program, launch + 2 * join + 50 + replaces);
        if (chance < launch)
            step_launch(program);
        else if (chance < launch + join)
            step_record(program);
        else if (chance < launch + join + join / 2)
            step_wait(program);
        else if (chance < launch + 2 * join)
            step_join(program);
        else if (chance < launch + 2 * join + 20)
            step_free(program);
        else if (chance < launch + 2 * join + 50)
            step_allocate(program);
        else
            step_replace_dependencies(program);
    }
    drop_waiting(program);
    end_capture(program);
    memset(program->blocks, 0, sizeof program->blocks);
    memset(program->is_recorded, 0, sizeof program->is_recorded);
}

// Captures of the same streams, one after the other: the nodes of one may have the addresses that
// those of an earlier one had.
static void run_program(struct program *program, uint64_t seed, bool replaces) {
    program->random = base_random_init(seed, "capture reuse");
    program->stream_count = 2 + pick(program, STREAMS_MAX - 1);
    for (int stream = 0; stream < program->stream_count; ++stream)
        CHECK_CUDA(cudaStreamCreateWithFlags(&program->streams[stream], cudaStreamNonBlocking));
    for (int event = 0; event < EVENTS_MAX; ++event)
        CHECK_CUDA(cudaEventCreateWithFlags(&program->events[event], cudaEventDisableTiming));
    for (int captures = 1 + pick(program, 2); captures > 0; --captures)
        run_capture(program, replaces);
    cca__reuse_deinit(&program->reuse);
    cca__markers_deinit(&program->markers);
    for (int stream = 0; stream < program->stream_count; ++stream)
        CHECK_CUDA(cudaStreamDestroy(program->streams[stream]));
    for (int event = 0; event < EVENTS_MAX; ++event)
        CHECK_CUDA(cudaEventDestroy(program->events[event]));
}

struct totals {
    uint64_t proven, unsound, safe;
};

static struct totals run_rule(enum rule rule, enum plant plant, uint64_t first_seed, uint64_t count,
                              bool replaces) {
    struct totals totals = {0};
    struct program *const program = malloc(sizeof *program);
    BASE_CHECK(program != NULL);
    for (uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
        memset(program, 0, sizeof *program);
        program->rule = rule;
        program->plant = plant;
        program->reuse.keeps_stale = plant == PLANT_STALE;
        program->markers.rule =
            rule == RULE_MARKERS_GRAPH_WIDE ? CCA__MARKERS_GRAPH_WIDE : CCA__MARKERS_PER_STREAM;
        run_program(program, seed, replaces);
        if (program->unsound > 0 && plant == PLANT_NONE) {
            fprintf(stderr, "%s, seed %" PRIu64 ": %" PRIu64 " blocks without an edge\n",
                    rule_names[rule], seed, program->unsound);
            abort();
        }
        totals.proven += program->proven;
        totals.unsound += program->unsound;
        totals.safe += program->safe;
    }
    free(program);
    return totals;
}

int main(int argc, char **argv) {
    const uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    printf("seeds %" PRIu64 " to %" PRIu64 "\n", seed, seed + count - 1);
    for (int rule = 0; rule < RULE_COUNT; ++rule)
        for (int replaces = 0; replaces < 2; ++replaces) {
            const struct totals totals =
                run_rule((enum rule)rule, PLANT_NONE, seed, count, replaces != 0);
            printf("%-20s %s: %" PRIu64 " reused, 0 without an edge; the closure allows %" PRIu64
                   " (%.1f %%)\n",
                   rule_names[rule], replaces != 0 ? "dependencies replaced" : "plain",
                   totals.proven, totals.safe, 100.0 * (double)totals.proven / (double)totals.safe);
            fflush(stdout);
            BASE_CHECK(totals.proven > count / 4);
        }
    static const struct {
        enum plant plant;
        enum rule rule;
        const char *name;
    } plants[] = {
        {PLANT_STALE, RULE_PRESENT, "visited nodes outlive replaced dependencies"},
        {PLANT_MISSING_STREAM, RULE_PRESENT, "a stream that used the block is forgotten"},
        {PLANT_MISSING_STREAM, RULE_MARKERS, "a stream that used the block is forgotten"},
        {PLANT_ONE_STREAM, RULE_MARKERS_GRAPH_WIDE, "graph-wide, by one stream's terminals"},
    };
    for (size_t index = 0; index < sizeof plants / sizeof plants[0]; ++index) {
        const struct totals totals =
            run_rule(plants[index].rule, plants[index].plant, seed, count / 4, true);
        printf("planted in %s: %s: %" PRIu64 " of %" PRIu64 " without an edge\n",
               rule_names[plants[index].rule], plants[index].name, totals.unsound, totals.proven);
        BASE_CHECK(totals.unsound > 0);
    }
    return 0;
}
