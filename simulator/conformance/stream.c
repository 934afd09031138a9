// Section 5: streams that the program makes.
#include "simulator/conformance/cases.h"

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

// Whether a handle that names no live stream is refused with one of the codes that were seen.
static void answer_refused(struct conformance *c, const char *label, cudaError_t error) {
    answer_yes(c, label,
               error == cudaErrorInvalidResourceHandle || error == cudaErrorContextIsDestroyed);
    (void)cudaGetLastError();
}

static void stream_create_bad(struct conformance *c) {
    cudaStream_t stream;
    answer_code(c, "null", cudaStreamCreate(NULL));
    answer_code(c, "flags", cudaStreamCreateWithFlags(&stream, 0x80));
    answer_code(c, "priority", cudaStreamCreateWithPriority(&stream, 0x80, 0));
}

static void stream_flags(struct conformance *c) {
    unsigned int flags = 99;
    MUST(c, cudaStreamGetFlags(conformance_stream(c, cudaStreamNonBlocking), &flags));
    answer_number(c, "nonblocking", flags);
    MUST(c, cudaStreamGetFlags(conformance_stream(c, cudaStreamDefault), &flags));
    answer_number(c, "blocking", flags);
    answer_code(c, "null", cudaStreamGetFlags(NULL, NULL));
}

static void stream_priority_range(struct conformance *c) {
    int least = 99, greatest = 99;
    MUST(c, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    answer_number(c, "least", least);
    answer_yes(c, "lower-is-higher", greatest < least);
    answer_code(c, "null", cudaDeviceGetStreamPriorityRange(NULL, NULL));
}

static void answer_priority(struct conformance *c, const char *label, int asked, int wanted) {
    cudaStream_t stream;
    int priority = 99;
    MUST(c, cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, asked));
    MUST(c, cudaStreamGetPriority(stream, &priority));
    MUST(c, cudaStreamDestroy(stream));
    answer_yes(c, label, priority == wanted);
}

static void stream_priority_clamped(struct conformance *c) {
    int least, greatest;
    MUST(c, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    answer_priority(c, "inside", greatest, greatest);
    answer_priority(c, "above", greatest - 100, greatest);
    answer_priority(c, "below", least + 100, least);
}

static void stream_device(struct conformance *c) {
    int device = 99;
    MUST(c, cudaSetDevice(1));
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaSetDevice(0));
    MUST(c, cudaStreamGetDevice(stream, &device));
    answer_number(c, "device", device);
}

static void stream_query(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    answer_code(c, "idle", cudaStreamQuery(stream));
    conformance_gate(c, stream);
    (void)conformance_mark(c, stream);
    answer_code(c, "busy", cudaStreamQuery(stream));
    conformance_open(c);
    MUST(c, cudaStreamSynchronize(stream));
    answer_code(c, "after", cudaStreamQuery(stream));
}

static void stream_synchronize_waits(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    cudaEvent_t event = conformance_mark(c, stream);
    answer_code(c, "synchronize", cudaStreamSynchronize(stream));
    answer_code(c, "work", cudaEventQuery(event));
}

static void stream_synchronize_only_itself(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, other);
    cudaEvent_t event = conformance_mark(c, other);
    (void)conformance_mark(c, stream);
    answer_code(c, "synchronize", cudaStreamSynchronize(stream));
    answer_event(c, "other", event);
}

static void stream_wait_bad(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    answer_code(c, "flags", cudaStreamWaitEvent(stream, conformance_event(c), 0x80));
    answer_code(c, "event", cudaStreamWaitEvent(stream, NULL, 0));
}

static void stream_wait_orders(struct conformance *c) {
    cudaStream_t first = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t second = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, first);
    MUST(c, cudaStreamWaitEvent(second, conformance_mark(c, first), 0));
    cudaEvent_t later = conformance_mark(c, second);
    answer_event(c, "before", later);
    conformance_open(c);
    MUST(c, cudaDeviceSynchronize());
    answer_event(c, "after", later);
}

