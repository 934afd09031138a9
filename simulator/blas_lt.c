// cublasLt: its product, as descriptors say it.
#include "simulator/blas_lt_attribute.h"
#include "simulator/blas_product.h"

#include <string.h>

#define WORKSPACE_ALIGNMENT 16

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    cublasHandle_t made;
    const cublasStatus_t status = sim__blas_create(handle != NULL ? &made : NULL, true);
    if (status == CUBLAS_STATUS_SUCCESS)
        *handle = (cublasLtHandle_t)(void *)made;
    return status;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    void *pool;
    return sim__blas_destroy((cublasHandle_t)(void *)handle, true, &pool);
}

size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }
const char *cublasLtGetStatusName(cublasStatus_t status) { return cublasGetStatusName(status); }
const char *cublasLtGetStatusString(cublasStatus_t status) { return cublasGetStatusString(status); }

static bool epilogue_read(uint32_t epilogue, enum sim__blas_activation *activation) {
    const uint32_t function = epilogue & ~(uint32_t)CUBLASLT_EPILOGUE_BIAS;
    *activation = function == CUBLASLT_EPILOGUE_RELU   ? SIM__BLAS_RELU
                  : function == CUBLASLT_EPILOGUE_GELU ? SIM__BLAS_GELU
                                                       : SIM__BLAS_NONE;
    return epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == CUBLASLT_EPILOGUE_BIAS ||
           *activation != SIM__BLAS_NONE;
}

// A row-major matrix is the transposed one by columns.
static void layout_read(const struct sim__lt_layout *layout, const void *pointer, int64_t sizes[2],
                        struct sim__blas_matrix *matrix, bool *transposed) {
    *transposed = layout->order == CUBLASLT_ORDER_ROW;
    sizes[0] = (int64_t)layout->rows;
    sizes[1] = (int64_t)layout->columns;
    *matrix = (struct sim__blas_matrix){
        .pointer = pointer,
        .type = (cudaDataType)layout->type,
        .ld = layout->ld,
        .stride = layout->stride,
    };
}

// A, B, C, D.
struct layouts {
    const struct sim__lt_layout *layout[4];
    const void *pointer[4];
};

static cublasStatus_t shapes_check(const struct layouts *layouts, bool transa, bool transb,
                                   int64_t sizes[4][2]) {
    const int64_t m = sizes[0][transa], k = sizes[0][!transa];
    const int64_t n = sizes[1][!transb], k_of_b = sizes[1][transb];
    for (int i = 0; i < 4; ++i)
        if (sizes[i][0] < 0 || sizes[i][1] < 0 ||
            layouts->layout[i]->count != layouts->layout[0]->count)
            return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE, "batches of different lengths");
    if (k != k_of_b || sizes[3][0] != m || sizes[3][1] != n || sizes[2][0] != m || sizes[2][1] != n)
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE,
                                "%lld x %lld times %lld x %lld into %lld x %lld", (long long)m,
                                (long long)k, (long long)k_of_b, (long long)n,
                                (long long)sizes[3][0], (long long)sizes[3][1]);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t operation_check(const struct sim__lt_operation *operation,
                                      enum sim__blas_activation *activation) {
    if ((operation->transa | operation->transb) & ~(CUBLAS_OP_T | CUBLAS_OP_C) ||
        operation->transa > CUBLAS_OP_C || operation->transb > CUBLAS_OP_C ||
        (operation->pointer_mode | 1) != 1)
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE,
                                "an operation or pointer mode that is none");
    if (operation->transc != CUBLAS_OP_N || !epilogue_read(operation->epilogue, activation))
        return sim__blas_refuse(CUBLAS_STATUS_NOT_SUPPORTED, "transposition of C %d, epilogue %u",
                                operation->transc, operation->epilogue);
    return CUBLAS_STATUS_SUCCESS;
}

static bool bias_type_fits(cudaDataType bias, cudaDataType d) {
    return bias == d || (bias == CUDA_R_32F && sim__blas_is_16_bit(d)) ||
           (sim__blas_is_16_bit(bias) && d == CUDA_R_32F);
}

