// What is refused while captures run, with its code and what becomes of the capture: in every
// combination of modes, from the capture's thread and from another one.
#include "base/check.h"
#include "base/thread.h"
#include "simulator/sim.h"

#include <cuda.h>
#include <string.h>

static cudaStream_t s, t, blocking, idle;
static cudaEvent_t e, recorded, never;
static void *device_bytes, *pinned, *pool_block;
static char pageable[64], registered[8192];
static cudaGraph_t graph; // a node
static cudaGraphExec_t exec;
static cudaMemPool_t pool;

static void start(void) {
    sim_reset();
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&idle, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreate(&blocking), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&e), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&recorded), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&never), cudaSuccess);
    BASE_CHECK_EQ(cudaEventRecord(recorded, idle), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&device_bytes, 4096), cudaSuccess);
    BASE_CHECK_EQ(cudaHostAlloc(&pinned, 4096, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaMallocAsync(&pool_block, 64, idle), cudaSuccess);
    cudaGraphNode_t node;
    BASE_CHECK_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphAddEmptyNode(&node, graph, NULL, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

static enum cudaStreamCaptureStatus status_of(cudaStream_t stream) {
    enum cudaStreamCaptureStatus status;
    BASE_CHECK_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
    return status;
}

static void begin_in(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    BASE_CHECK_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
}

static void begin(cudaStream_t stream) { begin_in(stream, cudaStreamCaptureModeRelaxed); }

static enum cudaStreamCaptureMode exchange(enum cudaStreamCaptureMode mode) {
    BASE_CHECK_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    return mode;
}

// Ends the capture of STREAM, which must be lost.
static void lost(cudaStream_t stream) {
    cudaGraph_t captured = (cudaGraph_t)(uintptr_t)1;
    BASE_CHECK_EQ(status_of(stream), cudaStreamCaptureStatusInvalidated);
    BASE_CHECK_EQ(cudaStreamEndCapture(stream, &captured), cudaErrorStreamCaptureInvalidated);
    BASE_CHECK(captured == NULL);
    BASE_CHECK_EQ(status_of(stream), cudaStreamCaptureStatusNone);
}

// Ends the capture of STREAM, which must run.
static void whole(cudaStream_t stream) {
    cudaGraph_t captured = NULL;
    BASE_CHECK_EQ(status_of(stream), cudaStreamCaptureStatusActive);
    BASE_CHECK_EQ(cudaStreamEndCapture(stream, &captured), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(captured), cudaSuccess);
}

static void host_body(void *argument) { (void)argument; }
static void kernel_body(const void *argument) { (void)argument; }
static void callback_body(cudaStream_t stream, cudaError_t status, void *argument) {
    (void)stream;
    (void)status;
    (void)argument;
}

// --- Unsafe calls ---

static cudaError_t call_malloc(void) {
    void *pointer;
    return cudaMalloc(&pointer, 64);
}
static cudaError_t call_free(void) { return cudaFree(device_bytes); }
static cudaError_t call_free_pool_block(void) { return cudaFree(pool_block); }
static cudaError_t call_host_alloc(void) {
    void *pointer;
    return cudaHostAlloc(&pointer, 64, 0);
}
static cudaError_t call_malloc_host(void) {
    void *pointer;
    return cudaMallocHost(&pointer, 64);
}
static cudaError_t call_free_host(void) { return cudaFreeHost(pinned); }
static cudaError_t call_register(void) { return cudaHostRegister(registered, 4096, 0); }
static cudaError_t call_unregister(void) {
    // Registered in a mode that lets it pass.
    const enum cudaStreamCaptureMode mode = exchange(cudaStreamCaptureModeRelaxed);
    BASE_CHECK_EQ(cudaHostRegister(registered, 4096, 0), cudaSuccess);
    (void)exchange(mode);
    return cudaHostUnregister(registered);
}
static cudaError_t call_malloc_managed(void) {
    void *pointer;
    const cudaError_t error = cudaMallocManaged(&pointer, 64, cudaMemAttachGlobal);
    return error == cudaErrorNotSupported ? cudaSuccess : error; // beside captures as ever
}
static cudaError_t call_stream_create(void) {
    cudaStream_t stream;
    return cudaStreamCreate(&stream);
}
static cudaError_t call_stream_create_priority(void) {
    cudaStream_t stream;
    return cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0);
}
static cudaError_t call_pool_create(void) {
    const struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                                .location = {cudaMemLocationTypeDevice, 0}};
    cudaMemPool_t made;
    return cudaMemPoolCreate(&made, &properties);
}
static cudaError_t call_pool_set(void) {
    uint64_t value = 0;
    return cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value);
}
static cudaError_t call_pool_get(void) {
    uint64_t value;
    return cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value);
}
static cudaError_t call_pool_trim(void) { return cudaMemPoolTrimTo(pool, 0); }
static cudaError_t call_event_query(void) { return cudaEventQuery(recorded); }
static cudaError_t call_event_query_never(void) { return cudaEventQuery(never); }
static cudaError_t call_event_synchronize(void) { return cudaEventSynchronize(recorded); }
static cudaError_t call_event_elapsed(void) {
    float milliseconds;
    return cudaEventElapsedTime(&milliseconds, recorded, recorded);
}
static cudaError_t call_stream_query(void) { return cudaStreamQuery(idle); }
static cudaError_t call_stream_synchronize(void) { return cudaStreamSynchronize(idle); }
static cudaError_t call_legacy_query(void) { return cudaStreamQuery(NULL); }
static cudaError_t call_copy(void) {
    return cudaMemcpy(pinned, device_bytes, 8, cudaMemcpyDeviceToHost);
}
static cudaError_t call_copy_2d(void) {
    return cudaMemcpy2D(device_bytes, 64, pageable, 16, 8, 2, cudaMemcpyHostToDevice);
}
static cudaError_t call_copy_within(void) {
    return cudaMemcpy(device_bytes, (char *)device_bytes + 64, 8, cudaMemcpyDeviceToDevice);
}
static cudaError_t call_copy_ptds(void) {
    return cudaMemcpy_ptds(pinned, device_bytes, 8, cudaMemcpyDeviceToHost);
}
static cudaError_t call_copy_peer(void) {
    return cudaMemcpyPeer(device_bytes, 0, (char *)device_bytes + 64, 0, 8);
}

