// See geometry.h.
#include "tensor/geometry.h"

#include "tensor/error.h"

#include <stdio.h>
#include <string.h>

// Dimensions from the fastest on.
static const int channels_last_order[] = {1, 3, 2, 0}, channels_last_3d_order[] = {1, 4, 3, 2, 0};

bool tensor_geometry_same_shape(const struct tensor_geometry *a, const struct tensor_geometry *b) {
    return a->rank == b->rank &&
           memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof a->sizes[0]) == 0;
}

static int64_t at_least_one(int64_t size) { return size > 1 ? size : 1; }

void tensor_geometry_set_contiguous(struct tensor_geometry *geometry) {
    int64_t stride = 1;
    for (int dim = geometry->rank - 1; dim >= 0; dim--) {
        geometry->strides[dim] = stride;
        // Sizes whose product overflows come here before they are refused; a wrapped stride does
        // no harm then.
        stride = (int64_t)((uint64_t)stride * (uint64_t)at_least_one(geometry->sizes[dim]));
    }
}

static void set_ordered(struct tensor_geometry *geometry, const int *order) {
    int64_t stride = 1;
    for (int index = 0; index < geometry->rank; index++) {
        geometry->strides[order[index]] = stride;
        stride *= geometry->sizes[order[index]];
    }
}

enum base_status tensor_geometry_set_format(struct tensor_geometry *geometry,
                                            enum tensor_format format) {
    switch (format) {
    case TENSOR_CONTIGUOUS:
        tensor_geometry_set_contiguous(geometry);
        return BASE_OK;
    case TENSOR_CHANNELS_LAST:
        if (geometry->rank != 4)
            return tensor__error("required rank 4 tensor to use channels_last format");
        set_ordered(geometry, channels_last_order);
        return BASE_OK;
    case TENSOR_CHANNELS_LAST_3D:
        if (geometry->rank != 5)
            return tensor__error("required rank 5 tensor to use channels_last_3d format");
        set_ordered(geometry, channels_last_3d_order);
        return BASE_OK;
    case TENSOR_PRESERVE:
        break;
    }
    return tensor__error("unsupported memory format Preserve");
}

enum base_status tensor_geometry_init(struct tensor_geometry *geometry, const int64_t *sizes,
                                      int rank) {
    if (rank > TENSOR_RANK_MAX)
        return base_status_set(BASE_LIMIT, "a tensor has at most %d dimensions, not %d",
                               TENSOR_RANK_MAX, rank);
    geometry->rank = rank;
    geometry->offset = 0;
    uint64_t numel = 1;
    for (int dim = 0; dim < rank; dim++) {
        geometry->sizes[dim] = sizes[dim];
        numel *= (uint64_t)sizes[dim];
    }
    geometry->numel = (int64_t)numel;
    tensor_geometry_set_contiguous(geometry);
    return BASE_OK;
}

bool tensor_geometry_count(const struct tensor_geometry *geometry, int64_t *numel) {
    int64_t count = 1;
    bool is_good = true, is_empty = false;
    for (int dim = 0; dim < geometry->rank; dim++) {
        if (geometry->sizes[dim] < 0)
            return false;
        is_empty |= geometry->sizes[dim] == 0;
        is_good &= !__builtin_mul_overflow(count, geometry->sizes[dim], &count);
    }
    *numel = is_empty ? 0 : count;
    return is_good || is_empty;
}

bool tensor_geometry_contiguous_bytes(const struct tensor_geometry *geometry, size_t item_size,
                                      int64_t *bytes) {
    int64_t numel;
    return tensor_geometry_count(geometry, &numel) &&
           !__builtin_mul_overflow(numel, (int64_t)item_size, bytes);
}

