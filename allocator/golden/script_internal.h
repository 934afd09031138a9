// What the files that make random programs share: what a seed chose.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_SCRIPT_INTERNAL_H
#define TIDEMARK_ALLOCATOR_GOLDEN_SCRIPT_INTERNAL_H

#include "allocator/golden/script.h"
#include "base/random.h"

#define SCRIPT_PALETTE_MAX 12
#define SCRIPT_KIND_MAX    32
#define SCRIPT_CONFIG_MAX  2048

struct script_plan {
    struct base_random random;
    struct golden_script *script;

    unsigned stream_count;
    size_t live_max;                      // allocations held at one time, about
    uint64_t palette[SCRIPT_PALETTE_MAX]; // sizes that come again and again
    size_t palette_size;
    double palette_share;
    uint64_t size_low, size_high;
    double whole_share; // of sizes that are multiples of 2 MiB
    unsigned free_order; // 0 oldest, 1 newest, 2 any, 3 changing
    bool is_scattered;   // segments do not ascend
    bool is_oversize;    // sizes around max_split_size, on a device that holds few of them
    bool is_expandable;  // segments are, mostly
    bool has_events;     // record_stream, and completions of streams
    // x_reclaim_idle may be on: streams wait for others, so that nothing may stay unfinished
    bool may_reclaim;
    double record_share;
    double kind_weights[SCRIPT_KIND_MAX]; // of the rarer operations; 0: this program has none
    double kind_weight_sum;

    unsigned minor;            // the release whose rules hold
    uint64_t large_segment_mb; // in force: it bounds other keys
    uint64_t *live;            // ids, oldest first
    size_t live_count;
    uint64_t next_id;
};

static inline bool script__chance(struct script_plan *plan, double probability) {
    return base_random_chance(&plan->random, probability);
}
static inline uint64_t script__below(struct script_plan *plan, uint64_t bound) {
    return base_random_below(&plan->random, bound);
}

void script__add(struct script_plan *plan, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
uint64_t script__size(struct script_plan *plan); // around the sizes where rules change

// script_keys.c: settings strings. The one a program starts with is valid; one that is SET later
// may not be, which must leave the same settings behind.
void script__config_start(struct script_plan *plan, char config[SCRIPT_CONFIG_MAX]);
void script__config_set(struct script_plan *plan, char config[SCRIPT_CONFIG_MAX]);
// Keys, values and separators in any order.
void script__config_any(struct script_plan *plan, char config[SCRIPT_CONFIG_MAX]);

// script_operations.c
void script__kinds_choose(struct script_plan *plan);
void script__step(struct script_plan *plan, size_t step);

#endif
