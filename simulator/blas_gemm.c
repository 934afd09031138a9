// Products of matrices: arguments checked as cuBLAS checks them, accesses and costs, and the calls.
#include "simulator/blas_product.h"
#include "simulator/plant.h"

#include <limits.h>

// --- Checks and submission ---

static cublasStatus_t matrix_check(const char *name, const struct sim__blas_matrix *matrix,
                                   int64_t rows) {
    if (matrix->ld < (rows > 1 ? rows : 1) && !sim__planted(SIM__PLANT_BLAS_SIZES))
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE,
                                "the leading dimension of %s is %lld: want %lld or more", name,
                                (long long)matrix->ld, (long long)(rows > 1 ? rows : 1));
    if (matrix->ld > INT_MAX)
        return sim__blas_refuse(CUBLAS_STATUS_NOT_SUPPORTED,
                                "the leading dimension of %s is %lld: above %d", name,
                                (long long)matrix->ld, INT_MAX);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t product_check(const struct sim__blas_product *product) {
    if (product->m < 0 || product->n < 0 || product->k < 0 || product->count < 0)
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE,
                                "m %lld, n %lld, k %lld, %lld times: want none below 0",
                                (long long)product->m, (long long)product->n, (long long)product->k,
                                (long long)product->count);
    cublasStatus_t status =
        matrix_check("A", &product->a, product->transposes_a ? product->k : product->m);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = matrix_check("B", &product->b, product->transposes_b ? product->n : product->k);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = matrix_check("C", &product->c, product->m);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = matrix_check("D", &product->d, product->m);
    return status;
}

static void matrix_access(enum sim_access_mode mode, const struct sim__blas_product *product,
                          const struct sim__blas_matrix *matrix, int64_t rows, int64_t columns) {
    if (product->by_pointers)
        sim__blas_access_add(SIM_ACCESS_READ, matrix->pointer,
                             (size_t)product->count * sizeof(void *));
    else
        sim__blas_access_add_matrix(mode, matrix->pointer, sim__blas_size_of(matrix->type), rows,
                                    columns, matrix->ld, matrix->stride, product->count);
}

static void product_access(const struct sim__blas_product *product,
                           const struct sim__blas_target *target) {
    const int64_t m = product->m, n = product->n, k = product->k;
    const bool reads = product->alpha.device != NULL || product->alpha.value != 0;
    const bool reads_c = product->beta.device != NULL || product->beta.value != 0;
    sim__blas_access_begin();
    if (!sim__race_is_on())
        return;
    sim__blas_access_add_scalar(&product->alpha, product->is_double);
    sim__blas_access_add_scalar(&product->beta, product->is_double);
    if (reads) {
        matrix_access(SIM_ACCESS_READ, product, &product->a, product->transposes_a ? k : m,
                      product->transposes_a ? m : k);
        matrix_access(SIM_ACCESS_READ, product, &product->b, product->transposes_b ? n : k,
                      product->transposes_b ? k : n);
        sim__blas_access_add_workspace(target, product->partial_bytes);
    }
    if (reads_c)
        matrix_access(SIM_ACCESS_READ, product, &product->c, m, n);
    if (product->bias != NULL)
        sim__blas_access_add_matrix(SIM_ACCESS_READ, product->bias,
                                    sim__blas_size_of(product->bias_type), m, 1, m,
                                    product->bias_stride, product->count);
    matrix_access(SIM_ACCESS_WRITE, product, &product->d, m, n);
}

static const char *kernel_name(cudaDataType type) {
    return type == CUDA_R_64F    ? "gemm_fp64"
           : type == CUDA_R_16F  ? "gemm_fp16"
           : type == CUDA_R_16BF ? "gemm_bf16"
                                 : "gemm_fp32";
}

// TF32 goes half as fast as 16 bits.
static void costs(const struct sim__blas_product *product, bool may_use_tensor_cores,
                  struct sim_kernel *kernel) {
    const uint64_t m = (uint64_t)product->m, n = (uint64_t)product->n, k = (uint64_t)product->k;
    const uint64_t count = (uint64_t)product->count, flops = 2 * m * n * k * count;
    const uint64_t d_times = product->beta.device != NULL || product->beta.value != 0 ? 2 : 1;
    kernel->bytes = count * ((m * k + k * n) * sim__blas_size_of(product->a.type) +
                             d_times * m * n * sim__blas_size_of(product->d.type));
    if (sim__blas_is_16_bit(product->a.type))
        kernel->tensor_flops = flops;
    else if (may_use_tensor_cores && !product->is_double)
        kernel->tensor_flops = 2 * flops;
    else
        kernel->flops = flops;
}

