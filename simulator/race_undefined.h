// Bytes that nobody wrote, or that a copy of such bytes left: sets of them. What is written is not
// stored, so that a set is empty when all is.
#ifndef TIDEMARK_SIMULATOR_RACE_UNDEFINED_H
#define TIDEMARK_SIMULATOR_RACE_UNDEFINED_H

#include "simulator/race_rows.h"

// How undefined bytes came where they are: a copy, counted. NULL: they never were anything else.
struct sim__carrier;
struct sim__carrier *sim__carrier_retain(struct sim__carrier *carrier);
void sim__carrier_release(struct sim__carrier *carrier);

struct sim__undefined_part {
    struct sim__rows rows;
    struct sim__carrier *carrier;
};

// Disjoint parts; those in one piece by their start, then those that are strided.
struct sim__undefined {
    struct sim__undefined_part *parts;
    uint32_t plain_count, count, size;
};

static inline bool sim__undefined_is_empty(const struct sim__undefined *set) {
    return set->count == 0;
}
// ROWS are undefined from now on, by CARRIER; ROWS are written.
void sim__undefined_add(struct sim__undefined *set, const struct sim__rows *rows,
                        struct sim__carrier *carrier);
void sim__undefined_cut(struct sim__undefined *set, const struct sim__rows *rows);
// The parts that have bytes of ROWS, or NULL: *index is 0 for the first, and grows.
const struct sim__undefined_part *sim__undefined_next(const struct sim__undefined *set,
                                                      const struct sim__rows *rows,
                                                      uint32_t *index);
void sim__undefined_clear(struct sim__undefined *set);

#endif
