// The calls of cuBLAS 13 that the simulator answers, with OpenBLAS: cuBLAS's names and signatures.
// With --config=cuda the toolkit's header of this name takes its place. Programs reach it through
// //third_party:cublas.
//
// Matrices are stored by columns; ld elements lie from one column to the next. A call returns
// CUBLAS_STATUS_SUCCESS once its work is in the handle's stream (of a capture: a node of the
// graph); else, and nothing is done then:
//
//     NOT_INITIALIZED   the handle is none, or was destroyed (undefined with cuBLAS)
//     INVALID_VALUE     a negative size, a leading dimension that is too small, a null pointer, an
//                       enumerator that is none
//     NOT_SUPPORTED     types that do not go together, here or there; see cublasGemmEx
//     ALLOC_FAILED      out of device memory
//     EXECUTION_FAILED  the stream is gone or of another device than the handle's or the current
//                       one; the device is dead; the call is made by device work
//
// They do not touch the thread's last CUDA error. Memory that is not there is found when the work
// runs (cudaErrorIllegalAddress), as with any kernel.
//
// Results. Sums are accumulated in fp32 (of fp64 in fp64) and rounded once, so that integers
// small enough for their sums to be exact give exact results. With a beta of 0 what it would scale
// is not read, with an alpha of 0 what that would scale: NaN there does not matter. A handle's math
// mode changes what the work costs in virtual time, never the result. With numerics off nothing is
// computed; a result in host memory stays what it was.
//
// Workspace. Products, dots and norms write partial sums to the start of the workspace and read
// them: that of cublasSetWorkspace, so that two streams which share one race, and the checker
// (simulator/sim_race.h) tells; else the handle's own, 4 MiB (32 MiB from capability 9 on), which
// no program can get wrong: of its eight parts each stream uses one, and waits for an earlier
// stream's work when there are more streams. A capture without a workspace of the program's gets
// memory nodes.
//
// Threads: any call from any thread. A handle's settings are those of all threads that use it.
#ifndef TIDEMARK_SIMULATOR_CUBLAS_V2_H
#define TIDEMARK_SIMULATOR_CUBLAS_V2_H

#include <cublas_api.h>
#include <cuda_runtime_api.h>

// The names without a version are those of the second interface.
#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasGetVersion cublasGetVersion_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#define cublasSetStream cublasSetStream_v2
#define cublasGetStream cublasGetStream_v2
#define cublasGetPointerMode cublasGetPointerMode_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasSnrm2 cublasSnrm2_v2
#define cublasDnrm2 cublasDnrm2_v2
#define cublasSdot cublasSdot_v2
#define cublasDdot cublasDdot_v2
#define cublasSscal cublasSscal_v2
#define cublasDscal cublasDscal_v2
#define cublasSaxpy cublasSaxpy_v2
#define cublasDaxpy cublasDaxpy_v2
#define cublasSgemv cublasSgemv_v2
#define cublasDgemv cublasDgemv_v2
#define cublasSgemm cublasSgemm_v2
#define cublasDgemm cublasDgemm_v2

#ifdef __cplusplus
extern "C" {
#endif

// --- Handles. ---

// Of the current device; takes its workspace there. Unsafe in captures, as cudaMalloc.
cublasStatus_t cublasCreate(cublasHandle_t *handle);
// Waits for the device's work, as cudaFree.
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version);
cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value);
// "CUBLAS_STATUS_NOT_SUPPORTED" and a few words.
const char *cublasGetStatusName(cublasStatus_t status);
const char *cublasGetStatusString(cublasStatus_t status);

// The default stream at first. Goes back to the handle's own workspace.
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t *stream);
// WORKSPACE is a multiple of 256; of SIZE 0 the handle works without any.
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t size);
// Where alpha, beta and scalar results are: on the host at first. Those on the device are read and
// written when the work runs. A pointer to the device in host mode is undefined, as with cuBLAS:
// the host reads it at the call. A result on the host makes the call wait, and is refused in a
// capture (EXECUTION_FAILED; the capture is lost).
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t *mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t *mode);

// --- Products: C = alpha op(A) op(B) + beta C, C of m rows and n columns, k between. ---

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const float *alpha,
                           const float *a, int lda, const float *b, int ldb, const float *beta,
                           float *c, int ldc);
cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const double *alpha,
                           const double *a, int lda, const double *b, int ldb, const double *beta,
                           double *c, int ldc);
// A, B and C: fp32; A and B fp16 or both bf16, C of the same type or fp32; fp64 with
// CUBLAS_COMPUTE_64F. alpha and beta: fp32, of fp64 fp64. The rest of cuBLAS's list (fp16
// accumulation, integers, complex numbers) is NOT_SUPPORTED here.
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType a_type, int lda, const void *b,
                            cudaDataType b_type, int ldb, const void *beta, void *c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute_type,
                            cublasGemmAlgo_t algorithm);

