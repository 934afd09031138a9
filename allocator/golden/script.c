// Making random programs. See script.h; running and shrinking them is in script_run.c.
#include "allocator/golden/script.h"

#include "base/check.h"
#include "base/random.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define PALETTE_SIZE_MAX  12
#define CONFIG_LENGTH_MAX 512

// What a seed chose: the kinds of operation of this program, and their parameters.
struct plan {
    struct base_random random;
    struct golden_script *script;
    unsigned flags;

    unsigned stream_count;
    size_t live_max;                    // allocations held at one time, about
    uint64_t palette[PALETTE_SIZE_MAX]; // sizes that come again and again
    size_t palette_size;
    double palette_share;
    uint64_t size_low, size_high;
    unsigned free_order; // 0 oldest, 1 newest, 2 any, 3 changing
    bool is_scattered;   // segments do not ascend
    bool is_oversize;    // sizes around max_split_size, on a device that holds few of them
    bool is_expandable;  // segments are, mostly
    bool changes_fraction, changes_settings, changes_foreign, has_faults, has_empty_cache;
    double record_share;

    uint64_t large_segment_mb; // in force: it bounds other keys
    uint64_t *live;            // ids, oldest first
    size_t live_count;
    uint64_t next_id;
};

static bool chance(struct plan *plan, double probability) {
    return base_random_chance(&plan->random, probability);
}
static uint64_t below(struct plan *plan, uint64_t bound) {
    return base_random_below(&plan->random, bound);
}

__attribute__((format(printf, 2, 3))) static void add(struct plan *plan, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text;
    BASE_CHECK(vasprintf(&text, format, arguments) >= 0);
    va_end(arguments);
    struct golden_script *script = plan->script;
    if ((script->operation_count & (script->operation_count + 1)) ==
        0) { // room doubles at 0, 1, 3, 7, ...
        const size_t room = 2 * (script->operation_count + 1);
        script->operations = realloc(script->operations, room * sizeof *script->operations);
        BASE_CHECK(script->operations != NULL);
    }
    script->operations[script->operation_count++] = text;
}

//--------------------------------------------------------------------------------------------------
// Configurations.

struct text {
    char bytes[CONFIG_LENGTH_MAX];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *text, const char *format,
                                                         ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(text->bytes + text->length, sizeof text->bytes - text->length, format, arguments);
    va_end(arguments);
    BASE_CHECK(length >= 0 && text->length + (size_t)length < sizeof text->bytes);
    text->length += (size_t)length;
}

static const char *separator(const struct text *text) { return text->length == 0 ? "" : ","; }

static void append_divisions(struct plan *plan, struct text *text) {
    append(text, "%sroundup_power2_divisions:", separator(text));
    if (chance(plan, 0.5)) {
        append(text, "%d", 1 << below(plan, 5));
        return;
    }
    append(text, "[");
    for (uint64_t key = below(plan, 3); key < 8; key += 1 + below(plan, 3))
        append(text, "%d:%d,", 1 << key, chance(plan, 0.2) ? 0 : 1 << below(plan, 5));
    append(text, ">:%d]", 1 << below(plan, 5));
}

static void append_amount(struct plan *plan, struct text *text) {
    if (chance(plan, 0.5))
        append(text, "0.%" PRIu64, 5 + below(plan, 90));
    else
        append(text, "%gG", (double)(1 + below(plan, 64)) / 16);
}

static void append_expandable(struct plan *plan, struct text *text, bool is_run_time) {
    if (is_run_time ? chance(plan, 0.3) : plan->is_expandable)
        append(text, "%sexpandable_segments:%s", separator(text),
               is_run_time && chance(plan, 0.5) ? "False" : "True");
    if (chance(plan, 0.2))
        append(text, "%sx_bound_growth:%s", separator(text), chance(plan, 0.5) ? "True" : "False");
    if (chance(plan, 0.2)) {
        append(text, "%sexpandable_segments_reserve:", separator(text));
        append_amount(plan, text);
    }
    if (chance(plan, 0.2)) {
        append(text, "%sexpandable_segments_reserve_by_class:[a:", separator(text));
        append_amount(plan, text);
        append(text, ",b:");
        append_amount(plan, text);
        append(text, "]");
    }
}

