// See ladder.h, and shortage.h for the rungs. Each is a few lines of climb(); the memory that the
// last one gave becomes a block that is handed out.
#include "allocator/ladder.h"

#include "allocator/capture_caller.h"
#include "allocator/event_poll.h"
#include "allocator/expandable_blocks.h"
#include "allocator/free_memory.h"
#include "allocator/out_of_memory.h"
#include "allocator/pool.h"
#include "allocator/reclaim_idle.h"
#include "allocator/rejection.h"
#include "allocator/release.h"
#include "allocator/segment.h"
#include "allocator/torch_faults.h"
#include "allocator/wait_enough.h"

struct request {
    struct cca__pool *pool;
    size_t rounded, requested;
    size_t segment_size; // that cudaMalloc would be asked for
    bool in_capture;     // nothing is waited for, nothing goes back to the device
};

// What a request got: a cached block, memory for a new segment, or a claimed block of an expandable
// one.
struct gain {
    void *served;    // the cached block, handed out; NULL: memory
    bool over_limit; // then: a limit of the stream was passed
    void *memory;    // NULL: the block
    uint32_t block;
    // Where no expandable segment can be as large as the request: the reserve that was configured
    size_t exceeded_reserve;
    bool raw_failed;  // a private pool's own allocator had nothing
    bool is_rejected; // nothing more is tried
    struct cca_rejection rejection;
};

// Whether the device may be asked for a segment of SIZE bytes at all. BASE_OUT_OF_MEMORY, without a
// sentence, if the fraction refuses or the segment is rejected.
static enum base_status admit(struct cca__device *device, size_t size, bool is_retry,
                              struct gain *gain) {
    if (is_retry) ++device->num_alloc_retries;
    if (device->limited && (device->reserved_bytes > device->allowed_bytes ||
                            size > device->allowed_bytes - device->reserved_bytes))
        return BASE_OUT_OF_MEMORY;
    gain->is_rejected = cca__rejects_locked(device, size, &gain->rejection);
    return gain->is_rejected ? BASE_OUT_OF_MEMORY : BASE_OK;
}

// BASE_OUT_OF_MEMORY, without a sentence, if the device or the fraction refuses. The size of the
// segment that cudaMalloc would give is what the fraction is asked about, also where less is
// mapped.
static enum base_status take_from_device(const struct request *request, struct gain *gain) {
    struct cca__pool *const pool = request->pool;
    struct cca__device *const device = pool->device;
    if (cca__pool_expands(device->owner, pool)) {
        const enum base_status status =
            cca__expandable_grow(pool, request->rounded, &gain->block, &gain->exceeded_reserve);
        // The driver may turn out to have no virtual memory.
        if (status != BASE_UNSUPPORTED) return status;
    }
    const enum base_status status = cca__segment_take(pool, request->segment_size, &gain->memory);
    gain->raw_failed = status == BASE_OUT_OF_MEMORY && pool->has_raw;
    return status;
}

static enum base_status take_memory(const struct request *request, bool is_retry,
                                    struct gain *gain) {
    struct cca__relaxed relaxed;
    *gain = (struct gain){0};
    enum base_status status = admit(request->pool->device, request->segment_size, is_retry, gain);
    if (status != BASE_OK || !request->in_capture)
        return status != BASE_OK ? status : take_from_device(request, gain);
    status = cca__relaxed_begin(&relaxed);
    if (status != BASE_OK) return status;
    status = take_from_device(request, gain);
    cca__relaxed_end(&relaxed);
    return status;
}

// Whether another rung may help.
static bool goes_on(enum base_status status, const struct gain *gain) {
    return status == BASE_OUT_OF_MEMORY && !gain->is_rejected;
}

// Searches the free blocks again. IS_COUNTED: it is a search of PyTorch's, whose number tells how
// long a block lay idle.
static enum base_status search(const struct request *request, bool is_counted, struct gain *gain) {
    struct cca__pool *const pool = request->pool;
    struct cca__device *const device = pool->device;
    cca__lock_take(&pool->stream->lock);
    if (is_counted && device->counts_requests && !pool->is_small &&
        pool->stream->private_pool == NULL)
        atomic_fetch_add_explicit(&device->large_searches, 1, memory_order_relaxed);
    const enum base_status status =
        cca__pool_serve_locked(device->owner, pool, request->rounded, request->requested,
                               &gain->served, &gain->over_limit);
    cca__lock_release(&pool->stream->lock);
    return status;
}

