// Control of the simulated CUDA device: what a test, a replay or a stress program may arrange that
// no CUDA call can. The CUDA calls themselves are declared in <cuda_runtime_api.h> under
// simulator/include, with CUDA 13's names, values and layouts.
//
//     sim_configure(&(struct sim_options){.capacity_bytes = 12 * BASE_GIB,
//                                         .numerics = SIM_NUMERICS_OFF});
//     cudaMalloc(&pointer, 1 << 20);            counts one 2 MiB page of the device
//
// Every option can also come from the environment (TIDEMARK_SIM_CAPACITY=80GiB and so on, see
// struct sim_options); a program that calls sim_configure has the last word.
//
// Who may include this: tests, tensor/launch.*, and callers that need the control and say what they
// do when the build is --config=cuda. Never allocator/.
//
// Threads: every function may be called from any thread, sim_configure and sim_reset only while no
// other thread is in a CUDA call.
#ifndef TIDEMARK_SIMULATOR_SIM_H
#define TIDEMARK_SIMULATOR_SIM_H

#include "base/status.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Physical memory is accounted in pages of this size, as a device does: small blocks share none
// here (each cudaMalloc rounds up to whole pages).
#define SIM_PAGE_BYTES ((uint64_t)2 << 20)
#define SIM_DEVICE_COUNT_MAX 16

enum sim_numerics {
    SIM_NUMERICS_ON,  // device memory exists (a sparse memfd): copies and kernels move real bytes
    SIM_NUMERICS_OFF, // accounting only: addresses and sizes; for traces of any size
};

enum sim_addresses {
    SIM_ADDRESSES_ASCENDING, // ever-growing, never reused, a 2 MiB gap between neighbours
    SIM_ADDRESSES_REUSED,    // the lowest free range that fits
};

struct sim_options {
    int device_count; // 1 to SIM_DEVICE_COUNT_MAX; default 1 (TIDEMARK_SIM_DEVICES)
    // Of each device; default what its profile says, else 80 GiB (TIDEMARK_SIM_CAPACITY). From one
    // page to 8 TiB for all devices together with numerics on, to 16 PiB each with numerics off.
    uint64_t capacity_bytes;
    enum sim_numerics numerics;   // default on (TIDEMARK_SIM_NUMERICS=on|off)
    enum sim_addresses addresses; // default ascending (TIDEMARK_SIM_ADDRESSES=ascending|reused)
    // Addresses that device memory and reservations (cuMemAddressReserve) may take together, in
    // pages; default and most 128 TiB (TIDEMARK_SIM_ADDRESS_SPACE). Beyond: out of memory.
    uint64_t address_bytes;
    // What a device's primary context takes of its memory while it is active; default 0
    // (TIDEMARK_SIM_CONTEXT).
    uint64_t context_bytes;
    // Finds what a program does wrong (TIDEMARK_SIM_CHECKED=1): see "Checked mode" below.
    bool checked;
};

// Starts the simulated devices anew with these options: as a new process would find them. Every
// pointer, stream and event of before is dead. A count or capacity of 0 means that of the
// environment, else the default. BASE_INVALID_VALUE names a bad option or variable; nothing has
// changed then. A program that does not call this gets the environment's options at its first CUDA
// call; a bad variable ends it there, one line, exit status 2.
enum base_status sim_configure(const struct sim_options *options) BASE_MUST_USE;

// sim_configure with the options in force.
void sim_reset(void);

// The next successful cudaMalloc on DEVICE answers with ADDRESS instead of choosing one: for an
// exact replay of a recording. It must be a multiple of 512 in [4096, 2^56) and not lie in live
// memory, else BASE_INVALID_VALUE; with numerics on also a multiple of 4096 inside the device's
// reserved range. Several calls queue up, first in first out. If the allocation turns out to be too
// long for the place (its range would meet live memory), the address is used up and the allocation
// goes where the policy says: compare what cudaMalloc returned. The policies keep clear of queued
// addresses once they are used.
enum base_status sim_next_address(int device, uint64_t address) BASE_MUST_USE;
// Forgets addresses that were queued and not used.
void sim_next_address_clear(int device);

