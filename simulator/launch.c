// Functions in stream order: kernels, as sim_launch gives them, and host functions.
#include "simulator/call.h"
#include "simulator/engine.h"
#include "simulator/stream.h"

static cudaError_t host_function_locked(cudaStream_t handle, cudaHostFn_t function,
                                        void *user_data) {
    struct sim__stream *stream;
    if (function == NULL)
        return cudaErrorInvalidValue;
    cudaError_t error = sim__stream_resolve(handle, &stream);
    if (error != cudaSuccess)
        return error;
    const struct sim__operation operation = {
        .kind = SIM__OPERATION_HOST_FUNCTION,
        .host_function = {function, user_data},
    };
    sim__engine_submit(stream, &operation, (struct sim__position){0});
    return cudaSuccess;
}

// Unlike a copy, a kernel must be launched with the stream's device current.
static cudaError_t launch_locked(cudaStream_t handle, const struct sim__kernel *kernel) {
    struct sim__stream *stream;
    if (kernel->body == NULL)
        return cudaErrorInvalidDeviceFunction;
    if (kernel->argument == NULL && kernel->argument_size > 0)
        return cudaErrorInvalidValue;
    cudaError_t error = sim__stream_resolve(handle, &stream);
    if (error != cudaSuccess)
        return error;
    if (stream->device != sim__device_current()->index)
        return cudaErrorInvalidResourceHandle;
    const struct sim__operation operation = {.kind = SIM__OPERATION_KERNEL, .kernel = *kernel};
    sim__engine_submit(stream, &operation, (struct sim__position){0});
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user_data) {
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess)
        error = host_function_locked(stream, function, user_data);
    return sim__call_end(SIM__CALL_OTHER, error);
}

cudaError_t sim_launch(cudaStream_t stream, const char *name, void (*body)(const void *argument),
                       const void *argument, size_t argument_size) {
    const struct sim__kernel kernel = {name, body, argument, argument_size};
    cudaError_t error = sim__call_begin(SIM_CALL_LAUNCH);
    if (error == cudaSuccess)
        error = launch_locked(stream, &kernel);
    return sim__call_end(SIM_CALL_LAUNCH, error);
}
