// See graph_fuzz_call.h. Each call is a function that draws its arguments; the table says which
// codes it may end with.
#include "simulator/graph_fuzz_call.h"

#include "base/check.h"
#include "base/thread.h"
#include "simulator/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POOL_SIZE 48
#define BUFFER_COUNT 4
#define BUFFER_BYTES 256
// Children and clones of children double a graph each time.
#define COPY_COUNT_MAX 8

static struct base_mutex lock = BASE_MUTEX_INITIALIZER;
// Guarded by lock.
static struct {
    void *handles[FUZZ_KIND_COUNT][POOL_SIZE];
    int counts[FUZZ_KIND_COUNT];
    int copy_count;
} shared;

static unsigned char *device_buffers[BUFFER_COUNT]; // device 0, 1, 0, 1
static unsigned char *pinned_buffers[BUFFER_COUNT];
static unsigned char pageable_buffers[BUFFER_COUNT][BUFFER_BYTES];

uint64_t fuzz_made[FUZZ_CALL_COUNT_MAX], fuzz_succeeded[FUZZ_CALL_COUNT_MAX];

// --- Drawing ---

static uint64_t below(struct fuzz_thread *t, uint64_t bound) {
    return base_random_below(&t->random, bound);
}

static bool chance(struct fuzz_thread *t, double probability) {
    return base_random_chance(&t->random, probability);
}

static void keep(struct fuzz_thread *t, enum fuzz_kind kind, void *handle) {
    base_mutex_lock(&lock);
    const int count = shared.counts[kind];
    if (count < POOL_SIZE)
        shared.handles[kind][shared.counts[kind]++] = handle;
    else
        shared.handles[kind][below(t, POOL_SIZE)] = handle; // the former one is lost
    base_mutex_unlock(&lock);
}

// Handles stay in their places when they are destroyed.
static void *one_of(struct fuzz_thread *t, enum fuzz_kind kind) {
    void *handle = NULL;
    base_mutex_lock(&lock);
    if (shared.counts[kind] > 0)
        handle = shared.handles[kind][below(t, (uint64_t)shared.counts[kind])];
    base_mutex_unlock(&lock);
    return handle;
}

static void *draw(struct fuzz_thread *t, enum fuzz_kind kind) {
    const uint64_t die = below(t, 100);
    if (die < 92)
        return one_of(t, kind);
    if (die < 95)
        return NULL;
    if (die < 98)
        return one_of(t, (enum fuzz_kind)below(t, FUZZ_KIND_COUNT));
    return (void *)(uintptr_t)(die == 98 ? 0x1234 : base_random_next(&t->random));
}

static cudaStream_t stream(struct fuzz_thread *t) {
    const uint64_t die = below(t, 40);
    if (die == 0)
        return cudaStreamLegacy;
    return die < 3 ? cudaStreamPerThread : (cudaStream_t)draw(t, FUZZ_STREAM);
}

static cudaEvent_t event(struct fuzz_thread *t) { return draw(t, FUZZ_EVENT); }
static cudaGraph_t graph(struct fuzz_thread *t) { return draw(t, FUZZ_GRAPH); }
static cudaGraphNode_t node(struct fuzz_thread *t) {
    cudaGraphNode_t first;
    size_t count = 1;
    if (chance(t, 0.5) && cudaGraphGetNodes(graph(t), &first, &count) == cudaSuccess && count == 1)
        return first;
    return draw(t, FUZZ_NODE);
}
static cudaGraphExec_t exec(struct fuzz_thread *t) { return draw(t, FUZZ_EXEC); }

// Mostly nodes of the same graph, else no edge would ever be made.
static size_t nodes(struct fuzz_thread *t, cudaGraph_t of, cudaGraphNode_t drawn[4]) {
    cudaGraphNode_t all[POOL_SIZE];
    size_t count = POOL_SIZE;
    const size_t wanted = below(t, 4);
    const bool known = cudaGraphGetNodes(of, all, &count) == cudaSuccess && count > 0;
    for (size_t i = 0; i < wanted; ++i)
        drawn[i] = known && chance(t, 0.95) ? all[below(t, count)] : node(t);
    return wanted;
}

static cudaGraphNode_t node_of(struct fuzz_thread *t, cudaGraph_t of) {
    cudaGraphNode_t drawn[4];
    return nodes(t, of, drawn) > 0 ? drawn[0] : node(t);
}

// A node of TYPE in GRAPH; else any.
static cudaGraphNode_t typed_of(struct fuzz_thread *t, cudaGraph_t of,
                                enum cudaGraphNodeType type) {
    cudaGraphNode_t all[POOL_SIZE];
    size_t count = POOL_SIZE;
    if (cudaGraphGetNodes(of, all, &count) != cudaSuccess)
        count = 0;
    const size_t first = count > 0 ? below(t, count) : 0;
    for (size_t i = 0; i < count; ++i) {
        enum cudaGraphNodeType found;
        cudaGraphNode_t at = all[(first + i) % count];
        if (cudaGraphNodeGetType(at, &found) == cudaSuccess && found == type)
            return at;
    }
    return node(t);
}

static cudaGraphNode_t typed(struct fuzz_thread *t, enum cudaGraphNodeType type) {
    return typed_of(t, graph(t), type);
}

