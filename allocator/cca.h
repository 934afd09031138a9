// The reference caching allocator: PyTorch's native CUDA caching allocator in C. The same
// requests under the same configuration give the same placement, the same statistics and the same
// errors as PyTorch 2.15 (or, by `x_torch:VERSION`, the rules of an older release where they
// differ).
//
// In one paragraph: a request is rounded (allocator/size_class.h) and looked up in the free
// blocks of its stream's small or large pool: the smallest block that fits, the oldest segment
// among equals. A block much larger than the request is split; a freed block merges with free
// neighbours. Without a fit a new segment is taken from the device; when the device has none,
// cached segments are released, a few first, then all, and the device is asked again.
//
// An allocator is an object: many configurations live in one process. The order of
// locks is in allocator/core.h.
//
// Threads: any thread may allocate for any stream and free any block. A request that the cache
// serves never waits for a driver call that another thread makes, with one exception: the free
// memory of a stream's expandable segments that a growth or a release of that stream works on is
// not to be had meanwhile.
//
// Fork: a child process may do nothing with its parent's allocators, since CUDA does not pass to
// it. Every call there is refused without touching anything, BASE_UNSUPPORTED (allocator_free of
// NULL is well, allocator_destroy and cca_check do nothing); the parent's are as they were. A child
// that needs a device starts a program (exec), or the parent forks before it uses CUDA.
//
// Calls whose names begin with cca_ are for this allocator, with its cache or without. For one of
// another kind (allocator/create.h) they are refused, BASE_UNSUPPORTED; cca_check aborts.
#ifndef TIDEMARK_ALLOCATOR_CCA_H
#define TIDEMARK_ALLOCATOR_CCA_H

#include "allocator/shortage.h"

// Told what PyTorch warns of and goes on: one line without its end. It may be called with locks of
// the allocator held and must not call the allocator.
struct cca_warning_observer {
    void (*warning)(void *context, const char *text);
    void *context;
};

// The time, for what happens at most so often.
struct cca_clock {
    uint64_t (*now_ns)(void *context);
    void *context;
};

struct cca_options {
    // PyTorch's configuration string (PYTORCH_CUDA_ALLOC_CONF), plus keys of our own that start
    // with `x_`. NULL: "".
    const char *config;
    // Memory the allocator may take of each device, as a fraction (0..1); `fraction_set` false:
    // no limit.
    double fraction;
    bool fraction_set;
    // PYTORCH_NO_CUDA_MEMORY_CACHING: every request is a cudaMalloc, every free a cudaFree; as in
    // PyTorch, statistics, observer and snapshot know nothing of them, and running out of memory is
    // a plain BASE_CUDA. allocator/direct.h is the same with statistics.
    bool no_caching;
    // Without a function: warnings are lines on stderr.
    struct cca_warning_observer warnings;
    // allocator_record_stream takes any address inside a block, as a view of a tensor has one, and
    // means the block. With this it takes, as all other calls do, only what allocator_malloc
    // returned, and refuses the rest: BASE_INVALID_POINTER.
    bool refuse_interior_pointers;
    // Without a function: CLOCK_MONOTONIC.
    struct cca_clock clock;
};

// What PyTorch takes from the environment: the settings (cca_settings_environment), and
// PYTORCH_NO_CUDA_MEMORY_CACHING, which is on with "1" and off with "0"; any other value is ignored
// with a warning. Sets `config` (it points into the environment) and `no_caching`, and nothing
// else.
void cca_options_from_environment(struct cca_options *options);

// BASE_INVALID_CONFIG says which key or value is wrong and what would be right.
enum base_status cca_allocator_create(const struct cca_options *options,
                                      struct allocator **allocator) BASE_MUST_USE;

// Checks a configuration string without making an allocator; the same statuses and sentences.
enum base_status cca_config_check(const char *config) BASE_MUST_USE;

// Replaces the settings at run time, as PyTorch's setter does: max_split_size, rounding, gc
// threshold and max_non_split_rounding fall back to their defaults first, other keys keep their
// value. BASE_INVALID_CONFIG: what was read before the error is in force, as in PyTorch. Memory in
// use and cached stays as it is. At any time: takes every lock.
enum base_status cca_set_config(struct allocator *allocator, const char *config) BASE_MUST_USE;

// torch.cuda.set_per_process_memory_fraction: what the allocator may reserve of the device; what it
// has already stays. 1 removes the limit. BASE_INVALID_VALUE outside [0, 1]. The second tells what
// is in force, from whole bytes; 1 where there is no limit.
enum base_status cca_set_memory_fraction(struct allocator *allocator, int device,
                                         double fraction) BASE_MUST_USE;
enum base_status cca_memory_fraction(struct allocator *allocator, int device,
                                     double *fraction) BASE_MUST_USE;

// What a request of SIZE bytes becomes under the settings in force: the block's size, and the
// size of the segment that would be taken if no cached block fits.
enum base_status cca_round_size(struct allocator *allocator, size_t size, size_t *rounded,
                                size_t *segment) BASE_MUST_USE;

// Before other threads use the allocator. NULL: lines on stderr again.
enum base_status cca_set_warning_observer(struct allocator *allocator,
                                          const struct cca_warning_observer *observer);

