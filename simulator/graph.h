// CUDA graphs: what a program or a capture builds (cudaGraph_t and its nodes), and what it launches
// (cudaGraphExec_t).
//
//     graph.c           graphs, nodes, edges; the queries of these
//     graph_node.c      nodes of each type and their parameters
//     graph_exec.c      instantiate, update, upload, destroy
//     graph_memory.c    allocation and free nodes, and the memory behind them
//     graph_dot.c       a graph as a picture
//     replay.c          a launch: nodes become operations
//     capture.h         graphs from streams
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_GRAPH_H
#define TIDEMARK_SIMULATOR_GRAPH_H

#include "simulator/engine.h"
#include "simulator/race.h"

// What a node does, whatever became of its graph: shared by nodes, their clones and executables.
struct sim__graph_work {
    struct sim__operation operation; // its bytes are the node's own; no waits
    struct sim__race_node *race;     // NULL while the checker is off
    int device;                      // whose work it is
};

// Nodes of one graph are numbered in the order in which they were added: an edge of a capture goes
// from a smaller to a greater number, one of a program's graph may not.
struct sim__node {
    struct sim__handle_slot slot; // in sim__nodes
    struct sim__graph *graph;
    uint64_t number; // from 1 in its graph
    enum cudaGraphNodeType type;
    struct sim__graph_work work; // of types that are one operation
    struct sim__graph *child;    // cudaGraphNodeTypeGraph: its own copy
    cudaEvent_t event;           // event record, event wait
    uint64_t memory;             // memory nodes: the address
    uint64_t stream;             // captured: the number of the stream; 0 of a program's own node
    bool enabled;                // of executables
    // Edges, as handles of nodes in the order in which they were added, and what each carries.
    struct sim__node **dependencies, **dependents;
    uint32_t dependency_count, dependency_size, dependent_count, dependent_size;
    uint32_t place; // in the graph's array of nodes
};

struct sim__graph {
    struct sim__handle_slot slot; // in sim__graphs
    uint64_t number;              // from 1 since the machine started; a graph's copy has another one
    struct sim__node **nodes;     // in the order of their numbers
    uint32_t node_count, node_size;
    uint64_t node_number; // the last one given
    bool is_child;        // of a child node: it cannot be destroyed
    struct sim__capture *capture; // that builds it, or NULL
    bool has_memory_nodes;
    uint32_t exec_count; // live executables
};

// An executable: child graphs unfolded, in an order in which every edge goes forward.
struct sim__exec_node {
    struct sim__graph_work work;
    enum cudaGraphNodeType type;
    uint64_t memory;           // memory nodes
    cudaEvent_t event;         // event nodes
    const struct sim__node *origin; // for updates; may be gone: compare, never follow
    uint64_t number;           // of the origin in its graph
    uint64_t stream;           // as in sim__node
    uint32_t dependency_first; // in the executable's dependencies
    uint32_t dependency_count;
    uint32_t lane; // a chain of edges that it continues: nodes of one lane run in their order
    bool enabled;
};

struct sim__exec {
    struct sim__handle_slot slot; // in sim__execs
    uint64_t graph;               // number of the graph it was made from
    int device;                   // current at instantiation
    unsigned long long flags;
    struct sim__exec_node *nodes;
    uint32_t *dependencies; // indices of nodes, each smaller than that of the dependent one
    uint32_t node_count, lane_count, dependency_count;
    struct sim__position last; // the end of the last launch
    uint64_t running;          // launches that are not complete
    bool destroyed;            // by the program, while launches were pending
};

extern struct sim__handle_table sim__graphs, sim__nodes, sim__execs;

// cudaErrorInvalidValue if it is none.
cudaError_t sim__graph_resolve(cudaGraph_t handle, struct sim__graph **graph);
cudaError_t sim__node_resolve(cudaGraphNode_t handle, struct sim__node **node);
cudaError_t sim__exec_resolve(cudaGraphExec_t handle, struct sim__exec **exec);

// NULL: out of memory, as for all that makes something here.
struct sim__graph *sim__graph_create(void);
void sim__graph_destroy(struct sim__graph *graph);
// A copy with nodes of the same numbers.
struct sim__graph *sim__graph_clone(const struct sim__graph *graph);
// A node behind DEPENDENCIES (which are of GRAPH); cost O(count). It takes over WORK, which may be
// NULL.
struct sim__node *sim__graph_add(struct sim__graph *graph, enum cudaGraphNodeType type,
                                 struct sim__node *const *dependencies, size_t count,
                                 const struct sim__graph_work *work);
// What a node keeps of OPERATION: bytes and accesses copied, races noted. GRAPH and STREAM: for which
// it is captured, else 0 and NULL.
bool sim__graph_work_take(struct sim__graph_work *work, const struct sim__operation *operation,
                          int device, uint64_t graph, const struct sim__stream *stream);
void sim__graph_work_give(struct sim__graph_work *work);

// replay.c. A launch of EXEC in STREAM, which does not capture.
cudaError_t sim__replay(struct sim__stream *stream, struct sim__exec *exec);

// All graphs and executables: the machine stops.
void sim__graphs_clear(void);

#endif
