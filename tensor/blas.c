// See blas.h.
#include "tensor/blas.h"

#include "base/thread.h"
#include "tensor/launch.h"

#define HANDLES_MAX 64 // of a device that are kept

static enum base_status blas_status_of(const char *call, cublasStatus_t status) {
    if (status == CUBLAS_STATUS_SUCCESS)
        return BASE_OK;
    return base_status_set(status == CUBLAS_STATUS_ALLOC_FAILED ? BASE_OUT_OF_MEMORY : BASE_CUDA,
                           "%s: %s (%s)", call, cublasGetStatusName(status),
                           cublasGetStatusString(status));
}

static struct base_mutex handles_mutex = BASE_MUTEX_INITIALIZER;
// Guarded by it: those that nobody uses.
static struct {
    int count;
    cublasHandle_t handles[HANDLES_MAX];
} free_handles[TENSOR_DEVICE_MAX];

// A handle is made outside the order of a capture that may be under way.
static cublasStatus_t handle_create(cublasHandle_t *handle) {
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    const cublasStatus_t status = cublasCreate(handle);
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
    return status;
}

static cublasStatus_t handle_take(int device, cublasHandle_t *handle) {
    *handle = NULL;
    base_mutex_lock(&handles_mutex);
    if (free_handles[device].count > 0)
        *handle = free_handles[device].handles[--free_handles[device].count];
    base_mutex_unlock(&handles_mutex);
    return *handle != NULL ? CUBLAS_STATUS_SUCCESS : handle_create(handle);
}

static void handle_give(int device, cublasHandle_t handle) {
    base_mutex_lock(&handles_mutex);
    const bool has_room = free_handles[device].count < HANDLES_MAX;
    if (has_room)
        free_handles[device].handles[free_handles[device].count++] = handle;
    base_mutex_unlock(&handles_mutex);
    if (!has_room)
        (void)cublasDestroy(handle);
}

void tensor_launch_end(void) {
    for (int device = 0; device < TENSOR_DEVICE_MAX; ++device)
        while (free_handles[device].count > 0)
            (void)cublasDestroy(free_handles[device].handles[--free_handles[device].count]);
}

enum base_status tensor__blas_run(const char *call,
                                  cublasStatus_t (*run)(cublasHandle_t handle,
                                                        const void *argument),
                                  const void *argument) {
    int device;
    cublasHandle_t handle;
    enum base_status result = tensor__cuda_status("cudaGetDevice", cudaGetDevice(&device));
    if (result != BASE_OK)
        return result;
    result = blas_status_of("cublasCreate", handle_take(device, &handle));
    if (result != BASE_OK)
        return result;
    cublasStatus_t status = run(handle, argument);
    if (status == CUBLAS_STATUS_NOT_INITIALIZED) { // the device was reset since
        result = blas_status_of("cublasCreate", handle_create(&handle));
        if (result != BASE_OK)
            return result;
        status = run(handle, argument);
    }
    handle_give(device, handle);
    return blas_status_of(call, status);
}
