// The autograd part of an impl: gradient, gradient function, view relation; and the rules that tie
// writes to graphs.
//
// A view does not simply keep its gradient function: a write through the base or another view makes
// it stale, which shows in the version. Asking for the function of a stale view makes a new one, as
// as_strided of the base. Some views cannot be followed so (made without gradients, or one of many
// outputs of a function): for them asking is refused.
#ifndef TIDEMARK_TENSOR_AUTOGRAD_H
#define TIDEMARK_TENSOR_AUTOGRAD_H

#include "tensor/impl.h"
#include "tensor/tape.h"

// If there is none.
static inline void tensor__autograd_make(struct tensor_impl *impl) {
    if (impl->autograd != NULL)
        return;
    impl->own_autograd = (struct tensor_autograd){0};
    impl->autograd = &impl->own_autograd;
}

bool tensor__requires_grad(const struct tensor_impl *impl);
// Borrowed, NULL for a leaf. RuntimeError for a stale view that cannot be followed.
enum base_status tensor__gradient_node(struct tensor_impl *impl,
                                       struct tape_node **node) BASE_MUST_USE;
// Where a gradient of IMPL goes: its function, or for a leaf its accumulator. Counted.
enum base_status tensor__gradient_edge(struct tensor_impl *impl,
                                       struct tape_edge *edge) BASE_MUST_USE;

// Makes memory whose geometry is worked out (tensor__impl_new) a view of SOURCE, or of what SOURCE
// is a view of. MULTIPLE: one output of many.
void tensor__impl_become_view(struct tensor_impl *view, struct tensor_impl *source, bool multiple);

// Before a write in place: refused for leaves that require grad and views that cannot be followed,
// if ANY of the operands requires grad and gradients are on.
enum base_status tensor__check_in_place(struct tensor_impl *impl, bool any) BASE_MUST_USE;

// A write in place, in two steps around it. `begin` makes the node (NULL if no gradient is asked
// for) with INPUTS[0] being the tensor itself; `end` counts the write and makes the node the
// history: of the tensor, or of its base. Between them only the write itself may fail.
struct tensor_write {
    struct tape_node *node;  // of the operator: for tape_save
    struct tape_node *slice; // what a view's base gets
};
// IS_METADATA: an in-place view, whose node becomes the view's own history.
enum base_status tensor__write_begin(const struct tape_formula *formula,
                                     const struct tensor *inputs, int input_count,
                                     size_t payload_size, bool is_metadata,
                                     struct tensor_write *write) BASE_MUST_USE;
void tensor__write_end(struct tensor self, struct tensor_write *write);
void tensor__write_abandon(struct tensor_write *write);

#endif
