// The structures of the caching allocator and how they hang together.
//
//     cca ── device ── stream ── pool (small, large) ── free index ── blocks
//      │        │         ├── lock, limits, stock of blocks, segments
//      │        │         └── queue of events
//      │        ├── growth lock, totals, peaks
//      │        └── private pools (private_pool.h): streams of their own
//      └── settings, page table, arenas, pools by number
//
// Locks, in the order in which they are taken:
//     1. settings_lock    cca: one change of settings, one new device or pool number at a time
//     2. growth_lock      device: segments taken and returned, out of memory, snapshots; several in
//                         order of their devices, as those below
//     3. events_lock      device: the queues of events, the pool of events
//     4. captures_lock    device: marks of captures, what is deferred for them
//     5. stream.lock      both pools of one stream; several of one device in order of creation
//     6. leaves           arenas, page table, tally_lock, reserve_lock, callbacks_lock: nothing is
//                        taken under them
// A cache hit takes its stream's lock. Some block of the device waiting for events, it polls them
// first under the events lock, if nobody else has it: no hit waits for a device call of another
// thread. No device call is made under a stream's lock, and no filter of a scope is
// asked under any (pools.h); under the events lock and the captures lock only those on events and
// captures.
#ifndef TIDEMARK_ALLOCATOR_CORE_H
#define TIDEMARK_ALLOCATOR_CORE_H

#include "allocator/address_set.h"
#include "allocator/allocator.h"
#include "allocator/block.h"
#include "allocator/capture_markers.h"
#include "allocator/capture_marks.h"
#include "allocator/capture_reuse.h"
#include "allocator/cca.h"
#include "allocator/config.h"
#include "allocator/event_queue.h"
#include "allocator/free_index.h"
#include "allocator/history.h"
#include "allocator/lock.h"
#include "allocator/page_table.h"
#include "allocator/private_pool.h"
#include "allocator/stats.h"

#include <stddef.h>

#define CCA__DEVICES_MAX 64
#define CCA__STREAMS_MAX 32768 // a pool's number has 16 bits
#define CCA__POOL_SMALL 0
#define CCA__POOL_LARGE 1

// A *special* stream is one whose requests and frees may have to do more than best fit, split and
// merge: because of a setting (expandable segments, max_split_size, divisions), of counting for
// garbage collection, or since somebody watches. Hits look at this one flag.

// The blocks of one stream of one kind. Guarded by the stream's lock.
struct cca__pool {
    _Alignas(64) struct cca__ledger ledger; // so that the second pool begins with a cache line, too
    struct cca__stream *stream;             // never changes
    struct cca__pool *other;                // of the same stream, of the other kind; never changes
    struct cca__free_index index;
    cca__pending pending;
    struct cca__address_set unmapped; // blocks of expandable segments without memory
    // Never changes, from here on.
    struct cca__device *device;
    uint32_t kind_of_free_blocks; // what a block carries: the number, free, no flags
    uint16_t number;              // twice the stream's number, plus 1 for the large one
    bool is_small;
    // Of a private pool; written under the locks of all streams. One byte, so that the size of a
    // pool stays a multiple that is found in one step.
    bool no_split : 1; // free blocks are handed out whole
    bool has_raw : 1;  // segments come from an allocator of its own
};

// Memory that one device call gave, or an expandable segment with all its addresses. Guarded by the
// stream's lock.
struct cca__segment {
    uint64_t address, size;
    uint64_t registration; // rises with each new segment of the allocator
    // x_torch_faults: given back while blocks of it were in use; 0: it is there
    uint64_t gone_bytes;
    uint32_t first_block;
    uint32_t previous, next; // the stream's segments, in no order
    uint32_t directory;      // of the page table, for a small segment; 0
    uint16_t pool;
    uint32_t stack; // of the call that it was taken for, from the history; 0: not known
    struct cca__expandable *expandable; // its memory, guarded by growth_lock; NULL
};
#define CCA__SEGMENTS_MAX ((uint32_t)1 << 22)

