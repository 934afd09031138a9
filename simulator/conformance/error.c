// Section 1: the last error, names of errors, errors that stay.
#include "simulator/conformance/cases.h"

#include <string.h>

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

// A call that fails with 101 whatever the device.
static cudaError_t fail(void) { return cudaSetDevice(-1); }

static void answer_last(struct conformance *c, const char *label) {
    const cudaError_t error = cudaPeekAtLastError();
    answer_number(c, label, (int)error);
}

static void last_error_is_set(struct conformance *c) {
    (void)fail();
    answer_last(c, "last");
}

static void last_error_survives_success(struct conformance *c) {
    int device;
    (void)fail();
    (void)cudaGetDevice(&device);
    (void)cudaDeviceSynchronize();
    answer_last(c, "last");
}

static void last_error_get_clears(struct conformance *c) {
    (void)fail();
    answer_number(c, "get", (int)cudaGetLastError());
    answer_number(c, "again", (int)cudaGetLastError());
}

static void last_error_peek_keeps(struct conformance *c) {
    (void)fail();
    answer_number(c, "peek", (int)cudaPeekAtLastError());
    answer_number(c, "again", (int)cudaPeekAtLastError());
}

static void last_error_is_the_latest(struct conformance *c) {
    (void)fail();
    (void)cudaMalloc(NULL, 16);
    answer_last(c, "last");
}

static void last_in_thread(struct conformance *c) {
    answer_last(c, "thread");
    (void)cudaMalloc(NULL, 16);
}

static void last_error_per_thread(struct conformance *c) {
    (void)fail();
    conformance_in_thread(c, last_in_thread);
    answer_last(c, "here");
}

static void not_ready_is_not_recorded(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    (void)conformance_mark(c, stream);
    answer_number(c, "query", (int)cudaStreamQuery(stream));
    answer_last(c, "last");
}

static void error_unknown_code(struct conformance *c) {
    const cudaError_t unknown = (cudaError_t)12345;
    answer_yes(c, "name", strcmp(cudaGetErrorName(unknown), "unrecognized error code") == 0);
    answer_yes(c, "string", strcmp(cudaGetErrorString(unknown), "unrecognized error code") == 0);
}

static void error_names(struct conformance *c) {
    answer_word(c, "0", cudaGetErrorName(cudaSuccess));
    answer_word(c, "2", cudaGetErrorName(cudaErrorMemoryAllocation));
    answer_word(c, "600", cudaGetErrorName(cudaErrorNotReady));
    answer_yes(c, "string", strcmp(cudaGetErrorString(cudaSuccess), "no error") == 0);
}

static void error_is_not_sticky(struct conformance *c) {
    void *pointer = NULL;
    answer_code(c, "null", cudaMalloc(NULL, 16));
    answer_code(c, "memory", cudaMalloc(&pointer, (size_t)1 << 60));
    answer_code(c, "device", fail());
    answer_code(c, "handle", cudaEventRecord(NULL, NULL));
    answer_code(c, "after", cudaDeviceSynchronize());
}

#ifdef TIDEMARK_SIMULATOR
// A copy whose source is gone when it runs: the device faults, as it would in a kernel.
static void device_fault(struct conformance *c) {
    void *here = conformance_device_memory(c, 16);
    void *there;
    MUST(c, cudaSetDevice(1));
    MUST(c, cudaMalloc(&there, 16));
    MUST(c, cudaSetDevice(0));
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    MUST(c, cudaMemcpyAsync(here, there, 16, cudaMemcpyDefault, stream));
    MUST(c, cudaFree(there)); // waits for the work of its own device only
    conformance_open(c);
}

static void error_700_is_sticky(struct conformance *c) {
    device_fault(c);
    answer_code(c, "synchronize", cudaDeviceSynchronize());
    void *pointer;
    answer_code(c, "malloc", cudaMalloc(&pointer, 16));
    answer_code(c, "again", cudaDeviceSynchronize());
}

static void error_700_skips_work(struct conformance *c) {
    unsigned char *bytes = conformance_pinned_memory(c, 16);
    bytes[0] = 1;
    device_fault(c);
    (void)cudaMemsetAsync(bytes, 2, 16, NULL);
    (void)cudaDeviceSynchronize();
    answer_number(c, "byte", bytes[0]);
}
#endif

const struct conformance_case conformance__cases_error[] = {
    CASE("last-error-is-set", "1", VERIFIED, last_error_is_set,
        "a failing call sets the thread's last error",
        "last=101", NULL),
    CASE("last-error-survives-success", "1", VERIFIED, last_error_survives_success,
        "success does not clear the last error",
        "last=101", NULL),
    CASE("last-error-get-clears", "1", VERIFIED, last_error_get_clears,
        "cudaGetLastError returns the last error and clears it",
        "get=101 again=0", NULL),
    CASE("last-error-peek-keeps", "1", VERIFIED, last_error_peek_keeps,
        "cudaPeekAtLastError returns the last error only",
        "peek=101 again=101", NULL),
    CASE("last-error-is-the-latest", "1", VERIFIED, last_error_is_the_latest,
        "a later error takes the place of an earlier one",
        "last=1", NULL),
    CASE("last-error-per-thread", "1", VERIFIED, last_error_per_thread,
        "the last error is each host thread's own",
        "thread=0 here=101", NULL),
    CASE("not-ready-is-not-recorded", "1", UNVERIFIED, not_ready_is_not_recorded,
        "600 does not become the last error",
        "query=600 last=0", "query=600 last=600"),
    CASE("error-unknown-code", "1", VERIFIED, error_unknown_code,
        "an unknown code's name and string are \"unrecognized error code\"",
        "name=yes string=yes", NULL),
    CASE("error-names", "1", VERIFIED, error_names,
        "codes have CUDA's names",
        "0=cudaSuccess 2=cudaErrorMemoryAllocation 600=cudaErrorNotReady string=yes", NULL),
    CASE("error-is-not-sticky", "1", VERIFIED, error_is_not_sticky,
        "after 1, 2, 101 and 400 later calls succeed",
        "null=1 memory=2 device=101 handle=400 after=0", NULL),
#ifdef TIDEMARK_SIMULATOR
    CASE_2_SIMULATED("error-700-is-sticky", "1", VERIFIED, error_700_is_sticky,
        "after 700 every later call of the device fails alike",
        "synchronize=700 malloc=700 again=700", NULL),
    CASE_2_SIMULATED("error-700-skips-work", "1", VERIFIED, error_700_skips_work,
        "a device that is dead does no more work",
        "byte=1", NULL),
#endif
    {0},
};
