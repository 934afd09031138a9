// An allocator whose blocks the simulator's race checker knows: it passes every call on to another
// allocator and tells the checker which block is handed out to whom, used by which stream, given
// back (sim_block_take, sim_block_use, sim_block_give in simulator/sim_race.h). So a forgotten
// record_stream is reported as `reuse`, under whichever allocator the program runs.
//
//     status = cca_allocator_create(&options, &caching);
//     status = workload_race_blocks_create(caching, &allocator);
//     ... allocator_malloc(allocator, ...), allocator_record_stream(allocator, ...) ...
//     allocator_destroy(allocator);
//     allocator_destroy(caching);
//
// A block is what the allocator calls one: the requested bytes and what it rounded them up by. It
// ends with the request of its free, not when that is completed: from then on the program has no
// right to the memory, and the allocator must see that its last uses are ordered before the next.
//
// sim_race_start's blocks_only goes well with it: then the use of a freed block is reported by its
// address alone.
//
// Events of the allocator's observer tell of requests and frees; record_stream is in no event, as
// in PyTorch's own trace, so its call is seen here. Without the simulator (--config=cuda) there is
// no such target.
#ifndef TIDEMARK_WORKLOAD_RACE_BLOCKS_H
#define TIDEMARK_WORKLOAD_RACE_BLOCKS_H

#include "allocator/allocator.h"

// INNER stays the caller's, who destroys it after *allocator; until then nobody else may set its
// observer or take memory from it. BASE_HOST_MEMORY. Threads: as INNER. Cost: a lock and two to
// three calls of the simulator's control besides INNER's; record_stream of an address inside a block
// takes a snapshot.
enum base_status workload_race_blocks_create(struct allocator *inner,
                                             struct allocator **allocator) BASE_MUST_USE;

// The checker's number of the block at POINTER, as allocator_malloc returned it; 0: there is none.
// A kernel that is launched with it in its accesses (struct sim_access) means that block, and its
// use behind the block's free is reported.
uint64_t workload_race_blocks_number(struct allocator *allocator, const void *pointer);

#endif
