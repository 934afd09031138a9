// Readings: what each switch changes, and one clear sentence for what is none. What they mean for
// orders and races, the undecided litmus cases say.
#include "base/check.h"
#include "base/child.h"
#include "simulator/sim.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static cudaStream_t stream;
static unsigned char *device, *pinned;

static void start(void) {
    void *pointer;
    BASE_CHECK_EQ(sim_schedule("lazy"), BASE_OK);
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.capacity_bytes = 64 * MIB}), BASE_OK);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 4), cudaSuccess);
    device = pointer;
    BASE_CHECK_EQ(cudaMallocHost(&pointer, 4), cudaSuccess);
    pinned = pointer;
}

static void choose(const char *name, const char *value) {
    BASE_CHECK_EQ(sim_reading(name, value), BASE_OK);
    BASE_CHECK(strcmp(sim_reading_value(name), value) == 0);
}

// What the device gets of a pageable source that is rewritten after the call.
static int source_seen(void) {
    unsigned char source = 1;
    start();
    BASE_CHECK_EQ(cudaMemcpyAsync(device, &source, 1, cudaMemcpyHostToDevice, stream), cudaSuccess);
    source = 2;
    BASE_CHECK_EQ(cudaMemcpyAsync(pinned, device, 1, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    return *pinned;
}

static void a_pageable_source_is_read_at_the_call_or_later(void) {
    BASE_CHECK_EQ(source_seen(), 1);
    choose("pageable-source", "late");
    BASE_CHECK_EQ(source_seen(), 2);
    choose("pageable-source", "consumed");
    BASE_CHECK_EQ(source_seen(), 1);
}

static void a_copy_to_pageable_memory_waits_or_not(void) {
    unsigned char destination = 0;
    start();
    BASE_CHECK_EQ(cudaMemset(device, 5, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpyAsync(&destination, device, 1, cudaMemcpyDeviceToHost, stream),
                  cudaSuccess);
    BASE_CHECK_EQ(destination, 0);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    choose("pageable-dest", "sync");
    destination = 0;
    BASE_CHECK_EQ(cudaMemcpyAsync(&destination, device, 1, cudaMemcpyDeviceToHost, stream),
                  cudaSuccess);
    BASE_CHECK_EQ(destination, 5);
    choose("pageable-dest", "async");
}

static void add_one(const void *argument) { ++**(unsigned char *const *)argument; }

static void frees_wait_for_pending_work_or_only_keep_its_memory(void) {
    start();
    BASE_CHECK_EQ(sim_launch(stream, "add one", add_one, &pinned, sizeof pinned), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(device), cudaSuccess);
    BASE_CHECK_EQ(sim_stream_pending(stream), 0);

    choose("free", "strict");
    start();
    const uint64_t used = sim_used_bytes(0);
    *pinned = 0;
    BASE_CHECK_EQ(sim_launch(stream, "add one", add_one, &pinned, sizeof pinned), cudaSuccess);
    BASE_CHECK_EQ(sim_launch(stream, "add one", add_one, &device, sizeof device), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(device), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(device), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFreeHost(pinned), cudaSuccess);
    BASE_CHECK_EQ(cudaFreeHost(pinned), cudaErrorInvalidValue);
    BASE_CHECK_EQ(sim_stream_pending(stream), 2);
    BASE_CHECK_EQ(sim_used_bytes(0), used);
    BASE_CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess); // both kernels find their memory
    BASE_CHECK_EQ(sim_used_bytes(0), used - 2 * MIB);
    sim_reset(); // with frees pending
    choose("free", "wait");
}

static void not_ready_becomes_the_last_error_or_not(void) {
    start();
    for (int recorded = 0; recorded < 2; ++recorded) {
        choose("record-600", recorded ? "yes" : "no");
        BASE_CHECK_EQ(cudaMemsetAsync(device, 0, 1, stream), cudaSuccess);
        BASE_CHECK_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
        BASE_CHECK_EQ(cudaGetLastError(), recorded ? cudaErrorNotReady : cudaSuccess);
    }
    choose("record-600", "no");
}

static void what_is_none_gets_a_sentence(void) {
    BASE_CHECK_EQ(sim_reading("free", "sometimes"), BASE_INVALID_VALUE);
    BASE_CHECK(strcmp(base_status_message(),
                      "reading free=sometimes: want wait (the default) or strict") == 0);
    BASE_CHECK_EQ(sim_reading("fre", "wait"), BASE_INVALID_VALUE);
    BASE_CHECK(strstr(base_status_message(), "reading \"fre\": want one of pageable-source, ") !=
               NULL);
    BASE_CHECK(sim_reading_value("fre") == NULL);
    BASE_CHECK(strcmp(sim_reading_value("free"), "wait") == 0);
}

static void first_call(void *unused) {
    int count;
    (void)unused;
    BASE_CHECK_EQ(cudaGetDeviceCount(&count), cudaSuccess);
    BASE_CHECK(strcmp(sim_reading_value("free"), "strict") == 0);
    BASE_CHECK(strcmp(sim_reading_value("threads"), "strict") == 0);
    BASE_CHECK(strcmp(sim_reading_value("pageable-dest"), "async") == 0);
}

static void the_environment_can_choose(void) {
    static const struct {
        const char *value, *message; // NULL: it is right
    } cases[] = {
        {"free=strict,threads=strict", NULL},
        {"free=strict,threads", "TIDEMARK_SIM_READINGS: reading threads=: want shared"},
        {"free=strict,,", "TIDEMARK_SIM_READINGS: reading \"\": want one of"},
        {"free = strict", "TIDEMARK_SIM_READINGS: reading \"free \""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        setenv("TIDEMARK_SIM_READINGS", cases[i].value, 1);
        struct base_child child = base_child_run(first_call, NULL);
        base_check_context("\"%s\": \"%s\"", cases[i].value, child.error_text);
        BASE_CHECK_EQ(child.exit_code, cases[i].message == NULL ? 0 : 2);
        BASE_CHECK(cases[i].message == NULL ||
                   strstr(child.error_text, cases[i].message) != NULL);
        base_child_deinit(&child);
    }
    base_check_context(NULL);
    unsetenv("TIDEMARK_SIM_READINGS");
}

int main(void) {
    the_environment_can_choose(); // children of a process that made no CUDA call yet
    a_pageable_source_is_read_at_the_call_or_later();
    a_copy_to_pageable_memory_waits_or_not();
    frees_wait_for_pending_work_or_only_keep_its_memory();
    not_ready_becomes_the_last_error_or_not();
    what_is_none_gets_a_sentence();
    return 0;
}
