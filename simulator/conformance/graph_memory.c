// Section 7.5: memory nodes.
#include "simulator/conformance/graph_cases.h"

#include <stdint.h>

#define SIZE ((size_t)4 << 20)

// A node that allocates SIZE bytes on device 0; their address in *POINTER.
static cudaGraphNode_t alloc_node(struct conformance *c, cudaGraph_t graph, void **pointer) {
    struct cudaMemAllocNodeParams parameters = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice}},
        .bytesize = SIZE};
    cudaGraphNode_t node = NULL;
    const cudaError_t error = cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters);
    *pointer = parameters.dptr;
    return node_made(c, error, node);
}

static cudaGraphNode_t free_node(struct conformance *c, cudaGraph_t graph, cudaGraphNode_t behind,
                                 void *pointer) {
    cudaGraphNode_t node = NULL;
    const cudaError_t error =
        cudaGraphAddMemFreeNode(&node, graph, &behind, behind != NULL ? 1 : 0, pointer);
    return node_made(c, error, node);
}

// A graph that allocates and fills with VALUE, and with FREES frees again.
static cudaGraph_t memory_graph(struct conformance *c, void **pointer, int value, bool frees) {
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = alloc_node(c, graph, pointer);
    node = fill_node(c, graph, &node, 1, *pointer, value);
    if (frees)
        (void)free_node(c, graph, node, *pointer);
    return graph;
}

static uint64_t reserved(void) {
    uint64_t size = 99;
    (void)cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &size);
    return size;
}

static cudaError_t instantiate_try(struct conformance *c, cudaGraph_t graph) {
    cudaGraphExec_t exec = NULL;
    const cudaError_t error = cudaGraphInstantiate(&exec, graph, 0);
    conformance_keep_graph_exec(c, error == cudaSuccess ? exec : NULL);
    return error;
}

// --- Nodes ---

static void memory_nodes_captured(struct conformance *c) {
    unsigned char *result = conformance_device_memory(c, BYTES);
    enum cudaGraphNodeType type = cudaGraphNodeTypeCount;
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    answer_code(c, "malloc", cudaMallocAsync(&pointer, SIZE, stream));
    answer_yes(c, "address", pointer != NULL);
    MUST(c, cudaGraphNodeGetType(stream_tip(stream), &type));
    answer_number(c, "type", type);
    MUST(c, cudaMemsetAsync(pointer, 3, SIZE, stream));
    MUST(c, cudaMemcpyAsync(result, pointer, BYTES, cudaMemcpyDefault, stream));
    answer_code(c, "free", cudaFreeAsync(pointer, stream));
    MUST(c, cudaGraphNodeGetType(stream_tip(stream), &type));
    answer_number(c, "type", type);
    cudaGraphExec_t exec = conformance_graph_exec(c, capture_end(c, stream));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(result));
}

static void memory_nodes_of_a_pool(struct conformance *c) {
    const struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                                .location = {.type = cudaMemLocationTypeDevice}};
    enum cudaGraphNodeType type = cudaGraphNodeTypeCount;
    void *pointer = NULL;
    cudaMemPool_t pool = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMemPoolCreate(&pool, &properties));
    MUST(c, capture_begin(stream));
    answer_code(c, "malloc", cudaMallocFromPoolAsync(&pointer, SIZE, pool, stream));
    MUST(c, cudaGraphNodeGetType(stream_tip(stream), &type));
    answer_number(c, "type", type);
    MUST(c, cudaFreeAsync(pointer, stream));
    (void)capture_end(c, stream);
    MUST(c, cudaMemPoolDestroy(pool));
}

static void memory_nodes_parameters(struct conformance *c) {
    struct cudaMemAllocNodeParams parameters = {0};
    void *pointer = NULL, *freed = NULL;
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = alloc_node(c, graph, &pointer);
    MUST(c, cudaGraphMemAllocNodeGetParams(node, &parameters));
    answer_yes(c, "address", parameters.dptr == pointer && pointer != NULL);
    answer_yes(c, "size", parameters.bytesize == SIZE);
    cudaGraphNode_t end = free_node(c, graph, node, pointer);
    MUST(c, cudaGraphMemFreeNodeGetParams(end, &freed));
    answer_yes(c, "freed", freed == pointer);
    answer_code(c, "other", cudaGraphMemAllocNodeGetParams(end, &parameters));
    answer_code(c, "null", cudaGraphMemAllocNodeGetParams(node, NULL));
}

