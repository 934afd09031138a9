// See lower.h.
#include "tensor/lower.h"

#include <string.h>

_Static_assert(TENSOR_RANK_MAX == TENSOR_KERNEL_RANK_MAX, "one limit");
_Static_assert((int)TENSOR_UINT8 == TENSOR_KERNEL_UINT8 &&
                   (int)TENSOR_INT64 == TENSOR_KERNEL_INT64 &&
                   (int)TENSOR_FLOAT16 == TENSOR_KERNEL_FLOAT16 &&
                   (int)TENSOR_FLOAT64 == TENSOR_KERNEL_FLOAT64 &&
                   (int)TENSOR_BOOL == TENSOR_KERNEL_BOOL &&
                   (int)TENSOR_BFLOAT16 == TENSOR_KERNEL_BFLOAT16,
               "types have one order");
_Static_assert((int)TENSOR_COPY == TENSOR_KERNEL_COPY && (int)TENSOR_EQ == TENSOR_KERNEL_EQ &&
                   (int)TENSOR_SQRT == TENSOR_KERNEL_SQRT &&
                   (int)TENSOR_ACCUMULATE == TENSOR_KERNEL_ACCUMULATE &&
                   (int)TENSOR_OPERATION_COUNT == TENSOR_KERNEL_OPERATION_COUNT,
               "operations have one order");

static struct tensor_kernel_number number_of(struct tensor_scalar scalar, int type) {
    const bool is_floating = scalar.kind == TENSOR_SCALAR_FLOATING;
    const struct tensor_kernel_number number = {scalar.floating, scalar.integer};
    return tensor_kernel_convert(number, is_floating ? TENSOR_KERNEL_FLOAT64 : TENSOR_KERNEL_INT64,
                                 type);
}

// Strides come with the dimensions. What lies behind the rank is nobody's.
static void array_of(const struct tensor_operand *operand, struct tensor_kernel_array *array) {
    array->data = operand->data;
    array->type = (int)operand->type;
}

// One dimension of a loop of three operands.
struct dimension {
    int64_t size, strides[3];
};

static bool lies_behind(const struct dimension *outer, const struct dimension *inner) {
    for (int i = 0; i < 3; ++i)
        if (outer->strides[i] != inner->size * inner->strides[i])
            return false;
    return true;
}

// By the output's stride, the greatest first; then by the input's.
static bool comes_before(const struct dimension *a, const struct dimension *b) {
    return a->strides[0] != b->strides[0] ? a->strides[0] > b->strides[0]
                                          : a->strides[1] > b->strides[1];
}

// In place; returns how many are left. ORDERED: elements keep their order.
static int dimensions_simplify(struct dimension *dimensions, int count, bool ordered) {
    int kept = 0;
    for (int i = 0; i < count; ++i) {
        const struct dimension dimension = dimensions[i];
        int at = kept;
        if (dimension.size == 1)
            continue;
        for (; !ordered && at > 0 && comes_before(&dimension, &dimensions[at - 1]); --at)
            dimensions[at] = dimensions[at - 1];
        dimensions[at] = dimension;
        ++kept;
    }
    int joined = 0;
    for (int i = 0; i < kept; ++i) {
        if (joined > 0 && lies_behind(&dimensions[joined - 1], &dimensions[i])) {
            const int64_t size = dimensions[joined - 1].size * dimensions[i].size;
            dimensions[joined - 1] = dimensions[i];
            dimensions[joined - 1].size = size;
        } else {
            dimensions[joined++] = dimensions[i];
        }
    }
    return joined;
}

static int dimensions_of(const struct tensor_loop *loop, const bool *is_reduced, bool reduced,
                         struct dimension *dimensions) {
    int count = 0;
    for (int dim = 0; dim < loop->rank; ++dim) {
        if (is_reduced != NULL && is_reduced[dim] != reduced)
            continue;
        dimensions[count++] = (struct dimension){loop->sizes[dim],
                                                 {loop->out.strides[dim],
                                                  loop->a.data != NULL ? loop->a.strides[dim] : 0,
                                                  loop->b.data != NULL ? loop->b.strides[dim] : 0}};
    }
    return count;
}

void tensor__lower_pointwise(const struct tensor_loop *loop,
                             struct tensor_kernel_pointwise *kernel) {
    struct dimension dimensions[TENSOR_RANK_MAX];
    kernel->operation = (int)loop->operation;
    kernel->compute = (int)loop->compute;
    array_of(&loop->out, &kernel->out);
    array_of(&loop->a, &kernel->a);
    array_of(&loop->b, &kernel->b);
    kernel->scalar = number_of(loop->scalar, (int)loop->compute);
    kernel->alpha = number_of(loop->alpha, (int)loop->compute);
    kernel->shape.rank =
        dimensions_simplify(dimensions, dimensions_of(loop, NULL, false, dimensions),
                            loop->operation == TENSOR_ACCUMULATE);
    for (int dim = 0; dim < kernel->shape.rank; ++dim) {
        kernel->shape.sizes[dim] = dimensions[dim].size;
        kernel->out.strides[dim] = dimensions[dim].strides[0];
        kernel->a.strides[dim] = dimensions[dim].strides[1];
        kernel->b.strides[dim] = dimensions[dim].strides[2];
    }
}

void tensor__lower_sum(const struct tensor_loop *loop, const bool *is_reduced,
                       struct tensor_kernel_sum *kernel) {
    struct dimension dimensions[TENSOR_RANK_MAX];
    kernel->compute = (int)loop->compute;
    array_of(&loop->out, &kernel->out);
    array_of(&loop->a, &kernel->a);
    kernel->b = (struct tensor_kernel_array){0};
    kernel->kept.rank =
        dimensions_simplify(dimensions, dimensions_of(loop, is_reduced, false, dimensions), false);
    for (int dim = 0; dim < kernel->kept.rank; ++dim) {
        kernel->kept.sizes[dim] = dimensions[dim].size;
        kernel->out.strides[dim] = dimensions[dim].strides[0];
        kernel->a.strides[dim] = dimensions[dim].strides[1];
    }
    const int count = dimensions_of(loop, is_reduced, true, dimensions);
    for (int i = 0; i < count; ++i)
        dimensions[i].strides[0] = 0;
    kernel->reduced.rank = dimensions_simplify(dimensions, count, true);
    for (int dim = 0; dim < kernel->reduced.rank; ++dim) {
        kernel->reduced.sizes[dim] = dimensions[dim].size;
        kernel->b.strides[dim] = dimensions[dim].strides[1];
    }
}

static void matrix_of(const void *data, enum tensor_type type, const int64_t *strides,
                      struct tensor_kernel_array *array) {
    array->data = (void *)(uintptr_t)data;
    array->type = (int)type;
    memcpy(array->strides, strides, 3 * sizeof *strides);
}

void tensor__lower_product(const struct tensor_product *product,
                           struct tensor_kernel_product *kernel) {
    kernel->batch = product->batch;
    kernel->m = product->m;
    kernel->n = product->n;
    kernel->k = product->k;
    matrix_of(product->out, product->type, product->out_strides, &kernel->out);
    matrix_of(product->a, product->type, product->a_strides, &kernel->a);
    matrix_of(product->b, product->type, product->b_strides, &kernel->b);
}
