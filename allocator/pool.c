// The decisions on blocks that are not on a hit's own path, and the ones that are (hit.h) for the
// slow paths.
#include "allocator/pool.h"

#include "allocator/capture_guard.h"
#include "allocator/hit.h"
#include "allocator/torch_faults.h"

static __attribute__((noinline)) void observe_block(struct cca *cca, enum allocator_action action,
                                                    const struct cca__pool *pool,
                                                    const struct cca__block *block) {
    cca__observe(cca, &(struct allocator_event){
                          .action = action,
                          .device = pool->stream->device->ordinal,
                          .address = (void *)(uintptr_t)block->address,
                          .size = block->requested,
                          .block_size = block->size,
                          .stream = pool->stream->handle,
                          .pool = cca__pool_id(pool),
                      });
    if (cca->history.enabled != CCA_HISTORY_OFF &&
        !cca__history_has_told(action, block->state == CCA__BLOCK_ALLOCATED))
        cca__history_block_locked(cca, action, pool, block);
}

// History is mostly alone; the call of it is then a jump.
void cca__observe_block(struct cca *cca, enum allocator_action action, const struct cca__pool *pool,
                        const struct cca__block *block) {
    if (__builtin_expect(cca->observer.event != NULL, 0))
        observe_block(cca, action, pool, block);
    else if (!cca__history_has_told(action, block->state == CCA__BLOCK_ALLOCATED))
        cca__history_block_locked(cca, action, pool, block);
}

void cca__observe_free(struct cca *cca, const struct cca__pool *pool,
                       const struct cca__block *block) {
    if (__builtin_expect(cca->observer.event != NULL, 0)) {
        observe_block(cca, ALLOCATOR_FREE_REQUESTED, pool, block);
        observe_block(cca, ALLOCATOR_FREE_COMPLETED, pool, block);
    } else {
        cca__history_block_locked(cca, ALLOCATOR_FREE_REQUESTED, pool, block);
    }
}

void cca__count_oversize(struct cca__device *device, int amount) {
    cca__lock_take(&device->tally_lock);
    cca__stat_change(&device->oversize_allocations, amount);
    cca__lock_release(&device->tally_lock);
}

// A block of an expandable segment is split whatever its size, so the rule saves nothing there and
// makes segments grow: x_bound_growth sets it aside.
bool cca__pool_refuses(const struct cca *cca, bool is_expandable, size_t size, size_t rounded) {
    if (cca->config.sizes.max_split_size == CCA_UNLIMITED) return false;
    if (cca->config.own.bound_growth && is_expandable) return false;
    return cca__oversize_refused(&cca->config.sizes, size, rounded);
}

enum base_status cca__pool_hand_out_locked(struct cca *cca, struct cca__pool *pool, uint32_t number,
                                           size_t rounded, size_t requested, bool *over_limit) {
    if (cca__block_is_expandable(cca__block_at(cca, number)))
        return cca__expandable_hand_out_locked(cca, pool, number, rounded, requested, true,
                                               over_limit);
    int64_t slack = 0;
    const enum base_status status = cca__hit_hand_out(cca, pool, number, rounded, requested, true,
                                                      cca__pool_expands(cca, pool), false, &slack);
    cca__hit_test_limits(pool, slack, over_limit);
    return status;
}

enum base_status cca__pool_serve_locked(struct cca *cca, struct cca__pool *pool, size_t rounded,
                                        size_t requested, void **pointer, bool *over_limit) {
    uint32_t number = cca__expandable_find_locked(cca, pool, rounded);
    if (__builtin_expect(pool->stream->guards != NULL, 0))
        number = cca__guards_pass_locked(cca, pool, number, rounded);
    struct cca__block *const block = cca__block_at(cca, number);
    if (number == 0 ||
        cca__pool_refuses(cca, cca__block_is_expandable(block), block->size, rounded)) {
        *pointer = NULL;
        return BASE_OK;
    }
    *pointer = (void *)(uintptr_t)block->address;
    return cca__pool_hand_out_locked(cca, pool, number, rounded, requested, over_limit);
}

