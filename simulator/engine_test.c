// The engine against a naive model, under random programs of streams, events, holds and waits:
// after each step the same operations must be pending, and none may have run before one that it
// comes after.
#include "base/check.h"
#include "base/random.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <string.h>

#define STREAMS 6 // 0 is the legacy stream, 1 to 3 are blocking, the rest is not
#define BLOCKING_LAST 3
#define EVENTS 4
#define OPERATIONS 250

// The model: every operation lists what it comes directly after. It is done when it may run and all
// of those are.
struct operation {
    int stream;
    int after[STREAMS + 2];
    int after_count;
    uint64_t before[(OPERATIONS + 63) / 64]; // all that it comes after, directly or not: a bit each
    bool function;                           // its run can be observed
    bool ran;
    bool done;
};

static struct operation operations[OPERATIONS];
static int operation_count;
static int last_in[STREAMS]; // the last operation of each stream, or -1
static bool held[STREAMS];
static int recorded[EVENTS]; // the operation that recorded the event last, or -1
static cudaStream_t streams[STREAMS];
static cudaEvent_t events[EVENTS];

static bool may_run(const struct operation *operation) {
    for (int i = 0; i < operation->after_count; ++i)
        if (!operations[operation->after[i]].done)
            return false;
    return true;
}

// Operations only come after earlier ones, so one pass in order reaches the end.
static void model_settle(void) {
    for (int i = 0; i < operation_count; ++i)
        if (!operations[i].done && !held[operations[i].stream] && may_run(&operations[i]))
            operations[i].done = true;
}

static void model_force(int index) {
    if (index < 0 || operations[index].done)
        return;
    for (int i = 0; i < operations[index].after_count; ++i)
        model_force(operations[index].after[i]);
    operations[index].done = true;
}

static int model_first_pending(int stream) {
    for (int i = 0; i < operation_count; ++i)
        if (operations[i].stream == stream && !operations[i].done)
            return i;
    return -1;
}

static void model_after(struct operation *operation, int index) {
    if (index < 0)
        return;
    operation->after[operation->after_count++] = index;
    operation->before[index / 64] |= (uint64_t)1 << index % 64;
    for (size_t i = 0; i < sizeof operation->before / sizeof operation->before[0]; ++i)
        operation->before[i] |= operations[index].before[i];
}

static int model_submit(int stream, int event_operation, bool function) {
    struct operation *operation = &operations[operation_count];
    *operation = (struct operation){.stream = stream, .function = function};
    model_after(operation, last_in[stream]);
    model_after(operation, event_operation);
    if (stream == 0)
        for (int i = 1; i <= BLOCKING_LAST; ++i)
            model_after(operation, last_in[i]);
    else if (stream <= BLOCKING_LAST)
        model_after(operation, last_in[0]);
    last_in[stream] = operation_count;
    return operation_count++;
}

// A wait that orders nothing is no operation: that for a complete event or for the stream itself,
// unless it is the legacy stream's, or the first behind work of that stream.
static bool wait_orders(int stream, int event_operation) {
    if (event_operation < 0)
        return false;
    const int legacy = last_in[0], own = last_in[stream];
    if (stream >= 1 && stream <= BLOCKING_LAST && legacy >= 0 && !operations[legacy].done &&
        (own < 0 || (operations[own].before[legacy / 64] >> legacy % 64 & 1) == 0))
        return true;
    return stream == 0 ||
           (!operations[event_operation].done && operations[event_operation].stream != stream);
}

static void function_body(void *data) {
    struct operation *operation = data;
    BASE_CHECK(!operation->ran);
    for (int i = 0; i < operation_count; ++i)
        if ((operation->before[i / 64] >> i % 64 & 1) != 0 && operations[i].function)
            BASE_CHECK(operations[i].ran);
    operation->ran = true;
}

