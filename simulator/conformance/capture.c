// Section 7.2: what a capture refuses in every mode. What has to do with events is capture_event.c.
#include "simulator/conformance/graph_cases.h"

#include <cuda.h>

static void nothing(void *unused) { (void)unused; }

// --- 7.2: asking about and waiting for what captures ---

// In every mode of the capture; the thread's own mode is relaxed.
static void answer_refused(struct conformance *c, cudaStream_t stream,
                           cudaError_t (*call)(cudaStream_t stream)) {
    (void)mode_exchange(cudaStreamCaptureModeRelaxed);
    for (int i = 0; i < MODE_COUNT; ++i) {
        MUST(c, cudaStreamBeginCapture(stream, capture_modes[i]));
        answer_code(c, "call", call(stream));
        answer_status(c, "capture", stream);
        answer_end(c, "end", stream);
    }
}

static cudaError_t stream_synchronize(cudaStream_t stream) { return cudaStreamSynchronize(stream); }

static cudaError_t device_synchronize(cudaStream_t stream) {
    (void)stream;
    return cudaDeviceSynchronize();
}

static void synchronize_capturing(struct conformance *c) {
    answer_refused(c, conformance_stream(c, cudaStreamNonBlocking), stream_synchronize);
}

static cudaError_t stream_query(cudaStream_t stream) { return cudaStreamQuery(stream); }

static void query_capturing(struct conformance *c) {
    answer_refused(c, conformance_stream(c, cudaStreamNonBlocking), stream_query);
}

static void synchronize_joined(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    MUST(c, stream_follow(c, joined, stream));
    answer_code(c, "synchronize", cudaStreamSynchronize(joined));
    answer_status(c, "origin", stream);
    answer_status(c, "joined", joined);
    answer_end(c, "end", stream);
}

static void synchronize_device(struct conformance *c) {
    answer_refused(c, conformance_stream(c, cudaStreamNonBlocking), device_synchronize);
}

// The driver's codes are the runtime's.
static cudaError_t context_synchronize(cudaStream_t stream) {
    (void)stream;
    return (cudaError_t)cuCtxSynchronize();
}

static void synchronize_context(struct conformance *c) {
    answer_refused(c, conformance_stream(c, cudaStreamNonBlocking), context_synchronize);
}

static cudaError_t thread_error;

static void device_synchronized_in_thread(struct conformance *c) {
    (void)c;
    (void)mode_exchange(cudaStreamCaptureModeRelaxed);
    thread_error = cudaDeviceSynchronize();
}

static void synchronize_device_in_thread(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    for (int i = 0; i < MODE_COUNT; ++i) {
        MUST(c, cudaStreamBeginCapture(stream, capture_modes[i]));
        conformance_in_thread(c, device_synchronized_in_thread);
        answer_code(c, "synchronize", thread_error);
        answer_end(c, "end", stream);
    }
}

static void synchronize_other_device(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaSetDevice(1));
    answer_code(c, "synchronize", cudaDeviceSynchronize());
    MUST(c, cudaSetDevice(0));
    answer_status(c, "capture", stream);
}

// --- 7.2: the legacy stream while a blocking stream captures ---

#define ANSWER_LEGACY(c, stream, label, call)                               \
    do {                                                                    \
        MUST((c), cudaStreamBeginCapture((stream), cudaStreamCaptureModeRelaxed)); \
        answer_code((c), (label), (call));                                  \
        answer_status((c), "capture", (stream));                            \
        answer_end((c), "end", (stream));                                   \
    } while (0)

static void legacy_copies(struct conformance *c) {
    void *device = conformance_device_memory(c, BYTES);
    void *pinned = conformance_pinned_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamDefault);
    (void)mode_exchange(cudaStreamCaptureModeRelaxed);
    ANSWER_LEGACY(c, stream, "copy", cudaMemcpy(pinned, device, BYTES, cudaMemcpyDeviceToHost));
    ANSWER_LEGACY(c, stream, "fill", cudaMemset(device, 1, BYTES));
}

static void legacy_work(struct conformance *c) {
    void *device = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamDefault);
    ANSWER_LEGACY(c, stream, "fill", cudaMemsetAsync(device, 1, BYTES, NULL));
    ANSWER_LEGACY(c, stream, "named", cudaMemsetAsync(device, 1, BYTES, cudaStreamLegacy));
    ANSWER_LEGACY(c, stream, "function", cudaLaunchHostFunc(NULL, nothing, NULL));
}

