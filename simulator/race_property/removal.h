// Edges of a program that can be taken away: calls that only order, a stream's bond with the legacy
// stream, the condition that a query succeeded, what a node depends on.
#ifndef TIDEMARK_SIMULATOR_RACE_PROPERTY_REMOVAL_H
#define TIDEMARK_SIMULATOR_RACE_PROPERTY_REMOVAL_H

#include "simulator/race_property/program.h"

enum removal_kind {
    REMOVE_CALL,      // a record, a wait, a wait of the host, an await, an empty kernel
    REMOVE_BARRIER,   // a blocking stream becomes a NonBlocking one
    REMOVE_CONDITION, // what depended on a query's success happens anyway
    REMOVE_DEPENDENCY, // of a node, on another one
    REMOVAL_KIND_COUNT,
};
struct removal {
    enum removal_kind kind;
    int index; // of the operation or stream
    int dependency; // by index in the operation
};
#define REMOVALS_MAX (DEPENDENCIES_MAX * OPERATIONS_MAX + STREAMS_MAX)

// All of PROGRAM; returns how many.
int removals_list(const struct program *program, struct removal removals[REMOVALS_MAX]);
void removal_apply(struct program *program, const struct removal *removal);
// "O17 (wait)", in a buffer of its own.
const char *removal_text(const struct program *program, const struct removal *removal);

#endif
