// Peaks by limits: see stats.h.
#include "allocator/stats.h"

#include "allocator/core.h"
#include "allocator/device.h"

#include <string.h>

static struct cca__counts taken_of(const struct cca__pool *pool) {
    return cca__counts_subtract(pool->ledger.room,
                                pool->stream->limits[cca__pool_kind(pool)].active);
}

typedef int64_t family_counts[CCA__FAMILY_COUNT];

// All families of a pool at once: what they share is the larger part of each.
static inline void read_pool(const struct cca__pool *pool, family_counts current) {
    const struct cca__counts active = cca__counts_subtract(pool->ledger.handed, taken_of(pool));
    const int64_t active_bytes = active.sizes[CCA__BYTES];
    current[CCA__ALLOCATION] = active.blocks - pool->pending[CCA__PENDING_BLOCKS];
    current[CCA__ACTIVE] = active.blocks;
    current[CCA__INACTIVE_SPLIT] = active.split_free;
    current[CCA__ALLOCATED_BYTES] = active_bytes - pool->pending[CCA__PENDING_BYTES];
    current[CCA__ACTIVE_BYTES] = active_bytes;
    current[CCA__INACTIVE_SPLIT_BYTES] = pool->ledger.partial_bytes - active_bytes;
    current[CCA__REQUESTED_BYTES] = active.sizes[CCA__REQUESTED];
}

int64_t cca__pool_current(const struct cca__pool *pool, enum cca__family family) {
    family_counts current;
    read_pool(pool, current);
    return current[family];
}

//------------------------------------------------------------------------------------------------
// Limits.

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static cca__pending free_of(const struct cca__stream *stream, int kind) {
    const int64_t(*const family)[ALLOCATOR_STAT_KIND_COUNT] = stream->family_limit;
    return (cca__pending){family[CCA__ACTIVE][kind] - family[CCA__ALLOCATION][kind],
                          family[CCA__ACTIVE_BYTES][kind] - family[CCA__ALLOCATED_BYTES][kind]};
}

// Sets the limits of one kind from those of the families. What is allocated is what is active less
// what is pending, so one test of the active counters serves both families.
static void set_limits(struct cca__stream *stream, int kind, cca__pending pending) {
    const int64_t(*const family)[ALLOCATOR_STAT_KIND_COUNT] = stream->family_limit;
    struct cca__limits *const limits = &stream->limits[kind];
    limits->active.blocks = least(family[CCA__ACTIVE][kind],
                                  family[CCA__ALLOCATION][kind] + pending[CCA__PENDING_BLOCKS]);
    limits->active.sizes[CCA__BYTES] =
        least(family[CCA__ACTIVE_BYTES][kind],
              family[CCA__ALLOCATED_BYTES][kind] + pending[CCA__PENDING_BYTES]);
    limits->free = free_of(stream, kind);
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
    const cca__pending pending_small = stream->pools[CCA__POOL_SMALL].pending;
    const cca__pending pending_large = stream->pools[CCA__POOL_LARGE].pending;
    set_limits(stream, ALLOCATOR_STAT_SMALL_POOL, pending_small);
    set_limits(stream, ALLOCATOR_STAT_LARGE_POOL, pending_large);
    set_limits(stream, ALLOCATOR_STAT_ALL, pending_small + pending_large);
    small->room = cca__counts_add(small_taken, of_small->active);
    large->room = cca__counts_add(large_taken, of_large->active);
    stream->both_slack = cca__counts_subtract(
        cca__counts_subtract(of_all->active, of_small->active), of_large->active);
    small->split_bytes_bound = of_small->split_bytes + of_small->active.sizes[CCA__BYTES];
    large->split_bytes_bound = of_large->split_bytes + of_large->active.sizes[CCA__BYTES];
    stream->both_split_bytes_bound = of_all->split_bytes + of_small->active.sizes[CCA__BYTES] +
                                     of_large->active.sizes[CCA__BYTES];
}

