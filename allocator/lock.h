// The one seam between the allocator and its locks: whoever changes the kind of lock changes this
// file. Not recursive. The order in which locks are taken is in allocator/core.h.
#ifndef TIDEMARK_ALLOCATOR_LOCK_H
#define TIDEMARK_ALLOCATOR_LOCK_H

#include "base/thread.h"

struct cca__lock {
    struct base_mutex mutex;
};

static inline void cca__lock_init(struct cca__lock *lock) { base_mutex_init(&lock->mutex); }
static inline void cca__lock_deinit(struct cca__lock *lock) { base_mutex_deinit(&lock->mutex); }
static inline void cca__lock_take(struct cca__lock *lock) { base_mutex_lock(&lock->mutex); }
static inline void cca__lock_release(struct cca__lock *lock) { base_mutex_unlock(&lock->mutex); }

#endif
