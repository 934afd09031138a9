// The shadow against bytes: random accesses, in one piece and strided, of each mode, to one small
// buffer from a few streams with some events between them. A plain model keeps for each operation
// which bytes it reads, writes and updates, and compares all pairs.
//
// Short programs: the reports are exactly the pairs that conflict without order. Long ones, in
// which the checker forgets what later accesses stand for: every report is such a pair, and an
// operation that has some has a report.
#include "base/check.h"
#include "base/random.h"
#include "simulator/race_model.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 640
#define STREAMS 5
#define EVENTS 4
#define ACCESSES_MAX 3
#define WARM_UP 5000 // steps in another buffer, after which the checker keeps less

static struct model model;
static struct base_random random_;
static char *buffer, *elsewhere;
static cudaStream_t streams[STREAMS];
static int numbers[STREAMS]; // in the model
static cudaEvent_t events[EVENTS];
// Of each operation, by byte.
static unsigned char reads[MODEL_OPERATIONS][BYTES], writes[MODEL_OPERATIONS][BYTES],
    updates[MODEL_OPERATIONS][BYTES];
static char labels[MODEL_OPERATIONS][12];
static unsigned char expected[MODEL_OPERATIONS][MODEL_OPERATIONS]; // 1: read-write, 2: write-write

static void must(cudaError_t error) { BASE_CHECK_EQ(error, cudaSuccess); }
static uint64_t below(uint64_t bound) { return base_random_below(&random_, bound); }
static void no_body(const void *argument) { (void)argument; }

// --- Programs ---

static struct sim_access draw_access(int operation, uint64_t sparse) {
    static const uint64_t pitches[] = {8, 8, 8, 12, 24};
    const enum sim_access_mode mode = below(2) == 0   ? SIM_ACCESS_READ
                                      : below(3) == 0 ? SIM_ACCESS_ATOMIC
                                                      : SIM_ACCESS_WRITE;
    uint64_t rows = 1, pitch = 0, size = 1 + below(below(8) == 0 ? BYTES : 16);
    if (below(2) == 0) {
        pitch = pitches[below(5)];
        rows = 1 + below(12);
        size = 1 + below(pitch > sparse ? sparse : pitch);
    }
    const uint64_t extent = (rows - 1) * pitch + size;
    const uint64_t start = below(BYTES - extent + 1);
    unsigned char *marks = mode == SIM_ACCESS_READ    ? reads[operation]
                           : mode == SIM_ACCESS_WRITE ? writes[operation]
                                                      : updates[operation];
    for (uint64_t row = 0; row < rows; ++row)
        memset(marks + start + row * pitch, 1, size);
    return (struct sim_access){mode, buffer + start, .size = size, .rows = rows, .pitch = pitch};
}

static void kernel(int slot, uint64_t sparse) {
    struct sim_access accesses[ACCESSES_MAX];
    const size_t count = 1 + below(ACCESSES_MAX);
    const int operation = model_operation(&model, numbers[slot]);
    for (size_t i = 0; i < count; ++i)
        accesses[i] = draw_access(operation, sparse);
    sim_race_label(labels[operation]);
    must(sim_launch_kernel(streams[slot], &(struct sim_kernel){.name = "kernel",
                                                               .body = no_body,
                                                               .accesses = accesses,
                                                               .access_count = count}));
}

static void wait(int slot, int event) {
    must(cudaStreamWaitEvent(streams[slot], events[event], 0));
    model_wait(&model, numbers[slot], event);
}

static void record(int slot, int event) {
    must(cudaEventRecord(events[event], streams[slot]));
    model_record(&model, event, numbers[slot]);
}

static void step(uint64_t sparse) {
    const int slot = (int)below(STREAMS), event = (int)below(EVENTS);
    switch (below(16)) {
    case 0:
    case 1:
    case 2: record(slot, event); break;
    case 3:
    case 4:
    case 5:
    case 6: wait(slot, event); break;
    case 7:
        if (below(4) > 0)
            break;
        must(cudaStreamSynchronize(streams[slot]));
        model_sync_stream(&model, numbers[slot]);
        break;
    default: kernel(slot, sparse);
    }
}

// Mostly behind what others did.
static void orderly_step(uint64_t sparse) {
    const int slot = (int)below(STREAMS);
    for (int event = 0; event < EVENTS; ++event)
        if (below(6) > 0)
            wait(slot, event);
    kernel(slot, sparse);
    record(slot, (int)below(EVENTS));
}

static void begin(uint64_t seed) {
    void *pointer;
    random_ = base_random_init(seed, "race_memory_test");
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}), BASE_OK);
    must(cudaMalloc(&pointer, BYTES));
    buffer = pointer;
    must(cudaMalloc(&pointer, BYTES));
    elsewhere = pointer;
    model_begin(&model);
    memset(reads, 0, sizeof reads);
    memset(writes, 0, sizeof writes);
    memset(updates, 0, sizeof updates);
    for (int i = 0; i < STREAMS; ++i) {
        must(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        numbers[i] = model_stream(&model, MODEL_NONBLOCKING, 0);
    }
    for (int i = 0; i < EVENTS; ++i)
        must(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
    // What was allocated before counts as written.
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true,
                                                            .report_count_max = 4000000}),
                  BASE_OK);
}