// Mostly a node of the graph that the executable was made from: hardly any others would do.
static cudaGraphNode_t exec_node(struct fuzz_thread *t, enum cudaGraphNodeType type,
                                 cudaGraphExec_t *drawn) {
    cudaGraph_t of = graph(t);
    *drawn = exec(t);
    if (chance(t, 0.7) && cudaGraphInstantiate(drawn, of, 0) == cudaSuccess)
        keep(t, FUZZ_EXEC, *drawn);
    return typed_of(t, of, type);
}

static void *buffer(struct fuzz_thread *t) {
    const uint64_t at = below(t, BUFFER_COUNT);
    switch (below(t, 4)) {
    case 0: return pinned_buffers[at];
    case 1: return pageable_buffers[at];
    default: return device_buffers[at];
    }
}

static void *device_pointer(struct fuzz_thread *t) {
    return chance(t, 0.5) ? device_buffers[below(t, BUFFER_COUNT)] : draw(t, FUZZ_POINTER);
}

struct operands {
    void *to, *from;
    enum cudaMemcpyKind kind;
};

// An address that is none of a device's would be taken for pageable memory, as on a GPU, if the
// kind did not say what it is.
static struct operands operands(struct fuzz_thread *t) {
    if (chance(t, 0.2))
        return (struct operands){device_pointer(t), device_pointer(t), cudaMemcpyDeviceToDevice};
    return (struct operands){buffer(t), buffer(t),
                             (enum cudaMemcpyKind)(chance(t, 0.9) ? cudaMemcpyDefault
                                                                  : below(t, 7))};
}

static size_t size(struct fuzz_thread *t) { return below(t, BUFFER_BYTES); }

// For fills, which the device alone makes.
static void *target(struct fuzz_thread *t) {
    const uint64_t die = below(t, 100);
    if (die < 90)
        return device_buffers[below(t, BUFFER_COUNT)];
    return die < 95 ? pinned_buffers[below(t, BUFFER_COUNT)] : draw(t, FUZZ_POINTER);
}

static size_t fill_size(struct fuzz_thread *t) {
    return chance(t, 0.98) ? size(t) : base_random_next(&t->random);
}

static enum cudaStreamCaptureMode mode(struct fuzz_thread *t) {
    return (enum cudaStreamCaptureMode)below(t, chance(t, 0.02) ? 9 : 3);
}

static unsigned int flags(struct fuzz_thread *t) {
    return (unsigned)below(t, chance(t, 0.05) ? 64 : 2);
}

static bool copies_left(void) {
    base_mutex_lock(&lock);
    const bool left = shared.copy_count < COPY_COUNT_MAX;
    shared.copy_count += left;
    base_mutex_unlock(&lock);
    return left;
}

static void nothing(void *unused) { (void)unused; }
static void body(const void *unused) { (void)unused; }
static void told(cudaStream_t unused, cudaError_t status, void *argument) {
    (void)unused;
    (void)status;
    (void)argument;
}

// --- Streams, events, memory ---

#define CALL(name) static cudaError_t name(struct fuzz_thread *t)

CALL(stream_create) {
    cudaStream_t made = NULL;
    (void)cudaSetDevice((int)below(t, 2));
    const cudaError_t error = cudaStreamCreateWithFlags(&made, flags(t));
    if (error == cudaSuccess)
        keep(t, FUZZ_STREAM, made);
    return error;
}
CALL(stream_destroy) { return cudaStreamDestroy(stream(t)); }
CALL(stream_query) { return cudaStreamQuery(stream(t)); }
CALL(stream_synchronize) { return cudaStreamSynchronize(stream(t)); }
CALL(device_synchronize) {
    (void)cudaSetDevice((int)below(t, 2));
    return cudaDeviceSynchronize();
}
CALL(event_create) {
    cudaEvent_t made = NULL;
    (void)cudaSetDevice((int)below(t, 2));
    const cudaError_t error = cudaEventCreate(&made);
    if (error == cudaSuccess)
        keep(t, FUZZ_EVENT, made);
    return error;
}
CALL(event_destroy) { return cudaEventDestroy(event(t)); }
CALL(event_record) { return cudaEventRecord(event(t), stream(t)); }
CALL(event_record_flags) { return cudaEventRecordWithFlags(event(t), stream(t), flags(t)); }
CALL(event_query) { return cudaEventQuery(event(t)); }
CALL(event_synchronize) { return cudaEventSynchronize(event(t)); }
CALL(event_elapsed) {
    float milliseconds;
    return cudaEventElapsedTime(&milliseconds, event(t), event(t));
}
CALL(stream_wait) {
    return cudaStreamWaitEvent(stream(t), event(t), chance(t, 0.9) ? 0 : flags(t));
}
CALL(fill) { return cudaMemsetAsync(target(t), (int)below(t, 256), fill_size(t), stream(t)); }
CALL(copy) {
    const struct operands of = operands(t);
    return cudaMemcpyAsync(of.to, of.from, size(t), of.kind, stream(t));
}
CALL(fill_plain) { return cudaMemset(target(t), 1, fill_size(t)); }
CALL(copy_plain) {
    const struct operands of = operands(t);
    return cudaMemcpy(of.to, of.from, size(t), of.kind);
}
CALL(host_function) {
    return cudaLaunchHostFunc(stream(t), chance(t, 0.95) ? nothing : NULL, NULL);
}
CALL(callback) { return cudaStreamAddCallback(stream(t), told, NULL, 0); }
CALL(kernel) { return sim_launch(stream(t), "fuzz", body, NULL, 0); }
CALL(malloc_async) {
    void *made = NULL;
    const cudaError_t error = cudaMallocAsync(&made, 1 + size(t) % 4096, stream(t));
    if (error == cudaSuccess)
        keep(t, FUZZ_POINTER, made);
    return error;
}
CALL(free_async) { return cudaFreeAsync(draw(t, FUZZ_POINTER), stream(t)); }
CALL(malloc_plain) {
    void *made = NULL;
    const cudaError_t error = cudaMalloc(&made, 16);
    if (error == cudaSuccess)
        keep(t, FUZZ_POINTER, made);
    return error;
}
CALL(free_plain) { return cudaFree(draw(t, FUZZ_POINTER)); }

