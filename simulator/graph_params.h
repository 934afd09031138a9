// Parameters of nodes: what a program says becomes what a node does (struct sim__graph_work), and
// back. All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_GRAPH_PARAMS_H
#define TIDEMARK_SIMULATOR_GRAPH_PARAMS_H

#include "simulator/graph.h"

// What a node is to be: one of the types with parameters, but memory nodes and child graphs.
struct sim__node_form {
    enum cudaGraphNodeType type;
    struct sim__graph_work *work; // the form's own reference, or NULL
    enum cudaMemcpyKind kind;
    uint32_t element_size;
    cudaEvent_t event;
};

// Work of the thread's current device. Not cudaSuccess: there is nothing in the form to release.
// cudaErrorInvalidValue for NULL, ranges that are not in one piece of memory, and sizes of 0.
cudaError_t sim__form_memcpy(struct sim__node_form *form,
                             const struct cudaMemcpy3DParms *parameters);
cudaError_t sim__form_memcpy_1d(struct sim__node_form *form, void *destination, const void *source,
                                size_t size, enum cudaMemcpyKind kind);
cudaError_t sim__form_memset(struct sim__node_form *form,
                             const struct cudaMemsetParams *parameters);
cudaError_t sim__form_host(struct sim__node_form *form,
                           const struct cudaHostNodeParams *parameters);
cudaError_t sim__form_kernel(struct sim__node_form *form, const struct sim_kernel *kernel);
// TYPE: event record or event wait.
cudaError_t sim__form_event(struct sim__node_form *form, enum cudaGraphNodeType type,
                            cudaEvent_t event);
// cudaErrorInvalidDeviceFunction for kernels: none are registered. cudaErrorNotSupported for types
// that are not simulated; cudaErrorInvalidValue for types that are no form.
cudaError_t sim__form_any(struct sim__node_form *form,
                          const struct cudaGraphNodeParams *parameters);

// What a program is told. WORK is of the type.
void sim__params_memcpy(const struct sim__node *node, struct cudaMemcpy3DParms *parameters);
void sim__params_memset(const struct sim__node *node, struct cudaMemsetParams *parameters);
void sim__params_kernel(const struct sim__node *node, struct cudaKernelNodeParams *parameters);

// Whether an executable's node that does OLD can do NEW instead: cudaGraphExecUpdateSuccess, or why
// not. Both are of one type; NULL for types without work.
enum cudaGraphExecUpdateResult sim__work_replaceable(const struct sim__graph_work *old,
                                                     const struct sim__graph_work *new);

#endif
