// Random race-free programs (property_program.h) leave the same memory under every schedule.
//
//     property_test [SEEDS [FIRST]]      default: 2,000 from 1
#include "base/check.h"
#include "base/thread.h"
#include "simulator/property_program.h"
#include "simulator/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEDULES 5

static unsigned char expected[BUFFERS][CELLS];

// --- Running it ---

static struct run {
    const struct program *program;
    cudaStream_t streams[STREAMS];
    cudaEvent_t events[EVENTS];
    unsigned char *buffers[BUFFERS];
    // Whose turn it is; the operations from NEXT on are the next ones.
    struct base_mutex lock;
    struct base_condition changed;
    int turn, next; // guarded by lock
} run = {.lock = BASE_MUTEX_INITIALIZER, .changed = BASE_CONDITION_INITIALIZER};

static void kernel_body(const void *argument) {
    unsigned char *bytes[BUFFERS];
    for (int i = 0; i < BUFFERS; ++i)
        bytes[i] = i < PINNED_FIRST ? sim_device_bytes(run.buffers[i]) : run.buffers[i];
    operation_perform(*(const struct operation *const *)argument, bytes);
}

static void host_function_body(void *operation) { operation_perform(operation, run.buffers); }

static unsigned char *span_pointer(const struct span *span) {
    return run.buffers[span->buffer] + span->start;
}

static void copy_call(const struct operation *operation) {
    const struct span *to = &operation->to, *from = &operation->from;
    const cudaStream_t stream = run.streams[operation->stream];
    if (operation->kind == PLAIN_COPY)
        BASE_CHECK_EQ(cudaMemcpy(span_pointer(to), span_pointer(from), (size_t)to->length,
                                 cudaMemcpyDefault),
                      cudaSuccess);
    else if (to->count == 1)
        BASE_CHECK_EQ(cudaMemcpyAsync(span_pointer(to), span_pointer(from), (size_t)to->length,
                                      cudaMemcpyDefault, stream),
                      cudaSuccess);
    else
        BASE_CHECK_EQ(cudaMemcpy2DAsync(span_pointer(to), (size_t)to->stride, span_pointer(from),
                                        (size_t)from->stride, (size_t)to->length,
                                        (size_t)to->count, cudaMemcpyDefault, stream),
                      cudaSuccess);
}

static void poll_event(cudaEvent_t event) {
    cudaError_t error;
    while ((error = cudaEventQuery(event)) == cudaErrorNotReady) {
    }
    BASE_CHECK_EQ(error, cudaSuccess);
}

static void poll_stream(cudaStream_t stream) {
    cudaError_t error;
    while ((error = cudaStreamQuery(stream)) == cudaErrorNotReady) {
    }
    BASE_CHECK_EQ(error, cudaSuccess);
}

static void perform(const struct operation *operation) {
    const cudaStream_t stream = run.streams[operation->stream];
    const cudaEvent_t event = run.events[operation->event];
    cudaError_t error = cudaSuccess;
    switch (operation->kind) {
    case ADD:
    case MIX:
    case ATOMIC:
        error = sim_launch(stream, "kernel", kernel_body, &operation, sizeof operation);
        break;
    case COPY:
    case PLAIN_COPY: copy_call(operation); break;
    case PEER_COPY:
        error = cudaMemcpyPeer(span_pointer(&operation->to), 0, span_pointer(&operation->from), 0,
                               (size_t)operation->to.length);
        break;
    case FILL:
        error = operation->to.count == 1
                    ? cudaMemsetAsync(span_pointer(&operation->to), operation->value,
                                      (size_t)operation->to.length, stream)
                    : cudaMemset2DAsync(span_pointer(&operation->to),
                                        (size_t)operation->to.stride, operation->value,
                                        (size_t)operation->to.length,
                                        (size_t)operation->to.count, stream);
        break;
    case HOST_ADD: operation_perform(operation, run.buffers); break;
    case HOST_FUNCTION:
        error = cudaLaunchHostFunc(stream, host_function_body, (void *)(uintptr_t)operation);
        break;
    case RECORD: error = cudaEventRecord(event, stream); break;
    case WAIT: error = cudaStreamWaitEvent(stream, event, 0); break;
    case EVENT_SYNC: error = cudaEventSynchronize(event); break;
    case EVENT_POLL: poll_event(event); break;
    case STREAM_SYNC: error = cudaStreamSynchronize(stream); break;
    case STREAM_POLL: poll_stream(stream); break;
    case DEVICE_SYNC: error = cudaDeviceSynchronize(); break;
    case HAND_OVER:
    case KIND_COUNT: break;
    }
    BASE_CHECK_EQ(error, cudaSuccess);
}

