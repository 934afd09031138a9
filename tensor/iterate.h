// What all element-wise operators share, in the order in which PyTorch's iterator checks: overlap
// of the output, shapes, types; then the result is made (its strides follow those of the inputs)
// and the device does the work.
#ifndef TIDEMARK_TENSOR_ITERATE_H
#define TIDEMARK_TENSOR_ITERATE_H

#include "tensor/backend.h"
#include "tensor/impl.h"

enum tensor_result_type {
    TENSOR_RESULT_COMMON,   // the promoted type of the inputs
    TENSOR_RESULT_FLOATING, // of integers: float32
    TENSOR_RESULT_BOOL,
};

struct tensor_iteration {
    enum tensor_pointwise operation;
    enum tensor_result_type result_type;
    struct tensor_impl *out; // NULL: a new tensor
    bool is_in_place;        // `out` is input `a`: it is not resized
    struct tensor_impl *a, *b;
    bool has_scalar; // in the place of b
    struct tensor_scalar scalar, alpha;
    bool has_alpha; // to be checked against the type
};

// Carries it out. *result: the new tensor, or `out` (not counted). A refusal changes nothing.
enum base_status tensor__iterate(const struct tensor_iteration *iteration,
                                 struct tensor_impl **result) BASE_MUST_USE;

// Below autograd: nothing is counted as a write.
enum base_status tensor__copy_elements(struct tensor_impl *to,
                                       const struct tensor_impl *from) BASE_MUST_USE;
enum base_status tensor__fill_elements(struct tensor_impl *to,
                                       struct tensor_scalar value) BASE_MUST_USE;
// to[geometry] += from, one by one: GEOMETRY lies in TO's storage and may overlap itself.
enum base_status tensor__accumulate_elements(struct tensor_impl *to,
                                             const struct tensor_geometry *geometry,
                                             const struct tensor_impl *from) BASE_MUST_USE;

// RuntimeErrors of writes: several elements of OUT in one place; elements that INPUT shares with
// OUT unless they are the very same ones.
enum base_status tensor__check_no_internal_overlap(const struct tensor_impl *out) BASE_MUST_USE;
enum base_status tensor__check_no_partial_overlap(const struct tensor_impl *out,
                                                  const struct tensor_impl *input) BASE_MUST_USE;
// As that, with OUT as GEOMETRY would make it, and the very same elements refused, too.
enum base_status tensor__check_no_overlap(const struct tensor_impl *out,
                                          const struct tensor_geometry *geometry,
                                          const struct tensor_impl *input) BASE_MUST_USE;

// RuntimeError of the function NAME if OUT or an input takes part in gradients.
enum base_status tensor__check_out(const char *name, struct tensor out, const struct tensor *inputs,
                                   int count) BASE_MUST_USE;
// Gives an output the geometry of a result, with PyTorch's warning if it had elements. Equal
// shapes: nothing.
enum base_status tensor__resize_output(struct tensor_impl *out,
                                       const struct tensor_geometry *geometry) BASE_MUST_USE;

enum base_status tensor__broadcast_shape(const struct tensor_geometry *a,
                                         const struct tensor_geometry *b, int64_t *sizes,
                                         int *rank) BASE_MUST_USE;
// IMPL as an operand of a loop of the shape, which its own broadcasts to. Refused if it reaches
// past its storage.
enum base_status tensor__operand(const struct tensor_impl *impl, int rank, const int64_t *sizes,
                                 struct tensor_operand *operand) BASE_MUST_USE;
enum base_status tensor__check_same_device(const struct tensor_impl *a,
                                           const struct tensor_impl *b) BASE_MUST_USE;

#endif
