// The calls that tell the parameters of nodes and change them.
#include "simulator/call.h"
#include "simulator/graph_params.h"

#define ATTRIBUTE_MAX 16 // CUDA's

static cudaError_t typed(cudaGraphNode_t handle, enum cudaGraphNodeType type,
                         struct sim__node **node) {
    const cudaError_t error = sim__node_resolve(handle, node);
    return error != cudaSuccess || (*node)->type != type ? cudaErrorInvalidValue : cudaSuccess;
}

// The node takes over what FORM holds; so does a failure.
static cudaError_t set(cudaGraphNode_t handle, const struct sim__node_form *form) {
    struct sim__node *node;
    const cudaError_t error = typed(handle, form->type, &node);
    if (error != cudaSuccess) {
        sim__graph_work_release(form->work);
        return error;
    }
    sim__graph_work_release(node->work);
    node->work = form->work;
    node->kind = form->kind;
    node->element_size = form->element_size;
    node->event = form->event;
    return cudaSuccess;
}

static cudaError_t event_get(cudaGraphNode_t handle, enum cudaGraphNodeType type,
                             cudaEvent_t *event) {
    struct sim__node *node;
    const cudaError_t error = typed(handle, type, &node);
    if (error != cudaSuccess || event == NULL)
        return cudaErrorInvalidValue;
    *event = node->event;
    return cudaSuccess;
}

static cudaError_t memcpy_get(cudaGraphNode_t handle, struct cudaMemcpy3DParms *parameters) {
    struct sim__node *node;
    const cudaError_t error = typed(handle, cudaGraphNodeTypeMemcpy, &node);
    if (error != cudaSuccess || parameters == NULL)
        return cudaErrorInvalidValue;
    sim__params_memcpy(node, parameters);
    return cudaSuccess;
}

static cudaError_t memset_get(cudaGraphNode_t handle, struct cudaMemsetParams *parameters) {
    struct sim__node *node;
    const cudaError_t error = typed(handle, cudaGraphNodeTypeMemset, &node);
    if (error != cudaSuccess || parameters == NULL)
        return cudaErrorInvalidValue;
    sim__params_memset(node, parameters);
    return cudaSuccess;
}

static cudaError_t host_get(cudaGraphNode_t handle, struct cudaHostNodeParams *parameters) {
    struct sim__node *node;
    const cudaError_t error = typed(handle, cudaGraphNodeTypeHost, &node);
    if (error != cudaSuccess || parameters == NULL)
        return cudaErrorInvalidValue;
    const struct sim__host_function *host = &node->work->operation.host_function;
    *parameters = (struct cudaHostNodeParams){host->function, host->user_data};
    return cudaSuccess;
}

static cudaError_t kernel_get(cudaGraphNode_t handle, struct cudaKernelNodeParams *parameters) {
    struct sim__node *node;
    const cudaError_t error = typed(handle, cudaGraphNodeTypeKernel, &node);
    if (error != cudaSuccess || parameters == NULL)
        return cudaErrorInvalidValue;
    sim__params_kernel(node, parameters);
    return cudaSuccess;
}

// --- Attributes of kernels ---

// Those that are not simulated are told from those that CUDA does not have.
static cudaError_t attribute_check(cudaLaunchAttributeID attribute) {
    if (attribute == cudaLaunchAttributeCooperative || attribute == cudaLaunchAttributePriority)
        return cudaSuccess;
    return (int)attribute > cudaLaunchAttributeIgnore && (int)attribute <= ATTRIBUTE_MAX
               ? cudaErrorNotSupported
               : cudaErrorInvalidValue;
}

static cudaError_t attribute_get(cudaGraphNode_t handle, cudaLaunchAttributeID attribute,
                                 cudaLaunchAttributeValue *value) {
    struct sim__node *node;
    const cudaError_t error = typed(handle, cudaGraphNodeTypeKernel, &node);
    if (error != cudaSuccess || value == NULL)
        return cudaErrorInvalidValue;
    const cudaError_t known = attribute_check(attribute);
    if (known != cudaSuccess)
        return known;
    *value = (cudaLaunchAttributeValue){.pad = {0}};
    if (attribute == cudaLaunchAttributePriority)
        value->priority = node->attributes.priority;
    else
        value->cooperative = node->attributes.cooperative;
    return cudaSuccess;
}

