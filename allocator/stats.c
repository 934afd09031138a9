// Peaks by limits, and the statistics derived from the ledgers: see stats.h.
#include "allocator/stats.h"

#include "allocator/core.h"
#include "allocator/device.h"

#include <string.h>

static struct cca__counts taken_of(const struct cca__pool *pool) {
    return cca__counts_subtract(pool->ledger.room,
                                pool->stream->limits[cca__pool_kind(pool)].active);
}

int64_t cca__pool_current(const struct cca__pool *pool, enum cca__family family) {
    const struct cca__ledger *const ledger = &pool->ledger;
    const struct cca__counts current = cca__counts_subtract(ledger->handed, taken_of(pool));
    const int64_t active = current.blocks, active_bytes = current.sizes[CCA__BYTES];
    switch (family) {
    case CCA__ALLOCATION: return active - pool->pending.blocks;
    case CCA__ACTIVE: return active;
    case CCA__INACTIVE_SPLIT: return current.split_free;
    case CCA__ALLOCATED_BYTES: return active_bytes - pool->pending.bytes;
    case CCA__ACTIVE_BYTES: return active_bytes;
    case CCA__INACTIVE_SPLIT_BYTES: return ledger->partial_bytes - active_bytes;
    case CCA__REQUESTED_BYTES: return current.sizes[CCA__REQUESTED];
    case CCA__FAMILY_COUNT: break;
    }
    BASE_CHECK(false);
    return 0;
}