// --- Capture ---

CALL(begin) { return cudaStreamBeginCapture(stream(t), mode(t)); }
CALL(begin_to_graph) {
    cudaGraph_t to = graph(t);
    cudaGraphNode_t drawn[4];
    const size_t count = nodes(t, to, drawn);
    return cudaStreamBeginCaptureToGraph(stream(t), to, drawn, NULL, count, mode(t));
}
CALL(end) {
    cudaGraph_t ended = NULL;
    const cudaError_t error = cudaStreamEndCapture(stream(t), &ended);
    if (error == cudaSuccess)
        keep(t, FUZZ_GRAPH, ended);
    return error;
}
CALL(capture_info) {
    enum cudaStreamCaptureStatus status;
    unsigned long long id;
    const cudaGraphNode_t *tips = NULL;
    const cudaGraphEdgeData *data = NULL;
    cudaGraph_t captured = NULL;
    size_t count = 0;
    const cudaError_t error = cudaStreamGetCaptureInfo(
        stream(t), &status, &id, &captured, &tips, chance(t, 0.8) ? &data : NULL, &count);
    if (error == cudaSuccess && status == cudaStreamCaptureStatusActive && captured != NULL)
        keep(t, FUZZ_GRAPH, captured);
    return error;
}
CALL(is_capturing) {
    enum cudaStreamCaptureStatus status;
    return cudaStreamIsCapturing(stream(t), chance(t, 0.95) ? &status : NULL);
}
CALL(update_dependencies) {
    enum cudaStreamCaptureStatus status;
    cudaGraph_t captured = NULL;
    cudaStream_t of = stream(t);
    cudaGraphNode_t drawn[4];
    (void)cudaStreamGetCaptureInfo(of, &status, NULL, &captured, NULL, NULL, NULL);
    const size_t count = nodes(t, captured, drawn);
    return cudaStreamUpdateCaptureDependencies(of, drawn, NULL, count, flags(t));
}
CALL(exchange) {
    enum cudaStreamCaptureMode new = chance(t, 0.7) ? cudaStreamCaptureModeRelaxed : mode(t);
    return cudaThreadExchangeStreamCaptureMode(&new);
}

// --- Graphs ---

CALL(graph_create) {
    cudaGraph_t made = NULL;
    const cudaError_t error = cudaGraphCreate(&made, chance(t, 0.05));
    if (error == cudaSuccess)
        keep(t, FUZZ_GRAPH, made);
    return error;
}
CALL(graph_destroy) { return cudaGraphDestroy(graph(t)); }
CALL(graph_clone) {
    cudaGraph_t made = NULL;
    if (!copies_left())
        return cudaSuccess;
    const cudaError_t error = cudaGraphClone(&made, graph(t));
    if (error == cudaSuccess)
        keep(t, FUZZ_GRAPH, made);
    return error;
}
CALL(find_in_clone) {
    cudaGraph_t original = graph(t), clone = graph(t);
    cudaGraphNode_t found = NULL;
    if (chance(t, 0.5) && copies_left() && cudaGraphClone(&clone, original) == cudaSuccess)
        keep(t, FUZZ_GRAPH, clone);
    const cudaError_t error = cudaGraphNodeFindInClone(&found, node_of(t, original), clone);
    if (error == cudaSuccess)
        keep(t, FUZZ_NODE, found);
    return error;
}
CALL(node_destroy) { return cudaGraphDestroyNode(node(t)); }

static void edges(struct fuzz_thread *t, cudaGraph_t of, cudaGraphNode_t from[4],
                  cudaGraphNode_t to[4], cudaGraphEdgeData data[4]) {
    memset(data, 0, 4 * sizeof *data);
    for (int i = 0; i < 4; ++i) {
        from[i] = node_of(t, of);
        to[i] = node_of(t, of);
        if (chance(t, 0.1))
            data[i].type = (unsigned char)below(t, 3);
        if (chance(t, 0.1))
            data[i].from_port = (unsigned char)below(t, 4);
    }
}

