// From a recording to operations.
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
// for a request of its own, says that nobody uses it any more. Segments of one user pool that go back
// first are taken for those of a pool that ended.
//
// What a recording leaves open: a free that waited, requested right before the request that waited
// for it, reads like a free at once; where garbage collection and a wait both may have come before
// a growth, completions are taken for early unless one of them, or a released segment, would have
// served the request (not looked at: a block that would have done so with its free neighbours).
#include "workload/replay_plan.h"

#include "base/address_map.h"
#include "base/size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_SEGMENT_BYTES (2 * BASE_MIB)
#define LARGE_SEGMENT_BYTES (20 * BASE_MIB)
#define COMPLETES_NEVER UINT64_MAX

// A free that did not complete at once.
struct deferred_free {
    size_t request_operation;  // its FREE_REQUEST
    size_t complete_operation; // its FREE_COMPLETE, if it has one
    uint64_t key;              // when it completes, as workload__fences_assign wants it
};

// What happened between two requests.
struct group {
    uint32_t *slots; // whose frees completed, in order
    size_t slot_count, slot_capacity;
    size_t slots_before_release; // of these, before the first segment was released
    size_t release_first;        // index into plan->releases
    size_t pool_release_count;   // of these, the first ones, all of one pool
    uint64_t pool_release_bytes;
    size_t slots_before_others; // of the slots, before the first segment of another pool was released
    size_t segment_first;        // index into plan->segments
    uint64_t reserved_before;    // bytes in segments when it began
    bool emptied;                // the recording says that the program emptied the cache
    bool waited_for;             // a free completed whose request is in the recording
};

struct slot_state {
    uint64_t address, size;
    size_t deferred; // index into deferred, when requested
    uint16_t stream, pool;
    bool requested; // to be freed, not completed
};

struct pool_state {
    bool is_used;
    uint64_t reserved_bytes;
};

struct builder {
    struct workload_replay_plan *plan;
    struct pool_state *pools; // by the trace's index
    uint16_t route;           // the pool that requests go to
    struct base_address_map slots_by_address;
    struct slot_state *slots;
    size_t slot_capacity;
    uint32_t *free_slots; // as large as slots
    size_t free_slot_count;
    struct deferred_free *deferred;
    size_t deferred_count, deferred_capacity;
    size_t pending_count; // deferred frees that have not completed
    size_t operation_capacity, alloc_capacity, segment_capacity, release_capacity;
    struct group group;
    uint64_t group_number;
    uint64_t reserved_bytes;
    uint64_t limit_bytes;            // of the recording's device and process; 0 if unknown
    bool has_fraction;               // the limit is one of the allocator
    uint64_t collection_floor_bytes; // garbage collection may run above it; 0: never
};

//--------------------------------------------------------------------------------------------------
// Tables that grow.