static cublasStatus_t types_check(const struct sim__lt_operation *operation,
                                  const struct sim__blas_product *product) {
    const cudaDataType scale = product->is_double ? CUDA_R_64F : CUDA_R_32F;
    if (product->c.type != product->d.type || operation->scale_type != (int32_t)scale ||
        !sim__blas_types_fit(product->a.type, product->b.type, product->d.type,
                             (cublasComputeType_t)operation->compute_type) ||
        !bias_type_fits(product->bias_type, product->d.type))
        return sim__blas_refuse(
            CUBLAS_STATUS_NOT_SUPPORTED,
            "A, B, C, D of types %d, %d, %d, %d with computation %d, scale %d, bias %d",
            (int)product->a.type, (int)product->b.type, (int)product->c.type, (int)product->d.type,
            operation->compute_type, operation->scale_type, (int)product->bias_type);
    return CUBLAS_STATUS_SUCCESS;
}

// What descriptors come to. By rows: D' = op(B)' op(A)', if C and D are both; then a bias for each
// row of D is one for each column, which is not built.
static cublasStatus_t product_read(const struct sim__lt_operation *operation,
                                   const struct layouts *layouts,
                                   struct sim__blas_product *product) {
    int64_t sizes[4][2];
    bool by_rows[4];
    *product = (struct sim__blas_product){.count = layouts->layout[3]->count};
    struct sim__blas_matrix *const matrices[] = {&product->a, &product->b, &product->c,
                                                 &product->d};
    cublasStatus_t status = operation_check(operation, &product->activation);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    for (int i = 0; i < 4; ++i)
        layout_read(layouts->layout[i], layouts->pointer[i], sizes[i], matrices[i], &by_rows[i]);
    const bool transa = operation->transa != CUBLAS_OP_N, transb = operation->transb != CUBLAS_OP_N;
    status = shapes_check(layouts, transa, transb, sizes);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    const bool has_bias = (operation->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
    if (by_rows[2] != by_rows[3] || (by_rows[3] && has_bias))
        return sim__blas_refuse(CUBLAS_STATUS_NOT_SUPPORTED,
                                "C and D of different orders, or a bias with D by rows");
    product->m = sizes[3][0];
    product->n = sizes[3][1];
    product->k = sizes[0][!transa];
    product->transposes_a = transa != by_rows[0];
    product->transposes_b = transb != by_rows[1];
    if (by_rows[3]) {
        const struct sim__blas_matrix a = product->a;
        const bool transposes_a = product->transposes_a;
        product->m = sizes[3][1];
        product->n = sizes[3][0];
        product->a = product->b;
        product->b = a;
        product->transposes_a = !product->transposes_b;
        product->transposes_b = !transposes_a;
    }
    product->is_double = product->d.type == CUDA_R_64F;
    product->bias_type =
        operation->bias_type < 0 ? product->d.type : (cudaDataType)operation->bias_type;
    if (has_bias) {
        product->bias = operation->bias;
        product->bias_stride = operation->bias_stride;
        if (operation->bias == NULL)
            return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE, "there is no bias");
    }
    return types_check(operation, product);
}

static bool are_there(cublasLtMatmulDesc_t operation, const struct layouts *layouts) {
    for (int i = 0; i < 4; ++i)
        if (layouts->layout[i] == NULL)
            return false;
    return operation != NULL;
}

static struct layouts layouts_of(cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                 cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
    return (struct layouts){
        .layout = {sim__lt_layout(a), sim__lt_layout(b), sim__lt_layout(c), sim__lt_layout(d)}};
}

// --- The heuristic ---

