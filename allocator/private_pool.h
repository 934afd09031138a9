// Private pools as a device keeps them: ids, counts, and which scope a request is routed by. It
// owns the pools and decides nothing about blocks; calls of the program are in pools.c.
//
// The blocks of a pool are in cca__stream objects of its own, one for each stream it serves. An id
// that was a pool once is remembered for its statistics.
//
// All functions need growth_lock; those that change something need the locks of all streams as
// well, so that one stream's lock is enough to read.
#ifndef TIDEMARK_ALLOCATOR_PRIVATE_POOL_H
#define TIDEMARK_ALLOCATOR_PRIVATE_POOL_H

#include "allocator/lock.h"
#include "allocator/pools.h"
#include "allocator/stats.h"

struct cca__stream;

struct cca__private_pool {
    struct allocator_pool_id id;
    struct cca__private_pool *next; // in the order of cca__pool_id_place
    bool exists;                    // else only remembered
    bool use_on_oom;                // of the id, also while it is no pool
    bool no_split;
    bool has_raw; // its segments come from RAW
    struct cca_raw_allocator raw;
    int64_t count;                // of users; 0: freeable
    uint32_t takers;              // that wait for a segment without growth_lock
    struct cca__stream **streams; // by handle
    size_t stream_count, stream_capacity;
    bool had_memory;                                           // has statistics
    struct allocator_stat reserved[ALLOCATOR_STAT_KIND_COUNT]; // guarded by growth_lock alone
};

struct cca__pool_scope {
    struct cca__pool_scope *older;
    struct cca__private_pool *pool;
    struct cca_pool_filter filter;
    bool is_closed;          // written under the locks of all streams
    _Atomic uint32_t askers; // requests that ask the filter now, without a lock
};

// Zeros are an empty one.
struct cca__pool_registry {
    struct cca__private_pool *first;
    struct cca__pool_scope *newest; // NULL: no scope is open
};

void cca__pools_deinit(struct cca__pool_registry *registry);

// PyTorch walks its tables of pools in the order of their hash, and so do the ladder and releases.
uint64_t cca__pool_id_place(struct allocator_pool_id id);
static inline bool cca__pool_id_equal(struct allocator_pool_id a, struct allocator_pool_id b) {
    return a.capture == b.capture && a.user == b.user;
}

// NULL: never heard of. _exists: NULL, too, where it is only remembered.
struct cca__private_pool *cca__pools_find(const struct cca__pool_registry *registry,
                                          struct allocator_pool_id id);
// The one that exists; BASE_INVALID_VALUE.
enum base_status cca__pools_get(const struct cca__pool_registry *registry,
                                struct allocator_pool_id id,
                                struct cca__private_pool **pool) BASE_MUST_USE;
// The id's record, made if it is new. BASE_HOST_MEMORY.
enum base_status cca__pools_remember(struct cca__pool_registry *registry,
                                     struct allocator_pool_id id,
                                     struct cca__private_pool **pool) BASE_MUST_USE;

// See cca_pool_create, _release, _begin, _end.
enum base_status cca__pools_create(struct cca__pool_registry *registry, struct allocator_pool_id id,
                                   const struct cca_raw_allocator *raw,
                                   struct cca__private_pool **pool) BASE_MUST_USE;
enum base_status cca__pools_release(struct cca__pool_registry *registry,
                                    struct allocator_pool_id id) BASE_MUST_USE;
enum base_status cca__pools_begin(struct cca__pool_registry *registry, struct allocator_pool_id id,
                                  const struct cca_pool_filter *filter) BASE_MUST_USE;
// *closed is to be destroyed.
enum base_status cca__pools_end(struct cca__pool_registry *registry, struct allocator_pool_id id,
                                struct cca__pool_scope **closed) BASE_MUST_USE;
// Waits until nobody asks its filter any more. No lock held.
void cca__pool_scope_destroy(struct cca__pool_scope *scope);
bool cca__pools_has_scope(const struct cca__pool_registry *registry,
                          const struct cca__private_pool *pool);
// The error of a second scope of one pool.
enum base_status cca__pools_already_open(struct allocator_pool_id id);

// What the driver was asked about the stream of a request.
struct cca__known_capture {
    bool is_known;
    unsigned long long id; // of the capture that it is in; 0: none, or one that is invalidated
};

// Where a request on that stream goes; NULL: to no pool. LOCK, the lock of one stream, is held, and
// given back while a filter is asked: that is the program's code, and it asks the driver. A filter
// of captures is not asked where KNOWN says it.
struct cca__private_pool *cca__pools_route(struct cca__pool_registry *registry, cudaStream_t handle,
                                           struct cca__known_capture known, struct cca__lock *lock);

// Whether FILTER is one of cca_capture_filter; then *accepts is what it says of a stream that is in
// capture ID, 0: in none (captures.c).
bool cca__capture_filter_knows(const struct cca_pool_filter *filter, unsigned long long id,
                               bool *accepts);

// Bytes that were taken from the device for the pool or, negative, given back.
static inline void cca__private_pool_count(struct cca__private_pool *pool, int kind,
                                           int64_t bytes) {
    pool->had_memory = true;
    cca__stat_change(&pool->reserved[ALLOCATOR_STAT_ALL], bytes);
    cca__stat_change(&pool->reserved[kind], bytes);
}

// For a request that was on its way to a pool when that went: what it gets is freeable.
static inline void cca__private_pool_revive(struct cca__private_pool *pool) {
    if (!pool->exists) pool->count = 0;
    pool->exists = true;
}

static inline bool cca__private_pool_is_freeable(const struct cca__private_pool *pool) {
    return pool->exists && pool->count == 0;
}

// The pool's blocks on a stream; NULL: it has none.
struct cca__stream *cca__private_pool_stream(const struct cca__private_pool *pool,
                                             cudaStream_t handle);
// Room for one more. BASE_HOST_MEMORY.
enum base_status cca__private_pool_reserve(struct cca__private_pool *pool) BASE_MUST_USE;
void cca__private_pool_add(struct cca__private_pool *pool, struct cca__stream *stream);
void cca__private_pool_remove(struct cca__private_pool *pool, const struct cca__stream *stream);

#endif
