// The device as a replay needs it: the recording's streams as real ones, and, where the device is
// simulated, the two controls that a real device has not: where the next segment lies, and when
// work on other streams is done. Private to the replay.
#ifndef TIDEMARK_WORKLOAD_REPLAY_DEVICE_H
#define TIDEMARK_WORKLOAD_REPLAY_DEVICE_H

#include "workload/replay_plan.h"

struct workload__device {
    cudaStream_t
        *streams; // by the recording's index; those that never appear stay the default stream
    size_t stream_count;
    cudaStream_t *side_streams; // held: their work waits until workload__device_fence_pass
    uint64_t *fence_counts;     // fences set on each
    size_t side_stream_count;   // 0 on a real device
};

// Creates the streams in order of first appearance in the plan. BASE_CUDA, BASE_HOST_MEMORY.
enum base_status workload__device_init(struct workload__device *device,
                                       const struct workload_replay_plan *plan) BASE_MUST_USE;
// Lets all work on the side streams finish and destroys every stream; the allocator may still hold
// memory of them.
void workload__device_deinit(struct workload__device *device);

// Whether the device can be told where its next segment lies.
bool workload__device_takes_addresses(void);
// The next segment lies at ADDRESS. False if the device cannot be told or holds memory there.
bool workload__device_next_address(uint64_t address);
// An expandable segment that is made next may begin at ADDRESS, if nothing is there then. False if
// no range can lie there.
bool workload__device_next_range(uint64_t address);
void workload__device_next_address_clear(void); // of both

// Work up to fence NUMBER of a side stream is done.
void workload__device_fence_pass(struct workload__device *device, uint16_t side_stream,
                                 uint64_t number);

#endif
