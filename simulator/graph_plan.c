// A graph as a list of nodes in which every edge goes forward, child graphs unfolded, and the lanes
// in which a launch runs it.
//
// A child graph stands between two nodes of its own, so that the edges are as many as the program
// made, plus one for each root and sink of a child graph: all costs O(nodes + edges). The order is
// that in which nodes were added where every edge goes forward in it, as in any capture.
#include "simulator/graph_memory.h"
#include "simulator/plant.h"
#include "simulator/user_object.h"

#include <stdlib.h>
#include <string.h>

#define ANY_DEVICE (-1) // of nodes that do no work

// The nodes of a graph and its children, numbered depth first; the dependencies of each.
struct plan {
    struct sim__exec_node *nodes;
    const struct sim__node **origins; // NULL of the last node of a child graph
    uint32_t *dependencies;
    uint32_t node_count, dependency_count;
    bool is_forward; // every dependency has a smaller number
};

struct size {
    uint64_t nodes, dependencies;
};

static void size_add(struct size *size, const struct sim__graph *graph) {
    size->nodes += graph->node_count;
    size->dependencies += graph->edge_count;
    SIM__EACH_NODE(node, graph) {
        if (node->child == NULL)
            continue;
        size_add(size, node->child);
        // The first of the two nodes is counted; each root comes behind it, and the last one behind
        // each sink, or behind the first where the child is empty.
        ++size->nodes;
        size->dependencies += node->child->node_count + node->child->root_count + 1;
    }
}

// --- Numbers ---

static int device_of(const struct sim__node *node) {
    return node->work != NULL ? node->work->device : ANY_DEVICE;
}

static void nodes_number(struct plan *plan, const struct sim__graph *graph) {
    SIM__EACH_NODE(node, graph) {
        struct sim__exec_node *exec_node = &plan->nodes[node->index = plan->node_count];
        plan->origins[plan->node_count++] = node;
        *exec_node = (struct sim__exec_node){
            .work = node->work,
            .type = node->type,
            .device = device_of(node),
            .event = node->event,
            .allocation = node->allocation,
            .origin = node->slot.handle,
            .number = node->number,
            .stream = node->stream,
            .attributes = node->attributes,
            .enabled = true,
        };
        if (node->child == NULL)
            continue;
        nodes_number(plan, node->child);
        exec_node->child_count = (uint32_t)node->child->node_count;
        exec_node->child_end = plan->node_count;
        plan->origins[plan->node_count] = NULL;
        plan->nodes[plan->node_count++] = (struct sim__exec_node){
            .type = cudaGraphNodeTypeEmpty,
            .device = ANY_DEVICE,
            .child_end = node->index,
            .child_count = exec_node->child_count,
            .enabled = true,
        };
    }
}

// --- Dependencies ---

static void depend(struct plan *plan, uint32_t node, uint32_t on) {
    plan->is_forward &= on < node;
    plan->dependencies[plan->dependency_count++] = on;
    ++plan->nodes[node].dependency_count;
}

// What comes behind NODE comes behind this one.
static uint32_t end_of(const struct plan *plan, const struct sim__node *node) {
    return node->child == NULL || sim__planted(SIM__PLANT_CHILD_EDGE)
               ? node->index
               : plan->nodes[node->index].child_end;
}

// FIRST: what the graph's roots come behind, if it is a child.
static void nodes_depend(struct plan *plan, const struct sim__graph *graph, const uint32_t *first) {
    SIM__EACH_NODE(node, graph) {
        struct sim__exec_node *exec_node = &plan->nodes[node->index];
        exec_node->dependency_first = plan->dependency_count;
        if (first != NULL && node->dependency_count == 0)
            depend(plan, node->index, *first);
        for (uint32_t i = sim__planted(SIM__PLANT_EDGE_LOST); i < node->dependency_count; ++i)
            depend(plan, node->index, end_of(plan, node->dependencies[i].node));
        if (node->child == NULL)
            continue;
        nodes_depend(plan, node->child, &node->index);
        plan->nodes[exec_node->child_end].dependency_first = plan->dependency_count;
        if (node->child->node_count == 0)
            depend(plan, exec_node->child_end, node->index);
        for (const struct sim__node_link *link = node->child->sinks.next;
             link != &node->child->sinks; link = link->next)
            depend(plan, exec_node->child_end, end_of(plan, SIM__NODE_OF(link, sink)));
    }
}

// --- Order ---

