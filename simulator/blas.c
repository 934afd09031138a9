// cuBLAS handles: creation, settings, workspaces; and what all its calls share.
#include "simulator/blas.h"

#include "simulator/blas_status.h"
#include "simulator/capture.h"
#include "simulator/checked.h"
#include "simulator/plant.h"
#include "simulator/profile.h"
#include "simulator/stream.h"

#include <cblas.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// What cuBLAS recommends for a workspace, and takes for its own.
#define WORKSPACE_BYTES ((size_t)4 << 20)
#define WORKSPACE_BYTES_HOPPER ((size_t)32 << 20)
#define HOPPER 9 // the capability from which on
#define WORKSPACE_ALIGNMENT 256

// --- Statuses ---

const char *cublasGetStatusName(cublasStatus_t status) {
    const struct sim__blas_status *known = sim__blas_status_find((int)status);
    return known != NULL ? known->name : "unknown status";
}

const char *cublasGetStatusString(cublasStatus_t status) {
    const struct sim__blas_status *known = sim__blas_status_find((int)status);
    return known != NULL ? known->description : "unknown status";
}

cublasStatus_t sim__blas_status_of(cudaError_t error) {
    if (error == cudaSuccess)
        return CUBLAS_STATUS_SUCCESS;
    if (error >= SIM_FAULT_STATUS_FIRST)
        return (cublasStatus_t)((int)error - SIM_FAULT_STATUS_FIRST);
    return error == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED
                                              : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t sim__blas_refuse(cublasStatus_t status, const char *format, ...) {
    if (sim__checked() && !sim__thread()->is_explained) {
        char text[256];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        sim__misuse("%s: %s", cublasGetStatusName(status), text);
    }
    return status;
}

// --- The frame ---

static inline __attribute__((always_inline)) cublasStatus_t
begin(enum sim_call call, cublasHandle_t handle, bool light, struct sim__blas_handle **blas) {
    const cudaError_t error = sim__call_begin(call);
    *blas = NULL;
    // A dead device does not keep a program from settings.
    if (error != cudaSuccess && (call != SIM__CALL_OTHER || sim__thread()->work_depth > 0))
        return sim__blas_status_of(error);
    const uint64_t number = (uint64_t)(uintptr_t)handle;
    *blas = sim__handle_find(&sim__blas_handles, number);
    if (*blas != NULL && (light || !(*blas)->light))
        return CUBLAS_STATUS_SUCCESS;
    if (sim__checked())
        sim__misuse_handle("cuBLAS handle", number,
                           sim__handle_was_taken(&sim__blas_handles, number) != 0);
    return CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t sim__blas_begin(enum sim_call call, cublasHandle_t handle,
                               struct sim__blas_handle **blas) {
    return begin(call, handle, false, blas);
}

cublasStatus_t sim__blas_begin_light(enum sim_call call, cublasHandle_t handle,
                                     struct sim__blas_handle **blas) {
    return begin(call, handle, true, blas);
}

cublasStatus_t sim__blas_end(enum sim_call call, cublasStatus_t status) {
    sim__call_end(call, status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : SIM_FAULT_STATUS(status));
    return status;
}

// --- Handles ---

static size_t pool_bytes(void) {
    return sim__profile()->capability_major >= HOPPER ? WORKSPACE_BYTES_HOPPER : WORKSPACE_BYTES;
}

static cublasStatus_t create_locked(cublasHandle_t *handle, bool light) {
    if (handle == NULL)
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE, "no place for the handle");
    struct sim__blas_handle *blas = sim__handle_take(&sim__blas_handles);
    if (blas == NULL)
        return CUBLAS_STATUS_ALLOC_FAILED;
    memset((char *)blas + sizeof blas->slot, 0, sizeof *blas - sizeof blas->slot);
    blas->light = light;
    blas->device = sim__device_current()->index;
    static bool is_one_thread;
    if (!is_one_thread)
        openblas_set_num_threads(1);
    is_one_thread = true;
    *handle = (cublasHandle_t)(uintptr_t)blas->slot.handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t sim__blas_create(cublasHandle_t *handle, bool light) {
    const cudaError_t error = sim__call_begin(SIM_CALL_BLAS_CREATE);
    const cublasStatus_t status = error == cudaSuccess              ? create_locked(handle, light)
                                  : error >= SIM_FAULT_STATUS_FIRST ? sim__blas_status_of(error)
                                                                    : CUBLAS_STATUS_NOT_INITIALIZED;
    return sim__blas_end(SIM_CALL_BLAS_CREATE, status);
}

cublasStatus_t sim__blas_destroy(cublasHandle_t handle, bool light, void **pool) {
    struct sim__blas_handle *blas;
    cublasStatus_t status = begin(SIM_CALL_BLAS_DESTROY, handle, light, &blas);
    if (status == CUBLAS_STATUS_SUCCESS && blas->light != light)
        status = CUBLAS_STATUS_NOT_INITIALIZED;
    if (status == CUBLAS_STATUS_SUCCESS) {
        *pool = blas->pool;
        sim__handle_give(&sim__blas_handles, blas);
    }
    return sim__blas_end(SIM_CALL_BLAS_DESTROY, status);
}

// The library has a runtime of its own: what fails in it is not the thread's last error.
static cudaError_t error_keep(cudaError_t error, cudaError_t last) {
    if (error != cudaSuccess)
        sim__thread()->last_error = last;
    return error;
}

cublasStatus_t cublasCreate(cublasHandle_t *handle) {
    struct sim__blas_handle *blas;
    void *pool = NULL;
    const cudaError_t last = sim__thread()->last_error;
    cublasStatus_t status = sim__blas_create(handle, false);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    const size_t bytes = pool_bytes();
    const cudaError_t error = error_keep(cudaMalloc(&pool, bytes), last);
    if (error != cudaSuccess) {
        sim__blas_destroy(*handle, false, &pool);
        *handle = NULL;
        return error == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED
                                                  : CUBLAS_STATUS_NOT_INITIALIZED;
    }
    status = sim__blas_begin(SIM__CALL_OTHER, *handle, &blas);
    if (status == CUBLAS_STATUS_SUCCESS) {
        blas->pool = pool;
        blas->slice_bytes = bytes / SIM__BLAS_SLICE_COUNT;
    }
    return sim__blas_end(SIM__CALL_OTHER, status);
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    void *pool = NULL;
    const cudaError_t last = sim__thread()->last_error;
    const cublasStatus_t status = sim__blas_destroy(handle, false, &pool);
    if (status == CUBLAS_STATUS_SUCCESS)
        error_keep(cudaFree(pool), last);
    return status;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value) {
    static const int values[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
    if (value == NULL || (unsigned)type >= sizeof values / sizeof values[0])
        return CUBLAS_STATUS_INVALID_VALUE;
    *value = values[type];
    return CUBLAS_STATUS_SUCCESS;
}

// --- Settings ---

// A call that looks at a handle or sets something of it: CONDITION says whether its argument is
// one, BODY does it.
#define SETTING(handle_, condition, body)                                                          \
    do {                                                                                           \
        struct sim__blas_handle *blas;                                                             \
        cublasStatus_t status = sim__blas_begin(SIM__CALL_OTHER, handle_, &blas);                  \
        if (status == CUBLAS_STATUS_SUCCESS && !(condition))                                       \
            status = sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE, "not " #condition);             \
        if (status == CUBLAS_STATUS_SUCCESS) {                                                     \
            body;                                                                                  \
        }                                                                                          \
        return sim__blas_end(SIM__CALL_OTHER, status);                                             \
    } while (0)

cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version) {
    SETTING(handle, version != NULL, (void)blas; *version = CUBLAS_VERSION);
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
    SETTING(handle, true, blas->stream = stream; blas->has_workspace = false);
}

cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t *stream) {
    SETTING(handle, stream != NULL, *stream = blas->stream);
}

static bool is_workspace(const void *workspace, size_t size) {
    const bool is_aligned = (uintptr_t)workspace % WORKSPACE_ALIGNMENT == 0;
    return (is_aligned || sim__planted(SIM__PLANT_BLAS_WORKSPACE)) &&
           (workspace != NULL || size == 0);
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t size) {
    SETTING(handle, is_workspace(workspace, size), blas->has_workspace = true;
            blas->workspace = size > 0 ? workspace : NULL; blas->workspace_bytes = size);
}

cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
    SETTING(handle, mode == CUBLAS_POINTER_MODE_HOST || mode == CUBLAS_POINTER_MODE_DEVICE,
            blas->pointer_mode = mode);
}

cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t *mode) {
    SETTING(handle, mode != NULL, *mode = blas->pointer_mode);
}

static bool is_math_mode(cublasMath_t mode) {
    return ((unsigned)mode & ~(unsigned)CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) <=
           CUBLAS_TF32_TENSOR_OP_MATH;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    SETTING(handle, is_math_mode(mode), blas->math_mode = mode);
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode) {
    SETTING(handle, mode != NULL, *mode = blas->math_mode);
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
    SETTING(handle, mode == CUBLAS_ATOMICS_NOT_ALLOWED || mode == CUBLAS_ATOMICS_ALLOWED,
            blas->atomics_mode = mode);
}

cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t *mode) {
    SETTING(handle, mode != NULL, *mode = blas->atomics_mode);
}

// --- Work ---

cublasStatus_t sim__blas_aim(struct sim__blas_handle *blas, cudaStream_t handle,
                             struct sim__blas_target *target) {
    *target = (struct sim__blas_target){0};
    if (sim__stream_resolve(handle, &target->stream) != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED; // the sentence is said
    const int device = sim__device_current()->index;
    if (blas->device != device || target->stream->device != device)
        return sim__blas_refuse(CUBLAS_STATUS_EXECUTION_FAILED,
                                "a handle of device %d, a stream of device %d, device %d is "
                                "current: want one device",
                                blas->device, target->stream->device, device);
    return CUBLAS_STATUS_SUCCESS;
}

// The stream's own; else one that is free; else the one that was used longest ago.
static struct sim__blas_slice *slice_choose(struct sim__blas_handle *blas,
                                            const struct sim__stream *stream) {
    struct sim__blas_slice *oldest = &blas->slices[0];
    for (int i = 0; i < SIM__BLAS_SLICE_COUNT; ++i) {
        struct sim__blas_slice *slice = &blas->slices[i];
        if (slice->stream == stream)
            return slice;
        if (slice->turn < oldest->turn)
            oldest = slice;
    }
    return oldest;
}

cublasStatus_t sim__blas_aim_workspace(struct sim__blas_handle *blas,
                                       struct sim__blas_target *target) {
    if (blas->has_workspace) {
        target->workspace = blas->workspace;
        target->workspace_bytes = blas->workspace_bytes;
        target->is_programs = true;
        return CUBLAS_STATUS_SUCCESS;
    }
    target->workspace_bytes = blas->slice_bytes;
    if (target->stream->capture != NULL) {
        target->is_of_graph = true;
        return sim__blas_status_of(sim__capture_alloc(target->stream, blas->device,
                                                      blas->slice_bytes, &target->workspace));
    }
    target->slice = slice_choose(blas, target->stream);
    target->slice->turn = ++blas->turn;
    target->workspace = blas->pool + (target->slice - blas->slices) * (ptrdiff_t)blas->slice_bytes;
    return CUBLAS_STATUS_SUCCESS;
}

static cudaError_t enqueue(struct sim__blas_target *target,
                           const struct sim__operation *operation) {
    struct sim__stream *stream = target->stream;
    struct sim__position after = {0};
    if (sim__captures_exist()) {
        bool captured;
        const cudaError_t error = sim__capture_enqueue(stream, operation, &captured);
        if (error != cudaSuccess || captured)
            return error;
    }
    if (target->slice != NULL) {
        if (target->slice->stream != stream)
            after = target->slice->last;
        target->slice->stream = stream;
        target->slice->last = (struct sim__position){stream, stream->submitted + 1};
    }
    sim__engine_submit(stream, operation, after);
    return cudaSuccess;
}

cublasStatus_t sim__blas_submit(struct sim__blas_target *target, struct sim_kernel *kernel) {
    struct sim__operation operation;
    kernel->accesses = sim__blas_accesses(&kernel->access_count);
    cudaError_t error = sim__kernel_operation(kernel, &operation);
    if (error == cudaSuccess)
        error = enqueue(target, &operation);
    if (error == cudaSuccess && target->is_of_graph)
        error = sim__capture_free(target->stream, target->workspace);
    return sim__blas_status_of(error);
}

struct sim__blas_scalar sim__blas_scalar_take(bool on_device, bool is_double, const void *pointer) {
    if (on_device)
        return (struct sim__blas_scalar){.device = pointer};
    return (struct sim__blas_scalar){.value = is_double ? *(const double *)pointer
                                                        : (double)*(const float *)pointer};
}

bool sim__blas_scalar_read(const struct sim__blas_scalar *scalar, bool is_double, double *value) {
    *value = scalar->value;
    if (scalar->device == NULL)
        return true;
    const void *bytes =
        sim_kernel_bytes(scalar->device, is_double ? sizeof(double) : sizeof(float), false);
    if (bytes == NULL)
        return false;
    *value = is_double ? *(const double *)bytes : (double)*(const float *)bytes;
    return true;
}
