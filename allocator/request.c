// See request.h.
#include "allocator/request.h"

#include "allocator/capture_caller.h"
#include "allocator/deferral.h"
#include "allocator/device.h"
#include "allocator/event_poll.h"
#include "allocator/hit.h"
#include "allocator/ladder.h"
#include "allocator/pointer.h"
#include "allocator/pool.h"
#include "allocator/private_malloc.h"
#include "allocator/release.h"
#include "allocator/stream_use.h"
#include "allocator/torch_captures.h"

// The functions that a hit calls only to end with them are kept out of line, so that it needs no
// stack of its own.
#define APART __attribute__((noinline))

static APART enum base_status wake(struct cca__lock *lock) {
    cca__lock_wake(lock);
    return BASE_OK;
}

// The end of a call that passed a limit.
static APART enum base_status end_over_limit(struct cca__stream *stream) {
    const bool raised = cca__stats_raise_locked(stream);
    cca__lock_release(&stream->lock);
    if (!raised) cca__stats_meet(stream);
    return BASE_OK;
}

// The end of a hit whose lock was taken at once.
static inline enum base_status end_hit(struct cca__stream *stream, int64_t slack) {
    if (__builtin_expect(slack < 0, 0)) return end_over_limit(stream);
    return cca__lock_release_taken(&stream->lock) ? wake(&stream->lock) : BASE_OK;
}

// The end of one that displaced a block from the front: it goes into its bin.
static APART enum base_status end_displacing_far(struct cca *cca, struct cca__pool *pool,
                                                 uint32_t displaced, int64_t slack) {
    cca__bin_insert(&pool->index, cca->blocks, displaced);
    return end_hit(pool->stream, slack);
}
static APART enum base_status end_displacing(struct cca *cca, struct cca__pool *pool,
                                             uint32_t displaced, int64_t slack) {
    const uint32_t place = cca__bin_of(cca__block_at(cca, displaced)->size);
    if (!cca__bin_is_short(&pool->index.bins[place]))
        return end_displacing_far(cca, pool, displaced, slack);
    cca__bin_insert_listed(&pool->index, cca->blocks, displaced, place);
    return end_hit(pool->stream, slack);
}

static enum base_status end_call(struct cca__stream *stream, int64_t slack) {
    if (__builtin_expect(slack < 0, 0)) return end_over_limit(stream);
    cca__lock_release(&stream->lock);
    return BASE_OK;
}

static inline struct cca__pool *pool_for(struct cca__stream *stream, size_t rounded) {
    return cca__pool_of_kind(stream, rounded > CCA_SMALL_LIMIT);
}

static APART enum base_status malloc_waiting(struct cca *cca, struct cca__stream *stream,
                                             size_t size, void **pointer);

// A request that a scope routes to a private pool. Its pool may be gone when its turn comes: then
// it asks anew where it belongs.
static APART enum base_status malloc_routed_locked(struct cca *cca, struct cca__stream *stream,
                                                   struct cca__private_pool *pool, size_t size,
                                                   void **pointer) {
    void *served;
    struct cca__stream *const of_pool = cca__private_pool_stream(pool, stream->handle);
    cca__lock_release(&stream->lock);
    const enum base_status status = cca__private_malloc(stream, pool, of_pool, size, &served);
    if (status != BASE_OK) return status;
    if (served == NULL) return malloc_waiting(cca, stream, size, pointer);
    *pointer = served;
    return BASE_OK;
}