static void legacy_work_in_any_mode(struct conformance *c) {
    void *device = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamDefault);
    for (int i = 0; i < MODE_COUNT; ++i) {
        MUST(c, cudaStreamBeginCapture(stream, capture_modes[i]));
        answer_code(c, "fill", cudaMemsetAsync(device, 1, BYTES, NULL));
        answer_end(c, "end", stream);
    }
}

static void legacy_records(struct conformance *c) {
    cudaEvent_t event = conformance_event(c), recorded = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamDefault);
    cudaStream_t idle = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaEventRecord(recorded, idle));
    ANSWER_LEGACY(c, stream, "record", cudaEventRecord(event, NULL));
    ANSWER_LEGACY(c, stream, "wait", cudaStreamWaitEvent(NULL, recorded, 0));
}

static void legacy_launch_of_graph(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamDefault);
    cudaGraphExec_t exec = conformance_graph_exec(c, conformance_graph(c));
    ANSWER_LEGACY(c, stream, "launch", cudaGraphLaunch(exec, NULL));
}

static void legacy_beside_nonblocking(struct conformance *c) {
    unsigned char *device = conformance_device_memory(c, 2 * BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMemset(device, 0, 2 * BYTES));
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(device, 1, BYTES, stream));
    answer_code(c, "fill", cudaMemsetAsync(device + BYTES, 2, BYTES, NULL));
    answer_code(c, "function", cudaLaunchHostFunc(NULL, nothing, NULL));
    answer_status(c, "capture", stream);
    (void)capture_end(c, stream);
    answer_number(c, "captured", conformance_byte(device));
    answer_number(c, "eager", conformance_byte(device + BYTES));
}

static void legacy_beside_per_thread(struct conformance *c) {
    void *device = conformance_device_memory(c, BYTES);
    MUST(c, cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeRelaxed));
    answer_code(c, "fill", cudaMemsetAsync(device, 1, BYTES, NULL));
    answer_end(c, "end", cudaStreamPerThread);
}

static void legacy_of_other_device(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamDefault);
    MUST(c, cudaSetDevice(1));
    void *device = conformance_device_memory(c, BYTES);
    MUST(c, cudaSetDevice(0));
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    MUST(c, cudaSetDevice(1));
    answer_code(c, "fill", cudaMemsetAsync(device, 1, BYTES, NULL));
    MUST(c, cudaSetDevice(0));
    answer_status(c, "capture", stream);
}

static void legacy_beside_ended(struct conformance *c) {
    void *device = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamDefault);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    (void)capture_end(c, stream);
    answer_code(c, "fill", cudaMemsetAsync(device, 1, BYTES, NULL));
}

static void legacy_status(struct conformance *c) {
    enum cudaStreamCaptureStatus status;
    cudaStream_t stream = conformance_stream(c, cudaStreamDefault);
    MUST(c, capture_begin(stream));
    answer_code(c, "status", cudaStreamIsCapturing(NULL, &status));
    answer_code(c, "named", cudaStreamIsCapturing(cudaStreamLegacy, &status));
    answer_code(c, "info", cudaStreamGetCaptureInfo(NULL, &status, NULL, NULL, NULL, NULL, NULL));
    answer_status(c, "capture", stream);
}

static void legacy_status_beside_nonblocking(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    answer_status(c, "legacy", NULL);
    answer_status(c, "capture", stream);
}

static void legacy_waited(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamDefault);
    (void)mode_exchange(cudaStreamCaptureModeRelaxed);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    answer_code(c, "synchronize", cudaStreamSynchronize(NULL));
    answer_end(c, "end", stream);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    answer_code(c, "query", cudaStreamQuery(NULL));
    answer_end(c, "end", stream);
}

// --- 7.2: what cannot become a node ---

static void told(cudaStream_t stream, cudaError_t status, void *unused) {
    (void)stream;
    (void)status;
    (void)unused;
}

static void callback_in_capture(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    answer_code(c, "callback", cudaStreamAddCallback(stream, told, NULL, 0));
    answer_status(c, "capture", stream);
    answer_end(c, "end", stream);
}

