// See measure.h. Times are those of the host's clock around a call, and for operations of the
// device those between two events. On the simulator the figures mean the simulator, not a device.
#include "simulator/conformance/measure.h"

#include "base/check.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

#ifdef TIDEMARK_SIMULATOR
#define SIMULATED_REMARK ": what the simulator itself takes, no figures of a device"
#else
#define SIMULATED_REMARK ""
#endif

#define REPETITIONS 100
#define WARM_UP     10
#define PAGE_BYTES  ((size_t)2 << 20)
#define PAGES       64
#define COPY_BYTES  ((size_t)256 << 20)

// What the calls under test use.
struct bench {
    cudaStream_t stream;
    cudaStream_t made_stream;
    cudaEvent_t event;
    cudaEvent_t made_event;
    void *device;   // COPY_BYTES
    void *other;    // as many
    void *pinned;   // as many
    void *pageable; // as many
    void *made;
    CUdeviceptr address;
    CUmemGenericAllocationHandle handle;
#ifndef TIDEMARK_SIMULATOR
    CUmodule module;
    CUfunction function;
#endif
};

struct item {
    const char *key;
    cudaError_t (*prepare)(struct bench *bench); // not timed; NULL: nothing
    cudaError_t (*call)(struct bench *bench);
    cudaError_t (*undo)(struct bench *bench); // not timed; NULL: nothing
    const char *what;
    // The same call for one page; the figure is what each of the other PAGES - 1 adds. NULL: none.
    const char *one_page;
};

static double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// --- Calls ---

static void nothing(void *unused) { (void)unused; }

// An empty kernel. On a GPU the driver compiles it from the text below, so that no nvcc is needed.
#ifdef TIDEMARK_SIMULATOR
static void kernel_run(const void *unused) { (void)unused; }

static cudaError_t kernel_init(struct bench *b) {
    (void)b;
    return cudaSuccess;
}
static cudaError_t launch(struct bench *b) {
    return sim_launch(b->stream, "empty", kernel_run, NULL, 0);
}
#else
static const char kernel_text[] = ".version 7.8\n"
                                  ".target sm_75\n"
                                  ".address_size 64\n"
                                  ".visible .entry empty() { ret; }\n";

static cudaError_t kernel_init(struct bench *b) {
    const CUresult result = cuModuleLoadData(&b->module, kernel_text);
    return (cudaError_t)(result == CUDA_SUCCESS
                             ? cuModuleGetFunction(&b->function, b->module, "empty")
                             : result);
}
static cudaError_t launch(struct bench *b) {
    return (cudaError_t)cuLaunchKernel(b->function, 1, 1, 1, 1, 1, 1, 0, (CUstream)b->stream, NULL,
                                       NULL);
}
#endif

static cudaError_t idle(struct bench *b) { return cudaStreamSynchronize(b->stream); }
static cudaError_t event_create(struct bench *b) { return cudaEventCreate(&b->made_event); }
static cudaError_t event_destroy(struct bench *b) { return cudaEventDestroy(b->made_event); }
static cudaError_t event_record(struct bench *b) { return cudaEventRecord(b->event, b->stream); }
static cudaError_t event_query(struct bench *b) { return cudaEventQuery(b->event); }
static cudaError_t event_synchronize(struct bench *b) { return cudaEventSynchronize(b->event); }
static cudaError_t stream_wait(struct bench *b) {
    return cudaStreamWaitEvent(b->stream, b->event, 0);
}
static cudaError_t stream_create(struct bench *b) {
    return cudaStreamCreateWithFlags(&b->made_stream, cudaStreamNonBlocking);
}
static cudaError_t stream_destroy(struct bench *b) { return cudaStreamDestroy(b->made_stream); }
static cudaError_t stream_synchronize(struct bench *b) { return cudaStreamSynchronize(b->stream); }
static cudaError_t stream_query(struct bench *b) { return cudaStreamQuery(b->stream); }
static cudaError_t device_synchronize(struct bench *b) {
    (void)b;
    return cudaDeviceSynchronize();
}
static cudaError_t fill_small(struct bench *b) {
    return cudaMemsetAsync(b->device, 1, 16, b->stream);
}
static cudaError_t copy_small(struct bench *b) {
    return cudaMemcpyAsync(b->device, b->other, 16, cudaMemcpyDeviceToDevice, b->stream);
}
static cudaError_t host_function(struct bench *b) {
    return cudaLaunchHostFunc(b->stream, nothing, NULL);
}
static cudaError_t malloc_page(struct bench *b) { return cudaMalloc(&b->made, PAGE_BYTES); }
static cudaError_t malloc_pages(struct bench *b) {
    return cudaMalloc(&b->made, PAGES * PAGE_BYTES);
}
static cudaError_t free_made(struct bench *b) { return cudaFree(b->made); }
static cudaError_t mem_get_info(struct bench *b) {
    size_t free_bytes, total_bytes;
    (void)b;
    return cudaMemGetInfo(&free_bytes, &total_bytes);
}
static cudaError_t host_alloc(struct bench *b) {
    return cudaHostAlloc(&b->made, PAGE_BYTES, cudaHostAllocDefault);
}
static cudaError_t host_free(struct bench *b) { return cudaFreeHost(b->made); }
static cudaError_t malloc_async(struct bench *b) {
    return cudaMallocAsync(&b->made, PAGE_BYTES, b->stream);
}
static cudaError_t free_async(struct bench *b) { return cudaFreeAsync(b->made, b->stream); }
static cudaError_t pool_warm(struct bench *b) { // what it holds is not given back meanwhile
    const cudaError_t error = malloc_async(b);
    return error == cudaSuccess ? free_async(b) : error;
}

