// Pre-emptive rejection (throw_on_cudamalloc_oom): shortage.h says when.
#ifndef TIDEMARK_ALLOCATOR_REJECTION_H
#define TIDEMARK_ALLOCATOR_REJECTION_H

#include "allocator/core.h"

// Whether a segment of SIZE bytes is rejected; then it is counted and *rejection says why.
// growth_lock held.
bool cca__rejects_locked(struct cca__device *device, size_t size, struct cca_rejection *rejection);

// Tells the observer, warns at most once a minute and sets the thread's sentence for a request of
// REQUESTED bytes; returns BASE_OUT_OF_MEMORY. No lock held.
enum base_status cca__rejection_tell(struct cca *cca, const struct cca_rejection *rejection,
                                     size_t requested);

#endif