static void launch_in_capture(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    (void)empty_node(c, graph, NULL, 0);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    answer_code(c, "launch", cudaGraphLaunch(exec, stream));
    answer_status(c, "capture", stream);
    answer_end(c, "end", stream);
}

// The way that is left for a graph in a graph.
static void child_in_capture(struct conformance *c) {
    void *memory = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t child = conformance_graph(c);
    cudaGraphNode_t node;
    (void)fill_node(c, child, NULL, 0, memory, 3);
    MUST(c, cudaMemsetAsync(memory, 0, BYTES, stream));
    MUST(c, capture_begin(stream));
    MUST(c, cudaMemsetAsync(memory, 1, BYTES, stream));
    cudaGraphNode_t tip = stream_tip(stream);
    MUST(c, cudaGraphAddChildGraphNode(&node, stream_graph(stream), &tip, 1, child));
    MUST(c, cudaStreamUpdateCaptureDependencies(stream, &node, NULL, 1,
                                                cudaStreamSetCaptureDependencies));
    MUST(c, cudaMemsetAsync((unsigned char *)memory + 1, 2, 1, stream));
    cudaGraphExec_t exec = conformance_graph_exec(c, capture_end(c, stream));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "child", conformance_byte(memory));
    answer_number(c, "behind", conformance_byte((unsigned char *)memory + 1));
}

// Every kind of work that enters STREAM.
static void answer_work(struct conformance *c, cudaStream_t stream, unsigned char *device,
                        cudaEvent_t event) {
    void *pointer = NULL;
    answer_code(c, "fill", cudaMemsetAsync(device, 1, BYTES, stream));
    answer_code(c, "copy",
                cudaMemcpyAsync(device + BYTES, device, BYTES, cudaMemcpyDefault, stream));
    answer_code(c, "function", cudaLaunchHostFunc(stream, nothing, NULL));
    answer_code(c, "malloc", cudaMallocAsync(&pointer, BYTES, stream));
    answer_code(c, "record", cudaEventRecord(event, stream));
    answer_code(c, "wait", cudaStreamWaitEvent(stream, event, 0));
}

static void work_into_invalidated(struct conformance *c) {
    unsigned char *device = conformance_device_memory(c, 2 * BYTES);
    cudaEvent_t event = conformance_event(c);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    (void)cudaStreamQuery(stream);
    (void)cudaGetLastError();
    answer_work(c, stream, device, event);
    answer_status(c, "capture", stream);
    answer_end(c, "end", stream);
}

static void work_into_invalidated_joined(struct conformance *c) {
    void *device = conformance_device_memory(c, BYTES);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t joined = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    MUST(c, stream_follow(c, joined, stream));
    (void)cudaStreamQuery(stream);
    (void)cudaGetLastError();
    answer_code(c, "fill", cudaMemsetAsync(device, 1, BYTES, joined));
    answer_end(c, "end", stream);
    answer_code(c, "after", cudaMemsetAsync(device, 1, BYTES, joined));
}

