// What can be made wrong in a legal program: an edge is taken away or weakened, a block's life ends
// at the wrong time, a write is left out. Whether that matters in a program says the judge.
#ifndef TIDEMARK_SIMULATOR_RACE_PROPERTY_REMOVAL_H
#define TIDEMARK_SIMULATOR_RACE_PROPERTY_REMOVAL_H

#include "simulator/race_property/program.h"

// X(NAME, TEXT)
#define REMOVAL_LIST(X)                                                                       \
    /* a record, a wait, a wait of the host, an await, an empty kernel */                     \
    X(CALL, "calls that order left out")                                                      \
    X(BARRIER, "blocking streams made NonBlocking")                                           \
    X(CONDITION, "conditions left out: what depended on a query's success happens anyway")    \
    X(DEPENDENCY, "dependencies of nodes left out")                                           \
    X(EARLY_RECORD, "events recorded before the last work of their stream")                   \
    X(EARLY_GIVE, "blocks given back before their last use")                                  \
    X(NO_GIVE, "blocks not given back")                                                       \
    X(WRITE, "writes left out")

enum removal_kind {
#define REMOVAL_ENUMERATOR(name, text) REMOVAL_##name,
    REMOVAL_LIST(REMOVAL_ENUMERATOR)
#undef REMOVAL_ENUMERATOR
        REMOVAL_KIND_COUNT,
};
const char *removal_kind_text(enum removal_kind kind);

struct removal {
    enum removal_kind kind;
    int index; // of the operation or stream
    int other; // dependency, by index in the operation; operation before which it comes
};
#define REMOVALS_MAX ((DEPENDENCIES_MAX + 2) * OPERATIONS_MAX + STREAMS_MAX)

// All of PROGRAM: writes (WRITES), else all others. Returns how many.
int removals_list(const struct program *program, bool writes,
                  struct removal removals[REMOVALS_MAX]);
void removal_apply(struct program *program, const struct removal *removal);
// "O17 (wait) left out", in a buffer of its own.
const char *removal_text(const struct program *program, const struct removal *removal);

#endif
