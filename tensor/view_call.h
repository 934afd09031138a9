// View operations as data: what is asked for, and what it makes of a geometry. Copied by the tape,
// so that a gradient can be put where the view lies in a fresh tensor of the source's shape.
#ifndef TIDEMARK_TENSOR_VIEW_CALL_H
#define TIDEMARK_TENSOR_VIEW_CALL_H

#include "tensor/geometry.h"

#include <stddef.h>

enum tensor_view_kind {
    TENSOR_VIEW_VIEW,         // list: sizes
    TENSOR_VIEW_TRANSPOSE,    // dim, dim1
    TENSOR_VIEW_PERMUTE,      // list: dimensions
    TENSOR_VIEW_SELECT,       // dim, start
    TENSOR_VIEW_SLICE,        // dim, start, end, step
    TENSOR_VIEW_UNSQUEEZE,    // dim
    TENSOR_VIEW_SQUEEZE,      // all of size 1
    TENSOR_VIEW_SQUEEZE_DIMS, // list: dimensions
    TENSOR_VIEW_EXPAND,       // list: sizes
    TENSOR_VIEW_AS_STRIDED,   // list: sizes, strides, start: offset
    TENSOR_VIEW_UNFOLD,       // dim, end: size, step
    TENSOR_VIEW_DIAGONAL,     // start: offset, dim, dim1
    TENSOR_VIEW_ALIAS,
};

struct tensor_view_call {
    enum tensor_view_kind kind;
    int count;                     // of list
    const int64_t *list, *strides; // the caller's
    int64_t dim, dim1, start, end, step;
};

// Geometry of the view, bounds of the storage apart. IN and OUT differ.
enum base_status tensor_view_apply(const struct tensor_view_call *call,
                                   const struct tensor_geometry *in,
                                   struct tensor_geometry *out) BASE_MUST_USE;
// Whether the view, of a tensor of RANK dimensions, may not reach past the storage. Others keep
// what is: other shapes, aliases, and a dimension exchanged with itself.
bool tensor_view_is_bounded(const struct tensor_view_call *call, int rank);
// The bounds of what as_strided and its like make: the storage's size, then the offset's sign.
enum base_status tensor_view_check_bounds(const struct tensor_geometry *geometry, size_t item_size,
                                          size_t storage_bytes) BASE_MUST_USE;

// DIM in [-rank, rank) as one of [0, rank). Without dimensions, -1 and 0 will do if
// SCALAR_AS_ONE.
enum base_status tensor_wrap_dim(int64_t dim, int rank, bool scalar_as_one,
                                 int *wrapped) BASE_MUST_USE;
// Sizes with at most one -1, which is worked out, against NUMEL.
enum base_status tensor_infer_sizes(const int64_t *sizes, int rank, int64_t numel,
                                    int64_t *inferred) BASE_MUST_USE;
// Strides with which SIZES view IN without a copy; false if there are none. Equal numel.
bool tensor_view_strides(const struct tensor_geometry *in, const int64_t *sizes, int rank,
                         int64_t *strides);

#endif
