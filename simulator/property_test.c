// Random race-free programs leave the same memory under every schedule.
//
// A program is drawn from a seed: streams of all kinds, events, kernels, copies and fills over a few
// buffers on device and host, waits of all kinds. It is made race-free as it is drawn: before an
// access that some earlier one conflicts with and that nothing orders yet, the generator adds what
// orders it, an event, a wait of the host, a polling loop, a hand-off. What is ordered it knows from
// vector clocks of its own; what memory must be in the end, from running the operations one by one
// as they were drawn. So neither comes from the simulator.
//
//     property_test [SEEDS [FIRST]]      default: 2,000 from 1
#include "base/check.h"
#include "base/random.h"
#include "base/thread.h"
#include "simulator/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS 6  // 0 is the legacy stream, 1 and 2 are blocking, 3 is the thread's own
#define BLOCKING_FIRST 1
#define BLOCKING_LAST 3
#define BUFFERS 5
#define PINNED_FIRST 3 // the last buffers are page-locked host memory
#define CELLS 24       // of each buffer
#define OPERATIONS_MAX 40
#define EVENTS 4
// Who acts: streams, and beside them the host, and plain peer copies.
#define HOST STREAMS
#define FENCE (STREAMS + 1)
#define ACTORS (STREAMS + 2)
#define SCHEDULES 5

// --- The program ---

enum kind {
    ADD,         // cells of TO += VALUE, a kernel
    MIX,         // cells of TO = 3 * TO + cells of FROM, a kernel
    ATOMIC,      // cells of TO += VALUE, as atomics
    COPY,        // cudaMemcpy2DAsync or cudaMemcpyAsync, by the stride
    FILL,        // the same for memset
    PLAIN_COPY,  // cudaMemcpy in the legacy stream
    PEER_COPY,   // cudaMemcpyPeer, from the device to itself: between all its work
    HOST_ADD,    // the host does it
    HOST_FUNCTION,
    RECORD,
    WAIT,
    EVENT_SYNC,
    EVENT_POLL,
    STREAM_SYNC,
    STREAM_POLL,
    DEVICE_SYNC,
    HAND_OVER, // the calls that follow are another thread's
    KIND_COUNT,
};

// COUNT pieces of LENGTH cells, their starts STRIDE apart.
struct span {
    int buffer, start, length, stride, count;
};

struct operation {
    enum kind kind;
    int stream, event;
    unsigned char value;
    struct span to, from;
};

struct program {
    struct operation operations[4 * OPERATIONS_MAX];
    int count;
    bool has_stride, has_atomic, has_poll, has_hand_over;
};

// --- What orders what: vector clocks ---

struct clock {
    int time[ACTORS]; // how many operations of each stream and fence, and steps of the host, it saw
};

// The last accesses of a cell by each stream and the host.
struct cell {
    int written[ACTORS], read[ACTORS], updated[ACTORS]; // 0: never
};

static struct world {
    struct clock streams[STREAMS], host, fence, events[EVENTS];
    bool recorded[EVENTS];
    struct cell cells[BUFFERS][CELLS];
    unsigned char memory[BUFFERS][CELLS];
} world;

static void clock_join(struct clock *into, const struct clock *other) {
    for (int i = 0; i < ACTORS; ++i)
        if (other->time[i] > into->time[i])
            into->time[i] = other->time[i];
}

static bool is_blocking(int stream) { return stream >= BLOCKING_FIRST && stream <= BLOCKING_LAST; }

// The clock of an operation enqueued in STREAM now.
static struct clock clock_enqueued(int stream) {
    struct clock clock = world.streams[stream];
    clock_join(&clock, &world.host);
    clock_join(&clock, &world.fence);
    if (stream == 0)
        for (int i = BLOCKING_FIRST; i <= BLOCKING_LAST; ++i)
            clock_join(&clock, &world.streams[i]);
    else if (is_blocking(stream))
        clock_join(&clock, &world.streams[0]);
    return clock;
}

// The clock of a plain peer copy.
static struct clock clock_fenced(void) {
    struct clock clock = world.host;
    clock_join(&clock, &world.fence);
    for (int i = 0; i < STREAMS; ++i)
        clock_join(&clock, &world.streams[i]);
    return clock;
}