// A batch: matrices of one shape, strides (elements) apart. Stride 0: the same for all; not of C.
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const float *alpha, const float *a, int lda,
                                         long long int stride_a, const float *b, int ldb,
                                         long long int stride_b, const float *beta, float *c,
                                         int ldc, long long int stride_c, int batch_count);
cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const double *alpha, const double *a, int lda,
                                         long long int stride_a, const double *b, int ldb,
                                         long long int stride_b, const double *beta, double *c,
                                         int ldc, long long int stride_c, int batch_count);
cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
    const void *alpha, const void *a, cudaDataType a_type, int lda, long long int stride_a,
    const void *b, cudaDataType b_type, int ldb, long long int stride_b, const void *beta, void *c,
    cudaDataType c_type, int ldc, long long int stride_c, int batch_count,
    cublasComputeType_t compute_type, cublasGemmAlgo_t algorithm);

// A batch of matrices anywhere: the arrays of pointers are in device memory and read when the work
// runs. The race checker knows of the arrays, not of what they point to.
cublasStatus_t cublasSgemmBatched(cublasHandle_t handle, cublasOperation_t transa,
                                  cublasOperation_t transb, int m, int n, int k, const float *alpha,
                                  const float *const *a_array, int lda, const float *const *b_array,
                                  int ldb, const float *beta, float *const *c_array, int ldc,
                                  int batch_count);
cublasStatus_t cublasDgemmBatched(cublasHandle_t handle, cublasOperation_t transa,
                                  cublasOperation_t transb, int m, int n, int k,
                                  const double *alpha, const double *const *a_array, int lda,
                                  const double *const *b_array, int ldb, const double *beta,
                                  double *const *c_array, int ldc, int batch_count);
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                   cublasOperation_t transb, int m, int n, int k, const void *alpha,
                                   const void *const *a_array, cudaDataType a_type, int lda,
                                   const void *const *b_array, cudaDataType b_type, int ldb,
                                   const void *beta, void *const *c_array, cudaDataType c_type,
                                   int ldc, int batch_count, cublasComputeType_t compute_type,
                                   cublasGemmAlgo_t algorithm);

// --- Vectors: inc elements from one to the next; with a negative one from the end. ---

// y = alpha op(A) x + beta y; A has m rows and n columns.
cublasStatus_t cublasSgemv(cublasHandle_t handle, cublasOperation_t trans, int m, int n,
                           const float *alpha, const float *a, int lda, const float *x, int incx,
                           const float *beta, float *y, int incy);
cublasStatus_t cublasDgemv(cublasHandle_t handle, cublasOperation_t trans, int m, int n,
                           const double *alpha, const double *a, int lda, const double *x, int incx,
                           const double *beta, double *y, int incy);
// y += alpha x. The Ex forms: x and y of one type, fp32, fp16, bf16 (alpha and work: fp32) or fp64.
cublasStatus_t cublasSaxpy(cublasHandle_t handle, int n, const float *alpha, const float *x,
                           int incx, float *y, int incy);
cublasStatus_t cublasDaxpy(cublasHandle_t handle, int n, const double *alpha, const double *x,
                           int incx, double *y, int incy);
cublasStatus_t cublasAxpyEx(cublasHandle_t handle, int n, const void *alpha,
                            cudaDataType alpha_type, const void *x, cudaDataType x_type, int incx,
                            void *y, cudaDataType y_type, int incy, cudaDataType execution_type);
// x = alpha x; nothing if incx is not positive.
cublasStatus_t cublasSscal(cublasHandle_t handle, int n, const float *alpha, float *x, int incx);
cublasStatus_t cublasDscal(cublasHandle_t handle, int n, const double *alpha, double *x, int incx);
cublasStatus_t cublasScalEx(cublasHandle_t handle, int n, const void *alpha,
                            cudaDataType alpha_type, void *x, cudaDataType x_type, int incx,
                            cudaDataType execution_type);
// The sum of x times y; the result has their type.
cublasStatus_t cublasSdot(cublasHandle_t handle, int n, const float *x, int incx, const float *y,
                          int incy, float *result);
cublasStatus_t cublasDdot(cublasHandle_t handle, int n, const double *x, int incx, const double *y,
                          int incy, double *result);
cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void *x, cudaDataType x_type,
                           int incx, const void *y, cudaDataType y_type, int incy, void *result,
                           cudaDataType result_type, cudaDataType execution_type);
// The square root of the sum of squares; 0 if incx is not positive.
cublasStatus_t cublasSnrm2(cublasHandle_t handle, int n, const float *x, int incx, float *result);
cublasStatus_t cublasDnrm2(cublasHandle_t handle, int n, const double *x, int incx, double *result);
cublasStatus_t cublasNrm2Ex(cublasHandle_t handle, int n, const void *x, cudaDataType x_type,
                            int incx, void *result, cudaDataType result_type,
                            cudaDataType execution_type);

#ifdef __cplusplus
}
#endif

#endif
