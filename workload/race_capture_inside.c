// What happens inside a capture of the random programs: steps of its streams, and parts of it that
// other streams capture. Everything here runs under the program's capture_lock.
#include "workload/race_capture_program.h"

#include <string.h>

#define PART_STEPS 8
#define PART_BLOCKS 4

struct capture_state {
    bool is_active;
    unsigned long long id;
    cudaGraph_t graph;
    cudaGraphNode_t nodes[64];
    size_t count;
};

static struct capture_state state_of(cudaStream_t stream) {
    struct capture_state state = {0};
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *nodes;
    CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, &state.id, &state.graph, &nodes, NULL,
                                        &state.count));
    state.is_active = status == cudaStreamCaptureStatusActive;
    if (!state.is_active) return state;
    BASE_CHECK_LE(state.count, sizeof state.nodes / sizeof state.nodes[0]);
    if (state.count > 0) memcpy(state.nodes, nodes, state.count * sizeof *nodes);
    return state;
}

bool workload__race_captures(const struct workload__race_program *program, int stream) {
    return state_of(program->streams[stream]).is_active;
}

//--------------------------------------------------------------------------------------------------
// Joins that are taken back.

// A stream joins another one and takes that back: what it captures next does not come behind the
// other's work. A block that the other one used must not come back to it.
static void unjoin(struct workload__race_actor *actor, struct workload__race_graph *graph,
                   int stream, int other) {
    struct workload__race_program *const program = actor->program;
    struct workload__race_block *const block = &graph->blocks[workload__race_below(actor, BLOCKS)];
    struct workload__race_block *const kept = &graph->blocks[workload__race_below(actor, BLOCKS)];
    if (stream == other || block == kept || block->bytes.pointer != NULL ||
        kept->bytes.pointer != NULL || program->deferred[stream] > 0 || program->is_later[stream])
        return;
    const size_t size = 512 * (size_t)(1 + workload__race_below(actor, 4096));
    if (!workload__race_take_sized(actor, block, stream, size)) return;
    struct capture_state before = state_of(program->streams[stream]);
    workload__race_use(actor, block, other);
    workload__race_behind(actor, stream, other);
    // The allocator sees the join, and the work behind it stays away from all else until the end.
    kept->is_kept = workload__race_take_sized(actor, kept, stream, 4096);
    CHECK_CUDA(cudaEventRecord(program->later[stream], program->streams[stream]));
    program->is_later[stream] = true;
    CHECK_CUDA(cudaStreamUpdateCaptureDependencies(program->streams[stream], before.nodes, NULL,
                                                   before.count, cudaStreamSetCaptureDependencies));
    workload__race_give(actor, block);
    (void)workload__race_take_sized(actor, block, stream, size);
}

//--------------------------------------------------------------------------------------------------
// Parts.

struct part {
    _Atomic(unsigned long long) captured;
    struct allocator_pool_id pool;
    cudaStream_t first;
    struct workload__race_block blocks[PART_BLOCKS];
};

static void part_begin(struct workload__race_actor *actor, struct part *part,
                       unsigned long long parent) {
    struct workload__race_program *const program = actor->program;
    const struct cca_pool_filter filter = cca_capture_filter(&part->captured);
    BASE_CHECK_EQ(cca_pool_begin(program->caching, 0, part->pool, &filter), BASE_OK);
    CHECK_CUDA(cudaStreamBeginCapture(part->first, program->mode));
    part->captured = state_of(part->first).id;
    const struct cca_capture told = {.id = part->captured, .stream = part->first, .parent = parent};
    BASE_CHECK_EQ(cca_capture_begin(program->caching, 0, &told), BASE_OK);
}

static void part_step(struct workload__race_actor *actor, struct part *part) {
    const int stream = EAGER_STREAMS + workload__race_below(actor, PART_STREAMS);
    struct workload__race_block *const block =
        &part->blocks[workload__race_below(actor, PART_BLOCKS)];
    if (workload__race_chance(actor, 0.2))
        workload__race_behind(actor, stream, EAGER_STREAMS);
    else if (block->bytes.pointer != NULL && workload__race_chance(actor, 0.4))
        workload__race_give(actor, block);
    else if (block->bytes.pointer != NULL)
        workload__race_use(actor, block, stream);
    else if (workload__race_captures(actor->program, stream))
        workload__race_take(actor, block, stream);
}

// A block of the capture is used in the part: STREAM, where the part will be, comes behind it.
static void lend(struct workload__race_actor *actor, struct workload__race_graph *graph,
                 int stream) {
    struct workload__race_block *const block = &graph->blocks[workload__race_below(actor, BLOCKS)];
    if (block->bytes.pointer == NULL || block->is_kept) return;
    workload__race_behind(actor, stream, block->last);
    block->last = stream;
    workload__race_touch(actor, block, EAGER_STREAMS);
    if (workload__race_chance(actor, 0.3)) workload__race_give(actor, block);
}

