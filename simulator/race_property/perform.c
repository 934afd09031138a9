// A run of a program: the machine, two host threads that take turns, one CUDA call an operation.
//
// Threads take turns by plain pthread calls: those of base/thread.h would tell the checker of
// hand-offs that the program does not make.
#include "simulator/race_property/perform.h"

#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include "base/check.h"
#include "base/size.h"

#include <cuda.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define POLLS_MAX    100000
#define STEPS_BEFORE 4100 // more than those for which the checker keeps all

static struct run {
    const struct program *program;
    const struct performance *performance;
    struct performed *performed;
    cudaStream_t streams[STREAMS_MAX];
    cudaEvent_t events[EVENTS_MAX];
    unsigned char *buffers[BUFFERS_MAX];
    uint64_t blocks[BLOCKS_MAX];
    cudaGraph_t graphs[GRAPHS_MAX];
    cudaGraphNode_t nodes[OPERATIONS_MAX];
    cudaGraphExec_t execs[EXECS_MAX];
    uint32_t *counters; // page-locked, one a stream
    char tokens[TOKENS_MAX];
    unsigned char *pageable;
    // Whose turn it is; the operations from NEXT on are the next ones.
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int next; // guarded by lock
} run = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct {
    int index;
    const struct operation *operation;
} call;

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...) {
    if (run.performed->problem[0] != '\0')
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(run.performed->problem, sizeof run.performed->problem, format, arguments);
    va_end(arguments);
}

// --- Addresses ---

static size_t bytes_of(int cells) { return (size_t)cells * (size_t)run.performance->cell_bytes; }

static unsigned char *span_pointer(const struct span *span) {
    return run.buffers[span->buffer] + bytes_of(span->start);
}

static int device_of(const struct span *span) { return run.program->buffers[span->buffer].device; }

static struct sim_access access_make(const struct access *access) {
    static const enum sim_access_mode modes[] = {SIM_ACCESS_READ, SIM_ACCESS_WRITE,
                                                 SIM_ACCESS_ATOMIC};
    const struct span *span = &access->span;
    const bool named = span->block != NONE && call.index % 2 < run.performance->name_blocks;
    return (struct sim_access){
        .mode = access->quiet ? SIM_ACCESS_CARRY : modes[access->mode],
        .pointer = span_pointer(span),
        .size = bytes_of(span->length),
        .rows = span->count == 1 ? 0 : (size_t)span->count,
        .pitch = bytes_of(span->stride),
        .block = named ? run.blocks[span->block] : 0,
    };
}

static size_t accesses_make(struct sim_access accesses[3 * STEPS_MAX]) {
    size_t count = 0;
    for (int i = 0; i < call.operation->step_count; ++i) {
        struct access touched[3];
        const int touched_count = step_accesses(&call.operation->steps[i], touched);
        for (int k = 0; k < touched_count; ++k)
            accesses[count++] = access_make(&touched[k]);
    }
    return count;
}

// --- Calls ---

static void kernel_body(const void *argument) { (void)argument; }
static void host_body(void *argument) { (void)argument; }

static cudaStream_t stream(void) { return run.streams[call.operation->stream]; }
static cudaEvent_t event(void) { return run.events[call.operation->event]; }

static cudaError_t kernel(void) {
    struct sim_access accesses[3 * STEPS_MAX];
    return sim_launch_kernel(stream(),
                             &(struct sim_kernel){.name = operation_label(call.index),
                                                  .body = kernel_body,
                                                  .accesses = accesses,
                                                  .access_count = accesses_make(accesses)});
}

static cudaError_t node_add(void) {
    struct sim_access accesses[3 * STEPS_MAX];
    cudaGraphNode_t dependencies[DEPENDENCIES_MAX];
    for (int i = 0; i < call.operation->dependency_count; ++i)
        dependencies[i] = run.nodes[call.operation->dependencies[i]];
    return sim_graph_add_kernel(&run.nodes[call.index], run.graphs[call.operation->graph],
                                dependencies, (size_t)call.operation->dependency_count,
                                &(struct sim_kernel){.name = operation_label(call.index),
                                                     .body = kernel_body,
                                                     .accesses = accesses,
                                                     .access_count = accesses_make(accesses)});
}