// The blocks of one stream handle in one private pool or, of the *default* object, in none. Events
// and uses of a handle are always those of its default object.
struct cca__stream {
    struct cca__device *device; // never changes
    cudaStream_t handle;        // never changes
    uint64_t unused;            // so that a cache line begins with the lock's words
    struct cca__lock lock;
    // Guarded by lock, to the next mark. First what a hit touches.
    bool special;      // requests and frees take the longer path
    bool only_watched; // special for nothing but that
    // What both pools together may have more than the sum of theirs; negative. And when
    // inactive_split_bytes of both must be looked at
    struct cca__counts both_slack;
    int64_t both_split_bytes_bound;
    struct cca__block_cache unused_blocks;
    _Alignas(64) struct cca__pool pools[2];
    struct cca__limits limits[ALLOCATOR_STAT_KIND_COUNT];
    uint32_t first_segment;
    uint32_t unused_uses; // records of uses, linked by next
    int64_t family_limit[CCA__FAMILY_COUNT][ALLOCATOR_STAT_KIND_COUNT];
    // The most that was seen in use when streams met
    int64_t family_most[CCA__FAMILY_COUNT][ALLOCATOR_STAT_KIND_COUNT];
    struct cca__recorder *recorder; // NULL before the first entry of the history
    // The device's streams in order of creation; set under all their locks
    struct cca__stream *created_next;
    // NULL: of no private pool. Written under the growth lock and all streams' locks, while there
    // are no blocks
    struct cca__private_pool *private_pool;
    // Never changes: the default object of the handle, and the next object of a private pool
    // (cca__device.private_streams).
    struct cca__stream *home, *private_next;
    // Guarded by the device's growth lock.
    char *reserve_class; // of its expandable segments; NULL: none
    // Guarded by the device's events lock: events recorded on this stream, oldest first.
    struct cca__event_queue queue;
    // Which streams the pending frees of this one's blocks may wait for: bit cca__stream_bit of
    // each. Written under the events lock; read without it to skip polling (x_poll:own).
    _Atomic uint64_t waits_for;
    struct cca__guards *guards; // guarded by lock (capture_guard.h); NULL: never had any
    // Of a default object: what the driver said when the graph was looked at last. A hint
    _Atomic bool was_captured;
};

_Static_assert(offsetof(struct cca__stream, lock.taken) == 64, "a hit touches few cache lines");
_Static_assert(offsetof(struct cca__stream, pools) == 192, "a pool begins with a cache line");
_Static_assert(offsetof(struct cca__pool, index.bins) == 128, "two lines of a pool");

// Streams lie in the arena cca.streams at this distance, so that threads on different ones share no
// cache line, and a pool is found from its number without a look-up. An odd number of 128 bytes:
// else all streams would fight for the same sets of a cache.
#define CCA__STREAM_STRIDE ((sizeof(struct cca__stream) + 127) / 256 * 256 + 128)

// What is known of the captures of a device (deferral.h). Guarded by captures_lock.
struct cca__captures {
    struct cca__capture_marks marks;
    // enum cca__reuse_form of the settings in force; requests read it without a lock
    _Atomic int reuse_form;
    bool scope_is_open;                     // of a private pool
    uint32_t first_deferred, last_deferred; // blocks, linked by link[2] and link[1]
    // Up to here a flush of all left everything, and no capture ended since
    uint32_t last_kept;
    size_t deferred_count;
    _Atomic size_t guard_count; // read without the lock to skip a look at the graph
    _Atomic size_t stuck_count; // frees that x_torch_faults broke off (torch_captures.h)
    struct cca__capture_reuse reuse;
    struct cca__capture_markers markers;
    struct cca__captured_stream *walks;
    size_t walk_count, walk_capacity;
};

