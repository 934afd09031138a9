// The frame of driver calls, and contexts. A driver call takes the simulator's lock, is counted and
// can be made to fail as a runtime call is (call.h), but never touches the thread's last error.
//
//     CUresult error = sim__driver_begin(SIM_CALL_MEM_MAP, true);
//     if (error == CUDA_SUCCESS)
//         error = map_locked(pointer, size, offset, handle, flags);
//     return sim__driver_end(SIM_CALL_MEM_MAP, error);
#ifndef TIDEMARK_SIMULATOR_DRIVER_H
#define TIDEMARK_SIMULATOR_DRIVER_H

#include "simulator/state.h"

#include <cuda.h>

// Anything but CUDA_SUCCESS is what the call must end with: also without cuInit, or without a
// current context where one is needed.
CUresult sim__driver_begin(enum sim_call call, bool needs_context);
CUresult sim__driver_end(enum sim_call call, CUresult error);

// --- context.c; all need the simulator's lock ---

// The thread's device gets its primary context, and the thread has it as its current one.
void sim__context_enter(struct sim__thread *thread);
// cudaDeviceReset: the runtime does not use the device's context any more, nor has the thread one.
void sim__context_leave(struct sim__thread *thread);
// The machine starts: no context is active, the driver is not initialized.
void sim__contexts_start(void);

// --- Names that CUDA exports and its headers do not declare ---

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context);
CUresult cuCtxSynchronize_v2(CUcontext context);
CUresult cuMemsetD32Async_ptsz(CUdeviceptr pointer, unsigned int value, size_t count,
                               CUstream stream);
CUresult cuStreamWriteValue32_v2_ptsz(CUstream stream, CUdeviceptr pointer, cuuint32_t value,
                                      unsigned int flags);
CUresult cuStreamWriteValue64_v2_ptsz(CUstream stream, CUdeviceptr pointer, cuuint64_t value,
                                      unsigned int flags);
CUresult cuGetProcAddress_v2_ptsz(const char *symbol, void **function, int version,
                                  cuuint64_t flags, CUdriverProcAddressQueryResult *status);

#endif
