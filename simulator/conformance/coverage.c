// See coverage.h. What the headers declare, and which case makes which call, calls.py has read
// from the sources (calls.inc); here are the calls that the contract speaks of, and why one is not
// there.
#include "simulator/conformance/coverage.h"

#include "simulator/conformance/conformance.h"

#include <stdbool.h>
#include <string.h>

// So many cases of a call are named; of others the number.
#define NAMED_COUNT_MAX 4

static const char *const declared[] = {
#define CALL_DECLARED(call) call,
#define CALL_USED(function, call)
#include "simulator/conformance/calls.inc"
#undef CALL_DECLARED
#undef CALL_USED
};

static const struct use {
    const char *function, *call;
} uses[] = {
#define CALL_DECLARED(call)
#define CALL_USED(function, call) {function, call},
#include "simulator/conformance/calls.inc"
#undef CALL_DECLARED
#undef CALL_USED
};

#define DECLARED_COUNT (sizeof declared / sizeof declared[0])
#define USE_COUNT      (sizeof uses / sizeof uses[0])

#define REFUSED "refused"
#define MANAGED REFUSED ", 801: managed memory is not simulated"
#define IPC     "one process only"
#define KERNELS "code of nvcc is not run: sim_launch takes a function"
#define GRAPH_KERNELS REFUSED ", 98: code of nvcc is not run: sim_graph_add_kernel takes a function"
#define CONDITIONAL REFUSED ", 801: conditional nodes are not simulated"
#define SEMAPHORES "external semaphores are not simulated"
#define COMPLEX "complex numbers are not simulated"
#define SIMPLE  "not needed so far"