// --- The model's pairs ---

static void expect(void) {
    memset(expected, 0, sizeof expected);
    for (int second = 0; second < model.operation_count; ++second)
        for (int first = 0; first < second; ++first) {
            if (model_is_before(&model, first, second))
                continue;
            unsigned char worst = 0;
            for (int i = 0; i < BYTES; ++i) {
                const bool r1 = reads[first][i], w1 = writes[first][i], u1 = updates[first][i];
                const bool r2 = reads[second][i], w2 = writes[second][i], u2 = updates[second][i];
                if ((w1 && (w2 || u2)) || (u1 && w2))
                    worst = 2;
                else if (worst == 0 && ((r1 && (w2 || u2)) || (r2 && (w1 || u1))))
                    worst = 1;
            }
            expected[second][first] = worst;
        }
}

static int number_of(const char *label) { return (int)strtol(label, NULL, 10); }

// Takes the reports out of what is expected; returns how many there were.
static uint64_t reports_take(bool in_full, unsigned char *has_report) {
    const uint64_t count = sim_race_count(SIM_RACE_RULE_COUNT);
    for (uint64_t i = 0; i < count; ++i) {
        const struct sim_race_report *report = sim_race_report_at(i);
        const int first = number_of(report->first.label), second = number_of(report->second.label);
        base_check_context("%d %d %s", first, second, report->text);
        BASE_CHECK_LT(first, second);
        unsigned char *place = &expected[second][first];
        BASE_CHECK(*place != 0);
        if (in_full)
            BASE_CHECK_EQ(*place, report->rule == SIM_RACE_WRITE_WRITE ? 2 : 1);
        // The bytes are such that both touch, and one changes.
        const uint64_t offset = report->start - (uint64_t)(uintptr_t)buffer;
        BASE_CHECK_LT(offset, BYTES);
        for (uint64_t at = offset; at < offset + report->size; ++at) {
            BASE_CHECK(reads[first][at] || writes[first][at] || updates[first][at]);
            BASE_CHECK(reads[second][at] || writes[second][at] || updates[second][at]);
            BASE_CHECK(writes[first][at] || updates[first][at] || writes[second][at] ||
                       updates[second][at]);
        }
        has_report[second] = 1;
        if (in_full)
            *place = 0;
    }
    base_check_context(NULL);
    return count;
}

static void reports_of_short_programs_are_all_pairs(void) {
    static unsigned char has_report[MODEL_OPERATIONS];
    uint64_t pairs = 0;
    for (uint64_t seed = 1; seed <= 50; ++seed) {
        begin(seed);
        for (int i = 0; i < 100; ++i)
            step(seed % 2 == 0 ? 3 : 24);
        sim_race_label(NULL);
        sim_race_stop();
        expect();
        pairs += reports_take(true, has_report);
        for (int second = 0; second < model.operation_count; ++second)
            for (int first = 0; first < second; ++first) {
                base_check_context("seed %d: operations %d and %d", (int)seed, first, second);
                BASE_CHECK_EQ(expected[second][first], 0);
            }
        base_check_context(NULL);
    }
    printf("%llu pairs\n", (unsigned long long)pairs);
    BASE_CHECK_GT(pairs, 5000);
}

static void long_programs_miss_no_operation(void) {
    static unsigned char has_report[MODEL_OPERATIONS];
    uint64_t operations = 0, with_report = 0;
    for (uint64_t seed = 1; seed <= 2; ++seed) {
        begin(seed);
        for (int i = 0; i < WARM_UP; ++i)
            must(cudaMemsetAsync(elsewhere, 0, BYTES, streams[0]));
        must(cudaStreamSynchronize(streams[0]));
        while (model.operation_count < 1600)
            orderly_step(seed % 2 == 0 ? 3 : 24);
        sim_race_label(NULL);
        sim_race_stop();
        expect();
        memset(has_report, 0, sizeof has_report);
        reports_take(false, has_report);
        for (int second = 0; second < model.operation_count; ++second) {
            bool has_pair = false;
            for (int first = 0; first < second; ++first)
                has_pair |= expected[second][first] != 0;
            base_check_context("seed %d: operation %d", (int)seed, second);
            BASE_CHECK_EQ(has_report[second], has_pair);
            with_report += has_pair;
            ++operations;
        }
        base_check_context(NULL);
    }
    printf("%llu of %llu operations race\n", (unsigned long long)with_report,
           (unsigned long long)operations);
    BASE_CHECK_GT(with_report, operations / 20);
    BASE_CHECK_LT(with_report, operations / 10 * 9);
}

int main(void) {
    for (int i = 0; i < MODEL_OPERATIONS; ++i)
        snprintf(labels[i], sizeof labels[i], "%d", i);
    reports_of_short_programs_are_all_pairs();
    long_programs_miss_no_operation();
    return 0;
}
