// Memory of graphs: addresses and lives of allocations, what launches and frees do to them, and the
// device memory behind them, by the rules of CUDA's guide.
#include "base/check.h"
#include "base/random.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL(call) BASE_CHECK_EQ(call, cudaSuccess)
#define INVALID cudaErrorInvalidValue
#define MIB ((uint64_t)BASE_MIB)

static void machine_start_with(const char *schedule, struct sim_options options) {
    BASE_CHECK_EQ(sim_schedule(schedule), BASE_OK);
    if (options.capacity_bytes == 0)
        options.capacity_bytes = 64 * MIB;
    BASE_CHECK_EQ(sim_configure(&options), BASE_OK);
}

static void machine_start(const char *schedule) {
    machine_start_with(schedule, (struct sim_options){.device_count = 2});
}

static cudaStream_t stream_new(void) {
    cudaStream_t stream;
    CALL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static void capture_begin(cudaStream_t stream) {
    CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
}

static cudaGraph_t capture_end(cudaStream_t stream) {
    cudaGraph_t graph;
    CALL(cudaStreamEndCapture(stream, &graph));
    return graph;
}

static cudaGraphExec_t exec_with(cudaGraph_t graph, unsigned long long flags) {
    cudaGraphExec_t exec;
    CALL(cudaGraphInstantiate(&exec, graph, flags));
    return exec;
}

static cudaGraphExec_t exec_of(cudaGraph_t graph) { return exec_with(graph, 0); }

static uint64_t attribute(enum cudaGraphMemAttributeType which) {
    uint64_t value = UINT64_MAX;
    CALL(cudaDeviceGetGraphMemAttribute(0, which, &value));
    return value;
}
static uint64_t reserved(void) { return attribute(cudaGraphMemAttrReservedMemCurrent); }
static uint64_t used(void) { return attribute(cudaGraphMemAttrUsedMemCurrent); }

// A graph of STREAM's that allocates SIZE bytes, fills them, and frees them if it FREES.
static cudaGraph_t graph_capture(cudaStream_t stream, size_t size, bool frees, char **pointer) {
    capture_begin(stream);
    CALL(cudaMallocAsync((void **)pointer, size, stream));
    CALL(cudaMemsetAsync(*pointer, 7, size, stream));
    if (frees)
        CALL(cudaFreeAsync(*pointer, stream));
    return capture_end(stream);
}

static int byte_at(const char *pointer) {
    char byte;
    CALL(cudaMemcpy(&byte, pointer, 1, cudaMemcpyDeviceToHost));
    return byte;
}

// --- Addresses ---

static void an_address_is_fixed_with_its_node(void) {
    struct cudaMemAllocNodeParams parameters = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice, .id = 1}},
        .bytesize = 1000,
    },
                                  kept;
    struct cudaPointerAttributes attributes;
    cudaGraphNode_t alloc, release;
    cudaGraph_t graph;
    void *pointer;
    machine_start("eager");
    CALL(cudaGraphCreate(&graph, 0));
    CALL(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &parameters));
    BASE_CHECK(parameters.dptr != NULL);
    BASE_CHECK_EQ((uintptr_t)parameters.dptr % 512, 0);
    CALL(cudaGraphMemAllocNodeGetParams(alloc, &kept));
    BASE_CHECK(kept.dptr == parameters.dptr && kept.bytesize == 1000 &&
               kept.poolProps.location.id == 1 && kept.accessDescCount == 0);
    CALL(cudaPointerGetAttributes(&attributes, (char *)parameters.dptr + 999));
    BASE_CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 1);
    CALL(cudaPointerGetAttributes(&attributes, (char *)parameters.dptr + 1024));
    BASE_CHECK_EQ(attributes.type, cudaMemoryTypeUnregistered);
    BASE_CHECK_EQ(sim_used_bytes(1), 0); // no memory yet
    BASE_CHECK(sim_device_bytes(parameters.dptr) == NULL);
    CALL(cudaGraphAddMemFreeNode(&release, graph, &alloc, 1, parameters.dptr));
    CALL(cudaGraphMemFreeNodeGetParams(release, &pointer));
    BASE_CHECK(pointer == parameters.dptr);
    cudaGraphExec_t exec = exec_of(graph);
    BASE_CHECK_EQ(sim_used_bytes(1), 0);
    CALL(cudaGraphLaunch(exec, NULL));
    BASE_CHECK_EQ(sim_used_bytes(1), SIM_PAGE_BYTES);
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    BASE_CHECK(sim_device_bytes(parameters.dptr) != NULL);
}

