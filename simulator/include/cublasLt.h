// The calls of cuBLASLt 13 that the simulator answers: matrix products whose every detail stands in
// descriptors; cuBLAS's names, values and signatures. What <cublas_v2.h> says of results, statuses
// and threads holds here; types go together as in cublasGemmEx.
//
//     cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
//     cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4);
//     cublasLtMatrixLayoutCreate(&a_layout, CUDA_R_16BF, rows, columns, ld);
//     cublasLtMatmul(handle, operation, &alpha, a, a_layout, b, b_layout, &beta, c, c_layout,
//                    d, c_layout, NULL, workspace, workspace_bytes, stream);
//
// Descriptors are the program's own memory, or made on the host's heap; their bytes are not those
// of cuBLASLt. Attributes that are not declared here are NOT_SUPPORTED where they are set.
#ifndef TIDEMARK_SIMULATOR_CUBLASLT_H
#define TIDEMARK_SIMULATOR_CUBLASLT_H

#include <cublas_v2.h>
#include <stddef.h>
#include <stdint.h>

#ifndef TIDEMARK_SIMULATOR_CUBLASLT_TYPES
#define TIDEMARK_SIMULATOR_CUBLASLT_TYPES

typedef struct cublasLtContext *cublasLtHandle_t;

typedef struct {
    uint64_t data[8];
} cublasLtMatrixLayoutOpaque_t;
typedef cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;

typedef struct {
    uint64_t data[32];
} cublasLtMatmulDescOpaque_t;
typedef cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;

typedef struct {
    uint64_t data[8];
} cublasLtMatmulPreferenceOpaque_t;
typedef cublasLtMatmulPreferenceOpaque_t *cublasLtMatmulPreference_t;

typedef struct {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef enum {
    CUBLASLT_POINTER_MODE_HOST = 0,
    CUBLASLT_POINTER_MODE_DEVICE = 1,
} cublasLtPointerMode_t;

// Of a row-major matrix ld elements lie from one row to the next.
typedef enum {
    CUBLASLT_ORDER_COL = 0,
    CUBLASLT_ORDER_ROW = 1,
} cublasLtOrder_t;

typedef enum {
    CUBLASLT_MATRIX_LAYOUT_TYPE = 0,                 // uint32_t
    CUBLASLT_MATRIX_LAYOUT_ORDER = 1,                // int32_t
    CUBLASLT_MATRIX_LAYOUT_ROWS = 2,                 // uint64_t
    CUBLASLT_MATRIX_LAYOUT_COLS = 3,                 // uint64_t
    CUBLASLT_MATRIX_LAYOUT_LD = 4,                   // int64_t
    CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,          // int32_t
    CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6, // int64_t, elements
} cublasLtMatrixLayoutAttribute_t;

typedef enum {
    CUBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0,       // int32_t
    CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,         // int32_t: of alpha and beta
    CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,       // int32_t
    CUBLASLT_MATMUL_DESC_TRANSA = 3,             // int32_t
    CUBLASLT_MATMUL_DESC_TRANSB = 4,             // int32_t
    CUBLASLT_MATMUL_DESC_TRANSC = 5,             // int32_t: CUBLAS_OP_N and nothing else
    CUBLASLT_MATMUL_DESC_EPILOGUE = 7,           // uint32_t
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,       // void *
    CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE = 10, // int64_t, elements
    CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26,    // int32_t; -1: that of D
} cublasLtMatmulDescAttributes_t;

// What comes behind the product: a number for each row added, then a function. GELU is the
// approximation by tanh.
typedef enum {
    CUBLASLT_EPILOGUE_DEFAULT = 1,
    CUBLASLT_EPILOGUE_RELU = 2,
    CUBLASLT_EPILOGUE_BIAS = 4,
    CUBLASLT_EPILOGUE_RELU_BIAS = 6,
    CUBLASLT_EPILOGUE_GELU = 32,
    CUBLASLT_EPILOGUE_GELU_BIAS = 36,
} cublasLtEpilogue_t;

typedef enum {
    CUBLASLT_SEARCH_BEST_FIT = 0,
} cublasLtMatmulSearch_t;

// Wishes; what counts is how much workspace an answer may need.
typedef enum {
    CUBLASLT_MATMUL_PREF_SEARCH_MODE = 0,           // uint32_t
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,   // uint64_t; 0 at first
    CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3, // uint32_t
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, // uint32_t
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6, // uint32_t
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7, // uint32_t
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8, // uint32_t
} cublasLtMatmulPreferenceAttributes_t;

typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

#endif

#ifdef __cplusplus
extern "C" {
#endif

// Of the current device; a cublasHandle_t does as well. It takes no device memory.
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle);
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle);
size_t cublasLtGetVersion(void);
const char *cublasLtGetStatusName(cublasStatus_t status);
const char *cublasLtGetStatusString(cublasStatus_t status);

// --- Descriptors. Sizes are checked to the byte: INVALID_VALUE. GetAttribute with a size of 0 only
// says how many bytes there are. ---

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld);
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout);
cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size,
                                                 cudaDataType type, uint64_t rows, uint64_t columns,
                                                 int64_t ld);
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t size);
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                void *value, size_t size, size_t *size_written);

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *operation,
                                        cublasComputeType_t compute_type,
                                        cudaDataType_t scale_type);
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation);
cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t operation, size_t size,
                                               cublasComputeType_t compute_type,
                                               cudaDataType_t scale_type);
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size);
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute, void *value,
                                              size_t size, size_t *size_written);

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference);
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference);
cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                                     size_t size);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size);
cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    void *value, size_t size, size_t *size_written);

// --- The product ---

// One answer: how much workspace the product makes use of, at most what the preference allows.
// NOT_SUPPORTED where cublasLtMatmul says so.
cublasStatus_t
cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                               cublasLtMatrixLayout_t a_layout, cublasLtMatrixLayout_t b_layout,
                               cublasLtMatrixLayout_t c_layout, cublasLtMatrixLayout_t d_layout,
                               cublasLtMatmulPreference_t preference, int wanted_count,
                               cublasLtMatmulHeuristicResult_t *results, int *result_count);

// D = epilogue(alpha op(A) op(B) + beta C), in STREAM. C and D can be one matrix. ALGORITHM: what
// the heuristic answered, or NULL; it needs as much workspace as was said then (INVALID_VALUE),
// which is a multiple of 16.
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

// In memory of the program's.
static inline cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout,
                                                      cudaDataType type, uint64_t rows,
                                                      uint64_t columns, int64_t ld) {
    return cublasLtMatrixLayoutInit_internal(layout, sizeof *layout, type, rows, columns, ld);
}
static inline cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t operation,
                                                    cublasComputeType_t compute_type,
                                                    cudaDataType_t scale_type) {
    return cublasLtMatmulDescInit_internal(operation, sizeof *operation, compute_type, scale_type);
}
static inline cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t preference) {
    return cublasLtMatmulPreferenceInit_internal(preference, sizeof *preference);
}

#endif