static void memory_nodes_any(struct conformance *c) {
    struct cudaGraphNodeParams alloc = {.type = cudaGraphNodeTypeMemAlloc};
    struct cudaGraphNodeParams end = {.type = cudaGraphNodeTypeMemFree};
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = NULL, next = NULL;
    alloc.alloc.poolProps.allocType = cudaMemAllocationTypePinned;
    alloc.alloc.poolProps.location.type = cudaMemLocationTypeDevice;
    alloc.alloc.bytesize = SIZE;
    answer_code(c, "alloc", cudaGraphAddNode(&node, graph, NULL, NULL, 0, &alloc));
    answer_yes(c, "address", alloc.alloc.dptr != NULL);
    end.free.dptr = alloc.alloc.dptr;
    answer_code(c, "free", cudaGraphAddNode(&next, graph, &node, NULL, 1, &end));
    answer_code(c, "twice", cudaGraphAddNode(&next, graph, &node, NULL, 1, &end));
}

static void memory_nodes_bad(struct conformance *c) {
    struct cudaMemAllocNodeParams parameters = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice}},
        .bytesize = SIZE};
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = NULL;
    answer_code(c, "null", cudaGraphAddMemAllocNode(&node, graph, NULL, 0, NULL));
    parameters.bytesize = 0;
    answer_code(c, "size", cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters));
    parameters.bytesize = SIZE;
    parameters.poolProps.location.id = 99;
    answer_code(c, "device", cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters));
    answer_node_count(c, "nodes", graph);
}

static void free_node_bad(struct conformance *c) {
    unsigned char *plain = conformance_device_memory(c, BYTES);
    void *pointer = NULL;
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = alloc_node(c, graph, &pointer), end = NULL;
    answer_code(c, "null", cudaGraphAddMemFreeNode(&end, graph, &node, 1, NULL));
    answer_code(c, "other-memory", cudaGraphAddMemFreeNode(&end, graph, &node, 1, plain));
    answer_code(c, "interior",
                cudaGraphAddMemFreeNode(&end, graph, &node, 1, (unsigned char *)pointer + 512));
    answer_code(c, "free", cudaGraphAddMemFreeNode(&end, graph, &node, 1, pointer));
    answer_code(c, "twice", cudaGraphAddMemFreeNode(&end, graph, &end, 1, pointer));
    answer_node_count(c, "nodes", graph);
}

static void free_in_capture_bad(struct conformance *c) {
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaMallocAsync(&pointer, BYTES, other));
    MUST(c, cudaStreamSynchronize(other));
    MUST(c, capture_begin(stream));
    answer_code(c, "free", cudaFreeAsync(pointer, stream));
    answer_end(c, "end", stream);
    answer_code(c, "eager", cudaFreeAsync(pointer, other));
}

static void free_in_capture_twice(struct conformance *c) {
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, capture_begin(stream));
    MUST(c, cudaMallocAsync(&pointer, BYTES, stream));
    answer_code(c, "free", cudaFreeAsync(pointer, stream));
    answer_code(c, "twice", cudaFreeAsync(pointer, stream));
}

// --- Addresses and physical memory ---

static void address_is_fixed(struct conformance *c) {
    unsigned char *result = conformance_device_memory(c, BYTES);
    void *one = NULL, *two = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t first = alloc_node(c, graph, &one), second = alloc_node(c, graph, &two);
    answer_yes(c, "apart", (uintptr_t)one >= (uintptr_t)two + SIZE ||
                               (uintptr_t)two >= (uintptr_t)one + SIZE);
    first = fill_node(c, graph, &first, 1, one, 1);
    cudaGraphNode_t nodes[2] = {first, fill_node(c, graph, &second, 1, two, 2)};
    cudaGraphNode_t copy = copy_node(c, graph, nodes, 2, result, one);
    (void)free_node(c, graph, copy, one);
    (void)free_node(c, graph, copy, two);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    for (int i = 0; i < 3; ++i) {
        MUST(c, cudaMemsetAsync(result, 9, BYTES, stream));
        MUST(c, cudaGraphLaunch(exec, stream));
        MUST(c, cudaStreamSynchronize(stream));
        answer_number(c, "byte", conformance_byte(result));
    }
}

