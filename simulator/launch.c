// Functions in stream order: kernels, as sim_launch gives them, and host functions.
#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/stream.h"

static cudaError_t host_function_locked(cudaStream_t handle,
                                        const struct sim__host_function *function) {
    struct sim__stream *stream;
    if (function->function == NULL && function->callback == NULL)
        return cudaErrorInvalidValue;
    cudaError_t error = sim__stream_resolve(handle, &stream);
    if (error == cudaSuccess && function->callback != NULL)
        error = sim__capture_refuse(stream);
    if (error != cudaSuccess)
        return error;
    struct sim__operation operation = {
        .kind = SIM__OPERATION_HOST_FUNCTION,
        .host_function = *function,
    };
    sim__race_take_accesses(&operation.host_function);
    struct sim__position position;
    return sim__enqueue(stream, &operation, &position);
}

// Zeroing the fields that submission sets would cost more than they do.
cudaError_t sim__kernel_operation(const struct sim_kernel *kernel,
                                  struct sim__operation *operation) {
    if (kernel->body == NULL)
        return cudaErrorInvalidDeviceFunction;
    if (kernel->argument == NULL && kernel->argument_size > 0)
        return cudaErrorInvalidValue;
    operation->kind = SIM__OPERATION_KERNEL;
    operation->kernel = (struct sim__kernel){
        .name = kernel->name,
        .body = kernel->body,
        .argument = kernel->argument,
        .argument_size = kernel->argument_size,
        .bytes = kernel->bytes,
        .flops = kernel->flops,
        .tensor_flops = kernel->tensor_flops,
        .accesses = kernel->accesses,
        .access_count = kernel->access_count,
    };
    return cudaSuccess;
}

// Unlike a copy, a kernel must be launched with the stream's device current.
static cudaError_t launch_locked(cudaStream_t handle, const struct sim_kernel *kernel) {
    struct sim__stream *stream;
    struct sim__operation operation;
    cudaError_t error = sim__kernel_operation(kernel, &operation);
    if (error == cudaSuccess)
        error = sim__stream_resolve(handle, &stream);
    if (error != cudaSuccess)
        return error;
    if (stream->device != sim__device_current()->index)
        return cudaErrorInvalidResourceHandle;
    struct sim__position position;
    return sim__enqueue(stream, &operation, &position);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user_data) {
    const struct sim__host_function host = {.function = function, .user_data = user_data};
    cudaError_t error = sim__call_begin(SIM_CALL_HOST_FUNCTION);
    if (error == cudaSuccess)
        error = host_function_locked(stream, &host);
    return sim__call_end(SIM_CALL_HOST_FUNCTION, error);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                  void *user_data, unsigned int flags) {
    const struct sim__host_function host = {
        .callback = callback, .stream = stream, .user_data = user_data};
    cudaError_t error = sim__call_begin(SIM_CALL_HOST_FUNCTION);
    if (error == cudaSuccess)
        error = flags != 0 ? cudaErrorInvalidValue : host_function_locked(stream, &host);
    return sim__call_end(SIM_CALL_HOST_FUNCTION, error);
}

cudaError_t sim_launch_kernel(cudaStream_t stream, const struct sim_kernel *kernel) {
    cudaError_t error = sim__call_begin(SIM_CALL_LAUNCH);
    if (error == cudaSuccess)
        error = launch_locked(stream, kernel);
    return sim__call_end(SIM_CALL_LAUNCH, error);
}

cudaError_t sim_launch(cudaStream_t stream, const char *name, void (*body)(const void *argument),
                       const void *argument, size_t argument_size) {
    return sim_launch_kernel(stream, &(struct sim_kernel){.name = name,
                                                          .body = body,
                                                          .argument = argument,
                                                          .argument_size = argument_size});
}
