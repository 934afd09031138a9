// What models are made of, over tensor.h: linear layers, activations, norms, attention, losses,
// optimisers. Names, shapes, refusals and the memory that each takes are PyTorch's, on CUDA; CPU
// tensors go the same way.
//
//     status = tensor_layer_norm(x, (int64_t[]){width}, 1, weight, bias, 1e-5, &normed);
//     status = tensor_linear(normed, w_qkv, b_qkv, &qkv);
//     ...
//     status = tensor_cross_entropy(logits, targets, TENSOR_IGNORED, TENSOR_MEAN, &loss);
//     status = tensor_backward(loss, (struct tensor){0}, false);
//     status = tensor_adamw_step(&adamw, step, count, parameters, gradients, means, squares);
//
// Each takes part in gradients unless it says that it does not. "Takes": blocks of the allocator,
// in their order; "keeps": what stays until backward, apart from operands, which it shares.
// Operands may have any strides; results lie in rows unless it says otherwise. Errors, threads,
// ownership: as in tensor.h. Out of memory, an operator has changed nothing and keeps nothing, and
// the sentence names it with the types and shapes of its operands.
#ifndef TIDEMARK_TENSOR_NN_H
#define TIDEMARK_TENSOR_NN_H

#include "tensor/tensor.h"

// Where numbers by chance come from: a seed and how many were drawn. An operator's own are a
// function of both (Philox 4x32, ten rounds) and of the element's place, on any device.
struct tensor_generator {
    uint64_t seed, offset;
};
// In a graph capture seed and offset are those of the capture: each launch would draw the same.
// While STATE is set (an int64 of one element on a device; none ends it) the work of this thread's
// operators beside it adds what is in STATE, when it runs, to the offset: set it before each
// launch, by how far the capture moved the offset, as PyTorch's replays do. Borrowed; an operator
// that draws again in its gradient keeps it.
enum base_status tensor_set_generator_state(struct tensor state) BASE_MUST_USE;

//------------------------------------------------------------------------------------------------
// Linear layers

// BIAS [n] + A [m, k] B [k, n]. On a device by cuBLASLt, bias and all, where m, n, k > 1 and cuBLAS
// has the types and strides; else a product, then a sum in place. Takes the result. Keeps nothing.
enum base_status tensor_addmm(struct tensor bias, struct tensor a, struct tensor b,
                              struct tensor *result) BASE_MUST_USE;
// SELF [..., k] times the transposed of WEIGHT [n, k], plus BIAS [n] (may be none): [..., n].
enum base_status tensor_linear(struct tensor self, struct tensor weight, struct tensor bias,
                               struct tensor *result) BASE_MUST_USE;

// From now on, for the process: products on CUDA devices take a workspace of so many bytes from the
// allocator of their result and give it back at once, as PyTorch's do; 0, as at first: cuBLAS's
// own. Biased: those of cuBLASLt, which has none of its own. PyTorch 2.15 on an H100: 32 MiB and 1
// MiB.
void tensor_set_workspaces(size_t product_bytes, size_t biased_product_bytes);

//------------------------------------------------------------------------------------------------
// Element by element: take the result, with the strides of the operand. gelu and silu keep nothing
// and are of floating types only; the others keep nothing but their result, and make float32 of
// integers.

