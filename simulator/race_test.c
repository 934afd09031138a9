// The race checker, rule by rule and call by call: what the litmus cases do not have. Each program
// runs with numerics on and off, and asks for the reports by the labels of the two operations.
#include "base/check.h"
#include "base/size.h"
#include "simulator/sim.h"
#include "simulator/sim_race.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 4096

static enum sim_numerics numerics;
static cudaStream_t s, t;
static cudaEvent_t e, f;
static uint64_t asked; // reports that were asked for

static void must(cudaError_t error) { BASE_CHECK_EQ(error, cudaSuccess); }
static void must_driver(CUresult error) { BASE_CHECK_EQ(error, CUDA_SUCCESS); }
static void no_body(const void *argument) { (void)argument; }
static void no_host_body(void *argument) { (void)argument; }

static void start(void) {
    must(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    must(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    must(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    must(cudaEventCreateWithFlags(&f, cudaEventDisableTiming));
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    asked = 0;
}

static void begin(void) {
    BASE_CHECK_EQ(sim_schedule("eager"), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.numerics = numerics,
                                                      .device_count = 2,
                                                      .capacity_bytes = BASE_GIB}),
                  BASE_OK);
    must(cudaSetDevice(0));
    start();
}

// All that was reported has been asked for.
static void end(void) {
    sim_race_label(NULL);
    sim_race_stop();
    for (uint64_t i = 0; asked != sim_race_count(SIM_RACE_RULE_COUNT) &&
                         sim_race_report_at(i) != NULL;
         ++i)
        fprintf(stderr, "%s\n", sim_race_report_at(i)->text);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), asked);
}

static const struct sim_race_report *find(enum sim_race_rule rule, const char *first,
                                          const char *second) {
    for (uint64_t i = 0; i < sim_race_count(SIM_RACE_RULE_COUNT); ++i) {
        const struct sim_race_report *report = sim_race_report_at(i);
        if (report->rule == rule && strcmp(report->first.label, first) == 0 &&
            strcmp(report->second.label, second) == 0)
            return report;
    }
    return NULL;
}

static const struct sim_race_report *expect(enum sim_race_rule rule, const char *first,
                                            const char *second) {
    const struct sim_race_report *report = find(rule, first, second);
    base_check_context("%s %s %s; %llu reports", sim_race_rule_name(rule), first, second,
                       (unsigned long long)sim_race_count(SIM_RACE_RULE_COUNT));
    BASE_CHECK(report != NULL);
    base_check_context(NULL);
    ++asked;
    return report;
}

static char *device_memory(size_t size) {
    void *pointer;
    must(cudaMalloc(&pointer, size));
    return pointer;
}

static char *written_memory(size_t size) {
    char *pointer = device_memory(size);
    must(cudaMemset(pointer, 0, size));
    must(cudaDeviceSynchronize());
    return pointer;
}

static void launch(const char *label, cudaStream_t stream, const struct sim_access *accesses,
                   size_t count) {
    sim_race_label(label);
    must(sim_launch_kernel(stream, &(struct sim_kernel){.name = label,
                                                        .body = no_body,
                                                        .accesses = accesses,
                                                        .access_count = count}));
}

static void kernel(const char *label, cudaStream_t stream, enum sim_access_mode mode,
                   const void *pointer, size_t size) {
    launch(label, stream, &(struct sim_access){mode, pointer, .size = size}, 1);
}

static void reads(const char *label, cudaStream_t stream, const void *pointer, size_t size) {
    kernel(label, stream, SIM_ACCESS_READ, pointer, size);
}

static void writes(const char *label, cudaStream_t stream, const void *pointer, size_t size) {
    kernel(label, stream, SIM_ACCESS_WRITE, pointer, size);
}

// --- Memory that is not there ---

static void memory_beyond_an_allocation_is_none(void) {
    begin();
    char *p = device_memory(SIZE);
    writes("inside", s, p, SIZE);
    writes("beyond", s, p + SIZE - 8, 16);
    const struct sim_race_report *report = expect(SIM_RACE_UNMAPPED, "beyond", "");
    BASE_CHECK_EQ(report->start - (uint64_t)(uintptr_t)p, SIZE);
    BASE_CHECK_EQ(report->size, 8);
    end();
}

static void memory_that_never_was_is_none(void) {
    static char bytes[64];
    begin();
    device_memory(SIZE);
    writes("nothing", s, NULL, 8);
    expect(SIM_RACE_UNMAPPED, "nothing", "");
    writes("nowhere", s, (void *)(uintptr_t)0xfedcba98000000, 8); // no process has memory there
    expect(SIM_RACE_UNMAPPED, "nowhere", "");
    if (numerics == SIM_NUMERICS_ON) { // else the process may have memory of its own there
        writes("far above", s, (char *)device_memory(SIZE) + 64 * BASE_MIB, 8);
        expect(SIM_RACE_UNMAPPED, "far above", "");
    }
    writes("the program's own", s, bytes, sizeof bytes); // some systems allow it
    end();
}

