// What the tests of nn.h share: the places they run on, numbers to and from tensors.
#ifndef TIDEMARK_TENSOR_NN_TESTING_H
#define TIDEMARK_TENSOR_NN_TESTING_H

#include "allocator/cca.h"
#include "base/random.h"
#include "tensor/nn.h"
#include "tensor/testing.h"

#include <math.h>
#include <stdlib.h>

// 0: the CPU; 1: the simulated device, over the caching allocator.
#define NN_PLACES 2
static inline struct tensor_place nn_place(int which) {
    if (which == 0)
        return testing_place();
    struct tensor_place place = {.kind = TENSOR_CUDA, .device = 0};
    CHECK_OK(cca_allocator_create(&(struct cca_options){.config = ""}, &place.allocator));
    return place;
}

// COUNT numbers from -1 to 1; freed by the caller.
static inline double *nn_numbers(struct base_random *random, int64_t count) {
    double *numbers = malloc((size_t)(count + 1) * sizeof *numbers);
    BASE_CHECK(numbers != NULL);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (double)base_random_below(random, 2000001) / 1e6 - 1;
    return numbers;
}

static inline int64_t nn_count(const int64_t *sizes, int rank) {
    int64_t count = 1;
    for (int dim = 0; dim < rank; dim++)
        count *= sizes[dim];
    return count;
}

// A tensor of a floating type from numbers in logical order. TURNED: the last two dimensions lie
// the other way round in memory. GAPS: every second element of the last dimension of a larger one.
// A leaf if neither.
enum nn_layout { NN_ROWS, NN_TURNED, NN_GAPS, NN_LAYOUTS };
static inline struct tensor nn_tensor(const struct tensor_place *place, enum tensor_type type,
                                      const int64_t *sizes, int rank, const double *numbers,
                                      enum nn_layout layout) {
    struct tensor wide, self, room, view;
    CHECK_OK(tensor_from_bytes(place, TENSOR_FLOAT64, sizes, rank, numbers, &wide));
    CHECK_OK(tensor_to(wide, type, TENSOR_CONTIGUOUS, &self));
    tensor_release(&wide);
    if (layout == NN_ROWS || rank < (layout == NN_TURNED ? 2 : 1))
        return self;
    int64_t other[TENSOR_RANK_MAX];
    memcpy(other, sizes, (size_t)rank * sizeof other[0]);
    if (layout == NN_TURNED) {
        other[rank - 2] = sizes[rank - 1];
        other[rank - 1] = sizes[rank - 2];
    } else {
        other[rank - 1] = 2 * sizes[rank - 1];
    }
    CHECK_OK(tensor_zeros(place, type, other, rank, &room));
    if (layout == NN_TURNED)
        CHECK_OK(tensor_transpose(room, -1, -2, &view));
    else
        CHECK_OK(tensor_slice(room, -1, 0, INT64_MAX, 2, &view));
    CHECK_OK(tensor_copy_(view, self));
    tensor_release(&room);
    tensor_release(&self);
    return view;
}

// The elements as numbers, in logical order; freed by the caller.
static inline double *nn_read(struct tensor self) {
    const bool was_on = tensor_grad_mode();
    struct tensor wide;
    double *numbers = malloc((size_t)(tensor_numel(self) + 1) * sizeof *numbers);
    BASE_CHECK(numbers != NULL);
    tensor_set_grad_mode(false);
    CHECK_OK(tensor_to(self, TENSOR_FLOAT64, TENSOR_PRESERVE, &wide));
    tensor_set_grad_mode(was_on);
    CHECK_OK(tensor_read(wide, numbers));
    tensor_release(&wide);
    return numbers;
}

static inline double nn_item(struct tensor self) {
    struct tensor_scalar value;
    CHECK_OK(tensor_item(self, &value));
    return value.kind == TENSOR_SCALAR_FLOATING ? value.floating : (double)value.integer;
}

#endif