// The rest of a request: the lock is held, and released here.
static APART enum base_status malloc_special_locked(struct cca *cca, struct cca__stream *stream,
                                                    size_t size, struct cca__known_capture known,
                                                    void **pointer) {
    if (__builtin_expect(stream->device->pools.newest != NULL, 0)) {
        struct cca__private_pool *const owner =
            cca__pools_route(&stream->device->pools, stream->handle, known, &stream->lock);
        if (owner != NULL) return malloc_routed_locked(cca, stream, owner, size, pointer);
    }
    bool over_limit = false;
    void *served;
    const size_t rounded = cca__round_size(&cca->config.sizes, size);
    struct cca__pool *const pool = pool_for(stream, rounded);
    if (stream->device->counts_requests && !pool->is_small)
        atomic_fetch_add_explicit(&stream->device->large_searches, 1, memory_order_relaxed);
    const enum base_status status =
        cca__pool_serve_locked(cca, pool, rounded, size, &served, &over_limit);
    cca__lock_release(&stream->lock);
    if (__builtin_expect(over_limit, 0)) cca__stats_meet(stream);
    if (status != BASE_OK) return status;
    if (served == NULL) return cca__grow(stream, rounded, size, pointer);
    *pointer = served;
    return BASE_OK;
}

// The same from the free index as a whole.
static APART enum base_status malloc_locked(struct cca *cca, struct cca__stream *stream,
                                            size_t size, void **pointer) {
    if (__builtin_expect(stream->special, 0) && !stream->only_watched)
        return malloc_special_locked(cca, stream, size, (struct cca__known_capture){0}, pointer);
    const size_t rounded = cca__round_size_plain(size);
    struct cca__pool *const pool = pool_for(stream, rounded);
    const uint32_t number = cca__free_index_find(&pool->index, cca->blocks, rounded);
    if (__builtin_expect(number == 0, 0)) {
        cca__lock_release(&stream->lock);
        return cca__grow(stream, rounded, size, pointer);
    }
    int64_t slack;
    const enum base_status status =
        cca__hit_hand_out(cca, pool, number, rounded, size, true, false, true, &slack);
    if (__builtin_expect(status != BASE_OK, 0)) {
        cca__lock_release(&stream->lock);
        return status;
    }
    struct cca__block *const block = cca__block_at(cca, number);
    if (__builtin_expect(stream->special, 0)) cca__observe_block(cca, ALLOCATOR_ALLOC, pool, block);
    *pointer = (void *)(uintptr_t)block->address;
    return end_call(stream, slack);
}

// A request that has to wait for the lock, or for its turn.
static APART enum base_status malloc_waiting(struct cca *cca, struct cca__stream *stream,
                                             size_t size, void **pointer) {
    cca__lock_take(&stream->lock);
    return malloc_locked(cca, stream, size, pointer);
}

static APART enum base_status malloc_of_size(size_t size, void **pointer) {
    if (size != 0)
        return base_status_set(BASE_OUT_OF_MEMORY,
                               "CUDA out of memory. Tried to allocate more than 1EB memory.");
    *pointer = NULL;
    return BASE_OK;
}

// The rest of a request of a plain stream whose lock was taken at once.
static APART enum base_status malloc_from_bins(struct cca *cca, struct cca__pool *pool, size_t size,
                                               size_t rounded, void **pointer) {
    uint32_t served, displaced;
    int64_t slack;
    if (!cca__hit_serve(cca, pool, rounded, size, pointer, &served, &displaced, &slack))
        return malloc_locked(cca, pool->stream, size, pointer);
    if (displaced != 0) return end_displacing(cca, pool, displaced, slack);
    return end_hit(pool->stream, slack);
}

// A request of a stream that is special for nothing but that somebody watches.
static APART enum base_status malloc_watched(struct cca *cca, struct cca__stream *stream,
                                             size_t size, void **pointer) {
    const size_t rounded = cca__round_size_plain(size);
    struct cca__pool *const pool = pool_for(stream, rounded);
    uint32_t served = pool->index.front, displaced = 0;
    int64_t slack;
    const bool from_front = cca__free_index_front_is_best(&pool->index, cca->blocks, rounded) &&
                            cca__hit_serve_front(cca, pool, rounded, size, pointer, &slack);
    if (!from_front &&
        !cca__hit_serve(cca, pool, rounded, size, pointer, &served, &displaced, &slack))
        return malloc_locked(cca, stream, size, pointer);
    cca__observe_block(cca, ALLOCATOR_ALLOC, pool, cca__block_at(cca, served));
    if (displaced != 0) return end_displacing(cca, pool, displaced, slack);
    return end_hit(stream, slack);
}

