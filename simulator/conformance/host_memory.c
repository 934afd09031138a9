// Section 2: page-locked memory, and what pointers are.
#include "simulator/conformance/cases.h"

static void host_alloc_aligned(struct conformance *c) {
    bool aligned = true;
    for (size_t size = 1; size <= 100000; size = 7 * size + 1)
        aligned &= (uintptr_t)conformance_pinned_memory(c, size) % 4096 == 0;
    answer_yes(c, "aligned", aligned);
}

static void host_alloc_bad(struct conformance *c) {
    void *pointer;
    answer_code(c, "null", cudaHostAlloc(NULL, 16, cudaHostAllocDefault));
    answer_code(c, "flags", cudaHostAlloc(&pointer, 16, 0x1000));
}

static void host_alloc_flags(struct conformance *c) {
    void *pointer = NULL;
    answer_code(c, "all",
                cudaHostAlloc(&pointer, 16, cudaHostAllocPortable | cudaHostAllocMapped |
                                                cudaHostAllocWriteCombined));
    answer_code(c, "free", cudaFreeHost(pointer));
    MUST(c, cudaMallocHost(&pointer, 16));
    answer_code(c, "plain", cudaFreeHost(pointer));
}

static void host_alloc_waits_not(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    cudaEvent_t event = conformance_mark(c, stream);
    (void)conformance_pinned_memory(c, 4096);
    answer_event(c, "work", event);
}

static void free_host_null(struct conformance *c) {
    answer_code(c, "free", cudaFreeHost(NULL));
}

static void free_host_bad(struct conformance *c) {
    int on_stack = 0;
    unsigned char *pinned;
    MUST(c, cudaHostAlloc((void **)&pinned, 8192, cudaHostAllocDefault));
    answer_code(c, "unknown", cudaFreeHost(&on_stack));
    answer_code(c, "interior", cudaFreeHost(pinned + 4096));
    answer_code(c, "device", cudaFreeHost(conformance_device_memory(c, 16)));
    answer_code(c, "free", cudaFreeHost(pinned));
    answer_code(c, "twice", cudaFreeHost(pinned));
}

static void free_host_waits(struct conformance *c) {
    void *pinned;
    MUST(c, cudaHostAlloc(&pinned, 16, cudaHostAllocDefault));
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    cudaEvent_t event = conformance_mark(c, stream);
    answer_code(c, "free", cudaFreeHost(pinned));
    answer_code(c, "work", cudaEventQuery(event));
}

// --- Registered memory ---

#define REGISTERED_SIZE ((size_t)4 * 4096)

static _Alignas(4096) unsigned char registered[REGISTERED_SIZE];

static void register_bad(struct conformance *c) {
    answer_code(c, "null", cudaHostRegister(NULL, 4096, cudaHostRegisterDefault));
    answer_code(c, "zero", cudaHostRegister(registered, 0, cudaHostRegisterDefault));
    MUST(c, cudaHostRegister(registered, REGISTERED_SIZE, cudaHostRegisterDefault));
    answer_code(c, "overlap", cudaHostRegister(registered + 4096, 4096, cudaHostRegisterDefault));
    MUST(c, cudaHostUnregister(registered));
}

static void unregister_bad(struct conformance *c) {
    answer_code(c, "null", cudaHostUnregister(NULL));
    answer_code(c, "never", cudaHostUnregister(registered));
    MUST(c, cudaHostRegister(registered, REGISTERED_SIZE, cudaHostRegisterDefault));
    answer_code(c, "interior", cudaHostUnregister(registered + 4096));
    answer_code(c, "base", cudaHostUnregister(registered));
    answer_code(c, "twice", cudaHostUnregister(registered));
}

static void registered_is_page_locked(struct conformance *c) {
    struct cudaPointerAttributes attributes;
    MUST(c, cudaHostRegister(registered, REGISTERED_SIZE, cudaHostRegisterDefault));
    MUST(c, cudaPointerGetAttributes(&attributes, registered + 100));
    answer_number(c, "type", attributes.type);
    answer_code(c, "free", cudaFreeHost(registered));
    MUST(c, cudaHostUnregister(registered));
    MUST(c, cudaPointerGetAttributes(&attributes, registered));
    answer_number(c, "after", attributes.type);
}

static void host_device_pointer(struct conformance *c) {
    unsigned char *pinned = conformance_pinned_memory(c, 4096);
    void *device = NULL;
    int on_stack = 0;
    answer_code(c, "get", cudaHostGetDevicePointer(&device, pinned, 0));
    answer_yes(c, "same", device == pinned);
    answer_code(c, "flags", cudaHostGetDevicePointer(&device, pinned, 1));
    answer_code(c, "plain", cudaHostGetDevicePointer(&device, &on_stack, 0));
}

// --- What pointers are ---

static void answer_attributes(struct conformance *c, const char *label, const void *pointer) {
    struct cudaPointerAttributes attributes;
    const cudaError_t error = cudaPointerGetAttributes(&attributes, pointer);
    if (error == cudaSuccess)
        answer_number(c, label, attributes.type);
    else
        answer_code(c, label, error);
}

static void pointer_types(struct conformance *c) {
    int on_stack = 0;
    answer_attributes(c, "device", conformance_device_memory(c, 16));
    answer_attributes(c, "pinned", conformance_pinned_memory(c, 16));
    answer_attributes(c, "plain", &on_stack);
}