static void clock_of_sync(struct clock *host, int stream) {
    clock_join(host, &world.streams[stream]);
    if (stream != 0)
        return;
    clock_join(host, &world.fence);
    for (int i = BLOCKING_FIRST; i <= BLOCKING_LAST; ++i)
        clock_join(host, &world.streams[i]);
}

enum access { READ, WRITE, UPDATE };

static int span_cell(const struct span *span, int i) {
    return span->start + i / span->length * span->stride + i % span->length;
}
static int span_size(const struct span *span) { return span->length * span->count; }

// The first actor whose access conflicts with this one and is not in CLOCK; -1: none.
static int conflict(const struct span *span, enum access access, const struct clock *clock,
                    int self) {
    for (int i = 0; i < span_size(span); ++i) {
        const struct cell *cell = &world.cells[span->buffer][span_cell(span, i)];
        for (int other = 0; other < ACTORS; ++other) {
            if (other == self)
                continue;
            if (cell->written[other] > clock->time[other] ||
                (access != READ && cell->read[other] > clock->time[other]) ||
                (access != UPDATE && cell->updated[other] > clock->time[other]))
                return other;
        }
    }
    return -1;
}

static void note_access(const struct span *span, enum access access, int self, int time) {
    for (int i = 0; i < span_size(span); ++i) {
        struct cell *cell = &world.cells[span->buffer][span_cell(span, i)];
        *(access == READ ? &cell->read[self]
          : access == WRITE ? &cell->written[self]
                            : &cell->updated[self]) = time;
    }
}

static bool touches(enum kind kind) { return kind <= HOST_FUNCTION; }
static bool reads_from(enum kind kind) {
    return kind == MIX || kind == COPY || kind == PLAIN_COPY || kind == PEER_COPY;
}

static enum access access_to(const struct operation *operation) {
    return operation->kind == ATOMIC ? UPDATE : WRITE;
}

// --- What an operation does to memory ---

static void cells_change(unsigned char *const bytes[BUFFERS], const struct operation *operation) {
    for (int i = 0; i < span_size(&operation->to); ++i) {
        unsigned char *to = &bytes[operation->to.buffer][span_cell(&operation->to, i)];
        const unsigned char *from =
            reads_from(operation->kind)
                ? &bytes[operation->from.buffer][span_cell(&operation->from, i)]
                : NULL;
        switch (operation->kind) {
        case ADD:
        case HOST_ADD:
        case HOST_FUNCTION: *to = (unsigned char)(*to * 5 + operation->value); break;
        case ATOMIC: __atomic_fetch_add(to, operation->value, __ATOMIC_RELAXED); break;
        case MIX: *to = (unsigned char)(3 * *to + *from); break;
        case COPY:
        case PLAIN_COPY:
        case PEER_COPY: *to = *from; break;
        case FILL: *to = operation->value; break;
        default: break;
        }
    }
}

// --- Drawing a program ---

static void program_add(struct program *program, const struct operation *operation) {
    BASE_CHECK_LT(program->count, 4 * OPERATIONS_MAX);
    program->operations[program->count++] = *operation;
}

// The clocks after it.
static void apply_order(const struct operation *operation) {
    const int stream = operation->stream;
    ++world.host.time[HOST];
    switch (operation->kind) {
    case RECORD:
    case WAIT: {
        struct clock clock = clock_enqueued(stream);
        if (operation->kind == WAIT && world.recorded[operation->event])
            clock_join(&clock, &world.events[operation->event]);
        ++clock.time[stream];
        world.streams[stream] = clock;
        if (operation->kind == RECORD) {
            world.events[operation->event] = clock;
            world.recorded[operation->event] = true;
        }
        break;
    }
    case EVENT_SYNC:
    case EVENT_POLL:
        if (world.recorded[operation->event])
            clock_join(&world.host, &world.events[operation->event]);
        break;
    case STREAM_SYNC:
    case STREAM_POLL: clock_of_sync(&world.host, stream); break;
    case DEVICE_SYNC: world.host = clock_fenced(); break;
    default: break;
    }
}

static void add_order(struct program *program, struct operation operation) {
    // A wait that waits for nothing would be no operation of its stream.
    if (operation.kind == WAIT && !world.recorded[operation.event])
        return;
    apply_order(&operation);
    program->has_poll |= operation.kind == EVENT_POLL || operation.kind == STREAM_POLL;
    program->has_hand_over |= operation.kind == HAND_OVER;
    program_add(program, &operation);
}

