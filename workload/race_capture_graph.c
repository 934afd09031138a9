// Graphs that are done, in the random programs that capture: launched in any order, their blocks
// used like any other, destroyed. Of a graph's blocks the last to touch them is the stream of the
// graph's last launch.
#include "workload/race_capture_program.h"

static bool is_launchable(const struct workload__race_program *program,
                          const struct workload__race_graph *graph) {
    if (!graph->is_live) return false;
    // Blocks of a later capture may lie where this one had some that it freed.
    for (int index = 0; index < GRAPHS; index++) {
        const struct workload__race_graph *const other = &program->graphs[index];
        if (!other->is_live || other->pool != graph->pool || other->order <= graph->order) continue;
        for (int block = 0; block < BLOCKS; block++)
            if (other->blocks[block].bytes.pointer != NULL) return false;
    }
    return true;
}

void workload__race_launch(struct workload__race_actor *actor, struct workload__race_graph *graph) {
    struct workload__race_program *const program = actor->program;
    const int stream = workload__race_below(actor, EAGER_STREAMS);
    if (!is_launchable(program, graph)) return;
    for (int index = 0; index < BLOCKS; index++) {
        struct workload__race_block *const block = &graph->blocks[index];
        if (block->bytes.pointer == NULL) continue;
        if (block->last >= 0) workload__race_behind(actor, stream, block->last);
        block->last = stream;
        block->bytes.value = block->captured_value;
        workload__race_record(actor, block, stream);
    }
    if (graph->pool->last >= 0) workload__race_behind(actor, stream, graph->pool->last);
    graph->pool->last = stream;
    CHECK_CUDA(cudaGraphLaunch(graph->exec, program->streams[stream]));
    program->found->launches++;
}

// What a launch left is used, and at last freed, like any other block.
void workload__race_output_step(struct workload__race_actor *actor,
                                struct workload__race_graph *graph) {
    struct workload__race_block *const block = &graph->blocks[workload__race_below(actor, BLOCKS)];
    if (!graph->is_live || block->bytes.pointer == NULL || block->last < 0) return;
    if (workload__race_chance(actor, 0.2)) {
        // The graph goes on writing there, and who has the memory next is a capture of its pool.
        workload__race_behind(actor, graph->pool->last, block->last);
        workload__race_give(actor, block);
    } else {
        workload__race_use(actor, block, workload__race_eager_stream(actor));
    }
}

void workload__race_destroy(struct workload__race_actor *actor,
                            struct workload__race_graph *graph) {
    struct workload__race_program *const program = actor->program;
    if (!graph->is_live) return;
    CHECK_CUDA(cudaDeviceSynchronize());
    for (int index = 0; index < BLOCKS; index++)
        if (graph->blocks[index].bytes.pointer != NULL)
            workload__race_give(actor, &graph->blocks[index]);
    if (graph->exec != NULL) CHECK_CUDA(cudaGraphExecDestroy(graph->exec));
    if (graph->graph != NULL) CHECK_CUDA(cudaGraphDestroy(graph->graph));
    BASE_CHECK_EQ(cca_pool_release(program->caching, 0, graph->pool->id), BASE_OK);
    for (int part = 0; part < graph->part_count; part++)
        BASE_CHECK_EQ(cca_pool_release(program->caching, 0, graph->parts[part]), BASE_OK);
    workload__race_scope_end(program, &graph->user);
    graph->pool->graph_count--;
    graph->is_live = false;
}