bool tensor_geometry_bytes(const struct tensor_geometry *geometry, size_t item_size,
                           int64_t *bytes) {
    int64_t reach = geometry->offset + 1;
    bool is_good = true;
    for (int dim = 0; dim < geometry->rank; dim++) {
        if (geometry->sizes[dim] == 0) {
            *bytes = 0;
            return true;
        }
        int64_t step;
        is_good &=
            geometry->sizes[dim] > 0 && geometry->strides[dim] >= 0 &&
            !__builtin_mul_overflow(geometry->sizes[dim] - 1, geometry->strides[dim], &step) &&
            !__builtin_add_overflow(reach, step, &reach);
    }
    return is_good && !__builtin_mul_overflow(reach, (int64_t)item_size, bytes);
}

void tensor_geometry_range(const struct tensor_geometry *geometry, int64_t *first, int64_t *last) {
    *first = *last = geometry->offset;
    for (int dim = 0; dim < geometry->rank; dim++)
        *last += (geometry->sizes[dim] - 1) * geometry->strides[dim];
}

bool tensor_geometry_is_expanded(const struct tensor_geometry *geometry) {
    for (int dim = 0; dim < geometry->rank; dim++)
        if (geometry->sizes[dim] > 1 && geometry->strides[dim] == 0)
            return true;
    return false;
}

//------------------------------------------------------------------------------------------------
// Flags

static bool is_ordered(const struct tensor_geometry *geometry, const int *order) {
    int64_t expected = 1;
    for (int index = 0; index < geometry->rank; index++) {
        const int dim = order[index];
        if (geometry->sizes[dim] == 1)
            continue;
        if (geometry->strides[dim] != expected)
            return false;
        expected *= geometry->sizes[dim];
    }
    return true;
}

static bool is_contiguous(const struct tensor_geometry *geometry) {
    int64_t expected = 1;
    if (geometry->numel == 0)
        return true;
    for (int dim = geometry->rank - 1; dim >= 0; dim--) {
        const int64_t size = geometry->sizes[dim];
        if (size != 1 && geometry->strides[dim] != expected)
            return false;
        expected *= size;
    }
    return true;
}

// Whether the strides rise in channels-last order. What is ambiguous (all of N, C, 1, 1 with one
// stride) is left to be contiguous.
static bool looks_ordered(const struct tensor_geometry *geometry, const int *order) {
    if (geometry->strides[1] == 0)
        return false;
    int64_t least = 0;
    for (int index = 0; index < geometry->rank; index++) {
        const int dim = order[index];
        if (geometry->sizes[dim] == 0 || geometry->strides[dim] < least)
            return false;
        if (dim == 0 && least == geometry->strides[1])
            return false;
        least = geometry->strides[dim] * at_least_one(geometry->sizes[dim]);
    }
    return true;
}

static bool is_dense(const struct tensor_geometry *geometry) {
    if (geometry->rank == 1)
        return geometry->sizes[0] < 2 || geometry->strides[0] == 1;
    // Dimensions of size 1 take no part. The others have to tile memory: each step finds the one
    // whose stride is what is covered so far.
    bool is_done[TENSOR_RANK_MAX] = {false};
    int64_t covered = 1;
    for (int round = 0; round < geometry->rank; round++) {
        int found = -1;
        bool is_left = false;
        for (int dim = 0; dim < geometry->rank; dim++) {
            if (is_done[dim] || geometry->sizes[dim] < 2)
                continue;
            is_left = true;
            if (geometry->strides[dim] == covered)
                found = dim;
        }
        if (!is_left)
            return true;
        if (found < 0)
            return false;
        is_done[found] = true;
        covered *= geometry->sizes[found];
    }
    return true;
}

static unsigned channels_last_flags(const struct tensor_geometry *geometry) {
    unsigned flags = 0;
    if (geometry->rank == 4) {
        if (is_ordered(geometry, channels_last_order))
            flags |= TENSOR_IS_CHANNELS_LAST;
        if (looks_ordered(geometry, channels_last_order))
            flags |= TENSOR_LIKE_CHANNELS_LAST;
    } else {
        if (is_ordered(geometry, channels_last_3d_order))
            flags |= TENSOR_IS_CHANNELS_LAST_3D;
        if (looks_ordered(geometry, channels_last_3d_order))
            flags |= TENSOR_LIKE_CHANNELS_LAST_3D;
    }
    return flags;
}