// Makes the work of OTHER come before what SELF (a stream, or HOST) does next.
static void order_behind(struct base_random *random, struct program *program, int self,
                         int other) {
    const int event = (int)base_random_below(random, EVENTS);
    BASE_CHECK(other != HOST); // the host's own steps come before all that it enqueues
    if (other == FENCE) { // all later work comes after it, only the host does not
        BASE_CHECK_EQ(self, HOST);
        other = (int)base_random_below(random, STREAMS);
        add_order(program, (struct operation){.kind = RECORD, .stream = other, .event = event});
        add_order(program, (struct operation){.kind = EVENT_SYNC, .event = event});
        return;
    }
    switch (self == HOST ? base_random_between(random, 2, 6) : base_random_below(random, 7)) {
    case 0:
    case 1:
        add_order(program, (struct operation){.kind = RECORD, .stream = other, .event = event});
        add_order(program, (struct operation){.kind = WAIT, .stream = self, .event = event});
        break;
    case 2:
        add_order(program, (struct operation){.kind = RECORD, .stream = other, .event = event});
        add_order(program, (struct operation){.kind = EVENT_SYNC, .event = event});
        break;
    case 3:
        add_order(program, (struct operation){.kind = RECORD, .stream = other, .event = event});
        add_order(program, (struct operation){.kind = EVENT_POLL, .event = event});
        break;
    case 4: add_order(program, (struct operation){.kind = STREAM_SYNC, .stream = other}); break;
    case 5: add_order(program, (struct operation){.kind = STREAM_POLL, .stream = other}); break;
    default: add_order(program, (struct operation){.kind = DEVICE_SYNC}); break;
    }
}

static struct span span_draw(struct base_random *random, int buffer) {
    struct span span = {.buffer = buffer, .count = 1};
    span.length = (int)base_random_between(random, 1, 6);
    span.stride = span.length;
    if (base_random_chance(random, 0.4)) {
        span.stride = span.length + (int)base_random_between(random, 1, 4);
        span.count = (int)base_random_between(random, 2, 4);
        while ((span.count - 1) * span.stride + span.length > CELLS)
            --span.count;
    }
    const int extent = (span.count - 1) * span.stride + span.length;
    span.start = (int)base_random_below(random, (uint64_t)(CELLS - extent + 1));
    return span;
}

static bool spans_meet(const struct span *a, const struct span *b) {
    for (int i = 0; i < span_size(a); ++i)
        for (int j = 0; j < span_size(b); ++j)
            if (a->buffer == b->buffer && span_cell(a, i) == span_cell(b, j))
                return true;
    return false;
}

// Strided pieces between which another unordered operation has its own: what a checker that only
// knows extents would call a race. Found by looking at the accesses that are not ordered.
static bool meets_by_extent_only(const struct span *span, const struct clock *clock, int self) {
    if (span->count == 1)
        return false;
    struct span hull = {span->buffer, span->start,
                        (span->count - 1) * span->stride + span->length, 1, 1};
    hull.stride = hull.length;
    return conflict(&hull, WRITE, clock, self) >= 0;
}

static struct operation work_draw(struct base_random *random) {
    static const enum kind kinds[] = {ADD,  ADD,  MIX,        MIX,      ATOMIC,       ATOMIC,
                                      COPY, FILL, PLAIN_COPY, HOST_ADD, HOST_FUNCTION, PEER_COPY};
    struct operation operation = {
        .kind = kinds[base_random_below(random, sizeof kinds / sizeof kinds[0])],
        .stream = (int)base_random_below(random, STREAMS),
        .value = (unsigned char)base_random_between(random, 1, 255),
    };
    const bool is_host = operation.kind == HOST_ADD || operation.kind == HOST_FUNCTION;
    operation.to = span_draw(random, (int)(is_host ? base_random_between(random, PINNED_FIRST,
                                                                         BUFFERS - 1)
                                                   : base_random_below(random, BUFFERS)));
    if (operation.kind == PEER_COPY)
        operation.to.buffer %= PINNED_FIRST;
    if (operation.kind == PLAIN_COPY || operation.kind == PEER_COPY) {
        operation.stream = 0;
        operation.to.count = 1;
    }
    operation.from = operation.to;
    if (reads_from(operation.kind)) {
        do {
            operation.from.buffer = (int)base_random_below(
                random, operation.kind == PEER_COPY ? PINNED_FIRST : BUFFERS);
            const int extent = (operation.from.count - 1) * operation.from.stride +
                               operation.from.length;
            operation.from.start = (int)base_random_below(random, (uint64_t)(CELLS - extent + 1));
        } while (spans_meet(&operation.from, &operation.to));
    }
    return operation;
}

