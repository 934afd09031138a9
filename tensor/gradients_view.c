// Gradients of views, and of writes through them. See formulas.h.
#include "tensor/autograd.h"
#include "tensor/error.h"
#include "tensor/formulas.h"
#include "tensor/iterate.h"

#include <string.h>

static const struct tape_view_payload *payload_of(const struct tape_node *node) {
    return node->payload;
}

void tape__view_payload_set(struct tape_node *node, const struct tensor_impl *input,
                            const struct tensor_view_call *calls, int count) {
    struct tape_view_payload *payload = node->payload;
    tensor_geometry_copy(&payload->input, &input->geometry);
    payload->item_size = tensor__item_size(input);
    payload->count = count;
    memcpy(payload->calls, calls, (size_t)count * sizeof *calls);
    if (count != 1)
        return;
    struct tensor_view_call *call = &payload->calls[0];
    const size_t bytes = (size_t)call->count * sizeof *call->list;
    if (call->list != NULL)
        call->list = memcpy(payload->list, call->list, bytes);
    if (call->strides != NULL)
        call->strides = memcpy(payload->strides, call->strides, bytes);
}

// Of what only gives the elements another shape.
static enum base_status shape_back(struct tape_node *node, struct tensor *gradients,
                                   struct tensor *results) {
    const struct tensor_geometry *input = &payload_of(node)->input;
    if (gradients[0].impl == NULL || !tape_wants(node, 0))
        return BASE_OK;
    return tensor_reshape(gradients[0], input->sizes, input->rank, &results[0]);
}

static enum base_status order_back(struct tape_node *node, struct tensor *gradients,
                                   struct tensor *results) {
    const struct tensor_view_call *call = &payload_of(node)->calls[0];
    if (gradients[0].impl == NULL || !tape_wants(node, 0))
        return BASE_OK;
    if (call->kind == TENSOR_VIEW_TRANSPOSE)
        return tensor_transpose(gradients[0], call->dim, call->dim1, &results[0]);
    int64_t inverse[TENSOR_RANK_MAX];
    for (int dim = 0; dim < call->count; dim++)
        inverse[call->list[dim] < 0 ? call->list[dim] + call->count : call->list[dim]] = dim;
    return tensor_permute(gradients[0], inverse, call->count, &results[0]);
}

static enum base_status expand_back(struct tape_node *node, struct tensor *gradients,
                                    struct tensor *results) {
    const struct tensor_geometry *input = &payload_of(node)->input;
    if (gradients[0].impl == NULL || !tape_wants(node, 0))
        return BASE_OK;
    return tape__sum_to(gradients[0], input->sizes, input->rank, &results[0]);
}

// Of views that leave elements out or show them several times: zeros, and each gradient added where
// its view lies in them.
static enum base_status place_back(struct tape_node *node, struct tensor *gradients,
                                   struct tensor *results) {
    const struct tape_view_payload *payload = payload_of(node);
    const struct tape_metadata *like = NULL;
    for (int output = 0; output < payload->count; output++)
        if (gradients[output].impl != NULL)
            like = &node->outputs[output];
    if (like == NULL || !tape_wants(node, 0))
        return BASE_OK;
    enum base_status status = tensor_zeros(&like->place, like->type, payload->input.sizes,
                                           payload->input.rank, &results[0]);
    for (int output = 0; output < payload->count && status == BASE_OK; output++) {
        struct tensor_geometry place;
        if (gradients[output].impl == NULL)
            continue;
        status = tensor_view_apply(&payload->calls[output], &results[0].impl->geometry, &place);
        if (status == BASE_OK)
            status = tensor__accumulate_elements(results[0].impl, &place, gradients[output].impl);
    }
    return status;
}

static void range_extend(const struct tensor_geometry *geometry, int64_t *low, int64_t *high) {
    if (geometry->numel == 0)
        return;
    int64_t first, last;
    tensor_geometry_range(geometry, &first, &last);
    if (first < *low)
        *low = first;
    if (last > *high)
        *high = last;
}

// Elements of MEMORY, one-dimensional, as GEOMETRY (which begins at LOW) sees them; a copy.
static enum base_status memory_read(struct tensor memory, const struct tensor_geometry *geometry,
                                    int64_t low, struct tensor *result) {
    const int64_t offset = geometry->numel == 0 ? 0 : geometry->offset - low;
    struct tensor seen;
    enum base_status status = tensor_as_strided(memory, geometry->sizes, geometry->rank,
                                                geometry->strides, geometry->rank, &offset, &seen);
    if (status != BASE_OK)
        return status;
    status = tensor_clone(seen, TENSOR_CONTIGUOUS, result);
    tensor_release(&seen);
    return status;
}