static void memory_freed_is_freed_and_later_none(void) {
    begin();
    char *p = device_memory(SIZE), *q = device_memory(SIZE);
    BASE_CHECK(q > p);
    writes("before", s, p, SIZE);
    sim_race_label("free");
    must(cudaFree(p));
    writes("after", s, p, 16);
    expect(SIM_RACE_USE_AFTER_FREE, "free", "after");
    sim_race_label("many frees");
    for (int i = 0; i < 5000; ++i)
        must(cudaFree(device_memory(16)));
    writes("long after", s, p, 16);
    expect(SIM_RACE_UNMAPPED, "long after", "");
    end();
}

static void mappings_come_and_go(void) {
    const size_t size = SIM_PAGE_BYTES;
    CUdeviceptr address;
    CUmemGenericAllocationHandle handle;
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    CU_MEM_ACCESS_FLAGS_PROT_READ};
    const CUmemAccessDesc full = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    begin();
    must_driver(cuInit(0));
    must_driver(cuMemAddressReserve(&address, 2 * size, 0, 0, 0));
    must_driver(cuMemCreate(&handle, size, &properties, 0));
    must_driver(cuMemMap(address, size, 0, handle, 0));
    char *p = (char *)(uintptr_t)address;
    reads("no rights", s, p, 8);
    expect(SIM_RACE_UNMAPPED, "no rights", "");
    must_driver(cuMemSetAccess(address, size, &access, 1));
    writes("not for writing", s, p, 8);
    expect(SIM_RACE_UNMAPPED, "not for writing", "");
    must_driver(cuMemSetAccess(address, size, &full, 1));
    writes("fine", s, p, size);
    must(cudaStreamSynchronize(s));
    writes("pending", t, p, 8);
    sim_race_label("unmap");
    must_driver(cuMemUnmap(address, size));
    expect(SIM_RACE_USE_AFTER_FREE, "pending", "unmap");
    writes("after", s, p, 8);
    const struct sim_race_report *report = expect(SIM_RACE_UNMAPPED, "unmap", "after");
    base_check_context("%s", report->text);
    BASE_CHECK(strstr(report->text, "given up by cuMemUnmap at") != NULL);
    base_check_context(NULL);
    // The memory keeps what was written when it is mapped again.
    must_driver(cuMemMap(address + size, size, 0, handle, 0));
    must_driver(cuMemSetAccess(address + size, size, &full, 1));
    reads("elsewhere", s, p + size, size);
    end();
}

// The call names the devices, so the rights of the one whose stream it is on do not count.
static void a_copy_between_devices_needs_the_rights_of_each_side(void) {
    const size_t size = SIM_PAGE_BYTES;
    CUdeviceptr address;
    CUmemGenericAllocationHandle handle;
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    begin();
    must_driver(cuInit(0));
    must_driver(cuMemAddressReserve(&address, size, 0, 0, 0));
    must_driver(cuMemCreate(&handle, size, &properties, 0));
    must_driver(cuMemMap(address, size, 0, handle, 0));
    must_driver(cuMemSetAccess(address, size, &access, 1));
    must(cudaSetDevice(1));
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    char *const from = device_memory(64), *const to = (char *)(uintptr_t)address;
    must(cudaMemsetAsync(from, 1, 64, stream));
    must(cudaMemcpyPeerAsync(to, 0, from, 1, 64, stream));
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    must(cudaMemcpyPeerAsync(to, 0, from, 1, 64, stream));
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphInstantiate(&exec, graph, 0));
    must(cudaGraphLaunch(exec, stream));
    must(cudaStreamSynchronize(stream));
    must(cudaGraphExecDestroy(exec));
    must(cudaGraphDestroy(graph));
    sim_race_label("kernel");
    writes("kernel", stream, to, 8);
    expect(SIM_RACE_UNMAPPED, "kernel", "");
    must(cudaSetDevice(0));
    end();
}

static void memory_of_a_pool_that_was_given_back_is_none(void) {
    void *p;
    begin();
    must(cudaMallocAsync(&p, SIZE, s));
    writes("write", s, p, SIZE);
    must(cudaFreeAsync(p, s));
    must(cudaStreamSynchronize(s)); // the pool keeps nothing
    writes("after", s, p, SIZE);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 1);
    ++asked;
    end();
}

static void registered_memory_is_the_programs_again(void) {
    static char bytes[2 * SIZE];
    begin();
    must(cudaHostRegister(bytes, sizeof bytes, cudaHostRegisterDefault));
    reads("read", s, bytes, sizeof bytes); // written, as far as anybody can know
    must(cudaHostUnregister(bytes));
    BASE_CHECK(sim_host_access(bytes, 16, true));
    end();
}