// Streams by handle: read without a lock, replaced by a larger copy when full. Old copies live as
// long as the device, since a reader may still be in one.
struct cca__stream_table {
    struct cca__stream_table *older;
    size_t capacity; // a power of two
    size_t mask;     // of the bits of a hash that are an offset into slots
    // The handle of an empty slot is the table's own address, which is no stream.
    struct cca__stream_slot {
        _Atomic(cudaStream_t) handle; // written after stream
        struct cca__stream *stream;
    } slots[];
};

struct cca__device {
    struct cca *owner;
    _Atomic(struct cca__stream_table *) stream_table; // written under growth_lock
    // How many are in the streams' queues, and bits that send requests past captures. Written under
    // events_lock; read without it to skip polling
    _Atomic uint64_t pending_events;
    int ordinal;
    size_t total_bytes;                // of the device
    struct cca__stream *first_created; // set once, before any hit
    // All that private pools have or had. Written under growth_lock
    _Atomic(struct cca__stream *) private_streams;
    // Streams in order of their handles, in which PyTorch walks its sets; of one handle the default
    // object first. Written under growth_lock and events_lock.
    struct cca__stream **by_handle;
    size_t stream_count, stream_capacity;
    // Written under all streams' locks, to the next mark.
    bool counts_requests;                // gc may run: a fraction and a threshold are set
    bool counted_requests;               // so, now or before; else every block's gc_base is 0
    bool has_expandable;                 // there are expandable segments, or were
    bool cannot_expand;                  // the driver has no virtual memory
    struct cca__device_history *history; // NULL: it is off
    struct cca__pool_registry pools;     // read under one stream's lock as well, or the growth lock

    struct cca__lock growth_lock; // guards, to the next mark:
    // What counts against the fraction, a segment that is being taken included
    size_t reserved_bytes;
    size_t allowed_bytes;
    bool limited;
    struct allocator_stat segment[ALLOCATOR_STAT_KIND_COUNT], reserved[ALLOCATOR_STAT_KIND_COUNT];
    struct allocator_stat oversize_segments;
    uint64_t peers;             // bit D: device D may use this one's expandable segments
    struct cca__driver *driver; // the driver's calls, NULL before the first
    size_t gone_segments;       // of all streams (torch_faults.h)
    int64_t num_alloc_retries, num_ooms, num_sync_all_streams, num_device_alloc, num_device_free;
    int64_t num_oom_rejections;

    // Searches in the large pool while gc may run, over all streams: the clock of garbage
    // collection.
    _Atomic uint32_t large_searches;

    // Guarded by the stream's lock while the device has one stream, else by the locks of all
    // streams.
    int64_t peak[CCA__FAMILY_COUNT][ALLOCATOR_STAT_KIND_COUNT];
    // Values of the counters when accumulated statistics were last reset. Guarded by the locks of
    // all streams.
    int64_t allocated_base[CCA__FAMILY_COUNT][ALLOCATOR_STAT_KIND_COUNT];
    int64_t freed_base[CCA__FAMILY_COUNT][ALLOCATOR_STAT_KIND_COUNT];

    struct cca__lock tally_lock;                // a leaf
    struct allocator_stat oversize_allocations; // guarded by tally_lock

    struct cca__lock events_lock; // guards the streams' queues and, to the end:
    _Atomic bool polls_own;       // x_poll:own; read without the lock
    cudaEvent_t *spare_events;
    size_t spare_event_count, spare_event_capacity;

    struct cca__lock captures_lock;
    struct cca__captures
        captures; // guarded by captures_lock; marks are written under events_lock, too
};

// In cca__device.pending_events
#define CCA__MARKED ((uint64_t)1 << 63)   // a capture is marked
#define CCA__DEFERRED ((uint64_t)1 << 62) // something may be deferred or guarded
#define CCA__SCOPED ((uint64_t)1 << 61)   // a scope is open that counts as a capture (x_torch)
#define CCA__EVENTS_MASK (CCA__SCOPED - 1)

