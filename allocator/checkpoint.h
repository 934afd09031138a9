// Checkpoints of a private pool: what is allocated in it is saved, and later put back to the byte.
//
// PyTorch's trees of CUDA graphs need it. A graph replays with the addresses that it was captured
// with. When another graph is to be captured behind it, in the same pool, the pool must look as it
// did at the end of that replay, so that the new graph allocates around what the old one left.
//
//     struct cca_checkpoint *checkpoint;
//     status = cca_checkpoint_get(allocator, 0, id, &checkpoint);
//     ... the pool is used ...
//     struct cca_restored restored;
//     status = cca_checkpoint_set(allocator, checkpoint, &restored);
//     ... forget restored.freed; own restored.allocated ...
//     cca_restored_deinit(&restored);
//     cca_checkpoint_destroy(checkpoint);
//
// Every call is thread-safe and takes the locks of all streams of the device. But while a pool is
// restored no other thread may use memory of it: it would lose it without a word.
//
// After a failing call the pool is as it was, but that frees of it which waited may be complete.
#ifndef TIDEMARK_ALLOCATOR_CHECKPOINT_H
#define TIDEMARK_ALLOCATOR_CHECKPOINT_H

#include "allocator/pools.h"

// What was where in a pool at one moment. It holds no memory of the device.
struct cca_checkpoint;

// Saves the pool. Frees that a capture deferred are looked at first, as at its end; a block that
// still waits for events is refused, since nobody knows when it will be free: BASE_INVALID_VALUE,
// and so is an id that is no pool. BASE_HOST_MEMORY; BASE_CUDA. The caller destroys the checkpoint,
// which may outlive the pool and the allocator.
enum base_status cca_checkpoint_get(struct allocator *allocator, int device,
                                    struct allocator_pool_id id,
                                    struct cca_checkpoint **checkpoint) BASE_MUST_USE;
void cca_checkpoint_destroy(struct cca_checkpoint *checkpoint); // NULL is ignored

// The caller's until cca_restored_deinit. Both by address.
struct cca_restored {
    void **freed; // were allocated: whoever held them must not free them
    size_t freed_count;
    void **allocated; // are allocated now, those among them that were before: the caller's to free
    size_t allocated_count;
};
void cca_restored_deinit(struct cca_restored *restored);

// Restores the pool, any number of times. As in PyTorch, which events and statistics show: all that
// is allocated is freed; then the blocks of each segment are handed out as they were, whatever the
// settings say about splits; then those that were free are freed. A request counts the bytes of its
// block. Segments that the pool took since are free, and so is what expandable ones have grown by.
//
// A block that other streams use, or that waits for their events, may hold what their work writes:
// the call waits for that work, on the host, before anything changes. PyTorch hands such a block
// out again at once, and fails when its event is complete; x_torch_faults does not wait either, and
// forgets the event.
//
// BASE_INVALID_VALUE: there is no such pool, the checkpoint is another allocator's, saved memory is
// not the pool's any more, or a stream that would have to be waited for is captured.
// BASE_HOST_MEMORY; BASE_CUDA: a wait failed.
enum base_status cca_checkpoint_set(struct allocator *allocator,
                                    const struct cca_checkpoint *checkpoint,
                                    struct cca_restored *restored) BASE_MUST_USE;

// Whether exactly the blocks at ADDRESSES, in any order, are allocated in the pool.
// BASE_INVALID_VALUE if there is no such pool; BASE_HOST_MEMORY.
enum base_status cca_checkpoint_compare_live(struct allocator *allocator, int device,
                                             struct allocator_pool_id id, void *const *addresses,
                                             size_t count, bool *equal) BASE_MUST_USE;

#endif
