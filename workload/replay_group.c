// What happened between two requests of a recording.
//
// The one judgement here is what a released segment means. A recording shows releases without
// saying whose they are: a request that found no memory (garbage collection, the release ladder) or
// a call of the program to empty the cache. Events between two requests form a group; a request
// that grew in the group, under limits that did not let it, explains the releases of its group, and
// anything else was an empty_cache. Limits that nobody knows explain nothing: then the replay has
// none either, and emptying the cache first gives the same blocks.
//
// Likewise a deferred free completes before the request whose group shows it, unless that request
// itself had to wait for everything: then it completed after the request's first search, and must
// not be found by that search.
//
// Requests carry the private pool that served them. Who uses a pool, and how long, a recording does
// not tell: its first request makes the pool one in use, and a release of one of its segments, but
// for a request of its own, says that nobody uses it any more. Segments of one user pool that go
// back first are taken for those of a pool that ended.
//
// What a recording leaves open: a free that waited, requested right before the request that waited
// for it, reads like a free at once; where garbage collection and a wait both may have come before
// a growth, completions are taken for early unless one of them, or a released segment, would have
// served the request (not looked at: a block that would have done so with its free neighbours).
#include "workload/replay_builder.h"

#include "base/size.h"

#include <string.h>

#define SMALL_SEGMENT_BYTES (2 * BASE_MIB)
#define LARGE_SEGMENT_BYTES (20 * BASE_MIB)

void workload__group_begin(struct workload__builder *builder) {
    struct workload__group *group = &builder->group;
    group->slot_count = group->slots_before_release = 0;
    group->pool_release_count = group->pool_release_bytes = group->slots_before_others = 0;
    group->release_first = builder->plan->release_count;
    group->segment_first = builder->plan->segment_count;
    group->reserved_before = builder->reserved_bytes;
    group->emptied = group->waited_for = false;
    builder->group_number++;
}

// The segment that the allocator compares with its fraction, also where it maps less; a changed
// large_segment_size_mb is not known here.
static uint64_t segment_of_request(uint64_t size) {
    if (size <= BASE_MIB) return SMALL_SEGMENT_BYTES;
    if (size < 10 * BASE_MIB) return LARGE_SEGMENT_BYTES;
    return base_round_up(size, SMALL_SEGMENT_BYTES);
}

// Memory was taken for a request of SIZE bytes although everything before it did not fit: only
// after all cached memory went back.
static bool group_is_over_limit(const struct workload__builder *builder, uint64_t size) {
    const struct workload_replay_plan *plan = builder->plan;
    if (builder->limit_bytes == 0 || plan->segment_count == builder->group.segment_first)
        return false;
    uint64_t wanted = plan->segments[plan->segment_count - 1].size;
    if (plan->segments[plan->segment_count - 1].is_mapped) {
        wanted = 0;
        for (size_t i = builder->group.segment_first; i < plan->segment_count; i++)
            wanted += plan->segments[i].size;
        const uint64_t segment = segment_of_request(size);
        if (builder->has_fraction && segment > wanted) wanted = segment;
    }
    return builder->group.reserved_before + wanted > builder->limit_bytes;
}

// Garbage collection takes whole segments of the default large pool.
static bool group_may_have_collected(const struct workload__builder *builder) {
    const struct workload_replay_plan *plan = builder->plan;
    if (builder->collection_floor_bytes == 0 ||
        builder->group.reserved_before <= builder->collection_floor_bytes)
        return false;
    for (size_t i = builder->group.release_first; i < plan->release_count; i++)
        if (plan->releases[i].size <= SMALL_SEGMENT_BYTES || plan->releases[i].is_mapped ||
            plan->releases[i].pool != 0)
            return false;
    return true;
}

static bool is_of_same_pool(const struct workload__segment_event *a,
                            const struct workload__segment_event *b) {
    return a->stream == b->stream && a->pool == b->pool;
}

static bool is_oversize(const struct workload__builder *builder, uint64_t size) {
    const int64_t max_split_size = builder->plan->trace->settings.max_split_size;
    return max_split_size >= 0 && size >= (uint64_t)max_split_size;
}

// Below max_split_size, segments of that size and the request's stream and pool go back before
// anything is waited for; of a private pool in use they go back in no other way.
static bool group_may_have_released_oversize(const struct workload__builder *builder) {
    const struct workload_replay_plan *plan = builder->plan;
    if (plan->segment_count == builder->group.segment_first) return false;
    const struct workload__segment_event *taken = &plan->segments[plan->segment_count - 1];
    for (size_t i = builder->group.release_first; i < plan->release_count; i++) {
        const struct workload__segment_event *release = &plan->releases[i];
        if (!is_oversize(builder, release->size) || !is_of_same_pool(release, taken) ||
            release->is_mapped)
            return false;
        if (release->pool != 0) return true;
    }
    return plan->release_count > builder->group.release_first;
}

