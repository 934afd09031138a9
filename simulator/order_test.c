// The order of order.h against plain sets (race_model.h), over random programs: streams of all
// kinds on two devices, more and more of them, destroyed and made anew; events that are recorded
// again, destroyed and made anew; host waits of each kind; blocking copies; copies between devices.
//
// How it is asked: each operation writes a byte of its own and reads bytes of some earlier ones, so
// that the checker reports the two exactly if nothing orders them.
#include "base/check.h"
#include "base/random.h"
#include "simulator/race_model.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS 60
#define OPERATIONS 400
#define READS 6
#define LIVE_STREAMS 40
#define EVENTS 24

static struct model model;
static struct base_random random_;
static char *bytes, *other_bytes; // of device 0, of device 1
static char *pinned;
static struct {
    cudaStream_t handle;
    int number; // in the model
    bool held;
} streams[LIVE_STREAMS];
static cudaEvent_t events[EVENTS];
static uint64_t expected_count;
static char labels[MODEL_OPERATIONS][12];
static unsigned char expected[MODEL_OPERATIONS][MODEL_OPERATIONS / 8];
static bool wrote[MODEL_OPERATIONS]; // a byte of its own

static void must(cudaError_t error) { BASE_CHECK_EQ(error, cudaSuccess); }
static uint64_t below(uint64_t bound) { return base_random_below(&random_, bound); }

static void no_body(const void *argument) { (void)argument; }

// --- Operations: each in the model, and in CUDA with its accesses ---

static void expect_reads(int operation, const int *reads, int count) {
    for (int i = 0; i < count; ++i) {
        unsigned char *place = &expected[operation][reads[i] / 8];
        const unsigned char bit = (unsigned char)(1 << reads[i] % 8);
        if (model_is_before(&model, reads[i], operation) || (*place & bit) != 0)
            continue;
        *place |= bit;
        ++expected_count;
    }
}

static int some_earlier(int reads[READS]) {
    const int before = model.operation_count;
    int count = 0;
    for (int tries = 0; tries < READS && before > 0; ++tries) {
        const int far = before < 60 || below(4) == 0 ? before : 60;
        const int read = before - 1 - (int)below((uint64_t)far);
        if (wrote[read])
            reads[count++] = read;
    }
    return count;
}

static void kernel(int slot) {
    int reads[READS];
    const int count = some_earlier(reads);
    struct sim_access accesses[READS + 1];
    for (int i = 0; i < count; ++i)
        accesses[i] = (struct sim_access){SIM_ACCESS_READ, bytes + reads[i], .size = 1};
    const int operation = model_operation(&model, streams[slot].number);
    accesses[count] = (struct sim_access){SIM_ACCESS_WRITE, bytes + operation, .size = 1};
    wrote[operation] = true;
    expect_reads(operation, reads, count);
    sim_race_label(labels[operation]);
    must(sim_launch_kernel(streams[slot].handle,
                           &(struct sim_kernel){.name = "kernel",
                                                .body = no_body,
                                                .accesses = accesses,
                                                .access_count = (size_t)count + 1}));
}

static void host_body(void *argument) { (void)argument; }

static void host_function(int slot) {
    int reads[READS];
    const int count = some_earlier(reads);
    struct sim_access accesses[READS + 1];
    for (int i = 0; i < count; ++i)
        accesses[i] = (struct sim_access){SIM_ACCESS_READ, bytes + reads[i], .size = 1};
    const int operation = model_operation(&model, streams[slot].number);
    accesses[count] = (struct sim_access){SIM_ACCESS_WRITE, bytes + operation, .size = 1};
    wrote[operation] = true;
    expect_reads(operation, reads, count);
    sim_race_label(labels[operation]);
    sim_next_accesses(accesses, (size_t)count + 1);
    must(cudaLaunchHostFunc(streams[slot].handle, host_body, NULL));
}

// To page-locked memory through the legacy stream of device 0: the host waits.
static void blocking_copy(void) {
    int read[READS];
    if (some_earlier(read) == 0)
        return;
    must(cudaSetDevice(0));
    const int operation = model_operation(&model, 0);
    expect_reads(operation, read, 1);
    sim_race_label(labels[operation]);
    must(cudaMemcpy(pinned, bytes + read[0], 1, cudaMemcpyDeviceToHost));
    model_sync_operation(&model, operation);
}

// From device 0 to device 1; the host does not wait.
static void peer_copy(void) {
    int read[READS];
    if (some_earlier(read) == 0)
        return;
    must(cudaSetDevice(0));
    const int operation = model_fence(&model);
    expect_reads(operation, read, 1);
    sim_race_label(labels[operation]);
    must(cudaMemcpyPeer(other_bytes + operation, 1, bytes + read[0], 0, 1));
}

static void stream_anew(int slot) {
    const int device = (int)below(2);
    const bool blocking = below(3) == 0;
    if (streams[slot].handle != NULL)
        must(cudaStreamDestroy(streams[slot].handle));
    must(cudaSetDevice(device));
    must(cudaStreamCreateWithFlags(&streams[slot].handle,
                                   blocking ? cudaStreamDefault : cudaStreamNonBlocking));
    streams[slot].number =
        model_stream(&model, blocking ? MODEL_BLOCKING : MODEL_NONBLOCKING, device);
}