static void pages_come_at_launch(struct conformance *c) {
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaDeviceGraphMemTrim(0));
    cudaGraph_t graph = memory_graph(c, &pointer, 1, true);
    answer_number(c, "graph", (int64_t)reserved());
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    answer_number(c, "exec", (int64_t)reserved());
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_yes(c, "launch", reserved() >= SIZE);
    MUST(c, cudaStreamSynchronize(stream));
    answer_yes(c, "kept", reserved() >= SIZE);
    answer_code(c, "trim", cudaDeviceGraphMemTrim(0));
    answer_number(c, "trimmed", (int64_t)reserved());
    answer_code(c, "again", cudaGraphLaunch(exec, stream));
    answer_code(c, "synchronize", cudaStreamSynchronize(stream));
}

static void pages_come_at_upload(struct conformance *c) {
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaDeviceGraphMemTrim(0));
    cudaGraphExec_t exec = conformance_graph_exec(c, memory_graph(c, &pointer, 1, true));
    MUST(c, cudaGraphUpload(exec, stream));
    answer_yes(c, "upload", reserved() >= SIZE);
}

static void trim_spares_what_is_used(struct conformance *c) {
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaDeviceGraphMemTrim(0));
    cudaGraphExec_t exec = conformance_graph_exec(c, memory_graph(c, &pointer, 6, false));
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_code(c, "trim", cudaDeviceGraphMemTrim(0));
    answer_yes(c, "spared", reserved() >= SIZE);
    answer_number(c, "byte", conformance_byte(pointer));
    MUST(c, cudaFreeAsync(pointer, stream));
    MUST(c, cudaStreamSynchronize(stream));
    MUST(c, cudaDeviceGraphMemTrim(0));
    answer_number(c, "freed", (int64_t)reserved());
}

static void trim_spares_pending(struct conformance *c) {
    unsigned char *result = conformance_device_memory(c, BYTES);
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = alloc_node(c, graph, &pointer);
    node = fill_node(c, graph, &node, 1, pointer, 4);
    node = copy_node(c, graph, &node, 1, result, pointer);
    (void)free_node(c, graph, node, pointer);
    cudaGraphExec_t exec = conformance_graph_exec(c, graph);
    conformance_gate(c, stream);
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_code(c, "trim", cudaDeviceGraphMemTrim(0));
    conformance_open(c);
    answer_number(c, "byte", conformance_byte(result));
}

static void graph_memory_attributes(struct conformance *c) {
    uint64_t value = 0, one = 1, zero = 0;
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaDeviceGraphMemTrim(0));
    MUST(c, cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &zero));
    cudaGraphExec_t exec = conformance_graph_exec(c, memory_graph(c, &pointer, 1, true));
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &value));
    answer_yes(c, "used", value >= SIZE);
    MUST(c, cudaStreamSynchronize(stream));
    MUST(c, cudaDeviceGraphMemTrim(0));
    MUST(c, cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &value));
    answer_yes(c, "high", value >= SIZE);
    MUST(c, cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &zero));
    MUST(c, cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &value));
    answer_yes(c, "reset", value < SIZE);
    answer_code(c, "one", cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &one));
    answer_code(c, "current",
                cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &zero));
    answer_code(c, "attribute",
                cudaDeviceGetGraphMemAttribute(0, (enum cudaGraphMemAttributeType)77, &value));
    answer_code(c, "null", cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, NULL));
}

static void graph_memory_of_no_device(struct conformance *c) {
    uint64_t value = 0;
    answer_code(c, "trim", cudaDeviceGraphMemTrim(99));
    answer_code(c, "get",
                cudaDeviceGetGraphMemAttribute(99, cudaGraphMemAttrUsedMemHigh, &value));
    answer_code(c, "set",
                cudaDeviceSetGraphMemAttribute(99, cudaGraphMemAttrUsedMemHigh, &value));
}

