// What all calls share: counts, planned faults, the last error of each thread, error names; and the
// questions about devices.
#include "base/check.h"
#include "base/thread.h"
#include "simulator/sim.h"

#include <string.h>

static void start(void) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){
                      .device_count = 3, .capacity_bytes = 64 << 20, .numerics = SIM_NUMERICS_OFF}),
                  BASE_OK);
}

static void the_nth_call_fails_once(void) {
    start();
    void *pointer = NULL, *kept;
    sim_fault_next(SIM_CALL_MALLOC, 3, cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc(NULL, 1), cudaErrorInvalidValue); // a failed call counts
    kept = pointer;
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaErrorMemoryAllocation);
    BASE_CHECK(pointer == kept);
    BASE_CHECK_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    BASE_CHECK_EQ(cudaMalloc(&pointer, 1), cudaSuccess);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_MALLOC), 4);
    BASE_CHECK_EQ(sim_call_failed_count(SIM_CALL_MALLOC), 2);
    BASE_CHECK_EQ(sim_used_bytes(0), 2 * SIM_PAGE_BYTES);

    // A free that fails frees nothing.
    sim_fault_next(SIM_CALL_FREE, 1, cudaErrorLaunchFailure);
    BASE_CHECK_EQ(cudaFree(kept), cudaErrorLaunchFailure);
    BASE_CHECK_EQ(cudaFree(kept), cudaSuccess);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_FREE), 2);

    sim_fault_next(SIM_CALL_EVENT_CREATE, 1, cudaErrorUnknown);
    sim_fault_next(SIM_CALL_EVENT_CREATE, 0, cudaErrorUnknown); // removed
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
}

static void not_ready_is_no_failure(void) {
    start();
    cudaEvent_t event;
    BASE_CHECK_EQ(cudaEventCreate(&event), cudaSuccess);
    sim_stream_hold(NULL, true);
    BASE_CHECK_EQ(cudaEventRecord(event, NULL), cudaSuccess);
    BASE_CHECK_EQ(cudaEventQuery(event), cudaErrorNotReady);
    BASE_CHECK_EQ(cudaPeekAtLastError(), cudaSuccess);
    BASE_CHECK_EQ(sim_call_count(SIM_CALL_EVENT_QUERY), 1);
    BASE_CHECK_EQ(sim_call_failed_count(SIM_CALL_EVENT_QUERY), 0);
}

static void in_another_thread(void *unused) {
    (void)unused;
    int device = -1;
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
    BASE_CHECK_EQ(cudaGetDevice(&device), cudaSuccess);
    BASE_CHECK_EQ(device, 0);
    BASE_CHECK_EQ(cudaGetDevice(NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
}

static void last_error_and_current_device_are_each_threads_own(void) {
    start();
    int device;
    BASE_CHECK_EQ(cudaSetDevice(2), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(3), cudaErrorInvalidDevice);
    BASE_CHECK_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
    struct base_thread thread;
    base_thread_start(&thread, in_another_thread, NULL);
    base_thread_join(&thread);
    BASE_CHECK_EQ(cudaGetDevice(&device), cudaSuccess);
    BASE_CHECK_EQ(device, 2);
    BASE_CHECK_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
    BASE_CHECK_EQ(cudaGetLastError(), cudaSuccess);
}

static void errors_have_names(void) {
    BASE_CHECK_EQ(strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation"),
                  0);
    BASE_CHECK_EQ(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"), 0);
    BASE_CHECK_EQ(strcmp(cudaGetErrorName((cudaError_t)12345), "unrecognized error code"), 0);
    BASE_CHECK_EQ(strcmp(cudaGetErrorString((cudaError_t)-1), "unrecognized error code"), 0);
    for (int call = 0; call < SIM_CALL_KIND_COUNT; ++call)
        BASE_CHECK_EQ(strncmp(sim_call_name((enum sim_call)call), "cu", 2), 0);
}

static void devices_answer_what_they_are(void) {
    start();
    int value = -1;
    struct cudaDeviceProp properties;
    BASE_CHECK_EQ(cudaGetDeviceCount(&value), cudaSuccess);
    BASE_CHECK_EQ(value, 3);
    BASE_CHECK_EQ(cudaGetDeviceCount(NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaGetDeviceProperties(&properties, 2), cudaSuccess);
    BASE_CHECK_EQ(properties.totalGlobalMem, 64 << 20);
    BASE_CHECK_EQ(cudaGetDeviceProperties(&properties, 3), cudaErrorInvalidDevice);
    BASE_CHECK_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0),
                  cudaSuccess);
    BASE_CHECK_EQ(value, properties.major);
    BASE_CHECK_EQ(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)9999, 0),
                  cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 7), cudaErrorInvalidDevice);
    BASE_CHECK_EQ(cudaRuntimeGetVersion(&value), cudaSuccess);
    BASE_CHECK_EQ(value, CUDART_VERSION);
    BASE_CHECK_EQ(cudaDriverGetVersion(NULL), cudaErrorInvalidValue);
}

static void peers_are_enabled_once(void) {
    start();
    int value;
    BASE_CHECK_EQ(cudaDeviceCanAccessPeer(&value, 0, 1), cudaSuccess);
    BASE_CHECK_EQ(value, 1);
    BASE_CHECK_EQ(cudaDeviceCanAccessPeer(&value, 1, 1), cudaSuccess);
    BASE_CHECK_EQ(value, 0);
    BASE_CHECK_EQ(cudaDeviceCanAccessPeer(&value, 0, 3), cudaErrorInvalidDevice);
    BASE_CHECK_EQ(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
    BASE_CHECK_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
    BASE_CHECK_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    BASE_CHECK_EQ(cudaDeviceEnablePeerAccess(2, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
}

int main(void) {
    the_nth_call_fails_once();
    not_ready_is_no_failure();
    last_error_and_current_device_are_each_threads_own();
    errors_have_names();
    devices_answer_what_they_are();
    peers_are_enabled_once();
    return 0;
}