static void stream_wait_complete_event(struct conformance *c) {
    cudaStream_t first = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t second = conformance_stream(c, cudaStreamNonBlocking);
    cudaEvent_t event = conformance_mark(c, first);
    MUST(c, cudaEventSynchronize(event));
    conformance_gate(c, first);
    MUST(c, cudaStreamWaitEvent(second, event, 0));
    answer_event(c, "later", conformance_mark(c, second));
}

static void stream_wait_across_devices(struct conformance *c) {
    cudaStream_t first = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaSetDevice(1));
    cudaStream_t second = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaSetDevice(0));
    conformance_gate(c, first);
    answer_code(c, "wait", cudaStreamWaitEvent(second, conformance_mark(c, first), 0));
    MUST(c, cudaSetDevice(1));
    cudaEvent_t later = conformance_mark(c, second);
    answer_event(c, "later", later);
}

static void stream_destroy_pending(struct conformance *c) {
    unsigned char *pinned = conformance_pinned_memory(c, 16);
    cudaStream_t stream;
    pinned[0] = 0;
    MUST(c, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaStream_t first = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, first);
    MUST(c, cudaStreamWaitEvent(stream, conformance_mark(c, first), 0));
    MUST(c, cudaMemsetAsync(pinned, 1, 16, stream));
    cudaEvent_t event = conformance_mark(c, stream);
    answer_code(c, "destroy", cudaStreamDestroy(stream));
    answer_event(c, "work", event);
    conformance_open(c);
    MUST(c, cudaDeviceSynchronize());
    answer_number(c, "byte", pinned[0]);
}

static void stream_destroy_default(struct conformance *c) {
    answer_code(c, "zero", cudaStreamDestroy(NULL));
    answer_refused(c, "legacy", cudaStreamDestroy(cudaStreamLegacy));
    answer_refused(c, "per-thread", cudaStreamDestroy(cudaStreamPerThread));
}

static void stream_destroyed_is_refused(struct conformance *c) {
    cudaStream_t stream;
    MUST(c, cudaStreamCreate(&stream));
    MUST(c, cudaStreamDestroy(stream));
    answer_refused(c, "query", cudaStreamQuery(stream));
    answer_refused(c, "synchronize", cudaStreamSynchronize(stream));
    answer_refused(c, "destroy", cudaStreamDestroy(stream));
}

static void stream_foreign_device(struct conformance *c) {
    MUST(c, cudaSetDevice(1));
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaSetDevice(0));
    unsigned char *pinned = conformance_pinned_memory(c, 16);
    answer_code(c, "fill", cudaMemsetAsync(pinned, 1, 16, stream));
    answer_code(c, "wait", cudaStreamWaitEvent(stream, conformance_event(c), 0));
    answer_code(c, "synchronize", cudaStreamSynchronize(stream));
}

static void stream_not_capturing(struct conformance *c) {
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    MUST(c, cudaStreamIsCapturing(conformance_stream(c, cudaStreamNonBlocking), &status));
    answer_number(c, "status", status);
    answer_code(c, "null", cudaStreamIsCapturing(NULL, NULL));
}

static void capture_mode_exchange(struct conformance *c) {
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    MUST(c, cudaThreadExchangeStreamCaptureMode(&mode));
    answer_number(c, "first", mode);
    mode = cudaStreamCaptureModeGlobal;
    MUST(c, cudaThreadExchangeStreamCaptureMode(&mode));
    answer_number(c, "then", mode);
    answer_code(c, "null", cudaThreadExchangeStreamCaptureMode(NULL));
    mode = (enum cudaStreamCaptureMode)77;
    answer_code(c, "bad", cudaThreadExchangeStreamCaptureMode(&mode));
}

#ifdef TIDEMARK_SIMULATOR
static void body(const void *unused) { (void)unused; }

static void launch_foreign_device(struct conformance *c) {
    MUST(c, cudaSetDevice(1));
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaSetDevice(0));
    answer_code(c, "launch", sim_launch(stream, "kernel", body, NULL, 0));
}

