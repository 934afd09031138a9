// The mode without a cache (cca_options.no_caching): requests go to the direct allocator, and
// nothing else of this one knows of them.
#ifndef TIDEMARK_ALLOCATOR_UNCACHED_H
#define TIDEMARK_ALLOCATOR_UNCACHED_H

#include "allocator/core.h"

// Puts calls of the direct allocator in the place of those that take, give and describe memory.
// Statuses of direct_allocator_create.
enum base_status cca__uncached_init(struct cca *cca) BASE_MUST_USE;

#endif
