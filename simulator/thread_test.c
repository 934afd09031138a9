// Several host threads at once, under every schedule: each with its own memory, stream and events,
// and all on one stream. Meant to be run under the thread sanitizer too.
#include "base/check.h"
#include "base/random.h"
#include "base/thread.h"
#include "simulator/sim.h"

#define THREADS 2
#define STEPS 2000
#define SLOTS 16

static cudaStream_t shared;
static cudaEvent_t handed_over;

static void add_one(void *counter) { ++*(uint64_t *)counter; }

static void kernel_body(const void *argument) {
    unsigned char *const *pointer = argument;
    unsigned char *bytes = sim_device_bytes(*pointer);
    ++bytes[0];
}

struct worker {
    int index;
    uint64_t counter; // touched by host functions of one stream only
};

static void own_work(void *argument) {
    struct worker *worker = argument;
    struct base_random random = base_random_init((uint64_t)worker->index, "thread_test");
    void *slots[SLOTS] = {0};
    cudaStream_t stream;
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    for (int step = 0; step < STEPS; ++step) {
        void **slot = &slots[base_random_below(&random, SLOTS)];
        if (*slot == NULL) {
            BASE_CHECK_EQ(cudaMalloc(slot, base_random_between(&random, 1, 5 << 20)), cudaSuccess);
            BASE_CHECK_EQ(cudaMemsetAsync(*slot, 0, 1, stream), cudaSuccess);
            BASE_CHECK_EQ(sim_launch(stream, "increment", kernel_body, slot, sizeof *slot),
                          cudaSuccess);
        } else {
            BASE_CHECK_EQ(cudaFree(*slot), cudaSuccess);
            *slot = NULL;
        }
        BASE_CHECK_EQ(cudaLaunchHostFunc(stream, add_one, &worker->counter), cudaSuccess);
        BASE_CHECK_EQ(cudaEventRecord(event, stream), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamWaitEvent(shared, event, 0), cudaSuccess);
        const cudaError_t ready = cudaEventQuery(event);
        BASE_CHECK(ready == cudaSuccess || ready == cudaErrorNotReady);
    }
    for (int i = 0; i < SLOTS; ++i)
        BASE_CHECK_EQ(cudaFree(slots[i]), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK_EQ(worker->counter, STEPS);
    BASE_CHECK_EQ(cudaEventDestroy(event), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

static void run(void (*body)(void *argument), struct worker *workers) {
    struct base_thread threads[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        workers[i] = (struct worker){.index = i};
        base_thread_start(&threads[i], body, &workers[i]);
    }
    for (int i = 0; i < THREADS; ++i)
        base_thread_join(&threads[i]);
}

static void start(const char *schedule) {
    base_check_context("%s", schedule);
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = 256 << 20}), BASE_OK);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&shared, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&handed_over, cudaEventDisableTiming), cudaSuccess);
}

static void threads_on_their_own_streams_do_not_disturb_each_other(const char *schedule) {
    struct worker workers[THREADS];
    start(schedule);
    run(own_work, workers);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
}

static uint64_t shared_counter; // ordered by the shared stream alone

static void shared_work(void *argument) {
    (void)argument;
    for (int step = 0; step < STEPS; ++step) {
        BASE_CHECK_EQ(cudaLaunchHostFunc(shared, add_one, &shared_counter), cudaSuccess);
        BASE_CHECK_EQ(cudaEventRecord(handed_over, shared), cudaSuccess);
        if (step % 8 == 0)
            BASE_CHECK_EQ(cudaEventSynchronize(handed_over), cudaSuccess);
        if (step % 64 == 0)
            BASE_CHECK_EQ(cudaStreamSynchronize(shared), cudaSuccess);
    }
}

static void one_stream_runs_the_work_of_all_threads_in_order(const char *schedule, bool held) {
    struct worker workers[THREADS];
    start(schedule);
    shared_counter = 0;
    sim_stream_hold(shared, held);
    run(shared_work, workers);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(shared_counter, THREADS * STEPS);
}

static uint64_t per_thread_counter;

static void per_thread_work(void *argument) {
    (void)argument;
    BASE_CHECK_EQ(cudaLaunchHostFunc(cudaStreamPerThread, add_one, &per_thread_counter),
                  cudaSuccess);
    // Held work outlives the thread, whose stream ends with it.
    sim_stream_hold(NULL, true);
    BASE_CHECK_EQ(cudaLaunchHostFunc(NULL, add_one, &per_thread_counter), cudaSuccess);
    BASE_CHECK_EQ(cudaLaunchHostFunc(cudaStreamPerThread, add_one, &per_thread_counter),
                  cudaSuccess);
}

static void a_threads_stream_ends_with_it(void) {
    struct base_thread thread;
    start("eager");
    base_thread_start(&thread, per_thread_work, NULL);
    base_thread_join(&thread);
    BASE_CHECK_EQ(per_thread_counter, 1);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(per_thread_counter, 3);
}

int main(void) {
    static const char *const schedules[] = {"eager",    "lazy",     "timed",   "random:1",
                                            "random:2", "random:3", "random:4"};
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; ++i) {
        threads_on_their_own_streams_do_not_disturb_each_other(schedules[i]);
        one_stream_runs_the_work_of_all_threads_in_order(schedules[i], false);
        one_stream_runs_the_work_of_all_threads_in_order(schedules[i], true);
    }
    a_threads_stream_ends_with_it();
    return 0;
}
