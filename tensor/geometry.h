// Where the elements of a tensor lie in its storage: sizes, strides and an offset, in elements;
// what follows from them; and memory formats.
//
// Element (i0, i1, ...) lies at offset + i0 * stride0 + i1 * stride1 + ... A size of 0 makes the
// tensor empty; no sizes at all make it one element.
#ifndef TIDEMARK_TENSOR_GEOMETRY_H
#define TIDEMARK_TENSOR_GEOMETRY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Dimensions that a tensor can have. PyTorch's own operators stop at 64; no model comes near.
#define TENSOR_RANK_MAX 16

enum tensor_format {
    TENSOR_CONTIGUOUS,       // the last dimension runs fastest
    TENSOR_CHANNELS_LAST,    // rank 4: N C H W kept as N H W C
    TENSOR_CHANNELS_LAST_3D, // rank 5: N C D H W kept as N D H W C
    TENSOR_PRESERVE,         // as the source has it, where it has no holes and no overlap
};

struct tensor_geometry {
    int rank;
    int64_t offset;
    int64_t numel; // product of the sizes; kept, as in PyTorch, so that setters decide its checks
    int64_t sizes[TENSOR_RANK_MAX], strides[TENSOR_RANK_MAX];
};

// What is recomputed with every change of sizes or strides.
enum {
    TENSOR_IS_CONTIGUOUS = 1 << 0, // strides of dimensions of size 1 do not count; empty: always
    TENSOR_IS_CHANNELS_LAST = 1 << 1,
    TENSOR_IS_CHANNELS_LAST_3D = 1 << 2,
    TENSOR_IS_DENSE = 1 << 3,           // no two elements share memory, and no hole between them
    TENSOR_LIKE_CHANNELS_LAST = 1 << 4, // the order of the strides says so: for propagation
    TENSOR_LIKE_CHANNELS_LAST_3D = 1 << 5,
};
unsigned tensor_geometry_flags(const struct tensor_geometry *geometry);

// Copies what the rank says. Nearly all tensors have few dimensions: so many entries take a few
// moves, a number that is known only at run time two calls. What lies behind the rank is nobody's.
#define TENSOR_RANK_FEW 4
static inline void tensor_geometry_copy(struct tensor_geometry *to,
                                        const struct tensor_geometry *from) {
    to->rank = from->rank;
    to->offset = from->offset;
    to->numel = from->numel;
    if (from->rank <= TENSOR_RANK_FEW) {
        memcpy(to->sizes, from->sizes, TENSOR_RANK_FEW * sizeof to->sizes[0]);
        memcpy(to->strides, from->strides, TENSOR_RANK_FEW * sizeof to->strides[0]);
    } else {
        memcpy(to->sizes, from->sizes, (size_t)from->rank * sizeof to->sizes[0]);
        memcpy(to->strides, from->strides, (size_t)from->rank * sizeof to->strides[0]);
    }
}
bool tensor_geometry_same_shape(const struct tensor_geometry *a, const struct tensor_geometry *b);

// Row-major strides of the sizes, with max(size, 1) as the factor, so that (2,0,3) has (3,3,1).
void tensor_geometry_set_contiguous(struct tensor_geometry *geometry);
// Strides of a format for the sizes. An error for a rank that the format does not have and for
// TENSOR_PRESERVE.
enum base_status tensor_geometry_set_format(struct tensor_geometry *geometry,
                                            enum tensor_format format) BASE_MUST_USE;
// Takes RANK sizes, contiguous, offset 0; numel is the plain product. BASE_LIMIT above
// TENSOR_RANK_MAX.
enum base_status tensor_geometry_init(struct tensor_geometry *geometry, const int64_t *sizes,
                                      int rank) BASE_MUST_USE;

// Bytes of storage that the elements reach: 0 if there are none. False if a number overflows or a
// size is negative.
bool tensor_geometry_bytes(const struct tensor_geometry *geometry, size_t item_size,
                           int64_t *bytes);
// Bytes of the sizes alone, offset apart.
bool tensor_geometry_contiguous_bytes(const struct tensor_geometry *geometry, size_t item_size,
                                      int64_t *bytes);
// Product of the sizes; false if a size is negative or the product overflows.
bool tensor_geometry_count(const struct tensor_geometry *geometry, int64_t *numel);

// Positions of the first and the last element, in elements of the storage; numel > 0.
void tensor_geometry_range(const struct tensor_geometry *geometry, int64_t *first, int64_t *last);

// Whether some dimension larger than 1 has stride 0: several elements in one place. Other overlaps
// (as_strided, unfold) are not seen, as in PyTorch.
bool tensor_geometry_is_expanded(const struct tensor_geometry *geometry);

// The order that PyTorch's iterator gives the dimensions of OPERANDS of one shape, innermost first:
// what the strides of a result follow. Strides of 0 say nothing; equal ones put the smaller
// dimension first.
void tensor_geometry_order(int rank, const int64_t *sizes, const int64_t *const *strides,
                           int operand_count, int *order);
// Strides without holes, in the order of the present ones: what TENSOR_PRESERVE makes of a tensor
// with holes.
void tensor_geometry_densify(struct tensor_geometry *geometry);
// The format that a result takes over.
enum tensor_format tensor_geometry_suggested(const struct tensor_geometry *geometry);

// "[2, 3]" for messages; returns TEXT, of SIZE bytes.
#define TENSOR_SIZES_TEXT_SIZE 384
const char *tensor_sizes_text(const int64_t *sizes, int rank, char text[TENSOR_SIZES_TEXT_SIZE]);

#endif