CALL(edges_add) {
    cudaGraph_t of = graph(t);
    cudaGraphNode_t from[4], to[4];
    cudaGraphEdgeData data[4];
    edges(t, of, from, to, data);
    return cudaGraphAddDependencies(of, from, to, chance(t, 0.5) ? data : NULL, below(t, 4));
}
CALL(edges_remove) {
    cudaGraph_t of = graph(t);
    cudaGraphNode_t from[4], to[4];
    cudaGraphEdgeData data[4];
    edges(t, of, from, to, data);
    size_t count = 1;
    if (chance(t, 0.7))
        (void)cudaGraphGetEdges(of, from, to, data, &count);
    return cudaGraphRemoveDependencies(of, from, to, chance(t, 0.7) ? data : NULL, count);
}
CALL(nodes_get) {
    cudaGraphNode_t got[8];
    size_t count = below(t, 9);
    const cudaError_t error = cudaGraphGetNodes(graph(t), chance(t, 0.8) ? got : NULL, &count);
    if (error == cudaSuccess && count > 0 && count < 8 && chance(t, 0.5))
        keep(t, FUZZ_NODE, got[0]);
    return error;
}
CALL(roots_get) {
    cudaGraphNode_t got[8];
    size_t count = below(t, 9);
    return cudaGraphGetRootNodes(graph(t), chance(t, 0.8) ? got : NULL, &count);
}
CALL(edges_get) {
    cudaGraphNode_t from[8], to[8];
    cudaGraphEdgeData data[8];
    size_t count = below(t, 9);
    return cudaGraphGetEdges(graph(t), chance(t, 0.8) ? from : NULL, chance(t, 0.8) ? to : NULL,
                             chance(t, 0.5) ? data : NULL, &count);
}
CALL(dependencies_get) {
    cudaGraphNode_t got[8];
    cudaGraphEdgeData data[8];
    size_t count = below(t, 9);
    return cudaGraphNodeGetDependencies(node(t), chance(t, 0.8) ? got : NULL,
                                        chance(t, 0.5) ? data : NULL, &count);
}
CALL(dependents_get) {
    cudaGraphNode_t got[8];
    cudaGraphEdgeData data[8];
    size_t count = below(t, 9);
    return cudaGraphNodeGetDependentNodes(node(t), chance(t, 0.8) ? got : NULL,
                                          chance(t, 0.5) ? data : NULL, &count);
}
CALL(node_type) {
    enum cudaGraphNodeType type;
    return cudaGraphNodeGetType(node(t), &type);
}
CALL(graph_dot) {
    const char *folder = getenv("TEST_TMPDIR");
    char path[256];
    snprintf(path, sizeof path, "%s/graph_fuzz_%d_%p.dot", folder == NULL ? "/tmp" : folder,
             (int)getpid(), (void *)t);
    const cudaError_t error = cudaGraphDebugDotPrint(graph(t), path, (unsigned)below(t, 2048));
    unlink(path);
    return error;
}

// --- Nodes ---

static struct cudaMemsetParams fill_parameters(struct fuzz_thread *t) {
    return (struct cudaMemsetParams){.dst = target(t),
                                     .pitch = 64,
                                     .value = (unsigned)below(t, 256),
                                     .elementSize = (unsigned)below(t, chance(t, 0.1) ? 6 : 2) + 1,
                                     .width = 1 + below(t, 16),
                                     .height = chance(t, 0.9) ? 1 : below(t, 4)};
}

static struct cudaMemcpy3DParms copy_parameters(struct fuzz_thread *t) {
    struct cudaMemcpy3DParms parameters;
    memset(&parameters, 0, sizeof parameters);
    const struct operands of = operands(t);
    parameters.srcPtr = (struct cudaPitchedPtr){of.from, 64, 64, 1};
    parameters.dstPtr = (struct cudaPitchedPtr){of.to, 64, 64, 1};
    parameters.extent = (struct cudaExtent){below(t, 64), 1, chance(t, 0.95)};
    parameters.kind = of.kind;
    return parameters;
}

static cudaError_t made(struct fuzz_thread *t, cudaError_t error, cudaGraphNode_t new) {
    if (error == cudaSuccess)
        keep(t, FUZZ_NODE, new);
    return error;
}

