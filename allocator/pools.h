// Private pools: memory that is kept apart from all other requests. PyTorch's user pools
// (torch.cuda.MemPool) and the pools of captured graphs are such.
//
//     const struct allocator_pool_id id = {.user = 1};
//     status = cca_pool_create(allocator, 0, id, NULL);
//     status = cca_pool_begin(allocator, 0, id, NULL);      // requests of the device go there
//     status = allocator_malloc(allocator, 0, size, stream, &pointer);
//     status = cca_pool_end(allocator, 0, id);
//     status = cca_pool_release(allocator, 0, id);          // that of cca_pool_begin
//     ...
//     status = cca_pool_destroy(allocator, 0, id);
//
// Ids are the caller's: captures have {n, 0}, user pools {0, n}. A pool is of one device; another
// device may have one of the same id.
//
// A pool has a *count* of users. What is freed goes back to the pool it came from and serves
// requests that are routed there, nothing else (but see cca_pool_set_use_on_oom). When the count
// falls to 0 the pool is *freeable*: its cached segments go back to the device whenever everything
// cached does, and with the last one the pool is gone.
//
// Every call is thread-safe; none is for a hot path: they take the locks of all streams of the
// device. Requests pay for private pools only while a scope of cca_pool_begin is open on their
// device.
#ifndef TIDEMARK_ALLOCATOR_POOLS_H
#define TIDEMARK_ALLOCATOR_POOLS_H

#include "allocator/allocator.h"

// Where the segments of a pool come from instead of cudaMalloc and cudaFree; they are never
// expandable. Called with a lock of the allocator held: it must not call the allocator.
struct cca_raw_allocator {
    // NULL: out of memory.
    void *(*allocate)(void *context, size_t size, int device, cudaStream_t stream);
    void (*free)(void *context, void *memory, size_t size, int device, cudaStream_t stream);
    void *context;
};

// Makes a pool with count 1, or adds 1 to the count of the one that there is. RAW NULL: cudaMalloc;
// only the call that makes the pool may name one. BASE_INVALID_VALUE; BASE_HOST_MEMORY.
enum base_status cca_pool_create(struct allocator *allocator, int device,
                                 struct allocator_pool_id id,
                                 const struct cca_raw_allocator *raw) BASE_MUST_USE;

// Takes 1 from the count. BASE_INVALID_VALUE if there is no such pool, or its count is 0.
enum base_status cca_pool_release(struct allocator *allocator, int device,
                                  struct allocator_pool_id id) BASE_MUST_USE;

// BASE_INVALID_VALUE if there is no such pool.
enum base_status cca_pool_count(struct allocator *allocator, int device,
                                struct allocator_pool_id id, int64_t *count) BASE_MUST_USE;

// Which requests a scope routes to its pool. Called by the thread of the request, with no lock of
// the allocator held: it may ask the driver, and call the allocator, whose requests are routed in
// turn; but it must not close the scope it is of. Several threads may be in it at once; none is
// when cca_pool_end has returned.
struct cca_pool_filter {
    bool (*accepts)(void *context, cudaStream_t stream);
    void *context;
};

// Opens a scope: from here on requests of the device that FILTER (NULL: every one) accepts go to
// the pool; of several scopes the newest that accepts wins. Makes the pool, or adds 1 to its count,
// as cca_pool_create. Two scopes of one pool: BASE_INVALID_VALUE, and the count has grown all the
// same, as in PyTorch.
enum base_status cca_pool_begin(struct allocator *allocator, int device,
                                struct allocator_pool_id id,
                                const struct cca_pool_filter *filter) BASE_MUST_USE;
// Closes it, and leaves the count. Waits for requests that are in its filter. BASE_INVALID_VALUE if
// none is open.
enum base_status cca_pool_end(struct allocator *allocator, int device,
                              struct allocator_pool_id id) BASE_MUST_USE;

// Whether requests of no pool may be served from the free blocks of this one when the device has
// no more memory; such a block stays the pool's. Kept for an id that is no pool yet.
enum base_status cca_pool_set_use_on_oom(struct allocator *allocator, int device,
                                         struct allocator_pool_id id, bool on) BASE_MUST_USE;

// The pool hands out whole free blocks. BASE_INVALID_VALUE if there is no such pool.
enum base_status cca_pool_set_no_split(struct allocator *allocator, int device,
                                       struct allocator_pool_id id) BASE_MUST_USE;

// Waits for the pending frees of one pool and gives its cached segments back, if it is freeable;
// else, or if there is no such pool, nothing happens. {0, 0}: allocator_empty_cache of the device.
enum base_status cca_pool_empty_cache(struct allocator *allocator, int device,
                                      struct allocator_pool_id id) BASE_MUST_USE;

// What the end of a MemPool does: use_on_oom off, release, empty_cache.
enum base_status cca_pool_destroy(struct allocator *allocator, int device,
                                  struct allocator_pool_id id) BASE_MUST_USE;

// PyTorch's reserved_bytes_by_private_pools: every id that ever had memory, by id. Sets *pools to
// an array that the caller frees.
struct cca_pool_stats {
    struct allocator_pool_id id;
    struct allocator_stat reserved_bytes[ALLOCATOR_STAT_KIND_COUNT];
};
enum base_status cca_pool_stats(struct allocator *allocator, int device,
                                struct cca_pool_stats **pools, size_t *count) BASE_MUST_USE;

// allocator_snapshot with the segments of one pool of each device only; {0, 0}: all.
enum base_status cca_pool_snapshot(struct allocator *allocator, struct allocator_pool_id id,
                                   struct allocator_snapshot *snapshot) BASE_MUST_USE;

#endif