// What the limits of one kind for active blocks and bytes become when more wait for events, as
// increases.
static cca__pending pending_raises(struct cca__stream *stream, int kind, cca__pending pending) {
    const int64_t(*const family)[ALLOCATOR_STAT_KIND_COUNT] = stream->family_limit;
    struct cca__counts *const active = &stream->limits[kind].active;
    const int64_t old_blocks = active->blocks, old_bytes = active->sizes[CCA__BYTES];
    active->blocks = least(family[CCA__ACTIVE][kind],
                           family[CCA__ALLOCATION][kind] + pending[CCA__PENDING_BLOCKS]);
    active->sizes[CCA__BYTES] =
        least(family[CCA__ACTIVE_BYTES][kind],
              family[CCA__ALLOCATED_BYTES][kind] + pending[CCA__PENDING_BYTES]);
    return (cca__pending){active->blocks - old_blocks, active->sizes[CCA__BYTES] - old_bytes};
}

// As cca__stats_update_limits_locked, for the counters and kinds that change.
void cca__stats_move_limits_locked(struct cca__pool *pool) {
    struct cca__stream *const stream = pool->stream;
    struct cca__ledger *const ledger = &pool->ledger;
    const cca__pending own = pending_raises(stream, cca__pool_kind(pool), pool->pending);
    const cca__pending both =
        pending_raises(stream, ALLOCATOR_STAT_ALL, pool->pending + pool->other->pending);
    ledger->room.blocks += own[CCA__PENDING_BLOCKS];
    ledger->room.sizes[CCA__BYTES] += own[CCA__PENDING_BYTES];
    ledger->split_bytes_bound += own[CCA__PENDING_BYTES];
    stream->both_slack.blocks += both[CCA__PENDING_BLOCKS] - own[CCA__PENDING_BLOCKS];
    stream->both_slack.sizes[CCA__BYTES] += both[CCA__PENDING_BYTES] - own[CCA__PENDING_BYTES];
    stream->both_split_bytes_bound += own[CCA__PENDING_BYTES];
}

typedef int64_t stream_counts[CCA__FAMILY_COUNT][ALLOCATOR_STAT_KIND_COUNT];

static void read_stream(const struct cca__stream *stream, stream_counts current) {
    family_counts small, large;
    read_pool(&stream->pools[CCA__POOL_SMALL], small);
    read_pool(&stream->pools[CCA__POOL_LARGE], large);
    for (int family = 0; family < CCA__FAMILY_COUNT; ++family) {
        current[family][ALLOCATOR_STAT_ALL] = small[family] + large[family];
        current[family][ALLOCATOR_STAT_SMALL_POOL] = small[family];
        current[family][ALLOCATOR_STAT_LARGE_POOL] = large[family];
    }
}

// Reads all counters of a stream, and raises its limits to them. True if one was raised.
static bool raise_limits(struct cca__stream *stream, stream_counts current) {
    bool raised = false;
    read_stream(stream, current);
    for (int family = 0; family < CCA__FAMILY_COUNT; ++family)
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind)
            if (current[family][kind] > stream->family_limit[family][kind]) {
                stream->family_limit[family][kind] = current[family][kind];
                raised = true;
            }
    if (raised) cca__stats_update_limits_locked(stream);
    return raised;
}

// By how much SLACK is below 0.
static struct cca__counts lacking(struct cca__counts slack) {
    return (struct cca__counts){
        {-least(slack.sizes[CCA__BYTES], 0), -least(slack.sizes[CCA__REQUESTED], 0)},
        -least(slack.blocks, 0),
        -least(slack.split_free, 0)};
}

static inline void raise_peak(struct cca__stream *stream, enum cca__family family, int kind,
                              int64_t limit) {
    stream->device->peak[family][kind] = stream->family_limit[family][kind] = limit;
}

// Raises the limits of one kind by what they lack: the families' limits, which are the peaks.
static void raise_kind(struct cca__stream *stream, int kind, struct cca__counts lacks) {
    const int64_t(*const family)[ALLOCATOR_STAT_KIND_COUNT] = stream->family_limit;
    struct cca__limits *const limits = &stream->limits[kind];
    limits->active = cca__counts_add(limits->active, lacks);
    const int64_t blocks = limits->active.blocks, bytes = limits->active.sizes[CCA__BYTES];
    raise_peak(stream, CCA__ALLOCATION, kind, most(blocks, family[CCA__ALLOCATION][kind]));
    raise_peak(stream, CCA__ACTIVE, kind, most(blocks, family[CCA__ACTIVE][kind]));
    raise_peak(stream, CCA__ALLOCATED_BYTES, kind, most(bytes, family[CCA__ALLOCATED_BYTES][kind]));
    raise_peak(stream, CCA__ACTIVE_BYTES, kind, most(bytes, family[CCA__ACTIVE_BYTES][kind]));
    raise_peak(stream, CCA__REQUESTED_BYTES, kind, limits->active.sizes[CCA__REQUESTED]);
    raise_peak(stream, CCA__INACTIVE_SPLIT, kind, limits->active.split_free);
    limits->free = free_of(stream, kind);
}
static bool is_zero(struct cca__counts counts) {
    return (counts.sizes[CCA__BYTES] | counts.sizes[CCA__REQUESTED] | counts.blocks |
            counts.split_free) == 0;
}

