// What a program asks of expandable segments: whom they are shared with, and how much is mapped.
#include "allocator/device.h"
#include "allocator/expandable.h"

#include <stdlib.h>

// Every expandable segment of the device. growth_lock held: none is made or goes meanwhile, though
// the lists are those of the streams.
static enum base_status
each_segment(struct cca__device *device,
             enum base_status (*body)(struct cca__device *device, const struct cca__stream *stream,
                                      const struct cca__segment *segment, void *argument),
             void *argument) {
    const struct cca *const cca = device->owner;
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < device->stream_count && status == BASE_OK; ++index) {
        const struct cca__stream *const stream = device->by_handle[index];
        for (uint32_t number = stream->first_segment; number != 0 && status == BASE_OK;
             number = cca->segments[number].next)
            if (cca->segments[number].expandable != NULL)
                status = body(device, stream, &cca->segments[number], argument);
    }
    return status;
}

static enum base_status add_peer(struct cca__device *device, const struct cca__stream *stream,
                                 const struct cca__segment *segment, void *peer) {
    (void)stream;
    return cca__expandable_add_peer(device, segment->expandable, *(const int *)peer);
}

enum base_status cca_enable_peer_access(struct allocator *allocator, int ordinal, int peer) {
    struct cca__device *device, *other;
    enum base_status status = cca__device_of(allocator, ordinal, "expandable segments", &device);
    if (status == BASE_OK) status = cca__device_get(cca__of(allocator), peer, &other);
    if (status != BASE_OK) return status;
    if (device == other) return BASE_OK;
    cca__lock_take(&device->growth_lock);
    const uint64_t bit = (uint64_t)1 << peer;
    if ((device->peers & bit) == 0) status = each_segment(device, add_peer, &peer);
    if (status == BASE_OK) device->peers |= bit;
    cca__lock_release(&device->growth_lock);
    return status;
}

struct list {
    struct cca_expandable_segment *segments;
    size_t count;
};

static size_t mapped_bytes(const struct cca *cca, const struct cca__segment *segment) {
    size_t bytes = 0;
    for (uint32_t number = segment->first_block; number != 0; number = cca->blocks[number].next)
        if (cca->blocks[number].state != CCA__BLOCK_UNMAPPED) bytes += cca->blocks[number].size;
    return bytes;
}

static enum base_status list_segment(struct cca__device *device, const struct cca__stream *stream,
                                     const struct cca__segment *segment, void *argument) {
    struct list *const list = argument;
    if (stream->handle == NULL) return BASE_OK;
    struct cca_expandable_segment *const segments =
        realloc(list->segments, (list->count + 1) * sizeof *segments);
    if (segments == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for a list of segments");
    list->segments = segments;
    segments[list->count++] = (struct cca_expandable_segment){
        .stream = stream->handle,
        .is_large = segment->pool == stream->pools[CCA__POOL_LARGE].number,
        .mapped_bytes = mapped_bytes(device->owner, segment),
    };
    return BASE_OK;
}

enum base_status cca_expandable_segments(struct allocator *allocator, int ordinal,
                                         struct cca_expandable_segment **segments, size_t *count) {
    struct cca__device *device;
    enum base_status status = cca__device_of(allocator, ordinal, "expandable segments", &device);
    if (status != BASE_OK) return status;
    struct list list = {0};
    cca__lock_take(&device->growth_lock);
    cca__streams_lock_all(device);
    status = each_segment(device, list_segment, &list);
    cca__streams_unlock_all(device);
    cca__lock_release(&device->growth_lock);
    if (status != BASE_OK) {
        free(list.segments);
        return status;
    }
    *segments = list.segments;
    *count = list.count;
    return BASE_OK;
}