static void launch_no_function(struct conformance *c) {
    answer_code(c, "launch", sim_launch(NULL, "kernel", NULL, NULL, 0));
}
#endif

const struct conformance_case conformance__cases_stream[] = {
    CASE("stream-create-bad", "5", VERIFIED, stream_create_bad,
        "creating a stream without a result pointer or with unknown flags: 1",
        "null=1 flags=1 priority=1", NULL),
    CASE("stream-flags", "5", VERIFIED, stream_flags,
        "cudaStreamGetFlags tells what the stream was made with",
        "nonblocking=1 blocking=0 null=1", NULL),
    CASE("stream-priority-range", "5", VERIFIED, stream_priority_range,
        "lower numbers are higher priorities; either pointer may be missing",
        "least=0 lower-is-higher=yes null=0", NULL),
    CASE("stream-priority-clamped", "5", VERIFIED, stream_priority_clamped,
        "a priority out of range is clamped",
        "inside=yes above=yes below=yes", NULL),
    CASE_2("stream-device", "5", VERIFIED, stream_device,
        "a stream belongs to the device that was current",
        "device=1", NULL),
    CASE("stream-query", "5", VERIFIED, stream_query,
        "cudaStreamQuery says 600 while work is pending, else 0",
        "idle=0 busy=600 after=0", NULL),
    CASE("stream-synchronize-waits", "5", VERIFIED, stream_synchronize_waits,
        "cudaStreamSynchronize waits for what was enqueued",
        "synchronize=0 work=0", NULL),
    CASE("stream-synchronize-only-itself", "5", VERIFIED, stream_synchronize_only_itself,
        "cudaStreamSynchronize waits for no other stream",
        "synchronize=0 other=pending", NULL),
    CASE("stream-wait-bad", "5", VERIFIED, stream_wait_bad,
        "cudaStreamWaitEvent: bad flags 1, no event 400",
        "flags=1 event=400", NULL),
    CASE("stream-wait-orders", "8", VERIFIED, stream_wait_orders,
        "work behind a wait comes after what the event covers",
        "before=pending after=done", NULL),
    CASE("stream-wait-complete-event", "5", VERIFIED, stream_wait_complete_event,
        "a wait for a complete event orders nothing",
        "later=done", NULL),
    CASE_2("stream-wait-across-devices", "5", VERIFIED, stream_wait_across_devices,
        "a stream may wait for another device's event",
        "wait=0 later=pending", NULL),
    CASE("stream-destroy-pending", "5", VERIFIED, stream_destroy_pending,
        "cudaStreamDestroy returns with work pending, which still completes",
        "destroy=0 work=pending byte=1", NULL),
    CASE("stream-destroy-default", "5", VERIFIED, stream_destroy_default,
        "the default streams cannot be destroyed",
        "zero=400 legacy=yes per-thread=yes", NULL),
    CASE("stream-destroyed-is-refused", "1", UNVERIFIED, stream_destroyed_is_refused,
        "a destroyed stream is refused (709 was seen, or 400)",
        "query=yes synchronize=yes destroy=yes", NULL),
    CASE_2("stream-foreign-device", "5", VERIFIED, stream_foreign_device,
        "copies and waits in another device's stream are legal",
        "fill=0 wait=0 synchronize=0", NULL),
    CASE("stream-not-capturing", "7", VERIFIED, stream_not_capturing,
        "a stream captures nothing unless it was told to",
        "status=0 null=1", NULL),
    CASE("capture-mode-exchange", "7", VERIFIED, capture_mode_exchange,
        "a thread's capture mode is global at first; exchange returns the former; NULL or bad: 1",
        "first=0 then=2 null=1 bad=1", NULL),
#ifdef TIDEMARK_SIMULATOR
    CASE_2_SIMULATED("launch-foreign-device", "5", VERIFIED, launch_foreign_device,
        "a kernel in another device's stream: 400",
        "launch=400", NULL),
    CASE_SIMULATED("launch-no-function", "0", VERIFIED, launch_no_function,
        "a launch of what is no kernel: 98",
        "launch=98", NULL),
#endif
    {0},
};
