// cuBLAS in the simulator's world: workspaces whose bytes are used, captures and replays, the race
// checker, schedules, costs, planned faults, device errors, transcripts. What products come to is
// in blas_gemm_test.c.
#include "base/check.h"
#include "base/file.h"
#include "base/size.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N 16
#define MATRIX_BYTES (N * N * sizeof(float))
#define WORKSPACE_BYTES ((size_t)64 << 10)

#define BLAS(call) BASE_CHECK_EQ((call), CUBLAS_STATUS_SUCCESS)
#define CUDA(call) BASE_CHECK_EQ((call), cudaSuccess)

static const float one = 1, zero = 0;

static void machine_start(const struct sim_options *options) {
    BASE_CHECK_EQ(sim_configure(options), BASE_OK);
    (void)cudaGetLastError();
}

static void machine_start_plain(void) { machine_start(&(struct sim_options){0}); }

static cublasHandle_t handle_make(void) {
    cublasHandle_t handle;
    BLAS(cublasCreate(&handle));
    return handle;
}

static cudaStream_t stream_make(void) {
    cudaStream_t stream;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static float *matrix_make(float value) {
    float host[N * N], *device;
    for (int i = 0; i < N * N; ++i)
        host[i] = value;
    CUDA(cudaMalloc((void **)&device, MATRIX_BYTES));
    CUDA(cudaMemcpy(device, host, MATRIX_BYTES, cudaMemcpyHostToDevice));
    return device;
}

static void matrix_is(const float *device, float value) {
    float host[N * N];
    CUDA(cudaMemcpy(host, device, MATRIX_BYTES, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N * N; ++i)
        BASE_CHECK(host[i] == value);
}

static cublasStatus_t gemm(cublasHandle_t handle, const float *a, const float *b, const float *beta,
                           float *c) {
    return cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, a, N, b, N, beta, c, N);
}

// --- Handles ---

static void a_handle_takes_its_workspace_and_gives_it_back(void) {
    machine_start_plain();
    cublasHandle_t handle = handle_make();
    BASE_CHECK_EQ(sim_used_bytes(0), 4 * BASE_MIB);
    BLAS(cublasDestroy(handle));
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    BASE_CHECK_EQ(cublasDestroy(handle), CUBLAS_STATUS_NOT_INITIALIZED);
    BASE_CHECK_EQ(cublasSetStream(handle, NULL), CUBLAS_STATUS_NOT_INITIALIZED);
    BASE_CHECK_EQ(sim_profile("h200"), BASE_OK);
    machine_start_plain();
    handle = handle_make();
    BASE_CHECK_EQ(sim_used_bytes(0), 32 * BASE_MIB);
    // The machine of before had it.
    machine_start_plain();
    BASE_CHECK_EQ(cublasSetStream(handle, NULL), CUBLAS_STATUS_NOT_INITIALIZED);
    BASE_CHECK_EQ(sim_profile(NULL), BASE_OK);
}

static void without_memory_there_is_no_handle(void) {
    machine_start(&(struct sim_options){.capacity_bytes = SIM_PAGE_BYTES});
    cublasHandle_t handle;
    BASE_CHECK_EQ(cublasCreate(&handle), CUBLAS_STATUS_ALLOC_FAILED);
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

static void a_handle_belongs_to_its_device(void) {
    machine_start(&(struct sim_options){.device_count = 2});
    cublasHandle_t handle = handle_make();
    float *a = matrix_make(1), *c = matrix_make(0);
    CUDA(cudaSetDevice(1));
    BASE_CHECK_EQ(gemm(handle, a, a, &zero, c), CUBLAS_STATUS_EXECUTION_FAILED);
    cudaStream_t other = stream_make();
    CUDA(cudaSetDevice(0));
    BLAS(gemm(handle, a, a, &zero, c));
    BLAS(cublasSetStream(handle, other));
    BASE_CHECK_EQ(gemm(handle, a, a, &zero, c), CUBLAS_STATUS_EXECUTION_FAILED);
    cudaStream_t gone = stream_make();
    BLAS(cublasSetStream(handle, gone));
    CUDA(cudaStreamDestroy(gone));
    BASE_CHECK_EQ(gemm(handle, a, a, &zero, c), CUBLAS_STATUS_EXECUTION_FAILED);
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
    BLAS(cublasDestroy(handle));
}

// --- Workspaces ---

static size_t changed_bytes(const void *workspace, int pattern) {
    static unsigned char host[WORKSPACE_BYTES];
    size_t last = 0;
    CUDA(cudaMemcpy(host, workspace, WORKSPACE_BYTES, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < WORKSPACE_BYTES; ++i)
        if (host[i] != pattern)
            last = i + 1;
    return last;
}

static void a_workspace_is_written_as_far_as_it_goes(void) {
    machine_start_plain();
    cublasHandle_t handle = handle_make();
    float *a = matrix_make(1), *c = matrix_make(0), result;
    void *workspace;
    CUDA(cudaMalloc(&workspace, WORKSPACE_BYTES));
    for (size_t size = 0; size <= 4096; size = size * 2 + 256) {
        CUDA(cudaMemset(workspace, 0x5a, WORKSPACE_BYTES));
        BLAS(cublasSetWorkspace(handle, workspace, size));
        BLAS(gemm(handle, a, a, &zero, c));
        BASE_CHECK_LE(changed_bytes(workspace, 0x5a), size);
        BASE_CHECK_EQ(changed_bytes(workspace, 0x5a) > 0, size > 0);
        matrix_is(c, N);
        CUDA(cudaMemset(workspace, 0x5a, WORKSPACE_BYTES));
        BLAS(cublasSdot(handle, N * N, a, 1, a, 1, &result));
        BASE_CHECK_EQ(changed_bytes(workspace, 0x5a) > 0, size > 0);
        BASE_CHECK(result == N * N);
    }
    // The stream set anew, the handle has its own again.
    BLAS(cublasSetStream(handle, NULL));
    CUDA(cudaMemset(workspace, 0x5a, WORKSPACE_BYTES));
    BLAS(gemm(handle, a, a, &zero, c));
    BASE_CHECK_EQ(changed_bytes(workspace, 0x5a), 0);
    BLAS(cublasDestroy(handle));
}

static void a_workspace_that_is_gone_is_an_illegal_access(void) {
    machine_start_plain();
    cublasHandle_t handle = handle_make();
    float *a = matrix_make(1), *c = matrix_make(0);
    void *workspace;
    CUDA(cudaMalloc(&workspace, WORKSPACE_BYTES));
    BLAS(cublasSetWorkspace(handle, workspace, WORKSPACE_BYTES));
    CUDA(cudaFree(workspace));
    BLAS(gemm(handle, a, a, &zero, c));
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    BASE_CHECK_EQ(gemm(handle, a, a, &zero, c), CUBLAS_STATUS_EXECUTION_FAILED);
}

// More streams than the handle's workspace has parts, in any order that is legal.
static void one_handle_serves_many_streams(void) {
    enum { STREAM_COUNT = 13 };
    for (int seed = 1; seed <= 20; ++seed) {
        char schedule[32];
        snprintf(schedule, sizeof schedule, "random:%d", seed);
        BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
        machine_start_plain();
        BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
        cublasHandle_t handle = handle_make();
        cudaStream_t streams[STREAM_COUNT];
        float *a = matrix_make(1), *c[STREAM_COUNT];
        for (int i = 0; i < STREAM_COUNT; ++i) {
            streams[i] = stream_make();
            c[i] = matrix_make(1);
        }
        CUDA(cudaDeviceSynchronize()); // a copy of pageable memory can still be on its way
        for (int round = 0; round < 3; ++round)
            for (int i = 0; i < STREAM_COUNT; ++i) {
                BLAS(cublasSetStream(handle, streams[i]));
                BLAS(gemm(handle, a, a, &one, c[i]));
            }
        CUDA(cudaDeviceSynchronize());
        for (int i = 0; i < STREAM_COUNT; ++i)
            matrix_is(c[i], 1 + 3 * N);
        BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0);
        BLAS(cublasDestroy(handle));
        sim_race_stop();
    }
    BASE_CHECK_EQ(sim_schedule("eager"), BASE_OK);
}

// Each of eight streams has a part of the handle's workspace; the ninth waits for the first.
static void a_part_of_the_workspace_serves_one_stream_at_a_time(void) {
    machine_start_plain();
    cublasHandle_t handle = handle_make();
    float *a = matrix_make(1), *c = matrix_make(0);
    cudaStream_t streams[9];
    for (int i = 0; i < 9; ++i) {
        streams[i] = stream_make();
        sim_stream_hold(streams[i], i < 8);
        BLAS(cublasSetStream(handle, streams[i]));
        BLAS(gemm(handle, a, a, &zero, c));
    }
    BASE_CHECK_EQ(cudaStreamQuery(streams[8]), cudaErrorNotReady);
    sim_stream_hold(streams[1], false);
    BASE_CHECK_EQ(cudaStreamQuery(streams[8]), cudaErrorNotReady);
    sim_stream_hold(streams[0], false);
    BASE_CHECK_EQ(cudaStreamQuery(streams[8]), cudaSuccess);
    BLAS(cublasDestroy(handle));
}

// --- Races ---

struct shared {
    cublasHandle_t handle;
    cudaStream_t streams[2];
    float *a, *b, *c[2];
    void *workspaces[2];
};

static void shared_start(struct shared *shared) {
    machine_start_plain();
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    shared->handle = handle_make();
    shared->a = matrix_make(1);
    shared->b = matrix_make(1);
    for (int i = 0; i < 2; ++i) {
        shared->streams[i] = stream_make();
        shared->c[i] = matrix_make(0);
        CUDA(cudaMalloc(&shared->workspaces[i], WORKSPACE_BYTES));
    }
    CUDA(cudaDeviceSynchronize());
}

static void shared_gemm(struct shared *shared, int stream, int workspace) {
    BLAS(cublasSetStream(shared->handle, shared->streams[stream]));
    BLAS(cublasSetWorkspace(shared->handle, shared->workspaces[workspace], WORKSPACE_BYTES));
    BLAS(gemm(shared->handle, shared->a, shared->b, &zero, shared->c[stream]));
}

static uint64_t shared_end(struct shared *shared) {
    const uint64_t count = sim_race_count(SIM_RACE_RULE_COUNT);
    sim_race_stop();
    CUDA(cudaDeviceSynchronize());
    BLAS(cublasDestroy(shared->handle));
    return count;
}

static void a_workspace_shared_by_two_streams_is_a_race(void) {
    struct shared shared;
    shared_start(&shared);
    shared_gemm(&shared, 0, 0);
    shared_gemm(&shared, 1, 0);
    BASE_CHECK_GE(sim_race_count(SIM_RACE_WRITE_WRITE), 1);
    const struct sim_race_report *report = sim_race_report_at(0);
    BASE_CHECK(report != NULL);
    BASE_CHECK_EQ(report->allocation_start, (uint64_t)(uintptr_t)shared.workspaces[0]);
    BASE_CHECK_EQ(strcmp(report->first.what, "kernel gemm_fp32"), 0);
    BASE_CHECK(strstr(report->first.site, "shared_gemm") != NULL);
    BASE_CHECK(shared_end(&shared) > 0);
    // One each, or one behind the other, is none.
    shared_start(&shared);
    shared_gemm(&shared, 0, 0);
    shared_gemm(&shared, 1, 1);
    BASE_CHECK_EQ(shared_end(&shared), 0);
    shared_start(&shared);
    cudaEvent_t event;
    CUDA(cudaEventCreate(&event));
    shared_gemm(&shared, 0, 0);
    CUDA(cudaEventRecord(event, shared.streams[0]));
    CUDA(cudaStreamWaitEvent(shared.streams[1], event, 0));
    shared_gemm(&shared, 1, 0);
    BASE_CHECK_EQ(shared_end(&shared), 0);
}

static void matrices_are_what_their_columns_hold(void) {
    struct shared shared;
    // The product writes 4 rows of C's columns, the fill the rows below: no race; then one more.
    for (int rows = 4; rows <= 5; ++rows) {
        shared_start(&shared);
        BLAS(cublasSetStream(shared.handle, shared.streams[0]));
        BLAS(cublasSgemm(shared.handle, CUBLAS_OP_T, CUBLAS_OP_N, rows, N, N, &one, shared.a, N,
                         shared.b, N, &zero, shared.c[0], N));
        CUDA(cudaMemset2DAsync(shared.c[0] + 4, N * sizeof(float), 0, (N - 4) * sizeof(float), N,
                               shared.streams[1]));
        BASE_CHECK_EQ(sim_race_count(SIM_RACE_WRITE_WRITE), rows > 4);
        (void)shared_end(&shared);
    }
    // A is read: of a transposed one the first 4 columns.
    for (int column = 4; column >= 3; --column) {
        shared_start(&shared);
        BLAS(cublasSetStream(shared.handle, shared.streams[0]));
        BLAS(cublasSgemm(shared.handle, CUBLAS_OP_T, CUBLAS_OP_N, 4, N, N, &one, shared.a, N,
                         shared.b, N, &zero, shared.c[0], N));
        CUDA(cudaMemsetAsync(shared.a + column * N, 0, sizeof(float), shared.streams[1]));
        BASE_CHECK_EQ(sim_race_count(SIM_RACE_READ_WRITE), column < 4);
        (void)shared_end(&shared);
    }
}

static void c_is_read_only_with_a_beta(void) {
    struct shared shared;
    for (int reads = 0; reads < 2; ++reads) {
        shared_start(&shared);
        float *unwritten, result;
        CUDA(cudaMalloc((void **)&unwritten, MATRIX_BYTES));
        BLAS(gemm(shared.handle, shared.a, shared.b, reads ? &one : &zero, unwritten));
        BLAS(cublasSdot(shared.handle, 1, unwritten, 1, unwritten, 1, &result));
        sim_race_stop();
        BASE_CHECK_EQ(sim_race_count(SIM_RACE_UNINITIALISED), reads);
        (void)shared_end(&shared);
    }
}

// --- Captures ---

static void a_product_is_a_node_and_is_replayed(void) {
    machine_start_plain();
    for (int own = 0; own < 2; ++own) {
        cublasHandle_t handle = handle_make();
        cudaStream_t stream = stream_make();
        float *a = matrix_make(1), *c = matrix_make(0), *beta = matrix_make(1);
        void *workspace;
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        size_t count;
        CUDA(cudaMalloc(&workspace, WORKSPACE_BYTES));
        BLAS(cublasSetStream(handle, stream));
        BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
        if (!own)
            BLAS(cublasSetWorkspace(handle, workspace, WORKSPACE_BYTES));
        CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, beta + 1, a, N, a, N, beta, c,
                         N));
        CUDA(cudaStreamEndCapture(stream, &graph));
        CUDA(cudaGraphGetNodes(graph, NULL, &count));
        BASE_CHECK_EQ(count, own ? 3 : 1); // memory nodes around it
        CUDA(cudaGraphInstantiate(&exec, graph, 0));
        CUDA(cudaGraphLaunch(exec, stream));
        CUDA(cudaStreamSynchronize(stream));
        matrix_is(c, N); // with a beta of 1
        CUDA(cudaMemset(beta, 0, sizeof(float)));
        CUDA(cudaMemset(a, 0, MATRIX_BYTES));
        CUDA(cudaGraphLaunch(exec, stream));
        CUDA(cudaStreamSynchronize(stream));
        matrix_is(c, 0);
        CUDA(cudaGraphExecDestroy(exec));
        CUDA(cudaGraphDestroy(graph));
        BLAS(cublasDestroy(handle));
    }
}