static cudaError_t call_exec_destroy(void) { return cudaGraphExecDestroy(exec); }

static const struct {
    const char *name;
    cudaError_t (*call)(void);
} unsafe_calls[] = {
    {"cudaMalloc", call_malloc},
    {"cudaFree", call_free},
    {"cudaFree of a pool's block", call_free_pool_block},
    {"cudaHostAlloc", call_host_alloc},
    {"cudaMallocHost", call_malloc_host},
    {"cudaFreeHost", call_free_host},
    {"cudaHostRegister", call_register},
    {"cudaHostUnregister", call_unregister},
    {"cudaMallocManaged", call_malloc_managed},
    {"cudaStreamCreate", call_stream_create},
    {"cudaStreamCreateWithPriority", call_stream_create_priority},
    {"cudaMemPoolCreate", call_pool_create},
    {"cudaMemPoolSetAttribute", call_pool_set},
    {"cudaMemPoolGetAttribute", call_pool_get},
    {"cudaMemPoolTrimTo", call_pool_trim},
    {"cudaEventQuery", call_event_query},
    {"cudaEventQuery of a new event", call_event_query_never},
    {"cudaEventSynchronize", call_event_synchronize},
    {"cudaEventElapsedTime", call_event_elapsed},
    {"cudaStreamQuery", call_stream_query},
    {"cudaStreamSynchronize", call_stream_synchronize},
    {"cudaStreamQuery of the legacy stream", call_legacy_query},
    {"cudaMemcpy", call_copy},
    {"cudaMemcpy2D", call_copy_2d},
    {"cudaMemcpy within the device", call_copy_within},
    {"cudaMemcpy in the thread's stream", call_copy_ptds},
    {"cudaMemcpyPeer", call_copy_peer},
    {"cudaGraphExecDestroy", call_exec_destroy},
};
#define UNSAFE_COUNT (sizeof unsafe_calls / sizeof unsafe_calls[0])

