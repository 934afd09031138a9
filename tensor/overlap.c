// Which writes PyTorch refuses because elements share memory. See iterate.h.
#include "tensor/error.h"
#include "tensor/iterate.h"

#include <string.h>

enum base_status tensor__check_no_internal_overlap(const struct tensor_impl *out) {
    if ((out->flags & TENSOR_IS_DENSE) != 0 || !tensor_geometry_is_expanded(&out->geometry))
        return BASE_OK;
    return tensor__error("unsupported operation: more than one element of the written-to tensor "
                         "refers to a single memory location. Please clone() the tensor before "
                         "performing the operation.");
}

enum overlap { OVERLAP_NO, OVERLAP_SAME, OVERLAP_PARTIAL };

// Only of tensors without holes: of others PyTorch says nothing. By the identity of the storage and
// the bytes from the first to the last element.
static enum overlap overlap_of(const struct tensor_impl *a,
                               const struct tensor_geometry *geometry_a,
                               const struct tensor_impl *b) {
    if (a == b)
        return OVERLAP_SAME;
    const struct tensor_geometry *geometry_b = &b->geometry;
    if (geometry_a->numel == 0 || geometry_b->numel == 0 || a->storage != b->storage ||
        (tensor_geometry_flags(geometry_a) & TENSOR_IS_DENSE) == 0 ||
        (b->flags & TENSOR_IS_DENSE) == 0)
        return OVERLAP_NO;
    const int64_t size_a = (int64_t)tensor__item_size(a), size_b = (int64_t)tensor__item_size(b);
    const int64_t first_a = geometry_a->offset * size_a, first_b = geometry_b->offset * size_b,
                  end_a = first_a + geometry_a->numel * size_a,
                  end_b = first_b + geometry_b->numel * size_b;
    if (first_a == first_b && end_a == end_b) {
        const bool is_same = geometry_a->rank == geometry_b->rank &&
                             memcmp(geometry_a->strides, geometry_b->strides,
                                    (size_t)geometry_a->rank * sizeof(int64_t)) == 0;
        return is_same ? OVERLAP_SAME : OVERLAP_PARTIAL;
    }
    return first_a < end_b && first_b < end_a ? OVERLAP_PARTIAL : OVERLAP_NO;
}

static enum base_status refuse(void) {
    return tensor__error(
        "unsupported operation: some elements of the input tensor and the written-to "
        "tensor refer to a single memory location. Please clone() the tensor before "
        "performing the operation.");
}

enum base_status tensor__check_no_partial_overlap(const struct tensor_impl *out,
                                                  const struct tensor_impl *input) {
    return overlap_of(out, &out->geometry, input) == OVERLAP_PARTIAL ? refuse() : BASE_OK;
}

enum base_status tensor__check_no_overlap(const struct tensor_impl *out,
                                          const struct tensor_geometry *geometry,
                                          const struct tensor_impl *input) {
    return overlap_of(out, geometry, input) != OVERLAP_NO ? refuse() : BASE_OK;
}