cublasStatus_t sim__blas_product_submit(struct sim__blas_handle *blas, cudaStream_t handle,
                                        struct sim__blas_product *product,
                                        const struct sim__blas_workspace *workspace,
                                        bool may_use_tensor_cores) {
    struct sim__blas_target target;
    cublasStatus_t status = product_check(product);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = sim__blas_aim(blas, handle, &target);
    if (status != CUBLAS_STATUS_SUCCESS || product->m == 0 || product->n == 0 ||
        product->count == 0)
        return status;
    if (product->d.pointer == NULL)
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE, "there is no C");
    if (workspace != NULL) {
        target.workspace = workspace->pointer;
        target.workspace_bytes = workspace->bytes;
        target.is_programs = true;
    } else {
        status = sim__blas_aim_workspace(blas, &target);
        if (status != CUBLAS_STATUS_SUCCESS)
            return status;
    }
    product->workspace = target.workspace;
    product->partial_bytes = sim__blas_product_partial_bytes(product, target.workspace_bytes);
    struct sim_kernel kernel = {
        .name = kernel_name(product->a.type),
        .body = sim__blas_product_body,
        .argument = product,
        .argument_size = sizeof *product,
    };
    costs(product, may_use_tensor_cores, &kernel);
    product_access(product, &target);
    return sim__blas_submit(&target, &kernel);
}

// --- The calls ---

// What all forms have. The types are those of the pointers; strides are 0 for one product.
struct request {
    cublasOperation_t transa, transb;
    int m, n, k, count;
    const void *alpha, *beta;
    struct sim__blas_matrix a, b, c;
    cublasComputeType_t compute;
    bool by_pointers;
};

static bool computes_in_float(cublasComputeType_t compute) {
    return compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
           compute == CUBLAS_COMPUTE_32F_FAST_16F || compute == CUBLAS_COMPUTE_32F_FAST_16BF ||
           compute == CUBLAS_COMPUTE_32F_FAST_TF32;
}

static bool is_fast(cublasComputeType_t compute) {
    return compute == CUBLAS_COMPUTE_32F_FAST_16F || compute == CUBLAS_COMPUTE_32F_FAST_16BF ||
           compute == CUBLAS_COMPUTE_32F_FAST_TF32;
}

bool sim__blas_types_fit(cudaDataType a, cudaDataType b, cudaDataType c,
                         cublasComputeType_t compute) {
    if (a != b)
        return false;
    if (a == CUDA_R_64F)
        return c == CUDA_R_64F &&
               (compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC);
    if (a == CUDA_R_32F)
        return c == CUDA_R_32F && computes_in_float(compute);
    return sim__blas_is_16_bit(a) && (c == a || c == CUDA_R_32F) && computes_in_float(compute) &&
           !is_fast(compute);
}

static bool is_operation(cublasOperation_t operation) {
    return operation == CUBLAS_OP_N || operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
}

static bool may_use_tensor_cores(const struct sim__blas_handle *blas, cublasComputeType_t compute) {
    const unsigned mode =
        (unsigned)blas->math_mode & ~(unsigned)CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    return is_fast(compute) ||
           (compute == CUBLAS_COMPUTE_32F &&
            (mode == CUBLAS_TF32_TENSOR_OP_MATH || mode == CUBLAS_TENSOR_OP_MATH));
}

static cublasStatus_t request_locked(struct sim__blas_handle *blas, const struct request *request) {
    if (!is_operation(request->transa) || !is_operation(request->transb))
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE,
                                "operations %d and %d: want CUBLAS_OP_N, T or C",
                                (int)request->transa, (int)request->transb);
    if (request->alpha == NULL || request->beta == NULL)
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE, "there is no alpha, or no beta");
    if (!sim__blas_types_fit(request->a.type, request->b.type, request->c.type, request->compute))
        return sim__blas_refuse(CUBLAS_STATUS_NOT_SUPPORTED,
                                "A, B, C of types %d, %d, %d with computation %d",
                                (int)request->a.type, (int)request->b.type, (int)request->c.type,
                                (int)request->compute);
    const bool is_double = request->a.type == CUDA_R_64F;
    const bool on_device = blas->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
    struct sim__blas_product product = {
        .m = request->m,
        .n = request->n,
        .k = request->k,
        .count = request->count,
        .transposes_a = request->transa != CUBLAS_OP_N,
        .transposes_b = request->transb != CUBLAS_OP_N,
        .is_double = is_double,
        .by_pointers = request->by_pointers,
        .a = request->a,
        .b = request->b,
        .c = request->c,
        .d = request->c,
        .alpha = sim__blas_scalar_take(on_device, is_double, request->alpha),
        .beta = sim__blas_scalar_take(on_device, is_double, request->beta),
    };
    return sim__blas_product_submit(blas, blas->stream, &product, NULL,
                                    may_use_tensor_cores(blas, request->compute));
}