// By way of memory: the gradient is added up where the view lay, then read where the input lay.
// Where several elements of the input share a place each gets its share.
static enum base_status strided_back(struct tape_node *node, struct tensor *gradients,
                                     struct tensor *results) {
    const struct tape_view_payload *payload = payload_of(node);
    const struct tensor_geometry *input = &payload->input;
    if (gradients[0].impl == NULL || !tape_wants(node, 0))
        return BASE_OK;
    struct tensor_geometry view;
    enum base_status status = tensor_view_apply(&payload->calls[0], input, &view);
    if (status != BASE_OK)
        return status;
    int64_t low = INT64_MAX, high = INT64_MIN;
    range_extend(input, &low, &high);
    range_extend(&view, &low, &high);
    const int64_t length = high < low ? 0 : high - low + 1;
    const struct tape_metadata *like = &node->outputs[0];
    struct tensor memory = {0}, counts = {0};
    status = tensor_zeros(&like->place, like->type, &length, 1, &memory);
    if (status == BASE_OK && view.numel > 0) {
        view.offset -= low;
        status = tensor__accumulate_elements(memory.impl, &view, gradients[0].impl);
    }
    if (status == BASE_OK && (tensor_geometry_flags(input) & TENSOR_IS_DENSE) == 0) {
        struct tensor ones = {0};
        struct tensor_geometry place;
        tensor_geometry_copy(&place, input);
        place.offset -= low;
        status = tensor_zeros(&like->place, like->type, &length, 1, &counts);
        if (status == BASE_OK)
            status = tensor_ones(&like->place, like->type, input->sizes, input->rank, &ones);
        if (status == BASE_OK)
            status = tensor__accumulate_elements(counts.impl, &place, ones.impl);
        if (status == BASE_OK)
            status = tensor_div_(memory, tensor_operand_tensor(counts));
        tensor_release(&ones);
    }
    if (status == BASE_OK)
        status = memory_read(memory, input, low, &results[0]);
    tensor_release(&memory);
    tensor_release(&counts);
    return status;
}

#define FORMULA(variable, text, function)                                                          \
    const struct tape_formula variable = {.name = text, .apply = function}

FORMULA(tape_view, "ViewBackward0", shape_back);
FORMULA(tape_unsafe_view, "UnsafeViewBackward0", shape_back);
FORMULA(tape_unsqueeze, "UnsqueezeBackward0", shape_back);
FORMULA(tape_squeeze, "SqueezeBackward0", shape_back);
FORMULA(tape_squeeze_dim, "SqueezeBackward1", shape_back);
FORMULA(tape_squeeze_dims, "SqueezeBackward2", shape_back);
FORMULA(tape_alias, "AliasBackward0", shape_back);
FORMULA(tape_transpose, "TransposeBackward0", order_back);
FORMULA(tape_t, "TBackward0", order_back);
FORMULA(tape_permute, "PermuteBackward0", order_back);
FORMULA(tape_expand, "ExpandBackward0", expand_back);
FORMULA(tape_select, "SelectBackward0", place_back);
FORMULA(tape_slice, "SliceBackward0", place_back);
FORMULA(tape_unfold, "UnfoldBackward0", place_back);
FORMULA(tape_diagonal, "DiagonalBackward0", place_back);
FORMULA(tape_split, "SplitBackward0", place_back);
FORMULA(tape_split_with_sizes, "SplitWithSizesBackward0", place_back);
FORMULA(tape_unbind, "UnbindBackward0", place_back);
FORMULA(tape_unsafe_split, "UnsafeSplitBackward0", place_back);
FORMULA(tape_as_strided, "AsStridedBackward0", strided_back);
FORMULA(tape_transpose_in_place, "TransposeBackward1", order_back);
FORMULA(tape_t_in_place, "TBackward1", order_back);
FORMULA(tape_squeeze_in_place, "SqueezeBackward3", shape_back);
FORMULA(tape_squeeze_dim_in_place, "SqueezeBackward4", shape_back);
FORMULA(tape_unsqueeze_in_place, "UnsqueezeBackward1", shape_back);
FORMULA(tape_as_strided_in_place, "AsStridedBackward1", strided_back);

