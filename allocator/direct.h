// The allocator without a cache: every request is a cudaMalloc, every free a cudaFree. The
// baseline that shows what caching buys, and a way to expose missing stream order that a cache
// hides.
//
// record_stream needs nothing: cudaFree waits for all work of the device. A block is its own
// segment.
#ifndef TIDEMARK_ALLOCATOR_DIRECT_H
#define TIDEMARK_ALLOCATOR_DIRECT_H

#include "allocator/allocator.h"

enum base_status direct_allocator_create(struct allocator **allocator) BASE_MUST_USE;

#endif
