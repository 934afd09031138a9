// Several host threads capture at once: each its own graph, all of them one, or in each other's
// way. Meant to be run under the thread sanitizer too; and with threads in turns, where the same
// seed gives the same run.
#include "base/check.h"
#include "base/random.h"
#include "base/thread.h"
#include "simulator/sim.h"

#include <string.h>

#define THREADS 3
#define ROUNDS 60
#define SEEDS 6

static void kernel_body(const void *argument) { (void)argument; }

static cudaError_t launch(cudaStream_t stream) {
    return sim_launch(stream, "nothing", kernel_body, NULL, 0);
}

static cudaStream_t stream_new(void) {
    cudaStream_t stream;
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
}

static cudaEvent_t event_new(void) {
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    return event;
}

static size_t node_count(cudaGraph_t graph) {
    size_t count = 0;
    BASE_CHECK_EQ(cudaGraphGetNodes(graph, NULL, &count), cudaSuccess);
    return count;
}

static void run(void (*body)(void *argument), void *arguments, size_t argument_size) {
    struct base_thread threads[THREADS];
    for (int i = 0; i < THREADS; ++i)
        base_thread_start(&threads[i], body, (char *)arguments + (size_t)i * argument_size);
    for (int i = 0; i < THREADS; ++i)
        base_thread_join(&threads[i]);
}

struct worker {
    uint64_t seed;
    cudaStream_t streams[2];
    cudaEvent_t events[2];
    cudaGraph_t graph;
    uint64_t answers[8];
};

static void workers_init(struct worker *workers) {
    for (int i = 0; i < THREADS; ++i) {
        workers[i] = (struct worker){.seed = (uint64_t)i};
        for (int j = 0; j < 2; ++j) {
            workers[i].streams[j] = stream_new();
            workers[i].events[j] = event_new();
        }
    }
}

// --- Side by side ---

static void capture_own(void *argument) {
    struct worker *worker = argument;
    struct base_random random = base_random_init(worker->seed, "capture_thread_test");
    cudaStream_t s = worker->streams[0], t = worker->streams[1];
    for (int round = 0; round < ROUNDS; ++round) {
        const size_t count = base_random_between(&random, 1, 20);
        BASE_CHECK_EQ(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), cudaSuccess);
        BASE_CHECK_EQ(cudaEventRecord(worker->events[0], s), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamWaitEvent(t, worker->events[0], 0), cudaSuccess);
        for (size_t i = 0; i < count; ++i)
            BASE_CHECK_EQ(launch(base_random_below(&random, 2) == 0 ? s : t), cudaSuccess);
        BASE_CHECK_EQ(cudaEventRecord(worker->events[1], t), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamWaitEvent(s, worker->events[1], 0), cudaSuccess);
        cudaGraph_t graph;
        BASE_CHECK_EQ(cudaStreamEndCapture(s, &graph), cudaSuccess);
        BASE_CHECK_EQ(node_count(graph), count);
        BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
        // Other threads' captures are thread-local: nothing is in the way outside one's own.
        void *pointer;
        BASE_CHECK_EQ(cudaMalloc(&pointer, 64), cudaSuccess);
        BASE_CHECK_EQ(cudaFree(pointer), cudaSuccess);
        BASE_CHECK_EQ(launch(s), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamSynchronize(s), cudaSuccess);
    }
}

static void threads_capture_side_by_side(void) {
    struct worker workers[THREADS];
    sim_reset();
    workers_init(workers);
    run(capture_own, workers, sizeof workers[0]);
}

// --- One capture of all threads ---

static void add_to_capture(void *argument) {
    struct worker *worker = argument;
    for (int i = 0; i < ROUNDS; ++i) {
        BASE_CHECK_EQ(launch(worker->streams[0]), cudaSuccess);
        BASE_CHECK_EQ(cudaEventRecord(worker->events[0], worker->streams[0]), cudaSuccess);
    }
}

struct ending {
    cudaStream_t stream;
    cudaError_t answer;
    cudaGraph_t graph;
};

static void end_capture(void *argument) {
    struct ending *ending = argument;
    ending->answer = cudaStreamEndCapture(ending->stream, &ending->graph);
}

static struct ending end_elsewhere(cudaStream_t stream) {
    struct ending ending = {.stream = stream};
    struct base_thread thread;
    base_thread_start(&thread, end_capture, &ending);
    base_thread_join(&thread);
    return ending;
}

static void threads_capture_together(void) {
    struct worker workers[THREADS];
    sim_reset();
    workers_init(workers);
    cudaStream_t origin = stream_new();
    cudaEvent_t fork = event_new();
    BASE_CHECK_EQ(cudaStreamBeginCapture(origin, cudaStreamCaptureModeRelaxed), cudaSuccess);
    BASE_CHECK_EQ(cudaEventRecord(fork, origin), cudaSuccess);
    for (int i = 0; i < THREADS; ++i)
        BASE_CHECK_EQ(cudaStreamWaitEvent(workers[i].streams[0], fork, 0), cudaSuccess);
    run(add_to_capture, workers, sizeof workers[0]);
    for (int i = 0; i < THREADS; ++i)
        BASE_CHECK_EQ(cudaStreamWaitEvent(origin, workers[i].events[0], 0), cudaSuccess);
    const struct ending ending = end_elsewhere(origin); // relaxed: by any thread
    BASE_CHECK_EQ(ending.answer, cudaSuccess);
    BASE_CHECK_EQ(node_count(ending.graph), THREADS * ROUNDS);
    BASE_CHECK_EQ(cudaGraphDestroy(ending.graph), cudaSuccess);
}

