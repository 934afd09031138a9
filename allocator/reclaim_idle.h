// x_reclaim_idle: a segment that lies idle in the cache of one stream serves another one.
//
// PyTorch never does this: what a stream that is no longer used left in its cache stays reserved
// until everything is released (Megatron-LM#6885, pt#182222). Here the segment changes hands before
// the device is asked. What makes it safe is an order on the device, not a wait of the host: an
// event is recorded on the stream that had the segment, behind all that it used the memory for, and
// the requesting stream waits for it.
#ifndef TIDEMARK_ALLOCATOR_RECLAIM_IDLE_H
#define TIDEMARK_ALLOCATOR_RECLAIM_IDLE_H

#include "allocator/core.h"

// How many free blocks of a stream are looked at for one that is a whole segment.
#define CCA__IDLE_LOOKS_MAX 64

// Moves the smallest wholly free segment of cudaMalloc that another stream of the device caches and
// that serves a request of ROUNDED bytes into POOL's free blocks; *moved: there was one. SIZE, the
// segment that the device would be asked for, bounds it: one that is larger by
// max_non_split_rounding or more stays where it is. Of equal ones that of the stream with the lowest
// handle is taken. Neither stream may be capturing, nor be
// cudaStreamPerThread, which names another stream in each thread. A segment whose streams cannot be
// ordered (one was destroyed, say) stays where it is.
//
// At most two calls that ask about captures, one record and one wait. The observer is told of it as
// a segment freed and a segment taken at the same address. growth_lock held.
enum base_status cca__reclaim_idle_locked(struct cca__pool *pool, size_t rounded, size_t size,
                                          bool *moved) BASE_MUST_USE;

#endif
