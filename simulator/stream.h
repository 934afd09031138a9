// Streams and events as the program names them: handles, default streams, threads' own streams.
// All functions need the simulator's lock.
#ifndef TIDEMARK_SIMULATOR_STREAM_H
#define TIDEMARK_SIMULATOR_STREAM_H

#include "simulator/state.h"

// The stream that HANDLE means in this thread: 0 and 1 the current device's legacy stream, 2 the
// thread's own. cudaErrorContextIsDestroyed if it was destroyed, cudaErrorInvalidResourceHandle if
// it never was one.
cudaError_t sim__stream_resolve(cudaStream_t handle, struct sim__stream **stream);
// Likewise for events, which have no default ones.
cudaError_t sim__event_resolve(cudaEvent_t handle, struct sim__event **event);
// Makes the legacy default stream of DEVICE.
void sim__stream_start_device(struct sim__device *device);
// The stream of DEVICE for work that belongs to no stream of the program.
struct sim__stream *sim__stream_hidden(struct sim__device *device);
// Drops all streams and what is pending in them.
void sim__streams_clear(void);
// cudaDeviceReset: all streams of the device are destroyed but the legacy one.
void sim__streams_reset(const struct sim__device *device);
// The thread ends: so do its default streams.
void sim__streams_leave(struct sim__thread *thread);

#endif