// --- Memory that nobody wrote ---

static void what_the_host_writes_untold_may_have_been_written(void) {
    void *pinned;
    char *p;
    begin();
    must(cudaHostAlloc(&pinned, SIZE, cudaHostAllocDefault));
    p = device_memory(SIZE);
    reads("untold", s, pinned, SIZE);
    must(cudaMemcpyAsync(p, pinned, SIZE, cudaMemcpyDefault, s));
    reads("copied untold", s, p, SIZE);
    must(cudaStreamSynchronize(s));
    BASE_CHECK(sim_host_access(pinned, SIZE / 2, true)); // this program tells
    reads("told", s, pinned, SIZE / 2);
    reads("not written", s, (char *)pinned + SIZE / 2, 1);
    must(cudaStreamSynchronize(s));
    expect(SIM_RACE_UNINITIALISED, "not written", "");
    end();
}

static void undefined_bytes_go_where_a_strided_copy_takes_them(void) {
    begin();
    // Of 8 rows of 16 bytes, 32 apart, the columns from 4 to 11 are written.
    char *p = device_memory(256), *q = device_memory(256), *o = written_memory(64);
    must(cudaMemset2DAsync(p + 4, 32, 1, 8, 8, s));
    must(cudaMemcpy2DAsync(q, 20, p, 32, 16, 8, cudaMemcpyDefault, s));
    const struct sim_access inner[] = {{SIM_ACCESS_READ, q + 4, 8, 8, 20, 0}};
    launch("written columns", s, inner, 1);
    const struct sim_access left[] = {{SIM_ACCESS_READ, q, 4, 8, 20, 0}};
    launch("left columns", s, left, 1);
    reads("row 3, right", s, q + 3 * 20 + 12, 4);
    // Packed into one piece: row by row.
    must(cudaMemcpy2DAsync(o, 8, q + 4, 20, 8, 8, cudaMemcpyDefault, s));
    reads("packed", s, o, 64);
    must(cudaMemcpy2DAsync(o, 8, q + 8, 20, 8, 8, cudaMemcpyDefault, s));
    reads("packed, left half of a row", s, o + 40, 4);
    reads("packed, right half of a row", s, o + 44, 4);
    must(cudaStreamSynchronize(s));
    expect(SIM_RACE_UNINITIALISED, "left columns", "");
    expect(SIM_RACE_UNINITIALISED, "row 3, right", "");
    const struct sim_race_report *report =
        expect(SIM_RACE_UNINITIALISED, "packed, right half of a row", "");
    BASE_CHECK_EQ(report->start - (uint64_t)(uintptr_t)o, 44);
    BASE_CHECK_EQ(report->size, 4);
    end();
}

static void undefined_bytes_reach_pageable_memory(void) {
    static char bytes[64];
    begin();
    char *p = device_memory(64);
    must(cudaMemsetAsync(p, 1, 32, s));
    must(cudaMemcpyAsync(bytes, p, 64, cudaMemcpyDefault, s));
    must(cudaStreamSynchronize(s));
    sim_race_label("written");
    sim_host_access(bytes, 32, false);
    sim_race_label("not written");
    sim_host_access(bytes + 30, 4, false);
    expect(SIM_RACE_UNINITIALISED, "not written", "");
    // What becomes of it later is not told.
    must(cudaMemcpyAsync(p, bytes, 64, cudaMemcpyDefault, s));
    reads("copied back", s, p, 64);
    sim_host_access(bytes, 64, true);
    sim_host_access(bytes, 64, false);
    end();
}

static void a_later_write_without_order_makes_it_a_race(void) {
    begin();
    char *p = device_memory(SIZE), *q = device_memory(SIZE);
    reads("read", s, p, 64);
    writes("write", t, p + 32, 8);
    expect(SIM_RACE_READ_WRITE, "read", "write");
    // Through a copy: who takes it may take what a write defined meanwhile.
    must(cudaMemcpyAsync(q, p + 1024, 64, cudaMemcpyDefault, s));
    reads("copied", s, q, 64);
    sim_race_label("copy");
    must(cudaMemcpyAsync(q + 1024, p + 2048, 64, cudaMemcpyDefault, s));
    reads("copied, defined perhaps", s, q + 1024, 64);
    writes("late", t, p + 2048, 64);
    must(cudaDeviceSynchronize());
    expect(SIM_RACE_UNINITIALISED, "copied", "");
    expect(SIM_RACE_READ_WRITE, "copy", "late");
    end();
}

static void nothing_is_said_before_it_is_certain(void) {
    begin();
    char *p = device_memory(SIZE);
    reads("read", s, p, 64);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0);
    must(cudaStreamSynchronize(s));
    expect(SIM_RACE_UNINITIALISED, "read", "");
    reads("last", s, p + 64, 64);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 1);
    sim_race_label(NULL);
    sim_race_stop();
    expect(SIM_RACE_UNINITIALISED, "last", "");
    end();
}

