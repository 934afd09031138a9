// One operation of a case as a CUDA call.
#include "simulator/litmus/player.h"

#include <cuda.h>

#include <string.h>

// --- What kernels and host functions do ---

// Where a part of a step's bytes can be touched now; NULL if its memory is gone.
static unsigned char *touchable(const struct litmus_player *player,
                                const struct litmus_bytes *bytes, unsigned char *address) {
    if (player->current->buffers[bytes->buffer].memory == LITMUS_MEMORY_DEVICE)
        return sim_device_bytes(address);
    return player->live[bytes->buffer] ? address : NULL;
}

static void step_run(const struct litmus_player *player, const struct litmus_step *step,
                     unsigned char *const addresses[3]) {
    if (step->kind == LITMUS_STEP_READ)
        return;
    unsigned char *to = touchable(player, &step->to, addresses[0]), *from[2] = {0};
    const int source_count = step->kind == LITMUS_STEP_SUM   ? 2
                             : step->kind == LITMUS_STEP_ADD ? 1
                                                             : 0;
    for (int i = 0; i < source_count; ++i)
        from[i] = touchable(player, &step->from[i], addresses[1 + i]);
    if (to == NULL || (source_count > 0 && from[0] == NULL) ||
        (source_count > 1 && from[1] == NULL))
        return;
    // All is read before anything is written: source and destination may be the same bytes.
    unsigned char values[LITMUS_BYTE_COUNT_MAX];
    const int count = litmus_bytes_count(&step->to);
    for (int i = 0; i < count; ++i) {
        int value = step->value;
        for (int k = 0; k < source_count; ++k)
            value += from[k][litmus_bytes_at(&step->from[k], i)];
        if (step->kind == LITMUS_STEP_ATOMIC)
            value += to[litmus_bytes_at(&step->to, i)];
        values[i] = (unsigned char)value;
    }
    for (int i = 0; i < count; ++i)
        to[litmus_bytes_at(&step->to, i)] = values[i];
}

static void work_run(const void *argument) {
    const struct litmus_work *work = argument;
    for (int i = 0; i < work->effect->step_count; ++i)
        step_run(work->player, &work->effect->steps[i], work->addresses[i]);
}

static void work_run_on_host(void *argument) { work_run(argument); }

static struct litmus_work work_prepare(const struct litmus_player *player,
                                       const struct litmus_operation *operation) {
    struct litmus_work work = {.player = player, .effect = &operation->effect};
    for (int i = 0; i < operation->effect.step_count; ++i) {
        const struct litmus_step *step = &operation->effect.steps[i];
        work.addresses[i][0] = player->addresses[step->to.buffer];
        work.addresses[i][1] = player->addresses[step->from[0].buffer];
        work.addresses[i][2] = player->addresses[step->from[1].buffer];
    }
    return work;
}

// --- Verbs ---

// Everything that the functions below need, so that each is a line or two.
struct call {
    struct litmus_player *player;
    const struct litmus_operation *operation;
    int index;
    cudaStream_t stream;
    cudaEvent_t events[2];
    unsigned char *bytes[2]; // the first of each
};

static cudaError_t kernel(const struct call *call) {
    const struct litmus_work work = work_prepare(call->player, call->operation);
    return sim_launch(call->stream, call->operation->label, work_run, &work, sizeof work);
}

static cudaError_t host_function(const struct call *call) {
    struct litmus_work *work = &call->player->work[call->index];
    *work = work_prepare(call->player, call->operation);
    return cudaLaunchHostFunc(call->stream, work_run_on_host, work);
}

static size_t length(const struct call *call) { return (size_t)call->operation->bytes[0].length; }

static size_t rows(const struct call *call) { return (size_t)call->operation->bytes[0].rows; }

static size_t pitch(const struct call *call, int index) {
    return (size_t)call->operation->bytes[index].stride;
}

static int device_of(const struct call *call, int index) {
    return call->player->current->buffers[call->operation->bytes[index].buffer].device;
}

// The plain forms are work of the legacy stream, or of the thread's own for programs that are built
// so: the stream says which form the case means.
static bool is_per_thread(const struct call *call) { return call->stream == cudaStreamPerThread; }

static cudaError_t copy(const struct call *call) {
    return (is_per_thread(call) ? cudaMemcpy_ptds : cudaMemcpy)(call->bytes[0], call->bytes[1],
                                                                length(call), cudaMemcpyDefault);
}

