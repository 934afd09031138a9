// Loops and products (backend.h) as the arguments of kernels (tensor/kernel), the same for every
// device. Loops are simplified on the way: dimensions of one element go, and those that lie one
// behind the other in all operands become one, so that most kernels have one dimension.
#ifndef TIDEMARK_TENSOR_LOWER_H
#define TIDEMARK_TENSOR_LOWER_H

#include "tensor/backend.h"
#include "tensor/kernel/pointwise.h"

void tensor__lower_pointwise(const struct tensor_loop *loop,
                             struct tensor_kernel_pointwise *kernel);
void tensor__lower_sum(const struct tensor_loop *loop, const bool *is_reduced,
                       struct tensor_kernel_sum *kernel);
void tensor__lower_product(const struct tensor_product *product,
                           struct tensor_kernel_product *kernel);

#endif
