// Graphs and their nodes: made, found by handle, copied, destroyed. What nodes do is shared and
// never changes (struct sim__graph_work), so a copy of a graph costs its nodes and edges alone.
#include "simulator/graph.h"

#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/checked.h"
#include "simulator/graph_memory.h"
#include "simulator/user_object.h"

#include <stdlib.h>

#define GRAPH_TAG 0x47
#define NODE_TAG 0x4e
#define EXEC_TAG 0x58

struct sim__handle_table sim__graphs = {.tag = GRAPH_TAG, .slot_size = sizeof(struct sim__graph)};
struct sim__handle_table sim__nodes = {.tag = NODE_TAG, .slot_size = sizeof(struct sim__node)};
struct sim__handle_table sim__execs = {.tag = EXEC_TAG, .slot_size = sizeof(struct sim__exec)};

static uint64_t graph_number;
static uint64_t mark;

uint64_t sim__graph_mark(void) { return ++mark; }

// --- Handles ---

static void *resolve(const struct sim__handle_table *table, const char *what, const void *handle) {
    const uint64_t number = (uint64_t)(uintptr_t)handle;
    void *found = sim__handle_find(table, number);
    if (found == NULL && number != 0 && sim__checked())
        sim__misuse_handle(what, number, sim__handle_was_taken(table, number));
    return found;
}