static void event_anew(int event, int device) {
    must(cudaSetDevice(device));
    if (events[event] != NULL)
        must(cudaEventDestroy(events[event]));
    must(cudaEventCreateWithFlags(&events[event], cudaEventDisableTiming));
    model_event_new(&model, event);
}

// Events of even number are device 0's.
static void record(int slot) {
    const int device = model.streams[streams[slot].number].device;
    const int event = 2 * (int)below(EVENTS / 2) + device;
    if (below(8) == 0)
        event_anew(event, device);
    must(cudaEventRecord(events[event], streams[slot].handle));
    model_record(&model, event, streams[slot].number);
}

static void host_wait(int slot) {
    const int event = (int)below(EVENTS);
    switch (below(5)) {
    case 0:
        must(cudaStreamSynchronize(streams[slot].handle));
        model_sync_stream(&model, streams[slot].number);
        break;
    case 1:
        must(cudaEventSynchronize(events[event]));
        model_sync_event(&model, event);
        break;
    case 2: { // a loop until success is a wait
        cudaError_t error;
        while ((error = cudaEventQuery(events[event])) == cudaErrorNotReady)
            continue;
        must(error);
        model_sync_event(&model, event);
        break;
    }
    case 3:
        must(cudaSetDevice(event % 2));
        must(cudaStreamSynchronize(cudaStreamLegacy));
        model_sync_stream(&model, event % 2);
        break;
    default:
        if (below(3) > 0)
            return;
        must(cudaSetDevice(event % 2));
        must(cudaDeviceSynchronize());
        model_sync_device(&model, event % 2);
    }
}

static void step(void) {
    const int slot = (int)below(LIVE_STREAMS);
    const uint64_t kind = below(100);
    // The legacy streams have one name.
    must(cudaSetDevice(model.streams[streams[slot].number].device));
    if (kind < 40)
        kernel(slot);
    else if (kind < 44)
        host_function(slot);
    else if (kind < 60)
        record(slot);
    else if (kind < 80) {
        const int event = (int)below(EVENTS);
        must(cudaStreamWaitEvent(streams[slot].handle, events[event], 0));
        model_wait(&model, streams[slot].number, event);
    } else if (kind < 86)
        stream_anew(2 + (int)below(LIVE_STREAMS - 2));
    else if (kind < 93)
        host_wait(slot);
    else if (kind < 95)
        blocking_copy();
    else if (kind < 97)
        peer_copy();
}

// --- Programs ---

static void begin(uint64_t seed, const char *schedule) {
    void *pointer;
    random_ = base_random_init(seed, "order_test");
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = 2,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    must(cudaMalloc(&pointer, MODEL_OPERATIONS));
    bytes = pointer;
    must(cudaSetDevice(1));
    must(cudaMalloc(&pointer, MODEL_OPERATIONS));
    other_bytes = pointer;
    must(cudaHostAlloc(&pointer, 4096, cudaHostAllocDefault));
    pinned = pointer;
    model_begin(&model);
    memset(streams, 0, sizeof streams);
    memset(events, 0, sizeof events);
    memset(expected, 0, sizeof expected);
    memset(wrote, 0, sizeof wrote);
    expected_count = 0;
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true,
                                                            .report_count_max = 1000000}),
                  BASE_OK);
    for (int slot = 2; slot < LIVE_STREAMS; ++slot)
        stream_anew(slot);
    streams[0].handle = streams[1].handle = cudaStreamLegacy;
    streams[0].number = 0;
    streams[1].number = 1;
    for (int event = 0; event < EVENTS; ++event)
        event_anew(event, event % 2);
}

static int number_of(const char *label) { return (int)strtol(label, NULL, 10); }

static void compare(void) {
    for (uint64_t i = 0; i < sim_race_count(SIM_RACE_RULE_COUNT); ++i) {
        const struct sim_race_report *report = sim_race_report_at(i);
        const int first = number_of(report->first.label), second = number_of(report->second.label);
        base_check_context("%s", report->text);
        BASE_CHECK(report->rule == SIM_RACE_READ_WRITE);
        BASE_CHECK_LT(first, second);
        BASE_CHECK((expected[second][first / 8] >> first % 8 & 1) != 0);
        expected[second][first / 8] &= (unsigned char)~(1 << first % 8);
    }
    for (int second = 0; second < MODEL_OPERATIONS; ++second)
        for (int first = 0; first < second; ++first) {
            if ((expected[second][first / 8] >> first % 8 & 1) == 0)
                continue;
            base_check_context("operations %d and %d are not ordered", first, second);
            BASE_CHECK(false);
        }
    base_check_context(NULL);
}

static void order_is_that_of_the_sets(void) {
    static const char *const schedules[] = {"eager", "lazy", "random:3"};
    uint64_t unordered = 0, operations = 0;
    for (int i = 0; i < MODEL_OPERATIONS; ++i)
        snprintf(labels[i], sizeof labels[i], "%d", i);
    for (uint64_t seed = 1; seed <= PROGRAMS; ++seed) {
        begin(seed, schedules[seed % 3]);
        for (int i = 0; i < OPERATIONS; ++i)
            step();
        sim_race_label(NULL);
        sim_race_stop();
        compare();
        unordered += expected_count;
        operations += (uint64_t)model.operation_count;
    }
    printf("%llu operations, %llu pairs without order\n", (unsigned long long)operations,
           (unsigned long long)unordered);
    BASE_CHECK_GT(unordered, 5000);
}

int main(void) {
    order_is_that_of_the_sets();
    return 0;
}
