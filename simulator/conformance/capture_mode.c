// Section 7.1: which calls a capture refuses, by the mode of the calling thread and those of the
// captures that run.
#include "simulator/conformance/graph_cases.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const mode_words[MODE_COUNT] = {"global", "thread-local", "relaxed"};

static enum cudaStreamCaptureStatus status_of(cudaStream_t stream) {
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    (void)cudaStreamIsCapturing(stream, &status);
    return status;
}

// Ends the capture, whatever became of it.
static void capture_drop(cudaStream_t stream) {
    cudaGraph_t graph = NULL;
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess)
        (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
}

// An unsafe call.
static cudaError_t malloc_try(void) {
    void *pointer = NULL;
    const cudaError_t error = cudaMalloc(&pointer, BYTES);
    if (error == cudaSuccess) {
        const enum cudaStreamCaptureMode mode = mode_exchange(cudaStreamCaptureModeRelaxed);
        (void)cudaFree(pointer);
        (void)mode_exchange(mode);
    }
    (void)cudaGetLastError();
    return error;
}

// --- The mode of a thread ---

static void mode_in_thread(struct conformance *c) {
    answer_number(c, "thread", mode_exchange(cudaStreamCaptureModeGlobal));
}

static void mode_of_each_thread(struct conformance *c) {
    answer_number(c, "first", mode_exchange(cudaStreamCaptureModeRelaxed));
    conformance_in_thread(c, mode_in_thread);
    answer_number(c, "own", mode_exchange(cudaStreamCaptureModeGlobal));
}

static void mode_exchange_bad(struct conformance *c) {
    enum cudaStreamCaptureMode mode = (enum cudaStreamCaptureMode)3;
    answer_code(c, "null", cudaThreadExchangeStreamCaptureMode(NULL));
    answer_code(c, "bad", cudaThreadExchangeStreamCaptureMode(&mode));
    answer_number(c, "kept", mode_exchange(cudaStreamCaptureModeGlobal));
}

static void mode_of_capture_is_not_the_threads(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    answer_number(c, "mode", mode_exchange(cudaStreamCaptureModeGlobal));
}

// --- One capture: of this thread, or of another one ---

// The code of an unsafe call of a thread in MODE, by the mode of its own capture.
static void answer_own(struct conformance *c, enum cudaStreamCaptureMode mode) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    (void)mode_exchange(mode);
    for (int i = 0; i < MODE_COUNT; ++i) {
        MUST(c, cudaStreamBeginCapture(stream, capture_modes[i]));
        answer_code(c, mode_words[i], malloc_try());
        answer_status(c, "capture", stream);
        capture_drop(stream);
    }
}

static void own_capture_global(struct conformance *c) {
    answer_own(c, cudaStreamCaptureModeGlobal);
}

static void own_capture_thread_local(struct conformance *c) {
    answer_own(c, cudaStreamCaptureModeThreadLocal);
}

static void own_capture_relaxed(struct conformance *c) {
    answer_own(c, cudaStreamCaptureModeRelaxed);
}

// What the other thread does and sees. It is joined before anybody looks.
static struct {
    enum cudaStreamCaptureMode mode; // of the thread
    bool captures;                   // it has a capture of its own, in
    enum cudaStreamCaptureMode own;  // this mode,
    cudaStream_t stream;             // in this stream
    cudaError_t begin, malloc;
    enum cudaStreamCaptureStatus status;
} other;

static void other_runs(struct conformance *c) {
    (void)c;
    (void)mode_exchange(other.mode);
    other.begin = other.captures ? cudaStreamBeginCapture(other.stream, other.own) : cudaSuccess;
    other.malloc = malloc_try();
    other.status = other.captures ? status_of(other.stream) : cudaStreamCaptureStatusNone;
    if (other.captures)
        capture_drop(other.stream);
}

static void answer_other(struct conformance *c, enum cudaStreamCaptureMode mode) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    for (int i = 0; i < MODE_COUNT; ++i) {
        MUST(c, cudaStreamBeginCapture(stream, capture_modes[i]));
        other.mode = mode;
        other.captures = false;
        conformance_in_thread(c, other_runs);
        answer_code(c, mode_words[i], other.malloc);
        answer_status(c, "capture", stream);
        capture_drop(stream);
    }
}