static void step_submit(struct base_random *random, int stream) {
    const int event = (int)base_random_below(random, EVENTS);
    switch (base_random_below(random, 3)) {
    case 0: {
        struct operation *operation = &operations[model_submit(stream, -1, true)];
        BASE_CHECK_EQ(cudaLaunchHostFunc(streams[stream], function_body, operation), cudaSuccess);
        break;
    }
    case 1:
        recorded[event] = model_submit(stream, -1, false);
        BASE_CHECK_EQ(cudaEventRecord(events[event], streams[stream]), cudaSuccess);
        break;
    default:
        if (wait_orders(stream, recorded[event]))
            model_submit(stream, recorded[event], false);
        BASE_CHECK_EQ(cudaStreamWaitEvent(streams[stream], events[event], 0), cudaSuccess);
    }
}

static void step_run(struct base_random *random, int stream) {
    const uint64_t count = base_random_between(random, 1, 4);
    uint64_t ran = 0;
    for (; ran < count; ++ran) {
        const int first = model_first_pending(stream);
        if (first < 0 || !may_run(&operations[first]))
            break;
        operations[first].done = true;
        model_settle();
    }
    BASE_CHECK_EQ(sim_stream_run(streams[stream], count), ran);
}

static void step_wait(struct base_random *random, int stream) {
    const int event = (int)base_random_below(random, EVENTS);
    switch (base_random_below(random, 8)) {
    case 0:
        for (int i = 0; i < STREAMS; ++i)
            model_force(last_in[i]);
        BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
        break;
    case 1:
    case 2:
    case 3:
        model_force(recorded[event]);
        BASE_CHECK_EQ(cudaEventSynchronize(events[event]), cudaSuccess);
        break;
    default:
        model_force(last_in[stream]);
        for (int i = 1; stream == 0 && i <= BLOCKING_LAST; ++i)
            model_force(last_in[i]);
        BASE_CHECK_EQ(cudaStreamSynchronize(streams[stream]), cudaSuccess);
    }
}

static void compare(void) {
    for (int stream = 0; stream < STREAMS; ++stream) {
        uint64_t pending = 0;
        for (int i = 0; i < operation_count; ++i)
            pending += operations[i].stream == stream && !operations[i].done;
        BASE_CHECK_EQ(sim_stream_pending(streams[stream]), pending);
    }
    for (int i = 0; i < operation_count; ++i)
        BASE_CHECK_EQ(operations[i].ran, operations[i].function && operations[i].done);
    for (int i = 0; i < EVENTS; ++i)
        BASE_CHECK_EQ(cudaEventQuery(events[i]), recorded[i] < 0 || operations[recorded[i]].done
                                                     ? cudaSuccess
                                                     : cudaErrorNotReady);
}

static void world_start(void) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = SIM_NUMERICS_OFF}), BASE_OK);
    operation_count = 0;
    memset(held, 0, sizeof held);
    memset(last_in, -1, sizeof last_in);
    memset(recorded, -1, sizeof recorded);
    streams[0] = NULL;
    for (int i = 1; i < STREAMS; ++i)
        BASE_CHECK_EQ(cudaStreamCreateWithFlags(&streams[i], i <= BLOCKING_LAST
                                                                 ? cudaStreamDefault
                                                                 : cudaStreamNonBlocking),
                      cudaSuccess);
    for (int i = 0; i < EVENTS; ++i)
        BASE_CHECK_EQ(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming), cudaSuccess);
}

static void what_is_pending_is_what_the_model_says(uint64_t seed) {
    struct base_random random = base_random_init(seed, "engine_test");
    world_start();
    for (int step = 0; operation_count < OPERATIONS; ++step) {
        base_check_context("seed %llu, step %d", (unsigned long long)seed, step);
        const int stream = (int)base_random_below(&random, STREAMS);
        const uint64_t choice = base_random_below(&random, 100);
        if (choice < 80) {
            step_submit(&random, stream);
        } else if (choice < 90) {
            held[stream] = base_random_chance(&random, 0.7);
            sim_stream_hold(streams[stream], held[stream]);
        } else if (choice < 97) {
            step_run(&random, stream);
        } else {
            step_wait(&random, stream);
        }
        model_settle();
        compare();
    }
}

int main(void) {
    for (uint64_t seed = 1; seed <= 80; ++seed)
        what_is_pending_is_what_the_model_says(seed);
    printf("engine: seeds 1 to 80\n");
    return 0;
}