// Of a stream and pool.
struct free_memory {
    uint64_t least, most;
    uint16_t stream, pool;
    bool is_small;
};

// Whether free MEMORY, least to most bytes of it, would serve the REQUEST.
// Small requests and large ones have pools of their own, and so have, below max_split_size,
// oversize ones, which take no block that is larger by 20 MiB.
static bool would_serve(const struct workload__builder *builder, const struct free_memory *memory,
                        const struct trace_event *request) {
    const bool oversize = is_oversize(builder, request->size);
    return memory->stream == request->stream && memory->pool == request->pool &&
           memory->is_small == (request->size <= BASE_MIB) && memory->least >= request->size &&
           is_oversize(builder, memory->least) == oversize &&
           is_oversize(builder, memory->most) == oversize &&
           (!oversize || memory->most < request->size + LARGE_SEGMENT_BYTES);
}

// The group freed what would have served the REQUEST, had it been free when that searched: a block,
// or a segment that was released.
static bool group_freed_a_fit(const struct workload__builder *builder,
                              const struct trace_event *request) {
    const struct workload_replay_plan *plan = builder->plan;
    const struct workload__group *group = &builder->group;
    for (size_t i = group->release_first; i < plan->release_count; i++) {
        const struct workload__segment_event *release = &plan->releases[i];
        if (would_serve(builder,
                        &(struct free_memory){.least = release->size,
                                              .most = release->size,
                                              .stream = release->stream,
                                              .pool = release->pool,
                                              .is_small = release->size <= SMALL_SEGMENT_BYTES},
                        request))
            return true;
    }
    for (size_t i = 0; i < group->slot_count; i++) {
        const struct workload__slot_state *slot = &builder->slots[group->slots[i]];
        if (would_serve(
                builder,
                &(struct free_memory){.least = slot->size,
                                      .most = slot->size + BASE_MIB, // what is not split off
                                      .stream = slot->stream,
                                      .pool = slot->pool,
                                      .is_small = slot->size <= BASE_MIB},
                request))
            return true;
    }
    return false;
}

static enum base_status emit_completion(struct workload__builder *builder, uint32_t slot,
                                        bool inside) {
    struct workload__deferred_free *deferred = &builder->deferred[builder->slots[slot].deferred];
    deferred->complete_operation = builder->plan->operation_count;
    deferred->key = builder->group_number * 2 + (inside ? 1 : 0);
    enum base_status status = workload__builder_add_operation(
        builder, &(struct workload__operation){
                     .kind = WORKLOAD__FREE_COMPLETE, .slot = slot, .inside_request = inside});
    workload__builder_give_slot_back(builder, slot);
    return status;
}

static enum base_status emit_pool(struct workload__builder *builder,
                                  enum workload__operation_kind kind, uint16_t pool) {
    return workload__builder_add_operation(
        builder, &(struct workload__operation){.kind = (uint8_t)kind, .slot = pool});
}

static enum base_status emit_route(struct workload__builder *builder, uint16_t pool) {
    if (builder->route == pool) return BASE_OK;
    builder->route = pool;
    builder->pools[pool].is_used = pool != 0;
    return emit_pool(builder, WORKLOAD__POOL_ROUTE, pool);
}

static enum base_status emit_pool_release(struct workload__builder *builder, uint16_t pool) {
    if (!builder->pools[pool].is_used) return BASE_OK;
    builder->pools[pool].is_used = false;
    if (builder->route == pool) builder->route = 0;
    return emit_pool(builder, WORKLOAD__POOL_RELEASE, pool);
}

// Whether memory of the pool was there before the request that ends the group took its own.
static bool pool_had_memory(const struct workload__builder *builder, uint16_t pool) {
    const struct workload_replay_plan *plan = builder->plan;
    uint64_t taken_bytes = 0;
    for (size_t i = builder->group.segment_first; i < plan->segment_count; i++)
        if (plan->segments[i].pool == pool) taken_bytes += plan->segments[i].size;
    return builder->pools[pool].reserved_bytes > taken_bytes;
}

