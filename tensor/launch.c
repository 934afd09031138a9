// See launch.h. Loops are simplified first: dimensions of one element go, and those that lie one
// behind the other in all operands become one, so that most kernels have one dimension.
#include "tensor/launch.h"

#include "base/thread.h"
#include "tensor/kernel/launch.h"

#include <cublas_v2.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define HANDLES_MAX 64 // of a device that are kept

_Static_assert(TENSOR_RANK_MAX == TENSOR_KERNEL_RANK_MAX, "one limit");
_Static_assert((int)TENSOR_UINT8 == TENSOR_KERNEL_UINT8 &&
                   (int)TENSOR_INT64 == TENSOR_KERNEL_INT64 &&
                   (int)TENSOR_FLOAT16 == TENSOR_KERNEL_FLOAT16 &&
                   (int)TENSOR_FLOAT64 == TENSOR_KERNEL_FLOAT64 &&
                   (int)TENSOR_BOOL == TENSOR_KERNEL_BOOL &&
                   (int)TENSOR_BFLOAT16 == TENSOR_KERNEL_BFLOAT16,
               "types have one order");
_Static_assert((int)TENSOR_COPY == TENSOR_KERNEL_COPY && (int)TENSOR_EQ == TENSOR_KERNEL_EQ &&
                   (int)TENSOR_SQRT == TENSOR_KERNEL_SQRT &&
                   (int)TENSOR_ACCUMULATE == TENSOR_KERNEL_ACCUMULATE,
               "operations have one order");

static enum base_status status_of(const char *call, cudaError_t error) {
    if (error == cudaSuccess)
        return BASE_OK;
    return base_status_set(error == cudaErrorMemoryAllocation ? BASE_OUT_OF_MEMORY : BASE_CUDA,
                           "%s: %s (%s)", call, cudaGetErrorName(error), cudaGetErrorString(error));
}

static enum base_status blas_status_of(const char *call, cublasStatus_t status) {
    if (status == CUBLAS_STATUS_SUCCESS)
        return BASE_OK;
    return base_status_set(status == CUBLAS_STATUS_ALLOC_FAILED ? BASE_OUT_OF_MEMORY : BASE_CUDA,
                           "%s: %s (%s)", call, cublasGetStatusName(status),
                           cublasGetStatusString(status));
}

// --- Loops ---

static struct tensor_kernel_number number_of(struct tensor_scalar scalar, int type) {
    const bool is_floating = scalar.kind == TENSOR_SCALAR_FLOATING;
    const struct tensor_kernel_number number = {scalar.floating, scalar.integer};
    return tensor_kernel_convert(number, is_floating ? TENSOR_KERNEL_FLOAT64 : TENSOR_KERNEL_INT64,
                                 type);
}

static struct tensor_kernel_array array_of(const struct tensor_operand *operand) {
    return (struct tensor_kernel_array){.data = operand->data, .type = (int)operand->type};
}

// One dimension of a loop of three operands.
struct dimension {
    int64_t size, strides[3];
};

static bool lies_behind(const struct dimension *outer, const struct dimension *inner) {
    for (int i = 0; i < 3; ++i)
        if (outer->strides[i] != inner->size * inner->strides[i])
            return false;
    return true;
}

// By the output's stride, the greatest first; then by the input's.
static bool comes_before(const struct dimension *a, const struct dimension *b) {
    return a->strides[0] != b->strides[0] ? a->strides[0] > b->strides[0]
                                          : a->strides[1] > b->strides[1];
}

// In place; returns how many are left. ORDERED: elements keep their order.
static int dimensions_simplify(struct dimension *dimensions, int count, bool ordered) {
    int kept = 0;
    for (int i = 0; i < count; ++i) {
        const struct dimension dimension = dimensions[i];
        int at = kept;
        if (dimension.size == 1)
            continue;
        for (; !ordered && at > 0 && comes_before(&dimension, &dimensions[at - 1]); --at)
            dimensions[at] = dimensions[at - 1];
        dimensions[at] = dimension;
        ++kept;
    }
    int joined = 0;
    for (int i = 0; i < kept; ++i) {
        if (joined > 0 && lies_behind(&dimensions[joined - 1], &dimensions[i])) {
            const int64_t size = dimensions[joined - 1].size * dimensions[i].size;
            dimensions[joined - 1] = dimensions[i];
            dimensions[joined - 1].size = size;
        } else {
            dimensions[joined++] = dimensions[i];
        }
    }
    return joined;
}

