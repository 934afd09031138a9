// See checkpoint.h: saving, and comparing. checkpoint_restore.c puts back.
#include "allocator/checkpoint.h"

#include "allocator/checkpoint_state.h"
#include "allocator/deferral.h"
#include "allocator/device.h"
#include "allocator/pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int compare_segments(const void *a, const void *b) {
    const uint64_t x = (*(struct cca__segment *const *)a)->address;
    const uint64_t y = (*(struct cca__segment *const *)b)->address;
    return (x > y) - (x < y);
}

enum base_status cca__segment_list_init(struct cca__segment_list *list, struct cca *cca,
                                        const struct cca__private_pool *pool) {
    size_t count = 0;
    for (size_t index = 0; index < pool->stream_count; ++index)
        for (uint32_t number = pool->streams[index]->first_segment; number != 0;
             number = cca->segments[number].next)
            ++count;
    *list = (struct cca__segment_list){.segments = malloc((count + 1) * sizeof *list->segments)};
    if (list->segments == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for a list of %zu segments",
                               count);
    for (size_t index = 0; index < pool->stream_count; ++index)
        for (uint32_t number = pool->streams[index]->first_segment; number != 0;
             number = cca->segments[number].next)
            if (cca->segments[number].gone_bytes == 0)
                list->segments[list->count++] = &cca->segments[number];
    qsort(list->segments, list->count, sizeof *list->segments, compare_segments);
    return BASE_OK;
}

void cca__segment_list_deinit(struct cca__segment_list *list) { free(list->segments); }

//------------------------------------------------------------------------------------------------
// Saving.

void cca_checkpoint_destroy(struct cca_checkpoint *checkpoint) {
    if (checkpoint == NULL) return;
    free(checkpoint->segments);
    free(checkpoint->blocks);
    free(checkpoint);
}

static size_t count_blocks(const struct cca *cca, const struct cca__segment_list *list) {
    size_t count = 0;
    for (size_t index = 0; index < list->count; ++index)
        for (uint32_t number = list->segments[index]->first_block; number != 0;
             number = cca->blocks[number].next)
            ++count;
    return count;
}

static enum base_status refuse_pending(struct allocator_pool_id id,
                                       const struct cca__block *block) {
    return base_status_set(
        BASE_INVALID_VALUE,
        "private pool %" PRIu64 ".%" PRIu64
        ": the block at %p was freed and waits for other streams; allocator_empty_cache waits for "
        "them (PyTorch: c10::Error Events should have synchronized when checkpointing block)",
        id.capture, id.user, (void *)(uintptr_t)block->address);
}

static enum base_status save_segment(const struct cca *cca, const struct cca__segment *segment,
                                     struct cca_checkpoint *checkpoint) {
    const struct cca__pool *const pool = cca__pool_at(cca, segment->pool);
    struct cca__saved_segment *const saved = &checkpoint->segments[checkpoint->segment_count++];
    *saved = (struct cca__saved_segment){
        .address = segment->address,
        .size = segment->size,
        .stream = pool->stream->handle,
        .is_small = pool->is_small,
        .is_expandable = segment->expandable != NULL,
        .first_block = checkpoint->block_count,
    };
    for (uint32_t number = segment->first_block; number != 0; number = cca->blocks[number].next) {
        const struct cca__block *const block = cca__block_at(cca, number);
        if (block->state == CCA__BLOCK_UNMAPPED) continue;
        if (block->state == CCA__BLOCK_PENDING) return refuse_pending(checkpoint->id, block);
        checkpoint->blocks[checkpoint->block_count++] = (struct cca__saved_block){
            .address = block->address,
            .size = block->size,
            .is_allocated = block->state == CCA__BLOCK_ALLOCATED,
        };
    }
    saved->block_count = checkpoint->block_count - saved->first_block;
    return BASE_OK;
}

static enum base_status save_list(struct cca *cca, const struct cca__segment_list *list,
                                  struct cca_checkpoint *checkpoint) {
    const size_t block_count = count_blocks(cca, list);
    checkpoint->segments = malloc((list->count + 1) * sizeof *checkpoint->segments);
    checkpoint->blocks = malloc((block_count + 1) * sizeof *checkpoint->blocks);
    if (checkpoint->segments == NULL || checkpoint->blocks == NULL)
        return base_status_set(BASE_HOST_MEMORY,
                               "out of host memory for a checkpoint of %zu segments and %zu blocks",
                               list->count, block_count);
    enum base_status status = BASE_OK;
    for (size_t index = 0; index < list->count && status == BASE_OK; ++index)
        status = save_segment(cca, list->segments[index], checkpoint);
    return status;
}

