// Streams and events: held streams, the order between streams, and the codes for misuse.
#include "base/check.h"
#include "simulator/sim.h"

#include <string.h>

static char trail[64]; // what ran, a letter each

static void note(void *letter) { strncat(trail, letter, sizeof trail - strlen(trail) - 1); }

static void note_in(cudaStream_t stream, const char *letter) {
    BASE_CHECK_EQ(cudaLaunchHostFunc(stream, note, (void *)(uintptr_t)letter), cudaSuccess);
}

static void trail_is(const char *expected) {
    base_check_context("ran \"%s\", expected \"%s\"", trail, expected);
    BASE_CHECK(strcmp(trail, expected) == 0);
    base_check_context(NULL);
}

static void nothing(const void *argument) { (void)argument; }

static cudaStream_t stream_new(unsigned int flags) {
    cudaStream_t stream;
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
    return stream;
}

static cudaEvent_t event_new(void) {
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    return event;
}

static void start(int devices) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = devices,
                                                      .capacity_bytes = 64 << 20,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    trail[0] = '\0';
}

static void eager_work_is_done_at_once(void) {
    start(1);
    cudaStream_t stream = stream_new(cudaStreamNonBlocking);
    cudaEvent_t event = event_new();
    note_in(stream, "a");
    BASE_CHECK_EQ(cudaEventRecord(event, stream), cudaSuccess);
    trail_is("a");
    BASE_CHECK_EQ(cudaEventQuery(event), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamQuery(stream), cudaSuccess);
}

static void a_held_stream_keeps_its_work_pending(void) {
    start(1);
    cudaStream_t stream = stream_new(cudaStreamNonBlocking);
    cudaEvent_t first = event_new(), second = event_new();
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaStreamQuery(stream), cudaSuccess);
    note_in(stream, "a");
    BASE_CHECK_EQ(cudaEventRecord(first, stream), cudaSuccess);
    note_in(stream, "b");
    BASE_CHECK_EQ(cudaEventRecord(second, stream), cudaSuccess);
    BASE_CHECK_EQ(sim_stream_pending(stream), 4);
    BASE_CHECK_EQ(cudaEventQuery(first), cudaErrorNotReady);
    BASE_CHECK_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess); // not ready is no error

    BASE_CHECK_EQ(sim_stream_run(stream, 1), 1);
    trail_is("a");
    BASE_CHECK_EQ(cudaEventQuery(first), cudaErrorNotReady);
    BASE_CHECK_EQ(sim_stream_run(stream, 1), 1);
    BASE_CHECK_EQ(cudaEventQuery(first), cudaSuccess);
    BASE_CHECK_EQ(cudaEventQuery(second), cudaErrorNotReady);
    BASE_CHECK_EQ(sim_stream_run(stream, 100), 2);
    BASE_CHECK_EQ(cudaEventQuery(second), cudaSuccess);

    note_in(stream, "c");
    sim_stream_hold(stream, false);
    trail_is("abc");
    BASE_CHECK_EQ(sim_stream_pending(stream), 0);
}

