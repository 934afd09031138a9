// The free-memory callbacks of an allocator: shortage.h says what they are for.
#ifndef TIDEMARK_ALLOCATOR_FREE_MEMORY_H
#define TIDEMARK_ALLOCATOR_FREE_MEMORY_H

#include "allocator/core.h"

// Runs all of them; true if one freed something. No lock held.
bool cca__free_memory(struct cca *cca, int device);

#endif