static enum base_status reserve(void **table, size_t *capacity, size_t count, size_t item_size) {
    if (count < *capacity) return BASE_OK;
    const size_t larger = *capacity == 0 ? 256 : *capacity * 2;
    void *moved = realloc(*table, larger * item_size);
    if (moved == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for a plan of %zu entries", larger);
    *table = moved;
    *capacity = larger;
    return BASE_OK;
}

static enum base_status add_operation(struct builder *builder,
                                      const struct workload__operation *operation) {
    struct workload_replay_plan *plan = builder->plan;
    void *table = plan->operations;
    enum base_status status =
        reserve(&table, &builder->operation_capacity, plan->operation_count, sizeof *operation);
    plan->operations = table;
    if (status == BASE_OK) plan->operations[plan->operation_count++] = *operation;
    return status;
}

static enum base_status add_alloc_address(struct builder *builder, uint64_t address) {
    struct workload_replay_plan *plan = builder->plan;
    void *table = plan->alloc_addresses;
    enum base_status status =
        reserve(&table, &builder->alloc_capacity, plan->alloc_count, sizeof address);
    plan->alloc_addresses = table;
    if (status == BASE_OK) plan->alloc_addresses[plan->alloc_count++] = address;
    return status;
}

// The operation is filled in when the group ends.
static enum base_status add_segment_event(struct workload__segment_event **events, size_t *count,
                                          size_t *capacity, const struct trace_event *event) {
    void *table = *events;
    enum base_status status = reserve(&table, capacity, *count, sizeof **events);
    *events = table;
    if (status == BASE_OK)
        (*events)[(*count)++] = (struct workload__segment_event){
            .address = event->address,
            .size = event->size,
            .stream = event->stream,
            .pool = event->pool,
            .is_mapped =
                event->action == TRACE_SEGMENT_MAP || event->action == TRACE_SEGMENT_UNMAP};
    return status;
}

static enum base_status add_deferred(struct builder *builder) {
    void *table = builder->deferred;
    enum base_status status = reserve(&table, &builder->deferred_capacity, builder->deferred_count,
                                      sizeof *builder->deferred);
    builder->deferred = table;
    if (status == BASE_OK)
        builder->deferred[builder->deferred_count++] = (struct deferred_free){
            .request_operation = builder->plan->operation_count, .key = COMPLETES_NEVER};
    return status;
}

static enum base_status add_group_slot(struct group *group, uint32_t slot) {
    void *table = group->slots;
    enum base_status status =
        reserve(&table, &group->slot_capacity, group->slot_count, sizeof slot);
    group->slots = table;
    if (status == BASE_OK) group->slots[group->slot_count++] = slot;
    return status;
}

//--------------------------------------------------------------------------------------------------
// Slots: a live block's place in the table of pointers; the place freed last is used first.

static enum base_status slot_take(struct builder *builder, const struct slot_state *block,
                                  uint32_t *slot) {
    struct workload_replay_plan *plan = builder->plan;
    uint64_t there;
    if (base_address_map_get(&builder->slots_by_address, block->address, &there))
        return base_status_set(BASE_FORMAT,
                               "operation %zu allocates 0x%llx, where a block is in use",
                               plan->operation_count, (unsigned long long)block->address);
    if (builder->free_slot_count > 0) {
        *slot = builder->free_slots[--builder->free_slot_count];
    } else {
        if (plan->slot_count == UINT32_MAX)
            return base_status_set(BASE_LIMIT, "more than 2^32 live blocks");
        size_t capacity = builder->slot_capacity;
        void *table = builder->slots;
        enum base_status status =
            reserve(&table, &capacity, plan->slot_count, sizeof *builder->slots);
        builder->slots = table;
        if (status != BASE_OK) return status;
        table = builder->free_slots;
        status =
            reserve(&table, &builder->slot_capacity, plan->slot_count, sizeof *builder->free_slots);
        builder->free_slots = table;
        if (status != BASE_OK) return status;
        *slot = plan->slot_count++;
    }
    builder->slots[*slot] = *block;
    return base_address_map_set(&builder->slots_by_address, block->address, *slot);
}

static bool slot_find(const struct builder *builder, uint64_t address, uint32_t *slot) {
    uint64_t there;
    if (!base_address_map_get(&builder->slots_by_address, address, &there)) return false;
    *slot = (uint32_t)there;
    return true;
}

static void slot_give_back(struct builder *builder, uint32_t slot) {
    uint64_t removed;
    (void)base_address_map_remove(&builder->slots_by_address, builder->slots[slot].address,
                                  &removed);
    builder->free_slots[builder->free_slot_count++] = slot;
}

//--------------------------------------------------------------------------------------------------
// Groups.

static void group_begin(struct builder *builder) {
    struct group *group = &builder->group;
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
static bool group_is_over_limit(const struct builder *builder, uint64_t size) {
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
static bool group_may_have_collected(const struct builder *builder) {
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

static bool is_oversize(const struct builder *builder, uint64_t size) {
    const int64_t max_split_size = builder->plan->trace->settings.max_split_size;
    return max_split_size >= 0 && size >= (uint64_t)max_split_size;
}

// Below max_split_size, segments of that size and the request's stream and pool go back before
// anything is waited for; of a private pool in use they go back in no other way.
static bool group_may_have_released_oversize(const struct builder *builder) {
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

// Whether free memory of a stream and pool, LEAST to MOST bytes of it, would serve the REQUEST. Small
// requests and large ones have pools of their own, and so have, below max_split_size, oversize
// ones, which take no block that is larger by 20 MiB.
struct free_memory {
    uint64_t least, most;
    uint16_t stream, pool;
    bool is_small;
};
static bool would_serve(const struct builder *builder, const struct free_memory *memory,
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
static bool group_freed_a_fit(const struct builder *builder, const struct trace_event *request) {
    const struct workload_replay_plan *plan = builder->plan;
    const struct group *group = &builder->group;
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
        const struct slot_state *slot = &builder->slots[group->slots[i]];
        if (would_serve(builder,
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

static enum base_status emit_completion(struct builder *builder, uint32_t slot, bool inside) {
    struct deferred_free *deferred = &builder->deferred[builder->slots[slot].deferred];
    deferred->complete_operation = builder->plan->operation_count;
    deferred->key = builder->group_number * 2 + (inside ? 1 : 0);
    enum base_status status = add_operation(
        builder, &(struct workload__operation){
                     .kind = WORKLOAD__FREE_COMPLETE, .slot = slot, .inside_request = inside});
    slot_give_back(builder, slot);
    return status;
}

static enum base_status emit_pool(struct builder *builder, enum workload__operation_kind kind,
                                  uint16_t pool) {
    return add_operation(builder,
                         &(struct workload__operation){.kind = (uint8_t)kind, .slot = pool});
}

static enum base_status emit_route(struct builder *builder, uint16_t pool) {
    if (builder->route == pool) return BASE_OK;
    builder->route = pool;
    builder->pools[pool].is_used = pool != 0;
    return emit_pool(builder, WORKLOAD__POOL_ROUTE, pool);
}

static enum base_status emit_pool_release(struct builder *builder, uint16_t pool) {
    if (!builder->pools[pool].is_used) return BASE_OK;
    builder->pools[pool].is_used = false;
    if (builder->route == pool) builder->route = 0;
    return emit_pool(builder, WORKLOAD__POOL_RELEASE, pool);
}

// Whether memory of the pool was there before the request that ends the group took its own.
static bool pool_had_memory(const struct builder *builder, uint16_t pool) {
    const struct workload_replay_plan *plan = builder->plan;
    uint64_t taken_bytes = 0;
    for (size_t i = builder->group.segment_first; i < plan->segment_count; i++)
        if (plan->segments[i].pool == pool) taken_bytes += plan->segments[i].size;
    return builder->pools[pool].reserved_bytes > taken_bytes;
}

// The user pool that ended; 0: none did, or the REQUEST needs it. What releases everything begins
// with what is in no private pool.
static uint16_t group_ended_pool(const struct builder *builder, const struct trace_event *request) {
    const struct workload_replay_plan *plan = builder->plan;
    const struct group *group = &builder->group;
    if (group->emptied || group->pool_release_count == 0) return 0;
    const uint16_t pool = plan->releases[group->release_first].pool;
    for (size_t i = 0; i < group->slots_before_release; i++)
        if (builder->slots[group->slots[i]].pool != pool) return 0;
    if (request != NULL && request->pool == pool && pool_had_memory(builder, pool)) return 0;
    return plan->trace->pools[pool].user != 0 ? pool : 0;
}

// The cache is emptied, of everything or of one pool; no scope is open then.
static enum base_status emit_empty_cache(struct builder *builder, uint16_t pool) {
    const enum base_status status = emit_route(builder, 0);
    return status != BASE_OK ? status : emit_pool(builder, WORKLOAD__EMPTY_CACHE, pool);
}

// The group began with the end of that pool, which is done with.
static enum base_status emit_pool_end(struct builder *builder, uint16_t pool) {
    struct workload_replay_plan *plan = builder->plan;
    struct group *group = &builder->group;
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

// Ends the group in front of a REQUEST (an allocation, or one that failed), or, NULL, of anything
// else that begins a new one.
static enum base_status group_end(struct builder *builder, const struct trace_event *request) {
    const uint64_t size = request == NULL ? 0 : request->size;
    const bool failed = request != NULL && request->action == TRACE_OOM;
    const bool is_alloc = size > 0;
    struct group *group = &builder->group;
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
    group_begin(builder);
    return status;
}

//--------------------------------------------------------------------------------------------------
// Events.

static bool event_is_note(const struct trace_event *event) {
    return event->action == TRACE_SNAPSHOT || event->action == TRACE_USER_DEFINED ||
           event->action == TRACE_ANNOTATE;
}

// The event at *INDEX is a free. If the next thing that happens is its completion, moves *INDEX
// there.
static bool free_completes_at_once(const struct trace *trace, size_t *index, size_t end) {
    size_t next = *index + 1;
    while (next < end && event_is_note(&trace->events[next])) next++;
    if (next == end || trace->events[next].action != TRACE_FREE_COMPLETED ||
        trace->events[next].address != trace->events[*index].address)
        return false;
    *index = next;
    return true;
}

static enum base_status add_alloc(struct builder *builder, const struct trace_event *event) {
    enum base_status status = group_end(builder, event);
    struct workload__operation operation = {
        .kind = WORKLOAD__ALLOC, .size = event->size, .stream = event->stream};
    const struct slot_state block = {.address = event->address,
                                     .size = event->size,
                                     .stream = event->stream,
                                     .pool = event->pool};
    if (status == BASE_OK) status = slot_take(builder, &block, &operation.slot);
    if (status == BASE_OK) status = add_operation(builder, &operation);
    if (status == BASE_OK) status = add_alloc_address(builder, event->address);
    return status;
}

// A request that failed in the recording has no address; its slot serves only should it succeed
// now.
static enum base_status add_failed_alloc(struct builder *builder, const struct trace_event *event) {
    enum base_status status = group_end(builder, event);
    if (status != BASE_OK) return status;
    return add_operation(builder, &(struct workload__operation){.kind = WORKLOAD__ALLOC_FAILED,
                                                                .size = event->size,
                                                                .slot = UINT32_MAX,
                                                                .stream = event->stream});
}

static enum base_status unknown_block(size_t index, const struct trace_event *event) {
    return base_status_set(BASE_FORMAT, "event %zu: %s of 0x%llx, where no block is in use", index,
                           trace_action_name((enum trace_action)event->action),
                           (unsigned long long)event->address);
}

static enum base_status add_free(struct builder *builder, uint32_t slot) {
    enum base_status status = group_end(builder, NULL);
    if (status == BASE_OK)
        status = add_operation(builder,
                               &(struct workload__operation){.kind = WORKLOAD__FREE, .slot = slot});
    slot_give_back(builder, slot);
    return status;
}

static enum base_status add_free_request(struct builder *builder, uint32_t slot) {
    enum base_status status = group_end(builder, NULL);
    builder->slots[slot].requested = true;
    builder->slots[slot].deferred = builder->deferred_count;
    if (status == BASE_OK) status = add_deferred(builder);
    if (status == BASE_OK)
        status = add_operation(
            builder, &(struct workload__operation){.kind = WORKLOAD__FREE_REQUEST, .slot = slot});
    builder->pending_count++;
    return status;
}

static enum base_status add_completion(struct builder *builder, uint32_t slot) {
    if (!builder->slots[slot].requested)
        return add_free(builder, slot); // a recorder that knows only completions
    builder->slots[slot].requested = false;
    builder->pending_count--;
    const struct deferred_free *deferred = &builder->deferred[builder->slots[slot].deferred];
    if (deferred->request_operation >= builder->plan->start_operation_count)
        builder->group.waited_for = true;
    if (builder->plan->release_count == builder->group.release_first)
        builder->group.slots_before_release++;
    return add_group_slot(&builder->group, slot);
}

// A recording may give back more than it said it took.
static void subtract(uint64_t *bytes, uint64_t less) { *bytes -= less < *bytes ? less : *bytes; }

static enum base_status add_release(struct builder *builder, const struct trace_event *event) {
    struct workload_replay_plan *plan = builder->plan;
    struct group *group = &builder->group;
    subtract(&builder->reserved_bytes, event->size);
    subtract(&builder->pools[event->pool].reserved_bytes, event->size);
    if (group->pool_release_count == plan->release_count - group->release_first &&
        (group->pool_release_count == 0 ||
         plan->releases[group->release_first].pool == event->pool)) {
        group->pool_release_count++;
        group->pool_release_bytes += event->size;
        group->slots_before_others = group->slot_count;
    }
    return add_segment_event(&plan->releases, &plan->release_count, &builder->release_capacity,
                             event);
}

static enum base_status add_event(struct builder *builder, size_t *index, size_t end) {
    const struct trace *trace = builder->plan->trace;
    const struct trace_event *event = &trace->events[*index];
    struct workload_replay_plan *plan = builder->plan;
    uint32_t slot = 0;
    switch ((enum trace_action)event->action) {
    case TRACE_ALLOC:
        return add_alloc(builder, event);
    case TRACE_OOM:
        return add_failed_alloc(builder, event);
    case TRACE_FREE_REQUESTED:
        if (!slot_find(builder, event->address, &slot) || builder->slots[slot].requested)
            return unknown_block(*index, event);
        return free_completes_at_once(trace, index, end) ? add_free(builder, slot)
                                                         : add_free_request(builder, slot);
    case TRACE_FREE_COMPLETED:
        if (!slot_find(builder, event->address, &slot)) return unknown_block(*index, event);
        return add_completion(builder, slot);
    case TRACE_SEGMENT_ALLOC:
    case TRACE_SEGMENT_MAP:
        builder->reserved_bytes += event->size;
        builder->pools[event->pool].reserved_bytes += event->size;
        return add_segment_event(&plan->segments, &plan->segment_count, &builder->segment_capacity,
                                 event);
    case TRACE_SEGMENT_FREE:
    case TRACE_SEGMENT_UNMAP:
        return add_release(builder, event);
    case TRACE_EMPTY_CACHE: {
        enum base_status status = group_end(builder, NULL);
        builder->group.emptied = true;
        return status;
    }
    case TRACE_SNAPSHOT:
    case TRACE_USER_DEFINED:
    case TRACE_ANNOTATE:
    case TRACE_ACTION_COUNT:
        break;
    }
    return BASE_OK;
}

static enum base_status add_events(struct builder *builder) {
    struct workload_replay_plan *plan = builder->plan;
    const size_t end = plan->trace->device_event_first[plan->device + 1];
    for (size_t i = plan->trace->device_event_first[plan->device]; i < end; i++) {
        enum base_status status = add_event(builder, &i, end);
        if (status != BASE_OK) return status;
    }
    return group_end(builder, NULL);
}

//--------------------------------------------------------------------------------------------------
// Start state and limits.

static enum base_status add_start_segment(struct builder *builder,
                                          const struct trace_segment *segment) {
    const struct workload_replay_plan *plan = builder->plan;
    enum base_status status = BASE_OK;
    builder->reserved_bytes += segment->total_size;
    builder->pools[segment->pool].is_used = segment->pool != 0;
    builder->pools[segment->pool].reserved_bytes += segment->total_size;
    for (size_t i = segment->block_first;
         i < segment->block_first + segment->block_count && status == BASE_OK; i++) {
        const struct slot_state block = {.address = plan->start.blocks[i].address,
                                         .size = plan->start.blocks[i].size,
                                         .stream = segment->stream,
                                         .pool = segment->pool};
        if (plan->start.blocks[i].state != TRACE_BLOCK_INACTIVE)
            status = slot_take(builder, &block, &plan->start_slots[i]);
    }
    return status;
}

static enum base_status add_start_state(struct builder *builder) {
    struct workload_replay_plan *plan = builder->plan;
    enum base_status status = trace_start_state(plan->trace, plan->device, &plan->start);
    if (status != BASE_OK) return status;
    plan->start_slots = calloc(plan->start.block_count + 1, sizeof *plan->start_slots);
    if (plan->start_slots == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %zu blocks",
                               plan->start.block_count);
    for (size_t i = 0; i < plan->start.segment_count && status == BASE_OK; i++)
        status = add_start_segment(builder, &plan->start.segments[i]);
    if (status != BASE_OK) return status;
    group_begin(builder);
    for (size_t i = 0; i < plan->start.block_count; i++) {
        if (plan->start.blocks[i].state != TRACE_BLOCK_PENDING_FREE) continue;
        status = add_free_request(builder, plan->start_slots[i]);
        if (status != BASE_OK) return status;
    }
    plan->start_operation_count = plan->operation_count;
    return BASE_OK;
}

static void set_limits(struct builder *builder) {
    const struct trace_settings *settings = &builder->plan->trace->settings;
    builder->limit_bytes = settings->capacity_bytes;
    if (settings->memory_fraction <= 0 || settings->capacity_bytes == 0) return;
    builder->has_fraction = settings->memory_fraction < 1;
    if (settings->memory_fraction < 1)
        builder->limit_bytes =
            (uint64_t)llround(settings->memory_fraction * (double)settings->capacity_bytes);
    if (settings->garbage_collection_threshold > 0)
        builder->collection_floor_bytes =
            (uint64_t)(settings->garbage_collection_threshold * (double)builder->limit_bytes);
}

//--------------------------------------------------------------------------------------------------
// The whole.

static enum base_status assign_fences(struct builder *builder) {
    struct workload_replay_plan *plan = builder->plan;
    const size_t count = builder->deferred_count;
    uint64_t *keys = malloc((count + 1) * sizeof *keys),
             *numbers = malloc((count + 1) * sizeof *numbers);
    uint16_t *side_streams = malloc((count + 1) * sizeof *side_streams);
    const bool enough = keys != NULL && numbers != NULL && side_streams != NULL;
    if (enough) {
        for (size_t i = 0; i < count; i++) keys[i] = builder->deferred[i].key;
        plan->side_stream_count = workload__fences_assign(keys, count, side_streams, numbers);
        for (size_t i = 0; i < count; i++) {
            const struct deferred_free *deferred = &builder->deferred[i];
            plan->operations[deferred->request_operation].stream = side_streams[i];
            plan->operations[deferred->request_operation].size = numbers[i];
            if (deferred->key == COMPLETES_NEVER) continue;
            plan->operations[deferred->complete_operation].stream = side_streams[i];
            plan->operations[deferred->complete_operation].size = numbers[i];
        }
    }
    free(keys);
    free(numbers);
    free(side_streams);
    return enough ? BASE_OK
                  : base_status_set(BASE_HOST_MEMORY, "no memory for %zu deferred frees", count);
}

static enum base_status build(struct builder *builder) {
    struct workload_replay_plan *plan = builder->plan;
    set_limits(builder);
    builder->pools = calloc(plan->trace->pool_count, sizeof *builder->pools);
    if (builder->pools == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %u pools",
                               plan->trace->pool_count);
    enum base_status status = add_start_state(builder);
    if (status == BASE_OK) status = add_events(builder);
    if (status == BASE_OK) status = assign_fences(builder);
    if (status != BASE_OK) return status;
    for (size_t i = plan->start_operation_count; i < plan->operation_count; i++)
        plan->event_count +=
            workload__is_request((enum workload__operation_kind)plan->operations[i].kind);
    return BASE_OK;
}

enum base_status workload_replay_plan_create(const struct trace *trace, int device,
                                             struct workload_replay_plan **plan) {
    enum base_status status = trace_check_replayable(trace, device);
    if (status != BASE_OK) return status;
    struct workload_replay_plan *made = calloc(1, sizeof *made);
    if (made == NULL) return base_status_set(BASE_HOST_MEMORY, "no memory for a replay plan");
    made->trace = trace;
    made->device = device;
    made->has_placement = trace_has_placement(trace, device);
    struct builder builder = {.plan = made};
    status = build(&builder);
    base_address_map_deinit(&builder.slots_by_address);
    free(builder.slots);
    free(builder.pools);
    free(builder.free_slots);
    free(builder.deferred);
    free(builder.group.slots);
    if (status != BASE_OK) {
        workload_replay_plan_destroy(made);
        return status;
    }
    *plan = made;
    return BASE_OK;
}

void workload_replay_plan_destroy(struct workload_replay_plan *plan) {
    if (plan == NULL) return;
    free(plan->operations);
    free(plan->alloc_addresses);
    free(plan->segments);
    free(plan->releases);
    free(plan->start_slots);
    trace_state_deinit(&plan->start);
    free(plan);
}

uint64_t workload_replay_event_count(const struct workload_replay_plan *plan) {
    return plan->event_count;
}
