// Activation checkpointing: of a stretch of operators only the input is kept, and backward runs the
// stretch again to have the rest. See tensor.h.
#include "tensor/autograd.h"
#include "tensor/formulas.h"
#include "tensor/mode.h"

struct checkpoint_payload {
    tensor_function *function;
    void *context;
};

// The stretch, on a leaf in the input's place, as a graph of its own that runs at once: gradients
// reach the other leaves (weights) from within it, and the input's is handed on.
static enum base_status checkpoint_back(struct tape_node *node, struct tensor *gradients,
                                        struct tensor *results) {
    const struct checkpoint_payload *payload = node->payload;
    struct tensor input, leaf = {0}, result = {0};
    if (gradients[0].impl == NULL)
        return BASE_OK;
    enum base_status status = tape_unpack(node, 0, &input);
    if (status != BASE_OK)
        return status;
    status = tensor_detach(input, &leaf);
    tensor_release(&input);
    if (status == BASE_OK)
        status = tensor_set_requires_grad(leaf, true);
    tensor_set_grad_mode(true);
    if (status == BASE_OK)
        status = payload->function(payload->context, leaf, &result);
    tensor_set_grad_mode(false);
    if (status == BASE_OK)
        status = tape_backward(result.impl, &gradients[0], false, NULL);
    if (status == BASE_OK && tape_wants(node, 0))
        results[0] = tensor_retain(tensor_grad(leaf));
    tensor_release(&result);
    tensor_release(&leaf);
    return status;
}

static const struct tape_formula checkpoint = {
    .name = "torch::autograd::CheckpointFunctionBackward", .apply = checkpoint_back};

enum base_status tensor_checkpoint(tensor_function *function, void *context, struct tensor input,
                                   struct tensor *result) {
    struct tape_node *node = NULL;
    enum base_status status =
        tape_begin(&checkpoint, &input, 1, 1, sizeof(struct checkpoint_payload), &node);
    if (status != BASE_OK)
        return status;
    if (node == NULL) // nothing hangs on the input: there is nothing to keep either
        return function(context, input, result);
    *(struct checkpoint_payload *)node->payload = (struct checkpoint_payload){function, context};
    struct tensor inside = {0}, made = {0};
    status = tape_save(node, 0, input.impl);
    const bool was_off = tensor__gradients_off();
    if (status == BASE_OK)
        status = function(context, input, &inside);
    tensor__gradients_restore(was_off);
    // Whatever it is of, the input itself even: an impl of its own, whose history is this node.
    if (status == BASE_OK)
        status = tensor_detach(inside, &made);
    tensor_release(&inside);
    return tape_end(status, node, &made, result);
}
