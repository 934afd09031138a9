// Managed memory, which pages move for between host and devices, is not simulated. Its calls answer
// cudaErrorNotSupported, and the first of them says so on standard error, so that nobody looks for
// another reason.
#include "simulator/call.h"

#include <stdio.h>

static cudaError_t refuse(const char *name) {
    static bool said;
    const cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error != cudaSuccess)
        return sim__call_end(SIM__CALL_OTHER, error);
    if (!said)
        fprintf(stderr,
                "tidemark simulator: %s: managed memory is not simulated (cudaMalloc, "
                "cudaHostAlloc and copies are)\n",
                name);
    said = true;
    return sim__call_end(SIM__CALL_OTHER, cudaErrorNotSupported);
}

cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned int flags) {
    (void)pointer;
    (void)size;
    (void)flags;
    return refuse("cudaMallocManaged");
}

cudaError_t cudaMemAdvise(const void *pointer, size_t size, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location) {
    (void)pointer;
    (void)size;
    (void)advice;
    (void)location;
    return refuse("cudaMemAdvise");
}

cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size, struct cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream) {
    (void)pointer;
    (void)size;
    (void)location;
    (void)flags;
    (void)stream;
    return refuse("cudaMemPrefetchAsync");
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t size,
                                     unsigned int flags) {
    (void)stream;
    (void)pointer;
    (void)size;
    (void)flags;
    return refuse("cudaStreamAttachMemAsync");
}
