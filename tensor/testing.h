// What the tests of this room share: a place on the CPU that counts, and short forms.
#ifndef TIDEMARK_TENSOR_TESTING_H
#define TIDEMARK_TENSOR_TESTING_H

#include "base/check.h"
#include "tensor/host_allocator.h"
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        const enum base_status check_status = (call);                                              \
        if (check_status != BASE_OK)                                                               \
            fprintf(stderr, "%s: %s\n", #call, base_status_message());                             \
        BASE_CHECK_EQ(check_status, BASE_OK);                                                      \
    } while (0)

// CALL is refused with a sentence that holds PART.
#define CHECK_REFUSED(call, part)                                                                  \
    do {                                                                                           \
        BASE_CHECK_NE((call), BASE_OK);                                                            \
        if (strstr(base_status_message(), part) == NULL)                                           \
            fprintf(stderr, "\"%s\" is not in: %s\n", part, base_status_message());                \
        BASE_CHECK(strstr(base_status_message(), part) != NULL);                                   \
    } while (0)

#define SIZES(...) (const int64_t[]){__VA_ARGS__}, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8)

static inline struct tensor_place testing_place(void) {
    struct tensor_place place = {.kind = TENSOR_CPU};
    CHECK_OK(tensor_host_allocator_create(true, &place.allocator));
    return place;
}

static inline int64_t testing_live_blocks(const struct tensor_place *place) {
    struct allocator_stats stats;
    CHECK_OK(allocator_stats(place->allocator, 0, &stats));
    return stats.allocation[ALLOCATOR_STAT_ALL].current;
}

// Ends the place; no block may be left.
static inline void testing_place_end(struct tensor_place *place) {
    BASE_CHECK_EQ(testing_live_blocks(place), 0);
    allocator_destroy(place->allocator);
}

// 0, 1, 2 ... in the shape.
static inline struct tensor testing_range(const struct tensor_place *place, enum tensor_type type,
                                          const int64_t *sizes, int rank) {
    int64_t numel = 1;
    for (int dim = 0; dim < rank; dim++)
        numel *= sizes[dim];
    struct tensor flat, shaped;
    CHECK_OK(tensor_arange(place, type, 0, (double)numel, 1, &flat));
    CHECK_OK(tensor_reshape(flat, sizes, rank, &shaped));
    struct tensor copy;
    CHECK_OK(tensor_clone(shaped, TENSOR_CONTIGUOUS, &copy)); // a tensor of its own
    tensor_release(&flat);
    tensor_release(&shaped);
    return copy;
}

static inline uint32_t testing_version(struct tensor self) {
    uint32_t version;
    CHECK_OK(tensor_version(self, &version));
    return version;
}

#endif
