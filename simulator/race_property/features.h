// What a program has of what is hard to get right, by its judgement.
#ifndef TIDEMARK_SIMULATOR_RACE_PROPERTY_FEATURES_H
#define TIDEMARK_SIMULATOR_RACE_PROPERTY_FEATURES_H

#include "simulator/race_property/closure.h"

// X(NAME, TEXT)
#define FEATURE_LIST(X)                                                            \
    X(STRIDED_DISJOINT, "unordered strided ranges between each other's pieces")    \
    X(ATOMICS, "unordered atomics on common bytes")                                \
    X(UNDEFINED_COPIES, "copies of bytes that nobody wrote")                       \
    X(POLLING, "polling loops")                                                    \
    X(HAND_OFFS, "hand-offs between two host threads")                             \
    X(REPLAYS, "graph replays")                                                    \
    X(BUILT_GRAPHS, "graphs built node by node")                                   \
    X(TWO_REPLAYS, "several replays of one executable")                            \
    X(TWO_EXECUTABLES, "replays of two executables of one graph")                  \
    X(BLOCKS_REUSED, "blocks over the bytes of earlier ones")                      \
    X(POOL_MEMORY, "cudaMallocAsync and cudaFreeAsync")                            \
    X(QUERIES, "single queries")                                                   \
    X(TWO_DEVICES, "work on two devices")

enum feature {
#define FEATURE_ENUMERATOR(name, text) FEATURE_##name,
    FEATURE_LIST(FEATURE_ENUMERATOR)
#undef FEATURE_ENUMERATOR
    FEATURE_COUNT,
};
const char *feature_text(enum feature feature);

// A bit for each feature.
uint32_t features_of(const struct program *program, const struct judgement *judgement);

#endif