static void a_replay_that_meets_the_workspace_is_a_race(void) {
    struct shared shared;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    shared_start(&shared);
    CUDA(cudaStreamBeginCapture(shared.streams[0], cudaStreamCaptureModeGlobal));
    shared_gemm(&shared, 0, 0);
    CUDA(cudaStreamEndCapture(shared.streams[0], &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    shared_gemm(&shared, 1, 0);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0);
    CUDA(cudaGraphLaunch(exec, shared.streams[0]));
    BASE_CHECK_GE(sim_race_count(SIM_RACE_WRITE_WRITE), 1);
    (void)shared_end(&shared);
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
}

// --- Faults, errors, costs ---

static void planned_faults_strike(void) {
    machine_start_plain();
    cublasHandle_t handle = handle_make();
    float *a = matrix_make(1), *c = matrix_make(0), result = 5;
    sim_fault_next(SIM_CALL_BLAS_GEMM, 2, SIM_FAULT_STATUS(CUBLAS_STATUS_INTERNAL_ERROR));
    BLAS(gemm(handle, a, a, &zero, c));
    BASE_CHECK_EQ(gemm(handle, a, a, &one, c), CUBLAS_STATUS_INTERNAL_ERROR);
    matrix_is(c, N);
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
    sim_fault_next(SIM_CALL_BLAS_DOT, 1, cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cublasSdot(handle, 2, a, 1, a, 1, &result), CUBLAS_STATUS_ALLOC_FAILED);
    BASE_CHECK(result == 5);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_BLAS_GEMM), 2);
    BASE_CHECK_EQ(sim_call_failed_count(SIM_CALL_BLAS_GEMM), 1);
    sim_fault_next(SIM_CALL_MALLOC, 1, cudaErrorMemoryAllocation);
    cublasHandle_t second = NULL;
    BASE_CHECK_EQ(cublasCreate(&second), CUBLAS_STATUS_ALLOC_FAILED);
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
    BLAS(cublasDestroy(handle));
}