static cudaError_t host_function(void) {
    struct sim_access accesses[3 * STEPS_MAX];
    sim_next_accesses(accesses, accesses_make(accesses));
    return cudaLaunchHostFunc(stream(), host_body, NULL);
}

static bool is_per_thread(void) {
    return run.program->streams[call.operation->stream].kind == PER_THREAD;
}

static cudaError_t copy(void) {
    const struct span *to = &call.operation->steps[0].to;
    const struct span *from = &call.operation->steps[0].from[0];
    unsigned char *const target = span_pointer(to), *const source = span_pointer(from);
    const size_t width = bytes_of(to->length);
    const size_t pitch = bytes_of(to->stride), source_pitch = bytes_of(from->stride);
    const bool plain = call.operation->verb == COPY;
    if (to->count > 1) {
        const size_t rows = (size_t)to->count;
        if (!plain)
            return cudaMemcpy2DAsync(target, pitch, source, source_pitch, width, rows,
                                     cudaMemcpyDefault, stream());
        return (is_per_thread() ? cudaMemcpy2D_ptds : cudaMemcpy2D)(
            target, pitch, source, source_pitch, width, rows, cudaMemcpyDefault);
    }
    if (!plain)
        return cudaMemcpyAsync(target, source, width, cudaMemcpyDefault, stream());
    return (is_per_thread() ? cudaMemcpy_ptds : cudaMemcpy)(target, source, width,
                                                            cudaMemcpyDefault);
}

static cudaError_t copy_peer(void) {
    const struct span *to = &call.operation->steps[0].to;
    const struct span *from = &call.operation->steps[0].from[0];
    if (call.operation->verb == COPY_PEER)
        return cudaMemcpyPeer(span_pointer(to), device_of(to), span_pointer(from), device_of(from),
                              bytes_of(to->length));
    return cudaMemcpyPeerAsync(span_pointer(to), device_of(to), span_pointer(from), device_of(from),
                               bytes_of(to->length), stream());
}

static cudaError_t fill(void) {
    const struct span *to = &call.operation->steps[0].to;
    unsigned char *const target = span_pointer(to);
    const size_t width = bytes_of(to->length), rows = (size_t)to->count;
    const bool plain = call.operation->verb == FILL;
    if (to->count > 1) {
        if (!plain)
            return cudaMemset2DAsync(target, bytes_of(to->stride), 1, width, rows, stream());
        return (is_per_thread() ? cudaMemset2D_ptds : cudaMemset2D)(target, bytes_of(to->stride), 1,
                                                                    width, rows);
    }
    if (!plain)
        return cudaMemsetAsync(target, 1, width, stream());
    return (is_per_thread() ? cudaMemset_ptds : cudaMemset)(target, 1, width);
}

static cudaError_t host_access(void) {
    const struct step *step = &call.operation->steps[0];
    const bool writes = call.operation->verb == HOST_WRITE;
    const struct span *span = writes ? &step->to : &step->from[0];
    (void)sim_host_access(span_pointer(span), bytes_of(span->length), writes);
    return cudaSuccess;
}

static cudaError_t poll(cudaError_t (*query)(void)) {
    cudaError_t error = cudaErrorNotReady;
    for (int i = 0; i < POLLS_MAX && error == cudaErrorNotReady; ++i)
        error = query();
    return error;
}

static cudaError_t event_query(void) { return cudaEventQuery(event()); }
static cudaError_t stream_query(void) { return cudaStreamQuery(stream()); }

static cudaError_t query(cudaError_t (*ask)(void)) {
    const cudaError_t error = ask();
    run.performed->results[call.index] = (int)error;
    return error == cudaErrorNotReady ? cudaSuccess : error;
}

static cudaError_t alloc(void) {
    const struct buffer *buffer = &run.program->buffers[call.operation->buffer];
    const size_t size = bytes_of(buffer->size);
    void *pointer = NULL;
    cudaError_t error = cudaSuccess;
    if (call.operation->verb == ALLOC)
        error = cudaMalloc(&pointer, size);
    else if (call.operation->verb == HOST_ALLOC)
        error = cudaHostAlloc(&pointer, size, cudaHostAllocDefault);
    else
        error = cudaMallocAsync(&pointer, size, stream());
    run.buffers[call.operation->buffer] = pointer;
    return error;
}

