// The events that blocks of page-locked memory wait for: one queue, in the order of the frees, as
// in PyTorch's host allocator. Events are kept to be recorded again. Not thread-safe.
#ifndef TIDEMARK_TENSOR_PINNED_EVENTS_H
#define TIDEMARK_TENSOR_PINNED_EVENTS_H

#include "base/status.h"
#include "tensor/tensor.h"

#include <stdbool.h>

struct tensor_pinned_use {
    cudaStream_t stream;
    int device;
};

struct tensor_pinned_event;
struct tensor_pinned_events {
    struct tensor_pinned_event *first, *last;
    struct tensor_pinned_event *spare[TENSOR_DEVICE_MAX];
};

// An event of BLOCK behind each of the uses; none is queued if one could not be recorded.
enum base_status tensor__pinned_events_record(struct tensor_pinned_events *events,
                                              const struct tensor_pinned_use *uses, size_t count,
                                              void *block) BASE_MUST_USE;
// Whether one of the streams is captured now: an event there would stand for a place in the graph.
bool tensor__pinned_is_captured(const struct tensor_pinned_use *uses, size_t count);
// The block of the first event, which leaves the queue; NULL: it is not complete, or there is none.
enum base_status tensor__pinned_events_take(struct tensor_pinned_events *events,
                                            void **block) BASE_MUST_USE;
void tensor__pinned_events_deinit(struct tensor_pinned_events *events);

#endif
