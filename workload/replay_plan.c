// From a recording to operations: reads its events, its start state and its limits. What became of
// memory between two requests judges replay_group.c.
#include "workload/replay_builder.h"

#include <math.h>
#include <stdlib.h>

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
    while (next < end && event_is_note(&trace->events[next]))
        next++;
    if (next == end || trace->events[next].action != TRACE_FREE_COMPLETED ||
        trace->events[next].address != trace->events[*index].address)
        return false;
    *index = next;
    return true;
}

static enum base_status add_alloc(struct workload__builder *builder,
                                  const struct trace_event *event) {
    enum base_status status = workload__group_end(builder, event);
    struct workload__operation operation = {
        .kind = WORKLOAD__ALLOC, .size = event->size, .stream = event->stream};
    const struct workload__slot_state block = {.address = event->address,
                                               .size = event->size,
                                               .stream = event->stream,
                                               .pool = event->pool};
    if (status == BASE_OK) status = workload__builder_take_slot(builder, &block, &operation.slot);
    if (status == BASE_OK) status = workload__builder_add_operation(builder, &operation);
    if (status == BASE_OK) status = workload__builder_add_alloc_address(builder, event->address);
    return status;
}

// A request that failed in the recording has no address; its slot serves only should it succeed
// now.
static enum base_status add_failed_alloc(struct workload__builder *builder,
                                         const struct trace_event *event) {
    enum base_status status = workload__group_end(builder, event);
    if (status != BASE_OK) return status;
    return workload__builder_add_operation(
        builder, &(struct workload__operation){.kind = WORKLOAD__ALLOC_FAILED,
                                               .size = event->size,
                                               .slot = UINT32_MAX,
                                               .stream = event->stream});
}

static enum base_status unknown_block(size_t index, const struct trace_event *event) {
    return base_status_set(BASE_FORMAT, "event %zu: %s of 0x%llx, where no block is in use", index,
                           trace_action_name((enum trace_action)event->action),
                           (unsigned long long)event->address);
}

static enum base_status add_free(struct workload__builder *builder, uint32_t slot) {
    enum base_status status = workload__group_end(builder, NULL);
    if (status == BASE_OK)
        status = workload__builder_add_operation(
            builder, &(struct workload__operation){.kind = WORKLOAD__FREE, .slot = slot});
    workload__builder_give_slot_back(builder, slot);
    return status;
}

static enum base_status add_free_request(struct workload__builder *builder, uint32_t slot) {
    enum base_status status = workload__group_end(builder, NULL);
    builder->slots[slot].requested = true;
    builder->slots[slot].deferred = builder->deferred_count;
    if (status == BASE_OK) status = workload__builder_add_deferred(builder);
    if (status == BASE_OK)
        status = workload__builder_add_operation(
            builder, &(struct workload__operation){.kind = WORKLOAD__FREE_REQUEST, .slot = slot});
    builder->pending_count++;
    return status;
}

static enum base_status add_completion(struct workload__builder *builder, uint32_t slot) {
    if (!builder->slots[slot].requested)
        return add_free(builder, slot); // a recorder that knows only completions
    builder->slots[slot].requested = false;
    builder->pending_count--;
    const struct workload__deferred_free *deferred =
        &builder->deferred[builder->slots[slot].deferred];
    if (deferred->request_operation >= builder->plan->start_operation_count)
        builder->group.waited_for = true;
    if (builder->plan->release_count == builder->group.release_first)
        builder->group.slots_before_release++;
    return workload__builder_add_group_slot(&builder->group, slot);
}

// A recording may give back more than it said it took.
static void subtract(uint64_t *bytes, uint64_t less) { *bytes -= less < *bytes ? less : *bytes; }

static enum base_status add_release(struct workload__builder *builder,
                                    const struct trace_event *event) {
    struct workload_replay_plan *plan = builder->plan;
    struct workload__group *group = &builder->group;
    subtract(&builder->reserved_bytes, event->size);
    subtract(&builder->pools[event->pool].reserved_bytes, event->size);
    if (group->pool_release_count == plan->release_count - group->release_first &&
        (group->pool_release_count == 0 ||
         plan->releases[group->release_first].pool == event->pool)) {
        group->pool_release_count++;
        group->pool_release_bytes += event->size;
        group->slots_before_others = group->slot_count;
    }
    return workload__builder_add_segment_event(&plan->releases, &plan->release_count,
                                               &builder->release_capacity, event);
}