// --- Memory that outlives the launch ---

static void memory_outlives_its_launch(struct conformance *c) {
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphExec_t exec = conformance_graph_exec(c, memory_graph(c, &pointer, 7, false));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(pointer));
    MUST(c, cudaMemsetAsync(pointer, 8, SIZE, stream));
    answer_number(c, "byte", conformance_byte(pointer));
    answer_code(c, "free", cudaFreeAsync(pointer, stream));
    answer_code(c, "twice", cudaFreeAsync(pointer, stream));
}

static void memory_freed_plainly(struct conformance *c) {
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphExec_t exec = conformance_graph_exec(c, memory_graph(c, &pointer, 7, false));
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_code(c, "free", cudaFree(pointer));
    answer_code(c, "launch", cudaGraphLaunch(exec, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "byte", conformance_byte(pointer));
    MUST(c, cudaFree(pointer));
}

static void memory_freed_by_another_graph(struct conformance *c) {
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphExec_t exec = conformance_graph_exec(c, memory_graph(c, &pointer, 7, false));
    cudaGraph_t graph = conformance_graph(c);
    answer_yes(c, "node", free_node(c, graph, NULL, pointer) != NULL);
    cudaGraphExec_t freeing = conformance_graph_exec(c, graph);
    for (int i = 0; i < 2; ++i) {
        answer_code(c, "launch", cudaGraphLaunch(exec, stream));
        answer_code(c, "free", cudaGraphLaunch(freeing, stream));
    }
    MUST(c, cudaStreamSynchronize(stream));
}

static void relaunch_outstanding(struct conformance *c) {
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraphExec_t exec = conformance_graph_exec(c, memory_graph(c, &pointer, 7, false));
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_code(c, "again", cudaGraphLaunch(exec, stream));
    MUST(c, cudaFreeAsync(pointer, stream));
    answer_code(c, "freed", cudaGraphLaunch(exec, stream));
    MUST(c, cudaFreeAsync(pointer, stream));
}

static void relaunch_autofree(struct conformance *c) {
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = memory_graph(c, &pointer, 7, false);
    cudaGraphExec_t exec = NULL;
    MUST(c, cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
    conformance_keep_graph_exec(c, exec);
    MUST(c, cudaGraphLaunch(exec, stream));
    answer_code(c, "again", cudaGraphLaunch(exec, stream));
    answer_number(c, "byte", conformance_byte(pointer));
    answer_code(c, "free", cudaFreeAsync(pointer, stream));
    answer_code(c, "freed", cudaGraphLaunch(exec, stream));
    MUST(c, cudaFreeAsync(pointer, stream));
}

static void memory_outlives_its_graph(struct conformance *c) {
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    MUST(c, cudaGraphCreate(&graph, 0));
    cudaGraphNode_t node = alloc_node(c, graph, &pointer);
    (void)fill_node(c, graph, &node, 1, pointer, 5);
    MUST(c, cudaGraphInstantiate(&exec, graph, 0));
    MUST(c, cudaGraphLaunch(exec, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_code(c, "exec", cudaGraphExecDestroy(exec));
    answer_code(c, "graph", cudaGraphDestroy(graph));
    answer_number(c, "byte", conformance_byte(pointer));
    answer_code(c, "free", cudaFreeAsync(pointer, stream));
    MUST(c, cudaStreamSynchronize(stream));
}

static void free_before_launch(struct conformance *c) {
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    (void)memory_graph(c, &pointer, 7, false);
    answer_code(c, "free", cudaFreeAsync(pointer, stream));
}

// --- What such graphs cannot do ---

static void memory_graph_is_not_cut(struct conformance *c) {
    void *pointer = NULL;
    cudaGraph_t graph = conformance_graph(c);
    cudaGraphNode_t node = alloc_node(c, graph, &pointer);
    cudaGraphNode_t fill = fill_node(c, graph, &node, 1, pointer, 1);
    const cudaError_t removed = cudaGraphDestroyNode(fill);
    answer_yes(c, "node", removed == cudaErrorNotSupported || removed == cudaErrorInvalidValue);
    const cudaError_t cut = cudaGraphRemoveDependencies(graph, &node, &fill, NULL, 1);
    answer_yes(c, "edge", cut == cudaErrorNotSupported || cut == cudaErrorInvalidValue);
    (void)cudaGetLastError();
    answer_node_count(c, "nodes", graph);
    answer_edge_count(c, "edges", graph);
}

static void memory_graph_is_not_cloned(struct conformance *c) {
    void *pointer = NULL;
    cudaGraph_t graph = memory_graph(c, &pointer, 1, true), clone = NULL;
    answer_code(c, "clone", cudaGraphClone(&clone, graph));
}

static void memory_graph_has_one_exec(struct conformance *c) {
    void *pointer = NULL;
    cudaGraph_t graph = memory_graph(c, &pointer, 1, true);
    cudaGraphExec_t exec = NULL;
    MUST(c, cudaGraphInstantiate(&exec, graph, 0));
    answer_code(c, "second", instantiate_try(c, graph));
    MUST(c, cudaGraphExecDestroy(exec));
    answer_code(c, "destroyed", instantiate_try(c, graph));
}

static void memory_graph_as_child(struct conformance *c) {
    void *pointer = NULL;
    cudaGraph_t graph = conformance_graph(c), inner = memory_graph(c, &pointer, 1, true);
    cudaGraphNode_t node = NULL;
    answer_yes(c, "refused",
               cudaGraphAddChildGraphNode(&node, graph, NULL, 0, inner) != cudaSuccess);
    (void)cudaGetLastError();
    answer_node_count(c, "nodes", graph);
}

static void memory_graph_moved(struct conformance *c) {
    unsigned char *result = conformance_device_memory(c, BYTES);
    void *pointer = NULL;
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaGraph_t graph = conformance_graph(c), inner = NULL;
    cudaGraphNode_t node = NULL;
    struct cudaGraphNodeParams parameters = {.type = cudaGraphNodeTypeGraph};
    MUST(c, cudaGraphCreate(&inner, 0)); // becomes the node's
    node = alloc_node(c, inner, &pointer);
    node = fill_node(c, inner, &node, 1, pointer, 5);
    node = copy_node(c, inner, &node, 1, result, pointer);
    (void)free_node(c, inner, node, pointer);
    parameters.graph.graph = inner;
    parameters.graph.ownership = cudaGraphChildGraphOwnershipMove;
    answer_code(c, "add", cudaGraphAddNode(&node, graph, NULL, NULL, 0, &parameters));
    MUST(c, cudaGraphLaunch(conformance_graph_exec(c, graph), stream));
    answer_number(c, "byte", conformance_byte(result));
}

const struct conformance_case conformance__cases_graph_memory[] = {
    CASE("memory-nodes-captured", "7.5", VERIFIED, memory_nodes_captured,
        "captured allocations and frees are nodes; the address is known at once",
        "malloc=0 address=yes type=10 free=0 type=11 byte=3", NULL),
    CASE("memory-nodes-of-a-pool", "3", VERIFIED, memory_nodes_of_a_pool,
        "those from a pool too",
        "malloc=0 type=10", NULL),
    CASE("memory-nodes-parameters", "7.5", VERIFIED, memory_nodes_parameters,
        "address and size can be asked for",
        "address=yes size=yes freed=yes other=1 null=1", NULL),
    CASE("memory-nodes-any", "7.5", VERIFIED, memory_nodes_any,
        "cudaGraphAddNode adds them too",
        "alloc=0 address=yes free=0 twice=1", NULL),
    CASE("memory-nodes-bad", "7.5", UNVERIFIED, memory_nodes_bad,
        "no parameters, no size, no such device: 1",
        "null=1 size=1 device=1 nodes=0", NULL),
    CASE("free-node-bad", "7.5", VERIFIED, free_node_bad,
        "a free node for an address that no node allocates, or for one twice: 1",
        "null=1 other-memory=1 interior=1 free=0 twice=1 nodes=2", NULL),
    CASE("free-in-capture-bad", "3", UNVERIFIED, free_in_capture_bad,
        "a captured free of memory that no graph allocates: 1, and the capture is invalidated",
        "free=1 end=901 eager=0", "free=1 end=0 eager=0"),
    CASE("free-in-capture-twice", "7.5", VERIFIED, free_in_capture_twice,
        "or of memory that the capture has freed: 1",
        "free=0 twice=1", NULL),
    CASE("address-is-fixed", "7.5", VERIFIED, address_is_fixed,
        "the address is fixed when the node is made, and the same at each launch",
        "apart=yes byte=1 byte=1 byte=1", NULL),
    CASE("pages-come-at-launch", "7.5", VERIFIED, pages_come_at_launch,
        "physical memory comes at the launch; cudaDeviceGraphMemTrim gives it back, a later launch "
        "takes it again",
        "graph=0 exec=0 launch=yes kept=yes trim=0 trimmed=0 again=0 synchronize=0", NULL),
    CASE("pages-come-at-upload", "7.5", VERIFIED, pages_come_at_upload,
        "or at the upload",
        "upload=yes", NULL),
    CASE("trim-spares-what-is-used", "7.5", VERIFIED, trim_spares_what_is_used,
        "cudaDeviceGraphMemTrim spares memory that is allocated",
        "trim=0 spared=yes byte=6 freed=0", NULL),
    CASE("trim-spares-pending", "7.5", VERIFIED, trim_spares_pending,
        "and memory of launches that are pending",
        "trim=0 byte=4", NULL),
    CASE("graph-memory-attributes", "7.5", VERIFIED, graph_memory_attributes,
        "what graphs use and reserve is counted; high-water marks can be set to 0 only",
        "used=yes high=yes reset=yes one=1 current=1 attribute=1 null=1", NULL),
    CASE("graph-memory-of-no-device", "7.5", UNVERIFIED, graph_memory_of_no_device,
        "a bad ordinal: 101",
        "trim=101 get=101 set=101", NULL),
    CASE("memory-outlives-its-launch", "7.5", VERIFIED, memory_outlives_its_launch,
        "memory that the graph does not free is there until cudaFreeAsync",
        "byte=7 byte=8 free=0 twice=1", NULL),
    CASE("memory-freed-plainly", "7.5", VERIFIED, memory_freed_plainly,
        "or cudaFree",
        "free=0 launch=0 byte=7", NULL),
    CASE("memory-freed-by-another-graph", "7.5", VERIFIED, memory_freed_by_another_graph,
        "or a free node of another graph",
        "node=yes launch=0 free=0 launch=0 free=0", NULL),
    CASE("relaunch-outstanding", "7.5", VERIFIED, relaunch_outstanding,
        "a launch while memory of the last one is not freed: 1",
        "again=1 freed=0", NULL),
    CASE("relaunch-autofree", "7.5", VERIFIED, relaunch_autofree,
        "unless the executable frees it by itself",
        "again=0 byte=7 free=0 freed=0", NULL),
    CASE("memory-outlives-its-graph", "7.5", VERIFIED, memory_outlives_its_graph,
        "destroying graph and executable frees no memory that is allocated",
        "exec=0 graph=0 byte=5 free=0", NULL),
    CASE("free-before-launch", "7.5", UNVERIFIED, free_before_launch,
        "a free of memory of a graph that was not launched: 1",
        "free=1", NULL),
    CASE("memory-graph-is-not-cut", "7.5", UNVERIFIED, memory_graph_is_not_cut,
        "no nodes and edges leave a graph with memory nodes: 801 or 1",
        "node=yes edge=yes nodes=2 edges=1", NULL),
    CASE("memory-graph-is-not-cloned", "7.5", VERIFIED, memory_graph_is_not_cloned,
        "such a graph is not cloned: 801",
        "clone=801", NULL),
    CASE("memory-graph-has-one-exec", "7.5", VERIFIED, memory_graph_has_one_exec,
        "such a graph has one executable at a time: 1",
        "second=1 destroyed=0", NULL),
    CASE("memory-graph-as-child", "7.5", VERIFIED, memory_graph_as_child,
        "such a graph is no child of another one",
        "refused=yes nodes=0", NULL),
    CASE("memory-graph-moved", "7.5", VERIFIED, memory_graph_moved,
        "unless it is moved there",
        "add=0 byte=5", NULL),
    {0},
};
