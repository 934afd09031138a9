// The history: what was decided, in the order of the decisions, and where the calls came from. See
// cca_record_history in cca.h.
//
// Each stream has a ring of its own, under its own lock, and each device one for what happens under
// its growth lock; one number over a device, drawn for each entry, puts them in order. Streams
// share nothing else. An entry that finds no memory is lost, and what came before it is not shown
// then: a history has no holes.
//
// Where a block was allocated is kept beside the blocks, by their numbers, while history is on.
#ifndef TIDEMARK_ALLOCATOR_HISTORY_H
#define TIDEMARK_ALLOCATOR_HISTORY_H

#include "allocator/call_stack.h"
#include "allocator/cca.h"
#include "allocator/history_clock.h"

struct cca;
struct cca__block;
struct cca__device;
struct cca__pool;
struct cca__stream;

struct cca__history_entry {
    uint64_t address; // OOM: the device's free bytes
    uint64_t size;
    uint64_t ticks;
    uint64_t sequence; // over the device, from 1
    uint32_t stack;    // 0: none
    uint16_t pool;     // of the entry's stream; 0: of none
    uint8_t action;
    uint8_t more; // 1: the request of a free that completes at once, which has the next number
};
// The newest number that the entry stands for.
static inline uint64_t cca__history_end(const struct cca__history_entry *entry) {
    return entry->sequence + entry->more;
}

// Zeros are an empty ring.
struct cca__history_ring {
    struct cca__history_entry *entries; // by age from NEXT on, if it has WRAPPED, else from 0
    size_t next, capacity;
    bool wrapped;  // NEXT is the oldest, or at the end the first
    uint64_t lost; // what was taken out of the ring up to when it last did not wrap: the newest
};

static inline size_t cca__history_count(const struct cca__history_ring *ring) {
    return ring->wrapped ? ring->capacity : ring->next;
}
// By age, the oldest one first.
static inline const struct cca__history_entry *cca__history_at(const struct cca__history_ring *ring,
                                                               size_t index) {
    if (!ring->wrapped) return &ring->entries[index];
    const size_t place = ring->next + index;
    return &ring->entries[place < ring->capacity ? place : place - ring->capacity];
}
// Entries that this ring had and has no more are not newer than this.
static inline uint64_t cca__history_lost(const struct cca__history_ring *ring) {
    return ring->wrapped ? cca__history_at(ring, 0)->sequence - 1 : ring->lost;
}

// What calls under one lock write, guarded by it.
struct cca__recorder {
    struct cca__history_ring ring;
    uint64_t ticks;  // the last reading of the clock
    uint32_t spared; // calls to come that are given that reading
    struct cca__walk_cache walks;
};

struct cca__device_history {
    _Alignas(64) _Atomic uint64_t sequence;     // of the newest entry
    _Atomic uint64_t lost;                      // of the newest one that found no memory
    _Alignas(64) struct cca__recorder recorder; // guarded by the growth lock
};

// Of an allocator. Written under the settings lock and all locks of all devices, but for the
// stacks; whoever holds any of these may read.
struct cca__history {
    enum cca_history enabled;
    enum cca_history_context context;
    size_t max_entries; // of a device
    struct cca__clock clock;
    // By number of the block: where it was allocated; chunks of CCA__BLOCK_CHUNK. An entry is
    // guarded by its block's lock.
    uint32_t **block_stacks;
    struct cca__stack_table stacks; // has its own lock
};

void cca__history_init(struct cca__history *history);
void cca__history_deinit(struct cca *cca);

// A new device's part; nothing if history is off. BASE_HOST_MEMORY. settings_lock held.
enum base_status cca__history_add_device(struct cca__device *device) BASE_MUST_USE;
void cca__history_remove_device(struct cca__device *device);

// A free that does not have to wait is told once, as one entry that stands for two: nothing is
// decided between them. IS_ALLOCATED: the block is still.
static inline bool cca__history_has_told(enum allocator_action action, bool is_allocated) {
    return action == ALLOCATOR_FREE_COMPLETED && is_allocated;
}

// The two that write, when history is on. Under the lock of the pool's stream: an event of a block.
void cca__history_block_locked(struct cca *cca, enum allocator_action action,
                               const struct cca__pool *pool, const struct cca__block *block);
// Under the growth lock and that of the pool's stream: one of the device or of a segment. POOL
// NULL: of no stream, under the locks of all. Returns the stack of the call.
uint32_t cca__history_device_locked(struct cca__device *device, enum allocator_action action,
                                    const struct cca__pool *pool, uint64_t address, size_t size);

// Where the block was allocated; 0: not known. Under its lock.
uint32_t cca__history_block_stack(const struct cca *cca, uint32_t number);

// The entries up to this one are not shown: there are newer ones enough, or one after it is lost.
// Locks as below.
uint64_t cca__history_shown_after_locked(const struct cca__device *device);
// Appends the device's history to the snapshot. Under its growth lock and all locks of its
// streams. BASE_HOST_MEMORY.
enum base_status cca__history_copy_locked(struct cca__device *device,
                                          struct allocator_snapshot *snapshot) BASE_MUST_USE;
// The stacks that blocks, segments and entries name. settings_lock held: they stay what they were.
enum base_status cca__history_copy_stacks(struct cca *cca,
                                          struct allocator_snapshot *snapshot) BASE_MUST_USE;

// Aborts if something is not as it should be. All locks held.
void cca__history_check(const struct cca__device *device);

#endif