static cudaError_t release(void) {
    void *const pointer = run.buffers[call.operation->buffer];
    if (call.operation->verb == FREE)
        return cudaFree(pointer);
    return call.operation->verb == HOST_FREE ? cudaFreeHost(pointer)
                                             : cudaFreeAsync(pointer, stream());
}

static cudaError_t block_call(void) {
    const int index = call.operation->block;
    const struct block *block = &run.program->blocks[index];
    if (call.operation->verb == TAKE)
        run.blocks[index] = sim_block_take(run.buffers[block->buffer] + bytes_of(block->start),
                                           bytes_of(block->size), stream(), NULL);
    else if (call.operation->verb == USE)
        sim_block_use(run.blocks[index], stream());
    else
        sim_block_give(run.blocks[index]);
    return cudaSuccess;
}

static cudaError_t value_write(void) {
    return (cudaError_t)cuStreamWriteValue32(
        stream(), (CUdeviceptr)(uintptr_t)&run.counters[call.operation->token],
        (cuuint32_t)call.operation->value, 0);
}

static cudaError_t value_poll(void) {
    const uint32_t *counter = &run.counters[call.operation->token];
    const uint32_t wanted = (uint32_t)call.operation->value;
    for (int i = 0; i < POLLS_MAX; ++i) {
        if (__atomic_load_n(counter, __ATOMIC_ACQUIRE) >= wanted) {
            sim_value_seen(counter, wanted);
            return cudaSuccess;
        }
        sim_progress();
    }
    return cudaErrorNotReady;
}

static cudaError_t begin(void) {
    static const enum cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeGlobal,
                                                       cudaStreamCaptureModeThreadLocal,
                                                       cudaStreamCaptureModeRelaxed};
    return cudaStreamBeginCapture(stream(), modes[call.operation->value]);
}

static cudaError_t make_call(void) {
    const struct operation *operation = call.operation;
    switch (operation->verb) {
    case KERNEL: return kernel();
    case HOST_FUNCTION: return host_function();
    case COPY:
    case COPY_ASYNC: return copy();
    case COPY_PEER:
    case COPY_PEER_ASYNC: return copy_peer();
    case FILL:
    case FILL_ASYNC: return fill();
    case HOST_WRITE:
    case HOST_READ: return host_access();
    case RECORD: return cudaEventRecord(event(), stream());
    case WAIT: return cudaStreamWaitEvent(stream(), event(), 0);
    case EVENT_SYNC: return cudaEventSynchronize(event());
    case EVENT_QUERY: return query(event_query);
    case EVENT_POLL: return poll(event_query);
    case EVENT_CREATE:
        return cudaEventCreateWithFlags(&run.events[operation->event], cudaEventDisableTiming);
    case EVENT_DESTROY: return cudaEventDestroy(event());
    case STREAM_SYNC: return cudaStreamSynchronize(stream());
    case STREAM_QUERY: return query(stream_query);
    case STREAM_POLL: return poll(stream_query);
    case STREAM_DESTROY: return cudaStreamDestroy(stream());
    case DEVICE_SYNC: return cudaDeviceSynchronize();
    case SIGNAL: sim_handoff_signal(&run.tokens[operation->token]); return cudaSuccess;
    case AWAIT: sim_handoff_await(&run.tokens[operation->token]); return cudaSuccess;
    case ALLOC:
    case HOST_ALLOC:
    case ALLOC_ASYNC: return alloc();
    case FREE:
    case HOST_FREE:
    case FREE_ASYNC: return release();
    case TAKE:
    case USE:
    case GIVE: return block_call();
    case WRITE_VALUE: return value_write();
    case VALUE_POLL: return value_poll();
    case GRAPH_CREATE: return cudaGraphCreate(&run.graphs[operation->graph], 0);
    case ADD_KERNEL: return node_add();
    case BEGIN: return begin();
    case END: return cudaStreamEndCapture(stream(), &run.graphs[operation->graph]);
    case INSTANTIATE:
        return cudaGraphInstantiate(&run.execs[operation->exec], run.graphs[operation->graph], 0);
    case LAUNCH: return cudaGraphLaunch(run.execs[operation->exec], stream());
    case EXEC_DESTROY: return cudaGraphExecDestroy(run.execs[operation->exec]);
    case GRAPH_DESTROY: return cudaGraphDestroy(run.graphs[operation->graph]);
    case VERB_COUNT: break;
    }
    return cudaErrorInvalidValue;
}