static enum base_status plan_load(const char *text) {
    char path[] = "/tmp/blas_test_plan_XXXXXX";
    const int file = mkstemp(path);
    BASE_CHECK(file >= 0);
    BASE_CHECK_EQ(write(file, text, strlen(text)), strlen(text));
    close(file);
    const enum base_status status = sim_faults_load(path);
    unlink(path);
    return status;
}

static void fault_plans_know_statuses(void) {
    machine_start_plain();
    BASE_CHECK_EQ(plan_load("cublasGemmEx every 2 error CUBLAS_STATUS_EXECUTION_FAILED\n"),
                  BASE_OK);
    cublasHandle_t handle = handle_make();
    float *a = matrix_make(1), *c = matrix_make(0);
    for (int i = 1; i <= 6; ++i)
        BASE_CHECK_EQ(gemm(handle, a, a, &zero, c),
                      i % 2 == 0 ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS);
    BASE_CHECK_EQ(plan_load("cublasGemmEx at 1 error cudaErrorUnknown\n"), BASE_FORMAT);
    BASE_CHECK(strstr(base_status_message(), "cuBLAS status") != NULL);
    BASE_CHECK_EQ(plan_load("cudaMalloc at 1 error CUBLAS_STATUS_ALLOC_FAILED\n"), BASE_FORMAT);
    BASE_CHECK_EQ(plan_load("cublasCreate at 1 error 0\n"), BASE_FORMAT);
    BASE_CHECK_EQ(sim_faults_load(NULL), BASE_OK);
    BLAS(cublasDestroy(handle));
}

