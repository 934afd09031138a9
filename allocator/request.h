// The calls of allocator.h that hand out and take back, as entries of its table of operations.
//
// A hit: find device and stream without a lock, take the stream's lock, find a block, hand it out.
// It calls nothing, and ends in a call where something is left to do, so that it needs no stack of
// its own.
#ifndef TIDEMARK_ALLOCATOR_REQUEST_H
#define TIDEMARK_ALLOCATOR_REQUEST_H

#include "allocator/allocator.h"

enum base_status cca__malloc(struct allocator *allocator, int ordinal, size_t size,
                             cudaStream_t handle, void **pointer) BASE_MUST_USE;
enum base_status cca__free(struct allocator *allocator, void *pointer) BASE_MUST_USE;
enum base_status cca__record_stream(struct allocator *allocator, void *pointer,
                                    cudaStream_t handle) BASE_MUST_USE;
enum base_status cca__empty_cache(struct allocator *allocator) BASE_MUST_USE;

#endif