static void nodes_that_cannot_be_are_refused(void) {
    const struct cudaMemAllocNodeParams good = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice, .id = 0}},
        .bytesize = 1000,
    };
    struct cudaMemAccessDesc nobody = {.location = {.type = cudaMemLocationTypeDevice, .id = 7},
                                       .flags = cudaMemAccessFlagsProtReadWrite};
    struct cudaMemAllocNodeParams bad;
    cudaGraphNode_t node, alloc;
    cudaGraph_t graph, other;
    char *eager;
    void *pointer;
    machine_start("eager");
    CALL(cudaGraphCreate(&graph, 0));
    CALL(cudaGraphCreate(&other, 0));
    bad = good, bad.bytesize = 0;
    BASE_CHECK_EQ(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &bad), INVALID);
    bad = good, bad.poolProps.location.id = 2;
    BASE_CHECK_EQ(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &bad), INVALID);
    bad = good, bad.poolProps.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    BASE_CHECK_EQ(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &bad), INVALID);
    bad = good, bad.accessDescs = &nobody, bad.accessDescCount = 1;
    BASE_CHECK_EQ(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &bad), INVALID);
    bad = good, bad.accessDescCount = 1;
    BASE_CHECK_EQ(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &bad), INVALID);
    bad = good, bad.bytesize = (size_t)1 << 60;
    BASE_CHECK_EQ(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &bad),
                  cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cudaGraphAddMemAllocNode(NULL, graph, NULL, 0, &bad), INVALID);
    BASE_CHECK_EQ(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, NULL), INVALID);
    bad = good;
    CALL(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &bad));
    BASE_CHECK_EQ(cudaGraphAddMemFreeNode(&node, graph, &alloc, 1, (char *)bad.dptr + 512),
                  INVALID);
    BASE_CHECK_EQ(cudaGraphAddMemFreeNode(&node, graph, &alloc, 1, NULL), INVALID);
    CALL(cudaMalloc((void **)&eager, 10));
    BASE_CHECK_EQ(cudaGraphAddMemFreeNode(&node, graph, &alloc, 1, eager), INVALID);
    CALL(cudaMallocAsync((void **)&eager, 10, NULL));
    BASE_CHECK_EQ(cudaGraphAddMemFreeNode(&node, graph, &alloc, 1, eager), INVALID);
    BASE_CHECK_EQ(cudaGraphMemFreeNodeGetParams(alloc, &pointer), INVALID);
    // In another graph, once; in its own then as well, and then in no other one.
    CALL(cudaGraphAddMemFreeNode(&node, other, NULL, 0, bad.dptr));
    BASE_CHECK_EQ(cudaGraphAddMemFreeNode(&node, other, NULL, 0, bad.dptr), INVALID);
    CALL(cudaGraphAddMemFreeNode(&node, graph, &alloc, 1, bad.dptr));
    BASE_CHECK_EQ(cudaGraphAddMemFreeNode(&node, graph, &alloc, 1, bad.dptr), INVALID);
    BASE_CHECK_EQ(cudaGraphMemAllocNodeGetParams(node, &bad), INVALID);
    CALL(cudaGraphDestroy(other));
    CALL(cudaGraphCreate(&other, 0));
    BASE_CHECK_EQ(cudaGraphAddMemFreeNode(&node, other, NULL, 0, good.dptr), INVALID);
    size_t count;
    CALL(cudaGraphGetNodes(graph, NULL, &count));
    BASE_CHECK_EQ(count, 2);
    cudaGetLastError();
}

// Behind the free of the first one, and of its size.
static void an_address_is_used_again_inside_a_graph(void) {
    machine_start("eager");
    cudaStream_t s = stream_new(), t = stream_new();
    char *first, *second, *third, *fourth, *larger;
    cudaEvent_t fork, join;
    CALL(cudaEventCreate(&fork));
    CALL(cudaEventCreate(&join));
    capture_begin(s);
    CALL(cudaMallocAsync((void **)&first, 3000, s));
    CALL(cudaMallocAsync((void **)&second, 3000, s));
    BASE_CHECK(second >= first + 3000 || first >= second + 3000);
    CALL(cudaEventRecord(fork, s));
    CALL(cudaFreeAsync(first, s));
    CALL(cudaMallocAsync((void **)&third, 3000, s));
    BASE_CHECK(third == first);
    CALL(cudaStreamWaitEvent(t, fork, 0));
    CALL(cudaMallocAsync((void **)&fourth, 3000, t)); // not behind the free
    BASE_CHECK(fourth != first && fourth != second);
    CALL(cudaFreeAsync(third, s));
    CALL(cudaMallocAsync((void **)&larger, 30000, s));
    BASE_CHECK(larger != first);
    CALL(cudaMemsetAsync(larger, 1, 30000, s));
    CALL(cudaFreeAsync(larger, s));
    CALL(cudaFreeAsync(second, s));
    CALL(cudaEventRecord(join, t));
    CALL(cudaStreamWaitEvent(s, join, 0));
    CALL(cudaFreeAsync(fourth, s));
    cudaGraph_t graph = capture_end(s);
    cudaGraphExec_t exec = exec_of(graph);
    for (int i = 0; i < 3; ++i)
        CALL(cudaGraphLaunch(exec, s));
    CALL(cudaStreamSynchronize(s));
    BASE_CHECK_EQ(reserved(), SIM_PAGE_BYTES);
    BASE_CHECK_EQ(cudaFreeAsync(first, s), INVALID);
    cudaGetLastError();
}