static void other_capture_global(struct conformance *c) {
    answer_other(c, cudaStreamCaptureModeGlobal);
}

static void other_capture_thread_local(struct conformance *c) {
    answer_other(c, cudaStreamCaptureModeThreadLocal);
}

static void other_capture_relaxed(struct conformance *c) {
    answer_other(c, cudaStreamCaptureModeRelaxed);
}

// --- Two threads with a capture each, of which the other one makes the call ---

// As "THIS-OTHER=CODE", or with STATUSES "THIS-OTHER=STATUS,STATUS".
static void answer_pairs(struct conformance *c, enum cudaStreamCaptureMode mode, bool statuses) {
    static const char letters[] = "gtr";
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    other.stream = conformance_stream(c, cudaStreamNonBlocking);
    other.mode = mode;
    other.captures = true;
    for (int i = 0; i < MODE_COUNT * MODE_COUNT; ++i) {
        char label[4] = {letters[i / MODE_COUNT], '-', letters[i % MODE_COUNT]}, word[8];
        MUST(c, cudaStreamBeginCapture(stream, capture_modes[i / MODE_COUNT]));
        other.own = capture_modes[i % MODE_COUNT];
        conformance_in_thread(c, other_runs);
        MUST(c, other.begin);
        snprintf(word, sizeof word, "%d,%d", status_of(stream), other.status);
        if (statuses)
            answer_word(c, label, word);
        else
            answer_code(c, label, other.malloc);
        capture_drop(stream);
    }
}

static void pair_global(struct conformance *c) {
    answer_pairs(c, cudaStreamCaptureModeGlobal, false);
}

static void pair_thread_local(struct conformance *c) {
    answer_pairs(c, cudaStreamCaptureModeThreadLocal, false);
}

static void pair_relaxed(struct conformance *c) {
    answer_pairs(c, cudaStreamCaptureModeRelaxed, false);
}

static void pair_global_statuses(struct conformance *c) {
    answer_pairs(c, cudaStreamCaptureModeGlobal, true);
}

static void pair_thread_local_statuses(struct conformance *c) {
    answer_pairs(c, cudaStreamCaptureModeThreadLocal, true);
}

static void pair_relaxed_statuses(struct conformance *c) {
    answer_pairs(c, cudaStreamCaptureModeRelaxed, true);
}

static void refusal_spares_relaxed(struct conformance *c) {
    cudaStream_t one = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t two = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    MUST(c, cudaStreamBeginCapture(two, cudaStreamCaptureModeRelaxed));
    answer_code(c, "malloc", malloc_try());
    answer_status(c, "thread-local", one);
    answer_status(c, "relaxed", two);
}

// --- Unsafe calls ---

// CALL while a NonBlocking STREAM of this thread is captured in global mode.
#define ANSWER_UNSAFE(c, stream, label, call)   \
    do {                                        \
        MUST((c), capture_begin(stream));       \
        answer_code((c), (label), (call));      \
        answer_status((c), "capture", (stream)); \
        capture_drop(stream);                   \
    } while (0)

static void unsafe_malloc(struct conformance *c) {
    void *pointer;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    ANSWER_UNSAFE(c, stream, "malloc", cudaMalloc(&pointer, BYTES));
    answer_code(c, "after", malloc_try());
}

static void unsafe_memory(struct conformance *c) {
    void *device = conformance_device_memory(c, BYTES), *pinned;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    ANSWER_UNSAFE(c, stream, "free", cudaFree(device));
    ANSWER_UNSAFE(c, stream, "host-alloc", cudaHostAlloc(&pinned, BYTES, cudaHostAllocDefault));
    ANSWER_UNSAFE(c, stream, "malloc-host", cudaMallocHost(&pinned, BYTES));
    pinned = conformance_pinned_memory(c, BYTES);
    ANSWER_UNSAFE(c, stream, "free-host", cudaFreeHost(pinned));
}

static void unsafe_host_register(struct conformance *c) {
    void *host = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    if (posix_memalign(&host, 4096, 4096) != 0)
        return;
    ANSWER_UNSAFE(c, stream, "register", cudaHostRegister(host, 4096, 0));
    free(host);
}

static void unsafe_events(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t idle = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_mark(c, idle);
    ANSWER_UNSAFE(c, stream, "query", cudaEventQuery(event));
    ANSWER_UNSAFE(c, stream, "synchronize", cudaEventSynchronize(event));
}

