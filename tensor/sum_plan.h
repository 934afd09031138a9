// How a long sum is spread over a device, and the memory that this takes, as in PyTorch's reduction
// kernels: where one thread would have many numbers to add up and there are too few results to keep
// the device busy, the numbers of a result are divided among several blocks. Each leaves what it
// found in *staging* memory and counts itself off in a *counter* of its group of results; who is the
// last of a group adds up what the others left, always in the same order.
#ifndef TIDEMARK_TENSOR_SUM_PLAN_H
#define TIDEMARK_TENSOR_SUM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tensor_sum_shape {
    int64_t results, inputs; // inputs: numbers of each result
    // Strides, in elements, of the innermost dimension that is added up and of the innermost one
    // that stays; total: none stays. Flat: all dimensions are one.
    int64_t added_stride, kept_stride;
    bool is_total, is_flat;
    // Results that lie side by side in the input, a row of them without gaps; strides of all other
    // dimensions and the address are multiples of `alignment` elements, 1, 2 or 4.
    int64_t row;
    int alignment;
    size_t accumulator_bytes; // of a number being added up
};

struct tensor_sum_plan {
    int64_t parts;         // of a result's numbers; 1: one thread or block does all, without memory
    int64_t group_results; // that share a counter
    size_t staging_bytes, counter_bytes;
};

// MULTIPROCESSORS and THREADS (each one's most) are the device's.
struct tensor_sum_plan tensor_sum_plan(const struct tensor_sum_shape *shape, int multiprocessors,
                                       int threads);

#endif