static cudaError_t copy_2d(const struct call *call) {
    return (is_per_thread(call) ? cudaMemcpy2D_ptds : cudaMemcpy2D)(
        call->bytes[0], pitch(call, 0), call->bytes[1], pitch(call, 1), length(call), rows(call),
        cudaMemcpyDefault);
}

static cudaError_t copy_async(const struct call *call) {
    return cudaMemcpyAsync(call->bytes[0], call->bytes[1], length(call), cudaMemcpyDefault,
                           call->stream);
}

static cudaError_t copy_2d_async(const struct call *call) {
    return cudaMemcpy2DAsync(call->bytes[0], pitch(call, 0), call->bytes[1], pitch(call, 1),
                             length(call), rows(call), cudaMemcpyDefault, call->stream);
}

static cudaError_t copy_peer(const struct call *call) {
    return cudaMemcpyPeer(call->bytes[0], device_of(call, 0), call->bytes[1], device_of(call, 1),
                          length(call));
}

static cudaError_t copy_peer_async(const struct call *call) {
    return cudaMemcpyPeerAsync(call->bytes[0], device_of(call, 0), call->bytes[1],
                               device_of(call, 1), length(call), call->stream);
}

static cudaError_t fill(const struct call *call) {
    return (is_per_thread(call) ? cudaMemset_ptds : cudaMemset)(
        call->bytes[0], call->operation->numbers[0], length(call));
}

static cudaError_t fill_2d(const struct call *call) {
    return (is_per_thread(call) ? cudaMemset2D_ptds : cudaMemset2D)(
        call->bytes[0], pitch(call, 0), call->operation->numbers[0], length(call), rows(call));
}

static cudaError_t fill_async(const struct call *call) {
    return cudaMemsetAsync(call->bytes[0], call->operation->numbers[0], length(call),
                           call->stream);
}

static cudaError_t fill_2d_async(const struct call *call) {
    return cudaMemset2DAsync(call->bytes[0], pitch(call, 0), call->operation->numbers[0],
                             length(call), rows(call), call->stream);
}

static cudaError_t record(const struct call *call) {
    return cudaEventRecord(call->events[0], call->stream);
}

static cudaError_t wait(const struct call *call) {
    return cudaStreamWaitEvent(call->stream, call->events[0], 0);
}

static cudaError_t event_synchronize(const struct call *call) {
    return cudaEventSynchronize(call->events[0]);
}

static cudaError_t event_query(const struct call *call) { return cudaEventQuery(call->events[0]); }

static cudaError_t stream_query(const struct call *call) { return cudaStreamQuery(call->stream); }

// A loop until success, as programs write it.
static cudaError_t poll(const struct call *call, cudaError_t (*query)(const struct call *call)) {
    for (int i = 0; i < LITMUS_POLL_COUNT_MAX; ++i) {
        const cudaError_t error = query(call);
        if (error != cudaErrorNotReady)
            return error;
        litmus__advance_held(call->player);
    }
    call->player->result->never_succeeded = call->index;
    return cudaErrorNotReady;
}

static cudaError_t event_poll(const struct call *call) { return poll(call, event_query); }

static cudaError_t stream_poll(const struct call *call) { return poll(call, stream_query); }

static cudaError_t event_create(const struct call *call) {
    const int event = call->operation->events[0];
    call->player->event_destroyed[event] = false;
    return cudaEventCreate(&call->player->events[event]);
}

static cudaError_t event_destroy(const struct call *call) {
    call->player->event_destroyed[call->operation->events[0]] = true;
    return cudaEventDestroy(call->events[0]);
}

static cudaError_t elapsed(const struct call *call) {
    float milliseconds;
    return cudaEventElapsedTime(&milliseconds, call->events[0], call->events[1]);
}

static cudaError_t stream_synchronize(const struct call *call) {
    return cudaStreamSynchronize(call->stream);
}

static cudaError_t stream_destroy(const struct call *call) {
    call->player->stream_destroyed[call->operation->stream] = true;
    return cudaStreamDestroy(call->stream);
}

static cudaError_t device_synchronize(const struct call *call) {
    (void)call; // the device was made current
    return cudaDeviceSynchronize();
}

static cudaError_t set_device(const struct call *call) {
    const int device = call->operation->numbers[0];
    call->player->device[call->operation->thread] = device;
    return cudaSetDevice(device);
}

static cudaError_t host_write(const struct call *call) {
    const struct litmus_bytes *bytes = &call->operation->bytes[0];
    unsigned char *address = call->player->addresses[bytes->buffer];
    for (int i = 0; i < litmus_bytes_count(bytes); ++i)
        address[litmus_bytes_at(bytes, i)] = (unsigned char)call->operation->numbers[0];
    return cudaSuccess;
}