static void unsafe_streams(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t idle = conformance_stream(c, cudaStreamNonBlocking);
    ANSWER_UNSAFE(c, stream, "query", cudaStreamQuery(idle));
    ANSWER_UNSAFE(c, stream, "synchronize", cudaStreamSynchronize(idle));
}

static void unsafe_create(struct conformance *c) {
    const struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                                .location = {.type = cudaMemLocationTypeDevice}};
    cudaMemPool_t pool;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking), made;
    ANSWER_UNSAFE(c, stream, "stream", cudaStreamCreate(&made));
    ANSWER_UNSAFE(c, stream, "flags", cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    ANSWER_UNSAFE(c, stream, "priority", cudaStreamCreateWithPriority(&made, 0, 0));
    ANSWER_UNSAFE(c, stream, "pool", cudaMemPoolCreate(&pool, &properties));
}

static void unsafe_pools(struct conformance *c) {
    uint64_t value = 0;
    cudaMemPool_t pool = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaDeviceGetDefaultMemPool(&pool, 0));
    ANSWER_UNSAFE(c, stream, "get",
                  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value));
    ANSWER_UNSAFE(c, stream, "set",
                  cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value));
    ANSWER_UNSAFE(c, stream, "trim", cudaMemPoolTrimTo(pool, 0));
}

static void unsafe_exec_destroy(struct conformance *c) {
    cudaGraphExec_t exec = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaGraphInstantiate(&exec, conformance_graph(c), 0));
    ANSWER_UNSAFE(c, stream, "destroy", cudaGraphExecDestroy(exec));
    answer_code(c, "after", cudaGraphExecDestroy(exec));
}

static void unsafe_copy(struct conformance *c) {
    void *device = conformance_device_memory(c, BYTES);
    void *pinned = conformance_pinned_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMemset(device, 3, BYTES));
    MUST(c, cudaDeviceSynchronize());
    ANSWER_UNSAFE(c, stream, "copy", cudaMemcpy(pinned, device, BYTES, cudaMemcpyDeviceToHost));
}

// --- A thread in relaxed mode may make them ---

static void relaxed_makes_unsafe_calls(struct conformance *c) {
    cudaMemPool_t pool = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking), made = NULL;
    cudaStream_t idle = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_mark(c, idle);
    cudaGraphExec_t exec = NULL;
    MUST(c, cudaGraphInstantiate(&exec, conformance_graph(c), 0));
    MUST(c, capture_begin(stream));
    (void)mode_exchange(cudaStreamCaptureModeRelaxed);
    answer_code(c, "malloc", malloc_try());
    answer_code(c, "event", cudaEventQuery(event));
    answer_code(c, "stream", cudaStreamSynchronize(idle));
    answer_code(c, "create", cudaStreamCreate(&made));
    answer_code(c, "destroy", cudaStreamDestroy(made));
    answer_code(c, "pool", cudaDeviceGetDefaultMemPool(&pool, 0));
    answer_code(c, "trim", cudaMemPoolTrimTo(pool, 0));
    answer_code(c, "exec", cudaGraphExecDestroy(exec));
    answer_status(c, "capture", stream);
}

static void relaxed_frees(struct conformance *c) {
    void *device = NULL, *pinned = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    (void)mode_exchange(cudaStreamCaptureModeRelaxed);
    MUST(c, cudaMalloc(&device, BYTES));
    MUST(c, cudaHostAlloc(&pinned, BYTES, cudaHostAllocDefault));
    answer_code(c, "free", cudaFree(device));
    answer_code(c, "free-host", cudaFreeHost(pinned));
    answer_status(c, "capture", stream);
}

// What a caching allocator does when it has no memory left during a capture.
static void habit_malloc_in_capture(struct conformance *c) {
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    const enum cudaStreamCaptureMode mode = mode_exchange(cudaStreamCaptureModeRelaxed);
    answer_code(c, "malloc", cudaMalloc(&pointer, BYTES));
    (void)mode_exchange(mode);
    MUST(c, cudaMemsetAsync(pointer, 5, BYTES, stream));
    cudaGraphExec_t exec = conformance_graph_exec(c, capture_end(c, stream));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(pointer));
    MUST(c, cudaFree(pointer));
}

