// Growing of arrays that only their owner touches.
#ifndef TIDEMARK_ALLOCATOR_ARRAY_H
#define TIDEMARK_ALLOCATOR_ARRAY_H

#include "base/status.h"

#include <stdint.h>
#include <stdlib.h>

// ITEMS, or a copy that is twice as large (FIRST items where there were none), with *capacity to
// match. NULL, with a sentence that there is no memory for so many WHAT, and nothing changed: the
// caller returns BASE_HOST_MEMORY.
static inline void *cca__array_grow(void *items, size_t *capacity, size_t item_bytes, size_t first,
                                    const char *what) {
    const size_t larger = *capacity == 0 ? first : 2 * *capacity;
    void *const grown = larger > SIZE_MAX / item_bytes ? NULL : realloc(items, larger * item_bytes);
    if (grown == NULL)
        (void)base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu %s", larger, what);
    else
        *capacity = larger;
    return grown;
}

#endif
