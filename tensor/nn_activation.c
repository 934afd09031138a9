// Activations and other functions of one number. See nn.h.
#include "tensor/formulas.h"
#include "tensor/iterate.h"
#include "tensor/nn.h"
#include "tensor/operator.h"

struct function {
    enum tensor_pointwise operation;
    const struct tape_formula *formula;
    const char *name, *kernel; // kernel: PyTorch's, of one that takes floating types only
    bool saves_result;         // for the gradient; else the input
};

static const struct function gelu = {TENSOR_GELU_ERF, &tape_gelu, "gelu", "GeluCUDAKernelImpl",
                                     false},
                             gelu_tanh = {TENSOR_GELU, &tape_gelu_tanh, "gelu",
                                          "GeluCUDAKernelImpl", false},
                             silu = {TENSOR_SILU, &tape_silu, "silu", "silu_cuda", false},
                             sigmoid = {TENSOR_SIGMOID, &tape_sigmoid, "sigmoid", NULL, true},
                             hyperbolic = {TENSOR_TANH, &tape_tanh, "tanh", NULL, true},
                             exponential = {TENSOR_EXP, &tape_exp, "exp", NULL, true},
                             logarithm = {TENSOR_LOG, &tape_log, "log", NULL, false};

static enum base_status apply(const struct function *function, struct tensor self,
                              struct tensor *result) {
    struct tape_node *node = NULL;
    struct tensor made = {0};
    enum base_status status = tape_begin(function->formula, &self, 1, 1, 0, &node);
    if (status == BASE_OK && function->kernel != NULL)
        status = tensor__check_floating(function->kernel, self.impl);
    const struct tensor_iteration iteration = {
        .operation = function->operation, .result_type = TENSOR_RESULT_FLOATING, .a = self.impl};
    if (status == BASE_OK && node != NULL && !function->saves_result)
        status = tape_save(node, 0, self.impl);
    if (status == BASE_OK)
        status = tensor__iterate(&iteration, &made.impl);
    if (status == BASE_OK && node != NULL && function->saves_result)
        status = tape_save_result(node, 0, made.impl);
    return tensor__explain(tape_end(status, node, &made, result), function->name, &self, 1);
}

enum base_status tensor_gelu(struct tensor self, struct tensor *result) {
    return apply(&gelu, self, result);
}
enum base_status tensor_gelu_tanh(struct tensor self, struct tensor *result) {
    return apply(&gelu_tanh, self, result);
}
enum base_status tensor_silu(struct tensor self, struct tensor *result) {
    return apply(&silu, self, result);
}
enum base_status tensor_sigmoid(struct tensor self, struct tensor *result) {
    return apply(&sigmoid, self, result);
}
enum base_status tensor_tanh(struct tensor self, struct tensor *result) {
    return apply(&hyperbolic, self, result);
}
enum base_status tensor_exp(struct tensor self, struct tensor *result) {
    return apply(&exponential, self, result);
}
enum base_status tensor_log(struct tensor self, struct tensor *result) {
    return apply(&logarithm, self, result);
}