// The same where the front is the best fit.
static APART enum base_status malloc_from_front(struct cca *cca, struct cca__pool *pool,
                                                size_t size, size_t rounded, void **pointer) {
    int64_t slack;
    if (!cca__hit_serve_front(cca, pool, rounded, size, pointer, &slack))
        return malloc_from_bins(cca, pool, size, rounded, pointer);
    return end_hit(pool->stream, slack);
}

// A request, the lock of the stream taken at once.
static inline enum base_status malloc_taken(struct cca *cca, struct cca__stream *stream,
                                            size_t size, void **pointer) {
    if (__builtin_expect(stream->special, 0))
        return stream->only_watched ? malloc_watched(cca, stream, size, pointer)
                                    : malloc_locked(cca, stream, size, pointer);
    const size_t rounded = cca__round_size_plain(size);
    struct cca__pool *const pool = pool_for(stream, rounded);
    return cca__free_index_front_is_best(&pool->index, cca->blocks, rounded)
               ? malloc_from_front(cca, pool, size, rounded, pointer)
               : malloc_from_bins(cca, pool, size, rounded, pointer);
}

// Only what is cached; *SERVED becomes NULL if nothing is.
static enum base_status serve_cached(struct cca *cca, struct cca__stream *stream, size_t size,
                                     struct cca__known_capture known, void **served) {
    bool over_limit = false;
    *served = NULL;
    cca__lock_take(&stream->lock);
    if (__builtin_expect(stream->device->pools.newest != NULL, 0) &&
        cca__pools_route(&stream->device->pools, stream->handle, known, &stream->lock) != NULL) {
        cca__lock_release(&stream->lock);
        return BASE_OK;
    }
    const size_t rounded = cca__round_size(&cca->config.sizes, size);
    struct cca__pool *const pool = pool_for(stream, rounded);
    const enum base_status status =
        cca__pool_serve_locked(cca, pool, rounded, size, served, &over_limit);
    // A search that ends in nothing is made again, and counts then.
    if (status == BASE_OK && *served != NULL && stream->device->counts_requests && !pool->is_small)
        atomic_fetch_add_explicit(&stream->device->large_searches, 1, memory_order_relaxed);
    cca__lock_release(&stream->lock);
    if (over_limit) cca__stats_meet(stream);
    return status;
}

// A hit does not wait for another thread that has a driver call to make and polls or records
// meanwhile; but nothing is taken from the device before all that was freed has been asked for.
static APART enum base_status malloc_unpolled(struct cca *cca, struct cca__stream *stream,
                                              size_t size, struct cca__known_capture known,
                                              void **pointer) {
    void *served;
    enum base_status status = serve_cached(cca, stream, size, known, &served);
    if (status == BASE_OK && served != NULL) *pointer = served;
    if (status != BASE_OK || served != NULL) return status;
    status = cca__poll_pending(stream);
    if (status != BASE_OK) return status;
    cca__lock_take(&stream->lock);
    return malloc_special_locked(cca, stream, size, known, pointer);
}

// A request while frees wait for events.
static APART enum base_status malloc_polling(struct cca *cca, struct cca__stream *stream,
                                             size_t size, void **pointer) {
    const struct cca__polled polled = cca__poll_for(stream, false);
    if (__builtin_expect(polled.status != BASE_OK, 0)) return polled.status;
    if (polled.outcome == CCA__POLL_REFUSED)
        return malloc_unpolled(cca, stream, size, (struct cca__known_capture){0}, pointer);
    if (polled.outcome != CCA__POLLED_AND_LOCKED && !cca__lock_take_at_once(&stream->lock))
        return malloc_waiting(cca, stream, size, pointer);
    return malloc_taken(cca, stream, size, pointer);
}

