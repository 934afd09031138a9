// Trains a transformer on made text, as a training script does: a batch, the loss of one or several
// parts of it, backward, gradients clipped to norm 1, AdamW without decay for biases and norms.
#ifndef TIDEMARK_WORKLOAD_TRANSFORMER_TRAIN_H
#define TIDEMARK_WORKLOAD_TRANSFORMER_TRAIN_H

#include "workload/transformer_model.h"

struct transformer_training {
    struct tensor_place place;
    struct transformer_shape shape;
    uint64_t seed, steps;
    double rate, dropout;
    int parts;                      // of a step, whose gradients add up; at least 1
    bool is_mixed, is_checkpointed; // transformer_model.h
    bool is_fused;                  // AdamW in one kernel a parameter, without temporaries
    bool is_varied;                 // batches and their rows of various lengths, up to the context
    bool is_empty;                  // no values: for a device that holds none
    // cuBLAS works in memory of the place's allocator, of these sizes (tensor/nn.h); afterwards in
    // its own again.
    size_t product_workspace_bytes, biased_workspace_bytes;
    // After each step, with the loss of its last part; and at the end. What they refuse ends it.
    enum base_status (*on_step)(void *context, uint64_t step, struct tensor loss);
    enum base_status (*on_end)(void *context, const struct transformer *model);
    void *context;
};

// Everything that it made is gone when it returns. BASE_HOST_MEMORY, or what tensors and the
// callbacks say.
enum base_status transformer_train(const struct transformer_training *training) BASE_MUST_USE;

#endif
