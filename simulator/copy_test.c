// Copies, fills and kernels: bytes, order, when the host waits, and the codes for misuse.
#include "base/check.h"
#include "simulator/sim.h"

#include <stdlib.h>
#include <string.h>

#define SIZE ((size_t)3 << 20)

static void start(int devices, enum sim_numerics numerics) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){
                      .device_count = devices, .capacity_bytes = 64 << 20, .numerics = numerics}),
                  BASE_OK);
}

static void *device_new(size_t size) {
    void *pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, size), cudaSuccess);
    return pointer;
}

static unsigned char *host_new(unsigned seed) {
    unsigned char *bytes = malloc(SIZE);
    BASE_CHECK(bytes != NULL);
    for (size_t i = 0; i < SIZE; ++i)
        bytes[i] = (unsigned char)(i * 31 + (i >> 12) + seed);
    return bytes;
}

static void bytes_survive_the_round_trip(void) {
    start(2, SIM_NUMERICS_ON);
    unsigned char *source = host_new(1), *back = calloc(1, SIZE);
    BASE_CHECK(back != NULL);
    char *first = device_new(SIZE), *second;
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    second = device_new(SIZE);
    // In at an offset, across to the other device, out again.
    BASE_CHECK_EQ(cudaMemcpy(first + 5, source, SIZE - 5, cudaMemcpyHostToDevice), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset(first, 0xab, 5), cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpy(second, first, SIZE, cudaMemcpyDeviceToDevice), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(first), cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpy(back, second, SIZE, cudaMemcpyDefault), cudaSuccess);
    for (int i = 0; i < 5; ++i)
        BASE_CHECK_EQ(back[i], 0xab);
    BASE_CHECK_EQ(memcmp(back + 5, source, SIZE - 5), 0);
    BASE_CHECK_EQ(cudaMemcpy(source, back, SIZE, cudaMemcpyHostToHost), cudaSuccess);
    BASE_CHECK_EQ(memcmp(back, source, SIZE), 0);
    free(source);
    free(back);
}