enum base_status tensor_gelu(struct tensor self, struct tensor *result) BASE_MUST_USE; // by erf
enum base_status tensor_gelu_tanh(struct tensor self, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_silu(struct tensor self, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_sigmoid(struct tensor self, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_tanh(struct tensor self, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_exp(struct tensor self, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_log(struct tensor self, struct tensor *result) BASE_MUST_USE;

// VALUE where MASK (bool, which broadcasts to SELF or SELF to it) is set, else SELF. Keeps the
// mask.
enum base_status tensor_masked_fill(struct tensor self, struct tensor mask,
                                    struct tensor_scalar value,
                                    struct tensor *result) BASE_MUST_USE;
// 0 with PROBABILITY, else SELF / (1 - PROBABILITY). Takes a mask of bools, which it keeps, and the
// result, both with the strides of SELF; probability 0: the tensor itself, and nothing taken.
enum base_status tensor_dropout(struct tensor self, double probability,
                                struct tensor_generator *generator,
                                struct tensor *result) BASE_MUST_USE;

//------------------------------------------------------------------------------------------------
// Row by row

// Along a dimension. Take the result and keep it. PyTorch copies an operand with gaps first.
enum base_status tensor_softmax(struct tensor self, int64_t dim,
                                struct tensor *result) BASE_MUST_USE;
enum base_status tensor_log_softmax(struct tensor self, int64_t dim,
                                    struct tensor *result) BASE_MUST_USE;

// Over the last COUNT dimensions, of SIZES; weight and bias have these sizes or are none, and are
// of the type of SELF, or float32 where that has 16 bits. Takes the result, then mean and 1 /
// deviation of each row (float32; float64 for itself), which it keeps.
enum base_status tensor_layer_norm(struct tensor self, const int64_t *sizes, int count,
                                   struct tensor weight, struct tensor bias, double epsilon,
                                   struct tensor *result) BASE_MUST_USE;
// Without means and bias.
enum base_status tensor_rms_norm(struct tensor self, const int64_t *sizes, int count,
                                 struct tensor weight, double epsilon,
                                 struct tensor *result) BASE_MUST_USE;

// Rows of WEIGHT [rows, columns] by INDICES (int64 or int32) of any shape: their shape, then
// columns. An index that is no row: IndexError on the CPU; a device faults, as PyTorch's asserts.
// The gradient is dense: zeros of the weight's shape, added to in the order of the indices.
// (PyTorch takes memory to sort them besides.)
enum base_status tensor_embedding(struct tensor weight, struct tensor indices,
                                  struct tensor *result) BASE_MUST_USE;

// Sums divided by the count, in place. Over DIMS (none: over all).
enum base_status tensor_mean(struct tensor self, struct tensor *result) BASE_MUST_USE;
enum base_status tensor_mean_dims(struct tensor self, const int64_t *dims, int count, bool keep,
                                  struct tensor *result) BASE_MUST_USE;
// Where along DIM the greatest is, the first one of several; int64. No gradient.
enum base_status tensor_argmax(struct tensor self, int64_t dim, bool keep,
                               struct tensor *result) BASE_MUST_USE;

//------------------------------------------------------------------------------------------------
// Attention: softmax(scale * Q K' + mask) V for queries [..., l, e], keys [..., s, e], values
// [..., s, ev]: [..., l, ev].

enum tensor_attention_form {
    TENSOR_ATTENTION_ANY, // fused, unless there is a mask, or shapes that fused does not take
    // The matrix of scores in memory: a chain of operators, as PyTorch's math form. Takes and keeps
    // what they do: [..., l, s] several times.
    TENSOR_ATTENTION_MATH,
    // Query by query, as PyTorch's flash form: takes the result, which of rank 4 lies in memory as
    // [b, l, h, ev], so that heads join without a copy, and a number a query (float32; float64 for
    // itself); keeps both and q, k, v. Its gradient takes those of q, k, v in the same order, and a
    // number a query for the time. (PyTorch takes 16, 8 and 16 bytes more for the generator's
    // state, and in its gradient a float32 accumulator of the queries' size.) All of one shape but
    // for l, s, ev; e and ev up to 256.
    TENSOR_ATTENTION_FUSED,
};
struct tensor_attention {
    enum tensor_attention_form form;
    struct tensor mask; // may be none; bool (false: not seen) or numbers to add; broadcasts
    bool is_causal;     // query r sees keys 0 to r + shift; with a mask: refused
    int64_t shift;      // PyTorch's is_causal: 0; s - l: the last query sees all
    double scale;       // 0: 1 / sqrt(e)
    double probability; // of dropping a probability
    struct tensor_generator *generator; // needed if that is not 0
};
// OPTIONS NULL: all 0.
enum base_status tensor_scaled_dot_product_attention(struct tensor query, struct tensor key,
                                                     struct tensor value,
                                                     const struct tensor_attention *options,
                                                     struct tensor *result) BASE_MUST_USE;

//------------------------------------------------------------------------------------------------
// Losses

#define TENSOR_IGNORED (-100)                      // PyTorch's ignore_index, if none is named
enum tensor_reduction { TENSOR_MEAN, TENSOR_SUM }; // over the rows that are not ignored

// Of logarithms of probabilities [n, classes], or [classes] with a target of no dimensions;
// targets: int64. Takes the loss and the number of rows that count, which it keeps.
enum base_status tensor_nll_loss(struct tensor self, struct tensor targets, int64_t ignored,
                                 enum tensor_reduction reduction,
                                 struct tensor *result) BASE_MUST_USE;
// Of logits: log_softmax, then that. Keeps the logarithms, [n, classes]; the logits may go.
enum base_status tensor_cross_entropy(struct tensor self, struct tensor targets, int64_t ignored,
                                      enum tensor_reduction reduction,
                                      struct tensor *result) BASE_MUST_USE;

// A loss for each row of logits [n, classes], 0 where the target is ignored: in one step, which
// takes the losses and a number for each row (float32; float64 for itself) and keeps that, the
// logits and the targets. (PyTorch has log_softmax and nll_loss for this, too, and keeps the
// logarithms.)
enum base_status tensor_cross_entropy_rows(struct tensor self, struct tensor targets,
                                           int64_t ignored, struct tensor *result) BASE_MUST_USE;

//------------------------------------------------------------------------------------------------
// Steps of an optimiser: outside the graph, in place, each counted as a write. COUNT tensors a
// list; a gradient that is none leaves its parameter out. Tensors of a parameter have one shape and
// equal strides without gaps. All is checked before anything is written.

// self += value * a * b, and / b: tensors of one shape and device. For use without gradients.
enum base_status tensor_addcmul_(struct tensor self, struct tensor a, struct tensor b,
                                 double value) BASE_MUST_USE;
enum base_status tensor_addcdiv_(struct tensor self, struct tensor a, struct tensor b,
                                 double value) BASE_MUST_USE;

struct tensor_adamw {
    double rate, beta1, beta2, epsilon, decay;
    bool is_coupled; // Adam: decay as a part of the gradient
    // Operator by operator, as PyTorch does without `fused` and `foreach`: two temporaries of a
    // parameter's size for each in its turn, of which the second goes when the next parameter's are
    // there. Out of memory, those before it have made their step.
    bool is_single;
};
// STEP counts from 1. MEANS, SQUARES: exp_avg and exp_avg_sq, zeros before the first step. Takes
// nothing, unless is_single.
enum base_status tensor_adamw_step(const struct tensor_adamw *adamw, int64_t step, int count,
                                   const struct tensor *parameters, const struct tensor *gradients,
                                   const struct tensor *means,
                                   const struct tensor *squares) BASE_MUST_USE;

struct tensor_sgd {
    double rate, momentum, decay;
};
// VELOCITIES: with momentum, zeros before the first step; else NULL. Takes nothing.
enum base_status tensor_sgd_step(const struct tensor_sgd *sgd, int count,
                                 const struct tensor *parameters, const struct tensor *gradients,
                                 const struct tensor *velocities) BASE_MUST_USE;

// Scales gradients (none are left out) so that the root of the sum of all their squares is at most
// NORM; *total (may be NULL): what it was, a tensor on their device. Does not wait. Takes, as
// PyTorch does, a number for each run of 65,536 squares, one for each gradient, a vector of these,
// and a few.
enum base_status tensor_clip_grad_norm_(int count, const struct tensor *gradients, double norm,
                                        struct tensor *total) BASE_MUST_USE;

#endif
