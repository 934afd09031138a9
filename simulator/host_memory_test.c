// Page-locked memory that is the program's own, memory of several devices, and managed memory,
// which is refused.
#include "base/check.h"
#include "base/child.h"
#include "base/size.h"
#include "simulator/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void start(int device_count) {
    BASE_CHECK_EQ(sim_configure(&(struct sim_options){.device_count = device_count,
                                                      .capacity_bytes = 64 * BASE_MIB}),
                  BASE_OK);
}

static enum cudaMemoryType type_of(const void *pointer) {
    struct cudaPointerAttributes attributes;
    BASE_CHECK_EQ(cudaPointerGetAttributes(&attributes, pointer), cudaSuccess);
    return attributes.type;
}

static void registered_memory_is_page_locked_until_it_is_unregistered(void) {
    start(1);
    char *own = malloc(10000), *allocated, *device;
    void *seen;
    BASE_CHECK_EQ(cudaMallocHost((void **)&allocated, 1000), cudaSuccess);
    BASE_CHECK_EQ(cudaMalloc((void **)&device, 1000), cudaSuccess);
    BASE_CHECK_EQ(cudaHostRegister(NULL, 100, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaHostRegister(own, 0, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaHostRegister(own, 100, 0x100), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaHostRegister(own, SIZE_MAX, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaHostRegister(device, 100, 0), cudaErrorInvalidValue);
    // Where the process has no memory: all of the range, and its end.
    void *const pages =
        mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    BASE_CHECK(pages != MAP_FAILED);
    BASE_CHECK_EQ(munmap((char *)pages + 4096, 4096), 0);
    BASE_CHECK_EQ(cudaHostRegister((char *)pages + 4096, 4096, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaHostRegister((char *)pages + 100, 4096, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaHostRegister((char *)pages + 100, 3996, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaHostUnregister((char *)pages + 100), cudaSuccess);
    BASE_CHECK_EQ(munmap(pages, 4096), 0);
    BASE_CHECK_EQ(type_of(own + 1000), cudaMemoryTypeUnregistered);
    BASE_CHECK_EQ(cudaHostGetDevicePointer(&seen, own, 0), cudaErrorInvalidValue);

    BASE_CHECK_EQ(cudaHostRegister(own + 1000, 5000, cudaHostRegisterPortable), cudaSuccess);
    BASE_CHECK_EQ(type_of(own + 999), cudaMemoryTypeUnregistered);
    BASE_CHECK_EQ(type_of(own + 1000), cudaMemoryTypeHost);
    BASE_CHECK_EQ(type_of(own + 5999), cudaMemoryTypeHost);
    BASE_CHECK_EQ(type_of(own + 6000), cudaMemoryTypeUnregistered);
    BASE_CHECK_EQ(cudaHostRegister(own + 1000, 5000, 0), cudaErrorHostMemoryAlreadyRegistered);
    BASE_CHECK_EQ(cudaHostRegister(own, 1001, 0), cudaErrorHostMemoryAlreadyRegistered);
    BASE_CHECK_EQ(cudaHostRegister(allocated, 10, 0), cudaErrorHostMemoryAlreadyRegistered);
    BASE_CHECK_EQ(cudaHostRegister(own, 1000, 0), cudaSuccess); // a neighbour
    BASE_CHECK_EQ(cudaHostUnregister(own), cudaSuccess);

    BASE_CHECK_EQ(cudaHostGetDevicePointer(&seen, own + 1234, 0), cudaSuccess);
    BASE_CHECK(seen == own + 1234);
    BASE_CHECK_EQ(cudaHostGetDevicePointer(&seen, own + 1234, 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaHostGetDevicePointer(NULL, own + 1234, 0), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaHostGetDevicePointer(&seen, NULL, 0), cudaErrorInvalidValue);

    BASE_CHECK_EQ(cudaFreeHost(own + 1000), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaHostUnregister(NULL), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaHostUnregister(own + 1001), cudaErrorHostMemoryNotRegistered);
    BASE_CHECK_EQ(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered);
    BASE_CHECK_EQ(cudaHostUnregister(allocated), cudaErrorHostMemoryNotRegistered);
    BASE_CHECK_EQ(cudaHostUnregister(own + 1000), cudaSuccess);
    BASE_CHECK_EQ(cudaHostUnregister(own + 1000), cudaErrorHostMemoryNotRegistered);
    BASE_CHECK_EQ(cudaGetLastError(), cudaErrorHostMemoryNotRegistered);
    BASE_CHECK_EQ(cudaFree(NULL), cudaSuccess); // it is not sticky
    BASE_CHECK_EQ(type_of(own + 1000), cudaMemoryTypeUnregistered);
    own[1000] = 1;
    free(own);
}

static void unregistering_waits_for_work(void) {
    start(2);
    char *own = calloc(1, 4096);
    cudaStream_t stream;
    BASE_CHECK_EQ(cudaHostRegister(own, 4096, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    sim_stream_hold(stream, true);
    BASE_CHECK_EQ(cudaMemsetAsync(own, 3, 4096, stream), cudaSuccess);
    BASE_CHECK_EQ(own[17], 0);
    BASE_CHECK_EQ(cudaHostUnregister(own), cudaSuccess);
    BASE_CHECK_EQ(own[17], 3);
    free(own);
}

static void peers_follow_the_rules(int device_count) {
    start(device_count);
    int can;
    for (int a = 0; a < device_count; ++a)
        for (int b = 0; b < device_count; ++b) {
            BASE_CHECK_EQ(cudaDeviceCanAccessPeer(&can, a, b), cudaSuccess);
            BASE_CHECK_EQ(can, a != b);
        }
    BASE_CHECK_EQ(cudaDeviceCanAccessPeer(&can, 0, device_count), cudaErrorInvalidDevice);
    BASE_CHECK_EQ(cudaDeviceCanAccessPeer(&can, -1, 0), cudaErrorInvalidDevice);
    BASE_CHECK_EQ(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
    BASE_CHECK_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice); // itself
    BASE_CHECK_EQ(cudaDeviceEnablePeerAccess(device_count, 0), cudaErrorInvalidDevice);
    BASE_CHECK_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
    BASE_CHECK_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    BASE_CHECK_EQ(cudaGetLastError(), cudaErrorPeerAccessAlreadyEnabled); // recorded
    BASE_CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled); // one direction
    BASE_CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    BASE_CHECK_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
}

static void copies_between_devices_need_no_peer_access(void) {
    start(16);
    char *memory[16], byte;
    for (int i = 0; i < 16; ++i) {
        BASE_CHECK_EQ(cudaSetDevice(i), cudaSuccess);
        BASE_CHECK_EQ(cudaMalloc((void **)&memory[i], 100), cudaSuccess);
        BASE_CHECK_EQ(cudaMemset(memory[i], i, 100), cudaSuccess);
    }
    for (int i = 0; i < 15; ++i) { // the current device is 15
        BASE_CHECK_EQ(cudaMemcpyPeer(memory[i], i, memory[i + 1], i + 1, 50), cudaSuccess);
        BASE_CHECK_EQ(cudaMemcpy(memory[i] + 50, memory[15] + 50, 50, cudaMemcpyDefault),
                      cudaSuccess);
    }
    for (int i = 0; i < 15; ++i) {
        BASE_CHECK_EQ(cudaMemcpy(&byte, memory[i] + 49, 1, cudaMemcpyDefault), cudaSuccess);
        BASE_CHECK_EQ(byte, i + 1);
        BASE_CHECK_EQ(cudaMemcpy(&byte, memory[i] + 50, 1, cudaMemcpyDefault), cudaSuccess);
        BASE_CHECK_EQ(byte, 15);
    }
    BASE_CHECK_EQ(cudaMemcpyPeer(memory[0], 0, memory[1], 16, 1), cudaErrorInvalidDevice);
}

static void use_managed_memory(void *unused) {
    (void)unused;
    void *pointer = NULL;
    const struct cudaMemLocation location = {cudaMemLocationTypeDevice, 0};
    start(1);
    BASE_CHECK_EQ(cudaMallocManaged(&pointer, 100, cudaMemAttachGlobal), cudaErrorNotSupported);
    BASE_CHECK_EQ(cudaGetLastError(), cudaErrorNotSupported);
    BASE_CHECK_EQ(cudaMallocManaged(&pointer, 100, cudaMemAttachGlobal), cudaErrorNotSupported);
    BASE_CHECK_EQ(cudaMemPrefetchAsync(&pointer, 1, location, 0, NULL), cudaErrorNotSupported);
    BASE_CHECK_EQ(cudaMemAdvise(&pointer, 1, cudaMemAdviseSetReadMostly, location),
                  cudaErrorNotSupported);
    BASE_CHECK_EQ(cudaStreamAttachMemAsync(NULL, &pointer, 0, cudaMemAttachSingle),
                  cudaErrorNotSupported);
    BASE_CHECK(pointer == NULL);
}

static void managed_memory_is_refused_in_words(void) {
    struct base_child child = base_child_run(use_managed_memory, NULL);
    BASE_CHECK_EQ(child.exit_code, 0);
    BASE_CHECK_EQ(strcmp(child.error_text,
                         "tidemark simulator: cudaMallocManaged: managed memory is not simulated "
                         "(cudaMalloc, cudaHostAlloc and copies are)\n"),
                  0);
    base_child_deinit(&child);
}

int main(void) {
    registered_memory_is_page_locked_until_it_is_unregistered();
    unregistering_waits_for_work();
    peers_follow_the_rules(2);
    peers_follow_the_rules(16);
    copies_between_devices_need_no_peer_access();
    managed_memory_is_refused_in_words();
    return 0;
}