static void an_update_uses_what_it_updates(void) {
    begin();
    char *p = device_memory(SIZE);
    kernel("update", s, SIM_ACCESS_ATOMIC, p, 4);
    kernel("other update", t, SIM_ACCESS_ATOMIC, p, 4);
    const struct sim_access both[] = {{SIM_ACCESS_WRITE, p + 8, .size = 4},
                                      {SIM_ACCESS_ATOMIC, p + 8, .size = 4},
                                      {SIM_ACCESS_READ, p + 8, .size = 4}};
    launch("all in one", s, both, 3);
    const struct sim_access carries[] = {{SIM_ACCESS_CARRY, p + 16, .size = 4},
                                         {SIM_ACCESS_WRITE, p + 8, .size = 4}};
    launch("carries", s, carries, 2);
    reads("carried", s, p + 8, 4);
    must(cudaDeviceSynchronize());
    expect(SIM_RACE_UNINITIALISED, "update", "");
    expect(SIM_RACE_UNINITIALISED, "other update", "");
    expect(SIM_RACE_UNINITIALISED, "carried", "");
    end();
}

// --- Who accesses ---

static void host_functions_access_in_their_streams_order(void) {
    void *pinned;
    begin();
    must(cudaHostAlloc(&pinned, SIZE, cudaHostAllocDefault));
    sim_next_accesses(&(struct sim_access){SIM_ACCESS_WRITE, pinned, .size = 64}, 1);
    sim_race_label("function");
    must(cudaLaunchHostFunc(s, no_host_body, NULL));
    must(cudaLaunchHostFunc(t, no_host_body, NULL)); // touches nothing
    sim_race_label("host");
    sim_host_access(pinned, 1, false);
    expect(SIM_RACE_HOST_ACCESS, "function", "host");
    must(cudaStreamSynchronize(s));
    sim_host_access(pinned, 1, false);
    end();
}

static void host_nodes_have_accesses_too(void) {
    void *pinned;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    const struct cudaHostNodeParams parameters = {.fn = no_host_body};
    begin();
    must(cudaHostAlloc(&pinned, SIZE, cudaHostAllocDefault));
    must(cudaGraphCreate(&graph, 0));
    sim_next_accesses(&(struct sim_access){SIM_ACCESS_WRITE, pinned, .size = 64}, 1);
    sim_race_label("node");
    must(cudaGraphAddHostNode(&node, graph, NULL, 0, &parameters));
    must(cudaGraphInstantiate(&exec, graph, 0));
    sim_race_label("launch");
    must(cudaGraphLaunch(exec, s));
    writes("write", t, pinned, 1);
    const struct sim_race_report *report = expect(SIM_RACE_WRITE_WRITE, "launch", "write");
    BASE_CHECK(strcmp(report->first.node, "node") == 0);
    end();
}

static void values_are_signs_that_order_who_sees_them(void) {
    void *pinned;
    begin();
    char *p = written_memory(SIZE);
    must(cudaHostAlloc(&pinned, SIZE, cudaHostAllocDefault));
    const CUdeviceptr sign = (CUdeviceptr)(uintptr_t)pinned;
    writes("first", s, p, 8);
    must_driver(cuStreamWriteValue32((CUstream)s, sign, 1, 0));
    writes("second", s, p + 8, 8);
    must_driver(cuStreamWriteValue32((CUstream)s, sign, 2, 0));
    must_driver(cuStreamWriteValue32((CUstream)t, sign, 3, 0)); // no race of signs
    sim_value_seen(pinned, 1);
    writes("behind the first", t, p, 8);
    writes("not behind the second", t, p + 8, 8);
    expect(SIM_RACE_WRITE_WRITE, "second", "not behind the second");
    sim_value_seen(pinned, 2);
    writes("behind both", t, p + 8, 8);
    reads("reads a sign", t, pinned, 4);
    must(cudaDeviceSynchronize());
    sim_race_stop();
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_READ_WRITE), 0); // t wrote it last, s is seen
    end();
}

static void a_kernel_that_reads_a_sign_races_with_who_writes_it(void) {
    void *pinned;
    begin();
    must(cudaHostAlloc(&pinned, SIZE, cudaHostAllocDefault));
    sim_race_label("value");
    must_driver(cuStreamWriteValue32((CUstream)s, (CUdeviceptr)(uintptr_t)pinned, 1, 0));
    reads("read", t, pinned, 4);
    expect(SIM_RACE_READ_WRITE, "value", "read");
    end();
}

// --- What orders ---