// Codes of runtime and driver are the same numbers.
static cudaError_t reserve(struct bench *b) {
    return (cudaError_t)cuMemAddressReserve(&b->address, PAGE_BYTES, 0, 0, 0);
}
static cudaError_t address_free(struct bench *b) {
    return (cudaError_t)cuMemAddressFree(b->address, PAGE_BYTES);
}
static cudaError_t create(struct bench *b) {
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    return (cudaError_t)cuMemCreate(&b->handle, PAGE_BYTES, &properties, 0);
}
static cudaError_t release(struct bench *b) { return (cudaError_t)cuMemRelease(b->handle); }
static cudaError_t map(struct bench *b) {
    return (cudaError_t)cuMemMap(b->address, PAGE_BYTES, 0, b->handle, 0);
}
static cudaError_t unmap(struct bench *b) {
    return (cudaError_t)cuMemUnmap(b->address, PAGE_BYTES);
}
static cudaError_t set_access(struct bench *b) {
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return (cudaError_t)cuMemSetAccess(b->address, PAGE_BYTES, &access, 1);
}
static cudaError_t reserve_and_create(struct bench *b) {
    const cudaError_t error = reserve(b);
    return error == cudaSuccess ? create(b) : error;
}
static cudaError_t reserve_to_map(struct bench *b) {
    const cudaError_t error = reserve_and_create(b);
    return error == cudaSuccess ? map(b) : error;
}
static cudaError_t reserve_to_access(struct bench *b) {
    const cudaError_t error = reserve_to_map(b);
    return error == cudaSuccess ? set_access(b) : error;
}
static cudaError_t give_back(struct bench *b) {
    const cudaError_t error = release(b);
    return error == cudaSuccess ? address_free(b) : error;
}
static cudaError_t unmap_and_give_back(struct bench *b) {
    const cudaError_t error = unmap(b);
    return error == cudaSuccess ? give_back(b) : error;
}
static cudaError_t write_value(struct bench *b) {
    return (cudaError_t)cuStreamWriteValue32((CUstream)b->stream,
                                             (CUdeviceptr)(uintptr_t)b->pinned, 1, 0);
}

static cudaError_t get_device(struct bench *b) {
    int device;
    (void)b;
    return cudaGetDevice(&device);
}

