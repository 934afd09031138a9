// Calls and operations of the simulated device: see simulator_speed.c for how they are measured.
#include "bench/simulator_speed.h"

#include "base/check.h"
#include "base/random.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMOKE_COUNT_MAX 1000 // streams and pending operations of a smoke run

#define PENDING_STREAMS 16
#define PENDING_MAX 1000000
#define MIXED_STREAMS 16
#define MIXED_SYNC_EVERY 1000
#define NODE_BYTES 64
#define CHASE_STEPS 4096

// --- The simulated machine ---

cudaStream_t speed_streams[SPEED_STREAMS_MAX];
cudaEvent_t speed_events[SPEED_STREAMS_MAX];
static uint64_t launched_count; // kernels that ran

void speed_empty_kernel(const void *argument) { (void)argument; }

void speed_machine_start(const struct speed_case *measured, int stream_count,
                          enum sim_numerics numerics) {
    char schedule[40];
    if (strcmp(measured->schedule, "random") == 0)
        snprintf(schedule, sizeof schedule, "random:%" PRIu64, speed_seed);
    else
        snprintf(schedule, sizeof schedule, "%s", measured->schedule);
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    BASE_CHECK_EQ(
        sim_configure(&(struct sim_options){.capacity_bytes = 1 << 30, .numerics = numerics}),
        BASE_OK);
    for (int i = 0; i < stream_count; i++) {
        BASE_CHECK_EQ(cudaStreamCreateWithFlags(&speed_streams[i], cudaStreamNonBlocking),
                      cudaSuccess);
        BASE_CHECK_EQ(cudaEventCreateWithFlags(&speed_events[i], cudaEventDisableTiming),
                      cudaSuccess);
    }
}

// Leaves nothing pending and no failed call, or the benchmark fails.
void speed_machine_check(struct bench_state *state, int stream_count) {
    if (cudaDeviceSynchronize() != cudaSuccess)
        bench_fail(state, "the device failed");
    for (int i = 0; i < stream_count; i++)
        if (sim_stream_pending(speed_streams[i]) != 0)
            bench_fail(state, "operations of stream %d never ran", i);
    for (int call = 0; call < SIM_CALL_KIND_COUNT; call++)
        if (sim_call_failed_count((enum sim_call)call) != 0)
            bench_fail(state, "%s failed", sim_call_name((enum sim_call)call));
    BASE_CHECK_EQ(sim_schedule("eager"), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}), BASE_OK);
}

// --- Single calls ---

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void measure_mutex(struct bench_state *state, void *argument) {
    (void)argument;
    uint64_t count;
    while (bench_batch_begin(state, &count))
        for (uint64_t i = 0; i < count; i++) {
            pthread_mutex_lock(&mutex);
            __asm__ volatile("" ::: "memory");
            pthread_mutex_unlock(&mutex);
        }
}

