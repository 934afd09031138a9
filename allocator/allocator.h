// The allocator interface: what a tensor's storage holds, what every workload, benchmark and
// stress program drives. It is PyTorch's allocator base class in C: one object, several devices,
// streams as CUDA handles.
//
//     struct allocator *allocator;
//     status = cca_allocator_create(&(struct cca_options){.config = ""}, &allocator);
//     status = allocator_malloc(allocator, 0, 1 << 20, stream, &pointer);
//     status = allocator_free(allocator, pointer);
//     allocator_destroy(allocator);
//
// Implementations: the caching allocator (allocator/cca.h), `direct` (allocator/direct.h:
// cudaMalloc and cudaFree), `async` (allocator/async.h: cudaMallocAsync and cudaFreeAsync).
//
// Terms, each with one meaning. A *segment* is memory taken from the device by one call
// (cudaMalloc); a *block* is a piece of a segment that is handed out or free as a whole;
// *allocated* bytes are in blocks that the program holds, *active* ones are allocated or wait for
// events of a free, *reserved* ones are all in segments, *requested* ones what the program asked
// for; an *inactive split* block is free while its segment is not wholly free.
//
// Every call is thread-safe unless it says otherwise. Statuses carry a sentence in
// base_status_message(). Out-parameters are set only on success.
#ifndef TIDEMARK_ALLOCATOR_ALLOCATOR_H
#define TIDEMARK_ALLOCATOR_ALLOCATOR_H

#include "base/status.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Which pool a request is routed to. {0, 0} is the default; captures generate {n, 0}, user pools
// have {0, n}.
struct allocator_pool_id {
    uint64_t capture, user;
};

//------------------------------------------------------------------------------------------------
// Statistics, by PyTorch's names (torch.cuda.memory_stats).

struct allocator_stat {
    int64_t current;   // now
    int64_t peak;      // largest since the last reset of peaks
    int64_t allocated; // sum of increases since the last reset of accumulated values
    int64_t freed;     // sum of decreases since then
};

enum allocator_stat_kind {
    ALLOCATOR_STAT_ALL,
    ALLOCATOR_STAT_SMALL_POOL,
    ALLOCATOR_STAT_LARGE_POOL,
    ALLOCATOR_STAT_KIND_COUNT
};

// X(name): the families that exist for all, the small pool and the large pool. Counts, then
// bytes.
#define ALLOCATOR_STAT_LIST(X)                                                                     \
    X(allocation)                                                                                  \
    X(segment)                                                                                     \
    X(active)                                                                                      \
    X(inactive_split)                                                                              \
    X(allocated_bytes)                                                                             \
    X(reserved_bytes)                                                                              \
    X(active_bytes)                                                                                \
    X(inactive_split_bytes)                                                                        \
    X(requested_bytes)

struct allocator_stats {
#define ALLOCATOR_STAT_FIELD(name) struct allocator_stat name[ALLOCATOR_STAT_KIND_COUNT];
    ALLOCATOR_STAT_LIST(ALLOCATOR_STAT_FIELD)
#undef ALLOCATOR_STAT_FIELD
    struct allocator_stat oversize_allocations; // of at least max_split_size
    struct allocator_stat oversize_segments;
    int64_t num_alloc_retries;    // device calls made again after everything cached was released
    int64_t num_ooms;             // requests that failed for want of memory
    int64_t num_sync_all_streams; // waits for all pending frees
    int64_t num_device_alloc;     // cudaMalloc calls that gave a segment (and mappings)
    int64_t num_device_free;
    int64_t num_oom_rejections; // requests refused before the device was asked
    int64_t max_split_size;     // bytes, -1: unlimited
};

//------------------------------------------------------------------------------------------------
// Observer: every request and every segment event, in the order of the decisions. Names are those
// of PyTorch's trace.

// X(NAME, text)
#define ALLOCATOR_ACTION_LIST(X)                                                                   \
    X(ALLOC, "alloc")                                                                              \
    X(FREE_REQUESTED, "free_requested")                                                            \
    X(FREE_COMPLETED, "free_completed")                                                            \
    X(SEGMENT_ALLOC, "segment_alloc")                                                              \
    X(SEGMENT_FREE, "segment_free")                                                                \
    X(SEGMENT_MAP, "segment_map")                                                                  \
    X(SEGMENT_UNMAP, "segment_unmap")                                                              \
    X(SNAPSHOT, "snapshot")                                                                        \
    X(OOM, "oom")                                                                                  \
    X(EMPTY_CACHE, "empty_cache") /* ours: the request, before what it releases */                 \
    X(SEGMENT_RESERVE, "segment_reserve") /* ours: addresses of an expandable segment */           \
    X(SEGMENT_UNRESERVE, "segment_unreserve")