static void a_matrix_that_is_not_there_is_an_illegal_access(void) {
    machine_start_plain();
    cublasHandle_t handle = handle_make();
    float *a = matrix_make(1), *c = matrix_make(0), result = 3;
    CUDA(cudaFree(a));
    BLAS(gemm(handle, a, a, &zero, c));
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    BASE_CHECK_EQ(cublasSdot(handle, 2, c, 1, c, 1, &result), CUBLAS_STATUS_EXECUTION_FAILED);
    machine_start_plain();
    handle = handle_make();
    BASE_CHECK_EQ(cublasSdot(handle, 2, a, 1, a, 1, &result), CUBLAS_STATUS_EXECUTION_FAILED);
    BASE_CHECK(result == 3);
}

static void without_numerics_calls_cost_and_do_nothing(void) {
    machine_start(&(struct sim_options){.numerics = SIM_NUMERICS_OFF});
    cublasHandle_t handle = handle_make();
    float *a, result = 4;
    CUDA(cudaMalloc((void **)&a, (size_t)40 << 30));
    BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 50000, 50000, 50000, &one, a, 50000, a,
                     50000, &zero, a, 50000));
    BLAS(cublasSdot(handle, 1000000, a, 1, a, 1, &result));
    BASE_CHECK(result == 4);
    CUDA(cudaDeviceSynchronize());
    BLAS(cublasDestroy(handle));
}