static enum base_status save_locked(struct cca__device *device, struct cca_checkpoint *checkpoint) {
    struct cca__private_pool *pool;
    struct cca__segment_list list;
    enum base_status status = cca__pools_get(&device->pools, checkpoint->id, &pool);
    if (status != BASE_OK) return status;
    status = cca__segment_list_init(&list, device->owner, pool);
    if (status != BASE_OK) return status;
    status = save_list(device->owner, &list, checkpoint);
    cca__segment_list_deinit(&list);
    return status;
}

enum base_status cca_checkpoint_get(struct allocator *allocator, int ordinal,
                                    struct allocator_pool_id id,
                                    struct cca_checkpoint **checkpoint) {
    struct cca__device *device;
    enum base_status status = cca__device_of(allocator, ordinal, "checkpoints", &device);
    if (status != BASE_OK) return status;
    struct cca_checkpoint *const saved = calloc(1, sizeof *saved);
    if (saved == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for a checkpoint");
    saved->owner = device->owner;
    saved->device = ordinal;
    saved->id = id;
    cca__lock_take(&device->growth_lock);
    if (cca__is_deferring(device)) status = cca__deferred_flush(device, NULL, true);
    cca__streams_lock_all(device);
    if (status == BASE_OK) status = save_locked(device, saved);
    cca__streams_unlock_all(device);
    cca__lock_release(&device->growth_lock);
    if (status == BASE_OK)
        *checkpoint = saved;
    else
        cca_checkpoint_destroy(saved);
    return status;
}

//------------------------------------------------------------------------------------------------
// Comparing.

static int compare_addresses(const void *a, const void *b) {
    const uintptr_t x = (uintptr_t) * (void *const *)a, y = (uintptr_t) * (void *const *)b;
    return (x > y) - (x < y);
}

// Sorts ADDRESSES and drops repetitions.
static size_t make_set(void **addresses, size_t count) {
    size_t kept = 0;
    qsort(addresses, count, sizeof *addresses, compare_addresses);
    for (size_t index = 0; index < count; ++index)
        if (kept == 0 || addresses[kept - 1] != addresses[index])
            addresses[kept++] = addresses[index];
    return kept;
}

static bool is_in_set(void *const *set, size_t count, uint64_t address) {
    void *const wanted = (void *)(uintptr_t)address;
    return bsearch(&wanted, set, count, sizeof *set, compare_addresses) != NULL;
}

static enum base_status compare_locked(struct cca__device *device, struct allocator_pool_id id,
                                       void *const *set, size_t count, bool *equal) {
    const struct cca *const cca = device->owner;
    struct cca__private_pool *pool;
    struct cca__segment_list list;
    enum base_status status = cca__pools_get(&device->pools, id, &pool);
    if (status != BASE_OK) return status;
    status = cca__segment_list_init(&list, device->owner, pool);
    if (status != BASE_OK) return status;
    size_t found = 0, live = 0;
    for (size_t index = 0; index < list.count; ++index)
        for (uint32_t number = list.segments[index]->first_block;
             (number = cca__next_allocated(cca, number)) != 0; number = cca->blocks[number].next) {
            ++live;
            found += is_in_set(set, count, cca->blocks[number].address);
        }
    *equal = live == count && found == count;
    cca__segment_list_deinit(&list);
    return BASE_OK;
}

enum base_status cca_checkpoint_compare_live(struct allocator *allocator, int ordinal,
                                             struct allocator_pool_id id, void *const *addresses,
                                             size_t count, bool *equal) {
    struct cca__device *device;
    enum base_status status = cca__device_of(allocator, ordinal, "checkpoints", &device);
    if (status != BASE_OK) return status;
    void **const set = malloc((count + 1) * sizeof *set);
    if (set == NULL)
        return base_status_set(BASE_HOST_MEMORY, "out of host memory for %zu addresses", count);
    if (count > 0) memcpy(set, addresses, count * sizeof *set);
    const size_t set_count = make_set(set, count);
    cca__lock_take(&device->growth_lock);
    cca__streams_lock_all(device);
    status = compare_locked(device, id, set, set_count, equal);
    cca__streams_unlock_all(device);
    cca__lock_release(&device->growth_lock);
    free(set);
    return status;
}