unsigned tensor_geometry_flags(const struct tensor_geometry *geometry) {
    unsigned flags = is_contiguous(geometry) ? TENSOR_IS_CONTIGUOUS : 0;
    if (geometry->rank == 4 || geometry->rank == 5)
        flags |= channels_last_flags(geometry);
    const unsigned layouts =
        TENSOR_IS_CONTIGUOUS | TENSOR_IS_CHANNELS_LAST | TENSOR_IS_CHANNELS_LAST_3D;
    if ((flags & layouts) != 0 || is_dense(geometry))
        flags |= TENSOR_IS_DENSE;
    return flags;
}

enum tensor_format tensor_geometry_suggested(const struct tensor_geometry *geometry) {
    const unsigned flags = tensor_geometry_flags(geometry);
    if ((flags & TENSOR_LIKE_CHANNELS_LAST) != 0)
        return TENSOR_CHANNELS_LAST;
    if ((flags & TENSOR_LIKE_CHANNELS_LAST_3D) != 0)
        return TENSOR_CHANNELS_LAST_3D;
    return TENSOR_CONTIGUOUS;
}

//------------------------------------------------------------------------------------------------
// Order of dimensions

// Above 0 if dimension A comes after B, below 0 if before, 0 if nothing tells.
static int compare(const int64_t *sizes, const int64_t *const *strides, int operand_count, int a,
                   int b) {
    for (int operand = 0; operand < operand_count; operand++) {
        const int64_t stride_a = strides[operand][a], stride_b = strides[operand][b];
        if (stride_a == 0 || stride_b == 0)
            continue;
        if (stride_a != stride_b)
            return stride_a < stride_b ? -1 : 1;
        if (sizes[a] > sizes[b])
            return 1;
    }
    return 0;
}

// Insertion sort that goes on over dimensions of which nothing tells: not a sort by a total order,
// so the very steps matter.
void tensor_geometry_order(int rank, const int64_t *sizes, const int64_t *const *strides,
                           int operand_count, int *order) {
    for (int index = 0; index < rank; index++)
        order[index] = rank - 1 - index;
    for (int index = 1; index < rank; index++) {
        int place = index;
        for (int other = index - 1; other >= 0; other--) {
            const int sign = compare(sizes, strides, operand_count, order[other], order[place]);
            if (sign < 0)
                break;
            if (sign == 0)
                continue;
            const int moved = order[other];
            order[other] = order[place];
            order[place] = moved;
            place = other;
        }
    }
}

void tensor_geometry_densify(struct tensor_geometry *geometry) {
    int order[TENSOR_RANK_MAX];
    const int64_t *strides = geometry->strides;
    tensor_geometry_order(geometry->rank, geometry->sizes, &strides, 1, order);
    int64_t stride = 1;
    for (int index = 0; index < geometry->rank; index++) {
        geometry->strides[order[index]] = stride;
        stride *= at_least_one(geometry->sizes[order[index]]);
    }
}

const char *tensor_sizes_text(const int64_t *sizes, int rank, char text[TENSOR_SIZES_TEXT_SIZE]) {
    size_t length = (size_t)snprintf(text, TENSOR_SIZES_TEXT_SIZE, "[");
    for (int dim = 0; dim < rank && dim < TENSOR_RANK_MAX; dim++)
        length += (size_t)snprintf(text + length, TENSOR_SIZES_TEXT_SIZE - length, "%s%lld",
                                   dim > 0 ? ", " : "", (long long)sizes[dim]);
    snprintf(text + length, TENSOR_SIZES_TEXT_SIZE - length, "]");
    return text;
}
