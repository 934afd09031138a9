// Control of the simulated CUDA device: what a test, a replay or a stress program may arrange that no CUDA
// call can. The CUDA calls themselves are declared in <cuda_runtime_api.h> under simulator/include, with
// CUDA 13's names, values and layouts.
//
//     sim_configure(&(struct sim_options){.device_count = 1, .capacity_bytes = 12 * BASE_GIB, .numerics = SIM_NUMERICS_OFF});
//     cudaMalloc(&pointer, 1 << 20);            counts one 2 MiB page of the device
//
// Every option can also come from the environment (TIDEMARK_SIM_CAPACITY=80GiB and so on, see struct
// sim_options); a program that calls sim_configure has the last word.
//
// Who may include this: tests, tensor/launch.*, and callers that need the control and say what they do when the
// build is --config=cuda. Never allocator/.
//
// Threads: every function may be called from any thread, sim_configure and sim_reset only while no other
// thread is in a CUDA call.
#ifndef TIDEMARK_SIMULATOR_SIM_H
#define TIDEMARK_SIMULATOR_SIM_H

#include "base/status.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

// Physical memory is accounted in pages of this size, as a device does: small blocks share none here
// (each cudaMalloc rounds up to whole pages).
#define SIM_PAGE_BYTES ((uint64_t)2 << 20)
#define SIM_DEVICE_COUNT_MAX 16

enum sim_numerics {
    SIM_NUMERICS_ON,  // device memory exists (a sparse memfd): copies and kernels move real bytes
    SIM_NUMERICS_OFF, // accounting only: addresses and sizes, no byte is mapped; for traces of any size
};

enum sim_addresses {
    SIM_ADDRESSES_ASCENDING, // ever-growing, never reused, a 2 MiB gap between neighbours
    SIM_ADDRESSES_REUSED,    // the lowest free range that fits
};

struct sim_options {
    int device_count;                // default 1 (TIDEMARK_SIM_DEVICES)
    uint64_t capacity_bytes;         // of each device; default 80 GiB (TIDEMARK_SIM_CAPACITY)
    enum sim_numerics numerics;      // default on (TIDEMARK_SIM_NUMERICS=on|off)
    enum sim_addresses addresses;    // default ascending (TIDEMARK_SIM_ADDRESSES=ascending|reused)
};

// Starts the simulated devices anew with these options (a zero field means its default): as a new
// process would find them. Every pointer, stream and event of before is dead. BASE_INVALID_VALUE names a bad option.
enum base_status sim_configure(const struct sim_options *options) BASE_MUST_USE;

// sim_configure with the options in force.
void sim_reset(void);

// The next successful cudaMalloc (or address reservation) on DEVICE answers with ADDRESS instead of choosing one: for an
// exact replay of a recording. It must be a multiple of 512 in [4096, 2^56) and its range overlap no
// live one, else BASE_INVALID_VALUE. Several calls queue up, first in first out. With numerics on only addresses inside the simulator's own reserved range can be had.
enum base_status sim_next_address(int device, uint64_t address) BASE_MUST_USE;
// Forgets addresses that were queued and not used.
void sim_next_address_clear(int device);

// Memory of the device that others hold (other processes, the context), as cudaMemGetInfo sees it: it lowers what is free.
void sim_set_foreign_bytes(int device, uint64_t bytes);

// Bytes of DEVICE held through CUDA calls of this process, in whole pages.
uint64_t sim_used_bytes(int device);

// Held streams. The eager schedule runs each operation within its enqueueing call; the work of a held stream stays
// pending instead, in order, until it is released, sim_stream_run lets some of it run, or a call that waits (cudaStreamSynchronize,
// cudaEventSynchronize, cudaDeviceSynchronize, cudaFree ...) forces it. Only queries see the difference: cudaEventQuery says
// cudaErrorNotReady. A stream that waits for an event of a held stream is itself pending behind it.
void sim_stream_hold(cudaStream_t stream, bool held);
// Runs the first COUNT pending operations of a held stream; returns how many ran.
uint64_t sim_stream_run(cudaStream_t stream, uint64_t count);
// How many operations of the stream are pending.
uint64_t sim_stream_pending(cudaStream_t stream);

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
    SIM_CALL_KIND_COUNT,
};

// Calls made since sim_configure, failed ones included; and those that failed.
uint64_t sim_call_count(enum sim_call call);
uint64_t sim_call_failed_count(enum sim_call call);
const char *sim_call_name(enum sim_call call); // "cudaMalloc"

// The N-th next call of this kind (1 = the next) fails with ERROR and does nothing else. One fault a kind
// at a time; N = 0 removes it.
void sim_fault_next(enum sim_call call, uint64_t n, cudaError_t error);

// A kernel, as tensor/launch.* and tests launch one: BODY(ARGUMENT) runs in stream order. The argument bytes
// are copied at the call.
cudaError_t sim_launch(cudaStream_t stream, const char *name, void (*body)(const void *argument), const void *argument,
                       size_t argument_size);

// Where the byte at device address POINTER can be touched by code that runs as device work (inside BODY above);
// NULL if it is not mapped or numerics are off.
void *sim_device_bytes(const void *pointer);

#endif
