// The statistics as PyTorch has them, derived from the ledgers and peaks, and their resets: see
// stats.h.
#include "allocator/stats.h"

#include "allocator/core.h"

#include <string.h>

// Sum of all increases since the allocator was made.
static int64_t pool_allocated(const struct cca__pool *pool, enum cca__family family) {
    const struct cca__ledger *const ledger = &pool->ledger;
    switch (family) {
    case CCA__ALLOCATION:
    case CCA__ACTIVE:
        return ledger->handed.blocks;
    case CCA__INACTIVE_SPLIT:
        return ledger->split_free_rises;
    case CCA__ALLOCATED_BYTES:
    case CCA__ACTIVE_BYTES:
        return ledger->handed.sizes[CCA__BYTES];
    case CCA__INACTIVE_SPLIT_BYTES:
        // And what was taken.
        return ledger->split_bytes_rises + ledger->handed.sizes[CCA__BYTES] -
               cca__pool_current(pool, CCA__ACTIVE_BYTES);
    case CCA__REQUESTED_BYTES:
        return ledger->handed.sizes[CCA__REQUESTED];
    case CCA__FAMILY_COUNT:
        break;
    }
    BASE_CHECK(false);
    return 0;
}

static int64_t stream_current(const struct cca__stream *stream, enum cca__family family, int kind) {
    int64_t current = 0;
    if (kind != ALLOCATOR_STAT_LARGE_POOL)
        current += cca__pool_current(&stream->pools[CCA__POOL_SMALL], family);
    if (kind != ALLOCATOR_STAT_SMALL_POOL)
        current += cca__pool_current(&stream->pools[CCA__POOL_LARGE], family);
    return current;
}

static int64_t stream_allocated(const struct cca__stream *stream, enum cca__family family,
                                int kind) {
    int64_t allocated = 0;
    if (kind != ALLOCATOR_STAT_LARGE_POOL)
        allocated += pool_allocated(&stream->pools[CCA__POOL_SMALL], family);
    if (kind != ALLOCATOR_STAT_SMALL_POOL)
        allocated += pool_allocated(&stream->pools[CCA__POOL_LARGE], family);
    return allocated;
}

static struct allocator_stat *family_stat(struct allocator_stats *stats, enum cca__family family) {
    switch (family) {
    case CCA__ALLOCATION:
        return stats->allocation;
    case CCA__ACTIVE:
        return stats->active;
    case CCA__INACTIVE_SPLIT:
        return stats->inactive_split;
    case CCA__ALLOCATED_BYTES:
        return stats->allocated_bytes;
    case CCA__ACTIVE_BYTES:
        return stats->active_bytes;
    case CCA__INACTIVE_SPLIT_BYTES:
        return stats->inactive_split_bytes;
    case CCA__REQUESTED_BYTES:
        return stats->requested_bytes;
    case CCA__FAMILY_COUNT:
        break;
    }
    BASE_CHECK(false);
    return NULL;
}

// Sums over the device's streams, since the allocator was made.
static struct allocator_stat family_sums(const struct cca__device *device, enum cca__family family,
                                         int kind) {
    struct allocator_stat sums = {.peak = device->peak[family][kind]};
    for (const struct cca__stream *stream = device->first_created; stream != NULL;
         stream = stream->created_next) {
        sums.current += stream_current(stream, family, kind);
        sums.allocated += stream_allocated(stream, family, kind);
    }
    sums.freed = sums.allocated - sums.current;
    return sums;
}

void cca__stats_read_locked(struct cca__device *device, struct allocator_stats *stats) {
    memset(stats, 0, sizeof *stats);
    cca__stats_meet_locked(device, NULL); // a thread may be on its way to a meeting
    for (int family = 0; family < CCA__FAMILY_COUNT; ++family)
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind) {
            struct allocator_stat *const stat = &family_stat(stats, (enum cca__family)family)[kind];
            *stat = family_sums(device, (enum cca__family)family, kind);
            stat->allocated -= device->allocated_base[family][kind];
            stat->freed -= device->freed_base[family][kind];
        }
    memcpy(stats->segment, device->segment, sizeof stats->segment);
    memcpy(stats->reserved_bytes, device->reserved, sizeof stats->reserved_bytes);
    cca__lock_take(&device->tally_lock);
    stats->oversize_allocations = device->oversize_allocations;
    cca__lock_release(&device->tally_lock);
    stats->oversize_segments = device->oversize_segments;
    stats->num_alloc_retries = device->num_alloc_retries;
    stats->num_ooms = device->num_ooms;
    stats->num_sync_all_streams = device->num_sync_all_streams;
    stats->num_device_alloc = device->num_device_alloc;
    stats->num_device_free = device->num_device_free;
    stats->num_oom_rejections = device->num_oom_rejections;
    stats->max_split_size = device->owner->max_split_size_at_creation;
}

void cca__stats_reset_peak_locked(struct cca__device *device) {
    for (int family = 0; family < CCA__FAMILY_COUNT; ++family)
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind) {
            device->peak[family][kind] = 0;
            for (struct cca__stream *stream = device->first_created; stream != NULL;
                 stream = stream->created_next) {
                stream->family_limit[family][kind] =
                    stream_current(stream, (enum cca__family)family, kind);
                device->peak[family][kind] += stream->family_limit[family][kind];
            }
        }
    for (struct cca__stream *stream = device->first_created; stream != NULL;
         stream = stream->created_next)
        cca__stats_update_limits_locked(stream);
    for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind) {
        device->segment[kind].peak = device->segment[kind].current;
        device->reserved[kind].peak = device->reserved[kind].current;
    }
    device->oversize_segments.peak = device->oversize_segments.current;
    for (struct cca__private_pool *pool = device->pools.first; pool != NULL; pool = pool->next)
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind)
            pool->reserved[kind].peak = pool->reserved[kind].current;
    cca__lock_take(&device->tally_lock);
    device->oversize_allocations.peak = device->oversize_allocations.current;
    cca__lock_release(&device->tally_lock);
}

static void forget_accumulated(struct allocator_stat *stat) { stat->allocated = stat->freed = 0; }

void cca__stats_reset_accumulated_locked(struct cca__device *device) {
    for (int family = 0; family < CCA__FAMILY_COUNT; ++family)
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind) {
            const struct allocator_stat sums = family_sums(device, (enum cca__family)family, kind);
            device->allocated_base[family][kind] = sums.allocated;
            device->freed_base[family][kind] = sums.freed;
        }
    for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind) {
        forget_accumulated(&device->segment[kind]);
        forget_accumulated(&device->reserved[kind]);
    }
    forget_accumulated(&device->oversize_segments);
    for (struct cca__private_pool *pool = device->pools.first; pool != NULL; pool = pool->next)
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind)
            forget_accumulated(&pool->reserved[kind]);
    cca__lock_take(&device->tally_lock);
    forget_accumulated(&device->oversize_allocations);
    cca__lock_release(&device->tally_lock);
    device->num_alloc_retries = device->num_ooms = device->num_sync_all_streams = 0;
    device->num_device_alloc = device->num_device_free = device->num_oom_rejections = 0;
}