// A valid configuration, mostly; RUN_TIME ones may be refused, which must leave the same settings
// behind.
static struct text make_config(struct plan *plan, bool is_run_time) {
    struct text text = {0};
    // An older release refuses keys that came later, which is for strings at run time.
    uint64_t version = 15;
    if (!is_run_time && plan->is_scattered && chance(plan, 0.6)) version = 4 + below(plan, 12);
    if (version < 15) append(&text, "x_torch:2.%" PRIu64, version);
    if (chance(plan, 0.25) && version >= 11) {
        plan->large_segment_mb = 11 + below(plan, 54);
        // The driver maps whole granules of 2 MiB only.
        if (plan->flags & GOLDEN_SCRIPT_EXPANDABLE)
            plan->large_segment_mb += plan->large_segment_mb % 2;
        append(&text, "%slarge_segment_size_mb:%" PRIu64, separator(&text), plan->large_segment_mb);
    }
    const uint64_t minimum = plan->large_segment_mb + (version < 11 ? 1 : 0);
    if (chance(plan, plan->is_oversize ? 0.9 : 0.4))
        append(&text, "%smax_split_size_mb:%" PRIu64, separator(&text), minimum + below(plan, 100));
    if (chance(plan, 0.3) && version >= 6)
        append(&text, "%smax_non_split_rounding_mb:%" PRIu64, separator(&text),
               minimum + below(plan, 60));
    if (chance(plan, 0.4))
        append(&text, "%sgarbage_collection_threshold:0.%" PRIu64, separator(&text),
               1 + below(plan, 9));
    if (chance(plan, 0.4)) append_divisions(plan, &text);
    if ((plan->flags & GOLDEN_SCRIPT_EXPANDABLE) && version >= 14)
        append_expandable(plan, &text, is_run_time);
    if (chance(plan, 0.2))
        append(&text, "%srelease_lock_on_cudamalloc:%s", separator(&text),
               chance(plan, 0.5) ? "True" : "False");
    if (chance(plan, 0.1) && version >= 9)
        append(&text, "%sper_process_memory_fraction:0.%" PRIu64, separator(&text),
               1 + below(plan, 9));
    if (is_run_time && chance(plan, 0.1))
        append(&text, "%smax_split_size_mb:%" PRIu64, separator(&text), minimum - 1);
    if (is_run_time && chance(plan, 0.1))
        append(&text, "%sgarbage_collection_threshold:1.5", separator(&text));
    return text;
}

//--------------------------------------------------------------------------------------------------
// Sizes.

// Around the sizes where the rules change, else log-uniform.
static uint64_t make_size(struct plan *plan) {
    static const uint64_t edges[] = {1,
                                     512,
                                     1024,
                                     BASE_MIB,
                                     2 * BASE_MIB,
                                     9 * BASE_MIB,
                                     10 * BASE_MIB,
                                     20 * BASE_MIB,
                                     32 * BASE_MIB,
                                     64 * BASE_MIB};
    if (chance(plan, 0.15)) {
        const uint64_t edge = edges[below(plan, sizeof edges / sizeof edges[0])];
        const uint64_t around = chance(plan, 0.5) ? 1 : 512;
        const uint64_t size = edge + around * below(plan, 3);
        return size > around ? size - around : size;
    }
    return base_random_log_between(&plan->random, plan->size_low, plan->size_high);
}

static uint64_t pick_size(struct plan *plan) {
    if (chance(plan, 0.002)) return 0;
    if (chance(plan, 0.002)) return (uint64_t)1 << (40 + below(plan, 23));
    return chance(plan, plan->palette_share) ? plan->palette[below(plan, plan->palette_size)]
                                             : make_size(plan);
}

//--------------------------------------------------------------------------------------------------
// Operations.

static void add_alloc(struct plan *plan) {
    const uint64_t id = plan->next_id++;
    add(plan, "alloc %" PRIu64 " %" PRIu64 " %" PRIu64, id, pick_size(plan),
        below(plan, plan->stream_count));
    plan->live[plan->live_count++] = id;
}