static cudaError_t attribute_set(cudaGraphNode_t handle, cudaLaunchAttributeID attribute,
                                 const cudaLaunchAttributeValue *value) {
    struct sim__node *node;
    const cudaError_t error = typed(handle, cudaGraphNodeTypeKernel, &node);
    if (error != cudaSuccess || value == NULL)
        return cudaErrorInvalidValue;
    const cudaError_t known = attribute_check(attribute);
    if (known == cudaSuccess && attribute == cudaLaunchAttributePriority)
        node->attributes.priority = value->priority;
    else if (known == cudaSuccess)
        node->attributes.cooperative = value->cooperative;
    return known;
}

static cudaError_t attributes_copy(cudaGraphNode_t to_handle, cudaGraphNode_t from_handle) {
    struct sim__node *to, *from;
    cudaError_t error = typed(to_handle, cudaGraphNodeTypeKernel, &to);
    if (error == cudaSuccess)
        error = typed(from_handle, cudaGraphNodeTypeKernel, &from);
    if (error == cudaSuccess)
        to->attributes = from->attributes;
    return error;
}

// --- The calls ---

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            cudaLaunchAttributeValue *value) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = attribute_get(node, attribute, value);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue *value) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = attribute_set(node, attribute, value);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = attributes_copy(to, from);
    return sim__call_end(SIM__CALL_OTHER, error);
}

// No functions are registered.
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaKernelNodeParams *parameters) {
    (void)node;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = parameters == NULL ? cudaErrorInvalidValue : cudaErrorInvalidDeviceFunction;
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
                                         struct cudaKernelNodeParams *parameters) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = kernel_get(node, parameters);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node,
                                         struct cudaMemcpy3DParms *parameters) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = memcpy_get(node, parameters);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemcpy3DParms *parameters) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_memcpy(&form, parameters);
    if (error == cudaSuccess)
        error = set(node, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *destination,
                                           const void *source, size_t size,
                                           enum cudaMemcpyKind kind) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_memcpy_1d(&form, destination, source, size, kind);
    if (error == cudaSuccess)
        error = set(node, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node,
                                         struct cudaMemsetParams *parameters) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = memset_get(node, parameters);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemsetParams *parameters) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_memset(&form, parameters);
    if (error == cudaSuccess)
        error = set(node, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node,
                                       struct cudaHostNodeParams *parameters) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = host_get(node, parameters);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                       const struct cudaHostNodeParams *parameters) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_host(&form, parameters);
    if (error == cudaSuccess)
        error = set(node, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

static cudaError_t event_node_set(cudaGraphNode_t node, enum cudaGraphNodeType type,
                                  cudaEvent_t event) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_event(&form, type, event);
    if (error == cudaSuccess)
        error = set(node, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

static cudaError_t event_node_get(cudaGraphNode_t node, enum cudaGraphNodeType type,
                                  cudaEvent_t *event) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = event_get(node, type, event);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
    return event_node_get(node, cudaGraphNodeTypeEventRecord, event);
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
    return event_node_set(node, cudaGraphNodeTypeEventRecord, event);
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
    return event_node_get(node, cudaGraphNodeTypeWaitEvent, event);
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
    return event_node_set(node, cudaGraphNodeTypeWaitEvent, event);
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *parameters) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_any(&form, parameters);
    if (error == cudaSuccess)
        error = set(node, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}

static cudaError_t sim_kernel_get(cudaGraphNode_t handle, struct sim_kernel *kernel) {
    struct sim__node *node;
    const cudaError_t error = typed(handle, cudaGraphNodeTypeKernel, &node);
    if (error != cudaSuccess || kernel == NULL)
        return cudaErrorInvalidValue;
    const struct sim__kernel *own = &node->work->operation.kernel;
    *kernel = (struct sim_kernel){
        .name = own->name,
        .body = own->body,
        .argument = own->argument,
        .argument_size = own->argument_size,
        .bytes = own->bytes,
        .flops = own->flops,
        .tensor_flops = own->tensor_flops,
    };
    return cudaSuccess;
}

cudaError_t sim_graph_kernel_get(cudaGraphNode_t node, struct sim_kernel *kernel) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim_kernel_get(node, kernel);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t sim_graph_kernel_set(cudaGraphNode_t node, const struct sim_kernel *kernel) {
    struct sim__node_form form;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = sim__form_kernel(&form, kernel);
    if (error == cudaSuccess)
        error = set(node, &form);
    return sim__call_end(SIM__CALL_OTHER, error);
}
