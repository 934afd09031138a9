// A copy of what is where: every segment and block of the allocator, or of one private pool.
#ifndef TIDEMARK_ALLOCATOR_SNAPSHOT_H
#define TIDEMARK_ALLOCATOR_SNAPSHOT_H

#include "allocator/core.h"

// ID {0, 0}: everything.
enum base_status cca__snapshot(struct cca *cca, struct allocator_pool_id id,
                               struct allocator_snapshot *snapshot) BASE_MUST_USE;

#endif