struct cca {
    struct allocator interface; // first: the interface points to it
    struct cca__block *blocks;  // block_chunks' items
    struct cca__segment *segments;
    struct cca__page_table page_table;
    _Atomic(struct cca__device *) devices[CCA__DEVICES_MAX];
    struct allocator_observer observer; // written as config is
    // There is an observer or history is on: streams are special, and what happens is told. Written
    // as config is.
    bool watched;
    // Written under settings_lock and all locks of all devices; whoever holds any of these may
    // read.
    struct cca__config config;
    struct cca__history history;

    struct cca__lock settings_lock;
    double fraction; // what a new device starts with, if it is set
    bool fraction_set;
    bool refuse_interior_pointers;         // never changes
    bool is_of_parent;                     // set in a child process (fork.h)
    struct cca *made_next, *made_previous; // fork.c's list
    int64_t max_split_size_at_creation;    // as statistics show it
    struct cca_out_of_memory_observer out_of_memory_observer;
    // Set while no other thread is in the allocator.
    struct cca_warning_observer warnings;
    struct cca_rejection_observer rejection_observer;
    struct cca_process_source process_source;
    struct cca_current_stream_source current_stream; // without a function: none
    struct cca_clock clock;
    struct allocator *uncached; // serves the requests if there is no cache; else NULL
    struct allocator_operations uncached_operations;

    struct cca__lock callbacks_lock; // a leaf: guards the free-memory callbacks
    struct cca_free_memory_callback callbacks[CCA_FREE_MEMORY_CALLBACKS_MAX];
    _Atomic size_t callback_count;        // may be read without the lock to skip an empty list
    _Atomic uint64_t rejection_warned_ns; // when a rejection was warned of last; 0: never

    struct cca__lock reserve_lock;                     // a leaf
    struct cca__reserve_class_memory *reserve_classes; // guarded by reserve_lock

    struct cca__arena block_chunks, segment_records, use_records, free_runs, streams;
    _Atomic uint64_t registration;
};

// For calls that are not in the table of operations: BASE_UNSUPPORTED, which says WHAT there is
// not, if the allocator is none of this kind.
enum base_status cca__require_caching(const struct allocator *allocator,
                                      const char *what) BASE_MUST_USE;

static inline struct cca *cca__of(struct allocator *allocator) {
    return (struct cca *)(void *)allocator;
}

static inline bool cca__is_beside_captures(const struct cca__device *device) {
    return (atomic_load_explicit(&device->pending_events, memory_order_relaxed) &
            ~CCA__EVENTS_MASK) != 0;
}
static inline bool cca__is_deferring(const struct cca__device *device) {
    return (atomic_load_explicit(&device->pending_events, memory_order_relaxed) & CCA__DEFERRED) !=
           0;
}
// Whether a call may be made in a capture.
static inline bool cca__may_be_in_capture(const struct cca__device *device) {
    return (atomic_load_explicit(&device->pending_events, memory_order_relaxed) &
            (CCA__MARKED | CCA__SCOPED)) != 0;
}
static inline bool cca__is_marked(const struct cca__device *device) {
    return (atomic_load_explicit(&device->pending_events, memory_order_relaxed) & CCA__MARKED) != 0;
}

static inline struct cca__block *cca__block_at(const struct cca *cca, uint32_t number) {
    return &cca->blocks[number];
}

// Streams whose numbers are 64 apart share a bit.
static inline uint64_t cca__stream_bit(const struct cca__stream *stream) {
    return (uint64_t)1 << (stream->pools[CCA__POOL_SMALL].number / 2 % 64);
}

static inline int cca__pool_kind(const struct cca__pool *pool) {
    return pool->is_small ? ALLOCATOR_STAT_SMALL_POOL : ALLOCATOR_STAT_LARGE_POOL;
}

// Tells the observer, if there is one. The history is told beside.
static inline void cca__observe(const struct cca *cca, const struct allocator_event *event) {
    if (__builtin_expect(cca->observer.event != NULL, 0))
        cca->observer.event(cca->observer.context, event);
}

#endif
