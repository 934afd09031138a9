// Did the allocator decide as the recording says? Compared while a replay runs: addresses of
// allocations, segments taken, segments released, and at the end the layout. Private to the replay.
#ifndef TIDEMARK_WORKLOAD_SELF_CHECK_H
#define TIDEMARK_WORKLOAD_SELF_CHECK_H

#include "workload/replay_plan.h"

#include "base/address_map.h"

struct workload__check {
    const struct workload_replay_plan *plan;
    struct workload_self_check result;
    size_t alloc_cursor, segment_cursor, release_cursor; // how far the recording is compared
    uint64_t *released; // segments that the operation under way released
    size_t released_count, released_capacity;
    size_t extra_count; // segments and releases that the recording has not
};

void workload__check_init(struct workload__check *check, const struct workload_replay_plan *plan);
// An allocation of the plan was answered.
void workload__check_alloc(struct workload__check *check, size_t operation, const void *pointer);
// The allocator took a segment, released one.
void workload__check_segment(struct workload__check *check, size_t operation, uint64_t size);
enum base_status workload__check_release(struct workload__check *check,
                                         uint64_t address) BASE_MUST_USE;
// The operation is over: its releases are compared, in whatever order they came.
void workload__check_operation_end(struct workload__check *check, size_t operation);
// The final layout. REQUESTED: blocks that the allocator holds as allocated, whose free has been
// requested (by address).
void workload__check_layout(struct workload__check *check,
                            const struct allocator_snapshot *snapshot,
                            const struct base_address_map *requested);
// Fills result.exact. Recorded operations that were not reached count as different.
void workload__check_finish(struct workload__check *check);
void workload__check_deinit(struct workload__check *check);

#endif
