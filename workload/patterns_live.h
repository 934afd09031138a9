// Objects that are live on one stream: grown to a number, shrunk to a number, in a chosen order.
// What is dropped is read first.
#ifndef TIDEMARK_WORKLOAD_PATTERNS_LIVE_H
#define TIDEMARK_WORKLOAD_PATTERNS_LIVE_H

#include "workload/object.h"

struct workload_live {
    struct tensor_place place;
    struct base_random random;
    struct workload_tally tally;
    struct workload_object *objects; // COUNT of CAPACITY, by age
    int count, capacity;
    uint64_t dropped;
};

enum workload_live_order { WORKLOAD_LIVE_LAST, WORKLOAD_LIVE_FIRST, WORKLOAD_LIVE_ANY };
// Bytes, spread evenly over their logarithm.
struct workload_live_sizes {
    size_t least, most;
};

// On the current stream of the place, as all that follows. Deinit also after a failure.
enum base_status workload_live_init(struct workload_live *live, const struct tensor_place *place,
                                    struct base_random random, int capacity) BASE_MUST_USE;
void workload_live_deinit(struct workload_live *live);
enum base_status workload_live_grow(struct workload_live *live, int count,
                                    struct workload_live_sizes sizes) BASE_MUST_USE;
enum base_status workload_live_shrink(struct workload_live *live, int count,
                                      enum workload_live_order order) BASE_MUST_USE;

#endif