static void a_pools_own_waits_order_nothing(void) {
    void *p, *q;
    begin();
    char *x = written_memory(SIZE);
    const size_t most = 600 * BASE_MIB; // two do not fit
    sim_stream_hold(s, true);
    must(cudaMallocAsync(&p, most, s));
    writes("write", s, x, 8);
    must(cudaFreeAsync(p, s)); // pending
    must(cudaMallocAsync(&q, most, t)); // behind the free, by the pool's wait
    writes("other stream", t, x, 8);
    expect(SIM_RACE_WRITE_WRITE, "write", "other stream");
    writes("its memory", t, q, most); // no race with what had it before
    sim_stream_hold(s, false);
    end();
}

static void a_measured_time_says_that_both_events_came(void) {
    cudaEvent_t first, last;
    float milliseconds;
    begin();
    char *p = written_memory(SIZE);
    must(cudaEventCreate(&first));
    must(cudaEventCreate(&last));
    must(cudaEventRecord(first, s));
    writes("write", s, p, 8);
    must(cudaEventRecord(last, s));
    must(cudaEventElapsedTime(&milliseconds, first, last));
    writes("other stream", t, p, 8);
    end();
}

static void events_of_graphs_cover_launches(void) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    begin();
    char *p = written_memory(SIZE);
    must(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    must(cudaEventRecordWithFlags(e, s, cudaEventRecordDefault));
    writes("node", s, p, 8);
    must(cudaEventRecordWithFlags(f, s, cudaEventRecordExternal));
    must(cudaStreamEndCapture(s, &graph));
    must(cudaGraphInstantiate(&exec, graph, 0));
    sim_race_label("launch");
    must(cudaGraphLaunch(exec, s));
    writes("too early", t, p, 8);
    expect(SIM_RACE_WRITE_WRITE, "launch", "too early");
    must(cudaStreamWaitEvent(s, f, 0));
    must(cudaEventRecord(e, t));
    must(cudaStreamWaitEvent(s, e, 0));
    must(cudaGraphLaunch(exec, s));
    must(cudaStreamWaitEvent(t, f, 0)); // recorded by the launch
    writes("behind", t, p, 8);
    end();
}

static void threads_hand_over_what_they_did(void) {
    static char bytes[16];
    BASE_CHECK_EQ(sim_reading("threads", "strict"), BASE_OK);
    begin();
    char *p = written_memory(SIZE);
    writes("write", s, p, 8);
    must(cudaStreamSynchronize(s));
    sim_handoff_signal(bytes);
    sim_handoff_await(bytes);
    sim_host_access(bytes, 8, true);
    sim_host_access(bytes, 8, true); // one thread after itself
    writes("other stream", t, p, 8);
    end();
    BASE_CHECK_EQ(sim_reading("threads", "shared"), BASE_OK);
}

static void accesses_may_claim_more_than_there_is(void) {
    begin();
    char *p = written_memory(SIZE);
    launch("wraps", s, &(struct sim_access){SIM_ACCESS_WRITE, p, .size = SIZE_MAX}, 1);
    expect(SIM_RACE_UNMAPPED, "wraps", "");
    launch("rows", t, &(struct sim_access){SIM_ACCESS_READ, p, 8, SIZE_MAX, SIZE_MAX / 2, 0}, 1);
    expect(SIM_RACE_READ_WRITE, "wraps", "rows");
    writes("behind all", s, (void *)(UINTPTR_MAX - 7), 64);
    sim_host_access((void *)(UINTPTR_MAX - 7), SIZE_MAX, true);
    sim_block_give(sim_block_take((void *)(UINTPTR_MAX - 7), 64, s, "behind all"));
    must(cudaDeviceSynchronize());
    const uint64_t block = sim_block_take(p, SIZE_MAX, s, "wraps");
    writes("block", s, p, 8);
    sim_block_give(block);
    writes("no block", s, p, 8);
    end();
}

// Rows that no access repeats become pieces in the end, and count as before.
static void many_strided_ranges_are_remembered(void) {
    begin();
    char *p = written_memory(16384);
    for (size_t i = 0; i < 1500; ++i) {
        const size_t start = i == 0 ? 0 : 1 + i % 37;
        const struct sim_access access = {SIM_ACCESS_WRITE, p + start, 1 + i % 3, 3, 4096 + i, 0};
        launch(i == 0 ? "first" : "others", s, &access, 1);
    }
    writes("its last row", t, p + 8192, 1);
    expect(SIM_RACE_WRITE_WRITE, "first", "its last row");
    end();
}

// What is behind the allocation of an earlier launch only means that one's memory, which is gone.
static void a_replay_can_use_what_the_last_one_freed(void) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *m;
    begin();
    must(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    must(cudaEventRecord(e, s));
    must(cudaStreamWaitEvent(t, e, 0)); // before the allocation
    must(cudaMallocAsync(&m, SIZE, s));
    reads("read", t, m, SIZE);
    must(cudaEventRecord(f, t));
    must(cudaStreamWaitEvent(s, f, 0));
    must(cudaFreeAsync(m, s));
    must(cudaStreamEndCapture(s, &graph));
    must(cudaGraphInstantiate(&exec, graph, 0));
    sim_race_label("one");
    must(cudaGraphLaunch(exec, s));
    expect(SIM_RACE_USE_BEFORE_ALLOC, "one", "one");
    sim_race_label("two");
    must(cudaGraphLaunch(exec, s));
    expect(SIM_RACE_USE_AFTER_FREE, "one", "two");
    end();
}

