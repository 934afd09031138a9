// The program's calls about private pools: each is a few lines on the registry, under the locks
// that it needs. See pools.h.
#include "allocator/pools.h"

#include "allocator/capture_caller.h"
#include "allocator/deferral.h"
#include "allocator/device.h"
#include "allocator/event_poll.h"
#include "allocator/release.h"
#include "allocator/snapshot.h"
#include "allocator/torch_faults.h"

#include <stdlib.h>

// The device, with its growth lock and the locks of all its streams.
static enum base_status lock_device(struct allocator *allocator, int ordinal,
                                    struct cca__device **device) {
    const enum base_status status = cca__device_of(allocator, ordinal, "private pools", device);
    if (status != BASE_OK) return status;
    cca__lock_take(&(*device)->growth_lock);
    cca__streams_lock_all(*device);
    return BASE_OK;
}

static enum base_status unlock_device(struct cca__device *device, enum base_status status) {
    cca__streams_unlock_all(device);
    cca__lock_release(&device->growth_lock);
    return status;
}

// After the pool's own flags changed.
static void tell_streams_locked(const struct cca__private_pool *pool) {
    for (size_t index = 0; index < pool->stream_count; ++index)
        for (int kind = 0; kind < 2; ++kind) {
            pool->streams[index]->pools[kind].no_split = pool->no_split;
            pool->streams[index]->pools[kind].has_raw = pool->has_raw;
        }
}

// After scopes changed.
static void update_captures(struct cca__device *device) {
    cca__lock_take(&device->growth_lock);
    cca__lock_take(&device->events_lock);
    cca__captures_update_locked(device);
    cca__lock_release(&device->events_lock);
    cca__lock_release(&device->growth_lock);
}

enum base_status cca_pool_create(struct allocator *allocator, int ordinal,
                                 struct allocator_pool_id id, const struct cca_raw_allocator *raw) {
    struct cca__device *device;
    struct cca__private_pool *pool;
    enum base_status status = lock_device(allocator, ordinal, &device);
    if (status != BASE_OK) return status;
    status = cca__pools_create(&device->pools, id, raw, &pool);
    if (status == BASE_OK) tell_streams_locked(pool);
    return unlock_device(device, status);
}

enum base_status cca_pool_release(struct allocator *allocator, int ordinal,
                                  struct allocator_pool_id id) {
    struct cca__device *device;
    const enum base_status status = lock_device(allocator, ordinal, &device);
    return status != BASE_OK ? status
                             : unlock_device(device, cca__pools_release(&device->pools, id));
}

enum base_status cca_pool_count(struct allocator *allocator, int ordinal,
                                struct allocator_pool_id id, int64_t *count) {
    struct cca__device *device;
    struct cca__private_pool *pool;
    enum base_status status = lock_device(allocator, ordinal, &device);
    if (status != BASE_OK) return status;
    status = cca__pools_get(&device->pools, id, &pool);
    if (status == BASE_OK) *count = pool->count;
    return unlock_device(device, status);
}

enum base_status cca_pool_begin(struct allocator *allocator, int ordinal,
                                struct allocator_pool_id id, const struct cca_pool_filter *filter) {
    struct cca__device *device;
    enum base_status status = lock_device(allocator, ordinal, &device);
    if (status != BASE_OK) return status;
    status = cca__pools_begin(&device->pools, id, filter);
    if (status == BASE_OK) tell_streams_locked(device->pools.newest->pool);
    cca__device_update_settings_locked(device);
    status = unlock_device(device, status);
    update_captures(device);
    return status;
}

enum base_status cca_pool_end(struct allocator *allocator, int ordinal,
                              struct allocator_pool_id id) {
    struct cca__device *device;
    enum base_status status = cca__device_of(allocator, ordinal, "private pools", &device);
    if (status == BASE_OK) status = cca__captures_check_scope(device, id);
    if (status == BASE_OK) status = lock_device(allocator, ordinal, &device);
    if (status != BASE_OK) return status;
    struct cca__pool_scope *closed;
    status = cca__pools_end(&device->pools, id, &closed);
    cca__device_update_settings_locked(device);
    status = unlock_device(device, status);
    if (status != BASE_OK) return status;
    cca__pool_scope_destroy(closed);
    return cca__captures_end_scope(device, id);
}

enum base_status cca_pool_set_use_on_oom(struct allocator *allocator, int ordinal,
                                         struct allocator_pool_id id, bool on) {
    struct cca__device *device;
    struct cca__private_pool *pool;
    enum base_status status = lock_device(allocator, ordinal, &device);
    if (status != BASE_OK) return status;
    status = cca__pools_remember(&device->pools, id, &pool);
    if (status == BASE_OK) pool->use_on_oom = on;
    return unlock_device(device, status);
}

