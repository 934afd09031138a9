// See uncached.h.
#include "allocator/uncached.h"

#include "allocator/device.h"
#include "allocator/direct.h"

enum base_status cca__uncached_init(struct cca *cca) {
    return direct_allocator_create(&cca->uncached);
}

enum base_status cca__uncached_malloc(struct allocator *allocator, int device, size_t size,
                                      cudaStream_t stream, void **pointer) {
    const enum base_status status =
        allocator_malloc(cca__of(allocator)->uncached, device, size, stream, pointer);
    // PyTorch's own out-of-memory error comes from its cache alone.
    if (status != BASE_OUT_OF_MEMORY) return status;
    return cca__cuda_failed(cudaErrorMemoryAllocation,
                            "cudaMalloc of %zu bytes on device %d, without a cache", size, device);
}

enum base_status cca__uncached_free(struct allocator *allocator, void *pointer) {
    return allocator_free(cca__of(allocator)->uncached, pointer);
}

enum base_status cca__uncached_record_stream(struct allocator *allocator, void *pointer,
                                             cudaStream_t stream) {
    return allocator_record_stream(cca__of(allocator)->uncached, pointer, stream);
}

enum base_status cca__uncached_base_allocation(struct allocator *allocator, const void *pointer,
                                               void **base, size_t *size) {
    return allocator_base_allocation(cca__of(allocator)->uncached, pointer, base, size);
}