// The calls of the contract by area; without a reason a call is there.
static const struct area {
    const char *title;
    const struct wanted {
        const char *call, *reason; // why it is not there, as long as it is not; or REFUSED
    } calls[48];
} areas[] = {
    {"Devices",
     {{"cudaGetDeviceCount", NULL},
      {"cudaGetDevice", NULL},
      {"cudaSetDevice", NULL},
      {"cudaInitDevice", SIMPLE},
      {"cudaGetDeviceProperties", NULL},
      {"cudaDeviceGetAttribute", NULL},
      {"cudaDeviceSynchronize", NULL},
      {"cudaDeviceReset", SIMPLE},
      {"cudaDeviceGetStreamPriorityRange", NULL},
      {"cudaDeviceCanAccessPeer", NULL},
      {"cudaDeviceEnablePeerAccess", NULL},
      {"cudaDeviceDisablePeerAccess", NULL},
      {"cudaDriverGetVersion", NULL},
      {"cudaRuntimeGetVersion", NULL},
      {"cudaGetDriverEntryPoint", SIMPLE},
      {"cudaGetDriverEntryPointByVersion", SIMPLE}}},
    {"Errors",
     {{"cudaGetLastError", NULL},
      {"cudaPeekAtLastError", NULL},
      {"cudaGetErrorName", NULL},
      {"cudaGetErrorString", NULL}}},
    {"Memory",
     {{"cudaMalloc", NULL},
      {"cudaFree", NULL},
      {"cudaMemGetInfo", NULL},
      {"cudaMallocManaged", MANAGED},
      {"cudaMemAdvise", MANAGED},
      {"cudaMemPrefetchAsync", MANAGED},
      {"cudaMallocHost", NULL},
      {"cudaHostAlloc", NULL},
      {"cudaFreeHost", NULL},
      {"cudaHostRegister", SIMPLE},
      {"cudaHostUnregister", SIMPLE},
      {"cudaHostGetDevicePointer", SIMPLE},
      {"cudaPointerGetAttributes", NULL},
      {"cudaMemcpy", NULL},
      {"cudaMemcpyAsync", NULL},
      {"cudaMemcpy2D", NULL},
      {"cudaMemcpy2DAsync", NULL},
      {"cudaMemcpyPeer", NULL},
      {"cudaMemcpyPeerAsync", NULL},
      {"cudaMemset", NULL},
      {"cudaMemsetAsync", NULL},
      {"cudaMemset2D", NULL},
      {"cudaMemset2DAsync", NULL},
      {"cudaIpcGetMemHandle", IPC},
      {"cudaIpcOpenMemHandle", IPC},
      {"cudaIpcCloseMemHandle", IPC}}},
    {"Stream-ordered memory",
     {{"cudaMallocAsync", SIMPLE},
      {"cudaFreeAsync", SIMPLE},
      {"cudaMallocFromPoolAsync", SIMPLE},
      {"cudaDeviceGetDefaultMemPool", SIMPLE},
      {"cudaDeviceGetMemPool", SIMPLE},
      {"cudaDeviceSetMemPool", SIMPLE},
      {"cudaMemPoolCreate", SIMPLE},
      {"cudaMemPoolDestroy", SIMPLE},
      {"cudaMemPoolSetAttribute", SIMPLE},
      {"cudaMemPoolGetAttribute", SIMPLE},
      {"cudaMemPoolTrimTo", SIMPLE},
      {"cudaMemPoolSetAccess", SIMPLE},
      {"cudaMemPoolGetAccess", SIMPLE}}},
    {"Streams",
     {{"cudaStreamCreate", NULL},
      {"cudaStreamCreateWithFlags", NULL},
      {"cudaStreamCreateWithPriority", NULL},
      {"cudaStreamDestroy", NULL},
      {"cudaStreamSynchronize", NULL},
      {"cudaStreamQuery", NULL},
      {"cudaStreamWaitEvent", NULL},
      {"cudaStreamGetFlags", NULL},
      {"cudaStreamGetPriority", NULL},
      {"cudaStreamGetDevice", NULL},
      {"cudaStreamAddCallback", NULL},
      {"cudaLaunchHostFunc", NULL},
      {"cudaStreamAttachMemAsync", MANAGED},
      {"cudaLaunchKernel", KERNELS}}},
    {"Events",
     {{"cudaEventCreate", NULL},
      {"cudaEventCreateWithFlags", NULL},
      {"cudaEventDestroy", NULL},
      {"cudaEventRecord", NULL},
      {"cudaEventRecordWithFlags", NULL},
      {"cudaEventQuery", NULL},
      {"cudaEventSynchronize", NULL},
      {"cudaEventElapsedTime", NULL},
      {"cudaIpcGetEventHandle", IPC},
      {"cudaIpcOpenEventHandle", IPC}}},
    {"Capture",
     {{"cudaStreamIsCapturing", NULL},
      {"cudaThreadExchangeStreamCaptureMode", NULL},
      {"cudaStreamBeginCapture", NULL},
      {"cudaStreamBeginCaptureToGraph", NULL},
      {"cudaStreamEndCapture", NULL},
      {"cudaStreamGetCaptureInfo", NULL},
      {"cudaStreamUpdateCaptureDependencies", NULL}}},
    {"Graphs",
     {{"cudaGraphCreate", NULL},
      {"cudaGraphDestroy", NULL},
      {"cudaGraphClone", NULL},
      {"cudaGraphNodeFindInClone", NULL},
      {"cudaGraphDestroyNode", NULL},
      {"cudaGraphAddDependencies", NULL},
      {"cudaGraphRemoveDependencies", NULL},
      {"cudaGraphGetNodes", NULL},
      {"cudaGraphGetRootNodes", NULL},
      {"cudaGraphGetEdges", NULL},
      {"cudaGraphNodeGetDependencies", NULL},
      {"cudaGraphNodeGetDependentNodes", NULL},
      {"cudaGraphNodeGetType", NULL},
      {"cudaGraphDebugDotPrint", NULL}}},
    {"Nodes",
     {{"cudaGraphAddNode", NULL},
      {"cudaGraphAddEmptyNode", NULL},
      {"cudaGraphAddMemsetNode", NULL},
      {"cudaGraphAddMemcpyNode", NULL},
      {"cudaGraphAddMemcpyNode1D", NULL},
      {"cudaGraphAddHostNode", NULL},
      {"cudaGraphAddChildGraphNode", NULL},
      {"cudaGraphAddEventRecordNode", NULL},
      {"cudaGraphAddEventWaitNode", NULL},
      {"cudaGraphAddMemAllocNode", NULL},
      {"cudaGraphAddMemFreeNode", NULL},
      {"cudaGraphAddKernelNode", GRAPH_KERNELS},
      {"cudaGraphConditionalHandleCreate", CONDITIONAL},
      {"cudaGraphAddExternalSemaphoresSignalNode", SEMAPHORES},
      {"cudaGraphAddExternalSemaphoresWaitNode", SEMAPHORES}}},
    {"Executables",
     {{"cudaGraphInstantiate", NULL},
      {"cudaGraphInstantiateWithFlags", NULL},
      {"cudaGraphInstantiateWithParams", NULL},
      {"cudaGraphLaunch", NULL},
      {"cudaGraphUpload", NULL},
      {"cudaGraphExecUpdate", NULL},
      {"cudaGraphExecDestroy", NULL},
      {"cudaDeviceGraphMemTrim", NULL}}},
    {"Driver",
     {{"cuInit", SIMPLE},
      {"cuDriverGetVersion", SIMPLE},
      {"cuDeviceGet", SIMPLE},
      {"cuDeviceGetCount", SIMPLE},
      {"cuDeviceGetAttribute", SIMPLE},
      {"cuDevicePrimaryCtxGetState", SIMPLE},
      {"cuCtxGetCurrent", SIMPLE},
      {"cuCtxSetCurrent", SIMPLE},
      {"cuCtxPushCurrent", SIMPLE},
      {"cuCtxPopCurrent", SIMPLE},
      {"cuGetErrorString", SIMPLE},
      {"cuGetErrorName", SIMPLE},
      {"cuGetProcAddress", SIMPLE},
      {"cuMemGetAllocationGranularity", SIMPLE},
      {"cuMemAddressReserve", SIMPLE},
      {"cuMemAddressFree", SIMPLE},
      {"cuMemCreate", SIMPLE},
      {"cuMemRelease", SIMPLE},
      {"cuMemMap", SIMPLE},
      {"cuMemUnmap", SIMPLE},
      {"cuMemSetAccess", SIMPLE},
      {"cuMemGetAccess", SIMPLE},
      {"cuMemRetainAllocationHandle", SIMPLE},
      {"cuMemExportToShareableHandle", SIMPLE},
      {"cuMemImportFromShareableHandle", SIMPLE},
      {"cuMemsetD32Async", SIMPLE},
      {"cuStreamWriteValue32", SIMPLE},
      {"cuStreamWriteValue64", SIMPLE},
      {"cuMulticastCreate", "multicast objects are not simulated"},
      {"cuGreenCtxCreate", "green contexts are not simulated"}}},
    {"cuBLAS",
     {{"cublasCreate", NULL},
      {"cublasDestroy", NULL},
      {"cublasSetStream", NULL},
      {"cublasSetWorkspace", NULL},
      {"cublasSetPointerMode", NULL},
      {"cublasSetMathMode", NULL},
      {"cublasSetAtomicsMode", NULL},
      {"cublasSgemm", NULL},
      {"cublasDgemm", NULL},
      {"cublasGemmEx", NULL},
      {"cublasSgemmStridedBatched", NULL},
      {"cublasGemmStridedBatchedEx", NULL},
      {"cublasSgemmBatched", NULL},
      {"cublasGemmBatchedEx", NULL},
      {"cublasSgemv", NULL},
      {"cublasSaxpy", NULL},
      {"cublasAxpyEx", NULL},
      {"cublasSscal", NULL},
      {"cublasScalEx", NULL},
      {"cublasSdot", NULL},
      {"cublasDotEx", NULL},
      {"cublasSnrm2", NULL},
      {"cublasNrm2Ex", NULL},
      {"cublasLtCreate", NULL},
      {"cublasLtDestroy", NULL},
      {"cublasLtMatmulAlgoGetHeuristic", NULL},
      {"cublasLtMatmul", NULL},
      {"cublasHgemm", "sums are accumulated in fp32"},
      {"cublasCgemm", COMPLEX},
      {"cublasSgemm_64", SIMPLE},
      {"cublasStrsm", SIMPLE},
      {"cublasLtMatrixTransform", SIMPLE}}},
};
#define AREA_COUNT (sizeof areas / sizeof areas[0])

