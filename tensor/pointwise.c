// Operators element by element: out of place, in place, into a given output. See tensor.h.
#include "tensor/autograd.h"
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/mode.h"
#include "tensor/operator.h"

struct binary {
    enum tensor_pointwise operation;
    enum tensor_result_type result_type;
    const struct tape_formula *formula; // NULL: no gradient
    const char *name;
    bool needs_self, needs_other; // what the gradients of the other side, or of both, are made of
};

static const struct binary add = {TENSOR_ADD, TENSOR_RESULT_COMMON, &tape_add, "add", false, false},
                           sub = {TENSOR_SUB, TENSOR_RESULT_COMMON, &tape_sub, "sub", false, false},
                           mul = {TENSOR_MUL, TENSOR_RESULT_COMMON, &tape_mul, "mul", true, true},
                           divide = {TENSOR_DIV, TENSOR_RESULT_FLOATING, &tape_div, "div", true,
                                     true},
                           equal = {TENSOR_EQ, TENSOR_RESULT_BOOL, NULL, "eq", false, false};

static enum base_status types_check(const struct binary *binary, struct tensor self,
                                    struct tensor_operand_value other) {
    if (binary->operation != TENSOR_SUB)
        return BASE_OK;
    const bool self_is_bool = self.impl->type == TENSOR_BOOL;
    const bool other_is_bool = other.tensor.impl != NULL ? other.tensor.impl->type == TENSOR_BOOL
                                                         : other.number.kind == TENSOR_SCALAR_BOOL;
    if (self_is_bool && other_is_bool)
        return tensor__error_not_implemented(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead.");
    if (self_is_bool || other_is_bool)
        return tensor__error_not_implemented(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
            "to "
            "invert a mask, use the `~` or `logical_not()` operator instead.");
    return BASE_OK;
}

// What the gradients will need. In place the old value of SELF is kept as a copy.
static enum base_status binary_save(const struct binary *binary, struct tape_node *node,
                                    struct tensor self, struct tensor_operand_value other,
                                    struct tensor_scalar alpha, bool is_in_place) {
    if (node == NULL)
        return BASE_OK;
    struct tape_binary_payload *payload = node->payload;
    *payload = (struct tape_binary_payload){
        .other = other.number, .alpha = alpha, .is_number = other.tensor.impl == NULL};
    enum base_status status = BASE_OK;
    const bool divides = binary->operation == TENSOR_DIV;
    if (binary->needs_other && !payload->is_number &&
        (tape_wants(node, 0) || (divides && tape_wants(node, 1))))
        status = tape_save(node, 1, other.tensor.impl);
    if (status != BASE_OK || !binary->needs_self || !tape_wants(node, 1))
        return status;
    if (!is_in_place)
        return tape_save(node, 0, self.impl);
    struct tensor copy;
    const bool was_off = tensor__gradients_off();
    status = tensor_clone(self, TENSOR_PRESERVE, &copy);
    tensor__gradients_restore(was_off);
    if (status != BASE_OK)
        return status;
    status = tape_save(node, 0, copy.impl);
    tensor_release(&copy);
    return status;
}

static struct tensor_iteration iteration_of(const struct binary *binary, struct tensor self,
                                            struct tensor_operand_value other,
                                            struct tensor_scalar alpha) {
    return (struct tensor_iteration){.operation = binary->operation,
                                     .result_type = binary->result_type,
                                     .a = self.impl,
                                     .b = other.tensor.impl,
                                     .has_scalar = other.tensor.impl == NULL,
                                     .scalar = other.number,
                                     .has_alpha = binary->operation == TENSOR_ADD ||
                                                  binary->operation == TENSOR_SUB,
                                     .alpha = alpha};
}

static enum base_status binary_run(const struct binary *binary, struct tensor self,
                                   struct tensor_operand_value other, struct tensor_scalar alpha,
                                   struct tensor *result) {
    struct tape_node *node = NULL;
    struct tensor made = {0};
    const struct tensor inputs[] = {self, other.tensor};
    enum base_status status = BASE_OK;
    if (binary->formula != NULL)
        status =
            tape_begin(binary->formula, inputs, 2, 1, sizeof(struct tape_binary_payload), &node);
    if (status == BASE_OK)
        status = binary_save(binary, node, self, other, alpha, false);
    if (status == BASE_OK)
        status = types_check(binary, self, other);
    const struct tensor_iteration iteration = iteration_of(binary, self, other, alpha);
    if (status == BASE_OK)
        status = tensor__iterate(&iteration, &made.impl);
    return tensor__explain(tape_end(status, node, &made, result), binary->name, inputs, 2);
}

static enum base_status binary_in_place(const struct binary *binary, struct tensor self,
                                        struct tensor_operand_value other,
                                        struct tensor_scalar alpha) {
    struct tensor_write write;
    struct tensor_impl *result;
    enum base_status status =
        tensor__write_begin(binary->formula, (struct tensor[]){self, other.tensor}, 2,
                            sizeof(struct tape_binary_payload), false, &write);
    if (status != BASE_OK)
        return status;
    status = binary_save(binary, write.node, self, other, alpha, true);
    if (status == BASE_OK)
        status = types_check(binary, self, other);
    struct tensor_iteration iteration = iteration_of(binary, self, other, alpha);
    iteration.out = self.impl;
    iteration.is_in_place = true;
    if (status == BASE_OK)
        status = tensor__iterate(&iteration, &result);
    if (status == BASE_OK)
        tensor__write_end(self, &write);
    else
        tensor__write_abandon(&write);
    return status;
}

enum base_status tensor__check_out(const char *name, struct tensor out, const struct tensor *inputs,
                                   int count) {
    bool any = tensor__requires_grad(out.impl);
    for (int index = 0; index < count; index++)
        any |= inputs[index].impl != NULL && tensor__requires_grad(inputs[index].impl);
    if (!any || !tensor_grad_mode())
        return BASE_OK;
    return tensor__error("%s(): functions with out=... arguments don't support automatic "
                         "differentiation, but one of the arguments requires grad.",
                         name);
}

static enum base_status binary_out(const struct binary *binary, struct tensor out,
                                   struct tensor self, struct tensor_operand_value other) {
    struct tensor_impl *result;
    enum base_status status =
        tensor__check_out(binary->name, out, (struct tensor[]){self, other.tensor}, 2);
    if (status == BASE_OK)
        status = types_check(binary, self, other);
    struct tensor_iteration iteration = iteration_of(binary, self, other, tensor_integer(1));
    iteration.out = out.impl;
    if (status == BASE_OK)
        status = tensor__iterate(&iteration, &result);
    if (status == BASE_OK)
        tensor__impl_bump(out.impl);
    return status;
}

#define ONE tensor_integer(1)

enum base_status tensor_add(struct tensor self, struct tensor_operand_value other,
                            struct tensor_scalar alpha, struct tensor *result) {
    return binary_run(&add, self, other, alpha, result);
}
enum base_status tensor_sub(struct tensor self, struct tensor_operand_value other,
                            struct tensor_scalar alpha, struct tensor *result) {
    return binary_run(&sub, self, other, alpha, result);
}
enum base_status tensor_mul(struct tensor self, struct tensor_operand_value other,
                            struct tensor *result) {
    return binary_run(&mul, self, other, ONE, result);
}
enum base_status tensor_div(struct tensor self, struct tensor_operand_value other,
                            struct tensor *result) {
    return binary_run(&divide, self, other, ONE, result);
}
enum base_status tensor_eq(struct tensor self, struct tensor_operand_value other,
                           struct tensor *result) {
    return binary_run(&equal, self, other, ONE, result);
}

enum base_status tensor_add_(struct tensor self, struct tensor_operand_value other,
                             struct tensor_scalar alpha) {
    return binary_in_place(&add, self, other, alpha);
}
enum base_status tensor_sub_(struct tensor self, struct tensor_operand_value other,
                             struct tensor_scalar alpha) {
    return binary_in_place(&sub, self, other, alpha);
}
enum base_status tensor_mul_(struct tensor self, struct tensor_operand_value other) {
    return binary_in_place(&mul, self, other, ONE);
}
enum base_status tensor_div_(struct tensor self, struct tensor_operand_value other) {
    return binary_in_place(&divide, self, other, ONE);
}

enum base_status tensor_add_out(struct tensor out, struct tensor self,
                                struct tensor_operand_value other) {
    return binary_out(&add, out, self, other);
}
enum base_status tensor_mul_out(struct tensor out, struct tensor self,
                                struct tensor_operand_value other) {
    return binary_out(&mul, out, self, other);
}

//------------------------------------------------------------------------------------------------
// Of one tensor

struct unary {
    enum tensor_pointwise operation;
    enum tensor_result_type result_type;
    const struct tape_formula *formula;
    const char *name;
    bool saves_result;
};

static const struct unary negate = {TENSOR_NEG, TENSOR_RESULT_COMMON, &tape_neg, "neg", false},
                          rectify = {TENSOR_RELU, TENSOR_RESULT_COMMON, &tape_relu, "relu", true},
                          root = {TENSOR_SQRT, TENSOR_RESULT_FLOATING, &tape_sqrt, "sqrt", true};

static enum base_status unary_check(const struct unary *unary, struct tensor self) {
    if (self.impl->type != TENSOR_BOOL || unary->operation == TENSOR_SQRT)
        return BASE_OK;
    if (unary->operation == TENSOR_RELU)
        return tensor__error("Boolean inputs not supported for relu");
    return tensor__error_not_implemented("Negation, the `-` operator, on a bool tensor is not "
                                         "supported. If you are trying to invert a "
                                         "mask, use the `~` or `logical_not()` operator instead.");
}

static enum base_status unary_run(const struct unary *unary, struct tensor self,
                                  struct tensor *result) {
    struct tape_node *node = NULL;
    struct tensor made = {0};
    enum base_status status = tape_begin(unary->formula, &self, 1, 1, 0, &node);
    if (status == BASE_OK)
        status = unary_check(unary, self);
    const struct tensor_iteration iteration = {
        .operation = unary->operation, .result_type = unary->result_type, .a = self.impl};
    if (status == BASE_OK)
        status = tensor__iterate(&iteration, &made.impl);
    if (status == BASE_OK && node != NULL && unary->saves_result)
        status = tape_save_result(node, 1, made.impl);
    return tensor__explain(tape_end(status, node, &made, result), unary->name, &self, 1);
}

static enum base_status unary_in_place(const struct unary *unary, struct tensor self) {
    struct tensor_write write;
    struct tensor_impl *result;
    enum base_status status = tensor__write_begin(unary->formula, &self, 1, 0, false, &write);
    if (status != BASE_OK)
        return status;
    status = unary_check(unary, self);
    struct tape_node *node = unary->saves_result ? tape_node_retain(write.node) : NULL;
    if (status == BASE_OK && node != NULL)
        status = tape_save_result(node, 1, self.impl);
    const struct tensor_iteration iteration = {.operation = unary->operation,
                                               .result_type = unary->result_type,
                                               .out = self.impl,
                                               .is_in_place = true,
                                               .a = self.impl};
    if (status == BASE_OK)
        status = tensor__iterate(&iteration, &result);
    if (status == BASE_OK) {
        tensor__write_end(self, &write);
        if (node != NULL)
            tape_saved_renew(node, 1);
    } else {
        tensor__write_abandon(&write);
    }
    tape_node_drop(node);
    return status;
}

enum base_status tensor_neg(struct tensor self, struct tensor *result) {
    return unary_run(&negate, self, result);
}
enum base_status tensor_relu(struct tensor self, struct tensor *result) {
    return unary_run(&rectify, self, result);
}
enum base_status tensor_sqrt(struct tensor self, struct tensor *result) {
    return unary_run(&root, self, result);
}
enum base_status tensor_neg_(struct tensor self) { return unary_in_place(&negate, self); }
enum base_status tensor_relu_(struct tensor self) { return unary_in_place(&rectify, self); }
enum base_status tensor_sqrt_(struct tensor self) { return unary_in_place(&root, self); }