struct attempt {
    enum cudaStreamCaptureMode mode; // of the thread
    cudaError_t (*call)(void);
    cudaError_t answer;
};

static void attempt_run(void *argument) {
    struct attempt *attempt = argument;
    const enum cudaStreamCaptureMode former = exchange(attempt->mode);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess); // for driver calls
    attempt->answer = attempt->call();
    (void)exchange(former);
}

static cudaError_t attempt(bool in_other_thread, enum cudaStreamCaptureMode mode,
                           cudaError_t (*call)(void)) {
    struct attempt it = {mode, call, cudaErrorUnknown};
    struct base_thread thread;
    if (!in_other_thread) {
        attempt_run(&it);
        return it.answer;
    }
    base_thread_start(&thread, attempt_run, &it);
    base_thread_join(&thread);
    return it.answer;
}

#define G cudaStreamCaptureModeGlobal
#define L cudaStreamCaptureModeThreadLocal
#define R cudaStreamCaptureModeRelaxed

// By the table of the contract: [thread's mode][capture's mode].
static const bool own_refused[3][3] = {[G] = {[G] = true, [L] = true, [R] = false},
                                       [L] = {[G] = true, [L] = true, [R] = false},
                                       [R] = {false, false, false}};
static const bool other_refused[3][3] = {
    [G] = {[G] = true, [L] = false, [R] = false}, [L] = {false}, [R] = {false}};