// --- Safe calls ---

static void safe_questions(struct conformance *c) {
    int device = 99;
    enum cudaStreamCaptureStatus status;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    answer_code(c, "get-device", cudaGetDevice(&device));
    answer_code(c, "set-device", cudaSetDevice(0));
    answer_code(c, "last-error", cudaGetLastError());
    answer_code(c, "peek", cudaPeekAtLastError());
    answer_yes(c, "name", cudaGetErrorName(cudaErrorUnknown) != NULL);
    answer_code(c, "info",
                cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, NULL, NULL));
    (void)mode_exchange(mode_exchange(cudaStreamCaptureModeRelaxed));
    answer_status(c, "capture", stream);
}

static void safe_events(struct conformance *c) {
    cudaEvent_t event, flagged;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t idle = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t waiting = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    answer_code(c, "create", cudaEventCreate(&event));
    answer_code(c, "flags", cudaEventCreateWithFlags(&flagged, cudaEventDisableTiming));
    answer_code(c, "record", cudaEventRecord(event, idle));
    answer_code(c, "wait", cudaStreamWaitEvent(waiting, event, 0));
    answer_code(c, "captured", cudaEventRecord(flagged, stream));
    answer_code(c, "destroy", cudaEventDestroy(event));
    answer_code(c, "destroy", cudaEventDestroy(flagged));
    answer_status(c, "capture", stream);
}

static void nothing(void *unused) { (void)unused; }

static void safe_work(struct conformance *c) {
    unsigned char *device = conformance_device_memory(c, 2 * BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t idle = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMemset(device, 0, 2 * BYTES));
    MUST(c, cudaDeviceSynchronize());
    MUST(c, capture_begin(stream));
    answer_code(c, "captured", cudaMemsetAsync(device, 1, BYTES, stream));
    answer_code(c, "fill", cudaMemsetAsync(device + BYTES, 2, BYTES, idle));
    answer_code(c, "host", cudaLaunchHostFunc(idle, nothing, NULL));
    answer_status(c, "capture", stream);
    (void)capture_end(c, stream);
    answer_number(c, "byte", conformance_byte(device));
    answer_number(c, "eager", conformance_byte(device + BYTES));
}

static void safe_graph_building(struct conformance *c) {
    cudaGraph_t graph = NULL;
    cudaGraphNode_t nodes[2];
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    answer_code(c, "create", cudaGraphCreate(&graph, 0));
    nodes[0] = empty_node(c, graph, NULL, 0);
    nodes[1] = empty_node(c, graph, NULL, 0);
    answer_code(c, "edge", cudaGraphAddDependencies(graph, &nodes[0], &nodes[1], NULL, 1));
    answer_edge_count(c, "edges", graph);
    answer_code(c, "destroy", cudaGraphDestroy(graph));
    answer_status(c, "capture", stream);
}

static void safe_graph_launch(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t idle = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    (void)fill_node(c, graph, NULL, 0, memory, 4);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    MUST(c, capture_begin(stream));
    answer_code(c, "launch", cudaGraphLaunch(exec, idle));
    answer_status(c, "capture", stream);
    (void)capture_end(c, stream);
    answer_number(c, "byte", conformance_byte(memory));
}

static void virtual_memory_is_not_captured(struct conformance *c) {
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    const size_t size = (size_t)2 << 20;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    answer_number(c, "reserve", cuMemAddressReserve(&address, size, 0, 0, 0));
    answer_number(c, "create", cuMemCreate(&handle, size, &properties, 0));
    answer_number(c, "map", cuMemMap(address, size, 0, handle, 0));
    answer_number(c, "access", cuMemSetAccess(address, size, &access, 1));
    answer_number(c, "unmap", cuMemUnmap(address, size));
    answer_number(c, "release", cuMemRelease(handle));
    answer_number(c, "free", cuMemAddressFree(address, size));
    answer_status(c, "capture", stream);
    answer_node_count(c, "nodes", capture_end(c, stream));
}