// Of so many reads only the last of each chain is kept; here each is one.
static void each_of_many_parallel_readers_counts(void) {
    enum { READERS = 300 };
    static cudaGraphNode_t nodes[READERS];
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t writer;
    begin();
    char *p = written_memory(SIZE);
    must(cudaGraphCreate(&graph, 0));
    const struct sim_access read = {SIM_ACCESS_READ, p, .size = 64};
    const struct sim_access write = {SIM_ACCESS_WRITE, p, .size = 64};
    struct sim_kernel kernel_of = {.name = "node", .body = no_body, .access_count = 1};
    size_t behind = 0;
    for (int i = 0; i < READERS; ++i) {
        cudaGraphNode_t node;
        sim_race_label(i == 77 ? "forgotten" : "reader");
        kernel_of.accesses = &read;
        must(sim_graph_add_kernel(&node, graph, NULL, 0, &kernel_of));
        if (i != 77)
            nodes[behind++] = node;
    }
    sim_race_label("writer");
    kernel_of.accesses = &write;
    must(sim_graph_add_kernel(&writer, graph, nodes, behind, &kernel_of));
    must(cudaGraphInstantiate(&exec, graph, 0));
    sim_race_label("launch");
    must(cudaGraphLaunch(exec, s));
    const struct sim_race_report *report = expect(SIM_RACE_READ_WRITE, "launch", "launch");
    BASE_CHECK(strcmp(report->first.node, "forgotten") == 0);
    BASE_CHECK(strcmp(report->second.node, "writer") == 0);
    end();
}

// The read is not remembered any more when the write comes; that it may be defined still is.
static void a_forgotten_read_may_still_be_defined(void) {
    begin();
    char *p = device_memory(SIZE), *q = written_memory(SIZE);
    for (int i = 0; i < 5000; ++i)
        reads("many", s, q, 8);
    reads("undefined", s, p, 8);
    for (int i = 0; i < 50; ++i)
        reads("again", s, p, 8);
    writes("late", t, p, 8);
    must(cudaDeviceSynchronize());
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_UNINITIALISED), 0);
    BASE_CHECK(sim_race_count(SIM_RACE_READ_WRITE) >= 1);
    asked = sim_race_count(SIM_RACE_READ_WRITE);
    end();
}

// --- Blocks ---

static void the_later_of_two_blocks_holds_the_bytes(void) {
    begin();
    char *p = written_memory(SIZE);
    const uint64_t first = sim_block_take(p, 1024, s, "first");
    const uint64_t second = sim_block_take(p + 512, 1024, t, "second"); // while the first is held
    launch("first", s, &(struct sim_access){SIM_ACCESS_WRITE, p, 1024, 1, 0, first}, 1);
    writes("second", t, p + 600, 8);
    const struct sim_race_report *report = expect(SIM_RACE_REUSE, "first", "second");
    BASE_CHECK_EQ(report->start - (uint64_t)(uintptr_t)p, 600);
    sim_block_give(first);
    sim_block_give(first); // again: nothing
    sim_block_give(second);
    sim_block_use(second, s);
    writes("no block", t, p + 2048, 8);
    end();
}

static void copies_mean_the_block_that_holds_the_bytes(void) {
    begin();
    char *p = written_memory(SIZE), *q = written_memory(SIZE);
    const uint64_t old = sim_block_take(p, 512, s, "old");
    must(cudaMemsetAsync(p, 1, 512, s));
    sim_block_give(old);
    sim_block_take(p, 512, s, "new");
    sim_race_label("copy");
    must(cudaMemcpyAsync(q, p, 512, cudaMemcpyDefault, s)); // takes what new has not
    reads("read", s, q, 16);
    must(cudaStreamSynchronize(s));
    expect(SIM_RACE_UNINITIALISED, "read", "");
    launch("given", s, &(struct sim_access){SIM_ACCESS_WRITE, p, 512, 1, 0, old}, 1);
    const struct sim_race_report *report = find(SIM_RACE_USE_AFTER_FREE, "copy", "given");
    if (report == NULL) // the giver has the label of its time
        report = sim_race_report_at(sim_race_count(SIM_RACE_RULE_COUNT) - 1);
    BASE_CHECK_EQ(report->rule, SIM_RACE_USE_AFTER_FREE);
    BASE_CHECK_EQ(report->block, old);
    ++asked;
    end();
}

