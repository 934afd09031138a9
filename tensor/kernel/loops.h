// What the kernels of pointwise.h do, as loops of the host: for the simulated device and for the
// CPU.
//
// Item by item they would decide for each number what its type is and where it lies. Here a row of
// the last dimension is taken in stretches: numbers of other types, or with gaps, are brought into
// a small buffer in the type that is computed in; then comes one loop for the operation, which the
// compiler makes vector code of; then the way back. The results are those of the items.
#ifndef TIDEMARK_TENSOR_KERNEL_LOOPS_H
#define TIDEMARK_TENSOR_KERNEL_LOOPS_H

#include "tensor/kernel/pointwise.h"

// The shape's last dimension should be the one in which the output lies closest together.
void tensor_loop_pointwise(const struct tensor_kernel_pointwise *kernel);
void tensor_loop_sum(const struct tensor_kernel_sum *kernel);
void tensor_loop_product(const struct tensor_kernel_product *kernel);

#endif
