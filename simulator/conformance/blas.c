// cuBLAS: handles, what is refused, products, vectors, workspaces, captures.
#include "simulator/conformance/cases.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <string.h>

#define N 4

static void answer_status(struct conformance *c, const char *label, cublasStatus_t status) {
    answer_number(c, label, (int)status);
}

// A handle for a case; NULL, with a word in the answer, if there is none.
static cublasHandle_t handle_make(struct conformance *c) {
    cublasHandle_t handle = NULL;
    const cublasStatus_t status = cublasCreate(&handle);
    if (status != CUBLAS_STATUS_SUCCESS)
        answer_status(c, "cublasCreate", status);
    return handle;
}

// COUNT floats on the device, each the number of its place from 1 on.
static float *floats_make(struct conformance *c, int count) {
    float host[64];
    float *device = conformance_device_memory(c, (size_t)count * sizeof *device);
    for (int i = 0; i < count; ++i)
        host[i] = (float)(i + 1);
    if (device != NULL)
        (void)cudaMemcpy(device, host, (size_t)count * sizeof *host, cudaMemcpyHostToDevice);
    (void)cudaDeviceSynchronize(); // the copy may still be on its way when it returns
    return device;
}

static void answer_sum(struct conformance *c, const char *label, const float *device, int count) {
    float host[64], sum = 0;
    const cudaError_t error =
        cudaMemcpy(host, device, (size_t)count * sizeof *host, cudaMemcpyDeviceToHost);
    for (int i = 0; i < count; ++i)
        sum += host[i];
    answer_number(c, label, error == cudaSuccess ? (int64_t)sum : -1);
}

static void handle_lifecycle(struct conformance *c) {
    cublasHandle_t handle = handle_make(c);
    int version = 0, major = 0;
    answer_status(c, "null", cublasCreate(NULL));
    answer_status(c, "version", cublasGetVersion(handle, &version));
    answer_status(c, "property", cublasGetProperty(MAJOR_VERSION, &major));
    answer_yes(c, "same", version / 10000 == major);
    answer_word(c, "name", cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED));
    answer_yes(c, "text", cublasGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED)[0] != '\0');
    answer_status(c, "destroy", cublasDestroy(handle));
    answer_status(c, "none", cublasSetStream(NULL, NULL));
}

static void settings(struct conformance *c) {
    cublasHandle_t handle = handle_make(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking), got;
    cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_DEVICE;
    cublasMath_t math = CUBLAS_PEDANTIC_MATH;
    cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_ALLOWED;
    (void)cublasGetStream(handle, &got);
    answer_yes(c, "legacy", got == NULL);
    (void)cublasGetPointerMode(handle, &pointers);
    (void)cublasGetMathMode(handle, &math);
    (void)cublasGetAtomicsMode(handle, &atomics);
    answer_number(c, "modes", (int)pointers + (int)math + (int)atomics);
    answer_status(c, "stream", cublasSetStream(handle, stream));
    (void)cublasGetStream(handle, &got);
    answer_yes(c, "set", got == stream);
    answer_status(c, "pointers", cublasSetPointerMode(handle, (cublasPointerMode_t)7));
    answer_status(c, "math", cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH));
    answer_status(c, "atomics", cublasSetAtomicsMode(handle, CUBLAS_ATOMICS_NOT_ALLOWED));
    (void)cublasDestroy(handle);
}

static void workspace_alignment(struct conformance *c) {
    cublasHandle_t handle = handle_make(c);
    char *workspace = conformance_device_memory(c, 65536);
    answer_status(c, "good", cublasSetWorkspace(handle, workspace, 32768));
    answer_status(c, "odd", cublasSetWorkspace(handle, workspace + 16, 32768));
    answer_status(c, "none", cublasSetWorkspace(handle, NULL, 0));
    (void)cublasDestroy(handle);
}

