// Statistics: exact, with few stores on the path of a cache hit.
//
// A pool counts what was handed out and what was taken back, both ever growing: a call changes
// one of them. The rest is derived: current = handed -
// taken, `allocated` = handed, `freed` = taken (plus what waits for events, where the free counts
// at once). The bytes of free parts of split segments are bytes of segments not wholly free -
// active bytes, so their peak is a floor on active bytes and needs no counter.
//
// What was taken is kept as *room* = taken + limit, so that a hand-out tests a limit by one
// subtraction: it is passed when the *slack* room - handed is negative. The slack of both pools
// together is the sum of theirs and a constant. So the path of a hit stores no counter twice:
// stores are its cost, since the next lock waits until they are done.
//
// Peaks over several pools need no shared counter either. Each stream has a *limit* for each
// family and kind; the limits of a device's streams together never exceed the peak. So while no
// stream passes its own limit, no peak is passed, and a call tests its own limits only. A stream
// that passes one *meets* the others, after releasing its own lock: under all their locks the
// true sum is compared with the peak, and the stream takes what it lacks from those that have
// room. To make the next meeting a far one it then gets, of each family and kind, as much as it
// ever used, if others can spare it. While a device has one stream the limit is the peak and
// rises in place.
#ifndef TIDEMARK_ALLOCATOR_STATS_H
#define TIDEMARK_ALLOCATOR_STATS_H

#include "allocator/allocator.h"
#include "allocator/free_index.h"
#include "allocator/lock.h"

struct cca__device;
struct cca__pool;
struct cca__stream;

// What a hit counts. The sizes are one vector, since every call changes both, and in a block they
// are neighbours, too.
enum cca__size { CCA__BYTES, CCA__REQUESTED };
typedef int64_t cca__sizes __attribute__((vector_size(16)));
struct cca__counts {
    cca__sizes sizes;
    int64_t blocks;
    // Free blocks in split segments. Calls of both kinds raise and lower it, so that only handed -
    // taken has a meaning.
    int64_t split_free;
};

// The families whose peaks have limits. Segments and reserved bytes change on the slow path only.
enum cca__family {
    CCA__ALLOCATION,
    CCA__ACTIVE,
    CCA__INACTIVE_SPLIT,
    CCA__ALLOCATED_BYTES,
    CCA__ACTIVE_BYTES,
    CCA__INACTIVE_SPLIT_BYTES,
    CCA__REQUESTED_BYTES,
    CCA__FAMILY_COUNT
};

// The counters of one pool, guarded by its stream's lock. What was "taken" back is complete: no
// longer waiting for events.
struct cca__ledger {
    struct cca__counts handed;
    struct cca__counts room;   // taken + limit.active of the pool's kind
    int64_t partial_bytes;     // of segments that are not wholly free
    int64_t split_bytes_rises; // sum of increases of inactive_split_bytes, less taken.bytes
    int64_t split_free_rises;  // sum of increases of inactive_split
    // limit.split_bytes + limit.active.bytes: this - partial_bytes - slack.bytes is what
    // inactive_split_bytes may still grow.
    int64_t split_bytes_bound;
};

// Blocks that were freed and wait for events: one vector, since they change together.
enum { CCA__PENDING_BLOCKS, CCA__PENDING_BYTES };
typedef int64_t cca__pending __attribute__((vector_size(16)));

// When the counters of a stream must be looked at.
struct cca__limits {
    struct cca__counts active; // of handed - taken
    int64_t split_bytes;
    // From so many pending ones on those of `active` are the limits of what is active, and pending
    // ones move nothing.
    cca__pending free;
};

static inline struct cca__counts cca__counts_add(struct cca__counts a, struct cca__counts b) {
    return (struct cca__counts){a.sizes + b.sizes, a.blocks + b.blocks,
                                a.split_free + b.split_free};
}
static inline struct cca__counts cca__counts_subtract(struct cca__counts a, struct cca__counts b) {
    return (struct cca__counts){a.sizes - b.sizes, a.blocks - b.blocks,
                                a.split_free - b.split_free};
}

// Increases and decreases of one counter as PyTorch does, for what changes on slow paths only.
static inline void cca__stat_change(struct allocator_stat *stat, int64_t amount) {
    stat->current += amount;
    if (stat->current > stat->peak) stat->peak = stat->current;
    if (amount > 0)
        stat->allocated += amount;
    else
        stat->freed -= amount;
}

int64_t cca__pool_current(const struct cca__pool *pool, enum cca__family family);

// After a counter passed a limit, the stream's lock held. True if the limits were raised in
// place; else the caller releases the lock and calls cca__stats_meet.
bool cca__stats_raise_locked(struct cca__stream *stream);
// Takes the locks of all streams of the device.
void cca__stats_meet(struct cca__stream *stream);
// The same with the locks of all streams held. CALLER, if not NULL, gets room for what comes.
void cca__stats_meet_locked(struct cca__device *device, struct cca__stream *caller);

// Recomputes what the fast path tests, after limits changed.
void cca__stats_update_limits_locked(struct cca__stream *stream);
// The same after the pool's pending blocks changed (cca__hit_count_pending). The stream's lock held.
void cca__stats_move_limits_locked(struct cca__pool *pool);

// All locks of the device held.
void cca__stats_read_locked(struct cca__device *device, struct allocator_stats *stats);
void cca__stats_reset_peak_locked(struct cca__device *device);
void cca__stats_reset_accumulated_locked(struct cca__device *device);

#endif
