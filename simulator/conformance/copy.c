// Section 2, the table of copies: which arguments are legal, and when the host returns.
//
// The plain forms are work of the legacy stream, which waits for blocking streams: with one of
// these gated, whether its work is done behind the call tells whether the call waited.
#include "simulator/conformance/cases.h"

#include <string.h>

#define SIZE 64

// Opens a gate in a blocking stream and tells by the event's state whether a call waited for it.
static cudaEvent_t gated_work(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamDefault);
    conformance_gate(c, stream);
    return conformance_mark(c, stream);
}

static void *filled_device_memory(struct conformance *c, int value) {
    void *memory = conformance_device_memory(c, SIZE);
    const cudaError_t error = cudaMemset(memory, value, SIZE);
    if (error != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess)
        answer_code(c, "cudaMemset", error);
    return memory;
}

static void *filled_pinned_memory(struct conformance *c, int value) {
    void *memory = conformance_pinned_memory(c, SIZE);
    memset(memory, value, SIZE);
    return memory;
}

// --- Arguments ---

static void copy_bad_kind(struct conformance *c) {
    unsigned char host[SIZE] = {0};
    void *device = conformance_device_memory(c, SIZE);
    answer_code(c, "plain", cudaMemcpy(device, host, SIZE, (enum cudaMemcpyKind)77));
    answer_code(c, "async", cudaMemcpyAsync(device, host, SIZE, (enum cudaMemcpyKind)77, NULL));
}

static void copy_nothing(struct conformance *c) {
    void *device = conformance_device_memory(c, SIZE);
    answer_code(c, "copy", cudaMemcpy(device, device, 0, cudaMemcpyDefault));
    answer_code(c, "async", cudaMemcpyAsync(device, device, 0, cudaMemcpyDefault, NULL));
    answer_code(c, "fill", cudaMemset(device, 1, 0));
}

static void copy_default_kind(struct conformance *c) {
    unsigned char host[SIZE];
    static unsigned char back[SIZE];
    memset(host, 5, SIZE);
    memset(back, 0, SIZE);
    void *first = conformance_device_memory(c, SIZE), *second = conformance_device_memory(c, SIZE);
    MUST(c, cudaMemcpy(first, host, SIZE, cudaMemcpyDefault));
    MUST(c, cudaMemcpy(second, first, SIZE, cudaMemcpyDefault));
    MUST(c, cudaMemcpy(back, second, SIZE, cudaMemcpyDefault));
    answer_number(c, "byte", back[SIZE - 1]);
}

static void copy_null(struct conformance *c) {
    void *device = conformance_device_memory(c, SIZE);
    answer_code(c, "destination", cudaMemcpy(NULL, device, SIZE, cudaMemcpyDeviceToHost));
    answer_code(c, "source", cudaMemcpy(device, NULL, SIZE, cudaMemcpyHostToDevice));
    answer_code(c, "fill", cudaMemset(NULL, 1, SIZE));
}

static void copy_beyond_end(struct conformance *c) {
    const size_t size = (size_t)4 << 20;
    unsigned char *host = conformance_pinned_memory(c, size);
    unsigned char *device = conformance_device_memory(c, size);
    answer_code(c, "copy", cudaMemcpy(device + size - 16, host, 4096, cudaMemcpyDefault));
}

static void copy_bad_stream(struct conformance *c) {
    cudaStream_t stream;
    void *device = conformance_device_memory(c, SIZE);
    MUST(c, cudaStreamCreate(&stream));
    MUST(c, cudaStreamDestroy(stream));
    const cudaError_t error = cudaMemsetAsync(device, 1, SIZE, stream);
    answer_yes(c, "refused", error == cudaErrorInvalidResourceHandle ||
                                 error == cudaErrorContextIsDestroyed);
    (void)cudaGetLastError();
}

static void fill_takes_low_byte(struct conformance *c) {
    void *device = conformance_device_memory(c, SIZE);
    MUST(c, cudaMemset(device, 0x1234, SIZE));
    answer_number(c, "byte", conformance_byte(device));
}

static void fill_plain_memory(struct conformance *c) {
    static unsigned char bytes[SIZE];
    answer_code(c, "fill", cudaMemset(bytes, 1, SIZE));
}

