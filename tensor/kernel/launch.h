// The seam where kernels are launched: on the simulated device (kernels_sim.c) or on a GPU
// (kernels.cu, --config=cuda).
//
//     struct tensor_kernel_softmax softmax = {.shape = {1, {rows}}, .columns = columns, ...};
//     error = tensor_launch_softmax(&softmax, stream);
//
// A launch enqueues and returns: it allocates nothing and waits for nothing; in a capture it
// becomes a node. Arguments are copied. They are the operators' to check: shapes and strides that
// fit the arrays, types that the kernel takes. With nothing to do nothing is launched. Errors:
// those of a kernel launch; an index that is none makes the device fault when the work runs.
//
// On the simulated device the launch names the places that the kernel reads and writes, so that the
// race checker knows them (simulator/sim_race.h); of a gather's and a scatter's table the whole.
#ifndef TIDEMARK_TENSOR_KERNEL_LAUNCH_H
#define TIDEMARK_TENSOR_KERNEL_LAUNCH_H

#include "tensor/kernel/attention.h"
#include "tensor/kernel/model.h"
#include "tensor/kernel/pointwise.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

// X(NAME): struct tensor_kernel_NAME, tensor_kernel_NAME_items and _at. Rows and models; all.
// clang-format off
#define TENSOR_KERNEL_MODEL_LIST(X)                                                                \
    X(softmax) X(softmax_gradient) X(norm) X(norm_gradient) X(norm_weight) X(argmax)               \
    X(cross_entropy) X(cross_entropy_gradient) X(nll) X(nll_gradient)                              \
    X(gather) X(scatter_add) X(dropout) X(adam) X(sgd) X(addc) X(squares)                                  \
    X(attention) X(attention_query) X(attention_key)
// clang-format on
#define TENSOR_KERNEL_LIST(X) X(pointwise) X(sum) X(sum_parts) X(product) TENSOR_KERNEL_MODEL_LIST(X)

#define TENSOR_LAUNCH(name)                                                                        \
    cudaError_t tensor_launch_##name(const struct tensor_kernel_##name *kernel,                    \
                                     cudaStream_t stream);
TENSOR_KERNEL_LIST(TENSOR_LAUNCH)
#undef TENSOR_LAUNCH

#ifdef __cplusplus
}
#endif

#endif
