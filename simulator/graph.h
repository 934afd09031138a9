// CUDA graphs: what a program or a capture builds (cudaGraph_t and its nodes), and what it launches
// (cudaGraphExec_t).
//
//     graph.c           graphs and nodes; cloning and destroying them
//     graph_edge.c      edges
//     graph_query.c     the calls that ask about these, and change edges
//     graph_params.h    parameters of nodes become work, and back
//     graph_node.c      the calls that add nodes
//     graph_node_params.c ... and change and tell their parameters
//     graph_plan.c      a graph as a list in an order in which every edge goes forward
//     graph_exec.c      instantiate, destroy
//     graph_exec_node.c the calls that change nodes of executables
//     graph_update.c    an executable takes another graph's parameters
//     graph_memory.h    allocation and free nodes, and the memory behind them
//     graph_dot.c       a graph as a picture
//     user_object.c     counted objects of the program's that graphs own
//     replay.c          a launch: nodes become operations
//     capture.h         graphs from streams
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_GRAPH_H
#define TIDEMARK_SIMULATOR_GRAPH_H

#include "base/address_map.h"
#include "simulator/engine.h"
#include "simulator/race.h"

// A captured cuStreamWriteValue32 or 64: the type that the driver has for it and the runtime's
// header does not name.
#define SIM__NODE_VALUE ((enum cudaGraphNodeType)12)

// What a node does. It never changes: a node with new parameters gets another one. So nodes, their
// clones, executables and pending launches share it, counted, and each keeps what it began with.
struct sim__graph_work {
    uint64_t references;
    struct sim__operation operation; // its bytes are its own, copied already; no waits
    struct sim__race_node *race;     // NULL while the checker is off
    int device;                      // whose work it is
    // Of copies and fills: the devices that own the destination and the source; -1 for host memory.
    int operand_devices[2];
};

// OPERATION's bytes are copied; GRAPH (its number) and STREAM: for which it is captured, else 0 and
// NULL. Its one reference is the caller's. NULL: out of memory, as for all that makes something
// here.
struct sim__graph_work *sim__graph_work_create(const struct sim__operation *operation, int device,
                                               uint64_t graph, const struct sim__stream *stream);
static inline struct sim__graph_work *sim__graph_work_retain(struct sim__graph_work *work) {
    if (work != NULL)
        ++work->references;
    return work;
}
void sim__graph_work_release(struct sim__graph_work *work); // NULL is fine

// One end of an edge, in the list of a node: the other node, where the edge stands in that one's
// list, and what the edge carries (sim__edge_pack; 0: nothing).
struct sim__edge_end {
    struct sim__node *node;
    uint32_t place;
    uint32_t data;
};
static inline uint32_t sim__edge_pack(cudaGraphEdgeData data) {
    return (uint32_t)data.from_port | (uint32_t)data.to_port << 8 | (uint32_t)data.type << 16;
}
static inline cudaGraphEdgeData sim__edge_unpack(uint32_t data) {
    return (cudaGraphEdgeData){.from_port = (unsigned char)data,
                               .to_port = (unsigned char)(data >> 8),
                               .type = (unsigned char)(data >> 16)};
}

// Of kernel nodes; of others zero.
struct sim__node_attributes {
    int priority; // as the program asked for it; captured: the stream's
    int cooperative;
};

// A place in a list of a graph's nodes; a list is a ring through its head.
struct sim__node_link {
    struct sim__node_link *next, *previous;
};
static inline void sim__node_link_last(struct sim__node_link *list, struct sim__node_link *link) {
    *link = (struct sim__node_link){list, list->previous};
    list->previous->next = link;
    list->previous = link;
}
static inline void sim__node_unlink(struct sim__node_link *link) {
    link->previous->next = link->next;
    link->next->previous = link->previous;
}

// Nodes of one graph are numbered in the order in which they were added: an edge of a capture goes
// from a smaller to a greater number, one of a program's graph may not.
struct sim__node {
    // Asked for most.
    struct sim__handle_slot slot; // in sim__nodes
    struct sim__graph *graph;
    // Edges, in the order in which they were added while none is removed.
    struct sim__edge_end *dependencies, *dependents;
    uint32_t dependency_count, dependency_size, dependent_count, dependent_size;

