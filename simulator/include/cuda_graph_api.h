// The CUDA 13 runtime calls for graphs: CUDA's names and signatures. A part of
// <cuda_runtime_api.h>, which includes this file and says more.
//
// A handle that names nothing (destroyed, foreign, NULL) gets cudaErrorInvalidValue. A call that
// fails changes nothing. Calls of different threads on one graph are safe here; CUDA does not
// promise that.
#ifndef TIDEMARK_SIMULATOR_CUDA_GRAPH_API_H
#define TIDEMARK_SIMULATOR_CUDA_GRAPH_API_H

#include <driver_types.h>

#ifdef __cplusplus
extern "C" {
#define TIDEMARK_SIMULATOR_DEFAULT(value) = value
#else
#define TIDEMARK_SIMULATOR_DEFAULT(value)
#endif

// --- Graphs. ---

// FLAGS must be 0.
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags);
// With its nodes; executables made from it live on. Not a child node's graph, and not while it is
// captured.
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
// Child graphs too. A graph with memory nodes: cudaErrorNotSupported.
cudaError_t cudaGraphClone(cudaGraph_t *copy, cudaGraph_t graph);
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *node, cudaGraphNode_t original,
                                     cudaGraph_t copy);
// With its edges. No nodes and edges leave a graph while it is captured (cudaErrorInvalidValue) or
// if it has memory nodes (cudaErrorNotSupported).
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node);

// --- Edges. Edge data may be NULL: all zero. An edge that is there already or leads from a node to
// itself, or data that is not for nodes of these types: cudaErrorInvalidValue. A cycle is found
// when the graph is instantiated. The types and ports that let a dependent kernel begin early are
// kept and given back; a dependent node begins behind the end of the other one all the same. ---

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *edge_data,
                                     size_t count);
// Data that the edge does not carry: cudaErrorInvalidValue.
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to,
                                        const cudaGraphEdgeData *edge_data, size_t count);

// --- Nodes: each behind COUNT nodes of the graph (NULL if 0), no one twice. Parameters are copied:
// pointers, sizes, values. What they point to is read when a launch runs. NULL, ranges that are not
// in one piece of memory, and operations on nothing: cudaErrorInvalidValue. SetParams changes the
// node; executables keep what they were made with. ---

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies, size_t count);
// No functions are registered here: cudaErrorInvalidDeviceFunction. sim_graph_add_kernel
// (simulator/sim.h) adds the simulator's kernels.
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaKernelNodeParams *parameters);
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
                                         struct cudaKernelNodeParams *parameters);
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaKernelNodeParams *parameters);
// What a kernel asks for besides its parameters: its priority (captured: the stream's) and whether
// it is cooperative. They are kept and told; other attributes: cudaErrorNotSupported.
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            cudaLaunchAttributeValue *value);
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue *value);
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from);
// No arrays. Copies whose rows are not equally far apart in memory: cudaErrorNotSupported.
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaMemcpy3DParms *parameters);
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *dependencies, size_t count,
                                     void *destination, const void *source, size_t size,
                                     enum cudaMemcpyKind kind);
// As rows: a depth of 1, and positions that are in the pointers.
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node,
                                         struct cudaMemcpy3DParms *parameters);
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemcpy3DParms *parameters);
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *destination,
                                           const void *source, size_t size,
                                           enum cudaMemcpyKind kind);
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaMemsetParams *parameters);
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node,
                                         struct cudaMemsetParams *parameters);
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemsetParams *parameters);
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *dependencies, size_t count,
                                 const struct cudaHostNodeParams *parameters);
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *parameters);
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                       const struct cudaHostNodeParams *parameters);
// A copy of CHILD becomes the node's own. With memory nodes: cudaErrorNotSupported
// (cudaGraphAddNode can move a graph into the node). At most 128 levels.
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                       const cudaGraphNode_t *dependencies, size_t count,
                                       cudaGraph_t child);
// The node's own graph: changes to it are changes of the node.
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph);
// As cudaEventRecord and cudaStreamWaitEvent at each launch.
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                        const cudaGraphNode_t *dependencies, size_t count,
                                        cudaEvent_t event);
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event);
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event);
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                      const cudaGraphNode_t *dependencies, size_t count,
                                      cudaEvent_t event);
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event);
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event);
// A node of any type. Conditional nodes and external semaphores are not simulated:
// cudaErrorNotSupported.
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                             const cudaGraphNode_t *dependencies,
                             const cudaGraphEdgeData *edge_data, size_t count,
                             struct cudaGraphNodeParams *parameters);
// Not of child graphs and memory nodes.
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *parameters);
// cudaErrorNotSupported.
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                             unsigned int default_value
                                                 TIDEMARK_SIMULATOR_DEFAULT(0),
                                             unsigned int flags TIDEMARK_SIMULATOR_DEFAULT(0));

// --- Queries. *count is the size of the arrays, and becomes the number stored in them; short ones
// get a prefix, the rest of long ones becomes NULL. Without an array *count becomes the number
// there is. Edges that carry something, asked for without EDGE_DATA: cudaErrorLossyQuery. ---