static void add_record(struct plan *plan) {
    if (plan->live_count == 0) return;
    add(plan, "record %" PRIu64 " %" PRIu64, plan->live[below(plan, plan->live_count)],
        below(plan, plan->stream_count));
}

static void add_free(struct plan *plan) {
    if (plan->live_count == 0) return;
    const unsigned order = plan->free_order == 3 ? (unsigned)below(plan, 3) : plan->free_order;
    const size_t index = order == 0   ? 0
                         : order == 1 ? plan->live_count - 1
                                      : (size_t)below(plan, plan->live_count);
    add(plan, "free %" PRIu64, plan->live[index]);
    plan->live_count--;
    memmove(&plan->live[index], &plan->live[index + 1],
            (plan->live_count - index) * sizeof *plan->live);
}

static void add_expandable_change(struct plan *plan) {
    static const char *const names[] = {"", "a", "b", "c", "d"};
    switch (below(plan, 4)) {
    case 0: add(plan, "empty_cache"); break;
    case 1:
        if (plan->has_faults) add(plan, "fault create %" PRIu64 " 2", 1 + below(plan, 12));
        break;
    case 2:
        add(plan, "class_default %s 0.%" PRIu64, names[1 + below(plan, 4)], 10 + below(plan, 80));
        break;
    default:
        add(plan, "class %" PRIu64 " %s", below(plan, plan->stream_count), names[below(plan, 5)]);
    }
}

static void add_change(struct plan *plan) {
    switch (below(plan, 6)) {
    case 0:
        if (plan->has_empty_cache) add(plan, "empty_cache");
        break;
    case 1:
        if (plan->changes_fraction)
            add(plan, "fraction %g", chance(plan, 0.15) ? 1.0 : (double)below(plan, 1000) / 1000);
        break;
    case 2:
        if (!plan->changes_settings) break;
        add(plan, "set %s", make_config(plan, true).bytes);
        add(plan, "get");
        break;
    case 3:
        if (plan->changes_foreign)
            add(plan, "foreign %" PRIu64, below(plan, plan->script->capacity_bytes / 2));
        break;
    case 4:
        if (plan->has_faults) add(plan, "fault malloc %" PRIu64 " 2", 1 + below(plan, 4));
        break;
    default: add(plan, chance(plan, 0.5) ? "reset_peak" : "reset_accumulated");
    }
}

static void add_query(struct plan *plan) {
    if ((plan->flags & GOLDEN_SCRIPT_EXPANDABLE) && chance(plan, 0.3))
        add(plan, chance(plan, 0.5) ? "va" : "segment_sizes");
    switch (below(plan, 5)) {
    case 0: add(plan, "layout"); break;
    case 1: add(plan, "largest"); break;
    case 2: add(plan, "get_fraction"); break;
    case 3:
        // Its outcome does not depend on what is cached, but it leaves a fraction of 0 behind.
        add(plan, "rounded %" PRIu64, make_size(plan));
        add(plan, "fraction %g", plan->changes_fraction ? (double)below(plan, 1000) / 1000 : 1.0);
        break;
    default: add(plan, "counts");
    }
}

static void add_complete(struct plan *plan) {
    if (chance(plan, 0.2))
        add(plan, "complete all");
    else
        add(plan, "complete %" PRIu64, below(plan, plan->stream_count));
}

static void add_step(struct plan *plan, size_t step) {
    if (step % 50 == 0) add(plan, "trace");
    if (step % 40 == 0) add(plan, "stat");
    if (chance(plan, 0.02)) add_change(plan);
    if ((plan->flags & GOLDEN_SCRIPT_EXPANDABLE) && chance(plan, 0.01)) add_expandable_change(plan);
    if (chance(plan, 0.01)) add_query(plan);
    const bool has_events = (plan->flags & GOLDEN_SCRIPT_EVENTS) != 0;
    if (has_events && chance(plan, plan->record_share)) add_record(plan);
    if (has_events && chance(plan, plan->record_share / 2)) add_complete(plan);
    // Now and then everything is freed, as at the end of a training step.
    if (chance(plan, 0.001))
        while (plan->live_count > 0) add_free(plan);
    const double fullness = (double)plan->live_count / (double)plan->live_max;
    if (chance(plan, fullness < 1 ? 0.7 - 0.4 * fullness : 0.1))
        add_alloc(plan);
    else
        add_free(plan);
}