// The same for the next successful cuMemAddressReserve that gives no hint: a multiple of 2 MiB, with
// numerics on of the range that reservations have. What is not free then is passed over.
enum base_status sim_next_reservation(uint64_t address) BASE_MUST_USE;
void sim_next_reservation_clear(void);

// Memory of the device that others hold (other processes, the context): it lowers what
// cudaMemGetInfo calls free and what cudaMalloc can get.
void sim_set_foreign_bytes(int device, uint64_t bytes);

// Bytes of DEVICE held through CUDA calls of this process, in whole pages.
uint64_t sim_used_bytes(int device);

// Held streams. The eager schedule runs each operation within its enqueueing call; the work of a
// held stream stays pending instead, in order, until it is released, sim_stream_run lets some of it
// run, or a call that waits (cudaStreamSynchronize, cudaEventSynchronize, cudaDeviceSynchronize,
// cudaFree ...) forces it. Only queries see the difference: cudaEventQuery says cudaErrorNotReady.
// A stream that waits for an event of a held stream is itself pending behind it. Stream 0 is the
// legacy default stream of the current device; a handle that is none aborts. cudaStreamDestroy ends
// the hold.
void sim_stream_hold(cudaStream_t stream, bool held);
// Runs the first COUNT pending operations of a stream, held or not; returns how many ran: fewer if
// there are no more, or the next one waits for an operation of another held stream. An event record
// is one operation; so is a wait, unless nothing comes of it: its event is complete, say; and so is
// the launch of a graph, with all its nodes.
uint64_t sim_stream_run(cudaStream_t stream, uint64_t count);
// How many operations of the stream are pending.
uint64_t sim_stream_pending(cudaStream_t stream);

// What pending work of the default streams, held or not, and queries do depends on the schedule:
//
//     eager        all work runs within the call that makes it ready
//     lazy         nothing runs before a wait needs it; a query that says "not ready" runs one
//                  operation of what it asks about
//     random:SEED  any legal order, from a number; queries may say "not ready" of complete work
//     timed        operations take virtual time (sim_time_ns) on engines of the device
//
// TEXT is one of these; TIDEMARK_SIM_SCHEDULE says it for a program that does not. It holds from
// now on, through sim_configure and sim_reset, which begin the random order anew; the default is
// eager. One host thread: the same program and seed give the same run, bit for bit; several: under
// sim_serialize. BASE_INVALID_VALUE names what is wrong.
enum base_status sim_schedule(const char *text) BASE_MUST_USE;

// Virtual time: under "timed" what calls and operations cost; else a microsecond for each operation
// that did work. Starts at 0 with the machine.
uint64_t sim_time_ns(void);

// The device that is simulated: a profile's name (h200, a100-80gb) or the path of a file
// (docs/cost-model.md). It gives the costs, from now on; what cudaGetDeviceProperties says; and the
// capacity of a sim_configure that gives none. TIDEMARK_SIM_PROFILE for programs that do not call
// this; NULL: the device of no maker that there is at first. BASE_INVALID_VALUE, or BASE_FORMAT with
// file, line and what would be right; the former profile stays.
enum base_status sim_profile(const char *name_or_path) BASE_MUST_USE;

// Modelled times are no more exact than the published figures they come from: beside the typical
// time stand those with the low and with the high figures.
struct sim_interval {
    uint64_t low_ns, typical_ns, high_ns;
};
// Virtual time. Low and high belong to the run as it went: what they would have changed about the
// order of things is not in them.
struct sim_interval sim_time_interval(void);
// Host time of the calls counted since sim_configure, without what they waited for. A model under
// any schedule, whatever the calls took here.
struct sim_interval sim_call_time(void);

// Under "timed": for how long some device had a kernel, a fill or a copy to run, from
// sim_busy_begin to now; what passed beyond it no device had anything to do. 0 under any other
// schedule. Each begin forgets the one before; sim_configure and sim_reset end it.
void sim_busy_begin(void);
uint64_t sim_busy_ns(void);

