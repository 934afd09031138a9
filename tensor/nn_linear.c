// Linear layers. See nn.h.
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/nn.h"
#include "tensor/operator.h"

#include <string.h>

static enum base_status types_check(struct tensor bias, struct tensor a, struct tensor b) {
    if (a.impl->type != b.impl->type)
        return tensor__error("mat1 and mat2 must have the same dtype, but got %s and %s",
                             tensor_type_scalar_name(a.impl->type),
                             tensor_type_scalar_name(b.impl->type));
    if (bias.impl->type != a.impl->type)
        return tensor__error("self and mat2 must have the same dtype, but got %s and %s",
                             tensor_type_scalar_name(bias.impl->type),
                             tensor_type_scalar_name(b.impl->type));
    const enum base_status status = tensor__check_same_device(a.impl, b.impl);
    return status != BASE_OK ? status : tensor__check_same_device(a.impl, bias.impl);
}

static enum base_status addmm_check(struct tensor bias, struct tensor a, struct tensor b) {
    const struct tensor_geometry *left = &a.impl->geometry, *right = &b.impl->geometry;
    const struct tensor_geometry *row = &bias.impl->geometry;
    if (left->rank != 2 || right->rank != 2)
        return tensor__error("%s must be a matrix, got %d-D tensor",
                             left->rank != 2 ? "mat1" : "mat2",
                             left->rank != 2 ? left->rank : right->rank);
    if (left->sizes[1] != right->sizes[0])
        return tensor__error("mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                             (long long)left->sizes[0], (long long)left->sizes[1],
                             (long long)right->sizes[0], (long long)right->sizes[1]);
    char sizes[TENSOR_SIZES_TEXT_SIZE];
    if (row->rank != 1 || (row->sizes[0] != right->sizes[1] && row->sizes[0] != 1))
        return tensor__error(
            "The expanded size of the tensor (%lld) must match the existing size (%lld) at "
            "non-singleton dimension 1.  Target sizes: [%lld, %lld].  Tensor sizes: %s",
            (long long)right->sizes[1], row->rank > 0 ? (long long)row->sizes[row->rank - 1] : 1LL,
            (long long)left->sizes[0], (long long)right->sizes[1],
            tensor_sizes_text(row->sizes, row->rank, sizes));
    return types_check(bias, a, b);
}

enum base_status tensor_addmm(struct tensor bias, struct tensor a, struct tensor b,
                              struct tensor *result) {
    struct tape_node *node = NULL;
    struct tensor made = {0};
    const struct tensor operands[] = {bias, a, b};
    enum base_status status =
        tape_begin(&tape_addmm, operands, 3, 1, sizeof(struct tape_product_payload), &node);
    if (status == BASE_OK && node != NULL && tape_wants(node, 1))
        status = tape_save(node, 1, b.impl);
    if (status == BASE_OK && node != NULL && tape_wants(node, 2))
        status = tape_save(node, 0, a.impl);
    if (status == BASE_OK)
        status = addmm_check(bias, a, b);
    if (status == BASE_OK && node != NULL)
        *(struct tape_product_payload *)node->payload = tape__product_payload(a.impl, b.impl);
    if (status == BASE_OK)
        status = tensor__make(a.impl, a.impl->type,
                              (int64_t[]){a.impl->geometry.sizes[0], b.impl->geometry.sizes[1]}, 2,
                              &made);
    if (status == BASE_OK)
        status = tensor__product_write(made.impl, a.impl, b.impl, bias.impl);
    return tensor__explain(tape_end(status, node, &made, result), "addmm", operands, 3);
}

// SELF's rows as one matrix, times B, and the shape back.
static enum base_status rows_multiply(struct tensor self, struct tensor b, struct tensor bias,
                                      struct tensor *result) {
    const struct tensor_geometry *shape = &self.impl->geometry;
    int64_t sizes[TENSOR_RANK_MAX], rows = 1;
    const int last = shape->rank - 1;
    memcpy(sizes, shape->sizes, (size_t)shape->rank * sizeof sizes[0]);
    for (int dim = 0; dim < last; dim++)
        rows *= sizes[dim];
    if (shape->rank == 2)
        return tensor_addmm(bias, self, b, result);
    struct tensor flat, product;
    enum base_status status = tensor_reshape(self, (int64_t[]){rows, sizes[last]}, 2, &flat);
    if (status != BASE_OK)
        return status;
    status = tensor_addmm(bias, flat, b, &product);
    tensor_release(&flat);
    if (status != BASE_OK)
        return status;
    sizes[last] = b.impl->geometry.sizes[1];
    status = tensor_view(product, sizes, shape->rank, result);
    tensor_release(&product);
    return status;
}

enum base_status tensor_linear(struct tensor self, struct tensor weight, struct tensor bias,
                               struct tensor *result) {
    struct tensor turned;
    if (weight.impl->geometry.rank != 2 || self.impl->geometry.rank == 0)
        return tensor__error("linear: the input has %d dimensions, the weight %d; they need at "
                             "least one, and two",
                             self.impl->geometry.rank, weight.impl->geometry.rank);
    enum base_status status = tensor_transpose_2d(weight, &turned);
    if (status != BASE_OK)
        return status;
    status = bias.impl == NULL ? tensor_matmul(self, turned, result)
                               : rows_multiply(self, turned, bias, result);
    tensor_release(&turned);
    return tensor__explain(status, "linear", (struct tensor[]){self, weight, bias}, 3);
}
