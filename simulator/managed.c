// Managed memory, which pages move for between host and devices, is not simulated. Its calls answer
// cudaErrorNotSupported, and the first of them says so on standard error, so that nobody looks for
// another reason.
#include "simulator/call.h"
#include "simulator/capture.h"
#include "simulator/stream.h"

#include <stdio.h>

// UNSAFE: while captures run. HANDLE: of a stream that may not capture; NULL: none.
static cudaError_t refuse(const char *name, bool unsafe, const cudaStream_t *handle) {
    static bool said;
    struct sim__stream *stream;
    cudaError_t error = sim__call_begin(SIM__CALL_OTHER);
    if (error == cudaSuccess && unsafe)
        error = sim__capture_unsafe();
    if (error == cudaSuccess && handle != NULL &&
        (error = sim__stream_resolve(*handle, &stream)) == cudaSuccess)
        error = sim__capture_refuse(stream);
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
    return refuse("cudaMallocManaged", true, NULL);
}

cudaError_t cudaMemAdvise(const void *pointer, size_t size, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location) {
    (void)pointer;
    (void)size;
    (void)advice;
    (void)location;
    return refuse("cudaMemAdvise", false, NULL);
}

cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size, struct cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream) {
    (void)pointer;
    (void)size;
    (void)location;
    (void)flags;
    (void)stream;
    return refuse("cudaMemPrefetchAsync", false, NULL);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t size,
                                     unsigned int flags) {
    (void)pointer;
    (void)size;
    (void)flags;
    return refuse("cudaStreamAttachMemAsync", false, &stream);
}
