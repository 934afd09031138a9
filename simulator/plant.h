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
    X(PEER_TWICE, "peer-twice", "peer access is enabled twice")                                   \
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
