// The calls that change nodes of an executable, for launches to come. A node is named by the one of
// the graph that it came from, which must still be there.
#include "simulator/call.h"
#include "simulator/graph_params.h"

static cudaError_t find(cudaGraphExec_t exec_handle, cudaGraphNode_t node_handle,
                        struct sim__exec **exec, struct sim__exec_node **node) {
    struct sim__node *origin;
    uint64_t index;
    cudaError_t error = sim__exec_resolve(exec_handle, exec);
    if (error == cudaSuccess)
        error = sim__node_resolve(node_handle, &origin);
    if (error != cudaSuccess ||
        !base_address_map_get(&(*exec)->indices, origin->slot.handle, &index))
        return cudaErrorInvalidValue;
    *node = &(*exec)->nodes[index];
    return cudaSuccess;
}

// More than an update of the whole allows: copies must be of one row.
static bool is_allowed(const struct sim__exec_node *node, const struct sim__node_form *form) {
    if (node->type != form->type)
        return false;
    if (node->type == cudaGraphNodeTypeMemcpy && form->work->operation.copy.rows != 1)
        return false;
    return sim__work_replaceable(node->work, form->work) == cudaGraphExecUpdateSuccess;
}

// The node takes over what FORM holds; so does a failure.
static cudaError_t set(cudaGraphExec_t exec_handle, cudaGraphNode_t node_handle,
                       const struct sim__node_form *form) {
    struct sim__exec *exec;
    struct sim__exec_node *node;
    const cudaError_t error = find(exec_handle, node_handle, &exec, &node);
    if (error != cudaSuccess || !is_allowed(node, form)) {
        sim__graph_work_release(form->work);
        return cudaErrorInvalidValue;
    }
    sim__graph_work_release(node->work);
    node->work = form->work;
    node->event = form->event;
    return cudaSuccess;
}

static cudaError_t child_set(cudaGraphExec_t exec_handle, cudaGraphNode_t node_handle,
                             cudaGraph_t graph_handle) {
    struct sim__exec *exec;
    struct sim__exec_node *node;
    struct sim__graph *graph;
    cudaGraphExecUpdateResultInfo info;
    cudaError_t error = find(exec_handle, node_handle, &exec, &node);
    if (error == cudaSuccess)
        error = sim__graph_resolve(graph_handle, &graph);
    if (error != cudaSuccess || node->type != cudaGraphNodeTypeGraph)
        return cudaErrorInvalidValue;
    error = sim__exec_update(exec, node, graph, &info);
    return error == cudaErrorGraphExecUpdateFailure ? cudaErrorInvalidValue : error;
}

static cudaError_t any_set(cudaGraphExec_t exec, cudaGraphNode_t node,
                           const struct cudaGraphNodeParams *parameters) {
    struct sim__node_form form;
    if (parameters != NULL && parameters->type == cudaGraphNodeTypeGraph)
        return child_set(exec, node, parameters->graph.graph);
    const cudaError_t error = sim__form_any(&form, parameters);
    return error != cudaSuccess ? error : set(exec, node, &form);
}

// The types that can be switched off.
static cudaError_t switchable(cudaGraphExec_t exec_handle, cudaGraphNode_t node_handle,
                              struct sim__exec_node **node) {
    struct sim__exec *exec;
    const cudaError_t error = find(exec_handle, node_handle, &exec, node);
    if (error != cudaSuccess)
        return error;
    switch ((*node)->type) {
    case cudaGraphNodeTypeKernel:
    case cudaGraphNodeTypeMemcpy:
    case cudaGraphNodeTypeMemset: return cudaSuccess;
    default: return cudaErrorInvalidValue;
    }
}

static cudaError_t enabled_get(cudaGraphExec_t exec, cudaGraphNode_t handle,
                               unsigned int *is_enabled) {
    struct sim__exec_node *node;
    const cudaError_t error = switchable(exec, handle, &node);
    if (error != cudaSuccess || is_enabled == NULL)
        return cudaErrorInvalidValue;
    *is_enabled = node->enabled;
    return cudaSuccess;
}

// --- The calls ---

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *parameters) {
    (void)exec, (void)node;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = parameters == NULL ? cudaErrorInvalidValue : cudaErrorInvalidDeviceFunction;
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *parameters) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_memcpy(&form, parameters);
    if (error == cudaSuccess)
        error = set(exec, node, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               void *destination, const void *source, size_t size,
                                               enum cudaMemcpyKind kind) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_memcpy_1d(&form, destination, source, size, kind);
    if (error == cudaSuccess)
        error = set(exec, node, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams *parameters) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_memset(&form, parameters);
    if (error == cudaSuccess)
        error = set(exec, node, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *parameters) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_host(&form, parameters);
    if (error == cudaSuccess)
        error = set(exec, node, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = child_set(exec, node, child);
    return sim__call_end(SIM__CALL_OTHER, error);
}

static cudaError_t event_set(cudaGraphExec_t exec, cudaGraphNode_t node,
                             enum cudaGraphNodeType type, cudaEvent_t event) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_event(&form, type, event);
    if (error == cudaSuccess)
        error = set(exec, node, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaEvent_t event) {
    return event_set(exec, node, cudaGraphNodeTypeEventRecord, event);
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               cudaEvent_t event) {
    return event_set(exec, node, cudaGraphNodeTypeWaitEvent, event);
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams *parameters) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = any_set(exec, node, parameters);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t handle,
                                    unsigned int is_enabled) {
    struct sim__exec_node *node;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess && (error = switchable(exec, handle, &node)) == cudaSuccess)
        node->enabled = is_enabled != 0;
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t handle,
                                    unsigned int *is_enabled) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = enabled_get(exec, handle, is_enabled);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t sim_graph_exec_kernel_set(cudaGraphExec_t exec, cudaGraphNode_t node,
                                      const struct sim_kernel *kernel) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_kernel(&form, kernel);
    if (error == cudaSuccess)
        error = set(exec, node, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}
