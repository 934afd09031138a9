// Section 8: what is guaranteed, and what a device may do. The second part needs the simulator's
// schedules: that a device may do something shows in some run only.
#include "simulator/conformance/cases.h"

#include <string.h>

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"

#include "base/check.h"

#include <stdio.h>
#endif

#define SIZE 16

static void stream_is_a_queue(struct conformance *c) {
    unsigned char *pinned = conformance_pinned_memory(c, SIZE);
    void *device = conformance_device_memory(c, SIZE);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    for (int i = 1; i <= 20; ++i)
        MUST(c, cudaMemsetAsync(device, i, SIZE, stream));
    MUST(c, cudaMemcpyAsync(pinned, device, SIZE, cudaMemcpyDefault, stream));
    MUST(c, cudaMemsetAsync(device, 99, SIZE, stream));
    conformance_open(c);
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "copied", pinned[0]);
}

static void wait_shows_the_other_streams_writes(struct conformance *c) {
    unsigned char *pinned = conformance_pinned_memory(c, SIZE);
    void *device = conformance_device_memory(c, SIZE);
    cudaStream_t writer = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t reader = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, writer);
    MUST(c, cudaMemsetAsync(device, 5, SIZE, writer));
    MUST(c, cudaStreamWaitEvent(reader, conformance_mark(c, writer), 0));
    MUST(c, cudaMemcpyAsync(pinned, device, SIZE, cudaMemcpyDefault, reader));
    conformance_open(c);
    MUST(c, cudaStreamSynchronize(reader));
    answer_number(c, "read", pinned[0]);
}

static void waits_are_transitive(struct conformance *c) {
    cudaStream_t first = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t second = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t third = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, first);
    MUST(c, cudaStreamWaitEvent(second, conformance_mark(c, first), 0));
    MUST(c, cudaStreamWaitEvent(third, conformance_mark(c, second), 0));
    answer_event(c, "third", conformance_mark(c, third));
}

static void synchronize_shows_writes(struct conformance *c) {
    unsigned char *pinned = conformance_pinned_memory(c, SIZE);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    pinned[0] = 0;
    conformance_gate(c, stream);
    MUST(c, cudaMemsetAsync(pinned, 3, SIZE, stream));
    MUST(c, cudaEventSynchronize(conformance_mark(c, stream)));
    answer_number(c, "read", pinned[0]);
}

static void host_writes_before_enqueue_are_seen(struct conformance *c) {
    unsigned char *pinned = conformance_pinned_memory(c, SIZE);
    void *device = conformance_device_memory(c, SIZE);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    memset(pinned, 8, SIZE);
    MUST(c, cudaMemcpyAsync(device, pinned, SIZE, cudaMemcpyDefault, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "byte", conformance_byte(device));
}

static void unordered_streams_overtake(struct conformance *c) {
    cudaStream_t first = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t second = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, first);
    cudaEvent_t early = conformance_mark(c, first), late = conformance_mark(c, second);
    answer_event(c, "late", late);
    answer_event(c, "early", early);
}

static void polling_succeeds(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    void *device = conformance_device_memory(c, SIZE);
    for (int i = 0; i < 10; ++i)
        MUST(c, cudaMemsetAsync(device, i, SIZE, stream));
    cudaError_t error = cudaErrorNotReady;
    for (int i = 0; i < 10000000 && error == cudaErrorNotReady; ++i)
        error = cudaStreamQuery(stream);
    answer_code(c, "query", error);
}

#ifdef TIDEMARK_SIMULATOR
static void polling_succeeds_lazily(struct conformance *c) {
    BASE_CHECK_EQ(sim_schedule("lazy"), BASE_OK);
    polling_succeeds(c);
}

static void copy_byte(const void *argument) {
    int *const *pair = argument;
    *pair[0] = *pair[1];
}

static void launch_arguments_are_copied(struct conformance *c) {
    int from = 4, other = 5, to = 0;
    int *pair[2] = {&to, &from};
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    MUST(c, sim_launch(stream, "copy", copy_byte, pair, sizeof pair));
    pair[1] = &other;
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "to", to);
}