static const struct item items[] = {
    {"call.cudaLaunchKernel", NULL, launch, idle, "empty, into an idle stream", NULL},
    {"call.cudaLaunchHostFunc", NULL, host_function, idle, "into an idle stream", NULL},
    {"call.cudaMemcpy", NULL, copy_small, idle, "16 bytes within the device, Async", NULL},
    {"call.cudaMemset", NULL, fill_small, idle, "16 bytes, Async", NULL},
    {"call.cudaEventCreate", NULL, event_create, event_destroy, "with timing", NULL},
    {"call.cudaEventDestroy", event_create, event_destroy, NULL, "never recorded", NULL},
    {"call.cudaEventRecord", NULL, event_record, idle, "with timing", NULL},
    {"call.cudaEventQuery", event_record, event_query, NULL, "complete or not", NULL},
    {"call.cudaEventSynchronize", idle, event_synchronize, NULL, "complete", NULL},
    {"call.cudaStreamWaitEvent", event_record, stream_wait, idle, "of the same stream", NULL},
    {"call.cudaStreamCreate", NULL, stream_create, stream_destroy, "NonBlocking", NULL},
    {"call.cudaStreamDestroy", stream_create, stream_destroy, NULL, "idle", NULL},
    {"call.cudaStreamSynchronize", idle, stream_synchronize, NULL, "idle", NULL},
    {"call.cudaStreamQuery", idle, stream_query, NULL, "idle", NULL},
    {"call.cudaDeviceSynchronize", idle, device_synchronize, NULL, "idle", NULL},
    {"call.cudaMalloc", NULL, malloc_page, free_made, "2 MiB", NULL},
    {"call.cudaFree", malloc_page, free_made, NULL, "2 MiB", NULL},
    {"page.cudaMalloc", NULL, malloc_pages, free_made, "of 128 MiB", "call.cudaMalloc"},
    {"page.cudaFree", malloc_pages, free_made, NULL, "of 128 MiB", "call.cudaFree"},
    {"call.cudaMemGetInfo", NULL, mem_get_info, NULL, "one device", NULL},
    {"call.cudaHostAlloc", NULL, host_alloc, host_free, "2 MiB", NULL},
    {"call.cudaFreeHost", host_alloc, host_free, NULL, "2 MiB", NULL},
    {"call.cudaMallocAsync", pool_warm, malloc_async, free_async, "2 MiB, in the pool", NULL},
    {"call.cudaFreeAsync", malloc_async, free_async, NULL, "2 MiB", NULL},
    {"call.cuMemAddressReserve", NULL, reserve, address_free, "2 MiB", NULL},
    {"call.cuMemAddressFree", reserve, address_free, NULL, "2 MiB", NULL},
    {"call.cuMemCreate", NULL, create, release, "2 MiB", NULL},
    {"call.cuMemRelease", create, release, NULL, "2 MiB, the last reference", NULL},
    {"call.cuMemMap", reserve_and_create, map, unmap_and_give_back, "2 MiB", NULL},
    {"call.cuMemSetAccess", reserve_to_map, set_access, unmap_and_give_back, "2 MiB", NULL},
    {"call.cuMemUnmap", reserve_to_access, unmap, give_back, "2 MiB with access", NULL},
    {"call.cuStreamWriteValue32", NULL, write_value, idle, "page-locked memory", NULL},
    {"call.other", NULL, get_device, NULL, "cudaGetDevice", NULL},
};

static cudaError_t step(cudaError_t (*function)(struct bench *bench), struct bench *bench) {
    const cudaError_t error = function == NULL ? cudaSuccess : function(bench);
    return error == cudaErrorNotReady ? cudaSuccess : error;
}

static cudaError_t measure_item(const struct item *item, struct bench *bench,
                                double times_us[REPETITIONS]) {
    for (int i = -WARM_UP; i < REPETITIONS; ++i) {
        cudaError_t error = step(item->prepare, bench);
        const double begin_us = now_us();
        if (error == cudaSuccess)
            error = step(item->call, bench);
        const double end_us = now_us();
        if (error == cudaSuccess)
            error = step(item->undo, bench);
        if (error != cudaSuccess)
            return error;
        if (i >= 0)
            times_us[i] = end_us - begin_us;
    }
    qsort(times_us, REPETITIONS, sizeof *times_us, compare);
    return cudaSuccess;
}

// --- Bandwidths ---

static const struct transfer {
    const char *key;
    size_t destination, source; // members of struct bench
    int moves;                  // of each byte
} transfers[] = {
    {"device_bandwidth", offsetof(struct bench, other), offsetof(struct bench, device), 2},
    {"host_to_device_bandwidth", offsetof(struct bench, device), offsetof(struct bench, pinned), 1},
    {"device_to_host_bandwidth", offsetof(struct bench, pinned), offsetof(struct bench, device), 1},
    {"pageable_bandwidth", offsetof(struct bench, device), offsetof(struct bench, pageable), 1},
};

#define TRANSFER_REPETITIONS 11

static void *member(struct bench *bench, size_t offset) {
    return *(void **)(void *)((char *)bench + offset);
}

