// Rebuilding goes segment by segment. A segment of the large pool is taken whole and given back, so
// that it lies in the cache as one free block; then its pieces are asked for in order of address,
// free ones too. Each request finds just one free block of its pool and stream, the rest of this
// segment, so best fit has no choice. When everything is tiled, a block that was larger than its
// request is asked for again by the request, and the pieces that were free are freed.
//
// In the small pool the first piece takes the segment; a free piece larger than that pool hands out
// is made as two.
#include "workload/replay_start.h"

#include "base/size.h"

#include <stdlib.h>

#define SMALL_REQUEST_BYTES_MAX BASE_MIB

struct rebuild {
    const struct workload_replay_plan *plan;
    struct allocator *allocator;
    const struct workload__device *device;
    struct workload__pools *pools;
    void **pointers;
    void **temporaries; // pieces that are to be free
    size_t temporary_count;
    bool exact;
};

// Takes SIZE bytes of the segment's stream and pool that should lie at ADDRESS.
static enum base_status take(struct rebuild *rebuild, const struct trace_segment *segment,
                             uint64_t address, uint64_t size, void **pointer) {
    enum base_status status = workload__pools_route(rebuild->pools, segment->pool);
    if (status == BASE_OK)
        status = allocator_malloc(rebuild->allocator, 0, size,
                                  rebuild->device->streams[segment->stream], pointer);
    if (status == BASE_OK && (uint64_t)(uintptr_t)*pointer != address) rebuild->exact = false;
    return status;
}

static enum base_status take_temporary(struct rebuild *rebuild, const struct trace_segment *segment,
                                       const struct trace_block *block) {
    uint64_t done = 0;
    while (done < block->size) {
        uint64_t size = block->size - done;
        if (!segment->is_large && size > SMALL_REQUEST_BYTES_MAX) size = SMALL_REQUEST_BYTES_MAX;
        enum base_status status = take(rebuild, segment, block->address + done, size,
                                       &rebuild->temporaries[rebuild->temporary_count]);
        if (status != BASE_OK) return status;
        rebuild->temporary_count++;
        done += size;
    }
    return BASE_OK;
}

static enum base_status rebuild_segment(struct rebuild *rebuild,
                                        const struct trace_segment *segment) {
    const struct workload_replay_plan *plan = rebuild->plan;
    enum base_status status = BASE_OK;
    if (segment->is_large) {
        void *whole;
        status = take(rebuild, segment, segment->address, segment->total_size, &whole);
        if (status == BASE_OK) status = allocator_free(rebuild->allocator, whole);
    }
    for (uint32_t i = 0; i < segment->block_count && status == BASE_OK; i++) {
        const size_t index = segment->block_first + i;
        const struct trace_block *block = &plan->start.blocks[index];
        if (block->state == TRACE_BLOCK_INACTIVE) {
            status = take_temporary(rebuild, segment, block);
        } else {
            status = take(rebuild, segment, block->address, block->size,
                          &rebuild->pointers[plan->start_slots[index]]);
        }
    }
    return status;
}

static enum base_status rebuild_segments(struct rebuild *rebuild) {
    const struct trace_state *start = &rebuild->plan->start;
    for (size_t i = 0; i < start->segment_count; i++) {
        if (!workload__device_next_address(start->segments[i].address)) rebuild->exact = false;
        enum base_status status = rebuild_segment(rebuild, &start->segments[i]);
        workload__device_next_address_clear();
        if (status != BASE_OK) return status;
    }
    return BASE_OK;
}

// All is tiled: a freed block is the only free one, and its own request finds it again.
static enum base_status request_again(struct rebuild *rebuild,
                                      const struct trace_segment *segment) {
    const struct workload_replay_plan *plan = rebuild->plan;
    for (uint32_t i = 0; i < segment->block_count; i++) {
        const size_t index = segment->block_first + i;
        const struct trace_block *block = &plan->start.blocks[index];
        if (block->state == TRACE_BLOCK_INACTIVE) continue;
        void **pointer = &rebuild->pointers[plan->start_slots[index]];
        if (block->requested_size == block->size || block->requested_size == 0) continue;
        enum base_status status = allocator_free(rebuild->allocator, *pointer);
        if (status == BASE_OK)
            status =
                take(rebuild, segment, block->address, block->requested_size, pointer);
        if (status != BASE_OK) return status;
    }
    return BASE_OK;
}

static uint64_t count_temporaries(const struct trace_state *start) {
    uint64_t count = 0;
    for (size_t i = 0; i < start->segment_count; i++)
        for (uint32_t j = 0; j < start->segments[i].block_count; j++) {
            const struct trace_block *block = &start->blocks[start->segments[i].block_first + j];
            if (block->state == TRACE_BLOCK_INACTIVE)
                count +=
                    start->segments[i].is_large ? 1 : block->size / SMALL_REQUEST_BYTES_MAX + 1;
        }
    return count;
}

static enum base_status rebuild_all(struct rebuild *rebuild) {
    const struct trace_state *start = &rebuild->plan->start;
    const uint64_t temporary_count = count_temporaries(start);
    rebuild->temporaries = calloc(temporary_count + 1, sizeof(void *));
    if (rebuild->temporaries == NULL)
        return base_status_set(BASE_HOST_MEMORY, "no memory for %llu blocks",
                               (unsigned long long)temporary_count);
    enum base_status status = rebuild_segments(rebuild);
    for (size_t i = 0; i < start->segment_count && status == BASE_OK; i++)
        status = request_again(rebuild, &start->segments[i]);
    for (size_t i = 0; i < rebuild->temporary_count && status == BASE_OK; i++)
        status = allocator_free(rebuild->allocator, rebuild->temporaries[i]);
    free(rebuild->temporaries);
    return status;
}

static enum base_status take_blocks_in_use(struct rebuild *rebuild) {
    const struct trace_state *start = &rebuild->plan->start;
    for (size_t i = 0; i < start->segment_count; i++) {
        const struct trace_segment *segment = &start->segments[i];
        for (uint32_t j = 0; j < segment->block_count; j++) {
            const size_t index = segment->block_first + j;
            const struct trace_block *block = &start->blocks[index];
            if (block->state == TRACE_BLOCK_INACTIVE) continue;
            const uint64_t size = block->requested_size != 0 ? block->requested_size : block->size;
            enum base_status status =
                take(rebuild, segment, block->address, size,
                     &rebuild->pointers[rebuild->plan->start_slots[index]]);
            if (status != BASE_OK) return status;
        }
    }
    return BASE_OK;
}

enum base_status workload__start_make(const struct workload_replay_plan *plan,
                                      struct allocator *allocator,
                                      const struct workload__device *device,
                                      struct workload__pools *pools, bool exact, void **pointers,
                                      bool *exact_out) {
    *exact_out = true;
    if (plan->start.segment_count == 0) return BASE_OK;
    struct rebuild rebuild = {.plan = plan,
                              .allocator = allocator,
                              .device = device,
                              .pools = pools,
                              .pointers = pointers,
                              .exact = true};
    enum base_status status = exact ? rebuild_all(&rebuild) : take_blocks_in_use(&rebuild);
    if (status == BASE_OK) status = workload__pools_route(pools, 0);
    if (status != BASE_OK) return status;
    *exact_out = rebuild.exact && exact;
    // What the building did is not part of the history.
    status = allocator_reset_peak_stats(allocator, 0);
    if (status == BASE_OK) status = allocator_reset_accumulated_stats(allocator, 0);
    return status;
}