#define MEASURE_CALL(NAME, NUMERICS, BEFORE, CALL)                                         \
    static void NAME(struct bench_state *state, void *argument) {                          \
        uint64_t count;                                                                    \
        speed_machine_start(argument, 2, NUMERICS);                                              \
        BEFORE;                                                                            \
        while (bench_batch_begin(state, &count))                                           \
            for (uint64_t i = 0; i < count; i++)                                           \
                if (__builtin_expect((CALL) != cudaSuccess, 0)) bench_fail(state, #CALL);  \
        speed_machine_check(state, 2);                                                           \
    }

MEASURE_CALL(measure_record, SIM_NUMERICS_OFF, (void)0,
             cudaEventRecord(speed_events[0], speed_streams[0]))
MEASURE_CALL(measure_query, SIM_NUMERICS_OFF,
             (void)cudaEventRecord(speed_events[0], speed_streams[0]),
             cudaEventQuery(speed_events[0]))
MEASURE_CALL(measure_wait, SIM_NUMERICS_OFF,
             (void)cudaEventRecord(speed_events[0], speed_streams[0]),
             cudaStreamWaitEvent(speed_streams[1], speed_events[0], 0))
MEASURE_CALL(measure_launch, SIM_NUMERICS_ON, (void)0,
             sim_launch(speed_streams[0], "empty", speed_empty_kernel, NULL, 0))

// --- Operations in many streams ---

// Operation I of a mix: two kernels, a record, a wait for another stream's event.
static inline void mixed_operation(struct base_random *random, uint64_t i, uint64_t stream_count) {
    const uint64_t draw = base_random_next(random);
    const uint64_t at = (draw >> 32) * stream_count >> 32;
    switch (i & 3) {
    case 0:
    case 1:
        (void)sim_launch(speed_streams[at], "empty", speed_empty_kernel, NULL, 0);
        ++launched_count;
        break;
    case 2: (void)cudaEventRecord(speed_events[at], speed_streams[at]); break;
    default: {
        const uint64_t other = (draw & UINT32_MAX) * stream_count >> 32;
        (void)cudaStreamWaitEvent(speed_streams[at], speed_events[other], 0);
    }
    }
}

// COUNT operations over STREAM_COUNT streams, then a wait for them.
static void measure_batches(struct bench_state *state, const struct speed_case *measured,
                            uint64_t stream_count, uint64_t per_batch) {
    struct base_random random = base_random_init(speed_seed, measured->name);
    uint64_t count, done = 0;
    speed_machine_start(measured, (int)stream_count, SIM_NUMERICS_OFF);
    launched_count = 0;
    while (bench_batch_begin(state, &count))
        for (uint64_t batch = 0; batch < count; batch++) {
            for (uint64_t i = 0; i < per_batch; i++) mixed_operation(&random, i, stream_count);
            (void)cudaDeviceSynchronize();
            done += per_batch;
        }
    if (sim_call_count(SIM_CALL_LAUNCH) != launched_count || launched_count > done)
        bench_fail(state, "launches were lost");
    bench_items(state, done);
    speed_machine_check(state, (int)stream_count);
}

static void measure_mixed(struct bench_state *state, void *argument) {
    measure_batches(state, argument, MIXED_STREAMS, MIXED_SYNC_EVERY);
}

static void measure_streams(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    measure_batches(state, measured, measured->count, measured->per_batch);
}

static void measure_pending(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    measure_batches(state, measured, PENDING_STREAMS, measured->count);
}

// --- The chase ---

struct node {
    struct node *next;
    char rest[NODE_BYTES - sizeof(struct node *)];
};

// One circle through all nodes, in random order.
static struct node *nodes_make(uint64_t count) {
    struct node *nodes = aligned_alloc(NODE_BYTES, count * sizeof *nodes);
    uint64_t *order = malloc(count * sizeof *order);
    BASE_CHECK(nodes != NULL && order != NULL);
    struct base_random random = base_random_init(speed_seed, "nodes");
    for (uint64_t i = 0; i < count; i++) order[i] = i;
    for (uint64_t i = count - 1; i > 0; i--) {
        const uint64_t other = base_random_below(&random, i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (uint64_t i = 0; i < count; i++)
        nodes[order[i]].next = &nodes[order[(i + 1) % count]];
    free(order);
    return nodes;
}

static void measure_chase(struct bench_state *state, void *argument) {
    const struct speed_case *measured = argument;
    struct node *nodes = nodes_make(measured->count);
    const struct node *at = nodes;
    uint64_t count;
    for (uint64_t i = 0; i < measured->count; i++) at = at->next; // touched once
    if (at != nodes) bench_fail(state, "the circle is broken");
    while (bench_batch_begin(state, &count))
        for (uint64_t batch = 0; batch < count; batch++)
            for (int i = 0; i < CHASE_STEPS; i++) at = at->next;
    __asm__ volatile("" ::"r"(at));
    free(nodes);
}

void speed_chase_add(enum speed_group group, uint64_t count) {
    struct speed_case *added = speed_case_add(group, NULL, NULL, count, measure_chase);
    added->per_batch = CHASE_STEPS;
}

void speed_cases_calls(void) {
    static const char *const schedules[] = {"eager", "lazy", "random", "timed"};
    speed_case_add(SPEED_GROUP_CALL, "mutex_pair", NULL, 0, measure_mutex);
    speed_case_add(SPEED_GROUP_CALL, "event_record", "eager", 0, measure_record)->limit = 4;
    speed_case_add(SPEED_GROUP_CALL, "event_query", "eager", 0, measure_query)->limit = 4;
    speed_case_add(SPEED_GROUP_CALL, "stream_wait", "eager", 0, measure_wait)->limit = 4;
    speed_case_add(SPEED_GROUP_CALL, "launch", "eager", 0, measure_launch)->limit = 10;
    for (int i = 0; i < 4; i++) {
        struct speed_case *added =
            speed_case_add(SPEED_GROUP_SPEED, schedules[i], schedules[i], 0, measure_mixed);
        added->limit = i == 1 || i == 2 ? 2e6 : 0;
        added->per_batch = MIXED_SYNC_EVERY;
    }
    for (uint64_t count = 10; count <= SPEED_STREAMS_MAX; count *= 10) {
        if (speed_smoke && count > SMOKE_COUNT_MAX) break;
        speed_chase_add(SPEED_GROUP_STREAMS, count);
        for (int i = 0; i < 3; i++)
            speed_case_add(SPEED_GROUP_STREAMS, schedules[i], schedules[i], count, measure_streams)
                ->per_batch = 4 * count;
    }
    for (uint64_t count = 1000; count <= PENDING_MAX; count *= 10) {
        if (speed_smoke && count > SMOKE_COUNT_MAX) break;
        speed_chase_add(SPEED_GROUP_PENDING, count);
        for (int i = 1; i < 3; i++)
            speed_case_add(SPEED_GROUP_PENDING, schedules[i], schedules[i], count, measure_pending)
                ->per_batch = count;
    }
}
