// The one file of the replay that knows whether the device is simulated.
//
// A fence is the event that an allocator records on a side stream when a block that was used there
// is freed. The side stream is held, so that the event stays pending until the recording says that
// it completed.
#include "workload/replay_device.h"

#include <stdlib.h>

#ifdef TIDEMARK_SIMULATOR
#include "simulator/sim.h"
#endif

static enum base_status create_stream(cudaStream_t *stream) {
    const cudaError_t error = cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
    if (error == cudaSuccess) return BASE_OK;
    return base_status_set(BASE_CUDA, "cudaStreamCreateWithFlags: %s", cudaGetErrorString(error));
}

static enum base_status create_if_new(struct workload__device *device, uint16_t index) {
    if (index == 0 || device->streams[index] != NULL) return BASE_OK;
    return create_stream(&device->streams[index]);
}

static enum base_status create_streams(struct workload__device *device,
                                       const struct workload_replay_plan *plan) {
    enum base_status status = BASE_OK;
    for (size_t i = 0; i < plan->start.segment_count && status == BASE_OK; i++)
        status = create_if_new(device, plan->start.segments[i].stream);
    for (size_t i = 0; i < plan->operation_count && status == BASE_OK; i++) {
        const struct workload__operation *operation = &plan->operations[i];
        if (operation->kind == WORKLOAD__ALLOC || operation->kind == WORKLOAD__ALLOC_FAILED)
            status = create_if_new(device, operation->stream);
    }
    return status;
}

static enum base_status create_side_streams(struct workload__device *device, size_t count) {
#ifdef TIDEMARK_SIMULATOR
    for (; device->side_stream_count < count; device->side_stream_count++) {
        enum base_status status = create_stream(&device->side_streams[device->side_stream_count]);
        if (status != BASE_OK) return status;
        sim_stream_hold(device->side_streams[device->side_stream_count], true);
    }
#else
    (void)device;
    (void)count;
#endif
    return BASE_OK;
}

enum base_status workload__device_init(struct workload__device *device,
                                       const struct workload_replay_plan *plan) {
    *device = (struct workload__device){.stream_count = plan->trace->stream_count};
    device->streams = calloc(device->stream_count + 1, sizeof(cudaStream_t));
    device->side_streams = calloc((size_t)plan->side_stream_count + 1, sizeof(cudaStream_t));
    device->fence_counts =
        calloc((size_t)plan->side_stream_count + 1, sizeof *device->fence_counts);
    enum base_status status = BASE_OK;
    if (device->streams == NULL || device->side_streams == NULL || device->fence_counts == NULL)
        status =
            base_status_set(BASE_HOST_MEMORY, "no memory for %zu streams", device->stream_count);
    if (status == BASE_OK) status = create_streams(device, plan);
    if (status == BASE_OK) status = create_side_streams(device, plan->side_stream_count);
    if (status != BASE_OK) workload__device_deinit(device);
    return status;
}

void workload__device_deinit(struct workload__device *device) {
    for (size_t i = 0; i < device->side_stream_count; i++) {
#ifdef TIDEMARK_SIMULATOR
        sim_stream_hold(device->side_streams[i], false);
#endif
        (void)cudaStreamDestroy(device->side_streams[i]);
    }
    for (size_t i = 1; i < device->stream_count && device->streams != NULL; i++)
        if (device->streams[i] != NULL) (void)cudaStreamDestroy(device->streams[i]);
    free(device->streams);
    free(device->side_streams);
    free(device->fence_counts);
    *device = (struct workload__device){0};
}

bool workload__device_takes_addresses(void) {
#ifdef TIDEMARK_SIMULATOR
    return true;
#else
    return false;
#endif
}

bool workload__device_next_address(uint64_t address) {
#ifdef TIDEMARK_SIMULATOR
    return sim_next_address(0, address) == BASE_OK;
#else
    (void)address;
    return false;
#endif
}

bool workload__device_next_range(uint64_t address) {
#ifdef TIDEMARK_SIMULATOR
    return sim_next_reservation(address) == BASE_OK;
#else
    (void)address;
    return false;
#endif
}

void workload__device_next_address_clear(void) {
#ifdef TIDEMARK_SIMULATOR
    sim_next_address_clear(0);
    sim_next_reservation_clear();
#endif
}

void workload__device_fence_pass(struct workload__device *device, uint16_t side_stream,
                                 uint64_t number) {
#ifdef TIDEMARK_SIMULATOR
    if (side_stream >= device->side_stream_count) return;
    const cudaStream_t stream = device->side_streams[side_stream];
    const uint64_t passed = device->fence_counts[side_stream] - sim_stream_pending(stream);
    if (number > passed) (void)sim_stream_run(stream, number - passed);
#else
    (void)device;
    (void)side_stream;
    (void)number;
#endif
}