static cublasStatus_t cublas_product(cublasHandle_t handle, const struct request *request) {
    struct sim__blas_handle *blas;
    cublasStatus_t status = sim__blas_begin(SIM_CALL_BLAS_GEMM, handle, &blas);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = request_locked(blas, request);
    return sim__blas_end(SIM_CALL_BLAS_GEMM, status);
}

#define REQUEST(a_type_, b_type_, c_type_, compute_, stride_a_, stride_b_, stride_c_, count_)      \
    {                                                                                              \
        .transa = transa, .transb = transb, .m = m, .n = n, .k = k, .count = (count_),             \
        .alpha = alpha, .beta = beta, .a = {a, (a_type_), lda, (stride_a_)},                       \
        .b = {b, (b_type_), ldb, (stride_b_)}, .c = {c, (c_type_), ldc, (stride_c_)},              \
        .compute = (compute_)                                                                      \
    }

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const float *alpha,
                           const float *a, int lda, const float *b, int ldb, const float *beta,
                           float *c, int ldc) {
    const struct request request =
        REQUEST(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0, 0, 0, 1);
    return cublas_product(handle, &request);
}

cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const double *alpha,
                           const double *a, int lda, const double *b, int ldb, const double *beta,
                           double *c, int ldc) {
    const struct request request =
        REQUEST(CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 0, 0, 0, 1);
    return cublas_product(handle, &request);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType a_type, int lda, const void *b,
                            cudaDataType b_type, int ldb, const void *beta, void *c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute_type,
                            cublasGemmAlgo_t algorithm) {
    const struct request request = REQUEST(a_type, b_type, c_type, compute_type, 0, 0, 0, 1);
    (void)algorithm; // a wish
    return cublas_product(handle, &request);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const float *alpha, const float *a, int lda,
                                         long long int stride_a, const float *b, int ldb,
                                         long long int stride_b, const float *beta, float *c,
                                         int ldc, long long int stride_c, int batch_count) {
    const struct request request = REQUEST(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F,
                                           stride_a, stride_b, stride_c, batch_count);
    return cublas_product(handle, &request);
}

cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const double *alpha, const double *a, int lda,
                                         long long int stride_a, const double *b, int ldb,
                                         long long int stride_b, const double *beta, double *c,
                                         int ldc, long long int stride_c, int batch_count) {
    const struct request request = REQUEST(CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F,
                                           stride_a, stride_b, stride_c, batch_count);
    return cublas_product(handle, &request);
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
    const void *alpha, const void *a, cudaDataType a_type, int lda, long long int stride_a,
    const void *b, cudaDataType b_type, int ldb, long long int stride_b, const void *beta, void *c,
    cudaDataType c_type, int ldc, long long int stride_c, int batch_count,
    cublasComputeType_t compute_type, cublasGemmAlgo_t algorithm) {
    const struct request request =
        REQUEST(a_type, b_type, c_type, compute_type, stride_a, stride_b, stride_c, batch_count);
    (void)algorithm;
    return cublas_product(handle, &request);
}

static cublasStatus_t cublas_product_by_pointers(cublasHandle_t handle, struct request request) {
    request.by_pointers = true;
    return cublas_product(handle, &request);
}

cublasStatus_t cublasSgemmBatched(cublasHandle_t handle, cublasOperation_t transa,
                                  cublasOperation_t transb, int m, int n, int k, const float *alpha,
                                  const float *const *a, int lda, const float *const *b, int ldb,
                                  const float *beta, float *const *c, int ldc, int batch_count) {
    const struct request request =
        REQUEST(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0, 0, 0, batch_count);
    return cublas_product_by_pointers(handle, request);
}

cublasStatus_t cublasDgemmBatched(cublasHandle_t handle, cublasOperation_t transa,
                                  cublasOperation_t transb, int m, int n, int k,
                                  const double *alpha, const double *const *a, int lda,
                                  const double *const *b, int ldb, const double *beta,
                                  double *const *c, int ldc, int batch_count) {
    const struct request request =
        REQUEST(CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 0, 0, 0, batch_count);
    return cublas_product_by_pointers(handle, request);
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                   cublasOperation_t transb, int m, int n, int k, const void *alpha,
                                   const void *const *a, cudaDataType a_type, int lda,
                                   const void *const *b, cudaDataType b_type, int ldb,
                                   const void *beta, void *const *c, cudaDataType c_type, int ldc,
                                   int batch_count, cublasComputeType_t compute_type,
                                   cublasGemmAlgo_t algorithm) {
    const struct request request =
        REQUEST(a_type, b_type, c_type, compute_type, 0, 0, 0, batch_count);
    (void)algorithm;
    return cublas_product_by_pointers(handle, request);
}