CALL(empty_add) {
    cudaGraph_t to = graph(t);
    cudaGraphNode_t new = NULL, drawn[4];
    const size_t count = nodes(t, to, drawn);
    return made(t, cudaGraphAddEmptyNode(&new, to, drawn, count), new);
}
CALL(fill_add) {
    cudaGraph_t to = graph(t);
    cudaGraphNode_t new = NULL, drawn[4];
    const size_t count = nodes(t, to, drawn);
    const struct cudaMemsetParams parameters = fill_parameters(t);
    return made(t, cudaGraphAddMemsetNode(&new, to, drawn, count, &parameters), new);
}
CALL(copy_add) {
    cudaGraph_t to = graph(t);
    cudaGraphNode_t new = NULL, drawn[4];
    const size_t count = nodes(t, to, drawn);
    const struct cudaMemcpy3DParms parameters = copy_parameters(t);
    return made(t, cudaGraphAddMemcpyNode(&new, to, drawn, count, &parameters), new);
}
CALL(copy_add_1d) {
    cudaGraph_t to = graph(t);
    cudaGraphNode_t new = NULL, drawn[4];
    const size_t count = nodes(t, to, drawn);
    const struct operands of = operands(t);
    return made(
        t, cudaGraphAddMemcpyNode1D(&new, to, drawn, count, of.to, of.from, size(t), of.kind), new);
}
CALL(host_add) {
    cudaGraph_t to = graph(t);
    cudaGraphNode_t new = NULL, drawn[4];
    const size_t count = nodes(t, to, drawn);
    const struct cudaHostNodeParams parameters = {chance(t, 0.95) ? nothing : NULL, NULL};
    return made(t, cudaGraphAddHostNode(&new, to, drawn, count, &parameters), new);
}
CALL(child_add) {
    cudaGraph_t to = graph(t), child = graph(t);
    cudaGraphNode_t new = NULL, drawn[4];
    if (!copies_left())
        return cudaSuccess;
    const size_t count = nodes(t, to, drawn);
    return made(t, cudaGraphAddChildGraphNode(&new, to, drawn, count, child), new);
}
CALL(child_move) {
    cudaGraph_t to = graph(t);
    cudaGraphNode_t new = NULL, drawn[4];
    struct cudaGraphNodeParams parameters = {.type = cudaGraphNodeTypeGraph};
    if (!copies_left())
        return cudaSuccess;
    const size_t count = nodes(t, to, drawn);
    parameters.graph.graph = graph(t);
    parameters.graph.ownership = cudaGraphChildGraphOwnershipMove;
    return made(t, cudaGraphAddNode(&new, to, drawn, NULL, count, &parameters), new);
}
CALL(child_graph) {
    cudaGraph_t child = NULL;
    cudaGraphNode_t of = typed(t, cudaGraphNodeTypeGraph);
    const cudaError_t error = cudaGraphChildGraphNodeGetGraph(of, &child);
    if (error == cudaSuccess)
        keep(t, FUZZ_GRAPH, child);
    return error;
}
CALL(record_add) {
    cudaGraph_t to = graph(t);
    cudaGraphNode_t new = NULL, drawn[4];
    const size_t count = nodes(t, to, drawn);
    return made(t, cudaGraphAddEventRecordNode(&new, to, drawn, count, event(t)), new);
}
CALL(wait_add) {
    cudaGraph_t to = graph(t);
    cudaGraphNode_t new = NULL, drawn[4];
    const size_t count = nodes(t, to, drawn);
    return made(t, cudaGraphAddEventWaitNode(&new, to, drawn, count, event(t)), new);
}
CALL(any_add) {
    cudaGraph_t to = graph(t);
    cudaGraphNode_t new = NULL, drawn[4];
    struct cudaGraphNodeParams parameters = {0};
    const size_t count = nodes(t, to, drawn);
    parameters.type = (enum cudaGraphNodeType)below(t, 16);
    if (parameters.type == cudaGraphNodeTypeGraph)
        return cudaSuccess;
    if (parameters.type == cudaGraphNodeTypeHost)
        parameters.host.fn = nothing;
    return made(t, cudaGraphAddNode(&new, to, drawn, NULL, count, &parameters), new);
}
CALL(alloc_add) {
    cudaGraph_t to = graph(t);
    cudaGraphNode_t new = NULL, drawn[4];
    const size_t count = nodes(t, to, drawn);
    struct cudaMemAllocNodeParams parameters = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice,
                                   .id = (int)below(t, chance(t, 0.05) ? 4 : 2)}},
        .bytesize = below(t, 4096)};
    const cudaError_t error = cudaGraphAddMemAllocNode(&new, to, drawn, count, &parameters);
    if (error == cudaSuccess)
        keep(t, FUZZ_POINTER, parameters.dptr);
    return made(t, error, new);
}
CALL(free_add) {
    cudaGraph_t to = graph(t);
    cudaGraphNode_t new = NULL, drawn[4];
    const size_t count = nodes(t, to, drawn);
    return made(t, cudaGraphAddMemFreeNode(&new, to, drawn, count, draw(t, FUZZ_POINTER)), new);
}
CALL(fill_get) {
    struct cudaMemsetParams parameters;
    return cudaGraphMemsetNodeGetParams(typed(t, cudaGraphNodeTypeMemset), &parameters);
}
CALL(fill_set) {
    const struct cudaMemsetParams parameters = fill_parameters(t);
    return cudaGraphMemsetNodeSetParams(typed(t, cudaGraphNodeTypeMemset), &parameters);
}
CALL(copy_get) {
    struct cudaMemcpy3DParms parameters;
    return cudaGraphMemcpyNodeGetParams(typed(t, cudaGraphNodeTypeMemcpy), &parameters);
}
CALL(copy_set) {
    const struct cudaMemcpy3DParms parameters = copy_parameters(t);
    return cudaGraphMemcpyNodeSetParams(typed(t, cudaGraphNodeTypeMemcpy), &parameters);
}
CALL(record_set) {
    return cudaGraphEventRecordNodeSetEvent(typed(t, cudaGraphNodeTypeEventRecord), event(t));
}
CALL(wait_set) {
    return cudaGraphEventWaitNodeSetEvent(typed(t, cudaGraphNodeTypeWaitEvent), event(t));
}
CALL(alloc_get) {
    struct cudaMemAllocNodeParams parameters;
    return cudaGraphMemAllocNodeGetParams(typed(t, cudaGraphNodeTypeMemAlloc), &parameters);
}