// A request while captures are marked, or something waits for one. In a capture no event is asked.
static APART enum base_status malloc_beside_captures(struct cca *cca, struct cca__stream *stream,
                                                     size_t size, void **pointer) {
    struct cca__known_capture known;
    struct cca__polled polled = {.outcome = CCA__POLLED};
    bool inside;
    const enum base_status status = cca__captures_enter(stream, &inside, &known);
    if (status != BASE_OK) return status;
    if (!inside) polled = cca__poll_for(stream, false);
    if (polled.status != BASE_OK) return polled.status;
    if (polled.outcome == CCA__POLL_REFUSED)
        return malloc_unpolled(cca, stream, size, known, pointer);
    if (polled.outcome != CCA__POLLED_AND_LOCKED) cca__lock_take(&stream->lock);
    return malloc_special_locked(cca, stream, size, known, pointer);
}

__attribute__((always_inline)) static inline enum base_status
malloc_on_stream(struct cca *cca, const struct cca__device *device, struct cca__stream *stream,
                 size_t size, void **pointer) {
    if (__builtin_expect(atomic_load_explicit(&device->pending_events, memory_order_relaxed) != 0,
                         0))
        return cca__is_beside_captures(device) ? malloc_beside_captures(cca, stream, size, pointer)
                                               : malloc_polling(cca, stream, size, pointer);
    if (!cca__lock_take_at_once(&stream->lock)) return malloc_waiting(cca, stream, size, pointer);
    return malloc_taken(cca, stream, size, pointer);
}

// A request that names a device or a stream for the first time, or a stream that is not where it is
// looked for first.
static APART enum base_status malloc_searching(struct cca *cca, int ordinal, size_t size,
                                               cudaStream_t handle, void **pointer) {
    struct cca__device *device;
    struct cca__stream *stream;
    enum base_status status = cca__device_get(cca, ordinal, &device);
    if (status == BASE_OK) status = cca__stream_get(device, handle, &stream);
    return status == BASE_OK ? malloc_on_stream(cca, device, stream, size, pointer) : status;
}

enum base_status cca__malloc(struct allocator *allocator, int ordinal, size_t size,
                             cudaStream_t handle, void **pointer) {
    struct cca *const cca = cca__of(allocator);
    if (__builtin_expect(size - 1 >= CCA_REQUEST_LIMIT - 1, 0)) // 0, too
        return malloc_of_size(size, pointer);
    const struct cca__device *const device = cca__device_known(cca, ordinal);
    if (__builtin_expect(device == NULL, 0))
        return malloc_searching(cca, ordinal, size, handle, pointer);
    struct cca__stream *stream;
    if (!cca__stream_known(device, handle, &stream))
        return malloc_searching(cca, ordinal, size, handle, pointer);
    return malloc_on_stream(cca, device, stream, size, pointer);
}

// The rest of a free of whatever is at POINTER, perhaps nothing: NUMBER is what the page table or
// the strays name, POOL_NUMBER what it carries. The lock of that pool's stream is held, and
// released here.
static APART enum base_status free_locked(struct cca *cca, uint32_t number, uint32_t pool_number,
                                          void *pointer) {
    struct cca__stream *const stream = cca__stream_at(cca, pool_number / 2);
    struct cca__pool *const pool = cca__pool_of_kind(stream, pool_number % 2);
    struct cca__block *const block = cca__block_at(cca, number);
    if (__builtin_expect(!stream->special && cca__block_is_plain(block, pool_number, pointer), 1))
        return end_call(stream, cca__hit_free(cca, pool, number, true));
    bool over_limit = false;
    if (number == 0 || !cca__block_is_handed_out(block, pool, pointer)) {
        const bool is_stuck = number != 0 && cca__torch_is_stuck(cca, block, pool, pointer);
        if (is_stuck) cca__torch_free_stuck_locked(stream, number, &over_limit);
        cca__lock_release(&stream->lock);
        if (over_limit) cca__stats_meet(stream);
        return is_stuck ? BASE_OK : cca__pointer_invalid(cca, pointer);
    }
    if (block->uses != 0) return cca__free_used_locked(stream, pointer, number);
    if (block->size >= cca->config.sizes.max_split_size) cca__count_oversize(stream->device, -1);
    if (cca->watched) cca__observe_block(cca, ALLOCATOR_FREE_REQUESTED, pool, block);
    cca__pool_free_locked(cca, pool, number, &over_limit);
    cca__lock_release(&stream->lock);
    if (over_limit) cca__stats_meet(stream);
    return BASE_OK;
}

