// The judge: what CUDA's order leaves unordered in a program, by plain transitive closure.
//
// Every call becomes points of a partial order: a step of the host, and the execution of what it
// enqueues; a launch becomes one for each node. What comes before a point directly is written down
// from the rules of ../litmus/README.md, all else follows by closure, and every pair of points is
// looked at. Nothing here is clever, and nothing is shared with the simulator: a program has some
// dozens of calls.
#ifndef TIDEMARK_SIMULATOR_RACE_PROPERTY_CLOSURE_H
#define TIDEMARK_SIMULATOR_RACE_PROPERTY_CLOSURE_H

#include "simulator/race_property/program.h"

#define POINTS_MAX   1024
#define PAIRS_MAX    16384
#define ACCESSES_MAX (3 * STEPS_MAX)

enum pair_kind {
    PAIR_WRITE_WRITE,
    PAIR_READ_WRITE,
    PAIR_REUSE,            // of bytes that two blocks hold
    PAIR_USE_AFTER_FREE,   // access, free or give
    PAIR_USE_BEFORE_ALLOC, // allocation, access
    PAIR_GRAPH_MEMORY,     // access of a replay, take of the block that holds the bytes
    PAIR_UNINITIALISED,    // access, NONE
    PAIR_KIND_COUNT,
};
const char *pair_kind_name(enum pair_kind kind);

// An operation; or, in a launch, one that was captured.
struct place_in_program {
    int operation, node; // node: NONE outside of launches
};
struct pair {
    enum pair_kind kind;
    struct place_in_program first, second;
    // The two conflict in this way, too, and in the same buffer in one that tells more.
    bool is_minor;
};
bool pair_equal(const struct pair *a, const struct pair *b); // the two sides may be swapped

struct point_set {
    uint64_t words[POINTS_MAX / 64];
};
static inline bool point_set_has(const struct point_set *set, int point) {
    return set->words[point / 64] >> (point % 64) & 1;
}

struct point {
    struct place_in_program at;
    struct point_set direct; // what it comes after by a rule
    struct point_set before; // all that it comes after
    int access_count;
    struct access accesses[ACCESSES_MAX];
    uint32_t masks[ACCESSES_MAX]; // their cells
    int alloc, free;              // a buffer whose life begins or ends here, or NONE
    int enqueue;                  // the host's step that enqueued it: itself, of the host's
    int capture;                  // a replayed node: of which capture; or NONE
};

// RESULTS: what the queries answered, by operation: 0 or 600. VALID: every call is legal and
// returns 0, and nothing depends on what CUDA leaves open; WHY says what is not. KNOWN: queries
// that had to succeed, since the host knew.
struct judgement {
    bool valid;
    char why[128];
    int point_count;
    struct point points[POINTS_MAX];
    int pair_count;
    struct pair pairs[PAIRS_MAX];
    bool known[OPERATIONS_MAX];
    bool carries_undefined; // some copy takes bytes that nobody wrote
    bool spoils_pageable;   // and some copy puts such into pageable memory
};
// Neither comes after the other.
bool closure_unordered(const struct judgement *judgement, int first, int second);

// JUDGEMENT is large: keep one. Not thread-safe.
void closure_judge(const struct program *program, const int results[OPERATIONS_MAX],
                   struct judgement *judgement);

#endif