const struct conformance_case conformance__cases_capture_mode[] = {
    CASE("mode-of-each-thread", "7.1", VERIFIED, mode_of_each_thread,
        "each thread has a mode, global at first; an exchange gives the former one",
        "first=0 thread=0 own=2", NULL),
    CASE("mode-exchange-bad", "7.1", VERIFIED, mode_exchange_bad,
        "no mode or an unknown one: 1, and nothing changes",
        "null=1 bad=1 kept=0", NULL),
    CASE("mode-of-capture", "7.1", VERIFIED, mode_of_capture_is_not_the_threads,
        "the mode of a capture is not that of the thread",
        "mode=0", NULL),
    CASE("own-capture-global", "7.1", VERIFIED, own_capture_global,
        "mode global: unsafe calls are refused beside an own capture that is not relaxed: 900, and "
        "it is invalidated",
        "global=900 capture=invalidated thread-local=900 capture=invalidated relaxed=0 "
        "capture=active", NULL),
    CASE("own-capture-thread-local", "7.1", VERIFIED, own_capture_thread_local,
        "mode thread-local: the same",
        "global=900 capture=invalidated thread-local=900 capture=invalidated relaxed=0 "
        "capture=active", NULL),
    CASE("own-capture-relaxed", "7.1", VERIFIED, own_capture_relaxed,
        "mode relaxed: no unsafe call is refused",
        "global=0 capture=active thread-local=0 capture=active relaxed=0 capture=active", NULL),
    CASE("other-capture-global", "7.1", VERIFIED, other_capture_global,
        "mode global: unsafe calls are refused beside another thread's global capture: 900, and it "
        "is invalidated",
        "global=900 capture=invalidated thread-local=0 capture=active relaxed=0 capture=active",
        NULL),
    CASE("other-capture-thread-local", "7.1", VERIFIED, other_capture_thread_local,
        "mode thread-local: another thread's capture refuses nothing",
        "global=0 capture=active thread-local=0 capture=active relaxed=0 capture=active", NULL),
    CASE("other-capture-relaxed", "7.1", VERIFIED, other_capture_relaxed,
        "mode relaxed: the same",
        "global=0 capture=active thread-local=0 capture=active relaxed=0 capture=active", NULL),
    CASE("pair-global", "7.1", VERIFIED, pair_global,
        "captures of two threads, the caller's (second) in mode global: refused beside an own one "
        "that is not relaxed, or another one that is global",
        "g-g=900 g-t=900 g-r=900 t-g=900 t-t=900 t-r=0 r-g=900 r-t=900 r-r=0", NULL),
    CASE("pair-thread-local", "7.1", VERIFIED, pair_thread_local,
        "the caller in mode thread-local: refused beside an own one that is not relaxed",
        "g-g=900 g-t=900 g-r=0 t-g=900 t-t=900 t-r=0 r-g=900 r-t=900 r-r=0", NULL),
    CASE("pair-relaxed", "7.1", VERIFIED, pair_relaxed,
        "the caller in mode relaxed: never refused",
        "g-g=0 g-t=0 g-r=0 t-g=0 t-t=0 t-r=0 r-g=0 r-t=0 r-r=0", NULL),
    CASE("pair-global-statuses", "7.1", UNVERIFIED, pair_global_statuses,
        "what a refused call in mode global invalidates: an own capture that is not relaxed, other "
        "threads' global ones, and no others",
        "g-g=2,2 g-t=2,2 g-r=2,1 t-g=1,2 t-t=1,2 t-r=1,1 r-g=1,2 r-t=1,2 r-r=1,1", NULL),
    CASE("pair-thread-local-statuses", "7.1", UNVERIFIED, pair_thread_local_statuses,
        "in mode thread-local the own capture",
        "g-g=1,2 g-t=1,2 g-r=1,1 t-g=1,2 t-t=1,2 t-r=1,1 r-g=1,2 r-t=1,2 r-r=1,1", NULL),
    CASE("pair-relaxed-statuses", "7.1", VERIFIED, pair_relaxed_statuses,
        "in mode relaxed none",
        "g-g=1,1 g-t=1,1 g-r=1,1 t-g=1,1 t-t=1,1 t-r=1,1 r-g=1,1 r-t=1,1 r-r=1,1", NULL),
    CASE("refusal-spares-relaxed", "7.1", UNVERIFIED, refusal_spares_relaxed,
        "a refused call spares the thread's own relaxed captures",
        "malloc=900 thread-local=invalidated relaxed=active", NULL),
    CASE("unsafe-malloc", "7.1", VERIFIED, unsafe_malloc,
        "cudaMalloc is unsafe: 900; after the capture it succeeds",
        "malloc=900 capture=invalidated after=0", NULL),
    CASE("unsafe-memory", "7.1", UNVERIFIED, unsafe_memory,
        "unsafe: what frees memory, or takes or frees page-locked memory",
        "free=900 capture=invalidated host-alloc=900 capture=invalidated malloc-host=900 "
        "capture=invalidated free-host=900 capture=invalidated", NULL),
    CASE("unsafe-host-register", "7.1", UNVERIFIED, unsafe_host_register,
        "unsafe: cudaHostRegister",
        "register=900 capture=invalidated", NULL),
    CASE("unsafe-events", "7.1", VERIFIED, unsafe_events,
        "unsafe: to ask about or wait for an event that is not captured",
        "query=900 capture=invalidated synchronize=900 capture=invalidated", NULL),
    CASE("unsafe-streams", "7.1", VERIFIED, unsafe_streams,
        "unsafe: to ask about or wait for a stream that does not capture",
        "query=900 capture=invalidated synchronize=900 capture=invalidated", NULL),
    CASE("unsafe-create", "7.1", UNVERIFIED, unsafe_create,
        "unsafe: to create streams and pools",
        "stream=900 capture=invalidated flags=900 capture=invalidated priority=900 "
        "capture=invalidated pool=900 capture=invalidated", NULL),
    CASE("unsafe-pools", "7.1", VERIFIED, unsafe_pools,
        "unsafe: attributes of pools, and trimming one",
        "get=900 capture=invalidated set=900 capture=invalidated trim=900 capture=invalidated",
        NULL),
    CASE("unsafe-exec-destroy", "7.1", VERIFIED, unsafe_exec_destroy,
        "unsafe: cudaGraphExecDestroy; the executable stays",
        "destroy=900 capture=invalidated after=0", NULL),
    CASE("unsafe-copy", "7.1", UNVERIFIED, unsafe_copy,
        "unsafe: a blocking copy while a NonBlocking stream captures",
        "copy=900 capture=invalidated", "copy=0 capture=active"),
    CASE("relaxed-makes-unsafe-calls", "7.1", VERIFIED, relaxed_makes_unsafe_calls,
        "a thread in mode relaxed makes them beside its global capture, which goes on",
        "malloc=0 event=0 stream=0 create=0 destroy=0 pool=0 trim=0 exec=0 capture=active", NULL),
    CASE("relaxed-frees", "7.1", UNVERIFIED, relaxed_frees,
        "frees too, though they wait for the device",
        "free=0 free-host=0 capture=active", NULL),
    CASE("habit-malloc-in-capture", "7.1", VERIFIED, habit_malloc_in_capture,
        "cudaMalloc under a relaxed exchange serves work of the capture",
        "malloc=0 byte=5", NULL),
    CASE("safe-questions", "7.1", VERIFIED, safe_questions,
        "safe: the current device, errors, capture information, the thread's mode",
        "get-device=0 set-device=0 last-error=0 peek=0 name=yes info=0 capture=active", NULL),
    CASE("safe-events", "7.1", VERIFIED, safe_events,
        "safe: to create, record, wait for and destroy events",
        "create=0 flags=0 record=0 wait=0 captured=0 destroy=0 destroy=0 capture=active", NULL),
    CASE("safe-work", "7.1", VERIFIED, safe_work,
        "safe: work, which becomes nodes in streams that capture and runs in others",
        "captured=0 fill=0 host=0 capture=active byte=0 eager=2", NULL),
    CASE("safe-graph-building", "7.1", VERIFIED, safe_graph_building,
        "safe: to build graphs",
        "create=0 edge=0 edges=1 destroy=0 capture=active", NULL),
    CASE("safe-graph-launch", "7.1", UNVERIFIED, safe_graph_launch,
        "safe: a graph launched in a stream that does not capture",
        "launch=0 capture=active byte=4", NULL),
    CASE("virtual-memory-in-capture", "4", UNVERIFIED, virtual_memory_is_not_captured,
        "virtual memory calls are not refused in a capture: they act at once and are no nodes",
        "reserve=0 create=0 map=0 access=0 unmap=0 release=0 free=0 capture=active nodes=0", NULL),
    {0},
};
