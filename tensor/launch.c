// See launch.h.
#include "tensor/launch.h"

#include "tensor/blas.h"
#include "tensor/lower.h"

#include <cublasLt.h>
#include <limits.h>

static enum base_status pointwise_here(const struct tensor_loop *loop, cudaStream_t stream) {
    struct tensor_kernel_pointwise kernel;
    tensor__lower_pointwise(loop, &kernel);
    return tensor__cuda_status("launch of element work", tensor_launch_pointwise(&kernel, stream));
}

// The innermost of COUNT dimensions: the one of the least stride.
static int innermost(const int64_t *strides, int count) {
    int best = 0;
    for (int dim = 1; dim < count; ++dim)
        if (strides[dim] < strides[best])
            best = dim;
    return best;
}

// How the sum's numbers lie. Of no interest below SUM_PLAN_MIN, which no plan divides.
#define SUM_PLAN_MIN 256
static struct tensor_sum_shape sum_shape(const struct tensor_kernel_sum *kernel) {
    const int kept = innermost(kernel->a.strides, kernel->kept.rank);
    const int added = innermost(kernel->b.strides, kernel->reduced.rank);
    const size_t item = tensor_type_size((enum tensor_type)kernel->a.type);
    const bool is_total = kernel->kept.rank == 0;
    struct tensor_sum_shape shape = {
        .results = tensor_kernel_count(&kernel->kept),
        .inputs = tensor_kernel_count(&kernel->reduced),
        .added_stride = kernel->b.strides[added],
        .kept_stride = is_total ? 0 : kernel->a.strides[kept],
        .is_total = is_total,
        .is_flat = is_total && kernel->reduced.rank == 1,
        .row = is_total ? 1 : kernel->kept.sizes[kept],
        .accumulator_bytes = kernel->compute == TENSOR_KERNEL_FLOAT64 ||
                                     !tensor_kernel_is_floating(kernel->compute)
                                 ? 8
                                 : 4};
    int64_t all = (int64_t)((uintptr_t)kernel->a.data / item); // every bit that one of them has
    for (int dim = 0; dim < kernel->kept.rank; ++dim)
        all |= dim == kept ? 0 : kernel->a.strides[dim];
    for (int dim = 0; dim < kernel->reduced.rank; ++dim)
        all |= kernel->b.strides[dim];
    shape.alignment = all % 4 == 0 ? 4 : all % 2 == 0 ? 2 : 1;
    return shape;
}

static struct tensor_sum_plan cuda_sum_plan(const struct tensor_loop *loop, const bool *is_reduced,
                                            int device) {
    struct tensor_kernel_sum kernel;
    int multiprocessors, threads;
    tensor__lower_sum(loop, is_reduced, &kernel);
    if (tensor_kernel_count(&kernel.reduced) < SUM_PLAN_MIN ||
        cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) !=
            cudaSuccess ||
        cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device) !=
            cudaSuccess)
        return (struct tensor_sum_plan){.parts = 1};
    const struct tensor_sum_shape shape = sum_shape(&kernel);
    return tensor_sum_plan(&shape, multiprocessors, threads);
}