// To those who ask for it: pointers alone tell that memory was given back.
static void memory_that_was_given_back_is_nobodys(void) {
    begin();
    char *p = written_memory(SIZE), *q = written_memory(SIZE);
    sim_race_stop();
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true, .blocks_only = true}),
                  BASE_OK);
    writes("no block yet", s, p, SIZE);
    const uint64_t block = sim_block_take(p, 1024, s, "block");
    writes("in the block", s, p, 1024);
    sim_race_label("give");
    sim_block_give(block);
    reads("beside it", s, p + 1024, 64);
    writes("given back", s, p + 1000, 100);
    const struct sim_race_report *report = expect(SIM_RACE_USE_AFTER_FREE, "give", "given back");
    BASE_CHECK_EQ(report->block, block);
    sim_block_take(p + 512, 256, s, "again");
    writes("in the later block", s, p + 512, 256);
    sim_race_label("copy");
    must(cudaMemcpyAsync(q, p + 768, 16, cudaMemcpyDefault, s)); // above it
    expect(SIM_RACE_USE_AFTER_FREE, "give", "copy");
    must(cudaStreamSynchronize(s));
    sim_race_label("free");
    must(cudaFree(p));
    writes("freed", s, p, 8); // and not only given back
    expect(SIM_RACE_USE_AFTER_FREE, "free", "freed");
    end();
}

// Whether a block that holds the bytes at a launch may: it must be of the node's own capture.
static void replays_meet_blocks_of_other_captures(void) {
    cudaGraph_t graphs[2];
    cudaGraphExec_t execs[2];
    uint64_t blocks[2];
    begin();
    char *p = written_memory(SIZE);
    for (int i = 0; i < 2; ++i) {
        must(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
        blocks[i] = sim_block_take(p, 512, s, i == 0 ? "first" : "second");
        launch(i == 0 ? "node of the first" : "node of the second", s,
               &(struct sim_access){SIM_ACCESS_WRITE, p, 512, 1, 0, blocks[i]}, 1);
        if (i == 0) { // taken again within the capture, and kept
            sim_block_give(blocks[0]);
            blocks[0] = sim_block_take(p, 256, s, "first again");
            sim_block_give(blocks[0]);
        }
        must(cudaStreamEndCapture(s, &graphs[i]));
        must(cudaGraphInstantiate(&execs[i], graphs[i], 0));
    }
    sim_race_label("second launch");
    must(cudaGraphLaunch(execs[1], s)); // its own block holds the bytes
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0);
    sim_race_label("first launch");
    must(cudaGraphLaunch(execs[0], s)); // the second capture's block does
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_GRAPH_MEMORY), 1);
    const struct sim_race_report *report = sim_race_report_at(0);
    BASE_CHECK(strcmp(report->second.label, "first launch") == 0);
    BASE_CHECK(strcmp(report->second.node, "node of the first") == 0);
    ++asked;
    sim_block_give(blocks[1]);
    must(cudaGraphLaunch(execs[0], s));
    end();
}

// A graph that became a part of another one: what the whole's capture took later may lie where the
// part's nodes go.
static void replays_of_parts_meet_blocks_of_the_whole(void) {
    cudaGraph_t whole, part;
    cudaGraphNode_t node;
    cudaGraphExec_t exec;
    begin();
    char *p = written_memory(SIZE);
    must(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    const uint64_t first = sim_block_take(p, 512, s, "first");
    must(cudaStreamBeginCapture(t, cudaStreamCaptureModeRelaxed));
    launch("node of the part", t, &(struct sim_access){SIM_ACCESS_WRITE, p, 512, 1, 0, first}, 1);
    must(cudaStreamEndCapture(t, &part));
    must(cudaStreamGetCaptureInfo(s, &(enum cudaStreamCaptureStatus){0}, NULL, &whole, NULL, NULL,
                                  NULL));
    must(cudaGraphAddChildGraphNode(&node, whole, NULL, 0, part));
    must(cudaStreamUpdateCaptureDependencies(s, &node, NULL, 1, cudaStreamSetCaptureDependencies));
    sim_block_give(first);
    const uint64_t second = sim_block_take(p, 512, s, "second");
    launch("node behind it", s, &(struct sim_access){SIM_ACCESS_WRITE, p, 512, 1, 0, second}, 1);
    must(cudaStreamEndCapture(s, &whole));
    must(cudaGraphInstantiate(&exec, whole, 0));
    must(cudaGraphLaunch(exec, s));
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 0);
    sim_block_give(second);
    const uint64_t other = sim_block_take(p, 512, s, "of others");
    sim_race_label("launch");
    must(cudaGraphLaunch(exec, s));
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_GRAPH_MEMORY), 2);
    BASE_CHECK(strcmp(sim_race_report_at(0)->second.node, "node of the part") == 0);
    ++asked;
    ++asked;
    sim_block_give(other);
    end();
}

