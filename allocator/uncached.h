// The mode without a cache (cca_options.no_caching): requests go to the direct allocator, and
// nothing else of this one knows of them.
#ifndef TIDEMARK_ALLOCATOR_UNCACHED_H
#define TIDEMARK_ALLOCATOR_UNCACHED_H

#include "allocator/core.h"

// Makes what the functions below use. Statuses of direct_allocator_create.
enum base_status cca__uncached_init(struct cca *cca) BASE_MUST_USE;

// In place of the caching allocator's own, as allocator.h has them.
enum base_status cca__uncached_malloc(struct allocator *allocator, int device, size_t size,
                                      cudaStream_t stream, void **pointer);
enum base_status cca__uncached_free(struct allocator *allocator, void *pointer);
enum base_status cca__uncached_record_stream(struct allocator *allocator, void *pointer,
                                             cudaStream_t stream);
enum base_status cca__uncached_base_allocation(struct allocator *allocator, const void *pointer,
                                               void **base, size_t *size);

#endif