enum allocator_action {
#define ALLOCATOR_ACTION_ENUMERATOR(name, text) ALLOCATOR_##name,
    ALLOCATOR_ACTION_LIST(ALLOCATOR_ACTION_ENUMERATOR)
#undef ALLOCATOR_ACTION_ENUMERATOR
    ALLOCATOR_ACTION_COUNT
};
const char *allocator_action_name(enum allocator_action action);

struct allocator_event {
    enum allocator_action action;
    int device;
    void *address; // block or segment; NULL for OOM, SNAPSHOT and EMPTY_CACHE
    // Bytes: requested ones of a block, all of a segment; SNAPSHOT: active bytes; OOM: rounded
    // request
    size_t size;
    size_t block_size;   // ALLOC and FREE_*: bytes of the block; else 0
    size_t device_free;  // OOM: what cudaMemGetInfo called free; else 0
    cudaStream_t stream; // the allocation stream
    struct allocator_pool_id pool;
};

// Called inside the allocator, under a lock of it: it must not call the allocator, must return
// soon, and may be called by several threads at once for different streams.
struct allocator_observer {
    void (*event)(void *context, const struct allocator_event *event);
    void *context;
};

//------------------------------------------------------------------------------------------------
// Snapshot: what is where, by address.

enum allocator_block_state {
    ALLOCATOR_BLOCK_INACTIVE,
    ALLOCATOR_BLOCK_ALLOCATED,
    ALLOCATOR_BLOCK_PENDING_FREE
};

struct allocator_snapshot_block {
    void *address;
    size_t size;
    size_t requested_size; // of its last use; 0 if never handed out
    enum allocator_block_state state;
    uint32_t stack; // where it was allocated, while it is not inactive
};

struct allocator_snapshot_segment {
    int device;
    void *address;
    size_t total_size, allocated_size, active_size, requested_size;
    cudaStream_t stream;
    bool is_large, is_expandable;
    uint32_t stack; // of the call that it was taken for
    struct allocator_pool_id pool;
    uint64_t registration;           // rises with every new segment
    size_t block_first, block_count; // its blocks, in allocator_snapshot.blocks, by address
};

// The history, where it is recorded (cca_record_history in allocator/cca.h): what was done, as in
// the events above, and whence.
struct allocator_snapshot_entry {
    void *address; // NULL: OOM, SNAPSHOT
    size_t size, device_free; // as in the event
    cudaStream_t stream;
    uint64_t time_us; // since the epoch; never less than the entry before
    struct allocator_pool_id pool;
    enum allocator_action action;
    uint32_t stack;
};

// A device's part of the entries, oldest first: the newest ones, without a hole.
struct allocator_snapshot_trace {
    int device;
    size_t entry_first, entry_count;
    size_t total_bytes; // of the device
    double fraction;    // of it that the process may take; 0: no limit
};

// Return addresses, innermost first, in allocator_snapshot.frames. The first ones are the
// allocator's own. base/symbol.h knows their functions and lines.
struct allocator_snapshot_stack {
    size_t frame_first, frame_count;
};

struct cca_settings;

struct allocator_snapshot {
    struct allocator_snapshot_segment *segments; // by device, then address
    size_t segment_count;
    struct allocator_snapshot_block *blocks;
    size_t block_count;
    struct allocator_snapshot_trace *traces; // by device; none where nothing is recorded
    size_t trace_count;
    struct allocator_snapshot_entry *entries;
    size_t entry_count;
    struct allocator_snapshot_stack *stacks; // what `stack` is an index of; 0 is "none"
    size_t stack_count;
    void **frames;
    size_t frame_count;
    struct cca_settings *settings; // of the caching allocator (allocator/settings.h), else NULL
};
void allocator_snapshot_deinit(struct allocator_snapshot *snapshot);

//------------------------------------------------------------------------------------------------
// The interface. An implementation embeds struct allocator first and fills the table.

struct allocator;

struct allocator_operations {
    const char *name; // "caching", "direct", "async"
    enum base_status (*malloc)(struct allocator *allocator, int device, size_t size,
                               cudaStream_t stream, void **pointer);
    enum base_status (*free)(struct allocator *allocator, void *pointer);
    enum base_status (*record_stream)(struct allocator *allocator, void *pointer,
                                      cudaStream_t stream);
    enum base_status (*empty_cache)(struct allocator *allocator);
    enum base_status (*base_allocation)(struct allocator *allocator, const void *pointer,
                                        void **base, size_t *size);
    enum base_status (*largest_block)(struct allocator *allocator, int device, size_t *size);
    enum base_status (*stats)(struct allocator *allocator, int device,
                              struct allocator_stats *stats);
    enum base_status (*reset_peak_stats)(struct allocator *allocator, int device);
    enum base_status (*reset_accumulated_stats)(struct allocator *allocator, int device);
    enum base_status (*snapshot)(struct allocator *allocator, struct allocator_snapshot *snapshot);
    enum base_status (*set_observer)(struct allocator *allocator,
                                     const struct allocator_observer *observer);
    void (*destroy)(struct allocator *allocator);
};

