// Gradients of operators that compute. See formulas.h.
#include "tensor/autograd.h"
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"

#include <string.h>

static enum base_status pass(struct tensor gradient, struct tensor *result) {
    *result = tensor_retain(gradient);
    return BASE_OK;
}

// GRADIENT * FACTOR, or GRADIENT itself for 1.
static enum base_status scaled(struct tensor gradient, struct tensor_scalar factor,
                               struct tensor *result) {
    const bool is_one =
        factor.kind == TENSOR_SCALAR_FLOATING ? factor.floating == 1 : factor.integer == 1;
    if (is_one)
        return pass(gradient, result);
    return tensor_mul(gradient, (struct tensor_operand_value){.number = factor}, result);
}

static enum base_status add_back(struct tape_node *node, struct tensor *gradients,
                                 struct tensor *results) {
    const struct tape_binary_payload *payload = node->payload;
    if (gradients[0].impl == NULL)
        return BASE_OK;
    enum base_status status = BASE_OK;
    if (tape_wants(node, 0))
        status = pass(gradients[0], &results[0]);
    if (status == BASE_OK && tape_wants(node, 1))
        status = scaled(gradients[0], payload->alpha, &results[1]);
    return status;
}

static enum base_status sub_back(struct tape_node *node, struct tensor *gradients,
                                 struct tensor *results) {
    const struct tape_binary_payload *payload = node->payload;
    if (gradients[0].impl == NULL)
        return BASE_OK;
    enum base_status status = BASE_OK;
    if (tape_wants(node, 0))
        status = pass(gradients[0], &results[0]);
    if (status != BASE_OK || !tape_wants(node, 1))
        return status;
    struct tensor negative;
    status = tensor_neg(gradients[0], &negative);
    if (status != BASE_OK)
        return status;
    status = scaled(negative, payload->alpha, &results[1]);
    tensor_release(&negative);
    return status;
}

// The other operand: the tensor kept, or the number.
static enum base_status other_of(struct tape_node *node, struct tensor_operand_value *other) {
    const struct tape_binary_payload *payload = node->payload;
    *other = (struct tensor_operand_value){.number = payload->other};
    return payload->is_number ? BASE_OK : tape_unpack(node, 1, &other->tensor);
}

static enum base_status mul_back(struct tape_node *node, struct tensor *gradients,
                                 struct tensor *results) {
    if (gradients[0].impl == NULL)
        return BASE_OK;
    struct tensor_operand_value other = {0};
    struct tensor self = {0};
    enum base_status status = BASE_OK;
    // What was kept is checked before anything is computed.
    if (tape_wants(node, 0))
        status = other_of(node, &other);
    if (status == BASE_OK && tape_wants(node, 1))
        status = tape_unpack(node, 0, &self);
    if (status == BASE_OK && tape_wants(node, 0))
        status = tensor_mul(gradients[0], other, &results[0]);
    if (status == BASE_OK && tape_wants(node, 1))
        status = tensor_mul(gradients[0], tensor_operand_tensor(self), &results[1]);
    tensor_release(&self);
    tensor_release(&other.tensor);
    return status;
}

static enum base_status div_back(struct tape_node *node, struct tensor *gradients,
                                 struct tensor *results) {
    if (gradients[0].impl == NULL)
        return BASE_OK;
    struct tensor_operand_value other = {0};
    struct tensor self = {0}, quotient = {0}, ratio = {0}, negative = {0};
    enum base_status status = other_of(node, &other);
    if (status == BASE_OK && tape_wants(node, 1))
        status = tape_unpack(node, 0, &self);
    if (status == BASE_OK && tape_wants(node, 0))
        status = tensor_div(gradients[0], other, &results[0]);
    if (tape_wants(node, 1)) {
        // -gradient * (self / other) / other
        if (status == BASE_OK)
            status = tensor_div(self, other, &quotient);
        if (status == BASE_OK)
            status = tensor_div(quotient, other, &ratio);
        if (status == BASE_OK)
            status = tensor_neg(gradients[0], &negative);
        if (status == BASE_OK)
            status = tensor_mul(negative, tensor_operand_tensor(ratio), &results[1]);
    }
    tensor_release(&self);
    tensor_release(&quotient);
    tensor_release(&ratio);
    tensor_release(&negative);
    tensor_release(&other.tensor);
    return status;
}