static cudaError_t host_read(const struct call *call) {
    const struct litmus_bytes *bytes = &call->operation->bytes[0];
    const unsigned char *address = call->player->addresses[bytes->buffer];
    for (int i = 0; i < litmus_bytes_count(bytes); ++i)
        call->player->result->observed[call->index][i] = address[litmus_bytes_at(bytes, i)];
    return cudaSuccess;
}

// Hand-offs between threads are the order of submission itself; blocks are notes of an allocator.
static cudaError_t nothing(const struct call *call) {
    (void)call;
    return cudaSuccess;
}

static cudaError_t allocated(const struct call *call, cudaError_t error, void *pointer) {
    if (error == cudaSuccess) {
        call->player->addresses[call->operation->buffer] = pointer;
        call->player->live[call->operation->buffer] = true;
    }
    return error;
}

static cudaError_t alloc(const struct call *call) {
    void *pointer;
    const cudaError_t error = cudaMalloc(&pointer, (size_t)call->operation->numbers[0]);
    return allocated(call, error, pointer);
}

static cudaError_t host_alloc(const struct call *call) {
    void *pointer;
    const cudaError_t error =
        cudaHostAlloc(&pointer, (size_t)call->operation->numbers[0], cudaHostAllocDefault);
    return allocated(call, error, pointer);
}

static cudaError_t alloc_async(const struct call *call) {
    void *pointer;
    const cudaError_t error =
        cudaMallocAsync(&pointer, (size_t)call->operation->numbers[0], call->stream);
    return allocated(call, error, pointer);
}

static cudaError_t freed(const struct call *call, cudaError_t error) {
    if (error == cudaSuccess)
        call->player->live[call->operation->buffer] = false;
    return error;
}

static cudaError_t free_device(const struct call *call) {
    return freed(call, cudaFree(call->player->addresses[call->operation->buffer]));
}

// The memory is gone from the start of the call on or from its end on: work that runs within the
// call still finds it, as a cudaFreeHost that waits promises.
static cudaError_t free_host(const struct call *call) {
    return freed(call, cudaFreeHost(call->player->addresses[call->operation->buffer]));
}

static cudaError_t free_async(const struct call *call) {
    return freed(call, cudaFreeAsync(call->player->addresses[call->operation->buffer],
                                     call->stream));
}

static cudaError_t write_value(const struct call *call) {
    return (cudaError_t)cuStreamWriteValue32(
        call->stream, (CUdeviceptr)(uintptr_t)&call->player->timelines[call->operation->timeline],
        (cuuint32_t)call->operation->numbers[0], 0);
}

// The host watches memory, and asks nothing of CUDA.
static cudaError_t value_poll(const struct call *call) {
    const volatile uint32_t *value = &call->player->timelines[call->operation->timeline];
    for (int i = 0; i < LITMUS_POLL_COUNT_MAX; ++i) {
        if (*value >= (uint32_t)call->operation->numbers[0])
            return cudaSuccess;
        sim_progress();
        litmus__advance_held(call->player);
    }
    call->player->result->never_succeeded = call->index;
    return cudaErrorNotReady;
}