struct allocator {
    const struct allocator_operations *operations;
};

// Takes SIZE bytes on DEVICE for use on STREAM. Size 0 gives NULL and touches nothing. The memory
// may be used on STREAM at once, on another stream when that is ordered behind STREAM and
// allocator_record_stream says so before the free. It is not cleared. Addresses are as far aligned
// as the device's own, up to 512 bytes.
//
// BASE_OUT_OF_MEMORY carries PyTorch's text and numbers; BASE_CUDA: a device call failed for
// another reason; BASE_INVALID_VALUE: no such device; BASE_HOST_MEMORY, BASE_LIMIT. Nothing is
// handed out then.
//
// Cost of a cache hit: one uncontended lock and no device call, but where frees wait for other
// streams one event query for each such stream and each free that is done. A miss calls the device;
// before it fails it waits, on the host, for the frees that wait and returns what is cached.
static inline enum base_status allocator_malloc(struct allocator *allocator, int device,
                                                size_t size, cudaStream_t stream, void **pointer) {
    return allocator->operations->malloc(allocator, device, size, stream, pointer);
}

// Gives a block back; from any thread, and without waiting for the device: what comes on the stream
// that it was taken for may have it next. NULL is ignored. BASE_INVALID_POINTER for anything that
// allocator_malloc did not return or that was freed already; BASE_CUDA or BASE_HOST_MEMORY: no
// event could be recorded on a stream that uses it, and it is still the caller's. Cost: one
// uncontended lock, and for each stream of allocator_record_stream an event.
static inline enum base_status allocator_free(struct allocator *allocator, void *pointer) {
    return allocator->operations->free(allocator, pointer);
}

// Says that work on STREAM uses the block: after its free it is handed out again only when that
// work is done. An address inside the block, of a view, means the block (an implementation may be
// told to refuse it). STREAM must exist until the block was freed; after the free it may be
// destroyed. The block's own stream and NULL as POINTER are nothing. BASE_INVALID_POINTER as for a
// free, BASE_HOST_MEMORY, BASE_LIMIT. Makes no device call.
static inline enum base_status allocator_record_stream(struct allocator *allocator, void *pointer,
                                                       cudaStream_t stream) {
    return allocator->operations->record_stream(allocator, pointer, stream);
}

// Waits, on the host, for all frees that wait for other streams, and returns what is wholly free to
// its device: segments, and the pages of expandable ones. BASE_CUDA: the device refused something;
// what went before it is gone, the rest is still cached.
static inline enum base_status allocator_empty_cache(struct allocator *allocator) {
    return allocator->operations->empty_cache(allocator);
}

// Base address and size of the segment that holds the block at POINTER (for inter-process
// handles). An address inside the block is refused, as in PyTorch: BASE_INVALID_POINTER. So is a
// block of an expandable segment, which has no such base: BASE_INVALID_VALUE.
static inline enum base_status allocator_base_allocation(struct allocator *allocator,
                                                         const void *pointer, void **base,
                                                         size_t *size) {
    return allocator->operations->base_allocation(allocator, pointer, base, size);
}

// The largest request that would succeed without a release: the larger of the device's free bytes
// and the largest cached block, of whatever stream and private pool. Asks the device.
static inline enum base_status allocator_largest_block(struct allocator *allocator, int device,
                                                       size_t *size) {
    return allocator->operations->largest_block(allocator, device, size);
}

// Exact over all streams at one moment. Not for a hot path: takes every lock of the device. The
// resets set peaks to what is now, and sums (`allocated`, `freed`, the num_ counters) to 0.
static inline enum base_status allocator_stats(struct allocator *allocator, int device,
                                               struct allocator_stats *stats) {
    return allocator->operations->stats(allocator, device, stats);
}
static inline enum base_status allocator_reset_peak_stats(struct allocator *allocator, int device) {
    return allocator->operations->reset_peak_stats(allocator, device);
}
static inline enum base_status allocator_reset_accumulated_stats(struct allocator *allocator,
                                                                 int device) {
    return allocator->operations->reset_accumulated_stats(allocator, device);
}

// Copies out every segment and block, with the history: each device at one moment. The caller calls
// allocator_snapshot_deinit. Takes every lock. BASE_HOST_MEMORY.
static inline enum base_status allocator_snapshot(struct allocator *allocator,
                                                  struct allocator_snapshot *snapshot) {
    return allocator->operations->snapshot(allocator, snapshot);
}

// NULL removes it. Only while no other thread is in the allocator.
static inline enum base_status allocator_set_observer(struct allocator *allocator,
                                                      const struct allocator_observer *observer) {
    return allocator->operations->set_observer(allocator, observer);
}

// Returns all memory to the devices, handed-out blocks and frees that wait included. Only while no
// other thread is in the allocator. NULL is ignored.
static inline void allocator_destroy(struct allocator *allocator) {
    if (allocator != NULL) allocator->operations->destroy(allocator);
}

#endif