// --- Executables ---

CALL(instantiate) {
    cudaGraphExec_t new = NULL;
    const cudaError_t error = cudaGraphInstantiate(
        &new, graph(t), chance(t, 0.8) ? 0 : below(t, chance(t, 0.5) ? 2 : 32));
    if (error == cudaSuccess)
        keep(t, FUZZ_EXEC, new);
    return error;
}
CALL(instantiate_parameters) {
    cudaGraphExec_t new = NULL;
    cudaGraphInstantiateParams parameters = {.flags = below(t, 16), .uploadStream = stream(t)};
    const cudaError_t error = cudaGraphInstantiateWithParams(&new, graph(t), &parameters);
    if (error == cudaSuccess)
        keep(t, FUZZ_EXEC, new);
    return error;
}
CALL(launch) { return cudaGraphLaunch(exec(t), stream(t)); }
CALL(upload) { return cudaGraphUpload(exec(t), stream(t)); }
CALL(exec_destroy) { return cudaGraphExecDestroy(exec(t)); }
CALL(exec_update) {
    cudaGraphExecUpdateResultInfo info;
    return cudaGraphExecUpdate(exec(t), graph(t), &info);
}
CALL(exec_fill_set) {
    const struct cudaMemsetParams parameters = fill_parameters(t);
    cudaGraphExec_t of;
    cudaGraphNode_t fills = exec_node(t, cudaGraphNodeTypeMemset, &of);
    return cudaGraphExecMemsetNodeSetParams(of, fills, &parameters);
}
CALL(exec_copy_set) {
    struct cudaMemcpy3DParms parameters = copy_parameters(t);
    cudaGraphExec_t of;
    cudaGraphNode_t copies = exec_node(t, cudaGraphNodeTypeMemcpy, &of);
    if (chance(t, 0.5))
        (void)cudaGraphMemcpyNodeGetParams(copies, &parameters);
    return cudaGraphExecMemcpyNodeSetParams(of, copies, &parameters);
}
CALL(exec_record_set) {
    cudaGraphExec_t of;
    cudaGraphNode_t record = exec_node(t, cudaGraphNodeTypeEventRecord, &of);
    return cudaGraphExecEventRecordNodeSetEvent(of, record, event(t));
}
CALL(exec_child_set) {
    cudaGraphExec_t of;
    cudaGraph_t new = graph(t), own = NULL;
    cudaGraphNode_t child = exec_node(t, cudaGraphNodeTypeGraph, &of);
    if (chance(t, 0.5) && cudaGraphChildGraphNodeGetGraph(child, &own) == cudaSuccess)
        new = own; // the only one that is surely of the same shape
    return cudaGraphExecChildGraphNodeSetParams(of, child, new);
}
CALL(exec_enable) {
    cudaGraphExec_t of;
    cudaGraphNode_t fills = exec_node(t, cudaGraphNodeTypeMemset, &of);
    return cudaGraphNodeSetEnabled(of, fills, (unsigned)below(t, 2));
}
CALL(exec_enabled) {
    unsigned int enabled;
    cudaGraphExec_t of;
    cudaGraphNode_t copies = exec_node(t, cudaGraphNodeTypeMemcpy, &of);
    return cudaGraphNodeGetEnabled(of, copies, &enabled);
}
CALL(memory_trim) { return cudaDeviceGraphMemTrim((int)below(t, 3)); }
CALL(memory_attribute) {
    uint64_t value = 0;
    return cudaDeviceGetGraphMemAttribute((int)below(t, 3),
                                          (enum cudaGraphMemAttributeType)below(t, 5), &value);
}

// --- User objects ---

CALL(object_create) {
    cudaUserObject_t object = NULL;
    const cudaError_t error =
        cudaUserObjectCreate(&object, NULL, nothing, (unsigned)below(t, 3), flags(t));
    if (error == cudaSuccess)
        keep(t, FUZZ_OBJECT, object);
    return error;
}
CALL(object_retain) { return cudaUserObjectRetain(draw(t, FUZZ_OBJECT), (unsigned)below(t, 3)); }
CALL(object_release) { return cudaUserObjectRelease(draw(t, FUZZ_OBJECT), (unsigned)below(t, 3)); }
CALL(object_keep) {
    return cudaGraphRetainUserObject(graph(t), draw(t, FUZZ_OBJECT), (unsigned)below(t, 3),
                                     flags(t));
}
CALL(object_give) {
    cudaGraph_t of = graph(t);
    cudaUserObject_t object = draw(t, FUZZ_OBJECT);
    if (chance(t, 0.5))
        (void)cudaGraphRetainUserObject(of, object, 1, 0);
    return cudaGraphReleaseUserObject(of, object, (unsigned)below(t, 3));
}

// --- The table ---

#define CODES_MAX 12
// Codes of a handle that names no live stream or event, and those of work that enters a stream.
#define GONE 400, 709
#define WORK 1, 400, 709, 901, 906

