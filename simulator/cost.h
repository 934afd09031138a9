// What calls and operations cost in virtual time. Constants of the device profile only (profile.h):
// measured host time never enters the clock, so a run is the same on every machine.
//
// Published figures span ranges, so there are three sets of costs. The typical ones decide what the
// timed schedule does and make its clock; beside it run two more, which add up the low and the high
// costs along the same run.
#ifndef TIDEMARK_SIMULATOR_COST_H
#define TIDEMARK_SIMULATOR_COST_H

#include "simulator/engine.h"

struct sim__costs {
    // Host time of a call of each kind, up to where it submits or waits; the last is that of all
    // calls that are not counted.
    uint64_t call_ns[SIM_CALL_KIND_COUNT + 1];
    // Besides, for each 2 MiB page that it takes or gives back, and for each node of its graph.
    uint64_t page_ns[SIM_CALL_KIND_COUNT + 1];
    uint64_t node_ns[SIM_CALL_KIND_COUNT + 1];

    // From the end of the call that submits it to the start of an operation that finds the device
    // idle; from the end of one operation of a stream to the start of the next; and from the end of
    // what a graph's node depends on to its start.
    uint64_t launch_latency_ns, operation_gap_ns, graph_node_gap_ns;

    // Operations. A kernel takes the longest of kernel_ns, its bytes over device_bandwidth, its
    // flops over fp32_rate and its tensor flops over tensor_rate; a copy within the device moves
    // each byte twice.
    uint64_t kernel_ns, copy_ns, fill_ns, record_ns, wait_ns, host_function_ns, value_ns;
    double device_bandwidth;         // bytes per ns (GB/s)
    double fp32_rate, tensor_rate;   // flops per ns (GFLOP/s)
    double host_to_device_bandwidth; // bytes per ns, pinned memory
    double device_to_host_bandwidth;
    double pageable_bandwidth; // either way
    double peer_bandwidth;

    // How many kernels, fills and copies within the device run at a time; and how many copy
    // engines: 1: all copies between host and device, and between devices, share it; 2: one for
    // each direction, peers share the second; 3: one for each.
    uint32_t concurrent_kernels, copy_engines;
};

enum sim__level { SIM__LOW, SIM__TYPICAL, SIM__HIGH, SIM__LEVEL_COUNT };

// Of the profile in force.
extern struct sim__costs sim__costs[SIM__LEVEL_COUNT];

// The call's own time on the host's virtual clock; under another schedule than "timed" nothing.
void sim__cost_call(enum sim_call call);
// More of it: for PAGES of memory that the call takes or gives back.
void sim__cost_pages(enum sim_call call, uint64_t pages);
// And for NODES of a graph.
void sim__cost_nodes(enum sim_call call, uint64_t nodes);
// The host's virtual clock moves on, under any schedule.
void sim__time_pass(uint64_t low_ns, uint64_t typical_ns, uint64_t high_ns);
// Forgets pages and nodes; the machine starts.
void sim__cost_reset(void);

// How long OPERATION takes on the device.
uint64_t sim__cost_operation(const struct sim__operation *operation, enum sim__level level);

#endif