static uint64_t time_of_gemm(cudaDataType type, cublasMath_t mode) {
    machine_start(&(struct sim_options){.numerics = SIM_NUMERICS_OFF});
    cublasHandle_t handle = handle_make();
    void *a;
    CUDA(cudaMalloc(&a, (size_t)1 << 30));
    BLAS(cublasSetMathMode(handle, mode));
    CUDA(cudaDeviceSynchronize());
    const uint64_t start_ns = sim_time_ns();
    BLAS(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8192, 8192, 8192, &one, a, type, 8192, a,
                      type, 8192, &zero, a, type, 8192, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    CUDA(cudaDeviceSynchronize());
    return sim_time_ns() - start_ns;
}

// 2 times 8192^3 operations: at 790 TFLOP/s 1.39 ms, half as fast in TF32, at 54 20.4 ms.
static void modelled_time_follows_the_operations(void) {
    BASE_CHECK_EQ(sim_profile("h200"), BASE_OK);
    BASE_CHECK_EQ(sim_schedule("timed"), BASE_OK);
    const uint64_t narrow_ns = time_of_gemm(CUDA_R_16BF, CUBLAS_DEFAULT_MATH);
    const uint64_t tf32_ns = time_of_gemm(CUDA_R_32F, CUBLAS_TF32_TENSOR_OP_MATH);
    const uint64_t plain_ns = time_of_gemm(CUDA_R_32F, CUBLAS_DEFAULT_MATH);
    BASE_CHECK_GE(narrow_ns, 1390000);
    BASE_CHECK_LE(narrow_ns, 1420000);
    BASE_CHECK_GE(tf32_ns, 2780000);
    BASE_CHECK_LE(tf32_ns, 2810000);
    BASE_CHECK_GE(plain_ns, 20360000);
    BASE_CHECK_LE(plain_ns, 20390000);
    BASE_CHECK_EQ(sim_profile(NULL), BASE_OK);
    BASE_CHECK_EQ(sim_schedule("eager"), BASE_OK);
}

static void checked_mode_says_what_is_wrong(void) {
    machine_start(&(struct sim_options){.checked = true});
    cublasHandle_t handle = handle_make();
    float *a = matrix_make(1), *c = matrix_make(0);
    BLAS(gemm(handle, a, a, &zero, c));
    matrix_is(c, N);
    BASE_CHECK_EQ(sim_misuse_count(), 0);
    BASE_CHECK_EQ(
        cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, a, N - 1, a, N, &zero, c, N),
        CUBLAS_STATUS_INVALID_VALUE);
    BASE_CHECK_EQ(sim_misuse_count(), 1);
    BLAS(cublasDestroy(handle));
    BASE_CHECK_EQ(gemm(handle, a, a, &zero, c), CUBLAS_STATUS_NOT_INITIALIZED);
    BASE_CHECK_EQ(sim_misuse_count(), 2);
}