static void copy_2d_rows(struct conformance *c) {
    unsigned char host[4][8];
    static unsigned char back[4][8];
    memset(host, 1, sizeof host);
    memset(back, 9, sizeof back);
    unsigned char *device = conformance_device_memory(c, 64);
    MUST(c, cudaMemset(device, 0, 64));
    MUST(c, cudaMemcpy2D(device, 16, host, 8, 3, 4, cudaMemcpyHostToDevice));
    MUST(c, cudaMemset2D(device, 16, 2, 2, 2));
    MUST(c, cudaMemcpy2D(back, 8, device, 16, 5, 4, cudaMemcpyDeviceToHost));
    answer_number(c, "filled", back[1][1]);
    answer_number(c, "copied", back[1][2]);
    answer_number(c, "between", back[3][4]);
    answer_number(c, "beyond", back[3][5]);
}

static void copy_2d_async(struct conformance *c) {
    unsigned char *pinned = conformance_pinned_memory(c, 32);
    void *device = conformance_device_memory(c, 32);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    memset(pinned, 0, 32);
    MUST(c, cudaMemset(device, 0, 32));
    MUST(c, cudaDeviceSynchronize());
    conformance_gate(c, stream);
    MUST(c, cudaMemset2DAsync(device, 8, 1, 2, 4, stream));
    MUST(c, cudaMemcpy2DAsync(pinned, 8, device, 8, 3, 4, cudaMemcpyDeviceToHost, stream));
    answer_number(c, "before", pinned[24]);
    conformance_open(c);
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "filled", pinned[25]);
    answer_number(c, "beyond", pinned[26]);
}

static void copy_2d_pitch(struct conformance *c) {
    unsigned char host[64] = {0};
    void *device = conformance_device_memory(c, 64);
    answer_code(c, "destination", cudaMemcpy2D(device, 4, host, 8, 5, 2, cudaMemcpyDefault));
    answer_code(c, "source", cudaMemcpy2D(device, 8, host, 4, 5, 2, cudaMemcpyDefault));
}

// --- When the host returns ---

static void copy_pageable_to_device(struct conformance *c) {
    unsigned char host[SIZE];
    memset(host, 1, SIZE);
    void *device = filled_device_memory(c, 0);
    cudaEvent_t event = gated_work(c);
    MUST(c, cudaMemcpy(device, host, SIZE, cudaMemcpyHostToDevice));
    memset(host, 2, SIZE);
    answer_code(c, "earlier", cudaEventQuery(event));
    answer_number(c, "byte", conformance_byte(device));
}

static void copy_pinned_to_device(struct conformance *c) {
    void *device = filled_device_memory(c, 0);
    void *pinned = filled_pinned_memory(c, 1);
    cudaEvent_t event = gated_work(c);
    MUST(c, cudaMemcpy(device, pinned, SIZE, cudaMemcpyHostToDevice));
    memset(pinned, 2, SIZE);
    answer_code(c, "earlier", cudaEventQuery(event));
    answer_number(c, "byte", conformance_byte(device));
}

static void copy_device_to_pageable(struct conformance *c) {
    static unsigned char host[SIZE]; // outlives a copy that comes late
    memset(host, 0, SIZE);
    void *device = filled_device_memory(c, 1);
    cudaEvent_t event = gated_work(c);
    MUST(c, cudaMemcpy(host, device, SIZE, cudaMemcpyDeviceToHost));
    answer_code(c, "earlier", cudaEventQuery(event));
    answer_number(c, "byte", host[0]);
}

static void copy_device_to_pinned(struct conformance *c) {
    void *device = filled_device_memory(c, 1);
    unsigned char *pinned = filled_pinned_memory(c, 0);
    cudaEvent_t event = gated_work(c);
    MUST(c, cudaMemcpy(pinned, device, SIZE, cudaMemcpyDeviceToHost));
    answer_code(c, "earlier", cudaEventQuery(event));
    answer_number(c, "byte", pinned[0]);
}

static void copy_host_to_host(struct conformance *c) {
    unsigned char from[SIZE], to[SIZE] = {0};
    memset(from, 1, SIZE);
    MUST(c, cudaMemcpy(to, from, SIZE, cudaMemcpyHostToHost));
    answer_number(c, "plain", to[0]);
    memset(from, 2, SIZE);
    MUST(c, cudaMemcpyAsync(to, from, SIZE, cudaMemcpyHostToHost, NULL));
    answer_number(c, "async", to[0]);
}