static APART enum base_status free_searching(struct cca *cca, void *pointer) {
    const uint32_t number = cca__block_lookup(cca, pointer);
    const uint32_t pool_number = cca__block_pool(cca__block_at(cca, number));
    cca__lock_take(&cca__stream_at(cca, pool_number / 2)->lock);
    return free_locked(cca, number, pool_number, pointer);
}

static APART enum base_status free_anew(struct cca *cca, struct cca__stream *stream,
                                        void *pointer) {
    cca__lock_release(&stream->lock);
    return free_searching(cca, pointer);
}

// The rest of a free of a plain block whose stream's lock was taken at once.
static APART enum base_status free_far(struct cca *cca, struct cca__pool *pool, uint32_t number) {
    return end_hit(pool->stream, cca__hit_free(cca, pool, number, true));
}

static APART enum base_status free_to_bins(struct cca *cca, struct cca__pool *pool,
                                           uint32_t number) {
    uint32_t displaced;
    int64_t slack;
    if (!cca__hit_free_at_once(cca, pool, number, &displaced, &slack))
        return free_far(cca, pool, number);
    if (displaced != 0) return end_displacing(cca, pool, displaced, slack);
    return end_hit(pool->stream, slack);
}

static APART enum base_status free_to_front(struct cca *cca, struct cca__pool *pool,
                                            uint32_t number) {
    int64_t slack;
    if (!cca__hit_free_to_front(cca, pool, number, &slack)) return free_to_bins(cca, pool, number);
    return end_hit(pool->stream, slack);
}

static inline enum base_status free_plain(struct cca *cca, struct cca__pool *pool, uint32_t number,
                                          const struct cca__block *block) {
    const uint32_t front = pool->index.front;
    return front == 0 || block->next == front || block->previous == front
               ? free_to_front(cca, pool, number)
               : free_to_bins(cca, pool, number);
}

// The same of a stream that is special for nothing but that somebody watches.
static APART enum base_status free_watched(struct cca *cca, struct cca__pool *pool,
                                           uint32_t number) {
    const struct cca__block *const block = cca__block_at(cca, number);
    cca__observe_free(cca, pool, block);
    return free_plain(cca, pool, number, block);
}

// What was found is not plain, or not the block at POINTER. The stream's lock is held, and released
// here.
static APART enum base_status free_unlike(struct cca *cca, struct cca__stream *stream,
                                          uint32_t number, uint32_t pool_number, void *pointer) {
    const struct cca__block *const block = cca__block_at(cca, number);
    if (stream->only_watched && cca__block_is_plain(block, pool_number, pointer))
        return free_watched(cca, cca__pool_of_kind(stream, pool_number % 2), number);
    return block->uses != 0 && cca__block_is_of(block, pool_number, pointer)
               ? cca__free_used_locked(stream, pointer, number)
               : free_anew(cca, stream, pointer);
}

// No question on the way whether there is such a block at all: block 0, which is none, is of pool 0
// of stream 0, which is none either but has a lock; what was found is compared under its lock.
enum base_status cca__free(struct allocator *allocator, void *pointer) {
    struct cca *const cca = cca__of(allocator);
    if (__builtin_expect(pointer == NULL, 0)) return BASE_OK;
    const uint32_t number = cca__page_table_find(&cca->page_table, (uint64_t)(uintptr_t)pointer);
    struct cca__block *const block = cca__block_at(cca, number);
    const uint32_t pool_number = cca__block_pool(block);
    // From the number rather than by pool->stream: the lock's address is known a load earlier.
    struct cca__stream *const stream = cca__stream_at(cca, pool_number / 2);
    if (!cca__lock_take_at_once(&stream->lock)) return free_searching(cca, pointer);
    if (__builtin_expect(stream->special || !cca__block_is_plain(block, pool_number, pointer), 0))
        return free_unlike(cca, stream, number, pool_number, pointer);
    return free_plain(cca, cca__pool_of_kind(stream, pool_number % 2), number, block);
}

