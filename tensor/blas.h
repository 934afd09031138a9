// Calls of cuBLAS: handles from a pool, and what statuses say.
//
// A handle belongs to its device and is used by one thread at a time; it is made at a thread's
// first call, outside of a capture that may be under way, and kept. Threads: any; the pool has a
// lock that no CUDA call is made under.
#ifndef TIDEMARK_TENSOR_BLAS_H
#define TIDEMARK_TENSOR_BLAS_H

#include "base/status.h"
#include "tensor/guard.h"

#include <cublas_v2.h>

// RUN with a handle of the current device, and again with a new one if the device was reset since.
enum base_status tensor__blas_run(const char *call,
                                  cublasStatus_t (*run)(cublasHandle_t handle,
                                                        const void *argument),
                                  const void *argument) BASE_MUST_USE;

#endif
