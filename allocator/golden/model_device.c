// See model_device.h.
#include "allocator/golden/model_device.h"

#include "base/check.h"
#include "base/size.h"

// Where the first segment lies; any page does. A gap of one page keeps neighbours apart.
#define FIRST_ADDRESS ((uint64_t)1 << 40)

// cudaErrorMemoryAllocation, by its value: the model uses no CUDA header's names for what it
// decides.
#define OUT_OF_MEMORY_CODE 2

void model_device_init(struct model_device *device, uint64_t capacity_bytes) {
    *device =
        (struct model_device){.capacity_bytes = capacity_bytes, .next_address = FIRST_ADDRESS};
}

uint64_t model_device_free_bytes(const struct model_device *device) {
    const uint64_t taken = device->used_bytes + device->foreign_bytes;
    return taken >= device->capacity_bytes ? 0 : device->capacity_bytes - taken;
}

static uint64_t take_address(struct model_device *device, uint64_t size) {
    if (device->queued_count > 0) {
        const uint64_t address = device->queued[0];
        device->queued_count--;
        for (size_t index = 0; index < device->queued_count; index++)
            device->queued[index] = device->queued[index + 1];
        return address;
    }
    const uint64_t address = device->next_address;
    device->next_address += size + MODEL_PAGE_BYTES;
    return address;
}

void model_device_queue_addresses(struct model_device *device, const uint64_t *addresses,
                                  size_t count) {
    BASE_CHECK_LE(count, sizeof device->queued / sizeof device->queued[0]);
    device->queued_count = count;
    for (size_t index = 0; index < count; index++) device->queued[index] = addresses[index];
}

int model_device_malloc(struct model_device *device, uint64_t size, uint64_t *address) {
    int code = 0;
    if (device->fault_countdown > 0 && --device->fault_countdown == 0) code = device->fault_code;
    if (code == 0 && size > model_device_free_bytes(device)) code = OUT_OF_MEMORY_CODE;
    const uint64_t bytes = code == 0 ? base_round_up(size, MODEL_PAGE_BYTES) : 0;
    if (bytes > model_device_free_bytes(device)) code = OUT_OF_MEMORY_CODE;
    if (code != 0) {
        device->malloc_failed_count++;
        return code;
    }
    device->malloc_count++;
    device->used_bytes += bytes;
    *address = take_address(device, bytes);
    return 0;
}

void model_device_free(struct model_device *device, uint64_t size) {
    for (unsigned stream = 0; stream < MODEL_STREAM_MAX; stream++)
        model_device_complete(device, stream);
    device->free_count++;
    device->used_bytes -= base_round_up(size, MODEL_PAGE_BYTES);
}

uint64_t model_device_reserve(struct model_device *device, uint64_t size) {
    device->reserve_count++;
    return take_address(device, size);
}

void model_device_address_free(struct model_device *device) { device->address_free_count++; }

int model_device_create(struct model_device *device, uint64_t size) {
    int code = 0;
    if (device->create_fault_countdown > 0 && --device->create_fault_countdown == 0)
        code = device->create_fault_code;
    if (code == 0 && size > model_device_free_bytes(device)) code = OUT_OF_MEMORY_CODE;
    if (code != 0) {
        device->create_failed_count++;
        return code;
    }
    device->create_count++;
    device->used_bytes += size;
    return 0;
}

void model_device_release(struct model_device *device, uint64_t size) {
    device->release_count++;
    device->used_bytes -= size;
}

void model_device_map(struct model_device *device, uint64_t page_count) {
    device->map_count += page_count;
    device->set_access_count++;
}

void model_device_unmap(struct model_device *device, unsigned stream, uint64_t page_count,
                        uint64_t page_size) {
    device->stream_synchronize_count++;
    model_device_complete(device, stream);
    for (uint64_t page = 0; page < page_count; page++) {
        device->unmap_count++;
        model_device_release(device, page_size);
    }
}

struct model_event model_device_event_record(struct model_device *device, unsigned stream) {
    BASE_CHECK_LT(stream, MODEL_STREAM_MAX);
    device->event_record_count++;
    // Events that are not outstanding lie in the pool, so one is made only when more are out than
    // ever before.
    if (++device->events_outstanding > device->event_create_count) device->event_create_count++;
    struct model_device_stream *queue = &device->streams[stream];
    queue->recorded++;
    if (device->completes_at_once) queue->done = queue->recorded;
    return (struct model_event){.stream = stream, .number = queue->recorded};
}

bool model_device_event_query(struct model_device *device, struct model_event event) {
    device->event_query_count++;
    return event.number <= device->streams[event.stream].done;
}

void model_device_event_wait(struct model_device *device, struct model_event event) {
    device->event_synchronize_count++;
    struct model_device_stream *queue = &device->streams[event.stream];
    if (queue->done < event.number) queue->done = event.number;
}

void model_device_event_release(struct model_device *device) { device->events_outstanding--; }

void model_device_complete(struct model_device *device, unsigned stream) {
    device->streams[stream].done = device->streams[stream].recorded;
}