static bool is_declared(const char *call) {
    for (size_t i = 0; i < DECLARED_COUNT; ++i)
        if (strcmp(declared[i], call) == 0)
            return true;
    return false;
}

static bool is_wanted(const char *call) {
    for (size_t i = 0; i < AREA_COUNT; ++i)
        for (const struct wanted *wanted = areas[i].calls; wanted->call != NULL; ++wanted)
            if (strcmp(wanted->call, call) == 0)
                return true;
    return false;
}

static bool is_one_of(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void print_cases(FILE *output, const char *call) {
    static const char *functions[USE_COUNT]; // that make the call
    size_t function_count = 0;
    int count = 0;
    for (size_t i = 0; i < USE_COUNT; ++i)
        if (strcmp(uses[i].call, call) == 0)
            functions[function_count++] = uses[i].function;
    for (const struct conformance_group *at = conformance_groups; at->title != NULL; ++at)
        for (const struct conformance_case *one = at->cases; one->name != NULL; ++one)
            if (is_one_of(one->function, functions, function_count) && count++ < NAMED_COUNT_MAX)
                fprintf(output, "%s%s", count > 1 ? ", " : "", one->name);
    if (count > NAMED_COUNT_MAX)
        fprintf(output, " and %d more", count - NAMED_COUNT_MAX);
}

static void print_call(FILE *output, const struct wanted *wanted) {
    if (!is_declared(wanted->call)) {
        fprintf(output, "| %s | no: %s | |\n", wanted->call,
                wanted->reason == NULL ? SIMPLE : wanted->reason);
        return;
    }
    const bool refused =
        wanted->reason != NULL && strncmp(wanted->reason, REFUSED, strlen(REFUSED)) == 0;
    fprintf(output, "| %s | %s | ", wanted->call, refused ? wanted->reason : "yes");
    print_cases(output, wanted->call);
    fprintf(output, " |\n");
}

#define CALLS_HEAD "| call | simulated | cases |\n|---|---|---|\n"

static void print_calls(FILE *output) {
    for (size_t i = 0; i < AREA_COUNT; ++i) {
        fprintf(output, "\n### %s\n\n" CALLS_HEAD, areas[i].title);
        for (const struct wanted *wanted = areas[i].calls; wanted->call != NULL; ++wanted)
            print_call(output, wanted);
    }
    fprintf(output, "\n### Besides\n\n" CALLS_HEAD);
    for (size_t i = 0; i < DECLARED_COUNT; ++i)
        if (!is_wanted(declared[i]))
            print_call(output, &(struct wanted){.call = declared[i]});
}

static void print_rules(FILE *output) {
    for (const struct conformance_group *at = conformance_groups; at->title != NULL; ++at) {
        fprintf(output, "\n### %s\n\n| case | rule | answer |\n|---|---|---|\n", at->title);
        for (const struct conformance_case *one = at->cases; one->name != NULL; ++one)
            fprintf(output, "| %s%s | %s | %s%s%s |\n", one->name,
                    one->status == CONFORMANCE_UNVERIFIED ? " (?)" : "", one->rule, one->expected,
                    one->also != NULL ? "; also " : "", one->also != NULL ? one->also : "");
    }
}

// Rules of the contract that no case can hold, and why.
static const struct exception {
    const char *section, *rule, *reason;
} exceptions[] = {
    {"1", "without a device 100, without a driver 35", "the simulated machine has both"},
    {"1", "a kernel fault may surface at any later call", "here it does at the first call that "
                                                          "waits for it, or comes after it"},
    {"2", "kinds that disagree with the pointers, ranges that overlap", "undefined"},
    {"3", "unsupported: 801", "pools are supported"},
    {"5", "a host function that waits for CUDA work", "it would wait for ever"},
    {"6", "interprocess events", "one process only"},
    {"7.1", "cudaMallocManaged in a capture", "managed memory is not simulated"},
    {"7.1", "modules are loaded and unloaded", "there are none"},
    {"7.2", "cudaStreamAttachMemAsync in a capture", "managed memory is not simulated"},
    {"7.5", "graph objects are not thread-safe", "here they are"},
    {"7.5", "graphs may share physical memory", "what freed memory holds is undefined"},
    {"8", "kernels that spin for each other", "they would spin for ever, as they may on a GPU"},
};

static void print_exceptions(FILE *output) {
    fprintf(output, "\n## Rules without a case\n\n| section | rule | why |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof exceptions / sizeof exceptions[0]; ++i)
        fprintf(output, "| %s | %s | %s |\n", exceptions[i].section, exceptions[i].rule,
                exceptions[i].reason);
}

void conformance_coverage_print(FILE *output) {
    fprintf(output,
            "# CUDA calls that the simulator answers\n\n"
            "Made by `bazel run //simulator:conformance -- --coverage`: edit the cases, not this "
            "file.\n\n"
            "## Calls\n\n"
            "The calls of the contract, and the cases that make them. A call that is not simulated "
            "is not declared either: a\nprogram that makes it does not compile, instead of being "
            "answered wrongly.\n");
    print_calls(output);
    fprintf(output, "\n## Rules\n\n"
                    "Each rule of the contract that has a case, with the simulator's answer and "
                    "any other that the contract allows. (?)\nmarks what no document and no report "
                    "of hardware says: there the simulator's answer is a guess, which\n"
                    "`bazel run --config=cuda //simulator:conformance` holds against a GPU.\n");
    print_rules(output);
    print_exceptions(output);
}