// For a loop that watches memory which the device writes, instead of asking by a query: lets at
// least one operation run in the end, as repeated queries do.
void sim_progress(void);

// Points that CUDA's documents leave open, as switches (the first value is the default):
//
//     pageable-source=consumed|late   when an Async copy reads its pageable source: at the call, or
//                                     when it runs
//     pageable-dest=async|sync        whether an Async copy to pageable memory makes the host wait
//     free=wait|strict                whether cudaFree and cudaFreeHost wait for pending work;
//                                     strict: they order nothing, and the memory goes when the work
//                                     that is pending is done
//     threads=shared|strict           whether a host thread's doings come after those of another
//                                     one that it did not wait for; for checkers and for programs
//                                     that ask sim_reading_value: nothing runs otherwise
//     record-600=no|yes               whether cudaErrorNotReady becomes the last error
//     empty-fork=joined|unjoined      a stream joined a capture, captured nothing, and no stream
//                                     waited for it
//     never-wait=noop|refused         a capturing stream waits for an event that was never recorded:
//                                     nothing, or as for one that was recorded outside
//     ended-wait=noop|refused         an idle stream waits for an event of a capture that has ended:
//                                     nothing, or cudaErrorCapturedEvent
//     query-captured=invalidates|harmless
//                                     asking about, or waiting for, an event that a running capture
//                                     recorded loses that capture
//     captured-unsafe=907|900         the code of that where the thread may not ask about any event
//     wrong-end=invalidates|harmless  cudaStreamEndCapture for the wrong stream, or by the wrong
//                                     thread, loses the capture
//     lost-unsafe=allowed|refused     whether a capture that is lost and not ended goes on refusing
//                                     the calls that captures refuse
//     sync-copy=unsafe|safe           whether plain copies are among the calls that captures refuse
//     stream-create=unsafe|safe       the same for the creation of streams and pools
//     eager-free=invalidates|harmless cudaFreeAsync in a capture of what no graph allocated: wrong in
//                                     any case, but is the capture lost
//     legacy-wait=906|unsafe          waiting for, or asking, the legacy stream while a blocking
//                                     stream captures: as work of it, or as any stream's
//     external-outside=1|401          the code of external records and waits outside captures
//
// TIDEMARK_SIM_READINGS=NAME=VALUE[,NAME=VALUE]... for programs that do not call this.
// BASE_INVALID_VALUE names what is wrong.
enum base_status sim_reading(const char *name, const char *value) BASE_MUST_USE;
const char *sim_reading_value(const char *name); // NULL if there is no such reading

// Makes the interleaving of host threads reproducible: one thread runs at a time, and the next is
// drawn from SEED at CUDA calls and at the locks, conditions, starts and joins of base/thread.h. To
// be called while the program has one thread; threads must be started by base_thread_start. A
// thread that waits by other means (a loop that watches memory) must call base_thread_yield in the
// loop, or it waits for ever. When every thread waits for another one, the program ends with a line
// that names the seed. sim_serialize_end goes back to threads as they come, when all others have
// ended. TIDEMARK_SIM_SERIALIZE=SEED: from the first CUDA call on.
void sim_serialize(uint64_t seed);
void sim_serialize_end(void);

// Writes each CUDA call from now on, with its time, thread, arguments and result, and each operation
// with when it ran, to the file PATH: as lines of text, or, if the name ends in .json, as a trace of
// events that Perfetto shows. The file appears when it is complete: at exit, by another
// sim_transcript (NULL: no more), and at sim_configure and sim_reset, behind which PATH.2 and so on
// follow (out.json, out.2.json). TIDEMARK_SIM_TRACE=PATH for programs that do not call this.
enum base_status sim_transcript(const char *path) BASE_MUST_USE;