// FORK is behind the first free of the address and not behind what it was used for then.
static void an_address_in_use_again_is_not_used_thrice(void) {
    for (int frees = 0; frees < 2; ++frees) {
        machine_start("eager");
        cudaStream_t s = stream_new(), t = stream_new();
        char *first, *second, *third;
        cudaEvent_t fork, join;
        CALL(cudaEventCreate(&fork));
        CALL(cudaEventCreate(&join));
        capture_begin(s);
        CALL(cudaMallocAsync((void **)&first, 3000, s));
        CALL(cudaFreeAsync(first, s));
        CALL(cudaEventRecord(fork, s));
        CALL(cudaMallocAsync((void **)&second, 3000, s));
        BASE_CHECK(second == first);
        if (frees == 1)
            CALL(cudaFreeAsync(second, s));
        CALL(cudaStreamWaitEvent(t, fork, 0));
        CALL(cudaMallocAsync((void **)&third, 3000, t));
        BASE_CHECK(third != first);
        CALL(cudaEventRecord(join, t));
        CALL(cudaStreamWaitEvent(s, join, 0));
        CALL(cudaGraphDestroy(capture_end(s)));
    }
}

// --- Lives ---

static void memory_that_is_not_freed_outlives_the_graph(void) {
    static const char *const schedules[] = {"eager", "lazy", "random:3"};
    for (int i = 0; i < 3; ++i) {
        machine_start(schedules[i]);
        cudaStream_t s = stream_new();
        char *pointer;
        cudaGraph_t graph = graph_capture(s, 5000, false, &pointer);
        cudaGraphExec_t exec = exec_of(graph);
        BASE_CHECK_EQ(cudaFreeAsync(pointer, s), INVALID); // not allocated yet
        CALL(cudaGraphLaunch(exec, s));
        BASE_CHECK_EQ(cudaGraphLaunch(exec, s), INVALID);
        CALL(cudaGraphExecDestroy(exec));
        CALL(cudaGraphDestroy(graph));
        CALL(cudaStreamSynchronize(s));
        BASE_CHECK_EQ(byte_at(pointer + 4999), 7);
        CALL(cudaDeviceGraphMemTrim(0));
        BASE_CHECK_EQ(reserved(), SIM_PAGE_BYTES);
        BASE_CHECK_EQ(byte_at(pointer + 4999), 7);
        CALL(cudaFreeAsync(pointer, s));
        BASE_CHECK_EQ(cudaFreeAsync(pointer, s), INVALID);
        CALL(cudaStreamSynchronize(s));
        BASE_CHECK_EQ(used(), 0);
        BASE_CHECK_EQ(reserved(), SIM_PAGE_BYTES);
        CALL(cudaDeviceGraphMemTrim(0));
        BASE_CHECK_EQ(sim_used_bytes(0), 0);
        struct cudaPointerAttributes attributes;
        CALL(cudaPointerGetAttributes(&attributes, pointer));
        BASE_CHECK_EQ(attributes.type, cudaMemoryTypeUnregistered);
        cudaGetLastError();
    }
}

static void freed_memory_can_be_allocated_again(void) {
    machine_start("eager");
    cudaStream_t s = stream_new();
    char *pointer;
    cudaGraphExec_t exec = exec_of(graph_capture(s, 5000, false, &pointer));
    for (int i = 0; i < 3; ++i) {
        CALL(cudaGraphLaunch(exec, s));
        BASE_CHECK_EQ(byte_at(pointer), 7);
        BASE_CHECK_EQ(cudaGraphLaunch(exec, s), INVALID);
        if (i == 0)
            CALL(cudaFreeAsync(pointer, s));
        else
            CALL(cudaFree(pointer));
        BASE_CHECK_EQ(cudaFree(pointer), INVALID);
    }
    cudaGetLastError();
}

static void another_graph_frees(void) {
    machine_start("lazy");
    cudaStream_t s = stream_new();
    char *pointer;
    cudaGraphExec_t alloc = exec_of(graph_capture(s, 5000, false, &pointer));
    capture_begin(s);
    CALL(cudaFreeAsync(pointer, s));
    cudaGraphExec_t release = exec_of(capture_end(s));
    BASE_CHECK_EQ(cudaGraphLaunch(release, s), INVALID); // nothing to free
    for (int i = 0; i < 2; ++i) {
        CALL(cudaGraphLaunch(alloc, s));
        CALL(cudaGraphLaunch(release, s));
        BASE_CHECK_EQ(cudaGraphLaunch(release, s), INVALID);
        BASE_CHECK_EQ(cudaFreeAsync(pointer, s), INVALID);
    }
    CALL(cudaStreamSynchronize(s));
    CALL(cudaDeviceGraphMemTrim(0));
    BASE_CHECK_EQ(reserved(), 0);
    CALL(cudaGraphLaunch(alloc, s));
    CALL(cudaStreamSynchronize(s));
    BASE_CHECK_EQ(byte_at(pointer), 7);
    cudaGetLastError();
}

// What the free comes after may use the memory until then.
static void memory_is_in_use_until_another_graphs_free_has_run(void) {
    machine_start("lazy");
    cudaStream_t s = stream_new(), t = stream_new(), u = stream_new();
    char *pointer, *other, *out;
    CALL(cudaMalloc((void **)&out, 1));
    cudaGraphExec_t alloc = exec_of(graph_capture(s, 5000, false, &pointer));
    capture_begin(s);
    CALL(cudaFreeAsync(pointer, s));
    cudaGraphExec_t release = exec_of(capture_end(s));
    capture_begin(s);
    CALL(cudaMallocAsync((void **)&other, 5000, s));
    CALL(cudaMemsetAsync(other, 9, 5000, s));
    CALL(cudaFreeAsync(other, s));
    cudaGraphExec_t third = exec_of(capture_end(s));
    CALL(cudaGraphLaunch(alloc, s));
    CALL(cudaStreamSynchronize(s));
    CALL(cudaMemcpyAsync(out, pointer, 1, cudaMemcpyDeviceToDevice, t));
    CALL(cudaGraphLaunch(release, t));
    CALL(cudaGraphLaunch(third, u));
    CALL(cudaStreamSynchronize(u));
    CALL(cudaStreamSynchronize(t));
    BASE_CHECK_EQ(byte_at(out), 7);
    BASE_CHECK_EQ(reserved(), 2 * SIM_PAGE_BYTES);
}

