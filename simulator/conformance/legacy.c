// Section 5: the legacy default stream and its two-way barrier, the per-thread default stream.
#include "simulator/conformance/cases.h"

#define LEGACY     cudaStreamLegacy
#define PER_THREAD cudaStreamPerThread

static void nothing(void *unused) { (void)unused; }

// Gates a stream, puts something of the legacy stream behind it, and tells whether that waits.
static void legacy_behind(struct conformance *c, unsigned int flags) {
    cudaStream_t stream = conformance_stream(c, flags);
    conformance_gate(c, stream);
    (void)conformance_mark(c, stream);
    answer_event(c, "legacy", conformance_mark(c, LEGACY));
}

static void legacy_waits_for_blocking(struct conformance *c) {
    legacy_behind(c, cudaStreamDefault);
}

static void legacy_passes_nonblocking(struct conformance *c) {
    legacy_behind(c, cudaStreamNonBlocking);
}

// The other way round.
static void behind_legacy(struct conformance *c, unsigned int flags) {
    cudaStream_t stream = conformance_stream(c, flags);
    conformance_gate(c, LEGACY);
    (void)conformance_mark(c, LEGACY);
    answer_event(c, "stream", conformance_mark(c, stream));
}

static void blocking_waits_for_legacy(struct conformance *c) {
    behind_legacy(c, cudaStreamDefault);
}

static void nonblocking_passes_legacy(struct conformance *c) {
    behind_legacy(c, cudaStreamNonBlocking);
}

static void legacy_hop(struct conformance *c, void (*hop)(struct conformance *c)) {
    cudaStream_t first = conformance_stream(c, cudaStreamDefault);
    cudaStream_t second = conformance_stream(c, cudaStreamDefault);
    conformance_gate(c, first);
    (void)conformance_mark(c, first);
    hop(c);
    answer_event(c, "second", conformance_mark(c, second));
    conformance_open(c);
    MUST(c, cudaDeviceSynchronize());
}

static void hop_host_function(struct conformance *c) {
    MUST(c, cudaLaunchHostFunc(LEGACY, nothing, NULL));
}

static void hop_record(struct conformance *c) { (void)conformance_mark(c, LEGACY); }

static void hop_fill(struct conformance *c) {
    MUST(c, cudaMemset(conformance_device_memory(c, 16), 1, 16));
}

static void hop_fill_async(struct conformance *c) {
    MUST(c, cudaMemsetAsync(conformance_device_memory(c, 16), 1, 16, LEGACY));
}

static void hop_copy(struct conformance *c) {
    void *from = conformance_device_memory(c, 16), *to = conformance_device_memory(c, 16);
    MUST(c, cudaMemcpy(to, from, 16, cudaMemcpyDeviceToDevice));
}

static void hop_copy_async(struct conformance *c) {
    void *from = conformance_device_memory(c, 16), *to = conformance_device_memory(c, 16);
    MUST(c, cudaMemcpyAsync(to, from, 16, cudaMemcpyDeviceToDevice, NULL));
}

static void hop_wait(struct conformance *c) {
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, other);
    MUST(c, cudaStreamWaitEvent(LEGACY, conformance_mark(c, other), 0));
}

static void hop_nothing(struct conformance *c) { (void)c; }

static void legacy_hop_host_function(struct conformance *c) { legacy_hop(c, hop_host_function); }
static void legacy_hop_record(struct conformance *c) { legacy_hop(c, hop_record); }
static void legacy_hop_fill(struct conformance *c) { legacy_hop(c, hop_fill); }
static void legacy_hop_fill_async(struct conformance *c) { legacy_hop(c, hop_fill_async); }
static void legacy_hop_copy(struct conformance *c) { legacy_hop(c, hop_copy); }
static void legacy_hop_copy_async(struct conformance *c) { legacy_hop(c, hop_copy_async); }
static void legacy_hop_wait(struct conformance *c) { legacy_hop(c, hop_wait); }
static void legacy_no_hop(struct conformance *c) { legacy_hop(c, hop_nothing); }

static void legacy_synchronize_covers_blocking(struct conformance *c) {
    cudaStream_t blocking = conformance_stream(c, cudaStreamDefault);
    conformance_gate(c, blocking);
    cudaEvent_t event = conformance_mark(c, blocking);
    answer_code(c, "synchronize", cudaStreamSynchronize(LEGACY));
    answer_code(c, "blocking", cudaEventQuery(event));
}

static void legacy_synchronize_passes(struct conformance *c) {
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, other);
    cudaEvent_t event = conformance_mark(c, other);
    answer_code(c, "synchronize", cudaStreamSynchronize(LEGACY));
    answer_event(c, "nonblocking", event);
}

static void legacy_query_covers_blocking(struct conformance *c) {
    cudaStream_t blocking = conformance_stream(c, cudaStreamDefault);
    answer_code(c, "idle", cudaStreamQuery(LEGACY));
    conformance_gate(c, blocking);
    (void)conformance_mark(c, blocking);
    answer_code(c, "busy", cudaStreamQuery(LEGACY));
    conformance_open(c);
    MUST(c, cudaDeviceSynchronize());
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, other);
    (void)conformance_mark(c, other);
    answer_code(c, "nonblocking", cudaStreamQuery(LEGACY));
}

static void blocking_synchronize_covers_itself(struct conformance *c) {
    cudaStream_t blocking = conformance_stream(c, cudaStreamDefault);
    MUST(c, cudaStreamSynchronize(blocking));
    conformance_gate(c, LEGACY);
    cudaEvent_t event = conformance_mark(c, LEGACY);
    answer_code(c, "synchronize", cudaStreamSynchronize(blocking));
    answer_event(c, "legacy", event);
    answer_code(c, "query", cudaStreamQuery(blocking));
}