static const struct {
    const char *name;
    cudaError_t (*run)(struct fuzz_thread *t);
    int weight;
    int codes[CODES_MAX]; // besides 0; ends with 0
} calls[] = {
    {"cudaStreamCreateWithFlags", stream_create, 2, {1, 900}},
    {"cudaStreamDestroy", stream_destroy, 1, {GONE}},
    {"cudaStreamQuery", stream_query, 1, {GONE, 600, 900, 906}},
    {"cudaStreamSynchronize", stream_synchronize, 1, {GONE, 900, 906}},
    {"cudaDeviceSynchronize", device_synchronize, 1, {900}},
    {"cudaEventCreate", event_create, 2, {0}},
    {"cudaEventDestroy", event_destroy, 1, {GONE}},
    {"cudaEventRecord", event_record, 14, {GONE, 901, 906}},
    {"cudaEventRecordWithFlags", event_record_flags, 4, {1, GONE, 901, 906}},
    {"cudaEventQuery", event_query, 1, {GONE, 600, 900, 907}},
    {"cudaEventSynchronize", event_synchronize, 1, {GONE, 900, 907}},
    {"cudaEventElapsedTime", event_elapsed, 3, {1, GONE, 600, 900, 907}},
    {"cudaStreamWaitEvent", stream_wait, 16, {1, GONE, 901, 902, 905, 906}},
    {"cudaMemsetAsync", fill, 12, {WORK}},
    {"cudaMemcpyAsync", copy, 8, {WORK, 21, 900}},
    {"cudaMemset", fill_plain, 1, {WORK, 900}},
    {"cudaMemcpy", copy_plain, 1, {WORK, 21, 900}},
    {"cudaLaunchHostFunc", host_function, 4, {WORK}},
    {"cudaStreamAddCallback", callback, 1, {WORK, 900}},
    {"kernel", kernel, 8, {WORK}},
    {"cudaMallocAsync", malloc_async, 6, {WORK, 2, 801}},
    {"cudaFreeAsync", free_async, 6, {WORK, 801}},
    {"cudaMalloc", malloc_plain, 1, {2, 900}},
    {"cudaFree", free_plain, 1, {1, 900}},
    {"cudaStreamBeginCapture", begin, 10, {1, GONE, 401, 900}},
    {"cudaStreamBeginCaptureToGraph", begin_to_graph, 4, {1, GONE, 401, 900}},
    {"cudaStreamEndCapture", end, 14, {GONE, 401, 901, 903, 904, 908}},
    {"cudaStreamGetCaptureInfo", capture_info, 4, {GONE, 402, 906}},
    {"cudaStreamIsCapturing", is_capturing, 1, {1, GONE, 906}},
    {"cudaStreamUpdateCaptureDependencies", update_dependencies, 4, {1, GONE, 401, 901}},
    {"cudaThreadExchangeStreamCaptureMode", exchange, 3, {1}},
    {"cudaGraphCreate", graph_create, 4, {1}},
    {"cudaGraphDestroy", graph_destroy, 2, {1}},
    {"cudaGraphClone", graph_clone, 2, {1, 801}},
    {"cudaGraphNodeFindInClone", find_in_clone, 1, {1}},
    {"cudaGraphDestroyNode", node_destroy, 2, {1, 801}},
    {"cudaGraphAddDependencies", edges_add, 8, {1}},
    {"cudaGraphRemoveDependencies", edges_remove, 4, {1, 801}},
    {"cudaGraphGetNodes", nodes_get, 4, {1}},
    {"cudaGraphGetRootNodes", roots_get, 2, {1}},
    {"cudaGraphGetEdges", edges_get, 2, {1, 402}},
    {"cudaGraphNodeGetDependencies", dependencies_get, 2, {1, 402}},
    {"cudaGraphNodeGetDependentNodes", dependents_get, 2, {1, 402}},
    {"cudaGraphNodeGetType", node_type, 1, {1}},
    {"cudaGraphDebugDotPrint", graph_dot, 1, {1}},
    {"cudaGraphAddEmptyNode", empty_add, 4, {1}},
    {"cudaGraphAddMemsetNode", fill_add, 6, {1}},
    {"cudaGraphAddMemcpyNode", copy_add, 4, {1, 21}},
    {"cudaGraphAddMemcpyNode1D", copy_add_1d, 4, {1, 21}},
    {"cudaGraphAddHostNode", host_add, 4, {1}},
    {"cudaGraphAddChildGraphNode", child_add, 3, {1, 801}},
    {"cudaGraphAddNode, a graph moved", child_move, 1, {1, 801}},
    {"cudaGraphChildGraphNodeGetGraph", child_graph, 1, {1}},
    {"cudaGraphAddEventRecordNode", record_add, 3, {1, GONE}},
    {"cudaGraphAddEventWaitNode", wait_add, 3, {1, GONE}},
    {"cudaGraphAddNode", any_add, 2, {1, 98, GONE, 801}},
    {"cudaGraphAddMemAllocNode", alloc_add, 6, {1, 2, 801}},
    {"cudaGraphAddMemFreeNode", free_add, 6, {1, 801}},
    {"cudaGraphMemsetNodeGetParams", fill_get, 1, {1}},
    {"cudaGraphMemsetNodeSetParams", fill_set, 2, {1}},
    {"cudaGraphMemcpyNodeGetParams", copy_get, 1, {1}},
    {"cudaGraphMemcpyNodeSetParams", copy_set, 2, {1, 21}},
    {"cudaGraphEventRecordNodeSetEvent", record_set, 1, {1, GONE}},
    {"cudaGraphEventWaitNodeSetEvent", wait_set, 2, {1, GONE}},
    {"cudaGraphMemAllocNodeGetParams", alloc_get, 1, {1}},
    {"cudaGraphInstantiate", instantiate, 8, {1, 2, 801}},
    {"cudaGraphInstantiateWithParams", instantiate_parameters, 2, {WORK, 2, 801, 900}},
    {"cudaGraphLaunch", launch, 16, {WORK, 2, 900}},
    {"cudaGraphUpload", upload, 2, {WORK, 2, 900}},
    {"cudaGraphExecDestroy", exec_destroy, 2, {1, 900}},
    {"cudaGraphExecUpdate", exec_update, 3, {1, 910}},
    {"cudaGraphExecMemsetNodeSetParams", exec_fill_set, 2, {1}},
    {"cudaGraphExecMemcpyNodeSetParams", exec_copy_set, 2, {1, 21}},
    {"cudaGraphExecEventRecordNodeSetEvent", exec_record_set, 4, {1, GONE}},
    {"cudaGraphExecChildGraphNodeSetParams", exec_child_set, 5, {1, 910}},
    {"cudaGraphNodeSetEnabled", exec_enable, 2, {1}},
    {"cudaGraphNodeGetEnabled", exec_enabled, 1, {1}},
    {"cudaDeviceGraphMemTrim", memory_trim, 1, {101, 900}},
    {"cudaDeviceGetGraphMemAttribute", memory_attribute, 1, {1, 101, 900}},
    {"cudaUserObjectCreate", object_create, 2, {1}},
    {"cudaUserObjectRetain", object_retain, 1, {1}},
    {"cudaUserObjectRelease", object_release, 1, {1}},
    {"cudaGraphRetainUserObject", object_keep, 2, {1}},
    {"cudaGraphReleaseUserObject", object_give, 1, {1}},
};
#define CALL_COUNT ((int)(sizeof calls / sizeof calls[0]))