static void a_launch_frees_what_the_last_one_left(void) {
    machine_start("random:2");
    cudaStream_t s = stream_new();
    char *pointer;
    cudaGraphExec_t exec = exec_with(graph_capture(s, 5000, false, &pointer),
                                     cudaGraphInstantiateFlagAutoFreeOnLaunch);
    for (int i = 0; i < 3; ++i)
        CALL(cudaGraphLaunch(exec, s));
    CALL(cudaGraphExecDestroy(exec));
    CALL(cudaStreamSynchronize(s));
    BASE_CHECK_EQ(byte_at(pointer), 7);
    CALL(cudaFreeAsync(pointer, s)); // once
    BASE_CHECK_EQ(cudaFreeAsync(pointer, s), INVALID);
    cudaGetLastError();
}

static void a_graph_with_memory_has_one_executable(void) {
    machine_start("lazy");
    cudaStream_t s = stream_new();
    char *pointer;
    cudaGraphExec_t second;
    cudaGraph_t copy, graph = graph_capture(s, 5000, true, &pointer);
    cudaGraphExec_t exec = exec_of(graph);
    BASE_CHECK_EQ(cudaGraphInstantiate(&second, graph, 0), INVALID);
    BASE_CHECK_EQ(cudaGraphClone(&copy, graph), cudaErrorNotSupported);
    CALL(cudaGraphLaunch(exec, s));
    CALL(cudaGraphExecDestroy(exec)); // pending, with the memory that the next one has as well
    exec = exec_of(graph);
    cudaStream_t t = stream_new();
    CALL(cudaGraphLaunch(exec, t));
    CALL(cudaGraphLaunch(exec, t));
    CALL(cudaStreamSynchronize(t));
    BASE_CHECK_EQ(sim_stream_pending(s), 0);
    for (int i = 0; i < 2; ++i) { // idle ones may be made from the same pieces of host memory
        CALL(cudaGraphExecDestroy(exec));
        CALL(cudaDeviceGraphMemTrim(0));
        exec = exec_of(graph);
        CALL(cudaGraphLaunch(exec, s));
        CALL(cudaStreamSynchronize(s));
        BASE_CHECK_EQ(reserved(), SIM_PAGE_BYTES);
    }
    cudaGetLastError();
}

// By moving: the node's graph is the one that was captured. Its parent frees what it allocates.
static void a_child_graph_brings_its_memory(void) {
    machine_start("random:4");
    cudaStream_t s = stream_new();
    char *pointer;
    cudaGraphNode_t child_node, node;
    cudaGraph_t parent, got, child = graph_capture(s, 5000, false, &pointer);
    struct cudaGraphNodeParams parameters = {.type = cudaGraphNodeTypeGraph};
    CALL(cudaGraphCreate(&parent, 0));
    parameters.graph.graph = child;
    BASE_CHECK_EQ(cudaGraphAddChildGraphNode(&child_node, parent, NULL, 0, child),
                  cudaErrorNotSupported);
    parameters.graph.ownership = cudaGraphChildGraphOwnershipMove;
    CALL(cudaGraphAddNode(&child_node, parent, NULL, NULL, 0, &parameters));
    CALL(cudaGraphChildGraphNodeGetGraph(child_node, &got));
    struct cudaMemAllocNodeParams alloc = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice, .id = 0}},
        .bytesize = 1,
    };
    BASE_CHECK_EQ(cudaGraphAddMemAllocNode(&node, got, NULL, 0, &alloc), cudaErrorNotSupported);
    BASE_CHECK_EQ(cudaGraphAddMemFreeNode(&node, got, NULL, 0, pointer), cudaErrorNotSupported);
    CALL(cudaGraphAddMemFreeNode(&node, parent, &child_node, 1, pointer));
    cudaGraphExec_t exec = exec_of(parent);
    for (int i = 0; i < 3; ++i)
        CALL(cudaGraphLaunch(exec, s));
    CALL(cudaStreamSynchronize(s));
    BASE_CHECK_EQ(reserved(), SIM_PAGE_BYTES);
    BASE_CHECK_EQ(cudaFreeAsync(pointer, s), INVALID);
    cudaGetLastError();
}

// --- Device memory ---

