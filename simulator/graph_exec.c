// Executables: made from a graph, which may go then; destroyed, whatever of them still runs.
#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/checked.h"
#include "simulator/cost.h"
#include "simulator/graph_memory.h"
#include "simulator/plant.h"
#include "simulator/stream.h"
#include "simulator/user_object.h"

#include <stdlib.h>

#define FLAGS                                                                                      \
    (cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |                   \
     cudaGraphInstantiateFlagDeviceLaunch | cudaGraphInstantiateFlagUseNodePriority)

static uint64_t exec_number;

void sim__exec_free(struct sim__exec *exec) {
    sim__exec_memory_destroy(exec);
    sim__exec_unplan(exec);
    sim__graph_objects_release(exec->objects);
    sim__graph_objects_release(exec->retired);
    sim__handle_give(&sim__execs, exec);
}

void sim__exec_idle(struct sim__exec *exec) {
    sim__graph_objects_release(exec->retired);
    exec->retired = NULL;
    if (exec->destroyed)
        sim__exec_free(exec);
}

static struct sim__exec *exec_take(const struct sim__graph *graph, unsigned long long flags) {
    struct sim__exec *exec = sim__handle_take(&sim__execs);
    if (exec == NULL)
        return NULL;
    const struct sim__handle_slot slot = exec->slot;
    *exec = (struct sim__exec){
        .slot = slot,
        .number = ++exec_number,
        .graph = graph->number,
        .graph_handle = graph->slot.handle,
        .device = sim__device_current()->index,
        .flags = flags,
    };
    return exec;
}

static cudaError_t flags_check(unsigned long long flags) {
    if ((flags & ~(unsigned long long)FLAGS) != 0)
        return cudaErrorInvalidValue;
    if ((flags & cudaGraphInstantiateFlagDeviceLaunch) == 0)
        return cudaSuccess;
    if ((flags & cudaGraphInstantiateFlagAutoFreeOnLaunch) != 0)
        return cudaErrorInvalidValue;
    if (sim__checked())
        sim__misuse("launches of graphs from the device are not simulated");
    return cudaErrorNotSupported;
}

// *error_node: what is wrong with the graph is about it.
static cudaError_t instantiate_locked(struct sim__exec **made, cudaGraph_t handle,
                                      unsigned long long flags, struct sim__node **error_node) {
    struct sim__graph *graph;
    cudaError_t error = flags_check(flags);
    if (error == cudaSuccess)
        error = sim__graph_resolve(handle, &graph);
    if (error != cudaSuccess)
        return error;
    if (graph->moved || (graph->memory_node_count > 0 && graph->exec_count > 0 &&
                         !sim__planted(SIM__PLANT_GRAPH_EXECS)))
        return cudaErrorInvalidValue;
    struct sim__exec *exec = exec_take(graph, flags);
    if (exec == NULL)
        return cudaErrorMemoryAllocation;
    error = sim__exec_plan(exec, graph, error_node);
    if (error == cudaSuccess)
        error = sim__exec_memory_create(exec);
    if (error == cudaSuccess && !sim__graph_objects_copy(graph->objects, &exec->objects))
        error = cudaErrorMemoryAllocation;
    if (error != cudaSuccess) {
        sim__exec_free(exec);
        return error;
    }
    sim__cost_nodes(SIM_CALL_GRAPH_INSTANTIATE, exec->node_count);
    ++graph->exec_count;
    *made = exec;
    return cudaSuccess;
}

static void destroy(struct sim__exec *exec) {
    struct sim__graph *graph = sim__handle_find(&sim__graphs, exec->graph_handle);
    if (graph != NULL)
        --graph->exec_count;
    exec->destroyed = true;
    if (exec->running == 0)
        sim__exec_free(exec);
}

static cudaError_t destroy_locked(cudaGraphExec_t handle) {
    struct sim__exec *exec;
    cudaError_t error = sim__exec_resolve(handle, &exec);
    if (error == cudaSuccess)
        error = sim__capture_unsafe();
    if (error == cudaSuccess && sim__planted(SIM__PLANT_EXEC_DESTROY))
        sim__engine_force(exec->last);
    if (error == cudaSuccess)
        destroy(exec);
    return error;
}

// With the stream that an upload goes to; DEFAULT_STREAM is its stream 0.
static cudaError_t instantiate_upload_locked(struct sim__exec **made, cudaGraph_t graph,
                                             const cudaGraphInstantiateParams *parameters,
                                             cudaStream_t default_stream,
                                             struct sim__node **error_node) {
    struct sim__stream *stream = NULL;
    cudaError_t error = cudaSuccess;
    const bool uploads = (parameters->flags & cudaGraphInstantiateFlagUpload) != 0;
    if (uploads)
        error = sim__stream_resolve(
            parameters->uploadStream == NULL ? default_stream : parameters->uploadStream, &stream);
    if (error == cudaSuccess && uploads)
        error = sim__capture_refuse(stream);
    if (error == cudaSuccess)
        error = instantiate_locked(made, graph, parameters->flags, error_node);
    if (error == cudaSuccess && uploads && (error = sim__upload(stream, *made)) != cudaSuccess)
        destroy(*made);
    return error;
}

static cudaGraphInstantiateResult result_of(cudaError_t error, const struct sim__node *error_node) {
    if (error == cudaSuccess)
        return cudaGraphInstantiateSuccess;
    return error_node != NULL ? cudaGraphInstantiateInvalidStructure : cudaGraphInstantiateError;
}

static cudaError_t instantiate_with_params(cudaGraphExec_t *exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *parameters,
                                           cudaStream_t default_stream) {
    struct sim__exec *made;
    struct sim__node *error_node = NULL;
    cudaError_t error = sim__call_begin(SIM_CALL_GRAPH_INSTANTIATE);
    if (error == cudaSuccess && (exec == NULL || parameters == NULL))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = instantiate_upload_locked(&made, graph, parameters, default_stream, &error_node);
    if (error == cudaSuccess)
        *exec = sim__exec_handle(made);
    if (parameters != NULL) {
        parameters->result_out = result_of(error, error_node);
        parameters->errNode_out = error_node == NULL ? NULL : sim__node_handle(error_node);
    }
    return sim__call_end(SIM_CALL_GRAPH_INSTANTIATE, error);
}

static cudaError_t flags_locked(cudaGraphExec_t handle, unsigned long long *flags) {
    struct sim__exec *exec;
    const cudaError_t error = sim__exec_resolve(handle, &exec);
    if (error != cudaSuccess || flags == NULL)
        return cudaErrorInvalidValue;
    *flags = exec->flags;
    return cudaSuccess;
}

// --- The calls ---

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *parameters) {
    return instantiate_with_params(exec, graph, parameters, cudaStreamLegacy);
}

cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                cudaGraphInstantiateParams *parameters) {
    return instantiate_with_params(exec, graph, parameters, cudaStreamPerThread);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags) {
    struct sim__exec *made;
    struct sim__node *error_node = NULL;
    cudaError_t error = sim__call_begin(SIM_CALL_GRAPH_INSTANTIATE);
    // An upload needs a stream.
    if (error == cudaSuccess && (exec == NULL || (flags & cudaGraphInstantiateFlagUpload) != 0))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = instantiate_locked(&made, graph, flags, &error_node);
    if (error == cudaSuccess)
        *exec = sim__exec_handle(made);
    return sim__call_end(SIM_CALL_GRAPH_INSTANTIATE, error);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags) {
    return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = destroy_locked(exec);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = flags_locked(exec, flags);
    return sim__call_end(SIM__CALL_OTHER, error);
}