// Dependents of each node: DEPENDENTS[FIRSTS[i]] up to FIRSTS[i + 1].
static void dependents_list(const struct plan *plan, uint32_t *firsts, uint32_t *dependents) {
    const uint32_t count = plan->node_count;
    for (uint32_t i = 0; i < plan->dependency_count; ++i)
        ++firsts[plan->dependencies[i] + 1];
    for (uint32_t i = 0; i < count; ++i)
        firsts[i + 1] += firsts[i];
    for (uint32_t i = 0; i < count; ++i) {
        const struct sim__exec_node *node = &plan->nodes[i];
        for (uint32_t at = 0; at < node->dependency_count; ++at)
            dependents[firsts[plan->dependencies[node->dependency_first + at]]++] = i;
    }
    memmove(firsts + 1, firsts, count * sizeof *firsts); // each stands at its end now
    firsts[0] = 0;
}

// ORDER gets the numbers of nodes in which edges go forward; returns how many: fewer than all if
// there is a cycle. Nodes become ready in the order of the list.
static uint32_t order_find(const struct plan *plan, uint32_t *order, uint32_t *left,
                           const uint32_t *firsts, const uint32_t *dependents) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->node_count; ++i) {
        left[i] = plan->nodes[i].dependency_count;
        if (left[i] == 0)
            order[count++] = i;
    }
    for (uint32_t done = 0; done < count; ++done) {
        for (uint32_t at = firsts[order[done]]; at < firsts[order[done] + 1]; ++at) {
            if (--left[dependents[at]] == 0)
                order[count++] = dependents[at];
        }
    }
    return count;
}

// The nodes in ORDER take the places of the list.
static bool order_apply(struct plan *plan, const uint32_t *order, uint32_t *place) {
    const uint32_t count = plan->node_count;
    struct sim__exec_node *nodes = malloc(count * sizeof *nodes);
    const struct sim__node **origins = malloc(count * sizeof *origins);
    if (nodes == NULL || origins == NULL) {
        free(nodes);
        free(origins);
        return false;
    }
    for (uint32_t i = 0; i < count; ++i) {
        nodes[i] = plan->nodes[order[i]];
        origins[i] = plan->origins[order[i]];
        place[order[i]] = i;
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (sim__exec_node_is_first(&nodes[i]) || sim__exec_node_is_last(&nodes[i]))
            nodes[i].child_end = place[nodes[i].child_end];
    }
    for (uint32_t i = 0; i < plan->dependency_count; ++i)
        plan->dependencies[i] = place[plan->dependencies[i]];
    free(plan->nodes);
    free(plan->origins);
    plan->nodes = nodes;
    plan->origins = origins;
    return true;
}

// A node that is on a cycle or behind one; better the former: going back from any that is left, for
// as many steps as there are nodes, ends on one.
static const struct sim__node *cycle_find(const struct plan *plan, const uint32_t *left) {
    uint32_t at = 0;
    while (left[at] == 0)
        ++at;
    for (uint32_t step = 0; step < plan->node_count || plan->origins[at] == NULL; ++step) {
        const struct sim__exec_node *node = &plan->nodes[at];
        uint32_t i = node->dependency_first;
        while (left[plan->dependencies[i]] == 0)
            ++i;
        at = plan->dependencies[i];
    }
    return plan->origins[at];
}

static cudaError_t order(struct plan *plan, struct sim__node **error_node) {
    if (plan->is_forward)
        return cudaSuccess;
    const size_t count = plan->node_count;
    uint32_t *room = calloc(3 * count + 1 + plan->dependency_count, sizeof *room);
    if (room == NULL)
        return cudaErrorMemoryAllocation;
    uint32_t *left = room, *found = left + count, *firsts = found + count;
    uint32_t *dependents = firsts + count + 1;
    cudaError_t error = cudaSuccess;
    dependents_list(plan, firsts, dependents);
    if (order_find(plan, found, left, firsts, dependents) < count) {
        *error_node = (struct sim__node *)(uintptr_t)cycle_find(plan, left);
        error = cudaErrorInvalidValue;
        for (size_t i = 0; i < count && sim__planted(SIM__PLANT_CYCLE); ++i) {
            plan->nodes[i].dependency_count = 0;
            error = cudaSuccess;
        }
    } else if (!order_apply(plan, found, left)) {
        error = cudaErrorMemoryAllocation;
    }
    free(room);
    return error;
}

// --- Lanes ---

struct lane {
    uint32_t last; // node
    int device;
};

static bool lane_takes(const struct lane *lane, uint32_t last, int device) {
    return lane->last == last &&
           (device == ANY_DEVICE || lane->device == ANY_DEVICE || lane->device == device);
}