static enum base_status add_event(struct workload__builder *builder, size_t *index, size_t end) {
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
        if (!workload__builder_find_slot(builder, event->address, &slot) ||
            builder->slots[slot].requested)
            return unknown_block(*index, event);
        return free_completes_at_once(trace, index, end) ? add_free(builder, slot)
                                                         : add_free_request(builder, slot);
    case TRACE_FREE_COMPLETED:
        if (!workload__builder_find_slot(builder, event->address, &slot))
            return unknown_block(*index, event);
        return add_completion(builder, slot);
    case TRACE_SEGMENT_ALLOC:
    case TRACE_SEGMENT_MAP:
        builder->reserved_bytes += event->size;
        builder->pools[event->pool].reserved_bytes += event->size;
        return workload__builder_add_segment_event(&plan->segments, &plan->segment_count,
                                                   &builder->segment_capacity, event);
    case TRACE_SEGMENT_FREE:
    case TRACE_SEGMENT_UNMAP:
        return add_release(builder, event);
    case TRACE_EMPTY_CACHE: {
        enum base_status status = workload__group_end(builder, NULL);
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

static enum base_status add_events(struct workload__builder *builder) {
    struct workload_replay_plan *plan = builder->plan;
    const size_t end = plan->trace->device_event_first[plan->device + 1];
    for (size_t i = plan->trace->device_event_first[plan->device]; i < end; i++) {
        enum base_status status = add_event(builder, &i, end);
        if (status != BASE_OK) return status;
    }
    return workload__group_end(builder, NULL);
}

//--------------------------------------------------------------------------------------------------
// Start state and limits.

static enum base_status add_start_segment(struct workload__builder *builder,
                                          const struct trace_segment *segment) {
    const struct workload_replay_plan *plan = builder->plan;
    enum base_status status = BASE_OK;
    builder->reserved_bytes += segment->total_size;
    builder->pools[segment->pool].is_used = segment->pool != 0;
    builder->pools[segment->pool].reserved_bytes += segment->total_size;
    for (size_t i = segment->block_first;
         i < segment->block_first + segment->block_count && status == BASE_OK; i++) {
        const struct workload__slot_state block = {.address = plan->start.blocks[i].address,
                                                   .size = plan->start.blocks[i].size,
                                                   .stream = segment->stream,
                                                   .pool = segment->pool};
        if (plan->start.blocks[i].state != TRACE_BLOCK_INACTIVE)
            status = workload__builder_take_slot(builder, &block, &plan->start_slots[i]);
    }
    return status;
}

static enum base_status add_start_state(struct workload__builder *builder) {
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
    workload__group_begin(builder);
    for (size_t i = 0; i < plan->start.block_count; i++) {
        if (plan->start.blocks[i].state != TRACE_BLOCK_PENDING_FREE) continue;
        status = add_free_request(builder, plan->start_slots[i]);
        if (status != BASE_OK) return status;
    }
    plan->start_operation_count = plan->operation_count;
    return BASE_OK;
}

static void set_limits(struct workload__builder *builder) {
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

static enum base_status assign_fences(struct workload__builder *builder) {
    struct workload_replay_plan *plan = builder->plan;
    const size_t count = builder->deferred_count;
    uint64_t *keys = malloc((count + 1) * sizeof *keys),
             *numbers = malloc((count + 1) * sizeof *numbers);
    uint16_t *side_streams = malloc((count + 1) * sizeof *side_streams);
    const bool enough = keys != NULL && numbers != NULL && side_streams != NULL;
    if (enough) {
        for (size_t i = 0; i < count; i++)
            keys[i] = builder->deferred[i].key;
        plan->side_stream_count = workload__fences_assign(keys, count, side_streams, numbers);
        for (size_t i = 0; i < count; i++) {
            const struct workload__deferred_free *deferred = &builder->deferred[i];
            plan->operations[deferred->request_operation].stream = side_streams[i];
            plan->operations[deferred->request_operation].size = numbers[i];
            if (deferred->key == WORKLOAD__COMPLETES_NEVER) continue;
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

static enum base_status build(struct workload__builder *builder) {
    struct workload_replay_plan *plan = builder->plan;
    set_limits(builder);
    builder->pools = calloc(plan->trace->pool_count, sizeof *builder->pools);
    if (builder->pools == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %u pools", plan->trace->pool_count);
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
    struct workload__builder builder = {.plan = made};
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