static void attributes_count_what_is_there(void) {
    uint64_t value = 0;
    size_t free_before, free_after, total;
    machine_start("eager");
    cudaStream_t s = stream_new();
    char *small, *large;
    CALL(cudaMemGetInfo(&free_before, &total));
    cudaGraph_t graphs[2] = {graph_capture(s, 5000, true, &small),
                             graph_capture(s, 10 * MIB, true, &large)};
    cudaGraphExec_t execs[2] = {exec_of(graphs[0]), exec_of(graphs[1])};
    BASE_CHECK_EQ(reserved(), 0);
    CALL(cudaGraphLaunch(execs[0], s));
    BASE_CHECK_EQ(reserved(), 2 * MIB);
    BASE_CHECK_EQ(used(), 2 * MIB);
    CALL(cudaGraphLaunch(execs[1], s));
    BASE_CHECK_EQ(reserved(), 12 * MIB);
    BASE_CHECK_EQ(sim_used_bytes(0), 12 * MIB);
    CALL(cudaMemGetInfo(&free_after, &total));
    BASE_CHECK_EQ(free_before - free_after, 12 * MIB);
    CALL(cudaGraphExecDestroy(execs[1]));
    CALL(cudaGraphDestroy(graphs[1]));
    BASE_CHECK_EQ(reserved(), 12 * MIB); // kept
    BASE_CHECK_EQ(used(), 2 * MIB);
    CALL(cudaDeviceGraphMemTrim(0));
    BASE_CHECK_EQ(reserved(), 0); // nothing runs, and nothing is allocated
    BASE_CHECK_EQ(used(), 0);
    CALL(cudaGraphLaunch(execs[0], s)); // takes memory anew
    BASE_CHECK_EQ(reserved(), 2 * MIB);
    BASE_CHECK_EQ(attribute(cudaGraphMemAttrReservedMemHigh), 12 * MIB);
    BASE_CHECK_EQ(attribute(cudaGraphMemAttrUsedMemHigh), 12 * MIB);
    CALL(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &value));
    BASE_CHECK_EQ(attribute(cudaGraphMemAttrReservedMemHigh), 2 * MIB);
    BASE_CHECK_EQ(attribute(cudaGraphMemAttrUsedMemHigh), 12 * MIB);
    CALL(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &value));
    BASE_CHECK_EQ(attribute(cudaGraphMemAttrUsedMemHigh), 2 * MIB);
    BASE_CHECK_EQ(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &value),
                  INVALID);
    value = 1;
    BASE_CHECK_EQ(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &value), INVALID);
    BASE_CHECK_EQ(cudaDeviceGetGraphMemAttribute(2, cudaGraphMemAttrUsedMemHigh, &value),
                  cudaErrorInvalidDevice);
    BASE_CHECK_EQ(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, NULL), INVALID);
    BASE_CHECK_EQ(cudaDeviceGetGraphMemAttribute(0, 4, &value), INVALID);
    BASE_CHECK_EQ(cudaDeviceGraphMemTrim(-1), cudaErrorInvalidDevice);
    cudaGetLastError();
}

static void an_upload_takes_the_memory(void) {
    machine_start("lazy");
    cudaStream_t s = stream_new();
    char *pointer;
    cudaGraphExec_t exec = exec_of(graph_capture(s, 3 * MIB, true, &pointer));
    CALL(cudaGraphUpload(exec, s));
    BASE_CHECK_EQ(reserved(), 4 * MIB);
    CALL(cudaGraphLaunch(exec, s));
    BASE_CHECK_EQ(reserved(), 4 * MIB);
    CALL(cudaStreamSynchronize(s));
}

// Graphs of one stream never run at the same time.
static void graphs_of_one_stream_share_memory(void) {
    machine_start("lazy");
    cudaStream_t s = stream_new(), t = stream_new();
    char *pointers[3];
    cudaGraphExec_t execs[3];
    for (int i = 0; i < 3; ++i) {
        cudaGraph_t graph = graph_capture(s, 4 * MIB, true, &pointers[i]);
        execs[i] = exec_of(graph);
    }
    BASE_CHECK(pointers[0] != pointers[1]); // addresses are their own
    for (int i = 0; i < 6; ++i)
        CALL(cudaGraphLaunch(execs[i % 2], s));
    BASE_CHECK_EQ(reserved(), 4 * MIB);
    CALL(cudaGraphLaunch(execs[2], t)); // may run at the same time
    BASE_CHECK_EQ(reserved(), 8 * MIB);
    CALL(cudaDeviceSynchronize());
    CALL(cudaGraphLaunch(execs[0], s)); // both are free for either
    CALL(cudaGraphLaunch(execs[1], t));
    BASE_CHECK_EQ(reserved(), 8 * MIB);
    CALL(cudaDeviceSynchronize());
}

// Pending in one stream, launched in another one: it keeps its memory, or waits.
static void a_pending_launch_keeps_its_memory(void) {
    machine_start("lazy");
    cudaStream_t s = stream_new(), t = stream_new();
    char *pointers[2], *out;
    cudaGraphExec_t execs[2];
    CALL(cudaMalloc((void **)&out, 4));
    for (int i = 0; i < 2; ++i) {
        capture_begin(s);
        CALL(cudaMallocAsync((void **)&pointers[i], 2 * MIB, s));
        CALL(cudaMemsetAsync(pointers[i], 10 + i, 2 * MIB, s));
        CALL(cudaMemcpyAsync(out + i, pointers[i], 1, cudaMemcpyDeviceToDevice, s));
        CALL(cudaFreeAsync(pointers[i], s));
        execs[i] = exec_of(capture_end(s));
    }
    CALL(cudaGraphLaunch(execs[0], s));
    CALL(cudaGraphLaunch(execs[1], s)); // the same memory
    CALL(cudaGraphLaunch(execs[0], t)); // waits for it: it could not move while pending in s
    BASE_CHECK_EQ(reserved(), 2 * MIB);
    CALL(cudaStreamSynchronize(t));
    BASE_CHECK_EQ(sim_stream_pending(s), 0);
    BASE_CHECK_EQ(byte_at(out), 10);
    BASE_CHECK_EQ(byte_at(out + 1), 11);
}