enum base_status tape__as_strided_of_base(struct tensor_impl *view, struct tape_node **result) {
    struct tensor_impl *base = view->autograd->base;
    struct tape_node *node;
    enum base_status status =
        tape_node_create(&tape_as_strided, 1, 1, tape_view_payload_size(1), &node);
    if (status != BASE_OK)
        return status;
    status = tensor__gradient_edge(base, &node->edges[0]);
    if (status != BASE_OK) {
        tape_node_drop(node);
        return status;
    }
    const struct tensor_view_call call = {.kind = TENSOR_VIEW_AS_STRIDED,
                                          .count = view->geometry.rank,
                                          .list = view->geometry.sizes,
                                          .strides = view->geometry.strides,
                                          .start = view->geometry.offset};
    tape__view_payload_set(node, base, &call, 1);
    *result = node;
    return BASE_OK;
}

//------------------------------------------------------------------------------------------------
// A write to a view, seen from its base: the gradient of the base passes, but for the part that was
// written, which goes through the gradient of the write.

struct slices_payload {
    struct tensor_geometry base, view;
};

static enum base_status slices_run(struct tape_node *node, struct tensor *gradients,
                                   struct tensor *results, struct tensor whole,
                                   struct tensor slice) {
    struct tape_node *inner = node->inner;
    struct tensor given, made[8] = {{0}};
    (void)gradients;
    BASE_CHECK(inner->edge_count <= (int)(sizeof made / sizeof made[0]));
    enum base_status status = tensor_clone(slice, TENSOR_PRESERVE, &given);
    if (status != BASE_OK)
        return status;
    status = inner->formula->apply(inner, &given, made);
    for (int edge = 1; edge < inner->edge_count && status == BASE_OK; edge++) {
        if (!tape_wants(node, edge))
            continue;
        results[edge] = made[edge];
        made[edge].impl = NULL;
    }
    if (status == BASE_OK && tape_wants(node, 0)) {
        status = made[0].impl != NULL ? tensor_copy_(slice, made[0]) : tensor_zero_(slice);
        if (status == BASE_OK)
            results[0] = tensor_retain(whole);
    }
    for (int edge = 0; edge < inner->edge_count; edge++)
        tensor_release(&made[edge]);
    tensor_release(&given);
    return status;
}

static enum base_status slices_back(struct tape_node *node, struct tensor *gradients,
                                    struct tensor *results) {
    const struct slices_payload *payload = node->payload;
    const struct tensor_geometry *base = &payload->base, *view = &payload->view;
    const struct tape_metadata *like = &node->outputs[0];
    if (gradients[0].impl == NULL)
        return BASE_OK;
    struct tensor whole = {0}, slice = {0};
    enum base_status status = tensor_empty_strided(&like->place, like->type, base->sizes,
                                                   base->rank, base->strides, base->rank, &whole);
    if (status == BASE_OK)
        status = tensor_copy_(whole, gradients[0]);
    const int64_t offset = view->offset - base->offset;
    if (status == BASE_OK)
        status = tensor_as_strided(whole, view->sizes, view->rank, view->strides, view->rank,
                                   &offset, &slice);
    if (status == BASE_OK)
        status = slices_run(node, gradients, results, whole, slice);
    tensor_release(&slice);
    tensor_release(&whole);
    return status;
}

static const struct tape_formula copy_slices = {.name = "torch::autograd::CopySlices",
                                                .apply = slices_back};

enum base_status tape__copy_slices_create(struct tensor_impl *view, struct tape_node *operator_node,
                                          struct tape_node **result) {
    struct tensor_impl *base = view->autograd->base;
    struct tape_node *node;
    enum base_status status = tape_node_create(&copy_slices, operator_node->edge_count, 1,
                                               sizeof(struct slices_payload), &node);
    if (status != BASE_OK)
        return status;
    status = tensor__gradient_edge(base, &node->edges[0]);
    if (status != BASE_OK) {
        tape_node_drop(node);
        return status;
    }
    for (int edge = 1; edge < node->edge_count; edge++) {
        node->edges[edge] = operator_node->edges[edge];
        tape_node_retain(node->edges[edge].node);
    }
    struct slices_payload *payload = node->payload;
    tensor_geometry_copy(&payload->base, &base->geometry);
    tensor_geometry_copy(&payload->view, &view->geometry);
    node->inner = tape_node_retain(operator_node);
    *result = node;
    return BASE_OK;
}
