// The frame of every CUDA call: lock, counting, planned faults, last error.
//
//     cudaError_t error = sim__call_begin(SIM_CALL_FREE);
//     if (error == cudaSuccess)
//         error = free_locked(pointer);
//     return sim__call_end(SIM_CALL_FREE, error);
//
// Between the two the simulator's lock is held, unless the call comes from device work (a kernel or
// host function): that is refused with cudaErrorNotPermitted and takes no lock.
#ifndef TIDEMARK_SIMULATOR_CALL_H
#define TIDEMARK_SIMULATOR_CALL_H

#include "simulator/state.h"

// For calls that are not among the counted kinds. (The others need a context: the thread's device
// gets its primary one.)
#define SIM__CALL_OTHER SIM_CALL_KIND_COUNT

// Anything but cudaSuccess is what the call must end with.
cudaError_t sim__call_begin(enum sim_call call);
// Records ERROR as the thread's last error as CUDA would, a status of a library's (SIM_FAULT_STATUS)
// not; returns it.
cudaError_t sim__call_end(enum sim_call call, cudaError_t error);

// For control functions that are no CUDA calls, with the lock held: notes who called the function
// that calls this, as sim__call_begin does in checked mode and while the race checker is on.
void sim__call_note(enum sim_call call) __attribute__((noinline));

// caller.c: "upload (train.c:31), called by step (train.c:80)", from what such a call noted;
// without debug information "upload (./program+0x1a5d)"; "" if nothing is known. Cut to SIZE;
// returns TEXT.
#define SIM__CALLED_BY ", called by "
const char *sim__callers_text(const void *const callers[SIM__CALLERS], char *text, size_t size);

// Forgets counts and faults.
void sim__call_reset(void);
// As sim_call_count.
uint64_t sim__call_count_locked(enum sim_call call);

// The thread's current device.
static inline struct sim__device *sim__device_current(void) {
    return &sim__state.devices[sim__thread()->device];
}

#endif