static enum base_status neg_back(struct tape_node *node, struct tensor *gradients,
                                 struct tensor *results) {
    if (gradients[0].impl == NULL || !tape_wants(node, 0))
        return BASE_OK;
    return tensor_neg(gradients[0], &results[0]);
}

static enum base_status relu_back(struct tape_node *node, struct tensor *gradients,
                                  struct tensor *results) {
    if (gradients[0].impl == NULL || !tape_wants(node, 0))
        return BASE_OK;
    struct tensor output;
    enum base_status status = tape_unpack(node, 1, &output);
    if (status != BASE_OK)
        return status;
    const struct tensor_iteration iteration = {.operation = TENSOR_RELU_GRADIENT,
                                               .result_type = TENSOR_RESULT_COMMON,
                                               .a = gradients[0].impl,
                                               .b = output.impl};
    status = tensor__iterate(&iteration, &results[0].impl);
    tensor_release(&output);
    return status;
}

static enum base_status sqrt_back(struct tape_node *node, struct tensor *gradients,
                                  struct tensor *results) {
    if (gradients[0].impl == NULL || !tape_wants(node, 0))
        return BASE_OK;
    struct tensor output, twice = {0};
    enum base_status status = tape_unpack(node, 1, &output);
    if (status != BASE_OK)
        return status;
    status = tensor_mul(output, tensor_operand_integer(2), &twice);
    if (status == BASE_OK)
        status = tensor_div(gradients[0], tensor_operand_tensor(twice), &results[0]);
    tensor_release(&twice);
    tensor_release(&output);
    return status;
}

static enum base_status copy_back(struct tape_node *node, struct tensor *gradients,
                                  struct tensor *results) {
    if (gradients[0].impl == NULL || !tape_wants(node, 0))
        return BASE_OK;
    return pass(gradients[0], &results[0]);
}

static enum base_status zeros_back(struct tape_node *node, struct tensor *gradients,
                                   struct tensor *results) {
    if (gradients[0].impl == NULL || !tape_wants(node, 0))
        return BASE_OK;
    return tensor_zeros_like(gradients[0], TENSOR_PRESERVE, &results[0]);
}

// What was overwritten gets nothing, what was written gets all.
static enum base_status overwrite_back(struct tape_node *node, struct tensor *gradients,
                                       struct tensor *results) {
    enum base_status status = zeros_back(node, gradients, results);
    if (status != BASE_OK || gradients[0].impl == NULL || node->edge_count < 2 ||
        !tape_wants(node, 1))
        return status;
    return pass(gradients[0], &results[1]);
}

static enum base_status sum_back(struct tape_node *node, struct tensor *gradients,
                                 struct tensor *results) {
    const struct tape_sum_payload *payload = node->payload;
    if (gradients[0].impl == NULL || !tape_wants(node, 0))
        return BASE_OK;
    int64_t sizes[TENSOR_RANK_MAX];
    for (int dim = 0; dim < payload->rank; dim++)
        sizes[dim] = payload->is_reduced[dim] ? 1 : payload->sizes[dim];
    struct tensor kept;
    enum base_status status = tensor_reshape(gradients[0], sizes, payload->rank, &kept);
    if (status != BASE_OK)
        return status;
    status = tensor_expand(kept, payload->sizes, payload->rank, &results[0]);
    tensor_release(&kept);
    return status;
}