static void transcripts_have_the_calls(void) {
    char path[] = "/tmp/blas_test_transcript_XXXXXX", *text;
    size_t size;
    close(mkstemp(path));
    machine_start_plain();
    BASE_CHECK_EQ(sim_transcript(path), BASE_OK);
    cublasHandle_t handle = handle_make();
    float *a = matrix_make(1), *c = matrix_make(0);
    BLAS(gemm(handle, a, a, &zero, c));
    BASE_CHECK_EQ(gemm(NULL, a, a, &zero, c), CUBLAS_STATUS_NOT_INITIALIZED);
    BLAS(cublasDestroy(handle));
    BASE_CHECK_EQ(sim_transcript(NULL), BASE_OK);
    BASE_CHECK_EQ(base_file_read(path, (size_t)1 << 20, &text, &size), BASE_OK);
    BASE_CHECK(strstr(text, "cublasCreate_v2(handle) = CUBLAS_STATUS_SUCCESS, *handle=1") != NULL);
    BASE_CHECK(strstr(text, "cublasSgemm_v2(handle=1, transa=0, transb=0, m=16, n=16, k=16") !=
               NULL);
    BASE_CHECK(strstr(text, "kernel gemm_fp32") != NULL);
    BASE_CHECK(strstr(text, ") = CUBLAS_STATUS_NOT_INITIALIZED") != NULL);
    free(text);
    unlink(path);
}

int main(void) {
    a_handle_takes_its_workspace_and_gives_it_back();
    without_memory_there_is_no_handle();
    a_handle_belongs_to_its_device();
    a_workspace_is_written_as_far_as_it_goes();
    a_workspace_that_is_gone_is_an_illegal_access();
    one_handle_serves_many_streams();
    a_part_of_the_workspace_serves_one_stream_at_a_time();
    a_workspace_shared_by_two_streams_is_a_race();
    matrices_are_what_their_columns_hold();
    c_is_read_only_with_a_beta();
    a_product_is_a_node_and_is_replayed();
    a_replay_that_meets_the_workspace_is_a_race();
    planned_faults_strike();
    fault_plans_know_statuses();
    a_matrix_that_is_not_there_is_an_illegal_access();
    without_numerics_calls_cost_and_do_nothing();
    modelled_time_follows_the_operations();
    checked_mode_says_what_is_wrong();
    transcripts_have_the_calls();
    return 0;
}