int fuzz_call_count(void) { return CALL_COUNT; }
const char *fuzz_call_name(int call) { return calls[call].name; }

static bool is_allowed(int call, cudaError_t error) {
    if (error == cudaSuccess)
        return true;
    for (int i = 0; i < CODES_MAX && calls[call].codes[i] != 0; ++i)
        if (calls[call].codes[i] == (int)error)
            return true;
    return false;
}

static int call_draw(struct fuzz_thread *t) {
    static int total; // the same whoever counts first
    int sum = __atomic_load_n(&total, __ATOMIC_RELAXED), call = 0;
    if (sum == 0) {
        for (int i = 0; i < CALL_COUNT; ++i)
            sum += calls[i].weight;
        __atomic_store_n(&total, sum, __ATOMIC_RELAXED);
    }
    for (int left = (int)below(t, (uint64_t)sum); left >= calls[call].weight; ++call)
        left -= calls[call].weight;
    return call;
}

void fuzz_call(struct fuzz_thread *t) {
    const int call = call_draw(t);
    const cudaError_t error = calls[call].run(t);
    (void)cudaGetLastError();
    ++t->call_count;
    t->success_count += error == cudaSuccess;
    __atomic_fetch_add(&fuzz_made[call], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&fuzz_succeeded[call], error == cudaSuccess, __ATOMIC_RELAXED);
    // Memory that is gone when a node touches it: the device has faulted.
    t->faulted = error == cudaErrorIllegalAddress;
    if (!t->faulted && !is_allowed(call, error)) {
        fprintf(stderr, "%s: %d\n", calls[call].name, (int)error);
        BASE_CHECK(!"a code that this call does not give");
    }
}

void fuzz_begin(uint64_t seed) {
    struct fuzz_thread first = {.random = base_random_init(seed, "graph_fuzz, begin")};
    struct fuzz_thread *t = &first;
    BASE_CHECK(CALL_COUNT <= FUZZ_CALL_COUNT_MAX);
    memset(&shared, 0, sizeof shared);
    for (int i = 0; i < BUFFER_COUNT; ++i) {
        void *device = NULL, *pinned = NULL;
        BASE_CHECK_EQ(cudaSetDevice(i % 2), cudaSuccess);
        BASE_CHECK_EQ(cudaMalloc(&device, BUFFER_BYTES), cudaSuccess);
        BASE_CHECK_EQ(cudaMallocHost(&pinned, BUFFER_BYTES), cudaSuccess);
        device_buffers[i] = device;
        pinned_buffers[i] = pinned;
    }
    for (int i = 0; i < 6; ++i) {
        (void)stream_create(t);
        (void)event_create(t);
        (void)graph_create(t);
    }
    for (int i = 0; i < 12; ++i) {
        (void)empty_add(t);
        (void)fill_add(t);
    }
}