// --- Start, stop, reset ---

static void a_reset_forgets_memory_and_keeps_reports(void) {
    begin();
    char *p = written_memory(SIZE);
    writes("one", s, p, 8);
    writes("two", t, p, 8);
    expect(SIM_RACE_WRITE_WRITE, "one", "two");
    sim_reset();
    must(cudaSetDevice(0));
    must(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    must(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 1);
    char *q = written_memory(SIZE);
    writes("three", s, q, 8);
    writes("four", t, q, 8);
    expect(SIM_RACE_WRITE_WRITE, "three", "four");
    end();
}

static void checking_begins_anew(void) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    begin();
    char *p = device_memory(SIZE);
    const uint64_t block = sim_block_take(p, 64, s, "block");
    must(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    launch("node", s, &(struct sim_access){SIM_ACCESS_WRITE, p, 64, 1, 0, block}, 1);
    must(cudaStreamEndCapture(s, &graph));
    must(cudaGraphInstantiate(&exec, graph, 0));
    writes("before", t, p, 8);
    end();
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    asked = 0;
    reads("written before", s, p, SIZE); // and in no race with what was before
    must(cudaStreamSynchronize(s));
    sim_race_label("launch");
    must(cudaGraphLaunch(exec, s)); // its block is of another time
    writes("write", t, p, 8);
    BASE_CHECK_EQ(sim_race_count(SIM_RACE_RULE_COUNT), 1);
    ++asked;
    must(cudaGraphExecDestroy(exec));
    must(cudaGraphDestroy(graph));
    end();
}

static void graphs_of_before_are_known_as_far_as_they_can_be(void) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *m;
    begin();
    sim_race_stop();
    char *p = written_memory(SIZE);
    must(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    must(cudaMallocAsync(&m, SIZE, s));
    must(cudaMemsetAsync(m, 1, SIZE, s));
    must(cudaMemcpyAsync(p, m, SIZE, cudaMemcpyDefault, s));
    must(cudaStreamEndCapture(s, &graph));
    must(cudaGraphInstantiate(&exec, graph, 0));
    BASE_CHECK_EQ(sim_race_start(&(struct sim_race_options){.quiet = true}), BASE_OK);
    sim_race_label("launch");
    must(cudaGraphLaunch(exec, s));
    reads("behind", s, m, SIZE);
    writes("beside", t, p, 8);
    expect(SIM_RACE_WRITE_WRITE, "launch", "beside");
    must(cudaFreeAsync(m, s));
    end();
}

static void device_reset_takes_memory_away(void) {
    begin();
    char *p = written_memory(SIZE);
    writes("write", s, p, 8);
    sim_race_label("reset");
    must(cudaDeviceReset());
    must(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    writes("after", s, p, 8);
    expect(SIM_RACE_UNMAPPED, "reset", "after");
    end();
}

int main(void) {
    static void (*const programs[])(void) = {
        memory_beyond_an_allocation_is_none,
        memory_that_never_was_is_none,
        memory_freed_is_freed_and_later_none,
        mappings_come_and_go,
        a_copy_between_devices_needs_the_rights_of_each_side,
        memory_of_a_pool_that_was_given_back_is_none,
        registered_memory_is_the_programs_again,
        what_the_host_writes_untold_may_have_been_written,
        undefined_bytes_go_where_a_strided_copy_takes_them,
        undefined_bytes_reach_pageable_memory,
        a_later_write_without_order_makes_it_a_race,
        nothing_is_said_before_it_is_certain,
        an_update_uses_what_it_updates,
        host_functions_access_in_their_streams_order,
        host_nodes_have_accesses_too,
        values_are_signs_that_order_who_sees_them,
        a_kernel_that_reads_a_sign_races_with_who_writes_it,
        a_pools_own_waits_order_nothing,
        a_measured_time_says_that_both_events_came,
        events_of_graphs_cover_launches,
        threads_hand_over_what_they_did,
        accesses_may_claim_more_than_there_is,
        many_strided_ranges_are_remembered,
        a_replay_can_use_what_the_last_one_freed,
        each_of_many_parallel_readers_counts,
        a_forgotten_read_may_still_be_defined,
        the_later_of_two_blocks_holds_the_bytes,
        copies_mean_the_block_that_holds_the_bytes,
        memory_that_was_given_back_is_nobodys,
        replays_meet_blocks_of_other_captures,
        replays_of_parts_meet_blocks_of_the_whole,
        a_reset_forgets_memory_and_keeps_reports,
        checking_begins_anew,
        graphs_of_before_are_known_as_far_as_they_can_be,
        device_reset_takes_memory_away,
    };
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; ++i) {
        numerics = SIM_NUMERICS_ON;
        programs[i]();
        numerics = SIM_NUMERICS_OFF;
        programs[i]();
    }
    return 0;
}