// Adds what orders the operation behind all that it conflicts with, then itself.
static void add_work(struct base_random *random, struct program *program,
                     struct operation operation) {
    const int self = operation.kind == HOST_ADD    ? HOST
                     : operation.kind == PEER_COPY ? FENCE
                                                   : operation.stream;
    struct clock clock;
    for (;;) {
        clock = self == HOST    ? world.host
                : self == FENCE ? clock_fenced()
                                : clock_enqueued(self);
        int other = conflict(&operation.to, access_to(&operation), &clock, self);
        if (other < 0 && reads_from(operation.kind))
            other = conflict(&operation.from, READ, &clock, self);
        if (other < 0)
            break;
        order_behind(random, program, self, other);
    }
    program->has_stride |= meets_by_extent_only(&operation.to, &clock, self);
    program->has_atomic |= operation.kind == ATOMIC &&
                           conflict(&operation.to, WRITE, &clock, self) >= 0;
    ++world.host.time[HOST];
    ++clock.time[self];
    clock.time[HOST] = world.host.time[HOST];
    if (self == HOST)
        world.host = clock;
    else if (self == FENCE)
        world.fence = clock;
    else
        world.streams[self] = clock;
    // A plain copy of which a side is on the host is complete when it returns.
    if (operation.kind == PLAIN_COPY &&
        (operation.to.buffer >= PINNED_FIRST || operation.from.buffer >= PINNED_FIRST))
        clock_join(&world.host, &world.streams[0]);
    // Between page-locked buffers every copy is.
    if (operation.kind == COPY && operation.to.buffer >= PINNED_FIRST &&
        operation.from.buffer >= PINNED_FIRST)
        clock_join(&world.host, &world.streams[self]);
    note_access(&operation.to, access_to(&operation), self, clock.time[self]);
    if (reads_from(operation.kind))
        note_access(&operation.from, READ, self, clock.time[self]);
    program_add(program, &operation);
}

// Draws the program; world.memory is then what it must leave.
static void program_draw(struct base_random *random, struct program *program) {
    memset(program, 0, sizeof *program);
    memset(&world, 0, sizeof world);
    const int target = (int)base_random_between(random, 8, OPERATIONS_MAX);
    const bool threads = base_random_chance(random, 0.3);
    for (int i = 0; i < target && program->count < 3 * OPERATIONS_MAX; ++i) {
        struct operation operation = {.stream = (int)base_random_below(random, STREAMS),
                                      .event = (int)base_random_below(random, EVENTS)};
        switch (base_random_below(random, 20)) {
        case 0: operation.kind = RECORD; break;
        case 1: operation.kind = WAIT; break;
        case 2: operation.kind = threads ? HAND_OVER : STREAM_POLL; break;
        default: operation.kind = KIND_COUNT;
        }
        // The thread's own stream is another one in the other thread.
        if (threads && operation.stream == BLOCKING_LAST)
            operation.stream = BLOCKING_FIRST;
        if (operation.kind != KIND_COUNT) {
            add_order(program, operation);
            continue;
        }
        operation = work_draw(random);
        if (threads && operation.stream == BLOCKING_LAST)
            operation.stream = BLOCKING_FIRST;
        add_work(random, program, operation);
    }
    unsigned char *bytes[BUFFERS];
    for (int i = 0; i < BUFFERS; ++i)
        bytes[i] = world.memory[i];
    for (int i = 0; i < program->count; ++i)
        if (touches(program->operations[i].kind))
            cells_change(bytes, &program->operations[i]);
}

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
    cells_change(bytes, *(const struct operation *const *)argument);
}

static void host_function_body(void *operation) { cells_change(run.buffers, operation); }

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
    case HOST_ADD: cells_change(run.buffers, operation); break;
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
            BASE_CHECK_EQ(bytes[cell], world.memory[i][cell]);
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
        BASE_CHECK_EQ(cudaStreamCreateWithFlags(&run.streams[i], is_blocking(i)
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
        program_draw(&random, &program);
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
