// One operation of a case as a CUDA call, and what the race checker must be told of it. Calls of
// capture and of graphs: perform_graph.c.
#include "simulator/litmus/player.h"

#include <cuda.h>

#include <string.h>

// --- Verbs ---

static cudaError_t kernel(const struct litmus_call *call) {
    struct litmus_launch launch;
    litmus__launch_prepare(call, &launch);
    return sim_launch_kernel(call->stream, &launch.kernel);
}

static cudaError_t host_function(const struct litmus_call *call) {
    struct litmus_work *work = &call->player->work[call->index];
    struct sim_access accesses[LITMUS_ACCESS_COUNT_MAX];
    litmus__work_prepare(call, work);
    if (call->player->races)
        sim_next_accesses(accesses, litmus__accesses(call, accesses));
    return cudaLaunchHostFunc(call->stream, litmus__work_run_on_host, work);
}

static size_t length(const struct litmus_call *call) {
    return (size_t)call->operation->bytes[0].length;
}

static size_t rows(const struct litmus_call *call) {
    return (size_t)call->operation->bytes[0].rows;
}

static size_t pitch(const struct litmus_call *call, int index) {
    return (size_t)call->operation->bytes[index].stride;
}

static int device_of(const struct litmus_call *call, int index) {
    return call->player->current->buffers[call->operation->bytes[index].buffer].device;
}

// The plain forms are work of the legacy stream, or of the thread's own for programs that are built
// so: the stream says which form the case means.
static bool is_per_thread(const struct litmus_call *call) {
    return call->stream == cudaStreamPerThread;
}

static cudaError_t copy(const struct litmus_call *call) {
    return (is_per_thread(call) ? cudaMemcpy_ptds : cudaMemcpy)(call->bytes[0], call->bytes[1],
                                                                length(call), cudaMemcpyDefault);
}

static cudaError_t copy_2d(const struct litmus_call *call) {
    return (is_per_thread(call) ? cudaMemcpy2D_ptds : cudaMemcpy2D)(
        call->bytes[0], pitch(call, 0), call->bytes[1], pitch(call, 1), length(call), rows(call),
        cudaMemcpyDefault);
}

static cudaError_t copy_async(const struct litmus_call *call) {
    return cudaMemcpyAsync(call->bytes[0], call->bytes[1], length(call), cudaMemcpyDefault,
                           call->stream);
}

static cudaError_t copy_2d_async(const struct litmus_call *call) {
    return cudaMemcpy2DAsync(call->bytes[0], pitch(call, 0), call->bytes[1], pitch(call, 1),
                             length(call), rows(call), cudaMemcpyDefault, call->stream);
}

static cudaError_t copy_peer(const struct litmus_call *call) {
    return cudaMemcpyPeer(call->bytes[0], device_of(call, 0), call->bytes[1], device_of(call, 1),
                          length(call));
}

static cudaError_t copy_peer_async(const struct litmus_call *call) {
    return cudaMemcpyPeerAsync(call->bytes[0], device_of(call, 0), call->bytes[1],
                               device_of(call, 1), length(call), call->stream);
}

static cudaError_t fill(const struct litmus_call *call) {
    return (is_per_thread(call) ? cudaMemset_ptds : cudaMemset)(
        call->bytes[0], call->operation->numbers[0], length(call));
}

static cudaError_t fill_2d(const struct litmus_call *call) {
    return (is_per_thread(call) ? cudaMemset2D_ptds : cudaMemset2D)(
        call->bytes[0], pitch(call, 0), call->operation->numbers[0], length(call), rows(call));
}

static cudaError_t fill_async(const struct litmus_call *call) {
    return cudaMemsetAsync(call->bytes[0], call->operation->numbers[0], length(call),
                           call->stream);
}

static cudaError_t fill_2d_async(const struct litmus_call *call) {
    return cudaMemset2DAsync(call->bytes[0], pitch(call, 0), call->operation->numbers[0],
                             length(call), rows(call), call->stream);
}

static cudaError_t record(const struct litmus_call *call) {
    return cudaEventRecord(call->events[0], call->stream);
}

static cudaError_t wait(const struct litmus_call *call) {
    return cudaStreamWaitEvent(call->stream, call->events[0], 0);
}

static cudaError_t event_synchronize(const struct litmus_call *call) {
    return cudaEventSynchronize(call->events[0]);
}

static cudaError_t event_query(const struct litmus_call *call) {
    return cudaEventQuery(call->events[0]);
}

static cudaError_t stream_query(const struct litmus_call *call) {
    return cudaStreamQuery(call->stream);
}

// A loop until success, as programs write it.
static cudaError_t poll(const struct litmus_call *call,
                        cudaError_t (*query)(const struct litmus_call *call)) {
    for (int i = 0; i < LITMUS_POLL_COUNT_MAX; ++i) {
        const cudaError_t error = query(call);
        if (error != cudaErrorNotReady)
            return error;
        litmus__advance_held(call->player);
    }
    call->player->result->never_succeeded = call->index;
    return cudaErrorNotReady;
}