enum base_status cca_pool_set_no_split(struct allocator *allocator, int ordinal,
                                       struct allocator_pool_id id) {
    struct cca__device *device;
    struct cca__private_pool *pool;
    enum base_status status = lock_device(allocator, ordinal, &device);
    if (status != BASE_OK) return status;
    status = cca__pools_get(&device->pools, id, &pool);
    if (status == BASE_OK) {
        pool->no_split = true;
        tell_streams_locked(pool);
    }
    return unlock_device(device, status);
}

// growth_lock held.
static enum base_status empty_locked(struct cca__device *device, struct allocator_pool_id id) {
    if ((id.capture | id.user) == 0) return cca__empty_device_locked(device);
    struct cca__private_pool *const pool = cca__pools_find(&device->pools, id);
    if (pool == NULL || !cca__private_pool_is_freeable(pool)) return BASE_OK;
    enum cca__caller caller;
    enum base_status status = cca__caller_of_device(device, &caller);
    if (status != BASE_OK || caller != CCA__OUTSIDE) return status; // it goes with the next one
    cca__gone_settle_locked(device);
    status = cca__synchronize_private(device, pool);
    return status != BASE_OK ? status : cca__release_private_locked(device, pool);
}

enum base_status cca_pool_empty_cache(struct allocator *allocator, int ordinal,
                                      struct allocator_pool_id id) {
    struct cca__device *device;
    enum base_status status = cca__device_of(allocator, ordinal, "private pools", &device);
    if (status != BASE_OK) return status;
    cca__lock_take(&device->growth_lock);
    status = empty_locked(device, id);
    cca__lock_release(&device->growth_lock);
    return status;
}

enum base_status cca_pool_destroy(struct allocator *allocator, int ordinal,
                                  struct allocator_pool_id id) {
    struct cca__device *device;
    enum base_status status = lock_device(allocator, ordinal, &device);
    if (status != BASE_OK) return status;
    struct cca__private_pool *const pool = cca__pools_find(&device->pools, id);
    if (pool != NULL) pool->use_on_oom = false;
    status = unlock_device(device, cca__pools_release(&device->pools, id));
    return status != BASE_OK ? status : cca_pool_empty_cache(allocator, ordinal, id);
}

//------------------------------------------------------------------------------------------------
// Queries.

static int compare_ids(const void *a, const void *b) {
    const struct allocator_pool_id x = ((const struct cca_pool_stats *)a)->id;
    const struct allocator_pool_id y = ((const struct cca_pool_stats *)b)->id;
    if (x.capture != y.capture) return x.capture < y.capture ? -1 : 1;
    return (x.user > y.user) - (x.user < y.user);
}

static enum base_status copy_stats_locked(const struct cca__device *device,
                                          struct cca_pool_stats **pools, size_t *count) {
    size_t room = 1, used = 0;
    for (const struct cca__private_pool *pool = device->pools.first; pool != NULL;
         pool = pool->next)
        ++room;
    struct cca_pool_stats *const copies = calloc(room, sizeof *copies);
    if (copies == NULL)
        return base_status_set(BASE_HOST_MEMORY,
                               "out of host memory for the statistics of %zu private pools",
                               room - 1);
    for (const struct cca__private_pool *pool = device->pools.first; pool != NULL;
         pool = pool->next) {
        if (!pool->had_memory) continue;
        copies[used].id = pool->id;
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind)
            copies[used].reserved_bytes[kind] = pool->reserved[kind];
        ++used;
    }
    qsort(copies, used, sizeof *copies, compare_ids);
    *pools = copies;
    *count = used;
    return BASE_OK;
}

enum base_status cca_pool_stats(struct allocator *allocator, int ordinal,
                                struct cca_pool_stats **pools, size_t *count) {
    struct cca__device *device;
    const enum base_status status = lock_device(allocator, ordinal, &device);
    return status != BASE_OK ? status
                             : unlock_device(device, copy_stats_locked(device, pools, count));
}

enum base_status cca_pool_snapshot(struct allocator *allocator, struct allocator_pool_id id,
                                   struct allocator_snapshot *snapshot) {
    enum base_status status = cca__require_caching(allocator, "private pools");
    if (status == BASE_OK) status = cca__fork_check(cca__of(allocator));
    return status != BASE_OK ? status : cca__snapshot(cca__of(allocator), id, snapshot);
}