static void pointer_interior(struct conformance *c) {
    struct cudaPointerAttributes attributes;
    unsigned char *memory = conformance_device_memory(c, 4096);
    MUST(c, cudaPointerGetAttributes(&attributes, memory + 4095));
    answer_number(c, "type", attributes.type);
    answer_yes(c, "pointer", attributes.devicePointer == memory + 4095);
    answer_yes(c, "host", attributes.hostPointer == NULL);
}

static void pointer_device(struct conformance *c) {
    struct cudaPointerAttributes attributes;
    void *memory = conformance_device_memory(c, 16);
    MUST(c, cudaSetDevice(1));
    MUST(c, cudaPointerGetAttributes(&attributes, memory));
    answer_number(c, "device", attributes.device);
}

static void pointer_pinned(struct conformance *c) {
    struct cudaPointerAttributes attributes;
    void *pinned = conformance_pinned_memory(c, 16);
    MUST(c, cudaPointerGetAttributes(&attributes, pinned));
    answer_yes(c, "device", attributes.devicePointer == pinned);
    answer_yes(c, "host", attributes.hostPointer == pinned);
}

static void pointer_plain_device(struct conformance *c) {
    struct cudaPointerAttributes attributes;
    int on_stack = 0;
    MUST(c, cudaPointerGetAttributes(&attributes, &on_stack));
    answer_number(c, "device", attributes.device);
    answer_yes(c, "null", attributes.devicePointer == NULL);
}

static void pointer_null(struct conformance *c) {
    struct cudaPointerAttributes attributes;
    answer_code(c, "pointer", cudaPointerGetAttributes(&attributes, NULL));
    answer_code(c, "result", cudaPointerGetAttributes(NULL, &attributes));
}

static void pointer_freed(struct conformance *c) {
    void *memory;
    MUST(c, cudaMalloc(&memory, 4096));
    MUST(c, cudaFree(memory));
    answer_attributes(c, "type", memory);
}

const struct conformance_case conformance__cases_host_memory[] = {
    CASE("host-alloc-aligned", "2", VERIFIED, host_alloc_aligned,
        "page-locked memory is aligned to pages",
        "aligned=yes", NULL),
    CASE("host-alloc-bad", "2", VERIFIED, host_alloc_bad,
        "cudaHostAlloc without a result pointer or with unknown flags: 1",
        "null=1 flags=1", NULL),
    CASE("host-alloc-flags", "2", VERIFIED, host_alloc_flags,
        "known flags are taken together; cudaMallocHost is the same without",
        "all=0 free=0 plain=0", NULL),
    CASE("host-alloc-waits-not", "5", UNVERIFIED, host_alloc_waits_not,
        "cudaHostAlloc need not wait for pending work",
        "work=pending", "work=done"),
    CASE("free-host-null", "2", VERIFIED, free_host_null,
        "cudaFreeHost(NULL) succeeds",
        "free=0", NULL),
    CASE("free-host-bad", "2", VERIFIED, free_host_bad,
        "cudaFreeHost of anything but live page-locked memory's base: 1",
        "unknown=1 interior=1 device=1 free=0 twice=1", NULL),
    CASE("free-host-waits", "2", VERIFIED, free_host_waits,
        "cudaFreeHost waits for pending work",
        "free=0 work=0", NULL),
    CASE("register-bad", "2", VERIFIED, register_bad,
        "cudaHostRegister of nothing: 1; of memory that is registered in part: 712",
        "null=1 zero=1 overlap=712", NULL),
    CASE("unregister-bad", "2", VERIFIED, unregister_bad,
        "cudaHostUnregister of NULL: 1; of anything but a registered base: 713",
        "null=1 never=713 interior=713 base=0 twice=713", NULL),
    CASE("registered-is-page-locked", "2", VERIFIED, registered_is_page_locked,
        "registered memory is page-locked until it is unregistered; cudaFreeHost of it: 1",
        "type=1 free=1 after=0", NULL),
    CASE("host-device-pointer", "2", VERIFIED, host_device_pointer,
        "the device pointer of page-locked memory is the host's; flags, or plain memory: 1",
        "get=0 same=yes flags=1 plain=1", NULL),
    CASE("pointer-types", "2", VERIFIED, pointer_types,
        "device memory is type 2, page-locked 1, plain host memory 0",
        "device=2 pinned=1 plain=0", NULL),
    CASE("pointer-interior", "2", VERIFIED, pointer_interior,
        "cudaPointerGetAttributes takes interior pointers",
        "type=2 pointer=yes host=yes", NULL),
    CASE_2("pointer-device", "2", VERIFIED, pointer_device,
        "the device is the one that owns the memory, not the current one",
        "device=0", NULL),
    CASE("pointer-pinned", "2", VERIFIED, pointer_pinned,
        "page-locked memory has one address for host and device",
        "device=yes host=yes", NULL),
    CASE("pointer-plain-device", "2", UNVERIFIED, pointer_plain_device,
        "plain host memory belongs to device -2",
        "device=-2 null=yes", "device=-2 null=no"),
    CASE("pointer-null", "2", UNVERIFIED, pointer_null,
        "no pointer: 1 (or type 0 since CUDA 11); no result pointer: 1",
        "pointer=1 result=1", "pointer=0 result=1"),
    CASE("pointer-freed", "2", UNVERIFIED, pointer_freed,
        "a freed pointer is plain memory",
        "type=0", NULL),
    {0},
};
