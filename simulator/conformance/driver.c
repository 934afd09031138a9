// Section 4 and the additions: the rest of the driver's calls, and finding them by name.
#include "simulator/conformance/cases.h"

#include <cuda.h>
#include <string.h>

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

#define SIZE 64

static void answer_result(struct conformance *c, const char *label, CUresult result) {
    answer_number(c, label, (int)result);
}

static CUdeviceptr address(void *pointer) { return (CUdeviceptr)(uintptr_t)pointer; }

static void driver_errors(struct conformance *c) {
    const char *text = "";
    answer_result(c, "known", cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
    answer_word(c, "name", text == NULL ? "" : text);
    answer_result(c, "unknown", cuGetErrorString((CUresult)12345, &text));
    answer_yes(c, "null", text == NULL);
}

static void driver_leaves_last_error(struct conformance *c) {
    CUdeviceptr pointer;
    (void)cuMemAddressReserve(&pointer, 1, 0, 0, 0);
    answer_number(c, "set", (int)cudaPeekAtLastError());
    (void)cudaMalloc(NULL, 1);
    (void)cuInit(0);
    answer_number(c, "kept", (int)cudaPeekAtLastError());
}

static void driver_init(struct conformance *c) {
    answer_result(c, "init", cuInit(0));
    answer_result(c, "again", cuInit(0));
    answer_result(c, "flags", cuInit(1));
}

static void driver_devices(struct conformance *c) {
    CUdevice device = 99;
    int driver_count = 0, runtime_count = 0, version = 0;
    char name[100] = "";
    size_t bytes = 0, free_bytes, total_bytes;
    (void)cuDeviceGetCount(&driver_count);
    MUST(c, cudaGetDeviceCount(&runtime_count));
    MUST(c, cudaMemGetInfo(&free_bytes, &total_bytes));
    answer_yes(c, "count", driver_count == runtime_count);
    answer_result(c, "get", cuDeviceGet(&device, 0));
    answer_number(c, "device", device);
    answer_result(c, "bad", cuDeviceGet(&device, 99));
    answer_result(c, "name", cuDeviceGetName(name, (int)sizeof name, 0));
    answer_yes(c, "named", name[0] != '\0');
    answer_result(c, "total", cuDeviceTotalMem(&bytes, 0));
    answer_yes(c, "bytes", bytes == total_bytes);
    answer_result(c, "version", cuDriverGetVersion(&version));
    answer_yes(c, "13", version >= 13000);
}

static void driver_memory_info(struct conformance *c) {
    size_t free_bytes = 0, total_bytes = 0, driver_free = 1, driver_total = 1;
    MUST(c, cudaMemGetInfo(&free_bytes, &total_bytes));
    answer_result(c, "info", cuMemGetInfo(&driver_free, &driver_total));
    answer_yes(c, "same", free_bytes == driver_free && total_bytes == driver_total);
}

// The runtime's context is the device's primary one, and current in threads that use the runtime.
static void driver_context(struct conformance *c) {
    CUcontext runtime = NULL, retained = NULL, current = NULL;
    CUdevice device = 99;
    unsigned int flags;
    int active = 0;
    MUST(c, cudaFree(NULL));
    answer_result(c, "current", cuCtxGetCurrent(&runtime));
    answer_yes(c, "there", runtime != NULL);
    answer_result(c, "state", cuDevicePrimaryCtxGetState(0, &flags, &active));
    answer_number(c, "active", active);
    answer_result(c, "retain", cuDevicePrimaryCtxRetain(&retained, 0));
    answer_yes(c, "primary", retained == runtime);
    answer_result(c, "push", cuCtxPushCurrent(retained));
    answer_result(c, "device", cuCtxGetDevice(&device));
    answer_number(c, "zero", device);
    answer_result(c, "pop", cuCtxPopCurrent(&current));
    answer_yes(c, "popped", current == retained);
    answer_result(c, "synchronize", cuCtxSynchronize());
    answer_result(c, "release", cuDevicePrimaryCtxRelease(0));
}

static void driver_no_context(struct conformance *c) {
    CUdeviceptr pointer;
    MUST(c, cudaFree(NULL));
    answer_result(c, "none", cuCtxSetCurrent(NULL));
    answer_result(c, "reserve", cuMemAddressReserve(&pointer, (size_t)2 << 20, 0, 0, 0));
    MUST(c, cudaSetDevice(0));
}

static bool is_active(int device) {
    unsigned int flags;
    int active = 0;
    return cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active != 0;
}

static void set_device_initialises(struct conformance *c) {
    MUST(c, cudaSetDevice(1));
    answer_yes(c, "active", is_active(1));
}

#ifdef TIDEMARK_SIMULATOR
// On a GPU an earlier case has long made the context active.
static void questions_initialise_nothing(struct conformance *c) {
    struct cudaDeviceProp properties;
    int device, version;
    MUST(c, cudaGetDevice(&device));
    MUST(c, cudaGetDeviceProperties(&properties, 1));
    MUST(c, cudaRuntimeGetVersion(&version));
    MUST(c, cudaDriverGetVersion(&version));
    answer_yes(c, "active", is_active(1));
    MUST(c, cudaSetDevice(1));
    answer_yes(c, "after", is_active(1));
}

static void driver_before_init(struct conformance *c) {
    int count;
    CUdeviceptr pointer;
    sim_reset();
    answer_result(c, "count", cuDeviceGetCount(&count));
    answer_result(c, "reserve", cuMemAddressReserve(&pointer, (size_t)2 << 20, 0, 0, 0));
    answer_result(c, "init", cuInit(0));
    answer_result(c, "then", cuDeviceGetCount(&count));
}
#endif

static void init_device(struct conformance *c) {
    int device = 99;
    answer_code(c, "init", cudaInitDevice(1, 0, 0));
    MUST(c, cudaGetDevice(&device));
    answer_number(c, "current", device);
    answer_code(c, "bad", cudaInitDevice(99, 0, 0));
}

// --- Calls by name ---

static void entry_point_known(struct conformance *c) {
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
    answer_code(c, "get", cudaGetDriverEntryPointByVersion("cuMemCreate", &function, 12000,
                                                           cudaEnableDefault, &status));
    answer_number(c, "status", status);
    answer_yes(c, "found", function != NULL);
    CUdriverProcAddressQueryResult other = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void *again = NULL;
    answer_result(c, "driver", cuGetProcAddress("cuMemCreate", &again, 12000,
                                                CU_GET_PROC_ADDRESS_DEFAULT, &other));
    answer_yes(c, "same", again == function);
}

static void entry_point_missing(struct conformance *c) {
    void *function = &function;
    enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
    answer_code(c, "get", cudaGetDriverEntryPointByVersion("cuNoSuchCall", &function, 12000,
                                                           cudaEnableDefault, &status));
    answer_number(c, "status", status);
    answer_yes(c, "null", function == NULL);
}

static void entry_point_newer(struct conformance *c) {
    void *function = &function;
    enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
    answer_code(c, "get", cudaGetDriverEntryPointByVersion("cuMemCreate", &function, 9000,
                                                           cudaEnableDefault, &status));
    answer_number(c, "status", status);
    answer_yes(c, "null", function == NULL);
    answer_code(c, "future", cudaGetDriverEntryPointByVersion("cuMemCreate", &function, 99000,
                                                              cudaEnableDefault, &status));
}

static void entry_point_shares_state(struct conformance *c) {
    CUresult (*create)(CUmemGenericAllocationHandle *handle, size_t size,
                       const CUmemAllocationProp *properties, unsigned long long flags) = NULL;
    void *function = NULL;
    CUmemGenericAllocationHandle handle;
    const CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    size_t before, after, total;
    MUST(c, cudaGetDriverEntryPointByVersion("cuMemCreate", &function, 12000, cudaEnableDefault,
                                             NULL));
    memcpy(&create, &function, sizeof create);
    MUST(c, cudaMemGetInfo(&before, &total));
    answer_result(c, "create", create(&handle, (size_t)2 << 20, &wanted, 0));
    MUST(c, cudaMemGetInfo(&after, &total));
    answer_number(c, "taken", (int64_t)(before - after) >> 20);
    answer_result(c, "release", cuMemRelease(handle));
}

// --- Work in stream order ---

static void write_value(struct conformance *c) {
    uint32_t *pinned = conformance_pinned_memory(c, SIZE);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    memset(pinned, 0, SIZE);
    conformance_gate(c, stream);
    answer_result(c, "write", cuStreamWriteValue32((CUstream)stream, address(pinned), 7, 0));
    answer_result(c, "wide",
                  cuStreamWriteValue64((CUstream)stream, address(pinned + 2), 1ull << 32, 0));
    answer_number(c, "before", ((volatile uint32_t *)pinned)[0]);
    conformance_open(c);
    MUST(c, cudaStreamSynchronize(stream));
    answer_number(c, "after", ((volatile uint32_t *)pinned)[0]);
    answer_number(c, "high", ((volatile uint32_t *)pinned)[3]);
}

static void write_value_bad(struct conformance *c) {
    unsigned char *pinned = conformance_pinned_memory(c, SIZE);
    answer_result(c, "unaligned", cuStreamWriteValue32(NULL, address(pinned + 1), 7, 0));
    answer_result(c, "null", cuStreamWriteValue32(NULL, 0, 7, 0));
}

static void fill_words(struct conformance *c) {
    unsigned char *device = conformance_device_memory(c, SIZE);
    cudaStream_t stream = conformance_stream(c, cudaStreamNonBlocking);
    conformance_gate(c, stream);
    answer_result(c, "fill",
                  cuMemsetD32Async(address(device), 0x04030201, SIZE / 4, (CUstream)stream));
    answer_event(c, "work", conformance_mark(c, stream));
    conformance_open(c);
    answer_number(c, "first", conformance_byte(device));
    answer_number(c, "last", conformance_byte(device + SIZE - 1));
    answer_result(c, "unaligned", cuMemsetD32Async(address(device + 1), 0, 1, (CUstream)stream));
}

// --- A reset ends what the program of a GPU needs for its other cases; the older entry point is
// deprecated there; managed memory is what the simulator refuses ---

#ifdef TIDEMARK_SIMULATOR
static void device_reset(struct conformance *c) {
    void *memory, *block;
    cudaStream_t stream;
    cudaEvent_t event;
    MUST(c, cudaMalloc(&memory, SIZE));
    MUST(c, cudaStreamCreate(&stream));
    MUST(c, cudaEventCreate(&event));
    MUST(c, cudaMallocAsync(&block, SIZE, stream));
    answer_code(c, "reset", cudaDeviceReset());
    answer_code(c, "free", cudaFree(memory));
    answer_code(c, "stream", cudaStreamSynchronize(stream));
    answer_code(c, "event", cudaEventQuery(event));
    answer_code(c, "block", cudaFreeAsync(block, NULL));
}

static void entry_point_default(struct conformance *c) {
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
    answer_code(c, "get", cudaGetDriverEntryPoint("cuMemCreate", &function, cudaEnableDefault,
                                                  &status));
    answer_number(c, "status", status);
    answer_yes(c, "found", function != NULL);
}

static void managed_is_refused(struct conformance *c) {
    void *pointer;
    const struct cudaMemLocation location = {.type = cudaMemLocationTypeDevice};
    void *device = conformance_device_memory(c, SIZE);
    answer_code(c, "malloc", cudaMallocManaged(&pointer, SIZE, cudaMemAttachGlobal));
    answer_code(c, "advise",
                cudaMemAdvise(device, SIZE, cudaMemAdviseSetReadMostly, location));
    answer_code(c, "prefetch", cudaMemPrefetchAsync(device, SIZE, location, 0, NULL));
    answer_code(c, "attach", cudaStreamAttachMemAsync(NULL, device, 0, cudaMemAttachSingle));
}
#endif

const struct conformance_case conformance__cases_driver[] = {
    CASE("driver-errors", "0", VERIFIED, driver_errors,
        "cuGetErrorName knows codes; cuGetErrorString of an unknown one: 1, and NULL",
        "known=0 name=CUDA_ERROR_OUT_OF_MEMORY unknown=1 null=yes", NULL),
    CASE("driver-leaves-last-error", "1", VERIFIED, driver_leaves_last_error,
        "the driver's calls do not touch the runtime's last error",
        "set=0 kept=1", NULL),
    CASE("driver-init", "4", VERIFIED, driver_init,
        "cuInit may be repeated; its flags must be 0",
        "init=0 again=0 flags=1", NULL),
    CASE("driver-devices", "4", VERIFIED, driver_devices,
        "driver and runtime know the same devices; a bad ordinal: 101",
        "count=yes get=0 device=0 bad=101 name=0 named=yes total=0 bytes=yes version=0 13=yes",
        NULL),
    CASE("driver-memory-info", "4", VERIFIED, driver_memory_info,
        "driver and runtime count the same memory",
        "info=0 same=yes", NULL),
    CASE("driver-context", "4", VERIFIED, driver_context,
        "the runtime works in the device's primary context",
        "current=0 there=yes state=0 active=1 retain=0 primary=yes push=0 device=0 zero=0 pop=0 "
        "popped=yes synchronize=0 release=0", NULL),
    CASE("driver-no-context", "4", VERIFIED, driver_no_context,
        "without a current context: 201",
        "none=0 reserve=201", NULL),
    CASE_2("init-device", "1", VERIFIED, init_device,
        "cudaInitDevice does not make the device current; a bad ordinal: 101",
        "init=0 current=0 bad=101", NULL),
    CASE_2("set-device-initialises", "1", VERIFIED, set_device_initialises,
        "cudaSetDevice makes the device's context active at once",
        "active=yes", NULL),
#ifdef TIDEMARK_SIMULATOR
    CASE_2_SIMULATED("questions-initialise-nothing", "1", VERIFIED, questions_initialise_nothing,
        "asking about devices and versions makes no context",
        "active=no after=yes", NULL),
    CASE_SIMULATED("driver-before-init", "4", VERIFIED, driver_before_init,
        "before cuInit, or the first runtime call that needs a context: 3",
        "count=3 reserve=3 init=0 then=0", NULL),
#endif
    CASE("entry-point-known", "4", VERIFIED, entry_point_known,
        "a driver call is found by its base name, from runtime and driver alike",
        "get=0 status=0 found=yes driver=0 same=yes", NULL),
    CASE("entry-point-missing", "4", VERIFIED, entry_point_missing,
        "a name that is none: success, NULL and status 1",
        "get=0 status=1 null=yes", NULL),
    CASE("entry-point-newer", "4", VERIFIED, entry_point_newer,
        "a call that is newer than the version: status 2; a version above the driver's: 1",
        "get=0 status=2 null=yes future=1", NULL),
    CASE("entry-point-shares-state", "4", VERIFIED, entry_point_shares_state,
        "what is found by name shares its state with the runtime",
        "create=0 taken=2 release=0", NULL),
    CASE("write-value", "8", VERIFIED, write_value,
        "a written value appears when all earlier work of the stream is done",
        "write=0 wide=0 before=0 after=7 high=1", NULL),
    CASE("write-value-bad", "8", UNVERIFIED, write_value_bad,
        "a value that is not aligned, or written nowhere: 1",
        "unaligned=1 null=1", NULL),
    CASE("fill-words", "2", VERIFIED, fill_words,
        "cuMemsetD32Async fills words in stream order; not aligned: 1",
        "fill=0 work=pending first=1 last=4 unaligned=1", NULL),
#ifdef TIDEMARK_SIMULATOR
    CASE_SIMULATED("device-reset", "1", VERIFIED, device_reset,
        "cudaDeviceReset ends memory, streams and events of the context, not memory of pools",
        "reset=0 free=1 stream=709 event=709 block=0", NULL),
    CASE_SIMULATED("entry-point-default", "4", VERIFIED, entry_point_default,
        "the older call looks with the version of the header",
        "get=0 status=0 found=yes", NULL),
    CASE_SIMULATED("managed-is-refused", "2", VERIFIED, managed_is_refused,
        "managed memory is not simulated: 801",
        "malloc=801 advise=801 prefetch=801 attach=801", NULL),
#endif
    {0},
};
