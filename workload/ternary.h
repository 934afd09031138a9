// A model whose training is exact: layers of weights -1, 0 and 1 over inputs 0 and 1. All sums are
// whole numbers that float32 holds, so they come out the same in any order, on any number of
// devices, by cuBLAS or by a plain loop. Programs that move a model about (offload.c, sharded.c)
// train it, and have one checksum.
//
//     h[l + 1] = [h[l] W[l] > 0]                  forward; [x] is 1 where x holds, else 0
//     d[l]     = h[l]' g[l + 1]                   backward, from g[last] = h[last]
//     g[l]     = [g[l + 1] W[l]' > 0]
//     W[l]     = [d[l] = a] - [d[l] = a + 1]      the step; a goes round near a quarter of the
//     batch
//
// Rows of the batch are independent but for d, which adds them up: parts of a batch add up to it.
#ifndef TIDEMARK_WORKLOAD_TERNARY_H
#define TIDEMARK_WORKLOAD_TERNARY_H

#include "workload/run.h"

struct ternary_shape {
    int layers;
    int64_t width, batch;
};
struct ternary_shape ternary_shape(enum workload_size size);

// Values of the model's start, and of a step's rows from FIRST_ROW on, into a tensor of host memory
// of shape [width, width] or [rows, width]; nothing where no values are wanted.
enum base_status ternary_weights_fill(struct workload_run *run, int layer,
                                      struct tensor weights) BASE_MUST_USE;
enum base_status ternary_input_fill(struct workload_run *run, uint64_t step, int64_t first_row,
                                    struct tensor input) BASE_MUST_USE;

// New tensors beside the ones given, on the current stream.
enum base_status ternary_forward(struct tensor inputs, struct tensor weights,
                                 struct tensor *outputs) BASE_MUST_USE;
enum base_status ternary_backward(struct tensor gradient, struct tensor weights,
                                  struct tensor *before) BASE_MUST_USE;
enum base_status ternary_gradient(struct tensor inputs, struct tensor gradient,
                                  struct tensor *weights_gradient) BASE_MUST_USE;
// WEIGHTS, or some rows of them, by the sum over the whole BATCH.
enum base_status ternary_update(struct tensor weights, struct tensor weights_gradient,
                                int64_t batch, uint64_t step) BASE_MUST_USE;

// A layer's weights after a step, [width, width] in rows, into the checksum.
void ternary_checksum(struct workload_run *run, uint64_t step, int layer, const float *weights,
                      const struct ternary_shape *shape);

#endif
