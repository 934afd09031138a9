// The kernels on a GPU: the items of each in a grid-stride loop. See launch.h. Compiled with
// --fmad=false, so that a product is rounded before it is added, as on the host.
#include "tensor/kernel/launch.h"

#define THREADS 256
#define BLOCKS_MAX 4096

// NAME's argument as a parameter of the kernel: the copy that every thread reads.
#define RUN(name)                                                                                  \
    static __global__ void run_##name(const struct tensor_kernel_##name kernel, int64_t items) {   \
        const int64_t step = (int64_t)gridDim.x * blockDim.x;                                      \
        for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < items; i += step)     \
            tensor_kernel_##name##_at(&kernel, i);                                                 \
    }                                                                                              \
    extern "C" cudaError_t tensor_launch_##name(const struct tensor_kernel_##name *kernel,         \
                                                cudaStream_t stream) {                             \
        const int64_t items = tensor_kernel_##name##_items(kernel);                                \
        const int64_t blocks = (items + THREADS - 1) / THREADS;                                    \
        if (items == 0)                                                                            \
            return cudaSuccess;                                                                    \
        run_##name<<<(unsigned)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX), THREADS, 0, stream>>>( \
            *kernel, items);                                                                       \
        return cudaGetLastError();                                                                 \
    }
TENSOR_KERNEL_LIST(RUN)
