// A model as GPT-2 is: token and position embeddings, layers of attention and a feed-forward part
// with a norm before each, a last norm, and the token embedding again for the logits.
//
//     status = transformer_create(&place, &shape, seed, false, &model);
//     struct transformer_pass pass = {.model = model, .generator = {seed, 0}, .is_mixed = true};
//     status = transformer_loss(&pass, tokens, targets, &loss);
//     status = tensor_backward(loss, (struct tensor){0}, false);
//     transformer_pass_end(&pass);
//     transformer_destroy(model);
//
// Memory is taken and given back in the order in which PyTorch's module of the same layers does,
// temporaries of autocast included; //workload:compare sets the two side by side.
#ifndef TIDEMARK_WORKLOAD_TRANSFORMER_MODEL_H
#define TIDEMARK_WORKLOAD_TRANSFORMER_MODEL_H

#include "tensor/nn.h"

struct transformer_shape {
    int layers, width, heads, context, batch, vocabulary;
};

// Of a layer, in the order in which a module has them.
enum transformer_parameter {
    TRANSFORMER_NORM1_WEIGHT,
    TRANSFORMER_NORM1_BIAS,
    TRANSFORMER_NORM2_WEIGHT,
    TRANSFORMER_NORM2_BIAS,
    TRANSFORMER_QKV_WEIGHT, // of queries, keys and values together
    TRANSFORMER_QKV_BIAS,
    TRANSFORMER_JOIN_WEIGHT, // of the heads' results
    TRANSFORMER_JOIN_BIAS,
    TRANSFORMER_UP_WEIGHT, // to four times the width
    TRANSFORMER_UP_BIAS,
    TRANSFORMER_DOWN_WEIGHT,
    TRANSFORMER_DOWN_BIAS,
    TRANSFORMER_LAYER_PARAMETER_COUNT
};

struct transformer {
    struct transformer_shape shape;
    struct tensor_place place;
    // Token and position embedding, then those of each layer, then the last norm's two: leaves,
    // float32.
    int parameter_count;
    struct tensor *parameters;
};

// Weights are drawn from SEED as GPT-2's are: normally distributed, deviation 0.02; 0 and 1 for
// biases and norms. IS_EMPTY: they have no values, for a device that holds none. BASE_HOST_MEMORY,
// or what tensors say.
enum base_status transformer_create(const struct tensor_place *place,
                                    const struct transformer_shape *shape, uint64_t seed,
                                    bool is_empty, struct transformer **model) BASE_MUST_USE;
void transformer_destroy(struct transformer *model); // NULL is ignored

struct transformer_stretch; // what a layer's second run has to know

// How a pass goes through the model.
struct transformer_pass {
    const struct transformer *model;
    struct tensor_generator generator; // of dropout; moves on
    double dropout;
    // Linear layers and attention in bfloat16, the rest in float32, as PyTorch's autocast without
    // its cache of weights: every use casts anew, and its gradient comes back through the cast.
    bool is_mixed;
    bool is_checkpointed;                  // of each layer only the input is kept
    struct transformer_stretch *stretches; // the pass's own
};

// The mean cross-entropy of TARGETS, [batch, length] of int64, after TOKENS of the same shape; a
// target of TENSOR_IGNORED does not count. Length is at most the context. The pass is to live until
// the loss's backward has run, then transformer_pass_end.
enum base_status transformer_loss(struct transformer_pass *pass, struct tensor tokens,
                                  struct tensor targets, struct tensor *loss) BASE_MUST_USE;
void transformer_pass_end(struct transformer_pass *pass);

#endif
