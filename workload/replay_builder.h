// How a plan is built: what replay_plan.c, which reads the events, replay_group.c, which judges
// what happened between two requests, and replay_builder.c, the tables, give each other. Private to
// them.
#ifndef TIDEMARK_WORKLOAD_REPLAY_BUILDER_H
#define TIDEMARK_WORKLOAD_REPLAY_BUILDER_H

#include "workload/replay_plan.h"

#include "base/address_map.h"

#define WORKLOAD__COMPLETES_NEVER UINT64_MAX

// A free that did not complete at once.
struct workload__deferred_free {
    size_t request_operation;  // its FREE_REQUEST
    size_t complete_operation; // its FREE_COMPLETE, if it has one
    uint64_t key;              // when it completes, as workload__fences_assign wants it
};

// What happened between two requests.
struct workload__group {
    uint32_t *slots; // whose frees completed, in order
    size_t slot_count, slot_capacity;
    size_t slots_before_release; // of these, before the first segment was released
    size_t release_first;        // index into plan->releases
    size_t pool_release_count;   // of these, the first ones, all of one pool
    uint64_t pool_release_bytes;
    size_t
        slots_before_others;  // of the slots, before the first segment of another pool was released
    size_t segment_first;     // index into plan->segments
    uint64_t reserved_before; // bytes in segments when it began
    bool emptied;             // the recording says that the program emptied the cache
    bool waited_for;          // a free completed whose request is in the recording
};

struct workload__slot_state {
    uint64_t address, size;
    size_t deferred; // index into deferred, when requested
    uint16_t stream, pool;
    bool requested; // to be freed, not completed
};

struct workload__pool_state {
    bool is_used;
    uint64_t reserved_bytes;
};

struct workload__builder {
    struct workload_replay_plan *plan;
    struct workload__pool_state *pools; // by the trace's index
    uint16_t route;                     // the pool that requests go to
    struct base_address_map slots_by_address;
    struct workload__slot_state *slots;
    size_t slot_capacity;
    uint32_t *free_slots; // as large as slots
    size_t free_slot_count;
    struct workload__deferred_free *deferred;
    size_t deferred_count, deferred_capacity;
    size_t pending_count; // deferred frees that have not completed
    size_t operation_capacity, alloc_capacity, segment_capacity, release_capacity;
    struct workload__group group;
    uint64_t group_number;
    uint64_t reserved_bytes;
    uint64_t limit_bytes;            // of the recording's device and process; 0 if unknown
    bool has_fraction;               // the limit is one of the allocator
    uint64_t collection_floor_bytes; // garbage collection may run above it; 0: never
};

// --- replay_builder.c: tables that grow. BASE_HOST_MEMORY ---

enum base_status
workload__builder_add_operation(struct workload__builder *builder,
                                const struct workload__operation *operation) BASE_MUST_USE;
enum base_status workload__builder_add_alloc_address(struct workload__builder *builder,
                                                     uint64_t address) BASE_MUST_USE;
// The operation is filled in when the group ends.
enum base_status workload__builder_add_segment_event(struct workload__segment_event **events,
                                                     size_t *count, size_t *capacity,
                                                     const struct trace_event *event) BASE_MUST_USE;
enum base_status workload__builder_add_deferred(struct workload__builder *builder) BASE_MUST_USE;
enum base_status workload__builder_add_group_slot(struct workload__group *group,
                                                  uint32_t slot) BASE_MUST_USE;

// Slots: a live block's place in the table of pointers; the place freed last is used first.
// BASE_FORMAT: a block is in use there.
enum base_status workload__builder_take_slot(struct workload__builder *builder,
                                             const struct workload__slot_state *block,
                                             uint32_t *slot) BASE_MUST_USE;
bool workload__builder_find_slot(const struct workload__builder *builder, uint64_t address,
                                 uint32_t *slot);
void workload__builder_give_slot_back(struct workload__builder *builder, uint32_t slot);

// --- replay_group.c ---

void workload__group_begin(struct workload__builder *builder);
// Ends the group in front of a REQUEST (an allocation, or one that failed), or, NULL, of anything
// else that begins a new one: emits what happened, and begins the next.
enum base_status workload__group_end(struct workload__builder *builder,
                                     const struct trace_event *request) BASE_MUST_USE;

#endif
