// Any allocator from one text, as every program's --config takes it.
//
//     "max_split_size_mb:128"   the caching allocator with that configuration ("": its defaults)
//     "x_allocator:direct"      cudaMalloc and cudaFree
//     "x_allocator:async"       cudaMallocAsync and cudaFreeAsync (allocator/async.h);
//                               x_release_threshold:SIZE may follow
//     "backend:cudaMallocAsync" the same, as PyTorch spells it, anywhere in a configuration, whose
//                               other keys are checked and then ignored, as PyTorch does
//     "x_allocator:environment" the caching allocator as PyTorch's variables have it:
//                               PYTORCH_CUDA_ALLOC_CONF and its kin (the first that is set), and
//                               PYTORCH_NO_CUDA_MEMORY_CACHING
//
// `x_allocator:caching` may stand first too; the rest of the text is that allocator's own
// configuration.
#ifndef TIDEMARK_ALLOCATOR_CREATE_H
#define TIDEMARK_ALLOCATOR_CREATE_H

#include "allocator/allocator.h"

#include <stdbool.h>

// FRACTION outside [0, 1): no limit. BASE_INVALID_CONFIG names an unknown allocator and those
// there are.
enum base_status allocator_create(const char *text, double fraction,
                                  struct allocator **allocator) BASE_MUST_USE;

// Whether TEXT names the caching allocator or none at all; false also of an unknown name.
bool allocator_text_is_caching(const char *text);
// Whether it names the driver's pools, in either spelling.
bool allocator_text_is_async(const char *text);

#endif
