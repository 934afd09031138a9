// Memory nodes: allocations and frees in graphs, as captures and programs add them.
#include "simulator/graph_memory.h"

#include "simulator/call.h"
#include "simulator/checked.h"
#include "simulator/plant.h"

#include <stdlib.h>
#include <string.h>

#define ANCESTORS_MAX 64 // nodes among which the free is looked for whose address is used again

// --- What they do when they run ---

static void alloc_run(void *argument, bool discarded) {
    const struct sim__graph_allocation *allocation = argument;
    if (!discarded && sim__checked())
        sim__checked_poison(allocation->start, allocation->size, SIM__POISON_ALLOCATED);
}

static void free_run(void *argument, bool discarded) {
    const struct sim__graph_allocation *allocation = argument;
    if (!discarded && sim__checked())
        sim__checked_poison(allocation->start, allocation->size, SIM__POISON_FREED);
}

// --- Nodes ---

static struct sim__graph_allocation *allocation_at(uint64_t address) {
    const struct sim__block *block = sim__block_at((const void *)(uintptr_t)address);
    return block != NULL && block->graph != NULL && block->graph->start == address ? block->graph
                                                                                  : NULL;
}

// What ran last before NODE may be used first: the address of an allocation that a node before it
// freed, so that a program that uses it still is found out.
static struct sim__graph_allocation *allocation_again(const struct sim__graph *graph,
                                                      struct sim__node *const *dependencies,
                                                      size_t count, int device, uint64_t size,
                                                      uint32_t readers, uint32_t writers) {
    struct sim__node *found[ANCESTORS_MAX];
    size_t found_count = 0;
    const uint64_t mark = sim__graph_mark();
    for (size_t i = 0; i < count && found_count < ANCESTORS_MAX; ++i) {
        found[found_count++] = dependencies[i];
        dependencies[i]->mark = mark;
    }
    for (size_t i = 0; i < found_count; ++i) {
        struct sim__graph_allocation *allocation = found[i]->allocation;
        if (found[i]->type == cudaGraphNodeTypeMemFree && allocation->graph == graph->number &&
            allocation->freed_at == found[i]->number && !allocation->is_open &&
            allocation->size == size && allocation->region->segment.device == device &&
            allocation->region->segment.readers == readers &&
            allocation->region->segment.writers == writers)
            return allocation;
        for (uint32_t j = 0; j < found[i]->dependency_count && found_count < ANCESTORS_MAX; ++j) {
            struct sim__node *before = found[i]->dependencies[j].node;
            if (before->mark != mark)
                found[found_count++] = before;
            before->mark = mark;
        }
    }
    return NULL;
}

// Takes over a reference on ALLOCATION if there is a node.
static struct sim__node *node_add(struct sim__graph *graph, enum cudaGraphNodeType type,
                                  struct sim__node *const *dependencies, const uint32_t *data,
                                  size_t count, struct sim__graph_allocation *allocation,
                                  const struct sim__stream *stream) {
    const bool allocates = type == cudaGraphNodeTypeMemAlloc;
    const struct sim__operation operation = {
        .kind = SIM__OPERATION_INTERNAL,
        .internal = {allocates ? "allocation" : "free", allocates ? alloc_run : free_run,
                     allocation},
    };
    struct sim__graph_work *work =
        sim__graph_work_create(&operation, allocation->region->segment.device,
                               stream != NULL ? graph->number : 0, stream);
    if (work == NULL)
        return NULL;
    struct sim__node *node = sim__graph_add(graph, type, dependencies, data, count, work);
    if (node == NULL) {
        sim__graph_work_release(work);
        return NULL;
    }
    node->allocation = allocation;
    for (struct sim__graph *of = graph; of != NULL;
         of = of->parent != NULL ? of->parent->graph : NULL)
        ++of->memory_node_count;
    return node;
}

static cudaError_t alloc_node_add(struct sim__graph *graph, struct sim__node *const *dependencies,
                                  const uint32_t *data, size_t count, int device, uint64_t size,
                                  uint32_t readers, uint32_t writers,
                                  const struct sim__stream *stream, struct sim__node **node) {
    if (graph->parent != NULL)
        return cudaErrorNotSupported;
    struct sim__graph_allocation *allocation = sim__graph_allocation_retain(
        allocation_again(graph, dependencies, count, device, size, readers, writers));
    if (allocation == NULL)
        allocation = sim__graph_allocation_make(graph, device, size, readers, writers);
    if (allocation == NULL)
        return cudaErrorMemoryAllocation;
    struct sim__node *added = node_add(graph, cudaGraphNodeTypeMemAlloc, dependencies, data, count,
                                       allocation, stream);
    if (added == NULL) {
        sim__graph_allocation_release(allocation);
        return cudaErrorMemoryAllocation;
    }
    allocation->is_open = true;
    graph->region = allocation->region; // stays while the graph has the node
    *node = added;
    return cudaSuccess;
}