static void copy_within_device(struct conformance *c) {
    void *from = filled_device_memory(c, 1), *to = filled_device_memory(c, 0);
    cudaEvent_t event = gated_work(c);
    MUST(c, cudaMemcpy(to, from, SIZE, cudaMemcpyDeviceToDevice));
    answer_event(c, "earlier", event);
    conformance_open(c);
    answer_number(c, "byte", conformance_byte(to));
}

static void async_pinned_to_device(struct conformance *c) {
    void *device = filled_device_memory(c, 0);
    void *pinned = filled_pinned_memory(c, 1);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    MUST(c, cudaMemcpyAsync(device, pinned, SIZE, cudaMemcpyHostToDevice, stream));
    answer_event(c, "copy", conformance_mark(c, stream));
    memset(pinned, 2, SIZE); // the copy has not run: it finds this
    conformance_open(c);
    answer_number(c, "byte", conformance_byte(device));
}

static void async_device_to_pinned(struct conformance *c) {
    void *device = filled_device_memory(c, 1);
    unsigned char *pinned = filled_pinned_memory(c, 0);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    MUST(c, cudaMemcpyAsync(pinned, device, SIZE, cudaMemcpyDeviceToHost, stream));
    answer_number(c, "before", pinned[0]);
    conformance_open(c);
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "after", pinned[0]);
}

static void async_within_device(struct conformance *c) {
    void *from = filled_device_memory(c, 1), *to = filled_device_memory(c, 0);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    MUST(c, cudaMemcpyAsync(to, from, SIZE, cudaMemcpyDeviceToDevice, stream));
    answer_event(c, "copy", conformance_mark(c, stream));
    conformance_open(c);
    answer_number(c, "byte", conformance_byte(to));
}

static void async_pageable_source(struct conformance *c) {
    unsigned char host[SIZE];
    memset(host, 1, SIZE);
    void *device = filled_device_memory(c, 0);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    MUST(c, cudaMemcpyAsync(device, host, SIZE, cudaMemcpyHostToDevice, stream));
    memset(host, 2, SIZE);
    conformance_open(c);
    answer_number(c, "byte", conformance_byte(device));
}

static void async_pageable_destination(struct conformance *c) {
    static unsigned char host[SIZE];
    memset(host, 0, SIZE);
    void *device = filled_device_memory(c, 1);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    MUST(c, cudaMemcpyAsync(host, device, SIZE, cudaMemcpyDeviceToHost, stream));
    answer_number(c, "at-return", host[0]);
    conformance_open(c);
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "after", host[0]);
}

static void fill_device_returns(struct conformance *c) {
    void *device = filled_device_memory(c, 0);
    cudaEvent_t event = gated_work(c);
    MUST(c, cudaMemset(device, 1, SIZE));
    answer_event(c, "earlier", event);
    conformance_open(c);
    answer_number(c, "byte", conformance_byte(device));
}

static void fill_pinned_completes(struct conformance *c) {
    unsigned char *pinned = filled_pinned_memory(c, 0);
    cudaEvent_t event = gated_work(c);
    MUST(c, cudaMemset(pinned, 1, SIZE));
    answer_code(c, "earlier", cudaEventQuery(event));
    answer_number(c, "byte", pinned[0]);
}

static void fill_async_returns(struct conformance *c) {
    unsigned char *pinned = filled_pinned_memory(c, 0);
    void *device = filled_device_memory(c, 0);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    MUST(c, cudaMemsetAsync(pinned, 1, SIZE, stream));
    MUST(c, cudaMemsetAsync(device, 1, SIZE, stream));
    answer_number(c, "before", pinned[0]);
    answer_event(c, "work", conformance_mark(c, stream));
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "after", pinned[0]);
}

