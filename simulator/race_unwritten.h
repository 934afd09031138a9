// Reads of bytes that nobody wrote. Whether they are is known only later: a write that nothing
// orders with the read may still be submitted, and then the two are a pair, and nobody can say what
// the read sees. So a read waits until everything to come comes after it, or checking stops.
//
// Copies take undefined bytes with them, and nothing is said of that. What they took counts where
// it is used, unless a write that is not ordered with one of the copies may have defined it.
#ifndef TIDEMARK_SIMULATOR_RACE_UNWRITTEN_H
#define TIDEMARK_SIMULATOR_RACE_UNWRITTEN_H

#include "simulator/race_inside.h"
#include "simulator/race_undefined.h"

// Where the bytes of an access are undefined, as its allocation and its block say; NULL: nowhere.
struct sim__unwritten_sets {
    struct sim__undefined *memory, *block;
    uint64_t allocation; // its start
};

// STEP reads, or writes, or updates.
void sim__unwritten_read(const struct sim__race_step *step, const struct sim__race_access *access,
                         const struct sim__unwritten_sets *sets);
void sim__unwritten_write(const struct sim__race_step *step, const struct sim__race_access *access,
                          const struct sim__unwritten_sets *sets);
// What ACCESS, a CARRY, reads goes to what TO wrote just now. FROM_SETS are as they were before.
void sim__unwritten_carry(const struct sim__race_step *step, const struct sim__race_access *access,
                          const struct sim__unwritten_sets *sets,
                          const struct sim__race_access *to,
                          const struct sim__unwritten_sets *to_sets);
// KEY is one of a pair: what it reads, and what it took elsewhere, is not said to be undefined.
void sim__unwritten_raced(const struct sim__race_key *key);
// Tells the reads that everything to come comes after; or all: checking stops.
void sim__unwritten__settle(bool all);
extern uint32_t sim__unwritten_count; // of reads that wait
static inline void sim__unwritten_settle(bool all) {
    if (sim__unwritten_count > 0)
        sim__unwritten__settle(all);
}
void sim__unwritten_clear(void);

#endif
