// In which other shapes a tensor can be seen without a copy. See view_call.h.
#include "tensor/error.h"
#include "tensor/view_call.h"

#include <string.h>

static TENSOR_RARE enum base_status refuse_size(const int64_t *sizes, int rank, int dim) {
    char text[TENSOR_SIZES_TEXT_SIZE];
    return tensor__error("invalid shape dimension %lld at index %d of shape %s",
                         (long long)sizes[dim], dim, tensor_sizes_text(sizes, rank, text));
}

static TENSOR_RARE enum base_status refuse_shape(const int64_t *sizes, int rank, int64_t numel,
                                                 bool is_ambiguous) {
    char text[TENSOR_SIZES_TEXT_SIZE];
    tensor_sizes_text(sizes, rank, text);
    if (is_ambiguous)
        return tensor__error("cannot reshape tensor of 0 elements into shape %s because the "
                             "unspecified dimension size -1 can be any value and is ambiguous",
                             text);
    return tensor__error("shape '%s' is invalid for input of size %lld", text, (long long)numel);
}

enum base_status tensor_infer_sizes(const int64_t *sizes, int rank, int64_t numel,
                                    int64_t *inferred) {
    int open = -1;
    int64_t product = 1;
    for (int dim = 0; dim < rank; dim++) {
        if (sizes[dim] == -1) {
            if (open >= 0)
                return tensor__error("only one dimension can be inferred");
            open = dim;
        } else if (sizes[dim] < 0) {
            return refuse_size(sizes, rank, dim);
        } else if (__builtin_mul_overflow(product, sizes[dim], &product)) {
            product = -1; // cannot match; a later 0 makes it 0 again
        }
        inferred[dim] = sizes[dim];
    }
    const int64_t rest = open >= 0 && product > 0 ? numel / product : 0; // what is left for -1
    const bool is_match = product == numel || (open >= 0 && product > 0 && rest * product == numel);
    if (!is_match)
        return refuse_shape(sizes, rank, numel, false);
    if (open < 0)
        return BASE_OK;
    if (product == 0)
        return refuse_shape(sizes, rank, numel, true);
    inferred[open] = rest;
    return BASE_OK;
}

// The source falls, from the right, into runs of dimensions that behave like one; each run has to
// be cut up by new dimensions exactly.
bool tensor_view_strides(const struct tensor_geometry *in, const int64_t *sizes, int rank,
                         int64_t *strides) {
    if (in->rank == 0) {
        for (int dim = 0; dim < rank; dim++)
            strides[dim] = 1;
        return true;
    }
    if (in->numel == 0) {
        const bool is_same =
            in->rank == rank && memcmp(in->sizes, sizes, (size_t)rank * sizeof *sizes) == 0;
        int64_t stride = 1;
        for (int dim = rank - 1; dim >= 0; dim--) {
            strides[dim] = is_same ? in->strides[dim] : stride;
            stride *= sizes[dim] > 1 ? sizes[dim] : 1;
        }
        return true;
    }
    int taken = rank; // new dimensions from here on have their strides
    for (int first = in->rank - 1, next; first >= 0; first = next) {
        const int64_t base = in->strides[first];
        int64_t total = in->sizes[first];
        for (next = first - 1; next >= 0; next--) {
            if (in->sizes[next] != 1 && in->strides[next] != total * base)
                break;
            total *= in->sizes[next];
        }
        int64_t have = 1;
        while (taken > 0 && (have < total || sizes[taken - 1] == 1)) {
            taken--;
            strides[taken] = have * base;
            have *= sizes[taken];
        }
        if (have != total)
            return false;
    }
    return taken == 0;
}