// Memory that another graph's allocation keeps is none that a pending launch would need again.
static void a_live_allocation_takes_no_memory_of_pending_launches(void) {
    machine_start("lazy");
    cudaStream_t s = stream_new();
    char *first, *second, *inside;
    cudaGraphExec_t execs[2];
    execs[0] = exec_of(graph_capture(s, 1000, true, &first));
    capture_begin(s);
    CALL(cudaMallocAsync((void **)&inside, 500, s));
    CALL(cudaMallocAsync((void **)&second, 1000, s));
    CALL(cudaMemsetAsync(second, 7, 1000, s));
    CALL(cudaFreeAsync(inside, s));
    execs[1] = exec_of(capture_end(s));
    CALL(cudaGraphLaunch(execs[0], s));
    CALL(cudaGraphLaunch(execs[1], s));
    BASE_CHECK_EQ(reserved(), 4 * MIB);
    CALL(cudaGraphLaunch(execs[0], s));
    CALL(cudaStreamSynchronize(s));
    BASE_CHECK_EQ(byte_at(second), 7);
}

// A smaller piece that is large enough leaves the larger one to who needs it.
static void graphs_take_the_smallest_piece_that_fits(void) {
    machine_start("lazy");
    cudaStream_t s = stream_new(), t = stream_new();
    char *pointer;
    for (int round = 0; round < 2; ++round) {
        cudaGraph_t small = graph_capture(s, 4 * MIB, true, &pointer),
                    large = graph_capture(s, 8 * MIB, true, &pointer);
        CALL(cudaGraphLaunch(exec_of(small), s));
        CALL(cudaGraphLaunch(exec_of(large), t));
        BASE_CHECK_EQ(reserved(), 12 * MIB);
        CALL(cudaDeviceSynchronize());
    }
}

static void out_of_memory_launches_nothing(void) {
    machine_start("eager");
    cudaStream_t s = stream_new();
    char *large, *block, *rest;
    cudaGraphExec_t exec = exec_of(graph_capture(s, 40 * MIB, true, &large));
    CALL(cudaMalloc((void **)&block, 30 * MIB));
    CALL(cudaMemset(block, 1, 4));
    CALL(cudaDeviceSynchronize());
    const uint64_t before = sim_time_ns();
    BASE_CHECK_EQ(cudaGraphLaunch(exec, s), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cudaGraphUpload(exec, s), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(sim_time_ns(), before); // no operation
    BASE_CHECK_EQ(reserved(), 0);
    CALL(cudaFree(block));
    CALL(cudaGraphLaunch(exec, s));
    BASE_CHECK_EQ(cudaMalloc((void **)&rest, 30 * MIB), cudaErrorMemoryAllocation);
    CALL(cudaDeviceGraphMemTrim(0));
    CALL(cudaMalloc((void **)&rest, 30 * MIB));
    BASE_CHECK_EQ(cudaGraphLaunch(exec, s), cudaErrorMemoryAllocation);
    cudaGetLastError();
}

// Room for one of two graphs: the second one takes what the first one's memory was, behind it.
static void scarce_memory_goes_from_graph_to_graph(void) {
    machine_start("lazy");
    cudaStream_t s = stream_new(), t = stream_new();
    char *first, *second, *third;
    cudaGraphExec_t execs[3] = {exec_of(graph_capture(s, 40 * MIB, true, &first)),
                                exec_of(graph_capture(s, 36 * MIB, true, &second)),
                                exec_of(graph_capture(s, 36 * MIB, false, &third))};
    CALL(cudaGraphLaunch(execs[0], s));
    CALL(cudaGraphLaunch(execs[1], t)); // waits
    CALL(cudaStreamSynchronize(t));
    BASE_CHECK_EQ(sim_stream_pending(s), 0);
    BASE_CHECK_EQ(reserved(), 40 * MIB);
    CALL(cudaGraphLaunch(execs[2], t)); // keeps it
    BASE_CHECK_EQ(cudaGraphLaunch(execs[0], s), cudaErrorMemoryAllocation);
    CALL(cudaFreeAsync(third, t));
    CALL(cudaGraphLaunch(execs[0], s));
    CALL(cudaDeviceSynchronize());
    cudaGetLastError();
}

// --- Wrong programs ---

static void touch(const void *argument) {
    BASE_CHECK(sim_kernel_bytes(*(char *const *)argument, 1, true) == NULL);
}

static void memory_that_is_not_there_faults(void) {
    machine_start("eager");
    cudaStream_t s = stream_new();
    char *pointer;
    cudaGraph_t graph = graph_capture(s, 5000, true, &pointer);
    CALL(sim_launch(s, "touch", touch, &pointer, sizeof pointer));
    BASE_CHECK_EQ(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
    machine_start("lazy");
    graph = graph_capture(s = stream_new(), 5000, true, &pointer);
    CALL(cudaGraphLaunch(exec_of(graph), s));
    CALL(cudaStreamSynchronize(s));
    CALL(cudaDeviceGraphMemTrim(0));
    CALL(cudaMemsetAsync(pointer, 1, 1, s));
    BASE_CHECK_EQ(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
    machine_start("eager");
}

static void other_devices_need_rights(void) {
    struct cudaMemAccessDesc read = {.location = {.type = cudaMemLocationTypeDevice, .id = 1},
                                     .flags = cudaMemAccessFlagsProtRead};
    struct cudaMemAllocNodeParams parameters = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice, .id = 0}},
        .accessDescs = &read,
        .accessDescCount = 1,
        .bytesize = 4096,
    },
                                  kept;
    cudaGraphNode_t node;
    cudaGraph_t graph;
    char host[4];
    machine_start("eager");
    CALL(cudaGraphCreate(&graph, 0));
    CALL(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters));
    CALL(cudaGraphMemAllocNodeGetParams(node, &kept));
    BASE_CHECK(kept.accessDescCount == 1 && kept.accessDescs != &read &&
               kept.accessDescs[0].location.id == 1 &&
               kept.accessDescs[0].flags == cudaMemAccessFlagsProtRead);
    CALL(cudaGraphLaunch(exec_of(graph), NULL));
    CALL(cudaSetDevice(1));
    cudaStream_t s = stream_new();
    CALL(cudaMemcpyAsync(host, parameters.dptr, 4, cudaMemcpyDeviceToHost, s));
    BASE_CHECK_EQ(cudaMemsetAsync(parameters.dptr, 1, 4, s), INVALID);
    CALL(cudaSetDevice(0));
    cudaGetLastError();
}