// x_reclaim_idle.
static enum base_status serve_from_other_stream(const struct request *request, struct gain *gain) {
    bool moved;
    const enum base_status status =
        cca__reclaim_idle_locked(request->pool, request->rounded, request->segment_size, &moved);
    return status == BASE_OK && moved ? search(request, false, gain) : status;
}

// x_wait:enough.
static enum base_status wait_for_enough(const struct request *request, struct gain *gain) {
    bool waited = true;
    // What completed meanwhile needs no wait.
    enum base_status status = cca__poll_pending(request->pool->stream);
    if (status == BASE_OK) status = search(request, false, gain);
    while (status == BASE_OK && gain->served == NULL && waited) {
        status = cca__wait_enough_locked(request->pool, request->rounded, &waited);
        if (status == BASE_OK && waited) status = search(request, false, gain);
    }
    return status;
}

// The best fit among a private pool's blocks of the request's stream, but for expandable ones.
static enum base_status serve_from_private(const struct request *request,
                                           const struct cca__private_pool *owner,
                                           struct gain *gain) {
    struct cca *const cca = request->pool->device->owner;
    struct cca__stream *const stream =
        cca__private_pool_stream(owner, request->pool->stream->handle);
    if (stream == NULL) return BASE_OK;
    struct cca__pool *const pool =
        &stream->pools[request->pool->is_small ? CCA__POOL_SMALL : CCA__POOL_LARGE];
    enum base_status status = BASE_OK;
    cca__lock_take(&stream->lock);
    uint32_t number = cca__free_index_find(&pool->index, cca->blocks, request->rounded);
    while (number != 0 && cca__block_is_expandable(cca__block_at(cca, number)))
        number = cca__free_index_next(&pool->index, cca->blocks, number);
    if (number != 0 &&
        !cca__pool_refuses(cca, false, cca__block_at(cca, number)->size, request->rounded)) {
        gain->served = (void *)(uintptr_t)cca__block_at(cca, number)->address;
        status = cca__pool_hand_out_locked(cca, pool, number, request->rounded, request->requested,
                                           &gain->over_limit);
    }
    cca__lock_release(&stream->lock);
    return status;
}

// A request of no private pool may have free blocks of those that allow it. PyTorch opens a scope
// of each for the search and so fails if one is open already. Its failure leaves a use too many,
// which keeps the pool for ever: only with x_torch_faults.
static enum base_status serve_from_private_pools(const struct request *request, struct gain *gain) {
    struct cca__device *const device = request->pool->device;
    if (request->pool->stream->private_pool != NULL) return BASE_OK;
    for (struct cca__private_pool *pool = device->pools.first; pool != NULL; pool = pool->next) {
        if (!pool->exists || !pool->use_on_oom || pool->count == 0) continue;
        if (cca__pools_has_scope(&device->pools, pool)) {
            if (device->owner->config.own.torch_faults) ++pool->count;
            return cca__pools_already_open(pool->id);
        }
        const enum base_status status = serve_from_private(request, pool, gain);
        if (status != BASE_OK || gain->served != NULL) return status;
    }
    return BASE_OK;
}

// The last rung: waits for pending frees, releases everything, and tries once more. Settings of our
// own look at the free blocks in between.
static enum base_status wait_and_release(const struct request *request, struct gain *gain) {
    struct cca__device *const device = request->pool->device;
    const struct cca__own_config *const own = &device->owner->config.own;
    enum base_status status = BASE_OK;
    if (own->wait_enough) status = wait_for_enough(request, gain);
    if (status != BASE_OK || gain->served != NULL) return status;
    status = cca__synchronize_pending(device);
    if (status == BASE_OK && own->retry_search) status = search(request, false, gain);
    if (status != BASE_OK || gain->served != NULL) return status;
    status = cca__release_cached_locked(device);
    return status != BASE_OK ? status : take_memory(request, true, gain);
}

// No free call may reach the driver while it captures. Where scopes count as captures (x_torch),
// only the last rung is left out.
static bool frees_nothing(const struct request *request) {
    return request->in_capture && cca__is_marked(request->pool->device);
}

