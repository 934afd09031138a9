// Element work and products on CUDA devices: the table of backend.h over the kernels of
// tensor/kernel and cuBLAS. Everything is enqueued on the stream that the caller names, whatever
// the current device is; nothing is allocated and nothing waits, but for a thread's first product
// on a device, which makes a cuBLAS handle.
//
// Errors: BASE_CUDA with the call and its code; BASE_OUT_OF_MEMORY where cuBLAS finds no room.
// Threads: any; handles are taken from a pool, under a lock that no CUDA call is made under.
#ifndef TIDEMARK_TENSOR_LAUNCH_H
#define TIDEMARK_TENSOR_LAUNCH_H

#include "tensor/backend.h"

extern const struct tensor_backend tensor__cuda;

// Gives the cuBLAS handles of the pool back, with their workspaces: before the devices' memory is
// counted, or the process ends. No product may be under way.
void tensor_launch_end(void);

#endif
