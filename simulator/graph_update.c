// An executable takes another graph's parameters (cudaGraphExecUpdate). The two graphs must be
// alike, and which node stands for which is found as CUDA finds it: nodes without dependents in the
// order in which they became so, and from each node backwards to its dependencies, in their order.
//
// The new graph is unfolded as for an executable of its own; so nodes are compared that stand for
// child graphs, and edges between them, whatever the nesting. Cost O(nodes + edges).
#include "simulator/call.h"
#include "simulator/graph_params.h"
#include "simulator/plant.h"
#include "simulator/user_object.h"

#include <stdlib.h>

#define UNPAIRED UINT32_MAX

struct pairing {
    const struct sim__exec *new;
    struct sim__exec *old;
    uint32_t *old_of, *new_of; // indices
    uint32_t *open;            // new nodes whose dependencies are not paired yet
    uint32_t first; // of the child graph that is updated, which its roots are behind; else UNPAIRED
    uint32_t open_count;
    cudaGraphExecUpdateResultInfo *info;
};

// The node as the program knows it: of both ends of a child graph, the child node.
static cudaGraphNode_t handle_of(const struct sim__exec *exec, uint32_t index) {
    const struct sim__exec_node *node = &exec->nodes[index];
    if (sim__exec_node_is_last(node))
        node = &exec->nodes[node->child_end];
    return (cudaGraphNode_t)(uintptr_t)node->origin;
}

static bool misfit(const struct pairing *pairing, enum cudaGraphExecUpdateResult result,
                   uint32_t node, uint32_t from) {
    pairing->info->result = result;
    pairing->info->errorNode = node == UNPAIRED ? NULL : handle_of(pairing->new, node);
    pairing->info->errorFromNode = from == UNPAIRED ? NULL : handle_of(pairing->new, from);
    return false;
}

// A child graph's last node stands for the child graph.
static enum cudaGraphNodeType type_of(const struct sim__exec_node *node) {
    return sim__exec_node_is_last(node) ? cudaGraphNodeTypeGraph : node->type;
}

// What an old node depends on, besides the start of the child graph that is updated: no node of the
// new graph stands for that.
static uint32_t old_dependency_count(const struct pairing *pairing,
                                     const struct sim__exec_node *old) {
    const bool is_root = pairing->first != UNPAIRED && old->dependency_count == 1 &&
                         pairing->old->dependencies[old->dependency_first] == pairing->first;
    return is_root ? 0 : old->dependency_count;
}

// NEW stands for OLD, which NODE depends on (UNPAIRED: none, they are the last of their graphs).
static bool pair(struct pairing *pairing, uint32_t new, uint32_t old, uint32_t node) {
    const struct sim__exec_node *new_node = &pairing->new->nodes[new];
    const struct sim__exec_node *old_node = &pairing->old->nodes[old];
    if (pairing->old_of[new] == old)
        return true;
    if (pairing->old_of[new] != UNPAIRED || pairing->new_of[old] != UNPAIRED)
        return node == UNPAIRED
                   ? misfit(pairing, cudaGraphExecUpdateErrorTopologyChanged, new, UNPAIRED)
                   : misfit(pairing, cudaGraphExecUpdateErrorTopologyChanged, node, new);
    // The first of a child graph is behind its roots only, which no edge of the program's says.
    if (sim__exec_node_is_first(new_node) != sim__exec_node_is_first(old_node))
        return misfit(pairing, cudaGraphExecUpdateErrorTopologyChanged, node, UNPAIRED);
    if (type_of(new_node) != type_of(old_node))
        return misfit(pairing, cudaGraphExecUpdateErrorNodeTypeChanged, new, UNPAIRED);
    if (new_node->child_count != old_node->child_count ||
        new_node->dependency_count != old_dependency_count(pairing, old_node))
        return misfit(pairing, cudaGraphExecUpdateErrorTopologyChanged, new, UNPAIRED);
    pairing->old_of[new] = old;
    pairing->new_of[old] = new;
    pairing->open[pairing->open_count++] = new;
    return true;
}

