// Segments are compared one by one in order. Releases are compared as the set that one operation
// gave back: the recording's order among streams goes by raw stream handles, which a replay does
// not have.
#include "workload/self_check.h"

#include "base/size.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void workload__check_init(struct workload__check *check, const struct workload_replay_plan *plan) {
    *check = (struct workload__check){.plan = plan};
    check->result.checked = true;
    check->result.block_count = plan->alloc_count;
    check->result.segment_count = plan->segment_count;
    check->result.release_count = plan->release_count;
    for (size_t i = 0; i < plan->trace->segment_count; i++)
        if (plan->trace->segments[i].device == plan->device)
            check->result.layout_count += plan->trace->segments[i].block_count;
}

static void differ(struct workload__check *check, const char *format, ...) BASE_PRINTF(2, 3);

// Only the first difference is told: what follows is mostly its consequence.
static void differ(struct workload__check *check, const char *format, ...) {
    if (check->result.first_difference[0] != 0) return;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(check->result.first_difference, sizeof check->result.first_difference, format,
                    arguments);
    va_end(arguments);
}

void workload__check_alloc(struct workload__check *check, size_t operation, const void *pointer) {
    const uint64_t recorded = check->plan->alloc_addresses[check->alloc_cursor++];
    if ((uint64_t)(uintptr_t)pointer == recorded) {
        check->result.block_equal_count++;
        return;
    }
    char size[BASE_SIZE_TEXT];
    differ(check, "allocation %zu (operation %zu, %s, stream %u) at %p, recorded at 0x%llx",
           check->alloc_cursor - 1, operation,
           base_size_format(check->plan->operations[operation].size, size),
           check->plan->operations[operation].stream, pointer, (unsigned long long)recorded);
}

void workload__check_segment(struct workload__check *check, size_t operation, uint64_t size) {
    const struct workload_replay_plan *plan = check->plan;
    char text[BASE_SIZE_TEXT];
    if (check->segment_cursor == plan->segment_count) {
        check->extra_count++;
        differ(check, "operation %zu took a segment of %s, the recording took none", operation,
               base_size_format(size, text));
        return;
    }
    const struct workload__segment_event *recorded = &plan->segments[check->segment_cursor++];
    if (recorded->size == size && recorded->operation == operation) {
        check->result.segment_equal_count++;
        return;
    }
    char recorded_text[BASE_SIZE_TEXT];
    differ(check,
           "operation %zu took a segment of %s, the recording took one of %s at operation %zu",
           operation, base_size_format(size, text), base_size_format(recorded->size, recorded_text),
           recorded->operation);
}

enum base_status workload__check_release(struct workload__check *check, uint64_t address) {
    if (check->released_count == check->released_capacity) {
        const size_t capacity = check->released_capacity == 0 ? 64 : check->released_capacity * 2;
        uint64_t *released = realloc(check->released, capacity * sizeof *released);
        if (released == NULL)
            return base_status_set(BASE_HOST_MEMORY, "no memory for %zu released segments",
                                   capacity);
        check->released = released;
        check->released_capacity = capacity;
    }
    check->released[check->released_count++] = address;
    return BASE_OK;
}