static void gemm_refused(struct conformance *c) {
    cublasHandle_t handle = handle_make(c);
    float *a = floats_make(c, N * N);
    const float one = 1;
    const cublasOperation_t no = CUBLAS_OP_N;
    answer_status(c, "negative",
                  cublasSgemm(handle, no, no, -1, N, N, &one, a, N, a, N, &one, a, N));
    answer_status(c, "lda",
                  cublasSgemm(handle, no, no, N, N, N, &one, a, N - 1, a, N, &one, a, N));
    answer_status(c, "ldc",
                  cublasSgemm(handle, no, no, N, N, N, &one, a, N, a, N, &one, a, N - 1));
    answer_status(c, "alpha", cublasSgemm(handle, no, no, N, N, N, NULL, a, N, a, N, &one, a, N));
    answer_status(c, "operation", cublasSgemm(handle, (cublasOperation_t)9, no, N, N, N, &one, a,
                                              N, a, N, &one, a, N));
    answer_status(c, "types", cublasGemmEx(handle, no, no, N, N, N, &one, a, CUDA_R_32F, N, a,
                                           CUDA_R_16F, N, &one, a, CUDA_R_32F, N,
                                           CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    answer_status(c, "empty", cublasSgemm(handle, no, no, 0, N, N, &one, a, N, a, N, &one, a, N));
    answer_code(c, "last", cudaGetLastError());
    (void)cublasDestroy(handle);
}

static void gemm_beta_zero(struct conformance *c) {
    cublasHandle_t handle = handle_make(c);
    float *a = floats_make(c, N * N), *b = floats_make(c, N * N);
    float *d = conformance_device_memory(c, N * N * sizeof *d);
    const float one = 1, zero = 0;
    MUST(c, cudaMemset(d, 0xff, N * N * sizeof *d)); // NaN
    answer_status(c, "gemm", cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, N, N, N, &one, a, N, b,
                                         N, &zero, d, N));
    MUST(c, cudaDeviceSynchronize());
    answer_sum(c, "sum", d, N * N);
    (void)cublasDestroy(handle);
}

// Twice the same batch of two products, by strides and by pointers, in every form.
static void gemm_batches(struct conformance *c) {
    cublasHandle_t handle = handle_make(c);
    float *a = floats_make(c, 8), *d = floats_make(c, 16);
    double *twice = conformance_device_memory(c, 16 * sizeof *twice);
    void *pointers = conformance_device_memory(c, 4 * sizeof(void *));
    const float one = 1, zero = 0;
    const double one_twice = 1, zero_twice = 0;
    const void *const places[] = {a, a + 4, d, d + 4};
    const cublasOperation_t no = CUBLAS_OP_N;
    MUST(c, cudaMemcpy(pointers, places, sizeof places, cudaMemcpyHostToDevice));
    MUST(c, cudaMemset(twice, 0, 16 * sizeof *twice));
    answer_status(c, "S", cublasSgemmStridedBatched(handle, no, no, 2, 2, 2, &one, a, 2, 4, a, 2,
                                                    4, &zero, d, 2, 4, 2));
    answer_sum(c, "sum", d, 8);
    answer_status(c, "Ex", cublasGemmStridedBatchedEx(
                               handle, no, no, 2, 2, 2, &one, a, CUDA_R_32F, 2, 4, a, CUDA_R_32F,
                               2, 4, &one, d, CUDA_R_32F, 2, 4, 2, CUBLAS_COMPUTE_32F,
                               CUBLAS_GEMM_DEFAULT));
    answer_sum(c, "sum", d, 8);
    answer_status(c, "pointers",
                  cublasSgemmBatched(handle, no, no, 2, 2, 2, &one,
                                     (const float *const *)pointers, 2,
                                     (const float *const *)pointers, 2, &zero,
                                     (float *const *)pointers + 2, 2, 2));
    answer_sum(c, "sum", d, 8);
    answer_status(c, "pointers-ex",
                  cublasGemmBatchedEx(handle, no, no, 2, 2, 2, &one,
                                      (const void *const *)pointers, CUDA_R_32F, 2,
                                      (const void *const *)pointers, CUDA_R_32F, 2, &one,
                                      (void *const *)pointers + 2, CUDA_R_32F, 2, 2,
                                      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    answer_sum(c, "sum", d, 8);
    answer_status(c, "D", cublasDgemm(handle, no, no, 2, 2, 2, &one_twice, twice, 2, twice, 2,
                                      &zero_twice, twice + 4, 2));
    answer_status(c, "D-strided",
                  cublasDgemmStridedBatched(handle, no, no, 1, 1, 1, &one_twice, twice, 1, 1,
                                            twice, 1, 1, &zero_twice, twice + 8, 1, 1, 2));
    answer_status(c, "D-pointers",
                  cublasDgemmBatched(handle, no, no, 1, 1, 0, &one_twice,
                                     (const double *const *)pointers, 1,
                                     (const double *const *)pointers, 1, &one_twice,
                                     (double *const *)pointers + 2, 1, 1));
    answer_code(c, "end", cudaDeviceSynchronize());
    (void)cublasDestroy(handle);
}

static void vectors(struct conformance *c) {
    cublasHandle_t handle = handle_make(c);
    float *x = floats_make(c, 4), *y = floats_make(c, 4), result = 0, norm = 0;
    double *twice = conformance_device_memory(c, 8 * sizeof *twice), result_twice = -1;
    const float two = 2, zero = 0;
    const double two_twice = 2, zero_twice = 0;
    MUST(c, cudaMemset(twice, 0, 8 * sizeof *twice));
    (void)cublasSaxpy(handle, 4, &two, x, 1, y, -1);
    answer_sum(c, "axpy", y, 1); // 1 + 2 times 4
    (void)cublasSscal(handle, 2, &two, x, 2);
    answer_sum(c, "scal", x, 4);
    answer_status(c, "dot", cublasSdot(handle, 4, x, 1, x, 1, &result));
    answer_number(c, "is", (int64_t)result);
    answer_status(c, "nrm2", cublasSnrm2(handle, 4, x, 0, &norm));
    answer_number(c, "is", (int64_t)norm);
    answer_status(c, "Ex", cublasAxpyEx(handle, 4, &two, CUDA_R_32F, x, CUDA_R_32F, 1, y,
                                        CUDA_R_32F, 1, CUDA_R_32F));
    answer_status(c, "Ex", cublasScalEx(handle, 4, &zero, CUDA_R_32F, x, CUDA_R_32F, 1,
                                        CUDA_R_32F));
    answer_status(c, "Ex", cublasDotEx(handle, 4, x, CUDA_R_32F, 1, y, CUDA_R_32F, 1, &result,
                                       CUDA_R_32F, CUDA_R_32F));
    answer_status(c, "Ex", cublasNrm2Ex(handle, 4, x, CUDA_R_32F, 1, &norm, CUDA_R_32F,
                                        CUDA_R_32F));
    answer_number(c, "are", (int64_t)(result + norm));
    (void)cublasDaxpy(handle, 4, &two_twice, twice, 1, twice + 4, 1);
    (void)cublasDscal(handle, 4, &two_twice, twice, 1);
    (void)cublasDdot(handle, 4, twice, 1, twice, 1, &result_twice);
    (void)cublasDnrm2(handle, 4, twice, 1, &result_twice);
    answer_number(c, "twice", (int64_t)result_twice);
    answer_status(c, "gemv", cublasSgemv(handle, CUBLAS_OP_T, 2, 2, &two, y, 2, y, 1, &zero, x, 1));
    answer_status(c, "gemv", cublasDgemv(handle, CUBLAS_OP_N, 2, 2, &two_twice, twice, 2, twice, 1,
                                         &zero_twice, twice + 4, 1));
    answer_status(c, "increment",
                  cublasSgemv(handle, CUBLAS_OP_N, 2, 2, &two, y, 2, y, 0, &zero, x, 1));
    answer_code(c, "end", cudaDeviceSynchronize());
    (void)cublasDestroy(handle);
}

static void host_result_waits(struct conformance *c) {
    cublasHandle_t handle = handle_make(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    float *x = floats_make(c, 4), *on_device = floats_make(c, 1), result;
    (void)cublasSetStream(handle, stream);
    (void)cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
    conformance_gate(c, stream);
    (void)cublasSdot(handle, 4, x, 1, x, 1, on_device);
    cudaEvent_t first = conformance_mark(c, stream);
    answer_event(c, "device", first);
    (void)cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST);
    (void)cublasSdot(handle, 4, x, 1, x, 1, &result);
    answer_event(c, "host", first);
    answer_sum(c, "sum", on_device, 1);
    answer_number(c, "result", (int64_t)result);
    conformance_open(c);
    (void)cublasDestroy(handle);
}

static void captured(struct conformance *c) {
    cublasHandle_t handle = handle_make(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    float *a = floats_make(c, N * N), *d = floats_make(c, N * N), one = 1;
    void *workspace = conformance_device_memory(c, 65536);
    cudaGraph_t graph = NULL;
    size_t count = 0;
    (void)cublasSetStream(handle, stream);
    (void)cublasSetWorkspace(handle, workspace, 65536);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    answer_status(c, "gemm", cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, a, N, a,
                                         N, &one, d, N));
    one = 5; // read at the call
    MUST(c, cudaStreamEndCapture(stream, &graph));
    conformance_keep_graph(c, graph);
    MUST(c, cudaGraphGetNodes(graph, NULL, &count));
    answer_yes(c, "nodes", count >= 1);
    answer_sum(c, "before", d, N * N);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_sum(c, "after", d, N * N);
    (void)cublasDestroy(handle);
}

static void captured_host_result(struct conformance *c) {
    cublasHandle_t handle = handle_make(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    float *x = floats_make(c, 4), result = 7;
    cudaGraph_t graph = NULL;
    (void)cublasSetStream(handle, stream);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    answer_yes(c, "refused", cublasSdot(handle, 4, x, 1, x, 1, &result) != CUBLAS_STATUS_SUCCESS);
    answer_code(c, "end", cudaStreamEndCapture(stream, &graph));
    answer_number(c, "result", (int64_t)result);
    (void)cublasDestroy(handle);
}

static void light(struct conformance *c) {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t layout;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t result;
    float *a = floats_make(c, 4), *d = floats_make(c, 4), *bias = floats_make(c, 2);
    const float one = 1, zero = 0;
    const uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const uint64_t most = 0;
    uint32_t got = 0;
    int64_t ld = 0;
    size_t size = 0;
    int count = 0;
    answer_status(c, "create", cublasLtCreate(&handle));
    answer_yes(c, "version", cublasLtGetVersion() >= 130000);
    answer_word(c, "name", cublasLtGetStatusName(CUBLAS_STATUS_SUCCESS));
    answer_yes(c, "text", cublasLtGetStatusString(CUBLAS_STATUS_SUCCESS)[0] != '\0');
    (void)cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    answer_status(c, "set", cublasLtMatmulDescSetAttribute(
                                operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4));
    answer_status(c, "size", cublasLtMatmulDescSetAttribute(
                                 operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 3));
    (void)cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                         sizeof(void *));
    answer_status(c, "get", cublasLtMatmulDescGetAttribute(
                                operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &got, 4, &size));
    answer_number(c, "is", got + (int64_t)size);
    (void)cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 2, 2, 2);
    (void)cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_LD, &(int64_t){2}, 8);
    (void)cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_LD, &ld, 8, &size);
    answer_number(c, "ld", ld);
    (void)cublasLtMatmulPreferenceCreate(&preference);
    (void)cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, 8);
    (void)cublasLtMatmulPreferenceGetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, NULL, 0, &size);
    answer_number(c, "bytes", (int64_t)size);
    answer_status(c, "heuristic",
                  cublasLtMatmulAlgoGetHeuristic(handle, operation, layout, layout, layout, layout,
                                                 preference, 1, &result, &count));
    answer_number(c, "count", count);
    answer_status(c, "matmul",
                  cublasLtMatmul(handle, operation, &one, a, layout, a, layout, &zero, d, layout,
                                 d, layout, &result.algo, NULL, 0, NULL));
    MUST(c, cudaDeviceSynchronize());
    answer_sum(c, "sum", d, 4);
    (void)cublasLtMatmulPreferenceDestroy(preference);
    (void)cublasLtMatrixLayoutDestroy(layout);
    (void)cublasLtMatmulDescDestroy(operation);
    answer_status(c, "destroy", cublasLtDestroy(handle));
}

