// See uncached.h.
#include "allocator/uncached.h"

#include "allocator/device.h"
#include "allocator/direct.h"

static enum base_status uncached_malloc(struct allocator *allocator, int device, size_t size,
                                        cudaStream_t stream, void **pointer) {
    const enum base_status status =
        allocator_malloc(cca__of(allocator)->uncached, device, size, stream, pointer);
    // PyTorch's own out-of-memory error comes from its cache alone.
    if (status != BASE_OUT_OF_MEMORY) return status;
    return cca__cuda_failed(cudaErrorMemoryAllocation,
                            "cudaMalloc of %zu bytes on device %d, without a cache", size, device);
}

static enum base_status uncached_free(struct allocator *allocator, void *pointer) {
    return allocator_free(cca__of(allocator)->uncached, pointer);
}

// cudaFree waits for all streams, so there is nothing to remember: any pointer will do, as in
// PyTorch.
static enum base_status uncached_record_stream(struct allocator *allocator, void *pointer,
                                               cudaStream_t stream) {
    (void)allocator;
    (void)pointer;
    (void)stream;
    return BASE_OK;
}

static enum base_status uncached_base_allocation(struct allocator *allocator, const void *pointer,
                                                 void **base, size_t *size) {
    return allocator_base_allocation(cca__of(allocator)->uncached, pointer, base, size);
}

enum base_status cca__uncached_init(struct cca *cca) {
    const enum base_status status = direct_allocator_create(&cca->uncached);
    if (status != BASE_OK) return status;
    struct allocator_operations *const operations = &cca->uncached_operations;
    *operations = *cca->interface.operations;
    operations->name = "uncached";
    operations->malloc = uncached_malloc;
    operations->free = uncached_free;
    operations->record_stream = uncached_record_stream;
    operations->base_allocation = uncached_base_allocation;
    cca->interface.operations = operations;
    return BASE_OK;
}