// Serves a request at ADDRESS: a free block of STREAM must hold all of it there. Used to put memory
// back where it was. Nothing is taken from the device: BASE_INVALID_VALUE if there is no such
// block, or if ADDRESS is no multiple of 512. As in PyTorch, what lies before ADDRESS in the free
// block is handed out and freed again on the way, which events and statistics show. Cost: a walk
// over the stream's free blocks, under the locks of all streams of the device.
enum base_status cca_malloc_at(struct allocator *allocator, int device, size_t size,
                               cudaStream_t stream, void *address, void **pointer) BASE_MUST_USE;

// Expandable segments. A *class* is a name that streams share, for which
// expandable_segments_reserve_by_class may say how much address space their segments reserve. NULL
// or "": the stream has none. Segments that exist stay as they are.
enum base_status cca_set_stream_reserve_class(struct allocator *allocator, int device,
                                              cudaStream_t stream, const char *name) BASE_MUST_USE;
// The part of the device's memory that the class reserves where no setting says anything.
enum base_status cca_set_reserve_class_default(struct allocator *allocator, const char *name,
                                               double fraction) BASE_MUST_USE;

// Lets PEER read and write DEVICE's expandable segments, those to come included; memory of
// cudaMalloc follows cudaDeviceEnablePeerAccess. There is no way back. BASE_INVALID_VALUE,
// BASE_CUDA; PEER then has access to some of them or to none.
enum base_status cca_enable_peer_access(struct allocator *allocator, int device,
                                        int peer) BASE_MUST_USE;

// What is mapped of each expandable segment. As in PyTorch, those of the default stream are left
// out.
struct cca_expandable_segment {
    cudaStream_t stream;
    bool is_large;
    size_t mapped_bytes;
};
// Sets *segments to an array that the caller frees, in no order.
enum base_status cca_expandable_segments(struct allocator *allocator, int device,
                                         struct cca_expandable_segment **segments,
                                         size_t *count) BASE_MUST_USE;

// Memory that was freed but waits for the events of other streams (record_stream). A block with
// several events is counted once, in `blocks`, until the last of them is complete and a request has
// seen it; `finished` and `stuck` ask for all its events, `behind` for one.
struct cca_pending_frees {
    size_t blocks, bytes; // all: what allocator_stats calls active, less what is allocated
    // All its events are complete and a poll gets at them: the next request frees it.
    size_t finished_blocks, finished_bytes;
    // An event of it lies behind an unfinished one in the queue of its stream, where a poll does
    // not look (x_skip_stuck does)
    size_t behind_blocks, behind_bytes;
    // Of these, all its events are complete: held only by what is in front. Events of one CUDA
    // stream complete in order; it takes several streams behind one handle (cudaStreamPerThread, a
    // stream destroyed and made anew).
    size_t stuck_blocks, stuck_bytes;
    size_t events; // that are queued
    // Freed in a graph capture (allocator/captures.h): they have no events yet
    size_t deferred_blocks, deferred_bytes;
};
// Asks every queued event, and changes nothing. Cost: one cudaEventQuery an event under the lock
// that polling takes; for reports, not for a hot path. Polls of other threads wait meanwhile.
// BASE_CUDA: an event could not be asked. Beyond PyTorch.
enum base_status cca_pending_frees(struct allocator *allocator, int device,
                                   struct cca_pending_frees *numbers) BASE_MUST_USE;

// History: what was decided, in order, with the stacks of the calls; allocator_snapshot copies it
// out. torch.cuda.memory._record_memory_history.
//
//     status = cca_record_history(allocator, &(struct cca_history_options){
//         .enabled = CCA_HISTORY_ALL, .context = CCA_CONTEXT_ALL, .max_entries = 100000});
//
// docs/history.md shows how to look at it.
enum cca_history {
    CCA_HISTORY_OFF,   // and forget what was recorded
    CCA_HISTORY_STATE, // where the blocks were allocated, and the last entry
    CCA_HISTORY_ALL,
};
// The calls whose stacks are looked for, each level with those before it. The entry of a free
// without its own has the block's.
enum cca_history_context {
    CCA_CONTEXT_NEVER,
    CCA_CONTEXT_STATE, // allocations, for their blocks and segments; entries have no stacks
    CCA_CONTEXT_ALLOC, // the same, for their entries too
    CCA_CONTEXT_ALL,   // frees as well
};
struct cca_history_options {
    enum cca_history enabled;
    enum cca_history_context context;
    size_t max_entries; // the newest of each device are kept; 0: one. At most 2^32
};
// BASE_INVALID_VALUE; BASE_HOST_MEMORY, and history is off then unless it was on. At any time:
// takes every lock. A change of options forgets nothing but the oldest entries, if there are to be
// fewer.
//
// Recording never fails a request: an entry that finds no memory is left out, with all before it.
// An entry takes 40 bytes. Entries of one stream that follow each other within a quarter of a
// microsecond may share a time, as may up to three that come after them. Stacks are found by frame
// pointers (-fno-omit-frame-pointer), their innermost 32 frames.
enum base_status cca_record_history(struct allocator *allocator,
                                    const struct cca_history_options *options) BASE_MUST_USE;

// Walks everything and aborts on the first broken invariant: segments are tiled exactly by their
// blocks, free indices hold what they should, statistics add up. For tests and stress: it takes
// every lock.
void cca_check(struct allocator *allocator);

#endif