static void light_in_place(struct conformance *c) {
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatrixLayoutOpaque_t layout;
    cublasLtMatmulPreferenceOpaque_t preference;
    answer_status(c, "operation",
                  cublasLtMatmulDescInit_internal(&operation, sizeof operation,
                                                  CUBLAS_COMPUTE_32F, CUDA_R_32F));
    answer_status(c, "small", cublasLtMatrixLayoutInit_internal(&layout, 8, CUDA_R_32F, 2, 2, 2));
    answer_status(c, "layout", cublasLtMatrixLayoutInit_internal(&layout, sizeof layout,
                                                                 CUDA_R_32F, 2, 2, 2));
    answer_status(c, "preference",
                  cublasLtMatmulPreferenceInit_internal(&preference, sizeof preference));
}

const struct conformance_case conformance__cases_blas[] = {
    CASE("blas-handle", "9", VERIFIED, handle_lifecycle,
        "a handle is made, says its version and is destroyed; none is 1",
        "null=7 version=0 property=0 same=yes name=CUBLAS_STATUS_NOT_SUPPORTED text=yes destroy=0 none=1", NULL),
    CASE("blas-settings", "9", VERIFIED, settings,
        "the default stream, host pointers, default mathematics and no atomics at first; a mode that is none: 7",
        "legacy=yes modes=0 stream=0 set=yes pointers=7 math=0 atomics=0", NULL),
    CASE("blas-workspace-alignment", "9", VERIFIED, workspace_alignment,
        "a workspace lies at a multiple of 256: else 7",
        "good=0 odd=7 none=0", NULL),
    CASE("blas-gemm-refused", "9", VERIFIED, gemm_refused,
        "negative sizes, small leading dimensions, no alpha, operations that are none: 7; types that do not go together: 15; the last error stays",
        "negative=7 lda=7 ldc=7 alpha=7 operation=7 types=15 empty=0 last=0", NULL),
    CASE("blas-gemm-beta-zero", "9", VERIFIED, gemm_beta_zero,
        "with a beta of 0 C is not read",
        "gemm=0 sum=5904", NULL),
    CASE("blas-gemm-batches", "9", VERIFIED, gemm_batches,
        "batches by strides and by pointers",
        "S=0 sum=396 Ex=0 sum=792 pointers=0 sum=396 pointers-ex=0 sum=792 D=0 D-strided=0 D-pointers=0 end=0", NULL),
    CASE("blas-vectors", "9", VERIFIED, vectors,
        "axpy, scal, dot, nrm2, gemv; a negative increment goes from the end, a norm without one is 0",
        "axpy=9 scal=14 dot=0 is=60 nrm2=0 is=0 Ex=0 Ex=0 Ex=0 Ex=0 are=0 twice=0 gemv=0 gemv=0 increment=7 end=0", NULL),
    CASE("blas-host-result-waits", "9", VERIFIED, host_result_waits,
        "a result on the host waits for the stream, one on the device does not",
        "device=pending host=done sum=30 result=30", NULL),
    CASE("blas-captured", "9", VERIFIED, captured,
        "products become nodes, host scalars as they were at the call",
        "gemm=0 nodes=yes before=136 after=10024", NULL),
    CASE("blas-captured-host-result", "9", UNVERIFIED, captured_host_result,
        "a result on the host is refused in a capture, which is lost",
        "refused=yes end=901 result=7", NULL),
    CASE("blas-light", "9", VERIFIED, light,
        "cublasLt: descriptors, an answer of the heuristic without workspace, a product with a bias",
        "create=0 version=yes name=CUBLAS_STATUS_SUCCESS text=yes set=0 size=7 get=0 is=8 ld=2 bytes=8 heuristic=0 count=1 matmul=0 sum=60 destroy=0", NULL),
    CASE("blas-light-in-place", "9", VERIFIED, light_in_place,
        "descriptors in memory of the program's: too small is 3",
        "operation=0 small=3 layout=0 preference=0", NULL),
    {0},
};