// In the order in which they were added.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *edge_data, size_t *count);
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
                                         cudaGraphEdgeData *edge_data, size_t *count);
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *dependents,
                                           cudaGraphEdgeData *edge_data, size_t *count);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type);

// --- Executables: a graph made ready to launch; the graph may be changed and destroyed then. ---

// An unknown flag, an upload without a stream, a cycle: cudaErrorInvalidValue. Launches from the
// device are not simulated: cudaErrorNotSupported. A graph with memory nodes has one executable at
// a time (cudaErrorInvalidValue).
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags TIDEMARK_SIMULATOR_DEFAULT(0));
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags TIDEMARK_SIMULATOR_DEFAULT(0));
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *parameters);
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags);
// Launches that are pending still complete.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

// --- Changes to executables, for launches to come. NODE: of the graph that the executable was made
// from. What cannot change is cudaErrorInvalidValue: the device of a kernel, the kinds of memory of
// copies and fills and the devices that own it, the shape of fills of several rows; copies of
// several rows do not change at all here. ---

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *parameters);
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *parameters);
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               void *destination, const void *source, size_t size,
                                               enum cudaMemcpyKind kind);
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams *parameters);
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *parameters);
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraph_t child);
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaEvent_t event);
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               cudaEvent_t event);
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams *parameters);
// Kernels, copies and fills. A node that is not enabled keeps its place and does nothing.
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                    unsigned int is_enabled);
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                    unsigned int *is_enabled);
// All nodes take the parameters of those of GRAPH, which must have the same nodes and edges, made
// in the same order. cudaErrorGraphExecUpdateFailure: *info says what does not fit, and nothing has
// changed.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info);

// --- Launches ---

// One item of STREAM: behind all earlier work of the stream, and behind the executable's earlier
// launches and uploads in any stream; later work of the stream waits for every node. Nodes run in
// any order that the edges allow. cudaErrorStreamCaptureUnsupported for a stream that captures.
// With memory nodes: cudaErrorInvalidValue if one of the allocations that the graph leaves behind
// is live since an earlier launch (cudaGraphInstantiateFlagAutoFreeOnLaunch frees it instead), or
// one that it frees is not live; cudaErrorMemoryAllocation, and nothing is launched, if the device
// has no memory for it.
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
// Takes the memory that a launch needs; in the order of STREAM and of the executable's launches.
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);

// --- Memory nodes. An allocation has its address from when its node is added, and memory from when
// the graph is launched. One that the graph does not free lives on, also without the graph, until
// cudaFreeAsync, cudaFree or a launch of another graph that frees it. Memory comes from a pool of
// the device that keeps it; graphs that cannot run at the same time share it, so what a free leaves
// behind is undefined. No memory nodes are added to the graph of a child node
// (cudaErrorNotSupported). ---

// The device's own access rights and those of ->accessDescs; ->dptr becomes the address.
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *dependencies, size_t count,
                                     struct cudaMemAllocNodeParams *parameters);
// ->accessDescs points into the node.
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                           struct cudaMemAllocNodeParams *parameters);
// cudaErrorInvalidValue: POINTER is no graph's allocation, or has a free node already, in its graph
// or in this one.
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                    const cudaGraphNode_t *dependencies, size_t count,
                                    void *pointer);
// POINTER: to the void pointer that is stored.
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *pointer);
// Gives back to the device what no live allocation and no launch that is not complete needs; the
// next launch of a graph takes memory anew.
cudaError_t cudaDeviceGraphMemTrim(int device);
// VALUE: to a uint64_t. Reserved: what the pool holds; used: what graphs have of it. High marks can
// be set to 0, nothing else can be set.
cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
                                           void *value);
cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
                                           void *value);

// Writes the graph in Graphviz's language to the file PATH: a box a node, with what it does, the
// addresses it names, the stream that captured it (as a colour), and while the race checker is on
// the allocator's blocks; child graphs as frames. FLAGS (enum cudaGraphDebugDotFlags) add handles,
// addresses of functions and arguments. The file appears when it is complete; if it cannot be
// written: cudaErrorOperatingSystem.
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags);

// --- User objects: counted, with a destructor that runs when nobody refers to one any more, as a
// host function: it may make no CUDA call. Copies and executables of a graph refer to its objects
// as it does. ---

// FLAGS must be cudaUserObjectNoDestructorSync.
cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *pointer, cudaHostFn_t destroy,
                                 unsigned int references, unsigned int flags);
cudaError_t cudaUserObjectRetain(cudaUserObject_t object,
                                 unsigned int count TIDEMARK_SIMULATOR_DEFAULT(1));
cudaError_t cudaUserObjectRelease(cudaUserObject_t object,
                                  unsigned int count TIDEMARK_SIMULATOR_DEFAULT(1));
// cudaGraphUserObjectMove: these are references of the caller's.
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count TIDEMARK_SIMULATOR_DEFAULT(1),
                                      unsigned int flags TIDEMARK_SIMULATOR_DEFAULT(0));
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                       unsigned int count TIDEMARK_SIMULATOR_DEFAULT(1));

#ifdef __cplusplus
}
#endif
#undef TIDEMARK_SIMULATOR_DEFAULT

#endif