// LEFT times RIGHT, of which one is turned round in its last two dimensions.
static enum base_status turned_product(struct tensor left, struct tensor right, bool turn_left,
                                       struct tensor *result) {
    struct tensor turned;
    enum base_status status = tensor_transpose(turn_left ? left : right, -2, -1, &turned);
    if (status != BASE_OK)
        return status;
    const struct tensor a = turn_left ? turned : left, b = turn_left ? right : turned;
    status = tensor_rank(a) == 2 ? tensor_mm(a, b, result) : tensor_bmm(a, b, result);
    tensor_release(&turned);
    return status;
}

// That, or by columns: the product of the turned factors in the other order, turned back.
static enum base_status factor_gradient(struct tensor left, struct tensor right, bool turn_left,
                                        bool by_columns, struct tensor *result) {
    if (!by_columns)
        return turned_product(left, right, turn_left, result);
    struct tensor product; // (left' right)' = right' left, (left right')' = right left'
    enum base_status status = turned_product(right, left, turn_left, &product);
    if (status != BASE_OK)
        return status;
    status = tensor_transpose(product, -2, -1, result);
    tensor_release(&product);
    return status;
}

// A matrix whose columns lie one behind the other without gaps.
static bool is_by_columns(const struct tensor_geometry *geometry) {
    return geometry->rank == 2 && geometry->strides[0] == 1 &&
           geometry->strides[1] == geometry->sizes[0];
}

struct tape_product_payload tape__product_payload(const struct tensor_impl *a,
                                                  const struct tensor_impl *b) {
    return (struct tape_product_payload){
        {is_by_columns(&a->geometry), is_by_columns(&b->geometry)}};
}

// The gradients of the factors, which are operands FIRST and FIRST + 1.
static enum base_status factors_back(struct tape_node *node, struct tensor gradient, int first,
                                     bool left_first, struct tensor *results) {
    const struct tape_product_payload *payload = node->payload;
    struct tensor a = {0}, b = {0};
    enum base_status status = BASE_OK;
    if (tape_wants(node, first))
        status = tape_unpack(node, 1, &b);
    if (status == BASE_OK && tape_wants(node, first + 1))
        status = tape_unpack(node, 0, &a);
    for (int turn = 0; turn < 2 && status == BASE_OK; turn++) {
        const int factor = left_first ? turn : 1 - turn;
        if (tape_wants(node, first + factor))
            status =
                factor_gradient(factor == 0 ? gradient : a, factor == 0 ? b : gradient, factor == 1,
                                payload->is_by_columns[factor], &results[first + factor]);
    }
    tensor_release(&a);
    tensor_release(&b);
    return status;
}

// The second factor's gradient comes first, as in PyTorch (by the names of the factors there).
static enum base_status product_back(struct tape_node *node, struct tensor *gradients,
                                     struct tensor *results) {
    return gradients[0].impl == NULL ? BASE_OK
                                     : factors_back(node, gradients[0], 0, false, results);
}

// Operand 0 is added to each row.
static enum base_status addmm_back(struct tape_node *node, struct tensor *gradients,
                                   struct tensor *results) {
    if (gradients[0].impl == NULL)
        return BASE_OK;
    enum base_status status = factors_back(node, gradients[0], 1, true, results);
    if (status == BASE_OK && tape_wants(node, 0))
        status = tensor_sum_dims(gradients[0], (int64_t[]){0}, 1, false, &results[0]);
    return status;
}

static enum base_status cat_back(struct tape_node *node, struct tensor *gradients,
                                 struct tensor *results) {
    const struct tape_join_payload *payload = node->payload;
    if (gradients[0].impl == NULL)
        return BASE_OK;
    enum base_status status = BASE_OK;
    int64_t start = 0;
    for (int edge = 0; edge < node->edge_count && status == BASE_OK; edge++) {
        const int64_t length = payload->lengths[edge];
        if (length < 0)
            continue; // an empty that was left out
        if (tape_wants(node, edge))
            status = tensor_narrow(gradients[0], payload->dim, start, length, &results[edge]);
        start += length;
    }
    return status;
}