static cudaError_t (*const verbs[LITMUS_VERB_COUNT])(const struct call *call) = {
    [LITMUS_VERB_KERNEL] = kernel,
    [LITMUS_VERB_HOST_FUNCTION] = host_function,
    [LITMUS_VERB_COPY] = copy,
    [LITMUS_VERB_COPY_2D] = copy_2d,
    [LITMUS_VERB_COPY_ASYNC] = copy_async,
    [LITMUS_VERB_COPY_2D_ASYNC] = copy_2d_async,
    [LITMUS_VERB_COPY_PEER] = copy_peer,
    [LITMUS_VERB_COPY_PEER_ASYNC] = copy_peer_async,
    [LITMUS_VERB_FILL] = fill,
    [LITMUS_VERB_FILL_2D] = fill_2d,
    [LITMUS_VERB_FILL_ASYNC] = fill_async,
    [LITMUS_VERB_FILL_2D_ASYNC] = fill_2d_async,
    [LITMUS_VERB_RECORD] = record,
    [LITMUS_VERB_WAIT] = wait,
    [LITMUS_VERB_EVENT_SYNCHRONIZE] = event_synchronize,
    [LITMUS_VERB_EVENT_QUERY] = event_query,
    [LITMUS_VERB_EVENT_POLL] = event_poll,
    [LITMUS_VERB_EVENT_CREATE] = event_create,
    [LITMUS_VERB_EVENT_DESTROY] = event_destroy,
    [LITMUS_VERB_ELAPSED] = elapsed,
    [LITMUS_VERB_STREAM_SYNCHRONIZE] = stream_synchronize,
    [LITMUS_VERB_STREAM_QUERY] = stream_query,
    [LITMUS_VERB_STREAM_POLL] = stream_poll,
    [LITMUS_VERB_STREAM_DESTROY] = stream_destroy,
    [LITMUS_VERB_DEVICE_SYNCHRONIZE] = device_synchronize,
    [LITMUS_VERB_SET_DEVICE] = set_device,
    [LITMUS_VERB_HOST_WRITE] = host_write,
    [LITMUS_VERB_HOST_READ] = host_read,
    [LITMUS_VERB_SIGNAL] = nothing,
    [LITMUS_VERB_AWAIT] = nothing,
    [LITMUS_VERB_ALLOC] = alloc,
    [LITMUS_VERB_FREE] = free_device,
    [LITMUS_VERB_HOST_ALLOC] = host_alloc,
    [LITMUS_VERB_HOST_FREE] = free_host,
    [LITMUS_VERB_ALLOC_ASYNC] = alloc_async,
    [LITMUS_VERB_FREE_ASYNC] = free_async,
    [LITMUS_VERB_TAKE] = nothing,
    [LITMUS_VERB_USE] = nothing,
    [LITMUS_VERB_GIVE] = nothing,
    [LITMUS_VERB_WRITE_VALUE] = write_value,
    [LITMUS_VERB_VALUE_POLL] = value_poll,
};

// --- Around the call ---

// The device that must be current for the call, -1 if it does not matter. A default stream is named
// by a number that means the current device's, so the others' need theirs; but a kernel wants the
// right device made current by the case.
static int device_wanted(const struct litmus_case *current,
                         const struct litmus_operation *operation) {
    switch (operation->verb) {
    case LITMUS_VERB_DEVICE_SYNCHRONIZE:
    case LITMUS_VERB_EVENT_CREATE: return operation->numbers[0];
    case LITMUS_VERB_ALLOC: return operation->numbers[1];
    case LITMUS_VERB_KERNEL:
    case LITMUS_VERB_SET_DEVICE: return -1;
    default: break;
    }
    if (!litmus_verb_takes_stream(operation->verb))
        return -1;
    const struct litmus_stream *stream = &current->streams[operation->stream];
    const bool is_default =
        stream->kind == LITMUS_STREAM_LEGACY || stream->kind == LITMUS_STREAM_PER_THREAD;
    return is_default ? stream->device : -1;
}

bool litmus_verb_queries(enum litmus_verb verb) {
    return verb == LITMUS_VERB_EVENT_QUERY || verb == LITMUS_VERB_STREAM_QUERY ||
           verb == LITMUS_VERB_ELAPSED;
}

bool litmus_verb_observes(enum litmus_verb verb) {
    return verb == LITMUS_VERB_HOST_READ || litmus_verb_queries(verb);
}

static bool is_kept_back(const struct litmus_player *player,
                         const struct litmus_operation *operation) {
    return operation->guard >= 0 &&
           (player->result->codes[operation->guard] == 0) != operation->guard_success;
}

void litmus__perform(struct litmus_player *player, int index) {
    const struct litmus_operation *operation = &player->current->operations[index];
    struct litmus_result *result = player->result;
    if (result->illegal_address || is_kept_back(player, operation))
        return;
    struct call call = {
        .player = player,
        .operation = operation,
        .index = index,
        .stream = player->streams[operation->stream],
        .events = {player->events[operation->events[0]], player->events[operation->events[1]]},
    };
    for (int i = 0; i < 2; ++i)
        if (player->addresses[operation->bytes[i].buffer] != NULL)
            call.bytes[i] =
                player->addresses[operation->bytes[i].buffer] + operation->bytes[i].offset;
    const int current = player->device[operation->thread];
    const int wanted = device_wanted(player->current, operation);
    const bool elsewhere = wanted >= 0 && wanted != current;
    result->performed[index] = true;
    result->codes[index] = elsewhere ? (int)cudaSetDevice(wanted) : 0;
    if (result->codes[index] == 0)
        result->codes[index] = (int)verbs[operation->verb](&call);
    if (litmus_verb_queries(operation->verb))
        result->observed[index][0] = (int16_t)result->codes[index];
    if (elsewhere)
        (void)cudaSetDevice(current);
    if (result->codes[index] == cudaErrorIllegalAddress)
        result->illegal_address = true;
    else
        litmus__advance_held(player);
}