// Counts the seeds, of 200, in which a write of one stream comes after a write of another one that
// was submitted later; and those in which work had run before its enqueueing call returned.
static void random_orders(struct conformance *c) {
    int overtaken = 0, at_once = 0, not_at_once = 0, doubts = 0;
    unsigned char *pinned = conformance_pinned_memory(c, SIZE);
    for (int seed = 0; seed < 200; ++seed) {
        char schedule[32];
        snprintf(schedule, sizeof schedule, "random:%d", seed);
        BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
        cudaStream_t first, second;
        MUST(c, cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
        MUST(c, cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
        pinned[0] = 0;
        MUST(c, cudaMemsetAsync(pinned, 1, SIZE, first));
        at_once += pinned[0] == 1;
        not_at_once += pinned[0] == 0;
        MUST(c, cudaMemsetAsync(pinned, 2, SIZE, second));
        if (pinned[0] == 2)
            doubts += cudaStreamQuery(second) == cudaErrorNotReady;
        (void)cudaGetLastError();
        MUST(c, cudaDeviceSynchronize());
        overtaken += pinned[0] == 1;
        MUST(c, cudaStreamDestroy(first));
        MUST(c, cudaStreamDestroy(second));
    }
    answer_yes(c, "overtaken", overtaken > 0 && overtaken < 200);
    answer_yes(c, "at-once", at_once > 0);
    answer_yes(c, "late", not_at_once > 0);
    answer_yes(c, "doubts", doubts > 0);
}

// One stream of the highest priority and one of the lowest, and a host function in each: the
// highest was submitted first and may come last, and so may either function.
struct last {
    int *value;
    int mine;
};

static void note(void *argument) {
    const struct last *last = argument;
    *last->value = last->mine;
}

static void priorities_impose_no_order(struct conformance *c) {
    int least, greatest, low_last = 0, high_last = 0;
    MUST(c, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    for (int seed = 0; seed < 100; ++seed) {
        char schedule[32];
        snprintf(schedule, sizeof schedule, "random:%d", seed);
        BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
        int value = 0;
        struct last high = {&value, 1}, low = {&value, 2};
        cudaStream_t first, second;
        MUST(c, cudaStreamCreateWithPriority(&first, cudaStreamNonBlocking, greatest));
        MUST(c, cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, least));
        MUST(c, cudaLaunchHostFunc(first, note, &high));
        MUST(c, cudaLaunchHostFunc(second, note, &low));
        MUST(c, cudaDeviceSynchronize());
        low_last += value == 2;
        high_last += value == 1;
        MUST(c, cudaStreamDestroy(first));
        MUST(c, cudaStreamDestroy(second));
    }
    answer_yes(c, "low-last", low_last > 0);
    answer_yes(c, "high-last", high_last > 0);
}

static void lazy_runs_nothing(struct conformance *c) {
    unsigned char *pinned = conformance_pinned_memory(c, SIZE);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    BASE_CHECK_EQ(sim_schedule("lazy"), BASE_OK);
    pinned[0] = 0;
    MUST(c, cudaMemsetAsync(pinned, 1, SIZE, stream));
    answer_number(c, "before", pinned[0]);
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "after", pinned[0]);
}

static void free_strict(struct conformance *c) {
    void *pointer;
    MUST(c, cudaMalloc(&pointer, SIZE));
    BASE_CHECK_EQ(sim_reading("free", "strict"), BASE_OK);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    cudaEvent_t event = conformance_mark(c, stream);
    answer_code(c, "free", cudaFree(pointer));
    answer_event(c, "work", event);
    BASE_CHECK_EQ(sim_reading("free", "wait"), BASE_OK);
}
#endif

const struct conformance_case conformance__cases_order[] = {
    CASE("stream-is-a-queue", "8", VERIFIED, stream_is_a_queue,
        "within a stream work runs in order and sees what came before",
        "copied=20", NULL),
    CASE("wait-shows-writes", "8", VERIFIED, wait_shows_the_other_streams_writes,
        "work behind a wait sees the other stream's writes",
        "read=5", NULL),
    CASE("waits-are-transitive", "8", VERIFIED, waits_are_transitive,
        "order by events is transitive",
        "third=pending", NULL),
    CASE("synchronize-shows-writes", "8", VERIFIED, synchronize_shows_writes,
        "after a synchronise the host sees what it covers",
        "read=3", NULL),
    CASE("host-writes-are-seen", "8", VERIFIED, host_writes_before_enqueue_are_seen,
        "work sees what the host wrote before it was enqueued",
        "byte=8", NULL),
    CASE("unordered-streams-overtake", "8", VERIFIED, unordered_streams_overtake,
        "a stream does not wait for another one without cause",
        "late=done early=pending", NULL),
    CASE("polling-succeeds", "8", VERIFIED, polling_succeeds,
        "a loop on a query succeeds in the end",
        "query=0", NULL),
#ifdef TIDEMARK_SIMULATOR
    CASE_SIMULATED("polling-succeeds-lazily", "8", VERIFIED, polling_succeeds_lazily,
        "a loop on a query succeeds even if nothing runs by itself",
        "query=0", NULL),
    CASE_SIMULATED("launch-arguments-are-copied", "8", VERIFIED, launch_arguments_are_copied,
        "a launch copies its arguments at the call",
        "to=4", NULL),
    CASE_SIMULATED("random-orders", "8", VERIFIED, random_orders,
        "unordered streams run in either order, at once or late, and a query may say 600 of what "
        "is complete",
        "overtaken=yes at-once=yes late=yes doubts=yes", NULL),
    CASE_SIMULATED("priorities-impose-no-order", "8", VERIFIED, priorities_impose_no_order,
        "priorities impose no order, and host functions of different streams run in any",
        "low-last=yes high-last=yes", NULL),
    CASE_SIMULATED("lazy-runs-nothing", "8", VERIFIED, lazy_runs_nothing,
        "work need not start before a synchronise",
        "before=0 after=1", NULL),
    CASE_SIMULATED("free-strict", "8", VERIFIED, free_strict,
        "in the strict reading cudaFree orders nothing",
        "free=0 work=pending", NULL),
#endif
    {0},
};
