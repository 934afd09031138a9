// The captures that a device was told of (captures.h): up to 64, so that a set of them is one word.
// The caller serialises.
#ifndef TIDEMARK_ALLOCATOR_CAPTURE_MARKS_H
#define TIDEMARK_ALLOCATOR_CAPTURE_MARKS_H

#include "allocator/captures.h"

#include <stdint.h>

// All zero: none.
struct cca__capture_marks {
    uint64_t marked; // bit N: captures[N] is one
    uint64_t wholes; // those of which a part has ended
    struct cca_capture captures[CCA_CAPTURES_MAX];
};

// See cca_capture_begin, cca_capture_end.
enum base_status cca__marks_begin(struct cca__capture_marks *marks,
                                  const struct cca_capture *capture) BASE_MUST_USE;
enum base_status cca__marks_end(struct cca__capture_marks *marks,
                                unsigned long long id) BASE_MUST_USE;

// The bit of capture ID, 0 if it has no mark.
uint64_t cca__marks_bit(const struct cca__capture_marks *marks, unsigned long long id);

// For loops over a set: the place of its lowest bit, which is taken out.
static inline unsigned cca__marks_next(uint64_t *set) {
    const unsigned place = (unsigned)__builtin_ctzll(*set);
    *set &= *set - 1;
    return place;
}

#endif
