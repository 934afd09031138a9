// When a device's memory runs short: who may free some first, who is told, and with which numbers.
//
// A request that no cached block fits goes this way, in PyTorch's order:
//     1. the free-memory callbacks run; if one says that it freed something, the cache is searched
//        again
//     2. garbage collection, if a fraction and garbage_collection_threshold are set
//     3. a new segment; the fraction may refuse it, and so may throw_on_cudamalloc_oom, which ends
//        the request at once (a *rejection*)
//     .  the free blocks of private pools that allow it (cca_pool_set_use_on_oom)
//     4. with max_split_size: release of a few cached oversize blocks, and a new segment
//     5. wait for all frees that are pending, release of everything cached, and a new segment
//     6. out of memory
// Settings of our own add to it: x_reclaim_idle before 2, x_wait:enough and x_retry_search in 5.
#ifndef TIDEMARK_ALLOCATOR_SHORTAGE_H
#define TIDEMARK_ALLOCATOR_SHORTAGE_H

#include "allocator/allocator.h"

//------------------------------------------------------------------------------------------------
// Before more memory is taken.

// Asked on every miss to give memory back: true if it freed some. No lock is held: it may call the
// allocator. A miss of its own runs no callbacks. Several threads may be in it at once.
struct cca_free_memory_callback {
    bool (*free_memory)(void *context, int device);
    void *context;
};
#define CCA_FREE_MEMORY_CALLBACKS_MAX 16

// All callbacks run, in the order in which they were added, whatever each returns. BASE_LIMIT.
enum base_status
cca_add_free_memory_callback(struct allocator *allocator,
                             const struct cca_free_memory_callback *callback) BASE_MUST_USE;
// Misses that began before may still be in it. BASE_INVALID_VALUE if it was not added.
enum base_status
cca_remove_free_memory_callback(struct allocator *allocator,
                                const struct cca_free_memory_callback *callback) BASE_MUST_USE;

//------------------------------------------------------------------------------------------------
// Out of memory.

// A process and what it holds of a device.
struct cca_process {
    int64_t number; // its pid
    size_t used_bytes;
};
#define CCA_PROCESSES_MAX 16

// Names the processes that hold memory of a device: fills at most CAPACITY entries and sets *count.
// False: it is not known. Called once for each out-of-memory error, with no lock held.
struct cca_process_source {
    bool (*list)(void *context, int device, struct cca_process *processes, size_t capacity,
                 size_t *count);
    void *context;
};

// NULL: NVML, if its library is there (the start value). Before other threads use the allocator.
enum base_status cca_set_process_source(struct allocator *allocator,
                                        const struct cca_process_source *source);

// The numbers behind an out-of-memory error, bytes; the sentence in base_status_message() prints
// them PyTorch's way. docs/oom-message.md takes it apart.
//     allocated + unallocated = reserved bytes
//     private_free <= allocated
//     free + used_bytes of all processes = total
struct cca_out_of_memory {
    int device;
    size_t tried;        // size of the segment asked for, not of the request
    size_t total, free;  // of the device
    bool free_known;     // false: the device could not be asked, free is 0
    bool limited;        // a fraction is set
    size_t allowed;      // then: the bytes it allows
    size_t allocated;    // by the program, free blocks of private pools included
    size_t private_free; // in private pools
    size_t unallocated;  // reserved - allocated - private
    bool expandable;     // expandable segments are on
    // The address space that was configured for an expandable segment of the request's stream, if
    // the request is larger; else 0
    size_t exceeded_reserve;
    size_t rounded;  // the request, rounded
    bool raw_failed; // the private pool's own allocator had nothing (allocator/pools.h)
    // Who holds memory of the device, this process included; none where it is not known.
    struct cca_process processes[CCA_PROCESSES_MAX];
    size_t process_count;
};

// Called once for each request that fails for want of memory, without locks held.
struct cca_out_of_memory_observer {
    void (*event)(void *context, const struct cca_out_of_memory *numbers);
    void *context;
};
enum base_status
cca_set_out_of_memory_observer(struct allocator *allocator,
                               const struct cca_out_of_memory_observer *observer) BASE_MUST_USE;

//------------------------------------------------------------------------------------------------
// Rejections: with throw_on_cudamalloc_oom a segment beyond per_process_memory_fraction of the
// device is refused before the device is asked, and what is cached stays cached. It is no `oom` of
// the statistics. PyTorch tells its observers on another thread, here they are told in the call.

struct cca_rejection {
    int device;
    size_t segment_size; // that was needed
    size_t reserved;     // by the allocator
    size_t total;        // of the device
    double fraction;     // per_process_memory_fraction
    size_t limit;        // fraction * total: reserved + segment_size exceed it
};

// Called once for each rejection, without locks held.
struct cca_rejection_observer {
    void (*rejected)(void *context, const struct cca_rejection *rejection);
    void *context;
};
// NULL: nobody. Before other threads use the allocator.
enum base_status cca_set_rejection_observer(struct allocator *allocator,
                                            const struct cca_rejection_observer *observer);

#endif
