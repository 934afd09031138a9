// Nodes of graphs, and launches: all nodes are one position of the stream for others, and ordered
// by the edges among themselves.
#include "simulator/graph.h"
#include "simulator/graph_memory.h"
#include "simulator/race_access.h"
#include "simulator/race_block.h"
#include "simulator/race_life.h"
#include "simulator/race_node.h"
#include "simulator/race_plan.h"
#include "simulator/race_value.h"

#include <stdlib.h>

// --- Nodes ---

struct sim__race_node *sim__race_node_create(const struct sim__operation *operation,
                                             uint64_t graph, uint64_t stream) {
    const struct sim__race_access *accesses;
    const size_t count = sim__race_accesses(operation, &accesses);
    struct sim__race_node *node = malloc(sizeof *node + count * sizeof node->accesses[0]);
    if (node == NULL)
        return NULL;
    *node = (struct sim__race_node){
        .references = 1,
        .origin = sim__race_origin(operation),
        .graph = graph,
        .stream = stream,
        .on_device = operation->kind != SIM__OPERATION_HOST_FUNCTION,
        .has_rights = operation->kind == SIM__OPERATION_COPY && operation->copy.named,
        .count = (uint32_t)count,
    };
    if (operation->kind == SIM__OPERATION_VALUE) {
        node->value_address = operation->value.address;
        node->value = operation->value.value;
    }
    for (size_t i = 0; i < count; ++i) {
        node->accesses[i] = accesses[i];
        node->accesses[i].record = NULL;
        sim__block_retain(accesses[i].block);
    }
    return node;
}

struct sim__race_node *sim__race_node_retain(struct sim__race_node *node) {
    if (node != NULL)
        ++node->references;
    return node;
}

void sim__race_node_release(struct sim__race_node *node) {
    if (node == NULL || --node->references > 0)
        return;
    for (uint32_t i = 0; i < node->count; ++i)
        sim__block_release(node->accesses[i].block);
    sim__race_node_release(node->died.node);
    free(node);
}

bool sim__race_node_accesses(const struct sim__race_node *node, uint32_t index,
                             struct sim__race_node_access *access) {
    if (index >= node->count)
        return false;
    const struct sim__race_access *from = &node->accesses[index];
    *access = (struct sim__race_node_access){
        .mode = from->mode,
        .start = from->rows.start,
        .size = from->rows.size,
        .rows = from->rows.rows,
        .pitch = from->rows.pitch,
        .block = from->block,
    };
    return true;
}

const char *sim__race_node_label(const struct sim__race_node *node) {
    return sim__race_origin_at(node->origin)->label;
}

// --- Launches ---

static void node_do(struct sim__race_step *step, struct sim__position position,
                    const struct sim__exec_node *of, struct sim__race_node *node) {
    step->key.node = node;
    node->number = of->number;
    step->on_device = node->on_device;
    step->has_rights = node->has_rights;
    if (of->type == cudaGraphNodeTypeMemAlloc) {
        sim__life_begin(step, of->allocation->start, of->allocation->size, false);
    } else if (of->type == cudaGraphNodeTypeMemFree) {
        sim__life_end(step, of->allocation->start, of->allocation->size);
        sim__race_step_end(step);
    } else {
        for (uint32_t i = 0; i < node->count; ++i)
            if (node->accesses[i].block != 0)
                node->accesses[i].record = sim__block_record_find(node->accesses[i].block);
        sim__race_step_do(step, node->accesses, node->count);
    }
    if (node->value_address != NULL)
        sim__race_value_written(node->value_address, node->value,
                                sim__order_point_at(position.stream, position.sequence));
}

static struct sim__event *event_of(const struct sim__exec_node *node) {
    return sim__handle_find(&sim__state.events, (uint64_t)(uintptr_t)node->event);
}

// What nodes wait for, all of the launch comes behind: an operation is one place in the order.
static void events_wait(struct sim__stream *stream, const struct sim__exec *exec) {
    for (uint32_t i = 0; i < exec->node_count; ++i) {
        const struct sim__exec_node *node = &exec->nodes[i];
        if (node->type != cudaGraphNodeTypeWaitEvent || !node->enabled)
            continue;
        const struct sim__event *event = event_of(node);
        if (event != NULL && event->captured == NULL)
            sim__order_wait(stream, event);
    }
}

// A node that was made before checking began gets its notes now: what a kernel or a host function
// touches is lost.
void sim__race_launched(struct sim__position position, const struct sim__exec *exec) {
    struct sim__race_step step;
    const uint32_t origin = sim__race_origin_act(SIM__RACE_LAUNCH, exec->graph);
    sim__race_log_operation(position, origin);
    struct sim__race_plan *plan = sim__race_plan_of(exec);
    if (sim__race_plan_waits(plan))
        events_wait(position.stream, exec);
    sim__race_step_stream(&step, position.stream, position.sequence, origin);
    step.exec = exec;
    step.plan = plan;
    for (uint32_t i = 0; i < exec->node_count; ++i) {
        const struct sim__exec_node *node = &exec->nodes[i];
        step.key.place = i + 1;
        if (node->enabled && node->work != NULL && node->work->race == NULL)
            node->work->race = sim__race_node_create(&node->work->operation, 0, node->stream);
        if (node->enabled && node->work != NULL && node->work->race != NULL)
            node_do(&step, position, node, node->work->race);
        if (node->enabled && node->type == cudaGraphNodeTypeEventRecord &&
            event_of(node) != NULL)
            sim__order__record_launched(event_of(node), position);
    }
}
