// The accesses to one piece of memory that still can conflict with what is to come, and the last
// few that only make a report more complete.
#ifndef TIDEMARK_SIMULATOR_RACE_LIST_H
#define TIDEMARK_SIMULATOR_RACE_LIST_H

#include "simulator/race_inside.h"

struct sim__race_touch {
    struct sim__race_key key;
    uint64_t mode : 2, over : 1, block : 61;
};
#define SIM__RACE_BLOCK_MAX (((uint64_t)1 << 61) - 1)

// Entries that write stand before those that read, each in the order of submission (once there are
// many reads, these in any).
struct sim__race_list {
    struct sim__race_touch *entries;
    uint32_t writes, count, size;
    uint32_t over; // entries that a later one stands for
};

// STEP accesses all of the piece, which is RANGE: tells the pairs, and enters the access.
void sim__race_list_access(struct sim__race_list *list, const struct sim__race_step *step,
                           const struct sim__race_access *access, struct sim__range range);
// STEP accesses bytes of ACCESS; the list's are ROWS: tells the pairs of those that have bytes in
// common. COVERS: all of ROWS.
void sim__race_list_meet(struct sim__race_list *list, const struct sim__race_step *step,
                         const struct sim__race_access *access, const struct sim__rows *rows,
                         bool covers);
// Memory ends: what is not before STEP is a pair.
void sim__race_list_end(const struct sim__race_list *list, const struct sim__race_step *step,
                        struct sim__range range);

void sim__race_list_copy(struct sim__race_list *copy, const struct sim__race_list *list);
// The entries of FROM, which are older or have no order with those of LIST, belong to it too.
void sim__race_list_add(struct sim__race_list *list, const struct sim__race_list *from);
bool sim__race_list_equal(const struct sim__race_list *a, const struct sim__race_list *b);
// Leaves out the entries that everything to come comes after; those that others stand for.
void sim__race_list_settle(struct sim__race_list *list, const struct sim__race_step *step);
void sim__race_list_trim(struct sim__race_list *list);
void sim__race_list_clear(struct sim__race_list *list);

#endif