static cudaError_t event_poll(const struct litmus_call *call) { return poll(call, event_query); }

static cudaError_t stream_poll(const struct litmus_call *call) { return poll(call, stream_query); }

static cudaError_t event_create(const struct litmus_call *call) {
    const int event = call->operation->events[0];
    call->player->event_destroyed[event] = false;
    return cudaEventCreate(&call->player->events[event]);
}

static cudaError_t event_destroy(const struct litmus_call *call) {
    call->player->event_destroyed[call->operation->events[0]] = true;
    return cudaEventDestroy(call->events[0]);
}

static cudaError_t elapsed(const struct litmus_call *call) {
    float milliseconds;
    return cudaEventElapsedTime(&milliseconds, call->events[0], call->events[1]);
}

static cudaError_t stream_synchronize(const struct litmus_call *call) {
    return cudaStreamSynchronize(call->stream);
}

static cudaError_t stream_destroy(const struct litmus_call *call) {
    call->player->stream_destroyed[call->operation->stream] = true;
    return cudaStreamDestroy(call->stream);
}

static cudaError_t device_synchronize(const struct litmus_call *call) {
    (void)call; // the device was made current
    return cudaDeviceSynchronize();
}

static cudaError_t set_device(const struct litmus_call *call) {
    const int device = call->operation->numbers[0];
    call->player->device[call->operation->thread] = device;
    return cudaSetDevice(device);
}

// The checker is told of each piece; what checked mode says of it is no matter here.
static void host_accesses(const struct litmus_call *call, bool write) {
    const struct litmus_bytes *bytes = &call->operation->bytes[0];
    for (int row = 0; call->player->races && row < bytes->rows; ++row)
        (void)sim_host_access(call->bytes[0] + row * bytes->stride, (size_t)bytes->length, write);
}

static cudaError_t host_write(const struct litmus_call *call) {
    const struct litmus_bytes *bytes = &call->operation->bytes[0];
    unsigned char *address = call->player->addresses[bytes->buffer];
    host_accesses(call, true);
    for (int i = 0; i < litmus_bytes_count(bytes); ++i)
        address[litmus_bytes_at(bytes, i)] = (unsigned char)call->operation->numbers[0];
    return cudaSuccess;
}

static cudaError_t host_read(const struct litmus_call *call) {
    const struct litmus_bytes *bytes = &call->operation->bytes[0];
    const unsigned char *address = call->player->addresses[bytes->buffer];
    host_accesses(call, false);
    for (int i = 0; i < litmus_bytes_count(bytes); ++i)
        call->player->result->observed[call->index][i] = address[litmus_bytes_at(bytes, i)];
    return cudaSuccess;
}

// Hand-offs between threads are the order of submission itself, which only the checker does not
// see. What names one is the first operation that does.
static const void *hand_off(const struct litmus_call *call) {
    const struct litmus_case *current = call->player->current;
    int first = 0;
    while (current->operations[first].word == NULL ||
           (current->operations[first].verb != LITMUS_VERB_SIGNAL &&
            current->operations[first].verb != LITMUS_VERB_AWAIT) ||
           strcmp(current->operations[first].word, call->operation->word) != 0)
        ++first;
    return &current->operations[first];
}

static cudaError_t signal(const struct litmus_call *call) {
    if (call->player->races)
        sim_handoff_signal(hand_off(call));
    return cudaSuccess;
}

static cudaError_t await(const struct litmus_call *call) {
    if (call->player->races)
        sim_handoff_await(hand_off(call));
    return cudaSuccess;
}

// Blocks are notes of an allocator, no calls.
static cudaError_t take(const struct litmus_call *call) {
    if (call->player->races)
        call->player->blocks[call->operation->block] =
            sim_block_take(call->bytes[0], length(call), call->stream, call->operation->word);
    return cudaSuccess;
}

static cudaError_t use(const struct litmus_call *call) {
    if (call->player->races)
        sim_block_use(call->player->blocks[call->operation->block], call->stream);
    return cudaSuccess;
}

static cudaError_t give(const struct litmus_call *call) {
    if (call->player->races)
        sim_block_give(call->player->blocks[call->operation->block]);
    return cudaSuccess;
}

static cudaError_t allocated(const struct litmus_call *call, cudaError_t error, void *pointer) {
    if (error == cudaSuccess) {
        call->player->addresses[call->operation->buffer] = pointer;
        call->player->live[call->operation->buffer] = true;
    }
    return error;
}

static cudaError_t alloc(const struct litmus_call *call) {
    void *pointer;
    const cudaError_t error = cudaMalloc(&pointer, (size_t)call->operation->numbers[0]);
    return allocated(call, error, pointer);
}