// Sum of all increases since the allocator was made.
static int64_t pool_allocated(const struct cca__pool *pool, enum cca__family family) {
    const struct cca__ledger *const ledger = &pool->ledger;
    switch (family) {
    case CCA__ALLOCATION:
    case CCA__ACTIVE: return ledger->handed.blocks;
    case CCA__INACTIVE_SPLIT: return ledger->split_free_rises;
    case CCA__ALLOCATED_BYTES:
    case CCA__ACTIVE_BYTES: return ledger->handed.sizes[CCA__BYTES];
    case CCA__INACTIVE_SPLIT_BYTES:
        return ledger->split_bytes_rises + taken_of(pool).sizes[CCA__BYTES];
    case CCA__REQUESTED_BYTES: return ledger->handed.sizes[CCA__REQUESTED];
    case CCA__FAMILY_COUNT: break;
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

//------------------------------------------------------------------------------------------------
// Limits.

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Sets the limits of one kind from those of the families. What is allocated is what is active less
// what is pending, so one test of the active counters serves both families.
static void set_limits(struct cca__stream *stream, int kind, struct cca__pending pending) {
    const int64_t(*const family)[ALLOCATOR_STAT_KIND_COUNT] = stream->family_limit;
    struct cca__limits *const limits = &stream->limits[kind];
    limits->active.blocks =
        least(family[CCA__ACTIVE][kind], family[CCA__ALLOCATION][kind] + pending.blocks);
    limits->active.sizes[CCA__BYTES] =
        least(family[CCA__ACTIVE_BYTES][kind], family[CCA__ALLOCATED_BYTES][kind] + pending.bytes);
    limits->active.sizes[CCA__REQUESTED] = family[CCA__REQUESTED_BYTES][kind];
    limits->active.split_free = family[CCA__INACTIVE_SPLIT][kind];
    limits->split_bytes = family[CCA__INACTIVE_SPLIT_BYTES][kind];
}

void cca__stats_update_limits_locked(struct cca__stream *stream) {
    struct cca__ledger *const small = &stream->pools[CCA__POOL_SMALL].ledger;
    struct cca__ledger *const large = &stream->pools[CCA__POOL_LARGE].ledger;
    struct cca__limits *const of_small = &stream->limits[ALLOCATOR_STAT_SMALL_POOL];
    struct cca__limits *const of_large = &stream->limits[ALLOCATOR_STAT_LARGE_POOL];
    struct cca__limits *const of_all = &stream->limits[ALLOCATOR_STAT_ALL];
    const struct cca__counts small_taken = cca__counts_subtract(small->room, of_small->active);
    const struct cca__counts large_taken = cca__counts_subtract(large->room, of_large->active);
    const struct cca__pending pending_small = stream->pools[CCA__POOL_SMALL].pending;
    const struct cca__pending pending_large = stream->pools[CCA__POOL_LARGE].pending;
    set_limits(stream, ALLOCATOR_STAT_SMALL_POOL, pending_small);
    set_limits(stream, ALLOCATOR_STAT_LARGE_POOL, pending_large);
    set_limits(stream, ALLOCATOR_STAT_ALL,
               (struct cca__pending){pending_small.blocks + pending_large.blocks,
                                     pending_small.bytes + pending_large.bytes});
    small->room = cca__counts_add(small_taken, of_small->active);
    large->room = cca__counts_add(large_taken, of_large->active);
    stream->both_slack = cca__counts_subtract(
        cca__counts_subtract(of_all->active, of_small->active), of_large->active);
    small->split_bytes_bound = of_small->split_bytes + of_small->active.sizes[CCA__BYTES];
    large->split_bytes_bound = of_large->split_bytes + of_large->active.sizes[CCA__BYTES];
    stream->both_split_bytes_bound = of_all->split_bytes + of_small->active.sizes[CCA__BYTES] +
                                     of_large->active.sizes[CCA__BYTES];
}

bool cca__stats_raise_locked(struct cca__stream *stream) {
    struct cca__device *const device = stream->device;
    if (device->first_created != stream || stream->created_next != NULL) return false;
    for (int family = 0; family < CCA__FAMILY_COUNT; ++family) {
        int64_t current[ALLOCATOR_STAT_KIND_COUNT];
        current[ALLOCATOR_STAT_SMALL_POOL] =
            cca__pool_current(&stream->pools[CCA__POOL_SMALL], (enum cca__family)family);
        current[ALLOCATOR_STAT_LARGE_POOL] =
            cca__pool_current(&stream->pools[CCA__POOL_LARGE], (enum cca__family)family);
        current[ALLOCATOR_STAT_ALL] =
            current[ALLOCATOR_STAT_SMALL_POOL] + current[ALLOCATOR_STAT_LARGE_POOL];
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind)
            if (current[kind] > stream->family_limit[family][kind])
                stream->family_limit[family][kind] = device->peak[family][kind] = current[kind];
    }
    cca__stats_update_limits_locked(stream);
    return true;
}

// One family and kind over all streams: raises the peak to the sum, lets every stream have at
// least what it uses, and takes what the limits then have too much from streams with room.
static void settle(struct cca__device *device, enum cca__family family, int kind) {
    int64_t total = 0, limits = 0;
    for (struct cca__stream *stream = device->first_created; stream != NULL;
         stream = stream->created_next) {
        const int64_t current = stream_current(stream, family, kind);
        int64_t *const limit = &stream->family_limit[family][kind];
        if (current > *limit) *limit = current;
        total += current;
        limits += *limit;
    }
    if (total > device->peak[family][kind]) device->peak[family][kind] = total;
    int64_t excess = limits - device->peak[family][kind];
    for (struct cca__stream *stream = device->first_created; excess > 0;
         stream = stream->created_next) {
        int64_t *const limit = &stream->family_limit[family][kind];
        const int64_t taken = least(excess, *limit - stream_current(stream, family, kind));
        *limit -= taken;
        excess -= taken;
    }
}

void cca__stats_meet_locked(struct cca__device *device) {
    for (int family = 0; family < CCA__FAMILY_COUNT; ++family)
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind)
            settle(device, (enum cca__family)family, kind);
    for (struct cca__stream *each = device->first_created; each != NULL; each = each->created_next)
        cca__stats_update_limits_locked(each);
}

void cca__stats_meet(struct cca__stream *stream) {
    struct cca__device *const device = stream->device;
    cca__streams_lock_all(device);
    cca__stats_meet_locked(device);
    cca__streams_unlock_all(device);
}

//------------------------------------------------------------------------------------------------
// Reading and resetting.

static struct allocator_stat *family_stat(struct allocator_stats *stats, enum cca__family family) {
    switch (family) {
    case CCA__ALLOCATION: return stats->allocation;
    case CCA__ACTIVE: return stats->active;
    case CCA__INACTIVE_SPLIT: return stats->inactive_split;
    case CCA__ALLOCATED_BYTES: return stats->allocated_bytes;
    case CCA__ACTIVE_BYTES: return stats->active_bytes;
    case CCA__INACTIVE_SPLIT_BYTES: return stats->inactive_split_bytes;
    case CCA__REQUESTED_BYTES: return stats->requested_bytes;
    case CCA__FAMILY_COUNT: break;
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
    cca__stats_meet_locked(device); // a thread may be on its way to a meeting
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
    cca__lock_take(&device->tally_lock);
    forget_accumulated(&device->oversize_allocations);
    cca__lock_release(&device->tally_lock);
    device->num_alloc_retries = device->num_ooms = device->num_sync_all_streams = 0;
    device->num_device_alloc = device->num_device_free = device->num_oom_rejections = 0;
}