// The user pool that ended; 0: none did, or the REQUEST needs it. What releases everything begins
// with what is in no private pool.
static uint16_t group_ended_pool(const struct workload__builder *builder,
                                 const struct trace_event *request) {
    const struct workload_replay_plan *plan = builder->plan;
    const struct workload__group *group = &builder->group;
    if (group->emptied || group->pool_release_count == 0) return 0;
    const uint16_t pool = plan->releases[group->release_first].pool;
    for (size_t i = 0; i < group->slots_before_release; i++)
        if (builder->slots[group->slots[i]].pool != pool) return 0;
    if (request != NULL && request->pool == pool && pool_had_memory(builder, pool)) return 0;
    return plan->trace->pools[pool].user != 0 ? pool : 0;
}

// The cache is emptied, of everything or of one pool; no scope is open then.
static enum base_status emit_empty_cache(struct workload__builder *builder, uint16_t pool) {
    const enum base_status status = emit_route(builder, 0);
    return status != BASE_OK ? status : emit_pool(builder, WORKLOAD__EMPTY_CACHE, pool);
}

// The group began with the end of that pool, which is done with.
static enum base_status emit_pool_end(struct workload__builder *builder, uint16_t pool) {
    struct workload_replay_plan *plan = builder->plan;
    struct workload__group *group = &builder->group;
    enum base_status status = BASE_OK;
    for (size_t i = 0; i < group->slots_before_release && status == BASE_OK; i++)
        status = emit_completion(builder, group->slots[i], false);
    if (status == BASE_OK) status = emit_pool_release(builder, pool);
    if (status == BASE_OK) status = emit_empty_cache(builder, pool);
    for (size_t i = 0; i < group->pool_release_count; i++)
        plan->releases[group->release_first++].operation = plan->operation_count - 1;
    group->reserved_before -= group->pool_release_bytes;
    group->slot_count -= group->slots_before_release;
    if (group->slot_count > 0)
        memmove(group->slots, group->slots + group->slots_before_release,
                group->slot_count * sizeof *group->slots);
    group->slots_before_release = group->slots_before_others - group->slots_before_release;
    if (group->slot_count == 0) group->waited_for = false;
    return status;
}

enum base_status workload__group_end(struct workload__builder *builder,
                                     const struct trace_event *request) {
    const uint64_t size = request == NULL ? 0 : request->size;
    const bool failed = request != NULL && request->action == TRACE_OOM;
    const bool is_alloc = size > 0;
    struct workload__group *group = &builder->group;
    struct workload_replay_plan *plan = builder->plan;
    enum base_status status = BASE_OK;
    const uint16_t ended_pool = group_ended_pool(builder, request);
    if (ended_pool != 0) status = emit_pool_end(builder, ended_pool);
    const bool released = plan->release_count > group->release_first;
    const bool grew = is_alloc && plan->segment_count > group->segment_first;
    const bool waited = failed || (grew && group_is_over_limit(builder, size));
    const bool collected = (grew || failed) && group_may_have_collected(builder);
    // Only an allocation or an emptied cache looks at pending frees. A window's first completion
    // may belong to a free at once, whose request is lost.
    const bool emptied =
        group->emptied || (released && !waited && !collected) || (group->waited_for && !is_alloc);
    const size_t before_release = released ? group->slots_before_release : group->slot_count;
    const bool all_inside = waited && !emptied && builder->pending_count == 0 &&
                            ((!collected && !group_may_have_released_oversize(builder)) ||
                             group_freed_a_fit(builder, request));
    const size_t outside = emptied ? group->slot_count : all_inside ? 0 : before_release;

    for (size_t i = 0; i < outside && status == BASE_OK; i++)
        status = emit_completion(builder, group->slots[i], false);
    // Whose segments went back had no user left, unless the request took them away for itself.
    for (size_t i = group->release_first; i < plan->release_count && status == BASE_OK; i++)
        if (emptied || !is_alloc || plan->releases[i].pool != request->pool)
            status = emit_pool_release(builder, plan->releases[i].pool);
    if (emptied && status == BASE_OK) status = emit_empty_cache(builder, 0);
    const size_t empty_operation = plan->operation_count - 1;
    if (is_alloc && status == BASE_OK) status = emit_route(builder, request->pool);
    for (size_t i = group->release_first; i < plan->release_count; i++)
        plan->releases[i].operation =
            emptied ? empty_operation : plan->operation_count + group->slot_count - outside;
    for (size_t i = outside; i < group->slot_count && status == BASE_OK; i++)
        status = emit_completion(builder, group->slots[i], true);
    for (size_t i = group->segment_first; i < plan->segment_count; i++)
        plan->segments[i].operation = plan->operation_count;
    workload__group_begin(builder);
    return status;
}