// The CUDA calls that can be made to fail and that are counted, by kind.
enum sim_call {
    SIM_CALL_MALLOC,
    SIM_CALL_FREE,
    SIM_CALL_MEM_GET_INFO,
    SIM_CALL_MEMCPY,
    SIM_CALL_MEMSET,
    SIM_CALL_HOST_ALLOC,
    SIM_CALL_HOST_FREE,
    SIM_CALL_STREAM_CREATE,
    SIM_CALL_STREAM_DESTROY,
    SIM_CALL_STREAM_SYNCHRONIZE,
    SIM_CALL_STREAM_QUERY,
    SIM_CALL_STREAM_WAIT_EVENT,
    SIM_CALL_EVENT_CREATE,
    SIM_CALL_EVENT_DESTROY,
    SIM_CALL_EVENT_RECORD,
    SIM_CALL_EVENT_QUERY,
    SIM_CALL_EVENT_SYNCHRONIZE,
    SIM_CALL_DEVICE_SYNCHRONIZE,
    SIM_CALL_LAUNCH,
    SIM_CALL_HOST_FUNCTION,
    SIM_CALL_HOST_REGISTER,
    SIM_CALL_HOST_UNREGISTER,
    SIM_CALL_MALLOC_ASYNC,
    SIM_CALL_FREE_ASYNC,
    SIM_CALL_POOL_CREATE,
    SIM_CALL_POOL_DESTROY,
    SIM_CALL_POOL_TRIM,
    SIM_CALL_ADDRESS_RESERVE,
    SIM_CALL_ADDRESS_FREE,
    SIM_CALL_MEM_CREATE,
    SIM_CALL_MEM_RELEASE,
    SIM_CALL_MEM_MAP,
    SIM_CALL_MEM_UNMAP,
    SIM_CALL_MEM_SET_ACCESS,
    SIM_CALL_MEM_EXPORT,
    SIM_CALL_MEM_IMPORT,
    SIM_CALL_STREAM_WRITE_VALUE,
    SIM_CALL_STREAM_BEGIN_CAPTURE,
    SIM_CALL_STREAM_END_CAPTURE,
    SIM_CALL_GRAPH_INSTANTIATE,
    SIM_CALL_GRAPH_UPLOAD,
    SIM_CALL_GRAPH_LAUNCH,
    SIM_CALL_BLAS_CREATE,
    SIM_CALL_BLAS_DESTROY,
    SIM_CALL_BLAS_GEMM, // cublasGemmEx and all that multiply matrices
    SIM_CALL_BLAS_GEMV,
    SIM_CALL_BLAS_AXPY, // and scal
    SIM_CALL_BLAS_DOT,  // and nrm2
    SIM_CALL_BLAS_LT_MATMUL,
    SIM_CALL_KIND_COUNT,
};

// Calls made since sim_configure, failed ones included; and those that failed (cudaErrorNotReady is
// no failure).
uint64_t sim_call_count(enum sim_call call);
uint64_t sim_call_failed_count(enum sim_call call);
const char *sim_call_name(enum sim_call call); // "cudaMalloc"

// The N-th next call of this kind (1 = the next) fails with ERROR and does nothing else, wrong
// arguments or not. One fault a kind at a time; N = 0 removes it. cuBLAS calls take a status as
// well: SIM_FAULT_STATUS(CUBLAS_STATUS_ALLOC_FAILED); a CUDA error comes out as the status that
// cuBLAS makes of it.
#define SIM_FAULT_STATUS_FIRST 0x10000
#define SIM_FAULT_STATUS(status) ((cudaError_t)(SIM_FAULT_STATUS_FIRST + (status)))
void sim_fault_next(enum sim_call call, uint64_t n, cudaError_t error);

// Loads a fault plan, a text of rules: which calls fail or take longer, and when. fault.c says how
// one is written. It takes the place of a plan loaded before, and begins anew with each
// sim_configure and sim_reset; NULL: no plan. TIDEMARK_SIM_FAULTS=FILE for programs that do not
// call this. BASE_FORMAT names file, line and what would be right; the former plan stays.
enum base_status sim_faults_load(const char *path) BASE_MUST_USE;

// Plants a fault: the simulator does one thing wrong from now on, so that a test can prove that it
// would notice. NULL: none. BASE_INVALID_VALUE if there is no fault of that name.
enum base_status sim_plant(const char *name) BASE_MUST_USE;
// The faults, by index from 0: name, and what goes wrong. NULL beyond the last.
const char *sim_plant_name(int index);
const char *sim_plant_text(int index);