static enum base_status stack_back(struct tape_node *node, struct tensor *gradients,
                                   struct tensor *results) {
    const struct tape_join_payload *payload = node->payload;
    if (gradients[0].impl == NULL)
        return BASE_OK;
    enum base_status status = BASE_OK;
    for (int edge = 0; edge < node->edge_count && status == BASE_OK; edge++)
        if (tape_wants(node, edge))
            status = tensor_select(gradients[0], payload->dim, edge, &results[edge]);
    return status;
}

static enum base_status index_back(struct tape_node *node, struct tensor *gradients,
                                   struct tensor *results) {
    const struct tape_sum_payload *payload = node->payload;
    const struct tape_metadata *like = &node->outputs[0];
    if (gradients[0].impl == NULL || !tape_wants(node, 0))
        return BASE_OK;
    struct tensor index;
    enum base_status status = tape_unpack(node, 1, &index);
    if (status != BASE_OK)
        return status;
    status = tensor_zeros(&like->place, like->type, payload->sizes, payload->rank, &results[0]);
    if (status == BASE_OK)
        status = tensor_index_put_(results[0], index, tensor_operand_tensor(gradients[0]), true);
    tensor_release(&index);
    return status;
}

static enum base_status index_put_back(struct tape_node *node, struct tensor *gradients,
                                       struct tensor *results) {
    const struct tape_sum_payload *payload = node->payload;
    if (gradients[0].impl == NULL)
        return BASE_OK;
    struct tensor index;
    enum base_status status = tape_unpack(node, 2, &index);
    if (status != BASE_OK)
        return status;
    if (tape_wants(node, 0) && payload->is_kept) { // added to, not overwritten
        status = pass(gradients[0], &results[0]);
    } else if (tape_wants(node, 0)) {
        status = tensor_clone(gradients[0], TENSOR_PRESERVE, &results[0]);
        if (status == BASE_OK)
            status = tensor_index_put_(results[0], index, tensor_operand_integer(0), false);
    }
    if (status == BASE_OK && tape_wants(node, 1))
        status = tensor_index(gradients[0], index, &results[1]);
    tensor_release(&index);
    return status;
}

static enum base_status no_back(struct tape_node *node, struct tensor *gradients,
                                struct tensor *results) {
    (void)node;
    (void)gradients;
    (void)results;
    return tensor__error("derivative for aten::set_ is not implemented");
}

#define FORMULA(variable, text, function)                                                          \
    const struct tape_formula variable = {.name = text, .apply = function}

FORMULA(tape_add, "AddBackward0", add_back);
FORMULA(tape_sub, "SubBackward0", sub_back);
FORMULA(tape_mul, "MulBackward0", mul_back);
FORMULA(tape_div, "DivBackward0", div_back);
FORMULA(tape_neg, "NegBackward0", neg_back);
FORMULA(tape_relu, "ReluBackward0", relu_back);
FORMULA(tape_sqrt, "SqrtBackward0", sqrt_back);
FORMULA(tape_clone, "CloneBackward0", copy_back);
FORMULA(tape_to_copy, "ToCopyBackward0", copy_back);
FORMULA(tape_copy, "torch::autograd::CopyBackwards", overwrite_back);
FORMULA(tape_fill, "FillBackward2", zeros_back);
FORMULA(tape_fill_tensor, "FillBackward3", overwrite_back); // the engine adds it up to one element
FORMULA(tape_zero, "ZeroBackward0", zeros_back);
FORMULA(tape_sum, "SumBackward0", sum_back);
FORMULA(tape_sum_dims, "SumBackward1", sum_back);
FORMULA(tape_mm, "MmBackward0", product_back);
FORMULA(tape_bmm, "BmmBackward0", product_back);
FORMULA(tape_addmm, "AddmmBackward0", addmm_back);
FORMULA(tape_cat, "CatBackward0", cat_back);
FORMULA(tape_stack, "StackBackward0", stack_back);
FORMULA(tape_index, "IndexBackward0", index_back);
FORMULA(tape_index_put, "IndexPutBackward0", index_put_back);
FORMULA(tape_not_implemented, "NotImplemented", no_back);
