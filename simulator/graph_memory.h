// Memory of allocation and free nodes.
//
//     graph_memory.c        allocations: what launches and the program do to them
//     graph_memory_node.c   nodes that make and end them
//     graph_pool.c          the device memory behind them
//
// An allocation has its address from when its node is made. Addresses of one graph stand in
// *regions*. Device memory comes to a region when an executable is launched or uploaded, in
// *slabs* of the device's pool of graph memory, which keeps them until it is trimmed. Regions of
// several graphs may have one slab, if their launches and their live allocations never meet.
//
// In a graph, an allocation behind the free of another one of its size gets that one's address: to
// the simulator both are one allocation, which opens again.
//
// Whether an allocation is live is host order: from the launch that makes it and does not free it,
// to the call that frees it or launches its free.
//
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_GRAPH_MEMORY_H
#define TIDEMARK_SIMULATOR_GRAPH_MEMORY_H

#include "simulator/graph.h"
#include "simulator/pool.h"

struct sim__graph_slab; // graph_pool.c

struct sim__graph_region {
    struct sim__segment segment; // SIM__SEGMENT_GRAPH; its backing is the slab's, of size 0: none
    uint64_t references;         // allocations
    uint64_t used;               // bytes from its start that have been given out
    uint64_t taken;              // addresses, for sim__address_give
    uint64_t live_count;         // allocations
    // Launches and frees that must be complete before its memory can be another one's.
    struct sim__position *users;
    uint32_t user_count, user_size;
    struct sim__graph_slab *slab;
    struct sim__graph_region *next, **previous; // of those that have the slab
    const struct sim__exec_memory *noted; // scratch: where it stands there
    uint32_t place;
};

struct sim__graph_allocation {
    struct sim__block block; // in sim__state.blocks from creation on
    uint64_t references;     // nodes, executables' nodes, and one while it is live
    uint64_t start, size;
    uint64_t graph;    // number of the graph whose node it is
    uint64_t freed_at; // number of the node that freed it there last; 0: none did
    bool is_open;      // allocated by that graph's last node about it, and not freed
    bool live;
    int32_t balance; // scratch: allocations less frees in an executable
    struct sim__graph_region *region; // NULL: the machine has stopped
    uint64_t *freeing_graphs;         // numbers of other graphs with a free of it
    uint32_t freeing_count;
    struct cudaMemPoolProps properties; // as the program gave them
    struct cudaMemAccessDesc *descriptors;
    size_t descriptor_count;
    struct sim__graph_allocation *next, **previous; // of all
};

// What launches do to memory; made at instantiation. Each allocation and region once.
struct sim__exec_memory {
    struct sim__exec_region {
        struct sim__graph_region *region;
        bool escapes; // something in it outlives the launch
    } *regions;                             // where it allocates
    struct sim__graph_allocation **made;    // allocated and not freed
    struct sim__graph_allocation **ended;   // freed and not allocated
    uint32_t region_count, made_count, ended_count;
};

// --- graph_memory.c: allocations ---

// A reference more, or one less: the last takes the address with it. NULL is fine.
struct sim__graph_allocation *
sim__graph_allocation_retain(struct sim__graph_allocation *allocation);
void sim__graph_allocation_release(struct sim__graph_allocation *allocation);
// One of GRAPH's, with one reference; NULL: out of addresses.
struct sim__graph_allocation *sim__graph_allocation_make(const struct sim__graph *graph,
                                                         int device, uint64_t size,
                                                         uint32_t readers, uint32_t writers);

// --- graph_memory_node.c ---

// Nodes behind COUNT dependencies, as sim__graph_add; they have a reference on their allocation.
// STREAM: captured in it, or NULL. SIZE > 0. cudaErrorMemoryAllocation: out of addresses;
// cudaErrorNotSupported: GRAPH is a child node's; cudaErrorInvalidValue: POINTER is no graph's
// allocation, or has a free node already.
cudaError_t sim__graph_memory_alloc(struct sim__graph *graph, struct sim__node *const *dependencies,
                                    const uint32_t *data, size_t count, int device, uint64_t size,
                                    const struct sim__stream *stream, struct sim__node **node,
                                    void **pointer);
cudaError_t sim__graph_memory_free(struct sim__graph *graph, struct sim__node *const *dependencies,
                                   const uint32_t *data, size_t count, uint64_t address,
                                   const struct sim__stream *stream, struct sim__node **node);
// The same as the program asks for it.
cudaError_t sim__graph_add_alloc(struct sim__graph *graph, struct sim__node *const *dependencies,
                                 const uint32_t *data, size_t count,
                                 struct cudaMemAllocNodeParams *parameters,
                                 struct sim__node **node);
cudaError_t sim__graph_add_free(struct sim__graph *graph, struct sim__node *const *dependencies,
                                const uint32_t *data, size_t count, void *pointer,
                                struct sim__node **node);

// --- graph_memory.c: frees and launches ---

// The program frees a live allocation, in STREAM's order, or at once (NULL). cudaErrorInvalidValue
// if it is not live.
cudaError_t sim__graph_allocation_free(struct sim__graph_allocation *allocation,
                                       struct sim__stream *stream);

// EXEC, whose nodes stand, is instantiated; it ends.
cudaError_t sim__exec_memory_create(struct sim__exec *exec);
void sim__exec_memory_destroy(struct sim__exec *exec);
// Before a launch in STREAM, or an upload: memory for all regions; WAIT is told what else the
// launch must wait for. Nothing has changed for the program if it fails: cudaErrorInvalidValue for
// allocations that are live already or not live as the launch would need it,
// cudaErrorMemoryAllocation.
cudaError_t sim__exec_memory_attach(struct sim__exec *exec, struct sim__stream *stream,
                                    void (*wait)(struct sim__position position), bool launches);
// The launch has begun in STREAM: its allocations are live, or are not any more.
void sim__exec_memory_begun(const struct sim__exec *exec, const struct sim__stream *stream);
// exec->last is the launch's end.
void sim__exec_memory_launched(const struct sim__exec *exec);

// Takes away all memory: the machine stops. Allocations go with their last references.
void sim__graph_memory_clear(void);

// --- graph_pool.c ---

// SIZE bytes of addresses on DEVICE, with rights as in struct sim__segment; NULL: there are none.
struct sim__graph_region *sim__graph_region_make(int device, uint64_t size, uint32_t readers,
                                                 uint32_t writers);
void sim__graph_region_end(struct sim__graph_region *region);
// POSITION uses what REGION has.
void sim__graph_region_use(struct sim__graph_region *region, struct sim__position position);
// Memory for all of REGIONS, for a launch in STREAM, by CALL; false: the device has not enough.
bool sim__graph_regions_attach(const struct sim__exec_region *regions, uint32_t count,
                               const struct sim__stream *stream, enum sim_call call,
                               void (*wait)(struct sim__position position));
void sim__graph_pools_clear(void);

#endif
