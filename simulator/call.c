// Counting of calls, planned faults, and the frame of call.h. Counters are guarded by the
// simulator's lock.
#include "simulator/call.h"

#include "simulator/checked.h"
#include "simulator/cost.h"
#include "simulator/driver.h"
#include "simulator/fault.h"
#include "simulator/plant.h"
#include "simulator/race.h"
#include "simulator/reading.h"
#include "simulator/schedule.h"
#include "simulator/user_object.h"

#include <string.h>

#define FRAME_BYTES_MAX ((uint64_t)1 << 20)

// The end of the thread's stack, above all of its frames; 0 before it was asked for.
static _Thread_local uint64_t stack_end;

struct frame {
    const struct frame *caller;
    const void *returns_to;
};

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
    [SIM_CALL_HOST_REGISTER] = "cudaHostRegister",
    [SIM_CALL_HOST_UNREGISTER] = "cudaHostUnregister",
    [SIM_CALL_MALLOC_ASYNC] = "cudaMallocAsync",
    [SIM_CALL_FREE_ASYNC] = "cudaFreeAsync",
    [SIM_CALL_POOL_CREATE] = "cudaMemPoolCreate",
    [SIM_CALL_POOL_DESTROY] = "cudaMemPoolDestroy",
    [SIM_CALL_POOL_TRIM] = "cudaMemPoolTrimTo",
    [SIM_CALL_ADDRESS_RESERVE] = "cuMemAddressReserve",
    [SIM_CALL_ADDRESS_FREE] = "cuMemAddressFree",
    [SIM_CALL_MEM_CREATE] = "cuMemCreate",
    [SIM_CALL_MEM_RELEASE] = "cuMemRelease",
    [SIM_CALL_MEM_MAP] = "cuMemMap",
    [SIM_CALL_MEM_UNMAP] = "cuMemUnmap",
    [SIM_CALL_MEM_SET_ACCESS] = "cuMemSetAccess",
    [SIM_CALL_MEM_EXPORT] = "cuMemExportToShareableHandle",
    [SIM_CALL_MEM_IMPORT] = "cuMemImportFromShareableHandle",
    [SIM_CALL_STREAM_WRITE_VALUE] = "cuStreamWriteValue32",
    [SIM_CALL_STREAM_BEGIN_CAPTURE] = "cudaStreamBeginCapture",
    [SIM_CALL_STREAM_END_CAPTURE] = "cudaStreamEndCapture",
    [SIM_CALL_GRAPH_INSTANTIATE] = "cudaGraphInstantiate",
    [SIM_CALL_GRAPH_UPLOAD] = "cudaGraphUpload",
    [SIM_CALL_GRAPH_LAUNCH] = "cudaGraphLaunch",
    [SIM_CALL_BLAS_CREATE] = "cublasCreate",
    [SIM_CALL_BLAS_DESTROY] = "cublasDestroy",
    [SIM_CALL_BLAS_GEMM] = "cublasGemmEx",
    [SIM_CALL_BLAS_GEMV] = "cublasSgemv",
    [SIM_CALL_BLAS_AXPY] = "cublasSaxpy",
    [SIM_CALL_BLAS_DOT] = "cublasSdot",
    [SIM_CALL_BLAS_LT_MATMUL] = "cublasLtMatmul",
};

static __attribute__((cold, noinline)) void stack_end_find(void) {
    pthread_attr_t attributes;
    void *start = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstack(&attributes, &start, &size);
        (void)pthread_attr_destroy(&attributes);
    }
    stack_end = (uint64_t)(uintptr_t)start + size;
}

// The addresses that the callers of the frame return to: each frame begins with its caller's, and
// the address to return to lies above. A caller without frame pointers ends the walk sooner or
// later: the stack grows downwards, in small steps, and ends.
static inline void callers_take(const struct frame *frame, const void *callers[SIM__CALLERS]) {
    if (stack_end == 0)
        stack_end_find();
    int i = 0;
    for (; i < SIM__CALLERS; ++i) {
        const struct frame *next = frame->caller;
        const uint64_t place = (uint64_t)(uintptr_t)next;
        const uint64_t step = place - (uint64_t)(uintptr_t)frame;
        if (step == 0 || step > FRAME_BYTES_MAX || step % sizeof(void *) != 0 ||
            (i > 0 && place + sizeof *next > stack_end))
            break;
        callers[i] = next->returns_to;
        frame = next;
    }
    for (; i < SIM__CALLERS; ++i)
        callers[i] = NULL;
}

void sim__call_note(enum sim_call call) {
    struct sim__thread *thread = sim__thread();
    thread->call = call;
    thread->is_explained = false;
    callers_take(__builtin_frame_address(0), thread->callers);
}

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
    if (sim__checked() || sim__race_is_on()) {
        thread->call = call;
        thread->is_explained = false;
        callers_take(__builtin_frame_address(0), thread->callers);
    }
    if (!sim__schedule->runs_at_once) {
        sim__cost_call(call);
        sim__engine_point();
    }
    if (call != SIM__CALL_OTHER) {
        if (!thread->has_context && !thread->in_driver_call)
            sim__context_enter(thread);
        sim__state.stall_ns = 0;
        ++kinds[call].count;
        thread->is_explained = true; // what a fault plan lets fail is no mistake
        if (fault_strikes(&kinds[call]))
            return kinds[call].fault;
        const cudaError_t error = sim__fault_count > 0 ? sim__fault_strike(call) : cudaSuccess;
        if (error != cudaSuccess)
            return error;
        thread->is_explained = false;
    }
    return sim__state.devices[thread->device].sticky_error;
}

cudaError_t sim__call_end(enum sim_call call, cudaError_t error) {
    struct sim__thread *thread = sim__thread();
    const bool failed = error != cudaSuccess && error != cudaErrorNotReady;
    if ((failed && error < SIM_FAULT_STATUS_FIRST) ||
        (error == cudaErrorNotReady && sim__reading_other[SIM__READING_RECORD_600]))
        thread->last_error = sim__planted(SIM__PLANT_ERROR_LOST) ? thread->last_error : error;
    if (thread->work_depth > 0)
        return error;
    if (failed && call != SIM__CALL_OTHER)
        ++kinds[call].failed_count;
    if (failed && sim__checked())
        sim__misuse_code(error);
    const bool finishes = sim__user_objects_dead;
    base_mutex_unlock(&sim__state.lock);
    if (finishes)
        sim__user_objects_finish();
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
