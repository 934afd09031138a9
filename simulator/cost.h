// What calls and operations cost in virtual time, for the timed schedule. Constants only: measured
// host time never enters the clock, so a run is the same on every machine.
//
// The defaults are round figures of a current datacentre device; a profile replaces them.
#ifndef TIDEMARK_SIMULATOR_COST_H
#define TIDEMARK_SIMULATOR_COST_H

#include "simulator/engine.h"

struct sim__costs {
    // Host time of a call of each kind, up to where it submits or waits; the last is that of all
    // calls that are not counted.
    uint64_t call_ns[SIM_CALL_KIND_COUNT + 1];
    // Per 2 MiB page that cudaMalloc takes or cudaFree gives back, besides.
    uint64_t malloc_page_ns, free_page_ns;

    // From the end of the call that submits it to the start of an operation that finds the device
    // idle; and from the end of one operation of a stream to the start of the next.
    uint64_t launch_latency_ns, operation_gap_ns;

    // Operations. A kernel takes the longest of kernel_ns, its bytes over device_bandwidth and its
    // flops over compute_rate; a copy within the device moves each byte twice.
    uint64_t kernel_ns, copy_ns, fill_ns, record_ns, wait_ns, host_function_ns, value_ns;
    double device_bandwidth;         // bytes per ns (GB/s)
    double compute_rate;             // flops per ns (GFLOP/s)
    double host_to_device_bandwidth; // bytes per ns, pinned memory
    double device_to_host_bandwidth;
    double pageable_bandwidth; // either way
    double peer_bandwidth;

    // How many kernels, fills and copies within the device run at a time; and how many copy
    // engines: 1: all copies between host and device, and between devices, share it; 2: one for
    // each direction, peers share the second; 3: one for each.
    uint32_t concurrent_kernels, copy_engines;
};

extern struct sim__costs sim__costs;

// The call's own time on the host's virtual clock; under another schedule than "timed" nothing.
void sim__cost_call(enum sim_call call);
// More of it, as known within the call: for PAGES of memory, for example.
void sim__cost_spend(uint64_t ns);

// How long OPERATION takes on the device.
uint64_t sim__cost_operation(const struct sim__operation *operation);

#endif
