// See autograd.h, and tensor.h for what programs call.
#include "tensor/autograd.h"

#include "tensor/error.h"
#include "tensor/formulas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tensor__requires_grad(const struct tensor_impl *impl) {
    const struct tensor_autograd *autograd = impl->autograd;
    if (autograd == NULL)
        return false;
    return autograd->requires_grad || autograd->node != NULL ||
           (autograd->base != NULL && tensor__requires_grad(autograd->base));
}

//------------------------------------------------------------------------------------------------
// Views

// INDIRECT: it is the base or another view that was written, not the view itself.
static enum base_status creation_check(const struct tensor_autograd *autograd, bool indirect) {
    if (autograd->creation == TENSOR_CREATION_DEFAULT)
        return BASE_OK;
    const char *object = indirect ? "its base or another view of its base has been" : "is being";
    const bool is_inference = autograd->creation == TENSOR_CREATION_INFERENCE_MODE,
               is_multiple = autograd->creation == TENSOR_CREATION_MULTI_OUTPUT_NODE;
    char origin[160] = "", name[TAPE_NAME_SIZE];
    if (autograd->node != NULL)
        snprintf(origin, sizeof origin, "Output %d of %s is a view", autograd->output,
                 tape_name(autograd->node->formula, name));
    if (is_multiple && autograd->node != NULL)
        return tensor__error("%s and %s modified inplace. This view is the output of a function "
                             "that returns multiple "
                             "views. Such functions do not allow the output views to be modified "
                             "inplace. You should "
                             "replace the inplace operation by an out-of-place one.",
                             origin, object);
    const char *mode = is_inference ? "inference mode" : "no_grad mode";
    const char *block = is_inference ? "inference_mode" : "no_grad";
    char start[256];
    if (autograd->node != NULL)
        snprintf(start, sizeof start, "%s of a view which was created in", origin);
    else
        snprintf(start, sizeof start, "A view was created in");
    const char *where = is_inference ? "in normal mode" : "with grad mode enabled";
    if (is_multiple)
        return tensor__error(
            "%s %s and %s modified inplace %s. This view is the output of a function that returns "
            "multiple views. Such functions do not allow the output views to be modified inplace. "
            "You "
            "should replace the inplace operation by an out-of-place one.",
            start, mode, object, where);
    return tensor__error(
        "%s %s and %s modified inplace %s. Given that this use case is ambiguous and error-prone, "
        "it "
        "is forbidden. You can clarify your code by moving both the view and the inplace either "
        "both "
        "inside the %s block (if you don't want the inplace to be tracked) or both outside (if you "
        "want the inplace to be tracked).",
        start, mode, object, where, block);
}

static bool is_stale(const struct tensor_impl *view) {
    const struct tensor_autograd *autograd = view->autograd;
    if (autograd->node == NULL && !tensor__requires_grad(autograd->base))
        return false;
    return view->version != NULL && autograd->node_version != tensor__version_get(view->version);
}

enum base_status tensor__gradient_node(struct tensor_impl *impl, struct tape_node **node) {
    struct tensor_autograd *autograd = impl->autograd;
    *node = NULL;
    if (autograd == NULL)
        return BASE_OK;
    if (autograd->base != NULL && is_stale(impl)) {
        enum base_status status = creation_check(autograd, true);
        struct tape_node *fresh = NULL;
        if (status == BASE_OK)
            status = tape__as_strided_of_base(impl, &fresh);
        if (status != BASE_OK)
            return status;
        tape_finish(impl, fresh, 0);
        tape_node_drop(fresh);
    }
    *node = autograd->node;
    return BASE_OK;
}

