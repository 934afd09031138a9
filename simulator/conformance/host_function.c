// Section 5: host functions and callbacks.
#include "simulator/conformance/cases.h"

static void set(void *flag) { *(int *)flag = 1; }

static void host_function_null(struct conformance *c) {
    answer_code(c, "function", cudaLaunchHostFunc(NULL, NULL, NULL));
}

static void host_function_runs(struct conformance *c) {
    int flag = 0;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaLaunchHostFunc(stream, set, &flag));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "flag", flag);
}

static void host_function_in_order(struct conformance *c) {
    int flag = 0;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    MUST(c, cudaLaunchHostFunc(stream, set, &flag));
    answer_number(c, "before", flag);
    answer_event(c, "later", conformance_mark(c, stream));
    conformance_open(c);
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "after", flag);
}

struct seen_byte {
    const unsigned char *bytes;
    int value;
};

static void look(void *argument) {
    struct seen_byte *seen = argument;
    seen->value = seen->bytes[0];
}

static void host_function_sees_earlier_work(struct conformance *c) {
    unsigned char *pinned = conformance_pinned_memory(c, 16);
    struct seen_byte seen = {pinned, -1};
    pinned[0] = 0;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMemsetAsync(pinned, 3, 16, stream));
    MUST(c, cudaLaunchHostFunc(stream, look, &seen));
    MUST(c, cudaMemsetAsync(pinned, 4, 16, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "seen", seen.value);
    answer_number(c, "now", pinned[0]);
}

static void call_cuda(void *result) {
    void *pointer;
    *(cudaError_t *)result = cudaMalloc(&pointer, 16);
}

static void host_function_calls_cuda(struct conformance *c) {
    cudaError_t error = cudaSuccess;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaLaunchHostFunc(stream, call_cuda, &error));
    MUST(c, cudaStreamSynchronize(stream));
    answer_code(c, "malloc", error);
}

struct told {
    int count;
    cudaError_t status;
    cudaStream_t stream;
};

static void tell(cudaStream_t stream, cudaError_t status, void *argument) {
    *(struct told *)argument = (struct told){1, status, stream};
}

static void callback_is_told(struct conformance *c) {
    struct told told = {0};
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaStreamAddCallback(stream, tell, &told, 0));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "count", told.count);
    answer_number(c, "status", (int)told.status);
    answer_yes(c, "stream", told.stream == stream);
}

static void callback_bad(struct conformance *c) {
    struct told told = {0};
    answer_code(c, "function", cudaStreamAddCallback(NULL, NULL, NULL, 0));
    answer_code(c, "flags", cudaStreamAddCallback(NULL, tell, &told, 1));
}

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"

static void callback_runs_after_error(struct conformance *c) {
    struct told told = {0};
    int flag = 0;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    void *here = conformance_device_memory(c, 16), *there;
    MUST(c, cudaSetDevice(1));
    MUST(c, cudaMalloc(&there, 16));
    MUST(c, cudaSetDevice(0));
    sim_stream_hold(stream, true);
    MUST(c, cudaMemcpyAsync(here, there, 16, cudaMemcpyDefault, stream));
    MUST(c, cudaLaunchHostFunc(stream, set, &flag));
    MUST(c, cudaStreamAddCallback(stream, tell, &told, 0));
    MUST(c, cudaFree(there)); // the copy finds nothing there: 700
    (void)cudaStreamSynchronize(stream);
    answer_number(c, "function", flag);
    answer_number(c, "callback", told.count);
    answer_number(c, "status", (int)told.status);
}
#endif

const struct conformance_case conformance__cases_host_function[] = {
    CASE("host-function-null", "5", VERIFIED, host_function_null,
        "no function: 1",
        "function=1", NULL),
    CASE("host-function-runs", "5", VERIFIED, host_function_runs,
        "a host function has run when its stream is synchronised",
        "flag=1", NULL),
    CASE("host-function-in-order", "5", VERIFIED, host_function_in_order,
        "a host function runs in stream order, and later work waits for it",
        "before=0 later=pending after=1", NULL),
    CASE("host-function-sees-earlier-work", "8", VERIFIED, host_function_sees_earlier_work,
        "a host function sees what came before it in the stream, not what comes after",
        "seen=3 now=4", NULL),
    CASE("host-function-calls-cuda", "5", VERIFIED, host_function_calls_cuda,
        "a host function may make no CUDA call: 800",
        "malloc=800", NULL),
    CASE("callback-is-told", "5", VERIFIED, callback_is_told,
        "a callback is told its stream and the status",
        "count=1 status=0 stream=yes", NULL),
    CASE("callback-bad", "5", VERIFIED, callback_bad,
        "a callback without function or with flags: 1",
        "function=1 flags=1", NULL),
#ifdef TIDEMARK_SIMULATOR
    CASE_2_SIMULATED("callback-runs-after-error", "5", VERIFIED, callback_runs_after_error,
        "after an error host functions are skipped, callbacks run and are told",
        "function=0 callback=1 status=700", NULL),
#endif
    {0},
};