static void zero_is_legacy(struct conformance *c) {
    conformance_gate(c, NULL);
    (void)conformance_mark(c, NULL);
    answer_code(c, "legacy", cudaStreamQuery(LEGACY));
}

static void legacy_per_device(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamDefault);
    conformance_gate(c, stream);
    (void)conformance_mark(c, stream);
    MUST(c, cudaSetDevice(1));
    cudaEvent_t event = conformance_mark(c, LEGACY);
    answer_event(c, "other", event);
    MUST(c, cudaSetDevice(0));
}

static void per_thread_is_blocking(struct conformance *c) {
    conformance_gate(c, LEGACY);
    (void)conformance_mark(c, LEGACY);
    answer_event(c, "per-thread", conformance_mark(c, PER_THREAD));
    unsigned int flags = 99;
    MUST(c, cudaStreamGetFlags(PER_THREAD, &flags));
    answer_number(c, "flags", flags);
}

static void mark_in_thread(struct conformance *c) {
    answer_event(c, "thread", conformance_mark(c, PER_THREAD));
    answer_code(c, "query", cudaStreamQuery(PER_THREAD));
}

static void per_thread_is_each_threads(struct conformance *c) {
    conformance_gate(c, PER_THREAD);
    (void)conformance_mark(c, PER_THREAD);
    answer_code(c, "here", cudaStreamQuery(PER_THREAD));
    conformance_in_thread(c, mark_in_thread);
}

const struct conformance_case conformance__cases_legacy[] = {
    CASE("legacy-waits-for-blocking", "5", VERIFIED, legacy_waits_for_blocking,
        "legacy work comes after earlier work of blocking streams",
        "legacy=pending", NULL),
    CASE("legacy-passes-nonblocking", "5", VERIFIED, legacy_passes_nonblocking,
        "legacy work does not wait for NonBlocking streams",
        "legacy=done", NULL),
    CASE("blocking-waits-for-legacy", "5", VERIFIED, blocking_waits_for_legacy,
        "work of blocking streams comes after earlier legacy work",
        "stream=pending", NULL),
    CASE("nonblocking-passes-legacy", "5", VERIFIED, nonblocking_passes_legacy,
        "NonBlocking streams do not wait for legacy work",
        "stream=done", NULL),
    CASE("legacy-hop-host-function", "5", UNVERIFIED, legacy_hop_host_function,
        "a legacy host function orders two blocking streams",
        "second=pending", "second=done"),
    CASE("legacy-hop-record", "5", UNVERIFIED, legacy_hop_record,
        "a legacy event record orders two blocking streams",
        "second=pending", "second=done"),
    CASE("legacy-hop-fill", "5", VERIFIED, legacy_hop_fill,
        "cudaMemset orders two blocking streams",
        "second=pending", NULL),
    CASE("legacy-hop-fill-async", "5", VERIFIED, legacy_hop_fill_async,
        "a legacy cudaMemsetAsync orders two blocking streams",
        "second=pending", NULL),
    CASE("legacy-hop-copy", "5", VERIFIED, legacy_hop_copy,
        "cudaMemcpy orders two blocking streams",
        "second=pending", NULL),
    CASE("legacy-hop-copy-async", "5", VERIFIED, legacy_hop_copy_async,
        "a legacy cudaMemcpyAsync orders two blocking streams",
        "second=pending", NULL),
    CASE("legacy-hop-wait", "5", VERIFIED, legacy_hop_wait,
        "a legacy wait orders two blocking streams",
        "second=pending", NULL),
    CASE("legacy-no-hop", "5", VERIFIED, legacy_no_hop,
        "without legacy work blocking streams are unordered",
        "second=done", NULL),
    CASE("legacy-synchronize-covers-blocking", "5", VERIFIED, legacy_synchronize_covers_blocking,
        "synchronising the legacy stream covers blocking streams, without any legacy work",
        "synchronize=0 blocking=0", NULL),
    CASE("legacy-synchronize-passes-nonblocking", "5", VERIFIED, legacy_synchronize_passes,
        "synchronising the legacy stream does not wait for NonBlocking streams",
        "synchronize=0 nonblocking=pending", NULL),
    CASE("legacy-query-covers-blocking", "5", VERIFIED, legacy_query_covers_blocking,
        "querying the legacy stream asks about blocking streams, not about NonBlocking ones",
        "idle=0 busy=600 nonblocking=0", NULL),
    CASE("blocking-synchronize-covers-itself", "5", VERIFIED, blocking_synchronize_covers_itself,
        "synchronising a blocking stream does not cover legacy work behind its last item",
        "synchronize=0 legacy=pending query=0", NULL),
    CASE("zero-is-legacy", "5", VERIFIED, zero_is_legacy,
        "stream 0 is the legacy stream",
        "legacy=600", NULL),
    CASE_2("legacy-per-device", "5", VERIFIED, legacy_per_device,
        "each device has its legacy stream",
        "other=done", NULL),
    CASE("per-thread-is-blocking", "5", VERIFIED, per_thread_is_blocking,
        "the per-thread stream is a blocking stream",
        "per-thread=pending flags=0", NULL),
    CASE("per-thread-is-each-threads", "5", VERIFIED, per_thread_is_each_threads,
        "each thread has its per-thread stream",
        "here=600 thread=done query=0", NULL),
    {0},
};