// Performs operations while it is this thread's turn.
static void take_turns(void *index) {
    const int self = (int)(intptr_t)index;
    base_mutex_lock(&run.lock);
    while (run.next < run.program->count) {
        if (run.turn != self) {
            base_condition_wait(&run.changed, &run.lock);
            continue;
        }
        const struct operation *operation = &run.program->operations[run.next++];
        if (operation->kind == HAND_OVER)
            run.turn = 1 - run.turn;
        base_mutex_unlock(&run.lock);
        perform(operation);
        base_mutex_lock(&run.lock);
        base_condition_broadcast(&run.changed);
    }
    base_condition_broadcast(&run.changed);
    base_mutex_unlock(&run.lock);
}

static void run_program(const struct program *program) {
    struct base_thread other;
    run.program = program;
    run.turn = run.next = 0;
    for (int i = 0; i < BUFFERS; ++i)
        BASE_CHECK_EQ(cudaMemset(run.buffers[i], 0, CELLS), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    if (program->has_hand_over)
        base_thread_start(&other, take_turns, (void *)1);
    take_turns((void *)0);
    if (program->has_hand_over)
        base_thread_join(&other);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

static void compare(void) {
    for (int i = 0; i < BUFFERS; ++i) {
        unsigned char bytes[CELLS];
        BASE_CHECK_EQ(cudaMemcpy(bytes, run.buffers[i], CELLS, cudaMemcpyDefault), cudaSuccess);
        for (int cell = 0; cell < CELLS; ++cell)
            BASE_CHECK_EQ(bytes[cell], expected[i][cell]);
    }
}

static void schedule_name(char text[32], uint64_t seed, int index) {
    static const char *const plain[] = {"eager", "lazy", "timed"};
    if (index < 3)
        strcpy(text, plain[index]);
    else
        snprintf(text, 32, "random:%" PRIu64, seed * (SCHEDULES - 3) + (uint64_t)index - 3);
}

static void world_start(void) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = 64 << 20}), BASE_OK);
    run.streams[0] = NULL;
    for (int i = 1; i < STREAMS; ++i)
        BASE_CHECK_EQ(cudaStreamCreateWithFlags(&run.streams[i], stream_is_blocking(i)
                                                                     ? cudaStreamDefault
                                                                     : cudaStreamNonBlocking),
                      cudaSuccess);
    run.streams[BLOCKING_LAST] = cudaStreamPerThread;
    for (int i = 0; i < EVENTS; ++i)
        BASE_CHECK_EQ(cudaEventCreateWithFlags(&run.events[i], cudaEventDisableTiming),
                      cudaSuccess);
    for (int i = 0; i < BUFFERS; ++i) {
        void *pointer;
        BASE_CHECK_EQ(i < PINNED_FIRST ? cudaMalloc(&pointer, CELLS)
                                       : cudaMallocHost(&pointer, CELLS),
                      cudaSuccess);
        run.buffers[i] = pointer;
    }
}

int main(int argc, char **argv) {
    const uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
    const uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    static struct program program;
    uint64_t operations = 0, runs = 0, hard = 0, strides = 0, atomics = 0, polls = 0, threads = 0;
    world_start();
    for (uint64_t seed = first; seed < first + seeds; ++seed) {
        struct base_random random = base_random_init(seed, "property_test");
        program_draw(&random, &program, expected);
        operations += (uint64_t)program.count;
        strides += program.has_stride;
        atomics += program.has_atomic;
        polls += program.has_poll;
        threads += program.has_hand_over;
        hard += program.has_stride || program.has_atomic || program.has_poll ||
                program.has_hand_over;
        for (int i = 0; i < SCHEDULES; ++i) {
            char schedule[32];
            schedule_name(schedule, seed, i);
            base_check_context("seed %" PRIu64 ", schedule %s", seed, schedule);
            BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
            run_program(&program);
            compare();
            ++runs;
        }
    }
    printf("race-free programs, seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " with %" PRIu64
           " operations, %" PRIu64 " runs; of them %" PRIu64 " with strided ranges between each "
           "other, %" PRIu64 " with unordered atomics, %" PRIu64 " polling, %" PRIu64
           " handed from thread to thread; %" PRIu64 " with at least one of these\n",
           first, first + seeds - 1, seeds, operations, runs, strides, atomics, polls, threads,
           hard);
    BASE_CHECK_GE(3 * hard, seeds);
    return 0;
}
