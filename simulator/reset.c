// cudaDeviceReset: the current device's context ends, with the memory, streams and events that it
// holds. Pending work is done first: nobody could say what became of it. Memory of pools stays, as
// on a GPU, and so does an error that the device will not recover from.
#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/driver.h"
#include "simulator/memory.h"
#include "simulator/order.h"
#include "simulator/pool.h"
#include "simulator/stream.h"

static void events_reset(const struct sim__device *device) {
    for (uint32_t i = 0; i < sim__state.events.slot_count; ++i) {
        struct sim__event *event = sim__handle_slot_at(&sim__state.events, i);
        if (event->slot.handle == 0 || event->device != device->index)
            continue;
        sim__event_uncapture(event);
        sim__handle_give(&sim__state.events, event);
    }
}

cudaError_t cudaDeviceReset(void) {
    cudaError_t error = sim__call_begin(SIM_CALL_DEVICE_SYNCHRONIZE);
    if (error == cudaSuccess) {
        struct sim__device *device = sim__device_current();
        struct sim__order_point point = sim__order_of_device(device);
        sim__engine_force_device(device);
        sim__order_observe(&point);
        sim__pools_release();
        sim__streams_reset(device);
        events_reset(device);
        sim__memory_reset(device);
        sim__host_memory_reset(device);
        device->peers_enabled = 0;
        sim__context_leave(sim__thread());
        error = device->sticky_error;
    }
    return sim__call_end(SIM_CALL_DEVICE_SYNCHRONIZE, error);
}