//--------------------------------------------------------------------------------------------------
// The plan of a seed.

static void plan_sizes(struct plan *plan) {
    plan->is_oversize = chance(plan, 0.35);
    if (plan->is_oversize) {
        plan->live_max = 4 + (size_t)below(plan, 20);
        plan->size_low = base_random_between(&plan->random, 2 * BASE_MIB, 30 * BASE_MIB);
        plan->size_high = plan->size_low + below(plan, 150 * BASE_MIB);
    } else {
        plan->live_max = (size_t)base_random_log_between(&plan->random, 4, 400);
        plan->size_low = base_random_log_between(&plan->random, 1, 4 * BASE_MIB);
        plan->size_high =
            plan->size_low + base_random_log_between(&plan->random, 512, 200 * BASE_MIB);
    }
    plan->palette_share = base_random_unit(&plan->random);
    plan->palette_size = chance(plan, 0.4) ? 3 : PALETTE_SIZE_MAX;
    for (size_t index = 0; index < plan->palette_size; index++)
        plan->palette[index] = make_size(plan);
}

static void plan_init(struct plan *plan) {
    plan->large_segment_mb = 20;
    plan->stream_count = chance(plan, 0.4) ? 1 : 1 + (unsigned)below(plan, 5);
    plan_sizes(plan);
    plan->free_order = (unsigned)below(plan, 4);
    plan->is_scattered = chance(plan, 0.5);
    plan->is_expandable = (plan->flags & GOLDEN_SCRIPT_EXPANDABLE) && chance(plan, 0.8);
    plan->changes_fraction = chance(plan, 0.5);
    plan->changes_settings = chance(plan, 0.5);
    plan->changes_foreign = chance(plan, 0.2);
    plan->has_faults = chance(plan, 0.2);
    plan->has_empty_cache = chance(plan, 0.6);
    plan->record_share = base_random_unit(&plan->random) * 0.5;
}

// Between a device that holds all of it and one that is too small most of the time.
static uint64_t make_capacity(struct plan *plan) {
    const uint64_t need = plan->live_max * plan->size_high;
    const uint64_t low = need / 8 > 64 * BASE_MIB ? need / 8 : 64 * BASE_MIB;
    const uint64_t capacity =
        base_random_log_between(&plan->random, low, (plan->is_oversize ? 3 : 8) * low);
    return base_round_up(capacity, 2 * BASE_MIB);
}

void golden_script_make(struct golden_script *script, uint64_t seed, size_t operation_count,
                        unsigned flags) {
    *script = (struct golden_script){.seed = seed};
    struct plan plan = {
        .random = base_random_init(seed, "golden script"), .script = script, .flags = flags};
    plan.live = calloc(operation_count + 1, sizeof *plan.live);
    BASE_CHECK(plan.live != NULL);
    plan_init(&plan);
    script->capacity_bytes = make_capacity(&plan);
    script->config = strdup(make_config(&plan, false).bytes);
    BASE_CHECK(script->config != NULL);
    if (plan.is_scattered) add(&plan, "scatter");
    if (plan.changes_fraction) add(&plan, "fraction %g", (double)below(&plan, 1000) / 1000);
    for (size_t step = 0; script->operation_count < operation_count; step++) add_step(&plan, step);
    add(&plan, "trace");
    add(&plan, "stat");
    add(&plan, "layout");
    add(&plan, "empty_cache");
    add(&plan, "stat");
    add(&plan, "layout");
    add(&plan, "counts");
    free(plan.live);
}

void golden_script_deinit(struct golden_script *script) {
    for (size_t index = 0; index < script->operation_count; index++)
        free(script->operations[index]);
    free(script->operations);
    free(script->config);
    *script = (struct golden_script){0};
}