cudaError_t sim__graph_memory_alloc(struct sim__graph *graph, struct sim__node *const *dependencies,
                                    const uint32_t *data, size_t count, int device, uint64_t size,
                                    const struct sim__stream *stream, struct sim__node **node,
                                    void **pointer) {
    const uint32_t own = (uint32_t)1 << device;
    const cudaError_t error = alloc_node_add(graph, dependencies, data, count, device, size, own,
                                             own, stream, node);
    if (error != cudaSuccess)
        return error;
    (*node)->allocation->properties = (struct cudaMemPoolProps){
        .allocType = cudaMemAllocationTypePinned,
        .location = {.type = cudaMemLocationTypeDevice, .id = device},
    };
    *pointer = (void *)(uintptr_t)(*node)->allocation->start;
    return cudaSuccess;
}

// Whether a free node in GRAPH would be the second one.
static bool has_free_node(const struct sim__graph_allocation *allocation,
                          const struct sim__graph *graph) {
    if (!allocation->is_open)
        return true;
    for (uint32_t i = 0; i < allocation->freeing_count; ++i)
        if (allocation->freeing_graphs[i] == graph->number)
            return true;
    return false;
}

static void freeing_graph_add(struct sim__graph_allocation *allocation,
                              const struct sim__graph *graph) {
    uint64_t *numbers = realloc(allocation->freeing_graphs,
                                (allocation->freeing_count + 1) * sizeof *numbers);
    if (numbers == NULL)
        sim__host_limit("out of host memory for memory of graphs");
    numbers[allocation->freeing_count++] = graph->number;
    allocation->freeing_graphs = numbers;
}

cudaError_t sim__graph_memory_free(struct sim__graph *graph, struct sim__node *const *dependencies,
                                   const uint32_t *data, size_t count, uint64_t address,
                                   const struct sim__stream *stream, struct sim__node **node) {
    if (graph->parent != NULL)
        return cudaErrorNotSupported;
    struct sim__graph_allocation *allocation = allocation_at(address);
    if (allocation == NULL ||
        (has_free_node(allocation, graph) && !sim__planted(SIM__PLANT_GRAPH_FREE_TWICE))) {
        if (sim__checked() && allocation != NULL)
            sim__misuse("0x%llx has a free node already", (unsigned long long)address);
        else if (sim__checked())
            sim__misuse_pointer((const void *)(uintptr_t)address);
        return cudaErrorInvalidValue;
    }
    *node = node_add(graph, cudaGraphNodeTypeMemFree, dependencies, data, count, allocation,
                     stream);
    if (*node == NULL)
        return cudaErrorMemoryAllocation;
    sim__graph_allocation_retain(allocation);
    if (allocation->graph == graph->number) {
        allocation->is_open = false;
        allocation->freed_at = (*node)->number;
    } else {
        freeing_graph_add(allocation, graph);
    }
    return cudaSuccess;
}

// --- Nodes as the program asks for them ---

static bool is_device(int device) {
    return device >= 0 && device < sim__state.options.device_count;
}

static bool properties_are_valid(const struct cudaMemPoolProps *properties) {
    return properties->allocType == cudaMemAllocationTypePinned &&
           properties->handleTypes == cudaMemHandleTypeNone &&
           properties->location.type == cudaMemLocationTypeDevice &&
           is_device(properties->location.id);
}

static bool rights_of(const struct cudaMemAllocNodeParams *parameters, uint32_t *readers,
                      uint32_t *writers) {
    *readers = *writers = (uint32_t)1 << parameters->poolProps.location.id;
    for (size_t i = 0; i < parameters->accessDescCount; ++i) {
        const struct cudaMemAccessDesc *descriptor = &parameters->accessDescs[i];
        if (descriptor->location.type != cudaMemLocationTypeDevice ||
            !is_device(descriptor->location.id) ||
            (descriptor->flags != cudaMemAccessFlagsProtRead &&
             descriptor->flags != cudaMemAccessFlagsProtReadWrite))
            return false;
        const uint32_t bit = (uint32_t)1 << descriptor->location.id;
        *readers |= bit;
        if (descriptor->flags == cudaMemAccessFlagsProtReadWrite)
            *writers |= bit;
    }
    return true;
}