// Each node goes on in the lane of the first of its dependencies behind which no other node went
// on, if that lane's device is its own; else it begins one.
static bool lanes(struct sim__exec *exec) {
    struct lane *found = malloc((exec->node_count + (size_t)1) * sizeof *found);
    if (found == NULL)
        return false;
    for (uint32_t i = 0; i < exec->node_count; ++i) {
        struct sim__exec_node *node = &exec->nodes[i];
        const uint32_t *dependencies = exec->dependencies + node->dependency_first;
        node->lane = exec->lane_count;
        for (uint32_t at = 0; at < node->dependency_count; ++at) {
            const uint32_t lane = exec->nodes[dependencies[at]].lane;
            if (lane_takes(&found[lane], dependencies[at], node->device)) {
                node->lane = lane;
                break;
            }
        }
        if (node->lane == exec->lane_count)
            found[exec->lane_count++] = (struct lane){i, node->device};
        found[node->lane].last = i;
        if (node->device != ANY_DEVICE)
            found[node->lane].device = node->device;
    }
    for (uint32_t i = 0; i < exec->node_count; ++i) {
        const int device = found[exec->nodes[i].lane].device;
        exec->nodes[i].device = device == ANY_DEVICE ? exec->device : device;
    }
    free(found);
    return true;
}

// --- The whole ---

static bool plan_begin(struct plan *plan, const struct sim__graph *graph) {
    struct size size = {0};
    size_add(&size, graph);
    *plan = (struct plan){.is_forward = true};
    if (size.nodes >= UINT32_MAX || size.dependencies >= UINT32_MAX)
        return false;
    plan->nodes = malloc((size.nodes + 1) * sizeof *plan->nodes);
    plan->origins = malloc((size.nodes + 1) * sizeof *plan->origins);
    plan->dependencies = malloc((size.dependencies + 1) * sizeof *plan->dependencies);
    return plan->nodes != NULL && plan->origins != NULL && plan->dependencies != NULL;
}

// Nodes are found by origin from now on.
static bool nodes_index(struct sim__exec *exec) {
    for (uint32_t i = 0; i < exec->node_count; ++i) {
        const struct sim__exec_node *node = &exec->nodes[i];
        if (!sim__exec_node_is_last(node) &&
            base_address_map_set(&exec->indices, node->origin, i) != BASE_OK)
            return false;
    }
    return true;
}

// They keep what they share with the graph's nodes. False: out of memory, and all is to be given
// back.
static bool nodes_retain(const struct sim__exec *exec) {
    bool done = true;
    for (uint32_t i = 0; i < exec->node_count; ++i) {
        struct sim__exec_node *node = &exec->nodes[i];
        sim__graph_work_retain(node->work);
        sim__graph_allocation_retain(node->allocation);
        if (sim__exec_node_is_first(node)) {
            const struct sim__node *origin = sim__handle_find(&sim__nodes, node->origin);
            done &= sim__graph_objects_copy(origin->child->objects, &node->objects);
        }
    }
    return done;
}

static bool sinks_list(struct sim__exec *exec, const struct sim__graph *graph) {
    uint64_t index;
    exec->sinks = malloc((graph->node_count + 1) * sizeof *exec->sinks);
    if (exec->sinks == NULL)
        return false;
    for (const struct sim__node_link *link = graph->sinks.next; link != &graph->sinks;
         link = link->next) {
        const struct sim__node *node = SIM__NODE_OF(link, sink);
        base_address_map_get(&exec->indices, node->slot.handle, &index);
        exec->sinks[exec->sink_count++] =
            node->child == NULL ? (uint32_t)index : exec->nodes[index].child_end;
    }
    exec->graph_node_count = (uint32_t)graph->node_count;
    return true;
}

static void plan_end(struct sim__exec *exec) {
    free(exec->nodes);
    free(exec->dependencies);
    free(exec->sinks);
    base_address_map_deinit(&exec->indices);
    exec->nodes = NULL;
    exec->dependencies = exec->sinks = NULL;
    exec->node_count = exec->lane_count = exec->dependency_count = exec->sink_count = 0;
}

cudaError_t sim__exec_plan(struct sim__exec *exec, const struct sim__graph *graph,
                           struct sim__node **error_node) {
    struct plan plan;
    cudaError_t error = cudaErrorMemoryAllocation;
    if (plan_begin(&plan, graph)) {
        nodes_number(&plan, graph);
        nodes_depend(&plan, graph, NULL);
        error = order(&plan, error_node);
    }
    free(plan.origins);
    exec->nodes = plan.nodes;
    exec->dependencies = plan.dependencies;
    exec->node_count = plan.node_count;
    exec->dependency_count = plan.dependency_count;
    if (error == cudaSuccess && !(lanes(exec) && nodes_index(exec) && sinks_list(exec, graph)))
        error = cudaErrorMemoryAllocation;
    if (error != cudaSuccess) {
        plan_end(exec);
    } else if (!nodes_retain(exec)) {
        sim__exec_unplan(exec);
        error = cudaErrorMemoryAllocation;
    }
    return error;
}

void sim__exec_unplan(struct sim__exec *exec) {
    for (uint32_t i = 0; i < exec->node_count; ++i) {
        sim__graph_work_release(exec->nodes[i].work);
        sim__graph_allocation_release(exec->nodes[i].allocation);
        sim__graph_objects_release(exec->nodes[i].objects);
    }
    plan_end(exec);
}