static enum base_status climb(const struct request *request, struct gain *gain) {
    struct cca__device *const device = request->pool->device;
    enum base_status status = BASE_OK;
    if (device->owner->config.own.reclaim_idle && !request->in_capture)
        status = serve_from_other_stream(request, gain);
    if (status != BASE_OK || gain->served != NULL) return status;
    if (!frees_nothing(request)) status = cca__collect_garbage_locked(device);
    if (status != BASE_OK) return status;
    status = take_memory(request, false, gain);
    if (!goes_on(status, gain)) return status;
    status = serve_from_private_pools(request, gain);
    if (status != BASE_OK || gain->served != NULL) return status;
    if (frees_nothing(request)) return BASE_OUT_OF_MEMORY;
    bool enough;
    status = cca__release_available_locked(request->pool, request->rounded, &enough);
    if (status != BASE_OK) return status;
    if (enough) {
        status = take_memory(request, false, gain);
        if (!goes_on(status, gain)) return status;
    }
    return request->in_capture ? BASE_OUT_OF_MEMORY : wait_and_release(request, gain);
}

// Hands the front of a claimed block out.
static enum base_status hand_out_claimed(const struct request *request, struct gain *gain) {
    struct cca__pool *const pool = request->pool;
    struct cca *const cca = pool->device->owner;
    cca__lock_take(&pool->stream->lock);
    const uint64_t address = cca__block_at(cca, gain->block)->address;
    const enum base_status status = cca__expandable_hand_out_locked(
        cca, pool, gain->block, request->rounded, request->requested, false, &gain->over_limit);
    if (status == BASE_OK)
        gain->served = (void *)(uintptr_t)address;
    else
        cca__expandable_unclaim_locked(cca, pool, gain->block);
    cca__lock_release(&pool->stream->lock);
    return status;
}

// Finds memory and hands it out.
static enum base_status grow_locked(const struct request *request, struct gain *gain) {
    const enum base_status status = climb(request, gain);
    if (status != BASE_OK || gain->served != NULL) return status;
    if (gain->memory != NULL)
        return cca__segment_add(request->pool, gain->memory, request->segment_size,
                                request->rounded, request->requested, &gain->served,
                                &gain->over_limit);
    return hand_out_claimed(request, gain);
}

enum base_status cca__grow(struct cca__stream *stream, size_t rounded, size_t requested,
                           void **pointer) {
    return cca__grow_private(stream, NULL, rounded, requested, pointer);
}

enum base_status cca__grow_private(struct cca__stream *stream, struct cca__private_pool *owner,
                                   size_t rounded, size_t requested, void **pointer) {
    struct cca__device *const device = stream->device;
    struct cca *const cca = device->owner;
    struct request request = {
        .pool = &stream->pools[rounded <= CCA_SMALL_LIMIT ? CCA__POOL_SMALL : CCA__POOL_LARGE],
        .rounded = rounded,
        .requested = requested,
    };
    struct cca_out_of_memory out_of_memory;
    struct gain gain = {0};
    enum cca__caller caller;
    enum base_status status = cca__caller_of(device, stream->handle, &caller);
    if (status != BASE_OK) return status;
    request.in_capture = caller != CCA__OUTSIDE;
    const bool freed = cca__free_memory(cca, device->ordinal);
    cca__lock_take(&device->growth_lock);
    if (stream->private_pool != owner) {
        cca__lock_release(&device->growth_lock);
        *pointer = NULL;
        return BASE_OK;
    }
    if (owner != NULL) cca__private_pool_revive(owner);
    cca__gone_settle_locked(device);
    request.segment_size = cca__segment_size(&cca->config.sizes, rounded);
    // After callbacks freed something; or another thread of this stream may have made room between
    // the miss and the growth lock.
    status = search(&request, freed, &gain);
    if (status == BASE_OK && gain.served == NULL) {
        status = grow_locked(&request, &gain);
        if (goes_on(status, &gain))
            cca__out_of_memory_locked(stream, rounded, gain.exceeded_reserve, gain.raw_failed,
                                      &out_of_memory);
    }
    cca__lock_release(&device->growth_lock);
    if (gain.over_limit) cca__stats_meet(stream);
    if (status == BASE_OK) *pointer = gain.served;
    if (status != BASE_OUT_OF_MEMORY) return status;
    return gain.is_rejected ? cca__rejection_tell(cca, &gain.rejection, requested)
                            : cca__out_of_memory_tell(cca, &out_of_memory);
}
