// Planted faults: each makes the simulator do one thing wrong, so that tests can prove that they
// would notice (sim_plant). Planting none costs a branch where the fault would be.
#ifndef TIDEMARK_SIMULATOR_PLANT_H
#define TIDEMARK_SIMULATOR_PLANT_H

#include <stdbool.h>

// X(NAME, WORD, TEXT)
#define SIM__PLANT_LIST(X)                                                                        \
    X(EVENT_EDGE, "event-edge", "cudaStreamWaitEvent orders nothing")                             \
    X(WAIT_LATE, "wait-late", "a wait covers work behind the record as well")                     \
    X(RECORD_KEPT, "record-kept", "a record does not take the place of an older one")             \
    X(RECORD_DEVICE, "record-device", "an event of another device is recorded")                   \
    X(EVENT_SYNCHRONIZE, "event-synchronize", "cudaEventSynchronize does not wait")               \
    X(EVENT_DESTROY, "event-destroy", "cudaEventDestroy waits")                                   \
    X(ELAPSED, "elapsed", "cudaEventElapsedTime takes events that are not complete")              \
    X(QUERY, "query", "queries say that pending work is complete")                                \
    X(LEGACY_BARRIER, "legacy-barrier", "the legacy stream and blocking streams are unordered")   \
    X(LEGACY_SYNCHRONIZE, "legacy-synchronize", "synchronising the legacy stream covers it alone") \
    X(DEVICE_SYNCHRONIZE, "device-synchronize", "NonBlocking streams are not waited for")         \
    X(NONBLOCKING, "nonblocking", "NonBlocking streams are blocking ones")                        \
    X(STREAM_FLAGS, "stream-flags", "unknown stream flags are taken")                             \
    X(STREAM_DESTROY, "stream-destroy", "cudaStreamDestroy waits")                                \
    X(PRIORITY, "priority", "a priority out of range is not clamped")                             \
    X(COPY_EARLY, "copy-early", "cudaMemcpy to the host returns before it is done")               \
    X(COPY_SOURCE, "copy-source", "a pageable source is read when the copy runs")                 \
    X(COPY_KIND, "copy-kind", "an unknown kind of copy gets the wrong code")                      \
    X(FILL_EARLY, "fill-early", "cudaMemset of page-locked memory returns before it is done")     \
    X(FILL_WAITS, "fill-waits", "cudaMemset of device memory waits")                              \
    X(FREE_EARLY, "free-early", "cudaFree does not wait")                                         \
    X(FREE_HOST_EARLY, "free-host-early", "cudaFreeHost does not wait")                           \
    X(FREE_TWICE, "free-twice", "cudaFree takes any pointer")                                     \
    X(MEMORY_CODE, "memory-code", "cudaMalloc of too much gets the wrong code")                   \
    X(MEMORY_INFO, "memory-info", "a page in use is counted twice")                               \
    X(PAGE_SHARED, "page-shared", "a page is handed out while it is in use")                      \
    X(ATTRIBUTES, "attributes", "an interior pointer is not known")                               \
    X(POOL_REUSE, "pool-reuse", "a pool hands out memory that another stream still uses")         \
    X(POOL_KEEPS, "pool-keeps", "a pool keeps memory above its threshold")                        \
    X(POOL_DEFAULT, "pool-default", "the default pool is destroyed without an error")             \
    X(MAP_ACCESS, "map-access", "a mapping is accessible from the start")                         \
    X(MAP_PART, "map-part", "a part of a mapping is unmapped")                                    \
    X(CAPTURE_RUNS, "capture-runs", "captured work runs instead")                                 \
    X(UNSAFE, "unsafe", "unsafe calls are not refused")                                           \
    X(UNSAFE_OTHERS, "unsafe-others", "another thread's global capture refuses nothing")          \
    X(UNSAFE_RELAXED, "unsafe-relaxed", "a relaxed capture refuses unsafe calls")                 \
    X(CAPTURE_SPARED, "capture-spared", "what is refused invalidates no capture")                 \
    X(CAPTURE_WAITED, "capture-waited", "a capturing stream may be waited for")                   \
    X(CAPTURE_DEVICE, "capture-device", "other devices may not be waited for either")             \
    X(LEGACY_CAPTURE, "legacy-capture", "legacy work runs beside a blocking stream's capture")    \
    X(LEGACY_NONBLOCKING, "legacy-nonblocking", "a NonBlocking one's capture refuses it too")     \
    X(CAPTURED_EVENT, "captured-event", "a captured event may be asked about")                    \
    X(CAPTURED_KEPT, "captured-kept", "a later record leaves an event captured")                  \
    X(ISOLATION, "isolation", "a capture waits for an uncaptured event without an error")         \
    X(MERGE, "merge", "a wait for another capture's event spares that capture")                   \
    X(UNJOINED, "unjoined", "a fork need not come back")                                          \
    X(END_KEEPS, "end-keeps", "streams stay in a capture that ends with an error")                \
    X(END_THREAD, "end-thread", "any thread may end a capture")                                   \
    X(END_JOINED, "end-joined", "a stream that joined may end a capture")                         \
    X(WAIT_REPLACES, "wait-replaces", "a wait in a capture replaces the set instead of uniting")  \
    X(RECORD_PART, "record-part", "a record in a capture keeps one dependency")                   \
    X(JOIN_LATE, "join-late", "a stream joins behind what came after the record as well")         \
    X(EXTERNAL, "external", "an external record in a capture makes no node")                      \
    X(TIPS_SET, "tips-set", "dependencies that are set are added instead")                        \
    X(EDGE_TWICE, "edge-twice", "an edge is added twice")                                         \
    X(EDGE_LOST, "edge-lost", "cudaGraphInstantiate drops an edge of each node")                  \
    X(CYCLE, "cycle", "a graph with a cycle is instantiated, without edges")                      \
    X(PARAMETERS, "parameters", "a launch takes parameters that the graph was given since")       \
    X(CHILD_EDGE, "child-edge", "what depends on a child graph does not wait for its nodes")      \
    X(CHILD_COPY, "child-copy", "a child graph is not copied")                                    \
    X(CLONE, "clone", "a clone is the graph itself")                                              \
    X(PADDING, "padding", "long arrays are not padded with NULL")                                 \
    X(UPDATE_MISFIT, "update-misfit", "an update by a graph of another shape succeeds")           \
    X(EXEC_DESTROY, "exec-destroy", "cudaGraphExecDestroy waits")                                 \
    X(LAUNCH_EARLY, "launch-early", "a launch does not wait for its stream")                      \
    X(LAUNCH_OPEN, "launch-open", "later work does not wait for every node")                      \
    X(EXEC_OVERLAPS, "exec-overlaps", "launches of one executable overlap")                       \
    X(NODES_SERIAL, "nodes-serial", "nodes run in the order in which they were added")            \
    X(WAIT_NODE, "wait-node", "event wait nodes wait for nothing")                                \
    X(DISABLED, "disabled", "a disabled node runs")                                               \
    X(GRAPH_EXECS, "graph-execs", "a graph with memory nodes has several executables")            \
    X(GRAPH_RELAUNCH, "graph-relaunch", "a launch while its memory is allocated succeeds")        \
    X(GRAPH_AUTOFREE, "graph-autofree", "nothing is freed at a launch")                           \
    X(GRAPH_FREE_TWICE, "graph-free-twice", "memory of a graph has two free nodes")               \
    X(GRAPH_TRIM, "graph-trim", "cudaDeviceGraphMemTrim gives nothing back")                      \
    X(PEER_TWICE, "peer-twice", "peer access is enabled twice")                                   \
    X(BLAS_BETA, "blas-beta", "a product reads C with a beta of 0")                               \
    X(BLAS_SIZES, "blas-sizes", "a leading dimension that is too small is taken")                 \
    X(BLAS_WORKSPACE, "blas-workspace", "a workspace of any alignment is taken")                  \
    X(ERROR_LOST, "error-lost", "a failing call does not set the last error")                     \
    X(ERROR_KEPT, "error-kept", "cudaGetLastError does not clear")                                \
    X(ERROR_CLEARED, "error-cleared", "cudaDeviceSynchronize clears the last error")

enum sim__plant {
    SIM__PLANT_NONE,
#define SIM__PLANT_ENUMERATOR(name, word, text) SIM__PLANT_##name,
    SIM__PLANT_LIST(SIM__PLANT_ENUMERATOR)
#undef SIM__PLANT_ENUMERATOR
};

// Set while no CUDA call runs.
extern enum sim__plant sim__plant;

static inline bool sim__planted(enum sim__plant plant) {
    return __builtin_expect(sim__plant == plant, 0);
}

#endif