static cudaError_t host_alloc(const struct litmus_call *call) {
    void *pointer;
    const cudaError_t error =
        cudaHostAlloc(&pointer, (size_t)call->operation->numbers[0], cudaHostAllocDefault);
    return allocated(call, error, pointer);
}

// A captured call allocates nothing yet: each launch will.
static cudaError_t alloc_async(const struct litmus_call *call) {
    struct litmus_player *player = call->player;
    void *pointer;
    const unsigned long long capture = litmus__capture(call);
    const cudaError_t error =
        cudaMallocAsync(&pointer, (size_t)call->operation->numbers[0], call->stream);
    if (error != cudaSuccess || capture == 0)
        return allocated(call, error, pointer);
    player->addresses[call->operation->buffer] = pointer;
    player->operation_captures[call->index] = capture;
    return cudaSuccess;
}

static cudaError_t freed(const struct litmus_call *call, cudaError_t error) {
    if (error == cudaSuccess)
        call->player->live[call->operation->buffer] = false;
    return error;
}

static cudaError_t free_device(const struct litmus_call *call) {
    return freed(call, cudaFree(call->player->addresses[call->operation->buffer]));
}

// The memory is gone from the start of the call on or from its end on: work that runs within the
// call still finds it, as a cudaFreeHost that waits promises.
static cudaError_t free_host(const struct litmus_call *call) {
    return freed(call, cudaFreeHost(call->player->addresses[call->operation->buffer]));
}

static cudaError_t free_async(const struct litmus_call *call) {
    struct litmus_player *player = call->player;
    const unsigned long long capture = litmus__capture(call);
    const cudaError_t error =
        cudaFreeAsync(player->addresses[call->operation->buffer], call->stream);
    if (error != cudaSuccess || capture == 0)
        return freed(call, error);
    player->operation_captures[call->index] = capture;
    return cudaSuccess;
}

static cudaError_t write_value(const struct litmus_call *call) {
    return (cudaError_t)cuStreamWriteValue32(
        call->stream, (CUdeviceptr)(uintptr_t)&call->player->timelines[call->operation->timeline],
        (cuuint32_t)call->operation->numbers[0], 0);
}

// The host watches memory, and asks nothing of CUDA.
static cudaError_t value_poll(const struct litmus_call *call) {
    const volatile uint32_t *value = &call->player->timelines[call->operation->timeline];
    for (int i = 0; i < LITMUS_POLL_COUNT_MAX; ++i) {
        if (*value >= (uint32_t)call->operation->numbers[0]) {
            if (call->player->races)
                sim_value_seen((const void *)value, (uint64_t)call->operation->numbers[0]);
            return cudaSuccess;
        }
        sim_progress();
        litmus__advance_held(call->player);
    }
    call->player->result->never_succeeded = call->index;
    return cudaErrorNotReady;
}

static cudaError_t (*const verbs[LITMUS_VERB_COUNT])(const struct litmus_call *call) = {
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
    [LITMUS_VERB_SIGNAL] = signal,
    [LITMUS_VERB_AWAIT] = await,
    [LITMUS_VERB_ALLOC] = alloc,
    [LITMUS_VERB_FREE] = free_device,
    [LITMUS_VERB_HOST_ALLOC] = host_alloc,
    [LITMUS_VERB_HOST_FREE] = free_host,
    [LITMUS_VERB_ALLOC_ASYNC] = alloc_async,
    [LITMUS_VERB_FREE_ASYNC] = free_async,
    [LITMUS_VERB_TAKE] = take,
    [LITMUS_VERB_USE] = use,
    [LITMUS_VERB_GIVE] = give,
    [LITMUS_VERB_WRITE_VALUE] = write_value,
    [LITMUS_VERB_VALUE_POLL] = value_poll,
    [LITMUS_VERB_BEGIN] = litmus__begin,
    [LITMUS_VERB_END] = litmus__end,
    [LITMUS_VERB_EXCHANGE] = litmus__exchange,
    [LITMUS_VERB_STATUS] = litmus__status,
    [LITMUS_VERB_GRAPH_CREATE] = litmus__graph_create,
    [LITMUS_VERB_ADD_KERNEL] = litmus__add_kernel,
    [LITMUS_VERB_INSTANTIATE] = litmus__instantiate,
    [LITMUS_VERB_LAUNCH] = litmus__launch,
    [LITMUS_VERB_EXEC_DESTROY] = litmus__exec_destroy,
    [LITMUS_VERB_GRAPH_DESTROY] = litmus__graph_destroy,
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
    return verb == LITMUS_VERB_HOST_READ || verb == LITMUS_VERB_STATUS || litmus_verb_queries(verb);
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
    struct litmus_call call = {
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
    if (player->races)
        sim_race_label(operation->label);
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
