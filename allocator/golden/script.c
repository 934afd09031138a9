// Making random programs: what a seed chooses. See script.h; the settings are in script_keys.c, the
// operations in script_operations.c, running and shrinking in script_run.c.
#include "allocator/golden/script.h"

#include "allocator/golden/script_internal.h"
#include "base/check.h"
#include "base/size.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void script__add(struct script_plan *plan, const char *format, ...) {
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

uint64_t script__size(struct script_plan *plan) {
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
    if (script__chance(plan, 0.15)) {
        const uint64_t edge = edges[script__below(plan, sizeof edges / sizeof edges[0])];
        const uint64_t around = script__chance(plan, 0.5) ? 1 : 512;
        const uint64_t size = edge + around * script__below(plan, 3);
        return size > around ? size - around : size;
    }
    const uint64_t size = base_random_log_between(&plan->random, plan->size_low, plan->size_high);
    // Settings are whole MiB: only such sizes meet their bounds exactly.
    const bool is_whole = size > 4 * BASE_MIB && script__chance(plan, plan->whole_share);
    return is_whole ? size / (2 * BASE_MIB) * (2 * BASE_MIB) : size;
}

static void plan_sizes(struct script_plan *plan) {
    plan->is_oversize = script__chance(plan, 0.35);
    if (plan->is_oversize) {
        plan->live_max = 4 + (size_t)script__below(plan, 20);
        plan->size_low = base_random_between(&plan->random, 2 * BASE_MIB, 30 * BASE_MIB);
        plan->size_high = plan->size_low + script__below(plan, 150 * BASE_MIB);
    } else {
        plan->live_max = (size_t)base_random_log_between(&plan->random, 4, 400);
        plan->size_low = base_random_log_between(&plan->random, 1, 4 * BASE_MIB);
        plan->size_high =
            plan->size_low + base_random_log_between(&plan->random, 512, 200 * BASE_MIB);
    }
    plan->whole_share = script__chance(plan, 0.3) ? 1 : 0.1;
    plan->palette_share = base_random_unit(&plan->random);
    plan->palette_size = script__chance(plan, 0.4) ? 3 : SCRIPT_PALETTE_MAX;
    for (size_t index = 0; index < plan->palette_size; index++)
        plan->palette[index] = script__size(plan);
}

static void plan_init(struct script_plan *plan) {
    plan->large_segment_mb = 20;
    plan->script->no_caching = script__chance(plan, 0.03);
    plan->stream_count = script__chance(plan, 0.4) ? 1 : 1 + (unsigned)script__below(plan, 5);
    plan_sizes(plan);
    plan->free_order = (unsigned)script__below(plan, 4);
    plan->is_scattered = script__chance(plan, 0.5);
    plan->is_expandable = script__chance(plan, 0.4);
    plan->has_events = script__chance(plan, 0.6);
    plan->record_share = base_random_unit(&plan->random) * 0.5;
    plan->may_reclaim = script__chance(plan, 0.2);
    plan->minor = script__chance(plan, 0.3) ? 1 + (unsigned)script__below(plan, 15) : 15;
    script__kinds_choose(plan);
}

// Between a device that holds all of it and one that is too small most of the time.
static uint64_t make_capacity(struct script_plan *plan) {
    const uint64_t need = plan->live_max * plan->size_high;
    const uint64_t low = need / 8 > 64 * BASE_MIB ? need / 8 : 64 * BASE_MIB;
    const uint64_t capacity =
        base_random_log_between(&plan->random, low, (plan->is_oversize ? 3 : 8) * low);
    return base_round_up(capacity, 2 * BASE_MIB);
}

void golden_script_make(struct golden_script *script, uint64_t seed, size_t operation_count) {
    *script = (struct golden_script){.seed = seed};
    struct script_plan plan = {.random = base_random_init(seed, "golden script"), .script = script};
    plan.live = calloc(operation_count + 1, sizeof *plan.live);
    BASE_CHECK(plan.live != NULL);
    plan_init(&plan);
    script->capacity_bytes = make_capacity(&plan);
    char config[SCRIPT_CONFIG_MAX];
    script__config_start(&plan, config);
    script->config = strdup(config);
    BASE_CHECK(script->config != NULL);
    if (plan.is_scattered) script__add(&plan, "scatter");
    if (plan.may_reclaim) script__add(&plan, "auto 1");
    if (script__chance(&plan, 0.4) && !script->no_caching)
        script__add(&plan, "fraction %g", (double)script__below(&plan, 1000) / 1000);
    for (size_t step = 0; script->operation_count < operation_count; step++)
        script__step(&plan, step);
    static const char *const end[] = {"trace", "stat",   "layout", "empty_cache",
                                      "stat",  "layout", "counts"};
    for (size_t index = 0; index < sizeof end / sizeof end[0]; index++)
        script__add(&plan, "%s", end[index]);
    free(plan.live);
}

void golden_script_deinit(struct golden_script *script) {
    for (size_t index = 0; index < script->operation_count; index++)
        free(script->operations[index]);
    free(script->operations);
    free(script->config);
    *script = (struct golden_script){0};
}