static void perform(int index) {
    const struct operation *operation = &run.program->operations[index];
    if (operation->dropped || run.performed->problem[0] != '\0')
        return;
    if (operation->guard != NONE &&
        (run.performed->results[operation->guard] == 0) != operation->guard_success)
        return;
    call.index = index;
    call.operation = operation;
    // A default stream is the current device's, and a kernel's must be it.
    cudaError_t error = cudaSetDevice(operation_device(run.program, operation));
    sim_race_label(operation_label(index));
    if (error == cudaSuccess)
        error = make_call();
    sim_race_label(NULL);
    if (error != cudaSuccess)
        complain("%s (%s) returns %d", operation_label(index), verb_word(operation->verb),
                 (int)error);
}

// --- Threads ---

// Performs this thread's operations when their turn comes.
static void take_turns(int self) {
    pthread_mutex_lock(&run.lock);
    while (run.next < run.program->count) {
        if (run.program->operations[run.next].thread != self) {
            pthread_cond_wait(&run.changed, &run.lock);
            continue;
        }
        perform(run.next++);
        pthread_cond_broadcast(&run.changed);
    }
    pthread_mutex_unlock(&run.lock);
}

static void *second_thread(void *token) {
    sim_handoff_await(token); // all that was before the program
    take_turns(1);
    return NULL;
}

static void perform_all(void) {
    static char start;
    pthread_t thread;
    bool second = false;
    for (int i = 0; i < run.program->count; ++i)
        second = second || run.program->operations[i].thread == 1;
    run.next = 0;
    sim_handoff_signal(&start);
    if (second)
        BASE_CHECK_EQ(pthread_create(&thread, NULL, second_thread, &start), 0);
    take_turns(0);
    if (second)
        BASE_CHECK_EQ(pthread_join(thread, NULL), 0);
}

// --- Before and after ---

static void streams_create(void) {
    for (int i = 0; i < run.program->stream_count; ++i) {
        const struct stream *stream = &run.program->streams[i];
        run.streams[i] = stream->kind == LEGACY ? cudaStreamLegacy : cudaStreamPerThread;
        BASE_CHECK_EQ(cudaSetDevice(stream->device), cudaSuccess);
        if (stream->kind == BLOCKING || stream->kind == NON_BLOCKING)
            BASE_CHECK_EQ(cudaStreamCreateWithFlags(&run.streams[i], stream->kind == BLOCKING
                                                                         ? cudaStreamDefault
                                                                         : cudaStreamNonBlocking),
                          cudaSuccess);
    }
    for (int i = 0; i < run.program->event_count; ++i) {
        BASE_CHECK_EQ(cudaSetDevice(run.program->event_devices[i]), cudaSuccess);
        BASE_CHECK_EQ(cudaEventCreateWithFlags(&run.events[i], cudaEventDisableTiming),
                      cudaSuccess);
    }
}

static void buffer_create(int index) {
    const struct buffer *buffer = &run.program->buffers[index];
    const size_t size = bytes_of(buffer->size);
    void *pointer = run.pageable + (size_t)index * bytes_of(CELLS);
    if (buffer->place == ON_DEVICE) {
        BASE_CHECK_EQ(cudaSetDevice(buffer->device), cudaSuccess);
        BASE_CHECK_EQ(cudaMalloc(&pointer, size), cudaSuccess);
    } else if (buffer->place == PINNED) {
        BASE_CHECK_EQ(cudaHostAlloc(&pointer, size, cudaHostAllocDefault), cudaSuccess);
    }
    run.buffers[index] = pointer;
    if (!buffer->defined)
        return;
    if (buffer->place == ON_DEVICE)
        BASE_CHECK_EQ(cudaMemset(pointer, 1, size), cudaSuccess);
    else
        (void)sim_host_access(pointer, size, true);
}

