// See replay_builder.h.
#include "workload/replay_builder.h"

#include <stdlib.h>

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

enum base_status workload__builder_add_operation(struct workload__builder *builder,
                                                 const struct workload__operation *operation) {
    struct workload_replay_plan *plan = builder->plan;
    void *table = plan->operations;
    enum base_status status =
        reserve(&table, &builder->operation_capacity, plan->operation_count, sizeof *operation);
    plan->operations = table;
    if (status == BASE_OK) plan->operations[plan->operation_count++] = *operation;
    return status;
}

enum base_status workload__builder_add_alloc_address(struct workload__builder *builder,
                                                     uint64_t address) {
    struct workload_replay_plan *plan = builder->plan;
    void *table = plan->alloc_addresses;
    enum base_status status =
        reserve(&table, &builder->alloc_capacity, plan->alloc_count, sizeof address);
    plan->alloc_addresses = table;
    if (status == BASE_OK) plan->alloc_addresses[plan->alloc_count++] = address;
    return status;
}

enum base_status workload__builder_add_segment_event(struct workload__segment_event **events,
                                                     size_t *count, size_t *capacity,
                                                     const struct trace_event *event) {
    void *table = *events;
    enum base_status status = reserve(&table, capacity, *count, sizeof **events);
    *events = table;
    if (status == BASE_OK)
        (*events)[(*count)++] =
            (struct workload__segment_event){.address = event->address,
                                             .size = event->size,
                                             .stream = event->stream,
                                             .pool = event->pool,
                                             .is_mapped = event->action == TRACE_SEGMENT_MAP ||
                                                          event->action == TRACE_SEGMENT_UNMAP};
    return status;
}

enum base_status workload__builder_add_deferred(struct workload__builder *builder) {
    void *table = builder->deferred;
    enum base_status status = reserve(&table, &builder->deferred_capacity, builder->deferred_count,
                                      sizeof *builder->deferred);
    builder->deferred = table;
    if (status == BASE_OK)
        builder->deferred[builder->deferred_count++] = (struct workload__deferred_free){
            .request_operation = builder->plan->operation_count, .key = WORKLOAD__COMPLETES_NEVER};
    return status;
}

enum base_status workload__builder_add_group_slot(struct workload__group *group, uint32_t slot) {
    void *table = group->slots;
    enum base_status status =
        reserve(&table, &group->slot_capacity, group->slot_count, sizeof slot);
    group->slots = table;
    if (status == BASE_OK) group->slots[group->slot_count++] = slot;
    return status;
}

//--------------------------------------------------------------------------------------------------
// Slots.

enum base_status workload__builder_take_slot(struct workload__builder *builder,
                                             const struct workload__slot_state *block,
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

bool workload__builder_find_slot(const struct workload__builder *builder, uint64_t address,
                                 uint32_t *slot) {
    uint64_t there;
    if (!base_address_map_get(&builder->slots_by_address, address, &there)) return false;
    *slot = (uint32_t)there;
    return true;
}

void workload__builder_give_slot_back(struct workload__builder *builder, uint32_t slot) {
    uint64_t removed;
    (void)base_address_map_remove(&builder->slots_by_address, builder->slots[slot].address,
                                  &removed);
    builder->free_slots[builder->free_slot_count++] = slot;
}
