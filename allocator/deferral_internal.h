// What the files of deferral.h share: which form of reuse is at work, and the end of a deferral.
// captures_lock held.
#ifndef TIDEMARK_ALLOCATOR_DEFERRAL_INTERNAL_H
#define TIDEMARK_ALLOCATOR_DEFERRAL_INTERNAL_H

#include "allocator/deferral.h"

// The policies, set up as the settings want them.
struct cca__capture_reuse *cca__reuse_of(struct cca__device *device);
struct cca__capture_markers *cca__markers_of(struct cca__device *device);

// The block is not deferred any more, and becomes free.
void cca__deferred_complete(struct cca__device *device, uint32_t number);

// Its steps: the block leaves the list; the policy forgets it.
void cca__deferred_unlink(struct cca *cca, struct cca__captures *captures, uint32_t number);
void cca__deferred_unwatch(struct cca__device *device, uint32_t number);

// Tells requests what there is; events_lock held.
void cca__captures_tell_locked(struct cca__device *device);

#endif
