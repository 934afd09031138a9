// Requests that go to a private pool: its blocks on a stream are made with the first one.
#ifndef TIDEMARK_ALLOCATOR_PRIVATE_MALLOC_H
#define TIDEMARK_ALLOCATOR_PRIVATE_MALLOC_H

#include "allocator/core.h"

// Serves a request of HOME's handle from POOL, where STREAM has the pool's blocks on it; NULL:
// there were none. *pointer becomes NULL if the pool went meanwhile. No lock held.
enum base_status cca__private_malloc(struct cca__stream *home, struct cca__private_pool *pool,
                                     struct cca__stream *stream, size_t size,
                                     void **pointer) BASE_MUST_USE;

#endif
