// Arrays for the tests of kernels: numbers on the host as doubles, and the same on the device in a
// type, with strides of any kind.
#ifndef TIDEMARK_TENSOR_KERNEL_TEST_ARRAY_H
#define TIDEMARK_TENSOR_KERNEL_TEST_ARRAY_H

#include "base/check.h"
#include "base/random.h"
#include "tensor/kernel/launch.h"

#define CUDA(call) BASE_CHECK_EQ((call), cudaSuccess)

struct test_array {
    struct tensor_kernel_array array;
    int64_t count;   // numbers in memory
    double *numbers; // as the type holds them
};

// Strides for a shape: any order of the dimensions, with holes at times; with BROADCASTS of some
// dimensions 0. Numbers are integers from LOW to HIGH, rounded to the type.
struct test_array test_array_make(struct base_random *random, int type,
                                  const struct tensor_kernel_shape *shape, bool broadcasts, int low,
                                  int high);
// COUNT numbers without gaps.
struct test_array test_array_flat(struct base_random *random, int type, int64_t count, int low,
                                  int high);
// Divides all numbers, on both sides.
void test_array_scale(struct test_array *array, double factor);
// What the device has now; freed by the caller. Element I as a number.
double *test_array_read(const struct test_array *array);
void test_array_end(struct test_array *array);
// The device's numbers are those on the host, within TOLERANCE of the type's last place (0: equal).
void test_array_check(const struct test_array *array, double tolerance);

// A value as the type holds it.
double test_round(double value, int type);
// A step of the type at 1.
double test_epsilon(int type);

int test_draw(struct base_random *random, int below);
struct tensor_kernel_shape test_shape(struct base_random *random, int rank_max, int size_max);
// The place of an element in an array, from its indices.
int64_t test_place(const int64_t *strides, int rank, const int64_t *index);
// The next indices in logical order; false at the end.
bool test_next(const struct tensor_kernel_shape *shape, int64_t *index);

#endif