static struct cca__counts slack_of(const struct cca__ledger *ledger) {
    return cca__counts_subtract(ledger->room, ledger->handed);
}

// How far inactive_split_bytes is below what it may be.
static int64_t split_bytes_slack(const struct cca__ledger *ledger, int64_t bound) {
    return bound - ledger->partial_bytes - slack_of(ledger).sizes[CCA__BYTES];
}

static void raise_split_bytes(struct cca__stream *stream, int kind, int64_t *bound, int64_t slack) {
    if (slack >= 0) return;
    *bound -= slack;
    stream->limits[kind].split_bytes -= slack;
    raise_peak(stream, CCA__INACTIVE_SPLIT_BYTES, kind, stream->limits[kind].split_bytes);
}

// A device's only stream, of which nothing waits for events: what is allocated is what is active,
// so the counters that hits test are all that can have passed a limit. In first growth that is
// every call.
static void raise_alone(struct cca__stream *stream) {
    struct cca__ledger *const small = &stream->pools[CCA__POOL_SMALL].ledger;
    struct cca__ledger *const large = &stream->pools[CCA__POOL_LARGE].ledger;
    const struct cca__counts of_small = lacking(slack_of(small)),
                             of_large = lacking(slack_of(large));
    const struct cca__counts own = cca__counts_add(of_small, of_large);
    small->room = cca__counts_add(small->room, of_small);
    large->room = cca__counts_add(large->room, of_large);
    small->split_bytes_bound += of_small.sizes[CCA__BYTES];
    large->split_bytes_bound += of_large.sizes[CCA__BYTES];
    stream->both_split_bytes_bound += own.sizes[CCA__BYTES];
    const struct cca__counts both = cca__counts_subtract(stream->both_slack, own);
    const struct cca__counts of_all =
        lacking(cca__counts_add(both, cca__counts_add(slack_of(small), slack_of(large))));
    stream->both_slack = cca__counts_add(both, of_all);
    if (!is_zero(of_small)) raise_kind(stream, ALLOCATOR_STAT_SMALL_POOL, of_small);
    if (!is_zero(of_large)) raise_kind(stream, ALLOCATOR_STAT_LARGE_POOL, of_large);
    if (!is_zero(of_all)) raise_kind(stream, ALLOCATOR_STAT_ALL, of_all);
    raise_split_bytes(stream, ALLOCATOR_STAT_SMALL_POOL, &small->split_bytes_bound,
                      split_bytes_slack(small, small->split_bytes_bound));
    raise_split_bytes(stream, ALLOCATOR_STAT_LARGE_POOL, &large->split_bytes_bound,
                      split_bytes_slack(large, large->split_bytes_bound));
    raise_split_bytes(stream, ALLOCATOR_STAT_ALL, &stream->both_split_bytes_bound,
                      split_bytes_slack(small, stream->both_split_bytes_bound) +
                          split_bytes_slack(large, 0));
}

bool cca__stats_raise_locked(struct cca__stream *stream) {
    struct cca__device *const device = stream->device;
    if (device->first_created != stream || stream->created_next != NULL) return false;
    // Its limits are the peaks.
    const cca__pending pending =
        stream->pools[CCA__POOL_SMALL].pending | stream->pools[CCA__POOL_LARGE].pending;
    if (pending[CCA__PENDING_BLOCKS] == 0) {
        raise_alone(stream);
        return true;
    }
    stream_counts current;
    if (raise_limits(stream, current))
        memcpy(device->peak, stream->family_limit, sizeof device->peak);
    return true;
}

// What streams that meet find out and pass on, of each family and kind.
struct meeting {
    stream_counts excess; // what the limits have beyond the peak: to be given up
    stream_counts wish;   // what the caller lacks to have as much as it used at some time
    stream_counts gain;   // what the others give it
};