enum base_status tensor__gradient_edge(struct tensor_impl *impl, struct tape_edge *edge) {
    *edge = (struct tape_edge){0};
    struct tape_node *node;
    enum base_status status = tensor__gradient_node(impl, &node);
    if (status != BASE_OK || impl->autograd == NULL)
        return status;
    if (node != NULL) {
        *edge = (struct tape_edge){tape_node_retain(node), impl->autograd->output};
        return BASE_OK;
    }
    struct tensor_autograd *autograd = impl->autograd;
    if (!autograd->requires_grad)
        return BASE_OK;
    if (autograd->accumulator != NULL && tensor_count_lock(&autograd->accumulator->count)) {
        edge->node = autograd->accumulator;
        return BASE_OK;
    }
    status = tape__accumulator_create(impl, &edge->node);
    if (status != BASE_OK)
        return status;
    if (autograd->accumulator != NULL)
        tape_node_drop_weak(autograd->accumulator);
    tensor_count_up_weak(&edge->node->count);
    autograd->accumulator = edge->node;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// Writes

enum base_status tensor__check_in_place(struct tensor_impl *impl, bool any) {
    if (!any || !tensor_grad_mode())
        return BASE_OK;
    const struct tensor_autograd *autograd = impl->autograd;
    const bool requires_grad = tensor__requires_grad(impl);
    if (autograd != NULL && autograd->base != NULL) {
        const enum base_status status = creation_check(autograd, false);
        if (status != BASE_OK)
            return status;
        const struct tensor_autograd *base = autograd->base->autograd;
        if (requires_grad && (base == NULL || base->node == NULL))
            return tensor__error("a view of a leaf Variable that requires grad is being used in an "
                                 "in-place operation.");
    }
    if (requires_grad && autograd->node == NULL)
        return tensor__error(
            "a leaf Variable that requires grad is being used in an in-place operation.");
    return BASE_OK;
}

void tensor__write_abandon(struct tensor_write *write) {
    tape_node_drop(write->node);
    tape_node_drop(write->slice);
    *write = (struct tensor_write){0};
}

enum base_status tensor__write_begin(const struct tape_formula *formula,
                                     const struct tensor *inputs, int input_count,
                                     size_t payload_size, bool is_metadata,
                                     struct tensor_write *write) {
    *write = (struct tensor_write){0};
    bool any = false;
    for (int index = 0; index < input_count; index++)
        any |= inputs[index].impl != NULL && tensor__requires_grad(inputs[index].impl);
    struct tensor_impl *self = inputs[0].impl;
    enum base_status status = tensor__check_in_place(self, any);
    if (status == BASE_OK)
        status = tape_begin(formula, inputs, input_count, 1, payload_size, &write->node);
    const struct tensor_autograd *autograd = self->autograd;
    if (status == BASE_OK && write->node != NULL && !is_metadata && autograd != NULL &&
        autograd->base != NULL) {
        tensor__autograd_make(autograd->base);
        status = tape__copy_slices_create(self, write->node, &write->slice);
    }
    if (status != BASE_OK)
        tensor__write_abandon(write);
    return status;
}

void tensor__write_end(struct tensor self, struct tensor_write *write) {
    tensor__impl_bump(self.impl);
    if (write->node != NULL) {
        if (write->slice != NULL) {
            tape_metadata_of(self.impl, &write->node->outputs[0]);
            tape_finish(self.impl->autograd->base, write->slice, 0);
            // The view's own function follows from the base's. Where there is no memory for it now
            // it is made when it is asked for.
            struct tape_node *node;
            const enum base_status status = tensor__gradient_node(self.impl, &node);
            (void)status;
        } else {
            tape_finish(self.impl, write->node, 0);
        }
    }
    tensor__write_abandon(write);
}

//------------------------------------------------------------------------------------------------
// What programs call

bool tensor_is_view(struct tensor self) { return tensor_base(self).impl != NULL; }

struct tensor tensor_base(struct tensor self) {
    return (struct tensor){self.impl->autograd == NULL ? NULL : self.impl->autograd->base};
}

const char *tensor_creation(struct tensor self) {
    static const char *const names[] = {"default", "multi_output_node", "no_grad_mode",
                                        "inference_mode"};
    return tensor_is_view(self) ? names[self.impl->autograd->creation] : NULL;
}

bool tensor_requires_grad(struct tensor self) { return tensor__requires_grad(self.impl); }

enum base_status tensor_is_leaf(struct tensor self, bool *leaf) {
    struct tape_node *node;
    const enum base_status status = tensor__gradient_node(self.impl, &node);
    if (status == BASE_OK)
        *leaf = node == NULL;
    return status;
}

enum base_status tensor_gradient_function(struct tensor self, const char **name) {
    struct tape_node *node;
    const enum base_status status = tensor__gradient_node(self.impl, &node);
    if (status == BASE_OK)
        *name = node == NULL ? NULL : node->formula->name;
    return status;
}

enum base_status tensor_set_requires_grad(struct tensor self, bool value) {
    const bool is_leaf = self.impl->autograd == NULL || self.impl->autograd->node == NULL;
    if (!is_leaf && !value)
        return tensor__error(
            "you can only change requires_grad flags of leaf variables. If you want "
            "to use a computed variable in a subgraph that doesn't require "
            "differentiation use var_no_grad = var.detach().");
    if (value && !tensor_type_is_floating(self.impl->type))
        return tensor__error("only Tensors of floating point dtype can require gradients");
    if (value && self.impl->version == NULL && !tensor_inference_mode())
        return tensor__error(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
    if (!value && self.impl->autograd == NULL)
        return BASE_OK;
    tensor__autograd_make(self.impl);
    self.impl->autograd->requires_grad = value;
    return BASE_OK;
}

enum base_status tensor_detach_(struct tensor self) {
    if (tensor_is_view(self))
        return tensor__error(
            "Can't detach views in-place. Use detach() instead. If you are using "
            "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
            "True, "
            "gradients are views of DDP buckets, and hence detach_() cannot be called on these "
            "gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
            "torch/optim/optimizer.py as the solution.");
    struct tensor_autograd *autograd = self.impl->autograd;
    if (autograd == NULL)
        return BASE_OK;
    autograd->requires_grad = false;
    struct tape_node *node = autograd->node;
    autograd->node = NULL;
    autograd->output = 0;
    tape_node_drop(node);
    return BASE_OK;
}

struct tensor tensor_grad(struct tensor self) {
    return (struct tensor){self.impl->autograd == NULL ? NULL : self.impl->autograd->gradient};
}

enum base_status tensor_set_grad(struct tensor self, struct tensor gradient) {
    if (gradient.impl != NULL) {
        const struct tensor_geometry *own = &self.impl->geometry, *other = &gradient.impl->geometry;
        if (gradient.impl == self.impl)
            return tensor__error("can't assign Variable as its own grad");
        char native[32];
        if (gradient.impl->type != self.impl->type) {
            snprintf(native, sizeof native, "%s", tensor_type_native_name(gradient.impl->type));
            return tensor__error(
                "attempting to assign a gradient with dtype '%s' to a tensor with grad_dtype '%s'. "
                "The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). "
                "You can set the tensor's grad_dtype attribute with a specific dtype, or None to "
                "allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor "
                "and "
                "its gradient may break downstream systems that assume they match.",
                native, tensor_type_scalar_name(self.impl->type));
        }
        char have[TENSOR_SIZES_TEXT_SIZE], want[TENSOR_SIZES_TEXT_SIZE];
        if (!tensor_geometry_same_shape(own, other))
            return tensor__error(
                "attempting to assign a gradient of size '%s' to a tensor of size "
                "'%s'. Please ensure that the gradient and the tensor are the same "
                "size",
                tensor_sizes_text(other->sizes, other->rank, have),
                tensor_sizes_text(own->sizes, own->rank, want));
        tensor__autograd_make(self.impl);
    }
    if (self.impl->autograd == NULL)
        return BASE_OK;
    struct tensor_impl *old = self.impl->autograd->gradient;
    self.impl->autograd->gradient = tensor__impl_retain(gradient.impl);
    tensor__impl_drop(old);
    return BASE_OK;
}

enum base_status tensor_retain_grad(struct tensor self) {
    if (!tensor__requires_grad(self.impl))
        return tensor__error("can't retain_grad on Tensor that has requires_grad=False");
    struct tape_node *node;
    const enum base_status status = tensor__gradient_node(self.impl, &node);
    if (status != BASE_OK || node == NULL || self.impl->autograd->retains_grad)
        return status;
    struct tape_retention *retention = malloc(sizeof *retention);
    if (retention == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no host memory to retain a gradient");
    *retention = (struct tape_retention){.next = node->retentions,
                                         .tensor = tensor_weak(self),
                                         .output = self.impl->autograd->output};
    node->retentions = retention;
    self.impl->autograd->retains_grad = true;
    return BASE_OK;
}

enum base_status tensor_backward(struct tensor self, struct tensor gradient, bool retain) {
    const struct tensor_geometry *own = &self.impl->geometry;
    if (gradient.impl != NULL && !tensor_geometry_same_shape(own, &gradient.impl->geometry)) {
        char have[TENSOR_SIZES_TEXT_SIZE], want[TENSOR_SIZES_TEXT_SIZE];
        return tensor__error(
            "Mismatch in shape: grad_output[0] has a shape of torch.Size(%s) and output[0] has a "
            "shape of torch.Size(%s).",
            tensor_sizes_text(gradient.impl->geometry.sizes, gradient.impl->geometry.rank, have),
            tensor_sizes_text(own->sizes, own->rank, want));
    }
    if (!tensor__requires_grad(self.impl))
        return tensor__error(
            "element 0 of tensors does not require grad and does not have a grad_fn");
    if (gradient.impl == NULL && own->numel != 1)
        return tensor__error("grad can be implicitly created only for scalar outputs");
    // What it starts with lives until all has run, as in PyTorch, where the caller holds it.
    struct tensor given = gradient.impl != NULL ? tensor_retain(gradient) : gradient, first = {0};
    const enum base_status status = tape_backward(self.impl, &given, retain, &first);
    tensor_release(&first);
    return status;
}
