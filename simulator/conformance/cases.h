// The groups of cases, for conformance.c and the groups' own files.
#ifndef TIDEMARK_SIMULATOR_CONFORMANCE_CASES_H
#define TIDEMARK_SIMULATOR_CONFORMANCE_CASES_H

#include "simulator/conformance/conformance.h"

#define CONFORMANCE_GROUP_LIST(X)                            \
    X(device, "Devices and contexts")                        \
    X(error, "Errors")                                       \
    X(memory, "Device memory")                               \
    X(host_memory, "Page-locked memory and pointers")        \
    X(copy, "Copies and fills")                              \
    X(peer, "Several devices")                               \
    X(stream, "Streams")                                     \
    X(legacy, "The default streams")                         \
    X(per_thread, "Per-thread default streams")              \
    X(host_function, "Host functions")                       \
    X(event, "Events")                                       \
    X(pool, "Stream-ordered memory")                         \
    X(virtual_memory, "Virtual memory")                      \
    X(driver, "The rest of the driver")                      \
    X(capture_mode, "Capture: modes and unsafe calls")       \
    X(capture, "Capture: refusals in every mode")            \
    X(capture_lifecycle, "Capture: begin, fork, join, end")  \
    X(capture_event, "Capture: events")                      \
    X(capture_info, "Capture: information and dependencies") \
    X(graph, "Graphs: edges and queries")                    \
    X(graph_node, "Graphs: nodes")                           \
    X(graph_exec, "Graphs: executables")                     \
    X(graph_update, "Graphs: changes to executables")        \
    X(graph_memory, "Graphs: memory nodes")                  \
    X(blas, "cuBLAS")                                        \
    X(order, "Order: what is guaranteed and what is not")

// Each ends with a case without a name.
#define CONFORMANCE_GROUP_DECLARATION(name, title) \
    extern const struct conformance_case conformance__cases_##name[];
CONFORMANCE_GROUP_LIST(CONFORMANCE_GROUP_DECLARATION)
#undef CONFORMANCE_GROUP_DECLARATION

#define VERIFIED   CONFORMANCE_VERIFIED
#define UNVERIFIED CONFORMANCE_UNVERIFIED

// A row of a table: the case, and with 2 one that needs two devices, with SIMULATED one that uses
// the simulator's control.
#define CASE(name, section, status, run, rule, expected, also) \
    CASE_ROW(name, section, status, run, rule, expected, also, 1, false)
#define CASE_2(name, section, status, run, rule, expected, also) \
    CASE_ROW(name, section, status, run, rule, expected, also, 2, false)
#define CASE_SIMULATED(name, section, status, run, rule, expected, also) \
    CASE_ROW(name, section, status, run, rule, expected, also, 1, true)
#define CASE_2_SIMULATED(name, section, status, run, rule, expected, also) \
    CASE_ROW(name, section, status, run, rule, expected, also, 2, true)
#define CASE_ROW(name, section, status, run, rule, expected, also, device_count, simulator_only) \
    {name, section, status, rule, expected, also, #run, run, device_count, simulator_only}

#endif