static int dimensions_of(const struct tensor_loop *loop, const bool *is_reduced, bool reduced,
                         struct dimension *dimensions) {
    int count = 0;
    for (int dim = 0; dim < loop->rank; ++dim) {
        if (is_reduced != NULL && is_reduced[dim] != reduced)
            continue;
        dimensions[count++] = (struct dimension){loop->sizes[dim],
                                                 {loop->out.strides[dim],
                                                  loop->a.data != NULL ? loop->a.strides[dim] : 0,
                                                  loop->b.data != NULL ? loop->b.strides[dim] : 0}};
    }
    return count;
}

static enum base_status cuda_pointwise(const struct tensor_loop *loop, cudaStream_t stream) {
    struct dimension dimensions[TENSOR_RANK_MAX];
    struct tensor_kernel_pointwise kernel = {
        .operation = (int)loop->operation,
        .compute = (int)loop->compute,
        .out = array_of(&loop->out),
        .a = array_of(&loop->a),
        .b = array_of(&loop->b),
        .scalar = number_of(loop->scalar, (int)loop->compute),
        .alpha = number_of(loop->alpha, (int)loop->compute),
    };
    kernel.shape.rank =
        dimensions_simplify(dimensions, dimensions_of(loop, NULL, false, dimensions),
                            loop->operation == TENSOR_ACCUMULATE);
    for (int dim = 0; dim < kernel.shape.rank; ++dim) {
        kernel.shape.sizes[dim] = dimensions[dim].size;
        kernel.out.strides[dim] = dimensions[dim].strides[0];
        kernel.a.strides[dim] = dimensions[dim].strides[1];
        kernel.b.strides[dim] = dimensions[dim].strides[2];
    }
    return status_of("launch of element work", tensor_launch_pointwise(&kernel, stream));
}

static enum base_status cuda_sum(const struct tensor_loop *loop, const bool *is_reduced,
                                 cudaStream_t stream) {
    struct dimension dimensions[TENSOR_RANK_MAX];
    struct tensor_kernel_sum kernel = {
        .compute = (int)loop->compute, .out = array_of(&loop->out), .a = array_of(&loop->a)};
    kernel.kept.rank =
        dimensions_simplify(dimensions, dimensions_of(loop, is_reduced, false, dimensions), false);
    for (int dim = 0; dim < kernel.kept.rank; ++dim) {
        kernel.kept.sizes[dim] = dimensions[dim].size;
        kernel.out.strides[dim] = dimensions[dim].strides[0];
        kernel.a.strides[dim] = dimensions[dim].strides[1];
    }
    int count = dimensions_of(loop, is_reduced, true, dimensions);
    for (int i = 0; i < count; ++i)
        dimensions[i].strides[0] = 0;
    kernel.reduced.rank = dimensions_simplify(dimensions, count, true);
    for (int dim = 0; dim < kernel.reduced.rank; ++dim) {
        kernel.reduced.sizes[dim] = dimensions[dim].size;
        kernel.b.strides[dim] = dimensions[dim].strides[1];
    }
    return status_of("launch of a sum", tensor_launch_sum(&kernel, stream));
}

// --- cuBLAS handles ---

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

// --- Products ---

// A matrix as cuBLAS has it: by columns, or the transposed one of it.
struct stored {
    bool transposed;
    int ld;
};

static bool stored_as(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
                      struct stored *stored) {
    const bool by_columns = row_stride == 1 || rows <= 1;
    const bool by_rows = column_stride == 1 || columns <= 1;
    const int64_t least = rows > 1 ? rows : 1, least_across = columns > 1 ? columns : 1;
    const int64_t ld = columns > 1 ? column_stride : least;
    const int64_t ld_across = rows > 1 ? row_stride : least_across;
    if (by_columns && ld >= least && ld <= INT_MAX)
        *stored = (struct stored){false, (int)ld};
    else if (by_rows && ld_across >= least_across && ld_across <= INT_MAX)
        *stored = (struct stored){true, (int)ld_across};
    else
        return false;
    return true;
}

static bool blas_type(enum tensor_type type, cudaDataType *blas) {
    switch (type) {
    case TENSOR_FLOAT32:
        *blas = CUDA_R_32F;
        return true;
    case TENSOR_FLOAT64:
        *blas = CUDA_R_64F;
        return true;
    case TENSOR_FLOAT16:
        *blas = CUDA_R_16F;
        return true;
    case TENSOR_BFLOAT16:
        *blas = CUDA_R_16BF;
        return true;
    default:
        return false;
    }
}