static void descriptors_keep(struct sim__graph_allocation *allocation,
                             const struct cudaMemAllocNodeParams *parameters) {
    const size_t size = parameters->accessDescCount * sizeof *allocation->descriptors;
    free(allocation->descriptors);
    allocation->descriptors = NULL;
    allocation->descriptor_count = parameters->accessDescCount;
    if (size == 0)
        return;
    allocation->descriptors = malloc(size);
    if (allocation->descriptors == NULL)
        sim__host_limit("out of host memory for memory of graphs");
    memcpy(allocation->descriptors, parameters->accessDescs, size);
}

cudaError_t sim__graph_add_alloc(struct sim__graph *graph, struct sim__node *const *dependencies,
                                 const uint32_t *data, size_t count,
                                 struct cudaMemAllocNodeParams *parameters,
                                 struct sim__node **node) {
    uint32_t readers, writers;
    if (parameters == NULL || parameters->bytesize == 0 ||
        !properties_are_valid(&parameters->poolProps) ||
        (parameters->accessDescs == NULL && parameters->accessDescCount > 0) ||
        !rights_of(parameters, &readers, &writers))
        return cudaErrorInvalidValue;
    const cudaError_t error =
        alloc_node_add(graph, dependencies, data, count, parameters->poolProps.location.id,
                       parameters->bytesize, readers, writers, NULL, node);
    if (error != cudaSuccess)
        return error;
    struct sim__graph_allocation *allocation = (*node)->allocation;
    allocation->properties = parameters->poolProps;
    descriptors_keep(allocation, parameters);
    parameters->dptr = (void *)(uintptr_t)allocation->start;
    return cudaSuccess;
}

cudaError_t sim__graph_add_free(struct sim__graph *graph, struct sim__node *const *dependencies,
                                const uint32_t *data, size_t count, void *pointer,
                                struct sim__node **node) {
    return sim__graph_memory_free(graph, dependencies, data, count, (uint64_t)(uintptr_t)pointer,
                                  NULL, node);
}

// --- The calls ---

// Of TYPE: an allocation with PARAMETERS, or a free of POINTER.
static cudaError_t add_locked(cudaGraphNode_t *handle, cudaGraph_t graph_handle,
                              enum cudaGraphNodeType type, const cudaGraphNode_t *dependencies,
                              size_t count, struct cudaMemAllocNodeParams *parameters,
                              void *pointer) {
    struct sim__graph *graph;
    struct sim__node *const *nodes;
    struct sim__node *node;
    const uint32_t *data;
    cudaError_t error = sim__graph_resolve(graph_handle, &graph);
    if (error == cudaSuccess && handle == NULL)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = sim__graph_dependencies(graph, type, dependencies, NULL, count, &nodes, &data);
    if (error == cudaSuccess)
        error = type == cudaGraphNodeTypeMemAlloc
                    ? sim__graph_add_alloc(graph, nodes, data, count, parameters, &node)
                    : sim__graph_add_free(graph, nodes, data, count, pointer, &node);
    if (error == cudaSuccess)
        *handle = sim__node_handle(node);
    return error;
}

// The allocation of a node of TYPE; NULL: it is another one.
static const struct sim__graph_allocation *allocation_of(cudaGraphNode_t handle,
                                                         enum cudaGraphNodeType type) {
    struct sim__node *node;
    return sim__node_resolve(handle, &node) == cudaSuccess && node->type == type ? node->allocation
                                                                                : NULL;
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *dependencies, size_t count,
                                     struct cudaMemAllocNodeParams *parameters) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = add_locked(node, graph, cudaGraphNodeTypeMemAlloc, dependencies, count, parameters,
                           NULL);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                           struct cudaMemAllocNodeParams *parameters) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess) {
        const struct sim__graph_allocation *allocation =
            allocation_of(node, cudaGraphNodeTypeMemAlloc);
        if (allocation == NULL || parameters == NULL)
            error = cudaErrorInvalidValue;
        else
            *parameters = (struct cudaMemAllocNodeParams){
                .poolProps = allocation->properties,
                .accessDescs = allocation->descriptors,
                .accessDescCount = allocation->descriptor_count,
                .bytesize = allocation->size,
                .dptr = (void *)(uintptr_t)allocation->start,
            };
    }
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                    const cudaGraphNode_t *dependencies, size_t count,
                                    void *pointer) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = add_locked(node, graph, cudaGraphNodeTypeMemFree, dependencies, count, NULL,
                           pointer);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *pointer) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess) {
        const struct sim__graph_allocation *allocation =
            allocation_of(node, cudaGraphNodeTypeMemFree);
        if (allocation == NULL || pointer == NULL)
            error = cudaErrorInvalidValue;
        else
            *(void **)pointer = (void *)(uintptr_t)allocation->start;
    }
    return sim__call_end(SIM__CALL_OTHER, error);
}