static int compare_addresses(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

void workload__check_operation_end(struct workload__check *check, size_t operation) {
    const struct workload_replay_plan *plan = check->plan;
    const size_t first = check->release_cursor;
    while (check->release_cursor < plan->release_count &&
           plan->releases[check->release_cursor].operation == operation)
        check->release_cursor++;
    const size_t recorded_count = check->release_cursor - first;
    if (check->released_count == 0 && recorded_count == 0) return;
    if (check->released_count > 1)
        qsort(check->released, check->released_count, sizeof *check->released, compare_addresses);
    uint64_t equal = 0;
    for (size_t i = first; i < check->release_cursor && check->released_count > 0; i++)
        equal += bsearch(&plan->releases[i].address, check->released, check->released_count,
                         sizeof *check->released, compare_addresses) != NULL;
    check->result.release_equal_count += equal;
    check->extra_count += check->released_count - equal;
    if (equal != recorded_count || equal != check->released_count)
        differ(check,
               "operation %zu released %zu segments, %llu of the %zu that the recording released",
               operation, check->released_count, (unsigned long long)equal, recorded_count);
    check->released_count = 0;
}

//--------------------------------------------------------------------------------------------------
// The final layout.

static int compare_blocks(const void *a, const void *b) {
    const struct allocator_snapshot_block *left = a, *right = b;
    return compare_addresses(&(uint64_t){(uintptr_t)left->address},
                             &(uint64_t){(uintptr_t)right->address});
}

static enum trace_block_state replayed_state(const struct allocator_snapshot_block *block,
                                             const struct base_address_map *requested) {
    uint64_t slot;
    switch (block->state) {
    case ALLOCATOR_BLOCK_INACTIVE:
        return TRACE_BLOCK_INACTIVE;
    case ALLOCATOR_BLOCK_PENDING_FREE:
        return TRACE_BLOCK_PENDING_FREE;
    case ALLOCATOR_BLOCK_ALLOCATED:
        break;
    }
    return base_address_map_get(requested, (uintptr_t)block->address, &slot)
               ? TRACE_BLOCK_PENDING_FREE
               : TRACE_BLOCK_ALLOCATED;
}

static void check_block(struct workload__check *check, const struct trace_block *recorded,
                        const struct allocator_snapshot *snapshot,
                        const struct base_address_map *requested) {
    static const char *const states[] = {"inactive", "allocated", "pending"};
    const struct allocator_snapshot_block key = {.address = (void *)(uintptr_t)recorded->address};
    const struct allocator_snapshot_block *block =
        snapshot->block_count == 0 ? NULL
                                   : bsearch(&key, snapshot->blocks, snapshot->block_count,
                                             sizeof *snapshot->blocks, compare_blocks);
    if (block == NULL) {
        differ(check, "final layout: no block at 0x%llx, where the recording has one of %llu bytes",
               (unsigned long long)recorded->address, (unsigned long long)recorded->size);
        return;
    }
    const enum trace_block_state state = replayed_state(block, requested);
    if (block->size == recorded->size && state == recorded->state) {
        check->result.layout_equal_count++;
        return;
    }
    differ(check, "final layout: block at 0x%llx is %zu bytes and %s, recorded %llu bytes and %s",
           (unsigned long long)recorded->address, block->size, states[state],
           (unsigned long long)recorded->size, states[recorded->state]);
}

void workload__check_layout(struct workload__check *check,
                            const struct allocator_snapshot *snapshot,
                            const struct base_address_map *requested) {
    const struct trace *trace = check->plan->trace;
    if (check->result.layout_count == 0) return; // the recording holds none
    for (size_t i = 0; i < trace->segment_count; i++) {
        const struct trace_segment *segment = &trace->segments[i];
        if (segment->device != check->plan->device) continue;
        for (uint32_t j = 0; j < segment->block_count; j++)
            check_block(check, &trace->blocks[segment->block_first + j], snapshot, requested);
    }
    if (snapshot->block_count <= check->result.layout_count) return;
    check->extra_count += snapshot->block_count - check->result.layout_count;
    differ(check, "final layout: %zu blocks, recorded %llu", snapshot->block_count,
           (unsigned long long)check->result.layout_count);
}

void workload__check_finish(struct workload__check *check) {
    struct workload_self_check *result = &check->result;
    if (result->segment_equal_count != result->segment_count)
        differ(check, "%llu of %llu segments were taken as recorded",
               (unsigned long long)result->segment_equal_count,
               (unsigned long long)result->segment_count);
    result->exact = result->block_equal_count == result->block_count &&
                    result->segment_equal_count == result->segment_count &&
                    result->release_equal_count == result->release_count &&
                    result->layout_equal_count == result->layout_count && check->extra_count == 0;
}

void workload__check_deinit(struct workload__check *check) {
    free(check->released);
    check->released = NULL;
}
