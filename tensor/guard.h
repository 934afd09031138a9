// A stretch with a device as the current one of this thread, for calls that mean it: launches,
// copies and events on its default stream.
//
//     struct tensor_guard guard;
//     status = tensor__guard_begin(device, &guard);
//     if (status == BASE_OK)
//         status = tensor__guard_end(&guard, work(...));
//
// Where it is the current one already, that costs one cudaGetDevice.
#ifndef TIDEMARK_TENSOR_GUARD_H
#define TIDEMARK_TENSOR_GUARD_H

#include "base/status.h"

#include <cuda_runtime_api.h>

struct tensor_guard {
    int device, previous;
};

enum base_status tensor__guard_begin(int device, struct tensor_guard *guard) BASE_MUST_USE;
// Back to the device from before. Returns STATUS, or what went wrong here if that was well.
enum base_status tensor__guard_end(const struct tensor_guard *guard,
                                   enum base_status status) BASE_MUST_USE;

// BASE_OK; or BASE_CUDA, for want of memory BASE_OUT_OF_MEMORY, with CALL and the error's name and
// text.
enum base_status tensor__cuda_status(const char *call, cudaError_t error) BASE_MUST_USE;

#endif