    uint64_t number; // from 1 in its graph
    uint64_t mark;   // scratch, see sim__graph_mark
    enum cudaGraphNodeType type;
    uint32_t index; // scratch of graph_plan.c
    struct sim__node_link by_number; // among all nodes
    struct sim__node_link root;      // in graph->roots while it has no dependencies
    struct sim__node_link sink;      // in graph->sinks while it has no dependents
    struct sim__graph_work *work;    // of types that are one operation; else NULL
    uint64_t stream;                 // captured: its number; 0: the program's own node
    struct sim__graph *child;        // cudaGraphNodeTypeGraph: its own copy
    cudaEvent_t event;               // event record, event wait
    struct sim__graph_allocation *allocation; // memory nodes: graph_memory.c
    struct sim__node_attributes attributes;
    enum cudaMemcpyKind kind; // memcpy: as the program gave it; captured: unused
    uint32_t element_size;    // memset: as the program gave it; captured: 0
};

struct sim__graph {
    struct sim__handle_slot slot; // in sim__graphs
    uint64_t number; // from 1 since the machine started; a graph's copy has another one
    // Heads of lists: all by number; without dependencies, without dependents by when they became
    // so.
    struct sim__node_link nodes, roots, sinks;
    uint64_t node_count, root_count, edge_count;
    uint64_t node_number;         // the last one given
    struct sim__node *parent;     // the child node that owns it, or NULL; it cannot be destroyed
    struct sim__capture *capture; // that builds it, or NULL; more are `beside` it
    struct sim__graph_region *region; // graph_memory.h: where its next allocation may go
    uint64_t memory_node_count;   // with those of child graphs
    uint64_t exec_count;          // executables that the program did not destroy
    uint32_t height;              // at most so many levels of child graphs are below it
    struct sim__graph_objects *objects;   // user objects, or NULL
    bool moved;                           // to its parent, by the program
    bool edges_indexed;                   // edge_places is complete: see graph_edge.c
    struct base_address_map edge_places;
    struct base_address_map copies; // of a copy: handles of originals to those of its nodes
};

#define SIM__NODE_OF(link_, member)                                                                \
    ((struct sim__node *)(void *)((char *)(link_)-offsetof(struct sim__node, member)))
// Every NODE of GRAPH, by number.
#define SIM__EACH_NODE(node, graph)                                                                \
    for (struct sim__node *node = SIM__NODE_OF((graph)->nodes.next, by_number);                    \
         &node->by_number != &(graph)->nodes; node = SIM__NODE_OF(node->by_number.next, by_number))

// An executable: child graphs unfolded, in an order in which every edge goes forward. A child graph
// stands between two nodes without work: the first (cudaGraphNodeTypeGraph) comes behind the child
// node's dependencies, the last (cudaGraphNodeTypeEmpty, no origin) before its dependents.
struct sim__exec_node {
    struct sim__graph_work *work; // NULL: nothing to do
    enum cudaGraphNodeType type;
    int device; // the lane's
    cudaEvent_t event;                        // event nodes
    struct sim__graph_allocation *allocation; // memory nodes
    uint64_t origin;           // handle of the graph's node; may be gone
    uint64_t number;           // of the origin in its graph
    uint64_t stream;           // as in sim__node
    struct sim__node_attributes attributes;
    uint32_t dependency_first; // in the executable's dependencies
    uint32_t dependency_count;
    uint32_t lane; // a chain of edges that it continues: nodes of one lane run in their order
    uint32_t child_end;   // of a child graph's first: the index of its last; of the last: the first
    uint32_t child_count; // of both: how many nodes that graph has, its children's not counted
    struct sim__graph_objects *objects; // of a child graph's first: that graph's user objects
    bool enabled;
};
// The two nodes between which a child graph stands.
static inline bool sim__exec_node_is_first(const struct sim__exec_node *node) {
    return node->type == cudaGraphNodeTypeGraph;
}
static inline bool sim__exec_node_is_last(const struct sim__exec_node *node) {
    return node->origin == 0;
}

struct sim__exec {
    struct sim__handle_slot slot; // in sim__execs
    uint64_t number;              // from 1 since the machine started
    uint64_t graph;               // number of the graph it was made from
    uint64_t graph_handle;        // may be gone
    int device;                   // current at instantiation
    unsigned long long flags;
    struct sim__exec_node *nodes;
    uint32_t *dependencies; // indices of nodes, each smaller than that of the dependent one
    uint32_t node_count, lane_count, dependency_count;
    uint32_t *sinks; // nodes of the graph itself without dependents, as they stood in its list
    uint32_t sink_count;
    uint32_t graph_node_count;       // of the graph itself
    struct base_address_map indices; // of nodes, by their origins
    struct sim__exec_memory *memory; // graph_memory.h: NULL without memory nodes
    struct sim__position last;       // the end of the last launch
    uint64_t running;          // launches that are not complete
    bool destroyed;            // by the program, while launches were pending
    struct sim__graph_objects *objects;
    struct sim__graph_objects *retired; // updates took their place; launches may still need them
};

