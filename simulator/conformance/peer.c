// Section 2, peers: access between devices, and copies from one to another.
#include "simulator/conformance/cases.h"

#define SIZE 64

static void *memory_on(struct conformance *c, int device, int value) {
    (void)cudaSetDevice(device);
    void *memory = conformance_device_memory(c, SIZE);
    const cudaError_t error = cudaMemset(memory, value, SIZE);
    if (error != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess)
        answer_code(c, "cudaMemset", error);
    (void)cudaSetDevice(0);
    return memory;
}

static void peer_can_access(struct conformance *c) {
    int can;
    answer_code(c, "device", cudaDeviceCanAccessPeer(&can, 99, 0));
    answer_code(c, "peer", cudaDeviceCanAccessPeer(&can, 0, -1));
    MUST(c, cudaDeviceCanAccessPeer(&can, 0, 0));
    answer_number(c, "self", can);
}

static void peer_enable_bad(struct conformance *c) {
    answer_code(c, "flags", cudaDeviceEnablePeerAccess(1, 1));
    answer_code(c, "self", cudaDeviceEnablePeerAccess(0, 0));
    answer_code(c, "beyond", cudaDeviceEnablePeerAccess(99, 0));
}

static void peer_enable_twice(struct conformance *c) {
    answer_code(c, "first", cudaDeviceEnablePeerAccess(1, 0));
    const cudaError_t second = cudaDeviceEnablePeerAccess(1, 0);
    answer_number(c, "last", (int)cudaPeekAtLastError());
    answer_code(c, "second", second);
    answer_code(c, "disable", cudaDeviceDisablePeerAccess(1));
}

static void peer_disable_off(struct conformance *c) {
    answer_code(c, "off", cudaDeviceDisablePeerAccess(1));
    answer_code(c, "beyond", cudaDeviceDisablePeerAccess(99));
}

static void peer_one_direction(struct conformance *c) {
    MUST(c, cudaDeviceEnablePeerAccess(1, 0));
    MUST(c, cudaSetDevice(1));
    answer_code(c, "back", cudaDeviceDisablePeerAccess(0));
    MUST(c, cudaSetDevice(0));
    answer_code(c, "there", cudaDeviceDisablePeerAccess(1));
}

static void peer_copy(struct conformance *c) {
    void *here = memory_on(c, 0, 1), *there = memory_on(c, 1, 0);
    answer_code(c, "copy", cudaMemcpyPeer(there, 1, here, 0, SIZE));
    answer_number(c, "byte", conformance_byte(there));
    answer_code(c, "device", cudaMemcpyPeer(there, 99, here, 0, SIZE));
}

static void peer_copy_returns(struct conformance *c) {
    void *here = memory_on(c, 0, 1), *there = memory_on(c, 1, 0);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    cudaEvent_t event = conformance_mark(c, stream);
    MUST(c, cudaMemcpyPeer(there, 1, here, 0, SIZE));
    answer_event(c, "earlier", event);
    conformance_open(c);
    answer_number(c, "byte", conformance_byte(there));
}

// Work of NonBlocking streams too, in both devices, before the copy and behind it.
static void peer_copy_between_all(struct conformance *c) {
    void *here = memory_on(c, 0, 1), *there = memory_on(c, 1, 0);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaSetDevice(1));
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    MUST(c, cudaSetDevice(0));
    conformance_gate(c, stream);
    MUST(c, cudaMemsetAsync(here, 2, SIZE, stream));
    MUST(c, cudaMemcpyPeer(there, 1, here, 0, SIZE));
    MUST(c, cudaSetDevice(1));
    cudaEvent_t later = conformance_mark(c, other);
    answer_event(c, "later", later);
    MUST(c, cudaSetDevice(0));
    conformance_open(c);
    answer_number(c, "byte", conformance_byte(there));
}

static void peer_copy_async(struct conformance *c) {
    void *here = memory_on(c, 0, 1), *there = memory_on(c, 1, 0);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    cudaStream_t free_stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    MUST(c, cudaMemcpyPeerAsync(there, 1, here, 0, SIZE, stream));
    answer_event(c, "copy", conformance_mark(c, stream));
    answer_event(c, "elsewhere", conformance_mark(c, free_stream));
    conformance_open(c);
    answer_number(c, "byte", conformance_byte(there));
}

static void default_copy_across(struct conformance *c) {
    void *here = memory_on(c, 0, 7), *there = memory_on(c, 1, 0);
    MUST(c, cudaMemcpy(there, here, SIZE, cudaMemcpyDefault));
    MUST(c, cudaDeviceSynchronize());
    answer_number(c, "byte", conformance_byte(there));
}

const struct conformance_case conformance__cases_peer[] = {
    CASE("peer-can-access", "2", VERIFIED, peer_can_access,
        "cudaDeviceCanAccessPeer with a bad ordinal: 101; a device is no peer of itself",
        "device=101 peer=101 self=0", NULL),
    CASE_2("peer-enable-bad", "2", VERIFIED, peer_enable_bad,
        "cudaDeviceEnablePeerAccess: flags 1, itself or no device 101",
        "flags=1 self=101 beyond=101", NULL),
    CASE_2("peer-enable-twice", "2", VERIFIED, peer_enable_twice,
        "enabled twice: 704, which is recorded",
        "first=0 last=704 second=704 disable=0", NULL),
    CASE_2("peer-disable-off", "2", VERIFIED, peer_disable_off,
        "disabled while off: 705",
        "off=705 beyond=101", NULL),
    CASE_2("peer-one-direction", "2", VERIFIED, peer_one_direction,
        "access is enabled in one direction",
        "back=705 there=0", NULL),
    CASE_2("peer-copy", "2", VERIFIED, peer_copy,
        "cudaMemcpyPeer copies from device to device; a bad ordinal: 101",
        "copy=0 byte=1 device=101", NULL),
    CASE_2("peer-copy-returns", "2", VERIFIED, peer_copy_returns,
        "cudaMemcpyPeer does not wait",
        "earlier=pending byte=1", NULL),
    CASE_2("peer-copy-between-all", "2", VERIFIED, peer_copy_between_all,
        "cudaMemcpyPeer comes after all earlier and before all later work of both devices",
        "later=pending byte=2", NULL),
    CASE_2("peer-copy-async", "2", VERIFIED, peer_copy_async,
        "cudaMemcpyPeerAsync is work of its stream and orders nothing else",
        "copy=pending elsewhere=done byte=1", NULL),
    CASE_2("default-copy-across", "2", VERIFIED, default_copy_across,
        "cudaMemcpyDefault copies between devices",
        "byte=7", NULL),
    {0},
};
