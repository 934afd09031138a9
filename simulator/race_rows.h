// Strided ranges of bytes: ROWS pieces of SIZE bytes, PITCH apart. Arithmetic on them costs the
// same for one row and for a million, as long as both have one pitch.
#ifndef TIDEMARK_SIMULATOR_RACE_ROWS_H
#define TIDEMARK_SIMULATOR_RACE_ROWS_H

#include "simulator/range_index.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Never empty. One row has pitch 0; of several each begins behind the end of the one before, with
// bytes between.
struct sim__rows {
    uint64_t start, size, rows, pitch;
};

// False if there are no bytes. Rows that touch or overlap become one piece. Nobody has memory
// behind SIM__ROWS_END: what a program says of it is left out, so that sums and differences never
// wrap.
#define SIM__ROWS_END ((uint64_t)1 << 61)
bool sim__rows_make(uint64_t start, uint64_t size, uint64_t rows, uint64_t pitch,
                    struct sim__rows *made);

static inline uint64_t sim__rows_end(const struct sim__rows *rows) {
    return rows->start + (rows->rows - 1) * rows->pitch + rows->size;
}
static inline uint64_t sim__rows_bytes(const struct sim__rows *rows) {
    return rows->size * rows->rows;
}
static inline bool sim__rows_equal(const struct sim__rows *a, const struct sim__rows *b) {
    return a->start == b->start && a->size == b->size && a->rows == b->rows &&
           a->pitch == b->pitch;
}

// Whether the two have bytes in common; *first, if not NULL: the first piece of these.
bool sim__rows_meet(const struct sim__rows *a, const struct sim__rows *b,
                    struct sim__range *first);
// Whether B is part of A; false if that would take long to find out.
bool sim__rows_contain(const struct sim__rows *a, const struct sim__rows *b);

// Calls PIECE for disjoint parts which together are A without B, or what A and B have in common.
// False, and some calls may have been made, if there would be more than SIM__ROWS_PIECES_MAX.
#define SIM__ROWS_PIECES_MAX 4096
typedef void sim__rows_piece(const struct sim__rows *piece, void *argument);
bool sim__rows_without(const struct sim__rows *a, const struct sim__rows *b,
                       sim__rows_piece *piece, void *argument);
bool sim__rows_common(const struct sim__rows *a, const struct sim__rows *b,
                      sim__rows_piece *piece, void *argument);

#endif