// What outlives the part becomes the capture's, as far as there is room for it.
static void hand_over(struct workload__race_actor *actor, struct part *part,
                      struct workload__race_graph *graph, int stream) {
    for (int index = 0, free_slot = 0; index < PART_BLOCKS; index++) {
        struct workload__race_block *const block = &part->blocks[index];
        if (block->bytes.pointer == NULL) continue;
        while (free_slot < BLOCKS && graph->blocks[free_slot].bytes.pointer != NULL)
            free_slot++;
        if (free_slot == BLOCKS) {
            workload__race_give(actor, block);
        } else {
            graph->blocks[free_slot] = *block;
            graph->blocks[free_slot].last = stream;
        }
    }
}

// The graph of the part becomes a node behind all that STREAM has captured.
static void put(struct workload__race_program *program, cudaGraph_t graph, int stream) {
    const struct capture_state whole = state_of(program->streams[stream]);
    cudaGraphNode_t node;
    CHECK_CUDA(cudaGraphAddChildGraphNode(&node, whole.graph, whole.nodes, whole.count, graph));
    CHECK_CUDA(cudaStreamUpdateCaptureDependencies(program->streams[stream], &node, NULL, 1,
                                                   cudaStreamSetCaptureDependencies));
    CHECK_CUDA(cudaGraphDestroy(graph)); // the node has a copy
}

void workload__race_part(struct workload__race_actor *actor, struct workload__race_graph *graph) {
    struct workload__race_program *const program = actor->program;
    const int stream = workload__race_below(actor, CAPTURE_STREAMS);
    struct part part = {.first = program->streams[EAGER_STREAMS]};
    cudaGraph_t made;
    if (graph->part_count == PARTS_MAX || !workload__race_captures(program, stream)) return;
    part.pool.capture = ++program->capture_pool_number;
    graph->parts[graph->part_count++] = part.pool;
    part_begin(actor, &part, graph->captured);
    for (int step = 0; step < PART_STEPS; step++)
        if (workload__race_chance(actor, 0.2))
            lend(actor, graph, stream);
        else
            part_step(actor, &part);
    if (workload__race_captures(program, EAGER_STREAMS + 1))
        workload__race_behind(actor, EAGER_STREAMS, EAGER_STREAMS + 1);
    CHECK_CUDA(cudaStreamEndCapture(part.first, &made));
    BASE_CHECK_EQ(cca_capture_end(program->caching, 0, part.captured), BASE_OK);
    BASE_CHECK_EQ(cca_pool_end(program->caching, 0, part.pool), BASE_OK);
    put(program, made, stream);
    hand_over(actor, &part, graph, stream);
    program->found->parts++;
}

//--------------------------------------------------------------------------------------------------
// Steps.

// Of an invalidated capture: no more work, and whoever asks is told.
static void lost_step(struct workload__race_actor *actor, struct workload__race_block *block) {
    struct workload__race_program *const program = actor->program;
    void *pointer;
    if (block->bytes.pointer == NULL) {
        BASE_CHECK_EQ(allocator_malloc(program->allocator, 0, 4096, program->streams[0], &pointer),
                      BASE_INVALID_VALUE);
    } else if (workload__race_chance(actor, 0.5)) {
        workload__race_give(actor, block);
    }
}

void workload__race_capture_step(struct workload__race_actor *actor,
                                 struct workload__race_graph *graph) {
    struct workload__race_program *const program = actor->program;
    const struct workload_race_capture *const options = program->options;
    struct workload__race_block *const block = &graph->blocks[workload__race_below(actor, BLOCKS)];
    const int stream = workload__race_below(actor, CAPTURE_STREAMS);
    const int other = workload__race_below(actor, CAPTURE_STREAMS);
    if (program->is_lost) {
        lost_step(actor, block);
    } else if (options->nests && workload__race_chance(actor, 0.04)) {
        program->found->user_scopes += !graph->user.is_open;
        workload__race_scope_flip(actor, &graph->user);
    } else if (options->nests && workload__race_chance(actor, 0.04)) {
        workload__race_part(actor, graph);
    } else if (workload__race_chance(actor, 0.08)) {
        if (workload__race_captures(program, other)) workload__race_behind(actor, stream, other);
    } else if (options->unjoins && workload__race_chance(actor, 0.2)) {
        if (workload__race_captures(program, stream) && workload__race_captures(program, other))
            unjoin(actor, graph, stream, other);
    } else if (block->is_kept) {
        return;
    } else if (block->bytes.pointer == NULL) {
        if (workload__race_captures(program, stream)) workload__race_take(actor, block, stream);
    } else if (workload__race_chance(actor, 0.4)) {
        workload__race_give(actor, block);
    } else {
        workload__race_use(actor, block, stream);
    }
}

void workload__race_join_all(struct workload__race_actor *actor, int left) {
    struct workload__race_program *const program = actor->program;
    for (int stream = 0; stream < CAPTURE_STREAMS; stream++) {
        if (stream > 0 && stream != left && workload__race_captures(program, stream))
            workload__race_behind(actor, 0, stream);
        if (program->is_later[stream])
            CHECK_CUDA(cudaStreamWaitEvent(program->streams[0], program->later[stream], 0));
        program->is_later[stream] = false;
        program->deferred[stream] = 0;
    }
}