// Contents of before are no longer there, inside a graph and after a free.
static void checked_mode_poisons(void) {
    machine_start_with("eager", (struct sim_options){.device_count = 1, .checked = true});
    cudaStream_t s = stream_new();
    char *pointer;
    unsigned char *out, seen[2];
    CALL(cudaMalloc((void **)&out, 2));
    capture_begin(s);
    CALL(cudaMallocAsync((void **)&pointer, 5000, s));
    CALL(cudaMemcpyAsync(out, pointer + 4999, 1, cudaMemcpyDeviceToDevice, s));
    CALL(cudaMemsetAsync(pointer, 7, 5000, s));
    CALL(cudaMemcpyAsync(out + 1, pointer + 4999, 1, cudaMemcpyDeviceToDevice, s));
    cudaGraphExec_t exec = exec_of(capture_end(s));
    for (int i = 0; i < 2; ++i) {
        CALL(cudaGraphLaunch(exec, s));
        CALL(cudaStreamSynchronize(s));
        CALL(cudaMemcpy(seen, out, 2, cudaMemcpyDeviceToHost));
        BASE_CHECK(seen[0] != 0 && seen[0] != 7);
        BASE_CHECK_EQ(seen[1], 7);
        CALL(cudaFreeAsync(pointer, s));
        CALL(cudaStreamSynchronize(s));
        BASE_CHECK(*(unsigned char *)sim_device_bytes(pointer + 4999) != 7);
    }
    BASE_CHECK_EQ(sim_misuse_count(), 0);
    BASE_CHECK_EQ(cudaFreeAsync(pointer, s), INVALID);
    BASE_CHECK_EQ(sim_misuse_count(), 1);
    CALL(cudaGraphLaunch(exec, s));
    BASE_CHECK_EQ(cudaGraphLaunch(exec, s), INVALID);
    BASE_CHECK_EQ(sim_misuse_count(), 2);
    cudaGetLastError();
}

static void the_machine_stops_with_everything_in_use(void) {
    machine_start("lazy");
    cudaStream_t s = stream_new();
    char *first, *second, *third;
    cudaGraph_t graph = graph_capture(s, 5000, false, &first);
    cudaGraphExec_t exec = exec_of(graph);
    CALL(cudaGraphLaunch(exec, s));
    CALL(cudaFreeAsync(first, s));
    CALL(cudaGraphLaunch(exec, s));
    CALL(cudaGraphLaunch(exec_of(graph_capture(s, 3 * MIB, false, &second)), s));
    capture_begin(s);
    CALL(cudaMallocAsync((void **)&third, 100, s));
    machine_start("eager");
    BASE_CHECK_EQ(sim_used_bytes(0), 0);
    BASE_CHECK_EQ(reserved(), 0);
    BASE_CHECK_EQ(attribute(cudaGraphMemAttrReservedMemHigh), 0);
}

// --- Random programs: each graph checks its own bytes, whatever memory it got ---

// The sanitizers' builds are ten times as slow.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SEEDS 5
#else
#define SEEDS 20
#endif

enum { GRAPHS = 6, STREAMS = 3, ROUNDS = 40 };

struct check {
    const unsigned char *bytes;
    size_t size;
    unsigned char value;
};
static void bytes_check(const void *argument) {
    const struct check *check = argument;
    const unsigned char *bytes = sim_kernel_bytes(check->bytes, check->size, false);
    BASE_CHECK(bytes != NULL);
    BASE_CHECK_EQ(bytes[0], check->value);
    BASE_CHECK_EQ(bytes[check->size - 1], check->value);
}

static void bytes_check_in(cudaStream_t stream, char *pointer, size_t size, unsigned char value) {
    const struct check check = {(unsigned char *)pointer, size, value};
    CALL(sim_launch(stream, "check", bytes_check, &check, sizeof check));
}

