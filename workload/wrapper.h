// An allocator around another one: every call goes on to the inner one, but those that whoever
// wraps it puts others in the place of.
//
//     struct counter { struct workload_wrapper wrapper; uint64_t count; };
//
//     struct allocator_operations operations = workload_wrapper_operations;
//     operations.malloc = counter_malloc;
//     counter->wrapper = (struct workload_wrapper){{&operations}, inner};
//
// The operation `destroy` does nothing: the memory is the wrapper's maker's, the inner one its
// owner's.
#ifndef TIDEMARK_WORKLOAD_WRAPPER_H
#define TIDEMARK_WORKLOAD_WRAPPER_H

#include "allocator/allocator.h"

struct workload_wrapper {
    struct allocator allocator; // first, so that either is the other
    struct allocator *inner;
};

extern const struct allocator_operations workload_wrapper_operations;

static inline struct allocator *workload_wrapper_inner(struct allocator *allocator) {
    return ((struct workload_wrapper *)(void *)allocator)->inner;
}

// The allocator that wrappers, if there are any, are around. A wrapper is one whose operation
// `largest_block` is that of the table above: nobody has put another in its place.
struct allocator *workload_wrapper_innermost(struct allocator *allocator);

#endif
