// One scope is open at most: that of the pool which the next request goes to.
#include "workload/replay_pools.h"

#include "allocator/pools.h"
#include "base/check.h"

#include <stdlib.h>
#include <string.h>

static struct allocator_pool_id id_of(const struct workload__pools *pools, uint16_t pool) {
    const struct trace_pool_id *const id = &pools->trace->pools[pool];
    return (struct allocator_pool_id){.capture = id->capture, .user = id->user};
}

enum base_status workload__pools_init(struct workload__pools *pools,
                                      const struct workload_replay_plan *plan,
                                      struct allocator *allocator) {
    *pools =
        (struct workload__pools){.allocator = allocator,
                                 .trace = plan->trace,
                                 .caching = strcmp(allocator->operations->name, "caching") == 0};
    pools->is_used = calloc(plan->trace->pool_count, sizeof *pools->is_used);
    return pools->is_used != NULL ? BASE_OK
                                  : base_status_set(BASE_HOST_MEMORY, "no memory for %u pools",
                                                    plan->trace->pool_count);
}

// A scope is a user of its pool, too.
static enum base_status leave(struct workload__pools *pools) {
    const struct allocator_pool_id id = id_of(pools, pools->route);
    pools->route = 0;
    const enum base_status status = cca_pool_end(pools->allocator, 0, id);
    return status != BASE_OK ? status : cca_pool_release(pools->allocator, 0, id);
}

enum base_status workload__pools_route(struct workload__pools *pools, uint16_t pool) {
    if (!pools->caching || pools->route == pool)
        return BASE_OK;
    enum base_status status = pools->route != 0 ? leave(pools) : BASE_OK;
    if (status != BASE_OK || pool == 0)
        return status;
    const struct allocator_pool_id id = id_of(pools, pool);
    if (!pools->is_used[pool]) {
        status = cca_pool_create(pools->allocator, 0, id, NULL);
        if (status != BASE_OK)
            return status;
        pools->is_used[pool] = true;
    }
    status = cca_pool_begin(pools->allocator, 0, id, NULL);
    if (status == BASE_OK)
        pools->route = pool;
    return status;
}

enum base_status workload__pools_release(struct workload__pools *pools, uint16_t pool) {
    if (!pools->caching || !pools->is_used[pool])
        return BASE_OK;
    enum base_status status = pools->route == pool ? leave(pools) : BASE_OK;
    if (status != BASE_OK)
        return status;
    pools->is_used[pool] = false;
    return cca_pool_release(pools->allocator, 0, id_of(pools, pool));
}

enum base_status workload__pools_empty_cache(struct workload__pools *pools, uint16_t pool) {
    if (pool == 0 || !pools->caching)
        return allocator_empty_cache(pools->allocator);
    return cca_pool_empty_cache(pools->allocator, 0, id_of(pools, pool));
}

void workload__pools_deinit(struct workload__pools *pools) {
    for (uint32_t pool = 1; pools->is_used != NULL && pool < pools->trace->pool_count; pool++)
        BASE_CHECK_EQ(workload__pools_release(pools, (uint16_t)pool), BASE_OK);
    free(pools->is_used);
    *pools = (struct workload__pools){0};
}
