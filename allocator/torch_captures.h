// x_torch_faults: frees that PyTorch's assertions break off in a capture. The block is freed for
// the books by then but waits for nothing, so PyTorch never gets it back, nor the pool that it is
// of. Here the free fails the same way, but the block is still the caller's: a second free of it
// succeeds. By default such frees are deferred.
#ifndef TIDEMARK_ALLOCATOR_TORCH_CAPTURES_H
#define TIDEMARK_ALLOCATOR_TORCH_CAPTURES_H

#include "allocator/core.h"

// Of a pending block with uses that is freed in a capture. BASE_INVALID_VALUE, and it is stuck: the
// capture was invalidated; or, with reuse by terminals, its streams are captured into several
// graphs. events_lock held.
enum base_status cca__torch_free_in_capture(struct cca__stream *stream, uint32_t number,
                                            bool is_invalidated, bool reuses) BASE_MUST_USE;

// Whether a block that was found at POINTER and is not handed out is stuck. Its stream's lock held.
bool cca__torch_is_stuck(const struct cca *cca, const struct cca__block *block,
                         const struct cca__pool *pool, const void *pointer);
// The second free of it. *over_limit as in cca__pool_free_locked.
void cca__torch_free_stuck_locked(struct cca__stream *stream, uint32_t number, bool *over_limit);

#endif