static cublasStatus_t heuristic_locked(cublasLtMatmulDesc_t operation,
                                       const struct layouts *layouts,
                                       cublasLtMatmulPreference_t preference, int wanted_count,
                                       cublasLtMatmulHeuristicResult_t *results, int *count) {
    struct sim__blas_product product;
    if (wanted_count <= 0 || results == NULL || count == NULL || preference == NULL ||
        !are_there(operation, layouts))
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE,
                                "a descriptor or a place for the answer is missing");
    *count = 0;
    struct sim__lt_operation described = *sim__lt_operation(operation);
    if (described.bias == NULL)
        described.bias = &described; // it may come later
    const cublasStatus_t status = product_read(&described, layouts, &product);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    results[0] = (cublasLtMatmulHeuristicResult_t){
        .state = CUBLAS_STATUS_SUCCESS,
        .wavesCount = 1,
        .workspaceSize = sim__blas_product_partial_bytes(
            &product, sim__lt_preference(preference)->workspace_bytes),
    };
    results[0].algo.data[0] = results[0].workspaceSize;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                               cublasLtMatrixLayout_t a_layout, cublasLtMatrixLayout_t b_layout,
                               cublasLtMatrixLayout_t c_layout, cublasLtMatrixLayout_t d_layout,
                               cublasLtMatmulPreference_t preference, int wanted_count,
                               cublasLtMatmulHeuristicResult_t *results, int *result_count) {
    struct sim__blas_handle *blas;
    cublasStatus_t status =
        sim__blas_begin_light(SIM__CALL_OTHER, (cublasHandle_t)(void *)handle, &blas);
    if (status == CUBLAS_STATUS_SUCCESS) {
        const struct layouts layouts = layouts_of(a_layout, b_layout, c_layout, d_layout);
        status =
            heuristic_locked(operation, &layouts, preference, wanted_count, results, result_count);
    }
    return sim__blas_end(SIM__CALL_OTHER, status);
}

// --- The product ---

static cublasStatus_t matmul_locked(struct sim__blas_handle *blas, cublasLtMatmulDesc_t operation,
                                    const struct layouts *layouts, const void *alpha,
                                    const void *beta, const cublasLtMatmulAlgo_t *algorithm,
                                    struct sim__blas_workspace workspace, cudaStream_t stream) {
    struct sim__blas_product product;
    if (!are_there(operation, layouts) || alpha == NULL || beta == NULL)
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE,
                                "a descriptor, alpha or beta is missing");
    const struct sim__lt_operation *described = sim__lt_operation(operation);
    const cublasStatus_t status = product_read(described, layouts, &product);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    const size_t needed = algorithm != NULL ? (size_t)algorithm->data[0] : 0;
    if (workspace.bytes < needed || (workspace.pointer == NULL && workspace.bytes > 0) ||
        (uintptr_t)workspace.pointer % WORKSPACE_ALIGNMENT != 0)
        return sim__blas_refuse(CUBLAS_STATUS_INVALID_VALUE,
                                "a workspace of %zu bytes at %p: the algorithm needs %zu, at a "
                                "multiple of %d",
                                workspace.bytes, workspace.pointer, needed, WORKSPACE_ALIGNMENT);
    if (algorithm != NULL)
        workspace.bytes = needed;
    const bool on_device = described->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
    product.alpha = sim__blas_scalar_take(on_device, product.is_double, alpha);
    product.beta = sim__blas_scalar_take(on_device, product.is_double, beta);
    return sim__blas_product_submit(blas, stream, &product, &workspace,
                                    described->compute_type == CUBLAS_COMPUTE_32F_FAST_TF32);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
    struct sim__blas_handle *blas;
    cublasStatus_t status =
        sim__blas_begin_light(SIM_CALL_BLAS_LT_MATMUL, (cublasHandle_t)(void *)handle, &blas);
    if (status == CUBLAS_STATUS_SUCCESS) {
        struct layouts layouts = layouts_of(a_layout, b_layout, c_layout, d_layout);
        const void *const pointers[] = {a, b, c, d};
        memcpy(layouts.pointer, pointers, sizeof pointers);
        status = matmul_locked(blas, operation, &layouts, alpha, beta, algorithm,
                               (struct sim__blas_workspace){workspace, workspace_bytes}, stream);
    }
    return sim__blas_end(SIM_CALL_BLAS_LT_MATMUL, status);
}
