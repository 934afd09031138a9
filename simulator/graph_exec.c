// Executables: made from a graph, which may go then; destroyed, whatever of them still runs.
#include "simulator/call.h"
#include "simulator/graph_memory.h"
#include "simulator/user_object.h"

#include <stdlib.h>

#define FLAGS                                                                                      \
    (cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |                   \
     cudaGraphInstantiateFlagDeviceLaunch | cudaGraphInstantiateFlagUseNodePriority)

static uint64_t exec_number;

static void exec_give(struct sim__exec *exec) {
    sim__exec_memory_destroy(exec);
    sim__exec_unplan(exec);
    sim__graph_objects_release(exec->objects);
    sim__handle_give(&sim__execs, exec);
}

void sim__exec_free(struct sim__exec *exec) { exec_give(exec); }

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

// What of a graph makes it no program's to instantiate.
static bool is_ready(const struct sim__graph *graph) {
    return graph->capture == NULL && !graph->moved &&
           (graph->memory_node_count == 0 || graph->exec_count == 0);
}

static cudaError_t instantiate_locked(cudaGraphExec_t *handle, cudaGraph_t graph_handle,
                                      unsigned long long flags, struct sim__exec **made,
                                      struct sim__node **error_node) {
    struct sim__graph *graph;
    cudaError_t error = sim__graph_resolve(graph_handle, &graph);
    if (error != cudaSuccess || handle == NULL || (flags & ~(unsigned long long)FLAGS) != 0)
        return cudaErrorInvalidValue;
    if ((flags & cudaGraphInstantiateFlagDeviceLaunch) != 0)
        return (flags & cudaGraphInstantiateFlagAutoFreeOnLaunch) != 0 ? cudaErrorInvalidValue
                                                                       : cudaErrorNotSupported;
    if (!is_ready(graph))
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
        exec_give(exec);
        return error;
    }
    ++graph->exec_count;
    *made = exec;
    *handle = sim__exec_handle(exec);
    return cudaSuccess;
}

static cudaError_t destroy_locked(cudaGraphExec_t handle) {
    struct sim__exec *exec;
    const cudaError_t error = sim__exec_resolve(handle, &exec);
    if (error != cudaSuccess)
        return error;
    struct sim__graph *graph = sim__handle_find(&sim__graphs, exec->graph_handle);
    if (graph != NULL)
        --graph->exec_count;
    exec->destroyed = true;
    if (exec->running == 0)
        sim__exec_free(exec);
    return cudaSuccess;
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

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags) {
    struct sim__exec *made;
    struct sim__node *error_node = NULL;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = (flags & cudaGraphInstantiateFlagUpload) != 0
                    ? cudaErrorInvalidValue // only with a stream
                    : instantiate_locked(exec, graph, flags, &made, &error_node);
    return sim__call_end(SIM__CALL_OTHER, error);
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
