// See run.h.
#include "workload/run.h"

#include "base/progress.h"
#include "workload/programs.h"

#include <stdlib.h>

struct workload_run_stream {
    struct workload_run_stream *next;
    cudaStream_t stream;
};

enum base_status workload_cuda(const char *call, cudaError_t error) {
    if (error == cudaSuccess) return BASE_OK;
    return base_status_set(BASE_CUDA, "%s: %s (%s)", call, cudaGetErrorName(error),
                           cudaGetErrorString(error));
}

//------------------------------------------------------------------------------------------------
// The checksum: a sum of hashes (FNV-1a), each of a key and what belongs to it.

#define HASH_FIRST UINT64_C(0xcbf29ce484222325)
#define HASH_FACTOR UINT64_C(0x100000001b3)

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; ++i)
        hash = (hash ^ at[i]) * HASH_FACTOR;
    return hash;
}

static void add_hash(struct workload_run *run, uint64_t hash) {
    base_mutex_lock(&run->mutex);
    run->checksum += hash;
    base_mutex_unlock(&run->mutex);
}

void workload_run_add_bytes(struct workload_run *run, uint64_t key, const void *bytes,
                            size_t size) {
    add_hash(run, hash_bytes(hash_bytes(HASH_FIRST, &key, sizeof key), bytes, size));
}

enum base_status workload_run_add(struct workload_run *run, uint64_t key, struct tensor tensor) {
    const struct tensor_geometry *geometry = tensor_geometry(tensor);
    const size_t size = (size_t)geometry->numel * tensor_type_size(tensor_type(tensor));
    void *bytes = malloc(size + 1);
    if (bytes == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory to read %zu bytes", size);
    const enum base_status status = tensor_read(tensor, bytes);
    if (status == BASE_OK && !run->options.without_values) {
        const uint64_t type = (uint64_t)tensor_type(tensor);
        uint64_t hash = hash_bytes(HASH_FIRST, &key, sizeof key);
        hash = hash_bytes(hash, &type, sizeof type);
        hash = hash_bytes(hash, geometry->sizes, (size_t)geometry->rank * sizeof(int64_t));
        add_hash(run, hash_bytes(hash, bytes, size));
    }
    free(bytes);
    return status;
}

enum base_status workload_run_step(struct workload_run *run) {
    const uint64_t step = run->steps++;
    if (run->options.on_step != NULL) run->options.on_step(run->options.context, step);
    if (!base_interrupted()) return BASE_OK;
    return base_status_set(BASE_INTERRUPTED, "interrupted after %llu of %llu steps",
                           (unsigned long long)run->steps, (unsigned long long)run->options.steps);
}

//------------------------------------------------------------------------------------------------
// Streams

// DEVICE is the current one from here on.
static enum base_status device_enter(int device, int *before) {
    const enum base_status status = workload_cuda("cudaGetDevice", cudaGetDevice(before));
    return status == BASE_OK ? workload_cuda("cudaSetDevice", cudaSetDevice(device)) : status;
}

static enum base_status device_leave(int before, enum base_status status) {
    const cudaError_t error = cudaSetDevice(before);
    return status == BASE_OK ? workload_cuda("cudaSetDevice", error) : status;
}

enum base_status workload_run_stream(struct workload_run *run, int device, cudaStream_t *stream) {
    struct workload_run_stream *entry = malloc(sizeof *entry);
    if (entry == NULL) return base_status_set(BASE_HOST_MEMORY, "no host memory for a stream");
    int before;
    enum base_status status = device_enter(device, &before);
    if (status == BASE_OK)
        status = device_leave(before, workload_cuda("cudaStreamCreateWithFlags",
                                                    cudaStreamCreateWithFlags(
                                                        &entry->stream, cudaStreamNonBlocking)));
    if (status != BASE_OK) {
        free(entry);
        return status;
    }
    base_mutex_lock(&run->mutex);
    entry->next = run->streams;
    run->streams = entry;
    base_mutex_unlock(&run->mutex);
    *stream = entry->stream;
    return BASE_OK;
}

// Nothing runs on them any more.
void workload__run_streams_destroy(struct workload_run *run) {
    while (run->streams != NULL) {
        struct workload_run_stream *entry = run->streams;
        run->streams = entry->next;
        (void)cudaStreamDestroy(entry->stream);
        free(entry);
    }
}

//------------------------------------------------------------------------------------------------
// Order

// An event belongs to the device of the stream that it is recorded on.
enum base_status workload_mark_set(struct workload_mark *mark, int device, cudaStream_t stream) {
    int before;
    enum base_status status = device_enter(device, &before);
    if (status != BASE_OK) return status;
    if (mark->event == NULL)
        status = workload_cuda("cudaEventCreateWithFlags",
                               cudaEventCreateWithFlags(&mark->event, cudaEventDisableTiming));
    if (status == BASE_OK)
        status = workload_cuda("cudaEventRecord", cudaEventRecord(mark->event, stream));
    return device_leave(before, status);
}

enum base_status workload_mark_wait(const struct workload_mark *mark, int device,
                                    cudaStream_t stream) {
    int before;
    if (mark->event == NULL) return BASE_OK;
    const enum base_status status = device_enter(device, &before);
    if (status != BASE_OK) return status;
    return device_leave(
        before, workload_cuda("cudaStreamWaitEvent", cudaStreamWaitEvent(stream, mark->event, 0)));
}

void workload_mark_drop(struct workload_mark *mark) {
    if (mark->event != NULL) (void)cudaEventDestroy(mark->event);
    mark->event = NULL;
}

enum base_status workload_stream_wait(int waiting_device, cudaStream_t waiting, int device,
                                      cudaStream_t stream) {
    struct workload_mark mark = {NULL};
    if (waiting_device == device && waiting == stream) return BASE_OK;
    enum base_status status = workload_mark_set(&mark, device, stream);
    if (status == BASE_OK) status = workload_mark_wait(&mark, waiting_device, waiting);
    workload_mark_drop(&mark);
    return status;
}