static bool dependencies_pair(struct pairing *pairing) {
    while (pairing->open_count > 0) {
        const uint32_t new = pairing->open[--pairing->open_count];
        const struct sim__exec_node *new_node = &pairing->new->nodes[new];
        const struct sim__exec_node *old_node = &pairing->old->nodes[pairing->old_of[new]];
        for (uint32_t i = 0; i < new_node->dependency_count; ++i) {
            if (!pair(pairing, pairing->new->dependencies[new_node->dependency_first + i],
                      pairing->old->dependencies[old_node->dependency_first + i], new))
                return false;
        }
    }
    return true;
}

// CHILD: the first node of the old nodes in question, or NULL. The new nodes without dependents are
// paired with the old ones; those of a child are what its last node depends on.
static bool sinks_pair(struct pairing *pairing, const struct sim__exec_node *child) {
    const struct sim__exec *new = pairing->new, *old = pairing->old;
    const struct sim__exec_node *last = child == NULL ? NULL : &old->nodes[child->child_end];
    const uint32_t *old_sinks =
        child == NULL ? old->sinks : old->dependencies + last->dependency_first;
    uint32_t old_count = child == NULL ? old->sink_count : last->dependency_count;
    const uint32_t old_nodes = child == NULL ? old->graph_node_count : child->child_count;
    if (old_nodes == 0)
        old_count = 0; // an empty child's last node depends on its first
    if (new->graph_node_count != old_nodes)
        return misfit(pairing, cudaGraphExecUpdateErrorTopologyChanged, UNPAIRED, UNPAIRED);
    if (new->sink_count != old_count)
        return misfit(pairing, cudaGraphExecUpdateErrorTopologyChanged,
                      new->sink_count > 0 ? new->sinks[new->sink_count - 1] : UNPAIRED, UNPAIRED);
    for (uint32_t i = 0; i < old_count; ++i) {
        if (!pair(pairing, new->sinks[i], old_sinks[i], UNPAIRED))
            return false;
    }
    return true;
}

static bool is_memory(const struct sim__exec_node *node) { return node->allocation != NULL; }

// A cooperative kernel stays one; priorities stay where the executable goes by them.
static bool attributes_fit(const struct pairing *pairing, const struct sim__exec_node *old,
                           const struct sim__exec_node *new) {
    return (old->attributes.cooperative != 0) == (new->attributes.cooperative != 0) &&
           ((pairing->old->flags & cudaGraphInstantiateFlagUseNodePriority) == 0 ||
            old->attributes.priority == new->attributes.priority);
}

static enum cudaGraphExecUpdateResult node_fits(const struct pairing *pairing,
                                                const struct sim__exec_node *old,
                                                const struct sim__exec_node *new) {
    if (is_memory(new))
        return cudaGraphExecUpdateErrorNotSupported;
    return attributes_fit(pairing, old, new) ? sim__work_replaceable(old->work, new->work)
                                             : cudaGraphExecUpdateErrorAttributesChanged;
}

static bool parameters_fit(const struct pairing *pairing) {
    for (uint32_t i = 0; i < pairing->new->node_count; ++i) {
        const struct sim__exec_node *new = &pairing->new->nodes[i];
        const struct sim__exec_node *old = &pairing->old->nodes[pairing->old_of[i]];
        const enum cudaGraphExecUpdateResult result = node_fits(pairing, old, new);
        if (result != cudaGraphExecUpdateSuccess)
            return misfit(pairing, result, i, UNPAIRED);
    }
    return true;
}

// --- Taking over ---

// What launches that are pending may need goes when they are done.
static void objects_replace(struct sim__exec *exec, struct sim__graph_objects **old,
                            struct sim__graph_objects **new) {
    sim__graph_objects_retire(*old, &exec->retired);
    *old = *new;
    *new = NULL;
}