// A kernel, as tensor/launch.* and tests launch one: BODY(ARGUMENT) runs in stream order, on
// whichever host thread advances the stream, without the simulator's lock; it may make no CUDA
// call. The argument bytes are copied at the call, so they must stay valid that long only. With
// numerics off the launch takes its place in the stream and BODY is not called. NAME says what was
// launched; it must outlive the launch. Errors: no BODY cudaErrorInvalidDeviceFunction; a stream of
// another device than the current one cudaErrorInvalidResourceHandle.
cudaError_t sim_launch(cudaStream_t stream, const char *name, void (*body)(const void *argument),
                       const void *argument, size_t argument_size);

// The same with more to say: what the kernel moves and computes, from which "timed" takes how long
// it runs. Zero: unknown.
struct sim_kernel {
    const char *name;
    void (*body)(const void *argument);
    const void *argument;
    size_t argument_size;
    uint64_t bytes; // read and written in device memory
    uint64_t flops;
    uint64_t tensor_flops; // those that tensor cores do, 16-bit, besides
    // What it touches, in this order, for the race checker (struct sim_access, simulator/sim_race.h);
    // copied.
    const struct sim_access *accesses;
    size_t access_count;
};
cudaError_t sim_launch_kernel(cudaStream_t stream, const struct sim_kernel *kernel);

// Kernels as nodes of graphs, with the argument bytes as they are at the call. Errors as
// cudaGraphAddKernelNode and its kin have them, and those of sim_launch.
cudaError_t sim_graph_add_kernel(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *dependencies, size_t dependency_count,
                                 const struct sim_kernel *kernel);
// The argument is the node's own, valid until it is changed or destroyed; accesses are not told.
cudaError_t sim_graph_kernel_get(cudaGraphNode_t node, struct sim_kernel *kernel);
cudaError_t sim_graph_kernel_set(cudaGraphNode_t node, const struct sim_kernel *kernel);
// For launches to come. The kernel must be one of the node's device.
cudaError_t sim_graph_exec_kernel_set(cudaGraphExec_t exec, cudaGraphNode_t node,
                                      const struct sim_kernel *kernel);

// Where the byte at device address POINTER can be touched by code that runs as device work (inside
// BODY above), or by a test; NULL if no live memory is there or numerics are off. In checked mode
// this is another address than POINTER.
void *sim_device_bytes(const void *pointer);

// For a kernel's BODY and nothing else: where it can touch [POINTER, POINTER + SIZE), device or
// page-locked memory. NULL if its device may not: the memory is gone, is another device's whose
// peer access is not enabled (pools and mappings: not granted), or is not for writing. The device
// faults then, cudaErrorIllegalAddress for good, and BODY should return. Memory of mappings that
// follow each other is one piece.
void *sim_kernel_bytes(const void *pointer, size_t size, bool write);

// Checked mode (options.checked, TIDEMARK_SIM_CHECKED=1). What a program does wrong (frees twice,
// names a destroyed handle or a pointer that is none, writes behind the end of an allocation,
// unmaps memory in use) gets one sentence on standard error that says what, and where it called
// from; the codes are the same as ever. Device addresses that the program holds are without access:
// host code that follows one gets a sentence and SIGSEGV. New and freed memory is filled with a
// byte, as far as its edges and what was written of it.

// How many sentences there were since sim_configure.
uint64_t sim_misuse_count(void);
// The host is about to read or write page-locked memory. False, with a sentence in checked mode, if
// a pending copy, fill or value makes that a race. What pending kernels use is not known.
bool sim_host_access(const void *pointer, size_t size, bool write);

#ifdef __cplusplus
}
#endif

// A program that defines SIM_CALL_SITES before it includes this gets each CUDA call, sim_launch,
// sim_host_access and sim_block_ call that it makes from there on as a macro that tells the race
// checker (simulator/sim_race.h) its file and line. Without it, the debug information tells as much
// in most programs.
#ifdef SIM_CALL_SITES
#include "simulator/call_sites.h"
#endif

#endif