// What cuBLAS is asked: out = a b, or the transposed of it, by columns.
struct request {
    cudaDataType type;
    int m, n, k, batch;
    const void *a, *b;
    void *out;
    struct stored a_stored, b_stored, out_stored;
    long long a_stride, b_stride, out_stride;
};

// false: cuBLAS has no form for these strides, or not for this type.
static bool request_make(const struct tensor_product *product, struct request *request) {
    const int64_t *a = product->a_strides, *b = product->b_strides, *out = product->out_strides;
    const int64_t m = product->m, n = product->n, k = product->k;
    if (!blas_type(product->type, &request->type) || m > INT_MAX || n > INT_MAX || k > INT_MAX ||
        product->batch > INT_MAX || !stored_as(m, n, out[1], out[2], &request->out_stored))
        return false;
    const bool across = request->out_stored.transposed;
    request->m = (int)(across ? n : m);
    request->n = (int)(across ? m : n);
    request->k = (int)k;
    request->batch = (int)product->batch;
    request->out = product->out;
    request->a = across ? product->b : product->a;
    request->b = across ? product->a : product->b;
    request->a_stride = across ? b[0] : a[0];
    request->b_stride = across ? a[0] : b[0];
    request->out_stride = out[0];
    return across ? stored_as(n, k, b[2], b[1], &request->a_stored) &&
                        stored_as(k, m, a[2], a[1], &request->b_stored)
                  : stored_as(m, k, a[1], a[2], &request->a_stored) &&
                        stored_as(k, n, b[1], b[2], &request->b_stored);
}

static cublasStatus_t request_run(cublasHandle_t handle, const struct request *request,
                                  cudaStream_t stream) {
    const bool is_double = request->type == CUDA_R_64F;
    const float one = 1, zero = 0;
    const double one_double = 1, zero_double = 0;
    const cublasStatus_t status = cublasSetStream(handle, stream);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    return cublasGemmStridedBatchedEx(
        handle, request->a_stored.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
        request->b_stored.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, request->m, request->n,
        request->k, is_double ? (const void *)&one_double : &one, request->a, request->type,
        request->a_stored.ld, request->a_stride, request->b, request->type, request->b_stored.ld,
        request->b_stride, is_double ? (const void *)&zero_double : &zero, request->out,
        request->type, request->out_stored.ld, request->out_stride, request->batch,
        is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static enum base_status blas_product(const struct request *request, cudaStream_t stream) {
    int device;
    cublasHandle_t handle;
    enum base_status result = status_of("cudaGetDevice", cudaGetDevice(&device));
    if (result != BASE_OK)
        return result;
    result = blas_status_of("cublasCreate", handle_take(device, &handle));
    if (result != BASE_OK)
        return result;
    cublasStatus_t status = request_run(handle, request, stream);
    if (status == CUBLAS_STATUS_NOT_INITIALIZED) { // the device was reset since
        result = blas_status_of("cublasCreate", handle_create(&handle));
        if (result != BASE_OK)
            return result;
        status = request_run(handle, request, stream);
    }
    handle_give(device, handle);
    return blas_status_of("cublasGemmStridedBatchedEx", status);
}

static struct tensor_kernel_array matrix_of(const void *data, enum tensor_type type,
                                            const int64_t *strides) {
    struct tensor_kernel_array array = {.data = (void *)(uintptr_t)data, .type = (int)type};
    memcpy(array.strides, strides, 3 * sizeof *strides);
    return array;
}

static enum base_status cuda_product(const struct tensor_product *product, cudaStream_t stream) {
    struct request request;
    if (product->batch == 0 || product->m == 0 || product->n == 0)
        return BASE_OK;
    if (request_make(product, &request))
        return blas_product(&request, stream);
    const struct tensor_kernel_product kernel = {
        .batch = product->batch,
        .m = product->m,
        .n = product->n,
        .k = product->k,
        .out = matrix_of(product->out, product->type, product->out_strides),
        .a = matrix_of(product->a, product->type, product->a_strides),
        .b = matrix_of(product->b, product->type, product->b_strides),
    };
    return status_of("launch of a product", tensor_launch_product(&kernel, stream));
}

const struct tensor_backend tensor__cuda = {
    .pointwise = cuda_pointwise, .sum = cuda_sum, .product = cuda_product};
