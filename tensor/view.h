// How views are made: one path for all of them.
#ifndef TIDEMARK_TENSOR_VIEW_H
#define TIDEMARK_TENSOR_VIEW_H

#include "tensor/formulas.h"
#include "tensor/view_call.h"

// The view of SELF that CALL describes: on the graph with FORMULA, related to its base.
enum base_status tensor__view(struct tensor self, const struct tensor_view_call *call,
                              const struct tape_formula *formula,
                              struct tensor *result) BASE_MUST_USE;
// The same off the graph. MULTIPLE: one output of many.
enum base_status tensor__view_make(struct tensor_impl *source, const struct tensor_view_call *call,
                                   bool multiple, struct tensor_impl **result) BASE_MUST_USE;
// Geometry of the view, with the bounds that its kind has.
enum base_status tensor__view_geometry(const struct tensor_impl *self,
                                       const struct tensor_view_call *call,
                                       struct tensor_geometry *geometry) BASE_MUST_USE;
// For a list argument longer than any tensor has dimensions.
enum base_status tensor__check_rank(int rank) BASE_MUST_USE;

struct tensor_view_call tensor__call_view(const int64_t *sizes, int rank);
struct tensor_view_call tensor__call_transpose(int64_t dim0, int64_t dim1);
struct tensor_view_call tensor__call_squeeze_dims(const int64_t *dims, int count);
struct tensor_view_call tensor__call_as_strided(struct tensor self, const int64_t *sizes, int rank,
                                                const int64_t *strides, const int64_t *offset);
// `t()`: of at most two dimensions.
enum base_status tensor__call_t(struct tensor self, struct tensor_view_call *call) BASE_MUST_USE;

#endif