static void bytes_use(cudaStream_t stream, char *pointer, size_t size, unsigned char value) {
    CALL(cudaMemsetAsync(pointer, value, size, stream));
    bytes_check_in(stream, pointer, size, value);
}

struct owned {
    cudaGraphExec_t exec;
    char *inside, *escaping; // NULL: none
    size_t size;
    unsigned char value;
    bool live;
    int stream; // where it was launched last
};

static void owned_make(struct owned *owned, struct base_random *random, cudaStream_t stream,
                       int number) {
    *owned = (struct owned){.size = base_random_log_between(random, 1, 6 * MIB),
                            .value = (unsigned char)(number + 1)};
    capture_begin(stream);
    CALL(cudaMallocAsync((void **)&owned->inside, owned->size, stream));
    bytes_use(stream, owned->inside, owned->size, owned->value);
    if (base_random_chance(random, 0.4)) {
        CALL(cudaMallocAsync((void **)&owned->escaping, owned->size, stream));
        bytes_use(stream, owned->escaping, owned->size, owned->value ^ 0x80);
        bytes_check_in(stream, owned->inside, owned->size, owned->value);
    }
    CALL(cudaFreeAsync(owned->inside, stream));
    cudaGraph_t graph = capture_end(stream);
    owned->exec = exec_of(graph);
    CALL(cudaGraphDestroy(graph));
}

// In the stream of its launch, so that all is ordered.
static void owned_free(struct owned *owned, const cudaStream_t *streams) {
    bytes_check_in(streams[owned->stream], owned->escaping, owned->size, owned->value ^ 0x80);
    CALL(cudaFreeAsync(owned->escaping, streams[owned->stream]));
    owned->live = false;
}

static void random_programs_keep_their_bytes(void) {
    static const char *const schedules[] = {"eager", "lazy", "random:11", "random:12", "timed"};
    for (uint64_t seed = 0; seed < SEEDS; ++seed) {
        struct base_random random = base_random_init(seed, "graph memory");
        struct owned owned[GRAPHS];
        cudaStream_t streams[STREAMS];
        base_check_context("seed %" PRIu64, seed);
        machine_start_with(schedules[seed % 5],
                           (struct sim_options){.device_count = 1,
                                                .capacity_bytes = 40 * MIB,
                                                .addresses = seed % 2 == 0
                                                                 ? SIM_ADDRESSES_REUSED
                                                                 : SIM_ADDRESSES_ASCENDING});
        for (int i = 0; i < STREAMS; ++i)
            streams[i] = stream_new();
        for (int i = 0; i < GRAPHS; ++i)
            owned_make(&owned[i], &random, streams[0], i);
        int refused = 0;
        for (int i = 0; i < ROUNDS; ++i) {
            struct owned *one = &owned[base_random_below(&random, GRAPHS)];
            const int stream = (int)base_random_below(&random, STREAMS);
            if (one->live) {
                owned_free(one, streams);
            } else if (base_random_chance(&random, 0.1)) {
                CALL(cudaGraphExecDestroy(one->exec));
                owned_make(one, &random, streams[stream], i);
            } else if (base_random_chance(&random, 0.1)) {
                CALL(cudaDeviceGraphMemTrim(0));
            } else {
                const cudaError_t error = cudaGraphLaunch(one->exec, streams[stream]);
                refused += error == cudaErrorMemoryAllocation;
                BASE_CHECK(error == cudaSuccess || error == cudaErrorMemoryAllocation);
                one->live = error == cudaSuccess && one->escaping != NULL;
                one->stream = stream;
            }
            BASE_CHECK_EQ(reserved(), sim_used_bytes(0));
        }
        for (int i = 0; i < GRAPHS; ++i)
            if (owned[i].live)
                owned_free(&owned[i], streams);
        CALL(cudaDeviceSynchronize());
        CALL(cudaDeviceGraphMemTrim(0));
        BASE_CHECK_EQ(sim_used_bytes(0), 0);
        BASE_CHECK_LT(refused, ROUNDS / 2);
        cudaGetLastError();
    }
    base_check_context(NULL);
}

int main(void) {
    an_address_is_fixed_with_its_node();
    nodes_that_cannot_be_are_refused();
    an_address_is_used_again_inside_a_graph();
    an_address_in_use_again_is_not_used_thrice();
    memory_that_is_not_freed_outlives_the_graph();
    freed_memory_can_be_allocated_again();
    another_graph_frees();
    memory_is_in_use_until_another_graphs_free_has_run();
    a_launch_frees_what_the_last_one_left();
    a_graph_with_memory_has_one_executable();
    a_child_graph_brings_its_memory();
    attributes_count_what_is_there();
    an_upload_takes_the_memory();
    graphs_of_one_stream_share_memory();
    a_pending_launch_keeps_its_memory();
    a_live_allocation_takes_no_memory_of_pending_launches();
    graphs_take_the_smallest_piece_that_fits();
    out_of_memory_launches_nothing();
    scarce_memory_goes_from_graph_to_graph();
    memory_that_is_not_there_faults();
    other_devices_need_rights();
    checked_mode_poisons();
    the_machine_stops_with_everything_in_use();
    random_programs_keep_their_bytes();
}
