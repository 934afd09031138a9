// Section 0: programs that are compiled for per-thread default streams. They call variants by other
// names (_ptds, _ptsz), for which stream 0 means the thread's own stream.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM 1
#include "simulator/conformance/cases.h"

#include <string.h>

#define SIZE 16

static void nothing(void *unused) { (void)unused; }

static void set(cudaStream_t stream, cudaError_t status, void *flag) {
    (void)stream;
    (void)status;
    *(int *)flag = 1;
}

static void per_thread_zero(struct conformance *c) {
    unsigned char *pinned = conformance_pinned_memory(c, SIZE);
    pinned[0] = 0;
    conformance_gate(c, cudaStreamPerThread);
    MUST(c, cudaMemsetAsync(pinned, 1, SIZE, NULL));
    answer_number(c, "before", pinned[0]);
    answer_code(c, "query", cudaStreamQuery(NULL));
    answer_code(c, "synchronize", cudaStreamSynchronize(NULL));
    answer_number(c, "after", pinned[0]);
}

static void per_thread_legacy_is_named(struct conformance *c) {
    cudaStream_t other = conformance_stream(c, cudaStreamDefault);
    conformance_gate(c, other);
    (void)conformance_mark(c, other);
    answer_code(c, "zero", cudaStreamQuery(NULL));
    answer_code(c, "legacy", cudaStreamQuery(cudaStreamLegacy));
}

static void per_thread_copies(struct conformance *c) {
    unsigned char host[SIZE];
    static unsigned char back[SIZE];
    unsigned char *device = conformance_device_memory(c, SIZE);
    unsigned char *pinned = conformance_pinned_memory(c, SIZE);
    memset(host, 1, SIZE);
    memset(back, 0, SIZE);
    MUST(c, cudaMemset(device, 0, SIZE));
    MUST(c, cudaMemcpy(device, host, SIZE / 2, cudaMemcpyHostToDevice));
    MUST(c, cudaMemset2D(device + 8, 4, 2, 2, 2));
    MUST(c, cudaMemcpy2D(back, 4, device, 4, 4, 4, cudaMemcpyDeviceToHost));
    answer_number(c, "copied", back[7]);
    answer_number(c, "filled", back[12]);
    answer_number(c, "between", back[10]);
    MUST(c, cudaMemset2DAsync(device, 4, 3, 4, 4, NULL));
    MUST(c, cudaMemcpy2DAsync(pinned, 4, device, 4, 4, 4, cudaMemcpyDeviceToHost, NULL));
    MUST(c, cudaMemcpyAsync(device, pinned, 1, cudaMemcpyHostToDevice, NULL));
    MUST(c, cudaStreamSynchronize(NULL));
    answer_number(c, "async", pinned[15]);
}

// A plain copy waits for the thread's own stream; it does not stand between blocking streams.
static void per_thread_copy_is_no_barrier(struct conformance *c) {
    unsigned char host[SIZE] = {0};
    void *device = conformance_device_memory(c, SIZE);
    cudaStream_t blocking = conformance_stream(c, cudaStreamDefault);
    conformance_gate(c, blocking);
    cudaEvent_t event = conformance_mark(c, blocking);
    MUST(c, cudaMemcpy(device, host, SIZE, cudaMemcpyHostToDevice));
    answer_event(c, "blocking", event);
}

static void per_thread_stream_calls(struct conformance *c) {
    unsigned int flags = 99;
    int priority = 99;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaStreamGetFlags(NULL, &flags));
    MUST(c, cudaStreamGetPriority(NULL, &priority));
    MUST(c, cudaStreamIsCapturing(NULL, &status));
    answer_number(c, "flags", flags);
    answer_number(c, "priority", priority);
    answer_number(c, "status", status);
    conformance_gate(c, other);
    MUST(c, cudaStreamWaitEvent(NULL, conformance_mark(c, other), 0));
    cudaEvent_t event = conformance_event(c);
    MUST(c, cudaEventRecord(event, NULL));
    answer_event(c, "behind", event);
    answer_event(c, "own", conformance_mark(c, cudaStreamPerThread));
}

static void per_thread_functions(struct conformance *c) {
    int flag = 0;
    MUST(c, cudaLaunchHostFunc(NULL, nothing, NULL));
    MUST(c, cudaStreamAddCallback(NULL, set, &flag, 0));
    MUST(c, cudaStreamSynchronize(NULL));
    answer_number(c, "callback", flag);
}

static void per_thread_pool(struct conformance *c) {
    struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                          .location = {.type = cudaMemLocationTypeDevice}};
    void *first, *second;
    cudaMemPool_t pool;
    MUST(c, cudaMemPoolCreate(&pool, &properties));
    conformance_gate(c, cudaStreamPerThread);
    MUST(c, cudaMallocAsync(&first, SIZE, NULL));
    MUST(c, cudaMallocFromPoolAsync(&second, SIZE, pool, NULL));
    MUST(c, cudaMemsetAsync(first, 1, SIZE, NULL));
    MUST(c, cudaFreeAsync(first, NULL));
    MUST(c, cudaFreeAsync(second, NULL));
    answer_code(c, "query", cudaStreamQuery(NULL));
    MUST(c, cudaStreamSynchronize(NULL));
    answer_code(c, "destroy", cudaMemPoolDestroy(pool));
}