static enum base_status sum_here(const struct tensor_loop *loop, const bool *is_reduced,
                                 const struct tensor_sum_memory *memory, cudaStream_t stream) {
    struct tensor_kernel_sum_parts kernel;
    tensor__lower_sum(loop, is_reduced, &kernel.sum);
    if (memory->plan.parts <= 1)
        return tensor__cuda_status("launch of a sum", tensor_launch_sum(&kernel.sum, stream));
    const bool is_floating = tensor_kernel_is_floating(kernel.sum.compute);
    const int64_t places = (int64_t)(memory->plan.staging_bytes / sizeof(double)) /
                           tensor_kernel_count(&kernel.sum.kept);
    kernel.parts = places < memory->plan.parts ? places : memory->plan.parts;
    kernel.group = memory->plan.group_results;
    kernel.staging = (struct tensor_kernel_array){
        .data = memory->staging,
        .type = is_floating ? TENSOR_KERNEL_FLOAT64 : TENSOR_KERNEL_INT64,
        .strides = {1}};
    kernel.counters = (struct tensor_kernel_array){
        .data = memory->counters, .type = TENSOR_KERNEL_INT32, .strides = {1}};
    const enum base_status status = tensor__cuda_status(
        "cudaMemsetAsync",
        cudaMemsetAsync(memory->counters, 0, memory->plan.counter_bytes, stream));
    if (status != BASE_OK)
        return status;
    return tensor__cuda_status("launch of a sum", tensor_launch_sum_parts(&kernel, stream));
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
    const void *bias;
    void *workspace;
    size_t workspace_bytes;
    cudaStream_t stream;
};

// false: cuBLAS has no form for these strides, or not for this type.
static bool request_make(const struct tensor_product *product, cudaStream_t stream,
                         struct request *request) {
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
    request->bias = product->bias;
    request->workspace = product->workspace;
    request->workspace_bytes = product->workspace_bytes;
    request->stream = stream;
    return across ? stored_as(n, k, b[2], b[1], &request->a_stored) &&
                        stored_as(k, m, a[2], a[1], &request->b_stored)
                  : stored_as(m, k, a[1], a[2], &request->a_stored) &&
                        stored_as(k, n, b[1], b[2], &request->b_stored);
}

// Setting the stream takes a workspace of the caller's away again.
static cublasStatus_t request_run(cublasHandle_t handle, const void *argument) {
    const struct request *request = argument;
    const bool is_double = request->type == CUDA_R_64F;
    const float one = 1, zero = 0;
    const double one_double = 1, zero_double = 0;
    cublasStatus_t status = cublasSetStream(handle, request->stream);
    if (status == CUBLAS_STATUS_SUCCESS && request->workspace != NULL)
        status = cublasSetWorkspace(handle, request->workspace, request->workspace_bytes);
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

// The same with a bias, by cuBLASLt: a number for each row of what is by columns.
static cublasStatus_t biased_describe(const struct request *request,
                                      cublasLtMatmulDesc_t operation) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const cublasOperation_t a = request->a_stored.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t b = request->b_stored.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const struct {
        cublasLtMatmulDescAttributes_t attribute;
        const void *value;
        size_t size;
    } attributes[] = {
        {CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a},
        {CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b},
        {CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue},
        {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &request->bias, sizeof request->bias},
    };
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; ++i)
        if (status == CUBLAS_STATUS_SUCCESS)
            status = cublasLtMatmulDescSetAttribute(operation, attributes[i].attribute,
                                                    attributes[i].value, attributes[i].size);
    return status;
}

static cublasStatus_t layout_make(const struct request *request, const struct stored *stored,
                                  int rows, int columns, cublasLtMatrixLayout_t *layout) {
    return cublasLtMatrixLayoutCreate(layout, request->type,
                                      (uint64_t)(stored->transposed ? columns : rows),
                                      (uint64_t)(stored->transposed ? rows : columns), stored->ld);
}