enum base_status cca__pool_hand_out_new_locked(struct cca *cca, struct cca__pool *pool,
                                               uint32_t number, size_t rounded, size_t requested,
                                               bool *over_limit) {
    int64_t slack = 0;
    const enum base_status status =
        cca__hit_hand_out(cca, pool, number, rounded, requested, false, false, false, &slack);
    cca__hit_test_limits(pool, slack, over_limit);
    return status;
}

static __attribute__((noinline)) void free_special(struct cca *cca, struct cca__pool *pool,
                                                   uint32_t number, bool *over_limit) {
    const struct cca__block *const block = cca__block_at(cca, number);
    if (cca->watched) cca__observe_block(cca, ALLOCATOR_FREE_COMPLETED, pool, block);
    if (cca__block_is_expandable(block)) {
        cca__expandable_free_locked(cca, pool, number);
        return;
    }
    if ((block->flags & CCA__BLOCK_IN_TABLE) == 0)
        cca__page_table_remove_stray(&cca->page_table, block->address);
    if (cca__block_is_gone(block)) {
        cca__gone_free_locked(cca, pool, number, over_limit);
        return;
    }
    cca__hit_test_limits(pool, cca__hit_free(cca, pool, number, false), over_limit);
}

void cca__pool_free_locked(struct cca *cca, struct cca__pool *pool, uint32_t number,
                           bool *over_limit) {
    if (pool->stream->special || cca__block_at(cca, number)->flags != CCA__BLOCK_IN_TABLE) {
        free_special(cca, pool, number, over_limit);
        return;
    }
    cca__hit_test_limits(pool, cca__hit_free(cca, pool, number, true), over_limit);
}

//------------------------------------------------------------------------------------------------
// Blocks at wanted places.

// The block and one that stays may begin in one window of the page table, which then names the
// other: this one gets an entry of its own when it is next handed out.
void cca__pool_put_back_locked(struct cca__pool *pool, uint32_t number) {
    struct cca *const cca = pool->device->owner;
    struct cca__block *const block = cca__block_at(cca, number);
    bool over_limit = false;
    if (block->size >= cca->config.sizes.max_split_size) cca__count_oversize(pool->device, -1);
    if (cca->watched) cca__observe_block(cca, ALLOCATOR_FREE_REQUESTED, pool, block);
    cca__pool_free_locked(cca, pool, number, &over_limit);
    if (over_limit) cca__stats_meet_locked(pool->device, pool->stream);
    if (!pool->is_small) block->flags &= (uint8_t)~CCA__BLOCK_IN_TABLE;
}

void cca__pool_hand_out_exactly_locked(struct cca__pool *pool, uint32_t number, size_t size) {
    struct cca *const cca = pool->device->owner;
    const bool no_split = pool->no_split;
    bool over_limit = false;
    enum base_status status;
    pool->no_split = false;
    if (cca__block_is_expandable(cca__block_at(cca, number))) {
        status = cca__expandable_hand_out_front_locked(cca, pool, number, size, &over_limit);
    } else {
        int64_t slack = 0;
        status = cca__hit_hand_out(cca, pool, number, size, size, true, true, false, &slack);
        cca__hit_test_limits(pool, slack, &over_limit);
    }
    pool->no_split = no_split;
    BASE_CHECK_EQ(status, BASE_OK);
    if (over_limit) cca__stats_meet_locked(pool->device, pool->stream);
}

enum base_status cca__pool_reserve_entry_locked(struct cca *cca, const struct cca__segment *segment,
                                                uint64_t address, size_t *strays) {
    struct cca__page_table *const table = &cca->page_table;
    uint32_t directory = segment->directory;
    if (address >> CCA__ADDRESS_BITS == 0) {
        if (!cca__pool_at(cca, segment->pool)->is_small) return BASE_OK;
        if (segment->expandable != NULL) directory = cca__page_table_directory(table, address);
        if (directory != 0) return cca__page_table_reserve_small(table, directory, address);
    }
    ++*strays;
    return BASE_OK;
}
