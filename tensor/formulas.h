// Gradients of the operators: a formula each (gradients_*.c), and the nodes that are no operator's.
#ifndef TIDEMARK_TENSOR_FORMULAS_H
#define TIDEMARK_TENSOR_FORMULAS_H

#include "tensor/kernel/attention.h"
#include "tensor/tape.h"
#include "tensor/view_call.h"

// The end of a path: adds what comes to the gradient of a leaf. Owns LEAF.
enum base_status tape__accumulator_create(struct tensor_impl *leaf,
                                          struct tape_node **node) BASE_MUST_USE;

// GRADIENT added up to a shape that broadcasts to its own; itself if that is its shape.
enum base_status tape__sum_to(struct tensor gradient, const int64_t *sizes, int rank,
                              struct tensor *result) BASE_MUST_USE;

// VIEW as as_strided of its base.
enum base_status tape__as_strided_of_base(struct tensor_impl *view,
                                          struct tape_node **node) BASE_MUST_USE;
// What the base of VIEW gets when OPERATOR, an in-place write to the view, runs: the gradient of
// the base with the operator's gradient put in the place of the view's part.
enum base_status tape__copy_slices_create(struct tensor_impl *view, struct tape_node *operator_node,
                                          struct tape_node **node) BASE_MUST_USE;

// Payload of a node of a view operation: for each output how it came of the input.
struct tape_view_payload {
    struct tensor_geometry input;
    size_t item_size;
    int64_t list[TENSOR_RANK_MAX], strides[TENSOR_RANK_MAX]; // of the only call, where it has them
    int count;
    struct tensor_view_call calls[]; // COUNT
};
static inline size_t tape_view_payload_size(int count) {
    return sizeof(struct tape_view_payload) + (size_t)count * sizeof(struct tensor_view_call);
}
// Fills in the payload of a node of that size. Of several calls none has lists.
void tape__view_payload_set(struct tape_node *node, const struct tensor_impl *input,
                            const struct tensor_view_call *calls, int count);
extern const struct tape_formula tape_view, tape_unsafe_view, tape_transpose, tape_t, tape_permute,
    tape_select, tape_slice, tape_unsqueeze, tape_squeeze, tape_squeeze_dim, tape_squeeze_dims,
    tape_expand, tape_as_strided, tape_unfold, tape_diagonal, tape_alias, tape_split,
    tape_split_with_sizes, tape_unbind, tape_unsafe_split, tape_transpose_in_place, tape_t_in_place,
    tape_squeeze_in_place, tape_squeeze_dim_in_place, tape_unsqueeze_in_place,
    tape_as_strided_in_place;

// Element by element. Saved: 0 self, 1 other or result; payload: struct tape_binary_payload.
struct tape_binary_payload {
    struct tensor_scalar other, alpha; // other: where it is no tensor
    bool is_number;
};
extern const struct tape_formula tape_not_implemented, tape_add, tape_sub, tape_mul, tape_div,
    tape_neg, tape_relu, tape_sqrt, tape_clone, tape_to_copy, tape_copy, tape_fill,
    tape_fill_tensor, tape_zero;

// Payload of sums: the shape of the input and which dimensions went.
struct tape_sum_payload {
    int rank;
    int64_t sizes[TENSOR_RANK_MAX];
    bool is_reduced[TENSOR_RANK_MAX], is_kept;
};
extern const struct tape_formula tape_sum, tape_sum_dims, tape_mm, tape_bmm, tape_cat, tape_stack,
    tape_index, tape_index_put;
// Payload of products: which factor lay by columns. Its gradient does so, too, as PyTorch's: that
// of a weight which was turned round for the product then lies as the weight does, and needs no
// copy.
struct tape_product_payload {
    bool is_by_columns[2];
};
struct tape_product_payload tape__product_payload(const struct tensor_impl *a,
                                                  const struct tensor_impl *b);
struct tape_join_payload {
    int dim;
    int64_t lengths[]; // of each input along DIM
};

// nn.h. Slots and payloads as nn_*.c fill them.
extern const struct tape_formula tape_addmm, tape_gelu, tape_gelu_tanh, tape_silu, tape_sigmoid,
    tape_tanh, tape_exp, tape_log, tape_softmax, tape_log_softmax, tape_layer_norm, tape_rms_norm,
    tape_embedding, tape_dropout, tape_masked_fill, tape_nll_loss, tape_cross_entropy,
    tape_attention, tape_mean, tape_mean_dims;

// Softmax: saved 0 the result.
struct tape_softmax_payload {
    int dim;
    double scale;
};
// Norms: saved 0 the input, 1 weight, 2 rstd, 3 mean. The last `dims` dimensions are a row.
struct tape_norm_payload {
    int dims;
    bool has_weight;
    enum tensor_type parameter_type; // of weight and bias
};
// Embedding: saved 0 the indices.
struct tape_embedding_payload {
    int64_t rows;
};
// Dropout: saved 0 the mask.
struct tape_dropout_payload {
    double scale;
};
// Negative log-likelihood: saved 0 the targets, 1 the total.
struct tape_nll_payload {
    int64_t sizes[2];
    int rank;
    int64_t ignored;
    bool is_mean;
};
// Cross-entropy row by row: saved 0 the logits, 1 the targets, 2 the logarithms of sums.
struct tape_cross_entropy_payload {
    int64_t ignored;
};
// Attention: saved 0 to 2 query, key, value; 3 the result; 4 the logarithms of sums; 5 the
// state of the generator, if there is one.
struct tape_attention_payload {
    struct tensor_kernel_attention_form form;
};

#endif
