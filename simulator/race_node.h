// What the checker keeps of a graph's node, whatever becomes of the graph: what it accesses, with
// the blocks that were meant when it was captured or added.
#ifndef TIDEMARK_SIMULATOR_RACE_NODE_H
#define TIDEMARK_SIMULATOR_RACE_NODE_H

#include "simulator/race_inside.h"

struct sim__race_node {
    uint64_t references;
    uint32_t origin;
    uint64_t graph, stream; // that captured it, or 0
    uint64_t number;        // in its graph; known when it is launched
    bool on_device, has_rights; // as of a step
    // Of an allocation: the memory of its last launch that ended.
    struct sim__race_key born, died;
    const void *value_address; // a value that it writes, or NULL
    uint64_t value;
    uint32_t count;
    struct sim__race_access accesses[]; // records are looked up by number at each launch
};

#endif
