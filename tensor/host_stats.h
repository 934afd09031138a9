// Statistics of allocators of host memory: only those of all pools.
#ifndef TIDEMARK_TENSOR_HOST_STATS_H
#define TIDEMARK_TENSOR_HOST_STATS_H

#include "allocator/allocator.h"

// STATS is a family's; AMOUNT may be negative.
static inline void tensor__host_stat_add(struct allocator_stat *stats, int64_t amount) {
    struct allocator_stat *const stat = &stats[ALLOCATOR_STAT_ALL];
    stat->current += amount;
    if (stat->current > stat->peak) stat->peak = stat->current;
    if (amount > 0)
        stat->allocated += amount;
    else
        stat->freed -= amount;
}

static inline void tensor__host_stats_reset_peaks(struct allocator_stats *stats) {
#define RESET(name) stats->name[ALLOCATOR_STAT_ALL].peak = stats->name[ALLOCATOR_STAT_ALL].current;
    ALLOCATOR_STAT_LIST(RESET)
#undef RESET
}

static inline void tensor__host_stats_reset_accumulated(struct allocator_stats *stats) {
#define RESET(name)                                                                                \
    stats->name[ALLOCATOR_STAT_ALL].allocated = stats->name[ALLOCATOR_STAT_ALL].freed = 0;
    ALLOCATOR_STAT_LIST(RESET)
#undef RESET
    stats->num_ooms = stats->num_device_alloc = stats->num_device_free = 0;
}

#endif