static cublasStatus_t biased_run(cublasHandle_t handle, const void *argument) {
    const struct request *request = argument;
    const bool is_double = request->type == CUDA_R_64F;
    const float one = 1, zero = 0;
    const double one_double = 1, zero_double = 0;
    cublasLtMatmulDesc_t operation = NULL;
    cublasLtMatrixLayout_t a = NULL, b = NULL, out = NULL;
    const struct stored by_columns = {false, request->out_stored.ld};
    cublasStatus_t status =
        cublasLtMatmulDescCreate(&operation, is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                 is_double ? CUDA_R_64F : CUDA_R_32F);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = biased_describe(request, operation);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = layout_make(request, &request->a_stored, request->m, request->k, &a);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = layout_make(request, &request->b_stored, request->k, request->n, &b);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = layout_make(request, &by_columns, request->m, request->n, &out);
    if (status == CUBLAS_STATUS_SUCCESS) // any cublasHandle_t is a handle of cuBLASLt
        status = cublasLtMatmul((cublasLtHandle_t)(void *)handle, operation,
                                is_double ? (const void *)&one_double : &one, request->a, a,
                                request->b, b, is_double ? (const void *)&zero_double : &zero,
                                request->out, out, request->out, out, NULL, request->workspace,
                                request->workspace_bytes, request->stream);
    if (out != NULL)
        (void)cublasLtMatrixLayoutDestroy(out);
    if (b != NULL)
        (void)cublasLtMatrixLayoutDestroy(b);
    if (a != NULL)
        (void)cublasLtMatrixLayoutDestroy(a);
    if (operation != NULL)
        (void)cublasLtMatmulDescDestroy(operation);
    return status;
}

static enum base_status product_here(const struct tensor_product *product, cudaStream_t stream) {
    struct request request;
    if (product->batch == 0 || product->m == 0 || product->n == 0)
        return BASE_OK;
    if (request_make(product, stream, &request))
        return product->bias != NULL
                   ? tensor__blas_run("cublasLtMatmul", biased_run, &request)
                   : tensor__blas_run("cublasGemmStridedBatchedEx", request_run, &request);
    struct tensor_kernel_product kernel;
    tensor__lower_product(product, &kernel);
    return tensor__cuda_status("launch of a product", tensor_launch_product(&kernel, stream));
}

// A bias of columns is one of rows of the transposed product, which is what is by columns.
static bool cuda_adds_bias(const struct tensor_product *product) {
    struct request request;
    return product->batch == 1 && product->m > 1 && product->n > 1 && product->k > 1 &&
           request_make(product, NULL, &request) && request.out_stored.transposed;
}

// --- The table: each with the stream's device as the current one ---

#define ON_DEVICE(stream, call)                                                                    \
    do {                                                                                           \
        struct tensor_guard guard;                                                                 \
        const enum base_status begun = tensor__guard_begin((stream).device, &guard);               \
        return begun == BASE_OK ? tensor__guard_end(&guard, (call)) : begun;                       \
    } while (0)

static enum base_status cuda_pointwise(const struct tensor_loop *loop,
                                       struct tensor_device_stream stream) {
    ON_DEVICE(stream, pointwise_here(loop, stream.handle));
}

static enum base_status cuda_sum(const struct tensor_loop *loop, const bool *is_reduced,
                                 const struct tensor_sum_memory *memory,
                                 struct tensor_device_stream stream) {
    ON_DEVICE(stream, sum_here(loop, is_reduced, memory, stream.handle));
}

static enum base_status cuda_product(const struct tensor_product *product,
                                     struct tensor_device_stream stream) {
    ON_DEVICE(stream, product_here(product, stream.handle));
}

// Those with arguments of their own.
#define CUDA_MODEL(name)                                                                           \
    static enum base_status cuda_##name(const struct tensor_kernel_##name *kernel,                 \
                                        struct tensor_device_stream stream) {                      \
        ON_DEVICE(stream, tensor__cuda_status("launch of " #name,                                  \
                                              tensor_launch_##name(kernel, stream.handle)));       \
    }
TENSOR_KERNEL_MODEL_LIST(CUDA_MODEL)

#define ENTRY(name) .name = cuda_##name,
static const struct tensor_model_backend cuda_model = {TENSOR_KERNEL_MODEL_LIST(ENTRY)};

const struct tensor_backend tensor__cuda = {.pointwise = cuda_pointwise,
                                            .sum = cuda_sum,
                                            .sum_plan = cuda_sum_plan,
                                            .product = cuda_product,
                                            .adds_bias = cuda_adds_bias,
                                            .model = &cuda_model};