static void only_a_relaxed_capture_is_ended_elsewhere(void) {
    cudaGraph_t graph;
    sim_reset();
    cudaStream_t stream = stream_new();
    for (int mode = 0; mode < 2; ++mode) {
        BASE_CHECK_EQ(cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)mode),
                      cudaSuccess);
        BASE_CHECK_EQ(end_elsewhere(stream).answer, cudaErrorStreamCaptureWrongThread);
        BASE_CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
        BASE_CHECK(graph == NULL);
    }
    BASE_CHECK_EQ(sim_reading("wrong-end", "harmless"), BASE_OK);
    BASE_CHECK_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    BASE_CHECK_EQ(end_elsewhere(stream).answer, cudaErrorStreamCaptureWrongThread);
    BASE_CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
    BASE_CHECK_EQ(sim_reading("wrong-end", "invalidates"), BASE_OK);
}

// --- Threads that end ---

static void leave_captures(void *argument) {
    cudaStream_t stream = *(cudaStream_t *)argument;
    BASE_CHECK_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    BASE_CHECK_EQ(launch(stream), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeGlobal),
                  cudaSuccess);
    BASE_CHECK_EQ(launch(cudaStreamPerThread), cudaSuccess);
}

static void captures_outlive_their_thread_but_not_its_stream(void) {
    enum cudaStreamCaptureStatus status;
    struct base_thread thread;
    void *pointer;
    sim_reset();
    cudaStream_t stream = stream_new();
    base_thread_start(&thread, leave_captures, &stream);
    base_thread_join(&thread);
    // That of the thread's own stream is gone: it would have been a blocking one.
    BASE_CHECK_EQ(cudaStreamIsCapturing(NULL, &status), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
    BASE_CHECK_EQ(status, cudaStreamCaptureStatusActive);
    // The other one is another thread's, also for a thread that begins now.
    struct ending ending = end_elsewhere(stream);
    BASE_CHECK_EQ(ending.answer, cudaErrorStreamCaptureWrongThread);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 64), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// --- In each other's way ---

// Captures with mode global, and calls that they forbid to others: who loses depends on the order
// of the calls, and whatever it is, the codes must fit each other.
static void quarrel(void *argument) {
    struct worker *worker = argument;
    struct base_random random = base_random_init(worker->seed, "capture_thread_test quarrel");
    cudaStream_t stream = worker->streams[0];
    for (int round = 0; round < ROUNDS; ++round) {
        cudaGraph_t graph;
        const enum cudaStreamCaptureMode mode =
            (enum cudaStreamCaptureMode)base_random_below(&random, 3);
        BASE_CHECK_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
        const cudaError_t launched = launch(stream);
        BASE_CHECK(launched == cudaSuccess || launched == cudaErrorStreamCaptureInvalidated);
        const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
        BASE_CHECK(ended == cudaSuccess || ended == cudaErrorStreamCaptureInvalidated);
        BASE_CHECK(launched == cudaSuccess || ended != cudaSuccess);
        BASE_CHECK_EQ(graph != NULL, ended == cudaSuccess);
        if (ended == cudaSuccess) {
            BASE_CHECK_EQ(node_count(graph), 1);
            BASE_CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
        }
        // Only a global capture is in the way of other threads.
        worker->answers[ended == cudaSuccess ? 0 : 1 + (int)mode] += 1;
        void *pointer;
        const cudaError_t allocated = cudaMalloc(&pointer, 64);
        BASE_CHECK(allocated == cudaSuccess || allocated == cudaErrorStreamCaptureUnsupported);
        worker->answers[allocated == cudaSuccess ? 4 : 5] += 1;
        if (round % 8 == 0)
            BASE_CHECK(cudaStreamSynchronize(stream) != cudaErrorStreamCaptureInvalidated);
    }
}

static void quarrel_under(uint64_t seed, struct worker *workers) {
    sim_reset();
    workers_init(workers);
    if (seed > 0)
        sim_serialize(seed);
    run(quarrel, workers, sizeof workers[0]);
    if (seed > 0)
        sim_serialize_end();
    for (int i = 0; i < THREADS; ++i) {
        BASE_CHECK_EQ(workers[i].answers[1 + cudaStreamCaptureModeThreadLocal], 0);
        BASE_CHECK_EQ(workers[i].answers[1 + cudaStreamCaptureModeRelaxed], 0);
    }
}

static void threads_lose_each_others_captures(void) {
    struct worker workers[THREADS], again[THREADS];
    uint64_t refused = 0, lost = 0;
    quarrel_under(0, workers);
    for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
        base_check_context("seed %d", (int)seed);
        quarrel_under(seed, workers);
        quarrel_under(seed, again);
        for (int i = 0; i < THREADS; ++i) {
            BASE_CHECK(memcmp(workers[i].answers, again[i].answers, sizeof again[i].answers) == 0);
            lost += workers[i].answers[1 + cudaStreamCaptureModeGlobal];
            refused += workers[i].answers[5];
        }
    }
    base_check_context(NULL);
    BASE_CHECK_GT(lost, 0); // the quarrel took place
    BASE_CHECK_GT(refused, 0);
}

int main(void) {
    static const char *const schedules[] = {"eager", "lazy", "random:3"};
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = (uint64_t)8 << 30,
                                                      .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
    for (int i = 0; i < 3; ++i) {
        BASE_CHECK_EQ(sim_schedule(schedules[i]), BASE_OK);
        threads_capture_side_by_side();
        threads_capture_together();
        sim_serialize(7);
        threads_capture_side_by_side();
        threads_capture_together();
        sim_serialize_end();
        only_a_relaxed_capture_is_ended_elsewhere();
        captures_outlive_their_thread_but_not_its_stream();
        threads_lose_each_others_captures();
    }
    return 0;
}