static cudaError_t measure_transfer(const struct transfer *transfer, struct bench *bench,
                                    double rates[TRANSFER_REPETITIONS]) {
    cudaEvent_t start, end;
    cudaError_t error = cudaEventCreate(&start);
    if (error == cudaSuccess)
        error = cudaEventCreate(&end);
    for (int i = 0; i < TRANSFER_REPETITIONS && error == cudaSuccess; ++i) {
        float milliseconds = 0;
        if ((error = cudaEventRecord(start, bench->stream)) == cudaSuccess &&
            (error = cudaMemcpyAsync(member(bench, transfer->destination),
                                     member(bench, transfer->source), COPY_BYTES,
                                     cudaMemcpyDefault, bench->stream)) == cudaSuccess &&
            (error = cudaEventRecord(end, bench->stream)) == cudaSuccess &&
            (error = cudaStreamSynchronize(bench->stream)) == cudaSuccess)
            error = cudaEventElapsedTime(&milliseconds, start, end);
        rates[i] = (double)COPY_BYTES * transfer->moves / (double)milliseconds / 1e6; // GB/s
    }
    qsort(rates, TRANSFER_REPETITIONS, sizeof *rates, compare);
    return error;
}

// --- All ---

static cudaError_t bench_init(struct bench *bench) {
    memset(bench, 0, sizeof *bench);
    cudaError_t error = cudaStreamCreateWithFlags(&bench->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaEventCreate(&bench->event);
    if (error == cudaSuccess)
        error = cudaMalloc(&bench->device, COPY_BYTES);
    if (error == cudaSuccess)
        error = cudaMalloc(&bench->other, COPY_BYTES);
    if (error == cudaSuccess)
        error = cudaHostAlloc(&bench->pinned, COPY_BYTES, cudaHostAllocDefault);
    if (error == cudaSuccess)
        error = kernel_init(bench);
    bench->pageable = malloc(COPY_BYTES);
    BASE_CHECK(bench->pageable != NULL);
    memset(bench->pageable, 1, COPY_BYTES);
    return error;
}

static void bench_deinit(struct bench *bench) {
    (void)cudaStreamDestroy(bench->stream);
    (void)cudaEventDestroy(bench->event);
    (void)cudaFree(bench->device);
    (void)cudaFree(bench->other);
    (void)cudaFreeHost(bench->pinned);
    free(bench->pageable);
}

// The 1st, the 50th and the 99th of all; of a page, what it adds to them.
static void print_item(FILE *output, const struct item *item, const double times_us[REPETITIONS]) {
    static double kept_us[sizeof items / sizeof items[0]][3];
    static const int places[3] = {0, REPETITIONS / 2, REPETITIONS - 2};
    double *figures_us = kept_us[item - items];
    for (int i = 0; i < 3; ++i)
        figures_us[i] = times_us[places[i]];
    for (const struct item *other = items; item->one_page != NULL && other != item; ++other)
        for (int i = 0; strcmp(other->key, item->one_page) == 0 && i < 3; ++i)
            figures_us[i] = (figures_us[i] - kept_us[other - items][i]) / (PAGES - 1);
    fprintf(output, "%-28s %8.3f %8.3f %8.3f us   | measured: %s\n", item->key, figures_us[0],
            figures_us[1], figures_us[2], item->what);
}

static bool print_failure(FILE *output, const char *key, cudaError_t error) {
    if (error != cudaSuccess)
        fprintf(output, "# %s: %s\n", key, cudaGetErrorString(error));
    return error != cudaSuccess;
}

int conformance_measure(FILE *output) {
    struct bench bench;
    double times_us[REPETITIONS], rates[TRANSFER_REPETITIONS];
    struct cudaDeviceProp properties;
    bool failed = print_failure(output, "preparation", bench_init(&bench)) ||
                  print_failure(output, "properties", cudaGetDeviceProperties(&properties, 0));
    if (!failed)
        fprintf(output, "# Measured on %s" SIMULATED_REMARK ".\n", properties.name);
    for (size_t i = 0; i < sizeof items / sizeof items[0] && !failed; ++i) {
        failed = print_failure(output, items[i].key, measure_item(&items[i], &bench, times_us));
        if (!failed)
            print_item(output, &items[i], times_us);
    }
    for (size_t i = 0; i < sizeof transfers / sizeof transfers[0] && !failed; ++i) {
        failed = print_failure(output, transfers[i].key,
                               measure_transfer(&transfers[i], &bench, rates));
        if (!failed)
            fprintf(output, "%-28s %8.1f %8.1f %8.1f GB/s | measured: 256 MiB\n", transfers[i].key,
                    rates[0], rates[TRANSFER_REPETITIONS / 2], rates[TRANSFER_REPETITIONS - 1]);
    }
    bench_deinit(&bench);
    return failed ? 1 : 0;
}