static void a_pending_copy_takes_its_source_as_it_was_unless_pinned(void) {
    start(1, SIM_NUMERICS_ON);
    cudaStream_t stream;
    unsigned char pageable = 1, *pinned;
    char *device = device_new(2);
    unsigned char result[2] = {9, 9};
    BASE_CHECK_EQ(cudaMallocHost((void **)&pinned, 1), cudaSuccess);
    *pinned = 2;
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaMemcpyAsync(device, &pageable, 1, cudaMemcpyHostToDevice, stream),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpyAsync(device + 1, pinned, 1, cudaMemcpyHostToDevice, stream),
                  cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpyAsync(result, device, 2, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    pageable = 11;
    *pinned = 12;
    BASE_CHECK_EQ(result[0] + result[1], 18);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    BASE_CHECK_EQ(result[0], 1);
    BASE_CHECK_EQ(result[1], 12);
    BASE_CHECK_EQ(cudaFreeHost(pinned), cudaSuccess);
}

static void plain_copies_wait_unless_they_stay_on_the_device(void) {
    start(1, SIM_NUMERICS_ON);
    char *device = device_new(2), *pinned, pageable = 5;
    cudaStream_t other;
    BASE_CHECK_EQ(cudaMallocHost((void **)&pinned, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset(device, 3, 2), cudaSuccess);
    sim_stream_hold(NULL, true);
    sim_stream_hold(other, true);
    BASE_CHECK_EQ(cudaMemcpy(device, device + 1, 1, cudaMemcpyDeviceToDevice), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset(device, 4, 1), cudaSuccess);
    BASE_CHECK_EQ(sim_stream_pending(NULL), 2);
    BASE_CHECK_EQ(cudaMemcpy(pinned, device, 1, cudaMemcpyDeviceToHost), cudaSuccess);
    BASE_CHECK_EQ(sim_stream_pending(NULL), 0);
    BASE_CHECK_EQ(*pinned, 4);
    BASE_CHECK_EQ(cudaMemset(device, 4, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset(pinned, 6, 1), cudaSuccess);
    BASE_CHECK_EQ(*pinned, 6);
    // From pageable memory: earlier work is complete, the source is read, the transfer may be
    // pending.
    BASE_CHECK_EQ(cudaMemset(device, 4, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpy(device, &pageable, 1, cudaMemcpyHostToDevice), cudaSuccess);
    BASE_CHECK_EQ(sim_stream_pending(NULL), 1);
    pageable = 9;
    BASE_CHECK_EQ(cudaMemcpy(pinned, device, 1, cudaMemcpyDeviceToHost), cudaSuccess);
    BASE_CHECK_EQ(*pinned, 5);
    *pinned = 6;
    // Async: host to host waits, the rest does not.
    BASE_CHECK_EQ(cudaMemsetAsync(pinned, 7, 1, other), cudaSuccess);
    BASE_CHECK_EQ(*pinned, 6);
    BASE_CHECK_EQ(cudaMemcpyAsync(&pageable, pinned, 1, cudaMemcpyHostToHost, other), cudaSuccess);
    BASE_CHECK_EQ(pageable, 7);
    BASE_CHECK_EQ(cudaFreeHost(pinned), cudaSuccess);
}

static void misuse_gets_the_codes_of_cuda(enum sim_numerics numerics) {
    start(1, numerics);
    char *device = device_new(100), *pinned, local[200];
    BASE_CHECK_EQ(cudaMallocHost((void **)&pinned, 100), cudaSuccess);
    const enum cudaMemcpyKind bad = (enum cudaMemcpyKind)5, in = cudaMemcpyHostToDevice,
                              out = cudaMemcpyDeviceToHost;
    BASE_CHECK_EQ(cudaMemcpy(device, local, 10, bad), cudaErrorInvalidMemcpyDirection);
    BASE_CHECK_EQ(cudaMemcpy(device, NULL, 10, in), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemcpy(NULL, local, 10, in), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemcpy(NULL, NULL, 0, in), cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpy(device, local, 101, in), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemcpy(device + 1, local, 100, in), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemcpy(device, local, SIZE_MAX, in), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemcpy(local, pinned + 1, 100, cudaMemcpyHostToHost), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemcpy(local + 100, local, 10, in), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemcpy(local, device, 10, cudaMemcpyHostToHost), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemcpy(device, device, 10, out), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemcpy(local, local, 10, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemcpy(pinned, device, 100, cudaMemcpyDeviceToDevice),
                  cudaSuccess); // devices reach it
    BASE_CHECK_EQ(cudaMemset(local, 0, 10), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemset(NULL, 0, 10), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemset(device + 90, 0, 11), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaMemset(NULL, 0, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaMemsetAsync(device, 0, 10, (cudaStream_t)local),
                  cudaErrorInvalidResourceHandle);
    BASE_CHECK_EQ(cudaFree(device), cudaSuccess);
    BASE_CHECK_EQ(cudaMemset(device, 0, 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaFreeHost(pinned), cudaSuccess);
}

static void without_numerics_nothing_moves(void) {
    start(1, SIM_NUMERICS_OFF);
    char *device = device_new(16), local = 1;
    BASE_CHECK_EQ(cudaMemset(device, 5, 16), cudaSuccess);
    BASE_CHECK_EQ(cudaMemcpy(&local, device, 1, cudaMemcpyDeviceToHost), cudaSuccess);
    BASE_CHECK_EQ(local, 1);
    BASE_CHECK(sim_device_bytes(device) == NULL);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_MEMCPY), 1);
}

struct add {
    int *values;
    int addend;
};

static void add_body(const void *argument) {
    const struct add *add = argument;
    int *values = sim_device_bytes(add->values);
    BASE_CHECK_EQ(cudaFree(NULL), cudaErrorNotPermitted);
    for (int i = 0; i < 4; ++i)
        values[i] += add->addend;
}

static void kernels_run_in_stream_order_with_their_own_arguments(void) {
    start(1, SIM_NUMERICS_ON);
    int values[4] = {1, 2, 3, 4};
    int *device = device_new(sizeof values);
    cudaStream_t stream;
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaMemcpyAsync(device, values, sizeof values, cudaMemcpyHostToDevice, stream),
                  cudaSuccess);
    for (int i = 1; i <= 3; ++i) {
        const struct add add = {device, i * 10};
        BASE_CHECK_EQ(sim_launch(stream, "add", add_body, &add, sizeof add), cudaSuccess);
    }
    BASE_CHECK_EQ(cudaMemcpyAsync(values, device, sizeof values, cudaMemcpyDeviceToHost, stream),
                  cudaSuccess);
    BASE_CHECK_EQ(values[3], 4);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    for (int i = 0; i < 4; ++i)
        BASE_CHECK_EQ(values[i], i + 1 + 60);
    BASE_CHECK_EQ(sim_launch(stream, "none", NULL, NULL, 0), cudaErrorInvalidDeviceFunction);
}

// A copy in a stream of another device can outlive the memory it reads: then that device faults for
// good.
static void work_on_freed_memory_is_a_sticky_error_of_its_device(void) {
    start(2, SIM_NUMERICS_ON);
    char *first = device_new(16), *second;
    cudaStream_t stream;
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    second = device_new(16);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaMemcpyAsync(second, first, 16, cudaMemcpyDefault, stream), cudaSuccess);
    BASE_CHECK_EQ(cudaFree(first), cudaSuccess); // waits for device 0 only
    BASE_CHECK_EQ(sim_stream_pending(stream), 1);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    BASE_CHECK_EQ(cudaMalloc((void **)&first, 1), cudaErrorIllegalAddress);
    BASE_CHECK_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc((void **)&first, 1), cudaSuccess);
}

int main(void) {
    bytes_survive_the_round_trip();
    a_pending_copy_takes_its_source_as_it_was_unless_pinned();
    plain_copies_wait_unless_they_stay_on_the_device();
    misuse_gets_the_codes_of_cuda(SIM_NUMERICS_ON);
    misuse_gets_the_codes_of_cuda(SIM_NUMERICS_OFF);
    without_numerics_nothing_moves();
    kernels_run_in_stream_order_with_their_own_arguments();
    work_on_freed_memory_is_a_sticky_error_of_its_device();
    return 0;
}