extern struct sim__handle_table sim__graphs, sim__nodes, sim__execs;

// cudaErrorInvalidValue if it is none.
cudaError_t sim__graph_resolve(cudaGraph_t handle, struct sim__graph **graph);
cudaError_t sim__node_resolve(cudaGraphNode_t handle, struct sim__node **node);
cudaError_t sim__exec_resolve(cudaGraphExec_t handle, struct sim__exec **exec);
static inline cudaGraph_t sim__graph_handle(const struct sim__graph *graph) {
    return (cudaGraph_t)(uintptr_t)graph->slot.handle;
}
static inline cudaGraphNode_t sim__node_handle(const struct sim__node *node) {
    return (cudaGraphNode_t)(uintptr_t)node->slot.handle;
}
static inline cudaGraphExec_t sim__exec_handle(const struct sim__exec *exec) {
    return (cudaGraphExec_t)(uintptr_t)exec->slot.handle;
}

struct sim__graph *sim__graph_create(void);
void sim__graph_destroy(struct sim__graph *graph);
// A copy with nodes of the same numbers; GRAPH has no memory nodes.
struct sim__graph *sim__graph_clone(const struct sim__graph *graph);
// A number that no node has as its mark, for walks that must know where they were.
uint64_t sim__graph_mark(void);

// A node behind DEPENDENCIES, which are of GRAPH, each once. DATA: what these edges carry
// (sim__edge_pack), checked already; NULL: nothing. Cost O(count). It takes over WORK, which may be
// NULL, unless it returns NULL.
struct sim__node *sim__graph_add(struct sim__graph *graph, enum cudaGraphNodeType type,
                                 struct sim__node *const *dependencies, const uint32_t *data,
                                 size_t count, struct sim__graph_work *work);
// What a program passes as the dependencies of a node of TYPE: cudaErrorInvalidValue for nodes that
// are none, of another graph or named twice, and for edges that cannot be so. The arrays are valid
// until the next such call; *data is NULL if EDGES is.
cudaError_t sim__graph_dependencies(const struct sim__graph *graph, enum cudaGraphNodeType type,
                                    const cudaGraphNode_t *handles, const cudaGraphEdgeData *edges,
                                    size_t count, struct sim__node *const **nodes,
                                    const uint32_t **data);
// Whether an edge between nodes of these types can carry DATA.
bool sim__edge_fits(cudaGraphEdgeData data, enum cudaGraphNodeType from, enum cudaGraphNodeType to);

// FROM and TO are of one graph, and there is no such edge yet; false: out of memory.
bool sim__edge_add(struct sim__node *from, struct sim__node *to, uint32_t data);
// The place of the edge in TO's dependencies; false if there is none. Cost O(1).
bool sim__edge_find(const struct sim__node *from, const struct sim__node *to, uint32_t *place);
void sim__edge_remove(struct sim__node *to, uint32_t place);
// With all its edges.
void sim__node_remove(struct sim__node *node);

// What GRAPH comes to: nodes, dependencies and all that follows from them, for an executable with
// its device. cudaErrorInvalidValue if there is a cycle: *error_node is of it.
cudaError_t sim__exec_plan(struct sim__exec *exec, const struct sim__graph *graph,
                           struct sim__node **error_node);
// Frees what sim__exec_plan made.
void sim__exec_unplan(struct sim__exec *exec);
// From now on the nodes of EXEC, or those of its child graph whose first is CHILD, do what the
// nodes of GRAPH do, which must be like the graph that they come from.
// cudaErrorGraphExecUpdateFailure, and *info says why; nothing has changed then.
cudaError_t sim__exec_update(struct sim__exec *exec, struct sim__exec_node *child,
                             const struct sim__graph *graph, cudaGraphExecUpdateResultInfo *info);
// No launch of EXEC is pending any more.
void sim__exec_idle(struct sim__exec *exec);
void sim__exec_free(struct sim__exec *exec);

// replay.c. A launch of EXEC in STREAM, which does not capture.
cudaError_t sim__replay(struct sim__stream *stream, struct sim__exec *exec);
// The memory that a launch needs; in the order of STREAM, which does not capture.
cudaError_t sim__upload(struct sim__stream *stream, struct sim__exec *exec);

// All graphs and executables: the machine stops.
void sim__graphs_clear(void);

#endif