// The rest of record_stream where a block or a stream must be looked for, or there is nothing to
// do.
static APART enum base_status record_searching(struct cca *cca, void *pointer,
                                               cudaStream_t handle) {
    if (pointer == NULL) return BASE_OK;
    struct cca__pool *pool;
    struct cca__block *block;
    enum base_status status = cca__pointer_lock_around(cca, pointer, &pool, &block);
    if (status != BASE_OK) return status;
    const void *const base = (const void *)(uintptr_t)block->address;
    struct cca__device *const device = pool->stream->device;
    const bool is_own = pool->stream->handle == handle;
    cca__lock_release(&pool->stream->lock);
    if (is_own) return BASE_OK;
    // The using stream may be new, which takes locks that come before the block's.
    struct cca__stream *user;
    enum cca__caller caller = CCA__OUTSIDE;
    status = cca__stream_get(device, handle, &user);
    if (status == BASE_OK) status = cca__caller_of(device, handle, &caller);
    if (status == BASE_OK) status = cca__pointer_lock(cca, base, &pool, &block);
    if (status != BASE_OK) return status;
    status =
        cca__use_add_locked(cca, pool->stream, block, cca__use_of(user, caller == CCA__INSIDE));
    cca__lock_release(&pool->stream->lock);
    // The use counts all the same, as in PyTorch.
    return status == BASE_OK && caller == CCA__INVALIDATED ? cca__caller_is_invalidated() : status;
}

// The rest of it for a handed-out block where a record must be taken or looked through. The
// stream's lock is held, and released here.
static APART enum base_status record_further(struct cca *cca, struct cca__stream *stream,
                                             struct cca__block *block, uint16_t use) {
    const enum base_status status = cca__use_add_locked(cca, stream, block, use);
    cca__lock_release(&stream->lock);
    return status;
}

static APART enum base_status record_anew(struct cca *cca, struct cca__stream *stream,
                                          void *pointer, cudaStream_t handle) {
    cca__lock_release(&stream->lock);
    return record_searching(cca, pointer, handle);
}

enum base_status cca__record_stream(struct allocator *allocator, void *pointer,
                                    cudaStream_t handle) {
    struct cca *const cca = cca__of(allocator);
    const uint32_t number = cca__page_table_find(&cca->page_table, (uint64_t)(uintptr_t)pointer);
    struct cca__block *const block = cca__block_at(cca, number);
    const uint32_t pool_number = cca__block_pool(block);
    if (pool_number < 2) return record_searching(cca, pointer, handle);
    struct cca__stream *const stream = cca__stream_at(cca, pool_number / 2);
    struct cca__stream *user;
    if (!cca__stream_known(stream->device, handle, &user) || user == stream->home ||
        __builtin_expect(cca__may_be_in_capture(stream->device), 0) ||
        !cca__lock_take_at_once(&stream->lock))
        return record_searching(cca, pointer, handle);
    if (!cca__block_is_of(block, pool_number, pointer))
        return record_anew(cca, stream, pointer, handle);
    const uint16_t use = cca__use_of(user, false);
    if (!cca__use_add_first_locked(cca, stream, block, use))
        return record_further(cca, stream, block, use);
    return end_hit(stream, 0);
}

enum base_status cca__empty_cache(struct allocator *allocator) {
    struct cca *const cca = cca__of(allocator);
    enum base_status status = BASE_OK;
    for (int ordinal = 0; ordinal < CCA__DEVICES_MAX && status == BASE_OK; ++ordinal) {
        struct cca__device *const device =
            atomic_load_explicit(&cca->devices[ordinal], memory_order_acquire);
        if (device == NULL) continue;
        cca__lock_take(&device->growth_lock);
        cca__observe(cca,
                     &(struct allocator_event){.action = ALLOCATOR_EMPTY_CACHE, .device = ordinal});
        status = cca__empty_device_locked(device);
        cca__lock_release(&device->growth_lock);
    }
    return status;
}
