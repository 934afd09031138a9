// See guard.h.
#include "tensor/guard.h"

enum base_status tensor__cuda_status(const char *call, cudaError_t error) {
    if (error == cudaSuccess) return BASE_OK;
    return base_status_set(error == cudaErrorMemoryAllocation ? BASE_OUT_OF_MEMORY : BASE_CUDA,
                           "%s: %s (%s)", call, cudaGetErrorName(error), cudaGetErrorString(error));
}

enum base_status tensor__guard_begin(int device, struct tensor_guard *guard) {
    guard->device = device;
    enum base_status status = tensor__cuda_status("cudaGetDevice", cudaGetDevice(&guard->previous));
    if (status == BASE_OK && guard->previous != device)
        status = tensor__cuda_status("cudaSetDevice", cudaSetDevice(device));
    return status;
}

enum base_status tensor__guard_end(const struct tensor_guard *guard, enum base_status status) {
    if (guard->previous == guard->device) return status;
    const cudaError_t error = cudaSetDevice(guard->previous);
    return status == BASE_OK ? tensor__cuda_status("cudaSetDevice", error) : status;
}