const struct conformance_case conformance__cases_copy[] = {
    CASE("copy-bad-kind", "2", VERIFIED, copy_bad_kind,
        "an unknown kind of copy: 21",
        "plain=21 async=21", NULL),
    CASE("copy-nothing", "2", VERIFIED, copy_nothing,
        "copies and fills of 0 bytes succeed",
        "copy=0 async=0 fill=0", NULL),
    CASE("copy-default-kind", "2", VERIFIED, copy_default_kind,
        "with cudaMemcpyDefault the addresses decide",
        "byte=5", NULL),
    CASE("copy-null", "2", UNVERIFIED, copy_null,
        "a copy or fill without memory: 1",
        "destination=1 source=1 fill=1", NULL),
    CASE("copy-beyond-end", "2", UNVERIFIED, copy_beyond_end,
        "a copy that leaves an allocation: 1",
        "copy=1", NULL),
    CASE("copy-bad-stream", "2", UNVERIFIED, copy_bad_stream,
        "a fill in a destroyed stream is refused",
        "refused=yes", NULL),
    CASE("fill-takes-low-byte", "2", VERIFIED, fill_takes_low_byte,
        "cudaMemset takes the low byte of the value",
        "byte=52", NULL),
    CASE("fill-plain-memory", "2", UNVERIFIED, fill_plain_memory,
        "cudaMemset of plain host memory: 1",
        "fill=1", NULL),
    CASE("copy-2d-rows", "2", VERIFIED, copy_2d_rows,
        "2D copies and fills touch their rows only",
        "filled=2 copied=1 between=0 beyond=9", NULL),
    CASE("copy-2d-async", "2", VERIFIED, copy_2d_async,
        "Async 2D copies and fills are pending in their stream",
        "before=0 filled=1 beyond=0", NULL),
    CASE("copy-2d-pitch", "2", VERIFIED, copy_2d_pitch,
        "rows wider than a pitch: 12",
        "destination=12 source=12", NULL),
    CASE("copy-pageable-to-device", "2", VERIFIED, copy_pageable_to_device,
        "a plain copy from pageable memory waits for the stream and reads its source at the call",
        "earlier=0 byte=1", NULL),
    CASE("copy-pinned-to-device", "2", VERIFIED, copy_pinned_to_device,
        "a plain copy from page-locked memory is complete on return",
        "earlier=0 byte=1", NULL),
    CASE("copy-device-to-pageable", "2", VERIFIED, copy_device_to_pageable,
        "a plain copy to pageable memory is complete on return",
        "earlier=0 byte=1", NULL),
    CASE("copy-device-to-pinned", "2", VERIFIED, copy_device_to_pinned,
        "a plain copy to page-locked memory is complete on return",
        "earlier=0 byte=1", NULL),
    CASE("copy-host-to-host", "2", VERIFIED, copy_host_to_host,
        "copies from host to host are complete on return, Async too",
        "plain=1 async=2", NULL),
    CASE("copy-within-device", "2", VERIFIED, copy_within_device,
        "a plain copy within a device does not wait for it",
        "earlier=pending byte=1", NULL),
    CASE("async-pinned-to-device", "2", VERIFIED, async_pinned_to_device,
        "an Async copy from page-locked memory reads it when it runs",
        "copy=pending byte=2", NULL),
    CASE("async-device-to-pinned", "2", VERIFIED, async_device_to_pinned,
        "an Async copy to page-locked memory writes it when it runs",
        "before=0 after=1", NULL),
    CASE("async-within-device", "2", VERIFIED, async_within_device,
        "an Async copy within a device is pending in its stream",
        "copy=pending byte=1", NULL),
    CASE("async-pageable-source", "8", UNVERIFIED, async_pageable_source,
        "an Async copy reads its pageable source at the call",
        "byte=1", "byte=2"),
    CASE("async-pageable-destination", "8", UNVERIFIED, async_pageable_destination,
        "an Async copy to pageable memory may wait, and need not",
        "at-return=0 after=1", "at-return=1 after=1"),
    CASE("fill-device-returns", "2", VERIFIED, fill_device_returns,
        "cudaMemset of device memory does not wait",
        "earlier=pending byte=1", NULL),
    CASE("fill-pinned-completes", "2", VERIFIED, fill_pinned_completes,
        "cudaMemset of page-locked memory is complete on return",
        "earlier=0 byte=1", NULL),
    CASE("fill-async-returns", "2", VERIFIED, fill_async_returns,
        "cudaMemsetAsync is pending in its stream, for page-locked memory too",
        "before=0 work=pending after=1", NULL),
    {0},
};