static void take_over(const struct pairing *pairing, struct sim__exec *fresh,
                      struct sim__exec_node *child) {
    struct sim__exec *exec = pairing->old;
    for (uint32_t i = 0; i < fresh->node_count; ++i) {
        struct sim__exec_node *new = &fresh->nodes[i], *old = &exec->nodes[pairing->old_of[i]];
        struct sim__graph_work *work = old->work;
        old->work = new->work;
        new->work = work; // goes with FRESH
        old->event = new->event;
        old->attributes = new->attributes;
        objects_replace(exec, &old->objects, &new->objects);
    }
    objects_replace(exec, child == NULL ? &exec->objects : &child->objects, &fresh->objects);
    if (exec->running == 0)
        sim__exec_idle(exec);
}

static bool pairing_begin(struct pairing *pairing, const struct sim__exec *new,
                          struct sim__exec *old, uint32_t first,
                          cudaGraphExecUpdateResultInfo *info) {
    const size_t new_count = new->node_count, old_count = old->node_count;
    *pairing = (struct pairing){.new = new, .old = old, .first = first, .info = info};
    pairing->old_of = malloc((2 * new_count + old_count + 1) * sizeof *pairing->old_of);
    if (pairing->old_of == NULL)
        return false;
    pairing->new_of = pairing->old_of + new_count;
    pairing->open = pairing->new_of + old_count;
    for (size_t i = 0; i < new_count + old_count; ++i)
        pairing->old_of[i] = UNPAIRED;
    return true;
}

static cudaError_t fresh_make(struct sim__exec *fresh, const struct sim__exec *old,
                              const struct sim__graph *graph,
                              cudaGraphExecUpdateResultInfo *info) {
    struct sim__node *error_node = NULL;
    *fresh = (struct sim__exec){.device = old->device};
    const cudaError_t error = sim__exec_plan(fresh, graph, &error_node);
    if (error != cudaErrorInvalidValue)
        return error;
    info->result = cudaGraphExecUpdateErrorTopologyChanged; // a cycle
    info->errorNode = error_node == NULL ? NULL : sim__node_handle(error_node);
    return cudaErrorGraphExecUpdateFailure;
}

cudaError_t sim__exec_update(struct sim__exec *exec, struct sim__exec_node *child,
                             const struct sim__graph *graph, cudaGraphExecUpdateResultInfo *info) {
    struct sim__exec fresh;
    struct pairing pairing;
    *info = (cudaGraphExecUpdateResultInfo){.result = cudaGraphExecUpdateError};
    cudaError_t error = fresh_make(&fresh, exec, graph, info);
    if (error != cudaSuccess)
        return error;
    const uint32_t first = child == NULL ? UNPAIRED : (uint32_t)(child - exec->nodes);
    if (!pairing_begin(&pairing, &fresh, exec, first, info) ||
        !sim__graph_objects_copy(graph->objects, &fresh.objects)) {
        error = cudaErrorMemoryAllocation;
    } else if (sinks_pair(&pairing, child) && dependencies_pair(&pairing) &&
               parameters_fit(&pairing)) {
        take_over(&pairing, &fresh, child);
        info->result = cudaGraphExecUpdateSuccess;
    } else {
        error = sim__planted(SIM__PLANT_UPDATE_MISFIT) ? cudaSuccess
                                                       : cudaErrorGraphExecUpdateFailure;
    }
    free(pairing.old_of);
    sim__graph_objects_release(fresh.objects);
    sim__exec_unplan(&fresh);
    return error;
}

static cudaError_t update_locked(cudaGraphExec_t exec_handle, cudaGraph_t graph_handle,
                                 cudaGraphExecUpdateResultInfo *info) {
    struct sim__exec *exec;
    struct sim__graph *graph;
    if (info == NULL)
        return cudaErrorInvalidValue;
    *info = (cudaGraphExecUpdateResultInfo){.result = cudaGraphExecUpdateError};
    cudaError_t error = sim__exec_resolve(exec_handle, &exec);
    if (error == cudaSuccess)
        error = sim__graph_resolve(graph_handle, &graph);
    if (error == cudaSuccess && graph->moved)
        error = cudaErrorInvalidValue;
    return error != cudaSuccess ? error : sim__exec_update(exec, NULL, graph, info);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = update_locked(exec, graph, info);
    return sim__call_end(SIM__CALL_OTHER, error);
}
