// Counting of calls, planned faults, and the frame of call.h. Counters are guarded by the
// simulator's lock.
#include "simulator/call.h"

#include "simulator/cost.h"
#include "simulator/fault.h"
#include "simulator/reading.h"
#include "simulator/schedule.h"

#include <string.h>

struct call_kind {
    uint64_t count;
    uint64_t failed_count;
    uint64_t fault_countdown; // 0: no fault is planned
    cudaError_t fault;
};

static struct call_kind kinds[SIM_CALL_KIND_COUNT];

static const char *const names[SIM_CALL_KIND_COUNT] = {
    [SIM_CALL_MALLOC] = "cudaMalloc",
    [SIM_CALL_FREE] = "cudaFree",
    [SIM_CALL_MEM_GET_INFO] = "cudaMemGetInfo",
    [SIM_CALL_MEMCPY] = "cudaMemcpy",
    [SIM_CALL_MEMSET] = "cudaMemset",
    [SIM_CALL_HOST_ALLOC] = "cudaHostAlloc",
    [SIM_CALL_HOST_FREE] = "cudaFreeHost",
    [SIM_CALL_STREAM_CREATE] = "cudaStreamCreate",
    [SIM_CALL_STREAM_DESTROY] = "cudaStreamDestroy",
    [SIM_CALL_STREAM_SYNCHRONIZE] = "cudaStreamSynchronize",
    [SIM_CALL_STREAM_QUERY] = "cudaStreamQuery",
    [SIM_CALL_STREAM_WAIT_EVENT] = "cudaStreamWaitEvent",
    [SIM_CALL_EVENT_CREATE] = "cudaEventCreate",
    [SIM_CALL_EVENT_DESTROY] = "cudaEventDestroy",
    [SIM_CALL_EVENT_RECORD] = "cudaEventRecord",
    [SIM_CALL_EVENT_QUERY] = "cudaEventQuery",
    [SIM_CALL_EVENT_SYNCHRONIZE] = "cudaEventSynchronize",
    [SIM_CALL_DEVICE_SYNCHRONIZE] = "cudaDeviceSynchronize",
    [SIM_CALL_LAUNCH] = "cudaLaunchKernel",
    [SIM_CALL_HOST_FUNCTION] = "cudaLaunchHostFunc",
};

static bool fault_strikes(struct call_kind *kind) {
    return kind->fault_countdown > 0 && --kind->fault_countdown == 0;
}

cudaError_t sim__call_begin(enum sim_call call) {
    struct sim__thread *thread = sim__thread();
    if (thread->work_depth > 0)
        return cudaErrorNotPermitted;
    base_mutex_lock(&sim__state.lock);
    if (!sim__state.ready)
        sim__start_locked();
    if (!sim__schedule->runs_at_once) {
        sim__cost_call(call);
        sim__engine_point();
    }
    if (call != SIM__CALL_OTHER) {
        sim__state.stall_ns = 0;
        ++kinds[call].count;
        if (fault_strikes(&kinds[call]))
            return kinds[call].fault;
        const cudaError_t error = sim__fault_count > 0 ? sim__fault_strike(call) : cudaSuccess;
        if (error != cudaSuccess)
            return error;
    }
    return sim__state.devices[thread->device].sticky_error;
}

cudaError_t sim__call_end(enum sim_call call, cudaError_t error) {
    struct sim__thread *thread = sim__thread();
    const bool failed = error != cudaSuccess && error != cudaErrorNotReady;
    if (failed || (error == cudaErrorNotReady && sim__reading_other[SIM__READING_RECORD_600]))
        thread->last_error = error;
    if (thread->work_depth > 0)
        return error;
    if (failed && call != SIM__CALL_OTHER)
        ++kinds[call].failed_count;
    base_mutex_unlock(&sim__state.lock);
    return error;
}

void sim__call_reset(void) { memset(kinds, 0, sizeof kinds); }

uint64_t sim__call_count_locked(enum sim_call call) { return kinds[call].count; }

uint64_t sim_call_count(enum sim_call call) {
    BASE_CHECK((unsigned)call < SIM_CALL_KIND_COUNT);
    base_mutex_lock(&sim__state.lock);
    const uint64_t count = kinds[call].count;
    base_mutex_unlock(&sim__state.lock);
    return count;
}

uint64_t sim_call_failed_count(enum sim_call call) {
    BASE_CHECK((unsigned)call < SIM_CALL_KIND_COUNT);
    base_mutex_lock(&sim__state.lock);
    const uint64_t count = kinds[call].failed_count;
    base_mutex_unlock(&sim__state.lock);
    return count;
}

const char *sim_call_name(enum sim_call call) {
    BASE_CHECK((unsigned)call < SIM_CALL_KIND_COUNT);
    return names[call];
}

void sim_fault_next(enum sim_call call, uint64_t n, cudaError_t error) {
    BASE_CHECK((unsigned)call < SIM_CALL_KIND_COUNT);
    base_mutex_lock(&sim__state.lock);
    sim__start_locked(); // a start forgets faults
    kinds[call].fault_countdown = n;
    kinds[call].fault = error;
    base_mutex_unlock(&sim__state.lock);
}
