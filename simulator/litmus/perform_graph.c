// Calls of stream capture and of graphs.
#include "simulator/litmus/player.h"

// A value that is no capture mode.
#define BAD_MODE 7

// --- Capture ---

static enum cudaStreamCaptureMode mode(const struct litmus_call *call) {
    static const enum cudaStreamCaptureMode modes[] = {
        [LITMUS_MODE_GLOBAL] = cudaStreamCaptureModeGlobal,
        [LITMUS_MODE_THREAD] = cudaStreamCaptureModeThreadLocal,
        [LITMUS_MODE_RELAXED] = cudaStreamCaptureModeRelaxed,
        [LITMUS_MODE_BAD] = (enum cudaStreamCaptureMode)BAD_MODE,
    };
    return modes[call->operation->mode];
}

cudaError_t litmus__begin(const struct litmus_call *call) {
    return cudaStreamBeginCapture(call->stream, mode(call));
}

cudaError_t litmus__end(const struct litmus_call *call) {
    cudaGraph_t graph = NULL;
    call->player->graph_captures[call->operation->graph] = litmus__capture(call);
    const cudaError_t error = cudaStreamEndCapture(call->stream, &graph);
    call->player->graphs[call->operation->graph] = graph;
    return error;
}

cudaError_t litmus__exchange(const struct litmus_call *call) {
    enum cudaStreamCaptureMode wanted = mode(call);
    return cudaThreadExchangeStreamCaptureMode(&wanted);
}

cudaError_t litmus__status(const struct litmus_call *call) {
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t error = cudaStreamIsCapturing(call->stream, &status);
    call->player->result->observed[call->index][0] = (int16_t)status;
    return error;
}

unsigned long long litmus__capture(const struct litmus_call *call) {
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    if (call->player->current->graph_count == 0 ||
        cudaStreamGetCaptureInfo(call->stream, &status, &id, NULL, NULL, NULL, NULL) !=
            cudaSuccess ||
        status != cudaStreamCaptureStatusActive)
        return 0;
    return id;
}

// The legacy stream captures nothing.
static bool is_captured(const struct litmus_player *player, int stream) {
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const enum litmus_stream_kind kind = player->current->streams[stream].kind;
    return kind != LITMUS_STREAM_LEGACY &&
           (kind == LITMUS_STREAM_PER_THREAD || !player->stream_destroyed[stream]) &&
           cudaStreamIsCapturing(player->streams[stream], &status) == cudaSuccess &&
           status != cudaStreamCaptureStatusNone;
}

bool litmus__captures_end(const struct litmus_player *player) {
    const struct litmus_case *current = player->current;
    for (int i = 0; i < current->stream_count; ++i) {
        cudaGraph_t graph;
        if (is_captured(player, i) &&
            cudaStreamEndCapture(player->streams[i], &graph) == cudaSuccess)
            (void)cudaGraphDestroy(graph);
    }
    for (int i = 0; i < current->stream_count; ++i)
        if (is_captured(player, i))
            return false;
    return true;
}

// --- Graphs ---

cudaError_t litmus__graph_create(const struct litmus_call *call) {
    call->player->graph_captures[call->operation->graph] = 0;
    return cudaGraphCreate(&call->player->graphs[call->operation->graph], 0);
}

cudaError_t litmus__add_kernel(const struct litmus_call *call) {
    const struct litmus_operation *operation = call->operation;
    struct litmus_player *player = call->player;
    cudaGraphNode_t dependencies[LITMUS_OPERATION_COUNT_MAX];
    struct litmus_launch launch;
    for (int i = 0; i < operation->dependency_count; ++i)
        dependencies[i] = player->nodes[operation->dependencies[i]];
    litmus__launch_prepare(call, &launch);
    return sim_graph_add_kernel(&player->nodes[call->index], player->graphs[operation->graph],
                                dependencies, (size_t)operation->dependency_count, &launch.kernel);
}

cudaError_t litmus__instantiate(const struct litmus_call *call) {
    cudaGraphExec_t exec;
    const cudaError_t error =
        cudaGraphInstantiate(&exec, call->player->graphs[call->operation->graph], 0);
    if (error != cudaSuccess)
        return error;
    call->player->execs[call->operation->exec] = exec;
    call->player->exec_captures[call->operation->exec] =
        call->player->graph_captures[call->operation->graph];
    return cudaSuccess;
}

// What the launch of an executable of CAPTURE allocates is there from now on, what it frees is not.
static void replay_memory(struct litmus_player *player, unsigned long long capture) {
    for (int i = 0; capture != 0 && i < player->current->operation_count; ++i) {
        const struct litmus_operation *operation = &player->current->operations[i];
        if (player->operation_captures[i] == capture)
            player->live[operation->buffer] = operation->verb == LITMUS_VERB_ALLOC_ASYNC;
    }
}

cudaError_t litmus__launch(const struct litmus_call *call) {
    struct litmus_player *player = call->player;
    const int exec = call->operation->exec;
    const cudaError_t error = cudaGraphLaunch(player->execs[exec], call->stream);
    if (error == cudaSuccess)
        replay_memory(player, player->exec_captures[exec]);
    return error;
}

// A handle that is gone is not used again; one whose destruction was refused stays.
cudaError_t litmus__exec_destroy(const struct litmus_call *call) {
    cudaGraphExec_t *exec = &call->player->execs[call->operation->exec];
    const cudaError_t error = cudaGraphExecDestroy(*exec);
    if (error == cudaSuccess)
        *exec = NULL;
    return error;
}

cudaError_t litmus__graph_destroy(const struct litmus_call *call) {
    cudaGraph_t *graph = &call->player->graphs[call->operation->graph];
    const cudaError_t error = cudaGraphDestroy(*graph);
    if (error == cudaSuccess)
        *graph = NULL;
    return error;
}

void litmus__graphs_destroy(struct litmus_player *player) {
    for (int i = 0; i < player->current->exec_count; ++i) {
        if (player->execs[i] != NULL)
            BASE_CHECK_EQ(cudaGraphExecDestroy(player->execs[i]), cudaSuccess);
        player->execs[i] = NULL;
    }
    for (int i = 0; i < player->current->graph_count; ++i) {
        if (player->graphs[i] != NULL)
            BASE_CHECK_EQ(cudaGraphDestroy(player->graphs[i]), cudaSuccess);
        player->graphs[i] = NULL;
    }
}