static void waits_force_held_work(void) {
    start(1);
    cudaStream_t one = stream_new(cudaStreamNonBlocking), two = stream_new(cudaStreamNonBlocking);
    cudaEvent_t event = event_new();
    void *memory, *host;
    BASE_CHECK_EQ(cudaMalloc(&memory, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaMallocHost(&host, 1), cudaSuccess);
    sim_stream_hold(one, true);
    sim_stream_hold(two, true);
    note_in(one, "a");
    BASE_CHECK_EQ(cudaEventRecord(event, one), cudaSuccess);
    note_in(one, "b");
    note_in(two, "c");
    BASE_CHECK_EQ(cudaEventSynchronize(event), cudaSuccess); // only what the event covers
    trail_is("a");
    BASE_CHECK_EQ(cudaStreamSynchronize(one), cudaSuccess);
    trail_is("ab");
    BASE_CHECK_EQ(cudaFree(memory), cudaSuccess); // the whole device
    trail_is("abc");
    note_in(one, "d");
    BASE_CHECK_EQ(cudaFreeHost(host), cudaSuccess);
    trail_is("abcd");
    note_in(two, "e");
    BASE_CHECK_EQ(cudaMalloc(&memory, 1), cudaSuccess); // waits for nothing
    trail_is("abcd");
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    trail_is("abcde");
    note_in(one, "f");
    BASE_CHECK_EQ(cudaFree(NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(&memory), cudaErrorInvalidValue);
    trail_is("abcde");
}

static void a_stream_waits_for_the_event_as_it_was_recorded(void) {
    start(1);
    cudaStream_t held = stream_new(cudaStreamNonBlocking),
                 other = stream_new(cudaStreamNonBlocking);
    cudaEvent_t event = event_new();
    sim_stream_hold(held, true);
    BASE_CHECK_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess); // never recorded: nothing
    note_in(other, "a");
    trail_is("a");
    note_in(held, "b");
    BASE_CHECK_EQ(cudaEventRecord(event, held), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
    note_in(held, "c");
    BASE_CHECK_EQ(cudaEventRecord(event, held), cudaSuccess); // the wait keeps the older one
    note_in(other, "d");
    BASE_CHECK_EQ(cudaStreamQuery(other), cudaErrorNotReady);
    BASE_CHECK_EQ(cudaEventDestroy(event), cudaSuccess); // and outlives it
    trail_is("a");
    BASE_CHECK_EQ(sim_stream_run(held, 2), 2);
    trail_is("abd");
    BASE_CHECK_EQ(sim_stream_run(held, 2), 2);
    trail_is("abdc");
}

static void a_held_stream_stays_behind_what_it_waits_for(void) {
    start(1);
    cudaStream_t one = stream_new(cudaStreamNonBlocking), two = stream_new(cudaStreamNonBlocking);
    cudaEvent_t event = event_new();
    sim_stream_hold(one, true);
    sim_stream_hold(two, true);
    note_in(one, "a");
    BASE_CHECK_EQ(cudaEventRecord(event, one), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(two, event, 0), cudaSuccess);
    note_in(two, "b");
    BASE_CHECK_EQ(sim_stream_run(two, 5), 0);
    BASE_CHECK_EQ(sim_stream_pending(two), 2);
    BASE_CHECK_EQ(cudaStreamSynchronize(two), cudaSuccess); // forces one as far as needed
    trail_is("ab");
    BASE_CHECK_EQ(sim_stream_pending(one), 0);
}

static void long_chains_of_streams_are_forced_in_order(void) {
    start(1);
    enum { COUNT = 200 };
    static cudaStream_t streams[COUNT];
    cudaEvent_t event = event_new();
    for (int i = 0; i < COUNT; ++i) {
        streams[i] = stream_new(cudaStreamNonBlocking);
        sim_stream_hold(streams[i], true);
        if (i > 0)
            BASE_CHECK_EQ(cudaStreamWaitEvent(streams[i], event, 0), cudaSuccess);
        if (i % 100 == 0)
            note_in(streams[i], i == 0 ? "a" : "b");
        BASE_CHECK_EQ(cudaEventRecord(event, streams[i]), cudaSuccess);
    }
    note_in(streams[COUNT - 1], "c");
    BASE_CHECK_EQ(cudaStreamSynchronize(streams[COUNT - 1]), cudaSuccess);
    trail_is("abc");
    for (int i = 0; i < COUNT; ++i)
        BASE_CHECK_EQ(sim_stream_pending(streams[i]), 0);
}

static void the_legacy_stream_is_a_barrier_for_blocking_streams_only(void) {
    start(1);
    cudaStream_t blocking = stream_new(cudaStreamDefault), other = stream_new(cudaStreamDefault);
    cudaStream_t free_stream = stream_new(cudaStreamNonBlocking);
    sim_stream_hold(blocking, true);
    note_in(blocking, "a");
    note_in(NULL, "b");  // behind a
    note_in(other, "c"); // behind b
    note_in(cudaStreamPerThread, "d");
    note_in(free_stream, "e");
    trail_is("e");
    BASE_CHECK_EQ(cudaStreamQuery(NULL), cudaErrorNotReady);
    BASE_CHECK_EQ(cudaStreamQuery(other), cudaErrorNotReady);
    BASE_CHECK_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    BASE_CHECK_EQ(trail[1], 'a');
    BASE_CHECK_EQ(trail[2], 'b');
    BASE_CHECK_EQ(cudaStreamSynchronize(other), cudaSuccess);
    BASE_CHECK_EQ(strlen(trail), 5);

    // The legacy stream's synchronise and query stand for the blocking streams, without legacy work
    // too.
    note_in(blocking, "f");
    BASE_CHECK_EQ(cudaStreamQuery(cudaStreamLegacy), cudaErrorNotReady);
    BASE_CHECK_EQ(cudaStreamSynchronize(NULL), cudaSuccess);
    BASE_CHECK_EQ(trail[5], 'f');

    sim_stream_hold(free_stream, true);
    note_in(free_stream, "g");
    BASE_CHECK_EQ(cudaStreamQuery(NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(NULL), cudaSuccess);
    BASE_CHECK_EQ(strlen(trail), 6);
}

static void a_held_legacy_stream_holds_blocking_streams(void) {
    start(1);
    cudaStream_t blocking = stream_new(cudaStreamDefault);
    cudaEvent_t event = event_new();
    sim_stream_hold(NULL, true);
    BASE_CHECK_EQ(cudaEventRecord(event, NULL), cudaSuccess);
    note_in(blocking, "a");
    BASE_CHECK_EQ(cudaEventQuery(event), cudaErrorNotReady);
    trail_is("");
    // Behind its own last item only: the legacy work submitted after it is not covered.
    note_in(NULL, "b");
    BASE_CHECK_EQ(cudaStreamSynchronize(blocking), cudaSuccess);
    trail_is("a");
    BASE_CHECK_EQ(cudaEventQuery(event), cudaSuccess);
    sim_stream_hold(NULL, false);
    trail_is("ab");
}

static void destroyed_streams_finish_their_work(void) {
    start(1);
    cudaStream_t stream = stream_new(cudaStreamNonBlocking),
                 held = stream_new(cudaStreamNonBlocking);
    cudaEvent_t event = event_new(), behind = event_new();
    sim_stream_hold(held, true);
    BASE_CHECK_EQ(cudaEventRecord(event, held), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
    note_in(stream, "a");
    BASE_CHECK_EQ(cudaEventRecord(behind, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamDestroy(stream), cudaSuccess);
    trail_is("");
    BASE_CHECK_EQ(cudaStreamQuery(stream), cudaErrorContextIsDestroyed);
    BASE_CHECK_EQ(cudaEventQuery(behind), cudaErrorNotReady);
    BASE_CHECK_EQ(cudaEventSynchronize(behind), cudaSuccess);
    trail_is("a");
    // Its slot serves another stream now; the event still says what it said.
    cudaStream_t next = stream_new(cudaStreamNonBlocking);
    sim_stream_hold(next, true);
    note_in(next, "b");
    BASE_CHECK_EQ(cudaEventQuery(behind), cudaSuccess);
    BASE_CHECK(next != stream);
    BASE_CHECK_EQ(cudaStreamDestroy(next), cudaSuccess);
    trail_is("ab");
}

static void misused_handles_get_codes(void) {
    start(2);
    cudaStream_t stream = stream_new(cudaStreamDefault), none;
    cudaEvent_t event = event_new(), other_device;
    int local, *foreign = &local;
    BASE_CHECK_EQ(cudaStreamCreate(NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&none, 2), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaEventCreate(NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&other_device, 8), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&other_device, cudaEventInterprocess),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaStreamDestroy(cudaStreamLegacy), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaStreamQuery((cudaStream_t)(void *)foreign), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaStreamQuery((cudaStream_t)(void *)event), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaEventQuery((cudaEvent_t)(void *)foreign), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaEventQuery((cudaEvent_t)UINTPTR_MAX), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaEventQuery(NULL), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaEventRecord(NULL, stream), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaEventDestroy(NULL), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaEventSynchronize(NULL), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaStreamWaitEvent(stream, NULL, 0), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaStreamWaitEvent(stream, event, 0x10), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaLaunchHostFunc(stream, NULL, NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaStreamGetFlags(stream, NULL), cudaErrorInvalidValue);

    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&other_device), cudaSuccess);
    BASE_CHECK_EQ(cudaEventRecord(other_device, stream), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaStreamWaitEvent(stream, other_device, 0),
                  cudaSuccess); // across devices is legal
    BASE_CHECK_EQ(sim_launch(stream, "nothing", nothing, NULL, 0), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);

    BASE_CHECK_EQ(cudaStreamDestroy(stream), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamDestroy(stream), cudaErrorContextIsDestroyed);
    BASE_CHECK_EQ(cudaEventDestroy(event), cudaSuccess);
    BASE_CHECK_EQ(cudaEventDestroy(event), cudaErrorContextIsDestroyed);
    event = event_new(); // in the slot of the destroyed one
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaErrorContextIsDestroyed);
}

static void elapsed_time_counts_operations(void) {
    start(1);
    cudaEvent_t begin, end, untimed = event_new();
    float milliseconds = -1;
    BASE_CHECK_EQ(cudaEventCreate(&begin), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&end), cudaSuccess);
    BASE_CHECK_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaEventRecord(begin, NULL), cudaSuccess);
    for (int i = 0; i < 2000; ++i)
        note_in(NULL, "a");
    BASE_CHECK_EQ(cudaEventRecord(end, NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaEventRecord(untimed, NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaEventElapsedTime(NULL, begin, end), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaEventElapsedTime(&milliseconds, begin, untimed),
                  cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
    BASE_CHECK(milliseconds == 2.0f);
    sim_stream_hold(NULL, true);
    BASE_CHECK_EQ(cudaEventRecord(end, NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorNotReady);
}

static void a_record_that_was_replaced_stamps_no_time(void) {
    start(1);
    cudaStream_t late = stream_new(cudaStreamNonBlocking),
                 stream = stream_new(cudaStreamNonBlocking);
    cudaEvent_t begin, end;
    float milliseconds;
    BASE_CHECK_EQ(cudaEventCreate(&begin), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreate(&end), cudaSuccess);
    sim_stream_hold(late, true);
    BASE_CHECK_EQ(cudaEventRecord(begin, stream), cudaSuccess);
    note_in(late, "c");
    note_in(late, "d");
    BASE_CHECK_EQ(cudaEventRecord(end, late),
                  cudaSuccess); // the third operation of its stream, as below
    note_in(stream, "a");
    BASE_CHECK_EQ(cudaEventRecord(end, stream), cudaSuccess);
    note_in(stream, "b");
    sim_stream_hold(late, false);
    BASE_CHECK_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
    BASE_CHECK(milliseconds > 0.0009f && milliseconds < 0.0011f);
}

static cudaError_t code_inside;

static void call_cuda(void *pointer) { code_inside = cudaFree(pointer); }

static void host_functions_may_not_call_cuda(void) {
    start(1);
    BASE_CHECK_EQ(cudaLaunchHostFunc(NULL, call_cuda, NULL), cudaSuccess);
    BASE_CHECK_EQ(code_inside, cudaErrorNotPermitted);
    BASE_CHECK_EQ(cudaFree(NULL), cudaSuccess);
}

static void streams_answer_what_they_are(void) {
    start(2);
    cudaStream_t stream;
    unsigned int flags = 7;
    int number, least, greatest;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    BASE_CHECK_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
    BASE_CHECK_LT(greatest, least);
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1000), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamGetPriority(stream, &number), cudaSuccess);
    BASE_CHECK_EQ(number, greatest);
    BASE_CHECK_EQ(cudaStreamGetFlags(stream, &flags), cudaSuccess);
    BASE_CHECK_EQ(flags, cudaStreamNonBlocking);
    BASE_CHECK_EQ(cudaStreamGetDevice(stream, &number), cudaSuccess);
    BASE_CHECK_EQ(number, 1);
    BASE_CHECK_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
    BASE_CHECK_EQ(status, cudaStreamCaptureStatusNone);
    BASE_CHECK_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    BASE_CHECK_EQ(mode, cudaStreamCaptureModeGlobal);
    BASE_CHECK_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    BASE_CHECK_EQ(mode, cudaStreamCaptureModeRelaxed);
    BASE_CHECK_EQ(cudaThreadExchangeStreamCaptureMode(NULL), cudaErrorInvalidValue);
    const uintptr_t former = (uintptr_t)stream;
    BASE_CHECK_EQ(cudaStreamDestroy(stream), cudaSuccess);
    BASE_CHECK((uintptr_t)stream_new(0) > former); // later handles are greater
}

int main(void) {
    eager_work_is_done_at_once();
    a_held_stream_keeps_its_work_pending();
    waits_force_held_work();
    a_stream_waits_for_the_event_as_it_was_recorded();
    a_held_stream_stays_behind_what_it_waits_for();
    long_chains_of_streams_are_forced_in_order();
    the_legacy_stream_is_a_barrier_for_blocking_streams_only();
    a_held_legacy_stream_holds_blocking_streams();
    destroyed_streams_finish_their_work();
    misused_handles_get_codes();
    elapsed_time_counts_operations();
    a_record_that_was_replaced_stamps_no_time();
    host_functions_may_not_call_cuda();
    streams_answer_what_they_are();
    return 0;
}
