// From when to when memory is there: allocations, by address, and those that ended last.
#ifndef TIDEMARK_SIMULATOR_RACE_LIFE_H
#define TIDEMARK_SIMULATOR_RACE_LIFE_H

#include "simulator/race_inside.h"
#include "simulator/race_undefined.h"

struct sim__life {
    struct sim__range range;
    struct sim__race_key born, died; // sequence 0: before checking began
    bool is_dead;
    bool is_unmapped; // that is how it ended
    bool is_host;     // page-locked memory, which the host reaches untold
    bool is_mapping;  // devices have rights one by one
    struct sim__undefined undefined;
    struct sim__life *next, *previous; // of the dead, the first that died first
};

// What holds ADDRESS, or held it last; NULL: nothing that is known.
struct sim__life *sim__life_at(uint64_t address);
// Looks whether the memory of ACCESS is there for STEP; returns the first of what it lies in.
struct sim__life *sim__life_access(const struct sim__race_step *step,
                                   const struct sim__race_access *access);

// Memory begins by STEP, NULL: before checking began.
void sim__life_begin(const struct sim__race_step *step, uint64_t start, uint64_t size,
                     bool written);
// It ends; what is not before STEP is a pair.
void sim__life_end(const struct sim__race_step *step, uint64_t start, uint64_t size);
// Addresses become such without memory.
void sim__life_unmap(const struct sim__race_step *step, uint64_t start, uint64_t size);
// What ended so in [START, START + SIZE).
void sim__life_each_unmapped(uint64_t start, uint64_t size,
                             void (*visit)(const struct sim__life *life));
// Nothing is known of them.
void sim__life_forget(uint64_t start, uint64_t size);
void sim__life_clear(void);

#endif