static void unsafe_calls_are_refused_by_the_modes(void) {
    for (size_t i = 0; i < UNSAFE_COUNT; ++i)
        for (int other = 0; other < 2; ++other)
            for (int thread = 0; thread < 3; ++thread)
                for (int capture = 0; capture < 3; ++capture) {
                    const bool refused =
                        (other ? other_refused : own_refused)[thread][capture];
                    base_check_context("%s, thread %d, mode %d, capture's mode %d",
                                       unsafe_calls[i].name, other, thread, capture);
                    start();
                    begin_in(s, (enum cudaStreamCaptureMode)capture);
                    BASE_CHECK_EQ(attempt(other, (enum cudaStreamCaptureMode)thread,
                                          unsafe_calls[i].call),
                                  refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
                    if (refused)
                        lost(s);
                    else
                        whole(s);
                }
    base_check_context(NULL);
}

static void what_is_refused_is_not_done(void) {
    struct cudaPointerAttributes attributes;
    start();
    const uint64_t used = sim_used_bytes(0);
    begin_in(s, G);
    BASE_CHECK_EQ(call_malloc(), cudaErrorStreamCaptureUnsupported);
    lost(s);
    BASE_CHECK_EQ(sim_used_bytes(0), used);
    begin_in(s, G);
    BASE_CHECK_EQ(call_free(), cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(call_free(), cudaSuccess); // the capture is lost: nothing is in the way
    lost(s);
    BASE_CHECK_EQ(sim_reading("lost-unsafe", "refused"), BASE_OK);
    begin_in(s, G);
    BASE_CHECK_EQ(call_malloc(), cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(call_malloc(), cudaErrorStreamCaptureUnsupported); // until it is ended
    lost(s);
    BASE_CHECK_EQ(call_malloc(), cudaSuccess);
    BASE_CHECK_EQ(sim_reading("lost-unsafe", "allowed"), BASE_OK);
    begin_in(s, G);
    BASE_CHECK_EQ(call_free_host(), cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(cudaPointerGetAttributes(&attributes, pinned), cudaSuccess);
    BASE_CHECK_EQ(attributes.type, cudaMemoryTypeHost);
    lost(s);
}

static void wrong_arguments_are_told_first(void) {
    start();
    begin_in(s, G);
    BASE_CHECK_EQ(cudaMalloc(NULL, 64), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFree(pageable), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFree(NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaFreeHost(pageable), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaHostUnregister(pageable), cudaErrorHostMemoryNotRegistered);
    BASE_CHECK_EQ(cudaMemPoolTrimTo(NULL, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(NULL, 0), cudaErrorInvalidValue);
    whole(s);
}

static void safe_calls_are_safe(void) {
    cudaEvent_t event;
    enum cudaStreamCaptureStatus status;
    cudaGraph_t made;
    CUdeviceptr address;
    int device;
    start();
    BASE_CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    begin_in(s, G);
    BASE_CHECK_EQ(cudaGetDevice(&device), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    BASE_CHECK_EQ(cudaPeekAtLastError(), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamIsCapturing(idle, &status), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamGetCaptureInfo(idle, &status, NULL, NULL, NULL, NULL, NULL),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaStreamIsCapturing(NULL, &status), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    BASE_CHECK_EQ(cudaEventRecord(event, idle), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(idle, event, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaEventDestroy(event), cudaSuccess);
    BASE_CHECK_EQ(cudaMemsetAsync(device_bytes, 1, 8, idle), cudaSuccess);
    BASE_CHECK_EQ(cudaMemsetAsync(device_bytes, 1, 8, blocking), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset(device_bytes, 1, 8), cudaSuccess); // the host does not wait
    BASE_CHECK_EQ(cudaLaunchHostFunc(NULL, host_body, NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphCreate(&made, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(made), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, idle), cudaSuccess);
    // Virtual memory calls act at once.
    BASE_CHECK_EQ(cuMemAddressReserve(&address, 2 << 20, 0, 0, 0), CUDA_SUCCESS);
    BASE_CHECK_EQ(cuMemAddressFree(address, 2 << 20), CUDA_SUCCESS);
    BASE_CHECK_EQ(cudaStreamDestroy(blocking), cudaSuccess);
    whole(s);
}

static void each_capture_in_conflict_is_lost_and_no_other(void) {
    start();
    begin_in(s, L);
    begin_in(t, R);
    begin_in(idle, G);
    BASE_CHECK_EQ(call_malloc(), cudaErrorStreamCaptureUnsupported);
    whole(t);
    lost(s);
    lost(idle);
    begin_in(s, L);
    begin_in(idle, G);
    BASE_CHECK_EQ(attempt(true, G, call_malloc), cudaErrorStreamCaptureUnsupported);
    whole(s);
    lost(idle);
}

static void the_mode_is_exchanged_by_thread(void) {
    enum cudaStreamCaptureMode mode = (enum cudaStreamCaptureMode)3;
    BASE_CHECK_EQ(cudaThreadExchangeStreamCaptureMode(NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaErrorInvalidValue);
    BASE_CHECK_EQ(exchange(R), G);
    BASE_CHECK_EQ(exchange(L), R);
    BASE_CHECK_EQ(exchange(G), L);
}

static void readings_make_some_calls_safe(void) {
    start();
    BASE_CHECK_EQ(sim_reading("sync-copy", "safe"), BASE_OK);
    BASE_CHECK_EQ(sim_reading("stream-create", "safe"), BASE_OK);
    begin_in(s, G);
    memset(pinned, 1, 8);
    BASE_CHECK_EQ(call_copy(), cudaSuccess);
    BASE_CHECK_EQ(call_copy_peer(), cudaSuccess);
    BASE_CHECK_EQ(call_stream_create(), cudaSuccess);
    BASE_CHECK_EQ(call_pool_create(), cudaSuccess);
    whole(s);
    BASE_CHECK_EQ(sim_reading("sync-copy", "unsafe"), BASE_OK);
    BASE_CHECK_EQ(sim_reading("stream-create", "unsafe"), BASE_OK);
}

// --- Refused in any mode ---

static cudaError_t ctx_synchronize(void) { return (cudaError_t)cuCtxSynchronize(); }

static void waits_for_what_captures_are_refused(void) {
    start();
    for (int mode = 0; mode < 3; ++mode) {
        (void)exchange(R);
        begin_in(s, (enum cudaStreamCaptureMode)mode);
        BASE_CHECK_EQ(cudaStreamSynchronize(s), cudaErrorStreamCaptureUnsupported);
        BASE_CHECK_EQ(cudaStreamQuery(s), cudaErrorStreamCaptureUnsupported); // still
        lost(s);
        begin_in(s, (enum cudaStreamCaptureMode)mode);
        BASE_CHECK_EQ(cudaStreamQuery(s), cudaErrorStreamCaptureUnsupported);
        lost(s);
        begin_in(s, (enum cudaStreamCaptureMode)mode); // a joined stream as the origin
        BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamQuery(t), cudaErrorStreamCaptureUnsupported);
        BASE_CHECK_EQ(status_of(t), cudaStreamCaptureStatusInvalidated);
        lost(s);
        BASE_CHECK_EQ(status_of(t), cudaStreamCaptureStatusNone);
        for (int other = 0; other < 2; ++other) {
            begin_in(s, (enum cudaStreamCaptureMode)mode);
            BASE_CHECK_EQ(attempt(other, R, cudaDeviceSynchronize),
                          cudaErrorStreamCaptureUnsupported);
            lost(s);
        }
        BASE_CHECK_EQ(cuInit(0), CUDA_SUCCESS);
        begin_in(s, (enum cudaStreamCaptureMode)mode);
        BASE_CHECK_EQ(attempt(false, R, ctx_synchronize), cudaErrorStreamCaptureUnsupported);
        lost(s);
        (void)exchange(G);
    }
    // A capture that is lost is nobody's concern.
    begin_in(s, G);
    BASE_CHECK_EQ(cudaStreamQuery(s), cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(call_malloc(), cudaSuccess);
    lost(s);
}

static void another_device_can_be_waited_for(void) {
    cudaStream_t other;
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = 2}), BASE_OK);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&e), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreate(&other), cudaSuccess);
    begin(s);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(cudaLaunchHostFunc(NULL, host_body, NULL), cudaSuccess);
    // Once a blocking stream of it takes part, no more.
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(other, e, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaLaunchHostFunc(NULL, host_body, NULL), cudaErrorStreamCaptureImplicit);
    lost(s);
    begin(s);
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(other, e, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
    lost(s);
    // A blocking stream has to do with its own device's legacy stream.
    begin(other);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    BASE_CHECK_EQ(cudaLaunchHostFunc(NULL, host_body, NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamQuery(NULL), cudaSuccess);
    whole(other);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = 1}), BASE_OK);
}

static cudaError_t legacy_launch(void) {
    return sim_launch(NULL, "nothing", kernel_body, NULL, 0);
}
static cudaError_t legacy_copy(void) {
    return cudaMemcpy(pinned, device_bytes, 8, cudaMemcpyDeviceToHost);
}
static cudaError_t legacy_copy_async(void) {
    return cudaMemcpyAsync(pinned, device_bytes, 8, cudaMemcpyDeviceToHost, NULL);
}
static cudaError_t legacy_copy_peer(void) {
    return cudaMemcpyPeer(device_bytes, 0, (char *)device_bytes + 64, 0, 8);
}
static cudaError_t legacy_fill(void) { return cudaMemset(device_bytes, 1, 8); }
static cudaError_t legacy_fill_named(void) {
    return cudaMemsetAsync(device_bytes, 1, 8, cudaStreamLegacy);
}
static cudaError_t legacy_function(void) { return cudaLaunchHostFunc(NULL, host_body, NULL); }
static cudaError_t legacy_callback(void) {
    return cudaStreamAddCallback(NULL, callback_body, NULL, 0);
}
static cudaError_t legacy_record(void) { return cudaEventRecord(never, NULL); }
static cudaError_t legacy_wait(void) { return cudaStreamWaitEvent(NULL, recorded, 0); }
static cudaError_t legacy_alloc(void) {
    void *pointer;
    return cudaMallocAsync(&pointer, 64, NULL);
}
static cudaError_t legacy_free(void) { return cudaFreeAsync(pool_block, NULL); }
static cudaError_t legacy_value(void) {
    return (cudaError_t)cuStreamWriteValue32(NULL, (CUdeviceptr)(uintptr_t)pinned, 1, 0);
}
static cudaError_t legacy_words(void) {
    return (cudaError_t)cuMemsetD32Async((CUdeviceptr)(uintptr_t)device_bytes, 1, 1, NULL);
}
static cudaError_t legacy_graph(void) { return cudaGraphLaunch(exec, NULL); }
static cudaError_t legacy_upload(void) { return cudaGraphUpload(exec, NULL); }
static cudaError_t legacy_query(void) { return cudaStreamQuery(NULL); }
static cudaError_t legacy_synchronize(void) { return cudaStreamSynchronize(cudaStreamLegacy); }

static const struct {
    const char *name;
    cudaError_t (*call)(void);
} legacy_calls[] = {
    {"launch", legacy_launch},       {"copy", legacy_copy},
    {"async copy", legacy_copy_async}, {"peer copy", legacy_copy_peer},
    {"fill", legacy_fill},           {"fill, named", legacy_fill_named},
    {"host function", legacy_function}, {"callback", legacy_callback},
    {"record", legacy_record},       {"wait", legacy_wait},
    {"alloc", legacy_alloc},         {"free", legacy_free},
    {"value", legacy_value},         {"words", legacy_words},
    {"graph", legacy_graph},         {"upload", legacy_upload},
    {"query", legacy_query},         {"synchronize", legacy_synchronize},
};

static void legacy_work_beside_a_blocking_capture_is_implicit(void) {
    (void)exchange(R);
    for (size_t i = 0; i < sizeof legacy_calls / sizeof legacy_calls[0]; ++i)
        for (int other = 0; other < 2; ++other) {
            base_check_context("%s, thread %d", legacy_calls[i].name, other);
            start();
            (void)exchange(R);
            begin(blocking);
            begin(s);
            BASE_CHECK_EQ(attempt(other, R, legacy_calls[i].call), cudaErrorStreamCaptureImplicit);
            lost(blocking);
            // A NonBlocking stream's capture has nothing to do with the legacy stream.
            BASE_CHECK_EQ(attempt(other, R, legacy_calls[i].call), cudaSuccess);
            whole(s);
            // The thread's own default stream is a blocking one.
            start();
            (void)exchange(R);
            begin(cudaStreamPerThread);
            BASE_CHECK_EQ(attempt(other, R, legacy_calls[i].call), cudaErrorStreamCaptureImplicit);
            lost(cudaStreamPerThread);
        }
    base_check_context(NULL);
    (void)exchange(G);
}

static void waiting_for_what_was_never_recorded_is_no_legacy_work(void) {
    start();
    begin(blocking);
    BASE_CHECK_EQ(cudaStreamWaitEvent(NULL, never, 0), cudaSuccess);
    whole(blocking);
}

static void asking_the_legacy_stream_is_implicit_and_harmless(void) {
    enum cudaStreamCaptureStatus status;
    start();
    begin(blocking);
    BASE_CHECK_EQ(cudaStreamIsCapturing(NULL, &status), cudaErrorStreamCaptureImplicit);
    BASE_CHECK_EQ(cudaStreamGetCaptureInfo(cudaStreamLegacy, &status, NULL, NULL, NULL, NULL, NULL),
                  cudaErrorStreamCaptureImplicit);
    BASE_CHECK_EQ(cudaStreamIsCapturing(idle, &status), cudaSuccess);
    whole(blocking);
    BASE_CHECK_EQ(cudaStreamIsCapturing(NULL, &status), cudaSuccess);
}

static void waits_for_the_legacy_stream_are_implicit_or_unsafe(void) {
    start();
    BASE_CHECK_EQ(sim_reading("legacy-wait", "unsafe"), BASE_OK);
    begin(blocking); // relaxed
    BASE_CHECK_EQ(cudaStreamQuery(NULL), cudaSuccess);
    whole(blocking);
    begin_in(blocking, G);
    BASE_CHECK_EQ(cudaStreamSynchronize(NULL), cudaErrorStreamCaptureUnsupported);
    lost(blocking);
    BASE_CHECK_EQ(sim_reading("legacy-wait", "906"), BASE_OK);
}

static void what_cannot_be_captured_is_refused(void) {
    start();
    begin(s);
    BASE_CHECK_EQ(cudaStreamAddCallback(s, callback_body, NULL, 0),
                  cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(cudaStreamAddCallback(s, callback_body, NULL, 0),
                  cudaErrorStreamCaptureUnsupported);
    lost(s);
    begin(s);
    BASE_CHECK_EQ(cudaGraphLaunch(exec, s), cudaErrorStreamCaptureUnsupported);
    lost(s);
    begin(s);
    BASE_CHECK_EQ(cudaGraphUpload(exec, s), cudaErrorStreamCaptureUnsupported);
    lost(s);
    begin(s);
    BASE_CHECK_EQ(cudaStreamAttachMemAsync(s, device_bytes, 0, cudaMemAttachSingle),
                  cudaErrorStreamCaptureUnsupported);
    lost(s);
}

// --- After a capture was lost ---

static void a_lost_capture_takes_nothing_until_it_is_ended(void) {
    void *pointer;
    cudaGraphNode_t *none = NULL;
    start();
    begin(s);
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamQuery(s), cudaErrorStreamCaptureUnsupported);
    cudaStream_t streams[] = {s, t};
    for (int i = 0; i < 2; ++i) {
        cudaStream_t it = streams[i];
        BASE_CHECK_EQ(sim_launch(it, "nothing", kernel_body, NULL, 0),
                      cudaErrorStreamCaptureInvalidated);
        BASE_CHECK_EQ(cudaMemsetAsync(device_bytes, 1, 8, it), cudaErrorStreamCaptureInvalidated);
        BASE_CHECK_EQ(cudaMemcpyAsync(pinned, device_bytes, 8, cudaMemcpyDeviceToHost, it),
                      cudaErrorStreamCaptureInvalidated);
        BASE_CHECK_EQ(cudaLaunchHostFunc(it, host_body, NULL), cudaErrorStreamCaptureInvalidated);
        BASE_CHECK_EQ(cudaMallocAsync(&pointer, 64, it), cudaErrorStreamCaptureInvalidated);
        BASE_CHECK_EQ(cudaFreeAsync(pool_block, it), cudaErrorInvalidValue); // in any capture
        BASE_CHECK_EQ(cudaEventRecord(e, it), cudaErrorStreamCaptureInvalidated);
        BASE_CHECK_EQ(cudaEventRecordWithFlags(e, it, cudaEventRecordExternal),
                      cudaErrorStreamCaptureInvalidated);
        BASE_CHECK_EQ(cudaStreamWaitEvent(it, e, 0), cudaErrorStreamCaptureInvalidated);
        BASE_CHECK_EQ(cudaStreamWaitEvent(it, recorded, cudaEventWaitExternal),
                      cudaErrorStreamCaptureInvalidated);
        BASE_CHECK_EQ(cudaStreamUpdateCaptureDependencies(it, none, NULL, 0,
                                                          cudaStreamSetCaptureDependencies),
                      cudaErrorStreamCaptureInvalidated);
        BASE_CHECK_EQ((int)cuStreamWriteValue32((CUstream)it, (CUdeviceptr)(uintptr_t)pinned, 1, 0),
                      cudaErrorStreamCaptureInvalidated);
        BASE_CHECK_EQ(cudaStreamBeginCapture(it, R), cudaErrorIllegalState);
    }
    BASE_CHECK_EQ(cudaStreamWaitEvent(idle, e, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(status_of(idle), cudaStreamCaptureStatusNone);
    lost(s);
    BASE_CHECK_EQ(status_of(t), cudaStreamCaptureStatusNone);
    BASE_CHECK_EQ(cudaMemsetAsync(device_bytes, 1, 8, t), cudaSuccess);
}

// --- Events ---

static void events_of_other_worlds_are_refused(void) {
    start();
    begin(s); // recorded outside
    BASE_CHECK_EQ(cudaStreamWaitEvent(s, recorded, 0), cudaErrorStreamCaptureIsolation);
    lost(s);
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess); // the stream's own past
    begin(s);
    BASE_CHECK_EQ(cudaStreamWaitEvent(s, e, 0), cudaErrorStreamCaptureIsolation);
    lost(s);
    begin(s); // of a capture that has ended
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    whole(s);
    begin(s);
    BASE_CHECK_EQ(cudaStreamWaitEvent(s, e, 0), cudaErrorStreamCaptureIsolation);
    lost(s);
    begin(s); // of another capture: both are lost
    begin(t);
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaErrorStreamCaptureMerge);
    lost(s);
    lost(t);
    begin(s); // of another one that is lost
    begin(t);
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamQuery(s), cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaErrorStreamCaptureMerge);
    lost(t);
    lost(s);
    begin(s); // the legacy stream cannot join
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(NULL, e, 0), cudaErrorStreamCaptureImplicit);
    lost(s);
}

static void waiting_for_what_was_never_recorded_is_nothing_or_isolation(void) {
    start();
    begin(s);
    BASE_CHECK_EQ(cudaStreamWaitEvent(s, never, 0), cudaSuccess);
    whole(s);
    BASE_CHECK_EQ(sim_reading("never-wait", "refused"), BASE_OK);
    begin(s);
    BASE_CHECK_EQ(cudaStreamWaitEvent(s, never, 0), cudaErrorStreamCaptureIsolation);
    lost(s);
    BASE_CHECK_EQ(sim_reading("never-wait", "noop"), BASE_OK);
}

static void captured_events_cannot_be_asked(void) {
    float milliseconds;
    start();
    (void)exchange(R);
    for (int call = 0; call < 4; ++call)
        for (int other = 0; other < 2; ++other) {
            BASE_CHECK_EQ(sim_reading("query-captured", other ? "harmless" : "invalidates"),
                          BASE_OK);
            begin(s);
            BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
            BASE_CHECK_EQ(call == 0   ? cudaEventQuery(e)
                          : call == 1 ? cudaEventSynchronize(e)
                          : call == 2 ? cudaEventElapsedTime(&milliseconds, e, recorded)
                                      : cudaEventElapsedTime(&milliseconds, recorded, e),
                          cudaErrorCapturedEvent);
            if (other)
                whole(s);
            else
                lost(s);
        }
    BASE_CHECK_EQ(cudaEventElapsedTime(&milliseconds, e, never), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(sim_reading("query-captured", "invalidates"), BASE_OK);
    (void)exchange(G);
    begin_in(s, G); // where queries are unsafe as well
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaEventQuery(e), cudaErrorCapturedEvent);
    lost(s);
    BASE_CHECK_EQ(sim_reading("captured-unsafe", "900"), BASE_OK);
    begin_in(s, G);
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaEventQuery(e), cudaErrorStreamCaptureUnsupported);
    lost(s);
    BASE_CHECK_EQ(cudaEventQuery(e), cudaErrorCapturedEvent);
    BASE_CHECK_EQ(sim_reading("captured-unsafe", "907"), BASE_OK);
}

static void ends_in_the_wrong_place_are_harmless_by_a_reading(void) {
    cudaGraph_t captured;
    start();
    BASE_CHECK_EQ(sim_reading("wrong-end", "harmless"), BASE_OK);
    begin(s);
    BASE_CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(t, e, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamEndCapture(t, &captured), cudaErrorStreamCaptureUnmatched);
    whole(s);
    BASE_CHECK_EQ(sim_reading("wrong-end", "invalidates"), BASE_OK);
}

static void a_failing_call_sets_the_last_error(void) {
    start();
    begin(s);
    BASE_CHECK_EQ(cudaStreamQuery(s), cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(cudaGetLastError(), cudaErrorStreamCaptureUnsupported);
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
    lost(s);
    BASE_CHECK_EQ(cudaGetLastError(), cudaErrorStreamCaptureInvalidated);
}

int main(void) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = (uint64_t)256 << 20}),
                  BASE_OK);
    unsafe_calls_are_refused_by_the_modes();
    what_is_refused_is_not_done();
    wrong_arguments_are_told_first();
    safe_calls_are_safe();
    each_capture_in_conflict_is_lost_and_no_other();
    the_mode_is_exchanged_by_thread();
    readings_make_some_calls_safe();
    waits_for_what_captures_are_refused();
    another_device_can_be_waited_for();
    legacy_work_beside_a_blocking_capture_is_implicit();
    waiting_for_what_was_never_recorded_is_no_legacy_work();
    asking_the_legacy_stream_is_implicit_and_harmless();
    waits_for_the_legacy_stream_are_implicit_or_unsafe();
    what_cannot_be_captured_is_refused();
    a_lost_capture_takes_nothing_until_it_is_ended();
    events_of_other_worlds_are_refused();
    waiting_for_what_was_never_recorded_is_nothing_or_isolation();
    captured_events_cannot_be_asked();
    ends_in_the_wrong_place_are_harmless_by_a_reading();
    a_failing_call_sets_the_last_error();
    return 0;
}