const struct conformance_case conformance__cases_capture[] = {
    CASE("synchronize-capturing", "7.2", VERIFIED, synchronize_capturing,
        "a stream that captures is waited for: 900, and the capture is invalidated, in every mode",
        "call=900 capture=invalidated end=901 call=900 capture=invalidated end=901 call=900 "
        "capture=invalidated end=901", NULL),
    CASE("query-capturing", "7.2", VERIFIED, query_capturing,
        "asked about: the same",
        "call=900 capture=invalidated end=901 call=900 capture=invalidated end=901 call=900 "
        "capture=invalidated end=901", NULL),
    CASE("synchronize-joined", "7.2", VERIFIED, synchronize_joined,
        "the same for a stream that has joined",
        "synchronize=900 origin=invalidated joined=invalidated end=901", NULL),
    CASE("synchronize-device", "7.2", VERIFIED, synchronize_device,
        "a device where something is captured is waited for: 900, and the capture is invalidated",
        "call=900 capture=invalidated end=901 call=900 capture=invalidated end=901 call=900 "
        "capture=invalidated end=901", NULL),
    CASE("synchronize-context", "7.2", VERIFIED, synchronize_context,
        "by the driver's call too",
        "call=900 capture=invalidated end=901 call=900 capture=invalidated end=901 call=900 "
        "capture=invalidated end=901", NULL),
    CASE("synchronize-device-in-thread", "7.2", VERIFIED, synchronize_device_in_thread,
        "by any thread",
        "synchronize=900 end=901 synchronize=900 end=901 synchronize=900 end=901", NULL),
    CASE_2("synchronize-other-device", "7.2", VERIFIED, synchronize_other_device,
        "another device may be waited for",
        "synchronize=0 capture=active", NULL),
    CASE("legacy-copies", "7.2", VERIFIED, legacy_copies,
        "a blocking copy or fill while a blocking stream captures: 906, and the capture is "
        "invalidated",
        "copy=906 capture=invalidated end=901 fill=906 capture=invalidated end=901", NULL),
    CASE("legacy-work", "7.2", VERIFIED, legacy_work,
        "the same for all work in the legacy stream",
        "fill=906 capture=invalidated end=901 named=906 capture=invalidated end=901 function=906 "
        "capture=invalidated end=901", NULL),
    CASE("legacy-work-in-any-mode", "7.2", VERIFIED, legacy_work_in_any_mode,
        "whatever the capture's mode",
        "fill=906 end=901 fill=906 end=901 fill=906 end=901", NULL),
    CASE("legacy-records", "7.2", UNVERIFIED, legacy_records,
        "a record or a wait in the legacy stream is such work",
        "record=906 capture=invalidated end=901 wait=906 capture=invalidated end=901", NULL),
    CASE("legacy-launch-of-graph", "7.2", UNVERIFIED, legacy_launch_of_graph,
        "so is the launch of a graph",
        "launch=906 capture=invalidated end=901", NULL),
    CASE("legacy-beside-nonblocking", "7.2", VERIFIED, legacy_beside_nonblocking,
        "while NonBlocking streams capture it runs",
        "fill=0 function=0 capture=active captured=0 eager=2", NULL),
    CASE("legacy-beside-per-thread", "7.2", VERIFIED, legacy_beside_per_thread,
        "the per-thread stream is a blocking one",
        "fill=906 end=901", NULL),
    CASE_2("legacy-of-other-device", "7.2", VERIFIED, legacy_of_other_device,
        "another device's legacy stream has nothing to do with it",
        "fill=0 capture=active", NULL),
    CASE("legacy-beside-ended", "7.2", VERIFIED, legacy_beside_ended,
        "after the capture the legacy stream takes work again",
        "fill=0", NULL),
    CASE("legacy-status", "7.2", VERIFIED, legacy_status,
        "asking whether the legacy stream captures, while a blocking stream does: 906, and the "
        "capture goes on",
        "status=906 named=906 info=906 capture=active", NULL),
    CASE("legacy-status-beside-nonblocking", "7.2", VERIFIED, legacy_status_beside_nonblocking,
        "while a NonBlocking stream does: none",
        "legacy=none capture=active", NULL),
    CASE("legacy-waited", "7.3", UNVERIFIED, legacy_waited,
        "the legacy stream is waited for or asked about while a blocking stream captures: 906",
        "synchronize=906 end=901 query=906 end=901", NULL),
    CASE("callback-in-capture", "7.2", VERIFIED, callback_in_capture,
        "cudaStreamAddCallback cannot be captured: 900, and the capture is invalidated",
        "callback=900 capture=invalidated end=901", NULL),
    CASE("launch-in-capture", "7.2", VERIFIED, launch_in_capture,
        "nor can cudaGraphLaunch",
        "launch=900 capture=invalidated end=901", NULL),
    CASE("child-in-capture", "7.2", VERIFIED, child_in_capture,
        "a graph becomes part of a capture as a child node",
        "child=3 behind=2", NULL),
    CASE("work-into-invalidated", "7.2", VERIFIED, work_into_invalidated,
        "any work in a stream whose capture is invalidated: 901",
        "fill=901 copy=901 function=901 malloc=901 record=901 wait=901 capture=invalidated end=901",
        NULL),
    CASE("work-into-invalidated-joined", "7.2", VERIFIED, work_into_invalidated_joined,
        "in a joined stream too, until the capture ends",
        "fill=901 end=901 after=0", NULL),
    {0},
};