static bool writes_values(const struct program *program) {
    for (int i = 0; i < program->count; ++i)
        if (program->operations[i].verb == WRITE_VALUE)
            return true;
    return false;
}

static void machine_start(void) {
    const bool bytes = !run.performance->without_bytes || writes_values(run.program);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){
                      .device_count = run.program->device_count,
                      .capacity_bytes = 256 * BASE_MIB,
                      .numerics = bytes ? SIM_NUMERICS_ON : SIM_NUMERICS_OFF,
                  }),
                  BASE_OK);
    BASE_CHECK_EQ(sim_schedule(run.performance->schedule), BASE_OK);
    BASE_CHECK_EQ(sim_reading("threads", run.program->threads_strict ? "strict" : "shared"),
                  BASE_OK);
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    run.pageable = calloc(BUFFERS_MAX, bytes_of(CELLS));
    BASE_CHECK(run.pageable != NULL);
    void *counters;
    BASE_CHECK_EQ(
        cudaHostAlloc(&counters, STREAMS_MAX * sizeof *run.counters, cudaHostAllocDefault),
        cudaSuccess);
    run.counters = counters;
    memset(counters, 0, STREAMS_MAX * sizeof *run.counters);
    for (int i = 0; run.performance->late && i < STEPS_BEFORE; ++i)
        (void)sim_host_access(counters, 1, true);
    streams_create();
    for (int i = 0; i < run.program->buffer_count; ++i)
        if (!run.program->buffers[i].allocated)
            buffer_create(i);
    for (int device = run.program->device_count - 1; device >= 0; --device) {
        BASE_CHECK_EQ(cudaSetDevice(device), cudaSuccess);
        BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
}

static void machine_settle(void) {
    for (int device = run.program->device_count - 1; device >= 0; --device)
        if (cudaSetDevice(device) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess)
            complain("at the end: %s", cudaGetErrorName(cudaGetLastError()));
    sim_race_stop();
    free(run.pageable);
}

// --- Reports ---

// NONE: no label. False if the label is none of the program's.
static bool label_read(const char *label, int *operation) {
    *operation = NONE;
    if (label[0] == '\0')
        return true;
    char *end;
    if (label[0] != 'O')
        return false;
    *operation = (int)strtol(label + 1, &end, 10);
    return *end == '\0' && end != label + 1;
}

static bool kind_read(const struct sim_race_report *report, enum pair_kind *kind) {
    if (report->rule == SIM_RACE_GRAPH_MEMORY) {
        *kind = PAIR_GRAPH_MEMORY;
        return true;
    }
    for (*kind = 0; *kind < PAIR_KIND_COUNT; ++*kind)
        if (strcmp(pair_kind_name(*kind), report->kind) == 0)
            return true;
    return false;
}

static void report_take(const struct sim_race_report *report) {
    struct performed *performed = run.performed;
    struct pair pair;
    if (performed->text[0] == '\0')
        snprintf(performed->text, sizeof performed->text, "%s", report->text);
    if (!kind_read(report, &pair.kind) || !label_read(report->first.label, &pair.first.operation) ||
        !label_read(report->first.node, &pair.first.node) ||
        !label_read(report->second.label, &pair.second.operation) ||
        !label_read(report->second.node, &pair.second.node) ||
        (pair.first.operation == NONE && pair.second.operation == NONE)) {
        complain("a report that is none of the program's: %s", report->text);
        return;
    }
    if (performed->pair_count < PAIRS_MAX)
        performed->pairs[performed->pair_count++] = pair;
}

void program_perform(const struct program *program, const struct performance *performance,
                     struct performed *performed) {
    run.program = program;
    run.performance = performance;
    run.performed = performed;
    memset(performed->results, 0, sizeof performed->results);
    performed->pair_count = 0;
    performed->problem[0] = performed->text[0] = '\0';
    machine_start();
    perform_all();
    machine_settle();
    for (uint64_t i = 0; sim_race_report_at(i) != NULL; ++i)
        report_take(sim_race_report_at(i));
}