// The lines of the counters are in other cores' caches; so that they come all at once.
static void prefetch_counters(const struct cca__device *device) {
    for (const struct cca__stream *stream = device->first_created; stream != NULL;
         stream = stream->created_next) {
        for (int index = 0; index < 2; ++index) {
            __builtin_prefetch(&stream->pools[index].ledger, 1);
            __builtin_prefetch(&stream->pools[index].ledger.split_bytes_bound, 1);
            __builtin_prefetch(&stream->pools[index].pending, 1);
        }
        for (const char *line = (const char *)stream->limits;
             line < (const char *)(stream->family_most + CCA__FAMILY_COUNT); line += 64)
            __builtin_prefetch(line, 1);
    }
}

// Raises the limits to what is used and the peaks to the sums. CALLER may be NULL.
static void take_stock(struct cca__device *device, const struct cca__stream *caller,
                       struct meeting *meeting) {
    stream_counts total = {{0}};
    prefetch_counters(device);
    for (struct cca__stream *stream = device->first_created; stream != NULL;
         stream = stream->created_next) {
        stream_counts current;
        raise_limits(stream, current);
        for (int family = 0; family < CCA__FAMILY_COUNT; ++family)
            for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind) {
                int64_t *const used = &stream->family_most[family][kind];
                *used = most(*used, current[family][kind]);
                total[family][kind] += current[family][kind];
                meeting->excess[family][kind] += stream->family_limit[family][kind];
                if (stream == caller)
                    meeting->wish[family][kind] = *used - stream->family_limit[family][kind];
            }
    }
    for (int family = 0; family < CCA__FAMILY_COUNT; ++family)
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind) {
            int64_t *const peak = &device->peak[family][kind];
            if (total[family][kind] > *peak) *peak = total[family][kind];
            meeting->excess[family][kind] -= *peak;
        }
}

// What a stream with ROOM gives to a caller with a WISH. SPARE: how much of the room it never used.
// Of the rest it keeps half: else two that need the same would take it from each other with every
// call.
static int64_t gift(int64_t wish, int64_t room, int64_t spare) {
    const int64_t at_least = most(spare, 0) / 2;
    return least(most(wish, at_least), most(spare, room / 2));
}

static void give_up(struct cca__stream *stream, bool has_caller, struct meeting *meeting) {
    stream_counts current;
    int64_t changed = 0;
    read_stream(stream, current);
    for (int family = 0; family < CCA__FAMILY_COUNT; ++family)
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind) {
            int64_t *const limit = &stream->family_limit[family][kind];
            int64_t *const excess = &meeting->excess[family][kind];
            int64_t *const wish = &meeting->wish[family][kind];
            int64_t room = *limit - current[family][kind];
            const int64_t taken = least(*excess, room);
            room -= taken;
            const int64_t spare = room + current[family][kind] - stream->family_most[family][kind];
            const int64_t given = has_caller ? gift(*wish, room, spare) : 0;
            *limit -= taken + given;
            *excess -= taken;
            *wish -= given;
            meeting->gain[family][kind] += given;
            changed |= taken | given;
        }
    if (changed != 0) cca__stats_update_limits_locked(stream);
}

static void accept(struct cca__stream *caller, const struct meeting *meeting) {
    for (int family = 0; family < CCA__FAMILY_COUNT; ++family)
        for (int kind = 0; kind < ALLOCATOR_STAT_KIND_COUNT; ++kind)
            caller->family_limit[family][kind] +=
                meeting->gain[family][kind] - meeting->excess[family][kind];
    cca__stats_update_limits_locked(caller);
}

void cca__stats_meet_locked(struct cca__device *device, struct cca__stream *caller) {
    struct meeting meeting = {0};
    take_stock(device, caller, &meeting);
    for (struct cca__stream *stream = device->first_created; stream != NULL;
         stream = stream->created_next)
        if (stream != caller) give_up(stream, caller != NULL, &meeting);
    if (caller != NULL) accept(caller, &meeting);
}

void cca__stats_meet(struct cca__stream *stream) {
    struct cca__device *const device = stream->device;
    cca__streams_lock_all(device);
    cca__stats_meet_locked(device, stream);
    cca__streams_unlock_all(device);
}
