// The decision logs under testdata/ and how many lines they have. The sums are written out, so that
// a log that quietly loses lines, or is no longer compared, fails a test.
#ifndef TIDEMARK_ALLOCATOR_GOLDEN_RECORDED_LOGS_H
#define TIDEMARK_ALLOCATOR_GOLDEN_RECORDED_LOGS_H

// One stream, or several without record_stream; native configuration keys.
#define GOLDEN_LOG_COUNT  48
#define GOLDEN_LINE_COUNT 54693
#define GOLDEN_LOGS                                                                                \
    "default-big", "default-frac", "default-small", "default-tight", "div2-mix", "div8-mix",       \
        "divlist-mix", "gc60-frac", "gc60-frac2", "gc60-split64-frac", "gc60-split64-frac2",       \
        "gc80-frac", "gc80-frac2", "split20-tight", "split64-tight", "split200-tight",             \
        "split512-tight", "large16-mix", "large32-split100-mix", "split128-round200-tight",        \
        "split64-round32-tight", "unlock-mix", "table-rounding-none", "rule-best-fit",             \
        "rule-boundaries", "rule-empty-cache", "rule-gc", "rule-gc-hits-keep-young",               \
        "rule-gc-without-fraction", "rule-inactive-split", "rule-inactive-split-unsplit-rest",     \
        "rule-oversize-a", "rule-oversize-b", "rule-oversize-rounding", "rule-peaks",              \
        "rule-release-available", "rule-rounding-in-use", "rule-split-tail-object",                \
        "rule-split-threshold", "rule-base-largest", "rule-fraction", "div1-mix", "div16-mix",     \
        "div4-mix", "divlist2-mix", "large64-mix", "ppmf50-tight", "rule-ppmf"

// record_stream, events and device faults.
#define GOLDEN_STREAM_LOG_COUNT  15
#define GOLDEN_STREAM_LINE_COUNT 16535
#define GOLDEN_STREAM_LOGS                                                                         \
    "rule-pending", "rule-pending-fifo", "rule-pending-flush", "rule-record-same-stream",          \
        "rule-retry-counts", "rule-zero-and-huge", "default-auto", "default-multi",                \
        "default-multitight", "split128-round200-multi", "split20-multi", "split200-multi",        \
        "split512-multi", "split64-multi", "split64-round32-multi"

// Tables of rounded sizes under settings, and the setter and the getter around them.
#define GOLDEN_TABLE_LOG_COUNT  4
#define GOLDEN_TABLE_LINE_COUNT 3725
#define GOLDEN_TABLE_LOGS                                                                          \
    "table-rounding-integer", "table-rounding-list", "table-large-segment", "rule-env-order"

// What 241 settings strings come to: for an allocator that reads them as PyTorch does.
#define GOLDEN_CONFIG_LOG_COUNT  1
#define GOLDEN_CONFIG_LINE_COUNT 498
#define GOLDEN_CONFIG_LOGS       "table-config"

// What a later string resets and keeps, of all keys.
#define GOLDEN_SETTER_LOG_COUNT  1
#define GOLDEN_SETTER_LINE_COUNT 52
#define GOLDEN_SETTER_LOGS       "rule-setter"

// Expandable segments, alone and with every other key; settings that change while memory is in use.
#define GOLDEN_EXPANDABLE_LOG_COUNT  34
#define GOLDEN_EXPANDABLE_LINE_COUNT 43276
#define GOLDEN_EXPANDABLE_LOGS                                                                     \
    "exp-auto", "exp-big", "exp-div4-multi", "exp-div4-tight", "exp-frac", "exp-gc70-frac",        \
        "exp-gc70-frac2", "exp-large32-multi", "exp-large32-tight", "exp-multi", "exp-multitight", \
        "exp-reserve-multi", "exp-reserve-tight", "exp-reserveG-multi", "exp-reserveG-tight",      \
        "exp-small", "exp-split200-multi", "exp-split200-tight", "exp-split64-multi",              \
        "exp-split64-tight", "exp-tight", "rule-expandable-basic", "rule-expandable-candidate",    \
        "rule-expandable-class", "rule-expandable-fraction", "rule-expandable-oom",                \
        "rule-expandable-pending", "rule-expandable-reserve", "rule-expandable-small",             \
        "rule-expandable-split", "rule-expandable-unmap", "rule-setter-live", "moving-settings",   \
        "rule-env-other"

// Rejection before the device is asked, free-memory callbacks, the numbers of the message with a
// list of processes, allocation at an address, no cache.
#define GOLDEN_MEMORY_LOG_COUNT  11
#define GOLDEN_MEMORY_LINE_COUNT 7176
#define GOLDEN_MEMORY_LOGS                                                                         \
    "rule-alloc-at", "rule-callback", "rule-oom-numbers", "rule-no-caching",                       \
        "rule-no-caching-false", "rule-throw", "rule-throw-ppmf", "throw-tight",                   \
        "throw-ppmf60-tight", "exp-throw-multi", "exp-throw-tight"

// Private and user pools.
#define GOLDEN_POOL_LOG_COUNT  16
#define GOLDEN_POOL_LINE_COUNT 9626
#define GOLDEN_POOL_LOGS                                                                           \
    "pools-0", "pools-1", "pools-2", "pools-3", "rule-oom-private", "rule-pool-basic",             \
        "rule-pool-errors", "rule-pool-expandable", "rule-pool-nested", "rule-pool-no-split",      \
        "rule-pool-no-split-expandable", "rule-pool-pending", "rule-pool-raw-allocator",           \
        "rule-pool-use-on-oom", "rule-pool-use-on-oom-expandable", "rule-pool-use-on-oom-order"

// Faults of PyTorch, which x_torch_faults:True copies.
#define GOLDEN_FAULT_LOG_COUNT  2
#define GOLDEN_FAULT_LINE_COUNT 71
#define GOLDEN_FAULT_LOGS       "rule-release-split-block", "rule-release-split-head"

// Not recorded but written: what is right where PyTorch 2.15 is wrong.
#define GOLDEN_SOUND_LOG_COUNT  2
#define GOLDEN_SOUND_LINE_COUNT 106
#define GOLDEN_SOUND_LOGS       "sound-release-split-block", "sound-release-split-head"

#endif