static void per_thread_capture(struct conformance *c) {
    unsigned char *memory = conformance_device_memory(c, SIZE);
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t *nodes = NULL;
    cudaGraph_t graph = NULL;
    cudaEvent_t event = conformance_event(c);
    size_t count = 0;
    MUST(c, cudaMemset(memory, 0, SIZE));
    MUST(c, cudaDeviceSynchronize());
    MUST(c, cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal));
    MUST(c, cudaMemsetAsync(memory, 1, SIZE, NULL));
    MUST(c, cudaStreamGetCaptureInfo(NULL, &status, NULL, &graph, &nodes, NULL, &count));
    answer_number(c, "status", status);
    answer_number(c, "count", (int64_t)count);
    MUST(c, cudaStreamUpdateCaptureDependencies(NULL, NULL, NULL, 0,
                                                cudaStreamSetCaptureDependencies));
    MUST(c, cudaEventRecordWithFlags(event, NULL, cudaEventRecordExternal));
    MUST(c, cudaStreamEndCapture(NULL, &graph));
    MUST(c, cudaGraphGetRootNodes(graph, NULL, &count));
    answer_number(c, "roots", (int64_t)count);
    MUST(c, cudaStreamBeginCaptureToGraph(NULL, graph, NULL, NULL, 0, cudaStreamCaptureModeGlobal));
    MUST(c, cudaMemsetAsync(memory + 1, 2, 1, NULL));
    MUST(c, cudaStreamEndCapture(NULL, &graph));
    MUST(c, cudaGraphGetNodes(graph, NULL, &count));
    answer_number(c, "nodes", (int64_t)count);
    conformance_keep_graph(c, graph);
}

static void per_thread_graph(struct conformance *c) {
    cudaGraphInstantiateParams parameters = {.flags = cudaGraphInstantiateFlagUpload};
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = NULL;
    cudaGraphExec_t exec = NULL;
    MUST(c, cudaGraphAddEmptyNode(&node, graph, NULL, 0));
    MUST(c, cudaGraphInstantiateWithParams(&exec, graph, &parameters));
    conformance_keep_graph_exec(c, exec);
    conformance_gate(c, cudaStreamPerThread);
    MUST(c, cudaGraphUpload(exec, NULL));
    MUST(c, cudaGraphLaunch(exec, NULL));
    answer_code(c, "query", cudaStreamQuery(cudaStreamPerThread));
    answer_code(c, "synchronize", cudaStreamSynchronize(cudaStreamPerThread));
}

// Of a driver call that takes a stream there are two functions.
static void per_thread_entry_point(struct conformance *c) {
    void *by_default = NULL, *legacy = NULL;
    MUST(c, cudaGetDriverEntryPointByVersion("cuMemsetD32Async", &by_default, 12000,
                                             cudaEnableDefault, NULL));
    MUST(c, cudaGetDriverEntryPointByVersion("cuMemsetD32Async", &legacy, 12000,
                                             cudaEnableLegacyStream, NULL));
    answer_yes(c, "two", by_default != NULL && legacy != NULL && by_default != legacy);
}

const struct conformance_case conformance__cases_per_thread[] = {
    CASE("per-thread-zero", "0", VERIFIED, per_thread_zero,
        "stream 0 means the thread's own stream",
        "before=0 query=600 synchronize=0 after=1", NULL),
    CASE("per-thread-legacy-is-named", "0", VERIFIED, per_thread_legacy_is_named,
        "the legacy stream has to be named",
        "zero=0 legacy=600", NULL),
    CASE("per-thread-copies", "0", VERIFIED, per_thread_copies,
        "the variants of copies and fills do what the plain calls do",
        "copied=1 filled=2 between=0 async=3", NULL),
    CASE("per-thread-copy-is-no-barrier", "0", VERIFIED, per_thread_copy_is_no_barrier,
        "a plain copy does not wait for blocking streams",
        "blocking=pending", NULL),
    CASE("per-thread-stream-calls", "0", VERIFIED, per_thread_stream_calls,
        "calls that take a stream take 0 for the thread's own",
        "flags=0 priority=0 status=0 behind=pending own=pending", NULL),
    CASE("per-thread-functions", "0", VERIFIED, per_thread_functions,
        "host functions and callbacks too",
        "callback=1", NULL),
    CASE("per-thread-pool", "0", VERIFIED, per_thread_pool,
        "stream-ordered memory too",
        "query=600 destroy=0", NULL),
    CASE("per-thread-capture", "0", VERIFIED, per_thread_capture,
        "the thread's own stream captures",
        "status=1 count=1 roots=2 nodes=3", NULL),
    CASE("per-thread-graph", "0", VERIFIED, per_thread_graph,
        "graphs are launched in it",
        "query=600 synchronize=0", NULL),
    CASE("per-thread-entry-point", "0", VERIFIED, per_thread_entry_point,
        "driver calls found by name are the variants, unless the legacy ones are asked for",
        "two=yes", NULL),
    {0},
};