cudaError_t sim__graph_resolve(cudaGraph_t handle, struct sim__graph **graph) {
    *graph = resolve(&sim__graphs, "graph", handle);
    return *graph != NULL ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t sim__node_resolve(cudaGraphNode_t handle, struct sim__node **node) {
    *node = resolve(&sim__nodes, "graph node", handle);
    return *node != NULL ? cudaSuccess : cudaErrorInvalidValue;
}

// An executable that the program destroyed lives on while it runs.
cudaError_t sim__exec_resolve(cudaGraphExec_t handle, struct sim__exec **exec) {
    *exec = resolve(&sim__execs, "executable graph", handle);
    return *exec != NULL && !(*exec)->destroyed ? cudaSuccess : cudaErrorInvalidValue;
}

// --- What nodes do ---

static int owner_of(const void *pointer) {
    const struct sim__segment *segment = sim__segment_at(pointer);
    return segment == NULL ? -1 : segment->device;
}

static void operands_find(struct sim__graph_work *work) {
    const struct sim__operation *operation = &work->operation;
    work->operand_devices[0] = work->operand_devices[1] = -1;
    if (operation->kind == SIM__OPERATION_COPY) {
        work->operand_devices[0] = owner_of(operation->copy.destination);
        work->operand_devices[1] = owner_of(operation->copy.source);
    } else if (operation->kind == SIM__OPERATION_FILL) {
        work->operand_devices[0] = owner_of(operation->fill.pointer);
    }
}

// The checker has read them; they are the call's.
static void accesses_forget(struct sim__operation *operation) {
    if (operation->kind == SIM__OPERATION_KERNEL) {
        operation->kernel.accesses = NULL;
        operation->kernel.access_count = 0;
    } else if (operation->kind == SIM__OPERATION_HOST_FUNCTION) {
        operation->host_function.accesses = NULL;
        operation->host_function.access_count = 0;
    }
}

struct sim__graph_work *sim__graph_work_create(const struct sim__operation *operation, int device,
                                               uint64_t graph, const struct sim__stream *stream) {
    struct sim__graph_work *work = malloc(sizeof *work);
    if (work == NULL)
        return NULL;
    *work = (struct sim__graph_work){.references = 1, .operation = *operation, .device = device};
    sim__operation_keep(&work->operation);
    accesses_forget(&work->operation);
    operands_find(work);
    if (sim__race_is_on())
        work->race = sim__race_node_create(operation, graph, stream == NULL ? 0 : stream->number);
    return work;
}

void sim__graph_work_release(struct sim__graph_work *work) {
    if (work == NULL || --work->references > 0)
        return;
    sim__race_node_release(work->race);
    sim__operation_release(&work->operation);
    free(work);
}

// --- Nodes ---

static void list_clear(struct sim__node_link *list) { *list = (struct sim__node_link){list, list}; }

static struct sim__node *node_create(struct sim__graph *graph, enum cudaGraphNodeType type) {
    struct sim__node *node = sim__handle_take(&sim__nodes);
    if (node == NULL)
        return NULL;
    const struct sim__handle_slot slot = node->slot;
    *node = (struct sim__node){.slot = slot, .graph = graph, .type = type};
    node->number = ++graph->node_number;
    sim__node_link_last(&graph->nodes, &node->by_number);
    sim__node_link_last(&graph->roots, &node->root);
    sim__node_link_last(&graph->sinks, &node->sink);
    ++graph->node_count;
    ++graph->root_count;
    return node;
}

// What it holds besides edges and its place in the graph.
static void node_free(struct sim__node *node) {
    sim__graph_work_release(node->work);
    sim__graph_allocation_release(node->allocation);
    if (node->child != NULL)
        sim__graph_destroy(node->child);
    free(node->dependencies);
    free(node->dependents);
    sim__handle_give(&sim__nodes, node);
}

void sim__node_remove(struct sim__node *node) {
    struct sim__graph *graph = node->graph;
    while (node->dependency_count > 0)
        sim__edge_remove(node, node->dependency_count - 1);
    while (node->dependent_count > 0) {
        const struct sim__edge_end last = node->dependents[node->dependent_count - 1];
        sim__edge_remove(last.node, last.place);
    }
    sim__node_unlink(&node->by_number);
    sim__node_unlink(&node->root);
    sim__node_unlink(&node->sink);
    --graph->node_count;
    --graph->root_count;
    node_free(node);
}

struct sim__node *sim__graph_add(struct sim__graph *graph, enum cudaGraphNodeType type,
                                 struct sim__node *const *dependencies, const uint32_t *data,
                                 size_t count, struct sim__graph_work *work) {
    struct sim__node *node = node_create(graph, type);
    if (node == NULL)
        return NULL;
    for (size_t i = 0; i < count; ++i) {
        if (!sim__edge_add(dependencies[i], node, data == NULL ? 0 : data[i])) {
            sim__node_remove(node);
            return NULL;
        }
    }
    node->work = work;
    return node;
}

// Grows for ever, as the longest list did; guarded by the simulator's lock.
static struct sim__node **passed_nodes;
static uint32_t *passed_data;
static size_t passed_size;

static bool passed_room(size_t count) {
    if (count <= passed_size)
        return true;
    struct sim__node **nodes = realloc(passed_nodes, 2 * count * sizeof(struct sim__node *));
    if (nodes == NULL)
        return false;
    passed_nodes = nodes;
    uint32_t *data = realloc(passed_data, 2 * count * sizeof *data);
    if (data == NULL)
        return false;
    passed_data = data;
    passed_size = 2 * count;
    return true;
}

cudaError_t sim__graph_dependencies(const struct sim__graph *graph, enum cudaGraphNodeType type,
                                    const cudaGraphNode_t *handles, const cudaGraphEdgeData *edges,
                                    size_t count, struct sim__node *const **nodes,
                                    const uint32_t **data) {
    if ((handles == NULL && count > 0) || count > graph->node_count)
        return cudaErrorInvalidValue;
    if (!passed_room(count))
        return cudaErrorMemoryAllocation;
    const uint64_t now = sim__graph_mark();
    for (size_t i = 0; i < count; ++i) {
        struct sim__node *node;
        if (sim__node_resolve(handles[i], &node) != cudaSuccess || node->graph != graph ||
            node->mark == now || (edges != NULL && !sim__edge_fits(edges[i], node->type, type)))
            return cudaErrorInvalidValue;
        node->mark = now;
        passed_nodes[i] = node;
        passed_data[i] = edges == NULL ? 0 : sim__edge_pack(edges[i]);
    }
    *nodes = passed_nodes;
    *data = edges == NULL ? NULL : passed_data;
    return cudaSuccess;
}

// --- Graphs ---

struct sim__graph *sim__graph_create(void) {
    struct sim__graph *graph = sim__handle_take(&sim__graphs);
    if (graph == NULL)
        return NULL;
    const struct sim__handle_slot slot = graph->slot;
    *graph = (struct sim__graph){.slot = slot, .number = ++graph_number};
    list_clear(&graph->nodes);
    list_clear(&graph->roots);
    list_clear(&graph->sinks);
    return graph;
}

void sim__graph_destroy(struct sim__graph *graph) {
    struct sim__node_link *link = graph->nodes.next;
    if (graph->capture != NULL)
        sim__capture_graph_ends(graph);
    while (link != &graph->nodes) {
        struct sim__node_link *next = link->next;
        node_free(SIM__NODE_OF(link, by_number));
        link = next;
    }
    sim__graph_objects_release(graph->objects);
    base_address_map_deinit(&graph->edge_places);
    base_address_map_deinit(&graph->copies);
    sim__handle_give(&sim__graphs, graph);
}

static bool node_copy(struct sim__graph *copy, const struct sim__node *node) {
    struct sim__node *new = node_create(copy, node->type);
    if (new == NULL)
        return false;
    copy->node_number = new->number = node->number;
    new->kind = node->kind;
    new->element_size = node->element_size;
    new->attributes = node->attributes;
    new->work = sim__graph_work_retain(node->work);
    new->event = node->event;
    new->stream = node->stream;
    if (node->child != NULL) {
        new->child = sim__graph_clone(node->child);
        if (new->child == NULL)
            return false;
        new->child->parent = new;
    }
    return base_address_map_set(&copy->copies, node->slot.handle, new->slot.handle) == BASE_OK;
}

static bool edges_copy(const struct sim__graph *copy, const struct sim__node *node) {
    uint64_t to, from;
    if (!base_address_map_get(&copy->copies, node->slot.handle, &to))
        return false;
    for (uint32_t i = 0; i < node->dependency_count; ++i) {
        if (!base_address_map_get(&copy->copies, node->dependencies[i].node->slot.handle, &from) ||
            !sim__edge_add(sim__handle_find(&sim__nodes, from), sim__handle_find(&sim__nodes, to),
                           node->dependencies[i].data))
            return false;
    }
    return true;
}

struct sim__graph *sim__graph_clone(const struct sim__graph *graph) {
    struct sim__graph *copy = sim__graph_create();
    if (copy == NULL)
        return NULL;
    bool done = sim__graph_objects_copy(graph->objects, &copy->objects);
    SIM__EACH_NODE(node, graph) {
        done = done && node_copy(copy, node);
    }
    SIM__EACH_NODE(node, graph) {
        done = done && edges_copy(copy, node);
    }
    if (done)
        return copy;
    sim__graph_destroy(copy);
    return NULL;
}

void sim__graphs_clear(void) {
    for (uint32_t i = 0; i < sim__execs.slot_count; ++i) {
        struct sim__exec *exec = sim__handle_slot_at(&sim__execs, i);
        if (exec->slot.handle != 0)
            sim__exec_free(exec);
    }
    for (uint32_t i = 0; i < sim__graphs.slot_count; ++i) {
        struct sim__graph *graph = sim__handle_slot_at(&sim__graphs, i);
        if (graph->slot.handle != 0 && graph->parent == NULL)
            sim__graph_destroy(graph);
    }
    sim__handle_clear(&sim__graphs);
    sim__handle_clear(&sim__nodes);
    sim__handle_clear(&sim__execs);
    graph_number = 0;
}
