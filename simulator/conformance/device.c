// Section 1: devices, the current device, versions.
#include "simulator/conformance/cases.h"

static void current_device(struct conformance *c, const char *label) {
    int device = -1;
    MUST(c, cudaGetDevice(&device));
    answer_number(c, label, device);
}

static void current_in_thread(struct conformance *c) { current_device(c, "thread"); }

static void device_first_is_0(struct conformance *c) {
    conformance_in_thread(c, current_in_thread);
}

static void device_current_per_thread(struct conformance *c) {
    MUST(c, cudaSetDevice(1));
    conformance_in_thread(c, current_in_thread);
    current_device(c, "here");
}

static void set_device_bad(struct conformance *c) {
    int count;
    MUST(c, cudaGetDeviceCount(&count));
    answer_code(c, "beyond", cudaSetDevice(count));
    answer_code(c, "negative", cudaSetDevice(-1));
    current_device(c, "current");
}

static void set_device_waits_not(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    cudaEvent_t event = conformance_mark(c, stream);
    answer_code(c, "set", cudaSetDevice(0));
    answer_event(c, "work", event);
}

static void device_count_null(struct conformance *c) {
    answer_code(c, "count", cudaGetDeviceCount(NULL));
    answer_code(c, "current", cudaGetDevice(NULL));
}

static void device_properties(struct conformance *c) {
    struct cudaDeviceProp properties;
    size_t free_bytes, total_bytes;
    MUST(c, cudaGetDeviceProperties(&properties, 0));
    MUST(c, cudaMemGetInfo(&free_bytes, &total_bytes));
    answer_number(c, "warp", properties.warpSize);
    answer_yes(c, "total", properties.totalGlobalMem == total_bytes);
    answer_yes(c, "addressing", properties.unifiedAddressing == 1);
    answer_code(c, "bad", cudaGetDeviceProperties(&properties, 99));
}

static void device_attribute_bad(struct conformance *c) {
    int value;
    answer_code(c, "device", cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 99));
    answer_code(c, "null", cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0));
    answer_code(c, "attribute", cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)100000, 0));
}

static void versions(struct conformance *c) {
    int runtime = 0, driver = 0;
    MUST(c, cudaRuntimeGetVersion(&runtime));
    MUST(c, cudaDriverGetVersion(&driver));
    answer_yes(c, "runtime-13", runtime / 1000 == 13);
    answer_yes(c, "driver-no-older", driver >= runtime);
    answer_code(c, "null", cudaRuntimeGetVersion(NULL));
}

static void device_synchronize_waits(struct conformance *c) {
    cudaStream_t blocking = conformance_stream(c, cudaStreamDefault);
    cudaStream_t other = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, blocking);
    conformance_gate(c, other);
    cudaEvent_t first = conformance_mark(c, blocking), second = conformance_mark(c, other);
    answer_code(c, "synchronize", cudaDeviceSynchronize());
    answer_code(c, "blocking", cudaEventQuery(first));
    answer_code(c, "nonblocking", cudaEventQuery(second));
}

static void device_synchronize_other_device(struct conformance *c) {
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    cudaEvent_t event = conformance_mark(c, stream);
    MUST(c, cudaSetDevice(1));
    answer_code(c, "synchronize", cudaDeviceSynchronize());
    MUST(c, cudaSetDevice(0));
    answer_event(c, "work", event);
}

const struct conformance_case conformance__cases_device[] = {
    CASE("device-first-is-0", "1", VERIFIED, device_first_is_0,
        "a host thread's current device is 0 at first",
        "thread=0", NULL),
    CASE_2("device-current-per-thread", "1", VERIFIED, device_current_per_thread,
        "the current device is each host thread's own",
        "thread=0 here=1", NULL),
    CASE("set-device-bad", "1", VERIFIED, set_device_bad,
        "cudaSetDevice with a bad ordinal: 101, and the current device stays",
        "beyond=101 negative=101 current=0", NULL),
    CASE("set-device-waits-not", "1", VERIFIED, set_device_waits_not,
        "cudaSetDevice never synchronises",
        "set=0 work=pending", NULL),
    CASE("device-count-null", "1", UNVERIFIED, device_count_null,
        "a missing result pointer: 1",
        "count=1 current=1", NULL),
    CASE("device-properties", "1", VERIFIED, device_properties,
        "properties agree with what memory the device says it has; a bad ordinal: 101",
        "warp=32 total=yes addressing=yes bad=101", NULL),
    CASE("device-attribute-bad", "1", UNVERIFIED, device_attribute_bad,
        "cudaDeviceGetAttribute: bad ordinal 101, no result pointer 1, unknown attribute 1",
        "device=101 null=1 attribute=1", NULL),
    CASE("versions", "1", VERIFIED, versions,
        "the runtime is a CUDA 13, the driver no older; no result pointer: 1",
        "runtime-13=yes driver-no-older=yes null=1", NULL),
    CASE("device-synchronize-waits", "8", VERIFIED, device_synchronize_waits,
        "cudaDeviceSynchronize waits for every stream of the current device",
        "synchronize=0 blocking=0 nonblocking=0", NULL),
    CASE_2("device-synchronize-other-device", "8", VERIFIED, device_synchronize_other_device,
        "cudaDeviceSynchronize waits for no other device",
        "synchronize=0 work=pending", NULL),
    {0},
};
